//! The operating system: descriptors, memory maps, the clock, process limits. Nearly all `unsafe` code is here.
//!
//! Descriptors are plain numbers ([`Fd`]), not owned handles. Each WML process has a descriptor table of its own, and
//! an owned handle that is dropped in another table would close an unrelated file. The code that opens a descriptor
//! closes it.
//!
//! Not here: the language, file sets, and any policy about them.

#![allow(clippy::disallowed_methods, reason = "files are opened here")]

mod annotate;
pub mod as_given;
pub mod background;
pub mod blocked;
pub mod cache;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod device;
pub mod energy;
pub mod extents;
pub mod fd;
pub mod file_system;
pub mod futex;
pub mod handle;
pub mod held_dir;
pub mod inode;
pub mod kernel_threads;
pub mod limits;
mod lookup;
pub mod map;
pub mod mapped;
pub mod name;
pub mod output;
pub mod path;
pub mod pipe;
mod prefetch;
pub mod proc;
pub mod ptrace;
pub mod quiesce;
pub mod range;
pub mod reading;
pub mod schedule;
pub mod settings;
pub mod signals;
pub mod steps;
pub mod temporary;
pub mod uring;
pub mod vectored;

pub use annotate::annotate;
pub use clock::{Clock, Scale};
pub use fd::{Fd, NONE};
pub use prefetch::prefetch;
pub use rustix::fs::{Advice, FileType, Mode, OFlags, SeekFrom};
pub use rustix::io::Errno;

/// The name of error number 0: an operation that failed before it made its system call.
pub const NO_CALL: &str = "no call";

/// The error of a write that returned 0 bytes and no error. Not an error number of the kernel.
pub const NOTHING_WRITTEN: Errno = Errno::from_raw_os_error(4094);

/// The error of a command that could not be run or that exited with a non-zero status. Not an error number of the
/// kernel.
pub const COMMAND_FAILED: Errno = Errno::from_raw_os_error(4093);

/// Returns the error of the last system call of this thread, which has failed.
#[cold]
fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Returns the symbolic name of an error number (`ENOSPC`), [`NO_CALL`] for 0, and `errno N` for a number that is not
/// in this table.
pub fn errno_name(errno: i32) -> String {
    macro_rules! named {
        ($($name:ident),*) => { &[$((libc::$name, stringify!($name))),*] };
    }
    // The numbers that a file system, its network or its device may return, in the order of the numbers.
    #[rustfmt::skip]
    const NAMES: &[(i32, &str)] = named![
        EPERM, ENOENT, ESRCH, EINTR, EIO, ENXIO, E2BIG, ENOEXEC, EBADF, EAGAIN, ENOMEM, EACCES, EFAULT, ENOTBLK,
        EBUSY, EEXIST, EXDEV, ENODEV, ENOTDIR, EISDIR, EINVAL, ENFILE, EMFILE, ENOTTY, ETXTBSY, EFBIG, ENOSPC,
        ESPIPE, EROFS, EMLINK, EPIPE, EDOM, ERANGE, EDEADLK, ENAMETOOLONG, ENOLCK, ENOSYS, ENOTEMPTY, ELOOP, ENOMSG,
        EBADE, EBADR, EXFULL, ENODATA, ETIME, ENONET, EREMOTE, ENOLINK, ECOMM, EPROTO, EMULTIHOP, EBADMSG,
        EOVERFLOW, ENOTUNIQ, EBADFD, EREMCHG, EILSEQ, EUSERS, ENOTSOCK, EMSGSIZE, EPROTOTYPE, ENOPROTOOPT,
        EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, ENETRESET,
        ECONNABORTED, ECONNRESET, ENOBUFS, EISCONN, ENOTCONN, ESHUTDOWN, ETOOMANYREFS, ETIMEDOUT, ECONNREFUSED,
        EHOSTDOWN, EHOSTUNREACH, EALREADY, EINPROGRESS, ESTALE, EUCLEAN, EREMOTEIO, EDQUOT, ENOMEDIUM, EMEDIUMTYPE,
        ECANCELED, ENOKEY, EKEYEXPIRED, EKEYREVOKED, EKEYREJECTED, EOWNERDEAD, ENOTRECOVERABLE, EHWPOISON
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

/// Returns the description of an error number, as of `strerror(3)`: `No space left on device`.
pub fn errno_text(errno: i32) -> String {
    if errno == NOTHING_WRITTEN.raw_os_error() {
        return "the file system accepted none of the bytes and reported no error".to_owned();
    }
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Returns the symbolic name of a signal that ends runs (`SIGINT`), and `signal N` for any other signal.
pub fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGHUP => "SIGHUP".to_owned(),
        libc::SIGINT => "SIGINT".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        libc::SIGXCPU => "SIGXCPU".to_owned(),
        _ => format!("signal {signal}"),
    }
}

/// Makes exactly `n` volatile stores of one byte to `target`: the work of the `hog` flowop.
///
/// There is one store in each iteration, as in the loop that a C compiler generates: an unrolled loop would take
/// little more than half the time.
#[inline(never)]
pub fn burn(target: &mut u64, n: u64) {
    let byte: *mut u8 = std::ptr::from_mut(target).cast();
    let mut remaining = n;
    while remaining > 0 {
        // SAFETY: `byte` points to the first byte of `target`, which is exclusively borrowed.
        unsafe { byte.write_volatile(remaining as u8) };
        remaining -= 1;
        // SAFETY: the assembly text is a comment, so no instruction is executed. `inout` makes the compiler assume
        // that `remaining` has changed, so that it neither unrolls the loop nor computes the count in advance.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) remaining, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_file_systems_and_devices_have_their_names() {
        for (errno, name) in [
            (libc::EIO, "EIO"),
            (libc::ENOLCK, "ENOLCK"),
            (libc::EBADMSG, "EBADMSG"),
            (libc::EILSEQ, "EILSEQ"),
            (libc::EREMOTEIO, "EREMOTEIO"),
            (libc::ENOMEDIUM, "ENOMEDIUM"),
            (0, NO_CALL),
            (4000, "errno 4000"),
        ] {
            assert_eq!(errno_name(errno), name);
        }
    }
}
