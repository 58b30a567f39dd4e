//! Opening directories below a root without leaving it: single names or whole paths, without following symbolic links
//! or crossing mount points.

use crate::fileset::Name;
use std::ffi::{CStr, CString};
use wml_os::fd::{self, Result};
use wml_os::{Errno, Fd};
use wml_os::{Mode, OFlags};

/// Flags for a directory that is used in `*at` calls only (`O_PATH`). Cheaper to open than a readable one.
pub(super) const AT_DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// Flags for a directory that is listed.
pub(super) const READ_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Maximum length of a path in a system call, in bytes.
const PATH_MAX: usize = 4096;

/// Opens the directory `name` in `dir`. It must be on `device`. (`name` may have several components.)
///
/// Returns [`Errno::LOOP`] or [`Errno::NOTDIR`] for a symbolic link, and [`Errno::XDEV`] for a mount point or a
/// subvolume.
pub(super) fn open_dir(dir: Fd, name: &CStr, flags: OFlags, device: u64) -> Result<Fd> {
    let opened = match fd::open_beneath(dir, name, flags | OFlags::NOFOLLOW) {
        Err(error) if fd::lacks_openat2(error) => open_stepwise(dir, name, flags),
        done => done,
    };
    on_device(opened?, device)
}

/// Opens a path without `openat2`, one component after another. A single component, which operations open, needs no
/// allocation.
fn open_stepwise(dir: Fd, path: &CStr, flags: OFlags) -> Result<Fd> {
    if !path.to_bytes().contains(&b'/') {
        return open_component(dir, path, flags);
    }
    let mut names = path.to_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    let mut at: Option<CloseOnDrop> = None;
    while let Some(name) = names.next() {
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let flags = if names.peek().is_some() { AT_DIR } else { flags };
        let parent = at.as_ref().map_or(dir, |at| at.0);
        at = Some(CloseOnDrop(open_component(parent, &name, flags)?));
    }
    at.map(CloseOnDrop::keep).ok_or(Errno::NOENT)
}

/// Opens a directory in another one, if nothing is mounted there. A bind mount has the device of its source, so only
/// the attributes of the directory show that it is mounted.
fn open_component(dir: Fd, name: &CStr, flags: OFlags) -> Result<Fd> {
    let opened = CloseOnDrop(fd::open_at(dir, name, flags, Mode::empty())?);
    if fd::file_info(opened.0)?.mounted { Err(Errno::XDEV) } else { Ok(opened.keep()) }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    #[test]
    fn a_path_is_opened_stepwise_without_leaving_the_mount() {
        let opened = |dir: &Path, path: &CStr| {
            let dir = CloseOnDrop(fd::open_path(dir, AT_DIR, Mode::empty()).unwrap());
            open_stepwise(dir.0, path, READ_DIR).map(CloseOnDrop)
        };
        let dir = tempfile::TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        let inode = |fd: CloseOnDrop| fd::fstat(fd.0).unwrap().inode;
        let wanted = fs::metadata(dir.path().join("a/b")).unwrap().ino();
        assert_eq!(opened(dir.path(), c"a/b").map(inode), Ok(wanted));
        assert!(matches!(opened(dir.path(), c"link/b").map(inode), Err(Errno::LOOP | Errno::NOTDIR)));
        assert_eq!(opened(dir.path(), c"a/c").map(inode), Err(Errno::NOENT));
        // The directory of all processes is a mount point on every machine.
        assert_eq!(opened(Path::new("/"), c"proc/sys").map(inode), Err(Errno::XDEV));
    }
}
