//! A replay beside its recording: the times of the classes of calls, and what came out otherwise.

use crate::result::{FlowopResult, Latency, NEVER_OPENED, Run, RunState};
use crate::util::count::{count, grouped, or_dash};
use crate::util::duration::{latency, span};
use crate::util::table::{Align, Table};
use crate::util::wrap::fill;
use std::collections::BTreeMap;

/// The headings of the table.
pub(crate) const HEADINGS: [&str; 8] = ["calls of", "number", "time", "recorded", "p50", "recorded", "p99", "recorded"];

/// The rows of the table; none for the run of a script.
pub(crate) fn rows(run: &Run) -> Vec<[String; 8]> {
    let row = |flowop: &FlowopResult| {
        let (here, recorded) = (flowop.latency_ns.shown(flowop.ops), flowop.recorded_ns?.shown(flowop.ops));
        let time = |of: Latency| or_dash(of.mean, |mean| span(mean * flowop.ops as f64 / 1e9));
        let ns = |ns: Option<u64>| or_dash(ns, |ns| latency(ns as f64));
        let (name, ops) = (flowop.name.clone(), grouped(flowop.ops));
        let [p50, p99] = [here.p50, here.p99].map(ns);
        let [recorded_p50, recorded_p99] = [recorded.p50, recorded.p99].map(ns);
        Some([name, ops, time(here), time(recorded), p50, recorded_p50, p99, recorded_p99])
    };
    run.flowops.iter().filter_map(row).collect()
}

/// The table in lines; `None` for the run of a script.
pub(super) fn table(run: &Run) -> Option<String> {
    let rows = rows(run);
    let mut table =
        Table::new(HEADINGS.map(|name| (name, if name == HEADINGS[0] { Align::Left } else { Align::Right })));
    let is_any = !rows.is_empty();
    rows.into_iter().for_each(|row| _ = table.row(row));
    is_any.then(|| table.render_compact(0))
}

/// What differs, in lines of at most `width` columns.
pub(super) fn differences(run: &Run, width: usize) -> String {
    let all = run.replay.iter().flat_map(|replay| &replay.differences);
    let label = |how: &str| if how == NEVER_OPENED { "note" } else { "differs" };
    all.map(|one| fill(&format!("{}: {}", label(&one.how), one.text()), width, "  ") + "\n").collect()
}

/// A labelled line for each figure of a replay.
pub(super) fn lines(run: &Run) -> Vec<(&'static str, String)> {
    let Some(replay) = &run.replay else { return Vec::new() };
    let mut lines = Vec::new();
    let of = if replay.replayed == replay.calls { String::new() } else { format!(" of {}", grouped(replay.calls)) };
    lines.push(("replayed", format!("{}{of}, by {}", count(replay.replayed, "call"), count(run.threads, "thread"))));
    let beside = |here: f64, recorded: f64| format!("{}, {} when recorded", span(here), span(recorded));
    lines.push(("elapsed", beside(run.measured_seconds, replay.recorded_seconds)));
    let waited = replay.recorded_runnable_seconds.filter(|seconds| *seconds > 0.0);
    let waited = waited.map_or_else(String::new, |seconds| format!(", {} of it without a processor", span(seconds)));
    let in_calls = beside(replay.call_seconds, replay.recorded_call_seconds);
    lines.push(("in calls", format!("{in_calls}{waited}")));
    let late = || run.flowops.iter().filter_map(|flowop| Some((flowop.ops as f64, flowop.lateness_ns?)));
    if let Some(most) = late().filter_map(|(_, late)| late.max).max() {
        let mean =
            late().map(|(ops, late)| ops * late.mean.unwrap_or(0.0)).sum::<f64>() / run.summary.ops.max(1) as f64;
        lines.push(("lateness", format!("{} in the mean, {} at most", latency(mean), latency(most as f64))));
    }
    let listed = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(name, n)| format!("{} {name}", grouped(*n))).collect::<Vec<_>>().join(", ")
    };
    if !replay.not_replayed.is_empty() {
        lines.push(("not replayed", listed(&replay.not_replayed)));
    }
    if replay.plain_calls > 0 {
        lines.push(("io_uring", format!("{} as plain calls", count(replay.plain_calls, "operation"))));
    }
    if !replay.own_values.is_empty() {
        lines.push(("own values", listed(&replay.own_values)));
    }
    if !replay.failed_alike.is_empty() {
        lines.push(("failed alike", listed(&replay.failed_alike)));
    }
    if !replay.calls_differ.is_empty() {
        lines.push(("calls differ", listed(&replay.calls_differ)));
    }
    if !matches!(run.state, RunState::Interrupted | RunState::LowSpace) {
        lines.push(("names at end", format!("{}, {} differ", grouped(replay.names), grouped(replay.names_differ))));
    }
    if !replay.command.is_empty() {
        lines.push(("recorded", replay.command.join(" ")));
    }
    lines
}

/// The labels of these lines that a screen shows.
pub(crate) const SHOWN: [&str; 9] = [
    "replayed",
    "elapsed",
    "in calls",
    "lateness",
    "not replayed",
    "own values",
    "failed alike",
    "calls differ",
    "names at end",
];
