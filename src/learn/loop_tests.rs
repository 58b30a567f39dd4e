//! Loops and what comes before them, of traces that are made here.

#![allow(clippy::unwrap_used)]

use crate::tests::{CREATE, MadeTrace};
use wml_trace::TracedCall;

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn a_rare_call_ends_no_iteration_for_hiding_how_often_others_are_made() {
    let (mut trace, mut chance) = (MadeTrace::new(), Chance(5));
    for n in 0..3000 {
        for _ in 0..=chance.below(12) {
            trace.moves("pread64", "/d/table", chance.below(400) * 4096, 400 * 4096, 4096);
        }
        trace.moves("pwrite64", "/d/log", n * 100, n * 100, 100);
        trace.call("fdatasync", "/d/log", |_| ());
        if chance.below(40) == 0 {
            trace.call("newfstatat", "/d/settings", |call| call.stat_size = Some(9));
        }
    }
    let script = trace.script();
    let end = script.lines().find(|line| line.starts_with("# Transaction: ")).unwrap_or_else(|| panic!("{script}"));
    assert!(!end.contains("statfile"), "{script}");
    assert!(script.contains("thread, 2,999 iterations"), "{script}");
}

/// Files that are made, and then transactions that read, make and remove some.
fn pool(files: u64, transactions: u64) -> MadeTrace {
    let (mut trace, mut chance) = (MadeTrace::new(), Chance(7));
    let make = |trace: &mut MadeTrace, n: u64| {
        let file = format!("/d/pool/{n:06}");
        trace.open(&file, CREATE);
        trace.moves("write", &file, 0, 0, 500);
        trace.call("close", &file, |call| call.size = Some(500));
        file
    };
    let mut there: Vec<String> = (0..files).map(|n| make(&mut trace, n)).collect();
    for n in 0..transactions {
        let at = chance.below(there.len() as u64) as usize;
        trace.open(&there[at], 0);
        trace.moves("read", &there[at], 0, 500, 500);
        trace.call("close", &there[at], |call| call.size = Some(500));
        if chance.below(2) == 0 {
            there.push(make(&mut trace, files + n));
        } else {
            trace.call("unlinkat", &there.swap_remove(at), |_| ());
        }
    }
    trace
}

/// The number behind this text.
fn number(script: &str, name: &str) -> u64 {
    let begin = script.find(name).unwrap_or_else(|| panic!("{name}: {script}")) + name.len();
    script[begin..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn files_that_are_made_first_exist_and_their_making_is_no_part_of_the_loop() {
    let script = pool(1000, 20_000).script();
    assert!(script.contains("# Set-up: 3,000 calls made files that exist here at the beginning."), "{script}");
    assert!(script.contains("loop1: 1 thread") && !script.contains("loop2"), "{script}");
    let existing = number(&script, "pool_files=") * number(&script, "prealloc=") / 100;
    assert!((900..1100).contains(&existing), "{existing}: {script}");
}

#[test]
fn files_that_are_made_for_long_are_made_by_the_script_too() {
    let script = pool(3000, 3000).script();
    assert!(!script.contains("Set-up") && script.contains("loop2"), "{script}");
    assert!(number(&script, "loop1_times=") > 2800, "{script}");
}

#[test]
fn a_file_that_stays_open_while_it_is_opened_again_hides_no_call() {
    let (mut trace, mut chance) = (MadeTrace::new(), Chance(3));
    trace.open("/d/table", 0);
    for _ in 0..20_000 {
        let offset = chance.below(400) * 4096;
        match chance.below(8) {
            0 => {
                trace.open("/d/table", 0);
                trace.call("close", "/d/table", |call| call.size = Some(400 * 4096));
            }
            1 => trace.call("newfstatat", "/d/table", |call| call.stat_size = Some(400 * 4096)),
            2 | 3 => trace.moves("pwrite64", "/d/table", offset, 400 * 4096, 4096),
            _ => trace.moves("pread64", "/d/table", offset, 400 * 4096, 4096),
        }
    }
    let script = trace.script();
    for flowop in ["openfile", "closefile", "statfile", "read", "write"] {
        assert!(script.contains(&format!("flowop {flowop} ")), "{flowop}: {script}");
    }
}

#[test]
fn short_threads_that_follow_one_another_are_one() {
    let mut trace = MadeTrace::new();
    for n in 0..120u32 {
        let (source, object) = (format!("/d/{n}.c"), format!("/d/{n}.o"));
        // A compiler and an assembler of each file, which begin when those before have ended.
        let of = |trace: &mut MadeTrace, thread: u32| (trace.last().thread, trace.last().process) = (thread, thread);
        trace.open(&source, 0);
        of(&mut trace, 100 + 2 * n);
        trace.moves("read", &source, 0, 300, 300);
        of(&mut trace, 100 + 2 * n);
        trace.call("close", &source, |call| call.size = Some(300));
        of(&mut trace, 100 + 2 * n);
        trace.open(&object, CREATE);
        of(&mut trace, 101 + 2 * n);
        trace.moves("write", &object, 0, 0, 1000);
        of(&mut trace, 101 + 2 * n);
        trace.call("close", &object, |call| call.size = Some(1000));
        of(&mut trace, 101 + 2 * n);
    }
    let script = trace.script();
    assert!(script.contains("240 threads that follow one another are 1 thread here."), "{script}");
    assert!(script.contains("loop1: 1 thread, ") && !script.contains("loop2"), "{script}");
    let flowops = ["openfile", "createfile"].map(|flowop| script.matches(&format!("flowop {flowop} ")).count());
    assert_eq!(flowops, [1, 1], "{script}");
}

/// A program that looks at files and opens some, so often each.
fn visits(times: u64) -> String {
    let (mut trace, mut chance) = (MadeTrace::new(), Chance(3));
    for n in 0..300 * times {
        let file = format!("/d/home/tree/{:02}/{:03}", n % 10, n % 300);
        match chance.below(5) {
            0..4 => trace.call("newfstatat", &file, |call| call.stat_size = Some(500)),
            _ => {
                trace.open(&file, 0);
                (0..=chance.below(5)).for_each(|_| trace.moves("read", &file, 0, 500, 500));
                trace.call("close", &file, |call| call.size = Some(500));
            }
        }
    }
    trace.script()
}

#[test]
fn a_walk_through_a_tree_ends_at_its_end() {
    let walk = visits(1);
    assert!(walk.contains("set mode quit alldone\n") && walk.contains("_times=300 * $files\n"), "{walk}");
    // A run is the unit.
    assert!(!walk.contains("transaction="), "{walk}");
    let server = visits(20);
    assert!(!server.contains("quit alldone") && server.contains("\nrun 60\n"), "{server}");
}

/// As one that makes a database of names does: no file of the tree is touched.
#[test]
fn a_walk_through_directories_ends_at_its_end_and_has_their_files() {
    for writes in [12, 0] {
        let script = walk_through_directories(writes);
        assert!(script.contains("set mode quit alldone\n") && script.contains("=1680 * $files\n"), "{script}");
        assert!(script.contains("flowop listdir") && script.contains("filesetname=tree"), "{script}");
    }
}

#[test]
fn a_walk_before_much_else_is_no_whole_run() {
    let script = walk_through_directories(4000);
    assert!(!script.contains("quit alldone"), "{script}");
}

/// So many files are written, new ones if they are many.
fn walk_through_directories(writes: u64) -> String {
    let mut trace = MadeTrace::new();
    let out = "/d/home/db";
    for n in 0..240 {
        let dir = format!("/d/home/tree/{:02}/e{n:03}", n % 12);
        trace.exists(&dir, 0o40755, 4096);
        (0..7).for_each(|file| trace.exists(&format!("{dir}/f{file}"), 0o100_644, 1000));
    }
    if writes > 0 {
        trace.open(out, 0o101);
    }
    for n in 0..240 {
        let dir = format!("/d/home/tree/{:02}/e{n:03}", n % 12);
        let is_dir = |call: &mut TracedCall, result: i64| (call.result, call.mode) = (result, Some(0o40755));
        trace.call("openat", &dir, |call| is_dir(call, 3));
        trace.call("getdents64", &dir, |call| is_dir(call, 300));
        trace.call("getdents64", &dir, |call| is_dir(call, 0));
        trace.call("close", &dir, |call| is_dir(call, 0));
        if writes > 0 && n % 20 == 0 {
            trace.moves("write", out, n * 50, n * 50, 1000);
        }
    }
    for n in 12..writes {
        let new = format!("/d/home/new/{n}");
        trace.open(&new, CREATE);
        trace.moves("write", &new, 0, 0, 1000);
        trace.call("close", &new, |call| call.size = Some(1000));
        trace.call("unlink", &new, |_| ());
    }
    if writes > 0 {
        trace.call("close", out, |call| call.size = Some(12_000));
    }
    trace.script()
}

#[test]
fn a_program_that_keeps_its_files_open_goes_on() {
    let (mut trace, mut chance) = (MadeTrace::new(), Chance(11));
    let file = |n: u64| format!("/d/home/tables/{n:03}");
    (0..12).for_each(|n| trace.open(&file(n), 0));
    for _ in 0..6000 {
        trace.moves("pread64", &file(chance.below(12)), chance.below(400) * 4096, 400 * 4096, 4096);
    }
    (0..12).for_each(|n| trace.call("close", &file(n), |_| ()));
    let script = trace.script();
    assert!(!script.contains("quit alldone") && script.contains("\nrun 60\n"), "{script}");
}

#[test]
fn files_that_are_only_removed_or_looked_at_are_below_their_directory() {
    for kind in ["unlinkat", "newfstatat"] {
        let mut trace = MadeTrace::new();
        for n in 0..300 {
            trace.call(kind, &format!("/d/home/tree/{:02}/{n:03}", n % 10), |call| call.stat_size = Some(500));
        }
        let script = trace.script();
        assert!(script.contains("fileset name=tree,"), "{kind}: {script}");
    }
}

/// As a program that searches two trees does: their files are one set, and so are their directories.
#[test]
fn directories_whose_files_are_used_are_no_set_of_their_own() {
    let mut trace = MadeTrace::new();
    for n in 0..400 {
        let dir = format!("/d/home/{}/{:02}", if n % 2 == 0 { "arch" } else { "drivers" }, n / 20);
        if n % 20 < 2 {
            trace.call("openat", &dir, |call| (call.result, call.mode) = (4, Some(0o40755)));
            trace.call("getdents64", &dir, |call| (call.result, call.mode) = (300, Some(0o40755)));
            trace.call("close", &dir, |call| call.mode = Some(0o40755));
        }
        let file = format!("{dir}/f{n}");
        trace.exists(&file, 0o100_644, 1000);
        trace.open(&file, 0);
        trace.moves("read", &file, 0, 1000, 1000);
        trace.call("close", &file, |call| call.size = Some(1000));
    }
    let script = trace.script();
    assert_eq!(script.matches("define fileset ").count(), 1, "{script}");
}
