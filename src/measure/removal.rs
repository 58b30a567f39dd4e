//! The removal of trees: by a command, when no run needs them any more, and at the end of a session.
//!
//! Not here: how a tree is removed (`disk`).

use super::all_ranks::AllRanks;
use super::leftovers::{self, Leftover};
use super::trees::ReadySet;
use super::{Front, Runner, Status};
use crate::disk::prepare;
use crate::os::held_dir::HeldDir;
use crate::util::printable;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

impl Runner {
    /// `shutdown files`: removes the trees.
    pub fn remove_trees(&mut self, front: &mut dyn Front) -> Status {
        let mut worst = Status::Done;
        let _watch = self.removing();
        let mut all = self.all_ranks(front);
        for ready in std::mem::take(&mut self.trees.sets) {
            worst = worst.max(self.remove_tree(&ready, &mut all));
        }
        agree_on_removal(all, worst)
    }

    fn remove_tree(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Status {
        // The rank that has prepared a shared tree removes it.
        let Some(set) = ready.owner() else { return Status::Done };
        if ready.is_shared && self.trees.in_use_by_ranks {
            return leave_in_use(&set.spec.root(), front);
        }
        // The file system may have been unmounted or recreated, or another program has moved or removed the tree.
        if !prepare::is_marked(&set.spec.root()) {
            self.trees.roots.remove(&set.spec.root());
            set.close();
            front.note(&format!("{} is not removed: no tree of wmlrun is there any more", set.spec.root().display()));
            return Status::Done;
        }
        let stop = AtomicBool::new(false);
        match prepare::remove(set, self.settings.populate_threads, &stop) {
            Ok(removed) => {
                // A tree that is adopted again has the files of its owner.
                self.trees.roots.remove(&set.spec.root());
                if removed.adopted {
                    front.note(&format!(
                        "{} was adopted: its marker is removed, its files stay",
                        removed.path.display()
                    ));
                }
                Status::Done
            }
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                Status::Refused
            }
        }
    }

    /// Releases a set that no run needs any more. Its tree is removed in the fresh directory or with `--clean`; else it
    /// remains.
    pub(crate) fn release_or_remove(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Status {
        let is_fresh = self.trees.is_in_fresh_dir(&ready.set.spec.root());
        if (is_fresh && !self.settings.keep) || self.settings.clean {
            return self.remove_tree(ready, front);
        }
        let Some(set) = ready.owner().filter(|set| prepare::is_marked(&set.spec.root())) else { return Status::Done };
        let files = if ready.is_shared { set.tree.n_files() } else { set.state.n_existing() };
        let adopted = ready.prepared.adopted;
        let (root, bytes) = (set.spec.root(), Some(ready.prepared.bytes));
        self.trees.leftovers.push(Leftover { root, bytes, files, adopted });
        if !(ready.is_shared && self.trees.in_use_by_ranks) {
            set.close();
        }
        Status::Done
    }

    /// Handles trees in a directory of the user whose creation was interrupted: removes them with `--clean`, else keeps
    /// them.
    pub(crate) fn clean_unfinished(&mut self, roots: Vec<PathBuf>, front: &mut dyn Front) {
        for root in roots.into_iter().filter(|root| prepare::is_marked(root)) {
            if self.trees.is_in_fresh_dir(&root) {
                continue;
            }
            if !self.settings.clean {
                self.trees.leftovers.push(Leftover { root, bytes: None, files: 0, adopted: false });
                continue;
            }
            match prepare::clean(&root, self.settings.populate_threads, &AtomicBool::new(false)) {
                Ok(cleaned) => report_refused(&cleaned, front),
                Err(e) => front.error(Some(e.code()), &e.to_string(), e.help().as_deref()),
            }
        }
    }

    /// Ends the work on trees at the end of the session: removes the fresh directory, and reports the trees that
    /// remain.
    pub(crate) fn finish_trees(&mut self, front: &mut dyn Front) -> Status {
        let mut status = Status::Done;
        let mut all = self.all_ranks(front);
        if self.trees.stalled {
            let status = self.report_stalled(&mut all);
            return agree_on_removal(all, status);
        }
        let _watch = self.removing();
        for ready in std::mem::take(&mut self.trees.sets) {
            status = status.max(self.release_or_remove(&ready, &mut all));
        }
        let mut fresh = self.trees.fresh.take().filter(|_| !self.settings.keep && !self.trees.fresh_of_other);
        if self.trees.in_use_by_ranks
            && let Some(dir) = fresh.take()
        {
            status = status.max(leave_in_use(&dir, &mut all));
        }
        // The fresh directory may contain trees of several ranks.
        let status = agree_on_removal(all, status);
        if let Some(dir) = fresh {
            // Paths through the directory to trees outside it will not exist.
            for leftover in self.trees.leftovers.iter_mut().filter(|leftover| leftover.root.starts_with(&dir)) {
                leftover.root = std::fs::canonicalize(&leftover.root).unwrap_or_else(|_| leftover.root.clone());
            }
            // A tree whose creation was interrupted is in no list; it is found by its marker.
            let (parents, stop) = (std::mem::take(&mut self.trees.parent_dirs), AtomicBool::new(false));
            let cleaned = prepare::clean_places(&dir, &parents, self.settings.populate_threads, &stop);
            report_refused(&cleaned, front);
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

/// Reports a tree, or a directory of trees, that other ranks may still use. It stays.
fn leave_in_use(path: &Path, front: &mut dyn Front) -> Status {
    let shown = printable::path(path);
    let help = format!("`wmlrun clean {shown}` removes it when all ranks have ended");
    front.error(None, &format!("{shown} stays: other ranks may still use it"), Some(&help));
    Status::Failed
}

/// Returns the worst status of all ranks, after all have removed their trees.
fn agree_on_removal(all: AllRanks<'_>, own: Status) -> Status {
    let own = if own == Status::Done { Ok(()) } else { Err(own) };
    all.agree("the removal", own).map_or_else(|status| status, |()| Status::Done)
}

/// Reports trees that could not be removed, and why.
fn report_refused(cleaned: &prepare::CleanReport, front: &mut dyn Front) {
    for e in &cleaned.refused {
        front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
    }
}
