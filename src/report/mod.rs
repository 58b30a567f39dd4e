//! Results as text, JSON, CSV, and in the words of Filebench.
//!
//! In: a [`Document`]. Out: bytes. A format is one file here and one line in [`TABLE`].
//! A report needs nothing but the document, so it can be made from a JSON file on another machine:
//! `report::write(report::find("csv")?, &report::json::read(&text)?, &mut out)`.
//! Absent: anything that measures, and anything about terminals but their width.

pub mod csv;
pub mod filebench;
pub mod histogram;
pub mod index;
pub mod json;
pub mod markdown;
pub mod none;
pub mod text;
mod visible_json;

use crate::result::texts::TextField;
use crate::result::{Document, Run};
use crate::util::printable;
use std::borrow::Cow;
use std::io::{self, Write};

/// A format of reports. A document's runs are written as they end, so there are three steps.
pub trait Report: Sync {
    /// What `--format` calls it.
    fn name(&self) -> &'static str;

    /// One line for the help.
    fn about(&self) -> &'static str;

    /// Whether it holds the warnings too.
    fn warns(&self) -> bool {
        false
    }

    /// Whether a program reads it: then nothing else may stand between.
    fn for_programs(&self) -> bool {
        false
    }

    /// What comes before all runs.
    fn begin(&self, _document: &Document, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// One run, by its place in the document.
    fn run(&self, _document: &Document, _index: usize, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// A report of a run that goes on (`psrun`): the document's only run, with its figures so far, or, if it stands `apart`,
    /// with those since the report before it.
    fn interim(&self, document: &Document, _apart: bool, out: &mut dyn Write) -> io::Result<()> {
        self.run(document, 0, out)
    }

    /// What comes after all runs.
    fn end(&self, _document: &Document, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// A document without control characters, for formats that have no escapes of their own: a name or a path stays in its line.
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

/// The same of one run.
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

fn escape(_: TextField, text: &mut String) {
    if let Cow::Owned(escaped) = printable::line(text) {
        *text = escaped;
    }
}

/// Every format.
pub static TABLE: &[&dyn Report] = &[
    &text::Text,
    &json::Json,
    &csv::Csv,
    &markdown::Markdown,
    &filebench::Filebench15,
    &filebench::Filebench14,
    &none::NoReport,
];

/// The format of this name.
pub fn find(name: &str) -> Option<&'static dyn Report> {
    TABLE.iter().copied().find(|report| report.name() == name)
}

/// A whole document in one go.
pub fn write(report: &dyn Report, document: &Document, out: &mut dyn Write) -> io::Result<()> {
    report.begin(document, out)?;
    for index in 0..document.runs.len() {
        report.run(document, index, out)?;
    }
    report.end(document, out)
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
            assert!(!report.about().is_empty());
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
        for report in TABLE.iter().filter(|report| report.name() != "json") {
            insta::assert_snapshot!(report.name(), to_string(*report, &document));
        }
    }
}
