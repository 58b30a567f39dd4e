//! `finishoncount`, `finishonbytes`: a thread ends when enough is done; and the counters that they and the limiters look at.

use super::args::Args;
use super::{At, BuiltOp, Effects, FlowopEntry, Op, Peer, Step};
use crate::diag::{Code, Diagnostic};
use crate::exec::{OpCx, Stop, StopReason};
use crate::spec::{Class, Flowop, IoDirection, Origin, Role};
use std::sync::Arc;

pub(super) const FLOWOPS: &[FlowopEntry] = &[
    FlowopEntry {
        spec: Flowop {
            name: "finishoncount",
            class: Class::Other,
            direction: IoDirection::None,
            uses: &["value", "target"],
            roles: &[Role::Finishes],
            origin: Origin::Both,
            doc: "ends when `target`, or else the whole process, has done `value` operations",
            example: "flowop statfile name=st,filesetname=data\nflowop finishoncount name=end,value=10,target=st",
        },
        build: |args| Finish::build(args, false),
    },
    FlowopEntry {
        spec: Flowop {
            name: "finishonbytes",
            class: Class::Other,
            direction: IoDirection::None,
            uses: &["value", "target"],
            roles: &[Role::Finishes],
            origin: Origin::Both,
            doc: "ends when `target`, or else the whole process, has moved more than `value` bytes",
            example: "flowop read name=rd,filename=data,iosize=4k,random\nflowop finishonbytes name=end,value=64k",
        },
        build: |args| Finish::build(args, true),
    },
];

impl Finish {
    fn build(args: &Args<'_>, bytes: bool) -> BuiltOp {
        let value = args.int("value", 0)?;
        Ok(Arc::new(Self { value, bytes, counter: Counter::new(args, false)?, target: args.text("target") }))
    }
}

#[derive(Clone, Debug)]
struct Finish {
    value: u64,
    bytes: bool,
    counter: Counter,
    target: Option<String>,
}

impl Op for Finish {
    fn instantiate<'r>(&'r self, at: &At<'_>) -> Box<dyn Step + 'r> {
        Box::new(Finish { counter: self.counter.clone().bind(at), ..self.clone() })
    }

    fn describe(&self) -> String {
        let target = self.target.as_ref().map_or(String::new(), |t| format!(" target={t}"));
        format!(" value={}{target}", self.value)
    }

    fn effects(&self) -> Effects {
        Effects { totals: self.counter.is_total(), ..Effects::default() }
    }

    fn non_blocking(&self) -> bool {
        true
    }
}

impl Step for Finish {
    fn run(&mut self, cx: &mut OpCx<'_>) -> Result<(), Stop> {
        cx.begin();
        let reached = if self.bytes { self.counter.bytes(cx) > self.value } else { self.counter.ops(cx) >= self.value };
        if reached { Err(StopReason::Finished.into()) } else { cx.end(0) }
    }
}

/// What has been done so far: by one flowop of the same thread, or by a whole process.
#[derive(Clone, Debug)]
pub(super) enum Counter {
    /// The counters of these flowops of the thread.
    Targets(Vec<usize>),
    /// The totals of the process.
    Totals {
        /// Only reads and writes count.
        io_only: bool,
        /// The counters of all its threads.
        peers: Vec<Peer>,
    },
}

impl Counter {
    /// From `target=`, which must name a flowop of the same thread; without it the process's totals.
    pub(super) fn new(args: &Args<'_>, io_only: bool) -> Result<Self, Diagnostic> {
        let targets = args.targets()?;
        if targets.is_empty() {
            return Ok(Self::totals(io_only));
        }
        let local: Vec<usize> = targets.iter().filter_map(|t| t.local).collect();
        if local.is_empty() {
            let message = format!("the target of `{}` is in another thread", args.name);
            return Err(Diagnostic::error(Code::UnknownTarget, args.at("target"), message)
                .help("it counts what its own thread does: name a flowop of the same thread, or none"));
        }
        Ok(Self::Targets(local))
    }

    pub(super) fn totals(io_only: bool) -> Self {
        Self::Totals { io_only, peers: Vec::new() }
    }

    pub(super) fn is_total(&self) -> bool {
        matches!(self, Self::Totals { .. })
    }

    pub(super) fn bind(self, at: &At<'_>) -> Self {
        match self {
            Self::Totals { io_only, .. } => Self::Totals { io_only, peers: at.peers.to_vec() },
            targets @ Self::Targets(_) => targets,
        }
    }

    pub(super) fn ops(&self, cx: &OpCx<'_>) -> u64 {
        match self {
            Self::Targets(cells) => cells.iter().map(|c| cx.account.stats.cell(*c).ops()).sum(),
            Self::Totals { io_only: true, peers } => {
                peers.iter().map(|p| p.io.iter().map(|c| p.stats.cell(*c).ops()).sum::<u64>()).sum()
            }
            Self::Totals { io_only: false, peers } => peers.iter().map(|p| p.stats.total_ops()).sum(),
        }
    }

    pub(super) fn bytes(&self, cx: &OpCx<'_>) -> u64 {
        match self {
            Self::Targets(cells) => cells.iter().map(|c| cx.account.stats.cell(*c).bytes()).sum(),
            Self::Totals { peers, .. } => peers.iter().map(|p| p.stats.total_bytes()).sum(),
        }
    }
}
