//! Why a file or directory is not part of a file set, with the messages. Each message is a sentence on a path, which
//! the error or the operation names.

use crate::fileset::Name;
use std::ffi::CStr;
use std::fmt;
use std::path::Path;
use wml_os::fd::{self, FileInfo};
use wml_os::{Errno, Fd, FileType};

/// Why a file or directory is not part of a file set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Foreign {
    /// Its name is not an 8-digit number.
    Name,
    /// Its number does not exist in the tree, or not in this directory.
    Number,
    /// It is a symbolic link.
    Link,
    /// It is a device, a pipe, or a socket.
    Special(Special),
    /// It is a mount point (also of a single file), or a subvolume.
    Mount,
    /// A directory contains both files and directories, or the root contains a file.
    Mixed,
    /// It is a directory that should be empty.
    NotEmpty,
    /// It is a file with another hard link elsewhere, which would be changed too.
    OtherName,
}

/// Kinds of files that are never part of a file set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// A named pipe.
    Pipe,
    Socket,
    BlockDevice,
    CharacterDevice,
    /// The file system does not report the kind.
    Unknown,
}

impl Foreign {
    /// Returns why a file is not part of a file set: by its kind, by a mount on it, or by its number of names, which
    /// may be larger than one only if the set has `links`. `None` when it may be part of a set.
    pub fn of_file(info: &FileInfo, links: bool) -> Option<Self> {
        match Self::of_kind(info.kind) {
            None if info.mounted => Some(Self::Mount),
            None if info.links > 1 && !links => Some(Self::OtherName),
            what => what,
        }
    }

    /// Returns why a name that could not be opened with error `errno` is not part of a file set. `None` when the error
    /// has another cause.
    pub fn at(dir: Fd, name: &CStr, errno: Errno, links: bool) -> Option<Self> {
        match errno {
            Errno::LOOP => Some(Self::Link),
            Errno::XDEV => Some(Self::Mount),
            _ => fd::file_info_at(dir, name).ok().and_then(|info| Self::of_file(&info, links)),
        }
    }

    /// Returns the same as [`Self::of_file`] for a name, except that a symbolic link created by a `symlink` flowop is
    /// part of the set.
    pub(crate) fn of_name(dir: Fd, name: &CStr, links: bool) -> Result<Option<Self>, Errno> {
        let found = Self::of_file(&fd::file_info_at(dir, name)?, links);
        Ok(found.filter(|what| *what != Self::Link || !is_own_link(dir, name)))
    }

    /// Returns why a path is not a directory of a file set, given the error of a system call on it. `None` when the
    /// error has another cause.
    pub fn of_directory(path: &Path, errno: Errno) -> Option<Self> {
        Some(match errno {
            // Of any directory on the path, if it was opened by a path.
            Errno::LOOP => Self::Link,
            // With `O_DIRECTORY` the kernel returns `ENOTDIR` for a link as well as for a file.
            Errno::NOTDIR => match fd::lstat(path).map(|stat| stat.kind) {
                Ok(FileType::Symlink) => Self::Link,
                Ok(kind) => Self::of_kind(kind).unwrap_or(Self::Mixed),
                Err(_) => Self::Mixed,
            },
            Errno::XDEV | Errno::BUSY => Self::Mount,
            Errno::NOTEMPTY => Self::NotEmpty,
            _ => return None,
        })
    }

    /// Returns why a file of this kind is not a file of a file set. `None` for a regular file.
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
            Self::Name => "no file set contains a file or directory of that name",
            Self::Link => "it is a symbolic link",
            Self::Number => "this file set has no file or directory of that number there",
            Self::Special(Special::Pipe) => "it is a named pipe",
            Self::Special(Special::Socket) => "it is a socket",
            Self::Special(Special::BlockDevice) => "it is a block device",
            Self::Special(Special::CharacterDevice) => "it is a character device",
            Self::Special(Special::Unknown) => "it is neither a file nor a directory",
            Self::Mount => "another file system or a subvolume is mounted there",
            Self::Mixed => "files and directories are side by side in one directory, which no file set has",
            Self::NotEmpty => "it contains files or directories that are not part of this file set",
            Self::OtherName => "it has another name elsewhere (a hard link), and would be changed under that name too",
        })
    }
}

/// True if a symbolic link is one that a `symlink` flowop creates: its target is the name of a file in the same
/// directory, and nothing else.
pub(super) fn is_own_link(dir: Fd, name: &CStr) -> bool {
    let mut target = [0; 32];
    fd::read_link_at(dir, name, &mut target).is_ok_and(|n| Name::parse(&target[..n]).is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn what_is_in_the_place_of_a_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("/tmp", at("link")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(at("socket")).unwrap());
        for (name, errno, what) in [
            ("file", Errno::NOTDIR, Some(Foreign::Mixed)),
            ("file/below", Errno::NOTDIR, Some(Foreign::Mixed)),
            ("link", Errno::NOTDIR, Some(Foreign::Link)),
            ("link", Errno::LOOP, Some(Foreign::Link)),
            ("socket", Errno::NOTDIR, Some(Foreign::Special(Special::Socket))),
            ("", Errno::XDEV, Some(Foreign::Mount)),
            ("", Errno::BUSY, Some(Foreign::Mount)),
            ("", Errno::NOTEMPTY, Some(Foreign::NotEmpty)),
            ("", Errno::ACCESS, None),
            ("missing", Errno::NOENT, None),
        ] {
            assert_eq!(Foreign::of_directory(&at(name), errno), what, "{name} {errno:?}");
        }
    }
}
