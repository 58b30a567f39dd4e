//! The start gate and the end of a run.
//!
//! Threads arrive, wait until all have, and start together. From then on one number rules: the deadline, in clock ticks. An
//! operation counts if it ends before it. Stopping a run early is moving the deadline to now, so that a thread looks at one
//! shared word, which nobody writes while the run goes on.

use super::{AtomicU32, AtomicU64, Clock, wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

/// A deadline that never comes.
pub const NEVER: u64 = u64::MAX;

/// The gate of one run.
#[derive(Debug)]
pub struct Gate {
    deadline: CachePadded<AtomicU64>,
    /// The tick at which it opened.
    opened: AtomicU64,
    /// 0 closed, 1 open. A futex.
    open: CachePadded<AtomicU32>,
    /// Threads that are ready. A futex.
    ready: CachePadded<AtomicU32>,
    /// 0 running, 1 stopped. A futex that sleepers wait on.
    stopped: CachePadded<AtomicU32>,
    /// The tick of the earliest stop.
    stopped_at: AtomicU64,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            deadline: AtomicU64::new(NEVER).into(),
            opened: AtomicU64::new(0),
            open: AtomicU32::new(0).into(),
            ready: AtomicU32::new(0).into(),
            stopped: AtomicU32::new(0).into(),
            stopped_at: AtomicU64::new(NEVER),
        }
    }
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// A thread is ready: waits until the gate opens. False if the run has stopped before it began.
    pub fn arrive(&self) -> bool {
        self.count_ready();
        while self.open.load(Acquire) == 0 {
            wait(&self.open, 0, None);
        }
        !self.is_stopped()
    }

    /// A thread will not come (it failed to get ready).
    pub fn count_ready(&self) {
        self.ready.fetch_add(1, Release);
        wake(&self.ready, 1);
    }

    /// Waits until `n` threads are ready, for at most `timeout`. Returns how many are.
    pub fn wait_ready(&self, n: u32, timeout: Duration) -> u32 {
        let ready = self.ready.load(Acquire);
        if ready < n {
            wait(&self.ready, ready, Some(timeout));
        }
        self.ready.load(Acquire)
    }

    /// Lets everybody go, at this tick.
    pub fn open(&self, tick: u64) {
        // Whoever opens it once more, so that nobody is left behind it, changes no schedule.
        let _ = self.opened.compare_exchange(0, tick, Relaxed, Relaxed);
        self.open.store(1, Release);
        wake(&self.open, u32::MAX);
    }

    /// The tick at which it opened, for those that it let go. Schedules count from there: from when a thread first gets a
    /// processor after that, they would say something else on a busy machine.
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// The tick at which the run ends.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
    }

    /// Sets the tick at which the run ends.
    /// A run that was stopped meanwhile stays stopped.
    pub fn set_deadline(&self, tick: u64) {
        self.deadline.store(tick, SeqCst);
        if self.is_stopped() {
            self.deadline.fetch_min(self.stopped_at.load(SeqCst), SeqCst);
        }
    }

    /// Ends the run at `tick` (or earlier, if it was to end earlier), and wakes who sleeps in [`Gate::sleep_until`].
    pub fn stop(&self, tick: u64) {
        self.stopped_at.fetch_min(tick, SeqCst);
        self.stopped.store(1, SeqCst);
        self.deadline.fetch_min(tick, SeqCst);
        wake(&self.stopped, u32::MAX);
    }

    /// Whether [`Gate::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst) != 0
    }

    /// Sleeps until the clock shows `tick`, or the run stops: then true.
    pub fn sleep_until(&self, clock: &Clock, tick: u64) -> bool {
        loop {
            if self.is_stopped() {
                return true;
            }
            let now = clock.raw();
            if now >= tick {
                return false;
            }
            wait(&self.stopped, 0, Some(Duration::from_nanos(clock.ns(now, tick))));
        }
    }
}
