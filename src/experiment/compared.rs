//! The comparison of the two arms of an experiment, for its verdict, its page and the noise floor.

use super::wanted::{EQUAL_ARMS, Experiment, RuleWanted};
use crate::analysis::{InterimLook, NoiseFloor, ResponseMethod};
use crate::comparison::{Comparer, Comparison, RunOrder, Runs, Sweep, sweep};
use crate::import::Observation;

/// The runs of an arm in the order of time, of which each two successive ones are of one block.
#[derive(Clone, Copy, Debug)]
pub struct ArmRuns<'a> {
    /// The observations.
    pub observations: &'a [Observation],
    /// For each run, the mean speed of the negative control before and after it; `None` where it is unknown.
    pub controls: &'a [Option<f64>],
}

impl Experiment {
    /// Compares A and B for the verdict of the experiment. `look` is the interim look at which it ended. Returns an
    /// error when the experiment is not a comparison, and when a run failed or lacks the metric.
    pub fn comparison(
        &self,
        arms: [ArmRuns<'_>; 2],
        floor: Option<NoiseFloor>,
        look: Option<InterimLook>,
    ) -> Result<Comparison, String> {
        let (Some(tolerance), Some(metric)) = (self.tolerance(), self.metrics().into_iter().next()) else {
            return Err("the experiment is not a comparison".to_owned());
        };
        let names = self.arm_names();
        let sides = names.each_ref().map(String::as_str);
        let comparer = Comparer { tolerance, floor, look, ..Comparer::of(&self.name, sides, &metric) };
        let mut comparison = compare_arms(&comparer, arms)?;
        if self.has_equal_arms() {
            comparison.notes.insert(0, EQUAL_ARMS.to_owned());
        }
        Ok(comparison)
    }

    /// Computes the load curve of a sweep from the runs of each arm, by the method of the sweep unless another one is
    /// given. Returns `None` for other kinds.
    pub fn sweep(&self, runs: &[Vec<Observation>], method: Option<ResponseMethod>) -> Option<Sweep> {
        let RuleWanted::Sweep { factor, levels, repeats, method: wanted, .. } = &self.rule else {
            return None;
        };
        let method = method.or(*wanted).unwrap_or(ResponseMethod::Sfs3);
        let planned_runs = Some(repeats * levels.len() as u64);
        Some(Sweep { planned_runs, ..sweep(&self.name, factor, levels, runs, method) })
    }
}

/// Compares A and B, whose runs were interleaved in blocks. Returns an error when a run failed or lacks the metric, or
/// when an arm has no run.
pub fn compare_arms(comparer: &Comparer, [a, b]: [ArmRuns<'_>; 2]) -> Result<Comparison, String> {
    // Without the control of each run, those of a block can't be paired.
    let controls =
        |arm: ArmRuns<'_>| -> Vec<f64> { arm.controls.iter().copied().collect::<Option<_>>().unwrap_or_default() };
    let (control_a, control_b) = (controls(a), controls(b));
    comparer.compare(&Runs {
        a: a.observations,
        b: b.observations,
        order: RunOrder::Blocks,
        control_a: &control_a,
        control_b: &control_b,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::import::Metric;

    /// The controls after a missing one must not take the place of others.
    #[test]
    fn controls_of_which_one_is_missing_are_not_used() {
        let runs = |mean: f64| -> Vec<Observation> {
            let run = |n: u32| Observation {
                figures: [("ops".to_owned(), mean + f64::from(n % 3))].into(),
                ..Observation::default()
            };
            (0..8).map(run).collect()
        };
        let (a, b) = (runs(100.0), runs(101.0));
        let speeds =
            |step: u32| -> Vec<Option<f64>> { (0..8).map(|n| Some(1e6 + 1e3 * f64::from(n * step % 5))).collect() };
        let control = |controls: [&[Option<f64>]; 2]| {
            let arms = [
                ArmRuns { observations: &a, controls: controls[0] },
                ArmRuns { observations: &b, controls: controls[1] },
            ];
            compare_arms(&Comparer::of("x", ["A", "B"], &Metric::ops()), arms).unwrap().control
        };
        let (of_a, mut of_b) = (speeds(1), speeds(3));
        assert!(control([&of_a, &of_b]).is_some());
        of_b[2] = None;
        assert_eq!(control([&of_a, &of_b]), None);
    }
}
