//! Tests of the parts of a page about a load curve.

#![allow(clippy::unwrap_used)]

use super::experiment;
use super::sweep::over_processors;
use super::tests::{pictures, points, recorded, symbols, table};
use crate::analysis::ResponseMethod;
use crate::comparison::Sweep;
use crate::experiment::{RecordedRun, RuleWanted};
use crate::import::Observation;
use crate::sheet::{SheetBlock, Tone};

#[test]
fn the_pictures_of_a_load_curve_have_each_point_and_failed_points_are_listed() {
    let levels = ["1", "2", "4", "8"].map(str::to_owned).to_vec();
    let method = Some(ResponseMethod::Sfs2);
    let rule = RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats: 2, in_order: true, method, search: None };
    let runs = [(0, 100.0), (1, 190.0), (2, 300.0), (0, 102.0), (1, 192.0), (2, 302.0)];
    let mut recorded = recorded(rule, &["n=1", "n=2", "n=4", "n=8"], &runs);
    let failed = Observation { failure: Some("no space".to_owned()), ..Observation::default() };
    recorded.runs.push(RecordedRun { number: 7, arm: 3, observation: failed });
    let blocks = experiment::blocks(&recorded, None, None);
    let warns = blocks
        .iter()
        .any(|block| matches!(block, SheetBlock::Warnings { items, .. } if items[0].0 == "n=8: 1 failed: no space"));
    assert!(warns, "{blocks:?}");
    let says = |text: &str| {
        text.starts_with("not complete: 7 of 8 runs, ended by its budget; peak ") && text.ends_with(" (sfs2).")
    };
    assert!(matches!(&blocks[0], SheetBlock::Banner { tone: Tone::Bad, text } if says(text)), "{blocks:?}");
    let pictures = pictures(blocks);
    assert_eq!(points(&pictures["Throughput over load"]), [(1.0, 101.0), (2.0, 191.0), (4.0, 301.0)]);
    let curve: Vec<f64> = points(&pictures["Load curve"]).into_iter().map(|(rate, _)| rate).collect();
    assert_eq!(curve, [101.0, 191.0, 301.0]);
    assert_eq!(points(&pictures["Response time over load"]).len(), 3);
}

#[test]
fn a_load_with_a_single_run_has_no_interval() {
    let levels = ["1", "2"].map(str::to_owned).to_vec();
    let rule =
        RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats: 1, in_order: true, method: None, search: None };
    let pictures =
        pictures(experiment::blocks(&recorded(rule, &["n=1", "n=2"], &[(0, 100.0), (1, 190.0)]), None, None));
    for title in ["Throughput over load", "Response time over load"] {
        let picture = &pictures[title];
        assert!(!picture.drawing.to_string().contains("data-low"), "{title}: {}", picture.drawing);
        assert!(picture.table.rows.iter().all(|row| row[2] == "-"), "{title}: {:?}", picture.table.rows);
    }
}

/// The order in which the levels were given is that of the table of the points only.
#[test]
fn the_pictures_of_a_load_curve_are_in_the_order_of_the_loads() {
    let levels = ["4", "1", "8", "2"].map(str::to_owned).to_vec();
    let rule =
        RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats: 1, in_order: true, method: None, search: None };
    let runs = [(0, 380.0), (1, 100.0), (2, 400.0), (3, 195.0)];
    let mut recorded = recorded(rule, &["n=4", "n=1", "n=8", "n=2"], &runs);
    for (run, latency) in recorded.runs.iter_mut().zip([1.1e6, 1e6, 9e6, 1.05e6]) {
        run.observation.figures.insert("latency.mean".to_owned(), latency);
    }
    let pictures = pictures(experiment::blocks(&recorded, None, None));
    let throughput = &pictures["Throughput over load"];
    assert_eq!(points(throughput), [(1.0, 100.0), (2.0, 195.0), (4.0, 380.0), (8.0, 400.0)]);
    assert_eq!(throughput.table.rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["1", "2", "4", "8"]);
    let curve = &pictures["Load curve"];
    assert_eq!(points(curve), [(100.0, 1e6), (195.0, 1.05e6), (380.0, 1.1e6), (400.0, 9e6)]);
    // The knee is a square at the third load.
    assert_eq!(curve.legend, [("b", "knee, at n=4".to_owned())]);
    assert_eq!(symbols(curve).iter().position(|symbol| symbol["class"] == "b"), Some(2));
}

/// Several curves are lines of one picture; one without the processors is left out.
#[test]
fn the_throughput_is_drawn_over_the_processors() {
    let levels = ["1", "2"].map(str::to_owned).to_vec();
    let rule =
        RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats: 1, in_order: true, method: None, search: None };
    let mut recorded = recorded(rule, &["n=1", "n=2"], &[(0, 100.0), (1, 190.0)]);
    let without = recorded.sweep().unwrap();
    assert!(over_processors(std::slice::from_ref(&without)).is_none());
    for (run, busy) in recorded.runs.iter_mut().zip([0.125, 0.25]) {
        run.observation.figures.insert("cpu_busy".to_owned(), busy);
    }
    let one = pictures(experiment::blocks(&recorded, None, None));
    assert_eq!(points(&one["Throughput over the processors"]), [(0.125, 100.0), (0.25, 190.0)]);
    let curves = ["ext4", "none", "xfs"].map(|name| Sweep {
        name: name.to_owned(),
        ..if name == "none" { without.clone() } else { recorded.sweep().unwrap() }
    });
    let several = over_processors(&curves).unwrap();
    assert_eq!(several.legend, [("a", "ext4".to_owned()), ("c", "xfs".to_owned())]);
    assert_eq!((several.table.rows.len(), several.table.rows[3][0].as_str()), (4, "xfs"));
}

/// The requests of an open loop are in a picture of their own, apart from the operations of which they consist.
#[test]
fn the_achieved_requests_are_drawn_over_the_offered_ones() {
    let levels = ["400", "100"].map(str::to_owned).to_vec();
    let rule =
        RuleWanted::Sweep { factor: "rate".to_owned(), levels, repeats: 1, in_order: true, method: None, search: None };
    let mut recorded = recorded(rule, &["rate=400", "rate=100"], &[(0, 750.0), (1, 300.0)]);
    let closed = pictures(experiment::blocks(&recorded, None, None));
    assert!(!closed.contains_key("Achieved rate over offered rate"));
    for (run, (offered, achieved)) in recorded.runs.iter_mut().zip([(400.0, 250.0), (100.0, 100.0)]) {
        let figures = [("offered", offered), ("requests", achieved)].map(|(name, value)| (name.to_owned(), value));
        run.observation.figures.extend(figures);
    }
    let blocks = experiment::blocks(&recorded, None, None);
    let table = table(&blocks, "Points of the curve");
    assert_eq!(table.headings()[3..6], ["offered requests/s", "achieved requests/s", "ops/s"]);
    assert_eq!(table.rows[0][3..6], ["400.0", "250.0", "750.0"]);
    assert!(
        matches!(&blocks[0], SheetBlock::Banner { text, .. } if text.starts_with("peak 750.0 operations per second (250.0 requests/s)"))
    );
    let pictures = pictures(blocks);
    assert_eq!(points(&pictures["Throughput over load"]), [(100.0, 300.0), (400.0, 750.0)]);
    let achieved = &pictures["Achieved rate over offered rate"];
    assert_eq!(points(achieved), [(100.0, 100.0), (400.0, 250.0)]);
    assert_eq!(achieved.table.rows[1], ["400", "400.0", "250.0", "62.5 %"].map(str::to_owned));
}

#[test]
fn the_flowops_of_two_loads_have_their_names() {
    let levels = ["1", "2"].map(str::to_owned).to_vec();
    let rule =
        RuleWanted::Sweep { factor: "n".to_owned(), levels, repeats: 1, in_order: true, method: None, search: None };
    let blocks = experiment::blocks(&recorded(rule, &["n=1", "n=2"], &[(0, 100.0), (1, 190.0)]), None, None);
    let headings = table(&blocks, "Flowops: means over the runs").headings();
    assert_eq!(headings[..3], ["flowop", "n=1 ops/s", "n=2 ops/s"]);
}

/// The percentiles are drawn beside the mean, and nothing joins loads that are not numbers.
#[test]
fn the_percentiles_of_a_load_are_drawn() {
    let lines = |levels: [&str; 2], arms: [&str; 2], operations: f64| {
        let levels = levels.map(str::to_owned).to_vec();
        let rule = RuleWanted::Sweep {
            factor: "n".to_owned(),
            levels,
            repeats: 1,
            in_order: true,
            method: None,
            search: None,
        };
        let mut recorded = recorded(rule, &arms, &[(0, 100.0), (1, 190.0)]);
        for run in &mut recorded.runs {
            run.observation.operations = [(String::new(), operations)].into();
            let figures = &mut run.observation.figures;
            let mean = figures["latency.mean"];
            figures.extend([("latency.p50", 0.5), ("latency.p99", 8.0)].map(|(name, of)| (name.to_owned(), of * mean)));
        }
        let picture = pictures(experiment::blocks(&recorded, None, None)).remove("Response time over load").unwrap();
        (points(&picture), picture.legend.len(), picture.drawing.to_string().matches("<path").count())
    };
    let (drawn, legend, paths) = lines(["2", "20"], ["n=2", "n=20"], 1e5);
    let [first, second] = [1e9 / 100.0, 1e9 / 190.0];
    let expected = [0.5, 1.0, 8.0].map(|of| [(2.0, of * first), (20.0, of * second)]).concat();
    assert_eq!((drawn, legend, paths), (expected, 3, 3));
    // With fewer than 100 operations beyond it, a percentile says little.
    assert_eq!(lines(["2", "20"], ["n=2", "n=20"], 9_900.0).1, 2);
    assert_eq!(lines(["2", "20"], ["n=2", "n=20"], 100.0).1, 0);
    assert_eq!(lines(["few", "many"], ["n=few", "n=many"], 1e5).2, 0);
}
