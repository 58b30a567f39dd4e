//! Anonymous memory straight from the kernel: zero until touched, page aligned, given back as a whole.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Pieces start at multiples of this: enough for every device's direct I/O but those of larger pages.
const PAGE: usize = 4096;

/// A stretch of zeroed memory. Pages that nobody touches cost nothing.
#[derive(Debug)]
pub struct Map {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is plain bytes with one owner; references are handed out under Rust's rules.
unsafe impl Send for Map {}
// SAFETY: shared references give only shared slices.
unsafe impl Sync for Map {}

impl Map {
    /// `len` bytes, all zero. An error is what the kernel says (`ENOMEM`). A length of 0 maps nothing.
    pub fn new(len: usize) -> rustix::io::Result<Self> {
        Self::of_kind(len, MapFlags::PRIVATE)
    }

    fn of_kind(len: usize, kind: MapFlags) -> rustix::io::Result<Self> {
        if len == 0 {
            return Ok(Self { at: NonNull::<AtomicU64>::dangling().cast(), len });
        }
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, kind) }?;
        NonNull::new(at.cast()).map(|at| Self { at, len }).ok_or(rustix::io::Errno::NOMEM)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `len` writable bytes, and `&mut self` is the only way to them.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }

    /// The memory as atomic numbers of 32 bits, all zero at first.
    pub fn ints(&self) -> &[std::sync::atomic::AtomicI32] {
        // SAFETY: as for `counters`.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len / 4) }
    }

    /// The memory as atomic counters, all zero at first.
    pub fn counters(&self) -> &[std::sync::atomic::AtomicU64] {
        // SAFETY: the mapping is page aligned, zeroed, and atomics may be shared; no other kind of reference to the bytes is
        // given out by a holder that uses it as counters.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len / 8) }
    }
}

/// A share of a map's counters. Holds on to the map, so that a writer needs neither a look-up nor a lifetime.
#[derive(Debug)]
pub struct Counters {
    at: NonNull<AtomicU64>,
    len: usize,
    _map: Arc<Map>,
}

// SAFETY: what is pointed to are atomics in a mapping that lives as long as `self`.
unsafe impl Send for Counters {}
// SAFETY: as above; shared references give only shared atomics.
unsafe impl Sync for Counters {}

impl Counters {
    /// `shares` times `len` counters, all zero, in one mapping of small pages: only what is touched costs memory, also
    /// where the kernel would like to give huge pages to large mappings.
    pub fn new(shares: usize, len: usize) -> rustix::io::Result<Vec<Self>> {
        Self::of_kind(shares, len, MapFlags::PRIVATE)
    }

    /// The same for many threads, each of which writes to its own.
    ///
    /// Shared, though with nobody: a page of private memory that is read first is the kernel's page of zeros, and when it is
    /// written to, every processor must be told that it is another now. Memory is not set aside for what nobody will touch.
    pub fn many(shares: usize, len: usize) -> rustix::io::Result<Vec<Self>> {
        Self::of_kind(shares, len, MapFlags::SHARED | MapFlags::NORESERVE)
    }

    fn of_kind(shares: usize, len: usize, kind: MapFlags) -> rustix::io::Result<Vec<Self>> {
        let bytes = shares.checked_mul(len).and_then(|n| n.checked_mul(8)).ok_or(rustix::io::Errno::NOMEM)?;
        let map = Map::of_kind(bytes, kind)?;
        if bytes > 0 {
            // SAFETY: the range is the mapping just made. Kernels without huge pages refuse the advice, which is as well.
            let _ = unsafe { madvise(map.at.as_ptr().cast(), map.len, Advice::LinuxNoHugepage) };
        }
        let map = Arc::new(map);
        let share = |i: usize| {
            // SAFETY: `i < shares`, so the share begins and ends inside the mapping (or the mapping is empty).
            let at = unsafe { map.at.cast::<AtomicU64>().add(i * len) };
            Self { at, len, _map: Arc::clone(&map) }
        };
        Ok((0..shares).map(share).collect())
    }
}

impl Deref for Counters {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `at` points to `len` zeroed, page-aligned words that live as long as `self`, and nobody else knows the
        // map, so that they are only ever seen as atomics.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

/// One of the pieces that a map was cut into: memory with one owner, which can be handed on. Holds on to the map.
#[derive(Debug)]
pub struct MapSlice {
    at: NonNull<u8>,
    len: usize,
    map: Arc<Map>,
}

// SAFETY: the bytes have one owner, which is `self`; the map behind them is Send and Sync.
unsafe impl Send for MapSlice {}
// SAFETY: shared references give only shared slices.
unsafe impl Sync for MapSlice {}

impl MapSlice {
    /// Pieces of at least `len` bytes, each at the start of a page, in one mapping of zeros; pages that nobody touches cost
    /// nothing.
    pub fn cut(slices: usize, len: usize) -> rustix::io::Result<Vec<Self>> {
        let too_much = rustix::io::Errno::NOMEM;
        let len = len.max(1).checked_next_multiple_of(PAGE).ok_or(too_much)?;
        let map = Arc::new(Map::new(slices.checked_mul(len).ok_or(too_much)?)?);
        let slice = |i: usize| {
            // SAFETY: `i < pieces`, so the piece begins and ends inside the mapping.
            let at = unsafe { map.at.add(i * len) };
            Self { at, len, map: Arc::clone(&map) }
        };
        Ok((0..slices).map(slice).collect())
    }

    /// Where the mapping that it is a piece of begins, and how long that is.
    pub fn whole(&self) -> (*mut u8, usize) {
        (self.map.at.as_ptr(), self.map.len)
    }
}

impl Deref for MapSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the piece is `len` readable bytes of a mapping that lives as long as `self`; no other piece overlaps it, and
        // nobody else has a way to the map's bytes.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl DerefMut for MapSlice {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only way to these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping is ours, and nothing borrowed from it can outlive `self`.
            let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Counters, MapSlice};
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn shares_are_zero_apart_and_outlive_each_other() {
        let mut shares = Counters::new(3, 1000).unwrap();
        for (i, share) in shares.iter().enumerate() {
            assert_eq!(share.len(), 1000);
            share[0].store(i as u64 + 1, Relaxed);
            share[999].store(i as u64 + 10, Relaxed);
        }
        let last = shares.pop().unwrap();
        drop(shares);
        assert_eq!((last[0].load(Relaxed), last[1].load(Relaxed), last[999].load(Relaxed)), (3, 0, 12));
        assert!(Counters::new(0, 1000).unwrap().is_empty());
        assert!(Counters::new(usize::MAX, 2).is_err());
    }
    #[test]
    fn pieces_are_aligned_apart_and_outlive_each_other() {
        let mut slices = MapSlice::cut(3, 5000).unwrap();
        for (i, slice) in slices.iter_mut().enumerate() {
            assert_eq!((slice.len(), slice.as_ptr() as usize % 4096), (8192, 0));
            slice.fill(i as u8 + 1);
        }
        let last = slices.pop().unwrap();
        assert!(slices.iter().zip(1..).all(|(slice, i)| slice.iter().all(|b| *b == i)));
        drop(slices);
        assert!(last.iter().all(|b| *b == 3));
        assert!(MapSlice::cut(usize::MAX, 4096).is_err());
        assert!(MapSlice::cut(0, 4096).unwrap().is_empty());
    }
}
