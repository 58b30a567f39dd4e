//! Tests of the parts of a page about a factorial experiment.

#![allow(clippy::unwrap_used)]

use super::experiment;
use super::tests::{pictures, points, recorded, table};
use crate::analysis::PrecisionRule::Corrected;
use crate::comparison::FactorialTables;
use crate::experiment::StudyOrder::Blocks as InBlocks;
use crate::experiment::{RuleWanted, WantedFactor};

#[test]
fn each_run_of_a_cell_is_a_point_and_each_cell_a_row() {
    let levels = |name: &str, levels: [&str; 2]| WantedFactor {
        name: name.to_owned(),
        levels: levels.map(str::to_owned).to_vec(),
    };
    let factors = vec![levels("fs", ["ext4", "<xfs>"]), levels("n", ["1", "8"])];
    let tables = FactorialTables { columns: Some("fs".to_owned()), ..FactorialTables::default() };
    let rule = RuleWanted::Factorial {
        factors,
        min_runs: 2,
        max_runs: 2,
        until_ci: None,
        stop: Corrected,
        order: InBlocks,
        tables,
    };
    let runs: Vec<(usize, f64)> = (0..8).map(|run| (run % 4, 100.0 + run as f64)).collect();
    let arms = ["fs=ext4,n=1", "fs=ext4,n=8", "fs=<xfs>,n=1", "fs=<xfs>,n=8"];
    let recorded = recorded(rule, &arms, &runs);
    let blocks = experiment::blocks(&recorded, None, None);
    let pivot = table(&blocks, "ops over fs");
    assert_eq!(pivot.headings(), ["n", "fs=ext4", "fs=<xfs>", "better", "factor"]);
    assert_eq!(pivot.rows[0], ["1", "102.0", "104.0", "draw", "1.02"].map(str::to_owned));
    let rows = &table(&blocks, "Cells").rows;
    assert_eq!((rows.len(), &rows[2][..4]), (4, &["<xfs>", "1", "2", "0"].map(str::to_owned)[..]));
    let pictures = pictures(blocks);
    // A picture for each level of the other factor, over those of the one whose levels are columns.
    for (level, cells) in [(1, [0, 2]), (8, [1, 3])] {
        let mut expected = Vec::new();
        for (at, cell) in cells.into_iter().enumerate() {
            let of_cell: Vec<f64> = runs.iter().filter(|(arm, _)| *arm == cell).map(|(_, ops)| *ops).collect();
            expected.extend(of_cell.iter().map(|ops| (at as f64, *ops)));
            expected.push((at as f64, of_cell.iter().sum::<f64>() / 2.0));
        }
        assert_eq!(points(&pictures[&format!("Cells: ops, n={level}")]), expected);
    }
    assert_eq!(pictures.len(), 2);
}

/// Unlike things, such as workloads, have no common axis: a picture has the levels of the factor that changes least.
#[test]
fn unlike_levels_have_a_picture_each() {
    let levels = |name: &str, levels: [&str; 2]| WantedFactor {
        name: name.to_owned(),
        levels: levels.map(str::to_owned).to_vec(),
    };
    let arms = ["fs=ext4,load=mail", "fs=ext4,load=db", "fs=xfs,load=mail", "fs=xfs,load=db"];
    let rule = RuleWanted::Factorial {
        factors: vec![levels("fs", ["ext4", "xfs"]), levels("load", ["mail", "db"])],
        min_runs: 2,
        max_runs: 2,
        until_ci: None,
        stop: Corrected,
        order: InBlocks,
        tables: FactorialTables::default(),
    };
    let runs: Vec<(usize, f64)> = [(0, 100.0), (1, 90_000.0), (2, 130.0), (3, 60_000.0)].repeat(2);
    let blocks = experiment::blocks(&recorded(rule, &arms, &runs), None, None);
    let titles: Vec<String> = pictures(blocks).into_keys().collect();
    assert_eq!(titles, ["Cells: ops, load=db", "Cells: ops, load=mail"]);
}

#[test]
fn the_interval_of_a_cell_ends_at_0() {
    let levels = ["ext4", "xfs"].map(str::to_owned).to_vec();
    let factors = vec![WantedFactor { name: "fs".to_owned(), levels }];
    let tables = FactorialTables::default();
    let rule = RuleWanted::Factorial {
        factors,
        min_runs: 2,
        max_runs: 2,
        until_ci: None,
        stop: Corrected,
        order: InBlocks,
        tables,
    };
    let runs = [(0, 1.0), (1, 2.0), (0, 101.0), (1, 102.0)];
    let blocks = experiment::blocks(&recorded(rule, &["fs=ext4", "fs=xfs"], &runs), None, None);
    let cells = table(&blocks, "Cells");
    let interval = cells.headings().iter().position(|name| *name == "95 % interval").unwrap();
    for row in &cells.rows {
        assert!(row[interval].starts_with("0.0 to ") || row[interval].starts_with("0 to "), "{row:?}");
    }
    let picture = pictures(blocks).remove("Cells: ops").unwrap();
    // The axis has no negative label.
    let drawing = picture.drawing.to_string();
    assert!(!drawing.contains(">-") && !drawing.contains(">\n-"), "{drawing}");
}

/// The space after the runs of two workloads, and of two sides, which have a line each.
#[test]
fn the_used_space_is_a_curve_over_the_numbers_of_snapshots() {
    let factor = |name: &str, levels: &[&str]| WantedFactor {
        name: name.to_owned(),
        levels: levels.iter().map(|level| (*level).to_owned()).collect(),
    };
    let drawn = |factors: Vec<WantedFactor>, tables: FactorialTables, mib: [f64; 4]| {
        let rule = RuleWanted::Factorial {
            factors,
            min_runs: 2,
            max_runs: 2,
            until_ci: None,
            stop: Corrected,
            order: InBlocks,
            tables,
        };
        let runs: Vec<(usize, f64)> = (0..8).map(|run| (run % 4, 100.0)).collect();
        let mut recorded = recorded(rule, &["0a", "0b", "30a", "30b"], &runs);
        for (n, run) in recorded.runs.iter_mut().enumerate() {
            let used = (mib[run.arm] + if n < 4 { 1.0 } else { -1.0 }) * 1024.0 * 1024.0;
            run.observation.figures.insert("space.after".to_owned(), used);
        }
        pictures(experiment::blocks(&recorded, None, None)).remove("Used space over snapshots")
    };
    let snapshots = || factor("snapshots", &["0", "30"]);
    let study = FactorialTables { study: Some("snapshots".to_owned()), ..FactorialTables::default() };
    let found = drawn(vec![snapshots(), factor("threads", &["1", "2"])], study, [100.0, 110.0, 200.0, 220.0]).unwrap();
    assert_eq!(points(&found), [(0.0, 100.0), (0.0, 110.0), (30.0, 200.0), (30.0, 220.0)]);
    assert_eq!((found.table.rows[3][1].as_str(), found.legend.len()), ("220.0", 0));
    assert!(found.drawing.to_string().contains("d=\"M0,"), "{}", found.drawing);
    let sides = FactorialTables { columns: Some("side".to_owned()), ..FactorialTables::default() };
    let factors = || vec![snapshots(), factor("side", &["zfs", "ufs"])];
    let found = drawn(factors(), sides, [100.0, 110.0, 200.0, 220.0]).unwrap();
    assert_eq!(points(&found), [(0.0, 100.0), (30.0, 200.0), (0.0, 110.0), (30.0, 220.0)]);
    assert_eq!(found.legend, [("a", "zfs".to_owned()), ("b", "ufs".to_owned())]);
    let names = vec![factor("snapshots", &["none", "many"]), factor("side", &["zfs", "ufs"])];
    assert!(drawn(names, FactorialTables::default(), [1.0; 4]).is_none());
}

/// Each level beside the first one, and the normal quantiles of each: the points, with the line through the quartiles.
#[test]
fn tested_levels_have_their_distributions_and_normal_quantiles() {
    let levels = ["0", "30", "60"].map(str::to_owned).to_vec();
    let factors = vec![WantedFactor { name: "snapshots".to_owned(), levels }];
    let tables = FactorialTables { study: Some("snapshots".to_owned()), ..FactorialTables::default() };
    let rule = RuleWanted::Factorial {
        factors,
        min_runs: 3,
        max_runs: 3,
        until_ci: None,
        stop: Corrected,
        order: InBlocks,
        tables,
    };
    let values = [103.0, 80.0, 60.0, 101.0, 82.0, 60.0, 102.0, 81.0, 60.0];
    let runs: Vec<(usize, f64)> = values.iter().enumerate().map(|(n, ops)| (n % 3, *ops)).collect();
    let names = ["snapshots=0", "snapshots=30", "snapshots=60"];
    let blocks = experiment::blocks(&recorded(rule, &names, &runs), None, None);
    assert_eq!(
        table(&blocks, "t-tests: ops over snapshots, mean of snapshots=0 − mean of the level").rows[0][6],
        "loss"
    );
    let pictures = pictures(blocks);
    for name in names {
        let picture = &pictures[&format!("Normal QQ plots: ops over snapshots, {name}")];
        let mut expected: Vec<f64> = runs.iter().filter(|(n, _)| names[*n] == name).map(|(_, ops)| *ops).collect();
        expected.sort_by(f64::total_cmp);
        let drawn = points(picture);
        assert_eq!(drawn.iter().map(|(_, y)| *y).collect::<Vec<_>>(), expected, "{name}");
        assert!(drawn[1].0.abs() < 1e-9 && (drawn[2].0 - 0.8694).abs() < 0.001, "{drawn:?}");
        let test = if name == names[2] { "not tested" } else { "W 1, p 1" };
        assert!(picture.note.ends_with(&format!("Shapiro–Wilk: {test}.")), "{}", picture.note);
        assert!(picture.drawing.to_string().contains("rule dashed"));
    }
}
