//! The command line's form of experiments and comparisons.

use super::args::{WorkloadArgs, choice, time};
use crate::analysis::ResponseMethod;
use crate::comparison::{ComparisonFormat, ComparisonMethod, FORMATS, find_format};
use crate::experiment::{HOOKS, Hook, Hooks};
use crate::import::{Metric, STUDY};
use clap::builder::TypedValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments, and the words that give the same arguments to another call of the program.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(pub(super) Vec<String>);

impl FromArgMatches for Words {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // Checked here, so that a wrong option is found before the first run.
        WorkloadArgs::from_arg_matches(matches)?;
        let form = WorkloadArgs::augment_args(Command::new(""));
        let given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let mut words = Vec::new();
        for arg in form.get_arguments().filter(given) {
            let name = arg.get_long().unwrap_or_default();
            if matches!(arg.get_action(), ArgAction::SetTrue) {
                words.push(format!("--{name}"));
                continue;
            }
            let values = matches.get_raw_occurrences(arg.get_id().as_str()).into_iter().flatten().flatten();
            words.extend(values.map(|value| format!("--{name}={}", value.to_string_lossy())));
        }
        Ok(Self(words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Words {
    fn augment_args(command: Command) -> Command {
        WorkloadArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        WorkloadArgs::augment_args_for_update(command)
    }
}

/// The options of hooks, from their table: those of a single arm, or, with `ARMS`, all.
#[derive(Clone, Debug, Default)]
pub(super) struct HookArgs<const ARMS: bool>(pub(super) Hooks);

impl<const ARMS: bool> HookArgs<ARMS> {
    fn table() -> impl Iterator<Item = &'static Hook> {
        HOOKS.iter().filter(|hook| ARMS || hook.arm.is_none())
    }
}

impl<const ARMS: bool> FromArgMatches for HookArgs<ARMS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::table().filter_map(|hook| Some((hook.name.to_owned(), matches.get_one(hook.name).cloned()?)));
        Ok(Self(Hooks(given.collect())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const ARMS: bool> Args for HookArgs<ARMS> {
    fn augment_args(command: Command) -> Command {
        let arg = |hook: &Hook| Arg::new(hook.name).long(hook.name).value_name("COMMAND").help(hook.about);
        Self::table().fold(command, |command, hook| command.arg(arg(hook)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Options of every experiment.
#[derive(Args, Clone)]
pub(super) struct ExperimentArgs {
    #[command(flatten)]
    pub(super) words: Words,
    /// The results folder; default: `wmlrun-results/NAME-TIME`
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(super) results: Option<PathBuf>,
    /// Go on with the experiment in this folder
    #[arg(long, value_name = "DIR")]
    pub(super) resume: Option<PathBuf>,
    /// Go on although the kernel, this program, a script, a mount or the commands are not as before
    #[arg(long, requires = "resume")]
    pub(super) anyway: bool,
    /// What starts a run, such as `mpirun -n 8`; the program and its options follow
    #[arg(long, value_name = "COMMAND", default_value = "")]
    pub(super) launch: String,
    /// End the experiment when a command between runs takes longer
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    pub(super) command_timeout: Duration,
    /// Begin no run that would end later than this; the result is of the runs until then
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) budget: Option<Duration>,
    /// The form of the result
    #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = format_parser())]
    pub(super) format: ResultFormat,
    /// Only the result, nothing else
    #[arg(long)]
    pub(super) quiet: bool,
}

/// A format of [`FORMATS`].
pub(super) type ResultFormat = &'static ComparisonFormat;

fn format_parser() -> impl TypedValueParser<Value = ResultFormat> {
    choice(FORMATS.iter().map(|format| (format.name, format.about)), find_format)
}

/// `wmlrun repeat`.
#[derive(Args)]
pub(super) struct RepeatArgs {
    /// The script, or the name of a personality
    #[arg(value_name = "SCRIPT", required_unless_present = "resume", conflicts_with = "resume")]
    pub(super) script: Option<String>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
    #[command(flatten)]
    pub(super) hooks: HookArgs<false>,
    /// How many runs: `MIN..MAX`, both included, or a number
    #[arg(long, value_name = "RUNS", default_value = "10..30", value_parser = run_range)]
    pub(super) runs: (u64, u64),
    /// End when the 95 % interval of every metric is this narrow, twice in succession: half its width over the mean; default: 5%, or
    /// the number of runs alone if `--runs` is one
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(super) until_ci: Option<f64>,
    /// Metrics that have to be precise: `ops`, `mib`, `latency.mean`, `latency.p99`, or of a flowop, `NAME.latency.p99`
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',', default_value = "ops")]
    pub(super) metrics: Vec<Metric>,
    /// A set of metrics
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "metrics")]
    pub(super) preset: Option<Preset>,
}

impl RepeatArgs {
    /// The metrics, by name or as a set.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        match self.preset {
            Some(Preset::Study) => STUDY.iter().filter_map(|name| name.parse().ok()).collect(),
            None => self.metrics.clone(),
        }
    }

    /// The precision; a fixed number of runs has none of its own.
    pub(super) fn until_ci(&self) -> Option<f64> {
        self.until_ci.or_else(|| (self.runs.0 < self.runs.1).then_some(0.05))
    }
}

/// A set of metrics.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Preset {
    /// The twelve measures of a published study of snapshots, of the personality `oltp_sync`
    Study,
}

/// `wmlrun ab`.
#[derive(Args)]
pub(super) struct AbArgs {
    /// The script, or the name of a personality
    #[arg(value_name = "SCRIPT", required_unless_present = "resume", conflicts_with = "resume")]
    pub(super) script: Option<String>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
    #[command(flatten)]
    pub(super) hooks: HookArgs<true>,
    /// Options of A, as a shell would split them; they go before those of both
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, default_value = "")]
    pub(super) a: String,
    /// Options of B
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, default_value = "")]
    pub(super) b: String,
    /// Take so many blocks of four runs, at least 2; default: as many as four blocks say are needed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub(super) blocks: Option<u64>,
    /// Go on until there is a verdict; it is looked at after 6, 12 and 24 blocks
    #[arg(long, conflicts_with = "blocks")]
    pub(super) until_clear: bool,
    #[command(flatten)]
    pub(super) verdict: VerdictArgs,
}

/// `wmlrun floor`.
#[derive(Args)]
pub(super) struct FloorArgs {
    /// The directory on the file system in question
    #[arg(value_name = "DIR", required_unless_present = "resume", conflicts_with = "resume")]
    pub(super) directory: Option<String>,
    /// The script, or the name of a personality
    #[arg(value_name = "SCRIPT", default_value = "varmail")]
    pub(super) script: String,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
    #[command(flatten)]
    pub(super) hooks: HookArgs<false>,
    /// Take so many blocks of four runs
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub(super) blocks: u64,
    /// The metric: `ops`, `mib`, `latency.mean`, `latency.p99`, or of a flowop, `NAME.latency.p99`
    #[arg(long, value_name = "METRIC", default_value = "ops")]
    pub(super) metric: Metric,
}

/// `wmlrun sweep`.
#[derive(Args)]
pub(super) struct SweepArgs {
    /// The script, or the name of a personality
    #[arg(value_name = "SCRIPT", required_unless_present = "resume", conflicts_with = "resume")]
    pub(super) script: Option<String>,
    /// The variable and its values: `nthreads=1,2,4,8`
    #[arg(long, value_name = "NAME=VALUES", required_unless_present = "resume", value_parser = factor)]
    pub(super) vary: Option<(String, Vec<String>)>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
    #[command(flatten)]
    pub(super) hooks: HookArgs<false>,
    /// Runs of each value
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) repeats: u64,
    /// Take the values in their order, as where the runs change the state of the file system; else each round has an order of its own
    #[arg(long)]
    pub(super) in_order: bool,
    /// How the overall response time is worked out
    #[arg(long, default_value = ResponseMethod::Sfs3.name(), value_name = "METHOD", value_parser = method_parser())]
    pub(super) method: ResponseMethod,
}

/// A method of overall response times.
pub(super) fn method_parser() -> impl TypedValueParser<Value = ResponseMethod> {
    choice(ResponseMethod::ALL.map(|method| (method.name(), method.about())), ResponseMethod::find)
}

/// `NAME=V1,V2…`: at least one value, none twice.
fn factor(text: &str) -> Result<(String, Vec<String>), String> {
    let help = "write `NAME=VALUE,VALUE…`";
    let (name, values) = text.split_once('=').ok_or(help)?;
    let name = name.strip_prefix('$').unwrap_or(name).trim();
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if name.is_empty() || values.iter().any(String::is_empty) {
        return Err(help.to_owned());
    }
    let twice = values.iter().enumerate().find(|(n, value)| values[..*n].contains(value));
    twice.map_or(Ok(()), |(_, value)| Err(format!("`{value}` is there twice")))?;
    Ok((name.to_owned(), values))
}

/// Options of whatever has a verdict.
#[derive(Args, Clone)]
pub(super) struct VerdictArgs {
    /// The metric on which the verdict stands: `ops`, `mib`, `latency.mean`, `latency.p99`, or of a flowop, `NAME.latency.p99`
    #[arg(long, value_name = "METRIC", default_value = "ops")]
    pub(super) metric: Metric,
    /// The change that is too small to matter
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = share)]
    pub(super) tolerance: f64,
    /// Exit with 0 only for this verdict
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub(super) expect: Option<Expected>,
}

/// What a caller insists on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Expected {
    /// B is better
    Better,
}

/// `wmlrun compare`.
#[derive(Args)]
pub(super) struct CompareArgs {
    /// A result, a results folder, a directory of results, or `FILE:N`, column N of a file
    pub(super) a: PathBuf,
    /// What is compared with it
    pub(super) b: PathBuf,
    #[command(flatten)]
    pub(super) verdict: VerdictArgs,
    /// The statistical method
    #[arg(long, value_enum, default_value_t = MethodName::Welch, value_name = "METHOD")]
    pub(super) method: MethodName,
    /// Compare although the script, the run time, the cache state or the machine differ
    #[arg(long)]
    pub(super) anyway: bool,
    /// The form of the result
    #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = format_parser())]
    pub(super) format: ResultFormat,
}

/// A statistical method.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum MethodName {
    /// Welch's test of the logarithms
    Welch,
    /// The same, and the F-test and t-test of a published study, at 99 %, with the shapes of the samples
    Study,
}

impl MethodName {
    /// The method of that name.
    pub(super) fn method(self) -> ComparisonMethod {
        match self {
            Self::Welch => ComparisonMethod::Welch,
            Self::Study => ComparisonMethod::Study,
        }
    }
}

/// The command line of an arm.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true, args_override_self = true)]
pub(super) struct ArmLine {
    /// A script instead of the common one
    pub(super) script: Option<String>,
    #[command(flatten)]
    pub(super) workload: WorkloadArgs,
}

impl ArmLine {
    /// Reads the words of an arm; an error is what is wrong, in a line.
    pub(super) fn read(words: &[String]) -> Result<Self, String> {
        Self::try_parse_from(words).map_err(|e| {
            let text = e.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

/// `5%` or `0.05`: above 0 and below 1.
fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|value| value / 100.0),
        None => number(text),
    };
    value.filter(|value| *value > 0.0 && *value < 1.0).ok_or_else(|| "no share of 1; write `5%` or `0.05`".to_owned())
}

fn run_range(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|n| (1..=100_000).contains(n));
    let range = match text.split_once("..") {
        Some((min, max)) => number(min).zip(number(max)),
        None => number(text).map(|n| (n, n)),
    };
    range.filter(|(min, max)| min <= max).ok_or_else(|| "no number of runs; write `10..30`, or `10`".to_owned())
}
