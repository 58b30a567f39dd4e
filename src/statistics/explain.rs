//! Possible causes of a difference: figures of the runs other than the metric, ranked by the stage of an operation that
//! they describe.
//!
//! A change of an earlier stage explains changes of the later ones: an additional sync makes the device write more, and
//! a cache that serves less makes it read more. A ranking by size would put a consequence first whenever it changes by
//! a larger factor than its cause.

use super::two_samples::{holm, welch};
use super::{SampleSummary, median};
use serde::Serialize;

/// A figure that differs significantly between A and B.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The name, such as `device_read_bytes_per_op`.
    pub name: String,
    /// The mean in A.
    pub a: f64,
    /// The mean in B.
    pub b: f64,
    /// The smaller of the two-sided p-values of Welch's t-test on the values and on their ranks, corrected for the two
    /// tests (Bonferroni) and for the number of figures (Holm).
    pub p: f64,
}

/// The stages of an operation, in their causal order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CauseStage {
    /// What the program requests: syncs, opens, and requests that fail.
    Requests,
    /// The share of the requests that the page cache serves.
    Cache,
    /// The contents of the page cache at the start. They matter only if the share that it serves changes.
    Contents,
    /// The bytes that the devices transfer.
    Devices,
    /// Processor time.
    Processors,
    /// Waiting, which follows from all others.
    Waiting,
}

/// The figures that may explain a difference, with the stage of each. Figures of one stage are in the order in which
/// they are reported when their changes are equal.
const FIGURES: [(&str, CauseStage); 11] = [
    ("errors_per_op", CauseStage::Requests),
    ("syncs_per_op", CauseStage::Requests),
    ("implicit_opens_per_op", CauseStage::Requests),
    (HIT_RATIO, CauseStage::Cache),
    (RESIDENT_BEFORE, CauseStage::Contents),
    ("device_read_bytes_per_op", CauseStage::Devices),
    ("device_written_bytes_per_op", CauseStage::Devices),
    ("cpu_us_per_op", CauseStage::Processors),
    ("system_cpu_us_per_op", CauseStage::Processors),
    ("lateness_ns", CauseStage::Waiting),
    ("starved_ns_per_op", CauseStage::Waiting),
];

/// The share of the bytes read by operations that did not come from the devices, 0 to 1.
const HIT_RATIO: &str = "hit_ratio";

/// The share of the pages of the file sets that were resident in memory before the run, 0 to 1.
const RESIDENT_BEFORE: &str = "resident_before";

/// Returns the position of a figure in `FIGURES`, or `None` when it is unknown.
pub fn cause_rank(name: &str) -> Option<usize> {
    FIGURES.iter().position(|(figure, _)| *figure == name)
}

impl Change {
    /// Returns the relative change: the absolute difference of the means divided by the greater absolute mean, limited
    /// to 1. It is 1 when one of the means is 0. For a share it is the change of its complement if that is greater: a
    /// hit ratio that falls from 1 to 0.98 is a cache that no longer serves everything.
    pub fn size(&self) -> f64 {
        let relative = |a: f64, b: f64| {
            let greater = a.abs().max(b.abs());
            if greater == 0.0 { 0.0 } else { ((b - a) / greater).abs().min(1.0) }
        };
        let whole = relative(self.a, self.b);
        if self.is_share() { whole.max(relative(1.0 - self.a, 1.0 - self.b)) } else { whole }
    }

    fn is_share(&self) -> bool {
        [HIT_RATIO, RESIDENT_BEFORE].contains(&self.name.as_str())
    }

    /// True if the change is too small to be reported.
    fn is_small(&self) -> bool {
        self.size() < MIN_CHANGE || self.is_share() && (self.b - self.a).abs() < MIN_ABSOLUTE
    }

    /// Returns the stage of the figure. A change of requests that is rare among the operations explains little.
    fn stage(&self) -> CauseStage {
        match cause_rank(&self.name).map(|rank| FIGURES[rank].1) {
            Some(CauseStage::Requests) if (self.b - self.a).abs() < MIN_ABSOLUTE => CauseStage::Waiting,
            Some(stage) => stage,
            None => CauseStage::Waiting,
        }
    }
}

/// The significance level: changes with a corrected p-value below it are reported.
const SIGNIFICANCE: f64 = 0.01;

/// The minimum relative change that is reported.
const MIN_CHANGE: f64 = 0.02;

/// The minimum change of a share, and of the number of requests per operation. An operation that reads from a device or
/// waits for it takes up to a thousand times as long as one in memory.
const MIN_ABSOLUTE: f64 = 0.001;

/// Returns the figures that changed significantly: those of an earlier stage first, and within a stage the greatest
/// relative change first. Each figure is given as its name, its values in A and its values in B.
pub fn rank_changes(figures: &[(&str, Vec<f64>, Vec<f64>)]) -> Vec<Change> {
    let tested: Vec<_> = figures
        .iter()
        .filter_map(|(name, a, b)| {
            let (of_a, of_b) = (SampleSummary::of(a)?, SampleSummary::of(b)?);
            // Some figures scatter too widely for a test of the means, such as the bytes read from the device in runs
            // that exceed a cache. A test of their ranks finds the difference.
            let (ranks_a, ranks_b) = ranks(a, b);
            let p = (2.0 * welch(a, b, 0.95)?.p.min(welch(&ranks_a, &ranks_b, 0.95)?.p)).min(1.0);
            // A single outlier changes a mean, but not the median. A figure with equal medians is not reported.
            let medians_differ = median(a)?.total_cmp(&median(b)?).is_ne();
            Some((*name, of_a.mean, of_b.mean, if medians_differ { p } else { 1.0 }))
        })
        .collect();
    let corrected = holm(&tested.iter().map(|(.., p)| *p).collect::<Vec<_>>());
    let mut changes: Vec<Change> = tested
        .into_iter()
        .zip(corrected)
        .map(|((name, a, b, _), p)| Change { name: name.to_owned(), a, b, p })
        .filter(|change| change.p < SIGNIFICANCE && !change.is_small())
        .collect();
    // The order does not depend on p-values, which differ from one repetition of the experiment to the next.
    changes.sort_by(|x, y| {
        let rank = |change: &Change| cause_rank(&change.name).unwrap_or(FIGURES.len());
        x.stage().cmp(&y.stage()).then(y.size().total_cmp(&x.size())).then(rank(x).cmp(&rank(y)))
    });
    changes
}

/// Returns the ranks of the values of both samples in the pooled sample, counted from 1. Equal values get the mean of
/// their ranks.
pub(super) fn ranks(a: &[f64], b: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = all.partition_point(|other| other.total_cmp(value).is_lt());
        let not_above = all.partition_point(|other| other.total_cmp(value).is_le());
        f64::midpoint(below as f64 + 1.0, not_above as f64)
    };
    (a.iter().map(rank).collect(), b.iter().map(rank).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_get_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0], &[9.0, 1.0]), (vec![3.5, 1.5, 3.5], vec![5.0, 1.5]));
    }

    /// One run of ten has most of the bytes, so that a test of the means is not significant. The test of the ranks is.
    #[test]
    fn widely_scattered_values_are_compared_by_rank() {
        let scattered: Vec<f64> = (0..10).map(|i| 3.0_f64.powi(i)).collect();
        let found = rank_changes(&[("read", vec![0.0; 10], scattered), ("still", vec![1.0; 10], vec![1.0; 10])]);
        assert!(found.len() == 1 && found[0].p < 1e-4, "{found:?}");
    }

    #[test]
    fn only_changed_figures_are_returned_with_the_greatest_first() {
        let around = |mean: f64| (0..8).map(|i| mean * (1.0 + 0.001 * f64::from(i % 3))).collect::<Vec<_>>();
        let found = rank_changes(&[
            ("still", around(5.0), around(5.0)),
            ("a tenth", around(1.0), around(1.1)),
            ("appears", vec![0.0; 8], around(3.0)),
            ("one run only", vec![1.0; 8], [vec![1.0; 7], vec![90.0]].concat()),
        ]);
        let names: Vec<&str> = found.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["appears", "a tenth"]);
    }

    /// Ranks figures with these means in A and B.
    fn ranked(means: &[(&str, f64, f64)]) -> Vec<String> {
        let around = |mean: f64| (0..8).map(|i| mean * (1.0 + 0.0001 * f64::from(i % 3))).collect::<Vec<_>>();
        let figures: Vec<_> = means.iter().map(|(name, a, b)| (*name, around(*a), around(*b))).collect();
        rank_changes(&figures).into_iter().map(|change| change.name).collect()
    }

    #[test]
    fn an_earlier_stage_is_first_even_if_a_later_one_changes_more() {
        let means = [
            ("cpu_us_per_op", 1.0, 9.0),
            ("device_written_bytes_per_op", 0.0, 9e5),
            ("device_read_bytes_per_op", 0.0, 9e5),
            ("hit_ratio", 1.0, 0.9),
            ("resident_before", 1.0, 0.0),
            ("syncs_per_op", 0.2, 0.22),
        ];
        let expected = [
            "syncs_per_op",
            "hit_ratio",
            "resident_before",
            "device_read_bytes_per_op",
            "device_written_bytes_per_op",
            "cpu_us_per_op",
        ];
        assert_eq!(ranked(&means), expected);
        let mut reversed = means;
        reversed.reverse();
        assert_eq!(ranked(&reversed), expected, "equal changes of a stage have a fixed order");
    }

    #[test]
    fn small_changes_of_shares_and_rare_requests_explain_little() {
        assert_eq!(ranked(&[("hit_ratio", 0.99999, 0.99998)]), [""; 0]);
        assert_eq!(ranked(&[("hit_ratio", 1.0, 0.985)]), ["hit_ratio"]);
        assert_eq!(
            ranked(&[("errors_per_op", 0.0, 0.00001), ("cpu_us_per_op", 1.0, 1.1)]),
            ["cpu_us_per_op", "errors_per_op"]
        );
    }
}
