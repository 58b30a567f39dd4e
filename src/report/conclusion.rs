//! The end of the text report: a line for each warning, and the result in one line.

use crate::result::warning_order::{ListedWarning, WarningKind, listed};
use crate::result::{Document, Run, RunState};
use crate::util::count::{count, measured};
use crate::util::duration::latency;
use crate::util::wrap::{fill, fill_list};

/// Returns the end of the report of a run in lines of at most `width` columns, with at most `most` lines if it can be:
/// the last warnings are left out and counted, but none that says that the figures are wrong.
pub(super) fn text(width: usize, most: Option<usize>, document: &Document, run: &Run) -> String {
    let result = limits(width, run) + &result(width, run);
    let all = listed(document, run);
    let mut shown = all.len();
    loop {
        let text = warnings(width, &all[..shown], all.len() - shown) + &result;
        let may_go = all[..shown].last().is_some_and(|warning| warning.kind != WarningKind::Wrong);
        if !may_go || most.is_none_or(|most| text.lines().count() <= most) {
            return text;
        }
        shown -= 1;
    }
}

/// Returns the lines of warnings, each with the code that `wmlrun explain` knows: the advice would hide the table.
fn warnings(width: usize, shown: &[ListedWarning], left_out: usize) -> String {
    let mut text = String::new();
    for ListedWarning { code, message, .. } in shown {
        text += &(fill(&format!("warning[{code}]: {message}"), width, "  ") + "\n");
    }
    if left_out > 0 {
        text += &format!("… {} (-v)\n", count(left_out as u64, "more warning"));
    }
    let advised: Vec<&ListedWarning> = shown.iter().filter(|warning| warning.advice.is_some()).collect();
    text += &match advised[..] {
        [] => String::new(),
        [only] => format!("  = help: for advice, `wmlrun explain {}`\n", only.code),
        [first, ..] => format!("  = help: for advice, `wmlrun explain CODE`, such as `{}`\n", first.code),
    };
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Returns a line for each limit.
fn limits(width: usize, run: &Run) -> String {
    let lines = run.limits.iter().map(|limit| format!("limit {}: {}", limit.title(), limit.text));
    let text: String = lines.map(|line| fill(&line, width, "  ") + "\n").collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Returns the result of a run in one line, which is the last one on the screen.
fn result(width: usize, run: &Run) -> String {
    let s = &run.summary;
    let mut parts = if run.state == RunState::Complete { Vec::new() } else { vec![run.state.name().replace('_', " ")] };
    let waiting: Vec<String> =
        run.phases.iter().filter(|phase| phase.start_seconds.is_none()).map(|phase| phase.number.to_string()).collect();
    match waiting.len() {
        0 => {}
        1 => parts.push(format!("phase {} not started", waiting[0])),
        _ => parts.push(format!("phases {} not started", waiting.join(", "))),
    }
    if s.ops == 0 {
        parts.push("no I/O operation".to_owned());
    } else {
        parts.push(format!("{} ops/s", measured(s.ops_per_s)));
        if s.mib_per_s > 0.0 {
            parts.push(format!("{} MiB/s", measured(s.mib_per_s)));
        }
        if let Some(open) = &run.open_loop {
            // The time of the calls would be read as that of the requests.
            let (achieved, offered) = (measured(open.achieved_per_s), measured(open.offered_per_s));
            parts.push(format!("achieved {achieved} of {offered} requests/s"));
        } else {
            parts.extend(s.latency_ns.mean.map(|ns| format!("mean {}", latency(ns))));
            parts.extend(s.latency_ns.shown(s.ops).p99.map(|ns| format!("p99 {}", latency(ns as f64))));
        }
    }
    let gap = if run.limits.is_empty() { "\n" } else { "" };
    format!("{gap}{}\n", fill_list(&format!("result: {}", parts.join(", ")), width))
}
