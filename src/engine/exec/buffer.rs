//! The I/O buffer of a thread: `memsize` bytes, filled before the gate opens. Each operation uses a slice of it.
//!
//! If the thread writes data of several sources, because its file sets differ in `compress=` or `dedupe=`, the buffer
//! has one further part of the same size for each source. The first part is then the one that is read into. A thread
//! that reads and writes files with such a value also has a further part. Without these attributes, writes use the part
//! that was read into: it costs no memory, and what was read is random data too, unless it was a hole.

use super::slots::FileRef;
use super::written_data::WrittenData;
use std::ops::Range;
use wml_os::Errno;
use wml_os::map::Map;

/// Alignment of slices for files opened with `O_DIRECT`, in bytes.
const ALIGN: u64 = 4096;

/// The reason why a buffer cannot grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BufferLimit {
    /// The script gives its size.
    Memsize,
    /// The kernel has no memory.
    Memory(Errno),
}

/// The buffer of one thread.
#[derive(Debug)]
pub struct IoBuffer {
    memory: Map,
    /// Size of a part in bytes.
    size: u64,
    /// `memsize` in bytes; 0 when the buffer is as large as the largest operation.
    memsize: u64,
    data: WrittenData,
    /// [`WrittenData::is_plain`]: then [`IoBuffer::data`] suffices.
    plain: bool,
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
    /// Allocates a buffer of `memsize` bytes, or of `needed` bytes if that is 0, and fills it with data. So its pages
    /// are touched before the run.
    pub fn new(memsize: u64, needed: u64, direct: bool, data: WrittenData, seed: u64) -> Result<Self, Errno> {
        let size = if memsize > 0 { memsize } else { needed };
        let memory = filled(size, &data, seed)?;
        let aligned = if direct { !(ALIGN - 1) } else { !0 };
        let (places, whole) = ((0, 1), u64::MAX);
        let plain = data.is_plain();
        Ok(Self { memory, size, memsize, data, plain, aligned, seed, state: seed, places, whole })
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

    /// Returns a slice to write. Each 4 KiB block in it is made unique. `None` when the buffer is too small, or the
    /// data needs more than that: see [`IoBuffer::data_of`].
    #[inline]
    pub(super) fn data(&mut self, len: u64) -> Option<Range<usize>> {
        if !self.plain {
            return None;
        }
        let range = self.place(len)?;
        self.data.common.stamper.stamp_unique(&mut self.memory.bytes_mut()[range.clone()]);
        Some(range)
    }

    /// Returns a slice to write to a file, with data of the source of its set. `None` when the buffer is too small.
    pub(super) fn data_of(&mut self, file: Option<FileRef>, len: u64) -> Option<Range<usize>> {
        let place = self.place(len)?;
        let at = self.data.separate_of(file).map_or(0, |i| (i + 1) * stride(self.size));
        let range = place.start + at..place.end + at;
        self.data.source_of(file).stamper.stamp(&mut self.memory.bytes_mut()[range.clone()]);
        Some(range)
    }

    /// Returns a slice of `len` bytes at a random multiple of its length. `None` when the buffer is too small.
    ///
    /// Split for speed: as long as the length is that of the last call, the number of slices is known, and no division
    /// is needed. `IoBuffer::place_slow` divides. Saving this division and that of the offset in the file was part of
    /// the step of a random read from 350 to 249 instructions.
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
        if len > self.size {
            return None;
        }
        self.places = (len, if self.memsize > len { (self.size / len.max(1)).max(1) } else { 1 });
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

    /// Replaces the buffer by one of `len` bytes.
    pub(super) fn grow(&mut self, len: u64) -> Result<(), BufferLimit> {
        if self.memsize > 0 {
            return Err(BufferLimit::Memsize);
        }
        self.memory = filled(len, &self.data, self.seed).map_err(BufferLimit::Memory)?;
        self.size = len;
        (self.places, self.whole) = ((len, 1), len);
        Ok(())
    }
}

/// Returns the distance between two parts of a buffer in bytes, given their size.
fn stride(size: u64) -> usize {
    size.next_multiple_of(ALIGN) as usize
}

/// Allocates the parts of a buffer, and fills them with data.
fn filled(size: u64, data: &WrittenData, seed: u64) -> Result<Map, Errno> {
    if data.separate.is_empty() {
        let mut memory = Map::new_filled(size as usize)?;
        data.common.source.fill(memory.bytes_mut(), seed);
        return Ok(memory);
    }
    let stride = stride(size);
    let mut memory = Map::new_filled(stride.checked_mul(1 + data.separate.len()).ok_or(Errno::NOMEM)?)?;
    let sources = std::iter::once(&data.common).chain(&data.separate);
    for (own, part) in sources.zip(memory.bytes_mut().chunks_mut(stride.max(1))) {
        own.source.fill(part, seed);
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    #![allow(clippy::naive_bytecount, reason = "a few blocks")]

    use super::{BufferLimit, FileRef, IoBuffer, WrittenData};
    use crate::fileset::Redundancy;
    use crate::fileset::content::{BLOCK, DataSource};
    use std::collections::HashSet;
    use wml_os::Errno;

    fn source(compress: f64, dedupe: f64) -> DataSource {
        DataSource::new(Redundancy { compress, dedupe }, 7)
    }

    fn file(set: usize) -> FileRef {
        FileRef { set, index: 0 }
    }

    /// The compressible part of some data: that of its most frequent byte.
    fn compressible(data: &[u8]) -> f64 {
        let most = (0..=u8::MAX).map(|byte| data.iter().filter(|b| **b == byte).count()).max();
        most.unwrap() as f64 / data.len() as f64
    }

    #[test]
    fn the_data_of_one_source_is_as_compressible_as_requested() {
        for compress in [0.0, 0.25, 0.75] {
            let data = WrittenData::of_one(source(compress, 0.0), 1, 1);
            let mut buffer = IoBuffer::new(0, 16 << 10, false, data, 1).unwrap();
            for len in [16 << 10, 64 << 10] {
                if len > 16 << 10 {
                    assert_eq!(buffer.data(len), None);
                    buffer.grow(len).unwrap();
                }
                let range = buffer.data(len).unwrap();
                let found = compressible(buffer.get(range));
                assert!((found - compress).abs() < 0.02, "{found} instead of {compress}");
            }
        }
    }

    #[test]
    fn a_buffer_grows_up_to_memsize_or_memory() {
        let buffer = |memsize| {
            let data = WrittenData::of_one(source(0.0, 0.0), 1, 1);
            IoBuffer::new(memsize, 4096, false, data, 1).unwrap()
        };
        assert_eq!(buffer(4096).grow(8192), Err(BufferLimit::Memsize));
        let mut free = buffer(0);
        assert_eq!((free.grow(8192), free.memory.bytes().len()), (Ok(()), 8192));
        assert_eq!(free.grow(1 << 60), Err(BufferLimit::Memory(Errno::NOMEM)));
    }

    #[test]
    fn copies_need_the_source_of_the_file() {
        let mut buffer = IoBuffer::new(0, 4 << 20, false, WrittenData::of_one(source(0.0, 0.5), 1, 1), 1).unwrap();
        assert_eq!(buffer.data(4 << 20), None);
        let range = buffer.data_of(Some(file(0)), 4 << 20).unwrap();
        let different: HashSet<&[u8]> = buffer.get(range).chunks(BLOCK).collect();
        // Half of 1024 blocks, and the 64 that are copied.
        assert!((500..650).contains(&different.len()), "{} of 1024 differ", different.len());
    }

    #[test]
    fn each_set_has_data_of_its_source_whatever_is_read() {
        let sources = vec![source(0.5, 0.0), source(0.0, 0.0), source(0.9, 0.0)];
        let of_set = vec![Some(0), Some(1), None, Some(2)];
        for memsize in [0, 1 << 20] {
            let data = WrittenData::of_several(sources.clone(), of_set.clone(), 1, 1);
            let mut buffer = IoBuffer::new(memsize, 10_000, false, data, 1).unwrap();
            assert_eq!(buffer.data(10_000), None);
            let mut blocks = HashSet::new();
            for _ in 0..20 {
                for (set, wanted) in [(0, 0.5), (1, 0.0), (3, 0.9)] {
                    let read = buffer.place(10_000).unwrap();
                    buffer.get_mut(read).fill(b'r');
                    let range = buffer.data_of(Some(file(set)), 10_000).unwrap();
                    let data = buffer.get(range);
                    let found = compressible(data);
                    assert!((found - wanted).abs() < 0.1, "set {set}: {found} instead of {wanted}");
                    assert!(data.chunks(BLOCK).all(|block| blocks.insert(block.to_vec())), "two blocks are equal");
                }
            }
        }
        let data = WrittenData::of_several(sources, of_set, 1, 1);
        let mut buffer = IoBuffer::new(0, 4096, true, data, 1).unwrap();
        assert_eq!(buffer.data_of(Some(file(3)), 8192), None);
        buffer.grow(8192).unwrap();
        let range = buffer.data_of(Some(file(3)), 8192).unwrap();
        assert_eq!(range.start % 4096, 0, "direct I/O needs aligned data");
        assert!((compressible(buffer.get(range)) - 0.9).abs() < 0.02);
        assert_eq!(buffer.data_of(Some(file(2)), 8192), Some(0..8192), "a set without a source uses the first part");
    }
}
