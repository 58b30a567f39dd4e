//! `cargo bench --features mpi --bench ranks`: the time of wmlrun's phases under `mpirun` relative to that of a program
//! in C with MPI that does the same work (`ranks.c`).
//!
//! The work is that of the personalities `ior_hard` and `mdtest_hard`. Both sides run in alternation, with the order
//! reversed in every other pair. The time of a phase is that from its common start to its end on the last rank. The
//! figure is the ratio of the rates, pair by pair, with a 95 % bootstrap interval of the median.
//!
//!     cargo bench --features mpi --bench ranks -- [--dir DIR] [--pairs N] [--ranks N] [--scale X] [SHAPE…]
//!
//! Needs `mpicc` and `mpirun`. `--scale` multiplies the number of records and files.

#![allow(clippy::disallowed_methods, reason = "a separate program")]
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a separate program")]

mod options;
mod pairs;

use options::PairOptions;
use pairs::{alternate, interval, median};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The seconds of each phase by its name.
type PhaseSeconds = BTreeMap<String, f64>;

/// A personality that both sides make.
struct Shape {
    name: &'static str,
    /// The variable that says how much each rank does, and its value at scale 1.
    variable: &'static str,
    count: u64,
    /// The names of the phases in their order, and what is counted. A phase without a count is not reported.
    phases: &'static [(&'static str, &'static str)],
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "ior_hard",
        variable: "records",
        count: 15_000,
        phases: &[("write", "records"), ("flush", ""), ("read", "records")],
    },
    Shape {
        name: "mdtest_hard",
        variable: "nfiles",
        count: 25_000,
        phases: &[("create", "files"), ("stat", "files"), ("read", "files"), ("delete", "files")],
    },
];

/// A process of one more phase, whose start is the end of the last one.
const LAST: &str = "\ndefine process name=last,phase=99 {\n  thread name=last {\n\
    flowop print name=last,value=\"\"\n  flowop finishoncount name=over,value=1\n  }\n}\n";

struct Options {
    common: PairOptions,
    ranks: u64,
    scale: f64,
}

fn options() -> Options {
    let (mut ranks, mut scale) = (8, 1.0);
    let common = PairOptions::read(|option, value| match option {
        "--ranks" => ranks = value.parse().expect("a number of ranks"),
        "--scale" => scale = value.parse().expect("a factor"),
        other => panic!("unknown option {other}"),
    });
    Options { common, ranks, scale }
}

fn main() {
    let options = options();
    let dir = options.common.dir.join(format!("ranks-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory to work in");
    let program = dir.join("ranks");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/ranks.c");
    let built = Command::new("mpicc").args(["-O2", "-o"]).arg(&program).arg(source).status().expect("mpicc");
    assert!(built.success(), "mpicc: {built}");
    println!("{} ranks, {} pairs on {}\n", options.ranks, options.common.pairs, options.common.dir.display());
    println!("| work | phase | C, a second | wmlrun / C | 95 % interval |\n|---|---|---|---|---|");
    for shape in SHAPES.iter().filter(|shape| options.common.is_wanted(shape.name)) {
        measure(shape, &dir, &program, &options);
    }
    let _ = std::fs::remove_dir_all(&dir);
}

/// Measures a shape and prints the lines of its phases.
fn measure(shape: &Shape, dir: &Path, program: &Path, options: &Options) {
    let count = ((shape.count as f64 * options.scale) as u64).max(1);
    let bare = || bare(shape, dir, program, count, options);
    let own = || wmlrun(shape, dir, count, options);
    // One run of each is not counted.
    bare();
    own();
    let pairs = alternate(options.common.pairs, bare, own);
    for (phase, unit) in shape.phases.iter().filter(|(_, unit)| !unit.is_empty()) {
        let ratios: Vec<f64> = pairs.iter().map(|(bare, own)| bare[*phase] / own[*phase]).collect();
        let rates: Vec<f64> = pairs.iter().map(|(bare, _)| (count * options.ranks) as f64 / bare[*phase]).collect();
        let (low, high) = interval(&ratios);
        println!(
            "| {} | {phase} | {:.0} {unit} | {:.3} | {low:.3} … {high:.3} |",
            shape.name,
            median(&rates),
            median(&ratios)
        );
    }
}

/// Returns `mpirun` with the number of ranks.
fn mpirun(options: &Options) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &options.ranks.to_string()]);
    command
}

/// Runs the program in C.
fn bare(shape: &Shape, dir: &Path, program: &Path, count: u64, options: &Options) -> PhaseSeconds {
    let files = dir.join("bare");
    std::fs::create_dir_all(&files).expect("a directory for the program in C");
    let output = mpirun(options).arg(program).arg(shape.name).arg(&files).arg(count.to_string()).output();
    let output = output.expect("mpirun starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(&files).expect("the files of the program in C are removed");
    let text = String::from_utf8_lossy(&output.stdout);
    let phase = |line: &str| {
        let (name, seconds) = line.split_once(' ')?;
        Some((name.to_owned(), seconds.parse().ok()?))
    };
    text.lines().filter_map(phase).collect()
}

/// Runs the personality, with one more phase.
fn wmlrun(shape: &Shape, dir: &Path, count: u64, options: &Options) -> PhaseSeconds {
    let personality = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("personalities/{}.wml", shape.name));
    let text = std::fs::read_to_string(personality).expect("the personality") + LAST;
    let (script, json) = (dir.join("script.wml"), dir.join("result.json"));
    std::fs::write(&script, text).expect("the script");
    let status = mpirun(options)
        .arg(env!("CARGO_BIN_EXE_wmlrun"))
        .arg(&script)
        .args(["--quiet", "--format", "none", "--on-error", "stop", "--no-quiesce", "--mkdir", "--clean"])
        .args(["--runtime", "600", "--set", &format!("{}={count}", shape.variable)])
        .arg("--dir")
        .arg(dir.join("own"))
        .arg("--json")
        .arg(&json)
        .stdout(Stdio::null())
        .status()
        .expect("mpirun starts");
    assert!(status.success(), "wmlrun: {status}");
    let text = std::fs::read_to_string(&json).expect("a result");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let phases = document["runs"][0]["phases"].as_array().expect("phases");
    let starts: Vec<f64> = phases.iter().map(|phase| phase["start_seconds"].as_f64().expect("a start")).collect();
    let names = shape.phases.iter().map(|(name, _)| (*name).to_owned());
    names.zip(starts.windows(2).map(|pair| pair[1] - pair[0])).collect()
}
