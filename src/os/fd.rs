//! System calls on descriptors: a thin layer over rustix that allocates nothing and owns nothing. It retries locks, and
//! the calls that a signal may interrupt before they have done anything.

use rustix::fd::BorrowedFd;
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::{self as rio, Errno};
use rustix::path::Arg;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A descriptor in the descriptor table of the thread that uses it.
pub type Fd = i32;

/// The value that stands for no descriptor.
pub const NONE: Fd = -1;

/// `O_DSYNC`. `OFlags::DSYNC` can't be used: rustix gives it the bits of `O_SYNC`.
pub const DATA_SYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

/// The result of a system call: a value, or the error number.
pub type Result<T> = std::result::Result<T, Errno>;

/// Borrows a descriptor for one system call, which fails with `EBADF` if there is no such descriptor.
#[inline]
pub(super) fn borrow(fd: Fd) -> BorrowedFd<'static> {
    debug_assert!(fd >= 0 || fd == libc::AT_FDCWD);
    // SAFETY: the descriptor is not -1, and the borrow lasts for one system call. If the descriptor is closed
    // meanwhile, the call fails with `EBADF` or acts on another file that wmlrun has opened. Memory safety does not
    // depend on it.
    unsafe { BorrowedFd::borrow_raw(not_minus_one(fd)) }
}

/// Replaces [`NONE`], which a [`BorrowedFd`] must not be, by another number that is never a descriptor. A conditional
/// move, no branch.
#[inline]
const fn not_minus_one(fd: Fd) -> Fd {
    if fd == NONE { NONE - 1 } else { fd }
}

/// Largest number of repetitions of a call that signals interrupt, before the error is returned.
const MAX_RETRIES: u32 = 100;

/// Makes a call, and repeats it if a signal interrupted it before it did anything (`EINTR`). The repetition is in a
/// separate `#[cold]` function so that the inlined part is the call and one comparison.
///
/// The handlers of signals let the kernel restart most calls, but not all on all file systems. Calls that change names,
/// such as `rename`, are not repeated: an interruption is not a documented result of them, and the repetition of one
/// that has been done all the same would fail.
#[inline]
pub(super) fn retry_interrupted<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    match call() {
        Err(Errno::INTR) => retry_interrupted_slow(call),
        done => done,
    }
}

#[cold]
fn retry_interrupted_slow<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 0..MAX_RETRIES {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
    Err(Errno::INTR)
}

fn into_raw(fd: rustix::fd::OwnedFd) -> Fd {
    use std::os::fd::IntoRawFd;
    fd.into_raw_fd()
}

/// Waits until the descriptor is readable or its other end is closed, for at most `limit`, and returns whether it is. A
/// signal ends the wait early.
pub(crate) fn wait_readable(fd: Fd, limit: Duration) -> bool {
    let fd = borrow(fd);
    let mut wanted = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec::try_from(limit).ok();
    rustix::event::poll(&mut wanted, limit.as_ref()).is_ok_and(|ready| ready > 0)
}

/// File status: the fields of `stat` that wmlrun uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    pub kind: FileType,
    /// The size in bytes.
    pub size: u64,
    /// The number of 512-byte blocks allocated.
    pub blocks: u64,
    /// The device number of the file system.
    pub device: u64,
    /// The device number that a device file stands for.
    pub special: u64,
    /// The inode number.
    pub inode: u64,
    /// The number of hard links.
    pub links: u64,
}

impl From<rfs::Stat> for Stat {
    #[allow(clippy::useless_conversion, reason = "the fields' types differ between architectures")]
    fn from(s: rfs::Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(s.st_mode),
            size: s.st_size as u64,
            blocks: s.st_blocks as u64,
            device: s.st_dev,
            special: s.st_rdev,
            inode: s.st_ino,
            links: u64::from(s.st_nlink),
        }
    }
}

/// The attributes by which wmlrun recognises a file of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileInfo {
    pub kind: FileType,
    /// The size in bytes.
    pub size: u64,
    /// The number of hard links.
    pub links: u64,
    /// The inode number.
    pub inode: u64,
    /// Whether the file is the root of a mount. Always `false` before Linux 5.8, which does not report it.
    pub mounted: bool,
    /// The creation time in nanoseconds since 1970. `None` where the file system does not record it.
    pub born: Option<i128>,
}

impl From<rfs::Statx> for FileInfo {
    fn from(s: rfs::Statx) -> Self {
        let born = i128::from(s.stx_btime.tv_sec) * 1_000_000_000 + i128::from(s.stx_btime.tv_nsec);
        Self {
            kind: FileType::from_raw_mode(s.stx_mode.into()),
            size: s.stx_size,
            links: s.stx_nlink.into(),
            inode: s.stx_ino,
            mounted: s.stx_attributes.contains(rfs::StatxAttributes::MOUNT_ROOT),
            born: (s.stx_mask & StatxFlags::BTIME.bits() != 0).then_some(born),
        }
    }
}

impl From<Stat> for FileInfo {
    fn from(s: Stat) -> Self {
        Self { kind: s.kind, size: s.size, links: s.links, inode: s.inode, mounted: false, born: None }
    }
}

/// Returns the attributes of an open file.
pub fn file_info(fd: Fd) -> Result<FileInfo> {
    match rfs::statx(borrow(fd), c"", AtFlags::EMPTY_PATH, INFO) {
        Err(Errno::NOSYS) => fstat(fd).map(FileInfo::from),
        done => done.map(FileInfo::from),
    }
}

/// Returns the attributes of `name` in `dir`. Does not follow a symbolic link.
pub fn file_info_at(dir: Fd, name: &CStr) -> Result<FileInfo> {
    match rfs::statx(borrow(dir), name, AtFlags::SYMLINK_NOFOLLOW, INFO) {
        Err(Errno::NOSYS) => stat_at(dir, name).map(FileInfo::from),
        done => done.map(FileInfo::from),
    }
}

const INFO: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Opens a path with the usual rules, symbolic links included. For paths that the user named; files below a root are
/// opened by [`open_at`] and [`open_beneath`].
pub fn open_path(path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
    retry_interrupted(|| rfs::open(path, flags | OFlags::CLOEXEC, mode)).map(into_raw)
}

/// Opens `name`, a single component, in `dir`. Does not follow it if it is a symbolic link.
#[inline]
pub fn open_at(dir: Fd, name: &CStr, flags: OFlags, mode: Mode) -> Result<Fd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_interrupted(|| rfs::openat(borrow(dir), name, flags, mode)).map(into_raw)
}

/// Opens `path`, which may have several components, below `dir`. Follows no symbolic link, does not leave `dir` and
/// crosses no mount point. Fails with [`Errno::NOSYS`] if the kernel has no `openat2`; the caller then has to walk the
/// components.
pub fn open_beneath(dir: Fd, path: &CStr, flags: OFlags) -> Result<Fd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::CLOEXEC;
    retry_interrupted(|| rfs::openat2(borrow(dir), path, flags, Mode::empty(), resolve)).map(into_raw)
}

/// Opens the existing file `name`, a single component, in `dir`. Follows no symbolic link, crosses no mount point and
/// does not wait for the other end of a pipe. The caller has to check the type of the file. Without `openat2` a mount
/// point is not detected.
#[inline]
pub fn open_existing(dir: Fd, name: &CStr, flags: OFlags) -> Result<Fd> {
    static ABSENT: AtomicBool = AtomicBool::new(false);
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let openat = || retry_interrupted(|| rfs::openat(borrow(dir), name, flags, Mode::empty())).map(into_raw);
    if !ABSENT.load(Ordering::Relaxed) {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        match retry_interrupted(|| rfs::openat2(borrow(dir), name, flags, Mode::empty(), resolve)) {
            Err(error) if lacks_openat2(error) => {
                // A refusal that has another reason comes again.
                let opened = openat()?;
                ABSENT.store(true, Ordering::Relaxed);
                return Ok(opened);
            }
            done => return done.map(into_raw),
        }
    }
    openat()
}

/// True if an error of `openat2` means that the kernel, or the filter of a container, does not have it.
pub fn lacks_openat2(error: Errno) -> bool {
    matches!(error, Errno::NOSYS | Errno::PERM)
}

/// Makes calls on an open file blocking again. [`open_existing`] opens files as non-blocking.
pub fn set_blocking(fd: Fd) -> Result<()> {
    let flags = rfs::fcntl_getfl(borrow(fd))?;
    rfs::fcntl_setfl(borrow(fd), flags - OFlags::NONBLOCK)
}

/// Closes a descriptor and ignores errors: for a file that was not written to, or after another error.
#[inline]
pub fn close(fd: Fd) {
    let _ = close_checked(fd);
}

/// Closes the descriptor of a file that was written to, and returns the error of the file system, if any. The
/// descriptor is closed in any case.
#[inline]
pub fn close_checked(fd: Fd) -> Result<()> {
    debug_assert!(fd >= 0);
    // Not `rustix::io::close`, which assumes that closing can't fail.
    //
    // SAFETY: descriptors are plain numbers here. The code that opened a descriptor closes it once, in the table in
    // which it was opened, so this closes no descriptor that another owner still uses.
    let rc = unsafe { libc::close(fd) };
    if rc == 0 { Ok(()) } else { Err(super::last_errno()) }
}

/// Duplicates a descriptor. The new one refers to the same open file and is closed on `exec`.
pub fn duplicate(fd: Fd) -> Result<Fd> {
    rio::fcntl_dupfd_cloexec(borrow(fd), 0).map(into_raw)
}

/// Makes room in the table of descriptors, of which `open` is one. If it grows later, a thread that shares it waits 10
/// to 20 ms each time that it doubles (60 of 65 ms of `git_status`). Over the limit, it grows when it must.
pub fn make_room(open: Fd, descriptors: u64) {
    drop(rio::fcntl_dupfd_cloexec(borrow(open), descriptors.try_into().unwrap_or(i32::MAX)));
}

/// Duplicates a descriptor into an owned `File`, for a thread that shares the process's descriptor table.
pub(crate) fn duplicate_file(fd: Fd) -> std::io::Result<std::fs::File> {
    Ok(rio::fcntl_dupfd_cloexec(borrow(fd), 3)?.into())
}

/// Reads at an offset. Returns the number of bytes read.
#[inline]
pub fn pread(fd: Fd, buf: &mut [u8], offset: u64) -> Result<usize> {
    retry_interrupted(|| rio::pread(borrow(fd), &mut *buf, offset))
}

/// Writes at an offset. Returns the number of bytes written.
#[inline]
pub fn pwrite(fd: Fd, buf: &[u8], offset: u64) -> Result<usize> {
    retry_interrupted(|| rio::pwrite(borrow(fd), buf, offset))
}

/// Reads at the current file position. Returns the number of bytes read.
#[inline]
pub fn read(fd: Fd, buf: &mut [u8]) -> Result<usize> {
    retry_interrupted(|| rio::read(borrow(fd), &mut *buf))
}

/// Writes at the current file position. Returns the number of bytes written.
#[inline]
pub fn write(fd: Fd, buf: &[u8]) -> Result<usize> {
    retry_interrupted(|| rio::write(borrow(fd), buf))
}

/// Moves the file position. Returns the new one.
#[inline]
pub fn seek(fd: Fd, to: rfs::SeekFrom) -> Result<u64> {
    rfs::seek(borrow(fd), to)
}

/// Writes the whole buffer, in as many calls as needed.
pub fn write_all(fd: Fd, mut buf: &[u8]) -> Result<()> {
    while !buf.is_empty() {
        match write(fd, buf)? {
            0 => return Err(Errno::IO),
            n => buf = &buf[n..],
        }
    }
    Ok(())
}

/// Flushes a file's data and metadata to the device.
#[inline]
pub fn fsync(fd: Fd) -> Result<()> {
    retry_interrupted(|| rfs::fsync(borrow(fd)))
}

/// Flushes a file's data, and the metadata needed to read it, to the device.
#[inline]
pub fn fdatasync(fd: Fd) -> Result<()> {
    retry_interrupted(|| rfs::fdatasync(borrow(fd)))
}

/// Flushes the whole file system of an open file to the device.
pub fn syncfs(fd: Fd) -> Result<()> {
    retry_interrupted(|| rfs::syncfs(borrow(fd)))
}

/// Sets a file's size in bytes.
pub fn ftruncate(fd: Fd, size: u64) -> Result<()> {
    retry_interrupted(|| rfs::ftruncate(borrow(fd), size))
}

/// Returns the status of an open file.
#[inline]
pub fn fstat(fd: Fd) -> Result<Stat> {
    rfs::fstat(borrow(fd)).map(Stat::from)
}

/// Returns the inode number of an open file and its change time (`ctime`) as seconds and nanoseconds.
#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    reason = "the fields' types differ between architectures"
)]
pub fn change_time(fd: Fd) -> Result<(u64, (i64, i64))> {
    rfs::fstat(borrow(fd)).map(|s| (s.st_ino, (s.st_ctime as i64, s.st_ctime_nsec as i64)))
}

/// Returns the status of `name` in `dir`. Does not follow a symbolic link.
#[inline]
pub fn stat_at(dir: Fd, name: &CStr) -> Result<Stat> {
    rfs::statat(borrow(dir), name, AtFlags::SYMLINK_NOFOLLOW).map(Stat::from)
}

/// Returns the status of a path. Does not follow a symbolic link in the last component.
pub fn lstat(path: &Path) -> Result<Stat> {
    rfs::lstat(path).map(Stat::from)
}

/// Returns the status of a path. Follows symbolic links.
pub fn stat(path: &Path) -> Result<Stat> {
    rfs::stat(path).map(Stat::from)
}

#[inline]
pub fn mkdir_at(dir: Fd, name: &CStr, mode: Mode) -> Result<()> {
    rfs::mkdirat(borrow(dir), name, mode)
}

/// Removes a name of a file.
#[inline]
pub fn unlink_at(dir: Fd, name: &CStr) -> Result<()> {
    rfs::unlinkat(borrow(dir), name, AtFlags::empty())
}

/// Removes an empty directory.
#[inline]
pub fn rmdir_at(dir: Fd, name: &CStr) -> Result<()> {
    rfs::unlinkat(borrow(dir), name, AtFlags::REMOVEDIR)
}

/// Creates a hard link to a file. Fails with [`Errno::EXIST`] if the new name exists.
#[inline]
pub fn link_at(dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()> {
    rfs::linkat(borrow(dir), name, borrow(new_dir), new_name, AtFlags::empty())
}

/// Renames a file. Replaces a file that has the new name.
#[inline]
pub fn rename_at(dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()> {
    rfs::renameat(borrow(dir), name, borrow(new_dir), new_name)
}

/// Renames a file within a directory. Fails with [`Errno::EXIST`] if the new name exists. Where the file system can't
/// do this in one call, the existence of the new name is checked first, which is not atomic.
///
/// Not by a hard link, as in `handle::rename_new`: a program that is killed before it has removed the old name
/// would leave two names, and a marker that has a second name is not accepted.
pub fn rename_new(dir: Fd, name: &CStr, new_name: &CStr) -> Result<()> {
    let dir = borrow(dir);
    rename_no_replace(dir, name, new_name, || rename_if_free(dir, name, new_name))
}

/// Renames a file or directory within a directory, and fails with [`Errno::EXIST`] if the new name exists. Calls
/// `instead` where the kernel or the file system has no such call (`RENAME_NOREPLACE`).
pub(super) fn rename_no_replace(
    dir: BorrowedFd<'_>,
    name: impl Arg,
    new_name: impl Arg,
    instead: impl FnOnce() -> Result<()>,
) -> Result<()> {
    match rfs::renameat_with(dir, name, dir, new_name, rfs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => instead(),
        done => done,
    }
}

/// Renames a file or directory within a directory, after a check that the new name does not exist. Not atomic.
pub(super) fn rename_if_free(dir: BorrowedFd<'_>, name: impl Arg, new_name: impl Arg + Copy) -> Result<()> {
    match rfs::statat(dir, new_name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rfs::renameat(dir, name, dir, new_name),
        Ok(_) => Err(Errno::EXIST),
        Err(e) => Err(e),
    }
}

/// Creates a symbolic link with the content `text`.
#[inline]
pub fn symlink_at(text: &CStr, dir: Fd, name: &CStr) -> Result<()> {
    rfs::symlinkat(text, borrow(dir), name)
}

/// Reads the content of a symbolic link. Returns its length in bytes, truncated to the length of the buffer.
#[inline]
pub fn read_link_at(dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<usize> {
    rfs::readlinkat_raw(borrow(dir), name, buf)
}

/// Takes the exclusive lock (`flock`) of an open file. Retries for one second, then fails with [`Errno::WOULDBLOCK`].
///
/// The lock may be held although its owner has ended: a process that is killed while it starts a program leaves a copy
/// of the descriptor in the child until the child's `execve`.
pub fn lock(fd: Fd) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(5);
    let end = Instant::now() + Duration::from_secs(1);
    loop {
        match rfs::flock(borrow(fd), rfs::FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(PAUSE),
            result => return result,
        }
    }
}

/// Releases a lock and closes its file.
pub fn unlock(fd: Fd) {
    release_lock(fd);
    close(fd);
}

/// Releases a lock. Closing the file alone does not suffice: the lock lasts as long as any copy of the descriptor, and a
/// program that is being started holds a copy for a moment.
pub fn release_lock(fd: Fd) {
    let _ = rfs::flock(borrow(fd), rfs::FlockOperation::Unlock);
}

/// Returns the space on the file system of an open file.
pub fn statvfs(fd: Fd) -> Result<Space> {
    retry_interrupted(|| rfs::fstatvfs(borrow(fd))).map(|found| space(&found))
}

/// Returns the space on the file system of a path.
pub fn statvfs_path(path: &Path) -> Result<Space> {
    retry_interrupted(|| rfs::statvfs(path)).map(|found| space(&found))
}

fn space(found: &rfs::StatVfs) -> Space {
    Space {
        // A file system of a network may report any numbers.
        total: found.f_blocks.saturating_mul(found.f_frsize),
        free: found.f_bavail.saturating_mul(found.f_frsize),
        files: found.f_files,
        files_free: found.f_favail,
        block: found.f_bsize,
        fragment: found.f_frsize,
    }
}

/// The alignment that a file system requires for direct I/O, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectAlignment {
    /// The alignment of buffers in memory.
    pub memory: u64,
    /// The alignment of file offsets and transfer sizes.
    pub offset: u64,
}

/// Returns the alignment that direct I/O on new files in a directory requires (`STATX_DIOALIGN`, Linux 6.1). Queries an
/// unnamed temporary file. `None` where the kernel or the file system does not report it.
pub fn direct_alignment(dir: &Path) -> Option<DirectAlignment> {
    let mode = Mode::from_raw_mode(0o600);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = retry_interrupted(|| rfs::open(dir, flags, mode)).ok()?;
    let status = rfs::statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let (memory, offset) = (u64::from(status.stx_dio_mem_align), u64::from(status.stx_dio_offset_align));
    (status.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && offset > 0).then_some(DirectAlignment { memory, offset })
}

/// Returns the identifier of the file system of an open file (`f_fsid` of `statvfs`).
pub fn file_system_id(fd: Fd) -> Result<u64> {
    retry_interrupted(|| rfs::fstatvfs(borrow(fd))).map(|v| v.f_fsid)
}

/// Returns the magic number of the file system type of an open file (`f_type` of `statfs`).
pub fn file_system_kind(fd: Fd) -> Result<u64> {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        reason = "the field's type differs between architectures"
    )]
    retry_interrupted(|| rfs::fstatfs(borrow(fd))).map(|s| s.f_type as u64)
}

/// Space on a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Space {
    /// The size of the file system in bytes.
    pub total: u64,
    /// The bytes available to this user.
    pub free: u64,
    /// The number of inodes; 0 where the file system creates them on demand.
    pub files: u64,
    /// The number of inodes available to this user; meaningless where `files` is 0.
    pub files_free: u64,
    /// The block size that the file system prefers, in bytes.
    pub block: u64,
    /// The unit in which the file system counts its space, in bytes. Most file systems allocate space in this unit.
    pub fragment: u64,
}

/// Reads the entries of a directory with `getdents64`, without `.` and `..`. Calls `each` with the name and the type of
/// each entry (unknown where the file system does not report it); `false` from `each` ends the walk. Returns the number
/// of system calls made.
pub fn list_dir(fd: Fd, buf: &mut [u8], mut each: impl FnMut(&CStr, FileType) -> bool) -> Result<u64> {
    // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and the exclusive borrow of `buf` is passed on. `RawDir` lets
    // only the kernel write to the buffer, so its bytes stay initialised.
    let spare = unsafe { &mut *(std::ptr::from_mut(buf) as *mut [std::mem::MaybeUninit<u8>]) };
    let mut dir = rfs::RawDir::new(borrow(fd), spare);
    let mut calls = 1;
    while let Some(entry) = dir.next() {
        let entry = entry?;
        let name = entry.file_name();
        let bytes = name.to_bytes();
        if bytes != b"." && bytes != b".." && !each(name, entry.file_type()) {
            return Ok(calls);
        }
        if dir.is_buffer_empty() {
            super::steps::count();
            calls += 1;
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::{AsFd, AsRawFd};

    #[test]
    fn an_existing_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let open = std::fs::File::open(dir.path()).unwrap();
        let calls: [&dyn Fn() -> Result<()>; 2] =
            [&|| rename_new(open.as_raw_fd(), c"from", c"to"), &|| rename_if_free(open.as_fd(), c"from", c"to")];
        for call in calls {
            for done in [Ok(()), Err(Errno::EXIST)] {
                std::fs::write(dir.path().join("from"), "").unwrap();
                assert_eq!(call(), done);
            }
            std::fs::remove_file(dir.path().join("to")).unwrap();
        }
    }

    #[test]
    fn the_value_for_no_descriptor_is_not_borrowed_as_it_is() {
        assert_eq!([NONE, 0, 7, libc::AT_FDCWD].map(not_minus_one), [-2, 0, 7, libc::AT_FDCWD]);
    }

    #[test]
    fn an_interrupted_call_is_repeated_and_not_for_ever() {
        let calls = |results: &mut dyn Iterator<Item = Result<u32>>| {
            let mut made = 0;
            let result = retry_interrupted(|| {
                made += 1;
                results.next().unwrap_or(Ok(0))
            });
            (result, made)
        };
        let interrupted = || std::iter::repeat(Err::<u32, _>(Errno::INTR));
        assert_eq!(calls(&mut [Ok(5)].into_iter()), (Ok(5), 1));
        assert_eq!(calls(&mut interrupted().take(3).chain([Ok(5)])), (Ok(5), 4));
        assert_eq!(calls(&mut interrupted().take(1).chain([Err(Errno::IO)])), (Err(Errno::IO), 2));
        assert_eq!(calls(&mut interrupted()), (Err(Errno::INTR), MAX_RETRIES + 1));
    }
}
