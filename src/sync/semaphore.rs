//! The two semaphores behind `semblock` and `sempost`, as one kind: a counter that can be added to and taken from.
//!
//! Filebench's protocol: every instance of a `semblock` has a low-water and a high-water semaphore. A post adds to the low
//! one, which the blocker takes from; a *blocking* post first takes from the high one, which the blocker adds to.
//!
//! The futex word is the counter itself, so a sleeper can't miss a change: the kernel refuses to sleep when the word is no
//! longer what the sleeper saw. A sleeper says how many it needs, so that posts of one do not wake a blocker that waits for
//! a thousand.
//!
//! One sleeper is woken at a time. It takes its own, and wakes the next if something is left. Where processors are idle that
//! takes no time. Where they are busy, a sleeper that is woken waits for its turn all the same: most of a thousand woken at
//! once would come to find that those who ran before them have taken everything, and go back to sleep. But then those who run
//! may go on taking for long while the row moves one by one; so now and then they let one more come ([`Semaphore::wake_one`]).

use super::{AtomicU32, Stopped, wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::Ordering::SeqCst;

/// Set in the counter when the run has stopped.
const CLOSED: u32 = 1 << 31;

/// Set in the number of the woken when something is added that they will see, or whoever wakes them be told of.
const SINCE: u32 = 1 << 31;

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
    /// How many are being woken, or were and have not looked yet; and [`SINCE`].
    woken: AtomicU32,
}

impl Semaphore {
    /// A semaphore that holds `count`.
    pub fn new(count: u32) -> Self {
        let state = State {
            count: AtomicU32::new(count.min(CLOSED - 1)),
            sleepers: AtomicU32::new(0),
            needed: AtomicU32::new(u32::MAX),
            mixed: AtomicU32::new(0),
            woken: AtomicU32::new(0),
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
                    if new >= self.state.needed.load(SeqCst) {
                        self.wake_next(new);
                    }
                    return;
                }
                Err(now) => old = now,
            }
        }
    }

    /// Wakes the next sleeper if `count` is enough for it, unless one is on its way, which will look and do the same.
    ///
    /// If they need different amounts, all are woken: the next might be one that it is not enough for.
    #[cold]
    fn wake_next(&self, mut count: u32) {
        while count >= self.state.needed.load(SeqCst) {
            if self.state.mixed.load(SeqCst) != 0 {
                self.wake_all();
                return;
            }
            let woken = self.state.woken.load(SeqCst);
            let alone = woken & !SINCE == 0;
            let claim = if alone { 1 } else { woken | SINCE };
            if claim != woken && self.state.woken.compare_exchange(woken, claim, SeqCst, SeqCst).is_err() {
                continue;
            }
            if !alone || !self.wake_announced(1) {
                return;
            }
            count = self.count();
        }
    }

    /// Wakes `n`, who are among the woken already. Returns whether it has to be done again: there were fewer, nobody else
    /// is on its way, and somebody who added meanwhile took it that one is.
    fn wake_announced(&self, n: u32) -> bool {
        let missing = n - wake(&self.state.count, n);
        let again = missing > 0 && self.state.woken.fetch_sub(missing, SeqCst) == missing | SINCE;
        if again {
            self.state.woken.fetch_and(!SINCE, SeqCst);
        }
        again
    }

    /// Wakes everybody who sleeps. Who is about to will see what has changed.
    fn wake_all(&self) {
        let sleepers = self.sleepers();
        if sleepers > 0 {
            self.wake_some(sleepers);
        }
    }

    /// How many wait.
    pub fn sleepers(&self) -> u32 {
        self.state.sleepers.load(SeqCst)
    }

    /// How many wait though it holds what one of them needs.
    pub fn held_back(&self) -> u32 {
        if self.count() < self.state.needed.load(SeqCst) { 0 } else { self.sleepers() }
    }

    /// Wakes one more sleeper, to see whether it can go on.
    pub fn wake_one(&self) {
        self.wake_some(1);
    }

    fn wake_some(&self, n: u32) {
        self.state.woken.fetch_add(n, SeqCst);
        if self.wake_announced(n) {
            self.wake_next(self.count());
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
            if wait(&self.state.count, count, None) {
                self.state.woken.fetch_sub(1, SeqCst);
            }
        };
        if self.state.sleepers.fetch_sub(1, SeqCst) == 1 {
            // Nobody sleeps: forget the need. A newcomer that was counted in between says its own again, below.
            self.state.mixed.store(0, SeqCst);
            self.state.needed.store(u32::MAX, SeqCst);
            if self.sleepers() > 0 {
                self.state.mixed.store(1, SeqCst);
                self.state.needed.store(0, SeqCst);
                self.wake_all();
            }
        } else if result.is_ok() {
            self.wake_next(self.count());
        }
        result
    }

    /// The run has stopped: whoever waits, or will, is told so.
    pub fn close(&self) {
        self.state.count.fetch_or(CLOSED, SeqCst);
        self.wake_all();
    }
}
