//! The event generator (`eventgen`) without a generator thread: a claim computes the time at which its events are due,
//! and the claiming thread sleeps until then.
//!
//! The state of a rate is one number: the time at which the last claimed event is due. A claim advances it by one
//! interval for each event. Events that are not claimed are kept for five seconds, as in Filebench. Filebench's
//! overshoot in the first second, its bursts of ten and its busy-waiting at rate 0 are not reproduced.
//!
//! Memory orderings: claims advance `due` with `Relaxed`, since the word publishes no other data. A claim loads `epoch`
//! with `Acquire` before it reads the interval, and [`EventPool::set_rate`] changes the interval before `epoch`. So a
//! claim with the old interval sleeps on the old epoch, and the change wakes it to claim again.
//!
//! What it claimed before must not delay others. It is in the word of the old epoch, which no later claim uses until the
//! rate has changed twice. A claim may be interrupted for as long as that. It loads `due` with `Acquire` and then
//! `epoch`. If `due` was reset before it was loaded, the claim finds that the epoch has changed. If `due` is reset later,
//! the claim fails to advance it.
//!
//! Writers run only when the rate changes or the run ends. They use `SeqCst`, which costs nothing per operation.

use super::{wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

/// Picoseconds in a second. Intervals are in picoseconds, so that a rate whose interval is not a multiple of a
/// nanosecond does not drift.
const SECOND: u64 = 1_000_000_000_000;

/// The interval after a positive rate was changed to 0: no event becomes due.
const NEVER: u64 = u64::MAX;

/// Unclaimed events older than this are dropped.
const BACKLOG: u64 = 5 * SECOND;

/// The result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// No rate is set, so there is no limit.
    Unlimited,
    /// The events were available, or became due while the caller slept.
    Granted,
    /// The run has stopped.
    Stopped,
}

/// The event pool of one run.
#[derive(Debug)]
pub struct EventPool {
    start: Instant,
    /// When the last claimed event is due, in picoseconds since `start`: one word for even epochs, one for odd ones.
    due: [CachePadded<AtomicU64>; 2],
    /// Picoseconds between events; 0 when there is no rate, or [`NEVER`].
    interval: AtomicU64,
    /// Changes with the rate and at the end of the run. The futex word of sleepers.
    epoch: AtomicU32,
    stopped: AtomicU32,
}

impl EventPool {
    /// Returns a pool with a rate in events per second. With `None` or 0 there is no limit until a rate is set.
    pub fn new(rate: Option<u64>) -> Self {
        let pool = Self {
            start: Instant::now(),
            due: [AtomicU64::new(0).into(), AtomicU64::new(0).into()],
            interval: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            stopped: AtomicU32::new(0),
        };
        if let Some(rate) = rate.filter(|r| *r > 0) {
            pool.interval.store(SECOND / rate, Relaxed);
        }
        pool
    }

    /// Returns the time since `start`, in picoseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).map_or(u64::MAX, |ns| ns.saturating_mul(1000))
    }

    /// Starts the generation of events. To be called when the gate opens.
    pub fn begin(&self) {
        self.due_at(self.epoch.load(SeqCst)).store(self.now(), SeqCst);
    }

    /// Returns the word with the time of the last claimed event in an epoch.
    #[inline]
    fn due_at(&self, epoch: u32) -> &AtomicU64 {
        &self.due[epoch as usize % 2]
    }

    /// Changes the rate of a live run. As in Filebench, a limit is never removed: with a rate of 0 no more events are
    /// generated, and threads that wait for one stay blocked until the rate changes again. The same rate changes nothing:
    /// threads that wait would begin their wait again.
    pub fn set_rate(&self, rate: u64) {
        let zero = if self.is_on() { NEVER } else { 0 };
        let interval = SECOND.checked_div(rate).unwrap_or(zero);
        if self.interval.swap(interval, SeqCst) == interval {
            return;
        }
        self.due_at(self.epoch.load(SeqCst).wrapping_add(1)).store(self.now(), SeqCst);
        self.epoch.fetch_add(1, SeqCst);
        wake(&self.epoch, u32::MAX);
    }

    /// True if a rate is set.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.interval.load(Relaxed) != 0
    }

    /// Claims `n` events and sleeps until the last of them is due.
    pub fn claim(&self, n: u64) -> Claim {
        'claim: loop {
            let epoch = self.epoch.load(Acquire);
            if self.stopped.load(Acquire) != 0 {
                return Claim::Stopped;
            }
            let interval = self.interval.load(Relaxed);
            if interval == 0 {
                return Claim::Unlimited;
            }
            if interval == NEVER {
                wait(&self.epoch, epoch, None);
                continue;
            }
            let Some(claimed_due) = self.take(n, interval, self.now(), epoch) else { continue };
            loop {
                let now = self.now();
                if now >= claimed_due {
                    return Claim::Granted;
                }
                wait(&self.epoch, epoch, Some(Duration::from_nanos((claimed_due - now).div_ceil(1000))));
                if self.stopped.load(Acquire) != 0 {
                    return Claim::Stopped;
                }
                if self.epoch.load(Acquire) != epoch {
                    continue 'claim;
                }
            }
        }
    }

    /// Claims the next `n` events at `now` and returns when the last of them is due. Both are in picoseconds since
    /// `start`. `None` if the rate has changed since `epoch`.
    fn take(&self, n: u64, interval: u64, now: u64, epoch: u32) -> Option<u64> {
        let word = self.due_at(epoch);
        let mut due = word.load(Acquire);
        loop {
            if self.epoch.load(Acquire) != epoch {
                return None;
            }
            let claimed_due = due.max(now.saturating_sub(BACKLOG)).saturating_add(interval.saturating_mul(n));
            match word.compare_exchange_weak(due, claimed_due, Relaxed, Acquire) {
                Ok(_) => return Some(claimed_due),
                Err(other) => due = other,
            }
        }
    }

    /// Stops the run: wakes all sleepers and ends their claims with [`Claim::Stopped`].
    pub fn close(&self) {
        self.stopped.store(1, SeqCst);
        self.epoch.fetch_add(1, SeqCst);
        wake(&self.epoch, u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_granted_one_by_one_and_not_early() {
        let pool = EventPool::new(Some(1000));
        pool.begin();
        let t = Instant::now();
        for _ in 0..20 {
            assert_eq!(pool.claim(1), Claim::Granted);
        }
        assert!(t.elapsed() >= Duration::from_millis(20), "the twentieth event falls due after 20 ms");
    }

    /// Threads that wait for an event would begin their wait again.
    #[test]
    fn the_same_rate_changes_nothing() {
        let pool = EventPool::new(Some(10));
        pool.begin();
        let epoch = || pool.epoch.load(SeqCst);
        let before = epoch();
        pool.set_rate(10);
        assert_eq!(epoch(), before);
        pool.set_rate(20);
        assert_ne!(epoch(), before);
    }

    /// Returns the number of events within ten seconds of simulated time, for a claimer that pauses after every
    /// hundredth event.
    fn claimed(rate: u64, pause: u64) -> f64 {
        let pool = EventPool::new(Some(rate));
        let interval = pool.interval.load(Relaxed);
        let (mut now, mut n) = (0, 0_u64);
        loop {
            // A late claimer finds its event due and continues at once.
            now = pool.take(1, interval, now, 0).expect("an event").max(now);
            if now > 10 * SECOND {
                return n as f64;
            }
            n += 1;
            if n.is_multiple_of(100) {
                now += pause;
            }
        }
    }

    #[test]
    fn the_rate_is_kept_over_many_events() {
        for rate in [100, 300, 1000, 7777, 10_000, 100_000] {
            let wanted = 10.0 * rate as f64;
            for pause in [0, SECOND / rate * 50] {
                // A late claimer catches up, so no event is lost. At the end at most one pause is not yet caught up.
                let n = claimed(rate, pause);
                let last = if pause > 0 { 50.0 } else { 0.0 };
                assert!(n <= wanted && n >= wanted * 0.999 - last, "{n} of {wanted} events, pauses of {pause}");
            }
        }
    }

    #[test]
    fn unclaimed_events_are_kept_for_five_seconds() {
        let pool = EventPool::new(Some(100));
        let interval = pool.interval.load(Relaxed);
        let is_due = |_: &u32| pool.take(1, interval, 60 * SECOND, 0).is_some_and(|due| due <= 60 * SECOND);
        let overdue = (0..10_000).take_while(is_due).count();
        assert_eq!(overdue, 500);
    }

    /// A thread may be interrupted between the reading of the interval and the claim, or in the claim.
    #[test]
    fn a_claim_at_an_old_rate_delays_no_later_one() {
        let pool = EventPool::new(Some(1));
        let old = pool.interval.load(Relaxed);
        pool.begin();
        for epoch in 1..=4 {
            // The same rate would change nothing.
            pool.set_rate(1000 + u64::from(epoch));
            assert_eq!(pool.take(1000, old, pool.now(), 0), None);
            pool.due_at(epoch - 1).fetch_add(1000 * old, SeqCst);
            let (interval, now) = (pool.interval.load(Relaxed), pool.now());
            let due = pool.take(1, interval, now, epoch).expect("an event");
            assert!(due <= now + interval, "{} ms late", (due - now) / 1_000_000_000);
        }
    }

    #[test]
    fn without_a_rate_there_is_no_limit() {
        let pool = EventPool::new(None);
        assert_eq!(pool.claim(1), Claim::Unlimited);
        pool.set_rate(0);
        assert_eq!(pool.claim(1_000_000), Claim::Unlimited);
    }

    #[test]
    fn a_rate_of_0_blocks_claims_until_the_next_rate() {
        let pool = std::sync::Arc::new(EventPool::new(Some(1)));
        let sleeper = std::thread::spawn({
            let pool = pool.clone();
            move || pool.claim(1000)
        });
        pool.set_rate(0);
        assert!(pool.is_on());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!sleeper.is_finished(), "an event was granted at rate 0");
        pool.set_rate(1_000_000);
        assert_eq!(sleeper.join().expect("the sleeper"), Claim::Granted);
    }

    #[test]
    fn closing_wakes_sleepers_at_any_rate() {
        for is_blocked in [false, true] {
            let pool = std::sync::Arc::new(EventPool::new(Some(1)));
            if is_blocked {
                pool.set_rate(0);
            }
            let sleeper = std::thread::spawn({
                let pool = pool.clone();
                move || pool.claim(1000)
            });
            pool.close();
            assert_eq!(sleeper.join().expect("the sleeper"), Claim::Stopped);
        }
    }
}
