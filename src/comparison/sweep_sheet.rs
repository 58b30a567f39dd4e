//! What a sweep shows: a table of its points, and peak, knee and overall response time.

use super::formats::{ResultDocument, series};
use super::numbers::{figure, half_width, interval_text};
use super::phrases::ended;
use super::sweep::curve;
use super::{Caution, Sweep, SweepPoint, cautions, limit_table, limits};
use crate::analysis::{self, Estimate};
use crate::result::LimitVerdict;
use crate::sheet::{
    Answer, Figures, Media, NoteLabel, Series, Sheet, SheetBlock, SheetColumn, SheetTable, Tone, Usability,
};
use crate::util::count::{count, dash, grouped, measured, or_dash};
use crate::util::csv::cell;
use crate::util::printable;

/// The table of the points.
fn table(sweep: &Sweep) -> SheetTable {
    let numbers = SheetColumn::numbers;
    let mut columns = vec![numbers(&sweep.factor), numbers("runs"), numbers("failed").only(Media::PAGE)];
    let is_open = sweep.points.iter().any(|point| point.offered.is_some());
    if is_open {
        columns.extend([
            numbers("offered/s").only(Media::LINES),
            numbers("achieved/s").only(Media::LINES),
            numbers("offered requests/s").only(Media::PAGE),
            numbers("achieved requests/s").only(Media::PAGE),
        ]);
    }
    // The operations of a request are its details.
    let operations = numbers("ops/s");
    columns.extend([
        if sweep.is_of_requests() { operations.only(Media::PAGE) } else { operations },
        numbers("±").only(Media::LINES),
        numbers("95 % interval").only(Media::PAGE),
        numbers("mean response"),
    ]);
    for metric in &sweep.metrics {
        columns.extend([numbers(metric), numbers("95 % interval").only(Media::PAGE)]);
    }
    columns.extend([numbers("CPU"), SheetColumn::words("")]);
    let mut table = SheetTable::of("Points of the curve", columns);
    for (n, point) in sweep.points.iter().enumerate() {
        let mut cells = vec![point.level.clone(), grouped(point.runs), grouped(point.failed)];
        if is_open {
            let rates = [point.offered, point.achieved].map(|rate| or_dash(rate, |rate| figure("ops", rate)));
            cells.extend(rates.iter().chain(&rates).cloned());
        }
        cells.extend([
            or_dash(point.rate, |rate| figure("ops", rate.value)),
            or_dash(point.throughput(), |rate| half_width(rate.relative())),
            or_dash(point.throughput(), |rate| interval_text("ops", rate)),
            or_dash(point.response, |response| figure("latency.mean", response.value)),
        ]);
        for metric in &sweep.metrics {
            let found = point.figures.get(metric);
            cells.push(or_dash(found, |found| figure(metric, found.value)));
            cells.push(or_dash(found, |found| interval_text(metric, *found)));
        }
        cells.extend([or_dash(point.cpu_busy, |share| format!("{:.0} %", share * 100.0)), annotation(sweep, n, point)]);
        table.row(cells);
    }
    table
}

/// Curves over the same levels side by side, with the overall response time of each in the last line. `None` unless there
/// are several.
pub(super) fn curves_beside(curves: &[Sweep]) -> Option<SheetTable> {
    let [first, _, ..] = curves else { return None };
    let heads = |curve: &Sweep| {
        // With one factor its levels are clear.
        let name =
            curve.name.split_once('=').filter(|_| !curve.name.contains(',')).map_or(&*curve.name, |(_, level)| level);
        [format!("{name} ops/s"), "ms/op".to_owned(), "CPU".to_owned()]
    };
    let columns = std::iter::once(first.factor.clone()).chain(curves.iter().flat_map(heads));
    let title = format!("load curves over {}", first.factor);
    let columns = columns.map(|heading| SheetColumn::numbers(&heading));
    let mut table = SheetTable { title: title.clone(), is_compact: true, ..SheetTable::of(&title, columns) };
    for (n, point) in first.points.iter().enumerate() {
        let cells = |curve: &Sweep| {
            let Some(point) = curve.points.get(n) else { return [dash(), dash(), dash()] };
            let mark = match (point.is_overloaded, curve.is_peak(point)) {
                (true, true) => "*!",
                (true, false) => "!",
                (false, true) => "*",
                (false, false) => "",
            };
            curve_cells(point, mark)
        };
        table.row(std::iter::once(point.level.clone()).chain(curves.iter().flat_map(cells)));
    }
    let peak = |curve: &Sweep| {
        let point = curve.points.iter().find(|point| curve.is_peak(point));
        point.map_or_else(|| [dash(), dash(), dash()], |point| curve_cells(point, ""))
    };
    let ort = |curve: &Sweep| {
        let ort = or_dash(curve.overall, |overall| milliseconds(overall.ort));
        [String::new(), ort, String::new()]
    };
    table.sums.extend([table.rows.len(), table.rows.len() + 1]);
    table.row(std::iter::once("peak".to_owned()).chain(curves.iter().flat_map(peak)));
    table.row(std::iter::once("ORT".to_owned()).chain(curves.iter().flat_map(ort)));
    let is_overloaded = curves.iter().flat_map(|curve| &curve.points).any(|point| point.is_overloaded);
    let overloaded = if is_overloaded { "; !: overloaded, the response time grows with the run" } else { "" };
    let method = first.method.name();
    table.below = vec![format!("ORT: overall response time ({method}); *: peak{overloaded}")];
    Some(table)
}

/// The throughput of a point with a mark, its response time and the processors.
fn curve_cells(point: &SweepPoint, mark: &str) -> [String; 3] {
    [
        or_dash(point.throughput(), |rate| figure("ops", rate.value)) + mark,
        or_dash(point.response, |response| milliseconds(response.value)),
        or_dash(point.cpu_busy, |share| format!("{:.0} %", share * 100.0)),
    ]
}

/// A time in nanoseconds in the unit of the tables of SFS.
fn milliseconds(nanoseconds: f64) -> String {
    measured(nanoseconds / 1e6)
}

/// The last cell of a point: whether it is the peak or the knee, or overloaded, and its failures.
fn annotation(sweep: &Sweep, n: usize, point: &SweepPoint) -> String {
    let mut annotations = Vec::new();
    if sweep.is_peak(point) {
        annotations.push("peak".to_owned());
    }
    if sweep.knee == Some(n) {
        annotations.push("knee".to_owned());
    }
    if point.is_overloaded {
        annotations.push("overloaded".to_owned());
    }
    if let Some(failure) = &point.failure {
        annotations.push(format!("{} failed: {}", point.failed, printable::short(failure, 40)));
    }
    annotations.join(", ")
}

/// The answer of a search, or else of the curve.
fn result(sweep: &Sweep) -> String {
    match &sweep.capacity {
        Some(found) => found.text(&sweep.factor) + &ended(&sweep.validity.ended_by),
        None => of_curve(sweep),
    }
}

/// Peak, knee and overall response time, after what is missing.
fn of_curve(sweep: &Sweep) -> String {
    // The budget ended before all of the runs were made.
    let missing = sweep.missing_runs().map_or_else(String::new, |(made, planned)| {
        format!("not complete: {} of {}{}; ", grouped(made), count(planned, "run"), ended(&sweep.validity.ended_by))
    });
    let Some(overall) = sweep.overall else { return format!("failed: {missing}no run has a result") };
    let knee = match (sweep.knee.and_then(|n| sweep.points.get(n)), analysis::knee(&curve(&sweep.points))) {
        (Some(point), _) => format!("knee at {}={}", sweep.factor, point.level),
        (None, Err(why)) => format!("no knee ({})", why.about()),
        (None, Ok(_)) => "no knee".to_owned(),
    };
    // Results of earlier versions know the response time of operations only.
    let peak = sweep.points.iter().find(|point| sweep.is_peak(point));
    let requests = peak.and_then(|point| point.achieved).filter(|_| !sweep.is_of_requests());
    let requests = requests.map_or_else(String::new, |rate| format!(" ({} requests/s)", figure("ops", rate)));
    let of = if sweep.is_of_requests() { "requests" } else { "operations" };
    let at = peak.map_or_else(String::new, |point| format!(" at {}={}", sweep.factor, point.level));
    let width = peak.and_then(SweepPoint::throughput).filter(|rate| rate.relative().is_finite());
    let width = width.map_or_else(String::new, |rate| format!(" ± {}", half_width(rate.relative())));
    format!(
        "{missing}peak {} {of} per second{width}{requests}{at}; {knee}; overall response time {} ({})",
        figure("ops", overall.peak),
        figure("latency.mean", overall.ort),
        sweep.method.name()
    )
}

/// The relative half-width from which on a peak may as well be another level.
const WIDEST_PEAK: f64 = 0.5;

const DOUBTFUL_ORDER: &str =
    "the first value is the peak: the overall response time needs values in the order of their load";

/// The first levels and the last one.
fn shortened(levels: &[&str]) -> String {
    const SHOWN: usize = 8;
    match levels {
        [first @ .., last] if levels.len() > SHOWN => format!("{} … {last}", first[..SHOWN - 1].join(", ")),
        levels => levels.join(", "),
    }
}

/// The peak, and whether the curve may be used.
fn answer(sweep: &Sweep) -> Answer {
    let levels: Vec<&str> = sweep.points.iter().map(|point| point.level.as_str()).collect();
    let mut answer = Answer {
        about: format!("{} is {}.", sweep.factor, shortened(&levels)),
        result: result(sweep) + ".",
        conditions: sweep.validity.conditions.clone(),
        ..Answer::default()
    };
    let is_usable = match &sweep.capacity {
        Some(found) => found.code() != LimitVerdict::Unclear.code(),
        None => sweep.overall.is_some(),
    };
    answer.usability = Some(if is_usable { Usability::Usable } else { Usability::Unusable });
    answer
}

/// The doubt about a peak that the runs do not pin down.
pub(super) fn wide_peak(sweep: &Sweep) -> Option<Caution> {
    let peak = sweep.points.iter().find(|point| sweep.is_peak(point)).and_then(SweepPoint::throughput)?;
    let width = Some(peak.relative()).filter(|width| width.is_finite() && *width >= WIDEST_PEAK)?;
    let text = format!("the rate at the peak is known to ± {} only", half_width(width));
    Some(Caution::new(Usability::Unusable, text))
}

/// The reasons to distrust a curve that it shows itself.
fn doubts(sweep: &Sweep) -> Vec<Caution> {
    let mut found = Vec::new();
    if sweep.missing_runs().is_some() {
        found.push(Caution::new(Usability::WithCaution, "the runs ended before all were made"));
    }
    let failed: u64 = sweep.points.iter().map(|point| point.failed).sum();
    let last = sweep.points.iter().rev().find_map(|point| point.failure.as_ref());
    found.extend(
        last.map(|why| Caution::new(Usability::WithCaution, format!("{} failed: {why}", count(failed, "run")))),
    );
    // A search makes one run at most loads, and its peak is merely the greatest rate that was tried.
    if sweep.capacity.is_some() {
        return found;
    }
    let rates: Vec<Estimate> = sweep.points.iter().filter_map(SweepPoint::throughput).collect();
    let without = rates.iter().filter(|rate| !rate.relative().is_finite()).count();
    if without > 0 {
        let text = match without == rates.len() {
            true => "the points are without an interval, and may be chance".to_owned(),
            false => format!(
                "{without} of {} are without an interval, and may be chance",
                count(rates.len() as u64, "point")
            ),
        };
        found.push(Caution::new(Usability::WithCaution, text));
    }
    found.extend(wide_peak(sweep));
    if sweep.has_doubtful_order() {
        found.push(Caution::new(Usability::WithCaution, DOUBTFUL_ORDER));
    }
    found
}

impl ResultDocument for Sweep {
    fn sheet(&self) -> Sheet {
        let is_whole = self.overall.is_some() && self.missing_runs().is_none();
        let order = if self.has_doubtful_order() { format!("; {DOUBTFUL_ORDER}") } else { String::new() };
        let mut answer = if self.is_part { Answer::of_part(result(self) + &order) } else { answer(self) };
        let cautions: Vec<Caution> = self.validity.cautions.iter().cloned().chain(doubts(self)).collect();
        let notes = match self.is_part {
            true => self.notes.clone(),
            false => cautions::add(&mut answer, &cautions, &self.notes),
        };
        let notes = SheetBlock::messages(NoteLabel::Note, &notes);
        limits::add_to(&mut answer, &self.validity.limits);
        Sheet {
            title: self.name.clone(),
            checks: limits::checks(&self.factor, self.code(), &answer, &self.validity.limits),
            answer,
            tone: if is_whole { Tone::Neutral } else { Tone::Bad },
            blocks: std::iter::once(SheetBlock::Table(table(self)))
                .chain(limit_table(&self.validity.limits))
                .chain(notes)
                .collect(),
            ..Sheet::default()
        }
    }

    fn figures(&self) -> Figures {
        let of = |point: &SweepPoint| -> Option<Series> {
            let rate = point.rate?;
            let (levels, label) = (vec![point.level.clone()], format!("{}={}", self.factor, point.level));
            Some(Series { levels, label, ..series("ops", Some(rate), &[rate.value]) })
        };
        let further = self.points.iter().flat_map(|point| {
            point.figures.iter().map(|(metric, found)| {
                let (levels, label) = (vec![point.level.clone()], format!("{}={}", self.factor, point.level));
                Series { levels, label, ..series(metric, Some(*found), &[found.value]) }
            })
        });
        Figures {
            name: self.name.clone(),
            factors: vec![self.factor.clone()],
            series: self.points.iter().filter_map(of).chain(further).collect(),
            points: points(self),
            has_metrics: !self.metrics.is_empty(),
            ..Figures::default()
        }
    }
}

/// The lines of CSV.
fn points(sweep: &Sweep) -> Vec<Vec<String>> {
    const HEADINGS: [&str; 12] = [
        "name",
        "factor",
        "level",
        "runs",
        "failed",
        "offered",
        "ops",
        "ops_low",
        "ops_high",
        "response_ns",
        "cpu_busy",
        "achieved",
    ];
    let known = |value: Option<f64>| value.filter(|v| v.is_finite()).map_or_else(String::new, |v| v.to_string());
    let line = |point: &SweepPoint| {
        let rate = point.rate;
        let place = [&sweep.name, &sweep.factor, &point.level].map(|text| cell(text));
        let figures = [
            point.offered,
            rate.map(|rate| rate.value),
            rate.map(|rate| rate.low),
            rate.map(|rate| rate.high),
            point.response.map(|response| response.value),
            point.cpu_busy,
            point.achieved,
        ];
        let counts = [point.runs, point.failed].map(|n| n.to_string());
        let further = sweep.metrics.iter().flat_map(|metric| {
            let found = point.figures.get(metric);
            [found.map(|of| of.value), found.map(|of| of.low), found.map(|of| of.high)]
        });
        place.into_iter().chain(counts).chain(figures.into_iter().chain(further).map(known)).collect()
    };
    let further =
        sweep.metrics.iter().flat_map(|metric| ["", "_low", "_high"].map(|end| cell(&format!("{metric}{end}"))));
    std::iter::once(HEADINGS.map(str::to_owned).into_iter().chain(further).collect())
        .chain(sweep.points.iter().map(line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::formats::shown::{markdown, text};
    use super::super::sweep::sweep;
    use super::*;
    use crate::analysis::ResponseMethod;
    use crate::import::Observation;
    use std::collections::BTreeMap;

    /// A curve of one run at each of two rates. An open loop offers requests of two operations, of which it achieves
    /// all at the first rate and half at the second.
    fn curve(is_open: bool) -> Sweep {
        let run = |requests: f64, achieved: f64| {
            let mut figures = BTreeMap::from([("ops", 2.0 * achieved), ("latency.mean", 1e6), ("cpu_busy", 0.5)]);
            if is_open {
                figures.extend([("offered", requests), ("requests", achieved)]);
            }
            let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            vec![Observation { figures, ..Observation::default() }]
        };
        let levels = ["100", "400"].map(str::to_owned);
        sweep("x|y", "rate", &levels, &[run(100.0, 100.0), run(400.0, 200.0)], ResponseMethod::Sfs2)
    }

    #[test]
    fn the_formats_for_people_have_the_same_columns() {
        let (text, table) = (text(&curve(true)), markdown(&curve(true)));
        let cells = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).nth(2);
        let heads = ["rate", "runs", "offered/s", "achieved/s", "ops/s", "±", "mean", "response", "CPU"];
        assert_eq!(cells.as_deref(), Some(&heads[..]), "{text}");
        for line in [
            "| rate | runs | offered/s | achieved/s | ops/s | ± | mean response | CPU |  |\n",
            "| 400 | 1 | 400.0 | 200.0 | 400.0 | - | 1.00 ms | 50 % | peak |\n",
        ] {
            assert!(table.starts_with("**x\\|y** peak ") && table.contains(line), "{table}");
        }
        assert!(!markdown(&curve(false)).contains("offered/s"));
    }

    /// Requests of two operations: a curve of requests, if their response time is known.
    #[test]
    fn the_curve_of_an_open_loop_is_of_its_requests() {
        let run = |offered: f64, done: f64, response: f64, codes: &[&str]| {
            let figures = [
                ("ops", 2.0 * done),
                ("offered", offered),
                ("requests", done),
                ("requests.response.mean", response),
                ("response.mean", 0.6 * response),
            ];
            let figures = figures.map(|(name, value)| (name.to_owned(), value));
            let warnings = codes.iter().map(|code| (*code).to_owned()).collect();
            vec![Observation { figures: BTreeMap::from(figures), warnings, ..Observation::default() }]
        };
        let levels = ["100", "200", "400"].map(str::to_owned);
        let runs = [run(100.0, 100.0, 2e6, &[]), run(200.0, 200.0, 4e6, &[]), run(400.0, 160.0, 9e6, &["unstable"])];
        let found = sweep("x", "load", &levels, &runs, ResponseMethod::Sfs2);
        let text = text(&found);
        let row = |at: usize| text.lines().nth(at).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let heads = ["load", "runs", "offered/s", "achieved/s", "±", "mean", "response", "CPU"];
        assert_eq!(row(2).as_deref(), Some(&heads[..]), "{text}");
        assert!(text.contains("200.0       200.0  -        4.00 ms    -  peak, knee\n"), "{text}");
        assert!(text.contains("160.0  -        9.00 ms    -  overloaded\n"), "{text}");
        // By hand: 2 ms down to no load, then a trapezoid: (2 × 100 + 3 × 100) / 200.
        assert!(result(&found).starts_with("peak 200.0 requests per second at load=200;"), "{}", result(&found));
        assert!(result(&found).contains("overall response time 2.50 ms (sfs2)"), "{}", result(&found));
    }

    /// The peak is in operations, the loads of an open loop are in requests.
    #[test]
    fn the_peak_of_an_open_loop_has_its_requests() {
        let (open, closed) = (result(&curve(true)), result(&curve(false)));
        let peak = "peak 400.0 operations per second";
        assert!(open.starts_with(&format!("{peak} (200.0 requests/s) at rate=400; no knee")), "{open}");
        assert!(closed.starts_with(&format!("{peak} at rate=400; no knee")), "{closed}");
    }
}
