//! `wmlrun compare --tests`: which of two sides is better in each of several tests. Their figures are in a file, or are those of
//! results.

use super::choices::FigureFormat;
use super::console;
use super::experiment_host::known_floor;
use super::experiments::print_text;
use super::usage::import_help;
use crate::analysis::{Direction, NoiseFloor, TestOutcome, Tolerance, Wins, outcome, wins as count_wins};
use crate::comparison::{
    Comparer, DifferenceKind, IntervalDoubt, SuiteComparison, differences, disturbed_note, doubt_text, figure,
    may_be_chance, outcome_cells, wins_line, with_direction,
};
use crate::diag::Failure;
use crate::experiment::missing_floor;
use crate::import::{self, Metric, Observation, TestFigures, TestPairs, TestSample};
use crate::util::count::{count, exact};
use crate::util::printable;
use crate::util::table::{Align, Table};
use crate::util::wrap::wrapped;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The limits of the verdicts on tests, as shares.
pub(super) struct SuiteLimits {
    /// The largest change that does not matter.
    pub(super) tolerance: f64,
    /// The noise floor of all tests; `None` for the stored ones.
    pub(super) noise_floor: Option<f64>,
}

/// The output of `wmlrun compare --tests --format json`.
#[derive(Serialize)]
struct WinsDocument<'a> {
    schema: &'static str,
    a: &'a str,
    b: &'a str,
    /// The metric of results; absent for the figures of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    tests: Vec<TestLine<'a>>,
    wins: Wins,
}

/// A test with its figures.
#[derive(Serialize)]
struct TestLine<'a> {
    name: &'a str,
    a: Option<f64>,
    b: Option<f64>,
    outcome: Option<TestOutcome>,
    /// Whether the outcome may be chance: the 95 % interval of the ratio of the runs does not show it, or is unknown. Never
    /// set for the figures of a file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_be_chance: bool,
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
    print(&document(&found, direction, None, &[]), format);
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
    let document = document(&found, metric.direction(), Some(&metric), &samples);
    print(&document, format);
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
        FigureFormat::Json => serde_json::to_string_pretty(&suite).unwrap_or_default() + "\n",
        FigureFormat::Text => suite.text(),
    });
    suite.verdict.code()
}

/// Returns the note on tests that have several runs of one file, such as one for each `stats snap`.
fn several_runs_note(tests: &[TestSample]) -> Option<String> {
    let file = |run: &Observation| {
        import::number_in_file(run)?;
        run.source.rsplit_once(", run ").map(|(file, _)| file.to_owned())
    };
    let is_joined = |runs: &Vec<Observation>| {
        let files: Vec<String> = runs.iter().filter_map(file).collect();
        files.iter().collect::<BTreeSet<_>>().len() < files.len()
    };
    let has_several = |test: &&TestSample| test.runs.iter().any(is_joined);
    let names: Vec<String> =
        tests.iter().filter(has_several).map(|test| format!("`{}`", printable::line(&test.name))).collect();
    (!names.is_empty())
        .then(|| format!("several runs in one file, of which the mean is compared: {}", import::shortened(&names)))
}

/// Returns notes on tests whose sides did not have the same workload, or of which this is unknown.
fn condition_notes(tests: &[TestSample]) -> Vec<String> {
    let pairs: Vec<[&[Observation]; 2]> = tests.iter().map(|test| test.runs.each_ref().map(Vec::as_slice)).collect();
    let both = || pairs.iter().filter(|[a, b]| !a.is_empty() && !b.is_empty());
    let lacks_conditions = |[a, b]: &&[&[Observation]; 2]| a.iter().chain(*b).any(|run| run.conditions.is_empty());
    let unknown = both().filter(lacks_conditions).count() as u64;
    let mut found = Vec::new();
    if unknown > 0 {
        let of = count(unknown, "test");
        found.push(format!("the conditions of {of} are unknown: check that A and B had the same files and run time"));
    }
    let mut differing: BTreeMap<String, u64> = BTreeMap::new();
    for [a, b] in both() {
        let spoilt = differences(a, b).into_iter().filter(|difference| difference.kind == DifferenceKind::Workload);
        spoilt.for_each(|difference| *differing.entry(difference.what).or_default() += 1);
    }
    let named = differing.into_iter().map(|(what, tests)| format!("`{what}` in {}", count(tests, "test")));
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        found.push(format!("A and B measured different workloads: they differ in {}", named.join(", ")));
    }
    found
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
        FigureFormat::Json => serde_json::to_string_pretty(document).unwrap_or_default() + "\n",
        FigureFormat::Text => text(document),
    });
}

/// Determines the outcomes. `samples` are the values of the runs of each test; none for the figures of a file.
fn document<'a>(
    found: &'a TestFigures,
    direction: Direction,
    metric: Option<&Metric>,
    samples: &[[Vec<f64>; 2]],
) -> WinsDocument<'a> {
    let line = |(n, (name, [a, b])): (usize, &'a (String, [Option<f64>; 2]))| {
        let outcome = a.zip(*b).and_then(|(a, b)| outcome(a, b, direction));
        let is_chance = |outcome| {
            let sample = samples.get(n).map(|sample| sample.each_ref().map(Vec::as_slice));
            sample.is_some_and(|sample| may_be_chance(sample, direction, outcome))
        };
        TestLine { name, a: *a, b: *b, outcome, may_be_chance: outcome.is_some_and(is_chance) }
    };
    let lines: Vec<TestLine<'_>> = found.tests.iter().enumerate().map(line).collect();
    let outcomes: Vec<Option<TestOutcome>> = lines.iter().map(|line| line.outcome).collect();
    let [a, b] = &found.sides;
    let schema = "wmlrun.wins/1";
    WinsDocument { schema, a, b, metric: metric.map(Metric::to_string), wins: count_wins(&outcomes), tests: lines }
}

fn text(document: &WinsDocument<'_>) -> String {
    let dash = || "-".to_owned();
    let mut table = Table::new([
        ("test", Align::Left),
        (document.a, Align::Right),
        (document.b, Align::Right),
        ("better", Align::Left),
        ("factor", Align::Right),
    ]);
    for test in &document.tests {
        let shown = |value: f64| match &document.metric {
            Some(metric) => figure(metric, value),
            None => exact(value),
        };
        let number = |value: Option<f64>| value.map_or_else(dash, shown);
        let [better, factor] = outcome_cells(test.outcome, document.a, document.b);
        let better = if test.may_be_chance { better + "?" } else { better };
        table.row([test.name.to_owned(), number(test.a), number(test.b), better, factor]);
    }
    let doubt = doubt_text(document.tests.iter().filter(|test| test.may_be_chance).count());
    let ending = wins_line(document.a, document.b, document.wins) + &doubt;
    let ending = wrapped(&printable::line(&ending), "  ");
    let about = |metric: &Metric| format!("{}: {}\n\n", with_direction(&metric.to_string()), metric.about());
    let metric = document.metric.as_ref().and_then(|metric| metric.parse().ok());
    let title = metric.as_ref().map_or_else(String::new, about);
    format!("{title}{}\n{ending}\n", printable::lines(&table.render()))
}
