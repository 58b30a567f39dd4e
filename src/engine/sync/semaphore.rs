//! The counting semaphore of which `semblock` and `sempost` use two.
//!
//! Filebench's protocol: every instance of a `semblock` has a low-water and a high-water semaphore. A post adds to the
//! low-water semaphore, from which the blocker takes. A *blocking* post first takes from the high-water semaphore, to
//! which the blocker adds.
//!
//! The futex word is the counter itself. The kernel refuses to put a thread to sleep if the counter is not the value
//! that the thread saw, so a sleeper cannot miss a change. A sleeper announces the amount that it needs, so that posts
//! of one do not wake a blocker that waits for a thousand.
//!
//! No wake-up is lost because of the order of two pairs of accesses. A taker first adds itself to `waiters` and then
//! reads the counter; an adder first adds to the counter and then reads `waiters`. With `SeqCst` at least one of the
//! two sees the other's write: either the adder wakes the taker, or the taker does not sleep. Acquire and release do
//! not order a store before a later load of another word, so both could miss the other. All accesses to the three words
//! are therefore `SeqCst`, for which the model in `tests/it/model.rs` is exact too.
//!
//! Sleepers that need the same amount are woken one at a time. Each takes its amount and wakes the next if something
//! remains. Waking all of them at once would be useless where processors are busy: a woken thread waits for a
//! processor, and most of a thousand woken threads would find that the running threads have taken everything, and would
//! sleep again. But if sleepers are woken one by one, the running threads can go on taking for long. So a thread that
//! posts many times in a row wakes one more sleeper ([`Semaphore::wake_one`]).
//!
//! Gain, measured with `oltp_sync`, posts with 2,000 shadow processes relative to 200: 0.86 with
//! two more sleepers woken by each one that was woken, 0.98 with one more, 1.03 with no wake-up while another is in
//! flight, 1.02 with one extra wake-up after 32 posts in a row. Context switches per post with 2,000 shadows: 0.31,
//! 0.076, 0.035, 0.049.

use super::{AtomicU32, AtomicU64, Stopped, wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::Ordering::SeqCst;

/// The bit of the counter that is set when the run has stopped.
const CLOSED: u32 = 1 << 31;

/// The bit of `wakes_in_flight` that asks for a second look: the counter was increased meanwhile, and no thread was
/// woken for that.
const RECHECK: u32 = 1 << 31;

/// A counting semaphore.
#[derive(Debug)]
pub struct Semaphore {
    state: CachePadded<SemaphoreState>,
}

#[derive(Debug)]
struct SemaphoreState {
    count: AtomicU32,
    /// The number of sleepers that are being woken, or were woken and have not yet checked the counter, or fewer; with
    /// [`RECHECK`].
    wakes_in_flight: AtomicU32,
    /// A [`Waiters`] in one word.
    waiters: AtomicU64,
}

/// The threads that wait, packed into 64 bits so that their number and need change together.
#[derive(Clone, Copy)]
struct Waiters {
    sleepers: u32,
    /// The least amount that one of them needs, among those that arrived since the number of sleepers was last 0.
    needed: u32,
    /// Whether they need different amounts.
    mixed: bool,
}

impl Waiters {
    /// Unpacks the word.
    fn of(word: u64) -> Self {
        let high = (word >> 32) as u32;
        Self { sleepers: word as u32, needed: high & !(1 << 31), mixed: high >> 31 != 0 }
    }

    /// Packs the fields into a word.
    fn word(self) -> u64 {
        (u64::from(self.mixed) << 63) | (u64::from(self.needed) << 32) | u64::from(self.sleepers)
    }

    /// Adds a sleeper that needs this amount.
    fn with_one(self, needed: u32) -> Self {
        match self.sleepers {
            0 => Self { sleepers: 1, needed, mixed: false },
            n => Self { sleepers: n + 1, needed: self.needed.min(needed), mixed: self.mixed || self.needed != needed },
        }
    }

    /// Resets the needed amount when the last sleeper leaves.
    fn without_one(self) -> Self {
        match self.sleepers {
            0 | 1 => Self { sleepers: 0, needed: 0, mixed: false },
            n => Self { sleepers: n - 1, ..self },
        }
    }

    /// True if `count` is enough for one of them.
    fn is_met_by(self, count: u32) -> bool {
        self.sleepers > 0 && count >= self.needed
    }
}

impl Semaphore {
    /// Returns a semaphore with the value `count`.
    pub fn new(count: u32) -> Self {
        let state = SemaphoreState {
            count: AtomicU32::new(count.min(CLOSED - 1)),
            wakes_in_flight: AtomicU32::new(0),
            waiters: AtomicU64::new(0),
        };
        Self { state: state.into() }
    }

    /// Returns the value.
    pub fn count(&self) -> u32 {
        self.state.count.load(SeqCst) & !CLOSED
    }

    /// Adds `n`, and wakes a sleeper if the new value is enough for one.
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
                    if self.waiters().is_met_by(new) {
                        self.wake_next(new);
                    }
                    return;
                }
                Err(now) => old = now,
            }
        }
    }

    #[inline]
    fn waiters(&self) -> Waiters {
        Waiters::of(self.state.waiters.load(SeqCst))
    }

    /// Applies `change` atomically.
    fn change_waiters(&self, change: impl Fn(Waiters) -> Waiters) {
        let mut old = self.state.waiters.load(SeqCst);
        loop {
            let new = change(Waiters::of(old));
            match self.state.waiters.compare_exchange(old, new.word(), SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Wakes the next sleeper if `count` is enough for it. Does nothing but set [`RECHECK`] if a wake-up is already in
    /// flight: the woken thread will check the counter and wake the next.
    ///
    /// If sleepers need different amounts, all are woken, since the next in the queue might be one for which `count` is
    /// not enough. A thread that begins to wait with a different amount between the look at `waiters` and the wake-up
    /// is queued behind the others: the kernel wakes threads of one priority in the order of their arrival.
    ///
    /// `#[cold]`: a post without waiters, which is the frequent case, is the inlined compare-and-swap in
    /// [`Semaphore::add`] and one load.
    #[cold]
    fn wake_next(&self, mut count: u32) {
        loop {
            let waiters = self.waiters();
            if !waiters.is_met_by(count) {
                return;
            }
            if waiters.mixed {
                wake(&self.state.count, u32::MAX);
                return;
            }
            let old = self.state.wakes_in_flight.load(SeqCst);
            let none_in_flight = old & !RECHECK == 0;
            let new = if none_in_flight { 1 } else { old | RECHECK };
            if new != old && self.state.wakes_in_flight.compare_exchange(old, new, SeqCst, SeqCst).is_err() {
                continue;
            }
            if !none_in_flight || !self.wake_counted() {
                return;
            }
            count = self.count();
        }
    }

    /// Wakes one sleeper that is already counted in `wakes_in_flight`. Returns whether the caller has to look again: no
    /// thread was asleep yet, no other wake-up is in flight, and an adder has meanwhile relied on this one.
    fn wake_counted(&self) -> bool {
        wake(&self.state.count, 1) == 0 && self.finish_wake()
    }

    /// Ends one wake-up in flight. Returns whether it was the last and the counter was increased meanwhile, so that the
    /// caller has to look again.
    ///
    /// A thread that was woken together with all others, or spuriously, may not have been counted, so the number is not
    /// decremented below 0.
    fn finish_wake(&self) -> bool {
        let mut old = self.state.wakes_in_flight.load(SeqCst);
        loop {
            let remaining = old - u32::from(old & !RECHECK > 0);
            let new = if remaining == RECHECK { 0 } else { remaining };
            match self.state.wakes_in_flight.compare_exchange(old, new, SeqCst, SeqCst) {
                Ok(_) => return remaining == RECHECK,
                Err(now) => old = now,
            }
        }
    }

    /// Returns the number of waiting threads.
    pub fn sleepers(&self) -> u32 {
        self.waiters().sleepers
    }

    /// Returns the number of waiting threads if the value is enough for one of them; else 0.
    pub fn held_back(&self) -> u32 {
        let waiters = self.waiters();
        if waiters.is_met_by(self.count()) { waiters.sleepers } else { 0 }
    }

    /// Wakes one more sleeper, which checks whether it can continue.
    pub fn wake_one(&self) {
        self.state.wakes_in_flight.fetch_add(1, SeqCst);
        if self.wake_counted() {
            self.wake_next(self.count());
        }
    }

    /// Takes `n` if the value is at least `n`. Returns whether it did. `Err` when the run has stopped.
    #[inline]
    pub(crate) fn try_take(&self, n: u32) -> Result<bool, Stopped> {
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

    /// Takes `n`, and waits until the value is at least `n`. Returns whether it had to wait. `Err` when the run has
    /// stopped.
    ///
    /// Split for speed: the case without a wait is inlined into the flowop's step; `Semaphore::take_slow` with its
    /// loop and its system calls is a cold function.
    #[inline]
    pub fn take(&self, n: u32) -> Result<bool, Stopped> {
        if self.try_take(n)? { Ok(false) } else { self.take_slow(n) }
    }

    /// The slow half of [`Semaphore::take`]: registers the thread as a waiter and sleeps until the value is sufficient.
    #[cold]
    fn take_slow(&self, n: u32) -> Result<bool, Stopped> {
        // Announce the needed amount before looking at the counter: an adder changes the counter before it looks at
        // `waiters`.
        self.change_waiters(|waiters| waiters.with_one(n));
        let result = loop {
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
                self.finish_wake();
            }
        };
        self.change_waiters(Waiters::without_one);
        if result.is_ok() {
            self.wake_next(self.count());
        }
        result
    }

    /// Stops the run: ends all present and future waits with [`Stopped`].
    pub fn close(&self) {
        self.state.count.fetch_or(CLOSED, SeqCst);
        wake(&self.state.count, u32::MAX);
    }
}
