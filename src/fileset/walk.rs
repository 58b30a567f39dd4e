//! Ways down from a root that never leave it: one name at a time, or a whole chain at once, no link, no other mount.

use super::Name;
use crate::sys::fd::{self, Result};
use crate::sys::{Errno, Fd};
use rustix::fs::{Mode, OFlags};
use std::ffi::{CStr, CString};

/// A directory to reach others and to name files by; cheaper to open than one to read.
pub(super) const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// A directory to read.
pub(super) const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The longest path that the system takes.
const PATH_MAX: usize = 4096;

/// Opens the directory `name` in `dir`. A link there is [`Errno::LOOP`] or [`Errno::NOTDIR`], another mount [`Errno::XDEV`].
pub(super) fn open_dir(dir: Fd, name: &CStr, flags: OFlags) -> Result<Fd> {
    match fd::open_beneath(dir, name, flags | OFlags::NOFOLLOW) {
        Err(Errno::NOSYS) => step(dir, name, flags),
        done => done,
    }
}

/// The same without `openat2`: another mount shows by its device.
fn step(dir: Fd, name: &CStr, flags: OFlags) -> Result<Fd> {
    let fd = fd::open_at(dir, name, flags, Mode::empty())?;
    match (fd::fstat(dir), fd::fstat(fd)) {
        (Ok(above), Ok(here)) if above.device == here.device => Ok(fd),
        (Ok(_), Ok(_)) => {
            fd::close(fd);
            Err(Errno::XDEV)
        }
        (Err(e), _) | (_, Err(e)) => {
            fd::close(fd);
            Err(e)
        }
    }
}

/// Opens the directory at the end of a chain of names below `root`; the root itself for an empty one.
pub(super) fn open_chain(root: Fd, names: &[Name], flags: OFlags) -> Result<Fd> {
    if names.is_empty() {
        return fd::open_at(root, c".", flags, Mode::empty());
    }
    let mut path = Vec::with_capacity(names.len() * 9);
    for name in names {
        path.extend_from_slice(name.digits());
        path.push(b'/');
    }
    path.pop();
    if path.len() < PATH_MAX
        && let Ok(path) = CString::new(path)
    {
        match fd::open_beneath(root, &path, flags | OFlags::NOFOLLOW) {
            Err(Errno::NOSYS) => {}
            done => return done,
        }
    }
    let mut at = root;
    for (k, name) in names.iter().enumerate() {
        let flags = if k + 1 == names.len() { flags } else { PLACE };
        let next = open_dir(at, name.as_c(), flags);
        if at != root {
            fd::close(at);
        }
        at = next?;
    }
    Ok(at)
}

/// The names from the root down to a directory, given each directory's parent and name.
pub(super) fn chain(mut dir: u64, parent: impl Fn(u64) -> u64, name: impl Fn(u64) -> Name) -> Vec<Name> {
    let mut names = Vec::new();
    while dir != 0 {
        names.push(name(dir));
        dir = parent(dir);
    }
    names.reverse();
    names
}

/// Closes a descriptor at the end of a scope.
pub(super) struct Closing(pub(super) Fd);

impl Drop for Closing {
    fn drop(&mut self) {
        fd::close(self.0);
    }
}
