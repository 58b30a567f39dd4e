//! The threads that have not ended when a run is over: the operations that they have in flight, and where they hang.
//!
//! Deliberately absent: whether the run is stuck (`hang`).

use super::running::{Running, Sample};
use super::shared::ThreadSlot;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use wml_language::spec::Class;
use wml_os::{blocked, proc};

/// A thread that had not ended when its counters were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnfinishedThread {
    /// The index of its flowop in the plan.
    pub flowop: usize,
    /// The number of its operations that were in flight then, and so are in none of its counters. Approximate for
    /// asynchronous operations that complete while the counters are read.
    pub in_flight: u64,
    /// The approximate tick at which it had last completed an operation. `None` if it has none in flight, or waits for
    /// another thread.
    pub last_progress: Option<u64>,
}

/// A thread that has not returned from a system call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckThread {
    /// The index of its flowop in the plan.
    pub flowop: usize,
    /// The number of the process instance.
    pub instance: usize,
    /// The number of the thread in its definition.
    pub number: usize,
    /// The thread ID.
    pub tid: i32,
    /// The kernel function in which it waits.
    pub wait_channel: Option<String>,
    /// The file of its system call, if the kernel shows it.
    pub path: Option<String>,
}

impl Running {
    /// Returns the counters since the start of the measurement, with the threads that had not ended when their counters
    /// were read. A thread may end at any moment; so that its last operation is counted once, its counters decide
    /// whether that operation was still in flight.
    pub fn measured_at_end(&self) -> Sample {
        let shared = &self.shared;
        let end = shared.clock.raw().min(shared.gate.deadline());
        let activity = self.activity.lock();
        let mut unfinished = Vec::new();
        let sample = self.sample_by(|index, thread_slot, flowops| {
            // Read before the counters: a thread that has ended has counted all of its operations, and operations that
            // complete after this are among the late ones of the counters.
            let (done, awaited) = (thread_slot.done.load(SeqCst), thread_slot.in_flight.load(Acquire));
            let late = self.add_counters(thread_slot, flowops);
            // A thread that waits for its phase has begun no operation.
            if done || !shared.phases.has_begun(thread_slot.process) {
                return;
            }
            unfinished.extend(self.flowop_of(thread_slot).map(|flowop| {
                let in_flight = in_flight(awaited, late);
                let is_in_call = in_flight > 0 && !self.waits_for_others(thread_slot);
                let progress = || activity.last_progress(index, thread_slot.stats.total_ops(), self.from(), end);
                UnfinishedThread { flowop, in_flight, last_progress: is_in_call.then(progress) }
            }));
        });
        // Before the gate opens, no thread has begun an operation.
        if !self.has_begun() {
            unfinished.clear();
        }
        self.since_start(Sample { unfinished, ..sample })
    }

    /// True if a thread waits for another one: at a semaphore or a latch, or for a file.
    pub(super) fn waits_for_others(&self, thread_slot: &ThreadSlot) -> bool {
        let is_in_sync = || self.flowop_of(thread_slot).is_some_and(|flowop| self.is_sync(flowop));
        thread_slot.starves.load(SeqCst) || is_in_sync() && !self.awaits_its_start(thread_slot)
    }

    /// True if a thread of an open loop sleeps until its next iteration.
    pub(super) fn awaits_its_start(&self, thread_slot: &ThreadSlot) -> bool {
        let thread = &self.shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        thread.pace.is_some() && thread_slot.arrivals.are_between()
    }

    /// True if a flowop, given its index in the plan, waits at a semaphore or a latch.
    pub(super) fn is_sync(&self, flowop: usize) -> bool {
        self.shared.plan.flowops[flowop].class == Class::Sync
    }

    /// Returns the index in the plan of the flowop that a thread executes. `None` for a thread without flowops.
    pub(super) fn flowop_of(&self, thread_slot: &ThreadSlot) -> Option<usize> {
        let thread = &self.shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        (thread.count > 0).then(|| thread.first + thread_slot.at.load(Relaxed) as usize)
    }

    /// Returns the threads that have not ended. Before the gate was opened, a thread that fills its buffer is none of
    /// them: it ends by itself.
    pub fn stragglers(&self) -> Vec<StuckThread> {
        let has_begun = self.has_begun();
        let is_blocked = |tid: i32| tid > 0 && blocked::sleeps(tid);
        self.shared
            .thread_slots
            .iter()
            .filter(|s| !s.done.load(SeqCst) && (has_begun || is_blocked(s.tid.load(Relaxed))))
            .filter_map(|s| {
                let (flowop, tid) = (self.flowop_of(s)?, s.tid.load(Relaxed));
                Some(StuckThread {
                    flowop,
                    instance: s.instance,
                    number: s.number,
                    tid,
                    wait_channel: proc::wait_channel(tid),
                    path: blocked::path_of(tid).map(|path| path.display().to_string()),
                })
            })
            .collect()
    }
}

/// Returns the number of operations that a thread has in flight, given its late operations: the asynchronous ones for
/// which it waits ([`awaited`](crate::exec::aio::awaited)), if it waits for any, else one, unless that is among its
/// late operations.
fn in_flight(awaited: u64, late: u64) -> u64 {
    let (late_before, waits_for) = (awaited >> 32, awaited & u64::from(u32::MAX));
    if waits_for > 0 {
        // What has completed since is already among the late operations.
        waits_for.saturating_sub(late.saturating_sub(late_before))
    } else {
        u64::from(late == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::in_flight;
    use crate::exec::aio::awaited;

    #[test]
    fn an_operation_is_late_or_in_flight() {
        assert_eq!((in_flight(0, 0), in_flight(0, 1)), (1, 0), "one operation, which has not ended or has");
        let of = |waits_for, before, late| in_flight(awaited(waits_for, before), late);
        assert_eq!((of(3, 0, 0), of(2, 1, 1)), (3, 2), "asynchronous operations");
        assert_eq!((of(3, 0, 2), of(3, 1, 4)), (1, 0), "some completed while the counters were read");
    }
}
