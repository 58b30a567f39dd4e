//! Reads results of this program and of other tools as observations: the figures of a run by name, with the conditions
//! of the run.
//!
//! Input: a file or directory. Output: observations, or an error. Not in here: the analysis of observations.

mod columns;
mod filebench;
mod fio;
mod metric;
mod own;

pub use columns::load_points;
pub use metric::{Metric, STUDY};
pub use own::of_run;

use crate::analysis::LoadPoint;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The maximum length of a file, in bytes. A result with a histogram for each of thousands of flowops is shorter.
const MAX_LENGTH: u64 = 256 << 20;

/// A run, measured by this program or another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The source: a file, and the number of the run if the file has several.
    pub source: String,
    /// Figures by metric: `ops` (operations per second), `mib` (MiB/s), `latency.mean`, `latency.p50`, `latency.p99`
    /// (nanoseconds). The same figures of a flowop have the prefix `NAME.`.
    pub figures: BTreeMap<String, f64>,
    /// Figures that may explain a change of a metric.
    pub causes: BTreeMap<&'static str, f64>,
    /// The conditions of the run: kernel, mounts, script, variables, cache state.
    pub conditions: BTreeMap<String, String>,
    /// The day of the run, such as `2026-11-20`; `None` when it is unknown.
    pub day: Option<String>,
    /// Whether other programs used the processors during the run, as the warning `processor_bound` of its result says.
    pub disturbed: bool,
    /// The reason why the run failed; `None` when it is complete.
    pub failure: Option<String>,
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
}

/// Reads the observations of a path: a result of wmlrun, a results folder of wmlrun or a directory of results, output
/// of Filebench 1.4 or 1.5, JSON of fio, or `FILE:N`, the numbers in column N (counted from 1) of a file.
pub fn observations(path: &Path) -> Result<Vec<Observation>, ImportError> {
    if path.is_dir() {
        return of_directory(path);
    }
    if let Some((file, column)) = columns::split(path) {
        let text = read(&file)?;
        return columns::observations(&text, column, &path.display().to_string()).map_err(form(&file));
    }
    let text = read(path)?;
    of_text(&text, &path.display().to_string()).map_err(form(path))
}

/// Reads the load curve of a file. See [`load_points`] for its form.
pub fn load_curve(path: &Path) -> Result<Vec<LoadPoint>, ImportError> {
    load_points(&read(path)?).map_err(form(path))
}

/// Makes an error of a file's form from the reason.
fn form(path: &Path) -> impl FnOnce(String) -> ImportError {
    let path = path.to_owned();
    move |why| ImportError::Form { path, why }
}

/// Detects the form of a text and reads its observations.
fn of_text(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    // The JSON starts at the first line with a `{`, because fio prints warnings before it.
    let json = text.lines().scan(0, |at, line| Some((std::mem::replace(at, *at + line.len() + 1), line)));
    let json = json.into_iter().find(|(_, line)| line.starts_with('{')).map(|(at, _)| &text[at..]);
    match json {
        Some(json) => match fio::observations(json, source) {
            Some(found) => found,
            None => own::observations(json, source),
        },
        None if text.contains("IO Summary") => filebench::observations(text, source),
        None => {
            Err("it is neither JSON of wmlrun or fio nor output of Filebench; for a column of numbers write `FILE:N`"
                .to_owned())
        }
    }
}

/// Reads the runs of a results folder, or of all JSON files of a directory, in the order of their names.
fn of_directory(path: &Path) -> Result<Vec<Observation>, ImportError> {
    let runs = path.join("runs");
    let dir = if runs.is_dir() { &runs } else { path };
    let list = |dir: &Path| -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|e| e == "json"));
        files.sort();
        Ok(files)
    };
    let files = list(dir).map_err(|error| ImportError::Io { path: dir.to_owned(), error })?;
    if files.is_empty() {
        return Err(form(path)("it has no JSON file".to_owned()));
    }
    files.iter().map(|file| observations(file)).collect::<Result<Vec<_>, _>>().map(|found| found.concat())
}

/// Reads the text of a regular file. Bytes that are not UTF-8 become replacement characters. Returns an error when the
/// file is longer than [`MAX_LENGTH`].
fn read(path: &Path) -> Result<String, ImportError> {
    let io = |error| ImportError::Io { path: path.to_owned(), error };
    let file = std::fs::File::open(path).map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return Err(form(path)("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_LENGTH + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(form(path)("it is longer than 256 MiB".to_owned()));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// Returns the name of observation `n`, counted from 0, of a source with `all` observations. It has a number if there
/// are several.
fn numbered(source: &str, n: usize, all: usize) -> String {
    if all == 1 { source.to_owned() } else { format!("{source}, run {}", n + 1) }
}

#[cfg(test)]
mod tests;
