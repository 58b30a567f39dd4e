//! The trees of file sets that a session has worked on.

use super::leftovers::Leftover;
use crate::disk::prepare::{self, Prepared};
use crate::disk::{Error, Fileset, Stamp};
use crate::fileset::FilesetSpec;
use crate::plan::Plan;
use crate::random::mix;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The trees that measurements work on.
#[derive(Default)]
pub(crate) struct Trees {
    /// The file sets of the last plan.
    pub(crate) sets: Vec<ReadySet>,
    /// The roots of trees that this session has created or brought to their definition.
    pub(crate) roots: BTreeMap<PathBuf, KnownRoot>,
    /// A run has written since the disks were last idle.
    pub(crate) wrote: bool,
    /// The directory that was created because none was named.
    pub(crate) fresh: Option<PathBuf>,
    /// The parent directories of all roots.
    pub(crate) parent_dirs: BTreeSet<PathBuf>,
    /// Trees that were released and remain on disk.
    pub(crate) leftovers: Vec<Leftover>,
    /// The fresh directory was created by another rank, which removes it.
    pub(crate) fresh_of_other: bool,
    /// The ranks have prepared their sets together, and have not released them yet.
    pub(crate) held_with_ranks: bool,
    /// Other ranks may still use the shared trees, because they could not be released together: they stay locked until
    /// this process ends, and are not removed.
    pub(crate) in_use_by_ranks: bool,
    /// The script has dropped the dentries and inodes of the machine since the last run.
    pub(crate) caches_dropped: bool,
}

/// What a session knows of a tree on which it has worked.
pub(crate) struct KnownRoot {
    /// The data properties of its files.
    pub(crate) data: String,
    /// The properties that determine the sizes of its files, as of the last definition with which they were compared.
    pub(crate) sizes: Option<String>,
    /// The stamp of the marker when the tree was released after its last run. `None` if a command may have changed the
    /// tree since.
    pub(crate) released: Option<Stamp>,
}

impl Trees {
    /// Returns the sets of the last plan by their definitions.
    pub(crate) fn by_definition(&self) -> HashMap<&DefinitionKey, &ReadySet> {
        self.sets.iter().map(|ready| (&ready.definition, ready)).collect()
    }

    /// Returns the roots of the sets of the last plan.
    pub(crate) fn roots_of_sets(&self) -> HashSet<PathBuf> {
        self.sets.iter().map(|ready| ready.set.spec.root()).collect()
    }

    /// Records that the tree of a set was prepared.
    pub(crate) fn remember(&mut self, spec: &FilesetSpec, prepared: &Prepared) {
        // A run that did not compare the sizes must not hide what others have changed before it.
        let before = self.roots.remove(&spec.root()).and_then(|known| known.sizes).filter(|_| prepared.untouched);
        let sizes = if prepared.verified { Some(size_properties(spec)) } else { before };
        self.roots.insert(spec.root(), KnownRoot { data: data_properties(spec), sizes, released: None });
    }

    /// True if a root is inside the fresh directory, and not on a file system that a command has mounted there.
    pub(crate) fn is_in_fresh_dir(&self, root: &Path) -> bool {
        self.fresh.as_ref().is_some_and(|fresh| prepare::is_inside(root, fresh))
    }
}

/// The definition of a file set as a key: the text of all its properties.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DefinitionKey(String);

impl DefinitionKey {
    pub(crate) fn of(spec: &FilesetSpec) -> Self {
        Self(format!("{spec:?}"))
    }

    /// Returns a hash of the key, by which ranks compare their definitions.
    pub(crate) fn hashed(&self) -> u64 {
        self.0.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte)))
    }
}

/// A file set that is on disk.
pub(crate) struct ReadySet {
    /// The files that runs of this rank use.
    pub(crate) set: Arc<Fileset>,
    /// The ranks of a run share the tree.
    pub(crate) is_shared: bool,
    /// The whole shared tree, on the rank that has prepared it and removes it.
    pub(crate) whole: Option<Arc<Fileset>>,
    pub(crate) prepared: Prepared,
    /// The definition from which it was created.
    pub(crate) definition: DefinitionKey,
    /// The tree may differ from the definition.
    pub(crate) changed: bool,
    /// The stamp of the marker when the set was released after its last run. `None` if the tree may have been changed
    /// since.
    pub(crate) stamp: Option<Stamp>,
}

impl ReadySet {
    /// Returns the set that has the tree's lock while it is in use, and by which the tree is removed. `None` if another
    /// rank has it.
    pub(crate) fn owner(&self) -> Option<&Arc<Fileset>> {
        if self.is_shared { self.whole.as_ref() } else { Some(&self.set) }
    }

    /// Closes the root by which this rank uses a shared tree, if it is not the locked one.
    pub(crate) fn close_part(&self) {
        if !self.owner().is_some_and(|owner| Arc::ptr_eq(owner, &self.set)) {
            self.set.close();
        }
    }
}

/// Returns the data properties of a set as a text. Files with other data properties are not reused.
pub(crate) fn data_properties(spec: &FilesetSpec) -> String {
    format!("{:?} {:?} {}", spec.compress, spec.dedupe, spec.fill_size)
}

/// Returns the properties that determine sizes and kinds of the files of a tree, as a text.
pub(crate) fn size_properties(spec: &FilesetSpec) -> String {
    let FilesetSpec { name, part, instance, entries, size, sizes, empty, symlinks, .. } = spec;
    format!("{:?}", (name, part, instance, entries, size, sizes, empty, symlinks))
}

/// Returns the file sets of a plan as trees that are not on disk.
pub fn trees(plan: &Plan, layout_seed: u64) -> Result<Vec<Arc<Fileset>>, Error> {
    plan.filesets.iter().map(|spec| Fileset::new(spec.clone(), layout_seed).map(Arc::new)).collect()
}
