//! System calls on inode attributes: times, mode, owner and extended attributes. None of them follows a symbolic link.

use super::fd::{self, Fd, Result, borrow, stat_at};
use super::last_errno;
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::ffi::CStr;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// A change of inode attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InodeChange {
    /// Sets access and modification time to the current time.
    TimesNow,
    /// Sets access and modification time to this time, in seconds since 1970.
    Times(i64),
    /// Sets the permission bits.
    Mode(u32),
    /// Sets user and group. See [`InodeChange::own`].
    Owner(Uid, Gid),
}

impl InodeChange {
    /// Returns the change of owner to the effective user and group of this process, which a file of this process
    /// already has.
    pub fn own() -> Self {
        Self::Owner(rustix::process::geteuid(), rustix::process::getegid())
    }
}

const fn times(tv_sec: i64, tv_nsec: i64) -> rfs::Timestamps {
    let time = rfs::Timespec { tv_sec, tv_nsec: tv_nsec as _ };
    rfs::Timestamps { last_access: time, last_modification: time }
}

const NOW: rfs::Timestamps = times(0, rfs::UTIME_NOW);

/// Changes `name` in `dir`. Changes a symbolic link itself, not its target. Returns the number of system calls beyond the
/// first. Fails with [`Errno::OPNOTSUPP`] for the mode of a symbolic link, which Linux can't change.
#[inline]
pub fn change_at(dir: Fd, name: &CStr, change: &InodeChange) -> Result<u64> {
    let dir = borrow(dir);
    let changed = match *change {
        InodeChange::TimesNow => rfs::utimensat(dir, name, &NOW, AtFlags::SYMLINK_NOFOLLOW),
        InodeChange::Times(seconds) => rfs::utimensat(dir, name, &times(seconds, 0), AtFlags::SYMLINK_NOFOLLOW),
        InodeChange::Mode(bits) => return set_mode_at(dir.as_raw_fd(), name, bits),
        InodeChange::Owner(user, group) => rfs::chownat(dir, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW),
    };
    changed.map(|()| 0)
}

/// Sets the permission bits of `name` in `dir`. Returns the number of system calls beyond the first. The older call
/// `fchmodat` follows a symbolic link.
#[inline]
fn set_mode_at(dir: Fd, name: &CStr, bits: u32) -> Result<u64> {
    /// `fchmodat2`, since Linux 6.6. It has the same number on all architectures.
    const SYS_FCHMODAT2: libc::c_long = 452;
    static ABSENT: AtomicBool = AtomicBool::new(false);
    if ABSENT.load(Ordering::Relaxed) {
        return set_mode_by_path(dir, name, bits);
    }
    // SAFETY: `name` is a live string that ends in a zero byte; all other arguments are integers.
    let rc = unsafe { libc::syscall(SYS_FCHMODAT2, dir, name.as_ptr(), bits, libc::AT_SYMLINK_NOFOLLOW) };
    if rc == 0 {
        return Ok(0);
    }
    match last_errno() {
        Errno::NOSYS => ABSENT.store(true, Ordering::Relaxed),
        // The file's owner is another user, or the container forbids the call, which some do instead of hiding it.
        Errno::PERM => {}
        errno => return Err(errno),
    }
    set_mode_by_path(dir, name, bits).map(|further| further + 1)
}

/// Sets the permission bits by a descriptor that only locates the file, where the kernel has no `fchmodat2`. Returns the
/// number of system calls beyond the first: `fstat`, `chmod` and `close`.
#[cold]
fn set_mode_by_path(dir: Fd, name: &CStr, bits: u32) -> Result<u64> {
    let file = fd::open_at(dir, name, OFlags::PATH, Mode::empty())?;
    let done = match fd::fstat(file) {
        Ok(stat) if stat.kind == FileType::Symlink => Err(Errno::OPNOTSUPP),
        Ok(_) => set_mode_of(file, bits),
        Err(errno) => Err(errno),
    };
    fd::close(file);
    done.map(|()| 3)
}

/// Sets the permission bits of a file whose descriptor only locates it, through its link in `/proc`. Not `/proc/self`:
/// the thread may have a descriptor table of its own. The path is put together without an allocation, because the caller
/// is an operation that is timed.
fn set_mode_of(file: Fd, bits: u32) -> Result<()> {
    let mut path = [0; 48];
    let mut rest = &mut path[..];
    // A descriptor has at most ten digits.
    let _ = write!(rest, "/proc/thread-self/fd/{file}");
    let left = rest.len();
    let length = path.len() - left;
    rfs::chmod(&path[..length], Mode::from_bits_retain(bits))
}

/// Changes an open file.
#[inline]
pub fn change(fd: Fd, change: &InodeChange) -> Result<()> {
    let fd = borrow(fd);
    match *change {
        InodeChange::TimesNow => rfs::futimens(fd, &NOW),
        InodeChange::Times(seconds) => rfs::futimens(fd, &times(seconds, 0)),
        InodeChange::Mode(bits) => rfs::fchmod(fd, Mode::from_bits_retain(bits)),
        InodeChange::Owner(user, group) => rfs::fchown(fd, Some(user), Some(group)),
    }
}

/// Checks that `name` in `dir` may be read. Does not follow a symbolic link. Linux before 5.8 can't check this; there
/// the function checks that the name exists.
#[inline]
pub fn access_at(dir: Fd, name: &CStr) -> Result<()> {
    match rfs::accessat(borrow(dir), name, rfs::Access::READ_OK, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOSYS) => stat_at(dir, name).map(drop),
        done => done,
    }
}

/// Sets an extended attribute of an open file.
#[inline]
pub fn set_xattr(fd: Fd, name: &CStr, value: &[u8]) -> Result<()> {
    rfs::fsetxattr(borrow(fd), name, value, rfs::XattrFlags::empty())
}

/// Reads an extended attribute of an open file. Returns its length in bytes.
#[inline]
pub fn get_xattr(fd: Fd, name: &CStr, buf: &mut [u8]) -> Result<usize> {
    rfs::fgetxattr(borrow(fd), name, buf)
}

/// Reads the names of an open file's extended attributes, each followed by a zero byte. Returns their total length in
/// bytes.
#[inline]
pub fn list_xattrs(fd: Fd, buf: &mut [u8]) -> Result<usize> {
    rfs::flistxattr(borrow(fd), buf)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_mode_of_the_target_of_a_link_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        let mode = || fs::metadata(dir.path().join("file")).unwrap().permissions().mode() & 0o777;
        let open = File::open(dir.path()).unwrap();
        for (set, bits) in [(set_mode_at as fn(Fd, &CStr, u32) -> Result<u64>, 0o640), (set_mode_by_path, 0o600)] {
            set(open.as_raw_fd(), c"file", bits).unwrap();
            assert_eq!(mode(), bits);
            assert_eq!(set(open.as_raw_fd(), c"link", 0o666), Err(Errno::OPNOTSUPP));
            assert_eq!(mode(), bits);
            assert_eq!(set(open.as_raw_fd(), c"missing", 0o600), Err(Errno::NOENT));
        }
        assert_eq!(set_mode_by_path(open.as_raw_fd(), c"file", 0o600), Ok(3));
    }
}
