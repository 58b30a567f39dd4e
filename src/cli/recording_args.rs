//! Command-line options of `record`, `trace`, `fidelity` and `replay`.

use super::args::{OutputArgs, RunArgs};
use super::completion;
use super::experiment_args::LimitArgs;
use super::run_options::{REPLAY, RunSettings};
use crate::measure::time;
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
    /// The directory of the program's files; those of the script are below it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) dir: PathBuf,
    /// Compare with this trace of the program, which is not run
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::FilePath, conflicts_with_all = ["command", "before"])]
    pub(super) trace: Option<PathBuf>,
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
    #[arg(last = true, required_unless_present = "trace", value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Arguments of `wmlrun replay`.
#[derive(Args)]
pub(super) struct ReplayArgs {
    /// The trace of `wmlrun record` or `wmlrun trace import`
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(super) trace: PathBuf,
    #[command(flatten)]
    settings: RunSettings<REPLAY>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Said by an experiment, as to the run of a script.
    #[arg(long, value_name = "FD", num_args = 0..=1, require_equals = true, default_missing_value = "-1", hide = true)]
    of_experiment: Option<i32>,
}

impl ReplayArgs {
    /// The same as options of a run.
    pub(super) fn run_args(&self) -> RunArgs {
        let (output, limits, of_experiment) = (self.output.clone(), self.limits.clone(), self.of_experiment);
        RunArgs {
            settings: RunSettings(self.settings.0.clone()),
            output,
            limits,
            live: None,
            hosts: None,
            as_rank: false,
            of_experiment,
        }
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
