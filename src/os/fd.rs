//! Calls on descriptors, thin over rustix: no allocation, no ownership, and no retry but for a lock.

use rustix::fd::BorrowedFd;
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::{self as rio, Errno};
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A descriptor in the table of the thread that uses it.
pub type Fd = i32;

/// No descriptor.
pub const NONE: Fd = -1;

/// `O_DSYNC`, which `OFlags::DSYNC` is not: rustix gives it the bits of `O_SYNC`.
pub const DATA_SYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

/// The result of a call: a value, or the error number.
pub type Result<T> = std::result::Result<T, Errno>;

#[inline]
pub(super) fn borrow(fd: Fd) -> BorrowedFd<'static> {
    debug_assert!(fd >= 0 || fd == libc::AT_FDCWD);
    // SAFETY: the borrow is used for one system call. A descriptor that is closed meanwhile makes that call fail with EBADF,
    // or work on another file of wmlrun's own; it can't break memory.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

fn forget(fd: rustix::fd::OwnedFd) -> Fd {
    use std::os::fd::IntoRawFd;
    fd.into_raw_fd()
}

/// Waits until there is something to read, or its other end is gone; for at most so long, or until a signal comes.
pub fn wait_readable(fd: Fd, limit: Duration) {
    let fd = borrow(fd);
    let mut wanted = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec::try_from(limit).ok();
    // Whoever waits looks for itself what has come.
    let _ = rustix::event::poll(&mut wanted, limit.as_ref());
}

/// What is known of a file: the part of `stat` that wmlrun looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// What it is.
    pub kind: FileType,
    /// Bytes.
    pub size: u64,
    /// 512-byte blocks that it takes.
    pub blocks: u64,
    /// The device it lies on.
    pub device: u64,
    /// For a device file, which device it is.
    pub special: u64,
    /// Inode number.
    pub inode: u64,
    /// Names that it has.
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

/// What tells a file of ours from something else: its kind, its names, where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// What it is.
    pub kind: FileType,
    /// Bytes.
    pub size: u64,
    /// Names that it has.
    pub links: u64,
    /// Inode number.
    pub inode: u64,
    /// Something is mounted on it (Linux 5.8 says so).
    pub mounted: bool,
    /// When it was made, in nanoseconds since 1970, where the file system keeps that.
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

/// What [`FileInfo`] says of an open file.
pub fn file_info(fd: Fd) -> Result<FileInfo> {
    match rfs::statx(borrow(fd), c"", AtFlags::EMPTY_PATH, INFO) {
        Err(Errno::NOSYS) => fstat(fd).map(FileInfo::from),
        done => done.map(FileInfo::from),
    }
}

/// The same of `name` in `dir`; a link is not followed.
pub fn file_info_at(dir: Fd, name: &CStr) -> Result<FileInfo> {
    match rfs::statx(borrow(dir), name, AtFlags::SYMLINK_NOFOLLOW, INFO) {
        Err(Errno::NOSYS) => stat_at(dir, name).map(FileInfo::from),
        done => done.map(FileInfo::from),
    }
}

const INFO: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Opens a path as the system does, links and all. For what a user named; what lies below a root goes by [`open_at`] and
/// [`open_beneath`].
pub fn open_path(path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
    rfs::open(path, flags | OFlags::CLOEXEC, mode).map(forget)
}

/// Opens `name`, one component, in `dir`. The last component is never followed if it is a link.
#[inline]
pub fn open_at(dir: Fd, name: &CStr, flags: OFlags, mode: Mode) -> Result<Fd> {
    rfs::openat(borrow(dir), name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode).map(forget)
}

/// Opens `path`, several components, below `dir`: no link anywhere, never out of `dir`, and onto no other mount.
/// Where the kernel has no `openat2` the caller has to walk; [`Errno::NOSYS`] says so.
pub fn open_beneath(dir: Fd, path: &CStr, flags: OFlags) -> Result<Fd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rfs::openat2(borrow(dir), path, flags | OFlags::CLOEXEC, Mode::empty(), resolve).map(forget)
}

/// Opens the file `name`, one component, in `dir`, if it is there: no link, nothing on another mount, and no wait for the other
/// end of a pipe. What was opened is the caller's to look at. A kernel without `openat2` does not see a mount here.
#[inline]
pub fn open_existing(dir: Fd, name: &CStr, flags: OFlags) -> Result<Fd> {
    static ABSENT: AtomicBool = AtomicBool::new(false);
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if !ABSENT.load(Ordering::Relaxed) {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        match rfs::openat2(borrow(dir), name, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS) => ABSENT.store(true, Ordering::Relaxed),
            done => return done.map(forget),
        }
    }
    rfs::openat(borrow(dir), name, flags, Mode::empty()).map(forget)
}

/// Calls on an open file wait again: what [`open_existing`] has prevented, where it matters afterwards.
pub fn set_blocking(fd: Fd) -> Result<()> {
    let flags = rfs::fcntl_getfl(borrow(fd))?;
    rfs::fcntl_setfl(borrow(fd), flags - OFlags::NONBLOCK)
}

/// Closes a descriptor that nothing was written to, or on the way out of an error.
#[inline]
pub fn close(fd: Fd) {
    let _ = close_checked(fd);
}

/// Closes a descriptor of a file that was written to, and says what the file system has to say. It is closed in any case.
#[inline]
pub fn close_checked(fd: Fd) -> Result<()> {
    debug_assert!(fd >= 0);
    // Not by rustix, whose `close` takes an error for impossible.
    //
    // SAFETY: descriptors are plain numbers here; whoever opened one closes it, once, in the table it was opened in.
    let rc = unsafe { libc::close(fd) };
    if rc == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}

/// Another descriptor of the same open file.
pub fn duplicate(fd: Fd) -> Result<Fd> {
    rio::fcntl_dupfd_cloexec(borrow(fd), 0).map(forget)
}

/// Another descriptor of the same open file, which closes itself: for a thread that shares the process's table.
pub fn duplicate_file(fd: Fd) -> std::io::Result<std::fs::File> {
    Ok(rio::fcntl_dupfd_cloexec(borrow(fd), 3)?.into())
}

/// Reads at an offset.
#[inline]
pub fn pread(fd: Fd, buf: &mut [u8], offset: u64) -> Result<usize> {
    rio::pread(borrow(fd), buf, offset)
}

/// Writes at an offset.
#[inline]
pub fn pwrite(fd: Fd, buf: &[u8], offset: u64) -> Result<usize> {
    rio::pwrite(borrow(fd), buf, offset)
}

/// Reads at the current position.
#[inline]
pub fn read(fd: Fd, buf: &mut [u8]) -> Result<usize> {
    rio::read(borrow(fd), buf)
}

/// Writes at the current position.
#[inline]
pub fn write(fd: Fd, buf: &[u8]) -> Result<usize> {
    rio::write(borrow(fd), buf)
}

/// Moves the current position.
#[inline]
pub fn seek(fd: Fd, to: rfs::SeekFrom) -> Result<u64> {
    rfs::seek(borrow(fd), to)
}

/// Writes everything, in as many calls as it takes.
pub fn write_all(fd: Fd, mut buf: &[u8]) -> Result<()> {
    while !buf.is_empty() {
        match rio::write(borrow(fd), buf) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => buf = &buf[n..],
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Forces data and metadata of a file down.
#[inline]
pub fn fsync(fd: Fd) -> Result<()> {
    rfs::fsync(borrow(fd))
}

/// Forces data of a file down.
#[inline]
pub fn fdatasync(fd: Fd) -> Result<()> {
    rfs::fdatasync(borrow(fd))
}

/// Forces a whole file system down.
pub fn syncfs(fd: Fd) -> Result<()> {
    rfs::syncfs(borrow(fd))
}

/// Sets a file's size.
pub fn ftruncate(fd: Fd, size: u64) -> Result<()> {
    rfs::ftruncate(borrow(fd), size)
}

/// What is known of an open file.
#[inline]
pub fn fstat(fd: Fd) -> Result<Stat> {
    rfs::fstat(borrow(fd)).map(Stat::from)
}

/// The inode number of an open file, and when it was last changed, in seconds and nanoseconds.
#[allow(
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    reason = "the fields' types differ between architectures"
)]
pub fn change_time(fd: Fd) -> Result<(u64, (i64, i64))> {
    rfs::fstat(borrow(fd)).map(|s| (s.st_ino, (s.st_ctime as i64, s.st_ctime_nsec as i64)))
}

/// What is known of `name` in `dir`; a link is not followed.
#[inline]
pub fn stat_at(dir: Fd, name: &CStr) -> Result<Stat> {
    rfs::statat(borrow(dir), name, AtFlags::SYMLINK_NOFOLLOW).map(Stat::from)
}

/// What is known of a path; a link at its end is not followed.
pub fn lstat(path: &Path) -> Result<Stat> {
    rfs::lstat(path).map(Stat::from)
}

/// What is known of a path; links are followed.
pub fn stat(path: &Path) -> Result<Stat> {
    rfs::stat(path).map(Stat::from)
}

/// Makes a directory.
#[inline]
pub fn mkdir_at(dir: Fd, name: &CStr, mode: Mode) -> Result<()> {
    rfs::mkdirat(borrow(dir), name, mode)
}

/// Removes a file's name.
#[inline]
pub fn unlink_at(dir: Fd, name: &CStr) -> Result<()> {
    rfs::unlinkat(borrow(dir), name, AtFlags::empty())
}

/// Removes an empty directory.
#[inline]
pub fn rmdir_at(dir: Fd, name: &CStr) -> Result<()> {
    rfs::unlinkat(borrow(dir), name, AtFlags::REMOVEDIR)
}

/// Gives a file another name, which must be free.
#[inline]
pub fn link_at(dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()> {
    rfs::linkat(borrow(dir), name, borrow(new_dir), new_name, AtFlags::empty())
}

/// Moves a name. What had the new name is replaced.
#[inline]
pub fn rename_at(dir: Fd, name: &CStr, new_dir: Fd, new_name: &CStr) -> Result<()> {
    rfs::renameat(borrow(dir), name, borrow(new_dir), new_name)
}

/// Moves a name to one that must be free: [`Errno::EXIST`] if it is not. Where the file system can't do that in one call, the
/// name is looked at first.
pub fn rename_new(dir: Fd, name: &CStr, new_name: &CStr) -> Result<()> {
    let dir = borrow(dir);
    match rfs::renameat_with(dir, name, dir, new_name, rfs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match rfs::statat(dir, new_name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rfs::renameat(dir, name, dir, new_name),
                Ok(_) => Err(Errno::EXIST),
                Err(e) => Err(e),
            }
        }
        done => done,
    }
}

/// Makes a symbolic link that holds `text`.
#[inline]
pub fn symlink_at(text: &CStr, dir: Fd, name: &CStr) -> Result<()> {
    rfs::symlinkat(text, borrow(dir), name)
}

/// Reads what a symbolic link holds; the bytes that it has, cut off at the end of the buffer.
#[inline]
pub fn read_link_at(dir: Fd, name: &CStr, buf: &mut [u8]) -> Result<usize> {
    rfs::readlinkat_raw(borrow(dir), name, buf)
}

/// Takes the lock of an open file; [`Errno::WOULDBLOCK`] if another holds it for more than a second. A process that was killed
/// as it started a program leaves its lock to that program until its `execve`, so a lock that is held now may be nobody's.
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

/// Gives a lock back, and closes its file. Closing alone is not enough: a lock lasts as long as any copy of its descriptor, and
/// a program that is being started has one for a moment.
pub fn unlock(fd: Fd) {
    let _ = rfs::flock(borrow(fd), rfs::FlockOperation::Unlock);
    close(fd);
}

/// Room on the file system of an open file.
pub fn statvfs(fd: Fd) -> Result<Space> {
    rfs::fstatvfs(borrow(fd)).map(|v| Space {
        total: v.f_blocks * v.f_frsize,
        free: v.f_bavail * v.f_frsize,
        files: v.f_files,
        files_free: v.f_favail,
        block: v.f_bsize,
    })
}

/// Room on the file system of a path.
pub fn statvfs_path(path: &Path) -> Result<Space> {
    rfs::statvfs(path).map(|v| Space {
        total: v.f_blocks * v.f_frsize,
        free: v.f_bavail * v.f_frsize,
        files: v.f_files,
        files_free: v.f_favail,
        block: v.f_bsize,
    })
}

/// What a file system asks of direct I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectAlignment {
    /// Buffers begin at multiples of this.
    pub memory: u64,
    /// So do offsets in files, and sizes are multiples of it.
    pub offset: u64,
}

/// What direct I/O on new files in a directory must be aligned to (`STATX_DIOALIGN`, Linux 6.1), asked of a file without a name.
/// None where the kernel or the file system does not say.
pub fn direct_alignment(dir: &Path) -> Option<DirectAlignment> {
    let mode = Mode::from_raw_mode(0o600);
    let file = rfs::open(dir, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode).ok()?;
    let status = rfs::statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let (memory, offset) = (u64::from(status.stx_dio_mem_align), u64::from(status.stx_dio_offset_align));
    (status.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && offset > 0).then_some(DirectAlignment { memory, offset })
}

/// The identity of the file system that an open file lies on (`f_fsid` of `statfs`).
pub fn file_system_id(fd: Fd) -> Result<u64> {
    rfs::fstatvfs(borrow(fd)).map(|v| v.f_fsid)
}

/// The number that says which kind of file system an open file lies on (`f_type` of `statfs`).
pub fn file_system_kind(fd: Fd) -> Result<u64> {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        reason = "the field's type differs between architectures"
    )]
    rfs::fstatfs(borrow(fd)).map(|s| s.f_type as u64)
}

/// Room on a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes in all.
    pub total: u64,
    /// Bytes that this user may still take.
    pub free: u64,
    /// Inodes in all; 0 where the file system makes them as needed.
    pub files: u64,
    /// Inodes that this user may still take; meaningless where `files` is 0.
    pub files_free: u64,
    /// The block size that the file system likes.
    pub block: u64,
}

/// Reads a directory's names with `getdents64`, `.` and `..` left out. `each` gets the name and what it is, where the file
/// system says so, and may stop the walk by returning `false`. Returns the calls made.
pub fn list_dir(fd: Fd, buf: &mut [u8], mut each: impl FnMut(&CStr, FileType) -> bool) -> Result<u64> {
    // The slice is only ever written by the kernel and read back as entries.
    // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and RawDir writes only initialised bytes into it.
    let spare = unsafe { &mut *(std::ptr::from_mut(buf) as *mut [std::mem::MaybeUninit<u8>]) };
    let mut dir = rfs::RawDir::new(borrow(fd), spare);
    let mut calls = 1;
    while let Some(entry) = dir.next() {
        let entry = entry?;
        let name = entry.file_name();
        let known = name.to_bytes();
        if known != b"." && known != b".." && !each(name, entry.file_type()) {
            return Ok(calls);
        }
        if dir.is_buffer_empty() {
            super::steps::count();
            calls += 1;
        }
    }
    Ok(calls)
}
