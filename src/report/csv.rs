//! Comma-separated values (RFC 4180): a heading, then one row per run and flowop. Missing figures are empty cells.

use super::columns::{FigureRow, csv_headings};
use super::{Report, ReportInfo};
use crate::result::{Document, FlowopResult, PercentilePlace, Run};
use crate::util::csv::{quoted, text};
use std::io::{self, Write};

/// `--format csv`.
pub(crate) struct Csv;

/// A column: its heading, whether its cells are text, and a function that returns its cell for a row.
type Column = (&'static str, bool, fn(&CsvRow) -> String);

/// The data of a row.
struct CsvRow<'a> {
    document: &'a Document,
    number: usize,
    run: &'a Run,
    flowop: &'a FlowopResult,
}

/// The columns before the figures.
const BEFORE: &[Column] = &[
    ("script", true, |r| r.document.script.path.clone()),
    ("run", false, |r| r.number.to_string()),
    ("state", true, |r| r.run.state.name().to_owned()),
    ("started_at", true, |r| r.run.started_at.clone()),
    ("seconds", false, |r| r.run.measured_seconds.to_string()),
    ("process", true, |r| r.flowop.process.clone()),
    ("thread", true, |r| r.flowop.thread.clone()),
    ("index", false, |r| r.flowop.index.to_string()),
    ("name", true, |r| r.flowop.name.clone()),
    ("kind", true, |r| r.flowop.kind.clone()),
    ("class", true, |r| r.flowop.class.name().to_owned()),
    ("line", false, |r| r.flowop.line.to_string()),
    ("instances", false, |r| r.flowop.instances.to_string()),
];

/// That after them.
const LABEL: &[Column] = &[("label", true, |r| r.document.label.clone().unwrap_or_default())];

impl Report for Csv {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs("csv", "comma-separated values, one row per run and flowop")
    }

    fn begin(&self, _: &Document, out: &mut dyn Write) -> io::Result<()> {
        let figures = csv_headings(PercentilePlace::Files, |column| column.of_flowop.is_some());
        line(out, headings(BEFORE).chain(figures).chain(headings(LABEL)))
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        for flowop in &run.flowops {
            let row = CsvRow { document, number: index + 1, run, flowop };
            let figures = FigureRow::from(flowop);
            let figures = figures.csv(PercentilePlace::Files).map(|cell| (false, cell));
            self::row(out, cells(BEFORE, &row).chain(figures).chain(cells(LABEL, &row)))?;
        }
        Ok(())
    }
}

/// The headings of columns.
pub(super) fn headings<F>(columns: &'static [(&'static str, bool, F)]) -> impl Iterator<Item = String> {
    columns.iter().map(|(heading, ..)| (*heading).to_owned())
}

/// Their cells in a row, as [`row`] takes them.
pub(super) fn cells<R, F: Fn(&R) -> String>(
    columns: &'static [(&'static str, bool, F)],
    of: &R,
) -> impl Iterator<Item = (bool, String)> {
    columns.iter().map(move |(_, is_text, cell)| (*is_text, cell(of)))
}

/// Writes a row of cells, each with whether it is text.
pub(super) fn row(out: &mut dyn Write, cells: impl Iterator<Item = (bool, String)>) -> io::Result<()> {
    line(out, cells.map(|(is_text, cell)| if is_text { text(&cell) } else { cell }))
}

/// Writes the headings, or the cells, of a row.
pub(super) fn line(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = cells.map(|cell| quoted(&cell)).collect();
    write!(out, "{}\r\n", cells.join(","))
}

pub(super) fn optional<T: ToString>(x: Option<T>) -> String {
    x.map(|x| x.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Csv, quoted, text};
    use crate::report::to_string;
    use crate::result::PERCENTILES;
    use crate::result::fixture::fixture;

    #[test]
    fn special_cells_are_quoted() {
        for (cell, expect) in
            [("a", "a"), ("", ""), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\nb", "\"a\nb\""), ("a b", "a b")]
        {
            assert_eq!(quoted(cell), expect);
        }
    }

    #[test]
    fn text_cells_are_no_formulas_and_one_line() {
        for (cell, expect) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\\t=1"),
            ("\r=1", "'\\r=1"),
            ("a\nerror: b\x1b[2J", "a\\nerror: b\\x1b[2J"),
            ("plain = name", "plain = name"),
        ] {
            assert_eq!(text(cell), expect);
        }
    }

    #[test]
    fn one_row_per_run_and_flowop_with_all_columns() {
        let mut document = fixture();
        document.runs.push(document.runs[0].clone());
        let text = to_string(&Csv, &document);
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 1 + 2 * 3);
        let columns = 13 + 7 + PERCENTILES.len() + 6 + 1;
        assert!(rows.iter().all(|row| row.split(',').count() == columns));
        assert!(rows[4].starts_with("oltp_sync.wml,2,complete,"));
    }
}
