//! The operating system: descriptors, memory maps, the clock, processes' limits. Nearly all `unsafe` is here.
//!
//! Descriptors are plain numbers ([`Fd`]), never owned handles: each WML process has a descriptor table of its own, and an
//! owned handle that is dropped in another table would close a stranger's file. Who opens, closes.
//! Deliberately absent: the language, file sets, and any policy about them.

mod ahead;
pub mod blocked;
pub mod cache;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod device;
pub mod fd;
pub mod futex;
pub mod handle;
pub mod inode;
pub mod limits;
pub mod map;
mod annotate;
pub mod mapped;
pub mod name;
pub mod proc;
pub mod range;
pub mod schedule;
pub mod signals;
pub mod steps;
pub mod temporary;
pub mod uring;

pub use ahead::cache_line;
pub use annotate::annotate;
pub use clock::{Clock, Scale};
pub use fd::{Fd, NONE};
pub use rustix::fs::{Advice, FileType, Mode, OFlags, SeekFrom};
pub use rustix::io::Errno;

/// What error number 0 is called: an operation that could not be done failed before its call.
pub const NO_CALL: &str = "no call";

/// No error of the kernel's: a write of which the file system took nothing, and reported no error.
pub const NOTHING_WRITTEN: Errno = Errno::from_raw_os_error(4094);

/// A command could not be run, or ended with a status that is not 0: no error number of the kernel's.
pub const COMMAND_FAILED: Errno = Errno::from_raw_os_error(4093);

/// The symbolic name of an error number (`ENOSPC`), `errno N` for one that has none here, [`NO_CALL`] for 0.
pub fn errno_name(errno: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EBADF, "EBADF"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENFILE, "ENFILE"),
        (libc::EMFILE, "EMFILE"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::ESPIPE, "ESPIPE"),
        (libc::EROFS, "EROFS"),
        (libc::EMLINK, "EMLINK"),
        (libc::ERANGE, "ERANGE"),
        (libc::ENAMETOOLONG, "ENAMETOOLONG"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ENOTEMPTY, "ENOTEMPTY"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENODATA, "ENODATA"),
        (libc::EOVERFLOW, "EOVERFLOW"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::ESTALE, "ESTALE"),
        (libc::EDQUOT, "EDQUOT"),
        (libc::ECANCELED, "ECANCELED"),
        (libc::EUCLEAN, "EUCLEAN"),
    ];
    if errno == 0 {
        return NO_CALL.to_owned();
    }
    if errno == NOTHING_WRITTEN.raw_os_error() {
        return "nothing written".to_owned();
    }
    if errno == COMMAND_FAILED.raw_os_error() {
        return "command failed".to_owned();
    }
    NAMES.iter().find(|(n, _)| *n == errno).map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

/// What the operating system says about an error number: `No space left on device`.
pub fn errno_text(errno: i32) -> String {
    if errno == NOTHING_WRITTEN.raw_os_error() {
        return "the file system took none of the bytes, and reported no error".to_owned();
    }
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// The symbolic name of a signal that ends runs (`SIGINT`), or `signal N`.
pub fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGHUP => "SIGHUP".to_owned(),
        libc::SIGINT => "SIGINT".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        libc::SIGXCPU => "SIGXCPU".to_owned(),
        _ => format!("signal {signal}"),
    }
}

/// `n` volatile stores of one byte, nothing else: the work of the `hog` flowop. Exactly `n`, whatever the optimiser thinks, and
/// one in each turn of a loop, as a C compiler makes it: an unrolled loop would burn little more than half the time.
#[inline(never)]
pub fn burn(place: &mut u64, n: u64) {
    let byte: *mut u8 = std::ptr::from_mut(place).cast();
    let mut left = n;
    while left > 0 {
        // SAFETY: the pointer is to a live u64, of which the first byte is written.
        unsafe { byte.write_volatile(left as u8) };
        left -= 1;
        // SAFETY: no instruction; for all that is known the counter has changed, so that each turn looks at it.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) left, options(nomem, nostack, preserves_flags)) };
    }
}
