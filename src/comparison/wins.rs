//! Which of two sides is better in each of several tests, `wmlrun.wins/1`: by a figure of each, or by the means of runs.

use super::{DifferenceKind, differences, doubt_text, figure, may_be_chance, outcome_cells, wins_line, with_direction};
use crate::analysis::{Direction, TestOutcome, Wins, outcome, wins};
use crate::import::{self, Metric, Observation, TestFigures, TestSample};
use crate::util::count::{count, exact};
use crate::util::printable;
use crate::util::table::{Align, Table};
use crate::util::wrap::wrapped;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The outcomes of tests.
#[derive(Serialize)]
pub struct WinsDocument<'a> {
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

impl<'a> WinsDocument<'a> {
    /// Determines the outcomes. `samples` are the values of the runs of each test; none for the figures of a file.
    pub(crate) fn of(
        found: &'a TestFigures,
        direction: Direction,
        metric: Option<&Metric>,
        samples: &[[Vec<f64>; 2]],
    ) -> Self {
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
        Self { schema, a, b, metric: metric.map(Metric::to_string), wins: wins(&outcomes), tests: lines }
    }

    /// A table with a line for each test, and the sums.
    pub(crate) fn text(&self) -> String {
        let dash = || "-".to_owned();
        let mut table = Table::new([
            ("test", Align::Left),
            (self.a, Align::Right),
            (self.b, Align::Right),
            ("better", Align::Left),
            ("factor", Align::Right),
        ]);
        for test in &self.tests {
            let shown = |value: f64| match &self.metric {
                Some(metric) => figure(metric, value),
                None => exact(value),
            };
            let number = |value: Option<f64>| value.map_or_else(dash, shown);
            let [better, factor] = outcome_cells(test.outcome, self.a, self.b);
            let better = if test.may_be_chance { better + "?" } else { better };
            table.row([test.name.to_owned(), number(test.a), number(test.b), better, factor]);
        }
        let doubt = doubt_text(self.tests.iter().filter(|test| test.may_be_chance).count());
        let ending = wins_line(self.a, self.b, self.wins) + &doubt;
        let ending = wrapped(&printable::line(&ending), "  ");
        let about = |metric: &Metric| format!("{}: {}\n\n", with_direction(&metric.to_string()), metric.about());
        let metric = self.metric.as_ref().and_then(|metric| metric.parse().ok());
        let title = metric.as_ref().map_or_else(String::new, about);
        format!("{title}{}\n{ending}\n", printable::lines(&table.render()))
    }
}

/// The note on tests that have several runs of one file, such as one for each `stats snap`.
pub fn several_runs_note(tests: &[TestSample]) -> Option<String> {
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

/// Notes on tests whose sides did not have the same workload, or of which this is unknown.
pub fn condition_notes(tests: &[TestSample]) -> Vec<String> {
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
