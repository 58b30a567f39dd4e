//! What a rank does at the samples of a run that several ranks make: it reports its progress to rank 0, and writes
//! snapshots.
//!
//! The controller calls this between the operations of its threads. Nothing here waits.

use super::snapshots::SnapshotWriter;
use crate::plan::Plan;
use crate::ranks::Together;
use crate::result::Interval;
use crate::result::ranks::{RankProgress, RanksInterval, RanksProgress};
use crate::result::snapshot::Snapshot;
use crate::runtime::{Sample, Tick};
use std::sync::Arc;

/// The reports of a rank during a run.
pub(crate) struct RankTicks {
    together: Together,
    plan: Arc<Plan>,
    /// The number of the run, from 1.
    run: u64,
    progress: RanksProgress,
    snapshots: Option<SnapshotWriter>,
}

impl RankTicks {
    /// Starts the reports of a run that begins to be measured. `number`: that of the run, from 1. `hosts`: the names of
    /// all hosts in the result.
    pub(crate) fn new(
        together: Together,
        hosts: Vec<String>,
        plan: &Arc<Plan>,
        number: usize,
        snapshots: Option<SnapshotWriter>,
    ) -> Self {
        let (plan, progress) = (Arc::clone(plan), RanksProgress::new(hosts));
        Self { together, plan, run: number as u64, progress, snapshots }
    }

    /// Ends an interval: reports the progress of this rank, and returns that of all ranks on rank 0.
    pub(crate) fn interval(&mut self, tick: &Tick<'_>) -> Option<RanksInterval> {
        let own = progress(&self.plan, self.run, tick.elapsed_ns, &tick.running.measured());
        let all = self.together.progress(own)?;
        Some(self.progress.interval(own, &all))
    }

    /// Writes a snapshot if it is due. `recent`: the newest intervals.
    pub(crate) fn sample(&mut self, tick: &Tick<'_>, recent: &[Interval]) {
        if let Some(snapshots) = self.snapshots.as_mut()
            && snapshots.is_due(tick.elapsed_ns)
        {
            snapshots.write(tick, tick.running.measured(), recent);
        }
    }

    /// Ends the reports of a run whose figures are in a result: the snapshots are removed.
    pub(crate) fn finish(self) {
        if let Some(snapshots) = self.snapshots {
            snapshots.remove();
        }
    }
}

/// Returns the counters of a rank.
fn progress(plan: &Plan, run: u64, elapsed_ns: u64, sample: &Sample) -> RankProgress {
    let io = || plan.flowops.iter().zip(&sample.flowops).filter(|(flowop, _)| flowop.class.is_io()).map(|(_, s)| s);
    RankProgress {
        run,
        elapsed_ns,
        ops: io().map(|s| s.ops).sum(),
        bytes: io().map(|s| s.bytes).sum(),
        latency_ns: io().map(|s| s.latency.sum).sum(),
        errors: sample.flowops.iter().map(Snapshot::failed).sum(),
    }
}
