//! A new file that replaces another one. It is unnamed until it is complete, so that a killed program leaves nothing
//! behind.

use super::fd::retry_interrupted;
use super::held_dir::HeldDir;
use rustix::fs::{self as rfs, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

const MODE: Mode = Mode::from_raw_mode(0o666);

/// Maximum number of names that are tried.
const MAX_NAMES: u32 = 100;

/// A temporary file in a directory. It is removed on drop unless it was renamed.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    dir: HeldDir,
    prefix: OsString,
    /// `None` while the file is unnamed, and after it was renamed.
    name: Option<OsString>,
}

impl Temporary {
    /// Creates a file in `dir`. It has no name until [`Temporary::name`] gives it one: `prefix`, a random number, and
    /// `.tmp`. On file systems without unnamed files (NFS, FUSE) it has such a name from the start.
    ///
    /// A file of that name is never replaced. It can belong to a writer that still works: a thread of this process that
    /// was abandoned, or another process, whose process ID may be the same in another container.
    pub fn new(dir: HeldDir, prefix: OsString) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = retry_interrupted(|| rfs::openat(&dir, c".", flags | OFlags::TMPFILE, MODE)) {
            let file = File::from(file);
            // The file is named later through this link, which needs /proc.
            if rfs::accessat(CWD, proc_link(&file), rfs::Access::EXISTS, AtFlags::empty()).is_ok() {
                return Ok(Self { file, dir, prefix, name: None });
            }
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let open = |name: &OsStr| retry_interrupted(|| rfs::openat(&dir, name, flags, MODE));
        let (name, file) = with_free_name(&prefix, open)?;
        Ok(Self { file: File::from(file), dir, prefix, name: Some(name) })
    }

    /// Returns the file, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn dir(&self) -> &HeldDir {
        &self.dir
    }

    /// Returns the name of the file, after linking the file under it if necessary.
    pub fn name(&mut self) -> io::Result<&OsStr> {
        if self.name.is_none() {
            let link = proc_link(&self.file);
            let (name, ()) =
                with_free_name(&self.prefix, |name| rfs::linkat(CWD, &link, &self.dir, name, AtFlags::SYMLINK_FOLLOW))?;
            self.name = Some(name);
        }
        Ok(self.name.as_deref().unwrap_or_default())
    }

    /// Takes note that the file has been renamed, so that it is not removed, and returns it.
    pub fn renamed(mut self) -> io::Result<File> {
        self.name = None;
        self.file.try_clone()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // An error here is ignored: the error of the writer is the one to report.
            let _ = rfs::unlinkat(&self.dir, name, AtFlags::empty());
        }
    }
}

/// Calls `make` with names until one is free. Returns the name and the result.
fn with_free_name<T>(prefix: &OsStr, mut make: impl FnMut(&OsStr) -> Result<T, Errno>) -> io::Result<(OsString, T)> {
    for _ in 0..MAX_NAMES {
        // Each state has other keys, which the standard library takes from the kernel's random numbers.
        let number = RandomState::new().build_hasher().finish();
        let mut name = prefix.to_owned();
        name.push(format!(".{number}.tmp"));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((name, made?)),
        }
    }
    Err(Errno::EXIST.into())
}

/// True if a name is one that a file with this prefix gets.
pub(super) fn is_name(name: &OsStr, prefix: &str) -> bool {
    let number = || name.to_str()?.strip_prefix(prefix)?.strip_prefix('.')?.strip_suffix(".tmp");
    number().is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn proc_link(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn names(dir: &std::path::Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_unnamed_until_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let open = || HeldDir::open(dir.path()).unwrap();
        let mut temporary = Temporary::new(open(), "new".into()).unwrap();
        temporary.file().write_all(b"whole").unwrap();
        // On file systems without O_TMPFILE the file is visible; those that tests run on have it.
        assert_eq!(names(dir.path()), [""; 0]);
        let name = temporary.name().unwrap().to_owned();
        temporary.dir().rename(&name, "out".as_ref()).unwrap();
        temporary.renamed().unwrap();
        assert_eq!(names(dir.path()), ["out"]);
        assert_eq!(std::fs::read(dir.path().join("out")).unwrap(), b"whole");
    }

    #[test]
    fn a_file_that_is_not_renamed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut temporary = Temporary::new(HeldDir::open(dir.path()).unwrap(), "new".into()).unwrap();
        let name = temporary.name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("new.") && Path::new(&name).extension() == Some("tmp".as_ref()), "{name}");
        assert!(is_name(name.as_ref(), "new") && !is_name(name.as_ref(), "ne"), "{name}");
        assert_eq!(names(dir.path()), [name]);
        drop(temporary);
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn a_name_that_exists_is_not_used() {
        let mut tried = Vec::new();
        let (name, made) = with_free_name("new".as_ref(), |name| {
            tried.push(name.to_owned());
            if tried.len() < 3 { Err(Errno::EXIST) } else { Ok(tried.len()) }
        })
        .unwrap();
        assert_eq!((made, Some(&name)), (3, tried.last()));
        tried.sort();
        tried.dedup();
        assert_eq!(tried.len(), 3, "{tried:?}");
        let full = with_free_name::<()>("new".as_ref(), |_| Err(Errno::EXIST));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
