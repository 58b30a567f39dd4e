//! Counts of the threads that make or remove files of a set. Starved threads wait as long as such a thread is running
//! and not starved itself.

use super::UnitKind;
use crate::disk::Fileset;
use crate::fileset::Want;
use crate::fileset::content::DataSource;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// A file set in the view of one process.
#[derive(Clone, Debug)]
pub struct View {
    /// The set, shared by all processes.
    pub set: Arc<Fileset>,
    /// The running threads that bring about each state and are not starved.
    pub makers: Arc<Makers>,
    /// Whether the plan has a step in the process's phase that makes existing files, absent files, existing or absent
    /// leaf directories.
    pub planned: [bool; 4],
    /// Index of the first part of this set; the set's own index, unless it is spread over several directories.
    pub first: usize,
    /// The number of parts of the set, if this is the first of them; else 1.
    pub parts: usize,
    /// The data that is written to its files.
    pub data: DataSource,
}

/// The threads that can end a wait for a file of one set.
#[derive(Debug, Default)]
pub struct Makers {
    /// The number of such threads that are running and not starved, by state.
    ///
    /// All accesses are `SeqCst`. Required is only that a decrement is visible before the wake-up that follows it: a
    /// waiter that has read the old count is woken and looks again. Only threads that are starved or end access these
    /// counts, so the stronger ordering costs no operation anything.
    pub live: [AtomicU32; 4],
}

/// Returns the index of a state in [`Makers::live`].
pub fn maker(kind: UnitKind, want: Want) -> usize {
    usize::from(kind == UnitKind::LeafDir) * 2 + usize::from(want == Want::Absent)
}

/// The states that a thread makes, which are not counted in [`Makers`] while it is starved and after it has ended.
#[derive(Debug, Default)]
pub struct Starvation {
    /// The sets and states.
    makes: Vec<(usize, usize)>,
    starves: Arc<AtomicBool>,
}

impl Starvation {
    /// Returns the state of a thread that makes these states of files and directories. `starves` is set while it is
    /// starved.
    pub fn new(makes: &[(usize, Want, UnitKind)], starves: Arc<AtomicBool>) -> Self {
        Self { makes: makes.iter().map(|(set, want, kind)| (*set, maker(*kind, *want))).collect(), starves }
    }

    /// Begins a wait of the thread for a file.
    pub(super) fn begin(&self, views: &[View]) {
        self.leave(views);
        self.starves.store(true, SeqCst);
    }

    /// Ends the wait.
    pub(super) fn end(&self, views: &[View]) {
        self.starves.store(false, SeqCst);
        self.enter(views);
    }

    /// Removes the thread from the counts: it is starved, or ends. If it was the last, waiting threads are woken to
    /// check again.
    pub fn leave(&self, views: &[View]) {
        for (set, state) in &self.makes {
            if views[*set].makers.live[*state].fetch_sub(1, SeqCst) == 1 {
                views[*set].set.state.wake_all();
            }
        }
    }

    /// Adds the thread to the counts: it starts, or is no longer starved.
    pub fn enter(&self, views: &[View]) {
        for (set, state) in &self.makes {
            views[*set].makers.live[*state].fetch_add(1, SeqCst);
        }
    }
}
