//! Possible causes of a difference: figures of the runs other than the metric, ranked by their relative change from A
//! to B.

use super::two_samples::{holm, welch};
use super::{SampleSummary, median};
use serde::{Deserialize, Serialize};

/// A figure that differs significantly between A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl Change {
    /// Returns the relative change: the absolute difference of the means divided by the greater absolute mean, limited
    /// to 1. It is 1 when one of the means is 0.
    pub fn size(&self) -> f64 {
        let greater = self.a.abs().max(self.b.abs());
        if greater == 0.0 { 0.0 } else { ((self.b - self.a) / greater).abs().min(1.0) }
    }
}

/// The significance level: changes with a corrected p-value below it are reported.
const SIGNIFICANCE: f64 = 0.01;

/// The minimum relative change that is reported.
const MIN_CHANGE: f64 = 0.02;

/// Returns the figures that changed significantly, the greatest relative change first. Each figure is given as its
/// name, its values in A and its values in B.
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
        .filter(|change| change.p < SIGNIFICANCE && change.size() >= MIN_CHANGE)
        .collect();
    changes.sort_by(|x, y| y.size().total_cmp(&x.size()).then(x.p.total_cmp(&y.p)));
    changes
}

/// Returns the ranks of the values of both samples in the pooled sample, counted from 1. Equal values get the mean of
/// their ranks.
fn ranks(a: &[f64], b: &[f64]) -> (Vec<f64>, Vec<f64>) {
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
}
