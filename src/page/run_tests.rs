//! Tests of the table and the picture of the single runs of experiments and comparisons.

#![allow(clippy::unwrap_used)]

use super::ab::of_comparison;
use super::tests::{ab, pictures, recorded};
use crate::analysis::PrecisionRule::Corrected;
use crate::comparison::FactorialTables;
use crate::experiment::{RuleWanted, WantedFactor};
use crate::import::Observation;
use crate::sheet::SheetBlock;

/// A run that failed has its reason, and one that is far from those of its arm is an outlier. Its level is not compared
/// with that of other arms.
#[test]
fn the_table_of_runs_says_what_was_unusual() {
    let factors = vec![WantedFactor { name: "n".to_owned(), levels: ["1", "2"].map(str::to_owned).to_vec() }];
    let tables = FactorialTables::default();
    let rule = RuleWanted::Factorial {
        factors,
        min_runs: 8,
        max_runs: 8,
        until_ci: None,
        stop: Corrected,
        order: crate::experiment::StudyOrder::Cells,
        tables,
    };
    let ops = |n: usize| 100.0 + (n % 3) as f64;
    let runs: Vec<(usize, f64)> = (0..8).map(|n| (0, ops(n))).chain((0..8).map(|n| (1, 3.0 * ops(n)))).collect();
    let mut recorded = recorded(rule, &["n=1", "n=2"], &runs);
    recorded.runs[3].observation.figures.insert("ops".to_owned(), 40.0);
    recorded.runs[9].observation = Observation { failure: Some("no space".to_owned()), ..Observation::default() };
    let table = recorded.run_table();
    assert_eq!(table.columns, ["run", "arm", "ops", "control", "state", "notes"]);
    let notes: Vec<&str> = table.rows.iter().map(|row| row[5].as_str()).collect();
    let expected: Vec<&str> = (0..16).map(|n| if n == 3 { "outlier" } else { "-" }).collect();
    assert_eq!(notes, expected);
    assert_eq!(table.rows[9], ["10", "n=2", "-", "-", "no space", "-"]);
    let found = recorded.factorial().unwrap().notes.join("\n");
    assert!(found.contains("`ops` is far from the median of its side or cell in 1 of 16 runs"), "{found}");
    recorded.experiment.arms[1].metric = Some("mib".to_owned());
    assert_eq!(recorded.run_table().columns[2..4], ["metric", "value"]);
    recorded.runs.clear();
    assert_eq!(recorded.run_table().markdown().lines().count(), 2, "the heading");
}

/// A comparison of results shows the runs of each side in their order.
#[test]
fn a_comparison_of_results_has_its_runs() {
    let comparison = ab(0.1).comparison(None).unwrap();
    let blocks = of_comparison(&comparison, None);
    let picture = blocks.iter().find_map(|block| match block {
        SheetBlock::Picture(picture) if picture.title == "Runs: ops" => Some(picture),
        _ => None,
    });
    let of_side = |side: &str| {
        let rows = &picture.unwrap().table.rows;
        rows.iter().filter(|row| row[1].starts_with(side)).map(|row| row[0].clone()).collect::<Vec<_>>()
    };
    let numbers: Vec<String> = (1..=comparison.a.values.len()).map(|n| n.to_string()).collect();
    assert_eq!([of_side("A: "), of_side("B: ")], [numbers.clone(), numbers]);
    // Columns of numbers may be long.
    let mut long = comparison;
    long.a.values = vec![1.0; 1000];
    let titles: Vec<String> = pictures(of_comparison(&long, None)).into_keys().collect();
    assert!(titles.iter().all(|title| !title.starts_with("Runs: ")), "{titles:?}");
}

/// An interval that is much wider than the others would make them points.
#[test]
fn a_wide_interval_is_cut_and_says_so() {
    let mut comparison = ab(0.1).comparison(None).unwrap();
    let note = |comparison: &crate::comparison::Comparison| {
        pictures(of_comparison(comparison, None)).remove("How the verdict came about").unwrap().note
    };
    assert!(!note(&comparison).contains("beyond"), "{}", note(&comparison));
    (comparison.ratio.low, comparison.ratio.high) = (0.001, f64::INFINITY);
    assert!(note(&comparison).ends_with("goes on beyond it."), "{}", note(&comparison));
}
