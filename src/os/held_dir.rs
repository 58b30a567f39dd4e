//! A directory that is held open, to list it and to remove files from it. No symbolic link below it is followed, and no
//! other mount is entered.

use super::fd::{self, retry_interrupted};
use rustix::fs::{self as rfs, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const READ_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The size in bytes of the buffer for reading a directory.
const LIST_BUFFER: usize = 32 << 10;

/// The deepest directory whose files are listed. Each level needs a descriptor.
const MAX_DEPTH: usize = 32;

/// A directory that is held open.
#[derive(Debug)]
pub struct HeldDir {
    fd: OwnedFd,
    path: PathBuf,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub struct HeldEntry {
    /// Its name.
    pub name: OsString,
    /// Its type, of a symbolic link that of the link.
    pub kind: FileType,
    /// Its length in bytes.
    pub size: u64,
}

impl HeldDir {
    /// Opens a directory by path. Follows symbolic links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = retry_interrupted(|| rfs::open(path, READ_DIR, Mode::empty()))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Returns its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subdirectory. `None` if there is none of this name: nothing, a symbolic link, another file type, or a
    /// directory on which something is mounted.
    pub fn enter(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = READ_DIR | OFlags::NOFOLLOW;
        let opened = match retry_interrupted(|| rfs::openat2(self.fd.as_fd(), name, flags, Mode::empty(), resolve)) {
            Err(error) if fd::lacks_openat2(error) => self.enter_slow(name),
            opened => opened,
        };
        match opened {
            Ok(fd) => Ok(Some(Self { fd, path: self.path.join(name) })),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does the same without `openat2`.
    fn enter_slow(&self, name: &OsStr) -> Result<OwnedFd, Errno> {
        let opened = retry_interrupted(|| rfs::openat(&self.fd, name, READ_DIR | OFlags::NOFOLLOW, Mode::empty()))?;
        if fd::file_info(opened.as_raw_fd())?.mounted { Err(Errno::XDEV) } else { Ok(opened) }
    }

    /// Returns the entries. One that is removed meanwhile is left out.
    pub fn entries(&self) -> io::Result<Vec<HeldEntry>> {
        let dir = self.fd.as_raw_fd();
        let mut names: Vec<CString> = Vec::new();
        rfs::seek(&self.fd, rfs::SeekFrom::Start(0))?;
        let mut buf = vec![0; LIST_BUFFER];
        fd::list_dir(dir, &mut buf, |name, _| {
            names.push(name.to_owned());
            true
        })?;
        let entry = |name: CString| {
            let stat = fd::stat_at(dir, &name).ok()?;
            Some(HeldEntry { name: OsString::from_vec(name.into_bytes()), kind: stat.kind, size: stat.size })
        };
        Ok(names.into_iter().filter_map(entry).collect())
    }

    /// Removes the name of a file that is not a directory.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rfs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes a directory if it is empty. Returns whether it was removed.
    pub fn remove_empty_dir(&self, name: &OsStr) -> bool {
        rfs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR).is_ok()
    }

    /// Returns the paths of the files and directories below, at most `most`. That of a directory ends with a slash.
    /// Names that are not UTF-8 are left out.
    pub fn paths_below(&self, most: usize) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        self.add_paths("", MAX_DEPTH, most, &mut found)?;
        Ok(found)
    }

    fn add_paths(&self, above: &str, depth: usize, most: usize, found: &mut Vec<String>) -> io::Result<()> {
        for HeldEntry { name, kind, .. } in self.entries()? {
            let Some(text) = name.to_str().filter(|_| found.len() < most) else { continue };
            if kind == FileType::Directory {
                if depth > 0
                    && let Some(dir) = self.enter(&name)?
                {
                    let path = format!("{above}{text}/");
                    found.push(path.clone());
                    dir.add_paths(&path, depth - 1, most, found)?;
                }
            } else {
                found.push(format!("{above}{text}"));
            }
        }
        Ok(())
    }

    /// Removes the files with these paths, which [`Self::paths_below`] has returned, and the directories among them
    /// that are empty then. What is no longer as it was is kept. Returns the length of the removed files in bytes.
    pub fn remove_below(&self, paths: &BTreeSet<String>) -> io::Result<u64> {
        let mut bytes = 0;
        // In this order what is in a directory comes before it.
        for path in paths.iter().rev() {
            bytes += self.remove_path(path)?;
        }
        Ok(bytes)
    }

    fn remove_path(&self, path: &str) -> io::Result<u64> {
        let (name, below) = path.split_once('/').map_or((path, None), |(name, below)| (name, Some(below)));
        if ["", ".", ".."].contains(&name) {
            return Ok(0);
        }
        let plain = OsStr::new(name);
        match below {
            Some("") => {
                self.remove_empty_dir(plain);
                Ok(0)
            }
            Some(below) => self.enter(plain)?.map_or(Ok(0), |dir| dir.remove_path(below)),
            None => {
                let Some(size) = self.size_of_file(name) else { return Ok(0) };
                self.remove_file(plain)?;
                Ok(size)
            }
        }
    }

    /// Returns the length in bytes of a file that is not a directory. `None` if there is none of this name.
    fn size_of_file(&self, name: &str) -> Option<u64> {
        let stat = fd::stat_at(self.fd.as_raw_fd(), &CString::new(name).ok()?).ok()?;
        (stat.kind != FileType::Directory).then_some(stat.size)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn listed_files_are_removed_and_no_others() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::create_dir(at("c")).unwrap();
        fs::write(at("a/b/one"), "1").unwrap();
        fs::write(at("c/two"), "22").unwrap();
        fs::write(at("three"), "333").unwrap();
        let held = HeldDir::open(dir.path()).unwrap();
        let paths: BTreeSet<String> = held.paths_below(100).unwrap().into_iter().collect();
        assert_eq!(paths.iter().collect::<Vec<_>>(), ["a/", "a/b/", "a/b/one", "c/", "c/two", "three"]);
        assert_eq!(held.paths_below(2).unwrap().len(), 2);
        // A file of another program, and a link in the place of a directory.
        fs::write(at("a/b/mine"), "mine").unwrap();
        fs::write(other.path().join("two"), "mine").unwrap();
        fs::remove_dir_all(at("c")).unwrap();
        symlink(other.path(), at("c")).unwrap();
        assert_eq!(held.remove_below(&paths).unwrap(), 1 + 3);
        assert!(at("a/b/mine").exists() && at("c").exists() && other.path().join("two").exists());
        assert!(!at("a/b/one").exists() && !at("three").exists());
        fs::remove_file(at("a/b/mine")).unwrap();
        assert_eq!(held.remove_below(&paths).unwrap(), 0);
        assert!(!at("a").exists());
    }

    #[test]
    fn no_path_leads_out_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("held")).unwrap();
        fs::write(at("mine"), "mine").unwrap();
        let held = HeldDir::open(&at("held")).unwrap();
        let absolute = at("mine").to_str().unwrap().to_owned();
        for path in ["../mine", "..", "../", "./../mine", "/", "", ".", absolute.as_str()] {
            let _ = held.remove_below(&BTreeSet::from([path.to_owned()]));
            assert!(at("mine").exists() && at("held").exists(), "{path}");
        }
        // The directory of all processes is a mount point on every machine.
        assert!(HeldDir::open(Path::new("/")).unwrap().enter(OsStr::new("proc")).unwrap().is_none());
    }
}
