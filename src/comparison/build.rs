//! From observations to a comparison.

use super::{ComparedSide, Comparison, ControlResult, EndingLook, NamedTest, OtherMetric, SCHEMA, Shapes, differences};
use crate::analysis::{
    self, BlockAnalysis, ComparisonVerdict, Direction, Estimate, InterimLook, NoiseFloor, Power, RunBlock,
    SampleSummary, Tolerance, classify, holm, rank_changes, welch,
};
use crate::import::{Metric, Observation};
use std::collections::BTreeSet;

/// The relative change that is too small to matter, unless another is given.
pub const DEFAULT_TOLERANCE: f64 = 0.03;

/// Confidence of intervals.
const LEVEL: f64 = 0.95;

/// Confidence with which a negative control has moved.
const CONTROL_LEVEL: f64 = 0.999;

/// Confidence of the study's tests.
const STUDY_LEVEL: f64 = 0.99;

/// How samples that were made separately are tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparisonMethod {
    /// By Welch's test of the logarithms.
    #[default]
    Welch,
    /// The same, and beside it the study's: F-test, then t-test.
    Study,
}

/// The runs of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Those of A, in the order of time.
    pub a: &'a [Observation],
    /// Those of B.
    pub b: &'a [Observation],
    /// Blocks of two and two, if they took turns: then runs come in blocks of A A and B B.
    pub interleaved: bool,
    /// The speed of the negative control beside each run; empty without one.
    pub control_a: &'a [f64],
    /// The same beside B.
    pub control_b: &'a [f64],
}

/// How runs are compared.
#[derive(Clone, Debug)]
pub struct Comparer {
    /// What is compared.
    pub name: String,
    /// What each side is.
    pub sides: [String; 2],
    /// On which figure the verdict stands.
    pub metric: Metric,
    /// Figures that are described beside it; empty: those that both sides have of the whole run.
    pub others: Vec<Metric>,
    /// Too small to matter.
    pub tolerance: Tolerance,
    /// For samples that were made separately.
    pub method: ComparisonMethod,
    /// How far results differ although nothing was changed, if that has been measured.
    pub floor: Option<NoiseFloor>,
    /// The look at which a sequential comparison ended.
    pub look: Option<InterimLook>,
}

impl Comparer {
    /// Compares two sides by a metric, with a tolerance of 3 %.
    pub fn of(name: &str, sides: [&str; 2], metric: &Metric) -> Self {
        Self {
            name: name.to_owned(),
            sides: sides.map(str::to_owned),
            metric: metric.clone(),
            others: Vec::new(),
            tolerance: Tolerance(DEFAULT_TOLERANCE),
            method: ComparisonMethod::Welch,
            floor: None,
            look: None,
        }
    }

    /// Compares. An error names the figure that a run lacks.
    pub fn compare(&self, runs: &Runs<'_>) -> Result<Comparison, String> {
        let values = |runs: &[Observation]| values(runs, &self.metric);
        let (a, b) = (values(runs.a)?, values(runs.b)?);
        let sample = |values: &[f64], side: usize| -> Result<ComparedSide, String> {
            let sample = SampleSummary::of(values).ok_or_else(|| format!("{} has no run", self.sides[side]))?;
            Ok(ComparedSide { name: self.sides[side].clone(), sample, values: values.to_vec() })
        };
        let (side_a, side_b) = (sample(&a, 0)?, sample(&b, 1)?);
        let mut notes = Vec::new();
        let level = self.look.map_or(LEVEL, |look| 1.0 - 2.0 * look.one_sided);
        let blocks = if runs.interleaved { blocks(&a, &b) } else { Vec::new() };
        let by_blocks = analysis::analyse(&blocks, level);
        let separately = welch(&a, &b, level);
        let nothing = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN };
        let (ratio, test) = match (&by_blocks, &separately) {
            (Some(found), _) => (found.ratio, named("t on blocks", found.t, found.df, found.p)),
            (None, Some(found)) if !runs.interleaved => (found.ratio, named("Welch", found.t, found.df, found.p)),
            _ => {
                notes.push(
                    "too few runs for an interval: two of each side at least, in two blocks if they take turns"
                        .to_owned(),
                );
                (nothing, named("none", f64::NAN, f64::NAN, f64::NAN))
            }
        };
        if !runs.interleaved {
            notes.push("not interleaved: a drift of the machine between the two sides is in the ratio".to_owned());
        }
        let direction = self.metric.direction();
        let control = control(runs, self.tolerance);
        let over_days = !runs.interleaved && on_other_days(runs);
        let verdict = match control {
            Some(control) if control.moved => ComparisonVerdict::Invalid,
            _ if over_days => match self.floor {
                Some(floor) => classify(direction.goodness(floor.widen(ratio)), self.tolerance),
                None => ComparisonVerdict::Unclear,
            },
            _ => classify(direction.goodness(ratio), self.tolerance),
        };
        if over_days && self.floor.is_none() {
            let days = "the sides are of different days, and the noise floor of this workload and place is not known";
            notes.push(format!("{days}; `wmlrun floor` measures it"));
        }
        let power = self.power(runs.interleaved, by_blocks.as_ref(), blocks.len(), &side_a.sample, &side_b.sample);
        let study = (self.method == ComparisonMethod::Study).then(|| analysis::study(&a, &b, STUDY_LEVEL)).flatten();
        let shapes = (self.method == ComparisonMethod::Study).then(|| Shapes {
            ecdf_a: analysis::ecdf(&a),
            ecdf_b: analysis::ecdf(&b),
            qq: analysis::quantile_pairs(&a, &b),
        });
        Ok(Comparison {
            schema: SCHEMA.to_owned(),
            name: self.name.clone(),
            metric: self.metric.to_string(),
            higher_is_better: direction == Direction::HigherIsBetter,
            interleaved: runs.interleaved,
            a: side_a,
            b: side_b,
            ratio,
            difference: separately.map_or(nothing, |test| test.difference),
            test,
            sign: by_blocks.and_then(|found| found.sign),
            verdict,
            tolerance: self.tolerance.0,
            could_have_seen: power.and_then(|(power, _)| power.detectable_loss(self.tolerance)),
            runs_needed: power.and_then(|(_, needed)| needed),
            control,
            floor: self.floor,
            look: self.look.map(|look| EndingLook { blocks: look.blocks as u64, one_sided: look.one_sided }),
            differs: differences(runs.a, runs.b),
            causes: causes(runs),
            others: self.others(runs),
            study,
            shapes,
            notes,
        })
    }

    /// The power of what was done, and the runs in all that would do.
    fn power(
        &self,
        interleaved: bool,
        found: Option<&BlockAnalysis>,
        blocks: usize,
        a: &SampleSummary,
        b: &SampleSummary,
    ) -> Option<(Power, Option<u64>)> {
        if interleaved {
            let between_runs = found?.between_runs;
            let needed = Power::needed_blocks(between_runs, self.tolerance, 2).map(|blocks| 4 * blocks as u64);
            return Some((Power::of_blocks(blocks, between_runs), needed));
        }
        if a.n < 2 || b.n < 2 || a.mean <= 0.0 || b.mean <= 0.0 {
            return None;
        }
        // The variation of a logarithm is that of the value over its mean.
        let variation = f64::midpoint(a.variance / a.mean.powi(2), b.variance / b.mean.powi(2)).sqrt();
        let needed = Power::needed_runs(variation, self.tolerance).map(|runs| 2 * runs as u64);
        Some((Power::of_runs(a.n.min(b.n) as usize, variation), needed))
    }

    /// Every other metric that all runs have.
    fn others(&self, runs: &Runs<'_>) -> Vec<OtherMetric> {
        let whole = ["ops", "mib", "latency.mean", "latency.p50", "latency.p99"];
        let default: Vec<Metric> = whole.iter().filter_map(|name| name.parse().ok()).collect();
        let wanted = if self.others.is_empty() { &default } else { &self.others };
        let tested: Vec<_> = wanted
            .iter()
            .filter(|metric| **metric != self.metric)
            .filter_map(|metric| {
                let known = |runs: &[Observation]| runs.iter().all(|run| run.figures.contains_key(&metric.to_string()));
                let (a, b) = (values(runs.a, metric).ok()?, values(runs.b, metric).ok()?);
                let test = match runs.interleaved {
                    true => analysis::analyse(&blocks(&a, &b), LEVEL).map(|found| (found.ratio, found.p)),
                    false => welch(&a, &b, LEVEL).map(|found| (found.ratio, found.p)),
                };
                (known(runs.a) && known(runs.b)).then_some((metric, test?))
            })
            .collect();
        let corrected = holm(&tested.iter().map(|(_, (_, p))| *p).collect::<Vec<_>>());
        let all = tested.into_iter().zip(corrected);
        all.map(|((metric, (ratio, _)), p)| OtherMetric { metric: metric.to_string(), ratio, p }).collect()
    }
}

fn named(name: &str, t: f64, df: f64, p: f64) -> NamedTest {
    NamedTest { name: name.to_owned(), t, df, p }
}

fn values(runs: &[Observation], metric: &Metric) -> Result<Vec<f64>, String> {
    let value = |run: &Observation| {
        if let Some(failure) = &run.failure {
            return Err(format!("{} is no whole run: {failure}", run.source));
        }
        metric.of(run).ok_or_else(|| {
            let known: Vec<&str> = run.figures.keys().map(String::as_str).take(12).collect();
            format!("{} has no `{metric}`; it has {}", run.source, known.join(", "))
        })
    };
    runs.iter().map(value).collect()
}

/// Whether no day has runs of both sides, as far as their days are known.
fn on_other_days(runs: &Runs<'_>) -> bool {
    let days = |runs: &[Observation]| runs.iter().filter_map(|run| run.day.clone()).collect::<BTreeSet<String>>();
    let (a, b) = (days(runs.a), days(runs.b));
    !a.is_empty() && !b.is_empty() && a.is_disjoint(&b)
}

/// Whole blocks of two runs of each side.
fn blocks(a: &[f64], b: &[f64]) -> Vec<RunBlock> {
    a.chunks_exact(2).zip(b.chunks_exact(2)).map(|(a, b)| RunBlock { a: [a[0], a[1]], b: [b[0], b[1]] }).collect()
}

fn control(runs: &Runs<'_>, tolerance: Tolerance) -> Option<ControlResult> {
    let (ratio, p) = analysis::control_change(&blocks(runs.control_a, runs.control_b), CONTROL_LEVEL)?;
    let shift = (ratio.value - 1.0).abs() > tolerance.0;
    Some(ControlResult { moved: p < 1.0 - CONTROL_LEVEL && shift, ratio, p })
}

/// What moved with the metric.
fn causes(runs: &Runs<'_>) -> Vec<analysis::Change> {
    let names: BTreeSet<&str> = runs.a.iter().chain(runs.b).flat_map(|run| run.causes.keys().copied()).collect();
    let values = |runs: &[Observation], name: &str| -> Option<Vec<f64>> {
        runs.iter().map(|run| run.causes.get(name).copied()).collect()
    };
    let figures: Vec<_> =
        names.into_iter().filter_map(|name| Some((name, values(runs.a, name)?, values(runs.b, name)?))).collect();
    rank_changes(&figures)
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
