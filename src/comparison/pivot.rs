//! Tables of a metric over the levels of one factor: a line for each combination of the levels of the other factors, and
//! a column for each level. A line also says which of them is best.

use super::factorial::{CellGroup, LEVEL, blocks_are_complete, cell_groups, common_blocks};
use super::improvement::improvements;
use super::numbers::{factor, figure, in_unit};
use super::{
    DrawRule, FactorLevels, FactorialCell, FactorialDesign, FactorialTables, Improvement, ImprovementForm, Sweep,
};
use crate::analysis::{
    DRAW, Direction, Estimate, TestOutcome, TestWinner, Wins, WonTests, fewest_on_each_side, fewest_pairs,
    paired_ratio, positions, ratio_in_order, welch_ratio, wins,
};
use crate::import::Metric;
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::{dash, exact, fixed, or_dash};
use serde::Serialize;

/// The table of a metric over the levels of a factor.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// The factors whose levels stand side by side in the table of improvements.
    #[serde(skip)]
    pub beside: Vec<String>,
    /// The form of the improvements.
    #[serde(skip)]
    pub form: ImprovementForm,
    /// Which lines are draws.
    #[serde(skip)]
    pub draw: DrawRule,
    /// The column that is a bound, and never the best.
    #[serde(skip)]
    pub bound: Option<String>,
}

/// How the lines of a table are compared.
pub(super) struct PivotMethod<'a> {
    pub(super) columns: &'a [String],
    /// The reference columns.
    pub(super) over: &'a [String],
    pub(super) metric: &'a str,
    pub(super) direction: Direction,
    pub(super) draw: DrawRule,
    /// The column that is a bound.
    pub(super) bound: Option<&'a String>,
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
    /// Which of two columns is better; null unless there are two values.
    pub outcome: Option<TestOutcome>,
    /// Whether the lower value is better.
    pub lower_is_better: bool,
    /// The best of more than two columns; null unless two of them have values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<BestLevel>,
    /// Whether the outcome may be chance: the 95 % interval of the ratio of the runs to those of another column contains 1,
    /// or of a draw also ratios that are none, or is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_chance: bool,
    /// The improvements over the reference columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub improvements: Vec<Improvement>,
}

/// The best of more than two columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestLevel {
    /// The level with the best value.
    pub level: String,
    /// The level with the second best value.
    pub second: String,
    /// The ratio of the greater to the smaller of both values, at least 1; null unless both are above 0 or equal. It is a draw
    /// below 1.05.
    pub factor: Option<f64>,
    #[serde(skip)]
    is_draw: bool,
}

impl PivotRow {
    /// A line with these values, without its levels. `ratio` returns the ratio of the runs of the second column to those of
    /// the first; without it no outcome is marked as possible chance.
    pub(super) fn of(
        &PivotMethod { columns, over, metric, direction, draw, bound }: &PivotMethod<'_>,
        shown: Vec<Option<f64>>,
        ratio: Option<&dyn Fn([usize; 2]) -> Option<Estimate>>,
    ) -> Self {
        let compared = columns.iter().zip(&shown);
        let values: Vec<Option<f64>> =
            compared.map(|(column, value)| value.filter(|_| bound != Some(column))).collect();
        let may_be_chance = |pair: [usize; 2], winner: TestWinner| {
            // Runs of which none did anything do not differ.
            let are_zero = pair.iter().all(|n| values[*n] == Some(0.0));
            let is_equal = (draw == DrawRule::Printed || are_zero) && winner == TestWinner::Draw;
            let shows = |found| draw.shown_by(found, direction) == Some(winner);
            !is_equal && ratio.is_some_and(|ratio| !ratio(pair).is_some_and(shows))
        };
        let outcome = |a: f64, b: f64| draw.outcome(a, b, metric, direction);
        let mut improvements = improvements(columns, over, &values, direction, ratio);
        improvements.retain(|found| bound != Some(&found.of));
        let lower_is_better = direction == Direction::LowerIsBetter;
        if let [a, b] = values[..] {
            let outcome = a.zip(b).and_then(|(a, b)| outcome(a, b));
            let may_be_chance = outcome.is_some_and(|found| may_be_chance([0, 1], found.winner));
            return Self { values: shown, outcome, lower_is_better, may_be_chance, improvements, ..Self::default() };
        }
        let found = best_two(&values, direction, &outcome);
        // The third level may vary more than the second, and so differ less from the best.
        let others = |best: usize| (0..values.len()).filter(move |level| *level != best);
        let may_be_chance = found.is_some_and(|([best, second], found)| {
            let compared = others(best).filter(|other| values[*other].is_some());
            let mut compared = compared.filter(|other| found.winner != TestWinner::Draw || *other == second);
            compared.any(|other| may_be_chance([best, other], found.winner))
        });
        let best = found.map(|([best, second], TestOutcome { factor, winner })| BestLevel {
            level: columns[best].clone(),
            second: columns[second].clone(),
            factor,
            is_draw: winner == TestWinner::Draw,
        });
        Self { values: shown, lower_is_better, best, may_be_chance, improvements, ..Self::default() }
    }
}

impl Pivot {
    /// Makes the table of a metric. `metric_index` is its position in each cell. Returns `None` if no factor has the name.
    pub(super) fn new(
        metric: &Metric,
        metric_index: usize,
        factor: &str,
        design: &FactorialDesign<'_>,
        cells: &[FactorialCell],
    ) -> Option<Self> {
        let FactorialDesign { factors, tables, .. } = design;
        let in_blocks = design.in_blocks && blocks_are_complete(cells, metric_index);
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
            let runs = |level: usize| of_cell(&group.cells[level]).map_or(&[][..], |cell| &cell.values);
            let ratio = |pair: [usize; 2]| run_ratio(pair.map(runs), in_blocks);
            let (over, draw, bound) = (&tables.over[..], tables.draw, tables.bound.as_ref());
            let method = PivotMethod { columns: &columns, over, metric: &name, direction, draw, bound };
            let row = PivotRow::of(&method, values, Some(&ratio));
            let levels = group.others.iter().map(|(_, level)| (*level).to_owned()).collect();
            PivotRow { levels, metric: has_own.then_some(name), ..row }
        };
        let rows: Vec<PivotRow> = groups.into_iter().map(row).collect();
        let others = factors.iter().filter(|other| other.name != factor).map(|factor| factor.name.clone()).collect();
        let found = Self::of(metric.to_string(), others, columns, rows);
        Some(Self { factor: factor.to_owned(), beside: tables.beside.clone(), ..found.shown_as(tables) })
    }

    /// The table of the peak rates of load curves, one for each combination of the levels of these factors, over the levels
    /// of one of them.
    pub(super) fn of_peaks(
        curves: &[Sweep],
        factors: &[FactorLevels],
        factor: &str,
        tables: &FactorialTables,
    ) -> Option<Self> {
        const PEAK: &str = "peak";
        let columns = factors.iter().find(|other| other.name == factor)?.levels.clone();
        let row = |group: CellGroup<'_>| {
            let values = group.cells.iter().map(|n| Some(curves.get(*n)?.overall?.peak)).collect();
            let (over, draw, bound) = (&tables.over[..], tables.draw, tables.bound.as_ref());
            let direction = Direction::HigherIsBetter;
            let method = PivotMethod { columns: &columns, over, metric: PEAK, direction, draw, bound };
            let levels = group.others.iter().map(|(_, level)| (*level).to_owned()).collect();
            PivotRow { levels, ..PivotRow::of(&method, values, None) }
        };
        let rows = cell_groups(factors, factor).into_iter().map(row).collect();
        let others = factors.iter().filter(|other| other.name != factor).map(|factor| factor.name.clone()).collect();
        let found = Self::of(PEAK.to_owned(), others, columns, rows);
        Some(Self { factor: factor.to_owned(), ..found.shown_as(tables) })
    }

    fn shown_as(self, tables: &FactorialTables) -> Self {
        let form = tables.improvement.unwrap_or_default();
        Self { form, draw: tables.draw, bound: tables.bound.clone(), ..self }
    }

    /// A table with these lines, and their sums.
    pub(super) fn of(metric: String, others: Vec<String>, columns: Vec<String>, rows: Vec<PivotRow>) -> Self {
        let best_in = |level: &String| {
            let best = rows.iter().filter_map(|row| row.best.as_ref());
            let won = best.filter(|best| best.level == *level && !best.is_draw);
            WonTests::of(&won.map(|best| best.factor).collect::<Vec<_>>())
        };
        let outcomes: Vec<Option<TestOutcome>> = rows.iter().map(|row| row.outcome).collect();
        Self {
            metric,
            others,
            wins: (columns.len() == 2).then(|| wins(&outcomes)),
            best_in: if columns.len() > 2 { columns.iter().map(best_in).collect() } else { Vec::new() },
            columns,
            rows,
            ..Self::default()
        }
    }

    /// The tables of several metrics: one for each combination of the levels of the other factors, with a line for each
    /// metric, and the sums below the last; then the improvements.
    pub(super) fn tables_by_metric(pivots: &[Self]) -> Vec<SheetTable> {
        let Some(first) = pivots.first() else { return Vec::new() };
        let lines: Vec<Vec<Vec<String>>> = pivots.iter().map(Self::lines).collect();
        let mut tables: Vec<SheetTable> = Vec::new();
        for (n, row) in first.rows.iter().enumerate() {
            let levels = first.others.iter().zip(&row.levels).map(|(name, level)| format!("{name}={level}"));
            let title = levels.collect::<Vec<_>>().join(", ");
            let columns = std::iter::once(SheetColumn::words("metric")).chain(first.value_columns());
            let mut table = SheetTable { title: title.clone(), ..SheetTable::of(&title, columns) };
            for (pivot, lines) in pivots.iter().zip(&lines) {
                let (Some(row), Some(line)) = (pivot.rows.get(n), lines.get(n)) else { continue };
                let name = row.metric.clone().unwrap_or_else(|| pivot.metric.clone());
                let values = line.iter().skip(row.levels.len() + usize::from(row.metric.is_some()));
                table.row(std::iter::once(format!("{name}{}", in_unit(&name))).chain(values.cloned()));
            }
            tables.push(table);
        }
        if let Some(last) = tables.last_mut() {
            let ending = |pivot: &Self| pivot.ending().map(|line| format!("{}: {line}", pivot.title()));
            last.below = pivots.iter().filter_map(ending).collect();
        }
        tables.into_iter().chain(pivots.iter().filter_map(Self::improvement_table)).collect()
    }

    /// The table, and that of the improvements; none of a metric that no cell has.
    pub(super) fn tables(&self) -> Vec<SheetTable> {
        let is_known = self.rows.iter().any(|row| row.values.iter().any(Option::is_some));
        let tables = || std::iter::once(self.table()).chain(self.improvement_table());
        if is_known { tables().collect() } else { Vec::new() }
    }

    /// The table, with the sums of the lines below it.
    fn table(&self) -> SheetTable {
        let others = self.others.iter().map(|name| SheetColumn::words(name));
        let metric = self.has_own_metrics().then(|| SheetColumn::words("metric"));
        let columns = others.chain(metric).chain(self.value_columns());
        let unit = in_unit(self.title());
        SheetTable {
            title: format!("{}{unit}", self.title()),
            rows: self.lines(),
            below: self.ending().into_iter().chain(self.unknown_improvements()).collect(),
            ..SheetTable::of(&format!("{} over {}{unit}", self.title(), self.factor), columns)
        }
    }

    /// The columns of the levels, and those of the best one.
    fn value_columns(&self) -> Vec<SheetColumn> {
        // The sides of tests are levels of no factor.
        let prefix = if self.factor.is_empty() { String::new() } else { format!("{}=", self.factor) };
        let levels = self.columns.iter().map(|level| SheetColumn::numbers(&format!("{prefix}{level}")));
        let mut columns: Vec<SheetColumn> = levels.collect();
        if self.compares() {
            let better = if self.wins.is_some() { "better" } else { "best" };
            columns.extend([SheetColumn::words(better), SheetColumn::numbers("factor")]);
        }
        columns
    }

    /// The cells of each line.
    fn lines(&self) -> Vec<Vec<String>> {
        let line = |row: &PivotRow| {
            let name = row.metric.as_ref().unwrap_or(&self.metric);
            // The figures of a file have no unit.
            let shown = |value| if name.is_empty() { exact(value) } else { figure(name, value) };
            let values = row.values.iter().map(|value| or_dash(*value, shown));
            let mut line: Vec<String> = row.levels.iter().chain(&row.metric).cloned().chain(values).collect();
            if self.compares() {
                line.extend(self.outcome_cells(row));
            }
            line
        };
        self.rows.iter().map(line).collect()
    }

    /// The best column of a line, and its lead over the second.
    pub(super) fn outcome_cells(&self, row: &PivotRow) -> [String; 2] {
        let [better, factor] = match (&self.columns[..], &row.best) {
            ([a, b], _) => outcome_cells(row.outcome, a, b),
            (_, Some(best)) if best.is_draw => drawn(best.factor),
            (_, Some(best)) => [best.level.clone(), or_dash(best.factor, factor)],
            (_, None) => [dash(), dash()],
        };
        [if row.may_be_chance { better + "?" } else { better }, factor]
    }

    /// True if there are two columns besides a bound.
    fn compares(&self) -> bool {
        self.columns.iter().filter(|column| self.bound.as_ref() != Some(column)).count() > 1
    }

    /// True if the lines have different metrics.
    fn has_own_metrics(&self) -> bool {
        self.rows.iter().any(|row| row.metric.is_some())
    }

    /// The title: the metric, if it is that of all lines.
    pub(super) fn title(&self) -> &str {
        if self.has_own_metrics() { "metric of each level" } else { &self.metric }
    }

    /// The sums of a table with several columns as one line.
    fn ending(&self) -> Option<String> {
        let doubt = doubt_text(self.rows.iter().filter(|row| row.may_be_chance).count());
        match (self.wins, &self.columns[..]) {
            _ if !self.compares() => None,
            (Some(found), [a, b]) => Some(wins_line(a, b, found, self.draw) + &doubt),
            _ => Some(self.best_line() + &doubt),
        }
    }

    /// Returns the number of lines in which each column is the best.
    fn best_line(&self) -> String {
        let of_column = |(level, won): (&String, &WonTests)| format!("{level} in {}", won_tests(*won));
        let compared = self.columns.iter().zip(&self.best_in).filter(|(level, _)| self.bound.as_ref() != Some(level));
        let columns: Vec<String> = compared.map(of_column).collect();
        let draws = self.rows.iter().filter(|row| row.best.as_ref().is_some_and(|best| best.is_draw)).count() as u64;
        let unknown = self.rows.iter().filter(|row| row.best.is_none()).count() as u64;
        counted_line(&format!("best: {}", columns.join(", ")), draws, unknown, self.draw)
    }
}

/// Returns the positions of the best and the second best value, and the outcome of their comparison, in which A is the
/// best. Returns `None` unless two values are finite.
fn best_two(
    values: &[Option<f64>],
    direction: Direction,
    outcome: &dyn Fn(f64, f64) -> Option<TestOutcome>,
) -> Option<([usize; 2], TestOutcome)> {
    let known = values.iter().enumerate().filter_map(|(n, value)| Some((n, value.filter(|v| v.is_finite())?)));
    let mut order: Vec<(usize, f64)> = known.collect();
    order.sort_by(|(_, a), (_, b)| match direction {
        Direction::HigherIsBetter => b.total_cmp(a),
        Direction::LowerIsBetter => a.total_cmp(b),
    });
    let [(best, a), (second, b), ..] = order[..] else { return None };
    // Of equal values the first counts as the best: it is a draw.
    Some(([best, second], outcome(a, b)?))
}

/// Returns the ratio of two samples with its interval, B/A. The second sample was measured after the first, so that a drift
/// of the machine may explain it.
pub(super) fn ratio_of_samples(samples: [&[f64]; 2]) -> Option<Estimate> {
    let times = positions(samples.map(|values| vec![None; values.len()]).each_ref().map(Vec::as_slice));
    let in_order = || Some(ratio_in_order(samples, Some(times.each_ref().map(Vec::as_slice)), LEVEL)?.ratio);
    ratio_to_nothing(samples, fewest_on_each_side).or_else(in_order)
}

/// Returns the ratio of two samples of which one is 0 in all runs and the other above 0 in all, B/A: as good as 0 or infinite.
/// Zeros have no geometric mean, but ranks tell such samples apart if they have the fewest runs for their test.
fn ratio_to_nothing([a, b]: [&[f64]; 2], fewest: fn(f64) -> u64) -> Option<Estimate> {
    let is_nothing = |runs: &[f64]| runs.iter().all(|value| *value == 0.0);
    let is_something = |runs: &[f64]| runs.iter().all(|value| *value > 0.0);
    let value = match () {
        () if is_nothing(a) && is_something(b) => f64::MAX,
        () if is_something(a) && is_nothing(b) => f64::MIN_POSITIVE,
        () => return None,
    };
    let is_told = a.len().min(b.len()) as u64 >= fewest(LEVEL);
    is_told.then_some(Estimate { value, low: value, high: value })
}

/// Returns the ratio of the geometric means of the runs of two cells with its interval, B/A: it may be in favour of another
/// cell than the one with the better mean.
fn run_ratio([a, b]: [&[f64]; 2], in_blocks: bool) -> Option<Estimate> {
    let of_blocks = || common_blocks(&[(a, b)]).first().and_then(|(a, b)| paired_ratio(a, b, LEVEL));
    let of_means = || Some(if in_blocks { of_blocks() } else { welch_ratio(a, b, LEVEL) }?.estimate);
    ratio_to_nothing([a, b], if in_blocks { fewest_pairs } else { fewest_on_each_side }).or_else(of_means)
}

/// Formats the outcome of a test of two sides with these names: the better side and the factor; `-` for one that is unknown.
fn outcome_cells(outcome: Option<TestOutcome>, a: &str, b: &str) -> [String; 2] {
    let Some(found) = outcome else { return [dash(), dash()] };
    match found.winner {
        TestWinner::A => [a.to_owned(), or_dash(found.factor, factor)],
        TestWinner::B => [b.to_owned(), or_dash(found.factor, factor)],
        TestWinner::Draw => drawn(found.factor),
    }
}

/// Formats a draw. A factor that is rounded up to the limit would contradict it.
fn drawn(factor: Option<f64>) -> [String; 2] {
    let text = |factor| fixed(factor, if factor >= DRAW - 0.005 { 3 } else { 2 });
    ["draw".to_owned(), or_dash(factor, text)]
}

/// Explains the `?` of this number of lines, as the end of a line of sums.
fn doubt_text(lines: usize) -> String {
    match lines {
        0 => String::new(),
        n => format!("; {n} with `?` may be chance (95 % interval of the ratio)"),
    }
}

/// Formats the sums of several tests of two sides with these names.
fn wins_line(a: &str, b: &str, found: Wins, draw: DrawRule) -> String {
    let side = |name: &str, won: WonTests| format!("{name} is better in {}", won_tests(won));
    let sides = format!("{}, {}", side(a, found.a), side(b, found.b));
    counted_line(&sides, found.draws, found.without_outcome, draw)
}

/// Formats a number of tests with the mean of their factors.
fn won_tests(won: WonTests) -> String {
    let of = if won.factors == won.tests { String::new() } else { format!(" of {}:", won.factors) };
    let mean = won.mean_factor.map_or_else(String::new, |mean| format!(" (mean factor{of} {})", factor(mean)));
    format!("{}{mean}", won.tests)
}

/// Adds the numbers of draws and of tests without an outcome to the sums of sides or columns.
fn counted_line(sums: &str, draws: u64, without_outcome: u64, draw: DrawRule) -> String {
    let unknown = if without_outcome == 0 { String::new() } else { format!(", unknown {without_outcome}") };
    let line = format!("{sums}, draws {draws}{unknown}");
    let rule = match draw {
        DrawRule::Factor => format!("a factor below {DRAW}"),
        DrawRule::Printed => "equal as printed".to_owned(),
    };
    format!("{}; a draw is {rule}", crate::util::printable::line(&line))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{CellMetric, FactorLevels, FactorialTables};
    use super::*;
    use crate::analysis::PrecisionRule;

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

    fn over(factor: &str, factors: &[FactorLevels], cells: &[FactorialCell], in_blocks: bool) -> Option<Pivot> {
        let tables = FactorialTables::default();
        let design = FactorialDesign {
            name: "x",
            factors,
            metrics: &[Metric::ops()],
            own: &[],
            target: None,
            stop: PrecisionRule::Corrected,
            planned_runs: None,
            in_order: !in_blocks,
            in_blocks,
            tables: &tables,
        };
        Pivot::new(&Metric::ops(), 0, factor, &design, cells)
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
        let pivot = over("fs", &factors, &cells, false).unwrap();
        let lines: Vec<String> = pivot.lines().iter().map(|line| line.join(" ")).collect();
        assert_eq!(lines, ["1 300.0 100.0 ext4? 3.00", "2 100.0 101.0 draw? 1.01", "3 - 1.00 - -"]);
        assert_eq!(
            pivot.ending().unwrap(),
            "ext4 is better in 1 (mean factor 3.00), xfs is better in 0, draws 1, unknown 1; a draw is a factor below \
             1.05; 2 with `?` may be chance (95 % interval of the ratio)"
        );
        // Of three levels the best is compared with the second best.
        let pivot = over("test", &factors, &cells, false).unwrap();
        let lines: Vec<String> = pivot.lines().iter().map(|line| line.join(" ")).collect();
        assert_eq!(lines, ["ext4 300.0 100.0 - 1? 3.00", "xfs 100.0 101.0 1.00 draw? 1.01"]);
        assert!(
            pivot.ending().unwrap().starts_with("best: 1 in 1 (mean factor 3.00), 2 in 0, 3 in 0, draws 1; a draw")
        );
        assert_eq!(pivot.table().headings()[4], "best");
        assert_eq!(over("size", &factors, &cells, false), None);
        // Runs that did nothing are a draw.
        let none = |level, value| cell([level, "1"], Some(value));
        let drawn = |cells: &[FactorialCell], levels: &[&str]| {
            over("fs", &[factor("fs", levels), factor("test", &["1"])], cells, false).unwrap().lines()[0].join(" ")
        };
        assert_eq!(drawn(&[none("ext4", 0.0), none("xfs", 0.0)], &["ext4", "xfs"]), "1 0 0 draw 1.00");
        assert_eq!(drawn(&[none("a", 0.0), none("b", 0.0), none("c", 0.0)], &["a", "b", "c"]), "1 0 0 0 draw 1.00");
        assert_eq!(drawn(&[none("a", 0.0), none("b", 5.0), none("c", 0.0)], &["a", "b", "c"]), "1 0 5.00 0 b? -");
        // A single level is not compared.
        let pivot = over("fs", &[factor("fs", &["ext4"])], &cells[..1], false).unwrap();
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
            let pivot = over("fs", &factors, &cells, false).unwrap();
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
        // Ranks tell four runs that did nothing from four that did something, but not three.
        assert_eq!(better(&[0.0; 4], &[5.0, 7.0, 4.0, 9.0]), ("xfs".to_owned(), false));
        assert_eq!(better(&[5.0, 7.0, 4.0, 9.0], &[0.0; 4]), ("ext4".to_owned(), false));
        assert_eq!(better(&[0.0; 3], &[5.0, 7.0, 4.0]), ("xfs?".to_owned(), true));
        assert_eq!(better(&[0.0, 0.0, 0.0, 1.0], &[5.0, 7.0, 4.0, 9.0]), ("xfs?".to_owned(), true));
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
        let best =
            |cells: &[FactorialCell], in_blocks| over("fs", &factors, cells, in_blocks).unwrap().lines()[0][3].clone();
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
