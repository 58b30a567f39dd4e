//! Notes on the validity of runs: those that were not steady, percentiles of few operations, unknown conditions.

use super::comparison_answer;
use super::differences::machine_differences;
use super::numbers::percent;
use super::tested::LEVEL;
use super::{Comparison, OtherMetric, Runs};
use crate::analysis::{ComparisonVerdict, DEFAULT_PRECISION, Estimate, NoiseFloor, Tolerance, mean_interval, outliers};
use crate::import::{Metric, Observation, shared_flowops};
use crate::result::MIN_BEYOND;
use crate::util::count::{count, grouped};
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// Returns notes on the runs of all sides, of which these metrics are used.
pub(super) fn on_runs(sides: &[&[Observation]], metrics: &[Metric]) -> Vec<String> {
    let outliers = metrics.first().and_then(|metric| on_outliers(sides, metric));
    on_warnings(sides).chain(outliers).chain(on_several_runs(sides)).chain(on_percentiles(sides, metrics)).collect()
}

/// Returns the runs whose value of a metric is far from those of the others.
pub fn outlying<'a>(runs: impl Iterator<Item = &'a Observation>, metric: &Metric) -> Vec<&'a Observation> {
    let (runs, values): (Vec<_>, Vec<f64>) = runs.filter_map(|run| Some((run, metric.of(run)?))).unzip();
    outliers(&values).into_iter().map(|n| runs[n]).collect()
}

/// The largest number of runs of a side in which outliers are looked for.
const MOST_EXAMINED: usize = 1000;

/// Returns the note on runs whose value of a metric is far from those of the other runs of the same side.
pub(super) fn on_outliers(sides: &[&[Observation]], metric: &Metric) -> Option<String> {
    // Of numbers from elsewhere there may be many: they need not be runs.
    let examined = sides.iter().filter(|runs| runs.len() <= MOST_EXAMINED);
    let far: HashSet<*const Observation> =
        examined.flat_map(|runs| outlying(runs.iter(), metric)).map(std::ptr::from_ref).collect();
    let runs = number(sides, &|run| far.contains(&std::ptr::from_ref(run)))?;
    Some(format!(
        "`{metric}` is far from the median of its side or cell in {runs}, an outlier: look for the cause; the run stays in the sample"
    ))
}

/// Returns the note on a fixed number of runs that gave an interval wider than the precision at which a range of runs
/// would have ended. `relative` is the half-width divided by the mean.
pub(super) fn on_precision(metric: &str, relative: f64, is_of_replays: bool) -> Option<String> {
    let (found, wanted) = (percent(relative), percent(DEFAULT_PRECISION));
    let longer = if is_of_replays { "" } else { ", or make longer ones (`--runtime`)" };
    (relative > DEFAULT_PRECISION && relative.is_finite() && found != wanted).then(|| {
        format!(
            "the interval of `{metric}`, ± {found}, is wider than ± {wanted}, at which `wmlrun repeat` ends without \
             `--runs`: add runs (`--resume`){longer}"
        )
    })
}

/// Returns the note on cells that are compared although all runs of one were made before those of the next.
pub(super) fn on_order() -> String {
    "the cells were measured one after the other: their differences include a drift of the machine".to_owned()
}

/// The ratio of the fastest to the slowest block above which the blocks have a note.
const BLOCKS_DIFFER: f64 = 1.5;

/// Returns the note on blocks of runs in which the machine was not equally fast. `cells` has the values of a metric in
/// each cell, of which those at one position are of one block.
pub(super) fn on_blocks(metric: &str, cells: &[&[f64]]) -> Option<String> {
    let blocks = cells.first()?.len();
    let is_usable = |values: &&[f64]| values.len() == blocks && values.iter().all(|value| *value > 0.0);
    if cells.len() < 2 || !cells.iter().all(is_usable) {
        return None;
    }
    let of_block = |block: usize| cells.iter().map(|values| values[block].ln()).sum::<f64>() / cells.len() as f64;
    let of_blocks: Vec<(usize, f64)> = (0..blocks).map(|block| (block + 1, of_block(block))).collect();
    let (least, low) = of_blocks.iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let (most, high) = of_blocks.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let ratio = (high - low).exp();
    (ratio > BLOCKS_DIFFER).then(|| {
        format!(
            "the blocks differ: `{metric}` was {ratio:.1} times as high in block {most} as in block {least}, in the \
             geometric mean of all cells; the intervals of the cells include this, the comparisons within blocks do not"
        )
    })
}

/// Returns the note on a metric that no run of a sample has.
pub(super) fn on_missing_metric(metric: &str) -> String {
    match metric.parse::<Metric>().is_ok_and(|metric| metric.is_divided_time()) {
        true => format!("`{metric}` is unknown: user and system time are told apart from 0.1 s of processor time on"),
        false => format!("no run has `{metric}`: name another metric"),
    }
}

/// Returns the note on scripts that make several runs.
pub(super) fn on_several_runs(sides: &[&[Observation]]) -> Option<String> {
    let most = sides.iter().flat_map(|runs| runs.iter()).map(|run| run.script_runs).max().filter(|runs| *runs > 1)?;
    Some(format!("the script makes {most} runs: the experiment is about the last of them"))
}

/// Returns the number of runs to which something applies, and that of all; `None` if it applies to none. Runs of an
/// experiment are named.
fn number(sides: &[&[Observation]], applies: &dyn Fn(&Observation) -> bool) -> Option<String> {
    let all: Vec<&Observation> = sides.iter().flat_map(|runs| runs.iter()).collect();
    let found: Vec<&Observation> = all.iter().copied().filter(|run| applies(run)).collect();
    let named = if found.len() < all.len() { names(&all, &found) } else { None };
    let named = named.map_or_else(String::new, |names| format!(" ({names})"));
    (!found.is_empty()).then(|| format!("{} of {}{named}", found.len(), count(all.len() as u64, "run")))
}

/// Names some of all runs of an experiment: a few by their numbers and arms, as in `runs 2, 7 of fs=xfs; run 9 of
/// fs=ext4`, more of them by their arms, if these are few. `None` for runs of other programs, or of several folders, which
/// have the same numbers.
fn names(all: &[&Observation], found: &[&Observation]) -> Option<String> {
    const MAX_NAMED: usize = 6;
    const MAX_ARMS: usize = 3;
    let folders = all.iter().filter(|run| run.failure.is_none()).map(|run| Path::new(&run.source).parent());
    if folders.collect::<BTreeSet<Option<&Path>>>().len() != 1 {
        return None;
    }
    let numbers = found.iter().map(|run| Some((run_number(&run.source)?, run.arm.as_str())));
    let mut numbers: Vec<(u64, &str)> = numbers.collect::<Option<_>>()?;
    numbers.sort_unstable();
    let mut arms: IndexMap<&str, Vec<String>> = IndexMap::new();
    numbers.iter().for_each(|(number, arm)| arms.entry(arm).or_default().push(number.to_string()));
    if found.len() <= MAX_NAMED {
        let of_arm = |(arm, numbers): (&&str, &Vec<String>)| {
            let arm = if arm.is_empty() { String::new() } else { format!(" of {arm}") };
            format!("run{} {}{arm}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
        };
        return Some(arms.iter().map(of_arm).collect::<Vec<_>>().join("; "));
    }
    let all_arms = all.iter().map(|run| run.arm.as_str()).collect::<BTreeSet<_>>().len();
    let are_few = arms.len() <= MAX_ARMS && arms.len() < all_arms;
    are_few.then(|| format!("of {}", arms.keys().copied().collect::<Vec<_>>().join(" and ")))
}

/// Returns the number of a run whose result is in a results folder, `runs/0003.json`.
fn run_number(source: &str) -> Option<u64> {
    let path = Path::new(source);
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    path.parent()?.ends_with("runs").then(|| name.parse().ok()).flatten()
}

/// Returns the notes on runs that were not steady, on those beside which other programs used the processors, and on the
/// other warnings of their reports.
pub(super) fn on_warnings(sides: &[&[Observation]]) -> impl Iterator<Item = String> {
    unsteady_note(sides)
        .into_iter()
        .chain(disturbed_note(sides))
        .chain(on_caches(sides))
        .chain(on_other_warnings(sides))
}

/// Returns the note on runs that were not steady.
pub(super) fn unsteady_note(sides: &[&[Observation]]) -> Option<String> {
    let runs = number(sides, &|run| run.unsteady)?;
    Some(format!("the rate changed during {runs}: warm up (`--warmup auto`) or run longer (`--runtime`)"))
}

/// Returns the note on runs beside which other programs used the processors or the devices.
pub fn disturbed_note(sides: &[&[Observation]]) -> Option<String> {
    let runs = number(sides, &|run| run.disturbed)?;
    Some(format!("other programs used the processors or devices during {runs}: repeat on an idle machine"))
}

/// Returns the note on runs that began with other caches than runs of the same side.
fn on_caches(sides: &[&[Observation]]) -> Option<String> {
    /// The difference between the shares of the files in memory above which runs are not alike.
    const MOST: f64 = 0.25;
    let share = |run: &Observation| run.causes.get("resident_before").copied();
    let differing = |runs: &&[Observation]| {
        let most = runs.iter().filter_map(share).reduce(f64::max).unwrap_or_default();
        runs.iter().filter_map(share).filter(|share| most - share > MOST).count()
    };
    let n: usize = sides.iter().map(differing).sum();
    let all = count(sides.iter().map(|runs| runs.len() as u64).sum(), "run");
    (n > 0).then(|| {
        format!(
            "{n} of {all} began with less of the files in memory than others with the same options, by more than {:.0} % of \
             them: `--cold` makes the runs alike",
            100.0 * MOST
        )
    })
}

/// Returns the note on the warnings of the reports of the runs.
pub(super) fn on_other_warnings(sides: &[&[Observation]]) -> Option<String> {
    // A file from elsewhere may have any number of codes.
    const MAX_CODES: usize = 20;
    let all = sides.iter().flat_map(|runs| runs.iter()).flat_map(|run| &run.warnings);
    let codes: IndexSet<&String> = all.collect();
    let part = |code: &&String| Some(format!("`{code}` in {}", number(sides, &|run| run.warnings.contains(code))?));
    let further = codes.len().checked_sub(MAX_CODES).filter(|further| *further > 0);
    let further = further.map(|further| format!("{further} further codes"));
    let parts: Vec<String> = codes.iter().take(MAX_CODES).filter_map(part).chain(further).collect();
    let with_warnings = sides.iter().flat_map(|runs| runs.iter()).filter(|run| !run.warnings.is_empty());
    // The results of an experiment are numbered in the order of time.
    let first = with_warnings.min_by_key(|run| &run.source)?;
    let path = if Path::new(&first.source).extension().is_some_and(|end| end == "json") {
        first.source.as_str()
    } else {
        "RUN.json"
    };
    let path = if path.contains(' ') { format!("'{path}'") } else { path.to_owned() };
    let parts = parts.join(", ");
    Some(format!("warnings of the runs: {parts}; `wmlrun report {path} --format text` shows the first of these runs"))
}

/// Returns notes on percentiles of few operations.
pub(super) fn on_percentiles(sides: &[&[Observation]], metrics: &[Metric]) -> Vec<String> {
    let few = |metric: &Metric| {
        let runs = number(sides, &|run| metric.operations_beyond(run).is_some_and(|ops| ops < MIN_BEYOND as f64))?;
        let is_of_replays = sides.iter().flat_map(|runs| runs.iter()).any(|run| run.is_replay);
        let longer = if is_of_replays { "" } else { "run longer (`--runtime`) or " };
        Some(format!(
            "`{metric}` has fewer than {MIN_BEYOND} operations beyond it in {runs}: {longer}use a lower percentile"
        ))
    };
    metrics.iter().filter_map(few).collect()
}

/// The number of equal values from which on they show that a figure does not vary.
const MIN_EQUAL: usize = 5;

/// Returns the names of the sides of which a run has a property, or `None` if there is none.
pub(super) fn sides_with(
    a: &[Observation],
    b: &[Observation],
    has: impl Fn(&Observation) -> bool,
) -> Option<&'static str> {
    match (a.iter().any(&has), b.iter().any(&has)) {
        (false, false) => None,
        (true, false) => Some("A"),
        (false, true) => Some("B"),
        (true, true) => Some("A and B"),
    }
}

/// Returns the note on sides whose results do not tell the conditions of the runs, such as those of other programs.
pub(super) fn on_conditions(a: &[Observation], b: &[Observation]) -> Option<String> {
    let side = sides_with(a, b, |run| run.conditions.is_empty())?;
    Some(format!("the conditions of {side} are unknown: differences of script, caches and machine are not shown"))
}

/// Returns the note on sides that have no flowop of the same name, and are thus probably of different workloads.
pub(super) fn on_flowops(a: &[Observation], b: &[Observation]) -> Option<String> {
    let text = "A and B have no flowop of the same name: check that they are results of the same workload";
    (!shared_flowops(a, b)).then(|| text.to_owned())
}

/// Returns the note on sides whose results do not tell the times of the runs, so that they may be of different days.
pub(super) fn on_times(a: &[Observation], b: &[Observation]) -> Option<String> {
    let side = sides_with(a, b, |run| run.started.is_none())?;
    Some(format!("the times of the runs of {side} are unknown: a difference between days is not part of the interval"))
}

/// Returns the note on runs of different days whose noise floor does not include the difference between days.
pub(super) fn on_floor(floor: Option<NoiseFloor>) -> String {
    let days = "the runs of A and B are from different days, and the noise floor of the workload";
    match floor {
        None => format!("{days} is unknown; `wmlrun repeat --floor` measures it, `--noise-floor` gives it"),
        Some(_) => {
            format!(
                "{days} was measured on one day only before; measure it (`wmlrun repeat --floor`) again on another day without a change"
            )
        }
    }
}

/// The note on a noise floor that the user has given for sides of one day.
pub(super) const ON_UNUSED_FLOOR: &str =
    "`--noise-floor` has no effect: the runs of A and B are not from different days";

/// Returns the note on a noise floor above the tolerance, with which no number of runs gives the verdict *same*.
pub(super) fn on_wide_floor(floor: NoiseFloor, tolerance: Tolerance) -> Option<String> {
    let longer = if floor.is_given() { "" } else { ", or longer runs for both the floor and the sides" };
    (floor.share > tolerance.0).then(|| {
        format!(
            "the noise floor, ± {}, is above the tolerance of {}: no number of runs shows that sides of different days are \
             equal; use a larger `--tolerance`{longer}",
            percent(floor.share),
            percent(tolerance.0)
        )
    })
}

/// Returns a note on each side whose runs depend on the runs before them, as those of a machine that drifts.
pub(super) fn on_dependence(sides: &[String; 2], values: [&[f64]; 2]) -> Vec<String> {
    /// With fewer runs the effective sample size says little.
    const MIN_RUNS: usize = 5;
    /// The share of the runs below which the effective sample size is mentioned.
    const MIN_EFFECTIVE: f64 = 0.5;
    let note = |(side, values): (&String, &[f64])| {
        let found =
            mean_interval(values, LEVEL).filter(|found| values.len() >= MIN_RUNS && !found.effective_n.is_nan())?;
        (found.effective_n < MIN_EFFECTIVE * values.len() as f64).then(|| {
            format!(
                "the runs of {side} may depend on each other, since their effective sample size is {:.1} instead of {}: \
                 the interval may be too narrow; alternate the runs (`wmlrun ab`), or warm up a script (`--warmup auto`)",
                found.effective_n,
                values.len()
            )
        })
    };
    sides.iter().zip(values).filter_map(note).collect()
}

/// Returns the note on equal values of which an interval would be too narrow: they are few, or were rounded.
pub(super) fn on_equal_values(runs: &Runs<'_>, values: [&[f64]; 2], ratio: Estimate) -> Option<String> {
    if ratio.low.is_nan() {
        return None;
    }
    let few = |values: &[f64]| values.len() < MIN_EQUAL;
    if runs.in_blocks() {
        let is_point = ratio.high - ratio.low <= 0.0 && few(values[0]);
        let text = "all blocks have the same ratio, so that their variation is unknown: make more runs";
        return is_point.then(|| text.to_owned());
    }
    let (side, of_side, of_runs) =
        [("A", values[0], runs.a), ("B", values[1], runs.b)].into_iter().find(|(_, values, runs)| {
            let are_equal = values.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq());
            are_equal && (few(values) || runs.iter().any(|run| run.is_rounded))
        })?;
    let help = if of_runs.iter().any(|run| run.is_rounded) { "use figures with more digits" } else { "make more runs" };
    Some(format!("the {} values of {side} are equal, so that their variation is unknown: {help}", of_side.len()))
}

/// Returns the note on sides whose controls are not compared because the sides are of different machines or kernels.
pub(super) fn on_untested_control(a: &[Observation], b: &[Observation]) -> Option<String> {
    let has_control = a.iter().chain(b).all(|run| run.control.is_some());
    let differences: Vec<String> = machine_differences(a, b).iter().map(|name| format!("`{name}`")).collect();
    let all = differences.join(", ");
    (has_control && !all.is_empty())
        .then(|| format!("the control is not tested, because the runs differ in {all}, which may be what is compared"))
}

/// Returns the note on a change of the machine that may have caused the verdict, or may have hidden another one.
pub(super) fn on_control(comparison: &Comparison) -> Option<String> {
    if comparison.lacks_control() {
        let made = comparison.a.sample.n + comparison.b.sample.n;
        let needed = comparison.control.and_then(|control| control.runs_needed);
        let advice = match needed {
            Some(needed) => format!("make about {} runs instead of {made}, or use an idle machine", grouped(needed)),
            None => "repeat the runs on an idle machine".to_owned(),
        };
        return Some(format!(
            "the runs are too few to show that the machine was equally fast for A and B, see `control`: {advice}"
        ));
    }
    let control = comparison.control.filter(|control| control.moved)?;
    if comparison.interleaved {
        return None;
    }
    let is_slower = control.ratio.value < 1.0;
    let what = match comparison.verdict {
        ComparisonVerdict::Invalid if is_slower => {
            "this may be the whole difference; repeat B when the machine is idle"
        }
        ComparisonVerdict::Invalid => "this may be the whole difference; repeat A when the machine is idle",
        ComparisonVerdict::Worse if is_slower => "this may be a part of the difference",
        ComparisonVerdict::Better if !is_slower => "this may be a part of the difference",
        _ if is_slower => "with equally fast processors B may be better",
        _ => "with equally fast processors B may be worse",
    };
    let speed = if is_slower { "slower" } else { "faster" };
    Some(format!("the processors were {speed} during the runs of B, see `control`: {what}"))
}

/// Corrected p-value below which a change of another metric is named.
const CLEAR: f64 = 0.01;

/// Returns the note on other metrics that changed by more than the tolerance, if the metric of the verdict did not.
pub(super) fn on_others(comparison: &Comparison) -> Option<String> {
    use ComparisonVerdict::{NotWorse, Same, Unclear};
    if !matches!(comparison.verdict, NotWorse | Same | Unclear) {
        return None;
    }
    let (low, high) = (1.0 - comparison.tolerance, 1.0 + comparison.tolerance);
    let is_clear = |other: &&OtherMetric| other.p < CLEAR && (other.ratio.high < low || other.ratio.low > high);
    // The answer tells this one, unless nothing is shown.
    let told = comparison_answer::against(comparison).filter(|_| comparison.verdict != Unclear);
    let is_untold = |other: &&OtherMetric| told != Some(*other);
    let named = |other: &OtherMetric| format!("`{}` (B/A {:.3})", other.metric, other.ratio.value);
    let found: Vec<String> = comparison.others.iter().filter(is_clear).filter(is_untold).map(named).collect();
    let all = found.join(", ");
    (!found.is_empty())
        .then(|| format!("{all} changed clearly; for a verdict on another metric, compare again with `--metric`"))
}

/// Returns the note on a metric that is 0 in a run, so that there is no ratio.
pub(super) fn on_zero(metric: &Metric, a: &[f64], b: &[f64]) -> Option<String> {
    let side = [("A", a), ("B", b)].into_iter().find(|(_, values)| values.iter().any(|value| *value <= 0.0))?.0;
    Some(format!("`{metric}` is not above 0 in a run of {side}: there is no ratio; use another `--metric`"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::build::tests::{comparer, runs};
    use super::*;
    use crate::comparison::{RunOrder, Runs};
    use std::collections::BTreeMap;

    /// Returns runs of which the first `unsteady` were not steady, each with this number of operations.
    fn side(n: usize, unsteady: usize, operations: f64) -> Vec<Observation> {
        let mut found = runs("latency.p99", n, 100.0, 0.01);
        for (i, run) in found.iter_mut().enumerate() {
            run.unsteady = i < unsteady;
            run.operations = BTreeMap::from([(String::new(), operations)]);
            run.conditions = BTreeMap::from([("kernel".to_owned(), "6".to_owned())]);
        }
        found
    }

    fn notes(a: &[Observation], b: &[Observation]) -> String {
        let runs = Runs { a, b, order: RunOrder::Blocks };
        comparer("latency.p99").compare(&runs).unwrap().notes.join("\n")
    }

    #[test]
    fn warnings_of_the_runs_are_counted() {
        let mut runs = side(8, 0, 1e6);
        runs[3].warnings = vec!["errors".to_owned()];
        runs[4].warnings = ["starved", "errors"].map(str::to_owned).to_vec();
        let text = notes(&runs, &side(8, 0, 1e6));
        assert!(text.contains("warnings of the runs: `errors` in 2 of 16 runs, `starved` in 1 of 16 runs; "), "{text}");
        assert!(!notes(&side(8, 0, 1e6), &side(8, 0, 1e6)).contains("warnings of the runs"));
    }

    #[test]
    fn runs_that_were_not_steady_are_counted() {
        let text = notes(&side(8, 4, 1e6), &side(8, 3, 1e6));
        assert!(text.contains("the rate changed during 7 of 16 runs: "), "{text}");
        assert!(!text.contains("operations beyond"), "{text}");
        assert!(!notes(&side(8, 0, 1e6), &side(8, 0, 1e6)).contains("the rate changed"));
    }

    #[test]
    fn a_run_that_is_far_from_the_others_is_named() {
        let run = |ops: f64, n: usize| Observation {
            source: format!("r/runs/{n:04}.json"),
            figures: [("ops".to_owned(), ops)].into(),
            ..Observation::default()
        };
        let side = |values: &[f64]| -> Vec<Observation> { values.iter().zip(1..).map(|(v, n)| run(*v, n)).collect() };
        let (even, far) = (
            side(&[100.0, 101.0, 99.0, 100.5, 98.0, 102.0, 99.5]),
            side(&[100.0, 101.0, 40.0, 100.5, 98.0, 99.0, 100.0]),
        );
        let text = on_outliers(&[&even, &far], &Metric::ops()).unwrap();
        assert!(
            text.starts_with("`ops` is far from the median of its side or cell in 1 of 14 runs (run 3), an outlier: "),
            "{text}"
        );
        assert_eq!(on_outliers(&[&even, &far[..6]], &Metric::ops()), None);
        assert!(!notes(&self::side(8, 0, 1e6), &self::side(8, 0, 1e6)).contains("outlier"));
        // Of columns of numbers, none is named.
        let many: Vec<f64> = (0..2000).map(|n| if n == 7 { 1.0 } else { 100.0 + f64::from(n % 3) }).collect();
        assert_eq!(on_outliers(&[&side(&many)], &Metric::ops()), None);
    }

    #[test]
    fn runs_that_depend_on_each_other_are_noted() {
        let sides = ["A".to_owned(), "B".to_owned()];
        let (steady, drifting) = ([8.0, 9.0, 8.5, 9.5, 8.2, 9.1], [17.0, 14.5, 9.8, 7.4, 3.7, 3.6, 12.6, 4.5]);
        let found = on_dependence(&sides, [&steady, &drifting]);
        assert!(
            found.len() == 1 && found[0].starts_with("the runs of B may depend on each other, since "),
            "{found:?}"
        );
        assert_eq!(on_dependence(&sides, [&steady, &drifting[..4]]), Vec::<String>::new());
    }

    #[test]
    fn a_few_runs_of_one_experiment_are_named() {
        let runs = |dir: &str, n: u64| -> Vec<Observation> {
            let run = |n: u64| Observation { source: format!("{dir}/{n:04}.json"), ..Observation::default() };
            (1..=n).map(run).collect()
        };
        let of = |sides: &[&[Observation]]| number(sides, &|run| run.source.contains("2.json")).unwrap();
        assert_eq!(of(&[&runs("r/runs", 20)]), "2 of 20 runs (runs 2, 12)");
        assert_eq!(of(&[&runs("r/runs", 3), &runs("s/runs", 3)]), "2 of 6 runs");
        assert_eq!(of(&[&runs("results", 3)]), "1 of 3 runs");
    }

    #[test]
    fn runs_are_named_with_their_arms() {
        let run = |n: usize, arm: &str| Observation {
            source: format!("r/runs/{n:04}.json"),
            arm: arm.to_owned(),
            ..Observation::default()
        };
        let cells: Vec<Vec<Observation>> =
            (0..3).map(|cell| (0..9).map(|n| run(1 + 3 * n + cell, &format!("fs={cell}"))).collect()).collect();
        let sides: Vec<&[Observation]> = cells.iter().map(Vec::as_slice).collect();
        let of = |numbers: &[u64]| number(&sides, &|run| numbers.contains(&run_number(&run.source).unwrap())).unwrap();
        assert_eq!(of(&[3, 6]), "2 of 27 runs (runs 3, 6 of fs=2)");
        assert_eq!(of(&[7, 5, 1]), "3 of 27 runs (runs 1, 7 of fs=0; run 5 of fs=1)");
        assert_eq!(of(&[1, 4, 7, 10, 13, 16, 19, 2]), "8 of 27 runs (of fs=0 and fs=1)");
        assert_eq!(of(&[1, 4, 7, 10, 13, 16, 19, 2, 3]), "9 of 27 runs", "of all of them");
    }

    #[test]
    fn blocks_that_differ_are_named() {
        let note = on_blocks("ops", &[&[100.0, 30.0, 11.0], &[210.0, 65.0, 20.0]]).unwrap();
        assert!(note.starts_with("the blocks differ: `ops` was 9.8 times as high in block 1 as in block 3"), "{note}");
        for cells in [&[&[100.0, 80.0][..], &[200.0, 170.0]][..], &[&[1.0, 9.0]], &[&[1.0, 9.0], &[1.0]], &[&[], &[]]] {
            assert_eq!(on_blocks("ops", cells), None, "{cells:?}");
        }
    }

    #[test]
    fn runs_that_began_with_other_caches_are_counted() {
        let run = |share: f64| Observation { causes: [("resident_before", share)].into(), ..Observation::default() };
        let (a, b, c) = ([run(1.0), run(0.9), run(0.0)], [run(0.0), run(0.1)], [run(1.0), Observation::default()]);
        let note = on_caches(&[&a, &b, &c]).unwrap();
        assert!(note.starts_with("1 of 7 runs began with less of the files in memory "), "{note}");
        assert_eq!(on_caches(&[&b, &c]), None);
    }

    /// A hundredth of 9,999 operations is beyond the 99th percentile.
    #[test]
    fn a_percentile_needs_a_hundred_operations_beyond_it() {
        let text = notes(&side(8, 0, 9_999.0), &side(8, 0, 10_001.0));
        assert!(text.contains("`latency.p99` has fewer than 100 operations beyond it in 8 of 16 runs: "), "{text}");
        assert!(!notes(&side(8, 0, 10_001.0), &side(8, 0, 10_001.0)).contains("operations beyond"));
        let metrics = ["ops", "latency.mean", "latency.p99.9", "r.latency.p99"].map(|name| name.parse().unwrap());
        let found = on_runs(&[&side(8, 0, 10_001.0)], &metrics);
        assert!(found.len() == 1 && found[0].starts_with("`latency.p99.9` has fewer"), "{found:?}");
    }

    #[test]
    fn another_metric_that_changed_clearly_is_named() {
        let of = |latency: f64, turn: usize| {
            let mut runs = runs("ops", 8, 100.0, 0.1);
            runs.rotate_left(turn);
            for (i, run) in runs.iter_mut().enumerate() {
                run.figures.insert("latency.mean".to_owned(), latency * (1.0 + i as f64 / 100.0));
            }
            runs
        };
        let notes = |a: &[Observation], b: &[Observation]| {
            let runs = Runs { a, b, order: RunOrder::Separate };
            comparer("ops").compare(&runs).unwrap().notes.join("\n")
        };
        let text = notes(&of(10.0, 0), &of(5.0, 5));
        assert!(text.contains("`latency.mean` (B/A 0.500) changed clearly; for a verdict"), "{text}");
        assert!(!notes(&of(10.0, 0), &of(10.0, 5)).contains("changed clearly"));
    }

    #[test]
    fn sides_without_a_common_flowop_are_named() {
        let of = |name: &str| {
            let mut runs = side(4, 0, 20_000.0);
            runs.iter_mut().for_each(|run| {
                run.figures.insert(format!("{name}.ops"), 1.0);
            });
            runs
        };
        assert!(notes(&of("read"), &of("write")).contains("A and B have no flowop of the same name"));
        assert!(!notes(&of("read"), &of("read")).contains("no flowop"));
        assert!(!notes(&of("read"), &side(4, 0, 20_000.0)).contains("no flowop"), "those of B are unknown");
    }

    #[test]
    fn unknown_conditions_are_named() {
        let (known, unknown) = (side(4, 0, 20_000.0), runs("latency.p99", 4, 100.0, 0.01));
        for (a, b, says) in [
            (&known, &unknown, "the conditions of B are unknown"),
            (&unknown, &known, "the conditions of A are unknown"),
            (&unknown, &unknown, "the conditions of A and B are unknown"),
        ] {
            assert!(notes(a, b).contains(says), "{says}");
        }
        assert!(!notes(&known, &known).contains("the conditions of"));
    }
}
