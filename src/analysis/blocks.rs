//! Blocks of four runs, in the order A B B A or B A A B: a drift that is linear within a block cancels.
//!
//! The observation of a block is the mean of its two log ratios B over A. Student's t on blocks has its nominal level for runs that
//! are independent, that depend on the one before, and that drift; a t on runs has up to fourteen times that level.

use super::distributions::{binomial, t_two_sided, t_upper};
use super::sample::{Estimate, SampleSummary};

/// The observations of a block, each arm in the order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunBlock {
    /// The two of A.
    pub a: [f64; 2],
    /// The two of B. The runs of equal place follow one another.
    pub b: [f64; 2],
}

/// What blocks say of the ratio B over A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockAnalysis {
    /// B over A, with its interval from the t on blocks.
    pub ratio: Estimate,
    /// The statistic.
    pub t: f64,
    /// Blocks less one.
    pub df: f64,
    /// Two-sided, for a ratio of 1.
    pub p: f64,
    /// The interval by signs of pairs, which assumes no distribution; `None` if there are too few pairs for the level.
    pub sign: Option<Estimate>,
    /// Standard deviation between runs of one arm in one block, of logarithms.
    pub between_runs: f64,
}

/// A look at an experiment that goes on until it is clear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InterimLook {
    /// After so many blocks.
    pub blocks: usize,
    /// Probability of error on each side.
    pub one_sided: f64,
}

/// The looks of a sequential comparison. Their levels add up to 2.5 % on each side.
pub const SEQUENTIAL: [InterimLook; 3] = [
    InterimLook { blocks: 6, one_sided: 0.005 },
    InterimLook { blocks: 12, one_sided: 0.0075 },
    InterimLook { blocks: 24, one_sided: 0.0125 },
];

/// Analyses blocks at confidence `level` (0.95). `None` with fewer than two, or if an observation is not positive.
pub fn analyse(blocks: &[RunBlock], level: f64) -> Option<BlockAnalysis> {
    let pairs = log_ratios(blocks)?;
    let means: Vec<f64> = pairs.iter().map(|[first, second]| f64::midpoint(*first, *second)).collect();
    let sample = SampleSummary::of(&means).filter(|sample| sample.n > 1)?;
    let df = (sample.n - 1) as f64;
    let (estimate, t) = student(&sample, level);
    let all: Vec<f64> = pairs.iter().flatten().copied().collect();
    Some(BlockAnalysis {
        ratio: estimate.map(f64::exp),
        t,
        df,
        p: t_two_sided(t, df),
        sign: by_signs(&all, level).map(|estimate| estimate.map(f64::exp)),
        between_runs: between_runs(blocks),
    })
}

/// Whether a negative control moved: the ratio of its pairs with an interval of confidence `level`, and two-sided p. `None` with
/// fewer than two pairs, or if an observation is not positive.
pub fn moved(control: &[RunBlock], level: f64) -> Option<(Estimate, f64)> {
    let pairs: Vec<f64> = log_ratios(control)?.into_iter().flatten().collect();
    let sample = SampleSummary::of(&pairs).filter(|sample| sample.n > 1)?;
    let (estimate, t) = student(&sample, level);
    Some((estimate.map(f64::exp), t_two_sided(t, (sample.n - 1) as f64)))
}

fn log_ratios(blocks: &[RunBlock]) -> Option<Vec<[f64; 2]>> {
    let log = |b: f64, a: f64| (a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()).then(|| (b / a).ln());
    blocks.iter().map(|block| Some([log(block.b[0], block.a[0])?, log(block.b[1], block.a[1])?])).collect()
}

fn student(sample: &SampleSummary, level: f64) -> (Estimate, f64) {
    let error = sample.standard_error();
    let half = if error == 0.0 { 0.0 } else { t_upper((1.0 - level) / 2.0, (sample.n - 1) as f64) * error };
    let t = match (sample.mean, error) {
        (0.0, _) => 0.0,
        (mean, 0.0) => f64::INFINITY.copysign(mean),
        (mean, error) => mean / error,
    };
    (Estimate::around(sample.mean, half), t)
}

/// The median with the interval between the order statistics that hold it with at least `level`.
fn by_signs(values: &[f64], level: f64) -> Option<Estimate> {
    let n = values.len() as u64;
    let below = (0..n / 2).take_while(|k| 2.0 * binomial(*k, n) <= 1.0 - level).count();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let low = below.checked_sub(1)?;
    Some(Estimate { value: super::median(values)?, low: sorted[low], high: sorted[values.len() - 1 - low] })
}

/// Pooled over arms and blocks; one degree of freedom each.
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
        // A rate that grows by a tenth from run to run, in logarithms; B is twice A.
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
    fn the_sign_interval_leaves_as_many_out_as_it_may() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        // P(X <= 1) of 10 is 11/1024, of each side; P(X <= 2) is too much.
        let interval = by_signs(&values, 0.95).unwrap();
        assert_eq!((interval.value, interval.low, interval.high), (5.5, 2.0, 9.0));
        assert_eq!(by_signs(&values[..5], 0.95), None);
    }

    #[test]
    fn equal_runs_have_a_ratio_of_one() {
        let analysis = analyse(&[RunBlock { a: [3.0, 3.0], b: [3.0, 3.0] }; 4], 0.95).unwrap();
        assert_eq!((analysis.p, analysis.ratio.low, analysis.ratio.high, analysis.between_runs), (1.0, 1.0, 1.0, 0.0));
        assert!((SEQUENTIAL.iter().map(|look| look.one_sided).sum::<f64>() - 0.025).abs() < 1e-12);
    }
}
