//! Calls on directories that are held open by an owner, for files that are written beside a run: outputs, not workloads.
//!
//! What a name leads to is decided here: no link is followed, and nothing outside of the directory is reached.

use rustix::fs::{self as rfs, Access, AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory by a path whose links are followed.
pub fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    rfs::open(path, DIR, Mode::empty())
}

/// Makes a directory in a directory.
pub fn make_dir(dir: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    rfs::mkdirat(dir, name, Mode::from_raw_mode(0o777))
}

/// Opens a directory in a directory; [`Errno::LOOP`] if it is a link.
pub fn enter_dir(dir: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rfs::openat2(dir.as_fd(), name, DIR, Mode::empty(), resolve) {
        // Kernels and containers without the call: of a single name this does the same.
        Err(Errno::NOSYS | Errno::PERM) => {
            let opened = rfs::openat(dir, name, DIR | OFlags::NOFOLLOW, Mode::empty());
            opened.map_err(|error| if error == Errno::NOTDIR { Errno::LOOP } else { error })
        }
        other => other,
    }
}

/// Checks that names may be made in a directory.
pub fn check_writable(dir: &Path) -> Result<(), Errno> {
    rfs::access(dir, Access::WRITE_OK | Access::EXEC_OK)
}

/// Gives a file of a directory another name in it, in place of what bore that name.
pub fn rename(dir: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    rfs::renameat(dir, from, dir, to)
}

/// Gives a file of a directory another name in it; [`Errno::EXIST`] if the name is taken.
pub fn rename_new(dir: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match rfs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        // File systems that can't: a link fails just so where the name is taken.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rfs::linkat(dir, from, dir, to, AtFlags::empty())?;
            rfs::unlinkat(dir, from, AtFlags::empty())
        }
        other => other,
    }
}

/// Opens a regular file of a directory for reading. `None` of anything else, which is not looked into: opening a pipe or a device
/// may wait, or do something.
pub fn open_regular(dir: &OwnedFd, name: &OsStr) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let regular = |stat: rfs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    rfs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|stat| regular(*stat))?;
    let file = rfs::openat(dir, name, flags, Mode::empty()).ok()?;
    rfs::fstat(&file).is_ok_and(regular).then(|| File::from(file))
}

/// Whether an open descriptor is a regular file.
pub fn is_regular(file: impl AsFd) -> bool {
    rfs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// Whether a file was opened for reading only.
pub fn is_read_only(file: &File) -> io::Result<bool> {
    Ok(rfs::fcntl_getfl(file)? & OFlags::RWMODE == OFlags::RDONLY)
}

/// Opens a pipe or a device for writing; `None` of a pipe that nobody reads from. Writes wait as usual.
pub fn open_stream(path: &Path) -> io::Result<Option<File>> {
    // A pipe without a reader would wait for one for ever.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rfs::open(path, flags, Mode::empty()) {
        Err(Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    rfs::fcntl_setfl(&file, rfs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(file.into()))
}

/// Checks that a file of a length finds room; some file systems say only when they write that they are full.
pub fn check_room(file: &File, len: u64) -> io::Result<()> {
    match rfs::fallocate(file, rfs::FallocateFlags::empty(), 0, len) {
        Err(Errno::NOSPC | Errno::DQUOT) => Err(ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}
