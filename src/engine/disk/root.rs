//! The root of a file set: ownership and mutual exclusion.
//!
//! wmlrun works only in a root with a marker, the file `.wmlrun`, which records how the tree was created and how far
//! its creation has progressed. The marker is locked while the root is in use. An empty directory may be marked; any
//! other directory without a marker is not owned by wmlrun. The contents of a marked root are not examined here.

use super::error::{Error, NotShared};
use super::known::KnownTree;
use super::marker::{self, Invalid, MARKER, Marker, MarkerProgress, UNFINISHED};
use super::parent_lock::ParentLock;
use super::parents;
use super::walk::{self, READ_DIR};
use crate::fileset::FilesetSpec;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use wml_os::held_dir::{HeldDir, MadeDir};
use wml_os::inode::{self, InodeChange};
use wml_os::{Errno, Fd, fd};
use wml_os::{FileType, Mode, OFlags};

const MARKER_C: &std::ffi::CStr = c".wmlrun";
const UNFINISHED_C: &std::ffi::CStr = c".wmlrun.new";
/// Mode of directories, as in Filebench.
pub(super) const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// A root that wmlrun owns: open, marked, and locked, in the descriptor table of the thread that took it.
#[derive(Debug)]
pub(super) struct Root {
    /// Name of the set, for messages.
    pub(super) set: String,
    /// Path of the root, for messages.
    pub(super) path: PathBuf,
    /// The directory, open for listing and for `*at` calls.
    pub(super) fd: Fd,
    /// Device number of the root.
    pub(super) device: u64,
    /// The open marker, which holds the lock.
    lock: Fd,
    /// Current contents of the marker.
    pub(super) marker: Marker,
    /// Whether this call of [`take`] created the marker.
    pub(super) fresh: bool,
    /// Note for the user about the location of the root.
    pub(super) note: Option<String>,
    /// Parent directories that this call of [`take`] created, the deepest first.
    pub(super) made_parents: Vec<MadeDir>,
    /// Why the marker is open for reading only. `None` if it can be written.
    refused: Option<Errno>,
}

/// The identity and change time of a marker. If they are unchanged, no other run has changed the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    inode: u64,
    /// Change time (`st_ctime`) in seconds and nanoseconds.
    changed: (i64, i64),
}

/// The directory found at the path of a root.
pub(super) enum Taken {
    /// Owned by wmlrun, and now locked.
    Owned(Box<Root>),
    /// Not empty, and not marked. It is open.
    Unmarked(Unmarked),
}

/// An open directory that is not owned by wmlrun.
pub(super) struct Unmarked {
    set: String,
    path: PathBuf,
    fd: Fd,
}

/// Opens and locks the root of a set. Creates and marks it if it does not exist, and marks it if it is empty.
pub(super) fn take(spec: &FilesetSpec) -> Result<Taken, Error> {
    let (parent_path, name) = spec.root_location().ok_or_else(|| Error::Name { set: spec.name.clone() })?;
    let name = CString::new(name).map_err(|_| Error::Name { set: spec.name.clone() })?;
    let (parent, made) = parents::open(spec, &parent_path)?;
    match take_in_parent(spec, &parent, &name) {
        Ok(Taken::Owned(mut root)) => {
            root.made_parents = made;
            Ok(Taken::Owned(root))
        }
        Ok(unmarked) => Ok(unmarked),
        Err(e) => {
            remove_empty(&made);
            Err(e)
        }
    }
}

/// Removes directories in order, up to the first that is not empty.
fn remove_empty(dirs: &[MadeDir]) {
    dirs.iter().all(MadeDir::remove);
}

/// Opens, creates or marks the root `name` in its existing parent directory.
fn take_in_parent(spec: &FilesetSpec, parent: &HeldDir, name: &std::ffi::CStr) -> Result<Taken, Error> {
    let path = spec.root();
    let call = |call, e| Error::call(&spec.name, call, &path, e);
    let parent = parent.as_fd();
    let _lock = ParentLock::take(parent);
    let parent = parent.as_raw_fd();
    let made_root = match fd::mkdir_at(parent, name, DIR_MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(call("create", e)),
    };
    let taken =
        open_root(&spec.name, &path, parent, name).and_then(|root| take_open(&spec.name, path, root, made_root));
    if taken.is_err() && made_root {
        // Fails if the directory is not empty, as intended.
        let _ = fd::rmdir_at(parent, name);
    }
    taken
}

/// Opens the root `name` in `parent`. Returns an error when it is a symbolic link, or not a directory.
fn open_root(set: &str, path: &Path, parent: Fd, name: &std::ffi::CStr) -> Result<Fd, Error> {
    let set = set.to_owned();
    let path = path.to_owned();
    match fd::stat_at(parent, name).map(|stat| stat.kind) {
        Ok(FileType::Directory) => {}
        Ok(FileType::Symlink) => return Err(Error::Link { set, path, by_other: false }),
        Ok(_) => return Err(Error::NotADirectory { set, path }),
        Err(e) => return Err(Error::call(&set, "stat", &path, e)),
    }
    // It may have been replaced since; the open flags detect that.
    fd::open_at(parent, name, READ_DIR, Mode::empty()).map_err(|e| match e {
        Errno::LOOP => Error::Link { set, path, by_other: false },
        Errno::NOTDIR => Error::NotADirectory { set, path },
        e => Error::call(&set, "open", &path, e),
    })
}

/// Takes an open root: by its marker, or by marking it if it is empty.
fn take_open(set: &str, path: PathBuf, root: Fd, made_root: bool) -> Result<Taken, Error> {
    let closing = |e| {
        fd::close(root);
        e
    };
    if let Some(root) = open_marked(set, &path, root).map_err(closing)? {
        return Ok(Taken::Owned(Box::new(root)));
    }
    if !is_empty(root).map_err(|e| closing(Error::call(set, "read", &path, e)))? {
        return Ok(Taken::Unmarked(Unmarked { set: set.to_owned(), path, fd: root }));
    }
    write_marker(set, path, root, made_root, false).map(|root| Taken::Owned(Box::new(root))).map_err(closing)
}

/// Creates and locks the marker of an open root. The marker is renamed to its final name when it is complete.
fn write_marker(set: &str, path: PathBuf, root: Fd, made_root: bool, adopted: bool) -> Result<Root, Error> {
    let at = path.join(MARKER);
    let call = |call, e| Error::call(set, call, &at, e);
    let in_use = || Error::InUse { set: set.to_owned(), path: path.clone() };
    let (lock, was_made) = create_unfinished(set, &path, root)?;
    let made_root = made_root || was_made;
    let write = || {
        match fd::lock(lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use()),
            Err(e) => return Err(call("lock", e)),
        }
        if made_root {
            marker::announce(lock);
        }
        let mut marker = Marker::new(set, made_root, adopted, lock, &path).map_err(|e| call("stat", e))?;
        marker.write(lock).map_err(|e| call("write", e))?;
        match fd::rename_new(root, UNFINISHED_C, MARKER_C) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::EXIST) => return Err(in_use()),
            Err(e) => return Err(call("create", e)),
        }
        // Another process that takes the same root at the same moment may have renamed this process's file, or vice
        // versa.
        let (current, own) = (fd::file_info_at(root, MARKER_C), fd::file_info(lock));
        if current.is_err() || current.map(|info| info.inode) != own.map(|info| info.inode) {
            return Err(in_use());
        }
        Ok(marker)
    };
    match write() {
        Ok(marker) => {
            // Flush the directory, so that the marker is on the disk before any file of the tree. An error is ignored:
            // on a file system without `fsync` there is no alternative.
            let _ = fd::fsync(root);
            Ok(Root {
                set: set.to_owned(),
                device: device(root),
                path,
                fd: root,
                lock,
                marker,
                fresh: true,
                note: None,
                made_parents: Vec::new(),
                refused: None,
            })
        }
        Err(e) => {
            // For example, no space even for the marker: leave no file behind.
            if !matches!(e, Error::InUse { .. }) {
                let _ = fd::unlink_at(root, UNFINISHED_C);
            }
            fd::unlock(lock);
            Err(e)
        }
    }
}

/// Creates the file that becomes the marker. Removes an incomplete marker that a killed run has left behind. Returns the
/// file, and whether that run has created the root.
fn create_unfinished(set: &str, path: &Path, root: Fd) -> Result<(Fd, bool), Error> {
    let make = || {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        fd::open_at(root, UNFINISHED_C, flags, Mode::from_raw_mode(0o644))
    };
    let call = |e| Error::call(set, "create", &path.join(UNFINISHED), e);
    match make() {
        Err(Errno::EXIST) => {}
        made => return made.map_err(call).map(|file| (file, false)),
    }
    let made_root = remove_unfinished(set, path, root)?;
    let file = make().map_err(|e| match e {
        Errno::EXIST | Errno::NOENT => Error::InUse { set: set.to_owned(), path: path.to_owned() },
        e => call(e),
    })?;
    Ok((file, made_root))
}

/// Removes an incomplete marker, which a killed run has left behind. Returns whether it says that the run has created the
/// root.
fn remove_unfinished(set: &str, path: &Path, root: Fd) -> Result<bool, Error> {
    let at = path.join(UNFINISHED);
    let call = |call, e| Error::call(set, call, &at, e);
    let in_use = || Error::InUse { set: set.to_owned(), path: path.to_owned() };
    // NFS locks only files that are open for writing.
    let old = fd::open_existing(root, UNFINISHED_C, OFlags::RDWR).map_err(|e| call("open", e))?;
    let locked = fd::lock(old);
    // After waiting for the lock, this file may have been removed and recreated by another process.
    let free = locked.is_ok() && !fd::file_info(old).is_ok_and(|info| info.links == 0);
    let plain = fd::file_info(old).is_ok_and(|info| info.kind == FileType::RegularFile && info.links <= 1);
    let is_own = plain && marker::is_unfinished(old).unwrap_or(false);
    let marker = Marker::read(old, path).ok().and_then(Result::ok).map(|(marker, _)| marker);
    let made_root = marker.is_some_and(|marker| marker.made_root) || marker::is_announced(old);
    let removed = if is_own && free { fd::unlink_at(root, UNFINISHED_C) } else { Ok(()) };
    fd::unlock(old);
    if !is_own {
        let why = "it was not written by wmlrun".to_owned();
        return Err(Error::Marker { set: set.to_owned(), path: at, why });
    }
    match locked {
        Ok(()) if free => {}
        Ok(()) | Err(Errno::WOULDBLOCK) => return Err(in_use()),
        Err(e) => return Err(call("lock", e)),
    }
    match removed {
        Ok(()) => Ok(made_root),
        Err(Errno::EXIST | Errno::NOENT) => Err(in_use()),
        Err(e) => Err(call("remove", e)),
    }
}

/// Opens, locks and reads the marker of an open root. The result takes over the descriptor `root`. `None` when there is
/// no marker.
fn open_marked(set: &str, path: &Path, root: Fd) -> Result<Option<Root>, Error> {
    let at = path.join(MARKER);
    let bad = |why: &str| Error::Marker { set: set.to_owned(), path: at.clone(), why: why.to_owned() };
    let call = |call, e| Error::call(set, call, &at, e);
    let check = |info: fd::FileInfo| match info.kind {
        FileType::Symlink => Err(Error::Link { set: set.to_owned(), path: at.clone(), by_other: false }),
        FileType::RegularFile if info.mounted => Err(bad("another file is mounted on it")),
        FileType::RegularFile if info.links > 1 => Err(bad("it has another name elsewhere (a hard link)")),
        FileType::RegularFile => Ok(()),
        _ => Err(bad("it is not a regular file")),
    };
    // Check the kind first: opening a device could have side effects.
    match fd::file_info_at(root, MARKER_C) {
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(call("stat", e)),
        Ok(info) => check(info)?,
    }
    // A tree that can only be read can still be locked, and measured unchanged.
    let (open, refused) = match fd::open_existing(root, MARKER_C, OFlags::RDWR) {
        Err(e @ (Errno::ROFS | Errno::ACCESS)) => (fd::open_existing(root, MARKER_C, OFlags::RDONLY), Some(e)),
        opened => (opened, None),
    };
    let lock = match open {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Error::Link { set: set.to_owned(), path: at.clone(), by_other: false }),
        Err(Errno::ISDIR | Errno::NXIO | Errno::XDEV) => return Err(bad("it is not a regular file")),
        Err(e) => return Err(call("open", e)),
    };
    let read = || {
        let in_use = || Error::InUse { set: set.to_owned(), path: path.to_owned() };
        check(fd::file_info(lock).map_err(|e| call("stat", e))?)?;
        match fd::lock(lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use()),
            Err(e) => {
                // NFS locks only files that are open for writing.
                let refused = refused.filter(|_| e == Errno::BADF);
                return Err(refused.map_or_else(|| call("lock", e), |e| call("open", e)));
            }
        }
        // The previous holder of the lock has removed the root.
        if fd::file_info(lock).is_ok_and(|info| info.links == 0) {
            return Err(in_use());
        }
        Marker::read(lock, path).map_err(|e| call("read", e))?.map_err(|invalid| match invalid {
            Invalid::Bad(why) => bad(&why),
            Invalid::Copied { from } => Error::Copied { set: set.to_owned(), path: at.clone(), from },
        })
    };
    match read() {
        Ok((marker, note)) => {
            let (set, path) = (marker.set.clone(), path.to_owned());
            Ok(Some(Root {
                set,
                path,
                device: device(root),
                fd: root,
                lock,
                marker,
                fresh: false,
                note,
                made_parents: Vec::new(),
                refused,
            }))
        }
        Err(e) => {
            fd::unlock(lock);
            Err(e)
        }
    }
}

/// Returns the device number of an open root; 0 if it can't be determined.
fn device(root: Fd) -> u64 {
    fd::fstat(root).map_or(0, |stat| stat.device)
}

/// True if a directory is empty, except for an incomplete marker.
pub(super) fn is_empty(root: Fd) -> Result<bool, Errno> {
    let mut empty = true;
    fd::list_dir(root, &mut [0; 4096], |name, _| {
        empty = name == UNFINISHED_C;
        empty
    })?;
    Ok(empty)
}

/// Opens a directory that may be a root, without a definition. Returns it with a name of its set, for messages.
fn open_found(dir: &Path) -> Result<(Fd, String), Error> {
    let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match fd::open_path(dir, READ_DIR | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(fd) => Ok((fd, name)),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(Error::Link { set: name, path: dir.to_owned(), by_other: false }),
        Err(e) => Err(Error::call(&name, "open", dir, e)),
    }
}

/// Removes the incomplete marker of a run that was killed before it created a file, and the root if it is empty and was
/// created by that run. Returns the name of the root, whether it was removed, and whether it has other files. `None` if
/// there is no such marker.
pub(super) fn clear_unfinished(dir: &Path) -> Result<Option<(String, bool, bool)>, Error> {
    let (root, name) = open_found(dir)?;
    let root = walk::CloseOnDrop(root);
    if fd::file_info_at(root.0, UNFINISHED_C).is_err() {
        return Ok(None);
    }
    // A run that has just created the file has not locked it yet, but keeps others out of the parent.
    let parent = HeldDir::of_entry(dir).ok();
    let _lock = match parent.as_ref().map(|(parent, _)| ParentLock::acquire(parent.as_fd())) {
        Some(Err(Errno::WOULDBLOCK)) => return Err(Error::InUse { set: name, path: dir.to_owned() }),
        tried => tried,
    };
    let made_root = match remove_unfinished(&name, dir, root.0) {
        Ok(made_root) => made_root,
        Err(e @ (Error::InUse { .. } | Error::Call { call: "remove", .. })) => return Err(e),
        // It does not exist, or was not written by wmlrun.
        Err(_) => return Ok(None),
    };
    let removed = made_root && remove_root(dir, root.0);
    let has_files = !removed && !is_empty(root.0).unwrap_or(false);
    Ok(Some((name, removed, has_files)))
}

/// Removes the directory of a root if it is empty and still at its path. A directory that has replaced it is not owned by
/// wmlrun, even if it is empty. Returns whether it was removed.
fn remove_root(path: &Path, root: Fd) -> bool {
    let own = fd::fstat(root).map(|stat| stat.id());
    HeldDir::of_entry(path).is_ok_and(|(parent, name)| {
        let found = parent.find(&name).ok().flatten();
        found.is_some_and(|found| Ok(found.id()) == own) && parent.remove_empty_dir(&name)
    })
}

/// Opens and locks a marked root to remove its tree. `None` when there is no marker. Creates nothing.
pub(super) fn take_marked(dir: &Path) -> Result<Option<Root>, Error> {
    match take_readable(dir)? {
        Some(root) if root.refused == Some(Errno::ACCESS) => {
            let e = Error::call(&root.set, "open", &root.path.join(MARKER), Errno::ACCESS);
            root.close();
            Err(e)
        }
        found => Ok(found),
    }
}

/// Does the same for a tree that may only be read.
pub(super) fn take_readable(dir: &Path) -> Result<Option<Root>, Error> {
    let (fd, name) = open_found(dir)?;
    match open_marked(&name, dir, fd) {
        Ok(Some(root)) => Ok(Some(root)),
        none => {
            fd::close(fd);
            none
        }
    }
}

/// Opens the root of a set that another rank has taken, without a lock and without a change. The checksum of its marker
/// must be `token`. The inner error is the difference from the tree of that rank.
pub(super) fn open_taken(spec: &FilesetSpec, token: &str) -> Result<Result<Root, NotShared>, Error> {
    let (path, set) = (spec.root(), &spec.name);
    let call = |call, e| Error::call(set, call, &path, e);
    let (parent_path, name) = spec.root_location().ok_or_else(|| Error::Name { set: set.clone() })?;
    let name = CString::new(name).map_err(|_| Error::Name { set: set.clone() })?;
    // Opened for reading, because a network file system then looks at the server for names that did not exist before.
    let parent = match fd::open_path(&parent_path, READ_DIR, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Err(NotShared::Missing)),
        opened => walk::CloseOnDrop(opened.map_err(|e| call("open", e))?),
    };
    if matches!(fd::stat_at(parent.0, &name), Err(Errno::NOENT)) {
        return Ok(Err(NotShared::Missing));
    }
    let root = walk::CloseOnDrop(open_root(set, &path, parent.0, &name)?);
    let lock = match fd::open_existing(root.0, MARKER_C, OFlags::RDONLY) {
        Err(Errno::NOENT) => return Ok(Err(NotShared::Unmarked)),
        opened => walk::CloseOnDrop(opened.map_err(|e| call("open", e))?),
    };
    match Marker::read(lock.0, &path).map_err(|e| call("read", e))? {
        Ok((marker, note)) if marker.checksum() == token => Ok(Ok(Root {
            set: set.clone(),
            device: device(root.0),
            path,
            fd: root.keep(),
            lock: lock.keep(),
            marker,
            fresh: false,
            note,
            made_parents: Vec::new(),
            refused: None,
        })),
        _ => Ok(Err(NotShared::OtherTree)),
    }
}

impl Unmarked {
    /// Marks the directory as adopted.
    pub(super) fn adopt(self) -> Result<Root, Error> {
        let fd = self.fd;
        let parent = HeldDir::of_entry(&self.path).ok();
        let _lock = parent.as_ref().map(|(parent, _)| ParentLock::take(parent.as_fd()));
        write_marker(&self.set, self.path, fd, false, true).inspect_err(|_| fd::close(fd))
    }

    /// Closes the directory, and returns the error to report. `fits`: see [`Error::Unmarked`].
    pub(super) fn refuse(self, fits: Result<(), String>) -> Error {
        fd::close(self.fd);
        Error::Unmarked { set: self.set, path: self.path, fits }
    }
}

impl Root {
    /// Writes the current contents of the marker to the disk.
    pub(super) fn write_marker(&mut self) -> Result<(), Error> {
        self.marker.write(self.lock).map_err(|e| {
            let e = self.refused.filter(|_| e == Errno::BADF).unwrap_or(e);
            Error::call(&self.set, "write", &self.path.join(MARKER), e)
        })
    }

    /// Gives the marker new contents that no other marker has, if they can be written. A tree that can only be read, as
    /// that of another user, keeps its marker.
    pub(super) fn renew(&mut self) -> Result<(), Error> {
        if self.refused.is_some() {
            return Ok(());
        }
        self.marker.renew();
        self.write_if_possible()
    }

    /// Records in the marker that the removal of the tree begins, so that a tree whose removal was interrupted does not
    /// count as complete.
    pub(super) fn announce_removal(&mut self) -> Result<(), Error> {
        self.marker.state = MarkerProgress::Removing;
        self.write_if_possible()
    }

    /// Writes the marker to the disk, unless the file system is full or read-only.
    fn write_if_possible(&mut self) -> Result<(), Error> {
        match self.write_marker() {
            // A full file system with copy-on-write has no space for the record. It must still be possible to empty it.
            Err(Error::Call { errno: Errno::NOSPC | Errno::DQUOT, .. }) => Ok(()),
            // On a read-only file system the removal itself reports that.
            Err(Error::Call { errno: Errno::ROFS, .. }) => Ok(()),
            written => written,
        }
    }

    /// Returns the checksum of the marker on the disk.
    pub(super) fn token(&self) -> Result<String, Error> {
        let at = || self.path.join(MARKER);
        match Marker::read(self.lock, &self.path).map_err(|e| Error::call(&self.set, "read", &at(), e))? {
            Ok((marker, _)) => Ok(marker.checksum()),
            Err(_) => {
                let why = "another program has changed it".to_owned();
                Err(Error::Marker { set: self.set.clone(), path: at(), why })
            }
        }
    }

    /// Returns the names that the tree may contain.
    pub(super) fn known(&self) -> KnownTree {
        KnownTree::of(&self.marker)
    }

    /// Undoes [`take`]: removes the marker and directories that it created, and closes the root.
    pub(super) fn roll_back(mut self) {
        let made_parents = std::mem::take(&mut self.made_parents);
        if self.fresh {
            // The error that is undone here is the one to report.
            let _ = self.unmark();
        } else {
            self.close();
        }
        remove_empty(&made_parents);
    }

    /// True if the directory has its marker: the file that this process has locked.
    fn has_marker(&self) -> bool {
        let own = fd::file_info(self.lock).map(|info| info.inode);
        own.is_ok() && fd::file_info_at(self.fd, MARKER_C).map(|info| info.inode) == own
    }

    /// Removes the marker, and the root directory too if wmlrun created it and it is empty. Returns whether the
    /// directory was removed, or the error if the marker could not be. A file that has replaced the marker is kept.
    pub(super) fn unmark(self) -> Result<bool, Errno> {
        let removed = if self.has_marker() { fd::unlink_at(self.fd, MARKER_C) } else { Ok(()) };
        let is_removed = removed.is_ok() && self.marker.made_root && remove_root(&self.path, self.fd);
        self.close();
        removed.map(|()| is_removed)
    }

    /// Returns the current stamp of the marker. `None` when the file system does not provide one.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let (inode, changed) = fd::change_time(self.lock).ok()?;
        Some(Stamp { inode, changed })
    }

    /// Changes the stamp of the marker, because the tree is about to be changed.
    pub(super) fn touch(&self) {
        // If this fails, the stamp is unchanged, and another session may trust outdated knowledge. This is rare.
        let _ = inode::change(self.lock, &InodeChange::TimesNow);
    }

    /// Unlocks and closes the root.
    pub(super) fn close(self) {
        fd::unlock(self.lock);
        fd::close(self.fd);
    }
}
