//! The two semaphores behind `semblock` and `sempost`, as one kind: a counter that can be added to and taken from.
//!
//! Filebench's protocol: every instance of a `semblock` has a low-water and a high-water semaphore. A post adds to the low
//! one, which the blocker takes from; a *blocking* post first takes from the high one, which the blocker adds to.
//!
//! The futex word is the counter itself, so a sleeper can't miss a change: the kernel refuses to sleep when the word is no
//! longer what the sleeper saw. A sleeper says how many it needs, so that posts of one do not wake a blocker that waits for
//! a thousand.
//!
//! Sleepers who need the same amount are woken one at a time. Each takes its own, and wakes the next if something is left.
//! Where processors are idle that takes no time. Where they are busy, a sleeper that is woken waits for its turn all the same:
//! most of a thousand woken at once would come to find that those who ran before them have taken everything, and go back to
//! sleep. But then those who run may go on taking for long while the row moves one by one; so now and then they have one more
//! come ([`Semaphore::wake_one`]).

use super::{AtomicU32, AtomicU64, Stopped, wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::Ordering::SeqCst;

/// Set in the counter when the run has stopped.
const CLOSED: u32 = 1 << 31;

/// Set in the number of those on their way: there was something to wake for since, and nobody was woken for it.
const SINCE: u32 = 1 << 31;

/// A counting semaphore.
#[derive(Debug)]
pub struct Semaphore {
    state: CachePadded<SemaphoreState>,
}

#[derive(Debug)]
struct SemaphoreState {
    count: AtomicU32,
    /// How many are being woken, or were and have not looked yet, or fewer; and [`SINCE`].
    on_their_way: AtomicU32,
    /// A [`WaitRow`].
    row: AtomicU64,
}

/// Those who wait.
#[derive(Clone, Copy)]
struct WaitRow {
    sleepers: u32,
    /// The least that one of them needs, or of those who came since somebody last found the row empty.
    needed: u32,
    /// They need different amounts.
    mixed: bool,
}

impl WaitRow {
    fn of(word: u64) -> Self {
        let high = (word >> 32) as u32;
        Self { sleepers: word as u32, needed: high & !(1 << 31), mixed: high >> 31 != 0 }
    }

    fn word(self) -> u64 {
        (u64::from(self.mixed) << 63) | (u64::from(self.needed) << 32) | u64::from(self.sleepers)
    }

    fn with(self, needed: u32) -> Self {
        match self.sleepers {
            0 => Self { sleepers: 1, needed, mixed: false },
            n => Self { sleepers: n + 1, needed: self.needed.min(needed), mixed: self.mixed || self.needed != needed },
        }
    }

    /// What they need is known again when all of them have gone.
    fn with_one_less(self) -> Self {
        match self.sleepers {
            0 | 1 => Self { sleepers: 0, needed: 0, mixed: false },
            n => Self { sleepers: n - 1, ..self },
        }
    }

    /// One of them can go on with `count`.
    fn is_met_by(self, count: u32) -> bool {
        self.sleepers > 0 && count >= self.needed
    }
}

impl Semaphore {
    /// A semaphore that holds `count`.
    pub fn new(count: u32) -> Self {
        let state = SemaphoreState {
            count: AtomicU32::new(count.min(CLOSED - 1)),
            on_their_way: AtomicU32::new(0),
            row: AtomicU64::new(0),
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
                    if self.row().is_met_by(new) {
                        self.wake_next(new);
                    }
                    return;
                }
                Err(now) => old = now,
            }
        }
    }

    #[inline]
    fn row(&self) -> WaitRow {
        WaitRow::of(self.state.row.load(SeqCst))
    }

    fn change_row(&self, change: impl Fn(WaitRow) -> WaitRow) {
        let mut old = self.state.row.load(SeqCst);
        loop {
            let new = change(WaitRow::of(old));
            match self.state.row.compare_exchange(old, new.word(), SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Wakes the next sleeper if `count` is enough for it, unless one is on its way, which will look and do the same.
    ///
    /// If they need different amounts, all are woken: the next might be one that it is not enough for. Who comes to need another
    /// amount between the look at the row and the wake-up stands behind the others: the kernel wakes threads of one priority
    /// first come, first served.
    #[cold]
    fn wake_next(&self, mut count: u32) {
        loop {
            let row = self.row();
            if !row.is_met_by(count) {
                return;
            }
            if row.mixed {
                wake(&self.state.count, u32::MAX);
                return;
            }
            let old = self.state.on_their_way.load(SeqCst);
            let nobody = old & !SINCE == 0;
            let new = if nobody { 1 } else { old | SINCE };
            if new != old && self.state.on_their_way.compare_exchange(old, new, SeqCst, SeqCst).is_err() {
                continue;
            }
            if !nobody || !self.wake_announced() {
                return;
            }
            count = self.count();
        }
    }

    /// Wakes one, who is among those on their way already. Returns whether it has to be done again: nobody slept yet, nobody
    /// else is on its way, and whoever added meanwhile took it that somebody is.
    fn wake_announced(&self) -> bool {
        wake(&self.state.count, 1) == 0 && self.arrived()
    }

    /// One less is on its way. Returns whether it was the last and something was added since, for which it has to look.
    ///
    /// Who was woken with everybody else, or by the kernel's mistake, may have been in nobody's count.
    fn arrived(&self) -> bool {
        let mut old = self.state.on_their_way.load(SeqCst);
        loop {
            let left = old - u32::from(old & !SINCE > 0);
            let new = if left == SINCE { 0 } else { left };
            match self.state.on_their_way.compare_exchange(old, new, SeqCst, SeqCst) {
                Ok(_) => return left == SINCE,
                Err(now) => old = now,
            }
        }
    }

    /// How many wait.
    pub fn sleepers(&self) -> u32 {
        self.row().sleepers
    }

    /// How many wait though it holds what one of them needs.
    pub fn held_back(&self) -> u32 {
        let row = self.row();
        if row.is_met_by(self.count()) { row.sleepers } else { 0 }
    }

    /// Wakes one more sleeper, to see whether it can go on.
    pub fn wake_one(&self) {
        self.state.on_their_way.fetch_add(1, SeqCst);
        if self.wake_announced() {
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
        // First say what is needed, then look: an adder first adds, then looks at what is needed.
        self.change_row(|row| row.with(n));
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
                self.arrived();
            }
        };
        self.change_row(WaitRow::with_one_less);
        if result.is_ok() {
            self.wake_next(self.count());
        }
        result
    }

    /// The run has stopped: whoever waits, or will, is told so.
    pub fn close(&self) {
        self.state.count.fetch_or(CLOSED, SeqCst);
        wake(&self.state.count, u32::MAX);
    }
}
