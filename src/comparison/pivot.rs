//! Tables of a metric over the levels of one factor: a line for each combination of the levels of the other factors, and
//! a column for each level. With two levels, a line also says which of them is better.

use super::factorial::{CellGroup, LEVEL, cell_groups};
use super::numbers::figure;
use super::{FactorLevels, FactorialCell};
use crate::analysis::{DRAW, Direction, TestOutcome, TestWinner, Wins, WonTests, outcome, welch_ratio, wins};
use crate::import::Metric;
use crate::util::count::fixed;
use crate::util::table::{Align, Table};
use serde::Serialize;

/// The table of a metric over the levels of a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pivot {
    /// The metric.
    pub metric: String,
    /// The factor whose levels are the columns.
    pub factor: String,
    /// The levels of the factor.
    pub columns: Vec<String>,
    /// The names of the other factors.
    pub others: Vec<String>,
    /// The lines.
    pub rows: Vec<PivotRow>,
    /// The sums over all lines; null unless there are two columns.
    pub wins: Option<Wins>,
}

/// A line of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PivotRow {
    /// The levels of the other factors.
    pub levels: Vec<String>,
    /// The metric of the line, if the levels of another factor have metrics of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The mean of the metric at each level; null without a complete run.
    pub values: Vec<Option<f64>>,
    /// Which of two columns is better; null unless there are two values above 0.
    pub outcome: Option<TestOutcome>,
    /// Whether the better column may be better by chance: the 95 % interval of the ratio of the runs contains 1, or is
    /// unknown. `false` for a draw.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_chance: bool,
}

impl Pivot {
    /// Makes the table of a metric. `metric_index` is its position in each cell. Returns `None` if no factor has the name.
    pub(super) fn new(
        metric: &Metric,
        metric_index: usize,
        factor: &str,
        factors: &[FactorLevels],
        cells: &[FactorialCell],
    ) -> Option<Self> {
        let columns = factors.iter().find(|other| other.name == factor)?.levels.clone();
        let of_cell = |cell: &usize| cells.get(*cell)?.metrics.get(metric_index);
        let groups = cell_groups(factors, factor);
        let has_own = groups.iter().flat_map(|group| &group.cells).filter_map(of_cell);
        let has_own = has_own.into_iter().any(|found| found.metric != metric.to_string());
        let row = |group: CellGroup<'_>| {
            let values: Vec<Option<f64>> =
                group.cells.iter().map(|cell| Some(of_cell(cell)?.estimate?.value)).collect();
            // Those of a line are equal.
            let name = group.cells.first().and_then(of_cell).map_or_else(|| metric.to_string(), |f| f.metric.clone());
            let direction = name.parse().unwrap_or_else(|_| metric.clone()).direction();
            let outcome = match values[..] {
                [Some(a), Some(b)] => outcome(a, b, direction),
                _ => None,
            };
            let levels = group.others.iter().map(|(_, level)| (*level).to_owned()).collect();
            let runs: Vec<&[f64]> = group.cells.iter().filter_map(of_cell).map(|cell| &cell.values[..]).collect();
            let is_sure = |winner| winner == TestWinner::Draw || significantly_better(&runs, direction) == Some(winner);
            let may_be_chance = outcome.is_some_and(|found| !is_sure(found.winner));
            PivotRow { levels, metric: has_own.then_some(name), values, outcome, may_be_chance }
        };
        let rows: Vec<PivotRow> = groups.into_iter().map(row).collect();
        let outcomes: Vec<Option<TestOutcome>> = rows.iter().map(|row| row.outcome).collect();
        let others = factors.iter().filter(|other| other.name != factor);
        Some(Self {
            metric: metric.to_string(),
            factor: factor.to_owned(),
            others: others.map(|factor| factor.name.clone()).collect(),
            wins: (columns.len() == 2).then(|| wins(&outcomes)),
            columns,
            rows,
        })
    }

    /// Returns the headings of [`Self::lines`] with their alignment.
    pub fn headings(&self) -> Vec<(String, Align)> {
        let others = self.others.iter().map(|name| (name.clone(), Align::Left));
        let metric = self.has_own_metrics().then(|| ("metric".to_owned(), Align::Left));
        let columns = self.columns.iter().map(|level| (format!("{}={level}", self.factor), Align::Right));
        let mut headings: Vec<(String, Align)> = others.chain(metric).chain(columns).collect();
        if self.wins.is_some() {
            headings.extend([("better".to_owned(), Align::Left), ("factor".to_owned(), Align::Right)]);
        }
        headings
    }

    /// Returns the cells of each line.
    pub fn lines(&self) -> Vec<Vec<String>> {
        let dash = || "-".to_owned();
        let line = |row: &PivotRow| {
            let name = row.metric.as_ref().unwrap_or(&self.metric);
            let values = row.values.iter().map(|value| value.map_or_else(dash, |value| figure(name, value)));
            let mut line: Vec<String> = row.levels.iter().chain(&row.metric).cloned().chain(values).collect();
            if let [a, b] = &self.columns[..] {
                let [better, factor] = outcome_cells(row.outcome, a, b);
                line.extend([if row.may_be_chance { better + "?" } else { better }, factor]);
            }
            line
        };
        self.rows.iter().map(line).collect()
    }

    /// Returns whether the lines have different metrics.
    fn has_own_metrics(&self) -> bool {
        self.rows.iter().any(|row| row.metric.is_some())
    }

    /// Returns the title: the metric, if it is that of all lines.
    pub fn title(&self) -> &str {
        if self.has_own_metrics() { "metric of each level" } else { &self.metric }
    }

    /// Returns the sums of a table with two columns as one line.
    pub fn ending(&self) -> Option<String> {
        let found = self.wins?;
        let [a, b] = &self.columns[..] else { return None };
        let doubtful = self.rows.iter().filter(|row| row.may_be_chance).count();
        let doubt = match doubtful {
            0 => String::new(),
            n => format!("; `?` in {n}: the 95 % interval of the ratio contains 1, or is unknown"),
        };
        Some(wins_line(a, b, found) + &doubt)
    }

    /// Formats the table.
    pub(super) fn text(&self) -> String {
        let headings = self.headings();
        let mut table = Table::new(headings.iter().map(|(name, align)| (name.as_str(), *align)));
        for line in self.lines() {
            table.row(line);
        }
        let ending = self.ending().map_or_else(String::new, |line| format!("{line}\n"));
        format!("{}\n\n{}{ending}", self.title(), table.render())
    }
}

/// Returns which of two cells is significantly better: the 95 % interval of the ratio of their runs does not contain 1.
/// The ratio is that of the geometric means, so that it may be another cell than the one with the better mean.
fn significantly_better(runs: &[&[f64]], direction: Direction) -> Option<TestWinner> {
    let [a, b] = runs else { return None };
    let ratio = direction.goodness(welch_ratio(a, b, LEVEL)?.estimate);
    match () {
        () if ratio.low > 1.0 => Some(TestWinner::B),
        () if ratio.high < 1.0 => Some(TestWinner::A),
        () => None,
    }
}

/// Formats the outcome of a test of two sides with these names: the better side and the factor; `-` without an outcome.
pub fn outcome_cells(outcome: Option<TestOutcome>, a: &str, b: &str) -> [String; 2] {
    let Some(found) = outcome else { return ["-", "-"].map(str::to_owned) };
    let better = match found.winner {
        TestWinner::A => a,
        TestWinner::B => b,
        TestWinner::Draw => "draw",
    };
    [better.to_owned(), fixed(found.factor, 2)]
}

/// Formats the sums of several tests of two sides with these names.
pub fn wins_line(a: &str, b: &str, found: Wins) -> String {
    let side = |name: &str, won: WonTests| {
        let mean = won.mean_factor.map_or_else(String::new, |mean| format!(" (mean factor {})", fixed(mean, 2)));
        format!("{name} is better in {}{mean}", won.tests)
    };
    let unknown = match found.without_outcome {
        0 => String::new(),
        n => format!(", unknown {n}"),
    };
    let line = format!("{}, {}, draws {}{unknown}", side(a, found.a), side(b, found.b), found.draws);
    format!("{}; a draw is a factor below {DRAW}", crate::util::printable::line(&line))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CellMetric;
    use super::*;
    use crate::analysis::Estimate;

    fn cell(levels: [&str; 2], value: Option<f64>) -> FactorialCell {
        let estimate = value.map(|value| Estimate { value, low: value, high: value });
        FactorialCell {
            levels: levels.map(str::to_owned).to_vec(),
            metrics: vec![CellMetric { metric: "ops".to_owned(), estimate, values: Vec::new() }],
            ..FactorialCell::default()
        }
    }

    fn factor(name: &str, levels: &[&str]) -> FactorLevels {
        FactorLevels { name: name.to_owned(), levels: levels.iter().map(|level| (*level).to_owned()).collect() }
    }

    #[test]
    fn two_levels_are_columns_with_the_better_one() {
        let factors = [factor("fs", &["ext4", "xfs"]), factor("test", &["1", "2", "3"])];
        let cells = [
            cell(["ext4", "1"], Some(300.0)),
            cell(["ext4", "2"], Some(100.0)),
            cell(["ext4", "3"], None),
            cell(["xfs", "1"], Some(100.0)),
            cell(["xfs", "2"], Some(101.0)),
            cell(["xfs", "3"], Some(1.0)),
        ];
        let pivot = Pivot::new(&Metric::ops(), 0, "fs", &factors, &cells).unwrap();
        let lines: Vec<String> = pivot.lines().iter().map(|line| line.join(" ")).collect();
        assert_eq!(lines, ["1 300.0 100.0 ext4? 3.00", "2 100.0 101.0 draw 1.01", "3 - 1.00 - -"]);
        assert_eq!(
            pivot.ending().unwrap(),
            "ext4 is better in 1 (mean factor 3.00), xfs is better in 0, draws 1, unknown 1; a draw is a factor below \
             1.05; `?` in 1: the 95 % interval of the ratio contains 1, or is unknown"
        );
        // With three levels nothing is said about the better one.
        let pivot = Pivot::new(&Metric::ops(), 0, "test", &factors, &cells).unwrap();
        assert_eq!(pivot.lines()[1].join(" "), "xfs 100.0 101.0 1.00");
        assert_eq!((pivot.ending(), pivot.headings().len()), (None, 4));
        assert_eq!(Pivot::new(&Metric::ops(), 0, "size", &factors, &cells), None);
    }

    #[test]
    fn a_better_level_is_marked_unless_the_runs_differ_significantly() {
        let factors = [factor("fs", &["ext4", "xfs"])];
        let better = |a: &[f64], b: &[f64]| {
            let of_runs = |level: &str, runs: &[f64]| {
                let mut cell = cell([level, ""], Some(runs.iter().sum::<f64>() / runs.len() as f64));
                cell.metrics[0].values = runs.to_vec();
                cell
            };
            let cells = [of_runs("ext4", a), of_runs("xfs", b)];
            let pivot = Pivot::new(&Metric::ops(), 0, "fs", &factors, &cells).unwrap();
            (pivot.lines()[0][2].clone(), pivot.ending().unwrap().contains('?'))
        };
        assert_eq!(better(&[100.0, 101.0, 102.0], &[200.0, 201.0, 202.0]), ("xfs".to_owned(), false));
        assert_eq!(better(&[100.0, 300.0, 20.0], &[200.0, 250.0, 202.0]), ("xfs?".to_owned(), true));
        // The ratio of the geometric means is significant, for the level with the worse arithmetic mean.
        let one_fast = [&[100.0; 9][..], &[2000.0]].concat();
        let many = (0..10).map(|n| 265.0 + f64::from(n)).collect::<Vec<_>>();
        assert_eq!(better(&one_fast, &many), ("ext4?".to_owned(), true));
        // A single run has no interval; equal values differ from others without doubt; a draw claims nothing.
        assert_eq!(better(&[100.0], &[200.0]), ("xfs?".to_owned(), true));
        assert_eq!(better(&[200.0, 200.0], &[100.0, 100.0]), ("ext4".to_owned(), false));
        assert_eq!(better(&[100.0, 101.0], &[101.0, 100.0]), ("draw".to_owned(), false));
    }
}
