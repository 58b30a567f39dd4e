//! Counted iterations: `stonewall=` and `iterationsof=` of threads.
//!
//! A tally counts the iterations of the threads of one definition on all ranks. When the time of `stonewall=` is over,
//! each thread completes its iteration and reports how many it has made. When all have reported, all go on to the
//! largest number. A thread that ends for another reason reports when it ends, so that the others do not wait for it.
//! The last thread of a rank then stays in its phase until those of all ranks have reported: the rate of the phase is
//! that of all the work, including that of the slowest rank.
//!
//! `iterationsof=` reads the number of a definition of an earlier phase. Not here: the exchange between ranks
//! (`ranks`).

use super::meeting::MeetingPoint;
use super::shared::{Shared, ThreadSlot};
use crate::exec::{OpCx, View};
use crate::plan::Plan;
use crate::sync::{Latch, NEVER, Stopped};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The iterations of the threads of one definition.
#[derive(Debug)]
struct IterationTally {
    reported: Mutex<IterationReports>,
    /// The largest number of iterations of a thread, on any rank, once all have reported.
    largest: OnceLock<u64>,
    /// The latch at which the threads wait. Each thread that passes raises it for the next one.
    known: Latch,
}

/// The reports of the threads of a definition on this rank.
#[derive(Debug)]
struct IterationReports {
    /// The number of threads that have not reported.
    missing: usize,
    largest: u64,
}

/// The tallies of a run.
#[derive(Debug)]
pub(super) struct IterationTallies {
    /// By thread definition; `None` for one that has nothing to do with `stonewall=` and `iterationsof=`.
    tallies: Vec<Option<IterationTally>>,
    /// Index of the first thread definition of each process.
    first: Vec<usize>,
    /// The number of threads that wait for others to report.
    waiting: AtomicUsize,
}

impl IterationTallies {
    pub(super) fn new(plan: &Plan) -> Self {
        let (mut tallies, mut first) = (Vec::new(), Vec::new());
        let counted: HashSet<usize> = plan.threads().filter_map(|(_, thread)| thread.iterations_of).collect();
        for process in &plan.processes {
            first.push(tallies.len());
            for thread in &process.threads {
                let is_limited = thread.stonewall.is_some() || thread.iterations_of.is_some();
                let is_counted = is_limited || counted.contains(&tallies.len());
                let missing = process.instances as usize * thread.instances as usize;
                tallies.push(is_counted.then(|| IterationTally {
                    reported: Mutex::new(IterationReports { missing, largest: 0 }),
                    largest: OnceLock::new(),
                    known: Latch::default(),
                }));
            }
        }
        Self { tallies, first, waiting: AtomicUsize::new(0) }
    }

    /// Returns the number of a thread's definition among those of the script.
    pub(super) fn definition_of(&self, thread_slot: &ThreadSlot) -> usize {
        self.first[thread_slot.process] + thread_slot.thread
    }

    /// True if a thread waits for others to report.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }

    /// Reports to the other ranks that this one has no threads of the definitions that have none here, so that theirs
    /// do not wait. Called when the run begins.
    pub(super) fn report_absent(&self, shared: &Shared) {
        if self.tallies.iter().all(Option::is_none) {
            return;
        }
        for (index, tally) in self.tallies.iter().enumerate() {
            if tally.as_ref().is_none_or(|tally| tally.reported.lock().missing == 0) {
                shared.arrive(point(index));
            }
        }
    }

    /// Reports the iterations of one thread. The last thread of this rank waits for the other ranks.
    fn report(&self, index: usize, iterations: u64, shared: &Shared) {
        let Some(tally) = &self.tallies[index] else { return };
        let largest = {
            let mut reported = tally.reported.lock();
            reported.largest = reported.largest.max(iterations);
            reported.missing = reported.missing.saturating_sub(1);
            if reported.missing > 0 {
                return;
            }
            reported.largest
        };
        if let Some(meeting) = self.awaiting(|| shared.meet(point(index), largest)) {
            // A second thread that has met the other ranks has the same number.
            let _ = tally.largest.set(meeting.largest);
            tally.known.raise();
        }
    }

    /// Waits until all threads of a definition have reported, and returns the largest number of iterations. `Err` when
    /// the run has stopped.
    fn wait(&self, index: usize, shared: &Shared) -> Result<u64, Stopped> {
        let Some(tally) = &self.tallies[index] else { return Ok(0) };
        if let Some(largest) = tally.largest.get() {
            return Ok(*largest);
        }
        let own = {
            let reported = tally.reported.lock();
            (reported.missing == 0).then_some(reported.largest)
        };
        if let Some(own) = own {
            // The last thread is at the meeting, or this rank has no thread. A second report changes nothing.
            let meeting = self.awaiting(|| shared.meet(point(index), own));
            return meeting.map(|meeting| meeting.largest).ok_or(Stopped);
        }
        self.awaiting(|| tally.known.pass())?;
        tally.known.raise();
        tally.largest.get().copied().ok_or(Stopped)
    }

    /// Does a wait, which is no deadlock of the threads of this rank alone.
    fn awaiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.waiting.fetch_add(1, SeqCst);
        let result = wait();
        self.waiting.fetch_sub(1, SeqCst);
        result
    }

    /// Stops the run: ends all waits.
    pub(super) fn close(&self) {
        self.tallies.iter().flatten().for_each(|tally| tally.known.close());
    }
}

/// Returns the point at which ranks meet for a thread definition.
fn point(index: usize) -> MeetingPoint {
    MeetingPoint::Iterations(u32::try_from(index).unwrap_or(u32::MAX))
}

/// The number of iterations that a thread may make.
pub(super) struct IterationLimit<'a> {
    shared: &'a Shared,
    /// The index of the thread's definition, if its iterations are counted and it has not reported them.
    unreported: Option<usize>,
    /// The index of the definition whose iterations are the limit.
    iterations_of: Option<usize>,
    /// The tick at which the stonewall is reached; [`NEVER`] if there is none.
    stonewall: u64,
    /// The number of completed iterations.
    completed: u64,
    /// The number of iterations to make; [`NEVER`] while it is not known.
    most: u64,
}

impl<'a> IterationLimit<'a> {
    /// Returns the limit of a thread. `None` for a thread whose iterations are neither limited nor counted.
    pub(super) fn of(shared: &'a Shared, thread_slot: &ThreadSlot) -> Option<Self> {
        let index = shared.iterations.definition_of(thread_slot);
        let thread = &shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        let unreported = shared.iterations.tallies[index].as_ref().map(|_| index);
        let limit = Self {
            shared,
            unreported,
            iterations_of: thread.iterations_of,
            stonewall: NEVER,
            completed: 0,
            most: NEVER,
        };
        (unreported.is_some() || thread.iterations_of.is_some()).then_some(limit)
    }

    /// Starts the limit of a thread whose phase began at a tick. Returns whether an iteration may begin. `Err` when the
    /// run has stopped.
    pub(super) fn start(&mut self, began: u64, thread_slot: &ThreadSlot) -> Result<bool, Stopped> {
        let shared = self.shared;
        let thread = &shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        if let Some(time) = thread.stonewall {
            self.stonewall = began.saturating_add(shared.clock.ticks(time.as_nanos() as u64));
        }
        if let Some(other) = self.iterations_of {
            self.most = shared.iterations.wait(other, shared)?;
        }
        Ok(self.most > 0)
    }

    /// Accounts for the end of an iteration. Returns whether the next one may begin. At the stonewall it first waits
    /// for the other threads. `Err` when the run has stopped.
    pub(super) fn end_iteration(&mut self, cx: &mut OpCx<'_>, views: &[View]) -> Result<bool, Stopped> {
        self.completed += 1;
        if self.shared.clock.raw() >= self.stonewall {
            self.catch_up(cx, views)?;
        }
        Ok(self.completed < self.most)
    }

    /// Reports the iterations at the stonewall, and waits for those of the other threads. While it waits, the thread
    /// does not count as a maker of files for which others wait.
    #[cold]
    fn catch_up(&mut self, cx: &mut OpCx<'_>, views: &[View]) -> Result<(), Stopped> {
        self.stonewall = NEVER;
        let Some(index) = self.unreported.take() else { return Ok(()) };
        let (shared, iterations) = (self.shared, &self.shared.iterations);
        cx.files.starvation.leave(views);
        iterations.report(index, self.completed, shared);
        let largest = iterations.wait(index, shared);
        cx.files.starvation.enter(views);
        // The wait is not time of the program between two operations.
        let now = shared.clock.raw();
        cx.begin_at(now);
        cx.account.started = now;
        self.most = self.most.min(largest?);
        Ok(())
    }

    /// Reports the iterations of a thread that ends before its stonewall, or has none. `partial`: 1 if its last
    /// iteration counts although it has not executed all steps.
    pub(super) fn end(mut self, partial: u64) {
        if let Some(index) = self.unreported.take() {
            self.shared.iterations.report(index, self.completed + partial, self.shared);
        }
    }
}
