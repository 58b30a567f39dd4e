//! The results folder of an experiment: `experiment.toml`, `journal.jsonl`, `runs/0001.json`, and what commands printed.

use super::design::Design;
use super::identity::{Identity, digest, owner};
use super::journal::{Event, Journal};
use super::wanted::{Experiment, SCHEMA};
use crate::import::{self, Observation};
use crate::measure::now;
use crate::output;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXPERIMENT: &str = "experiment.toml";
const JOURNAL: &str = "journal.jsonl";
const RUNS: &str = "runs";
const HOOK_LOGS: &str = "hooks";

/// A folder, open and locked.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What was asked for.
    pub experiment: Experiment,
    journal: Journal,
    /// Runs that are complete, in their order.
    pub(super) runs: Vec<KeptRun>,
    /// The run that was under way when the experiment was ended.
    pub(super) under_way: Option<UnderWay>,
}

/// A complete run.
#[derive(Clone, Debug)]
pub(super) struct KeptRun {
    pub(super) arm: usize,
    pub(super) control: Option<f64>,
    pub(super) seconds: Option<f64>,
    pub(super) observation: Observation,
}

impl KeptRun {
    fn failed(run: u64, arm: usize, why: String) -> Self {
        let observation = Observation { source: format!("run {run}"), failure: Some(why), ..Observation::default() };
        Self { arm, control: None, seconds: None, observation }
    }
}

/// A run that was started and did not finish.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) arm: usize,
    pub(super) control: Option<f64>,
    /// The commands that have run beside it.
    pub(super) hooks: BTreeSet<String>,
}

/// Why a folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It, or a file of it, can't be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its content is not what it should be.
    #[error("{}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// In which way.
        why: String,
    },
    /// It was begun under other conditions.
    #[error("{} was begun with another state of {}", path.display(), changed.join(", "))]
    Changed {
        /// Which.
        path: PathBuf,
        /// Of what.
        changed: Vec<String>,
    },
}

impl FolderError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io { .. } => "name another folder with `--results`",
            Self::Content { .. } => "begin anew with another folder in `--results`",
            Self::Changed { .. } => "`--anyway` goes on all the same",
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::Io { path, error }
}

impl Folder {
    /// Makes the folder of a new experiment, with the folders above it. One that is there must be empty.
    pub fn create(path: &Path, experiment: Experiment) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(io_error(path))?;
        let mut there = fs::read_dir(path).map_err(io_error(path))?;
        if there.next().is_some() {
            let why = "it is not empty; `--resume` goes on with an experiment".to_owned();
            return Err(FolderError::Content { path: path.to_owned(), why });
        }
        for dir in [RUNS, HOOK_LOGS] {
            let dir = path.join(dir);
            fs::create_dir(&dir).map_err(io_error(&dir))?;
        }
        let file = path.join(EXPERIMENT);
        let text = toml::to_string(&experiment)
            .map_err(|e| FolderError::Content { path: file.clone(), why: e.to_string() })?;
        output::replace(&file, &mut |out| out.write_all(text.as_bytes())).map_err(io_error(&file))?;
        let (mut journal, _) = Journal::open(&path.join(JOURNAL)).map_err(io_error(path))?;
        let begun = Event::Begun { experiment: digest(text.as_bytes()), time: now() };
        journal.write(&begun).map_err(io_error(path))?;
        Ok(Self { path: path.to_owned(), experiment, journal, runs: Vec::new(), under_way: None })
    }

    /// Opens the folder of an experiment that goes on. `conditions` are those of now; changes of them, and of what was asked for, are
    /// an error unless `anyway`.
    pub fn resume(
        path: &Path,
        conditions: &dyn Fn(&Experiment) -> Identity,
        anyway: bool,
    ) -> Result<Self, FolderError> {
        let file = path.join(EXPERIMENT);
        let content = |why: String| FolderError::Content { path: file.clone(), why };
        let text = fs::read_to_string(&file).map_err(io_error(&file))?;
        let experiment: Experiment = toml::from_str(&text).map_err(|e| content(e.to_string()))?;
        if experiment.schema != SCHEMA {
            return Err(content(format!("its schema is `{}`, not `{SCHEMA}`", experiment.schema)));
        }
        if experiment.metrics().is_empty() || experiment.arms.is_empty() {
            return Err(content("it has no metric, or no arm".to_owned()));
        }
        let log = path.join(JOURNAL);
        let (mut journal, events) = Journal::open(&log).map_err(io_error(&log))?;
        let now_is = conditions(&experiment);
        let mut changed: Vec<String> = experiment.identity.changes(&now_is).into_iter().map(str::to_owned).collect();
        let own = owner(&file).map_err(io_error(&file))?;
        if own != now_is.user && !changed.iter().any(|what| what == "the user") {
            changed.push("the folder's owner".to_owned());
        }
        let is = digest(text.as_bytes());
        match events.first() {
            Some(Event::Begun { experiment, .. }) if *experiment != is => {
                changed.push(format!("`{EXPERIMENT}`, with its commands"));
            }
            Some(Event::Begun { .. }) => {}
            Some(_) => {
                let why = "the journal does not begin with its experiment".to_owned();
                return Err(FolderError::Content { path: log, why });
            }
            None => journal.write(&Event::Begun { experiment: is, time: now() }).map_err(io_error(&log))?,
        }
        if !changed.is_empty() && !anyway {
            return Err(FolderError::Changed { path: path.to_owned(), changed });
        }
        let mut folder = Self { path: path.to_owned(), experiment, journal, runs: Vec::new(), under_way: None };
        folder.replay(&events)?;
        if !events.is_empty() {
            folder.write(&Event::Resumed { time: now(), changed })?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a run's result, by its number from 1.
    pub(super) fn result(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.json"))
    }

    /// The file of what a run printed.
    pub(super) fn log(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.log"))
    }

    /// The directory of what a run's script writes.
    pub(super) fn files(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.files"))
    }

    /// The file of what a command beside a run printed.
    pub(super) fn hook_log(&self, run: usize, hook: &str) -> PathBuf {
        self.path.join(HOOK_LOGS).join(format!("{run:04}-{hook}.log"))
    }

    /// The longest time that a run has taken; zero if none is known.
    pub(super) fn longest_run(&self) -> Duration {
        let seconds = self.runs.iter().filter_map(|run| run.seconds).fold(0.0, f64::max);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Writes an event to the journal.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), FolderError> {
        self.journal.write(event).map_err(io_error(&self.path.join(JOURNAL)))
    }

    /// The observation of a run's file: its last run, as scripts may have several.
    pub(super) fn observation(&self, run: usize) -> Result<Observation, FolderError> {
        let path = self.result(run);
        let content = |why: String| FolderError::Content { path: path.clone(), why };
        let found = import::observations(&path).map_err(|e| content(e.to_string()))?;
        found.into_iter().next_back().ok_or_else(|| content("it has no run".to_owned()))
    }

    /// Keeps a complete run.
    pub(super) fn keep(&mut self, run: KeptRun) -> Result<(), FolderError> {
        self.write(&Event::Finished { run: self.runs.len() as u64 + 1, seconds: run.seconds })?;
        self.runs.push(run);
        self.under_way = None;
        Ok(())
    }

    /// Keeps that a run failed.
    pub(super) fn keep_failed(&mut self, arm: usize, why: String) -> Result<(), FolderError> {
        let run = self.runs.len() as u64 + 1;
        self.write(&Event::Failed { run, why: why.clone() })?;
        self.runs.push(KeptRun::failed(run, arm, why));
        self.under_way = None;
        Ok(())
    }

    /// Takes over what the journal says.
    fn replay(&mut self, events: &[Event]) -> Result<(), FolderError> {
        for event in events {
            match event {
                Event::Started { arm, control, .. } => {
                    let hooks = self.under_way.take().map(|under_way| under_way.hooks).unwrap_or_default();
                    self.under_way = Some(UnderWay { arm: *arm as usize, control: *control, hooks });
                }
                Event::Hook { run, name, .. } if *run == self.runs.len() as u64 + 1 => {
                    let arm = Design::new(&self.experiment).arm(self.runs.len());
                    let begun = UnderWay { arm, control: None, hooks: BTreeSet::new() };
                    self.under_way.get_or_insert(begun).hooks.insert(name.clone());
                }
                Event::Failed { run, why } => {
                    let arm = self.under_way.take().map_or(0, |under_way| under_way.arm);
                    self.runs.push(KeptRun::failed(*run, arm, why.clone()));
                }
                Event::Finished { run, seconds } => {
                    let Some(UnderWay { arm, control, .. }) = self.under_way.take() else {
                        let why = format!("run {run} finished without a start");
                        return Err(FolderError::Content { path: self.path.join(JOURNAL), why });
                    };
                    let observation = self.observation(self.runs.len() + 1)?;
                    self.runs.push(KeptRun { arm, control, seconds: *seconds, observation });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Removes what can be made again of a finished experiment or is of no use for its figures: what runs and commands printed and
/// wrote. The results stay. Returns the bytes that are gone.
pub fn prune(path: &Path) -> Result<u64, FolderError> {
    let file = path.join(EXPERIMENT);
    let text = fs::read_to_string(&file).map_err(io_error(&file))?;
    if !text.contains(SCHEMA) {
        let why = "it is no results folder of an experiment".to_owned();
        return Err(FolderError::Content { path: path.to_owned(), why });
    }
    let mut bytes = 0;
    for dir in [RUNS, HOOK_LOGS] {
        let dir = path.join(dir);
        let there = fs::symlink_metadata(&dir).map_err(io_error(&dir))?;
        if !there.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&dir).map_err(io_error(&dir))? {
            let entry = entry.map_err(io_error(&dir))?;
            let (path, meta) = (entry.path(), entry.metadata().map_err(io_error(&dir))?);
            // Only names that this program gives.
            let name = entry.file_name().to_string_lossy().into_owned();
            let numbered = name.len() > 4 && name.as_bytes()[..4].iter().all(u8::is_ascii_digit);
            match path.extension().and_then(|e| e.to_str()) {
                Some("log") if meta.is_file() && numbered => {
                    bytes += meta.len();
                    fs::remove_file(&path).map_err(io_error(&path))?;
                }
                _ => {}
            }
        }
    }
    Ok(bytes)
}
