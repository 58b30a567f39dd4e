//! Results that the experiment does not use, because their runs are made again. They were measured, so they are moved
//! into a directory of their own and never removed.

use super::folder::Folder;
use super::folder_error::{FolderError, io_error};
use super::journal::Event;
use super::replay::RecordedFigures;
use crate::os::Errno;
use crate::os::held_dir::HeldDir;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The directory of the results that are not used. It has a directory for each time that runs were made again: `1`, `2`
/// and so on.
pub(super) const DROPPED: &str = "dropped";

impl Folder {
    /// Makes room for the next attempt of a run: the files of an earlier attempt must not be taken for its own. If that
    /// has a result, or its script has written files, they are moved, and the directory with them is returned.
    pub(super) fn clear(&mut self, run: usize) -> Result<Option<PathBuf>, FolderError> {
        self.figures = RecordedFigures::default();
        let runs = self.runs_dir();
        // Only an empty directory is removed. The journal does not name the files of a run that was killed, so others may
        // be among them.
        let has_files = || {
            let files = self.files(run);
            let name = files.file_name().unwrap_or_default();
            !runs.remove_empty_dir(name) && runs.find(name).is_ok_and(|found| found.is_some())
        };
        if self.has_result(run) || has_files() {
            return self.keep_dropped(run..=run);
        }
        let mut is_cleared = true;
        for file in [self.result(run), self.log(run)] {
            match runs.remove_file(file.file_name().unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => {
                    removed.map_err(io_error(&file))?;
                    is_cleared = false;
                }
            }
        }
        // Otherwise an empty result would be there again after a power failure.
        if !is_cleared {
            runs.sync().map_err(io_error(runs.path()))?;
        }
        Ok(None)
    }

    /// Discards an attempt of a run that other programs disturbed, and which took so many seconds. Returns the directory in
    /// which its files are kept.
    pub(super) fn discard(&mut self, run: usize, seconds: f64) -> Result<Option<PathBuf>, FolderError> {
        self.write(&Event::Retried { run: run as u64, seconds })?;
        self.unused.add(run, seconds);
        self.keep_dropped(run..=run)
    }

    /// Moves what runs have left into a new directory below [`DROPPED`]: results, output, files of their scripts, and
    /// records. Returns the directory, or `None` when there is nothing to move.
    pub(super) fn keep_dropped(&self, runs: RangeInclusive<usize>) -> Result<Option<PathBuf>, FolderError> {
        let records = self.experiment.records.len();
        let of_run = |run: usize| {
            let records = (0..records).map(move |command| self.record(run, command));
            [self.result(run), self.log(run), self.files(run)].into_iter().chain(records)
        };
        let files: Vec<PathBuf> = runs.flat_map(of_run).filter(|file| fs::symlink_metadata(file).is_ok()).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let dir = self.new_dropped_dir()?;
        let mut dirs = vec![dir.clone()];
        for file in &files {
            let (from, name) = HeldDir::of_entry(file).map_err(io_error(file))?;
            from.move_to(&name, &dir).map_err(|e| io_error(file)(e.into()))?;
            if dirs.iter().all(|dir| dir.path() != from.path()) {
                dirs.push(from);
            }
        }
        // After a power failure the files are in one of the two directories.
        for dir in &dirs {
            dir.sync().map_err(io_error(dir.path()))?;
        }
        Ok(Some(dir.path().to_owned()))
    }

    /// Creates the next numbered directory below [`DROPPED`].
    fn new_dropped_dir(&self) -> Result<HeldDir, FolderError> {
        let error = |e: io::Error| io_error(&self.path().join(DROPPED))(e);
        let folder = HeldDir::open(self.path()).map_err(error)?;
        // Not through a link, which may lead to a directory of others.
        let parent = folder.enter_or_make(DROPPED.as_ref()).map_err(error)?;
        let mut number = 1_u32;
        let dir = loop {
            let name = OsString::from(number.to_string());
            match parent.make_new_dir(&name) {
                Err(Errno::EXIST) => number += 1,
                Err(e) => return Err(error(e.into())),
                Ok(()) => break parent.enter_any(&name).map_err(|e| error(e.into()))?,
            }
        };
        for dir in [&parent, &folder] {
            dir.sync().map_err(error)?;
        }
        Ok(dir)
    }
}
