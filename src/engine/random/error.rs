//! Errors in the definition of a distribution: the parameter and the reason. The caller adds the position in the
//! script.

use thiserror::Error;

/// The reason why a distribution cannot be sampled.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BadDistribution {
    /// The type does not exist.
    #[error("there is no distribution `{name}`")]
    UnknownType {
        /// The type as written.
        name: String,
        /// The names of all types.
        known: Vec<String>,
    },
    #[error("`{distribution}` has no parameter `{parameter}`")]
    UnknownParameter {
        distribution: &'static str,
        /// The parameter as written.
        parameter: String,
        /// The names of the distribution's parameters.
        known: Vec<String>,
    },
    /// The parameter is not of the form `key:value`, or its value is not a number.
    #[error("`{parameter}` is `{value}`, which is not a number")]
    NotANumber {
        /// The name of the parameter.
        parameter: String,
        /// The value as written.
        value: String,
    },
    /// The value is outside the parameter's range.
    #[error("`{parameter}` is {value}, and must be {range}")]
    OutOfRange {
        /// The name of the parameter.
        parameter: &'static str,
        value: f64,
        /// The allowed range, in words.
        range: &'static str,
    },
    /// A required parameter is missing.
    #[error("`{distribution}` needs `{parameter}`{why}")]
    Missing {
        distribution: &'static str,
        /// The name of the parameter.
        parameter: &'static str,
        /// Empty, or a clause with the reason.
        why: &'static str,
    },
}

impl BadDistribution {
    /// Returns the name of the parameter that caused the error, as written; `type` if it is the type.
    pub fn parameter(&self) -> &str {
        match self {
            Self::UnknownType { .. } => "type",
            Self::UnknownParameter { parameter, .. } | Self::NotANumber { parameter, .. } => parameter,
            Self::OutOfRange { parameter, .. } | Self::Missing { parameter, .. } => parameter,
        }
    }

    /// Returns the unknown name and the known names, for a suggestion of a similar name. `None` for other errors.
    pub fn unknown(&self) -> Option<(&str, &[String])> {
        match self {
            Self::UnknownType { name, known } => Some((name, known)),
            Self::UnknownParameter { parameter, known, .. } => Some((parameter, known)),
            Self::NotANumber { .. } | Self::OutOfRange { .. } | Self::Missing { .. } => None,
        }
    }
}
