//! The I/O buffer of a thread: `memsize` bytes, filled before the gate opens. Each operation uses a slice of it.

use crate::fileset::content::{self, Stamper};
use crate::os::map::Map;
use std::ops::Range;

/// Alignment of slices for files opened with `O_DIRECT`, in bytes.
const ALIGN: u64 = 4096;

/// The buffer of one thread.
#[derive(Debug)]
pub struct IoBuffer {
    memory: Map,
    /// `memsize` in bytes; 0 when the buffer is as large as the largest operation.
    memsize: u64,
    stamper: Stamper,
    /// Mask of the bits that the offset of a slice may have.
    aligned: u64,
    seed: u64,
    /// State of the generator of offsets; see [`IoBuffer::draw`].
    state: u64,
    /// The length that was requested last, and the number of slices of that length.
    places: (u64, u64),
    /// That length if there is only one slice of it; else `u64::MAX`, which is no length.
    whole: u64,
}

impl IoBuffer {
    /// Allocates a buffer of `memsize` bytes, or of `needed` bytes if that is 0, and fills it with data that does not
    /// compress. So its pages are touched before the run.
    pub fn new(memsize: u64, needed: u64, direct: bool, stamper: Stamper, seed: u64) -> Result<Self, crate::os::Errno> {
        let len = if memsize > 0 { memsize } else { needed };
        let mut memory = Map::new(len as usize)?;
        content::fill(memory.bytes_mut(), seed, 0.0);
        let aligned = if direct { !(ALIGN - 1) } else { !0 };
        Ok(Self { memory, memsize, stamper, aligned, seed, state: seed, places: (0, 1), whole: u64::MAX })
    }

    /// Returns the bytes of a slice.
    #[inline]
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        &self.memory.bytes()[range]
    }

    /// Returns the bytes of a slice for modification.
    #[inline]
    pub fn get_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.memory.bytes_mut()[range]
    }

    /// Returns a slice of `len` bytes to read into. `None` when the buffer is too small.
    #[inline]
    pub fn slice(&mut self, len: u64) -> Option<&mut [u8]> {
        if len == self.whole {
            return self.memory.bytes_mut().get_mut(..len as usize);
        }
        let range = self.place(len)?;
        self.memory.bytes_mut().get_mut(range)
    }

    /// Returns a slice to write. Each 4 KiB block in it is made unique. `None` when the buffer is too small.
    #[inline]
    pub(super) fn data(&mut self, len: u64) -> Option<Range<usize>> {
        let range = self.place(len)?;
        self.stamper.stamp(&mut self.memory.bytes_mut()[range.clone()]);
        Some(range)
    }

    /// Returns a slice of `len` bytes at a random multiple of its length. `None` when the buffer is too small.
    ///
    /// Split for speed: as long as the length is that of the last call, the number of slices is known, and no division
    /// is needed. `IoBuffer::place_slow` divides. Saving this division and that of the offset in the file was part of
    /// the step of a random read from 350 to 249 instructions (docs/performance.md).
    #[inline]
    pub fn place(&mut self, len: u64) -> Option<Range<usize>> {
        if len != self.places.0 {
            self.place_slow(len)?;
        }
        let at = if self.places.1 == 1 { 0 } else { (self.draw(self.places.1) * len) & self.aligned };
        Some(at as usize..(at + len) as usize)
    }

    /// The slow half of [`IoBuffer::place`]: computes the number of slices of a new length.
    #[inline(never)]
    fn place_slow(&mut self, len: u64) -> Option<()> {
        let size = self.memory.bytes().len() as u64;
        if len > size {
            return None;
        }
        self.places = (len, if self.memsize > len { (size / len.max(1)).max(1) } else { 1 });
        self.whole = if self.places.1 == 1 { len } else { u64::MAX };
        Some(())
    }

    /// Draws a number below `n`. Which slice of the buffer an operation uses only decides which of the processor's
    /// caches hold it. So a generator with one multiplication is sufficient (Knuth's MMIX, of which the upper bits are
    /// used), and the thread's own stream serves only sizes, offsets and files.
    #[inline]
    fn draw(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 32) * (n & 0xffff_ffff)) >> 32
    }

    /// Replaces the buffer by one of `len` bytes. `None` when `memsize` limits it, or there is no memory.
    pub(super) fn grow(&mut self, len: u64) -> Option<()> {
        if self.memsize > 0 {
            return None;
        }
        let mut memory = Map::new(len as usize).ok()?;
        content::fill(memory.bytes_mut(), self.seed, 0.0);
        self.memory = memory;
        (self.places, self.whole) = ((len, 1), len);
        Some(())
    }
}
