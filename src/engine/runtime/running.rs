//! The handle on the running processes of a run, used by the controller.

use super::hang::ThreadActivity;
use super::pace::{self, ArrivalProgress, PacedThread};
use super::phases::PhaseTicks;
use super::shared::{Fault, FaultKind, Shared, ThreadSlot};
use super::space_watch;
use super::stop_detector::StopDetector;
use super::unfinished::UnfinishedThread;
use crate::exec::trace::Stream;
use crate::sync::NEVER;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;
use wml_os::{proc, schedule, signals};
use wml_result::FlowopCounter;
use wml_result::snapshot::Snapshot;

/// Interval at which the controller checks for signals while threads get ready.
const READY_POLL: Duration = Duration::from_millis(100);

/// Maximum sleep of the controller during a run. A signal between its check and its sleep is only seen after this.
const MAX_SLEEP: Duration = Duration::from_millis(700);

/// Time without progress after which a run without a time limit is checked for a deadlock of its threads.
const STALL_CHECK: Duration = Duration::from_secs(3);

/// The running processes of a run.
#[derive(Debug)]
pub struct Running {
    pub(super) shared: Arc<Shared>,
    leaders: Vec<JoinHandle<()>>,
    space_watch: Option<JoinHandle<()>>,
    phase_clock: Option<JoinHandle<()>>,
    /// The start of the measurement: the tick at which the gate opened or the counters were cleared.
    from: u64,
    /// The counters at that tick, if they were cleared.
    baseline: Option<Vec<Snapshot>>,
    /// The progress of open loops at that tick, by the number of their phase.
    arrivals_before: BTreeMap<PacedThread, ArrivalProgress>,
    pub(super) activity: Mutex<ThreadActivity>,
    /// The time for which the program was stopped since the gate opened, in nanoseconds, as far as detected.
    stopped_ns: AtomicU64,
}

/// The reason for the end of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The time is over.
    Time,
    /// All threads have nothing left to do.
    AllDone,
    /// One thread has nothing left to do, and the mode is `firstdone`.
    FirstDone,
    /// A `finishoncount` or `finishonbytes` was reached.
    Finished,
    /// A signal with this number.
    Interrupted(usize),
    /// The callback requested the end.
    Asked,
    /// A failure.
    Fault(Fault),
}

impl Ended {
    /// True if the script defines this end of the run.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Time | Self::AllDone | Self::FirstDone | Self::Finished)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waited {
    /// The reason.
    pub ended: Ended,
    /// The tick at which the measurement ends.
    pub tick: u64,
}

/// The argument of the callback at each interval.
#[derive(Debug)]
pub struct Tick<'a> {
    /// Time since the start of the measurement, in nanoseconds.
    pub elapsed_ns: u64,
    /// The handle, to sample the counters.
    pub running: &'a Running,
}

/// The counters of all flowops at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time, in ticks.
    pub tick: u64,
    pub flowops: Vec<Snapshot>,
    /// The threads that had not ended, in a sample of [`Running::measured_at_end`]; else empty.
    pub unfinished: Vec<UnfinishedThread>,
}

/// The stream of operations of one thread.
#[derive(Clone, Debug)]
pub struct ThreadStream {
    /// The index of the process in the plan.
    pub process: usize,
    pub instance: usize,
    /// The index of the thread in the process.
    pub thread: usize,
    /// The number of that thread's instance.
    pub number: usize,
    /// The operations.
    pub stream: Box<Stream>,
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>, leaders: Vec<JoinHandle<()>>, phase_clock: Option<JoinHandle<()>>) -> Self {
        Self {
            shared,
            leaders,
            space_watch: None,
            phase_clock,
            from: 0,
            baseline: None,
            arrivals_before: BTreeMap::new(),
            activity: Mutex::default(),
            stopped_ns: AtomicU64::new(0),
        }
    }

    /// Waits until all threads are ready. `Err` when a thread could not be prepared or a signal arrived.
    pub fn wait_until_ready(&self) -> Result<(), Ended> {
        let shared = &self.shared;
        let thread_slots = shared.thread_slots.len() as u32;
        while shared.gate.wait_ready(thread_slots, READY_POLL) < thread_slots {
            if let Some(signal) = self.interrupted() {
                return Err(Ended::Interrupted(signal));
            }
        }
        if let Some(fault) = shared.wait_for(Duration::ZERO, |reports| reports.fault.clone()) {
            return Err(Ended::Fault(fault));
        }
        Ok(())
    }

    /// Opens the gate for the threads, which must be ready; the run ends after `limit`.
    pub fn open(&mut self, limit: Option<Duration>) {
        let shared = &self.shared;
        signals::second_breaks_off(signals::BrokenOff::Run);
        wml_os::annotate("gate opens");
        self.from = shared.clock.raw();
        shared.set_deadline(self.tick_after(limit));
        shared.phases.open(self.from);
        shared.gate.open(self.from);
        self.space_watch = space_watch::start(shared);
        shared.iterations.report_absent(shared);
    }

    /// Ends a run whose gate has not been opened: threads that wait there, or are still being prepared, end without an
    /// operation. They would otherwise wait until the run is joined, and look like threads in a system call.
    pub fn dismiss(&self) {
        self.shared.stop(0);
        self.shared.gate.open(0);
    }

    /// True if the gate was opened for the threads, so that they may have begun operations.
    pub(super) fn has_begun(&self) -> bool {
        self.from > 0
    }

    /// Returns the tick that is `limit` after the start of the measurement.
    fn tick_after(&self, limit: Option<Duration>) -> u64 {
        let ticks = |d: Duration| self.shared.clock.ticks(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        limit.map_or(NEVER, |d| self.from.saturating_add(ticks(d)))
    }

    /// Changes the end of the run to `limit` after the start of the measurement.
    pub fn end_after(&self, limit: Duration) {
        self.shared.set_deadline(self.tick_after(Some(limit)));
    }

    /// Waits until `limit` after the start of the measurement, or an earlier end of the run. Calls `watch` once each
    /// `interval`; it ends the wait by returning false.
    pub fn wait(
        &self,
        limit: Option<Duration>,
        interval: Duration,
        watch: &mut dyn FnMut(&Tick<'_>) -> bool,
    ) -> Waited {
        let shared = &self.shared;
        let clock = shared.clock;
        let until = self.tick_after(limit);
        let _first = schedule::PriorityGuard::new();
        let step = clock.ticks(interval.as_nanos() as u64).max(1);
        let mut next = self.from.saturating_add(step);
        // A run without a time limit must not wait forever for threads that wait for one another.
        let (mut seen, mut since) = (None, self.from);
        let mut detector = StopDetector::new(clock.raw());
        loop {
            let now = clock.raw();
            self.stopped_ns.fetch_add(detector.update(clock, now), Relaxed);
            if let Some(waited) = self.end_reason(now, until) {
                return waited;
            }
            if limit.is_none() && clock.ns(since, now) >= STALL_CHECK.as_nanos() as u64 {
                let done = self.all_ops();
                if seen == Some(done)
                    && let Some(fault) = self.mutual_wait()
                    && self.all_ops() == done
                {
                    return Waited { ended: Ended::Fault(fault), tick: now };
                }
                (seen, since) = (Some(done), now);
            }
            if now >= next {
                next += step * ((now - next) / step + 1);
                if !watch(&Tick { elapsed_ns: clock.ns(self.from, now), running: self }) {
                    return Waited { ended: Ended::Asked, tick: clock.raw() };
                }
                continue;
            }
            self.update_activity(now);
            let rest = Duration::from_nanos(clock.ns(now, until.min(next))).min(MAX_SLEEP);
            let thread_slots = shared.thread_slots.len();
            detector.due = now.saturating_add(clock.ticks(rest.as_nanos() as u64));
            shared.wait_for(rest, |reports| {
                (reports.done == thread_slots && thread_slots > 0
                    || reports.fault.is_some()
                    || reports.finished
                    || reports.first_done)
                    .then_some(())
            });
        }
    }

    /// Returns the start and the end of each phase. Empty for a workload with a single phase.
    pub fn phases(&self) -> Vec<PhaseTicks> {
        let phases = &self.shared.phases;
        if phases.is_one() { Vec::new() } else { phases.ticks(self.shared.gate.opened()) }
    }

    /// Returns the opening of the gate, in ticks; 0 before.
    pub fn opened(&self) -> u64 {
        self.shared.gate.opened()
    }

    /// Returns the minimum time for which the program was stopped since the gate opened.
    pub fn stopped(&self) -> Duration {
        Duration::from_nanos(self.stopped_ns.load(Relaxed))
    }

    /// Checks which threads have made progress, if the last check is some time ago.
    fn update_activity(&self, now: u64) {
        self.activity.lock().update(&self.shared, self.from, now);
    }

    /// Returns the fault if system calls on files block threads of a run that was to end at `end`, and have for long.
    pub fn stuck(&self, end: u64) -> Option<Fault> {
        self.activity.lock().stuck(&self.shared, self.from, end)
    }

    /// Waits for the threads of a run that has stopped as long as a system call blocks one of them although the devices
    /// transfer nothing, until it is certain that the run is stuck, or `is_over`.
    pub fn wait_for_blocked(&self, is_over: impl Fn() -> bool) {
        const POLL: Duration = Duration::from_millis(100);
        if self.n_remaining() == 0 {
            return;
        }
        // The first look finds what the devices have transferred during the run.
        self.is_held();
        while !is_over() && self.join_within(POLL) > 0 && self.activity.lock().may_return(&self.shared, self.from) {}
    }

    /// True if a thread that has not ended is blocked in a system call, and not by devices that transfer data.
    pub fn is_held(&self) -> bool {
        self.activity.lock().is_held(&self.shared)
    }

    /// Returns the panic of a thread, if there was one at any time.
    pub fn panic(&self) -> Option<Fault> {
        const PATIENCE: Duration = Duration::from_secs(1);
        if !self.shared.panicked.load(SeqCst) {
            return None;
        }
        let fault = || self.shared.wait_for(PATIENCE, |reports| reports.fault.clone());
        // The first report may be the end of another thread.
        let until = std::time::Instant::now() + PATIENCE;
        let mut found = fault();
        while found.is_none() && std::time::Instant::now() < until {
            found = fault();
        }
        found.filter(|fault| fault.kind == FaultKind::Panic)
    }

    /// True if the space watch has waited longer than `limit` for a file system.
    pub fn waits_for_space(&self, limit: Duration) -> bool {
        let since = self.shared.space_query_since.load(Relaxed);
        since > 0 && self.shared.clock.ns(since, self.shared.clock.raw()) > limit.as_nanos() as u64
    }

    /// Returns the current state: a fault or an end that has occurred, else the time.
    pub fn status(&self) -> Waited {
        let now = self.shared.clock.raw();
        self.end_reason(now, now).unwrap_or(Waited { ended: Ended::Time, tick: now })
    }

    /// Returns the fault if all remaining threads wait for another one at a semaphore or a latch, or for a file.
    /// Meaningful only after some time without progress.
    fn mutual_wait(&self) -> Option<Fault> {
        let shared = &self.shared;
        if shared.iterations.is_awaited() || shared.phases.is_timed_now() {
            return None;
        }
        let is_left = |s: &&ThreadSlot| !s.done.load(SeqCst) && shared.phases.has_begun(s.process);
        let (mut first, mut starves) = (None, false);
        for thread_slot in shared.thread_slots.iter().filter(is_left) {
            if !self.waits_for_others(thread_slot) {
                return None;
            }
            first = first.or_else(|| self.flowop_of(thread_slot));
            starves |= thread_slot.starves.load(SeqCst);
        }
        let (what, help) = if starves {
            (
                "all remaining threads wait for a post, a wake-up or a file",
                "give the file set more `entries`, add a `sempost` that runs to the end, or limit the run time \
                 (`--runtime`)",
            )
        } else {
            (
                "all remaining threads wait for a post or a wake-up",
                "add a `sempost` that runs to the end, or limit the run time (`--runtime`)",
            )
        };
        Some(Fault { flowop: Some(first?), ..Fault::plain(FaultKind::Stuck, what, help) })
    }

    /// Returns the number of operations of all threads.
    fn all_ops(&self) -> u64 {
        self.shared.thread_slots.iter().map(|s| s.stats.total_ops()).sum()
    }

    /// Returns the reason for an end of the wait until `until`, if there is one at `now`.
    fn end_reason(&self, now: u64, until: u64) -> Option<Waited> {
        let thread_slots = self.shared.thread_slots.len();
        let found = self.shared.wait_for(Duration::ZERO, |reports| {
            // A failure after the end does not belong to the measurement.
            let ended = if let Some(fault) = reports.fault.as_ref().filter(|_| reports.tick.is_none_or(|t| t <= until))
            {
                Ended::Fault(fault.clone())
            } else if reports.finished {
                Ended::Finished
            } else if reports.first_done {
                Ended::FirstDone
            } else if reports.done == thread_slots && now < until && (thread_slots > 0 || until == NEVER) {
                Ended::AllDone
            } else {
                return None;
            };
            Some((ended, reports.tick))
        });
        if let Some((ended, tick)) = found {
            let tick = tick.unwrap_or_else(|| self.last_end(now));
            return Some(Waited { ended, tick: tick.min(until) });
        }
        if let Some(signal) = self.interrupted() {
            return Some(Waited { ended: Ended::Interrupted(signal), tick: now.min(until) });
        }
        (now >= until).then_some(Waited { ended: Ended::Time, tick: until })
    }

    /// Returns the tick at which the last thread ended.
    fn last_end(&self, now: u64) -> u64 {
        self.shared.thread_slots.iter().map(|s| s.ended.load(SeqCst)).max().filter(|t| *t > 0).unwrap_or(now)
    }

    /// Returns the signal that was received, if any.
    fn interrupted(&self) -> Option<usize> {
        Some(self.shared.options.interrupt.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// Returns the current counters, since the gate opened.
    pub fn sample(&self) -> Sample {
        self.sample_by(|_, thread_slot, flowops| {
            self.add_counters(thread_slot, flowops);
        })
    }

    /// Returns the counters that `add` adds for each thread, of which it gets the index among all threads.
    pub(super) fn sample_by(&self, mut add: impl FnMut(usize, &ThreadSlot, &mut [Snapshot])) -> Sample {
        let shared = &self.shared;
        let mut flowops = vec![Snapshot::default(); shared.plan.flowops.len()];
        let tick = shared.clock.raw();
        for (index, thread_slot) in shared.thread_slots.iter().enumerate() {
            add(index, thread_slot, &mut flowops);
        }
        // A sample during the run may have an operation in one counter and not in another: the histogram decides.
        flowops.iter_mut().for_each(|flowop| flowop.ops = flowop.latency.count);
        Sample { tick, flowops, unfinished: Vec::new() }
    }

    /// Adds the current counters of a thread to those of all flowops. Returns the number of its late operations.
    pub(super) fn add_counters(&self, thread_slot: &ThreadSlot, flowops: &mut [Snapshot]) -> u64 {
        let thread = &self.shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        let own = &mut flowops[thread.first..thread.first + thread.count];
        let late = |own: &[Snapshot]| own.iter().map(|flowop| flowop[FlowopCounter::LateOps]).sum::<u64>();
        let before = late(own);
        for (local, flowop) in own.iter_mut().enumerate() {
            thread_slot.stats.add_to(local, flowop);
        }
        late(own) - before
    }

    /// Returns the counters since [`Running::clear`], or since the gate opened.
    pub fn measured(&self) -> Sample {
        self.since_start(self.sample())
    }

    /// Subtracts the counters at the start of the measurement from a sample.
    pub(super) fn since_start(&self, mut sample: Sample) -> Sample {
        if let Some(baseline) = &self.baseline {
            for (now, before) in sample.flowops.iter_mut().zip(baseline) {
                *now = now.minus(before);
            }
        }
        sample
    }

    /// Starts a measurement: earlier operations no longer count. Returns their counters.
    pub fn clear(&mut self) -> Sample {
        let sample = self.sample();
        self.from = sample.tick;
        self.baseline = Some(sample.flowops.clone());
        self.shared.thread_slots.iter().for_each(|s| s.stats.begin_measurement());
        self.arrivals_before = pace::progress(&self.shared, sample.tick);
        sample
    }

    /// Returns the progress of open loops from the start of the measurement to `tick`, by thread definition. Empty
    /// when there are no open loops.
    pub fn open_loops(&self, tick: u64) -> BTreeMap<PacedThread, ArrivalProgress> {
        let before = |of: PacedThread| self.arrivals_before.get(&of).copied().unwrap_or_default();
        pace::progress(&self.shared, tick).into_iter().map(|(of, now)| (of, now.since(before(of)))).collect()
    }

    /// Returns the start of the measurement, in ticks.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Returns the time between two ticks, in nanoseconds.
    pub fn ns(&self, start: u64, end: u64) -> u64 {
        self.shared.clock.ns(start, end)
    }

    /// Changes the event generator's rate, of which this rank may have a part.
    pub fn set_rate(&self, rate: u64) {
        self.shared.set_event_rate(rate);
    }

    /// Returns the processors to which threads are bound, in round-robin order. `None` when they are not bound.
    pub fn pinned_processors(&self) -> Option<&[usize]> {
        self.shared.processors.as_deref()
    }

    pub fn n_flowops(&self) -> usize {
        self.shared.plan.flowops.len()
    }

    pub fn n_threads(&self) -> usize {
        self.shared.thread_slots.len()
    }

    /// Returns the streams of the threads that have ended, if they were recorded. Each stream is returned once.
    pub fn take_streams(&self) -> Vec<ThreadStream> {
        let thread_slots = self.shared.thread_slots.iter();
        thread_slots
            .filter_map(|s| {
                let stream = s.stream.lock().take()?;
                let ThreadSlot { process, instance, thread, number, .. } = *s;
                Some(ThreadStream { process, instance, thread, number, stream })
            })
            .collect()
    }

    /// Returns how the processes got their descriptor tables.
    pub fn tables(&self) -> proc::DescriptorTable {
        proc::DescriptorTable::ALL[usize::from(self.shared.tables.load(Relaxed))]
    }

    /// Ends the run at `tick`: operations that end later do not count.
    pub fn stop(&self, tick: u64) {
        self.shared.stop(tick);
    }

    /// True if the run was ended.
    pub fn is_stopped(&self) -> bool {
        self.shared.gate.is_stopped()
    }

    /// Waits until all threads have ended, for at most `limit`. Returns the number of threads that have not.
    pub fn join_within(&self, limit: Duration) -> usize {
        let thread_slots = self.shared.thread_slots.len();
        let until = std::time::Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            let done = self.shared.wait_for(left, |reports| (reports.done == thread_slots).then_some(reports.done));
            if done.is_some() && !self.shared.over.swap(true, SeqCst) {
                wml_os::annotate("all threads are done");
            }
            if done.is_some() || left.is_zero() {
                return self.n_remaining();
            }
        }
    }

    /// Returns the number of threads that have not ended.
    pub fn n_remaining(&self) -> usize {
        self.shared.thread_slots.iter().filter(|s| !s.done.load(SeqCst)).count()
    }

    /// Returns the first failure of a thread that closed its files, for a run that ended well otherwise.
    pub fn closing_fault(&self) -> Option<Fault> {
        self.shared.closing_fault()
    }

    /// Returns the synchronization flowops in which threads waited until the end without ever having passed them: by
    /// flowop, the number of threads. Only meaningful after a run that ended by time.
    pub fn held(&self) -> BTreeMap<usize, u64> {
        self.count_at(|thread_slot, flowop| {
            let local = thread_slot.at.load(Relaxed) as usize;
            let has_begun = self.shared.phases.has_begun(thread_slot.process) && !self.awaits_its_start(thread_slot);
            has_begun && self.is_sync(flowop) && thread_slot.stats.cell(local).ops() == 0
        })
    }

    /// Returns the flowops whose threads ended because no file was left: by flowop, the number of threads.
    pub fn exhausted(&self) -> BTreeMap<usize, u64> {
        self.count_at(|thread_slot, _| thread_slot.exhausted.load(SeqCst))
    }

    /// Counts the threads for which `holds` is true, by the flowop that they ran last.
    fn count_at(&self, holds: impl Fn(&ThreadSlot, usize) -> bool) -> BTreeMap<usize, u64> {
        let mut counts = BTreeMap::new();
        for thread_slot in &self.shared.thread_slots {
            if let Some(flowop) = self.flowop_of(thread_slot).filter(|flowop| holds(thread_slot, *flowop)) {
                *counts.entry(flowop).or_default() += 1;
            }
        }
        counts
    }

    /// Ends the run, waits for all threads to return from their last call, for at most `limit`, and then for the
    /// processes to exit, which only free their resources. Returns false if a thread has not returned; its threads are
    /// then left to the exit of wmlrun.
    pub fn join(mut self, limit: Duration) -> bool {
        self.stop(self.shared.clock.raw());
        self.shared.gate.open(self.shared.clock.raw());
        let until = std::time::Instant::now() + limit;
        let left = self.join_within(limit);
        if let Some(space_watch) = self.space_watch.take() {
            // The space watch sleeps at the gate, which is stopped, unless it waits for a file system that does not
            // respond.
            while !space_watch.is_finished() && std::time::Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if let Some(phase_clock) = self.phase_clock.take() {
            // It makes no call on a file, and the run has stopped.
            let _ = phase_clock.join();
        }
        if left > 0 {
            // A thread in a system call that never returns cannot be ended, only left behind.
            self.leaders.drain(..).for_each(drop);
            return false;
        }
        self.leaders.drain(..).all(|leader| leader.join().is_ok())
    }

    /// Ends a run before the gate was opened, and waits for its threads.
    pub(super) fn abandon(self) {
        // Leaders that were not started have no threads that would arrive; the others end at once.
        self.dismiss();
        for thread in self.leaders.into_iter().chain(self.phase_clock) {
            let _ = thread.join();
        }
    }
}
