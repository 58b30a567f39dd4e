//! What can be wrong with a distribution: which parameter, and why. The caller knows the place in the script and adds it.

use thiserror::Error;

/// A distribution that nothing can be drawn from.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BadDistribution {
    /// No such type.
    #[error("there is no distribution `{name}`")]
    UnknownType {
        /// As written.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No such parameter.
    #[error("`{distribution}` has no parameter `{parameter}`")]
    UnknownParameter {
        /// The type.
        distribution: &'static str,
        /// As written.
        parameter: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// Not of the form `key:value`, or not a number.
    #[error("`{parameter}` is `{value}`, which is not a number")]
    NotANumber {
        /// Its name.
        parameter: String,
        /// As written.
        value: String,
    },
    /// Outside of what the distribution allows.
    #[error("`{parameter}` is {value}, and must be {range}")]
    OutOfRange {
        /// Its name.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed, in words.
        range: &'static str,
    },
    /// Not given, and without it there is nothing to draw.
    #[error("`{distribution}` needs `{parameter}`{why}")]
    Missing {
        /// The type.
        distribution: &'static str,
        /// Its name.
        parameter: &'static str,
        /// Empty, or a clause that says why.
        why: &'static str,
    },
}

impl BadDistribution {
    /// The parameter at fault, as written; `type` if the type itself is.
    pub fn parameter(&self) -> &str {
        match self {
            Self::UnknownType { .. } => "type",
            Self::UnknownParameter { parameter, .. } | Self::NotANumber { parameter, .. } => parameter,
            Self::OutOfRange { parameter, .. } | Self::Missing { parameter, .. } => parameter,
        }
    }

    /// The name that was not known and those that are, for a near miss.
    pub fn unknown(&self) -> Option<(&str, &[String])> {
        match self {
            Self::UnknownType { name, known } => Some((name, known)),
            Self::UnknownParameter { parameter, known, .. } => Some((parameter, known)),
            Self::NotANumber { .. } | Self::OutOfRange { .. } | Self::Missing { .. } => None,
        }
    }
}
