//! Outputs named on the command line: a file, a pipe, a device, or standard output.

use super::replace::{probe, replace_with, write_all};
use super::{HEAD_LENGTH, WriteTo};
use crate::held_dir::HeldDir;
use crate::{Errno, FileType, OFlags, handle};
use parking_lot::Mutex;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time to wait for a reader of a named pipe.
const READER_TIMEOUT: Duration = Duration::from_secs(1);

/// The identity of a file, independent of its name: device and inode number.
pub type FileIdentity = (u64, u64);

/// Returns the identity of the file at `path`. `None` when it can't be examined, such as when it does not exist.
pub fn file_id(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// A checked output: it can be opened or created, and may replace the existing file.
#[derive(Debug)]
pub struct Target {
    kind: TargetKind,
    id: Option<FileIdentity>,
    /// True if the first bytes of a file are those of such an output.
    is_own: fn(&[u8]) -> bool,
    /// The regular file that may be replaced: the one that [`Self::open`] found, or that was written since.
    replaceable: Mutex<Option<FileState>>,
}

/// The identity of a file and the state of its contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileState {
    id: FileIdentity,
    length: u64,
    /// Time of the last change of the contents, in seconds and nanoseconds.
    modified: (i64, i64),
}

impl FileState {
    fn of(meta: &fs::Metadata) -> Self {
        Self { id: (meta.dev(), meta.ino()), length: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) }
    }
}

/// A name in a directory that is held.
#[derive(Debug)]
struct PlaceInDir {
    dir: HeldDir,
    name: OsString,
}

impl PlaceInDir {
    /// Returns the first bytes of a regular file.
    fn head(&self) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        self.dir.open_regular(&self.name)?.take(HEAD_LENGTH).read_to_end(&mut head).ok()?;
        Some(head)
    }
}

#[derive(Debug)]
enum TargetKind {
    /// A regular file, existing or not: replaced atomically.
    File(PlaceInDir),
    /// A pipe, a device, or a descriptor inherited at program start: bytes are written to it in order.
    Stream(File),
}

impl Target {
    /// Opens or checks an output without creating a file.
    ///
    /// `-` is standard output. A symbolic link is resolved. A descriptor (`/dev/stdout`, `/dev/fd/N`) is duplicated.
    /// `read` lists input files, such as the script.
    ///
    /// Returns an error when the path can't be written, is a directory, a block device or one of `read`, or is a named
    /// pipe that no process opens for reading within a second.
    pub fn open(path: &Path, read: &[FileIdentity]) -> io::Result<Self> {
        if let Some(fd) = descriptor_of(path) {
            let file = crate::fd::duplicate_file(fd)?;
            if handle::is_read_only(&file)? {
                return Err(io::Error::new(ErrorKind::PermissionDenied, "it is open for reading only"));
            }
            return Ok(Self::new(TargetKind::Stream(file), None));
        }
        let (dir, name) = HeldDir::of_file(path)?;
        let at = PlaceInDir { dir, name };
        let Some(found) = at.dir.find(&at.name)? else {
            probe(&at.dir, &at.name)?;
            return Ok(Self::new(TargetKind::File(at), None));
        };
        if read.contains(&found.id()) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is one of the files that are read"));
        }
        match found.kind {
            FileType::Directory => Err(ErrorKind::IsADirectory.into()),
            FileType::BlockDevice => Err(io::Error::new(ErrorKind::InvalidInput, "it is a block device")),
            FileType::RegularFile => {
                // A rename needs write permission on the directory only. A file without write permission must not be
                // replaced either.
                let meta = at.dir.open_file(&at.name, OFlags::WRONLY)?.metadata()?;
                probe(&at.dir, &at.name)?;
                Ok(Self::new(TargetKind::File(at), Some(FileState::of(&meta))))
            }
            _ => {
                let target = Self::new(TargetKind::Stream(open_stream(&at)?), None);
                Ok(Self { id: Some(found.id()), ..target })
            }
        }
    }

    /// Returns an error if the output would replace another file: an existing regular file that is not empty, and whose
    /// first bytes [`Self::recognizing`] does not accept. With `force` any file is replaced.
    pub fn unless_foreign(self, force: bool) -> io::Result<Self> {
        let is_foreign = match (&self.kind, &*self.replaceable.lock()) {
            (TargetKind::File(at), Some(found)) => {
                found.length > 0 && !at.head().is_some_and(|head| (self.is_own)(&head))
            }
            _ => false,
        };
        match is_foreign && !force {
            true => Err(io::Error::new(ErrorKind::AlreadyExists, "it exists, and has other content")),
            false => Ok(self),
        }
    }

    /// Returns an error if the directory of the output has been moved, removed or replaced since it was opened.
    pub fn check_in_place(&self) -> io::Result<()> {
        self.directory().map_or(Ok(()), HeldDir::check_in_place)
    }

    /// Returns the directory of the output. `None` for a stream.
    pub fn directory(&self) -> Option<&HeldDir> {
        match &self.kind {
            TargetKind::File(at) => Some(&at.dir),
            TargetKind::Stream(_) => None,
        }
    }

    fn new(kind: TargetKind, found: Option<FileState>) -> Self {
        Self { kind, id: found.map(|found| found.id), is_own: |_| false, replaceable: Mutex::new(found) }
    }

    /// Lets the output also replace a file that has been written since [`Self::open`], if `is_own` accepts its first
    /// bytes.
    #[must_use]
    pub fn recognizing(self, is_own: fn(&[u8]) -> bool) -> Self {
        Self { is_own, ..self }
    }

    /// Returns the identity of the existing file. `None` when the file did not exist at [`Self::open`], or for a
    /// descriptor.
    pub fn id(&self) -> Option<FileIdentity> {
        self.id
    }

    /// True if the output is a regular file, which [`Self::write`] replaces. All other outputs are streams.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, TargetKind::File(_))
    }

    /// Writes the output: replaces a regular file, or appends to a stream.
    ///
    /// Returns [`ErrorKind::AlreadyExists`] when another program has created or changed the file since it was checked,
    /// which may have been hours ago.
    pub fn write(&self, write: WriteTo<'_>) -> io::Result<()> {
        match &self.kind {
            TargetKind::File(at) => self.replace(at, write).map(drop),
            TargetKind::Stream(file) => write_to_stream(file, write),
        }
    }

    /// Creates or replaces the regular file. Returns the new one, positioned at its end.
    fn replace(&self, at: &PlaceInDir, write: WriteTo<'_>) -> io::Result<File> {
        let file = replace_with(&at.dir, &at.name, write, &|new, from, to| {
            if self.may_replace(at) {
                return Ok(new.dir().rename(from, to)?);
            }
            new.dir().rename_new(from, to).map_err(|error| match error {
                Errno::EXIST => {
                    io::Error::new(ErrorKind::AlreadyExists, "another program has created or changed it meanwhile")
                }
                error => error.into(),
            })
        })?;
        *self.replaceable.lock() = Some(FileState::of(&file.metadata()?));
        Ok(file)
    }

    /// True if a regular file exists and may be replaced.
    fn may_replace(&self, at: &PlaceInDir) -> bool {
        let Ok(meta) = at.dir.open_file(&at.name, OFlags::WRONLY).and_then(|file| file.metadata()) else {
            return false;
        };
        let is_known = || Some(FileState::of(&meta)) == *self.replaceable.lock();
        meta.len() == 0 || is_known() || at.head().is_some_and(|head| (self.is_own)(&head))
    }
}

fn write_to_stream(file: &File, write: WriteTo<'_>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    let done = write(&mut out).and_then(|()| out.flush());
    if done.is_err() {
        let _ = out.into_parts();
    }
    done
}

/// Returns the number of the descriptor that a path such as `/dev/fd/3` denotes. `None` for all other paths.
pub(super) fn descriptor_of(path: &Path) -> Option<i32> {
    match path.to_str()? {
        "-" | "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        other => other.strip_prefix("/dev/fd/").or_else(|| other.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
    .filter(|fd| *fd >= 0)
}

/// Opens a pipe or a device for writing. Waits up to [`READER_TIMEOUT`] for a reader of a pipe.
fn open_stream(at: &PlaceInDir) -> io::Result<File> {
    let until = Instant::now() + READER_TIMEOUT;
    loop {
        if let Some(file) = at.dir.open_stream(&at.name)? {
            return Ok(file);
        }
        if Instant::now() >= until {
            return Err(io::Error::new(ErrorKind::TimedOut, "no process reads from it"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An output that grows: the first part replaces the file, later parts are appended.
#[derive(Debug)]
pub struct Appender {
    target: Target,
    /// The file and its length in bytes. `None` before the first part is written.
    file: Option<(File, u64)>,
}

impl Appender {
    /// Creates an appender. Nothing is written yet.
    pub fn new(target: Target) -> Self {
        Self { target, file: None }
    }

    /// Returns the identity of the existing file, see [`Target::id`].
    pub fn id(&self) -> Option<FileIdentity> {
        self.target.id
    }

    /// Returns the directory of the output. `None` for a stream.
    pub fn directory(&self) -> Option<&HeldDir> {
        self.target.directory()
    }

    /// True if the output is a regular file. A write to a stream can block for as long as its reader does.
    pub fn is_file(&self) -> bool {
        self.target.is_file()
    }

    /// Appends a part. On an error a partially written part is truncated away, unless the output is a stream.
    pub fn append(&mut self, write: WriteTo<'_>) -> io::Result<()> {
        let at = match &self.target.kind {
            TargetKind::Stream(file) => return write_to_stream(file, write),
            TargetKind::File(at) => at,
        };
        match &mut self.file {
            None => {
                let file = self.target.replace(at, write)?;
                let len = file.metadata()?.len();
                self.file = Some((file, len));
                Ok(())
            }
            Some((file, len)) => {
                if let Err(error) = write_all(file, *len, write) {
                    file.set_len(*len)?;
                    io::Seek::seek(file, io::SeekFrom::End(0))?;
                    return Err(error);
                }
                *len = file.metadata()?.len();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn paths_of_descriptors_are_recognized() {
        for (path, fd) in [("-", Some(1)), ("/dev/stdout", Some(1)), ("/dev/fd/63", Some(63)), ("/dev/fd/-1", None)] {
            assert_eq!(descriptor_of(Path::new(path)), fd, "{path}");
        }
        assert_eq!(descriptor_of(Path::new("/dev/fd/x")), None);
    }

    #[test]
    fn a_dangling_link_is_resolved_to_the_missing_file() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        let target = Target::open(&dir.path().join("link"), &[]).unwrap();
        target.write(&mut |out| out.write_all(b"text")).unwrap();
        assert_eq!(fs::read(dir.path().join("real")).unwrap(), b"text");
        assert!(fs::symlink_metadata(dir.path().join("link")).unwrap().is_symlink());
    }

    #[test]
    fn an_input_file_is_not_replaced_under_any_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "text").unwrap();
        fs::hard_link(&script, dir.path().join("other")).unwrap();
        std::os::unix::fs::symlink("script", dir.path().join("link")).unwrap();
        let id = [file_id(&script).unwrap()];
        for name in ["script", "other", "link"] {
            assert!(Target::open(&dir.path().join(name), &id).is_err(), "{name}");
        }
        assert_eq!(names(dir.path()).len(), 3);
    }

    #[test]
    fn a_file_that_appeared_or_changed_since_the_check_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let open = || Target::open(&path, &[]).unwrap().recognizing(|head| head.starts_with(b"ours"));
        let put = |target: &Target, text: &str| target.write(&mut |out| out.write_all(text.as_bytes()));
        let refused = |target: &Target| put(target, "ours").unwrap_err().kind();
        let early = open();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(refused(&early), ErrorKind::AlreadyExists);
        let mut appender = Appender::new(early);
        let appended = appender.append(&mut |out| out.write_all(b"ours"));
        assert_eq!(appended.unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&path).unwrap(), names(dir.path())), (b"theirs".to_vec(), vec!["out".to_owned()]));
        // The file that was found is replaced, and what was written instead of it, but no later content.
        let target = open();
        put(&target, "one").unwrap();
        put(&target, "two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        fs::write(&path, "theirs, in place").unwrap();
        assert_eq!(refused(&target), ErrorKind::AlreadyExists);
        // The output of another process of the same kind, or an empty file.
        for text in ["ours, too", ""] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, text).unwrap();
            put(&target, "three").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"three");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(put(&target, "four").is_err());
        assert_eq!(names(dir.path()), ["out"]);
    }

    #[test]
    fn parts_are_appended_and_a_failed_part_is_truncated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        fs::write(&path, "old").unwrap();
        let mut appender = Appender::new(Target::open(&path, &[]).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"old", "nothing is written before the first part");
        appender.append(&mut |out| out.write_all(b"one\n")).unwrap();
        let failed = appender.append(&mut |out| {
            out.write_all(&vec![b'x'; 1 << 17])?;
            Err(ErrorKind::StorageFull.into())
        });
        assert!(failed.is_err());
        appender.append(&mut |out| out.write_all(b"two\n")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(names(dir.path()), ["trace"]);
    }
}
