//! The clock of the operation loop: the processor's time stamp counter where it is steady, else `CLOCK_MONOTONIC`.
//!
//! [`Clock::raw`] returns ticks; only this module knows the length of a tick. The clock is calibrated once per process.

use std::sync::OnceLock;
use std::time::Instant;

/// A calibrated clock. Its creation is expensive because it calibrates; use [`Clock::get`].
#[derive(Clone, Debug)]
pub struct Clock {
    inner: quanta::Clock,
    ticks_per_ns: f64,
    scale: Scale,
    counter: bool,
}

/// Nanoseconds per tick, as a fixed-point number with 32 fractional bits. `Copy`, so that a thread can keep its own.
#[derive(Clone, Copy, Debug)]
pub struct Scale(u64);

impl Scale {
    /// Converts the ticks from `start` to `end` to nanoseconds, as [`Clock::ns`] does.
    #[inline]
    pub fn ns(self, start: u64, end: u64) -> u64 {
        ((u128::from(end.saturating_sub(start)) * u128::from(self.0)) >> 32) as u64
    }
}

impl Clock {
    /// Returns the clock of this process.
    #[inline]
    pub fn get() -> &'static Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(|| {
            let inner = quanta::Clock::new();
            let span = 1_u64 << 40;
            let ticks_per_ns = span as f64 / inner.delta_as_nanos(0, span) as f64;
            let scale = Scale(((1_u64 << 32) as f64 / ticks_per_ns) as u64);
            Self { inner, ticks_per_ns, scale, counter: (ticks_per_ns - 1.0).abs() > 1e-9 }
        })
    }

    /// Returns the current time in ticks.
    #[inline]
    pub fn raw(&self) -> u64 {
        if self.counter { self.counter() } else { self.monotonic() }
    }

    /// True if ticks are those of the processor's counter, which [`Clock::counter`] reads.
    #[inline]
    pub fn is_counter(&self) -> bool {
        self.counter
    }

    /// Reads the processor's counter: [`Clock::raw`] without its branch. Only for callers for whom
    /// [`Clock::is_counter`] is true.
    #[inline]
    pub fn counter(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has the `rdtsc` instruction.
        unsafe {
            std::arch::x86_64::_rdtsc()
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.inner.raw()
    }

    #[cold]
    fn monotonic(&self) -> u64 {
        self.inner.raw()
    }

    /// Returns the nanoseconds from `start` to `end`; 0 if `end` is before `start`.
    #[inline]
    pub fn ns(&self, start: u64, end: u64) -> u64 {
        self.scale.ns(start, end)
    }

    /// Returns the factor that converts ticks to nanoseconds.
    #[inline]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the number of ticks in `ns` nanoseconds.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 * self.ticks_per_ns) as u64
    }

    /// Returns the name of the clock in the results: `tsc` or `monotonic`.
    pub fn name(&self) -> &'static str {
        if self.counter { "tsc" } else { "monotonic" }
    }

    /// Measures the cost of one reading in nanoseconds: the least of the means of eight batches.
    pub fn cost_ns(&self) -> f64 {
        const READINGS: u32 = 2000;
        (0..8)
            .map(|_| {
                let t = Instant::now();
                for _ in 0..READINGS {
                    std::hint::black_box(self.raw());
                }
                t.elapsed().as_nanos() as f64 / f64::from(READINGS)
            })
            .fold(f64::INFINITY, f64::min)
    }
}

/// Returns `CLOCK_MONOTONIC` in nanoseconds. Processes of one host that share a time namespace read the same clock.
#[inline]
pub fn monotonic_ns() -> u64 {
    time_ns(rustix::time::ClockId::Monotonic)
}

/// Waits until `CLOCK_MONOTONIC` has the value `at_ns`. Sleeps for most of the time, and reads the clock in the last
/// fifth of a millisecond, because a sleep ends late by up to that.
pub fn wait_until(at_ns: u64) {
    const LAST_NS: u64 = 200_000;
    loop {
        match at_ns.saturating_sub(monotonic_ns()) {
            0 => return,
            rest if rest > LAST_NS => std::thread::sleep(std::time::Duration::from_nanos(rest - LAST_NS)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Returns the processor time that the calling thread has used, in nanoseconds. A system call.
pub fn thread_time_ns() -> u64 {
    time_ns(rustix::time::ClockId::ThreadCPUTime)
}

#[inline]
fn time_ns(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::{Clock, monotonic_ns, wait_until};

    #[test]
    fn a_wait_ends_at_its_time() {
        let at = monotonic_ns() + 2_000_000;
        wait_until(at);
        assert!(monotonic_ns() >= at);
        wait_until(at - 1);
    }

    #[test]
    fn ticks_and_nanoseconds_are_inverse() {
        let clock = Clock::get();
        let ticks = clock.ticks(1_000_000_000);
        let back = clock.ns(0, ticks);
        assert!((999_999_000..=1_000_001_000).contains(&back), "{back}");
        assert!(clock.raw() <= clock.raw());
    }
}
