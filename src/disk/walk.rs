//! Ways down from a root that never leave it: one name at a time, or a whole chain at once, no link, no other mount.

use crate::fileset::Name;
use crate::os::fd::{self, Result};
use crate::os::{Errno, Fd};
use crate::os::{Mode, OFlags};
use std::ffi::{CStr, CString};

/// A directory to reach others and to name files by; cheaper to open than one to read.
pub(super) const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// A directory to read.
pub(super) const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The longest path that the system takes.
const PATH_MAX: usize = 4096;

/// Opens the directory `name` in `dir`, which must lie on `device`. A link there is [`Errno::LOOP`] or [`Errno::NOTDIR`],
/// another mount or a subvolume [`Errno::XDEV`].
pub(super) fn open_dir(dir: Fd, name: &CStr, flags: OFlags, device: u64) -> Result<Fd> {
    let opened = match fd::open_beneath(dir, name, flags | OFlags::NOFOLLOW) {
        Err(Errno::NOSYS) => fd::open_at(dir, name, flags, Mode::empty()),
        done => done,
    };
    on_device(opened?, device)
}

/// Subvolumes are no mounts, and a kernel without `openat2` follows mounts: both show by their device.
fn on_device(fd: Fd, device: u64) -> Result<Fd> {
    let found = fd::fstat(fd).and_then(|stat| if stat.device == device { Ok(fd) } else { Err(Errno::XDEV) });
    found.inspect_err(|_| fd::close(fd))
}

/// Opens the directory at the end of a chain of names below `root`, which lies on `device`; the root itself for an empty one.
pub(super) fn open_chain(root: Fd, names: &[Name], flags: OFlags, device: u64) -> Result<Fd> {
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
            done => return on_device(done?, device),
        }
    }
    let mut at = root;
    for (k, name) in names.iter().enumerate() {
        let flags = if k + 1 == names.len() { flags } else { PLACE };
        let next = open_dir(at, name.as_c(), flags, device);
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

impl Closing {
    /// The descriptor, which stays open.
    pub(super) fn keep(self) -> Fd {
        let fd = self.0;
        std::mem::forget(self);
        fd
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        fd::close(self.0);
    }
}
