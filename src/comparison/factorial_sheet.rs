//! What a factorial experiment shows: its cells, and the tables that it requests.

use super::findings::Clarity;
use super::formats::{ResultDocument, series};
use super::level_groups::parts_that_fit;
use super::numbers::{figure, half_width, interval_text, percent};
use super::phrases::ended;
use super::repeats_sheet::state_name;
use super::repeats_sheet::tone;
use super::sweep_sheet::{curves_beside, wide_peak};
use super::{
    Caution, CellMetric, Factorial, FactorialCell, LevelTests, Pivot, Variation, cautions, limit_table, limits,
};
use crate::analysis::{PrecisionRule, RepeatState};
use crate::sheet::{Answer, Figures, Media, NoteLabel, Series, Sheet, SheetBlock, SheetColumn, SheetTable, Usability};
use crate::util::count::{count, grouped, or_dash};
use crate::util::size;

/// Whether any cell has an interval, for which it needs at least two runs.
fn has_intervals(result: &Factorial) -> bool {
    let is_known = |metric: &CellMetric| metric.estimate.is_some_and(|found| (found.high - found.low).is_finite());
    result.cells.iter().any(|cell| cell.metrics.iter().any(is_known))
}

fn has_space(result: &Factorial) -> bool {
    result.cells.iter().any(|cell| cell.space_before.is_some() || cell.space_after.is_some())
}

/// The columns of [`figures`].
fn figure_columns(result: &Factorial, heading: &str) -> Vec<SheetColumn> {
    let width = has_intervals(result).then(|| SheetColumn::numbers("±").only(Media::LINES));
    let interval = SheetColumn::numbers("95 % interval").only(Media::PAGE);
    std::iter::once(SheetColumn::numbers(heading)).chain(width).chain([interval]).collect()
}

/// The value of a metric, with its half-width if any cell has an interval, and its interval.
fn figures(result: &Factorial, metric: &CellMetric) -> Vec<String> {
    let value = or_dash(metric.estimate, |estimate| figure(&metric.metric, estimate.value));
    let width = || or_dash(metric.estimate, |estimate| half_width(estimate.relative()));
    let interval = or_dash(metric.estimate, |estimate| interval_text(&metric.metric, estimate));
    std::iter::once(value).chain(has_intervals(result).then(width)).chain([interval]).collect()
}

/// The columns of [`last_cells`].
fn last_columns(result: &Factorial) -> Vec<SheetColumn> {
    let space = if has_space(result) { &["used before", "used after"][..] } else { &[] };
    let numbers = space.iter().chain(&["CPU"]).map(|name| SheetColumn::numbers(name));
    numbers.chain([SheetColumn::words("").only(Media::LINES)]).collect()
}

/// The cells of a row after those of the metrics: the space, the processors and a failure.
fn last_cells(result: &Factorial, cell: &FactorialCell) -> Vec<String> {
    let mut cells = Vec::new();
    if has_space(result) {
        let space = |bytes: Option<f64>| or_dash(bytes, |bytes| size::format(bytes as u64));
        cells.extend([space(cell.space_before), space(cell.space_after)]);
    }
    cells.push(or_dash(cell.cpu_busy, |share| format!("{:.0} %", share * 100.0)));
    cells.push(match &cell.failure {
        Some(_) => format!("{} failed", cell.failed),
        // The budget ended before its first run.
        None if cell.runs == 0 => "not measured".to_owned(),
        None => String::new(),
    });
    cells
}

/// The columns of the factors. Without any, a page has the names of the cells.
fn factor_columns(result: &Factorial) -> Vec<SheetColumn> {
    match &result.factors[..] {
        [] => vec![SheetColumn::words("cell").only(Media::PAGE)],
        factors => factors.iter().map(|factor| SheetColumn::words(&factor.name)).collect(),
    }
}

fn factor_cells(cell: &FactorialCell) -> Vec<String> {
    if cell.levels.is_empty() { vec![cell.name.clone()] } else { cell.levels.clone() }
}

/// The table of the cells, a row for each.
fn cells(result: &Factorial) -> SheetTable {
    let has_own = result.has_own_metrics();
    let mut columns = factor_columns(result);
    columns.extend([SheetColumn::numbers("runs"), SheetColumn::numbers("failed").only(Media::PAGE)]);
    columns.extend(has_own.then(|| SheetColumn::words("metric")));
    for (n, metric) in result.metrics.iter().enumerate() {
        columns.extend(figure_columns(result, if has_own && n == 0 { "value" } else { metric }));
    }
    columns.extend(last_columns(result));
    let mut table = SheetTable { is_compact: true, ..SheetTable::of("Cells", columns) };
    for cell in &result.cells {
        let mut row = factor_cells(cell);
        row.extend([grouped(cell.runs), grouped(cell.failed)]);
        for (n, metric) in cell.metrics.iter().enumerate() {
            row.extend((has_own && n == 0).then(|| metric.metric.clone()));
            row.extend(figures(result, metric));
        }
        row.extend(last_cells(result, cell));
        table.row(row);
    }
    table
}

/// False for a metric of a flowop that the script of a cell does not have.
fn is_of_script(cell: &FactorialCell, metric: &CellMetric) -> bool {
    cell.runs == 0 || !metric.values.is_empty() || !metric.is_of_flowop()
}

/// The cells as a table with a row for each metric, which is narrower than one with a column for each.
fn cells_by_metric(result: &Factorial) -> SheetTable {
    let mut columns = factor_columns(result);
    columns.push(SheetColumn::words("metric"));
    columns.extend(figure_columns(result, "value"));
    columns.push(SheetColumn::numbers("runs"));
    columns.extend(last_columns(result));
    let mut table = SheetTable { is_compact: true, ..SheetTable::of("Cells", columns) };
    for cell in &result.cells {
        for (n, metric) in cell.metrics.iter().filter(|metric| is_of_script(cell, metric)).enumerate() {
            // What a cell has once is in its first row.
            let once = |text: String| if n == 0 { text } else { String::new() };
            let mut row: Vec<String> = factor_cells(cell).into_iter().map(once).collect();
            row.push(metric.metric.clone());
            row.extend(figures(result, metric));
            row.push(once(grouped(cell.runs)));
            row.extend(last_cells(result, cell).into_iter().map(once));
            table.row(row);
        }
    }
    table
}

/// The cells as tables of text with some of the metrics each, if one with all of them is wider than a terminal and no
/// metric has an interval: a line for each cell.
fn cells_in_parts(result: &Factorial) -> Vec<SheetTable> {
    if result.metrics.len() < 2 || has_intervals(result) || result.has_own_metrics() || cells(result).fits() {
        return Vec::new();
    }
    // The last columns are what follows the metrics.
    let part = |of: &[usize], has_last: bool| {
        let numbers = of.iter().map(|n| SheetColumn::numbers(&result.metrics[*n]));
        let last = if has_last { last_columns(result) } else { Vec::new() };
        let columns = factor_columns(result).into_iter().chain(numbers).chain(last);
        let mut table = SheetTable { media: Media::TEXT, ..SheetTable::of("Cells", columns) };
        // The flowops of the other scripts are left out.
        let is_shown = |cell: &&FactorialCell| has_last || of.iter().any(|n| is_of_script(cell, &cell.metrics[*n]));
        for cell in result.cells.iter().filter(is_shown) {
            let value = |n: &usize| {
                let metric = &cell.metrics[*n];
                or_dash(metric.estimate, |estimate| figure(&metric.metric, estimate.value))
            };
            let last = if has_last { last_cells(result, cell) } else { Vec::new() };
            table.row(factor_cells(cell).into_iter().chain(of.iter().map(value)).chain(last));
        }
        table
    };
    let mut parts = parts_that_fit(result.metrics.len(), |of| part(of, false).fits());
    if parts.last().is_some_and(|of| !part(of, true).fits()) {
        parts.push(Vec::new());
    }
    let last = parts.len() - 1;
    let parts: Vec<SheetTable> = parts.iter().enumerate().map(|(n, of)| part(of, n == last)).collect();
    // Names of levels may take all of the room.
    if parts.iter().all(SheetTable::fits) { parts } else { Vec::new() }
}

/// The runs and the cells, and how many failed.
fn about(result: &Factorial) -> String {
    let runs: u64 = result.cells.iter().map(|cell| cell.runs + cell.failed).sum();
    let failed: u64 = result.cells.iter().map(|cell| cell.failed).sum();
    let failed = if failed > 0 { format!(", of which {} failed", grouped(failed)) } else { String::new() };
    let cells = count(result.cells.len() as u64, "cell");
    let runs = match result.planned_runs {
        Some(planned) if planned > runs => format!("{} of {}", grouped(runs), count(planned, "run")),
        _ => count(runs, "run"),
    };
    format!("{runs} in {cells}{failed}{}", ended(&result.validity.ended_by))
}

/// A finding as a sentence of its own. The name of a level stays as it is.
fn sentence(text: &str) -> String {
    let words = [("the ", "The "), ("of ", "Of "), ("no ", "No ")];
    let found = words.iter().find_map(|(word, first)| Some(format!("{first}{}.", text.strip_prefix(word)?)));
    found.unwrap_or_else(|| format!("{text}."))
}

/// What the factors change, and whether this may be used.
fn answer(result: &Factorial) -> Answer {
    let name = state_name(result.state, result.validity.is_interrupted);
    let state = match (result.state, result.target) {
        // The budget ended before all of the runs were made.
        (RepeatState::NotConverged, None) => "not complete".to_owned(),
        (RepeatState::Complete, _) | (_, None) => name.to_owned(),
        (_, Some(target)) => format!("{name}, for intervals of ± {}", percent(target)),
    };
    let has_run = result.cells.iter().any(|cell| cell.runs > 0);
    let (about, found) = match result.findings.split_first() {
        _ if !has_run => (String::new(), format!("failed: no run is complete; {}.", about(result))),
        Some((first, _)) => (about(result) + ".", format!("{state}: {}.", first.text)),
        None => (String::new(), format!("{state}: {}.", about(result))),
    };
    // The same is *unclear* in a comparison.
    let is_clear = result.findings.is_empty() || result.findings.iter().any(|found| found.clarity == Clarity::Clear);
    let usability = match result.state {
        _ if !has_run || !is_clear => Usability::Unusable,
        RepeatState::Running | RepeatState::Drifting => Usability::Unusable,
        RepeatState::Complete | RepeatState::Converged | RepeatState::NotConverged => Usability::Usable,
    };
    Answer {
        about,
        result: found,
        details: result.findings.iter().skip(1).map(|found| sentence(&found.text)).collect(),
        usability: Some(usability),
        advice: match result.findings.iter().map(|found| found.clarity).max() {
            Some(Clarity::Unclear) if has_run && result.validity.is_of_replays => {
                "No difference is clear: make more runs (`--repeats`)."
            }
            Some(Clarity::Unclear) if has_run => {
                "No difference is clear: make more runs (`--repeats`), or longer ones (`--runtime`)."
            }
            Some(Clarity::NoInterval) if has_run => "Two runs of each cell or more (`--repeats`) give intervals.",
            _ => "",
        }
        .to_owned(),
        conditions: result.validity.conditions.clone(),
        ..Answer::default()
    }
}

/// What the rule of the study is worth; a simulation in `statistics` checks the figures.
const STUDY_COVERAGE: &str = "the cells ended by the rule of the study, whose 95 % intervals contain the true mean in only 72 \
    to 75 of 100 cases if runs depend on each other (lag-1 autocorrelation 0.5)";

/// What stands above the disclosure.
const NOT_OF_SPEC: &str = "Rules and disclosure of SFS. The figures are not results of SPEC: the calls are local.";

/// The reasons to distrust an experiment that it shows itself.
fn doubts(result: &Factorial) -> Vec<Caution> {
    let mut found = Vec::new();
    if result.state == RepeatState::NotConverged {
        let (leaves, text) = match result.target {
            Some(_) => (Usability::Unusable, "intervals are wider than requested"),
            None => (Usability::WithCaution, "the runs ended before all were made"),
        };
        found.push(Caution::new(leaves, text));
    }
    if result.stop == PrecisionRule::Study && result.target.is_some() {
        found.push(Caution::new(Usability::WithCaution, STUDY_COVERAGE));
    }
    if result.findings.iter().any(|found| found.clarity == Clarity::NoInterval) {
        found.push(Caution::new(Usability::WithCaution, "what has no interval may be chance"));
    }
    found.extend(result.curves.iter().find_map(wide_peak));
    let failed: u64 = result.cells.iter().map(|cell| cell.failed).sum();
    let all: u64 = result.cells.iter().map(|cell| cell.runs + cell.failed).sum();
    if failed > 0 {
        let text = format!("{} of {} failed", grouped(failed), count(all, "run"));
        found.push(Caution::new(Usability::WithCaution, text));
    }
    found
}

impl Factorial {
    /// The tables over the levels of the factor in `columns`.
    fn column_tables(&self) -> Vec<SheetTable> {
        match self.lines_are_metrics {
            true => Pivot::tables_by_metric(&self.pivots),
            false => self.pivots.iter().flat_map(Pivot::tables).collect(),
        }
    }

    /// The load curves, those of several sides first side by side with their peaks, and the rules of SFS.
    fn curve_blocks(&self) -> Vec<SheetBlock> {
        let peaks = self.peaks.iter().flat_map(|peaks| curves_beside(&self.curves).into_iter().chain(peaks.tables()));
        let mut blocks: Vec<SheetBlock> = peaks.map(SheetBlock::Table).collect();
        blocks.extend(self.curves.iter().map(|curve| {
            // The only one has the name of the experiment, which stands above it.
            let title =
                if curve.name == self.name { format!("curve over {}", curve.factor) } else { curve.name.clone() };
            SheetBlock::Part(Sheet { title, ..curve.sheet() })
        }));
        if !self.sfs.facts.is_empty() {
            blocks.push(SheetBlock::Text { text: NOT_OF_SPEC.to_owned() });
            blocks.push(SheetBlock::Facts { pairs: self.sfs.facts.clone(), is_wrapped: true });
        }
        blocks
    }

    /// The tables of the cells besides those of groups, for each medium; none for cells without figures.
    fn cell_tables(&self) -> Vec<SheetTable> {
        if self.metrics.is_empty() && !has_space(self) {
            return Vec::new();
        }
        let mut table = cells(self);
        let has_groups = !self.group_tables().is_empty();
        let parts = if has_groups { Vec::new() } else { cells_in_parts(self) };
        if has_groups {
            // They have the same figures.
            table.media = Media::PAGE;
        } else if !parts.is_empty() {
            table.media = Media::RICH;
        } else if self.metrics.len() > 1 {
            table.narrow = Some(Box::new(cells_by_metric(self)));
        }
        std::iter::once(table).chain(parts).collect()
    }
}

impl ResultDocument for Factorial {
    fn sheet(&self) -> Sheet {
        let mut answer = answer(self);
        let cautions: Vec<Caution> =
            self.sfs.caution().into_iter().chain(self.validity.cautions.iter().cloned()).chain(doubts(self)).collect();
        let notes = cautions::add(&mut answer, &cautions, &self.notes);
        let mut blocks: Vec<SheetBlock> =
            self.conclusions().into_iter().map(|text| SheetBlock::Text { text }).collect();
        limits::add_to(&mut answer, &self.validity.limits);
        blocks.extend(limit_table(&self.validity.limits));
        blocks.extend(self.curve_blocks());
        let others = self.without_curves();
        let beside = self.beside.iter().filter_map(|of| of.table(self));
        let requested = others.group_tables().into_iter().chain(others.column_tables()).chain(beside);
        blocks.extend(requested.chain(others.cell_tables()).map(SheetBlock::Table));
        blocks.extend(SheetBlock::messages(NoteLabel::Warning, &self.failures()));
        blocks.extend(self.effects.iter().map(|effects| SheetBlock::Table(effects.table())));
        blocks.extend(self.tests.iter().flat_map(LevelTests::tables).map(SheetBlock::Table));
        blocks.extend(LevelTests::untested(&self.tests).map(|text| SheetBlock::Text { text }));
        blocks.extend(self.variation.iter().map(Variation::table).map(SheetBlock::Table));
        blocks.extend(SheetBlock::messages(NoteLabel::Note, &notes));
        let checks = limits::checks("runs", self.code(), &answer, &self.validity.limits);
        Sheet { title: self.name.clone(), answer, tone: tone(self.state), blocks, checks, ..Sheet::default() }
    }

    fn figures(&self) -> Figures {
        let of = |cell: &FactorialCell, metric: &CellMetric| Series {
            levels: cell.levels.clone(),
            label: cell.name.clone(),
            ..series(&metric.metric, metric.estimate, &metric.values)
        };
        Figures {
            name: self.name.clone(),
            factors: self.factors.iter().map(|factor| factor.name.clone()).collect(),
            series: self.cells.iter().flat_map(|cell| cell.metrics.iter().map(|metric| of(cell, metric))).collect(),
            has_metrics: true,
            points: self.group_points(),
            ..Figures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::formats::shown::{bencher, benchstat, csv, markdown, text};
    use super::super::{AsJson as _, FactorLevels, FactorialDesign, FactorialTables};
    use super::*;
    use crate::import::{Metric, Observation};
    use std::collections::BTreeMap;

    fn run(ops: f64) -> Observation {
        let figures = [("ops", ops), ("latency.mean", 1e9 / ops), ("space.before", 4096.0), ("space.after", 8192.0)];
        let figures = figures.map(|(name, value)| (name.to_owned(), value));
        Observation { figures: BTreeMap::from(figures), ..Observation::default() }
    }

    /// The lines of the table that begins with this heading.
    fn from<'a, 'b>(lines: &'a [Vec<&'b str>], heading: &str) -> &'a [Vec<&'b str>] {
        let at = lines.iter().position(|line| line.first() == Some(&heading)).unwrap();
        &lines[at..]
    }

    /// Two factors of two levels, of which the last cell failed.
    fn result() -> Factorial {
        let factor = |name: &str, levels: [&str; 2]| FactorLevels {
            name: name.to_owned(),
            levels: levels.map(str::to_owned).to_vec(),
        };
        let factors = [factor("fs", ["ext4", "x|fs"]), factor("n", ["1", "8"])];
        let metrics = ["ops", "latency.mean"].map(|name| name.parse().unwrap());
        let tables = FactorialTables {
            columns: Some("fs".to_owned()),
            curve: Some("n".to_owned()),
            ..FactorialTables::default()
        };
        let design = FactorialDesign {
            name: "fs\nstudy",
            factors: &factors,
            metrics: &metrics,
            own: &[],
            target: None,
            stop: PrecisionRule::Corrected,
            planned_runs: Some(8),
            in_order: false,
            in_blocks: true,
            tables: &tables,
        };
        let broken = Observation { failure: Some("no space left".to_owned()), ..Observation::default() };
        let cells = [
            ("fs=ext4,n=1", vec![run(100.0), run(102.0), run(98.0)]),
            ("fs=ext4,n=8", vec![run(400.0), run(400.0)]),
            ("fs=x|fs,n=1", vec![run(50.0)]),
            ("fs=x|fs,n=8", vec![broken.clone(), broken]),
        ]
        .map(|(name, runs)| (name.to_owned(), runs));
        design.result(RepeatState::Complete, &cells)
    }

    /// The flowop `r` is never executed.
    #[test]
    fn a_metric_that_no_run_has_is_noted() {
        assert!(result().missing_metrics().is_empty() && !text(&result()).contains("no run has"));
        let lacks = |values: [Option<f64>; 2]| {
            let factors = [FactorLevels { name: "n".to_owned(), levels: ["1", "2"].map(str::to_owned).to_vec() }];
            let metrics = ["ops", "r.latency.mean"].map(|name| name.parse().unwrap());
            let design = FactorialDesign {
                name: "x",
                factors: &factors,
                metrics: &metrics,
                own: &[],
                target: None,
                stop: PrecisionRule::Corrected,
                planned_runs: None,
                in_order: false,
                in_blocks: true,
                tables: &FactorialTables::default(),
            };
            let cell = |value: Option<f64>| {
                let mut run = run(100.0);
                run.figures.extend(value.map(|value| ("r.latency.mean".to_owned(), value)));
                ("n".to_owned(), vec![run])
            };
            design.result(RepeatState::Complete, &values.map(cell))
        };
        let found = lacks([None, None]);
        assert_eq!((found.missing_metrics(), found.notes.len()), (vec!["r.latency.mean"], 1));
        assert!(text(&found).contains("note: no run has `r.latency.mean`: name another metric"), "{}", text(&found));
        assert!(lacks([None, Some(1.0)]).missing_metrics().is_empty() && !found.has_all_metrics());
    }

    #[test]
    fn a_table_of_many_metrics_has_a_line_for_each() {
        let mut result = result();
        for cell in &mut result.cells {
            let more = cell.metrics.clone();
            cell.metrics.extend(more);
        }
        result.metrics.extend(result.metrics.clone());
        let text = text(&result);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let lines = from(&lines, "fs");
        assert_eq!(lines[0][..6], ["fs", "n", "metric", "value", "±", "runs"], "{text}");
        assert_eq!(lines[1][..7], ["ext4", "1", "ops", "100.0", "5.0", "%", "3"], "{text}");
        assert_eq!(lines[2][0], "latency.mean", "{text}");
        assert_eq!(lines[5][..3], ["ext4", "8", "ops"], "{text}");
        assert!(text.contains("2 failed: no space left"), "{text}");
    }

    #[test]
    fn a_cell_without_runs_is_not_measured() {
        let mut result = result();
        result.cells[2].runs = 0;
        for shown in [text(&result), markdown(&result)] {
            assert_eq!(shown.matches("not measured").count(), 1, "{shown}");
            assert!(shown.contains("2 failed: no space left"), "{shown}");
        }
    }

    #[test]
    fn each_cell_is_a_line_with_means_and_intervals() {
        let text = text(&result());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["fs\\nstudy"], "{text}");
        let heads = ["fs", "n", "runs", "ops", "±", "latency.mean", "±", "used", "before", "used", "after", "CPU"];
        let cells = from(&lines, "fs");
        assert_eq!(cells[0], heads, "{text}");
        assert_eq!(cells[1][..6], ["ext4", "1", "3", "100.0", "5.0", "%"], "{text}");
        assert_eq!(cells[3][..5], ["x|fs", "1", "1", "50.0", "-"], "{text}");
        assert!(text.contains("2 failed: no space left"), "{text}");
        // The table over the levels of `fs`, and a load curve over `n` for each of them.
        assert!(lines.contains(&vec!["n", "fs=ext4", "fs=x|fs", "better", "factor"]), "{text}");
        assert!(
            text.contains("ext4 is better in 1 (mean factor 2.00), x|fs is better in 0, draws 0, unknown 1;"),
            "{text}"
        );
        assert!(text.contains("\nfs=x|fs\n"), "{text}");
        assert!(text.contains("\n8 runs in 4 cells, of which 2 failed.\ncomplete: "), "{text}");
    }

    /// An experiment with several factors shows them, unless it asks for another table or for none.
    #[test]
    fn effects_are_shown_by_default_or_on_request() {
        let factor =
            |name: &str| FactorLevels { name: name.to_owned(), levels: ["1", "2"].map(str::to_owned).to_vec() };
        let cells = ["a", "b", "c", "d"].map(|name| (name.to_owned(), vec![run(100.0), run(101.0)]));
        let shown = |factors: &[FactorLevels], tables: &FactorialTables| {
            let design = FactorialDesign {
                name: "x",
                factors,
                metrics: &[Metric::ops()],
                own: &[],
                target: None,
                stop: PrecisionRule::Corrected,
                planned_runs: None,
                in_order: false,
                in_blocks: true,
                tables,
            };
            let result = design.result(RepeatState::Complete, &cells[..1 << factors.len()]);
            let found: Vec<String> =
                result.effects.iter().flat_map(|found| &found.effects).map(|found| found.factor.clone()).collect();
            let title = "effects on ops";
            let is_in = |text: String| assert_eq!(text.contains(title), !found.is_empty(), "{text}");
            is_in(text(&result));
            is_in(markdown(&result));
            found
        };
        let of = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let requested = |names: &[&str]| FactorialTables { effects: of(names), ..FactorialTables::default() };
        let (one, two) = ([factor("n")], [factor("n"), factor("m")]);
        assert_eq!(shown(&two, &FactorialTables::default()), ["n", "m"]);
        assert!(shown(&one, &FactorialTables::default()).is_empty());
        assert_eq!(shown(&one, &requested(&["n"])), ["n"]);
        assert!(shown(&two, &requested(&[])).is_empty());
        let columns = || FactorialTables { columns: Some("n".to_owned()), ..FactorialTables::default() };
        assert!(shown(&two, &columns()).is_empty());
        assert_eq!(shown(&two, &FactorialTables { effects: of(&["m"]), ..columns() }), ["m"]);
    }

    /// Two workloads of which one is measured by its rate, the other by its time.
    #[test]
    fn levels_may_have_metrics_of_their_own() {
        let factor = |name: &str, levels: [&str; 2]| FactorLevels {
            name: name.to_owned(),
            levels: levels.map(str::to_owned).to_vec(),
        };
        let factors = [factor("test", ["read", "copy"]), factor("fs", ["ext4", "xfs"])];
        let run = |ops: f64, seconds: f64| {
            let figures = [("ops", ops), ("seconds", seconds)].map(|(name, value)| (name.to_owned(), value));
            Observation { figures: BTreeMap::from(figures), ..Observation::default() }
        };
        let cells = [(100.0, 9.0), (200.0, 9.0), (7.0, 3.0), (7.0, 1.5)].map(|(ops, seconds)| vec![run(ops, seconds)]);
        let cells: Vec<(String, Vec<Observation>)> =
            ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(cells).collect();
        let seconds = || Some("seconds".parse().unwrap());
        let tables = FactorialTables { columns: Some("fs".to_owned()), ..FactorialTables::default() };
        let design = FactorialDesign {
            name: "tests",
            factors: &factors,
            metrics: &["ops".parse().unwrap()],
            own: &[None, None, seconds(), seconds()],
            target: None,
            stop: PrecisionRule::Corrected,
            planned_runs: None,
            in_order: true,
            in_blocks: false,
            tables: &tables,
        };
        let result = design.result(RepeatState::Complete, &cells);
        let text = text(&result);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let heads = ["test", "fs", "runs", "metric", "value", "CPU"];
        let cells = &lines[lines.iter().position(|line| *line == heads).unwrap()..];
        assert_eq!(cells[1][..5], ["read", "ext4", "1", "ops", "100.0"], "{text}");
        assert_eq!(cells[4][..6], ["copy", "xfs", "1", "seconds", "1.50", "s"], "{text}");
        // xfs is better in both: more operations, less time.
        let copy = lines.iter().find(|line| line.starts_with(&["copy", "seconds"])).unwrap();
        assert_eq!(copy[2..], ["3.00", "s", "1.50", "s", "xfs?", "2.00"], "{text}");
        assert!(text.contains("xfs is better in 2 (mean factor 2.00)"), "{text}");
        let csv = csv(&result);
        assert!(csv.contains("tests,copy,xfs,1,seconds,1.5\n") && csv.contains("tests,read,xfs,1,ops,200\n"), "{csv}");
        assert!(benchstat(&result).contains("Unit s better=lower\n"), "{}", benchstat(&result));
    }

    #[test]
    fn a_budget_that_ends_the_experiment_is_told() {
        let cut = Factorial { state: RepeatState::NotConverged, planned_runs: Some(40), ..result() };
        assert!(text(&cut).contains("\n8 of 40 runs in 4 cells, of which 2 failed.\nnot complete: "), "{}", text(&cut));
    }

    #[test]
    fn programs_get_every_value() {
        let result = result();
        assert_eq!((result.pivots.len(), result.curves.len()), (2, 2));
        let csv = csv(&result);
        assert!(csv.starts_with("name,fs,n,run,metric,value\nfs\\nstudy,ext4,1,1,ops,100\n"), "{csv}");
        assert_eq!(csv.lines().count(), 1 + 2 * 6, "{csv}");
        assert!(markdown(&result).contains("| x\\|fs | 1 | 1 | 50.0 | - |"), "{}", markdown(&result));
        let lines = benchstat(&result);
        assert!(lines.contains("BenchmarkFs_study/fs=ext4/n=8/ops 1 400 ops/s\n"), "{lines}");
        let found: serde_json::Value = serde_json::from_str(&bencher(&result)).unwrap();
        assert_eq!(found["fs\nstudy fs=ext4,n=8"]["ops"]["value"], 400.0);
        let read: serde_json::Value = serde_json::from_str(&result.json()).unwrap();
        // The interval of a single run has no ends.
        assert_eq!(read["cells"][2]["metrics"][0]["estimate"]["low"], serde_json::Value::Null);
        assert_eq!((&read["cells"][0]["levels"][0], &read["cells"][3]["failed"]), (&"ext4".into(), &2.into()));
    }
}
