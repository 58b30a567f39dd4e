//! Results that the experiment does not use, because their runs are made again. They were measured, so they are moved
//! into a directory of their own and never removed.

use super::folder::{Folder, RECORDS, sync_dir};
use super::folder_error::{FolderError, io_error};
use crate::import::folder::RUNS;
use std::fs;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The directory of the results that are not used. It has a directory for each time that runs were made again: `1`, `2`
/// and so on.
pub(super) const DROPPED: &str = "dropped";

/// Returns whether a directory, and no link to one, is at a path.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

impl Folder {
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
        for file in &files {
            fs::rename(file, dir.join(file.file_name().unwrap_or_default())).map_err(io_error(file))?;
        }
        // After a power failure the files are in one of the two directories.
        let dirs = [Some(dir.clone()), Some(self.path().join(RUNS)), (records > 0).then(|| self.path().join(RECORDS))];
        for dir in dirs.into_iter().flatten().filter(|dir| dir.exists()) {
            sync_dir(&dir).map_err(io_error(&dir))?;
        }
        Ok(Some(dir))
    }

    /// Creates the next numbered directory below [`DROPPED`].
    fn new_dropped_dir(&self) -> Result<PathBuf, FolderError> {
        let parent = self.path().join(DROPPED);
        match fs::create_dir(&parent) {
            // A link may lead to a directory of others.
            Err(e) if e.kind() == ErrorKind::AlreadyExists && is_directory(&parent) => {}
            created => created.map_err(io_error(&parent))?,
        }
        let mut number = 1_u32;
        let dir = loop {
            let dir = parent.join(number.to_string());
            match fs::create_dir(&dir) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                created => break created.map(|()| dir.clone()).map_err(io_error(&dir))?,
            }
        };
        for dir in [&parent, self.path()] {
            sync_dir(dir).map_err(io_error(dir))?;
        }
        Ok(dir)
    }
}
