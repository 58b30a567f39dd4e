//! Numbers of the plan: constants, or random variables that are drawn at each use.

use super::sampler::ShortNumber;
use super::{RandomVar, Rng};
use std::fmt;
use std::sync::Arc;

/// A size, a count or an index: a constant, or a random variable.
#[derive(Clone, Debug)]
pub enum Quantity {
    /// A constant.
    Const(u64),
    /// A random variable, drawn from the thread's stream.
    Random(Arc<RandomVar>),
}

impl Quantity {
    /// Returns the value for this use as an integer: fractions are truncated, negative values become 0, and values that
    /// are too large become `u64::MAX`.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Const(n) => *n,
            Self::Random(variable) => variable.draw(rng),
        }
    }

    /// Returns the value for this use, with its fraction.
    #[inline]
    pub(crate) fn draw_f64(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Const(n) => *n as f64,
            Self::Random(variable) => variable.draw_f64(rng),
        }
    }

    /// Returns the quantity with a random variable whose draws are at least 1; see [`RandomVar::positive`]. A constant
    /// stays as it is.
    #[must_use]
    pub fn positive(self) -> Self {
        match self {
            Self::Const(n) => Self::Const(n),
            Self::Random(variable) => Self::Random(Arc::new(variable.positive())),
        }
    }

    /// Returns the mean of [`Self::draw`]; see [`RandomVar::mean`].
    pub fn mean(&self) -> f64 {
        match self {
            Self::Const(n) => *n as f64,
            Self::Random(variable) => variable.mean(),
        }
    }

    /// Returns the mean of [`Self::draw_f64`]; see [`RandomVar::mean_f64`].
    pub(crate) fn mean_f64(&self) -> f64 {
        match self {
            Self::Const(n) => *n as f64,
            Self::Random(variable) => variable.mean_f64(),
        }
    }

    /// Returns an upper bound of [`Self::draw`]. `None` when the distribution is unbounded.
    pub(crate) fn max_hint(&self) -> Option<u64> {
        match self {
            Self::Const(n) => Some(*n),
            Self::Random(variable) => variable.max_hint(),
        }
    }

    /// Returns a lower bound of [`Self::draw`].
    pub(crate) fn min_hint(&self) -> u64 {
        match self {
            Self::Const(n) => *n,
            Self::Random(variable) => variable.min_hint(),
        }
    }
}

impl From<u64> for Quantity {
    fn from(n: u64) -> Self {
        Self::Const(n)
    }
}

impl From<RandomVar> for Quantity {
    fn from(variable: RandomVar) -> Self {
        Self::Random(Arc::new(variable))
    }
}

/// Prints a stable form: `16k`, `1000`, `gamma(mean=16k,shape=1.5)`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(n) if *n < 1 << 53 => ShortNumber(*n as f64).fmt(f),
            Self::Const(n) => n.fmt(f),
            Self::Random(variable) => variable.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;
    use crate::random::stream;

    #[test]
    fn a_constant_draws_nothing_from_the_stream() {
        let (mut rng, before) = (stream(1, &[]), stream(1, &[]));
        let q = Quantity::from(16_384);
        assert_eq!((q.draw(&mut rng), q.max_hint(), q.min_hint()), (16_384, Some(16_384), 16_384));
        assert_eq!(q.to_string(), "16k");
        assert_eq!(Quantity::from(u64::MAX).to_string(), u64::MAX.to_string());
        assert_eq!(rng, before);
    }
}
