//! A directory of the user in which the program keeps the newest of its files without being asked: their number and
//! their size are limited.
//!
//! The names are numbers, in the order in which the files were added. Anything else in the directory is left alone, and
//! neither read nor counted: other names, other types, files of other users, other contents.

use super::replace::write_within;
use super::{HEAD_LENGTH, WriteTo};
use crate::held_dir::HeldDir;
use crate::{Errno, OFlags, handle};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The maximum number of files.
pub const MOST_KEPT: usize = 20;
/// The maximum size of all files together, in bytes.
pub const MOST_KEPT_BYTES: u64 = 50 << 20;

/// The mode of a file: it is the user's own.
const MODE: u32 = 0o600;
/// The number of digits of a name.
const DIGITS: usize = 8;
/// The ending of a name.
const ENDING: &str = ".json";
/// How many names are tried, in case others add files at the same time.
const MAX_TRIES: u64 = 100;

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
        let mut new = self.dir.temporary(OsString::from(".new"))?;
        new.file().set_permissions(Permissions::from_mode(MODE))?;
        write_within(new.file(), 0, MOST_KEPT_BYTES, write)?;
        let from = new.name()?.to_owned();
        let first = self.numbers()?.first().map_or(1, |newest| newest + 1);
        let is_placed = |number| match self.dir.rename_new(&from, &name_of(number)) {
            Ok(()) => Some(Ok(())),
            Err(Errno::EXIST) => None,
            Err(error) => Some(Err(error)),
        };
        (first..first + MAX_TRIES).find_map(is_placed).unwrap_or(Err(Errno::EXIST))?;
        new.renamed()?;
        self.remove_oldest()
    }

    /// Returns the path of a file; 0 is the newest. `None` if there are not so many. An error if it is no file of this
    /// user.
    pub fn path(&self, nth: usize) -> io::Result<Option<PathBuf>> {
        let Some(number) = self.numbers()?.get(nth).copied() else { return Ok(None) };
        let name = name_of(number);
        let path = self.dir.path().join(&name);
        match self.own_file(&name) {
            Ok(_) => Ok(Some(path)),
            Err(e) => Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
        }
    }

    /// Returns the numbers in the names, the newest first.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers: Vec<u64> = self.dir.entries()?.iter().filter_map(|entry| number_of(&entry.name)).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        Ok(numbers)
    }

    /// Opens a file. An error if it is no regular file, or one of another user.
    fn own_file(&self, name: &OsStr) -> io::Result<File> {
        let file = self.dir.open_file(name, OFlags::RDONLY).map_err(|e| match Errno::from_io_error(&e) {
            Some(Errno::LOOP) => io::Error::new(ErrorKind::InvalidInput, handle::NOT_REGULAR),
            _ => e,
        })?;
        match file.metadata()?.uid() == rustix::process::geteuid().as_raw() {
            true => Ok(file),
            false => Err(io::Error::new(ErrorKind::InvalidInput, "it belongs to another user")),
        }
    }

    /// Removes the oldest files until the others are within the limits.
    fn remove_oldest(&self) -> io::Result<()> {
        let (mut kept, mut bytes) = (0, 0);
        for number in self.numbers()? {
            let name = name_of(number);
            let Ok(file) = self.own_file(&name) else { continue };
            let mut head = Vec::new();
            if (&file).take(HEAD_LENGTH).read_to_end(&mut head).is_err() || !(self.is_own)(&head) {
                continue;
            }
            let size = file.metadata()?.len();
            if kept < MOST_KEPT && bytes + size <= MOST_KEPT_BYTES {
                (kept, bytes) = (kept + 1, bytes + size);
                continue;
            }
            match self.dir.remove_file(&name) {
                // Another process has removed it.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }
}

/// Returns the name of a file.
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
        assert_eq!(kept.path(0).unwrap(), None);
        (1..=22).for_each(|n| add(&kept, format!("ours {n}").as_bytes()).unwrap());
        let found = names(&path);
        assert_eq!((found.len(), &found[0][..], &found[19][..]), (MOST_KEPT, "00000003.json", "00000022.json"));
        let read = |nth| fs::read_to_string(kept.path(nth).unwrap().unwrap()).unwrap();
        assert_eq!((read(0), read(19)), ("ours 22".to_owned(), "ours 3".to_owned()));
        assert_eq!(kept.path(20).unwrap(), None);
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
        std::os::unix::fs::symlink("00000001.json", at("00000003.json")).unwrap();
        (0..25).for_each(|_| add(&kept, b"ours").unwrap());
        let found = names(dir.path());
        assert_eq!(found[..3], ["00000001.json", "00000002.json", "00000003.json"]);
        assert_eq!(found.len(), MOST_KEPT + 4, "{found:?}");
        assert_eq!(fs::read(at("00000001.json")).unwrap(), b"theirs");
        for nth in [MOST_KEPT, MOST_KEPT + 1] {
            let error = kept.path(nth).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
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
