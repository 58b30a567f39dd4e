//! The beginning of the steady part of a run.

use super::{Interval, Run};
use serde::{Deserialize, Serialize};
use wml_statistics::SteadyState;

/// The beginning of a run's steady part by three rules, in seconds since measuring began; null if it was never steady.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steadiness {
    /// The median of the three rules' results.
    pub from_seconds: Option<f64>,
    /// Rule 1: five windows of the rest have means within 20 % and change by at most 10 %.
    pub windows_seconds: Option<f64>,
    /// Rule 2: the mean of the rest has the smallest standard error (MSER-5).
    pub mser_seconds: Option<f64>,
    /// Rule 3: the last change point of the rate.
    pub change_point_seconds: Option<f64>,
    /// I/O operations per second of the steady part; null if the run was never steady.
    pub ops_per_s: Option<f64>,
}

impl Run {
    /// Finds the steady part of the run. Returns `None` if it has fewer than twenty intervals, or several phases, which
    /// have rates of their own.
    pub fn steadiness(&self) -> Option<Steadiness> {
        if !self.phases.is_empty() {
            return None;
        }
        let intervals = self.whole_intervals();
        let found = self.steady_state(intervals)?;
        let start = |from: usize| intervals[from].t - intervals[from].seconds;
        let rest = found.agreed().map(|from| &intervals[from..]);
        Some(Steadiness {
            // The first interval begins at 0. Its computed start may differ by a rounding error.
            from_seconds: found.agreed().map(|from| if from == 0 { 0.0 } else { start(from) }),
            windows_seconds: found.windows.map(start),
            mser_seconds: found.mser.map(start),
            change_point_seconds: found.change_point.map(start),
            ops_per_s: rest.map(|rest| {
                let ops: u64 = rest.iter().map(|interval| self.io_ops(interval)).sum();
                ops as f64 / rest.iter().map(|interval| interval.seconds).sum::<f64>()
            }),
        })
    }

    /// Finds the steady part of `intervals` of this run. Returns `None` if there are fewer than twenty.
    pub fn steady_state(&self, intervals: &[Interval]) -> Option<SteadyState> {
        let rate = |interval: &Interval| self.io_ops(interval) as f64 / interval.seconds;
        SteadyState::of(&intervals.iter().map(rate).collect::<Vec<f64>>())
    }

    /// Returns the number of I/O operations of an interval (classes `io` and `aio`).
    pub fn io_ops(&self, interval: &Interval) -> u64 {
        let flowops = self.flowops.iter().zip(&interval.flowops);
        flowops.filter(|(flowop, _)| flowop.class.is_io()).map(|(_, figures)| figures.ops).sum()
    }

    /// Returns the intervals without the last one if that is shorter than half of the previous one.
    fn whole_intervals(&self) -> &[Interval] {
        match &self.intervals[..] {
            [rest @ .., before, last] if last.seconds < before.seconds / 2.0 => &self.intervals[..=rest.len()],
            all => all,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::fixture::fixture;
    use crate::{Interval, PhaseResult, Run};

    /// Returns the fixture's run with one-second intervals, each with the given number of reads.
    fn run(rates: &[u64]) -> Run {
        let mut run = fixture().runs.remove(0);
        let like = run.intervals[0].clone();
        let interval = |(i, ops): (usize, &u64)| {
            let mut interval = Interval { t: i as f64 + 1.0, seconds: 1.0, ..like.clone() };
            interval.flowops.iter_mut().for_each(|flowop| flowop.ops = 0);
            interval.flowops[0].ops = *ops;
            interval
        };
        run.intervals = rates.iter().enumerate().map(interval).collect();
        run
    }

    #[test]
    fn the_unsteady_part_is_measured_in_seconds() {
        let rates: Vec<u64> = (0..60).map(|t| if t < 15 { 300 } else { 1000 + t % 2 }).collect();
        let steady = run(&rates).steadiness().unwrap();
        assert_eq!(steady.from_seconds, Some(15.0));
        assert!((steady.ops_per_s.unwrap() - 1000.5).abs() < 0.1);
    }

    #[test]
    fn a_short_last_interval_is_ignored() {
        let mut run = run(&[1000; 30]);
        run.intervals[29].seconds = 0.2;
        run.intervals[29].flowops[0].ops = 1;
        let steady = run.steadiness().unwrap();
        assert_eq!((steady.from_seconds, steady.ops_per_s), (Some(0.0), Some(1000.0)));
    }

    #[test]
    fn phases_are_not_steady_together() {
        let rates: Vec<u64> = (0..60).map(|t| if t < 15 { 300 } else { 1000 }).collect();
        let mut run = run(&rates);
        run.phases = vec![PhaseResult::default(); 2];
        assert_eq!(run.steadiness(), None);
    }

    #[test]
    fn few_intervals_give_no_result() {
        assert_eq!(fixture().runs[0].steadiness(), None);
    }
}
