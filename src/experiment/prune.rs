//! Removes what an experiment can do without: the output of runs and commands, the files that scripts wrote, and
//! temporary files of killed runs. The results are kept.

use super::folder::{FolderError, HOOK_LOGS, io_error, is_temporary};
use super::journal;
use super::wanted::SCHEMA;
use crate::import::folder::{EXPERIMENT, JOURNAL, RUNS};
use std::fs;
use std::io;
use std::path::Path;

/// Removes the output of runs and commands from a results folder, and keeps the results. Returns the number of bytes
/// removed. Returns an error when another process uses the folder.
pub fn prune(path: &Path) -> Result<u64, FolderError> {
    let file = path.join(EXPERIMENT);
    let text = fs::read_to_string(&file).map_err(io_error(&file))?;
    if !text.contains(SCHEMA) {
        let why = "it is not the results folder of an experiment".to_owned();
        return Err(FolderError::Content { path: path.to_owned(), why });
    }
    let log = path.join(JOURNAL);
    let _lock = match journal::locked(&log) {
        // It is missing if the experiment was killed before its first event.
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        locked => Some(locked.map_err(io_error(&log))?),
    };
    let temporary = remove_from(path, &|name, is_dir| !is_dir && is_temporary(name, EXPERIMENT))?;
    let output = remove_from(&path.join(RUNS), &|name, is_dir| match is_dir {
        true => name.strip_suffix(".files").is_some_and(is_number),
        false => is_log(name) || is_temporary_result(name),
    })?;
    let hooks = remove_from(&path.join(HOOK_LOGS), &|name, is_dir| !is_dir && is_log(name))?;
    Ok(temporary + output + hooks)
}

/// Returns whether a text is the number of a run, as in the names of its files.
fn is_number(text: &str) -> bool {
    text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a file has the name of the output of a run, `0001.log`, or of a command, `0001-before.log`.
fn is_log(name: &str) -> bool {
    name.strip_suffix(".log").is_some_and(|name| is_number(name.split_once('-').map_or(name, |(number, _)| number)))
}

/// Returns whether a file has the name of a temporary file that becomes a result: `.0001.json.123.tmp`.
fn is_temporary_result(name: &str) -> bool {
    let number = name.strip_prefix('.').and_then(|name| name.split_once('.')).map_or("", |(number, _)| number);
    is_number(number) && is_temporary(name, &format!("{number}.json"))
}

/// Removes the entries of a directory for which `is_removed` returns `true`, given the name and whether it is a
/// directory. Returns the number of bytes removed.
fn remove_from(dir: &Path, is_removed: &dyn Fn(&str, bool) -> bool) -> Result<u64, FolderError> {
    let meta = fs::symlink_metadata(dir).map_err(io_error(dir))?;
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
