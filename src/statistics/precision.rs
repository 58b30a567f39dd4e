//! Repetition of runs until the mean has a given precision: the confidence interval of the mean, the stopping rule, the
//! predicted number of runs, and the test for drift.

use super::distributions::{t_two_sided, t_upper};
use super::sample::{Estimate, SampleSummary};
use serde::{Deserialize, Serialize};

/// The mean of runs that may be autocorrelated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanEstimate {
    /// The number of runs.
    pub n: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The half-width of the confidence interval of the mean; infinite for fewer than three runs.
    pub half_width: f64,
    /// The lag-1 autocorrelation of the runs, corrected for bias, 0 to 0.99. A negative autocorrelation is treated as
    /// 0.
    pub lag1: f64,
    /// The effective sample size: the number of independent runs whose mean would have the same standard error.
    pub effective_n: f64,
}

impl MeanEstimate {
    /// Returns the half-width divided by the absolute mean.
    pub fn relative(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.mean.abs() }
    }

    pub fn interval(&self) -> Estimate {
        Estimate::around(self.mean, self.half_width)
    }
}

/// Computes the confidence interval of a mean at confidence `level` (0.95), corrected for autocorrelation. Returns
/// `None` when there is no value.
///
/// The lag-1 autocorrelation r has a bias of −(1 + 4ρ)/n (Kendall 1954, Marriott and Pope 1954), so the estimate is ρ =
/// r + (1 + 4r)/n. The effective sample size of a process with this autocorrelation is n(1 − ρ)/(1 + ρ). The t quantile
/// has one degree of freedom fewer. It needs one, so the effective sample size is at least 2. The interval is then at
/// most 9.0 standard deviations on each side (at 0.95), which is too narrow for values that depend on each other even
/// more strongly.
pub fn mean_interval(values: &[f64], level: f64) -> Option<MeanEstimate> {
    let sample = SampleSummary::of(values)?;
    let n = sample.n as f64;
    let lag1 = lag1(values, sample.mean);
    let effective_n = (n * (1.0 - lag1) / (1.0 + lag1)).clamp(2.0_f64.min(n), n);
    let half_width = if sample.n < 3 {
        f64::INFINITY
    } else if sample.variance == 0.0 {
        0.0
    } else {
        t_upper((1.0 - level) / 2.0, effective_n - 1.0) * (sample.variance / effective_n).sqrt()
    };
    Some(MeanEstimate { n: sample.n, mean: sample.mean, half_width, lag1, effective_n })
}

/// Computes the mean of independent runs with its interval at confidence `level`. The interval of a single run is
/// infinite. Returns `None` when there is no value.
pub fn independent_mean(values: &[f64], level: f64) -> Option<Estimate> {
    let sample = SampleSummary::of(values)?;
    let half = match sample.n {
        0 | 1 => f64::INFINITY,
        n => t_upper((1.0 - level) / 2.0, (n - 1) as f64) * sample.standard_error(),
    };
    Some(Estimate::around(sample.mean, half))
}

/// Returns the lag-1 autocorrelation, corrected for bias and limited to 0 to 0.99.
fn lag1(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    let products: f64 = values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    let r = products / squares;
    (r + (1.0 + 4.0 * r) / n).clamp(0.0, 0.99)
}

/// The minimum and the maximum number of runs of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRange {
    pub min: u64,
    pub max: u64,
}

/// The relative half-width of the intervals that is precise enough, if none is given.
pub const DEFAULT_PRECISION: f64 = 0.05;

/// When the intervals of a series of runs are narrow enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrecisionRule {
    /// When they are so twice in succession, corrected for autocorrelation.
    #[default]
    Corrected,
    /// When they are so for the first time, as if the runs were independent: the rule of a published study of snapshots.
    Study,
}

impl PrecisionRule {
    /// True for the rule that a file need not name.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The stopping rule of a series of repeated runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepeatRule {
    /// The permitted numbers of runs.
    pub runs: RunRange,
    /// The relative half-width of the interval that is precise enough (0.05). `None`: the series ends at the maximum
    /// number of runs.
    pub target: Option<f64>,
    /// The confidence level of the interval.
    pub level: f64,
    pub stop: PrecisionRule,
}

wml_text::named! {
    /// The state of a series of repeated runs.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RepeatState {
        /// More runs are needed: the program makes them, or was killed.
        Running = "running or killed";
        /// Every metric was precise enough after two successive runs.
        Converged = "converged";
        /// The requested number of runs is complete, and no precision was requested.
        Complete = "complete";
        /// The maximum number of runs is complete, and a metric is not precise enough.
        NotConverged = "not converged";
        /// A metric has a significant trend over the runs that exceeds the target precision, so that its mean is not
        /// meaningful.
        Drifting = "drifting";
    }
}

impl RepeatState {
    /// Returns the exit status of a series that ended in this state.
    pub fn code(self) -> u8 {
        if matches!(self, Self::Converged | Self::Complete) { 0 } else { 11 }
    }
}

/// The result of a stopping rule for the runs so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// The state of the series.
    pub state: RepeatState,
    /// The index of the metric with the widest relative interval.
    pub worst: usize,
    /// The relative half-width of that interval.
    pub half_width: f64,
    /// The predicted total number of runs, from the widest interval: n (h / target)².
    pub predicted: u64,
}

impl RepeatRule {
    /// Evaluates the rule for the runs so far. `metrics` has one series of values for each metric, all of equal length.
    pub fn evaluate(&self, metrics: &[Vec<f64>]) -> Precision {
        let n = metrics.iter().map(Vec::len).min().unwrap_or(0);
        let (worst, half_width) = self.widest(metrics, n);
        let RunRange { min, max } = self.runs;
        let (state, predicted) = match self.target {
            None if n as u64 >= max => (RepeatState::Complete, max),
            None => (RepeatState::Running, max),
            Some(target) => {
                let needed = if half_width.is_finite() { n as f64 * (half_width / target).powi(2) } else { 0.0 };
                let predicted = (needed.ceil() as u64).clamp(min.max(n as u64 + 1), max.max(n as u64 + 1));
                match half_width < target && self.is_precise(metrics, n, target) {
                    true => (RepeatState::Converged, n as u64),
                    false if n as u64 >= max => (RepeatState::NotConverged, max),
                    false => (RepeatState::Running, predicted),
                }
            }
        };
        // Bonferroni's correction: a series with several metrics has as many chances of a false alarm.
        let significance = TREND_SIGNIFICANCE / metrics.len().max(1) as f64;
        let drifts = |values: &Vec<f64>| {
            let limit = self.target.unwrap_or(DRIFT_LIMIT);
            trend(&values[..n]).is_some_and(|trend| trend.p < significance && trend.change.abs() > limit)
        };
        let state =
            if state != RepeatState::Running && metrics.iter().any(drifts) { RepeatState::Drifting } else { state };
        Precision { state, worst, half_width, predicted }
    }

    /// True if the intervals of all metrics are narrower than `target` after the first `n` runs and after one
    /// run fewer. The latter is not required by the rule of the study, and if the number of runs is fixed.
    pub(super) fn is_precise(&self, metrics: &[Vec<f64>], n: usize, target: f64) -> bool {
        let is_narrow = |n: usize| n as u64 >= self.runs.min && self.widest(metrics, n).1 < target;
        let is_once_enough = self.stop == PrecisionRule::Study || self.runs.min == self.runs.max;
        is_narrow(n) && (is_once_enough || is_narrow(n.saturating_sub(1)))
    }

    /// Returns the index and the relative half-width of the widest interval after the first `n` runs.
    fn widest(&self, metrics: &[Vec<f64>], n: usize) -> (usize, f64) {
        let relative = |values: &[f64]| match self.stop {
            PrecisionRule::Corrected => Some(mean_interval(values, self.level)?.relative()),
            // Equal values have a half-width of 0, even if they are 0.
            PrecisionRule::Study => {
                let found = independent_mean(values, self.level)?;
                Some(if found.high <= found.low { 0.0 } else { found.relative() })
            }
        };
        let of = |values: &Vec<f64>| relative(&values[..n]).unwrap_or(f64::INFINITY);
        let widths = metrics.iter().map(of).enumerate();
        widths.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::INFINITY))
    }
}

/// The relative change over all runs above which a significant trend is a drift, when the rule has no target precision.
const DRIFT_LIMIT: f64 = 0.05;

/// The significance level of the tests for a trend of all metrics together.
const TREND_SIGNIFICANCE: f64 = 0.01;

/// A least-squares line through the values of runs in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The rise from the first run to the last, relative to the mean.
    pub change: f64,
    /// The two-sided p-value for a slope of 0, corrected for autocorrelation in the same way as [`mean_interval`].
    pub p: f64,
}

/// Fits a trend. Returns `None` when there are fewer than five runs or their mean is 0.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let sample = SampleSummary::of(values).filter(|sample| sample.n >= 5 && sample.mean != 0.0)?;
    let middle = (sample.n - 1) as f64 / 2.0;
    let at = |i: usize| i as f64 - middle;
    let spread: f64 = (0..values.len()).map(|i| at(i).powi(2)).sum();
    let slope = values.iter().enumerate().map(|(i, v)| at(i) * (v - sample.mean)).sum::<f64>() / spread;
    let rest: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - sample.mean - slope * at(i)).collect();
    let n = sample.n as f64;
    let rho = lag1(&rest, 0.0);
    let effective = (n * (1.0 - rho) / (1.0 + rho)).clamp(3.0, n);
    let squares: f64 = rest.iter().map(|r| r * r).sum();
    let error = (squares / (n - 2.0) / spread * (n / effective)).sqrt();
    let p = match (slope == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => t_two_sided(slope / error, effective - 2.0),
    };
    Some(Trend { change: slope * (n - 1.0) / sample.mean, p })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]
    use super::*;

    fn rule(min: u64, max: u64, target: Option<f64>) -> RepeatRule {
        RepeatRule { runs: RunRange { min, max }, target, level: 0.95, stop: PrecisionRule::Corrected }
    }

    fn noisy(n: usize, amplitude: f64) -> Vec<f64> {
        // Adjacent values differ, and there is no trend.
        (0..n).map(|i| 100.0 * (1.0 + amplitude * [1.0, -1.0, 0.3, -0.8, 0.6][i % 5])).collect()
    }

    #[test]
    fn it_converges_when_all_metrics_are_precise_twice() {
        let rule = rule(10, 30, Some(0.05));
        assert_eq!(rule.evaluate(&[noisy(9, 0.01)]).state, RepeatState::Running);
        assert_eq!(rule.evaluate(&[noisy(10, 0.01)]).state, RepeatState::Running, "the precision must hold twice");
        assert_eq!(rule.evaluate(&[noisy(11, 0.01)]).state, RepeatState::Converged);
        let both = rule.evaluate(&[noisy(11, 0.01), noisy(11, 0.3)]);
        assert_eq!((both.state, both.worst), (RepeatState::Running, 1));
        assert!(both.predicted > 11 && both.predicted <= 30);
        assert_eq!(rule.evaluate(&[noisy(30, 0.5)]).state, RepeatState::NotConverged);
        assert_eq!(rule.evaluate(&[]).state, RepeatState::Running);
    }

    #[test]
    fn the_study_ends_when_all_metrics_are_precise_once() {
        let rule = RepeatRule { stop: PrecisionRule::Study, ..rule(10, 30, Some(0.05)) };
        let state = |metrics: &[Vec<f64>]| rule.evaluate(metrics).state;
        assert_eq!(state(&[noisy(9, 0.01)]), RepeatState::Running);
        assert_eq!(state(&[noisy(10, 0.01), vec![0.0; 10]]), RepeatState::Converged);
        assert_eq!(state(&[noisy(10, 0.01), noisy(10, 0.3)]), RepeatState::Running);
        assert_eq!(state(&[noisy(30, 0.5)]), RepeatState::NotConverged);
        // Runs that depend on each other are precise enough without a correction only.
        let wave: Vec<f64> = (0..12).map(|i| 100.0 + 7.0 * (f64::from(i) / 3.0).sin()).collect();
        assert_eq!(state(std::slice::from_ref(&wave)), RepeatState::Converged);
        let corrected = RepeatRule { stop: PrecisionRule::Corrected, ..rule };
        assert_eq!(corrected.evaluate(&[wave]).state, RepeatState::Running);
    }

    #[test]
    fn without_a_target_the_number_of_runs_decides() {
        assert_eq!(rule(4, 4, None).evaluate(&[noisy(3, 0.5)]).state, RepeatState::Running);
        let complete = rule(4, 4, None).evaluate(&[noisy(4, 0.5)]).state;
        assert_eq!((complete, complete.name(), complete.code()), (RepeatState::Complete, "complete", 0));
        let wide = rule(4, 4, Some(0.05)).evaluate(&[noisy(4, 0.5)]).state;
        assert_eq!((wide, wide.code()), (RepeatState::NotConverged, 11));
    }

    /// A trend that is significant at 1 % for a single metric, but not for the least of twelve.
    #[test]
    fn the_test_for_drift_is_corrected_for_the_number_of_metrics() {
        let rise = |i: usize, value: f64| value * (1.0 + 0.01 * i as f64);
        let drift: Vec<f64> = noisy(12, 0.03).iter().enumerate().map(|(i, v)| rise(i, *v)).collect();
        let p = trend(&drift).unwrap().p;
        assert!(p < TREND_SIGNIFICANCE && p > TREND_SIGNIFICANCE / 12.0, "{p}");
        let fixed = rule(12, 12, None);
        assert_eq!(fixed.evaluate(std::slice::from_ref(&drift)).state, RepeatState::Drifting);
        let still = || std::iter::repeat_n(noisy(12, 0.03), 11);
        let twelve: Vec<Vec<f64>> = still().chain([drift]).collect();
        assert_eq!(fixed.evaluate(&twelve).state, RepeatState::Complete);
    }

    #[test]
    fn a_drift_is_detected() {
        let drift: Vec<f64> = noisy(30, 0.02).iter().enumerate().map(|(i, v)| v * (1.0 + 0.01 * i as f64)).collect();
        assert_eq!(rule(10, 30, Some(0.05)).evaluate(std::slice::from_ref(&drift)).state, RepeatState::Drifting);
        let change = trend(&drift).unwrap().change;
        assert!((0.2..0.3).contains(&change), "{change}");
        assert!(trend(&noisy(30, 0.02)).unwrap().p > 0.05);
        assert_eq!(trend(&[1.0; 4]), None);
        assert_eq!(trend(&[2.0; 9]).unwrap().p, 1.0);
    }

    #[test]
    fn autocorrelation_widens_the_interval() {
        let wave: Vec<f64> = (0..40).map(|i| 100.0 + 5.0 * (f64::from(i) / 4.0).sin()).collect();
        let dependent = mean_interval(&wave, 0.95).unwrap();
        assert!(dependent.lag1 > 0.8 && dependent.effective_n < 8.0, "{dependent:?}");
        let alternating = mean_interval(&noisy(40, 0.05), 0.95).unwrap();
        assert_eq!((alternating.lag1, alternating.effective_n), (0.0, 40.0));
        // A slow wave: the formula gives less than two independent runs of ten.
        let slow: Vec<f64> = (0..10).map(|i| if i < 5 { 100.0 } else { 110.0 }).collect();
        let bound = mean_interval(&slow, 0.95).unwrap();
        let deviation = SampleSummary::of(&slow).unwrap().variance.sqrt();
        assert_eq!(bound.effective_n, 2.0);
        assert!((bound.half_width / deviation - 8.985).abs() < 0.001, "{bound:?}");
        assert_eq!(mean_interval(&[5.0; 10], 0.95).unwrap().half_width, 0.0);
        assert!(mean_interval(&[1.0, 2.0], 0.95).unwrap().half_width.is_infinite());
    }
}
