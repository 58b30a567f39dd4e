//! Anonymous memory straight from the kernel: zero until touched, page aligned, given back as a whole.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::NonNull;

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
        if len == 0 {
            return Ok(Self { at: NonNull::dangling(), len });
        }
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
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

impl Drop for Map {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping is ours, and nothing borrowed from it can outlive `self`.
            let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
        }
    }
}
