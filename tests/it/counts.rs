//! Tests that the result counts exactly the system calls and bytes that the kernel counts.
//!
//! Each personality runs under strace with one instance of each thread. Between the gate and the last step of a thread,
//! the trace has the calls of its steps, and calls of the program itself, which belong to no operation: those that open
//! directories of files, and those that check that a file belongs to the set.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::cmd::{Wml, count, flowops, memory, short_or_long};
use crate::scripts::{first_or_all, for_each};
use crate::strace::{self, Call, Log};

/// Flowops that make no calls of their own.
const SILENT: &[&str] = &["aiowait"];

/// The calls of the steps on files of the run's file sets.
fn on_files(log: &Log, run: &Value) -> Log {
    let sets = run["filesets"].as_array().unwrap();
    let roots: Vec<_> = sets.iter().map(|set| format!("{}/", set["path"].as_str().unwrap())).collect();
    assert!(!roots.is_empty(), "no file set in the result");
    let inside = |call: &Call| roots.iter().any(|root| call.file().contains(root.as_str()));
    // Of two threads that open a directory at the same time, one closes its own again.
    let directories: BTreeSet<_> = log.calls().filter(|call| call.opens_directory()).map(Call::file).collect();
    let on_directory =
        |call: &Call| call.opens_directory() || call.name == "close" && directories.contains(&call.file());
    log.of_steps().only(|call| inside(call) && !on_directory(call) && !call.looks())
}

/// The flowops that work on files.
fn working(run: &Value) -> impl Iterator<Item = &Value> {
    let works =
        |f: &&Value| (f["class"] == "io" || f["class"] == "aio") && !SILENT.contains(&f["kind"].as_str().unwrap());
    flowops(run).iter().filter(works)
}

/// A sum over the flowops of one kind, or of all.
fn total(run: &Value, kinds: &[&str], keys: &[&str]) -> u64 {
    let of_kind = |f: &&Value| kinds.is_empty() || kinds.contains(&f["kind"].as_str().unwrap());
    working(run).filter(of_kind).map(|f| keys.iter().map(|key| count(f, key)).sum::<u64>()).sum()
}

/// Calls of one kind equal a flowop's operations, those that ended late included.
#[track_caller]
fn assert_kind(calls: &Log, run: &Value, names: &[&str], kinds: &[&str]) {
    let seen = calls.only(|call| names.contains(&call.name.as_str())).calls().count() as u64;
    assert_eq!(seen, total(run, kinds, &["ops", "late_ops"]), "calls of {names:?} against operations of {kinds:?}");
}

#[track_caller]
fn assert_counted(calls: &Log, run: &Value) {
    let failed: Vec<_> = calls.calls().filter(|call| call.error().is_some() || call.result.is_none()).collect();
    assert!(failed.is_empty(), "failed calls: {failed:?}");
    // The whole: an operation is one call, and what it makes besides is counted too.
    let all = total(run, &[], &["ops", "late_ops", "implicit_opens", "calls"]);
    let of_flowops: Vec<_> = working(run)
        .map(|f| (f["name"].as_str().unwrap(), ["ops", "late_ops", "implicit_opens", "calls"].map(|key| count(f, key))))
        .collect();
    assert_eq!(
        calls.calls().count() as u64,
        all,
        "calls in all; seen are {:?}, counted {of_flowops:?}",
        calls.counts()
    );
    // Each way's bytes.
    for (way, moves) in [("reads", Call::reads as fn(&Call) -> bool), ("writes", Call::writes)] {
        let moved: u64 = calls.calls().filter(|call| moves(call)).map(Call::bytes).sum();
        let counted: u64 =
            working(run).filter(|f| f[way] == true).map(|f| count(f, "bytes") + count(f, "late_bytes")).sum();
        assert_eq!(moved, counted, "bytes transferred by {way}");
    }
    // Kind by kind, where a kind has a call of its own.
    let removes_directory = |call: &Call| call.args.iter().any(|arg| arg.contains("AT_REMOVEDIR"));
    let of_files = calls.only(|call| !removes_directory(call));
    assert_kind(&of_files, run, &["unlinkat", "unlink"], &["deletefile"]);
    assert_kind(&calls.only(removes_directory), run, &["unlinkat"], &["removedir"]);
    assert_kind(calls, run, &["close"], &["closefile"]);
    assert_kind(calls, run, &["fsync"], &["fsync", "fsyncset"]);
    assert_kind(calls, run, &["mkdirat", "mkdir"], &["makedir"]);
    // An implicit open that ended late is told as a late operation of the flowop that wanted it.
    let opens = calls.calls().filter(|call| call.opens()).count() as u64;
    let explicit = total(run, &["openfile", "createfile"], &["ops", "late_ops"]);
    let implicit = total(run, &[], &["implicit_opens"]);
    let late = total(run, &[], &["late_ops"]);
    assert!((explicit + implicit..=explicit + implicit + late).contains(&opens), "{opens} opens");
}

#[test]
fn the_result_counts_what_the_kernel_counts() {
    needs!(strace::available());
    // Those with steps of other calls (listings, links…) are counted elsewhere; of buffered I/O an operation is no call.
    let other = |script: &crate::scripts::Script| {
        ["listdir", "flowop bufread", "flowop bufwrite"].iter().any(|word| script.text.contains(word))
    };
    let scripts: Vec<_> = first_or_all().into_iter().filter(|script| !other(script)).collect();
    for_each(&scripts, 2, |script| {
        // What io_uring does is seen by nobody but the kernel.
        let time = short_or_long("0.2", "10");
        // In memory: a disk that others keep busy holds a call for longer than a run's end waits for it.
        let call = || Wml::below(&memory()).args([script.call.as_str(), "--runtime", time, "--engine", "posix"]);
        let call = || call().sets(&script.small()).sets(&script.single()).result().timeout(Duration::from_mins(5));
        let once = || {
            let (output, log) = strace::run(call());
            (output.exits(0).only_run(), log)
        };
        // On a busy machine threads may come back from their calls after the result was written, which says so.
        let whole = |(run, _): &(Value, Log)| run["stragglers"].as_array().is_none_or(Vec::is_empty);
        let runs = std::iter::repeat_with(once).take(5).find(whole);
        let (run, log) = runs.expect("five times a thread did not come back in time");
        let calls = on_files(&log, &run);
        assert!(calls.calls().count() >= 8, "too few calls to tell: {:?}", calls.counts());
        assert_counted(&calls, &run);
    });
}

/// A file that is sent goes to `/dev/null` from its beginning on, and every call is counted.
#[test]
fn sent_files_are_counted_call_by_call() {
    needs!(strace::available());
    let script = "# dialect: fsl\nset mode quit alldone\n\
        define fileset name=data,path=$dir,entries=10,dirwidth=5,size=40000,prealloc\n\
        define process name=p { thread name=t,instances=2 {\n\
        flowop sendfile name=whole,filesetname=data,fd=1,iters=3\nflowop closefile name=c,fd=1\n\
        flowop sendfile name=pieces,filesetname=data,fd=1,iosize=16k,iters=5\nflowop closefile name=d,fd=1\n\
        flowop finishoncount name=end,value=1\n} }\n";
    let call = Wml::below(&memory()).file("x.wml", script).args(["x.wml", "--runtime", "60"]).result();
    let (output, log) = strace::run(call);
    let run = output.exits(0).only_run();
    let calls = on_files(&log, &run);
    assert_counted(&calls, &run);
    let sends = calls.only(|call| call.name.starts_with("sendfile"));
    // Three calls of the whole file and five of three pieces, in each of two threads.
    assert_eq!(sends.calls().count(), 2 * (3 + 5 * 3));
    assert!(sends.calls().all(|call| call.args[0].contains("</dev/null")), "{:?}", sends.calls().next());
    let from = |call: &Call| call.args[2].trim_start_matches('[').split([' ', ']']).next().unwrap().parse::<u64>().ok();
    let starts: BTreeSet<_> = sends.calls().map(from).collect();
    assert_eq!(starts, BTreeSet::from([Some(0), Some(16 << 10), Some(32 << 10)]));
}

/// Random I/O is aligned, stays inside the file, and reaches its last block.
#[test]
fn random_offsets_cover_the_file() {
    const SIZE: u64 = 64 << 10;
    const BLOCK: u64 = 4 << 10;
    needs!(strace::available());
    for personality in ["randomread", "randomwrite"] {
        let sets = [("filesize", "64k"), ("iosize", "4k")];
        let call = Wml::new().args([personality, "--runtime", "0.5", "--seed", "7"]).sets(&sets).result();
        let (output, log) = strace::run(call);
        let calls = on_files(&log, &output.exits(0).only_run()).only(|call| call.reads() || call.writes());
        let mut seen = std::collections::BTreeSet::new();
        for call in calls.calls() {
            assert_eq!(call.size(), Some(BLOCK));
            seen.insert(call.offset().unwrap());
        }
        let expected: Vec<_> = (0..SIZE / BLOCK).map(|n| n * BLOCK).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected, "{personality}");
    }
}
