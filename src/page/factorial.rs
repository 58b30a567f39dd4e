//! The parts of a page about a factorial experiment: the table of the cells, and for each metric the runs of each cell
//! as points, over the levels of one factor.

use super::ab::normal_quantiles;
use super::experiment::{distributions, extent, metric_title, unit};
use super::sweep;
use crate::analysis::{Estimate, SampleSummary};
use crate::comparison::{
    CellGroup, CellMetric, FactorLevels, Factorial, FactorialCell, LevelTests, ResultDocument, cell_groups, figure,
    interval_text,
};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol};

/// The largest number of cells in a picture. More names do not fit below the axis.
const MAX_CELLS: usize = 40;
/// The largest number of small pictures of a metric. Further ones are shown on demand.
const MAX_PICTURES: usize = 12;
/// The largest number of those.
const MAX_FOLDED: usize = 36;

/// Returns the parts about a factorial experiment.
pub(super) fn blocks(found: &Factorial) -> Vec<SheetBlock> {
    let mut sheet = found.sheet();
    for tests in &found.tests {
        tests.caption().into_iter().for_each(|caption| sheet.add_after(&caption, level_pictures(found, tests)));
    }
    found.curves.iter().zip(sheet.parts()).for_each(|(curve, part)| sweep::draw(curve, part));
    sheet.blocks.extend(sweep::over_processors(&found.curves).map(SheetBlock::Picture));
    sheet.blocks.extend(space(found).map(SheetBlock::Picture));
    for n in 0..found.metrics.len() {
        for metric in found.metrics_at(n) {
            sheet.blocks.extend(cells(found, n, metric));
        }
    }
    sheet.into_page()
}

/// Returns the metric at a position in a cell, if it is the one with this name.
fn of_cell<'a>(cell: &'a FactorialCell, n: usize, name: &str) -> Option<&'a CellMetric> {
    cell.metrics.get(n).filter(|metric| metric.metric == name)
}

/// The factor whose levels are beside each other in a picture: that of a table that the experiment requests, else the one
/// that changes the metric least, since the others may be unlike things, such as workloads. `None` for fewer than two
/// factors with several levels.
fn common_factor<'a>(found: &'a Factorial, n: usize, name: &str) -> Option<&'a str> {
    let varied: Vec<&FactorLevels> = found.factors.iter().filter(|factor| factor.levels.len() > 1).collect();
    if varied.len() < 2 {
        return None;
    }
    let requested = found.pivots.iter().map(|pivot| &pivot.factor).chain(found.tests.iter().map(|tests| &tests.factor));
    let requested = requested.chain(found.curves.iter().map(|curve| &curve.factor)).next();
    let mean = |cell: &usize| of_cell(found.cells.get(*cell)?, n, name)?.estimate.map(|found| found.value);
    // The mean of the logarithmic distances between the lowest and the highest level.
    let change = |factor: &FactorLevels| {
        let distance = |group: &CellGroup<'_>| {
            let means = group.cells.iter().filter_map(mean).map(|value| value.abs().max(f64::MIN_POSITIVE).ln());
            let (low, high) = means.fold((f64::MAX, f64::MIN), |(low, high), mean| (low.min(mean), high.max(mean)));
            (high - low).max(0.0)
        };
        let groups = cell_groups(&found.factors, &factor.name);
        groups.iter().map(distance).sum::<f64>() / groups.len() as f64
    };
    let least = || varied.iter().min_by(|a, b| change(a).total_cmp(&change(b))).map(|factor| factor.name.as_str());
    requested.map(String::as_str).filter(|name| varied.iter().any(|factor| factor.name == *name)).or_else(least)
}

/// Draws the runs of the cells with this metric: with several factors as small pictures, each with an axis of its own, over
/// the levels of one factor.
fn cells(found: &Factorial, n: usize, name: &str) -> Vec<SheetBlock> {
    let title = format!("Cells: {name}");
    let Some(common) = common_factor(found, n, name) else {
        let label = |cell: &FactorialCell| match cell.levels.is_empty() {
            true => cell.name.clone(),
            false => cell.levels.join(", "),
        };
        let cells: Vec<(String, &FactorialCell)> = found.cells.iter().map(|cell| (label(cell), cell)).collect();
        let factors: Vec<&str> = found.factors.iter().map(|factor| factor.name.as_str()).collect();
        let picture = dots(&title, &factors.join(", "), &cells, (n, name));
        return picture.map(SheetBlock::Picture).into_iter().collect();
    };
    let of_group = |group: CellGroup<'_>| {
        let cells = group.factor.levels.iter().zip(&group.cells);
        let cells: Vec<(String, &FactorialCell)> =
            cells.filter_map(|(level, cell)| Some((level.clone(), found.cells.get(*cell)?))).collect();
        dots(&group.name(), common, &cells, (n, name))
    };
    let mut pictures: Vec<Picture> = cell_groups(&found.factors, common).into_iter().filter_map(of_group).collect();
    let mut others = pictures.split_off(pictures.len().min(MAX_PICTURES));
    let left_out = others.len().saturating_sub(MAX_FOLDED);
    others.truncate(MAX_FOLDED);
    let more = if left_out > 0 { format!(" (the table has {left_out} more)") } else { String::new() };
    let others = SheetBlock::multiples(&format!("{title}, further{more}"), others, true);
    SheetBlock::multiples(&title, pictures, false).into_iter().chain(others).collect()
}

/// Draws the distribution of the runs of each level beside that of the first one, and their normal quantiles, as small
/// pictures.
fn level_pictures(found: &Factorial, tests: &LevelTests) -> Vec<SheetBlock> {
    // A metric that is not among those of the experiment is that of a level, which replaces the first one.
    let metric = found.metrics.iter().position(|metric| *metric == tests.metric).unwrap_or(0);
    let group = cell_groups(&found.factors, &tests.factor).into_iter().find(|group| group.name() == tests.others);
    let Some(group) = group else { return Vec::new() };
    let sample = |(level, cell): (&String, &usize)| {
        let values = found.cells.get(*cell).map_or_else(Vec::new, |cell| cell.metrics[metric].values.clone());
        (format!("{}={level}", tests.factor), values)
    };
    let samples: Vec<(String, Vec<f64>)> = group.factor.levels.iter().zip(&group.cells).map(sample).collect();
    let distribution =
        |sample: &(String, Vec<f64>)| distributions(&tests.metric, &[samples[0].clone(), sample.clone()]);
    let distributions = samples.iter().skip(1).filter_map(distribution).collect();
    let quantiles = samples.iter().filter_map(|(name, values)| normal_quantiles(&tests.metric, name, values)).collect();
    let titles = ["Distributions", "Normal QQ plots"].map(|title| format!("{title}: {}", tests.title()));
    let blocks = titles.iter().zip([distributions, quantiles]);
    blocks.filter_map(|(title, pictures)| SheetBlock::multiples(title, pictures, false)).collect()
}

/// Draws the used space over the levels of a factor that are numbers, such as those of snapshots: after the runs of each
/// cell, and the mean of each level as a line; with columns, a line for each. `None` without two levels.
fn space(found: &Factorial) -> Option<Picture> {
    const MIB: f64 = 1024.0 * 1024.0;
    const USED: &str = "used space in MiB";
    let place = |level: &str| level.parse().ok().filter(|place: &f64| place.is_finite());
    let is_wanted = |factor: &FactorLevels| {
        let is_tested = found.tests.first().is_none_or(|tests| tests.factor == factor.name);
        is_tested && factor.levels.iter().all(|level| place(level).is_some())
    };
    let at = found.factors.iter().position(is_wanted)?;
    let columns = found.pivots.first().map(|pivot| &pivot.factor);
    let side = found.factors.iter().position(|factor| columns == Some(&factor.name)).filter(|side| *side != at);
    let used = |cell: &FactorialCell| Some((place(&cell.levels[at])?, cell.space_after? / MIB));
    let points = || found.cells.iter().filter_map(used);
    let x = ChartAxis::linear(&found.factors[at].name, AxisUnit::Number, points().map(|(x, _)| x));
    let mut chart = Chart::new(x, ChartAxis::linear(USED, AxisUnit::Number, points().map(|(_, y)| y)));
    let title = format!("Used space over {}", found.factors[at].name);
    let mut table = SheetTable::new(&title, ["cell", USED]);
    let mut legend = Vec::new();
    let mut longest = 0;
    let lines = side.map_or(1, |side| found.factors[side].levels.len());
    for (line, class) in (0..lines).zip(sweep::CURVE_CLASSES.into_iter().cycle()) {
        let name = side.map(|side| &found.factors[side].levels[line]);
        let cells = || found.cells.iter().filter(|cell| side.is_none_or(|side| name == Some(&cell.levels[side])));
        let mean = |level: &String| {
            let of_level: Vec<f64> =
                cells().filter(|cell| cell.levels[at] == *level).filter_map(used).map(|(_, y)| y).collect();
            SampleSummary::of(&of_level).and_then(|of| Some((place(level)?, of.mean)))
        };
        let means: Vec<(f64, f64)> = found.factors[at].levels.iter().filter_map(mean).collect();
        longest = longest.max(means.len());
        chart.join(means, class);
        for (cell, (x, y)) in cells().filter_map(|cell| Some((cell, used(cell)?))) {
            let shown = AxisUnit::Number.format(y);
            chart.plot(Symbol::Circle, &ChartPoint { x, y, class, title: format!("{}: {shown}", cell.name) });
            table.row([cell.name.clone(), shown]);
        }
        legend.extend(name.map(|name| (class, name.clone())));
    }
    (longest > 1).then(|| Picture {
        note: "Each point is the mean after the runs of a cell; a line joins the means of the levels.".to_owned(),
        drawing: chart.drawing(&title),
        title,
        legend,
        table,
    })
}

/// Draws the runs of cells with a metric as points, with the mean and its interval. Each cell has a label.
fn dots(title: &str, x_title: &str, cells: &[(String, &FactorialCell)], (n, name): (usize, &str)) -> Option<Picture> {
    let unit = unit(name);
    let with_metric = || cells.iter().filter_map(|(label, cell)| Some((label, cell, of_cell(cell, n, name)?)));
    let shown = || with_metric().take(MAX_CELLS);
    let values = shown().flat_map(|(_, _, metric)| metric.values.iter().copied());
    let all: Vec<f64> = values.chain(shown().filter_map(|(_, _, metric)| metric.estimate).flat_map(extent)).collect();
    if all.is_empty() {
        return None;
    }
    let x = ChartAxis::categories(x_title, shown().map(|(label, ..)| label.clone()));
    let low = if unit == AxisUnit::Number { Some(0.0) } else { None };
    let mut chart = Chart::new(x, ChartAxis::linear(&metric_title(name), unit, all.into_iter().chain(low)));
    let mut table = SheetTable::new(&format!("Runs of the cells: {name}"), ["cell", name, "95 % interval"]);
    for (at, (_, cell, metric)) in shown().enumerate() {
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
    let rest = if rest > 0 { format!("The picture has the first {MAX_CELLS} cells.") } else { String::new() };
    Some(Picture {
        title: title.to_owned(),
        note: rest,
        legend: vec![("a", "run".to_owned()), ("b", "mean with its 95 % interval".to_owned())],
        drawing: chart.drawing(&format!("{name} of the runs of each cell")),
        table,
    })
}
