//! The two semaphores behind `semblock` and `sempost`, as one kind: a counter that can be added to and taken from.
//!
//! Filebench's protocol: every instance of a `semblock` has a low-water and a high-water semaphore. A post adds to the low
//! one, which the blocker takes from; a *blocking* post first takes from the high one, which the blocker adds to.
//!
//! The futex word is the counter itself, so a sleeper can't miss a change: the kernel refuses to sleep when the word is no
//! longer what the sleeper saw. A sleeper says how many it needs, so that posts of one do not wake a blocker that waits for
//! a thousand.

use super::{AtomicU32, Stopped, WOKEN_AT_ONCE, wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::Ordering::SeqCst;

/// Set in the counter when the run has stopped.
const CLOSED: u32 = 1 << 31;

/// A counting semaphore.
#[derive(Debug)]
pub struct Semaphore {
    state: CachePadded<State>,
}

#[derive(Debug)]
struct State {
    count: AtomicU32,
    sleepers: AtomicU32,
    /// The least that a sleeper needs; `u32::MAX` when nobody sleeps.
    needed: AtomicU32,
    /// Sleepers need different amounts.
    mixed: AtomicU32,
}

impl Semaphore {
    /// A semaphore that holds `count`.
    pub fn new(count: u32) -> Self {
        let state = State {
            count: AtomicU32::new(count.min(CLOSED - 1)),
            sleepers: AtomicU32::new(0),
            needed: AtomicU32::new(u32::MAX),
            mixed: AtomicU32::new(0),
        };
        Self { state: state.into() }
    }

    /// What it holds.
    pub fn count(&self) -> u32 {
        self.state.count.load(SeqCst) & !CLOSED
    }

    /// Adds `n`, and wakes whom that is enough for.
    #[inline]
    pub fn add(&self, n: u32) {
        let mut old = self.state.count.load(SeqCst);
        loop {
            if old & CLOSED != 0 {
                return;
            }
            let new = (old + n).min(CLOSED - 1);
            match self.state.count.compare_exchange_weak(old, new, SeqCst, SeqCst) {
                Ok(_) => {
                    if self.state.sleepers.load(SeqCst) > 0 {
                        self.wake_for(new);
                    }
                    return;
                }
                Err(now) => old = now,
            }
        }
    }

    /// Wakes a few of the sleepers that `count` is enough for; each of them, once it has taken its own, wakes more if something
    /// is left. Where processors are idle that takes no time. Where they are busy, most of a thousand sleepers woken at once
    /// would come to find that those who ran before them have taken everything, and go back to sleep.
    ///
    /// If they need different amounts, all are woken: one of a few might be one that it is not enough for.
    #[cold]
    fn wake_for(&self, count: u32) {
        let needed = self.state.needed.load(SeqCst);
        if count >= needed {
            let mixed = self.state.mixed.load(SeqCst) != 0;
            wake(&self.state.count, if mixed { u32::MAX } else { (count / needed.max(1)).min(WOKEN_AT_ONCE) });
        }
    }

    /// Takes `n` if it holds as many. Returns whether it did.
    #[inline]
    pub fn try_take(&self, n: u32) -> Result<bool, Stopped> {
        let mut count = self.state.count.load(SeqCst);
        loop {
            if count & CLOSED != 0 {
                return Err(Stopped);
            }
            if count < n {
                return Ok(false);
            }
            match self.state.count.compare_exchange_weak(count, count - n, SeqCst, SeqCst) {
                Ok(_) => return Ok(true),
                Err(now) => count = now,
            }
        }
    }

    /// Takes `n`, waiting until it holds as many. Returns whether it had to wait.
    #[inline]
    pub fn take(&self, n: u32) -> Result<bool, Stopped> {
        if self.try_take(n)? { Ok(false) } else { self.take_slow(n) }
    }

    #[cold]
    fn take_slow(&self, n: u32) -> Result<bool, Stopped> {
        self.state.sleepers.fetch_add(1, SeqCst);
        let result = loop {
            // First say what is needed, then look: an adder first adds, then looks at what is needed.
            let before = self.state.needed.fetch_min(n, SeqCst);
            if before != u32::MAX && before != n {
                self.state.mixed.store(1, SeqCst);
            }
            let count = self.state.count.load(SeqCst);
            if count & CLOSED != 0 {
                break Err(Stopped);
            }
            if count >= n {
                if self.state.count.compare_exchange(count, count - n, SeqCst, SeqCst).is_ok() {
                    break Ok(true);
                }
                continue;
            }
            wait(&self.state.count, count, None);
        };
        if self.state.sleepers.fetch_sub(1, SeqCst) == 1 {
            // Nobody sleeps: forget the need. A newcomer that was counted in between says its own again, below.
            self.state.mixed.store(0, SeqCst);
            self.state.needed.store(u32::MAX, SeqCst);
            if self.state.sleepers.load(SeqCst) > 0 {
                self.state.mixed.store(1, SeqCst);
                self.state.needed.store(0, SeqCst);
                wake(&self.state.count, u32::MAX);
            }
        } else if result.is_ok() {
            // It may be the one that was to wake more.
            self.wake_for(self.count());
        }
        result
    }

    /// The run has stopped: whoever waits, or will, is told so.
    pub fn close(&self) {
        self.state.count.fetch_or(CLOSED, SeqCst);
        wake(&self.state.count, u32::MAX);
    }
}
