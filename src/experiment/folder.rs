//! The results folder of an experiment: `experiment.toml`, `journal.jsonl`, `runs/0001.json`, and the output of runs
//! and commands.

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

/// An open and locked results folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The description of the experiment.
    pub experiment: Experiment,
    journal: Journal,
    /// The complete and the failed runs, in their order.
    pub(super) runs: Vec<KeptRun>,
    /// The run that was in progress when the experiment was interrupted.
    pub(super) under_way: Option<UnderWay>,
    /// Whether the parent was created together with the folder.
    parent_is_new: bool,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub(super) struct KeptRun {
    /// The index of its arm.
    pub(super) arm: usize,
    /// The speed of the negative control before the run, in units per second.
    pub(super) control: Option<f64>,
    /// The duration in seconds, including commands; `None` when it is unknown.
    pub(super) seconds: Option<f64>,
    pub(super) observation: Observation,
}

impl KeptRun {
    /// Creates a failed run without figures.
    fn failed(run: u64, arm: usize, why: String) -> Self {
        let observation = Observation { source: format!("run {run}"), failure: Some(why), ..Observation::default() };
        Self { arm, control: None, seconds: None, observation }
    }
}

/// A run that was started and has not ended.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    /// The index of its arm.
    pub(super) arm: usize,
    /// The speed of the negative control before the run.
    pub(super) control: Option<f64>,
    /// The names of the hooks that have been run for it.
    pub(super) hooks: BTreeSet<String>,
}

/// The reason why a folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder or a file in it can't be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// A file has invalid content.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The conditions have changed since the experiment was started.
    #[error("{}: changed since the experiment was started: {}", path.display(), changed.join(", "))]
    Changed {
        /// The folder.
        path: PathBuf,
        /// The names of the changed conditions.
        changed: Vec<String>,
    },
}

impl FolderError {
    /// Returns the help for this error.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io { .. } => "give another folder with `--results`",
            Self::Content { .. } => "start a new experiment in another folder, which `--results` names",
            Self::Changed { .. } => "to continue the experiment nevertheless, give `--anyway`",
        }
    }
}

/// Makes an error of a path from the error of a system call.
fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::Io { path, error }
}

impl Folder {
    /// Creates the folder of a new experiment, with its parents. An existing folder must be empty, else an error is
    /// returned.
    pub fn create(path: &Path, experiment: Experiment) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(io_error(path))?;
        let mut entries = fs::read_dir(path).map_err(io_error(path))?;
        if entries.next().is_some() {
            let why = "it is not empty; to continue an experiment, give `--resume`".to_owned();
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
        Ok(Self { path: path.to_owned(), experiment, journal, runs: Vec::new(), under_way: None, parent_is_new: false })
    }

    /// Creates the folder of a new experiment, with its parents. If a folder of this name exists, `-2`, `-3` and so on
    /// is appended to the name.
    pub fn create_beside(path: &Path, experiment: Experiment) -> Result<Self, FolderError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent_is_new = fs::create_dir(parent).is_ok();
        fs::create_dir_all(parent).map_err(io_error(parent))?;
        let mut free = path.to_owned();
        for n in 2_u32.. {
            // Another process may create the folder between a test and this call, so the call is the test.
            match fs::create_dir(&free) {
                Ok(()) => break,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    let mut name = path.as_os_str().to_owned();
                    name.push(format!("-{n}"));
                    free = PathBuf::from(name);
                }
                Err(e) => return Err(io_error(&free)(e)),
            }
        }
        Ok(Self { parent_is_new, ..Self::create(&free, experiment)? })
    }

    /// Removes the files of the experiment if no run has ended, then the folder, and its parent if that was created with
    /// it. Returns whether the folder was removed: one that holds other files is kept with them.
    pub fn remove_without_runs(self) -> Result<bool, FolderError> {
        if !self.runs.is_empty() {
            return Ok(false);
        }
        for dir in [RUNS, HOOK_LOGS].map(|name| self.path.join(name)) {
            fs::remove_dir_all(&dir).map_err(io_error(&dir))?;
        }
        for file in [EXPERIMENT, JOURNAL].map(|name| self.path.join(name)) {
            fs::remove_file(&file).map_err(io_error(&file))?;
        }
        // `rmdir` refuses a directory that is not empty.
        let is_removed = fs::remove_dir(&self.path).is_ok();
        if is_removed && self.parent_is_new {
            // It may have another experiment by now.
            let _ = self.path.parent().map(fs::remove_dir);
        }
        Ok(is_removed)
    }

    /// Opens the folder of an interrupted experiment. `conditions` returns the current conditions. Unless `anyway` is
    /// set, an error is returned if they or the description of the experiment have changed since its start.
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
            return Err(content("it has no metric or no arm".to_owned()));
        }
        let log = path.join(JOURNAL);
        let (mut journal, events) = Journal::open(&log).map_err(io_error(&log))?;
        let current = conditions(&experiment);
        let mut changed: Vec<String> = experiment.identity.changes(&current).into_iter().map(str::to_owned).collect();
        let owner = owner(&file).map_err(io_error(&file))?;
        if owner != current.user && !changed.iter().any(|what| what == "the user") {
            changed.push("the folder's owner".to_owned());
        }
        let current_digest = digest(text.as_bytes());
        match events.first() {
            Some(Event::Begun { experiment, .. }) if *experiment != current_digest => {
                changed.push(format!("`{EXPERIMENT}`, which has the commands"));
            }
            Some(Event::Begun { .. }) => {}
            Some(_) => {
                let why = "the journal does not start with the event `begun`".to_owned();
                return Err(FolderError::Content { path: log, why });
            }
            None => journal.write(&Event::Begun { experiment: current_digest, time: now() }).map_err(io_error(&log))?,
        }
        if !changed.is_empty() && !anyway {
            return Err(FolderError::Changed { path: path.to_owned(), changed });
        }
        let mut folder = Self {
            path: path.to_owned(),
            experiment,
            journal,
            runs: Vec::new(),
            under_way: None,
            parent_is_new: false,
        };
        folder.replay(&events)?;
        if !events.is_empty() {
            folder.write(&Event::Resumed { time: now(), changed })?;
        }
        Ok(folder)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a run's result. Runs are numbered from 1.
    pub(super) fn result(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.json"))
    }

    /// Returns the path of a run's output.
    pub(super) fn log(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.log"))
    }

    /// Returns the directory for files that a run's script writes.
    pub(super) fn files(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.files"))
    }

    /// Returns the path of the output of a command before or after a run.
    pub(super) fn hook_log(&self, run: usize, hook: &str) -> PathBuf {
        self.path.join(HOOK_LOGS).join(format!("{run:04}-{hook}.log"))
    }

    /// Returns the longest duration of a run; zero if none is known.
    pub(super) fn longest_run(&self) -> Duration {
        let seconds = self.runs.iter().filter_map(|run| run.seconds).fold(0.0, f64::max);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Appends an event to the journal.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), FolderError> {
        self.journal.write(event).map_err(io_error(&self.path.join(JOURNAL)))
    }

    /// Returns the observation of a run's result. If the script made several runs, it is the last of them.
    pub(super) fn observation(&self, run: usize) -> Result<Observation, FolderError> {
        let path = self.result(run);
        let content = |why: String| FolderError::Content { path: path.clone(), why };
        let found = import::observations(&path).map_err(|e| content(e.to_string()))?;
        found.into_iter().next_back().ok_or_else(|| content("it has no runs".to_owned()))
    }

    /// Records a complete run.
    pub(super) fn keep(&mut self, run: KeptRun) -> Result<(), FolderError> {
        self.write(&Event::Finished { run: self.runs.len() as u64 + 1, seconds: run.seconds })?;
        self.runs.push(run);
        self.under_way = None;
        Ok(())
    }

    /// Records a failed run.
    pub(super) fn keep_failed(&mut self, arm: usize, why: String) -> Result<(), FolderError> {
        let run = self.runs.len() as u64 + 1;
        self.write(&Event::Failed { run, why: why.clone() })?;
        self.runs.push(KeptRun::failed(run, arm, why));
        self.under_way = None;
        Ok(())
    }

    /// Restores the state of the runs from the events of the journal.
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
                        let why = format!("run {run} has finished, but was never started");
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

/// Removes the output of runs and commands from a results folder, and keeps the results. Returns the number of bytes
/// removed.
pub fn prune(path: &Path) -> Result<u64, FolderError> {
    let file = path.join(EXPERIMENT);
    let text = fs::read_to_string(&file).map_err(io_error(&file))?;
    if !text.contains(SCHEMA) {
        let why = "it is not the results folder of an experiment".to_owned();
        return Err(FolderError::Content { path: path.to_owned(), why });
    }
    let mut bytes = 0;
    for dir in [RUNS, HOOK_LOGS] {
        let dir = path.join(dir);
        let meta = fs::symlink_metadata(&dir).map_err(io_error(&dir))?;
        if !meta.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&dir).map_err(io_error(&dir))? {
            let entry = entry.map_err(io_error(&dir))?;
            let (path, meta) = (entry.path(), entry.metadata().map_err(io_error(&dir))?);
            // Only names that this program creates are removed.
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
