//! Asynchronous operations of a thread: what is in flight, and what runs it.

mod backend;
mod outstanding;
mod pool;

pub use outstanding::{AioHow, Outstanding};
pub use pool::AioPool;

pub(crate) use outstanding::{Wanted, let_go};

use super::{OpCx, Stop};

/// Bytes of the stack of a helper thread.
const STACK: usize = 64 << 10;

/// What the asynchronous operations of a thread need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aio {
    /// So many may be out.
    pub depth: u64,
    /// Bytes of the largest, as far as that is known.
    pub size: u64,
    /// The script says how many are to be out; else the depth is only where it must end.
    pub bounded: bool,
}

impl Aio {
    /// What two flowops of a thread need.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            size: self.size.max(other.size),
            bounded: self.bounded && other.bounded,
        }
    }

    /// Bytes of memory that are sure to be used.
    pub fn memory(self) -> u64 {
        if self.bounded { self.depth.saturating_mul(self.size.next_multiple_of(4096)) } else { self.size }
    }
}

/// Waits for all that a thread has out: before it closes a file that an operation may still be on its way to, and at its end.
pub(crate) fn drain(cx: &mut OpCx<'_>) -> Result<(), Stop> {
    let Some(mut aio) = cx.io.aio.take() else { return Ok(()) };
    let drained = aio.notice(cx, u64::MAX, true);
    cx.io.aio = Some(aio);
    drained
}
