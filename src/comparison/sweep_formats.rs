//! The formats of sweeps for people and for programs.

use super::formats::{csv_cell, go_units, go_value, json_text, notes_markdown, notes_text};
use super::numbers::{dash, figure, half_width};
use super::sweep::curve;
use super::{Sweep, SweepPoint};
use crate::analysis;
use crate::util::count::count;
use crate::util::go_bench;
use crate::util::markdown::literal;
use crate::util::printable;
use crate::util::table::{Align, Table};
use serde_json::json;

/// Formats a sweep as a table of its points. The last line gives the peak, the knee and the overall response time.
pub(super) fn text(sweep: &Sweep) -> String {
    let (name, notes) = (printable::line(&sweep.name), notes_text(&sweep.notes));
    format!("{name}\n\n{}{notes}\n{}\n", table(sweep).render(), printable::line(&ending(sweep)))
}

/// Returns the table of the points.
fn table(sweep: &Sweep) -> Table {
    let mut columns = vec![(sweep.factor.as_str(), Align::Right), ("runs", Align::Right)];
    let offered = sweep.points.iter().any(|point| point.offered.is_some());
    if offered {
        columns.extend([("offered/s", Align::Right), ("achieved/s", Align::Right)]);
    }
    columns.extend([
        ("ops/s", Align::Right),
        ("±", Align::Right),
        ("mean response", Align::Right),
        ("CPU", Align::Right),
        ("", Align::Left),
    ]);
    let mut table = Table::new(columns);
    for (n, point) in sweep.points.iter().enumerate() {
        let mut cells = vec![point.level.clone(), point.runs.to_string()];
        if offered {
            let rate = |rate: Option<f64>| rate.map_or_else(dash, |rate| figure("ops", rate));
            cells.extend([rate(point.offered), rate(point.achieved)]);
        }
        cells.extend([
            point.rate.map_or_else(dash, |rate| figure("ops", rate.value)),
            point.rate.map_or_else(dash, |rate| half_width(rate.relative())),
            point.response.map_or_else(dash, |response| figure("latency.mean", response.value)),
            point.cpu_busy.map_or_else(dash, |share| format!("{:.0} %", share * 100.0)),
            annotation(sweep, n, point),
        ]);
        table.row(cells);
    }
    table
}

/// Returns the last cell of a point: whether it is the peak or the knee, and its failures.
fn annotation(sweep: &Sweep, n: usize, point: &SweepPoint) -> String {
    let mut annotations = Vec::new();
    if sweep.is_peak(point) {
        annotations.push("peak".to_owned());
    }
    if sweep.knee == Some(n) {
        annotations.push("knee".to_owned());
    }
    if let Some(failure) = &point.failure {
        annotations.push(format!("{} failed: {}", point.failed, printable::short(failure, 40)));
    }
    annotations.join(", ")
}

/// Returns the last line: whether runs are missing, then peak, knee and overall response time, and whether the order of
/// the points is doubtful.
pub fn ending(sweep: &Sweep) -> String {
    // The budget ended before all of the runs were made.
    let missing = sweep
        .missing_runs()
        .map_or_else(String::new, |(made, planned)| format!("not complete: {made} of {}; ", count(planned, "run")));
    let Some(overall) = sweep.overall else { return format!("{missing}no point has results") };
    let knee = match (sweep.knee.and_then(|n| sweep.points.get(n)), analysis::knee(&curve(&sweep.points))) {
        (Some(point), _) => format!("knee at {}={}", sweep.factor, point.level),
        (None, Err(why)) => format!("no knee ({})", why.about()),
        (None, Ok(_)) => "no knee".to_owned(),
    };
    // The loads of an open loop are requests, of which each may consist of several operations.
    let requests = sweep.points.iter().find(|point| sweep.is_peak(point)).and_then(|point| point.achieved);
    let requests = requests.map_or_else(String::new, |rate| format!(" ({} requests/s)", figure("ops", rate)));
    let order = match sweep.has_doubtful_order() {
        true => "; the first value is the peak: the overall response time needs values in the order of their load",
        false => "",
    };
    format!(
        "{missing}peak {} ops/s{requests}, {knee}, overall response time {} ({}){order}",
        figure("ops", overall.peak),
        figure("latency.mean", overall.ort),
        sweep.method.name()
    )
}

pub(super) fn markdown(sweep: &Sweep) -> String {
    let (name, ending) = (literal(&sweep.name), literal(&ending(sweep)));
    format!("**{name}** {ending}\n\n{}{}", table(sweep).markdown(), notes_markdown(&sweep.notes))
}

pub(super) fn csv(sweep: &Sweep) -> String {
    let mut text =
        "name,factor,level,runs,failed,offered,ops,ops_low,ops_high,response_ns,cpu_busy,achieved\n".to_owned();
    let known = |value: Option<f64>| value.filter(|v| v.is_finite()).map_or_else(String::new, |v| v.to_string());
    for point in &sweep.points {
        let cells = [
            csv_cell(&sweep.name),
            csv_cell(&sweep.factor),
            csv_cell(&point.level),
            point.runs.to_string(),
            point.failed.to_string(),
            known(point.offered),
            known(point.rate.map(|rate| rate.value)),
            known(point.rate.map(|rate| rate.low)),
            known(point.rate.map(|rate| rate.high)),
            known(point.response.map(|response| response.value)),
            known(point.cpu_busy),
            known(point.achieved),
        ];
        text += &(cells.join(",") + "\n");
    }
    text
}

pub(super) fn benchstat(sweep: &Sweep) -> String {
    let line = |point: &SweepPoint| {
        let name = format!(
            "{}/{}={}",
            go_bench::name(&sweep.name),
            go_bench::part(&sweep.factor),
            go_bench::part(&point.level)
        );
        Some(format!("{name} {}\n", go_value("ops", point.rate?.value)))
    };
    go_units(std::iter::once("ops")) + &sweep.points.iter().filter_map(line).collect::<String>()
}

pub(super) fn bencher(sweep: &Sweep) -> String {
    let of = |point: &SweepPoint| {
        let name = format!("{} {}={}", sweep.name, sweep.factor, point.level);
        Some((name, json!({ "ops": { "value": point.rate?.value } })))
    };
    json_text(&sweep.points.iter().filter_map(of).collect::<serde_json::Map<_, _>>())
}

#[cfg(test)]
mod tests {
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
                figures.extend([("offered", requests), ("achieved", achieved)]);
            }
            let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            vec![Observation { figures, ..Observation::default() }]
        };
        let levels = ["100", "400"].map(str::to_owned);
        sweep("x|y", "rate", &levels, &[run(100.0, 100.0), run(400.0, 200.0)], ResponseMethod::Sfs2)
    }

    #[test]
    fn the_formats_for_people_have_the_same_columns() {
        let (text, markdown) = (text(&curve(true)), markdown(&curve(true)));
        let cells = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).nth(2);
        let heads = ["rate", "runs", "offered/s", "achieved/s", "ops/s", "±", "mean", "response", "CPU"];
        assert_eq!(cells.as_deref(), Some(&heads[..]), "{text}");
        for line in [
            "| rate | runs | offered/s | achieved/s | ops/s | ± | mean response | CPU |  |\n",
            "| 400 | 1 | 400.0 | 200.0 | 400.0 | - | 1.00 ms | 50 % | peak |\n",
        ] {
            assert!(markdown.starts_with("**x\\|y** peak ") && markdown.contains(line), "{markdown}");
        }
        assert!(!super::markdown(&curve(false)).contains("offered/s"));
    }

    /// The peak is in operations, the loads of an open loop are in requests.
    #[test]
    fn the_peak_of_an_open_loop_has_its_requests() {
        let (open, closed) = (ending(&curve(true)), ending(&curve(false)));
        assert!(open.starts_with("peak 400.0 ops/s (200.0 requests/s), no knee"), "{open}");
        assert!(closed.starts_with("peak 400.0 ops/s, no knee"), "{closed}");
    }
}
