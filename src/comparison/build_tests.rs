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
    let at = |hour: i64, mean: f64| -> Vec<Observation> {
        let started = Some(hour * 3600);
        runs("ops", 9, mean, 0.002).into_iter().map(|run| Observation { started, ..run }).collect()
    };
    // 23 o'clock, and a week later.
    let (a, b) = (at(23, 100.0), at(23 + 7 * 24, 92.0));
    let verdict = |floor: Option<f64>, b: &[Observation]| {
        let floor = floor.map(|share| NoiseFloor { share, sessions: 3 });
        let runs = Runs { a: &a, b, interleaved: false, control_a: &[], control_b: &[] };
        let found = Comparer { floor, ..comparer("ops") }.compare(&runs).unwrap();
        let unknown = found.notes.iter().any(|note| note.contains("noise floor"));
        assert_eq!(unknown, floor.is_none() && b[0].started > Some(40 * 3600), "{:?}", found.notes);
        found.verdict
    };
    assert_eq!(verdict(None, &b), ComparisonVerdict::Unclear);
    assert_eq!(verdict(Some(0.02), &b), ComparisonVerdict::Worse);
    assert_eq!(verdict(Some(0.10), &b), ComparisonVerdict::Unclear);
    assert_eq!(verdict(None, &at(20, 92.0)), ComparisonVerdict::Worse, "the same day");
    assert_eq!(verdict(None, &at(25, 92.0)), ComparisonVerdict::Worse, "after midnight");
    assert_eq!(verdict(None, &at(47, 92.0)), ComparisonVerdict::Unclear, "the next day");
}

/// A ratio needs values above 0, and no number of runs changes that.
#[test]
fn a_metric_that_is_0_has_no_ratio_and_no_advice() {
    let (mut a, b) = (runs("mib", 8, 0.0, 0.0), runs("mib", 8, 0.0, 0.0));
    for interleaved in [true, false] {
        let runs = Runs { a: &a, b: &b, interleaved, control_a: &[], control_b: &[] };
        let found = comparer("mib").compare(&runs).unwrap();
        let notes = found.notes.join("\n");
        assert!(notes.contains("`mib` is not above 0 in a run of A: there is no ratio"), "{notes}");
        assert!(!notes.contains("too few runs") && !notes.contains("more runs"), "{notes}");
        assert!(found.verdict == ComparisonVerdict::Unclear && found.ratio.value.is_nan());
    }
    a.truncate(2);
    a.iter_mut().for_each(|run| run.figures.insert("mib".to_owned(), 5.0).map_or((), drop));
    let one_block = Runs { a: &a, b: &b[..2], interleaved: true, control_a: &[], control_b: &[] };
    let notes = comparer("mib").compare(&one_block).unwrap().notes.join("\n");
    assert!(notes.contains("not above 0 in a run of B"), "{notes}");
}

/// A machine that becomes slower, as one whose processors heat up, makes no run of B worse than one of A beside it.
#[test]
fn a_drift_of_the_machine_is_no_loss_of_interleaved_runs() {
    const RUNS: usize = 48;
    let speed = |i: usize| (1.0 - 0.2 * i as f64 / RUNS as f64) * (1.0 + 0.01 * (i as f64 * 2.3).sin());
    let of = |arm: &dyn Fn(usize) -> bool| -> (Vec<Observation>, Vec<f64>) {
        let of_arm = || (0..RUNS).filter(|i| arm(*i)).map(speed);
        let figures = |speed: f64| BTreeMap::from([("ops".to_owned(), 1000.0 * speed)]);
        let runs = of_arm().map(|speed| Observation { figures: figures(speed), ..Observation::default() });
        (runs.collect(), of_arm().map(|speed| 50.0 * speed).collect())
    };
    let is_b = |i: usize| matches!(i % 4, 1 | 2) != (i / 4).is_multiple_of(3);
    let ((a, control_a), (b, control_b)) = (of(&|i| !is_b(i)), of(&is_b));
    let runs = Runs { a: &a, b: &b, interleaved: true, control_a: &control_a, control_b: &control_b };
    let found = comparer("ops").compare(&runs).unwrap();
    assert_eq!((found.verdict, found.control.unwrap().moved), (ComparisonVerdict::Same, false), "{:?}", found.ratio);
    let ((a, _), (b, _)) = (of(&|i| i < RUNS / 2), of(&|i| i >= RUNS / 2));
    let runs = Runs { a: &a, b: &b, interleaved: false, control_a: &[], control_b: &[] };
    assert_eq!(comparer("ops").compare(&runs).unwrap().verdict, ComparisonVerdict::Worse);
}

/// A look with a smaller error probability finds only greater losses.
#[test]
fn the_detectable_loss_is_that_of_the_level() {
    let of = |look| {
        let (a, b) = (runs("ops", 24, 100.0, 0.04), runs("ops", 24, 100.0, 0.04));
        let runs = Runs { a: &a, b: &b, interleaved: true, control_a: &[], control_b: &[] };
        let found = Comparer { look, ..comparer("ops") }.compare(&runs).unwrap();
        (found.level, found.could_have_seen.unwrap())
    };
    let (whole, look) = (of(None), of(Some(InterimLook { blocks: 12, one_sided: 0.005 })));
    assert!(whole.0 < look.0 && whole.1 < look.1, "{whole:?} {look:?}");
}
