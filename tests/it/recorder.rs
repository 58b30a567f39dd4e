//! Tests `wmlrun record` with a program of known calls, and what becomes of both when one of them ends.

use std::fs;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wml::trace::{TraceEvent, TraceReader, TracedCall};

use crate::cmd::{Output, Wml, short_or_long};
use crate::truth::{CallsProgram, show, wait_for};

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
    let calls = CallsProgram::new();
    let work = calls.dir().join("work");
    fs::create_dir(&work).unwrap();
    let output = Wml::below(&work)
        .args(["record", "--by", "ptrace", "-o", "t.wtrace", "--under", "."])
        .args(["--", &calls.program(), "all"])
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
    let calls = CallsProgram::new();
    let program = calls.program();
    record(calls.dir(), &["--", "sh", "-c", "exit 7"]).exits(7);
    fs::write(calls.dir().join("t.wtrace"), "mine").unwrap();
    let path = calls.dir().join("t.wtrace");
    let again = Wml::below(calls.dir())
        .args(["record", "--by", "ptrace", "-o"])
        .args([&path])
        .args(["--", &program, "exec"])
        .run()
        .exits(3);
    assert!(again.stderr.contains("can't write") && again.stderr.contains("remove it"), "{}", again.stderr);
    let link = calls.dir().join("link");
    std::os::unix::fs::symlink(calls.dir().join("target"), &link).unwrap();
    Wml::below(calls.dir())
        .args(["record", "--by", "ptrace", "-o"])
        .args([&link])
        .args(["--", &program, "exec"])
        .run()
        .exits(3);
    assert!(!calls.dir().join("target").exists());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let missing = record(calls.dir(), &["--", "/nonexistent/program"]).exits(3);
    assert!(missing.stderr.contains("can't record /nonexistent/program"), "{}", missing.stderr);
    assert!(!missing.dir().join("t.wtrace").exists());
    record(calls.dir(), &["-p", "2147483647"]).exits(3);
    let foreign = Wml::below(calls.dir()).args(["trace", "show"]).args([&path]).run().exits(2);
    assert!(foreign.stderr.contains("it is no trace"), "{}", foreign.stderr);
}

/// Whether a process has a recorder.
fn is_traced(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|by| by.trim() != "0"))
}

#[test]
fn a_process_that_was_attached_to_goes_on_when_the_recording_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let calls = CallsProgram::new();
        let child = calls.steady();
        let recorder = Wml::below(calls.dir())
            .args(["record", "--by", "ptrace", "-o", "t.wtrace", "-p"])
            .args([child.id().to_string()])
            .start();
        let own = recorder.dir().to_owned();
        wait_for(|| is_traced(child.id()));
        calls.writes(21);
        recorder.signal(signal);
        if signal == Signal::INT {
            let output = recorder.wait().exits(0);
            let found = lines(&own.join("t.wtrace"), calls.dir(), |_| true);
            assert!(
                found.len() > 20
                    && found.iter().all(|line| line.starts_with("write steady @") || line == "access stop = -2"),
                "{found:?}"
            );
            assert!(output.stderr.contains("not seen: "), "{}", output.stderr);
        } else {
            drop(recorder.wait());
        }
        fs::write(calls.dir().join("stop"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{signal:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), calls.written().to_string());
    }
}

#[test]
fn a_command_ends_with_its_recorder_and_never_with_failing_calls() {
    for delay in [0, 3, 10, 40] {
        let calls = CallsProgram::new();
        let recorder = Wml::below(calls.dir())
            .args(["record", "--by", "ptrace", "-o", "t.wtrace", "--", &calls.program(), "steady"])
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
    let calls = CallsProgram::new();
    let text = "7 100.001 openat(AT_FDCWD</w>, \"a\", O_RDWR|O_CREAT, 0644) = 3</w/a> <0.00002>\n";
    let write = "7 100.002 write(3</w/a>, \"x\"..., 4096) = 4096 <0.00003>\n".repeat(50);
    let sync = "7 100.003 fsync(3</w/a>) = 0 <0.00003>\n".repeat(10);
    let import = |name: &str, text: &str| {
        let from = calls.dir().join(format!("{name}.txt"));
        fs::write(&from, text).unwrap();
        let trace = calls.dir().join(name);
        Wml::new().args(["trace", "import", "strace"]).args([&from]).args(["-o"]).args([&trace]).run().exits(0);
        trace
    };
    let (a, b) = (import("a", &format!("{text}{write}")), import("b", &format!("{text}{write}{sync}")));
    let output = Wml::new().args(["compare"]).args([&a, &b]).run().exits(0);
    assert!(output.stdout.contains("B makes 10 fsync calls, A none."), "{}", output.stdout);
    let json = Wml::new().args(["compare", "--format", "json"]).args([&a, &b]).run().exits(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["classes"]["fsync"]["calls"], serde_json::json!([0, 10]));
    let foreign = Wml::new().args(["trace", "import", "strace"]).args([calls.program()]).run().exits(2);
    assert!(foreign.stderr.contains("no call as strace writes it"), "{}", foreign.stderr);
    let mixed = Wml::new().args(["compare"]).args([&a, &calls.path("calls")]).run().exits(2);
    assert!(mixed.stderr.contains("A is a trace, and B is none"), "{}", mixed.stderr);
}

/// The most memory that it has until it ends, in bytes.
fn peak_memory(wmlrun: Wml) -> u64 {
    let running = wmlrun.timeout(Duration::from_mins(20)).start();
    let status = format!("/proc/{}/status", running.pid());
    let peak = || {
        let text = fs::read_to_string(&status).ok()?;
        text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
    };
    let mut most = 0;
    // One that has ended has none.
    while let Some(now) = peak() {
        most = now << 10;
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(running.wait().exits(0));
    most
}

#[test]
fn a_path_takes_no_more_memory_than_its_last_name_and_32_bytes() {
    let paths = short_or_long(20_000, 10_000_000);
    let calls = CallsProgram::new();
    let text = calls.path("strace.txt");
    let mut file = BufWriter::new(fs::File::create(&text).unwrap());
    let mut most = (256 << 20) + 32 * paths;
    for n in 0..paths {
        let name = n.to_string();
        most += name.len() as u64;
        writeln!(file, "1 1.0 access(\"/{}/{name}\", F_OK) = 0", n % 1000).unwrap();
    }
    file.into_inner().unwrap();
    let trace = calls.path("t.wtrace");
    let import = Wml::new().args(["trace", "import", "strace"]).args([&text]).args(["-o"]).args([&trace]);
    let shown = Wml::new().args(["trace", "show"]).args([&trace]);
    let compared = Wml::new().args(["compare"]).args([&trace, &trace]);
    for (what, command) in [("imported", import), ("shown", shown), ("compared", compared)] {
        let peak = peak_memory(command);
        show(&format!("{paths} paths {what} in {} MiB, {} are allowed", peak >> 20, most >> 20));
        assert!(peak > 0 && peak <= most, "{what}: {peak} of {most}");
    }
}
