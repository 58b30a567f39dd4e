//! Command-line options of experiments (`repeat`, `ab`, `sweep`, `experiment`) and of `age`.

use super::choices::choice;
use super::completion;
use super::option_values::{LiveOutput, live_output};
use super::run_options::{EXPERIMENT, OUTPUT, RUN, RunSettings, WithResume, WorkloadWords};
use super::usage::{explained, suggestion};
use crate::analysis::ResponseMethod;
use crate::comparison::{ComparisonFormat, DEFAULT_TOLERANCE, FORMATS, find_format};
use crate::experiment::{HOOKS, Hook, Hooks, MAX_RETRIES, precision, run_range, share};
use crate::fileset::aging::{DEFAULT_ROUNDS, Fullness, MAX_ROUNDS};
use crate::import::{Metric, MetricLimit, STUDY};
use crate::measure::time;
use clap::builder::TypedValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, ValueEnum, ValueHint};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

/// The options that set hooks, generated from [`HOOKS`]. With `ARMS`, includes the hooks of single arms.
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
        let arg = |hook: &Hook| {
            Arg::new(hook.name).long(hook.name).value_name("COMMAND").help(hook.about).help_heading(EXPERIMENT)
        };
        Self::table().fold(command, |command, hook| command.arg(arg(hook)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The limits of a run or an experiment.
#[derive(Args, Clone, Default)]
pub(super) struct LimitArgs {
    /// End with status 10 if a metric is on this side of a limit, such as `'view.latency.p99 > 20ms'`, and with 11 if the
    /// interval includes the limit or the percentile has too few operations. May be repeated
    #[arg(long, value_name = "LIMIT", value_parser = required, add = completion::metrics(), help_heading = OUTPUT)]
    pub(super) fail_if: Vec<MetricLimit>,
}

/// Reads what must not be, and returns what is required.
fn required(text: &str) -> Result<MetricLimit, String> {
    text.parse().map(MetricLimit::negated)
}

/// Options that all experiments share.
#[derive(Args, Clone)]
pub(super) struct ExperimentArgs {
    /// Results folder, new or empty [default: wmlrun-results/NAME-TIME]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "resume",
        help_heading = EXPERIMENT)]
    pub(super) results: Option<PathBuf>,
    /// Continue the interrupted experiment in this results folder, with the options that it was started with
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = EXPERIMENT)]
    pub(super) resume: Option<PathBuf>,
    /// Continue even if the kernel, this program, a script, a mount, or a `--before` or `--after` command has changed
    #[arg(add = WithResume, long, requires = "resume", help_heading = EXPERIMENT)]
    pub(super) anyway: bool,
    /// Start each run with this command, such as `taskset -c 0`; wmlrun's own command line is appended
    #[arg(long, value_name = "COMMAND", default_value = "", hide_default_value = true, help_heading = EXPERIMENT)]
    pub(super) launch: String,
    /// End the experiment if a command before or after a run takes longer than TIME [default: 10m; with `--resume`: as
    /// before]
    #[arg(add = WithResume, long, value_name = "TIME", value_parser = time, help_heading = EXPERIMENT)]
    pub(super) command_timeout: Option<Duration>,
    /// Start no run that would end after TIME, such as `10m`, beyond the fewest that an answer takes [default: no limit; with
    /// `--resume`: what is left of the budget]
    #[arg(add = WithResume, long, value_name = "TIME", value_parser = time, help_heading = EXPERIMENT)]
    pub(super) budget: Option<Duration>,
    /// Make a run again, at most N times, if other programs used the processors or the devices during it. The result of the
    /// disturbed attempt is kept in `dropped` of the results folder [default: 0; with `--resume`: as before]
    #[arg(add = WithResume, long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MAX_RETRIES),
        help_heading = EXPERIMENT)]
    pub(super) retry_disturbed: Option<u64>,
    /// Append a row for each run to FILE, a table in CSV that is created if it does not exist
    #[arg(add = WithResume, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) append: Option<PathBuf>,
    /// Write a line for each run when it has ended, to FILE or else to standard output; then the result
    /// goes to standard error
    #[arg(add = WithResume, long, value_name = "FORMAT[:FILE]", value_parser = live_output,
        add = completion::live_formats(), help_heading = OUTPUT)]
    pub(super) live: Option<LiveOutput>,
    /// Format of the result
    #[arg(add = WithResume, long, default_value = "text", value_name = "FORMAT", value_parser = format_parser(),
        help_heading = OUTPUT)]
    pub(super) format: ResultFormat,
    /// Print only the result and errors: no progress, no notes
    #[arg(add = WithResume, long, help_heading = OUTPUT)]
    pub(super) quiet: bool,
    /// The number of runs of each arm of a resumed experiment, if it changes.
    #[arg(skip)]
    pub(super) extended: Option<(u64, u64)>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) words: WorkloadWords,
}

/// Makes the other options of an experiment's command conflict with `--resume`, which would ignore them.
pub(super) fn resumable(command: Command) -> Command {
    let stays = |arg: &Arg| arg.get_id() == "resume" || arg.get::<WithResume>().is_some();
    command.mut_args(|arg| if stays(&arg) { arg } else { arg.conflicts_with("resume") })
}

/// Makes all other options conflict with `--list` and `--forget` of noise floors, which measure nothing.
pub(super) fn with_lists(command: Command) -> Command {
    let all = command.get_arguments().map(Arg::get_id).filter(|id| *id != "floor").cloned().collect::<Vec<_>>();
    ["list", "forget"].into_iter().fold(command, |command, list| {
        let others: Vec<_> = all.iter().filter(|id| *id != list).cloned().collect();
        command.mut_arg(list, |arg| arg.conflicts_with_all(others))
    })
}

/// Makes all other options but the permission conflict with `--print-unit`, which makes no run.
pub(super) fn with_unit(command: Command) -> Command {
    let is_other = |id: &&clap::Id| !["print_unit", "allow-system", "help"].contains(&id.as_str());
    let others: Vec<_> = command.get_arguments().map(Arg::get_id).filter(is_other).cloned().collect();
    command.mut_arg("print_unit", |arg| arg.conflicts_with_all(others))
}

/// A format of [`FORMATS`].
pub(super) type ResultFormat = &'static ComparisonFormat;

pub(super) fn format_parser() -> impl TypedValueParser<Value = ResultFormat> {
    choice(FORMATS.iter().map(|format| (format.name, format.about)), find_format)
}

/// Arguments of `wmlrun age`.
#[derive(Args)]
pub(super) struct AgeArgs {
    /// A directory on the file system; the files are created in DIR/aged
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) dir: PathBuf,
    /// Fullness to reach: a percentage of the capacity of the file system, such as `47%`, or a size, such as `20g`
    #[arg(long, value_name = "FULLNESS", value_parser = Fullness::parse, allow_hyphen_values = true)]
    pub(super) to: Fullness,
    /// Number of rounds, 1 to 200: in each, source trees are checked out, all are updated, and one is removed
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ROUNDS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROUNDS)))]
    pub(super) rounds: u32,
    /// Seed of names, sizes, contents and sequence
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Write the result as JSON to FILE; with `-`, to standard output, and the report to standard error
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Replace the file of `--json` whatever it contains
    #[arg(long)]
    pub(super) force: bool,
    /// Print only the report and errors: no progress, no notes
    #[arg(long)]
    pub(super) quiet: bool,
}

/// Arguments of `wmlrun repeat`.
#[derive(Args)]
pub(super) struct RepeatArgs {
    /// Script file, or name of a personality; required unless `--resume` or `--floor` is given
    #[arg(value_name = "SCRIPT", required_unless_present_any = ["resume", "floor"], conflicts_with = "resume",
        add = completion::scripts())]
    pub(super) script: Option<String>,
    /// Number of runs: `MIN..MAX`, both included, or exactly N; with `--resume`, also of a complete experiment [default:
    /// 10..30; with `--resume`: as before]
    #[arg(add = WithResume, long, value_name = "RUNS", value_parser = run_range)]
    pub(super) runs: Option<(u64, u64)>,
    /// Stop when the half-width of the 95 % confidence interval is below PERCENT of the mean for every metric, twice in
    /// succession [default: 5%; with `--runs N`: none]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(super) until_ci: Option<f64>,
    /// Metrics that must reach the precision, separated by commas, such as `ops`, `latency.p99` or `NAME.latency.p99` of
    /// one flowop; `wmlrun list metrics` lists them [default: ops; of open loops response.mean]
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',', add = completion::metrics())]
    pub(super) metrics: Vec<Metric>,
    /// Use a predefined set of metrics instead of `--metric`
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "metrics")]
    pub(super) preset: Option<Preset>,
    /// Measure the noise floor of the file system instead: how much results differ when nothing is changed. It is stored
    /// for comparisons. Without SCRIPT `varmail` runs; `--dir` names the file system
    #[arg(add = WithResume, long, conflicts_with_all = ["runs", "until_ci", "preset"], help_heading = FLOOR)]
    pub(super) floor: bool,
    /// Number of blocks of four runs, at least 2 [default: 6]
    #[arg(long, value_name = "N", requires = "floor", value_parser = clap::value_parser!(u64).range(2..=10_000),
        help_heading = FLOOR)]
    pub(super) blocks: Option<u64>,
    /// List the stored noise floors with their sessions, and measure nothing
    #[arg(long, requires = "floor", help_heading = FLOOR)]
    pub(super) list: bool,
    /// Remove the noise floor with this number in `--list`, or one of its sessions, such as `2.3`, and measure nothing
    #[arg(long, value_name = "NUMBER", value_parser = floor_number, requires = "floor", help_heading = FLOOR)]
    pub(super) forget: Option<(usize, Option<usize>)>,
    #[command(flatten)]
    pub(super) hooks: HookArgs<false>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
}

/// The heading of the options on noise floors.
const FLOOR: &str = "Noise floor";

impl RepeatArgs {
    /// The metrics that `--metric` or `--preset` selects; empty without them.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        match self.preset {
            Some(Preset::Study) => STUDY.iter().filter_map(|name| name.parse().ok()).collect(),
            None => self.metrics.clone(),
        }
    }

    /// Returns the fewest and the most runs of a new experiment.
    pub(super) fn wanted_runs(&self) -> (u64, u64) {
        self.runs.unwrap_or(DEFAULT_RUNS)
    }

    /// Returns the requested relative half-width: 5 % by default, `None` for a fixed number of runs.
    pub(super) fn until_ci(&self) -> Option<f64> {
        self.until_ci.or_else(|| precision(self.wanted_runs(), None))
    }
}

/// A predefined set of metrics.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Preset {
    /// The measures of a published study of snapshots, for the personality `oltp_sync`
    Study,
}

/// Arguments of `wmlrun ab`.
#[derive(Args)]
pub(super) struct AbArgs {
    /// Script file, or name of a personality; required unless `--resume` is given
    #[arg(value_name = "SCRIPT", required_unless_present = "resume", conflicts_with = "resume",
        add = completion::scripts())]
    pub(super) script: Option<String>,
    /// Options of configuration A as one argument, such as '--set nthreads=1'; override the common options
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    pub(super) a: String,
    /// Options of configuration B as one argument
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    pub(super) b: String,
    /// Number of blocks of four runs, at least 2 [default: estimated from the first four blocks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub(super) blocks: Option<u64>,
    /// Evaluate after 6, 12 and 24 blocks, and stop at the first clear verdict
    #[arg(long, conflicts_with = "blocks")]
    pub(super) until_clear: bool,
    #[command(flatten)]
    pub(super) verdict: VerdictArgs,
    #[command(flatten)]
    pub(super) hooks: HookArgs<true>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
}

/// The default number of runs of `repeat`.
const DEFAULT_RUNS: (u64, u64) = (10, 30);

/// Arguments of `wmlrun sweep`.
#[derive(Args)]
pub(super) struct SweepArgs {
    /// Script file, or name of a personality; required unless `--resume` is given
    #[arg(value_name = "SCRIPT", required_unless_present = "resume", conflicts_with = "resume",
        add = completion::scripts())]
    pub(super) script: Option<String>,
    /// Variable to vary and its values, such as `nthreads=1,2,4,8`; required unless `--resume` is given. For an open loop
    /// also percentages of the value at the peak, which is measured first: `rate=50%,100%`, or `rate=10%..120%` in steps
    /// of 10 %. `1..32` is each whole number, `1..1024 log` each power of two of the first
    #[arg(long, value_name = "NAME=VALUES", required_unless_present_any = ["resume", "find"], value_parser = factor)]
    pub(super) vary: Option<(String, Vec<String>)>,
    /// Search for the greatest value of this variable at which the limit of `--while` holds, from its value in the script, or
    /// that of `--set`, on. A run lasts until its percentile has enough operations
    #[arg(long, value_name = "NAME", requires = "holds", conflicts_with_all = ["vary", "repeats", "in_order"],
        value_parser = variable)]
    pub(super) find: Option<String>,
    /// Limit of `--find`, such as `'view.response.p99 < 20ms'`
    #[arg(long = "while", value_name = "LIMIT", requires = "find", add = completion::metrics())]
    pub(super) holds: Option<MetricLimit>,
    /// Further metrics at each value, separated by commas, such as `response.p50,response.p99`; `wmlrun list metrics` lists
    /// them
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',', add = completion::metrics())]
    pub(super) metrics: Vec<Metric>,
    /// Number of runs for each value; with `--resume`, also of a complete sweep [default: 3; with `--resume`: as before]
    #[arg(add = WithResume, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) repeats: Option<u64>,
    /// Run the values in the given order, for workloads that age the file system; otherwise each repetition has its own
    /// random order
    #[arg(long)]
    pub(super) in_order: bool,
    /// Method for the overall response time [default: sfs3; with `--resume`: as before]
    #[arg(add = WithResume, long, value_name = "METHOD", value_parser = method_parser())]
    pub(super) method: Option<ResponseMethod>,
    #[command(flatten)]
    pub(super) hooks: HookArgs<false>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
}

/// Arguments of `wmlrun experiment`.
#[derive(Args)]
pub(super) struct FileArgs {
    /// Experiment file, profile of Filebench, or name of a shipped experiment (`wmlrun list experiments`); required
    /// unless `--resume` or `--print-unit` is given
    #[arg(value_name = "FILE", required_unless_present_any = ["resume", "print_unit"], conflicts_with = "resume",
        add = completion::experiments())]
    pub(super) file: Option<String>,
    /// Print the cells, their runs, the commands and the measured time, and start nothing
    #[arg(long)]
    pub(super) plan: bool,
    /// Make the runs of this cell only, such as `mail,vol1`, or of the cells with this level, such as `mail`
    #[arg(long, value_name = "CELL", conflicts_with = "resume")]
    pub(super) only: Option<String>,
    /// Multiply the sizes, counts and run times of all cells by F (0 to 1), to try an experiment; the time and room of the
    /// full size are printed first. Run times that the command line gives stay
    #[arg(long, value_name = "F", value_parser = scale)]
    pub(super) scale: Option<f64>,
    /// Measure this side: a name and its options, such as `'ext4=--dir /mnt/ext4'`. Give it once for each side. The sides are
    /// the columns of the tables
    #[arg(long, value_name = "NAME=OPTIONS")]
    pub(super) side: Vec<String>,
    /// Sides with which the others are compared, separated by commas: a table of the improvement over each of them
    #[arg(long, value_name = "SIDE", value_delimiter = ',', requires = "side")]
    pub(super) over: Vec<String>,
    /// Method for the overall response time of load curves [default: that of the file]
    #[arg(long, value_name = "METHOD", value_parser = method_parser())]
    pub(super) method: Option<ResponseMethod>,
    /// Print a unit of systemd that continues the experiment in this results folder, of any command, after each start of
    /// the machine; install nothing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = EXPERIMENT)]
    pub(super) print_unit: Option<PathBuf>,
    /// Number of runs of each cell: `MIN..MAX`, both included, or exactly N. With `--resume`, a complete experiment gets
    /// further runs [default: that of the file; with `--resume`: as before]
    #[arg(add = WithResume, long, value_name = "RUNS", value_parser = run_range)]
    pub(super) repeats: Option<(u64, u64)>,
    #[command(flatten)]
    pub(super) experiment: ExperimentArgs,
}

/// Parses the factor of `--scale`.
fn scale(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| *factor > 0.0 && *factor <= 1.0);
    factor.ok_or_else(|| "expected a number above 0 and at most 1, such as `0.01`".to_owned())
}

/// Parses the number of a noise floor, `N`, or of one of its sessions, `N.M`.
fn floor_number(text: &str) -> Result<(usize, Option<usize>), String> {
    let number =
        |text: &str| text.parse().map_err(|_| "expected a number of `--list`, such as `2` or `2.3`".to_owned());
    match text.split_once('.') {
        Some((floor, session)) => Ok((number(floor)?, Some(number(session)?))),
        None => Ok((number(text)?, None)),
    }
}

/// Returns a parser of the methods for the overall response time.
fn method_parser() -> impl TypedValueParser<Value = ResponseMethod> {
    choice(ResponseMethod::ALL.map(|method| (method.name(), method.about())), ResponseMethod::find)
}

/// Parses `NAME=V1,V2…`. Returns an error if a value is missing or occurs twice.
fn factor(text: &str) -> Result<(String, Vec<String>), String> {
    let help = "expected `NAME=VALUE,VALUE…`";
    let (name, values) = text.split_once('=').ok_or(help)?;
    let name = name.strip_prefix('$').unwrap_or(name).trim();
    let values: Vec<String> =
        match percentages(values).map_or_else(|| whole_numbers(values), |values| Ok(Some(values)))? {
            Some(values) => values,
            None => values.split(',').map(|value| value.trim().to_owned()).collect(),
        };
    if name.is_empty() || values.iter().any(String::is_empty) {
        return Err(help.to_owned());
    }
    if let [range] = &values[..]
        && let Some((first, last)) = range.split_once("..")
        && [first, last].iter().all(|end| end.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Err(format!("`{range}` is no range of whole numbers, such as `1..32`, or `1..1024 log`"));
    }
    let twice = values.iter().enumerate().find(|(n, value)| values[..*n].contains(value));
    twice.map_or(Ok(()), |(_, value)| Err(format!("duplicate value `{value}`")))?;
    Ok((name.to_owned(), values))
}

/// The most values of a range.
const MOST_VALUES: u64 = 1000;

/// Expands `FIRST..LAST`, and `FIRST..LAST log` by doubling. Returns `None` for another form.
fn whole_numbers(text: &str) -> Result<Option<Vec<String>>, String> {
    let (range, is_doubled) =
        text.trim().strip_suffix("log").map_or((text, false), |range| (range.trim_end_matches(' '), true));
    let ends = range.split_once("..").map(|(first, last)| (first.trim().parse::<u64>(), last.trim().parse::<u64>()));
    let Some((Ok(first), Ok(last))) = ends else { return Ok(None) };
    if first > last || is_doubled && first == 0 {
        return Err(format!("the range `{}` has no value", text.trim()));
    }
    let values: Vec<u64> = match is_doubled {
        true => std::iter::successors(Some(first), |n| n.checked_mul(2)).take_while(|n| *n <= last).collect(),
        false if last - first >= MOST_VALUES => {
            return Err(format!(
                "`{}` has more than {MOST_VALUES} values: double them with `{first}..{last} log`",
                text.trim()
            ));
        }
        false => (first..=last).collect(),
    };
    Ok(Some(values.iter().map(u64::to_string).collect()))
}

/// Reads the name of a variable, also with a `$`.
fn variable(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('$').unwrap_or(text);
    if name.is_empty() || name.contains('=') {
        Err("expected the name of a variable".to_owned())
    } else {
        Ok(name.to_owned())
    }
}

/// Expands `FIRST%..LAST%` in steps of 10 %. Returns `None` for another form, or without a value.
fn percentages(text: &str) -> Option<Vec<String>> {
    let (first, last) = text.split_once("..")?;
    let number = |text: &str| text.trim().strip_suffix('%')?.trim().parse::<u32>().ok();
    let (first, last) = (number(first)?, number(last)?);
    (1..=10_000).contains(&first).then_some(())?;
    (first..=10_000).contains(&last).then(|| (first..=last).step_by(10).map(|percent| format!("{percent}%")).collect())
}

/// Options of the commands that report a verdict.
#[derive(Args, Clone)]
pub(super) struct VerdictArgs {
    /// Metric to compare, such as `ops`, `latency.p99` or `NAME.latency.p99` of one flowop; `wmlrun list metrics` lists
    /// them [default: ops; of open loops response.mean; of `compare` with results folders: the first metric of their
    /// experiments]
    #[arg(long, value_name = "METRIC", add = completion::metrics())]
    pub(super) metric: Option<Metric>,
    /// Largest change that does not matter, as a percentage of A; of B if lower is better [default: 3%; with `--tests`:
    /// none, and no verdicts]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub(super) tolerance: Option<f64>,
    /// Exit with 0 only for this verdict [default: for every verdict that is not worse]
    #[arg(add = WithResume, long, value_enum, value_name = "VERDICT")]
    pub(super) expect: Option<Expected>,
}

impl VerdictArgs {
    /// The largest change that does not matter, as a share.
    pub(super) fn tolerance(&self) -> f64 {
        self.tolerance.unwrap_or(DEFAULT_TOLERANCE)
    }
}

/// The verdict that `--expect` requires.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Expected {
    /// B is better
    Better,
}

/// Parser of the options of one arm (`--a`, `--b`).
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true, args_override_self = true)]
pub(super) struct ArmLine {
    /// Script of this arm, instead of the common one
    script: Option<String>,
    /// Script of this arm (Filebench's spelling of SCRIPT)
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "script")]
    file: Option<String>,
    #[command(flatten)]
    pub(super) settings: RunSettings<RUN>,
}

impl ArmLine {
    /// Returns the script of this arm, or `None` when it is the common one.
    pub(super) fn script(&self) -> Option<&str> {
        self.script.as_deref().or(self.file.as_deref())
    }

    /// Parses the words of an arm. The error is a message of one line, and its help if there is one.
    pub(super) fn read(words: &[String]) -> Result<Self, (String, Option<String>)> {
        let message = |e: clap::Error| {
            let texts: Vec<&str> = words.iter().map(String::as_str).collect();
            let e = explained(e, &texts, &Self::command(), &|_| None);
            let text = e.to_string();
            let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            (line, suggestion(&e))
        };
        let mut matches = Self::command().try_get_matches_from(words).map_err(message)?;
        match two_directories(&matches) {
            Some(conflict) => Err((conflict, None)),
            None => Self::from_arg_matches_mut(&mut matches).map_err(message),
        }
    }
}

impl ArmLine {
    /// Returns the options of an arm as [`WorkloadWords`], or `None` when they can't be parsed.
    pub(super) fn workload_words(words: &[String]) -> Option<WorkloadWords> {
        let matches = Self::command().try_get_matches_from(words).ok()?;
        WorkloadWords::from_arg_matches(&matches).ok()
    }

    /// Returns the names of the options of which each value counts, and not only the last.
    pub(super) fn repeatable_options() -> HashSet<String> {
        let form = Self::command();
        let all = form.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::Append));
        all.filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
    }
}

/// Returns the error of a command line whose `--dir` and `--set dir=` name different directories.
pub(super) fn two_directories(matches: &ArgMatches) -> Option<String> {
    if let Some((_, of_command)) = matches.subcommand() {
        return two_directories(of_command);
    }
    // Some commands have none of the name.
    let values = |id: &str| Some(matches.try_get_raw(id).ok()??.filter_map(OsStr::to_str));
    let dir = values("dir")?.next()?;
    let mut sets = values("set")?.filter_map(|set| set.trim_start_matches('$').strip_prefix("dir="));
    let other = sets.next_back().filter(|other| *other != dir)?;
    Some(format!("`--dir {dir}` and `--set dir={other}` set the same variable: give one of them"))
}

#[cfg(test)]
mod tests {
    use super::ArmLine;

    #[test]
    fn the_options_of_an_arm_name_one_directory() {
        let read = |words: &[&str]| ArmLine::read(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()).err();
        let (said, _) = read(&["--dir", "a", "--set", "dir=b"]).unwrap_or_default();
        assert!(said.contains("`--dir a` and `--set dir=b`"), "{said}");
        assert_eq!(read(&["--dir", "a", "--set", "n=1"]), None);
    }

    #[test]
    fn a_mistyped_option_of_an_arm_has_a_suggestion() {
        let read = |words: &[&str]| ArmLine::read(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()).err();
        for (written, help) in [
            ("--runtim", "did you mean `--runtime`?"),
            ("--dri", "did you mean `--dir`?"),
            ("--nthreads", "if it is a variable of the script, write --set nthreads=VALUE"),
            ("--no-such-thing", ""),
        ] {
            let (said, found) = read(&[written, "3"]).unwrap_or_default();
            assert_eq!(
                (said, found.unwrap_or_default().as_str()),
                (format!("unexpected argument '{written}' found"), help)
            );
        }
    }
}
