//! The order and the number of the runs of a factorial experiment, whose arms are the cells: all combinations of the
//! levels of its factors.
//!
//! In blocks, each block has one run of each cell, in a random order, until every cell is complete. In order, all runs
//! of a cell are made before those of the next, for workloads that change the file system for good.

use super::design::{Next, Prediction};
use super::wanted::{Experiment, RuleWanted};
use crate::analysis::{RepeatRule, RepeatState};
use crate::comparison::{FactorLevels, Factorial, FactorialDesign};
use crate::import::{Metric, Observation};

/// The values of the metrics in the runs so far, with their arms. A run that failed has no values.
type RunValues = [(usize, Vec<f64>)];

/// The state of a cell.
struct CellProgress {
    /// The state; [`RepeatState::Running`] if more runs are needed.
    state: RepeatState,
    /// The predicted total number of runs.
    predicted: u64,
    /// The index of the metric with the widest relative interval, and the relative half-width.
    widest: Option<(usize, f64)>,
}

/// Evaluates the stopping rule of a cell with these runs.
fn cell(rule: &RepeatRule, metrics: usize, of_cell: &[&[f64]]) -> CellProgress {
    let made = of_cell.len() as u64;
    let complete = CellProgress { state: RepeatState::Complete, predicted: made, widest: None };
    if rule.target.is_none() {
        return match made >= rule.runs.max {
            true => complete,
            false => CellProgress { state: RepeatState::Running, predicted: rule.runs.max, ..complete },
        };
    }
    if of_cell.iter().any(|values| values.len() < metrics) {
        // More runs do not make a cell precise in which a run failed.
        let state = if made >= rule.runs.min { RepeatState::NotConverged } else { RepeatState::Running };
        return CellProgress { state, predicted: made.max(rule.runs.min), widest: None };
    }
    let series: Vec<Vec<f64>> =
        (0..metrics).map(|metric| of_cell.iter().map(|values| values[metric]).collect()).collect();
    let found = rule.evaluate(&series);
    let widest = found.half_width.is_finite().then_some((found.worst, found.half_width));
    CellProgress { state: found.state, predicted: found.predicted, widest }
}

/// Returns the next step of a factorial experiment.
pub(super) fn next(experiment: &Experiment, metrics: &[Metric], in_order: bool, runs: &RunValues) -> Next {
    let Some(rule) = experiment.repeat_rule() else { return Next::Measured(RepeatState::Complete) };
    let count = experiment.arms.len();
    let mut by_cell: Vec<Vec<&[f64]>> = vec![Vec::new(); count];
    for (arm, values) in runs {
        by_cell.get_mut(*arm).into_iter().for_each(|cell| cell.push(values));
    }
    let cells: Vec<CellProgress> = by_cell.iter().map(|runs| cell(&rule, metrics.len(), runs)).collect();
    let is_running = |cell: &CellProgress| cell.state == RepeatState::Running;
    let in_block = !in_order && !runs.len().is_multiple_of(count);
    let Some(first) = cells.iter().position(is_running).or_else(|| in_block.then_some(0)) else {
        return Next::Measured(worst(cells.iter().map(|cell| cell.state)));
    };
    let predicted_runs = match in_order {
        true => cells.iter().map(|cell| cell.predicted).sum(),
        // All cells have as many runs as the one that needs most.
        false => {
            let begun = runs.len().div_ceil(count) as u64;
            cells.iter().map(|cell| cell.predicted).max().unwrap_or(0).max(begun) * count as u64
        }
    };
    let arm = if in_order { first } else { experiment.block_arm(runs.len()) };
    let widest = cells.iter().filter(|cell| is_running(cell)).filter_map(|cell| cell.widest);
    let widest = widest.max_by(|(_, a), (_, b)| a.total_cmp(b));
    Next::Run { arm, progress: Prediction { predicted_runs, widest, at_most: false, pilot: None } }
}

/// Returns the state of an experiment whose cells are in these states: that of the least certain cell.
fn worst(states: impl Iterator<Item = RepeatState>) -> RepeatState {
    let rank = |state: &RepeatState| match state {
        RepeatState::Complete => 0,
        RepeatState::Converged => 1,
        RepeatState::NotConverged => 2,
        RepeatState::Drifting => 3,
        RepeatState::Running => 4,
    };
    states.max_by_key(rank).unwrap_or(RepeatState::Complete)
}

/// Returns the result with which an experiment can end after these runs, when its budget is exhausted: if each cell has
/// as many runs as the others. If the runs are in order, it can end after each; cells without a run are not measured.
pub(super) fn early_end(experiment: &Experiment, in_order: bool, runs: &RunValues) -> Option<Next> {
    let count = experiment.arms.len();
    let is_balanced = in_order || runs.len().is_multiple_of(count);
    (!runs.is_empty() && is_balanced).then_some(Next::Measured(RepeatState::NotConverged))
}

impl Experiment {
    /// Computes the result of a factorial experiment from the runs of each arm. `has_all_runs` says that none is missing
    /// between them. Returns `None` for other kinds.
    pub fn factorial(&self, runs: &[Vec<Observation>], has_all_runs: bool, state: RepeatState) -> Option<Factorial> {
        let RuleWanted::Factorial { factors, max_runs, until_ci, in_order, tables, .. } = &self.rule else {
            return None;
        };
        let levels =
            |factor: &super::WantedFactor| FactorLevels { name: factor.name.clone(), levels: factor.levels.clone() };
        let factors: Vec<FactorLevels> = factors.iter().map(levels).collect();
        let cells: Vec<(String, Vec<Observation>)> =
            self.arms.iter().map(|arm| arm.name.clone()).zip(runs.iter().cloned()).collect();
        let metrics = self.metrics();
        let (name, target, in_order) = (self.name.as_str(), *until_ci, *in_order);
        let own = |arm: usize| self.metrics_of(arm).into_iter().next().filter(|_| self.arms[arm].metric.is_some());
        let own: Vec<Option<Metric>> = (0..self.arms.len()).map(own).collect();
        let planned_runs = until_ci.is_none().then(|| max_runs.saturating_mul(self.arms.len() as u64));
        let design = FactorialDesign {
            name,
            factors: &factors,
            metrics: &metrics,
            own: &own,
            target,
            planned_runs,
            in_order,
            in_blocks: !in_order && has_all_runs,
            tables,
        };
        Some(design.result(state, &cells))
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::design::Design;
    use super::super::runner::tests::experiment as one_arm;
    use super::super::wanted::{Arm, RuleWanted, WantedFactor};
    use super::*;
    use crate::comparison::FactorialTables;
    use std::time::Duration;

    /// A factorial experiment with factors of so many levels.
    pub(in crate::experiment) fn factorial(
        levels: &[usize],
        (min_runs, max_runs): (u64, u64),
        until_ci: Option<f64>,
        in_order: bool,
    ) -> Experiment {
        let factor = |(n, count): (usize, &usize)| WantedFactor {
            name: format!("f{n}"),
            levels: (0..*count).map(|level| level.to_string()).collect(),
        };
        let factors = levels.iter().enumerate().map(factor).collect();
        let arm = |n: usize| Arm { name: n.to_string(), words: vec!["x.wml".to_owned()], metric: None };
        Experiment {
            rule: RuleWanted::Factorial {
                factors,
                min_runs,
                max_runs,
                until_ci,
                in_order,
                tables: FactorialTables::default(),
            },
            arms: (0..levels.iter().product()).map(arm).collect(),
            ..one_arm(1, &[])
        }
    }

    /// Makes runs until the design ends. Returns their arms and the last step.
    fn run_to_end(experiment: &Experiment, value: impl Fn(usize, usize) -> Option<f64>) -> (Vec<usize>, Next) {
        let design = Design::new(experiment);
        let mut runs: Vec<(usize, Vec<f64>)> = Vec::new();
        loop {
            match design.next(&runs) {
                Next::Run { arm, .. } => {
                    let values = value(runs.len(), arm).into_iter().collect();
                    runs.push((arm, values));
                }
                end => return (runs.into_iter().map(|(arm, _)| arm).collect(), end),
            }
        }
    }

    /// The description of a results folder may be damaged. The combinations are not counted out: there may be too many.
    #[test]
    fn an_experiment_has_an_arm_for_each_combination_of_levels() {
        let mut found = factorial(&[2, 3], (4, 4), None, false);
        assert_eq!(found.check_shape(), Ok(()));
        found.arms.pop();
        assert!(found.check_shape().is_err());
        let RuleWanted::Factorial { factors, .. } = &mut found.rule else { unreachable!() };
        *factors = factors.iter().cycle().take(100).cloned().collect();
        assert!(found.check_shape().is_err());
        found.arms.clear();
        assert!(found.check_shape().is_err());
    }

    #[test]
    fn each_block_has_every_cell_in_a_random_order() {
        let (arms, end) = run_to_end(&factorial(&[2, 3], (4, 4), None, false), |_, _| Some(1.0));
        assert_eq!((arms.len(), end), (24, Next::Measured(RepeatState::Complete)));
        for block in arms.chunks(6) {
            let mut sorted = block.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
        }
        assert!(arms.chunks(6).any(|block| block != [0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn in_order_a_cell_is_complete_before_the_next() {
        let (arms, _) = run_to_end(&factorial(&[3], (2, 2), None, true), |_, _| Some(1.0));
        assert_eq!(arms, [0, 0, 1, 1, 2, 2]);
        // The second cell is noisy, and has the maximum number of runs.
        let noisy = |n: usize, arm: usize| Some(if arm == 1 { 1.0 + (n % 2) as f64 } else { 1.0 });
        let (arms, end) = run_to_end(&factorial(&[3], (3, 8), Some(0.05), true), noisy);
        let count = |cell| arms.iter().filter(|arm| **arm == cell).count();
        assert_eq!(([0, 1, 2].map(count), end), ([4, 8, 4], Next::Measured(RepeatState::NotConverged)), "{arms:?}");
    }

    #[test]
    fn a_cell_that_fails_gets_no_more_runs_than_the_minimum() {
        let fails = |_: usize, arm: usize| (arm != 1).then_some(1.0);
        let (arms, end) = run_to_end(&factorial(&[2], (3, 8), Some(0.05), true), fails);
        assert_eq!((arms, end), (vec![0, 0, 0, 0, 1, 1, 1], Next::Measured(RepeatState::NotConverged)));
    }

    #[test]
    fn an_experiment_ends_early_only_if_the_cells_are_balanced() {
        let experiment = factorial(&[2, 2], (3, 5), Some(0.05), false);
        let design = Design::new(&experiment);
        let runs = |n: usize| (0..n).map(|run| (design.arm(run), vec![1.0])).collect::<Vec<_>>();
        assert_eq!(design.early_end(&runs(3)), None);
        assert_eq!(design.early_end(&runs(4)), Some(Next::Measured(RepeatState::NotConverged)));
        assert_eq!(design.early_end(&[]), None);
    }

    /// With a fixed number of runs, one that the budget ends is not complete either.
    #[test]
    fn a_budget_leaves_a_fixed_number_of_runs_incomplete() {
        for in_order in [false, true] {
            let experiment = factorial(&[2, 2], (5, 5), None, in_order);
            let design = Design::new(&experiment);
            let runs: Vec<(usize, Vec<f64>)> = (0..4).map(|arm| (arm, vec![1.0])).collect();
            assert_eq!(design.early_end(&runs), Some(Next::Measured(RepeatState::NotConverged)));
            let found = experiment.factorial(&vec![Vec::new(); 4], true, RepeatState::NotConverged).unwrap();
            assert_eq!(found.planned_runs, Some(20));
        }
    }

    /// A cell may take the whole budget, so that the others have no run.
    #[test]
    fn a_budget_ends_an_experiment_in_order_after_any_run() {
        let experiment = factorial(&[3], (4, 4), None, true);
        let design = Design::new(&experiment);
        let ten = |_| Duration::from_secs(10);
        let within = |done, left| design.runs_within(done, Duration::from_secs(left), &ten);
        assert_eq!((within(0, 0), within(1, 25), within(3, 5)), (Some(1), Some(3), Some(3)));
        // The next run may be of any cell.
        let differ = |arm: usize| Duration::from_secs([1, 60, 1][arm]);
        assert_eq!(design.runs_within(2, Duration::from_secs(59), &differ), Some(2));
        assert_eq!(design.time_of(6, 12, &differ), Duration::from_secs(124));
        assert_eq!(design.early_end(&[]), None);
        for runs in 1..12 {
            let made: Vec<(usize, Vec<f64>)> = (0..runs).map(|run| (design.arm(run), vec![1.0])).collect();
            assert_eq!(design.early_end(&made), Some(Next::Measured(RepeatState::NotConverged)), "{runs}");
        }
    }

    #[test]
    fn the_level_of_the_last_factor_changes_first() {
        let experiment = factorial(&[2, 3], (1, 1), None, false);
        let levels: Vec<Vec<usize>> = (0..6).map(|arm| experiment.levels_of(arm)).collect();
        assert_eq!(levels, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
    }
}
