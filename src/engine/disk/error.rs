//! Errors of preparing and removing file sets, as data, with their messages.
//!
//! All of them are failures of the environment (exit status 3), not mistakes that a check of the script could find.
//! Deliberately absent: how an error is displayed.

use crate::fileset::aging::AgingError;
use crate::fileset::shape::ShapeError;
use std::fmt;
use std::path::{Path, PathBuf};
use wml_os::{self as os, Errno};
use wml_text::size;

pub use super::foreign::{Foreign, Special};
pub use super::not_shared::NotShared;
pub use super::shortage::{SharedShortage, Shortage};

/// An error, with the file set and the path.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The root is not empty and has no marker of wmlrun.
    Unmarked {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
        /// Whether the files could be adopted, as far as this is known; the error is the reason why not.
        fits: Result<(), String>,
    },
    /// A marked root contains something that is not part of the set.
    Foreign {
        /// The file set.
        set: String,
        /// The path of the foreign file.
        path: PathBuf,
        /// Why it is not part of the set.
        what: Foreign,
    },
    /// The root, or another path component that must be a directory or file, is a symbolic link.
    Link {
        /// The file set.
        set: String,
        /// The link.
        path: PathBuf,
        /// Whether another user created a link in a shared directory; then it is anywhere in the path.
        by_other: bool,
    },
    /// The root, or a directory on the path to it, is not a directory.
    NotADirectory {
        /// The file set.
        set: String,
        /// The path that is not a directory.
        path: PathBuf,
    },
    /// Another wmlrun process uses the root.
    InUse {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
    },
    /// Two sets of one script share a root, or the root of one is inside the root of the other.
    Overlap {
        /// One file set.
        set: String,
        other: String,
        /// The inner root.
        path: PathBuf,
    },
    /// `reuse` of a tree that was created with another layout.
    OtherLayout {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
        /// The layout of the tree.
        was: String,
        /// The requested layout.
        wanted: String,
    },
    /// The marker file is not valid.
    Marker {
        /// The file set.
        set: String,
        /// The marker.
        path: PathBuf,
        why: String,
    },
    /// The marker is a copy of the marker of another directory.
    Copied {
        /// The file set.
        set: String,
        /// The marker.
        path: PathBuf,
        /// The directory that it was written for.
        from: String,
    },
    /// The tree can't be adopted.
    Adopt {
        /// The file set.
        set: String,
        /// The directory or file that no file set of this definition has.
        path: PathBuf,
        /// Why: a predicate of `path`.
        why: String,
    },
    /// The tree can't be shared by several ranks.
    Shared {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
        why: NotShared,
    },
    /// Not enough free space. Detected before anything is created.
    Space {
        /// The file sets that need it.
        sets: Vec<String>,
        /// A directory on the file system.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// Bytes that must stay free.
        floor: u64,
    },
    /// Not enough free inodes. Detected before anything is created.
    Inodes {
        /// The file sets that need them.
        sets: Vec<String>,
        /// A directory on the file system.
        path: PathBuf,
        /// Inodes needed.
        needed: u64,
        /// Inodes free.
        free: u64,
    },
    /// The trees of several ranks do not fit together. Detected before anything is created.
    Together(SharedShortage),
    /// Not enough memory.
    Memory {
        /// The file sets that need it.
        sets: Vec<String>,
        /// What needs the memory, such as `the tables`.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes available without swapping.
        free: u64,
    },
    /// The name of the set can't be a directory name.
    Name {
        /// The file set's name.
        set: String,
    },
    /// The tree of the set exceeds a limit.
    Shape {
        /// The file set.
        set: String,
        why: ShapeError,
    },
    /// A directory can't be aged as requested, or a run can't use it because it was aged.
    Aging {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
        why: AgingError,
    },
    /// A system call failed.
    Call {
        /// The file set; empty for a call that concerns no particular set.
        set: String,
        /// The path that was passed to the call.
        path: PathBuf,
        /// The operation as a verb: `create`, `write`, …
        call: &'static str,
        /// The error number.
        errno: Errno,
        /// Free bytes and inodes of that file system after [`Errno::NOSPC`] or [`Errno::DQUOT`], if they can be
        /// determined.
        free: Option<(u64, u64)>,
    },
    /// Stopped by the user.
    Stopped {
        /// The file set that was being created or removed.
        set: String,
    },
}

/// A row of the table of error codes: number, title, text.
pub(crate) type CodeRow = (&'static str, &'static str, &'static str);

/// The explanations that `wmlrun explain` prints for the codes of this module.
#[rustfmt::skip]
pub const CODES: &[CodeRow] = &[
    ("E0501", "a directory with files that wmlrun did not create",
        "The root of a file set is the directory `path/name`. This directory contains files but no marker of wmlrun (`.wmlrun`), so the files may belong to another program or user, and nothing was changed. Use another directory (`--dir`), or adopt the tree with `--adopt` if it is a file set that Filebench or another tool left behind."),
    ("E0502", "a foreign file in a file set",
        "A file set consists of directories and regular files that have the numbers of its layout, have one name each, and are all on one file system. Something else was found: another name or number, a link, a pipe, a device, a mount point or subvolume, or a file with a hard link elsewhere. A file set is scanned for such files before it is removed, and if there are any, nothing is removed. If an operation of a run encounters one, nothing is read or written and the run ends. Move the file away and run again."),
    ("E0503", "a symbolic link where a file set should be",
        "wmlrun does not follow symbolic links at or below the root of a file set, since they may lead anywhere. Give the path of the real directory. (`path` itself may contain links, since the user named it.)"),
    ("E0504", "not a directory",
        "The root of a file set must be a directory. The path in the message is something else. Move it away, or use another directory."),
    ("E0505", "a file set that is in use",
        "Another wmlrun process is using this directory: the marker file is locked. Wait until it ends, or use another directory."),
    ("E0506", "`reuse` of a tree with another layout",
        "The directories of a file set are determined by entries, leafdirs, dirwidth, dirgamma, dirdepthrv and the layout seed. One of these values differs from the value with which the tree was created, so its files have other paths. Remove `reuse` (the tree is then recreated), or restore the old values. File sizes may differ: files are truncated or extended in place."),
    ("E0507", "a marker that is not valid",
        "The file `.wmlrun` in the root of a file set records how the tree was created. This one is empty, damaged, hard-linked, or of another version. It therefore does not prove that wmlrun created the tree, and nothing was changed. Remove the tree manually if it is no longer needed."),
    ("E0508", "a tree that can't be adopted",
        "`--adopt` accepts a tree that has the structure of a file set: 8-digit serial numbers from 1 without gaps, files in the lowest directories only, and as many files as the set has entries. A set with `prealloc` below 100 and without leaf directories may lack files, but no directories; the files that are there are then those that exist at the start. Each file must have the size that the script defines, unless the set has `reuse`, which truncates or extends the files."),
    ("E0509", "not enough space",
        "The file set, or what a replay writes, does not fit, or would leave less free space than wmlrun reserves (the larger of 1 % and 256 MiB; 5 % of a small file system). Nothing was created. Make the set smaller, or use another file system (`--dir`)."),
    ("E0510", "not enough inodes",
        "The file system has fewer free inodes than the set has files and directories. Nothing was created."),
    ("E0511", "not enough memory",
        "The tables of the set, or on tmpfs its files, need more memory than is available without swapping."),
    ("E0512", "a name that can't be a directory name",
        "The name of a file set becomes the name of a directory in its path, so it can't be empty, `.`, `..` or `.wmlrun`, nor contain `..`."),
    ("E0513", "a tree that exceeds a limit",
        "The message names the limit: files are numbered in 32 bits, directories are kept in memory, and a path can't be longer than 4096 bytes."),
    ("E0514", "a system call failed",
        "The message contains the call, the path and the error of the system. Files created so far are kept; the next run removes or completes them."),
    ("E0515", "stopped", "Creating or removing a file set was stopped. The next run removes or completes the tree."),
    ("E0516", "overlapping file sets",
        "Each file set needs a separate directory that is not inside the directory of another file set."),
    ("E0517", "a copied marker",
        "The file `.wmlrun` records its own inode number and birth time, so that it is valid in one directory only. This one is in another directory: the tree was copied or restored together with it. It therefore does not prove that wmlrun created the files, and nothing was changed. Remove `.wmlrun` and adopt the tree with `--adopt`, or remove the copy manually."),
    ("E0518", "a directory that can't be aged",
        "`wmlrun age DIR` creates its files in `DIR/aged`, and continues there after an interruption if fullness, rounds and seed are the same. The directory was aged with others, or it contains the file set of a script; or a script has a file set with the name and path of an aged directory, which a run does not change."),
    ("E0519", "a tree that ranks can't share",
        "The ranks of a run share the tree of a file set: one of them prepares it, and the others open it. The message names the rank and host on which the directory does not exist, or is another one. With `share=all` and `share=neighbour` the directory must be on a file system that all hosts have mounted. Ranks that share a directory need the same definition of the file set, and an adopted tree can't be shared."),
];

impl Error {
    /// Creates an error for a failed system call. `call` is the operation as a verb.
    pub(super) fn call(set: &str, call: &'static str, path: &Path, errno: Errno) -> Self {
        let free = matches!(errno, Errno::NOSPC | Errno::DQUOT)
            .then(|| os::fd::statvfs_path(path).or_else(|_| os::fd::statvfs_path(path.parent().unwrap_or(path))).ok())
            .flatten()
            .map(|space| (space.free, space.files_free));
        Self::Call { set: set.to_owned(), path: path.to_owned(), call, errno, free }
    }

    /// Creates an error for a failed system call on a directory of a tree: if this is the cause, that it is not part of
    /// the file set.
    pub(super) fn at_directory(set: &str, call: &'static str, path: PathBuf, errno: Errno) -> Self {
        match Foreign::of_directory(&path, errno) {
            Some(what) => Self::Foreign { set: set.to_owned(), path, what },
            None => Self::call(set, call, &path, errno),
        }
    }

    /// Returns the error code, an argument of `wmlrun explain`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unmarked { .. } => "E0501",
            Self::Foreign { .. } => "E0502",
            Self::Link { .. } => "E0503",
            Self::NotADirectory { .. } => "E0504",
            Self::InUse { .. } => "E0505",
            Self::OtherLayout { .. } => "E0506",
            Self::Marker { .. } => "E0507",
            Self::Copied { .. } => "E0517",
            Self::Adopt { .. } => "E0508",
            Self::Space { .. } => "E0509",
            Self::Inodes { .. } => "E0510",
            Self::Together(what) => what.code(),
            Self::Memory { .. } => "E0511",
            Self::Name { .. } => "E0512",
            Self::Shape { .. } => "E0513",
            Self::Aging { .. } => "E0518",
            Self::Shared { .. } => "E0519",
            Self::Call { .. } => "E0514",
            Self::Stopped { .. } => "E0515",
            Self::Overlap { .. } => "E0516",
        }
    }

    /// Returns advice on how to resolve the error. `None` when there is none.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Unmarked { path, fits: Ok(()), .. } => format!(
                "use another directory with `--dir`, or adopt `{}` with `--adopt` if it is a file set that another tool left behind",
                path.display()
            ),
            Self::Unmarked { fits: Err(why), .. } => {
                format!("use another directory with `--dir`; `--adopt` can't use the files as this set: {why}")
            }
            Self::Foreign { path, what: Foreign::OtherName, .. } => format!(
                "nothing was changed; remove the other name, or `{}`, and run again (`find DIR -samefile` finds it)",
                path.display()
            ),
            Self::Foreign { path, what: Foreign::Mount, .. } => {
                format!("nothing was removed; unmount `{}` and run again", path.display())
            }
            Self::Foreign { path, .. } => format!("nothing was removed; move `{}` away and run again", path.display()),
            Self::Link { .. } => "give the path of the real directory, or use another one with `--dir`".into(),
            Self::NotADirectory { .. } => "move it away, or use another directory with `--dir`".into(),
            Self::InUse { .. } => "wait until the other wmlrun ends, or use another directory with `--dir`".into(),
            Self::OtherLayout { path, .. } => format!(
                "`wmlrun clean {}` removes the tree; or remove `reuse` or `--as-is`, or restore the old values (sizes may differ, the layout may not)",
                path.parent().unwrap_or(path).display()
            ),
            Self::Marker { .. } => "remove the tree manually if it is no longer needed, or use another directory with `--dir`".into(),
            Self::Copied { path, .. } => format!(
                "nothing was changed; remove `{}` and adopt the tree with `--adopt`, or remove the copy manually",
                path.display()
            ),
            Self::Adopt { .. } => "nothing was changed; use another directory with `--dir`".into(),
            Self::Space { .. } | Self::Inodes { .. } => "make the file sets smaller, or use another directory with `--dir`".into(),
            Self::Call { errno: Errno::NOSPC | Errno::DQUOT, .. } => {
                "make the file sets smaller; `wmlrun clean DIR` removes the files created so far".into()
            }
            Self::Call { errno: Errno::ROFS, .. } => {
                "mount the file system read-write, or use `--as-is` to measure an existing tree unchanged".into()
            }
            Self::Call { errno: Errno::ACCESS, .. } => {
                "run as a user with permission, or use another directory with `--dir`; `--as-is` measures a tree that can only be read".into()
            }
            Self::Call { call: "remove", errno: Errno::PERM | Errno::BUSY, .. } => {
                "`lsattr` and `findmnt` show what prevents the removal; files before this one have been removed".into()
            }
            Self::Call { call: "lock", errno: Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK, .. } => {
                "mount the file system with file locks (Lustre: `-o flock` or `-o localflock`), or use another directory with `--dir`".into()
            }
            Self::Memory { .. } => "make the file sets smaller".into(),
            Self::Together(_) => "make the file sets smaller, or let the ranks share a tree (`share=`)".into(),
            Self::Aging { why, .. } => return why.help().map(str::to_owned),
            Self::Overlap { .. } => "give each file set a separate name or path".into(),
            Self::Shared { why, .. } => why.help().into(),
            Self::Name { .. } | Self::Shape { .. } | Self::Call { .. } | Self::Stopped { .. } => return None,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmarked { set, path, .. } => {
                write!(f, "file set `{set}`: `{}` is not empty, and wmlrun did not create its contents", path.display())
            }
            Self::Foreign { set, path, what } => {
                write!(f, "file set `{set}`: `{}` is not part of a file set: {what}", path.display())
            }
            Self::Link { set, path, by_other: true } => {
                let why = "has a symbolic link that another user created in a shared directory";
                write!(f, "file set `{set}`: `{}` {why}", path.display())
            }
            Self::Link { set, path, by_other: false } => {
                write!(f, "file set `{set}`: `{}` is a symbolic link", path.display())
            }
            Self::NotADirectory { set, path } => write!(f, "file set `{set}`: `{}` is not a directory", path.display()),
            Self::InUse { set, path } => {
                write!(f, "file set `{set}`: `{}` is in use by another wmlrun process", path.display())
            }
            Self::Overlap { set, other, path } => {
                write!(f, "file sets `{set}` and `{other}` share `{}`", path.display())
            }
            Self::OtherLayout { set, path, was, wanted } => write!(
                f,
                "file set `{set}`: the tree in `{}` has another layout: it was created with {was}, but the script asks for {wanted}",
                path.display()
            ),
            Self::Marker { set, path, why } => {
                write!(f, "file set `{set}`: `{}` is not a valid marker of wmlrun: {why}", path.display())
            }
            Self::Copied { set, path, from } => {
                write!(f, "file set `{set}`: the marker `{}` is a copy of the marker of `{from}`", path.display())
            }
            Self::Adopt { set, path, why } => {
                write!(f, "file set `{set}` can't adopt the tree: `{}` {why}", path.display())
            }
            Self::Space { sets, path, needed, free, floor } => write!(
                f,
                "not enough space in `{}`: {} {}, {} is free{}",
                path.display(),
                needing(sets),
                size::format(*needed),
                size::format(*free),
                if *floor > 0 { format!(", and {} must stay free", size::format(*floor)) } else { String::new() }
            ),
            Self::Inodes { sets, path, needed, free } => {
                let sets = needing(sets);
                write!(f, "not enough inodes in `{}`: {sets} {needed}, {free} are free", path.display())
            }
            Self::Together(what) => together(what, f),
            Self::Memory { sets, what, needed, free } => {
                write!(
                    f,
                    "not enough memory for {what} of {}: {} is needed, {} is available",
                    listed(sets),
                    size::format(*needed),
                    size::format(*free)
                )
            }
            Self::Name { set } => write!(f, "file set name `{set}` can't be used as the name of a directory"),
            Self::Shape { set, why } => match why {
                ShapeError::Entries(n) => {
                    write!(
                        f,
                        "file set `{set}`: {n} entries exceed the maximum of {}",
                        crate::fileset::shape::MAX_ENTRIES
                    )
                }
                ShapeError::Directories => {
                    write!(f, "file set `{set}` would have too many directories to keep in memory")
                }
                ShapeError::Levels => write!(f, "file set `{set}` would be deeper than the maximum path length allows"),
            },
            Self::Aging { set, path, why } => write!(f, "file set `{set}`: `{}` can't be used: {why}", path.display()),
            Self::Shared { set, path, why } => write!(f, "file set `{set}`: `{}` {why}", path.display()),
            Self::Call { set, path, call, errno, free } => {
                if !set.is_empty() {
                    write!(f, "file set `{set}`: ")?;
                }
                write!(
                    f,
                    "can't {call} `{}`: {} ({})",
                    path.display(),
                    os::errno_text(errno.raw_os_error()),
                    os::errno_name(errno.raw_os_error())
                )?;
                match free {
                    Some((bytes, inodes)) => write!(f, "; {} and {inodes} inodes are free there", size::format(*bytes)),
                    None => Ok(()),
                }
            }
            Self::Stopped { set } => write!(f, "stopped while file set `{set}` was being prepared"),
        }
    }
}

impl std::error::Error for Error {}

/// Writes the message on trees that do not fit together.
fn together(what: &SharedShortage, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let SharedShortage { sets, trees, place, shortage } = what;
    let text = |kind: &str, needed: &str, free: &str| {
        format!("not enough {kind} on {place}: {trees} trees of {} need {needed} together, {free}", listed(sets))
    };
    match *shortage {
        Shortage::Bytes { needed, free, floor } => {
            f.write_str(&text("space", &size::format(needed), &format!("{} is free", size::format(free))))?;
            if floor > 0 { write!(f, ", and {} must stay free", size::format(floor)) } else { Ok(()) }
        }
        Shortage::Inodes { needed, free } => {
            f.write_str(&text("inodes", &needed.to_string(), &format!("{free} are free")))
        }
        Shortage::Memory { needed, free } => {
            f.write_str(&text("memory", &size::format(needed), &format!("{} is available", size::format(free))))
        }
    }
}

/// Lists file sets by their names: "file set `a` and file set `b`".
fn listed(sets: &[String]) -> String {
    sets.iter().map(|set| format!("file set `{set}`")).collect::<Vec<_>>().join(" and ")
}

/// Returns the subject and the verb of what file sets need.
fn needing(sets: &[String]) -> String {
    format!("{} {}", listed(sets), if sets.len() == 1 { "needs" } else { "need" })
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn the_free_space_and_what_must_stay_free_are_separate() {
        let error = |sets: &[&str], floor: u64| {
            let sets = sets.iter().map(ToString::to_string).collect();
            let (path, needed, free) = ("/a".into(), 1 << 30, 100 << 20);
            Error::Space { sets, path, needed, free, floor: floor << 20 }.to_string()
        };
        assert_eq!(
            error(&["a"], 256),
            "not enough space in `/a`: file set `a` needs 1.0 GiB, 100.0 MiB is free, and 256.0 MiB must stay free"
        );
        let (sets, what) = (vec!["a".to_owned()], "the tables");
        let almost = Error::Memory { sets, what, needed: (1 << 20) - 1, free: 512 }.to_string();
        assert!(almost.contains(" 1.0 MiB") && almost.contains("512 B is available"), "{almost}");
        assert_eq!(
            error(&["a", "b"], 0),
            "not enough space in `/a`: file set `a` and file set `b` need 1.0 GiB, 100.0 MiB is free"
        );
    }
}
