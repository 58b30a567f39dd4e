//! Removal of trees that wmlrun created, and of nothing else.
//!
//! A tree is scanned completely before the first file is removed. The removal uses directory descriptors and numbers,
//! checks every name once more, and removes directories only when they are empty: files that other programs create
//! meanwhile are kept. No shell is involved.

use super::error::{Error, Foreign};
use super::marker::MARKER;
use super::root::{self, Root};
use super::scan::{self, LIST_BUFFER, Scan, ScanItem};
use super::walk::{self, AT_DIR, CloseOnDrop, READ_DIR};
use super::{Fileset, thread_pool};
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wml_os::held_dir::HeldDir;
use wml_os::name::Name;
use wml_os::{Errno, Fd, Mode, fd, reading, steps};

/// Files removed between two checks of the stop flag.
const CHECK_INTERVAL: usize = 256;

/// The result of removing a tree.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Removed {
    /// The file set.
    pub set: String,
    /// Its root.
    pub path: PathBuf,
    pub files: u64,
    /// Directories removed below the root.
    pub directories: u64,
    /// Whether the root was removed too. A root that wmlrun did not create is kept.
    pub root_removed: bool,
    /// Whether only the marker was removed, because the tree is adopted: its files were not created by wmlrun.
    pub adopted: bool,
    /// Whether only an incomplete marker was removed. The directory is kept if the run has not created it, or if it has
    /// files of others.
    pub was_unfinished: bool,
    /// Whether a directory with an incomplete marker has files of others.
    pub has_others: bool,
    /// Note for the user about the marker.
    pub note: Option<String>,
}

/// The result of `wmlrun clean`.
#[derive(Clone, Default, Debug)]
pub struct CleanReport {
    /// Trees that were removed.
    pub removed: Vec<Removed>,
    /// Trees that could not be removed, and why.
    pub refused: Vec<Error>,
    /// The number of directories after which the search for trees of `--below` ended early; 0 if it is complete.
    pub searched: usize,
}

/// Removes everything below an open root except the marker. `scan` is the result of scanning the root.
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
    // Directories follow their parents. In reverse order each directory is empty when it is removed.
    let mut open_parent: Option<(u32, CloseOnDrop)> = None;
    for at in (1..scan.dirs.len() as u32).rev() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped { set: root.set.clone() });
        }
        let dir = scan.dirs[at as usize];
        let fd = match &open_parent {
            Some((at, fd)) if *at == dir.parent => fd.0,
            _ => {
                let chain = scan.chain(dir.parent);
                let fd = walk::open_chain(root.fd, &chain, AT_DIR, root.device)
                    .map_err(|e| Error::call(&root.set, "open", &path_of(root, &chain), e))?;
                open_parent.insert((dir.parent, CloseOnDrop(fd))).1.0
            }
        };
        match fd::rmdir_at(fd, Name::new(u64::from(dir.serial)).as_c()) {
            Ok(()) | Err(Errno::NOENT) => steps::count(),
            Err(e) => return Err(Error::call(&root.set, "remove", &path_of(root, &scan.chain(at)), e)),
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
    let call = |call, e| Error::call(&root.set, call, &path_of(root, &chain), e);
    let fd = walk::open_chain(root.fd, &chain, READ_DIR, root.device).map_err(|e| call("open", e))?;
    let _closing = CloseOnDrop(fd);
    // Collect the names first: listing a directory while it is modified has unspecified results.
    let mut names: Vec<u32> = Vec::with_capacity(scan.dirs[dir as usize].files() as usize);
    let mut foreign: Option<(PathBuf, Foreign)> = None;
    fd::list_dir(fd, buf, |name, kind| {
        match scan::classify(fd, false, name, kind) {
            Ok(ScanItem::File(serial)) if scan.has_file(dir, serial) => names.push(serial),
            Ok(ScanItem::File(_)) => {
                foreign = Some((path_of(root, &chain).join(OsStr::from_bytes(name.to_bytes())), Foreign::Number));
            }
            Ok(_) => foreign = Some((path_of(root, &chain).join(OsStr::from_bytes(name.to_bytes())), Foreign::Mixed)),
            Err(what) => foreign = Some((path_of(root, &chain).join(OsStr::from_bytes(name.to_bytes())), what)),
        }
        foreign.is_none()
    })
    .map_err(|e| call("read", e))?;
    if let Some((path, what)) = foreign {
        return Err(Error::Foreign { set: root.set.clone(), path, what });
    }
    for chunk in names.chunks(CHECK_INTERVAL) {
        if worker.halted().is_break() {
            return Ok(());
        }
        for &serial in chunk {
            unlink(fd, serial).map_err(|e| {
                let name = Name::new(u64::from(serial));
                Error::call(&root.set, "remove", &path_of(root, &chain).join(OsStr::from_bytes(name.digits())), e)
            })?;
            worker.tally.add(1, 0);
        }
    }
    Ok(())
}

/// Returns the bytes that the files of a scanned tree occupy on the disk.
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
        let call = |call, e| Error::call(&root.set, call, &path_of(root, &chain), e);
        let fd = CloseOnDrop(walk::open_chain(root.fd, &chain, READ_DIR, root.device).map_err(|e| call("open", e))?);
        fd::list_dir(fd.0, &mut buf, |name, _| {
            blocks += fd::stat_at(fd.0, name).map_or(0, |stat| stat.blocks);
            true
        })
        .map_err(|e| call("read", e))?;
    }
    // The unit of `st_blocks` is 512 bytes, regardless of the block size of the file system.
    Ok(blocks * 512)
}

/// Removes a file. A file that is already gone is not an error.
fn unlink(dir: Fd, serial: u32) -> Result<(), Errno> {
    match fd::unlink_at(dir, Name::new(u64::from(serial)).as_c()) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

/// Returns the path of a chain of names below a root.
fn path_of(root: &Root, chain: &[Name]) -> PathBuf {
    chain.iter().fold(root.path.clone(), |path, name| path.join(OsStr::from_bytes(name.digits())))
}

/// Removes the tree of a set, and its root if wmlrun created it. The files of an adopted tree are kept. The set must
/// not be in use.
pub fn remove(set: &Fileset, threads: usize, stop: &AtomicBool) -> Result<Removed, Error> {
    let held = set.held.lock().take();
    let root = match held {
        Some(root) => Some(root),
        None => root::take_marked(&set.spec.root())?,
    };
    match root {
        Some(root) => remove_root(root, threads, stop),
        None => Err(Error::Unmarked { set: set.spec.name.clone(), path: set.spec.root(), fits: Ok(()) }),
    }
}

/// Removes the tree of a root, the marker, and the root if wmlrun created it.
fn remove_root(mut root: Root, threads: usize, stop: &AtomicBool) -> Result<Removed, Error> {
    let mut removed = Removed {
        set: root.set.clone(),
        path: root.path.clone(),
        adopted: root.marker.adopted,
        note: root.note.clone(),
        ..Removed::default()
    };
    if !removed.adopted {
        let scan = scan::scan(&root, stop);
        let done = scan.and_then(|scan| {
            (removed.files, removed.directories) = (scan.files, scan.dirs.len() as u64 - 1);
            root.announce_removal()?;
            remove_tree(&root, &scan, threads, stop, |_, _| ())
        });
        if let Err(e) = done {
            root.close();
            return Err(e);
        }
    }
    let (set, marker) = (root.set.clone(), root.path.join(MARKER));
    removed.root_removed = root.unmark().map_err(|e| Error::call(&set, "remove", &marker, e))?;
    Ok(removed)
}

/// Removes `dir` and its subdirectories (one level), as far as they are marked roots, and the roots that runs with `--below`
/// have made below `dir`. Other unmarked directories are not searched.
pub fn clean(dir: &Path, threads: usize, stop: &AtomicBool) -> Result<CleanReport, Error> {
    // A link of another user in a shared directory; other errors are those of the steps that follow.
    if let Err(e) = HeldDir::open(dir)
        && e.raw_os_error().is_none()
    {
        let set = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        return Err(Error::Link { set, path: dir.to_owned(), by_other: true });
    }
    // What is in a marked root is its tree. It is removed with the root.
    let inside = if is_marked(dir) { Vec::new() } else { directories_in(dir)? };
    let mut report = clean_roots(dir, |_| true, threads, stop)?;
    let mut left = MAX_SEARCHED;
    for below in inside {
        clean_below(&below, dir, 1, &mut left, threads, stop, &mut report);
    }
    report.searched = if left == 0 { MAX_SEARCHED } else { 0 };
    Ok(report)
}

/// Removes the roots inside a directory that runs with `--below` have made below `base`, which is `depth` levels higher. It
/// enters no link and no other file system, and examines `left` directories.
fn clean_below(
    dir: &Path,
    base: &Path,
    depth: usize,
    left: &mut usize,
    threads: usize,
    stop: &AtomicBool,
    report: &mut CleanReport,
) {
    // What is in a marked root is its tree.
    if is_marked(dir) || !is_inside(dir, base) {
        return;
    }
    let mut inside = directories_in(dir).unwrap_or_default();
    inside.sort_unstable();
    for place in inside {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        if !is_marked(&place) {
            clean_below(&place, base, depth + 1, left, threads, stop, report);
            continue;
        }
        match root::take_marked(&place) {
            Ok(Some(root)) if root.marker.below == Some(depth + 1) => {
                report.add(remove_root(root, threads, stop).map(Some));
            }
            Ok(root) => root.into_iter().for_each(Root::close),
            Err(Error::Call { errno: Errno::NOENT, .. }) => {}
            Err(e) => report.refused.push(e),
        }
    }
}

/// Like [`clean`], but only the roots that `is_own` accepts.
fn clean_roots(
    dir: &Path,
    is_own: impl Fn(&Path) -> bool,
    threads: usize,
    stop: &AtomicBool,
) -> Result<CleanReport, Error> {
    let mut report = CleanReport::default();
    let mut places = vec![dir.to_owned()];
    let mut below = directories_in(dir)?;
    below.sort_unstable();
    places.extend(below);
    for place in places.into_iter().filter(|place| is_own(place)) {
        // The path of `dir` itself may be a symbolic link, but links inside it are not followed.
        let place = if place == dir { std::fs::canonicalize(&place).unwrap_or(place) } else { place };
        report.add(match root::take_marked(&place) {
            Ok(Some(root)) => remove_root(root, threads, stop).map(Some),
            Ok(None) => clear_unfinished(place),
            // Removed meanwhile.
            Err(Error::Call { errno: Errno::NOENT, .. }) => Ok(None),
            // A directory without read permission may contain a tree, so the error is reported.
            Err(e) => Err(e),
        });
    }
    Ok(report)
}

/// Removes the incomplete marker of an unmarked root, and the root if it is empty and wmlrun created it. `None` if
/// there is no such marker.
fn clear_unfinished(path: PathBuf) -> Result<Option<Removed>, Error> {
    let Some((set, root_removed, has_others)) = root::clear_unfinished(&path)? else { return Ok(None) };
    // Whether a directory with files was about to be adopted is unknown: the marker does not exist yet.
    Ok(Some(Removed { set, path, root_removed, was_unfinished: true, has_others, ..Removed::default() }))
}

/// Removes the marked roots in `dir`, a directory that a run created for itself, and in each of `places` inside it.
///
/// The directories on the paths to the places were created for them, and are removed as far as they are empty. A place
/// that is not [inside](is_inside) `dir` is kept.
pub fn clean_places(dir: &Path, places: &BTreeSet<PathBuf>, threads: usize, stop: &AtomicBool) -> CleanReport {
    let mut report = CleanReport::default();
    let Ok(dir) = std::fs::canonicalize(dir) else { return report };
    let others = places.iter().filter_map(|place| std::fs::canonicalize(place).ok());
    for place in std::iter::once(dir.clone()).chain(others).filter(|place| is_inside(place, &dir)) {
        report.extend(clean_roots(&place, |root| is_inside(root, &dir), threads, stop));
        prune(&place, &dir);
    }
    report
}

/// Removes marked roots in `dir` at any depth, on the same file system. Like [`clean_places`], for unknown places.
pub fn clean_fresh(dir: &Path, threads: usize, stop: &AtomicBool) -> Result<CleanReport, Error> {
    let mut report = clean_roots(dir, |root| is_inside(root, dir), threads, stop)?;
    for below in directories_in(dir)? {
        // A root that could not be removed contains no other roots.
        if is_marked(&below) || !is_inside(&below, dir) {
            continue;
        }
        let more = clean_fresh(&below, threads, stop);
        if more.as_ref().is_ok_and(|more| !more.removed.is_empty()) {
            prune(&below, dir);
        }
        report.extend(more);
    }
    Ok(report)
}

/// True if a directory is `dir`, or is inside it on the same file system and the same mount. A path that leaves
/// `dir` through `..` or a symbolic link is not inside, although it begins with its name. What is mounted inside
/// belongs to others: it may have been there before, with their trees.
pub fn is_inside(path: &Path, dir: &Path) -> bool {
    let (Ok(path), Ok(dir)) = (std::fs::canonicalize(path), std::fs::canonicalize(dir)) else { return false };
    let Ok(below) = path.strip_prefix(&dir) else { return false };
    if below.as_os_str().is_empty() {
        return true;
    }
    let Ok(below) = CString::new(below.as_os_str().as_bytes()) else { return false };
    let Ok(top) = fd::open_path(&dir, AT_DIR, Mode::empty()).map(CloseOnDrop) else { return false };
    let device = fd::fstat(top.0).map(|stat| stat.device);
    device.and_then(|device| walk::open_dir(top.0, &below, AT_DIR, device)).map(fd::close).is_ok()
}

/// True if a directory contains a marker.
pub fn is_marked(dir: &Path) -> bool {
    dir.join(MARKER).is_file()
}

/// The largest number of directories that are searched for marked roots.
const MAX_SEARCHED: usize = 10_000;

/// Returns the subdirectories of `dir` on its file system that contain marked roots, which [`clean`] does not remove. It
/// examines ten thousand of their entries at most.
pub fn with_marked_roots(dir: &Path) -> Vec<PathBuf> {
    let Ok(dir) = std::fs::canonicalize(dir) else { return Vec::new() };
    let mut left = MAX_SEARCHED;
    let mut has_marked = |below: &PathBuf| {
        // The directory itself counts too.
        left = left.saturating_sub(1);
        if left == 0 || !is_inside(below, &dir) {
            return false;
        }
        let entries = reading::entries(below).unwrap_or_default();
        entries.iter().take(left).any(|entry| {
            left -= 1;
            entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_marked(&entry.path())
        })
    };
    let mut below = directories_in(&dir).unwrap_or_default();
    below.sort_unstable();
    below.retain(|below| has_marked(below));
    below
}

/// Removes an empty directory and its parents as far as they are empty, but not `up_to` or its parents.
fn prune(dir: &Path, up_to: &Path) {
    for parent in dir.ancestors().take_while(|parent| *parent != up_to) {
        // Only an empty directory is removed.
        if !HeldDir::of_entry(parent).is_ok_and(|(above, name)| above.remove_empty_dir(&name)) {
            return;
        }
    }
}

impl CleanReport {
    /// Adds the result for a root; `None` if there was none.
    fn add(&mut self, done: Result<Option<Removed>, Error>) {
        match done {
            Ok(removed) => self.removed.extend(removed),
            Err(e) => self.refused.push(e),
        }
    }

    /// Adds the results of another call.
    fn extend(&mut self, more: Result<Self, Error>) {
        match more {
            Ok(more) => {
                self.removed.extend(more.removed);
                self.refused.extend(more.refused);
            }
            Err(e) => self.refused.push(e),
        }
    }
}

/// Returns the subdirectories of a directory, without symbolic links.
fn directories_in(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = reading::entries(dir)
        .map_err(|e| Error::call("", "read", dir, Errno::from_io_error(&e).unwrap_or(Errno::IO)))?;
    Ok(entries.iter().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(std::fs::DirEntry::path).collect())
}
