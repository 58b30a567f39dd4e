//! Interim data of a measurement: its time series, and the reports of `psrun`.

use crate::plan::Plan;
use crate::result::build;
use crate::result::snapshot::Snapshot;
use crate::result::{CpuTime, Interval, Run, timeline};
use crate::runtime::{Running, Sample, Tick};
use std::time::Duration;

/// Returns the number of operations in a sample that count for the summary.
pub(crate) fn io_ops(plan: &Plan, sample: &Sample) -> u64 {
    plan.flowops.iter().zip(&sample.flowops).filter(|(f, _)| f.class.is_io()).map(|(_, s)| s.ops).sum()
}

/// Returns the number of bytes in a sample that count for the summary.
pub(crate) fn io_bytes(plan: &Plan, sample: &Sample) -> u64 {
    plan.flowops.iter().zip(&sample.flowops).filter(|(f, _)| f.class.is_io()).map(|(_, s)| s.bytes).sum()
}

/// The most intervals passed to a live view: no terminal is wider.
const MAX_RECENT: usize = 512;

/// The time series of a measurement, and its newest intervals for a live view.
#[derive(Clone)]
pub(crate) struct RunTimeline {
    series: timeline::Timeline,
}

impl RunTimeline {
    /// Creates the time series of a measurement that has just started.
    pub(crate) fn new(running: &Running, interval: Duration) -> Self {
        Self { series: timeline::Timeline::new(running.n_flowops(), interval.as_nanos() as u64) }
    }

    /// Ends an interval, unless the previous one has only just ended; then returns `false`. Also adds the interval to
    /// `recent`, from which the oldest ones are removed.
    pub(crate) fn end_interval(&mut self, running: &Running, recent: &mut Vec<Interval>) -> bool {
        let now = running.measured();
        let now_ns = running.ns(running.from(), now.tick);
        if now_ns.saturating_sub(self.series.last_ns()) < self.series.shortest_ns() {
            return false;
        }
        if recent.len() >= 2 * MAX_RECENT {
            recent.drain(..MAX_RECENT);
        }
        recent.push(self.series.record(now_ns, now.flowops));
        true
    }

    /// Returns all intervals of a measurement that ended after `elapsed_ns` with the counters of `sample`.
    pub(crate) fn finish(mut self, elapsed_ns: u64, sample: &Sample) -> Vec<Interval> {
        self.series.finish(elapsed_ns, sample.flowops.clone());
        self.series.intervals()
    }

    /// Returns all intervals so far.
    pub(crate) fn intervals(&self) -> Vec<Interval> {
        self.series.intervals()
    }
}

/// The schedule of reports during a run: `psrun`.
pub struct Periodic {
    period_ns: u64,
    next_ns: u64,
    /// Whether each report covers only its own period.
    reset: bool,
    last: Option<(u64, Vec<Snapshot>)>,
}

impl Periodic {
    /// Creates a schedule with a report per `period`. With `reset`, each report covers only its own period.
    pub fn new(period: Duration, reset: bool) -> Self {
        let period_ns = (period.as_nanos() as u64).max(1);
        Self { period_ns, next_ns: period_ns, reset, last: None }
    }

    pub(crate) fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// True if each report covers only its own period.
    pub(crate) fn resets(&self) -> bool {
        self.reset
    }

    pub(crate) fn due(&self, elapsed_ns: u64) -> bool {
        elapsed_ns >= self.next_ns
    }

    /// Returns a report on the run so far or, with `reset`, since the last report.
    pub(crate) fn report(&mut self, run: &Run, tick: &Tick<'_>) -> Run {
        self.next_ns = (tick.elapsed_ns / self.period_ns + 1) * self.period_ns;
        let now = tick.running.measured().flowops;
        let (since, snapshots) = match self.last.as_ref().filter(|_| self.reset) {
            Some((ns, before)) => (*ns, now.iter().zip(before).map(|(n, b)| n.minus(b)).collect()),
            None => (0, now.clone()),
        };
        self.last = Some((tick.elapsed_ns, now));
        let mut report = run.clone();
        let seconds = (tick.elapsed_ns - since) as f64 / 1e9;
        fill_figures(&mut report, &snapshots, seconds, CpuTime::default());
        report.measured_seconds = seconds;
        report
    }
}

/// Sets the figures of flowops and summary from snapshots.
pub(crate) fn fill_figures(run: &mut Run, snapshots: &[Snapshot], seconds: f64, cpu: CpuTime) {
    for (flowop, snapshot) in run.flowops.iter_mut().zip(snapshots) {
        let phase_seconds = run.phases.iter().find(|phase| phase.number == flowop.phase).map(|phase| phase.seconds);
        *flowop = build::flowop(flowop.clone(), snapshot, phase_seconds.unwrap_or(seconds));
    }
    run.summary = build::summary(run.flowops.iter().zip(snapshots), seconds, cpu);
}
