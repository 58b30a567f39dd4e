//! A new file that replaces another one. It is unnamed until it is complete, so that a killed program leaves nothing
//! behind.

use rustix::fs::{self as rfs, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const MODE: Mode = Mode::from_raw_mode(0o666);

/// A temporary file in a directory. It is removed on drop unless it was renamed.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    dir: OwnedFd,
    name: OsString,
    named: bool,
}

impl Temporary {
    /// Creates a file in `dir`. It has no name until [`Temporary::name`] gives it `name`. On file systems without
    /// unnamed files (NFS, FUSE) it has that name from the start.
    pub fn new(dir: OwnedFd, name: OsString) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = rfs::openat(&dir, c".", flags | OFlags::TMPFILE, MODE) {
            let file = File::from(file);
            // The file is named later through this link, which needs /proc.
            if rfs::accessat(CWD, proc_link(&file), rfs::Access::EXISTS, AtFlags::empty()).is_ok() {
                return Ok(Self { file, dir, name, named: false });
            }
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let create = || rfs::openat(&dir, &name, flags, MODE);
        let file = match create() {
            // A file of that name is a leftover of a killed program with the same process ID.
            Err(Errno::EXIST) => {
                rfs::unlinkat(&dir, &name, AtFlags::empty())?;
                create()
            }
            other => other,
        };
        Ok(Self { file: File::from(file?), dir, name, named: true })
    }

    /// Returns the file, open for writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the directory.
    pub fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Returns the name of the file, after linking the file under it if necessary.
    pub fn name(&mut self) -> io::Result<&OsStr> {
        if !self.named {
            let link = || rfs::linkat(CWD, proc_link(&self.file), &self.dir, &self.name, AtFlags::SYMLINK_FOLLOW);
            match link() {
                Err(Errno::EXIST) => {
                    rfs::unlinkat(&self.dir, &self.name, AtFlags::empty())?;
                    link()?;
                }
                other => other?,
            }
            self.named = true;
        }
        Ok(&self.name)
    }

    /// Takes note that the file has been renamed, so that it is not removed, and returns it.
    pub fn renamed(mut self) -> io::Result<File> {
        self.named = false;
        self.file.try_clone()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.named {
            // An error here is ignored: the error of the writer is the one to report.
            let _ = rfs::unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

fn proc_link(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::io::Write;

    fn names(dir: &std::path::Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_unnamed_until_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let open = || OwnedFd::from(File::open(dir.path()).unwrap());
        let mut temporary = Temporary::new(open(), "new".into()).unwrap();
        temporary.file().write_all(b"whole").unwrap();
        // On file systems without O_TMPFILE the file is visible; those that tests run on have it.
        assert_eq!(names(dir.path()), [""; 0]);
        // A leftover of the same name from a killed program.
        std::fs::write(dir.path().join("new"), "half").unwrap();
        let name = temporary.name().unwrap().to_owned();
        rfs::renameat(temporary.dir(), &name, temporary.dir(), "out").unwrap();
        temporary.renamed().unwrap();
        assert_eq!(names(dir.path()), ["out"]);
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), b"whole");
    }

    #[test]
    fn a_file_that_is_not_renamed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut temporary = Temporary::new(OwnedFd::from(File::open(dir.path()).unwrap()), "new".into()).unwrap();
        temporary.name().unwrap();
        assert_eq!(names(dir.path()), ["new"]);
        drop(temporary);
        assert_eq!(names(dir.path()), [""; 0]);
    }
}
