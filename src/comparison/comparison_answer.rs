//! The answer of a comparison: what B does compared with A, what else moved, and whether this may be used.

use super::numbers::{confidence, figure, percent};
use super::phrases::{amount_of_change, change, ended, interval, range, sameness, subject};
use super::steps::TestedStep;
use super::{Comparison, ControlResult, Difference, DifferenceKind, IntervalDoubt, OtherMetric};
use crate::analysis::{ComparisonVerdict, Direction, STRICT_LEVEL, fewest_pairs};
use crate::import::Metric;
use crate::sheet::{Answer, Usability};
use crate::util::count::{count, grouped};
use crate::util::printable;
use std::collections::BTreeSet;

/// The names of the sides of a comparison.
pub(super) const SIDES: [&str; 2] = ["A", "B"];

/// The most differences that an answer names.
const MAX_DIFFERENCES: usize = 6;

/// A block of interleaved runs has so many pairs.
const PAIRS_OF_BLOCK: u64 = 2;

/// The most steps that an answer names because they changed most, and the most because they are syncs.
const MAX_STEPS: usize = 3;

/// The answer, without the reasons to distrust it and the steps that changed.
pub(super) fn answer(comparison: &Comparison) -> Answer {
    let is_open = matches!(comparison.verdict, ComparisonVerdict::Unclear | ComparisonVerdict::Invalid);
    let mut conditions = comparison.validity.conditions.clone();
    if !conditions.is_empty() {
        conditions.push(differences(&comparison.differs, SIDES));
    }
    let is_disturbed =
        comparison.verdict == ComparisonVerdict::Invalid || comparison.doubt == Some(IntervalDoubt::Disturbed);
    let advice = match &comparison.advice {
        Some(advice) => format!("{}.", advice.replacen('f', "F", 1)),
        None if too_few_if_disturbed(comparison) => format!(
            "Make {} or more, or repeat on an idle machine.",
            count(fewest_pairs(STRICT_LEVEL).div_ceil(PAIRS_OF_BLOCK), "block")
        ),
        None if is_disturbed => "Repeat on an idle machine.".to_owned(),
        None => String::new(),
    };
    Answer {
        subject: comparison.workload.clone(),
        about: about(comparison),
        figures: medians(comparison),
        result: sentence(comparison),
        details: unseen(comparison).into_iter().collect(),
        usability: Some(if is_open { Usability::Unusable } else { Usability::Usable }),
        advice,
        conditions,
        ..Answer::default()
    }
}

/// True if runs that other programs disturbed are too few for any verdict.
fn too_few_if_disturbed(comparison: &Comparison) -> bool {
    let is_disturbed = comparison.doubt == Some(IntervalDoubt::Disturbed);
    is_disturbed && comparison.interleaved && comparison.a.sample.n < fewest_pairs(STRICT_LEVEL)
}

/// What A and B are.
fn about(comparison: &Comparison) -> String {
    let name = |name: &str| if name.is_empty() { "without options of its own".to_owned() } else { name.to_owned() };
    let [a, b] = [&comparison.a, &comparison.b].map(|side| {
        let options = if side.options.is_empty() { String::new() } else { format!(" ({})", side.options) };
        (name(&side.name) + &options, side.sample.n)
    });
    let order = if comparison.interleaved { ", interleaved" } else { "" };
    let runs = match a.1 == b.1 {
        true => format!("{} of each", count(a.1, "run")),
        false => format!("{} of A, {} of B", count(a.1, "run"), grouped(b.1)),
    };
    format!("A is {}, B is {}; {runs}{order}{}.", a.0, b.0, ended(&comparison.validity.ended_by))
}

/// The medians of both sides, which a mail does not have in a table. Their means may lie the other way round: one slow run
/// moves a mean, and not the ratio of the verdict.
fn medians(comparison: &Comparison) -> String {
    let metric = &comparison.metric;
    let [a, b] = [&comparison.a, &comparison.b].map(|side| figure(metric, side.sample.median));
    format!("Medians of `{}`: A {a}, B {b}.", printable::line(metric))
}

/// The verdict in one sentence, after its name.
fn sentence(comparison: &Comparison) -> String {
    let metric = &comparison.metric;
    let tolerance = percent(comparison.tolerance);
    let found = comparison.ratio_with_floor.unwrap_or(comparison.ratio);
    let changed = if found.value.is_finite() { change(metric, found.value, SIDES) } else { String::new() };
    let floor = if comparison.ratio_with_floor.is_some() { ", with the noise floor" } else { "" };
    let interval = format!("{}{floor}", interval(metric, found, comparison.level));
    // The direction of a column is known only to the user.
    let is_column = *metric == Metric::value().to_string();
    let lower = if is_column && !comparison.higher_is_better { "; lower is better" } else { "" };
    let measured = format!("as measured, {changed} ({interval}{lower})");
    let text = match comparison.verdict {
        ComparisonVerdict::Better | ComparisonVerdict::Worse => format!("{changed} ({interval}{lower})"),
        ComparisonVerdict::Same => {
            let same = sameness(metric, SIDES);
            format!("{same}, within {tolerance} ({}; {interval}{lower})", amount_of_change(metric, found.value))
        }
        ComparisonVerdict::NotWorse => {
            let is_gain = if comparison.higher_is_better { found.low >= 1.0 } else { found.high <= 1.0 };
            let excluded = match is_gain {
                true => format!("a loss is excluded, a gain of {tolerance} or more is not shown"),
                false => format!("a loss of more than {tolerance} is excluded, a gain is not shown"),
            };
            format!("{changed} ({interval}{lower}); {excluded}")
        }
        ComparisonVerdict::Unclear if changed.is_empty() => "there is no ratio of B to A".to_owned(),
        ComparisonVerdict::Unclear if found.low.is_nan() => {
            format!("the runs give no interval, so that nothing is shown; as measured, {changed}")
        }
        ComparisonVerdict::Unclear => match comparison.doubt {
            Some(IntervalDoubt::Disturbed) if too_few_if_disturbed(comparison) => {
                format!("the machine was disturbed, and the runs are too few to say what that did; {measured}")
            }
            Some(IntervalDoubt::Disturbed) => {
                let is_small = (found.value - 1.0).abs() <= comparison.tolerance;
                let may = if is_small { "may hide a difference" } else { "may explain the whole difference" };
                format!("the machine was disturbed, which {may}; {measured}")
            }
            Some(IntervalDoubt::UnknownFloor) => {
                format!("A and B are of different days, and how much days differ is unknown; {measured}")
            }
            Some(IntervalDoubt::EqualValues) => {
                format!("values are equal, so that their variation is unknown; {measured}")
            }
            None => format!(
                "with B, {} may be anything from {}{floor} ({} interval), too wide for a tolerance of {tolerance}",
                subject(metric),
                range(metric, found),
                confidence(comparison.level)
            ),
        },
        ComparisonVerdict::Invalid => invalid(comparison),
    };
    // The name of a metric may be that of a flowop in a result of others.
    printable::line(&format!("{}: {text}.", comparison.verdict.name())).into_owned()
}

/// Why a comparison is invalid.
fn invalid(comparison: &Comparison) -> String {
    let Some(ControlResult { ratio, .. }) = comparison.control else { return "the machine was disturbed".to_owned() };
    let word = |speed: f64| if speed < 1.0 { "slower" } else { "faster" };
    let by = |speed: f64| percent((speed - 1.0).abs());
    let ends = match ratio.value < 1.0 {
        true => [ratio.high, ratio.low],
        false => [ratio.low, ratio.high],
    };
    let so = match comparison.interleaved {
        true => "so that A and B can't be compared",
        false => "which may explain the whole difference",
    };
    format!(
        "the machine was disturbed: its processors were {} {} for B than for A (99.9 % interval {} to {}), {so}",
        by(ratio.value),
        word(ratio.value),
        by(ends[0]),
        by(ends[1])
    )
}

/// The metric that moved most against the verdict, beyond the tolerance: more operations may cost some of them a long time.
pub(super) fn against(comparison: &Comparison) -> Option<&OtherMetric> {
    const LEAST_P: f64 = 0.05;
    let is_bad = |other: &&OtherMetric| {
        let wants_less =
            other.metric.parse::<Metric>().is_ok_and(|metric| metric.direction() == Direction::LowerIsBetter);
        let is_loss = (other.ratio.value > 1.0) == wants_less;
        let is_clear = other.p < LEAST_P && (other.ratio.low > 1.0 || other.ratio.high < 1.0);
        let is_large = (other.ratio.value - 1.0).abs() > comparison.tolerance;
        is_clear && is_large && is_loss != (comparison.verdict == ComparisonVerdict::Worse)
    };
    let moved = |other: &&OtherMetric| other.ratio.value.ln().abs();
    comparison.others.iter().filter(is_bad).max_by(|a, b| moved(a).total_cmp(&moved(b)))
}

/// The sentence on that metric.
pub(super) fn moved_against(comparison: &Comparison) -> Option<String> {
    let most = against(comparison)?;
    let changed = change(&most.metric, most.ratio.value, SIDES);
    Some(format!("But {changed} ({}).", interval(&most.metric, most.ratio, comparison.level)))
}

/// A step that changed against the verdict is told of if its time in an operation of the workload changed by at least
/// this part of the largest change.
const LEAST_AGAINST: f64 = 0.01;

/// Which steps changed most, those that changed in the other direction than the whole, and syncs that changed.
pub(super) fn changed_steps(comparison: &Comparison) -> Option<String> {
    let steps = &comparison.steps;
    let is_against = |step: &&TestedStep| match comparison.verdict {
        ComparisonVerdict::Better => step.is_clear() && step.ratio.value > 1.0,
        ComparisonVerdict::Worse => step.is_clear() && step.ratio.value < 1.0,
        _ => false,
    };
    let clear: Vec<&TestedStep> = steps.iter().filter(|step| step.is_clear()).collect();
    let most = clear.iter().copied().take(MAX_STEPS);
    // A change that an operation of the workload does not feel is no objection.
    let is_felt = |step: &&TestedStep| step.moved >= LEAST_AGAINST * steps[0].moved;
    let against = steps.iter().filter(is_against).filter(is_felt).take(1);
    let syncs = clear.iter().copied().filter(|step| step.is_sync).take(MAX_STEPS);
    let told: BTreeSet<&str> = most.chain(against).chain(syncs).map(|step| step.name.as_str()).collect();
    if told.is_empty() {
        return None;
    }
    let (against, along): (Vec<&TestedStep>, Vec<&TestedStep>) =
        steps.iter().filter(|step| told.contains(step.name.as_str())).partition(is_against);
    let list = |steps: &[&TestedStep]| steps.iter().map(|step| step_change(step)).collect::<Vec<_>>().join(", ");
    let (higher, but) = match comparison.verdict {
        ComparisonVerdict::Worse => ("lower", "; but faster: "),
        _ => ("higher", "; but slower: "),
    };
    let (all_the_same, but) = match (along.is_empty(), against.is_empty()) {
        (true, _) => (format!(", is {higher} all the same"), ""),
        (_, true) => (String::new(), ""),
        _ => (String::new(), but),
    };
    let others = steps.len() - told.len();
    let untold = || clear.iter().filter(|step| !told.contains(step.name.as_str()));
    let faster = untold().filter(|step| step.ratio.value < 1.0).count();
    let others = match (others, faster, untold().count() - faster) {
        (0, ..) => String::new(),
        (_, 0, 0) => " No other flowop changed clearly.".to_owned(),
        (_, faster, 0) => format!(" Others that changed clearly: {faster} faster."),
        (_, 0, slower) => format!(" Others that changed clearly: {slower} slower."),
        (_, faster, slower) => format!(" Others that changed clearly: {faster} faster, {slower} slower."),
    };
    let level = confidence(comparison.level);
    Some(format!(
        "Mean latency, A → B, median of the runs ({level} interval of the change){all_the_same}: {}{but}{}.{others}",
        list(&along),
        list(&against)
    ))
}

/// How the latency of a step changed: `fsync` 95.0 → 21.0 ms (76.4 % to 79.1 % lower).
fn step_change(step: &TestedStep) -> String {
    const METRIC: &str = "latency.mean";
    let [a, b] = [step.a, step.b].map(|value| figure(METRIC, value));
    let unit = |text: &str| text.rsplit_once(' ').map(|(_, unit)| unit.to_owned());
    // One unit is enough.
    let a = if unit(&a) == unit(&b) { a.split(' ').next().unwrap_or_default() } else { &a };
    let change = range(METRIC, step.ratio);
    let than = if change.ends_with("times") { " as high" } else { "" };
    format!("`{}` {a} → {b} ({change}{than})", step.name)
}

/// Which loss the runs of an unclear comparison find. Of other verdicts the interval says all.
fn unseen(comparison: &Comparison) -> Option<String> {
    let is_known = comparison.ratio.low.is_finite() && comparison.doubt.is_none();
    if comparison.verdict != ComparisonVerdict::Unclear || !is_known {
        return None;
    }
    let made = count(comparison.a.sample.n + comparison.b.sample.n, "run");
    Some(match comparison.could_have_seen {
        Some(loss) => format!(
            "With this much variation, {made} find a loss of {} in four of five cases, and smaller ones less often.",
            percent(loss)
        ),
        None => format!("With this much variation, {made} may not find even a loss of 99.9 %."),
    })
}

/// True if the answer names all differences.
pub(super) fn names_differences(comparison: &Comparison) -> bool {
    !comparison.validity.conditions.is_empty() && comparison.differs.len() <= MAX_DIFFERENCES
}

/// What differs between two sides of these names.
pub(super) fn differences(differs: &[Difference], sides: [&str; 2]) -> String {
    const LONGEST: usize = 40;
    let shown = |difference: &Difference| {
        let [a, b] = difference.shown().map(|value| printable::short(&value, LONGEST).into_owned());
        let values = match (a.as_str(), b.as_str()) {
            (a, "") => format!("only {}: {a}", sides[0]),
            ("", b) => format!("only {}: {b}", sides[1]),
            (a, b) => format!("{} {a}, {} {b}", sides[0], sides[1]),
        };
        let should = if difference.kind == DifferenceKind::Workload { ", should be equal" } else { "" };
        format!("{} ({values}{should})", difference.what)
    };
    if differs.is_empty() {
        return "differs: nothing that is recorded".to_owned();
    }
    let mut named: Vec<String> = differs.iter().take(MAX_DIFFERENCES).map(shown).collect();
    let more = differs.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    format!("differs: {}", named.join("; "))
}
