//! Tests a file set of thirty million files: its plan takes little memory, its listing has no duplicates, and the sizes
//! are exactly those of its table.

use std::collections::BTreeMap;

use crate::cmd::{Wml, number, short_or_long};

/// Most files of the server are in this table: upper bound of the size in KiB, and how many.
const ROWS: [(u64, u64); 7] = [
    (4, 21_896_732),
    (16, 5_203_484),
    (64, 2_663_177),
    (256, 1_494_911),
    (1024, 308_693),
    (1382, 10_791),
    (156 << 10, 11),
];
const FILES: u64 = 31_577_799;
const DIRECTORIES: u64 = 976_492;

/// The first number of a text, its digits grouped.
fn figure(text: &str) -> u64 {
    let digits = text.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    digits.filter(|c| *c != ',').collect::<String>().parse().unwrap()
}

/// Ends whatever takes more memory than so many MiB, also such as it only reserves.
fn within(mib: u64) -> [String; 3] {
    ["sh".to_owned(), "-c".to_owned(), format!("ulimit -v {}; exec \"$0\" \"$@\"", mib << 10)]
}

#[test]
fn the_plan_has_all_files_and_takes_little_memory() {
    let plan = Wml::new().args(["plan", "-v", "laddis_1t"]).under(within(256)).run().exits(0).stdout;
    let total = plan.lines().find(|line| line.starts_with("total:")).unwrap();
    let parts: Vec<&str> = total.split([',', ' ']).collect();
    assert!(total.contains("31,577,799 files"), "{total}");
    let directories = figure(total.split(" files in ").nth(1).unwrap());
    assert!(directories.abs_diff(DIRECTORIES) <= DIRECTORIES / 100, "{directories} directories");
    let at = parts.iter().position(|word| *word == "GiB").unwrap();
    let gib: f64 = parts[at - 1].parse().unwrap();
    assert!((gib / 768.0 - 1.0).abs() <= 0.01, "{total}");
}

/// `count` files divided among the rows as their numbers are: each its whole part, the rest by the largest fractions.
fn shares(count: u64) -> Vec<u64> {
    let mut parts: Vec<(usize, u64, u64)> =
        ROWS.iter().enumerate().map(|(row, (_, n))| (row, n * count / FILES, n * count % FILES)).collect();
    let missing = count - parts.iter().map(|(_, whole, _)| whole).sum::<u64>();
    parts.sort_by_key(|(_, _, rest)| std::cmp::Reverse(*rest));
    parts.iter_mut().take(missing as usize).for_each(|(_, whole, _)| *whole += 1);
    parts.sort_by_key(|(row, ..)| *row);
    parts.into_iter().map(|(_, whole, _)| whole).collect()
}

#[test]
fn every_path_is_listed_once_and_sizes_fill_the_rows_exactly() {
    let fraction = short_or_long("200", "1");
    let call = Wml::new().args(["plan", "laddis_1t", "--list", "--dir", "/nowhere", "--set"]);
    let output = call.args([format!("fraction={fraction}")]).run().exits(0);
    let count = FILES / fraction.parse::<u64>().unwrap();
    let mut rows = BTreeMap::new();
    let (mut last, mut lines) = ("", 0);
    for line in output.stdout.lines() {
        let (path, size) = line.rsplit_once(' ').unwrap();
        // Depth first with brothers in order: the paths ascend, so that none comes twice.
        assert!(last < path, "{path} after {last}");
        last = path;
        lines += 1;
        let size: u64 = size.parse().unwrap();
        let row = ROWS.iter().position(|(kib, _)| size <= kib << 10).unwrap();
        *rows.entry(row).or_insert(0) += 1;
    }
    assert_eq!(lines, count);
    let found: Vec<u64> = (0..ROWS.len()).map(|row| rows.get(&row).copied().unwrap_or(0)).collect();
    assert_eq!(found, shares(count));
}

#[test]
fn sixteen_threads_create_delete_open_and_stat_in_little_memory() {
    let (_, text) = wml::session::library::PERSONALITIES.iter().find(|(name, _)| *name == "laddis_1t").unwrap();
    // The personality's file set, half there, with other threads.
    let set = text.split("define process").next().unwrap().replace(",reuse", "");
    let script = format!(
        "{set}define process name=p {{ thread name=t,memsize=64k,instances=16 {{\n\
           flowop createfile name=create,filesetname=laddis,fd=1\n\
           flowop closefile name=close,fd=1\n\
           flowop deletefile name=delete,filesetname=laddis\n\
           flowop openfile name=open,filesetname=laddis,fd=1\n\
           flowop closefile name=close2,fd=1\n\
           flowop statfile name=stat,filesetname=laddis\n\
         }} }}\n"
    );
    let call = Wml::new().file("w.wml", &script).args(["w.wml", "--engine", "null", "--runtime", "0.5"]);
    let call = call.sets(&[("prealloc", "50"), ("fraction", short_or_long("10", "1"))]);
    let run = call.under(within(256 + 16)).result().run().exits(0).only_run();
    assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
    for name in ["create", "delete", "open", "stat"] {
        assert!(number(crate::cmd::flowop(&run, name), &["ops"]) > 0.0, "no {name}");
    }
}
