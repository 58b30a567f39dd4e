//! The state of a file set during a run: which files and leaf directories exist, and the rotation over directories.
//!
//! The per-file state is in [`Members`]. Names and the disk are not known here.

use super::members::{How, Members, Picked, Want};
use super::tree::Tree;
use crossbeam::utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of one file set, shared by all threads.
#[derive(Debug)]
pub struct State {
    pub files: Members,
    /// The leaf directories.
    pub leafdirs: Members,
    n_dirs: u64,
    /// Position of the rotation over directories.
    dirs: CachePadded<AtomicU64>,
}

impl State {
    /// Creates the state at the start of a run: the share of `prealloc` exists.
    pub fn new(tree: &Tree) -> Self {
        let state = Self {
            files: Members::new(tree.n_files()),
            leafdirs: Members::new(tree.n_leafdirs()),
            n_dirs: tree.n_dirs(),
            dirs: CachePadded::default(),
        };
        state.files.load(|i| tree.exists_at_start(i));
        state.leafdirs.load(|i| tree.leafdir_at_start(i));
        state
    }

    /// Picks a file. See [`Members::pick`].
    #[inline]
    pub fn pick(&self, want: Want, how: How<'_>, hold: bool) -> Picked {
        self.files.pick(want, how, hold)
    }

    /// Releases a held file unchanged. See [`Members::release`].
    #[inline]
    pub fn release(&self, i: u64) -> bool {
        self.files.release(i)
    }

    /// Records that a held file was created or removed. See [`Members::set_exists`].
    #[inline]
    pub(crate) fn set_exists(&self, i: u64, exists: bool) {
        self.files.set_exists(i, exists);
    }

    /// Returns the number of existing files.
    pub fn n_existing(&self) -> u64 {
        self.files.n_existing()
    }

    /// Declares that no flowop of this run creates or removes files. See [`Members::freeze`].
    pub fn freeze(&self) {
        self.files.freeze();
    }

    /// Declares that flowops of this run create or remove files. See [`Members::thaw`].
    pub fn thaw(&self) {
        self.files.thaw();
    }

    /// Sets the number of threads that share the set. See [`Members::set_threads`].
    pub fn set_threads(&self, threads: u64) {
        self.files.set_threads(threads);
        self.leafdirs.set_threads(threads);
    }

    /// Declares that files are picked by their age. See [`Members::keep_order`].
    pub(crate) fn keep_order(&self) {
        self.files.keep_order();
    }

    /// Returns the next directory in a rotation that all threads share. It includes the root.
    #[inline]
    pub(crate) fn next_dir(&self) -> u64 {
        self.dirs.fetch_add(1, Ordering::Relaxed) % self.n_dirs
    }

    /// Wakes all threads that wait for a change of this set. Used when the run stops.
    pub(crate) fn wake_all(&self) {
        self.files.wake_all();
        self.leafdirs.wake_all();
    }

    /// Returns the heap memory used, in bytes.
    pub fn memory(&self) -> u64 {
        self.files.memory() + self.leafdirs.memory()
    }
}
