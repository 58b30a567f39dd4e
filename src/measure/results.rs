//! The end of a run: its outcome if a file system does not answer, its result file, and its threads.
//!
//! From the opening of the gate to the end of the report, the session makes no call on a measured file system: such a
//! call might never return, and the report would be lost.

use super::names::{qualified_name, roots_text};
use super::time_limit::with_timeout;
use super::watch::{Stage, Watch, WatchGuard};
use super::{Front, Runner, Status};
use crate::diag::Failure;
use crate::plan::Plan;
use crate::runtime::{Ended, Running, Waited};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for writing the result file. A disk that is busy with the data of a run takes seconds.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit if a file system is known not to answer. It may be that of the result file.
const STALLED_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the time limit for writing an output. `held`: a file system is known not to answer.
pub(crate) fn answer_timeout(held: bool) -> Duration {
    if held { STALLED_TIMEOUT } else { ANSWER_TIMEOUT }
}

/// The reason why an output was not written within the time limit.
pub(crate) const NO_ANSWER: &str = "its file system does not answer";

/// The time limit for the reader of a pipe or device to take the whole result at the end.
pub(crate) const FINAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The time limit for threads in a system call to return after the report.
pub(crate) const JOIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The same if they are known to be blocked, and have been waited for before the report.
pub(crate) const STUCK_JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How many more times that limit is waited for if the threads are not in a system call: then the machine is busy with others.
const BUSY_WAITS: u32 = 6;

/// Returns the final end of a run: a thread may have panicked, or calls may not have returned before the end.
pub(crate) fn final_end(running: &Running, waited: Waited) -> Waited {
    if let Some(panic) = running.panic() {
        return Waited { ended: Ended::Fault(panic), ..waited };
    }
    match (&waited.ended, running.stuck(waited.tick)) {
        (ended, Some(stuck)) if ended.is_good() => Waited { ended: Ended::Fault(stuck), ..waited },
        _ => waited,
    }
}

impl Runner {
    /// Returns the state that the watchdog monitors.
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// Records the status of the work so far. The worst one is the exit status if the session ends now.
    pub fn note_status(&mut self, status: Status) {
        self.worst = self.worst.max(status);
    }

    /// Records the status of the work so far, and in the result whether it is complete. Called when the script has been
    /// executed, and again when its processes have ended.
    pub fn end_script(&mut self, status: Status) {
        self.note_status(status);
        self.document.complete = self.worst == Status::Done;
    }

    /// Ends the session: stops running processes, removes its own directories, and writes the final result.
    pub fn finish(mut self, secrets: &[String], front: &mut dyn Front) -> Status {
        let mut status = self.shutdown_processes(secrets, front);
        self.end_collector(front);
        self.end_script(status);
        // Before the trees are removed: their file system may not answer.
        status = status.max(self.finish_json(front));
        if self.outputs.write_failed {
            status = status.max(Status::Failed);
        }
        self.note_status(status);
        status.max(self.finish_trees(front))
    }

    /// Writes the result so far. A failure is only a note: it matters if it also occurs at the end. `held`: threads are
    /// still in their calls.
    pub(crate) fn write_json(&mut self, held: bool, front: &mut dyn Front) {
        let Some(mut writer) = self.outputs.json.take() else { return };
        let document = self.document.clone();
        let written = with_timeout(answer_timeout(held), move || {
            let written = writer.write(&document);
            (writer, written)
        });
        match written {
            Some((writer, written)) => {
                self.outputs.json = Some(writer);
                if let Err(e) = written {
                    front.note(&format!("can't write the result file: {e}"));
                }
            }
            None => self.write_json_elsewhere(front),
        }
    }

    /// Writes the final result.
    pub(crate) fn finish_json(&mut self, front: &mut dyn Front) -> Status {
        let Some(writer) = self.outputs.json.take() else { return Status::Done };
        let document = self.document.clone();
        match with_timeout(FINAL_TIMEOUT, move || writer.finish(&document)) {
            Some(Ok(())) => Status::Done,
            Some(Err(e)) => {
                self.handle_result_failure(&e, front);
                Status::Done
            }
            None => {
                self.write_json_elsewhere(front);
                Status::Failed
            }
        }
    }

    /// Writes the result elsewhere if the file system of the result file does not answer: to the results directory or,
    /// if that does not answer either, to standard error.
    fn write_json_elsewhere(&mut self, front: &mut dyn Front) {
        let path = self.settings.json.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let kept = self.result_in_results(false);
        let place =
            kept.as_ref().map_or("the result follows here".to_owned(), |kept| format!("it is in {}", kept.display()));
        front.failed(&Failure::failed(
            format!("can't write the result file {path}: {NO_ANSWER}; {place}"),
            "give `--json` a path on another file system than the one that is measured",
        ));
        if kept.is_none() {
            front.result_aside(&self.document);
        }
        self.outputs.write_failed = true;
    }

    /// Waits for threads that are still in a system call, and abandons them at the time limit `limit`.
    pub(crate) fn join_or_abandon(
        &mut self,
        running: Running,
        plan: &Plan,
        limit: Duration,
        front: &mut dyn Front,
    ) -> Status {
        let mut remaining = running.join_within(limit);
        for _ in 0..BUSY_WAITS {
            if remaining > 0 && !running.is_held() {
                remaining = running.join_within(JOIN_TIMEOUT);
            }
        }
        if remaining == 0 {
            running.join(JOIN_TIMEOUT);
            return Status::Done;
        }
        for thread in running.stragglers().iter().take(5) {
            let flowop = qualified_name(plan, thread.flowop);
            let path = thread.path.clone().unwrap_or_else(|| roots_text(plan, thread.flowop));
            let text =
                format!("{flowop} (thread {}) is still in a system call on {path}; it is left behind", thread.tid);
            front.failed(&Failure::failed(text, ""));
        }
        running.join(Duration::ZERO);
        self.trees.stalled = true;
        self.watch.add_leftovers(self.trees.sets.iter().map(|ready| ready.set.spec.root()));
        self.note_status(Status::Failed);
        Status::Failed
    }

    /// Starts the removal of trees for the watchdog, which ends the program if the removal takes too long.
    pub(crate) fn removing(&self) -> WatchGuard {
        let roots = self.trees.sets.iter().map(|ready| ready.set.spec.root()).chain(self.trees.fresh.clone()).collect();
        self.begin(Stage::CleanUp, "removing the file sets", roots)
    }

    /// Reports trees on which threads are still in system calls. They are left as they are, and their file systems are not
    /// accessed.
    pub(crate) fn report_stalled(&mut self, front: &mut dyn Front) {
        let sets = std::mem::take(&mut self.trees.sets);
        let roots = sets.iter().map(|ready| ready.set.spec.root());
        let places: Vec<PathBuf> = self.trees.fresh.take().map_or_else(|| roots.collect(), |dir| vec![dir]);
        for place in places {
            let parent = place.parent().filter(|_| !place.ends_with("wmlrun")).unwrap_or(&place).display().to_string();
            front.note(&format!(
                "{} is left as it is: its file system does not answer (`wmlrun clean {parent}` removes it later)",
                place.display()
            ));
        }
    }
}
