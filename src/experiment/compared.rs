//! What the runs of an experiment say: the comparison of its two arms, its load curve, or the figures of its cells.

use super::stop::StoppingRule;
use super::wanted::{EQUAL_ARMS, Experiment, OTHER_VERDICT, RuleWanted, WantedFactor};
use crate::analysis::{InterimLook, NoiseFloor, RepeatState, ResponseMethod};
use crate::comparison::{
    Caution, Comparer, Comparison, FactorLevels, Factorial, FactorialDesign, RunOrder, Runs, Sweep, sweep,
};
use crate::import::{Metric, Observation};
use crate::sheet::Usability;

impl Experiment {
    /// Compares A and B for the verdict of the experiment. `look` is the interim look at which it ended. Returns an
    /// error when the experiment is not a comparison, and when a run failed or lacks the metric.
    pub(crate) fn comparison(
        &self,
        arms: [&[Observation]; 2],
        floor: Option<NoiseFloor>,
        look: Option<InterimLook>,
    ) -> Result<Comparison, String> {
        let (StoppingRule::Verdict { tolerance, .. }, Some(metric)) =
            (self.rule.stop(), self.metrics().into_iter().next())
        else {
            return Err("the experiment is not a comparison".to_owned());
        };
        let names = self.arm_names();
        let sides = names.each_ref().map(String::as_str);
        let comparer = Comparer { tolerance, floor, look, ..Comparer::of(&self.name, sides, &metric) };
        let mut comparison = compare_arms(&comparer, arms)?;
        if self.verdict.is_empty() {
            comparison.notes.insert(0, OTHER_VERDICT.to_owned());
            comparison.validity.cautions.push(Caution::of_note(Usability::WithCaution, OTHER_VERDICT));
        }
        if self.has_equal_arms() {
            comparison.notes.insert(0, EQUAL_ARMS.to_owned());
            comparison.validity.cautions.push(Caution::of_note(Usability::WithCaution, EQUAL_ARMS));
        }
        Ok(comparison)
    }

    /// Computes the load curve of a sweep from the runs of each arm, by the method of the sweep unless another one is
    /// given. Returns `None` for other kinds.
    pub(crate) fn sweep(&self, runs: &[Vec<Observation>], method: Option<ResponseMethod>) -> Option<Sweep> {
        let RuleWanted::Sweep { factor, levels, repeats, method: wanted, search, .. } = &self.rule else {
            return None;
        };
        let method = method.or(*wanted).unwrap_or(ResponseMethod::Sfs3);
        let planned_runs = search.is_none().then_some(repeats * levels.len() as u64);
        // A search tries its loads in an order of its own.
        let mut points: Vec<(&String, &Vec<Observation>)> = levels.iter().zip(runs).collect();
        if search.is_some() {
            points.sort_by(|a, b| load_of(a.0).total_cmp(&load_of(b.0)));
        }
        let (levels, runs): (Vec<String>, Vec<Vec<Observation>>) =
            points.into_iter().map(|(level, runs)| (level.clone(), runs.clone())).unzip();
        let found = sweep(&self.name, factor, &levels, &runs, method).with_metrics(&self.metrics(), &runs);
        Some(Sweep { planned_runs, ..found })
    }

    /// Computes the result of a factorial experiment from the runs of each arm. `has_all_runs` says that none is missing
    /// between them. Returns `None` for other kinds.
    pub(crate) fn factorial(
        &self,
        runs: &[Vec<Observation>],
        has_all_runs: bool,
        state: RepeatState,
    ) -> Option<Factorial> {
        let RuleWanted::Factorial { factors, max_runs, until_ci, stop, order, tables, .. } = &self.rule else {
            return None;
        };
        let full: Vec<Vec<String>> = factors.iter().map(|factor| factor.levels.clone()).collect();
        let levels = |(n, factor): (usize, &WantedFactor)| {
            let scaled = self.scaled_names.get(n).filter(|names| names.len() == factor.levels.len());
            FactorLevels { name: factor.name.clone(), levels: scaled.unwrap_or(&factor.levels).clone() }
        };
        let factors: Vec<FactorLevels> = factors.iter().enumerate().map(levels).collect();
        let cells: Vec<(String, Vec<Observation>)> =
            self.arms.iter().map(|arm| arm.name.clone()).zip(runs.iter().cloned()).collect();
        let metrics = self.metrics();
        let (name, target, in_order) = (self.name.as_str(), *until_ci, !order.has_blocks());
        let own = |arm: usize| self.metrics_of(arm).into_iter().next().filter(|_| self.arms[arm].metric.is_some());
        let own: Vec<Option<Metric>> = (0..self.arms.len()).map(own).collect();
        let planned_runs = until_ci.is_none().then(|| max_runs.saturating_mul(self.arms.len() as u64));
        let design = FactorialDesign {
            name,
            factors: &factors,
            metrics: &metrics,
            own: &own,
            target,
            stop: *stop,
            planned_runs,
            in_order,
            in_blocks: !in_order && has_all_runs,
            tables,
        };
        Some(Factorial { full_names: full, ..design.result(state, &cells) })
    }
}

/// A load that a search has tried.
fn load_of(level: &str) -> f64 {
    level.parse().unwrap_or(f64::INFINITY)
}

/// Compares A and B by their runs in the order of time, of which each two successive ones are of one block. Returns an
/// error when a run failed or lacks the metric, or when an arm has no run.
pub fn compare_arms(comparer: &Comparer, [a, b]: [&[Observation]; 2]) -> Result<Comparison, String> {
    comparer.compare(&Runs { a, b, order: RunOrder::Blocks })
}
