//! The text report for people: heading, table of flowops, latency histograms, details. Not here: its warnings and
//! its last line (`conclusion`).
//!
//! Lines fit a terminal of 80 columns, except for paths and longer words. Rows are in order of definition, with I/O flowops first.

use super::columns::{figures, headings, percentiles_note};
use super::histogram::Axis;
use super::names::heading;
use super::requests::MAX_NAME_WIDTH;
use super::{Report, ReportInfo, conclusion, devices, hosts};
use crate::result::hdr;
use crate::result::ranks::of_instances;
use crate::result::snapshot::Dist;
use crate::result::warnings;
use crate::result::{Document, FilesetResult, FlowopResult, PhaseResult, Run, divided_times};
use crate::spec::dialect::Dialect;
use crate::util::count::{count, grouped, measured, or_dash};
use crate::util::duration::{latency, seconds};
use crate::util::printable;
use crate::util::size;
use crate::util::table::{Align, Table};
use crate::util::wrap::{WIDTH, fill_list, wrapped};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// What `--format text` is.
pub(super) const ABOUT: &str = "a table, latency distributions, and warnings with advice";

/// `--format text -v`, the whole report.
pub struct Text;

/// The engine of most runs.
const USUAL_ENGINE: &str = "posix";
/// Maximum number of histograms. The flowops with the most operations are shown.
const MAX_HISTOGRAMS: usize = 10;
/// If more flowops never ran, none of them has a row.
const MOST_IDLE: usize = 10;
/// Maximum width of the histograms' axis, in characters.
const MAX_AXIS_WIDTH: usize = 64;

impl Report for Text {
    fn info(&self) -> ReportInfo {
        ReportInfo { has_warnings: true, ..ReportInfo::for_people("text", ABOUT) }
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        write_run(document, index, out)
    }

    /// Writes no warnings, since they refer to the whole run.
    fn interim(&self, document: &Document, apart: bool, out: &mut dyn Write) -> io::Result<()> {
        let document = &*super::format::visible(document);
        let Some(run) = document.runs.first() else { return Ok(()) };
        body(document, run, &so_far(document, run, apart), out)?;
        writeln!(out)
    }
}

/// Writes the report of a run.
fn write_run(document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
    // The others are not examined for each of many runs.
    let part = document.with_run(index);
    let shown = &*super::format::visible(&part);
    let Some(run) = shown.runs.first() else { return Ok(()) };
    if index > 0 {
        writeln!(out)?;
    }
    let by = if run.ended_by.is_empty() { String::new() } else { format!(" ({})", run.ended_by) };
    body(shown, run, &(ended(shown, run, (document.runs.len() > 1).then_some(index + 1)) + &by), out)?;
    out.write_all(conclusion::text(WIDTH, None, shown, run).as_bytes())
}

/// Returns the heading of a run that has ended. `number`: its number, if the document has several runs.
pub(super) fn ended(shown: &Document, run: &Run, number: Option<usize>) -> String {
    let number = number.map(|number| format!(", run {number}")).unwrap_or_default();
    let state = run.state.name().replace('_', " ");
    format!("{}{number}: {state} after {}", heading(shown, run), seconds(run.measured_seconds))
}

/// Returns the heading of figures that are written during a run.
pub(super) fn so_far(document: &Document, run: &Run, apart: bool) -> String {
    let of = if apart { "the last" } else { "after" };
    format!("{}: so far, {of} {}", heading(document, run), seconds(run.measured_seconds))
}

/// Writes a heading and all figures of a run.
fn body(document: &Document, run: &Run, heading: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{heading}")?;
    load(document, run, out)?;
    if !run.flowops.is_empty() {
        writeln!(out, "\n{}", table(run).trim_end())?;
        percentiles_note(run, usize::MAX).iter().try_for_each(|note| writeln!(out, "{note}"))?;
    }
    hosts::write(run, out)?;
    super::replay::table(run).iter().try_for_each(|table| write!(out, "\n{table}"))?;
    distributions(run, out)?;
    if let Some(requests) = super::requests::table(run, WIDTH, usize::MAX) {
        write!(out, "\n{requests}")?;
    }
    open_loop(run, out)?;
    details(run, out)?;
    out.write_all(super::replay::differences(run, WIDTH).as_bytes())
}

/// Returns the size and the conditions of the workload: also what is usual, or only what is not.
pub(crate) fn conditions(document: &Document, run: &Run, usual: bool) -> Vec<String> {
    let mut load = vec![count(run.processes, "process"), count(run.threads, "thread")];
    match &run.open_loop {
        Some(_) => load.push("open loop".to_owned()),
        None if usual => load.push("closed loop".to_owned()),
        None => {}
    }
    if !run.engine.is_empty() && (usual || run.engine != USUAL_ENGINE) {
        load.push(format!("engine {}", run.engine));
    }
    if document.script.dialect == Dialect::Sun.name() {
        load.push(format!("dialect {}", document.script.dialect));
    }
    load.push(format!("cache {}", run.cache_state.name()));
    if usual {
        load.push(format!("seed {}", document.seed));
    }
    load
}

/// Writes the label and the note of the result, the size and the conditions of the workload, and a line for each file
/// set.
fn load(document: &Document, run: &Run, out: &mut dyn Write) -> io::Result<()> {
    for (name, text) in document.annotations() {
        writeln!(out, "{}", wrapped(&format!("  {name}: {text}"), "    "))?;
    }
    writeln!(out, "{}", fill_list(&format!("  {}", conditions(document, run, true).join(", ")), WIDTH))?;
    file_set_lines(document, run)
        .iter()
        .try_for_each(|line| writeln!(out, "{}", fill_list(&format!("  {line}"), WIDTH)))
}

/// Returns a line for each file set.
pub(super) fn file_set_lines(document: &Document, run: &Run) -> Vec<String> {
    of_instances(&run.filesets).iter().map(|set| set_line(document, run, set)).collect()
}

/// Returns the line of a file set: file system, device, size as a multiple of memory, resident share.
fn set_line(document: &Document, run: &Run, (instances, set): &(usize, FilesetResult)) -> String {
    let place = warnings::mount_of(run, &set.path)
        .map_or_else(|| set.path.clone(), |mount| format!("{} on {}", mount.kind, mount.source));
    let memory = run.memory(document);
    let multiple = (memory > 0).then(|| of_memory(set.bytes as f64 / memory as f64));
    let resident = set.resident_before.map(|share| format!(", {:.0} % in memory", share * 100.0));
    let (files, bytes) = (count(set.files, "file"), size::format(set.bytes));
    let name = instances_of(set, *instances);
    [format!("{name}: {place}, {files}, {bytes}"), multiple.unwrap_or_default(), resident.unwrap_or_default()].concat()
}

/// Returns a size in relation to the memory; nothing if it is below a thousandth.
fn of_memory(share: f64) -> String {
    match share {
        1.0.. => format!(" = {share:.2} × memory"),
        0.1.. => format!(" = {:.0} % of memory", share * 100.0),
        0.001.. => format!(" = {:.1} % of memory", share * 100.0),
        _ => String::new(),
    }
}

/// Returns the name of a file set, and the number of sets for which it stands if there are several.
fn instances_of(set: &FilesetResult, instances: usize) -> String {
    if instances > 1 { format!("{} × {instances}", set.name) } else { set.name.clone() }
}

fn table(run: &Run) -> String {
    let names = FlowopLabels::of(run);
    let columns = headings().into_iter().map(|heading| (heading, Align::Right));
    let mut table = Table::new([("flowop", Align::Left)].into_iter().chain(columns));
    let row = |flowop: &FlowopResult| {
        let mut cells = vec![names.label(flowop)];
        cells.extend(figures(flowop));
        cells
    };
    let (shown, idle) = with_rows(run);
    let (io, other): (Vec<_>, Vec<_>) = shown.into_iter().map(|(_, flowop)| flowop).partition(|f| f.class.is_io());
    for flowop in io {
        table.row(row(flowop));
    }
    let mut total = vec!["all I/O".to_owned()];
    total.extend(figures(&run.summary));
    table.rule().row(total);
    if !other.is_empty() {
        table.rule();
        for flowop in other {
            table.row(row(flowop));
        }
    }
    table.render_within(WIDTH) + &never_ran(idle).map(|line| format!("… {line}\n")).unwrap_or_default()
}

/// The flowops of a run that have a row, with their places, and the number of the others: of many that never ran none has one.
pub(super) fn with_rows(run: &Run) -> (Vec<(usize, &FlowopResult)>, usize) {
    let all = || run.flowops.iter().enumerate();
    // One that was not done at the end, or only waited for a file, has begun.
    let began = |f: &FlowopResult| f.ops > 0 || !f.errors.is_empty() || f.late_ops > 0 || f.starved_seconds > 0.0;
    let ran: Vec<(usize, &FlowopResult)> = all().filter(|(_, f)| began(f)).collect();
    let idle = run.flowops.len() - ran.len();
    if ran.is_empty() || idle <= MOST_IDLE { (all().collect(), 0) } else { (ran, idle) }
}

/// What stands in place of flowops that never ran; `None` without any.
pub(super) fn never_ran(idle: usize) -> Option<String> {
    (idle > 0).then(|| format!("{} never ran (`--json FILE` has them)", count(idle as u64, "other flowop")))
}

/// Labels that distinguish the flowops of a run, as short as possible.
pub(crate) struct FlowopLabels {
    /// Names that several flowops share.
    shared: BTreeSet<String>,
    /// Whether labels need the process, since thread and name are ambiguous.
    with_process: bool,
    /// The number of characters to which no two labels are shortened to the same.
    width: usize,
}

impl FlowopLabels {
    pub(crate) fn of(run: &Run) -> Self {
        Self::among(&run.flowops.iter().collect::<Vec<_>>())
    }

    /// The same for the flowops of several runs, each of them once.
    pub(crate) fn among(flowops: &[&FlowopResult]) -> Self {
        let (mut names, mut pairs) = (BTreeSet::new(), BTreeSet::new());
        let shared = flowops.iter().filter(|f| !names.insert(&f.name)).map(|f| f.name.clone()).collect();
        let distinct = flowops.iter().all(|f| pairs.insert((&f.thread, &f.name)));
        let mut found = Self { shared, with_process: !distinct, width: MAX_NAME_WIDTH };
        let labels: BTreeSet<String> = flowops.iter().map(|flowop| found.label(flowop)).collect();
        let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
        let shortened =
            |width| labels.iter().map(|label| printable::within(label, width)).collect::<BTreeSet<_>>().len();
        while found.width < longest && shortened(found.width) < labels.len() {
            found.width += found.width / 4;
        }
        found
    }

    /// The label, without its middle if it is long.
    pub(crate) fn short(&self, flowop: &FlowopResult) -> String {
        printable::within(&self.label(flowop), self.width).into_owned()
    }

    fn thread(&self, flowop: &FlowopResult) -> String {
        if self.with_process { format!("{}.{}", flowop.process, flowop.thread) } else { flowop.thread.clone() }
    }

    /// Returns the label: the name, or `thread.name` if the name is ambiguous.
    pub(crate) fn label(&self, flowop: &FlowopResult) -> String {
        if self.shared.contains(&flowop.name) {
            format!("{}.{}", self.thread(flowop), flowop.name)
        } else {
            flowop.name.clone()
        }
    }
}

/// The I/O flowops with the most operations.
pub(crate) struct BusiestFlowops<'a> {
    /// The flowops with their indices in the run, in order of definition.
    pub(crate) shown: Vec<(usize, &'a FlowopResult)>,
    /// The number of other I/O flowops with operations.
    pub(crate) left_out: usize,
}

impl<'a> BusiestFlowops<'a> {
    /// Returns at most `most` flowops of a run.
    pub(crate) fn of(run: &'a Run, most: usize) -> Self {
        let mut shown: Vec<(usize, &FlowopResult)> =
            run.flowops.iter().enumerate().filter(|(_, f)| f.class.is_io() && f.ops > 0).collect();
        shown.sort_by_key(|(_, f)| std::cmp::Reverse(f.ops));
        let left_out = shown.len().saturating_sub(most);
        shown.truncate(most);
        shown.sort_by_key(|(place, _)| *place);
        Self { shown, left_out }
    }
}

/// Writes the latency histograms of the busiest I/O flowops, on a common axis.
fn distributions(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let BusiestFlowops { shown, left_out } = BusiestFlowops::of(run, MAX_HISTOGRAMS);
    let names = FlowopLabels::of(run);
    let decoded = shown.iter().filter_map(|(_, f)| Some((names.short(f), hdr::decode(&f.histogram).ok()?)));
    let drawn: Vec<(String, Dist)> = decoded.collect();
    let wide = drawn.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let axis_width = MAX_AXIS_WIDTH.min(WIDTH.saturating_sub(4 + wide));
    let Some(axis) = Axis::of(drawn.iter().map(|(_, dist)| dist), axis_width) else { return Ok(()) };
    writeln!(out, "\nlatency (both scales logarithmic)")?;
    for (name, dist) in &drawn {
        writeln!(out, "  {name:<wide$}  {}", axis.draw(dist))?;
    }
    writeln!(out, "  {:<wide$}  {}", "", axis.labels(usize::MAX))?;
    if left_out > 0 {
        let (those, are) = if left_out == 1 { ("that", "is") } else { ("those", "are") };
        let others = count(left_out as u64, "flowop");
        let text =
            format!("  {those} of {others} with fewer operations {are} not shown; `--json FILE` has all histograms");
        writeln!(out, "{}", wrapped(&text, "  "))?;
    }
    Ok(())
}

/// Writes the rates, the backlog and the response times of an open loop.
pub(super) fn open_loop(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let Some(open) = &run.open_loop else { return Ok(()) };
    // What arrives at random differs from what the script asks for. Earlier versions did not record the latter.
    let requested = open.requested_per_s.map(|rate| format!("requested {} requests/s, ", measured(rate)));
    let unit = if requested.is_some() { "" } else { " requests/s" };
    let [arrived, achieved] = [open.offered_per_s, open.achieved_per_s].map(measured);
    writeln!(out, "\n{}arrived {arrived}{unit}, achieved {achieved}", requested.unwrap_or_default())?;
    if open.backlog > 0 {
        let (behind, oldest) = (count(open.backlog, "request"), latency(open.backlog_oldest_seconds * 1e9));
        writeln!(out, "backlog at the end: {behind}, the oldest overdue by {oldest}")?;
    }
    let columns = ["response mean", "p50", "p99", "max", "lateness p50", "p99"];
    let mut table =
        Table::new([("flowop", Align::Left)].into_iter().chain(columns.map(|heading| (heading, Align::Right))));
    responses(run).for_each(|row| _ = table.row(row));
    if table.is_empty() { Ok(()) } else { write!(out, "{}", table.render_within(WIDTH)) }
}

/// The rows of the response times of an open loop: the label of the flowop, mean, median, 99th percentile and maximum, then
/// median and 99th percentile of the lateness.
pub(crate) fn responses(run: &Run) -> impl Iterator<Item = [String; 7]> {
    let names = FlowopLabels::of(run);
    run.flowops.iter().filter_map(move |flowop| {
        let [response, lateness] = [flowop.response_ns?, flowop.lateness_ns?].map(|times| times.shown(flowop.ops));
        let ns = |ns: Option<f64>| or_dash(ns, latency);
        let [p50, p99, max, late_p50, late_p99] =
            [response.p50, response.p99, response.max, lateness.p50, lateness.p99]
                .map(|time| ns(time.map(|time| time as f64)));
        Some([names.label(flowop), ns(response.mean), p50, p99, max, late_p50, late_p99])
    })
}

/// Returns a labelled line for each further figure that is not empty.
pub(crate) fn detail_lines(run: &Run) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&str, String)> = super::replay::lines(run);
    let names = FlowopLabels::of(run);
    let of_each = |line: &dyn Fn(&FlowopResult) -> Option<String>| {
        let parts: Vec<String> =
            run.flowops.iter().filter_map(|f| Some(format!("{} {}", names.label(f), line(f)?))).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let mut add = |name, line: Option<String>| lines.extend(line.map(|line| (name, line)));

    add(
        "reads, writes",
        (run.summary.ops > 0).then(|| {
            format!("{} reads/s, {} writes/s", measured(run.summary.reads_per_s), measured(run.summary.writes_per_s))
        }),
    );
    add("phases", (!run.phases.is_empty()).then(|| phases(&run.phases)));
    add(
        "transactions",
        of_each(&|f| f.transaction.then(|| format!("{}, {} per second", grouped(f.ops), measured(f.ops_per_s)))),
    );
    add(
        "implicit opens",
        of_each(&|f| {
            let each = f.open_ns_mean?;
            Some(format!("{} ({} each)", grouped(f.implicit_opens), latency(each)))
        }),
    );
    add(
        "directory listings",
        of_each(&|f| (f.listed_bytes > 0).then(|| format!("{} of names and entries", size::format(f.listed_bytes)))),
    );
    add(
        "errors",
        of_each(&|f| {
            let kinds: Vec<String> = f.errors.iter().map(|(errno, n)| format!("{} {errno}", grouped(*n))).collect();
            (!kinds.is_empty()).then(|| kinds.join(" + "))
        }),
    );
    add(
        "commands",
        of_each(&|f| {
            let (user, system) = (f.command_user_seconds?, f.command_system_seconds?);
            Some(match divided_times(user, system) {
                Some(_) => format!("{} user, {} system", latency(user * 1e9), latency(system * 1e9)),
                None => format!("{} user and system", latency((user + system) * 1e9)),
            })
        }),
    );
    add(
        "starved",
        of_each(&|f| {
            let of = if f.instances > 1 { format!(" in {} threads", grouped(f.instances)) } else { String::new() };
            (f.starved_seconds > 0.0).then(|| seconds(f.starved_seconds) + &of)
        }),
    );
    add(
        "late",
        (run.late_ops > 0).then(|| {
            // A thread that has not seen the end yet may begin an operation after it.
            let oldest = run.late_oldest_seconds.filter(|age| *age > 0.0).map(|age| latency(age * 1e9));
            let began = oldest.map(|age| format!(", the oldest begun {age} before it"));
            format!("{} unfinished at the end{}", count(run.late_ops, "operation"), began.unwrap_or_default())
        }),
    );
    add("tool", run.overhead_ns_per_op.map(|ns| format!("{} per operation", latency(ns))));
    add("picking files", of_each(&|f| f.tool_ns_mean.filter(|ns| *ns >= 1.0).map(latency)));
    add(
        "processor",
        run.summary.cpu_us_per_op.map(|us| {
            let machine =
                run.summary.system_cpu_us_per_op.map(|us| format!(", all available processors {}", latency(us * 1e3)));
            let busy = run.summary.cpu_busy.map(|share| format!(" ({:.0} % busy)", share * 100.0));
            format!("{} per operation{}{}", latency(us * 1e3), machine.unwrap_or_default(), busy.unwrap_or_default())
        }),
    );
    add(
        "bound to",
        run.pinned_processors.as_ref().map(|all| {
            let numbers: Vec<String> = all.iter().map(u64::to_string).collect();
            format!("processors {}, round robin", numbers.join(", "))
        }),
    );
    add(
        "memory",
        (run.peak_memory > 0).then(|| format!("{} peak, without the page cache", size::format(run.peak_memory))),
    );
    add("energy", run.energy.as_ref().map(|energy| format!("{} J of the {}", measured(energy.joules), energy.source)));
    for mount in &run.environment.mounts {
        let space = |free: u64| size::format(free);
        add(
            "free",
            mount
                .free_after
                .map(|after| format!("{}: {} before the run, {} after", mount.path, space(mount.free), space(after))),
        );
    }
    let (of_sets, of_all) = devices::lines(run);
    for ((instances, set), line) in of_instances(&run.filesets).into_iter().zip(of_sets) {
        let name = instances_of(&set, instances);
        add("devices", line.map(|line| format!("{name}: {line}")));
        add(
            "populating",
            set.populate_seconds.filter(|s| s.max(set.sync_seconds.unwrap_or(0.0)) >= SHORT_SECONDS).map(|s| {
                let sync = set.sync_seconds.map(|s| format!(", {} to sync", seconds(s)));
                format!("{name}: {}{}", seconds(s), sync.unwrap_or_default())
            }),
        );
    }
    of_all.into_iter().for_each(|line| add("devices", Some(line)));
    add(
        "warm-up",
        run.warmup
            .as_ref()
            .map(|warmup| format!("{}, {} not counted", seconds(warmup.seconds), count(warmup.ops, "operation"))),
    );
    lines
}

/// Shorter times of populating are not shown.
const SHORT_SECONDS: f64 = 0.05;

/// Writes the lines of [`detail_lines`].
fn details(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let lines = detail_lines(run);
    if !lines.is_empty() {
        writeln!(out)?;
    }
    let wide = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let under = " ".repeat(wide + 2);
    lines.iter().try_for_each(|(name, line)| writeln!(out, "{}", wrapped(&format!("{name:<wide$}  {line}"), &under)))
}

/// Describes the phases: `1: 0.8 s, 2: 12.3 s, 3: not started`.
fn phases(phases: &[PhaseResult]) -> String {
    let phase = |p: &PhaseResult| match (p.start_seconds, p.complete) {
        (None, _) => format!("{}: not started", p.number),
        (Some(_), true) => format!("{}: {}", p.number, seconds(p.seconds)),
        (Some(_), false) => format!("{}: {}, not complete", p.number, seconds(p.seconds)),
    };
    phases.iter().map(phase).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Text;
    use crate::report::{Report, to_string};
    use crate::result::fixture::fixture;
    use crate::result::{DeviceBytes, FlowopResult, Latency, Note, OpenLoop, RunState, Verdict};
    use crate::util::wrap::WIDTH;

    #[track_caller]
    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }

    #[test]
    fn lines_fit_a_terminal() {
        let mut document = fixture();
        assert_fits(&to_string(&Text, &document));
        let run = &mut document.runs[0];
        run.open_loop = Some(OpenLoop { offered_per_s: 1e9, achieved_per_s: 1e9, ..OpenLoop::default() });
        for (flowop, end) in run.flowops.iter_mut().zip(["create", "close", "read"]) {
            flowop.name = format!("deliver-new-messages.{end}");
            (flowop.ops, flowop.ops_per_s, flowop.mib_per_s) = (999_999, 99_999.0, 9_999.0);
            let ns = 123_000_000;
            let latency = Latency { mean: Some(123e6), max: Some(ns), ..flowop.latency_ns }.with_percentiles(|_| ns);
            (flowop.latency_ns, flowop.response_ns, flowop.lateness_ns) = (latency, Some(latency), Some(latency));
        }
        let text = to_string(&Text, &document);
        assert_fits(&text);
        // The ends of the names are visible in the table and beside the histograms.
        for end in ["create", "close"] {
            let lines = text.lines().filter(|line| line.trim_start().starts_with("del"));
            assert!(lines.filter(|line| line.contains('…') && line.contains(end)).count() == 3, "{text}");
        }
        (document.runs[0].flowops[0].ops, document.runs[0].summary.ops_per_s) = (99_999_999_999, 99_999_999.0);
        assert_fits(&to_string(&Text, &document));
    }

    #[test]
    fn an_interim_report_omits_final_figures_and_warnings() {
        let mut document = fixture();
        document.runs[0].summary.cpu_us_per_op = None;
        for (apart, heading) in [(false, ": so far, after "), (true, ": so far, the last ")] {
            let mut out = Vec::new();
            Text.interim(&document, apart, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.lines().next().unwrap().contains(heading), "{text}");
            for absent in ["complete", "warning", "\nprocessor "] {
                assert!(!text.contains(absent), "`{absent}` in\n{text}");
            }
            assert!(text.contains("all I/O"));
        }
    }

    #[test]
    fn omitted_histograms_are_counted() {
        let mut document = fixture();
        let like = document.runs[0].flowops[0].clone();
        for n in 0..9 {
            document.runs[0].flowops.push(FlowopResult { name: format!("other{n}"), ..like.clone() });
        }
        let drawn = to_string(&Text, &document);
        assert!(drawn.contains("that of 1 flowop with fewer operations is not shown; `--json FILE`"), "{drawn}");
        assert!(!to_string(&Text, &fixture()).contains("not shown"));
        document.runs[0].flowops.extend((0..30).map(|n| FlowopResult { name: format!("more{n}"), ..like.clone() }));
        assert!(to_string(&Text, &document).contains("those of 31 flowops with fewer operations are not shown"));
    }

    #[test]
    fn all_parts_of_the_report() {
        let mut document = fixture();
        document.script.path = "-".into();
        let mut second = document.runs[0].clone();
        second.state = RunState::LowSpace;
        second.ended_by = "3.9 GiB left on /mnt/test".into();
        second.flowops[1].name = "shadowread".into();
        second.flowops[2].name = "a-composite-flowop.with-a-long-inner-name".into();
        second.filesets[0].asked_bytes = DeviceBytes { read: 6 << 30, written: 0 };
        second.filesets[0].verdict = Some(Verdict::Both);
        second.filesets[0].device_bytes = Some(DeviceBytes { read: 5 << 30, written: 1 << 20 });
        second.open_loop = Some(OpenLoop {
            requested_per_s: Some(20_010.0),
            offered_per_s: 20_000.0,
            achieved_per_s: 13_927.0,
            backlog: 1_200,
            backlog_oldest_seconds: 2.5,
            ..OpenLoop::default()
        });
        second.flowops[0].response_ns = Some(second.flowops[1].latency_ns);
        second.flowops[0].lateness_ns = Some(second.flowops[2].latency_ns);
        second.warnings.push(Note { code: "other".into(), message: "something else".into() });
        document.runs.push(second);
        insta::assert_snapshot!("text_all", to_string(&Text, &document));
    }
}
