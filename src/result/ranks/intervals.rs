//! The time series of several ranks as one.
//!
//! The ranks sample at the same times, but a rank that started late or that merged its intervals has others. The series
//! of the merged run has the intervals of one rank; those of the others are added to the interval that contains their
//! middle. So no operation is lost, and the sums of the series are still the totals.

use super::RankRun;
use super::figures::FlowopMap;
use crate::means::weighted_mean;
use crate::{Interval, IntervalFlowop};

/// Intervals that are longer than this share of the longest ones are on the same grid, except for scheduling delays.
const SAME_LENGTH: f64 = 0.7;

/// The time series of one rank.
struct RankSeries<'a> {
    intervals: &'a [Interval],
    /// Position of each of its flowops among those of the merged run.
    positions: &'a [usize],
    /// Its start, in seconds after the common start.
    began: f64,
}

/// Sums of one flowop in one interval.
#[derive(Clone, Default)]
struct IntervalSum {
    ops: u64,
    bytes: u64,
    /// The figures of each rank that had operations.
    figures: Vec<IntervalFlowop>,
}

/// Returns the time series of all ranks, without the names of the flowops. Its times are in seconds since the first
/// rank's series began. `of` returns the series of a rank, and its start in seconds after the common start.
pub(super) fn merged(
    ranks: &[RankRun],
    map: &FlowopMap,
    of: impl Fn(&RankRun) -> Option<(&[Interval], f64)>,
) -> Vec<Interval> {
    let series: Vec<RankSeries> = ranks
        .iter()
        .zip(&map.positions)
        .filter_map(|(rank, positions)| {
            let (intervals, began) = of(rank).filter(|(intervals, _)| !intervals.is_empty())?;
            Some(RankSeries { intervals, positions, began })
        })
        .collect();
    let zero = series.iter().map(|own| own.began).fold(f64::INFINITY, f64::min);
    let Some(grid) = grid_of(&series, zero) else { return Vec::new() };
    let mut sums = vec![vec![IntervalSum::default(); map.len]; grid.len()];
    for own in &series {
        for interval in own.intervals {
            let middle = interval.t - interval.seconds / 2.0 + own.began - zero;
            let after = grid.partition_point(|(end, _)| *end <= middle);
            let sums = &mut sums[after.min(grid.len() - 1)];
            for (figures, position) in interval.flowops.iter().zip(own.positions) {
                sums[*position].add(figures);
            }
        }
    }
    let interval = |(sums, (t, seconds)): (Vec<IntervalSum>, (f64, f64))| Interval {
        t,
        seconds,
        flowops: sums.iter().map(IntervalSum::figures).collect(),
    };
    sums.into_iter().zip(grid).map(interval).collect()
}

/// Returns the ends and the lengths of the merged intervals, in seconds after `zero`: those of the rank with the longest
/// intervals that ran to the end, and before and after them those of other ranks.
fn grid_of(series: &[RankSeries], zero: f64) -> Option<Vec<(f64, f64)>> {
    let length = |own: &RankSeries| own.intervals.iter().map(|interval| interval.seconds).fold(0.0, f64::max);
    let end = |own: &RankSeries| own.intervals.last().map_or(0.0, |last| last.t) + own.began;
    let times = |own: &RankSeries| -> Vec<(f64, f64)> {
        let shift = own.began - zero;
        own.intervals.iter().map(|interval| (interval.t + shift, interval.seconds)).collect()
    };
    let longest = series.iter().map(length).fold(0.0, f64::max);
    // Reversed, since of several equal elements `max_by` returns the last one.
    let latest = |a: &&RankSeries, b: &&RankSeries| end(a).total_cmp(&end(b));
    let own = series.iter().rev().filter(|own| length(own) >= longest * SAME_LENGTH).max_by(latest)?;
    let last = series.iter().rev().max_by(latest)?;
    let first = series.iter().min_by(|a, b| a.began.total_cmp(&b.began))?;
    let own = times(own);
    let start = own.first().map_or(0.0, |(t, seconds)| t - seconds);
    // An interval that is mostly within the others adds none.
    let before = times(first).into_iter().filter(|(t, seconds)| t - seconds / 2.0 < start);
    let mut grid: Vec<(f64, f64)> = before.map(|(t, seconds)| (t.min(start), seconds)).collect();
    grid.extend(own);
    for (t, seconds) in times(last) {
        let end = grid.last().map_or(0.0, |(t, _)| *t);
        if t - seconds / 2.0 > end {
            grid.push((t, t - end));
        }
    }
    Some(grid)
}

impl IntervalSum {
    fn add(&mut self, figures: &IntervalFlowop) {
        self.ops += figures.ops;
        self.bytes += figures.bytes;
        if figures.ops > 0 {
            self.figures.push(figures.clone());
        }
    }

    /// Returns the figures. Percentiles cannot be computed from those of several ranks, and are then missing.
    fn figures(&self) -> IntervalFlowop {
        let (p50_ns, p99_ns) = match &self.figures[..] {
            [only] => (only.p50_ns, only.p99_ns),
            _ => (None, None),
        };
        let mean_ns = weighted_mean(self.figures.iter().map(|figures| (figures.mean_ns, figures.ops as f64)));
        IntervalFlowop { name: String::new(), ops: self.ops, bytes: self.bytes, mean_ns, p50_ns, p99_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowopResult, Run};

    /// Returns the run of a rank whose intervals end at `ends`, each with one operation of its only flowop.
    fn rank(skew_ms: i64, ends: &[f64]) -> RankRun {
        let mut before = 0.0;
        let interval = |t: &f64| {
            let seconds = t - before;
            before = *t;
            Interval { t: *t, seconds, flowops: vec![IntervalFlowop { ops: 1, bytes: 7, ..IntervalFlowop::default() }] }
        };
        let intervals = ends.iter().map(interval).collect();
        let run = Run { flowops: vec![FlowopResult::default()], intervals, ..Run::default() };
        RankRun { start_skew_ns: Some(skew_ms * 1_000_000), run, ..RankRun::default() }
    }

    fn ops(ranks: &[RankRun]) -> Vec<(f64, u64)> {
        fn series(rank: &RankRun) -> Option<(&[Interval], f64)> {
            Some((&rank.run.intervals[..], rank.start_skew_ns? as f64 / 1e9))
        }
        let merged = merged(ranks, &FlowopMap::of(ranks), series);
        merged.iter().map(|interval| (interval.t, interval.flowops[0].ops)).collect()
    }

    #[test]
    fn intervals_on_the_same_grid_are_added_by_index() {
        let ranks = [rank(0, &[1.0, 2.001, 3.0]), rank(1, &[1.002, 1.999, 3.0]), rank(-1, &[1.0, 2.0, 2.9])];
        assert_eq!(ops(&ranks).iter().map(|(_, ops)| *ops).collect::<Vec<_>>(), [3, 3, 3]);
    }

    #[test]
    fn longer_intervals_and_a_longer_run_are_kept() {
        assert_eq!(ops(&[rank(0, &[1.0, 2.0, 3.0, 4.0]), rank(0, &[2.0, 4.0])]), [(2.0, 3), (4.0, 3)]);
        assert_eq!(ops(&[rank(0, &[1.0]), rank(0, &[1.0, 2.0, 3.0])]), [(1.0, 2), (2.0, 1), (3.0, 1)]);
        // The rank with the shorter intervals runs longer.
        assert_eq!(ops(&[rank(0, &[2.0, 4.0]), rank(0, &[1.0, 2.0, 3.0, 4.0, 5.0])]), [(2.0, 3), (4.0, 3), (5.0, 1)]);
    }

    #[test]
    fn a_late_rank_is_added_by_time() {
        assert_eq!(ops(&[rank(0, &[1.0, 2.0, 3.0]), rank(1_000, &[1.0, 2.0])]), [(1.0, 1), (2.0, 2), (3.0, 2)]);
        assert_eq!(
            ops(&[rank(1_000, &[1.0, 2.0, 3.0]), rank(0, &[1.0, 2.0])]),
            [(1.0, 1), (2.0, 2), (3.0, 1), (4.0, 1)]
        );
    }

    #[test]
    fn percentiles_are_those_of_the_only_rank_with_operations() {
        let one = IntervalFlowop { ops: 2, mean_ns: Some(10.0), p50_ns: Some(9), ..IntervalFlowop::default() };
        let mut sum = IntervalSum::default();
        sum.add(&one);
        sum.add(&IntervalFlowop::default());
        assert_eq!((sum.figures().p50_ns, sum.figures().mean_ns), (Some(9), Some(10.0)));
        sum.add(&IntervalFlowop { ops: 6, mean_ns: Some(30.0), ..IntervalFlowop::default() });
        assert_eq!((sum.figures().p50_ns, sum.figures().mean_ns), (None, Some(25.0)));
    }
}
