//! What a session tells whoever sits in front of it: a script runner, a prompt, a test.

use crate::diag::Diagnostic;
use crate::disk::prepare::{Progress, Quiet};
use crate::result::{Document, Run};
use crate::runtime::Tick;
use crate::source::SourceMap;
use std::time::Duration;

/// The front end. All of it is a courtesy: a silent one loses no result, and what it does not take up is not shown.
pub trait Front {
    /// A line that the script asked for: `help`, `vars`, `list`.
    fn line(&mut self, text: &str);
    /// Text that the script itself prints: `echo`, `log`, `usage`. It may have several lines.
    fn script_line(&mut self, text: &str) {
        self.line(text);
    }
    /// A word about what is done: goes beside the results, not among them.
    fn note(&mut self, text: &str);
    /// Errors and warnings.
    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]);
    /// What the environment refused, or what failed: `error: …` and a help line.
    fn error(&mut self, code: Option<&str>, text: &str, help: Option<&str>);
    /// A warning that is about no script, and what to do about it.
    fn warning(&mut self, _text: &str, _help: &str) {}
    /// A report begins: nothing has run yet.
    fn begin(&mut self, _document: &Document) {}
    /// A report ends, after the last run.
    fn end(&mut self, _document: &Document) {}
    /// A run begins: its entry so far, and how long it is to take.
    fn run_started(&mut self, _document: &Document, _run: &Run, _length: Option<Duration>) {}
    /// A live run, each interval: the timeline's newest piece is the last of `run.intervals`.
    fn run_ticks(&mut self, _run: &Run, _tick: &Tick<'_>) {}
    /// A run has ended; it is the last of the document.
    fn run_ended(&mut self, _document: &Document) {}
    /// The result, whose own file can't be written: goes beside the report.
    fn result_aside(&mut self, _document: &Document) {}
    /// An interim report of a run that goes on (`psrun`); `apart`: of its own period only.
    fn interim(&mut self, _document: &Document, _run: &Run, _apart: bool) {}
    /// Files are made; `None` for the total where it is not known.
    fn progress(&self) -> &dyn Progress {
        &Quiet
    }
}
