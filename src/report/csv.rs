//! Comma-separated values (RFC 4180): a heading, then one row per run and flowop. Missing figures are empty cells.

use super::{Report, ReportInfo};
use crate::result::{Document, FlowopResult, Latency, Percentile, PercentilePlace, Run};
use crate::util::csv::{quoted, text};
use std::io::{self, Write};

/// `--format csv`.
pub(crate) struct Csv;

/// A column: its heading, and a function that returns its cell for a row.
type Column = (&'static str, fn(&CsvRow) -> String);

/// Headings of the columns with text cells. All other cells are numbers.
const TEXTS: [&str; 9] = ["script", "state", "started_at", "process", "thread", "name", "kind", "class", "label"];

/// The data of a row.
struct CsvRow<'a> {
    document: &'a Document,
    number: usize,
    run: &'a Run,
    flowop: &'a FlowopResult,
}

/// The columns before those of the percentiles.
const BEFORE: &[Column] = &[
    ("script", |r| r.document.script.path.clone()),
    ("run", |r| r.number.to_string()),
    ("state", |r| r.run.state.name().to_owned()),
    ("started_at", |r| r.run.started_at.clone()),
    ("seconds", |r| r.run.measured_seconds.to_string()),
    ("process", |r| r.flowop.process.clone()),
    ("thread", |r| r.flowop.thread.clone()),
    ("index", |r| r.flowop.index.to_string()),
    ("name", |r| r.flowop.name.clone()),
    ("kind", |r| r.flowop.kind.clone()),
    ("class", |r| r.flowop.class.name().to_owned()),
    ("line", |r| r.flowop.line.to_string()),
    ("instances", |r| r.flowop.instances.to_string()),
    ("ops", |r| r.flowop.ops.to_string()),
    ("ops_per_s", |r| r.flowop.ops_per_s.to_string()),
    ("bytes", |r| r.flowop.bytes.to_string()),
    ("mib_per_s", |r| r.flowop.mib_per_s.to_string()),
    ("min_ns", |r| optional(r.flowop.latency_ns.min)),
    ("mean_ns", |r| optional(r.flowop.latency_ns.mean)),
    ("stddev_ns", |r| optional(r.flowop.latency_ns.stddev)),
];

/// Those after them.
const AFTER: &[Column] = &[
    ("max_ns", |r| optional(r.flowop.latency_ns.max)),
    ("implicit_opens", |r| r.flowop.implicit_opens.to_string()),
    ("errors", |r| r.flowop.errors.values().sum::<u64>().to_string()),
    ("late_ops", |r| r.flowop.late_ops.to_string()),
    ("starved_seconds", |r| r.flowop.starved_seconds.to_string()),
    ("tool_ns_mean", |r| optional(r.flowop.tool_ns_mean)),
    ("label", |r| r.document.label.clone().unwrap_or_default()),
];

impl Report for Csv {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs("csv", "comma-separated values, one row per run and flowop")
    }

    fn begin(&self, _: &Document, out: &mut dyn Write) -> io::Result<()> {
        let [before, after] = [BEFORE, AFTER].map(|columns| columns.iter().map(|(heading, _)| (*heading).to_owned()));
        line(out, before.chain(percentile_headings(PercentilePlace::Files)).chain(after))
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        for flowop in &run.flowops {
            let row = CsvRow { document, number: index + 1, run, flowop };
            let cell = |(heading, cell): &Column| (TEXTS.contains(heading), cell(&row));
            let percentiles = percentile_cells(flowop.latency_ns, PercentilePlace::Files);
            self::row(out, BEFORE.iter().map(cell).chain(percentiles).chain(AFTER.iter().map(cell)))?;
        }
        Ok(())
    }
}

/// The headings of the percentiles.
pub(super) fn percentile_headings(place: PercentilePlace) -> impl Iterator<Item = String> {
    Percentile::shown_in(place).map(|percentile| format!("{}_ns", percentile.name))
}

/// Their cells, as [`row`] takes them.
pub(super) fn percentile_cells(latency: Latency, place: PercentilePlace) -> impl Iterator<Item = (bool, String)> {
    Percentile::shown_in(place).map(move |percentile| (false, optional(percentile.of(latency))))
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
    use super::{AFTER, BEFORE, Csv, TEXTS, quoted, text};
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
        assert!(TEXTS.iter().all(|heading| BEFORE.iter().chain(AFTER).any(|(other, _)| other == heading)));
    }

    #[test]
    fn one_row_per_run_and_flowop_with_all_columns() {
        let mut document = fixture();
        document.runs.push(document.runs[0].clone());
        let text = to_string(&Csv, &document);
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 1 + 2 * 3);
        let columns = BEFORE.len() + PERCENTILES.len() + AFTER.len();
        assert!(rows.iter().all(|row| row.split(',').count() == columns));
        assert!(rows[4].starts_with("oltp_sync.wml,2,complete,"));
    }
}
