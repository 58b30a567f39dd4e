//! The removal of trees: by a command, when no run needs them any more, and at the end of a session.
//!
//! Not here: how a tree is removed (`disk`).

use super::leftovers::{self, Leftover};
use super::trees::ReadySet;
use super::{Front, Runner, Status};
use crate::diag::Failure;
use crate::disk::prepare;
use crate::os::held_dir::HeldDir;
use crate::util::printable;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

impl Runner {
    /// `shutdown files`: removes the trees.
    pub fn remove_trees(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let _watch = self.removing();
        let mut failed = Vec::new();
        for ready in std::mem::take(&mut self.trees.sets) {
            failed.extend(self.remove_tree(&ready, front).err());
        }
        self.agree(REMOVAL, Failure::all(failed))
    }

    fn remove_tree(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Result<(), Failure> {
        // The rank that has prepared a shared tree removes it.
        let Some(set) = ready.owner() else { return Ok(()) };
        if ready.is_shared && self.trees.in_use_by_ranks {
            return Err(left_in_use(&set.spec.root()));
        }
        // The file system may have been unmounted or recreated, or another program has moved or removed the tree.
        if !prepare::is_marked(&set.spec.root()) {
            self.trees.roots.remove(&set.spec.root());
            set.close();
            front.note(&format!("{} is not removed: no tree of wmlrun is there any more", set.spec.root().display()));
            return Ok(());
        }
        let removed = prepare::remove(set, self.settings.populate_threads, &AtomicBool::new(false))?;
        // A tree that is adopted again has the files of its owner.
        self.trees.roots.remove(&set.spec.root());
        if removed.adopted {
            front.note(&format!("{} was adopted: its marker is removed, its files stay", removed.path.display()));
        }
        Ok(())
    }

    /// Releases a set that no run needs any more. Its tree is removed in the fresh directory or with `--clean`; else it
    /// remains.
    pub(crate) fn release_or_remove(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Result<(), Failure> {
        let is_fresh = self.trees.is_in_fresh_dir(&ready.set.spec.root());
        if (is_fresh && !self.settings.keep) || self.settings.clean {
            return self.remove_tree(ready, front);
        }
        let Some(set) = ready.owner().filter(|set| prepare::is_marked(&set.spec.root())) else { return Ok(()) };
        let files = if ready.is_shared { set.tree.n_files() } else { set.state.n_existing() };
        let adopted = ready.prepared.adopted;
        let (root, bytes) = (set.spec.root(), Some(ready.prepared.bytes));
        self.trees.leftovers.push(Leftover { root, bytes, files, adopted });
        if !(ready.is_shared && self.trees.in_use_by_ranks) {
            set.close();
        }
        Ok(())
    }

    /// Handles trees in a directory of the user whose creation was interrupted: removes them with `--clean`, else keeps
    /// them. Adds to the failure of the creation why some can't be removed.
    pub(crate) fn clean_unfinished(&mut self, roots: Vec<PathBuf>, mut failure: Failure) -> Failure {
        for root in roots.into_iter().filter(|root| prepare::is_marked(root)) {
            if self.trees.is_in_fresh_dir(&root) {
                continue;
            }
            if !self.settings.clean {
                self.trees.leftovers.push(Leftover { root, bytes: None, files: 0, adopted: false });
                continue;
            }
            let cleaned = prepare::clean(&root, self.settings.populate_threads, &AtomicBool::new(false));
            let errors = cleaned.map_or_else(|e| vec![e], |cleaned| cleaned.refused);
            failure.reasons.extend(errors.into_iter().flat_map(|e| Failure::from(e).reasons));
        }
        failure
    }

    /// Ends the work on trees at the end of the session: removes the fresh directory, and reports the trees that
    /// remain.
    pub(crate) fn finish_trees(&mut self, front: &mut dyn Front) -> Status {
        if self.trees.stalled {
            self.report_stalled(front);
            let stalled = self.agree(REMOVAL, Err(Failure::unexplained(Status::Failed)));
            return front.status(stalled);
        }
        let _watch = self.removing();
        let mut failed = Vec::new();
        for ready in std::mem::take(&mut self.trees.sets) {
            failed.extend(self.release_or_remove(&ready, front).err());
        }
        let mut fresh = self.trees.fresh.take().filter(|_| !self.settings.keep && !self.trees.fresh_of_other);
        if self.trees.in_use_by_ranks
            && let Some(dir) = fresh.take()
        {
            failed.push(left_in_use(&dir));
        }
        // The fresh directory may contain trees of several ranks.
        let removed = self.agree(REMOVAL, Failure::all(failed));
        let status = front.status(removed);
        if let Some(dir) = fresh {
            // Paths through the directory to trees outside it will not exist.
            for leftover in self.trees.leftovers.iter_mut().filter(|leftover| leftover.root.starts_with(&dir)) {
                leftover.root = std::fs::canonicalize(&leftover.root).unwrap_or_else(|_| leftover.root.clone());
            }
            // A tree whose creation was interrupted is in no list; it is found by its marker.
            let (parents, stop) = (std::mem::take(&mut self.trees.parent_dirs), AtomicBool::new(false));
            let cleaned = prepare::clean_places(&dir, &parents, self.settings.populate_threads, &stop);
            cleaned.refused.into_iter().for_each(|e| front.failed(&e.into()));
            let removed = HeldDir::of_entry(&dir).and_then(|(parent, name)| parent.remove_dir(&name));
            if let Err(e) = removed
                && e.kind() != std::io::ErrorKind::NotFound
            {
                front.note(&format!("{} stays: {e}", dir.display()));
            }
        }
        for line in leftovers::lines(std::mem::take(&mut self.trees.leftovers)) {
            front.remains(&line);
        }
        status
    }
}

/// The step in which all ranks remove their trees.
const REMOVAL: &str = "the removal";

/// The failure to remove a tree, or a directory of trees, that other ranks may still use. It stays.
fn left_in_use(path: &Path) -> Failure {
    let shown = printable::path(path);
    let help = format!("`wmlrun clean {shown}` removes it when all ranks have ended");
    Failure::failed(format!("{shown} stays: other ranks may still use it"), help)
}
