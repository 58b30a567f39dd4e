//! The check of an experiment's arms before anything is made: each arm's script is read and planned with the options of
//! the arm, as `wmlrun plan` does.
//!
//! Not in here: the conditions of the machine (directories, mounts, space), which the commands before a run may change.

use super::args::RunArgs;
use super::console;
use super::experiment_args::ArmLine;
use crate::diag::{Diagnostic, Severity};
use crate::experiment::Arm;
use crate::measure::Front;
use crate::report;
use crate::session::{Session, Status};
use crate::source::SourceMap;
use std::sync::Arc;

/// The receiver of the messages of a check. Warnings and notes are dropped: each run repeats them.
struct Probe {
    /// The text before each error, such as ``in `--b`: ``. If `None`, errors are not printed.
    print: Option<String>,
    /// The text of the first error.
    first: Option<String>,
}

impl Probe {
    fn found(&mut self, text: &str) {
        self.first.get_or_insert_with(|| text.to_owned());
    }
}

impl Front for Probe {
    fn line(&mut self, _text: &str) {}

    fn note(&mut self, _text: &str) {}

    fn diagnostics(&mut self, map: &SourceMap, found: &[Diagnostic]) {
        let mut errors: Vec<Diagnostic> = found.iter().filter(|d| d.severity == Severity::Error).cloned().collect();
        let Some(first) = errors.first_mut() else { return };
        self.found(&first.message);
        if let Some(place) = &self.print {
            first.message.insert_str(0, place);
            console::diagnostics(map, &errors);
        }
    }

    fn error(&mut self, _code: Option<&str>, text: &str, help: Option<&str>) {
        self.found(text);
        if let Some(place) = &self.print {
            console::error(&format!("{place}{text}"), help);
        }
    }
}

/// Reads and plans a script with the options in `words`. Returns the text of the first error, or `None` when there is
/// none. With `print`, prints the errors, each with this text before it.
fn problem(words: &[String], print: Option<String>) -> Option<String> {
    let line = match ArmLine::read(words) {
        Ok(line) => line,
        Err(text) => {
            if let Some(place) = print {
                console::error(&format!("{place}{text}"), Some("`wmlrun --help` lists the options of a run"));
            }
            return Some(text);
        }
    };
    let mut probe = Probe { print, first: None };
    let script = line.script.unwrap_or_default();
    if let Some(found) = super::find_for(&script, &mut |text, help| probe.error(None, text, Some(help))) {
        let format = report::TABLE[0];
        let workload = line.workload;
        let args = RunArgs { workload, json: None, results: None, format, quiet: true, verbose: false };
        let mut session = Session::new(super::settings(&args), Arc::default());
        if session.read(&found.name, &found.text, &mut probe) == Status::Done {
            // A plan that is refused has printed its errors.
            let _ = session.plan(&mut probe);
        }
    }
    probe.first
}

/// Checks the arms of an experiment. `common` is a command line with the options that all arms have, and `option` names
/// the option that distinguishes an arm. Returns whether there is no error; else the errors of the first wrong arm have
/// been printed, after the name of its option if the common options do not have the same error.
pub(super) fn check(arms: &[Arm], common: &[String], option: &dyn Fn(usize) -> &'static str) -> bool {
    let Some((n, arm, found)) = arms.iter().enumerate().find_map(|(n, arm)| Some((n, arm, problem(&arm.words, None)?)))
    else {
        return true;
    };
    let is_common = arm.words == common || problem(common, None).as_ref() == Some(&found);
    let place = if is_common { String::new() } else { format!("in `{}`: ", option(n)) };
    let _ = problem(&arm.words, Some(place));
    false
}
