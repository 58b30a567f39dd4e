//! Which of several sides is better in each of several tests, `wmlrun.wins/1`: by a figure of each, or by the means of runs.

use super::pivot::{PivotMethod, ratio_of_samples};
use super::units::FigureUnit;
use super::{AsJson as _, DifferenceKind, DrawRule, ImprovementForm, Pivot, PivotRow, differences, with_direction};
use crate::analysis::{Direction, TestOutcome, Wins};
use crate::import::{self, Metric, Observation, TestFigures, TestSample};
use crate::sheet::{Answer, Sheet, SheetBlock};
use crate::util::count::count;
use crate::util::printable;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The outcomes of tests.
pub struct WinsDocument {
    /// What the figures are.
    title: String,
    /// The table of the sides. Its metric is empty for the figures of a file.
    table: Pivot,
    /// The tests in which lower is better, by their unit.
    turned: Option<String>,
}

/// The outcomes as JSON.
#[derive(Serialize)]
struct WrittenWins<'a> {
    schema: &'static str,
    /// The outcomes of two sides.
    #[serde(flatten)]
    sides: Option<WrittenSides<'a>>,
    /// The metric of results; absent for the figures of a file.
    #[serde(skip_serializing_if = "str::is_empty")]
    metric: &'a str,
    /// The table of more than two sides, or with improvements.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'a Pivot>,
}

#[derive(Serialize)]
struct WrittenSides<'a> {
    a: &'a str,
    b: &'a str,
    tests: Vec<WrittenTest<'a>>,
    wins: Wins,
}

/// A test with its figures.
#[derive(Serialize)]
struct WrittenTest<'a> {
    name: &'a str,
    a: Option<f64>,
    b: Option<f64>,
    outcome: Option<TestOutcome>,
    lower_is_better: bool,
    /// Whether the outcome may be chance: the 95 % interval of the ratio of the runs does not show it, or is unknown. Never
    /// set for the figures of a file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_be_chance: bool,
}

impl<'a> WrittenTest<'a> {
    fn of(row: &'a PivotRow) -> Option<Self> {
        let (name, [a, b]) = (row.levels.first()?, row.values[..].try_into().ok()?);
        let PivotRow { outcome, lower_is_better, may_be_chance, .. } = *row;
        Some(Self { name, a, b, outcome, lower_is_better, may_be_chance })
    }
}

/// How the sides of tests are compared.
#[derive(Clone, Debug)]
pub struct WinsMethod<'a> {
    /// What is better in all tests; `None` if the units of sides or tests say it.
    pub direction: Option<Direction>,
    /// The sides over which the others improve.
    pub over: &'a [String],
    /// The form of the improvements.
    pub form: ImprovementForm,
}

impl WinsDocument {
    /// The outcomes of the figures of a file with this name. Without a direction the unit of its sides says what is better, else
    /// that of each test, else more is. An error if the units of two sides differ, or if those of sides and a test disagree.
    pub(crate) fn of_file(name: &str, found: TestFigures, method: &WinsMethod<'_>) -> Result<Self, String> {
        let units = || found.sides.iter().filter_map(|side| Some((side, FigureUnit::named(side)?)));
        let first = units().next();
        if let Some((side, unit)) = first
            && let Some((other, _)) = units().find(|(_, other)| *other != unit)
        {
            let [side, other] = [side, other].map(|name| printable::line(name).into_owned());
            return Err(format!("`{side}` and `{other}` have different units"));
        }
        if let (None, Some((side, of_side))) = (method.direction, first)
            && let Some(direction) = of_side.direction()
        {
            let mut of_tests = found.tests.iter().filter_map(|(test, _)| Some((test, FigureUnit::named(test)?)));
            let disagrees = |unit: FigureUnit| unit.direction().is_some_and(|of| of != direction);
            if let Some((test, of_test)) = of_tests.find(|(_, unit)| disagrees(*unit)) {
                let [side, test] = [side, test].map(|name| printable::line(name).into_owned());
                let [of_side, of_test] = [of_side, of_test].map(FigureUnit::measures);
                return Err(format!("`{side}` has the unit of {of_side}, but `{test}` that of {of_test}"));
            }
        }
        let direction = method.direction.or_else(|| first?.1.direction());
        let title = match direction {
            Some(Direction::LowerIsBetter) => format!("{name} (lower is better)"),
            _ => name.to_owned(),
        };
        Ok(Self::of(title, String::new(), found, &WinsMethod { direction, ..method.clone() }, &[]))
    }

    /// The outcomes of the means of a metric. `samples` are the values of the runs of each side in each test.
    pub(crate) fn of_results(
        metric: &Metric,
        found: TestFigures,
        method: &WinsMethod<'_>,
        samples: &[Vec<Vec<f64>>],
    ) -> Self {
        let name = metric.to_string();
        Self::of(format!("{}: {}", with_direction(&name), metric.about()), name, found, method, samples)
    }

    fn of(
        title: String,
        metric: String,
        TestFigures { sides, tests }: TestFigures,
        method: &WinsMethod<'_>,
        samples: &[Vec<Vec<f64>>],
    ) -> Self {
        let WinsMethod { direction, over, .. } = *method;
        let of_unit = |test: &str| FigureUnit::named(test).and_then(FigureUnit::direction);
        let of_test = |test: &str| direction.or_else(|| of_unit(test)).unwrap_or(Direction::HigherIsBetter);
        let is_turned = |test: &&String| direction.is_none() && of_test(test) == Direction::LowerIsBetter;
        let turned = tests.iter().map(|(test, _)| test).filter(is_turned);
        let turned: Vec<String> = turned.map(|test| format!("`{}`", printable::line(test))).collect();
        let line = |(n, (name, values)): (usize, (String, Vec<Option<f64>>))| {
            let (direction, draw) = (of_test(&name), DrawRule::default());
            let compared = PivotMethod { columns: &sides, over, metric: &metric, direction, draw, bound: None };
            let runs = samples.get(n);
            let ratio = |[a, b]: [usize; 2]| runs.and_then(|runs| ratio_of_samples([&runs[a], &runs[b]]));
            let ratio: Option<&dyn Fn([usize; 2]) -> _> = if runs.is_some() { Some(&ratio) } else { None };
            let row = PivotRow::of(&compared, values, ratio);
            PivotRow { levels: vec![name], ..row }
        };
        let turned = (!turned.is_empty()).then(|| {
            let of = if turned.len() == 1 { "its unit" } else { "their unit" };
            format!("lower is better in {}, by {of}", import::shortened(&turned))
        });
        let rows = tests.into_iter().enumerate().map(line).collect();
        let table = Pivot::of(metric, vec!["test".to_owned()], sides, rows);
        Self { title, table: Pivot { form: method.form, ..table }, turned }
    }

    /// The table with a line for each test, the improvements, and the sums.
    pub(crate) fn sheet(&self) -> Sheet {
        let mut tables = self.table.tables();
        let sums = tables.first_mut().map(|table| std::mem::take(&mut table.below));
        if let Some(table) = tables.first_mut() {
            (table.title, table.caption) = (String::new(), self.title.clone());
        }
        Sheet {
            title: self.title.clone(),
            answer: Answer::of_part(
                sums.into_iter().flatten().chain(self.turned.clone()).collect::<Vec<_>>().join("; "),
            ),
            blocks: tables.into_iter().map(SheetBlock::Table).collect(),
            ..Sheet::default()
        }
    }

    /// The outcomes as JSON.
    pub(crate) fn json(&self) -> String {
        let table = &self.table;
        let has_improvements = table.rows.iter().any(|row| !row.improvements.is_empty());
        let sides = match (&table.columns[..], table.wins) {
            ([a, b], Some(wins)) => {
                Some(WrittenSides { a, b, tests: table.rows.iter().filter_map(WrittenTest::of).collect(), wins })
            }
            _ => None,
        };
        let table = (sides.is_none() || has_improvements).then_some(table);
        WrittenWins { schema: "wmlrun.wins/1", sides, metric: &self.table.metric, table }.json()
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
    // Each side is compared with the first one that has the test.
    let mut found: Vec<Vec<&[Observation]>> = Vec::new();
    for test in tests {
        let sides: Vec<&[Observation]> = test.runs.iter().map(Vec::as_slice).filter(|runs| !runs.is_empty()).collect();
        found.extend((sides.len() > 1).then_some(sides));
    }
    let lacks_conditions =
        |sides: &&Vec<&[Observation]>| sides.iter().copied().flatten().any(|run| run.conditions.is_empty());
    let unknown = found.iter().filter(lacks_conditions).count() as u64;
    let sides = if tests.iter().all(|test| test.runs.len() == 2) { "A and B" } else { "the sides" };
    let mut notes = Vec::new();
    if unknown > 0 {
        let of = count(unknown, "test");
        notes.push(format!("the conditions of {of} are unknown: check that {sides} had the same files and run time"));
    }
    let mut differing: BTreeMap<String, u64> = BTreeMap::new();
    for sides in &found {
        let pairs = sides[1..].iter().flat_map(|side| differences(sides[0], side));
        let spoilt = pairs.filter(|difference| difference.kind == DifferenceKind::Workload);
        let whats: BTreeSet<String> = spoilt.map(|difference| difference.what).collect();
        whats.into_iter().for_each(|what| *differing.entry(what).or_default() += 1);
    }
    let named = differing.into_iter().map(|(what, tests)| format!("`{what}` in {}", count(tests, "test")));
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        notes.push(format!("{sides} measured different workloads: they differ in {}", named.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(sides: &[&str], tests: &[(&str, &[Option<f64>])], given: Option<Direction>) -> Result<String, String> {
        let sides = sides.iter().map(|side| (*side).to_owned()).collect();
        let tests = tests.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
        let method = WinsMethod { direction: given, over: &[], form: ImprovementForm::default() };
        let found = WinsDocument::of_file("x.csv", TestFigures { sides, tests }, &method)?;
        let text = crate::sheet::text::write(&found.sheet());
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// A side that did nothing loses, or wins if its figure is a time.
    #[test]
    fn zeros_and_times_have_the_right_winner() {
        let [a, b]: [&[Option<f64>]; 2] = [&[Some(0.0), Some(5.0)], &[Some(4.0), Some(2.0)]];
        let tests: [(&str, &[Option<f64>]); 4] =
            [("zero", a), ("read MB/s", b), ("fsck (s)", b), ("none", &[None, Some(1.0)])];
        let text = file(&["A", "B"], &tests, None).unwrap();
        for part in [
            "zero 0 5 B - read MB/s 4 2 A 2.00 fsck (s) 4 2 B 2.00 none - 1 - -",
            "A is better in 1 (mean factor 2.00), B is better in 2 (mean factor of 1: 2.00), draws 0, unknown 1;",
            "; lower is better in `fsck (s)`, by its unit",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let text = file(&["A (s)", "B (s)"], &[("zero", a), ("fsck (s)", b)], None).unwrap();
        for part in ["x.csv (lower is better)", "zero 0 5 A (s) -", "fsck (s) 4 2 B (s) 2.00"] {
            assert!(text.contains(part) && !text.contains("by its unit"), "{text}");
        }
        let error = file(&["A MB/s", "B KB/s"], &[("x", b)], None).unwrap_err();
        assert_eq!(error, "`A MB/s` and `B KB/s` have different units");
        let error = file(&["A (s)", "B (s)"], &[("zero", a), ("read MB/s", b)], None).unwrap_err();
        assert_eq!(error, "`A (s)` has the unit of a time, but `read MB/s` that of bytes per second");
    }

    /// The option is above all units: errors per second are better if lower.
    #[test]
    fn a_direction_that_is_given_is_that_of_all_tests() {
        let fewer: &[Option<f64>] = &[Some(4.0), Some(2.0)];
        for sides in [["A", "B"], ["A (MB/s)", "B (MB/s)"]] {
            let tests = [("errors/s", fewer), ("misses per second", fewer), ("fsck (s)", fewer)];
            let text = file(&sides, &tests, Some(Direction::LowerIsBetter)).unwrap();
            assert!(text.contains(&format!("{} is better in 3 (mean factor 2.00)", sides[1])), "{text}");
            assert!(text.starts_with("x.csv (lower is better)") && !text.contains("by their unit"), "{text}");
        }
    }
}
