//! Reads results of this program and of other tools as observations: the figures of a run by name, with the conditions
//! of the run.
//!
//! Input: a file or directory. Output: observations, or an error. Not in here: the analysis of observations.

mod columns;
mod error;
mod filebench;
mod fio;
pub(crate) mod folder;
mod input;
mod limit;
mod metric;
mod nights;
mod observation;
mod own;
mod recorded;
mod run_figures;
mod run_table;
mod samples;

pub(crate) use columns::{MAX_SIDES, TestFigures, letters, load_points, table_rows};
pub use error::ImportError;
pub(crate) use error::shortened;
use error::{damaged, form};
pub(crate) use input::{read as text, read_file as recorded_text};
pub use limit::MetricLimit;
pub use metric::{Metric, STUDY};
pub(crate) use nights::history_results;
pub use nights::{HistoryResult, HistoryResults};
pub use observation::Observation;
pub(crate) use observation::{ImportedSide, SideBlocks, number_in_file};
use observation::{MAX_OBSERVATIONS, TOO_MANY, numbered};
pub(crate) use own::{
    DEVICE_IDENTITY, FEATURES, KERNEL_COMMAND_LINE, LOADED_SCRIPTS, LOOP_DIRECT, PREALLOCATED, of_run,
};
pub use recorded::{CommandTimes, HookTime, RecordTimes, RecordedFigures, record_name};
pub use samples::{TestSample, TestSamples, mixed_conditions, shared_flowops, test_samples};

use crate::analysis::LoadPoint;
use crate::util::json;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::{Path, PathBuf};

/// Reads the observations of one side of a comparison: a result of wmlrun, a results folder or an arm of one
/// (`DIR:ARM`), a directory of results, output of Filebench 1.4 or 1.5, JSON of fio, a file with one column of numbers,
/// or `FILE:N`, the numbers in column N (counted from 1) of a file, or `FILE:HEADING`. Returns an error when a run failed or was interrupted, except for a
/// results folder, whose unfinished runs give a note.
pub(crate) fn side(path: &Path) -> Result<ImportedSide, ImportError> {
    let side = match folder::split(path) {
        Some((dir, arm)) => folder::side(&dir, Some(&arm))?,
        None if path.is_dir() => folder::side(path, None)?,
        None => ImportedSide { runs: observations(path)?, ..ImportedSide::default() },
    };
    match side.runs.iter().find_map(|run| Some((run, run.failure.as_ref()?))) {
        Some((run, why)) => Err(ImportError::Incomplete { run: run.source.clone(), why: why.clone() }),
        None => Ok(side),
    }
}

/// Returns the file or directory that a side of a comparison names, without the arm or the column.
pub(crate) fn file_of(path: &Path) -> PathBuf {
    let of_arm = folder::split(path).map(|(dir, _)| dir);
    let of_column = || columns::split(path).map(|(file, _)| file).or_else(|| Some(columns::split_heading(path)?.0));
    of_arm.or_else(of_column).unwrap_or_else(|| path.to_owned())
}

/// Reads the observations of a file, complete or not: a result of wmlrun, output of Filebench, JSON of fio, or
/// `FILE:N`.
pub(crate) fn observations(path: &Path) -> Result<Vec<Observation>, ImportError> {
    if let Some((file, column)) = columns::split(path) {
        let text = input::read(&file)?;
        return columns::observations(&text, column, &path.display().to_string()).map_err(form(&file));
    }
    if let Some((file, heading)) = columns::split_heading(path) {
        let text = input::read(&file)?;
        let column = columns::column_of(&text, &heading).map_err(form(&file))?;
        return columns::observations(&text, column, &path.display().to_string()).map_err(form(&file));
    }
    let text = input::read(path)?;
    parse(&text, &path.display().to_string()).map_err(form(path))
}

/// Reads the observations of a result in a results folder. See [`observations`]. It must be a regular file.
pub(crate) fn recorded_observations(path: &Path) -> Result<Vec<Observation>, ImportError> {
    let text = input::read_file(path)?;
    parse(&text, &path.display().to_string()).map_err(form(path))
}

/// True if a file is a result of wmlrun without a run, which was refused before it began.
pub(crate) fn is_of_refused_run(path: &Path) -> bool {
    input::read_file(path).is_ok_and(|text| own::is_of_refused_run(&text))
}

/// Reads the load curve of a file. See [`load_points`] for its form.
pub(crate) fn load_curve(path: &Path) -> Result<Vec<LoadPoint>, ImportError> {
    load_points(&input::read(path)?).map_err(form(path))
}

/// Reads the figures of tests from a file: one line per test, with its name and a figure of each side.
pub(crate) fn test_figures(path: &Path) -> Result<TestFigures, ImportError> {
    columns::test_figures(&input::read(path)?).map_err(form(path))
}

/// The fields that distinguish JSON of fio from that of wmlrun.
#[derive(Deserialize)]
struct JsonForm {
    #[serde(rename = "fio version")]
    fio_version: Option<IgnoredAny>,
}

/// Reads the observations of a text, whose form it detects, as [`observations`] reads those of a file. `source` names it.
pub(crate) fn parse(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    // The JSON starts at the first line with a `{`, because fio prints warnings before it.
    let lines = text.split_inclusive('\n');
    let json = lines.scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)));
    let json = json.into_iter().find(|(_, line)| line.starts_with('{')).map(|(at, _)| &text[at..]);
    let Some(json) = json else {
        return match text.contains("IO Summary") {
            true => filebench::observations(text, source),
            false if columns::is_one_column(text) => columns::observations(text, 1, source),
            false => Err(NO_FORM.to_owned()),
        };
    };
    match serde_json::Deserializer::from_str(json).into_iter::<JsonForm>().next() {
        Some(Ok(JsonForm { fio_version: Some(_) })) => fio::observations(json, source),
        Some(Err(e)) => Err(json::reason(&e)),
        _ => own::observations(json, source),
    }
}

/// The reason for an error of a text in no known form.
const NO_FORM: &str =
    "it is neither JSON of wmlrun or fio nor output of Filebench; for a column of numbers write `FILE:N`";

#[cfg(test)]
mod tests;
