//! An output that the command line names: a file, a pipe, a device, or standard output.

use super::WriteTo;
use super::replace::{probe, replaced, write_all};
use crate::os::{handle, proc};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A named pipe waits so long for its reader.
const READER: Duration = Duration::from_secs(1);

/// Links that lead from one to another: more is a circle.
const LINKS: usize = 40;

/// Which file it is, whatever it is called: device and inode.
pub type FileIdentity = (u64, u64);

/// The file that a path names, if there is one.
pub fn file_id(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// An output, checked: it can be opened, and what it would replace may be replaced.
#[derive(Debug)]
pub struct Target {
    kind: TargetKind,
    id: Option<FileIdentity>,
}

#[derive(Debug)]
enum TargetKind {
    /// A regular file, present or not yet: replaced as a whole.
    File(PathBuf),
    /// A pipe or a device, or a descriptor that was open at the start: takes bytes as they come.
    Stream(File),
}

impl Target {
    /// Opens or checks an output, and makes nothing yet. `-` is standard output; a link stands for the file that it names; a
    /// descriptor (`/dev/stdout`, `/dev/fd/N`) is used as it is. A named pipe must have a reader within a second. `read` are
    /// files that are read, such as the script: no output replaces them.
    pub fn open(path: &Path, read: &[FileIdentity]) -> io::Result<Self> {
        if let Some(fd) = descriptor(path) {
            let file = crate::os::fd::duplicate_file(fd)?;
            if handle::is_read_only(&file)? {
                return Err(io::Error::new(ErrorKind::PermissionDenied, "it is open for reading only"));
            }
            return Ok(Self { kind: TargetKind::Stream(file), id: None });
        }
        let path = resolved(path)?;
        let meta = match fs::metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                probe(&path)?;
                return Ok(Self { kind: TargetKind::File(path), id: None });
            }
            Err(error) => return Err(error),
        };
        let (id, kind) = ((meta.dev(), meta.ino()), meta.file_type());
        if read.contains(&id) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is the script itself"));
        }
        let kind = if kind.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        } else if kind.is_block_device() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is a block device"));
        } else if kind.is_file() {
            // A file that may not be written must not be replaced either, though the directory would allow it.
            OpenOptions::new().write(true).open(&path)?;
            probe(&path)?;
            TargetKind::File(path)
        } else {
            TargetKind::Stream(stream(&path)?)
        };
        Ok(Self { kind, id: Some(id) })
    }

    /// Which file it is, if there is one already.
    pub fn id(&self) -> Option<FileIdentity> {
        self.id
    }

    /// Whether a file is replaced; a stream gets everything, in order.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, TargetKind::File(_))
    }

    /// Writes the output: replaces a file, appends to a stream.
    pub fn write(&self, write: WriteTo<'_>) -> io::Result<()> {
        match &self.kind {
            TargetKind::File(path) => replaced(path, write).map(drop),
            TargetKind::Stream(file) => to_stream(file, write),
        }
    }
}

fn to_stream(file: &File, write: WriteTo<'_>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    let done = write(&mut out).and_then(|()| out.flush());
    if done.is_err() {
        let _ = out.into_parts();
    }
    done
}

/// The descriptor that a path stands for.
fn descriptor(path: &Path) -> Option<i32> {
    match path.to_str()? {
        "-" | "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        other => other.strip_prefix("/dev/fd/").or_else(|| other.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
    .filter(|fd| *fd >= 0)
}

/// The path without a link at its end: of a link that leads nowhere, where the file would be.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(_) if is_planted(&path)? => {
                let message = format!("`{}` is a link that somebody else put into a shared directory", path.display());
                return Err(io::Error::new(ErrorKind::PermissionDenied, message));
            }
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    // A circle: the system finds the word for it.
    fs::metadata(&path).map(|_| path)
}

/// Whether a link is one that the kernel does not follow either, if `fs.protected_symlinks` is set: in a directory where anybody may
/// write (`/tmp`), it is neither this user's nor that of the directory's owner.
fn is_planted(link: &Path) -> io::Result<bool> {
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    let above = link.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (link, above) = (fs::symlink_metadata(link)?, fs::metadata(above)?);
    let own = [proc::user(), above.uid()].contains(&link.uid());
    Ok(above.mode() & STICKY_AND_WRITABLE == STICKY_AND_WRITABLE && !own)
}

/// Opens a pipe or a device; waits a moment for a pipe's reader.
fn stream(path: &Path) -> io::Result<File> {
    let until = Instant::now() + READER;
    loop {
        if let Some(file) = handle::open_stream(path)? {
            return Ok(file);
        }
        if Instant::now() >= until {
            return Err(io::Error::new(ErrorKind::TimedOut, "nobody reads from it"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An output that grows: the first part replaces the file, further ones are appended to it.
#[derive(Debug)]
pub struct Appender {
    target: Target,
    /// The file and its length, once it has been made.
    file: Option<(File, u64)>,
}

impl Appender {
    /// With nothing written yet.
    pub fn new(target: Target) -> Self {
        Self { target, file: None }
    }

    /// Which file it is, if there was one.
    pub fn id(&self) -> Option<FileIdentity> {
        self.target.id
    }

    /// Whether it is a file; a stream takes as long as its reader.
    pub fn is_file(&self) -> bool {
        self.target.is_file()
    }

    /// Adds a part. One that can't be written as a whole is taken back.
    pub fn append(&mut self, write: WriteTo<'_>) -> io::Result<()> {
        let path = match &self.target.kind {
            TargetKind::Stream(file) => return to_stream(file, write),
            TargetKind::File(path) => path,
        };
        match &mut self.file {
            None => {
                let file = replaced(path, write)?;
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
    fn descriptors_are_known_by_their_names() {
        for (path, fd) in [("-", Some(1)), ("/dev/stdout", Some(1)), ("/dev/fd/63", Some(63)), ("/dev/fd/-1", None)] {
            assert_eq!(descriptor(Path::new(path)), fd, "{path}");
        }
        assert_eq!(descriptor(Path::new("/dev/fd/x")), None);
    }

    #[test]
    fn a_dangling_link_stands_for_the_file_that_it_names() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        let target = Target::open(&dir.path().join("link"), &[]).unwrap();
        target.write(&mut |out| out.write_all(b"text")).unwrap();
        assert_eq!(fs::read(dir.path().join("real")).unwrap(), b"text");
        assert!(fs::symlink_metadata(dir.path().join("link")).unwrap().is_symlink());
    }

    #[test]
    fn what_is_read_is_not_replaced_by_any_of_its_names() {
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
    fn parts_follow_one_another_and_a_failed_one_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        fs::write(&path, "old").unwrap();
        let mut appender = Appender::new(Target::open(&path, &[]).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"old", "nothing is written before there is something");
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
