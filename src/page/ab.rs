//! The parts of a page about a comparison of two arms: the verdict and how it came about.

use super::experiment::{distributions, metric_title, run_picture, run_points, unit};
use super::{ArmRecords, courses, curves};
use crate::analysis::{self, ComparisonVerdict, Estimate};
use crate::comparison::{
    Comparison, ResultDocument, confidence, figure, percent, probability, ratio, shapiro_wilk, with_direction,
};
use crate::experiment::RecordedExperiment;
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol, answer_length};

/// Returns the parts about a comparison of the arms of an experiment.
pub(super) fn blocks(
    recorded: &RecordedExperiment,
    comparison: &Comparison,
    arms: Option<&[ArmRecords; 2]>,
) -> Vec<SheetBlock> {
    let of_metric = |metric| run_points(recorded, metric, &side_names(comparison), &means(comparison));
    let runs = recorded.experiment.metrics().first().and_then(of_metric);
    with_runs(comparison, runs, arms)
}

/// The largest number of values of a comparison that are drawn one by one.
const MAX_DRAWN: usize = 1000;

/// Returns the parts about a comparison of results, whose order in time may be unknown.
pub(super) fn of_comparison(comparison: &Comparison, arms: Option<&[ArmRecords; 2]>) -> Vec<SheetBlock> {
    let numbered = |values: &Vec<f64>| (1..).zip(values.iter().copied()).collect::<Vec<_>>();
    let sides = [&comparison.a.values, &comparison.b.values].map(numbered);
    let names = side_names(comparison);
    let is_drawn = sides.iter().map(Vec::len).sum::<usize>() <= MAX_DRAWN;
    let draw = || run_picture(&comparison.metric, "number of the run on its side", &sides, &names, &means(comparison));
    with_runs(comparison, is_drawn.then(draw).flatten(), arms)
}

/// Returns the means of both sides with their intervals, as far as they are known.
fn means(comparison: &Comparison) -> Vec<Estimate> {
    let sides = [&comparison.a.values, &comparison.b.values];
    sides.iter().filter_map(|side| analysis::independent_mean(side, 0.95)).collect()
}

/// Returns the names of both sides in pictures.
fn side_names(comparison: &Comparison) -> [String; 2] {
    [("A", &comparison.a), ("B", &comparison.b)].map(|(side, of)| format!("{side}: {}", of.name))
}

/// Returns the parts about a comparison. `runs` is the picture of its runs, `arms` has their records.
fn with_runs(comparison: &Comparison, runs: Option<Picture>, arms: Option<&[ArmRecords; 2]>) -> Vec<SheetBlock> {
    let mut sheet = comparison.sheet();
    let sides = [&comparison.a.values, &comparison.b.values];
    let names = side_names(comparison);
    let samples = [0, 1].map(|side| (names[side].clone(), sides[side].clone()));
    let distributions = distributions(&comparison.metric, &samples);
    sheet.blocks.extend([runs, distributions].into_iter().flatten().map(SheetBlock::Picture));
    // A reader who asks for the shapes of the samples can read them.
    if comparison.shapes.is_some() {
        let plots = samples.iter().filter_map(|(name, values)| normal_quantiles(&comparison.metric, name, values));
        sheet.blocks.extend(SheetBlock::multiples("Normal QQ plots", plots.collect(), false));
    }
    let mut blocks = sheet.into_page();
    blocks.insert(answer_length(&blocks), SheetBlock::Picture(ratios(comparison)));
    if let Some(arms) = arms {
        // Behind the notes.
        let is_note = |block: &SheetBlock| matches!(block, SheetBlock::Warnings { .. });
        let at = blocks.iter().rposition(is_note).unwrap_or_else(|| answer_length(&blocks)) + 1;
        blocks.splice(at..at, curves::blocks(arms, &names));
        blocks.extend(courses::blocks(arms, &names));
    }
    blocks
}

/// How far an interval is drawn beyond the values, as a factor.
const WIDEST_END: f64 = 2.0;

/// Draws the ratios with their intervals, and the tolerance: the figures on which the verdict is based, then those of
/// other metrics.
fn ratios(comparison: &Comparison) -> Picture {
    let mut rows: Vec<(String, &str, Estimate, String)> = Vec::new();
    let test = &comparison.test;
    let main = |what: &str| format!("{}: {what}", comparison.metric);
    match comparison.ratio_with_floor {
        Some(widened) => {
            rows.push((main("the verdict, with the noise floor"), "a", widened, "-".to_owned()));
            rows.push((main("as measured"), "a", comparison.ratio, probability(test.p)));
        }
        None => rows.push((main("the verdict"), "a", comparison.ratio, probability(test.p))),
    }
    let control = comparison.control;
    rows.extend(control.map(|control| {
        let name = "control, 99.9 % interval".to_owned();
        (name, "c", control.ratio, probability(control.p))
    }));
    let others = comparison.others.iter();
    rows.extend(others.map(|other| (with_direction(&other.metric), "f", other.ratio, probability(other.p))));
    // The tolerance is one of the goodness, which is A/B if lower is better.
    let (low, high) = match comparison.higher_is_better {
        true => (1.0 - comparison.tolerance, 1.0 + comparison.tolerance),
        false => (1.0 / (1.0 + comparison.tolerance), 1.0 / (1.0 - comparison.tolerance)),
    };
    let values = || rows.iter().map(|(_, _, found, _)| found.value).chain([low, high]).filter(|end| end.is_finite());
    let (least, greatest) = values().fold((1.0_f64, 1.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    // An interval far beyond the values would make the others points.
    let limit = |end: f64| end.clamp(least / WIDEST_END, greatest * WIDEST_END);
    let ends = || rows.iter().flat_map(|(_, _, found, _)| [found.low, found.high]).filter(|end| !end.is_nan());
    let is_cut = ends().any(|end| (limit(end) - end).abs() > 0.0);
    let x = ChartAxis::of_ratios("B/A (logarithmic)", values().chain(ends().map(limit)));
    let mut chart = Chart::new(x, ChartAxis::categories("", rows.iter().map(|(name, ..)| name.clone())));
    let tolerance = format!("tolerance of {}: {low:.3} to {high:.3}", percent(comparison.tolerance));
    chart.vertical_band((low, high), "band", &tolerance);
    chart.vertical_line(1.0, "rule", "equal");
    let interval = format!("{} interval", confidence(comparison.level));
    let mut table = SheetTable::new("Ratios", ["figure", "B/A", interval.as_str(), "p"]);
    for (row, (name, class, found, p)) in rows.into_iter().enumerate() {
        let title = format!("{name}: {}", ratio(found));
        chart.horizontal_interval(row as f64, (found.low, found.high), class);
        chart.row_value(row as f64, &ratio(found));
        let value = found.value.to_string();
        chart.plot_as(Symbol::Circle, &ChartPoint { x: found.value, y: row as f64, class, title }, value);
        let ends = [found.low, found.high].map(|end| format!("{end:.4}"));
        let ends = if found.low.is_nan() { "no interval".to_owned() } else { ends.join(" to ") };
        let value = if found.value.is_nan() { "unknown".to_owned() } else { format!("{:.4}", found.value) };
        table.row([name, value, ends, p]);
    }
    let better = if comparison.higher_is_better { "above" } else { "below" };
    let depends = match comparison.verdict {
        ComparisonVerdict::Invalid if comparison.interleaved => {
            "The comparison is invalid because the control changed, whatever the ratios are."
        }
        ComparisonVerdict::Invalid => {
            "The comparison is invalid because the change of the control may explain the difference."
        }
        _ if comparison.doubt.is_some() => "The notes say why the interval gives no verdict.",
        _ => "The verdict depends on the first line only; the other metrics are descriptive.",
    };
    let cut = if is_cut { " An interval that reaches the edge goes on beyond it." } else { "" };
    Picture {
        title: "How the verdict came about".to_owned(),
        note: format!(
            "The verdict is the place of the first interval: {better} the tolerance B is better, within it the same, on \
             the other side worse; else it is between these, or unclear. {depends}{cut}"
        ),
        legend: vec![("box", tolerance)],
        drawing: chart.drawing("Ratios of B to A with their intervals"),
        table,
    }
}

/// Draws the quantiles of a sample against those of the normal distribution. `title` is its name.
pub(super) fn normal_quantiles(metric: &str, title: &str, values: &[f64]) -> Option<Picture> {
    let plot = analysis::normal_plot(values)?;
    let line = |x: f64| (x, plot.intercept + plot.slope * x);
    let ends = [plot.points.first()?.x, plot.points.last()?.x].map(line);
    let y = plot.points.iter().map(|point| point.y).chain(ends.map(|(_, y)| y));
    let x = ChartAxis::linear("quantile of the normal distribution", AxisUnit::Number, ends.map(|(x, _)| x));
    let mut chart = Chart::new(x, ChartAxis::linear(&metric_title(metric), unit(metric), y));
    chart.join(ends, "rule dashed");
    let mut table = SheetTable::new(&format!("Normal quantiles: {title}"), ["normal quantile", metric]);
    for point in &plot.points {
        let value = figure(metric, point.y);
        let title = format!("{value} at {:.3}", point.x);
        chart.plot(Symbol::Circle, &ChartPoint { x: point.x, y: point.y, class: "d", title });
        table.row([format!("{:.3}", point.x), value]);
    }
    Some(Picture {
        title: title.to_owned(),
        note: format!(
            "Normally distributed runs are near the dashed line, which goes through the quartiles. Shapiro–Wilk: {}.",
            shapiro_wilk(analysis::shapiro_wilk(values))
        ),
        legend: Vec::new(),
        drawing: chart.drawing(&format!("Quantiles of the runs against those of the normal distribution: {title}")),
        table,
    })
}
