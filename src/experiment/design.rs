//! Decides which run is next: a pure function of the description of the experiment and the observations so far.

use super::factorial;
use super::wanted::{Blocks, Experiment, RuleWanted};
use crate::analysis::{
    ComparisonVerdict, InterimLook, Power, RepeatState, RunBlock, SEQUENTIAL, Tolerance, analyse, classify,
};
use crate::import::Metric;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Duration;

/// The number of blocks of a pilot.
const PILOT_BLOCKS: usize = 4;

/// The maximum number of blocks that a pilot may request.
const MAX_BLOCKS: usize = 60;

/// The design of an experiment, which decides on its runs.
#[derive(Debug)]
pub struct Design<'a> {
    experiment: &'a Experiment,
    metrics: Vec<Metric>,
}

/// The next step of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Another run.
    Run {
        /// The index of its arm.
        arm: usize,
        /// The prediction of the end.
        progress: Prediction,
    },
    /// The end of a series of repeats, in this state.
    Repeated(RepeatState),
    /// The end of a comparison. A sequential comparison ended at this look.
    Compared(Option<InterimLook>),
    /// The end of a load curve: every level has all of its runs.
    Swept,
    /// The end of a factorial experiment, of which the least certain cell is in this state.
    Measured(RepeatState),
}

/// The prediction of the end of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The predicted total number of runs.
    pub predicted_runs: u64,
    /// The index of the metric with the widest relative interval, and the relative half-width; `None` when there is no
    /// interval.
    pub widest: Option<(usize, f64)>,
    /// Whether the experiment may end earlier.
    pub at_most: bool,
    /// After the last run of a pilot, the number of blocks that are made, and the number that the pilot asks for, of
    /// which `None` means more than 1000.
    pub pilot: Option<(u64, Option<u64>)>,
}

impl<'a> Design<'a> {
    /// Creates the design of an experiment.
    pub fn new(experiment: &'a Experiment) -> Self {
        Self { experiment, metrics: experiment.metrics() }
    }

    /// Returns the arm of a run, which depends on the seed of the experiment. `run` counts from 0. With two arms, each
    /// block of four runs is A B B A or B A A B at random. With the levels of one or more factors, each block has every
    /// level once, in a random order unless the rule requests the given order. In a factorial experiment in order, a
    /// cell may have fewer runs than this function assumes, the maximum; the journal then has the arm.
    pub fn arm(&self, run: usize) -> usize {
        let n = self.experiment.arms.len();
        match &self.experiment.rule {
            RuleWanted::Repeat { .. } => 0,
            RuleWanted::Ab { .. } => {
                usize::from(matches!(run % 4, 1 | 2) != self.experiment.block_rng(run / 4).random::<bool>())
            }
            RuleWanted::Sweep { in_order: true, .. } => run % n,
            RuleWanted::Factorial { in_order: true, max_runs, .. } => (run / (*max_runs).max(1) as usize).min(n - 1),
            RuleWanted::Sweep { .. } | RuleWanted::Factorial { .. } => self.experiment.block_arm(run),
        }
    }

    /// Returns the seed of a run's random streams. It does not depend on when the run is made.
    pub fn seed(&self, run: usize) -> u64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!self.experiment.seed);
        (0..=run).fold(0, |_, _| rng.random::<u64>() >> 20)
    }

    /// Returns the step after the runs so far, which are given with their arm and the values of the metrics.
    pub fn next(&self, runs: &[(usize, Vec<f64>)]) -> Next {
        match &self.experiment.rule {
            RuleWanted::Repeat { .. } => self.repeat(runs),
            RuleWanted::Ab { tolerance, blocks } => self.compare(runs, Tolerance(*tolerance), *blocks),
            RuleWanted::Sweep { repeats, .. } => {
                let predicted_runs = repeats * self.experiment.arms.len() as u64;
                if runs.len() as u64 >= predicted_runs {
                    return Next::Swept;
                }
                let progress = Prediction { predicted_runs, widest: None, at_most: false, pilot: None };
                Next::Run { arm: self.arm(runs.len()), progress }
            }
            RuleWanted::Factorial { in_order, .. } => factorial::next(self.experiment, &self.metrics, *in_order, runs),
        }
    }

    /// Returns the result with which an experiment can end after these runs, when its budget is exhausted. Returns
    /// `None` when the runs are too few for a result, or not balanced between the arms.
    pub fn early_end(&self, made: &[(usize, Vec<f64>)]) -> Option<Next> {
        let runs = made.len();
        match &self.experiment.rule {
            RuleWanted::Repeat { .. } => (runs >= 3).then_some(Next::Repeated(RepeatState::NotConverged)),
            RuleWanted::Ab { blocks, .. } => (runs >= 8 && runs.is_multiple_of(4))
                .then(|| Next::Compared((*blocks == Blocks::UntilClear).then(|| next_look(runs / 4)).flatten())),
            RuleWanted::Sweep { .. } => {
                (runs > 0 && runs.is_multiple_of(self.experiment.arms.len())).then_some(Next::Swept)
            }
            RuleWanted::Factorial { in_order, .. } => factorial::early_end(self.experiment, *in_order, made),
        }
    }

    /// Returns the total number of runs of which the last ends within the time `left`, after `done` runs. `longest` has
    /// the longest duration of a run of each arm so far; zero if it is unknown. Only whole blocks count, of which a
    /// comparison has at least two, and repeats have at least three runs. A factorial experiment in order has no blocks.
    /// Returns `None` as long as the duration of a run is unknown and time is left.
    pub fn runs_within(&self, done: usize, left: Duration, longest: &dyn Fn(usize) -> Duration) -> Option<usize> {
        let block = self.block_len();
        let least = match &self.experiment.rule {
            RuleWanted::Repeat { .. } => 3,
            RuleWanted::Ab { .. } => 8,
            RuleWanted::Sweep { .. } | RuleWanted::Factorial { .. } => block,
        };
        // A block that was begun is completed.
        let begun = done.next_multiple_of(block);
        let left = left.saturating_sub(self.rest_of_block(done, longest));
        // The duration stays unknown if all runs fail.
        let of_block = self.next_block(begun, longest);
        let blocks = if left.is_zero() { 0 } else { left.as_nanos().checked_div(of_block.as_nanos())? };
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        Some(blocks.saturating_mul(block).saturating_add(begun).max(least))
    }

    /// Returns the time of the runs after `done` that complete a block which was begun; zero if none was.
    fn rest_of_block(&self, done: usize, time: &dyn Fn(usize) -> Duration) -> Duration {
        let len = self.block_len();
        match done % len {
            0 => Duration::ZERO,
            begun => sum(self.arms_of_block(done / len)[begun..].iter().map(|arm| time(*arm))),
        }
    }

    /// Returns the time of the runs after `done` up to the end of the block of the next run.
    pub(super) fn time_of_block(&self, done: usize, time: &dyn Fn(usize) -> Duration) -> Duration {
        let is_begun = !done.is_multiple_of(self.block_len());
        if is_begun { self.rest_of_block(done, time) } else { self.next_block(done, time) }
    }

    /// Returns the time of the block after `done` runs. `time` has that of a run of each arm. Of a factorial experiment in
    /// order it is the longest one: which cell the next run is of depends on the results.
    pub(super) fn next_block(&self, done: usize, time: &dyn Fn(usize) -> Duration) -> Duration {
        if let RuleWanted::Factorial { in_order: true, .. } = self.experiment.rule {
            return (0..self.experiment.arms.len()).map(time).max().unwrap_or_default();
        }
        sum(self.arms_of_block(done.div_ceil(self.block_len())).into_iter().map(time))
    }

    /// Returns the arms of the runs of a block, which is counted from 0.
    fn arms_of_block(&self, block: usize) -> Vec<usize> {
        let len = self.block_len();
        match &self.experiment.rule {
            RuleWanted::Sweep { in_order: false, .. } | RuleWanted::Factorial { in_order: false, .. } => {
                self.experiment.block_order(block)
            }
            _ => (0..len).map(|n| self.arm(block * len + n)).collect(),
        }
    }

    /// Returns the time of the runs after `done` up to the number `runs`. `time` has that of a run of each arm.
    pub(super) fn time_of(&self, done: usize, runs: usize, time: &dyn Fn(usize) -> Duration) -> Duration {
        if let RuleWanted::Factorial { in_order: true, .. } = self.experiment.rule {
            let arms = self.experiment.arms.len();
            let of_all = sum((0..arms).map(time)).as_secs_f64() / arms as f64;
            let seconds = of_all * runs.saturating_sub(done) as f64;
            return Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        }
        let begun = done.next_multiple_of(self.block_len());
        let blocks = runs.saturating_sub(begun).div_ceil(self.block_len());
        let of_blocks = self.next_block(begun, time).checked_mul(u32::try_from(blocks).unwrap_or(u32::MAX));
        self.rest_of_block(done, time).saturating_add(of_blocks.unwrap_or(Duration::MAX))
    }

    /// Returns the number of runs of a block; 1 without blocks.
    pub(super) fn block_len(&self) -> usize {
        match &self.experiment.rule {
            RuleWanted::Repeat { .. } | RuleWanted::Factorial { in_order: true, .. } => 1,
            RuleWanted::Ab { .. } => 4,
            RuleWanted::Sweep { .. } | RuleWanted::Factorial { .. } => self.experiment.arms.len(),
        }
    }

    /// Returns the next step of a series of repeats.
    fn repeat(&self, runs: &[(usize, Vec<f64>)]) -> Next {
        let Some(rule) = self.experiment.repeat_rule() else { return Next::Compared(None) };
        let series = |metric: usize| runs.iter().map(|(_, values)| values[metric]).collect();
        let found = rule.evaluate(&(0..self.metrics.len()).map(series).collect::<Vec<_>>());
        if found.state != RepeatState::Running {
            return Next::Repeated(found.state);
        }
        let widest = found.half_width.is_finite().then_some((found.worst, found.half_width));
        let progress = Prediction { predicted_runs: found.predicted, widest, at_most: false, pilot: None };
        Next::Run { arm: 0, progress }
    }

    /// Returns the next step of a comparison.
    fn compare(&self, runs: &[(usize, Vec<f64>)], tolerance: Tolerance, wanted: Blocks) -> Next {
        let blocks: Vec<RunBlock> = runs.chunks_exact(4).filter_map(block).collect();
        let blocks_complete = runs.len().is_multiple_of(4);
        // No number of runs gives a ratio with a metric that is 0.
        let is_positive = |block: &RunBlock| block.a.iter().chain(&block.b).all(|value| *value > 0.0);
        if blocks_complete && !blocks.iter().all(is_positive) {
            return Next::Compared(None);
        }
        let (needed, at_most) = match wanted {
            Blocks::Exactly(n) => (n as usize, false),
            Blocks::Pilot if blocks.len() < PILOT_BLOCKS => (PILOT_BLOCKS, false),
            Blocks::Pilot => (Self::needed(&blocks, tolerance).unwrap_or(MAX_BLOCKS).min(MAX_BLOCKS), false),
            Blocks::UntilClear => {
                let look = SEQUENTIAL.iter().find(|look| look.blocks == blocks.len()).filter(|_| blocks_complete);
                let last = SEQUENTIAL[SEQUENTIAL.len() - 1];
                if let Some(look) = look
                    && (self.is_clear(&blocks, tolerance, *look) || *look == last)
                {
                    return Next::Compared(Some(*look));
                }
                (last.blocks, true)
            }
        };
        if blocks_complete && runs.len() / 4 >= needed {
            return Next::Compared(None);
        }
        let ends_pilot = wanted == Blocks::Pilot && runs.len() == 4 * PILOT_BLOCKS;
        let pilot = ends_pilot.then(|| (needed as u64, Self::needed(&blocks, tolerance).map(|blocks| blocks as u64)));
        let progress = Prediction { predicted_runs: 4 * needed as u64, widest: None, at_most, pilot };
        Next::Run { arm: self.arm(runs.len()), progress }
    }

    /// Returns the number of blocks that the pilot predicts, or `None` when it is more than 1000. Only the first four
    /// blocks are used, so that later runs do not change it.
    fn needed(blocks: &[RunBlock], tolerance: Tolerance) -> Option<usize> {
        let found = analyse(&blocks[..PILOT_BLOCKS], 0.95)?;
        Power::needed_blocks(found.spread, 2, tolerance, PILOT_BLOCKS, 0.025)
    }

    /// Returns whether the verdict at an interim look is not *unclear*.
    fn is_clear(&self, blocks: &[RunBlock], tolerance: Tolerance, look: InterimLook) -> bool {
        let direction = self.metrics.first().map_or(crate::analysis::Direction::HigherIsBetter, Metric::direction);
        analyse(blocks, 1.0 - 2.0 * look.one_sided)
            .is_some_and(|found| classify(direction.goodness(found.ratio), tolerance) != ComparisonVerdict::Unclear)
    }
}

impl Experiment {
    /// Returns the generator from which the order of the runs of a block is drawn.
    fn block_rng(&self, block: usize) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed.wrapping_add(block as u64))
    }

    /// Returns the arm of a run, counted from 0, in blocks that have every arm once in a random order.
    pub(super) fn block_arm(&self, run: usize) -> usize {
        let n = self.arms.len();
        self.block_order(run / n)[run % n]
    }

    /// Returns the arms of a block that has every arm once in a random order.
    fn block_order(&self, block: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.arms.len()).collect();
        order.shuffle(&mut self.block_rng(block));
        order
    }
}

/// Adds up times. One that is too long, as a damaged journal may have, gives the longest.
fn sum(times: impl Iterator<Item = Duration>) -> Duration {
    times.fold(Duration::ZERO, Duration::saturating_add)
}

/// Returns the look at which a sequential comparison ends after `blocks` blocks because its budget is exhausted. The
/// error probability of the looks before it is spent; it has that of the next one, which is not taken.
fn next_look(blocks: usize) -> Option<InterimLook> {
    let next = SEQUENTIAL.iter().find(|look| look.blocks > blocks)?;
    Some(InterimLook { blocks, one_sided: next.one_sided })
}

/// Returns a block of four runs, with the values of the primary metric. Returns `None` unless each arm has two of the
/// runs.
fn block(four: &[(usize, Vec<f64>)]) -> Option<RunBlock> {
    let of = |arm: usize| -> Option<[f64; 2]> {
        let values: Vec<f64> = four.iter().filter(|(a, _)| *a == arm).map(|(_, values)| values[0]).collect();
        values.try_into().ok()
    };
    Some(RunBlock { a: of(0)?, b: of(1)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::{Arm, hooks::Hooks, identity::Identity};

    fn experiment(rule: RuleWanted) -> Experiment {
        Experiment {
            schema: super::super::wanted::SCHEMA.to_owned(),
            file: String::new(),
            name: "x".to_owned(),
            created: String::new(),
            directory: String::new(),
            command_timeout: 600.0,
            budget: None,
            seed: 7,
            launch: Vec::new(),
            metrics: vec!["ops".to_owned()],
            records: Vec::new(),
            record_space: false,
            retry_disturbed: 0,
            verdict: super::super::wanted::VERDICT.to_owned(),
            rule,
            arms: ["A", "B"].map(|name| Arm { name: name.to_owned(), words: Vec::new(), metric: None }).into(),
            hooks: Hooks::default(),
            scopes: Vec::new(),
            identity: Identity::default(),
        }
    }

    /// Makes runs until the design ends. Returns their number and the last step.
    fn run_to_end(experiment: &Experiment, value: impl Fn(usize, usize) -> f64) -> (usize, Next) {
        let design = Design::new(experiment);
        let mut runs = Vec::new();
        loop {
            match design.next(&runs) {
                Next::Run { arm, .. } => {
                    let value = value(runs.len(), arm);
                    runs.push((arm, vec![value]));
                }
                end => return (runs.len(), end),
            }
        }
    }

    fn noise(n: usize) -> f64 {
        (n as f64 * 2.3).sin()
    }

    #[test]
    fn blocks_have_two_of_each_arm_and_both_orders_occur() {
        let experiment = experiment(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Exactly(20) });
        let design = Design::new(&experiment);
        let order: Vec<usize> = (0..80).map(|run| design.arm(run)).collect();
        let blocks: Vec<&[usize]> = order.chunks(4).collect();
        assert!(blocks.iter().all(|block| [[0, 1, 1, 0], [1, 0, 0, 1]].iter().any(|order| block == order)));
        assert!(blocks.iter().any(|block| block[0] == 0) && blocks.iter().any(|block| block[0] == 1));
        let seeds: std::collections::BTreeSet<u64> = (0..80).map(|run| design.seed(run)).collect();
        assert_eq!(seeds.len(), 80);
    }

    #[test]
    fn a_comparison_ends_after_its_blocks() {
        let exactly = experiment(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Exactly(3) });
        assert_eq!(run_to_end(&exactly, |_, _| 1.0), (12, Next::Compared(None)));
        let pilot = experiment(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Pilot });
        assert_eq!(
            run_to_end(&pilot, |_, _| 1.0),
            (16, Next::Compared(None)),
            "equal runs need no more than the pilot"
        );
        let (n, _) = run_to_end(&pilot, |n, _| 100.0 * (1.0 + 0.06 * noise(n)));
        assert!(n > 24 && n % 4 == 0 && n < 4 * MAX_BLOCKS, "{n}");
        let (n, _) = run_to_end(&pilot, |n, _| 100.0 * (1.0 + 0.9 * noise(n)));
        assert_eq!(n, 4 * MAX_BLOCKS);
    }

    #[test]
    fn a_sequential_comparison_ends_at_an_interim_look() {
        let clear = experiment(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::UntilClear });
        let (n, end) = run_to_end(&clear, |n, arm| 100.0 * (1.0 + arm as f64) + noise(n));
        assert_eq!((n, end), (24, Next::Compared(Some(SEQUENTIAL[0]))));
        let (n, end) = run_to_end(&clear, |n, _| 100.0 * (1.0 + 0.6 * noise(n)));
        assert_eq!((n, end), (96, Next::Compared(Some(SEQUENTIAL[2]))));
    }

    /// With one-sided error probabilities of 0.5, 0.75 and 1.25 %, of which each is used once.
    #[test]
    fn a_budget_that_ends_between_looks_uses_the_error_of_the_next_one() {
        let end = |blocks| {
            let wanted = experiment(RuleWanted::Ab { tolerance: 0.03, blocks });
            let design = Design::new(&wanted);
            [7, 8, 24, 44, 60].map(|runs| design.early_end(&vec![(0, Vec::new()); runs]))
        };
        let at = |blocks, one_sided| Some(Next::Compared(Some(InterimLook { blocks, one_sided })));
        let expected = [None, at(2, 0.005), at(6, 0.0075), at(11, 0.0075), at(15, 0.0125)];
        assert_eq!(end(Blocks::UntilClear), expected);
        assert_eq!(end(Blocks::Pilot)[1..], [Some(Next::Compared(None)); 4]);
    }

    #[test]
    fn a_metric_that_is_0_ends_a_comparison_after_a_block() {
        for blocks in [Blocks::Exactly(20), Blocks::Pilot, Blocks::UntilClear] {
            let wanted = experiment(RuleWanted::Ab { tolerance: 0.03, blocks });
            assert_eq!(run_to_end(&wanted, |_, _| 0.0), (4, Next::Compared(None)), "{blocks:?}");
            let later = |n: usize, _| if n == 9 { 0.0 } else { 100.0 + noise(n) };
            assert_eq!(run_to_end(&wanted, later), (12, Next::Compared(None)), "{blocks:?}");
        }
    }

    #[test]
    fn a_budget_holds_whole_blocks() {
        let ab = experiment(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Pilot });
        let design = Design::new(&ab);
        let ten = |_| Duration::from_secs(10);
        let within = |done, left| design.runs_within(done, Duration::from_secs(left), &ten);
        assert_eq!((within(1, 0), within(8, 39), within(8, 40), within(9, 0)), (Some(8), Some(8), Some(12), Some(12)));
        let unknown = |_| Duration::ZERO;
        assert_eq!((within(16, 640), design.runs_within(0, Duration::MAX, &unknown)), (Some(80), None));
        assert_eq!(design.runs_within(9, Duration::ZERO, &unknown), Some(12));
        // The rest of the block in progress takes its part.
        assert_eq!((within(9, 69), within(9, 70)), (Some(12), Some(16)));
        assert_eq!(design.runs_within(8, Duration::from_secs(9), &|_| Duration::MAX), Some(8));
        assert_eq!(design.time_of(0, 80, &|_| Duration::MAX), Duration::MAX);
        // A block has two short runs and two long ones.
        let differ = |arm: usize| Duration::from_secs([2, 10][arm]);
        let within = |left| design.runs_within(8, Duration::from_secs(left), &differ);
        assert_eq!((within(23), within(24), within(48)), (Some(8), Some(12), Some(16)));
        let repeat = experiment(RuleWanted::Repeat { min_runs: 10, max_runs: 30, until_ci: None });
        let design = Design::new(&repeat);
        let within = |done| design.runs_within(done, Duration::from_secs(15), &ten);
        assert_eq!((within(1), within(5)), (Some(3), Some(6)));
    }

    #[test]
    fn the_end_of_a_pilot_says_what_it_asks_for() {
        let pilot = experiment(RuleWanted::Ab { tolerance: 0.03, blocks: Blocks::Pilot });
        let design = Design::new(&pilot);
        let after = |n: usize, spread: f64| {
            let run = |n: usize| (design.arm(n), vec![100.0 * (1.0 + spread * noise(n))]);
            match design.next(&(0..n).map(run).collect::<Vec<_>>()) {
                Next::Run { progress, .. } => progress.pilot,
                _ => None,
            }
        };
        assert_eq!((after(15, 0.9), after(17, 0.9)), (None, None));
        // The variation decides how many blocks are needed, the maximum how many are made.
        let (made, needed) = after(16, 0.9).unwrap();
        assert!(made == MAX_BLOCKS as u64 && needed.is_none_or(|needed| needed > made), "{needed:?}");
        let (made, needed) = after(16, 0.06).unwrap();
        assert!(made > 6 && needed == Some(made), "{made} {needed:?}");
    }

    #[test]
    fn each_block_of_a_sweep_has_every_level_once() {
        let sweep = |in_order| {
            let levels = ["1", "2", "4"].map(str::to_owned).to_vec();
            let mut wanted =
                experiment(RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats: 8, in_order, method: None });
            wanted.arms.push(wanted.arms[0].clone());
            wanted
        };
        assert_eq!(run_to_end(&sweep(false), |_, _| 1.0), (24, Next::Swept));
        let (shuffled, in_order) = (sweep(false), sweep(true));
        let order: Vec<usize> = (0..24).map(|run| Design::new(&shuffled).arm(run)).collect();
        for block in order.chunks(3) {
            let mut block = block.to_vec();
            block.sort_unstable();
            assert_eq!(block, [0, 1, 2]);
        }
        assert_ne!(order[..3], order[3..6], "the order changes from block to block");
        assert!((0..24).all(|run| Design::new(&in_order).arm(run) == run % 3));
    }

    #[test]
    fn repeats_end_by_their_rule() {
        let repeat = experiment(RuleWanted::Repeat { min_runs: 10, max_runs: 30, until_ci: Some(0.05) });
        assert_eq!(run_to_end(&repeat, |n, _| 100.0 + noise(n)), (11, Next::Repeated(RepeatState::Converged)));
        assert_eq!(
            run_to_end(&repeat, |n, _| 100.0 * (1.0 + 0.8 * noise(n))),
            (30, Next::Repeated(RepeatState::NotConverged))
        );
        let drift = run_to_end(&repeat, |n, _| 100.0 + 5.0 * n as f64);
        assert_eq!(drift.1, Next::Repeated(RepeatState::Drifting));
    }
}
