//! Tests of the reports: the words of the lines of a comparison and of repeats, and the order of the tables.

#![allow(clippy::unwrap_used)]
use super::super::build::tests::{comparer, controlled, runs};
use super::super::formats::shown::{bencher, benchstat, mail, markdown, text};
use super::*;
use crate::analysis::{Change, Estimate, InterimLook, MeanEstimate, RepeatState, TTest};
use crate::comparison::{Comparer, ComparisonMethod, ControlResult, RepeatedMetric, Repeats, RunOrder, Runs, Validity};

fn compared(metric: &str, n: usize, order: RunOrder) -> Comparison {
    let (a, mut b) = (runs(metric, n, 100.0, 0.02), runs(metric, n, 120.0, 0.02));
    b.rotate_left(n / 2);
    let runs = Runs { a: &a, b: &b, order };
    comparer(metric).compare(&runs).unwrap()
}

#[track_caller]
fn says(text: &str, lines: &[&str]) {
    // Long lines continue on the next one.
    let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in lines {
        assert!(squeezed.contains(line), "{line:?} in {text}");
    }
}

/// The ratio is that of the measured values, whatever the direction of the metric.
#[test]
fn the_ratio_is_as_measured_and_has_its_direction() {
    let found = compared("latency.p99", 8, RunOrder::Blocks);
    assert!(found.ratio.value > 1.1 && found.verdict == ComparisonVerdict::Worse, "{:?}", found.ratio);
    let ratio = ratio(found.ratio);
    says(
        &text(&found),
        &[
            "metric latency.p99 (lower is better)",
            &format!("B/A {ratio}, 95 % interval"),
            "worse: the p99 latency is 20.",
            " % higher with B than with A (95 % interval ",
            "test signed-rank test of 8 pairs of runs: p 0.007812",
        ],
    );
    says(&markdown(&found), &["| metric | latency.p99 (lower is better) |"]);
    says(
        &text(&compared("ops", 8, RunOrder::Separate)),
        &["metric ops (higher is better)", "Mann–Whitney test, and a robust fit with a trend: p"],
    );
}

#[test]
fn one_run_on_each_side_has_a_ratio_without_an_interval() {
    let found = compared("ops", 1, RunOrder::Separate);
    says(&text(&found), &["A 1 100.0 100.0 -", "B/A 1.200 (no interval)"]);
    says(&markdown(&found), &["| A: A | 1 | 100.0 | 100.0 | - |"]);
    says(
        &text(&found),
        &["unclear: the runs give no interval, so that nothing is shown; as measured, B does 20.0 % more operations"],
    );
    let unknown = Estimate { value: f64::NAN, ..found.ratio };
    says(&text(&Comparison { ratio: unknown, ..found }), &["unclear: there is no ratio of B to A."]);
    let wide = compared("ops", 8, RunOrder::Blocks);
    let wide = Comparison { could_have_seen: None, verdict: ComparisonVerdict::Unclear, ..wide };
    says(&text(&wide), &["With this much variation, 16 runs may not find even a loss of 99.9 %."]);
}

/// Other programs that ran beside one side only may be the difference.
#[test]
fn a_verdict_says_that_other_programs_disturbed_a_side() {
    let disturbed = |a: usize, b: usize| {
        let (mut of_a, mut of_b) = (runs("ops", 8, 100.0, 0.02), runs("ops", 8, 120.0, 0.02));
        of_b.rotate_left(4);
        for (side, n) in [(&mut of_a, a), (&mut of_b, b)] {
            side.iter_mut().for_each(|run| drop(run.conditions.insert("kernel".to_owned(), "6".to_owned())));
            controlled(side, &[50.0, 50.1, 49.9, 50.0, 50.1, 49.9, 50.0, 50.1]);
            side.iter_mut().take(n).for_each(|run| run.disturbed = true);
        }
        let runs = Runs { a: &of_a, b: &of_b, order: RunOrder::Separate };
        text(&comparer("ops").compare(&runs).unwrap())
    };
    let but = "but the processors were equally fast for A and B";
    says(&disturbed(0, 4), &[&format!("other programs disturbed 4 of 8 runs of B, {but}")]);
    says(&disturbed(8, 3), &[&format!("other programs disturbed 8 of 8 runs of A, {but}")]);
    says(&disturbed(4, 4), &[&format!("other programs disturbed 8 of 16 runs, {but}")]);
    assert!(!disturbed(0, 0).contains("disturbed"));
}

#[test]
fn a_control_with_a_wide_interval_is_unknown() {
    let control = |low, high, moved, runs_needed| {
        let ratio = Estimate { value: 1.0, low, high };
        let control = Some(ControlResult { moved, ratio, p: 0.5, runs_needed });
        text(&Comparison { control, ..compared("ops", 8, RunOrder::Blocks) })
    };
    says(
        &control(0.168, 5.413, false, None),
        &["control unknown, too few runs for a tolerance of 3.0 %: 1.000 [0.168, 5.413]"],
    );
    says(&control(0.9, 1.1, false, Some(40)), &["control unknown, needs about 40 runs in total (tolerance 3.0 %): "]);
    says(&control(0.99, 1.01, false, Some(8)), &["control no change that matters: "]);
    says(&control(0.5, 0.9, true, Some(8)), &["control changed: "]);
}

/// The last line is what most people read.
#[test]
fn a_verdict_says_that_the_control_is_unknown() {
    let of = |spread: f64| {
        let (mut a, mut b) = (runs("ops", 8, 100.0, 0.02), runs("ops", 8, 80.0, 0.02));
        b.rotate_left(4);
        let control_a: Vec<f64> = (0..8).map(|i| 50.0 * (1.0 + spread * f64::from(i % 2))).collect();
        let control_b: Vec<f64> = (0..8).map(|i| 50.0 * (1.0 + spread * f64::from(i % 3))).collect();
        controlled(&mut a, &control_a);
        controlled(&mut b, &control_b);
        let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
        comparer("ops").compare(&runs).unwrap()
    };
    let unknown = of(0.5);
    assert!(unknown.verdict == ComparisonVerdict::Worse && unknown.control.unwrap().is_unknown(0.03));
    let says_unknown =
        "note: the runs are too few to show that the machine was equally fast for A and B, see `control`: ";
    says(&text(&unknown), &[says_unknown]);
    assert!(
        unknown.notes.iter().any(|note| note.contains("repeat the runs on an idle machine")),
        "{:?}",
        unknown.notes
    );
    let less = of(0.1);
    let needed = less.control.unwrap().runs_needed.unwrap();
    assert!((40..400).contains(&needed) && needed.is_multiple_of(4), "{needed}");
    let advice = format!("make about {needed} runs instead of 16, or use an idle");
    assert!(less.notes.iter().any(|note| note.contains(&advice)), "{:?}", less.notes);
    // The interval already has what changes of the machine did to alternating runs.
    assert!(!mail(&unknown).contains("equally fast"), "{}", mail(&unknown));
    assert!(!text(&of(0.001)).contains("equally fast"), "{}", text(&of(0.001)));
}

#[test]
fn an_interval_has_the_level_of_its_look() {
    says(&text(&compared("ops", 24, RunOrder::Blocks)), &["], 95 % interval"]);
    let (a, b) = (runs("ops", 24, 100.0, 0.02), runs("ops", 24, 120.0, 0.02));
    let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
    for (one_sided, level) in [(0.005, "99"), (0.0075, "98.5"), (0.0125, "97.5")] {
        let look = Some(InterimLook { blocks: 12, one_sided });
        let found = Comparer { look, ..comparer("ops") }.compare(&runs).unwrap();
        says(&text(&found), &[&format!("], {level} % interval"), "look after 12 blocks"]);
        assert!((found.level - (1.0 - 2.0 * one_sided)).abs() < 1e-12);
    }
}

/// What the text says of the figures that changed, Markdown says too.
#[test]
fn changed_figures_have_their_p_values_in_all_formats() {
    let mut found = compared("ops", 8, RunOrder::Separate);
    found.causes = vec![Change { name: "cpu".to_owned(), a: 0.25, b: 0.5, p: 0.0125 }];
    says(&text(&found), &["also changed A B p", "cpu 0.250 0.500 0.0125"]);
    says(&markdown(&found), &["| also changed | A | B | p |", "| cpu | 0.250 | 0.500 | 0.0125 |"]);
}

/// A label or note of all runs is shown; one of a side is among the differences.
#[test]
fn the_note_of_all_runs_is_shown() {
    let of = |note: &str| {
        let mut found = runs("ops", 8, 100.0, 0.02);
        found.iter_mut().for_each(|run| drop(run.conditions.insert("note".to_owned(), note.to_owned())));
        found
    };
    let shown = |a: &str, b: &str| {
        let runs = Runs { a: &of(a), b: &of(b), order: RunOrder::Separate };
        let found = comparer("ops").compare(&runs).unwrap();
        (found.annotations.clone(), text(&found), markdown(&found))
    };
    let (annotations, text, markdown) = shown("new disk", "new disk");
    assert_eq!(annotations.len(), 1);
    says(&text, &["note new disk metric ops"]);
    says(&markdown, &["| note | new disk |"]);
    let (annotations, text, _) = shown("old", "new");
    assert!(annotations.is_empty() && text.contains("note     old  new"), "{text}");
}

/// One figure has one form, also in a table beside sentences.
#[test]
fn numbers_of_runs_are_grouped() {
    let found = compared("ops", 2868, RunOrder::Separate);
    for text in [text(&found), markdown(&found)] {
        assert!(text.contains("2,868") && !text.contains("2868"), "{text}");
    }
}

#[test]
fn what_differs_is_in_the_answer_and_other_metrics_are_called_descriptive() {
    let on = |script: &str, mean: f64| -> Vec<crate::import::Observation> {
        let mut found = runs("ops", 8, mean, 0.02);
        for run in &mut found {
            run.figures.insert("mib".to_owned(), run.figures["ops"] * 2.0);
            run.conditions.insert("script".to_owned(), script.to_owned());
        }
        found
    };
    let (a, b) = (on("ab", 100.0), on("c|d", 120.0));
    let runs = Runs { a: &a, b: &b, order: RunOrder::Separate };
    let found = comparer("ops").compare(&runs).unwrap();
    for text in [text(&found), markdown(&found)] {
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(at("std dev") < at("other metrics, descriptive"));
        says(&text, &["differs: script (A ab, B c", "d, should be equal)"]);
    }
    says(&markdown(&found), &["| other metrics, descriptive | B/A |"]);
    assert!(differs_text(&found).contains("script (should be equal)  ab  c|d"), "{}", differs_text(&found));
}

/// The digits are those of the appendix of the study, which were printed by R. `study` in tests/it has the whole text.
#[test]
fn the_study_has_its_printed_digits() {
    let (a, b) = (runs("ops", 9, 100.0, 0.02), runs("ops", 8, 120.0, 0.02));
    let runs = Runs { a: &a, b: &b, order: RunOrder::Separate };
    let mut found = Comparer { method: ComparisonMethod::Study, ..comparer("ops") }.compare(&runs).unwrap();
    let study = found.study.as_mut().unwrap();
    (study.f.value, study.f.df1, study.f.df2, study.f.p) = (3.604_928_4, 9.0, 3.0, 0.319_233_7);
    (study.f.low, study.f.high) = (0.082_149_75, 31.424_361_05);
    let (kind, value, df, p) = (TTestKind::Pooled, 7.386_81, 12.0, 8.423_4e-6);
    study.t = Some(TTest { kind, value, df, p, low: 7_584.003_9, high: 18_278.496_1 });
    (found.a.sample.mean, found.b.sample.mean) = (103_095.0, 90_163.75);
    (found.a.sample.variance, found.b.sample.variance) = (10_686_403.0, 2_964_387.0);
    let variances = "interval of the ratio of variances [0.08214975, 31.42436105]";
    says(
        &text(&found),
        &[
            "means A 103095, B 90163.75",
            "variances A 10686403, B 2964387",
            "Shapiro–Wilk A W ",
            &format!("F-test F 3.6049 on 9 and 3 df, p 0.3192, 99 % {variances}"),
            "t-test pooled: t 7.3868 on 12 df, p 8.423e-06, 99 % interval of A − B [7584.004, 18278.496]",
        ],
    );
}

#[test]
fn benchstat_knows_in_which_direction_a_unit_improves() {
    assert!(
        benchstat(&compared("ops", 4, RunOrder::Blocks))
            .starts_with("Unit ops/s better=higher\nside: A\nBenchmarkVarmail 1 ")
    );
    assert!(benchstat(&compared("latency.p99", 4, RunOrder::Blocks)).starts_with("Unit ns/op better=lower\n"));
    assert!(benchstat(&compared("cpu", 4, RunOrder::Blocks)).starts_with("Unit s better=lower\n"));
    let metric = |name: &str| RepeatedMetric { metric: name.to_owned(), ..repeated() };
    let repeats =
        Repeats { metrics: ["ops", "r|d.mib", "latency.mean", "latency.p99"].map(metric).into(), ..repeats() };
    let text = benchstat(&repeats);
    let units = "Unit MiB/s better=higher\nUnit ns/op better=lower\nUnit ops/s better=higher\n";
    assert!(text.starts_with(units) && text.contains("BenchmarkX/r_d.mib 1 1 MiB/s\n"), "{text}");
    says(&markdown(&repeats), &["| r\\|d.mib | 3 | "]);
}

#[test]
fn small_percentages_keep_their_digits() {
    for (share, shown) in [
        (0.03, "3.0 %"),
        (0.0003, "0.03 %"),
        (0.0025, "0.25 %"),
        (0.005, "0.5 %"),
        (0.000_012, "0.0012 %"),
        (0.0, "0.0 %"),
        (0.009_99, "1.0 %"),
        (0.5, "50.0 %"),
    ] {
        assert_eq!(percent(share), shown);
    }
}

fn repeated() -> RepeatedMetric {
    let estimate = MeanEstimate { n: 3, mean: 7_826.0, half_width: 8_853.0, lag1: 0.0, effective_n: 3.0 };
    let relative_half_width = estimate.relative();
    RepeatedMetric { metric: "ops".to_owned(), estimate, relative_half_width, trend: None, values: vec![1.0; 3] }
}

fn repeats() -> Repeats {
    Repeats {
        schema: String::new(),
        name: "x".to_owned(),
        state: RepeatState::NotConverged,
        target: None,
        metrics: vec![repeated()],
        notes: vec!["a <note>".to_owned()],
        validity: Validity::default(),
    }
}

#[test]
fn an_interval_of_repeats_is_cut_at_zero() {
    says(&text(&repeats()), &["effective n", "0 … 16,679 113.1 % 3.0 -"]);
    let trend = Repeats { metrics: vec![RepeatedMetric { trend: Some(-0.021), ..repeated() }], ..repeats() };
    let line = "| ops | 3 | 7,826 | 0 … 16,679 | 113.1 % | 3.0 | -2.1 % |";
    says(&markdown(&trend), &["| 95 % interval | ± | effective n | trend |", line]);
    assert!(bencher(&repeats()).contains("\"lower_value\": 0.0"));
}

#[test]
fn repeats_have_notes_and_a_state() {
    let amount = "7,826 operations per second ± 113.1 % (95 % interval 0 … 16,679)";
    let ending = format!("note: a <note> not converged after 3 runs: {amount}.");
    says(&text(&repeats()), &[&ending]);
    says(&markdown(&repeats()), &[&format!("**x** not converged after 3 runs: {amount}."), "a &lt;note>"]);
    let complete = Repeats { state: RepeatState::Complete, notes: Vec::new(), ..repeats() };
    says(&text(&complete), &[&format!("complete after 3 runs: {amount}. You may use this result.")]);
}
