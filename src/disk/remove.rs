//! Removing trees that wmlrun made, and nothing else.
//!
//! A tree is scanned whole before the first name goes. The removal goes by directory descriptor and number, looks at every
//! name once more, and takes a directory only when it is empty; what somebody puts there meanwhile stays. No shell.

use super::error::{Error, Foreign};
use super::root::{self, Root};
use super::scan::{self, LIST_BUFFER, Scan, ScanItem};
use super::walk::{self, Closing, LIST, PLACE};
use super::{Fileset, thread_pool};
use crate::os::name::Name;
use crate::os::{Errno, Fd, fd, steps};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Files removed between two looks at the stop flag.
const LOOK_EVERY: usize = 256;

/// What became of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// The file set.
    pub set: String,
    /// Its root.
    pub path: PathBuf,
    /// Files removed.
    pub files: u64,
    /// Directories removed below the root.
    pub directories: u64,
    /// The root is gone too. It stays if it was there before wmlrun.
    pub root_removed: bool,
    /// Nothing was removed but the marker: the tree was adopted, its files were there before wmlrun.
    pub adopted: bool,
    /// What there is to say of the marker.
    pub note: Option<String>,
}

/// What `wmlrun clean` did.
#[derive(Clone, Default, Debug)]
pub struct CleanReport {
    /// The trees that were found.
    pub removed: Vec<Removed>,
    /// Trees that could not be removed, and why.
    pub refused: Vec<Error>,
}

/// Removes everything below an open root but the marker, after it was scanned.
pub(super) fn remove_tree(
    root: &Root,
    scan: &Scan,
    threads: usize,
    stop: &AtomicBool,
    watch: impl FnMut(u64, u64),
) -> Result<(), Error> {
    let next = AtomicU64::new(1);
    thread_pool::run(&root.set, threads, stop, watch, |worker| {
        let mut buf = vec![0; LIST_BUFFER];
        loop {
            let dir = next.fetch_add(1, Ordering::Relaxed);
            if dir >= scan.dirs.len() as u64 || worker.halted().is_break() {
                return Ok(());
            }
            if scan.dirs[dir as usize].files() > 0 {
                remove_files(root, scan, dir as u32, &mut buf, worker)?;
            }
        }
    })?;
    // Children come after their parents: backwards each directory is empty when its turn comes.
    let mut above: Option<(u32, Closing)> = None;
    for at in (1..scan.dirs.len() as u32).rev() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: root.set.clone() });
        }
        let dir = scan.dirs[at as usize];
        let fd = match &above {
            Some((parent, fd)) if *parent == dir.parent => fd.0,
            _ => {
                let chain = scan.chain(dir.parent);
                let fd = walk::open_chain(root.fd, &chain, PLACE, root.device)
                    .map_err(|e| Error::call(&root.set, "open", &place(root, &chain), e))?;
                above.insert((dir.parent, Closing(fd))).1.0
            }
        };
        match fd::rmdir_at(fd, Name::new(u64::from(dir.serial)).as_c()) {
            Ok(()) | Err(Errno::NOENT) => steps::count(),
            Err(e) => return Err(Error::call(&root.set, "remove", &place(root, &scan.chain(at)), e)),
        }
    }
    Ok(())
}

fn remove_files(
    root: &Root,
    scan: &Scan,
    dir: u32,
    buf: &mut [u8],
    worker: &thread_pool::Worker<'_>,
) -> Result<(), Error> {
    let chain = scan.chain(dir);
    let call = |call, e| Error::call(&root.set, call, &place(root, &chain), e);
    let fd = walk::open_chain(root.fd, &chain, LIST, root.device).map_err(|e| call("open", e))?;
    let _closing = Closing(fd);
    // Names are collected first: what a directory yields while it shrinks is up to the file system.
    let mut names: Vec<u32> = Vec::with_capacity(scan.dirs[dir as usize].files() as usize);
    let mut foreign: Option<(PathBuf, Foreign)> = None;
    fd::list_dir(fd, buf, |name, kind| {
        match scan::classify(fd, false, name, kind) {
            Ok(ScanItem::File(serial)) if scan.has_file(dir, serial) => names.push(serial),
            Ok(ScanItem::File(_)) => {
                foreign = Some((place(root, &chain).join(OsStr::from_bytes(name.to_bytes())), Foreign::Number));
            }
            Ok(_) => foreign = Some((place(root, &chain).join(OsStr::from_bytes(name.to_bytes())), Foreign::Mixed)),
            Err(what) => foreign = Some((place(root, &chain).join(OsStr::from_bytes(name.to_bytes())), what)),
        }
        foreign.is_none()
    })
    .map_err(|e| call("read", e))?;
    if let Some((path, what)) = foreign {
        return Err(Error::Foreign { set: root.set.clone(), path, what });
    }
    for some in names.chunks(LOOK_EVERY) {
        if worker.halted().is_break() {
            return Ok(());
        }
        for &serial in some {
            unlink(fd, serial).map_err(|e| {
                let name = Name::new(u64::from(serial));
                Error::call(&root.set, "remove", &place(root, &chain).join(OsStr::from_bytes(name.digits())), e)
            })?;
            worker.tally.add(1, 0);
        }
    }
    Ok(())
}

/// Bytes that the files of a scanned tree take on the disk.
pub(super) fn bytes_of(root: &Root, scan: &Scan, stop: &AtomicBool) -> Result<u64, Error> {
    let mut buf = vec![0; LIST_BUFFER];
    let mut blocks = 0;
    for (at, dir) in scan.dirs.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: root.set.clone() });
        }
        if dir.files() == 0 {
            continue;
        }
        let chain = scan.chain(at as u32);
        let call = |call, e| Error::call(&root.set, call, &place(root, &chain), e);
        let fd = Closing(walk::open_chain(root.fd, &chain, LIST, root.device).map_err(|e| call("open", e))?);
        fd::list_dir(fd.0, &mut buf, |name, _| {
            blocks += fd::stat_at(fd.0, name).map_or(0, |stat| stat.blocks);
            true
        })
        .map_err(|e| call("read", e))?;
    }
    // The unit of `st_blocks` is 512 bytes, whatever the file system's.
    Ok(blocks * 512)
}

fn unlink(dir: Fd, serial: u32) -> Result<(), Errno> {
    match fd::unlink_at(dir, Name::new(u64::from(serial)).as_c()) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

fn place(root: &Root, chain: &[Name]) -> PathBuf {
    chain.iter().fold(root.path.clone(), |path, name| path.join(OsStr::from_bytes(name.digits())))
}

/// Removes the tree of a set, and its root if wmlrun made that; an adopted tree stays. The set must not be in use any more.
pub fn remove(set: &Fileset, threads: usize, stop: &AtomicBool) -> Result<Removed, Error> {
    let held = set.held.lock().take();
    let root = match held {
        Some(root) => Some(root),
        None => root::take_marked(&set.spec.root())?,
    };
    match root {
        Some(root) => remove_root(root, threads, stop),
        None => Err(Error::Unmarked { set: set.spec.name.clone(), path: set.spec.root() }),
    }
}

fn remove_root(root: Root, threads: usize, stop: &AtomicBool) -> Result<Removed, Error> {
    let mut removed = Removed {
        set: root.set.clone(),
        path: root.path.clone(),
        files: 0,
        directories: 0,
        root_removed: false,
        adopted: root.marker.adopted,
        note: root.note.clone(),
    };
    if !removed.adopted {
        let scan = scan::scan(&root, stop);
        let done = scan.and_then(|scan| {
            (removed.files, removed.directories) = (scan.files, scan.dirs.len() as u64 - 1);
            remove_tree(&root, &scan, threads, stop, |_, _| ())
        });
        if let Err(e) = done {
            root.close();
            return Err(e);
        }
    }
    removed.root_removed = root.unmark();
    Ok(removed)
}

/// Removes every marked root directly in `dir`, and `dir` itself if it is one. What bears no mark is not looked into.
pub fn clean(dir: &Path, threads: usize, stop: &AtomicBool) -> Result<CleanReport, Error> {
    let mut report = CleanReport::default();
    let mut places = vec![dir.to_owned()];
    places.extend(directories_in(dir)?);
    for place in places {
        // `dir` itself may be named by a link; what lies in it is never reached by one.
        let place = if place == dir { std::fs::canonicalize(&place).unwrap_or(place) } else { place };
        match root::take_marked(&place) {
            Ok(Some(root)) => match remove_root(root, threads, stop) {
                Ok(removed) => report.removed.push(removed),
                Err(e) => report.refused.push(e),
            },
            // Gone meanwhile: nothing is left to remove.
            Ok(None) | Err(Error::Call { errno: Errno::NOENT, .. }) => {}
            // A directory that may not be read may hold a tree: nobody is told that there is none.
            Err(e) => report.refused.push(e),
        }
    }
    Ok(report)
}

/// Removes the marked roots in a directory that a run made for itself, and those in each of these places in it; what leads to
/// them was made for them, and goes as far as it is empty then. A place that lies elsewhere, over `..` or a link, stays.
pub fn clean_places(dir: &Path, places: &BTreeSet<PathBuf>, threads: usize, stop: &AtomicBool) -> CleanReport {
    let mut report = CleanReport::default();
    let Ok(dir) = std::fs::canonicalize(dir) else { return report };
    let others = places.iter().filter_map(|place| std::fs::canonicalize(place).ok());
    for place in std::iter::once(dir.clone()).chain(others).filter(|place| place.starts_with(&dir)) {
        report.add(clean(&place, threads, stop));
        prune(&place, &dir);
    }
    report
}

/// The same where nobody knows the places any more: looks for marked roots however deep, on the same file system.
pub fn clean_fresh(dir: &Path, threads: usize, stop: &AtomicBool) -> Result<CleanReport, Error> {
    let mut report = clean(dir, threads, stop)?;
    let device = |path: &Path| std::fs::symlink_metadata(path).map(|m| m.dev()).ok();
    for below in directories_in(dir)? {
        // A root that could not be removed is no way to another; a file system that somebody mounted here is not the run's.
        if is_marked(&below) || device(&below) != device(dir) {
            continue;
        }
        let more = clean_fresh(&below, threads, stop);
        if more.as_ref().is_ok_and(|more| !more.removed.is_empty()) {
            prune(&below, dir);
        }
        report.add(more);
    }
    Ok(report)
}

/// Whether a directory bears a marker.
pub fn is_marked(dir: &Path) -> bool {
    dir.join(root::MARKER).is_file()
}

/// Removes an empty directory, and those above it as far as they are empty then, up to one that stays.
fn prune(dir: &Path, up_to: &Path) {
    for above in dir.ancestors().take_while(|above| *above != up_to) {
        // Fails, and should, if anything is in it.
        if std::fs::remove_dir(above).is_err() {
            return;
        }
    }
}

impl CleanReport {
    fn add(&mut self, more: Result<Self, Error>) {
        match more {
            Ok(more) => {
                self.removed.extend(more.removed);
                self.refused.extend(more.refused);
            }
            Err(e) => self.refused.push(e),
        }
    }
}

/// The directories in a directory; links are none.
fn directories_in(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(dir)
        .map_err(|e| Error::call("", "read", dir, Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
    Ok(entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()).collect())
}
