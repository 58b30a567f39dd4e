//! Anonymous memory mappings: zeroed, page aligned, allocated on first access and unmapped as a whole.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64};

/// The alignment of slices: suffices for direct I/O on every device except those with a larger required alignment.
const PAGE: usize = 4096;

/// An anonymous mapping of zeroed memory. Pages that are not touched use no memory.
#[derive(Debug)]
pub struct Map {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: a `Map` owns its mapping, which is not bound to a thread, and the contents are plain bytes.
unsafe impl Send for Map {}
// SAFETY: a shared `Map` lends shared byte slices only; writing needs `&mut`.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `len` bytes, all zero. A length of 0 maps nothing. Fails with the error of `mmap` (`ENOMEM`).
    pub fn new(len: usize) -> rustix::io::Result<Self> {
        Self::of_kind(len, MapFlags::PRIVATE)
    }

    /// Maps `len` bytes that will all be used, in huge pages where the kernel has them: 160 MiB of thread buffers take
    /// 42,000 page faults without them, which is 0.2 s of the start of a run, and 700 with them.
    pub fn new_filled(len: usize) -> rustix::io::Result<Self> {
        let map = Self::new(len)?;
        if len > 0 {
            // SAFETY: the range is the mapping created above, and the advice does not change its contents. Kernels
            // without huge pages reject the advice, which needs no handling.
            let _ = unsafe { madvise(map.at.as_ptr().cast(), map.len, Advice::LinuxHugepage) };
        }
        Ok(map)
    }

    fn of_kind(len: usize, kind: MapFlags) -> rustix::io::Result<Self> {
        if len == 0 {
            return Ok(Self { at: NonNull::<AtomicU64>::dangling().cast(), len });
        }
        // SAFETY: the kernel chooses the address, so the new mapping replaces no other one.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, kind) }?;
        NonNull::new(at.cast()).map(|at| Self { at, len }).ok_or(rustix::io::Errno::NOMEM)
    }

    /// Returns the memory as bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `at` points to `len` initialised bytes that stay mapped as long as `self` lives. They are written
        // through `bytes_mut` only, which `&self` excludes: the types that use a map as atomics don't lend it.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// Returns the memory as mutable bytes.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `at` points to `len` initialised, writable bytes that stay mapped as long as `self` lives.
        // `&mut self` excludes every other reference to them.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

/// A mapping of atomic 32-bit integers, all zero at first.
#[derive(Debug)]
pub struct Integers(Map);

impl Integers {
    /// Maps `n` integers. Fails with the error of `mmap` (`ENOMEM`).
    pub fn new(n: usize) -> rustix::io::Result<Self> {
        Map::new(n.checked_mul(4).ok_or(rustix::io::Errno::NOMEM)?).map(Self)
    }
}

impl Deref for Integers {
    type Target = [AtomicI32];

    #[inline]
    fn deref(&self) -> &[AtomicI32] {
        // SAFETY: the address is page aligned and points to `len` initialised bytes that stay mapped as long as `self`
        // lives. Every bit pattern is a valid value. The map is private to `self`, which never borrows it as bytes.
        unsafe { std::slice::from_raw_parts(self.0.at.as_ptr().cast(), self.0.len / 4) }
    }
}

/// A part of a map's counters. Keeps the map alive, so that a writer needs neither a look-up nor a lifetime.
#[derive(Debug)]
pub struct Counters {
    at: NonNull<AtomicU64>,
    len: usize,
    _map: Arc<Map>,
}

// SAFETY: the pointer is to atomics, which any thread may use, in a mapping that lives as long as `self`.
unsafe impl Send for Counters {}
// SAFETY: a shared `Counters` gives out shared references to atomics only.
unsafe impl Sync for Counters {}

impl Counters {
    /// Maps `parts` times `len` counters, all zero, in one mapping, and returns the parts. Huge pages are disabled for
    /// the mapping, so that only the counters that are touched use memory.
    pub fn new(parts: usize, len: usize) -> rustix::io::Result<Vec<Self>> {
        Self::of_kind(parts, len, MapFlags::PRIVATE)
    }

    /// Maps counters as [`Counters::new`] does, for parts that are written by different threads.
    ///
    /// The mapping is `MAP_SHARED`, although no other process shares it. Reading an untouched page of private memory
    /// maps the kernel's zero page. The first write then replaces that page, and every processor that runs the process
    /// has to be notified of the change. `MAP_NORESERVE` reserves no memory for pages that are never touched.
    pub fn new_shared(parts: usize, len: usize) -> rustix::io::Result<Vec<Self>> {
        Self::of_kind(parts, len, MapFlags::SHARED | MapFlags::NORESERVE)
    }

    fn of_kind(parts: usize, len: usize, kind: MapFlags) -> rustix::io::Result<Vec<Self>> {
        let bytes = parts.checked_mul(len).and_then(|n| n.checked_mul(8)).ok_or(rustix::io::Errno::NOMEM)?;
        let map = Map::of_kind(bytes, kind)?;
        if bytes > 0 {
            // SAFETY: the range is the mapping created above, and the advice does not change its contents. Kernels
            // without huge pages reject the advice, which needs no handling.
            let _ = unsafe { madvise(map.at.as_ptr().cast(), map.len, Advice::LinuxNoHugepage) };
        }
        let map = Arc::new(map);
        let part = |i: usize| {
            // SAFETY: `i < parts`, so the offset is within the mapping (and 0 if `len` is 0).
            let at = unsafe { map.at.cast::<AtomicU64>().add(i * len) };
            Self { at, len, _map: Arc::clone(&map) }
        };
        Ok((0..parts).map(part).collect())
    }
}

impl Deref for Counters {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `at` is aligned and points to `len` initialised words that stay mapped as long as `self` lives. The
        // map is private to its parts, which use it as atomics only.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

/// A page-aligned part of a mapping: memory with one owner, which can be moved to another thread. Keeps the map alive.
#[derive(Debug)]
pub struct MapSlice {
    at: NonNull<u8>,
    len: usize,
    map: Arc<Map>,
}

// SAFETY: `self` is the only owner of its bytes, and the map behind it is `Send` and `Sync`.
unsafe impl Send for MapSlice {}
// SAFETY: a shared `MapSlice` gives out shared byte slices only.
unsafe impl Sync for MapSlice {}

impl MapSlice {
    /// Maps `slices` slices of at least `len` zero bytes, each page aligned, in one mapping. Pages that are not touched
    /// use no memory.
    pub fn allocate(slices: usize, len: usize) -> rustix::io::Result<Vec<Self>> {
        let no_memory = rustix::io::Errno::NOMEM;
        let len = len.max(1).checked_next_multiple_of(PAGE).ok_or(no_memory)?;
        let map = Arc::new(Map::new(slices.checked_mul(len).ok_or(no_memory)?)?);
        let slice = |i: usize| {
            // SAFETY: `i < slices`, so the offset is within the mapping.
            let at = unsafe { map.at.add(i * len) };
            Self { at, len, map: Arc::clone(&map) }
        };
        Ok((0..slices).map(slice).collect())
    }

    /// Returns the start and the length in bytes of the mapping that contains the slice.
    #[inline]
    pub(crate) fn mapping(&self) -> (*mut u8, usize) {
        (self.map.at.as_ptr(), self.map.len)
    }
}

impl Deref for MapSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `at` points to `len` initialised bytes that stay mapped as long as `self` lives. Slices do not
        // overlap, and no other reference to the map's bytes is given out.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl DerefMut for MapSlice {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other reference to these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `self` owns the mapping, and references into it can't outlive `self`.
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
    fn parts_are_zero_and_separate_and_outlive_each_other() {
        let mut parts = Counters::new(3, 1000).unwrap();
        for (i, part) in parts.iter().enumerate() {
            assert_eq!(part.len(), 1000);
            part[0].store(i as u64 + 1, Relaxed);
            part[999].store(i as u64 + 10, Relaxed);
        }
        let last = parts.pop().unwrap();
        drop(parts);
        assert_eq!((last[0].load(Relaxed), last[1].load(Relaxed), last[999].load(Relaxed)), (3, 0, 12));
        assert!(Counters::new(0, 1000).unwrap().is_empty());
        assert!(Counters::new(usize::MAX, 2).is_err());
    }
    #[test]
    fn slices_are_aligned_and_separate_and_outlive_each_other() {
        let mut slices = MapSlice::allocate(3, 5000).unwrap();
        for (i, slice) in slices.iter_mut().enumerate() {
            assert_eq!((slice.len(), slice.as_ptr() as usize % 4096), (8192, 0));
            slice.fill(i as u8 + 1);
        }
        let last = slices.pop().unwrap();
        assert!(slices.iter().zip(1..).all(|(slice, i)| slice.iter().all(|b| *b == i)));
        drop(slices);
        assert!(last.iter().all(|b| *b == 3));
        assert!(MapSlice::allocate(usize::MAX, 4096).is_err());
        assert!(MapSlice::allocate(0, 4096).unwrap().is_empty());
    }
}
