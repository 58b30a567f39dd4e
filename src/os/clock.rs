//! The clock of the operation loop: the processor's time stamp counter where it is steady, else `CLOCK_MONOTONIC`.
//!
//! Ticks are what [`Clock::raw`] returns; only this file knows how long one is. Calibrated once a process.

use std::sync::OnceLock;
use std::time::Instant;

/// A calibrated clock. Cheap to copy a reference to, never cheap to make (it calibrates).
#[derive(Clone, Debug)]
pub struct Clock {
    inner: quanta::Clock,
    /// Ticks a nanosecond.
    ticks_per_ns: f64,
    scale: Scale,
    counter: bool,
}

/// Nanoseconds a tick, in units of 2⁻³². A number to keep at hand.
#[derive(Clone, Copy, Debug)]
pub struct Scale(u64);

impl Scale {
    /// As [`Clock::ns`].
    #[inline]
    pub fn ns(self, start: u64, end: u64) -> u64 {
        ((u128::from(end.saturating_sub(start)) * u128::from(self.0)) >> 32) as u64
    }
}

impl Clock {
    /// The clock of this process.
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

    /// Now, in ticks.
    #[inline]
    pub fn raw(&self) -> u64 {
        if self.counter { self.counter() } else { self.monotonic() }
    }

    /// Whether ticks are those of the processor's counter, which [`Clock::counter`] reads.
    pub fn is_counter(&self) -> bool {
        self.counter
    }

    /// The processor's counter: [`Clock::raw`] for who has asked [`Clock::is_counter`] before.
    #[inline]
    pub fn counter(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every processor of this architecture has the instruction.
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

    /// Nanoseconds between two readings; 0 if they are the wrong way round.
    #[inline]
    pub fn ns(&self, start: u64, end: u64) -> u64 {
        self.scale.ns(start, end)
    }

    /// What turns ticks into nanoseconds.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Ticks in so many nanoseconds.
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 * self.ticks_per_ns) as u64
    }

    /// What the results call it: `tsc` or `monotonic`.
    pub fn name(&self) -> &'static str {
        if self.counter { "tsc" } else { "monotonic" }
    }

    /// What one reading costs, in nanoseconds: the least of a few iterations.
    pub fn cost_ns(&self) -> f64 {
        const ROUNDS: u32 = 2000;
        (0..8)
            .map(|_| {
                let t = Instant::now();
                for _ in 0..ROUNDS {
                    std::hint::black_box(self.raw());
                }
                t.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
            })
            .fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn ticks_and_nanoseconds_are_inverse() {
        let clock = Clock::get();
        let ticks = clock.ticks(1_000_000_000);
        let back = clock.ns(0, ticks);
        assert!((999_999_000..=1_000_001_000).contains(&back), "{back}");
        assert!(clock.raw() <= clock.raw());
    }
}
