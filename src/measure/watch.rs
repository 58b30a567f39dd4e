//! What a session waits for while it deals with file systems, before a run and after it: shown to a watchdog, which is the only
//! one that can still act when a file system does not answer.
//!
//! Deliberately absent: the watchdog itself, which prints and ends the program (`cli`).

use crate::disk::prepare::{Phase, Progress};
use crate::os::steps;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// At which time of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Before the threads start.
    Prepare,
    /// Trees are removed, or given back.
    CleanUp,
}

/// What is waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// At which time.
    pub stage: Stage,
    /// What is being done: `making data`.
    pub what: String,
    /// Directories that it is done in.
    pub paths: Vec<PathBuf>,
    /// Changes whenever something else is waited for.
    pub number: u64,
    /// The disks are being quiesced: the number of dirty bytes falls.
    pub is_quiescing: bool,
    /// The exit status of what was done so far.
    pub status: u8,
}

/// What a session waits for, shared with who watches.
#[derive(Debug, Default)]
pub struct Watch {
    now: Mutex<Option<Waiting>>,
    leftovers: Mutex<Vec<PathBuf>>,
}

impl Watch {
    /// Roots of trees in which threads were left behind in their calls.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        self.leftovers.lock().clone()
    }

    /// Threads are left behind in their calls there.
    pub(crate) fn leave(&self, roots: impl IntoIterator<Item = PathBuf>) {
        self.leftovers.lock().extend(roots);
    }

    /// What is waited for; `None` while no file system is.
    pub fn now(&self) -> Option<Waiting> {
        self.now.lock().clone()
    }

    /// From now on until the guard is dropped, this is waited for.
    pub(crate) fn begin(self: &Arc<Self>, stage: Stage, what: &str, paths: Vec<PathBuf>, status: u8) -> Entered {
        let number = self.now.lock().as_ref().map_or(0, |now| now.number) + 1;
        let new = Waiting { stage, what: what.to_owned(), paths, number, is_quiescing: false, status };
        steps::count();
        let before = self.now.lock().replace(new);
        Entered { watch: Arc::clone(self), before }
    }

    fn phase(&self, phase: Phase, what: String) {
        if let Some(now) = &mut *self.now.lock() {
            now.is_quiescing = matches!(phase, Phase::Quiesce | Phase::Evict);
            now.what = what;
            now.number += 1;
        }
    }
}

/// Something is waited for as long as this lives.
pub(crate) struct Entered {
    watch: Arc<Watch>,
    before: Option<Waiting>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        *self.watch.now.lock() = self.before.take();
    }
}

/// Progress that is shown to the watchdog on its way to the front end.
pub(crate) struct Watched<'a> {
    pub(crate) watch: &'a Watch,
    pub(crate) progress: &'a dyn Progress,
}

impl Progress for Watched<'_> {
    fn started(&self, set: &str, phase: Phase, files: u64, bytes: u64) {
        self.watch.phase(phase, phase.doing(set));
        self.progress.started(set, phase, files, bytes);
    }

    fn advanced(&self, files: u64, bytes: u64) {
        self.progress.advanced(files, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::prepare::Quiet;

    #[test]
    fn the_innermost_wait_is_shown_with_its_phase_and_the_outer_one_again_after_it() {
        let watch = Arc::new(Watch::default());
        assert_eq!(watch.now(), None);
        let outer = watch.begin(Stage::Prepare, "looking at the file sets", vec!["/a".into()], 0);
        Watched { watch: &watch, progress: &Quiet }.started("data", Phase::Populate, 1, 1);
        assert_eq!(watch.now().map(|now| (now.what, now.is_quiescing)), Some(("making data".to_owned(), false)));
        let inner = watch.begin(Stage::CleanUp, "removing data", Vec::new(), 1);
        assert_eq!(watch.now().map(|now| (now.stage, now.status)), Some((Stage::CleanUp, 1)));
        drop(inner);
        assert_eq!(watch.now().map(|now| now.what), Some("making data".to_owned()));
        drop(outer);
        assert_eq!(watch.now(), None);
    }
}
