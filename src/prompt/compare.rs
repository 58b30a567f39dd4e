//! `compare`: shows the last runs side by side, first the variables that differ, then the results.

use super::Prompt;
use super::command::count;
use crate::diag::{Code, Diagnostic};
use crate::flowop::MEASURE;
use crate::result::{FlowopResult, Latency, Run, RunState};
use crate::session::{CommandError, Front};
use crate::source::Spanned;
use crate::util::count::measured;
use crate::util::duration::latency;
use crate::util::printable;
use crate::util::table::{Align, Table};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The numbers of runs to compare; a table with more columns is hard to read.
const COMPARED_RUNS: RangeInclusive<usize> = 2..=8;

impl Prompt {
    /// Executes `compare [COUNT]`. Returns an error when the count is not one of [`COMPARED_RUNS`].
    pub(super) fn compare(&mut self, argument: Spanned<&str>, front: &mut dyn Front) -> Result<(), CommandError> {
        const FORM: &str = "compare [COUNT]";
        let runs = &self.session.runner.outputs.document.runs;
        let wanted = count(argument, *COMPARED_RUNS.start(), FORM)?;
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
        front.line(side_by_side(&runs[first..], first).render_fitted(front.columns()).trim_end());
        Ok(())
    }
}

/// Returns the table with runs as columns. `first` is the index of the first of them in the session.
fn side_by_side(runs: &[Run], first: usize) -> Table {
    let names: Vec<String> = (0..runs.len()).map(|i| format!("run {}", first + i + 1)).collect();
    let change = runs.len() == 2;
    let columns = std::iter::once(("", Align::Left))
        .chain(names.iter().map(|n| (n.as_str(), Align::Right)))
        .chain(change.then_some(("change", Align::Right)));
    let mut table = Table::new(columns);
    let mut row = |name: String, cells: Vec<String>, values: &[Option<f64>]| {
        let change = match values {
            [Some(a), Some(b)] if change && *a > 0.0 => format!("{:+.1} %", (b / a - 1.0) * 100.0),
            _ => String::new(),
        };
        table.row(std::iter::once(name).chain(cells).chain(std::iter::once(change)));
    };
    for name in differing(runs) {
        let cells = runs.iter().map(|r| value_in(r, name)).collect();
        row(format!("${name}"), cells, &[]);
    }
    if runs.iter().any(|r| r.state != RunState::Complete) {
        row("ended".to_owned(), runs.iter().map(|r| r.state.name().to_owned()).collect(), &[]);
    }
    row("seconds".to_owned(), runs.iter().map(|r| format!("{:.1}", r.measured_seconds)).collect(), &[]);
    let mut figures = |name: String, of: &dyn Fn(&Run) -> Option<f64>, form: &dyn Fn(f64) -> String| {
        let values: Vec<Option<f64>> = runs.iter().map(of).collect();
        if values.iter().all(Option::is_none) {
            return;
        }
        let cells = values.iter().map(|v| v.map_or("-".to_owned(), form)).collect();
        row(name, cells, &values);
    };
    // What was modelled comes first: the rates of open loops, whole iterations, and the times as the users see them.
    figures("offered/s".to_owned(), &|r| Some(r.open_loop.as_ref()?.offered_per_s), &measured);
    figures("achieved/s".to_owned(), &|r| Some(r.open_loop.as_ref()?.achieved_per_s), &measured);
    for key in keys(runs, |f| f.kind == MEASURE.name) {
        figures(format!("{key} ops/s"), &|r| Some(flowop(r, &key)?.ops_per_s), &measured);
        times(runs, &key, "", &|f| Some(f.latency_ns), &mut figures);
    }
    for key in keys(runs, |f| f.response_ns.is_some()) {
        times(runs, &key, "response ", &|f| f.response_ns, &mut figures);
    }
    figures("ops/s".to_owned(), &|r| Some(r.summary.ops_per_s), &measured);
    figures("MiB/s".to_owned(), &|r| Some(r.summary.mib_per_s), &measured);
    figures("mean latency".to_owned(), &|r| r.summary.latency_ns.mean, &latency);
    figures("p99".to_owned(), &|r| r.summary.latency_ns.shown(r.summary.ops).p99.map(|ns| ns as f64), &latency);
    if runs.iter().any(|r| r.summary.errors > 0) {
        figures("errors".to_owned(), &|r| Some(r.summary.errors as f64), &measured);
    }
    for key in keys(runs, |f| f.class.is_io()) {
        figures(format!("{key} ops/s"), &|r| Some(flowop(r, &key)?.ops_per_s), &measured);
        times(runs, &key, "", &|f| Some(f.latency_ns), &mut figures);
    }
    table
}

/// A function that adds a row: its name, the figure of a run, and its form.
type AddRow<'a> = dyn FnMut(String, &dyn Fn(&Run) -> Option<f64>, &dyn Fn(f64) -> String) + 'a;

/// Adds the row of a flowop's times: the 99th percentile, or the mean if all runs have too few operations for it.
fn times(runs: &[Run], key: &str, what: &str, of: &dyn Fn(&FlowopResult) -> Option<Latency>, row: &mut AddRow<'_>) {
    let p99 = |run: &Run| {
        let flowop = flowop(run, key)?;
        of(flowop)?.shown(flowop.ops).p99.map(|ns| ns as f64)
    };
    if runs.iter().any(|run| p99(run).is_some()) {
        row(format!("{key} {what}p99"), &p99, &latency);
    } else {
        row(format!("{key} {what}mean"), &|run| of(flowop(run, key)?)?.mean, &latency);
    }
}

/// Returns the names of the variables whose values differ between runs.
pub(super) fn differing(runs: &[Run]) -> Vec<&str> {
    let names: BTreeSet<&str> = runs.iter().flat_map(|r| r.variables.keys()).map(String::as_str).collect();
    names.into_iter().filter(|n| runs.iter().any(|r| r.variables.get(*n) != runs[0].variables.get(*n))).collect()
}

fn flowop<'a>(run: &'a Run, key: &str) -> Option<&'a FlowopResult> {
    run.flowops.iter().find(|flowop| key_of(flowop) == key)
}

/// Returns the keys of these flowops of all runs, in order of first occurrence.
fn keys(runs: &[Run], is_wanted: impl Fn(&FlowopResult) -> bool) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for flowop in runs.iter().flat_map(|r| &r.flowops).filter(|f| is_wanted(f)) {
        let key = key_of(flowop);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Returns the key of a flowop, `process/thread/name`.
fn key_of(flowop: &FlowopResult) -> String {
    format!("{}/{}/{}", flowop.process, flowop.thread, flowop.name)
}

/// Returns the value of a variable in a run, as one line; `-` if it is not set.
pub(super) fn value_in(run: &Run, name: &str) -> String {
    let Some(value) = run.variables.get(name) else { return "-".to_owned() };
    value.as_str().map_or_else(|| value.to_string(), |text| printable::line(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::fixture::fixture;
    use crate::result::{FlowopClass, OpenLoop};

    #[test]
    fn what_was_modelled_is_before_what_was_called() {
        let mut a = fixture().runs.remove(0);
        a.open_loop = Some(OpenLoop { offered_per_s: 200.0, achieved_per_s: 150.0, ..OpenLoop::default() });
        a.flowops[0].response_ns = Some(a.flowops[1].latency_ns);
        let like = a.flowops[0].clone();
        let (kind, name) = (MEASURE.name.to_owned(), "query".to_owned());
        a.flowops.push(FlowopResult { kind, name, class: FlowopClass::Other, ops_per_s: 12.0, ..like });
        let mut b = a.clone();
        b.open_loop = Some(OpenLoop { offered_per_s: 200.0, achieved_per_s: 180.0, ..OpenLoop::default() });
        let text = side_by_side(&[a.clone(), b], 0).render();
        let at = |row: &str| text.lines().position(|line| line.trim_start().starts_with(row)).unwrap_or(usize::MAX);
        let (query, io) = (key_of(&a.flowops[3]), key_of(&a.flowops[0]));
        let rows = ["offered/s", "achieved/s", &format!("{query} ops/s"), &format!("{query} p99")].map(at);
        let more = [format!("{io} response p99"), "ops/s".to_owned(), format!("{io} ops/s")].map(|row| at(&row));
        let found = [&rows[..], &more].concat();
        assert!(found.is_sorted() && found.last() < Some(&usize::MAX), "{found:?}\n{text}");
        assert!(text.contains("+20.0 %"), "{text}");
    }

    #[test]
    fn differing_variables_are_first() {
        let mut a = fixture().runs.remove(0);
        a.variables.insert("same".to_owned(), 1.into());
        a.variables.insert("n".to_owned(), 7.into());
        let mut b = a.clone();
        b.variables.insert("n".to_owned(), 13.into());
        b.variables.insert("only".to_owned(), "x".into());
        b.summary.ops_per_s = a.summary.ops_per_s * 1.5;
        let text = side_by_side(&[a, b], 3).render();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("run 4") && lines[0].contains("run 5"), "{text}");
        let row =
            |name: &str| lines.iter().find(|l| l.starts_with(name)).map(|l| l.split_whitespace().collect::<Vec<_>>());
        assert_eq!(row("$n"), Some(vec!["$n", "7", "13"]));
        assert_eq!(row("$only"), Some(vec!["$only", "-", "x"]));
        assert_eq!(row("$same"), None);
        assert!(text.contains("+50.0 %"), "{text}");
    }
}
