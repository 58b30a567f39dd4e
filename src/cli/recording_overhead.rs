//! `wmlrun record --check-overhead`: how much longer a command takes while it is recorded.

use super::console::notice;
use super::recording::{can_not_record, record_once};
use super::recording_args::RecordArgs;
use crate::analysis::{median, paired_ratio};
use crate::diag::Failure;
use crate::os::{ptrace, signals};
use crate::util::count::fixed;
use crate::util::duration;
use std::io;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PAIRS: usize = 5;
const LEVEL: f64 = 0.95;
/// The time between two looks at a command that is not recorded.
const LOOK: Duration = Duration::from_millis(1);

/// Runs the command bare and recorded in turn, and prints the ratio of the times. The traces are removed.
pub(super) fn check(args: &RecordArgs) -> Result<u8, Failure> {
    let mut times = [Vec::new(), Vec::new()];
    // The first run fills the caches, and is not counted.
    let first = std::iter::once((false, false));
    // Each way is first in turn.
    let pairs = (0..PAIRS).flat_map(|n| [n % 2 == 1, n % 2 == 0]).map(|is_recorded| (is_recorded, true));
    for (is_recorded, is_counted) in first.chain(pairs) {
        let seconds = measure(args, is_recorded);
        if let Some(signal) = signals::received() {
            return Ok(128 + signal);
        }
        let seconds = seconds?;
        if is_counted {
            times[usize::from(is_recorded)].push(seconds);
        }
    }
    let [bare, recorded] = &times;
    let ends = paired_ratio(bare, recorded, LEVEL).and_then(|test| Some((test.estimate.value, test.estimate.ends()?)));
    let ratio = ends.map_or("a time that can't be told".to_owned(), |(ratio, (low, high))| {
        let [ratio, low, high] = [ratio, low, high].map(|n| fixed(n, 3));
        format!("{ratio} times the time of the bare command, 95 % interval {low} to {high}")
    });
    let [bare, recorded] = [bare, recorded].map(|times| duration::seconds(median(times).unwrap_or(0.0)));
    notice(&format!("recorded: {ratio}, from {PAIRS} pairs (median {bare} bare, {recorded} recorded)"));
    Ok(0)
}

/// The seconds that a run of the command takes, after the command before it.
fn measure(args: &RecordArgs, is_recorded: bool) -> Result<f64, Failure> {
    let ended = |what: &str, status: i32| {
        let help = "the overhead is that of commands that succeed";
        Err(Failure::failed(format!("the command {what} ended with status {status}"), help))
    };
    let not_started = |error| can_not_record(args, &error);
    if let Some(before) = &args.before {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(before).stdin(Stdio::null()).stdout(io::stderr());
        match run(shell).map_err(not_started)? {
            (0, _) => {}
            (status, _) => return ended("before a run", status),
        }
    }
    let (program, words) = args.command.split_first().ok_or_else(|| not_started(io::ErrorKind::InvalidInput.into()))?;
    let (status, seconds) = if is_recorded {
        record_once(args)?
    } else {
        let mut command = Command::new(program);
        command.args(words);
        run(command).map_err(not_started)?
    };
    if status == 0 { Ok(seconds) } else { ended("itself", status) }
}

/// Runs a command, which is asked to end when this program is. Returns its status, and the seconds that it took.
fn run(mut command: Command) -> io::Result<(i32, f64)> {
    let begin = Instant::now();
    let mut child = command.spawn()?;
    let mut has_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status.code().unwrap_or(128), begin.elapsed().as_secs_f64()));
        }
        if !has_asked && signals::received().is_some() {
            has_asked = true;
            ptrace::kill(child.id() as i32, signals::TERMINATE as i32);
        }
        thread::sleep(LOOK);
    }
}
