//! Phases: groups of processes, each of which starts when all threads of the previous group have ended, on all ranks.
//!
//! The threads of all phases are prepared before the run begins; those of later phases wait for their start at a latch.
//!
//! The accesses are `SeqCst`, though the latch alone orders what matters: the start of a phase is stored before its
//! latch is raised, and read after passing it. Threads access these words only when they start and end.

use crate::plan::Plan;
use crate::sync::{Latch, Stopped};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// One phase of a run.
#[derive(Debug)]
struct PhaseState {
    number: u32,
    /// The number of threads that have not ended.
    unfinished: AtomicUsize,
    /// The tick at which it began; 0 before. The first phase of the workload begins with the gate.
    began: AtomicU64,
    /// The tick at which its last thread ended; 0 before.
    ended: AtomicU64,
    /// The latch at which its threads wait. Each thread that passes raises it for the next one.
    start: Latch,
}

/// The phases of a run, in order.
#[derive(Debug)]
pub(super) struct Phases {
    states: Vec<PhaseState>,
    /// The index of each process's phase; `None` for a process without instances.
    place: Vec<Option<usize>>,
    /// Whether the workload has only one phase, so that no process waits for others.
    is_one: bool,
    /// Whether other ranks have a phase before the first of this one, which then waits for its end.
    is_late: bool,
    /// Whether a thread waits for that end.
    is_awaited: AtomicBool,
}

/// The start and the end of a phase, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseTicks {
    /// The number of the phase in the script.
    pub number: u32,
    /// The start. `None` when the phase has not begun.
    pub began: Option<u64>,
    /// The end of its last thread. `None` when it has not ended.
    pub ended: Option<u64>,
}

impl Phases {
    pub(super) fn new(plan: &Plan) -> Self {
        let numbers = plan.own_phases();
        let is_late = numbers.first().is_some_and(|own| plan.phases.first().is_some_and(|first| first < own));
        let place: Vec<Option<usize>> = plan.processes.iter().map(|p| numbers.binary_search(&p.phase).ok()).collect();
        let mut threads = vec![0; numbers.len()];
        for (process, place) in plan.processes.iter().zip(&place) {
            let own: usize = process.threads.iter().map(|thread| thread.instances as usize).sum();
            place.iter().for_each(|place| threads[*place] += process.instances as usize * own);
        }
        let phase = |(number, threads)| PhaseState {
            number,
            unfinished: AtomicUsize::new(threads),
            began: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            start: Latch::default(),
        };
        let states = numbers.into_iter().zip(threads).map(phase).collect();
        Self { states, place, is_one: plan.phases.len() < 2, is_late, is_awaited: AtomicBool::new(false) }
    }

    /// Returns whether the workload has only one phase, so that no process waits for others.
    pub(super) fn is_one(&self) -> bool {
        self.is_one
    }

    /// Returns the number of the first phase; 0 for a rank without threads.
    pub(super) fn first(&self) -> u32 {
        self.states.first().map_or(0, |phase| phase.number)
    }

    /// Returns the number of the first phase to the first thread that calls this, which has to begin it when the other
    /// ranks have ended the phases before it. `None` if there is no phase before it.
    pub(super) fn take_first(&self) -> Option<u32> {
        (self.is_late && !self.is_awaited.swap(true, SeqCst)).then(|| self.first())
    }

    fn of(&self, process: usize) -> Option<usize> {
        self.place[process]
    }

    /// Returns whether a process belongs to the first phase of the workload, and so waits for no other.
    pub(super) fn is_first(&self, process: usize) -> bool {
        self.of(process).is_none_or(|place| place == 0 && !self.is_late)
    }

    /// Waits for the phase of a process, which must not be the first. Returns the tick at which it began. `Err` when
    /// the run has stopped.
    pub(super) fn wait(&self, process: usize) -> Result<u64, Stopped> {
        let Some(phase) = self.of(process).map(|place| &self.states[place]) else { return Err(Stopped) };
        phase.start.pass()?;
        phase.start.raise();
        Ok(phase.began.load(SeqCst))
    }

    /// Returns whether the phase of a process has begun.
    pub(super) fn has_begun(&self, process: usize) -> bool {
        self.is_first(process) || self.of(process).is_some_and(|place| self.states[place].began.load(SeqCst) > 0)
    }

    /// Accounts for the end of a thread at `tick`. Returns the number of the next phase if this thread was the last one
    /// of its phase, and is to begin the next.
    pub(super) fn leave(&self, process: usize, tick: u64) -> Option<u32> {
        let place = self.of(process)?;
        let phase = &self.states[place];
        if phase.unfinished.fetch_sub(1, SeqCst) != 1 {
            return None;
        }
        phase.ended.store(tick, SeqCst);
        self.states.get(place + 1).map(|next| next.number)
    }

    /// Begins a phase at `tick`.
    pub(super) fn begin(&self, number: u32, tick: u64) {
        if let Some(phase) = self.states.iter().find(|phase| phase.number == number) {
            phase.began.store(tick, SeqCst);
            phase.start.raise();
        }
    }

    /// Stops the run: ends the waits of all phases.
    pub(super) fn close(&self) {
        self.states.iter().for_each(|phase| phase.start.close());
    }

    /// Returns the start and the end of all phases. `opened` is the opening of the gate.
    pub(super) fn ticks(&self, opened: u64) -> Vec<PhaseTicks> {
        let some = |tick: u64| (tick > 0).then_some(tick);
        let ticks = |(place, phase): (usize, &PhaseState)| PhaseTicks {
            number: phase.number,
            began: if place == 0 && !self.is_late { Some(opened) } else { some(phase.began.load(SeqCst)) },
            ended: some(phase.ended.load(SeqCst)),
        };
        self.states.iter().enumerate().map(ticks).collect()
    }
}
