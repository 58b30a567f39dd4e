//! The table of all workloads at the end of a batch.

use super::workload::ProfileWorkload;
use super::{Done, measured};
use crate::result::{Run, RunState};
use crate::util::table::{Align, Table};
use crate::util::{count, duration};

/// Formats a table of all workloads, with those that failed or did not run.
pub(super) fn overview(workloads: &[ProfileWorkload<'_>], all: &[Done<'_>]) -> String {
    let mut table = Table::new([
        ("workload", Align::Left),
        ("ops/s", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("", Align::Left),
    ]);
    let dash = || "-".to_owned();
    for workload in workloads {
        let name = &workload.name().node;
        let done = all.iter().find(|done| done.config.name.node == *name);
        let run = done.and_then(measured);
        let figure = |of: &dyn Fn(&Run) -> Option<String>| run.and_then(of).unwrap_or_else(dash);
        let state = match (done, run) {
            (None, _) => "not run".to_owned(),
            (Some(done), None) => format!("no run, exit status {}", done.status.code()),
            (_, Some(run)) if run.state == RunState::Complete => String::new(),
            (_, Some(run)) => run.state.name().replace('_', " "),
        };
        table.row([
            name.clone(),
            figure(&|run| Some(count::measured(run.summary.ops_per_s))),
            figure(&|run| Some(count::measured(run.summary.mib_per_s))),
            figure(&|run| Some(duration::latency(run.summary.latency_ns.mean?))),
            state,
        ]);
    }
    format!("\n{}", table.render().trim_end())
}
