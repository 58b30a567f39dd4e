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

use crate::os::fd::{Fd, Result, Stat};
use crate::os::inode::InodeChange;
use crate::os::mapped::FileMap;
use crate::os::range::Lock;
use crate::os::uring;
use crate::os::{Advice, FileType, OFlags};
use posix::Posix;
use std::ffi::CStr;

/// An open file of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// The file descriptor; [`crate::os::NONE`] in an engine without files.
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

/// File-system calls. `dir` is the descriptor of the file's directory, `name` the last component of its path.
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// Returns its name on the command line and in results.
    fn name(&self) -> &'static str;
    /// Returns whether it works on a file system. If not, no tree is created and no root is opened.
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
    /// Sets the file position to an offset from the start.
    fn seek(&self, file: &mut Handle, offset: u64) -> Result<()>;
    /// Sets the file position to the end of the file.
    fn seek_end(&self, file: &mut Handle) -> Result<()>;
    /// Truncates or extends the file to `size` bytes.
    fn truncate(&self, file: &mut Handle, size: u64) -> Result<()>;
    /// Flushes data and metadata of a file to the device.
    fn fsync(&self, file: &mut Handle) -> Result<()>;
    /// Flushes a directory to the device: opens it for reading, flushes and closes it.
    fn fsync_dir(&self, dir: Fd) -> Result<()>;
    /// Flushes the data of a file to the device.
    fn fdatasync(&self, file: &mut Handle) -> Result<()>;
    /// Returns the attributes of an open file.
    fn stat_open(&self, file: &Handle) -> Result<Stat>;
    /// Returns the type of the file with a name. Follows no symbolic link.
    fn stat(&self, dir: Fd, name: &CStr) -> Result<FileType>;
    /// Removes a file.
    fn unlink(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Creates a directory.
    fn mkdir(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Removes a directory.
    fn rmdir(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Reads a whole directory, or a part of it if `may_go_on` returns false meanwhile. Returns the bytes of its
    /// entries and the number of system calls.
    fn list(&self, dir: Fd, name: &CStr, buf: &mut [u8], may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)>;
    /// Reads a directory as [`Engine::list`] does, and the attributes of each entry. Returns the same.
    fn list_plus(&self, dir: Fd, name: &CStr, buf: &mut [u8], may_go_on: &dyn Fn() -> bool) -> Result<(u64, u64)>;
    /// Renames a file; replaces an existing file of the new name.
    fn rename(&self, dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()>;
    /// Creates a hard link.
    fn link(&self, dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()>;
    /// Creates a symbolic link with the target `text`.
    fn symlink(&self, text: &CStr, dir: Fd, name: &CStr) -> Result<()>;
    /// Reads the target of a symbolic link. Returns its length in bytes.
    fn read_link(&self, dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<usize>;
    /// Allocates space for a range of the file. Extends the file to the end of the range, unless `keep_size` is set.
    fn allocate(&self, file: &mut Handle, offset: u64, len: u64, keep_size: bool) -> Result<()>;
    /// Deallocates a range of the file, which then reads as zeros.
    fn punch(&self, file: &mut Handle, offset: u64, len: u64) -> Result<()>;
    /// Advises the kernel how a range of the file will be used; `len` 0: to the end of the file.
    fn advise(&self, file: &Handle, offset: u64, len: u64, advice: Advice) -> Result<()>;
    /// Starts writeback of the dirty pages of a range, and waits for it if `wait` is set; `len` 0: to the end of the
    /// file.
    fn sync_range(&self, file: &Handle, offset: u64, len: u64, wait: bool) -> Result<()>;
    /// Locks a range, or unlocks it if `lock` is `None`; `len` 0: to the end of the file. Does not wait: returns
    /// `AGAIN` if another open file description holds the lock.
    fn lock(&self, file: &Handle, offset: u64, len: u64, lock: Option<Lock>) -> Result<()>;
    /// Copies a range of one file to another inside the kernel. Returns the bytes copied.
    fn copy_range(&self, from: &Handle, from_offset: u64, to: &mut Handle, to_offset: u64, len: u64) -> Result<u64>;
    /// Sends a range of the file to the open file `sink` without a copy to user space. Returns the bytes sent, fewer than
    /// `len` at the end of the file. Does not move the file position.
    fn send(&self, file: &Handle, offset: u64, sink: Fd, len: u64) -> Result<u64>;
    /// Changes times, mode or owner of the file with a name. Returns the number of system calls beyond the first.
    fn change(&self, dir: Fd, name: &CStr, change: &InodeChange) -> Result<u64>;
    /// Changes times, mode or owner of an open file.
    fn change_open(&self, file: &Handle, change: &InodeChange) -> Result<()>;
    /// Checks whether the file with a name can be read.
    fn access(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Sets an extended attribute.
    fn set_xattr(&self, file: &Handle, name: &CStr, value: &[u8]) -> Result<()>;
    /// Reads an extended attribute. Returns its length in bytes.
    fn get_xattr(&self, file: &Handle, name: &CStr, buf: &mut [u8]) -> Result<usize>;
    /// Reads the names of the extended attributes. Returns their length in bytes.
    fn list_xattrs(&self, file: &Handle, buf: &mut [u8]) -> Result<usize>;
    /// Queries the statistics of the file system of a directory.
    fn statfs(&self, dir: Fd) -> Result<()>;
    /// Flushes the whole file system of a file to the device.
    fn syncfs(&self, file: &Handle) -> Result<()>;
    /// Maps the first `len` bytes of a file into memory. `None` when the engine has no files.
    fn map(&self, file: &Handle, len: u64, write: bool) -> Result<Option<FileMap>>;
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

/// Returns the engine of that name.
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
