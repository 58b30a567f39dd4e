//! Reads the results of a page: result files, directories of them, and results folders of experiments.

use super::records::ArmRecords;
use crate::analysis::NoiseFloor;
use crate::comparison::Comparison;
use crate::experiment::{self, ExperimentKind, RecordedExperiment};
use crate::import::folder::is_visible;
use crate::import::{self, Observation};
use crate::os::reading;
use crate::report::json;
use crate::result::Document;
use crate::util::batch_files::BATCH_RESULT;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

/// A result that becomes a section of the page.
#[derive(Debug)]
pub enum ResultSource {
    /// The runs of a result file.
    Runs {
        /// The path.
        name: String,
        document: Box<Document>,
    },
    /// The experiment of a results folder.
    Experiment {
        /// The path.
        name: String,
        recorded: Box<RecordedExperiment>,
        /// The noise floor of its workload, if it has been measured.
        floor: Option<NoiseFloor>,
    },
    Comparison {
        comparison: Box<Comparison>,
        /// The runs of both sides, if they can be read.
        arms: Option<Box<[ArmRecords; 2]>>,
    },
}

/// Reads the results of the runs of two arms. Returns `None` if one of them can't be read, or is not of this program.
pub fn arms<'a>(runs: [impl IntoIterator<Item = &'a Observation>; 2]) -> Option<Box<[ArmRecords; 2]>> {
    let [a, b] = runs.map(ArmRecords::read);
    Some(Box::new([a?, b?]))
}

/// Reads the runs of the whole blocks of a comparison. Only a page needs them.
pub(super) fn arms_of(recorded: &RecordedExperiment) -> Option<Box<[ArmRecords; 2]>> {
    if recorded.experiment.kind() != ExperimentKind::Ab {
        return None;
    }
    let runs = recorded.whole_blocks();
    let of = |arm: usize| runs.iter().filter(|run| run.arm == arm).map(|run| &run.observation).collect::<Vec<_>>();
    arms([of(0), of(1)])
}

/// The reason why a path can't become a section.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The file or directory can't be read.
    #[error("{} can't be read: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The file can't be read as text.
    #[error(transparent)]
    Import(#[from] import::ImportError),
    /// The results folder can't be read.
    #[error(transparent)]
    Folder(#[from] experiment::FolderError),
    /// The file has another content.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// How deep directories of results are searched for below a directory that has no result itself.
const MAX_DEPTH: usize = 4;

/// Reads the sections of a path: a result file, the results folder of an experiment, a directory of result files, the
/// folder of a batch, or a directory of such folders.
pub fn read(path: &Path) -> Result<Vec<ResultSource>, PageError> {
    let found = read_below(path, MAX_DEPTH)?;
    if found.is_empty() {
        return Err(PageError::Content { path: path.to_owned(), why: "it has no JSON file".to_owned() });
    }
    Ok(found)
}

/// Reads the sections of a path; none if it is a directory without results.
fn read_below(path: &Path, depth: usize) -> Result<Vec<ResultSource>, PageError> {
    if !path.is_dir() {
        return Ok(vec![read_text(path, &import::text(path)?)?]);
    }
    if experiment::is_folder(path) {
        let recorded = Box::new(RecordedExperiment::read(path)?);
        return Ok(vec![ResultSource::Experiment { name: path.display().to_string(), recorded, floor: None }]);
    }
    let io = |error| PageError::Io { path: path.to_owned(), error };
    let found: Vec<PathBuf> = reading::entries(path).map_err(io)?.iter().map(DirEntry::path).collect();
    let mut files: Vec<PathBuf> =
        found.iter().filter(|file| file.extension().is_some_and(|e| e == "json")).cloned().collect();
    // The directory of a batch has a directory for each workload.
    if files.is_empty() {
        files = found.iter().map(|dir| dir.join(BATCH_RESULT)).filter(|file| file.is_file()).collect();
    }
    if !files.is_empty() {
        files.sort();
        return files.iter().map(|file| read_file(file)).collect();
    }
    // That of a batch is below the profile's `stats`, which may be several directories deep. Repeated tests have a directory
    // each.
    let is_searched = |path: &PathBuf| path.is_dir() && !path.is_symlink() && is_visible(path);
    let mut dirs: Vec<PathBuf> = found.into_iter().filter(is_searched).collect();
    dirs.sort();
    // An only directory is part of a path.
    let depth = if dirs.len() > 1 { depth.checked_sub(1) } else { Some(depth) };
    let Some(depth) = depth else { return Ok(Vec::new()) };
    let mut sources = Vec::new();
    for dir in &dirs {
        match read_below(dir, depth) {
            Ok(found) => sources.extend(found),
            // Such as `lost+found`.
            Err(PageError::Io { error, .. }) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sources)
}

/// Reads a result in a directory, which the user has not named.
fn read_file(path: &Path) -> Result<ResultSource, PageError> {
    read_text(path, &import::recorded_text(path)?)
}

fn read_text(path: &Path, text: &str) -> Result<ResultSource, PageError> {
    let content = |why: json::ReadError| PageError::Content { path: path.to_owned(), why: why.to_string() };
    let document = Box::new(json::read(text).map_err(content)?);
    Ok(ResultSource::Runs { name: path.display().to_string(), document })
}

/// True if a file's first bytes match a page that this program wrote.
pub fn is_page(head: &[u8]) -> bool {
    const BEGINS: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"wmlrun\">";
    head.starts_with(BEGINS.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{ResultSource, read};
    use crate::report::{json, to_string};
    use crate::result::fixture::fixture;
    use std::fs;

    #[test]
    fn the_workloads_of_a_batch_are_found_below_directories_that_have_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let batch = dir.path().join("home/stats/host-ext4");
        for workload in ["mail", "web"] {
            fs::create_dir_all(batch.join(workload)).unwrap();
            fs::write(batch.join(workload).join("result.json"), to_string(&json::Json, &fixture())).unwrap();
        }
        fs::write(batch.join("index.html"), "").unwrap();
        let names = |from: &std::path::Path| -> Vec<String> {
            let found = read(from).unwrap();
            let name = |source: &ResultSource| match source {
                ResultSource::Runs { name, .. } => name.clone(),
                ResultSource::Experiment { .. } | ResultSource::Comparison { .. } => String::new(),
            };
            found.iter().map(name).collect()
        };
        assert_eq!(names(dir.path()), names(&batch));
        assert!(names(&batch)[0].ends_with("mail/result.json") && names(&batch).len() == 2);
        // Several batches, and tests with a directory each.
        let second = dir.path().join("home/stats/host-xfs/mail");
        fs::create_dir_all(&second).unwrap();
        fs::write(second.join("result.json"), to_string(&json::Json, &fixture())).unwrap();
        fs::create_dir_all(dir.path().join("home/empty")).unwrap();
        let ends: Vec<String> = names(&dir.path().join("home"));
        assert!(ends.len() == 3 && ends[2].ends_with("host-xfs/mail/result.json"), "{ends:?}");
        // An only directory counts for nothing, however many there are.
        let deep = dir.path().join("a/b/c/d/e/f/g");
        fs::create_dir_all(deep.join("mail")).unwrap();
        fs::write(deep.join("mail/result.json"), to_string(&json::Json, &fixture())).unwrap();
        assert_eq!(names(&dir.path().join("a")).len(), 1);
        // A link to itself is not followed.
        let circle = dir.path().join("circle");
        fs::create_dir(&circle).unwrap();
        std::os::unix::fs::symlink(&circle, circle.join("again")).unwrap();
        assert!(read(&circle).is_err());
    }
}
