//! What an experiment asks of its caller, and what it tells: each run that ended, and why it stopped.

use super::folder::Folder;
use super::folder_error::FolderError;
use super::progress::Standing;
use super::wanted::Experiment;
use crate::comparison::figure;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// The services that the command line provides to an experiment.
pub trait ExperimentHost {
    /// Displays a note of one line.
    fn note(&mut self, text: &str);

    /// Returns the signal that was received, or `None`.
    fn interrupted(&self) -> Option<i32>;

    fn program(&self) -> PathBuf;

    /// The command of the program that makes a run with these words; `None` for that which runs a script.
    fn command(&self, _words: &[String]) -> Option<&'static str> {
        None
    }

    /// Returns the maximum duration of a command before or after a run.
    fn hook_limit(&self) -> Duration;

    /// Returns the maximum duration of all runs of this call; `None` when the call does not limit it.
    fn budget(&self) -> Option<Duration>;

    /// Returns the directories of an arm's file sets. They need not exist.
    fn dirs(&self, arm: usize) -> Vec<PathBuf>;

    /// The directories of the file sets of all arms, each once.
    fn all_dirs(&self) -> &BTreeSet<PathBuf>;

    /// Returns an error if an output besides the folder is no longer where it was opened. Its file may be another one by
    /// now.
    fn check_outputs(&self) -> std::io::Result<()>;

    /// Told how far the experiment is before each run.
    fn run_starts(&mut self, standing: &Standing<'_>);

    /// Called ten times a second while a run is made.
    fn waits(&mut self) {}

    /// Receives each run that was recorded.
    fn run_ended(&mut self, experiment: &Experiment, run: &RunEnd<'_>);
}

/// A run that was recorded.
#[derive(Clone, Debug)]
pub struct RunEnd<'a> {
    /// The number of the run, from 1.
    pub number: usize,
    /// The index of its arm.
    pub arm: usize,
    /// The file of its result. It need not exist if the run failed.
    pub result: PathBuf,
    /// The duration in seconds, including commands; `None` when it is unknown.
    pub seconds: Option<f64>,
    /// The reason why it failed; `None` when it is complete.
    pub failure: Option<&'a str>,
    /// The metrics of the experiment that it has.
    pub metrics: Vec<(String, f64)>,
}

impl RunEnd<'_> {
    /// Its first metric, or the reason why it failed.
    pub fn outcome(&self) -> String {
        match (self.failure, self.metrics.first()) {
            (Some(why), _) => format!("failed: {why}"),
            (None, Some((metric, value))) => format!("{metric} {}", figure(metric, *value)),
            (None, None) => "complete".to_owned(),
        }
    }
}

/// The reason why an experiment stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The results folder can't be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A signal was received.
    #[error("interrupted")]
    Interrupted(i32),
    /// A run or a command failed.
    #[error("{why}")]
    Failed {
        /// The reason.
        why: String,
        /// The help: what to do.
        help: String,
        /// The exit status.
        status: u8,
    },
    #[error("{0}")]
    Command(FailedCommand),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCommand {
    /// The position of the command in the experiment file, as `FILE:LINE`; `None` when it is unknown.
    pub origin: Option<String>,
    pub text: String,
    /// Which command it is, and the reason.
    pub why: String,
    /// The file of its output.
    pub log: PathBuf,
}

impl std::fmt::Display for FailedCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// Returns an error if something that is written to is no longer where it was opened.
pub(super) fn check_in_place(folder: &Folder, host: &dyn ExperimentHost) -> Result<(), ExperimentError> {
    folder.check_in_place()?;
    host.check_outputs().map_err(|e| ExperimentError::Failed {
        why: e.to_string(),
        help: "the results folder has all runs up to here; `--resume` continues the experiment".to_owned(),
        status: 3,
    })
}
