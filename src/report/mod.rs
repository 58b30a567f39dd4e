//! Report formats: text, JSON, CSV, Markdown, `OpenMetrics`, histograms for `HdrHistogram`, and the output formats of
//! Filebench.
//!
//! A report is written from a [`Document`] only, so it can also be generated from a JSON file on another machine:
//! `report::write(report::find("csv")?, &report::json::read(&text)?, &mut out)`. Not here: measuring, and terminal
//! control.
//!
//! To add a format: a file with a `Report`, and an entry in [`TABLE`], from which help, completion and the manual come.
//! `run` writes a run when it ends, `end` after all of them. A report escapes names, because they come from scripts:
//! add it to the lists of `tests/it/escape.rs` and `tests/it/commands.rs`. A figure that the document lacks goes into
//! `result`, `docs/result.schema.json` and `result::fixture`; a test checks that the three agree.

pub mod benchstat;
mod conclusion;
mod devices;
pub mod csv;
pub mod csv_intervals;
pub mod csv_runs;
pub mod dumps;
pub mod filebench;
pub mod hgrm;
pub mod histogram;
pub mod hlog;
pub(crate) mod hosts;
pub mod index;
pub mod json;
pub mod live;
pub mod markdown;
pub mod markdown_runs;
pub(crate) mod names;
pub mod none;
pub mod openmetrics;
pub mod plot;
pub(crate) mod requests;
pub mod screen;
pub mod text;

use crate::result::hdr;
use crate::result::snapshot::Dist;
use crate::result::texts::TextField;
use crate::result::{Document, Run};
use crate::util::printable;
use std::borrow::Cow;
use std::io::{self, Write};

/// What is known of a format.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportInfo {
    /// The name for `--format`.
    pub name: &'static str,
    /// A line for the help.
    pub about: &'static str,
    /// Whether programs read it. If so, nothing else is printed to its output.
    pub for_programs: bool,
    /// Whether it is the output of Filebench, which programs and people read.
    pub of_filebench: bool,
    /// Whether the report has the run's warnings.
    pub has_warnings: bool,
    /// Whether reports of several documents, written one after another with one beginning, are not a valid text.
    pub stands_alone: bool,
}

impl ReportInfo {
    fn for_people(name: &'static str, about: &'static str) -> Self {
        Self { name, about, ..Self::default() }
    }

    fn for_programs(name: &'static str, about: &'static str) -> Self {
        Self { for_programs: true, ..Self::for_people(name, about) }
    }
}

/// A report format. The runs of a document are written as they end, so a report has these parts: `begin`, `started` and
/// `run` for each run, `end`.
pub trait Report: Sync {
    /// What is known of the format.
    fn info(&self) -> ReportInfo;

    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Writes the part before all runs.
    fn begin(&self, _document: &Document, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes what precedes the figures of a run, those of its interim reports as well.
    fn started(&self, _document: &Document, _index: usize, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes the run with the given index in the document.
    fn run(&self, _document: &Document, _index: usize, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes an interim report of a run in progress (`psrun`), the document's only run. Its figures cover the run so
    /// far, or, if `apart`, the time since the previous report.
    fn interim(&self, document: &Document, _apart: bool, out: &mut dyn Write) -> io::Result<()> {
        self.run(document, 0, out)
    }

    /// Writes the part after all runs.
    fn end(&self, _document: &Document, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the document with control characters escaped, for formats without an escape syntax: a name or a path can
/// then not span lines. The script's text is not examined.
fn visible(document: &Document) -> Cow<'_, Document> {
    let mut clean = true;
    document.texts(&mut |field, text| {
        clean &= field == TextField::Script || matches!(printable::line(text), Cow::Borrowed(_));
    });
    if clean {
        return Cow::Borrowed(document);
    }
    let mut copy = document.clone();
    copy.texts_mut(&mut escape);
    Cow::Owned(copy)
}

/// Returns the run with control characters escaped.
fn visible_run(run: &Run) -> Cow<'_, Run> {
    let mut clean = true;
    run.texts(&mut |_, text| clean &= matches!(printable::line(text), Cow::Borrowed(_)));
    if clean {
        return Cow::Borrowed(run);
    }
    let mut copy = run.clone();
    copy.texts_mut(&mut escape);
    Cow::Owned(copy)
}

/// Escapes the control characters of a string in place.
fn escape(_: TextField, text: &mut String) {
    if let Cow::Owned(escaped) = printable::line(text) {
        *text = escaped;
    }
}

/// Returns the distribution of the latencies of all I/O of a run. Flowops whose histogram can't be read are missing.
pub(crate) fn io_latency(run: &Run) -> Dist {
    if let Ok(all) = hdr::decode(&run.summary.histogram) {
        return all;
    }
    let mut all = Dist::default();
    let of_io = run.flowops.iter().filter(|flowop| flowop.class.is_io());
    of_io.filter_map(|flowop| hdr::decode(&flowop.histogram).ok()).for_each(|dist| all.merge(&dist));
    all
}

/// All report formats.
pub static TABLE: &[&dyn Report] = &[
    &text::Text { per_host: false },
    &json::Json,
    &csv::Csv,
    &csv_runs::CsvRuns,
    &csv_intervals::CsvIntervals,
    &markdown::Markdown,
    &markdown_runs::MarkdownRuns,
    &openmetrics::OpenMetrics,
    &benchstat::Benchstat,
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
