//! The percentile curves of two arms: of all I/O, of each request of open loops, and of each flowop.

use super::records::{ARM_CLASSES, ARM_SYMBOLS, ArmRecords, ArmTimes, CurvePoint, curve};
use crate::report::columns::percentiles_on;
use crate::result::Percentile;
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable};
use crate::util::count::{dash, fixed, grouped, measured, or_dash};
use crate::util::duration::latency;
use indexmap::IndexMap;

/// The number of flowops with pictures of their own: those that took most time. Others are shown on demand.
const MAX_SHOWN: usize = 4;

/// The largest number of pictures of the others.
const MAX_FOLDED: usize = 36;
/// The percentiles with a mark.
const MARKED: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

/// The percentiles in words below a title.
const IN_WORDS: [f64; 3] = [50.0, 99.0, 99.9];

/// True if two percentiles are of one point.
fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// The value at a percentile.
fn at(curve: &[CurvePoint], percentile: f64) -> Option<u64> {
    curve.iter().find(|point| is_same(point.percentile, percentile)).map(|point| point.ns)
}

/// The pictures, those that are shown on demand last.
pub(super) fn blocks(arms: &[ArmRecords; 2], names: &[String; 2]) -> Vec<SheetBlock> {
    let [a, b] = arms;
    let mut blocks = Vec::new();
    blocks.extend(requests(arms).block());
    let requests = by_time(&a.requests, &b.requests);
    let short = ["A", "B"].map(str::to_owned);
    let each = |all: &[NamedPair<'_>], unit: &str| -> Vec<Picture> {
        all.iter().filter_map(|(name, pair)| picture(name, unit, pair, &short)).collect()
    };
    blocks.extend(SheetBlock::multiples("Response times of the requests", each(&requests, "response time"), false));
    let all = picture("Latency of all I/O", "latency", &[&a.io, &b.io], names);
    blocks.extend(all.map(|picture| {
        let note = format!(
            "The latency that a share of the operations does not exceed, over all runs of an arm; the area is from the \
             lowest to the highest run. No point has fewer than 100 operations beyond it. {}",
            picture.note
        );
        SheetBlock::Picture(Picture { note, ..picture })
    }));
    let flowops = by_time(&a.flowops, &b.flowops);
    // Of a single flowop it would be the same picture.
    if flowops.len() > 1 {
        let (most, others) = flowops.split_at(flowops.len().min(MAX_SHOWN));
        let title = "Latency of the flowops that took most time";
        blocks.extend(SheetBlock::multiples(title, each(most, "latency"), false));
        let (drawn, rest) = others.split_at(others.len().min(MAX_FOLDED));
        let title = match rest.len() {
            0 => "Latency of the other flowops".to_owned(),
            rest => format!("Latency of {MAX_FOLDED} other flowops; {} more took less time", grouped(rest as u64)),
        };
        blocks.extend(SheetBlock::multiples(&title, each(drawn, "latency"), true));
    }
    blocks
}

/// The table of the requests of open loops: the rates as means over the runs of an arm, the times of all its runs together.
fn requests(arms: &[ArmRecords; 2]) -> SheetTable {
    let percentiles = || percentiles_on(usize::MAX);
    let columns = ["request", "arrived/s", "done/s", "backlog"].into_iter().chain(percentiles().map(|of| of.name));
    let mut table = SheetTable::new("Requests of the open loops, with response times", columns);
    let [a, b] = arms;
    for (name, rates) in a.rates.iter().filter_map(|(name, of_a)| Some((name, [of_a, b.rates.get(name)?]))) {
        for (arm, (rates, side)) in arms.iter().zip(rates.into_iter().zip(["A", "B"])) {
            let times = arm.requests.get(name).map(|times| curve(&times.all)).unwrap_or_default();
            let ns = |percentile: &Percentile| at(&times, 100.0 * percentile.quantile);
            let time = |percentile| or_dash(ns(percentile), |ns| latency(ns as f64));
            let rates = [
                format!("{name}, {side}"),
                measured(rates.mean(|of| of.offered_per_s)),
                measured(rates.mean(|of| of.achieved_per_s)),
                measured(rates.mean(|of| of.backlog as f64)),
            ];
            table.row(rates.into_iter().chain(percentiles().map(time)));
        }
    }
    table
}

/// A name, and the times of it in both arms.
pub(super) type NamedPair<'a> = (&'a str, [&'a ArmTimes; 2]);

/// The names that both arms have, those with the longest time of both together first.
pub(super) fn by_time<'a>(a: &'a IndexMap<String, ArmTimes>, b: &'a IndexMap<String, ArmTimes>) -> Vec<NamedPair<'a>> {
    let mut found: Vec<NamedPair<'_>> =
        a.iter().filter_map(|(name, of_a)| Some((name.as_str(), [of_a, b.get(name)?]))).collect();
    found.sort_by_key(|(_, pair)| std::cmp::Reverse(pair.iter().map(|times| u128::from(times.all.sum)).sum::<u128>()));
    found
}

/// The lowest and the highest run at each percentile that all runs have; none of a single run.
fn band(times: &ArmTimes) -> Vec<(f64, f64, f64)> {
    let shortest = times.runs.iter().map(Vec::len).min().unwrap_or(0);
    let at = |n: usize| -> Option<(f64, f64, f64)> {
        let of_runs = || times.runs.iter().filter_map(move |run| run.get(n));
        let (low, high) = (of_runs().map(|point| point.ns).min()?, of_runs().map(|point| point.ns).max()?);
        Some((of_runs().next()?.percentile, low as f64, high as f64))
    };
    let points = if times.runs.len() > 1 { shortest } else { 0 };
    (0..points).filter_map(at).collect()
}

/// Draws the curves of both arms. `None` if one has too few operations.
fn picture(title: &str, unit: &str, arms: &[&ArmTimes; 2], names: &[String; 2]) -> Option<Picture> {
    let curves = arms.map(|arm| curve(&arm.all));
    let bands = arms.map(band);
    let greatest = curves.iter().filter_map(|curve| Some(curve.last()?.percentile)).fold(0.0, f64::max);
    if curves.iter().any(|curve| curve.len() < 2) {
        return None;
    }
    let ends = bands.iter().flatten().flat_map(|(_, low, high)| [*low, *high]);
    let values = curves.iter().flatten().map(|point| point.ns as f64).chain(ends);
    let y = ChartAxis::logarithmic(&format!("{unit} (logarithmic)"), AxisUnit::Nanoseconds, values);
    let mut chart = Chart::new(ChartAxis::of_percentiles("percentile", greatest), y);
    for (band, class) in bands.iter().zip(ARM_CLASSES) {
        chart.area(band, class);
    }
    for ((curve, (class, symbol)), name) in curves.iter().zip(ARM_CLASSES.into_iter().zip(ARM_SYMBOLS)).zip(names) {
        chart.join(curve.iter().map(|point| (point.percentile, point.ns as f64)), class);
        for (percentile, ns) in MARKED.iter().filter_map(|percentile| Some((*percentile, at(curve, *percentile)?))) {
            let title = format!("{name}: p{percentile} {}", latency(ns as f64));
            chart.plot(symbol, &ChartPoint { x: percentile, y: ns as f64, class, title });
        }
    }
    let columns = ["percentile", "A", "B", "B/A", "runs of A", "runs of B"];
    let mut table = SheetTable::new(&format!("Percentiles: {title}"), columns);
    let mut changes = Vec::new();
    for percentile in MARKED {
        let found = [&curves[0], &curves[1]].map(|curve| at(curve, percentile));
        if found == [None, None] {
            continue;
        }
        let range = |band: &[(f64, f64, f64)]| {
            let found = band.iter().find(|(at, ..)| is_same(*at, percentile));
            or_dash(found, |(_, low, high)| format!("{} to {}", latency(*low), latency(*high)))
        };
        let [of_a, of_b] = found.map(|ns| or_dash(ns, |ns| latency(ns as f64)));
        let ratio = match found {
            [Some(a), Some(b)] if a > 0 => fixed(b as f64 / a as f64, 3),
            _ => dash(),
        };
        if found[0].is_some() && found[1].is_some() && IN_WORDS.contains(&percentile) {
            changes.push(format!("p{percentile} {of_a} with A, {of_b} with B"));
        }
        table.row([format!("p{percentile}"), of_a, of_b, ratio, range(&bands[0]), range(&bands[1])]);
    }
    let note = if changes.is_empty() { String::new() } else { changes.join("; ") + "." };
    Some(Picture {
        title: title.to_owned(),
        note,
        legend: vec![("a", names[0].clone()), ("b", names[1].clone())],
        drawing: chart.drawing(&format!("{title}: percentiles of A and B")),
        table,
    })
}
