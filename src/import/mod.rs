//! Reads results of this program and of other tools as observations: the figures of a run by name, with the conditions
//! of the run.
//!
//! Input: a file or directory. Output: observations, or an error. Not in here: the analysis of observations.

mod columns;
mod filebench;
mod fio;
pub(crate) mod folder;
mod input;
mod limit;
mod metric;
mod nights;
mod own;
mod recorded;
mod run_figures;
mod run_table;
mod samples;

pub(crate) use columns::{MAX_SIDES, TestFigures, letters, load_points, table_rows};
pub(crate) use input::{read as text, read_file as recorded_text};
pub use limit::MetricLimit;
pub use metric::{METRICS, Metric, STUDY};
pub(crate) use metric::{MetricWords, REQUEST_RESPONSE, REQUESTS, TRANSACTIONS};
pub(crate) use nights::history_results;
pub use nights::{HistoryResult, HistoryResults};
pub(crate) use own::{
    DEVICE_IDENTITY, FEATURES, KERNEL_COMMAND_LINE, LOADED_SCRIPTS, LOOP_DIRECT, PREALLOCATED, of_run,
};
pub use recorded::{CommandTimes, HookTime, RecordTimes, RecordedFigures, record_name};
pub use samples::{TestSample, TestSamples, mixed_conditions, shared_flowops, test_samples};

use crate::analysis::LoadPoint;
use crate::util::json;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of observations of a side.
const MAX_OBSERVATIONS: usize = 100_000;

/// The reason for an error of a side that has more than [`MAX_OBSERVATIONS`].
const TOO_MANY: &str = "it has more than 100,000 observations";

/// A run, measured by this program or another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The source: a file, and the number of the run if the file has several.
    pub source: String,
    /// The name of the script, without its directory and ending; empty in results of other programs.
    pub workload: String,
    /// The title of its arm, for a run of an experiment with several arms. Otherwise empty.
    pub arm: String,
    /// The name of the machine; empty in results of other programs.
    pub machine: String,
    /// Figures by metric: `ops` (operations per second), `mib` (MiB/s), `latency.mean`, `latency.p50`, `latency.p99`
    /// (nanoseconds). The same figures of a flowop have the prefix `NAME.`.
    pub figures: BTreeMap<String, f64>,
    /// Figures that may explain a change of a metric.
    pub causes: BTreeMap<&'static str, f64>,
    /// The names of its I/O flowops.
    pub steps: Vec<String>,
    /// Those of them that wait until data are on the storage, such as an fsync.
    pub syncs: BTreeSet<String>,
    /// The conditions of the run: kernel, mounts, script, variables, cache state.
    pub conditions: BTreeMap<String, String>,
    /// The start of the run in seconds since 1970, for fio its end; `None` when it is unknown.
    pub started: Option<i64>,
    /// Whether other programs used the processors or the devices during the run, as the warnings `processor_bound` and
    /// `shared_devices` of its result say.
    pub disturbed: bool,
    /// Whether the rate changed during the run, as the warnings `unsteady` and `not_steady` of its result say.
    pub unsteady: bool,
    /// The codes of the other warnings of its result, except those about a short run: an experiment has several runs.
    pub warnings: Vec<String>,
    /// Whether another program printed the figures as text, which may be rounded.
    pub is_rounded: bool,
    /// The numbers of operations on which the figures are based, by the prefix of the figures: empty for the whole run,
    /// `NAME.` for a flowop. They are absent in results of other programs.
    pub operations: BTreeMap<String, f64>,
    /// The reason why the run failed; `None` when it is complete.
    pub failure: Option<String>,
    /// Whether its file is complete: the script made no run after the last one in it. `false` for results of other
    /// programs and of earlier versions, which do not say so.
    pub file_is_complete: bool,
    /// The number of runs of the script, of which this one is the last, for a run of an experiment. Otherwise 0.
    pub script_runs: usize,
    /// The mean speed of the negative control before and after a run of an experiment, in units of work per second;
    /// `None` without a control.
    pub control: Option<f64>,
}

impl Observation {
    /// Returns the last of the runs in a result: if a script makes several, an experiment is about the last of them.
    pub(crate) fn last_of(mut runs: Vec<Self>) -> Option<Self> {
        let script_runs = runs.len();
        runs.pop().map(|run| Self { script_runs, ..run })
    }
}

/// The observations of one side of a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImportedSide {
    /// The observations, in the order of time.
    pub runs: Vec<Observation>,
    /// Notes about runs that are not among them.
    pub notes: Vec<String>,
    /// The metrics of the experiment, if they are of a results folder.
    pub metrics: Vec<Metric>,
    /// The command line of their arm, if they are of one arm of a results folder.
    pub words: Vec<String>,
    /// Their blocks, if they are the runs of one arm of an experiment whose arms alternated in blocks.
    pub blocks: Option<SideBlocks>,
}

/// The blocks of the runs of an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SideBlocks {
    /// The results folder.
    pub folder: PathBuf,
    /// The index of the arm.
    pub arm: usize,
    /// For each run, the number of its block, from 0.
    pub of_runs: Vec<usize>,
}

impl ImportedSide {
    /// True if the observations are the numbers of a column, which have no name.
    pub(crate) fn is_column(&self) -> bool {
        self.runs.iter().any(|run| run.figures.contains_key(metric::VALUE))
    }

    /// Makes the numbers of a column the figures of a metric.
    pub(crate) fn name_column(&mut self, metric: &Metric) {
        for figures in self.runs.iter_mut().map(|run| &mut run.figures) {
            if let Some(value) = figures.remove(metric::VALUE) {
                figures.insert(metric.to_string(), value);
            }
        }
    }
}

/// The reason why a path gives no observations.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file can't be read.
    #[error("{} can't be read: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The file has none of the known forms.
    #[error("{} is not a result: {why}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file of a results folder is damaged.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A results folder has runs of different arms, and none of them was named.
    #[error("{} has runs of several arms: {}", path.display(), shortened(arms))]
    SeveralArms {
        /// The folder.
        path: PathBuf,
        /// The names of the arms.
        arms: Vec<String>,
    },
    /// A results folder has no arm of this name.
    #[error("{} has no arm `{arm}`", path.display())]
    NoArm {
        /// The folder.
        path: PathBuf,
        /// The name.
        arm: String,
        /// The names of the arms; empty unless there are several.
        arms: Vec<String>,
    },
    /// A run failed or was interrupted.
    #[error("{run} is not complete: {why}")]
    Incomplete {
        /// The source of the run.
        run: String,
        /// The reason.
        why: String,
    },
}

/// Returns the first cell among the arms that has all levels in `part`, which names some of its factors.
fn whole_cell<'a>(part: &str, arms: &'a [String]) -> Option<&'a str> {
    let has_all = |arm: &&str| part.split(',').all(|level| arm.split(',').any(|own| own == level));
    arms.iter().map(String::as_str).find(has_all)
}

impl ImportError {
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Io { .. } | Self::Form { .. } => {
                "give a result of wmlrun (`--json`) or fio, a results folder, output of Filebench, or `FILE:N`"
                    .to_owned()
            }
            Self::Damaged { .. } => "restore the results folder from a copy, or make its runs again".to_owned(),
            Self::SeveralArms { path, arms } => {
                let names = arms.iter().take(2).map(|arm| format!("`{}:{arm}`", path.display()));
                let names = names.collect::<Vec<_>>().join(" or ");
                format!("`wmlrun compare --tests` compares all arms of two folders; or name one, such as {names}")
            }
            Self::NoArm { path, arms, .. } if arms.is_empty() => {
                format!("give `{}`: its runs are of one arm", path.display())
            }
            Self::NoArm { path, arm, arms } => match whole_cell(arm, arms) {
                Some(cell) => format!("a cell has a level of each factor: `{}:{cell}`", path.display()),
                None => format!("its arms are {}", shortened(arms)),
            },
            Self::Incomplete { .. } => "repeat the run, or remove it from the results".to_owned(),
        }
    }
}

/// Joins names, at most twelve of them.
pub(crate) fn shortened(names: &[String]) -> String {
    let first = names.iter().take(12).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 12 { format!("{first}, …") } else { first }
}

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

/// Makes an error of a file's form from the reason.
fn form(path: &Path) -> impl FnOnce(String) -> ImportError {
    let path = path.to_owned();
    move |why| ImportError::Form { path, why }
}

/// Makes an error of a damaged file of a results folder from the reason.
fn damaged(path: &Path) -> impl FnOnce(String) -> ImportError {
    let path = path.to_owned();
    move |why| ImportError::Damaged { path, why }
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

/// Returns the number of a run in its file, if that has several. The number is at the end of its source.
pub(crate) fn number_in_file(run: &Observation) -> Option<usize> {
    run.source.rsplit_once(", run ")?.1.parse().ok()
}

/// Returns the name of observation `n`, counted from 0, of a source with `all` observations. It has a number if there
/// are several.
fn numbered(source: &str, n: usize, all: usize) -> String {
    if all == 1 { source.to_owned() } else { format!("{source}, run {}", n + 1) }
}

#[cfg(test)]
mod tests;
