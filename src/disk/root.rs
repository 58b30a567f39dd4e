//! The root of a file set: whose it is, and that nobody else uses it.
//!
//! A root that wmlrun may work in bears a marker, the file `.wmlrun`, that says how the tree was made and how far that came.
//! The marker is locked while the root is in use. An empty directory may be marked; anything else without a marker is
//! somebody's. What is inside a marked root is not looked at here.

use super::error::Error;
use super::known::KnownTree;
use super::marker::{self, Invalid, Marker};
use super::walk::{self, LIST, PLACE};
use crate::fileset::FilesetSpec;
use crate::os::inode::{self, InodeChange};
use crate::os::{Errno, Fd, fd};
use crate::os::{FileType, Mode, OFlags};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// The marker's name.
pub(super) const MARKER: &str = ".wmlrun";
const MARKER_C: &std::ffi::CStr = c".wmlrun";
/// What it is called until it is whole.
pub(super) const UNFINISHED: &str = ".wmlrun.new";
const UNFINISHED_C: &std::ffi::CStr = c".wmlrun.new";
/// The mode of directories, as Filebench makes them.
pub(super) const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// A root that is ours: open, marked, and locked, in the descriptor table of the thread that took it.
#[derive(Debug)]
pub(super) struct Root {
    /// The set, for messages.
    pub(super) set: String,
    /// The path, for messages.
    pub(super) path: PathBuf,
    /// The directory, to list and to name by.
    pub(super) fd: Fd,
    /// The device that it lies on.
    pub(super) device: u64,
    lock: Fd,
    /// What the marker says now.
    pub(super) marker: Marker,
    /// Marked by this very call.
    pub(super) fresh: bool,
    /// What is to be said about its place.
    pub(super) note: Option<String>,
    /// Directories above it that this very call made, the lowest first.
    above: Vec<PathBuf>,
}

/// Which marker it is, and when it was last written or touched: as long as that is the same, nobody else has changed the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    inode: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

/// What stands at the place of a root.
pub(super) enum Taken {
    /// Ours, and locked.
    Ours(Box<Root>),
    /// Not empty, and not marked; open.
    Unmarked(Unmarked),
}

/// A directory that is not ours.
pub(super) struct Unmarked {
    set: String,
    path: PathBuf,
    fd: Fd,
}

/// Opens, makes or marks the root of a set.
pub(super) fn take(spec: &FilesetSpec) -> Result<Taken, Error> {
    let (above_path, name) = spec.place().ok_or_else(|| Error::Name { set: spec.name.clone() })?;
    let name = CString::new(name).map_err(|_| Error::Name { set: spec.name.clone() })?;
    let mut made = Vec::new();
    let taken = make_all(&above_path, &mut made)
        .map_err(|e| Error::call(&spec.name, "make", &above_path, Errno::from_io_error(&e).unwrap_or(Errno::IO)))
        .and_then(|()| take_in(spec, &above_path, &name));
    match taken {
        Ok(Taken::Ours(mut root)) => {
            root.above = made;
            Ok(Taken::Ours(root))
        }
        Ok(unmarked) => Ok(unmarked),
        Err(e) => {
            remove_empty(&made);
            Err(e)
        }
    }
}

/// Makes a directory and those above it that are not there; adds what it makes to `made`, the lowest first.
fn make_all(dir: &Path, made: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
    for dir in missing.into_iter().rev() {
        match std::fs::create_dir(dir) {
            Ok(()) => made.insert(0, dir.to_owned()),
            // Somebody else has made it meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            Err(e) => {
                remove_empty(made);
                made.clear();
                return Err(e);
            }
        }
    }
    Ok(())
}

/// Removes directories, up to the first that is not empty.
fn remove_empty(dirs: &[PathBuf]) {
    let _ = dirs.iter().try_for_each(std::fs::remove_dir);
}

/// The same in the directory above it.
fn take_in(spec: &FilesetSpec, above_path: &Path, name: &std::ffi::CStr) -> Result<Taken, Error> {
    let path = spec.root();
    let call = |call, e| Error::call(&spec.name, call, &path, e);
    let above = fd::open_path(above_path, PLACE, Mode::empty()).map_err(|e| call("open", e))?;
    let above = walk::Closing(above);
    let _lock = ParentLock::take(above_path);
    let made_root = match fd::mkdir_at(above.0, name, DIR_MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(call("make", e)),
    };
    let taken =
        open_root(&spec.name, &path, above.0, name).and_then(|root| take_open(&spec.name, path, root, made_root));
    if taken.is_err() && made_root {
        // Fails, and should, if anything is in it.
        let _ = fd::rmdir_at(above.0, name);
    }
    taken
}

/// A directory in which nobody else makes or marks a root meanwhile: of programs that start at the same moment the first one has its
/// root whole before the next one looks. A courtesy: where it can't be had, or somebody keeps it, it goes without.
struct ParentLock(Option<Fd>);

impl ParentLock {
    fn take(dir: &Path) -> Self {
        let Ok(fd) = fd::open_path(dir, LIST, Mode::empty()) else { return Self(None) };
        match fd::lock(fd) {
            Ok(()) => Self(Some(fd)),
            Err(_) => {
                fd::close(fd);
                Self(None)
            }
        }
    }
}

impl Drop for ParentLock {
    fn drop(&mut self) {
        if let Some(fd) = self.0 {
            fd::unlock(fd);
        }
    }
}

/// Opens what a set's name stands for, if it is a directory and no link to one.
fn open_root(set: &str, path: &Path, above: Fd, name: &std::ffi::CStr) -> Result<Fd, Error> {
    let set = set.to_owned();
    let path = path.to_owned();
    match fd::stat_at(above, name).map(|stat| stat.kind) {
        Ok(FileType::Directory) => {}
        Ok(FileType::Symlink) => return Err(Error::Link { set, path }),
        Ok(_) => return Err(Error::NotADirectory { set, path }),
        Err(e) => return Err(Error::call(&set, "look at", &path, e)),
    }
    // It may have become something else since; the flags refuse that.
    fd::open_at(above, name, LIST, Mode::empty()).map_err(|e| match e {
        Errno::LOOP => Error::Link { set, path },
        Errno::NOTDIR => Error::NotADirectory { set, path },
        e => Error::call(&set, "open", &path, e),
    })
}

fn take_open(set: &str, path: PathBuf, root: Fd, made_root: bool) -> Result<Taken, Error> {
    let closing = |e| {
        fd::close(root);
        e
    };
    if let Some(root) = open_marked(set, &path, root).map_err(closing)? {
        return Ok(Taken::Ours(Box::new(root)));
    }
    if !is_empty(root).map_err(|e| closing(Error::call(set, "read", &path, e)))? {
        return Ok(Taken::Unmarked(Unmarked { set: set.to_owned(), path, fd: root }));
    }
    write_marker(set, path, root, made_root, false).map(|root| Taken::Ours(Box::new(root))).map_err(closing)
}

/// Puts a marker into an open root, and locks it: there is none before it is whole.
fn write_marker(set: &str, path: PathBuf, root: Fd, made_root: bool, adopted: bool) -> Result<Root, Error> {
    let at = path.join(MARKER);
    let call = |call, e| Error::call(set, call, &at, e);
    let in_use = || Error::InUse { set: set.to_owned(), path: path.clone() };
    let lock = unfinished(set, &path, root)?;
    let write = || {
        match fd::lock(lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use()),
            Err(e) => return Err(call("lock", e)),
        }
        let mut marker = Marker::new(set, made_root, adopted, lock, &path).map_err(|e| call("look at", e))?;
        marker.write(lock).map_err(|e| call("write", e))?;
        match fd::rename_new(root, UNFINISHED_C, MARKER_C) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::EXIST) => return Err(in_use()),
            Err(e) => return Err(call("make", e)),
        }
        // Somebody who takes the same root at the same moment may have had the other's file renamed.
        let (here, own) = (fd::file_info_at(root, MARKER_C), fd::file_info(lock));
        if here.is_err() || here.map(|info| info.inode) != own.map(|info| info.inode) {
            return Err(in_use());
        }
        Ok(marker)
    };
    match write() {
        Ok(marker) => {
            // On the disk before anything that it speaks for; a file system that can't do that is as safe as it is.
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
                above: Vec::new(),
            })
        }
        Err(e) => {
            // A file system without room even for the marker: nothing is left behind.
            if !matches!(e, Error::InUse { .. }) {
                let _ = fd::unlink_at(root, UNFINISHED_C);
            }
            fd::unlock(lock);
            Err(e)
        }
    }
}

/// A new file that is to become the marker. What a killed run has left of its own goes.
fn unfinished(set: &str, path: &Path, root: Fd) -> Result<Fd, Error> {
    let at = path.join(UNFINISHED);
    let make = || {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        fd::open_at(root, UNFINISHED_C, flags, Mode::from_raw_mode(0o644))
    };
    match make() {
        Err(Errno::EXIST) => {}
        made => return made.map_err(|e| Error::call(set, "make", &at, e)),
    }
    let old = fd::open_existing(root, UNFINISHED_C, OFlags::RDONLY).map_err(|e| Error::call(set, "open", &at, e))?;
    // Who waited for the lock may hold that of a file which another has removed, and made anew.
    let free = fd::lock(old).is_ok() && !fd::file_info(old).is_ok_and(|info| info.links == 0);
    let plain = fd::file_info(old).is_ok_and(|info| info.kind == FileType::RegularFile && info.links <= 1);
    let ours = plain && marker::is_unfinished(old).unwrap_or(false);
    let removed = if ours && free { fd::unlink_at(root, UNFINISHED_C) } else { Ok(()) };
    fd::unlock(old);
    if !ours {
        let why = "it is not what wmlrun writes".to_owned();
        return Err(Error::Marker { set: set.to_owned(), path: at, why });
    }
    if !free {
        return Err(Error::InUse { set: set.to_owned(), path: path.to_owned() });
    }
    removed.and_then(|()| make()).map_err(|e| match e {
        Errno::EXIST | Errno::NOENT => Error::InUse { set: set.to_owned(), path: path.to_owned() },
        e => Error::call(set, "make", &at, e),
    })
}

/// Opens, locks and reads the marker of an open root, whose descriptor becomes the result's; `None` if there is none.
fn open_marked(set: &str, path: &Path, root: Fd) -> Result<Option<Root>, Error> {
    let at = path.join(MARKER);
    let bad = |why: &str| Error::Marker { set: set.to_owned(), path: at.clone(), why: why.to_owned() };
    let call = |call, e| Error::call(set, call, &at, e);
    let look = |info: fd::FileInfo| match info.kind {
        FileType::Symlink => Err(Error::Link { set: set.to_owned(), path: at.clone() }),
        FileType::RegularFile if info.mounted => Err(bad("another file is mounted on it")),
        FileType::RegularFile if info.links > 1 => Err(bad("it has another name elsewhere")),
        FileType::RegularFile => Ok(()),
        _ => Err(bad("it is no file")),
    };
    // A device is not even opened.
    match fd::file_info_at(root, MARKER_C) {
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(call("look at", e)),
        Ok(info) => look(info)?,
    }
    // On a file system that is mounted read-only a tree can be locked, and measured as it is.
    let open = match fd::open_existing(root, MARKER_C, OFlags::RDWR) {
        Err(Errno::ROFS) => fd::open_existing(root, MARKER_C, OFlags::RDONLY),
        opened => opened,
    };
    let lock = match open {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Error::Link { set: set.to_owned(), path: at.clone() }),
        Err(Errno::ISDIR | Errno::NXIO | Errno::XDEV) => return Err(bad("it is no file")),
        Err(e) => return Err(call("open", e)),
    };
    let read = || {
        let in_use = || Error::InUse { set: set.to_owned(), path: path.to_owned() };
        look(fd::file_info(lock).map_err(|e| call("look at", e))?)?;
        match fd::lock(lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use()),
            Err(e) => return Err(call("lock", e)),
        }
        // Who held the lock has removed the root since.
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
                above: Vec::new(),
            }))
        }
        Err(e) => {
            fd::unlock(lock);
            Err(e)
        }
    }
}

fn device(root: Fd) -> u64 {
    fd::fstat(root).map_or(0, |stat| stat.device)
}

/// Whether a directory holds nothing, or no more than the beginning of a marker.
pub(super) fn is_empty(root: Fd) -> Result<bool, Errno> {
    let mut empty = true;
    fd::list_dir(root, &mut [0; 4096], |name, _| {
        empty = name == UNFINISHED_C;
        empty
    })?;
    Ok(empty)
}

/// The root of a marked directory for `wmlrun clean`; `None` if there is no marker. Never makes anything.
pub(super) fn take_marked(dir: &Path) -> Result<Option<Root>, Error> {
    let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let fd = fd::open_path(dir, LIST | OFlags::NOFOLLOW, Mode::empty()).map_err(|e| match e {
        Errno::LOOP | Errno::NOTDIR => Error::Link { set: name.clone(), path: dir.to_owned() },
        e => Error::call(&name, "open", dir, e),
    })?;
    match open_marked(&name, dir, fd) {
        Ok(Some(root)) => Ok(Some(root)),
        none => {
            fd::close(fd);
            none
        }
    }
}

impl Unmarked {
    /// Marks it as taken over.
    pub(super) fn adopt(self) -> Result<Root, Error> {
        let fd = self.fd;
        write_marker(&self.set, self.path, fd, false, true).inspect_err(|_| fd::close(fd))
    }

    /// Lets go of it, with the refusal as the result.
    pub(super) fn refuse(self) -> Error {
        fd::close(self.fd);
        Error::Unmarked { set: self.set, path: self.path }
    }
}

impl Root {
    /// Puts what the marker says now onto the disk.
    pub(super) fn write_marker(&mut self) -> Result<(), Error> {
        self.marker.write(self.lock).map_err(|e| Error::call(&self.set, "write", &self.path.join(MARKER), e))
    }

    /// The names that the tree has.
    pub(super) fn known(&self) -> KnownTree {
        KnownTree::of(&self.marker)
    }

    /// Whether the path still leads to this directory.
    fn is_at_its_path(&self) -> bool {
        let here = fd::lstat(&self.path).map(|stat| (stat.device, stat.inode));
        here.is_ok() && here == fd::fstat(self.fd).map(|stat| (stat.device, stat.inode))
    }

    /// Undoes what [`take`] did, where it made or marked something and nothing came of it.
    pub(super) fn give_up(mut self) {
        let above = std::mem::take(&mut self.above);
        if self.fresh {
            self.unmark();
        } else {
            self.close();
        }
        remove_empty(&above);
    }

    /// Takes the marker away, and the root directory too if it was ours and is empty. Returns whether it is gone.
    pub(super) fn unmark(self) -> bool {
        let _ = fd::unlink_at(self.fd, MARKER_C);
        // What somebody has put in its place is not ours, empty or not.
        let made = self.marker.made_root && self.is_at_its_path();
        let path = self.path.clone();
        self.close();
        // Fails, and should, if anything is in it.
        made && std::fs::remove_dir(path).is_ok()
    }

    /// The marker's stamp now; `None` where the file system does not say.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let (inode, changed) = fd::change_time(self.lock).ok()?;
        Some(Stamp { inode, changed })
    }

    /// Gives the marker another stamp: the tree is about to be changed.
    pub(super) fn touch(&self) {
        // Where it can't be done, the stamp stays, and other sessions trust what they know: they are few.
        let _ = inode::change(self.lock, &InodeChange::TimesNow);
    }

    /// Closes and unlocks it.
    pub(super) fn close(self) {
        fd::unlock(self.lock);
        fd::close(self.fd);
    }
}
