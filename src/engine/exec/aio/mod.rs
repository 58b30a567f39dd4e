//! Asynchronous operations of a thread: the operations in flight, and the back ends that execute them.

mod backend;
mod outstanding;
mod pool;

pub use outstanding::{AioMode, Outstanding, awaited};
pub use pool::AioPool;

pub(crate) use outstanding::{AioRequest, release_file};

use super::{OpCx, Stop};

/// Stack size of a helper thread, in bytes.
const STACK: usize = 64 << 10;

/// The requirements of a thread's asynchronous operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aio {
    /// Maximum number of operations in flight.
    pub depth: u64,
    /// Size of the largest operation in bytes, as far as it is known.
    pub size: u64,
    /// Whether the script gives the number of operations in flight; else `depth` is only an upper limit.
    pub bounded: bool,
}

impl Aio {
    /// Returns the requirements of two flowops of a thread together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            size: self.size.max(other.size),
            bounded: self.bounded && other.bounded,
        }
    }

    /// Returns the number of bytes of memory that are certain to be used.
    pub fn memory(self) -> u64 {
        if self.bounded { self.memory_of(self.depth) } else { self.size }
    }

    /// Returns the bytes of memory of this number of operations in flight.
    pub(crate) fn memory_of(self, in_flight: u64) -> u64 {
        in_flight.saturating_mul(self.size.next_multiple_of(4096))
    }
}

/// Waits for all operations that a thread has in flight: before it closes a file on which an operation may still be in
/// flight, and when it ends.
pub(crate) fn drain(cx: &mut OpCx<'_>) -> Result<(), Stop> {
    let Some(mut aio) = cx.io.aio.take() else { return Ok(()) };
    let drained = aio.reap(cx, u64::MAX, true);
    cx.io.aio = Some(aio);
    drained
}
