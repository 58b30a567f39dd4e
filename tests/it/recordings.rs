//! Tests what ends `wmlrun record`, what bounds its trace, what a trace never holds, who may record, the overhead that it
//! measures, and that all ways to record see the same calls.

use std::fs;
use std::io::{BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::DeflateDecoder;
use rustix::process::Signal;
use tempfile::TempDir;
use wml::trace::{PathTable, TraceEnd, TraceEvent, TraceReader};

use crate::cmd::{Running, Wml, binary, disk, has};
use crate::truth::{CallsProgram, copy, has_bpf, wait_for};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The ways to record that are allowed here.
fn ways() -> Vec<&'static str> {
    if has_bpf() { vec!["ptrace", "bpf"] } else { vec!["ptrace"] }
}

/// The offsets of the writes that a trace has until now.
fn writes(trace: &Path) -> Vec<u64> {
    let Ok(mut reader) = fs::File::open(trace).map_err(drop).and_then(|file| TraceReader::new(file).map_err(drop))
    else {
        return Vec::new();
    };
    let mut offsets = Vec::new();
    let add = |event: &TraceEvent, _: &PathTable| match event {
        TraceEvent::Call(call) if call.kind.get().name == "write" => offsets.extend(call.offset),
        _ => {}
    };
    reader.for_each(add).unwrap();
    offsets
}

/// The names that were looked for in a trace, how many calls it has, and its end.
fn read(trace: &Path) -> (Vec<u64>, u64, Option<TraceEnd>) {
    let mut reader = TraceReader::new(BufReader::new(fs::File::open(trace).unwrap())).unwrap();
    let (mut names, mut calls) = (Vec::new(), 0);
    reader
        .for_each(|event, paths| {
            let TraceEvent::Call(call) = event else { return };
            calls += 1;
            let name = call.path.map(|path| String::from_utf8_lossy(paths.name(path)).into_owned()).unwrap_or_default();
            names.extend(name.split_once('-').and_then(|(n, _)| n.parse::<u64>().ok()));
        })
        .unwrap();
    (names, calls, reader.end().cloned())
}

#[test]
fn the_time_of_for_ends_a_command_and_leaves_a_process_alone() {
    for way in ways() {
        let calls = CallsProgram::new();
        let run = || Wml::below(calls.dir()).args(["record", "--by", way, "--for", "1s", "-o", "t.wtrace"]);
        let output = run().args(["--", &calls.program(), "steady"]).run().exits(143);
        let (_, count, end) = read(&output.dir().join("t.wtrace"));
        assert!(count > 5 && end.is_some_and(|end| end.is_complete()), "{way}: {count} calls");

        let child = calls.steady();
        let output = run().args(["-p", &child.id().to_string()]).run().exits(0);
        let (_, count, end) = read(&output.dir().join("t.wtrace"));
        assert!(count > 5 && end.is_some_and(|end| end.is_complete()), "{way}: {count} calls");
        calls.writes(5);
        fs::write(calls.path("stop"), "").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{way}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), calls.written().to_string(), "{way}");
    }
}

/// Starts to record a program that writes, and waits until the trace has what it had written at some moment.
fn written(calls: &CallsProgram, way: &str, what: &str) -> Running {
    let args = ["record", "--by", way, "-o", "t.wtrace", "--", &calls.program(), what];
    let recorder = Wml::below(calls.dir()).args(args).idle().start();
    let length = || fs::metadata(recorder.dir().join("steady")).map_or(0, |meta| meta.len());
    wait_for(|| length() >= 100);
    let before = length() as usize;
    wait_for(|| writes(&recorder.dir().join("t.wtrace")).len() >= before);
    recorder
}

#[test]
fn a_recorder_that_is_killed_has_written_what_was_called_a_moment_before() {
    for way in ways() {
        // One goes on, the other makes no further call.
        for what in ["steady", "pauses"] {
            let calls = CallsProgram::new();
            let recorder = written(&calls, way, what);
            recorder.signal(Signal::KILL);
            let trace = recorder.dir().join("t.wtrace");
            let offsets = writes(&trace);
            assert_eq!(offsets, (0..offsets.len() as u64).collect::<Vec<_>>(), "{way}, {what}");
            assert_eq!(read(&trace).2, None, "{way}, {what}");
            let shown = Wml::new().args(["trace", "show"]).args([trace]).run().exits(0);
            assert!(shown.stdout.contains("incomplete"), "{way}, {what}: {}", shown.stdout);
            // It has the output of the recorder.
            calls.kill();
            drop(recorder.wait());
        }
    }
}

#[test]
fn a_second_signal_ends_the_recorder_at_once_and_says_what_that_costs() {
    for way in ways() {
        let calls = CallsProgram::new();
        let recorder = written(&calls, way, "pauses");
        recorder.signal(Signal::INT);
        recorder.signal(Signal::TERM);
        let status = format!("/proc/{}/status", recorder.pid());
        wait_for(|| fs::read_to_string(&status).is_ok_and(|status| status.contains("State:\tZ")));
        calls.kill();
        assert_eq!(writes(&recorder.dir().join("t.wtrace")).len(), 100, "{way}");
        let output = recorder.wait();
        assert_eq!(output.stderr.trim(), "note: exited immediately: the trace lacks its end", "{way}");
        // If both arrive at once, the handler of the later one runs first.
        assert!([130, 143].contains(&output.code()), "{way}: {}", output.code());
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    needs!(is_root() && has("unshare"), "it needs root and unshare");
    for way in ways() {
        let calls = CallsProgram::new();
        fs::create_dir(calls.path("full")).unwrap();
        let script = format!(
            "mount -t tmpfs -o size=256k none full && {} record --by {way} -o full/t.wtrace -- ./calls names 70000; \
             status=$?; cp full/t.wtrace . && exit $status",
            binary().display()
        );
        let command = ["-m", "sh", "-c", &script];
        let output = Command::new("unshare").args(command).current_dir(calls.dir()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(1), b"70000".to_vec()), "{way}: {said}");
        assert!(said.contains("the recording ended: No space left on device"), "{way}: {said}");
        assert_eq!(read(&calls.path("t.wtrace")).2, None, "{way}");
        let shown = Wml::new().args(["trace", "show"]).args([calls.path("t.wtrace")]).run().exits(0);
        assert!(shown.stdout.contains("incomplete"), "{way}: {}", shown.stdout);
    }
}

#[test]
fn a_recording_that_cannot_begin_leaves_no_file() {
    needs!(is_root() && has("unshare"), "it needs root and unshare");
    for way in ways() {
        let calls = CallsProgram::new();
        for dir in ["full", "tree"] {
            fs::create_dir(calls.path(dir)).unwrap();
        }
        for n in 1..500u64 {
            fs::write(calls.path("tree").join(format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))), "").unwrap();
        }
        let script = format!(
            "mount -t tmpfs -o size=4k none full && {} record --by {way} -o full/t.wtrace --under tree -- true; \
             status=$?; ls full; exit $status",
            binary().display()
        );
        let command = ["-m", "sh", "-c", &script];
        let output = Command::new("unshare").args(command).current_dir(calls.dir()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("can't write full/t.wtrace: No space left on device"), "{way}: {said}");
        assert_eq!((output.status.code(), output.stdout), (Some(3), Vec::new()), "{way}: {said}");
    }
}

#[test]
fn a_trace_of_limited_size_has_the_last_calls_in_two_parts() {
    const COUNT: u64 = 40_000;
    for way in ways() {
        let calls = CallsProgram::new();
        let output = Wml::below(calls.dir())
            .args(["record", "--by", way, "--max-size", "1m", "-o", "t.wtrace", "--"])
            .args([calls.program(), "names".to_owned(), COUNT.to_string()])
            .run()
            .exits(0);
        let parts = ["t.wtrace.1", "t.wtrace"].map(|name| output.dir().join(name));
        let lengths = parts.each_ref().map(|part| fs::metadata(part).unwrap().len());
        // How full a part is depends on the length of its blocks, which a busy machine makes shorter: half at least.
        assert!(lengths[0] >= 256 << 10 && lengths.iter().all(|length| *length <= 512 << 10), "{way}: {lengths:?}");
        let [(mut names, _, first_end), (last, _, end)] = parts.map(|part| read(&part));
        names.extend(last);
        // Without a gap between the parts.
        assert_eq!(names, (COUNT - names.len() as u64..COUNT).collect::<Vec<_>>(), "{way}");
        assert_eq!((first_end, output.left()), (None, vec!["t.wtrace".to_owned(), "t.wtrace.1".to_owned()]), "{way}");
        let end = end.unwrap();
        assert!(end.dropped_parts > 1 && !end.is_complete(), "{way}: {end:?}");
        assert!(output.stderr.contains("older parts dropped for `--max-size`"), "{way}: {}", output.stderr);
    }
}

#[test]
fn recordings_and_an_import_of_strace_have_the_same_calls() {
    needs!(has("strace"), "it needs strace");
    let calls = CallsProgram::new();
    let text = calls.path("strace.txt");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-ttt", "-T", "-y", "-o"]).arg(&text).args(["./calls", "all"]).current_dir(calls.dir());
    assert!(strace.status().unwrap().success());
    let imported = calls.path("imported.wtrace");
    Wml::new().args(["trace", "import", "strace"]).args([&text]).args(["-o"]).args([&imported]).run().exits(0);
    for way in ways() {
        let output = Wml::below(calls.dir())
            .args(["record", "--by", way, "-o", "t.wtrace", "--", &calls.program(), "all"])
            .run()
            .exits(0);
        let recorded = output.dir().join("t.wtrace");
        let compared = Wml::new().args(["compare", "--format", "json"]).args([&recorded, &imported]).run().exits(0);
        let compared: serde_json::Value = serde_json::from_str(&compared.stdout).unwrap();
        assert_eq!(compared["differences"], serde_json::json!([]), "{way}");
        assert_eq!(named_calls(&recorded, output.dir()), named_calls(&imported, calls.dir()), "{way}");
    }
}

/// Calls with their files, sorted. strace does not see faults.
fn named_calls(trace: &Path, dir: &Path) -> Vec<String> {
    let mut reader = TraceReader::new(BufReader::new(fs::File::open(trace).unwrap())).unwrap();
    let start = format!("{}/", fs::canonicalize(dir).unwrap().display());
    let mut lines = Vec::new();
    reader
        .for_each(|event, paths| {
            let TraceEvent::Call(call) = event else { return };
            let name = |path| String::from_utf8(paths.path(path)).unwrap().replace(&start, "");
            lines.push(format!("{} {:?} {:?}", call.kind.get().name, call.path.map(name), call.second_path.map(name)));
        })
        .unwrap();
    lines.retain(|line| !line.starts_with("page_fault"));
    lines.sort();
    lines
}

/// All bytes of a trace as they were before they were deflated.
fn inflated(trace: &Path) -> Vec<u8> {
    let bytes = fs::read(trace).unwrap();
    let (mut all, mut rest) = (bytes[..8].to_vec(), &bytes[8..]);
    while !rest.is_empty() {
        let stored = u32::from_le_bytes(rest[5..9].try_into().unwrap()) as usize;
        DeflateDecoder::new(&rest[17..17 + stored]).read_to_end(&mut all).unwrap();
        rest = &rest[17 + stored..];
    }
    all
}

#[test]
fn a_trace_never_holds_contents_and_hides_names_where_it_shall() {
    for way in ways() {
        for hides in [false, true] {
            let script = "cat tree/quagga.d/dodo.txt; echo CONTENT-WRITTEN > tree/great-auk; \
                          mv tree/great-auk tree/moa-bird; cp tree/moa-bird tree/quagga.d/kakapo; \
                          rm tree/quagga.d/thylacine 2> /dev/null; exit 0";
            let output = Wml::below(&disk())
                .file("tree/quagga.d/dodo.txt", "CONTENT-OF-A-FILE")
                .file("script", script)
                .env("OKAPI", "ENVIRONMENT")
                .args(["record", "--by", way, "-o", "t.wtrace", "--under", "tree"])
                .args(if hides { &["--hash-names"][..] } else { &[] }.to_vec())
                .args(["--", "sh", "script", "bandicoot"])
                .run()
                .exits(0);
            assert_eq!(output.stdout, "CONTENT-OF-A-FILE");
            let bytes = inflated(&output.dir().join("t.wtrace"));
            let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            for text in ["CONTENT-OF", "CONTENT-WRITTEN", "OKAPI", "ENVIRONMENT"] {
                assert!(!has(text), "{way}: {text}");
            }
            let own = output.dir().file_name().unwrap().to_str().unwrap();
            for name in ["quagga", "dodo", "great-auk", "moa-bird", "kakapo", "thylacine", "bandicoot", own] {
                assert_eq!(has(name), !hides, "{way}: {name}");
            }
            assert!(read(&output.dir().join("t.wtrace")).1 > 10);
        }
    }
}

/// A directory that anybody may use, with the program in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("wmlrun-rights-").tempdir_in("/tmp").unwrap();
        copy(&binary(), &dir.path().join("wmlrun"));
        for (name, mode) in [("", 0o1777), ("wmlrun", 0o755)] {
            fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        Self(dir)
    }

    fn trace(&self) -> PathBuf {
        self.0.path().join("t.wtrace")
    }

    /// Records under another program, which takes rights away. Returns the exit status, and what was said.
    fn record(&self, under: &[&str], args: &[&str]) -> (i32, String) {
        for name in ["t.wtrace", "file"] {
            let _ = fs::remove_file(self.0.path().join(name));
        }
        let mut command = Command::new(under[0]);
        command.args(&under[1..]).arg("./wmlrun").args(["record", "-o", "t.wtrace"]).args(args);
        let output = command.current_dir(self.0.path()).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

const NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn who_lacks_a_right_for_ebpf_is_told_which_and_records_by_ptrace() {
    needs!(is_root() && has("setpriv") && has("unshare"), "it needs root, setpriv and unshare");
    let place = Place::new();
    let both = "CAP_BPF and CAP_PERFMON";
    let cases: [(&[&str], &str); 5] = [
        (&["setpriv", "--bounding-set=-bpf,-sys_admin"], "CAP_BPF"),
        (&["setpriv", "--bounding-set=-perfmon,-sys_admin"], "CAP_PERFMON"),
        (&["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"], both),
        (&["unshare", "-r"], "CAP_BPF and CAP_PERFMON, and those of a user namespace do not count"),
        (NOBODY, both),
    ];
    for (under, missing) in cases {
        let (status, said) = place.record(under, &["--", "touch", "file"]);
        assert!(status == 0 && said.contains(&format!("note: by ptrace: eBPF needs {missing}\n")), "{under:?}: {said}");
        let (_, calls, end) = read(&place.trace());
        assert!(calls > 0 && end.is_some_and(|end| end.is_complete()), "{under:?}: {calls} calls");
        let (status, said) = place.record(under, &["--by", "bpf", "--", "touch", "file"]);
        let expected = format!("can't record: eBPF needs {missing}\n");
        assert!(status == 3 && said.contains(&expected) && !place.trace().exists(), "{under:?}: {said}");
    }
}

#[test]
fn a_process_of_another_user_can_not_be_recorded() {
    needs!(is_root() && has("setpriv"), "it needs root and setpriv");
    let place = Place::new();
    let (status, said) = place.record(NOBODY, &["-p", &std::process::id().to_string()]);
    let message = format!("can't record process {}: Operation not permitted", std::process::id());
    assert!(status == 3 && said.contains(&message) && said.contains("needs CAP_SYS_PTRACE"), "{said}");
    assert!(!place.trace().exists());
}

#[test]
fn the_overhead_is_measured_by_pairs_of_runs() {
    for way in ways() {
        let check = |to: &str, command: &str| {
            Wml::below(&disk())
                .file("mine.wtrace", "")
                .args(["record", "--by", way, "-o", to, "--check-overhead", "--before", "echo before >> log"])
                .args(["--", "sh", "-c", command])
                .run()
        };
        let output = check("t.wtrace", "echo run >> log; sleep 0.2").exits(0);
        assert!(
            output.stderr.contains("recorded: ") && output.stderr.contains(", from 5 pairs ("),
            "{}",
            output.stderr
        );
        assert!(!output.stderr.contains("lost: "), "{}", output.stderr);
        assert_eq!(output.left(), ["log", "mine.wtrace"]);
        // One more than the pairs have.
        assert_eq!(fs::read_to_string(output.dir().join("log")).unwrap(), "before\nrun\n".repeat(11));
        let short = check("t.wtrace", "exit 0").exits(0).stderr;
        assert!(
            short.starts_with("the command is too short to tell what recording it costs: it should take"),
            "{short}"
        );
        // A trace that is there is not written.
        let beside = check("mine.wtrace", "exit 0").exits(0);
        assert_eq!(
            (beside.left(), fs::read(beside.dir().join("mine.wtrace")).unwrap()),
            (vec!["log".to_owned(), "mine.wtrace".to_owned()], Vec::new())
        );
        let failed = check("t.wtrace", "exit 3").exits(1);
        assert!(failed.stderr.contains("the command itself ended with status 3"), "{}", failed.stderr);
    }
    // The first run alone takes a second.
    let command = "test -e been || sleep 1; touch been";
    let args = ["record", "--by", "ptrace", "--check-overhead", "--", "sh", "-c", command];
    let slow = Wml::below(&disk()).args(args).run().exits(0);
    assert!(slow.stderr.starts_with("first run: ") && slow.stderr.contains("\npair 5 of 5: "), "{}", slow.stderr);
    let failed = Wml::new().args(["record", "--check-overhead", "--before", "exit 4", "--", "true"]).run().exits(1);
    assert!(failed.stderr.contains("the command before a run ended with status 4"), "{}", failed.stderr);
}

/// Two ways to make data durable that are no call on a file of their own.
#[test]
fn synchronous_writes_and_syncs_of_all_are_recorded() {
    for way in ways() {
        let command = "dd if=/dev/zero of=$PWD/d/f bs=4k count=3 oflag=dsync status=none; sync";
        let wml = Wml::new().folder("d");
        let output =
            wml.args(["record", "--by", way, "-o", "t.wtrace", "--under", "d", "--", "sh", "-c", command]).run();
        let output = output.exits(0);
        let trace = output.dir().join("t.wtrace");
        let shown = Wml::new().args(["trace", "show", "--json", trace.to_str().unwrap()]).run().exits(0);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let classes = &shown["classes"];
        assert_eq!(
            (&classes["write"]["synchronous"], &classes["sync"]["calls"]),
            (&3.into(), &1.into()),
            "{way}: {shown}"
        );
    }
}

#[test]
fn names_that_no_file_can_have_leave_a_trace_readable() {
    for way in ways() {
        let script = "n=$(printf %0300d 0); test -e $n; test -e ''; test -e $n$n$n$n$n$n$n$n$n$n$n$n$n$n; exit 0";
        let recorded =
            Wml::below(&disk()).args(["record", "--by", way, "-o", "t.wtrace", "--", "sh", "-c", script]).run();
        let recorded = recorded.exits(0);
        for said in ["lost: 0\n", "1 with a name that is too long", "1 with an empty name"] {
            assert!(recorded.stderr.contains(said), "{way}: {}", recorded.stderr);
        }
        let trace = recorded.dir().join("t.wtrace");
        let listed = Wml::new().args(["trace", "show", "--calls"]).args([trace]).run().exits(0).stdout;
        let name = "0".repeat(300);
        assert!(listed.lines().any(|line| line.contains("ENAMETOOLONG") && line.ends_with(&name)), "{way}: {listed}");
    }
}
