//! Tests of comparisons with artificial runs: verdicts, power, notes.

#![allow(clippy::unwrap_used)]
use super::*;
use std::collections::BTreeMap;

pub(in crate::comparison) fn comparer(metric: &str) -> Comparer {
    Comparer::of("varmail", ["A", "B"], &metric.parse().unwrap())
}

/// Returns runs around `mean`, with relative deviations of up to `spread`.
pub(in crate::comparison) fn runs(metric: &str, n: usize, mean: f64, spread: f64) -> Vec<Observation> {
    (0..n)
        .map(|i| Observation {
            source: format!("run {i}"),
            figures: BTreeMap::from([(metric.to_owned(), mean * (1.0 + spread * (i as f64 * 2.3).sin()))]),
            causes: BTreeMap::from([("syncs_per_op", mean.floor())]),
            ..Observation::default()
        })
        .collect()
}

fn verdict(metric: &str, b: f64, spread: f64, control_b: f64) -> Comparison {
    let (of_a, mut of_b) = (runs(metric, 24, 100.0, spread), runs(metric, 24, b, spread));
    of_b.rotate_left(5);
    let steady: Vec<f64> = (0..24).map(|i| 50.0 + 0.1 * f64::from(i % 3)).collect();
    let control_b: Vec<f64> = steady.iter().map(|v| v * control_b).collect();
    let runs = Runs { a: &of_a, b: &of_b, interleaved: true, control_a: &steady, control_b: &control_b };
    comparer(metric).compare(&runs).unwrap()
}

/// Each direction is tested with each of the six verdicts.
#[test]
fn each_direction_has_all_six_verdicts() {
    use ComparisonVerdict::{Better, Invalid, NotWorse, Same, Unclear, Worse};
    for (b, spread, control, higher, lower) in [
        (120.0, 0.01, 1.0, Better, Worse),
        (83.0, 0.01, 1.0, Worse, Better),
        (100.0, 0.001, 1.0, Same, Same),
        (103.0, 0.02, 1.0, NotWorse, Unclear),
        (97.2, 0.02, 1.0, Unclear, NotWorse),
        (101.0, 0.5, 1.0, Unclear, Unclear),
        (120.0, 0.01, 0.8, Invalid, Invalid),
    ] {
        let (found, inverse) = (verdict("ops", b, spread, control), verdict("latency.mean", b, spread, control));
        assert_eq!((found.verdict, inverse.verdict), (higher, lower), "{b} {spread}: {:?}", found.ratio);
        assert!(found.higher_is_better && !inverse.higher_is_better);
    }
}

#[test]
fn a_comparison_reports_its_detectable_loss() {
    let found = verdict("ops", 100.0, 0.04, 1.0);
    assert!(found.could_have_seen.unwrap() > 0.03 && found.runs_needed.unwrap() >= 8);
    assert!(!found.control.unwrap().moved && found.causes.is_empty());
    assert!(verdict("ops", 120.0, 0.01, 1.0).causes[0].name == "syncs_per_op");
}

#[test]
fn separate_samples_are_tested_by_welch_and_have_a_note() {
    let (a, b) = (runs("ops", 10, 100.0, 0.02), runs("ops", 8, 110.0, 0.02));
    let separate = Runs { a: &a, b: &b, interleaved: false, control_a: &[], control_b: &[] };
    let found = Comparer { method: ComparisonMethod::Study, ..comparer("ops") }.compare(&separate).unwrap();
    assert_eq!(
        (found.test.name.as_str(), found.verdict, found.interleaved),
        ("Welch", ComparisonVerdict::Better, false)
    );
    assert!(found.notes.iter().any(|note| note.starts_with("not interleaved")));
    assert_eq!((found.study.unwrap().f.df1, found.shapes.unwrap().qq.len()), (9.0, 8));
    let one = Runs { a: &a[..1], ..separate };
    assert_eq!(comparer("ops").compare(&one).unwrap().verdict, ComparisonVerdict::Unclear);
    assert!(comparer("mib").compare(&separate).unwrap_err().contains("has no `mib`"));
    assert!(comparer("ops").compare(&Runs { a: &[], ..separate }).is_err());
    let mut failed = a.clone();
    failed[3].failure = Some("failed: ENOSPC".to_owned());
    assert!(comparer("ops").compare(&Runs { a: &failed, ..separate }).unwrap_err().contains("ENOSPC"));
}

/// For results from different days, a difference must exceed the noise floor.
#[test]
fn results_of_different_days_need_a_noise_floor() {
    let on = |day: &str, mean: f64| -> Vec<Observation> {
        let day = Some(day.to_owned());
        runs("ops", 9, mean, 0.002).into_iter().map(|run| Observation { day: day.clone(), ..run }).collect()
    };
    let (a, b) = (on("2026-11-16", 100.0), on("2026-11-23", 92.0));
    let verdict = |floor: Option<f64>, b: &[Observation]| {
        let floor = floor.map(|share| NoiseFloor { share, sessions: 3 });
        let runs = Runs { a: &a, b, interleaved: false, control_a: &[], control_b: &[] };
        let found = Comparer { floor, ..comparer("ops") }.compare(&runs).unwrap();
        let unknown = found.notes.iter().any(|note| note.contains("noise floor"));
        assert_eq!(unknown, floor.is_none() && b[0].day != a[0].day, "{:?}", found.notes);
        found.verdict
    };
    assert_eq!(verdict(None, &b), ComparisonVerdict::Unclear);
    assert_eq!(verdict(Some(0.02), &b), ComparisonVerdict::Worse);
    assert_eq!(verdict(Some(0.10), &b), ComparisonVerdict::Unclear);
    assert_eq!(verdict(None, &on("2026-11-16", 92.0)), ComparisonVerdict::Worse, "the same day");
}
