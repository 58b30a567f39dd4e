//! Phases: groups of processes, each of which starts when all threads of the group before it have ended.
//!
//! The threads of all phases get ready before the run begins; those of a later one wait for their turn at a latch.

use crate::plan::Plan;
use crate::sync::{Latch, Stopped};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// One phase of a run.
#[derive(Debug)]
struct PhaseState {
    number: u32,
    /// Threads that have not ended.
    unfinished: AtomicUsize,
    /// The tick at which it began; 0: not yet. Of the first, that of the gate.
    began: AtomicU64,
    /// The tick at which its last thread ended; 0: not yet.
    ended: AtomicU64,
    /// Where its threads wait: who passes lets the next one pass.
    start: Latch,
}

/// The phases of a run, in order.
#[derive(Debug)]
pub(super) struct Phases {
    phases: Vec<PhaseState>,
    /// Of each process, the place of its phase; none of one without instances.
    place: Vec<Option<usize>>,
}

/// When a phase was, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseTicks {
    /// As the script numbers it.
    pub number: u32,
    /// When it began; none if it did not come to that.
    pub began: Option<u64>,
    /// When its last thread ended; none if it did not come to that.
    pub ended: Option<u64>,
}

impl Phases {
    pub(super) fn new(plan: &Plan) -> Self {
        let numbers = plan.phases();
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
        Self { phases: numbers.into_iter().zip(threads).map(phase).collect(), place }
    }

    /// Whether no process waits for others.
    pub(super) fn is_one(&self) -> bool {
        self.phases.len() < 2
    }

    fn of(&self, process: usize) -> Option<usize> {
        self.place[process]
    }

    /// Whether a process waits for no other phase.
    pub(super) fn is_first(&self, process: usize) -> bool {
        self.of(process).is_none_or(|place| place == 0)
    }

    /// Waits for the phase of a process, which is not the first: the tick at which it began.
    pub(super) fn wait(&self, process: usize) -> Result<u64, Stopped> {
        let Some(phase) = self.of(process).map(|place| &self.phases[place]) else { return Err(Stopped) };
        phase.start.pass()?;
        phase.start.raise();
        Ok(phase.began.load(SeqCst))
    }

    /// Whether the phase of a process has begun.
    pub(super) fn has_begun(&self, process: usize) -> bool {
        self.is_first(process) || self.of(process).is_some_and(|place| self.phases[place].began.load(SeqCst) > 0)
    }

    /// A thread of a process has ended at a tick. The last one of a phase begins the next.
    pub(super) fn leave(&self, process: usize, tick: u64) {
        let Some(place) = self.of(process) else { return };
        let phase = &self.phases[place];
        if phase.unfinished.fetch_sub(1, SeqCst) != 1 {
            return;
        }
        phase.ended.store(tick, SeqCst);
        if let Some(next) = self.phases.get(place + 1) {
            next.began.store(tick, SeqCst);
            next.start.raise();
        }
    }

    /// The run has stopped.
    pub(super) fn close(&self) {
        self.phases.iter().for_each(|phase| phase.start.close());
    }

    /// When each was.
    pub(super) fn ticks(&self, opened: u64) -> Vec<PhaseTicks> {
        let some = |tick: u64| (tick > 0).then_some(tick);
        let ticks = |(place, phase): (usize, &PhaseState)| PhaseTicks {
            number: phase.number,
            began: if place == 0 { Some(opened) } else { some(phase.began.load(SeqCst)) },
            ended: some(phase.ended.load(SeqCst)),
        };
        self.phases.iter().enumerate().map(ticks).collect()
    }
}
