//! Tests a file system that stops responding at any moment and in any call: the program reports it, keeps what it has
//! measured, and ends.
//!
//! The kernel does not interrupt a call that a FUSE server has accepted, so such a process disappears only when the
//! server answers. Until then, only the threads in those calls remain, and the last line of output names them.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::cmd::{Running, Wml, has, long, tool};
use crate::fuse::{self, Act, Kind, Slow};
use crate::mounts::{self, Fs, Mount};

const NO_TIME: Act = Act::After(Duration::ZERO);

/// At which moment a call hangs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// While files are made.
    Population,
    /// While threads run.
    Run,
    /// Just before the run is over.
    End,
    /// While trees are removed.
    CleanUp,
}

const MOMENTS: [Moment; 4] = [Moment::Population, Moment::Run, Moment::End, Moment::CleanUp];

/// Calls, and the flowops that make them in the run.
const CALLS: [(Kind, &str); 26] = [
    (Kind::Open, "flowop openfile name=x,filesetname=data,fd=1\nflowop closefile name=c,fd=1"),
    (
        Kind::Create,
        "flowop createfile name=x,filesetname=data,fd=1\nflowop closefile name=c,fd=1\nflowop deletefile name=d,filesetname=data",
    ),
    (Kind::Read, "flowop read name=x,filesetname=data,iosize=4k,random"),
    (Kind::Write, "flowop write name=x,filesetname=data,iosize=4k,random"),
    (
        Kind::Fsync,
        "flowop openfile name=o,filesetname=data,fd=1\nflowop fsync name=x,fd=1\nflowop closefile name=c,fd=1",
    ),
    (Kind::Flush, "flowop openfile name=o,filesetname=data,fd=1\nflowop closefile name=x,fd=1"),
    (Kind::Release, "flowop openfile name=o,filesetname=data,fd=1\nflowop closefile name=x,fd=1"),
    (
        Kind::Unlink,
        "flowop createfile name=m,filesetname=data,fd=1\nflowop closefile name=c,fd=1\nflowop deletefile name=x,filesetname=data",
    ),
    (Kind::Rename, "flowop rename name=x,filesetname=data"),
    (Kind::Stat, "flowop statfile name=x,filesetname=data"),
    (Kind::StatDir, "flowop listdirplus name=x,filesetname=data"),
    (Kind::Setattr, "flowop setattr name=x,filesetname=data"),
    (
        Kind::Setattr,
        "flowop openfile name=o,filesetname=data,fd=1\nflowop utimens name=x,fd=1\nflowop closefile name=c,fd=1",
    ),
    (
        Kind::Setattr,
        "flowop openfile name=o,filesetname=data,fd=1\nflowop chown name=x,fd=1\nflowop closefile name=c,fd=1",
    ),
    (Kind::Lookup, "flowop statfile name=x,filesetname=data"),
    (Kind::Walk, "flowop listdir name=x,filesetname=data"),
    (Kind::Opendir, "flowop listdir name=x,filesetname=data"),
    (Kind::Readdir, "flowop listdir name=x,filesetname=data"),
    (Kind::Mkdir, "flowop makedir name=x,filesetname=data\nflowop removedir name=r,filesetname=data"),
    (Kind::Rmdir, "flowop makedir name=m,filesetname=data\nflowop removedir name=x,filesetname=data"),
    (Kind::Statfs, "flowop statfs name=x,filesetname=data"),
    (Kind::Symlink, "flowop symlink name=x,filesetname=spare\nflowop deletefile name=d,filesetname=spare"),
    (
        Kind::Setxattr,
        "flowop openfile name=o,filesetname=data,fd=1\nflowop setxattr name=x,fd=1,iosize=64\nflowop closefile name=c,fd=1",
    ),
    (
        Kind::Getxattr,
        "flowop openfile name=o,filesetname=data,fd=1\nflowop getxattr name=x,fd=1\nflowop closefile name=c,fd=1",
    ),
    (
        Kind::Fallocate,
        "flowop openfile name=o,filesetname=data,fd=1\nflowop fallocate name=x,fd=1,iosize=4k\nflowop closefile name=c,fd=1",
    ),
    (
        Kind::CopyRange,
        "flowop openfile name=o,filesetname=data,fd=1,indexed=1\nflowop openfile name=p,filesetname=data,fd=2,indexed=2\n\
        flowop copyrange name=x,srcfd=1,fd=2,iosize=4k\nflowop closefile name=c,fd=1\nflowop closefile name=e,fd=2",
    ),
];

/// Seconds that a busy machine may add.
const SLACK: f64 = 30.0;

/// Seconds of a run.
const SECONDS: u64 = 8;

fn script(flowops: &str) -> String {
    format!(
        "# dialect: fsl\n\
         define fileset name=data,path=$dir,entries=60,size=8k,dirwidth=10,leafdirs=4,prealloc=50\n\
         define fileset name=spare,path=$dir,entries=20,size=0,dirwidth=10\n\
         define fileset name=other,path=$dir,entries=4,size=8k,dirwidth=10,prealloc\n\
         define process name=p {{\n\
         thread name=hangs {{\n{flowops}\nflowop eventlimit name=slow\n}}\n\
         thread name=reads {{\nflowop read name=rd,filesetname=other,iosize=4k,random\nflowop eventlimit name=rate\n}}\n\
         }}\neventgen rate=200\nrun {SECONDS}\n"
    )
}

/// Returns whether a process has ended as far as the kernel permits: it is gone, or its remaining threads have been
/// killed, or its first thread is in its last call. If that is the last user of the descriptors, it closes them inside
/// `exit_group`, where it may wait for the file system.
fn has_ended(pid: u32) -> bool {
    const KILL: u64 = 1 << 8;
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default();
    let pending = u64::from_str_radix(field("SigPnd:"), 16).unwrap_or(0);
    let last_call = format!("{} ", libc::SYS_exit_group);
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    field("State:").starts_with('Z') || pending & KILL != 0 || call.starts_with(&last_call)
}

/// How a case ended.
#[derive(Debug)]
struct Outcome {
    /// The call was made at that moment, and hung.
    hung: bool,
    /// From the hang until the result file was there; none if there is none.
    result: Option<f64>,
    /// The time from the hang until only threads that the kernel blocks remained.
    seconds: f64,
    /// The exit status.
    code: i32,
    state: String,
}

/// Waits until something holds, or the program has ended.
fn wait_until(running: &Running, what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() && !has_ended(running.pid()) {
        let in_time = start.elapsed() < Duration::from_mins(3);
        assert!(in_time, "{what} did not happen in time\n{}", threads(running.pid()));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The threads of a process, each with its state, its system call and where the kernel blocks it.
fn threads(pid: u32) -> String {
    let mut text = String::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let status = read("status");
        let fields = ["Name:", "State:", "SigPnd:", "ShdPnd:"];
        let shown: Vec<&str> =
            status.lines().filter(|line| fields.iter().any(|field| line.starts_with(field))).collect();
        let _ =
            writeln!(text, "{} | {} | {}\n{}", shown.join(" "), read("wchan"), read("syscall").trim(), read("stack"));
    }
    text
}

/// Seconds since `start` until the result file is there; none if the program ends without one.
fn wait_for_result(running: &Running, result: &Path, start: Instant) -> Option<f64> {
    wait_until(running, "the result", || result.exists());
    result.exists().then(|| start.elapsed().as_secs_f64())
}

fn case(call: Kind, flowops: &str, moment: Moment) -> Outcome {
    let armed = Arc::new(AtomicBool::new(moment == Moment::Population));
    let hangs = Arc::clone(&armed);
    let slow = Slow::of_all(move |kind, _, _| match kind {
        kind if kind == call && hangs.load(Ordering::SeqCst) => Act::Hang,
        // Slow enough that the removal is seen.
        Kind::Unlink if moment == Moment::CleanUp => Act::After(Duration::from_millis(30)),
        _ => NO_TIME,
    });
    let wml = Wml::new().idle().file("x.wml", &script(flowops)).args(["x.wml", "--no-quiesce", "--clean"]);
    let wml = if moment == Moment::Population { wml.args(["--prepare-timeout", "2"]) } else { wml };
    let wml =
        wml.args(["--engine", "posix", "--on-error", "count", "--populate-threads", "1", "--dir"]).args([slow.dir()]);
    let result = wml.dir().join("result.json");
    let running = wml.result().timeout(Duration::from_mins(6)).start();
    let at = |what: &str| format!("{what} with a hanging {call:?} at {moment:?}");
    match moment {
        Moment::Population => {}
        Moment::Run | Moment::End => {
            let before = slow.tally(Kind::Read).calls;
            wait_until(&running, &at("the run"), || slow.tally(Kind::Read).calls >= before + 5);
            let early = if moment == Moment::Run { SECONDS * 500 } else { SECONDS * 1000 - 60 };
            std::thread::sleep(Duration::from_millis(early));
        }
        Moment::CleanUp => wait_until(&running, &at("the result"), || result.exists()),
    }
    armed.store(true, Ordering::SeqCst);
    let start = Instant::now();
    let reported = wait_for_result(&running, &result, start);
    wait_until(&running, &at("the end"), || false);
    let seconds = start.elapsed().as_secs_f64();
    let hung = slow.wait_for_hang(Duration::ZERO);
    slow.release();
    let output = running.wait();
    let shown = output.shown();
    let run = std::fs::read_to_string(&result).ok().map(|_| output.result()["runs"][0].clone());
    let state = run.as_ref().map_or("no run".to_owned(), |run| run["state"].as_str().unwrap_or("no run").to_owned());
    let at = slow.dir().to_str().unwrap().to_owned();
    if hung {
        // A call that no file is made with hangs in the run only.
        let refused = moment == Moment::Population && run.is_none();
        let bound = match moment {
            Moment::Population if refused => 2.0,
            Moment::Population => SECONDS as f64 + 0.5 + 10.0,
            Moment::Run => SECONDS as f64 / 2.0 + 0.5 + 10.0,
            Moment::End | Moment::CleanUp => 0.5 + 10.0,
        };
        assert!(seconds <= bound + SLACK, "{call:?} at {moment:?}: {seconds:.1} s to end\n{shown}");
        if let Some(reported) = reported {
            let bound = bound - 10.0;
            assert!(reported <= bound + SLACK, "{call:?} at {moment:?}: {reported:.1} s to the result\n{shown}");
        }
        if refused {
            assert_eq!(output.code(), 3, "{call:?} while files are created\n{shown}");
            assert!(shown.contains("has not answered") && shown.contains(&at), "{call:?}: not named\n{shown}");
        } else {
            assert!(state == "complete" || state == "stuck", "{call:?} at {moment:?}: {state}\n{shown}");
            assert!(output.stdout.contains("data") || !output.stdout.is_empty(), "{call:?}: no report\n{shown}");
        }
        for straggler in run.iter().flat_map(|run| run["stragglers"].as_array().cloned().unwrap_or_default()) {
            let path = straggler["path"].as_str().unwrap_or_default().to_owned();
            assert!(path.contains(&at), "{call:?} at {moment:?}: {path} is not the file\n{shown}");
            assert!(shown.contains("is still in a system call") && shown.contains(&path), "{shown}");
        }
        if state == "stuck" {
            assert_eq!(output.code(), 1, "{shown}");
        }
    }
    Outcome { hung, result: reported, seconds, code: output.code(), state }
}

/// Runs cases concurrently, and prints the outcome of each.
fn all(cases: &[(Kind, &str, Moment)]) -> Vec<Outcome> {
    let done: Vec<Outcome> = cases
        .chunks(8)
        .flat_map(|some| {
            std::thread::scope(|scope| {
                let running: Vec<_> =
                    some.iter().map(|(kind, flowops, moment)| scope.spawn(|| case(*kind, flowops, *moment))).collect();
                running.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut table = String::from(
        "\n| call | moment | hung | seconds to result | to end | status | state |\n|---|---|---|---|---|---|---|\n",
    );
    for ((kind, _, moment), outcome) in cases.iter().zip(&done) {
        let Outcome { hung, result, seconds, code, state } = outcome;
        let result = result.map_or("none".to_owned(), |seconds| format!("{seconds:.1}"));
        let _ = writeln!(table, "| {kind:?} | {moment:?} | {hung} | {result} | {seconds:.1} | {code} | {state} |");
    }
    let _ = std::io::Write::write_all(&mut std::io::stderr(), table.as_bytes());
    done
}

/// A sample each day, all of them with `WMLRUN_LONG=1`.
#[test]
fn a_call_that_hangs_ends_the_program_in_time_with_its_results() {
    needs!(fuse::available());
    if long() {
        let cases: Vec<_> = CALLS.iter().flat_map(|(kind, ops)| MOMENTS.map(|moment| (*kind, *ops, moment))).collect();
        let done = all(&cases);
        // Not each call is made at each moment; in the run each is.
        let hung =
            |moment: Moment| cases.iter().zip(&done).filter(|(case, done)| case.2 == moment && done.hung).count();
        assert!(hung(Moment::Run) >= 20 && hung(Moment::Population) >= 8 && hung(Moment::CleanUp) >= 5);
        return;
    }
    let at = |kind: Kind, moment| (kind, CALLS.iter().find(|(other, _)| *other == kind).unwrap().1, moment);
    let done = all(&[
        at(Kind::Write, Moment::Population),
        at(Kind::Mkdir, Moment::Population),
        at(Kind::Read, Moment::Run),
        at(Kind::Statfs, Moment::Run),
        at(Kind::Fsync, Moment::Run),
        at(Kind::Flush, Moment::End),
        at(Kind::Unlink, Moment::CleanUp),
        at(Kind::Rmdir, Moment::CleanUp),
    ]);
    assert!(done.iter().filter(|outcome| outcome.hung).count() >= 6, "{done:?}");
}

/// All threads hung half-way: that is no complete run.
#[test]
fn a_run_whose_threads_hung_half_way_is_stuck() {
    needs!(fuse::available());
    let outcome = case(Kind::Read, "flowop read name=x,filesetname=data,iosize=4k,random", Moment::Run);
    assert!(outcome.hung);
    assert_eq!((outcome.code, outcome.state.as_str()), (1, "stuck"));
}

/// One of the threads hangs in the last moment of a run, or before: its call never returns, and the run is not complete.
#[test]
fn a_run_of_which_a_thread_hangs_at_its_end_is_stuck() {
    needs!(fuse::available());
    let fsync = CALLS.iter().find(|(kind, _)| *kind == Kind::Fsync).unwrap().1;
    for outcome in all(&[(Kind::Fsync, fsync, Moment::End), (Kind::Fsync, fsync, Moment::Run)]) {
        assert!(outcome.hung);
        assert_eq!((outcome.code, outcome.state.as_str()), (1, "stuck"), "{outcome:?}");
    }
}

/// The result file is on the file system that hangs: the result is written to standard error, with a message.
#[test]
fn a_result_on_the_file_system_that_hangs_is_written_to_standard_error() {
    needs!(fuse::available());
    result_on_the_file_system_that_hangs(false);
}

/// The results directory is on another file system: the result is stored there.
#[test]
fn a_result_on_the_file_system_that_hangs_is_kept_in_the_results_directory() {
    needs!(fuse::available());
    result_on_the_file_system_that_hangs(true);
}

fn result_on_the_file_system_that_hangs(elsewhere: bool) {
    let armed = Arc::new(AtomicBool::new(false));
    let hangs = Arc::clone(&armed);
    let slow = Slow::of_all(move |kind, _, _| match kind {
        Kind::Statfs | Kind::StatDir => NO_TIME,
        _ if hangs.load(Ordering::SeqCst) => Act::Hang,
        _ => NO_TIME,
    });
    let json = slow.dir().join("out.json");
    let trace = slow.dir().join("out.trace");
    let wml = Wml::new().idle().file("x.wml", &script("flowop read name=x,filesetname=data,iosize=4k,random"));
    let wml = wml.args(["x.wml", "--no-quiesce", "--engine", "posix", "--json"]).args([&json]);
    let wml = wml.args(["--trace".to_owned(), format!("{}:1000", trace.display())]);
    let results = if elsewhere { Path::new(".") } else { slow.dir() };
    let wml = wml.args(["--results"]).args([results]).args(["--dir"]);
    let running = wml.args([slow.dir()]).timeout(Duration::from_mins(6)).start();
    wait_until(&running, "the run", || slow.tally(Kind::Read).calls >= 5);
    armed.store(true, Ordering::SeqCst);
    wait_until(&running, "the end", || false);
    slow.release();
    let output = running.wait();
    let text = &output.stderr;
    let document: Value = if elsewhere {
        let kept = output.dir().join("out.json");
        assert!(text.contains(&format!("does not answer; it is in {}", kept.display())), "{text}");
        serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap()
    } else {
        assert!(text.contains("its file system does not answer; the result follows here"), "{text}");
        let start = text.find("\n{\n").expect("a document") + 1;
        let end = text[start..].find("\n}\n").expect("all of a document") + start + 2;
        serde_json::from_str(&text[start..end]).unwrap()
    };
    let lost = format!("can't write the trace {}: its file system does not answer", trace.display());
    assert!(text.contains(&lost), "{text}");
    assert_eq!(document["runs"][0]["state"], "stuck");
    assert_eq!(output.code(), 1);
    assert!(output.stdout.contains("rd"), "the report is there\n{}", output.stdout);
}

/// Only the files that a script and the command line name lie where nothing answers: the runs are made, and both losses are reported.
/// Half a minute for each file.
#[test]
fn a_trace_and_a_dump_on_a_file_system_that_hangs_are_abandoned() {
    needs!(long() && fuse::available());
    let armed = Arc::new(AtomicBool::new(false));
    let hangs = Arc::clone(&armed);
    let slow = Slow::of_all(move |_, _, _| if hangs.load(Ordering::SeqCst) { Act::Hang } else { NO_TIME });
    let text = "define fileset name=data,path=$dir,entries=5,size=4k,dirwidth=10,prealloc\n\
        define process name=p { thread name=t { flowop read name=r,filesetname=data,iosize=4k,random } }\n\
        run 1\nstats dump out.txt\nrun 1\n";
    let mut running = Wml::new()
        .idle()
        .file("x.wml", text)
        .args(["x.wml", "--no-quiesce", "--trace"])
        .args([format!("{}/out.trace:1000", slow.dir().display())])
        .args(["--results"])
        .args([slow.dir()])
        .result()
        .timeout(Duration::from_mins(6))
        .start();
    running.wait_until_reading();
    armed.store(true, Ordering::SeqCst);
    wait_until(&running, "the end", || false);
    slow.release();
    let output = running.wait().exits(1);
    let shown = &output.stderr;
    for name in ["out.trace", "out.txt"] {
        let lost = format!("{}: its file system does not answer", slow.dir().join(name).display());
        assert!(shown.contains(&lost), "{name}\n{shown}");
    }
    let runs = &output.result()["runs"];
    assert_eq!((&runs[0]["state"], &runs[1]["state"]), (&"complete".into(), &"complete".into()), "{shown}");
}

/// ^C while preparation hangs: the program ends and names the work that it waited for.
#[test]
fn an_interrupt_ends_a_preparation_that_hangs() {
    needs!(fuse::available());
    let slow = Slow::of_all(|kind, _, _| if kind == Kind::Write { Act::Hang } else { NO_TIME });
    let wml = Wml::new().idle().file("x.wml", &script("flowop read name=x,filesetname=data,iosize=4k,random"));
    let running = wml.args(["x.wml", "--no-quiesce", "--dir"]).args([slow.dir()]).start();
    assert!(slow.wait_for_hang(Duration::from_mins(1)));
    running.signal(Signal::INT);
    let start = Instant::now();
    wait_until(&running, "the end", || false);
    let seconds = start.elapsed().as_secs_f64();
    slow.release();
    let output = running.wait().exits(130);
    assert!(seconds < 1.0 + SLACK, "{seconds} s to end\n{}", output.shown());
    assert!(output.stderr.contains("interrupted while"), "{}", output.stderr);
    assert!(output.stderr.contains(slow.dir().to_str().unwrap()), "{}", output.stderr);
}

/// ^C while an experiment itself, and none of its runs, looks at the directory of its runs.
#[test]
fn an_interrupt_ends_an_experiment_that_waits_between_its_runs() {
    needs!(fuse::available());
    let results = tempfile::tempdir().unwrap();
    let results = results.path().join("r");
    let journal = results.join("journal.jsonl");
    let slow = Slow::of_all(move |kind, _, _| match kind {
        Kind::Stat | Kind::StatDir | Kind::Walk | Kind::Lookup if journal.exists() => Act::Hang,
        _ => NO_TIME,
    });
    let wml = Wml::new().idle().file("x.wml", &script("flowop read name=x,filesetname=data,iosize=4k,random"));
    let wml = wml.args(["repeat", "x.wml", "--no-quiesce", "--results"]).args([&results]);
    let running = wml.args(["--dir"]).args([slow.dir()]).start();
    assert!(slow.wait_for_hang(Duration::from_mins(1)));
    running.signal(Signal::INT);
    wait_until(&running, "the end", || false);
    slow.release();
    let output = running.wait().exits(130);
    assert!(output.stderr.contains("a file system does not answer"), "{}", output.shown());
    assert!(output.stderr.contains("`wmlrun repeat --resume DIR` continues"), "{}", output.shown());
}

/// The note on what a preparation waits for comes after five seconds.
#[test]
fn a_batch_that_is_quiet_waits_without_notes() {
    needs!(fuse::available());
    let script = "define fileset name=data,path=$dir,entries=5,size=4k,dirwidth=10,prealloc\n\
        define process name=p { thread name=t { flowop read name=r,filesetname=data,iosize=4k } }\n";
    let profile = "CONFIG one {\n personality = own;\n}\n";
    for words in [&["--quiet"][..], &[]] {
        let slow = Slow::of_all(|kind, _, _| if kind == Kind::Write { Act::Hang } else { NO_TIME });
        let wml = Wml::new().idle().file("own.f", script).file("p.prof", profile).args(["batch", "p.prof"]);
        let wml = wml.args(["--no-quiesce", "--prepare-timeout", "7"]).args(words.iter().copied());
        let running = wml.args(["--dir"]).args([slow.dir()]).start();
        wait_until(&running, "the end", || false);
        slow.release();
        let output = running.wait().exits(3);
        assert!(output.stderr.contains("has not answered"), "{}", output.shown());
        assert_eq!(output.stderr.contains("note: still "), words.is_empty(), "{}", output.shown());
    }
}

/// Runs a workload of writes and fsyncs, breaks its file system, and returns when only threads that the kernel blocks
/// remain.
fn run_on(dir: &std::path::Path, break_it: impl FnOnce()) -> (Running, std::path::PathBuf, f64) {
    let flowops = "flowop write name=x,filesetname=data,iosize=4k,random\nflowop fsync name=f,filesetname=data";
    let wml =
        Wml::new().idle().file("x.wml", &script(flowops)).args(["x.wml", "--no-quiesce", "--engine", "posix", "--dir"]);
    let (result, wml) = (wml.dir().join("result.json"), wml.args([dir]).result().timeout(Duration::from_mins(6)));
    let mut running = wml.start();
    running.wait_until_reading();
    break_it();
    let start = Instant::now();
    wait_until(&running, "the end", || false);
    (running, result, start.elapsed().as_secs_f64())
}

/// Calls on a frozen file system do not return until it is thawed.
#[test]
fn a_frozen_file_system_ends_the_run_with_its_report() {
    needs!(mounts::available(&[Fs::Ext4]) && has("fsfreeze"));
    let mount = Mount::new(Fs::Ext4, 256 << 20);
    let at = mount.dir().to_str().unwrap().to_owned();
    let thaw = Thaw(at.clone());
    // A freeze writes back first: on a busy disk it may come after the end of the run.
    let mut froze_in_time = false;
    let mut attempts = 0;
    let (running, result, seconds) = loop {
        let began = Instant::now();
        let freeze = || {
            tool("fsfreeze", &["--freeze", &at]);
            froze_in_time = began.elapsed() < Duration::from_secs(SECONDS);
        };
        let ended = run_on(mount.dir(), freeze);
        attempts += 1;
        if froze_in_time || attempts == 4 {
            break ended;
        }
        drop(Thaw(at.clone()));
        ended.0.wait();
    };
    drop(thaw);
    let output = running.wait().exits(1);
    assert!(seconds < SECONDS as f64 + 10.5 + SLACK, "{seconds} s to end\n{}", output.shown());
    assert!(result.exists());
    assert_eq!(output.only_run()["state"], "stuck");
    let last = output.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("is still in a system call on") && last.contains(&at), "the last line is {last}");
}

/// Before anything is made, an output's file system is waited for as that of the file sets is.
#[test]
fn an_output_on_a_frozen_file_system_is_abandoned_before_the_run() {
    needs!(mounts::available(&[Fs::Ext4]) && has("fsfreeze"));
    let mount = Mount::new(Fs::Ext4, 64 << 20);
    let at = mount.dir().to_str().unwrap().to_owned();
    for (option, name) in [("--json", "out"), ("--trace", "out:5")] {
        let out = format!("{at}/{name}");
        let call = Wml::new().idle().args(["randomread", "--engine", "null", "--prepare-timeout", "1", option, &out]);
        let thaw = Thaw(at.clone());
        tool("fsfreeze", &["--freeze", &at]);
        let running = call.start();
        wait_until(&running, "the end", || false);
        drop(thaw);
        let output = running.wait().exits(3);
        assert!(output.stderr.contains("checking the outputs") && output.stderr.contains(&at), "{}", output.shown());
    }
}

/// Thaws a file system when a test ends.
struct Thaw(String);

impl Drop for Thaw {
    fn drop(&mut self) {
        let _ = std::process::Command::new("fsfreeze").args(["--unfreeze", &self.0]).output();
    }
}

#[test]
fn a_server_that_is_stopped_or_killed_ends_the_run_with_its_report() {
    needs!(fuse::available());
    for signal in [Signal::STOP, Signal::KILL] {
        let server = fuse::Server::new();
        let (running, result, seconds) = run_on(server.dir(), || server.signal(signal));
        // Whatever it has taken is answered by its end.
        server.signal(Signal::KILL);
        let output = running.wait().exits(1);
        assert!(seconds < SECONDS as f64 + 10.5 + SLACK, "{seconds} s to end\n{}", output.shown());
        assert!(result.exists(), "{}", output.shown());
        let run = output.only_run();
        let (state, wanted) = (run["state"].as_str().unwrap(), if signal == Signal::STOP { "stuck" } else { "failed" });
        assert_eq!(state, wanted, "{}", output.shown());
        assert!(output.stdout.contains("rd"), "{}", output.shown());
        assert!(output.shown().contains(server.dir().to_str().unwrap()), "{}", output.shown());
    }
}
