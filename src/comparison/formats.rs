//! The formats of comparisons and repeats for people and for programs.

use super::{Comparison, DifferenceKind, RepeatedMetric, Repeats, Sweep, sweep_formats};
use crate::analysis::{ComparisonVerdict, Direction, Estimate, SampleSummary};
use crate::import::Metric;
use crate::util::count::{count, measured};
use crate::util::duration::latency;
use crate::util::printable;
use crate::util::table::{Align, Table};
use serde_json::{Value, json};

/// A format of the three documents.
pub struct ComparisonFormat {
    /// The name for `--format`.
    pub name: &'static str,
    /// The description for `--help`, one line.
    pub about: &'static str,
    /// Formats a comparison.
    pub comparison: fn(&Comparison) -> String,
    /// Formats repeats.
    pub repeats: fn(&Repeats) -> String,
    /// Formats a sweep.
    pub sweep: fn(&Sweep) -> String,
}

/// All formats.
pub static FORMATS: &[ComparisonFormat] = &[
    ComparisonFormat {
        name: "text",
        about: "for people",
        comparison: text,
        repeats: repeats_text,
        sweep: sweep_formats::text,
    },
    ComparisonFormat {
        name: "markdown",
        about: "for a pull request",
        comparison: markdown,
        repeats: repeats_markdown,
        sweep: sweep_formats::markdown,
    },
    ComparisonFormat {
        name: "json",
        about: "the complete document",
        comparison: |comparison| json_text(comparison),
        repeats: |repeats| json_text(repeats),
        sweep: |sweep| json_text(sweep),
    },
    ComparisonFormat {
        name: "csv",
        about: "one observation per line; for a sweep one point per line",
        comparison: csv,
        repeats: repeats_csv,
        sweep: sweep_formats::csv,
    },
    ComparisonFormat {
        name: "benchstat",
        about: "Go's benchmark lines, for benchstat",
        comparison: benchstat,
        repeats: repeats_benchstat,
        sweep: sweep_formats::benchstat,
    },
    ComparisonFormat {
        name: "bencher",
        about: "Bencher's metric format, JSON",
        comparison: bencher,
        repeats: repeats_bencher,
        sweep: sweep_formats::bencher,
    },
];

/// Returns the format with this name, or `None` when there is none.
pub fn find_format(name: &str) -> Option<&'static ComparisonFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Formats a document as indented JSON.
pub(super) fn json_text(document: &impl serde::Serialize) -> String {
    // Floats that are not finite become null. JSON escapes control characters in names.
    serde_json::to_string_pretty(document).map_or_else(|e| e.to_string(), |text| text + "\n")
}

/// Formats a value of a metric, with a unit for times.
pub(super) fn figure(metric: &str, value: f64) -> String {
    let time = metric.parse::<Metric>().is_ok_and(|metric| metric.is_time());
    match value.is_finite() {
        false => "-".to_owned(),
        true if time && value >= 0.0 => latency(value),
        true if time => format!("-{}", latency(-value)),
        true => measured_signed(value),
    }
}

/// Formats a number that may be negative.
fn measured_signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", measured(-value)) } else { measured(value) }
}

/// Formats a ratio with its interval.
fn ratio(ratio: Estimate) -> String {
    match (ratio.value.is_finite(), ratio.low.is_nan() || ratio.high.is_nan()) {
        (true, false) => format!("{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high),
        (true, true) => format!("{:.3} [-, -]", ratio.value),
        (false, _) => "unknown".to_owned(),
    }
}

/// Formats a p-value. Very small values are printed as in R, as `< 2.2e-16`.
fn probability(p: f64) -> String {
    match p {
        p if p.is_nan() => "-".to_owned(),
        p if p < 2.2e-16 => "< 2.2e-16".to_owned(),
        p if p < 1e-4 => format!("{p:.3e}"),
        p => format!("{p:.4}"),
    }
}

/// Formats degrees of freedom: as a whole number, or with three decimals.
fn degrees(df: f64) -> String {
    if df.fract() == 0.0 { format!("{df:.0}") } else { format!("{df:.3}") }
}

/// Formats a fraction as a percentage with one decimal; below 1 % with up to two significant digits.
pub fn percent(share: f64) -> String {
    let percentage = share * 100.0;
    if percentage == 0.0 || percentage.abs() >= 1.0 || !percentage.is_finite() {
        return format!("{percentage:.1} %");
    }
    // The first significant digit of 0.03 is the second decimal.
    let decimals = (-percentage.abs().log10().floor()) as usize + 1;
    let text = format!("{percentage:.decimals$}");
    let short = text.trim_end_matches('0');
    format!("{short}{} %", if short.ends_with('.') { "0" } else { "" })
}

/// Returns the name of a metric, with its direction if less is better.
fn with_direction(metric: &str) -> String {
    match metric.parse::<Metric>().map(|metric| metric.direction()) {
        Ok(Direction::LowerIsBetter) => format!("{metric} (lower is better)"),
        _ => metric.to_owned(),
    }
}

/// Formats a value of a metric with its unit.
fn with_unit(metric: &str, value: f64) -> String {
    let unit = match metric.rsplit('.').next() {
        Some("ops") if value.is_finite() => " ops/s",
        Some("mib") if value.is_finite() => " MiB/s",
        _ => "",
    };
    format!("{}{unit}", figure(metric, value))
}

/// Formats the standard deviation of a sample, which a single observation does not have.
fn deviation(metric: &str, sample: &SampleSummary) -> String {
    if sample.n < 2 { "-".to_owned() } else { figure(metric, sample.variance.sqrt()) }
}

/// Returns the verdict as a sentence without a full stop.
fn sentence(comparison: &Comparison) -> String {
    let tolerance = percent(comparison.tolerance);
    let limit = match comparison.verdict {
        ComparisonVerdict::Better => format!("B is better than A by more than {tolerance}"),
        ComparisonVerdict::Worse => format!("B is worse than A by more than {tolerance}"),
        ComparisonVerdict::Same => format!("A and B are the same within {tolerance}"),
        ComparisonVerdict::NotWorse => format!("B is not worse than A by more than {tolerance}"),
        ComparisonVerdict::Unclear => "the interval is too wide for a verdict".to_owned(),
        ComparisonVerdict::Invalid => "the control shows that the machine changed between the arms".to_owned(),
    };
    let direction = if comparison.higher_is_better { "" } else { ", lower is better" };
    let (name, ratio, metric) = (comparison.verdict.name(), ratio(comparison.ratio), &comparison.metric);
    format!("{name}: {limit} (B/A {ratio} of {metric}{direction})")
}

/// Returns the lines of a comparison, each with its label.
fn lines(comparison: &Comparison) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
    let better = if comparison.higher_is_better { "higher is better" } else { "lower is better" };
    line("metric", format!("{} ({better})", comparison.metric));
    line("B/A", format!("{}, 95 % interval", ratio(comparison.ratio)));
    if let Some(look) = comparison.look {
        line("look", format!("after {} blocks, one-sided error probability {}", look.blocks, percent(look.one_sided)));
    }
    let test = &comparison.test;
    if test.t.is_finite() || test.p == 0.0 {
        let name = match test.name.as_str() {
            "t on blocks" => format!("paired t-test over {} blocks", degrees(test.df + 1.0)),
            "Welch" => "Welch's t-test".to_owned(),
            name => name.to_owned(),
        };
        line("test", format!("{name}: t {:.3}, {} df, p {}", test.t, degrees(test.df), probability(test.p)));
    }
    if let Some(sign) = comparison.sign {
        line("sign test", ratio(sign));
    }
    let difference = comparison.difference;
    if difference.value.is_finite() {
        let of = |value| with_unit(&comparison.metric, value);
        line("B − A", format!("{} [{}, {}]", of(difference.value), of(difference.low), of(difference.high)));
    }
    if let Some(study) = &comparison.study {
        let (f, t) = (&study.f, &study.t);
        let level = percent(study.level);
        line(
            "F-test",
            format!(
                "F {:.4} on {} and {} df, p {}, {level} interval of the ratio of variances [{:.7}, {:.7}]",
                f.value,
                f.df1,
                f.df2,
                probability(f.p),
                f.low,
                f.high
            ),
        );
        let kind = if t.kind == crate::analysis::TTestKind::Welch { "Welch" } else { "pooled" };
        line(
            "t-test",
            format!(
                "{kind}: t {:.4} on {} df, p {}, {level} interval of A − B [{:.3}, {:.3}]",
                t.value,
                degrees(t.df),
                probability(t.p),
                t.low,
                t.high
            ),
        );
    }
    let detectable = comparison.could_have_seen.map(|loss| format!("{} (with a probability of 80 %)", percent(loss)));
    let none = if comparison.ratio.low.is_finite() { "more than 99.9 %" } else { "no loss: too few runs" };
    line("detectable loss", detectable.unwrap_or_else(|| none.to_owned()));
    if let Some(needed) = comparison.runs_needed {
        line("runs needed", format!("{needed} in total, to find equal sides not worse with a probability of 80 %"));
    }
    if let Some(floor) = comparison.floor {
        let sessions = count(floor.sessions, "session");
        line("noise floor", format!("± {} in {sessions} without a change", percent(floor.share)));
    }
    if let Some(control) = comparison.control {
        let half = (control.ratio.high - control.ratio.low) / 2.0;
        let changed = match control.moved {
            true => "changed".to_owned(),
            false if half <= comparison.tolerance => "did not change".to_owned(),
            false => format!("unknown, too few runs for a tolerance of {}", percent(comparison.tolerance)),
        };
        line("control", format!("{changed}: {}, 99.9 % interval", ratio(control.ratio)));
    }
    lines
}

/// Returns the table of both samples.
fn samples(comparison: &Comparison) -> Table {
    let mut table = Table::new([
        ("side", Align::Left),
        ("runs", Align::Right),
        ("mean", Align::Right),
        ("median", Align::Right),
        ("std dev", Align::Right),
        ("", Align::Left),
    ]);
    for (side, of) in [("A", &comparison.a), ("B", &comparison.b)] {
        let SampleSummary { n, mean, median, .. } = of.sample;
        let value = |v| figure(&comparison.metric, v);
        table.row([
            side.to_owned(),
            n.to_string(),
            value(mean),
            value(median),
            deviation(&comparison.metric, &of.sample),
            of.name.clone(),
        ]);
    }
    table
}

/// Returns the table of differing conditions, or `None` when there are none.
fn differing(comparison: &Comparison) -> Option<Table> {
    let mut table = Table::new([("differs", Align::Left), ("A", Align::Left), ("B", Align::Left)]);
    for difference in &comparison.differs {
        let note = if difference.kind == DifferenceKind::Workload { " (should be equal)" } else { "" };
        table.row([format!("{}{note}", difference.what), short(&difference.a), short(&difference.b)]);
    }
    (!table.is_empty()).then_some(table)
}

fn short(text: &str) -> String {
    printable::short(text, 60).into_owned()
}

/// Returns the table of figures that changed together with the metric, or `None` when there are none.
fn changed_figures(comparison: &Comparison) -> Option<Table> {
    let mut table =
        Table::new([("also changed", Align::Left), ("A", Align::Right), ("B", Align::Right), ("p", Align::Right)]);
    for change in &comparison.causes {
        table.row([change.name.clone(), small(change.a), small(change.b), probability(change.p)]);
    }
    (!table.is_empty()).then_some(table)
}

/// Formats a number with three decimals if it is below 1.
fn small(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 { format!("{value:.3}") } else { measured_signed(value) }
}

/// Returns the table of other metrics, or `None` when there are none.
fn others(comparison: &Comparison) -> Option<Table> {
    let mut table = Table::new([("other metrics", Align::Left), ("B/A", Align::Left), ("p, corrected", Align::Right)]);
    for other in &comparison.others {
        table.row([with_direction(&other.metric), ratio(other.ratio), probability(other.p)]);
    }
    (!table.is_empty()).then_some(table)
}

/// Formats a comparison as text, with the verdict as its last line.
fn text(comparison: &Comparison) -> String {
    let mut text = format!("{}\n\n", printable::line(&comparison.name));
    if let Some(table) = differing(comparison) {
        text += &(table.render() + "\n");
    }
    text += &(samples(comparison).render() + "\n");
    let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
    lines(comparison).into_iter().for_each(|(name, line)| _ = table.row([name, line]));
    text += table.render().trim_start_matches('\n');
    for table in [changed_figures(comparison), others(comparison)].into_iter().flatten() {
        text += &format!("\n{}", table.render());
    }
    for note in &comparison.notes {
        text += &format!("\nnote: {}", printable::line(note));
    }
    if !comparison.notes.is_empty() {
        text.push('\n');
    }
    text + &format!("\n{}\n", sentence(comparison))
}

fn markdown(comparison: &Comparison) -> String {
    let cell = |text: &str| printable::line(text).replace('|', "\\|").replace('<', "&lt;");
    let mut text = format!("**{}** {}\n\n", cell(&comparison.name), cell(&sentence(comparison)));
    text += "| side | runs | mean | median | std dev |\n|---|--:|--:|--:|--:|\n";
    for (side, of) in [("A", &comparison.a), ("B", &comparison.b)] {
        let value = |v| figure(&comparison.metric, v);
        let SampleSummary { n, mean, median, .. } = of.sample;
        let deviation = deviation(&comparison.metric, &of.sample);
        let name = cell(&of.name);
        text += &format!("| {side}: {name} | {n} | {} | {} | {} |\n", value(mean), value(median), deviation);
    }
    text += "\n| | |\n|---|---|\n";
    for (name, line) in lines(comparison) {
        text += &format!("| {} | {} |\n", cell(&name), cell(&line));
    }
    let mut rows = |head: &str, rows: Vec<[String; 3]>| {
        if !rows.is_empty() {
            text += &format!("\n{head}\n|---|---|---|\n");
            rows.iter().for_each(|[a, b, c]| text += &format!("| {} | {} | {} |\n", cell(a), cell(b), cell(c)));
        }
    };
    let differs = comparison.differs.iter().map(|d| [d.what.clone(), short(&d.a), short(&d.b)]);
    rows("| differs | A | B |", differs.collect());
    let causes = comparison.causes.iter().map(|c| [c.name.clone(), small(c.a), small(c.b)]);
    rows("| also changed | A | B |", causes.collect());
    let others = comparison.others.iter().map(|o| [with_direction(&o.metric), ratio(o.ratio), probability(o.p)]);
    rows("| other metrics | B/A | p, corrected |", others.collect());
    for note in &comparison.notes {
        text += &format!("\n{}\n", cell(note));
    }
    text
}

/// Formats a cell of CSV: control characters are escaped, and text with a comma or a quote is quoted.
pub(super) fn csv_cell(text: &str) -> String {
    let text = printable::line(text);
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

fn csv(comparison: &Comparison) -> String {
    let mut text = "name,side,run,metric,value\n".to_owned();
    for (side, of) in [("A", &comparison.a), ("B", &comparison.b)] {
        for (n, value) in of.values.iter().enumerate() {
            let (name, metric) = (csv_cell(&comparison.name), csv_cell(&comparison.metric));
            text += &format!("{name},{side},{},{metric},{value}\n", n + 1);
        }
    }
    text
}

fn repeats_csv(repeats: &Repeats) -> String {
    let mut text = "name,run,metric,value\n".to_owned();
    for metric in &repeats.metrics {
        for (n, value) in metric.values.iter().enumerate() {
            text += &format!("{},{},{},{value}\n", csv_cell(&repeats.name), n + 1, csv_cell(&metric.metric));
        }
    }
    text
}

/// Converts a name to the form of Go's benchmarks, which must not contain spaces.
pub(super) fn go_name(name: &str) -> String {
    let mut text = String::from("Benchmark");
    let mut upper = true;
    for c in name.chars() {
        match c.is_alphanumeric() {
            true if upper => text.extend(c.to_uppercase()),
            true => text.push(c),
            false if c == '_' || c == '-' => text.push(c),
            false => text.push('_'),
        }
        upper = false;
    }
    text
}

/// Formats a value with a unit of Go's benchmarks.
pub(super) fn go_value(metric: &str, value: f64) -> String {
    let unit = match metric.rsplit('.').next().unwrap_or_default() {
        "ops" => "ops/s",
        "mib" => "MiB/s",
        "value" => "value",
        _ => "ns/op",
    };
    format!("1 {value} {unit}")
}

fn benchstat(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (side, of) in [("A", &comparison.a), ("B", &comparison.b)] {
        text += &format!("side: {side}\n");
        for value in &of.values {
            text += &format!("{} {}\n", go_name(&comparison.name), go_value(&comparison.metric, *value));
        }
    }
    text
}

fn repeats_benchstat(repeats: &Repeats) -> String {
    let line = |metric: &RepeatedMetric, value: &f64| {
        format!("{}/{} {}\n", go_name(&repeats.name), metric.metric.replace('/', "_"), go_value(&metric.metric, *value))
    };
    repeats.metrics.iter().flat_map(|m| m.values.iter().map(move |v| line(m, v))).collect()
}

fn bencher(comparison: &Comparison) -> String {
    let of = |side: &super::ComparedSide| json!({ comparison.metric.clone(): { "value": side.sample.mean } });
    let ratio = comparison.ratio;
    let known = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
    let name = &comparison.name;
    json_text(&json!({
        format!("{name} A"): of(&comparison.a),
        format!("{name} B"): of(&comparison.b),
        format!("{name} B/A"): { "ratio": {
            "value": known(ratio.value), "lower_value": known(ratio.low), "upper_value": known(ratio.high)
        } },
    }))
}

fn repeats_bencher(repeats: &Repeats) -> String {
    let of = |m: &RepeatedMetric| {
        let (mean, half) = (m.estimate.mean, m.estimate.half_width);
        let measure = match half.is_finite() {
            true => json!({ "value": mean, "lower_value": low_end(m), "upper_value": mean + half }),
            false => json!({ "value": mean }),
        };
        (m.metric.clone(), measure)
    };
    json_text(&json!({ repeats.name.clone(): repeats.metrics.iter().map(of).collect::<serde_json::Map<_, _>>() }))
}

/// Returns the lower end of the interval of a mean, which is at least 0: rates and latencies are not negative.
fn low_end(metric: &RepeatedMetric) -> f64 {
    (metric.estimate.mean - metric.estimate.half_width).max(0.0)
}

/// Returns the table of the estimates.
fn repeats_table(repeats: &Repeats) -> Table {
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
        let interval = match e.half_width.is_finite() {
            true => format!("{} … {}", value(low_end(metric)), value(e.mean + e.half_width)),
            false => "-".to_owned(),
        };
        let half = if e.half_width.is_finite() { percent(metric.relative_half_width) } else { "-".to_owned() };
        let trend = metric.trend.map_or("-".to_owned(), |change| format!("{:+.1} %", change * 100.0));
        let effective = format!("{:.1}", e.effective_n);
        table.row([metric.metric.clone(), e.n.to_string(), value(e.mean), interval, half, effective, trend]);
    }
    table
}

/// Returns the last line: the state in which the series ended.
fn ending(repeats: &Repeats) -> String {
    let n = repeats.metrics.first().map_or(0, |metric| metric.estimate.n);
    match repeats.target {
        Some(target) => format!("{} after {n} runs, for intervals of ± {}", repeats.state.name(), percent(target)),
        None => format!("{} after {n} runs", if repeats.state.code() == 0 { "complete" } else { repeats.state.name() }),
    }
}

/// Formats repeats as text. The last line gives the state in which the series ended.
pub fn repeats_text(repeats: &Repeats) -> String {
    format!("{}\n\n{}\n{}\n", printable::line(&repeats.name), repeats_table(repeats).render(), ending(repeats))
}

fn repeats_markdown(repeats: &Repeats) -> String {
    let mut text = format!("**{}** {}\n\n", printable::line(&repeats.name), ending(repeats));
    text += "| metric | runs | mean | ± |\n|---|--:|--:|--:|\n";
    for metric in &repeats.metrics {
        let e = &metric.estimate;
        let half = if e.half_width.is_finite() { percent(metric.relative_half_width) } else { "-".to_owned() };
        text += &format!("| {} | {} | {} | {half} |\n", metric.metric, e.n, figure(&metric.metric, e.mean));
    }
    text
}

#[cfg(test)]
#[path = "formats_tests.rs"]
mod tests;
