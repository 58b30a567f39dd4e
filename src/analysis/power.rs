//! What a comparison could have seen, and how many runs another would need.
//!
//! An interval of Student's t around the mean of log ratios, of runs whose logarithms have a known standard deviation: the
//! probability of a verdict is an integral over the estimated standard deviation.

use super::distributions::{bisect, normal, t_upper};
use super::verdict::Tolerance;

/// The probability with which something is to be found: 80 %.
const SIGHT: f64 = 0.8;

/// Steps of the integral, an even number.
const STEPS: usize = 400;

/// The most blocks that are worked out.
const MOST: usize = 1000;

/// A comparison as its power sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Standard error of the mean log ratio.
    pub error: f64,
    /// Degrees of freedom of its estimate.
    pub df: f64,
    /// Probability of error on each side (0.025).
    pub one_sided: f64,
}

impl Power {
    /// Of so many blocks; `between_runs` is the standard deviation of the logarithms of single runs.
    pub fn of_blocks(blocks: usize, between_runs: f64) -> Self {
        Self { error: between_runs / (blocks as f64).sqrt(), df: (blocks - 1) as f64, one_sided: 0.025 }
    }

    /// Of so many runs a side, made separately.
    pub fn of_runs(runs: usize, between_runs: f64) -> Self {
        Self { error: between_runs * (2.0 / runs as f64).sqrt(), df: (2 * runs - 2) as f64, one_sided: 0.025 }
    }

    /// Probability that a true loss (0.05 is 5 %) is called *worse*.
    pub fn worse(self, loss: f64, tolerance: Tolerance) -> f64 {
        let gap = (1.0 - tolerance.0).ln() - (1.0 - loss).ln();
        self.clears(gap)
    }

    /// Probability that two equal arms are called *not worse* or *same*.
    pub fn not_worse(self, tolerance: Tolerance) -> f64 {
        self.clears(-(1.0 - tolerance.0).ln())
    }

    /// The smallest loss that is called *worse* in four of five cases; `None` if even the loss of all but a thousandth is not.
    pub fn could_have_seen(self, tolerance: Tolerance) -> Option<f64> {
        let most = 0.999;
        (self.worse(most, tolerance) >= SIGHT)
            .then(|| bisect(tolerance.0, most, |loss| self.worse(loss, tolerance) < SIGHT))
    }

    /// The fewest blocks, at least `least`, with which equal arms are called *not worse* in four of five cases; `None` above a thousand.
    pub fn needed_blocks(between_runs: f64, tolerance: Tolerance, least: usize) -> Option<usize> {
        (least.max(2)..=MOST).find(|n| Self::of_blocks(*n, between_runs).not_worse(tolerance) >= SIGHT)
    }

    /// The fewest runs a side, made separately, of which the same holds; `None` above a thousand.
    pub fn needed_runs(between_runs: f64, tolerance: Tolerance) -> Option<usize> {
        (2..=MOST).find(|n| Self::of_runs(*n, between_runs).not_worse(tolerance) >= SIGHT)
    }

    /// Probability that an estimate which is `gap` beyond a limit, in truth, lies beyond it with its whole interval.
    fn clears(self, gap: f64) -> f64 {
        if self.error == 0.0 {
            return if gap > 0.0 { 1.0 } else { 0.0 };
        }
        let t = t_upper(self.one_sided, self.df);
        // Simpson's rule over the estimated standard deviation as a multiple of the true one, whose square is χ² over its degrees
        // of freedom; the density is normalised by its own integral.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TOLERANCE: Tolerance = Tolerance(0.03);

    /// At a coefficient of variation of 4 %; the figures are those of simulations of 20,000 comparisons, to their second digit.
    #[test]
    fn power_is_that_of_simulated_comparisons() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 0.015, "{a} {b}");
        let four = Power::of_blocks(4, 0.04);
        close(four.worse(0.03, TOLERANCE), 0.025);
        close(four.worse(0.06, TOLERANCE), 0.19);
        close(four.worse(0.12, TOLERANCE), 0.89);
        close(Power::of_blocks(12, 0.04).not_worse(TOLERANCE), 0.66);
        close(Power::of_blocks(16, 0.04).not_worse(TOLERANCE), 0.80);
        // A true change of 3 % with the usual test of no change.
        let nothing = Tolerance(0.0);
        close(Power::of_runs(10, 0.04).worse(0.03, nothing), 0.36);
        close(Power::of_runs(28, 0.04).worse(0.03, nothing), 0.80);
    }

    #[test]
    fn what_could_have_been_seen_is_seen_in_four_of_five() {
        for blocks in [4, 12, 28] {
            let power = Power::of_blocks(blocks, 0.04);
            let loss = power.could_have_seen(TOLERANCE).unwrap();
            assert!(loss > 0.03 && (power.worse(loss, TOLERANCE) - SIGHT).abs() < 1e-6);
        }
        assert!((Power::of_blocks(4, 0.0).could_have_seen(TOLERANCE).unwrap() - 0.03).abs() < 1e-9);
        assert_eq!(Power::of_blocks(2, 5.0).could_have_seen(TOLERANCE), None);
        assert!((15..=16).contains(&Power::needed_blocks(0.04, TOLERANCE, 4).unwrap()));
        assert_eq!(Power::needed_blocks(0.0, TOLERANCE, 4), Some(4));
        assert_eq!(Power::needed_blocks(5.0, TOLERANCE, 4), None);
    }
}
