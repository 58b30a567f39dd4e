//! Tests that the program makes almost only the workload's system calls in the steady part of a run.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cmd::{Wml, memory, scratch};
use crate::strace;
use crate::undisturbed::undisturbed;

/// Of the calls of the threads that work.
const SHARE: f64 = 0.999;
/// Calls a second of the threads that watch: progress, room, the end. Some twelve a second were seen.
const WATCHING: u64 = 50;

/// Calls from which on their shares are meaningful.
const CALLS: usize = 1000;

/// Calls by thread and name.
type Calls = BTreeMap<u32, BTreeMap<String, u64>>;

/// What a process and all its threads call until there are `CALLS` of them, and the seconds that this took: at least one,
/// so that threads that call seldom are seen to. The tracer stops every thread once, which takes long for many of them on
/// a busy machine.
fn calls(pid: u32) -> (Calls, u64) {
    let trace = tempfile::NamedTempFile::new_in(scratch()).unwrap();
    let mut strace = Command::new("strace")
        .args(["-f", "-s", "0", "-p", &pid.to_string(), "-o", trace.path().to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let text = loop {
        std::thread::sleep(Duration::from_secs(1));
        let text = std::fs::read_to_string(trace.path()).unwrap();
        if text.lines().count() > 2 * CALLS || began.elapsed() > Duration::from_secs(30) {
            break text;
        }
    };
    let seconds = began.elapsed().as_secs();
    kill_process(Pid::from_raw(strace.id() as i32).unwrap(), Signal::INT).unwrap();
    strace.wait().unwrap();
    (read_trace(&text), seconds)
}

/// Lines such as `123 pread64(5, ""..., 4096, 0) = 4096`. A call in two parts counts by its first.
fn read_trace(text: &str) -> Calls {
    let mut calls = Calls::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        if let Ok(thread) = thread.parse()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            *calls.entry(thread).or_default().entry(name.to_owned()).or_default() += 1;
        }
    }
    calls
}

/// Threads that read or write at an offset, which is what `names` with a `p` are, make hardly any but these, and the others make few at all.
fn assert_only(call: Wml, names: &[&str]) {
    let mut running = call.args(["--runtime", "60"]).alone().start();
    running.wait_until_reading();
    // Every thread has by then opened what it works on.
    std::thread::sleep(Duration::from_millis(500));
    let (calls, seconds) = calls(running.pid());
    running.signal(Signal::INT);
    running.wait().exits(130);
    let sum = |of: &BTreeMap<String, u64>| of.values().sum::<u64>();
    let (at_work, others): (Vec<_>, Vec<_>) =
        calls.values().partition(|of| names.iter().any(|name| name.starts_with('p') && of.contains_key(*name)));
    let all: u64 = at_work.iter().map(|of| sum(of)).sum();
    let wanted: u64 = at_work.iter().flat_map(|of| names.iter().filter_map(|name| of.get(*name))).sum();
    assert!(all > CALLS as u64, "too few calls to tell: {calls:?}");
    assert!(wanted as f64 >= SHARE * all as f64, "{wanted} of {all} calls are {names:?}: {calls:?}");
    // Threads that only wait, such as the log writer when there is nothing to write, are among these.
    let others: u64 = others.iter().flat_map(|of| of.iter()).filter(|(name, _)| *name != "futex").map(|(_, n)| n).sum();
    assert!(others <= seconds * WATCHING, "{others} calls of threads that do not work: {calls:?}");
}

#[test]
fn each_random_read_is_one_call() {
    undisturbed(|| {
        if strace::available() {
            let call = Wml::below(&memory()).args(["randomread"]);
            assert_only(call.sets(&[("iosize", "4k"), ("filesize", "64m"), ("memperthread", "4k")]), &["pread64"]);
        }
    });
}

#[test]
fn a_workload_with_semaphores_only_reads_writes_and_waits() {
    undisturbed(|| {
        if strace::available() {
            let call = Wml::below(&memory()).args(["oltp_sync"]).sets(&[("filesize", "4m"), ("nshadows", "20")]);
            let moves = ["read", "write", "pread64", "pwrite64", "futex"];
            // A wait that the tracer's attaching interrupts is taken up again.
            assert_only(call, &[moves.as_slice(), &["restart_syscall"]].concat());
        }
    });
}

#[test]
fn traces_are_parsed() {
    let text = "\
12  pread64(5, \"\"..., 4096, 0) = 4096
12  pread64(5,  <unfinished ...>
13  futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL) = 0
12  <... pread64 resumed>\"\"..., 4096, 4096) = 4096
12  --- SIGINT {si_signo=SIGINT} ---
13  +++ exited with 0 +++
";
    let calls = read_trace(text);
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[&12]["pread64"], calls[&13]["futex"]), (2, 1));
    assert_eq!((calls[&12].len(), calls[&13].len()), (1, 1));
}
