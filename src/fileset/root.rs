//! The root of a file set: whose it is, and that nobody else uses it.
//!
//! A root that wmlrun may work in bears a marker, the file `.wmlrun`, that says how the tree was made and how far that came.
//! The marker is locked while the root is in use. An empty directory may be marked; anything else without a marker is
//! somebody's. What is inside a marked root is not looked at here.

use super::FilesetSpec;
use super::error::Error;
use super::walk::{self, LIST, PLACE};
use crate::sys::{Errno, Fd, fd};
use rustix::fs::{FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The marker's name.
pub(super) const MARKER: &str = ".wmlrun";
const MARKER_C: &std::ffi::CStr = c".wmlrun";
/// The marker is padded to this many bytes, so that one write replaces it whole.
const MARKER_LEN: usize = 4096;
/// The version of what is in it.
const FORMAT: u32 = 1;
/// The mode of directories, as Filebench makes them.
pub(super) const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// What the directories of a tree follow from. Sizes are not part of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    pub(super) entries: u64,
    pub(super) leafdirs: u64,
    pub(super) dirwidth: String,
    pub(super) width_gamma: f64,
    pub(super) depth_gamma: f64,
    pub(super) dirdepth: String,
    pub(super) seed: u64,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, leafdirs, dirwidth, width_gamma, depth_gamma, dirdepth, seed } = self;
        write!(
            f,
            "entries={entries} leafdirs={leafdirs} dirwidth={dirwidth} gamma={width_gamma}/{depth_gamma} dirdepthrv={dirdepth} layout seed {seed}"
        )
    }
}

/// How far the tree has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Progress {
    /// Marked, and not begun.
    Empty,
    /// It was being made; if nobody has the lock, that was interrupted.
    Populating,
    /// Complete.
    Ready,
}

/// What the marker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) format: u32,
    pub(super) set: String,
    pub(super) state: Progress,
    /// The root directory itself was made by us, and goes with the tree.
    pub(super) made_root: bool,
    /// The tree was found, and is never removed.
    #[serde(default)]
    pub(super) adopted: bool,
    /// How the tree was made; none yet in a root that was only marked.
    pub(super) layout: Option<Layout>,
}

/// A root that is ours: open, marked, and locked, in the descriptor table of the thread that took it.
#[derive(Debug)]
pub(super) struct Root {
    /// The set, for messages.
    pub(super) set: String,
    /// The path, for messages.
    pub(super) path: PathBuf,
    /// The directory, to list and to name by.
    pub(super) fd: Fd,
    lock: Fd,
    /// What the marker says now.
    pub(super) marker: Marker,
    /// Marked by this very call.
    pub(super) fresh: bool,
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
    Ours(Root),
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
    let path = spec.root();
    std::fs::create_dir_all(&above_path)
        .map_err(|e| Error::call(&spec.name, "make", &above_path, Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
    let name = CString::new(name).map_err(|_| Error::Name { set: spec.name.clone() })?;
    let call = |call, e| Error::call(&spec.name, call, &path, e);
    let above = fd::open_path(&above_path, PLACE, Mode::empty()).map_err(|e| call("open", e))?;
    let above = walk::Closing(above);
    let _turn = Turn::take(&above_path);
    let made_root = match fd::mkdir_at(above.0, &name, DIR_MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(call("make", e)),
    };
    let root = open_root(&spec.name, &path, above.0, &name)?;
    take_open(&spec.name, path, root, made_root)
}

/// A directory in which nobody else makes or marks a root meanwhile: of programs that start at the same moment the first one has its
/// root whole before the next one looks. A courtesy: where it can't be had, or somebody keeps it, it goes without.
struct Turn(Option<Fd>);

impl Turn {
    fn take(dir: &Path) -> Self {
        const PAUSE: Duration = Duration::from_millis(5);
        const TRIES: u32 = 400;
        let Ok(fd) = fd::open_path(dir, LIST, Mode::empty()) else { return Self(None) };
        for _ in 0..TRIES {
            match fd::lock(fd) {
                Ok(()) => return Self(Some(fd)),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(_) => break,
            }
        }
        fd::close(fd);
        Self(None)
    }
}

impl Drop for Turn {
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
    if let Some((lock, marker)) = lock_marker(set, &path, root).map_err(closing)? {
        return Ok(Taken::Ours(Root { set: set.to_owned(), path, fd: root, lock, marker, fresh: false }));
    }
    if !is_empty(root).map_err(|e| closing(Error::call(set, "read", &path, e)))? {
        return Ok(Taken::Unmarked(Unmarked { set: set.to_owned(), path, fd: root }));
    }
    mark(set, path, root, made_root, false).map(Taken::Ours).map_err(closing)
}

/// Puts a marker into an open root, and locks it.
fn mark(set: &str, path: PathBuf, root: Fd, made_root: bool, adopted: bool) -> Result<Root, Error> {
    let at = path.join(MARKER);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let lock = fd::open_at(root, MARKER_C, flags, Mode::from_raw_mode(0o644)).map_err(|e| match e {
        Errno::EXIST => Error::InUse { set: set.to_owned(), path: path.clone() },
        e => Error::call(set, "make", &at, e),
    })?;
    if let Err(e) = fd::lock(lock) {
        fd::close(lock);
        return Err(match e {
            Errno::WOULDBLOCK => Error::InUse { set: set.to_owned(), path },
            e => Error::call(set, "lock", &at, e),
        });
    }
    let marker =
        Marker { format: FORMAT, set: set.to_owned(), state: Progress::Empty, made_root, adopted, layout: None };
    let root = Root { set: set.to_owned(), path, fd: root, lock, marker, fresh: true };
    match root.write_marker() {
        Ok(()) => Ok(root),
        Err(e) => {
            // A file system without room even for the marker: nothing is left behind.
            let _ = fd::unlink_at(root.fd, MARKER_C);
            fd::unlock(lock);
            Err(e)
        }
    }
}

/// Opens, locks and reads the marker of an open root; `None` if there is none.
fn lock_marker(set: &str, path: &Path, root: Fd) -> Result<Option<(Fd, Marker)>, Error> {
    let at = path.join(MARKER);
    let bad = |why: &str| Error::Marker { set: set.to_owned(), path: at.clone(), why: why.to_owned() };
    let lock = match fd::open_at(root, MARKER_C, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Error::Link { set: set.to_owned(), path: at }),
        Err(Errno::ISDIR | Errno::NXIO) => return Err(bad("it is no file")),
        Err(e) => return Err(Error::call(set, "open", &at, e)),
    };
    let read = || {
        if !fd::fstat(lock).is_ok_and(|stat| stat.kind == FileType::RegularFile) {
            return Err(bad("it is no file"));
        }
        match fd::lock(lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::InUse { set: set.to_owned(), path: path.to_owned() }),
            Err(e) => return Err(Error::call(set, "lock", &at, e)),
        }
        let mut text = vec![0; 16 * MARKER_LEN];
        let n = fd::pread(lock, &mut text, 0).map_err(|e| Error::call(set, "read", &at, e))?;
        parse(set, &text[..n]).map_err(|why| bad(&why))
    };
    match read() {
        Ok(marker) => Ok(Some((lock, marker))),
        Err(e) => {
            fd::unlock(lock);
            Err(e)
        }
    }
}

fn parse(set: &str, text: &[u8]) -> Result<Marker, String> {
    if text.iter().all(|&byte| byte == 0) {
        // A crash came between making and writing it: nothing is known but that it is ours.
        let (state, layout) = (Progress::Populating, None);
        return Ok(Marker { format: FORMAT, set: set.into(), state, made_root: false, adopted: false, layout });
    }
    let marker: Marker = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    if marker.format != FORMAT {
        return Err(format!("it is of format {}, and this version knows {FORMAT}", marker.format));
    }
    Ok(marker)
}

/// Whether a directory holds nothing.
pub(super) fn is_empty(root: Fd) -> Result<bool, Errno> {
    let mut empty = true;
    fd::list_dir(root, &mut [0; 4096], |_, _| {
        empty = false;
        false
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
    match lock_marker(&name, dir, fd) {
        Ok(Some((lock, marker))) => {
            Ok(Some(Root { set: marker.set.clone(), path: dir.to_owned(), fd, lock, marker, fresh: false }))
        }
        Ok(None) => {
            fd::close(fd);
            Ok(None)
        }
        Err(e) => {
            fd::close(fd);
            Err(e)
        }
    }
}

impl Unmarked {
    /// Marks it as taken over.
    pub(super) fn adopt(self) -> Result<Root, Error> {
        let fd = self.fd;
        mark(&self.set, self.path, fd, false, true).inspect_err(|_| fd::close(fd))
    }

    /// Lets go of it, with the refusal as the result.
    pub(super) fn refuse(self) -> Error {
        fd::close(self.fd);
        Error::Unmarked { set: self.set, path: self.path }
    }
}

impl Root {
    /// Writes the marker in one piece over what it was.
    pub(super) fn write_marker(&self) -> Result<(), Error> {
        let mut text = serde_json::to_vec_pretty(&self.marker).unwrap_or_default();
        text.resize(text.len().max(MARKER_LEN - 1), b' ');
        text.push(b'\n');
        // On the disk before anything that it speaks for: a crash leaves no unmarked tree.
        let write = || match fd::pwrite(self.lock, &text, 0)? {
            n if n == text.len() => {
                fd::ftruncate(self.lock, text.len() as u64)?;
                fd::fsync(self.lock)
            }
            _ => Err(Errno::NOSPC),
        };
        write().map_err(|e| Error::call(&self.set, "write", &self.path.join(MARKER), e))
    }

    /// Undoes what [`take`] did, where it made or marked something and nothing came of it.
    pub(super) fn give_up(self) {
        if self.fresh {
            self.unmark();
        } else {
            self.close();
        }
    }

    /// Takes the marker away, and the root directory too if it was ours and is empty. Returns whether it is gone.
    pub(super) fn unmark(self) -> bool {
        let _ = fd::unlink_at(self.fd, MARKER_C);
        let made = self.marker.made_root;
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
        let _ = fd::touch(self.lock);
    }

    /// Closes and unlocks it.
    pub(super) fn close(self) {
        fd::unlock(self.lock);
        fd::close(self.fd);
    }
}
