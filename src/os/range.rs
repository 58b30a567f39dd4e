//! System calls on a byte range of an open file that transfer no data through the program: allocation, caching, locks.

use super::fd::{Fd, Result, borrow, retry_interrupted};
use super::last_errno;
use rustix::fs::{self as rfs, Advice, FallocateFlags};
use std::num::NonZeroU64;

/// Allocates blocks for a range of a file. The file grows if the range extends past its end, unless `keep_size`.
#[inline]
pub fn allocate(fd: Fd, offset: u64, len: u64, keep_size: bool) -> Result<()> {
    let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
    retry_interrupted(|| rfs::fallocate(borrow(fd), flags, offset, len))
}

/// Deallocates the blocks of a range of a file. The range then reads as zeros; the file keeps its size.
#[inline]
pub fn punch_hole(fd: Fd, offset: u64, len: u64) -> Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    retry_interrupted(|| rfs::fallocate(borrow(fd), flags, offset, len))
}

/// Copies bytes from one file to another inside the kernel. Returns the number of bytes copied, at most `len`.
#[inline]
pub fn copy_range(from: Fd, mut from_offset: u64, to: Fd, mut to_offset: u64, len: usize) -> Result<usize> {
    retry_interrupted(|| {
        rfs::copy_file_range(borrow(from), Some(&mut from_offset), borrow(to), Some(&mut to_offset), len)
    })
}

/// Sends bytes of a file from an offset on to another open file, without a copy to user space. Returns the number of
/// bytes sent, at most `len`: fewer at the end of the file, and never more than 2 GiB. Does not move the file position.
#[inline]
pub fn send(from: Fd, mut offset: u64, to: Fd, len: usize) -> Result<usize> {
    retry_interrupted(|| rfs::sendfile(borrow(to), borrow(from), Some(&mut offset), len))
}

/// Advises the kernel of the access pattern of a range of a file. A `len` of 0 means to the end of the file.
#[inline]
pub fn advise(fd: Fd, offset: u64, len: u64, advice: Advice) -> Result<()> {
    rfs::fadvise(borrow(fd), offset, NonZeroU64::new(len), advice)
}

/// Starts writeback of the dirty pages of a range (`sync_file_range`). A `len` of 0 means to the end of the file. With
/// `wait` the call returns when the pages are written. Flushes neither metadata nor the device's cache.
#[inline]
pub fn sync_range(fd: Fd, offset: u64, len: u64, wait: bool) -> Result<()> {
    let waits = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let flags = libc::SYNC_FILE_RANGE_WRITE | if wait { waits } else { 0 };
    // SAFETY: all arguments are integers. An invalid descriptor makes the call fail.
    retry_interrupted(|| done(unsafe { libc::sync_file_range(fd, offset as i64, len as i64, flags) }))
}

/// Takes the lock of a range, or releases it if `kind` is `None`. A `len` of 0 means to the end of the file, wherever
/// that will be. The lock belongs to the open file, not to the process, so that threads exclude each other
/// (`F_OFD_SETLK`). Does not wait: fails with `EAGAIN` if another open file has a conflicting lock.
#[inline]
pub fn lock(fd: Fd, offset: u64, len: u64, kind: Option<Lock>) -> Result<()> {
    let lock = flock(offset, len, kind);
    // SAFETY: the pointer is to a live `flock`, which the kernel only reads.
    retry_interrupted(|| done(unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &raw const lock) }))
}

/// Asks whether [`lock`] would take the lock, and takes none (`F_OFD_GETLK`). Succeeds either way.
#[inline]
pub fn test_lock(fd: Fd, offset: u64, len: u64, kind: Lock) -> Result<()> {
    let mut lock = flock(offset, len, Some(kind));
    // SAFETY: the pointer is to a live `flock`, which nothing else uses.
    retry_interrupted(|| done(unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &raw mut lock) }))
}

fn flock(offset: u64, len: u64, kind: Option<Lock>) -> libc::flock {
    // SAFETY: `flock` consists of integers, for which zero is a valid value. `l_pid` must be 0 for locks of open files.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = match kind {
        Some(Lock::Exclusive) => libc::F_WRLCK,
        Some(Lock::Shared) => libc::F_RDLCK,
        None => libc::F_UNLCK,
    } as _;
    lock.l_whence = libc::SEEK_SET as _;
    lock.l_start = offset as _;
    lock.l_len = len as _;
    lock
}

/// The kind of a range lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// Excludes all other locks.
    Exclusive,
    /// Excludes exclusive locks only.
    Shared,
}

fn done(result: libc::c_int) -> Result<()> {
    if result == -1 { Err(last_errno()) } else { Ok(()) }
}
