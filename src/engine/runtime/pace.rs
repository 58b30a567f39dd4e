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
use std::sync::Arc;
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

/// The queue of all threads of a definition (`queue=shared`): who is free takes the next iteration, and waits until it
/// begins. So iterations begin in the order of their intended starts, each by the thread that was free first.
#[derive(Debug)]
pub(super) struct SharedQueue {
    /// The intended start of the next iteration that a thread takes, in nanoseconds after `start`, as the bits of a
    /// float; [`UNSET`](Self::UNSET) at first.
    next_ns: AtomicU64,
    /// The start of the schedule, in ticks; 0 before it begins.
    start: AtomicU64,
    /// The threads of the rank, and those of them that may take iterations.
    threads: u64,
    open: AtomicU64,
}

impl SharedQueue {
    const UNSET: u64 = u64::MAX;

    pub(super) fn new(threads: u64) -> Self {
        Self { next_ns: AtomicU64::new(Self::UNSET), start: AtomicU64::new(0), threads, open: AtomicU64::new(threads) }
    }

    /// A thread takes no more iterations. `as_planned`: the script means it to end.
    fn leave(&self, as_planned: bool) {
        if self.open.fetch_sub(1, Relaxed) == 1 && as_planned {
            self.next_ns.store(Self::UNSET, Relaxed);
        }
    }

    /// Takes the next iteration, and returns its intended start. `gap` returns the time from an iteration to the next,
    /// given the bits of its start: which thread takes an iteration does not change the schedule.
    fn take(&self, gap: impl Fn(u64) -> f64) -> f64 {
        let next = |bits: u64| Some((f64::from_bits(bits) + gap(bits)).to_bits());
        let taken = self.next_ns.fetch_update(Relaxed, Relaxed, next);
        f64::from_bits(taken.unwrap_or_else(|bits| bits))
    }

    /// Adds the iterations that nobody has taken and that are due at `tick`.
    fn add_to(&self, progress: &mut ArrivalProgress, pace: Pace, clock: &Clock, tick: u64) {
        let (start, bits) = (self.start.load(Relaxed), self.next_ns.load(Relaxed));
        if start == 0 || bits == Self::UNSET {
            return;
        }
        let next = start.saturating_add(clock.ticks(f64::from_bits(bits) as u64));
        if next < tick {
            let rate = pace.rate * self.threads as f64;
            let behind = 1 + (clock.ns(next, tick) as f64 * rate / 1e9) as u64;
            progress.backlog += behind;
            progress.offered += behind;
            progress.lost += if self.open.load(Relaxed) == 0 { behind } else { 0 };
            progress.oldest_ns = progress.oldest_ns.max(clock.ns(next, tick));
        }
    }
}

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
            let behind = match pace.is_shared {
                // The one that the thread has taken.
                true => 1,
                false if pace.poisson => since(next),
                false => since(first).saturating_sub(begun),
            };
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
            if let Some(queue) = thread_slot.queue.as_ref().filter(|_| thread_slot.instance + thread_slot.number == 0) {
                queue.add_to(of_definition, pace, shared.clock, tick);
            }
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
    /// The seed of the queue of its definition on all ranks.
    pub(super) queue_seed: u64,
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
        let queue_seed = random::below(&mut random::stream(run_seed, &[0x7ace, definition as u64]), u64::MAX);
        Self { number: number as u64, offset: (common + apart).fract(), queue_seed }
    }

    /// Returns the part of its first interval after which a thread with evenly spaced iterations begins. The threads of
    /// a definition take turns, so that together they are evenly spaced: a simultaneous start would be a burst that the
    /// script does not ask for, and starts at random would offer more or less than the rate in a short time.
    fn of(self, pace: Pace) -> f64 {
        ((pace.before + self.number) as f64 + self.offset) / pace.threads as f64
    }
}

/// The queue that a thread takes iterations from, and what their times are drawn from.
struct ThreadQueue {
    queue: Arc<SharedQueue>,
    seed: u64,
    mean_ns: f64,
    poisson: bool,
}

impl ThreadQueue {
    fn new(queue: Arc<SharedQueue>, pace: Pace, slot: ArrivalSlot) -> Self {
        let mean_ns = 1e9 / (pace.rate * queue.threads as f64);
        let own = Self { queue, seed: slot.queue_seed.wrapping_add(pace.before), mean_ns, poisson: pace.poisson };
        let first =
            if pace.poisson { own.gap(0) } else { ArrivalSlot { number: 0, ..slot }.of(pace) * 1e9 / pace.rate };
        // The first thread sets it; the others have the same.
        let _ = own.queue.next_ns.compare_exchange(SharedQueue::UNSET, first.to_bits(), Relaxed, Relaxed);
        own
    }

    fn gap(&self, bits: u64) -> f64 {
        if self.poisson { exponential(&mut random::stream(self.seed, &[bits])) * self.mean_ns } else { self.mean_ns }
    }
}

/// Draws from the exponential distribution with mean 1.
fn exponential(rng: &mut Rng) -> f64 {
    -random::unit_above_zero(rng).ln()
}

/// The timetable of a thread.
pub(super) struct Timetable {
    pace: Pace,
    queue: Option<ThreadQueue>,
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
    pub(super) fn new(
        pace: Pace,
        seed: u64,
        slot: ArrivalSlot,
        queue: Option<Arc<SharedQueue>>,
        spare_cpus: bool,
    ) -> Self {
        proc::precise_timers();
        let spin_below = if spare_cpus { Clock::get().ticks(SPIN_BELOW_NS) } else { 0 };
        let queue = queue.map(|queue| ThreadQueue::new(queue, pace, slot));
        let mut table = Self { pace, queue, rng: random::stream(seed, &[0x7ace]), start: 0, next_ns: 0.0, spin_below };
        let first = table.gap();
        table.next_ns = if pace.poisson { first } else { slot.of(pace) * first };
        table
    }

    /// Starts the schedule at `began`: the start of the thread's phase, or the opening of the gate.
    pub(super) fn start(&mut self, cx: &OpCx<'_>, began: u64, arrivals: &Arrivals) {
        self.start = began;
        if let Some(own) = &self.queue {
            own.queue.start.store(began, Relaxed);
            return;
        }
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
        if self.pace.poisson { exponential(&mut self.rng) * mean } else { mean }
    }

    /// Waits for the next iteration and begins it. Returns its intended start, in ticks. `None` when the run has ended.
    pub(super) fn begin(&mut self, cx: &mut OpCx<'_>, arrivals: &Arrivals) -> Option<u64> {
        if let Some(own) = &self.queue {
            self.next_ns = own.queue.take(|bits| own.gap(bits));
            arrivals.next.store(self.next_tick(cx.env.clock), Relaxed);
        }
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
        add(&arrivals.begun, 1);
        if self.queue.is_some() {
            arrivals.next.store(0, Relaxed);
        } else {
            self.next_ns += self.gap();
            arrivals.next.store(self.next_tick(cx.env.clock), Relaxed);
        }
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

    /// The thread takes no more iterations. `as_planned`: none are asked for.
    pub(super) fn close(&self, arrivals: &Arrivals, as_planned: bool) {
        if as_planned {
            arrivals.next.store(0, Relaxed);
        }
        self.queue.iter().for_each(|own| own.queue.leave(as_planned));
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
        Pace { rate, poisson, total: None, threads: 1, before: 0, is_shared: false }
    }

    /// Returns the timetable of a thread that is the only one of its definition.
    fn alone(pace: Pace, seed: u64) -> Timetable {
        Timetable::new(pace, seed, ArrivalSlot { number: 0, offset: 0.5, queue_seed: 1 }, None, false)
    }

    #[test]
    fn constant_iterations_of_all_threads_together_are_evenly_spaced() {
        // Ten threads on the second of two ranks, after five on the first, with 10 iterations a second each.
        let pace = Pace { threads: 15, before: 5, ..pace(10.0, false) };
        for (number, seed) in (0..10).zip(0..) {
            let mut table =
                Timetable::new(pace, seed, ArrivalSlot { number, offset: 0.25, queue_seed: 1 }, None, false);
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

    /// The timetables of three threads that share a queue.
    fn sharing(poisson: bool) -> (Arc<SharedQueue>, Vec<ThreadQueue>) {
        let queue = Arc::new(SharedQueue::new(3));
        let pace = Pace { threads: 3, is_shared: true, ..pace(100.0, poisson) };
        let slot = |number| ArrivalSlot { number, offset: 0.25, queue_seed: 9 };
        let threads = (0..3).map(|number| ThreadQueue::new(Arc::clone(&queue), pace, slot(number))).collect();
        (queue, threads)
    }

    #[test]
    fn iterations_of_a_shared_queue_do_not_depend_on_who_takes_them() {
        for poisson in [false, true] {
            let taken = |order: &[usize]| -> Vec<f64> {
                let (queue, threads) = sharing(poisson);
                order.iter().cycle().take(6000).map(|n| queue.take(|bits| threads[*n].gap(bits))).collect()
            };
            let found = taken(&[0, 1, 2]);
            assert_eq!(found, taken(&[2, 2, 0, 1]));
            assert!(found.is_sorted());
            // 300 a second.
            let seconds = found[5999] / 1e9;
            let wanted = if poisson { 20.0 * 0.95..20.0 * 1.05 } else { 19.99..20.01 };
            assert!(wanted.contains(&seconds), "{seconds}");
            if !poisson {
                assert!((found[0] - 0.25e9 / 300.0).abs() < 1e-3, "{}", found[0]);
            }
        }
    }

    #[test]
    fn what_nobody_has_taken_from_a_queue_is_its_backlog() {
        let clock = Clock::get();
        let (queue, threads) = sharing(false);
        let of = |tick: u64| {
            let mut found = ArrivalProgress::default();
            queue.add_to(&mut found, Pace { is_shared: true, ..pace(100.0, false) }, clock, tick);
            (found.offered, found.backlog, found.lost)
        };
        assert_eq!(of(u64::MAX / 2), (0, 0, 0), "before the start");
        queue.start.store(1000, Relaxed);
        // The first begins after a quarter of 3.33 ms.
        assert_eq!(of(1000 + clock.ticks(500_000)), (0, 0, 0));
        assert_eq!(of(1000 + clock.ticks(100_500_000)), (30, 30, 0));
        for n in 0..10 {
            queue.take(|bits| threads[n % 3].gap(bits));
        }
        assert_eq!(of(1000 + clock.ticks(100_500_000)), (20, 20, 0));
        (0..2).for_each(|_| queue.leave(false));
        assert_eq!(of(1000 + clock.ticks(100_500_000)), (20, 20, 0), "one goes on");
        queue.leave(false);
        assert_eq!(of(1000 + clock.ticks(100_500_000)), (20, 20, 20));
        let (queue, _) = sharing(false);
        queue.start.store(1000, Relaxed);
        (0..3).for_each(|_| queue.leave(true));
        let mut found = ArrivalProgress::default();
        queue.add_to(&mut found, pace(100.0, false), clock, 1000 + clock.ticks(100_500_000));
        assert_eq!(found.offered, 0, "threads that end as planned are asked for nothing");
    }
}
