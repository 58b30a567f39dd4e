//! The lock on a directory in which roots of file sets are created, marked, or cleared of incomplete markers.

use super::walk::READ_DIR;
use std::os::fd::{AsRawFd, BorrowedFd};
use wml_os::{Errno, Fd, Mode, fd};

/// A drop guard of an advisory lock on a parent directory, in which other wmlrun processes then create or mark no root.
///
/// If several processes start at the same moment, the first one completes its root before the next one examines it. The
/// lock is best effort: if it can't be acquired, the process continues without it.
pub(super) struct ParentLock(Option<Fd>);

impl ParentLock {
    /// Tries to acquire the lock.
    pub(super) fn take(dir: BorrowedFd<'_>) -> Self {
        Self::acquire(dir).unwrap_or(Self(None))
    }

    /// Acquires the lock. Returns [`Errno::WOULDBLOCK`] if another process keeps it.
    pub(super) fn acquire(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        let fd = fd::open_at(dir.as_raw_fd(), c".", READ_DIR, Mode::empty())?;
        fd::lock(fd).inspect_err(|_| fd::close(fd))?;
        Ok(Self(Some(fd)))
    }
}

impl Drop for ParentLock {
    fn drop(&mut self) {
        if let Some(fd) = self.0 {
            fd::unlock(fd);
        }
    }
}
