//! The choices of the command line: options whose value is one of several names, with the parsers of these names. Most
//! names come from the tables of other modules.
//!
//! Not in here: the options themselves (`args`, `experiment_args`).

use crate::engine::{self, Engine};
use crate::report::{self, Report};
use crate::spec::{Dialect, Division, Sharing};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// How a failed operation is handled.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum OnError {
    /// End the run at the first error
    Stop,
    /// Count the error and continue the run
    Count,
}

/// The format of figures that are computed from a file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum FigureFormat {
    /// Text for people
    Text,
    /// JSON for programs
    Json,
}

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

/// The format of `wmlrun report`: one of [`report::TABLE`], or `None` for a page.
#[derive(Clone, Copy)]
pub(super) struct ExportFormat(pub(super) Option<Format>);

/// The name and the description of the format of pages.
pub(super) const PAGE_FORMAT: (&str, &str) = ("html", "a page with pictures and tables");

/// Returns a parser of the ways to share a file set.
pub(super) fn sharing_parser() -> impl TypedValueParser<Value = Sharing> {
    choice(Sharing::ALL.map(|sharing| (sharing.name(), sharing.about())), Sharing::from_name)
}

/// Returns a parser of what each rank runs.
pub(super) fn division_parser() -> impl TypedValueParser<Value = Division> {
    choice(Division::ALL.map(|division| (division.name(), division.about())), Division::from_name)
}

/// Returns a parser of the formats of `wmlrun report`.
pub(super) fn export_parser() -> impl TypedValueParser<Value = ExportFormat> {
    let reports = report::TABLE.iter().map(|report| (report.name(), report.about()));
    choice(std::iter::once(PAGE_FORMAT).chain(reports), |name| match report::find(name) {
        None if name != PAGE_FORMAT.0 => None,
        found => Some(ExportFormat(found)),
    })
}

/// An engine of [`engine::TABLE`].
pub(super) type EngineChoice = &'static dyn Engine;

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
    choice(report::TABLE.iter().map(|report| (report.name(), report.about())), report::find)
}

/// Returns a parser of the engines in [`engine::TABLE`].
pub(super) fn engine_parser() -> impl TypedValueParser<Value = EngineChoice> {
    choice(engine::TABLE.iter().map(|(engine, about)| (engine.name(), *about)), engine::find)
}

/// Returns a parser of the dialects.
pub(super) fn dialect_parser() -> impl TypedValueParser<Value = Dialect> {
    choice(Dialect::ALL.map(|dialect| (dialect.name(), dialect.about())), Dialect::from_name)
}

#[cfg(test)]
mod tests {
    use crate::cli::args::WorkloadArgs;
    use crate::cli::arms::{GivenBy, RESTRICTED, given_by};
    use clap::{Args, Command};

    /// The options that promise nothing: a new one is added here, or to `RESTRICTED`.
    #[rustfmt::skip]
    const FREE: [&str; 25] = [
        "runtime", "set", "dir", "seed", "layout-seed", "dialect", "warmup", "digest", "interval", "engine",
        "populate-threads", "pin", "cold", "no-quiesce", "mkdir", "share", "ranks", "as-is", "prepare-timeout", "keep",
        "clean", "on-error", "label", "note", "redact",
    ];

    #[test]
    fn every_option_says_who_may_give_it() {
        let form = WorkloadArgs::augment_args(Command::new(""));
        for name in form.get_arguments().filter_map(clap::Arg::get_long) {
            let is_restricted = given_by(&format!("--{name}")) != GivenBy::Anyone;
            assert_ne!(is_restricted, FREE.contains(&name), "--{name}");
        }
        let is_option = |name: &str| form.get_arguments().any(|arg| arg.get_long() == name.strip_prefix("--"));
        assert!(RESTRICTED.iter().all(|(name, _)| is_option(name)));
    }
}
