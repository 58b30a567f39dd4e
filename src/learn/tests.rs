//! Scripts of traces that are made here: what is in them is known.

#![allow(clippy::unwrap_used)]

use super::learn;
use std::collections::BTreeSet;
use std::io::Cursor;
use wml_trace::{
    KindId, PathId, PathTable, TimeBetween, TraceEnd, TraceEvent, TraceHeader, TraceWriter, TracedCall, TracedWait,
    TreeEntry, flags,
};

pub(crate) const CREATE: u32 = (flags::O_CREAT | flags::O_EXCL) as u32;

/// A trace of one thread, call by call.
pub(crate) struct MadeTrace {
    paths: PathTable,
    events: Vec<TraceEvent>,
    tree: Vec<TreeEntry>,
    now: u64,
}

impl MadeTrace {
    pub(crate) fn new() -> Self {
        Self { paths: PathTable::new(), events: Vec::new(), tree: Vec::new(), now: 0 }
    }

    pub(crate) fn call(&mut self, kind: &str, path: &str, change: impl FnOnce(&mut TracedCall)) {
        let path = self.paths.resolve(PathId::ROOT, path.as_bytes());
        let between = Some(TimeBetween::default());
        let kind = KindId::named(kind).unwrap();
        let mut call = TracedCall {
            start: self.now + 1_000,
            duration: 2_000,
            thread: 7,
            process: 7,
            kind,
            path: Some(path),
            between,
            ..TracedCall::default()
        };
        change(&mut call);
        self.now = call.end();
        self.events.push(TraceEvent::Call(call));
    }

    /// A name of the tree at the beginning.
    pub(crate) fn exists(&mut self, path: &str, mode: u32, size: u64) {
        let path = self.paths.resolve(PathId::ROOT, path.as_bytes());
        self.tree.push(TreeEntry { path, mode, size });
    }

    pub(crate) fn open(&mut self, path: &str, open_flags: u32) {
        self.call("openat", path, |call| (call.flags, call.result) = (Some(open_flags), 3));
    }

    pub(crate) fn moves(&mut self, kind: &str, path: &str, offset: u64, size: u64, bytes: u64) {
        self.call(kind, path, |call| {
            (call.offset, call.size) = (Some(offset), Some(size));
            (call.wanted, call.result) = (Some(bytes), bytes as i64);
        });
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// A thread slept until another woke it.
    pub(crate) fn sleeps(&mut self, thread: u32, start: u64, end: u64, woken_by: u32) {
        let duration = end.saturating_sub(start);
        self.events.push(TraceEvent::Wait(TracedWait { start, duration, thread, woken_by: Some(woken_by) }));
    }

    /// The last call. What follows it begins where it ended first.
    pub(crate) fn last(&mut self) -> &mut TracedCall {
        match self.events.last_mut() {
            Some(TraceEvent::Call(call)) => call,
            _ => panic!("no call"),
        }
    }

    pub(crate) fn written(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header =
            TraceHeader { recorder: "ebpf".to_owned(), under: vec!["/d".to_owned()], ..TraceHeader::default() };
        let mut writer = TraceWriter::new(Box::new(&mut bytes), header).unwrap();
        writer.tree(&self.tree, &self.paths).unwrap();
        self.events.iter().for_each(|event| writer.event(event, &self.paths).unwrap());
        writer.finish(TraceEnd::default()).unwrap();
        bytes
    }

    pub(crate) fn script(&self) -> String {
        learn(Cursor::new(self.written()), "9").unwrap().text
    }

    /// A transaction with a journal, as a database makes it.
    fn transaction(&mut self, n: u64) {
        self.open("/d/a.journal", CREATE);
        for block in 0..=n % 3 {
            self.moves("pwrite64", "/d/a.journal", block * 4096, block * 4096, 4096);
        }
        self.call("fdatasync", "/d/a.journal", |_| ());
        self.call("pwrite64", "/d/a.db", |call| {
            (call.offset, call.size) = (Some(n * 7 % 100 * 4096), Some(100 * 4096));
            (call.wanted, call.result) = (Some(4096), 4096);
            call.start += 50_000;
        });
        self.call("fdatasync", "/d/a.db", |_| ());
        self.call("close", "/d/a.journal", |call| call.size = Some((n % 3 + 1) * 4096));
        self.call("unlink", "/d/a.journal", |_| ());
    }
}

/// The flowops of a definition in order, by their types.
fn flowops(script: &str, name: &str) -> Vec<String> {
    let begin = script.find(&format!("define flowop name={name} {{")).unwrap_or_else(|| panic!("{name}: {script}"));
    let body = &script[begin..begin + script[begin..].find("\n}").unwrap()];
    body.lines().filter_map(|line| line.trim().strip_prefix("flowop ")?.split(' ').next().map(str::to_owned)).collect()
}

#[test]
fn a_transaction_is_an_iteration_with_its_calls_in_order() {
    let mut trace = MadeTrace::new();
    (0..400).for_each(|n| trace.transaction(n));
    let script = trace.script();
    let found = flowops(&script, "loop1");
    let found: Vec<String> = found.into_iter().filter(|flowop| flowop != "compute").collect();
    let wanted = ["createfile", "appendfile", "fdatasync", "write", "fdatasync", "closefile", "deletefile"];
    let begin = found.iter().position(|flowop| flowop == "createfile").unwrap();
    let rotated: Vec<String> = (0..found.len()).map(|n| found[(begin + n) % found.len()].clone()).collect();
    assert_eq!(rotated, wanted, "{script}");
    assert!(script.contains("value=0.00005"), "{script}");
    // Thirds of the runs have one, two and three writes.
    assert!(script.contains("{34,1,1},{33,2,2},{33,3,3}"), "{script}");
    let table = "define file name=a_db,path=$dir,size=$a_db_size,prealloc,fillsize=4k\n";
    assert!(script.contains(table) && !script.contains("size=$a_journal_size,prealloc,fill"), "{script}");
}

/// The file sets that a script defines, by their comments.
fn objects(script: &str) -> Vec<&str> {
    let lines: Vec<&str> = script.lines().collect();
    let is_set = |pair: &&[&str]| pair[1].starts_with("define file");
    lines.windows(2).filter(is_set).filter_map(|pair| pair[0].strip_prefix("# ")).collect()
}

#[test]
fn files_of_a_directory_that_are_used_in_different_ways_are_others() {
    // A table, a log and a journal with about as many calls each; with extensions, with none, and with numbers alone.
    for [table, log, journal] in [["table", "log", "journal"], ["a.dat", "b.dat", "c.dat"], ["1", "2", "3"]] {
        let (paths, mut trace) = ([table, log, journal].map(|name| format!("/d/{name}")), MadeTrace::new());
        for n in 0..300u64 {
            (0..4).for_each(|k| trace.moves("pread64", &paths[0], (n * 7 + k) % 100 * 4096, 409_600, 4096));
            trace.open(&paths[2], CREATE);
            trace.moves("write", &paths[2], 0, 0, 512);
            trace.call("close", &paths[2], |call| call.size = Some(512));
            trace.moves("pwrite64", &paths[1], n * 100, n * 100, 100);
            trace.call("fdatasync", &paths[1], |_| ());
            trace.call("unlink", &paths[2], |_| ());
        }
        let script = trace.script();
        let found: BTreeSet<&str> = objects(&script).into_iter().collect();
        assert_eq!(found, BTreeSet::from([table, log, journal]), "{script}");
        assert_eq!(script.matches("define file name=").count(), 3, "{script}");
    }
}

#[test]
fn segments_of_a_log_are_no_tables_and_tables_are_alike() {
    let mut trace = MadeTrace::new();
    for n in 0..1000u64 {
        let (table, segment) = (format!("/d/base.{}", n % 4), format!("/d/{:08X}", n / 250 + 9));
        trace.moves("pread64", &table, n * 7 % 100 * 4096, 409_600, 4096);
        trace.moves("pwrite64", &table, n * 7 % 100 * 4096, 409_600, 4096);
        trace.moves("pwrite64", &segment, n % 250 * 100, n % 250 * 100, 100);
        trace.call("fdatasync", &segment, |_| ());
        trace.call("newfstatat", "/d/lock", |call| call.stat_size = Some(9));
    }
    let script = trace.script();
    let mut found = objects(&script);
    found.sort_unstable();
    assert_eq!(found, ["#", "base.#", "lock"], "{script}");
}

#[test]
fn a_checkpoint_now_and_then_is_an_outer_loop() {
    let mut trace = MadeTrace::new();
    for n in 0..400 {
        trace.moves("pwrite64", "/d/log", n % 40 * 4096, n % 40 * 4096, 4096);
        trace.call("fdatasync", "/d/log", |_| ());
        if n % 40 == 39 {
            for block in 0..6 {
                trace.moves("pread64", "/d/log", block * 40_960, 163_840, 4096);
                trace.moves("pwrite64", "/d/db", block * 8192, 81_920, 4096);
            }
            trace.call("fsync", "/d/db", |_| ());
            trace.moves("pwrite64", "/d/log", 0, 163_840, 32);
            trace.call("fdatasync", "/d/log", |_| ());
        }
    }
    let script = trace.script();
    // The log's write that ends a checkpoint is one more.
    assert!(script.contains("name=loop1_block1_use,iters=41"), "{script}");
    assert!(script.contains("name=loop1_block2_use,iters=6"), "{script}");
    let mut found = flowops(&script, "loop1");
    found.retain(|flowop| flowop != "compute");
    assert_eq!((found.len(), found[found.len() - 1].as_str()), (3, "fsync"), "{script}");
}

#[test]
fn a_log_that_begins_again_has_its_size() {
    let mut trace = MadeTrace::new();
    for n in 0..400 {
        if n % 40 == 0 {
            trace.moves("pwrite64", "/d/log", 0, 163_872, 32);
            trace.call("fdatasync", "/d/log", |_| ());
        }
        trace.moves("pread64", "/d/db", n * 7 % 100 * 4096, 409_600, 4096);
        trace.moves("pwrite64", "/d/log", 32 + n % 40 * 4096, 163_872, 4096);
        trace.call("fdatasync", "/d/log", |_| ());
    }
    let script = trace.script();
    assert!(script.contains("filesetname=log,fd=102,iosize=4k,wrap=$write1_wrap"), "{script}");
}

#[test]
fn sessions_are_repeated_and_a_call_that_some_have_is_a_choice() {
    let mut trace = MadeTrace::new();
    for n in 0..300u64 {
        for k in 0..5 {
            let file = format!("/d/tree/{:03}", (n * 5 + k) % 200);
            trace.open(&file, 0);
            trace.moves("read", &file, 0, 8192, 8192);
            if (n * 5 + k) % 4 == 0 {
                trace.call("fstat", &file, |call| call.stat_size = Some(8192));
            }
            trace.call("close", &file, |call| call.size = Some(8192));
        }
        trace.moves("pwrite64", "/d/log", n * 100, n * 100, 100);
    }
    let script = trace.script();
    assert!(script.contains("iters=5"), "{script}");
    assert!(script.contains("by=slot,weight=24.95"), "{script}");
    assert!(script.contains("entries=$tree_files,size=$tree_size"), "{script}");
    assert!(script.lines().count() < 65, "{script}");
}

#[test]
fn a_look_that_a_flowop_makes_by_itself_is_not_made_twice() {
    let mut trace = MadeTrace::new();
    for n in 0..600u64 {
        let file = format!("/d/tree/{n:03}");
        trace.open(&file, 0);
        trace.call("fstat", &file, |call| call.stat_size = Some(8192));
        trace.moves("read", &file, 0, 8192, 8192);
        trace.call("close", &file, |call| call.size = Some(8192));
        // Directly after the first time the engine does not look again, but the program does.
        trace.open(&file, 0);
        trace.call("fstat", &file, |call| call.stat_size = Some(8192));
        trace.call("close", &file, |call| call.size = Some(8192));
    }
    let script = trace.script();
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let behind = |flowop: &str| {
        let at = lines.iter().position(|line| line.starts_with(flowop)).unwrap_or_else(|| panic!("{script}"));
        lines[at - 1]
    };
    assert!(behind("flowop read").starts_with("flowop openfile"), "{script}");
    assert!(behind("flowop statfile").starts_with("flowop openfile"), "{script}");
    assert_eq!(script.matches("flowop statfile").count(), 1, "{script}");
}

#[test]
fn a_name_that_is_looked_at_before_it_goes_is_one_flowop() {
    let mut trace = MadeTrace::new();
    for n in 0..300u64 {
        let (new, old) = (format!("/d/new/{n:03}"), format!("/d/old/{n:03}"));
        trace.call("newfstatat", &old, |call| call.stat_size = Some(100));
        trace.call("newfstatat", &new, |call| call.result = -2);
        let second = Some(trace.paths.resolve(PathId::ROOT, new.as_bytes()));
        trace.call("renameat2", &old, |call| call.second_path = second);
        trace.call("newfstatat", &new, |call| call.stat_size = Some(100));
        trace.call("unlinkat", &new, |_| ());
    }
    let script = trace.script();
    assert!(!script.contains("statfile"), "{script}");
    assert!(script.contains("flowop rename") && script.contains("flowop deletefile"), "{script}");
}

#[test]
fn a_directory_is_listed_by_one_flowop_and_a_place_for_names_is_none() {
    let mut trace = MadeTrace::new();
    for n in 0..300u64 {
        let dir = format!("/d/tree/{n:03}");
        let is_dir = |call: &mut TracedCall| call.mode = Some(flags::S_IFDIR | 0o755);
        trace.call("openat", &dir, |call| (call.flags, call.mode) = (Some(flags::O_PATH as u32), Some(flags::S_IFDIR)));
        trace.call("fstat", &dir, is_dir);
        trace.call("openat", &dir, |call| (call.flags, call.mode, call.result) = (Some(0), Some(flags::S_IFDIR), 4));
        for bytes in [3000, 200, 0] {
            trace.call("getdents64", &dir, |call| (call.wanted, call.result) = (Some(32_768), bytes));
        }
        trace.call("close", &dir, is_dir);
        trace.call("newfstatat", &format!("{dir}/a"), |call| call.stat_size = Some(100));
    }
    let script = trace.script();
    let mut found = flowops(&script, "loop1");
    found.retain(|flowop| flowop != "compute");
    found.sort_unstable();
    assert_eq!(found, ["listdir", "statfile"], "{script}");
}

#[test]
fn what_comes_and_goes_by_chance_does_not_run_out() {
    let mut trace = MadeTrace::new();
    let (mut made, mut state) = (0u64, 7u64);
    let mut there: Vec<String> = Vec::new();
    for _ in 0..2000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match (state >> 60) % 2 {
            0 if !there.is_empty() => {
                let file = there.remove(0);
                trace.call("unlinkat", &file, |_| ());
            }
            _ => {
                let file = format!("/d/pool/{made:05}");
                made += 1;
                trace.open(&file, CREATE);
                trace.moves("write", &file, 0, 0, 500);
                trace.call("close", &file, |call| call.size = Some(500));
                there.push(file);
            }
        }
        trace.call("newfstatat", "/d/log", |call| call.stat_size = Some(9));
    }
    let script = trace.script();
    let number = |name: &str| {
        let begin = script.find(name).unwrap_or_else(|| panic!("{script}")) + name.len();
        let digits: String = script[begin..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    };
    let (files, percent) = (number("_files="), number("prealloc="));
    let existing = files * percent / 100;
    // A thousand steps by chance lead some 30 away: there are enough files and names for more than three times that.
    assert!(existing >= 100 && files - existing >= 100, "{script}");
    // And the script ends: at some time no number is enough.
    assert!(script.contains("finishoncount"), "{script}");
}

#[test]
fn a_sync_that_comes_first_finds_its_file_open() {
    let mut trace = MadeTrace::new();
    for n in 0..300u64 {
        let file = format!("/d/tree/{:03}", n % 200);
        trace.open(&file, 0);
        trace.moves("read", &file, 0, 8192, 8192);
        trace.call("close", &file, |call| call.size = Some(8192));
        trace.call("fdatasync", "/d/log", |_| ());
    }
    let script = trace.script();
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.starts_with("flowop fdatasync")).unwrap_or_else(|| panic!("{script}"));
    assert!(lines[at - 1].contains("lseek") && lines[at - 1].contains("fd=101,whence=cur"), "{script}");
}

#[test]
fn a_file_that_no_loop_makes_exists_and_a_link_is_no_file() {
    let mut trace = MadeTrace::new();
    let all = |trace: &mut MadeTrace, n: u64| {
        let file = format!("/d/tree/{:03}", n % 200);
        trace.open(&file, 0);
        trace.moves("read", &file, 0, 8192, 8192);
        trace.call("close", &file, |call| call.size = Some(8192));
    };
    (0..2000).for_each(|n| all(&mut trace, n));
    trace.open("/d/result", CREATE);
    for n in 0..2000 {
        trace.moves("write", "/d/result", n * 100, n * 100, 100);
        trace.call("symlinkat", &format!("/d/tree/link{n}"), |_| ());
    }
    let script = trace.script();
    assert!(script.lines().any(|line| line.contains("name=result,") && line.ends_with(",prealloc")), "{script}");
    assert!(script.contains("filesetname=tree_link_links"), "{script}");
}

#[test]
fn a_random_read_of_a_small_file_is_shorter() {
    let mut trace = MadeTrace::new();
    for n in 0..600u64 {
        let is_small = n % 50 == 0;
        let (file, size) = (format!("/d/tree/{:02}", n % 50), if is_small { 4096 } else { 8 << 20 });
        trace.open(&file, 0);
        for k in 0..3 {
            let offset = if is_small { 0 } else { (n * 607 + k * 311) % 1024 * 8192 };
            trace.moves("pread64", &file, offset, size, if is_small { 4096 } else { 8192 });
        }
        trace.call("close", &file, |call| call.size = Some(size));
    }
    let script = trace.script();
    assert!(script.contains("random,partial"), "{script}");
}

#[test]
fn damaged_traces_are_errors_and_no_panics() {
    let mut trace = MadeTrace::new();
    (0..60).for_each(|n| trace.transaction(n));
    let good = trace.written();
    let mut state = 1u64;
    for _ in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        if state.is_multiple_of(3) {
            bytes.truncate((state >> 40) as usize % bytes.len());
        }
        let _ = learn(Cursor::new(bytes), "9");
    }
    let empty = MadeTrace::new().written();
    assert!(learn(Cursor::new(empty), "9").unwrap_err().message.contains("nothing to learn"));
}

#[test]
fn any_values_in_a_trace_are_taken() {
    // Whole blocks with wild contents, which checksums do not refuse.
    let kinds = wml_trace::KINDS.len() as u64;
    for seed in 1..40u64 {
        let mut trace = MadeTrace::new();
        let mut state = seed;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..300 {
            let (a, b, c) = (next(), next(), next());
            let kind = wml_trace::KINDS[(a % kinds) as usize].name;
            trace.call(kind, &format!("/d/{}/f{}", b % 3, b % 7), |call| {
                call.thread = (c % 3) as u32;
                call.result = if c % 5 == 0 { -2 } else { (c >> (c % 60)) as i64 };
                call.offset = Some(b >> (a % 64));
                call.size = (c % 2 == 0).then_some(a >> (b % 64));
                call.wanted = Some(c >> (b % 64));
                call.flags = Some(a as u32);
                call.mode = (b % 9 == 0).then_some(flags::S_IFDIR);
                call.start = a >> (10 + a % 50);
                call.second_path = call.path.filter(|_| c % 4 == 0);
            });
            if a % 3 == 0 {
                trace.sleeps((b % 4) as u32, trace.now() >> (c % 40), a >> (b % 60), (c % 5) as u32);
            }
        }
        let _ = learn(Cursor::new(trace.written()), "9");
    }
}

#[test]
fn threads_that_do_one_job_in_turn_are_one() {
    let mut trace = MadeTrace::new();
    for n in 0..300u32 {
        let path = format!("/d/f{n}.dat");
        let mut thread = 7 + n % 4;
        let mut turn = |trace: &mut MadeTrace| {
            trace.last().thread = thread;
            thread = 7 + (thread - 6) % 4;
        };
        trace.open(&path, CREATE);
        turn(&mut trace);
        trace.moves("write", &path, 0, 0, 4096);
        turn(&mut trace);
        trace.moves("write", &path, 4096, 4096, 100);
        turn(&mut trace);
        trace.call("close", &path, |call| call.size = Some(4196));
        turn(&mut trace);
    }
    let learned = learn(Cursor::new(trace.written()), "9").unwrap();
    assert!(learned.text.contains("4 threads take the calls of one job in turn"), "{}", learned.text);
    let found: Vec<String> = flowops(&learned.text, "loop1").into_iter().filter(|flowop| flowop != "compute").collect();
    assert_eq!(found, ["createfile", "writewholefile", "closefile"], "{}", learned.text);
    assert_eq!(learned.calls, 1200);
    assert!(learned.modelled > 1190, "{}", learned.modelled);
}

#[test]
fn a_thread_that_opens_files_for_another_makes_no_pool() {
    let mut trace = MadeTrace::new();
    for n in 0..300u32 {
        let path = format!("/d/f{n}.dat");
        trace.open(&path, 0);
        trace.last().thread = 8;
        for block in 0..30 {
            trace.moves("pread64", &path, block % 7 * 4096, 1 << 20, 4096);
        }
        trace.call("close", &path, |call| call.size = Some(1 << 20));
    }
    let learned = learn(Cursor::new(trace.written()), "9").unwrap();
    assert!(!learned.text.contains("of one job in turn"), "{}", learned.text);
}

#[test]
fn another_name_of_a_file_has_its_size() {
    let mut trace = MadeTrace::new();
    for n in 0..200u32 {
        let (first, second) = (format!("/d/box/t{n}"), format!("/d/box/n{n}"));
        trace.open(&first, CREATE);
        trace.moves("write", &first, 0, 0, 5000);
        trace.call("close", &first, |call| call.size = Some(5000));
        let second = trace.paths.resolve(PathId::ROOT, second.as_bytes());
        trace.call("link", &first, |call| call.second_path = Some(second));
        trace.call("unlink", &first, |_| ());
    }
    let script = trace.script();
    assert!(script.contains("=5000 * $scale"), "{script}");
}

#[test]
fn a_walk_lists_each_directory_once() {
    let mut trace = MadeTrace::new();
    for n in 0..200 {
        let (above, below) = (format!("/d/a{n}"), format!("/d/a{n}/b"));
        let list = |trace: &mut MadeTrace, path: &str, bytes: i64| {
            trace.call("getdents64", path, |call| (call.result, call.mode) = (bytes, Some(0o40755)));
        };
        trace.call("openat", &above, |call| (call.result, call.mode) = (3, Some(0o40755)));
        list(&mut trace, &above, 300);
        trace.call("openat", &below, |call| (call.result, call.mode) = (3, Some(0o40755)));
        list(&mut trace, &below, 200);
        list(&mut trace, &below, 0);
        trace.call("close", &below, |call| call.mode = Some(0o40755));
        list(&mut trace, &above, 0);
        trace.call("close", &above, |call| call.mode = Some(0o40755));
    }
    let script = trace.script();
    let lists = script.lines().filter(|line| line.contains("flowop listdir"));
    assert!(lists.clone().count() > 0 && lists.clone().all(|line| !line.contains("iters")), "{script}");
}
