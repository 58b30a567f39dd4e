//! Reads and writes of several buffers, and the append of one call.

use super::fd::{Fd, Result, borrow, retry_interrupted};
use rustix::io as rio;
use std::io::{IoSlice, IoSliceMut};

/// Reads into several buffers at the current file position. Returns the number of bytes read.
pub fn readv(fd: Fd, bufs: &mut [IoSliceMut<'_>]) -> Result<usize> {
    retry_interrupted(|| rio::readv(borrow(fd), bufs))
}

/// Reads into several buffers at an offset. Returns the number of bytes read.
pub fn preadv(fd: Fd, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
    retry_interrupted(|| rio::preadv(borrow(fd), bufs, offset))
}

/// Writes several buffers at the current file position. Returns the number of bytes written.
pub fn writev(fd: Fd, bufs: &[IoSlice<'_>]) -> Result<usize> {
    retry_interrupted(|| rio::writev(borrow(fd), bufs))
}

/// Writes several buffers at an offset. Returns the number of bytes written.
pub fn pwritev(fd: Fd, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
    retry_interrupted(|| rio::pwritev(borrow(fd), bufs, offset))
}

/// Writes at the end of the file, and leaves the file position there, by one call (`pwritev2` with `RWF_APPEND`). Returns
/// the number of bytes written.
#[inline]
pub fn append(fd: Fd, buf: &[u8]) -> Result<usize> {
    // The offset -1: at the file position, which the call moves.
    retry_interrupted(|| rio::pwritev2(borrow(fd), &[IoSlice::new(buf)], u64::MAX, rio::ReadWriteFlags::APPEND))
}
