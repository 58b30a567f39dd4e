//! The buffers of a thread as its operations use them: slices of the I/O buffer, and the buffers of its slots.
//!
//! An I/O buffer without `memsize` grows when an operation needs more than expected. That allocates, fills and touches
//! memory, so its time counts as the program's own.
//! Deliberately absent: the buffers themselves (`buffer.rs`, `buffered.rs`).

use super::buffered::flush_slow;
use super::{OpCx, Stop};
use crate::os::Errno;
use std::ops::Range;

impl OpCx<'_> {
    /// Returns a slice of `len` bytes of the buffer to read into. `Err` when `memsize` is too small.
    #[inline]
    pub fn place(&mut self, len: u64) -> Result<Range<usize>, Stop> {
        if let Some(range) = self.io.buffer.place(len) {
            return Ok(range);
        }
        self.grow_buffer(len)?;
        Ok(0..len as usize)
    }

    /// Returns a slice of `len` bytes of the buffer with data to write. `Err` when `memsize` is too small.
    #[inline]
    pub fn data(&mut self, len: u64) -> Result<Range<usize>, Stop> {
        if let Some(range) = self.io.buffer.data(len) {
            return Ok(range);
        }
        self.grow_buffer(len)?;
        Ok(self.io.buffer.data(len).unwrap_or_default())
    }

    /// Replaces the buffer by one of `len` bytes. Its time is the program's own: the start of the operation is moved by
    /// it, whether the operation has begun or is still to begin at the end of the last one. `#[cold]`: it runs at most
    /// once for each new largest length.
    #[cold]
    fn grow_buffer(&mut self, len: u64) -> Result<(), Stop> {
        let start = self.env.clock.raw();
        if self.io.buffer.grow(len).is_none() {
            return Err(self.misuse(
                format!("an I/O of {len} bytes is larger than the thread's `memsize`"),
                "make `memsize` at least as large as `iosize`",
            ));
        }
        self.exclude_since(start);
        Ok(())
    }

    /// Writes the buffered data of a slot that is about to be closed, if there is any.
    ///
    /// Split for speed: a thread without buffered flowops only checks that `streams` is empty, inline. `flush_slow` is
    /// cold.
    #[inline]
    pub fn flush_buffer(&mut self, slot: usize) -> Result<(), Errno> {
        if self.io.slots.streams.is_empty() {
            Ok(())
        } else {
            flush_slow(&mut self.io.slots, slot, self.env.engine, self.account.cell)
        }
    }
}
