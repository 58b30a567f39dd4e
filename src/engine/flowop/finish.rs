//! `finishoncount`, `finishonbytes`: end of a thread at a count; and the counters that they and the limiters read.

use super::args::Args;
use super::op::{BuiltOp, Effects, FlowopEntry, Peer, StepInit, entry, stateful};
use crate::exec::{OpCx, StopReason};
use std::sync::Arc;
use wml_language::diag::{Code, Diagnostic};
use wml_language::spec::{Class, Origin, Role};

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    entry("finishoncount", |args| finish(args, false))
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value", "target"])
        .roles(&[Role::Finishes])
        .doc(
            "ends the run (in mode `alldone` only the thread) once `value` operations have been done: by \
             `target` in the same thread, default by the whole process",
        )
        .example("flowop statfile name=st,filesetname=data\nflowop finishoncount name=end,value=10,target=st"),
    entry("finishonbytes", |args| finish(args, true))
        .class(Class::Other)
        .origin(Origin::Both)
        .uses(&["value", "target"])
        .roles(&[Role::Finishes])
        .doc(
            "ends the run (in mode `alldone` only the thread) once more than `value` bytes have been \
             transferred: by `target` in the same thread, default by the whole process",
        )
        .example("flowop read name=rd,filename=data,iosize=4k,random\nflowop finishonbytes name=end,value=64k"),
];

fn finish(args: &Args<'_>, bytes: bool) -> BuiltOp {
    let (value, counter) = (args.int("value", 0)?, Counter::new(args, false)?);
    let target = args.text("target").map_or(String::new(), |target| format!(" target={target}"));
    let effects = Effects { totals: counter.is_total(), non_blocking: true, ..Effects::default() };
    let make = move |init: &StepInit<'_>| counter.clone().bind(init);
    Ok(stateful(format!(" value={value}{target}"), effects, make, move |counter, cx| {
        cx.begin();
        let reached = if bytes { counter.measured_bytes(cx) > value } else { counter.measured_ops(cx) >= value };
        if !reached {
            return cx.end(0);
        }
        // Operations in flight are part of the count: they complete, and are counted, before the end.
        cx.drain()?;
        Err(StopReason::Finished.into())
    }))
}

/// Operations and bytes so far, of flowops of the same thread or of a whole process. As in Filebench, an asynchronous
/// operation counts when it is submitted.
#[derive(Clone, Debug)]
pub(super) enum Counter {
    /// Flowops of the thread, by the indices of their counters.
    Targets(Vec<usize>),
    /// Totals of the process.
    Totals {
        /// Whether the number of operations leaves out those other than reads and writes.
        io_only: bool,
        /// Counters of all threads of the process, which share this list; empty until [`Counter::bind`].
        peers: Arc<[Peer]>,
    },
}

impl Counter {
    /// Makes the counter of `target=`, or of the process without it. `Err` when the target is in another thread.
    pub(super) fn new(args: &Args<'_>, io_only: bool) -> Result<Self, Diagnostic> {
        let targets = args.targets()?;
        if targets.is_empty() {
            return Ok(Self::totals(io_only));
        }
        let local: Vec<usize> = targets.iter().filter_map(|t| t.local).collect();
        if local.is_empty() {
            let message = format!("the target of `{}` is in another thread", args.name);
            return Err(Diagnostic::error(Code::UnknownTarget, args.span_of("target"), message).help(
                "a target is counted in the same thread only: name a flowop of this thread, or leave `target=` out",
            ));
        }
        Ok(Self::Targets(local))
    }

    /// Makes a counter of the totals of the process.
    pub(super) fn totals(io_only: bool) -> Self {
        Self::Totals { io_only, peers: Arc::default() }
    }

    /// True if it reads the totals of the process.
    pub(super) fn is_total(&self) -> bool {
        matches!(self, Self::Totals { .. })
    }

    /// Connects it to the counters of the process instance of one thread.
    pub(super) fn bind(self, init: &StepInit<'_>) -> Self {
        match self {
            Self::Totals { io_only, .. } => Self::Totals { io_only, peers: Arc::clone(init.peers) },
            targets @ Self::Targets(_) => targets,
        }
    }

    /// Returns the number of operations so far.
    pub(super) fn ops(&self, cx: &OpCx<'_>) -> u64 {
        match self {
            Self::Targets(cells) => cells.iter().map(|c| cx.account.stats.cell(*c).started_ops()).sum(),
            Self::Totals { io_only: true, peers } => peers.iter().map(|p| p.stats.started_ops_of(&p.io)).sum(),
            Self::Totals { io_only: false, peers } => peers.iter().map(|p| p.stats.total_started_ops()).sum(),
        }
    }

    /// Returns the bytes so far.
    pub(super) fn bytes(&self, cx: &OpCx<'_>) -> u64 {
        match self {
            Self::Targets(cells) => cells.iter().map(|c| cx.account.stats.cell(*c).started_bytes()).sum(),
            Self::Totals { peers, .. } => peers.iter().map(|p| p.stats.total_started_bytes()).sum(),
        }
    }

    /// Returns the number of operations of targets since the measurement began. Totals of the process are those since
    /// the threads started: Filebench clears only targets after a warm-up and by `stats clear`.
    pub(super) fn measured_ops(&self, cx: &OpCx<'_>) -> u64 {
        match self {
            Self::Targets(cells) => cells.iter().map(|c| cx.account.stats.cell(*c).measured_ops()).sum(),
            Self::Totals { .. } => self.ops(cx),
        }
    }

    /// Returns the bytes of the same operations, with those of the listings of directories, as in Filebench.
    pub(super) fn measured_bytes(&self, cx: &OpCx<'_>) -> u64 {
        match self {
            Self::Targets(cells) => cells.iter().map(|c| cx.account.stats.cell(*c).measured_bytes()).sum(),
            Self::Totals { peers, .. } => peers.iter().map(|p| p.stats.total_moved_bytes()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stats::recorder::ThreadStats;

    /// Each of ten thousand threads may have such a counter.
    #[test]
    fn the_counters_of_a_process_share_the_list_of_its_threads() {
        let peer = || Peer { stats: Arc::new(ThreadStats::new(1).unwrap()), io: Arc::new([0]) };
        let peers: Arc<[Peer]> = (0..2).map(|_| peer()).collect();
        let init = StepInit { ordinal: 0, semaphores: &[], latches: &[], peers: &peers, seed: 1 };
        let bound: Vec<Counter> = (0..3).map(|_| Counter::totals(false).bind(&init)).collect();
        for counter in &bound {
            assert!(matches!(counter, Counter::Totals { peers: own, .. } if Arc::ptr_eq(own, &peers)));
        }
        assert_eq!(Arc::strong_count(&peers[0].stats), 1);
    }
}
