//! Tests the main use: the study's `oltp_sync`, started by name in a real directory, as a new user does.
//!
//! The normal test is shorter and uses smaller files; `WMLRUN_LONG=1` uses the study's files and 10 seconds.

use std::time::Duration;

use crate::cmd::{Wml, count, flowop, flowops, long, memory, number, short_or_long};

/// The ratios of the workload that its semaphores enforce.
const DB_WRITERS: f64 = 10.0;
const POSTS_A_DB_ROUND: f64 = 1000.0;
const POSTS_A_LOG_ROUND: f64 = 3200.0;
const WRITES_A_ROUND: f64 = 100.0;

fn oltp_sync(call: Wml, filesize: &str, seconds: u64) -> Wml {
    let call = call.args(["oltp_sync", "--runtime", &seconds.to_string()]).result().timeout(Duration::from_mins(10));
    if filesize.is_empty() { call } else { call.sets(&[("filesize", filesize)]) }
}

#[test]
fn it_runs_by_name_and_leaves_no_files() {
    let seconds = short_or_long(1, 10);
    let output = oltp_sync(Wml::new(), short_or_long("4m", ""), seconds).alone().run().exits(0);
    let run = output.only_run();
    assert_eq!(run["state"], "complete");
    assert_eq!(run["engine"], "posix");
    assert_eq!(count(&run, "processes"), 211);
    assert_eq!(count(&run, "threads"), 211);
    let measured = number(&run, &["measured_seconds"]);
    let asked = seconds as f64;
    assert!((measured - asked).abs() <= 0.01, "{measured} s measured of {asked}");
    for name in ["lg-write", "dbwrite-a", "shadowread", "shadow-post-lg", "shadow-post-dbwr", "dbwr-block"] {
        let flowop = flowop(&run, name);
        assert!(count(flowop, "ops") > 0, "no operation of {name}");
        for key in ["min", "mean", "p50", "p99", "p99.9", "max"] {
            assert!(number(flowop, &["latency_ns", key]) > 0.0, "{name}: {key}");
        }
        assert!(output.stdout.contains(name), "{name} is not in the table\n{}", output.stdout);
    }
    assert_eq!(count(&run["summary"], "errors"), 0);
    assert_eq!(output.left(), [""; 0], "left behind");
    // The report is there half a second after the end of the measured time.
    let (told, ended) = (output.reported.unwrap().as_secs_f64(), number(&run, &["finished_seconds"]));
    assert!(told - ended <= 0.5, "the report came {:.2} s after the end", told - ended);
}

/// Each post reaches every blocker: so the counts of both sides go together, whatever the disk does.
#[track_caller]
fn assert_coupled(run: &serde_json::Value) {
    let ops = |name: &str| count(flowop(run, name), "ops") as f64;
    let dbwr = ops("dbwr-block");
    let (posts, blocks) = (ops("shadow-post-dbwr") / POSTS_A_DB_ROUND, dbwr / DB_WRITERS);
    assert!((posts - blocks).abs() <= 4.0, "{posts} posts per iteration, {blocks} iterations of the database writers");
    let (posts, blocks) = (ops("shadow-post-lg") / POSTS_A_LOG_ROUND, ops("lg-block"));
    assert!((posts - blocks).abs() <= 2.0, "{posts} posts per iteration, {blocks} iterations of the log writer");
    let (low, high) = (WRITES_A_ROUND * dbwr, WRITES_A_ROUND * (dbwr + DB_WRITERS));
    let writes = ops("dbwrite-a");
    assert!((low..=high).contains(&writes), "{writes} writes, not {low} to {high}");
}

#[test]
fn its_processes_wait_for_each_other() {
    let seconds = short_or_long(1, 10);
    let on_disk = oltp_sync(Wml::new(), "4m", seconds).run().exits(0).only_run();
    assert_coupled(&on_disk);
    let in_memory = oltp_sync(Wml::below(&memory()), short_or_long("4m", "30m"), seconds).run().exits(0).only_run();
    assert_coupled(&in_memory);
    if long() {
        // What the clients' stores leave room for on a machine like that of the first measurements.
        assert!(count(flowop(&in_memory, "dbwr-block"), "ops") >= 2500);
    }
}

/// In the order of definition, each with its place, its kind and its class.
#[test]
fn the_result_lists_every_flowop_once() {
    let call = Wml::below(&memory()).args(["oltp_sync", "--runtime", "0.2"]).result();
    let run = call.sets(&[("filesize", "4m"), ("nshadows", "4")]).run().exits(0).only_run();
    let seen: Vec<_> = flowops(&run)
        .iter()
        .map(|f| {
            format!(
                "{} {} {} {}",
                f["process"].as_str().unwrap(),
                f["index"],
                f["kind"].as_str().unwrap(),
                f["class"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "lgwr 0 write io",
        "lgwr 1 semblock sync",
        "dbwr 0 write io",
        "dbwr 1 hog other",
        "dbwr 2 semblock sync",
        "shadow 0 read io",
        "shadow 1 hog other",
        "shadow 2 sempost sync",
        "shadow 3 sempost sync",
        "shadow 4 eventlimit other",
    ];
    let kinds = |lines: &[String]| lines.iter().map(|l| l.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>();
    let expected: Vec<_> = expected.iter().map(|line| (*line).to_owned()).collect();
    assert_eq!(kinds(&seen), kinds(&expected));
    assert_eq!(seen[..9], expected[..9]);
    let io: u64 = flowops(&run).iter().filter(|f| f["class"] == "io").map(|f| count(f, "ops")).sum();
    assert_eq!(count(&run["summary"], "ops"), io);
}
