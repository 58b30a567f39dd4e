//! Reads a results folder without changing or locking it: the description of the experiment and the runs so far. The
//! experiment may be complete, interrupted or in progress.

use super::design::{Design, DesignEnd, Next};
use super::folder::{Folder, KeptRun};
use super::folder_error::{FolderError, io_error};
use super::journal::{self, Event};
use super::replay::{EndedRun, Replayed};
use super::wanted::{Experiment, ExperimentKind};
use crate::comparison::Published;
use crate::import::folder::{EXPERIMENT, JOURNAL, RUNS, result_name};
use crate::import::{self, Observation};
use crate::util::count::count;
use std::path::{Path, PathBuf};

/// A run of a recorded experiment.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The number of the run, from 1.
    pub number: u64,
    /// The index of its arm.
    pub arm: usize,
    /// Its figures. A failed run has the reason and no figures.
    pub observation: Observation,
}

/// An experiment as its results folder records it.
#[derive(Clone, Debug)]
pub struct RecordedExperiment {
    /// The folder.
    pub path: PathBuf,
    /// The description.
    pub experiment: Experiment,
    /// The complete and the failed runs, in their order.
    pub runs: Vec<RecordedRun>,
    /// Whether the experiment has ended.
    pub is_complete: bool,
    /// Whether a signal or an error ended it before, and it has not been resumed since.
    pub is_interrupted: bool,
    /// The numbers of runs that were recorded as complete, but whose results can't be read.
    pub unreadable: Vec<u64>,
    /// Notes on how the runs were made.
    pub notes: Vec<String>,
    /// Published figures that its result has beside its own.
    pub beside: Option<Box<Published>>,
}

/// True if a directory is the results folder of an experiment.
pub fn is_folder(path: &Path) -> bool {
    path.join(EXPERIMENT).is_file()
}

impl Folder {
    /// The experiment after its last run.
    pub(super) fn recorded(&self) -> RecordedExperiment {
        let run = |(number, run): (u64, &KeptRun)| RecordedRun {
            number,
            arm: run.arm,
            observation: self.experiment.in_arm(run.arm, run.observation.clone()),
        };
        RecordedExperiment {
            path: self.path().to_owned(),
            experiment: (*self.experiment).clone(),
            runs: (1..).zip(&self.runs).map(run).collect(),
            is_complete: true,
            is_interrupted: false,
            unreadable: Vec::new(),
            notes: self.notes(),
            beside: None,
        }
    }
}

impl RecordedExperiment {
    /// Reads a results folder. Lines of the journal that are not events are ignored.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        let experiment = Folder::description(path)?;
        let journal = path.join(JOURNAL);
        let events = journal::events_of(&journal).map_err(io_error(&journal))?;
        let replayed = Replayed::of(&events, experiment.arms.len())
            .map_err(|why| FolderError::Content { path: journal.clone(), why })?;
        let mut recorded = Self {
            path: path.to_owned(),
            experiment,
            runs: Vec::new(),
            is_complete: replayed.is_complete,
            is_interrupted: matches!(events.last(), Some(Event::Stopped { .. })),
            unreadable: Vec::new(),
            notes: replayed.notes(),
            beside: None,
        };
        recorded.add_runs(replayed.runs);
        Ok(recorded)
    }

    /// Adds the runs that have ended, in their order.
    fn add_runs(&mut self, ended: Vec<EndedRun>) {
        for (number, EndedRun { arm, failure, figures, .. }) in (1..).zip(ended) {
            let observation = match failure {
                Some(_) => Observation { source: format!("run {number}"), failure, ..Observation::default() },
                None => match import::recorded_observations(&self.result(number)).ok().and_then(Observation::last_of) {
                    Some(mut observation) => {
                        figures.add_to(&mut observation);
                        observation
                    }
                    None => {
                        self.unreadable.push(number);
                        continue;
                    }
                },
            };
            let observation = self.experiment.in_arm(arm, observation);
            self.runs.push(RecordedRun { number, arm, observation });
        }
    }

    /// Returns the path of a run's result.
    pub(crate) fn result(&self, number: u64) -> PathBuf {
        self.path.join(RUNS).join(result_name(number as usize))
    }

    pub(crate) fn by_arm(&self) -> Vec<Vec<&RecordedRun>> {
        let mut arms = vec![Vec::new(); self.experiment.arms.len()];
        self.runs.iter().for_each(|run| arms[run.arm].push(run));
        arms
    }

    /// The numbers of failed runs of each arm, in one line; `None` if no run failed.
    pub(crate) fn failed_runs(&self) -> Option<String> {
        const NAMED: usize = 5;
        let failed = |runs: &Vec<&RecordedRun>| runs.iter().filter(|run| run.observation.failure.is_some()).count();
        let by_arm = self.by_arm();
        let arms: Vec<(usize, usize)> =
            by_arm.iter().map(failed).enumerate().filter(|(_, failed)| *failed > 0).collect();
        let sum = |arms: &[(usize, usize)]| arms.iter().map(|(_, failed)| failed).sum::<usize>();
        let label = |(arm, failed): &(usize, usize)| format!("{failed} of `{}`", self.experiment.arm_label(*arm));
        let mut named: Vec<String> = arms.iter().take(NAMED).map(label).collect();
        if arms.len() > NAMED {
            named.push(format!("{} in {} others", sum(&arms[NAMED..]), arms.len() - NAMED));
        }
        let all = count(self.runs.len() as u64, "run");
        (!arms.is_empty()).then(|| format!("{} of {all} failed: {}", sum(&arms), named.join(", ")))
    }

    /// The observations of each arm.
    pub(crate) fn observations(&self) -> Vec<Vec<Observation>> {
        let of_arm = |runs: &Vec<&RecordedRun>| runs.iter().map(|run| run.observation.clone()).collect();
        self.by_arm().iter().map(of_arm).collect()
    }

    /// Returns the runs of the complete blocks of a comparison, each with two runs of each arm. A block lacks runs if the
    /// experiment is not complete, or if a result can't be read.
    pub(crate) fn whole_blocks(&self) -> Vec<&RecordedRun> {
        let block = |run: &RecordedRun| run.number.saturating_sub(1) / 4;
        let blocks = self.runs.chunk_by(|before, after| block(before) == block(after));
        let is_whole =
            |runs: &&[RecordedRun]| [0, 1].iter().all(|n| runs.iter().filter(|run| run.arm == *n).count() == 2);
        blocks.filter(is_whole).flatten().collect()
    }

    /// Returns the last step of the design: the end if it is reached, or else the result with which the experiment could
    /// end now. `None` if there are too few runs for a result, or a run lacks a metric. Of a comparison only the complete
    /// blocks count.
    pub(crate) fn end(&self) -> Option<DesignEnd> {
        let design = self.design()?;
        match design.next() {
            Next::Run { .. } => design.early_end(),
            Next::End(end) => Some(end),
        }
    }

    /// The design after these runs. Of a comparison only the complete blocks count. `None` if a run lacks a metric that is
    /// needed.
    pub(super) fn design(&self) -> Option<Design> {
        let mut design = Design::new(&self.experiment);
        let runs: Vec<&RecordedRun> = match self.experiment.kind() {
            ExperimentKind::Ab => self.whole_blocks(),
            _ => self.runs.iter().collect(),
        };
        for run in runs {
            if self.experiment.lacking(run.arm, &run.observation).is_some() {
                return None;
            }
            design.take_run(&self.experiment, run.arm, &run.observation, None);
        }
        Some(design)
    }
}
