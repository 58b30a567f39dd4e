//! The formats of comparisons for people and for programs, and what the formats of all documents share.

use super::numbers::{
    NO_INTERVAL, confidence, figure, interval, percent, probability, ratio, significant, small, statistic,
    with_direction, with_level, with_unit,
};
use super::tested::{ON_BLOCKS, SIGNED_RANK};
use super::{
    ComparedSide, Comparison, Difference, DifferenceKind, Factorial, IntervalDoubt, NamedTest, Repeats, Sweep,
    factorial_formats, repeats_formats, sweep_formats,
};
use crate::analysis::{ComparisonVerdict, Direction, SampleSummary, StudyTest, TTestKind};
use crate::import::Metric;
use crate::report::text::{WIDTH, wrapped};
use crate::util::count::{count, grouped};
use crate::util::csv;
use crate::util::go_bench;
use crate::util::markdown::{literal, message};
use crate::util::printable;
use crate::util::table::{Align, Table};
use serde_json::json;
use std::collections::BTreeMap;

/// A format of the four documents.
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
    /// Formats the result of a factorial experiment.
    pub factorial: fn(&Factorial) -> String,
}

/// All formats.
pub static FORMATS: &[ComparisonFormat] = &[
    ComparisonFormat {
        name: "text",
        about: "for people",
        comparison: text,
        repeats: repeats_formats::text,
        sweep: sweep_formats::text,
        factorial: factorial_formats::text,
    },
    ComparisonFormat {
        name: "markdown",
        about: "for a pull request",
        comparison: markdown,
        repeats: repeats_formats::markdown,
        sweep: sweep_formats::markdown,
        factorial: factorial_formats::markdown,
    },
    ComparisonFormat {
        name: "json",
        about: "the complete document",
        comparison: |comparison| json_text(comparison),
        repeats: |repeats| json_text(repeats),
        sweep: |sweep| json_text(sweep),
        factorial: |factorial| json_text(factorial),
    },
    ComparisonFormat {
        name: "csv",
        about: "one observation per line; for a sweep one point per line",
        comparison: csv,
        repeats: repeats_formats::csv,
        sweep: sweep_formats::csv,
        factorial: factorial_formats::csv,
    },
    ComparisonFormat {
        name: "benchstat",
        about: "Go's benchmark lines, for benchstat",
        comparison: benchstat,
        repeats: repeats_formats::benchstat,
        sweep: sweep_formats::benchstat,
        factorial: factorial_formats::benchstat,
    },
    ComparisonFormat {
        name: "bencher",
        about: "Bencher's metric format, JSON",
        comparison: bencher,
        repeats: repeats_formats::bencher,
        sweep: sweep_formats::bencher,
        factorial: factorial_formats::bencher,
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

/// Formats the standard deviation of a sample, which a single observation does not have.
fn deviation(metric: &str, sample: &SampleSummary) -> String {
    if sample.n < 2 { "-".to_owned() } else { figure(metric, sample.variance.sqrt()) }
}

/// Returns the verdict as one line, in some 80 columns unless the name of the metric is long.
pub fn sentence(comparison: &Comparison) -> String {
    let tolerance = percent(comparison.tolerance);
    let limit = match comparison.verdict {
        ComparisonVerdict::Better => format!("by more than {tolerance}"),
        ComparisonVerdict::Worse => format!("by more than {tolerance}"),
        ComparisonVerdict::Same => format!("within {tolerance}"),
        ComparisonVerdict::NotWorse => format!("B loses at most {tolerance}"),
        ComparisonVerdict::Unclear if comparison.ratio.low.is_nan() => "there is no interval".to_owned(),
        ComparisonVerdict::Unclear if comparison.doubt == Some(IntervalDoubt::Disturbed) => {
            "other programs disturbed the runs".to_owned()
        }
        ComparisonVerdict::Unclear if comparison.doubt.is_some() => "see the notes".to_owned(),
        ComparisonVerdict::Unclear => "the interval is too wide".to_owned(),
        ComparisonVerdict::Invalid => "the machine changed, see `control`".to_owned(),
    };
    // The direction of a column is known only to the user.
    let is_column = comparison.metric == Metric::value().to_string();
    let direction = if is_column && !comparison.higher_is_better { ", lower is better" } else { "" };
    let (name, metric) = (comparison.verdict.name(), &comparison.metric);
    let (shown, floor) = match comparison.ratio_with_floor {
        Some(widened) => (widened, " with the floor"),
        None => (comparison.ratio, ""),
    };
    let but = if comparison.lacks_control() { "; the control is unknown" } else { "" };
    // The name of a metric may be that of a flowop in a result of others.
    let text = format!("{name}: {limit} (B/A{floor} {} of {metric}{direction}{but})", ratio(shown));
    let disturbed = disturbed_side(comparison).map_or_else(String::new, |note| format!("; {note}"));
    printable::line(&(text + &disturbed)).into_owned()
}

/// Returns the end of a verdict on runs of which other programs disturbed half or more on a side, and not on the other.
/// Their effect may be the difference.
pub(super) fn disturbed_side(comparison: &Comparison) -> Option<String> {
    let differs = matches!(comparison.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse);
    let is_half = |side: &ComparedSide| 2 * side.disturbed >= side.sample.n;
    let (name, side) = match (is_half(&comparison.a), is_half(&comparison.b)) {
        (true, false) => ("A", &comparison.a),
        (false, true) => ("B", &comparison.b),
        _ => return None,
    };
    differs.then(|| format!("other programs disturbed {} of {} runs of {name}", side.disturbed, side.sample.n))
}

/// Returns the lines of a comparison, each with its label.
pub fn lines(comparison: &Comparison) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
    let better = if comparison.higher_is_better { "higher is better" } else { "lower is better" };
    let measured = [&comparison.a.measured, &comparison.b.measured];
    match measured[0] == measured[1] {
        true if measured[0].is_empty() => {}
        true => line("measured", measured[0].clone()),
        false => {
            let known = |text: &String| if text.is_empty() { "unknown".to_owned() } else { text.clone() };
            ["A", "B"].into_iter().zip(measured).for_each(|(side, text)| line(side, known(text)));
        }
    }
    line("metric", format!("{} ({better})", comparison.metric));
    line("B/A", with_level(comparison.ratio, comparison.level));
    if let Some(widened) = comparison.ratio_with_floor {
        line("with the floor", format!("{}, the interval that is tested", ratio(widened)));
    }
    if let Some(look) = comparison.look {
        line("look", format!("after {} blocks, one-sided error probability {}", look.blocks, percent(look.one_sided)));
    }
    let test = &comparison.test;
    if !test.p.is_nan() {
        line("test", test_text(test, comparison.a.sample.n.min(comparison.b.sample.n)));
    }
    let difference = comparison.difference;
    if difference.value.is_finite() {
        let of = |value| with_unit(&comparison.metric, value);
        // Few large values may dominate an arithmetic mean.
        let disagrees = (comparison.ratio.value - 1.0) * difference.value < 0.0;
        let means = if disagrees { ", of arithmetic means; B/A is of geometric ones" } else { "" };
        let interval = match difference.low.is_finite() && difference.high.is_finite() {
            true => format!("[{}, {}]", of(difference.low), of(difference.high)),
            false => NO_INTERVAL.to_owned(),
        };
        line("B − A", format!("{} {interval}{means}", of(difference.value)));
    }
    if let Some(study) = &comparison.study {
        let means = [&comparison.a, &comparison.b].map(|side| significant(side.sample.mean, 7));
        line("means", format!("A {}, B {}", means[0], means[1]));
        line("F-test", f_test(study));
        line("t-test", t_test(study));
    }
    let detectable =
        comparison.could_have_seen.map(|loss| format!("{} or more, with a probability of 80 %", percent(loss)));
    let none = match (comparison.ratio.low.is_finite(), has_ratio(comparison)) {
        (true, _) if comparison.doubt.is_some() => "unknown, see the notes",
        (true, _) => "more than 99.9 %",
        (false, true) => "no loss: too few runs",
        (false, false) => "no loss: there is no ratio",
    };
    line("detectable loss", detectable.unwrap_or_else(|| none.to_owned()));
    // A change that was found needs no further runs.
    let is_found = matches!(comparison.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse);
    if let Some(needed) = comparison.runs_needed.filter(|_| !is_found) {
        line("runs needed", format!("{needed} in total, to find equal sides not worse with a probability of 80 %"));
    }
    if let Some(floor) = comparison.floor {
        let days = if floor.spans_days { "" } else { " of one day" };
        let source = match floor.is_given() {
            true => ", as given".to_owned(),
            false => format!(" in {}{days} without a change", count(floor.sessions, "session")),
        };
        let unused = if comparison.ratio_with_floor.is_none() && !comparison.interleaved { "; not used" } else { "" };
        line("noise floor", format!("± {}{source}{unused}", percent(floor.share)));
    }
    if let Some(control) = comparison.control {
        let tolerance = percent(comparison.tolerance);
        let changed = match (control.moved, control.runs_needed) {
            (true, _) => "changed".to_owned(),
            (false, _) if !control.is_unknown(comparison.tolerance) => "no change that matters".to_owned(),
            (false, Some(needed)) => {
                format!("unknown, needs about {} runs in total (tolerance {tolerance})", grouped(needed))
            }
            (false, None) => format!("unknown, too few runs for a tolerance of {tolerance}"),
        };
        line("control", format!("{changed}: {}", with_level(control.ratio, 0.999)));
    }
    lines
}

/// Formats a test of two sides. `pairs` is the number of pairs of interleaved runs.
fn test_text(test: &NamedTest, pairs: u64) -> String {
    let p = probability(test.p);
    match test.name.as_str() {
        SIGNED_RANK => format!("signed-rank test of {pairs} pairs of runs: p {p}"),
        ON_BLOCKS => {
            let (t, df) = (statistic(test.t), statistic(test.df));
            format!("paired t-test over {:.0} blocks: t {t}, {df} df, p {p}", test.df + 1.0)
        }
        "ranks and trend" => format!("Mann–Whitney test, and a robust fit with a trend: p {p}, the larger of both"),
        "Welch and trend" => format!("Welch's t-test, and a robust fit with a trend: p {p}, the larger of both"),
        "ranks" => format!("Mann–Whitney test: p {p}"),
        name => format!("{name}: p {p}"),
    }
}

/// Returns whether there is a ratio of B to A, for which all values must be above 0.
fn has_ratio(comparison: &Comparison) -> bool {
    comparison.a.values.iter().chain(&comparison.b.values).all(|value| *value > 0.0)
}

/// Formats the F-test of the study with the digits that R prints.
fn f_test(study: &StudyTest) -> String {
    let f = &study.f;
    if f.value.is_infinite() {
        let (df1, df2, p) = (statistic(f.df1), statistic(f.df2), probability(f.p));
        return format!("F infinite on {df1} and {df2} df, p {p}: the values of B are equal");
    }
    format!(
        "F {} on {} and {} df, p {}, {} interval of the ratio of variances {}",
        statistic(f.value),
        statistic(f.df1),
        statistic(f.df2),
        probability(f.p),
        confidence(study.level),
        interval(f.low, f.high)
    )
}

/// Formats the t-test of the study with the digits that R prints.
fn t_test(study: &StudyTest) -> String {
    let t = &study.t;
    format!(
        "{}: t {} on {} df, p {}, {} interval of A − B {}",
        if t.kind == TTestKind::Welch { "Welch" } else { "pooled" },
        statistic(t.value),
        statistic(t.df),
        probability(t.p),
        confidence(study.level),
        interval(t.low, t.high)
    )
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
        let [a, b] = difference.shown();
        table.row([condition(difference), short(&a), short(&b)]);
    }
    (!table.is_empty()).then_some(table)
}

/// Returns the name of a condition, with the remark that it should be equal.
fn condition(difference: &Difference) -> String {
    let note = if difference.kind == DifferenceKind::Workload { " (should be equal)" } else { "" };
    format!("{}{note}", difference.what)
}

/// Returns the table of differing conditions as text; empty when there are none.
pub fn differs_text(comparison: &Comparison) -> String {
    differing(comparison).map_or_else(String::new, |table| table.render())
}

/// Shortens the value of a condition. A side without the condition has `-`.
fn short(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { printable::short(text, 30).into_owned() }
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

/// The heading of metrics other than that of the verdict.
const OTHERS: &str = "other metrics, descriptive";

/// Returns the table of other metrics, or `None` when there are none.
fn others(comparison: &Comparison) -> Option<Table> {
    let mut table = Table::new([(OTHERS, Align::Left), ("B/A", Align::Left), ("p, corrected", Align::Right)]);
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
    // The lines of the study have the form in which it printed them.
    let lines = if comparison.study.is_some() { table.render() } else { table.render_wrapped(WIDTH) };
    text += lines.trim_start_matches('\n');
    for table in [changed_figures(comparison), others(comparison)].into_iter().flatten() {
        text += &format!("\n{}", table.render());
    }
    text += &notes_text(&comparison.notes);
    text + &format!("\n{}\n", sentence(comparison))
}

/// Formats notes as text after an empty line, each wrapped to the width of reports.
pub(super) fn notes_text(notes: &[String]) -> String {
    let line = |note: &String| wrapped(&format!("note: {}", printable::line(note)), "  ") + "\n";
    let lines: String = notes.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Formats notes as Markdown, each a paragraph.
pub(super) fn notes_markdown(notes: &[String]) -> String {
    let paragraph = |note: &String| format!("\nNote: {}\n", message(note));
    notes.iter().map(paragraph).collect()
}

fn markdown(comparison: &Comparison) -> String {
    let cell = literal;
    let table = |head: &str, rows: Vec<[String; 3]>| {
        if rows.is_empty() {
            return String::new();
        }
        let line = |[a, b, c]: &[String; 3]| format!("| {} | {} | {} |\n", cell(a), cell(b), cell(c));
        format!("{head}\n|---|---|---|\n{}\n", rows.iter().map(line).collect::<String>())
    };
    let mut text = format!("**{}** {}\n\n", cell(&comparison.name), cell(&sentence(comparison)));
    let differs = comparison.differs.iter().map(|d| {
        let [a, b] = d.shown();
        [condition(d), short(&a), short(&b)]
    });
    text += &table("| differs | A | B |", differs.collect());
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
    text.push('\n');
    let causes = comparison.causes.iter().map(|c| [c.name.clone(), small(c.a), small(c.b)]);
    text += &table("| also changed | A | B |", causes.collect());
    let others = comparison.others.iter().map(|o| [with_direction(&o.metric), ratio(o.ratio), probability(o.p)]);
    text += &table(&format!("| {OTHERS} | B/A | p, corrected |"), others.collect());
    // One empty line separates the tables from the notes.
    text.truncate(text.trim_end().len());
    text + "\n" + &notes_markdown(&comparison.notes)
}

/// Formats text as a cell of CSV.
pub(super) fn csv_cell(text: &str) -> String {
    csv::quoted(&csv::text(text))
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

/// Returns the unit of a metric in Go's benchmarks.
fn go_unit(metric: &str) -> &'static str {
    match metric.rsplit('.').next().unwrap_or_default() {
        "ops" => "ops/s",
        "mib" => "MiB/s",
        "value" => "value",
        "seconds" => "s",
        _ => "ns/op",
    }
}

/// Formats a value with a unit of Go's benchmarks.
pub(super) fn go_value(metric: &str, value: f64) -> String {
    format!("1 {value} {}", go_unit(metric))
}

/// Returns a line for each unit of the metrics that says whether more is better. Without it benchstat takes less to be
/// better.
pub(super) fn go_units<'a>(metrics: impl Iterator<Item = &'a str>) -> String {
    let direction = |metric: &str| match metric.parse::<Metric>().map(|metric| metric.direction()) {
        Ok(Direction::LowerIsBetter) => "lower",
        _ => "higher",
    };
    let units: BTreeMap<&str, &str> = metrics.map(|metric| (go_unit(metric), direction(metric))).collect();
    let line = |(unit, better)| format!("Unit {unit} better={better}\n");
    units.into_iter().map(line).collect()
}

fn benchstat(comparison: &Comparison) -> String {
    let better = if comparison.higher_is_better { "higher" } else { "lower" };
    let mut text = format!("Unit {} better={better}\n", go_unit(&comparison.metric));
    for (side, of) in [("A", &comparison.a), ("B", &comparison.b)] {
        text += &format!("side: {side}\n");
        for value in &of.values {
            text += &format!("{} {}\n", go_bench::name(&comparison.name), go_value(&comparison.metric, *value));
        }
    }
    text
}

fn bencher(comparison: &Comparison) -> String {
    let of = |side: &super::ComparedSide| json!({ comparison.metric.clone(): { "value": side.sample.mean } });
    let ratio = comparison.ratio;
    let name = &comparison.name;
    let mut found = json!({ format!("{name} A"): of(&comparison.a), format!("{name} B"): of(&comparison.b) });
    let measure = match (ratio.value.is_finite(), ratio.low.is_finite()) {
        (true, true) => Some(json!({ "value": ratio.value, "lower_value": ratio.low, "upper_value": ratio.high })),
        (true, false) => Some(json!({ "value": ratio.value })),
        (false, _) => None,
    };
    if let Some(measure) = measure {
        found[format!("{name} B/A")] = json!({ "ratio": measure });
    }
    json_text(&found)
}

#[cfg(test)]
#[path = "formats_tests.rs"]
mod tests;
