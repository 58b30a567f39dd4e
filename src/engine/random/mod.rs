//! Random streams and random quantities.
//!
//! Input: a seed, the position of a thread in the workload, and the parameters of a distribution as written in the
//! script. Output: a separate generator ([`Rng`]) for each thread, and a [`Quantity`] to draw from. All parameters are
//! immutable, so that threads share them without locks. All mutable state is in the thread's `Rng`.
//!
//! Deliberately absent: the language (`model` turns a [`BadDistribution`] or a [`VariableNote`] into a diagnostic with
//! a source position), and the choice of a seed.
//!
//! Each family of distributions has a file, and each distribution has an entry in [`DISTRIBUTIONS`] (name, parameters,
//! documentation, example, constructor). Tests compare mean, bounds and quantiles of each with expected values.
//!
//! ```
//! use wml::random::{Quantity, cvar, stream};
//! let size: Quantity = cvar("cvar-gamma", "mean:16k;gamma:1.5", None, None, None)?.into();
//! let mut rng = stream(1, &[0, 0, 0, 0]);
//! assert_eq!(size.to_string(), "gamma(mean=16k,shape=1.5)");
//! assert!(size.draw(&mut rng) < 1 << 30);
//! # Ok::<(), wml::random::BadDistribution>(())
//! ```

mod cvar;
mod error;
mod exponential;
mod gamma;
mod sampler;
mod normal;
mod pareto;
mod permutation;
mod quantity;
mod randvar;
mod stream;
mod table;
mod triangular;
mod uniform;
mod variable;
mod zipf;

#[cfg(test)]
mod tests;

pub use cvar::cvar;
pub use error::BadDistribution;
pub(crate) use permutation::{Permutation, Shuffle};
pub use quantity::Quantity;
pub use randvar::{RandvarKind, RandvarParams, randvar};
pub use stream::{Rng, below, gamma, seed_of_rank, stream, unit, unit_above_zero};
pub use variable::{RandomVar, VariableNote};
pub use wml_text::hash::mix;
pub use zipf::ZipfRanks;

use sampler::SamplerBuilder;

/// Which functions of the language accept a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsableIn {
    /// `randvar(type=NAME,…)`; in the Sun dialect `define randvar name=$x,type=NAME,…`.
    Randvar,
    /// `cvar(type=NAME,parameters="key:value;key:value")`.
    Cvar,
    /// `randvar(type=NAME,key=value,…)` and `cvar(type=cvar-NAME,parameters="key:value;…")`. These distributions are
    /// extensions; Filebench has none of them.
    Both,
}

/// A parameter of a distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// The name in a script.
    pub name: &'static str,
    /// The value of an omitted parameter. `None` when the parameter is required, or when its absence has a meaning of
    /// its own; `doc` says which.
    pub default: Option<f64>,
    /// A description of one line.
    pub doc: &'static str,
}

impl Parameter {
    const fn new(name: &'static str, default: Option<f64>, doc: &'static str) -> Self {
        Self { name, default, doc }
    }
}

/// A distribution of the language. The manual and `wmlrun list distributions` are generated from this.
#[derive(Clone, Copy, Debug)]
pub struct Distribution {
    /// The name after `type=`. A `cvar` writes the names of [`UsableIn::Both`] with the prefix `cvar-`.
    pub name: &'static str,
    /// The functions of the language that accept the distribution.
    pub usable_in: UsableIn,
    /// The distribution's own parameters. In addition, a `randvar` has `seed`, `round` and, for an extension, `min` and
    /// `max`; a `cvar` has `min`, `max` and `round`.
    pub parameters: &'static [Parameter],
    /// A description of one line, with the formula.
    pub doc: &'static str,
    /// An example statement that can be copied into a script.
    pub example: &'static str,
    build: SamplerBuilder,
}

impl Distribution {
    /// Returns the distribution with this name in a `randvar`. `None` when there is none.
    pub(crate) fn of_randvar(name: &str) -> Option<&'static Self> {
        DISTRIBUTIONS.iter().find(|d| d.usable_in != UsableIn::Cvar && d.name == name)
    }

    /// Returns the distribution with this name in a `cvar`. `None` when there is none.
    pub(crate) fn of_cvar(name: &str) -> Option<&'static Self> {
        DISTRIBUTIONS.iter().find(|d| match d.usable_in {
            UsableIn::Randvar => false,
            UsableIn::Cvar => d.name == name,
            UsableIn::Both => name.strip_prefix("cvar-") == Some(d.name),
        })
    }

    /// Returns its names in scripts: in a `randvar` and in a `cvar`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let randvar_name = (self.usable_in != UsableIn::Cvar).then(|| self.name.to_owned());
        randvar_name.into_iter().chain(self.cvar_name())
    }

    /// Returns its name in a `cvar`. `None` if a `cvar` does not accept it.
    fn cvar_name(&self) -> Option<String> {
        match self.usable_in {
            UsableIn::Randvar => None,
            UsableIn::Cvar => Some(self.name.to_owned()),
            UsableIn::Both => Some(format!("cvar-{}", self.name)),
        }
    }
}

/// All distributions of the language.
pub const DISTRIBUTIONS: &[Distribution] = &[
    uniform::UNIFORM,
    gamma::GAMMA,
    table::TABULAR,
    uniform::CVAR_UNIFORM,
    exponential::CVAR_EXPONENTIAL,
    normal::CVAR_NORMAL,
    normal::CVAR_LOGNORMAL,
    gamma::CVAR_ERLANG,
    exponential::CVAR_WEIBULL,
    triangular::CVAR_TRIANGULAR,
    gamma::CVAR_GAMMA,
    zipf::ZIPF,
    pareto::PARETO,
];
