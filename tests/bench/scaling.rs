//! The rows that compare wmlrun with many threads to wmlrun with few threads, for the same work on the same files.
//!
//! A measurement starts when every thread has completed its first iterations, so the slices are longer than those of
//! the other rows.

use super::{OWN, Options, alternate, interval, median, run};
use std::path::Path;

/// The durations of warm-up and measurement in seconds. Two thousand threads on two processors take about four seconds
/// for an iteration each.
const SLICE: [&str; 4] = ["--warmup", "5", "--runtime", "10"];

/// One row of the table.
pub(super) struct ScalingRow {
    pub(super) name: &'static str,
    about: &'static str,
    /// The personality, and the variables that set few and many threads.
    personality: &'static str,
    few: &'static str,
    many: &'static str,
    options: &'static [&'static str],
    /// The flowops whose operations are counted.
    flowops: &'static [&'static str],
    wanted: &'static str,
}

pub(super) const SCALING_ROWS: &[ScalingRow] = &[ScalingRow {
    name: "posts",
    about: "`oltp_sync`, posts with 2,000 shadows of 256k each, in 10 s after 5 s; with 200",
    personality: "oltp_sync",
    few: "nshadows=200",
    many: "nshadows=2000",
    options: &["--set", "filesize=100m", "--set", "memperthread=256k"],
    flowops: &["shadow-post-lg", "shadow-post-dbwr"],
    wanted: "1.0",
}];

/// The heading of the table.
pub(super) const HEAD: &str =
    "| work | few threads, ops/s | many / few | 95 % interval | wanted |\n|---|---|---|---|---|\n";

/// Measures a row and returns its line of the table.
pub(super) fn measure(row: &ScalingRow, dir: &Path, options: &Options) -> String {
    let dir = dir.join(row.name);
    std::fs::create_dir_all(&dir).expect("a directory");
    let rate = |threads: &str| {
        let words: Vec<&str> = SLICE.iter().chain(row.options).copied().chain(["--set", threads]).collect();
        let document = run(Path::new(OWN), Path::new(row.personality), &dir, &words);
        let flowops = document["runs"][0]["flowops"].as_array().expect("flowops").iter();
        let counted = flowops.filter(|flowop| row.flowops.iter().any(|name| flowop["name"] == *name));
        let rates: Vec<f64> = counted.map(|flowop| flowop["ops_per_s"].as_f64().expect("a rate")).collect();
        assert_eq!(rates.len(), row.flowops.len(), "every flowop is in the result");
        rates.iter().sum::<f64>()
    };
    let (ratios, rates) = alternate(options.common.pairs, || rate(row.few), || rate(row.many));
    let (low, high) = interval(&ratios);
    let (rate, ratio) = (median(&rates), median(&ratios));
    format!("| {} | {rate:.0} | {ratio:.3} | {low:.3} … {high:.3} | {} |", row.about, row.wanted)
}
