//! Opens the files that the program itself reads and writes. Workloads do not use these.
//!
//! The type of a file is known before it is opened, and checked afterwards: opening a pipe or a device may block or have
//! side effects.

use super::fd::{self, retry_interrupted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The error of a path that must be that of a regular file.
pub(crate) const NOT_REGULAR: &str = "it is not a regular file";

/// Renames a file within a directory. Fails with [`Errno::EXIST`] if the new name exists.
pub(super) fn rename_new(dir: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    fd::rename_no_replace(dir.as_fd(), from, to, || match rfs::linkat(dir, from, dir, to, AtFlags::empty()) {
        // `linkat` also fails with `EEXIST` if the name exists.
        Ok(()) => rfs::unlinkat(dir, from, AtFlags::empty()),
        // The file system has no hard links either: some FUSE file systems.
        Err(Errno::PERM | Errno::NOSYS | Errno::NOTSUP) => fd::rename_if_free(dir.as_fd(), from, to),
        Err(error) => Err(error),
    })
}

/// Opens a regular file of a directory for reading. `None` for any other file type, which is not opened: opening a pipe
/// or a device may block or have side effects.
pub(super) fn open_regular(dir: &OwnedFd, name: &OsStr) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let regular = |stat: rfs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    rfs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|stat| regular(*stat))?;
    let file = retry_interrupted(|| rfs::openat(dir, name, flags, Mode::empty())).ok()?;
    rfs::fstat(&file).is_ok_and(regular).then(|| File::from(file))
}

/// Opens a regular file by path for reading. Follows symbolic links. Fails with [`ErrorKind::InvalidInput`] for any
/// other file type, which is not opened.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let found = open_of(path, |kind| kind == FileType::RegularFile)?;
    found.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, NOT_REGULAR))
}

/// Opens a regular file of a directory with these flags. Does not follow a symbolic link. Fails with
/// [`ErrorKind::InvalidInput`] for any other file type.
pub(super) fn open_regular_with(dir: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let not_regular = || io::Error::new(ErrorKind::InvalidInput, NOT_REGULAR);
    match rfs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) | Err(Errno::NOENT) => {}
        Ok(FileType::Symlink) => return Err(Errno::LOOP.into()),
        Ok(_) => return Err(not_regular()),
        Err(error) => return Err(error.into()),
    }
    let file = match retry_interrupted(|| rfs::openat(dir, name, flags, Mode::from_raw_mode(0o666))) {
        // A pipe without a reader, or a socket.
        Err(Errno::NXIO) => return Err(not_regular()),
        opened => opened?,
    };
    if !is_regular(&file) {
        return Err(not_regular());
    }
    // A program that gets the descriptor expects calls that block.
    rfs::fcntl_setfl(&file, rfs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

/// True if a descriptor refers to a regular file.
pub fn is_regular(file: impl AsFd) -> bool {
    rfs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

/// True if a file was opened for reading only.
pub(crate) fn is_read_only(file: &File) -> io::Result<bool> {
    Ok(rfs::fcntl_getfl(file)? & OFlags::RWMODE == OFlags::RDONLY)
}

/// Opens a regular file or a pipe for reading. Follows symbolic links. `None` for any other file type, which is not
/// opened. A pipe is opened without waiting for a writer, and reads of it fail with [`ErrorKind::WouldBlock`] while it
/// has no data.
pub fn open_input(path: &Path) -> io::Result<Option<File>> {
    open_of(path, |kind| matches!(kind, FileType::RegularFile | FileType::Fifo))
}

/// Opens a file of a wanted type by path for reading, without waiting. `None` for any other type, which is not opened:
/// that may have effects, such as on the writer of a pipe.
fn open_of(path: &Path, is_wanted: impl Fn(FileType) -> bool) -> io::Result<Option<File>> {
    let is_it = |stat: rfs::Stat| is_wanted(FileType::from_raw_mode(stat.st_mode));
    if !is_it(rfs::stat(path)?) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = retry_interrupted(|| rfs::open(path, flags, Mode::empty()))?;
    Ok(is_it(rfs::fstat(&file)?).then(|| File::from(file)))
}

/// True if a pipe has no data and will get none, because its last writer has closed it. `false` for a named pipe
/// that no writer has opened since.
pub(crate) fn has_hung_up(pipe: &File) -> bool {
    let mut wanted = [PollFd::new(pipe, PollFlags::IN)];
    // On an error no event is reported.
    let _ = poll(&mut wanted, Some(&Timespec::default()));
    let events = wanted[0].revents();
    events.contains(PollFlags::HUP) && !events.contains(PollFlags::IN)
}

/// Opens a pipe or a device for writing. `None` for a pipe without a reader. Writes to the returned file block as
/// usual.
pub(super) fn open_stream(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<File>> {
    // Without `O_NONBLOCK`, opening a pipe that has no reader would wait for one indefinitely.
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match retry_interrupted(|| rfs::openat(dir, name, flags, Mode::empty())) {
        Err(Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    // Another file may have replaced the one that was looked up.
    let kind = FileType::from_raw_mode(rfs::fstat(&file)?.st_mode);
    if matches!(kind, FileType::RegularFile | FileType::Directory | FileType::BlockDevice) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "another file has replaced it"));
    }
    rfs::fcntl_setfl(&file, rfs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(file.into()))
}

/// Checks that a file of `len` bytes fits, by allocating its blocks. Fails with [`ErrorKind::StorageFull`] if it does
/// not. Some file systems report only at the write that they are full.
pub(crate) fn check_room(file: &File, len: u64) -> io::Result<()> {
    match retry_interrupted(|| rfs::fallocate(file, rfs::FallocateFlags::empty(), 0, len)) {
        Err(Errno::NOSPC | Errno::DQUOT) => Err(ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn only_regular_files_are_opened_by_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["file", "link"] {
            open_regular_file(&at(name)).unwrap();
        }
        for path in [at("pipe"), dir.path().to_owned(), "/dev/null".into()] {
            let error = open_regular_file(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", path.display());
        }
        assert_eq!(open_regular_file(&at("missing")).unwrap_err().kind(), ErrorKind::NotFound);
        let held = File::open(dir.path()).unwrap().into();
        let create = |name: &str| open_regular_with(&held, name.as_ref(), OFlags::WRONLY | OFlags::CREATE);
        for name in ["link", "pipe", "."] {
            create(name).unwrap_err();
        }
        // The content stays until it is overwritten.
        create("file").unwrap().write_all(b"n").unwrap();
        assert_eq!(std::fs::read(at("file")).unwrap(), b"next");
        create("new").unwrap();
        assert_eq!(std::fs::read(at("new")).unwrap(), b"");
    }
}
