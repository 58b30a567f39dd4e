//! Scripts of made traces that a person reads: short ones that say each thing once, and that run.

#![allow(clippy::unwrap_used)]

use super::MOST_LINES;
use super::tests::{CREATE, MadeTrace};

/// How many lines begin with this.
fn count(script: &str, begin: &str) -> usize {
    script.lines().filter(|line| line.trim().starts_with(begin)).count()
}

/// Makes, fills, syncs and moves a file, in one of many ways.
fn start_up(trace: &mut MadeTrace, n: u64, bytes: u64) {
    let (file, new) = (format!("/d/conf/{n:03}"), format!("/d/conf/new{n:03}"));
    trace.open(&new, CREATE);
    (0..8).filter(|bit| n >> bit & 1 == 1).for_each(|bit| {
        let kind = ["fsync", "fdatasync", "flock", "fchmod", "fchown", "fgetxattr", "fsetxattr", "flistxattr"];
        trace.call(kind[bit], &new, |_| ());
    });
    trace.moves("write", &new, 0, 0, bytes + n);
    trace.call("close", &new, |call| call.size = Some(bytes + n));
    trace.call("renameat2", &new, |_| ());
    trace.call("newfstatat", &file, |call| call.result = -2);
}

#[test]
fn what_is_little_of_all_makes_no_script_long() {
    let script = |start_ups: u64, transactions: u64| {
        let mut trace = MadeTrace::new();
        (0..start_ups).for_each(|n| start_up(&mut trace, n * 5 % 256, 100));
        (0..transactions).for_each(|n| transaction(&mut trace, n));
        trace.script()
    };
    let (long, short) = (script(600, 300), script(60, 4000));
    assert!(short.lines().count() <= MOST_LINES, "{short}");
    assert!(short.contains("flowop fdatasync") && short.contains("Left out: "), "{short}");
    // Control: what is much of all is there.
    assert!(long.contains("flowop createfile"), "{long}");
}

/// Writes to a log, syncs it, and reads.
fn transaction(trace: &mut MadeTrace, n: u64) {
    trace.moves("write", "/d/log", n * 4096, n * 4096, 4096);
    trace.call("fdatasync", "/d/log", |_| ());
    trace.moves("pread64", "/d/data", n * 611 % 1000 * 8192, 8_192_000, 8192);
}

#[test]
fn what_moves_most_of_the_bytes_stays_however_few_calls_it_is() {
    let script = |bytes: u64| {
        let mut trace = MadeTrace::new();
        for n in 0..560 {
            transaction(&mut trace, n);
            if n % 18 == 0 {
                start_up(&mut trace, n / 18 * 8, bytes);
            }
        }
        trace.script()
    };
    let (little, much) = (script(100), script(4 << 20));
    assert!(!little.contains("flowop createfile"), "{little}");
    let header = little.replace("\n# ", " ");
    assert!(header.contains(" calls, without ") && header.contains(" createfile"), "{little}");
    assert!(much.contains("flowop createfile"), "{much}");
}

#[test]
fn a_wait_for_a_thread_that_only_computes_is_a_delay() {
    let script = |calls: u64, every: u64| {
        let mut trace = MadeTrace::new();
        for n in 0..calls {
            trace.moves("write", "/d/other", n * 10, n * 10, 10);
            trace.last().thread = 3;
        }
        for n in 0..400u64 {
            trace.moves("write", "/d/out", n * 4096, n * 4096, 4096);
            let begin = trace.now();
            let sleeps = n % every == 0;
            if sleeps {
                trace.sleeps(7, begin + 100_000, begin + 4_100_000, 3);
            }
            trace.call("pread64", "/d/in", |call| {
                (call.offset, call.size, call.wanted, call.result) = (Some(n * 4096), Some(1 << 22), Some(4096), 4096);
                call.start += if sleeps { 4_200_000 } else { 0 };
                call.between.as_mut().unwrap().blocked = if sleeps { 4_000_000 } else { 0 };
            });
        }
        trace.script()
    };
    assert!(script(0, 1).contains("flowop delay name=delay1,value=0.004\n"), "{}", script(0, 1));
    // One in some iterations is not spread over all.
    assert!(script(0, 10).contains("flowop delay name=delay1,value=0.004,weight="), "{}", script(0, 10));
    // Control: what that one does is in the script.
    assert!(!script(400, 1).contains("flowop delay"), "{}", script(400, 1));
}

#[test]
fn directories_that_are_removed_by_chance_are_there() {
    let mut trace = MadeTrace::new();
    for n in 0..400u64 {
        let dir = format!("/d/lock/{n:03}");
        let kind = if n % 3 == 0 { "mkdirat" } else { "newfstatat" };
        trace.call(kind, &dir, |call| call.mode = Some(0o040_755));
        trace.moves("write", "/d/log", n * 40, n * 40, 40);
        if n % 7 == 3 {
            trace.call("rmdir", &format!("/d/lock/{:03}", n - 3), |call| call.mode = Some(0o040_755));
        }
    }
    let script = trace.script();
    assert!(script.contains("flowop removedir"), "{script}");
    let line = script.lines().find(|line| line.contains("_dirs,path=")).unwrap_or_else(|| panic!("{script}"));
    assert!(line.contains(",prealloc="), "{script}");
}

#[test]
fn a_loop_begins_with_what_opens_the_file_that_it_syncs() {
    let mut trace = MadeTrace::new();
    for n in 0..400u64 {
        // Some transactions change the file before, by a call in another place.
        if n % 5 == 0 {
            trace.moves("writev", "/d/data", n * 4096, 1 << 22, 8192);
        }
        trace.call("fdatasync", "/d/data", |_| ());
        trace.moves("pwrite64", "/d/data", n % 2 * 4096, 1 << 22, 120);
    }
    let script = trace.script();
    assert_eq!(count(&script, "flowop lseek"), 0, "{script}");
    assert!(script.contains("flowop fdatasync") && script.contains("flowop writevec"), "{script}");
}

#[test]
fn copies_of_files_are_sessions_of_two_files_however_long_they_are() {
    let mut trace = MadeTrace::new();
    for n in 0..400u64 {
        let (from, to) = (format!("/d/from/{n:03}.a"), format!("/d/to/{n:03}.b"));
        if n % 20 == 0 {
            trace.call("getdents64", "/d/from", |call| call.mode = Some(0o040_755));
        }
        trace.open(&from, 0);
        trace.open(&to, CREATE);
        let chunks = [1, 1, 2, 1, 3, 1, 1, 5][n as usize % 8];
        for chunk in 0..chunks {
            trace.moves("read", &from, chunk * 8192, chunks * 8192, 8192);
            trace.moves("write", &to, chunk * 8192, chunk * 8192, 8192);
        }
        trace.call("close", &from, |call| call.size = Some(chunks * 8192));
        trace.call("close", &to, |call| call.size = Some(chunks * 8192));
        trace.call("utimensat", &to, |_| ());
    }
    let script = trace.script();
    assert_eq!(count(&script, "flowop createfile"), 1, "{script}");
    assert_eq!(count(&script, "flowop utimens"), 1, "{script}");
}

#[test]
fn a_thread_that_computes_for_long_between_two_parts_does_one_thing() {
    let mut trace = MadeTrace::new();
    for n in 0..600u64 {
        let file = format!("/d/tree/{n:03}");
        trace.open(&file, 0);
        if n % 200 == 199 {
            // A third of its life.
            trace.last().start += 1_500_000_000;
        }
        trace.moves("read", &file, 0, 4096, 4096);
        trace.call("close", &file, |call| call.size = Some(4096));
    }
    let script = trace.script();
    assert_eq!(count(&script, "thread name="), 1, "{script}");
    assert!(script.contains("flowop compute"), "{script}");
}

#[test]
fn calls_that_failed_have_moved_nothing() {
    let mut trace = MadeTrace::new();
    for n in 0..100u64 {
        trace.moves("read", "/d/in", n * 4096, 1 << 22, 4096);
        trace.call("copy_file_range", "/d/in", |call| (call.wanted, call.result) = (Some(i64::MAX as u64), -22));
    }
    let script = trace.script();
    assert!(script.contains("100 copy_file_range") && !script.contains("EiB"), "{script}");
}

#[test]
fn a_close_of_a_copied_descriptor_hides_no_loop() {
    let mut trace = MadeTrace::new();
    for n in 0..100u64 {
        let dir = format!("/d/tree/{n:03}");
        let is_dir = Some(0o040_755);
        trace.call("openat", &dir, |call| (call.flags, call.result, call.mode) = (Some(0), 3, is_dir));
        for entries in [500, 0] {
            trace.call("getdents64", &dir, |call| {
                (call.wanted, call.result, call.mode) = (Some(32768), entries, is_dir);
            });
        }
        let copies = n % 3;
        (0..copies).for_each(|_| {
            trace.call("fcntl", &dir, |call| (call.flags, call.result, call.mode) = (Some(1030), 4, is_dir));
        });
        (0..=copies).for_each(|_| trace.call("close", &dir, |call| call.mode = is_dir));
    }
    let script = trace.script();
    assert!(script.contains("flowop listdir") && !script.contains("No flowop makes"), "{script}");
}

#[test]
fn a_transaction_of_one_phase_stands_for_a_run_only_if_that_is_most_of_it() {
    let script = |first: u64| {
        let mut trace = MadeTrace::new();
        for n in 0..first {
            trace.call("newfstatat", "/d/tree", |call| call.start += 2_000);
            trace.moves("pread64", "/d/data", n * 611 % 1000 * 8192, 8_192_000, 8192);
            trace.last().thread = 7;
        }
        for n in 0..2000u64 {
            trace.moves("write", "/d/log", n * 100, n * 100, 100);
            trace.last().thread = 8;
            trace.call("fsync", "/d/log", |call| (call.thread, call.duration) = (8, 100_000));
        }
        trace.script()
    };
    let (long, short) = (script(2000), script(100));
    assert!([&long, &short].iter().all(|script| script.contains(",phase=2")), "{long}{short}");
    assert!(!long.contains("# Transaction: "), "{long}");
    assert!(short.contains("# Transaction: loop2, ends with "), "{short}");
}
