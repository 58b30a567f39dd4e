//! Removes what an experiment can do without: the output of runs and commands, the files that scripts wrote, and
//! temporary files of killed runs. The results are kept, and so is every file that is not one of the experiment: of the
//! files beside a run only those that the journal names are of its script.

use super::dropped::DROPPED;
use super::folder::{self, HOOK_LOGS, RECORDS, is_temporary};
use super::folder_error::{FolderError, io_error};
use super::hooks::HookTime;
use super::journal::{self, Event};
use super::wanted::{Experiment, SCHEMA};
use crate::import::folder::{EXPERIMENT, JOURNAL, RUNS};
use crate::os::held_dir::{HeldDir, HeldEntry};
use crate::os::reading;
use crate::os::{FileType, device};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was removed from a results folder, and what was kept that its runs may have written.
#[derive(Debug, Default)]
pub struct Pruned {
    /// The length of the removed files in bytes.
    pub bytes: u64,
    /// The directories of files of scripts that have files which the journal does not name: someone may have put them
    /// there, or the run was killed.
    pub kept: Vec<PathBuf>,
}

/// Removes the output of runs and commands from a results folder, and keeps the results and the files of others. Returns
/// an error when another process uses the folder, or when something is mounted in it.
pub fn prune(path: &Path) -> Result<Pruned, FolderError> {
    let file = path.join(EXPERIMENT);
    let text = folder::read_text(&file).map_err(io_error(&file))?;
    if !text.contains(SCHEMA) {
        let why = "it is not the results folder of an experiment".to_owned();
        return Err(FolderError::Content { path: path.to_owned(), why });
    }
    let experiment = folder::parse(&text).map_err(|why| FolderError::Content { path: file, why })?;
    let log = path.join(JOURNAL);
    let _lock = match journal::LockedJournal::open(&log) {
        // It is missing if the experiment was killed before its first event.
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        locked => Some(locked.map_err(io_error(&log))?),
    };
    OwnFiles::of(&experiment, &log)?.remove_output(path)
}

/// The names of the files that an experiment has created, besides its description and its journal. Other files have
/// other names, unless someone gave them the number of a run and the name of a command of this experiment.
pub(super) struct OwnFiles {
    /// The numbers of the runs that the journal names.
    runs: BTreeSet<u64>,
    /// The paths of the files that the script of a run has written, in all attempts, by the number of the run.
    written: BTreeMap<u64, BTreeSet<String>>,
    /// The names of the commands whose output is kept.
    commands: BTreeSet<String>,
    /// The number of the commands whose output is recorded after each run.
    records: usize,
}

impl OwnFiles {
    /// Returns the files of an experiment with this description and this journal, which need not exist.
    pub(super) fn of(experiment: &Experiment, log: &Path) -> Result<Self, FolderError> {
        let events = match journal::events_of(log) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            events => events.map_err(io_error(log))?,
        };
        let of_scopes = experiment.scopes.iter().flat_map(|hook| HookTime::ALL.map(|time| hook.command_name(time)));
        let runs = events.iter().filter_map(Event::run).collect();
        let mut written: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for event in events {
            if let Event::Files { run, paths } = event {
                written.entry(run).or_default().extend(paths);
            }
        }
        let commands = experiment.hooks.0.keys().cloned().chain(of_scopes).collect();
        Ok(Self { runs, written, commands, records: experiment.records.len() })
    }

    /// Removes all but the results.
    fn remove_output(&self, path: &Path) -> Result<Pruned, FolderError> {
        // What is mounted is not of the experiment, and shows that the folder is used for something else.
        if let Some(path) = device::mounted_below(path) {
            let why = "something is mounted there, so nothing was removed from the results folder".to_owned();
            return Err(FolderError::Content { path, why });
        }
        let folder = HeldDir::open(path).map_err(io_error(path))?;
        let mut pruned = Pruned::default();
        pruned.bytes += remove_files(&folder, &|name| is_temporary(name, EXPERIMENT))?;
        if let Some(runs) = enter(&folder, RUNS)? {
            self.remove_output_of_runs(&runs, &mut pruned)?;
        }
        if let Some(hooks) = enter(&folder, HOOK_LOGS)? {
            pruned.bytes += remove_files(&hooks, &|name| self.is_hook_log(name))?;
        }
        if let Some(dropped) = enter(&folder, DROPPED)? {
            for entry in entries(&dropped)? {
                let number = entry.name.to_str().filter(|name| name.parse::<u32>().is_ok());
                if let Some(number) = number
                    && let Some(runs) = enter(&dropped, number)?
                {
                    self.remove_output_of_runs(&runs, &mut pruned)?;
                }
            }
        }
        Ok(pruned)
    }

    /// Removes the output of runs and the files of their scripts from the directory of the results.
    fn remove_output_of_runs(&self, dir: &HeldDir, pruned: &mut Pruned) -> Result<(), FolderError> {
        pruned.bytes += remove_files(dir, &|name| self.is_output(name))?;
        for entry in entries(dir)? {
            let name = entry.name.to_string_lossy();
            let Some(run) = self.run_of(&name, ".files") else { continue };
            let Some(files) = enter(dir, &name)? else { continue };
            if let Some(paths) = self.written.get(&run) {
                pruned.bytes += files.remove_below(paths).map_err(io_error(files.path()))?;
            }
            if !dir.remove_empty_dir(&entry.name) {
                pruned.kept.push(files.path().to_owned());
            }
        }
        Ok(())
    }

    /// Removes all files, results included, and the directories that are empty then.
    pub(super) fn remove_all(&self, path: &Path) -> Result<Pruned, FolderError> {
        let pruned = self.remove_output(path)?;
        let folder = HeldDir::open(path).map_err(io_error(path))?;
        if let Some(runs) = enter(&folder, RUNS)? {
            remove_files(&runs, &|name| self.run_of(name, ".json").is_some())?;
        }
        if let Some(records) = enter(&folder, RECORDS)? {
            remove_files(&records, &|name| self.is_record(name))?;
        }
        for dir in [RUNS, HOOK_LOGS, RECORDS] {
            folder.remove_empty_dir(OsStr::new(dir));
        }
        Ok(pruned)
    }

    /// Returns the number of a run in the name of one of its files: `0001` and this ending.
    fn run_of(&self, name: &str, ending: &str) -> Option<u64> {
        let number = name.strip_suffix(ending)?;
        let run = number.parse().ok()?;
        (self.runs.contains(&run) && format!("{run:04}") == number).then_some(run)
    }

    /// True if a name is that of the output of a run (`0001.log`), or of a temporary file that becomes its
    /// result (`.0001.json.123.tmp`).
    fn is_output(&self, name: &str) -> bool {
        let is_temporary_result = || {
            let result = name.strip_prefix('.').and_then(|name| Some(name.get(..name.find(".json.")? + 5)?.to_owned()));
            result.is_some_and(|result| self.run_of(&result, ".json").is_some() && is_temporary(name, &result))
        };
        self.run_of(name, ".log").is_some() || is_temporary_result()
    }

    /// True if a name is that of the output of a command before or after a run: `0001-before.log`.
    fn is_hook_log(&self, name: &str) -> bool {
        let parts = name.strip_suffix(".log").and_then(|name| name.split_once('-'));
        parts.is_some_and(|(number, command)| self.run_of(number, "").is_some() && self.commands.contains(command))
    }

    /// True if a name is that of what a command recorded after a run: `0001-1.txt`.
    fn is_record(&self, name: &str) -> bool {
        let parts = name.strip_suffix(".txt").and_then(|name| name.split_once('-'));
        parts.is_some_and(|(number, command)| {
            let is_command = (1..=self.records).any(|n| n.to_string() == command);
            is_command && self.run_of(number, "").is_some()
        })
    }
}

/// Opens a directory of a results folder. A copy of the folder may lack an empty one. A link is not followed: its files
/// are not of the experiment.
fn enter(dir: &HeldDir, name: &str) -> Result<Option<HeldDir>, FolderError> {
    dir.enter(OsStr::new(name)).map_err(io_error(&dir.path().join(name)))
}

fn entries(dir: &HeldDir) -> Result<Vec<HeldEntry>, FolderError> {
    dir.entries().map_err(io_error(dir.path()))
}

/// Removes the regular files of a directory for whose names `is_removed` returns `true`. Returns their length in bytes.
fn remove_files(dir: &HeldDir, is_removed: &dyn Fn(&str) -> bool) -> Result<u64, FolderError> {
    let mut bytes = 0;
    for entry in entries(dir)? {
        if entry.kind == FileType::RegularFile && is_removed(&entry.name.to_string_lossy()) {
            dir.remove_file(&entry.name).map_err(io_error(&dir.path().join(&entry.name)))?;
            bytes += entry.size;
        }
    }
    Ok(bytes)
}

/// Returns the total length of the files below a directory, in bytes. Files that can't be examined are ignored.
pub fn bytes_below(dir: &Path) -> u64 {
    let entries = reading::entries(dir).unwrap_or_default();
    let size = |entry: &fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.iter().map(size).sum()
}
