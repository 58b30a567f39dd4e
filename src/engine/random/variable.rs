//! Random variables: a distribution with the rounding and the bounds that are applied to its draws.

use super::sampler::{Sampler, ShortNumber};
use super::{Rng, stream};
use std::fmt;
use std::sync::Arc;

/// A parameter with an effect that the script probably does not intend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariableNote {
    pub parameter: &'static str,
    /// The effect, in one line: lower case, names in backticks, no final stop.
    pub message: String,
}

impl VariableNote {
    pub(super) fn new(parameter: &'static str, message: impl Into<String>) -> Self {
        Self { parameter, message: message.into() }
    }
}

/// A distribution with rounding and bounds. Immutable: draws come from the stream of the drawing thread.
#[derive(Debug)]
pub struct RandomVar {
    sampler: Arc<dyn Sampler>,
    adjust: Adjust,
    /// The integer that takes the place of a draw of 0.
    zero: u64,
    notes: Vec<VariableNote>,
}

/// The adjustments of a draw, in this order: rounding to a multiple, then the bounds. A bound need not be a multiple.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Adjust {
    /// The unit of rounding; 0 means no rounding.
    pub(super) round: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Adjust {
    pub(super) const NONE: Self = Self { round: 0.0, min: 0.0, max: f64::MAX };

    /// Rounds and bounds a draw. NaN becomes `min`, so that NaN never leaves this module.
    #[inline]
    fn apply(&self, mut x: f64) -> f64 {
        if self.round > 0.0 {
            x = nearest_multiple(x, self.round);
        }
        // `f64::max` and `f64::min` return the other operand for NaN.
        x.max(self.min).min(self.max)
    }
}

/// Returns the multiple of `unit` that is nearest to the integer part of `x`; the lower one on a tie.
#[inline]
fn nearest_multiple(x: f64, unit: f64) -> f64 {
    let whole = x.trunc();
    let lower = (whole / unit).floor() * unit;
    if (whole - lower) * 2.0 > unit { lower + unit } else { lower }
}

impl RandomVar {
    pub(super) fn new(sampler: Box<dyn Sampler>, adjust: Adjust, notes: Vec<VariableNote>) -> Self {
        Self { sampler: sampler.into(), adjust, zero: 0, notes }
    }

    /// Returns the same variable with integer draws of at least 1: instead of 0 it draws `round`, the smallest positive
    /// size that it can draw otherwise, or without `round` 1; neither is above `max`.
    #[must_use]
    pub fn positive(&self) -> Self {
        let least = self.adjust.apply(self.adjust.round.max(1.0)) as u64;
        Self { sampler: Arc::clone(&self.sampler), adjust: self.adjust, zero: least.max(1), notes: self.notes.clone() }
    }

    /// Draws an integer. Fractions are truncated, as in Filebench. Negative values and NaN become 0 (Filebench makes
    /// numbers near 2^64 of them).
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.integer(self.draw_f64(rng))
    }

    #[inline]
    fn integer(&self, x: f64) -> u64 {
        // The cast saturates: negative values become 0.
        match x as u64 {
            0 => self.zero,
            n => n,
        }
    }

    /// Draws a value with its fraction, rounded and bounded.
    #[inline]
    pub(crate) fn draw_f64(&self, rng: &mut Rng) -> f64 {
        self.adjust.apply(self.sampler.draw(rng))
    }

    /// Returns the mean of [`Self::draw`]. This is the mean of the distribution, exact to half a unit, where bounds cut
    /// nothing off and draws are large; else the mean of 65,536 draws from a fixed stream. Infinite if the distribution
    /// has no mean.
    pub fn mean(&self) -> f64 {
        let (low, high) = self.sampler.bounds();
        let mean = self.sampler.mean();
        if low >= high {
            return self.integer(self.adjust.apply(low)) as f64;
        }
        let Adjust { round, min, max } = self.adjust;
        let bounded_above = max < f64::MAX;
        if !mean.is_finite() && !bounded_above {
            return mean;
        }
        // A bound below 1, which a `cvar` without `min` has, changes no integer.
        let cut = low < min.max(0.0).floor() || (bounded_above && high > max);
        if !cut && mean >= 1000.0 && round == 0.0 {
            return mean;
        }
        let mut rng = stream(0, &[]);
        let draws = 1 << 16;
        (0..draws).map(|_| self.draw(&mut rng) as f64).sum::<f64>() / f64::from(draws)
    }

    /// Returns the mean of [`Self::draw_f64`]: that of the distribution where nothing is cut off or rounded, else the mean
    /// of 65,536 draws from a fixed stream.
    pub(crate) fn mean_f64(&self) -> f64 {
        let ((low, high), mean) = (self.sampler.bounds(), self.sampler.mean());
        let Adjust { round, min, max } = self.adjust;
        if !mean.is_finite() || low >= min && high <= max && round == 0.0 {
            return mean;
        }
        let mut rng = stream(0, &[]);
        let draws = 1 << 16;
        (0..draws).map(|_| self.draw_f64(&mut rng)).sum::<f64>() / f64::from(draws)
    }

    /// Returns an upper bound of [`Self::draw`]. `None` when neither the distribution nor `max` bounds it.
    pub(crate) fn max_hint(&self) -> Option<u64> {
        let high = self.adjust.apply(self.sampler.bounds().1);
        (high < u64::MAX as f64).then(|| self.integer(high))
    }

    /// Returns a lower bound of [`Self::draw`].
    pub(crate) fn min_hint(&self) -> u64 {
        self.integer(self.adjust.apply(self.sampler.bounds().0))
    }

    /// Returns the parameters that have an unexpected effect, each of which is reported as a warning.
    pub fn notes(&self) -> &[VariableNote] {
        &self.notes
    }

    #[cfg(test)]
    pub(super) fn sampler(&self) -> &dyn Sampler {
        &*self.sampler
    }
}

/// Prints a stable form: the distribution with its parameters, then rounding and bounds if any: `uniform(1k..15k)
/// round=512 max=8k`.
impl fmt::Display for RandomVar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sampler.fmt(f)?;
        if self.adjust.round > 0.0 {
            write!(f, " round={}", ShortNumber(self.adjust.round))?;
        }
        if self.adjust.min >= 1.0 {
            write!(f, " min={}", ShortNumber(self.adjust.min))?;
        }
        if self.adjust.max < f64::MAX {
            write!(f, " max={}", ShortNumber(self.adjust.max))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Adjust, nearest_multiple};
    use crate::random::{RandvarKind, RandvarParams, randvar, stream};

    #[test]
    fn rounding_is_to_the_nearest_multiple_and_down_on_a_tie() {
        let rounded: Vec<f64> = [0.0, 511.9, 512.0, 512.9, 513.0, 1024.0, 1536.0, 1537.0, -600.0]
            .iter()
            .map(|&x| nearest_multiple(x, 1024.0))
            .collect();
        assert_eq!(rounded, [0.0, 0.0, 0.0, 0.0, 1024.0, 1024.0, 1024.0, 2048.0, -1024.0]);
    }

    #[test]
    fn a_positive_variable_draws_its_smallest_size_instead_of_0() {
        let of = |round: u64, max: Option<f64>, mean: f64| {
            let params =
                RandvarParams { kind: Some(RandvarKind::Uniform), mean: Some(mean), round, max, ..Default::default() };
            randvar(&params).expect("a random variable")
        };
        for (round, max, mean, least) in [(0, None, 1.0, 1), (512, None, 512.0, 512), (512, Some(100.0), 512.0, 100)] {
            let variable = of(round, max, mean);
            let mut rng = stream(1, &[]);
            assert_eq!((0..100).map(|_| variable.draw(&mut rng)).min(), Some(0), "{variable}");
            let positive = variable.positive();
            let mut rng = stream(1, &[]);
            assert_eq!((0..100).map(|_| positive.draw(&mut rng)).min(), Some(least), "{variable}");
            assert_eq!((variable.min_hint(), positive.min_hint()), (0, least));
            assert_eq!(variable.max_hint(), positive.max_hint());
        }
    }

    #[test]
    fn bounds_apply_after_rounding_and_to_nan() {
        let adjust = Adjust { round: 100.0, min: 30.0, max: 950.0 };
        let out: Vec<f64> =
            [0.0, 120.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].iter().map(|&x| adjust.apply(x)).collect();
        assert_eq!(out, [30.0, 100.0, 950.0, 30.0, 950.0, 30.0]);
    }
}
