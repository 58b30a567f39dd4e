//! `compare` shows the last runs side by side; `ab` compares several runs of the script with several of a changed one.

use super::command::{bad, count};
use super::script::{source_text, statements_of};
use super::{Prompt, ShellArms, side_by_side};
use crate::diag::{self, Code, Diagnostic, Failure};
use crate::model::SetBy;
use crate::result::warning_order::{WarningKind, listed};
use crate::session::{CommandError, Front, Session, SilentFront, library};
use crate::source::Spanned;
use crate::util::wrap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The numbers of runs to compare; a table with more columns is hard to read.
const COMPARED_RUNS: RangeInclusive<usize> = 2..=8;

/// What single runs can't say.
const SINGLE_RUNS: &str = "these are single runs, and part of each difference is chance; `ab NAME=VALUE` says how much";

impl Prompt {
    /// Executes `compare [-v] [COUNT]`. Returns an error when the count is not one of [`COMPARED_RUNS`].
    pub(super) fn compare(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        const FORM: &str = "compare [-v] [COUNT]";
        let document = &self.session.runner.outputs.document;
        let runs = &document.runs;
        let rest = argument.node.strip_prefix("-v").filter(|rest| rest.is_empty() || rest.starts_with(' '));
        let number = Spanned::new(rest.unwrap_or(argument.node).trim(), argument.span);
        let wanted = count(number, *COMPARED_RUNS.start(), FORM)?;
        if !COMPARED_RUNS.contains(&wanted) {
            let text =
                format!("`compare` shows {} to {} runs, not {wanted}", COMPARED_RUNS.start(), COMPARED_RUNS.end());
            let error = Diagnostic::error(Code::BadArgument, argument.span, text);
            return Err(error.help(format!("usage: `{FORM}`")).into());
        }
        if runs.len() < 2 {
            front.note(&format!("`compare` needs two runs; there are {}", runs.len()));
            return Ok(());
        }
        let first = runs.len().saturating_sub(wanted);
        // What makes the figures wrong is never left out; the report of each run has had the other warnings.
        let mut below = String::new();
        for (number, run) in (first + 1..).zip(&runs[first..]) {
            for warning in listed(document, run).iter().filter(|warning| warning.kind == WarningKind::Wrong) {
                below += &format!("\nrun {number}: warning[{}]: {}", warning.code, warning.message);
            }
        }
        let columns = front.columns();
        let below = wrap::message(&below, columns);
        let note = wrap::message(SINGLE_RUNS, columns.map(|columns| columns.saturating_sub("note: ".len())));
        // The command and the next prompt are on the screen too.
        let lines = front.rows().map(|rows| rows.saturating_sub(below.lines().count() + note.lines().count() + 2));
        let table = side_by_side::table(&runs[first..], first, rest.is_some(), columns, lines);
        front.line(&(table.trim_end().to_owned() + &below));
        front.note(SINGLE_RUNS);
        Ok(())
    }

    /// Executes `ab NAME=VALUE…`: the script as it stands is A, the same with these values is B.
    pub(super) fn ab(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        let arms = self.arms(argument)?;
        self.session.shutdown_processes(front)?;
        Ok(self.host.ab(&arms)?)
    }

    /// Returns the comparison that `ab` asks for.
    fn arms(&self, argument: Spanned<&str>) -> Result<ShellArms, CommandError> {
        let assigned = |word: &str| {
            let (name, value) = word.trim_start_matches('$').split_once('=')?;
            (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        let b: Option<Vec<(String, String)>> = argument.node.split_whitespace().map(assigned).collect();
        let b = b.filter(|b| !b.is_empty()).ok_or_else(|| bad(argument.span, "ab NAME=VALUE…"))?;
        self.require_definitions(argument.span)?;
        let used = self.session.variables_in_use();
        if let Some((name, _)) = b.iter().find(|(name, _)| !used.contains(name)) {
            let message = format!("nothing that is defined uses `${name}`");
            let d = Diagnostic::error(Code::UndefinedVariable, argument.span, message);
            let near = diag::nearest(name, used.iter().map(String::as_str));
            return Err(d.help(diag::did_you_mean(near, || "`vars` shows the variables".to_owned())).into());
        }
        let is_changed = |name: &String| b.iter().any(|(changed, _)| changed == name);
        let script = self.script_as_it_stands(&used).ok_or_else(|| {
            Failure::wrong(
                "`ab` runs a script from its file, and what is defined here differs from it",
                "`save FILE` writes what is defined; then `clear`, `load FILE` and `ab`",
            )
        })?;
        let mut a = self.values_in_use(&used, |_| true);
        a.retain(|(name, _)| is_changed(name));
        let mut common = self.values_in_use(&used, |by| by > SetBy::Script);
        common.retain(|(name, _)| !is_changed(name));
        let length = self.session.options.last.and_then(|last| last.length);
        let runtime = length.filter(|_| self.session.runner.settings.runtime.is_none());
        Ok(ShellArms { script, common, a, b, runtime })
    }

    /// The variables in use that were set by some, with their values as source text.
    fn values_in_use(&self, used: &[String], by: fn(SetBy) -> bool) -> Vec<(String, String)> {
        let set = self.session.scope.bindings().filter(|binding| binding.by != SetBy::Default && by(binding.by));
        let set = set.filter(|binding| used.contains(&binding.name));
        set.map(|binding| (binding.name.clone(), source_text(&self.session.map, &binding.value))).collect()
    }

    /// Returns the name of the script that is loaded, if a run of it with the values that were set here is what a run would
    /// do now: it is the only one, its file is unchanged, and nothing else was defined.
    fn script_as_it_stands(&self, used: &[String]) -> Option<String> {
        let texts = self.session.loaded.outer_texts();
        let [text] = texts[..] else { return None };
        let loaded = &self.session.map.file(text.file).text;
        let name = library::shipped_as(&text.name, loaded).unwrap_or(&text.name);
        let found = library::find(name, None).ok().filter(|found| found.text == *loaded)?;
        let mut settings = (*self.session.runner.settings).clone();
        settings.sets = self.values_in_use(used, |by| by > SetBy::Script);
        let mut alone = Session::new(settings, Arc::default());
        alone.read(&found.name, &found.text, &mut SilentFront::default()).ok()?;
        let relevant = |session: &Session| {
            let mut all = statements_of(session, &mut SilentFront::default());
            all.retain(|statement| match statement.strip_prefix("set $").and_then(|rest| rest.split_once('=')) {
                Some((name, _)) => used.iter().any(|used| used == name),
                None => ["set mode", "\ndefine", "\neventgen"].iter().any(|begin| statement.starts_with(begin)),
            });
            all.sort_unstable();
            all
        };
        (relevant(&self.session) == relevant(&alone)).then(|| name.to_owned())
    }
}
