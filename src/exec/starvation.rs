//! Who makes and removes files of a set: as long as such a thread lives and is not starved itself, others wait for it.

use super::UnitKind;
use crate::disk::Fileset;
use crate::fileset::Want;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// A file set as one process sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// The set, shared by all.
    pub set: Arc<Fileset>,
    /// The live threads that bring about each state and are not starved themselves.
    pub makers: Arc<Makers>,
    /// Whether the plan has a maker of existing files, absent files, existing and absent leaf directories in the process's phase.
    pub planned: [bool; 4],
    /// Where the first part of its set is: the set itself, unless that lies in several directories.
    pub first: usize,
    /// How many parts the set has, if this is the first of them; else 1.
    pub parts: usize,
}

/// Who can end a wait for a file of one set.
#[derive(Debug, Default)]
pub struct Makers {
    /// How many such threads live and are not starved.
    pub live: [AtomicU32; 4],
}

/// The place of a state in [`Makers`].
pub fn maker(kind: UnitKind, want: Want) -> usize {
    usize::from(kind == UnitKind::LeafDir) * 2 + usize::from(want == Want::Absent)
}

/// A thread's part in making files, to be taken out of the count while it starves and when it ends.
#[derive(Debug, Default)]
pub struct Starvation {
    /// Set and state that the thread makes.
    pub makes: Vec<(usize, usize)>,
}

impl Starvation {
    /// The thread starves, or ends: it makes nothing any more. Whoever waits for it looks again.
    pub fn leave(&self, views: &[View]) {
        for (set, state) in &self.makes {
            if views[*set].makers.live[*state].fetch_sub(1, SeqCst) == 1 {
                views[*set].set.state.wake_all();
            }
        }
    }

    /// The thread lives, or has its file.
    pub fn enter(&self, views: &[View]) {
        for (set, state) in &self.makes {
            views[*set].makers.live[*state].fetch_add(1, SeqCst);
        }
    }
}
