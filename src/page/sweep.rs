//! The parts of a page about a load curve: throughput and response time over the load, and the knee.

use super::experiment::extent;
use crate::analysis::{Capacity, Estimate};
use crate::comparison::{ResultDocument, Sweep, SweepPoint, figure, interval_text};
use crate::import::Metric;
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, NoteLabel, Picture, Sheet, SheetBlock, SheetTable, Symbol};

/// The title of an axis with the rate of a curve of operations.
const OPERATIONS: &str = "I/O operations per second";
/// The title of the offered rate of an open loop, whose requests may consist of several operations.
const OFFERED: &str = "offered requests/s";
/// The title of the achieved rate of an open loop.
const ACHIEVED: &str = "achieved requests/s";

/// Returns the parts about a load curve.
pub(super) fn blocks(found: &Sweep) -> Vec<SheetBlock> {
    let mut sheet = found.sheet();
    draw(found, &mut sheet);
    sheet.blocks.extend(over_processors(std::slice::from_ref(found)).map(SheetBlock::Picture));
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
    let rate = LoadSeries { name: rate_title(found), class: "a", symbol: Symbol::Circle, of: &SweepPoint::throughput };
    let throughput = over_load(found, ("Throughput over load", rate_title(found)), "ops", &[rate]);
    let response = over_load(found, ("Response time over load", "response time"), "latency.mean", &TIMES);
    let further: Vec<Picture> = found.metrics.iter().map(|metric| metric_over_load(found, metric)).collect();
    let pictures = [Some(throughput), achieved_rates(found), Some(response), load_curve(found)];
    sheet.blocks.extend(further.into_iter().chain(pictures.into_iter().flatten()).map(SheetBlock::Picture));
}

/// The classes of several curves in one picture.
pub(super) const CURVE_CLASSES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The title of the rate that a curve is of.
fn rate_title(sweep: &Sweep) -> &'static str {
    if sweep.is_of_requests() { ACHIEVED } else { OPERATIONS }
}

/// A figure of each load.
struct LoadSeries<'a> {
    name: &'a str,
    class: &'static str,
    symbol: Symbol,
    of: &'a dyn Fn(&SweepPoint) -> Option<Estimate>,
}

/// The response times of each load.
const TIMES: [LoadSeries<'_>; 3] = [
    LoadSeries { name: "p50", class: "a", symbol: Symbol::Circle, of: &|point| point.percentiles[0] },
    LoadSeries { name: "mean", class: "c", symbol: Symbol::Circle, of: &|point| point.response },
    LoadSeries { name: "p99", class: "b", symbol: Symbol::Square, of: &|point| point.percentiles[1] },
];

/// Draws a further metric over the load, with the limit of a search and its answer.
fn metric_over_load(sweep: &Sweep, metric: &str) -> Picture {
    let of = |point: &SweepPoint| point.figures.get(metric).copied();
    let series = LoadSeries { name: metric, class: "a", symbol: Symbol::Circle, of: &of };
    over_load(sweep, (&format!("{metric} over load"), metric), metric, &[series])
}

/// Draws figures of each load with their intervals. The distances of loads are true if they are numbers.
fn over_load(sweep: &Sweep, (title, y_title): (&str, &str), metric: &str, all: &[LoadSeries<'_>]) -> Picture {
    let unit = match metric.parse::<Metric>().ok().and_then(|metric| metric.nanoseconds()) {
        Some(unit) if unit <= 1.0 => AxisUnit::Nanoseconds,
        _ => AxisUnit::Number,
    };
    let limit = sweep.capacity.as_ref().filter(|limit| limit.metric == metric);
    let points: Vec<(usize, &SweepPoint)> = sweep.in_load_order().collect();
    let is_known = |series: &&LoadSeries<'_>| points.iter().any(|(_, point)| (series.of)(point).is_some());
    let series: Vec<&LoadSeries<'_>> = all.iter().filter(is_known).collect();
    let values = series.iter().flat_map(|series| points.iter().filter_map(move |(_, point)| (series.of)(point)));
    let values = values.flat_map(extent).chain(limit.map(|limit| limit.threshold));
    // Percentiles are far apart.
    let y = match series.len() {
        // A saturated system is far beyond the limit.
        1 if limit.is_some() => ChartAxis::logarithmic(&format!("{y_title} (logarithmic)"), unit, values),
        0 | 1 => ChartAxis::linear(y_title, unit, values.chain([0.0])),
        _ => ChartAxis::logarithmic(&format!("{y_title} (logarithmic)"), unit, values),
    };
    let loads = sweep.loads();
    let place = |at: usize| loads.as_ref().and_then(|loads| loads.get(at)).copied().unwrap_or(at as f64);
    let levels = points.iter().map(|(_, point)| point.level.clone());
    let x = match &loads {
        Some(loads) => ChartAxis::of_loads(&sweep.factor, &loads.iter().copied().zip(levels).collect::<Vec<_>>()),
        None => ChartAxis::categories(&sweep.factor, levels),
    };
    let mut chart = Chart::new(x, y);
    // Where there is a limit, its place is what was asked for.
    let knee = points.iter().position(|(n, _)| sweep.knee == Some(*n)).filter(|_| limit.is_none());
    if let Some(knee) = knee {
        chart.vertical_line(place(knee), "rule", "knee");
    }
    if let Some(limit) = limit {
        chart.horizontal_line(limit.threshold, "rule dashed");
        if let (Capacity::Found(found), true) = (limit.found, loads.is_some()) {
            chart.vertical_band((found.low, found.high), "band", &limit.text(&sweep.factor));
            chart.vertical_line(found.value, "rule", &limit.limit);
        }
    }
    let mut table = SheetTable::new(title, [sweep.factor.as_str()]);
    table.add_columns(series.iter().flat_map(|series| [series.name.to_owned(), "95 % interval".to_owned()]));
    for LoadSeries { name, class, symbol, of } in &series {
        let found = || points.iter().enumerate().filter_map(|(at, (_, point))| Some((place(at), *point, of(point)?)));
        // Nothing lies between values that are not numbers.
        if loads.is_some() {
            chart.join(found().map(|(x, _, found)| (x, found.value)), class);
        }
        for (x, point, found) in found() {
            if let Some(ends) = found.ends() {
                chart.vertical_interval(x, ends, class);
            }
            let title = format!("{}={}, {name}: {}", sweep.factor, point.level, figure(metric, found.value));
            chart.plot(*symbol, &ChartPoint { x, y: found.value, class, title });
        }
    }
    for (_, point) in &points {
        let cells = |series: &&LoadSeries<'_>| match (series.of)(point) {
            Some(found) => [figure(metric, found.value), interval_text(metric, found)],
            None => ["-", "-"].map(str::to_owned),
        };
        let cells: Vec<String> = series.iter().flat_map(cells).collect();
        if cells.iter().any(|cell| cell != "-") {
            table.row(std::iter::once(point.level.clone()).chain(cells));
        }
    }
    let legend = series.iter().map(|series| (series.class, series.name.to_owned()));
    Picture {
        title: title.to_owned(),
        note: "Each point is the mean of the runs at a load, with its 95 % interval.".to_owned()
            + &limit.map_or_else(String::new, |limit| format!(" The dashed line is the limit: {}.", limit.limit)),
        legend: if series.len() > 1 { legend.collect() } else { Vec::new() },
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

/// Draws the rate of each curve over the share of the processors that it took. `None` if no curve has two such points.
pub(super) fn over_processors(curves: &[Sweep]) -> Option<Picture> {
    const SHARE: &str = "busy share of all processors";
    let points = |curve: &Sweep| -> Vec<(String, f64, f64)> {
        let known = curve.in_load_order();
        known.filter_map(|(_, at)| Some((at.level.clone(), at.cpu_busy?, at.throughput()?.value))).collect()
    };
    let curves: Vec<_> = curves
        .iter()
        .zip(CURVE_CLASSES.into_iter().cycle())
        .map(|(curve, class)| (curve, class, points(curve)))
        .collect();
    let drawn: Vec<_> = curves.iter().filter(|(.., points)| points.len() > 1).collect();
    let rate_title = rate_title(drawn.first()?.0);
    let all = || drawn.iter().flat_map(|(.., points)| points);
    let x = ChartAxis::linear(SHARE, AxisUnit::Share, all().map(|(_, share, _)| *share).chain([0.0]));
    let mut chart = Chart::new(x, ChartAxis::linear(rate_title, AxisUnit::Number, all().map(|of| of.2).chain([0.0])));
    let mut table = SheetTable::new("Throughput over the processors", ["curve", "load", SHARE, rate_title]);
    for (curve, class, points) in &drawn {
        chart.join(points.iter().map(|(_, share, rate)| (*share, *rate)), class);
        for (level, share, rate) in points {
            let [of_share, of_rate] = [AxisUnit::Share.format(*share), figure("ops", *rate)];
            let title = format!("{}, {}={level}: {of_rate}/s at {of_share}", curve.name, curve.factor);
            chart.plot(Symbol::Circle, &ChartPoint { x: *share, y: *rate, class, title });
            table.row([curve.name.clone(), level.clone(), of_share, of_rate]);
        }
    }
    let legend = drawn.iter().map(|(curve, class, _)| (*class, curve.name.clone()));
    Some(Picture {
        title: "Throughput over the processors".to_owned(),
        note: "Each point is the mean of the runs at a load; a line joins the loads of a curve in their order."
            .to_owned(),
        legend: if drawn.len() > 1 { legend.collect() } else { Vec::new() },
        drawing: chart.drawing("Throughput over the busy share of all processors"),
        table,
    })
}

/// Draws the response time over the rate.
fn load_curve(sweep: &Sweep) -> Option<Picture> {
    let found: Vec<(usize, &SweepPoint, f64, f64)> = sweep
        .in_load_order()
        .filter_map(|(n, point)| Some((n, point, point.throughput()?.value, point.response?.value)))
        .collect();
    let rates = found.iter().map(|(_, _, rate, _)| *rate);
    let rate_title = rate_title(sweep);
    let x = ChartAxis::linear(rate_title, AxisUnit::Number, rates.chain([0.0]));
    let responses = found.iter().map(|(_, _, _, response)| *response);
    let y = ChartAxis::linear("mean response time", AxisUnit::Nanoseconds, responses.chain([0.0]));
    let mut chart = Chart::new(x, y);
    chart.join(found.iter().map(|(_, _, rate, response)| (*rate, *response)), "a");
    let mut table = SheetTable::new("Load curve", [sweep.factor.as_str(), rate_title, "mean response time"]);
    for (n, point, rate, response) in &found {
        let is_knee = sweep.knee == Some(*n);
        let (symbol, class) = if is_knee { (Symbol::Square, "b") } else { (Symbol::Circle, "a") };
        let (ops, time) = (figure("ops", *rate), figure("latency.mean", *response));
        let title = format!("{}={}: {time} at {ops}/s", sweep.factor, point.level);
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
