//! Atomic replacement of a regular file: a temporary file in the same directory is written and renamed over it.

use super::WriteTo;
use crate::held_dir::HeldDir;
use crate::temporary::Temporary;
use crate::{handle, limits};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Bytes of free space required for an output before a run.
const PROBE_SIZE: u64 = 64 << 10;

/// Maximum bytes of the target's name in the name of its temporary file: a name is limited to 255 bytes.
const MAX_NAME_PREFIX: usize = 200;

/// Creates or atomically replaces the file at `path`, and flushes it to the device. See [`replace_in`].
pub fn replace(path: &Path, write: WriteTo<'_>) -> io::Result<()> {
    let (dir, name) = HeldDir::of_file(path)?;
    replace_in(&dir, &name, write)
}

/// Creates or atomically replaces a file of a directory, and flushes it to the device.
///
/// Mode and owner of an existing file are preserved. On an error the old file is unchanged. After a power failure the
/// name is that of either the complete old file or the complete new one.
pub fn replace_in(dir: &HeldDir, name: &OsStr, write: WriteTo<'_>) -> io::Result<()> {
    let publish: Publish<'_> = &|new, from, to| {
        new.file().sync_all()?;
        Ok(new.dir().rename(from, to)?)
    };
    replace_with(dir, name, write, publish).map(drop)
}

/// Gives a temporary file, whose name is the second argument, the third argument as its name.
pub(super) type Publish<'a> = &'a dyn Fn(&Temporary, &OsStr, &OsStr) -> io::Result<()>;

/// Writes a temporary file in the directory, and calls `publish` to rename it. Returns the new file, positioned
/// at its end.
///
/// The file is not flushed. After a benchmark the device may have gigabytes of dirty pages to write first: a flush of a
/// result has taken more than five seconds.
pub(super) fn replace_with(dir: &HeldDir, name: &OsStr, write: WriteTo<'_>, publish: Publish<'_>) -> io::Result<File> {
    let mut new = create_temporary(dir, name)?;
    if let Some(old) = dir.open_regular(name) {
        let meta = old.metadata()?;
        // Only root may change the owner of a file. If this fails, the new file belongs to the current user.
        let _ = fchown(new.file(), Some(meta.uid()), Some(meta.gid()));
        new.file().set_permissions(meta.permissions())?;
    }
    write_all(new.file(), 0, write)?;
    let from = new.name()?.to_owned();
    publish(&new, &from, name)?;
    new.renamed()
}

/// Writes to a file whose current length is `len` bytes.
///
/// Returns [`io::ErrorKind::FileTooLarge`] where the file would exceed `RLIMIT_FSIZE`, instead of raising `SIGXFSZ`.
pub(super) fn write_all(file: &File, len: u64, write: WriteTo<'_>) -> io::Result<()> {
    write_within(file, len, u64::MAX, write)
}

/// Does the same with a file that may have `most` bytes.
pub(super) fn write_within(file: &File, len: u64, most: u64, write: WriteTo<'_>) -> io::Result<()> {
    let max_len = limits::file_size().unwrap_or(u64::MAX).min(most);
    let mut out = BufWriter::with_capacity(1 << 16, LimitedFile { file, bytes_left: max_len.saturating_sub(len) });
    let done = write(&mut out).and_then(|()| out.flush());
    if done.is_err() {
        // Discard the buffer: dropping the `BufWriter` would write it.
        let _ = out.into_parts();
    }
    done
}

/// A file with a limit on the bytes that may still be written.
struct LimitedFile<'a> {
    file: &'a File,
    bytes_left: u64,
}

impl Write for LimitedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.bytes_left {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let n = self.file.write(bytes)?;
        self.bytes_left -= n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a temporary file that is to get a name.
fn create_temporary(dir: &HeldDir, name: &OsStr) -> io::Result<Temporary> {
    let mut hidden = OsString::from(".");
    hidden.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(MAX_NAME_PREFIX)]));
    dir.temporary(hidden)
}

/// Checks that a file can be created in a directory and that some space is free. Leaves no file behind.
pub(super) fn probe(dir: &HeldDir, name: &OsStr) -> io::Result<()> {
    let new = create_temporary(dir, name)?;
    let zeros = vec![0; PROBE_SIZE as usize];
    write_all(new.file(), 0, &mut |out| out.write_all(&zeros)).and_then(|()| handle::check_room(new.file(), PROBE_SIZE))
}
