//! `wmlrun compare --tests`: which of several sides is better in each of several tests. Their figures are in a file, or are
//! those of results.

use super::compare_args::CompareArgs;
use super::console;
use super::experiment_args::ResultFormat;
use super::experiment_host::known_floor;
use super::experiments::print_text;
use super::usage::import_help;
use crate::analysis::{Direction, NoiseFloor, Tolerance};
use crate::comparison::{
    AsJson as _, Comparer, IntervalDoubt, SuiteComparison, WinsDocument, WinsMethod, condition_notes, disturbed_note,
    several_runs_note,
};
use crate::diag::Failure;
use crate::experiment::missing_floor;
use crate::import::{self, Metric, Observation, TestFigures, TestSample, TestSamples};
use crate::util::printable;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Runs `wmlrun compare --tests`. Returns the exit status.
pub(super) fn compare(args: &CompareArgs, format: ResultFormat) -> Result<u8, Failure> {
    match &args.paths()[..] {
        [file] => of_file(args, file, format),
        paths => of_results(args, paths, format),
    }
}

/// Prints the outcomes of the tests in a file. Returns the exit status.
fn of_file(args: &CompareArgs, file: &Path, format: ResultFormat) -> Result<u8, Failure> {
    if file.is_dir() {
        let help = format!("give the results of B too: `wmlrun compare --tests {} B`", file.display());
        return Err(Failure::wrong(format!("{} is a directory", file.display()), help));
    }
    let help = "the file needs one line per test: its name and a figure of each side, `-` for one that is unknown; the first \
        line names the sides if there are more than two; all sides have the same unit; \
        tests of other units need a file of their own, or sides without a unit";
    let found = import::test_figures(file).map_err(|e| Failure::wrong(e.to_string(), help))?;
    let direction = args.lower_is_better.then_some(Direction::LowerIsBetter);
    let over = references(args, &found.sides, &[])?;
    let method = WinsMethod { direction, over: &over, form: args.improvement.unwrap_or_default() };
    let document = WinsDocument::of_file(&file.display().to_string(), found, &method);
    print(&document.map_err(|why| Failure::wrong(format!("{}: {why}", printable::path(file)), help))?, format);
    Ok(0)
}

/// Prints the outcomes of the tests of which the sides have results. The figure of a test is the mean of its runs. With a
/// tolerance it prints a verdict on each test instead. Returns the exit status.
fn of_results(args: &CompareArgs, paths: &[PathBuf], format: ResultFormat) -> Result<u8, Failure> {
    let named: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let found = import::test_samples(paths);
    let TestSamples { tests, notes } = found.map_err(|e| Failure::wrong(e.to_string(), import_help(&e, &named)))?;
    notes.iter().for_each(|note| console::notice(&format!("note: {note}")));
    let all = || tests.iter().flat_map(|test| test.runs.iter().flatten());
    let metric = args.verdict.metric.clone().unwrap_or_else(|| Metric::default_of_runs(all()));
    if all().all(|run| metric.of(run).is_none()) {
        let help = all().next().map(|run| metric.help_in(run));
        return Err(Failure::wrong(format!("no result has `{metric}`"), help.unwrap_or_default()));
    }
    let shared = |notes: Vec<String>| notes.iter().for_each(|note| console::notice(&format!("note: {note}")));
    let sides: Vec<&[Observation]> = tests.iter().flat_map(|test| test.runs.iter().map(Vec::as_slice)).collect();
    let of_runs = disturbed_note(&sides).into_iter().chain(several_runs_note(&tests)).collect();
    let names = if format.name == "json" { displayed(paths) } else { side_names(paths) };
    if names.first().is_some_and(|name| name == "A") {
        let named = names.iter().zip(paths).map(|(name, path)| format!("{name} is {}", path.display()));
        console::notice(&format!("note: {}", named.collect::<Vec<_>>().join(", ")));
    }
    if let (Some(tolerance), Ok(names)) = (args.verdict.tolerance, <[String; 2]>::try_from(names.clone())) {
        shared(of_runs);
        let noise_floor = args.noise_floor;
        return Ok(verdicts(&tests, names, &metric, &SuiteLimits { tolerance, noise_floor }, format));
    }
    let over = references(args, &names, paths)?;
    let values = |runs: &Vec<Observation>| metric.values(runs.iter());
    let samples: Vec<Vec<Vec<f64>>> = tests.iter().map(|test| test.runs.iter().map(values).collect()).collect();
    let mean = |values: &Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let figures =
        |(test, sample): (&TestSample, &Vec<Vec<f64>>)| (test.name.clone(), sample.iter().map(mean).collect());
    let found = TestFigures { sides: names, tests: tests.iter().zip(&samples).map(figures).collect() };
    let direction = Some(metric.direction());
    let method = WinsMethod { direction, over: &over, form: args.improvement.unwrap_or_default() };
    print(&WinsDocument::of_results(&metric, found, &method, &samples), format);
    shared(of_runs);
    shared(condition_notes(&tests));
    if tests.iter().any(|test| test.runs.iter().any(|runs| runs.len() == 1)) {
        console::notice(
            "note: one run does not show its variation: for verdicts, repeat the tests, and give `--tolerance`",
        );
    }
    Ok(0)
}

/// The names of the sides of `--over`, which are their names in the table or their paths. An error if there is no such side,
/// or no other one.
fn references(args: &CompareArgs, names: &[String], paths: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let found = |wanted: &String| {
        let of_path = || paths.iter().position(|path| path.as_os_str() == wanted.as_str());
        names.iter().position(|name| name == wanted).or_else(of_path).map(|n| names[n].clone()).ok_or_else(|| {
            let known: Vec<String> = names.iter().map(|name| printable::line(name).into_owned()).collect();
            let text = format!("`--over`: no side is named `{}`", printable::line(wanted));
            Failure::wrong(text, format!("the sides are {}", import::shortened(&known)))
        })
    };
    let over = args.over.iter().map(found).collect::<Result<Vec<_>, _>>()?;
    match names.iter().all(|name| over.contains(name)) {
        true => Err(Failure::wrong("`--over` has all sides", "omit the side whose improvement is shown")),
        false => Ok(over),
    }
}

/// The limits of the verdicts on tests, as shares.
struct SuiteLimits {
    /// The largest change that does not matter.
    tolerance: f64,
    /// The noise floor of all tests; `None` for the stored ones.
    noise_floor: Option<f64>,
}

/// Prints the verdicts on the tests, with what their notes have in common. Returns the exit status.
fn verdicts(
    tests: &[TestSample],
    sides: [String; 2],
    metric: &Metric,
    limits: &SuiteLimits,
    format: ResultFormat,
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
    print_text(&match format.name {
        "text" => suite.text(),
        _ => format.write_either(|| suite.json(), || suite.sheet()),
    });
    suite.verdict.code()
}

fn displayed(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// The longest names of sides that are headings.
const MAX_HEADING: usize = 16;

/// Returns the names of the sides: the last components of their paths if these differ and are short, else A, B and so on.
fn side_names(paths: &[PathBuf]) -> Vec<String> {
    let last = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<String> = paths.iter().filter_map(last).filter(|name| name.len() <= MAX_HEADING).collect();
    let are_different = names.iter().collect::<BTreeSet<_>>().len() == paths.len();
    if are_different { names } else { import::letters(paths.len()) }
}

fn print(document: &WinsDocument, format: ResultFormat) {
    print_text(&format.write_either(|| document.json(), || document.sheet()));
}
