//! Scanning a tree on the disk: detects files that no file set has, and determines the shape of the tree.
//!
//! A file set has 8-digit numbers as names, only directories in its root, and in every directory below either files or
//! directories. The marker determines which numbers ([`KnownTree`]). Everything else is foreign. Scanning does not
//! write; it opens only directories, and none through a symbolic link or on another mount.

use super::error::{Error, Foreign};
use super::foreign::is_own_link;
use super::known::{self, KnownTree};
use super::marker::{MARKER, UNFINISHED};
use super::root::{self, Root};
use super::walk::{self, READ_DIR};
use crate::fileset::FilesetSpec;
use crate::fileset::shape::FoundShape;
use crate::random::Quantity;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use wml_os::name::Name;
use wml_os::{Errno, Fd, fd};
use wml_os::{FileType, Mode, OFlags};

/// Size of the buffer for directory entries, in bytes.
pub(super) const LIST_BUFFER: usize = 64 * 1024;
/// Maximum number of directory levels in a file set.
const MAX_LEVELS: usize = 1000;

/// The contents of a root: directories in depth-first order with siblings sorted by number, the root first.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) dirs: Vec<Dir>,
    /// Number of files.
    pub(super) files: u64,
    levels: u32,
    /// The serial numbers of all files, directory after directory, if the tree is one to adopt.
    serials: Vec<u32>,
    /// The names that the tree may contain.
    known: KnownTree,
}

/// A directory found by the scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dir {
    pub(super) parent: u32,
    pub(super) serial: u32,
    /// The directory in [`Scan::known`].
    known: known::KnownDir,
    files: u32,
    /// Largest serial number of its files; 0 without files.
    last_file: u32,
    subdirs: u32,
}

impl Dir {
    /// Returns the number of files in the directory.
    pub(super) fn files(&self) -> u32 {
        self.files
    }
}

/// A directory whose subdirectories have not all been scanned.
struct OpenDir {
    fd: Fd,
    dir: u32,
    /// Serial numbers of the remaining subdirectories, in descending order, so that the next one can be popped.
    subdirs: Vec<u32>,
}

/// Scans the tree of a marked root. Returns an error at the first file or directory that its marker does not allow.
pub(super) fn scan(root: &Root, stop: &AtomicBool) -> Result<Scan, Error> {
    // A listing does not show whether a file is a mount point. Its removal would fail, but only after other files have
    // been removed.
    if let Some(path) = wml_os::device::mounted_below(&root.path) {
        return Err(Error::Foreign { set: root.set.clone(), path, what: Foreign::Mount });
    }
    scan_for(&root.set, &root.path, root.fd, root.known(), stop)
}

/// Scans the tree below an open root.
fn scan_for(set: &str, path: &Path, root: Fd, known: KnownTree, stop: &AtomicBool) -> Result<Scan, Error> {
    let call = |call, e| Error::call(set, call, path, e);
    let device = fd::fstat(root).map_err(|e| call("stat", e))?.device;
    let scan = Scan { dirs: Vec::new(), files: 0, levels: 0, serials: Vec::new(), known };
    let mut scanner = Scanner { set, path, device, scan, buf: vec![0; LIST_BUFFER] };
    let mut open: Vec<OpenDir> = Vec::new();
    let top = fd::open_at(root, c".", READ_DIR, Mode::empty()).map_err(|e| call("open", e))?;
    let known = scanner.scan.known.root();
    let done = scanner.enter(&mut open, top, 0, 0, known).and_then(|()| scanner.descend(&mut open, stop));
    for dir in open {
        fd::close(dir.fd);
    }
    done.map(|()| scanner.scan)
}

/// The state of a scan.
struct Scanner<'a> {
    set: &'a str,
    path: &'a Path,
    device: u64,
    scan: Scan,
    buf: Vec<u8>,
}

impl Scanner<'_> {
    /// Scans the subdirectories of the directories on the stack.
    fn descend(&mut self, open: &mut Vec<OpenDir>, stop: &AtomicBool) -> Result<(), Error> {
        while let Some(top) = open.last_mut() {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped { set: self.set.to_owned() });
            }
            let (fd, dir) = (top.fd, top.dir);
            let Some(serial) = top.subdirs.pop() else {
                fd::close(fd);
                open.pop();
                continue;
            };
            let name = Name::new(u64::from(serial));
            let known = self.scan.known.dir(self.scan.dirs[dir as usize].known, serial);
            let Some(known) = known.filter(|_| open.len() <= MAX_LEVELS) else {
                return Err(self.foreign(dir, name.digits(), Foreign::Number));
            };
            match walk::open_dir(fd, name.as_c(), READ_DIR, self.device) {
                Ok(fd) => self.enter(open, fd, dir, serial, known)?,
                Err(Errno::XDEV) => return Err(self.foreign(dir, name.digits(), Foreign::Mount)),
                Err(Errno::LOOP | Errno::NOTDIR) => return Err(self.foreign(dir, name.digits(), Foreign::Link)),
                Err(e) => return Err(Error::call(self.set, "open", &self.path_in(dir, name.digits()), e)),
            }
        }
        Ok(())
    }

    /// Scans the directory with the number `serial` in `parent`, and pushes it onto the stack. Closes it on an error.
    fn enter(
        &mut self,
        open: &mut Vec<OpenDir>,
        fd: Fd,
        parent: u32,
        serial: u32,
        known: known::KnownDir,
    ) -> Result<(), Error> {
        let dir = self.scan.dirs.len() as u32;
        self.scan.dirs.push(Dir { parent, serial, known, files: 0, last_file: 0, subdirs: 0 });
        self.scan.levels = self.scan.levels.max(open.len() as u32);
        match self.read(fd, dir) {
            Ok(mut subdirs) => {
                subdirs.sort_unstable_by(|a, b| b.cmp(a));
                open.push(OpenDir { fd, dir, subdirs });
                Ok(())
            }
            Err(e) => {
                fd::close(fd);
                Err(e)
            }
        }
    }

    /// Reads the entries of a directory: counts its files, and returns the serial numbers of its subdirectories.
    fn read(&mut self, fd: Fd, dir: u32) -> Result<Vec<u32>, Error> {
        let mut subdirs = Vec::new();
        let (mut files, mut last_file) = (0, 0);
        let mut wrong = None;
        let is_any = matches!(self.scan.known, KnownTree::Any);
        let mut serials = std::mem::take(&mut self.scan.serials);
        let mut buf = std::mem::take(&mut self.buf);
        let listed = fd::list_dir(fd, &mut buf, |name, kind| {
            match classify(fd, dir == 0, name, kind) {
                Ok(ScanItem::Marker) => {}
                Ok(ScanItem::File(serial)) => {
                    // A file in the wrong kind of directory is reported as such below.
                    let mixed = dir == 0 || !subdirs.is_empty();
                    if !mixed && !self.scan.has_file(dir, serial) {
                        wrong = Some((name.to_bytes().to_vec(), Foreign::Number));
                    }
                    files += 1;
                    last_file = last_file.max(serial);
                    if is_any {
                        serials.push(serial);
                    }
                }
                Ok(ScanItem::Dir(serial)) => subdirs.push(serial),
                Err(what) => wrong = Some((name.to_bytes().to_vec(), what)),
            }
            if files > 0 && (dir == 0 || !subdirs.is_empty()) && wrong.is_none() {
                wrong = Some((name.to_bytes().to_vec(), Foreign::Mixed));
            }
            wrong.is_none()
        });
        (self.buf, self.scan.serials) = (buf, serials);
        listed.map_err(|e| Error::call(self.set, "read", &self.dir_path(dir), e))?;
        if let Some((name, what)) = wrong {
            return Err(self.foreign(dir, &name, what));
        }
        let found = &mut self.scan.dirs[dir as usize];
        (found.files, found.last_file, found.subdirs) = (files, last_file, subdirs.len() as u32);
        self.scan.files += u64::from(files);
        Ok(subdirs)
    }

    fn foreign(&self, dir: u32, name: &[u8], what: Foreign) -> Error {
        Error::Foreign { set: self.set.to_owned(), path: self.path_in(dir, name), what }
    }

    fn path_in(&self, dir: u32, name: &[u8]) -> PathBuf {
        self.dir_path(dir).join(OsStr::from_bytes(name))
    }

    fn dir_path(&self, dir: u32) -> PathBuf {
        let mut path = self.path.to_owned();
        for name in self.scan.chain(dir) {
            path.push(OsStr::from_bytes(name.digits()));
        }
        path
    }
}

/// The kind of a directory entry of a file set, with its serial number.
pub(super) enum ScanItem {
    Marker,
    File(u32),
    Dir(u32),
}

/// Returns the kind of a directory entry. Returns an error when no file set contains such an entry.
pub(super) fn classify(dir: Fd, is_root: bool, name: &CStr, kind: FileType) -> Result<ScanItem, Foreign> {
    let kind = match kind {
        FileType::Unknown => fd::stat_at(dir, name).map_or(FileType::Unknown, |stat| stat.kind),
        kind => kind,
    };
    let markers = [MARKER.as_bytes(), UNFINISHED.as_bytes()];
    if is_root && markers.contains(&name.to_bytes()) && kind == FileType::RegularFile {
        return Ok(ScanItem::Marker);
    }
    match (kind, Name::parse(name.to_bytes()).and_then(|n| u32::try_from(n).ok())) {
        (FileType::Symlink, Some(serial)) if is_own_link(dir, name) => Ok(ScanItem::File(serial)),
        (FileType::Symlink, _) => Err(Foreign::Link),
        (FileType::RegularFile, Some(serial)) => Ok(ScanItem::File(serial)),
        (FileType::Directory, Some(serial)) => Ok(ScanItem::Dir(serial)),
        (FileType::RegularFile | FileType::Directory, None) => Err(Foreign::Name),
        _ => Err(Foreign::of_kind(kind).unwrap_or(Foreign::Name)),
    }
}

impl Scan {
    /// True if the tree may contain a file with this serial number in a directory.
    pub(super) fn has_file(&self, dir: u32, serial: u32) -> bool {
        self.known.file(self.dirs[dir as usize].known, serial)
    }

    /// Returns the names on the path from the root to a directory.
    pub(super) fn chain(&self, dir: u32) -> Vec<Name> {
        let at = |dir: u32| self.dirs[dir as usize];
        let below_root = |dir: u32| (dir != 0).then_some(dir);
        let up = std::iter::successors(below_root(dir), |&dir| below_root(at(dir).parent));
        let mut names: Vec<Name> = up.map(|dir| Name::new(u64::from(at(dir).serial))).collect();
        names.reverse();
        names
    }

    /// Returns the shape of the tree, if the set could have it: serial numbers from 1 without gaps, no empty
    /// directories except the leaf directories, and the right numbers of files and leaf directories. A set of files that
    /// is not preallocated as a whole may lack some of them. Otherwise returns the directory that differs, and a
    /// description.
    fn shape(&self, spec: &FilesetSpec) -> Result<FoundShape, (u32, String)> {
        let mut found = FoundShape { levels: self.levels, ..FoundShape::default() };
        let mut number = vec![0_u32; self.dirs.len()];
        // In a shape, directories for files precede directories for leaf directories; each group is in the order of the
        // scan.
        let may_lack_files = spec.prealloc < 100 && spec.leafdirs == 0;
        let empty = |dir: &Dir| !may_lack_files && dir.files == 0 && dir.subdirs == 0;
        let mut leafdirs_in = vec![0_u32; self.dirs.len()];
        let mut last_serial = vec![0_u32; self.dirs.len()];
        for (at, dir) in self.dirs.iter().enumerate().skip(1) {
            let last = &mut last_serial[dir.parent as usize];
            *last += 1;
            if dir.serial != *last {
                return Err((dir.parent, format!("has no directory {}", serial_text(*last))));
            }
            if !may_lack_files && dir.files != dir.last_file {
                return Err((
                    at as u32,
                    format!("has {} files, but numbers up to {}", dir.files, serial_text(dir.last_file)),
                ));
            }
            leafdirs_in[dir.parent as usize] += u32::from(empty(dir));
        }
        for (at, dir) in self.dirs.iter().enumerate() {
            if leafdirs_in[at] > 0 && (at == 0 || leafdirs_in[at] != dir.subdirs) {
                return Err((at as u32, "contains empty directories, which no file set has there".into()));
            }
        }
        let names = if may_lack_files { self.names(spec)? } else { self.dirs.iter().map(|dir| dir.files).collect() };
        // A directory belongs to the second group if the first entry in it, at any depth, is a leaf directory.
        let mut in_leaf_group = vec![false; self.dirs.len()];
        for at in (1..self.dirs.len()).rev() {
            in_leaf_group[at] |= leafdirs_in[at] > 0;
            in_leaf_group[self.dirs[at].parent as usize] = in_leaf_group[at];
        }
        for leaf_group in [false, true] {
            for (at, dir) in self.dirs.iter().enumerate() {
                if (at == 0 && leaf_group) || (at > 0 && (empty(dir) || in_leaf_group[at] != leaf_group)) {
                    continue;
                }
                number[at] = found.parent.len() as u32;
                if at > 0 && dir.parent > 0 && in_leaf_group[dir.parent as usize] != leaf_group {
                    return Err((at as u32, "contains both files and leaf directories".into()));
                }
                found.parent.push(number[dir.parent as usize]);
                found.serial.push(dir.serial);
                if leaf_group {
                    found.first_leaf.push(found.leafdirs);
                    found.leafdirs += leafdirs_in[at];
                } else {
                    found.first_file.push(found.files);
                    found.files += names[at];
                }
            }
        }
        if u64::from(found.files) != spec.entries || u64::from(found.leafdirs) != spec.leafdirs {
            let (f, l) = (found.files, found.leafdirs);
            return Err((
                0,
                format!(
                    "has {f} files and {l} leaf directories, but the set has {} and {}",
                    spec.entries, spec.leafdirs
                ),
            ));
        }
        found.present = (self.files < spec.entries).then(|| self.present(&found));
        Ok(found)
    }

    /// Returns the number of files that each directory can have, of a tree that may lack files. What lies behind the last
    /// file of a directory can't be seen: with a constant width each directory is filled before the next, as Filebench
    /// does, and with a random one the missing files are divided evenly.
    fn names(&self, spec: &FilesetSpec) -> Result<Vec<u32>, (u32, String)> {
        let mut names: Vec<u32> = self.dirs.iter().map(|dir| dir.last_file).collect();
        let holders: Vec<usize> = (1..self.dirs.len()).filter(|at| self.dirs[*at].subdirs == 0).collect();
        let known = names.iter().map(|last| u64::from(*last)).sum();
        let n = holders.len() as u64;
        let Some(mut missing) = spec.entries.checked_sub(known).filter(|missing| *missing == 0 || n > 0) else {
            return Err((
                0,
                format!("has {n} directories with numbers up to {known} files, but the set has {}", spec.entries),
            ));
        };
        let width = match spec.dirwidth {
            Some(Quantity::Const(width)) if spec.width_gamma == 0.0 && width > 0 => Some(width),
            _ => None,
        };
        for (k, at) in (0..).zip(holders) {
            let last = u64::from(names[at]);
            let more = match width {
                Some(width) if last > width => {
                    let why = format!("has a file {}, but the set has a width of {width}", serial_text(names[at]));
                    return Err((at as u32, why));
                }
                Some(width) => missing.min(width - last),
                None => missing.div_ceil(n - k),
            };
            names[at] += more as u32;
            missing -= more;
        }
        match missing {
            0 => Ok(names),
            _ => Err((0, format!("has no room for {missing} of the {} files of the set", spec.entries))),
        }
    }

    /// Returns which files of a tree exist, one bit each. `shape`: its only group has the directories in the order of the
    /// scan.
    fn present(&self, shape: &FoundShape) -> Box<[u64]> {
        let mut bits = vec![0_u64; shape.files.div_ceil(64) as usize];
        let mut serials = self.serials.iter();
        for (dir, first) in self.dirs.iter().zip(&shape.first_file) {
            for serial in serials.by_ref().take(dir.files as usize) {
                let i = first + serial - 1;
                bits[(i / 64) as usize] |= 1 << (i % 64);
            }
        }
        bits.into()
    }
}

/// Returns the name of a serial number.
fn serial_text(serial: u32) -> String {
    String::from_utf8_lossy(Name::new(u64::from(serial)).digits()).into_owned()
}

/// True if an unmarked tree could be adopted, or why not.
pub(super) fn fits(spec: &FilesetSpec, stop: &AtomicBool) -> Result<(), String> {
    match adoptable(spec, true, stop) {
        Err(Error::Adopt { path, why, .. }) => Err(format!("`{}` {why}", path.display())),
        // What else is wrong shows when it is adopted.
        _ => Ok(()),
    }
}

/// Returns the shape of the existing tree if it was adopted before, or if `adopt` is set and it can be adopted. `None`
/// when there is no such tree.
///
/// Returns [`Error::Adopt`] when the tree does not match the set, [`Error::InUse`] or [`Error::Call`] when it can't be
/// examined, and [`Error::Stopped`] when `stop` is set meanwhile.
pub(super) fn adoptable(spec: &FilesetSpec, adopt: bool, stop: &AtomicBool) -> Result<Option<FoundShape>, Error> {
    // A root that does not exist will be created by `take`: there is nothing to adopt.
    if spec.root_location().is_none() || fd::lstat(&spec.root()).is_err() {
        return Ok(None);
    }
    let read = |fd: Fd, path: &Path| {
        let wrong = |path: PathBuf, why: String| Error::Adopt { set: spec.name.clone(), path, why };
        let scan = scan_for(&spec.name, path, fd, KnownTree::Any, stop).map_err(|e| match e {
            Error::Foreign { path, what, .. } => wrong(path, format!("is not part of a file set: {what}")),
            e => e,
        })?;
        let path_of =
            |dir| scan.chain(dir).iter().fold(path.to_owned(), |at, name| at.join(OsStr::from_bytes(name.digits())));
        scan.shape(spec).map_err(|(dir, why)| wrong(path_of(dir), why))
    };
    match root::take_readable(&spec.root()) {
        Ok(Some(root)) => {
            let found = if root.marker.adopted { read(root.fd, &root.path).map(Some) } else { Ok(None) };
            root.close();
            found
        }
        Ok(None) if adopt => {
            let path = spec.root();
            let fd = fd::open_path(&path, READ_DIR | OFlags::NOFOLLOW, Mode::empty())
                .map_err(|e| Error::call(&spec.name, "open", &path, e))?;
            let _closing = walk::CloseOnDrop(fd);
            if root::is_empty(fd).map_err(|e| Error::call(&spec.name, "read", &path, e))? {
                return Ok(None);
            }
            read(fd, &path).map(Some)
        }
        // The root was removed meanwhile.
        Ok(None) | Err(Error::Call { errno: Errno::NOENT, .. }) => Ok(None),
        // Whether the tree is adopted is unknown. If the root becomes free before it is prepared, the set would differ
        // from the tree.
        Err(Error::InUse { path, .. }) => Err(Error::InUse { set: spec.name.clone(), path }),
        Err(Error::Call { path, call, errno, free, .. }) => {
            Err(Error::Call { set: spec.name.clone(), path, call, errno, free })
        }
        // Other problems of the root are reported when it is prepared.
        Err(_) => Ok(None),
    }
}
