//! The buffers of a thread as its operations use them: slices of the I/O buffer, and the buffers of its slots.
//!
//! An I/O buffer without `memsize` grows when an operation needs more than expected. That allocates, fills and touches
//! memory, so its time counts as the program's own: the start of the operation is moved by it, whether the operation
//! has begun or is still to begin at the end of the last one. The time to generate much data is excluded too.
//! Deliberately absent: the buffers themselves (`buffer.rs`, `buffered.rs`).

use super::buffer::BufferLimit;
use super::buffered::flush_slow;
use super::{OpCx, Stop};
use std::ops::Range;
use wml_os::{Errno, errno_text};

/// Largest amount of data in bytes that is generated while the operation is timed, because that costs less than a
/// further reading of the clock.
const CHEAP_FILL: u64 = 64 << 10;

impl OpCx<'_> {
    /// Returns a slice of `len` bytes of the buffer to read into. `Err` when `memsize` or memory is too small.
    #[inline]
    pub fn place(&mut self, len: u64) -> Result<Range<usize>, Stop> {
        match self.io.buffer.place(len) {
            Some(range) => Ok(range),
            None => self.place_slow(len),
        }
    }

    /// The slow half of [`OpCx::place`]: replaces the buffer. `#[cold]`: it runs at most once for each new largest
    /// length.
    #[cold]
    fn place_slow(&mut self, len: u64) -> Result<Range<usize>, Stop> {
        let start = self.env.clock.raw();
        self.grow_buffer(len)?;
        self.exclude_since(start);
        Ok(0..len as usize)
    }

    /// Returns a slice of `len` bytes of the buffer with data to write to the file in a slot, for an operation that is
    /// yet to begin. `Err` when `memsize` or memory is too small.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most writes do less than a call")]
    pub fn data(&mut self, slot: usize, len: u64) -> Result<Range<usize>, Stop> {
        if len > CHEAP_FILL {
            self.restamp();
        }
        match self.io.buffer.data(len) {
            Some(range) => Ok(range),
            None => self.data_slow(slot, len),
        }
    }

    /// Returns the same for a further call of the operation that is being timed.
    #[inline]
    pub(crate) fn further_data(&mut self, slot: usize, len: u64) -> Result<Range<usize>, Stop> {
        if len > CHEAP_FILL { self.data_slow(slot, len) } else { self.data(slot, len) }
    }

    /// The slow half of [`OpCx::data`] and [`OpCx::further_data`]: reads the clock, so that the time to generate the
    /// data counts as the program's own, generates the data of the file's set, and replaces a buffer that is too small.
    #[inline(never)]
    fn data_slow(&mut self, slot: usize, len: u64) -> Result<Range<usize>, Stop> {
        let start = self.env.clock.raw();
        let file = self.io.slots.get(slot).file;
        let range = if let Some(range) = self.io.buffer.data_of(file, len) {
            range
        } else {
            self.grow_buffer(len)?;
            self.io.buffer.data_of(file, len).unwrap_or_default()
        };
        self.exclude_since(start);
        Ok(range)
    }

    /// Replaces the buffer by one of `len` bytes.
    #[cold]
    fn grow_buffer(&mut self, len: u64) -> Result<(), Stop> {
        match self.io.buffer.grow(len) {
            Ok(()) => Ok(()),
            Err(BufferLimit::Memsize) => Err(self.misuse(
                || format!("an I/O of {len} bytes is larger than the thread's `memsize`"),
                "make `memsize` at least as large as `iosize`",
            )),
            Err(BufferLimit::Memory(errno)) => {
                let what = || {
                    let why = errno_text(errno.raw_os_error());
                    format!("allocating a buffer for an I/O of {len} bytes failed: {why}")
                };
                Err(self.failed_as(errno, what, "give a smaller `iosize`, or start fewer threads"))
            }
        }
    }

    /// Writes the buffered data of a slot that is about to be closed, if there is any.
    ///
    /// Split for speed: a thread without buffered flowops only checks that `streams` is empty, inline. `flush_slow` is
    /// cold.
    #[inline]
    pub(crate) fn flush_buffer(&mut self, slot: usize) -> Result<(), Errno> {
        if self.io.slots.streams.is_empty() {
            Ok(())
        } else {
            flush_slow(&mut self.io.slots, slot, self.env.engine, self.account.cell)
        }
    }
}
