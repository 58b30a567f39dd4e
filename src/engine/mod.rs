//! The calls that operations are made of.
//!
//! An engine is an [`Engine`] and one line in [`TABLE`]. `posix` makes the system calls; `null` makes none and answers at once,
//! so that every path can be run without a disk and the tool's own cost is seen. `uring` makes the calls of `posix`, and has
//! asynchronous I/O done by the kernel, not by a pool of threads; if neither is asked for by name, the kernel decides
//! ([`DEFAULT`]).
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

/// An open file, as engines see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// The descriptor; engines without files use [`crate::os::NONE`].
    pub fd: Fd,
    /// Where the next sequential read or write happens, as far as we moved it.
    pub position: u64,
    /// Where the next one happens of those that name their offsets: strided, backward, asynchronous ones.
    pub cursor: u64,
    /// Bytes in the file, as far as we know: its size when it was opened, and what was written since.
    pub size: u64,
}

/// The calls. `dir` is the descriptor of the file's directory, `name` its last component.
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// Its name on the command line and in results.
    fn name(&self) -> &'static str;
    /// Whether there is a file system behind it: if not, no tree is made and no root opened.
    fn real(&self) -> bool;
    /// How operations run that their threads do not wait for.
    fn asynchronous(&self) -> Asynchronous;
    /// Opens a file of `size` bytes: with `OFlags::CREATE` a new one, else one that is there, on the same mount and by no link.
    fn open(&self, dir: Fd, name: &CStr, flags: OFlags, size: u64) -> Result<Handle>;
    /// Closes it. An error is of what was written before; closed it is in any case.
    fn close(&self, file: Handle) -> Result<()>;
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
    fn stat(&self, dir: Fd, name: &CStr) -> Result<FileType>;
    /// Removes a file.
    fn unlink(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Makes a directory.
    fn mkdir(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Removes a directory.
    fn rmdir(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Reads a whole directory; the bytes of its names and entries, and the system calls that took.
    fn list(&self, dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<(u64, u64)>;
    /// Reads a whole directory and asks for the attributes of everything in it; bytes and system calls as [`Engine::list`].
    fn list_plus(&self, dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<(u64, u64)>;
    /// Moves a name.
    fn rename(&self, dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()>;
    /// Gives a file another name.
    fn link(&self, dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()>;
    /// Makes a symbolic link that holds `text`.
    fn symlink(&self, text: &CStr, dir: Fd, name: &CStr) -> Result<()>;
    /// Reads a symbolic link.
    fn read_link(&self, dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<usize>;
    /// Allocates room for a range of the file, which grows if the range passes its end, unless it is to keep its size.
    fn allocate(&self, file: &mut Handle, offset: u64, len: u64, keep_size: bool) -> Result<()>;
    /// Gives the room of a stretch of the file back.
    fn punch(&self, file: &mut Handle, offset: u64, len: u64) -> Result<()>;
    /// Tells how a range of the file will be used; `len` 0: to its end.
    fn advise(&self, file: &Handle, offset: u64, len: u64, advice: Advice) -> Result<()>;
    /// Has the dirty pages of a range written, and may wait for them; `len` 0: to the end of the file.
    fn sync_range(&self, file: &Handle, offset: u64, len: u64, wait: bool) -> Result<()>;
    /// Takes the lock of a range, or gives it back; `len` 0: to the end of the file. It does not wait: `AGAIN` if another open
    /// file has it.
    fn lock(&self, file: &Handle, offset: u64, len: u64, lock: Option<Lock>) -> Result<()>;
    /// Copies a stretch of one file to another; how many bytes of it.
    fn copy_range(&self, from: &Handle, from_offset: u64, to: &mut Handle, to_offset: u64, len: u64) -> Result<u64>;
    /// Changes times, mode or owner of a name.
    fn change(&self, dir: Fd, name: &CStr, change: &InodeChange) -> Result<()>;
    /// Changes those of an open file.
    fn change_open(&self, file: &Handle, change: &InodeChange) -> Result<()>;
    /// Asks whether a name may be read.
    fn access(&self, dir: Fd, name: &CStr) -> Result<()>;
    /// Sets an extended attribute.
    fn set_xattr(&self, file: &Handle, name: &CStr, value: &[u8]) -> Result<()>;
    /// Reads an extended attribute; its length.
    fn get_xattr(&self, file: &Handle, name: &CStr, buf: &mut [u8]) -> Result<usize>;
    /// Reads the names of extended attributes; the bytes they take.
    fn list_xattrs(&self, file: &Handle, buf: &mut [u8]) -> Result<usize>;
    /// Asks for the room on the file system of a directory.
    fn statfs(&self, dir: Fd) -> Result<()>;
    /// The whole file system of a file down to the device.
    fn syncfs(&self, file: &Handle) -> Result<()>;
    /// The first `len` bytes of a file as memory; `None` where there are no files.
    fn map(&self, file: &Handle, len: u64, write: bool) -> Result<Option<FileMap>>;
}

/// How operations run that their threads do not wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asynchronous {
    /// By `io_uring`.
    Ring,
    /// By a pool of threads in each process.
    Pool,
    /// By `io_uring` where the kernel allows it, else by a pool.
    RingOrPool,
    /// At once: there is nothing to wait for.
    AtOnce,
}

impl Asynchronous {
    /// What it comes to on this machine. An error says why the kernel gives no ring though there must be one.
    pub fn resolve(self) -> Result<Self> {
        match self {
            Self::Ring => uring::available().map(|()| self),
            Self::RingOrPool => Ok(if uring::available().is_ok() { Self::Ring } else { Self::Pool }),
            Self::Pool | Self::AtOnce => Ok(self),
        }
    }
}

/// The engine of a run whose command line names none.
pub const DEFAULT: &dyn Engine = &Posix(Asynchronous::RingOrPool);

/// All engines: name, what it is for, and the one instance of it.
pub const TABLE: &[(&str, &str, &dyn Engine)] = &[
    ("posix", "system calls on a real file system, asynchronous I/O by a pool of threads", &Posix(Asynchronous::Pool)),
    ("uring", "the same, asynchronous I/O by io_uring", &Posix(Asynchronous::Ring)),
    ("null", "no I/O at all: the cost of the tool itself", &null::Null),
];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    TABLE.iter().find(|(n, _, _)| *n == name).map(|(_, _, engine)| *engine)
}
