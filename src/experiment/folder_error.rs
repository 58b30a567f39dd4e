//! The errors of a results folder.

use crate::import::folder::EXPERIMENT;
use std::io;
use std::path::{Path, PathBuf};

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
    /// The folder of an experiment to continue has no description of one, or does not exist.
    #[error("{} is not a results folder: it has no `{}`", path.display(), EXPERIMENT)]
    NotResults { path: PathBuf },
    /// The folder, or a directory in it, is no longer at its path.
    #[error("{}: the folder, or a directory in it, was moved, removed or replaced meanwhile", path.display())]
    Moved { path: PathBuf },
    /// The experiment can't get this number of runs.
    #[error("{}: {why}", path.display())]
    Extension {
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The conditions have changed since the experiment was started.
    #[error("{}: changed since the experiment was started: {}", path.display(), changed.join(", "))]
    Changed {
        path: PathBuf,
        /// The names of the changed conditions.
        changed: Vec<String>,
    },
}

impl FolderError {
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::Io { .. } => "give another folder with `--results`",
            Self::NotResults { .. } => "an experiment names its folder when it begins: `writing results to DIR`",
            Self::Content { .. } => "start a new experiment in another folder, which `--results` names",
            Self::Moved { .. } => {
                "nothing was written to another folder; if this one is elsewhere, `--resume` continues there"
            }
            Self::Extension { .. } => "start a new experiment in another folder",
            Self::Changed { .. } => "to continue the experiment nevertheless, give `--anyway`",
        }
    }
}

/// Makes an error of a path from the error of a system call.
pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::Io { path, error }
}
