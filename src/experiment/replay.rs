//! The state of an experiment according to the events of its journal.
//!
//! Input: the events. Output: the runs that have ended, and the run that was in progress. Not in here: the results of
//! the runs (`folder`), and what is done about an interrupted run (`runner`).

use super::hooks::HookTime;
use super::journal::Event;
use super::scopes::base_name;
use crate::import::folder::{self, BootCount, UnusedAttempts};
use std::collections::{BTreeMap, BTreeSet};

pub(super) use crate::import::{RecordedFigures, record_name};

impl RecordedFigures {
    /// Takes the figures of an event of the run.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Space { time, used, .. } => self.take_space(*time, *used),
            Event::Hook { name, times, .. } => self.take_command(name, *times),
            Event::Recorded { times, .. } => self.take_records(times),
            Event::Started { control, .. } => {
                self.begin_attempt();
                self.take_control(HookTime::Before, *control);
            }
            Event::Finished { control, .. } => self.take_control(HookTime::After, *control),
            _ => {}
        }
    }
}

/// A run of the search for the peak of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probe {
    /// The value of the variable.
    pub(super) value: f64,
    /// The offered rate in requests per second.
    pub(super) offered: f64,
    /// The achieved rate.
    pub(super) achieved: f64,
    /// The duration of the run in seconds.
    pub(super) seconds: f64,
}

/// A run that has ended according to the journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EndedRun {
    /// The index of its arm.
    pub(super) arm: usize,
    /// The duration in seconds, including commands; `None` when it is unknown.
    pub(super) seconds: Option<f64>,
    /// The reason why it failed; `None` when it is complete.
    pub(super) failure: Option<String>,
    /// The figures that were recorded beside it.
    pub(super) figures: RecordedFigures,
    /// The number of the boot in which it was made, from 0.
    pub(super) boot: usize,
}

/// A run of which a command or the run itself was started, and which has not ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UnderWay {
    /// The number of the run, from 1.
    pub(super) run: usize,
    /// The index of its arm; `None` when it is that of the order of the experiment.
    pub(super) arm: Option<usize>,
    /// Whether the run itself was started.
    pub(super) started: bool,
    /// The names of the hooks before the run whose commands succeeded in this attempt or in an earlier one.
    pub(super) set_up: BTreeSet<String>,
    /// The names of the hooks after the run whose commands succeeded in this attempt.
    pub(super) torn_down: BTreeSet<String>,
    /// The mounts of its file sets.
    pub(super) mounts: Vec<String>,
    /// Whether the commands whose output is recorded after the run have succeeded in this attempt.
    pub(super) is_recorded: bool,
    /// The figures that were recorded beside it.
    pub(super) figures: RecordedFigures,
    /// The number of the boot in which it was started, from 0.
    pub(super) boot: usize,
}

/// The commands of scopes according to the journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReplayedScopes {
    /// The number of the last run that was begun, from 1, and its arm if the journal has it.
    pub(super) last: Option<(usize, Option<usize>)>,
    /// The names of the hooks whose scope was begun and not ended.
    pub(super) begun: BTreeSet<String>,
    /// For each hook whose command at the begin of a scope succeeded, the number of the last run before which it did.
    pub(super) succeeded: BTreeMap<String, usize>,
}

/// The state of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Replayed {
    /// The runs that have ended, in their order.
    pub(super) runs: Vec<EndedRun>,
    /// The run that was in progress.
    pub(super) under_way: Option<UnderWay>,
    /// For each arm, the mounts of its file sets that were found before its runs.
    pub(super) mounts: Vec<BTreeSet<Vec<String>>>,
    /// The commands of scopes.
    pub(super) scopes: ReplayedScopes,
    /// The boots in which the experiment was started or resumed.
    pub(super) boots: BootCount,
    /// The first run under conditions that have changed, from 1, and what changed; see [`folder::run_notes`].
    pub(super) changes: Vec<(usize, Vec<String>)>,
    /// The attempts that are not used.
    pub(super) unused: UnusedAttempts,
    /// The runs of the search for the peak.
    pub(super) probes: Vec<Probe>,
    /// Whether the experiment has ended, by its rule or by its budget, and no run was begun or dropped since.
    pub(super) is_complete: bool,
}

impl Replayed {
    /// Determines the state of an experiment with this number of arms. Returns an error when the events contradict each
    /// other.
    pub(super) fn of(events: &[Event], arms: usize) -> Result<Self, String> {
        let mut state = Self { mounts: vec![BTreeSet::new(); arms], ..Self::default() };
        for event in events {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// Returns notes on how the runs were made.
    pub(super) fn notes(&self) -> Vec<String> {
        folder::run_notes((1..).zip(self.runs.iter().map(|run| run.boot)), &self.changes, &self.unused)
    }

    fn apply(&mut self, event: &Event) -> Result<(), String> {
        self.is_complete = match event {
            Event::Ended { .. } => true,
            Event::Resumed { .. } => self.is_complete,
            _ => false,
        };
        match event {
            Event::Begun { boot, .. } => self.boots.enter(boot),
            Event::Resumed { boot, changed, .. } => {
                self.boots.enter(boot);
                if !changed.is_empty() {
                    self.changes.push((self.runs.len() + 1, changed.clone()));
                }
            }
            Event::Searched { value, offered, achieved, seconds } => {
                let (value, offered, achieved, seconds) = (*value, *offered, *achieved, *seconds);
                self.probes.push(Probe { value, offered, achieved, seconds });
            }
            Event::HookStarted { run, name, arm } => {
                let arm = arm.map(|arm| arm as usize);
                if HookTime::of_hook(name) == HookTime::Before {
                    // A new attempt begins: the commands after the run have to be executed again.
                    let under_way = self.of_run(*run);
                    (under_way.started, under_way.torn_down) = (false, BTreeSet::new());
                    under_way.arm = arm.or(under_way.arm);
                    self.scopes.begun.insert(base_name(name).to_owned());
                    self.scopes.last = Some((*run as usize, arm));
                } else if !self.has_ended(*run) {
                    self.of_run(*run);
                }
            }
            Event::Hook { run, name, .. } => {
                let run_has_ended = self.has_ended(*run);
                match self.runs.get_mut(*run as usize - 1) {
                    Some(last) => last.figures.apply(event),
                    None => self.of_run(*run).figures.apply(event),
                }
                match HookTime::of_hook(name) {
                    HookTime::Before => {
                        self.of_run(*run).set_up.insert(name.clone());
                        self.scopes.succeeded.insert(base_name(name).to_owned(), *run as usize);
                    }
                    HookTime::After => {
                        self.scopes.begun.remove(base_name(name));
                        // Scopes may end after their last run has ended.
                        if !run_has_ended {
                            self.of_run(*run).torn_down.insert(name.clone());
                        }
                    }
                }
            }
            Event::Space { run, .. } => self.of_run(*run).figures.apply(event),
            Event::Recorded { run, .. } => {
                let under_way = self.of_run(*run);
                under_way.is_recorded = true;
                under_way.figures.apply(event);
            }
            Event::Started { run, arm, mounts, .. } => {
                let arm = *arm as usize;
                let seen = self.mounts.get_mut(arm).ok_or_else(|| format!("run {run} is of an unknown arm"))?;
                seen.insert(mounts.clone());
                self.scopes.last = Some((*run as usize, Some(arm)));
                let boot = self.boots.number;
                let under_way = self.of_run(*run);
                (under_way.arm, under_way.started) = (Some(arm), true);
                (under_way.boot, under_way.is_recorded) = (boot, false);
                under_way.mounts.clone_from(mounts);
                under_way.torn_down.clear();
                under_way.figures.apply(event);
            }
            Event::Finished { run, seconds, .. } => {
                let UnderWay { arm, mut figures, boot, .. } = self.end(*run)?;
                figures.apply(event);
                let arm = arm.unwrap_or_default();
                self.runs.push(EndedRun { arm, seconds: *seconds, failure: None, figures, boot });
            }
            Event::Failed { run, why } => {
                let UnderWay { arm, figures, boot, .. } = self.end(*run)?;
                let arm = arm.unwrap_or_default();
                self.runs.push(EndedRun { arm, failure: Some(why.clone()), figures, boot, ..EndedRun::default() });
            }
            // Its commands have been executed, and its result must not be recorded.
            Event::Retried { run, seconds } => {
                self.unused.add(*run as usize, *seconds);
                self.under_way = None;
            }
            Event::Dropped { run, .. } => self.drop_from(*run as usize),
            // A command after a run that failed has to be executed again.
            Event::HookFailed { .. }
            | Event::Extended { .. }
            | Event::Files { .. }
            | Event::Stopped { .. }
            | Event::Ended { .. } => {}
        }
        Ok(())
    }

    fn has_ended(&self, run: u64) -> bool {
        run as usize <= self.runs.len()
    }

    /// Returns the state of a run in progress. A run with another number replaces it.
    fn of_run(&mut self, run: u64) -> &mut UnderWay {
        let run = run as usize;
        let under_way = self.under_way.take().filter(|under_way| under_way.run == run);
        self.under_way.insert(under_way.unwrap_or_else(|| UnderWay { run, ..UnderWay::default() }))
    }

    /// Ends the run in progress, which must have been started and be the next in the order.
    fn end(&mut self, run: u64) -> Result<UnderWay, String> {
        if run as usize != self.runs.len() + 1 {
            return Err(format!("run {run} has ended, but it is not the next run"));
        }
        let is_it = |under_way: &UnderWay| under_way.run == run as usize && under_way.started;
        self.under_way.take().filter(is_it).ok_or_else(|| format!("run {run} has ended, but was never started"))
    }

    /// Forgets the results of a run and of all later ones. The commands after the run in progress have to be executed
    /// nevertheless.
    pub(super) fn drop_from(&mut self, run: usize) {
        self.runs.truncate(run.saturating_sub(1));
        self.is_complete = false;
        // The runs that replace them are made under the present conditions.
        self.changes.iter_mut().for_each(|(first, _)| *first = run.min(*first));
        self.unused.drop_from(run);
        if let Some(under_way) = &mut self.under_way {
            under_way.started = false;
        }
    }
}
