//! The comparison of the two arms of an experiment, for its verdict, its page and the noise floor.

use super::wanted::{EQUAL_ARMS, Experiment, OTHER_VERDICT, RuleWanted};
use crate::analysis::{InterimLook, NoiseFloor, ResponseMethod};
use crate::comparison::{Comparer, Comparison, RunOrder, Runs, Sweep, sweep};
use crate::import::Observation;

impl Experiment {
    /// Compares A and B for the verdict of the experiment. `look` is the interim look at which it ended. Returns an
    /// error when the experiment is not a comparison, and when a run failed or lacks the metric.
    pub fn comparison(
        &self,
        arms: [&[Observation]; 2],
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
        if self.verdict.is_empty() {
            comparison.notes.insert(0, OTHER_VERDICT.to_owned());
        }
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

/// Compares A and B by their runs in the order of time, of which each two successive ones are of one block. Returns an
/// error when a run failed or lacks the metric, or when an arm has no run.
pub fn compare_arms(comparer: &Comparer, [a, b]: [&[Observation]; 2]) -> Result<Comparison, String> {
    comparer.compare(&Runs { a, b, order: RunOrder::Blocks })
}
