//! The answers of ten results as mails: a reader who has nothing else must know what happened, and whether it may be used.

#![allow(clippy::unwrap_used)]
use super::build::tests::{controlled, runs};
use super::formats::shown::mail;
use super::repeats::repeats;
use super::sweep::sweep;
use super::{
    Comparer, Comparison, FactorLevels, FactorialDesign, FactorialTables, ResultDocument, RunOrder, Runs, Sweep,
};
use crate::analysis::{PrecisionRule, RepeatRule, RepeatState, ResponseMethod, RunRange};
use crate::import::{Metric, Observation};
use crate::sheet::{Answer, Usability};

/// Gives runs a machine, and a variable that may differ.
fn on_machine(runs: &mut [Observation], threads: &str) {
    for run in runs {
        run.workload = "varmail".to_owned();
        run.started = Some(1_795_000_000);
        run.conditions = [
            ("kernel", "6.18.44 #1 SMP"),
            ("processor", "2 × AMD EPYC"),
            ("memory", "24 GiB"),
            ("file system", "ext4"),
            ("device", "/dev/vdb"),
            ("mount options", "rw,relatime"),
            ("ext4 features", "has_journal extent fast_commit"),
            ("tool", "wmlrun 0.1.0"),
            ("script", "1665ab09"),
            ("$nthreads", threads),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    }
}

/// Sixteen runs of each side, of which those of B have `b` operations where A has 100. `change` changes them.
fn compared(b: f64, spread: f64, control: f64, change: impl Fn(&mut [Observation])) -> Comparison {
    let (mut of_a, mut of_b) = (runs("ops", 16, 100.0, spread), runs("ops", 16, b, spread));
    of_b.rotate_left(5);
    let steady: Vec<f64> = (0..16).map(|i| 50.0 + 0.1 * f64::from(i % 3)).collect();
    controlled(&mut of_a, &steady);
    controlled(&mut of_b, &steady.iter().map(|speed| speed * control).collect::<Vec<_>>());
    for (side, threads, fsync, delete) in [(&mut of_a, "8", 95e6, 1e6), (&mut of_b, "16", 40e6, 3e6)] {
        on_machine(side, threads);
        for run in side.iter_mut() {
            let ops = run.figures["ops"];
            run.steps = ["deletefile1", "fsyncfile2", "readfile3"].map(str::to_owned).to_vec();
            run.syncs = ["fsyncfile2".to_owned()].into();
            for (step, latency) in [("fsyncfile2", fsync), ("readfile3", 2e4), ("deletefile1", delete)] {
                run.figures.insert(format!("{step}.ops"), ops / 3.0);
                run.figures.insert(format!("{step}.latency.mean"), latency * 100.0 / ops);
            }
        }
        change(side);
    }
    let comparer = Comparer::of("varmail", ["--set nthreads=8", "--set nthreads=16"], &Metric::ops());
    comparer.compare(&Runs { a: &of_a, b: &of_b, order: RunOrder::Blocks }).unwrap()
}

/// Runs of one workload that ended in this state.
fn repeated(state: RepeatState, change: impl Fn(usize, &mut Observation)) -> String {
    let mut found = runs("ops", 12, 5000.0, 0.02);
    on_machine(&mut found, "16");
    found.iter_mut().enumerate().for_each(|(n, run)| change(n, run));
    let rule = RepeatRule {
        runs: RunRange { min: 10, max: 30 },
        target: Some(0.05),
        level: 0.95,
        stop: PrecisionRule::Corrected,
    };
    mail(&repeats("varmail", &[Metric::ops()], &found, &rule, state).unwrap())
}

/// Checks a mail, which may be used or not, and its width.
#[track_caller]
fn check(name: &str, is_usable: bool, mail: &str) {
    let words = mail.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.contains("You may use this result"), is_usable, "{name}: {mail}");
    assert_eq!(words.contains("Do not use this result."), !is_usable, "{name}: {mail}");
    assert!(mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
    insta::assert_snapshot!(format!("answer_{name}"), mail);
}

#[test]
fn verdicts_say_what_happened_and_whether_it_may_be_used() {
    let nothing = |_: &mut [Observation]| ();
    check("better", true, &mail(&compared(190.0, 0.05, 1.0, nothing)));
    check("worse", true, &mail(&compared(80.0, 0.02, 1.0, nothing)));
    check("same", true, &mail(&compared(100.1, 0.005, 1.0, nothing)));
    check("unclear", false, &mail(&compared(101.0, 0.3, 1.0, nothing)));
    check("invalid", false, &mail(&compared(120.0, 0.02, 0.8, nothing)));
    // Without a control, nothing shows that the other programs are not the difference.
    let disturbed = compared(130.0, 0.05, 1.0, |side| {
        let is_b = side[0].conditions["$nthreads"] == "16";
        side.iter_mut().for_each(|run| (run.control, run.disturbed) = (None, is_b));
    });
    check("disturbed", false, &mail(&disturbed));
    let mut few = disturbed;
    few.a.sample.n = 8;
    let few = mail(&few).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(few.contains("the runs are too few to say what that did; as measured, B does 30.0 % more"), "{few}");
    assert!(few.contains("Make 6 blocks or more, or repeat on an idle machine."), "{few}");
    let ended = compared(190.0, 0.05, 1.0, |side| {
        side.iter_mut().skip(13).for_each(|run| run.warnings = vec!["exhausted".to_owned()]);
    });
    check("threads_ended", false, &mail(&ended));
}

/// More operations per second may cost a few of them a long time.
#[test]
fn a_figure_that_moved_against_the_verdict_is_told() {
    let told = |b: f64| {
        let found = compared(190.0, 0.05, 1.0, |side| {
            let p99 = if side[0].conditions["$nthreads"] == "16" { b } else { 10e6 };
            for (n, run) in side.iter_mut().enumerate() {
                run.figures.insert("latency.p99".to_owned(), p99 * (1.0 + 0.01 * (n % 3) as f64));
            }
        });
        mail(&found).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let says = "(95 % interval 87.1 % to 93.0 % more). But the p99 latency is 50.0 % higher with B than with A (95 % interval ";
    assert!(told(15e6).contains(says), "{}", told(15e6));
    for b in [5e6, 10.1e6] {
        assert!(!told(b).contains("But "), "{}", told(b));
    }
}

#[test]
fn states_say_what_happened_and_whether_it_may_be_used() {
    let unstable = |_: usize, run: &mut Observation| run.warnings = vec!["unstable".to_owned()];
    check("unstable", false, &repeated(RepeatState::Converged, unstable));
    let faster = |n: usize, run: &mut Observation| {
        run.figures.values_mut().for_each(|ops| *ops *= 1.0 + 0.03 * n as f64);
    };
    check("drifting", false, &repeated(RepeatState::Drifting, faster));
    let broken = Observation { failure: Some("low_space: /srv".to_owned()), ..Observation::default() };
    let levels = ["1", "2"].map(str::to_owned);
    let found = sweep("varmail", "nthreads", &levels, &[vec![broken.clone()], vec![broken]], ResponseMethod::Sfs3);
    check("failed", false, &mail(&Sweep { planned_runs: Some(2), ..found }));
}

/// A disturbed comparison that holds without the disturbed runs may be used, and says why.
#[test]
fn a_verdict_that_holds_without_the_disturbed_runs_may_be_used() {
    let held = compared(190.0, 0.05, 1.0, |side| {
        side.iter_mut().for_each(|run| run.control = None);
        side.iter_mut().take(4).for_each(|run| run.disturbed = true);
    });
    let words = mail(&held).split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "Caution: other programs disturbed 8 of 32 runs, but the 6 undisturbed blocks alone give the same verdict. You \
        may use this result in spite of it.";
    assert!(words.contains(says), "{words}");
    // The note is the caution.
    let blocks = format!("{:?}", held.sheet().blocks);
    assert!(!blocks.contains("used the processors or devices") && !blocks.contains("undisturbed blocks"), "{blocks}");
}

/// A device whose fast part fills up gives a ratio that is of neither of its speeds.
#[test]
fn a_machine_that_changed_during_the_runs_is_told() {
    let slower = |factor: f64| {
        move |side: &mut [Observation]| {
            let half = side.len() / 2;
            side.iter_mut().skip(half).for_each(|run| *run.figures.entry("ops".to_owned()).or_default() *= factor);
        }
    };
    let words =
        |factor| mail(&compared(190.0, 0.05, 1.0, slower(factor))).split_whitespace().collect::<Vec<_>>().join(" ");
    let found = words(0.3);
    assert!(found.contains("Caution: the machine changed during the runs: `ops` of A went from "), "{found}");
    assert!(found.contains("You may use this result in spite of it."), "{found}");
    assert!(!words(0.9).contains("the machine changed"));
}

/// Steps are not told of a result that must not be used: the machine may be the reason.
#[test]
fn steps_that_changed_are_told() {
    let words = |found: &Comparison| mail(found).split_whitespace().collect::<Vec<_>>().join(" ");
    let better = words(&compared(190.0, 0.05, 1.0, |_| ()));
    let says = "Mean latency, A → B, median of the runs (95 % interval of the change): `fsyncfile2` 94.5 → 20.9 ms (";
    assert!(better.contains(says) && better.contains("; but slower: `deletefile1` 994 µs → 1.57 ms ("), "{better}");
    assert!(!words(&compared(120.0, 0.02, 0.8, |_| ())).contains("Mean latency"));
    // Latencies that scatter alike in A and B.
    let alike = |side: &mut [Observation]| {
        for (n, run) in side.iter_mut().enumerate() {
            run.figures.retain(|name, _| !name.starts_with("deletefile1"));
            for step in ["fsyncfile2", "readfile3"] {
                run.figures.insert(format!("{step}.latency.mean"), 1e6 * (1.0 + (n % 5) as f64));
            }
        }
    };
    let alike = words(&compared(190.0, 0.05, 1.0, alike));
    assert!(!alike.contains("Mean latency"), "{alike}");
    // At most three that changed most, with a sync and one that is slower.
    let many = |slow: (f64, f64), side: &mut [Observation]| {
        let is_b = side[0].conditions["$nthreads"] == "16";
        let times = [(9.0, 4.0), (8.0, 4.0), (7.0, 4.0), (6.0, 4.0), (5.0, 4.0), slow];
        for run in side.iter_mut() {
            (run.steps, run.syncs) = ((1..=6).map(|n| format!("s{n}")).collect(), ["s5".to_owned()].into());
            for (name, (of_a, of_b)) in run.steps.iter().zip(times) {
                run.figures.insert(format!("{name}.ops"), run.figures["ops"] / 6.0);
                run.figures.insert(format!("{name}.latency.mean"), 1e6 * if is_b { of_b } else { of_a });
            }
        }
    };
    let found = words(&compared(190.0, 0.05, 1.0, |side| many((4.0, 4.5), side)));
    let named: Vec<bool> = (1..=6).map(|n| found.contains(&format!("`s{n}`"))).collect();
    assert_eq!(named, [true, true, true, false, true, true], "{found}");
    assert!(
        found.contains("; but slower: `s6` 4.00 → 4.50 ms (")
            && found.contains(" Others that changed clearly: 1 faster."),
        "{found}"
    );
    // One that no operation of the workload feels is no objection.
    let found = words(&compared(190.0, 0.05, 1.0, |side| many((0.004, 0.006), side)));
    assert!(
        !found.contains("but slower") && found.contains(" Others that changed clearly: 1 faster, 1 slower."),
        "{found}"
    );
    // Clients that wait for each other are slower each, and more together.
    let all = words(&compared(190.0, 0.05, 1.0, |side| {
        let factor = if side[0].conditions["$nthreads"] == "16" { 10.0 } else { 1.0 };
        let latencies =
            side.iter_mut().flat_map(|run| run.figures.iter_mut()).filter(|(name, _)| name.contains(".latency."));
        latencies.for_each(|(_, latency)| *latency *= factor);
    }));
    let says = "Mean latency, A → B, median of the runs (95 % interval of the change), is higher all the same: `fsyncfile2` 94.5 → 209 ms (";
    assert!(all.contains(says), "{all}");
}

/// The answer of an experiment on one factor, of these runs at each level.
fn factorial(state: RepeatState, target: Option<f64>, curve: Option<&str>, cells: [Vec<Observation>; 2]) -> Answer {
    let factors = [FactorLevels { name: "n".to_owned(), levels: ["1", "2"].map(str::to_owned).to_vec() }];
    let design = FactorialDesign {
        name: "x",
        factors: &factors,
        metrics: &[Metric::ops()],
        own: &[],
        target,
        stop: PrecisionRule::Corrected,
        planned_runs: None,
        in_order: false,
        in_blocks: true,
        tables: &FactorialTables { curve: curve.map(str::to_owned), ..FactorialTables::default() },
    };
    let named = cells.map(|runs| ("n".to_owned(), runs));
    design.result(state, &named).sheet().answer
}

/// The intervals are those of independent runs, and the answer says how often such intervals are wrong.
#[test]
fn the_rule_of_the_study_says_what_it_is_worth() {
    let factors = [FactorLevels { name: "n".to_owned(), levels: vec!["1".to_owned()] }];
    let mut wave = runs("ops", 12, 100.0, 0.0);
    for (n, run) in wave.iter_mut().enumerate() {
        run.figures.insert("ops".to_owned(), 100.0 + 7.0 * (n as f64 / 3.0).sin());
    }
    let of = |stop: PrecisionRule| {
        let design = FactorialDesign {
            name: "x",
            factors: &factors,
            metrics: &[Metric::ops()],
            own: &[],
            target: Some(0.05),
            stop,
            planned_runs: None,
            in_order: true,
            in_blocks: false,
            tables: &FactorialTables::default(),
        };
        let found = design.result(RepeatState::Converged, &[("n".to_owned(), wave.clone())]);
        let width = found.cells[0].metrics[0].estimate.unwrap().relative();
        (found.sheet().answer.cautions.join("; ").contains("only 72 to 75 of 100 cases"), width)
    };
    let (corrected, study) = (of(PrecisionRule::Corrected), of(PrecisionRule::Study));
    assert_eq!((corrected.0, study.0), (false, true));
    assert!(study.1 < 0.05 && corrected.1 > 2.0 * study.1, "{corrected:?} {study:?}");
}

/// An outcome that `ab` calls *unclear* must not be used from an experiment either.
#[test]
fn levels_that_do_not_clearly_differ_give_no_result() {
    let of = |state, target, b: f64, spread: f64, n: usize| {
        let mut of_b = runs("ops", n, b, spread);
        of_b.rotate_left(n / 3);
        factorial(state, target, None, [runs("ops", n, 100.0, spread), of_b])
    };
    let clear = of(RepeatState::Complete, None, 150.0, 0.02, 8);
    assert_eq!(clear.usability, Some(Usability::Usable), "{clear:?}");
    let unclear = of(RepeatState::Complete, None, 101.0, 0.3, 8);
    assert!(unclear.result.contains("do not show that n=1 and n=2 differ"), "{unclear:?}");
    assert_eq!(unclear.usability, Some(Usability::Unusable), "{unclear:?}");
    let single = of(RepeatState::Complete, None, 150.0, 0.02, 1);
    assert!(single.rest().contains("what has no interval may be chance. Do not use this result."), "{single:?}");
    // As of a series.
    let wide = of(RepeatState::NotConverged, Some(0.01), 150.0, 0.02, 8);
    assert!(wide.rest().contains("intervals are wider than requested. Do not use this result."), "{wide:?}");
    let ended = of(RepeatState::NotConverged, None, 150.0, 0.02, 8);
    assert_eq!(ended.usability, Some(Usability::WithCaution), "{ended:?}");
}

/// A curve needs response times.
fn with_latency(mut runs: Vec<Observation>) -> Vec<Observation> {
    runs.iter_mut().for_each(|run| run.figures.extend([("latency.mean".to_owned(), 1e6)]));
    runs
}

/// A curve to more than the peak must have levels that cannot be kept.
#[test]
fn a_curve_beyond_the_peak_may_be_used() {
    let level = |ops: f64, code: Option<&str>| {
        let mut found = runs("ops", 4, ops, 0.02);
        found.iter_mut().for_each(|run| run.warnings.extend(code.map(str::to_owned)));
        with_latency(found)
    };
    let unstable = Some("unstable");
    let levels = ["100", "200"].map(str::to_owned);
    for (first, last, expected) in [
        (None, None, Usability::Usable),
        (None, unstable, Usability::WithCaution),
        (unstable, unstable, Usability::Unusable),
        (None, Some("errors"), Usability::Unusable),
    ] {
        let cells = [level(100.0, first), level(180.0, last)];
        let found = sweep("x", "rate", &levels, &cells, ResponseMethod::Sfs3);
        let answer = Sweep { planned_runs: Some(8), ..found }.sheet().answer;
        assert_eq!(answer.usability, Some(expected), "{first:?} {last:?}: {answer:?}");
        let of_experiment = factorial(RepeatState::Complete, None, Some("n"), cells);
        assert_eq!(of_experiment.usability, Some(expected), "{first:?} {last:?}: {of_experiment:?}");
        if expected == Usability::WithCaution {
            let says = "1 of 2 levels offered more than was achieved (`unstable`)";
            assert!(answer.rest().contains(says), "{answer:?}");
        }
    }
    // Without a curve, the levels are compared.
    let compared = factorial(RepeatState::Complete, None, None, [level(100.0, None), level(180.0, unstable)]);
    assert_eq!(compared.usability, Some(Usability::Unusable), "{compared:?}");
}

#[test]
fn a_mean_without_an_interval_is_used_with_caution() {
    let rule =
        RepeatRule { runs: RunRange { min: 1, max: 1 }, target: None, level: 0.95, stop: PrecisionRule::Corrected };
    let single = with_latency(runs("ops", 1, 100.0, 0.0));
    let found = repeats("x", &[Metric::ops()], &single, &rule, RepeatState::Complete).unwrap().sheet().answer;
    let says = "Caution: the mean is without an interval, and may be chance. You may use this result in spite of it.";
    assert!(found.rest().contains(says), "{found:?}");
    let levels = ["1", "2"].map(str::to_owned);
    let curve = |second: usize| {
        let cells = [single.clone(), with_latency(runs("ops", second, 180.0, 0.02))];
        let found = sweep("x", "n", &levels, &cells, ResponseMethod::Sfs3);
        Sweep { planned_runs: Some(1 + second as u64), ..found }.sheet().answer.rest()
    };
    let ending = "without an interval, and may be chance. You may use this result in spite of it.";
    assert!(curve(1).contains(&format!("Caution: the points are {ending}")), "{}", curve(1));
    assert!(curve(4).contains(&format!("Caution: 1 of 2 points are {ending}")), "{}", curve(4));
}
