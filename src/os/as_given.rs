//! System calls with flags as a program gave them, for replaying what it did. None follows a symbolic link.

use super::fd::{Fd, Result, borrow, retry_interrupted};
use super::last_errno;
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, RenameFlags};
use std::ffi::CStr;
use std::io::Write as _;

fn done(result: i64) -> Result<i64> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// Renames with the flags of `renameat2`.
#[inline]
pub fn rename(dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr, flags: u32) -> Result<()> {
    match flags {
        0 => rfs::renameat(borrow(dir), name, borrow(new_dir), new_name),
        flags => rfs::renameat_with(borrow(dir), name, borrow(new_dir), new_name, RenameFlags::from_bits_retain(flags)),
    }
}

/// Gives an open file that has no name one.
pub fn link_open(fd: Fd, dir: Fd, name: &CStr) -> Result<()> {
    let mut path = [0; 48];
    let mut rest = &mut path[..];
    // A descriptor has at most ten digits.
    let _ = write!(rest, "/proc/thread-self/fd/{fd}");
    let length = 48 - rest.len();
    rfs::linkat(rfs::CWD, &path[..length], borrow(dir), name, AtFlags::SYMLINK_FOLLOW)
}

/// Makes an empty regular file by `mknod`.
pub fn make_file(dir: Fd, name: &CStr) -> Result<()> {
    rfs::mknodat(borrow(dir), name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0)
}

pub fn make_pipe(dir: Fd, name: &CStr) -> Result<()> {
    rfs::mknodat(borrow(dir), name, FileType::Fifo, Mode::from_raw_mode(0o644), 0)
}

/// `fallocate`.
pub fn allocate(fd: Fd, mode: u32, offset: u64, len: u64) -> Result<()> {
    // SAFETY: all arguments are integers. An invalid descriptor makes the call fail.
    retry_interrupted(|| done(unsafe { libc::fallocate(fd, mode as i32, offset as i64, len as i64) }.into()).map(drop))
}

/// `sync_file_range`.
pub fn sync_range(fd: Fd, offset: u64, len: u64, flags: u32) -> Result<()> {
    // SAFETY: all arguments are integers. An invalid descriptor makes the call fail.
    retry_interrupted(|| done(unsafe { libc::sync_file_range(fd, offset as i64, len as i64, flags) }.into()).map(drop))
}

/// `posix_fadvise`.
pub fn advise(fd: Fd, offset: u64, len: u64, advice: u32) -> Result<()> {
    // SAFETY: all arguments are integers. An invalid descriptor makes the call fail. It returns the error.
    match unsafe { libc::posix_fadvise(fd, offset as i64, len as i64, advice as i32) } {
        0 => Ok(()),
        error => Err(rustix::io::Errno::from_raw_os_error(error)),
    }
}

/// `flock`, which does not wait.
pub fn lock(fd: Fd, operation: u32) -> Result<()> {
    // SAFETY: all arguments are integers. An invalid descriptor makes the call fail.
    done(unsafe { libc::flock(fd, operation as i32 | libc::LOCK_NB) }.into()).map(drop)
}

/// The flags of an open file.
pub fn status_flags(fd: Fd) -> Result<u32> {
    rfs::fcntl_getfl(borrow(fd)).map(|flags| flags.bits())
}

/// Moves the position of a file, with `whence` as its number.
#[inline]
pub fn seek(fd: Fd, offset: i64, whence: u32) -> Result<u64> {
    // SAFETY: all arguments are integers. An invalid descriptor makes the call fail.
    done(unsafe { libc::lseek(fd, offset, whence as i32) }).map(|at| at as u64)
}

/// Reads entries of a directory in one call, and returns their length in bytes.
pub fn list(fd: Fd, buf: &mut [u8]) -> Result<usize> {
    // SAFETY: the pointer and the length are those of `buf`, which is exclusively borrowed; the kernel writes bytes to it.
    let read = unsafe { libc::syscall(libc::SYS_getdents64, fd, buf.as_mut_ptr(), buf.len()) };
    done(read).map(|length| length as usize)
}
