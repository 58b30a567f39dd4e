//! Tests the tests of Bonnie++ beside Debian's program: they make as many calls of the same sizes.

use crate::cmd::{Wml, has, memory, short_or_long};
use crate::strace::{self, Call, Log};
use std::collections::BTreeMap;

/// How often a file is read, written and synced, by the bytes of the call.
type Transfers = BTreeMap<(&'static str, u64), u64>;

fn transfers<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Transfers {
    let mut found = Transfers::new();
    for call in calls {
        let kind = match () {
            () if call.reads() => "read",
            () if call.writes() => "write",
            () if call.name == "fsync" => "fsync",
            () => continue,
        };
        *found.entry((kind, call.bytes())).or_default() += 1;
    }
    found
}

/// The calls of the steps of a personality on files.
fn steps(script: &str, sets: &[(&str, &str)]) -> Log {
    let call = Wml::below(&memory()).args([script, "--runtime", "300", "--engine", "posix"]).sets(sets).result();
    let (output, log) = strace::run(call.timeout(std::time::Duration::from_mins(5)));
    output.exits(0);
    log.of_steps()
}

/// The numbers of files that are created, looked at and removed.
fn on_names(log: &Log) -> [usize; 3] {
    let creates = |call: &Call| call.opens() && call.args.iter().any(|arg| arg.contains("O_EXCL"));
    let looks = |call: &Call| {
        let is_of_name = call.path().is_some_and(|path| !path.is_empty() && !path.starts_with('/'));
        call.name == "newfstatat" && is_of_name && call.args.iter().any(|arg| arg.contains("S_IFREG"))
    };
    let removes = |call: &Call| call.name.starts_with("unlink") && call.result == Some(0);
    [creates as fn(&Call) -> bool, looks, removes].map(|is_it| log.calls().filter(|call| is_it(call)).count())
}

#[test]
fn the_tests_of_bonnie_make_the_calls_of_bonnie() {
    needs!(strace::available());
    needs!(has("bonnie++"), "bonnie++ is missing");
    let dir = tempfile::tempdir_in(memory()).unwrap();
    // A file of 1 MiB, 1,000 seeks of one process, 1,024 files; with all tests also 1 MiB byte by byte.
    let by_character = short_or_long("-f", "-f1");
    let words = ["-s", "1:8k:1000:1", "-r", "0", "-n", "1", by_character, "-q"];
    // It refuses to run as root otherwise.
    let user: &[&str] = if rustix::process::geteuid().is_root() { &["-u", "root"] } else { &[] };
    let words = ["bonnie++", "-d", dir.path().to_str().unwrap()].into_iter().chain(words).chain(user.iter().copied());
    let log = strace::of_program(&words.collect::<Vec<_>>());
    let is_of_file = |call: &&Call| call.descriptor().is_some_and(|path| path.contains("/Bonnie."));
    // A test opens the file of 1 MiB and closes it.
    let of_thread = |calls: &Vec<Call>| -> Vec<Transfers> {
        let calls: Vec<&Call> = calls.iter().filter(is_of_file).collect();
        calls.split(|call| call.name == "close").map(|calls| transfers(calls.iter().copied())).collect()
    };
    let moves = |found: &Transfers| found.keys().any(|(kind, _)| *kind != "fsync");
    let mut theirs: Vec<Transfers> = log.threads.values().flat_map(of_thread).filter(moves).collect();
    let mut scripts = vec!["bonnie_write", "bonnie_rewrite", "bonnie_read", "bonnie_seeks"];
    scripts.extend(short_or_long(&[][..], &["bonnie_putc", "bonnie_getc"]));
    let ours = |script: &&str| {
        let seeks = [("seeks", "1000"), ("nseekers", "1")];
        let seeks = if *script == "bonnie_seeks" { &seeks[..] } else { &[] };
        transfers(steps(script, &[&[("filesize", "1m")], seeks].concat()).calls())
    };
    let mut ours: Vec<Transfers> = scripts.iter().map(ours).collect();
    // The program draws which of the blocks that it has sought are written back: each with a probability of a tenth.
    let written_back = |all: &mut Vec<Transfers>| {
        let seeks = all.iter_mut().find(|found| found.get(&("read", 8192)) == Some(&1000)).unwrap();
        seeks.remove(&("write", 8192)).unwrap()
    };
    assert_eq!(written_back(&mut ours), 100);
    // Five standard deviations.
    assert!((53..=147).contains(&written_back(&mut theirs)));
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs);
    // The program does it twice, in the order of the names and at random.
    let names = |script: &str| on_names(&steps(script, &[("nfiles", "1024")]));
    let [creates, looks, removes] = on_names(&log);
    let ours =
        ["create", "stat", "delete"].map(|test| ["seq", "rand"].map(|order| names(&format!("bonnie_{test}_{order}"))));
    assert_eq!(ours.map(|[a, b]| [0, 1, 2].map(|n| a[n] + b[n])), [[2048, 0, 0], [0, 2048, 0], [0, 0, 2048]]);
    // Besides, it makes and removes the file of 1 MiB.
    assert_eq!([creates - 2, looks, removes - 2], [2048; 3]);
}

/// The Bonnie of 1990 calls for each byte a function whose buffer has 4 KiB.
#[test]
fn bonnie_of_1990_transfers_whole_buffers() {
    needs!(strace::available());
    for (script, kind) in [("bonnie_putc", "write"), ("bonnie_getc", "read")] {
        let of = |stdio| transfers(steps(script, &[("filesize", "64k"), ("stdio", stdio)]).calls());
        assert_eq!(of("1"), Transfers::from([((kind, 4096), 16)]), "{script}");
        assert_eq!(of("0"), Transfers::from([((kind, 1), 65536), (("fsync", 0), 1)]), "{script}");
    }
}
