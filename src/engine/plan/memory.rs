//! The memory of a thread's buffers: what it certainly needs, and what it may need.
//!
//! A run that needs more memory than there is, is refused. So what depends on the course of the run counts only as
//! possible: the size of the largest file that is transferred as a whole, and asynchronous operations in flight without
//! `iodepth=`.

use super::{Plan, PlanStep, Thread};
use crate::disk::Fileset;
use crate::exec::Aio;
use crate::fileset::Tree;
use crate::random::Quantity;
use std::sync::Arc;
use wml_language::spec::IoDirection;

/// A number of bytes that are certainly needed, and the most that may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryNeed {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// Returns the bytes of a thread's buffers. Without `sets` the sizes of files are not known.
pub(super) fn buffers(plan: &Plan, thread: &Thread, sets: &[Arc<Fileset>]) -> MemoryNeed {
    let effects = &thread.effects;
    let own = if thread.memsize > 0 {
        MemoryNeed { least: thread.memsize, most: thread.memsize }
    } else {
        let files = whole_files(plan, thread, sets);
        MemoryNeed { least: effects.buffer.max(files.least), most: effects.buffer.max(files.most) }
    };
    // A part for each kind of data, and one to read into.
    let parts = 1 + plan.separate_data(thread).len() as u64;
    let (least, most) = effects.aio.map_or((0, 0), |aio| (aio.memory(), aio.memory_of(in_flight(&thread.steps, aio))));
    let all = |own: u64, aio: u64| own.saturating_mul(parts).saturating_add(aio);
    MemoryNeed { least: all(own.least, least), most: all(own.most, most.max(least)) }
}

/// Returns the size of the files that a thread transfers by one call each: the median of the sizes, which nearly every
/// thread meets, and the largest. What a `writewholefile` writes can be the size of another file of the thread.
fn whole_files(plan: &Plan, thread: &Thread, sets: &[Arc<Fileset>]) -> MemoryNeed {
    let mut need = MemoryNeed { least: 0, most: 0 };
    let mut add = |used: &[usize]| {
        let trees: Vec<&Tree> = used.iter().filter_map(|set| sets.get(*set)).map(|set| &*set.tree).collect();
        need.least = need.least.max(trees.iter().map(|tree| tree.median_size()).min().unwrap_or(0));
        need.most = need.most.max(trees.iter().map(|tree| tree.largest_size()).max().unwrap_or(0));
    };
    let mut writes = false;
    for step in &thread.steps {
        let PlanStep::Op { local, iters, op } = step else { continue };
        if matches!(iters, Quantity::Const(0)) || !op.effects().whole_files {
            continue;
        }
        let info = &plan.flowops[thread.first + local];
        if info.direction == IoDirection::Read {
            add(&info.sets);
        } else {
            writes = true;
        }
    }
    if writes {
        add(&thread.effects.sets);
    }
    need
}

/// Returns the largest number of asynchronous operations that a thread can have in flight. Each `aiowait` waits for
/// half of them; so if each iteration has one, there are never more than twice as many as an iteration submits.
fn in_flight(steps: &[PlanStep], aio: Aio) -> u64 {
    let (mut submitted, mut waits) = (0_u64, false);
    // For each composite around a step, whether it is certainly executed, and how often at most.
    let mut repeats = vec![(true, 1_u64)];
    // The end of the mix around a step, whose alternatives are not executed in each iteration.
    let mut mix_end = 0;
    for (pc, step) in steps.iter().enumerate() {
        let (is_certain, times) = repeats.last().copied().unwrap_or((true, 1));
        let highest = |iters: &Quantity| times.saturating_mul(iters.max_hint().unwrap_or(u64::MAX));
        match step {
            PlanStep::Enter { iters, .. } => repeats.push((is_certain && iters.min_hint() > 0, highest(iters))),
            PlanStep::Leave { .. } => {
                repeats.pop();
            }
            PlanStep::Choose { end, .. } => mix_end = mix_end.max(*end),
            PlanStep::Jump(_) | PlanStep::Gather { .. } | PlanStep::Release => {}
            PlanStep::Op { iters, op, .. } => match op.effects().aio {
                Some(Aio { depth: 0, .. }) => waits |= pc >= mix_end && is_certain && iters.min_hint() > 0,
                Some(_) => submitted = submitted.saturating_add(highest(iters)),
                None => {}
            },
        }
    }
    if waits { aio.depth.min(submitted.saturating_mul(2)) } else { aio.depth }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flowop::{Effects, stateless};

    /// An operation that submits asynchronous I/O, or with a depth of 0 waits for it.
    fn op(depth: u64, iters: u64) -> PlanStep {
        let effects = Effects { aio: Some(Aio { depth, size: 4096, bounded: false }), ..Effects::default() };
        let op = stateless(String::new(), effects, |_| Ok(()));
        PlanStep::Op { local: 0, iters: Quantity::Const(iters), op }
    }

    #[test]
    fn waits_limit_the_operations_in_flight() {
        let aio = Aio { depth: 256, size: 4096, bounded: false };
        let (submit, wait) = (|iters| op(256, iters), |iters| op(0, iters));
        assert_eq!(in_flight(&[submit(1)], aio), 256);
        assert_eq!(in_flight(&[submit(5), wait(1)], aio), 10);
        assert_eq!(in_flight(&[submit(1000), wait(1)], aio), 256);
        assert_eq!(in_flight(&[submit(5), wait(0)], aio), 256, "it is never executed");
        let composite = |n| {
            [
                PlanStep::Enter { name: None, iters: Quantity::Const(n), leave: 2 },
                submit(2),
                PlanStep::Leave { enter: 0 },
            ]
        };
        assert_eq!(in_flight(&[&composite(3)[..], &[wait(1)][..]].concat(), aio), 12);
        let mix = PlanStep::Choose { upto: vec![1.0, 2.0], starts: vec![1, 3], end: 4, shuffled: false };
        assert_eq!(in_flight(&[mix, submit(1), PlanStep::Jump(4), wait(1)], aio), 256, "not in each iteration");
    }
}
