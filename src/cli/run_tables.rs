//! The formats of `wmlrun report` with a row for each run of an experiment.

use super::choices::Format;
use crate::experiment::RecordedExperiment;
use crate::import;
use crate::report::csv_runs::{self, CsvRuns, ExperimentRun};
use crate::report::json;
use crate::report::markdown_runs::MarkdownRuns;
use crate::result::Document;
use std::io;
use std::path::Path;

/// A format of runs, and the function that writes those of an experiment in it.
type RunTableFormat = (Format, fn(&RecordedExperiment) -> io::Result<String>);

/// All such formats.
pub(super) const RUN_TABLES: &[RunTableFormat] =
    &[(&CsvRuns, csv), (&MarkdownRuns, |recorded| Ok(recorded.run_table().markdown()))];

/// Returns the same rows as the option `--append` of the experiment writes. Runs without a result are left out.
fn csv(recorded: &RecordedExperiment) -> io::Result<String> {
    let experiment = &recorded.experiment;
    let mut out = csv_runs::experiment_header().into_bytes();
    for run in &recorded.runs {
        let Some(document) = run_document(&recorded.result(run.number)) else { continue };
        let arm = experiment.arm_label(run.arm);
        let of = ExperimentRun { experiment: &experiment.name, arm: &arm, number: run.number as usize };
        append(of, &document, &mut out)?;
    }
    String::from_utf8(out).map_err(io::Error::other)
}

/// Returns the result of a run of an experiment. `None` if it can't be read: a run that failed may have no result.
pub(super) fn run_document(result: &Path) -> Option<Document> {
    import::text(result).ok().and_then(|text| json::read(&text).ok())
}

/// Writes the row of a run of an experiment: the last run of its script.
pub(super) fn append(of: ExperimentRun<'_>, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
    csv_runs::experiment_row(of, document, document.runs.len().saturating_sub(1), out)
}
