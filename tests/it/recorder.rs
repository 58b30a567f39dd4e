//! Tests `wmlrun record` with a program of known calls, and what becomes of both when one of them ends.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use wml::trace::{TraceEvent, TraceReader, TracedCall};

use crate::cmd::{Output, Wml, disk};

/// The program of known calls, and a directory for it.
fn calls() -> (TempDir, PathBuf) {
    let dir = TempDir::new_in(disk()).unwrap();
    let program = dir.path().join("calls");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/calls.c");
    let built = Command::new("cc").arg("-w").arg("-o").arg(&program).arg(source).arg("-lpthread").status().unwrap();
    assert!(built.success());
    (dir, program)
}

fn record(dir: &Path, args: &[&str]) -> Output {
    Wml::below(dir).args(["record", "--by", "ptrace", "-o", "t.wtrace"]).args(args).run()
}

/// A call as `name path offset wanted result`, paths relative to `dir`.
fn lines(trace: &Path, dir: &Path, wanted: impl Fn(&TracedCall) -> bool) -> Vec<String> {
    let mut reader = TraceReader::new(BufReader::new(fs::File::open(trace).unwrap())).unwrap();
    let mut lines = Vec::new();
    let start = format!("{}/", fs::canonicalize(dir).unwrap().display());
    reader
        .for_each(|event, paths| {
            let TraceEvent::Call(call) = event else { return };
            if !wanted(call) {
                return;
            }
            let mut line = call.kind.get().name.to_owned();
            for path in [call.path, call.second_path].into_iter().flatten() {
                let path = String::from_utf8(paths.path(path)).unwrap();
                line += &format!(" {}", path.strip_prefix(&start).unwrap_or(&path));
            }
            line += &call.offset.map_or(String::new(), |offset| format!(" @{offset}"));
            line += &call.size.map_or(String::new(), |size| format!(" of {size}"));
            line += &call.wanted.map_or(String::new(), |wanted| format!(" {wanted}"));
            let result = if line.starts_with("open") || line.starts_with("mmap") || line.starts_with("fcntl") {
                call.result.min(0)
            } else {
                call.result
            };
            lines.push(format!("{line} = {result}"));
        })
        .unwrap();
    assert!(reader.end().is_some_and(wml::trace::TraceEnd::is_complete));
    lines
}

#[test]
fn every_call_is_recorded_once_with_its_file_offset_and_result() {
    let (dir, program) = calls();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let output = Wml::below(&work)
        .args(["record", "--by", "ptrace", "-o", "t.wtrace", "--under", "."])
        .args(["--", program.to_str().unwrap(), "all"])
        .run()
        .exits(0);
    assert!(output.stderr.contains("lost: 0"), "{}", output.stderr);
    let own = output.dir();
    let trace = own.join("t.wtrace");
    let main = std::cell::Cell::new(0);
    let mut found = lines(&trace, own, |call| {
        if main.get() == 0 {
            main.set(call.process);
        }
        // Threads and children come between.
        call.thread == main.get()
    });
    let writes: Vec<String> = (0..100).map(|n| format!("write a @{} of {} 4096 = 4096", n * 4096, n * 4096)).collect();
    assert_eq!(found.drain(1..101).collect::<Vec<_>>(), writes);
    let expected = [
        "openat a = 0",
        "fsync a of 409600 = 0",
        "read a @30 of 409600 10 = 10",
        "read a @45 of 409600 1 = 1",
        "fcntl a of 409600 = 0",
        "read a @46 of 409600 2 = 2",
        "mkdir d = 0",
        "openat d = 0",
        "openat d/f = 0",
        "writev d/f @0 of 0 300 = 300",
        "writev d/f @300 of 300 300 = 300",
        "fdatasync d/f of 600 = 0",
        "openat2 d/f = 0",
        "preadv2 d/f @40 of 600 300 = 300",
        "close d/f of 600 = 0",
        "renameat d/f d/g = 0",
        "chdir d = 0",
        "newfstatat d/g = 0",
        "unlink d/g = 0",
        "newfstatat d/g = -2",
        "write d/f @600 of 600 1 = 1",
        "close d/f of 601 = 0",
        "lseek a @48 of 409600 = 0",
        "openat b = 0",
        "sendfile a b @0 of 409600 10 = 10",
        "copy_file_range a b @100 of 409600 50 = 50",
        "read a @10 of 409600 1 = 1",
        "write b @60 of 60 1 = 1",
        "splice a @11 of 409600 30 = 30",
        "mmap a @0 of 409600 4096 = 0",
        "msync a of 409600 4096 = 0",
        "ftruncate a of 409600 77 = 0",
        "fstat a of 77 = 0",
        "openat b = 0",
        "close b of 61 = 0",
    ];
    found.retain(|line| !line.starts_with("fsync d "));
    assert_eq!(found, expected);
    let others = lines(&trace, own, |call| call.thread != main.get());
    let count = |start: &str| others.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("pread64 a @"), others.len()), (101, 106), "{others:#?}");
    for line in [
        "lseek a @409600 of 409600 = 20",
        "read a @20 of 409600 10 = 10",
        "dup2 a of 409600 = 7",
        "write a @40 of 409600 5 = 5",
        "close a of 409600 = 0",
        "pread64 a @33 of 409600 11 = 11",
    ] {
        assert_eq!(others.iter().filter(|other| *other == line).count(), 1, "{line}: {others:#?}");
    }
    let shown = Wml::below(own).args(["trace", "show", "--json"]).args([&trace]).run().exits(0);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["classes"]["write"]["calls"], 105);
    assert_eq!((shown["threads"].clone(), shown["is_complete"].clone()), (6.into(), true.into()));
}

#[test]
fn the_status_is_that_of_the_command_and_a_file_is_never_replaced() {
    let (dir, program) = calls();
    let program = program.to_str().unwrap();
    record(dir.path(), &["--", "sh", "-c", "exit 7"]).exits(7);
    fs::write(dir.path().join("t.wtrace"), "mine").unwrap();
    let path = dir.path().join("t.wtrace");
    let again = Wml::below(dir.path())
        .args(["record", "--by", "ptrace", "-o"])
        .args([&path])
        .args(["--", program, "exec"])
        .run()
        .exits(3);
    assert!(again.stderr.contains("can't write") && again.stderr.contains("remove it"), "{}", again.stderr);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path().join("target"), &link).unwrap();
    Wml::below(dir.path())
        .args(["record", "--by", "ptrace", "-o"])
        .args([&link])
        .args(["--", program, "exec"])
        .run()
        .exits(3);
    assert!(!dir.path().join("target").exists());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let missing = record(dir.path(), &["--", "/nonexistent/program"]).exits(3);
    assert!(missing.stderr.contains("can't record /nonexistent/program"), "{}", missing.stderr);
    assert!(!missing.dir().join("t.wtrace").exists());
    record(dir.path(), &["-p", "2147483647"]).exits(3);
    let foreign = Wml::below(dir.path()).args(["trace", "show"]).args([&path]).run().exits(2);
    assert!(foreign.stderr.contains("it is no trace"), "{}", foreign.stderr);
}

/// Starts the program as one that the recorder attaches to.
fn steady(dir: &Path, program: &Path) -> std::process::Child {
    let mut command = Command::new(program);
    let child = command.arg("steady").current_dir(dir).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    wait_for(|| fs::metadata(dir.join("steady")).is_ok_and(|meta| meta.len() > 0));
    child
}

#[track_caller]
fn wait_for(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_mins(1), "it did not happen within a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process has a recorder.
fn is_traced(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|by| by.trim() != "0"))
}

#[test]
fn a_process_that_was_attached_to_goes_on_when_the_recording_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let (dir, program) = calls();
        let child = steady(dir.path(), &program);
        let recorder = Wml::below(dir.path())
            .args(["record", "--by", "ptrace", "-o", "t.wtrace", "-p"])
            .args([child.id().to_string()])
            .start();
        let own = recorder.dir().to_owned();
        wait_for(|| is_traced(child.id()));
        let size = || fs::metadata(dir.path().join("steady")).unwrap().len();
        let before = size();
        wait_for(|| size() > before + 20);
        recorder.signal(signal);
        if signal == Signal::INT {
            let output = recorder.wait().exits(0);
            let found = lines(&own.join("t.wtrace"), dir.path(), |_| true);
            assert!(
                found.len() > 20
                    && found.iter().all(|line| line.starts_with("write steady @") || line == "access stop = -2"),
                "{found:?}"
            );
            assert!(output.stderr.contains("not seen: "), "{}", output.stderr);
        } else {
            drop(recorder.wait());
        }
        fs::write(dir.path().join("stop"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{signal:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), size().to_string());
    }
}

#[test]
fn a_command_ends_with_its_recorder_and_never_with_failing_calls() {
    for delay in [0, 3, 10, 40] {
        let (dir, program) = calls();
        let recorder = Wml::below(dir.path())
            .args(["record", "--by", "ptrace", "-o", "t.wtrace", "--", program.to_str().unwrap(), "steady"])
            .start();
        let file = recorder.dir().join("steady");
        wait_for(|| fs::metadata(&file).is_ok_and(|meta| meta.len() > 0));
        std::thread::sleep(Duration::from_millis(delay));
        let pid = Pid::from_raw(recorder.pid() as i32).unwrap();
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.pid())).unwrap();
        let child: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        // A zombie has no program.
        wait_for(|| fs::read_link(format!("/proc/{child}/exe")).is_err());
        drop(recorder.wait());
    }
}

#[test]
fn traces_are_imported_from_strace_and_compared() {
    let (dir, program) = calls();
    let text = "7 100.001 openat(AT_FDCWD</w>, \"a\", O_RDWR|O_CREAT, 0644) = 3</w/a> <0.00002>\n";
    let write = "7 100.002 write(3</w/a>, \"x\"..., 4096) = 4096 <0.00003>\n".repeat(50);
    let sync = "7 100.003 fsync(3</w/a>) = 0 <0.00003>\n".repeat(10);
    let import = |name: &str, text: &str| {
        let from = dir.path().join(format!("{name}.txt"));
        fs::write(&from, text).unwrap();
        let trace = dir.path().join(name);
        Wml::new().args(["trace", "import", "strace"]).args([&from]).args(["-o"]).args([&trace]).run().exits(0);
        trace
    };
    let (a, b) = (import("a", &format!("{text}{write}")), import("b", &format!("{text}{write}{sync}")));
    let output = Wml::new().args(["compare"]).args([&a, &b]).run().exits(0);
    assert!(output.stdout.contains("B makes 10 fsync calls, A none."), "{}", output.stdout);
    let json = Wml::new().args(["compare", "--format", "json"]).args([&a, &b]).run().exits(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["classes"]["fsync"]["calls"], serde_json::json!([0, 10]));
    let foreign = Wml::new().args(["trace", "import", "strace"]).args([&program]).run().exits(2);
    assert!(foreign.stderr.contains("no call as strace writes it"), "{}", foreign.stderr);
    let mixed = Wml::new().args(["compare"]).args([&a, &program]).run().exits(2);
    assert!(mixed.stderr.contains("A is a trace, and B is none"), "{}", mixed.stderr);
}
