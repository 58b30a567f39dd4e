//! The open directories of one file set in one WML process.
//!
//! A WML process has a descriptor table of its own, so each keeps its own directories. If all directories fit into what the
//! process may have open, they are in one table that its threads share and that fills as they are needed; nothing is ever
//! closed before the end, so nobody has to hold on to anything. Else each thread keeps a few hundred of its own, one place for
//! each, the last one wins.
//!
//! Everything must be called in the process' own threads: a descriptor means something else in any other table.

use super::Fileset;
use super::error::Error;
use super::root::DIR_MODE;
use super::walk::{self, Closing, PLACE};
use crate::fileset::FilesetSpec;
use crate::os::map::Map;
use crate::os::{Errno, Fd, NONE, fd};
use crate::os::{Mode, OFlags};
use crate::random::mix;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The directories of a file set, in one WML process.
#[derive(Debug)]
pub struct Dirs {
    set: Arc<Fileset>,
    root: Fd,
    /// The device that it lies on.
    device: u64,
    /// The files that were looked at last.
    looked: Looked,
    /// For every directory its descriptor plus 1, or 0. `None`: threads keep their own.
    table: Option<Map>,
}

/// A thread's own directories of one set, for sets that are too large for the table.
#[derive(Debug)]
pub struct ThreadDirs {
    /// Directory and descriptor; [`NONE`] for an unused place.
    places: Vec<(u64, Fd)>,
}

/// Which files of a set were seen to be its own in the present period of time: a file is looked at once a period, or more often
/// where many others come between. Takes no more memory for large sets.
#[derive(Debug)]
pub struct Looked {
    /// For each remainder of a file's number the rest of that number and the period; 0 for none.
    table: Map,
    mask: u64,
}

/// Files that are remembered at most; a power of two.
const REMEMBERED: u64 = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 14;

impl Looked {
    fn new(files: u64) -> Result<Self, Errno> {
        let places = files.clamp(1, REMEMBERED).next_power_of_two();
        Ok(Self { table: Map::new(places as usize * 4)?, mask: places - 1 })
    }

    /// What stands at a file's place in a period: 18 bits of the number, a bit that is always set, 13 bits of the period.
    #[inline]
    fn entry(file: u64, period: u64) -> i32 {
        ((file >> PLACE_BITS << PLACE_BITS) as u32 | 1 << 13 | period as u32 & 0x1fff).cast_signed()
    }

    /// Whether the file was looked at in this period.
    #[inline]
    pub fn has(&self, file: u64, period: u64) -> bool {
        self.table.ints()[(file & self.mask) as usize].load(Ordering::Relaxed) == Self::entry(file, period)
    }

    /// The file was looked at, or made, in this period.
    #[inline]
    pub fn note(&self, file: u64, period: u64) {
        self.table.ints()[(file & self.mask) as usize].store(Self::entry(file, period), Ordering::Relaxed);
    }
}

/// Opens the root of a set without following a link; the caller closes it.
pub fn open_root(spec: &FilesetSpec) -> Result<Fd, Errno> {
    let (path, name) = spec.place().ok_or(Errno::INVAL)?;
    let above = fd::open_path(&path, PLACE, Mode::empty())?;
    let root = CString::new(name).map_err(|_| Errno::INVAL).and_then(|name| {
        // The root itself may be a mount point: only what is below must not be.
        fd::open_at(above, &name, PLACE, Mode::empty())
    });
    fd::close(above);
    root
}

impl Dirs {
    /// Opens the roots of a process' sets. `budget` is the number of descriptors that may be spent on directories by the
    /// process: with the table if the directories of all sets fit into it.
    pub fn open_all(sets: &[Arc<Fileset>], budget: u64) -> Result<Vec<Self>, Error> {
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

    fn open(set: &Arc<Fileset>, shared: bool) -> Result<Self, Errno> {
        let table = if shared { Some(Map::new(set.tree.n_dirs() as usize * 4)?) } else { None };
        let root = open_root(&set.spec)?;
        let device = set.is_root(root).inspect_err(|_| fd::close(root))?;
        let looked = Looked::new(set.tree.n_files()).inspect_err(|_| fd::close(root))?;
        Ok(Self { root, device, looked, set: Arc::clone(set), table })
    }

    /// The root.
    #[inline]
    pub fn root(&self) -> Fd {
        self.root
    }

    /// The set that these are of.
    pub fn set(&self) -> &Arc<Fileset> {
        &self.set
    }

    /// The files that were looked at last, by all threads of the process.
    #[inline]
    pub fn looked(&self) -> &Looked {
        &self.looked
    }

    /// Whether threads need a [`ThreadDirs`] of more than no places.
    pub fn is_shared(&self) -> bool {
        self.table.is_some()
    }

    /// A descriptor of directory `d`, good for calls that name something in it (it can't be read: open `.` in it for that).
    /// It belongs to the table, or to `own` until the next call with that.
    #[inline]
    pub fn dir(&self, d: u64, own: &mut ThreadDirs) -> Result<Fd, Errno> {
        if d == 0 {
            return Ok(self.root);
        }
        match &self.table {
            Some(table) => match table.ints()[d as usize].load(Ordering::Acquire) {
                0 => self.open_shared(d, table),
                fd => Ok(fd - 1),
            },
            None => self.own_dir(d, own),
        }
    }

    /// Opens a directory for everybody. If another thread was faster, ours is closed again and theirs taken.
    #[cold]
    fn open_shared(&self, d: u64, table: &Map) -> Result<Fd, Errno> {
        let parent = self.set.tree.parent(d);
        let above = if parent == 0 { self.root } else { table.ints()[parent as usize].load(Ordering::Acquire) - 1 };
        let opened = self.open_one(d, above)?;
        match table.ints()[d as usize].compare_exchange(0, opened + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(opened),
            Err(theirs) => {
                fd::close(opened);
                Ok(theirs - 1)
            }
        }
    }

    fn own_dir(&self, d: u64, own: &mut ThreadDirs) -> Result<Fd, Errno> {
        let at = own.place(d);
        if let Some(fd) = own.get(at, d) {
            return Ok(fd);
        }
        let parent = self.set.tree.parent(d);
        let above = if parent == 0 { self.root } else { own.get(own.place(parent), parent).unwrap_or(NONE) };
        let opened = self.open_one(d, above)?;
        own.put(at, d, opened);
        Ok(opened)
    }

    /// Opens directory `d`, and makes it first if the set's directories are made in the run and this one is not there yet.
    fn open_one(&self, d: u64, above: Fd) -> Result<Fd, Errno> {
        match self.open_there(d, above) {
            Err(Errno::NOENT) if self.set.spec.late_dirs => self.make(d),
            other => other,
        }
    }

    /// Makes a directory with those above it that are missing, and opens it. Another thread may make the same ones.
    #[cold]
    fn make(&self, d: u64) -> Result<Fd, Errno> {
        let tree = &self.set.tree;
        let mut at: Option<Closing> = None;
        for name in walk::chain(d, |d| tree.parent(d), |d| tree.dir_name(d)) {
            let above = at.as_ref().map_or(self.root, |at| at.0);
            let opened = match walk::open_dir(above, name.as_c(), PLACE, self.device) {
                Err(Errno::NOENT) => {
                    match fd::mkdir_at(above, name.as_c(), DIR_MODE) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    walk::open_dir(above, name.as_c(), PLACE, self.device)
                }
                other => other,
            };
            at = Some(Closing(opened?));
        }
        // The root is never made here, so that there is a last one.
        at.map(Closing::keep).ok_or(Errno::NOENT)
    }

    /// Opens directory `d`, which is there: by its parent if that is open, else all the way from the root.
    fn open_there(&self, d: u64, above: Fd) -> Result<Fd, Errno> {
        let tree = &self.set.tree;
        if above >= 0 {
            return walk::open_dir(above, tree.dir_name(d).as_c(), PLACE, self.device);
        }
        walk::open_chain(self.root, &walk::chain(d, |d| tree.parent(d), |d| tree.dir_name(d)), PLACE, self.device)
    }

    /// Closes the root and the table. Threads close their own before.
    pub fn close_all(&self) {
        if let Some(table) = &self.table {
            for entry in table.ints() {
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
    /// Room for so many directories, at least one; none is needed with a shared table, and then none is taken.
    pub fn new(places: usize) -> Self {
        Self { places: vec![(0, NONE); places.max(1)] }
    }

    fn place(&self, d: u64) -> usize {
        (mix(0, d) % self.places.len() as u64) as usize
    }

    fn get(&self, at: usize, d: u64) -> Option<Fd> {
        let (dir, fd) = self.places[at];
        (dir == d && fd != NONE).then_some(fd)
    }

    fn put(&mut self, at: usize, d: u64, fd: Fd) {
        let (_, old) = std::mem::replace(&mut self.places[at], (d, fd));
        if old != NONE {
            fd::close(old);
        }
    }

    /// Closes them all.
    pub fn close_all(&mut self) {
        for (_, fd) in &mut self.places {
            let old = std::mem::replace(fd, NONE);
            if old != NONE {
                fd::close(old);
            }
        }
    }
}

/// The flags with which files of a set are opened for data: its `readonly` and `writeonly`.
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
    use super::{Looked, REMEMBERED};

    #[test]
    fn a_file_is_remembered_for_its_period_and_no_other_is_taken_for_it() {
        for files in [1, 5, REMEMBERED, 3 * REMEMBERED, u64::from(u32::MAX)] {
            let looked = Looked::new(files).unwrap();
            for (period, file) in
                [0, files / 3, files - 1].into_iter().enumerate().map(|(n, file)| (7 + n as u64, file))
            {
                assert!(!looked.has(file, 0) && !looked.has(file, period));
                looked.note(file, period);
                assert!(looked.has(file, period) && !looked.has(file, period + 1));
                // Another file in the same place, which then has it.
                let other = file + REMEMBERED;
                assert!(!looked.has(other, period) || other >= files);
            }
        }
    }
}
