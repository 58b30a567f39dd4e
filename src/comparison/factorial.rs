//! The result of a factorial experiment: the metrics of each cell with their intervals (`wmlrun.factorial/1`).

use super::comparison_answer;
use super::differences::{Difference, DifferenceKind, differences};
use super::findings::{Finding, at_most, findings, workload_factor};
use super::numbers::with_direction;
use super::sweep::sweep;
use super::{
    FactorEffects, FactorialTables, GroupTable, LevelTests, Pivot, Published, SfsSheet, Sweep, Validity, Variation,
    cautions, level_findings, notes, unlike,
};
use crate::analysis::{Estimate, PrecisionRule, RepeatState, ResponseMethod, independent_mean, mean_interval};
use crate::import::{Metric, Observation};
use crate::report::metrics::{REQUEST_RESPONSE, REQUESTS};
use serde::Serialize;
use std::collections::BTreeMap;

/// The confidence level of intervals.
pub(super) const LEVEL: f64 = 0.95;

/// The result of a factorial experiment. Latencies are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Factorial {
    /// `wmlrun.factorial/1`.
    pub schema: String,
    /// The name of the experiment.
    pub name: String,
    /// The state in which it ended.
    pub state: RepeatState,
    /// The requested relative half-width of the intervals; null if the number of runs was fixed.
    pub target: Option<f64>,
    /// When they were narrow enough.
    #[serde(skip_serializing_if = "PrecisionRule::is_default")]
    pub stop: PrecisionRule,
    /// The number of runs of all cells, if it was fixed. The budget may have ended before it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_runs: Option<u64>,
    pub factors: Vec<FactorLevels>,
    /// The names of the levels of each factor at the full size, by which published figures are found; may be empty.
    #[serde(skip)]
    pub full_names: Vec<Vec<String>>,
    /// The names of the metrics, the primary one first.
    pub metrics: Vec<String>,
    /// The cells: all combinations of the levels, of which the level of the last factor changes first.
    pub cells: Vec<FactorialCell>,
    /// The effects of the levels of factors on each metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<FactorEffects>,
    /// A table of each metric over the levels of one factor, if the experiment requests it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pivots: Vec<Pivot>,
    /// The tests of the levels of one factor against its first level, if the experiment requests them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<LevelTests>,
    /// The load curve over the levels of one factor, for each combination of the levels of the others, if the experiment
    /// requests it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Sweep>,
    /// The variation of each metric, if the experiment requests it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variation: Vec<Variation>,
    /// Published figures that are shown beside those of the cells.
    #[serde(skip)]
    pub beside: Option<Box<Published>>,
    /// The peaks of several curves over the levels of the factor in `columns`.
    #[serde(skip)]
    pub peaks: Option<Box<Pivot>>,
    /// Whether the lines of the tables are the metrics.
    #[serde(skip)]
    pub lines_are_metrics: bool,
    /// The table whose groups of columns are the levels of a factor, if the experiment requests it.
    #[serde(skip)]
    pub groups: Option<Box<GroupTable>>,
    /// The rules of SFS and its disclosure, for a load curve by its method.
    #[serde(skip)]
    pub sfs: Box<SfsSheet>,
    /// Notes on the validity of the runs.
    pub notes: Vec<String>,
    /// What the factors change in the first metric, in sentences without their full stop.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    #[serde(flatten)]
    pub validity: Validity,
}

impl Factorial {
    /// Returns the different metrics at a position in the cells, in the order of the cells. There are several if levels
    /// have metrics of their own.
    pub(crate) fn metrics_at(&self, n: usize) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for metric in self.cells.iter().filter_map(|cell| cell.metrics.get(n)) {
            if !found.contains(&metric.metric.as_str()) {
                found.push(&metric.metric);
            }
        }
        found
    }

    /// True if all metrics of cells with complete runs are known, but for those of which short runs know nothing.
    pub(super) fn has_all_metrics(&self) -> bool {
        let is_unknown = |name: &&str| name.parse::<Metric>().is_ok_and(|metric| metric.is_divided_time());
        self.missing_metrics().iter().all(is_unknown)
    }

    /// The exit status of a command with this result, which needs a complete run, and the figures that it asks for.
    pub(crate) fn code(&self) -> u8 {
        let has_result = self.cells.iter().any(|cell| cell.runs > 0) && self.has_all_metrics();
        if has_result { self.state.code() } else { 1 }
    }

    /// Returns the metrics that no complete run has, of cells with complete runs.
    pub(crate) fn missing_metrics(&self) -> Vec<&str> {
        let measured = || self.cells.iter().filter(|cell| cell.runs > 0).flat_map(|cell| &cell.metrics);
        let has_values = |name: &str| measured().any(|other| other.metric == name && !other.values.is_empty());
        let mut missing: Vec<&str> = Vec::new();
        for metric in measured() {
            let name = metric.metric.as_str();
            if !missing.contains(&name) && !has_values(name) {
                missing.push(name);
            }
        }
        missing
    }

    /// Leaves out the metrics that its curves show: those of the requests of open loops.
    pub(super) fn without_curves(&self) -> Self {
        let is_of_requests = self.curves.first().is_some_and(Sweep::is_of_requests) && !self.has_own_metrics();
        let is_left = |metric: &str| !is_of_requests || ![REQUESTS, REQUEST_RESPONSE].contains(&metric);
        let mut left = self.clone();
        left.metrics.retain(|metric| is_left(metric));
        left.pivots.retain(|pivot| is_left(&pivot.metric));
        left.cells.iter_mut().for_each(|cell| cell.metrics.retain(|metric| is_left(&metric.metric)));
        left
    }

    /// Returns the orders of levels, which come before the tables that explain them, with the meaning of their signs.
    pub(crate) fn conclusions(&self) -> Vec<String> {
        // The answer tells those of the first metric.
        let is_further = |effects: &&FactorEffects| self.metrics.first() != Some(&effects.metric);
        let of_metric = |effects: &FactorEffects| {
            let title = with_direction(&effects.metric);
            effects.rankings().into_iter().map(move |line| format!("{title}: {line}")).collect::<Vec<_>>()
        };
        let mut lines: Vec<String> = self.effects.iter().filter(is_further).flat_map(of_metric).collect();
        if !lines.is_empty() {
            lines.push(">: the left one is better; ?: the runs do not show which of the two is better".to_owned());
        }
        lines
    }

    /// Returns the reasons of failed runs, the last one of each cell.
    pub(crate) fn failures(&self) -> Vec<String> {
        let of_cell =
            |cell: &FactorialCell| Some(format!("{}: {} failed: {}", cell.name, cell.failed, cell.failure.as_ref()?));
        self.cells.iter().filter_map(of_cell).collect()
    }

    /// The name of a cell's level of the factor at a position, at the full size.
    pub(super) fn full_name<'a>(&'a self, cell: &'a FactorialCell, factor: usize) -> &'a str {
        let level = &cell.levels[factor];
        let at = self.factors[factor].levels.iter().position(|other| other == level);
        at.and_then(|at| self.full_names.get(factor)?.get(at)).unwrap_or(level)
    }

    /// True if cells have different metrics at the same position.
    pub(crate) fn has_own_metrics(&self) -> bool {
        self.metrics_at(0).len() > 1
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FactorLevels {
    pub name: String,
    /// The names of the levels.
    pub levels: Vec<String>,
}

/// The results of one cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FactorialCell {
    /// The name: `fs=ext4,nthreads=8`.
    pub name: String,
    /// The level of each factor.
    pub levels: Vec<String>,
    /// The number of complete runs.
    pub runs: u64,
    /// The number of failed runs.
    pub failed: u64,
    /// The reason why the last of the failed runs failed.
    pub failure: Option<String>,
    /// The metrics, in the order of [`Factorial::metrics`]. The first may be another one, if a level has its own.
    pub metrics: Vec<CellMetric>,
    /// The mean busy fraction of all processors, 0 to 1.
    pub cpu_busy: Option<f64>,
    /// The mean used space of the file systems before the runs, in bytes; null if it was not recorded.
    pub space_before: Option<f64>,
    /// The same after the runs.
    pub space_after: Option<f64>,
    /// The mean number of the files that the file sets define, and their bytes.
    #[serde(skip)]
    pub files: Option<[u64; 2]>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellMetric {
    /// The name of the metric.
    pub metric: String,
    /// The mean with its 95 % interval, whose ends are null if the runs are too few; null if no run has the metric.
    pub estimate: Option<Estimate>,
    /// The values of the complete runs that have the metric, in their order.
    pub values: Vec<f64>,
}

impl CellMetric {
    /// True if it is a figure of a flowop, which the scripts of other cells may not have.
    pub(super) fn is_of_flowop(&self) -> bool {
        self.metric.parse::<Metric>().is_ok_and(|metric| metric.flowop().is_some())
    }
}

/// The description of a factorial experiment.
#[derive(Clone, Copy, Debug)]
pub struct FactorialDesign<'a> {
    /// The name of the experiment.
    pub name: &'a str,
    pub factors: &'a [FactorLevels],
    pub metrics: &'a [Metric],
    /// For each cell, its own metric instead of the first one, if it has one.
    pub own: &'a [Option<Metric>],
    /// The requested relative half-width of the intervals.
    pub target: Option<f64>,
    /// When they are narrow enough.
    pub stop: PrecisionRule,
    /// The number of runs of all cells, if it is fixed.
    pub planned_runs: Option<u64>,
    /// Whether all runs of a cell were made before those of the next, so that they may be autocorrelated.
    pub in_order: bool,
    /// Whether the runs at one position of all cells are those of one block.
    pub in_blocks: bool,
    /// The tables besides that of the cells.
    pub tables: &'a FactorialTables,
}

impl FactorialDesign<'_> {
    /// Computes the result from the runs of each cell, with the name of the cell.
    pub(crate) fn result(&self, state: RepeatState, cells: &[(String, Vec<Observation>)]) -> Factorial {
        let sides: Vec<&[Observation]> = cells.iter().map(|(_, runs)| runs.as_slice()).collect();
        let found: Vec<FactorialCell> =
            cells.iter().enumerate().map(|(n, (name, runs))| self.cell(n, name, runs)).collect();
        let pivot = |factor: &String| {
            let metrics = self.metrics.iter().enumerate();
            metrics.filter_map(|(n, metric)| Pivot::new(metric, n, factor, self, &found)).collect()
        };
        let workload = workload_factor(self.factors, &found, &sides);
        let (factors, compared) = self.without_bound(&found);
        let tests = |factor: &String| {
            let metrics = self.metrics.iter().enumerate();
            metrics.flat_map(|(n, metric)| LevelTests::of(metric, n, factor, &factors, &compared)).collect()
        };
        let design = FactorialDesign { factors: &factors, ..*self };
        let names = design.factors_of_effects(workload);
        let effects =
            |(n, metric): (usize, &Metric)| FactorEffects::of(metric, n, &names, &factors, &compared, self.in_blocks);
        let effects = self.metrics.iter().enumerate().map(effects).filter(|found| !found.effects.is_empty()).collect();
        let of_runs = if self.tables.curve.is_some() { cautions::of_curve } else { cautions::of_runs };
        let curves = self.tables.curve.as_ref().map_or_else(Vec::new, |factor| self.curves(factor, cells));
        let peaks = self.tables.columns.as_ref().filter(|_| !curves.is_empty());
        let mut result = Factorial {
            schema: "wmlrun.factorial/1".to_owned(),
            name: self.name.to_owned(),
            state,
            target: self.target,
            stop: self.stop,
            planned_runs: self.planned_runs,
            factors: self.factors.to_vec(),
            full_names: Vec::new(),
            metrics: self.metrics.iter().map(Metric::to_string).collect(),
            effects,
            pivots: self.tables.columns.as_ref().map_or_else(Vec::new, pivot),
            tests: self.tables.study.as_ref().map_or_else(Vec::new, tests),
            variation: (0..self.metrics.len())
                .filter(|_| self.tables.variation)
                .filter_map(|n| Variation::of(n, self.factors, &found, &sides))
                .collect(),
            beside: None,
            peaks: peaks.and_then(|factor| self.peaks(&curves, factor)).map(Box::new),
            sfs: match (&self.tables.method, curves.first()) {
                (Some(_), Some(curve)) => {
                    let levels: Vec<String> = curve.points.iter().map(|point| point.level.clone()).collect();
                    Box::new(SfsSheet::of(&levels, &sides))
                }
                _ => Box::default(),
            },
            curves,
            lines_are_metrics: self.tables.lines_are_metrics,
            groups: self.tables.groups.as_ref().map(|factor| Box::new(GroupTable::of(factor, &sides))),
            findings: design.findings(&compared, workload),
            cells: found,
            notes: self.notes(&sides, !names.is_empty()),
            validity: Validity::of(of_runs(&sides), &sides),
        };
        let missing: Vec<String> = result.missing_metrics().into_iter().map(notes::on_missing_metric).collect();
        result.notes.splice(0..0, missing);
        result.validity.conditions.extend(self.differences(&sides, workload));
        result.notes.extend(result.effects.iter().flat_map(FactorEffects::notes));
        result.notes.extend(self.on_blocks(&result));
        result
    }

    /// What the factors change in the first metric, unless cells have metrics of their own.
    fn findings(&self, cells: &[FactorialCell], workload: Option<usize>) -> Vec<Finding> {
        if let (Some(factor), Some(metric)) = (&self.tables.study, self.metrics.first()) {
            return at_most(level_findings::findings(&LevelTests::of(metric, 0, factor, self.factors, cells)));
        }
        let metric = self.metrics.first().filter(|_| self.own.iter().all(Option::is_none));
        // More load is slower, as the curve shows.
        let names: Vec<String> =
            self.varied(workload).filter(|name| self.tables.curve.as_ref() != Some(name)).collect();
        let of = |metric| findings(metric, self.factors, &names, workload, cells, self.in_blocks);
        metric.map_or_else(Vec::new, of)
    }

    /// The factors with several levels, without that of the workloads.
    fn varied(&self, workload: Option<usize>) -> impl Iterator<Item = String> {
        let all = self.factors.iter().enumerate();
        all.filter(move |(at, factor)| Some(*at) != workload && factor.levels.len() > 1)
            .map(|(_, factor)| factor.name.clone())
    }

    /// What differs between the runs of the two levels of a factor, beside the levels themselves, in a line for each factor.
    fn differences(&self, runs: &[&[Observation]], workload: Option<usize>) -> Vec<String> {
        let line = |(at, factor): (usize, &FactorLevels)| {
            let [a, b] = &factor.levels[..] else { return None };
            // Without all cells, other factors differ too.
            if runs.iter().any(|runs| runs.is_empty()) {
                return None;
            }
            let of_level = |level: &String| -> Vec<Observation> {
                let of_cells = runs.iter().enumerate().filter(|(n, _)| cell_levels(self.factors, *n)[at] == level);
                of_cells.flat_map(|(_, runs)| runs.iter().cloned()).collect()
            };
            let mut differs = differences(&of_level(a), &of_level(b));
            // The levels themselves are no news, and what they set is meant to differ.
            let is_level = |differs: &Difference| differs.what.strip_prefix('$') == Some(&factor.name);
            differs.retain(|differs| !is_level(differs) && [&differs.a, &differs.b] != [a, b]);
            differs.iter_mut().for_each(|differs| differs.kind = DifferenceKind::Setting);
            let names = [a, b].map(|level| format!("{}={level}", factor.name));
            (!differs.is_empty()).then(|| comparison_answer::differences(&differs, [&names[0], &names[1]]))
        };
        self.factors.iter().enumerate().filter(|(at, _)| Some(*at) != workload).filter_map(line).collect()
    }

    /// Returns the note on blocks that differ, from the first metric if all cells have it.
    fn on_blocks(&self, result: &Factorial) -> Option<String> {
        let has_blocks = self.in_blocks && blocks_are_complete(&result.cells, 0) && !result.has_own_metrics();
        let metric = result.metrics.first().filter(|_| has_blocks)?;
        let values: Vec<&[f64]> = (0..result.cells.len()).map(|cell| values_of(&result.cells, cell, 0)).collect();
        notes::on_blocks(metric, &values)
    }

    /// Returns the names of the factors whose effects are computed. Cells with metrics of their own have no common effect.
    fn factors_of_effects(&self, workload: Option<usize>) -> Vec<String> {
        if let Some(names) = &self.tables.effects {
            return names.clone();
        }
        let varied: Vec<&FactorLevels> = self.factors.iter().filter(|factor| factor.levels.len() > 1).collect();
        let has_own = self.own.iter().any(Option::is_some);
        // Two columns are compared in their own table.
        if let Some(columns) = self.tables.columns.as_ref().filter(|_| !has_own)
            && varied.iter().any(|factor| factor.name == *columns && factor.levels.len() > 2)
        {
            return vec![columns.clone()];
        }
        if varied.len() < 2 || !self.tables.is_empty() || has_own {
            return Vec::new();
        }
        self.varied(workload).collect()
    }

    fn metrics_of(&self, cell: usize) -> Vec<Metric> {
        let mut metrics = self.metrics.to_vec();
        if let (Some(Some(own)), Some(first)) = (self.own.get(cell), metrics.first_mut()) {
            first.clone_from(own);
        }
        metrics
    }

    /// Returns notes on the runs of the cells, of which each has its metrics. `has_effects`: effects are computed.
    fn notes(&self, cells: &[&[Observation]], has_effects: bool) -> Vec<String> {
        type ByMetric<'a> = BTreeMap<Metric, Vec<&'a [Observation]>>;
        let (mut by_metric, mut by_first) = (ByMetric::new(), ByMetric::new());
        for (n, runs) in cells.iter().enumerate() {
            let metrics = self.metrics_of(n);
            metrics.first().into_iter().for_each(|first| by_first.entry(first.clone()).or_default().push(runs));
            metrics.into_iter().for_each(|metric| by_metric.entry(metric).or_default().push(runs));
        }
        let tables = self.tables;
        let compares = tables.columns.is_some() || tables.study.is_some() || has_effects;
        let loads = by_metric.iter().filter(|_| compares);
        let loads: Vec<String> = loads.filter_map(|(metric, cells)| unlike::on_load(cells, metric)).collect();
        let outliers = by_first.into_iter().filter_map(|(metric, cells)| notes::on_outliers(&cells, &metric));
        let few = by_metric.into_iter().flat_map(|(metric, cells)| notes::on_percentiles(&cells, &[metric]));
        let order = (self.in_order && compares).then(notes::on_order);
        let runs = unlike::on_places(cells).into_iter().chain(notes::on_warnings(cells));
        let runs = runs.chain(outliers).chain(notes::on_several_runs(cells));
        order.into_iter().chain(runs).chain(few).chain(loads).collect()
    }

    /// Computes the results of a cell.
    fn cell(&self, index: usize, name: &str, runs: &[Observation]) -> FactorialCell {
        let (failed, complete): (Vec<&Observation>, Vec<&Observation>) =
            runs.iter().partition(|run| run.failure.is_some());
        let metric = |metric: &Metric| {
            let values = metric.values(complete.iter().copied());
            let estimate = match self.in_order && self.stop == PrecisionRule::Corrected {
                true => mean_interval(&values, LEVEL).map(|found| found.interval()),
                false => independent_mean(&values, LEVEL),
            };
            // A figure that was recorded may be negative.
            let is_positive = values.iter().all(|value| *value >= 0.0);
            let estimate = estimate.map(|found| if is_positive { found.from_zero() } else { found });
            CellMetric { metric: metric.to_string(), estimate, values }
        };
        let mean = |figure: &str| {
            let values: Vec<f64> = complete.iter().filter_map(|run| run.figures.get(figure).copied()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        FactorialCell {
            name: name.to_owned(),
            levels: cell_levels(self.factors, index).into_iter().map(str::to_owned).collect(),
            runs: complete.len() as u64,
            failed: failed.len() as u64,
            failure: failed.last().and_then(|run| run.failure.clone()),
            metrics: self.metrics_of(index).iter().map(metric).collect(),
            cpu_busy: mean("cpu_busy"),
            space_before: mean("space.before"),
            space_after: mean("space.after"),
            files: mean("defined.files")
                .zip(mean("defined.bytes"))
                .map(|(n, bytes)| [n, bytes].map(|of| of.round() as u64)),
        }
    }

    /// Compares the peaks of the curves over the levels of a factor.
    fn peaks(&self, curves: &[Sweep], factor: &str) -> Option<Pivot> {
        let is_other = |factor: &&FactorLevels| self.tables.curve.as_ref() != Some(&factor.name);
        let factors: Vec<FactorLevels> = self.factors.iter().filter(is_other).cloned().collect();
        Pivot::of_peaks(curves, &factors, factor, self.tables)
    }

    /// Computes the load curve over the levels of a factor for each combination of the levels of the others.
    fn curves(&self, factor: &str, cells: &[(String, Vec<Observation>)]) -> Vec<Sweep> {
        let curve = |group: CellGroup| {
            let runs: Vec<Vec<Observation>> =
                group.cells.iter().map(|n| cells.get(*n).map_or_else(Vec::new, |(_, runs)| runs.clone())).collect();
            let name = if group.others.is_empty() { self.name.to_owned() } else { group.name() };
            let method = self.tables.method.unwrap_or(ResponseMethod::Sfs3);
            // The notes on all runs are those of the experiment.
            let found = sweep(&name, factor, &group.factor.levels, &runs, method);
            Sweep { is_part: true, notes: Vec::new(), validity: Validity::default(), ..found }
        };
        cell_groups(self.factors, factor).into_iter().map(curve).collect()
    }
}

/// The cells with equal levels of all factors but one.
pub struct CellGroup<'a> {
    /// The other factors with their levels.
    pub others: Vec<(&'a str, &'a str)>,
    pub factor: &'a FactorLevels,
    /// The index of the cell at each of its levels.
    pub cells: Vec<usize>,
}

impl CellGroup<'_> {
    /// Returns the name: `NAME=LEVEL,NAME=LEVEL` of the other factors.
    pub(crate) fn name(&self) -> String {
        self.others.iter().map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(",")
    }
}

/// Returns the cells in groups over the levels of the factor with this name. Returns no group if there is none.
pub fn cell_groups<'a>(factors: &'a [FactorLevels], name: &str) -> Vec<CellGroup<'a>> {
    let Some(position) = factors.iter().position(|factor| factor.name == name) else { return Vec::new() };
    let product = |factors: &[FactorLevels]| factors.iter().map(|factor| factor.levels.len()).product::<usize>();
    let factor = &factors[position];
    // The distance from the cell at one level to that at the next.
    let (total, step) = (product(factors), product(&factors[position + 1..]));
    let is_first = |cell: &usize| (cell / step.max(1)).is_multiple_of(factor.levels.len().max(1));
    let group = |first: usize| {
        let of_cell = factors.iter().zip(cell_levels(factors, first)).enumerate();
        let others = of_cell.filter(|(n, _)| *n != position);
        CellGroup {
            others: others.map(|(_, (factor, level))| (factor.name.as_str(), level)).collect(),
            factor,
            cells: (0..factor.levels.len()).map(|level| first + level * step).collect(),
        }
    };
    (0..total).filter(is_first).map(group).collect()
}

/// True if the values of a metric at one position of all cells are those of one block: no run failed or lacks
/// it, since later values would take the places of others.
pub(super) fn blocks_are_complete(cells: &[FactorialCell], metric_index: usize) -> bool {
    let is_complete = |cell: &FactorialCell| {
        let values = cell.metrics.get(metric_index).map_or(cell.runs, |found| found.values.len() as u64);
        cell.failed == 0 && values == cell.runs
    };
    cells.iter().all(is_complete)
}

/// Returns the values of the blocks that all cells of these pairs have in common. A block that was begun may lack cells.
pub(super) fn common_blocks<'a>(pairs: &[(&'a [f64], &'a [f64])]) -> Vec<(&'a [f64], &'a [f64])> {
    let blocks = pairs.iter().map(|(a, b)| a.len().min(b.len())).min().unwrap_or(0);
    pairs.iter().map(|(a, b)| (&a[..blocks], &b[..blocks])).collect()
}

/// Returns the values of the metric at a position in a cell; none if the cell does not have it.
pub(super) fn values_of(cells: &[FactorialCell], cell: usize, metric_index: usize) -> &[f64] {
    let found = cells.get(cell).and_then(|cell| cell.metrics.get(metric_index));
    found.map_or(&[], |found| &found.values)
}

fn cell_levels(factors: &[FactorLevels], index: usize) -> Vec<&str> {
    let named = factors.iter().zip(level_indices(factors.iter().map(|factor| factor.levels.len()), index));
    named.map(|(factor, level)| factor.levels.get(level).map_or("", String::as_str)).collect()
}

/// Returns the index of a cell's level of each factor. `counts` has the number of levels of each factor. From one cell
/// to the next the level of the last factor changes first.
pub fn level_indices(counts: impl DoubleEndedIterator<Item = usize>, cell: usize) -> Vec<usize> {
    let mut rest = cell;
    let level = |count: usize| {
        let level = rest % count.max(1);
        rest /= count.max(1);
        level
    };
    let mut levels: Vec<usize> = counts.rev().map(level).collect();
    levels.reverse();
    levels
}
