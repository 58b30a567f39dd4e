//! Tests `wmlrun learn`: a script that is learned from a trace of another one makes the same calls, in the same shares and
//! sizes; and what is no trace of a program is an error.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use wml::trace::{CallClass, TraceEvent, TraceReader};

use crate::cmd::{Wml, short_or_long};

/// The most points by which the share of a class differs.
const MOST_POINTS: f64 = 1.0;

/// What a trace has in the middle of its calls: at its beginning and end files are made and looked at.
struct Middle {
    shares: BTreeMap<CallClass, f64>,
    reads: Vec<i64>,
    writes: Vec<i64>,
}

impl Middle {
    fn of(trace: &Path) -> Self {
        let mut calls: Vec<(u64, CallClass, i64)> = Vec::new();
        let mut reader = TraceReader::new(BufReader::new(File::open(trace).unwrap())).unwrap();
        reader
            .for_each(|event, _| {
                if let TraceEvent::Call(call) = event {
                    calls.push((call.start, call.kind.get().class, call.result));
                }
            })
            .unwrap();
        calls.sort_unstable();
        calls = calls[calls.len() * 2 / 5..calls.len() * 4 / 5].to_vec();
        let mut shares: BTreeMap<CallClass, f64> = BTreeMap::new();
        calls.iter().for_each(|(_, class, _)| *shares.entry(*class).or_default() += 100.0 / calls.len() as f64);
        let sizes = |wanted: CallClass| {
            let mut sizes: Vec<i64> =
                calls.iter().filter(|(_, class, _)| *class == wanted).map(|call| call.2).collect();
            sizes.sort_unstable();
            sizes
        };
        Self { shares, reads: sizes(CallClass::Read), writes: sizes(CallClass::Write) }
    }
}

/// The largest distance of two distributions, and the distance that two samples of one may have: of so many draws, which for
/// the sizes of whole files are those of the files. One pair of samples in a thousand is further apart.
fn distance(a: &[i64], b: &[i64], files: usize) -> (f64, f64) {
    let below = |all: &[i64], value: i64| all.partition_point(|one| *one <= value) as f64 / all.len().max(1) as f64;
    let far = a.iter().chain(b).map(|value| (below(a, *value) - below(b, *value)).abs()).fold(0.0, f64::max);
    let draws = |all: &[i64]| all.len().clamp(1, files) as f64;
    let samples = 1.95 * (1.0 / draws(a) + 1.0 / draws(b)).sqrt();
    (far, samples.max(0.05))
}

/// Records a run of a script in a directory of its own.
fn recorded(own: &Wml, script: &str, name: &str, more: &[&str]) -> std::path::PathBuf {
    let dir = own.dir().join(name);
    fs::create_dir(&dir).unwrap();
    let trace = own.dir().join(format!("{name}.wtrace"));
    let seconds = short_or_long("2", "5");
    let binary = crate::cmd::binary();
    Wml::below(own.dir())
        .args(["record", "-o"])
        .args([&trace])
        .args(["--under"])
        .args([&dir])
        .args(["--"])
        .args([&binary])
        .args(["run", script, "--runtime", seconds, "--dir"])
        .args([&dir])
        .args(more)
        .alone()
        .run()
        .exits(0);
    trace
}

#[test]
fn a_script_that_is_learned_from_a_run_makes_the_same_calls() {
    let all = [
        ("varmail", &["--set", "nthreads=2", "--set", "nfiles=200"][..], 200),
        ("postmark", &["--set", "transactions=2000000"], 500),
        ("webserver", &["--set", "nthreads=2"], 1000),
    ];
    // The last one is for the long mode.
    for (script, more, files) in all.into_iter().take(short_or_long(2, 3)) {
        let own = Wml::new();
        let trace = recorded(&own, script, "a", more);
        let learned = Wml::new().args(["learn"]).args([&trace]).run().exits(0);
        let path = own.dir().join("learned.wml");
        fs::write(&path, &learned.stdout).unwrap();
        Wml::new().args(["check"]).args([&path]).run().exits(0);
        let again = recorded(&own, path.to_str().unwrap(), "b", &[]);
        let (a, b) = (Middle::of(&trace), Middle::of(&again));
        for class in a.shares.keys().chain(b.shares.keys()) {
            let share = |of: &Middle| of.shares.get(class).copied().unwrap_or(0.0);
            let points = (share(&a) - share(&b)).abs();
            let name = class.name();
            assert!(points <= MOST_POINTS, "{script}: {name} {} and {} %", share(&a), share(&b));
        }
        for (what, a, b) in [("reads", &a.reads, &b.reads), ("writes", &a.writes, &b.writes)] {
            let (far, most) = distance(a, b, files);
            assert!(far <= most, "{script}: the sizes of {what} are {far} apart, {most} is allowed");
        }
    }
}

#[test]
fn what_is_no_trace_or_an_incomplete_one_is_not_learned_from() {
    let own = Wml::new().file("x", "no trace");
    let foreign = own.args(["learn", "x"]).run().exits(2);
    assert!(foreign.stderr.contains("it is no trace"), "{}", foreign.stderr);
    let own = Wml::new();
    let trace = recorded(&own, "varmail", "a", &["--set", "nthreads=1"]);
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 40]).unwrap();
    let refused = Wml::new().args(["learn"]).args([&trace]).run().exits(2);
    assert!(refused.stderr.contains("incomplete"), "{}", refused.stderr);
    let learned = Wml::new().args(["learn", "--incomplete"]).args([&trace]).run().exits(0);
    assert!(learned.stdout.contains("define process"), "{}", learned.stdout);
}
