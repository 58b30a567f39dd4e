//! The columns of the tables of a run, as text, in Markdown and on the page: the figures of a flowop, a host, a rank, or
//! all I/O.
//!
//! To add a column: a row of [`FIGURES`], and one in `csv` and `csv_runs`; for a percentile one of
//! [`PERCENTILES`](crate::result::PERCENTILES). A narrow screen leaves it out; the whole report (`-v`) has 80 columns for
//! all of them.

use crate::result::{FlowopResult, Latency, MIN_BEYOND, Percentile, PercentilePlace, RankResult, Run, Summary};
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
type FigureColumn = (&'static str, usize, fn(&FigureRow) -> String);

/// The columns before those of the percentiles and the maximum.
const FIGURES: [FigureColumn; 4] = [
    ("ops", 120, |row| grouped(row.ops)),
    ("ops/s", 0, |row| measured(row.ops_per_s)),
    ("MiB/s", 0, |row| if row.mib_per_s > 0.0 { measured(row.mib_per_s) } else { dash() }),
    ("mean", 100, |row| row.latency.mean.map_or_else(dash, latency)),
];

fn dash() -> String {
    "-".to_owned()
}

/// The columns on a screen of this width, before those of the percentiles.
fn figures_before(width: usize) -> impl Iterator<Item = FigureColumn> + Clone {
    FIGURES.into_iter().filter(move |(_, from_width, _)| *from_width <= width)
}

/// The percentiles on a screen of this width.
pub(crate) fn percentiles_on(width: usize) -> impl Iterator<Item = &'static Percentile> + Clone {
    Percentile::shown_in(if width < 100 { PercentilePlace::Tables } else { PercentilePlace::WideTables })
}

/// The headings of all columns.
pub(crate) fn headings() -> Vec<&'static str> {
    headings_on(usize::MAX).collect()
}

/// The headings on a screen of this width.
pub(super) fn headings_on(width: usize) -> impl Iterator<Item = &'static str> + Clone {
    figures_before(width).map(|(heading, ..)| heading).chain(time_headings_on(width))
}

/// The headings of the percentiles and the maximum.
pub(super) fn time_headings_on(width: usize) -> impl Iterator<Item = &'static str> + Clone {
    percentiles_on(width).map(|of| of.name).chain(["max"])
}

/// The percentiles and the maximum of so many operations. A percentile of too few operations is not shown.
pub(super) fn times_on(width: usize, times: Latency, ops: u64) -> impl Iterator<Item = String> {
    let shown = times.shown(ops);
    let all = percentiles_on(width).map(move |percentile| percentile.of(shown)).chain([shown.max]);
    all.map(|ns| ns.map_or_else(dash, |ns| latency(ns as f64)))
}

/// The cells of a row in all columns.
pub(crate) fn figures(row: impl Into<FigureRow>) -> Vec<String> {
    figures_on(usize::MAX, row)
}

/// The cells of a row on a screen of this width.
pub(super) fn figures_on(width: usize, row: impl Into<FigureRow>) -> Vec<String> {
    let row = row.into();
    figures_before(width).map(|(.., cell)| cell(&row)).chain(times_on(width, row.latency, row.ops)).collect()
}

/// Returns what `-` means, if a table of this width lacks a percentile that the result has.
pub(super) fn percentiles_note(run: &Run, width: usize) -> Option<String> {
    let mut rows = run.flowops.iter().map(FigureRow::from).chain([FigureRow::from(&run.summary)]);
    let lacks = |row: FigureRow| {
        let shown = row.latency.shown(row.ops);
        percentiles_on(width).any(|percentile| percentile.of(shown) != percentile.of(row.latency))
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
