//! What a report format is, and what the formats have in common.

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
    pub(super) fn for_people(name: &'static str, about: &'static str) -> Self {
        Self { name, about, ..Self::default() }
    }

    pub(super) fn for_programs(name: &'static str, about: &'static str) -> Self {
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
pub(super) fn visible(document: &Document) -> Cow<'_, Document> {
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
pub(super) fn visible_run(run: &Run) -> Cow<'_, Run> {
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
