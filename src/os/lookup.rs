//! Looks up the path of an output component by component, so that no link of another user is followed on the way.
//!
//! The kernel refuses such links only with `fs.protected_symlinks`, which may be off. Here they are refused in any case:
//! a link in a sticky directory that all users can write to (`/tmp`), whose owner is neither this user nor the owner of
//! the directory. Not in here: what is done in the directory that was found.

use super::fd::retry_interrupted;
use super::proc;
use parking_lot::Mutex;
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// How a directory is held: to look up names in it, which needs no permission to read it.
pub(super) const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Maximum number of links in a path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Directories that are found by their path without a look at it: those that this program holds already, such as the
/// folder of an experiment in each of its runs.
static KNOWN: Mutex<Vec<(PathBuf, OwnedFd)>> = Mutex::new(Vec::new());

/// What the last component of a path is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LastName {
    /// A directory, which is entered.
    Directory,
    /// Any file, which is not opened. If it is a link, the file that the link names.
    File,
}

/// A path that was looked up.
pub(super) struct Found {
    /// The last directory.
    pub(super) dir: OwnedFd,
    /// The names that follow it. The first of them does not exist, unless it is the last one of [`LastName::File`].
    pub(super) names: Vec<OsString>,
}

/// A part of a path that is still to be looked up.
enum PathStep {
    Root,
    Up,
    Name(OsString),
}

/// Looks up a path. Fails with [`io::ErrorKind::PermissionDenied`] at a link of another user, and with the error of the
/// kernel at a component that is not a directory.
pub(super) fn look_up(path: &Path, last: LastName) -> io::Result<Found> {
    match known(path)? {
        Some((dir, below)) => look_up_from(dir, &below, last),
        None => look_up_afresh(path, last),
    }
}

/// Looks up a path like [`look_up`], also that of a known directory.
pub(super) fn look_up_afresh(path: &Path, last: LastName) -> io::Result<Found> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    look_up_from(retry_interrupted(|| rfs::open(c".", DIR, Mode::empty()))?, path, last)
}

/// Looks up a path that begins in a directory.
fn look_up_from(mut dir: OwnedFd, path: &Path, last: LastName) -> io::Result<Found> {
    let mut left = steps(path);
    if last == LastName::File && !matches!(left.first(), Some(PathStep::Name(_))) {
        return Err(Errno::ISDIR.into());
    }
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(step) = left.pop() {
        let name = match step {
            PathStep::Root => {
                (dir, at) = (retry_interrupted(|| rfs::open(c"/", DIR, Mode::empty()))?, PathBuf::from("/"));
                continue;
            }
            PathStep::Up => {
                dir = retry_interrupted(|| rfs::openat(&dir, c"..", DIR, Mode::empty()))?;
                at.push("..");
                continue;
            }
            PathStep::Name(name) => name,
        };
        let is_file = last == LastName::File && left.is_empty();
        let entered = match is_file {
            true => Err(Errno::NOTDIR),
            false => retry_interrupted(|| rfs::openat(&dir, &name, DIR | OFlags::NOFOLLOW, Mode::empty())),
        };
        let target = match entered {
            Ok(fd) => {
                dir = fd;
                at.push(name);
                continue;
            }
            Err(Errno::NOTDIR | Errno::LOOP) => link_target(&dir, &name, &at)?,
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        match target {
            Some(LinkTarget::Path(target)) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                left.extend(steps(&target));
            }
            // A link of the kernel to what a process has open, which has no path.
            Some(LinkTarget::Open(fd)) if !is_file => {
                dir = fd;
                at.push(name);
            }
            Some(LinkTarget::Open(_)) => return Ok(Found { dir, names: vec![name] }),
            None if is_file || !exists(&dir, &name) => {
                let rest = left.into_iter().rev().map(|step| match step {
                    PathStep::Name(name) => Ok(name),
                    // `..` of a directory that does not exist.
                    PathStep::Up | PathStep::Root => Err(io::Error::from(Errno::NOENT)),
                });
                let names = std::iter::once(Ok(name)).chain(rest).collect::<io::Result<_>>()?;
                return Ok(Found { dir, names });
            }
            None => return Err(Errno::NOTDIR.into()),
        }
    }
    Ok(Found { dir, names: Vec::new() })
}

/// Splits a path into its parts, of which the last one is the next.
fn steps(path: &Path) -> Vec<PathStep> {
    let step = |component| match component {
        Component::RootDir => Some(PathStep::Root),
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(step).collect()
}

/// What a link leads to.
enum LinkTarget {
    Path(PathBuf),
    Open(OwnedFd),
}

/// Returns what a link leads to. `None` if the name is not that of a link.
fn link_target(dir: &OwnedFd, name: &OsStr, at: &Path) -> io::Result<Option<LinkTarget>> {
    let opened =
        retry_interrupted(|| rfs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()));
    let link = match opened {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let found = rfs::fstat(&link)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    if !is_trusted(found.st_uid, &rfs::fstat(dir)?) {
        let path = at.join(name);
        let text = format!("`{}` is a symbolic link that another user created in a shared directory", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    if rfs::fstatfs(dir).is_ok_and(|found| found.f_type == rfs::PROC_SUPER_MAGIC)
        && let Ok(fd) = retry_interrupted(|| rfs::openat(dir, name, DIR, Mode::empty()))
    {
        return Ok(Some(LinkTarget::Open(fd)));
    }
    let target = rfs::readlinkat(&link, c"", Vec::new())?;
    Ok(Some(LinkTarget::Path(OsString::from_vec(target.into_bytes()).into())))
}

/// True if a link in a directory may be followed: unless it is in a shared directory, or if this user or the
/// owner of the directory made it.
fn is_trusted(owner: u32, dir: &rfs::Stat) -> bool {
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    dir.st_mode & STICKY_AND_WRITABLE != STICKY_AND_WRITABLE || [proc::user(), dir.st_uid].contains(&owner)
}

fn exists(dir: impl AsFd, name: &OsStr) -> bool {
    rfs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Returns the known directory with which a path begins, and what follows it.
fn known(path: &Path) -> io::Result<Option<(OwnedFd, PathBuf)>> {
    let known = KNOWN.lock();
    if known.is_empty() {
        return Ok(None);
    }
    let whole = std::path::absolute(path)?;
    for (dir, fd) in known.iter() {
        if let Ok(below) = whole.strip_prefix(dir) {
            return Ok(Some((fd.try_clone()?, below.to_owned())));
        }
    }
    Ok(None)
}

/// Makes a directory known by its path as long as the returned guard lives.
pub(super) fn make_known(path: &Path, dir: BorrowedFd<'_>) -> io::Result<DirGuard> {
    let path = std::path::absolute(path)?;
    KNOWN.lock().push((path.clone(), dir.try_clone_to_owned()?));
    Ok(DirGuard(path))
}

/// A drop guard of a directory that is known by its path.
#[derive(Debug)]
pub struct DirGuard(PathBuf);

impl Drop for DirGuard {
    fn drop(&mut self) {
        let mut known = KNOWN.lock();
        if let Some(at) = known.iter().position(|(path, _)| *path == self.0) {
            known.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    /// The path of an open directory, and the names behind it.
    fn found(path: &Path, last: LastName) -> (PathBuf, Vec<OsString>) {
        let found = look_up(path, last).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&found.dir);
        (fs::read_link(format!("/proc/self/fd/{fd}")).unwrap(), found.names)
    }

    #[test]
    fn a_path_is_looked_up_as_far_as_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(dir.join("a/deep")).unwrap();
        fs::write(dir.join("a/file"), "").unwrap();
        symlink("a/deep", dir.join("link")).unwrap();
        symlink("../a/file", dir.join("a/to-file")).unwrap();
        symlink("missing", dir.join("loose")).unwrap();
        symlink("circle", dir.join("circle")).unwrap();
        for (path, last, at, names) in [
            ("a/./deep/..", LastName::Directory, "a", &[][..]),
            ("link/..", LastName::Directory, "a", &[]),
            ("link/new/x", LastName::Directory, "a/deep", &["new", "x"]),
            ("loose", LastName::Directory, "", &["missing"]),
            ("loose/x", LastName::File, "", &["missing", "x"]),
            ("link", LastName::File, "a", &["deep"]),
            ("link/x", LastName::File, "a/deep", &["x"]),
            ("a/to-file", LastName::File, "a", &["file"]),
            ("loose", LastName::File, "", &["missing"]),
        ] {
            let (found, rest) = found(&dir.join(path), last);
            assert_eq!(
                (found, rest),
                (dir.join(at).components().collect(), names.iter().map(Into::into).collect()),
                "{path}"
            );
        }
        for (path, last) in [
            ("circle", LastName::File),
            ("circle/x", LastName::Directory),
            ("a/file/x", LastName::File),
            ("a/file", LastName::Directory),
            ("new/../x", LastName::File),
            ("a/..", LastName::File),
            ("", LastName::Directory),
        ] {
            let path = if path.is_empty() { PathBuf::new() } else { dir.join(path) };
            assert!(look_up(&path, last).is_err(), "{}", path.display());
        }
        let here = format!("/proc/self/cwd/{}", "Cargo.toml");
        assert_eq!(found(Path::new(&here), LastName::File).0, std::env::current_dir().unwrap());
    }

    #[test]
    fn links_of_others_in_shared_directories_are_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let stat = |mode: u32| {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            rfs::stat(dir.path()).unwrap()
        };
        let me = fs::metadata(dir.path()).unwrap().uid();
        for (mode, owner, trusted) in [
            (0o1777, me, true),
            (0o1777, me + 1, false),
            (0o777, me + 1, true),
            (0o1775, me + 1, true),
            (0o1702, me + 1, false),
        ] {
            assert_eq!(is_trusted(owner, &stat(mode)), trusted, "{mode:o} {owner}");
        }
    }

    #[test]
    fn a_known_directory_is_found_by_its_path_wherever_it_is_now() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::canonicalize(dir.path()).unwrap().join(name);
        fs::create_dir_all(at("held/sub")).unwrap();
        let fd = look_up(&at("held"), LastName::Directory).unwrap().dir;
        let known = make_known(&at("held"), fd.as_fd()).unwrap();
        fs::rename(at("held"), at("moved")).unwrap();
        fs::create_dir(at("held")).unwrap();
        assert_eq!(found(&at("held/x"), LastName::File).0, at("moved"));
        assert_eq!(found(&at("held/sub"), LastName::Directory).0, at("moved/sub"));
        assert_eq!(found(&at("held"), LastName::Directory).0, at("moved"));
        assert_eq!(found(&at("held2"), LastName::Directory).1, ["held2"]);
        drop(known);
        assert_eq!(found(&at("held/x"), LastName::File).0, at("held"));
    }
}
