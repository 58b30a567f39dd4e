//! A new file that becomes another one's successor: without a name until it is whole, so that a program that is killed leaves nothing.

use rustix::fs::{self as rfs, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const MODE: Mode = Mode::from_raw_mode(0o666);

/// A file in a directory that is removed again unless it is renamed.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    dir: OwnedFd,
    name: OsString,
    named: bool,
}

impl Temporary {
    /// A file in `dir`; `name` is what it is called while it is renamed, and from the start on file systems that have no files
    /// without names (NFS, FUSE).
    pub fn new(dir: OwnedFd, name: OsString) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(file) = rfs::openat(&dir, c".", flags | OFlags::TMPFILE, MODE) {
            let file = File::from(file);
            // The name is given by this link, which needs /proc.
            if rfs::accessat(CWD, link_to(&file), rfs::Access::EXISTS, AtFlags::empty()).is_ok() {
                return Ok(Self { file, dir, name, named: false });
            }
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let create = || rfs::openat(&dir, &name, flags, MODE);
        let file = match create() {
            // Left over by a killed program of the same number.
            Err(Errno::EXIST) => {
                rfs::unlinkat(&dir, &name, AtFlags::empty())?;
                create()
            }
            other => other,
        };
        Ok(Self { file: File::from(file?), dir, name, named: true })
    }

    /// The file, open for writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its directory.
    pub fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Its name, which it gets now if it has none.
    pub fn name(&mut self) -> io::Result<&OsStr> {
        if !self.named {
            let link = || rfs::linkat(CWD, link_to(&self.file), &self.dir, &self.name, AtFlags::SYMLINK_FOLLOW);
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

    /// Says that the file has been renamed, and gives it.
    pub fn renamed(mut self) -> io::Result<File> {
        self.named = false;
        self.file.try_clone()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.named {
            // The error that counts is that of the writer.
            let _ = rfs::unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

fn link_to(file: &File) -> String {
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
    fn it_has_no_name_until_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let open = || OwnedFd::from(File::open(dir.path()).unwrap());
        let mut temporary = Temporary::new(open(), "new".into()).unwrap();
        temporary.file().write_all(b"whole").unwrap();
        // File systems without O_TMPFILE show it; those that tests run on have it.
        assert_eq!(names(dir.path()), [""; 0]);
        // One of the same name, which a killed program has left.
        std::fs::write(dir.path().join("new"), "half").unwrap();
        let name = temporary.name().unwrap().to_owned();
        rfs::renameat(temporary.dir(), &name, temporary.dir(), "out").unwrap();
        temporary.renamed().unwrap();
        assert_eq!(names(dir.path()), ["out"]);
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), b"whole");
    }

    #[test]
    fn one_that_is_not_renamed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut temporary = Temporary::new(OwnedFd::from(File::open(dir.path()).unwrap()), "new".into()).unwrap();
        temporary.name().unwrap();
        assert_eq!(names(dir.path()), ["new"]);
        drop(temporary);
        assert_eq!(names(dir.path()), [""; 0]);
    }
}
