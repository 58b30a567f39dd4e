//! The event generator as a pool without a generator: who claims an event learns when it falls due, and sleeps till then.
//!
//! One number holds the whole state: the time at which the last claimed event falls due. A claim moves it on by one interval
//! for each event. Events that nobody claims are kept for five seconds, as in Filebench; its overshoot in the first second,
//! its bursts of ten and its spinning at rate 0 are not kept.

use super::{wait, wake};
use crossbeam::utils::CachePadded;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

/// Picoseconds in a second: intervals are kept in them, so that a rate that divides no nanosecond does not drift.
const SECOND: u64 = 1_000_000_000_000;

/// The interval of a rate that was more than 0 and is 0 now: no event falls due.
const NEVER: u64 = u64::MAX;

/// Unclaimed events older than this are dropped.
const BACKLOG: u64 = 5 * SECOND;

/// The answer to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// There is no rate: nobody is limited.
    Unlimited,
    /// The events were there, or fell due while the caller slept.
    Paid,
    /// The run has stopped.
    Stopped,
}

/// The pool of one run.
#[derive(Debug)]
pub struct EventPool {
    start: Instant,
    /// When the last claimed event falls due, in picoseconds since `start`.
    due: CachePadded<AtomicU64>,
    /// Picoseconds between events; 0: there is no rate; [`NEVER`].
    interval: AtomicU64,
    /// Changes with the rate and at the end. A futex that sleepers wait on.
    epoch: AtomicU32,
    stopped: AtomicU32,
}

impl EventPool {
    /// A pool with a rate in events a second; `None` or 0: no limit until a rate is set.
    pub fn new(rate: Option<u64>) -> Self {
        let pool = Self {
            start: Instant::now(),
            due: AtomicU64::new(0).into(),
            interval: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            stopped: AtomicU32::new(0),
        };
        if let Some(rate) = rate.filter(|r| *r > 0) {
            pool.interval.store(SECOND / rate, Relaxed);
        }
        pool
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).map_or(u64::MAX, |ns| ns.saturating_mul(1000))
    }

    /// The events start to flow: call when the gate opens.
    pub fn begin(&self) {
        self.due.store(self.now(), SeqCst);
    }

    /// Changes the rate of a live run. As in Filebench a limit that was once there stays: with a rate of 0 no more events
    /// come, and who waits for one stands still until the rate changes again.
    pub fn set_rate(&self, rate: u64) {
        let still = if self.is_on() { NEVER } else { 0 };
        self.interval.store(SECOND.checked_div(rate).unwrap_or(still), SeqCst);
        self.due.store(self.now(), SeqCst);
        self.epoch.fetch_add(1, SeqCst);
        wake(&self.epoch, u32::MAX);
    }

    /// Whether limiters limit.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.interval.load(Relaxed) != 0
    }

    /// Claims `n` events and sleeps until the last of them falls due.
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
            let mine = self.take(n, interval, self.now());
            loop {
                let now = self.now();
                if now >= mine {
                    return Claim::Paid;
                }
                wait(&self.epoch, epoch, Some(Duration::from_nanos((mine - now).div_ceil(1000))));
                if self.stopped.load(Acquire) != 0 {
                    return Claim::Stopped;
                }
                if self.epoch.load(Acquire) != epoch {
                    continue 'claim;
                }
            }
        }
    }

    /// When the last of the next `n` events falls due, for one who asks at `now`. Both in picoseconds since `start`.
    fn take(&self, n: u64, interval: u64, now: u64) -> u64 {
        let mut due = self.due.load(Relaxed);
        loop {
            let mine = due.max(now.saturating_sub(BACKLOG)).saturating_add(interval.saturating_mul(n));
            match self.due.compare_exchange_weak(due, mine, Relaxed, Relaxed) {
                Ok(_) => return mine,
                Err(other) => due = other,
            }
        }
    }

    /// The run has stopped: sleepers go home.
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
    fn events_come_one_by_one_and_not_before_their_time() {
        let pool = EventPool::new(Some(1000));
        pool.begin();
        let t = Instant::now();
        for _ in 0..20 {
            assert_eq!(pool.claim(1), Claim::Paid);
        }
        assert!(t.elapsed() >= Duration::from_millis(20), "the twentieth event falls due after 20 ms");
    }

    /// Events within ten seconds, claimed by one who is away for `pause` after every hundredth, by a clock of the test.
    fn claimed(rate: u64, pause: u64) -> f64 {
        let pool = EventPool::new(Some(rate));
        let interval = pool.interval.load(Relaxed);
        let (mut now, mut n) = (0, 0_u64);
        loop {
            // One who comes late finds the event due, and goes on at once.
            now = pool.take(1, interval, now).max(now);
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
    fn a_thousand_events_and_more_hold_their_rate() {
        for rate in [100, 300, 1000, 7777, 10_000, 100_000] {
            let wanted = 10.0 * rate as f64;
            for pause in [0, SECOND / rate * 50] {
                // Who comes late catches up: nothing is lost. What he has not yet caught up with is one pause.
                let n = claimed(rate, pause);
                let last = if pause > 0 { 50.0 } else { 0.0 };
                assert!(n <= wanted && n >= wanted * 0.999 - last, "{n} of {wanted} events, pauses of {pause}");
            }
        }
    }

    #[test]
    fn what_nobody_claims_is_kept_for_five_seconds() {
        let pool = EventPool::new(Some(100));
        let interval = pool.interval.load(Relaxed);
        let overdue = (0..10_000).take_while(|_| pool.take(1, interval, 60 * SECOND) <= 60 * SECOND).count();
        assert_eq!(overdue, 500);
    }

    #[test]
    fn without_a_rate_nobody_is_limited() {
        let pool = EventPool::new(None);
        assert_eq!(pool.claim(1), Claim::Unlimited);
        pool.set_rate(0);
        assert_eq!(pool.claim(1_000_000), Claim::Unlimited);
    }

    #[test]
    fn a_rate_that_becomes_0_stands_still_until_there_is_one_again() {
        let pool = std::sync::Arc::new(EventPool::new(Some(1)));
        let sleeper = std::thread::spawn({
            let pool = pool.clone();
            move || pool.claim(1000)
        });
        pool.set_rate(0);
        assert!(pool.is_on());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!sleeper.is_finished(), "no event comes");
        pool.set_rate(1_000_000);
        assert_eq!(sleeper.join().expect("the sleeper"), Claim::Paid);
    }

    #[test]
    fn closing_wakes_sleepers_also_where_events_stand_still() {
        for still in [false, true] {
            let pool = std::sync::Arc::new(EventPool::new(Some(1)));
            if still {
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
