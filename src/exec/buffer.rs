//! A thread's I/O buffer: `memsize` bytes, filled before the gate opens, of which each operation takes a slice.

use crate::fileset::content::{self, Stamper};
use crate::os::map::Map;
use std::ops::Range;

/// Slices of files opened with `O_DIRECT` start at multiples of this.
const ALIGN: u64 = 4096;

/// The buffer of one thread.
#[derive(Debug)]
pub struct IoBuffer {
    memory: Map,
    /// `memsize`; 0: the buffer is as large as the largest operation.
    memsize: u64,
    stamper: Stamper,
    /// The bits that the place of a slice may have.
    aligned: u64,
    seed: u64,
    /// Where places are drawn from, see [`IoBuffer::draw`].
    state: u64,
    /// The last length asked for, and how many places there are for it.
    places: (u64, u64),
    /// That length, if there is but one place for it; else no length that there is.
    whole: u64,
}

impl IoBuffer {
    /// A buffer of `memsize` bytes, or of `needed` if that is 0, touched and filled with data that does not compress.
    pub fn new(memsize: u64, needed: u64, direct: bool, stamper: Stamper, seed: u64) -> Result<Self, crate::os::Errno> {
        let len = if memsize > 0 { memsize } else { needed };
        let mut memory = Map::new(len as usize)?;
        content::fill(memory.bytes_mut(), seed, 0.0);
        let aligned = if direct { !(ALIGN - 1) } else { !0 };
        Ok(Self { memory, memsize, stamper, aligned, seed, state: seed, places: (0, 1), whole: u64::MAX })
    }

    /// The bytes of a slice.
    #[inline]
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        &self.memory.bytes()[range]
    }

    /// The bytes of a slice, to read into.
    #[inline]
    pub fn get_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.memory.bytes_mut()[range]
    }

    /// A slice of `len` bytes to read into; `None` where [`IoBuffer::place`] is.
    #[inline]
    pub fn slice(&mut self, len: u64) -> Option<&mut [u8]> {
        if len == self.whole {
            return self.memory.bytes_mut().get_mut(..len as usize);
        }
        let range = self.place(len)?;
        self.memory.bytes_mut().get_mut(range)
    }

    /// A slice to write: each 4 KiB block in it is made unlike all others.
    #[inline]
    pub fn data(&mut self, len: u64) -> Option<Range<usize>> {
        let range = self.place(len)?;
        self.stamper.stamp(&mut self.memory.bytes_mut()[range.clone()]);
        Some(range)
    }

    /// A slice of `len` bytes at a random place, in steps of its own length. A buffer that is not bound by `memsize` grows
    /// if it must; `None` if it is bound and too small.
    #[inline]
    pub fn place(&mut self, len: u64) -> Option<Range<usize>> {
        if len != self.places.0 {
            self.fit(len)?;
        }
        let at = if self.places.1 == 1 { 0 } else { (self.draw(self.places.1) * len) & self.aligned };
        Some(at as usize..(at + len) as usize)
    }

    #[inline(never)]
    fn fit(&mut self, len: u64) -> Option<()> {
        let room = self.memory.bytes().len() as u64;
        if len > room {
            return self.grow(len);
        }
        self.places = (len, if self.memsize > len { (room / len.max(1)).max(1) } else { 1 });
        self.whole = if self.places.1 == 1 { len } else { u64::MAX };
        Some(())
    }

    /// A number below `n`. Which slice of a buffer an operation takes decides nothing but which of the processor's caches hold
    /// it: so a generator of one multiplication will do (Knuth's MMIX; its upper bits are used), and the thread's own stream
    /// stays one of sizes, offsets and files.
    #[inline]
    fn draw(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 32) * (n & 0xffff_ffff)) >> 32
    }

    #[cold]
    fn grow(&mut self, len: u64) -> Option<()> {
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
