//! A measurement as it goes on: its time series, and the reports of `psrun`.

use crate::plan::Plan;
use crate::result::build::{self, CpuTime};
use crate::result::{Interval, Run, timeline};
use crate::runtime::{Running, Sample, Tick};
use crate::stats::snapshot::Snapshot;
use std::time::Duration;

/// Operations of a sample that a summary counts.
pub(crate) fn io_ops(plan: &Plan, sample: &Sample) -> u64 {
    plan.flowops.iter().zip(&sample.flowops).filter(|(f, _)| f.class.is_io()).map(|(_, s)| s.ops).sum()
}

/// Bytes of a sample that a summary counts.
pub(crate) fn io_bytes(plan: &Plan, sample: &Sample) -> u64 {
    plan.flowops.iter().zip(&sample.flowops).filter(|(f, _)| f.class.is_io()).map(|(_, s)| s.bytes).sum()
}

/// Intervals that a live view is given at most: no terminal is wider.
const RECENT: usize = 512;

/// The time series of a measurement, and its newest intervals for whoever watches the run.
#[derive(Clone)]
pub(crate) struct RunTimeline {
    series: timeline::Timeline,
    shortest_ns: u64,
}

impl RunTimeline {
    /// Of a measurement that has just begun: nothing is counted yet.
    pub(crate) fn new(running: &Running, interval: Duration) -> Self {
        let shortest_ns = (interval.as_nanos() as u64 / 2).min(timeline::SHORT_NS);
        Self { series: timeline::Timeline::new(running.n_flowops()), shortest_ns }
    }

    /// An interval ends, unless the last one has only just ended. It is also added to `recent`, of which the oldest are dropped.
    pub(crate) fn look(&mut self, running: &Running, recent: &mut Vec<Interval>) -> bool {
        let now = running.measured();
        let now_ns = running.ns(running.from(), now.tick);
        if now_ns.saturating_sub(self.series.last_ns()) < self.shortest_ns {
            return false;
        }
        if recent.len() >= 2 * RECENT {
            recent.drain(..RECENT);
        }
        recent.push(self.series.look(now_ns, now.flowops));
        true
    }

    /// All intervals of a measurement that ended after `elapsed_ns` with these counters.
    pub(crate) fn concluded(mut self, elapsed_ns: u64, sample: &Sample) -> Vec<Interval> {
        self.series.conclude(elapsed_ns, sample.flowops.clone());
        self.series.intervals()
    }

    /// All intervals so far.
    pub(crate) fn intervals(&self) -> Vec<Interval> {
        self.series.intervals()
    }
}

/// Reports while the run goes on: `psrun`.
pub struct Periodic {
    period_ns: u64,
    next_ns: u64,
    /// Each report stands for itself: the counters seem to start anew.
    reset: bool,
    last: Option<(u64, Vec<Snapshot>)>,
}

impl Periodic {
    /// Each `period`; with `reset` for its own period only.
    pub fn new(period: Duration, reset: bool) -> Self {
        let period_ns = (period.as_nanos() as u64).max(1);
        Self { period_ns, next_ns: period_ns, reset, last: None }
    }

    pub(crate) fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Whether each report stands for itself.
    pub(crate) fn apart(&self) -> bool {
        self.reset
    }

    pub(crate) fn due(&self, elapsed_ns: u64) -> bool {
        elapsed_ns >= self.next_ns
    }

    /// The run so far, or since the last report.
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

/// Flowops and summary out of snapshots.
pub(crate) fn fill_figures(run: &mut Run, snapshots: &[Snapshot], seconds: f64, cpu: CpuTime) {
    for (flowop, snapshot) in run.flowops.iter_mut().zip(snapshots) {
        let own = run.phases.iter().find(|phase| phase.number == flowop.phase).map(|phase| phase.seconds);
        *flowop = build::flowop(flowop.clone(), snapshot, own.unwrap_or(seconds));
    }
    run.summary = build::summary(run.flowops.iter().zip(snapshots), seconds, cpu);
}
