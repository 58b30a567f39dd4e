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

/// Gives each run the speed of its control.
pub(in crate::comparison) fn controlled(runs: &mut [Observation], speeds: &[f64]) {
    runs.iter_mut().zip(speeds).for_each(|(run, speed)| run.control = Some(*speed));
}

fn verdict(metric: &str, b: f64, spread: f64, control_b: f64) -> Comparison {
    let (mut of_a, mut of_b) = (runs(metric, 24, 100.0, spread), runs(metric, 24, b, spread));
    of_b.rotate_left(5);
    let steady: Vec<f64> = (0..24).map(|i| 50.0 + 0.1 * f64::from(i % 3)).collect();
    controlled(&mut of_a, &steady);
    controlled(&mut of_b, &steady.iter().map(|v| v * control_b).collect::<Vec<_>>());
    let runs = Runs { a: &of_a, b: &of_b, order: RunOrder::Blocks };
    comparer(metric).compare(&runs).unwrap()
}

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
fn separate_samples_are_tested_with_a_trend_and_have_a_note() {
    let (a, b) = (runs("ops", 10, 100.0, 0.02), runs("ops", 8, 110.0, 0.02));
    let separate = Runs { a: &a, b: &b, order: RunOrder::Separate };
    let found = Comparer { method: ComparisonMethod::Study, ..comparer("ops") }.compare(&separate).unwrap();
    assert_eq!(
        (found.test.name.as_str(), found.verdict, found.interleaved),
        ("ranks and trend", ComparisonVerdict::Better, false)
    );
    assert!(found.notes.iter().any(|note| note.starts_with("not interleaved")));
    let alternated = comparer("ops").compare(&Runs { order: RunOrder::Alternated, ..separate }).unwrap();
    assert!(alternated.notes.iter().any(|note| note.starts_with("the runs of both sides alternated")));
    assert!(!alternated.notes.iter().any(|note| note.starts_with("not interleaved")), "{:?}", alternated.notes);
    assert_eq!(alternated.ratio, found.ratio);
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
        let floor = floor.map(|share| NoiseFloor { share, sessions: 3, spans_days: true });
        let runs = Runs { a: &a, b, order: RunOrder::Separate };
        let found = Comparer { floor, ..comparer("ops") }.compare(&runs).unwrap();
        let unknown = found.notes.iter().any(|note| note.contains("noise floor of the workload is unknown"));
        let is_wide = found.notes.iter().any(|note| note.contains("is above the tolerance of 3.0 %"));
        assert_eq!(is_wide, floor.is_some_and(|floor| floor.share > 0.05), "{:?}", found.notes);
        assert_eq!(found.ratio_with_floor.map(|ratio| ratio.low < found.ratio.low), floor.map(|_| true));
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

/// A floor that was measured within a day does not include the difference between days.
#[test]
fn a_noise_floor_of_one_day_is_not_enough() {
    let at = |day: i64, mean: f64| -> Vec<Observation> {
        let started = Some(day * 86_400);
        runs("ops", 9, mean, 0.002).into_iter().map(|run| Observation { started, ..run }).collect()
    };
    let (a, b) = (at(1, 100.0), at(8, 92.0));
    let compare = |b: &[Observation]| {
        let floor = Some(NoiseFloor { share: 0.01, sessions: 2, spans_days: false });
        let runs = Runs { a: &a, b, order: RunOrder::Separate };
        Comparer { floor, ..comparer("ops") }.compare(&runs).unwrap()
    };
    let found = compare(&b);
    assert_eq!((found.verdict, found.could_have_seen, found.runs_needed), (ComparisonVerdict::Unclear, None, None));
    let notes = found.notes.join("\n");
    assert!(notes.contains("was measured on one day only") && !notes.contains("for a verdict"), "{notes}");
    assert_eq!(compare(&at(1, 92.0)).verdict, ComparisonVerdict::Worse, "runs of one day need no floor");
}

/// A floor that the user gives holds for sides of different days or of an unknown time, and is not used within a day.
#[test]
fn a_given_noise_floor_holds_for_unknown_times() {
    let at = |day: Option<i64>, mean: f64| -> Vec<Observation> {
        let started = day.map(|day| day * 86_400);
        runs("ops", 9, mean, 0.002).into_iter().map(|run| Observation { started, ..run }).collect()
    };
    let a = at(Some(1), 100.0);
    let compare = |b: &[Observation]| {
        let runs = Runs { a: &a, b, order: RunOrder::Separate };
        Comparer { floor: Some(NoiseFloor::given(0.10)), ..comparer("ops") }.compare(&runs).unwrap()
    };
    for day in [Some(8), None] {
        let found = compare(&at(day, 92.0));
        assert_eq!((found.verdict, found.ratio_with_floor.is_some()), (ComparisonVerdict::Unclear, true), "{day:?}");
        assert!(!found.notes.join("\n").contains("has no effect"), "{:?}", found.notes);
    }
    let found = compare(&at(Some(1), 92.0));
    assert_eq!((found.verdict, found.ratio_with_floor), (ComparisonVerdict::Worse, None));
    assert!(found.notes.join("\n").contains("`--noise-floor` has no effect"), "{:?}", found.notes);
}

/// The interval of runs of different days is widened by the floor, which takes power from the comparison.
#[test]
fn the_detectable_loss_of_different_days_includes_the_floor() {
    let at = |day: i64| -> Vec<Observation> {
        let started = Some(day * 86_400);
        runs("ops", 9, 100.0, 0.006).into_iter().map(|run| Observation { started, ..run }).collect()
    };
    let (a, b, later) = (at(1), at(1), at(8));
    let compare = |b: &[Observation], share: f64| {
        let floor = Some(NoiseFloor { share, sessions: 2, spans_days: true });
        let runs = Runs { a: &a, b, order: RunOrder::Separate };
        Comparer { floor, ..comparer("ops") }.compare(&runs).unwrap()
    };
    let (near, far) = (compare(&b, 0.02), compare(&later, 0.02));
    assert!(near.could_have_seen.unwrap() + 0.01 < far.could_have_seen.unwrap(), "{:?}", far.could_have_seen);
    assert!(near.runs_needed.unwrap() < far.runs_needed.unwrap(), "{:?}", far.runs_needed);
    let hopeless = compare(&later, 0.05);
    assert_eq!((hopeless.verdict, hopeless.runs_needed), (ComparisonVerdict::Unclear, None));
    assert!(!hopeless.notes.join("\n").contains("for a verdict"), "{:?}", hopeless.notes);
}

/// Values around 0 have no ratio, whose interval could be inverted: equal sides would be called worse.
#[test]
fn equal_sides_with_a_0_are_unclear_in_both_directions() {
    let of = |metric: &str, values: [f64; 4]| -> Vec<Observation> {
        let run =
            |value| Observation { figures: BTreeMap::from([(metric.to_owned(), value)]), ..Observation::default() };
        values.map(run).into()
    };
    for metric in ["latency.mean", "ops"] {
        let (a, b) = (of(metric, [0.0, 0.1, 0.0, 0.1]), of(metric, [0.1, 0.0, 0.1, 0.0]));
        let runs = Runs { a: &a, b: &b, order: RunOrder::Separate };
        let found = comparer(metric).compare(&runs).unwrap();
        let notes = found.notes.join("\n");
        assert_eq!(found.verdict, ComparisonVerdict::Unclear, "{metric}: {:?}", found.ratio);
        assert!(notes.contains("is not above 0 in a run of A: there is no ratio"), "{notes}");
        assert!(found.ratio.value.is_nan() && found.difference.value.abs() < 1e-12);
        assert_eq!((found.could_have_seen, found.runs_needed), (None, None));
    }
}

/// The figures of the test are of the logarithms, as the interval is; the difference is that of the values.
#[test]
fn the_test_that_is_shown_is_that_of_the_ratio() {
    let of = |values: &[f64]| -> Vec<Observation> {
        let figures = |value| ["ops", "mib"].map(|name| (name.to_owned(), value)).into();
        values.iter().map(|value| Observation { figures: figures(*value), ..Observation::default() }).collect()
    };
    // The means differ by chance, the geometric means do not.
    let values = ([1.0, 10.0, 100.0, 1000.0], [200.0, 210.0, 220.0, 230.0]);
    let (a, b) = (of(&values.0), of(&values.1));
    let runs = Runs { a: &a, b: &b, order: RunOrder::Separate };
    let found = comparer("ops").compare(&runs).unwrap();
    let [of_a, of_b] = crate::analysis::positions([&[None; 4], &[None; 4]]);
    let of_ratio = crate::analysis::ratio_in_order([&values.0, &values.1], Some([&of_a, &of_b]), 0.95).unwrap();
    let of_values = crate::analysis::welch(&values.0, &values.1, 0.95).unwrap();
    assert_eq!((found.test.p, found.test.t.is_nan(), found.difference), (of_ratio.p, true, of_values.estimate));
    let mib = found.others.iter().find(|other| other.metric == "mib").unwrap();
    assert!((mib.p - of_ratio.p).abs() < 1e-12 && (of_ratio.p - of_values.p).abs() > 0.1, "{} {}", mib.p, of_values.p);
}

/// A few equal values, or rounded ones, do not show that a figure does not vary.
#[test]
fn equal_values_are_no_certainty() {
    use ComparisonVerdict::{Unclear, Worse};
    use RunOrder::{Blocks, Separate};
    let of = |n: usize, mean: f64, is_rounded: bool| -> Vec<Observation> {
        runs("ops", n, mean, 0.0).into_iter().map(|run| Observation { is_rounded, ..run }).collect()
    };
    let compare = |n: usize, is_rounded: bool, order: RunOrder| {
        let (a, b) = (of(n, 100.0, is_rounded), of(n, 90.0, is_rounded));
        let runs = Runs { a: &a, b: &b, order };
        comparer("ops").compare(&runs).unwrap()
    };
    for (n, is_rounded, order, verdict) in [
        (3, false, Separate, Unclear),
        (4, false, Blocks, Unclear),
        (5, false, Separate, Worse),
        (20, true, Separate, Unclear),
        (8, false, Blocks, Worse),
    ] {
        let found = compare(n, is_rounded, order);
        assert_eq!(found.verdict, verdict, "{n} {is_rounded} {order:?}");
        let notes = found.notes.join("\n");
        assert_eq!(notes.contains("their variation is unknown"), verdict == Unclear, "{notes}");
        assert_eq!(found.could_have_seen.is_none(), verdict == Unclear);
    }
}

#[test]
fn unknown_times_are_named_for_separate_runs() {
    let (a, mut b) = (runs("ops", 4, 100.0, 0.01), runs("ops", 4, 100.0, 0.01));
    b.iter_mut().for_each(|run| run.started = Some(0));
    let notes = |order| {
        let runs = Runs { a: &a, b: &b, order };
        comparer("ops").compare(&runs).unwrap().notes.join("\n")
    };
    let (separate, in_blocks) = (notes(RunOrder::Separate), notes(RunOrder::Blocks));
    assert!(separate.contains("the times of the runs of A are unknown"), "{separate}");
    assert!(!in_blocks.contains("the times"), "{in_blocks}");
}

/// A ratio needs values above 0, and no number of runs changes that.
#[test]
fn a_metric_that_is_0_has_no_ratio_and_no_advice() {
    let (mut a, b) = (runs("mib", 8, 0.0, 0.0), runs("mib", 8, 0.0, 0.0));
    for order in [RunOrder::Blocks, RunOrder::Separate] {
        let runs = Runs { a: &a, b: &b, order };
        let found = comparer("mib").compare(&runs).unwrap();
        let notes = found.notes.join("\n");
        assert!(notes.contains("`mib` is not above 0 in a run of A: there is no ratio"), "{notes}");
        assert!(!notes.contains("too few runs") && !notes.contains("more runs"), "{notes}");
        assert!(found.verdict == ComparisonVerdict::Unclear && found.ratio.value.is_nan());
    }
    a.truncate(2);
    a.iter_mut().for_each(|run| run.figures.insert("mib".to_owned(), 5.0).map_or((), drop));
    let one_block = Runs { a: &a, b: &b[..2], order: RunOrder::Blocks };
    let notes = comparer("mib").compare(&one_block).unwrap().notes.join("\n");
    assert!(notes.contains("not above 0 in a run of B"), "{notes}");
}

/// A machine that becomes slower, as one whose processors heat up, makes no run of B worse than one of A beside it.
#[test]
fn a_drift_of_the_machine_is_no_loss_of_interleaved_runs() {
    const RUNS: usize = 48;
    let speed = |i: usize| (1.0 - 0.2 * i as f64 / RUNS as f64) * (1.0 + 0.01 * (i as f64 * 2.3).sin());
    let of = |arm: &dyn Fn(usize) -> bool| -> Vec<Observation> {
        let of_arm = (0..RUNS).filter(|i| arm(*i)).map(speed);
        let figures = |speed: f64| BTreeMap::from([("ops".to_owned(), 1000.0 * speed)]);
        let run =
            |speed| Observation { figures: figures(speed), control: Some(50.0 * speed), ..Observation::default() };
        of_arm.map(run).collect()
    };
    let is_b = |i: usize| matches!(i % 4, 1 | 2) != (i / 4).is_multiple_of(3);
    let (a, b) = (of(&|i| !is_b(i)), of(&is_b));
    let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
    let found = comparer("ops").compare(&runs).unwrap();
    assert_eq!((found.verdict, found.control.unwrap().moved), (ComparisonVerdict::Same, false), "{:?}", found.ratio);
    let (a, b) = (of(&|i| i < RUNS / 2), of(&|i| i >= RUNS / 2));
    let runs = Runs { a: &a, b: &b, order: RunOrder::Separate };
    let found = comparer("ops").compare(&runs).unwrap();
    let notes = found.notes.join("\n");
    assert_eq!(found.verdict, ComparisonVerdict::Unclear, "{:?}", found.ratio);
    assert!(
        notes.contains("without a drift of the machine B/A would be 0.8") && notes.contains("linear drift"),
        "{notes}"
    );
}

/// A look with a smaller error probability finds only greater losses.
#[test]
fn the_detectable_loss_is_that_of_the_level() {
    let of = |look| {
        let (a, b) = (runs("ops", 24, 100.0, 0.04), runs("ops", 24, 100.0, 0.04));
        let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
        let found = Comparer { look, ..comparer("ops") }.compare(&runs).unwrap();
        (found.level, found.could_have_seen.unwrap(), found.runs_needed.unwrap())
    };
    let (whole, look) = (of(None), of(Some(InterimLook { blocks: 12, one_sided: 0.005 })));
    assert!(whole.0 < look.0 && whole.1 < look.1 && whole.2 < look.2, "{whole:?} {look:?}");
}

/// The runs of two results folders, each with a control.
#[test]
fn a_loss_of_separate_runs_on_a_slower_machine_is_invalid() {
    use ComparisonVerdict::{Better, Invalid, Same, Unclear, Worse};
    let steady: Vec<f64> = (0..12).map(|i| 50.0 + 0.1 * f64::from(i % 3)).collect();
    let side = |mean: f64, control: f64, kernel: &str, day: i64| {
        let mut found = runs("ops", 12, mean, 0.005);
        controlled(&mut found, &steady.iter().map(|v| v * control).collect::<Vec<_>>());
        for run in &mut found {
            run.conditions = BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
            run.started = Some(day * 86_400);
        }
        found
    };
    let a = side(100.0, 1.0, "6.1", 0);
    let of = |b: &[Observation]| comparer("ops").compare(&Runs { a: &a, b, order: RunOrder::Separate }).unwrap();
    for (mean, control, verdict, note) in [
        (90.0, 1.0, Worse, None),
        (90.0, 0.9, Invalid, Some("slower during the runs of B, see `control`: this may be the whole difference")),
        (
            90.0,
            1.1,
            Worse,
            Some("faster during the runs of B, see `control`: with equally fast processors B may be worse"),
        ),
        (
            110.0,
            1.1,
            Invalid,
            Some("faster during the runs of B, see `control`: this may be the whole difference; repeat A"),
        ),
        (110.0, 0.9, Better, Some("with equally fast processors B may be better")),
        (100.0, 0.9, Same, Some("with equally fast processors B may be better")),
        // More than twice the change of the processors.
        (60.0, 0.9, Worse, Some("this may be a part of the difference")),
        (150.0, 1.1, Better, Some("this may be a part of the difference")),
        (82.0, 0.9, Invalid, Some("the whole difference; repeat B")),
        // Less than the tolerance.
        (90.0, 0.98, Worse, None),
    ] {
        let found = of(&side(mean, control, "6.1", 0));
        let notes = found.notes.join("\n");
        assert_eq!(found.verdict, verdict, "{mean} {control}: {notes}");
        assert!(note.map_or(!notes.contains("during the runs of B"), |note| notes.contains(note)), "{notes}");
    }
    // What a new kernel does to the speed of system calls is part of the answer; without the difference between days
    // there is none.
    let found = of(&side(90.0, 0.9, "6.2", 0));
    assert_eq!((found.verdict, found.control), (Worse, None));
    assert!(found.notes.join("\n").contains("the control is not tested, because the runs differ in `kernel`, which"));
    assert_eq!(of(&side(90.0, 0.9, "6.1", 7)).verdict, Unclear);
    let mut without = side(90.0, 0.9, "6.1", 0);
    without[3].control = None;
    assert_eq!(of(&without).control, None);
    // Nor does the control of a run take the place of that of another in blocks.
    let blocks = Runs { a: &a, b: &without, order: RunOrder::Blocks };
    assert_eq!(comparer("ops").compare(&blocks).unwrap().control, None);
}

/// The runs of both sides, of which those with these positions were disturbed. The control varies too much to show that the
/// machine did not change, unless it is `known`.
fn disturbed(n: usize, factor: f64, of: [&[usize]; 2], known: bool) -> [Vec<Observation>; 2] {
    let side = |mean: f64, turn: usize, disturbed: &[usize]| {
        let mut found = runs("ops", n, mean, 0.02);
        found.rotate_left(turn);
        let speeds: Vec<f64> =
            (0..n).map(|i| 50.0 + if known { 0.0 } else { ((i + turn) % 3) as f64 * 20.0 }).collect();
        controlled(&mut found, &speeds);
        disturbed.iter().for_each(|at| found[*at].disturbed = true);
        // The controls of separate runs are those of one machine.
        let conditions = BTreeMap::from([("kernel".to_owned(), "6.1".to_owned())]);
        found.iter_mut().for_each(|run| run.conditions.clone_from(&conditions));
        found
    };
    [side(100.0, 0, of[0]), side(100.0 * factor, 3, of[1])]
}

fn verdict_of(sides: &[Vec<Observation>; 2], order: RunOrder) -> (ComparisonVerdict, String) {
    let found = comparer("ops").compare(&Runs { a: &sides[0], b: &sides[1], order }).unwrap();
    (found.verdict, found.notes.join("\n"))
}

/// Interleaved runs with a control that shows nothing.
#[test]
fn a_verdict_on_disturbed_blocks_must_hold_without_them_or_at_a_higher_level() {
    use ComparisonVerdict::{Better, Same, Unclear, Worse};
    let all: Vec<usize> = (0..16).collect();
    let of = |n: usize, factor: f64, a: &[usize], b: &[usize], known: bool| {
        verdict_of(&disturbed(n, factor, [a, b], known), RunOrder::Blocks)
    };
    // Fifteen of sixteen runs: the interval of 99.9 % of four blocks is wide.
    let (verdict, notes) = of(8, 0.94, &all[..8], &all[..7], false);
    assert_eq!(verdict, Unclear, "{notes}");
    assert!(notes.contains("the 99.9 % interval of all does not give this verdict"), "{notes}");
    assert_eq!(of(8, 0.94, &all[..8], &all[..7], true).0, Worse, "the control shows that the machine did not change");
    assert_eq!(of(8, 0.94, &[], &[], false).0, Worse, "nothing was disturbed");
    // A great difference of thirty-two runs holds.
    let (verdict, notes) = of(16, 1.9, &all[..15], &all[..14], false);
    assert_eq!(verdict, Better, "{notes}");
    assert!(notes.contains("the 99.9 % interval of all gives the same verdict"), "{notes}");
    // Three of four blocks are undisturbed.
    let (verdict, notes) = of(8, 0.9, &[6], &[7], false);
    assert_eq!(verdict, Worse, "{notes}");
    assert!(notes.contains("the 3 undisturbed blocks alone give the same verdict"), "{notes}");
    // They do not give it: only the disturbed ones were slow.
    let mut sides = disturbed(10, 1.0, [&all[6..10], &all[6..10]], false);
    let of_b = [97.5, 96.5, 95.5, 96.0, 95.0, 96.2, 70.0, 71.0, 69.0, 70.5];
    for (n, b) in of_b.into_iter().enumerate() {
        sides[0][n].figures.insert("ops".to_owned(), 100.0);
        sides[1][n].figures.insert("ops".to_owned(), b);
    }
    let (verdict, notes) = verdict_of(&sides, RunOrder::Blocks);
    assert_eq!(verdict, Unclear, "{notes}");
    assert!(notes.contains("the 3 undisturbed blocks alone do not give this verdict"), "{notes}");
    sides.iter_mut().flatten().for_each(|run| run.disturbed = false);
    assert_eq!(verdict_of(&sides, RunOrder::Blocks).0, Worse);
    // A and B were not disturbed alike.
    let (verdict, notes) = of(16, 0.5, &[], &all[..6], false);
    assert_eq!(verdict, Unclear, "{notes}");
    assert!(notes.contains("other programs disturbed 0 of 16 runs of A and 6 of 16 of B"), "{notes}");
    // They may also hide a difference.
    let same = |b: &[usize], known: bool| of(16, 1.0, &[], b, known);
    let (verdict, notes) = same(&all, false);
    assert_eq!(verdict, Unclear, "{notes}");
    assert!(notes.contains("other programs disturbed 0 of 16 runs of A and 16 of 16 of B"), "{notes}");
    assert_eq!((same(&all, true).0, same(&all[..1], false).0, same(&[], false).0), (Same, Same, Same));
    // One run of each in a block.
    let paired = |disturbed_runs: &[usize]| {
        verdict_of(&disturbed(12, 0.9, [disturbed_runs, disturbed_runs], false), RunOrder::Paired).0
    };
    assert_eq!((paired(&all[..3]), paired(&all[..11])), (Worse, Worse));
}

/// Runs that were not interleaved, with a control that shows nothing or without one.
#[test]
fn separate_runs_of_which_half_of_a_side_were_disturbed_are_unclear() {
    use ComparisonVerdict::{Same, Unclear, Worse};
    let all: Vec<usize> = (0..12).collect();
    let of =
        |factor: f64, b: &[usize], known: bool| verdict_of(&disturbed(12, factor, [&[], b], known), RunOrder::Separate);
    let (verdict, notes) = of(0.8, &all[..6], false);
    assert_eq!(verdict, Unclear, "{notes}");
    assert!(notes.contains("0 of 12 runs of A and 6 of 12 of B, and the control is unknown"), "{notes}");
    assert_eq!(of(0.8, &all[..5], false).0, Worse);
    assert_eq!(of(0.8, &all[..6], true).0, Worse);
    let mut without = disturbed(12, 0.8, [&all[..6], &[]], true);
    without.iter_mut().flatten().for_each(|run| run.control = None);
    assert_eq!(verdict_of(&without, RunOrder::Separate).0, Unclear, "no control at all");
    let mut equal = disturbed(12, 1.0, [&all, &all], false);
    equal[1] = equal[0].clone();
    let wide = Comparer { tolerance: Tolerance(0.2), ..comparer("ops") };
    let found = wide.compare(&Runs { a: &equal[0], b: &equal[1], order: RunOrder::Separate }).unwrap();
    assert_eq!(found.verdict, Unclear, "a change of the machine may hide a difference");
    equal.iter_mut().flatten().for_each(|run| run.disturbed = false);
    let found = wide.compare(&Runs { a: &equal[0], b: &equal[1], order: RunOrder::Separate }).unwrap();
    assert_eq!(found.verdict, Same);
}

/// Two runs a side that vary much, and values at the ends of the range of numbers.
#[test]
fn an_interval_that_says_nothing_is_said_in_words() {
    let of = |values: [f64; 2]| -> Vec<Observation> {
        let run =
            |value| Observation { figures: BTreeMap::from([("ops".to_owned(), value)]), ..Observation::default() };
        values.map(run).into()
    };
    for (a, b) in [([100.0, 300.0], [90.0, 30.0]), ([1e308, 1.7e308], [1e-308, 5e-308]), ([1e-320, 1e300], [1.0, 2.0])]
    {
        for order in [RunOrder::Separate, RunOrder::Alternated, RunOrder::Paired] {
            let found = comparer("ops").compare(&Runs { a: &of(a), b: &of(b), order }).unwrap();
            assert!(found.verdict == ComparisonVerdict::Unclear && found.ratio.low.is_nan(), "{:?}", found.ratio);
            assert!(found.notes.iter().any(|note| note.contains("which says nothing")), "{:?}", found.notes);
            for format in crate::comparison::FORMATS {
                let text = format.write(&found);
                let words = text.split(|c: char| !c.is_alphanumeric());
                let is_finite = !words.into_iter().any(|word| ["inf", "NaN", "nan"].contains(&word));
                assert!(is_finite && !text.contains("[-, -]"), "{}: {text}", format.name);
            }
        }
    }
}
