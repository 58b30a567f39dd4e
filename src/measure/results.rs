//! The end of a run: what it came to if a file system did not answer, its result file, and its threads.
//!
//! From the opened gate to the end of the report the session makes no call on a file system that is measured: such a call might
//! never come back, and the report with it.

use super::bounded::bounded;
use super::names::{place, roots};
use super::watch::{Entered, Stage, Watch};
use super::{Front, Runner, Status};
use crate::plan::Plan;
use crate::runtime::{Ended, Running, Waited};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the file system of the result file is given to take it. A disk that is busy with what a run wrote takes seconds.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);

/// The same if a file system is known not to answer, which may be this one: the result is wanted now.
const ANSWER_STALLED: Duration = Duration::from_secs(1);

/// What the file system of an output is given; `held` if one is known not to answer.
pub(crate) fn answer(held: bool) -> Duration {
    if held { ANSWER_STALLED } else { ANSWER }
}

/// What is said of an output that was not written within that.
pub(crate) const NO_ANSWER: &str = "its file system does not answer";

/// What a pipe or device is given that takes the whole result at the end.
pub(crate) const LAST: Duration = Duration::from_mins(1);

/// What threads in a call are given after the report.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How many times that again where no call holds them: the machine is busy with others.
const BUSY: u32 = 6;

/// How a run ended, after all: a thread may have panicked, or a call may have held threads to the end.
pub(crate) fn ended_otherwise(running: &Running, waited: Waited) -> Waited {
    if let Some(panic) = running.panic() {
        return Waited { ended: Ended::Fault(panic), ..waited };
    }
    match (&waited.ended, running.stuck(waited.tick)) {
        (Ended::Time, Some(stuck)) => Waited { ended: Ended::Fault(stuck), ..waited },
        _ => waited,
    }
}

impl Runner {
    /// What it waits for, for who watches that it goes on.
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// How what was done so far has ended: the exit status, should nothing more be done.
    pub fn note_status(&mut self, status: Status) {
        self.worst = self.worst.max(status);
    }

    /// The session ends: live processes are stopped, directories of its own removed, the result written for good.
    pub fn finish(mut self, secrets: &[String], front: &mut dyn Front) -> Status {
        let mut status = self.shutdown_processes(secrets, front);
        self.end_collector(front);
        self.note_status(status);
        // Before the trees: their file system may not answer.
        status = status.max(self.finish_json(front));
        if self.outputs.is_lost {
            status = status.max(Status::Failed);
        }
        self.note_status(status);
        status.max(self.leave_trees(front))
    }

    /// Writes what there is of the result; a failure is told once it matters, at the end. `held`: threads have not come back from
    /// their calls.
    pub(crate) fn write_json(&mut self, held: bool, front: &mut dyn Front) {
        let Some(mut writer) = self.outputs.json.take() else { return };
        let document = self.document.clone();
        let written = bounded(answer(held), move || {
            let written = writer.write(&document);
            (writer, written)
        });
        match written {
            Some((writer, written)) => {
                self.outputs.json = Some(writer);
                if let Err(e) = written {
                    front.note(&format!("the result file can't be written: {e}"));
                }
            }
            None => self.json_elsewhere(front),
        }
    }

    /// Writes the result for the last time.
    pub(crate) fn finish_json(&mut self, front: &mut dyn Front) -> Status {
        let Some(writer) = self.outputs.json.take() else { return Status::Done };
        let document = self.document.clone();
        match bounded(LAST, move || writer.finish(&document)) {
            Some(Ok(())) => Status::Done,
            Some(Err(e)) => {
                self.result_refused(&e, front);
                Status::Done
            }
            None => {
                self.json_elsewhere(front);
                Status::Failed
            }
        }
    }

    /// The file system of the result file does not answer: the result goes to the results directory if that does, else to standard
    /// error.
    fn json_elsewhere(&mut self, front: &mut dyn Front) {
        let path = self.settings.json.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let kept = self.result_in_results();
        let place =
            kept.as_ref().map_or("the result follows here".to_owned(), |kept| format!("it is in {}", kept.display()));
        front.error(
            None,
            &format!("the result file {path} can't be written: {NO_ANSWER}; {place}"),
            Some("give `--json` a path on another file system than the one that is measured"),
        );
        if kept.is_none() {
            front.result_aside(&self.document);
        }
        self.outputs.is_lost = true;
    }

    /// Waits for threads that are still in a call, and parts with them if they do not come back.
    pub(crate) fn part_with(&mut self, running: Running, plan: &Plan, front: &mut dyn Front) -> Status {
        let mut left = running.join_within(PATIENCE);
        for _ in 0..BUSY {
            if left > 0 && !running.is_held() {
                left = running.join_within(PATIENCE);
            }
        }
        if left == 0 {
            running.join(PATIENCE);
            return Status::Done;
        }
        for thread in running.stragglers().iter().take(5) {
            let place = place(plan, thread.flowop);
            let path = thread.path.clone().unwrap_or_else(|| roots(plan, thread.flowop));
            front.error(
                None,
                &format!("{place} (thread {}) is still in its call on {path}, and is left behind", thread.tid),
                None,
            );
        }
        running.join(Duration::ZERO);
        self.trees.stalled = true;
        self.watch.leave(self.trees.sets.iter().map(|ready| ready.set.spec.root()));
        self.note_status(Status::Failed);
        Status::Failed
    }

    /// Trees are removed as long as this lives: the watchdog sees to it that the program ends.
    pub(crate) fn removing(&self) -> Entered {
        let roots = self.trees.sets.iter().map(|ready| ready.set.spec.root()).chain(self.trees.fresh.clone()).collect();
        self.begin(Stage::CleanUp, "removing the file sets", roots)
    }

    /// Threads are still in calls on the trees: those stay as they are, and nothing is asked of their file systems.
    pub(crate) fn leave_stalled(&mut self, front: &mut dyn Front) -> Status {
        let sets = std::mem::take(&mut self.trees.sets);
        let roots = sets.iter().map(|ready| ready.set.spec.root());
        let places: Vec<PathBuf> = self.trees.fresh.take().map_or_else(|| roots.collect(), |dir| vec![dir]);
        for place in places {
            let above = place.parent().filter(|_| !place.ends_with("wmlrun")).unwrap_or(&place).display().to_string();
            front.note(&format!(
                "{} stays as it is: its file system does not answer (`wmlrun clean {above}` removes it later)",
                place.display()
            ));
        }
        Status::Failed
    }
}
