//! `wmlrun record --check-overhead`: how much longer a command takes while it is recorded.

use super::console::notice;
use super::recording::{can_not_record, create, record_once};
use super::recording_args::RecordArgs;
use super::screen::stderr_width;
use crate::analysis::{median, paired_ratio};
use crate::diag::Failure;
use crate::os::child::ProcessEnd;
use crate::os::{ptrace, signals};
use crate::util::count::fixed;
use crate::util::duration;
use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PAIRS: usize = 5;
const LEVEL: f64 = 0.95;
/// How often this program looks for a signal.
const LOOK: Duration = Duration::from_millis(100);
/// The seconds of a command that is long enough: of a shorter one its start alone may decide.
const LONG_ENOUGH: f64 = 0.1;
/// The seconds of a command whose pairs are shown as they end.
const SHOWN: f64 = 1.0;
/// The widest interval that tells anything: its higher end by its lower one.
const WIDEST: f64 = 1.5;

/// Runs the command bare and recorded in turn, and prints the ratio of the times. The traces are removed.
pub(super) fn check(args: &RecordArgs) -> Result<u8, Failure> {
    // That nothing can be written there is told before anything runs.
    drop(create(args)?);
    let mut times = [Vec::new(), Vec::new()];
    // The first run fills the caches, and is not counted.
    let first = std::iter::once((false, false));
    // Each way is first in turn.
    let pairs = (0..PAIRS).flat_map(|n| [n % 2 == 1, n % 2 == 0]).map(|is_recorded| (is_recorded, true));
    let mut shows_progress = false;
    if stderr_width().is_some() {
        notice(&format!("the command runs once, and then {PAIRS} times bare and {PAIRS} times recorded"));
    }
    for (is_recorded, is_counted) in first.chain(pairs) {
        let seconds = measure(args, is_recorded);
        if let Some(signal) = signals::received() {
            return Ok(128 + signal);
        }
        let seconds = seconds?;
        if is_counted {
            times[usize::from(is_recorded)].push(seconds);
        } else if seconds >= SHOWN {
            shows_progress = true;
            notice(&format!("first run: {}; {PAIRS} pairs follow", duration::span(seconds)));
        }
        if let ([.., bare], [.., recorded]) = (&*times[0], &*times[1])
            && shows_progress
            && times[0].len() == times[1].len()
        {
            let [bare, recorded] = [*bare, *recorded].map(duration::span);
            notice(&format!("pair {} of {PAIRS}: {bare} bare, {recorded} recorded", times[0].len()));
        }
    }
    let [bare, recorded] = &times;
    let ends = paired_ratio(bare, recorded, LEVEL).and_then(|test| Some((test.estimate.value, test.estimate.ends()?)));
    let medians = [bare, recorded].map(|times| median(times).unwrap_or(0.0));
    let shown = format!("median {} bare, {} recorded", duration::span(medians[0]), duration::span(medians[1]));
    notice(&match ends {
        Some((ratio, (low, high))) if medians[0] >= LONG_ENOUGH => {
            let wide = if high > low * WIDEST {
                "; it is too wide to tell: the runs differ, or the machine is busy"
            } else if high < 1.0 {
                "; it is faster while it is recorded, so that recording changes what it waits for"
            } else {
                ""
            };
            let [ratio, low, high] = [ratio, low, high].map(|n| fixed(n, 3));
            let interval = format!("95 % interval {low} to {high}, from {PAIRS} pairs ({shown})");
            format!("recorded: {ratio} times the time of the bare command, {interval}{wide}")
        }
        _ => {
            format!("the command is too short to tell what recording it costs: it should take 0.1 s or more ({shown})")
        }
    });
    Ok(0)
}

/// The seconds that a run of the command takes, after the command before it.
fn measure(args: &RecordArgs, is_recorded: bool) -> Result<f64, Failure> {
    let not_started = |error| can_not_record(args, &error);
    execute_before(args.before.as_deref())?;
    let (program, words) = args.command.split_first().ok_or_else(|| not_started(io::ErrorKind::InvalidInput.into()))?;
    let (status, seconds) = if is_recorded {
        let recording = record_once(args)?;
        (recording.status, recording.seconds)
    } else {
        let mut command = Command::new(program);
        command.args(words);
        run(command).map_err(not_started)?
    };
    if status == 0 { Ok(seconds) } else { Err(ended("itself", status)) }
}

/// The failure of a command that did not succeed.
pub(super) fn ended(what: &str, status: i32) -> Failure {
    Failure::failed(format!("the command {what} ended with status {status}"), "only runs that succeed are compared")
}

/// Executes the command before a run with the shell. What it prints goes to standard error.
pub(super) fn execute_before(command: Option<&str>) -> Result<(), Failure> {
    let Some(command) = command else { return Ok(()) };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(io::stderr());
    let done = run(shell).map_err(|error| Failure::failed(format!("can't start the shell: {error}"), ""))?;
    if done.0 == 0 { Ok(()) } else { Err(ended("before a run", done.0)) }
}

/// Runs a command, which is asked to end when this program is. Returns its status, and the seconds that it took.
fn run(mut command: Command) -> io::Result<(i32, f64)> {
    let begin = Instant::now();
    let mut child = command.spawn()?;
    let end = ProcessEnd::of(child.id() as i32);
    let mut has_asked = false;
    loop {
        end.wait(LOOK);
        if let Some(status) = child.try_wait()? {
            return Ok((status.code().unwrap_or(128), begin.elapsed().as_secs_f64()));
        }
        if !has_asked && signals::received().is_some() {
            has_asked = true;
            ptrace::kill(child.id() as i32, signals::TERMINATE as i32);
        }
    }
}
