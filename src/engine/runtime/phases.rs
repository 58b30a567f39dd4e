//! Phases: groups of processes, each of which starts when all threads of the previous group have ended, on all ranks.
//!
//! The threads of all phases are prepared before the run begins; those of later phases wait for their start at a latch.
//! A phase with a length (`for=`) has its own deadline, in a gate of its own: its threads compare with it as those of
//! other phases do with the end of the run, so that an operation costs the same. The phase clock (`phase_clock`) wakes
//! those that wait when it is over.
//!
//! The accesses are `SeqCst`, though the latch alone orders what matters: the start of a phase is stored before its
//! latch is raised, and read after passing it. Threads access these words only when they start and end.

use crate::plan::Plan;
use crate::sync::{EventPool, Gate, Latch, NEVER, Notifier, Stopped};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use wml_os::Clock;

/// One phase of a run.
#[derive(Debug)]
struct PhaseState {
    number: u32,
    /// The number of threads that have not ended.
    unfinished: AtomicUsize,
    /// The tick at which it began; 0 before. The first phase of the workload begins with the gate, unless it has a start.
    began: AtomicU64,
    /// The tick at which its last thread ended; 0 before.
    ended: AtomicU64,
    /// The latch at which its threads wait. Each thread that passes raises it for the next one.
    start: Latch,
    /// The time from the start of the run before which it does not begin.
    earliest: Option<Duration>,
    /// The end of its threads' time. `None` for a phase without a length.
    limit: Option<PhaseLimit>,
    /// The events that its threads claim.
    events: EventPool,
}

/// The end of a phase with a length.
#[derive(Debug)]
struct PhaseLimit {
    /// In ticks.
    length: u64,
    /// The tick of the end; [`NEVER`] before it begins.
    end: AtomicU64,
    /// The earlier of this and the end of the run is its deadline.
    gate: Gate,
}

impl PhaseLimit {
    /// Sets the deadline when the run's is `of_run`.
    fn set_deadline(&self, of_run: u64) {
        self.gate.set_deadline(of_run.min(self.end.load(SeqCst)));
    }
}

/// The phases of a run, in order.
#[derive(Debug)]
pub(super) struct Phases {
    states: Vec<PhaseState>,
    /// The index of each process's phase. That of a process without threads has no meaning.
    place: Vec<usize>,
    /// Whether the workload has only one phase, without a start and a length, so that no process waits.
    is_one: bool,
    /// Whether the first phase of this rank does not begin with the run: it has a start, or other ranks have a phase
    /// before it.
    is_late: bool,
    /// Whether a thread waits for that start.
    is_awaited: AtomicBool,
    /// The end of the run, in ticks. Locked while a deadline is set: it depends on this and on the start of its phase.
    run_end: Mutex<u64>,
    /// Notified when a phase begins or ends, and when the run stops.
    changed: Notifier,
}

/// The start and the end of a phase, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseTicks {
    /// The number of the phase in the script.
    pub number: u32,
    /// The start before which it may not begin, if it has one.
    pub earliest: Option<Duration>,
    /// The start. `None` when the phase has not begun.
    pub began: Option<u64>,
    /// The end: that of its last thread, or of its time. `None` when a thread has not ended.
    pub ended: Option<u64>,
}

impl Phases {
    pub(super) fn new(plan: &Plan, clock: &Clock) -> Self {
        let numbers = plan.own_phases();
        let is_behind = numbers.first().is_some_and(|own| plan.phases.first().is_some_and(|first| first < own));
        let place: Vec<usize> =
            plan.processes.iter().map(|p| numbers.binary_search(&p.phase).unwrap_or_default()).collect();
        let mut threads = vec![0; numbers.len()];
        for (process, place) in plan.processes.iter().zip(&place) {
            let own: usize = process.threads.iter().map(|thread| thread.instances as usize).sum();
            threads.get_mut(*place).into_iter().for_each(|all| *all += process.instances as usize * own);
        }
        let ticks = |time: Duration| clock.ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let phase_times = plan.phase_times();
        let phase = |(number, threads)| {
            let times = phase_times.get(&number).copied().unwrap_or_default();
            PhaseState {
                number,
                unfinished: AtomicUsize::new(threads),
                began: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                start: Latch::default(),
                earliest: times.start,
                limit: times.length.map(|length| PhaseLimit {
                    length: ticks(length),
                    end: AtomicU64::new(NEVER),
                    gate: Gate::new(),
                }),
                events: EventPool::new(plan.event_rate.map(|rate| plan.event_share(number).of(rate))),
            }
        };
        let states: Vec<PhaseState> = numbers.into_iter().zip(threads).map(phase).collect();
        Self {
            is_late: is_behind || states.first().is_some_and(|first| first.earliest.is_some()),
            place,
            is_one: plan.phases.len() < 2
                && states.iter().all(|phase| phase.limit.is_none() && phase.earliest.is_none()),
            is_awaited: AtomicBool::new(false),
            states,
            run_end: Mutex::new(NEVER),
            changed: Notifier::default(),
        }
    }

    /// True if the workload has only one phase, without a start and a length, so that no process waits.
    pub(super) fn is_one(&self) -> bool {
        self.is_one
    }

    /// True if a phase has a length.
    pub(super) fn has_lengths(&self) -> bool {
        self.states.iter().any(|phase| phase.limit.is_some())
    }

    /// Returns the number of the first phase to the first thread that calls this, which has to begin it when it may begin.
    /// `None` if it begins with the run.
    pub(super) fn take_first(&self) -> Option<u32> {
        let first = self.states.first().filter(|_| self.is_late && !self.is_awaited.swap(true, SeqCst));
        first.map(|phase| phase.number)
    }

    fn of(&self, process: usize) -> &PhaseState {
        &self.states[self.place[process]]
    }

    fn numbered(&self, number: u32) -> Option<&PhaseState> {
        self.states.iter().find(|phase| phase.number == number)
    }

    /// True if a process belongs to a phase that begins with the run, and so waits for nothing.
    pub(super) fn is_first(&self, process: usize) -> bool {
        self.place[process] == 0 && !self.is_late
    }

    /// Waits for the phase of a process, which must not be the first. Returns the tick at which it began. `Err` when
    /// the run has stopped.
    pub(super) fn wait(&self, process: usize) -> Result<u64, Stopped> {
        let phase = self.of(process);
        phase.start.pass()?;
        phase.start.raise();
        Ok(phase.began.load(SeqCst))
    }

    /// True if the phase of a process has begun.
    pub(super) fn has_begun(&self, process: usize) -> bool {
        self.is_first(process) || self.of(process).began.load(SeqCst) > 0
    }

    /// Returns the gate with the deadline of a process's threads, if its phase has a length.
    pub(super) fn gate_of(&self, process: usize) -> Option<&Gate> {
        self.of(process).limit.as_ref().map(|limit| &limit.gate)
    }

    /// Returns the events that the threads of a process claim.
    pub(super) fn events_of(&self, process: usize) -> &EventPool {
        &self.of(process).events
    }

    /// Returns the tick, at most `tick`, up to which the threads of a process were to work: the end of their phase.
    pub(super) fn worked_until(&self, process: usize, tick: u64) -> u64 {
        self.of(process).ended_by(tick)
    }

    /// Accounts for the end of a thread at `tick`. Returns the number of the next phase if this thread was the last one
    /// of its phase, and is to begin the next.
    pub(super) fn leave(&self, process: usize, tick: u64) -> Option<u32> {
        let phase = self.of(process);
        if phase.unfinished.fetch_sub(1, SeqCst) != 1 {
            return None;
        }
        phase.ended.store(tick, SeqCst);
        self.changed.notify();
        self.states.get(self.place[process] + 1).map(|next| next.number)
    }

    /// Begins the phase of the run's start at this tick, unless it begins later.
    pub(super) fn open(&self, tick: u64) {
        if let Some(first) = self.states.first().filter(|_| !self.is_late) {
            self.begin_at(first, tick);
        }
    }

    /// Returns the time from the start of the run before which a phase does not begin.
    pub(super) fn earliest(&self, number: u32) -> Option<Duration> {
        self.numbered(number)?.earliest
    }

    /// Begins a phase at `tick`.
    pub(super) fn begin(&self, number: u32, tick: u64) {
        if let Some(phase) = self.numbered(number) {
            self.begin_at(phase, tick);
            phase.start.raise();
        }
    }

    fn begin_at(&self, phase: &PhaseState, tick: u64) {
        // Events that became due before it are none of it.
        phase.events.begin();
        phase.began.store(tick, SeqCst);
        if let Some(limit) = &phase.limit {
            let run_end = self.run_end.lock();
            limit.end.store(tick.saturating_add(limit.length), SeqCst);
            limit.set_deadline(*run_end);
        }
        self.changed.notify();
    }

    pub(super) fn set_run_end(&self, tick: u64) {
        let mut run_end = self.run_end.lock();
        *run_end = tick;
        self.states.iter().filter_map(|phase| phase.limit.as_ref()).for_each(|limit| limit.set_deadline(tick));
    }

    /// Changes the rate of the events. `share`: that of this rank in a phase.
    pub(super) fn set_event_rate(&self, share: impl Fn(u32) -> u64) {
        self.states.iter().for_each(|phase| phase.events.set_rate(share(phase.number)));
    }

    /// Returns the number of the phase whose time is running, and the tick at which that ends, if it has a length.
    pub(super) fn next_end(&self) -> Option<(u32, u64)> {
        self.states.iter().find_map(|phase| {
            let limit = phase.limit.as_ref().filter(|limit| !limit.gate.is_stopped())?;
            let end = limit.end.load(SeqCst);
            (end != NEVER && phase.ended.load(SeqCst) == 0).then_some((phase.number, end))
        })
    }

    /// True if a phase with a length has begun and not ended: its threads do not wait for ever.
    pub(super) fn is_timed_now(&self) -> bool {
        self.next_end().is_some()
    }

    /// Ends the time of a phase at `tick`: wakes its threads that sleep at their gate or wait for events.
    pub(super) fn end(&self, number: u32, tick: u64) {
        let Some(phase) = self.numbered(number) else { return };
        phase.events.close();
        if let Some(limit) = &phase.limit {
            limit.gate.stop(tick);
        }
    }

    /// Returns the number of changes so far, for [`Phases::wait_change`].
    pub(super) fn changes(&self) -> u32 {
        self.changed.generation()
    }

    /// Waits until a phase begins or ends, or the run stops; at most for `time`.
    pub(super) fn wait_change(&self, changes: u32, time: Duration) {
        self.changed.wait(changes, time);
    }

    /// Stops the run at `tick`: ends the waits of all phases.
    pub(super) fn close(&self, tick: u64) {
        for phase in &self.states {
            phase.start.close();
            phase.events.close();
            phase.limit.iter().for_each(|limit| limit.gate.stop(tick));
        }
        self.changed.notify();
    }

    /// Returns the start and the end of all phases. `opened` is the opening of the gate.
    pub(super) fn ticks(&self, opened: u64) -> Vec<PhaseTicks> {
        let some = |tick: u64| (tick > 0).then_some(tick);
        let ticks = |(place, phase): (usize, &PhaseState)| PhaseTicks {
            number: phase.number,
            earliest: phase.earliest,
            began: if place == 0 && !self.is_late { Some(opened) } else { some(phase.began.load(SeqCst)) },
            ended: some(phase.ended.load(SeqCst)).map(|ended| phase.ended_by(ended)),
        };
        self.states.iter().enumerate().map(ticks).collect()
    }
}

impl PhaseState {
    /// Returns the end of its work as known at `tick`: that of its last thread or of its time, or else `tick`.
    fn ended_by(&self, tick: u64) -> u64 {
        let of_threads = self.ended.load(SeqCst);
        let of_time = self.limit.as_ref().map_or(NEVER, |limit| limit.end.load(SeqCst));
        tick.min(of_time).min(if of_threads > 0 { of_threads } else { NEVER })
    }
}
