//! A file that always has the last states of something that changes, also after the process was killed: lines that are
//! appended until the file has a certain length, and then written from its beginning again.
//!
//! No line is complete before the next one begins, and a new line never overwrites the one before it. So a reader finds
//! at least one complete line at any time. Not here: the content of the lines.

use super::target::FileIdentity;
use super::{ResultPlace, Results};
use crate::held_dir::HeldDir;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// The length of the file in bytes, unless four lines are longer.
const LENGTH: u64 = 1 << 20;

/// The least number of lines in that length.
const LINES: u64 = 4;

/// An open file of lines.
#[derive(Debug)]
pub struct SnapshotFile {
    file: File,
    dir: HeldDir,
    name: OsString,
    id: FileIdentity,
    /// Where the next line begins.
    at: u64,
    /// The length of the longest line.
    longest: u64,
}

impl SnapshotFile {
    /// Creates the file in a results directory. An existing file is never replaced: the first free name of `NAME.1`,
    /// `NAME.2`, … is used.
    pub fn create(results: &Results, place: &ResultPlace) -> io::Result<Self> {
        let (file, dir, name) = results.create(place)?;
        let meta = file.metadata()?;
        Ok(Self { file, dir, name, id: (meta.dev(), meta.ino()), at: 0, longest: 0 })
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Writes a line, with its end. The data is not flushed to the device.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        self.longest = self.longest.max(length);
        if self.at + length > LENGTH.max(LINES * self.longest) {
            self.at = 0;
        }
        self.file.write_all_at(line, self.at)?;
        self.at += length;
        Ok(())
    }

    /// Removes the file, unless another one has its name now.
    pub fn remove(self) -> io::Result<()> {
        let is_it = self.dir.find(&self.name)?.is_some_and(|found| found.id() == self.id);
        if is_it { self.dir.remove_file(&self.name) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{LENGTH, SnapshotFile};
    use crate::output::Results;
    use std::path::Path;

    fn create(dir: &Path) -> SnapshotFile {
        let results = Results::new(dir, &[]);
        SnapshotFile::create(&results, &results.place(Path::new("s"))).unwrap()
    }

    /// Returns line `number`, of a length that changes.
    fn line(number: usize) -> String {
        format!("<{number} {}>\n", "x".repeat(150_000 + 1000 * (number % 7)))
    }

    /// Returns the numbers of the complete lines in a file.
    fn complete(path: &Path) -> Vec<usize> {
        let text = std::fs::read_to_string(path).unwrap();
        let number = |line: &str| line.strip_prefix('<')?.strip_suffix('>')?.split(' ').next()?.parse().ok();
        text.split('\n').filter_map(number).collect()
    }

    #[test]
    fn the_file_has_the_last_line_and_a_bounded_length() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = create(dir.path());
        let mut was_smaller = false;
        for number in 1..=40 {
            file.append(line(number).as_bytes()).unwrap();
            let found = complete(&file.path());
            assert_eq!(found.iter().max(), Some(&number), "{found:?}");
            was_smaller |= found.first() > found.last();
        }
        assert!(was_smaller, "the file was written from its beginning again");
        assert!(std::fs::metadata(file.path()).unwrap().len() <= LENGTH);
    }

    /// A process may be killed after any part of a line.
    #[test]
    fn an_incomplete_line_leaves_the_one_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = create(dir.path());
        for number in 1..=20 {
            file.append(line(number).as_bytes()).unwrap();
            let at = file.at;
            let next = line(number + 1);
            file.append(&next.as_bytes()[..next.len() / 2]).unwrap();
            assert!(complete(&file.path()).contains(&number), "{number}");
            file.at = at;
        }
    }

    #[test]
    fn lines_longer_than_the_file_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = create(dir.path());
        for number in 1..=9 {
            file.append(format!("<{number} {}>\n", "x".repeat(700_000)).as_bytes()).unwrap();
            assert!(complete(&file.path()).contains(&number), "{number}");
        }
    }

    #[test]
    fn no_file_is_replaced_and_only_the_own_one_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("s"), "another").unwrap();
        let file = create(dir.path());
        assert_eq!(file.path(), dir.path().join("s.1"));
        file.remove().unwrap();
        let file = create(dir.path());
        std::fs::remove_file(file.path()).unwrap();
        std::fs::write(dir.path().join("s.1"), "new").unwrap();
        file.remove().unwrap();
        let names = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(names, 2, "both files of others exist");
    }
}
