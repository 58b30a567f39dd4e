//! The steps of a workload: how the mean latency of each changed from A to B.

use super::tested::{RunPositions, Runs, TestedRatio};
use crate::analysis::{Estimate, SampleSummary, holm};
use crate::import::{Metric, Observation};

/// An I/O step, and its mean latency in A and B.
#[derive(Clone, Debug, PartialEq)]
pub struct TestedStep {
    /// The name of the flowop.
    pub name: String,
    /// Whether it waits until data are on the storage, as an fsync does.
    pub is_sync: bool,
    /// Its mean latency in the median run of A and of B, in nanoseconds.
    pub a: f64,
    pub b: f64,
    /// The ratio of B to A.
    pub ratio: Estimate,
    /// The p-value of the ratio, corrected for the number of steps (Holm).
    pub p: f64,
    /// By how much its time in an operation of the workload changed, on average, in nanoseconds.
    pub moved: f64,
}

impl TestedStep {
    /// True if the latency changed significantly.
    pub(super) fn is_clear(&self) -> bool {
        self.p < SIGNIFICANCE
    }
}

/// The largest number of runs of which steps are tested.
const MOST_RUNS: usize = 1000;

/// The corrected p-value below which a step changed.
const SIGNIFICANCE: f64 = 0.05;

/// Returns the I/O steps, the one whose time in an operation of the workload changed most first. There are none if they
/// can't be tested.
pub(super) fn tested_steps(runs: &Runs<'_>, times: &RunPositions, level: f64) -> Vec<TestedStep> {
    let Some(first) = runs.a.first() else { return Vec::new() };
    // A workload of one step is the whole. The tests of many runs would take long.
    if first.steps.len() < 2 || runs.a.len() + runs.b.len() > MOST_RUNS {
        return Vec::new();
    }
    let metric = |name: &str, figure: &str| format!("{name}.{figure}").parse::<Metric>().ok();
    let values = |runs: &[Observation], metric: &Metric| -> Option<Vec<f64>> {
        runs.iter().map(|run| metric.of(run).filter(|value| *value > 0.0)).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let tested = |name: &String| {
        let latency = metric(name, "latency.mean")?;
        let (a, b) = (values(runs.a, &latency)?, values(runs.b, &latency)?);
        let found = TestedRatio::of(runs.order, [&a, &b], times, level)?;
        let rate = metric(name, "ops")?;
        // The time of the step in an operation of the workload, on average.
        let share = |runs: &[Observation], latency: &[f64]| {
            let of_run = |(run, latency): (&Observation, &f64)| Some(latency * rate.of(run)? / Metric::ops().of(run)?);
            runs.iter().zip(latency).map(of_run).collect::<Option<Vec<f64>>>().map(|times| mean(&times))
        };
        let moved = (share(runs.b, &b)? - share(runs.a, &a)?).abs();
        let (name, is_sync) = (name.clone(), first.syncs.contains(name));
        // One slow run dominates a mean of runs, and not the ratio.
        let [a, b] = [SampleSummary::of(&a)?.median, SampleSummary::of(&b)?.median];
        Some(TestedStep { name, is_sync, a, b, ratio: found.ratio(), p: found.p(), moved })
    };
    let mut steps: Vec<TestedStep> = first.steps.iter().filter_map(tested).collect();
    steps.retain(|step| step.moved.is_finite());
    let corrected = holm(&steps.iter().map(|step| step.p).collect::<Vec<_>>());
    steps.iter_mut().zip(corrected).for_each(|(step, p)| step.p = p);
    steps.sort_by(|a, b| b.moved.total_cmp(&a.moved));
    steps
}
