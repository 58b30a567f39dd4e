//! System calls on inode attributes: times, mode, owner and extended attributes.

use super::fd::{Fd, Result, borrow, stat_at};
use rustix::fs::{self as rfs, AtFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::ffi::CStr;

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

/// Changes `name` in `dir`. Changes a symbolic link itself, not its target, except for the mode: Linux can't change the
/// mode of a symbolic link.
#[inline]
pub fn change_at(dir: Fd, name: &CStr, change: &InodeChange) -> Result<()> {
    let dir = borrow(dir);
    match *change {
        InodeChange::TimesNow => rfs::utimensat(dir, name, &NOW, AtFlags::SYMLINK_NOFOLLOW),
        InodeChange::Times(seconds) => rfs::utimensat(dir, name, &times(seconds, 0), AtFlags::SYMLINK_NOFOLLOW),
        InodeChange::Mode(bits) => rfs::chmodat(dir, name, Mode::from_bits_retain(bits), AtFlags::empty()),
        InodeChange::Owner(user, group) => rfs::chownat(dir, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW),
    }
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
