//! The trees of file sets that a session has worked on.

use super::Front;
use super::leftovers::Leftover;
use crate::disk::prepare::Prepared;
use crate::disk::{Fileset, Stamp};
use crate::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The trees that measurements work on.
#[derive(Default)]
pub(crate) struct Trees {
    /// Those of the last plan.
    pub(crate) sets: Vec<ReadySet>,
    /// Roots of trees that were made here or brought to their definition, with what their data is like.
    pub(crate) roots: BTreeMap<PathBuf, String>,
    /// A run has written since the disks were quiesced.
    pub(crate) wrote: bool,
    /// The directory that was made because none was named.
    pub(crate) fresh: Option<PathBuf>,
    /// Where there were to be trees: the directories of their roots.
    pub(crate) places: BTreeSet<PathBuf>,
    /// Trees that were let go and stay where they are.
    pub(crate) leftovers: Vec<Leftover>,
    /// Threads of a run are left behind in their calls.
    pub(crate) stalled: bool,
}

/// A file set that is on the disk.
pub(crate) struct ReadySet {
    pub(crate) set: Arc<Fileset>,
    pub(crate) prepared: Prepared,
    /// What it was made from, in its printed form.
    pub(crate) made_from: String,
    /// The tree may be another than the definition says.
    pub(crate) changed: bool,
    /// The marker's when the set was let go of after its last run; `None` where the tree may have been changed since.
    pub(crate) stamp: Option<Stamp>,
}

/// The file sets of a plan as trees, not yet on the disk.
pub fn trees(plan: &Plan, layout_seed: u64, front: &mut dyn Front) -> Option<Vec<Arc<Fileset>>> {
    let mut sets = Vec::new();
    for spec in &plan.filesets {
        match Fileset::new(spec.clone(), layout_seed) {
            Ok(set) => sets.push(Arc::new(set)),
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                return None;
            }
        }
    }
    Some(sets)
}
