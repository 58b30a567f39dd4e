//! Records `truth.c`, which says what it does.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use super::super::call::{TraceEvent, TracedCall};
use super::super::paths::PathTable;
use super::super::scope::TraceScope;
use super::super::view::ProcView;
use super::*;
use aya_obj::Object;
use aya_obj::btf::BtfKind;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;
use tempfile::TempDir;

/// A test that can't run says so; where all must run it fails.
fn skip(test: &str, why: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{test} can't run: {why}");
    // Not by a macro, whose output the test runner keeps.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED {test}: {why}\n").as_bytes());
}

/// The program, a directory for its files, and its log.
struct Truth {
    dir: TempDir,
    program: PathBuf,
    log: PathBuf,
}

impl Truth {
    /// `None`, and says so, if it cannot be compiled or eBPF is not allowed.
    fn new(test: &str) -> Option<Self> {
        if let Err(why) = capable() {
            skip(test, &why.to_string());
            return None;
        }
        let dir = TempDir::new().unwrap();
        let [program, log] = ["truth", "log"].map(|name| dir.path().join(name));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth.c");
        match Command::new("cc").args(["-O1", "-pthread", source, "-o"]).arg(&program).status() {
            Ok(status) if status.success() => {}
            other => {
                skip(test, &format!("no C compiler: {other:?}"));
                return None;
            }
        }
        std::fs::create_dir(dir.path().join("files")).unwrap();
        Some(Self { dir, program, log })
    }

    fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    fn start(&self, count: u32) -> Child {
        Command::new(&self.program)
            .args([&self.files(), &self.log])
            .args([&count.to_string(), "uring"])
            .spawn()
            .unwrap()
    }

    /// The calls of each thread as the program has said them.
    fn calls(&self) -> BTreeMap<u32, Vec<String>> {
        let mut calls: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for line in std::fs::read_to_string(&self.log).unwrap().lines() {
            let (thread, call) = line.split_once(' ').unwrap();
            calls.entry(thread.parse().unwrap()).or_default().push(call.to_owned());
        }
        calls
    }

    /// A call as the program says it.
    fn line(&self, call: &TracedCall, paths: &PathTable) -> String {
        let path =
            call.path.or(call.second_path).map(|path| PathBuf::from(String::from_utf8(paths.path(path)).unwrap()));
        let name = path.as_ref().map_or("?", |path| path.strip_prefix(self.files()).unwrap().to_str().unwrap());
        let name = if name.is_empty() { "." } else { name };
        let offset = call.offset.map_or("-".to_owned(), |offset| offset.to_string());
        format!("{} {name} {offset} {}", call.kind.get().name, call.result)
    }
}

/// What a recorder has seen of it.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<u32, Vec<String>>,
    faults: u64,
}

/// Reads until the program has ended and nothing is left.
fn read(truth: &Truth, recorder: &mut BpfRecorder, mut child: Child) -> Seen {
    let seen = RefCell::new(Seen::default());
    let sink = |event: &TraceEvent, paths: &PathTable| {
        let TraceEvent::Call(call) = event else { return Ok(()) };
        let seen = &mut *seen.borrow_mut();
        if call.kind.get().name == "page_fault" {
            seen.faults += 1;
        } else {
            seen.calls.entry(call.thread).or_default().push(truth.line(call, paths));
        }
        Ok(())
    };
    let scope = TraceScope::new([truth.files().into_os_string().into_encoded_bytes()]);
    let mut resolver = TraceResolver::new(0, scope, Box::new(ProcView), Box::new(sink));
    loop {
        let ended = child.try_wait().unwrap();
        let n = recorder.drain(usize::MAX, &mut resolver).unwrap();
        if let (Some(status), 0) = (ended, n) {
            assert!(status.success());
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(resolver);
    seen.into_inner()
}

/// How many calls a thorough test has.
fn count() -> u32 {
    if std::env::var_os("WMLRUN_LONG").is_some() { 1_000_000 } else { 20_000 }
}

#[test]
fn each_call_is_seen_once_with_its_file_offset_and_result() {
    let Some(truth) = Truth::new("each_call_is_seen_once") else { return };
    let mut recorder = BpfRecorder::start(BpfTarget::Children, None).unwrap();
    let child = truth.start(count());
    let seen = read(&truth, &mut recorder, child);
    assert_eq!(recorder.not_seen(), [""; 0]);
    assert_eq!(recorder.losses(), BpfLosses::default());
    let all = truth.calls();
    assert_eq!(seen.calls.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    for (thread, calls) in &all {
        let (n, of) = (seen.calls[thread].len(), calls.len());
        let first = seen.calls[thread].iter().zip(calls).find(|(seen, call)| seen != call);
        assert_eq!((n, first), (of, None), "thread {thread}");
    }
    assert!(seen.faults > 0);
}

#[test]
fn a_small_ring_loses_records_and_says_so() {
    let Some(truth) = Truth::new("a_small_ring_loses_records") else { return };
    let mut recorder = BpfRecorder::start(BpfTarget::Children, Some(1 << 14)).unwrap();
    let child = truth.start(20_000);
    let seen = read(&truth, &mut recorder, child);
    let [seen, all] = [&seen.calls, &truth.calls()].map(|calls| calls.values().map(Vec::len).sum::<usize>());
    let lost = recorder.losses();
    assert!(lost.dropped > 0 && seen < all, "{lost:?}, {seen} of {all}");
    assert_eq!(lost.sum(), lost.dropped);
}

#[test]
fn a_refusal_names_what_is_missing() {
    assert_eq!(missing(false, false), Some("CAP_BPF and CAP_PERFMON"));
    assert_eq!(missing(true, true), None);
    assert_eq!(BpfRefusal::Capabilities("CAP_BPF").to_string(), "eBPF needs CAP_BPF");
    let error = io::Error::other(io::Error::other("a\nb"));
    assert_eq!(chain(&error), "a");
}

#[test]
fn a_device_is_the_kernels_if_it_is_mounted() {
    let mut feed = Feed::new(true);
    let proc = std::fs::metadata("/proc/self/stat").unwrap().dev();
    assert!(feed.is_kernels(proc) && feed.is_kernels(libc::makedev(8, 1)));
    assert!(!feed.is_kernels(libc::makedev(0, 0xf_ffff)));
}

/// Who changes the C file makes the objects anew.
#[test]
fn the_objects_are_those_of_the_source() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
    let check = Command::new("sha256sum").args(["--check", "--quiet", "objects.txt"]).current_dir(folder).status();
    assert!(check.unwrap().success(), "bpf/build makes them");
    assert!(!OBJECT.is_empty());
}

/// The one for aarch64 has not been run: its parts are compared with those of the one that has.
#[test]
fn the_objects_of_both_processors_have_the_same_parts() {
    let parts = |bytes: &[u8]| {
        assert!(bytes.len() <= 64 << 10, "{} bytes", bytes.len());
        let mut object = Object::parse(bytes).unwrap();
        let types = object.btf.clone().unwrap();
        for name in ["task_struct", "file", "inode", "io_kiocb", "linux_binprm", "pt_regs", "call", "state"] {
            types.id_by_type_name_kind(name, BtfKind::Struct).unwrap();
        }
        // The members that are read of each type of the kernel are found in this one, but for its registers.
        if let Ok(kernel) = Btf::parse_file(TYPES, object.endianness) {
            object.relocate_btf(&kernel).unwrap();
        }
        assert!(object.btf_ext.is_some());
        let mut programs: Vec<_> =
            object.programs.iter().map(|(name, program)| (name.clone(), format!("{:?}", program.section))).collect();
        programs.sort_unstable();
        let mut maps: Vec<_> =
            object.maps.iter().map(|(name, map)| (name.clone(), map.value_size(), map.max_entries())).collect();
        maps.sort_unstable();
        let text = String::from_utf8_lossy(&types.to_bytes()).into_owned();
        (object.license, programs, maps, ["orig_x0", "r10"].map(|register| text.contains(&format!("\0{register}\0"))))
    };
    let x86 = parts(include_bytes!("record.x86_64.o"));
    let arm = parts(include_bytes!("record.aarch64.o"));
    assert_eq!((&x86.0, &x86.1, &x86.2), (&arm.0, &arm.1, &arm.2));
    assert_eq!((x86.3, arm.3), ([false, true], [true, false]));
    let names: Vec<&str> = x86.1.iter().map(|(name, _)| name.as_str()).collect();
    let mut all: Vec<&str> =
        NEEDED.iter().chain(OPTIONAL.iter().flat_map(|(_, pair)| pair)).map(|(name, _)| *name).collect();
    all.push("running");
    all.sort_unstable();
    assert_eq!(names, all);
}
