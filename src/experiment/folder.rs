//! The results folder of an experiment: `experiment.toml`, `journal.jsonl`, `runs/0001.json`, and the output of runs
//! and commands.

use super::dropped::DROPPED;
use super::folder_error::{FolderError, io_error};
use super::hooks::HookTime;
use super::identity::{Identity, digest, owner};
use super::journal::{Event, Journal};
use super::prune::OwnFiles;
use super::replay::{EndedRun, Probe, RecordedFigures, Replayed, ReplayedScopes, UnderWay};
use super::scopes::ScopePosition;
use super::wanted::{Experiment, SCHEMA};
use crate::import::folder::{EXPERIMENT, JOURNAL, RUNS, UnusedAttempts, result_name, run_notes, toml_reason};
use crate::import::{self, ImportError, Observation, PREALLOCATED};
use crate::os::held_dir::{DirGuard, HeldDir, MadeDir};
use crate::os::{Errno, FileType, OFlags, device, reading};
use crate::output;
use crate::result::FilesetResult;
use crate::util::timestamp::now;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const HOOK_LOGS: &str = "hooks";

/// The maximum length of the description of an experiment in bytes. That of a hundred thousand cells is shorter.
const MAX_DESCRIPTION: u64 = 64 << 20;

/// The largest number of files of a run's script that the journal names. `prune` keeps the others.
const MAX_PATHS: usize = 1000;

/// The directory of the output of commands that is recorded beside the runs.
pub(super) const RECORDS: &str = "records";

/// An open and locked results folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The folder, that of the results, and that of the output of commands.
    dirs: [HeldDir; 3],
    /// Lets all paths in the folder lead to it.
    _known: DirGuard,
    /// The description of the experiment.
    pub experiment: Arc<Experiment>,
    journal: Journal,
    /// The complete and the failed runs, in their order.
    pub(super) runs: Vec<KeptRun>,
    /// The runs of the search for the peak.
    pub(super) probes: Vec<Probe>,
    /// The run that was in progress when the experiment was interrupted.
    pub(super) under_way: Option<UnderWay>,
    /// The scopes that were begun.
    pub(super) scopes: ReplayedScopes,
    /// The run whose scopes have been begun; `None` when none is.
    pub(super) position: Option<ScopePosition>,
    /// For each arm, the mounts of its file sets before the interruption. Its first run after it takes them.
    mounts: Vec<BTreeSet<Vec<String>>>,
    /// Whether the experiment continues under changed conditions.
    anyway: bool,
    /// Why results of the experiment are not used, in one line; `None` when all are.
    dropped: Option<String>,
    /// The figures that were recorded beside the run in progress.
    pub(super) figures: RecordedFigures,
    /// The number of this boot, from 0.
    boot: usize,
    /// The changes of the conditions that were accepted; see [`Replayed::changes`].
    changes: Vec<(usize, Vec<String>)>,
    /// The attempts that are not used.
    pub(super) unused: UnusedAttempts,
    /// Whether the machine was rebooted since the last event of the experiment before it was resumed.
    is_after_reboot: bool,
    /// Whether the experiment had ended before it was resumed, and all of its results are there.
    pub(super) was_complete: bool,
    /// The parent, if it was created together with the folder.
    parent: Option<MadeDir>,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub(super) struct KeptRun {
    /// The index of its arm.
    pub(super) arm: usize,
    /// The duration in seconds, including commands; `None` when it is unknown.
    pub(super) seconds: Option<f64>,
    /// The number of the boot in which it was made.
    pub(super) boot: usize,
    pub(super) observation: Observation,
}

impl KeptRun {
    /// Creates a failed run without figures.
    pub(super) fn failed(run: usize, arm: usize, boot: usize, why: String) -> Self {
        let observation = Observation { source: format!("run {run}"), failure: Some(why), ..Observation::default() };
        Self { arm, seconds: None, boot, observation }
    }
}

/// True if a folder has no file besides those that an experiment leaves which was killed before its description
/// was written.
fn is_unused(folder: &HeldDir) -> io::Result<bool> {
    for entry in folder.entries()? {
        let is_file = entry.kind == FileType::RegularFile;
        let is_left_over = match entry.name.to_str() {
            Some(RUNS | HOOK_LOGS) => match folder.enter(&entry.name)? {
                Some(dir) => dir.entries()?.is_empty(),
                None => false,
            },
            Some(JOURNAL) => is_file && entry.size == 0,
            Some(name) => is_file && is_temporary(name, EXPERIMENT),
            None => false,
        };
        if !is_left_over {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if a file has the name of a temporary file that becomes the file `of`.
pub(super) fn is_temporary(name: &str, of: &str) -> bool {
    let process =
        name.strip_prefix('.').and_then(|name| name.strip_prefix(of)?.strip_prefix('.')?.strip_suffix(".tmp"));
    process.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads a text of a results folder. Its files are regular files: a read of a pipe would wait for data without end.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    reading::read_text(path, MAX_DESCRIPTION)
}

/// Returns the text of the file that describes an experiment.
pub(super) fn description_text(experiment: &Experiment, file: &Path) -> Result<String, FolderError> {
    toml::to_string(experiment).map_err(|e| FolderError::Content { path: file.to_owned(), why: e.to_string() })
}

/// Parses the description of an experiment.
pub(super) fn parse(text: &str) -> Result<Experiment, String> {
    toml::from_str(text).map_err(|e| toml_reason(text, &e))
}

/// Refuses an experiment with runs of a version that preallocated other numbers of files, `--anyway` or not: of one cell
/// there would be two workloads.
fn refuse_other_counts(path: &Path, state: &Replayed) -> Result<(), FolderError> {
    for (run, _) in (1..).zip(&state.runs).filter(|(_, run)| run.failure.is_none()) {
        let result = path.join(RUNS).join(result_name(run));
        // A result that can't be read is dropped later.
        let observations = import::recorded_observations(&result).unwrap_or_default();
        let is_other = |run: &Observation| {
            run.conditions.get(PREALLOCATED).is_some_and(|rules| rules.contains(FilesetResult::EACH_BY_CHANCE))
        };
        if observations.iter().any(is_other) {
            let why = format!("run {run} was made by an earlier version, which preallocated other numbers of files");
            return Err(FolderError::Content { path: path.to_owned(), why });
        }
    }
    Ok(())
}

/// Makes a folder known by its path, and opens the directories in it, which are created. Returns it with them.
fn hold(dir: HeldDir) -> io::Result<([HeldDir; 3], DirGuard)> {
    let known = dir.make_known()?;
    let [runs, hooks] = [RUNS, HOOK_LOGS].map(|name| dir.enter_or_make(name.as_ref()));
    Ok(([dir, runs?, hooks?], known))
}

/// The number of runs after which a machine is called busy if other programs disturbed all of them: a block.
pub(super) const BUSY_RUNS: usize = 4;

impl Folder {
    /// Creates the folder of a new experiment, with its parents. An existing folder must be empty, else an error is
    /// returned. One in which an experiment was killed before it began counts as empty.
    pub(crate) fn create(path: &Path, experiment: Experiment) -> Result<Self, FolderError> {
        let (dir, _) = HeldDir::create(path).map_err(io_error(path))?;
        Self::create_in(dir, experiment)
    }

    /// Creates the files of a new experiment in a directory that is held.
    fn create_in(dir: HeldDir, experiment: Experiment) -> Result<Self, FolderError> {
        let path = &dir.path().to_owned();
        let not_empty = || {
            let shown = path.display();
            let why = format!("it is not empty; to continue its experiment, give `--resume {shown}` and no script");
            FolderError::Content { path: path.to_owned(), why }
        };
        if !is_unused(&dir).map_err(io_error(path))? {
            return Err(not_empty());
        }
        let (dirs, known) = hold(dir).map_err(io_error(path))?;
        let dir = &dirs[0];
        // The lock comes before the description: of two processes with the same folder, only one may write it.
        let (mut journal, _) = Journal::open(dir).map_err(io_error(path))?;
        if !is_unused(dir).map_err(io_error(path))? {
            return Err(not_empty());
        }
        let file = path.join(EXPERIMENT);
        let text = description_text(&experiment, &file)?;
        let write: output::WriteTo<'_> = &mut |out| out.write_all(text.as_bytes());
        output::replace_in(dir, EXPERIMENT.as_ref(), write).map_err(io_error(&file))?;
        let boot = experiment.identity.boot.clone();
        let origin = Some(journal.origin(path).map_err(io_error(path))?);
        let begun = Event::Begun { experiment: digest(text.as_bytes()), time: now(), boot, origin };
        journal.write(&begun).map_err(io_error(path))?;
        // The names of the files, that of the folder, and those of its parents, which may be new as well.
        dir.sync().map_err(io_error(path))?;
        for parent in path.ancestors().skip(1) {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            // A directory that this user may not read can't be flushed.
            if HeldDir::open(parent).and_then(|dir| dir.sync()).is_err() {
                break;
            }
        }
        Ok(Self::of(path, dirs, known, experiment, journal))
    }

    fn of(path: &Path, dirs: [HeldDir; 3], known: DirGuard, experiment: Experiment, journal: Journal) -> Self {
        Self {
            path: path.to_owned(),
            dirs,
            _known: known,
            experiment: Arc::new(experiment),
            journal,
            runs: Vec::new(),
            probes: Vec::new(),
            under_way: None,
            scopes: ReplayedScopes::default(),
            position: None,
            mounts: Vec::new(),
            anyway: false,
            dropped: None,
            figures: RecordedFigures::default(),
            boot: 0,
            changes: Vec::new(),
            unused: UnusedAttempts::default(),
            is_after_reboot: false,
            was_complete: false,
            parent: None,
        }
    }

    /// Returns an error if a directory of the folder is no longer at its path: another one may be there, into which nothing
    /// must be written.
    pub(super) fn check_in_place(&self) -> Result<(), FolderError> {
        let is_in_place = self.dirs.iter().all(HeldDir::is_in_place);
        if is_in_place { Ok(()) } else { Err(FolderError::Moved { path: self.path.clone() }) }
    }

    /// Returns the directory of the results of the runs.
    pub(super) fn runs_dir(&self) -> &HeldDir {
        &self.dirs[1]
    }

    /// Creates the folder of a new experiment, with its parents. If a folder of this name exists, `-2`, `-3` and so on
    /// is appended to the name.
    pub(crate) fn create_beside(path: &Path, experiment: Experiment) -> Result<Self, FolderError> {
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (held, mut made) = HeldDir::create(parent).map_err(io_error(parent))?;
        let name = path.file_name().unwrap_or_default();
        let mut free = name.to_owned();
        for n in 2_u32.. {
            // Another process may create the folder between a test and this call, so the call is the test.
            match held.make_new_dir(&free) {
                Ok(()) => break,
                Err(Errno::EXIST) => {
                    free = name.to_owned();
                    free.push(format!("-{n}"));
                }
                Err(e) => return Err(io_error(&parent.join(&free))(e.into())),
            }
        }
        let dir = held.enter_any(&free).map_err(|e| io_error(&parent.join(&free))(e.into()))?;
        let parent = (!made.is_empty()).then(|| made.swap_remove(0));
        Ok(Self { parent, ..Self::create_in(dir, experiment)? })
    }

    /// Removes the files of the experiment if no run has ended, then the folder, and its parent if that was created with
    /// it. Returns whether the folder was removed: one that holds other files is kept with them, and so is one with the
    /// result of a first run, after which a command failed.
    pub(crate) fn remove_without_runs(self) -> Result<bool, FolderError> {
        let measured = import::recorded_observations(&self.result(1)).unwrap_or_default();
        let is_measured = || measured.iter().any(|observation| observation.failure.is_none());
        let is_begun = !self.runs.is_empty() || !self.probes.is_empty();
        if is_begun || self.path.join(DROPPED).exists() || is_measured() {
            return Ok(false);
        }
        // The files there are of others.
        if device::mounted_below(&self.path).is_some() {
            return Ok(false);
        }
        let pruned = OwnFiles::of(&self.experiment, &self.path.join(JOURNAL))?.remove_all(&self.path)?;
        // `prune` needs the journal for what is left of the output.
        if !pruned.kept.is_empty() {
            return Ok(false);
        }
        let [dir, ..] = &self.dirs;
        for name in [EXPERIMENT, JOURNAL] {
            dir.remove_file(name.as_ref()).map_err(io_error(&self.path.join(name)))?;
        }
        // Only an empty directory is removed, and only this one.
        let is_removed = dir.is_in_place()
            && HeldDir::of_entry(&self.path).is_ok_and(|(parent, name)| parent.remove_empty_dir(&name));
        if is_removed && let Some(parent) = &self.parent {
            // It may have another experiment by now.
            parent.remove();
        }
        Ok(is_removed)
    }

    /// Reads the description of the experiment in a folder, and its text. Returns an error when it is not complete.
    fn read_description(path: &Path) -> Result<(Experiment, String), FolderError> {
        let file = path.join(EXPERIMENT);
        let content = |why: String| FolderError::Content { path: file.clone(), why };
        let text = read_text(&file).map_err(|error| match error.kind() {
            // The path may be that of a file, such as a result.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FolderError::NotResults { path: path.to_owned() },
            _ => io_error(&file)(error),
        })?;
        let experiment = parse(&text).map_err(content)?;
        if experiment.schema != SCHEMA {
            return Err(content(format!("its schema is not `{SCHEMA}`")));
        }
        experiment.check_shape().map_err(|why| content(why.to_owned()))?;
        Ok((experiment, text))
    }

    pub(crate) fn description(path: &Path) -> Result<Experiment, FolderError> {
        Self::read_description(path).map(|(experiment, _)| experiment)
    }

    /// Opens the folder of an interrupted experiment. `current` has the current conditions. Unless `anyway` is set, an
    /// error is returned if they or the description of the experiment have changed since its start. The machine may have
    /// been rebooted.
    pub(crate) fn resume(path: &Path, current: &Identity, anyway: bool) -> Result<Self, FolderError> {
        let (experiment, text) = Self::read_description(path)?;
        let dir = HeldDir::open(path).map_err(io_error(path))?;
        let (file, log) = (path.join(EXPERIMENT), path.join(JOURNAL));
        let (mut journal, events) = Journal::open(&dir).map_err(io_error(&log))?;
        let mut changed: Vec<String> = experiment.identity.changes(current).into_iter().map(str::to_owned).collect();
        let owner = owner(&file).map_err(io_error(&file))?;
        if owner != current.user && !changed.iter().any(|what| what == "the user") {
            changed.push("the folder's owner".to_owned());
        }
        let current_digest = digest(text.as_bytes());
        match events.first() {
            Some(Event::Begun { .. }) => {
                // An extension that was interrupted has left the description before it.
                if !events.iter().any(|event| event.description() == Some(&current_digest)) {
                    changed.push(format!("`{EXPERIMENT}`, which has the commands"));
                }
            }
            Some(_) => {
                let why = "the journal does not start with the event `begun`".to_owned();
                return Err(FolderError::Content { path: log, why });
            }
            None if !reading::entries(&path.join(RUNS)).unwrap_or_default().is_empty() => {
                let why = "it is empty although there are results of runs, which would be replaced".to_owned();
                return Err(FolderError::Content { path: log, why });
            }
            None => {
                let (boot, origin) = (current.boot.clone(), Some(journal.origin(path).map_err(io_error(path))?));
                let begun = Event::Begun { experiment: current_digest, time: now(), boot, origin };
                journal.write(&begun).map_err(io_error(&log))?;
            }
        }
        let mut state = Replayed::of(&events, experiment.arms.len())
            .map_err(|why| FolderError::Content { path: log.clone(), why })?;
        if experiment.identity.tool != current.tool {
            refuse_other_counts(path, &state)?;
        }
        if !changed.is_empty() && !anyway {
            return Err(FolderError::Changed { path: path.to_owned(), changed });
        }
        let boot_before = state.boots.number;
        state.boots.enter(&current.boot);
        // After a power failure an empty directory may be missing.
        let (dirs, known) = hold(dir).map_err(io_error(path))?;
        let is_after_reboot = state.boots.number != boot_before;
        let mut folder = Self { anyway, is_after_reboot, ..Self::of(path, dirs, known, experiment, journal) };
        folder.check_in_place()?;
        folder.restore(state)?;
        if !events.is_empty() {
            folder.write(&Event::Resumed { time: now(), changed: changed.clone(), boot: current.boot.clone() })?;
            if !changed.is_empty() {
                folder.changes.push((folder.runs.len() + 1, changed));
            }
        }
        Ok(folder)
    }

    /// Takes the state of the journal, with the results of the runs. If a result is missing or damaged, it and all
    /// later ones are dropped, because the order of the runs has no gaps.
    fn restore(&mut self, mut state: Replayed) -> Result<(), FolderError> {
        for (run, EndedRun { arm, seconds, failure, figures, boot }) in (1..).zip(state.runs.clone()) {
            let kept = match (failure, import::recorded_observations(&self.result(run))) {
                (Some(why), _) => KeptRun::failed(run, arm, boot, why),
                (None, Ok(found)) if !found.is_empty() => {
                    let mut observation = Observation::last_of(found).unwrap_or_default();
                    figures.add_to(&mut observation);
                    KeptRun { arm, seconds, boot, observation }
                }
                // An error of the device or the permissions does not mean that the result is lost.
                (None, Err(ImportError::Io { path, error })) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(FolderError::Io { path, error });
                }
                (None, found) => {
                    let why = found.err().map_or_else(|| "it has no runs".to_owned(), |e| e.to_string());
                    let last = state.runs.len();
                    let runs = if run == last { format!("run {run} is") } else { format!("runs {run} to {last} are") };
                    let note = format!("{runs} made again: {why}");
                    self.write(&Event::Dropped { run: run as u64, why })?;
                    state.drop_from(run);
                    self.dropped = Some(match self.keep_dropped(run..=last)? {
                        Some(dir) => format!("{note}; the files are kept in {}", dir.display()),
                        None => note,
                    });
                    break;
                }
            };
            self.runs.push(kept);
        }
        self.figures = state.under_way.as_ref().map(|under_way| under_way.figures.clone()).unwrap_or_default();
        (self.under_way, self.mounts, self.scopes) = (state.under_way, state.mounts, state.scopes);
        (self.boot, self.changes, self.unused) = (state.boots.number, state.changes, state.unused);
        (self.probes, self.was_complete) = (state.probes, state.is_complete);
        Ok(())
    }

    /// True if the machine was rebooted before the experiment was resumed.
    pub(crate) fn is_after_reboot(&self) -> bool {
        self.is_after_reboot
    }

    /// Returns the number of this boot, from 0.
    pub(super) fn boot(&self) -> usize {
        self.boot
    }

    /// Returns notes on how the runs were made.
    pub(super) fn notes(&self) -> Vec<String> {
        run_notes((1..).zip(self.runs.iter().map(|run| run.boot)), &self.changes, &self.unused)
    }

    /// Returns why results of the experiment are not used, in one line, or `None` when all are.
    pub(crate) fn dropped(&self) -> Option<&str> {
        self.dropped.as_deref()
    }

    /// Checks that the first run of an arm after an interruption has the same mounts as the arm had before. Returns an
    /// error if they differ, unless the experiment continues under changed conditions.
    pub(super) fn check_mounts(&mut self, arm: usize, mounts: &[String]) -> Result<(), FolderError> {
        let before = self.mounts.get_mut(arm).map(std::mem::take).unwrap_or_default();
        if before.is_empty() || before.contains(mounts) || self.anyway {
            return Ok(());
        }
        let changed = vec![format!("a mount of {}", self.experiment.arm_title(arm))];
        Err(FolderError::Changed { path: self.path.clone(), changed })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a run's result. Runs are numbered from 1.
    pub(super) fn result(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(result_name(run))
    }

    /// Returns the number of runs that have ended.
    pub(crate) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// True if a run has written a result.
    pub(super) fn has_result(&self, run: usize) -> bool {
        fs::symlink_metadata(self.result(run)).is_ok_and(|meta| meta.len() > 0)
    }

    /// True if a run has written the result of a failure, or of a run that was refused before it began.
    pub(super) fn has_failure(&self, run: usize) -> bool {
        self.observation(run).is_ok_and(|observation| observation.failure.is_some())
            || import::is_of_refused_run(&self.result(run))
    }

    /// Returns the path of a run's output.
    pub(super) fn log(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.log"))
    }

    /// Returns the directory for files that a run's script writes.
    pub(super) fn files(&self, run: usize) -> PathBuf {
        self.path.join(RUNS).join(format!("{run:04}.files"))
    }

    /// Returns the path of the output of a command that is recorded after a run.
    pub(super) fn record(&self, run: usize, command: usize) -> PathBuf {
        self.path.join(RECORDS).join(format!("{run:04}-{}.txt", command + 1))
    }

    /// Returns the path of the output of a command before or after a run.
    pub(super) fn hook_log(&self, run: usize, hook: &str) -> PathBuf {
        self.path.join(HOOK_LOGS).join(format!("{run:04}-{hook}.log"))
    }

    /// Appends an event to the journal.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), FolderError> {
        self.journal.write(event).map_err(io_error(&self.path.join(JOURNAL)))?;
        match event {
            // A scope may end after its last run.
            Event::Hook { run, name, times } if *run as usize <= self.runs.len() => {
                times.add_to(name, &mut self.runs[*run as usize - 1].observation.figures);
            }
            _ => self.figures.apply(event),
        }
        Ok(())
    }

    /// Returns the observation of a run's result. If the script made several runs, it is the last of them.
    pub(super) fn observation(&self, run: usize) -> Result<Observation, FolderError> {
        let path = self.result(run);
        let content = |why: String| FolderError::Content { path: path.clone(), why };
        let found = import::recorded_observations(&path).map_err(|e| content(e.to_string()))?;
        Observation::last_of(found).ok_or_else(|| content("it has no runs".to_owned()))
    }

    /// Records which files the script of a run has written. Those that can't be listed are kept by `prune`.
    pub(super) fn keep_paths(&mut self, run: usize) -> Result<(), FolderError> {
        let files = self.files(run);
        let found = self.runs_dir().enter(files.file_name().unwrap_or_default()).ok().flatten();
        let paths = found.and_then(|dir| dir.paths_below(MAX_PATHS).ok()).unwrap_or_default();
        if paths.is_empty() { Ok(()) } else { self.write(&Event::Files { run: run as u64, paths }) }
    }

    /// Records the used space of a run's file systems.
    pub(super) fn keep_space(&mut self, run: usize, time: HookTime, used: Option<u64>) -> Result<(), FolderError> {
        match used {
            Some(used) => self.write(&Event::Space { run: run as u64, time, used }),
            None => Ok(()),
        }
    }

    /// Records a complete run. `control` is the speed of the negative control after it.
    pub(super) fn keep(&mut self, mut run: KeptRun, control: Option<f64>) -> Result<(), FolderError> {
        let number = self.runs.len() + 1;
        // The result must be on the disk before the event that says so. The run does not flush it.
        let (result, runs) = (self.result(number), self.runs_dir());
        let file = runs.open_file(result.file_name().unwrap_or_default(), OFlags::RDONLY);
        file.and_then(|file| file.sync_all()).map_err(io_error(&result))?;
        runs.sync().map_err(io_error(runs.path()))?;
        self.write(&Event::Finished { run: number as u64, seconds: run.seconds, control })?;
        run.observation.control = self.figures.control();
        self.runs.push(run);
        Ok(())
    }

    /// Returns the number of further attempts that a disturbed run may have.
    pub(super) fn retries_left(&self, run: usize) -> u64 {
        if self.is_busy() {
            return 0;
        }
        self.experiment.retry_disturbed.saturating_sub(self.unused.of_run(run))
    }

    /// True if other programs disturbed all of the last runs, also their further attempts: then more of these only
    /// take time.
    pub(super) fn is_busy(&self) -> bool {
        let disturbed = |run: &&KeptRun| run.observation.disturbed;
        self.runs.iter().rev().take(BUSY_RUNS).filter(disturbed).count() == BUSY_RUNS
    }

    /// Records a failed run.
    pub(super) fn keep_failed(&mut self, arm: usize, why: String) -> Result<(), FolderError> {
        let run = self.runs.len() + 1;
        self.write(&Event::Failed { run: run as u64, why: why.clone() })?;
        self.runs.push(KeptRun::failed(run, arm, self.boot, why));
        Ok(())
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
