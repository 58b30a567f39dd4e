//! Report formats: text, JSON, CSV, Markdown, `OpenMetrics`, histograms for `HdrHistogram`, and the output formats of
//! Filebench.
//!
//! A report is written from a [`Document`] only, so it can also be generated from a JSON file on another machine:
//! `report::write(report::find("csv")?, &report::json::read(&text)?, &mut out)`. Not here: measuring, and terminal
//! control.
//!
//! To add a format: a file with a `Report`, and an entry in [`TABLE`], from which help, completion, the manual and the
//! tests of hostile names come. `run` writes a run when it ends, `end` after all of them. A report escapes names, because
//! they come from scripts. Add the format to the table of docs/results.md. A figure that the document lacks goes into
//! `result`, `docs/result.schema.json` and `result::fixture`; a test checks that the three agree.

pub mod benchstat;
pub(crate) mod checks;
pub(crate) mod columns;
mod conclusion;
mod devices;
pub mod csv;
pub mod csv_intervals;
pub mod csv_runs;
pub mod dumps;
pub mod filebench;
mod format;
pub mod hgrm;
pub mod histogram;
pub mod hlog;
pub(crate) mod hosts;
pub mod index;
pub mod json;
pub mod live;
pub mod markdown;
pub mod markdown_runs;
pub(crate) mod metrics;
pub(crate) mod names;
pub mod none;
pub mod openmetrics;
pub mod plot;
pub(crate) mod replay;
pub(crate) mod requests;
pub mod screen;
pub mod text;

pub(crate) use format::io_latency;
pub use format::{Report, ReportInfo};

use crate::result::Document;
use std::io::{self, Write};

/// All report formats.
pub static TABLE: &[&dyn Report] = &[
    &text::Text,
    &json::Json,
    &csv::Csv,
    &csv_runs::CsvRuns,
    &csv_intervals::CsvIntervals,
    &markdown::Markdown,
    &markdown_runs::MarkdownRuns,
    &openmetrics::OpenMetrics,
    &benchstat::Benchstat,
    &checks::Junit,
    &checks::Github,
    &hgrm::Hgrm,
    &hlog::Hlog,
    &filebench::Filebench15,
    &filebench::Filebench14 { is_149: true },
    &filebench::Filebench14 { is_149: false },
    &none::NoReport,
];

/// Returns the format with this name.
pub fn find(name: &str) -> Option<&'static dyn Report> {
    TABLE.iter().copied().find(|report| report.name() == name)
}

/// Writes several documents as one text; see [`ReportInfo::stands_alone`].
pub fn write_all(report: &dyn Report, documents: &[&Document], out: &mut dyn Write) -> io::Result<()> {
    for (n, document) in documents.iter().enumerate() {
        if n == 0 {
            report.begin(document, out)?;
        }
        for index in 0..document.runs.len() {
            report.started(document, index, out)?;
            report.run(document, index, out)?;
        }
        report.end(document, out)?;
    }
    Ok(())
}

/// Writes a whole document.
pub fn write(report: &dyn Report, document: &Document, out: &mut dyn Write) -> io::Result<()> {
    write_all(report, &[document], out)
}

#[cfg(test)]
pub(crate) fn to_string(report: &dyn Report, document: &Document) -> String {
    let mut out = Vec::new();
    match write(report, document, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(error) => format!("error: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, TABLE, find, to_string};
    use crate::result::fixture::fixture;
    use crate::result::{Document, Run};

    #[test]
    fn every_format_is_found_by_its_own_name() {
        for report in TABLE {
            assert_eq!(find(report.name()).map(Report::name), Some(report.name()));
            assert!(!report.info().about.is_empty());
        }
        assert!(find("html").is_none());
    }

    #[test]
    fn every_format_writes_documents_without_runs_or_operations() {
        for runs in [vec![], vec![Run::default()]] {
            let document = Document { runs, ..Document::default() };
            for report in TABLE {
                let text = to_string(*report, &document);
                assert!(!text.contains("NaN") && !text.contains("inf"), "{}: {text}", report.name());
            }
        }
    }

    #[test]
    fn goldens() {
        let document = fixture();
        // These have tests beside them.
        let others = ["json", "csv-runs", "csv-intervals", "markdown-runs", "benchstat", "hgrm", "hlog"];
        for report in TABLE.iter().filter(|report| !others.contains(&report.name())) {
            insta::assert_snapshot!(report.name(), to_string(*report, &document));
        }
    }
}
