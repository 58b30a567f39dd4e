//! Comparisons of runs that are made here: what differs is known.

#![allow(clippy::unwrap_used)]

use super::rows::{FidelityRow, FidelityScale};
use super::{
    Fidelity, FidelityVerdict, RecordingsCompared, TracedRun, TracedSide, TransactionEnd, compared_values, fidelity_in,
};
use crate::tests::{CREATE, MadeTrace};
use std::io::Cursor;
use wml_trace::TimeBetween;

/// How a program behaves.
#[derive(Clone, Copy)]
struct Behaviour {
    reads: u64,
    size: u64,
    read_size: u64,
    syncs: u64,
    syncs_journal_first: bool,
    looks: u64,
    /// Nanoseconds between calls, and of a read.
    computes: u64,
    read_takes: u64,
    sync_takes: u64,
    files: u64,
    removes: bool,
    truncates: bool,
    /// Per cent of the transactions that ask for permissions.
    asks: u64,
    /// Nanoseconds of sleep in each transaction.
    sleeps: u64,
    /// True if a second thread lists the directory.
    lists: bool,
}

const PROGRAM: Behaviour = Behaviour {
    reads: 4,
    size: 4096,
    read_size: 4096,
    syncs: 1,
    syncs_journal_first: true,
    looks: 2,
    computes: 20_000,
    read_takes: 2_000,
    sync_takes: 2_000,
    files: 1,
    removes: true,
    truncates: false,
    asks: 0,
    sleeps: 50_000,
    lists: true,
};

/// It asks in some of its transactions.
const ASKING: Behaviour = Behaviour { asks: 20, ..PROGRAM };

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
            trace.moves("pread64", "/d/a.db", offset, 409_600, of.read_size >> (k % 2));
            trace.last().duration = of.read_takes;
        }
        (0..of.looks).for_each(|_| trace.call("stat", "/d/a.db", |call| call.start += pause));
        if draws.below(100) < of.asks {
            trace.call("access", "/d/a.db", |_| ());
        }
        if of.lists && n % 4 == 0 {
            trace.call("getdents64", "/d", |call| {
                (call.thread, call.mode) = (8, Some(wml_trace::flags::S_IFDIR));
            });
        }
        trace.open("/d/a.journal", CREATE);
        trace.moves("pwrite64", "/d/a.journal", 0, 0, of.size);
        let order = if of.syncs_journal_first { ["/d/a.journal", "/d/a.db"] } else { ["/d/a.db", "/d/a.journal"] };
        let kinds = if of.syncs_journal_first { ["fdatasync", "fsync"] } else { ["fsync", "fdatasync"] };
        for (path, kind) in order.into_iter().zip(kinds).take(of.syncs as usize + 1) {
            trace.call(kind, path, |call| call.duration = of.sync_takes);
        }
        if of.truncates {
            trace.call("ftruncate", "/d/a.journal", |call| call.wanted = Some(0));
        }
        let slept = of.sleeps * (90 + draws.below(21)) / 100;
        trace.call("close", "/d/a.journal", |call| {
            call.start += slept;
            call.between = Some(TimeBetween { blocked: slept, ..TimeBetween::default() });
        });
        if of.removes {
            trace.call("unlink", "/d/a.journal", |_| ());
        }
    }
    let end = TransactionEnd::in_script("# Transaction: loop1, ends with `closefile` of a_journal.\n").unwrap();
    TracedRun::read(Cursor::new(trace.written()), TracedSide::Program, Some(&end)).unwrap()
}

fn compared(script: Behaviour, pairs: u64) -> Fidelity {
    let pairs: Vec<_> = (0..pairs).map(|n| (run(PROGRAM, 300, 10 + n), run(script, 200 + n * 10, 1000 + n))).collect();
    Fidelity::of(&pairs, pairs.len())
}

fn named(fidelity: &Fidelity, verdict: FidelityVerdict) -> Vec<&str> {
    fidelity.rows.iter().filter(|row| row.verdict == verdict).map(|row| row.name.as_str()).collect()
}

#[test]
fn times_of_two_recorders_are_not_compared() {
    let is_time =
        |row: &FidelityRow| ["p50", "in calls", "between calls", "second"].iter().any(|of| row.name.contains(of));
    let mut pairs: Vec<_> = (0..3).map(|n| (run(PROGRAM, 300, n), run(PROGRAM, 200, 100 + n))).collect();
    assert!(Fidelity::of(&pairs, 3).rows.iter().any(is_time));
    pairs.iter_mut().for_each(|(program, _)| program.summary.header.recorder = "strace".to_owned());
    let fidelity = Fidelity::of(&pairs, 3);
    assert!(!fidelity.rows.iter().any(is_time) && fidelity.rows.len() > 10, "{:?}", fidelity.rows);
}

#[test]
fn a_script_that_does_the_same_is_inside_in_all_rows() {
    let fidelity = compared(PROGRAM, 6);
    assert_eq!(named(&fidelity, FidelityVerdict::Outside), Vec::<&str>::new());
    assert_eq!(named(&fidelity, FidelityVerdict::Unknown).len(), 0, "{:?}", named(&fidelity, FidelityVerdict::Unknown));
    assert!(fidelity.rows.len() > 20);
    // The ratio is that of the two figures beside it.
    let ratios: Vec<&FidelityRow> = fidelity.rows.iter().filter(|row| row.scale == FidelityScale::Ratio).collect();
    assert!(ratios.len() > 10);
    for FidelityRow { name, means: [program, script], estimate, .. } in ratios {
        assert!((script / program - estimate.value).abs() < 1e-9, "{name}: {program} {script} {estimate:?}");
    }
    // Of two pairs nothing is known.
    assert_eq!(compared(PROGRAM, 2).verdict(), FidelityVerdict::Unknown);
}

/// What is changed in a script, and the row that has to say so.
const CHANGES: [(&str, Behaviour, &str); 20] = [
    ("a sync is gone", Behaviour { syncs: 0, ..ASKING }, "syncs a transaction"),
    ("other order", Behaviour { syncs_journal_first: false, ..ASKING }, "order of syncs, distance"),
    ("writes twice as large", Behaviour { size: 8192, ..ASKING }, "bytes written a transaction"),
    ("writes half as large", Behaviour { size: 2048, ..ASKING }, "sizes written, distance"),
    ("reads twice as large", Behaviour { read_size: 8192, ..ASKING }, "sizes read, distance"),
    ("reads half as large", Behaviour { read_size: 2048, ..ASKING }, "bytes read a transaction"),
    ("more reads", Behaviour { reads: 5, ..ASKING }, "read a transaction"),
    ("fewer reads", Behaviour { reads: 3, ..ASKING }, "read a transaction"),
    ("no looks", Behaviour { looks: 0, ..ASKING }, "stat a transaction"),
    ("more looks", Behaviour { looks: 3, ..ASKING }, "stat a transaction"),
    ("a weight 5 points more", Behaviour { asks: 25, ..ASKING }, "access a transaction"),
    ("a weight 5 points less", Behaviour { asks: 15, ..ASKING }, "access a transaction"),
    ("a thread is gone", Behaviour { lists: false, ..ASKING }, "list a transaction"),
    ("computes three times as long", Behaviour { computes: 60_000, ..ASKING }, "running between calls a transaction"),
    ("computes nothing", Behaviour { computes: 0, ..ASKING }, "running between calls a transaction"),
    ("sleeps twice as long", Behaviour { sleeps: 100_000, ..ASKING }, "blocked between calls a transaction"),
    ("slow reads", Behaviour { read_takes: 6_000, ..ASKING }, "read p50"),
    ("more files", Behaviour { files: 30, ..ASKING }, "files"),
    ("removes nothing", Behaviour { removes: false, ..ASKING }, "unlink a transaction"),
    ("truncates", Behaviour { truncates: true, ..ASKING }, "share of truncate"),
];

#[test]
fn planted_changes_are_outside_in_their_rows() {
    let program: Vec<TracedRun> = (0..8).map(|n| run(ASKING, 1000, 10 + n)).collect();
    // How often a call is made by chance takes more transactions to tell.
    let compared = |script: Behaviour, seed: u64| {
        let transactions = if script.asks == ASKING.asks { 150 } else { 1000 };
        let pairs = program.iter().zip(0..).map(|(of, n)| (of.clone(), run(script, transactions + n, seed * 100 + n)));
        Fidelity::of(&pairs.collect::<Vec<_>>(), program.len())
    };
    let missed: Vec<String> = CHANGES
        .iter()
        .filter_map(|(what, script, row)| {
            let fidelity = compared(*script, 10);
            let outside = named(&fidelity, FidelityVerdict::Outside);
            let text = wml_sheet::text::write(&fidelity.sheet("app.wml", "app"));
            let first = row.split(' ').next().unwrap();
            let says = text.contains("Outside of the limits: ") && text.contains(first);
            (!outside.contains(row) || !says).then(|| format!("{what}: {outside:?}"))
        })
        .collect();
    // Eight pairs are too few for a call of chance that is a twentieth more or less likely.
    assert!(missed.iter().all(|change| change.starts_with("a weight 5 points")), "{missed:#?}");
    let wrong: Vec<String> = (20..40)
        .filter_map(|seed| {
            let fidelity = compared(ASKING, seed);
            let outside = named(&fidelity, FidelityVerdict::Outside);
            (!outside.is_empty()).then(|| format!("{seed}: {outside:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
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
    let fidelity = Fidelity::of(&[0, 1, 2].map(|_| (figures.clone(), figures.clone())), 3);
    assert_eq!(fidelity.verdict(), FidelityVerdict::Inside);
    let names: Vec<&str> = fidelity.rows.iter().map(|row| row.name.as_str()).collect();
    assert!(names.contains(&"write a run") && !names.contains(&"transactions a second"), "{names:?}");
}

#[test]
fn copies_of_descriptors_are_no_calls_to_a_file_system() {
    let run = |copies: bool, end: Option<&TransactionEnd>| {
        let mut trace = MadeTrace::new();
        let is_dir = Some(wml_trace::flags::S_IFDIR);
        for n in 0..50 {
            let dir = format!("/d/{n}");
            trace.open(&dir, 0);
            if copies {
                trace.call("fcntl", &dir, |call| {
                    (call.flags, call.result, call.between) = (Some(1030), 4, None);
                });
                // Its flags, which copy nothing.
                trace.call("fcntl", &dir, |call| {
                    (call.flags, call.result, call.between) = (Some(3), 5, None);
                });
                trace.call("close", &dir, |call| (call.between, call.mode) = (None, is_dir));
                // Whether it is a terminal: ENOTTY.
                trace.call("ioctl", &dir, |call| {
                    (call.flags, call.result, call.between) = (Some(0x5401), -25, None);
                });
            }
            trace.call("getdents64", &dir, |call| call.mode = is_dir);
            trace.call("close", &dir, |call| call.mode = is_dir);
        }
        TracedRun::read(Cursor::new(trace.written()), TracedSide::Program, end).unwrap()
    };
    let fidelity = Fidelity::of(&[0, 1, 2].map(|_| (run(true, None), run(false, None))), 3);
    assert_eq!(named(&fidelity, FidelityVerdict::Outside), Vec::<&str>::new());
    let close = fidelity.rows.iter().find(|row| row.name == "close a run").unwrap();
    assert_eq!(close.means.map(|n| n.round() as u64), [50, 50]);
    let end = TransactionEnd::in_script("# Transaction: loop1, ends with `closedir` of d.\n").unwrap();
    let both = [true, false].map(|copies| run(copies, Some(&end)).transactions);
    assert_eq!(both, [49, 49]);
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
fn script_trace(write: &str) -> Vec<u8> {
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
    for (kind, path) in [("fstat", "/e/log"), ("statx", "/e/log/a"), ("fstatx", "/e/log/a"), ("close", "/e/log")] {
        trace.call(kind, path, |call| call.thread = 8);
    }
    for n in 0..60 {
        // The second worker ends earlier.
        let thread = if n < 40 { 8 + n % 2 } else { 8 };
        trace.moves(write, "/e/log/a", n * 100, n * 100, 100);
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
        let trace = script_trace("pwrite64");
        TracedRun::read(Cursor::new(trace), TracedSide::Script { dir: b"/e" }, end.as_ref()).unwrap()
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
fn a_write_at_the_end_in_one_call_ends_a_transaction_of_a_script() {
    let end = TransactionEnd::in_script("# Transaction: loop1, ends with `write` of log.\n").unwrap();
    let of = |write| {
        let (trace, dir) = (Cursor::new(script_trace(write)), b"/e");
        TracedRun::read(trace, TracedSide::Script { dir }, Some(&end)).unwrap().transactions
    };
    assert_eq!([of("pwrite64"), of("pwritev2")], [58, 58]);
    // Control: one of several buffers is another flowop.
    assert_eq!(of("pwritev"), 1);
}

#[test]
fn a_run_that_has_none_of_it_leaves_an_interval() {
    // The last run of the program looks at nothing.
    let runs = |n: u64| {
        let program = Behaviour { looks: if n == 5 { 0 } else { 2 }, ..PROGRAM };
        (run(program, 300, 10 + n), run(PROGRAM, 300, 100 + n))
    };
    let fidelity = Fidelity::of(&(0..6).map(runs).collect::<Vec<_>>(), 6);
    let row = fidelity.rows.iter().find(|row| row.name == "stat a transaction").unwrap();
    let [value, low, high] = [row.estimate.value, row.estimate.low, row.estimate.high];
    assert!((value - 1.2).abs() < 1e-9 && low < 1.0 && high > 1.3, "{:?}", row.estimate);
}

#[test]
fn scripts_that_do_the_same_are_seldom_outside() {
    let outside = (0..60).filter(|n| {
        let pair = |k: u64| (run(PROGRAM, 60, n * 100 + k), run(PROGRAM, 60, n * 100 + 50 + k));
        let fidelity = Fidelity::of(&(0..3).map(pair).collect::<Vec<_>>(), 3);
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
    assert!(once.contains("# Fidelity: Outside of the limits: ") && once.ends_with("\n\nrun 60\n"), "{once}");
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
