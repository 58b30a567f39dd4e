//! The step of a workload that moved most between A and B.

use super::tested::{RunPositions, Runs, TestedRatio};
use crate::analysis::holm;
use crate::import::{Metric, Observation};

/// A step whose mean latency clearly differs between A and B.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedStep {
    /// The name of the flowop.
    pub name: String,
    /// Its mean latency in A and B, in nanoseconds.
    pub a: f64,
    pub b: f64,
    /// The p-value of the ratio, corrected for the number of steps (Holm).
    pub p: f64,
    /// The number of steps that were tested.
    pub steps: u64,
}

/// The largest number of runs of which steps are tested.
const MOST_RUNS: usize = 1000;

/// The largest corrected p-value of a step that is named.
const SIGNIFICANCE: f64 = 0.05;

/// Returns the I/O step whose time in an operation of the workload changed most, of those whose mean latency changed
/// significantly. `None` if there is none.
pub(super) fn most_moved(runs: &Runs<'_>, times: &RunPositions, level: f64) -> Option<MovedStep> {
    let names = &runs.a.first()?.steps;
    // A workload of one step is the whole. The tests of many runs would take long.
    if names.len() < 2 || runs.a.len() + runs.b.len() > MOST_RUNS {
        return None;
    }
    let metric = |name: &str, figure: &str| format!("{name}.{figure}").parse::<Metric>().ok();
    let values = |runs: &[Observation], metric: &Metric| -> Option<Vec<f64>> {
        runs.iter().map(|run| metric.of(run).filter(|value| *value > 0.0)).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let tested = |(at, name): (usize, &String)| {
        let latency = metric(name, "latency.mean")?;
        let (a, b) = (values(runs.a, &latency)?, values(runs.b, &latency)?);
        let p = TestedRatio::of(runs.order, [&a, &b], times, level)?.p();
        let rate = metric(name, "ops")?;
        // The time of the step in an operation of the workload, on average.
        let share = |runs: &[Observation], latency: &[f64]| {
            let of_run = |(run, latency): (&Observation, &f64)| Some(latency * rate.of(run)? / Metric::ops().of(run)?);
            runs.iter().zip(latency).map(of_run).collect::<Option<Vec<f64>>>().map(|times| mean(&times))
        };
        let moved = (share(runs.b, &b)? - share(runs.a, &a)?).abs();
        Some((at, mean(&a), mean(&b), p, moved))
    };
    let tested: Vec<_> = names.iter().enumerate().filter_map(tested).collect();
    let corrected = holm(&tested.iter().map(|(.., p, _)| *p).collect::<Vec<_>>());
    let steps = tested.len() as u64;
    let clear = tested.into_iter().zip(corrected).filter(|(_, p)| *p < SIGNIFICANCE);
    let most = clear.filter(|((.., moved), _)| moved.is_finite()).max_by(|((.., a), _), ((.., b), _)| a.total_cmp(b));
    most.map(|((at, a, b, ..), p)| MovedStep { name: names[at].clone(), a, b, p, steps })
}
