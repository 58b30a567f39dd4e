//! Tests faults of the ranks of a run, as a table: each with the exit status, the state of the run, what is named, and
//! what is left on the disk.
//!
//! The full length (`WMLRUN_LONG=1`) has all faults, the short one those that take a few seconds. Each fault has a time
//! limit, after which it fails. Compiled with the feature `mpi` only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::cmd::{Output, Running, Wml, binary, long, program, tool};
use crate::mounts::{Fs, Mount};
use crate::mpi::{Hosts, SCRIPT, call, measuring, mpirun, process_of, wait_for};

/// A fault, and what is expected of it.
struct FaultCase {
    name: &'static str,
    /// Makes the fault within a time limit, and returns the output.
    make: fn(Duration) -> Output,
    /// The time limit in seconds, on a busy machine.
    limit: u64,
    statuses: &'static [i32],
    /// The states of the run; `none` if there is no result of a run.
    states: &'static [&'static str],
    /// What is wrong, and where: each text is in the output or in the result.
    named: &'static [&'static str],
    /// Files of results that may be left besides that of rank 0.
    results: &'static [&'static str],
    /// Whether file sets may be left. `wmlrun clean` then removes them.
    leaves_sets: bool,
    /// Part of the short table.
    is_short: bool,
}

/// A fault that is refused before the run.
const REFUSED: FaultCase = FaultCase {
    name: "",
    make: |_| unreachable!("each fault has its own"),
    limit: 60,
    statuses: &[3],
    states: &["none"],
    named: &[],
    results: &[],
    leaves_sets: false,
    is_short: false,
};

/// The files in which ranks may leave figures when the launcher kills them.
const OF_KILLED: &[&str] = &["rank-0.snapshots", "rank-1.json", "rank-1.snapshots", "rank-2.json", "rank-2.snapshots"];

/// The kill of a rank, after which the launcher ends the others.
const KILLED: FaultCase = FaultCase { statuses: &[137], results: OF_KILLED, leaves_sets: true, ..REFUSED };

/// A signal to the launcher, which passes it on.
const SIGNALLED: FaultCase = FaultCase {
    statuses: &[1, 130, 137, 143],
    states: &["interrupted", "failed"],
    results: OF_KILLED,
    leaves_sets: true,
    ..REFUSED
};

/// A fault that the run survives.
const SURVIVED: FaultCase = FaultCase { statuses: &[0], states: &["complete"], ..REFUSED };

/// A fault of one rank that the others survive.
const FAILED: FaultCase = FaultCase { statuses: &[1], states: &["failed"], leaves_sets: true, ..REFUSED };

static FAULTS: &[FaultCase] = &[
    FaultCase { name: "rank killed before the start", make: |limit| killed(limit, 1, "50", &|_| true), ..KILLED },
    FaultCase { name: "rank killed in preparation", make: |limit| killed(limit, 1, "20000", &is_preparing), ..KILLED },
    FaultCase {
        name: "rank killed in the measured time",
        make: |limit| killed(limit, 1, "50", &is_measured),
        states: &["failed"],
        named: &["rank 1 on `", "last figures in `rank-1.snapshots`"],
        is_short: true,
        ..KILLED
    },
    FaultCase {
        name: "rank killed after the result",
        make: |limit| {
            let running = call(mpirun(3), "2").args(["--set", "n=20000"]).timeout(limit).start();
            let dir = running.dir().to_owned();
            wait_for("wrote its result", || is_file(&dir.join("result.json")).then_some(()));
            // The rank may have ended.
            if let Some(pid) = process_of(&dir, 1) {
                let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
            running.wait()
        },
        statuses: &[0, 137],
        states: &["complete"],
        ..KILLED
    },
    FaultCase {
        name: "rank 0 killed",
        make: |limit| killed(limit, 0, "50", &is_measured),
        named: &["rank 0 does not have the result of this rank"],
        is_short: true,
        ..KILLED
    },
    FaultCase {
        name: "rank stopped for 3 s",
        make: |limit| {
            let running = call(mpirun(3), "8").timeout(limit).start();
            let pid = Pid::from_raw(measuring(running.dir(), 2)).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::sleep(Duration::from_secs(3));
            kill_process(pid, Signal::CONT).unwrap();
            running.wait()
        },
        named: &["slowest: rank 2 on "],
        is_short: true,
        ..SURVIVED
    },
    FaultCase {
        name: "rank stopped for good",
        make: |limit| {
            let running = call(mpirun(3), "4").timeout(limit).start();
            signal_when(running, 2, Signal::STOP, &is_measured)
        },
        limit: 120,
        named: &["rank 2 on `", "has not answered for 2"],
        // At the end the launcher continues the rank, and ends it with a signal.
        results: &["rank-2.json", "rank-2.snapshots"],
        ..FAILED
    },
    FaultCase {
        name: "SIGTERM to the launcher",
        make: |limit| interrupted(limit, Signal::TERM),
        is_short: true,
        ..SIGNALLED
    },
    FaultCase { name: "SIGINT to the launcher", make: |limit| interrupted(limit, Signal::INT), ..SIGNALLED },
    FaultCase {
        name: "link down for 5 s",
        make: |limit| {
            with_hosts(limit, ["wmd1", "wmd2"], 14, "12", |hosts, running| {
                measuring(running.dir(), 1);
                hosts.link("down");
                std::thread::sleep(Duration::from_secs(5));
                hosts.link("up");
            })
        },
        ..SURVIVED
    },
    FaultCase {
        name: "link down for good",
        make: |limit| {
            with_hosts(limit, ["wme1", "wme2"], 15, "5", |hosts, running| {
                let dir = running.dir();
                measuring(dir, 1);
                hosts.link("down");
                let results = ["result.json", "rank-1.json"];
                wait_for("wrote both results", || results.iter().all(|name| is_file(&dir.join(name))).then_some(()));
                wait_for("ended", || (0..2).all(|rank| process_of(dir, rank).is_none()).then_some(()));
                // The launcher does not end by itself. Its daemons end if it can reach them.
                hosts.link("up");
                running.signal(Signal::TERM);
            })
        },
        limit: 180,
        // 139: `mpirun` itself crashes at times when it ends its daemons.
        statuses: &[1, 137, 139, 143],
        named: &["rank 1 on `wme2` has not answered for 2"],
        results: &["rank-1.json"],
        ..FAILED
    },
    FaultCase {
        name: "full disk on one host",
        make: |limit| with_small_disk(limit, SCRIPT, "40000"),
        named: &["rank 1 on `"],
        ..REFUSED
    },
    FaultCase {
        name: "disk filled by the run on one host",
        make: |limit| {
            // Only rank 1 appends much.
            let text = SCRIPT.replace("set $n=50", "set $n=50\nset $much=$rank * 1m\nset $size=$much + 1k");
            let append = "flowop appendfile name=append,filesetname=data,iosize=$size";
            let text = text.replace("flowop readwholefile name=read,filesetname=data", append);
            with_small_disk(limit, &text, "50")
        },
        states: &["low_space"],
        named: &["rank 1 on `", "must stay free"],
        is_short: true,
        ..REFUSED
    },
    FaultCase {
        name: "script differs",
        make: |limit| in_other_dir(limit, &[("x.wml", format!("{SCRIPT}#\n").as_str()), ("d/a", "")], &[]),
        named: &["differs from rank 0 on `", "the SHA-256 digest of the script is "],
        is_short: true,
        ..REFUSED
    },
    FaultCase {
        name: "variable differs",
        make: |limit| in_other_dir(limit, &[("x.wml", SCRIPT), ("d/a", "")], &["--set", "n=7"]),
        named: &["differs from rank 0 on `", "`$n` is 7, not 50"],
        ..REFUSED
    },
    FaultCase {
        name: "option differs",
        make: |limit| in_other_dir(limit, &[("x.wml", SCRIPT), ("d/a", "")], &["--seed", "1", "--share", "all"]),
        named: &["differs from rank 0 on `", "`--share` is all, not host"],
        ..REFUSED
    },
    FaultCase {
        name: "environment differs",
        make: |limit| second_under(limit, &SCRIPT.replace("$n=50", "$n=$(FILES)"), &["env", "FILES=60"]),
        named: &["differs from rank 0 on `", "`$n` is 60, not 50"],
        ..REFUSED
    },
    FaultCase {
        name: "directory missing on one host",
        make: |limit| in_other_dir(limit, &[("x.wml", SCRIPT)], &[]),
        named: &["rank 1 on `"],
        is_short: true,
        ..REFUSED
    },
    FaultCase {
        name: "foreign files on one host",
        make: |limit| call(mpirun(2), "2").file(LETTER, "of another").timeout(limit).run(),
        named: &["rank 1 on `"],
        leaves_sets: true,
        is_short: true,
        ..REFUSED
    },
    FaultCase {
        name: "directory in use by another run",
        make: in_use,
        named: &["rank 1 on `"],
        leaves_sets: true,
        ..REFUSED
    },
    FaultCase {
        name: "slow rank",
        make: |limit| {
            let text = SCRIPT.replace("set $n=50", "set $n=50\nset $wait=$rank + 1");
            let text = text.replace("flowop eventlimit name=limit", "flowop delay name=wait,value=$wait");
            let wml = Wml::new().file("x.wml", &text).folder("d").under(mpirun(3)).result().timeout(limit);
            wml.args(["x.wml", "--dir", "d", "--no-quiesce", "--clean", "--runtime", "8"]).run()
        },
        named: &["slowest: rank 2 on ", "fastest: rank 0 on "],
        ..SURVIVED
    },
    FaultCase {
        name: "file removed by a stranger",
        make: |limit| {
            // A flowop that opens no file finds each file by its name.
            let text = SCRIPT.replace("readwholefile", "statfile");
            let running = call(mpirun(3), "8").file("x.wml", &text).timeout(limit).start();
            measuring(running.dir(), 1);
            std::fs::remove_dir_all(running.dir().join("d/1/data/00000001")).unwrap();
            running.wait()
        },
        named: &["rank 1 on `", "ENOENT"],
        is_short: true,
        ..FAILED
    },
    FaultCase {
        name: "too few descriptors on one host",
        make: |limit| {
            second_under(limit, &SCRIPT.replace("instances=2", "instances=2000"), &["prlimit", "--nofile=200"])
        },
        named: &["rank 1 on `"],
        ..REFUSED
    },
];

/// A file that wmlrun has not written, in the place of a file set of rank 1.
const LETTER: &str = "d/1/data/letter";

/// Whether a file exists and has content.
fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.len() > 0)
}

fn is_preparing(dir: &Path) -> bool {
    dir.join("d/1/data/00000001").exists()
}

/// A rank writes its first snapshot after a second.
fn is_measured(dir: &Path) -> bool {
    (0..3).all(|rank| is_file(&dir.join(format!("rank-{rank}.snapshots"))))
}

/// Sends a signal to a rank once its run has come so far, and waits for the end.
fn signal_when(running: Running, rank: usize, signal: Signal, is_due: &dyn Fn(&Path) -> bool) -> Output {
    let dir = running.dir().to_owned();
    let pid = wait_for("came so far", || process_of(&dir, rank).filter(|_| is_due(&dir)));
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    running.wait()
}

/// A run of three ranks, of which one is killed.
fn killed(limit: Duration, rank: usize, files: &str, is_due: &dyn Fn(&Path) -> bool) -> Output {
    let running = call(mpirun(3), "60").args(["--set", &format!("n={files}")]).timeout(limit).start();
    signal_when(running, rank, Signal::KILL, is_due)
}

/// A run whose launcher gets a signal.
fn interrupted(limit: Duration, signal: Signal) -> Output {
    let running = call(mpirun(3), "60").timeout(limit).start();
    let dir = running.dir().to_owned();
    wait_for("was measured", || is_measured(&dir).then_some(()));
    running.signal(signal);
    running.wait()
}

/// A run of a rank on each of two hosts.
fn with_hosts(
    limit: Duration,
    names: [&'static str; 2],
    net: u8,
    seconds: &str,
    fault: impl Fn(&Hosts, &Running),
) -> Output {
    let hosts = Hosts::new(names, net);
    let running = call(hosts.mpirun(net, 1), seconds).timeout(limit).start();
    fault(&hosts, &running);
    running.wait()
}

/// The words of a run in the current directory.
const RUN: [&str; 6] = ["x.wml", "--dir", "d", "--no-quiesce", "--runtime", "2"];

/// A run of two ranks, of which the second is in another directory with these files, and has more options.
fn in_other_dir(limit: Duration, files: &[(&str, &str)], options: &[&str]) -> Output {
    let wml = Wml::new().file("x.wml", SCRIPT).folder("d").folder("e").result().under(mpirun(1)).args(RUN);
    let wml = files.iter().fold(wml, |wml, (name, text)| wml.file(&format!("e/{name}"), text));
    let wml = wml.args([":", "-n", "1", "-wdir", "e"]).args([binary()]).args(RUN).args(options.iter().copied());
    wml.timeout(limit).run()
}

/// A run of two ranks, of which another program starts the second.
fn second_under(limit: Duration, script: &str, program: &[&str]) -> Output {
    let wml = Wml::new().file("x.wml", script).folder("d").result().env("FILES", "50").under(mpirun(1)).args(RUN);
    let wml = wml.args([":", "-n", "1"]).args(program.iter().copied()).args([binary()]).args(RUN);
    wml.timeout(limit).run()
}

/// A directory that is mounted in another place.
struct BindMount(PathBuf);

impl Drop for BindMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// A run of two ranks, of which the second has a small disk.
fn with_small_disk(limit: Duration, script: &str, files: &str) -> Output {
    let mount = Mount::new(Fs::Ext4, 64 << 20);
    let wml = call(mpirun(2), "4").file("x.wml", script).folder("d/1").timeout(limit);
    let wml = wml.args(["--set", &format!("n={files}")]);
    let place = BindMount(wml.dir().join("d/1"));
    tool("mount", &["--bind", mount.dir().to_str().unwrap(), place.0.to_str().unwrap()]);
    wml.run()
}

/// A run whose second rank finds its directory in use.
fn in_use(limit: Duration) -> Output {
    let wml = call(mpirun(2), "2").timeout(limit);
    let other = Wml::new().file("x.wml", &SCRIPT.replace("$rank", "1")).idle();
    let dir = wml.dir().join("d");
    let mut other = other.args(["x.wml", "--no-quiesce", "--runtime", "60", "--dir"]).args([dir]).start();
    other.wait_until_reading();
    let output = wml.run();
    other.signal(Signal::INT);
    other.wait();
    output
}

/// The outcome of a fault.
struct FaultOutcome {
    status: i32,
    state: String,
    /// All texts in which something can be named.
    text: String,
    /// Results of ranks, and temporary files.
    left: Vec<String>,
    /// Whether file sets are left.
    has_sets: bool,
}

impl FaultOutcome {
    fn of(output: &Output) -> Self {
        let result = std::fs::read_to_string(output.dir().join("result.json")).unwrap_or_default();
        let document: serde_json::Value = serde_json::from_str(&result).unwrap_or_default();
        let state = document["runs"][0]["state"].as_str().unwrap_or("none").to_owned();
        let inputs = ["x.wml", "d", "e"];
        let left = output.left().into_iter().filter(|name| !inputs.contains(&name.as_str())).collect();
        let sets = ["d/0/data", "d/1/data", "d/2/data", "e/d/1/data"];
        let has_sets = sets.iter().any(|set| output.dir().join(set).exists());
        Self { status: output.code(), state, text: format!("{}{result}", output.shown()), left, has_sets }
    }

    /// Returns what differs from what is expected.
    fn differences(&self, case: &FaultCase) -> Vec<String> {
        let mut found = Vec::new();
        if !case.statuses.contains(&self.status) {
            found.push(format!("status {}, not one of {:?}", self.status, case.statuses));
        }
        if !case.states.contains(&self.state.as_str()) {
            found.push(format!("state {}, not one of {:?}", self.state, case.states));
        }
        for name in case.named.iter().filter(|name| !self.text.contains(*name)) {
            found.push(format!("does not name `{name}`"));
        }
        let other = self.left.iter().filter(|name| !case.results.contains(&name.as_str())).collect::<Vec<_>>();
        if !other.is_empty() {
            found.push(format!("leaves {other:?}"));
        }
        if self.has_sets && !case.leaves_sets {
            found.push("leaves file sets".to_owned());
        }
        found
    }
}

/// Makes the fault. Returns the row of the table, and what is wrong.
fn check(case: &FaultCase) -> (String, Vec<String>) {
    let output = (case.make)(Duration::from_secs(case.limit));
    let outcome = FaultOutcome::of(&output);
    let mut wrong = outcome.differences(case);
    // No lock outlives the processes: what is left can be removed.
    let sets = (0..3).map(|rank| output.dir().join(format!("d/{rank}"))).filter(|dir| dir.join("data").exists());
    for dir in sets.filter(|_| !output.dir().join(LETTER).exists()) {
        let cleaned = program().arg("clean").arg(&dir).output().unwrap();
        if !cleaned.status.success() || dir.join("data").exists() {
            wrong.push(format!("`wmlrun clean` fails: {}", String::from_utf8_lossy(&cleaned.stderr)));
        }
    }
    if !wrong.is_empty() {
        wrong.push(output.shown());
    }
    let sets = if outcome.has_sets { "file sets" } else { "" };
    let left = outcome.left.iter().map(String::as_str).chain([sets]).filter(|name| !name.is_empty());
    let left: Vec<&str> = left.collect();
    let (seconds, left) = (output.elapsed.as_secs_f64(), left.join(", "));
    let FaultOutcome { status, state, .. } = &outcome;
    let row = format!("| {} | {status} | {state} | {seconds:.1} of {} | {left} |", case.name, case.limit);
    (row, wrong)
}

#[test]
#[allow(clippy::print_stdout, reason = "the table is for readers too")]
fn each_fault_has_its_outcome() {
    let mut failed = Vec::new();
    println!("| fault | status | state | seconds | left |\n|---|---|---|---|---|");
    for case in FAULTS.iter().filter(|case| case.is_short || long()) {
        let (row, wrong) = check(case);
        println!("{row}");
        if !wrong.is_empty() {
            failed.push(format!("{}: {}", case.name, wrong.join("\n  ")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
