//! The parts of a page about a load curve: throughput and response time over the load, and the knee.

use super::experiment::extent;
use crate::analysis::Estimate;
use crate::comparison::{ResultDocument, Sweep, SweepPoint, figure, interval_text};
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, NoteLabel, Picture, Sheet, SheetBlock, SheetTable, Symbol};

/// The title of an axis with the rate of the I/O.
const OPERATIONS: &str = "I/O operations per second";
/// The title of the offered rate of an open loop, whose requests may consist of several operations.
const OFFERED: &str = "offered requests/s";
/// The title of the achieved rate of an open loop.
const ACHIEVED: &str = "achieved requests/s";

/// Returns the parts about a load curve.
pub(super) fn blocks(found: &Sweep) -> Vec<SheetBlock> {
    let mut sheet = found.sheet();
    draw(found, &mut sheet);
    sheet.into_page()
}

/// Adds the pictures of a load curve to its sheet, and the whole texts of failures.
pub(super) fn draw(found: &Sweep, sheet: &mut Sheet) {
    let failed = found.points.iter().filter_map(|point| {
        let why = point.failure.as_ref()?;
        Some(format!("{}={}: {} failed: {why}", found.factor, point.level, point.failed))
    });
    let failed = SheetBlock::messages(NoteLabel::Warning, &failed.collect::<Vec<_>>());
    failed.into_iter().for_each(|failed| sheet.blocks.insert(0, failed));
    let throughput = over_load(found, ("Throughput over load", OPERATIONS), AxisUnit::Number, |point| point.rate);
    let names = ("Response time over load", "mean response time");
    let response = over_load(found, names, AxisUnit::Nanoseconds, |point| point.response);
    let pictures = [Some(throughput), achieved_rates(found), Some(response), load_curve(found)];
    sheet.blocks.extend(pictures.into_iter().flatten().map(SheetBlock::Picture));
}

/// Draws a figure of each level with its interval, in the order of the loads.
fn over_load(
    sweep: &Sweep,
    (title, y_title): (&str, &str),
    unit: AxisUnit,
    of: impl Fn(&SweepPoint) -> Option<Estimate>,
) -> Picture {
    let metric = if unit == AxisUnit::Nanoseconds { "latency.mean" } else { "ops" };
    let points: Vec<(usize, &SweepPoint)> = sweep.in_load_order().collect();
    let values = points.iter().filter_map(|(_, point)| of(point)).flat_map(extent);
    let y = ChartAxis::linear(y_title, unit, values.chain([0.0]));
    let x = ChartAxis::categories(&sweep.factor, points.iter().map(|(_, point)| point.level.clone()));
    let mut chart = Chart::new(x, y);
    if let Some(knee) = points.iter().position(|(n, _)| sweep.knee == Some(*n)) {
        chart.vertical_line(knee as f64, "rule", "knee");
    }
    let found = || points.iter().enumerate().filter_map(|(at, (_, point))| Some((at as f64, *point, of(point)?)));
    chart.join(found().map(|(at, _, found)| (at, found.value)), "a");
    let mut table = SheetTable::new(title, [sweep.factor.as_str(), y_title, "95 % interval"]);
    for (x, point, found) in found() {
        if let Some(ends) = found.ends() {
            chart.vertical_interval(x, ends, "a");
        }
        let label = format!("{}={}: {}", sweep.factor, point.level, figure(metric, found.value));
        chart.plot(Symbol::Circle, &ChartPoint { x, y: found.value, class: "a", title: label });
        table.row([point.level.clone(), figure(metric, found.value), interval_text(metric, found)]);
    }
    Picture {
        title: title.to_owned(),
        note: "Each point is the mean of the runs at a load, with its 95 % interval. The loads have equal distances."
            .to_owned(),
        legend: Vec::new(),
        drawing: chart.drawing(title),
        table,
    }
}

/// Draws the achieved rate over the offered one. Returns `None` for a closed loop, which offers no rate.
fn achieved_rates(sweep: &Sweep) -> Option<Picture> {
    let found: Vec<(&SweepPoint, f64, f64)> =
        sweep.in_load_order().filter_map(|(_, point)| Some((point, point.offered?, point.achieved?))).collect();
    let all = || found.iter().flat_map(|(_, offered, achieved)| [*offered, *achieved]).chain([0.0]);
    // Equal axes, so that equal rates lie on the diagonal.
    let axis = |title: &str| ChartAxis::linear(title, AxisUnit::Number, all());
    let mut chart = Chart::new(axis(OFFERED), axis(ACHIEVED));
    let greatest = all().fold(0.0, f64::max);
    chart.join([(0.0, 0.0), (greatest, greatest)], "rule dashed");
    chart.join(found.iter().map(|(_, offered, achieved)| (*offered, *achieved)), "a");
    let mut table = SheetTable::new("Achieved rate", [sweep.factor.as_str(), OFFERED, ACHIEVED, "share"]);
    for (point, offered, achieved) in &found {
        let [of_offered, of_achieved] = [offered, achieved].map(|rate| figure("ops", *rate));
        let title = format!("{}={}: {of_achieved} of {of_offered} requests/s", sweep.factor, point.level);
        chart.plot(Symbol::Circle, &ChartPoint { x: *offered, y: *achieved, class: "a", title });
        table.row([point.level.clone(), of_offered, of_achieved, AxisUnit::Share.format(achieved / offered)]);
    }
    (!found.is_empty()).then(|| Picture {
        title: "Achieved rate over offered rate".to_owned(),
        note: "Each point is the mean of the runs at a load. On the dashed line all offered requests are achieved."
            .to_owned(),
        legend: Vec::new(),
        drawing: chart.drawing("The achieved rate over the offered rate"),
        table,
    })
}

/// Draws the response time over the rate.
fn load_curve(sweep: &Sweep) -> Option<Picture> {
    let found: Vec<(usize, &SweepPoint, f64, f64)> = sweep
        .in_load_order()
        .filter_map(|(n, point)| Some((n, point, point.rate?.value, point.response?.value)))
        .collect();
    let rates = found.iter().map(|(_, _, rate, _)| *rate);
    let x = ChartAxis::linear(OPERATIONS, AxisUnit::Number, rates.chain([0.0]));
    let responses = found.iter().map(|(_, _, _, response)| *response);
    let y = ChartAxis::linear("mean response time", AxisUnit::Nanoseconds, responses.chain([0.0]));
    let mut chart = Chart::new(x, y);
    chart.join(found.iter().map(|(_, _, rate, response)| (*rate, *response)), "a");
    let mut table = SheetTable::new("Load curve", [sweep.factor.as_str(), OPERATIONS, "mean response time"]);
    for (n, point, rate, response) in &found {
        let is_knee = sweep.knee == Some(*n);
        let (symbol, class) = if is_knee { (Symbol::Square, "b") } else { (Symbol::Circle, "a") };
        let (ops, time) = (figure("ops", *rate), figure("latency.mean", *response));
        let title = format!("{}={}: {time} at {ops} ops/s", sweep.factor, point.level);
        chart.plot(symbol, &ChartPoint { x: *rate, y: *response, class, title });
        table.row([point.level.clone(), ops, time]);
    }
    let knee = sweep.knee.and_then(|knee| sweep.points.get(knee));
    let legend = knee.map(|point| ("b", format!("knee, at {}={}", sweep.factor, point.level))).into_iter().collect();
    (found.len() > 1).then(|| Picture {
        title: "Load curve".to_owned(),
        note: "The response time at each rate; the line joins the loads in their order.".to_owned(),
        legend,
        drawing: chart.drawing("Response time over the rate"),
        table,
    })
}
