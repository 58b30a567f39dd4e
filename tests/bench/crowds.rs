//! The rows that compare wmlrun with itself: many threads with few, which do the same work on the same files.
//!
//! Both are measured from when every thread has had its first rounds, so slices are longer than those of the other rows.

use super::{Options, alternate, interval, median, run};
use std::path::Path;

/// Seconds before measuring, and measured: two thousand threads on two processors come round in some four seconds.
const SLICE: [&str; 4] = ["--warmup", "5", "--runtime", "10"];

/// One row.
pub(super) struct Crowd {
    pub(super) name: &'static str,
    about: &'static str,
    /// What is run, with the words that make it of few threads, and of many.
    personality: &'static str,
    few: &'static str,
    many: &'static str,
    rest: &'static [&'static str],
    /// Whose operations are counted.
    flowops: &'static [&'static str],
    wanted: &'static str,
}

pub(super) const CROWDS: &[Crowd] = &[Crowd {
    name: "posts",
    about: "`oltp_sync`, posts with 2,000 shadows of 256k each, in 10 s after 5 s; with 200",
    personality: "oltp_sync",
    few: "nshadows=200",
    many: "nshadows=2000",
    rest: &["--set", "filesize=100m", "--set", "memperthread=256k"],
    flowops: &["shadow-post-lg", "shadow-post-dbwr"],
    wanted: "1.0",
}];

/// The head of their table.
pub(super) const HEAD: &str =
    "| work | few threads, ops/s | many / few | 95 % interval | wanted |\n|---|---|---|---|---|\n";

/// The row's line.
pub(super) fn measure(crowd: &Crowd, dir: &Path, options: &Options) -> String {
    let dir = dir.join(crowd.name);
    std::fs::create_dir_all(&dir).expect("a directory");
    let rate = |threads: &str| {
        let words: Vec<&str> = SLICE.iter().chain(crowd.rest).copied().chain(["--set", threads]).collect();
        let document = run(Path::new(crowd.personality), &dir, &words);
        let flowops = document["runs"][0]["flowops"].as_array().expect("flowops").iter();
        let counted = flowops.filter(|flowop| crowd.flowops.iter().any(|name| flowop["name"] == *name));
        let rates: Vec<f64> = counted.map(|flowop| flowop["ops_per_s"].as_f64().expect("a rate")).collect();
        assert_eq!(rates.len(), crowd.flowops.len(), "each of the flowops is there");
        rates.iter().sum::<f64>()
    };
    let (ratios, rates) = alternate(options.pairs, || rate(crowd.few), || rate(crowd.many));
    let (low, high) = interval(&ratios);
    let (rate, ratio) = (median(&rates), median(&ratios));
    format!("| {} | {rate:.0} | {ratio:.3} | {low:.3} … {high:.3} | {} |", crowd.about, crowd.wanted)
}
