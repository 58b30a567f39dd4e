//! A regular file is replaced as a whole: a temporary beside it is written and renamed.

use super::WriteTo;
use crate::os::temporary::Temporary;
use crate::os::{handle, limits};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Room that an output must find before a run.
const ROOM: u64 = 64 << 10;

/// Bytes of a file's name that its temporary's name repeats: a name may have 255.
const REPEATED: usize = 200;

/// Replaces what a path names, or makes it. Mode and owner of an existing file are kept. On an error the old file is whole, and
/// after a power cut either of them.
pub fn replace(path: &Path, write: WriteTo<'_>) -> io::Result<()> {
    let synced = &mut |file: &File| file.sync_all();
    replaced_with(path, write, synced).map(drop)
}

/// The same without a wait for the device, which after a benchmark may have gigabytes to write first: a flush of a result has
/// taken more than five seconds. Returns the new file, positioned at its end.
pub(super) fn replaced(path: &Path, write: WriteTo<'_>) -> io::Result<File> {
    replaced_with(path, write, &mut |_| Ok(()))
}

fn replaced_with(path: &Path, write: WriteTo<'_>, synced: &mut dyn FnMut(&File) -> io::Result<()>) -> io::Result<File> {
    let mut new = temporary(path)?;
    if let Ok(meta) = fs::metadata(path) {
        // Only root may give files away; of another user's file a copy of one's own remains.
        let _ = fchown(new.file(), Some(meta.uid()), Some(meta.gid()));
        new.file().set_permissions(meta.permissions())?;
    }
    write_all(new.file(), 0, write)?;
    synced(new.file())?;
    let target = path.file_name().unwrap_or_default();
    let from = new.name()?.to_owned();
    handle::rename(new.dir(), &from, target)?;
    new.renamed()
}

/// Writes to a file that has `len` bytes. The limit on file sizes is an error here, not a signal.
pub(super) fn write_all(file: &File, len: u64, write: WriteTo<'_>) -> io::Result<()> {
    let most = limits::file_size().unwrap_or(u64::MAX);
    let mut out = BufWriter::with_capacity(1 << 16, Within { file, bytes_left: most.saturating_sub(len) });
    let done = write(&mut out).and_then(|()| out.flush());
    if done.is_err() {
        // What is still in the buffer is not wanted any more.
        let _ = out.into_parts();
    }
    done
}

/// A file up to the limit on its size.
struct Within<'a> {
    file: &'a File,
    bytes_left: u64,
}

impl Write for Within<'_> {
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

/// A new file beside `path`.
fn temporary(path: &Path) -> io::Result<Temporary> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?.as_bytes();
    let mut hidden = OsString::from(".");
    hidden.push(OsString::from_vec(name[..name.len().min(REPEATED)].to_vec()));
    // The number keeps apart programs that write to one name.
    hidden.push(format!(".{}.tmp", std::process::id()));
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Temporary::new(handle::open_dir(dir)?, hidden)
}

/// Checks that a file can be made beside `path` and finds some room, and leaves nothing.
pub(super) fn probe(path: &Path) -> io::Result<()> {
    let new = temporary(path)?;
    let zeros = vec![0; ROOM as usize];
    write_all(new.file(), 0, &mut |out| out.write_all(&zeros)).and_then(|()| handle::check_room(new.file(), ROOM))
}
