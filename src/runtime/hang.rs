//! Runs that do nothing any more because calls on files hold their threads.
//!
//! What each thread has done is looked at now and then from outside, so that threads publish nothing for it. Deliberately absent:
//! threads that wait for one another, which the controller sees by where they wait.

use super::shared::{Fault, FaultKind, Shared, ThreadSlot};
use crate::os::blocked;
use crate::util::{count, duration};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// How often it is looked whether threads do something, in nanoseconds.
const LOOK_NS: u64 = 500_000_000;

/// A run whose threads do nothing for less than this is not stuck, however short it is: xfs holds a thread that removes files
/// for two seconds while it frees their inodes.
const LEAST_NS: u64 = 3_000_000_000;

/// One whose threads do nothing for so long at its end is stuck, however long it is.
const MOST_NS: u64 = 10_000_000_000;

/// When each thread was last seen to have done something.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// The last look, in ticks.
    looked: u64,
    /// Operations of each thread then.
    ops: Vec<u64>,
    /// About when that last changed, in ticks.
    at: Vec<u64>,
}

impl Signs {
    /// Looks which threads have done something, if the last look is a while ago.
    pub(super) fn note(&mut self, shared: &Shared, from: u64, now: u64) {
        if self.ops.is_empty() {
            self.at = vec![from; shared.thread_slots.len()];
            self.ops = vec![0; shared.thread_slots.len()];
            self.looked = from;
        } else if shared.clock.ns(self.looked, now) < LOOK_NS {
            return;
        }
        let between = self.looked + now.saturating_sub(self.looked) / 2;
        for ((thread_slot, ops), at) in shared.thread_slots.iter().zip(&mut self.ops).zip(&mut self.at) {
            let done = thread_slot.stats.total_ops();
            if std::mem::replace(ops, done) != done {
                *at = between;
            }
        }
        self.looked = now;
    }

    /// That a run from `from` to `end` is stuck, and where, if it is.
    pub(super) fn stuck(&mut self, shared: &Shared, from: u64, end: u64) -> Option<Fault> {
        let now = shared.clock.raw();
        self.note(shared, from, now);
        // Threads that live on may wait for one another; those of a run that has ended have all been told so, and those that have
        // not come back wait for a processor or are held.
        let over = shared.gate.is_stopped();
        let held = |thread_slot: &ThreadSlot| {
            let tid = thread_slot.tid.load(Relaxed);
            !thread_slot.done.load(SeqCst) && if over { blocked::sleeps(tid) } else { blocked::path_of(tid).is_some() }
        };
        // Of a run that is over, who has not come back and sleeps may wait for who has not and wants a processor: for a lock of the
        // file system that one has.
        let wants_processor = |thread_slot: &ThreadSlot| {
            !thread_slot.done.load(SeqCst) && !blocked::sleeps(thread_slot.tid.load(Relaxed))
        };
        if over && shared.thread_slots.iter().any(wants_processor) {
            return None;
        }
        let thread_slots = shared.thread_slots.iter().zip(&self.at).map(|(thread_slot, at)| {
            let idle = shared.clock.ns((*at).max(from), now);
            (thread_slot, idle, idle >= LEAST_NS && held(thread_slot))
        });
        let thread_slots: Vec<_> = thread_slots.collect();
        if !is_stuck(shared.clock.ns(from, end), thread_slots.iter().map(|(_, idle, held)| (*idle, *held))) {
            return None;
        }
        let held = thread_slots.iter().filter(|(_, _, held)| *held).count();
        let (thread_slot, idle, _) =
            thread_slots.iter().filter(|(_, _, held)| *held).max_by_key(|(_, idle, _)| *idle)?;
        let thread = &shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        let what = format!(
            "{held} of {} are stuck in a call, the longest for {}",
            count::count(shared.thread_slots.len() as u64, "thread"),
            duration::seconds(*idle as f64 / 1e9)
        );
        let help = "the file system or its device does not answer: look into the kernel's log";
        Some(Fault {
            flowop: Some(thread.first + thread_slot.at.load(Relaxed) as usize),
            path: blocked::path_of(thread_slot.tid.load(Relaxed)).map(|path| path.display().to_string()),
            ..Fault::plain(FaultKind::Stuck, what, help)
        })
    }
}

/// Whether a run is stuck: `idle` is for how long each of its threads had done nothing when it had ended, in nanoseconds, and
/// whether a call still holds it. All did nothing for the last quarter of the time, or one nothing for half of it.
fn is_stuck(measured_ns: u64, idle: impl Iterator<Item = (u64, bool)> + Clone) -> bool {
    let longest = idle.clone().filter(|(_, held)| *held).map(|(ns, _)| ns).max();
    let shortest = idle.map(|(ns, _)| ns).min();
    let (Some(longest), Some(shortest)) = (longest, shortest) else { return false };
    longest >= (measured_ns / 2).max(LEAST_NS) || shortest >= (measured_ns / 4).clamp(LEAST_NS, MOST_NS)
}

#[cfg(test)]
mod tests {
    use super::is_stuck;

    #[test]
    fn a_run_is_stuck_by_what_its_threads_did_in_its_last_part() {
        let stuck = |seconds: f64, threads: &[(f64, bool)]| {
            is_stuck((seconds * 1e9) as u64, threads.iter().map(|(idle, held)| ((idle * 1e9) as u64, *held)))
        };
        assert!(!stuck(10.0, &[(9.0, false), (9.0, false)]), "they waited for one another, and have come back");
        assert!(stuck(10.0, &[(4.9, true), (4.9, true)]), "all hung half-way");
        assert!(!stuck(10.0, &[(2.0, true), (2.0, true)]), "a slow call at the end");
        assert!(stuck(10.0, &[(5.1, true), (0.1, false)]), "one hung for half of the time");
        assert!(!stuck(10.0, &[(4.0, true), (0.1, false)]), "one hung for less");
        assert!(!stuck(1.0, &[(1.3, true)]), "a short run with a slow call");
        assert!(stuck(600.0, &[(10.3, true)]) && !stuck(600.0, &[(9.0, true)]));
        assert!(!stuck(600.0, &[(10.3, true), (0.3, false)]));
    }
}
