//! The command line's form. The only file that knows the argument parser.

use super::experiment_args::{AbArgs, CompareArgs, FloorArgs, RepeatArgs, SweepArgs, method_parser};
use super::info;
use super::stdout::Stdout;
use crate::analysis::ResponseMethod;
use crate::engine::{self, Engine};
use crate::measure::WarmupLength;
use crate::report::{self, Report};
use crate::spec::Dialect;
use crate::util::{duration, printable};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::aot::{Shell, generate};
use std::path::PathBuf;
use std::time::Duration;

/// Runs file-system workloads that are written in WML, and says how fast they went.
#[derive(Parser)]
#[command(
    name = "wmlrun",
    version,
    about,
    long_about = None,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    subcommand_negates_reqs = true,
    after_help = "SCRIPT is a file, `-` for standard input, or the name of a shipped personality (`wmlrun list`).\n\
                  Exit status: 0 done, 1 the run failed, got stuck or did nothing, 2 wrong usage or script, 3 the environment refused, 130/143 interrupted; \\\n                  of a comparison 0 not worse, 10 worse, 11 unclear (or repeats that did not converge), 12 invalid."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
    /// The script to run
    #[arg(value_name = "SCRIPT")]
    pub(super) script: Option<String>,
    /// The script to run, as Filebench's command line has it
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "script")]
    pub(super) file: Option<String>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// Options of whatever runs a script.
#[derive(Args, Clone)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) workload: WorkloadArgs,
    /// Write the result as JSON; `-` is standard output, and then the report goes to standard error
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Where the files lie that a script writes; default: the current directory
    #[arg(long, value_name = "DIR")]
    pub(super) results: Option<PathBuf>,
    /// The report
    #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = format_parser())]
    pub(super) format: Format,
    /// Only the report, nothing else
    #[arg(long)]
    pub(super) quiet: bool,
    /// Say more of what is done
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) verbose: u8,
}

/// Options of a run that say what is run, where and how; not what becomes of its result.
#[derive(Args, Clone)]
pub(super) struct WorkloadArgs {
    /// How long each run takes: seconds, or `10m`, `1h30m`
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    pub(super) runtime: Option<Duration>,
    /// Gives a variable a value, over every `set` of the script
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(super) set: Vec<(String, String)>,
    /// Where the file sets lie: the same as `--set dir=DIR`
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<String>,
    /// The seed of all random streams; without it a fresh one, which the result records
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// The seed of trees and file sizes
    #[arg(long, default_value_t = 1)]
    pub(super) layout_seed: u64,
    /// Run so long before measuring; `auto`: until the rate is steady, at most as long as the run
    #[arg(long, value_name = "TIME|auto", value_parser = warmup)]
    pub(super) warmup: Option<WarmupLength>,
    /// Hash the first N operations of each thread (flowop, file, offset, size). Equal runs of one thread have equal
    /// digests; of several that share files, if they take them in the same order
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1000")]
    pub(super) digest: Option<u64>,
    /// Write the first N operations of each thread to a file, a line each: process, its instance, thread, its instance,
    /// flowop, file, offset, size
    #[arg(long, value_name = "FILE:N", allow_hyphen_values = true, value_parser = file_and_count)]
    pub(super) trace: Option<(PathBuf, usize)>,
    /// Let the script write below this path too, where it says
    #[arg(long, value_name = "PATH")]
    pub(super) allow_write: Vec<PathBuf>,
    /// The step of the timeline
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(super) interval: Option<Duration>,
    /// What the words of the script mean
    #[arg(long, value_name = "DIALECT", value_parser = dialect_parser())]
    pub(super) dialect: Option<Dialect>,
    /// What makes the calls; default: uring where the kernel allows it, else posix
    #[arg(long, value_name = "ENGINE", value_parser = engine_parser())]
    pub(super) engine: Option<EngineChoice>,
    /// Threads that make files, 1 to 1024; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) populate_threads: Option<u16>,
    /// Bind threads to processors
    #[arg(long)]
    pub(super) pin: bool,
    /// Drop the page cache before each run, and dentries and inodes where that is allowed
    #[arg(long)]
    pub(super) cold: bool,
    /// Do not wait until the disks are idle after the files are created
    #[arg(long, alias = "no-settle")]
    pub(super) no_quiesce: bool,
    /// Make the directory of `--dir` if it is not there
    #[arg(long)]
    pub(super) mkdir: bool,
    /// Go on from the files that are there, in every run: they are not brought to their definitions first
    #[arg(long)]
    pub(super) as_is: bool,
    /// End with status 3 when the making of files stands still for so long; 0 waits for ever. Default: 10m
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) prepare_timeout: Option<Duration>,
    /// Keep the fresh directory
    #[arg(long, conflicts_with = "clean")]
    pub(super) keep: bool,
    /// Remove the file sets from the directory that was named
    #[arg(long)]
    pub(super) clean: bool,
    /// Take over a tree in Filebench's layout that wmlrun did not make
    #[arg(long)]
    pub(super) adopt: bool,
    /// At the first error of an operation stop, or count it and go on
    #[arg(long, value_enum, default_value_t = OnError::Stop, value_name = "ACTION")]
    pub(super) on_error: OnError,
    /// Let the script run shell commands
    #[arg(long)]
    pub(super) allow_system: bool,
    /// Let the script overwrite this block device
    #[arg(long, value_name = "PATH")]
    pub(super) allow_device: Vec<PathBuf>,
    /// Keep values of the environment that the script reads by `$(NAME)` in the result; without it they are masked
    #[arg(long)]
    pub(super) record_env: bool,
    /// Leave the host's name, what is mounted, paths and the command line out of the result and the report
    #[arg(long)]
    pub(super) redact: bool,
    /// Let `fsflush` of the script drop the page cache of the whole machine
    #[arg(long)]
    pub(super) allow_drop_caches: bool,
}

/// What else there is to do.
#[derive(Subcommand)]
pub(super) enum CliCommand {
    /// The interactive shell
    Repl {
        /// A script to load first
        script: Option<String>,
        #[command(flatten)]
        run: Box<RunArgs>,
    },
    /// Show every error and warning of scripts, and touch nothing
    Check {
        /// Files or names of personalities
        #[arg(required = true, value_name = "SCRIPT")]
        scripts: Vec<String>,
        /// Print a stage instead
        #[arg(long, value_enum, value_name = "STAGE")]
        dump: Option<DumpStage>,
        /// What the words mean
        #[arg(long, value_parser = dialect_parser())]
        dialect: Option<Dialect>,
    },
    /// Lay scripts out: to standard output, or in place
    Fmt {
        /// Files or names of personalities
        #[arg(required = true, value_name = "SCRIPT")]
        scripts: Vec<String>,
        /// Write the files anew
        #[arg(long, short = 'w')]
        write: bool,
        /// Only say which files would change; exit 1 if any would
        #[arg(long)]
        check: bool,
    },
    /// Show what a script would run: processes, programs, files, memory
    Plan {
        /// A file or the name of a personality
        script: String,
        /// Print every file's path and size
        #[arg(long)]
        list: bool,
        #[command(flatten)]
        run: Box<RunArgs>,
    },
    /// Run every workload of a Filebench profile, each with its directory of results
    Batch {
        /// The profile; its personalities are sought beside it, then among those that are shipped
        #[arg(value_name = "PROFILE")]
        profile: PathBuf,
        #[command(flatten)]
        run: Box<RunArgs>,
    },
    /// Repeat a workload until its mean is known to the wanted precision
    Repeat(Box<RepeatArgs>),
    /// Compare two ways of running a workload: runs of A and B take turns, and a verdict says which is better
    Ab(Box<AbArgs>),
    /// Compare results that were made separately: of wmlrun, of Filebench, of fio, or columns of numbers
    Compare(Box<CompareArgs>),
    /// Measure how much results differ although nothing is changed, for comparisons of results of different days
    Floor(Box<FloorArgs>),
    /// Run a workload at several values of a variable: a load curve with its peak, its knee and its overall response time
    Sweep(Box<SweepArgs>),
    /// Remove from results folders what their runs and commands printed; the results stay
    Prune {
        /// The folders
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
    },
    /// The overall response time of a load curve: the area below response over rate up to the peak, divided by the peak
    Ort {
        /// A line for each load, in the order of the loads: the rate, and the mean response time, `-` where it is missing
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// How the curve goes on below its first point
        #[arg(long, default_value = ResponseMethod::Sfs3.name(), value_name = "METHOD", value_parser = method_parser())]
        method: ResponseMethod,
        /// The form of the result
        #[arg(long, value_enum, default_value_t = CurveFormat::Text, value_name = "FORMAT")]
        format: CurveFormat,
    },
    /// List what there is of a kind
    List {
        /// What to list
        #[arg(default_value = info::LISTS[0].name, value_parser = list_parser())]
        what: String,
    },
    /// Print a shipped personality
    Show {
        /// Its name
        name: String,
    },
    /// Explain the code of an error or warning
    Explain {
        /// Such as E0202
        code: String,
    },
    /// Remove the file sets that wmlrun made in directories
    Clean {
        /// The directories
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(value_parser = PossibleValuesParser::new(SHELLS.map(|(name, _)| name)))]
        shell: String,
    },
    /// Write the manual pages: one for wmlrun, one for each command
    Man {
        /// Where they go; the directory is made
        dir: PathBuf,
    },
}

/// What an error of an operation does to its run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum OnError {
    /// The first one ends the run
    Stop,
    /// It is counted, and the run goes on
    Count,
}

/// The form of a curve.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum CurveFormat {
    /// For people
    Text,
    /// `method`, `peak`, `ort` and the points
    Json,
}

/// A stage that can be printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum DumpStage {
    /// The tokens of the text
    Tokens,
    /// Its statements
    Ast,
}

/// A format of [`report::TABLE`].
pub(super) type Format = &'static dyn Report;

/// An engine of [`engine::TABLE`].
pub(super) type EngineChoice = &'static dyn Engine;

/// A choice among the rows of a table, each with its name and what it is.
pub(super) fn choice<T: Clone + Send + Sync + 'static>(
    rows: impl IntoIterator<Item = (&'static str, &'static str)>,
    find: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    let values = rows.into_iter().map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).try_map(move |name| find(&name).ok_or("not in the table"))
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    choice(report::TABLE.iter().map(|report| (report.name(), report.about())), report::find)
}

fn engine_parser() -> impl TypedValueParser<Value = EngineChoice> {
    choice(engine::TABLE.iter().map(|(name, about, _)| (*name, *about)), engine::find)
}

fn dialect_parser() -> impl TypedValueParser<Value = Dialect> {
    choice(Dialect::ALL.map(|dialect| (dialect.name(), dialect.about())), Dialect::from_name)
}

fn list_parser() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(info::LISTS.iter().map(|list| list.name))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|e| format!("{e}; give seconds, or a time such as `10m`"))
}

fn warmup(text: &str) -> Result<WarmupLength, String> {
    if text == "auto" { Ok(WarmupLength::UntilSteady) } else { time(text).map(WarmupLength::Fixed) }
}

fn run_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time.is_zero() { Err("a run time of 0; give more time".to_owned()) } else { Ok(time) }
}

/// The shortest step of the timeline.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

fn interval(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time < SHORTEST_INTERVAL { Err("an interval below 10 ms; give more time".to_owned()) } else { Ok(time) }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no assignment; write `--set NAME=VALUE`")?;
    Ok((name.trim_start_matches('$').to_owned(), value.to_owned()))
}

fn file_and_count(text: &str) -> Result<(PathBuf, usize), String> {
    let parts = text.rsplit_once(':').and_then(|(file, n)| Some((file.into(), n.parse().ok()?)));
    parts.ok_or_else(|| "no file and number; write `--trace FILE:N`, such as `--trace ops.txt:1000`".to_owned())
}

/// The shells that completions are made for.
const SHELLS: [(&str, Shell); 3] = [("bash", Shell::Bash), ("zsh", Shell::Zsh), ("fish", Shell::Fish)];

/// The completions for a shell that has some.
pub(super) fn completions(shell: &str) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some((_, shell)) = SHELLS.iter().find(|(name, _)| *name == shell) {
        generate(*shell, &mut Cli::command(), "wmlrun", &mut text);
    }
    text
}

/// Writes `wmlrun.1`, `wmlrun-plan.1` and so on into a directory.
pub(super) fn manual(dir: &std::path::Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    // The page of a command that only helps with the others says nothing.
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), dir)
}

/// Reads the process's command line. Wrong usage is told and ends in 2; help and version end in 0.
pub(super) fn parse() -> Result<Cli, u8> {
    use std::io::{IsTerminal, Write};
    Cli::try_parse().map_err(|e| {
        // The message quotes arguments: should they hold control characters, it is made again of arguments without.
        let words: Vec<String> =
            std::env::args_os().map(|word| printable::line(&word.to_string_lossy()).into_owned()).collect();
        let e = Cli::try_parse_from(words).err().filter(|visible| visible.kind() == e.kind()).unwrap_or(e);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let text = |terminal: bool| match terminal && !plain {
            true => e.render().ansi().to_string(),
            false => e.render().to_string(),
        };
        if e.use_stderr() {
            let _ = std::io::stderr().write_all(text(std::io::stderr().is_terminal()).as_bytes());
            return 2;
        }
        let _ = Stdout.write_all(text(std::io::stdout().is_terminal()).as_bytes());
        0
    })
}
