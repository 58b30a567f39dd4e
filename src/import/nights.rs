//! Reads results for a history: the runs of tests, each with its name.

use super::{
    ImportError, Observation, folder, form, input, mixed_conditions, number_in_file, observations, run_table,
    test_samples,
};
use crate::source::SHIPPED;
use indexmap::IndexMap;
use std::path::Path;

/// The runs of a test in a result.
#[derive(Clone, Debug, Default)]
pub struct HistoryResult {
    /// The name of the test: of the arm of an experiment, of a file among several, else of the script.
    pub test: String,
    /// The complete runs.
    pub runs: Vec<Observation>,
    /// Whether they were made one after another, as those of an experiment are.
    pub is_one: bool,
}

/// What a path has for a history.
#[derive(Clone, Debug, Default)]
pub struct HistoryResults {
    pub results: Vec<HistoryResult>,
    /// Notes about files and runs that are not among them.
    pub notes: Vec<String>,
}

/// Reads the tests of a result, of a table of runs, of a results folder or of a directory of results.
pub(crate) fn history_results(path: &Path) -> Result<HistoryResults, ImportError> {
    if !path.is_dir() {
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // A pipe is read once, and is no table.
        let text = if path.is_file() { input::read(path)? } else { String::new() };
        let runs = match run_table::is_table(&text) {
            true => run_table::observations(&text, &path.display().to_string()).map_err(form(path))?,
            false => observations(path)?,
        };
        return Ok(of_file(&stem, runs));
    }
    let is_one = path.join(folder::EXPERIMENT).exists();
    let found = test_samples(&[path.to_owned()])?;
    let has_names = !is_one || folder::arms(path)?.is_some_and(|arms| !arms.is_empty());
    let results = found.tests.into_iter().map(|test| {
        let runs: Vec<Observation> = test.runs.into_iter().flatten().collect();
        let script = runs.first().map(script).filter(|name| !has_names && !name.is_empty());
        HistoryResult { test: script.unwrap_or_else(|| levels(&test.name)), runs, is_one }
    });
    Ok(HistoryResults { results: results.filter(|result| !result.runs.is_empty()).collect(), notes: found.notes })
}

/// The name of the script; whether it is a shipped one does not matter.
fn script(run: &Observation) -> String {
    run.workload.strip_suffix(SHIPPED).unwrap_or(&run.workload).to_owned()
}

/// The name of an arm without the names of its factors.
fn levels(arm: &str) -> String {
    let level = |part: &str| part.split_once('=').map_or(part, |(_, level)| level).to_owned();
    arm.split(',').map(level).collect::<Vec<_>>().join(",")
}

/// The tests of the runs of a file: by arms, by scripts, and where a script makes different runs by their numbers. Those of
/// other programs have the name of the file, `stem`.
fn of_file(stem: &str, runs: Vec<Observation>) -> HistoryResults {
    let (complete, failed): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.failure.is_none());
    let note = |run: &Observation| Some(format!("{} is not complete: {}", run.source, run.failure.as_ref()?));
    let notes = failed.iter().filter_map(note).collect();
    let mut tests: IndexMap<String, Vec<Observation>> = IndexMap::new();
    for run in complete {
        let name = if run.arm.is_empty() { script(&run) } else { levels(&run.arm) };
        tests.entry(if name.is_empty() { stem.to_owned() } else { name }).or_default().push(run);
    }
    let of_test = |(test, runs): (String, Vec<Observation>)| -> Vec<HistoryResult> {
        // Rows of a table, which have some conditions only, are those of many nights: the conditions may change.
        let has = |name: &str| runs.iter().any(|run| run.conditions.contains_key(name));
        let is_one = has("dialect");
        if has("tool") && !is_one || mixed_conditions(&runs).is_empty() {
            return vec![HistoryResult { test, runs, is_one }];
        }
        let numbered = |(n, run): (usize, Observation)| HistoryResult {
            test: format!("{test}, run {}", number_in_file(&run).unwrap_or(n + 1)),
            runs: vec![run],
            is_one: true,
        };
        runs.into_iter().enumerate().map(numbered).collect()
    };
    HistoryResults { results: tests.into_iter().flat_map(of_test).collect(), notes }
}
