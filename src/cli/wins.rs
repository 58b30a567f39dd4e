//! `wmlrun compare --tests`: which of two sides is better in each of several tests. Their figures are in a file, or are those of
//! results.

use super::choices::FigureFormat;
use super::console;
use super::experiment_host::known_floor;
use super::experiments::print_text;
use super::usage::import_help;
use crate::analysis::{Direction, NoiseFloor, Tolerance};
use crate::comparison::{
    AsJson as _, Comparer, IntervalDoubt, SuiteComparison, WinsDocument, condition_notes, disturbed_note,
    several_runs_note,
};
use crate::diag::Failure;
use crate::experiment::missing_floor;
use crate::import::{self, Metric, Observation, TestFigures, TestPairs, TestSample};
use crate::util::printable;
use std::collections::BTreeMap;
use std::path::Path;

/// The limits of the verdicts on tests, as shares.
pub(super) struct SuiteLimits {
    /// The largest change that does not matter.
    pub(super) tolerance: f64,
    /// The noise floor of all tests; `None` for the stored ones.
    pub(super) noise_floor: Option<f64>,
}

/// Prints the outcomes of the tests in a file. Returns the exit status.
pub(super) fn of_file(file: &Path, lower_is_better: bool, format: FigureFormat) -> Result<u8, Failure> {
    if file.is_dir() {
        let help = format!("give the results of B too: `wmlrun compare --tests {} B`", file.display());
        return Err(Failure::wrong(format!("{} is a directory", file.display()), help));
    }
    let help = "the file needs one line per test: its name and two figures, `-` for one that is unknown";
    let found = import::test_figures(file).map_err(|e| Failure::wrong(e.to_string(), help))?;
    let direction = if lower_is_better { Direction::LowerIsBetter } else { Direction::HigherIsBetter };
    print(&WinsDocument::of(&found, direction, None, &[]), format);
    Ok(0)
}

/// Prints the outcomes of the tests of which A and B have results. The figure of a test is the mean of its runs. With
/// `limits` it prints a verdict on each test instead. Returns the exit status.
pub(super) fn of_results(
    a: &Path,
    b: &Path,
    metric: Option<Metric>,
    limits: Option<SuiteLimits>,
    format: FigureFormat,
) -> Result<u8, Failure> {
    let found = import::test_pairs(a, b);
    let TestPairs { tests, notes } = found.map_err(|e| Failure::wrong(e.to_string(), import_help(&e, &[a, b])))?;
    notes.iter().for_each(|note| console::notice(&format!("note: {note}")));
    let metric = metric.unwrap_or_else(Metric::ops);
    let all = || tests.iter().flat_map(|test| test.runs.iter().flatten());
    if all().all(|run| metric.of(run).is_none()) {
        let help = all().next().map(|run| metric.help_in(run));
        return Err(Failure::wrong(format!("no result has `{metric}`"), help.unwrap_or_default()));
    }
    let shared = |notes: Vec<String>| notes.iter().for_each(|note| console::notice(&format!("note: {note}")));
    let sides: Vec<&[Observation]> = tests.iter().flat_map(|test| test.runs.iter().map(Vec::as_slice)).collect();
    let of_runs = disturbed_note(&sides).into_iter().chain(several_runs_note(&tests)).collect();
    let names = if format == FigureFormat::Json { paths(a, b) } else { side_names(a, b) };
    if names[0] == "A" {
        console::notice(&format!("note: A is {}, B is {}", a.display(), b.display()));
    }
    if let Some(limits) = limits {
        shared(of_runs);
        return Ok(verdicts(&tests, names, &metric, &limits, format));
    }
    let values = |runs: &Vec<Observation>| -> Vec<f64> { runs.iter().filter_map(|run| metric.of(run)).collect() };
    let samples: Vec<[Vec<f64>; 2]> = tests.iter().map(|test| test.runs.each_ref().map(values)).collect();
    let mean = |values: &Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let figures = |(test, sample): (&TestSample, &[Vec<f64>; 2])| (test.name.clone(), sample.each_ref().map(mean));
    let found = TestFigures { sides: names, tests: tests.iter().zip(&samples).map(figures).collect() };
    print(&WinsDocument::of(&found, metric.direction(), Some(&metric), &samples), format);
    shared(of_runs);
    shared(condition_notes(&tests));
    if tests.iter().any(|test| test.runs.iter().any(|runs| runs.len() == 1)) {
        console::notice(
            "note: one run does not show its variation: for verdicts, repeat the tests, and give `--tolerance`",
        );
    }
    Ok(0)
}

/// Prints the verdicts on the tests, with what their notes have in common. Returns the exit status.
fn verdicts(
    tests: &[TestSample],
    sides: [String; 2],
    metric: &Metric,
    limits: &SuiteLimits,
    format: FigureFormat,
) -> u8 {
    let given = limits.noise_floor.map(NoiseFloor::given);
    let comparer =
        Comparer { tolerance: Tolerance(limits.tolerance), sides, ..Comparer::of("suite", ["A", "B"], metric) };
    let suite = SuiteComparison::of(tests, &comparer, &|runs| given.or_else(|| known_floor(runs, metric)));
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (test, found) in tests.iter().zip(&suite.tests) {
        let has_doubt = found.comparison.as_ref().is_some_and(|c| c.doubt == Some(IntervalDoubt::UnknownFloor));
        if has_doubt && let Some(note) = missing_floor(&test.runs, metric) {
            missing.entry(note).or_default().push(format!("`{}`", printable::line(&test.name)));
        }
    }
    let missing = missing.iter().map(|(note, names)| format!("{}: {note}", import::shortened(names)));
    for note in suite.notes().into_iter().chain(missing) {
        console::notice(&format!("note: {note}"));
    }
    print_text(&match format {
        FigureFormat::Json => suite.json(),
        FigureFormat::Text => suite.text(),
    });
    suite.verdict.code()
}

fn paths(a: &Path, b: &Path) -> [String; 2] {
    [a, b].map(|path| path.display().to_string())
}

/// The longest names of sides that are headings.
const MAX_HEADING: usize = 16;

/// Returns the names of the sides: the last components of their paths if these differ and are short, else A and B.
fn side_names(a: &Path, b: &Path) -> [String; 2] {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match (last(a), last(b)) {
        (Some(a), Some(b)) if a != b && a.len().max(b.len()) <= MAX_HEADING => [a, b],
        _ => ["A", "B"].map(str::to_owned),
    }
}

fn print(document: &WinsDocument<'_>, format: FigureFormat) {
    print_text(&match format {
        FigureFormat::Json => document.json(),
        FigureFormat::Text => document.text(),
    });
}
