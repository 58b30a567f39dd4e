//! I/O engines: the file-system calls that operations make.
//!
//! An engine is an implementation of [`Engine`] and one line in [`TABLE`]; its file says which features of the kernel
//! it needs, and what happens without them.
//!
//! - `posix` makes system calls; a pool of threads executes asynchronous I/O.
//! - `uring` makes the same system calls; `io_uring` executes asynchronous I/O.
//! - `null` makes no calls and always succeeds. It runs every code path without a disk, and shows the overhead of the
//!   tool.
//!
//! Without a choice on the command line, [`DEFAULT`] uses `io_uring` if the kernel allows it, else a pool of threads.
//!
//! Deliberately absent: flowops, statistics, time. Engines hold no state of a run.

mod null;
mod posix;

use posix::Posix;
use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use wml_os::fd::{self, Fd, NONE, Result};
use wml_os::{OFlags, SeekFrom, uring};

/// An open file of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// The file descriptor; [`NONE`] in an engine without files.
    pub fd: Fd,
    /// The file position of the kernel, in bytes, as far as this descriptor's own calls have moved it.
    pub position: u64,
    /// Offset of the next sequential I/O of flowops that pass offsets explicitly: strided, backward and asynchronous
    /// I/O.
    pub cursor: u64,
    /// File size in bytes, as far as known: the nominal size when it was opened, or what was read since, extended by the
    /// writes since.
    pub size: u64,
}

impl Handle {
    /// Sets the file position to an offset from the start.
    #[inline]
    pub fn seek(&mut self, offset: u64) -> Result<()> {
        self.seek_to(SeekFrom::Start(offset))
    }

    /// Sets the file position.
    #[inline]
    pub(crate) fn seek_to(&mut self, to: SeekFrom) -> Result<()> {
        let moved = call(self.fd, |fd| fd::seek(fd, to).map(Some))?;
        self.position = moved.unwrap_or_else(|| match to {
            SeekFrom::Start(offset) => offset,
            SeekFrom::End(by) => self.size.saturating_add_signed(by),
            SeekFrom::Current(by) => self.position.saturating_add_signed(by),
            _ => self.position,
        });
        Ok(())
    }

    /// Truncates or extends the file to `size` bytes.
    #[inline]
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        call(self.fd, |fd| fd::ftruncate(fd, size))?;
        self.size = size;
        Ok(())
    }

    /// Reads the size of the file in bytes.
    #[inline]
    pub(crate) fn read_size(&self) -> Result<u64> {
        let read = call(self.fd, |fd| fd::fstat(fd).map(|stat| Some(stat.size)))?;
        Ok(read.unwrap_or(self.size))
    }
}

/// The file-system calls that move data or the file position, and what depends on these. All others: [`call`]. `dir` is
/// the descriptor of the file's directory, `name` the last component of its path.
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// Returns its name on the command line and in results.
    fn name(&self) -> &'static str;
    /// True if it works on a file system. If not, no tree is created and no root is opened.
    fn real(&self) -> bool;
    /// Returns how it is to execute asynchronous I/O.
    fn asynchronous(&self) -> AsyncChoice;
    /// Opens a file of `size` bytes: a new one with `OFlags::CREATE`, else an existing one on the same mount. Follows
    /// no symbolic link.
    fn open(&self, dir: Fd, name: &CStr, flags: OFlags, size: u64) -> Result<Handle>;
    /// Closes a file. It is closed even on `Err`, which reports an earlier write that failed.
    fn close(&self, file: Handle) -> Result<()>;
    /// Reads at an offset. Returns the bytes read, as all reads do.
    fn pread(&self, file: &mut Handle, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes at an offset. Returns the bytes written, as all writes do.
    fn pwrite(&self, file: &mut Handle, buf: &[u8], offset: u64) -> Result<usize>;
    /// Reads at the file position and advances it.
    fn read(&self, file: &mut Handle, buf: &mut [u8]) -> Result<usize>;
    /// Writes at the file position and advances it.
    fn write(&self, file: &mut Handle, buf: &[u8]) -> Result<usize>;
    /// Reads into several buffers with one call, at an offset or at the file position, which it advances.
    fn readv(&self, file: &mut Handle, bufs: &mut [IoSliceMut<'_>], offset: Option<u64>) -> Result<usize>;
    /// Writes several buffers with one call, at an offset or at the file position, which it advances.
    fn writev(&self, file: &mut Handle, bufs: &[IoSlice<'_>], offset: Option<u64>) -> Result<usize>;
    /// Appends at the end of the file with one call if the file system has one, and returns the bytes written and
    /// the number of calls.
    fn append(&self, file: &mut Handle, buf: &[u8]) -> Result<(usize, u64)>;
    /// Sets the file position to the end of the file.
    fn seek_end(&self, file: &mut Handle) -> Result<()>;
    /// Reads a whole directory, or a part of it if `may_go_on` returns false meanwhile. Returns the bytes of its
    /// entries and the number of system calls.
    fn list(&self, dir: Fd, name: &CStr, buf: &mut [u8], may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)>;
    /// Reads a directory as [`Engine::list`] does, and the attributes of each entry. Returns the same.
    fn list_plus(&self, dir: Fd, name: &CStr, buf: &mut [u8], may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)>;
    /// Copies a range of one file to another inside the kernel. Returns the bytes copied.
    fn copy_range(&self, from: &Handle, from_offset: u64, to: &mut Handle, to_offset: u64, len: u64) -> Result<u64>;
    /// Sends a range of the file to the open file `sink` without a copy to user space. Returns the bytes sent, fewer than
    /// `len` at the end of the file. Does not move the file position.
    fn send(&self, file: &Handle, offset: u64, sink: Fd, len: u64) -> Result<u64>;
}

/// Makes a system call on a file or directory that neither transfers data nor moves the file position, and so needs no
/// method of each engine. An engine without files has no descriptors, only [`NONE`]: there it succeeds without a call.
#[inline]
pub fn call<T: Default>(fd: Fd, call: impl FnOnce(Fd) -> Result<T>) -> Result<T> {
    if fd == NONE { Ok(T::default()) } else { call(fd) }
}

/// Returns the size of a directory's entry as Filebench counts it: a fixed part, and the name without its terminator.
pub(crate) fn entry_size(name: &CStr) -> u64 {
    279 + name.count_bytes() as u64
}

/// How an engine is to execute asynchronous I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncChoice {
    /// By `io_uring`.
    Ring,
    /// By a pool of threads in each process.
    Pool,
    /// By `io_uring` if the kernel allows it, else by a pool of threads.
    RingOrPool,
    /// Immediately, without a call.
    AtOnce,
}

/// How asynchronous I/O is executed on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asynchronous {
    /// `io_uring`.
    Ring,
    /// A pool of threads in each process.
    Pool,
    /// Completes immediately, without a call.
    AtOnce,
}

impl AsyncChoice {
    /// Resolves the choice for this machine. Returns the kernel's error if [`Self::Ring`] is not available.
    pub fn resolve(self) -> Result<Asynchronous> {
        match self {
            Self::Ring => uring::available().map(|()| Asynchronous::Ring),
            Self::RingOrPool if uring::available().is_ok() => Ok(Asynchronous::Ring),
            Self::RingOrPool | Self::Pool => Ok(Asynchronous::Pool),
            Self::AtOnce => Ok(Asynchronous::AtOnce),
        }
    }
}

/// The engine of a run without `--engine`.
pub const DEFAULT: &dyn Engine = &Posix(AsyncChoice::RingOrPool);

/// All engines that `--engine` accepts, each with a description.
pub const TABLE: &[(&dyn Engine, &str)] = &[
    (&Posix(AsyncChoice::Pool), "system calls on a file system, asynchronous I/O by a pool of threads"),
    (&Posix(AsyncChoice::Ring), "system calls on a file system, asynchronous I/O by io_uring"),
    (&null::Null, "no I/O, every call succeeds: measures the overhead of wmlrun"),
];

pub fn find(name: &str) -> Option<&'static dyn Engine> {
    TABLE.iter().map(|(engine, _)| *engine).find(|engine| engine.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_by_their_names() {
        assert_eq!(TABLE.iter().map(|(engine, _)| engine.name()).collect::<Vec<_>>(), ["posix", "uring", "null"]);
        assert_eq!(find("uring").map(Engine::asynchronous), Some(AsyncChoice::Ring));
        assert!(find("sync").is_none());
    }
}
