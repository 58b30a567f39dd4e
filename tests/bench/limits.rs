//! `cargo bench --bench limits`: the rate of wmlrun relative to that of a bare loop with the same system calls.
//!
//! Each row runs a bare loop (`bare.rs`) and wmlrun in the same directory, in alternating short slices (ABBA), and
//! computes the ratio of the rates for each pair, so that other load on the machine affects both alike. The median
//! ratio has a 95 % bootstrap interval. If fio is installed, its rate for the same work is reported too. The rows
//! `fio-…` compare wmlrun with fio in alternating slices, and `posts` compares many threads with few.
//!
//!     cargo bench --bench limits -- [--dir DIR] [--pairs N] [--seconds S] [--write FILE] [--before BINARY] [ROW…]
//!
//! With `--before`, each row compares this build with that of another state of the program instead, in alternating
//! slices too.
//!
//! The bare loops count their operations and check the results of their calls, and do nothing else. They pick files in
//! the same order as wmlrun.

#![allow(clippy::disallowed_methods, reason = "a separate program")]
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, missing_docs, reason = "a separate program")]

mod bare;
mod options;
mod pairs;
mod peers;
mod rows;
mod scaling;

use options::PairOptions;
use pairs::{interval, median};
use rows::{ROWS, Row};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The options of the command line.
struct Options {
    common: PairOptions,
    seconds: f64,
    /// The document whose table is replaced.
    write: Option<PathBuf>,
    /// The binary of another build, to compare with.
    before: Option<PathBuf>,
}

/// The binary of this build.
const OWN: &str = env!("CARGO_BIN_EXE_wmlrun");

fn options() -> Options {
    let (mut seconds, mut write, mut before) = (1.0, None, None);
    let common = PairOptions::read(|option, value| match option {
        "--seconds" => seconds = value.parse().expect("seconds"),
        "--write" => write = Some(value.into()),
        "--before" => before = Some(value.into()),
        other => panic!("unknown option {other}"),
    });
    Options { common, seconds, write, before }
}

fn main() {
    let options = options();
    let dir = options.common.dir.join(format!("limits-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory to work in");
    if let Some(before) = &options.before {
        compare_builds(before, &dir, &options);
        let _ = std::fs::remove_dir_all(&dir);
        return;
    }
    let mut table = String::from(
        "| work | threads | bare loop, ops/s | wmlrun / bare | 95 % interval | wanted | fio / bare |\n|---|---|---|---|---|---|---|\n",
    );
    println!("{} pairs of {} s on {}", options.common.pairs, options.seconds, options.common.dir.display());
    for row in ROWS.iter().filter(|r| options.common.is_wanted(r.name)) {
        let line = measure(row, &dir, &options);
        println!("{line}");
        let _ = writeln!(table, "{line}");
    }
    let mut head = format!("\n{}", peers::HEAD);
    for peer in peers::PEERS.iter().filter(|p| options.common.is_wanted(p.name)) {
        let Some(line) = peers::measure(peer, &dir, &options) else { continue };
        println!("{line}");
        let _ = writeln!(table, "{}{line}", std::mem::take(&mut head));
    }
    let mut head = format!("\n{}", scaling::HEAD);
    for row in scaling::SCALING_ROWS.iter().filter(|r| options.common.is_wanted(r.name)) {
        let line = scaling::measure(row, &dir, &options);
        println!("{line}");
        let _ = writeln!(table, "{}{line}", std::mem::take(&mut head));
    }
    let _ = std::fs::remove_dir_all(&dir);
    if let Some(file) = &options.write {
        write(file, &table, &options);
    }
}

/// Compares this build with another one, row by row.
fn compare_builds(before: &Path, dir: &Path, options: &Options) {
    println!("{} pairs of {} s on {}", options.common.pairs, options.seconds, options.common.dir.display());
    println!("| work | before, ops/s | now / before | 95 % interval |\n|---|---|---|---|");
    for row in ROWS.iter().filter(|r| options.common.is_wanted(r.name)) {
        let path = dir.join("script.wml");
        std::fs::write(&path, (row.script)()).expect("the script");
        let rate = |binary: &Path, name: &str| {
            let dir = dir.join(name);
            std::fs::create_dir_all(&dir).expect("a directory for a build");
            wmlrun(binary, &path, &dir, options.seconds, row.populate)
        };
        let (old, new) = (|| rate(before, "before"), || rate(Path::new(OWN), "own"));
        // One slice of each is not counted: it creates the files and fills the caches.
        let _ = (old(), new());
        let (ratios, rates) = alternate(options.common.pairs, old, new);
        let (low, high) = interval(&ratios);
        println!("| {} | {:.0} | {:.3} | {low:.3} … {high:.3} |", row.about, median(&rates), median(&ratios));
        for name in ["before", "own"] {
            let _ = std::fs::remove_dir_all(dir.join(name));
        }
    }
}

/// Measures a row and returns its line of the table.
fn measure(row: &Row, dir: &Path, options: &Options) -> String {
    let (bare_dir, own_dir) = (dir.join("bare"), dir.join("own"));
    std::fs::create_dir_all(&bare_dir).expect("a directory for the bare loop");
    std::fs::create_dir_all(&own_dir).expect("a directory for wmlrun");
    let script = (row.script)();
    let path = dir.join("script.wml");
    std::fs::write(&path, script).expect("the script");
    let own = || wmlrun(Path::new(OWN), &path, &own_dir, options.seconds, row.populate);
    // One slice of each is not counted: it creates the files and fills the caches.
    own();
    let mut loops = (row.bare)(if row.same_files { &own_dir } else { &bare_dir });
    let mut bare = |seconds: f64| {
        let rate = loops.run(seconds);
        if row.populate {
            // wmlrun's trees are removed after each slice too. A file system that is filled with earlier trees would
            // behave differently.
            std::fs::remove_dir_all(&bare_dir).expect("the bare loop's files are removed");
            std::fs::create_dir_all(&bare_dir).expect("a directory for the bare loop");
        }
        rate
    };
    bare(options.seconds.min(0.5));
    let (ratios, rates) = alternate(options.common.pairs, || bare(options.seconds), own);
    let fio = row
        .fio
        .and_then(|args| {
            let file = peers::largest(&own_dir)?.0;
            let name = format!("--filename={}", file.file_name()?.to_string_lossy());
            fio(&[args, &[name.as_str()]].concat(), file.parent()?, options.seconds, row.threads)
        })
        .map_or("–".to_owned(), |rate| format!("{:.2}", rate / median(&rates)));
    let _ = std::fs::remove_dir_all(&bare_dir);
    let _ = std::fs::remove_dir_all(&own_dir);
    let (low, high) = interval(&ratios);
    format!(
        "| {} | {} | {:.0} | {:.3} | {low:.3} … {high:.3} | {} | {fio} |",
        row.about,
        row.threads,
        median(&rates),
        median(&ratios),
        row.wanted
    )
}

/// Measures two rates in pairs. Returns the ratio of the second rate to the first for each pair, and the first rates.
fn alternate(pairs: usize, first: impl FnMut() -> f64, second: impl FnMut() -> f64) -> (Vec<f64>, Vec<f64>) {
    pairs::alternate(pairs, first, second).into_iter().map(|(first, second)| (second / first, first)).unzip()
}

/// Runs wmlrun and returns its rate in operations per second; with `populate`, that of the population in files per
/// second.
fn wmlrun(binary: &Path, script: &Path, dir: &Path, seconds: f64, populate: bool) -> f64 {
    // The bare loop for population has a single thread. In other rows population is not part of the rate.
    let threads = if populate { "1" } else { "2" };
    let document = run(binary, script, dir, &["--runtime", &seconds.to_string(), "--populate-threads", threads]);
    let run = &document["runs"][0];
    if populate {
        let set = &run["filesets"][0];
        let _ = Command::new(binary).arg("clean").arg(dir).output();
        return set["files"].as_f64().unwrap() / set["populate_seconds"].as_f64().unwrap();
    }
    run["summary"]["ops_per_s"].as_f64().expect("a rate")
}

/// Runs wmlrun and returns its result document.
fn run(binary: &Path, script: &Path, dir: &Path, words: &[&str]) -> serde_json::Value {
    let json = dir.with_extension("json");
    let status = Command::new(binary)
        .arg(script)
        .args(["--quiet", "--format", "none", "--on-error", "stop", "--no-quiesce"])
        .args(words)
        .arg("--dir")
        .arg(dir)
        .arg("--json")
        .arg(&json)
        .stdout(Stdio::null())
        .status()
        .expect("wmlrun starts");
    assert!(status.success(), "wmlrun: {status}");
    let text = std::fs::read_to_string(&json).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

/// Runs fio and returns its rate in operations per second, or `None` when fio is missing or fails.
fn fio(args: &[&str], dir: &Path, seconds: f64, threads: usize) -> Option<f64> {
    let out = Command::new("fio")
        .args(["--name=x", "--output-format=json", "--time_based", "--thread", "--group_reporting"])
        .arg(format!("--runtime={}", seconds.max(1.0)))
        .arg(format!("--numjobs={threads}"))
        .arg(format!("--directory={}", dir.display()))
        .args(args)
        .output()
        .ok()
        .filter(|o| o.status.success())?;
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).ok()?;
    let job = &value["jobs"][0];
    Some(job["read"]["iops"].as_f64()? + job["write"]["iops"].as_f64()?)
}

/// Replaces the text between the markers of a document by the table, with processor, kernel and date.
fn write(file: &Path, table: &str, options: &Options) {
    const BEGIN: &str = "<!-- limits: begin -->";
    const END: &str = "<!-- limits: end -->";
    let run = |program: &str, args: &[&str]| {
        Command::new(program)
            .args(args)
            .output()
            .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
            .unwrap_or_default()
    };
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": ").map(|(_, m)| m.to_owned()))
        .unwrap_or_default();
    let head = format!(
        "{}, {} processors, Linux {}, {}: {} pairs of {} s.\n\n",
        cpu,
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        run("uname", &["-r"]),
        run("date", &["+%Y-%m-%d"]),
        options.common.pairs,
        options.seconds
    );
    let old = std::fs::read_to_string(file).unwrap_or_else(|_| format!("{BEGIN}\n{END}\n"));
    let (Some(begin), Some(end)) = (old.find(BEGIN), old.find(END)) else {
        eprintln!("{} has no markers `{BEGIN}` and `{END}`", file.display());
        return;
    };
    let new = format!("{}{BEGIN}\n{head}{table}{}", &old[..begin], &old[end..]);
    std::fs::write(file, new).expect("the document");
}
