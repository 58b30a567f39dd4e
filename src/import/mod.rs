//! Results of this and of other tools as observations: one run, its figures by name, and what it was made of.
//!
//! In: a file or directory. Out: observations, or why there are none. Deliberately absent: what is done with them.

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

/// The longest file that is read, in bytes: a result with a histogram for each of thousands of flowops is shorter.
const LONGEST: u64 = 256 << 20;

/// A run, whoever measured it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Where it comes from: a file, and which run of it if there are several.
    pub source: String,
    /// Figures by metric: `ops` (operations a second), `mib` (MiB/s), `latency.mean`, `latency.p50`, `latency.p99` (nanoseconds), the
    /// same of a flowop as `NAME.ops`…
    pub figures: BTreeMap<String, f64>,
    /// Figures that may explain others.
    pub causes: BTreeMap<&'static str, f64>,
    /// What the run was made of: kernel, mounts, script, variables, cache state.
    pub conditions: BTreeMap<String, String>,
    /// The day on which it was made, if that is known: `2026-11-20`.
    pub day: Option<String>,
    /// What went wrong in it.
    pub failure: Option<String>,
}

/// Why a path gives no observations.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It can't be read.
    #[error("{} can't be read: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is none of the forms.
    #[error("{} is no result: {why}", path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// In which way.
        why: String,
    },
}

/// The observations of a path: a result of wmlrun, its results folder or a directory of results; what Filebench 1.4 or 1.5 printed;
/// fio's JSON; `FILE:N`, the numbers in column N (from 1) of a file.
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

/// The load curve of a file: see [`load_points`].
pub fn load_curve(path: &Path) -> Result<Vec<LoadPoint>, ImportError> {
    load_points(&read(path)?).map_err(form(path))
}

fn form(path: &Path) -> impl FnOnce(String) -> ImportError {
    let path = path.to_owned();
    move |why| ImportError::Form { path, why }
}

/// Observations of a text, whichever of the forms it has.
fn of_text(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    // fio writes warnings before its JSON.
    let json = text.lines().scan(0, |at, line| Some((std::mem::replace(at, *at + line.len() + 1), line)));
    let json = json.into_iter().find(|(_, line)| line.starts_with('{')).map(|(at, _)| &text[at..]);
    match json {
        Some(json) => match fio::observations(json, source) {
            Some(found) => found,
            None => own::observations(json, source),
        },
        None if text.contains("IO Summary") => filebench::observations(text, source),
        None => {
            Err("neither JSON of wmlrun or fio, nor output of Filebench; `FILE:N` names a column of numbers".to_owned())
        }
    }
}

/// The runs of a results folder, or of every JSON file of a directory, in the order of their names.
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

/// The text of a file that is not too long; bytes that are no UTF-8 become replacement characters.
fn read(path: &Path) -> Result<String, ImportError> {
    let io = |error| ImportError::Io { path: path.to_owned(), error };
    let file = std::fs::File::open(path).map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return Err(form(path)("it is no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > LONGEST {
        return Err(form(path)("it is longer than 256 MiB".to_owned()));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The names of one source's observations: numbered if there are several.
fn numbered(source: &str, n: usize, all: usize) -> String {
    if all == 1 { source.to_owned() } else { format!("{source}, run {}", n + 1) }
}

#[cfg(test)]
mod tests;
