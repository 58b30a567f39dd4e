//! `wmlrun replay`: makes the calls of a trace again, below a directory.

use super::choices::FigureFormat;
use super::console::print_lines;
use super::recording::{named, opened};
use super::recording_args::ReplayArgs;
use crate::comparison::AsJson as _;
use crate::diag::{Failure, Status};
use crate::os::signals::{self, BrokenOff};
use crate::replay::{ReplaySpeed, ReplayStop, ReplayWish, replay as run};

/// Replays a trace.
pub(super) fn replay(args: &ReplayArgs) -> Result<u8, Failure> {
    if args.no_think && args.speed == ReplaySpeed::Fast {
        return Err(Failure::wrong("`--no-think` without times", "add `--speed timed`: `fast` waits for no time"));
    }
    let (number, _) = signals::install_handlers();
    let _kept = signals::Kept::begin();
    signals::second_breaks_off(BrokenOff::Command);
    let wish = ReplayWish {
        speed: args.speed,
        is_by_thread: args.order == "thread",
        leaves_out_thinking: args.no_think,
        takes_incomplete: args.incomplete,
    };
    let input = opened(&args.trace)?;
    let done = signals::interruptible(&number, |stop| run(input, &args.dir, &wish, stop));
    let outcome = done.map_err(|why| failure(args, why))?;
    let name = args.trace.display().to_string();
    let format = if args.json { FigureFormat::Json } else { FigureFormat::Text };
    let sheet = || outcome.sheet(&name, &args.dir.display().to_string());
    print_lines(format.write(|| outcome.document().json(), sheet).trim_end());
    if let Some(signal) = signals::received() {
        return Ok(128 + signal);
    }
    match outcome.failure() {
        None => Ok(0),
        Some(text) => Err(Failure::new(Status::Failed, text, "")),
    }
}

/// Why there is no replay.
fn failure(args: &ReplayArgs, why: ReplayStop) -> Failure {
    let name = args.trace.display();
    match why {
        ReplayStop::Trace(error) => named(&args.trace)(error),
        ReplayStop::Incomplete(what) => Failure::wrong(
            format!("{name}: the trace is incomplete: it lacks {}", what.join(", ")),
            "record it again, or replay what is there by `--incomplete`",
        ),
        ReplayStop::Nothing => Failure::wrong(format!("{name}: no call in it can be replayed"), ""),
        ReplayStop::Foreign(text) => Failure::refused(text, "give `--dir` another directory, or remove it"),
        ReplayStop::Descriptors(limit, needed) => Failure::refused(
            format!("the replay needs {needed} open files, and the limit is {limit}"),
            format!("raise it: `ulimit -n {needed}`"),
        ),
        ReplayStop::Io(error) => {
            Failure::failed(format!("can't prepare the replay in {}: {error}", args.dir.display()), "")
        }
    }
}
