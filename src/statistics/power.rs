//! The power of a comparison: the losses that it can detect, and the number of runs that it needs.
//!
//! The model is a t interval around a mean of log ratios, for runs whose logarithms are normal with a known standard
//! deviation. The probability of a verdict is an integral over the distribution of the estimated standard deviation. The
//! signed-rank interval is taken for a t interval of its own level and of a standard error that is greater by the root of its
//! asymptotic relative efficiency, 3/π; simulations of normal runs agree from eight pairs on.

use super::distributions::{bisect, normal, t_upper};
use super::rank_intervals::signed_rank_level;
use super::sample::Estimate;
use super::verdict::Tolerance;
use std::f64::consts::PI;
use std::ops::RangeInclusive;

/// The power that is asked for: 80 %.
const TARGET_POWER: f64 = 0.8;

/// The number of steps of the numerical integration, which must be even.
const STEPS: usize = 400;

/// The maximum number of blocks or runs that is tried.
const MAX_BLOCKS: usize = 1000;

/// The parameters of a comparison that determine its power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The standard error of the mean log ratio.
    pub error: f64,
    /// The degrees of freedom of its estimate.
    pub df: f64,
    /// The one-sided error probability (0.025).
    pub one_sided: f64,
}

impl Power {
    /// Describes the signed-rank interval of so many pairs of runs. `spread` is the standard deviation of the log ratio of a
    /// pair. `one_sided` is the one-sided error probability (0.025). Returns `None` if the pairs are too few for it.
    pub(super) fn of_pairs(pairs: usize, spread: f64, one_sided: f64) -> Option<Self> {
        let one_sided = signed_rank_level(pairs as u64, one_sided)?;
        Some(Self { error: spread / (pairs as f64 * 3.0 / PI).sqrt(), df: (pairs - 1) as f64, one_sided })
    }

    /// Returns the probability of the verdict *worse* when the true loss is `loss` (0.05 is 5 %).
    pub(crate) fn probability_of_worse(self, loss: f64, tolerance: Tolerance) -> f64 {
        let gap = (1.0 - tolerance.0).ln() - (1.0 - loss).ln();
        self.probability_beyond(gap)
    }

    /// Returns the probability of the verdict *not worse* or *same* for two equal arms.
    pub(crate) fn probability_of_not_worse(self, tolerance: Tolerance) -> f64 {
        self.probability_beyond(-(1.0 - tolerance.0).ln())
    }

    /// Returns the smallest loss for which the verdict is *worse* with a probability of 80 %. Returns `None` when the
    /// probability is lower even for a loss of 99.9 %.
    pub fn detectable_loss(self, tolerance: Tolerance) -> Option<f64> {
        let most = 0.999;
        (self.probability_of_worse(most, tolerance) >= TARGET_POWER)
            .then(|| bisect(tolerance.0, most, |loss| self.probability_of_worse(loss, tolerance) < TARGET_POWER))
    }

    /// Returns the smallest number of blocks, at least `least`, for which the verdict on equal arms is *not worse* with a
    /// probability of 80 %. A block has `pairs` pairs of runs. `spread` and `one_sided` are those of `Self::of_pairs`.
    /// Returns `None` when 1000 blocks are too few.
    pub fn needed_blocks(
        spread: f64,
        pairs: usize,
        tolerance: Tolerance,
        least: usize,
        one_sided: f64,
    ) -> Option<usize> {
        smallest(least..=MAX_BLOCKS, |blocks| Self::of_pairs(blocks * pairs, spread, one_sided), tolerance)
    }

    /// Returns the smallest number of runs of each side for which the same is true, for sides that were not interleaved.
    /// `self` describes their comparison with `runs` runs each. Returns `None` when 1000 runs are too few.
    pub fn needed_runs(self, runs: usize, tolerance: Tolerance) -> Option<usize> {
        let parameters = (2 * runs) as f64 - self.df;
        let of = |n: usize| {
            let df = (2 * n) as f64 - parameters;
            let error = self.error * (runs as f64 / n as f64).sqrt();
            (df >= 1.0).then_some(Self { error, df, ..self })
        };
        smallest(2..=MAX_BLOCKS, of, tolerance)
    }

    /// Returns the probability that the whole interval of an estimate is beyond a limit when the true value is `gap`
    /// beyond it.
    fn probability_beyond(self, gap: f64) -> f64 {
        if self.error == 0.0 {
            return if gap > 0.0 { 1.0 } else { 0.0 };
        }
        let t = t_upper(self.one_sided, self.df);
        // Simpson's rule over u, the estimated standard deviation divided by the true one. The distribution of u² is χ²
        // divided by its degrees of freedom. The density is normalised by its numerical integral.
        let end = 1.0 + 10.0 / (2.0 * self.df).sqrt();
        let (mut sum, mut whole) = (0.0, 0.0);
        for i in 1..=STEPS {
            let u = end * i as f64 / STEPS as f64;
            let density = ((self.df - 1.0) * u.ln() - self.df * (u * u - 1.0) / 2.0).exp();
            let weight = density * if i == STEPS { 1.0 } else { f64::from(2 + 2 * (i % 2) as u32) };
            whole += weight;
            sum += weight * normal(gap / self.error - t * u);
        }
        sum / whole
    }
}

/// Returns the smallest size of a sample for which the interval of a ratio is expected to be at most as wide as ± the
/// tolerance. `ratio` has the interval at confidence `level` that a sample of `size` gave, and `df` gives the degrees of
/// freedom for a size. Returns `None` without an interval, and when 1000 are too few.
pub fn needed_for_width(
    ratio: Estimate,
    size: usize,
    level: f64,
    tolerance: Tolerance,
    df: impl Fn(usize) -> usize,
) -> Option<usize> {
    let t = |n| t_upper((1.0 - level) / 2.0, df(n) as f64);
    let of_one = (ratio.high / ratio.low).ln() / 2.0 / t(size) * (size as f64).sqrt();
    // A NaN is never narrow.
    first(2..=MAX_BLOCKS, |n| ratio.value * (t(n) * of_one / (n as f64).sqrt()).sinh() <= tolerance.0)
}

/// Returns the smallest size of a comparison that reaches the target power. Returns `None` when the largest does not.
fn smallest(sizes: RangeInclusive<usize>, of: impl Fn(usize) -> Option<Power>, tolerance: Tolerance) -> Option<usize> {
    first(sizes, |n| of(n).is_some_and(|power| power.probability_of_not_worse(tolerance) >= TARGET_POWER))
}

/// Returns the smallest size that is enough. Returns `None` when the largest is not.
///
/// Of a larger comparison the power is greater and the interval is narrower, so a bisection finds the size in ten
/// evaluations. A linear search needs up to a thousand, which take 30 ms for the power, after every run of an experiment.
fn first(sizes: RangeInclusive<usize>, reaches: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = sizes.into_inner();
    if low > high || !reaches(high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if reaches(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TOLERANCE: Tolerance = Tolerance(0.03);

    /// The power of a number of blocks of four runs with this standard deviation.
    fn of_blocks(blocks: usize, between_runs: f64) -> Power {
        Power::of_pairs(2 * blocks, 2.0_f64.sqrt() * between_runs, 0.025).unwrap()
    }

    fn needed(between_runs: f64, one_sided: f64) -> Option<usize> {
        Power::needed_blocks(2.0_f64.sqrt() * between_runs, 2, TOLERANCE, 4, one_sided)
    }

    /// The expected values, for a coefficient of variation of 4 %, are from simulations of 20,000 comparisons by another
    /// program, rounded to two digits.
    #[test]
    fn power_agrees_with_simulated_comparisons() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 0.015, "{a} {b}");
        let four = of_blocks(4, 0.04);
        close(four.probability_of_worse(0.03, TOLERANCE), 0.0184);
        close(four.probability_of_worse(0.06, TOLERANCE), 0.222);
        close(four.probability_of_worse(0.12, TOLERANCE), 0.968);
        close(of_blocks(12, 0.04).probability_of_not_worse(TOLERANCE), 0.695);
        close(of_blocks(16, 0.04).probability_of_not_worse(TOLERANCE), 0.822);
    }

    #[test]
    fn too_few_pairs_for_an_interval_have_no_power() {
        assert_eq!(Power::of_pairs(5, 0.04, 0.025), None);
        assert!(Power::of_pairs(6, 0.04, 0.025).is_some() && Power::of_pairs(10, 0.04, 0.0005).is_none());
        assert_eq!(Power::needed_blocks(0.0, 2, TOLERANCE, 1, 0.025), Some(3));
        assert_eq!(Power::needed_blocks(0.0, 1, TOLERANCE, 1, 0.025), Some(6));
    }

    /// The number of runs grows with the square of the standard error.
    #[test]
    fn sides_that_vary_twice_as_much_need_four_times_the_runs() {
        let of = |error: f64| Power { error, df: 57.0, one_sided: 0.025 }.needed_runs(30, TOLERANCE).unwrap();
        let (few, many) = (of(0.02), of(0.04));
        assert!(few > 30 && many.abs_diff(4 * few) <= 4, "{few} {many}");
    }

    /// The interval of a sample of the size that was found, with the same variation, is narrow enough, and that of one less
    /// is not.
    #[test]
    fn a_sample_of_the_needed_size_has_a_narrow_interval() {
        let (level, df) = (0.999, |n: usize| n - 1);
        let half = |n: usize| t_upper(0.0005, df(n) as f64) * 0.05 / (n as f64).sqrt();
        for size in [4, 20] {
            let ratio = Estimate::around(0.0, half(size)).map(f64::exp);
            let needed = needed_for_width(ratio, size, level, TOLERANCE, df).unwrap();
            assert!(half(needed).sinh() <= 0.03 && half(needed - 1).sinh() > 0.03, "{needed}");
        }
        let wide = Estimate::around(0.0, 50.0).map(f64::exp);
        assert_eq!(needed_for_width(wide, 20, level, TOLERANCE, df), None);
        assert_eq!(needed_for_width(Estimate { low: f64::NAN, ..wide }, 4, level, TOLERANCE, df), None);
    }

    #[test]
    fn the_detectable_loss_is_detected_with_the_target_power() {
        for blocks in [4, 12, 28] {
            let power = of_blocks(blocks, 0.04);
            let loss = power.detectable_loss(TOLERANCE).unwrap();
            assert!(loss > 0.03 && (power.probability_of_worse(loss, TOLERANCE) - TARGET_POWER).abs() < 1e-6);
        }
        assert!((of_blocks(4, 0.0).detectable_loss(TOLERANCE).unwrap() - 0.03).abs() < 1e-9);
        assert_eq!(of_blocks(3, 5.0).detectable_loss(TOLERANCE), None);
        assert!((15..=17).contains(&needed(0.04, 0.025).unwrap()), "{:?}", needed(0.04, 0.025));
        assert_eq!((needed(0.0, 0.025), needed(5.0, 0.025)), (Some(4), None));
        let of_a_look = needed(0.04, 0.0075).unwrap();
        assert!(of_a_look > 18, "a higher level needs more blocks than 16: {of_a_look}");
    }
}
