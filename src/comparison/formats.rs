//! The formats of the documents: each writes the sheet of a document, its figures, or all of it as JSON.

use super::study_document::AsStudy;
use crate::analysis::{Direction, Estimate};
use crate::import::Metric;
use crate::sheet::{Figures, Series, Sheet, bencher, benchstat, csv, github, junit, latex, mail, markdown, text};
use serde::Serialize;

/// A document of this room.
pub trait ResultDocument: AsJson + AsStudy {
    /// What people read.
    fn sheet(&self) -> Sheet;

    /// What programs read line by line.
    fn figures(&self) -> Figures;
}

/// Data that can be written as indented JSON.
pub trait AsJson {
    fn json(&self) -> String;
}

impl<T: Serialize> AsJson for T {
    fn json(&self) -> String {
        // Floats that are not finite become null. JSON escapes control characters in names.
        serde_json::to_string_pretty(self).map_or_else(|e| e.to_string(), |text| text + "\n")
    }
}

pub struct ComparisonFormat {
    /// The name for `--format`.
    pub name: &'static str,
    /// The description for `--help`, one line.
    pub about: &'static str,
    writer: FormatWriter,
}

/// What a format is made of.
enum FormatWriter {
    Sheet(fn(&Sheet) -> String),
    Figures(fn(&Figures) -> String),
    Document(fn(&dyn ResultDocument) -> String),
}

impl ComparisonFormat {
    const fn new(name: &'static str, about: &'static str, writer: FormatWriter) -> Self {
        Self { name, about, writer }
    }

    pub fn write(&self, document: &dyn ResultDocument) -> String {
        match self.writer {
            FormatWriter::Sheet(write) => write(&document.sheet()),
            FormatWriter::Figures(write) => write(&document.figures()),
            FormatWriter::Document(write) => write(document),
        }
    }

    /// Writes what has a sheet and JSON alone.
    pub(crate) fn write_either(&self, json: impl FnOnce() -> String, sheet: impl FnOnce() -> Sheet) -> String {
        if let FormatWriter::Sheet(write) = self.writer { write(&sheet()) } else { json() }
    }
}

use FormatWriter::{Document, Figures as OfFigures, Sheet as OfSheet};

#[rustfmt::skip]
pub static FORMATS: &[ComparisonFormat] = &[
    ComparisonFormat::new("text", "for people", OfSheet(text::write)),
    ComparisonFormat::new("markdown", "for a pull request", OfSheet(markdown::write)),
    ComparisonFormat::new("latex", "the tables for a paper, with booktabs", OfSheet(latex::write)),
    ComparisonFormat::new("mail", "the answer alone, in lines of at most 72 columns", OfSheet(mail::write)),
    ComparisonFormat::new("junit", "JUnit XML: the verdict and the limits", OfSheet(junit::write)),
    ComparisonFormat::new("github", "annotations for GitHub, and the summary of a step in Markdown",
        OfSheet(github::write)),
    ComparisonFormat::new("json", "the complete document", Document(|document| document.json())),
    ComparisonFormat::new("study", "JSON in one form for all experiments: cells, verdict, curve, effects",
        Document(|document| document.study().json())),
    ComparisonFormat::new("csv", "one observation per line; for a sweep one point per line", OfFigures(csv::write)),
    ComparisonFormat::new("benchstat", "Go's benchmark lines, for benchstat", OfFigures(benchstat::write)),
    ComparisonFormat::new("bencher", "Bencher's metric format, JSON", OfFigures(bencher::write)),
];

/// The formats of figures that are computed from files.
pub(crate) const OF_FIGURES: &[&str] = &["text", "json"];

/// Those of tables of them.
pub(crate) const OF_TABLES: &[&str] = &["text", "markdown", "latex", "json"];

/// Those of tables with verdicts.
pub(crate) const OF_VERDICTS: &[&str] = &["text", "markdown", "latex", "junit", "github", "json"];

/// The format with this name, or `None` when there is none.
pub fn find_format(name: &str) -> Option<&'static ComparisonFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The observations of a metric, with its estimate.
pub(super) fn series(metric: &str, estimate: Option<Estimate>, values: &[f64]) -> Series {
    let known = metric.parse::<Metric>().ok();
    let direction = known.as_ref().map_or(Direction::HigherIsBetter, Metric::direction);
    Series {
        metric: metric.to_owned(),
        unit: known.as_ref().map_or("value", Metric::go_unit),
        better: go_direction(direction),
        value: estimate.map(|estimate| estimate.value),
        ends: estimate.and_then(Estimate::ends),
        values: values.to_vec(),
        ..Series::default()
    }
}

/// The word of benchstat for the values that are better.
pub(super) fn go_direction(direction: Direction) -> &'static str {
    match direction {
        Direction::HigherIsBetter => "higher",
        Direction::LowerIsBetter => "lower",
    }
}

/// Documents in the formats, for tests.
#[cfg(test)]
pub(super) mod shown {
    use super::{ResultDocument, find_format};

    fn written(name: &str, document: &dyn ResultDocument) -> String {
        find_format(name).map_or_else(String::new, |format| format.write(document))
    }

    pub(in super::super) fn text(document: &dyn ResultDocument) -> String {
        written("text", document)
    }

    pub(in super::super) fn markdown(document: &dyn ResultDocument) -> String {
        written("markdown", document)
    }

    pub(in super::super) fn latex(document: &dyn ResultDocument) -> String {
        written("latex", document)
    }

    pub(in super::super) fn mail(document: &dyn ResultDocument) -> String {
        written("mail", document)
    }

    pub(in super::super) fn csv(document: &dyn ResultDocument) -> String {
        written("csv", document)
    }

    pub(in super::super) fn benchstat(document: &dyn ResultDocument) -> String {
        written("benchstat", document)
    }

    pub(in super::super) fn bencher(document: &dyn ResultDocument) -> String {
        written("bencher", document)
    }
}
