//! A directory that is held open: everything in it is named relative to it, so that no path is looked up twice.
//!
//! The path of the directory itself may have links, but none of another user (`lookup`). Below it no symbolic link is
//! followed. What is in the directory is not known here.

use super::fd::{self, retry_interrupted};
use super::lookup::{self, DIR, LastName};
use super::temporary::Temporary;
use super::{Errno, handle};
use rustix::fs::{self as rfs, Access, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::lookup::DirGuard;

const READ_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The size in bytes of the buffer for reading a directory.
const LIST_BUFFER: usize = 32 << 10;

/// The deepest directory whose files are listed. Each level needs a descriptor.
const MAX_DEPTH: usize = 32;

/// The mode of a new directory, less the umask.
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);

/// A directory that is held open. A clone holds it too.
#[derive(Clone, Debug)]
pub struct HeldDir {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    /// The path of a file by which the directory was found: that of a link may lead to another directory.
    file: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct HeldEntry {
    pub name: OsString,
    /// Its type, of a symbolic link that of the link.
    pub kind: FileType,
    /// Its length in bytes.
    pub size: u64,
}

impl fd::Stat {
    /// Returns the identity of the file: device and inode number.
    pub fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// A directory that was created, to be removed again as long as it is empty.
#[derive(Clone, Debug)]
pub struct MadeDir {
    path: PathBuf,
    id: (u64, u64),
}

impl MadeDir {
    /// Returns the path under which it was created.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory if it is empty, and is the one that was created. Returns whether it was removed.
    pub fn remove(&self) -> bool {
        let Ok((parent, name)) = HeldDir::of_entry(&self.path) else { return false };
        let is_it = parent.find(&name).is_ok_and(|found| found.is_some_and(|found| found.id() == self.id));
        is_it && parent.remove_empty_dir(&name)
    }
}

impl HeldDir {
    pub fn open(path: &Path) -> io::Result<Self> {
        let found = lookup::look_up(path, LastName::Directory)?;
        if found.names.is_empty() { Ok(Self::of(found.dir, path)) } else { Err(Errno::NOENT.into()) }
    }

    /// Opens a directory by path, and creates it and its parents where they are missing. Returns it with those that were
    /// created, the deepest first. On an error they are removed again.
    pub fn create(path: &Path) -> io::Result<(Self, Vec<MadeDir>)> {
        let found = lookup::look_up(path, LastName::Directory)?;
        // The path of the directory that exists, for messages: links make it longer or shorter.
        let existing = path.ancestors().nth(found.names.len()).unwrap_or(Path::new("")).to_owned();
        let (mut dir, mut made) = (Self::of(found.dir, &existing), Vec::new());
        for name in &found.names {
            let entered = dir.make_dir(name).and_then(|made_dir| {
                made.splice(0..0, made_dir);
                Ok(dir.enter_any(name)?)
            });
            match entered {
                Ok(entered) => dir = entered,
                Err(error) => {
                    made.iter().all(MadeDir::remove);
                    return Err(error);
                }
            }
        }
        Ok((Self { path: path.to_owned(), ..dir }, made))
    }

    /// Opens the directory of a file by the path of the file. Returns it with the name of the file, which need not exist.
    /// If the path is that of a link, it is the directory and the name of the file that the link names.
    pub fn of_file(path: &Path) -> io::Result<(Self, OsString)> {
        let found = lookup::look_up(path, LastName::File)?;
        let Ok([name]) = <[OsString; 1]>::try_from(found.names) else {
            // A link to a directory, or a directory that does not exist.
            let error = if path.is_dir() { Errno::ISDIR } else { Errno::NOENT };
            return Err(error.into());
        };
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((Self { file: Some(path.to_owned()), ..Self::of(found.dir, parent) }, name))
    }

    /// Opens the directory of an entry by the path of the entry. Returns it with the name of the entry, which may be that
    /// of a link.
    pub fn of_entry(path: &Path) -> io::Result<(Self, OsString)> {
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((Self::open(parent)?, name))
    }

    fn of(fd: OwnedFd, path: &Path) -> Self {
        Self { fd: Arc::new(fd), path: path.to_owned(), file: None }
    }

    /// Takes over a directory that another process has opened: the descriptor with this number. It is not inherited by
    /// further programs. Returns an error if the descriptor is not that of a directory, or is
    /// a standard stream.
    pub fn inherited(fd: RawFd, path: &Path) -> io::Result<Self> {
        if fd <= 2 {
            return Err(Errno::BADF.into());
        }
        let own = fd::duplicate_file(fd)?;
        if FileType::from_raw_mode(rfs::fstat(&own)?.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        fd::close(fd);
        Ok(Self::of(own.into(), path))
    }

    /// Lets all paths that begin with that of this directory lead to it, wherever it is moved to, as long as the returned
    /// guard lives.
    pub fn make_known(&self) -> io::Result<DirGuard> {
        lookup::make_known(&self.path, self.fd.as_fd())
    }

    /// True if the path of the directory still leads to it.
    pub fn is_in_place(&self) -> bool {
        let id = |fd: &OwnedFd| rfs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
        let (now, names) = match &self.file {
            Some(file) => (lookup::look_up_afresh(file, LastName::File), 1),
            None => (lookup::look_up_afresh(&self.path, LastName::Directory), 0),
        };
        id(&self.fd).is_ok_and(|own| now.is_ok_and(|now| now.names.len() == names && id(&now.dir) == Ok(own)))
    }

    /// Returns an error unless the path of the directory still leads to it.
    pub fn check_in_place(&self) -> io::Result<()> {
        if self.is_in_place() {
            return Ok(());
        }
        let text = format!("the directory {} was moved, removed or replaced meanwhile", self.path.display());
        Err(io::Error::new(io::ErrorKind::NotFound, text))
    }

    /// Returns its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that entries may be created.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        // The call has no form for the directory itself.
        Ok(rfs::accessat(&*self.fd, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
    }

    /// Creates a directory, unless one exists. Returns it if it was created.
    pub fn make_dir(&self, name: &OsStr) -> io::Result<Option<MadeDir>> {
        match rfs::mkdirat(&*self.fd, name, DIR_MODE) {
            Ok(()) => Ok(self.find(name)?.map(|found| MadeDir { path: self.path.join(name), id: found.id() })),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a directory. Fails with [`Errno::EXIST`] if anything of this name exists.
    pub fn make_new_dir(&self, name: &OsStr) -> Result<(), Errno> {
        rfs::mkdirat(&*self.fd, name, DIR_MODE)
    }

    /// Opens a subdirectory, on which something may be mounted. Fails with [`Errno::LOOP`] if it is a symbolic link.
    pub fn enter_any(&self, name: &OsStr) -> Result<Self, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let dir = match retry_interrupted(|| rfs::openat2(self.fd.as_fd(), name, DIR, Mode::empty(), resolve)) {
            // The kernel or the container has no `openat2`. For a single component, `O_NOFOLLOW` has the same effect.
            Err(error) if fd::lacks_openat2(error) => {
                let opened = retry_interrupted(|| rfs::openat(&*self.fd, name, DIR | OFlags::NOFOLLOW, Mode::empty()));
                opened.map_err(|error| if error == Errno::NOTDIR { Errno::LOOP } else { error })
            }
            opened => opened,
        }?;
        Ok(Self::of(dir, &self.path.join(name)))
    }

    /// Opens a subdirectory, and creates it if it does not exist. See [`Self::enter_any`].
    pub fn enter_or_make(&self, name: &OsStr) -> io::Result<Self> {
        match self.enter_any(name) {
            Err(Errno::NOENT) => {
                self.make_dir(name)?;
                Ok(self.enter_any(name)?)
            }
            entered => Ok(entered?),
        }
    }

    /// Returns the status of an entry; `None` if it does not exist. Does not follow a symbolic link.
    pub fn find(&self, name: &OsStr) -> io::Result<Option<fd::Stat>> {
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        match fd::stat_at(self.fd.as_raw_fd(), &name) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading. `None` for any other file type, which is not opened: opening a pipe or a device
    /// may block or have side effects.
    pub fn open_regular(&self, name: &OsStr) -> Option<File> {
        handle::open_regular(&self.fd, name)
    }

    /// Opens a regular file with these flags, without effects on any other file. Fails with
    /// [`io::ErrorKind::InvalidInput`] for any other file type, and with [`Errno::LOOP`] for a symbolic link.
    pub fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        handle::open_regular_with(&self.fd, name, flags)
    }

    /// Opens a pipe or a device for writing; see `handle::open_stream`.
    pub(crate) fn open_stream(&self, name: &OsStr) -> io::Result<Option<File>> {
        handle::open_stream(&self.fd, name)
    }

    /// Creates a file without a name; see [`Temporary::new`].
    pub fn temporary(&self, prefix: OsString) -> io::Result<Temporary> {
        Temporary::new(self.clone(), prefix)
    }

    /// Creates a file with this content. Fails if anything of this name exists.
    pub fn write_new(&self, name: &OsStr, content: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        io::Write::write_all(&mut self.open_file(name, flags)?, content)
    }

    /// Creates a file that only its owner may read. Fails if anything of this name exists, also a link.
    pub fn create_private(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(retry_interrupted(|| rfs::openat(&*self.fd, name, flags, Mode::RUSR | Mode::WUSR))?.into())
    }

    /// Renames an entry. Replaces a file that has the new name.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        rfs::renameat(&*self.fd, from, &*self.fd, to)
    }

    /// Renames an entry. Fails with [`Errno::EXIST`] if the new name exists.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        handle::rename_new(&self.fd, from, to)
    }

    /// Moves an entry to another directory, under the same name. Replaces a file that has it there.
    pub fn move_to(&self, name: &OsStr, to: &Self) -> Result<(), Errno> {
        rfs::renameat(&*self.fd, name, &*to.fd, name)
    }

    /// Flushes the directory to the device: the names in it. File systems that can't do so are ignored.
    pub fn sync(&self) -> io::Result<()> {
        match File::from(self.read()?).sync_all() {
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }

    /// Opens the directory for reading.
    fn read(&self) -> Result<OwnedFd, Errno> {
        retry_interrupted(|| rfs::openat(&*self.fd, c".", READ_DIR, Mode::empty()))
    }

    /// Opens a subdirectory. `None` if there is none of this name: nothing, a symbolic link, another file type, or a
    /// directory on which something is mounted.
    pub fn enter(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = DIR | OFlags::NOFOLLOW;
        let opened = match retry_interrupted(|| rfs::openat2(self.fd.as_fd(), name, flags, Mode::empty(), resolve)) {
            Err(error) if fd::lacks_openat2(error) => self.enter_slow(name),
            opened => opened,
        };
        match opened {
            Ok(fd) => Ok(Some(Self::of(fd, &self.path.join(name)))),
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does the same without `openat2`.
    fn enter_slow(&self, name: &OsStr) -> Result<OwnedFd, Errno> {
        let opened = retry_interrupted(|| rfs::openat(&*self.fd, name, DIR | OFlags::NOFOLLOW, Mode::empty()))?;
        if fd::file_info(opened.as_raw_fd())?.mounted { Err(Errno::XDEV) } else { Ok(opened) }
    }

    /// Returns the entries. One that is removed meanwhile is left out.
    pub fn entries(&self) -> io::Result<Vec<HeldEntry>> {
        let listed = self.read()?;
        let dir = listed.as_raw_fd();
        let mut names: Vec<CString> = Vec::new();
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

    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rfs::unlinkat(&*self.fd, name, AtFlags::empty())?)
    }

    /// Removes a directory if it is empty. Returns whether it was removed.
    pub fn remove_empty_dir(&self, name: &OsStr) -> bool {
        self.remove_dir(name).is_ok()
    }

    /// Removes a directory. Fails if it is not empty.
    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(rfs::unlinkat(&*self.fd, name, AtFlags::REMOVEDIR)?)
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

impl AsFd for HeldDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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
    fn missing_directories_are_created_and_only_those_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("old")).unwrap();
        symlink("old", at("link")).unwrap();
        let (held, made) = HeldDir::create(&at("link/a/b")).unwrap();
        assert_eq!(held.path(), at("link/a/b"));
        assert!(at("old/a/b").is_dir() && made.len() == 2 && made[0].path().ends_with("a/b"));
        fs::write(at("old/a/mine"), "").unwrap();
        assert!(made[0].remove() && !made[1].remove());
        assert!(HeldDir::create(&at("link")).unwrap().1.is_empty());
        // Another directory of the same name.
        let (_, made) = HeldDir::create(&at("new")).unwrap();
        fs::rename(at("new"), at("moved")).unwrap();
        fs::create_dir(at("new")).unwrap();
        assert!(!made[0].remove() && at("new").is_dir());
        // Nothing stays of a path that can't be created.
        HeldDir::create(&at(&format!("x/y/{}", "n".repeat(300)))).unwrap_err();
        assert!(!at("x").exists());
        HeldDir::create(&at("old/a/mine/z")).unwrap_err();
    }

    #[test]
    fn a_directory_that_was_moved_is_not_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("held")).unwrap();
        let held = HeldDir::open(&at("held")).unwrap();
        held.write_new("one".as_ref(), b"1").unwrap();
        assert!(held.is_in_place());
        assert!(held.write_new("one".as_ref(), b"2").is_err());
        fs::rename(at("held"), at("moved")).unwrap();
        assert!(!held.is_in_place() && held.check_in_place().unwrap_err().to_string().contains("moved"));
        symlink("moved", at("held")).unwrap();
        assert!(held.is_in_place(), "its path leads to it again");
        fs::remove_file(at("held")).unwrap();
        fs::create_dir(at("held")).unwrap();
        held.write_new("two".as_ref(), b"2").unwrap();
        assert!(!held.is_in_place() && at("moved/two").is_file() && !at("held/two").exists());
    }

    #[test]
    fn the_directory_of_a_file_is_held_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("real")).unwrap();
        symlink("real/file", at("link")).unwrap();
        let (held, name) = HeldDir::of_file(&at("link")).unwrap();
        held.write_new(&name, b"text").unwrap();
        assert_eq!(fs::read(at("real/file")).unwrap(), b"text");
        assert!(held.is_in_place());
        fs::rename(at("real"), at("moved")).unwrap();
        assert!(!held.is_in_place());
        fs::rename(at("moved"), at("real")).unwrap();
        let (held, name) = HeldDir::of_entry(&at("link")).unwrap();
        assert!(held.find(&name).unwrap().is_some_and(|found| found.kind == FileType::Symlink));
        assert!(held.open_file(&name, OFlags::WRONLY).is_err() && held.open_regular(&name).is_none());
        for path in ["missing/file", "real/..", ".."] {
            assert!(HeldDir::of_file(&at(path)).is_err(), "{path}");
        }
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
