//! Random streams and random quantities.
//!
//! In: a seed and the place of a thread in the workload; the parameters of a distribution as they were written. Out: an [`Rng`] of
//! that thread's own, and a [`Quantity`] that it draws from. All parameters are immutable, so that threads share them without
//! locks; all state is in the thread's `Rng`.
//!
//! Deliberately absent: the language (`model` turns a [`BadDistribution`] or a [`VariableNote`] into a diagnostic with its place), and any
//! choice of a seed.
//!
//! One file per family of distributions, and one line per distribution in [`DISTRIBUTIONS`].
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
pub use stream::{Rng, below, gamma, mix, stream, unit};
pub use variable::{RandomVar, VariableNote};

use sampler::SamplerBuilder;

/// How a distribution is written in a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsableIn {
    /// `randvar(type=NAME,…)`, in the Sun dialect `define randvar name=$x,type=NAME,…`.
    Randvar,
    /// `cvar(type=NAME,parameters="key:value;key:value")`.
    Cvar,
    /// `randvar(type=NAME,key=value,…)` and `cvar(type=cvar-NAME,parameters="key:value;…")`: ours, Filebench has none of them.
    Both,
}

/// A parameter of a distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// As written.
    pub name: &'static str,
    /// Taken if it is not given; none: it need not be given and stands for something else, or must be given (the doc line says).
    pub default: Option<f64>,
    /// One line.
    pub doc: &'static str,
}

impl Parameter {
    const fn new(name: &'static str, default: Option<f64>, doc: &'static str) -> Self {
        Self { name, default, doc }
    }
}

/// What is known of a distribution; the manual and `wmlrun list distributions` are made from this.
#[derive(Clone, Copy, Debug)]
pub struct Distribution {
    /// As written after `type=`. Those of [`UsableIn::Both`] have `cvar-` before it in a `cvar`.
    pub name: &'static str,
    /// How it is written.
    pub place: UsableIn,
    /// Its own parameters. Besides them a `randvar` has `seed`, `round` and, if it is ours, `min` and `max`; a `cvar` has `min`,
    /// `max` and `round`.
    pub parameters: &'static [Parameter],
    /// One line: the distribution and its formula.
    pub doc: &'static str,
    /// A use of it that can be copied.
    pub example: &'static str,
    build: SamplerBuilder,
}

impl Distribution {
    /// The distribution that a `randvar` calls `name`.
    pub fn of_randvar(name: &str) -> Option<&'static Self> {
        DISTRIBUTIONS.iter().find(|d| d.place != UsableIn::Cvar && d.name == name)
    }

    /// The distribution that a `cvar` calls `name`.
    pub fn of_cvar(name: &str) -> Option<&'static Self> {
        DISTRIBUTIONS.iter().find(|d| match d.place {
            UsableIn::Randvar => false,
            UsableIn::Cvar => d.name == name,
            UsableIn::Both => name.strip_prefix("cvar-") == Some(d.name),
        })
    }
}

/// Every distribution that a script can draw from.
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
