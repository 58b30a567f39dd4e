//! Calls on a range of an open file that move no data through the program: its room, its cache, its locks.

use super::fd::{Fd, Result, borrow};
use rustix::fs::{self as rfs, Advice, FallocateFlags};
use rustix::io::Errno;
use std::num::NonZeroU64;

/// Allocates room for a range of a file, which grows if the range passes its end, unless it is to keep its size.
#[inline]
pub fn allocate(fd: Fd, offset: u64, len: u64, keep_size: bool) -> Result<()> {
    let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
    rfs::fallocate(borrow(fd), flags, offset, len)
}

/// Gives the room of a range of a file back; it reads as zeros, and the file keeps its size.
#[inline]
pub fn punch_hole(fd: Fd, offset: u64, len: u64) -> Result<()> {
    rfs::fallocate(borrow(fd), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
}

/// Copies bytes from one file to another inside the kernel; how many, at most `len`.
#[inline]
pub fn copy_range(from: Fd, mut from_offset: u64, to: Fd, mut to_offset: u64, len: usize) -> Result<usize> {
    rfs::copy_file_range(borrow(from), Some(&mut from_offset), borrow(to), Some(&mut to_offset), len)
}

/// Tells the kernel how a range of a file will be used; `len` 0: to its end.
#[inline]
pub fn advise(fd: Fd, offset: u64, len: u64, advice: Advice) -> Result<()> {
    rfs::fadvise(borrow(fd), offset, NonZeroU64::new(len), advice)
}

/// Has the kernel begin to write the dirty pages of a range; `len` 0: to the end of the file. With `wait` the call returns when
/// they are written. Neither metadata nor the device's cache is flushed (`sync_file_range`).
#[inline]
pub fn sync_range(fd: Fd, offset: u64, len: u64, wait: bool) -> Result<()> {
    let waits = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let flags = libc::SYNC_FILE_RANGE_WRITE | if wait { waits } else { 0 };
    // SAFETY: the call takes numbers only; a descriptor that is not open makes it fail.
    done(unsafe { libc::sync_file_range(fd, offset as i64, len as i64, flags) })
}

/// Takes the lock of a range, or gives it back (`None`); `len` 0: to the end of the file, wherever that comes to be. The lock
/// belongs to the open file, not to the process, so that threads exclude each other (`F_OFD_SETLK`). It does not wait:
/// [`Errno::AGAIN`] if another holds it.
#[inline]
pub fn lock(fd: Fd, offset: u64, len: u64, kind: Option<Lock>) -> Result<()> {
    // SAFETY: `flock` is plain data, for which zeros are valid; the process number must be 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = match kind {
        Some(Lock::Exclusive) => libc::F_WRLCK,
        Some(Lock::Shared) => libc::F_RDLCK,
        None => libc::F_UNLCK,
    } as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = offset as _;
    lock.l_len = len as _;
    // SAFETY: the kernel reads the structure, which outlives the call.
    done(unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &raw const lock) })
}

/// Who else may have a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// Nobody.
    Exclusive,
    /// Others that share it.
    Shared,
}

fn done(result: libc::c_int) -> Result<()> {
    if result == -1 { Err(last_error()) } else { Ok(()) }
}

#[cold]
fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
