//! The columns of the tables of a run, as text, in Markdown and on the page: the figures of a flowop, a host, a rank, or
//! all I/O.
//!
//! To add a column: a row of [`FIGURES`], and one in `csv` and `csv_runs`. A narrow screen leaves it out; the whole report
//! (`-v`) has 80 columns for all of them.

use crate::result::{FlowopResult, Latency, MIN_BEYOND, RankResult, Run, Summary};
use crate::util::count::{grouped, measured};
use crate::util::duration::latency;

/// What a row of a table is made of.
pub(crate) struct FigureRow {
    ops: u64,
    ops_per_s: f64,
    mib_per_s: f64,
    latency: Latency,
}

/// The heading of a column, the least width of a screen that shows it, and its cell.
type FigureColumn = (&'static str, usize, FigureCell);

enum FigureCell {
    Text(fn(&FigureRow) -> String),
    /// Nanoseconds. A percentile of too few operations is not shown.
    Time(fn(&Latency) -> Option<u64>),
}

use FigureCell::{Text, Time};

static FIGURES: [FigureColumn; 8] = [
    ("ops", 120, Text(|row| grouped(row.ops))),
    ("ops/s", 0, Text(|row| measured(row.ops_per_s))),
    ("MiB/s", 0, Text(|row| if row.mib_per_s > 0.0 { measured(row.mib_per_s) } else { dash() })),
    ("mean", 100, Text(|row| row.latency.mean.map_or_else(dash, latency))),
    ("p50", 0, Time(|l| l.p50)),
    ("p99", 0, Time(|l| l.p99)),
    ("p99.9", 100, Time(|l| l.p99_9)),
    ("max", 0, Time(|l| l.max)),
];

fn dash() -> String {
    "-".to_owned()
}

/// The columns on a screen of this width.
fn on_screen(width: usize) -> impl Iterator<Item = &'static FigureColumn> + Clone {
    FIGURES.iter().filter(move |(_, from_width, _)| *from_width <= width)
}

/// The headings of all columns.
pub(crate) fn headings() -> [&'static str; FIGURES.len()] {
    FIGURES.each_ref().map(|(heading, ..)| *heading)
}

/// The headings on a screen of this width.
pub(super) fn headings_on(width: usize) -> impl Iterator<Item = &'static str> + Clone {
    on_screen(width).map(|(heading, ..)| *heading)
}

/// The cells of a row in all columns.
pub(crate) fn figures(row: impl Into<FigureRow>) -> Vec<String> {
    figures_on(usize::MAX, row)
}

/// The cells of a row on a screen of this width.
pub(super) fn figures_on(width: usize, row: impl Into<FigureRow>) -> Vec<String> {
    let row = row.into();
    let shown = row.latency.shown(row.ops);
    let cell = |(.., cell): &FigureColumn| match cell {
        Text(cell) => cell(&row),
        Time(of) => of(&shown).map_or_else(dash, |ns| latency(ns as f64)),
    };
    on_screen(width).map(cell).collect()
}

/// Returns what `-` means, if a table of this width lacks a percentile that the result has.
pub(super) fn percentiles_note(run: &Run, width: usize) -> Option<String> {
    let mut rows = run.flowops.iter().map(FigureRow::from).chain([FigureRow::from(&run.summary)]);
    let lacks = |row: FigureRow| {
        let shown = row.latency.shown(row.ops);
        on_screen(width).any(|(.., cell)| matches!(cell, Time(of) if of(&shown) != of(&row.latency)))
    };
    rows.any(lacks).then(|| format!("-: fewer than {MIN_BEYOND} operations beyond this percentile"))
}

impl From<&FlowopResult> for FigureRow {
    fn from(f: &FlowopResult) -> Self {
        Self { ops: f.ops, ops_per_s: f.ops_per_s, mib_per_s: f.mib_per_s, latency: f.latency_ns }
    }
}

impl From<&Summary> for FigureRow {
    fn from(s: &Summary) -> Self {
        Self { ops: s.ops, ops_per_s: s.ops_per_s, mib_per_s: s.mib_per_s, latency: s.latency_ns }
    }
}

impl From<&RankResult> for FigureRow {
    fn from(r: &RankResult) -> Self {
        Self { ops: r.ops, ops_per_s: r.ops_per_s, mib_per_s: r.mib_per_s, latency: r.latency_ns }
    }
}
