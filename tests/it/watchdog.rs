//! A time limit for all programs that the tests start, so that a program that hangs does not block the test runner.
//!
//! Each test has its own limits. This limit is for cases that escape them: a program that no test kills, or a call that
//! a file system never answers. It ends the programs, and prints where in the kernel each of their threads was; their
//! tests then fail. If a test itself hangs, the limit ends the test runner.

use crate::cmd::short_or_long;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For how long a program may run: several times as long as the longest that any test starts.
fn program_limit() -> Duration {
    Duration::from_mins(short_or_long(10, 60))
}

/// For how long all tests together may: they take 5 minutes on 2 processors.
fn limit() -> Duration {
    Duration::from_mins(short_or_long(40, 300))
}

/// A running program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Program {
    pid: i32,
    /// In clock ticks after the system's start. Tells it from another one that has its number later.
    started: u64,
}

/// Starts the watchdog and resets the signals that a shell ignores in its background jobs. Further calls do nothing.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // A child process inherits ignored signals, and the program under test leaves an ignored signal ignored, as it should.
        // Tests of ^C would then fail in `cargo test &`.
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
            // SAFETY: no handler is installed, so no code of ours runs in signal context.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        std::thread::spawn(watch);
    });
}

/// For how much longer the watchdog slept than it wanted to, since it started, in nanoseconds.
static OVERSLEPT_NS: AtomicU64 = AtomicU64::new(0);

/// For how much longer than it wanted to the watchdog has slept: this program, or the whole machine, was stopped for so long.
pub(crate) fn overslept() -> Duration {
    start();
    Duration::from_nanos(OVERSLEPT_NS.load(Ordering::Relaxed))
}

/// Sleeps for 5 seconds in short intervals, and records how much longer they take.
fn sleep() {
    const PIECE: Duration = Duration::from_millis(20);
    for _ in 0..250 {
        let start = Instant::now();
        std::thread::sleep(PIECE);
        let more = start.elapsed().saturating_sub(PIECE + Duration::from_millis(5));
        OVERSLEPT_NS.fetch_add(more.as_nanos() as u64, Ordering::Relaxed);
    }
}

fn watch() {
    let began = Instant::now();
    let mut seen: BTreeMap<Program, Instant> = BTreeMap::new();
    while began.elapsed() < limit() {
        sleep();
        let now = Instant::now();
        let programs = descendants(std::process::id() as i32);
        seen.retain(|program, _| programs.contains(program));
        for program in programs {
            let since = *seen.entry(program.clone()).or_insert(now);
            if now - since > program_limit() {
                tell(&format!(
                    "a test's program ran for more than {:?} and is killed\n{}",
                    program_limit(),
                    state(program.pid)
                ));
                let _ = kill_process(Pid::from_raw(program.pid).unwrap(), Signal::KILL);
            }
        }
    }
    tell(&format!("the tests took more than {:?}\n{}", limit(), state(std::process::id() as i32)));
    std::process::exit(101);
}

/// Past the test runner's capture, which shows nothing of a test that never ends.
fn tell(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("\nWATCHDOG: {text}\n").as_bytes());
}

/// Of `/proc/PID/stat`: the fields after the name, which is in brackets and may have spaces. The first is the state.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect())
}

/// Returns all descendants of a process.
fn descendants(root: i32) -> Vec<Program> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = fields(&stat);
        let number = |n: usize| fields.get(n).and_then(|field| field.parse::<u64>().ok());
        if let (Some(parent), Some(started)) = (number(1), number(19)) {
            parents.insert(pid, (parent as i32, started));
        }
    }
    let is_ours = |mut pid: i32| loop {
        match parents.get(&pid) {
            Some((parent, _)) if *parent == root => return true,
            Some((parent, _)) => pid = *parent,
            None => return false,
        }
    };
    parents
        .iter()
        .filter(|(pid, _)| is_ours(**pid))
        .map(|(pid, (_, started))| Program { pid: *pid, started: *started })
        .collect()
}

/// Describes a process: its command line, and the kernel function of each thread; for root, with the kernel stack.
fn state(pid: i32) -> String {
    let read = |path: &str| fs::read_to_string(format!("/proc/{pid}/{path}")).unwrap_or_default();
    let mut text = format!("{pid}: {}\n", read("cmdline").replace('\0', " "));
    for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok).take(20) {
        let task = entry.file_name().to_string_lossy().into_owned();
        let read = |file: &str| read(&format!("task/{task}/{file}"));
        let stat = read("stat");
        let state = fields(&stat).first().copied().unwrap_or("?").to_owned();
        let _ = writeln!(text, "thread {task} {} {state} {}\n{}", read("comm").trim(), read("wchan"), read("stack"));
    }
    text
}

#[test]
fn programs_started_by_a_test_are_found_and_described() {
    let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
    let pid = child.id() as i32;
    let found = |pids: &[Program]| pids.iter().any(|program| program.pid == pid);
    let since = Instant::now();
    // The shell's own child too, once the shell has started it and waits.
    let own = || descendants(pid);
    let waits = || state(pid).contains(&format!("thread {pid} sh S"));
    while (own().is_empty() || !waits()) && since.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (all, own) = (descendants(std::process::id() as i32), own());
    let described = state(pid);
    for program in &own {
        let _ = kill_process(Pid::from_raw(program.pid).unwrap(), Signal::KILL);
    }
    let _ = child.wait();
    assert!(found(&all) && own.len() == 1 && all.contains(&own[0]), "{all:?} {own:?}");
    assert!(described.contains("sleep 60 & wait") && described.contains(&format!("thread {pid} sh S")), "{described}");
    assert!(!found(&descendants(std::process::id() as i32)), "it has ended");
}
