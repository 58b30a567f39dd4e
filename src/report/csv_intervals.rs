//! Comma-separated values (RFC 4180) with one row per interval and flowop: the time series of the runs as a tidy table.

use super::csv::{cells, headings, line, optional, row};
use super::{Report, ReportInfo};
use crate::result::{Document, Interval, IntervalFlowop};
use std::io::{self, Write};

/// `--format csv-intervals`.
pub(crate) struct CsvIntervals;

/// The data of a row.
struct IntervalRow<'a> {
    document: &'a Document,
    number: usize,
    interval: &'a Interval,
    flowop: &'a IntervalFlowop,
    /// See [`crate::result::Run::name_suffixes`].
    suffix: &'a str,
}

/// A column: its heading, whether its cells are text, and a function that returns its cell for a row.
type IntervalColumn = (&'static str, bool, fn(&IntervalRow) -> String);

const COLUMNS: &[IntervalColumn] = &[
    ("script", true, |r| r.document.script.path.clone()),
    ("label", true, |r| r.document.label.clone().unwrap_or_default()),
    ("run", false, |r| r.number.to_string()),
    ("t", false, |r| r.interval.t.to_string()),
    ("seconds", false, |r| r.interval.seconds.to_string()),
    ("flowop", true, |r| format!("{}{}", r.flowop.name, r.suffix)),
    ("ops", false, |r| r.flowop.ops.to_string()),
    ("bytes", false, |r| r.flowop.bytes.to_string()),
    ("mean_ns", false, |r| optional(r.flowop.mean_ns)),
    ("p50_ns", false, |r| optional(r.flowop.p50_ns)),
    ("p99_ns", false, |r| optional(r.flowop.p99_ns)),
];

impl Report for CsvIntervals {
    fn info(&self) -> ReportInfo {
        ReportInfo::for_programs(
            "csv-intervals",
            "comma-separated values, one row per interval of the time series and flowop",
        )
    }

    fn begin(&self, _: &Document, out: &mut dyn Write) -> io::Result<()> {
        line(out, headings(COLUMNS))
    }

    fn run(&self, document: &Document, index: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = document.runs.get(index) else { return Ok(()) };
        let suffixes = run.name_suffixes();
        for interval in &run.intervals {
            for (position, flowop) in interval.flowops.iter().enumerate() {
                let suffix = suffixes.get(position).map_or("", String::as_str);
                let of = IntervalRow { document, number: index + 1, interval, flowop, suffix };
                row(out, cells(COLUMNS, &of))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, CsvIntervals};
    use crate::report::to_string;
    use crate::result::fixture::fixture;

    #[test]
    fn one_row_per_interval_and_flowop() {
        let document = fixture();
        let text = to_string(&CsvIntervals, &document);
        let rows: Vec<&str> = text.split_terminator("\r\n").collect();
        let expect: usize = document.runs[0].intervals.iter().map(|interval| interval.flowops.len()).sum();
        assert!(expect > 0 && rows.len() == 1 + expect, "{text}");
        assert!(rows.iter().all(|row| row.split(',').count() == COLUMNS.len()), "{text}");
    }

    #[test]
    fn flowops_of_one_name_in_a_thread_have_different_names() {
        let mut document = fixture();
        let run = &mut document.runs[0];
        run.flowops[1] = run.flowops[0].clone();
        run.name_intervals();
        let text = to_string(&CsvIntervals, &document);
        let names: Vec<&str> =
            text.lines().skip(1).take(3).filter_map(|row| row.split(',').find(|cell| cell.contains('/'))).collect();
        let expected = ["shadow/shadow/shadowread#1", "shadow/shadow/shadowread#2", "shadow/shadow/shadow-post-dbwr"];
        assert_eq!(names, expected, "{text}");
    }
}
