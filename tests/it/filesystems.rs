//! Tests the personalities on ext4, xfs and btrfs, each on its own image, and two personalities on tmpfs for as long as
//! Filebench survives there.
//!
//! The tests check only what does not depend on the speed of a disk: no operation fails, and all flowops are executed,
//! in the ratio that the script defines. In a normal run each of the first twelve personalities runs on one of the file
//! systems for half a second; `WMLRUN_LONG=1` runs all on all of them, for ten.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::cmd::{Wml, count, flowops, long, memory, number, short_or_long};
use crate::mounts::{self, Fs, Mount};
use crate::scripts::{FIRST, Script, for_each, personalities, personality};
use crate::undisturbed::undisturbed;

const IMAGE: u64 = 8 << 30;

/// A third of the first twelve personalities on each file system, another third each day; with `WMLRUN_LONG=1` all personalities.
fn third_or_all(fs: Fs) -> Vec<Script> {
    if long() {
        return personalities();
    }
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
    FIRST.iter().skip((today as usize + fs as usize) % 3).step_by(3).map(|name| personality(name)).collect()
}

fn all_on(fs: Fs) {
    needs!(mounts::available(&[fs]));
    let mount = Mount::new(fs, IMAGE);
    for_each(&third_or_all(fs), 1, |script| {
        // A database's writers get their first turns after thousands of posts.
        let seconds = short_or_long(if script.name.starts_with("oltp") { "1" } else { "0.5" }, "10");
        let call = Wml::below(mount.dir()).args([&script.call, "--runtime", seconds]).sets(&script.small());
        let output = call.result().timeout(Duration::from_mins(5)).run().exits(0);
        let run = output.only_run();
        assert_eq!(output.left(), [""; 0], "left behind");
        let kind = &output.only_run()["environment"]["mounts"][0]["type"];
        assert_eq!(kind, fs.name(), "of the mount in the result");
        assert_works(script, &run);
    });
}

/// No failed operation, no flowop on files without any, and those of a thread in step with one another.
#[track_caller]
fn assert_works(script: &Script, run: &Value) {
    assert_eq!(run["state"], "complete", "{}", run["ended_by"]);
    assert_eq!(count(&run["summary"], "errors"), 0);
    for flowop in flowops(run).iter().filter(|f| f["class"] == "io" || f["class"] == "aio") {
        assert!(count(flowop, "ops") > 0, "no operation of {}", flowop["name"]);
    }
    for (thread, rounds) in rounds(script, run) {
        let most = rounds.iter().map(|r| r.1).fold(f64::MIN, f64::max);
        for (name, done, slack) in &rounds {
            assert!(most - done <= *slack, "thread {thread}: {name} is {:.1} of {most} iterations behind", most - done);
        }
    }
}

/// For each thread the rounds that its flowops on files have done, and by how much they may differ: each instance of the thread
/// may be in the middle of one.
fn rounds(script: &Script, run: &Value) -> BTreeMap<String, Vec<(String, f64, f64)>> {
    let lines: Vec<_> = script.text.lines().collect();
    // Threads that draw their steps, and composite flowops, have no order of their own.
    let plain = !script.text.contains(",mix") && !script.text.contains("define flowop");
    let mut threads = BTreeMap::<_, Vec<_>>::new();
    for flowop in flowops(run).iter().filter(|f| plain && (f["class"] == "io" || f["class"] == "aio")) {
        // A flowop's attributes may go on over some lines.
        let own = &lines[count(flowop, "line") as usize - 1..];
        let more = own[1..].iter().take_while(|line| !line.contains("flowop ") && !line.contains('}')).count();
        let text = own[..=more].join(" ");
        let iters = match text.split(',').find_map(|a| a.trim().strip_prefix("iters=")).map(str::parse::<f64>) {
            None => 1.0,
            Some(Ok(n)) => n,
            // A variable: the rounds can't be told from the text.
            Some(Err(_)) => continue,
        };
        let thread = format!("{}/{}", flowop["process"].as_str().unwrap(), flowop["thread"].as_str().unwrap());
        let instances = count(flowop, "instances") as f64;
        // What is asynchronous may be out for a round or two before it is counted.
        let slack = if flowop["class"] == "aio" { 3.0 * instances } else { instances };
        let name = flowop["name"].as_str().unwrap().to_owned();
        threads.entry(thread).or_default().push((name, count(flowop, "ops") as f64 / iters, slack));
    }
    threads
}

#[test]
fn on_ext4() {
    all_on(Fs::Ext4);
}

#[test]
fn on_xfs() {
    all_on(Fs::Xfs);
}

#[test]
fn on_btrfs() {
    all_on(Fs::Btrfs);
}

/// Where files are made and removed faster than anywhere else, none may run out: Filebench 1.5 ends both after two seconds.
#[test]
fn small_file_sets_last_on_a_fast_file_system() {
    undisturbed(|| {
        for_each(&[personality("varmail"), personality("fileserver")], 2, |script| {
            let seconds = short_or_long("2", "30");
            let call = Wml::below(&memory()).args([&script.call, "--runtime", seconds]).sets(&[("nfiles", "1000")]);
            let run = call.result().run().exits(0).only_run();
            assert_works(script, &run);
            let measured = number(&run, &["measured_seconds"]);
            assert!((measured - seconds.parse::<f64>().unwrap()).abs() <= 0.01, "{measured} s measured of {seconds}");
        });
    });
}
