//! What is there of a file set right now: its files, its leaf directories, and whose turn which directory is.
//!
//! The bits are [`Members`]'. Nothing here knows names or the disk.

use super::members::{How, Members, Picked, Want};
use super::tree::Tree;
use crossbeam::utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of one file set, shared by all threads.
#[derive(Debug)]
pub struct State {
    /// Files.
    pub files: Members,
    /// Leaf directories.
    pub leafdirs: Members,
    n_dirs: u64,
    dirs: CachePadded<AtomicU64>,
}

impl State {
    /// The state at the start of a run: what `prealloc` says is there.
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

    /// Picks a file: [`Members::pick`].
    #[inline]
    pub fn pick(&self, want: Want, how: How<'_>, hold: bool) -> Picked {
        self.files.pick(want, how, hold)
    }

    /// Gives a held file back unchanged: [`Members::release`].
    #[inline]
    pub fn release(&self, i: u64) -> bool {
        self.files.release(i)
    }

    /// Says that a held file was made or removed: [`Members::set_exists`].
    #[inline]
    pub fn set_exists(&self, i: u64, there: bool) {
        self.files.set_exists(i, there);
    }

    /// Files that are there.
    pub fn n_existing(&self) -> u64 {
        self.files.n_existing()
    }

    /// No step of this run makes or removes files.
    pub fn freeze(&self) {
        self.files.freeze();
    }

    /// Steps of this run make or remove files.
    pub fn thaw(&self) {
        self.files.thaw();
    }

    /// So many threads share the set.
    pub fn set_threads(&self, threads: u64) {
        self.files.set_threads(threads);
        self.leafdirs.set_threads(threads);
    }

    /// The next directory in the shared order of all directories, the root included.
    #[inline]
    pub fn next_dir(&self) -> u64 {
        self.dirs.fetch_add(1, Ordering::Relaxed) % self.n_dirs
    }

    /// Wakes everybody who waits for a change of this set, changed or not: for a stop.
    pub fn wake_all(&self) {
        self.files.wake_all();
        self.leafdirs.wake_all();
    }

    /// Memory taken, in bytes.
    pub fn memory(&self) -> u64 {
        self.files.memory() + self.leafdirs.memory()
    }
}
