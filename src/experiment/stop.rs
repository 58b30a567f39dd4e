//! The rules that decide on the end of an experiment: of each cell by its own runs, or by the verdict on two of them.

use super::wanted::Blocks;
use crate::analysis::{
    ComparisonVerdict, Direction, InterimLook, Power, RepeatRule, RepeatState, RunBlock, SEQUENTIAL, Tolerance,
    analyse, classify,
};

/// The number of blocks of a pilot.
pub(super) const PILOT_BLOCKS: usize = 4;

/// The maximum number of blocks that a pilot may request.
pub(super) const MAX_BLOCKS: usize = 60;

/// When an experiment ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StoppingRule {
    /// When the runs of a single cell are as many or as precise as requested, or drift.
    Series(RepeatRule),
    /// When the runs of each cell are as many or as precise as requested.
    Cells(RepeatRule),
    /// When the runs of two cells are enough for a verdict.
    Verdict {
        /// The largest relative change that does not matter.
        tolerance: Tolerance,
        /// The rule for the number of blocks.
        blocks: Blocks,
    },
    /// When the greatest load at which a limit is kept is known.
    Capacity,
}

#[cfg(test)]
thread_local! {
    /// The number of cells and runs that designs of this thread have looked at.
    pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts cells or runs that are looked at, for the test that their number is in proportion to that of the runs.
pub(super) fn look_at(count: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + count);
    #[cfg(not(test))]
    let _ = count;
}

#[derive(Clone, Debug, Default)]
pub(super) struct CellRuns {
    /// The values of each metric.
    series: Vec<Vec<f64>>,
    made: u64,
    has_failed: bool,
}

/// The state of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellProgress {
    /// The state; [`RepeatState::Running`] if more runs are needed.
    pub(super) state: RepeatState,
    /// The predicted total number of runs.
    pub(super) predicted: u64,
    /// The index of the metric with the widest relative interval, and the relative half-width.
    pub(super) widest: Option<(usize, f64)>,
}

impl CellRuns {
    pub(super) fn of(metrics: usize) -> Self {
        Self { series: vec![Vec::new(); metrics], ..Self::default() }
    }

    /// Adds a run with the values of the metrics, of which one that it lacks is NaN; none if it failed.
    pub(super) fn add(&mut self, values: &[f64]) {
        self.made += 1;
        self.has_failed |= values.len() < self.series.len();
        self.series.iter_mut().zip(values).for_each(|(series, value)| series.push(*value));
    }

    /// Evaluates the rule for the runs so far. In a series with a fixed number of runs a trend is looked for, too.
    pub(super) fn evaluate(&self, rule: &RepeatRule, is_series: bool) -> CellProgress {
        look_at(self.made as usize + 1);
        if rule.target.is_none() && !is_series {
            let is_complete = self.made >= rule.runs.max;
            let state = if is_complete { RepeatState::Complete } else { RepeatState::Running };
            return CellProgress { state, predicted: self.made.max(rule.runs.max), widest: None };
        }
        // What a script does not do, such as the writes of a reader, is not waited for.
        let is_done = |n: &usize| self.series[*n].iter().any(|value| *value != 0.0 && !value.is_nan());
        let mut done: Vec<usize> = (0..self.series.len()).filter(is_done).collect();
        if done.is_empty() {
            done = (0..self.series.len()).collect();
        }
        let series: Vec<Vec<f64>> = done.iter().map(|n| self.series[*n].clone()).collect();
        if self.has_failed || series.iter().flatten().any(|value| value.is_nan()) {
            // More runs do not make a cell precise in which a run failed.
            let state = if self.made >= rule.runs.min { RepeatState::NotConverged } else { RepeatState::Running };
            return CellProgress { state, predicted: self.made.max(rule.runs.min), widest: None };
        }
        let found = rule.evaluate(&series);
        let worst = done.get(found.worst).copied().filter(|_| found.half_width.is_finite());
        let widest = worst.map(|worst| (worst, found.half_width));
        CellProgress { state: found.state, predicted: found.predicted, widest }
    }
}

/// The state of an experiment whose cells are in these states: that of the least certain cell.
pub(super) fn worst(states: impl Iterator<Item = RepeatState>) -> RepeatState {
    let rank = |state: &RepeatState| match state {
        RepeatState::Complete => 0,
        RepeatState::Converged => 1,
        RepeatState::NotConverged => 2,
        RepeatState::Drifting => 3,
        RepeatState::Running => 4,
    };
    states.max_by_key(rank).unwrap_or(RepeatState::Complete)
}

/// The runs of a comparison, with the values of the primary metric.
#[derive(Clone, Debug, Default)]
pub(super) struct ComparedRuns {
    blocks: Vec<RunBlock>,
    /// The runs of the block in progress.
    begun: Vec<(usize, f64)>,
    /// True if a value is 0. No number of runs gives a ratio with it.
    has_zero: bool,
}

/// What a rule says about a comparison.
pub(super) enum Decision {
    /// It ends, a sequential one at this look.
    End(Option<InterimLook>),
    /// It goes on, up to so many blocks, or at most so many.
    UpTo { blocks: usize, at_most: bool },
}

impl ComparedRuns {
    /// Adds a run of an arm.
    pub(super) fn add(&mut self, arm: usize, value: f64) {
        self.has_zero |= value <= 0.0 || value.is_nan();
        self.begun.push((arm, value));
        if self.begun.len() == 4 {
            let of = |arm: usize| -> Option<[f64; 2]> {
                let values: Vec<f64> = self.begun.iter().filter(|(a, _)| *a == arm).map(|(_, value)| *value).collect();
                values.try_into().ok()
            };
            let block = of(0).zip(of(1)).map(|(a, b)| RunBlock { a, b });
            self.blocks.extend(block);
            self.begun.clear();
        }
    }

    /// Decides whether the comparison ends.
    pub(super) fn decide(&self, tolerance: Tolerance, wanted: Blocks, direction: Direction) -> Decision {
        let made = self.blocks.len();
        let is_whole = self.begun.is_empty();
        if is_whole && self.has_zero {
            return Decision::End(None);
        }
        let blocks = match wanted {
            Blocks::Exactly(n) => n as usize,
            Blocks::Pilot if made < PILOT_BLOCKS => PILOT_BLOCKS,
            Blocks::Pilot => self.needed(tolerance).unwrap_or(MAX_BLOCKS).min(MAX_BLOCKS),
            Blocks::UntilClear => {
                let look = SEQUENTIAL.iter().find(|look| look.blocks == made).filter(|_| is_whole);
                let last = SEQUENTIAL[SEQUENTIAL.len() - 1];
                match look {
                    Some(look) if self.is_clear(tolerance, direction, *look) || *look == last => {
                        return Decision::End(Some(*look));
                    }
                    _ => return Decision::UpTo { blocks: last.blocks, at_most: true },
                }
            }
        };
        if is_whole && made >= blocks { Decision::End(None) } else { Decision::UpTo { blocks, at_most: false } }
    }

    /// The number of blocks that the pilot predicts, or `None` when it is more than 1000, or there was no pilot. Only the
    /// first four blocks are used, so that later runs do not change it.
    pub(super) fn needed(&self, tolerance: Tolerance) -> Option<usize> {
        let found = analyse(self.blocks.get(..PILOT_BLOCKS)?, 0.95)?;
        Power::needed_blocks(found.spread, 2, tolerance, PILOT_BLOCKS, 0.025)
    }

    /// The ratio of the complete blocks so far, by the estimator of the verdict; `None` without one.
    pub(super) fn ratio(&self) -> Option<f64> {
        match &self.blocks[..] {
            [block] => {
                Some((block.b[0] * block.b[1] / (block.a[0] * block.a[1])).sqrt()).filter(|ratio| ratio.is_finite())
            }
            blocks => Some(analyse(blocks, 0.95)?.ratio.value),
        }
    }

    /// True if the verdict at an interim look is not *unclear*.
    fn is_clear(&self, tolerance: Tolerance, direction: Direction, look: InterimLook) -> bool {
        analyse(&self.blocks, 1.0 - 2.0 * look.one_sided)
            .is_some_and(|found| classify(direction.goodness(found.ratio), tolerance) != ComparisonVerdict::Unclear)
    }
}

/// The look at which a sequential comparison ends after `blocks` blocks because its budget is exhausted. The error
/// probability of the looks before it is spent; it has that of the next one, which is not taken.
pub(super) fn next_look(blocks: usize) -> Option<InterimLook> {
    let next = SEQUENTIAL.iter().find(|look| look.blocks > blocks)?;
    Some(InterimLook { blocks, one_sided: next.one_sided })
}
