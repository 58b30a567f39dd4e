//! The choices of the command line: options whose value is one of several names, with the parsers of these names. Most
//! names come from the tables of other modules.
//!
//! Not in here: the options themselves (`args`, `experiment_args`).

use crate::comparison::{ComparisonFormat, FORMATS, find_format};
use crate::measure::dialects;
use crate::report::{self, Report};
use crate::spec::Dialect;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parsing stage whose output can be printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum DumpStage {
    /// Tokens of the lexer
    Tokens,
    /// Statements of the parser
    Ast,
}

/// A format of [`report::TABLE`].
pub(super) type Format = &'static dyn Report;

/// The format of `wmlrun report`.
#[derive(Clone, Copy)]
pub(super) enum ExportFormat {
    Page,
    /// One of [`report::TABLE`].
    Report(Format),
    /// One that only experiments have.
    Experiment(&'static ComparisonFormat),
}

impl ExportFormat {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Page => PAGE_FORMAT.0,
            Self::Report(format) => format.name(),
            Self::Experiment(format) => format.name,
        }
    }
}

/// The name and the description of the format of pages.
pub(super) const PAGE_FORMAT: (&str, &str) = ("html", "a page with pictures and tables");

/// Returns a parser of the formats of `wmlrun report`.
pub(super) fn export_parser() -> impl TypedValueParser<Value = ExportFormat> {
    let reports = report::TABLE.iter().map(|report| (report.name(), report.info().about));
    let of_experiments = FORMATS.iter().filter(|format| report::find(format.name).is_none());
    let of_experiments = of_experiments.map(|format| (format.name, format.about));
    choice(std::iter::once(PAGE_FORMAT).chain(reports).chain(of_experiments), |name| match report::find(name) {
        Some(found) => Some(ExportFormat::Report(found)),
        None if name == PAGE_FORMAT.0 => Some(ExportFormat::Page),
        None => find_format(name).map(ExportFormat::Experiment),
    })
}

/// Returns a parser of one of the names in `rows`, pairs of a name and its help text. `find` maps a name to its value.
pub(super) fn choice<T: Clone + Send + Sync + 'static>(
    rows: impl IntoIterator<Item = (&'static str, &'static str)>,
    find: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    let values = rows.into_iter().map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).try_map(move |name| find(&name).ok_or("not in the table"))
}

/// Returns a parser of the formats in [`report::TABLE`].
pub(super) fn format_parser() -> impl TypedValueParser<Value = Format> {
    choice(report::TABLE.iter().map(|report| (report.name(), report.info().about)), report::find)
}

pub(super) fn dialect_parser() -> impl TypedValueParser<Value = Dialect> {
    choice(dialects(), Dialect::find)
}
