//! Comparisons of runs that are made here: what differs is known.

#![allow(clippy::unwrap_used)]

use super::{
    Fidelity, FidelityVerdict, RecordingsCompared, TracedRun, TracedSide, TransactionEnd, compared_values, fidelity_in,
};
use crate::tests::{CREATE, MadeTrace};
use std::io::Cursor;

/// How a program behaves.
#[derive(Clone, Copy)]
struct Behaviour {
    reads: u64,
    size: u64,
    syncs: u64,
    syncs_journal_first: bool,
    looks: u64,
    /// Nanoseconds between calls, and of a read.
    computes: u64,
    read_takes: u64,
    files: u64,
    removes: bool,
}

const PROGRAM: Behaviour = Behaviour {
    reads: 4,
    size: 4096,
    syncs: 1,
    syncs_journal_first: true,
    looks: 2,
    computes: 20_000,
    read_takes: 2_000,
    files: 1,
    removes: true,
};

/// Numbers that vary from run to run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The figures of a run of so many transactions.
fn run(of: Behaviour, transactions: u64, seed: u64) -> TracedRun {
    let (mut trace, mut draws) = (MadeTrace::new(), Draws(seed));
    for n in 0..of.files {
        trace.open(&format!("/d/more/{n}"), CREATE);
        trace.call("close", &format!("/d/more/{n}"), |_| ());
    }
    for n in 0..transactions {
        let pause = of.computes * (90 + draws.below(21)) / 100;
        for k in 0..of.reads - 1 + n % 3 {
            let offset = draws.below(100) * 4096;
            trace.moves("pread64", "/d/a.db", offset, 409_600, of.size >> (k % 2));
            trace.last().duration = of.read_takes;
        }
        (0..of.looks).for_each(|_| trace.call("stat", "/d/a.db", |call| call.start += pause));
        trace.open("/d/a.journal", CREATE);
        trace.moves("pwrite64", "/d/a.journal", 0, 0, of.size);
        let order = if of.syncs_journal_first { ["/d/a.journal", "/d/a.db"] } else { ["/d/a.db", "/d/a.journal"] };
        let kinds = if of.syncs_journal_first { ["fdatasync", "fsync"] } else { ["fsync", "fdatasync"] };
        for (path, kind) in order.into_iter().zip(kinds).take(of.syncs as usize + 1) {
            trace.call(kind, path, |_| ());
        }
        trace.call("close", "/d/a.journal", |_| ());
        if of.removes {
            trace.call("unlink", "/d/a.journal", |_| ());
        }
    }
    let end = TransactionEnd::in_script("# Transaction: loop1, ends with `closefile` of a_journal.\n").unwrap();
    TracedRun::read(Cursor::new(trace.written()), TracedSide::Program, Some(&end)).unwrap()
}

fn compared(script: Behaviour, pairs: u64) -> Fidelity {
    let pairs: Vec<_> = (0..pairs).map(|n| (run(PROGRAM, 300, 10 + n), run(script, 200 + n * 10, 1000 + n))).collect();
    Fidelity::of(&pairs)
}

fn named(fidelity: &Fidelity, verdict: FidelityVerdict) -> Vec<&str> {
    fidelity.rows.iter().filter(|row| row.verdict == verdict).map(|row| row.name.as_str()).collect()
}

#[test]
fn a_script_that_does_the_same_is_inside_in_all_rows() {
    let fidelity = compared(PROGRAM, 6);
    assert_eq!(named(&fidelity, FidelityVerdict::Outside), Vec::<&str>::new());
    assert_eq!(named(&fidelity, FidelityVerdict::Unknown).len(), 0, "{:?}", named(&fidelity, FidelityVerdict::Unknown));
    assert!((fidelity.rows.len() > 20) && !fidelity.is_open());
    // Of two pairs nothing is known.
    assert_eq!(compared(PROGRAM, 2).verdict(), FidelityVerdict::Unknown);
}

#[test]
fn each_planted_change_is_outside_in_its_row() {
    let changes: [(&str, Behaviour, &str); 9] = [
        ("a sync is gone", Behaviour { syncs: 0, ..PROGRAM }, "syncs a transaction"),
        ("other order", Behaviour { syncs_journal_first: false, ..PROGRAM }, "order of syncs, distance"),
        ("sizes twice", Behaviour { size: 8192, ..PROGRAM }, "bytes written a transaction"),
        ("other sizes", Behaviour { size: 8192, ..PROGRAM }, "sizes read, distance"),
        ("more reads", Behaviour { reads: 5, ..PROGRAM }, "read a transaction"),
        ("no looks", Behaviour { looks: 0, ..PROGRAM }, "stat a transaction"),
        ("computes more", Behaviour { computes: 60_000, ..PROGRAM }, "running between calls a transaction"),
        ("slow reads", Behaviour { read_takes: 6_000, ..PROGRAM }, "read p50"),
        ("more files", Behaviour { files: 30, ..PROGRAM }, "files"),
    ];
    for (what, script, row) in changes {
        let fidelity = compared(script, 5);
        let outside = named(&fidelity, FidelityVerdict::Outside);
        assert!(outside.contains(&row), "{what}: {outside:?}");
        let text = wml_sheet::text::write(&fidelity.sheet("app.wml", "app"));
        assert!(text.contains("The script differs in ") && text.contains(row.split(' ').next().unwrap()), "{text}");
    }
}

#[test]
fn a_program_without_transactions_is_one_as_a_whole() {
    let mut trace = MadeTrace::new();
    for n in 0..50 {
        trace.open(&format!("/d/{n}"), CREATE);
        trace.moves("write", &format!("/d/{n}"), 0, 0, 10_240);
        trace.call("close", &format!("/d/{n}"), |_| ());
    }
    let figures = TracedRun::read(Cursor::new(trace.written()), TracedSide::Program, None).unwrap();
    assert!(figures.is_whole);
    let fidelity = Fidelity::of(&[0, 1, 2].map(|_| (figures.clone(), figures.clone())));
    assert_eq!(fidelity.verdict(), FidelityVerdict::Inside);
    let names: Vec<&str> = fidelity.rows.iter().map(|row| row.name.as_str()).collect();
    assert!(names.contains(&"write a run") && !names.contains(&"transactions a second"), "{names:?}");
}

#[test]
fn calls_in_a_row_end_one_transaction() {
    let mut trace = MadeTrace::new();
    for n in 0..100 {
        trace.moves("pwrite64", "/d/log", n * 100, n * 100, 100);
        (0..=n % 4).for_each(|_| trace.call("fcntl_lock", "/d/db", |_| ()));
    }
    let of = |line: &str| {
        let end = TransactionEnd::in_script(line).unwrap();
        TracedRun::read(Cursor::new(trace.written()), TracedSide::Program, Some(&end)).unwrap().transactions
    };
    assert_eq!(of("# Transaction: loop1, ends with the last `lock shared` of db.\n"), 99);
    assert_eq!(of("# Transaction: loop1, ends with `lock shared` of db.\n"), 249);
}

/// A script's trace: its first thread makes and removes the files, one watches the space, and two work.
fn script_trace() -> Vec<u8> {
    let mut trace = MadeTrace::new();
    let annotate = |trace: &mut MadeTrace, what: &str, thread: u32| {
        trace.call("access", &format!("/e/wmlrun annotation: {what}"), |call| {
            (call.thread, call.result) = (thread, -i64::from(wml_trace::flags::ENOENT));
        });
    };
    trace.call("mkdir", "/e/log", |call| call.mode = Some(wml_trace::flags::S_IFDIR));
    trace.open("/e/.wmlrun", CREATE);
    for name in ["/e/log/a", "/e/log/b"] {
        trace.open(name, CREATE);
        trace.call("fsync", name, |_| ());
        trace.call("close", name, |_| ());
    }
    annotate(&mut trace, "gate opens", 7);
    // The engine opens the directory to look up names, and looks at a file.
    trace.open("/e/log", wml_trace::flags::O_PATH as u32);
    trace.last().thread = 8;
    for (kind, path) in [("fstat", "/e/log"), ("statx", "/e/log/a"), ("close", "/e/log")] {
        trace.call(kind, path, |call| call.thread = 8);
    }
    for n in 0..60 {
        // The second worker ends earlier.
        let thread = if n < 40 { 8 + n % 2 } else { 8 };
        trace.moves("pwrite64", "/e/log/a", n * 100, n * 100, 100);
        trace.last().thread = thread as u32;
        trace.call("fsync", "/e/log/a", |call| call.thread = thread as u32);
        trace.call("statfs", "/e", |call| call.thread = 12);
    }
    for thread in [8, 9] {
        annotate(&mut trace, "thread done", thread);
        trace.call("close", "/e/log/a", |call| call.thread = thread);
    }
    annotate(&mut trace, "all threads are done", 7);
    for name in ["/e/log/a", "/e/log/b"] {
        trace.call("unlink", name, |_| ());
    }
    trace.written()
}

#[test]
fn of_a_script_only_the_calls_of_its_threads_count() {
    let of = |line: Option<&str>| {
        let end = line.map(|line| TransactionEnd::in_script(line).unwrap());
        TracedRun::read(Cursor::new(script_trace()), TracedSide::Script { dir: b"/e" }, end.as_ref()).unwrap()
    };
    let run = of(Some("# Transaction: loop1, ends with `fsync` of log.\n"));
    // 40 and 20 ends; each thread's calls are those between its own first and last.
    assert_eq!((run.transactions, run.is_of_any_set), (58, false));
    assert_eq!(run.summary.calls(), 2 * 58);
    assert_eq!((run.files, run.directories, run.file_sets), (2.0, 1.0, 1));
    let run = of(Some("# Transaction: loop1, ends with `fsync` of none.\n"));
    assert_eq!((run.transactions, run.is_of_any_set), (58, true));
    // As a whole.
    let run = of(None);
    assert_eq!((run.is_whole, run.summary.calls(), run.files), (true, 120, 2.0));
}

#[test]
fn a_run_that_has_none_of_it_leaves_an_interval() {
    // The last run of the program looks at nothing.
    let runs = |n: u64| {
        let program = Behaviour { looks: if n == 5 { 0 } else { 2 }, ..PROGRAM };
        (run(program, 300, 10 + n), run(PROGRAM, 300, 100 + n))
    };
    let fidelity = Fidelity::of(&(0..6).map(runs).collect::<Vec<_>>());
    let row = fidelity.rows.iter().find(|row| row.name == "stat a transaction").unwrap();
    let [value, low, high] = [row.estimate.value, row.estimate.low, row.estimate.high];
    assert!((value - 1.2).abs() < 1e-9 && low < 1.0 && high > 1.3, "{:?}", row.estimate);
}

#[test]
fn scripts_that_do_the_same_are_seldom_outside() {
    let outside = (0..60).filter(|n| {
        let pair = |k: u64| (run(PROGRAM, 60, n * 100 + k), run(PROGRAM, 60, n * 100 + 50 + k));
        let fidelity = Fidelity::of(&(0..3).map(pair).collect::<Vec<_>>());
        fidelity.verdict() == FidelityVerdict::Outside
    });
    assert!(outside.count() <= 3);
}

#[test]
fn the_header_has_the_last_comparison() {
    let script =
        "# app: learned\n#\n# Transaction: loop1, ends with `closefile` of x.\n#\n# Fidelity: none yet.\n\nrun 60\n";
    let fidelity = compared(Behaviour { syncs: 0, ..PROGRAM }, 3);
    let once = fidelity.in_header(script, "Once.", &[]);
    assert!(once.contains("# Fidelity: The script differs in ") && once.ends_with("\n\nrun 60\n"), "{once}");
    assert!(once.contains("\n#   syncs a transaction ") && !once.contains("none yet"), "{once}");
    let shown = fidelity_in(&once).unwrap();
    assert!(shown.contains("Once.") && shown.contains("\nrow ") && !shown.contains('#'), "{shown}");
    assert_eq!(fidelity_in("run 60\n"), None);
    let twice = fidelity.in_header(&once, "Twice.", &[]);
    assert_eq!(twice, once.replace("Once.", "Twice."));
    // The values that a person may change are those of the comparison.
    let scaled = script.replace("run 60", "set $clients=4\nset $files=1\nrun 60");
    let scaled = fidelity.in_header(&scaled, "Once.", &["files=2".to_owned(), "sync=0".to_owned()]);
    let header: Vec<&str> = scaled.lines().map(|line| line.trim_start_matches(['#', ' '])).collect();
    assert!(header.join(" ").contains("Once. With $clients=4, $files=2, $sync=0; other values"), "{scaled}");
    let values = [("clients", "4"), ("files", "2"), ("sync", "0")];
    assert_eq!(compared_values(&scaled), values.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(compared_values(&once), []);
    // Of a script without one.
    let bare = fidelity.in_header("set $x=1\nrun 60\n", "Once.", &[]);
    assert!(bare.starts_with("# Fidelity: ") && bare.ends_with("set $x=1\nrun 60\n"), "{bare}");
    let longest = once.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(112), "{longest:?}: {once}");
}

#[test]
fn of_several_recordings_the_script_is_that_of_the_nearest_to_their_mean() {
    let script = "# app: learned\n#\n# Fidelity: none yet.\n\nrun 60\n";
    let runs = [run(Behaviour { syncs: 0, ..PROGRAM }, 60, 1), run(PROGRAM, 60, 2), run(PROGRAM, 60, 3)];
    let compared = RecordingsCompared::of(&runs);
    assert_ne!(compared.nearest, 0);
    let header = compared.in_header(script);
    assert!(header.starts_with("# app: learned\n#\n# Recordings: 3; "), "{header}");
    assert!(header.contains("and by more in:\n#   row ") && header.contains("#   fsync a transaction"), "{header}");
    assert!(header.ends_with("\n#\n# Fidelity: none yet.\n\nrun 60\n"), "{header}");
    // Alike they say so.
    let alike = RecordingsCompared::of(&[run(PROGRAM, 60, 2), run(PROGRAM, 60, 2)]).in_header(script);
    assert!(alike.contains("Recordings: 2; ") && !alike.contains("by more in"), "{alike}");
}

#[test]
fn the_end_of_a_transaction_is_read_from_its_line() {
    let script = "# x\n# Transaction: loop2, ends with `statfile missing` of a_db.\nset $y=1\n# Transaction: no\n";
    let end = TransactionEnd::in_script(script).unwrap();
    assert_eq!(
        (end.to_string().as_str(), end.line("loop2").as_str()),
        ("`statfile missing` of a_db", "# Transaction: loop2, ends with `statfile missing` of a_db.")
    );
    let runs = TransactionEnd::in_script("# Transaction: loop1, ends with the last `lock` of a_db_shm.\n").unwrap();
    assert_eq!(runs.to_string(), "the last `lock` of a_db_shm");
    assert_eq!(TransactionEnd::in_script("set $y=1\n# Transaction: loop2, ends with `a` of b.\n"), None);
}
