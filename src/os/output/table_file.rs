//! A file with a header line to which lines are appended, such as the history of `--append`.
//!
//! Only a file that begins with this header is changed, and only by appending whole lines. Programs that append at the
//! same time wait for one another.

use super::WriteTo;
use super::replace::{probe, write_all};
use super::target::FileIdentity;
use crate::OFlags;
use crate::held_dir::HeldDir;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// A table to which lines are appended.
#[derive(Clone, Debug)]
pub struct TableFile {
    dir: HeldDir,
    name: OsString,
    /// The first line, with its end.
    header: String,
}

impl TableFile {
    /// Checks that lines can be appended to the file at `path`, without creating it. A symbolic link is resolved. `read`
    /// lists input files, such as the script.
    ///
    /// Returns an error if the path can't be written, is no regular file, is one of `read`, or if the file is not empty
    /// and does not begin with `header`.
    pub fn open(path: &Path, header: &str, read: &[FileIdentity]) -> io::Result<Self> {
        let (dir, name) = HeldDir::of_file(path)?;
        let table = Self { dir, name, header: header.to_owned() };
        let Some(found) = table.dir.find(&table.name)? else {
            return probe(&table.dir, &table.name).map(|()| table);
        };
        if read.contains(&found.id()) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is one of the files that are read"));
        }
        let file = table.dir.open_file(&table.name, OFlags::RDWR | OFlags::APPEND)?;
        let meta = file.metadata()?;
        table.check(&file, meta.len())?;
        Ok(table)
    }

    pub fn directory(&self) -> &HeldDir {
        &self.dir
    }

    /// Appends lines, after the header if the file is new or empty. On an error, what was written is truncated away.
    pub fn append(&self, write: WriteTo<'_>) -> io::Result<()> {
        let mut lines = Vec::new();
        write(&mut lines)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let mut file = self.dir.open_file(&self.name, flags)?;
        // Closing the file releases the lock.
        file.lock()?;
        let len = file.metadata()?.len();
        self.check(&file, len)?;
        let mut text = Vec::new();
        if len == 0 {
            text.extend_from_slice(self.header.as_bytes());
        } else if !ends_line(&mut file)? {
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(&lines);
        write_all(&file, len, &mut |out| out.write_all(&text)).inspect_err(|_| {
            // The original error is reported.
            let _ = file.set_len(len);
        })
    }

    /// Returns an error if a file of `len` bytes is not empty and has another first line.
    fn check(&self, mut file: &File, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        file.rewind()?;
        let mut head = Vec::new();
        file.take(self.header.len() as u64).read_to_end(&mut head)?;
        if head == self.header.as_bytes() {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "its first line is not the header of such a table"))
    }
}

/// True if the last byte of a file that is not empty ends a line.
fn ends_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::TableFile;
    use std::fs;
    use std::io::ErrorKind;

    #[test]
    fn lines_are_appended_below_one_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        for line in ["1\r\n", "2\r\n"] {
            let table = TableFile::open(&path, "a\r\n", &[]).unwrap();
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), usize::from(line == "2\r\n"), "nothing is created");
            table.append(&mut |out| out.write_all(line.as_bytes())).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"a\r\n1\r\n2\r\n");
        // A line that was cut off stays one line.
        fs::write(&path, "a\r\n1").unwrap();
        TableFile::open(&path, "a\r\n", &[]).unwrap().append(&mut |out| out.write_all(b"2\r\n")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a\r\n1\r\n2\r\n");
    }

    #[test]
    fn another_file_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        let late = TableFile::open(&path, "a\r\n", &[]).unwrap();
        for text in ["b\r\n1\r\n", "a", "a,b\r\n", "precious"] {
            fs::write(&path, text).unwrap();
            assert_eq!(TableFile::open(&path, "a\r\n", &[]).unwrap_err().kind(), ErrorKind::AlreadyExists, "{text}");
            // Also if it was put there during the run.
            assert!(late.append(&mut |out| out.write_all(b"2\r\n")).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(TableFile::open(dir.path(), "a\r\n", &[]).is_err());
    }
}
