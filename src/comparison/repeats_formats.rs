//! The formats of repeats for people and for programs.

use super::formats::{csv_cell, go_units, go_value, json_text, notes_markdown, notes_text};
use super::numbers::{dash, figure, half_width, percent};
use super::{RepeatedMetric, Repeats};
use crate::util::count::count;
use crate::util::go_bench;
use crate::util::markdown::literal;
use crate::util::printable;
use crate::util::table::{Align, Table};
use serde_json::json;

pub(super) fn csv(repeats: &Repeats) -> String {
    let mut text = "name,run,metric,value\n".to_owned();
    for metric in &repeats.metrics {
        for (n, value) in metric.values.iter().enumerate() {
            text += &format!("{},{},{},{value}\n", csv_cell(&repeats.name), n + 1, csv_cell(&metric.metric));
        }
    }
    text
}

pub(super) fn benchstat(repeats: &Repeats) -> String {
    let line = |metric: &RepeatedMetric, value: &f64| {
        format!(
            "{}/{} {}\n",
            go_bench::name(&repeats.name),
            go_bench::part(&metric.metric),
            go_value(&metric.metric, *value)
        )
    };
    let lines = repeats.metrics.iter().flat_map(|m| m.values.iter().map(move |v| line(m, v)));
    go_units(repeats.metrics.iter().map(|m| m.metric.as_str())) + &lines.collect::<String>()
}

pub(super) fn bencher(repeats: &Repeats) -> String {
    let of = |m: &RepeatedMetric| {
        let mean = m.estimate.mean;
        let measure = match m.estimate.interval().ends_from_zero() {
            Some((low, high)) => json!({ "value": mean, "lower_value": low, "upper_value": high }),
            None => json!({ "value": mean }),
        };
        (m.metric.clone(), measure)
    };
    json_text(&json!({ repeats.name.clone(): repeats.metrics.iter().map(of).collect::<serde_json::Map<_, _>>() }))
}

/// Returns the table of the estimates.
fn table(repeats: &Repeats) -> Table {
    let mut table = Table::new([
        ("metric", Align::Left),
        ("runs", Align::Right),
        ("mean", Align::Right),
        ("95 % interval", Align::Right),
        ("±", Align::Right),
        ("effective sample size", Align::Right),
        ("trend", Align::Right),
    ]);
    for metric in &repeats.metrics {
        let e = &metric.estimate;
        let value = |v| figure(&metric.metric, v);
        let ends = e.interval().ends_from_zero();
        let interval = ends.map_or_else(dash, |(low, high)| format!("{} … {}", value(low), value(high)));
        let half = half_width(metric.relative_half_width);
        let trend = metric.trend.map_or_else(dash, |change| format!("{:+.1} %", change * 100.0));
        let effective = format!("{:.1}", e.effective_n);
        table.row([metric.metric.clone(), e.n.to_string(), value(e.mean), interval, half, effective, trend]);
    }
    table
}

/// Returns the last line: the state in which the series ended.
fn ending(repeats: &Repeats) -> String {
    let n = count(repeats.metrics.first().map_or(0, |metric| metric.estimate.n), "run");
    let state = repeats.state.name();
    match repeats.target {
        Some(target) => format!("{state} after {n}, for intervals of ± {}", percent(target)),
        None => format!("{state} after {n}"),
    }
}

/// Formats repeats as text. The last line gives the state in which the series ended.
pub(super) fn text(repeats: &Repeats) -> String {
    let mut text = format!("{}\n\n{}", printable::line(&repeats.name), table(repeats).render());
    text += &notes_text(&repeats.notes);
    text + &format!("\n{}\n", ending(repeats))
}

pub(super) fn markdown(repeats: &Repeats) -> String {
    let (name, ending) = (literal(&repeats.name), ending(repeats));
    format!("**{name}** {ending}\n\n{}{}", table(repeats).markdown(), notes_markdown(&repeats.notes))
}
