//! Why a file set can't be had: data first, the words in one place.
//!
//! All of these mean that the environment refused (exit 3); none is a mistake in the script that checking it could have
//! found. Deliberately absent: how an error is drawn.

use crate::fileset::shape::ShapeError;
use crate::os::FileType;
use crate::os::fd::{self, FileInfo};
use crate::os::{self, Errno, Fd};
use std::ffi::CStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// What was in the way, and where.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The root holds something and bears no mark of wmlrun.
    Unmarked {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
    },
    /// A marked root holds something that no layout has.
    Foreign {
        /// The file set.
        set: String,
        /// The path of what was found.
        path: PathBuf,
        /// What it is.
        what: Foreign,
    },
    /// The root, or something on the way to it, is a symbolic link.
    Link {
        /// The file set.
        set: String,
        /// The link.
        path: PathBuf,
    },
    /// The root, or something on the way to it, is no directory.
    NotADirectory {
        /// The file set.
        set: String,
        /// What is none.
        path: PathBuf,
    },
    /// Another wmlrun uses the root.
    InUse {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
    },
    /// Two sets of one script share a root, or one lies within another's.
    Overlap {
        /// One file set.
        set: String,
        /// The other.
        other: String,
        /// The inner root.
        path: PathBuf,
    },
    /// `reuse` of a tree that was made with another layout.
    OtherLayout {
        /// The file set.
        set: String,
        /// Its root.
        path: PathBuf,
        /// What the tree was made with.
        was: String,
        /// What is asked for.
        wanted: String,
    },
    /// The marker file can't be understood.
    Marker {
        /// The file set.
        set: String,
        /// The marker.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The marker is that of another directory, copied.
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
        /// Where it differs from what a file set looks like.
        path: PathBuf,
        /// How.
        why: String,
    },
    /// Not enough room, seen before anything was made.
    Space {
        /// The file sets that want it.
        sets: String,
        /// A directory on the file system.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes that must stay free.
        floor: u64,
    },
    /// Not enough inodes, seen before anything was made.
    Inodes {
        /// The file sets that want them.
        sets: String,
        /// A directory on the file system.
        path: PathBuf,
        /// Inodes that are needed.
        needed: u64,
        /// Inodes that are free.
        free: u64,
    },
    /// Not enough memory.
    Memory {
        /// The file sets that want it.
        sets: String,
        /// What for.
        what: &'static str,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that can be had.
        free: u64,
    },
    /// A name that can't be a directory of a set.
    Name {
        /// The file set's name.
        set: String,
    },
    /// A tree that can't be.
    Shape {
        /// The file set.
        set: String,
        /// Why.
        why: ShapeError,
    },
    /// The system refused a call.
    Call {
        /// The file set; empty where the call was for no set in particular.
        set: String,
        /// The path that it was about.
        path: PathBuf,
        /// What was tried: `create`, `write`, …
        call: &'static str,
        /// The error number.
        errno: Errno,
        /// Bytes and inodes left on that file system, where it could tell.
        left: Option<(u64, u64)>,
    },
    /// Stopped on request.
    Stopped {
        /// The file set that was being made or removed.
        set: String,
    },
}

/// What stands where a file set has nothing of the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Foreign {
    /// A name that is no 8-digit number.
    Name,
    /// A number that this tree has not, or not there.
    Number,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket.
    Special(Special),
    /// Another file system, a file of another, or a subvolume is there.
    Mount,
    /// Files and directories side by side, or a file in the root.
    Mixed,
    /// A directory that ought to be empty.
    Full,
    /// A file that has another name elsewhere, and would be changed under it.
    OtherName,
}

/// Kinds of files that no file set has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// The file system does not say.
    Unknown,
}

impl Foreign {
    /// Why a file is not one of a file set, if it is not: by its kind, by what is mounted on it, and by its names, of which it
    /// may have more than one only where the set has `links`.
    pub fn of_file(info: &FileInfo, links: bool) -> Option<Self> {
        match Self::of_kind(info.kind) {
            None if info.mounted => Some(Self::Mount),
            None if info.links > 1 && !links => Some(Self::OtherName),
            what => what,
        }
    }

    /// Why a name that could not be opened is not one of a file set's, if that is why.
    pub fn at(dir: Fd, name: &CStr, errno: Errno, links: bool) -> Option<Self> {
        match errno {
            Errno::LOOP => Some(Self::Link),
            Errno::XDEV => Some(Self::Mount),
            _ => fd::file_info_at(dir, name).ok().and_then(|info| Self::of_file(&info, links)),
        }
    }

    /// The same of a name: a symbolic link of the `symlink` flowop's is the set's own.
    pub fn of_name(dir: Fd, name: &CStr, links: bool) -> Result<Option<Self>, Errno> {
        let found = Self::of_file(&fd::file_info_at(dir, name)?, links);
        Ok(found.filter(|what| *what != Self::Link || !super::scan::is_own_link(dir, name)))
    }

    /// What stands in the place of a directory of a file set, by the error of a call on it.
    pub fn of_directory(path: &Path, errno: Errno) -> Option<Self> {
        match errno {
            Errno::LOOP => Some(Self::Link),
            // The kernel says the same of a link and of a file, where only a directory is wanted.
            Errno::NOTDIR if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) => Some(Self::Link),
            Errno::XDEV | Errno::BUSY => Some(Self::Mount),
            Errno::NOTDIR => Some(Self::Mixed),
            Errno::NOTEMPTY => Some(Self::Full),
            _ => None,
        }
    }

    /// Why something of this kind is no file of a file set, if it is not.
    pub(super) fn of_kind(kind: FileType) -> Option<Self> {
        Some(match kind {
            FileType::RegularFile => return None,
            FileType::Symlink => Self::Link,
            FileType::Directory => Self::Mixed,
            FileType::Fifo => Self::Special(Special::Pipe),
            FileType::Socket => Self::Special(Special::Socket),
            FileType::BlockDevice => Self::Special(Special::BlockDevice),
            FileType::CharacterDevice => Self::Special(Special::CharacterDevice),
            FileType::Unknown => Self::Special(Special::Unknown),
        })
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "its name is not one that a file set has",
            Self::Link => "it is a symbolic link",
            Self::Number => "its number is not one that this file set has there",
            Self::Special(Special::Pipe) => "it is a named pipe",
            Self::Special(Special::Socket) => "it is a socket",
            Self::Special(Special::BlockDevice) => "it is a block device",
            Self::Special(Special::CharacterDevice) => "it is a character device",
            Self::Special(Special::Unknown) => "it is neither a file nor a directory",
            Self::Mount => "another file system or a subvolume is mounted there",
            Self::Mixed => "files and directories stand side by side there, which no file set has",
            Self::Full => "it holds something that this file set has not there",
            Self::OtherName => "it has another name elsewhere, under which it would be changed too",
        })
    }
}

/// One row of the table of codes: number, title, text.
pub type CodeRow = (&'static str, &'static str, &'static str);

/// What `wmlrun explain` says about the codes of this module.
pub const CODES: &[CodeRow] = &[
    (
        "E0501",
        "a directory that holds something wmlrun did not make",
        "A file set lives in the directory `path/name`. If that holds files without wmlrun's marker (`.wmlrun`), they are someone's, and nothing is touched. Give another directory (`--dir`), or take the tree over with `--adopt` if it is a file set that Filebench or another tool left.",
    ),
    (
        "E0502",
        "something foreign inside a file set",
        "In a file set are directories and regular files with the numbers that its layout has, each with one name, all on one file system. Something else was found: another name or number, a link, a pipe, a device, a mount or subvolume, a file that has a name elsewhere too. Before a file set is removed it is looked through for that, and then nothing is removed; where an operation of a run meets it, nothing is read or written and the run ends. Move it away and run again.",
    ),
    (
        "E0503",
        "a symbolic link where a file set should be",
        "wmlrun never works through a symbolic link at or below the root of a file set, since it may lead anywhere. Name the real directory. (`path` itself may be a link: that is the user's word.)",
    ),
    (
        "E0504",
        "no directory where one is needed",
        "The root of a file set is a directory. What the message names is something else. Move it away or give another directory.",
    ),
    (
        "E0505",
        "a file set in use",
        "Another wmlrun works in this directory: the marker file is locked. Wait for it, or use another directory.",
    ),
    (
        "E0506",
        "`reuse` of a tree with another layout",
        "Which directories a file set has follows from entries, leafdirs, dirwidth, dirgamma, dirdepthrv and the layout seed. One of them differs from what the tree was made with, so that its files are not where they should be. Leave out `reuse` (the tree is then made anew), or restore the old values. File sizes may change: files are truncated or extended in place.",
    ),
    (
        "E0507",
        "a marker that can't be understood",
        "The file `.wmlrun` in a file set's root says how the tree was made. This one is empty, damaged, linked from elsewhere, or of another version, so it does not say that the tree is wmlrun's, and nothing was touched. Remove the tree by hand if it is of no use.",
    ),
    (
        "E0508",
        "a tree that can't be adopted",
        "`--adopt` takes over a tree that looks like a file set: 8-digit serials from 1 without gaps, files only in the lowest directories, and as many files as the set has entries. Each must be as large as the script wants it, unless the script says `reuse`, which cuts or extends it.",
    ),
    (
        "E0509",
        "not enough room",
        "The file set would not fit, or would leave less free than wmlrun keeps free (the larger of 1 % and 256 MiB; 5 % of a small file system). Nothing was made. Make the set smaller or use another file system.",
    ),
    (
        "E0510",
        "not enough inodes",
        "The file system has fewer inodes left than the set has files and directories. Nothing was made.",
    ),
    (
        "E0511",
        "not enough memory",
        "The set's tables, or on tmpfs its files, need more memory than can be had without swapping.",
    ),
    (
        "E0512",
        "a name that can't be a directory",
        "The name of a file set becomes a directory below its path, so it can't be empty, `.`, `..`, `.wmlrun`, or absolute.",
    ),
    (
        "E0513",
        "a tree that can't be",
        "The message says which figure is out of range: files are numbered in 32 bits, directories are held in memory, and a path can't be longer than 4096 bytes.",
    ),
    (
        "E0514",
        "the system refused",
        "The message gives the call, the path and the system's reason. What was made so far stays; the next run removes or completes it.",
    ),
    ("E0515", "stopped", "Making or removing a file set was stopped. The next run removes or completes what is there."),
    (
        "E0517",
        "a marker that was copied",
        "The file `.wmlrun` names the very directory that it was made for, by its inode and its time of birth. This one stands somewhere else: the tree was copied or restored with it, so that nothing says any more whose the files are. Nothing was touched. Remove `.wmlrun` and take the tree over with `--adopt`, or remove the copy by hand.",
    ),
    ("E0516", "two file sets in one place", "Each file set needs a directory of its own, not within that of another."),
];

impl Error {
    /// A refused call.
    pub(super) fn call(set: &str, call: &'static str, path: &Path, errno: Errno) -> Self {
        let left = matches!(errno, Errno::NOSPC | Errno::DQUOT)
            .then(|| os::fd::statvfs_path(path).or_else(|_| os::fd::statvfs_path(path.parent().unwrap_or(path))).ok())
            .flatten()
            .map(|space| (space.free, space.files_free));
        Self::Call { set: set.to_owned(), path: path.to_owned(), call, errno, left }
    }

    /// The code that `wmlrun explain` takes.
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
            Self::Memory { .. } => "E0511",
            Self::Name { .. } => "E0512",
            Self::Shape { .. } => "E0513",
            Self::Call { .. } => "E0514",
            Self::Stopped { .. } => "E0515",
            Self::Overlap { .. } => "E0516",
        }
    }

    /// What to do about it, where there is something to say.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Unmarked { path, .. } => format!(
                "give another directory with `--dir`, or take over `{}` with `--adopt` if it is a file set that another tool left",
                path.display()
            ),
            Self::Foreign { path, what: Foreign::OtherName, .. } => format!(
                "nothing was changed; remove the other name, or `{}`, and run again (`find DIR -samefile` finds it)",
                path.display()
            ),
            Self::Foreign { path, what: Foreign::Mount, .. } => {
                format!("nothing was removed; unmount `{}` and run again", path.display())
            }
            Self::Foreign { path, .. } => format!("nothing was removed; move `{}` away and run again", path.display()),
            Self::Link { .. } => "name the real directory, or give another one with `--dir`".into(),
            Self::NotADirectory { .. } => "move it away, or give another directory with `--dir`".into(),
            Self::InUse { .. } => "wait for the other wmlrun, or give another directory with `--dir`".into(),
            Self::OtherLayout { .. } => {
                "leave out `reuse` or `--as-is` to make the tree anew, or restore the old values (sizes may differ, the layout may not)".into()
            }
            Self::Marker { .. } => "remove the tree by hand if it is of no use, or give another directory with `--dir`".into(),
            Self::Copied { path, .. } => format!(
                "nothing was changed; remove `{}` and take the tree over with `--adopt`, or remove the copy by hand",
                path.display()
            ),
            Self::Adopt { .. } => "nothing was changed; give another directory with `--dir`".into(),
            Self::Space { .. } | Self::Inodes { .. } => "make the file sets smaller, or give another directory with `--dir`".into(),
            Self::Call { errno: Errno::NOSPC | Errno::DQUOT, .. } => {
                "make the file sets smaller; `wmlrun clean DIR` removes what was made".into()
            }
            Self::Call { errno: Errno::ROFS, .. } => {
                "mount the file system read-write; a tree that is there already is read as it is with `--as-is`".into()
            }
            Self::Call { call: "remove", errno: Errno::PERM | Errno::BUSY, .. } => {
                "`lsattr` and `findmnt` say what holds it; what was removed before it is gone".into()
            }
            Self::Memory { .. } => "make the file sets smaller".into(),
            Self::Overlap { .. } => "give each file set a name or path of its own".into(),
            Self::Name { .. } | Self::Shape { .. } | Self::Call { .. } | Self::Stopped { .. } => return None,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmarked { set, path } => {
                write!(f, "file set `{set}`: `{}` is not empty, and wmlrun did not make what is in it", path.display())
            }
            Self::Foreign { set, path, what } => {
                write!(f, "file set `{set}`: `{}` is not part of a file set: {what}", path.display())
            }
            Self::Link { set, path } => write!(f, "file set `{set}`: `{}` is a symbolic link", path.display()),
            Self::NotADirectory { set, path } => write!(f, "file set `{set}`: `{}` is not a directory", path.display()),
            Self::InUse { set, path } => {
                write!(f, "file set `{set}`: `{}` is in use by another wmlrun", path.display())
            }
            Self::Overlap { set, other, path } => {
                write!(f, "file sets `{set}` and `{other}` share `{}`", path.display())
            }
            Self::OtherLayout { set, path, was, wanted } => write!(
                f,
                "file set `{set}`: the tree in `{}` has another layout: it was made with {was}, and {wanted} is asked for",
                path.display()
            ),
            Self::Marker { set, path, why } => {
                write!(f, "file set `{set}`: `{}` is no marker of wmlrun: {why}", path.display())
            }
            Self::Copied { set, path, from } => {
                write!(f, "file set `{set}`: the marker `{}` is a copy of that of `{from}`", path.display())
            }
            Self::Adopt { set, path, why } => {
                write!(f, "file set `{set}` can't adopt the tree: `{}` {why}", path.display())
            }
            Self::Space { sets, path, needed, free, floor } => write!(
                f,
                "not enough room in `{}`: {sets} needs {}, {} is free, of which {} must stay free",
                path.display(),
                human(*needed),
                human(*free),
                human(*floor)
            ),
            Self::Inodes { sets, path, needed, free } => {
                write!(f, "not enough inodes in `{}`: {sets} needs {needed}, {free} are free", path.display())
            }
            Self::Memory { sets, what, needed, free } => {
                write!(
                    f,
                    "not enough memory for {what} of {sets}: {} is needed, {} can be had",
                    human(*needed),
                    human(*free)
                )
            }
            Self::Name { set } => write!(f, "file set name `{set}` can't be the name of a directory"),
            Self::Shape { set, why } => match why {
                ShapeError::Entries(n) => {
                    write!(f, "file set `{set}`: {n} entries are more than {}", crate::fileset::shape::MAX_ENTRIES)
                }
                ShapeError::Directories => {
                    write!(f, "file set `{set}` would have too many directories to hold in memory")
                }
                ShapeError::Levels => write!(f, "file set `{set}` would be deeper than a path can be long"),
            },
            Self::Call { set, path, call, errno, left } => {
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
                match left {
                    Some((bytes, inodes)) => write!(f, "; {} and {inodes} inodes are free there", human(*bytes)),
                    None => Ok(()),
                }
            }
            Self::Stopped { set } => write!(f, "stopped while file set `{set}` was being prepared"),
        }
    }
}

impl std::error::Error for Error {}

/// Bytes in the largest fitting unit: `1.5 GiB`.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}
