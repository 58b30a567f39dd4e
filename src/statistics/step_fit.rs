//! A robust fit of a step and a linear trend to runs in the order of time: the step is the difference of B from A, the trend
//! a drift of the machine that both have in common.
//!
//! It is Huber's M-estimate with his Proposal 2 for the scale (Huber 1964, 1973): least squares, in which a residual counts
//! at most as one of 1.345 standard deviations. The interval is Student's.

use super::distributions::{t_two_sided, t_upper};
use super::sample::Estimate;

/// A run of one side: its position in time, and the value that is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimedValue {
    /// The position in time.
    pub(super) time: f64,
    pub(super) value: f64,
}

/// The step of B against A, with its interval and its test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StepFit {
    /// The step with its interval.
    pub(super) estimate: Estimate,
    /// The standard error of the step.
    pub(super) error: f64,
    /// Its degrees of freedom.
    pub(super) df: f64,
    /// The two-sided p-value for the null hypothesis of no step.
    pub(super) p: f64,
}

/// The residual, in standard deviations, above which a run counts less.
const LIMIT: f64 = 1.345;

/// The mean square of standard normal values that are cut at ± [`LIMIT`].
const MEAN_SQUARE: f64 = 0.710_164_5;

/// Fits the step between A and B, and if `has_trend` the trend that they have in common. Returns `None` unless each side has
/// two runs, and there are more runs than parameters.
pub(super) fn step_fit(a: &[TimedValue], b: &[TimedValue], has_trend: bool, level: f64) -> Option<StepFit> {
    let (n, parameters) = (a.len() + b.len(), 2 + usize::from(has_trend));
    if a.len() < 2 || b.len() < 2 || n <= parameters {
        return None;
    }
    let df = (n - parameters) as f64;
    let fit = |weight: &dyn Fn(f64) -> f64, before: &Lines| {
        Lines::fit([a, b], has_trend, &|run, side| weight(before.residual(run, side)))
    };
    let mut lines = fit(&|_| 1.0, &Lines::default());
    let residuals = |lines: &Lines| -> Vec<f64> {
        let of =
            |runs: &[TimedValue], side: usize| runs.iter().map(|run| lines.residual(run, side)).collect::<Vec<f64>>();
        [of(a, 0), of(b, 1)].concat()
    };
    let mut scale = (squares(&residuals(&lines), f64::INFINITY) / df).sqrt();
    // It converges within some twenty steps. The scale of residuals that are 0 but for a few falls towards 0.
    for _ in 0..100 {
        let before = scale;
        scale = (squares(&residuals(&lines), LIMIT * scale) / df / MEAN_SQUARE).sqrt();
        if scale == 0.0 || (scale / before - 1.0).abs() < 1e-9 {
            break;
        }
        lines = fit(&|residual| (LIMIT * scale / residual.abs()).min(1.0), &lines);
    }
    let residuals = residuals(&lines);
    let inside = residuals.iter().filter(|residual| residual.abs() <= LIMIT * scale).count() as f64 / n as f64;
    let correction = 1.0 + parameters as f64 / n as f64 * (1.0 - inside) / inside;
    let deviation = (squares(&residuals, LIMIT * scale) / df).sqrt();
    let unweighted = Lines::fit([a, b], has_trend, &|_, _| 1.0);
    let error = if deviation > 0.0 { correction / inside * deviation * unweighted.step_variance.sqrt() } else { 0.0 };
    let (step, is_exact) = (lines.step(), error == 0.0);
    let half = if is_exact { 0.0 } else { t_upper((1.0 - level) / 2.0, df) * error };
    let p = match (is_exact, step == 0.0) {
        (false, _) => t_two_sided(step / error, df),
        (true, true) => 1.0,
        (true, false) => 0.0,
    };
    Some(StepFit { estimate: Estimate::around(step, half), error, df, p })
}

/// Returns the sum of the squares of residuals, of which none counts as more than `most`.
fn squares(residuals: &[f64], most: f64) -> f64 {
    residuals.iter().map(|residual| residual.abs().min(most).powi(2)).sum()
}

/// Two parallel lines over time, one of each side.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    /// The value of each at the time 0.
    starts: [f64; 2],
    slope: f64,
    /// The variance of the step, if the values have a variance of 1 and all weights are 1.
    step_variance: f64,
}

impl Lines {
    /// Fits the lines by weighted least squares.
    fn fit(sides: [&[TimedValue]; 2], has_trend: bool, weight: &dyn Fn(&TimedValue, usize) -> f64) -> Self {
        let means = [0, 1].map(|side| {
            let of = |of: &dyn Fn(&TimedValue) -> f64| {
                sides[side].iter().map(|run| weight(run, side) * of(run)).sum::<f64>()
            };
            let sum = of(&|_| 1.0);
            (of(&|run| run.time) / sum, of(&|run| run.value) / sum, sum)
        });
        // The times and the values of a side about their means: what they have in common is the trend.
        let (mut products, mut squares) = (0.0, 0.0);
        for (side, (time, value, _)) in means.into_iter().enumerate() {
            for run in sides[side] {
                let weight = weight(run, side) * (run.time - time);
                products += weight * (run.value - value);
                squares += weight * (run.time - time);
            }
        }
        let has_trend = has_trend && squares > 0.0;
        let slope = if has_trend { products / squares } else { 0.0 };
        let apart = if has_trend { (means[1].0 - means[0].0).powi(2) / squares } else { 0.0 };
        Self {
            starts: means.map(|(time, value, _)| value - slope * time),
            slope,
            step_variance: means.iter().map(|(.., sum)| 1.0 / sum).sum::<f64>() + apart,
        }
    }

    fn residual(&self, run: &TimedValue, side: usize) -> f64 {
        run.value - self.starts[side] - self.slope * run.time
    }

    fn step(&self) -> f64 {
        self.starts[1] - self.starts[0]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn timed(values: &[f64], first: usize) -> Vec<TimedValue> {
        values.iter().enumerate().map(|(n, value)| TimedValue { time: (first + n) as f64, value: *value }).collect()
    }

    fn fit(a: &[f64], b: &[f64], has_trend: bool) -> Option<StepFit> {
        step_fit(&timed(a, 0), &timed(b, a.len()), has_trend, 0.95)
    }

    /// The step and its standard error by `RLM` of statsmodels 0.14, with `HuberT(1.345)`, `HuberScale(1.345)` and `H1`.
    #[test]
    fn fits_are_those_of_statsmodels() {
        let slow: [f64; 10] = [-0.032, -0.042, 0.012, -0.64, 0.09, -0.04, -0.055, -0.054, 0.019, 0.065];
        let two_slow: [f64; 14] =
            [0.011, -0.042, -0.023, -0.603, 0.039, -0.031, 0.043, 0.007, -0.754, -0.05, -0.052, 0.007, -0.01, -0.024];
        let normal: [f64; 20] = [
            0.016, 0.038, -0.055, 0.006, -0.018, 0.019, -0.02, 0.038, 0.041, 0.035, -0.089, -0.058, -0.08, -0.086,
            -0.017, -0.065, 0.031, 0.018, -0.085, 0.011,
        ];
        for (values, n, has_trend, step, error) in [
            (&slow[..], 5, true, -0.148_243_41, 0.051_310_52),
            (&slow, 5, false, 0.007_666_67, 0.055_382_84),
            (&two_slow, 8, true, -0.107_366_54, 0.053_203_64),
            (&two_slow, 8, false, -0.029_970_30, 0.025_454_87),
            (&normal, 10, true, -0.117_477_45, 0.035_551_30),
            (&normal, 10, false, -0.053_354_97, 0.019_801_48),
        ] {
            let found = fit(&values[..n], &values[n..], has_trend).unwrap();
            assert!((found.estimate.value - step).abs() < 1e-7 && (found.error - error).abs() < 1e-7, "{found:?}");
        }
    }

    #[test]
    fn a_trend_without_noise_is_no_step() {
        let line: Vec<f64> = (0..10).map(|n| 3.0 + 0.5 * f64::from(n)).collect();
        let found = fit(&line[..5], &line[5..], true).unwrap();
        assert!(found.estimate.value.abs() < 1e-9 && found.error < 1e-9, "{found:?}");
        let found = fit(&[2.0; 5], &[3.0; 5], true).unwrap();
        assert!((found.estimate.low - 1.0).abs() < 1e-9 && (found.estimate.high - 1.0).abs() < 1e-9, "{found:?}");
        let same = fit(&[2.0; 5], &[2.0; 5], false).unwrap();
        assert_eq!((same.p, same.error), (1.0, 0.0));
    }

    #[test]
    fn a_fit_needs_more_runs_than_parameters() {
        let of = |n: usize, m: usize, has_trend: bool| {
            fit(&[1.0, 1.1, 1.3][..n], &[2.0, 2.2, 2.1][..m], has_trend).is_some()
        };
        assert_eq!([of(1, 3, true), of(3, 1, false), of(2, 2, true), of(2, 2, false)], [false, false, true, true]);
        assert_eq!((of(0, 0, true), fit(&[1.0, 1.1], &[2.0, 2.2], true).unwrap().df), (false, 1.0));
    }
}
