//! The calls that operations are made of.
//!
//! An engine is one file and one line in [`TABLE`]. `posix` makes the system calls; `null` makes none and answers at once, so
//! that every path can be run without a disk and the tool's own cost is seen.
//! Deliberately absent: flowops, statistics, time. Engines hold no state of a run.

mod null;
mod posix;

use crate::sys::fd::{Fd, Result, Stat};
use rustix::fs::OFlags;
use std::ffi::CStr;

/// An open file, as engines see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// The descriptor; engines without files use [`crate::sys::NONE`].
    pub fd: Fd,
    /// Where the next sequential read or write happens, as far as we moved it.
    pub position: u64,
    /// Bytes in the file, as far as we know: its size when it was opened, and what was written since.
    pub size: u64,
}

/// The calls. `dir` is the descriptor of the file's directory, `name` its last component.
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// Its name on the command line and in results.
    fn name(&self) -> &'static str;
    /// Whether there is a file system behind it: if not, no tree is made and no root opened.
    fn real(&self) -> bool;
    /// Opens a file of `size` bytes. With `OFlags::CREATE` it is made if it is not there.
    fn open(&self, dir: Fd, name: &CStr, flags: OFlags, size: u64) -> Result<Handle>;
    /// Closes it.
    fn close(&self, file: Handle);
    /// Reads at an offset.
    fn pread(&self, file: &mut Handle, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes at an offset.
    fn pwrite(&self, file: &mut Handle, buf: &[u8], offset: u64) -> Result<usize>;
    /// Reads on from the position.
    fn read(&self, file: &mut Handle, buf: &mut [u8]) -> Result<usize>;
    /// Writes on from the position.
    fn write(&self, file: &mut Handle, buf: &[u8]) -> Result<usize>;
    /// Moves the position to an offset from the start.
    fn seek(&self, file: &mut Handle, offset: u64) -> Result<()>;
    /// Moves the position to the end of the file.
    fn seek_end(&self, file: &mut Handle) -> Result<()>;
    /// Cuts or grows the file.
    fn truncate(&self, file: &mut Handle, size: u64) -> Result<()>;
    /// Data and metadata down to the device.
    fn fsync(&self, file: &mut Handle) -> Result<()>;
    /// Data down to the device.
    fn fdatasync(&self, file: &mut Handle) -> Result<()>;
    /// `fstat`.
    fn stat_open(&self, file: &Handle) -> Result<Stat>;
    /// `stat` of a name.
    fn stat(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Removes a file.
    fn unlink(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Makes a directory.
    fn mkdir(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Removes a directory.
    fn rmdir(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Reads a whole directory; the bytes of its names and entries, and the system calls that took.
    fn list(&self, dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<(u64, u64)>;
    /// Tells that access will be random.
    fn no_readahead(&self, file: &Handle) -> Result<()>;
}

/// All engines: name, what it is for, and the one instance of it.
pub const TABLE: &[(&str, &str, &dyn Engine)] = &[
    ("posix", "system calls on a real file system", &posix::Posix),
    ("null", "no I/O at all: the cost of the tool itself", &null::Null),
];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    TABLE.iter().find(|(n, _, _)| *n == name).map(|(_, _, engine)| *engine)
}
