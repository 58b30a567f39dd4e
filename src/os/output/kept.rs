//! A directory of the user in which the program keeps the newest of its files without being asked: their number and
//! their size are limited.
//!
//! The names are numbers, in the order in which the files were added. Anything else in the directory is left alone, and
//! neither returned nor counted: other names, other types, files of other users, other contents. Only temporary files
//! that a process of this user left behind are removed.

use super::replace::write_within;
use super::{HEAD_LENGTH, WriteTo};
use crate::held_dir::HeldDir;
use crate::{Errno, temporary};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The maximum number of files.
pub const MOST_KEPT: usize = 20;
/// The maximum size of all files together, in bytes.
pub const MOST_KEPT_BYTES: u64 = 50 << 20;

/// The mode of a file: it is the user's own.
const MODE: u32 = 0o600;
/// The number of digits of a name.
const DIGITS: usize = 8;
/// The number after which no other has a name.
const MAX_NUMBER: u64 = 10u64.pow(DIGITS as u32) - 1;
/// The ending of a name.
const ENDING: &str = ".json";
/// The beginning of the name of a temporary file.
const TEMPORARY: &str = ".new";
/// The age of a temporary file on which no process works any more: a run waits for seconds only.
const MAX_UNFINISHED_AGE: Duration = Duration::from_mins(1);
/// How many names are tried, in case others add files at the same time.
const MAX_TRIES: usize = 100;

/// A directory of kept files.
pub struct KeptFiles {
    dir: HeldDir,
    /// True if the first bytes of a file are those of such a file.
    is_own: fn(&[u8]) -> bool,
}

impl KeptFiles {
    /// Opens the directory. `None` if it does not exist.
    pub fn open(path: &Path, is_own: fn(&[u8]) -> bool) -> io::Result<Option<Self>> {
        match HeldDir::open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            dir => Ok(Some(Self { dir: dir?, is_own })),
        }
    }

    /// Opens the directory, and creates it if it does not exist.
    pub fn create(path: &Path, is_own: fn(&[u8]) -> bool) -> io::Result<Self> {
        Ok(Self { dir: HeldDir::create(path)?.0, is_own })
    }

    /// Adds a file, and removes the oldest ones if there are too many. The file is complete or absent. It is not flushed:
    /// after a run the device may have gigabytes to write first. Several processes may do so at the same time.
    pub fn add(&self, write: WriteTo<'_>) -> io::Result<()> {
        let mut new = self.dir.temporary(OsString::from(TEMPORARY))?;
        new.file().set_permissions(Permissions::from_mode(MODE))?;
        // The clock is that of the file system, which may be another one. The writing may never end.
        self.remove_unfinished(new.file().metadata()?.modified()?)?;
        write_within(new.file(), 0, MOST_KEPT_BYTES, write)?;
        let from = new.name()?.to_owned();
        let numbers = self.numbers()?;
        let newest = numbers.iter().rev().find(|number| self.own_size(&name_of(**number)).is_some());
        let first = newest.map_or(1, |newest| newest + 1);
        if first > MAX_NUMBER {
            let text = format!("no name is left after {}", name_of(MAX_NUMBER).display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        let is_placed = |number| match self.dir.rename_new(&from, &name_of(number)) {
            Ok(()) => Some(Ok(())),
            Err(Errno::EXIST) => None,
            Err(error) => Some(Err(error)),
        };
        let mut free = (first..=MAX_NUMBER).filter(|number| !numbers.contains(number)).take(MAX_TRIES);
        free.find_map(is_placed).unwrap_or(Err(Errno::EXIST))?;
        new.renamed()?;
        self.remove_oldest()
    }

    /// Returns the paths of the newest files, at most `most`, the newest first.
    pub fn newest(&self, most: usize) -> io::Result<Vec<PathBuf>> {
        let names = self.numbers()?.into_iter().rev().map(name_of);
        let own = names.filter(|name| self.own_size(name).is_some());
        Ok(own.take(most).map(|name| self.dir.path().join(name)).collect())
    }

    /// Returns the numbers in the names.
    fn numbers(&self) -> io::Result<BTreeSet<u64>> {
        Ok(self.dir.entries()?.iter().filter_map(|entry| number_of(&entry.name)).collect())
    }

    /// Opens a file. `None` if it is no regular file of this user.
    fn open_of_user(&self, name: &OsStr) -> Option<(File, Metadata)> {
        let file = self.dir.open_regular(name)?;
        let meta = file.metadata().ok()?;
        (meta.uid() == rustix::process::geteuid().as_raw()).then_some((file, meta))
    }

    /// Returns the size of a file. `None` if it is foreign.
    fn own_size(&self, name: &OsStr) -> Option<u64> {
        let (file, meta) = self.open_of_user(name)?;
        let mut head = Vec::new();
        file.take(HEAD_LENGTH).read_to_end(&mut head).ok()?;
        (self.is_own)(&head).then_some(meta.len())
    }

    /// Removes the oldest files until the others are within the limits.
    fn remove_oldest(&self) -> io::Result<()> {
        let (mut kept, mut bytes) = (0, 0);
        for name in self.numbers()?.into_iter().rev().map(name_of) {
            let Some(size) = self.own_size(&name) else { continue };
            if kept < MOST_KEPT && bytes + size <= MOST_KEPT_BYTES {
                (kept, bytes) = (kept + 1, bytes + size);
            } else {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Removes the temporary files of processes that ended too early, on file systems where these have names.
    fn remove_unfinished(&self, now: SystemTime) -> io::Result<()> {
        for entry in self.dir.entries()?.iter().filter(|entry| temporary::is_name(&entry.name, TEMPORARY)) {
            let Some((_, meta)) = self.open_of_user(&entry.name) else { continue };
            if now.duration_since(meta.modified()?).is_ok_and(|age| age > MAX_UNFINISHED_AGE) {
                self.remove(&entry.name)?;
            }
        }
        Ok(())
    }

    /// Removes a file, unless another process has done so.
    fn remove(&self, name: &OsStr) -> io::Result<()> {
        match self.dir.remove_file(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

fn name_of(number: u64) -> OsString {
    format!("{number:0DIGITS$}{ENDING}").into()
}

/// Returns the number in a name, if it is one that [`name_of`] returns.
fn number_of(name: &OsStr) -> Option<u64> {
    let digits = name.to_str()?.strip_suffix(ENDING)?;
    (digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    fn is_own(head: &[u8]) -> bool {
        head.starts_with(b"ours")
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn add(kept: &KeptFiles, text: &[u8]) -> io::Result<()> {
        kept.add(&mut |out| out.write_all(text))
    }

    #[test]
    fn the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/last");
        assert!(KeptFiles::open(&path, is_own).unwrap().is_none());
        let kept = KeptFiles::create(&path, is_own).unwrap();
        assert_eq!(kept.newest(2).unwrap().len(), 0);
        (1..=22).for_each(|n| add(&kept, format!("ours {n}").as_bytes()).unwrap());
        let found = names(&path);
        assert_eq!((found.len(), &found[0][..], &found[19][..]), (MOST_KEPT, "00000003.json", "00000022.json"));
        let newest = kept.newest(25).unwrap();
        let read = |nth: usize| fs::read_to_string(&newest[nth]).unwrap();
        assert_eq!((read(0), read(19), newest.len()), ("ours 22".to_owned(), "ours 3".to_owned(), MOST_KEPT));
        assert_eq!(kept.newest(2).unwrap(), newest[..2]);
        assert_eq!(fs::metadata(path.join(&found[0])).unwrap().permissions().mode() & 0o777, MODE);
    }

    #[test]
    fn the_size_of_all_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptFiles::create(dir.path(), is_own).unwrap();
        let text = |bytes: u64| [b"ours".as_slice(), &vec![b' '; bytes as usize - 4]].concat();
        (0..3).for_each(|_| add(&kept, &text(MOST_KEPT_BYTES / 2)).unwrap());
        assert_eq!(names(dir.path()), ["00000002.json", "00000003.json"]);
        add(&kept, &text(MOST_KEPT_BYTES)).unwrap();
        assert_eq!(names(dir.path()), ["00000004.json"]);
        assert_eq!(add(&kept, &text(MOST_KEPT_BYTES + 1)).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(kept.add(&mut |_| Err(ErrorKind::Other.into())).is_err());
        assert_eq!(names(dir.path()), ["00000004.json"], "what failed leaves nothing");
    }

    #[test]
    fn what_is_foreign_is_neither_removed_nor_returned() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let kept = KeptFiles::create(dir.path(), is_own).unwrap();
        fs::write(at("00000001.json"), "theirs").unwrap();
        fs::write(at("1.json"), "ours").unwrap();
        fs::create_dir(at("00000002.json")).unwrap();
        std::os::unix::fs::symlink("1.json", at("00000003.json")).unwrap();
        fs::write(at("99999999.json"), "theirs").unwrap();
        // More in a row than names are tried.
        (100..250).for_each(|n| fs::write(at(&format!("{n:08}.json")), "theirs").unwrap());
        let foreign = names(dir.path());
        let add_many = |count: usize| (0..count).for_each(|_| add(&kept, b"ours").unwrap());
        let newest = || kept.newest(MOST_KEPT + 1).unwrap();
        add_many(25);
        assert_eq!(newest().len(), MOST_KEPT);
        assert_eq!((&newest()[0], &newest()[19]), (&at("00000028.json"), &at("00000009.json")));
        add_many(72);
        assert_eq!((&newest()[0], &newest()[1]), (&at("00000250.json"), &at("00000099.json")));
        assert_eq!(newest().len(), MOST_KEPT);
        newest().iter().for_each(|path| fs::remove_file(path).unwrap());
        assert_eq!(names(dir.path()), foreign);
        assert_eq!(fs::read(at("99999999.json")).unwrap(), b"theirs");
    }

    #[test]
    fn after_the_last_number_nothing_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptFiles::create(dir.path(), is_own).unwrap();
        fs::write(dir.path().join("99999998.json"), "ours").unwrap();
        add(&kept, b"ours").unwrap();
        let error = add(&kept, b"ours").unwrap_err();
        assert_eq!(error.to_string(), "no name is left after 99999999.json");
        assert_eq!(names(dir.path()), ["99999998.json", "99999999.json"]);
    }

    #[test]
    fn old_temporary_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptFiles::create(dir.path(), is_own).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let lay = |name: &str, age| {
            let file = File::create(dir.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            file
        };
        lay(".new.1.tmp", 3600);
        lay(".new.2.tmp", 5);
        lay(".new.x.tmp", 3600);
        lay(".new..tmp", 3600);
        lay(".other.1.tmp", 3600);
        fs::create_dir(dir.path().join(".new.3.tmp")).unwrap();
        std::os::unix::fs::symlink(".other.1.tmp", dir.path().join(".new.4.tmp")).unwrap();
        if is_root {
            std::os::unix::fs::fchown(lay(".new.5.tmp", 3600), Some(12345), None).unwrap();
        }
        let mut left = names(dir.path());
        left.retain(|name| name != ".new.1.tmp");
        // Also if the new one can't be written.
        assert!(kept.add(&mut |_| Err(ErrorKind::Other.into())).is_err());
        assert_eq!(names(dir.path()), left);
        assert_eq!(left.len(), 6 + usize::from(is_root));
    }

    #[test]
    fn files_that_are_added_at_once_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..MOST_KEPT {
                let path = dir.path();
                scope.spawn(move || add(&KeptFiles::create(path, is_own).unwrap(), b"ours").unwrap());
            }
        });
        assert_eq!(names(dir.path()).len(), MOST_KEPT);
    }
}
