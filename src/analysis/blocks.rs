//! The analysis of blocks of four runs in the order A B B A or B A A B. A drift that is linear within a block cancels.
//!
//! The observation of a block is the mean of its two log ratios of B to A. A t-test on blocks keeps its nominal level
//! when runs are independent, when they are autocorrelated, and when they drift; a t-test on runs has up to fourteen
//! times the nominal level.

use super::distributions::{binomial, t_two_sided, t_upper};
use super::sample::{Estimate, SampleSummary};

/// The values of the runs of a block, those of each arm in the order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunBlock {
    /// The two runs of A.
    pub a: [f64; 2],
    /// The two runs of B. The runs of A and B with the same index are adjacent in time.
    pub b: [f64; 2],
}

/// The estimate of the ratio of B to A from blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockAnalysis {
    /// The ratio of B to A, with its interval from the t-test on blocks.
    pub ratio: Estimate,
    /// The t statistic.
    pub t: f64,
    /// The degrees of freedom: the number of blocks minus one.
    pub df: f64,
    /// The two-sided p-value for the null hypothesis of a ratio of 1.
    pub p: f64,
    /// The median ratio of the pairs with its sign-test interval, which assumes no distribution. `None` when there are
    /// too few pairs for the level.
    pub sign: Option<Estimate>,
    /// The standard deviation of the logarithms of runs of one arm within one block.
    pub between_runs: f64,
}

/// An interim look of a sequential experiment, which ends as soon as its verdict is clear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterimLook {
    /// The number of blocks after which the look is taken.
    pub blocks: usize,
    /// The one-sided error probability of this look.
    pub one_sided: f64,
}

/// The looks of a sequential comparison. Their one-sided error probabilities add up to 2.5 %.
pub const SEQUENTIAL: [InterimLook; 3] = [
    InterimLook { blocks: 6, one_sided: 0.005 },
    InterimLook { blocks: 12, one_sided: 0.0075 },
    InterimLook { blocks: 24, one_sided: 0.0125 },
];

/// Analyses blocks at confidence `level` (0.95). Returns `None` when there are fewer than two blocks, or when a value
/// is not positive and finite.
pub fn analyse(blocks: &[RunBlock], level: f64) -> Option<BlockAnalysis> {
    let pairs = log_ratios(blocks)?;
    let means: Vec<f64> = pairs.iter().map(|[first, second]| f64::midpoint(*first, *second)).collect();
    let sample = SampleSummary::of(&means).filter(|sample| sample.n > 1)?;
    let df = (sample.n - 1) as f64;
    let (estimate, t) = t_interval(&sample, level);
    let all: Vec<f64> = pairs.iter().flatten().copied().collect();
    Some(BlockAnalysis {
        ratio: estimate.map(f64::exp),
        t,
        df,
        p: t_two_sided(t, df),
        sign: sign_interval(&all, level).map(|estimate| estimate.map(f64::exp)),
        between_runs: between_runs(blocks),
    })
}

/// Tests whether a negative control changed. Returns the ratio of its pairs with its interval at confidence `level`,
/// and the two-sided p-value. Returns `None` when there are fewer than two pairs, or when a value is not positive and
/// finite.
pub fn control_change(control: &[RunBlock], level: f64) -> Option<(Estimate, f64)> {
    let pairs: Vec<f64> = log_ratios(control)?.into_iter().flatten().collect();
    let sample = SampleSummary::of(&pairs).filter(|sample| sample.n > 1)?;
    let (estimate, t) = t_interval(&sample, level);
    Some((estimate.map(f64::exp), t_two_sided(t, (sample.n - 1) as f64)))
}

/// Returns the log ratios of B to A of the two pairs of each block, or `None` when a value is not positive and finite.
fn log_ratios(blocks: &[RunBlock]) -> Option<Vec<[f64; 2]>> {
    let log = |b: f64, a: f64| (a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()).then(|| (b / a).ln());
    blocks.iter().map(|block| Some([log(block.b[0], block.a[0])?, log(block.b[1], block.a[1])?])).collect()
}

/// Returns the mean of a sample with its t interval, and the t statistic for the null hypothesis of a mean of 0.
fn t_interval(sample: &SampleSummary, level: f64) -> (Estimate, f64) {
    let error = sample.standard_error();
    let half = if error == 0.0 { 0.0 } else { t_upper((1.0 - level) / 2.0, (sample.n - 1) as f64) * error };
    let t = match (sample.mean, error) {
        (0.0, _) => 0.0,
        (mean, 0.0) => f64::INFINITY.copysign(mean),
        (mean, error) => mean / error,
    };
    (Estimate::around(sample.mean, half), t)
}

/// Returns the median with its sign-test interval: the narrowest pair of symmetric order statistics with a confidence
/// of at least `level`. Returns `None` when there are too few values.
fn sign_interval(values: &[f64], level: f64) -> Option<Estimate> {
    let n = values.len() as u64;
    let below = (0..n / 2).take_while(|k| 2.0 * binomial(*k, n) <= 1.0 - level).count();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let low = below.checked_sub(1)?;
    Some(Estimate { value: super::median(values)?, low: sorted[low], high: sorted[values.len() - 1 - low] })
}

/// Returns the standard deviation of log values within arm and block, pooled over both. Each pair of runs contributes
/// one degree of freedom.
fn between_runs(blocks: &[RunBlock]) -> f64 {
    let squares = blocks.iter().flat_map(|block| [block.a, block.b]).map(|[x, y]| (x / y).ln().powi(2) / 2.0);
    (squares.sum::<f64>() / (2 * blocks.len()) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_linear_drift_cancels() {
        // The logarithm of the rate grows by 0.1 with each run. B is twice A.
        let at = |i: i32| (0.1 * f64::from(i)).exp();
        let abba = RunBlock { a: [at(0), at(3)], b: [2.0 * at(1), 2.0 * at(2)] };
        let baab = RunBlock { a: [at(5), at(6)], b: [2.0 * at(4), 2.0 * at(7)] };
        let analysis = analyse(&[abba, baab], 0.95).unwrap();
        assert!((analysis.ratio.value - 2.0).abs() < 1e-12 && analysis.ratio.high - analysis.ratio.low < 1e-9);
        assert_eq!(analysis.sign, None, "four pairs are too few");
        assert!(analyse(&[abba], 0.95).is_none());
        assert!(analyse(&[RunBlock { a: [0.0, 1.0], b: [1.0, 1.0] }; 3], 0.95).is_none());
    }

    #[test]
    fn the_sign_interval_is_as_narrow_as_the_level_allows() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        // P(X <= 1) for n = 10 is 11/1024 on each side; P(X <= 2) exceeds 2.5 %.
        let interval = sign_interval(&values, 0.95).unwrap();
        assert_eq!((interval.value, interval.low, interval.high), (5.5, 2.0, 9.0));
        assert_eq!(sign_interval(&values[..5], 0.95), None);
    }

    #[test]
    fn equal_runs_have_a_ratio_of_one() {
        let analysis = analyse(&[RunBlock { a: [3.0, 3.0], b: [3.0, 3.0] }; 4], 0.95).unwrap();
        assert_eq!((analysis.p, analysis.ratio.low, analysis.ratio.high, analysis.between_runs), (1.0, 1.0, 1.0, 0.0));
        assert!((SEQUENTIAL.iter().map(|look| look.one_sided).sum::<f64>() - 0.025).abs() < 1e-12);
    }
}
