//! The open directories of one file set in one WML process.
//!
//! Each WML process has a separate descriptor table, and therefore its own open directories. If the descriptor limit of
//! the process permits, all directories are opened on demand into one table that its threads share. They are not closed
//! before the end, so no reference counting is needed. Otherwise each thread has a direct-mapped cache of a few hundred
//! open directories.
//!
//! All functions must be called in threads of the process: in another descriptor table a descriptor refers to another
//! file.

use super::Fileset;
use super::error::Error;
use super::root::DIR_MODE;
use super::walk::{self, AT_DIR, CloseOnDrop};
use crate::fileset::FilesetSpec;
use crate::random::mix;
use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wml_os::map::Integers;
use wml_os::{Errno, Fd, NONE, fd};
use wml_os::{Mode, OFlags};

/// The directories of a file set, in one WML process.
#[derive(Debug)]
pub struct Dirs {
    set: Arc<Fileset>,
    root: Fd,
    /// Device number of the root.
    device: u64,
    /// Files that were checked recently.
    checked_files: CheckedFiles,
    /// For each directory its descriptor plus 1, or 0 if it is not open. `None` when threads use [`ThreadDirs`].
    table: Option<Integers>,
}

/// A thread's cache of open directories of one set, for sets with too many directories for the shared table.
#[derive(Debug)]
pub struct ThreadDirs {
    /// Directory and descriptor; [`NONE`] in an unused slot.
    slots: Vec<(u64, Fd)>,
}

/// A lossy set of the files that were checked to be part of the file set in the current period of time.
///
/// A file is checked once per period, or more often if many other files are used in between. The memory is bounded:
/// large sets need no more.
#[derive(Debug)]
pub(crate) struct CheckedFiles {
    /// Entry of the last checked file for each remainder of the file number; 0 if there is none. See [`Self::entry`].
    table: Integers,
    mask: u64,
}

/// Maximum number of files in [`CheckedFiles`]; a power of two.
const MAX_CHECKED: u64 = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 14;

impl CheckedFiles {
    /// Creates an empty set for a file set of `files` files.
    fn new(files: u64) -> Result<Self, Errno> {
        let slots = files.clamp(1, MAX_CHECKED).next_power_of_two();
        Ok(Self { table: Integers::new(slots as usize)?, mask: slots - 1 })
    }

    /// Returns the table entry of a file in a period: 18 bits of the file number, a bit that is always set, and 13 bits
    /// of the period.
    #[inline]
    fn entry(file: u64, period: u64) -> i32 {
        ((file >> SLOT_BITS << SLOT_BITS) as u32 | 1 << 13 | period as u32 & 0x1fff).cast_signed()
    }

    #[inline]
    pub(crate) fn contains(&self, file: u64, period: u64) -> bool {
        self.table[(file & self.mask) as usize].load(Ordering::Relaxed) == Self::entry(file, period)
    }

    /// Records that the file was checked or created in this period.
    #[inline]
    pub(crate) fn insert(&self, file: u64, period: u64) {
        self.table[(file & self.mask) as usize].store(Self::entry(file, period), Ordering::Relaxed);
    }
}

/// Opens the root of a set without following a symbolic link. The caller must close the descriptor.
pub(crate) fn open_root(spec: &FilesetSpec) -> Result<Fd, Errno> {
    let (path, name) = spec.root_location().ok_or(Errno::INVAL)?;
    let parent = fd::open_path(&path, AT_DIR, Mode::empty())?;
    let root = CString::new(name).map_err(|_| Errno::INVAL).and_then(|name| {
        // The root itself may be a mount point, but no directory below it.
        fd::open_at(parent, &name, AT_DIR, Mode::empty())
    });
    fd::close(parent);
    root
}

impl Dirs {
    /// Opens the roots of the sets of a process. `budget` is the number of descriptors that the process may use for
    /// directories. The shared tables are used if the directories of all sets fit into it.
    pub(crate) fn open_all(sets: &[Arc<Fileset>], budget: u64) -> Result<Vec<Self>, Error> {
        let wanted: u64 = sets.iter().map(|set| set.tree.n_dirs()).sum();
        let mut all: Vec<Self> = Vec::with_capacity(sets.len());
        for set in sets {
            match Self::open(set, wanted <= budget) {
                Ok(dirs) => all.push(dirs),
                Err(e) => {
                    all.iter().for_each(Self::close_all);
                    return Err(Error::call(&set.spec.name, "open", &set.spec.root(), e));
                }
            }
        }
        Ok(all)
    }

    /// Opens the root of one set. `shared` selects the shared table.
    fn open(set: &Arc<Fileset>, shared: bool) -> Result<Self, Errno> {
        let table = if shared { Some(Integers::new(set.tree.n_dirs() as usize)?) } else { None };
        let root = open_root(&set.spec)?;
        let device = set.is_root(root).inspect_err(|_| fd::close(root))?;
        let checked_files = CheckedFiles::new(set.tree.n_files()).inspect_err(|_| fd::close(root))?;
        Ok(Self { root, device, checked_files, set: Arc::clone(set), table })
    }

    #[inline]
    pub fn root(&self) -> Fd {
        self.root
    }

    /// Returns the file set.
    pub fn set(&self) -> &Arc<Fileset> {
        &self.set
    }

    /// Returns the files that any thread of the process has checked recently.
    #[inline]
    pub(crate) fn checked_files(&self) -> &CheckedFiles {
        &self.checked_files
    }

    /// True if the shared table is used. Otherwise each thread needs [`ThreadDirs`] with several slots.
    pub fn is_shared(&self) -> bool {
        self.table.is_some()
    }

    /// Returns a descriptor of directory `d` for `*at` calls. It can't be listed; open `.` relative to it for that.
    ///
    /// The descriptor is owned by the shared table, or by `own`, where it is valid until the next call with `own`.
    #[inline]
    pub fn dir(&self, d: u64, own: &mut ThreadDirs) -> Result<Fd, Errno> {
        if d == 0 {
            return Ok(self.root);
        }
        match &self.table {
            Some(table) => match table[d as usize].load(Ordering::Acquire) {
                0 => self.open_shared(d, table),
                fd => Ok(fd - 1),
            },
            None => self.cached_dir(d, own, self.set.spec.late_dirs),
        }
    }

    /// Returns a descriptor of directory `d` as [`Self::dir`] does, from the cache of the thread. Never creates the
    /// directory.
    pub(super) fn existing_dir(&self, d: u64, own: &mut ThreadDirs) -> Result<Fd, Errno> {
        if d == 0 { Ok(self.root) } else { self.cached_dir(d, own, false) }
    }

    /// Opens a directory into the shared table. If another thread opens it first, closes this descriptor and returns
    /// the other one.
    #[cold]
    fn open_shared(&self, d: u64, table: &Integers) -> Result<Fd, Errno> {
        let parent = self.set.tree.parent(d);
        let parent_fd = if parent == 0 { self.root } else { table[parent as usize].load(Ordering::Acquire) - 1 };
        let opened = self.open_or_create(d, parent_fd, self.set.spec.late_dirs)?;
        match table[d as usize].compare_exchange(0, opened + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(opened),
            Err(other) => {
                fd::close(opened);
                Ok(other - 1)
            }
        }
    }

    /// Returns a directory from the cache of the thread; opens it first if needed. With `create`, creates it if it does
    /// not exist.
    fn cached_dir(&self, d: u64, own: &mut ThreadDirs, create: bool) -> Result<Fd, Errno> {
        let at = own.slot(d);
        if let Some(fd) = own.get(at, d) {
            return Ok(fd);
        }
        let parent = self.set.tree.parent(d);
        let parent_fd = if parent == 0 { self.root } else { own.get(own.slot(parent), parent).unwrap_or(NONE) };
        let opened = self.open_or_create(d, parent_fd, create)?;
        own.put(at, d, opened);
        Ok(opened)
    }

    /// Opens directory `d`. Creates it first if it does not exist and `create` is set.
    fn open_or_create(&self, d: u64, parent_fd: Fd, create: bool) -> Result<Fd, Errno> {
        match self.open_existing(d, parent_fd) {
            Err(Errno::NOENT) if create && parent_fd >= 0 => {
                match self.create_in(parent_fd, self.set.tree.dir_name(d).as_c()) {
                    // The parent itself was removed.
                    Err(Errno::NOENT) => self.create(d),
                    done => done,
                }
            }
            Err(Errno::NOENT) if create => self.create(d),
            other => other,
        }
    }

    /// Creates a directory in an open one, unless another thread has, and opens it.
    fn create_in(&self, parent: Fd, name: &CStr) -> Result<Fd, Errno> {
        match fd::mkdir_at(parent, name, DIR_MODE) {
            Ok(()) | Err(Errno::EXIST) => walk::open_dir(parent, name, AT_DIR, self.device),
            Err(errno) => Err(errno),
        }
    }

    /// Creates a directory with its missing parents, and opens it. Other threads may create the same directories
    /// concurrently.
    #[cold]
    fn create(&self, d: u64) -> Result<Fd, Errno> {
        let tree = &self.set.tree;
        let mut at: Option<CloseOnDrop> = None;
        for name in tree.dir_names(d) {
            let parent = at.as_ref().map_or(self.root, |at| at.0);
            let opened = match walk::open_dir(parent, name.as_c(), AT_DIR, self.device) {
                Err(Errno::NOENT) => self.create_in(parent, name.as_c()),
                other => other,
            };
            at = Some(CloseOnDrop(opened?));
        }
        // `d` is not the root, so the path has at least one component.
        at.map(CloseOnDrop::keep).ok_or(Errno::NOENT)
    }

    /// Opens the existing directory `d`: relative to its parent if `parent_fd` is open, else relative to the root.
    fn open_existing(&self, d: u64, parent_fd: Fd) -> Result<Fd, Errno> {
        let tree = &self.set.tree;
        if parent_fd >= 0 {
            return walk::open_dir(parent_fd, tree.dir_name(d).as_c(), AT_DIR, self.device);
        }
        walk::open_chain(self.root, &tree.dir_names(d), AT_DIR, self.device)
    }

    /// Closes the root and the directories in the shared table. Threads must close their [`ThreadDirs`] before.
    pub(crate) fn close_all(&self) {
        if let Some(table) = &self.table {
            for entry in table.iter() {
                let fd = entry.swap(0, Ordering::AcqRel) - 1;
                if fd >= 0 {
                    fd::close(fd);
                }
            }
        }
        fd::close(self.root);
    }
}

impl ThreadDirs {
    /// Creates a cache with this number of slots, at least one. It is not used together with the shared table.
    pub fn new(slots: usize) -> Self {
        Self { slots: vec![(0, NONE); slots.max(1)] }
    }

    fn slot(&self, d: u64) -> usize {
        (mix(0, d) % self.slots.len() as u64) as usize
    }

    /// Returns the descriptor in a slot if it is that of directory `d`.
    fn get(&self, at: usize, d: u64) -> Option<Fd> {
        let (dir, fd) = self.slots[at];
        (dir == d && fd != NONE).then_some(fd)
    }

    /// Stores a descriptor in a slot, and closes the previous one.
    fn put(&mut self, at: usize, d: u64, fd: Fd) {
        let (_, old) = std::mem::replace(&mut self.slots[at], (d, fd));
        if old != NONE {
            fd::close(old);
        }
    }

    /// Closes all cached directories.
    pub(crate) fn close_all(&mut self) {
        for (_, fd) in &mut self.slots {
            let old = std::mem::replace(fd, NONE);
            if old != NONE {
                fd::close(old);
            }
        }
    }
}

/// Returns the access mode with which files of a set are opened, according to `readonly` and `writeonly`.
pub fn access(spec: &FilesetSpec) -> OFlags {
    match (spec.readonly, spec.writeonly) {
        (true, _) => OFlags::RDONLY,
        (_, true) => OFlags::WRONLY,
        _ => OFlags::RDWR,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{CheckedFiles, MAX_CHECKED};

    #[test]
    fn a_checked_file_is_contained_in_its_period_only() {
        for files in [1, 5, MAX_CHECKED, 3 * MAX_CHECKED, u64::from(u32::MAX)] {
            let checked = CheckedFiles::new(files).unwrap();
            for (period, file) in
                [0, files / 3, files - 1].into_iter().enumerate().map(|(n, file)| (7 + n as u64, file))
            {
                assert!(!checked.contains(file, 0) && !checked.contains(file, period));
                checked.insert(file, period);
                assert!(checked.contains(file, period) && !checked.contains(file, period + 1));
                // Another file in the same slot is not confused with it.
                let other = file + MAX_CHECKED;
                assert!(!checked.contains(other, period) || other >= files);
            }
        }
    }
}
