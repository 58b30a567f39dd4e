//! Why a path gives no observations.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a path gives no observations.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file can't be read.
    #[error("{} can't be read: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The file has none of the known forms.
    #[error("{} is not a result: {why}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file of a results folder is damaged.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A results folder has runs of different arms, and none of them was named.
    #[error("{} has runs of several arms: {}", path.display(), shortened(arms))]
    SeveralArms {
        /// The folder.
        path: PathBuf,
        /// The names of the arms.
        arms: Vec<String>,
    },
    /// A results folder has no arm of this name.
    #[error("{} has no arm `{arm}`", path.display())]
    NoArm {
        /// The folder.
        path: PathBuf,
        /// The name.
        arm: String,
        /// The names of the arms; empty unless there are several.
        arms: Vec<String>,
    },
    /// A run failed or was interrupted.
    #[error("{run} is not complete: {why}")]
    Incomplete {
        /// The source of the run.
        run: String,
        /// The reason.
        why: String,
    },
}

/// Returns the first cell among the arms that has all levels in `part`, which names some of its factors.
fn whole_cell<'a>(part: &str, arms: &'a [String]) -> Option<&'a str> {
    let has_all = |arm: &&str| part.split(',').all(|level| arm.split(',').any(|own| own == level));
    arms.iter().map(String::as_str).find(has_all)
}

impl ImportError {
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Io { .. } | Self::Form { .. } => {
                "give a result of wmlrun (`--json`) or fio, a results folder, output of Filebench, or `FILE:N`"
                    .to_owned()
            }
            Self::Damaged { .. } => "restore the results folder from a copy, or make its runs again".to_owned(),
            Self::SeveralArms { path, arms } => {
                let names = arms.iter().take(2).map(|arm| format!("`{}:{arm}`", path.display()));
                let names = names.collect::<Vec<_>>().join(" or ");
                format!("`wmlrun compare --tests` compares all arms of two folders; or name one, such as {names}")
            }
            Self::NoArm { path, arms, .. } if arms.is_empty() => {
                format!("give `{}`: its runs are of one arm", path.display())
            }
            Self::NoArm { path, arm, arms } => match whole_cell(arm, arms) {
                Some(cell) => format!("a cell has a level of each factor: `{}:{cell}`", path.display()),
                None => format!("its arms are {}", shortened(arms)),
            },
            Self::Incomplete { .. } => "repeat the run, or remove it from the results".to_owned(),
        }
    }
}

/// Joins names, at most twelve of them.
pub(crate) fn shortened(names: &[String]) -> String {
    let first = names.iter().take(12).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 12 { format!("{first}, …") } else { first }
}

/// Makes an error of a file's form from the reason.
pub(super) fn form(path: &Path) -> impl FnOnce(String) -> ImportError {
    let path = path.to_owned();
    move |why| ImportError::Form { path, why }
}

/// Makes an error of a damaged file of a results folder from the reason.
pub(super) fn damaged(path: &Path) -> impl FnOnce(String) -> ImportError {
    let path = path.to_owned();
    move |why| ImportError::Damaged { path, why }
}
