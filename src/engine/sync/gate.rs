//! The start gate and the deadline of a run.
//!
//! Threads arrive, wait until all of them have arrived, and start together. From then on the deadline decides, in ticks
//! of the clock: an operation counts if it ends before it. A run is stopped early by setting the deadline to the
//! current time.
//!
//! So the check for the end of a run is a comparison with one word that no thread writes during the run: after its
//! first read it stays in the cache of each processor, in the shared state. `CachePadded` keeps written words out of
//! its cache line. The load is `Relaxed`, since the deadline is only compared with a time and no other data is read
//! because of it; a late view of an earlier deadline lasts no longer than the transfer of a cache line. No count of
//! stopped threads, channel or second flag is checked on the path of an operation.

use super::{AtomicU32, AtomicU64, Clock, wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

/// The deadline of a run without a time limit.
pub const NEVER: u64 = u64::MAX;

/// The gate of one run.
#[derive(Debug)]
pub struct Gate {
    deadline: CachePadded<AtomicU64>,
    /// The tick at which the gate opened; 0 before.
    opened: AtomicU64,
    /// 0 closed, 1 open. A futex word.
    open: CachePadded<AtomicU32>,
    /// The number of threads that are ready. A futex word.
    ready: CachePadded<AtomicU32>,
    /// 0 running, 1 stopped. A futex word on which [`Gate::sleep_until`] sleeps.
    stopped: CachePadded<AtomicU32>,
    /// The tick of the earliest stop; [`NEVER`] before.
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
    /// Returns a closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts the thread as ready and waits until the gate opens. Returns false if the run has stopped before it began.
    ///
    /// `Acquire` pairs with `Release` in [`Gate::open`]: a thread that passes sees the opening tick, which is stored
    /// with `Relaxed`, and the deadline.
    pub fn arrive(&self) -> bool {
        self.count_ready();
        while self.open.load(Acquire) == 0 {
            wait(&self.open, 0, None);
        }
        !self.is_stopped()
    }

    /// Counts a thread as ready without waiting: one that could not be prepared and will not arrive.
    ///
    /// `Release` pairs with `Acquire` in [`Gate::wait_ready`]: the controller sees everything that the thread has
    /// prepared.
    pub(crate) fn count_ready(&self) {
        self.ready.fetch_add(1, Release);
        wake(&self.ready, 1);
    }

    /// Waits until `n` threads are ready, for at most `timeout`; it may return early. Returns the number of ready
    /// threads.
    pub fn wait_ready(&self, n: u32, timeout: Duration) -> u32 {
        let ready = self.ready.load(Acquire);
        if ready < n {
            wait(&self.ready, ready, Some(timeout));
        }
        self.ready.load(Acquire)
    }

    /// Opens the gate at this tick and wakes all waiting threads.
    pub fn open(&self, tick: u64) {
        // A second call, which only releases threads that are still waiting, must not change the start of schedules.
        let _ = self.opened.compare_exchange(0, tick, Relaxed, Relaxed);
        self.open.store(1, Release);
        wake(&self.open, u32::MAX);
    }

    /// Returns the tick at which the gate opened, for threads that have passed it. Schedules start from this tick. A
    /// schedule that started when the thread first got a processor would depend on the load of the machine.
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// Returns the tick at which the run ends. `Relaxed`: see the module's documentation.
    #[inline]
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Relaxed)
    }

    /// Sets the tick at which the run ends. A run that has been stopped meanwhile stays stopped.
    ///
    /// The accesses here and in [`Gate::stop`] are `SeqCst`, because each function writes one word and then looks at
    /// the other's: this one stores the deadline and reads `stopped`, `stop` stores `stopped` and lowers the deadline.
    /// Either this function sees the stop and lowers the deadline itself, or `stop` lowers it after this store. With
    /// weaker orderings both could miss the other, and a stopped run would go on.
    pub fn set_deadline(&self, tick: u64) {
        self.deadline.store(tick, SeqCst);
        if self.is_stopped() {
            self.deadline.fetch_min(self.stopped_at.load(SeqCst), SeqCst);
        }
    }

    /// Ends the run at `tick`, or at its deadline if that is earlier, and wakes the threads that sleep in
    /// `Gate::sleep_until`.
    pub fn stop(&self, tick: u64) {
        self.stopped_at.fetch_min(tick, SeqCst);
        self.stopped.store(1, SeqCst);
        self.deadline.fetch_min(tick, SeqCst);
        wake(&self.stopped, u32::MAX);
    }

    /// True if [`Gate::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst) != 0
    }

    /// Sleeps until the clock shows `tick`, and returns false; or until the run stops, and returns true.
    pub(crate) fn sleep_until(&self, clock: &Clock, tick: u64) -> bool {
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
