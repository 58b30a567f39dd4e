//! Definition of the command line: commands, options and their help texts.
//!
//! Only this file, `experiment_args`, `compare_args`, `history_args`, `recording_args`, `run_options`, `choices`, `completion`, `examples`, `explain`,
//! `man`, `program_help` and `usage` use the argument parser.

use super::called_as;
use super::choices::{DumpStage, ExportFormat, Format, choice, dialect_parser, export_parser, format_parser};
use super::compare_args::CompareArgs;
use super::completion::{self, SHELLS};
use super::console::Verbosity;
use super::editor::{EDITORS, Editor, find_editor};
use super::examples::with_examples;
use super::experiment_args::{
    AbArgs, AgeArgs, FileArgs, LimitArgs, RepeatArgs, SweepArgs, resumable, two_directories, with_lists, with_unit,
};
use super::history_args::HistoryCommand;
use super::option_values::{LiveOutput, live_output};
use super::program_help::{program_help, with_short_help};
use super::recording_args::{FidelityArgs, RecordArgs, ReplayArgs, TraceCommand};
use super::run_options::{ALL, OUTPUT, PLAN, RunSettings, WorkloadWords};
use super::screen::stdout_width;
use super::shell_text::set_option;
use super::usage::{explained, warn_of_old_options};
use crate::diag::Failure;
use crate::hosts::HostList;
use crate::import::Metric;
use crate::measure::assignment;
use crate::prompt::ShellArms;
use crate::spec::Dialect;
use crate::util::printable;
use crate::version::VERSION;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs file-system workloads written in WML and reports their throughput and latency.
#[derive(Parser)]
#[command(
    name = "wmlrun",
    // Also for a program of another name, such as `wmlrun-mpi`.
    bin_name = "wmlrun",
    version = VERSION,
    about,
    long_about = None,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    subcommand_negates_reqs = true,
    after_help = "SCRIPT is a file, `-` for standard input, or the name of a shipped personality (`wmlrun list`).\n\n\
                  Exit status:\n  \
                    0    success; of a comparison: B is not worse\n  \
                    1    the run failed, got stuck or completed no operation, or output could not be written\n  \
                    2    wrong usage, or an error in the script\n  \
                    3    the environment does not allow the run (directory, permissions, space)\n  \
                    10   of a comparison: B is worse; a limit (`--fail-if`) is not met\n  \
                    11   of a comparison or a limit: unclear; of other experiments: not converged, drifting, or not\n       \
                         complete\n  \
                    12   of a comparison: invalid\n  \
                    129  ended by SIGHUP\n  \
                    130  interrupted by SIGINT\n  \
                    143  terminated by SIGTERM"
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
    /// The script to run
    #[arg(value_name = "SCRIPT", add = completion::scripts())]
    pub(super) script: Option<String>,
    /// The script to run (Filebench's spelling of SCRIPT)
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "script", add = completion::scripts())]
    pub(super) file: Option<String>,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// Options of the commands that run a script in this process.
#[derive(Args, Clone)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) settings: RunSettings<ALL>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// While a run is in progress, write a line of JSON for each interval of the time series (FORMAT: `jsonl`), to FILE or
    /// else to standard output
    #[arg(long, value_name = "FORMAT[:FILE]", value_parser = live_output, add = completion::live_formats(),
        help_heading = OUTPUT)]
    pub(super) live: Option<LiveOutput>,
    /// Run on these hosts at the same time, with so many ranks on each (default 1), by `mpirun` or Slurm's `srun`: one
    /// result. Each host needs the package wmlrun-mpi
    #[arg(long, value_name = "HOST[:RANKS],…", value_parser = HostList::parse)]
    pub(super) hosts: Option<HostList>,
    /// Said by `--hosts` to each rank
    #[arg(long, hide = true)]
    pub(super) as_rank: bool,
    /// Said by an experiment to each of its runs, whose output it keeps: the descriptor of the directory of `--json` and
    /// `--results`, unless another program starts the runs
    #[arg(long, value_name = "FD", num_args = 0..=1, require_equals = true, default_missing_value = "-1", hide = true)]
    pub(super) of_experiment: Option<i32>,
}

/// How results are printed.
#[derive(Args, Clone)]
pub(super) struct OutputArgs {
    /// Format of the report
    #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = format_parser(), help_heading = OUTPUT)]
    pub(super) format: Format,
    /// Print only the report and errors: no progress, no notes
    #[arg(long, help_heading = OUTPUT)]
    pub(super) quiet: bool,
    /// Print the whole report, and a line for each step of the preparation: scan, remove, compare, create, sync, evict
    /// and read file sets
    #[arg(short, long, overrides_with = "verbose", help_heading = OUTPUT)]
    pub(super) verbose: bool,
}

impl OutputArgs {
    /// Returns the amount of output that `--quiet` and `--verbose` ask for.
    pub(super) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

/// The commands other than running a script.
#[derive(Subcommand)]
pub(super) enum CliCommand {
    /// Run a script; the same as `wmlrun SCRIPT`
    Run {
        /// The script to run
        #[arg(add = completion::scripts())]
        script: String,
        #[command(flatten)]
        run: Box<RunArgs>,
    },
    /// Start the interactive shell
    #[command(mut_arg("hosts", |hosts| hosts.hide(true)))]
    Repl {
        /// A script to load first
        #[arg(add = completion::scripts())]
        script: Option<String>,
        #[command(flatten)]
        run: Box<RunArgs>,
    },
    /// Write a script of your own: five questions, asked on a terminal or answered by options
    Init {
        /// The file to write, which must not exist
        #[arg(default_value = "workload.wml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// How many files the program uses, and how large each is [default: 1000x64k]
        #[arg(long, value_name = "COUNTxSIZE")]
        files: Option<String>,
        /// How many threads there are, or how many requests per second, such as `200/s` [default: 4]
        #[arg(long, value_name = "THREADS|RATE/s")]
        load: Option<String>,
        /// What percentage of the requests only read [default: 70]
        #[arg(long, value_name = "PERCENT")]
        reads: Option<String>,
        /// When written data is synced: never, at each write, or at the end of a file [default: never]
        #[arg(long, value_name = "WHEN", value_parser = ["never", "write", "end"])]
        sync: Option<String>,
        /// How much of a file a request reads or writes: a size such as `8k`, or the whole [default: whole]
        #[arg(long, value_name = "SIZE|whole")]
        io: Option<String>,
    },
    /// Report the errors and warnings of scripts without running them
    Check {
        /// Files or names of personalities
        #[arg(required = true, value_name = "SCRIPT", add = completion::scripts())]
        scripts: Vec<String>,
        /// Print the output of a parsing stage instead
        #[arg(long, value_enum, value_name = "STAGE")]
        dump: Option<DumpStage>,
        /// Also print the rows of docs/compatibility.md that may concern the scripts or what they load: where Filebench did
        /// something else
        #[arg(long, conflicts_with = "dump")]
        differences: bool,
        /// WML dialect of the scripts [default: detected from each script]
        #[arg(long, value_parser = dialect_parser())]
        dialect: Option<Dialect>,
        /// Check with this value of a variable; overrides every `set` of it in the scripts. May be repeated
        #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment, add = completion::variables())]
        set: Vec<(String, String)>,
    },
    /// Format scripts, to standard output or in place
    Fmt {
        /// Files or names of personalities
        #[arg(required = true, value_name = "SCRIPT", add = completion::scripts())]
        scripts: Vec<String>,
        /// Rewrite the files in place
        #[arg(long, short = 'w')]
        write: bool,
        /// List the files that are not formatted, without writing; exit with 1 if there are any
        #[arg(long)]
        check: bool,
    },
    /// Show what a script would run, without running it: files, threads, rates, mixes, and what ends it
    Plan {
        /// File or name of a personality
        #[arg(add = completion::scripts())]
        script: String,
        /// Print every file's path and size
        #[arg(long)]
        list: bool,
        #[command(flatten)]
        settings: Box<RunSettings<PLAN>>,
        /// Print only the plan and errors: no notes
        #[arg(long)]
        quiet: bool,
        /// Print the compiled program instead: each step of each thread, with all its parameters
        #[arg(short, long, conflicts_with = "list")]
        verbose: bool,
    },
    /// List the shipped personalities by groups, those of a group or with a word; flowops, attributes, codes and so on
    List {
        /// A group, a list (`flowops`, `metrics`, …), or a word in the names and descriptions of personalities and experiments
        /// [default: the groups and lists]
        #[arg(value_name = "GROUP|LIST|WORD", add = completion::lists())]
        what: Option<String>,
    },
    /// Print the script of a shipped personality, or a shipped experiment file
    Show {
        /// Name of the personality or experiment
        #[arg(add = completion::shipped())]
        name: String,
        /// Print only how far the personality is from the program that it was learned from
        #[arg(long)]
        fidelity: bool,
    },
    /// Repeat a workload until its mean is known with the requested precision
    #[command(override_usage = "wmlrun repeat [OPTIONS] <SCRIPT>\n       wmlrun repeat [OPTIONS] --resume <DIR>")]
    Repeat(Box<RepeatArgs>),
    /// Compare two configurations of a workload, A and B: alternating runs and a verdict
    #[command(override_usage = "wmlrun ab [OPTIONS] <SCRIPT>\n       wmlrun ab [OPTIONS] --resume <DIR>")]
    Ab(Box<AbArgs>),
    /// Run a workload at several values of a variable and report the load curve: peak, knee, overall response time
    #[command(
        override_usage = "wmlrun sweep [OPTIONS] --vary <NAME=VALUES> <SCRIPT>\n       wmlrun sweep [OPTIONS] --resume <DIR>"
    )]
    Sweep(Box<SweepArgs>),
    /// Make the runs of an experiment file: factors with their levels, repeated, with commands around them
    #[command(override_usage = "wmlrun experiment [OPTIONS] <FILE>\n       wmlrun experiment [OPTIONS] --resume <DIR>")]
    Experiment(Box<FileArgs>),
    /// Compare existing results of wmlrun, Filebench or fio, or columns of numbers: runs, tests or load curves
    Compare(Box<CompareArgs>),
    /// Write results as one HTML page, or in another format; the page has pictures and tables, and needs no network
    Report {
        /// Results: files of `--json`, results folders of experiments (`repeat`, `ab`, `sweep`, `experiment`), or directories
        /// of result files; each becomes a section of the page. `last`: the result of the last run, as text
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Write to FILE; of existing files it replaces only such a page [default: standard output]
        #[arg(long, short = 'o', value_name = "FILE")]
        output: Option<PathBuf>,
        /// Format: a page, or a format of the reports of runs; for experiments, a format that their commands have as well
        /// [default: html; on a terminal, and of `last` alone, text]
        #[arg(long, value_name = "FORMAT", value_parser = export_parser())]
        format: Option<ExportFormat>,
        /// Print the whole report as text
        #[arg(long, short, conflicts_with = "pictures")]
        verbose: bool,
        /// The figures of experiments, instead of those that they were started with, separated by commas; `wmlrun list
        /// metrics` lists them
        #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',', add = completion::metrics())]
        metrics: Vec<Metric>,
        /// Set published figures beside those of an experiment: `zfs_ufs`, `postmark`, or a file of headings and lines with
        /// commas between the columns
        #[arg(long, value_name = "NAME")]
        beside: Option<String>,
        /// The title of the page [default: the name of the script or experiment, or the number of results]
        #[arg(long, value_name = "TEXT")]
        title: Option<String>,
        /// Write each picture of the page as an SVG file to the directory DIR, which is created; the page itself is then
        /// written only with `-o`
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "format")]
        pictures: Option<PathBuf>,
        /// Replace the files of `-o` and `--pictures` whatever they contain
        #[arg(long)]
        force: bool,
    },
    /// Keep results by nights; say which test is worse, and since when
    History {
        #[command(subcommand)]
        what: HistoryCommand,
    },
    /// Record what a program does with its files: each call, in a trace
    #[command(
        override_usage = "wmlrun record [OPTIONS] -- <COMMAND>...\n       wmlrun record [OPTIONS] -p <PID>",
        after_help = "The exit status is that of the command."
    )]
    Record(RecordArgs),
    /// Show a trace; make one of the output of strace
    Trace {
        #[command(subcommand)]
        what: TraceCommand,
    },
    /// Write a script that does what a recorded program did
    #[command(after_help = "`wmlrun fidelity` says how far the script is from the program.")]
    Learn {
        /// The trace of `wmlrun record` or `wmlrun trace import`; several, of runs of one program, tell how they differ
        #[arg(value_name = "TRACE", required = true, value_hint = ValueHint::FilePath)]
        traces: Vec<PathBuf>,
        /// Learn from a trace that lacks calls or its end
        #[arg(long)]
        incomplete: bool,
    },
    /// Run a script and its program in turn, and say how far apart they are
    #[command(
        override_usage = "wmlrun fidelity <SCRIPT> --dir <DIR> [OPTIONS] -- <COMMAND>...",
        after_help = "Pairs are run until each row is inside or outside of its limit. Exit status: 0 if all rows are inside, 10 if \
            one is outside, 11 if one is unclear."
    )]
    Fidelity(FidelityArgs),
    /// Make the calls of a trace again, and say what came out differently
    #[command(
        after_help = "The files that the trace begins with are made in DIR/wmlrun-replay, and stay there until the next \
            replay. Exit status: 0 if every call and the names at the end are as recorded, else 1."
    )]
    Replay(Box<ReplayArgs>),
    /// Age a file system: make, change and remove files in DIR/aged until it is as full as requested, and report how
    /// fragmented it is
    #[command(after_help = "The same command continues an interrupted aging, and only reports if it is complete.")]
    Age(AgeArgs),
    /// Remove the file sets that wmlrun created in directories; or the logs of results folders
    Clean {
        /// The directories
        #[arg(required = true, value_hint = ValueHint::DirPath)]
        dirs: Vec<PathBuf>,
        /// Remove the logs of runs and commands from results folders instead; keep the results
        #[arg(long)]
        logs: bool,
    },
    /// Run every workload of a Filebench profile: each has its own results directory
    Batch {
        /// The profile; its personalities are looked up in its directory, then among the shipped ones
        #[arg(value_name = "PROFILE")]
        profile: PathBuf,
        /// Run only these workloads of the profile, separated by commas
        #[arg(long, value_name = "CONFIG", value_delimiter = ',')]
        only: Vec<String>,
        #[command(flatten)]
        settings: Box<RunSettings<ALL>>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Say whether a place is fit to measure: its file system and devices, memory, processors, other load. Only reads
    #[command(
        override_usage = "wmlrun doctor <DIR>\n       wmlrun doctor --hosts <HOST,…> [DIR]",
        after_help = "The exit status is 0 if it is fit, and 11 if not."
    )]
    Doctor {
        /// A directory on the file system
        #[arg(value_hint = ValueHint::DirPath, required_unless_present = "hosts")]
        dir: Option<PathBuf>,
        /// Say what these hosts lack for a run together: launcher, login, build, DIR, clock
        #[arg(long, value_name = "HOST,…", value_parser = HostList::parse)]
        hosts: Option<HostList>,
    },
    /// Explain a word: a row or column of a report, a state, an error or warning code, an option, a word of the language
    Explain {
        /// The word, such as `lateness`, `detectable loss`, `E0202` or `--runtime`
        #[arg(required = true, value_name = "WORD", allow_hyphen_values = true, add = completion::words())]
        words: Vec<String>,
    },
    /// Set up shells, manual pages and editors
    Setup {
        #[command(subcommand)]
        what: SetUp,
    },
}

/// What `wmlrun setup` sets up.
#[derive(Subcommand)]
pub(super) enum SetUp {
    /// Print the completion script for a shell
    Completions {
        /// The shell
        #[arg(value_parser = PossibleValuesParser::new(SHELLS.map(|shell| shell.name())))]
        shell: String,
    },
    /// Write the manual pages: one for wmlrun and one for each command
    Man {
        /// Directory to write to; created if it does not exist
        dir: PathBuf,
    },
    /// Print a file that teaches an editor the language: syntax colours, or comments and formatting
    Editor {
        /// The editor
        #[arg(value_name = "EDITOR", value_parser = choice(EDITORS.iter().map(|e| (e.name, e.about)), find_editor))]
        editor: &'static Editor,
    },
    /// Serve an editor on standard input and output: diagnostics, hover, completion, definitions, formatting
    Lsp {
        /// Use standard input and output, which the server always does; some editors give this option
        #[arg(long)]
        stdio: bool,
    },
}

/// The commands of the help, by what they are for.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "repl", "init", "check", "fmt", "plan", "list", "show"]),
    ("Answer", &["repeat", "ab", "sweep", "experiment", "compare"]),
    ("Results", &["report", "history"]),
    ("Programs", &["record", "trace", "learn", "fidelity", "replay"]),
    ("File sets", &["age", "clean"]),
    ("Filebench", &["batch"]),
    ("wmlrun", &["doctor", "explain", "setup"]),
];

/// Words of commands that are not listed any more, and what they stand for.
pub(super) const OLD_WORDS: &[(&str, &str)] = &[
    ("floor", "repeat --floor"),
    ("prune", "clean --logs"),
    ("ort", "compare --curve"),
    ("wins", "compare --tests"),
    ("completions", "setup completions"),
    ("man", "setup man"),
    ("editor", "setup editor"),
    ("lsp", "setup lsp"),
];

/// Returns the definition of the command line with its examples.
pub(super) fn full_command() -> clap::Command {
    with_examples(Cli::command())
}

/// A command line in the words of today. The directory of `floor DIR [SCRIPT]` is the value of an option now.
fn in_new_words(words: &[OsString]) -> Vec<OsString> {
    let is_it = |(old, _): &&(&str, &str)| words.get(1).is_some_and(|word| word == old);
    let Some((old, new)) = OLD_WORDS.iter().find(is_it) else { return words.to_vec() };
    let mut rest = words[2..].to_vec();
    if let Some(at) = first_argument(&rest).filter(|_| *old == "floor") {
        rest.insert(at, "--dir".into());
    }
    words[..1].iter().cloned().chain(new.split(' ').map(OsString::from)).chain(rest).collect()
}

/// The place of the first word of `repeat` that is neither an option nor the value of one.
fn first_argument(words: &[OsString]) -> Option<usize> {
    let repeat = RepeatArgs::augment_args(clap::Command::new("repeat"));
    let takes_next = |name: &str| {
        let has_name = |arg: &clap::Arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
        };
        let takes = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
        repeat.get_arguments().any(|arg| has_name(arg) && takes(arg))
    };
    let mut at = 0;
    while let Some(word) = words.get(at).map(|word| word.to_string_lossy()) {
        let Some(option) = word.strip_prefix('-') else { return Some(at) };
        at += 1 + usize::from(option.strip_prefix('-').is_some_and(takes_next));
    }
    None
}

/// Parses a command line. With `--resume`, options that would change the experiment are errors.
pub(super) fn read(words: &[OsString]) -> Result<Cli, clap::Error> {
    let words = &in_new_words(words);
    let command = || {
        // The library takes 100 columns if a terminal has no height; all other output then takes 79.
        let all = stdout_width().map_or_else(full_command, |columns| full_command().term_width(columns.min(100)));
        let resumes = |command: &clap::Command| command.get_arguments().any(|arg| arg.get_id() == "resume");
        all.mut_subcommands(|command| if resumes(&command) { resumable(command) } else { command })
            .mut_subcommand("repeat", with_lists)
            .mut_subcommand("experiment", with_unit)
            .mut_subcommands(with_short_help)
    };
    let mut matches = command().try_get_matches_from(words).map_err(|e| {
        if let Some(help) = program_help(&e, &command) {
            return help;
        }
        let texts: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
        explained(e, &texts, &command(), &|before| {
            let line = Cli::try_parse_from(std::iter::once("wmlrun").chain(before.iter().copied())).ok()?;
            line.script.or(line.file)
        })
    })?;
    if let Some(message) = two_directories(&matches) {
        return Err(command().error(ErrorKind::ArgumentConflict, message));
    }
    let is_default = matches.value_source("format") == Some(ValueSource::DefaultValue);
    let mut cli = Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command()))?;
    called_as::format().filter(|_| is_default).into_iter().for_each(|format| cli.run.output.format = format);
    Ok(cli)
}

/// Parses the process's command line. An error may also be a request for help or the version.
pub(super) fn parse() -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    warn_of_old_options(&words);
    read(&words).map_err(|e| {
        // The message quotes arguments. If they contain control characters, parse again with escaped arguments, so that
        // none reaches the terminal.
        let words: Vec<OsString> =
            words.iter().map(|word| printable::line(&word.to_string_lossy()).into_owned().into()).collect();
        read(&words).err().filter(|visible| visible.kind() == e.kind()).unwrap_or(e)
    })
}

/// The options for runs among the words that the program was started with.
fn own_words() -> Result<WorkloadWords, Failure> {
    let matches = full_command().try_get_matches_from(std::env::args_os());
    let words = matches.and_then(|all| WorkloadWords::from_arg_matches(all.subcommand().map_or(&all, |(_, own)| own)));
    words.map_err(|e| Failure::wrong(e.to_string(), ""))
}

/// The blocks of a comparison in the shell, whose user waits for it.
const SHELL_BLOCKS: u64 = 4;

/// The arguments of the comparison that the shell makes, with the options of the shell for its runs.
pub(super) fn comparison_of_shell(arms: &ShellArms, quiet: bool) -> Result<AbArgs, Failure> {
    let assigned = |(name, value): &(String, String)| format!("{name}={value}");
    let of_arm = |option: &str, sets: &[(String, String)]| {
        let sets: Vec<String> = sets.iter().map(|set| set_option(&assigned(set))).collect();
        format!("{option}={}", sets.join(" "))
    };
    let mut words = vec!["wmlrun".to_owned(), "ab".to_owned()];
    words.extend([of_arm("--a", &arms.a), of_arm("--b", &arms.b), format!("--blocks={SHELL_BLOCKS}")]);
    // The shell has evaluated them, and may have changed their variables.
    let is_set = |word: &String| ["--set=", "--dir="].iter().any(|option| word.starts_with(option));
    words.extend(own_words()?.0.into_iter().filter(|word| !is_set(word)));
    words.extend(arms.common.iter().map(|set| format!("--set={}", assigned(set))));
    words.extend(arms.runtime.map(|length| format!("--runtime={}", length.as_secs_f64())));
    words.extend(quiet.then(|| "--quiet".to_owned()));
    words.extend(["--".to_owned(), arms.script.clone()]);
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    match read(&words).map(|cli| cli.command) {
        Ok(Some(CliCommand::Ab(args))) => Ok(*args),
        Ok(_) => Err(Failure::wrong("no comparison", "")),
        Err(e) => Err(Failure::wrong(e.to_string(), "")),
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, read};
    use crate::prompt::{COMMANDS, OUTSIDE};
    use crate::spec::words::STATEMENT_WORDS;
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    /// The shell says of each command that it lacks how to leave it.
    #[test]
    fn the_shell_knows_which_commands_it_lacks() {
        let own = COMMANDS.iter().map(|c| c.spec.name).chain(STATEMENT_WORDS.iter().map(|w| w.name));
        let own: BTreeSet<&str> = own.filter_map(|name| name.split(' ').next()).collect();
        let all = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let lacking: BTreeSet<&str> = all.filter(|name| !own.contains(name)).collect();
        assert_eq!(OUTSIDE.iter().copied().collect::<BTreeSet<_>>(), lacking);
    }

    /// What is said about a command line. `None` if it is right.
    fn refused(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = ["wmlrun"].iter().chain(words).map(OsString::from).collect();
        read(&words).err().map(|e| e.to_string())
    }

    #[test]
    fn two_different_directories_are_refused() {
        for command in [&["x.wml"][..], &["plan", "x.wml"], &["repeat", "x.wml"]] {
            let all = |options: &[&'static str]| refused(&[command, options].concat());
            let said = all(&["--dir", "a", "--set", "dir=b"]).unwrap_or_default();
            assert!(said.contains("`--dir a` and `--set dir=b` set the same variable"), "{said}");
            assert_eq!(all(&["--set", "dir=a", "--dir", "a"]), None);
            assert_eq!(all(&["--set", "dir=a", "--set", "n=1"]), None);
        }
    }

    #[test]
    fn a_script_whose_name_begins_like_an_option_is_named_in_full() {
        for name in ["-x.wml", "-vx.wml"] {
            let said = refused(&[name]).unwrap_or_default();
            assert!(said.contains(&format!("'{name}'")) && said.contains(&format!("`./{name}`")), "{said}");
            assert!(!said.contains("-- -"), "{said}");
        }
        assert_eq!(refused(&["--", "-x.wml"]), None);
    }

    #[test]
    fn a_word_after_the_script_is_not_called_a_command() {
        for (words, says) in [
            (&["a.f", "b.f"][..], "`b.f` follows the script `a.f`"),
            (&["--runtime", "5", "a.f", "b.f"], "`b.f` follows the script `a.f`"),
            (&["varmail", "check"], "`wmlrun check varmail`"),
            (&["experimnt", "x.toml"], "did you mean `experiment`?"),
        ] {
            let said = refused(words).unwrap_or_default();
            assert!(said.contains(says) && !said.contains("subcommand"), "{words:?}: {said}");
        }
    }
}
