//! The course of the runs of two arms: their rate, and the 99th percentile of the flowops that took most time.

use super::curves::{NamedPair, by_time};
use super::records::{ARM_CLASSES, ArmRecords, RunCourse};
use super::timeline::TimeColumn;
use crate::sheet::{AxisUnit, Chart, ChartAxis, ChartPoint, Picture, SheetBlock, SheetTable, Symbol};

/// The largest number of flowops with a picture.
const MAX_FLOWOPS: usize = 4;
/// The largest number of moments of a picture.
const MAX_MOMENTS: usize = 120;

/// The runs of an arm at a moment.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Its middle, in seconds since measuring began.
    time: f64,
    median: f64,
    low: f64,
    high: f64,
}

/// The pictures; none if the runs have no intervals, or a single one.
pub(super) fn blocks(arms: &[ArmRecords; 2], names: &[String; 2]) -> Vec<SheetBlock> {
    let Some(width) = width(arms) else { return Vec::new() };
    let each = |value: &dyn Fn(&RunCourse, &TimeColumn) -> Option<f64>, is_rate: bool| {
        [&arms[0], &arms[1]].map(|arm| moments(&arm.courses, width, value, is_rate))
    };
    let mut blocks = Vec::new();
    let rate = each(&|_, column| Some(column.ops as f64), true);
    let of_rate = ("Rate over time", "I/O operations per second", AxisUnit::Number);
    blocks.extend(picture(of_rate, &rate, names).map(|picture| {
        let note =
            "The line is the median of the runs of an arm, the area from the lowest to the highest run.".to_owned();
        SheetBlock::Picture(Picture { note, ..picture })
    }));
    let short = ["A", "B"].map(str::to_owned);
    let flowops = by_time(&arms[0].flowops, &arms[1].flowops);
    let of_flowop = |(name, _): &NamedPair<'_>| {
        let p99 = each(&|course, column| p99(course, column, name), false);
        picture((name, "p99 of the latency", AxisUnit::Nanoseconds), &p99, &short)
    };
    let pictures: Vec<Picture> = flowops.iter().take(MAX_FLOWOPS).filter_map(of_flowop).collect();
    blocks.extend(SheetBlock::multiples("99th percentile over time", pictures, false));
    blocks
}

/// The 99th percentile of the flowops with a name, of several the highest.
fn p99(course: &RunCourse, column: &TimeColumn, name: &str) -> Option<f64> {
    let of_name = course.flowops.iter().zip(&column.p99_ns).filter(|(of, _)| *of == name);
    of_name.filter_map(|(_, ns)| *ns).max().map(|ns| ns as f64)
}

/// The distance of moments in seconds: the usual length of the intervals of the run with the longest ones, or more for a
/// long run. `None` without intervals.
fn width(arms: &[ArmRecords; 2]) -> Option<f64> {
    let courses = || arms.iter().flat_map(|arm| &arm.courses);
    let usual = |course: &RunCourse| {
        let mut lengths: Vec<f64> = course.columns.iter().map(|column| column.to - column.from).collect();
        lengths.sort_by(f64::total_cmp);
        lengths.get(lengths.len() / 2).copied()
    };
    let longest = courses().filter_map(usual).fold(0.0, f64::max);
    let end = courses().filter_map(|course| Some(course.columns.last()?.to)).fold(0.0, f64::max);
    (longest > 0.0).then(|| longest * (end / longest / MAX_MOMENTS as f64).ceil().max(1.0))
}

/// The moments of the runs of an arm that at least half of its runs have. A rate is the sum of `value` per second, others
/// are the highest `value`.
fn moments(
    courses: &[RunCourse],
    width: f64,
    value: &dyn Fn(&RunCourse, &TimeColumn) -> Option<f64>,
    is_rate: bool,
) -> Vec<Moment> {
    let mut by_moment: Vec<Vec<f64>> = Vec::new();
    for course in courses {
        let place = |column: &TimeColumn| (f64::midpoint(column.from, column.to) / width) as usize;
        for columns in course.columns.chunk_by(|a, b| place(a) == place(b)) {
            let values = columns.iter().filter_map(|column| value(course, column));
            let found = match is_rate {
                true => values.sum::<f64>() / columns.iter().map(|column| column.to - column.from).sum::<f64>(),
                false => values.fold(f64::NAN, f64::max),
            };
            let at = place(&columns[0]);
            if found.is_finite() && at < 2 * MAX_MOMENTS {
                by_moment.resize(by_moment.len().max(at + 1), Vec::new());
                by_moment[at].push(found);
            }
        }
    }
    let moment = |(at, mut values): (usize, Vec<f64>)| {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = |n: usize| values[n / 2];
        let median = f64::midpoint(middle(values.len() - 1), middle(values.len()));
        let time = (at as f64 + 0.5) * width;
        (2 * values.len() >= courses.len()).then_some(Moment { time, median, low, high })
    };
    by_moment.into_iter().enumerate().filter_map(moment).collect()
}

/// Draws the moments of both arms. `None` if one has fewer than two.
fn picture(
    (title, y_title, unit): (&str, &str, AxisUnit),
    arms: &[Vec<Moment>; 2],
    names: &[String; 2],
) -> Option<Picture> {
    if arms.iter().any(|moments| moments.len() < 2) {
        return None;
    }
    let all = || arms.iter().flatten();
    let ends = all().flat_map(|moment| [moment.low, moment.high]);
    let x = ChartAxis::linear(
        "time since measuring began",
        AxisUnit::Seconds,
        all().map(|moment| moment.time).chain([0.0]),
    );
    let y = match unit {
        AxisUnit::Nanoseconds => ChartAxis::logarithmic(&format!("{y_title} (logarithmic)"), unit, ends),
        _ => ChartAxis::linear(y_title, unit, ends.chain([0.0])),
    };
    let mut chart = Chart::new(x, y);
    for (moments, class) in arms.iter().zip(ARM_CLASSES) {
        let area: Vec<(f64, f64, f64)> = moments.iter().map(|moment| (moment.time, moment.low, moment.high)).collect();
        chart.area(&area, class);
    }
    let mut rows = Vec::new();
    for ((moments, class), (arm, name)) in arms.iter().zip(ARM_CLASSES).zip(["A", "B"].into_iter().zip(names)) {
        chart.join(moments.iter().map(|moment| (moment.time, moment.median)), class);
        for moment in moments {
            let [median, low, high] = [moment.median, moment.low, moment.high].map(|value| unit.format(value));
            let time = AxisUnit::Seconds.format(moment.time);
            let title = format!("{name}, {time}, runs from {low} to {high}: median {median}");
            chart.plot(Symbol::Dot, &ChartPoint { x: moment.time, y: moment.median, class, title });
            rows.push((moment.time, [time, arm.to_owned(), median, format!("{low} to {high}")]));
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut table =
        SheetTable::new(&format!("{title}: {y_title}"), ["time", "arm", "median of the runs", "lowest to highest"]);
    rows.into_iter().for_each(|(_, cells)| table.row(cells));
    Some(Picture {
        title: title.to_owned(),
        note: String::new(),
        legend: vec![("a", names[0].clone()), ("b", names[1].clone())],
        drawing: chart.drawing(&format!("{title}, A and B")),
        table,
    })
}
