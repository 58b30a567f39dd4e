//! Tests of the reports for people: the words of the lines of a comparison and of repeats.

#![allow(clippy::unwrap_used)]
use super::super::build::tests::{comparer, runs};
use super::*;
use crate::analysis::{MeanEstimate, RepeatState};
use crate::comparison::{ControlResult, Runs};

fn compared(metric: &str, n: usize, interleaved: bool) -> Comparison {
    let (a, mut b) = (runs(metric, n, 100.0, 0.02), runs(metric, n, 120.0, 0.02));
    b.rotate_left(n / 2);
    let runs = Runs { a: &a, b: &b, interleaved, control_a: &[], control_b: &[] };
    comparer(metric).compare(&runs).unwrap()
}

#[track_caller]
fn says(text: &str, lines: &[&str]) {
    let squeezed = text.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let squeezed: Vec<String> = squeezed.collect();
    for line in lines {
        assert!(squeezed.iter().any(|found| found.contains(line)), "{line:?} in {text}");
    }
}

/// The ratio is that of the measured values, whatever the direction of the metric.
#[test]
fn the_ratio_is_as_measured_and_has_its_direction() {
    let found = compared("latency.p99", 8, true);
    assert!(found.ratio.value > 1.1 && found.verdict == ComparisonVerdict::Worse, "{:?}", found.ratio);
    let ratio = ratio(found.ratio);
    says(
        &text(&found),
        &[
            "metric latency.p99 (lower is better)",
            &format!("worse: B is worse than A by more than 3.0 % (B/A {ratio} of latency.p99, lower is better)"),
            "test paired t-test over 4 blocks: t ",
            ", 3 df, p ",
        ],
    );
    says(&markdown(&found), &["| metric | latency.p99 (lower is better) |"]);
    says(
        &text(&compared("ops", 8, false)),
        &["metric ops (higher is better)", "B − A 20.", " ops/s [", "Welch's t-test: t"],
    );
}

#[test]
fn one_run_on_each_side_has_a_ratio_without_an_interval() {
    let found = compared("ops", 1, false);
    says(&text(&found), &["A 1 100.0 100.0 - A", "B/A 1.200 [-, -]", "detectable loss no loss: too few runs"]);
    says(&markdown(&found), &["| A: A | 1 | 100.0 | 100.0 | - |"]);
    let wide = Comparison { could_have_seen: None, ..compared("ops", 8, true) };
    says(&text(&wide), &["detectable loss more than 99.9 %"]);
}

#[test]
fn a_control_with_a_wide_interval_is_unknown() {
    let control = |low, high, moved| {
        let ratio = Estimate { value: 1.0, low, high };
        let control = Some(ControlResult { moved, ratio, p: 0.5 });
        text(&Comparison { control, ..compared("ops", 8, true) })
    };
    says(
        &control(0.168, 5.413, false),
        &["control unknown, too few runs for a tolerance of 3.0 %: 1.000 [0.168, 5.413]"],
    );
    says(&control(0.99, 1.01, false), &["control did not change: "]);
    says(&control(0.5, 0.9, true), &["control changed: "]);
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

#[test]
fn an_interval_of_repeats_is_cut_at_zero() {
    let estimate = MeanEstimate { n: 3, mean: 7_826.0, half_width: 8_853.0, lag1: 0.0, effective_n: 3.0 };
    let metric = RepeatedMetric {
        metric: "ops".to_owned(),
        estimate,
        relative_half_width: estimate.relative(),
        trend: None,
        values: vec![1.0; 3],
    };
    let repeats = Repeats {
        schema: String::new(),
        name: "x".to_owned(),
        state: RepeatState::NotConverged,
        target: None,
        metrics: vec![metric],
    };
    says(&repeats_text(&repeats), &["effective sample size", "0 … 16,679 113.1 % 3.0 -"]);
    assert!(repeats_bencher(&repeats).contains("\"lower_value\": 0.0"));
}
