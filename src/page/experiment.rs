//! The parts of a page about an experiment: its result, each run as a point, and the figures of its flowops. The parts
//! of a comparison of two arms are in `ab`, those of a load curve in `sweep`.

use super::records::{ARM_CLASSES, ARM_SYMBOLS, ArmRecords};
use super::{ab, factorial, sweep};
use crate::analysis::{self, Estimate, NoiseFloor};
use crate::comparison::{Repeats, ResultDocument, figure, measured, with_direction};
use crate::experiment::{ExperimentDocument, RecordedExperiment, RecordedRun, RunTable};
use crate::import::{Metric, record_name};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, answer_length};
use crate::util::count::{count, or_dash};
use indexmap::IndexSet;
use std::collections::BTreeSet;

/// The largest number of flowops in the table of flowops.
const MAX_FLOWOPS: usize = 200;

/// Returns all parts about an experiment. `floor` is the noise floor of its workload, `arms` the runs of a comparison.
pub(super) fn blocks(
    recorded: &RecordedExperiment,
    floor: Option<NoiseFloor>,
    arms: Option<&[ArmRecords; 2]>,
) -> Vec<SheetBlock> {
    let mut blocks = match recorded.document(floor) {
        Err(why) => recorded.failed_sheet(&why).into_page(),
        Ok(ExperimentDocument::Repeats(found)) => repeat_blocks(recorded, &found),
        Ok(ExperimentDocument::Comparison(found)) => ab::blocks(recorded, &found, arms),
        Ok(ExperimentDocument::Sweep(found)) => sweep::blocks(&found),
        Ok(ExperimentDocument::Factorial(found)) => factorial::blocks(&found),
    };
    blocks.insert(answer_length(&blocks), SheetBlock::SmallPrint { lines: vec![about(recorded)] });
    blocks.extend(flowops(recorded).block());
    blocks.extend(run_table(recorded).folded().block());
    blocks.extend(conditions(recorded).folded().block());
    blocks
}

/// Returns sentences on the experiment and on what it measured.
fn about(recorded: &RecordedExperiment) -> String {
    let experiment = &recorded.experiment;
    let (command, runs) = (experiment.kind().command(), count(recorded.runs.len() as u64, "run"));
    let state = if recorded.is_complete { "" } else { " The experiment is not complete." };
    let measured = measured(&recorded.runs.iter().map(|run| &run.observation).collect::<Vec<_>>());
    let measured = if measured.is_empty() { measured } else { format!(" Measured: {measured}.") };
    format!("wmlrun {command}, {runs}, started at {}, seed {}.{measured}{state}", experiment.created, experiment.seed)
}

pub(super) fn unit(metric: &str) -> AxisUnit {
    let unit = metric.parse::<Metric>().ok().and_then(|metric| metric.nanoseconds());
    if unit == Some(1.0) { AxisUnit::Nanoseconds } else { AxisUnit::Number }
}

/// Returns the title of an axis with the values of a metric.
pub(super) fn metric_title(metric: &str) -> String {
    match metric.rsplit('.').next() {
        Some("ops") => format!("{metric}: operations per second"),
        Some("mib") => format!("{metric}: MiB/s"),
        Some("seconds") => format!("{}: seconds", with_direction(metric)),
        _ => with_direction(metric),
    }
}

/// Returns the values that an axis must contain to show an estimate with its interval.
pub(super) fn extent(estimate: Estimate) -> impl Iterator<Item = f64> {
    let ends = estimate.ends().into_iter().flat_map(|(low, high)| [low, high]);
    std::iter::once(estimate.value).chain(ends)
}

/// Returns the value of a metric in each run of an arm that has one.
pub(super) fn values<'a>(runs: &[&'a RecordedRun], metric: &Metric) -> Vec<(&'a RecordedRun, f64)> {
    runs.iter().filter_map(|run| Some((*run, metric.of(&run.observation)?))).collect()
}

/// Draws each run of the arms as a point. `means` has the mean of each arm with its interval, as far as it is known.
pub(super) fn run_points(
    recorded: &RecordedExperiment,
    metric: &Metric,
    names: &[String],
    means: &[Estimate],
) -> Option<Picture> {
    let number = |(run, value): (&RecordedRun, f64)| (run.number, value);
    let arms = recorded.by_arm();
    let arms: Vec<Vec<(u64, f64)>> =
        arms.iter().map(|runs| values(runs, metric).into_iter().map(number).collect()).collect();
    run_picture(&metric.to_string(), "run, in the order of time", &arms, names, means)
}

/// Draws the runs of one or two arms, each with its number and its value of a metric.
pub(super) fn run_picture(
    name: &str,
    x_title: &str,
    arms: &[Vec<(u64, f64)>],
    names: &[String],
    means: &[Estimate],
) -> Option<Picture> {
    let unit = unit(name);
    let all = arms.iter().flatten().map(|(_, value)| *value);
    let ends = means.iter().copied().flat_map(extent);
    let last = arms.iter().flatten().map(|(number, _)| *number).max().unwrap_or(1).max(2);
    let x = ChartAxis::fitted(x_title, AxisUnit::Number, [1.0, last as f64]);
    let mut chart = Chart::new(x, ChartAxis::linear(&metric_title(name), unit, all.chain(ends)));
    for (mean, class) in means.iter().zip(ARM_CLASSES) {
        if let Some((low, high)) = mean.ends() {
            let label = format!("{} to {}", unit.format(low), unit.format(high));
            chart.horizontal_band((low, high), &format!("{class} interval-band"), &label);
        }
        chart.horizontal_line(mean.value, &format!("mean {class}"));
    }
    let mut table = SheetTable::new(&format!("Runs: {name}"), ["run", "arm", name]);
    let mut rows = Vec::new();
    for (n, arm) in arms.iter().enumerate() {
        let (class, symbol) = (ARM_CLASSES[n.min(1)], ARM_SYMBOLS[n.min(1)]);
        let label = names.get(n).map_or("", String::as_str);
        for (number, value) in arm {
            let title = format!("run {number}, {label}: {}", figure(name, *value));
            chart.plot(symbol, &ChartPoint { x: *number as f64, y: *value, class, title });
            rows.push((number, [number.to_string(), label.to_owned(), figure(name, *value)]));
        }
    }
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().for_each(|(_, cells)| table.row(cells));
    let legend = match &names {
        [_, _, ..] => names.iter().zip(ARM_CLASSES).map(|(name, class)| (class, name.clone())).collect(),
        _ => Vec::new(),
    };
    (!table.rows.is_empty()).then(|| Picture {
        title: format!("Runs: {name}"),
        note: "Each point is a run. A line is a mean, the area around it its 95 % interval.".to_owned(),
        legend,
        drawing: chart.drawing(&format!("{name} of each run")),
        table,
    })
}

/// Draws the empirical distribution functions of a metric in the arms.
pub(super) fn distributions(metric: &str, samples: &[(String, Vec<f64>)]) -> Option<Picture> {
    let unit = unit(metric);
    let all = samples.iter().flat_map(|(_, values)| values.iter().copied());
    let x = ChartAxis::linear(&metric_title(metric), unit, all);
    let mut chart = Chart::new(x, ChartAxis::linear("share of the runs", AxisUnit::Share, [0.0, 1.0]));
    let mut table = SheetTable::new("Empirical distribution functions", ["arm", metric, "share of the runs up to it"]);
    for (n, (name, values)) in samples.iter().enumerate() {
        let (class, symbol) = (ARM_CLASSES[n.min(1)], ARM_SYMBOLS[n.min(1)]);
        let points = analysis::ecdf(values);
        let start = points.first().map(|first| (first.x, 0.0));
        chart.steps(start.into_iter().chain(points.iter().map(|point| (point.x, point.y))), class);
        for point in &points {
            let share = AxisUnit::Share.format(point.y);
            let title = format!("{name}: {share} up to {}", figure(metric, point.x));
            chart.plot(symbol, &ChartPoint { x: point.x, y: point.y, class, title });
            table.row([name.clone(), figure(metric, point.x), share]);
        }
    }
    let legend = match samples {
        [_, _, ..] => samples.iter().zip(ARM_CLASSES).map(|((name, _), class)| (class, name.clone())).collect(),
        _ => Vec::new(),
    };
    (table.rows.len() > 1).then(|| Picture {
        title: format!("Distribution of the runs: {metric}"),
        note: "The share of the runs whose value is at most that on the horizontal axis.".to_owned(),
        legend,
        drawing: chart.drawing("Empirical distribution functions"),
        table,
    })
}

/// Returns the parts about repeats: the estimates, and the runs of each metric.
fn repeat_blocks(recorded: &RecordedExperiment, found: &Repeats) -> Vec<SheetBlock> {
    let mut sheet = found.sheet();
    let experiment = &recorded.experiment;
    for (metric, found) in experiment.metrics().iter().zip(&found.metrics) {
        let means = [found.estimate.interval()];
        let picture = run_points(recorded, metric, std::slice::from_ref(&experiment.name), &means);
        sheet.blocks.extend(picture.map(SheetBlock::Picture));
    }
    if let Some(metric) = found.metrics.first() {
        let sample = [(experiment.name.clone(), metric.values.clone())];
        sheet.blocks.extend(distributions(&metric.metric, &sample).map(SheetBlock::Picture));
    }
    sheet.into_page()
}

/// Returns the mean figures of each flowop in each arm.
fn flowops(recorded: &RecordedExperiment) -> SheetTable {
    let arms = recorded.by_arm();
    let names: BTreeSet<&str> = recorded
        .runs
        .iter()
        .flat_map(|run| run.observation.figures.keys())
        // The whole name of a flowop, `process/thread/name`, in contrast to the sum over all of its name.
        .filter_map(|name| name.strip_suffix(".ops").filter(|name| name.contains('/')))
        .collect();
    let label = |n: usize, figure: &str| match recorded.experiment.kind() {
        _ if arms.len() == 1 => figure.to_owned(),
        // The heading of a cell with many factors is wrapped between them.
        _ => format!("{} {figure}", recorded.experiment.arm_title(n).replace(',', ", ")),
    };
    // A load curve with many levels has the rates only, so that the table stays readable.
    let figures: &[(&str, &str)] = match arms.len() {
        1 | 2 => &[("ops", "ops/s"), ("latency.mean", "mean latency"), ("latency.p99", "p99")],
        _ => &[("ops", "ops/s")],
    };
    let mut table = SheetTable::new("Flowops: means over the runs", ["flowop"]);
    for (_, title) in figures {
        table.add_columns((0..arms.len()).map(|n| label(n, title)));
    }
    for name in names.into_iter().take(MAX_FLOWOPS) {
        let mean = |runs: &[&RecordedRun], figure: &str| {
            let key = format!("{name}.{figure}");
            let values: Vec<f64> = runs.iter().filter_map(|run| run.observation.figures.get(&key).copied()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let cell = |figure_name: &str, value: Option<f64>| or_dash(value, |value| figure(figure_name, value));
        let cells = figures.iter().flat_map(|(figure, _)| arms.iter().map(|runs| cell(figure, mean(runs, figure))));
        let cells: Vec<String> = cells.collect();
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table
}

/// Returns the table of all runs.
fn run_table(recorded: &RecordedExperiment) -> SheetTable {
    let RunTable { columns, rows } = recorded.run_table();
    SheetTable { rows, ..SheetTable::new("All runs", columns.iter().map(String::as_str)) }
}

/// The largest number of arms whose values of a condition are shown one by one.
const MAX_ARMS: usize = 8;

/// Returns the values of a condition: one for all runs, one for each arm, or all values.
fn condition_values(recorded: &RecordedExperiment, name: &str) -> String {
    // In the order of the runs, so that values that belong together have the same place in all rows.
    let of = |arm: Option<usize>| -> IndexSet<&str> {
        let runs = recorded.runs.iter().filter(|run| arm.is_none_or(|arm| arm == run.arm));
        runs.filter_map(|run| run.observation.conditions.get(name).map(String::as_str)).collect()
    };
    let all = of(None);
    let arms = recorded.experiment.arms.len();
    let of_arms: Vec<IndexSet<&str>> = (0..arms).map(|arm| of(Some(arm))).collect();
    if all.len() < 2 || arms > MAX_ARMS || of_arms.iter().any(|values| values.len() > 1) {
        return all.into_iter().collect::<Vec<_>>().join(" | ");
    }
    let value = |(arm, values): (usize, &IndexSet<&str>)| {
        Some(format!("{}: {}", recorded.experiment.arm_title(arm), values.first()?))
    };
    of_arms.iter().enumerate().filter_map(value).collect::<Vec<_>>().join(" | ")
}

/// Returns the conditions of the runs.
fn conditions(recorded: &RecordedExperiment) -> SheetTable {
    let mut table = SheetTable::new("Conditions", ["condition", "value"]).of_text();
    let names: BTreeSet<&String> = recorded.runs.iter().flat_map(|run| run.observation.conditions.keys()).collect();
    for name in names {
        table.row([name.clone(), condition_values(recorded, name)]);
    }
    let experiment = &recorded.experiment;
    for (name, command) in &experiment.hooks.0 {
        table.row([format!("--{name}"), command.clone()]);
    }
    for hook in &experiment.scopes {
        for (time, command) in hook.commands() {
            table.row([format!("{} ({})", time.name(), hook.name), command.to_owned()]);
        }
    }
    for (n, command) in (1..).zip(&experiment.records) {
        table.row([record_name(n), command.clone()]);
    }
    if !experiment.launch.is_empty() {
        table.row(["--launch".to_owned(), experiment.launch.join(" ")]);
    }
    for arm in &experiment.arms {
        table.row(["arguments".to_owned(), arm.words.join(" ")]);
    }
    table
}
