//! One call of a replay. Nothing here allocates, locks or looks up a path: a name is one component in a directory whose
//! descriptor is held, and no call follows a symbolic link.

use crate::names::{NameId, ReplayNames};
use crate::plan::{MAKES_PIPE, ReplayAction, ReplayOp};
use crate::tree::NOTHING;
use std::ffi::CStr;
use std::sync::atomic::{
    AtomicI32,
    Ordering::{Acquire, Release},
};
use wml_os::as_given as given;
use wml_os::fd::{self, Fd};
use wml_os::inode::{self, InodeChange};
use wml_os::range::{self, Lock};
use wml_os::{Clock, Errno, Mode, NONE, OFlags};

/// The most bytes that one call moves.
pub(crate) const MOST_BUFFER: u64 = 16 << 20;
/// The longest text of a symbolic link.
pub(crate) const LONGEST_LINK: usize = 4095;
/// What an extended attribute is called here: the names of a trace are not known.
const XATTR: &CStr = c"user.wmlrun";
/// The permissions of files and directories.
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// What all threads share.
pub(crate) struct ReplayFiles<'a> {
    pub(crate) names: &'a ReplayNames,
    /// Descriptors by the numbers of files and directories.
    pub(crate) files: Vec<AtomicI32>,
    pub(crate) dirs: Vec<AtomicI32>,
    pub(crate) root: Fd,
    /// The text of links: the end of it is one of that length.
    pub(crate) link_text: Vec<u8>,
}

/// How a call went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallDone {
    /// As the kernel returns it: below 0 the number of the error.
    pub(crate) result: i64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

fn low(both: u64) -> u32 {
    both as u32
}

fn high(both: u64) -> u32 {
    (both >> 32) as u32
}

fn as_result<T>(done: Result<T, Errno>, value: impl FnOnce(T) -> i64) -> i64 {
    match done {
        Ok(found) => value(found),
        Err(error) => -i64::from(error.raw_os_error()),
    }
}

fn no_value<T>(_: T) -> i64 {
    0
}

impl ReplayFiles<'_> {
    fn name(&self, id: u32) -> &CStr {
        self.names.get(NameId(id))
    }

    /// The descriptor of a directory; without one the directory does not exist.
    fn dir(&self, number: u32) -> Result<Fd, Errno> {
        let fd = self.dirs.get(number as usize).map_or(NONE, |fd| fd.load(Acquire));
        if fd == NONE { Err(Errno::NOENT) } else { Ok(fd) }
    }

    fn file(&self, number: u32) -> Result<Fd, Errno> {
        let fd = self.files.get(number as usize).map_or(NONE, |fd| fd.load(Acquire));
        if fd == NONE { Err(Errno::BADF) } else { Ok(fd) }
    }

    fn take(&self, number: u32) -> Result<Fd, Errno> {
        let fd = self.files.get(number as usize).map_or(NONE, |fd| fd.swap(NONE, Release));
        if fd == NONE { Err(Errno::BADF) } else { Ok(fd) }
    }

    fn link_text(&self, length: u64) -> &CStr {
        let length = (length as usize).clamp(1, LONGEST_LINK);
        CStr::from_bytes_with_nul(&self.link_text[LONGEST_LINK - length..]).unwrap_or_default()
    }

    /// Makes a call.
    pub(crate) fn call(&self, op: &ReplayOp, buffer: &mut [u8], clock: &Clock) -> CallDone {
        let mut start = clock.raw();
        let mut end = None;
        let result = match op.action {
            ReplayAction::Nothing => 0,
            ReplayAction::Open => {
                let opened = self.dir(op.a).and_then(|dir| {
                    fd::open_at(dir, self.name(low(op.x)), OFlags::from_bits_retain(op.flags), FILE_MODE)
                });
                end = Some(clock.raw());
                match (opened, self.files.get(high(op.x) as usize)) {
                    (Ok(fd), Some(place)) => place.store(fd, Release),
                    // It failed when it was recorded.
                    (Ok(fd), None) => fd::close(fd),
                    (Err(_), _) => {}
                }
                as_result(opened, i64::from)
            }
            ReplayAction::Attach => self.attach(op),
            ReplayAction::Close => as_result(self.take(op.a).and_then(fd::close_checked), no_value),
            ReplayAction::Drop => as_result(self.take(op.a).map(fd::close), no_value),
            ReplayAction::CloseCopy => {
                let copy = self.file(op.a).and_then(fd::duplicate);
                start = clock.raw();
                as_result(copy.and_then(fd::close_checked), no_value)
            }
            ReplayAction::Copy => {
                let copy = self.file(op.a).and_then(fd::duplicate);
                end = Some(clock.raw());
                copy.into_iter().for_each(fd::close);
                as_result(copy, i64::from)
            }
            ReplayAction::Read => self.in_parts(op, |fd, _, length| fd::read(fd, &mut buffer[..length])),
            ReplayAction::ReadAt => self.in_parts(op, |fd, at, length| fd::pread(fd, &mut buffer[..length], at)),
            ReplayAction::Write => self.in_parts(op, |fd, _, length| fd::write(fd, &buffer[..length])),
            ReplayAction::WriteAt => self.in_parts(op, |fd, at, length| fd::pwrite(fd, &buffer[..length], at)),
            ReplayAction::Seek => {
                let done = self.file(op.a).and_then(|fd| given::seek(fd, op.x as i64, op.flags));
                end = Some(clock.raw());
                // Where data or a hole is may differ, and what follows counts on the position.
                if let (Ok(at), Ok(fd)) = (done, self.file(op.a))
                    && at != op.y
                    && (op.y as i64) >= 0
                {
                    let _ = given::seek(fd, op.y as i64, 0);
                }
                as_result(done, |at| at as i64)
            }
            ReplayAction::List => {
                let length = (op.y as usize).clamp(1, buffer.len());
                as_result(self.file(op.a).and_then(|fd| given::list(fd, &mut buffer[..length])), |n| n as i64)
            }
            ReplayAction::Fstat => as_result(self.file(op.a).and_then(fd::fstat), no_value),
            ReplayAction::Fsync => as_result(self.file(op.a).and_then(fd::fsync), no_value),
            ReplayAction::Fdatasync => as_result(self.file(op.a).and_then(fd::fdatasync), no_value),
            ReplayAction::SyncFs => {
                let fd = if op.a == NOTHING { Ok(self.root) } else { self.file(op.a) };
                as_result(fd.and_then(fd::syncfs), no_value)
            }
            ReplayAction::SyncRange => {
                as_result(self.file(op.a).and_then(|fd| given::sync_range(fd, op.x, op.y, op.flags)), no_value)
            }
            ReplayAction::SetSize => as_result(self.file(op.a).and_then(|fd| fd::ftruncate(fd, op.y)), no_value),
            ReplayAction::Allocate => {
                as_result(self.file(op.a).and_then(|fd| given::allocate(fd, op.flags, op.x, op.y)), no_value)
            }
            ReplayAction::SetModeOpen => self.change_open(op, InodeChange::Mode(op.flags)),
            ReplayAction::SetOwnerOpen => self.change_open(op, InodeChange::own()),
            ReplayAction::SetTimesOpen => self.change_open(op, InodeChange::TimesNow),
            ReplayAction::GetXattrOpen => {
                as_result(self.file(op.a).and_then(|fd| inode::get_xattr(fd, XATTR, buffer)), |n| n as i64)
            }
            ReplayAction::SetXattrOpen => as_result(self.file(op.a).and_then(set_xattr), no_value),
            ReplayAction::LockFile => as_result(self.file(op.a).and_then(|fd| given::lock(fd, op.flags)), no_value),
            ReplayAction::LockRange => {
                as_result(self.file(op.a).and_then(|fd| range::lock(fd, 0, 0, Some(Lock::Shared))), no_value)
            }
            ReplayAction::TestLock => {
                as_result(self.file(op.a).and_then(|fd| range::test_lock(fd, 0, 0, Lock::Shared)), no_value)
            }
            ReplayAction::Advise => {
                as_result(self.file(op.a).and_then(|fd| given::advise(fd, op.x, op.y, op.flags)), no_value)
            }
            ReplayAction::StatFsOpen => as_result(self.file(op.a).and_then(fd::statvfs), no_value),
            ReplayAction::GetFlags => as_result(self.file(op.a).and_then(given::status_flags), i64::from),
            ReplayAction::CopyRange | ReplayAction::SendFile => self.copy(op),
            _ => self.by_name(op, buffer, clock, &mut end),
        };
        CallDone { result, start, end: end.unwrap_or_else(|| clock.raw()) }
    }

    /// A transfer, in parts if it is longer than the buffer.
    fn in_parts(&self, op: &ReplayOp, mut part: impl FnMut(Fd, u64, usize) -> Result<usize, Errno>) -> i64 {
        let Ok(fd) = self.file(op.a) else { return -i64::from(Errno::BADF.raw_os_error()) };
        let most = MOST_BUFFER;
        let mut done = 0;
        loop {
            let wanted = (op.y - done).min(most);
            match part(fd, op.x + done, wanted as usize) {
                Ok(moved) => {
                    done += moved as u64;
                    if (moved as u64) < wanted || done >= op.y {
                        return done as i64;
                    }
                }
                Err(_) if done > 0 => return done as i64,
                Err(error) => return -i64::from(error.raw_os_error()),
            }
        }
    }

    fn copy(&self, op: &ReplayOp) -> i64 {
        let length = op.expected.max(1) as usize;
        let copied = self.file(op.a).and_then(|from| {
            let to = self.file(op.flags)?;
            match op.action {
                ReplayAction::SendFile => range::send(from, op.x, to, length),
                _ => range::copy_range(from, op.x, to, op.y, length),
            }
        });
        as_result(copied, |n| n as i64)
    }

    fn change_open(&self, op: &ReplayOp, change: InodeChange) -> i64 {
        as_result(self.file(op.a).and_then(|fd| inode::change(fd, &change)), no_value)
    }

    /// Opens a file that the program had open already.
    #[cold]
    fn attach(&self, op: &ReplayOp) -> i64 {
        let name = self.name(low(op.x));
        let opened = self.dir(op.a).and_then(|dir| match op.flags {
            u32::MAX => fd::open_at(dir, name, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty())
                .or_else(|_| fd::open_at(dir, name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())),
            flags => {
                let makes = OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC;
                let flags = OFlags::from_bits_retain(flags).difference(makes) | OFlags::NONBLOCK;
                fd::open_at(dir, name, flags, Mode::empty())
            }
        });
        if let (Ok(fd), Some(place)) = (opened, self.files.get(high(op.x) as usize)) {
            let _ = given::seek(fd, op.y as i64, 0);
            place.store(fd, Release);
        }
        as_result(opened, no_value)
    }

    /// Opens a file by its name for as long as `work` takes.
    fn with_open<T>(&self, op: &ReplayOp, flags: OFlags, work: impl FnOnce(Fd) -> Result<T, Errno>) -> i64 {
        let done = self.dir(op.a).and_then(|dir| {
            let fd = fd::open_at(dir, self.name(low(op.x)), flags | OFlags::NONBLOCK, Mode::empty())?;
            let done = work(fd);
            fd::close(fd);
            done
        });
        as_result(done, no_value)
    }

    fn by_name(&self, op: &ReplayOp, buffer: &mut [u8], clock: &Clock, end: &mut Option<u64>) -> i64 {
        let name = self.name(low(op.x));
        let dir = match self.dir(op.a) {
            // Of an open file.
            _ if op.action == ReplayAction::LinkOpen => NONE,
            Ok(dir) => dir,
            Err(error) => return -i64::from(error.raw_os_error()),
        };
        let second = || Ok((self.dir(high(op.x))?, self.name(low(op.y))));
        match op.action {
            ReplayAction::Stat => as_result(fd::stat_at(dir, name), no_value),
            ReplayAction::Access => as_result(inode::access_at(dir, name), no_value),
            ReplayAction::ReadLink => {
                as_result(fd::read_link_at(dir, name, &mut buffer[..=LONGEST_LINK]), |n| n as i64)
            }
            ReplayAction::StatFs => self.with_open(op, OFlags::PATH, fd::statvfs),
            ReplayAction::Enter => self.with_open(op, OFlags::PATH | OFlags::DIRECTORY, Ok),
            ReplayAction::GetXattr => self.with_open(op, OFlags::RDONLY, |fd| inode::get_xattr(fd, XATTR, buffer)),
            ReplayAction::SetXattr => self.with_open(op, OFlags::RDONLY, set_xattr),
            ReplayAction::SetMode => as_result(inode::change_at(dir, name, &InodeChange::Mode(op.flags)), no_value),
            ReplayAction::SetOwner => as_result(inode::change_at(dir, name, &InodeChange::own()), no_value),
            ReplayAction::SetTimes => as_result(inode::change_at(dir, name, &InodeChange::TimesNow), no_value),
            ReplayAction::Truncate => self.with_open(op, OFlags::WRONLY, |fd| fd::ftruncate(fd, op.y)),
            ReplayAction::Unlink => as_result(fd::unlink_at(dir, name), no_value),
            ReplayAction::RemoveDir => {
                let removed = fd::rmdir_at(dir, name);
                *end = Some(clock.raw());
                if removed.is_ok()
                    && let Some(held) = self.dirs.get(op.y as usize)
                {
                    let held = held.swap(NONE, Release);
                    if held != NONE {
                        fd::close(held);
                    }
                }
                as_result(removed, no_value)
            }
            ReplayAction::MakeDir => {
                let made = fd::mkdir_at(dir, name, DIR_MODE);
                *end = Some(clock.raw());
                if made.is_ok()
                    && let Some(held) = self.dirs.get(op.y as usize)
                    && let Ok(fd) = fd::open_at(dir, name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
                {
                    held.store(fd, Release);
                }
                as_result(made, no_value)
            }
            ReplayAction::MakeFile if op.flags == MAKES_PIPE => as_result(given::make_pipe(dir, name), no_value),
            ReplayAction::MakeFile => as_result(given::make_file(dir, name), no_value),
            ReplayAction::Rename => {
                as_result(second().and_then(|(to, new)| given::rename(dir, name, to, new, op.flags)), no_value)
            }
            ReplayAction::Link => as_result(second().and_then(|(to, new)| fd::link_at(dir, name, to, new)), no_value),
            ReplayAction::LinkOpen => {
                let linked =
                    self.file(op.a).and_then(|fd| second().and_then(|(to, new)| given::link_open(fd, to, new)));
                as_result(linked, no_value)
            }
            ReplayAction::SymLink => as_result(fd::symlink_at(self.link_text(op.y), dir, name), no_value),
            _ => 0,
        }
    }
}

fn set_xattr(fd: Fd) -> Result<(), Errno> {
    inode::set_xattr(fd, XATTR, b"1")
}
