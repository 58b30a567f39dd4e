//! Repeating until the mean is known to a wanted precision: its interval, whether it is tight enough, how many runs that will take,
//! and whether the runs drift.

use super::distributions::{t_two_sided, t_upper};
use super::sample::{Estimate, SampleSummary};
use serde::{Deserialize, Serialize};

/// The mean of runs that may depend on the one before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanEstimate {
    /// Runs.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Half the width of the interval of the mean; infinite of fewer than three runs.
    pub half_width: f64,
    /// Autocorrelation of a run with the next, corrected for its bias, 0 to 1; a negative one counts as none.
    pub lag1: f64,
    /// As many independent runs would have the same interval.
    pub effective_n: f64,
}

impl MeanEstimate {
    /// Half the width over the mean.
    pub fn relative(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.mean.abs() }
    }
}

/// The interval of a mean at confidence `level` (0.95), corrected for dependence of each run on the one before: the autocorrelation
/// at lag one, r, is biased by −(1 + 4ρ)/n (Kendall 1954, Marriott and Pope 1954), so that ρ = r + (1 + 4r)/n; a process of that
/// correlation is worth n(1 − ρ)/(1 + ρ) independent runs, and the t has one degree of freedom fewer than that.
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

/// The mean of runs that do not depend on one another, with its interval at confidence `level`; infinitely wide of fewer than two.
pub fn independent_mean(values: &[f64], level: f64) -> Option<Estimate> {
    let sample = SampleSummary::of(values)?;
    let half = match sample.n {
        0 | 1 => f64::INFINITY,
        n => t_upper((1.0 - level) / 2.0, (n - 1) as f64) * sample.standard_error(),
    };
    Some(Estimate::around(sample.mean, half))
}

/// The autocorrelation at lag one, without its bias, 0 to 0.99.
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

/// How often something runs: at least and at most so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRange {
    /// The fewest runs.
    pub min: u64,
    /// The most.
    pub max: u64,
}

/// When repeating ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepeatRule {
    /// Runs.
    pub runs: RunRange,
    /// Half-width of the interval over the mean that is enough (0.05); `None`: the number of runs alone decides.
    pub target: Option<f64>,
    /// Confidence of the interval.
    pub level: f64,
}

/// Where a series of repeats is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatState {
    /// More runs are to come.
    Running,
    /// Each metric was precise enough twice in succession, or all runs that were asked for are made.
    Converged,
    /// The most runs are made, and a metric is not precise enough.
    NotConverged,
    /// Over the runs a metric went one way by more than the precision asked for: its mean is of no use.
    Drifting,
}

impl RepeatState {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Converged => "converged",
            Self::NotConverged => "not converged",
            Self::Drifting => "drifting",
        }
    }

    /// Exit status of a series that ended so.
    pub fn code(self) -> u8 {
        if self == Self::Converged { 0 } else { 11 }
    }
}

/// What a rule says of the runs so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// Whether more are needed.
    pub state: RepeatState,
    /// The metric with the widest interval.
    pub worst: usize,
    /// Half the width of that over its mean.
    pub half_width: f64,
    /// Runs in all that the rule will take, as the widest interval predicts: n (h / target)².
    pub predicted: u64,
}

impl RepeatRule {
    /// Judges the runs so far: one series a metric, all of equal length.
    pub fn judge(&self, metrics: &[Vec<f64>]) -> Precision {
        let n = metrics.iter().map(Vec::len).min().unwrap_or(0);
        let relative = |n: usize| {
            let of =
                |values: &Vec<f64>| mean_interval(&values[..n], self.level).map_or(f64::INFINITY, |m| m.relative());
            let widths = metrics.iter().map(of).enumerate();
            widths.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::INFINITY))
        };
        let (worst, half_width) = relative(n);
        let RunRange { min, max } = self.runs;
        let (state, predicted) = match self.target {
            None if n as u64 >= max => (RepeatState::Converged, max),
            None => (RepeatState::Running, max),
            Some(target) => {
                let tight = |n: usize| n as u64 >= min && relative(n).1 < target;
                let needed = if half_width.is_finite() { n as f64 * (half_width / target).powi(2) } else { 0.0 };
                let predicted = (needed.ceil() as u64).clamp(min.max(n as u64 + 1), max.max(n as u64 + 1));
                match tight(n) && (tight(n.saturating_sub(1)) || min == max) {
                    true => (RepeatState::Converged, n as u64),
                    false if n as u64 >= max => (RepeatState::NotConverged, max),
                    false => (RepeatState::Running, predicted),
                }
            }
        };
        let drifts = |values: &Vec<f64>| {
            let limit = self.target.unwrap_or(DRIFT);
            trend(&values[..n]).is_some_and(|trend| trend.p < SURE && trend.change.abs() > limit)
        };
        let state =
            if state != RepeatState::Running && metrics.iter().any(drifts) { RepeatState::Drifting } else { state };
        Precision { state, worst, half_width, predicted }
    }
}

/// A change over all runs that is called drift where no precision was asked for.
const DRIFT: f64 = 0.05;

/// The probability below which a trend is taken for one.
const SURE: f64 = 0.01;

/// A straight line through runs in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Its rise from the first run to the last, over the mean.
    pub change: f64,
    /// Two-sided, for no rise; corrected for dependence as [`mean_interval`] is.
    pub p: f64,
}

/// The trend of at least five runs.
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
        RepeatRule { runs: RunRange { min, max }, target, level: 0.95 }
    }

    fn noisy(n: usize, amplitude: f64) -> Vec<f64> {
        // No two neighbours alike, no trend.
        (0..n).map(|i| 100.0 * (1.0 + amplitude * [1.0, -1.0, 0.3, -0.8, 0.6][i % 5])).collect()
    }

    #[test]
    fn it_ends_when_all_metrics_are_tight_twice() {
        let rule = rule(10, 30, Some(0.05));
        assert_eq!(rule.judge(&[noisy(9, 0.01)]).state, RepeatState::Running);
        assert_eq!(rule.judge(&[noisy(10, 0.01)]).state, RepeatState::Running, "it needs a second time");
        assert_eq!(rule.judge(&[noisy(11, 0.01)]).state, RepeatState::Converged);
        let both = rule.judge(&[noisy(11, 0.01), noisy(11, 0.3)]);
        assert_eq!((both.state, both.worst), (RepeatState::Running, 1));
        assert!(both.predicted > 11 && both.predicted <= 30);
        assert_eq!(rule.judge(&[noisy(30, 0.5)]).state, RepeatState::NotConverged);
        assert_eq!(rule.judge(&[]).state, RepeatState::Running);
    }

    #[test]
    fn without_a_precision_the_number_decides() {
        assert_eq!(rule(4, 4, None).judge(&[noisy(3, 0.5)]).state, RepeatState::Running);
        assert_eq!(rule(4, 4, None).judge(&[noisy(4, 0.5)]).state, RepeatState::Converged);
    }

    #[test]
    fn a_drift_is_named() {
        let drift: Vec<f64> = noisy(30, 0.02).iter().enumerate().map(|(i, v)| v * (1.0 + 0.01 * i as f64)).collect();
        assert_eq!(rule(10, 30, Some(0.05)).judge(std::slice::from_ref(&drift)).state, RepeatState::Drifting);
        let change = trend(&drift).unwrap().change;
        assert!((0.2..0.3).contains(&change), "{change}");
        assert!(trend(&noisy(30, 0.02)).unwrap().p > 0.05);
        assert_eq!(trend(&[1.0; 4]), None);
        assert_eq!(trend(&[2.0; 9]).unwrap().p, 1.0);
    }

    #[test]
    fn dependence_widens_the_interval() {
        let wave: Vec<f64> = (0..40).map(|i| 100.0 + 5.0 * (f64::from(i) / 4.0).sin()).collect();
        let dependent = mean_interval(&wave, 0.95).unwrap();
        assert!(dependent.lag1 > 0.8 && dependent.effective_n < 8.0, "{dependent:?}");
        let alternating = mean_interval(&noisy(40, 0.05), 0.95).unwrap();
        assert_eq!((alternating.lag1, alternating.effective_n), (0.0, 40.0));
        assert_eq!(mean_interval(&[5.0; 10], 0.95).unwrap().half_width, 0.0);
        assert!(mean_interval(&[1.0, 2.0], 0.95).unwrap().half_width.is_infinite());
    }
}
