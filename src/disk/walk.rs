//! Opening directories below a root without leaving it: single names or whole paths, without following symbolic links
//! or crossing mount points.

use crate::fileset::Name;
use crate::os::fd::{self, Result};
use crate::os::{Errno, Fd};
use crate::os::{Mode, OFlags};
use std::ffi::{CStr, CString};

/// Flags for a directory that is used in `*at` calls only (`O_PATH`). Cheaper to open than a readable one.
pub(super) const AT_DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// Flags for a directory that is listed.
pub(super) const READ_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Maximum length of a path in a system call, in bytes.
const PATH_MAX: usize = 4096;

/// Opens the directory `name` in `dir`. It must be on `device`. (`name` may have several components. Without `openat2`,
/// only the last one is then checked.)
///
/// Returns [`Errno::LOOP`] or [`Errno::NOTDIR`] for a symbolic link, and [`Errno::XDEV`] for a mount point or a
/// subvolume.
pub(super) fn open_dir(dir: Fd, name: &CStr, flags: OFlags, device: u64) -> Result<Fd> {
    let opened = match fd::open_beneath(dir, name, flags | OFlags::NOFOLLOW) {
        Err(error) if fd::lacks_openat2(error) => fd::open_at(dir, name, flags, Mode::empty()),
        done => done,
    };
    on_device(opened?, device)
}

/// Returns `fd` if it is on `device`; otherwise closes it and returns [`Errno::XDEV`].
///
/// Detects what `openat2` does not: subvolumes, which are not mount points, and mount points on kernels without
/// `openat2`.
fn on_device(fd: Fd, device: u64) -> Result<Fd> {
    let found = fd::fstat(fd).and_then(|stat| if stat.device == device { Ok(fd) } else { Err(Errno::XDEV) });
    found.inspect_err(|_| fd::close(fd))
}

/// Opens the directory at the end of a chain of names below `root`; the root itself if the chain is empty. All
/// directories must be on `device`.
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
            Err(error) if fd::lacks_openat2(error) => {}
            done => return on_device(done?, device),
        }
    }
    let mut at = root;
    for (k, name) in names.iter().enumerate() {
        let flags = if k + 1 == names.len() { flags } else { AT_DIR };
        let next = open_dir(at, name.as_c(), flags, device);
        if at != root {
            fd::close(at);
        }
        at = next?;
    }
    Ok(at)
}

/// Returns the names on the path from the root to a directory, given functions for the parent and the name of a
/// directory.
pub(super) fn chain(mut dir: u64, parent: impl Fn(u64) -> u64, name: impl Fn(u64) -> Name) -> Vec<Name> {
    let mut names = Vec::new();
    while dir != 0 {
        names.push(name(dir));
        dir = parent(dir);
    }
    names.reverse();
    names
}

/// A drop guard that closes a descriptor.
pub(super) struct CloseOnDrop(pub(super) Fd);

impl CloseOnDrop {
    /// Returns the descriptor without closing it.
    pub(super) fn keep(self) -> Fd {
        let fd = self.0;
        std::mem::forget(self);
        fd
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        fd::close(self.0);
    }
}
