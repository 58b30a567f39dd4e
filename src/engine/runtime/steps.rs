//! The program of a thread: the steps of the plan with the thread's own state.
//!
//! Deliberately absent: their order, which `worker` follows.

use crate::exec::{OpCx, Stop};
use crate::flowop::{self, StepInit};
use crate::plan;
use crate::random::{self, Quantity, Rng, Shuffle};
use crate::stats::recorder::{Cell, ThreadStats};
use crate::sync::Gathering;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// A step of the program with this thread's state.
///
/// `repr(u8)`: the discriminant is a separate byte instead of a niche in a field of the variants, so that the check of
/// each step's kind is one comparison with a byte.
#[repr(u8)]
pub(super) enum ThreadStep<'r> {
    /// A flowop that is executed once per iteration, which nearly all flowops are.
    Once(ThreadFlowop<'r>),
    Many(ThreadFlowop<'r>, Quantity),
    Enter {
        iters: Quantity,
        leave: usize,
    },
    Leave {
        enter: usize,
    },
    Choose {
        cumulative: Vec<f64>,
        starts: Vec<usize>,
        end: usize,
        /// The state of draws without replacement, if the mix has `shuffle`.
        lap: Option<Shuffle>,
    },
    Detour(Detour<'r>),
}

/// A step that only says where the thread goes on.
pub(super) enum Detour<'r> {
    Jump(usize),
    Gather { group: &'r Gathering, release: usize },
    Release,
}

/// A flowop of a thread: its index in the thread, its counters, and whether it has a response time in an open loop.
pub(super) struct ThreadFlowop<'r> {
    local: u32,
    cell: &'r Cell,
    pub(super) io: bool,
    step: Box<dyn flowop::Step + 'r>,
}

/// Returns a step of the plan with the state that a thread needs for it.
pub(super) fn instantiate<'r>(
    step: &'r plan::PlanStep,
    init: &StepInit<'_>,
    stats: &'r ThreadStats,
    is_io: &dyn Fn(usize) -> bool,
    groups: &'r [Gathering],
) -> ThreadStep<'r> {
    match step {
        plan::PlanStep::Op { local, iters, op } => {
            let (local, step) = (*local, op.instantiate(init));
            let flowop = ThreadFlowop { local: local as u32, cell: stats.cell(local), io: is_io(local), step };
            if matches!(iters, Quantity::Const(1)) {
                ThreadStep::Once(flowop)
            } else {
                ThreadStep::Many(flowop, iters.clone())
            }
        }
        plan::PlanStep::Enter { iters, leave, .. } => ThreadStep::Enter { iters: iters.clone(), leave: *leave },
        plan::PlanStep::Leave { enter } => ThreadStep::Leave { enter: *enter },
        plan::PlanStep::Choose { upto, starts, end, shuffled } => ThreadStep::Choose {
            cumulative: upto.clone(),
            starts: starts.clone(),
            end: *end,
            lap: shuffled.then(Shuffle::new),
        },
        plan::PlanStep::Jump(to) => ThreadStep::Detour(Detour::Jump(*to)),
        plan::PlanStep::Gather { group, release } => {
            ThreadStep::Detour(Detour::Gather { group: &groups[*group], release: *release })
        }
        plan::PlanStep::Release => ThreadStep::Detour(Detour::Release),
    }
}

impl<'r> ThreadFlowop<'r> {
    #[inline]
    pub(super) fn run(&mut self, cx: &mut OpCx<'r>, at: &AtomicU32) -> Result<(), Stop> {
        cx.switch_to(self.cell);
        at.store(self.local, Relaxed);
        self.step.run(cx)
    }
}

impl<'r> Detour<'r> {
    /// Returns the index of the next step after the one at `pc`. A thread that is to execute for a group holds its guard.
    /// `Err` when the run is over.
    #[inline(never)]
    pub(super) fn next(&self, pc: usize, cx: &mut OpCx<'r>) -> Result<usize, Stop> {
        let to = match self {
            Self::Jump(to) => return Ok(*to),
            Self::Gather { group, release } => return Ok(if cx.gather(group)? { pc + 1 } else { release + 1 }),
            Self::Release => {
                cx.gathering = None;
                pc + 1
            }
        };
        cx.restamp();
        Ok(to)
    }
}

/// Draws a branch of a mix, and returns the index of its first step.
pub(super) fn choose(
    rng: &mut Rng,
    cumulative: &[f64],
    starts: &[usize],
    end: usize,
    lap: Option<&mut Shuffle>,
) -> usize {
    let sum = cumulative.last().copied().unwrap_or(0.0);
    let drawn = match lap {
        Some(lap) if sum >= 1.0 => lap.draw(rng, sum as u64) as f64,
        _ => random::unit(rng) * sum,
    };
    let i = cumulative.partition_point(|w| *w <= drawn);
    starts.get(i).copied().unwrap_or(end)
}
