//! Command-line options of `record`, `trace`, `fidelity` and `replay`.

use super::completion;
use crate::measure::time;
use crate::replay::ReplaySpeed;
use crate::util::size;
use clap::{ArgGroup, Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `wmlrun record`.
#[derive(Args, Clone, Default)]
#[command(group(ArgGroup::new("recorded").args(["process", "command"]).required(true)))]
pub(super) struct RecordArgs {
    /// The trace, which must not exist [default: trace.wtrace]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Record calls on the files below DIR only, and the tree that is there. May be repeated [default: all files outside of
    /// /proc, /sys, /dev, /usr, /lib and /etc]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) under: Vec<PathBuf>,
    /// Stop after this time; a command is then asked to end
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(super) period: Option<Duration>,
    /// Keep the last SIZE of the recording at most, in two parts: FILE and FILE.1
    #[arg(long, value_name = "SIZE", value_parser = part_size)]
    pub(super) max_size: Option<u64>,
    /// Record by eBPF (`bpf`), which needs root's rights, or by `ptrace` [default: bpf if it is allowed]
    #[arg(long, value_name = "WAY", value_parser = ["bpf", "ptrace"])]
    pub(super) by: Option<String>,
    /// Hide names: what is kept of each is its extension, and its length rounded up to 16, 32, 64 or 128
    #[arg(long)]
    pub(super) hash_names: bool,
    /// Print how much longer the command takes while it is recorded, by five pairs of runs; the traces are removed
    #[arg(long, conflicts_with_all = ["process", "period", "max_size"])]
    pub(super) check_overhead: bool,
    /// Execute this command with the shell before each run
    #[arg(long, value_name = "COMMAND", requires = "check_overhead")]
    pub(super) before: Option<String>,
    /// Record the process with this number, and all that it starts
    #[arg(short = 'p', value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) process: Option<i32>,
    /// The command to record, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
    /// True if only figures of the trace are wanted: it has no name, and nothing is said of it.
    #[arg(skip)]
    pub(super) is_temporary: bool,
}

/// Arguments of `wmlrun fidelity`.
#[derive(Args)]
pub(super) struct FidelityArgs {
    /// File or name of the script, such as one of `wmlrun learn`
    #[arg(add = completion::scripts())]
    pub(super) script: String,
    /// The directory of the program's files
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) dir: PathBuf,
    /// Execute this command with the shell before each run
    #[arg(long, value_name = "COMMAND")]
    pub(super) before: Option<String>,
    /// Run at most so many pairs
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) pairs: u64,
    /// Set a variable; overrides every `set` of it in the script. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Write the table into the script's header
    #[arg(long)]
    pub(super) write: bool,
    /// Record by eBPF (`bpf`), which needs root's rights, or by `ptrace` [default: bpf if it is allowed]
    #[arg(long, value_name = "WAY", value_parser = ["bpf", "ptrace"])]
    pub(super) by: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The command that runs the program, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Arguments of `wmlrun replay`.
#[derive(Args)]
pub(super) struct ReplayArgs {
    /// The trace of `wmlrun record` or `wmlrun trace import`
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(super) trace: PathBuf,
    /// The directory below which the files of the trace are made
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) dir: PathBuf,
    /// Begin calls as soon as those that they wait for are done (`fast`), at their times in the trace (`timed`), or so many
    /// times as fast (`x10`)
    #[arg(long, value_name = "SPEED", default_value = "fast", value_parser = replay_speed)]
    pub(super) speed: ReplaySpeed,
    /// Let calls wait for those of other threads on the same names and files (`resource`), or for none (`thread`)
    #[arg(long, value_name = "ORDER", default_value = "resource", value_parser = ["resource", "thread"])]
    pub(super) order: String,
    /// With `--speed timed` or `xN`: let threads sleep as they slept, and leave out the time that they computed
    #[arg(long)]
    pub(super) no_think: bool,
    /// Take a trace that lacks calls or its end
    #[arg(long)]
    pub(super) incomplete: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// `fast`, `timed`, or a factor such as `x10`.
fn replay_speed(text: &str) -> Result<ReplaySpeed, String> {
    let factor = text.strip_prefix(['x', '×']).and_then(|factor| factor.parse().ok());
    match text {
        "fast" => Ok(ReplaySpeed::Fast),
        "timed" => Ok(ReplaySpeed::Timed(1.0)),
        _ => factor
            .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)
            .map(ReplaySpeed::Timed)
            .ok_or_else(|| "expected `fast`, `timed` or a factor such as `x10`".to_owned()),
    }
}

/// What `wmlrun trace` does.
#[derive(Subcommand)]
pub(super) enum TraceCommand {
    /// Show what a trace says: calls by class, their times and sizes, and the files that are used most
    Show {
        /// The trace
        file: PathBuf,
        /// Print each call, in the order of their ends
        #[arg(long, conflicts_with = "json")]
        calls: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a trace of the output of another tool
    Import {
        /// The tool: `strace`, best with `strace -f -ttt -T -y -o FILE`
        #[arg(value_parser = ["strace"])]
        tool: String,
        /// Its output
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The trace, which must not exist [default: trace.wtrace]
        #[arg(long, short = 'o', value_name = "FILE")]
        output: Option<PathBuf>,
        /// Take calls on the files below DIR only. May be repeated
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        under: Vec<PathBuf>,
    },
}

/// A size of at least a mebibyte.
fn part_size(text: &str) -> Result<u64, String> {
    let found = size::parse(text).ok().filter(|found| *found >= 1 << 20);
    found.ok_or_else(|| "expected a size of at least `1m`".to_owned())
}
