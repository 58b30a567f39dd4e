//! The number of a file's pages in the page cache: `cachestat`, or `mincore` on kernels before 6.5.

use super::fd::{self, Fd, Result};
use super::last_errno;
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of the system call, the same on all architectures.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`. A length of 0 means to the end of the file.
#[repr(C)]
struct Range {
    from: u64,
    len: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The method by which cached pages were counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// The system call `cachestat`.
    Cachestat,
    /// `mincore` on a mapping of the file.
    Mincore,
}

/// The page size in bytes.
///
/// By the C library: rustix reads the auxiliary vector itself, and ends with a fault where valgrind gives it one that is not
/// true.
pub fn page() -> u64 {
    // SAFETY: it only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Returns the number of cached pages among the first `len` bytes of an open file, and how it was determined.
pub fn cached_pages(fd: Fd, len: u64) -> Result<(u64, Method)> {
    static LACKS_CACHESTAT: AtomicBool = AtomicBool::new(false);
    if len == 0 {
        return Ok((0, Method::Cachestat));
    }
    if !LACKS_CACHESTAT.load(Ordering::Relaxed) {
        match cachestat(fd, len) {
            Err(Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP) => LACKS_CACHESTAT.store(true, Ordering::Relaxed),
            done => return done.map(|pages| (pages.min(len.div_ceil(page())), Method::Cachestat)),
        }
    }
    mincore(fd, len).map(|pages| (pages, Method::Mincore))
}

fn cachestat(fd: Fd, len: u64) -> Result<u64> {
    let range = Range { from: 0, len };
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to live structures with the layout that the call defines. The kernel only reads the
    // first and writes only the second.
    let rc = unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut stat, 0) };
    if rc == 0 { Ok(stat.cached) } else { Err(last_errno()) }
}

fn mincore(fd: Fd, len: u64) -> Result<u64> {
    // Map no more than the file. If it shrinks meanwhile, `mincore` fails; nothing is read through the mapping.
    let len = len.min(fd::fstat(fd)?.size) as usize;
    if len == 0 {
        return Ok(0);
    }
    let mut pages = vec![0_u8; len.div_ceil(page() as usize)];
    // SAFETY: the kernel chooses the address, so the new mapping replaces no other one.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    if at == libc::MAP_FAILED {
        return Err(last_errno());
    }
    // SAFETY: `at` is a mapping of `len` bytes, and `pages` has one byte for each of its pages.
    let rc = unsafe { libc::mincore(at, len, pages.as_mut_ptr().cast()) };
    let failed = (rc != 0).then(last_errno);
    // SAFETY: the mapping was created above, and no reference into it exists.
    unsafe { libc::munmap(at, len) };
    match failed {
        Some(e) => Err(e),
        None => Ok(pages.iter().filter(|&&page| page & 1 != 0).count() as u64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn both_methods_count_the_pages_just_written() {
        let mut file = tempfile::tempfile().unwrap();
        let len = 10 * page() + 1;
        file.write_all(&vec![1; len as usize]).unwrap();
        assert_eq!(mincore(file.as_raw_fd(), len).unwrap(), 11);
        assert_eq!(cached_pages(file.as_raw_fd(), len).unwrap().0, 11);
        assert_eq!(cached_pages(file.as_raw_fd(), 0).unwrap().0, 0);
    }
}
