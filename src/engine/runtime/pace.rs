//! Open loops: the schedule of a thread's iterations, and its backlog.
//!
//! A thread with `rate=` has a timetable that does not depend on the duration of its iterations. If an iteration is not
//! yet due, the thread waits; if it is overdue, it starts at once, and later iterations keep their own times. The
//! response time of an operation counts from the intended start of its iteration, so that it includes the time in the
//! queue, as a user of the application would see it.

use super::shared::Shared;
use crate::exec::OpCx;
use crate::plan::Pace;
use crate::random::{self, Rng};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use wml_os::{Clock, proc};

/// A start closer than this is waited for by busy-waiting, if there are spare CPUs; in nanoseconds. Sleeping and waking
/// up takes 10 to 20 µs of a processor and ends some 15 to 40 µs late.
///
/// Gain: at 100,000 iterations per second, sleeping took 0.93 of a processor and the median iteration began 15 µs late,
/// so that the last one or two before the end of a run were not started. Busy-waiting takes one processor, and
/// iterations begin 0.04 µs late (docs/performance.md, "Open loops").
const SPIN_BELOW_NS: u64 = 25_000;

/// The published progress of a thread's iterations. The thread is the only writer, so all accesses are `Relaxed` loads
/// and stores.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    begun: AtomicU64,
    ended: AtomicU64,
    /// The start of the first iteration, in ticks.
    first: AtomicU64,
    /// The start of the next iteration, in ticks; 0 when there is none.
    next: AtomicU64,
    /// Arrivals for which the thread slept.
    slept: AtomicU64,
    /// Total delay of the starts of these, in nanoseconds.
    wakeup_latency_ns: AtomicU64,
    /// Total time from the intended start to the end, over all iterations that have ended, in nanoseconds.
    response_ns: AtomicU64,
    /// Total time of busy-waiting, in nanoseconds.
    spin_ns: AtomicU64,
}

/// The progress of the iterations of several threads at one time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ArrivalProgress {
    /// Intended starts so far.
    pub offered: u64,
    /// Iterations that have ended.
    pub achieved: u64,
    /// Intended starts that have not happened. For a Poisson process: the one that is known to be overdue, and the
    /// expected number since.
    pub backlog: u64,
    /// Those of them whose threads have ended early, in the backlog.
    pub lost: u64,
    /// How long the oldest of them is overdue, in nanoseconds.
    pub oldest_ns: u64,
    /// Arrivals for which the thread was early, and slept.
    pub slept: u64,
    /// Total delay of the starts of these, in nanoseconds. The only causes of this delay are the wake-up and the wait
    /// for a processor.
    pub wakeup_latency_ns: u64,
    /// Total time from the intended start to the end, over all iterations that have ended, in nanoseconds.
    pub response_ns: u64,
    /// Total time of busy-waiting, in nanoseconds.
    pub spin_ns: u64,
}

impl Arrivals {
    /// True if the thread is between two iterations.
    pub(super) fn are_between(&self) -> bool {
        self.begun.load(Relaxed) == self.ended.load(Relaxed)
    }
}

impl ArrivalProgress {
    /// Returns the progress since an earlier time. The backlog is the current one.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            offered: self.offered.saturating_sub(before.offered),
            achieved: self.achieved.saturating_sub(before.achieved),
            slept: self.slept.saturating_sub(before.slept),
            wakeup_latency_ns: self.wakeup_latency_ns.saturating_sub(before.wakeup_latency_ns),
            response_ns: self.response_ns.saturating_sub(before.response_ns),
            spin_ns: self.spin_ns.saturating_sub(before.spin_ns),
            ..self
        }
    }

    /// Adds the progress of one thread at `tick`.
    /// `has_ended`: the thread ended early, so that it begins none of the iterations that are due.
    fn add(&mut self, arrivals: &Arrivals, pace: Pace, clock: &Clock, tick: u64, has_ended: bool) {
        let begun = arrivals.begun.load(Relaxed);
        self.offered += begun;
        self.achieved += arrivals.ended.load(Relaxed);
        self.slept += arrivals.slept.load(Relaxed);
        self.wakeup_latency_ns += arrivals.wakeup_latency_ns.load(Relaxed);
        self.response_ns += arrivals.response_ns.load(Relaxed);
        self.spin_ns += arrivals.spin_ns.load(Relaxed);
        let next = arrivals.next.load(Relaxed);
        if next > 0 && next < tick {
            let since = |start: u64| 1 + (clock.ns(start, tick) as f64 * pace.rate / 1e9) as u64;
            // The backlog of evenly spaced iterations follows from the schedule alone: the thread may be about to begin
            // one just now.
            let first = arrivals.first.load(Relaxed);
            let behind = if pace.poisson { since(next) } else { since(first).saturating_sub(begun) };
            self.backlog += behind;
            self.lost += if has_ended { behind } else { 0 };
            self.offered += behind;
            self.oldest_ns = self.oldest_ns.max(clock.ns(next, tick));
        }
    }
}

/// A thread definition with an open loop, in order of definition: the places of its process and of itself in the plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacedThread {
    pub process: usize,
    pub thread: usize,
}

/// Returns the progress of the open loops of a run at `tick`, by thread definition. Empty when there are none.
pub(super) fn progress(shared: &Shared, tick: u64) -> BTreeMap<PacedThread, ArrivalProgress> {
    let mut progress: BTreeMap<PacedThread, ArrivalProgress> = BTreeMap::new();
    for thread_slot in &shared.thread_slots {
        let process = &shared.plan.processes[thread_slot.process];
        if let Some(pace) = process.threads[thread_slot.thread].pace {
            // After the end of its phase, a thread is asked for nothing.
            let tick = shared.phases.worked_until(thread_slot.process, tick);
            let has_ended = thread_slot.exhausted.load(SeqCst);
            let definition = PacedThread { process: thread_slot.process, thread: thread_slot.thread };
            let of_definition = progress.entry(definition).or_default();
            of_definition.add(&thread_slot.arrivals, pace, shared.clock, tick, has_ended);
        }
    }
    progress
}

/// The place of a thread among those of its definition on this rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalSlot {
    /// Its number, from 0.
    pub(super) number: u64,
    /// A part of an interval, from 0 to less than 1, which all threads of the definition have in common.
    pub(super) offset: f64,
}

impl ArrivalSlot {
    /// Returns the place of a thread. `run_seed`: the seed that all ranks have in common. `definition`: the number of
    /// its definition among those of the script.
    ///
    /// Definitions take turns as well: the parts are random, but of the first two half an interval apart, of the first
    /// four a quarter (the sequence of van der Corput). With parts drawn for each, two processes of the same rate would
    /// begin up to two iterations more or fewer than their rates say, and one at most as they do.
    pub(super) fn new(run_seed: u64, definition: usize, number: usize) -> Self {
        let common = random::unit(&mut random::stream(run_seed, &[0x7ace]));
        let apart = f64::from((definition as u32).reverse_bits()) / 2.0_f64.powi(32);
        Self { number: number as u64, offset: (common + apart).fract() }
    }

    /// Returns the part of its first interval after which a thread with evenly spaced iterations begins. The threads of
    /// a definition take turns, so that together they are evenly spaced: a simultaneous start would be a burst that the
    /// script does not ask for, and starts at random would offer more or less than the rate in a short time.
    fn of(self, pace: Pace) -> f64 {
        ((pace.before + self.number) as f64 + self.offset) / pace.threads as f64
    }
}

/// The timetable of a thread.
pub(super) struct Timetable {
    pace: Pace,
    rng: Rng,
    /// The start of the schedule, in ticks: the opening of the gate, or the start of the thread's phase.
    start: u64,
    /// The start of the next iteration, in nanoseconds after `start`.
    next_ns: f64,
    /// The time before a start below which the thread busy-waits, in ticks; 0 when it always sleeps.
    spin_below: u64,
}

impl Timetable {
    /// Returns the timetable of one thread.
    ///
    /// `spare_cpus`: there are more processors than threads. Otherwise a busy-waiting thread would take the processor
    /// from a thread with work.
    pub(super) fn new(pace: Pace, seed: u64, slot: ArrivalSlot, spare_cpus: bool) -> Self {
        proc::precise_timers();
        let spin_below = if spare_cpus { Clock::get().ticks(SPIN_BELOW_NS) } else { 0 };
        let mut table = Self { pace, rng: random::stream(seed, &[0x7ace]), start: 0, next_ns: 0.0, spin_below };
        let first = table.gap();
        table.next_ns = if pace.poisson { first } else { slot.of(pace) * first };
        table
    }

    /// Starts the schedule at `began`: the start of the thread's phase, or the opening of the gate.
    pub(super) fn start(&mut self, cx: &OpCx<'_>, began: u64, arrivals: &Arrivals) {
        self.start = began;
        arrivals.first.store(self.next_tick(cx.env.clock), Relaxed);
        arrivals.next.store(self.next_tick(cx.env.clock), Relaxed);
    }

    /// Returns the start of the next iteration, in ticks.
    fn next_tick(&self, clock: &Clock) -> u64 {
        self.start.saturating_add(clock.ticks(self.next_ns as u64))
    }

    /// Draws the time between two iterations, in nanoseconds.
    fn gap(&mut self) -> f64 {
        let mean = 1e9 / self.pace.rate;
        // `1 − u` is never 0.
        if self.pace.poisson { -(1.0 - random::unit(&mut self.rng)).ln() * mean } else { mean }
    }

    /// Waits for the next iteration and begins it. Returns its intended start, in ticks. `None` when the run has ended.
    pub(super) fn begin(&mut self, cx: &mut OpCx<'_>, arrivals: &Arrivals) -> Option<u64> {
        let intended = self.next_tick(cx.env.clock);
        let now = cx.env.clock.raw();
        let early = intended.saturating_sub(now);
        let sleeps = early > self.spin_below;
        if sleeps && cx.env.gate.sleep_until(cx.env.clock, intended) {
            return None;
        }
        if !sleeps && early > 0 {
            // The check whether the run has stopped follows below.
            while cx.env.clock.raw() < intended {
                std::hint::spin_loop();
            }
            add(&arrivals.spin_ns, cx.env.clock.ns(now, intended));
        }
        if cx.expired() {
            return None;
        }
        self.next_ns += self.gap();
        add(&arrivals.begun, 1);
        arrivals.next.store(self.next_tick(cx.env.clock), Relaxed);
        cx.start();
        cx.account.lateness = cx.env.clock.ns(intended, cx.last());
        if sleeps {
            add(&arrivals.slept, 1);
            add(&arrivals.wakeup_latency_ns, cx.account.lateness);
        }
        Some(intended)
    }

    /// Accounts for the end of an iteration with this intended start, in ticks.
    pub(super) fn end(arrivals: &Arrivals, intended: u64, cx: &OpCx<'_>) {
        add(&arrivals.ended, 1);
        add(&arrivals.response_ns, cx.env.clock.ns(intended, cx.last()));
    }

    /// Takes back the start of an iteration with this intended start, in ticks: its thread has found no file for it.
    pub(super) fn take_back(arrivals: &Arrivals, intended: u64) {
        arrivals.begun.store(arrivals.begun.load(Relaxed).saturating_sub(1), Relaxed);
        arrivals.next.store(intended, Relaxed);
    }

    /// Ends the schedule: no further iterations are asked for.
    pub(super) fn close(arrivals: &Arrivals) {
        arrivals.next.store(0, Relaxed);
    }
}

/// Adds to a counter whose only writer is the calling thread.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pace of a single thread.
    fn pace(rate: f64, poisson: bool) -> Pace {
        Pace { rate, poisson, total: None, threads: 1, before: 0 }
    }

    /// Returns the timetable of a thread that is the only one of its definition.
    fn alone(pace: Pace, seed: u64) -> Timetable {
        Timetable::new(pace, seed, ArrivalSlot { number: 0, offset: 0.5 }, false)
    }

    #[test]
    fn constant_iterations_of_all_threads_together_are_evenly_spaced() {
        // Ten threads on the second of two ranks, after five on the first, with 10 iterations a second each.
        let pace = Pace { threads: 15, before: 5, ..pace(10.0, false) };
        for (number, seed) in (0..10).zip(0..) {
            let mut table = Timetable::new(pace, seed, ArrivalSlot { number, offset: 0.25 }, false);
            let wanted = (5.0 + number as f64 + 0.25) * 1e9 / 150.0;
            assert!((table.next_ns - wanted).abs() < 1.0, "{} instead of {wanted}", table.next_ns);
            assert!((table.gap() - 1e8).abs() < 1e-3);
        }
    }

    #[test]
    fn definitions_of_the_same_rate_take_turns() {
        let mut offsets: Vec<f64> = (0..4).map(|definition| ArrivalSlot::new(7, definition, 0).offset).collect();
        assert!((offsets[1] - offsets[0]).abs().total_cmp(&0.5).is_eq(), "{offsets:?}");
        offsets.sort_by(f64::total_cmp);
        assert!(offsets.windows(2).all(|pair| (pair[1] - pair[0] - 0.25).abs() < 1e-12), "{offsets:?}");
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_variance_of_the_exponential_distribution() {
        let mut table = alone(pace(1000.0, true), 7);
        let gaps: Vec<f64> = (0..100_000).map(|_| table.gap()).collect();
        let mean = gaps.iter().sum::<f64>() / 1e5;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1e6).abs() < 2e4, "{mean}");
        assert!((variance.sqrt() - 1e6).abs() < 4e4, "{}", variance.sqrt());
    }

    /// Returns the Kolmogorov–Smirnov distance between the gaps and the exponential distribution with this mean.
    fn distance(gaps: &mut [f64], mean: f64) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let off = |(i, gap): (usize, &f64)| {
            let cdf = 1.0 - (-gap / mean).exp();
            (cdf - i as f64 / n).max((i + 1) as f64 / n - cdf)
        };
        gaps.iter().enumerate().map(off).fold(0.0, f64::max)
    }

    #[test]
    fn poisson_gaps_follow_the_exponential_distribution() {
        const N: usize = 10_000;
        let root = (N as f64).sqrt();
        let mut beyond = 0;
        for seed in 0..100 {
            let mut table = alone(pace(1000.0, true), seed);
            let mut gaps: Vec<f64> = (0..N).map(|_| table.gap()).collect();
            let d = distance(&mut gaps, 1e6) * root;
            // Critical values at 0.01 % and 5 %.
            assert!(d < 2.23, "seed {seed}: {d}");
            beyond += usize::from(d > 1.36);
        }
        // Five of a hundred are expected beyond the 5 % value; 14 is four sigma more.
        assert!(beyond <= 14, "{beyond} of 100 beyond the 5 % value");
        let mut even: Vec<f64> = (0..N).map(|i| i as f64 * 200.0).collect();
        assert!(distance(&mut even, 1e6) * root > 2.23, "evenly spread gaps are not rejected");
    }

    /// Returns the number of iterations of a timetable within `seconds`.
    fn offered(pace: Pace, seed: u64, seconds: f64) -> f64 {
        let mut table = alone(pace, seed);
        let mut n = 0;
        while table.next_ns < seconds * 1e9 {
            table.next_ns += table.gap();
            n += 1;
        }
        f64::from(n)
    }

    #[test]
    fn a_schedule_keeps_its_rate() {
        for rate in [1.0, 3.0, 100.0, 1000.0, 10_000.0, 200_000.0] {
            for seed in 0..20 {
                let constant = offered(pace(rate, false), seed, 10.0);
                assert!((constant - 10.0 * rate).abs() <= 1.0, "{constant} at {rate} a second in 10 s");
                let poisson = offered(pace(rate, true), seed, 10.0);
                // The count of a Poisson process has a variance equal to its mean.
                let off = (poisson - 10.0 * rate) / (10.0 * rate).sqrt();
                assert!(off.abs() < 4.0, "{poisson} at {rate} a second in 10 s: {off} sigma");
            }
        }
    }

    #[test]
    fn overdue_iterations_count_as_offered_and_not_as_achieved() {
        let clock = Clock::get();
        let arrivals = Arrivals::default();
        arrivals.begun.store(10, Relaxed);
        arrivals.ended.store(9, Relaxed);
        arrivals.first.store(1000, Relaxed);
        arrivals.next.store(1000 + clock.ticks(100_000_000), Relaxed);
        let tick = 1000 + clock.ticks(155_000_000);
        let mut progress = ArrivalProgress::default();
        progress.add(&arrivals, pace(100.0, false), clock, tick, false);
        assert_eq!((progress.offered, progress.achieved, progress.backlog), (16, 9, 6));
        assert!((54_900_000..=55_100_000).contains(&progress.oldest_ns));
        assert_eq!(progress.lost, 0);
        let mut ended = ArrivalProgress::default();
        ended.add(&arrivals, pace(100.0, false), clock, tick, true);
        assert_eq!((ended.offered, ended.backlog, ended.lost), (16, 6, 6), "a thread that ended early");
        let later = progress.since(ArrivalProgress { offered: 6, achieved: 5, ..ArrivalProgress::default() });
        assert_eq!((later.offered, later.achieved, later.backlog), (10, 4, 6));
        add(&arrivals.slept, 3);
        add(&arrivals.wakeup_latency_ns, 90_000);
        progress.add(&arrivals, pace(100.0, false), clock, tick, false);
        let woken =
            progress.since(ArrivalProgress { slept: 1, wakeup_latency_ns: 20_000, ..ArrivalProgress::default() });
        assert_eq!((woken.slept, woken.wakeup_latency_ns), (2, 70_000));
    }
}
