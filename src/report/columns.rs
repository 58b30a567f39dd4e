//! The columns of the tables of a run, as text, in Markdown and on the page: the figures of a flowop, a host, a rank, or
//! all I/O.
//!
//! To add a column: a row of [`COLUMNS_BEHIND`], in `metrics`. A narrow screen leaves it out; the whole report (`-v`) has 80
//! columns for all of them.

use super::csv::optional;
use super::metrics::{COLUMNS, COLUMNS_BEHIND, ColumnFigure, FigureColumn};
use crate::result::{FlowopResult, Latency, MIN_BEYOND, Percentile, PercentilePlace, Run, Summary};
use crate::util::count::{dash, grouped, measured, or_dash};
use crate::util::duration::latency;

/// What a row of a table is made of.
pub(crate) enum FigureRow<'a> {
    Flowop(&'a FlowopResult),
    All(&'a Summary),
}

impl FigureRow<'_> {
    /// The figure of a column; `None` if such rows lack it.
    fn figure(&self, column: &FigureColumn) -> Option<ColumnFigure> {
        match self {
            Self::Flowop(flowop) => column.of_flowop.map(|of| of(flowop)),
            Self::All(summary) => column.of_all.map(|of| of(summary)),
        }
    }

    fn cell(&self, column: &FigureColumn) -> String {
        match self.figure(column) {
            Some(ColumnFigure::Count(n)) => grouped(n),
            Some(ColumnFigure::Number(Some(number))) => measured(number),
            Some(ColumnFigure::MibPerS(mib)) if mib > 0.0 => measured(mib),
            Some(ColumnFigure::Time(Some(ns))) => latency(ns),
            _ => dash(),
        }
    }

    fn latency(&self) -> Latency {
        match self {
            Self::Flowop(flowop) => flowop.latency_ns,
            Self::All(summary) => summary.latency_ns,
        }
    }

    fn shown_latency(&self) -> Latency {
        let ops = match self {
            Self::Flowop(flowop) => flowop.ops,
            Self::All(summary) => summary.ops,
        };
        self.latency().shown(ops)
    }

    /// The cells of a row of CSV: the columns that such rows have, with the percentiles of that place.
    pub(super) fn csv(&self, place: PercentilePlace) -> impl Iterator<Item = String> {
        let cell = move |column: &FigureColumn| {
            Some(match self.figure(column)? {
                ColumnFigure::Count(n) => n.to_string(),
                ColumnFigure::MibPerS(number) => number.to_string(),
                ColumnFigure::Number(number) | ColumnFigure::Time(number) => optional(number),
            })
        };
        let percentiles = Percentile::shown_in(place).map(|percentile| optional(percentile.of(self.latency())));
        COLUMNS.iter().filter_map(cell).chain(percentiles).chain(COLUMNS_BEHIND.iter().filter_map(cell))
    }
}

/// The headings of the columns of CSV that `has` takes, with the percentiles of that place.
pub(super) fn csv_headings(place: PercentilePlace, has: fn(&FigureColumn) -> bool) -> impl Iterator<Item = String> {
    let [before, behind] =
        [COLUMNS, COLUMNS_BEHIND].map(|all| all.iter().filter(move |column| has(column)).map(|of| of.key.to_owned()));
    before.chain(Percentile::shown_in(place).map(|percentile| format!("{}_ns", percentile.name))).chain(behind)
}

/// The columns on a screen of this width, each with its heading.
fn shown_on(
    width: usize,
    all: &'static [FigureColumn],
) -> impl Iterator<Item = (&'static str, &'static FigureColumn)> + Clone {
    let shown = all.iter().filter_map(|column| Some((column.shown?, column)));
    shown.filter(move |((_, from_width), _)| *from_width <= width).map(|((heading, _), column)| (heading, column))
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
    let [before, behind] = [COLUMNS, COLUMNS_BEHIND].map(|all| shown_on(width, all).map(|(heading, _)| heading));
    before.chain(percentiles_on(width).map(|of| of.name)).chain(behind)
}

/// The headings of the percentiles and the maximum.
pub(super) fn time_headings_on(width: usize) -> impl Iterator<Item = &'static str> + Clone {
    percentiles_on(width).map(|of| of.name).chain(["max"])
}

/// The percentiles and the maximum of so many operations. A percentile of too few operations is not shown.
pub(super) fn times_on(width: usize, times: Latency, ops: u64) -> impl Iterator<Item = String> {
    let max = or_dash(times.max, |ns| latency(ns as f64));
    percentile_cells(width, times.shown(ops)).chain([max])
}

fn percentile_cells(width: usize, shown: Latency) -> impl Iterator<Item = String> {
    percentiles_on(width).map(move |of| or_dash(of.of(shown), |ns| latency(ns as f64)))
}

/// The cells of a row in all columns.
pub(crate) fn figures<'a>(row: impl Into<FigureRow<'a>>) -> Vec<String> {
    figures_on(usize::MAX, row)
}

/// The cells of a row on a screen of this width.
pub(super) fn figures_on<'a>(width: usize, row: impl Into<FigureRow<'a>>) -> Vec<String> {
    let row = row.into();
    let [before, behind] =
        [COLUMNS, COLUMNS_BEHIND].map(|all| shown_on(width, all).map(|(_, column)| row.cell(column)));
    before.chain(percentile_cells(width, row.shown_latency())).chain(behind).collect()
}

/// Returns what `-` means, if a table of this width lacks a percentile that the result has.
pub(super) fn percentiles_note(run: &Run, width: usize) -> Option<String> {
    let mut rows = run.flowops.iter().map(FigureRow::from).chain([FigureRow::from(&run.summary)]);
    let lacks = |row: FigureRow| {
        percentiles_on(width).any(|percentile| percentile.of(row.shown_latency()) != percentile.of(row.latency()))
    };
    rows.any(lacks).then(|| format!("-: fewer than {MIN_BEYOND} operations beyond this percentile"))
}

impl<'a> From<&'a FlowopResult> for FigureRow<'a> {
    fn from(flowop: &'a FlowopResult) -> Self {
        Self::Flowop(flowop)
    }
}

impl<'a> From<&'a Summary> for FigureRow<'a> {
    fn from(summary: &'a Summary) -> Self {
        Self::All(summary)
    }
}
