//! What moved together with a verdict: figures of runs other than the metric, ranked by how much they changed.

use super::two_samples::{holm, welch};
use super::{SampleSummary, median};
use serde::{Deserialize, Serialize};

/// A figure that is not the same in A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its name: `device_read_bytes_per_op`…
    pub name: String,
    /// Its mean in A.
    pub a: f64,
    /// Its mean in B.
    pub b: f64,
    /// By Welch's test of the values or of their ranks, whichever is surer; corrected for both, and for the number of figures (Holm).
    pub p: f64,
}

impl Change {
    /// By how much it changed: the difference over the greater of the two, 0 to 1. A figure that appears or vanishes has 1.
    pub fn size(&self) -> f64 {
        let greater = self.a.abs().max(self.b.abs());
        if greater == 0.0 { 0.0 } else { ((self.b - self.a) / greater).abs().min(1.0) }
    }
}

/// The greatest probability with which a change is taken for one.
const SURE: f64 = 0.01;

/// A change smaller than this explains nothing.
const LEAST: f64 = 0.02;

/// The figures that changed, the greatest change first. A figure is its name, its values in A and its values in B.
pub fn ranked(figures: &[(&str, Vec<f64>, Vec<f64>)]) -> Vec<Change> {
    let tested: Vec<_> = figures
        .iter()
        .filter_map(|(name, a, b)| {
            let (of_a, of_b) = (SampleSummary::of(a)?, SampleSummary::of(b)?);
            // Bytes that were read when a cache ran over scatter so widely that only their ranks tell them from none.
            let (ranks_a, ranks_b) = ranks(a, b);
            let p = (2.0 * welch(a, b, 0.95)?.p.min(welch(&ranks_a, &ranks_b, 0.95)?.p)).min(1.0);
            // One run that differs moves a mean; it does not move the medians apart.
            let apart = median(a)?.total_cmp(&median(b)?).is_ne();
            Some((*name, of_a.mean, of_b.mean, if apart { p } else { 1.0 }))
        })
        .collect();
    let corrected = holm(&tested.iter().map(|(.., p)| *p).collect::<Vec<_>>());
    let mut changes: Vec<Change> = tested
        .into_iter()
        .zip(corrected)
        .map(|((name, a, b, _), p)| Change { name: name.to_owned(), a, b, p })
        .filter(|change| change.p < SURE && change.size() >= LEAST)
        .collect();
    changes.sort_by(|x, y| y.size().total_cmp(&x.size()).then(x.p.total_cmp(&y.p)));
    changes
}

/// The rank of each value among those of both samples, from 1; equal values share the mean of theirs.
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
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0], &[9.0, 1.0]), (vec![3.5, 1.5, 3.5], vec![5.0, 1.5]));
    }

    /// One run of ten with nearly all of the bytes: the means say nothing, the ranks do.
    #[test]
    fn what_scatters_widely_is_told_by_its_ranks() {
        let scattered: Vec<f64> = (0..10).map(|i| 3.0_f64.powi(i)).collect();
        let found = ranked(&[("read", vec![0.0; 10], scattered), ("still", vec![1.0; 10], vec![1.0; 10])]);
        assert!(found.len() == 1 && found[0].p < 1e-4, "{found:?}");
    }

    #[test]
    fn what_moved_most_is_first_and_what_did_not_is_absent() {
        let around = |mean: f64| (0..8).map(|i| mean * (1.0 + 0.001 * f64::from(i % 3))).collect::<Vec<_>>();
        let found = ranked(&[
            ("still", around(5.0), around(5.0)),
            ("a tenth", around(1.0), around(1.1)),
            ("appears", vec![0.0; 8], around(3.0)),
            ("one run only", vec![1.0; 8], [vec![1.0; 7], vec![90.0]].concat()),
        ]);
        let names: Vec<&str> = found.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["appears", "a tenth"]);
    }
}
