//! The summary of a sample, and estimates with confidence intervals.

use serde::{Deserialize, Serialize};

/// The summary of a sample of observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampleSummary {
    /// The number of observations.
    pub n: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample variance, with n − 1 in the denominator; 0 for a single observation.
    pub variance: f64,
    /// The median; the mean of the two middle values if their number is even.
    pub median: f64,
}

/// An estimated value with its confidence interval. The confidence level is given by the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Creates an estimate with the symmetric interval `value` ± `half`.
    pub fn around(value: f64, half: f64) -> Self {
        Self { value, low: value - half, high: value + half }
    }

    /// The upper half of the interval divided by the absolute value. It is not finite if there is no interval.
    pub fn relative(self) -> f64 {
        // The lower half may be cut at 0.
        (self.high - self.value) / self.value.abs()
    }

    /// Applies an increasing function to the value and both ends, such as `exp` to an estimate of a logarithm.
    #[must_use]
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { value: rising(self.value), low: rising(self.low), high: rising(self.high) }
    }

    /// Converts an estimate of a logarithm to the ratio. An interval that excludes neither a hundredth nor a hundredfold says
    /// nothing: its ends are NaN. So they are if one is too great or too small for a number; then the value is, too, if it is
    /// itself.
    #[must_use]
    pub(super) fn ratio_of_logarithm(self) -> Self {
        const GREAT: f64 = 100.0;
        let ratio = self.map(f64::exp);
        let is_number = |ratio: f64| ratio > 0.0 && ratio.is_finite();
        let value = if is_number(ratio.value) { ratio.value } else { f64::NAN };
        let is_known = is_number(ratio.low) && is_number(ratio.high) && !value.is_nan();
        match is_known && (ratio.low > 1.0 / GREAT || ratio.high < GREAT) {
            true => ratio,
            false => Self { value, low: f64::NAN, high: f64::NAN },
        }
    }

    /// The estimate of a figure that is never negative, such as a rate or a time: its interval ends at 0 at the lowest.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { low: if self.low.is_finite() { self.low.max(0.0) } else { self.low }, ..self }
    }

    /// The ends of the interval. `None` if there is none, as for a single run.
    pub fn ends(self) -> Option<(f64, f64)> {
        (self.low.is_finite() && self.high.is_finite()).then_some((self.low, self.high))
    }
}

impl SampleSummary {
    /// Summarises observations. Returns `None` when there is none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        // The sum of equal values is rounded, so that their mean would differ from them and their variance from 0.
        let are_equal = values.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq());
        let mean = match values.iter().sum::<f64>() / n as f64 {
            _ if are_equal => values[0],
            mean if mean.is_finite() => mean,
            _ => values.iter().map(|value| value / n as f64).sum(),
        };
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let variance = if n > 1 { squares / (n - 1) as f64 } else { 0.0 };
        Some(Self { n: n as u64, mean, variance, median: median(values)? })
    }

    /// Returns the standard error of the mean, for independent observations.
    pub(crate) fn standard_error(&self) -> f64 {
        (self.variance / self.n as f64).sqrt()
    }
}

/// Returns the median: the middle value, or the mean of the two middle values. Returns `None` when there is no value.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    Some(if n % 2 == 1 { upper } else { f64::midpoint(sorted[n / 2 - 1], upper) })
}

/// The distance from the median above which a value is an outlier, in standard deviations that are estimated by the
/// median absolute deviation: the limit of hyperfine.
const OUTLIER_DEVIATIONS: f64 = 10.0;
/// The factor between the median absolute deviation and the standard deviation of normally distributed values.
const DEVIATION_OF_NORMAL: f64 = 1.4826;
/// A value that differs from the median by a smaller share is no outlier, however close the others are to each other.
const MIN_OUTLYING: f64 = 0.1;
/// The number of values from which on the median absolute deviation says something about their spread.
const MIN_VALUES: usize = 7;

/// Returns the positions of the values that are far from the others. Seven normally distributed values with a standard
/// deviation of 15 % have one in about 1 % of the samples, ten values in 0.2 % (a test simulates both).
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let is_usable = |middle: &f64| values.len() >= MIN_VALUES && *middle != 0.0;
    let Some(middle) = median(values).filter(is_usable) else { return Vec::new() };
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let spread = median(&distances).unwrap_or_default() * DEVIATION_OF_NORMAL;
    let limit = (OUTLIER_DEVIATIONS * spread).max(MIN_OUTLYING * middle.abs());
    (0..values.len()).filter(|n| distances[*n] > limit).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]
    use super::*;

    #[test]
    fn equal_values_have_no_variance() {
        for values in [&[0.1; 6][..], &[0.1; 3], &[1.0 / 3.0; 7]] {
            let found = SampleSummary::of(values).unwrap();
            assert_eq!((found.mean, found.variance), (values[0], 0.0));
        }
    }

    #[test]
    fn the_interval_of_a_figure_ends_at_0_and_a_single_run_has_none() {
        assert_eq!(Estimate::around(5.0, 2.0).from_zero().ends(), Some((3.0, 7.0)));
        assert_eq!(Estimate::around(5.0, 8.0).from_zero().ends(), Some((0.0, 13.0)));
        assert_eq!(Estimate::around(5.0, f64::INFINITY).from_zero().ends(), None);
        assert_eq!(Estimate::around(5.0, f64::NAN).from_zero().ends(), None);
    }

    #[test]
    fn a_value_far_from_the_others_is_an_outlier() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.0, 3.0, 10.2, 10.1]), [4]);
        assert_eq!(outliers(&[1.0, 30.0, 1.1, 0.9, 1.05, 1.0, 1.1]), [1]);
        // Not one of a wide sample, one of few values, one that is near although all others are equal, or one beside
        // zeros, of which no share can be taken.
        let wide: &[f64] = &[10.0, 12.0, 8.0, 9.0, 3.0, 11.0, 13.0];
        let few: &[f64] = &[10.0, 10.1, 9.9, 3.0, 10.0, 10.2];
        let near: &[f64] = &[10.0, 10.0, 10.0, 10.0, 10.9, 10.0, 10.0];
        for values in [wide, few, near, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1], &[]] {
            assert_eq!(outliers(values), Vec::<usize>::new(), "{values:?}");
        }
    }

    #[test]
    fn a_summary_has_the_textbook_values() {
        let sample = SampleSummary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((sample.n, sample.mean, sample.median), (8, 5.0, 4.5));
        assert!((sample.variance - 32.0 / 7.0).abs() < 1e-12);
        assert_eq!(SampleSummary::of(&[]), None);
        assert_eq!(SampleSummary::of(&[3.0]).unwrap().variance, 0.0);
        // The median of 1 to 11 is 6.
        assert_eq!(median(&(1..=11).rev().map(f64::from).collect::<Vec<_>>()), Some(6.0));
    }
}
