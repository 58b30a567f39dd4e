//! Removes what an experiment can do without: the output of runs and commands, the files that scripts wrote, and
//! temporary files of killed runs. The results are kept, and so is every file that is not one of the experiment.

use super::dropped::DROPPED;
use super::folder::{self, FolderError, HOOK_LOGS, RECORDS, io_error, is_temporary};
use super::hooks::HookTime;
use super::journal::{self, Event};
use super::wanted::{Experiment, SCHEMA};
use crate::import::folder::{EXPERIMENT, JOURNAL, RUNS};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Removes the output of runs and commands from a results folder, and keeps the results and the files of others. Returns
/// the number of bytes removed. Returns an error when another process uses the folder.
pub fn prune(path: &Path) -> Result<u64, FolderError> {
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
        Ok(Self {
            runs: events.iter().filter_map(Event::run).collect(),
            commands: experiment.hooks.0.keys().cloned().chain(of_scopes).collect(),
            records: experiment.records.len(),
        })
    }

    /// Removes all but the results. Returns the number of bytes removed.
    fn remove_output(&self, path: &Path) -> Result<u64, FolderError> {
        let is_output = |name: &str, is_dir| self.is_output(name, is_dir);
        let mut bytes = remove_from(path, &|name, is_dir| !is_dir && is_temporary(name, EXPERIMENT))?;
        bytes += remove_from(&path.join(RUNS), &is_output)?;
        bytes += remove_from(&path.join(HOOK_LOGS), &|name, is_dir| !is_dir && self.is_hook_log(name))?;
        let dropped = path.join(DROPPED);
        if !dropped.is_dir() {
            return Ok(bytes);
        }
        for dir in fs::read_dir(&dropped).map_err(io_error(&dropped))? {
            let dir = dir.map_err(io_error(&dropped))?;
            if dir.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()) {
                bytes += remove_from(&dir.path(), &is_output)?;
            }
        }
        Ok(bytes)
    }

    /// Removes all files, results included, and the directories that are empty then.
    pub(super) fn remove_all(&self, path: &Path) -> Result<(), FolderError> {
        self.remove_output(path)?;
        let (runs, records) = (path.join(RUNS), path.join(RECORDS));
        remove_from(&runs, &|name, is_dir| !is_dir && self.run_of(name, ".json").is_some())?;
        remove_from(&records, &|name, is_dir| !is_dir && self.is_record(name))?;
        for dir in [runs, path.join(HOOK_LOGS), records] {
            // `rmdir` refuses a directory with files of others.
            let _ = fs::remove_dir(dir);
        }
        Ok(())
    }

    /// Returns the number of a run in the name of one of its files: `0001` and this ending.
    fn run_of(&self, name: &str, ending: &str) -> Option<u64> {
        let number = name.strip_suffix(ending)?;
        let run = number.parse().ok()?;
        (self.runs.contains(&run) && format!("{run:04}") == number).then_some(run)
    }

    /// Returns whether a name is that of the output of a run (`0001.log`), of the directory of its files
    /// (`0001.files`), or of a temporary file that becomes its result (`.0001.json.123.tmp`).
    fn is_output(&self, name: &str, is_dir: bool) -> bool {
        if is_dir {
            return self.run_of(name, ".files").is_some();
        }
        let is_temporary_result = || {
            let result = name.strip_prefix('.').and_then(|name| Some(name.get(..name.find(".json.")? + 5)?.to_owned()));
            result.is_some_and(|result| self.run_of(&result, ".json").is_some() && is_temporary(name, &result))
        };
        self.run_of(name, ".log").is_some() || is_temporary_result()
    }

    /// Returns whether a name is that of the output of a command before or after a run: `0001-before.log`.
    fn is_hook_log(&self, name: &str) -> bool {
        let parts = name.strip_suffix(".log").and_then(|name| name.split_once('-'));
        parts.is_some_and(|(number, command)| self.run_of(number, "").is_some() && self.commands.contains(command))
    }

    /// Returns whether a name is that of what a command recorded after a run: `0001-1.txt`.
    fn is_record(&self, name: &str) -> bool {
        let parts = name.strip_suffix(".txt").and_then(|name| name.split_once('-'));
        parts.is_some_and(|(number, command)| {
            let is_command = (1..=self.records).any(|n| n.to_string() == command);
            is_command && self.run_of(number, "").is_some()
        })
    }
}

/// Removes the entries of a directory for which `is_removed` returns `true`, given the name and whether it is a
/// directory. A directory that does not exist has none. Returns the number of bytes removed.
fn remove_from(dir: &Path, is_removed: &dyn Fn(&str, bool) -> bool) -> Result<u64, FolderError> {
    let meta = match fs::symlink_metadata(dir) {
        // A copy of the folder may lack an empty directory.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        found => found.map_err(io_error(dir))?,
    };
    if !meta.is_dir() {
        return Ok(0);
    }
    let mut bytes = 0;
    for entry in fs::read_dir(dir).map_err(io_error(dir))? {
        let entry = entry.map_err(io_error(dir))?;
        let (path, meta) = (entry.path(), entry.metadata().map_err(io_error(dir))?);
        // Only names that this program creates are removed, and no link is followed.
        let is_ours =
            (meta.is_file() || meta.is_dir()) && is_removed(&entry.file_name().to_string_lossy(), meta.is_dir());
        if is_ours {
            bytes += if meta.is_dir() { bytes_below(&path) } else { meta.len() };
            let removed = if meta.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(io_error(&path))?;
        }
    }
    Ok(bytes)
}

/// Returns the total length of the files below a directory, in bytes. Files that can't be examined are ignored.
pub fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
