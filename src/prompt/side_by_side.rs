//! Runs side by side as a table: first the variables that differ, then what was modelled, then the results.

use crate::flowop::MEASURE;
use crate::report::requests::{MAX_NAME_WIDTH, RequestRow, rows};
use crate::report::screen::time_of;
use crate::report::text::FlowopLabels;
use crate::result::{FlowopResult, Latency, Run, RunState, ThreadRequests};
use crate::util::count::{grouped, measured, or_dash};
use crate::util::duration::latency;
use crate::util::printable;
use crate::util::table::{Align, Table};
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeSet, HashMap};

/// A row: its name, the figure of each run as text, and for the change as a number.
type ComparedRow = (String, Vec<String>, Vec<Option<f64>>);

/// Rows that are shown or left out together.
struct RowGroup {
    rows: Vec<ComparedRow>,
    /// The time that its operations took, which is infinite for requests. `None` if it is never left out.
    time: Option<f64>,
}

/// Returns the table with runs as columns, as wide as the screen, and a line that counts what it leaves out: the flowops
/// that took the least time, until it fits. `first` is the index of the first of the runs in the session. `all`: leave
/// nothing out, and add the steps of requests.
pub(super) fn table(runs: &[Run], first: usize, all: bool, columns: Option<usize>, lines: Option<usize>) -> String {
    let groups = groups(runs, all);
    // In the order in which they go: of several that took the same time the last one goes first.
    let mut by_time: Vec<usize> = (0..groups.len()).filter(|n| groups[*n].time.is_some()).collect();
    by_time.sort_by(|m, n| groups[*m].time.unwrap_or(0.0).total_cmp(&groups[*n].time.unwrap_or(0.0)).then(n.cmp(m)));
    let without = |left_out: usize| {
        let gone: BTreeSet<usize> = by_time[..left_out].iter().copied().collect();
        let shown: Vec<&RowGroup> =
            groups.iter().enumerate().filter(|(n, _)| !gone.contains(n)).map(|(_, group)| group).collect();
        let more = if left_out > 0 { format!("… {left_out} more (`compare -v`)\n") } else { String::new() };
        drawn(runs, first, &shown, columns) + &more
    };
    let fits = |text: &str| all || lines.is_none_or(|lines| text.lines().count() <= lines);
    let whole = without(0);
    if fits(&whole) {
        return whole;
    }
    let numbers: Vec<usize> = (1..by_time.len()).collect();
    without(numbers.partition_point(|left_out| !fits(&without(*left_out))) + usize::from(!by_time.is_empty()))
}

fn drawn(runs: &[Run], first: usize, groups: &[&RowGroup], columns: Option<usize>) -> String {
    let names: Vec<String> = (0..runs.len()).map(|i| format!("run {}", first + i + 1)).collect();
    let has_change = runs.len() == 2;
    let headings = std::iter::once(("", Align::Left))
        .chain(names.iter().map(|name| (name.as_str(), Align::Right)))
        .chain(has_change.then_some(("change", Align::Right)));
    let mut table = Table::new(headings);
    for (name, cells, values) in groups.iter().flat_map(|group| &group.rows) {
        let change = match values[..] {
            [Some(a), Some(b)] if has_change && a > 0.0 => format!("{:+.1} %", (b / a - 1.0) * 100.0),
            _ => String::new(),
        };
        table.row([name.as_str()].into_iter().chain(cells.iter().map(String::as_str)).chain([change.as_str()]));
    }
    table.render_fitted(columns)
}

/// Returns the row of a figure, unless none has it. `all`: what has the figure in each run.
fn figure<T>(all: &[T], name: String, of: impl Fn(&T) -> Option<f64>, form: fn(f64) -> String) -> Option<ComparedRow> {
    let values: Vec<Option<f64>> = all.iter().map(of).collect();
    let cells = values.iter().map(|value| or_dash(*value, form)).collect();
    values.iter().any(Option::is_some).then_some((name, cells, values))
}

/// Returns the rows of latencies: those of these percentiles that a run has enough operations for, or else the mean.
/// `of`: the operations of a run, and their latencies.
fn times<T>(all: &[T], name: &str, medians: bool, of: impl Fn(&T) -> Option<(u64, Latency)>) -> Vec<ComparedRow> {
    let shown = |one: &T| of(one).map(|(ops, times)| times.shown(ops));
    let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let median = || figure(all, format!("{name}p50"), |one| ns(shown(one)?.p50), latency);
    let mut rows: Vec<ComparedRow> = medians.then(median).flatten().into_iter().collect();
    let p99 = figure(all, format!("{name}p99"), |one| ns(shown(one)?.p99), latency);
    rows.extend(p99.or_else(|| figure(all, format!("{name}mean"), |one| shown(one)?.mean, latency)));
    rows
}

fn groups(runs: &[Run], all: bool) -> Vec<RowGroup> {
    let whole = |rows: Vec<ComparedRow>| RowGroup { rows, time: None };
    let words = |name: String, of: &dyn Fn(&Run) -> String| (name, runs.iter().map(of).collect(), Vec::new());
    let mut head: Vec<ComparedRow> =
        differing(runs).iter().map(|name| words(format!("${name}"), &|run| value_in(run, name))).collect();
    if runs.iter().any(|run| run.state != RunState::Complete) {
        head.push(words("ended".to_owned(), &|run| run.state.name().to_owned()));
    }
    head.push(words("seconds".to_owned(), &|run| format!("{:.1}", run.measured_seconds)));
    let mut groups = vec![whole(head)];
    groups.extend(request_groups(runs));

    let flowops = distinct(runs);
    let labels = FlowopLabels::among(&flowops);
    let of_runs: Vec<HashMap<FlowopKey<'_>, &FlowopResult>> =
        runs.iter().map(|run| run.flowops.iter().rev().map(|flowop| (key_of(flowop), flowop)).collect()).collect();
    let group = |flowop: &FlowopResult, responses: bool| {
        let label = labels.short(flowop);
        let same: Vec<Option<&FlowopResult>> = of_runs.iter().map(|run| run.get(&key_of(flowop)).copied()).collect();
        let rate = figure(&same, format!("{label} ops/s"), |flowop| Some((*flowop)?.ops_per_s), measured);
        let mut rows: Vec<ComparedRow> = rate.into_iter().collect();
        rows.extend(times(&same, &format!("{label} "), false, |flowop| flowop.map(|f| (f.ops, f.latency_ns))));
        if responses {
            let name = format!("{label} response ");
            rows.extend(times(&same, &name, false, |flowop| flowop.and_then(|f| Some((f.ops, f.response_ns?)))));
        }
        let time = same.iter().flatten().copied().map(time_of).fold(0.0, f64::max);
        RowGroup { rows, time: Some(time) }
    };
    // Those of open loops are requests.
    let measures = flowops.iter().filter(|flowop| flowop.kind == MEASURE.name && flowop.response_ns.is_none());
    groups.extend(measures.map(|flowop| group(flowop, false)));
    let sum = |run: &Run| Some((run.summary.ops, run.summary.latency_ns));
    let mut summary: Vec<Option<ComparedRow>> = vec![
        figure(runs, "ops/s".to_owned(), |run| Some(run.summary.ops_per_s), measured),
        figure(runs, "MiB/s".to_owned(), |run| Some(run.summary.mib_per_s), measured),
        figure(runs, "mean latency".to_owned(), |run| run.summary.latency_ns.mean, latency),
        figure(runs, "p99".to_owned(), |run| Some(sum(run)?.1.shown(sum(run)?.0).p99? as f64), latency),
    ];
    if runs.iter().any(|run| run.summary.errors > 0) {
        summary.push(figure(runs, "errors".to_owned(), |run| Some(run.summary.errors as f64), measured));
    }
    groups.push(whole(summary.into_iter().flatten().collect()));
    groups.extend(flowops.iter().filter(|flowop| flowop.class.is_io()).map(|flowop| group(flowop, all)));
    groups
}

/// The thread definition of a `measure=`, and the name of the row.
type RequestKey = (String, String);

/// The requests of a run with their keys.
fn keyed(run: &Run) -> Vec<(RequestKey, RequestRow<'_>)> {
    let mut thread = String::new();
    let mut key = |row: &RequestRow<'_>| -> RequestKey {
        if row.requests.is_some() {
            thread.clone_from(&row.name);
            return (String::new(), row.name.clone());
        }
        (thread.clone(), row.name.trim().to_owned())
    };
    rows(run).into_iter().map(|row| (key(&row), row)).collect()
}

/// The requests of each thread definition with an open loop, and of each `measure=` in it.
fn request_groups(runs: &[Run]) -> Vec<RowGroup> {
    let all: Vec<IndexMap<RequestKey, RequestRow<'_>>> =
        runs.iter().map(|run| keyed(run).into_iter().collect()).collect();
    let keys: IndexSet<&RequestKey> = all.iter().flat_map(IndexMap::keys).collect();
    let mut of_name: HashMap<&str, usize> = HashMap::new();
    keys.iter().for_each(|(_, name)| *of_name.entry(name).or_default() += 1);
    let group = |key: &&RequestKey| {
        let name = if of_name[key.1.as_str()] == 1 { key.1.clone() } else { format!("{}.{}", key.0, key.1) };
        let name = printable::within(name.trim_start_matches('.'), MAX_NAME_WIDTH).into_owned();
        let found: Vec<Option<&RequestRow<'_>>> = all.iter().map(|rows| rows.get(*key)).collect();
        let requests: Vec<Option<&ThreadRequests>> = found.iter().map(|row| (*row)?.requests).collect();
        let arrived = figure(&requests, format!("{name} arrived/s"), |of| Some((*of)?.offered_per_s), measured);
        let done = figure(&found, format!("{name} done/s"), |row| Some((*row)?.per_s), measured);
        let mut shown: Vec<ComparedRow> = arrived.into_iter().chain(done).collect();
        if requests.iter().flatten().any(|requests| requests.backlog > 0) {
            let form = |requests: f64| grouped(requests as u64);
            shown.extend(figure(&requests, format!("{name} backlog"), |of| Some((*of)?.backlog as f64), form));
        }
        shown.extend(times(&found, &format!("{name} response "), true, |row| {
            let step = (*row)?.step?;
            Some((step.ops, step.response_ns?))
        }));
        RowGroup { rows: shown, time: Some(f64::INFINITY) }
    };
    keys.iter().map(group).collect()
}

/// The process, the thread and the name of a flowop.
type FlowopKey<'a> = (&'a str, &'a str, &'a str);

fn key_of(flowop: &FlowopResult) -> FlowopKey<'_> {
    (&flowop.process, &flowop.thread, &flowop.name)
}

/// The flowops of all runs, in order of first occurrence, each as the first run has it.
fn distinct(runs: &[Run]) -> Vec<&FlowopResult> {
    let mut seen = BTreeSet::new();
    let all = runs.iter().flat_map(|run| &run.flowops);
    all.filter(|flowop| seen.insert(key_of(flowop))).collect()
}

/// Returns the names of the variables whose values differ between runs.
pub(super) fn differing(runs: &[Run]) -> Vec<&str> {
    let names: BTreeSet<&str> = runs.iter().flat_map(|r| r.variables.keys()).map(String::as_str).collect();
    names.into_iter().filter(|n| runs.iter().any(|r| r.variables.get(*n) != runs[0].variables.get(*n))).collect()
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
    use crate::result::{FlowopClass, OpenLoop, ThreadRequests};

    /// A run of two open loops and a closed one, with a transaction in each kind.
    fn run() -> Run {
        let mut run = fixture().runs.remove(0);
        let like = run.flowops[0].clone();
        let of = |thread: &str, name: &str| FlowopResult {
            process: "p".to_owned(),
            thread: thread.to_owned(),
            name: name.to_owned(),
            ops: 100_000,
            ops_per_s: 150.0,
            ..like.clone()
        };
        let response_ns = Some(like.latency_ns);
        let measure = || (MEASURE.name.to_owned(), FlowopClass::Other);
        let (kind, class) = measure();
        run.flowops = vec![
            FlowopResult { response_ns, ..of("upload", "write") },
            FlowopResult { response_ns, kind, class, ops_per_s: 12.0, ..of("upload", "album") },
            FlowopResult { response_ns, ..of("view", "read") },
            of("batch", "scan"),
        ];
        let (kind, class) = measure();
        run.flowops.push(FlowopResult { kind, class, ..of("batch", "query") });
        let requests = |thread: &str, backlog| ThreadRequests {
            process: "p".to_owned(),
            thread: thread.to_owned(),
            offered_per_s: 200.0,
            achieved_per_s: 150.0,
            backlog,
            ..ThreadRequests::default()
        };
        let threads = vec![requests("upload", 3), requests("view", 0)];
        run.open_loop = Some(OpenLoop { threads, ..OpenLoop::default() });
        run
    }

    /// The names of the rows.
    fn names(text: &str) -> Vec<&str> {
        let name = |line: &str| line.split("  ").next().map(str::trim).filter(|name| !name.is_empty()).map(str::len);
        text.lines().filter_map(|line| Some(&line[..name(line)?])).collect()
    }

    #[test]
    fn what_was_modelled_is_before_what_was_called() {
        let (a, mut b) = (run(), run());
        b.open_loop.as_mut().into_iter().flat_map(|open| &mut open.threads).for_each(|t| t.achieved_per_s = 180.0);
        let runs = [a, b];
        let text = table(&runs, 0, false, None, None);
        let rows = names(&text);
        let at = |name: &str| rows.iter().position(|row| *row == name).unwrap_or(usize::MAX);
        let order = ["upload arrived/s", "upload done/s", "upload backlog", "upload response p50"];
        let order = [&order[..], &["view arrived/s", "query ops/s", "ops/s", "write ops/s"]].concat();
        let order: Vec<usize> = order.into_iter().map(at).collect();
        assert!(order.is_sorted() && order.last() < Some(&usize::MAX), "{order:?}\n{text}");
        assert!(text.contains("+20.0 %") && at("view backlog") == usize::MAX, "{text}");
        assert!(at("write response p99") == usize::MAX, "{text}");
        assert!(table(&runs, 0, true, None, None).contains("write response p99"));
    }

    #[test]
    fn the_least_time_is_left_out_first_and_requests_last() {
        let (mut a, b) = (run(), run());
        let like = a.flowops[3].clone();
        let rare = |n: u64| FlowopResult { name: format!("rare{n}"), ops: n, ..like.clone() };
        a.flowops.extend((1..=20).map(rare));
        let runs = [a, b];
        let all = table(&runs, 0, true, Some(80), Some(20)).lines().count();
        assert!(all > 60, "{all} lines");
        for lines in [30, 22, 16] {
            let text = table(&runs, 0, false, Some(80), Some(lines));
            assert!(text.lines().count() <= lines, "{lines} lines:\n{text}");
            assert!(text.ends_with(" more (`compare -v`)\n") && text.contains("upload arrived/s"), "{text}");
            assert!(!text.contains("rare1 ") && text.contains("\nops/s "), "{text}");
        }
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
        let text = table(&[a, b], 3, false, None, None);
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
