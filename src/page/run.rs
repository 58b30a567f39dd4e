//! The parts of a page about one run: state, warnings, flowops, latencies, file sets, devices and environment. The
//! pictures over time are in `timeline`.

use super::{hosts, timeline};
use crate::comparison::{condition_lines, limit_table};
use crate::import::of_run;
use crate::report::columns::{figures, headings};
use crate::report::replay;
use crate::report::requests::{self, rows};
use crate::report::text::{self, BusiestFlowops, FlowopLabels, conditions, detail_lines};
use crate::result::{Document, FilesetResult, FlowopResult, MIN_BEYOND, Percentile, PercentilePlace, ReplayDifference};
use crate::result::{Run, RunState, warning_order};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, NoteLabel, Picture, SheetBlock, SheetTable, Symbol, Tone};
use crate::util::count::{count, grouped, measured, or_dash};
use crate::util::duration::{latency, seconds};
use crate::util::size;
use serde_json::Value;

/// The class and the symbol of each percentile of the picture.
const SYMBOLS: [(&str, Symbol); 5] =
    [("a", Symbol::Circle), ("c", Symbol::Circle), ("d", Symbol::Circle), ("b", Symbol::Square), ("e", Symbol::Circle)];

/// The largest number of flowops in the picture of latencies: those with the most operations.
const MAX_ROWS: usize = 40;

/// Returns all parts about a run. Without `pictures`, its tables only.
pub(super) fn blocks(document: &Document, run: &Run, pictures: bool) -> Vec<SheetBlock> {
    let mut blocks = vec![state(run)];
    let remark = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    let annotations: Vec<(String, String)> = document.annotations().map(remark).collect();
    if !annotations.is_empty() {
        blocks.push(SheetBlock::Facts { pairs: annotations, is_wrapped: true });
    }
    blocks.push(SheetBlock::Text { text: conditions(document, run, true).join(", ") + "." });
    if document.runs.len() == 1 {
        blocks.extend(machine(document, run));
    }
    blocks.extend(warning_list(document, run));
    blocks.extend(limit_table(&run.limits));
    // The requests of open loops are what was asked for; their steps are shown on demand.
    let requests = requests(run);
    let responses = if requests.rows.is_empty() { responses(run) } else { responses(run).folded() };
    blocks.extend(requests.block());
    blocks.extend(flowops(run).block());
    if pictures {
        blocks.extend(percentiles(run).map(SheetBlock::Picture));
        blocks.extend(timeline::rate(run).map(SheetBlock::Picture));
        blocks.extend(timeline::latency_map(run).map(SheetBlock::Picture));
    }
    blocks.extend(responses.block());
    blocks.extend(beside_recording(run));
    blocks.extend(hosts::blocks(run, pictures));
    blocks.extend(filesets(run).block());
    blocks.extend(devices(run).block());
    blocks.extend(settings(run).block());
    let pair = |(name, line): (&str, String)| (name.to_owned(), line);
    let details: Vec<(String, String)> = detail_lines(run).into_iter().map(pair).collect();
    if !details.is_empty() {
        blocks.push(SheetBlock::Facts { pairs: details, is_wrapped: true });
    }
    blocks.extend(variables(run).block());
    blocks
}

/// Returns machine, file systems and versions in small print, as a comparison has them.
pub(super) fn machine(document: &Document, run: &Run) -> Option<SheetBlock> {
    let lines = condition_lines(&[&[of_run(document, run, "")]]);
    (!lines.is_empty()).then_some(SheetBlock::SmallPrint { lines })
}

/// Returns the parts about the script and the machine, which are the same for all runs of a document.
pub(super) fn document_blocks(document: &Document) -> Vec<SheetBlock> {
    let mut blocks = Vec::new();
    blocks.extend(environment(document).block());
    if !document.script.text.is_empty() {
        let lines = document.script.text.lines().map(str::to_owned).collect();
        blocks.push(SheetBlock::Source { title: "Script".to_owned(), lines });
    }
    blocks
}

/// Returns the sentence on how the run ended.
fn state(run: &Run) -> SheetBlock {
    let state = run.state.name().replace('_', " ");
    let by = if run.ended_by.is_empty() { String::new() } else { format!(" ({})", run.ended_by) };
    let rate = measured(run.summary.ops_per_s);
    let mean = run.summary.latency_ms.map(|ms| format!(", mean latency {}", latency(ms * 1e6))).unwrap_or_default();
    let throughput = format!("{rate} ops/s, {} MiB/s{mean}", measured(run.summary.mib_per_s));
    let tone = if run.state == RunState::Complete { Tone::Good } else { Tone::Bad };
    let text = format!("{state} after {}{by}: {throughput}", seconds(run.measured_seconds));
    SheetBlock::Banner { tone, text }
}

fn warning_list(document: &Document, run: &Run) -> Option<SheetBlock> {
    let found = warning_order::listed(document, run).into_iter();
    let mut items: Vec<(String, String)> =
        found.map(|warning| (warning.message, warning.advice.unwrap_or_default().to_owned())).collect();
    if let Some(failure) = &run.failure {
        let path = failure.path.as_ref().map(|path| format!(" ({path})")).unwrap_or_default();
        items.push((format!("{}{path}", failure.what), failure.help.clone()));
    }
    (!items.is_empty()).then_some(SheetBlock::Warnings { label: NoteLabel::Warning, items })
}

/// Returns the table of flowops: those of I/O, their sum, and the others.
fn flowops(run: &Run) -> SheetTable {
    let columns = ["flowop", "kind"].into_iter().chain(headings()).chain(["errors"]);
    let mut table = SheetTable::new("Flowops", columns);
    let labels = FlowopLabels::of(run);
    let row = |flowop: &FlowopResult| {
        let errors: u64 = flowop.errors.values().sum();
        let mut cells = vec![labels.label(flowop), flowop.kind.clone()];
        cells.extend(figures(flowop));
        cells.push(if errors == 0 { "-".to_owned() } else { grouped(errors) });
        cells
    };
    let (io, others): (Vec<_>, Vec<_>) = run.flowops.iter().partition(|flowop| flowop.class.is_io());
    io.into_iter().for_each(|flowop| table.row(row(flowop)));
    if !run.flowops.is_empty() {
        let summary = &run.summary;
        let mut sum = vec!["all I/O".to_owned(), String::new()];
        sum.extend(figures(summary));
        sum.push(if summary.errors == 0 { "-".to_owned() } else { grouped(summary.errors) });
        table.sum(sum);
    }
    others.into_iter().for_each(|flowop| table.row(row(flowop)));
    table
}

/// Draws the percentiles of each I/O flowop on a common logarithmic axis.
fn percentiles(run: &Run) -> Option<Picture> {
    let BusiestFlowops { shown: flowops, left_out } = BusiestFlowops::of(run, MAX_ROWS);
    let labels = FlowopLabels::of(run);
    let names: Vec<String> = flowops.iter().map(|(_, flowop)| labels.label(flowop)).collect();
    let percentiles = || Percentile::shown_in(PercentilePlace::Pictures);
    let marks: Vec<(&str, &str, Symbol)> = percentiles()
        .zip(SYMBOLS)
        .map(|(percentile, (class, symbol))| (percentile.name, class, symbol))
        .chain([("max", "f", Symbol::Stroke)])
        .collect();
    let values = |flowop: &FlowopResult| -> Vec<Option<f64>> {
        let shown = flowop.latency_ns.shown(flowop.ops);
        percentiles().map(|percentile| percentile.of(shown)).chain([shown.max]).map(|ns| Some(ns? as f64)).collect()
    };
    let all = flowops.iter().flat_map(|(_, flowop)| values(flowop)).flatten();
    let x = ChartAxis::logarithmic("latency (logarithmic)", AxisUnit::Nanoseconds, all.filter(|ns| *ns > 0.0));
    let columns = std::iter::once("flowop").chain(marks.iter().map(|(name, ..)| *name));
    let mut table = SheetTable::new("Percentiles of the latency", columns);
    let mut chart = Chart::new(x, ChartAxis::categories("", names.clone()));
    let mut drawn = vec![false; marks.len()];
    for (row, ((_, flowop), name)) in flowops.iter().zip(&names).enumerate() {
        let found = values(flowop);
        drawn.iter_mut().zip(&found).for_each(|(drawn, found)| *drawn |= found.is_some());
        let known: Vec<f64> = found.iter().copied().flatten().collect();
        if let [first, .., last] = known[..] {
            chart.join([(first, row as f64), (last, row as f64)], "rule");
        }
        for ((percentile, class, symbol), ns) in marks.iter().zip(&found) {
            let Some(ns) = *ns else { continue };
            let title = format!("{name}: {percentile} {}", latency(ns));
            chart.plot_as(*symbol, &ChartPoint { x: ns, y: row as f64, class, title }, (*percentile).to_owned());
        }
        let cell = |ns: Option<f64>| or_dash(ns, latency);
        table.row(std::iter::once(name.clone()).chain(found.into_iter().map(cell)));
    }
    let hidden = match left_out {
        0 => String::new(),
        n => format!(" {} with fewer operations are in the table of flowops only.", count(n as u64, "flowop")),
    };
    // Those that no flowop has operations for have no key.
    let is_drawn = marks.iter().zip(drawn).filter(|(_, drawn)| *drawn);
    let legend = is_drawn.map(|((name, class, _), _)| (*class, (*name).to_owned())).collect();
    (!names.is_empty()).then(|| Picture {
        title: "Latency percentiles".to_owned(),
        note: format!(
            "Each line is an I/O flowop, from its median to its maximum. Percentiles with fewer than {MIN_BEYOND} \
             operations beyond them are not drawn.{hidden}"
        ),
        legend,
        drawing: chart.drawing("Latency percentiles of the I/O flowops"),
        table,
    })
}

/// Returns the times of a replay beside the recorded ones, and what differs.
fn beside_recording(run: &Run) -> Vec<SheetBlock> {
    let mut table = SheetTable::new("Times of calls, here and recorded", replay::HEADINGS);
    replay::rows(run).into_iter().for_each(|row| table.row(row));
    let differences: Vec<String> =
        run.replay.iter().flat_map(|replay| &replay.differences).map(ReplayDifference::text).collect();
    table.block().into_iter().chain(SheetBlock::messages(NoteLabel::Warning, &differences)).collect()
}

/// Returns the table of requests of open loops.
fn requests(run: &Run) -> SheetTable {
    let columns = ["request"].into_iter().chain(requests::headings(usize::MAX));
    let mut table = SheetTable::new("Requests of the open loops, with response times", columns);
    for row in rows(run) {
        table.row([row.name.trim().to_owned()].into_iter().chain(row.cells(usize::MAX)));
    }
    table
}

/// Returns the table of response times of an open loop.
fn responses(run: &Run) -> SheetTable {
    let columns = ["flowop", "mean", "p50", "p99", "max", "lateness p50", "lateness p99"];
    let mut table = SheetTable::new("Response times of the open loop", columns);
    text::responses(run).for_each(|row| table.row(row));
    table
}

fn filesets(run: &Run) -> SheetTable {
    let columns =
        ["file set", "path", "files", "directories", "size", "in memory before", "in memory after", "served by"];
    let mut table = SheetTable::new("File sets", columns).of_text();
    let share = |share: Option<f64>| or_dash(share, |share| format!("{:.0} %", share * 100.0));
    let cells = |set: &FilesetResult| {
        [
            set.name.clone(),
            set.path.clone(),
            grouped(set.files),
            grouped(set.directories),
            size::format(set.bytes),
            share(set.resident_before),
            share(set.resident_after),
            set.verdict.map_or("-", crate::result::Verdict::name).to_owned(),
        ]
    };
    run.filesets.iter().for_each(|set| table.row(cells(set)));
    table
}

/// Returns the table of file systems, with the devices below each.
fn devices(run: &Run) -> SheetTable {
    let columns = ["mount point", "type", "source", "options", "size", "free", "devices"];
    let mut table = SheetTable::new("File systems and devices", columns).of_text();
    for mount in &run.environment.mounts {
        let device = |device: &crate::result::environment::Device| {
            let mut words = vec![device.name.clone()];
            words.extend(Some(device.model.clone()).filter(|model| !model.is_empty()));
            words.extend((device.size > 0).then(|| size::format(device.size)));
            words.extend(device.rotational.map(|it| if it { "rotational" } else { "not rotational" }.to_owned()));
            words.extend((!device.scheduler.is_empty()).then(|| format!("scheduler {}", device.scheduler)));
            words
                .extend(device.direct_io.map(|it| if it { "direct I/O" } else { "through the page cache" }.to_owned()));
            words.join(", ")
        };
        let devices: Vec<String> = mount.devices.iter().map(device).collect();
        table.row([
            mount.path.clone(),
            mount.kind.clone(),
            mount.source.clone(),
            // Spaces, so that a long list can be wrapped.
            mount.options.replace(',', ", "),
            size::format(mount.total),
            size::format(mount.free),
            devices.join(" on "),
        ]);
    }
    table
}

/// Returns the table of the properties of the file systems and of the settings of the devices below them.
fn settings(run: &Run) -> SheetTable {
    let columns = ["file system or device", "setting", "value"];
    let mut table = SheetTable::new("Settings of file systems and devices", columns).of_text().folded();
    let mut put = |of: &str, name: &str, value: String| table.row([of.to_owned(), name.to_owned(), value]);
    for mount in &run.environment.mounts {
        if let Some(features) = &mount.features {
            put(&mount.path, "features", features.join(" "));
        }
        mount.parameters.iter().for_each(|(name, value)| put(&mount.path, name, word(value)));
        for device in &mount.devices {
            device.queue.iter().for_each(|(name, value)| put(&device.name, name, word(value)));
        }
    }
    table
}

fn variables(run: &Run) -> SheetTable {
    let mut table = SheetTable::new("Variables", ["variable", "value"]).of_text().folded();
    run.variables.iter().for_each(|(name, value)| table.row([format!("${name}"), word(value)]));
    table
}

/// Formats a value of the result: a text without quotation marks.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn environment(document: &Document) -> SheetTable {
    let mut table = SheetTable::new("Environment", ["condition", "value"]).of_text().folded();
    let machine = &document.environment;
    let uname = &machine.uname;
    let mut put = |name: &str, value: String| {
        if !value.trim().is_empty() {
            table.row([name.to_owned(), value]);
        }
    };
    put("program", format!("{} {}", document.tool.name, document.tool.version));
    put("command line", document.command_line.join(" "));
    put("started", document.runs.first().map_or_else(String::new, |run| run.started_at.clone()));
    put("host", uname.nodename.clone());
    put("kernel", format!("{} {} {} {}", uname.sysname, uname.release, uname.version, uname.machine));
    put("kernel command line", machine.kernel_command_line.clone().unwrap_or_default());
    if machine.cpu.count > 0 {
        put("processors", format!("{} × {}", machine.cpu.count, machine.cpu.model));
    }
    if machine.memory.total > 0 {
        let (total, available) = (size::format(machine.memory.total), size::format(machine.memory.available));
        put("memory", format!("{total}, {available} available"));
    }
    if !machine.clock.name.is_empty() {
        put("clock", format!("{}, {} per reading", machine.clock.name, latency(machine.clock.cost_ns)));
    }
    for (name, limit) in &machine.limits {
        put(&format!("limit {name}"), limit.map_or_else(|| "unlimited".to_owned(), grouped));
    }
    let settings = document.runs.first().map(|run| &run.environment.other);
    for (name, value) in machine.other.iter().chain(settings.into_iter().flatten()) {
        put(name, word(value));
    }
    put("seed", document.seed.to_string());
    put("layout seed", document.layout_seed.to_string());
    put("script", format!("{} (SHA-256 {})", document.script.path, document.script.sha256));
    put("dialect", format!("{} ({})", document.script.dialect, document.script.dialect_reason));
    table
}
