//! In the steady part of a run the program makes the workload's calls and hardly any other.

use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::cmd::{Wml, memory, scratch};
use crate::strace;

/// Of the calls of three seconds.
const SHARE: f64 = 0.999;

/// Calls by name in `seconds` of a process and all its threads.
fn calls(pid: u32, seconds: u64) -> Vec<(String, u64)> {
    let summary = tempfile::NamedTempFile::new_in(scratch()).unwrap();
    let mut strace = Command::new("strace")
        .args(["-f", "-c", "-p", &pid.to_string(), "-o", summary.path().to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(seconds));
    kill_process(Pid::from_raw(strace.id() as i32).unwrap(), Signal::INT).unwrap();
    strace.wait().unwrap();
    let text = std::fs::read_to_string(summary.path()).unwrap();
    let calls = read_summary(&text);
    assert!(calls.iter().map(|(_, n)| n).sum::<u64>() > 1000, "too few calls to tell\n{text}");
    calls
}

/// The table of `strace -c`: share, seconds, microseconds a call, calls, errors if any, name.
fn read_summary(text: &str) -> Vec<(String, u64)> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let name = *words.last()?;
        let calls = words.get(3)?.parse().ok()?;
        (words.len() >= 5 && name != "total").then(|| (name.to_owned(), calls))
    });
    rows.collect()
}

fn assert_only(call: Wml, names: &[&str]) {
    let mut running = call.args(["--runtime", "60"]).alone().start();
    running.wait_until_reading();
    // Every thread has by then opened what it works on.
    std::thread::sleep(Duration::from_secs(4));
    let calls = calls(running.pid(), 3);
    running.signal(Signal::INT);
    running.wait().exits(130);
    let all: u64 = calls.iter().map(|(_, n)| n).sum();
    let wanted: u64 = calls.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, n)| n).sum();
    assert!(wanted as f64 >= SHARE * all as f64, "{wanted} of {all} calls are {names:?}: {calls:?}");
}

#[test]
fn random_reads_are_one_call_each() {
    if strace::available("random_reads_are_one_call_each") {
        let call = Wml::below(&memory()).args(["randomread"]);
        assert_only(call.sets(&[("iosize", "4k"), ("filesize", "64m"), ("memperthread", "4k")]), &["pread64"]);
    }
}

#[test]
fn a_coupled_workload_only_reads_writes_and_waits() {
    if strace::available("a_coupled_workload_only_reads_writes_and_waits") {
        let call = Wml::below(&memory()).args(["oltp_sync"]).sets(&[("filesize", "4m")]);
        let moves = ["read", "write", "pread64", "pwrite64", "futex"];
        // A wait that the tracer's attaching interrupts is taken up again.
        assert_only(call, &[moves.as_slice(), &["restart_syscall"]].concat());
    }
}

#[test]
fn summaries_are_read() {
    let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 99.99    2.101010          10    210101           pread64
  0.01    0.000100           5        20         2 futex
------ ----------- ----------- --------- --------- ----------------
100.00    2.101110          10    210121         2 total
";
    assert_eq!(read_summary(text), [("pread64".to_owned(), 210_101), ("futex".to_owned(), 20)]);
}
