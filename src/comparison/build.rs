//! Builds a comparison from observations.

use super::advice::advice;
use super::differences::{annotations, is_one_machine};
pub(super) use super::tested::LEVEL;
use super::tested::{RunOrder, RunPositions, Runs, TestedRatio, blocks, check_disturbance, disturbance, times};
use super::{
    ComparedSide, Comparison, ControlResult, EndingLook, IntervalDoubt, NamedTest, OtherMetric, SCHEMA, Shapes,
    Validity, cautions, conditions, differences, notes, steps, unlike, verdict_notes,
};
use crate::analysis::{
    self, ComparisonVerdict, Direction, DisturbanceCheck, Estimate, InterimLook, MIN_SESSION_GAP, NoiseFloor,
    SampleSummary, Tolerance, classify, holm, needed_for_width, paired_ratio, rank_changes, welch, welch_ratio,
};
use crate::import::{Metric, Observation};
use std::collections::BTreeSet;

/// The default tolerance: a relative change of at most 3 % does not matter.
pub const DEFAULT_TOLERANCE: f64 = 0.03;

/// The confidence level of the test of the negative control.
const CONTROL_LEVEL: f64 = 0.999;

/// The confidence level of the study's tests.
pub(super) const STUDY_LEVEL: f64 = 0.99;

/// The method for samples that were not interleaved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparisonMethod {
    /// The test of the ratio alone.
    #[default]
    Ratio,
    /// In addition the method of the study: an F-test followed by a t-test.
    Study,
}

/// The parameters of a comparison.
#[derive(Clone, Debug)]
pub struct Comparer {
    /// The name of the comparison.
    pub name: String,
    /// The names of A and B.
    pub sides: [String; 2],
    /// The metric on which the verdict is based.
    pub metric: Metric,
    /// The direction in which that metric improves.
    pub direction: Direction,
    /// Further metrics that are reported without a verdict, besides those of the whole run.
    pub others: Vec<Metric>,
    /// The largest relative change that does not matter.
    pub tolerance: Tolerance,
    /// The method for samples that were not interleaved.
    pub method: ComparisonMethod,
    /// The noise floor, if it has been measured or given.
    pub floor: Option<NoiseFloor>,
    /// The confidence level of intervals, unless an interim look has another one.
    pub level: f64,
    /// The interim look at which a sequential comparison ended.
    pub look: Option<InterimLook>,
    /// Whether an unclear comparison has a note that says what to do.
    pub advises: bool,
}

impl Comparer {
    /// Creates a comparison of two sides by a metric, with a tolerance of 3 % and no noise floor.
    pub(crate) fn of(name: &str, sides: [&str; 2], metric: &Metric) -> Self {
        Self {
            name: name.to_owned(),
            sides: sides.map(str::to_owned),
            metric: metric.clone(),
            direction: metric.direction(),
            others: Vec::new(),
            tolerance: Tolerance(DEFAULT_TOLERANCE),
            method: ComparisonMethod::Ratio,
            floor: None,
            level: LEVEL,
            look: None,
            advises: true,
        }
    }

    /// Compares the runs. Returns an error when a run failed or lacks the metric, or when a side has no run.
    pub(crate) fn compare(&self, runs: &Runs<'_>) -> Result<Comparison, String> {
        let values = |runs: &[Observation]| values(runs, &self.metric);
        let (a, b) = (values(runs.a)?, values(runs.b)?);
        let sample = |values: &[f64], side: usize| -> Result<ComparedSide, String> {
            let sample = SampleSummary::of(values).ok_or_else(|| format!("{} has no runs", self.sides[side]))?;
            let runs = [runs.a, runs.b][side];
            let measured = measured(&runs.iter().collect::<Vec<_>>());
            let disturbed = runs.iter().filter(|run| run.disturbed).count() as u64;
            let (name, options, values) = (self.sides[side].clone(), String::new(), values.to_vec());
            Ok(ComparedSide { name, options, measured, disturbed, sample, values })
        };
        let (side_a, side_b) = (sample(&a, 0)?, sample(&b, 1)?);
        let level = self.level_of_look();
        let days_differ = !runs.in_blocks() && on_different_days(runs);
        let times = times(runs, days_differ);
        let tested = TestedRatio::of(runs.order, [&a, &b], &times, level);
        let without_interval = || Estimate { value: ratio_of_means(&a, &b), ..UNKNOWN };
        let ratio = tested.as_ref().map_or_else(without_interval, TestedRatio::ratio);
        let no_ratio = ratio.low.is_nan().then(|| notes::on_zero(&self.metric, &a, &b)).flatten();
        let mut notes = self.notes(runs, tested.as_ref(), no_ratio.as_deref(), days_differ);
        let control = control(runs, self.tolerance);
        // Within a day there is no difference between days. A floor that the user gives holds for sides of an unknown time.
        let lacks_times = !runs.in_blocks() && runs.a.iter().chain(runs.b).any(|run| run.started.is_none());
        let applies = |floor: &NoiseFloor| floor.spans_days && (days_differ || floor.is_given() && lacks_times);
        let floor = self.floor.filter(applies);
        let with_floor = floor.map(|floor| floor.widen(ratio)).filter(|ratio| ratio.low.is_finite());
        let lacks_floor = days_differ && floor.is_none();
        if lacks_floor {
            notes.push(notes::on_floor(self.floor));
        }
        if self.floor.is_some_and(NoiseFloor::is_given) && floor.is_none() {
            notes.push(notes::ON_UNUSED_FLOOR.to_owned());
        }
        if !runs.in_blocks() {
            notes.extend(notes::on_untested_control(runs.a, runs.b));
        }
        if runs.order == RunOrder::Separate {
            notes.extend(notes::on_dependence(&self.sides, [&a, &b]));
        }
        let equal_values = notes::on_equal_values(runs, [&a, &b], ratio);
        let doubt = doubt(ratio, lacks_floor, equal_values.is_some());
        notes.extend(equal_values);
        let verdict_of = |ratio: Estimate| {
            let widened = floor.map_or(ratio, |floor| floor.widen(ratio));
            classify(self.direction.goodness(widened), self.tolerance)
        };
        let (goodness, by_interval) = (self.direction.goodness(with_floor.unwrap_or(ratio)), verdict_of(ratio));
        if doubt.is_none() {
            let alone = tested.as_ref().and_then(TestedRatio::without_trend);
            notes.extend(alone.filter(|alone| verdict_of(*alone) != by_interval).map(verdict_notes::on_trend));
        }
        let mut checked = None;
        let doubt = doubt.or_else(|| {
            // A control that moved has its own verdict.
            let is_unknown = control.is_none_or(|control| control.is_unknown(self.tolerance.0));
            let (check, note, holds) = match by_interval {
                _ if !is_unknown => return None,
                ComparisonVerdict::Better | ComparisonVerdict::Worse if runs.in_blocks() => {
                    let found = check_disturbance(runs, [&a, &b], level, by_interval, &verdict_of);
                    let note = |check, holds| verdict_notes::on_check(check, holds, disturbance(runs));
                    found.map(|(check, holds)| (Some(check), note(check, holds), holds))?
                }
                // Those who slow one side alone may hide a difference.
                ComparisonVerdict::Same | ComparisonVerdict::NotWorse if runs.in_blocks() => {
                    let found = check_disturbance(runs, [&a, &b], level, by_interval, &verdict_of);
                    let (check, holds) = found.filter(|(check, _)| *check == DisturbanceCheck::Unequal)?;
                    (Some(check), verdict_notes::on_check(check, holds, disturbance(runs)), holds)
                }
                ComparisonVerdict::Unclear => return None,
                _ if !runs.in_blocks() && disturbance(runs).is_of_half_a_side() => {
                    (None, verdict_notes::on_half(disturbance(runs)), false)
                }
                _ => return None,
            };
            notes.push(note.clone());
            checked = Some((check, note, holds));
            (!holds).then_some(IntervalDoubt::Disturbed)
        });
        let verdict = match control {
            Some(control) if control.moved && runs.in_blocks() => ComparisonVerdict::Invalid,
            _ if doubt.is_some() => ComparisonVerdict::Unclear,
            Some(control) if control.may_explain(by_interval, goodness, self.tolerance) => ComparisonVerdict::Invalid,
            _ => by_interval,
        };
        let power = match &tested {
            Some(tested) if !ratio.low.is_nan() && doubt.is_none() => tested.power(runs, self.tolerance, floor, level),
            _ => (None, None),
        };
        let study = (self.method == ComparisonMethod::Study).then(|| analysis::study(&a, &b, STUDY_LEVEL)).flatten();
        let shapes = (self.method == ComparisonMethod::Study).then(|| Shapes {
            ecdf_a: analysis::ecdf(&a),
            ecdf_b: analysis::ecdf(&b),
            qq: analysis::quantile_pairs(&a, &b),
            normal_a: analysis::normal_plot(&a),
            normal_b: analysis::normal_plot(&b),
            shapiro_wilk_a: analysis::shapiro_wilk(&a),
            shapiro_wilk_b: analysis::shapiro_wilk(&b),
        });
        let mut comparison = Comparison {
            schema: SCHEMA.to_owned(),
            name: self.name.clone(),
            workload: String::new(),
            metric: self.metric.to_string(),
            higher_is_better: self.direction == Direction::HigherIsBetter,
            interleaved: runs.in_blocks(),
            a: side_a,
            b: side_b,
            level,
            ratio,
            ratio_with_floor: with_floor,
            difference: welch(&a, &b, level).map_or(UNKNOWN, |test| test.estimate),
            test: tested.as_ref().map_or_else(untested, TestedRatio::named),
            sign: match tested {
                Some(TestedRatio::Interleaved(found)) => found.sign,
                _ => None,
            },
            verdict,
            tolerance: self.tolerance.0,
            could_have_seen: power.0,
            runs_needed: power.1,
            control,
            floor: self.floor,
            look: self.look.map(|look| EndingLook { blocks: look.blocks as u64, one_sided: look.one_sided }),
            annotations: annotations(runs.a, runs.b),
            differs: differences(runs.a, runs.b),
            causes: causes(runs),
            others: self.others(runs, &times, level),
            study,
            shapes,
            notes,
            doubt,
            steps: steps::tested_steps(runs, &times, level),
            advice: None,
            validity: Validity::of_runs(&[runs.a, runs.b]),
        };
        let is_unclear = verdict == ComparisonVerdict::Unclear;
        let wide_floor = floor.filter(|_| is_unclear).and_then(|floor| notes::on_wide_floor(floor, self.tolerance));
        comparison.notes.extend(wide_floor);
        comparison.notes.extend(notes::on_control(&comparison));
        // More runs do not reduce the difference between days, and give no ratio to a metric that is 0.
        let runs_help = !days_differ && no_ratio.is_none() && doubt.is_none();
        if self.advises && verdict == ComparisonVerdict::Unclear && runs_help {
            let advice = advice(&comparison, runs.order);
            comparison.notes.push(advice.clone());
            comparison.advice = Some(advice);
        }
        if self.advises {
            comparison.notes.extend(notes::on_others(&comparison));
        }
        comparison.validity.cautions = cautions::of_comparison(&comparison, runs, &self.metric, checked);
        Ok(comparison)
    }

    /// The confidence level of this look at the runs.
    fn level_of_look(&self) -> f64 {
        self.look.map_or(self.level, |look| 1.0 - 2.0 * look.one_sided)
    }

    /// Returns the notes on the runs. `no_ratio`: why there is no ratio, if that is known.
    fn notes(
        &self,
        runs: &Runs<'_>,
        tested: Option<&TestedRatio>,
        no_ratio: Option<&str>,
        days_differ: bool,
    ) -> Vec<String> {
        let level = self.level_of_look();
        let mut notes: Vec<String> = match tested {
            _ if no_ratio.is_some() => no_ratio.map(str::to_owned).into_iter().collect(),
            Some(tested) => verdict_notes::on_interval(tested, runs.order, level).into_iter().collect(),
            None => vec![verdict_notes::TOO_FEW.to_owned()],
        };
        let order = match runs.order {
            RunOrder::Blocks | RunOrder::Paired => None,
            RunOrder::Alternated => Some(verdict_notes::ALTERNATED),
            RunOrder::Separate if days_differ => Some(verdict_notes::OF_OTHER_DAYS),
            RunOrder::Separate => Some(verdict_notes::NOT_INTERLEAVED),
        };
        notes.extend(order.map(str::to_owned));
        notes.extend(notes::on_flowops(runs.a, runs.b));
        notes.extend(notes::on_conditions(runs.a, runs.b));
        notes.extend(unlike::on_run_times(runs.a, runs.b));
        notes.extend(unlike::on_load(&[runs.a, runs.b], &self.metric));
        if !runs.in_blocks() {
            notes.extend(notes::on_times(runs.a, runs.b));
        }
        notes.extend(notes::on_runs(&[runs.a, runs.b], std::slice::from_ref(&self.metric)));
        notes
    }

    /// Returns the comparisons of all other metrics that every run has.
    fn others(&self, runs: &Runs<'_>, times: &RunPositions, level: f64) -> Vec<OtherMetric> {
        let whole = ["ops", "mib", "latency.mean", "latency.p50", "latency.p99"];
        let default: Vec<Metric> = whole.iter().filter_map(|name| name.parse().ok()).collect();
        let further = self.others.iter().filter(|metric| !default.contains(metric));
        let wanted: Vec<&Metric> = default.iter().chain(further).collect();
        let tested: Vec<_> = wanted
            .iter()
            .filter(|metric| ***metric != self.metric)
            .filter_map(|metric| {
                let known = |runs: &[Observation]| runs.iter().all(|run| run.figures.contains_key(&metric.to_string()));
                let (a, b) = (values(runs.a, metric).ok()?, values(runs.b, metric).ok()?);
                let found = TestedRatio::of(runs.order, [&a, &b], times, level)?;
                (known(runs.a) && known(runs.b)).then_some((metric, (found.ratio(), found.p())))
            })
            .collect();
        let corrected = holm(&tested.iter().map(|(_, (_, p))| *p).collect::<Vec<_>>());
        let all = tested.into_iter().zip(corrected);
        all.map(|((metric, (ratio, _)), p)| OtherMetric { metric: metric.to_string(), ratio, p }).collect()
    }
}

/// An estimate of which nothing is known.
const UNKNOWN: Estimate = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN };

/// Returns why the interval of a ratio is too narrow. `None` if it is not, or if there is none.
fn doubt(ratio: Estimate, lacks_floor: bool, has_equal_values: bool) -> Option<IntervalDoubt> {
    if ratio.low.is_nan() {
        return None;
    }
    match (lacks_floor, has_equal_values) {
        (true, _) => Some(IntervalDoubt::UnknownFloor),
        (false, true) => Some(IntervalDoubt::EqualValues),
        (false, false) => None,
    }
}

/// Says what runs measured, where and when: the workloads, the file systems with their devices, and the days. Empty for
/// runs of which nothing of this is known.
pub fn measured(runs: &[&Observation]) -> String {
    let workload = conditions::joined(runs.iter().map(|run| run.workload.clone()));
    let place = conditions::joined(runs.iter().filter_map(|run| {
        let (kind, device) = (run.conditions.get("file system")?, run.conditions.get("device"));
        Some(device.map_or_else(|| kind.clone(), |device| format!("{kind} ({device})")))
    }));
    let days = conditions::days(runs.iter().copied());
    let place = if place.is_empty() || workload.is_empty() { place } else { format!("on {place}") };
    let what = [workload, place].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    [what, days].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns the ratio of the geometric mean of B to that of A; NaN if a value is not positive.
fn ratio_of_means(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    let ratio = (mean(b) - mean(a)).exp();
    if ratio > 0.0 && ratio.is_finite() { ratio } else { f64::NAN }
}

/// Returns the description of no test.
fn untested() -> NamedTest {
    NamedTest { name: "none".to_owned(), t: f64::NAN, df: f64::NAN, p: f64::NAN }
}

/// Returns the values of a metric in all runs. Returns an error when a run failed or has no such metric.
fn values(runs: &[Observation], metric: &Metric) -> Result<Vec<f64>, String> {
    let value = |run: &Observation| {
        if let Some(failure) = &run.failure {
            return Err(format!("{} is not complete: {failure}", run.source));
        }
        metric.of(run).ok_or_else(|| format!("{} has no `{metric}`: {}", run.source, metric.help_in(run)))
    };
    let values = runs.iter().map(value).collect::<Result<_, _>>()?;
    if metric.is_told(&runs.iter()) { Ok(values) } else { Err(notes::on_missing_metric(&metric.to_string())) }
}

/// True if all runs of A are at least twelve hours from all runs of B. The date is no criterion: it may change
/// within a session. Runs of an unknown time are ignored.
fn on_different_days(runs: &Runs<'_>) -> bool {
    let times = |runs: &[Observation]| runs.iter().filter_map(|run| run.started).collect::<BTreeSet<i64>>();
    let (a, b) = (times(runs.a), times(runs.b));
    let gap = MIN_SESSION_GAP - 1;
    let is_near = |time: &i64| b.range(time.saturating_sub(gap)..=time.saturating_add(gap)).next().is_some();
    !a.is_empty() && !b.is_empty() && !a.iter().any(is_near)
}

/// Tests the negative control. Returns `None` when a run has none, when there are too few runs, and when the sides were not
/// interleaved and are of different machines or kernels: then this may be what is compared.
fn control(runs: &Runs<'_>, tolerance: Tolerance) -> Option<ControlResult> {
    let speeds = |runs: &[Observation]| -> Option<Vec<f64>> { runs.iter().map(|run| run.control).collect() };
    let (a, b) = (speeds(runs.a)?, speeds(runs.b)?);
    let (ratio, p) = match runs.order {
        RunOrder::Blocks => analysis::control_change(&blocks(&a, &b), CONTROL_LEVEL)?,
        RunOrder::Paired => paired_ratio(&a, &b, CONTROL_LEVEL).map(|test| (test.estimate, test.p))?,
        _ if !is_one_machine(runs.a, runs.b) => return None,
        _ => welch_ratio(&a, &b, CONTROL_LEVEL).map(|test| (test.estimate, test.p))?,
    };
    let shift = (ratio.value - 1.0).abs() > tolerance.0;
    // A block of four runs has two pairs.
    let (size, step) = match runs.order {
        RunOrder::Blocks => (a.len().min(b.len()) / 2 * 2, 4),
        _ => (a.len().min(b.len()), 2),
    };
    let df = |n: usize| if matches!(runs.order, RunOrder::Blocks | RunOrder::Paired) { n - 1 } else { 2 * n - 2 };
    let needed = needed_for_width(ratio, size, CONTROL_LEVEL, tolerance, df);
    // Of sides of different sizes the shorter one may be too short, while there are as many runs as needed.
    let total = needed.map(|n| (2 * n).next_multiple_of(step)).filter(|total| *total > a.len() + b.len());
    let runs_needed = total.map(|total| total as u64);
    Some(ControlResult { moved: p < 1.0 - CONTROL_LEVEL && shift, ratio, p, runs_needed })
}

/// Returns the figures that changed together with the metric.
fn causes(runs: &Runs<'_>) -> Vec<analysis::Change> {
    let all = || runs.a.iter().chain(runs.b);
    let mut names: BTreeSet<&str> = all().flat_map(|run| run.causes.keys().copied()).collect();
    // What the devices did is that of all programs.
    let is_shared = all().any(|run| run.disturbed);
    names.retain(|name| !is_shared || !name.starts_with("device_"));
    let values = |runs: &[Observation], name: &str| -> Option<Vec<f64>> {
        runs.iter().map(|run| run.causes.get(name).copied()).collect()
    };
    let figures: Vec<_> =
        names.into_iter().filter_map(|name| Some((name, values(runs.a, name)?, values(runs.b, name)?))).collect();
    rank_changes(&figures)
}

#[cfg(test)]
#[path = "build_tests.rs"]
pub(super) mod tests;
