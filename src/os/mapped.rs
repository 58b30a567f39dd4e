//! Files as memory, without the danger: a page that the file does not have is an error, not the end of the process.
//!
//! The kernel answers an access beyond the end of a mapped file (another thread cut it), or to a page that it can't bring in
//! (a full disk, a dead one), with SIGBUS. While a thread copies to or from a map the handler puts a page of zeros in the
//! place of the one that is missing, so that the copy goes on, and the copy then reports `EFAULT`. Any other SIGBUS is what
//! it was before: the end of the process.

use super::{Errno, Fd};
use rustix::fd::BorrowedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Once;

/// A file as memory, shared with everybody who has the file open.
#[derive(Debug)]
pub struct FileMap {
    at: NonNull<u8>,
    len: usize,
    write: bool,
}

// SAFETY: the memory is plain bytes that are only copied from and to, by whoever owns the map.
unsafe impl Send for FileMap {}

/// What this thread is copying, for the handler: where a missing page may be replaced, and whether one was.
struct MappingWatch {
    start: Cell<usize>,
    end: Cell<usize>,
    hit: Cell<bool>,
}

thread_local! {
    // Constant and without a destructor: the handler may look at it at any time.
    static WATCH: MappingWatch = const { MappingWatch { start: Cell::new(0), end: Cell::new(0), hit: Cell::new(false) } };
}

impl FileMap {
    /// Maps the first `len` bytes of an open file; `len` is not 0. Bytes beyond the file's end can be mapped, not touched.
    pub fn new(fd: Fd, len: usize, write: bool) -> rustix::io::Result<Self> {
        watch_faults();
        let access = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists; the descriptor is used
        // for this one call.
        let at = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, BorrowedFd::borrow_raw(fd), 0) }?;
        NonNull::new(at.cast()).map(|at| Self { at, len, write }).ok_or(Errno::NOMEM)
    }

    /// Bytes mapped.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether nothing is mapped, which never happens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies out of the file. `EFAULT` if it has no such bytes, also where another thread has just cut them off.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> rustix::io::Result<()> {
        let from = self.place(offset, buf.len())?;
        self.watched(|| {
            // SAFETY: `place` has seen that the bytes lie in the mapping; a missing page is replaced by the handler. Others may
            // write the same bytes meanwhile: what arrives is some mixture of plain bytes, as with `read`.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), buf.as_mut_ptr(), buf.len()) };
        })
    }

    /// Copies into the file; errors as of [`FileMap::read`], and `EACCES` for a map that is only read.
    pub fn write(&mut self, offset: u64, buf: &[u8]) -> rustix::io::Result<()> {
        if !self.write {
            return Err(Errno::ACCESS);
        }
        let to = self.place(offset, buf.len())?;
        self.watched(|| {
            // SAFETY: as for `read`, and the mapping is writable.
            unsafe { std::ptr::copy_nonoverlapping(buf.as_ptr(), to.as_ptr(), buf.len()) };
        })
    }

    fn place(&self, offset: u64, len: usize) -> rustix::io::Result<NonNull<u8>> {
        let offset = usize::try_from(offset).map_err(|_| Errno::FAULT)?;
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(Errno::FAULT);
        }
        // SAFETY: the offset lies in the mapping.
        Ok(unsafe { self.at.add(offset) })
    }

    #[inline]
    fn watched(&self, copy: impl FnOnce()) -> rustix::io::Result<()> {
        WATCH.with(|watch| {
            let start = self.at.as_ptr() as usize;
            watch.start.set(start);
            watch.end.set(start + self.len);
            // The handler runs in this thread: it is enough that the compiler keeps the order.
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
            copy();
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
            watch.end.set(0);
            if watch.hit.replace(false) { Err(Errno::FAULT) } else { Ok(()) }
        })
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it is ever given out.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

/// Installs the handler, once for the process.
fn watch_faults() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero `sigaction` is a valid value, filled in below; the handler calls only what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        }
    });
}

extern "C" fn on_bus_error(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid `siginfo_t` to a handler installed with SA_SIGINFO.
    let at = unsafe { (*info).si_addr() } as usize;
    let replaced = WATCH.with(|watch| {
        if at < watch.start.get() || at >= watch.end.get() {
            return false;
        }
        let page = rustix::param::page_size();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the page lies in the mapping that this very thread is copying from or to, and nobody has a reference to it.
        let mapped =
            unsafe { libc::mmap((at & !(page - 1)) as *mut _, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        watch.hit.set(true);
        mapped != libc::MAP_FAILED
    });
    if !replaced {
        // Not ours: the access is tried again, and ends the process as it would have without us.
        // SAFETY: sets the default action, which is always possible.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::FileMap;
    use crate::os::Errno;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_is_read_and_written_as_memory() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10_000).unwrap();
        let mut map = FileMap::new(file.as_raw_fd(), 10_000, true).unwrap();
        map.write(9_000, b"here").unwrap();
        let mut seen = [0; 4];
        map.read(9_000, &mut seen).unwrap();
        assert_eq!(&seen, b"here");
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut seen, 9_000).unwrap();
        assert_eq!(&seen, b"here");
        assert_eq!(map.read(9_999, &mut seen), Err(Errno::FAULT));
    }

    #[test]
    fn a_file_that_shrinks_under_the_map_is_an_error_and_nothing_worse() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut map = FileMap::new(file.as_raw_fd(), 1 << 20, true).unwrap();
        map.write(0, &[1; 100]).unwrap();
        file.set_len(4096).unwrap();
        let mut buf = vec![0; 64 << 10];
        assert_eq!(map.read(512 << 10, &mut buf), Err(Errno::FAULT));
        assert_eq!(map.write(600 << 10, &buf), Err(Errno::FAULT));
        map.read(0, &mut buf[..100]).unwrap();
        assert_eq!(buf[..100], [1; 100]);
    }
}
