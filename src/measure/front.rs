//! The interface to the front end of a session: a script runner, a prompt, a test.

use crate::diag::{Diagnostic, Failure, Status};
use crate::disk::prepare::{Progress, Quiet};
use crate::result::ranks::RanksInterval;
use crate::result::{Document, Run};
use crate::runtime::Tick;
use crate::source::SourceMap;
use std::time::Duration;

/// The front end of a session, which hears of its progress. What ends a command is returned, not shown. Every notification
/// is optional: a front end that ignores all of them loses no result.
pub trait Front {
    /// Shows a line that the script requested: `help`, `vars`, `list`.
    fn line(&mut self, _text: &str) {}
    /// Returns the width of the terminal on which lines are shown; `None` if there is none.
    fn columns(&self) -> Option<usize> {
        None
    }
    /// Returns the height of that terminal in lines.
    fn rows(&self) -> Option<usize> {
        None
    }
    /// Shows text that the script prints: `echo`, `log`, `usage`. It may have several lines.
    fn script_line(&mut self, text: &str) {
        self.line(text);
    }
    /// Shows a table of all runs, after their reports.
    fn overview(&mut self, text: &str) {
        self.line(text);
    }
    /// Shows a note on the progress of the session, which is not part of the results.
    fn note(&mut self, _text: &str) {}
    /// Shows a note on files that remain, at the very end of the session.
    fn remains(&mut self, text: &str) {
        self.note(text);
    }
    /// Shows warnings about a script.
    fn warnings(&mut self, _map: &SourceMap, _found: &[Diagnostic]) {}
    /// Shows a warning that is not about a script, and a line of help.
    fn warning(&mut self, _text: &str, _help: &str) {}
    /// Shows a failure that the session survives, such as that of an output or of one command at the prompt.
    fn failed(&mut self, _failure: &Failure) {}
    /// Shows a failure that the session survives, if there is one. Returns the status.
    fn status(&mut self, done: Result<(), Failure>) -> Status {
        done.map_or_else(
            |failure| {
                self.failed(&failure);
                failure.status
            },
            |()| Status::Done,
        )
    }
    /// Called at the start of a report, before the first run.
    fn begin(&mut self, _document: &Document) {}
    /// Called at the end of a report, after the last run.
    fn end(&mut self, _document: &Document) {}
    /// Called at the start of a run, with its entry so far and its planned length, also in words.
    fn run_started(&mut self, _document: &Document, _run: &Run, _length: Option<Duration>, _time: &str) {}
    /// Called at each interval of a run. The newest interval of the time series is the last one of `run.intervals`.
    /// `ranks`: the interval of all ranks, on rank 0 of a run of several.
    fn run_ticks(&mut self, _run: &Run, _tick: &Tick<'_>, _ranks: Option<&RanksInterval>) {}
    /// Called at the end of a measurement with its complete time series, unless [`run_ticks`](Self::run_ticks) has had
    /// the last interval. `errors`: the failed operations.
    fn last_interval(&mut self, _run: &Run, _errors: u64) {}
    /// Called at the end of a run, which is the last one of the document.
    fn run_ended(&mut self, _document: &Document) {}
    /// Returns an error if an output of the front end is no longer where it was opened. Called before each run.
    fn check_outputs(&self) -> std::io::Result<()> {
        Ok(())
    }
    /// Writes the result beside the report, because the result file can't be written.
    fn result_aside(&mut self, _document: &Document) {}
    /// Shows where a rank other than 0 has written its result, which rank 0 does not have.
    fn result_kept(&mut self, _text: &str) {}
    /// Shows an interim report of a run in progress (`psrun`). `apart`: it covers only its own period.
    fn interim(&mut self, _document: &Document, _run: &Run, _apart: bool) {}
    /// Returns the receiver of progress notifications while files are created. A total of 0 is unknown.
    fn progress(&self) -> &dyn Progress {
        &Quiet
    }
}
