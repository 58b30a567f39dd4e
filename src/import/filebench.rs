//! Reads the output of Filebench 1.4 and 1.5: one observation for each run, with the flowops of the breakdown before
//! its `IO Summary`.
//!
//! A run ends with the line `Run took`, and its report follows this line. The summaries before it are interim reports
//! of `psrun`, which are no independent observations. With a negative period each report covers its period only, also
//! the last one: such an output has no figures of the run. In an output without this line, such as that of a script that
//! sleeps and takes a snapshot, each summary is an observation.

use super::{MAX_OBSERVATIONS, Observation, TOO_MANY, numbered};
use crate::util::printable;
use std::collections::BTreeMap;

/// The maximum number of figures in an output, of all runs and flowops together.
const MAX_FIGURES: usize = 1 << 20;

/// The units in Filebench's output: the unit, the figure that has it, and the factor to the unit of that figure here.
const UNITS: [(&str, &str, f64); 4] =
    [("ops/s", "ops", 1.0), ("mb/s", "mib", 1.0), ("ms/op", "latency.mean", 1e6), ("ms", "latency.mean", 1e6)];

/// Reads all runs of an output. Returns an error when there is no complete `IO Summary`, or when there are too many
/// runs or figures.
pub(super) fn observations(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    let mut found: Vec<BTreeMap<String, f64>> = Vec::new();
    let mut flowops = BTreeMap::new();
    let mut in_breakdown = false;
    let mut count = 0;
    let has_ends = text.lines().any(|line| ended(line).is_some());
    let mut seconds = None;
    let mut is_of_run = !has_ends;
    // The counts of reports that cover the run so far never fall.
    let mut count_before = 0.0;
    for line in text.lines() {
        // Filebench 1.5 starts its lines with the seconds since the start of the program.
        let line = line.split_once(": ").filter(|(at, _)| number(at).is_some()).map_or(line, |(_, rest)| rest);
        if let Some((_, summary)) = line.split_once("IO Summary:") {
            let mut figures = std::mem::take(&mut flowops);
            in_breakdown = false;
            let operations = summary.split_whitespace().next().and_then(number).unwrap_or(count_before);
            if has_ends && operations < count_before {
                let why =
                    "each of its reports covers a period of a run (`psrun` with a negative period), and none the run";
                return Err(why.to_owned());
            }
            count_before = if is_of_run { 0.0 } else { operations };
            if !std::mem::replace(&mut is_of_run, !has_ends) {
                continue;
            }
            let run_figures = figures_of(summary);
            if !run_figures.iter().any(|(name, _)| *name == "ops") {
                let summary = printable::short(summary, 80);
                return Err(format!("`IO Summary:{summary}` has no operations per second"));
            }
            if found.len() == MAX_OBSERVATIONS {
                return Err(TOO_MANY.to_owned());
            }
            figures.extend(run_figures.into_iter().map(|(name, value)| (name.to_owned(), value)));
            figures.extend(seconds.take().map(|seconds| ("seconds".to_owned(), seconds)));
            found.push(figures);
        } else if let Some(text) = ended(line) {
            (is_of_run, in_breakdown) = (true, false);
            seconds = text.split_whitespace().next().and_then(number);
        } else if line.contains("Per-Operation Breakdown") || line.starts_with("Flowop totals:") {
            in_breakdown = true;
            flowops.clear();
        } else if in_breakdown && let Some((name, rest)) = line.trim().split_once(char::is_whitespace) {
            let found = figures_of(rest);
            count += found.len();
            if count > MAX_FIGURES {
                return Err("it has too many flowops".to_owned());
            }
            add(&mut flowops, name, &found);
        }
    }
    if found.is_empty() {
        return Err("it has no complete `IO Summary`".to_owned());
    }
    let all = found.len();
    let observation = |(n, figures)| Observation {
        source: numbered(source, n, all),
        figures,
        is_rounded: true,
        ..Observation::default()
    };
    Ok(found.into_iter().enumerate().map(observation).collect())
}

/// Returns the time in a line that says that a run has ended, `3 seconds...` of `4.021: Run took 3 seconds...`, in 1.4 also
/// with the number of the process before it. `None` for other lines.
fn ended(line: &str) -> Option<&str> {
    line.rsplit(": ").next()?.strip_prefix("Run took ")
}

/// Adds the figures of a flowop. Those of several flowops with the same name are sums; the latency is the mean over
/// their operations.
fn add(flowops: &mut BTreeMap<String, f64>, name: &str, figures: &[(&'static str, f64)]) {
    const LATENCY: &str = "latency.mean";
    let key = |figure: &str| format!("{name}.{figure}");
    let new = |figure: &str| figures.iter().find(|(other, _)| *other == figure).map(|(_, value)| *value);
    let old_ops = flowops.get(&key("ops")).copied();
    for (figure, value) in figures {
        let known = flowops.entry(key(figure)).or_insert(if *figure == LATENCY { *value } else { 0.0 });
        if *figure != LATENCY {
            *known += value;
        } else if let (Some(old), Some(new)) = (old_ops, new("ops"))
            && old + new > 0.0
        {
            *known = (*known * old + value * new) / (old + new);
        }
    }
}

/// Returns the figures of a line: the first number for each known unit, with or without a space before the unit.
fn figures_of(line: &str) -> Vec<(&'static str, f64)> {
    let mut found: Vec<(&'static str, f64)> = Vec::new();
    let mut before = None;
    for word in line.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '[' | ']')) {
        let cut = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
        let (value, unit) = word.split_at(cut);
        let value = if value.is_empty() { before } else { number(value) };
        let figure = UNITS.iter().find(|(name, ..)| *name == unit);
        if let (Some((_, figure, factor)), Some(value)) = (figure, value)
            && !found.iter().any(|(name, _)| name == figure)
        {
            found.push((figure, value * factor));
        }
        before = if unit.is_empty() { value } else { None };
    }
    found
}

/// Parses a finite number.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}
