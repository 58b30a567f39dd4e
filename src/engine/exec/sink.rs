//! The receiver of data that leaves a file without a copy to user space: `/dev/null`.
//!
//! Each thread has its own. Threads that shared an open file would all write to its reference count in each call.
//! Deliberately absent: sockets, whose buffers and other end would be part of the figures.

use std::path::Path;
use wml_os::fd::{self, Fd, NONE, Result};
use wml_os::{Mode, OFlags};

/// A descriptor of `/dev/null` in the table of the thread's process.
#[derive(Debug)]
pub struct Sink(Fd);

impl Sink {
    /// Returns the sink of a thread that sends nothing, or of an engine without files.
    pub fn none() -> Self {
        Self(NONE)
    }

    /// Opens `/dev/null`.
    pub fn open() -> Result<Self> {
        fd::open_path(Path::new("/dev/null"), OFlags::WRONLY, Mode::empty()).map(Self)
    }

    /// Returns the descriptor; [`NONE`] if it is not open.
    pub fn fd(&self) -> Fd {
        self.0
    }

    /// Closes it, in the thread that opened it.
    pub(super) fn close(&mut self) {
        let Self(fd) = std::mem::replace(self, Self::none());
        if fd != NONE {
            fd::close(fd);
        }
    }
}
