//! Memory-mapped files whose access errors are reported as errors instead of ending the process.
//!
//! The kernel raises SIGBUS at an access beyond the end of a mapped file (another thread has truncated it) and at a
//! page that it can't read or allocate (a full or failing disk). While a thread copies from or to a mapping, the signal
//! handler replaces the missing page by a page of zeros. The copy then continues, and reports `EFAULT` at its end. Any
//! other SIGBUS has its default effect: it ends the process.

use super::fd::borrow;
use super::{Errno, Fd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Once;

/// A shared mapping of a file.
#[derive(Debug)]
pub struct FileMap {
    at: NonNull<u8>,
    len: usize,
    write: bool,
}

// SAFETY: the mapping is not bound to a thread. Its bytes are only copied from and to, through the owner of the map.
unsafe impl Send for FileMap {}

/// The copy that the current thread makes: the range in which the handler may replace a page, and whether it has done
/// so.
struct MappedCopy {
    start: Cell<usize>,
    end: Cell<usize>,
    page_replaced: Cell<bool>,
}

thread_local! {
    // Constant initialisation and no destructor: the handler may access it at any time.
    static CURRENT_COPY: MappedCopy = const {
        MappedCopy { start: Cell::new(0), end: Cell::new(0), page_replaced: Cell::new(false) }
    };
}

impl FileMap {
    /// Maps the first `len` bytes of an open file; `len` must not be 0. Bytes beyond the end of the file may be mapped;
    /// an access to them fails.
    pub fn new(fd: Fd, len: usize, write: bool) -> rustix::io::Result<Self> {
        install_handler();
        let access = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: the kernel chooses the address, so the new mapping replaces no other one.
        let at = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, borrow(fd), 0) }?;
        NonNull::new(at.cast()).map(|at| Self { at, len, write }).ok_or(Errno::NOMEM)
    }

    /// Returns the number of bytes mapped.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// True if nothing is mapped, which is never the case.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies from the file. Fails with `EFAULT` if the file does not have these bytes, also if another thread has just
    /// truncated it.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> rustix::io::Result<()> {
        let from = self.address(offset, buf.len())?;
        self.with_handler(|| {
            // SAFETY: `address` has checked that the range is in the mapping, and the handler replaces missing pages.
            // `buf` is exclusively borrowed and can't overlap the mapping, to which no reference exists. If another
            // thread writes the same bytes meanwhile, the result is a mixture of old and new bytes, as with `read`.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), buf.as_mut_ptr(), buf.len()) };
        })
    }

    /// Copies to the file. Fails as [`FileMap::read`] does, and with `EACCES` for a read-only map.
    pub fn write(&mut self, offset: u64, buf: &[u8]) -> rustix::io::Result<()> {
        if !self.write {
            return Err(Errno::ACCESS);
        }
        let to = self.address(offset, buf.len())?;
        self.with_handler(|| {
            // SAFETY: as in `read`; the mapping is writable, as checked above.
            unsafe { std::ptr::copy_nonoverlapping(buf.as_ptr(), to.as_ptr(), buf.len()) };
        })
    }

    #[inline]
    fn address(&self, offset: u64, len: usize) -> rustix::io::Result<NonNull<u8>> {
        let offset = usize::try_from(offset).map_err(|_| Errno::FAULT)?;
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(Errno::FAULT);
        }
        // SAFETY: `offset` is within the mapping, as checked above.
        Ok(unsafe { self.at.add(offset) })
    }

    #[inline]
    fn with_handler(&self, copy: impl FnOnce()) -> rustix::io::Result<()> {
        CURRENT_COPY.with(|copying| {
            let start = self.at.as_ptr() as usize;
            copying.start.set(start);
            copying.end.set(start + self.len);
            // The handler runs in this thread, so only the compiler must not reorder these accesses.
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
            copy();
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
            copying.end.set(0);
            if copying.page_replaced.replace(false) { Err(Errno::FAULT) } else { Ok(()) }
        })
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and no reference into it is ever given out.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

/// Installs the signal handler, once per process.
fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero `sigaction` is a valid value, which is filled in below. The handler accesses a
        // thread-local without a destructor and calls only `mmap` and `signal`, which are usable in a signal handler.
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
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler that was installed with `SA_SIGINFO`.
    let at = unsafe { (*info).si_addr() } as usize;
    let replaced = CURRENT_COPY.with(|copying| {
        if at < copying.start.get() || at >= copying.end.get() {
            return false;
        }
        let page = super::cache::page() as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the replaced page is in the mapping that this thread is copying from or to, and no reference into
        // that mapping exists.
        let mapped =
            unsafe { libc::mmap((at & !(page - 1)) as *mut _, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        copying.page_replaced.set(true);
        mapped != libc::MAP_FAILED
    });
    if !replaced {
        // Not during a copy: the access is repeated after the return and then ends the process, as without a handler.
        //
        // SAFETY: setting the default action of a signal is always allowed, and so in a signal handler.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::FileMap;
    use crate::Errno;
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
    fn access_to_a_truncated_file_is_an_error() {
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
