//! The requests of open loops: a row for each thread definition, and for each `measure=` in it.
//!
//! A request is an iteration of a thread. Its response times are those of the last step that every request passes, or of
//! the `measure=` of the thread; where requests take several ways, only a `measure=` tells.

use super::columns::{time_headings_on, times_on};
use crate::result::{FlowopResult, MEASURE, Run, ThreadRequests};
use crate::util::count::{count, grouped, measured, or_dash};
use crate::util::duration::latency;
use crate::util::printable;
use crate::util::table::{Align, Table};
use crate::util::wrap::fill;
use std::collections::HashMap;

/// The largest difference of the rates of a step and of the requests that pass it: some are in flight at the end.
const MAX_DIFFERENCE: f64 = 0.02;
/// The longest name of a flowop or of requests in a table; longer ones lose their middle.
pub(crate) const MAX_NAME_WIDTH: usize = 22;

/// A row of the table.
pub(crate) struct RequestRow<'a> {
    /// The thread definition, or the `measure=`, after two blanks.
    pub(crate) name: String,
    /// `None` for a row of `measure=`.
    pub(crate) requests: Option<&'a ThreadRequests>,
    pub(crate) per_s: f64,
    /// The flowop that has the response times.
    pub(crate) step: Option<&'a FlowopResult>,
}

impl RequestRow<'_> {
    /// True if nothing in the script says what the response time of its requests is.
    fn has_no_times(&self) -> bool {
        self.step.is_none() && self.requests.is_some_and(|requests| requests.mixed && requests.achieved_per_s > 0.0)
    }

    /// The cells on a screen of this width. No percentile of few operations is shown.
    pub(crate) fn cells(&self, width: usize) -> impl Iterator<Item = String> {
        let figures = [
            or_dash(self.requests, |requests| measured(requests.offered_per_s)),
            measured(self.per_s),
            or_dash(self.requests, |requests| grouped(requests.backlog)),
        ];
        let times: Vec<String> = match self.step {
            Some(step) => times_on(width, step.response_ns.unwrap_or_default(), step.ops).collect(),
            None => time_headings_on(width).map(|_| String::new()).collect(),
        };
        figures.into_iter().chain(times)
    }
}

/// The headings on a screen of this width.
pub(crate) fn headings(width: usize) -> impl Iterator<Item = &'static str> {
    ["arrived/s", "done/s", "backlog"].into_iter().chain(time_headings_on(width))
}

/// Returns the requests of a run in lines of at most `width` columns; nothing for a run without open loops, or an earlier
/// result. Of more than `most` rows the last ones are counted.
pub(super) fn table(run: &Run, width: usize, most: usize) -> Option<String> {
    let open = run.open_loop.as_ref().filter(|open| !open.threads.is_empty())?;
    let rows = rows(run);
    let left_out = rows.len().saturating_sub(most);
    let headings = headings(width).map(|column| (column, Align::Right));
    let mut table = Table::new([("requests", Align::Left)].into_iter().chain(headings));
    for row in &rows[..rows.len() - left_out] {
        let name = printable::within(&row.name, MAX_NAME_WIDTH).into_owned();
        table.row([name].into_iter().chain(row.cells(width)));
    }
    let mut text = table.render_within(width);
    if let Some(row) = rows.iter().find(|row| row.has_no_times()) {
        let why = format!("response times of `{}`, a mix, need a `measure=` in each of its ways", row.name);
        text += &(fill(&why, width, "  ") + "\n");
    }
    if left_out > 0 {
        text += &format!("… {left_out} more (-v)\n");
    }
    if open.backlog > 0 {
        let (behind, oldest) = (count(open.backlog, "request"), latency(open.backlog_oldest_seconds * 1e9));
        text += &(fill(&format!("backlog at the end: {behind}, the oldest overdue by {oldest}"), width, "  ") + "\n");
    }
    Some(text)
}

/// Returns the rows; none for a run without open loops, or an earlier result.
pub(crate) fn rows(run: &Run) -> Vec<RequestRow<'_>> {
    let Some(open) = &run.open_loop else { return Vec::new() };
    let mut threads: HashMap<&str, usize> = HashMap::new();
    open.threads.iter().for_each(|requests| *threads.entry(&requests.thread).or_default() += 1);
    let mut flowops: HashMap<(&str, &str), Vec<&FlowopResult>> = HashMap::new();
    for flowop in run.flowops.iter().filter(|flowop| flowop.response_ns.is_some()) {
        flowops.entry((&flowop.process, &flowop.thread)).or_default().push(flowop);
    }
    let mut rows = Vec::new();
    for requests in &open.threads {
        let its = flowops.get(&(requests.process.as_str(), requests.thread.as_str()));
        let paced = || its.into_iter().flatten().copied();
        let per_s = requests.achieved_per_s;
        let passes_all = |f: &&FlowopResult| (f.ops_per_s - per_s).abs() <= MAX_DIFFERENCE * per_s;
        let is_of_all = |f: &&FlowopResult| !requests.mixed || f.kind == MEASURE;
        let mean = |f: &FlowopResult| f.response_ns.and_then(|times| times.mean).unwrap_or(0.0);
        let last = paced().filter(passes_all).filter(is_of_all).max_by(|a, b| mean(a).total_cmp(&mean(b)));
        let name = match threads[requests.thread.as_str()] > 1 {
            true => format!("{}.{}", requests.process, requests.thread),
            false => requests.thread.clone(),
        };
        rows.push(RequestRow { name, requests: Some(requests), per_s, step: last });
        let measures = paced().filter(|flowop| flowop.kind == MEASURE);
        let is_shown = |flowop: &&FlowopResult| !last.is_some_and(|last| std::ptr::eq(last, *flowop));
        rows.extend(measures.filter(is_shown).map(|flowop| RequestRow {
            name: format!("  {}", flowop.name),
            requests: None,
            per_s: flowop.ops_per_s,
            step: Some(flowop),
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::result::fixture::fixture;
    use crate::result::{Latency, OpenLoop};

    /// A run with an open loop in each of two thread definitions, of which one has a mix.
    fn run() -> Run {
        let mut run = fixture().runs.remove(0);
        let like = run.flowops[0].clone();
        let step = |thread: &str, name: &str, kind: &str, per_s: f64, mean: f64| FlowopResult {
            process: "p".into(),
            thread: thread.into(),
            name: name.into(),
            kind: kind.into(),
            ops: (per_s * 60.0) as u64,
            ops_per_s: per_s,
            response_ns: Some(Latency { mean: Some(mean), p50: Some(mean as u64), ..like.latency_ns }),
            ..like.clone()
        };
        run.flowops = vec![
            step("upload", "create", "createfile", 300.0, 1e6),
            step("upload", "write", "write", 300.0, 3e6),
            step("upload", "chunk", "write", 900.0, 9e6),
            step("mixed", "a", "read", 40.0, 1e6),
            step("mixed", "b", "write", 60.0, 2e6),
            step("mixed", "view", "measure", 40.0, 4e6),
        ];
        let requests = |thread: &str, offered_per_s, achieved_per_s, backlog| ThreadRequests {
            process: "p".into(),
            thread: thread.into(),
            offered_per_s,
            achieved_per_s,
            backlog,
            ..ThreadRequests::default()
        };
        let mut threads = vec![requests("upload", 300.0, 300.0, 0), requests("mixed", 110.0, 100.0, 600)];
        threads[1].mixed = true;
        run.open_loop = Some(OpenLoop {
            offered_per_s: 410.0,
            achieved_per_s: 400.0,
            backlog: 600,
            backlog_oldest_seconds: 2.5,
            threads,
            ..OpenLoop::default()
        });
        run
    }

    #[test]
    fn the_response_is_that_of_the_last_step_of_all_requests() {
        insta::assert_snapshot!(table(&run(), 100, 10).unwrap());
    }

    /// An alternative may have as many operations as there are requests.
    #[test]
    fn no_step_of_a_mix_is_that_of_all_requests() {
        let mut run = run();
        run.flowops[3].ops_per_s = 100.0;
        let of_mix = rows(&run).into_iter().find(|row| row.name == "mixed");
        assert!(of_mix.unwrap().step.is_none());
    }

    #[test]
    fn rows_are_counted_and_lines_fit() {
        let text = table(&run(), 80, 2).unwrap();
        assert!(text.contains("… 1 more (-v)") && !text.contains("p99.9"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let mut earlier = run();
        earlier.open_loop.as_mut().unwrap().threads.clear();
        assert_eq!(table(&earlier, 80, 2), None);
    }
}
