//! Decides which run is next: a pure function of the description of the experiment and its runs so far.
//!
//! A run costs the same however many cells there are: what the decision depends on is kept, not computed from all runs.

use super::capacity::{LoadSearch, LoadStep};
use super::cell_times::CellTimes;
use super::order::StudyOrder;
use super::stop::{
    CellProgress, CellRuns, ComparedRuns, Decision, PILOT_BLOCKS, StoppingRule, look_at, next_look, worst,
};
use super::wanted::{Blocks, Experiment};
use crate::analysis::{Direction, InterimLook, RepeatState};
use crate::import::{Metric, Observation};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;
use std::time::Duration;

/// The design of an experiment, with its runs so far.
#[derive(Clone, Debug)]
pub struct Design {
    order: StudyOrder,
    stop: StoppingRule,
    /// The number of runs without which there is no result.
    least: usize,
    /// The seed of the order of the runs.
    order_seed: u64,
    direction: Direction,
    /// The number of runs so far.
    made: usize,
    /// The cells of the runs of the block in progress.
    block: Vec<usize>,
    /// The seeds of the runs, and that of the next one.
    seeds: Xoshiro256PlusPlus,
    next_seed: u64,
    cells: Vec<CellRuns>,
    progress: CellStates,
    compared: ComparedRuns,
    /// The search that decides on the next cell.
    search: Option<LoadSearch>,
    /// The longest time of a run of each cell, and of all.
    longest: CellTimes,
    longest_run: Duration,
    /// The mean time of a run of each cell.
    mean: CellTimes,
    /// The sum of the times of each cell and of all, and their numbers.
    sums: Vec<(f64, u32)>,
    sum: (f64, u32),
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
    End(DesignEnd),
}

/// The end of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DesignEnd {
    /// The state of the least certain cell.
    pub state: RepeatState,
    /// The interim look at which a sequential comparison ended.
    pub look: Option<InterimLook>,
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

/// The states of all cells, with what is asked of them after each run.
#[derive(Clone, Debug, Default)]
struct CellStates {
    of_cells: Vec<CellProgress>,
    /// The cells that need more runs.
    running: BTreeSet<usize>,
    /// The predicted numbers of runs, with their cells, and their sum.
    predicted: BTreeSet<(u64, usize)>,
    predicted_sum: u64,
    /// The half-widths of the widest intervals of running cells as bits, whose order is that of positive numbers.
    widest: BTreeSet<(u64, usize)>,
}

impl CellStates {
    /// Puts the state of a cell in the place of the one before.
    fn set(&mut self, cell: usize, now: CellProgress) {
        let bits = |progress: &CellProgress| progress.widest.map_or(0, |(_, half)| half.to_bits());
        match self.of_cells.get_mut(cell) {
            Some(known) => {
                let before = std::mem::replace(known, now);
                self.predicted.remove(&(before.predicted, cell));
                self.predicted_sum = self.predicted_sum.saturating_sub(before.predicted);
                self.widest.remove(&(bits(&before), cell));
                self.running.remove(&cell);
            }
            None => self.of_cells.push(now),
        }
        self.predicted.insert((now.predicted, cell));
        self.predicted_sum = self.predicted_sum.saturating_add(now.predicted);
        if now.state == RepeatState::Running {
            self.running.insert(cell);
            self.widest.extend(now.widest.map(|_| (bits(&now), cell)));
        }
    }

    /// The index of the metric with the widest interval, and its relative half-width.
    fn widest(&self) -> Option<(usize, f64)> {
        self.widest.last().and_then(|(_, cell)| self.of_cells[*cell].widest)
    }
}

impl Design {
    /// The design of an experiment without runs.
    pub fn new(experiment: &Experiment) -> Self {
        let (order, cells, metrics) = (experiment.rule.order(), experiment.arms.len(), experiment.metrics());
        let mut design = Self {
            order,
            stop: experiment.rule.stop(),
            least: experiment.least_runs(),
            order_seed: experiment.seed,
            direction: metrics.first().map_or(Direction::HigherIsBetter, Metric::direction),
            made: 0,
            block: order.block(cells, experiment.seed, 0),
            seeds: Xoshiro256PlusPlus::seed_from_u64(!experiment.seed),
            next_seed: 0,
            cells: vec![CellRuns::of(metrics.len()); cells],
            progress: CellStates::default(),
            compared: ComparedRuns::default(),
            search: LoadSearch::of(experiment),
            longest: CellTimes::of(cells, order),
            longest_run: Duration::ZERO,
            mean: CellTimes::of(cells, order),
            sums: vec![(0.0, 0); cells],
            sum: (0.0, 0),
        };
        design.draw_seed();
        (0..cells).for_each(|cell| design.evaluate(cell));
        design
    }

    /// The number of runs so far.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Takes the next run of an experiment: its arm, its observation, and its time in seconds.
    pub(super) fn take_run(&mut self, experiment: &Experiment, arm: usize, run: &Observation, seconds: Option<f64>) {
        if let Some(search) = &mut self.search {
            search.take(arm, run, seconds);
        }
        self.take(arm, &experiment.values_of(arm, run).unwrap_or_default(), seconds);
    }

    /// The experiment with the arm of the next run, if it lacks that; and a note.
    pub(super) fn with_next_arm(&self, experiment: &Experiment) -> Option<(Experiment, Option<String>)> {
        self.search.as_ref()?.with_next_arm(experiment)
    }

    /// Takes the next run: its arm, the values of the metrics, of which a failed one has none, and its time in seconds.
    pub fn take(&mut self, arm: usize, values: &[f64], seconds: Option<f64>) {
        if let (StoppingRule::Verdict { .. }, Some(value)) = (self.stop, values.first()) {
            self.compared.add(arm, *value);
        }
        if let Some(cell) = self.cells.get_mut(arm) {
            cell.add(values);
            self.evaluate(arm);
        }
        self.take_time(arm, seconds);
        self.made += 1;
        self.draw_seed();
        let len = self.block_len();
        if self.order.has_blocks() && self.made.is_multiple_of(len) {
            look_at(len);
            self.block = self.order.block(self.cells.len(), self.order_seed, self.made / len);
            [&mut self.longest, &mut self.mean].into_iter().for_each(CellTimes::begin_block);
        }
    }

    fn evaluate(&mut self, cell: usize) {
        let progress = match &self.stop {
            StoppingRule::Series(rule) => self.cells[cell].evaluate(rule, true),
            StoppingRule::Cells(rule) => self.cells[cell].evaluate(rule, false),
            StoppingRule::Verdict { .. } | StoppingRule::Capacity => return,
        };
        self.progress.set(cell, progress);
    }

    fn take_time(&mut self, cell: usize, seconds: Option<f64>) {
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mean = |(sum, count): (f64, u32)| (count > 0).then(|| time(sum / f64::from(count)));
        let mut longest = None;
        if let Some(seconds) = seconds {
            for sum in self.sums.get_mut(cell).into_iter().chain([&mut self.sum]) {
                *sum = (sum.0 + seconds, sum.1 + 1);
            }
            self.longest_run = self.longest_run.max(time(seconds));
            longest = Some(self.longest.known(cell).unwrap_or_default().max(time(seconds)));
        }
        self.longest.take(cell, longest.filter(|time| !time.is_zero()), self.longest_run);
        self.mean.take(cell, self.sums.get(cell).copied().and_then(mean), mean(self.sum).unwrap_or_default());
    }

    /// Draws the seed of the next run's random streams. It does not depend on when the run is made.
    fn draw_seed(&mut self) {
        self.next_seed = self.seeds.random::<u64>() >> 20;
    }

    /// The seed of the next run's random streams.
    pub fn seed(&self) -> u64 {
        self.next_seed
    }

    /// The ratio B/A of a comparison so far. See [`ComparedRuns::ratio`].
    pub(super) fn ratio(&self) -> Option<f64> {
        self.compared.ratio()
    }

    /// The number of runs of a block; 1 without blocks.
    pub(super) fn block_len(&self) -> usize {
        self.order.block_len(self.cells.len())
    }

    /// The step after the runs so far.
    pub fn next(&self) -> Next {
        if let StoppingRule::Verdict { tolerance, blocks } = self.stop {
            let (needed, at_most) = match self.compared.decide(tolerance, blocks, self.direction) {
                Decision::End(look) => return Next::End(DesignEnd { state: RepeatState::Complete, look }),
                Decision::UpTo { blocks, at_most } => (blocks as u64, at_most),
            };
            let ends_pilot = blocks == Blocks::Pilot && self.made == 4 * PILOT_BLOCKS;
            let pilot = ends_pilot.then(|| (needed, self.compared.needed(tolerance).map(|blocks| blocks as u64)));
            let progress = Prediction { predicted_runs: 4 * needed, widest: None, at_most, pilot };
            return Next::Run { arm: self.block[self.made % self.block.len()], progress };
        }
        if let Some(search) = &self.search {
            return match search.next() {
                LoadStep::End => Next::End(DesignEnd { state: RepeatState::Complete, look: None }),
                LoadStep::Run { arm, expected } => {
                    let predicted_runs = (self.made + expected) as u64;
                    let progress = Prediction { predicted_runs, widest: None, at_most: false, pilot: None };
                    Next::Run { arm, progress }
                }
            };
        }
        let is_in_block = !self.made.is_multiple_of(self.block_len());
        let Some(first) = self.progress.running.first().copied().or_else(|| is_in_block.then_some(0)) else {
            let state = worst(self.progress.of_cells.iter().map(|cell| cell.state));
            return Next::End(DesignEnd { state, look: None });
        };
        let cells = self.cells.len();
        let (arm, predicted_runs) = match self.block.get(self.made % self.block_len()) {
            None => (first, self.progress.predicted_sum),
            // All cells have as many runs as the one that needs most.
            Some(arm) => {
                let begun = self.made.div_ceil(cells) as u64;
                let most = self.progress.predicted.last().map_or(0, |(runs, _)| *runs);
                (*arm, most.max(begun).saturating_mul(cells as u64))
            }
        };
        let widest = self.progress.widest();
        Next::Run { arm, progress: Prediction { predicted_runs, widest, at_most: false, pilot: None } }
    }

    /// The end of the experiment after these runs, when its budget is exhausted. `None` if the runs are too few for a result,
    /// or not balanced between the arms.
    pub(crate) fn early_end(&self) -> Option<DesignEnd> {
        let is_balanced = self.made >= self.least && self.made.is_multiple_of(self.block_len());
        let look = match self.stop {
            StoppingRule::Verdict { blocks: Blocks::UntilClear, .. } => next_look(self.made / 4),
            _ => None,
        };
        is_balanced.then_some(DesignEnd { state: RepeatState::NotConverged, look })
    }

    /// The longest time of a run; zero if none is known.
    pub(super) fn longest_run(&self) -> Duration {
        self.longest_run
    }

    /// The longest time of a run of this arm. If none is known, it is that of all arms.
    pub(super) fn longest_of(&self, arm: usize) -> Duration {
        self.longest.of_cell(arm)
    }

    /// The number of runs without which there is no result.
    pub(super) fn least(&self) -> u64 {
        self.least as u64
    }

    /// The total number of runs of which the last ends within the time `left`, if each takes as long as the longest of its
    /// arm so far. Only whole blocks count, and at least the runs without which there is no result. `None` as long as the
    /// time of a run is unknown and time is left.
    pub(crate) fn runs_within(&self, left: Duration) -> Option<usize> {
        let block = self.block_len();
        // A block that was begun is completed.
        let begun = self.made.next_multiple_of(block);
        let left = left.saturating_sub(self.rest_of_block(&self.longest));
        // The time stays unknown if all runs fail.
        let of_block = self.next_block();
        let blocks = if left.is_zero() { 0 } else { left.as_nanos().checked_div(of_block.as_nanos())? };
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        Some(blocks.saturating_mul(block).saturating_add(begun).max(self.least))
    }

    /// The time of the runs that complete a block which was begun; zero if none was.
    fn rest_of_block(&self, times: &CellTimes) -> Duration {
        if self.made.is_multiple_of(self.block_len()) { Duration::ZERO } else { times.of_rest() }
    }

    /// The longest time of the runs up to the end of the block of the next run.
    pub(super) fn time_of_block(&self) -> Duration {
        let is_begun = !self.made.is_multiple_of(self.block_len());
        if is_begun { self.rest_of_block(&self.longest) } else { self.next_block() }
    }

    /// The longest time of a block. Without blocks it is that of the longest run: which cell the next run is of depends on
    /// the results.
    pub(super) fn next_block(&self) -> Duration {
        if self.order.has_blocks() { self.longest.of_block() } else { self.longest_run }
    }

    /// The mean time of the runs from now on up to the number `runs`. `None` if the time of a run is unknown.
    pub(super) fn time_up_to(&self, runs: usize) -> Option<Duration> {
        let to_come = runs.saturating_sub(self.made);
        if let Some(time) = self.search.as_ref().and_then(|search| search.time_of(to_come)) {
            return Some(time);
        }
        if self.sum.1 == 0 {
            return None;
        }
        let of_block = self.mean.of_block();
        if !self.order.has_blocks() {
            let seconds = of_block.as_secs_f64() / self.cells.len() as f64 * to_come as f64;
            return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        }
        let blocks = runs.saturating_sub(self.made.next_multiple_of(self.block_len())).div_ceil(self.block_len());
        let of_blocks = of_block.checked_mul(u32::try_from(blocks).unwrap_or(u32::MAX)).unwrap_or(Duration::MAX);
        Some(self.rest_of_block(&self.mean).saturating_add(of_blocks))
    }
}
