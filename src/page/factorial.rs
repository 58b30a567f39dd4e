//! The parts of a page about a factorial experiment: the table of the cells, and for each metric the runs of each cell
//! as points, and the cells by the levels of each factor.

use super::ab::quantiles;
use super::experiment::{distributions, extent, metric_title, unit};
use super::sweep;
use crate::analysis::Estimate;
use crate::comparison::{
    CellMetric, Factorial, FactorialCell, LevelTests, ResultDocument, cell_groups, figure, interval_text,
};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol};

/// The largest number of cells in a picture. More names do not fit below the axis.
const MAX_CELLS: usize = 40;

/// Returns the parts about a factorial experiment.
pub(super) fn blocks(found: &Factorial) -> Vec<SheetBlock> {
    let mut sheet = found.sheet();
    found.tests.iter().for_each(|tests| sheet.add_after(&tests.caption(), level_pictures(found, tests)));
    found.curves.iter().zip(sheet.parts()).for_each(|(curve, part)| sweep::draw(curve, part));
    for n in 0..found.metrics.len() {
        for metric in found.metrics_at(n) {
            sheet.blocks.extend(dots(found, n, metric).map(SheetBlock::Picture));
            sheet.blocks.extend(by_factor(found, n, metric));
        }
    }
    sheet.into_page()
}

/// Returns the metric at a position in a cell, if it is the one with this name.
fn of_cell<'a>(cell: &'a FactorialCell, n: usize, name: &str) -> Option<&'a CellMetric> {
    cell.metrics.get(n).filter(|metric| metric.metric == name)
}

/// Draws the cells with this metric by the levels of each factor that has several, as small pictures. Returns `None` for
/// fewer than two.
fn by_factor(found: &Factorial, n: usize, name: &str) -> Option<SheetBlock> {
    let varied: Vec<usize> = (0..found.factors.len()).filter(|at| found.factors[*at].levels.len() > 1).collect();
    let has_values =
        found.cells.iter().any(|cell| of_cell(cell, n, name).is_some_and(|found| found.estimate.is_some()));
    if varied.len() < 2 || !has_values {
        return None;
    }
    let pictures = varied.into_iter().map(|position| levels(found, n, name, position)).collect();
    Some(SheetBlock::Multiples { title: format!("Factors: {name}"), pictures })
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
    let mut table = SheetTable::new(&format!("{name} by {}", factor.name), [factor.name.as_str(), "cell", name]);
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

/// Draws the distributions and quantiles of the runs of each level beside those of the first one, as small pictures.
fn level_pictures(found: &Factorial, tests: &LevelTests) -> Option<SheetBlock> {
    // A metric that is not among those of the experiment is that of a level, which replaces the first one.
    let metric = found.metrics.iter().position(|metric| *metric == tests.metric).unwrap_or(0);
    let group = cell_groups(&found.factors, &tests.factor).into_iter().find(|group| group.name() == tests.others);
    let group = group?;
    let sample = |(level, cell): (&String, &usize)| {
        let values = found.cells.get(*cell).map_or_else(Vec::new, |cell| cell.metrics[metric].values.clone());
        (format!("{}={level}", tests.factor), values)
    };
    let samples: Vec<(String, Vec<f64>)> = group.factor.levels.iter().zip(&group.cells).map(sample).collect();
    let (first, rest) = samples.split_first()?;
    let mut pictures = Vec::new();
    for sample in rest {
        pictures.extend(distributions(&tests.metric, &[first.clone(), sample.clone()]));
        pictures.extend(quantiles(&tests.metric, (&first.0, &first.1), (&sample.0, &sample.1)));
    }
    let title = format!("Distributions: {}", tests.title());
    (!pictures.is_empty()).then_some(SheetBlock::Multiples { title, pictures })
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
    let mut table = SheetTable::new(&format!("Runs of the cells: {name}"), ["cell", name, "95 % interval"]);
    for (at, cell) in shown().enumerate() {
        let metric = of(cell);
        let x = at as f64;
        if let Some(ends) = metric.estimate.and_then(Estimate::ends) {
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
            table.row([mean, figure(name, found.value), interval_text(name, found)]);
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
