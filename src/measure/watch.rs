//! The current work of a session on file systems, before and after a run. A watchdog reads it, which is the only thread
//! that can still act when a file system does not answer.
//!
//! Not here: the watchdog itself, which prints and ends the program (`cli`).

use crate::diag::Status;
use crate::disk::prepare::{Phase, Progress};
use crate::os::signals::{self, Kept};
use crate::os::steps;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// The stage of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Before the threads start.
    Prepare,
    /// Trees are being removed or released.
    CleanUp,
}

/// The work that the session is waiting for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The stage of the session.
    pub stage: Stage,
    /// A description of the work: `making data`.
    pub what: String,
    /// The directories of the work.
    pub paths: Vec<PathBuf>,
    /// The number of the work: increases whenever the session starts other work.
    pub number: u64,
    /// Whether the disks are being quiesced: the number of dirty bytes decreases.
    pub is_quiescing: bool,
    /// The exit status of the work so far.
    pub status: u8,
}

/// The current work of a session, shared with the watchdog.
#[derive(Debug, Default)]
pub struct Watch {
    now: Mutex<Option<Waiting>>,
    leftovers: Mutex<Vec<PathBuf>>,
    /// Threads of a run were left behind in system calls.
    is_stalled: AtomicBool,
    /// The worst status so far.
    worst: Mutex<Status>,
    /// The number of the signal that was received; 0 if there is none.
    interrupt: Arc<AtomicUsize>,
}

impl Watch {
    /// Returns the roots of trees in which threads were left behind in system calls.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        self.leftovers.lock().clone()
    }

    /// The work of a session of which nothing has been done. Signals set `interrupt`.
    pub(crate) fn new(interrupt: Arc<AtomicUsize>) -> Self {
        Self { interrupt, ..Self::default() }
    }

    /// Adds roots of trees in which threads were left behind in system calls: their file systems are not accessed any more.
    pub(crate) fn stall(&self, roots: impl IntoIterator<Item = PathBuf>) {
        self.is_stalled.store(true, SeqCst);
        self.leftovers.lock().extend(roots);
    }

    /// Whether threads of a run were left behind in system calls.
    pub(crate) fn is_stalled(&self) -> bool {
        self.is_stalled.load(SeqCst)
    }

    /// Records the status of the work so far. The worst one is the exit status if the session ends now.
    pub(crate) fn note_status(&self, status: Status) {
        let mut worst = self.worst.lock();
        *worst = status.max(*worst);
    }

    /// The worst status so far.
    pub(crate) fn worst(&self) -> Status {
        *self.worst.lock()
    }

    /// The number of the signal that was received; 0 if there is none.
    pub fn signal(&self) -> u8 {
        self.interrupt.load(SeqCst) as u8
    }

    /// Clears a signal that was handled, so that it does not end the next run.
    pub(crate) fn clear_interrupt(&self) {
        self.interrupt.store(0, SeqCst);
    }

    /// The number that signals set.
    pub fn interrupt(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.interrupt)
    }

    /// Runs long work on files so that a signal stops it, by setting the flag that is passed to `work`.
    pub(crate) fn interruptible<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> T {
        signals::interruptible(&self.interrupt, work)
    }

    /// Returns the current work. `None` while no work on a file system is in progress.
    pub fn now(&self) -> Option<Waiting> {
        self.now.lock().clone()
    }

    /// Sets the current work until the returned guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>, stage: Stage, what: &str, paths: Vec<PathBuf>) -> WatchGuard {
        let status = self.worst().code();
        let number = self.now.lock().as_ref().map_or(0, |now| now.number) + 1;
        let new = Waiting { stage, what: what.to_owned(), paths, number, is_quiescing: false, status };
        steps::count();
        let before = self.now.lock().replace(new);
        WatchGuard { watch: Arc::clone(self), before, _kept: Kept::begin() }
    }

    /// Interrupts the current work until the returned guard is dropped: the session waits for other ranks.
    pub(crate) fn pause(self: &Arc<Self>) -> WatchGuard {
        steps::count();
        let before = self.now.lock().take();
        WatchGuard { watch: Arc::clone(self), before, _kept: Kept::begin() }
    }

    fn phase(&self, phase: Phase, what: String) {
        if let Some(now) = &mut *self.now.lock() {
            now.is_quiescing = matches!(phase, Phase::Quiesce | Phase::Evict);
            now.what = what;
            now.number += 1;
        }
    }
}

/// A drop guard that restores the previous work.
pub(crate) struct WatchGuard {
    watch: Arc<Watch>,
    before: Option<Waiting>,
    /// The watchdog ends the program if a signal does not end the work.
    _kept: Kept,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        *self.watch.now.lock() = self.before.take();
    }
}

/// A receiver of progress that informs the watchdog and forwards to the front end.
pub(crate) struct WatchedProgress<'a> {
    pub(crate) watch: &'a Watch,
    pub(crate) progress: &'a dyn Progress,
}

impl Progress for WatchedProgress<'_> {
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
    fn the_innermost_work_is_current_and_the_outer_one_after_it() {
        let watch = Arc::new(Watch::default());
        assert_eq!(watch.now(), None);
        let outer = watch.begin(Stage::Prepare, "checking the file sets", vec!["/a".into()]);
        WatchedProgress { watch: &watch, progress: &Quiet }.started("data", Phase::Populate, 1, 1);
        assert_eq!(watch.now().map(|now| (now.what, now.is_quiescing)), Some(("creating data".to_owned(), false)));
        watch.note_status(Status::Failed);
        watch.note_status(Status::Done);
        let inner = watch.begin(Stage::CleanUp, "removing data", Vec::new());
        assert_eq!(watch.now().map(|now| (now.stage, now.status)), Some((Stage::CleanUp, 1)));
        drop(inner);
        assert_eq!(watch.now().map(|now| now.what), Some("creating data".to_owned()));
        let pause = watch.pause();
        assert_eq!(watch.now(), None);
        drop(pause);
        assert_eq!(watch.now().map(|now| now.what), Some("creating data".to_owned()));
        drop(outer);
        assert_eq!(watch.now(), None);
    }
}
