//! The runs of two sides, their order, and the ratio with the test that this order asks for.

use super::NamedTest;
use crate::analysis::{
    self, BlockAnalysis, ComparisonVerdict, Disturbance, DisturbanceCheck, Estimate, NoiseFloor, OrderedRatio, Power,
    RunBlock, STRICT_LEVEL, Tolerance,
};
use crate::import::Observation;

/// The confidence level of intervals.
pub(super) const LEVEL: f64 = 0.95;

/// The name of the exact test of pairs of runs.
pub(super) const SIGNED_RANK: &str = "signed rank";

/// The name of the t-test on the log ratios of blocks.
pub(super) const ON_BLOCKS: &str = "t on blocks";

/// How the runs of both sides were ordered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrder {
    /// Interleaved in blocks of four: each two successive runs of A, and of B, belong to one block.
    Blocks,
    /// One of A and one of B in each block of an experiment, at the same position in both sides.
    Paired,
    /// Alternated in another way, or in blocks of which some lack a run.
    Alternated,
    /// Independently of each other.
    Separate,
}

/// The runs of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// The runs of A, in the order of time.
    pub a: &'a [Observation],
    /// The runs of B, in the order of time.
    pub b: &'a [Observation],
    pub order: RunOrder,
}

impl Runs<'_> {
    /// True if the runs were interleaved in blocks, and each block has the runs of both sides.
    pub(super) fn in_blocks(&self) -> bool {
        matches!(self.order, RunOrder::Blocks | RunOrder::Paired)
    }
}

/// The ratio of B to A with its test.
pub(super) enum TestedRatio {
    /// Of runs that were interleaved in blocks.
    Interleaved(BlockAnalysis),
    /// Of runs that were made one after the other, or alternated in another way.
    Ordered(OrderedRatio),
}

/// The times of runs that may have a drift of the machine in common: their positions. `None` for sides of different days.
pub(super) type RunPositions = Option<[Vec<f64>; 2]>;

/// Returns the positions of the runs in time, unless the sides are of different days.
pub(super) fn times(runs: &Runs<'_>, days_differ: bool) -> RunPositions {
    let started = [runs.a, runs.b].map(|runs| runs.iter().map(|run| run.started).collect::<Vec<_>>());
    (!days_differ).then(|| analysis::positions(started.each_ref().map(Vec::as_slice)))
}

impl TestedRatio {
    /// Tests the values of A and B. Returns `None` when the runs are too few for an interval, and when a value is not positive.
    pub(super) fn of(order: RunOrder, [a, b]: [&[f64]; 2], times: &RunPositions, level: f64) -> Option<Self> {
        match order {
            RunOrder::Blocks => analysis::analyse(&blocks(a, b), level).map(Self::Interleaved),
            RunOrder::Paired => analysis::analyse_paired(a, b, level).map(Self::Interleaved),
            RunOrder::Alternated | RunOrder::Separate => {
                let times = times.as_ref().map(|times| times.each_ref().map(Vec::as_slice));
                analysis::ratio_in_order([a, b], times, level).map(Self::Ordered)
            }
        }
    }

    pub(super) fn ratio(&self) -> Estimate {
        match self {
            Self::Interleaved(found) => found.ratio,
            Self::Ordered(found) => found.ratio,
        }
    }

    pub(super) fn p(&self) -> f64 {
        match self {
            Self::Interleaved(found) => found.p,
            Self::Ordered(found) => found.p,
        }
    }

    /// Returns the description of the test.
    pub(super) fn named(&self) -> NamedTest {
        let ((name, p), student) = match self {
            Self::Interleaved(found) => match found.student {
                None => ((SIGNED_RANK, found.p), None),
                student => ((ON_BLOCKS, found.p), student),
            },
            Self::Ordered(found) => ((found.test, found.p), None),
        };
        let (t, df) = student.map_or((f64::NAN, f64::NAN), |student| (student.t, student.df));
        NamedTest { name: name.to_owned(), t, df, p }
    }

    /// Returns the interval of the samples alone, if that of the ratio also covers a drift of the machine.
    pub(super) fn without_trend(&self) -> Option<Estimate> {
        match self {
            Self::Ordered(found) => found.with_trend.map(|_| found.without_trend),
            Self::Interleaved(_) => None,
        }
    }

    /// Returns the detectable loss, and the total number of runs that would be enough. `floor` is the noise floor by which the
    /// interval is widened.
    pub(super) fn power(
        &self,
        runs: &Runs<'_>,
        tolerance: Tolerance,
        floor: Option<NoiseFloor>,
        level: f64,
    ) -> (Option<f64>, Option<u64>) {
        match self {
            Self::Interleaved(found) => {
                let pairs = run_pairs(runs.order);
                let needed = Power::needed_blocks(found.spread, pairs, tolerance, 2, (1.0 - level) / 2.0);
                let loss = found.power.and_then(|power| power.detectable_loss(tolerance));
                (loss, needed.map(|blocks| (2 * pairs * blocks) as u64))
            }
            Self::Ordered(found) => {
                // A widened interval is beyond a limit if the interval itself is as far beyond it as the floor is wide.
                let (limit, wider) = (1.0 - tolerance.0, 1.0 + floor.map_or(0.0, |floor| floor.share));
                let (of_loss, of_equal) = (Tolerance(1.0 - limit / wider), Tolerance(1.0 - limit * wider));
                // The standard error depends on the harmonic mean of the sizes.
                let (a, b) = (runs.a.len(), runs.b.len());
                // With a floor above the tolerance no number of runs is enough.
                let needed =
                    (of_equal.0 > 0.0).then(|| found.power.needed_runs(2 * a * b / (a + b), of_equal)).flatten();
                (found.power.detectable_loss(of_loss), needed.map(|runs| 2 * runs as u64))
            }
        }
    }
}

/// Returns the number of pairs of a block.
fn run_pairs(order: RunOrder) -> usize {
    if order == RunOrder::Blocks { 2 } else { 1 }
}

/// Returns the complete blocks of two runs of each side.
pub(super) fn blocks(a: &[f64], b: &[f64]) -> Vec<RunBlock> {
    a.chunks_exact(2).zip(b.chunks_exact(2)).map(|(a, b)| RunBlock { a: [a[0], a[1]], b: [b[0], b[1]] }).collect()
}

/// Returns the numbers of disturbed runs.
pub(super) fn disturbance(runs: &Runs<'_>) -> Disturbance {
    let sides = [runs.a, runs.b];
    Disturbance {
        disturbed: sides.map(|runs| runs.iter().filter(|run| run.disturbed).count() as u64),
        runs: sides.map(|runs| runs.len() as u64),
    }
}

/// Checks the verdict on interleaved runs of which other programs disturbed some. `verdict_of` gives that of a ratio. Returns
/// what was done, and whether the verdict holds; `None` if no run was disturbed.
pub(super) fn check_disturbance(
    runs: &Runs<'_>,
    [a, b]: [&[f64]; 2],
    level: f64,
    verdict: ComparisonVerdict,
    verdict_of: &dyn Fn(Estimate) -> ComparisonVerdict,
) -> Option<(DisturbanceCheck, bool)> {
    let of_block = run_pairs(runs.order);
    let is_quiet = |runs: &[Observation]| !runs.iter().any(|run| run.disturbed);
    let quiet: Vec<bool> = runs
        .a
        .chunks_exact(of_block)
        .zip(runs.b.chunks_exact(of_block))
        .map(|(a, b)| is_quiet(a) && is_quiet(b))
        .collect();
    let check = disturbance(runs).check(quiet.iter().filter(|quiet| **quiet).count())?;
    let is_strict = check == DisturbanceCheck::Strict;
    let kept = |values: &[f64]| -> Vec<f64> {
        let blocks = values.chunks_exact(of_block).zip(&quiet);
        blocks.filter(|(_, quiet)| is_strict || **quiet).flat_map(|(values, _)| values).copied().collect()
    };
    let level = if is_strict { level.max(STRICT_LEVEL) } else { level };
    let again = || TestedRatio::of(runs.order, [&kept(a), &kept(b)], &None, level);
    Some((check, check.holds(verdict, || again().map(|found| verdict_of(found.ratio())))))
}
