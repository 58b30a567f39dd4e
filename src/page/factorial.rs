//! The parts of a page about a factorial experiment: the table of the cells, and for each metric the runs of each cell
//! as points, and the cells by the levels of each factor.

use super::ab::quantiles;
use super::axis::{AxisUnit, ChartAxis};
use super::blocks::{PageBlock, PageTable, Picture};
use super::chart::{Chart, ChartPoint, Symbol};
use super::experiment::{distributions, extent, interval, metric_title, state_name, unit};
use super::sweep;
use crate::analysis::{Estimate, RepeatState};
use crate::comparison::{
    CellMetric, FactorEffects, Factorial, FactorialCell, LevelTests, Pivot, cell_groups, factorial_ending, figure,
};
use crate::experiment::RecordedExperiment;
use crate::util::size;

/// The largest number of cells in a picture. More names do not fit below the axis.
const MAX_CELLS: usize = 40;

/// Returns the parts about a factorial experiment.
pub(super) fn blocks(recorded: &RecordedExperiment) -> Vec<PageBlock> {
    let Some(found) = recorded.factorial() else { return Vec::new() };
    let tone = match found.state {
        RepeatState::Converged => "good",
        RepeatState::Running | RepeatState::Complete => "neutral",
        RepeatState::NotConverged | RepeatState::Drifting => "bad",
    };
    let mut blocks =
        vec![PageBlock::Banner { tone, text: factorial_ending(&found, state_name(recorded, found.state)) }];
    blocks.extend(found.conclusions().into_iter().map(|text| PageBlock::Text { text }));
    blocks.extend(PageBlock::notes(found.failures(), &found.notes));
    blocks.extend(cells(&found).block());
    for effects in &found.effects {
        blocks.extend(effect_table(effects).block());
        blocks.extend(effects.endings().into_iter().map(|text| PageBlock::Text { text }));
    }
    for pivot in &found.pivots {
        blocks.extend(pivot_table(pivot).block());
        blocks.extend(pivot.ending().map(|text| PageBlock::Text { text }));
    }
    for tests in &found.tests {
        blocks.extend(level_blocks(&found, tests));
    }
    for curve in &found.curves {
        blocks.push(PageBlock::Heading { text: curve.name.clone() });
        blocks.extend(sweep::of_curve(curve));
    }
    for n in 0..found.metrics.len() {
        for metric in found.metrics_at(n) {
            blocks.extend(dots(&found, n, metric).map(PageBlock::Picture));
            blocks.extend(by_factor(&found, n, metric));
        }
    }
    blocks
}

/// Returns the metric at a position in a cell, if it is the one with this name.
fn of_cell<'a>(cell: &'a FactorialCell, n: usize, name: &str) -> Option<&'a CellMetric> {
    cell.metrics.get(n).filter(|metric| metric.metric == name)
}

/// Draws the cells with this metric by the levels of each factor that has several, as small pictures. Returns `None` for
/// fewer than two.
fn by_factor(found: &Factorial, n: usize, name: &str) -> Option<PageBlock> {
    let varied: Vec<usize> = (0..found.factors.len()).filter(|at| found.factors[*at].levels.len() > 1).collect();
    let has_values =
        found.cells.iter().any(|cell| of_cell(cell, n, name).is_some_and(|found| found.estimate.is_some()));
    if varied.len() < 2 || !has_values {
        return None;
    }
    let pictures = varied.into_iter().map(|position| levels(found, n, name, position)).collect();
    Some(PageBlock::Multiples { title: format!("Factors: {name}"), pictures })
}

/// Draws the means of the cells at each level of a factor, and the geometric mean of these, whose ratios are the effects
/// of the factor if each cell has runs. The vertical axis is that of all factors.
fn levels(found: &Factorial, n: usize, name: &str, position: usize) -> Picture {
    let factor = &found.factors[position];
    let unit = unit(name);
    let low = if unit == AxisUnit::Number { Some(0.0) } else { None };
    let cells: Vec<(&FactorialCell, usize, f64)> = found
        .cells
        .iter()
        .filter_map(|cell| {
            let level = factor.levels.iter().position(|level| *level == cell.levels[position])?;
            Some((cell, level, of_cell(cell, n, name)?.estimate?.value))
        })
        .collect();
    let mean = |level: usize| {
        let values: Vec<f64> = cells.iter().filter(|(_, of, _)| *of == level).map(|(_, _, value)| *value).collect();
        (!values.is_empty()).then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
    };
    let means: Vec<(usize, f64)> = (0..factor.levels.len()).filter_map(|level| Some((level, mean(level)?))).collect();
    let y = ChartAxis::linear(&metric_title(name), unit, cells.iter().map(|(_, _, value)| *value).chain(low));
    let mut chart = Chart::new(ChartAxis::categories(&factor.name, factor.levels.iter().cloned()), y);
    chart.join(means.iter().map(|(level, value)| (*level as f64, *value)), "b");
    let mut table = PageTable::new(&format!("{name} by {}", factor.name), [factor.name.as_str(), "cell", name]);
    for (cell, level, value) in &cells {
        let title = format!("{}: {}", cell.name, figure(name, *value));
        chart.plot(Symbol::Circle, &ChartPoint { x: *level as f64, y: *value, class: "a", title });
        table.row([factor.levels[*level].clone(), cell.name.clone(), figure(name, *value)]);
    }
    for (level, value) in &means {
        let label = &factor.levels[*level];
        let title = format!("{}={label}, mean: {}", factor.name, figure(name, *value));
        chart.plot(Symbol::Square, &ChartPoint { x: *level as f64, y: *value, class: "b", title });
        table.row([label.clone(), "mean".to_owned(), figure(name, *value)]);
    }
    Picture {
        title: factor.name.clone(),
        note: String::new(),
        legend: vec![("a", "cell".to_owned()), ("b", "geometric mean of the cells at a level".to_owned())],
        drawing: chart.drawing(&format!("{name} by {}", factor.name)),
        table,
    }
}

/// Returns the table of the cells.
fn cells(found: &Factorial) -> PageTable {
    let mut table = PageTable::new("Cells", found.factors.iter().map(|factor| factor.name.as_str()));
    if found.factors.is_empty() {
        table.columns.push("cell".to_owned());
    }
    table.columns.extend(["runs", "failed"].map(str::to_owned));
    let has_own = found.has_own_metrics();
    for metric in &found.metrics {
        let names = if has_own { &["metric", "value"][..] } else { &[metric.as_str()][..] };
        table.columns.extend(names.iter().chain(&["95 % interval"]).map(|name| (*name).to_owned()));
    }
    let has_space = found.cells.iter().any(|cell| cell.space_before.is_some());
    if has_space {
        table.columns.extend(["used before", "used after"].map(str::to_owned));
    }
    table.columns.push("CPU".to_owned());
    let dash = || "-".to_owned();
    for cell in &found.cells {
        let mut row = if found.factors.is_empty() { vec![cell.name.clone()] } else { cell.levels.clone() };
        row.extend([cell.runs.to_string(), cell.failed.to_string()]);
        for metric in &cell.metrics {
            row.extend(has_own.then(|| metric.metric.clone()));
            row.push(metric.estimate.map_or_else(dash, |estimate| figure(&metric.metric, estimate.value)));
            row.push(metric.estimate.map_or_else(dash, |estimate| interval(&metric.metric, estimate)));
        }
        if has_space {
            let space = |bytes: Option<f64>| bytes.map_or_else(dash, |bytes| size::format(bytes as u64));
            row.extend([space(cell.space_before), space(cell.space_after)]);
        }
        row.push(cell.cpu_busy.map_or_else(dash, |share| format!("{:.0} %", share * 100.0)));
        table.row(row);
    }
    table
}

/// Returns the parts about tests of levels against the first one: the table, and for each level the distributions and
/// quantiles of its runs beside those of the first.
fn level_blocks(found: &Factorial, tests: &LevelTests) -> Vec<PageBlock> {
    let headings = tests.headings();
    let mut table = PageTable::new(&format!("Tests: {}", tests.title()), headings.iter().map(|(name, _)| *name));
    for line in tests.lines() {
        table.row(line);
    }
    let mut blocks: Vec<PageBlock> = table.block().into_iter().collect();
    blocks.push(PageBlock::Text { text: tests.ending() });
    // A metric that is not among those of the experiment is that of a level, which replaces the first one.
    let metric = found.metrics.iter().position(|metric| *metric == tests.metric).unwrap_or(0);
    let group = cell_groups(&found.factors, &tests.factor).into_iter().find(|group| group.name() == tests.others);
    let Some(group) = group else { return blocks };
    let sample = |(level, cell): (&String, &usize)| {
        let values = found.cells.get(*cell).map_or_else(Vec::new, |cell| cell.metrics[metric].values.clone());
        (format!("{}={level}", tests.factor), values)
    };
    let samples: Vec<(String, Vec<f64>)> = group.factor.levels.iter().zip(&group.cells).map(sample).collect();
    let Some((first, rest)) = samples.split_first() else { return blocks };
    let mut pictures = Vec::new();
    for sample in rest {
        pictures.extend(distributions(&tests.metric, &[first.clone(), sample.clone()]));
        pictures.extend(quantiles(&tests.metric, (&first.0, &first.1), (&sample.0, &sample.1)));
    }
    if !pictures.is_empty() {
        blocks.push(PageBlock::Multiples { title: format!("Distributions: {}", tests.title()), pictures });
    }
    blocks
}

/// Returns the table of the effects on a metric.
fn effect_table(effects: &FactorEffects) -> PageTable {
    let mut table = PageTable::new(&effects.title(), effects.headings().iter().map(|(name, _)| *name));
    for line in effects.lines() {
        table.row(line);
    }
    table
}

/// Returns the table of a metric over the levels of one factor.
fn pivot_table(pivot: &Pivot) -> PageTable {
    let headings = pivot.headings();
    let caption = format!("{} over {}", pivot.title(), pivot.factor);
    let mut table = PageTable::new(&caption, headings.iter().map(|(name, _)| name.as_str()));
    for line in pivot.lines() {
        table.row(line);
    }
    table
}

/// Draws the runs of each cell with this metric as points, with the mean and its interval.
fn dots(found: &Factorial, n: usize, name: &str) -> Option<Picture> {
    let unit = unit(name);
    let with_metric = || found.cells.iter().filter(|cell| of_cell(cell, n, name).is_some());
    let shown = || with_metric().take(MAX_CELLS);
    let of = |cell: &FactorialCell| cell.metrics[n].clone();
    let values = shown().flat_map(|cell| of(cell).values);
    let all: Vec<f64> = values.chain(shown().filter_map(|cell| of(cell).estimate).flat_map(extent)).collect();
    if all.is_empty() {
        return None;
    }
    let labels = shown().map(|cell| match cell.levels.is_empty() {
        true => cell.name.clone(),
        false => cell.levels.join(", "),
    });
    let factors: Vec<&str> = found.factors.iter().map(|factor| factor.name.as_str()).collect();
    let x = ChartAxis::categories(&factors.join(", "), labels);
    let low = if unit == AxisUnit::Number { Some(0.0) } else { None };
    let mut chart = Chart::new(x, ChartAxis::linear(&metric_title(name), unit, all.into_iter().chain(low)));
    let mut table = PageTable::new(&format!("Runs of the cells: {name}"), ["cell", name, "95 % interval"]);
    for (at, cell) in shown().enumerate() {
        let metric = of(cell);
        let x = at as f64;
        if let Some(ends) = metric.estimate.and_then(Estimate::ends_from_zero) {
            chart.vertical_interval(x, ends, "b");
        }
        for (run, value) in metric.values.iter().enumerate() {
            let title = format!("{}, run {} of the cell: {}", cell.name, run + 1, figure(name, *value));
            chart.plot(Symbol::Circle, &ChartPoint { x, y: *value, class: "a", title });
            table.row([cell.name.clone(), figure(name, *value), String::new()]);
        }
        if let Some(found) = metric.estimate {
            let title = format!("{}, mean: {}", cell.name, figure(name, found.value));
            chart.plot(Symbol::Square, &ChartPoint { x, y: found.value, class: "b", title });
            let mean = format!("{}: mean", cell.name);
            table.row([mean, figure(name, found.value), interval(name, found)]);
        }
    }
    let rest = with_metric().count().saturating_sub(MAX_CELLS);
    let rest = if rest > 0 { format!(" The picture has the first {MAX_CELLS} cells.") } else { String::new() };
    Some(Picture {
        title: format!("Cells: {name}"),
        note: format!("Each circle is a run, each square the mean of a cell with its 95 % interval.{rest}"),
        legend: vec![("a", "run".to_owned()), ("b", "mean".to_owned())],
        drawing: chart.drawing(&format!("{name} of the runs of each cell")),
        table,
    })
}
