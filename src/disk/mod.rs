//! File sets on the disk: population, ownership, repair, removal, the page cache, and the room that is left.
//!
//! In goes a [`Fileset`], a tree and its state; on the disk are then exactly the files that the state says are there, made by
//! [`prepare`](prepare::prepare) in a directory that is provably ours. Threads reach its directories by [`dirs::Dirs`].
//! Deliberately absent: the language, what an operation does with a file, statistics, drawing of progress.

pub mod cache;
mod thread_pool;
pub mod dirs;
pub mod error;
mod known;
mod links;
mod marker;
mod populate;
pub mod prepare;
mod remove;
mod root;
mod scan;
pub mod quiesce;
pub mod space;
mod walk;
pub mod disk_usage;

use crate::fileset::{FilesetSpec, State, Tree};
use crate::os::{Errno, Fd, fd, limits};
use crate::random::Quantity;
pub use error::{CODES, Error, Foreign};
use parking_lot::Mutex;
pub use root::Stamp;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file set of a run: what it is to be, its tree, and its state. Threads share it.
#[derive(Debug)]
pub struct Fileset {
    /// What it is to be.
    pub spec: FilesetSpec,
    /// What it consists of.
    pub tree: Arc<Tree>,
    /// What is there now.
    pub state: State,
    /// The seed of tree and sizes.
    pub layout_seed: u64,
    /// The tree was found on the disk; its files were there before us and are never removed.
    adopted: bool,
    /// What [`prepare`](prepare::prepare) makes of a tree that is there.
    start: StartState,
    /// Device and inode of the root, once it is prepared.
    identity: Mutex<Option<(u64, u64)>>,
    /// Steps of the run may give files a second name in the set.
    links: AtomicBool,
    /// The root, once it is prepared: open and locked, in the descriptor table of the thread that did it.
    held: Mutex<Option<root::Root>>,
}

/// How a set is to be when a run starts, and what is known of its tree from an earlier run.
#[derive(Clone, Default, Debug)]
pub struct StartState {
    /// What is done with a tree that is there.
    pub tree: Existing,
    /// The tree is as defined if the marker still bears this stamp: no run has changed it, and nobody else has used it since.
    pub known: Option<Stamp>,
    /// The run makes, removes or resizes files of the set: whoever else knows the tree must look at it again.
    pub changes: bool,
}

/// What is done with a tree of the same layout that is there already.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Existing {
    /// It is replaced by a new one, unless `reuse` or `trusttree` keeps it.
    #[default]
    Replace,
    /// It is brought to its definition in place: the same inodes.
    Repair,
    /// It stays as it is, and the set's state is read from it.
    Keep,
}

impl Fileset {
    /// The set with the tree that follows from the layout seed. Touches no disk.
    pub fn new(spec: FilesetSpec, layout_seed: u64) -> Result<Self, Error> {
        memory_for(&spec)?;
        let tree = Tree::new(&spec, layout_seed).map_err(|why| Error::Shape { set: spec.name.clone(), why })?;
        Ok(Self::with_tree(spec, layout_seed, tree, false))
    }

    /// The same, unless an adopted tree is on the disk, or with `adopt` one that could be: then that tree. Reads, never writes.
    pub fn open(spec: FilesetSpec, layout_seed: u64, adopt: bool) -> Result<Self, Error> {
        match scan::adoptable(&spec, adopt)? {
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
        if adopted {
            state.files.load(|_| true);
            state.leafdirs.load(|_| true);
        }
        let (tree, start) = (Arc::new(tree), StartState::default());
        let (identity, links) = (Mutex::new(None), AtomicBool::new(false));
        Self { spec, tree, state, layout_seed, adopted, start, identity, links, held: Mutex::new(None) }
    }

    /// The same set at the start of its next run, with the state that its definition says. What a thread that is still in a
    /// call of the last run does later, it does to the set of that run.
    #[must_use]
    pub fn again(&self, start: StartState) -> Self {
        let state = State::new(&self.tree);
        if self.adopted {
            state.files.load(|_| true);
            state.leafdirs.load(|_| true);
        }
        Self {
            spec: self.spec.clone(),
            tree: Arc::clone(&self.tree),
            state,
            layout_seed: self.layout_seed,
            adopted: self.adopted,
            start,
            identity: Mutex::new(None),
            links: AtomicBool::new(self.has_links()),
            held: Mutex::new(None),
        }
    }

    /// Whether its tree is known to be as it is defined, if nobody has used it since.
    pub fn is_known(&self) -> bool {
        self.start.known.is_some()
    }

    /// With another start than that of a new set.
    #[must_use]
    pub fn with_start(self, start: StartState) -> Self {
        Self { start, ..self }
    }

    /// Whether the tree is someone else's that was taken over.
    pub fn is_adopted(&self) -> bool {
        self.adopted
    }

    /// The path of file `i`, for people.
    pub fn path_of(&self, i: u64) -> PathBuf {
        self.spec.root().join(self.tree.rel_path(i))
    }

    /// Steps of the run give files a second name in the set (`link`): more than one is no stranger's then.
    pub fn allow_links(&self) {
        self.links.store(true, Ordering::Relaxed);
    }

    /// Whether a file of the set may have more than one name.
    pub fn has_links(&self) -> bool {
        self.links.load(Ordering::Relaxed)
    }

    /// The device of an open root, if it is the directory that was prepared; [`Errno::STALE`] if it is another.
    fn is_root(&self, root: Fd) -> Result<u64, Errno> {
        let stat = fd::fstat(root)?;
        match *self.identity.lock() {
            Some(prepared) if prepared != (stat.device, stat.inode) => Err(Errno::STALE),
            _ => Ok(stat.device),
        }
    }

    /// Lets go of the root: closes and unlocks it. In the thread (or its descriptor table) that prepared it; a set that was
    /// never prepared has nothing to let go. Returns the marker's stamp, by which [`StartState::known`] finds out whether somebody
    /// else has used the tree since.
    pub fn close(&self) -> Option<Stamp> {
        let root = self.held.lock().take()?;
        let stamp = root.stamp();
        root.close();
        stamp
    }
}

/// Whether the tables of a set fit into memory.
fn memory_for(spec: &FilesetSpec) -> Result<(), Error> {
    let (_, free) = limits::memory();
    // Two bits a file and the counts above them; directories, where they are not few, at twelve bytes and a bit.
    let width = spec.dirwidth.as_ref().map_or(1.0, |w| w.mean().max(1.0));
    let dirs = (spec.entries + spec.leafdirs) as f64 / width;
    let needed = (spec.entries + spec.leafdirs) / 4 + (dirs * 16.0) as u64;
    if free > 0 && needed > free {
        let sets = format!("file set `{}`", spec.name);
        return Err(Error::Memory { sets, what: "the tables", needed, free });
    }
    Ok(())
}

impl FilesetSpec {
    /// What the directories of the tree follow from.
    fn layout(&self, layout_seed: u64) -> marker::MarkerLayout {
        let text = |quantity: &Option<Quantity>| quantity.as_ref().map_or_else(|| "none".into(), ToString::to_string);
        marker::MarkerLayout {
            entries: self.entries,
            leafdirs: self.leafdirs,
            dirwidth: text(&self.dirwidth),
            width_gamma: self.width_gamma,
            depth_gamma: self.depth_gamma,
            dirdepth: text(&self.dirdepth),
            seed: layout_seed,
        }
    }

    /// The root as a directory that the user named, whose links are the user's word, and one last name in it that is never
    /// followed. `None` if the set's name can't be one.
    pub(crate) fn place(&self) -> Option<(PathBuf, String)> {
        let name = self.root_name();
        let (above, last) = match name.rsplit_once('/') {
            Some((above, last)) => (self.path.join(above), last.to_owned()),
            None => (self.path.clone(), name.clone().into_owned()),
        };
        let plain = Path::new(&*name).components().all(|part| matches!(part, Component::Normal(_)));
        (plain && !last.is_empty() && last != root::MARKER && last != root::UNFINISHED).then_some((above, last))
    }
}
