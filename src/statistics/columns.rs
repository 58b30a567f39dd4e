//! The ratio of B to A of runs whose order in time is known or assumed, such as all of A followed by all of B.
//!
//! If the machine drifts meanwhile, the sides differ although nothing was changed. The interval therefore covers two: that of
//! the ranks (Hodges–Lehmann), which a single slow run does not widen, and that of a robust fit of a step and a linear trend.
//! A verdict from it holds with each of them. Neither holds for runs that depend on the runs before them.

use super::Power;
use super::rank_intervals::rank_shift;
use super::sample::Estimate;
use super::step_fit::{TimedValue, step_fit};
use super::two_samples::{logs, welch};

/// The ratio of B to A, with its interval and its test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderedRatio {
    /// The ratio; its interval covers that of the samples, and that of the fit with a trend.
    pub ratio: Estimate,
    /// The ratio with the interval of the samples alone, which a drift of the machine may have moved.
    pub without_trend: Estimate,
    /// The ratio with the interval of the fit with a trend; `None` if no trend is considered.
    pub with_trend: Option<Estimate>,
    /// The name of the test.
    pub test: &'static str,
    /// Whether the interval of the samples is that of the ranks, and not Welch's.
    pub is_by_ranks: bool,
    /// The larger of the two-sided p-values of both.
    pub p: f64,
    /// What the power of the comparison depends on.
    pub power: Power,
}

/// Compares two samples by their logarithms. `times` has the positions of the runs of A and B in time, or `None` if the sides
/// can't have a trend in common. The level of each interval is `level`. Samples that are too small for an interval by ranks,
/// such as three runs each for 0.95, have that of Welch's t-test. Returns `None` if a sample has fewer than two runs, and if a
/// value is not positive and finite.
pub fn ratio_in_order(values: [&[f64]; 2], times: Option<[&[f64]; 2]>, level: f64) -> Option<OrderedRatio> {
    let [a, b] = [logs(values[0])?, logs(values[1])?];
    let timed = |side: usize, values: &[f64]| -> Vec<TimedValue> {
        let time = |n: usize| times.map_or(0.0, |times| times[side][n]);
        values.iter().enumerate().map(|(n, value)| TimedValue { time: time(n), value: *value }).collect()
    };
    let fit = step_fit(&timed(0, &a), &timed(1, &b), times.is_some(), level)?;
    let by_ranks = rank_shift(&a, &b, level).map(|found| (found.estimate, found.p));
    let (alone, p) = by_ranks.or_else(|| welch(&a, &b, level).map(|found| (found.estimate, found.p)))?;
    let with_trend = times.map(|_| fit.estimate);
    let covering = with_trend.map_or(alone, |trend| Estimate {
        low: alone.low.min(trend.low),
        high: alone.high.max(trend.high),
        ..alone
    });
    Some(OrderedRatio {
        ratio: covering.ratio_of_logarithm(),
        without_trend: alone.ratio_of_logarithm(),
        with_trend: with_trend.map(Estimate::ratio_of_logarithm),
        test: match (by_ranks.is_some(), times.is_some()) {
            (true, true) => "ranks and trend",
            (true, false) => "ranks",
            (false, true) => "Welch and trend",
            (false, false) => "Welch",
        },
        is_by_ranks: by_ranks.is_some(),
        p: if times.is_some() { p.max(fit.p) } else { p },
        power: Power { error: fit.error, df: fit.df, one_sided: (1.0 - level) / 2.0 },
    })
}

/// Returns the positions in time of the runs of A and of B: by the times at which they were started if all are known, else
/// those of A before those of B.
pub fn positions(started: [&[Option<i64>]; 2]) -> [Vec<f64>; 2] {
    let mut order: Vec<(Option<i64>, usize, usize)> =
        (0..2).flat_map(|side| started[side].iter().enumerate().map(move |(n, time)| (*time, side, n))).collect();
    if order.iter().all(|(time, ..)| time.is_some()) {
        order.sort_unstable();
    }
    let mut found = started.map(|side| vec![0.0; side.len()]);
    order.iter().enumerate().for_each(|(at, (_, side, n))| found[*side][*n] = at as f64);
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn runs_are_in_the_order_of_their_times_if_all_are_known() {
        let known = [5, 9, 7].map(Some);
        let before = [1, 6].map(Some);
        assert_eq!(positions([&known, &before]), [vec![1.0, 4.0, 3.0], vec![0.0, 2.0]]);
        assert_eq!(positions([&known, &[None, Some(1)]]), [vec![0.0, 1.0, 2.0], vec![3.0, 4.0]]);
    }

    fn positioned(a: &[f64], b: &[f64]) -> OrderedRatio {
        let [of_a, of_b] = positions([&vec![None; a.len()], &vec![None; b.len()]]);
        ratio_in_order([a, b], Some([&of_a, &of_b]), 0.95).unwrap()
    }

    /// Both intervals are covered: that of the ranks excludes 1, that of the fit does not.
    #[test]
    fn a_drift_is_no_difference_and_a_step_is_one() {
        let noise = |n: usize| 0.003 * (n as f64 * 2.3).sin();
        let drift: Vec<f64> = (0..24).map(|n| 100.0 * (0.005 * n as f64 + noise(n)).exp()).collect();
        let found = positioned(&drift[..12], &drift[12..]);
        assert!(found.without_trend.low > 1.04 && found.ratio.low < 1.0, "{found:?}");
        assert!(found.p > 0.05 && found.ratio.value > 1.04, "{found:?}");
        assert_eq!((found.test, found.is_by_ranks), ("ranks and trend", true));
        let step: Vec<f64> = (0..24).map(|n| (1.0 + noise(n)) * if n < 12 { 100.0 } else { 110.0 }).collect();
        let found = positioned(&step[..12], &step[12..]);
        assert!(found.ratio.low > 1.08 && found.ratio.high < 1.12 && found.p < 1e-6, "{found:?}");
        // In the reverse order of time it is the same step.
        let [of_b, of_a] = positions([&[None; 12], &[None; 12]]);
        let reverse = ratio_in_order([&step[12..], &step[..12]], Some([&of_a, &of_b]), 0.95).unwrap();
        assert!((reverse.ratio.low * found.ratio.high - 1.0).abs() < 1e-9, "{reverse:?}");
    }

    #[test]
    fn few_runs_have_the_interval_of_welch() {
        let (a, b) = ([100.0, 101.0, 99.0], [50.0, 50.5, 49.0]);
        let found = ratio_in_order([&a, &b], None, 0.95).unwrap();
        let of_welch = crate::welch_ratio(&a, &b, 0.95).unwrap();
        assert_eq!((found.ratio, found.p, found.test), (of_welch.estimate, of_welch.p, "Welch"));
        let with_trend = positioned(&a, &b);
        assert!(with_trend.ratio.high > found.ratio.high && with_trend.test == "Welch and trend", "{with_trend:?}");
        for (a, b) in [(&[1.0][..], &b[..]), (&[0.0, 1.0], &b), (&[f64::INFINITY, 1.0], &b)] {
            assert_eq!(ratio_in_order([a, b], None, 0.95), None);
        }
    }
}
