//! File sets on the disk: population, ownership, repair, removal, the page cache, and free space.
//!
//! Input: a [`Fileset`], which is a tree and its state. Afterwards exactly the files that exist according to the state
//! exist on the disk. They are created by a [`Preparation`](prepare::Preparation), in a directory that wmlrun demonstrably owns.
//! Threads open the directories of a set through [`dirs::Dirs`]. Deliberately absent: the language, what an operation
//! does with a file, statistics, and the display of progress.

pub mod aging;
pub mod cache;
mod thread_pool;
pub mod dirs;
pub mod error;
mod failure;
mod foreign;
mod known;
mod links;
mod make_dirs;
mod marker;
mod not_shared;
mod parent_lock;
mod parents;
mod populate;
mod preparation;
pub mod prepare;
mod record;
mod remove;
mod root;
mod scan;
pub mod shared;
mod shortage;
pub mod space;
pub mod space_sums;
mod walk;
pub mod disk_usage;

use crate::fileset::{FilesetSpec, Interleave, State, Tree};
pub use error::{CODES, Error, Foreign, NotShared};
use parking_lot::Mutex;
pub use root::Stamp;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
pub use wml_os::quiesce;
use wml_os::{Errno, Fd, fd, limits};

/// A file set of a run: its definition, its tree, and its state. Threads share it.
#[derive(Debug)]
pub struct Fileset {
    /// The definition.
    pub spec: FilesetSpec,
    pub tree: Arc<Tree>,
    /// The current state.
    pub state: State,
    /// The seed that determines tree and sizes.
    pub layout_seed: u64,
    /// Whether the tree was found on the disk and adopted. Its files existed before and are never removed.
    adopted: bool,
    /// How a preparation treats an existing tree.
    start: StartState,
    /// Device and inode number of the root. `None` until the root is taken.
    identity: Mutex<Option<(u64, u64)>>,
    /// Whether flowops of the run may create hard links within the set.
    links: AtomicBool,
    /// The open and locked root, in the descriptor table of the thread that prepared it. `None` until the set is
    /// prepared.
    held: Mutex<Option<root::Root>>,
}

/// The required state of a set when a run starts, and the knowledge of its tree from an earlier run.
#[derive(Clone, Default, Debug)]
pub struct StartState {
    /// How an existing tree is treated.
    pub tree: Existing,
    /// Stamp of the marker at which the tree was known to be as defined. If the stamp is unchanged, no other run has
    /// changed the tree since. `None` if the tree is not known.
    pub known: Option<Stamp>,
    /// Whether the run creates, removes or resizes files of the set. The marker's stamp is then changed, so that other
    /// sessions check the tree again.
    pub changes: bool,
    /// Whether an earlier run of the session has found the files of an adopted tree to have the sizes of this
    /// definition, or has resized them with `reuse`. If `released` is unchanged, differences are then changes of the
    /// session, and are repaired.
    pub verified: bool,
    /// Stamp of the marker when the session released the tree after its last run. `None` if there was none, or if
    /// another program may have changed the files since.
    pub released: Option<Stamp>,
}

/// How an existing tree of the same layout is treated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Existing {
    /// The tree is replaced by a new one, unless the set has `reuse` or `trusttree`.
    #[default]
    Replace,
    /// The tree is repaired in place to match its definition. Inodes are preserved.
    Repair,
    /// The tree is kept unchanged, and the state of the set is read from it.
    Keep,
}

impl Fileset {
    /// Creates a set with the tree that the layout seed determines. Does not access the disk.
    ///
    /// Returns an error when the tree exceeds a limit, or its tables do not fit into memory.
    pub fn new(spec: FilesetSpec, layout_seed: u64) -> Result<Self, Error> {
        Self::part_of(spec, layout_seed, Interleave::WHOLE)
    }

    /// Creates a set with a part of the files of the tree, of which each rank has another one.
    pub fn part_of(spec: FilesetSpec, layout_seed: u64, part: Interleave) -> Result<Self, Error> {
        memory_for(&spec)?;
        let tree = Tree::new(&spec, layout_seed).map_err(|why| Error::Shape { set: spec.name.clone(), why })?;
        Ok(Self::with_tree(spec, layout_seed, tree.interleaved(part), false))
    }

    /// Creates a set like [`Self::new`], except that the tree is read from the disk if it was adopted before, or if
    /// `adopt` is set and the root contains a tree that can be adopted. Does not write. `stop` ends the reading.
    pub fn open(spec: FilesetSpec, layout_seed: u64, adopt: bool, stop: &AtomicBool) -> Result<Self, Error> {
        match scan::adoptable(&spec, adopt, stop)? {
            Some(found) => {
                memory_for(&spec)?;
                let tree = Tree::adopted(&spec, layout_seed, found);
                Ok(Self::with_tree(spec, layout_seed, tree, true))
            }
            None => Self::new(spec, layout_seed),
        }
    }

    fn with_tree(spec: FilesetSpec, layout_seed: u64, tree: Tree, adopted: bool) -> Self {
        let state = State::new(&tree);
        let (tree, start) = (Arc::new(tree), StartState::default());
        let (identity, links) = (Mutex::new(None), AtomicBool::new(false));
        Self { spec, tree, state, layout_seed, adopted, start, identity, links, held: Mutex::new(None) }
    }

    /// Returns a copy of the set for its next run, with the initial state of its definition.
    ///
    /// A thread that is still in a system call of the previous run modifies the state of the previous copy only.
    #[must_use]
    pub fn again(&self, start: StartState) -> Self {
        Self {
            spec: self.spec.clone(),
            tree: Arc::clone(&self.tree),
            state: State::new(&self.tree),
            layout_seed: self.layout_seed,
            adopted: self.adopted,
            start,
            identity: Mutex::new(None),
            links: AtomicBool::new(self.has_links()),
            held: Mutex::new(None),
        }
    }

    /// True if the tree is known to be as defined, unless another session has used it since.
    pub fn is_known(&self) -> bool {
        self.start.known.is_some()
    }

    /// Replaces the start state.
    #[must_use]
    pub fn with_start(self, start: StartState) -> Self {
        Self { start, ..self }
    }

    /// True if the tree is adopted, that is, was not created by wmlrun.
    pub fn is_adopted(&self) -> bool {
        self.adopted
    }

    /// Returns the path of file `i`, for messages.
    pub fn path_of(&self, i: u64) -> PathBuf {
        self.spec.root().join(self.tree.rel_path(i))
    }

    /// Declares that flowops of the run create hard links within the set (`link`). Files with several names are then
    /// accepted as part of the set.
    pub fn allow_links(&self) {
        self.links.store(true, Ordering::Relaxed);
    }

    /// True if files of the set may have more than one name.
    pub(crate) fn has_links(&self) -> bool {
        self.links.load(Ordering::Relaxed)
    }

    /// Declares an open directory to be the root: no other directory at its path is opened from now on.
    fn set_root(&self, root: Fd) {
        *self.identity.lock() = fd::fstat(root).ok().map(|stat| (stat.device, stat.inode));
    }

    /// Returns the device number of an open root. [`Errno::STALE`] if the directory is not the one that was prepared.
    fn is_root(&self, root: Fd) -> Result<u64, Errno> {
        let stat = fd::fstat(root)?;
        match *self.identity.lock() {
            Some(prepared) if prepared != (stat.device, stat.inode) => Err(Errno::STALE),
            _ => Ok(stat.device),
        }
    }

    /// Closes and unlocks the root. Must be called with the descriptor table of the thread that prepared the set.
    ///
    /// Returns the stamp of the marker for [`StartState::known`]. `None` when the set was not prepared, or the file
    /// system does not provide a stamp.
    pub fn close(&self) -> Option<Stamp> {
        let root = self.held.lock().take()?;
        let stamp = root.stamp();
        root.close();
        stamp
    }
}

/// Returns an error when the tables of a set do not fit into memory.
fn memory_for(spec: &FilesetSpec) -> Result<(), Error> {
    let (_, free) = limits::memory();
    // Two bits per file plus the tree of counts. Directories take slightly more than twelve bytes each.
    let width = spec.dirwidth.as_ref().map_or(1.0, |w| w.mean().max(1.0));
    let dirs = (spec.entries + spec.leafdirs) as f64 / width;
    let needed = (spec.entries + spec.leafdirs) / 4 + (dirs * 16.0) as u64;
    if free > 0 && needed > free {
        let sets = vec![spec.name.clone()];
        return Err(Error::Memory { sets, what: "the tables", needed, free });
    }
    Ok(())
}

impl FilesetSpec {
    /// Returns the parent directory of the root, and the name of the root in it. Symbolic links in the parent path are
    /// followed, since the user named it, unless another user made one in a shared directory; the last name is never
    /// followed. `None` when the name of the set can't be a directory name.
    pub(crate) fn root_location(&self) -> Option<(PathBuf, String)> {
        let name = self.root_name();
        let (parent, last) = match name.rsplit_once('/') {
            Some((parent, last)) => (self.path.join(parent), last.to_owned()),
            None => (self.path.clone(), name.clone().into_owned()),
        };
        let plain = Path::new(&*name).components().all(|part| matches!(part, Component::Normal(_)));
        (plain && !last.is_empty() && last != marker::MARKER && last != marker::UNFINISHED).then_some((parent, last))
    }
}
