//! Tests what `wmlrun record` says of programs whose calls and times are known: each call once, what is not seen is counted,
//! none is lost at full speed, and the time between calls is divided as the program spent it.
//!
//! Times are checked at full length only, beside two busy loops, to 10 %. A machine that is kept busy by others may miss that
//! once: of three tries one must hold. The figures of each are printed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use wml::trace::TraceEvent;
use wml::util::count::grouped;
use wml::util::size;

use crate::cmd::{Output, Wml, disk, long, named_binary, short_or_long};
use crate::mounts::{self, Fs, Mount};
use crate::truth::{Calls, Truth, compile, events, has_bpf, show, wait_for};

fn shown(trace: &Path) -> Value {
    let output = Wml::new().args(["trace", "show", "--json"]).args([trace]).run().exits(0);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn ptrace_records_each_call_once_and_counts_the_mapped_ones_and_those_of_io_uring() {
    let truth = Truth::new();
    let words = truth.words(short_or_long(4_000, 1_000_000));
    let recorded = truth.recorder("ptrace", &["--"]).args(&words).status().unwrap();
    assert!(recorded.success());
    let (all, seen) = (truth.calls(), truth.recorded_calls(|_| true));
    let is_request = |call: &&String| call.starts_with("uring_") || call.starts_with("other ");
    let is_hidden = |call: &&String| is_request(call) || call.starts_with("munmap ");
    let requests = all.values().flatten().filter(is_request).count();
    let without = |calls: &Calls| -> Calls {
        calls.iter().map(|(n, calls)| (*n, calls.iter().filter(|call| !is_hidden(call)).cloned().collect())).collect()
    };
    differ_nowhere(&without(&all), &seen);
    let end = &shown(&truth.path("t.wtrace"))["end"];
    let faults = "page faults and ends of mappings (1 mapping)";
    assert_eq!(
        end["not_seen"],
        json!([faults, format!("io_uring ({} requests)", grouped(requests as u64)), "time between calls"])
    );
    assert!(requests > 0);
    let n: usize = seen.values().map(Vec::len).sum();
    show(&format!(
        "ptrace: {n} calls, each once with its file, offset and result; {requests} requests of io_uring not seen"
    ));
}

/// There the kernel's number of the device is not that of `stat`.
#[test]
fn on_btrfs_each_call_is_recorded_once_and_all_files_have_one_device() {
    needs!(has_bpf() && mounts::available(&[Fs::Btrfs]));
    let mount = Mount::new(Fs::Btrfs, 256 << 20);
    let truth = Truth::below(mount.dir());
    let words = truth.words(2_000);
    assert!(truth.recorder("bpf", &["--"]).args(&words).status().unwrap().success());
    differ_nowhere(&truth.calls(), &truth.recorded_calls(|call| call.kind.get().name != "page_fault"));
    let mut devices = BTreeSet::new();
    events(&truth.path("t.wtrace"), |event, _| {
        if let TraceEvent::Call(call) = event {
            devices.extend(call.file.map(|file| file.device));
        }
    });
    assert_eq!(devices.len(), 1, "{devices:?}");
}

#[test]
fn page_faults_of_a_program_have_its_name_and_not_that_of_the_script_it_interprets() {
    needs!(has_bpf());
    let recording = Wml::below(&disk());
    let [program, script] = ["calls", "script"].map(|name| recording.dir().join(name));
    compile("tests/it/calls.c", &program);
    fs::write(&script, format!("#!{} fast\n", program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["record", "--by", "bpf", "-o", "t.wtrace", "--under", ".", "--", "./script"];
    let output = recording.args(words).run().exits(0);
    let (mut paths, mut calls, mut bytes) = (BTreeSet::new(), 0u64, 0);
    events(&output.dir().join("t.wtrace"), |event, path| match event {
        TraceEvent::Call(call) if call.kind.get().name == "page_fault" => {
            paths.insert(path.file_name().unwrap().to_owned());
            (calls, bytes) = (calls + 1, bytes + call.wanted.unwrap());
        }
        _ => {}
    });
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["calls"]);
    let line = format!("known in part: {calls} page_fault ({})", size::format(bytes));
    assert!(output.stderr.contains(&line), "{line}: {}", output.stderr);
}

fn differ_nowhere(all: &Calls, seen: &Calls) {
    assert_eq!(seen.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    for (thread, calls) in all {
        let first = seen[thread].iter().zip(calls).find(|(seen, call)| seen != call);
        assert_eq!((seen[thread].len(), first), (calls.len(), None), "thread {thread}");
    }
}

/// Reads in two threads at full speed, so many in all.
fn fast(dir: &Path, calls: u64) -> Wml {
    let program = dir.join("calls");
    compile("tests/it/calls.c", &program);
    let words = ["record", "--by", "bpf", "-o", "t.wtrace", "--under", ".", "--"];
    Wml::below(dir).args(words).args([program]).args(["fast".to_owned(), calls.to_string()])
}

/// How many reads a recording of such has, and how many records it lost.
fn reads(output: &Output) -> (u64, u64, Value) {
    let trace = output.dir().join("t.wtrace");
    let mut reads = 0;
    events(&trace, |event, _| {
        reads += u64::from(matches!(event, TraceEvent::Call(call) if call.kind.get().name == "pread64"));
    });
    let shown = shown(&trace);
    let lost = shown["end"]["lost"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    (reads, lost, shown)
}

#[test]
fn two_threads_at_full_speed_lose_nothing() {
    const CALLS: u64 = 2_000_000;
    needs!(has_bpf());
    let dir = TempDir::new_in(disk()).unwrap();
    let output = fast(dir.path(), CALLS).alone().run().exits(0);
    let (reads, lost, shown) = reads(&output);
    show(&format!("{reads} of {CALLS} calls of two threads recorded in {} s, {lost} lost", shown["seconds"]));
    // A build that is not optimised may be too slow, and then says so.
    assert!(reads <= CALLS && reads + lost >= CALLS, "{reads}, {lost}");
    assert_eq!(shown["is_complete"], lost == 0);
    if named_binary() {
        assert_eq!((reads, lost), (CALLS, 0), "{}", output.stderr);
    }
}

#[test]
fn a_recorder_that_stands_still_loses_calls_and_says_so() {
    const CALLS: u64 = 2_000_000;
    needs!(has_bpf());
    let dir = TempDir::new_in(disk()).unwrap();
    let recorder = fast(dir.path(), CALLS).alone().start();
    let made = recorder.dir().join("fast");
    wait_for(|| made.exists());
    // The ring holds some 800,000 calls.
    recorder.signal(Signal::STOP);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.pid())).unwrap();
    assert!(!children.trim().is_empty(), "the program had ended before");
    let status = format!("/proc/{}/status", children.trim());
    wait_for(|| fs::read_to_string(&status).is_ok_and(|status| status.contains("State:\tZ")));
    recorder.signal(Signal::CONT);
    let output = recorder.wait().exits(0);
    let (reads, lost, shown) = reads(&output);
    show(&format!("{reads} of {CALLS} calls recorded beside a recorder that stood still, {lost} lost"));
    assert!(reads < CALLS && reads + lost >= CALLS, "{reads}, {lost}");
    assert_eq!(shown["is_complete"], false);
    assert!(output.stderr.contains("without space in the ring; the trace is incomplete"), "{}", output.stderr);
}

/// A busy loop, until it is dropped.
struct Busy(Child);

impl Busy {
    fn new() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What a program and its recorder say: seconds that it ran, was ready, and slept; and waits that the other thread ended.
struct Times {
    program: [f64; 3],
    recorder: [f64; 3],
    woken: [u64; 2],
}

fn times(dir: &Path, rounds: u32) -> Times {
    let program = dir.join("times");
    compile("tests/it/times.c", &program);
    let output = Wml::below(dir)
        .args(["record", "--by", "bpf", "-o", "t.wtrace", "--under", ".", "--"])
        .args([program])
        .args(["file".to_owned(), rounds.to_string()])
        .alone()
        .run()
        .exits(0);
    let said: Vec<u64> = output.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [thread, other, ran, ready, slept, woken] = said[..] else { panic!("{}", output.stdout) };
    let (mut end, mut between, mut by_other) = (None, [0; 3], 0);
    events(&output.dir().join("t.wtrace"), |event, _| match event {
        // The first one begins the measured time.
        TraceEvent::Call(call) if u64::from(call.thread) == thread && call.kind.get().name == "pread64" => {
            if let Some(end) = end.replace(call.end()) {
                let idle = call.between.unwrap();
                let parts = [call.start - end - idle.runnable - idle.blocked, idle.runnable, idle.blocked];
                (0..3).for_each(|n| between[n] += parts[n]);
            }
        }
        TraceEvent::Wait(wait) if u64::from(wait.thread) == thread => {
            let is_by_other = wait.woken_by.is_some_and(|by| u64::from(by) == other);
            by_other += u64::from(is_by_other && wait.duration > 1_000_000);
        }
        _ => {}
    });
    let seconds = |all: [u64; 3]| all.map(|ns| ns as f64 / 1e9);
    Times { program: seconds([ran, ready, slept]), recorder: seconds(between), woken: [woken, by_other] }
}

#[test]
fn the_time_between_calls_is_divided_as_the_program_spent_it() {
    needs!(has_bpf());
    let dir = TempDir::new_in(disk()).unwrap();
    let tries = if long() { 3 } else { 1 };
    for n in 1..=tries {
        let busy = if long() { vec![Busy::new(), Busy::new()] } else { Vec::new() };
        let Times { program, recorder, woken } = times(dir.path(), short_or_long(20, 150));
        drop(busy);
        for (what, (program, recorder)) in ["running", "ready", "asleep"].iter().zip(program.iter().zip(&recorder)) {
            show(&format!("try {n}: {what}: by the program {program:.3} s, by the recorder {recorder:.3} s"));
        }
        show(&format!("try {n}: {} of {} sleeps that the other thread ended have its name", woken[1], woken[0]));
        assert!(woken[0] > 0 && woken[1] * 10 >= woken[0] * 9, "{woken:?}");
        let is_close = |n: usize| (recorder[n] - program[n]).abs() <= 0.1 * program[n];
        if !long() || (0..3).all(is_close) {
            return;
        }
    }
    panic!("none of {tries} tries is within 10 %");
}
