//! The command line's form. The only file that knows the argument parser.

use super::stdout::Stdout;
use crate::util::printable;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use std::path::PathBuf;

/// Runs file-system workloads that are written in WML, and says how fast they went.
#[derive(Parser, Debug)]
#[command(
    name = "wmlrun",
    version,
    about,
    long_about = None,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "SCRIPT is a file, `-` for standard input, or the name of a shipped personality (`wmlrun list`).\n\
                  Exit status: 0 done, 1 the run failed, got stuck or did nothing, 2 wrong usage or script, 3 the environment refused, 130/143 interrupted."
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
#[derive(Args, Debug, Clone)]
pub(super) struct RunArgs {
    /// How long each run takes: seconds, or `10m`, `1h30m`
    #[arg(long, value_name = "TIME")]
    pub(super) runtime: Option<String>,
    /// Gives a variable a value, over every `set` of the script
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// Where the file sets lie: the same as `--set dir=DIR`
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<String>,
    /// The seed of all random streams; without it a fresh one, which the result records
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// The seed of trees and file sizes
    #[arg(long, default_value_t = 1)]
    pub(super) layout_seed: u64,
    /// Run so long before measuring
    #[arg(long, value_name = "TIME")]
    pub(super) warmup: Option<String>,
    /// Hash the first N operations of each thread (flowop, file, offset, size). Equal runs of one thread have equal
    /// digests; of several that share files, if they take them in the same order
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1000")]
    pub(super) digest: Option<u64>,
    /// Write the first N operations of each thread to a file, a line each: process, its instance, thread, its instance,
    /// flowop, file, offset, size
    #[arg(long, value_name = "FILE:N", allow_hyphen_values = true)]
    pub(super) trace: Option<String>,
    /// Write the result as JSON; `-` is standard output, and then the report goes to standard error
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Where the files lie that a script writes; default: the current directory
    #[arg(long, value_name = "DIR")]
    pub(super) results: Option<PathBuf>,
    /// Let the script write below this path too, where it says
    #[arg(long, value_name = "PATH")]
    pub(super) allow_write: Vec<PathBuf>,
    /// The report: text, filebench, filebench-1.4, csv, json or none
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(super) format: String,
    /// The step of the timeline
    #[arg(long, value_name = "TIME")]
    pub(super) interval: Option<String>,
    /// What the words of the script mean: sun (Filebench 1.1 to 1.4) or fsl (1.5)
    #[arg(long, value_name = "DIALECT")]
    pub(super) dialect: Option<String>,
    /// What makes the calls: uring or posix, which differ in asynchronous I/O, or null for no I/O at all; default: uring where the
    /// kernel allows it
    #[arg(long, value_name = "ENGINE")]
    pub(super) engine: Option<String>,
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
    #[arg(long, value_name = "TIME")]
    pub(super) prepare_timeout: Option<String>,
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
    #[arg(long, default_value = "stop", value_name = "stop|count")]
    pub(super) on_error: String,
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
    /// Only the report, nothing else
    #[arg(long)]
    pub(super) quiet: bool,
    /// Say more of what is done
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) verbose: u8,
}

/// What else there is to do.
#[derive(Subcommand, Debug)]
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
        /// Print a stage instead: tokens, ast
        #[arg(long, value_name = "STAGE")]
        dump: Option<String>,
        /// What the words mean: sun or fsl
        #[arg(long)]
        dialect: Option<String>,
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
    /// List personalities, flowops, distributions, commands, attributes, engines, formats or codes
    List {
        /// What to list
        #[arg(default_value = "personalities")]
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
        /// bash, zsh or fish
        shell: String,
    },
    /// Write the manual pages: one for wmlrun, one for each command
    Man {
        /// Where they go; the directory is made
        dir: PathBuf,
    },
}

/// The shells that completions are made for.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The completions for a shell; `None` if it is none of [`SHELLS`].
pub(super) fn completions(shell: &str) -> Option<Vec<u8>> {
    use clap_complete::aot::{Shell, generate};
    let shell = match shell {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => return None,
    };
    let mut text = Vec::new();
    generate(shell, &mut Cli::command(), "wmlrun", &mut text);
    Some(text)
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
