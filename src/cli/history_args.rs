//! Command-line options of `history`.

use super::choices::choice;
use super::completion;
use super::experiment_args::ResultFormat;
use crate::comparison::{OF_VERDICTS, find_format};
use crate::import::Metric;
use crate::util::timestamp::is_day;
use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What `wmlrun history` does.
#[derive(Subcommand)]
pub(super) enum HistoryCommand {
    /// Add results to a history, which is created if it does not exist; those that it has are not added again
    Add {
        /// The folder of the history
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Results: files of `--json` or `--append`, results folders, directories of results
        #[arg(required = true, value_name = "RESULT", value_hint = ValueHint::AnyPath)]
        results: Vec<PathBuf>,
        /// The night of the runs, such as `2026-11-20` [default: the date when the result began]
        #[arg(long, value_name = "DATE", value_parser = night)]
        night: Option<String>,
        /// Where the runs were made, which tells tests of one name apart [default: the directory of their files]
        #[arg(long, value_name = "NAME")]
        place: Option<String>,
        /// Keep these metrics too, separated by commas, such as `view.response.p99`
        #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',', add = completion::metrics())]
        metrics: Vec<Metric>,
    },
    /// Give the verdict on the last night: which tests are worse than before, since when, and what changed then
    #[command(
        after_help = "Exit status: 0 if no test is worse, 10 if one is worse or drifting, 11 if one is suspect, has no result of the \
            last night or too few nights."
    )]
    Check {
        #[command(flatten)]
        shown: ShownHistory,
        /// Run this command for each suspect without a second result: it makes the test again, and that decides. It is given
        /// the test, its directory, and where its results go, as `$WMLRUN_TEST`, `$WMLRUN_PLACE` and
        /// `$WMLRUN_RESULTS`
        #[arg(long, value_name = "COMMAND")]
        confirm: Option<String>,
    },
    /// Write the conditions of the last good night of a test and of the first bad one, as text for a mail
    Bisect {
        /// The folder of the history
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// The test, as `check` calls it
        test: String,
        /// The metric
        #[arg(long, value_name = "METRIC", default_value = "ops", add = completion::metrics())]
        metric: Metric,
    },
    /// Write a page with a picture of the nights of each test, or the picture of one
    Plot {
        /// The folder of the history
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// The test, as `check` calls it
        test: Option<String>,
        /// The file: a page, or with the ending `.svg` the picture of a test
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
        /// The metric
        #[arg(long, value_name = "METRIC", default_value = "ops", add = completion::metrics())]
        metric: Metric,
        /// Replace the file whatever it contains
        #[arg(long)]
        force: bool,
    },
    /// Print the runs of all nights for other programs
    Export {
        /// The folder of the history
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// The format
        #[arg(long, value_enum, default_value_t = ExportedNights::Csv)]
        format: ExportedNights,
    },
    /// Show the tests with their last nights, or all nights of one test
    Show {
        #[command(flatten)]
        shown: ShownHistory,
        /// The test, as `check` calls it
        test: Option<String>,
    },
    /// Accept the level of a test since a night: later nights are compared with it
    Accept {
        /// The folder of the history
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// The test, as `check` calls it, or a level of an experiment, such as `mail`: all its cells
        test: String,
        /// The first night of the new level; accepting again replaces it, and the test's first night undoes it
        #[arg(long, value_name = "DATE", value_parser = night)]
        since: String,
        /// The reason, which the history keeps
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
    /// Remove a test, a night, a night of a test, or old nights from a history
    #[command(group(ArgGroup::new("forgotten").args(["test", "night", "keep"]).required(true).multiple(true)))]
    Forget {
        /// The folder of the history
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// The test, as `check` calls it
        test: Option<String>,
        /// The night
        #[arg(long, value_name = "DATE", value_parser = night)]
        night: Option<String>,
        /// All nights but the last N
        #[arg(long, value_name = "N", conflicts_with_all = ["test", "night"])]
        keep: Option<NonZeroUsize>,
    },
}

/// A format of the runs of a history.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum ExportedNights {
    /// A table with a line for each run
    Csv,
    /// Samples with their times, from which `promtool` makes blocks for Prometheus
    Openmetrics,
}

/// Which history is shown, and how.
#[derive(Args, Clone)]
pub(super) struct ShownHistory {
    /// The folder of the history
    #[arg(value_hint = ValueHint::DirPath)]
    pub(super) folder: PathBuf,
    /// The metric
    #[arg(long, value_name = "METRIC", default_value = "ops", add = completion::metrics())]
    pub(super) metric: Metric,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "text",
        value_parser = choice(OF_VERDICTS.iter().map(|name| (*name, "")), find_format))]
    pub(super) format: ResultFormat,
}

/// A day such as `2026-11-20`.
fn night(text: &str) -> Result<String, String> {
    if is_day(text) { Ok(text.to_owned()) } else { Err("expected a date such as `2026-11-20`".to_owned()) }
}
