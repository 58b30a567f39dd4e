//! Comparison of two independent samples: Welch's t-test, and Holm's correction for multiple tests.

use super::distributions::{f_tails, t_two_sided, t_upper};
use super::sample::{Estimate, SampleSummary};
use super::verdict::Direction;

/// The result of a t-test of two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TwoSampleTest {
    /// The t statistic.
    pub t: f64,
    /// The degrees of freedom.
    pub df: f64,
    /// The two-sided p-value.
    pub p: f64,
    /// The estimate that is tested, with its interval.
    pub estimate: Estimate,
}

/// Performs Welch's t-test of B against A with an interval at confidence `level` (0.95). The estimate is the difference
/// of the means, B minus A. Returns `None` when a sample has fewer than two observations.
///
/// df = (a + b)² / (a²/(nA − 1) + b²/(nB − 1)), where a and b are the squared standard errors (Welch 1947).
pub fn welch(a: &[f64], b: &[f64], level: f64) -> Option<TwoSampleTest> {
    let (sa, sb) = (SampleSummary::of(a)?, SampleSummary::of(b)?);
    if sa.n < 2 || sb.n < 2 {
        return None;
    }
    let (estimate, t, df) = welch_interval(&sa, &sb, level);
    Some(TwoSampleTest { t, df, p: t_two_sided(t, df), estimate })
}

/// Performs Welch's t-test of the logarithms. The estimate is the ratio of the geometric mean of B to that of A.
/// Returns `None` also when an observation is not positive: then there is no ratio.
pub fn welch_ratio(a: &[f64], b: &[f64], level: f64) -> Option<TwoSampleTest> {
    let found = welch(&logs(a)?, &logs(b)?, level)?;
    Some(TwoSampleTest { estimate: found.estimate.ratio_of_logarithm(), ..found })
}

/// Returns the logarithms of observations. `None` if one is not positive and finite.
pub(super) fn logs(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|v| (*v > 0.0 && v.is_finite()).then(|| v.ln())).collect()
}

/// Estimates the ratio of B to A from several pairs of samples, such as one for each level of another factor: the
/// geometric mean of the ratios of the pairs. Every pair has the same weight. The ends of the interval are NaN if a
/// sample has fewer than two observations. Returns `None` without a pair, and if a sample is empty or has an observation
/// that is not positive.
pub fn mean_ratio(pairs: &[(&[f64], &[f64])], level: f64) -> Option<Estimate> {
    let summary = |values: &[f64]| SampleSummary::of(&logs(values)?);
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| Some((summary(a)?, summary(b)?))).collect::<Option<_>>()?;
    if pairs.is_empty() {
        return None;
    }
    let (estimate, ..) = mean_difference(&pairs, level);
    Some(estimate.ratio_of_logarithm())
}

/// Estimates the ratio of B to A from several pairs of samples, as [`mean_ratio`] does. The observations at one position of
/// all samples were made in one block of runs, and what they have in common, such as a drift of the machine, cancels: each
/// block gives the mean of the log ratios of its pairs. The pairs of a block need not be independent, as those on one file
/// system that was made for the block. Returns `None` without a pair, if the samples do not have the same number of
/// observations and at least two, and if an observation is not positive.
///
/// With one pair it is the paired t-test of the logarithms.
pub fn ratio_in_blocks(pairs: &[(&[f64], &[f64])], level: f64) -> Option<Estimate> {
    Some(test_in_blocks(pairs, level)?.estimate)
}

/// Performs the paired t-test of the logarithms of B against A. The observations at one position were made in one block of
/// runs. The estimate is the ratio of the geometric means. Returns `None` as [`ratio_in_blocks`] does.
pub fn paired_ratio(a: &[f64], b: &[f64], level: f64) -> Option<TwoSampleTest> {
    test_in_blocks(&[(a, b)], level)
}

fn test_in_blocks(pairs: &[(&[f64], &[f64])], level: f64) -> Option<TwoSampleTest> {
    let pairs: Vec<Vec<f64>> = pairs.iter().map(|(a, b)| log_ratios(a, b)).collect::<Option<_>>()?;
    let blocks = pairs.first()?.len();
    if pairs.iter().any(|ratios| ratios.len() != blocks) {
        return None;
    }
    let of_block = |block: usize| pairs.iter().map(|ratios| ratios[block]).sum::<f64>() / pairs.len() as f64;
    let sample = SampleSummary::of(&(0..blocks).map(of_block).collect::<Vec<f64>>()).filter(|sample| sample.n > 1)?;
    let (estimate, t, df) = interval_of_mean(sample.mean, &[sample], 1, level);
    Some(TwoSampleTest { t, df, p: t_two_sided(t, df), estimate: estimate.ratio_of_logarithm() })
}

/// Returns the logarithms of the ratios of B to A in each block. Returns `None` unless both have the same number of
/// observations, all of them positive.
pub(super) fn log_ratios(a: &[f64], b: &[f64]) -> Option<Vec<f64>> {
    let (a, b) = (logs(a)?, logs(b)?);
    (a.len() == b.len()).then(|| a.iter().zip(&b).map(|(a, b)| b - a).collect())
}

/// Tests whether the ratio of B to A is the same in all of several pairs of samples, such as at each level of another
/// factor: Welch's analysis of variance (Welch 1951) of the logarithms. `in_blocks` says that the observations at one
/// position of a pair were made in one block. Returns the p-value for the null hypothesis of equal ratios. Returns `None`
/// with fewer than two pairs, if a sample has fewer than three observations or one that is not positive, and if a pair
/// does not vary. With fewer observations the test would reject equal ratios too often.
pub fn equal_ratios(pairs: &[(&[f64], &[f64])], in_blocks: bool) -> Option<f64> {
    const MIN_OBSERVATIONS: u64 = 3;
    let part = |(a, b): &(&[f64], &[f64])| {
        if in_blocks {
            let sample = SampleSummary::of(&log_ratios(a, b)?)?;
            let squared = sample.variance / sample.n as f64;
            return (sample.n >= MIN_OBSERVATIONS).then_some((sample.mean, squared, (sample.n - 1) as f64));
        }
        let (a, b) = (SampleSummary::of(&logs(a)?)?, SampleSummary::of(&logs(b)?)?);
        let (estimate, _, df) = welch_interval(&a, &b, 0.95);
        let squared = a.variance / a.n as f64 + b.variance / b.n as f64;
        (a.n.min(b.n) >= MIN_OBSERVATIONS).then_some((estimate.value, squared, df))
    };
    let parts: Vec<(f64, f64, f64)> = pairs.iter().map(part).collect::<Option<_>>()?;
    if parts.len() < 2 || parts.iter().any(|(_, squared, _)| *squared <= 0.0) {
        return None;
    }
    let count = parts.len() as f64;
    let weight: f64 = parts.iter().map(|(_, squared, _)| 1.0 / squared).sum();
    let mean = parts.iter().map(|(mean, squared, _)| mean / squared).sum::<f64>() / weight;
    let between = parts.iter().map(|(of, squared, _)| (of - mean).powi(2) / squared).sum::<f64>() / (count - 1.0);
    let excess: f64 = parts.iter().map(|(_, squared, df)| (1.0 - 1.0 / (squared * weight)).powi(2) / df).sum::<f64>();
    let f = between / (1.0 + 2.0 * (count - 2.0) / (count.powi(2) - 1.0) * excess);
    let df = (count.powi(2) - 1.0) / (3.0 * excess);
    Some(f_tails(f, count - 1.0, df).1)
}

/// Returns the difference of the means, `b` minus `a`, with its interval, the t statistic and the degrees of freedom.
pub(super) fn welch_interval(a: &SampleSummary, b: &SampleSummary, level: f64) -> (Estimate, f64, f64) {
    mean_difference(&[(*a, *b)], level)
}

/// Returns the mean, over pairs of samples, of the difference of their means, with its interval, the t statistic and the
/// degrees of freedom.
fn mean_difference(pairs: &[(SampleSummary, SampleSummary)], level: f64) -> (Estimate, f64, f64) {
    let difference = pairs.iter().map(|(a, b)| b.mean - a.mean).sum::<f64>() / pairs.len() as f64;
    let samples: Vec<SampleSummary> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    interval_of_mean(difference, &samples, pairs.len(), level)
}

/// Returns the interval of a mean of `count` terms, the t statistic and the degrees of freedom. The terms consist of the
/// means of independent samples, so that the variance of their sum is that of these means, with the degrees of freedom of
/// Welch and Satterthwaite: (Σ v)² / Σ (v² / (n − 1)), where v is the squared standard error of each sample.
fn interval_of_mean(mean: f64, samples: &[SampleSummary], count: usize, level: f64) -> (Estimate, f64, f64) {
    if samples.iter().any(|sample| sample.n < 2) {
        return (Estimate { value: mean, low: f64::NAN, high: f64::NAN }, f64::NAN, 0.0);
    }
    let squared = |sample: &SampleSummary| sample.variance / sample.n as f64;
    let sum: f64 = samples.iter().map(squared).sum();
    let error = sum.sqrt() / count as f64;
    if error == 0.0 {
        let t = if mean == 0.0 { 0.0 } else { f64::INFINITY.copysign(mean) };
        return (Estimate::around(mean, 0.0), t, samples.iter().map(|sample| (sample.n - 1) as f64).sum());
    }
    let df = sum.powi(2) / samples.iter().map(|sample| squared(sample).powi(2) / (sample.n - 1) as f64).sum::<f64>();
    (Estimate::around(mean, t_upper((1.0 - level) / 2.0, df) * error), mean / error, df)
}

/// Returns p-values corrected for multiple tests by Holm's method, in the given order. Each is at most 1, and their
/// order by size is that of the uncorrected values.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![0.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((p[at] * (p.len() - rank) as f64).min(1.0));
        corrected[at] = least;
    }
    corrected
}

impl Direction {
    /// Converts the ratio of B to A to a goodness, of which a value above 1 is better. The inverse of an end that is
    /// not positive is NaN.
    pub fn goodness(self, ratio: Estimate) -> Estimate {
        // The ends of an inverted interval of both signs would be in the wrong order.
        let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { f64::NAN };
        match self {
            Self::HigherIsBetter => ratio,
            Self::LowerIsBetter => {
                Estimate { value: inverse(ratio.value), low: inverse(ratio.high), high: inverse(ratio.low) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_textbook_example() {
        // scipy.stats.ttest_ind(b, a, equal_var=False)
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.3];
        let test = welch(&a, &b, 0.95).unwrap();
        assert!((test.t - 2.847_204_456_6).abs() < 1e-9 && (test.df - 27.884_749_467_1).abs() < 1e-9, "{test:?}");
        assert!((test.p - 0.008_185_629_705).abs() < 1e-12, "{}", test.p);
        assert!(welch(&[1.0], &[1.0, 2.0], 0.95).is_none());
        let same = welch_ratio(&[2.0, 2.0], &[2.0, 2.0], 0.95).unwrap();
        assert_eq!((same.p, same.estimate.value), (1.0, 1.0));
    }

    /// The p-value and the interval of a ratio are those of one test.
    #[test]
    fn the_test_of_a_ratio_is_that_of_the_logarithms() {
        let (a, b) = ([1.0, 10.0, 100.0], [3.0, 3.5, 4.0]);
        let logs = |values: [f64; 3]| values.map(f64::ln);
        let (ratio, of_logs) = (welch_ratio(&a, &b, 0.95).unwrap(), welch(&logs(a), &logs(b), 0.95).unwrap());
        assert_eq!((ratio.t, ratio.df, ratio.p), (of_logs.t, of_logs.df, of_logs.p));
        assert!((ratio.estimate.value - of_logs.estimate.value.exp()).abs() < 1e-12);
        assert!((ratio.p - welch(&a, &b, 0.95).unwrap().p).abs() > 0.1);
        for zero in [0.0, -1.0, f64::NAN] {
            assert_eq!(welch_ratio(&[zero, 1.0], &[1.0, 2.0], 0.95), None);
        }
    }

    /// Of one pair it is Welch's interval; the noise of several pairs is averaged.
    #[test]
    fn a_mean_ratio_is_that_of_all_pairs() {
        let (a, b) = ([10.0, 11.0, 12.0], [20.0, 21.0, 25.0]);
        let one = mean_ratio(&[(&a, &b)], 0.95).unwrap();
        assert_eq!(one, welch_ratio(&a, &b, 0.95).unwrap().estimate);
        // The same ratio at another scale.
        let tenfold = |values: [f64; 3]| values.map(|value| value * 10.0);
        let (c, d) = (tenfold(a), tenfold(b));
        let two = mean_ratio(&[(&a, &b), (&c, &d)], 0.95).unwrap();
        assert!((two.value - one.value).abs() < 1e-12 && two.low > one.low && two.high < one.high, "{one:?} {two:?}");
        // 10 and 1/10 cancel out.
        let none = mean_ratio(&[(&a, &tenfold(a)), (&tenfold(b), &b)], 0.95).unwrap();
        assert!((none.value - 1.0).abs() < 1e-12 && none.low < 1.0 && none.high > 1.0, "{none:?}");
        // The standard error and the degrees of freedom of the sum of four means.
        let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
        let variance = |values: &[f64]| SampleSummary::of(&logs(values)).unwrap().variance / 3.0;
        let terms = [variance(&a), variance(&b), variance(&c), variance(&d)];
        let (sum, squares) = (terms.iter().sum::<f64>(), terms.iter().map(|v| v * v / 2.0).sum::<f64>());
        let half = t_upper(0.025, sum * sum / squares) * sum.sqrt() / 2.0;
        assert!(((two.high / two.value).ln() - half).abs() < 1e-12, "{two:?} {half}");
        let single = mean_ratio(&[(&a, &b), (&[1.0], &[3.0])], 0.95).unwrap();
        assert!(single.low.is_nan() && single.value > one.value, "{single:?}");
        assert_eq!(mean_ratio(&[(&a, &[])], 0.95), None);
        assert_eq!(mean_ratio(&[(&a, &[0.0, 1.0])], 0.95), None);
        assert_eq!(mean_ratio(&[], 0.95), None);
    }

    /// Of one pair it is the paired t-test; of several, each block gives the mean of their ratios.
    #[test]
    fn a_ratio_in_blocks_comes_from_the_ratios_of_each_block() {
        let (a, b) = ([10.0, 11.0, 13.0], [20.0, 23.0, 25.0]);
        let one = ratio_in_blocks(&[(&a, &b)], 0.95).unwrap();
        let of_pairs = SampleSummary::of(&[0, 1, 2].map(|n| f64::ln(b[n] / a[n]))).unwrap();
        let half = t_upper(0.025, 2.0) * (of_pairs.variance / 3.0).sqrt();
        let paired = Estimate::around(of_pairs.mean, half).map(f64::exp);
        assert!((one.low - paired.low).abs() < 1e-9 && (one.high - paired.high).abs() < 1e-9, "{one:?} {paired:?}");
        // What the runs of a block have in common changes nothing.
        let drifting = |values: [f64; 3]| [values[0], 2.0 * values[1], 4.0 * values[2]];
        let moved = ratio_in_blocks(&[(&drifting(a), &drifting(b))], 0.95).unwrap();
        assert!((one.low - moved.low).abs() < 1e-9 && (one.high - moved.high).abs() < 1e-9, "{one:?} {moved:?}");
        let (c, d) = ([5.0, 6.0, 9.0], [11.0, 19.0, 16.0]);
        let two = ratio_in_blocks(&[(&a, &b), (&c, &d)], 0.95).unwrap();
        // The mean of both ratios in each block.
        let mean = [0, 1, 2].map(|n| f64::midpoint(f64::ln(b[n] / a[n]), f64::ln(d[n] / c[n])));
        let error = (SampleSummary::of(&mean).unwrap().variance / 3.0).sqrt();
        assert!(((two.high / two.value).ln() - t_upper(0.025, 2.0) * error).abs() < 1e-12, "{two:?} {error}");
        assert_eq!(ratio_in_blocks(&[(&a, &b), (&c[..2], &d[..2])], 0.95), None);
        for (a, b) in [(&a[..], &b[..2]), (&a[..1], &b[..1]), (&[], &[]), (&[0.0, 1.0], &[1.0, 1.0])] {
            assert_eq!(ratio_in_blocks(&[(a, b)], 0.95), None, "{a:?} {b:?}");
        }
        assert_eq!(ratio_in_blocks(&[], 0.95), None);
    }

    /// Of two groups Welch's analysis of variance is Welch's t-test of their difference.
    #[test]
    fn the_test_of_equal_ratios_is_that_of_welch() {
        let (a, b, c, d) = ([10.0, 11.0, 13.0], [20.0, 23.0, 25.0], [5.0, 6.0, 9.0], [11.0, 19.0, 16.0]);
        let ratios = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|n| f64::ln(b[n] / a[n]));
        let of_differences = welch(&ratios(a, b), &ratios(c, d), 0.95).unwrap();
        let in_blocks = equal_ratios(&[(&a, &b), (&c, &d)], true).unwrap();
        assert!((in_blocks - of_differences.p).abs() < 1e-12, "{in_blocks} {of_differences:?}");
        let separate = equal_ratios(&[(&a, &b), (&c, &d)], false).unwrap();
        assert!(separate > 0.0 && separate < 1.0 && (separate - in_blocks).abs() > 1e-3, "{separate}");
        let twice = b.map(|value| 2.0 * value);
        assert!(equal_ratios(&[(&a, &b), (&a, &twice)], false).unwrap() < 0.01);
        for (a, b) in [(&a[..2], &b[..2]), (&[1.0; 3], &[2.0; 3]), (&[0.0, 1.0, 2.0], &b)] {
            assert_eq!(equal_ratios(&[(&c, &d), (a, b)], true), None, "{a:?}");
        }
        assert_eq!(equal_ratios(&[(&a, &b)], true), None);
    }

    #[test]
    fn an_interval_that_is_not_positive_has_no_inverse() {
        let inverse = Direction::LowerIsBetter.goodness(Estimate { value: 1.0, low: -1.0, high: 3.0 });
        assert!(inverse.high.is_nan() && (inverse.value - 1.0).abs() < 1e-12);
        assert!(Direction::LowerIsBetter.goodness(Estimate::around(0.0, 0.0)).low.is_nan());
    }

    #[test]
    fn holm_keeps_the_order_of_p_values() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }
}
