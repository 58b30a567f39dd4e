//! Tests that a result agrees with itself: the intervals and the histogram of each flowop add up to its totals.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cmd::{Wml, count, flowops, memory, number, short_or_long};
use crate::scripts::personality;

/// Intervals and histograms of a run against its totals.
#[track_caller]
pub(crate) fn assert_adds_up(run: &Value) {
    let intervals = run["intervals"].as_array().unwrap();
    for (i, flowop) in flowops(run).iter().enumerate() {
        for key in ["ops", "bytes"] {
            let sum: u64 = intervals.iter().map(|interval| count(&interval["flowops"][i], key)).sum();
            assert_eq!(sum, count(flowop, key), "`{key}` of {} in all intervals", flowop["name"]);
        }
        let histogram = wml::result::hdr::decode(flowop["histogram"].as_str().unwrap()).unwrap();
        assert_eq!(histogram.count, count(flowop, "ops"), "latencies of {} in its histogram", flowop["name"]);
    }
    let (mut end, mut seconds) = (0.0, 0.0);
    for interval in intervals {
        let (t, length) = (number(interval, &["t"]), number(interval, &["seconds"]));
        assert!((t - length - end).abs() < 1e-6, "an interval begins at {}, the last one ended at {end}", t - length);
        (end, seconds) = (t, seconds + length);
    }
    let measured = number(run, &["measured_seconds"]);
    assert!(intervals.is_empty() || (seconds - measured).abs() < 1e-6, "{seconds} s of {measured} s");
}

/// The runs of a script on a set of 50 small files in memory.
#[track_caller]
fn runs(script: &str, args: &[&str], code: i32) -> Vec<Value> {
    let set = "define fileset name=data,path=$dir,entries=50,dirwidth=20,size=4k,prealloc=100\n";
    let call = Wml::below(&memory()).file("x.wml", &format!("{set}{script}")).args(["x.wml", "--no-quiesce"]);
    let output = call.args(args).result().run().exits(code);
    let runs = output.result()["runs"].as_array().unwrap().clone();
    assert!(!runs.is_empty(), "{}", output.shown());
    runs.iter().for_each(assert_adds_up);
    runs
}

const READERS: &str =
    "define process name=p { thread name=t,instances=40 { flowop statfile name=s,filesetname=data } }\n";

/// A rate that hardly varies.
const PACED: &str = "define process name=p { thread name=t { flowop statfile name=s,filesetname=data flowop delay name=d,value=0.001 } }\n";

/// More threads than processors: when the gate opens the controller is the last to get one.
#[test]
fn no_operation_is_lost_before_the_first_sample() {
    let few = [("nfiles", "200")];
    let call =
        Wml::below(&memory()).args(["webserver", "--runtime", "0.2", "--no-quiesce", "--interval", "0.06"]).sets(&few);
    assert_adds_up(&call.result().run().exits(0).only_run());
}

#[test]
fn every_length_of_run_and_interval_adds_up() {
    for (runtime, interval) in [("0.05", "1"), ("0.17", "0.05"), ("0.22", "0.2"), ("0.15", "0.01")] {
        let runs = runs(READERS, &["--runtime", runtime, "--interval", interval], 0);
        assert_eq!(runs.len(), 1);
    }
}

#[test]
fn a_warm_up_is_in_no_interval() {
    let run = runs(READERS, &["--runtime", "0.5", "--warmup", "0.3", "--interval", "0.2"], 0).remove(0);
    assert!(count(&run["warmup"], "ops") > 0);
    let left_out: u64 = run["warmup"]["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|interval| interval["flowops"].as_array().unwrap())
        .map(|flowop| count(flowop, "ops"))
        .sum();
    assert_eq!(left_out, count(&run["warmup"], "ops"), "the operations of the warm-up are in its intervals");
    let name = run["intervals"][0]["flowops"][0]["name"].as_str().unwrap();
    assert_eq!(name.split('/').count(), 3, "{name}");
    // A rate that is held is steady from the start; noise of a busy machine only makes the warm-up longer.
    let words = ["--runtime", "1.5", "--warmup", "auto", "--interval", "0.05"];
    let run = runs(PACED, &words, 0).remove(0);
    let warmed = run["warmup"]["seconds"].as_f64().unwrap();
    assert!((0.95..=1.8).contains(&warmed), "twenty intervals at least, and at most as long as the run: {warmed}");
    assert!(run["warmup"]["intervals"].as_array().unwrap().len() >= 19, "{}", run["warmup"]["seconds"]);
    assert!((run["measured_seconds"].as_f64().unwrap() - 1.5).abs() < 0.2, "the warm-up is no part of the run");
    // The run ends in its warm-up: the figures are the warm-up's.
    let script = READERS.replace(",instances=40", "") + "set mode quit firstdone\n";
    let script = script.replace("filesetname=data }", "filesetname=data flowop finishoncount name=f,value=500 }");
    let run = runs(&script, &["--runtime", "5", "--warmup", "5"], 0).remove(0);
    assert!(run["warnings"].as_array().unwrap().iter().any(|w| w["code"] == "ended_in_warmup"), "{}", run["warnings"]);
    assert!(count(&run["summary"], "ops") > 0, "{}", run["summary"]);
}

/// All that happens between `stats clear` and `stats snap` is in the intervals, whichever commands were given in between.
#[test]
fn live_processes_add_up_after_any_commands() {
    let script = format!(
        "{READERS}create files\ncreate processes\nsleep 0.1\nstats snap\nstats clear\nsystem \"sleep 0.1\"\nsleep 0.1\n\
         system \"sleep 0.1\"\nsleep 0.1\nsystem \"sleep 0.05\"\nstats snap\nstats snap\nshutdown processes\n"
    );
    let runs = runs(&script, &["--allow-system", "--interval", "0.06"], 0);
    assert_eq!(runs.len(), 3);
    let measured = |run: &Value| number(run, &["measured_seconds"]);
    assert!(measured(&runs[0]) >= 0.1 && measured(&runs[1]) >= 0.45 && measured(&runs[2]) >= measured(&runs[1]));
}

#[test]
fn a_run_that_ends_early_adds_up() {
    // By a failure: the files are removed until none is there, and one that is not there is opened.
    let fails = "define process name=p { thread name=t,instances=4 { flowop statfile name=s,filesetname=data,iters=100\n\
         flowop openfile name=o,filesetname=data,fd=1 flowop openfile name=again,filesetname=data,fd=1 } }\n";
    let run = runs(fails, &["--runtime", "5"], 1).remove(0);
    assert_eq!(run["state"], "failed");
    // By a count.
    let counts = "define process name=p { thread name=t,instances=4 { flowop statfile name=s,filesetname=data\n\
         flowop finishoncount name=f,value=20000 } }\n";
    runs(counts, &["--runtime", "5"], 0);
    // By having nothing left to do.
    let done = "set mode quit alldone\n\
         define process name=p { thread name=t,instances=4 { flowop deletefile name=d,filesetname=data } }\n";
    let run = runs(done, &["--runtime", "5"], 0).remove(0);
    assert_eq!(count(&run["summary"], "ops"), 50);
}

#[test]
fn an_interrupted_run_adds_up() {
    let fileserver = personality("fileserver");
    let sets = fileserver.small();
    let call = Wml::below(&memory()).args(["fileserver", "--runtime", "60", "--no-quiesce"]).sets(&sets).result();
    let mut running = call.timeout(Duration::from_mins(1)).start();
    running.wait_until_reading();
    running.signal(Signal::INT);
    let run = running.wait().exits(130).only_run();
    assert_eq!(run["state"], "interrupted");
    assert_adds_up(&run);
}

/// Asynchronous operations are counted when their thread takes notice, which may be after the last look.
#[test]
fn asynchronous_operations_add_up() {
    let script = "define process name=p { thread name=t,instances=4 {\n\
         flowop aiowrite name=w,filesetname=data,iosize=2k,random,iodepth=16 flowop aiowait name=wait } }\n";
    for engine in ["posix", "uring"] {
        runs(script, &["--runtime", "0.4", "--interval", "0.1", "--engine", engine], 0);
    }
}

/// However long a run, its result is bounded. The bound itself is passed only in the long form; `result::timeline` tests it always.
#[test]
fn a_long_time_series_is_merged_and_adds_up() {
    let (seconds, expected) = short_or_long(("0.5", 1..=51), ("25", 500..=2001));
    let run = runs(READERS, &["--runtime", seconds, "--interval", "0.01"], 0).remove(0);
    let intervals = run["intervals"].as_array().unwrap().len();
    assert!(expected.contains(&intervals), "{intervals} intervals");
}
