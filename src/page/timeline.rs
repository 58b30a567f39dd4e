//! The pictures of a run over time: its rate with what was left out, and the latencies of its flowops as a heat map.
//!
//! A result has no histogram for each interval, so the heat map has the 99th percentile of each flowop in each interval.

use crate::report::text::{BusiestFlowops, FlowopLabels};
use crate::result::{Interval, Run};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetTable, Symbol};
use crate::util::count::{grouped, measured, or_dash};
use crate::util::duration::{latency, seconds};
use crate::util::size::MIB;

/// The largest number of columns of a picture. More intervals are merged.
const MAX_COLUMNS: usize = 120;
/// The largest number of flowops of the heat map: those with the most operations.
const MAX_ROWS: usize = 12;
/// The classes of the heat map, from the lowest latency to the highest.
const HEAT: [&str; 9] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"];
/// The classes that the legend shows: every other one.
const HEAT_LEGEND: [&str; 5] = ["h0", "h2", "h4", "h6", "h8"];

/// Intervals of a run that are drawn as one.
#[derive(Clone, Debug)]
pub(super) struct TimeColumn {
    /// Start, in seconds since measuring began; negative for the warm-up.
    pub(super) from: f64,
    /// End.
    pub(super) to: f64,
    /// I/O operations.
    pub(super) ops: u64,
    /// Bytes that they moved.
    pub(super) bytes: u64,
    /// Mean latency of the I/O operations in nanoseconds.
    pub(super) mean_ns: Option<f64>,
    /// The 99th percentile of each flowop in nanoseconds, in the order of the run's flowops. Of merged intervals, the
    /// highest.
    pub(super) p99_ns: Vec<Option<u64>>,
}

/// Returns the columns of a run, the warm-up first, and the number of intervals in each.
pub(super) fn columns(run: &Run) -> (Vec<TimeColumn>, usize) {
    let warmup = run.warmup.as_ref();
    let before = warmup.map_or(&[][..], |warmup| &warmup.intervals);
    let each = (before.len() + run.intervals.len()).div_ceil(MAX_COLUMNS).max(1);
    let start = -warmup.map_or(0.0, |warmup| warmup.seconds);
    let merge = |intervals: &[Interval], start: f64| -> Vec<TimeColumn> {
        intervals.chunks(each).map(|merged| column(run, merged, start)).collect()
    };
    let mut columns = merge(before, start);
    columns.extend(merge(&run.intervals, 0.0));
    (columns, each)
}

/// Merges intervals, whose times count from `start`.
fn column(run: &Run, intervals: &[Interval], start: f64) -> TimeColumn {
    let first = intervals.first().map_or(0.0, |first| first.t - first.seconds);
    let last = intervals.last().map_or(0.0, |last| last.t);
    let io = || {
        let flowops = intervals.iter().flat_map(|interval| run.flowops.iter().zip(&interval.flowops));
        flowops.filter(|(flowop, _)| flowop.class.is_io()).map(|(_, figures)| figures)
    };
    let ops: u64 = io().map(|figures| figures.ops).sum();
    let total_ns: f64 = io().filter_map(|figures| Some(figures.mean_ns? * figures.ops as f64)).sum();
    let p99 = |n: usize| intervals.iter().filter_map(|interval| interval.flowops.get(n)?.p99_ns).max();
    TimeColumn {
        // The first interval begins at 0. Its computed start may differ by a rounding error.
        from: start + if first.abs() < 1e-9 { 0.0 } else { first },
        to: start + last,
        ops,
        bytes: io().map(|figures| figures.bytes).sum(),
        mean_ns: (ops > 0).then(|| total_ns / ops as f64),
        p99_ns: (0..run.flowops.len()).map(p99).collect(),
    }
}

/// Returns the horizontal axis of the columns.
fn time_axis(columns: &[TimeColumn]) -> ChartAxis {
    let ends = columns.iter().flat_map(|column| [column.from, column.to]);
    ChartAxis::fitted("time since measuring began", AxisUnit::Seconds, ends)
}

/// Returns a sentence on merged intervals.
fn merged(each: usize, how: &str) -> String {
    if each == 1 { String::new() } else { format!(" Each point stands for {each} intervals{how}.") }
}

/// Formats the start or the end of a column.
fn moment(time: f64) -> String {
    AxisUnit::Seconds.format(time)
}

/// Draws the rate over time, with the warm-up and the beginning of the steady part.
pub(super) fn rate(run: &Run) -> Option<Picture> {
    let (columns, each) = columns(run);
    if columns.len() < 2 {
        return None;
    }
    let per_second = |column: &TimeColumn| column.ops as f64 / (column.to - column.from);
    let rates = columns.iter().map(per_second);
    let y = ChartAxis::linear("I/O operations per second", AxisUnit::Number, std::iter::once(0.0).chain(rates));
    let mut chart = Chart::new(time_axis(&columns), y);
    let mut legend = Vec::new();
    let mut note = "The operations that ended in each interval.".to_owned();
    if let Some(warmup) = &run.warmup {
        let text = format!("warm-up of {}, not counted", seconds(warmup.seconds));
        chart.vertical_band((-warmup.seconds, 0.0), "band", &text);
        legend = vec![("a", "measured".to_owned()), ("box", text)];
    }
    match run.steady.as_ref().map(|steady| steady.from_seconds) {
        Some(Some(from)) if from > 0.0 => chart.vertical_line(from, "rule", &format!("steady from {}", moment(from))),
        Some(Some(_)) => note += " The run was steady from its beginning.",
        Some(None) => note += " The run was not steady.",
        None => {}
    }
    note += &merged(each, "");
    let middle = |column: &TimeColumn| f64::midpoint(column.from, column.to);
    chart.join(columns.iter().map(|column| (middle(column), per_second(column))), "a");
    let mut table = SheetTable::new("Rate over time", ["from", "to", "part", "ops", "ops/s", "MiB/s", "mean latency"]);
    for column in &columns {
        let rate = per_second(column);
        let title = format!("{} to {}: {} ops/s", moment(column.from), moment(column.to), measured(rate));
        chart.plot(Symbol::Dot, &ChartPoint { x: middle(column), y: rate, class: "a", title });
        let mib = column.bytes as f64 / (column.to - column.from) / MIB;
        table.row([
            moment(column.from),
            moment(column.to),
            if column.from < 0.0 { "warm-up" } else { "measured" }.to_owned(),
            grouped(column.ops),
            measured(rate),
            measured(mib),
            or_dash(column.mean_ns, latency),
        ]);
    }
    let drawing = chart.drawing("Rate over time");
    Some(Picture { title: "Rate over time".to_owned(), note, legend, drawing, table })
}

/// Draws the 99th percentile of the latency of each flowop over time.
pub(super) fn latency_map(run: &Run) -> Option<Picture> {
    let (columns, each) = columns(run);
    let flowops = BusiestFlowops::of(run, MAX_ROWS).shown;
    let values = || flowops.iter().flat_map(|(n, _)| columns.iter().filter_map(|column| column.p99_ns[*n]));
    let (low, high) = (values().min()?.max(1) as f64, values().max()?.max(1) as f64);
    if columns.len() < 2 {
        return None;
    }
    let last = HEAT.len() - 1;
    let level = |ns: f64| match high > low {
        true => (((ns.max(1.0) / low).ln() / (high / low).ln() * HEAT.len() as f64) as usize).min(last),
        false => last / 2,
    };
    let lowest = |level: usize| low * (high / low).powf(level as f64 / HEAT.len() as f64);
    let labels = FlowopLabels::of(run);
    let names: Vec<String> = flowops.iter().map(|(_, flowop)| labels.label(flowop)).collect();
    let mut chart = Chart::new(time_axis(&columns), ChartAxis::categories("", names.clone()));
    for (row, (n, _)) in flowops.iter().enumerate() {
        for column in &columns {
            let Some(ns) = column.p99_ns[*n] else { continue };
            let label = format!("{}: {}", moment(column.to), latency(ns as f64));
            chart.cell((column.from, column.to), row as f64, ns as f64, HEAT[level(ns as f64)], &label);
        }
    }
    let mut table = SheetTable::new("99th percentile of the latency over time", ["until"]);
    table.add_columns(names);
    for column in &columns {
        let cell = |(n, _): &(usize, _)| or_dash(column.p99_ns[*n], |ns| latency(ns as f64));
        table.row(std::iter::once(moment(column.to)).chain(flowops.iter().map(cell)));
    }
    let key = |(n, class): (usize, &'static str)| (class, format!("from {}", latency(lowest(2 * n))));
    Some(Picture {
        title: "Latency over time".to_owned(),
        note: format!(
            "The 99th percentile in each interval, darker or brighter where it is higher; the scale is logarithmic.{}",
            merged(each, ", and has the highest of their percentiles")
        ),
        legend: HEAT_LEGEND.into_iter().enumerate().map(key).collect(),
        drawing: chart.drawing("99th percentile of the latency of the I/O flowops over time"),
        table,
    })
}
