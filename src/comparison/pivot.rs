//! Tables of a metric over the levels of one factor: a line for each combination of the levels of the other factors, and
//! a column for each level. A line also says which of them is best.

use super::factorial::{CellGroup, LEVEL, blocks_are_complete, cell_groups, common_blocks};
use super::numbers::figure;
use super::{FactorLevels, FactorialCell};
use crate::analysis::{
    DRAW, Direction, Estimate, TestOutcome, TestWinner, Wins, WonTests, outcome, paired_ratio, positions,
    ratio_in_order, welch_ratio, wins,
};
use crate::import::Metric;
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::fixed;
use serde::Serialize;

/// The table of a metric over the levels of a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pivot {
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
    /// The lines in which each column is the best, without draws, if there are more than two columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best_in: Vec<WonTests>,
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
    /// The best of more than two columns; null unless two of them have values above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<BestLevel>,
    /// Whether the outcome may be chance: the 95 % interval of the ratio of the runs to those of another column contains 1,
    /// or of a draw also ratios that are none, or is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_chance: bool,
}

/// The best of more than two columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestLevel {
    /// The level with the best value.
    pub level: String,
    /// The level with the second best value.
    pub second: String,
    /// The ratio of the greater to the smaller of both values, at least 1. It is a draw below 1.05.
    pub factor: f64,
}

impl BestLevel {
    fn is_draw(&self) -> bool {
        self.factor < DRAW
    }
}

impl Pivot {
    /// Makes the table of a metric. `metric_index` is its position in each cell. `in_blocks` says that the runs at one
    /// position of all cells are those of one block. Returns `None` if no factor has the name.
    pub(super) fn new(
        metric: &Metric,
        metric_index: usize,
        factor: &str,
        factors: &[FactorLevels],
        cells: &[FactorialCell],
        in_blocks: bool,
    ) -> Option<Self> {
        let in_blocks = in_blocks && blocks_are_complete(cells, metric_index);
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
            let levels = group.others.iter().map(|(_, level)| (*level).to_owned()).collect();
            let metric = has_own.then_some(name);
            let runs = |level: usize| of_cell(&group.cells[level]).map_or(&[][..], |cell| &cell.values);
            let may_be_chance = |[a, b]: [usize; 2], winner: TestWinner| {
                shown_winner([runs(a), runs(b)], direction, in_blocks) != Some(winner)
            };
            if let [a, b] = values[..] {
                let outcome = a.zip(b).and_then(|(a, b)| outcome(a, b, direction));
                let may_be_chance = outcome.is_some_and(|found| may_be_chance([0, 1], found.winner));
                return PivotRow { levels, metric, values, outcome, best: None, may_be_chance };
            }
            let found = best_two(&values, direction);
            // The third level may vary more than the second, and so differ less from the best.
            let others = |best: usize| (0..values.len()).filter(move |level| *level != best);
            let may_be_chance = found.is_some_and(|([best, second], found)| {
                let compared = others(best).filter(|other| values[*other].is_some());
                let mut compared = compared.filter(|other| found.winner != TestWinner::Draw || *other == second);
                compared.any(|other| may_be_chance([best, other], found.winner))
            });
            let best = found.map(|([best, second], TestOutcome { factor, .. })| BestLevel {
                level: columns[best].clone(),
                second: columns[second].clone(),
                factor,
            });
            PivotRow { levels, metric, values, outcome: None, best, may_be_chance }
        };
        let rows: Vec<PivotRow> = groups.into_iter().map(row).collect();
        let best_in = |level: &String| {
            let best = rows.iter().filter_map(|row| row.best.as_ref());
            WonTests::of(
                &best
                    .filter(|best| best.level == *level && !best.is_draw())
                    .map(|best| best.factor)
                    .collect::<Vec<_>>(),
            )
        };
        let outcomes: Vec<Option<TestOutcome>> = rows.iter().map(|row| row.outcome).collect();
        let others = factors.iter().filter(|other| other.name != factor);
        Some(Self {
            metric: metric.to_string(),
            factor: factor.to_owned(),
            others: others.map(|factor| factor.name.clone()).collect(),
            wins: (columns.len() == 2).then(|| wins(&outcomes)),
            best_in: if columns.len() > 2 { columns.iter().map(best_in).collect() } else { Vec::new() },
            columns,
            rows,
        })
    }

    /// The table, with the sums of the lines below it.
    pub(super) fn table(&self) -> SheetTable {
        let others = self.others.iter().map(|name| SheetColumn::words(name));
        let metric = self.has_own_metrics().then(|| SheetColumn::words("metric"));
        let levels = self.columns.iter().map(|level| SheetColumn::numbers(&format!("{}={level}", self.factor)));
        let mut columns: Vec<SheetColumn> = others.chain(metric).chain(levels).collect();
        if self.columns.len() > 1 {
            let better = if self.wins.is_some() { "better" } else { "best" };
            columns.extend([SheetColumn::words(better), SheetColumn::numbers("factor")]);
        }
        SheetTable {
            title: self.title().to_owned(),
            rows: self.lines(),
            below: self.ending().into_iter().collect(),
            ..SheetTable::of(&format!("{} over {}", self.title(), self.factor), columns)
        }
    }

    /// The cells of each line.
    fn lines(&self) -> Vec<Vec<String>> {
        let dash = || "-".to_owned();
        let line = |row: &PivotRow| {
            let name = row.metric.as_ref().unwrap_or(&self.metric);
            let values = row.values.iter().map(|value| value.map_or_else(dash, |value| figure(name, value)));
            let mut line: Vec<String> = row.levels.iter().chain(&row.metric).cloned().chain(values).collect();
            let [better, factor] = match (&self.columns[..], &row.best) {
                ([] | [_], _) => return line,
                ([a, b], _) => outcome_cells(row.outcome, a, b),
                (_, Some(best)) if best.is_draw() => ["draw".to_owned(), fixed(best.factor, 2)],
                (_, Some(best)) => [best.level.clone(), fixed(best.factor, 2)],
                (_, None) => [dash(), dash()],
            };
            line.extend([if row.may_be_chance { better + "?" } else { better }, factor]);
            line
        };
        self.rows.iter().map(line).collect()
    }

    /// True if the lines have different metrics.
    fn has_own_metrics(&self) -> bool {
        self.rows.iter().any(|row| row.metric.is_some())
    }

    /// The title: the metric, if it is that of all lines.
    fn title(&self) -> &str {
        if self.has_own_metrics() { "metric of each level" } else { &self.metric }
    }

    /// The sums of a table with several columns as one line.
    fn ending(&self) -> Option<String> {
        let doubt = doubt_text(self.rows.iter().filter(|row| row.may_be_chance).count());
        match (self.wins, &self.columns[..]) {
            (Some(found), [a, b]) => Some(wins_line(a, b, found) + &doubt),
            (_, [_, _, ..]) => Some(self.best_line() + &doubt),
            _ => None,
        }
    }

    /// Returns the number of lines in which each column is the best.
    fn best_line(&self) -> String {
        let of_column = |(level, won): (&String, &WonTests)| format!("{level} in {}", won_tests(*won));
        let columns: Vec<String> = self.columns.iter().zip(&self.best_in).map(of_column).collect();
        let draws = self.rows.iter().filter(|row| row.best.as_ref().is_some_and(BestLevel::is_draw)).count() as u64;
        let unknown = self.rows.iter().filter(|row| row.best.is_none()).count() as u64;
        counted_line(&format!("best: {}", columns.join(", ")), draws, unknown)
    }
}

/// Returns the positions of the best and the second best value, and the outcome of their comparison, in which A is the
/// best. Returns `None` unless two values are finite and above 0.
fn best_two(values: &[Option<f64>], direction: Direction) -> Option<([usize; 2], TestOutcome)> {
    let is_usable = |value: &f64| value.is_finite() && *value > 0.0;
    let usable = values.iter().enumerate().filter_map(|(n, value)| Some((n, value.filter(is_usable)?)));
    let mut order: Vec<(usize, f64)> = usable.collect();
    order.sort_by(|(_, a), (_, b)| match direction {
        Direction::HigherIsBetter => b.total_cmp(a),
        Direction::LowerIsBetter => a.total_cmp(b),
    });
    let [(best, a), (second, b), ..] = order[..] else { return None };
    // Of equal values the first counts as the best: it is a draw.
    Some(([best, second], outcome(a, b, direction)?))
}

/// True if an outcome of two samples, of which the second was measured after the first, may be chance or a drift of
/// the machine, because the values do not show it.
pub fn may_be_chance(samples: [&[f64]; 2], direction: Direction, outcome: TestOutcome) -> bool {
    let times = positions(samples.map(|values| vec![None; values.len()]).each_ref().map(Vec::as_slice));
    let found = ratio_in_order(samples, Some(times.each_ref().map(Vec::as_slice)), LEVEL);
    found.and_then(|found| winner_of(found.ratio, direction)) != Some(outcome.winner)
}

/// Returns the outcome that the runs of two cells show: which of them is significantly better, since the 95 % interval of
/// the ratio does not contain 1, or a draw, since it contains no ratio that is none. Returns `None` if they show neither.
/// The ratio is that of the geometric means, so that it may be another cell than the one with the better mean.
fn shown_winner([a, b]: [&[f64]; 2], direction: Direction, in_blocks: bool) -> Option<TestWinner> {
    let of_blocks = || common_blocks(&[(a, b)]).first().and_then(|(a, b)| paired_ratio(a, b, LEVEL));
    let test = if in_blocks { of_blocks() } else { welch_ratio(a, b, LEVEL) };
    winner_of(test?.estimate, direction)
}

/// Returns the outcome that the interval of a ratio shows, or `None` if it shows none.
fn winner_of(ratio: Estimate, direction: Direction) -> Option<TestWinner> {
    let ratio = direction.goodness(ratio);
    match () {
        () if ratio.low > 1.0 / DRAW && ratio.high < DRAW => Some(TestWinner::Draw),
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
    // A factor that is rounded up to the limit would contradict the draw.
    let digits = if found.winner == TestWinner::Draw && found.factor >= DRAW - 0.005 { 3 } else { 2 };
    [better.to_owned(), fixed(found.factor, digits)]
}

/// Explains the `?` of this number of lines, as the end of a line of sums.
pub fn doubt_text(lines: usize) -> String {
    match lines {
        0 => String::new(),
        n => format!("; {n} with `?` may be chance (95 % interval of the ratio)"),
    }
}

/// Formats the sums of several tests of two sides with these names.
pub fn wins_line(a: &str, b: &str, found: Wins) -> String {
    let side = |name: &str, won: WonTests| format!("{name} is better in {}", won_tests(won));
    let sides = format!("{}, {}", side(a, found.a), side(b, found.b));
    counted_line(&sides, found.draws, found.without_outcome)
}

/// Formats a number of tests with the mean of their factors.
fn won_tests(won: WonTests) -> String {
    let mean = won.mean_factor.map_or_else(String::new, |mean| format!(" (mean factor {})", fixed(mean, 2)));
    format!("{}{mean}", won.tests)
}

/// Adds the numbers of draws and of tests without an outcome to the sums of sides or columns.
fn counted_line(sums: &str, draws: u64, without_outcome: u64) -> String {
    let unknown = if without_outcome == 0 { String::new() } else { format!(", unknown {without_outcome}") };
    let line = format!("{sums}, draws {draws}{unknown}");
    format!("{}; a draw is a factor below {DRAW}", crate::util::printable::line(&line))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CellMetric;
    use super::*;

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
        let pivot = Pivot::new(&Metric::ops(), 0, "fs", &factors, &cells, false).unwrap();
        let lines: Vec<String> = pivot.lines().iter().map(|line| line.join(" ")).collect();
        assert_eq!(lines, ["1 300.0 100.0 ext4? 3.00", "2 100.0 101.0 draw? 1.01", "3 - 1.00 - -"]);
        assert_eq!(
            pivot.ending().unwrap(),
            "ext4 is better in 1 (mean factor 3.00), xfs is better in 0, draws 1, unknown 1; a draw is a factor below \
             1.05; 2 with `?` may be chance (95 % interval of the ratio)"
        );
        // Of three levels the best is compared with the second best.
        let pivot = Pivot::new(&Metric::ops(), 0, "test", &factors, &cells, false).unwrap();
        let lines: Vec<String> = pivot.lines().iter().map(|line| line.join(" ")).collect();
        assert_eq!(lines, ["ext4 300.0 100.0 - 1? 3.00", "xfs 100.0 101.0 1.00 draw? 1.01"]);
        assert!(
            pivot.ending().unwrap().starts_with("best: 1 in 1 (mean factor 3.00), 2 in 0, 3 in 0, draws 1; a draw")
        );
        assert_eq!(pivot.table().headings()[4], "best");
        assert_eq!(Pivot::new(&Metric::ops(), 0, "size", &factors, &cells, false), None);
        // A single level is not compared.
        let pivot = Pivot::new(&Metric::ops(), 0, "fs", &[factor("fs", &["ext4"])], &cells[..1], false).unwrap();
        assert_eq!((pivot.ending(), pivot.table().headings().len(), pivot.lines()[0].len()), (None, 1, 1));
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
            let pivot = Pivot::new(&Metric::ops(), 0, "fs", &factors, &cells, false).unwrap();
            (pivot.lines()[0][2].clone(), pivot.ending().unwrap().contains('?'))
        };
        assert_eq!(better(&[100.0, 101.0, 102.0], &[200.0, 201.0, 202.0]), ("xfs".to_owned(), false));
        assert_eq!(better(&[100.0, 300.0, 20.0], &[200.0, 250.0, 202.0]), ("xfs?".to_owned(), true));
        // The ratio of the geometric means is significant, for the level with the worse arithmetic mean.
        let one_fast = [&[100.0; 9][..], &[2000.0]].concat();
        let many = (0..10).map(|n| 265.0 + f64::from(n)).collect::<Vec<_>>();
        assert_eq!(better(&one_fast, &many), ("ext4?".to_owned(), true));
        // A single run has no interval; equal values differ from others without doubt; a draw needs a narrow interval.
        assert_eq!(better(&[100.0], &[200.0]), ("xfs?".to_owned(), true));
        assert_eq!(better(&[200.0, 200.0], &[100.0, 100.0]), ("ext4".to_owned(), false));
        assert_eq!(better(&[100.0, 101.0, 100.5], &[101.0, 100.0, 100.5]), ("draw".to_owned(), false));
        assert_eq!(better(&[100.0, 140.0, 80.0], &[101.0, 139.0, 80.0]), ("draw?".to_owned(), true));
    }

    /// The machine was ten times as slow in the second block, and xfs half as fast as ext4 in each.
    #[test]
    fn blocks_are_compared_with_themselves() {
        let factors = [factor("fs", &["ext4", "xfs", "btrfs"])];
        let of_runs = |level: &str, runs: [f64; 3]| {
            let mut cell = cell([level, ""], Some(runs.iter().sum::<f64>() / 3.0));
            (cell.runs, cell.metrics[0].values) = (3, runs.to_vec());
            cell
        };
        let runs = [("ext4", [100.0, 10.0, 55.0]), ("xfs", [50.0, 5.1, 27.0]), ("btrfs", [24.0, 2.6, 13.0])];
        let mut cells = runs.map(|(level, runs)| of_runs(level, runs));
        let best = |cells: &[FactorialCell], in_blocks| {
            Pivot::new(&Metric::ops(), 0, "fs", &factors, cells, in_blocks).unwrap().lines()[0][3].clone()
        };
        assert_eq!((best(&cells, true), best(&cells, false)), ("ext4".to_owned(), "ext4?".to_owned()));
        // A block that was begun lacks the last cell.
        let mut begun = cells.clone();
        begun[0].metrics[0].values.push(80.0);
        begun[0].runs = 4;
        assert_eq!(best(&begun, true), "ext4");
        // The third level has the lowest mean, and may be better.
        let mut third = cells.clone();
        third[2].metrics[0].values = vec![1.0, 1.0, 62.0];
        assert_eq!(best(&third, true), "ext4?");
        cells[2].failed = 1;
        assert_eq!(best(&cells, true), "ext4?");
    }
}
