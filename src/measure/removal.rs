//! Trees that go: when a command says so, when no run needs them any more, and when a session ends.
//!
//! Deliberately absent: how a tree is removed (`disk`).

use super::leftovers::{self, Leftover};
use super::trees::ReadySet;
use super::{Front, Runner, Status};
use crate::disk::prepare;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

impl Runner {
    /// `shutdown files`: removes the trees.
    pub fn remove_trees(&mut self, front: &mut dyn Front) -> Status {
        let mut worst = Status::Done;
        let _removing = self.removing();
        for ready in std::mem::take(&mut self.trees.sets) {
            worst = worst.max(self.remove_tree(&ready, front));
        }
        worst
    }

    fn remove_tree(&self, ready: &ReadySet, front: &mut dyn Front) -> Status {
        // It may lie on a file system that is not mounted any more, or was made anew.
        if !prepare::is_marked(&ready.set.spec.root()) {
            ready.set.close();
            return Status::Done;
        }
        let stop = AtomicBool::new(false);
        match prepare::remove(&ready.set, self.settings.populate_threads, &stop) {
            Ok(removed) => {
                if removed.adopted {
                    front.note(&format!("{} was adopted: it is let go, and its files stay", removed.path.display()));
                }
                Status::Done
            }
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                Status::Refused
            }
        }
    }

    /// Parts with a set that no run needs any more: in the fresh directory its tree goes, elsewhere it stays.
    pub(crate) fn let_go(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Status {
        let own = self.trees.fresh.as_ref().is_some_and(|dir| ready.set.spec.path.starts_with(dir));
        if (own && !self.settings.keep) || self.settings.clean {
            return self.remove_tree(ready, front);
        }
        if !prepare::is_marked(&ready.set.spec.root()) {
            return Status::Done;
        }
        let files = ready.set.state.n_existing();
        let adopted = ready.prepared.adopted;
        self.trees.leftovers.push(Leftover {
            root: ready.set.spec.root(),
            bytes: ready.prepared.bytes,
            files,
            adopted,
        });
        ready.set.close();
        Status::Done
    }

    /// Trees whose making began here and ended early, in a directory of the user's: they stay or go like others.
    pub(crate) fn leave_unfinished(&mut self, roots: Vec<PathBuf>, front: &mut dyn Front) {
        for root in roots.into_iter().filter(|root| prepare::is_marked(root)) {
            if self.trees.fresh.as_ref().is_some_and(|dir| root.starts_with(dir)) {
                continue;
            }
            if !self.settings.clean {
                self.trees.leftovers.push(Leftover { root, bytes: 0, files: 0, adopted: false });
                continue;
            }
            match prepare::clean(&root, self.settings.populate_threads, &AtomicBool::new(false)) {
                Ok(cleaned) => tell_refused(&cleaned, front),
                Err(e) => front.error(Some(e.code()), &e.to_string(), e.help().as_deref()),
            }
        }
    }

    /// The session ends: the fresh directory goes, trees in a directory of the user's stay, and a line says so.
    pub(crate) fn leave_trees(&mut self, front: &mut dyn Front) -> Status {
        let mut status = Status::Done;
        if self.trees.stalled {
            return self.leave_stalled(front);
        }
        let _removing = self.removing();
        for ready in std::mem::take(&mut self.trees.sets) {
            status = status.max(self.let_go(&ready, front));
        }
        if let Some(dir) = self.trees.fresh.take().filter(|_| !self.settings.keep) {
            // A tree whose making was interrupted is in no list; its marker tells.
            let (places, stop) = (std::mem::take(&mut self.trees.places), AtomicBool::new(false));
            let cleaned = prepare::clean_places(&dir, &places, self.settings.populate_threads, &stop);
            tell_refused(&cleaned, front);
            if let Err(e) = std::fs::remove_dir(&dir)
                && e.kind() != std::io::ErrorKind::NotFound
            {
                front.note(&format!("{} stays: {e}", dir.display()));
            }
        }
        for line in leftovers::lines(std::mem::take(&mut self.trees.leftovers)) {
            front.note(&line);
        }
        status
    }
}

/// Trees that could not be removed, and why.
fn tell_refused(cleaned: &prepare::CleanReport, front: &mut dyn Front) {
    for e in &cleaned.refused {
        front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
    }
}
