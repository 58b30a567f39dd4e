//! Reads of files that the user has not named: the program's own state, the files of results folders, and what a file
//! names.
//!
//! At such a path may be anything by now, and anyone may have put it there: a pipe without a writer, a device without an
//! end, a file of any length. Only a regular file is opened, without waiting for anything, and never more than a given
//! number of bytes is read. Links are followed: what they lead to is checked in the same way.

use super::handle;
use std::fs::{DirEntry, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// The maximum number of entries of a directory that is listed.
const MAX_ENTRIES: usize = 1_000_000;

/// Reads a regular file. Fails with [`ErrorKind::InvalidInput`] for any other file type, and with
/// [`ErrorKind::FileTooLarge`], without reading it, if it has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_open(&handle::open_regular_file(path)?, most)
}

/// Reads a text. See [`read`]. Fails with [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reads the rest of an open file. See [`read`].
pub fn read_open(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, handle::NOT_REGULAR));
    }
    let too_large = || {
        let text = match (most >> 20, most >> 10) {
            (0, kib) => format!("it has more than {kib} KiB"),
            (mib, _) => format!("it has more than {mib} MiB"),
        };
        io::Error::new(ErrorKind::FileTooLarge, text)
    };
    if meta.len() > most {
        return Err(too_large());
    }
    // It may have become longer, or tell no length, as files of `/proc`.
    let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// Reads the last bytes of a regular file, at most this number. See [`read`].
pub fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = handle::open_regular_file(path)?;
    let start = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end)?;
    Ok(end)
}

/// Lists a directory. Fails with [`ErrorKind::InvalidData`] if it has more than a million entries.
pub fn entries(dir: &Path) -> io::Result<Vec<DirEntry>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        if found.len() == MAX_ENTRIES {
            return Err(io::Error::new(ErrorKind::InvalidData, "it has more than a million entries"));
        }
        found.push(entry?);
    }
    Ok(found)
}

/// True if a directory has no entry. `false` if it can't be listed.
pub fn is_empty_dir(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    #[test]
    fn only_regular_files_are_read_and_no_more_than_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "1234567890").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        std::fs::File::create(at("long")).unwrap().set_len(1 << 40).unwrap();
        for name in ["file", "link"] {
            assert_eq!(read(&at(name), 10).unwrap(), b"1234567890", "{name}");
            assert_eq!(read_end(&at(name), 3).unwrap(), b"890", "{name}");
            assert_eq!(read(&at(name), 9).unwrap_err().kind(), ErrorKind::FileTooLarge, "{name}");
        }
        assert_eq!(read(&at("long"), 5 << 20).unwrap_err().to_string(), "it has more than 5 MiB");
        assert_eq!(read_end(&at("long"), 4).unwrap(), [0; 4]);
        for name in ["pipe", "socket", "zero", "."] {
            for found in [read(&at(name), 10), read_end(&at(name), 10)] {
                assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
            }
        }
        assert_eq!(read(&at("none"), 10).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::write(at("bytes"), b"\xff").unwrap();
        assert_eq!(read_text(&at("bytes"), 10).unwrap_err().kind(), ErrorKind::InvalidData);
        // A file that tells no length.
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert_eq!(read(Path::new("/proc/self/status"), 10).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn directories_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_empty_dir(dir.path()));
        std::fs::write(dir.path().join("a"), "").unwrap();
        assert!(!is_empty_dir(dir.path()) && !is_empty_dir(&dir.path().join("a")));
        assert_eq!(entries(dir.path()).unwrap().len(), 1);
        entries(&dir.path().join("a")).unwrap_err();
    }
}
