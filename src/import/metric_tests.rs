//! Tests of the names of metrics, and of how they are read from a run.

#![allow(clippy::unwrap_used, clippy::float_cmp)]

use super::{METRICS, Metric, RESPONSE};
use crate::import::{Observation, of_run};
use crate::result::Document;
use crate::result::fixture::fixture;
use crate::result::{BeforeAfter, Energy, OpenLoop, ThreadRequests};
use std::collections::BTreeMap;

fn metric(name: &str) -> Metric {
    name.parse().unwrap()
}

/// Returns the figures of the fixture's run after a change.
fn figures(change: impl FnOnce(&mut Document)) -> BTreeMap<String, f64> {
    let mut document = fixture();
    change(&mut document);
    of_run(&document, &document.runs[0], "x").figures
}

#[test]
fn what_only_a_whole_run_has_is_of_no_flowop() {
    let flowop = |name: &str| metric(name).flowop().map(str::to_owned);
    for (name, of) in [
        ("read.mib", None),
        ("shadowread.mib", Some("shadowread")),
        ("outer.read.mib", Some("outer.read")),
        ("transactions", None),
        ("transactions.latency.p99", None),
        ("transactions.minute", None),
        ("mkfs.user", Some("mkfs")),
        ("after-fsck.user", None),
        ("record-1.system", None),
        ("mkfs.seconds", None),
    ] {
        assert_eq!(flowop(name).as_deref(), of, "{name}");
    }
    let command = |name: &str| metric(name).command().map(str::to_owned);
    assert_eq!(command("after-fsck.user").as_deref(), Some("after-fsck"));
    assert_eq!((command("mkfs.seconds").as_deref(), command("mkfs.user"), command("user")), (Some("mkfs"), None, None));
    for name in ["mkfs.memory", "x.energy", "x.written.bytes", ".cpu"] {
        assert!(name.parse::<Metric>().is_err(), "{name}");
    }
}

#[test]
fn every_metric_of_a_run_is_read_from_its_entry() {
    let bytes = |before: u64, after: u64| Some(BeforeAfter { before: before << 20, after: after << 20 });
    let found = figures(|document| {
        let run = &mut document.runs[0];
        (run.slab_bytes, run.page_cache_bytes) = (bytes(100, 140), bytes(2000, 1500));
        run.energy = Some(Energy { source: "processors".to_owned(), joules: 812.5 });
        run.flowops[1].transaction = true;
        let threads =
            vec![ThreadRequests { achieved_per_s: 7.0, response_ns_mean: Some(9e6), ..ThreadRequests::default() }];
        run.open_loop = Some(OpenLoop { achieved_per_s: 7.0, threads, ..OpenLoop::default() });
        run.flowops[1].response_ns = Some(run.flowops[1].latency_ns);
        run.flowops[1].response_histogram = run.flowops[1].histogram.clone();
    });
    let missing: Vec<&str> =
        METRICS.iter().map(|kind| kind.name).filter(|name| !found.contains_key(*name) && *name != "value").collect();
    assert_eq!(missing, Vec::<&str>::new());
    assert!((found["read.mib"] + found["written.mib"] - found["mib"]).abs() < 1e-9);
    assert_eq!(found["read.mib"], found["shadowread.mib"]);
    assert_eq!((found["reads"], found["writes"]), (found["shadowread.ops"], found["dbwrite-a.ops"]));
    assert_eq!(
        (found["transactions"], found["transactions.latency.p99"]),
        (found["dbwrite-a.ops"], found["dbwrite-a.latency.p99"])
    );
    assert_eq!((found["user"], found["system"], found["memory"]), (5.4, 2.5, 21.0));
    assert_eq!(found["cpu"], found["user"] + found["system"]);
    let ops = fixture().runs[0].summary.ops as f64;
    assert!((found["cpu.op"] * ops / 1e9 - found["cpu"]).abs() < 1e-9);
    assert_eq!((found["slab.before"], found["slab"]), (100.0, 140.0));
    assert_eq!((found["pagecache.before"], found["pagecache"]), (2000.0, 1500.0));
    assert_eq!((found["used.before"], found["used"]), (110.0 * 1024.0, 111.0 * 1024.0));
    assert_eq!((found["requests"], found["requests.response.mean"]), (7.0, 9e6));
    assert_eq!(found["energy"], 812.5);
}

#[test]
fn what_is_unknown_is_absent() {
    let found = figures(|document| {
        let run = &mut document.runs[0];
        (run.peak_memory, run.summary.user_seconds) = (0, None);
        run.environment.mounts[0].free_after = None;
    });
    for name in
        ["transactions", "transactions.latency.p99", "cpu", "user", "memory", "slab", "pagecache", "used", "energy"]
    {
        assert!(!found.contains_key(name), "{name}");
    }
    assert!(found.contains_key("used.before") && found.contains_key("system"));
    assert!(!figures(|document| document.runs[0].environment.mounts.clear()).contains_key("used.before"));
}

#[test]
fn a_flowop_command_has_processor_times() {
    let found = figures(|document| {
        let flowops = &mut document.runs[0].flowops;
        (flowops[0].command_user_seconds, flowops[0].command_system_seconds) = (Some(1.5), Some(0.25));
        let mut other = flowops[0].clone();
        other.process = "other".to_owned();
        flowops.push(other);
    });
    assert_eq!((found["shadowread.user"], found["shadowread.system"]), (3.0, 0.5));
    assert_eq!(found["shadow/shadow/shadowread.user"], 1.5);
    assert!(!found.contains_key("dbwrite-a.user"));
}

#[test]
fn a_flowop_with_the_name_of_a_figure_is_meant_before_it() {
    let found = figures(|document| document.runs[0].flowops[1].name = "read".to_owned());
    assert_eq!(found["read.mib"], found["dbwr/dbwr/read.mib"]);
}

/// A run of little processor time counts as all others, or the mean would be that of the longer ones.
#[test]
fn user_and_system_time_are_told_by_all_runs_of_a_sample_together() {
    let run = |user: f64, system: f64| Observation {
        figures: [("user", user), ("system", system), ("x.user", 0.02), ("x.system", 0.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        ..Observation::default()
    };
    let values = |name: &str, runs: &[Observation]| metric(name).values(runs.iter());
    let (short, long) = (run(0.01, 0.05), run(0.03, 0.09));
    assert_eq!(values("user", &[short.clone(), long.clone()]), [0.01, 0.03]);
    assert_eq!(values("system", &[short.clone(), short.clone()]), [0.05, 0.05]);
    assert!(values("user", std::slice::from_ref(&short)).is_empty());
    assert!(values("x.user", &[short, long.clone()]).is_empty());
    assert_eq!(values("x.system", &vec![long; 6]), [0.0; 6]);
}

#[test]
fn open_loops_are_compared_by_their_response_time() {
    let run = |operations: &[(&str, f64)]| Observation {
        operations: operations.iter().map(|(before, number)| ((*before).to_owned(), *number)).collect(),
        ..Observation::default()
    };
    let (open, closed) = (run(&[("", 9.0), (RESPONSE, 9.0)]), run(&[("", 9.0)]));
    // Some of its operations have no pace.
    let mixed = run(&[("", 9.0), (RESPONSE, 4.0)]);
    let default = |runs: &[&Observation]| Metric::default_of_runs(runs.iter().copied()).to_string();
    assert_eq!(default(&[&open, &open]), "response.mean");
    assert_eq!([&[&open, &closed][..], &[&mixed], &[]].map(default), ["ops"; 3]);
}
