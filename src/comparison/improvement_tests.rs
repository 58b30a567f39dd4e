//! Tests of improvements in experiments: tables of published reports, from figures that fit them.

#![allow(clippy::unwrap_used)]

use super::formats::shown::{latex, text};
use super::improvement::improvements;
use super::pivot::ratio_of_samples;
use super::{AsJson as _, FactorLevels, Factorial, FactorialDesign, FactorialTables, ImprovementForm};
use crate::analysis::{Direction, PrecisionRule, RepeatState};
use crate::import::{Metric, Observation};
use std::collections::BTreeMap;

/// The result of an experiment with these factors, of which the last is the file system: `vxfs`, and two with which it is
/// compared. `percent` has the improvements of each cell of the other factors over both.
fn result(metric: &str, others: &[(&str, &[&str])], percent: &[[f64; 2]], form: Option<ImprovementForm>) -> Factorial {
    let factor = |name: &str, levels: &[&str]| FactorLevels {
        name: name.to_owned(),
        levels: levels.iter().map(|level| (*level).to_owned()).collect(),
    };
    let systems = factor("fs", &["vxfs", "ufs", "ufs+log"]);
    let factors: Vec<FactorLevels> =
        others.iter().map(|(name, levels)| factor(name, levels)).chain([systems]).collect();
    let metric: Metric = metric.parse().unwrap();
    let cells = percent.iter().enumerate().flat_map(|(n, [ufs, log])| {
        let own = 40.0 + 7.3 * n as f64;
        let other = |percent: f64| {
            if metric.to_string() == "seconds" { 1.0 + percent / 100.0 } else { 1.0 / (1.0 + percent / 100.0) }
        };
        [own, own * other(*ufs), own * other(*log)]
    });
    // Three runs of each cell, a little apart.
    let run =
        |value: f64| Observation { figures: BTreeMap::from([(metric.to_string(), value)]), ..Observation::default() };
    let runs = |mean: f64| [0.999, 1.0, 1.001].map(|share| run(mean * share)).to_vec();
    let cells: Vec<_> = cells.map(|mean| ("cell".to_owned(), runs(mean))).collect();
    let tables = FactorialTables {
        columns: Some("fs".to_owned()),
        beside: others.iter().skip(1).map(|(name, _)| (*name).to_owned()).collect(),
        over: ["ufs", "ufs+log"].map(str::to_owned).to_vec(),
        improvement: form,
        ..FactorialTables::default()
    };
    let design = FactorialDesign {
        name: "report",
        factors: &factors,
        metrics: &[metric],
        own: &[],
        target: None,
        stop: PrecisionRule::Corrected,
        planned_runs: None,
        in_order: false,
        in_blocks: false,
        tables: &tables,
    };
    design.result(RepeatState::Complete, &cells)
}

/// The table of improvements in the text of a result.
fn table(result: &Factorial) -> String {
    let text = text(result);
    let from = text.find("\nimprovement").unwrap_or_else(|| panic!("{text}")) + 1;
    let table = &text[from..];
    table[table.find("\n\n").unwrap_or(0) + 2..].split("\n\n").next().unwrap().trim_end().to_owned()
}

fn cells(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

/// A vendor report of 2001: bandwidth of `mkfile` on two volumes.
#[test]
fn files_of_four_sizes_on_two_volumes() {
    let percent = [98, 97, 121, 117, 76, 81, 106, 105, 61, 68, 73, 83, 48, 58, 73, 78];
    let pairs: Vec<[f64; 2]> = percent.chunks(2).map(|pair| [pair[0], pair[1]].map(f64::from)).collect();
    let found = result("mib", &[("size", &["1g", "2g", "4g", "8g"]), ("volume", &["RAID-0", "RAID-5"])], &pairs, None);
    let expected = "\
size  RAID-0 over ufs  RAID-0 over ufs+log  RAID-5 over ufs  RAID-5 over ufs+log
1g               98 %                 97 %            121 %                117 %
2g               76 %                 81 %            106 %                105 %
4g               61 %                 68 %             73 %                 83 %
8g               48 %                 58 %             73 %                 78 %";
    assert_eq!(table(&found), expected, "{}", text(&found));
    assert!(text(&found).contains("\nimprovement of vxfs in mib\n\n"), "{}", text(&found));
    let latex = latex(&found);
    assert!(latex.contains("1g & 98 \\% & 97 \\% & 121 \\% & 117 \\% \\\\\n"), "{latex}");
    let json: serde_json::Value = serde_json::from_str(&found.json()).unwrap();
    let first = &json["pivots"][0]["rows"][0]["improvements"][1];
    assert_eq!((&first["of"], &first["over"]), (&"vxfs".into(), &"ufs+log".into()), "{first}");
    assert!((first["factor"].as_f64().unwrap() - 1.97).abs() < 1e-9, "{first}");
}

/// Its times of `touch_files` by one process and by one per directory.
#[test]
fn many_small_files_by_one_process_and_by_many() {
    let others: [(&str, &[&str]); 2] = [("volume", &["RAID-0", "RAID-5"]), ("processes", &["1", "100"])];
    let percent = [[79.0, 19.0], [45.0, 338.0], [67.0, 21.0], [57.0, 310.0]];
    let found = result("seconds", &others, &percent, None);
    let expected = "\
volume  1 over ufs  1 over ufs+log  100 over ufs  100 over ufs+log
RAID-0        79 %            19 %          45 %             338 %
RAID-5        67 %            21 %          57 %             310 %";
    assert_eq!(table(&found), expected, "{}", text(&found));
    // 1.79 is the factor of the first.
    let both = table(&result("seconds", &others, &percent, Some(ImprovementForm::Both)));
    let wanted = ["RAID-0", "1", "79", "%", "1.79", "19", "%", "1.19"];
    assert_eq!(cells(&both)[0], wanted, "{both}");
    let factor = table(&result("seconds", &others, &percent, Some(ImprovementForm::Factor)));
    assert_eq!(cells(&factor)[1], ["RAID-5", "1.67", "1.21", "1.57", "4.10"], "{factor}");
}

/// Its times of `cp`. Six columns are too wide for a terminal, so that each number of copies has a line.
#[test]
fn copies_between_four_pairs_of_volumes() {
    let volumes: &[&str] = &["0 to 0", "0 to 5", "5 to 0", "5 to 5"];
    let percent =
        [[32, 34, 23, 30, 18, 26], [33, 52, 15, 19, 15, 21], [63, 80, 23, 38, 11, 19], [51, 79, 10, 24, 10, 23]];
    let pairs: Vec<[f64; 2]> = percent
        .iter()
        .flatten()
        .copied()
        .collect::<Vec<i32>>()
        .chunks(2)
        .map(|pair| [pair[0], pair[1]].map(f64::from))
        .collect();
    let found = result("seconds", &[("volumes", volumes), ("copies", &["1:1", "1:5", "1:10"])], &pairs, None);
    let narrow = table(&found);
    assert!(narrow.starts_with("volumes  copies  over ufs  over ufs+log\n0 to 0   1:1"), "{narrow}");
    assert_eq!(cells(&narrow)[11], ["5", "to", "5", "1:10", "10", "%", "23", "%"], "{narrow}");
    let latex = latex(&found);
    let rows = "\\midrule\n0 to 0 & 32 \\% & 34 \\% & 23 \\% & 30 \\% & 18 \\% & 26 \\% \\\\\n\
        0 to 5 & 33 \\% & 52 \\% & 15 \\% & 19 \\% & 15 \\% & 21 \\% \\\\\n\
        5 to 0 & 63 \\% & 80 \\% & 23 \\% & 38 \\% & 11 \\% & 19 \\% \\\\\n\
        5 to 5 & 51 \\% & 79 \\% & 10 \\% & 24 \\% & 10 \\% & 23 \\% \\\\\n\\bottomrule\n";
    assert!(
        latex.contains("volumes & 1:1 over ufs & 1:1 over ufs+log & 1:5 over ufs") && latex.contains(rows),
        "{latex}"
    );
}

/// Its times of untar and fsck.
#[test]
fn two_commands_over_two_file_systems() {
    let found = result("seconds", &[("command", &["untar", "fsck"])], &[[50.0, 69.0], [70.0, 84.0]], None);
    assert_eq!(
        table(&found),
        "command  over ufs  over ufs+log\nuntar        50 %          69 %\nfsck         70 %          84 %"
    );
}

/// Four runs that did nothing lose all against four that did something, in rates and times.
#[test]
fn a_loss_of_all_is_no_chance() {
    let columns = ["a", "b"].map(str::to_owned);
    let runs = [[5.0, 7.0, 4.0, 9.0], [0.0; 4]];
    let ratio = |[a, b]: [usize; 2]| ratio_of_samples([&runs[a], &runs[b]]);
    for (direction, over) in [(Direction::HigherIsBetter, 0), (Direction::LowerIsBetter, 1)] {
        let means = [Some(6.25), Some(0.0)];
        let found = improvements(&columns, &columns[over..=over], &means, direction, Some(&ratio));
        assert_eq!((found[0].factor, found[0].may_be_chance), (Some(0.0), false), "{direction:?}");
    }
}

/// An improvement that the runs do not show is marked, as are those of single runs.
#[test]
fn an_improvement_that_may_be_chance_is_marked() {
    let found = result("mib", &[("command", &["mkfile"])], &[[0.02, -20.0]], None);
    let table = table(&found);
    assert_eq!(cells(&table)[0], ["mkfile", "0", "%?", "-20", "%"], "{table}");
    assert!(table.ends_with("\n?: may be chance (95 % interval of the ratio)"), "{table}");
}
