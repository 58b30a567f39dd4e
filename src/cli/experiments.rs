//! `wmlrun repeat`, `ab`, `floor`, `compare` and `prune`: experiments and comparisons.

use super::arms;
use super::console;
use super::experiment_args::{
    AbArgs, ArmLine, CompareArgs, Expected, ExperimentArgs, FloorArgs, MethodName, RepeatArgs,
};
use super::experiment_host::perform;
use super::stdout::Stdout;
use crate::analysis::{ComparisonVerdict, Direction, MIN_SESSION_GAP, NoiseFloor, Tolerance};
use crate::comparison::{
    Comparer, Comparison, DEFAULT_TOLERANCE, DifferenceKind, RunOrder, Runs, differs_text, percent, ratio, repeats,
};
use crate::experiment::{
    self, Arm, ArmRuns, Blocks, EQUAL_ARMS, Experiment, ExperimentKind, Finished, FloorSession, Floors, Folder, HOOKS,
    Hooks, Next, RuleWanted, compare_arms,
};
use crate::import::{self, ImportedSide, Metric, Observation, mixed_conditions, shortened};
use crate::measure::now;
use crate::output::file_id;
use crate::util::count::count;
use crate::util::{printable, size};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// The exit status of a command whose error has been printed.
pub(super) struct Refused(u8);

impl Refused {
    /// Makes the exit status of an error that has been printed.
    pub(super) fn printed(status: u8) -> Self {
        Self(status)
    }
}

/// Prints an error with its help. Returns the exit status as an error.
pub(super) fn refuse(text: &str, help: &str, status: u8) -> Refused {
    console::error(text, Some(help));
    Refused(status)
}

pub(super) fn status(result: Result<u8, Refused>) -> u8 {
    result.unwrap_or_else(|Refused(status)| status)
}

/// Writes text to standard output as it is.
pub(super) fn print_text(text: &str) {
    // `Stdout` records the error.
    let _ = Stdout.write_all(text.as_bytes());
}

/// Returns `--set ASSIGNMENT`, quoted for splitting by shell rules.
pub(super) fn set_option(assignment: &str) -> String {
    format!("--set {}", shell_words::quote(assignment))
}

/// Runs `wmlrun repeat`. Returns the exit status.
pub(super) fn repeat(args: &RepeatArgs) -> u8 {
    status(try_repeat(args))
}

fn try_repeat(args: &RepeatArgs) -> Result<u8, Refused> {
    let (min_runs, max_runs) = args.runs;
    let rule = RuleWanted::Repeat { min_runs, max_runs, until_ci: args.until_ci() };
    let common = &args.experiment;
    let script = args.script.as_deref().unwrap_or_default();
    let wanted = |_: &AtomicUsize| wanted(common, script, &[""], &args.metrics(), rule, args.hooks.0.clone());
    let performed = perform(common, ExperimentKind::Repeat, "repeat", wanted)?;
    let finished = &performed.finished;
    let (experiment, runs) = (&performed.folder.experiment, &finished.observations[0]);
    let (Next::Repeated(state), Some(rule)) = (finished.end, experiment.repeat_rule()) else {
        return Err(refuse(
            "the experiment is not a series of repeated runs",
            "`wmlrun ab --resume` continues a comparison",
            2,
        ));
    };
    let mut document = repeats(&experiment.name, &experiment.metrics(), runs, &rule, state)
        .map_err(|e| refuse(&e, "name another metric", 2))?;
    document.notes.extend(finished.notes.iter().cloned());
    performed.print(&(common.format.repeats)(&document));
    Ok(performed.status(state.code()))
}

/// Runs `wmlrun ab`. Returns the exit status.
pub(super) fn ab(args: &AbArgs) -> u8 {
    status(try_ab(args))
}

fn try_ab(args: &AbArgs) -> Result<u8, Refused> {
    let blocks = match (args.blocks, args.until_clear) {
        (Some(n), _) => Blocks::Exactly(n),
        (None, true) => Blocks::UntilClear,
        (None, false) => Blocks::Pilot,
    };
    let rule = RuleWanted::Ab { tolerance: args.verdict.tolerance, blocks };
    let common = &args.experiment;
    let metric = args.verdict.metric.clone().unwrap_or_else(Metric::ops);
    let metric = std::slice::from_ref(&metric);
    let script = args.script.as_deref().unwrap_or_default();
    let wanted = |_: &AtomicUsize| {
        let found = wanted(common, script, &[&args.a, &args.b], metric, rule, args.hooks.0.clone())?;
        // The runs may take half an hour.
        if found.has_equal_arms() && !common.quiet {
            console::notice(&format!("note: {EQUAL_ARMS}"));
        }
        Ok(found)
    };
    let performed = perform(common, ExperimentKind::Ab, "ab", wanted)?;
    let (experiment, finished) = (&performed.folder.experiment, &performed.finished);
    let (Next::Compared(look), [metric, ..]) = (finished.end, &experiment.metrics()[..]) else {
        return Err(refuse(
            "the experiment is not a comparison",
            "`wmlrun repeat --resume` continues repeated runs",
            2,
        ));
    };
    let floor = known_floor(&finished.observations, metric);
    let comparison = compared(finished, |arms| experiment.comparison(arms, floor, look))?;
    performed.print(&(common.format.comparison)(&comparison));
    Ok(performed.status(verdict_status(&comparison, args.verdict.expect)))
}

/// Returns the comparison of the arms of an experiment, with the notes on its runs.
fn compared(
    finished: &Finished,
    compare: impl FnOnce([ArmRuns<'_>; 2]) -> Result<Comparison, String>,
) -> Result<Comparison, Refused> {
    let ([a, b], [control_a, control_b]) = (&finished.observations[..], &finished.controls[..]) else {
        return Err(refuse("the experiment does not have two arms", "start a new one in another folder", 2));
    };
    let arms = [ArmRuns { observations: a, controls: control_a }, ArmRuns { observations: b, controls: control_b }];
    let mut comparison = compare(arms).map_err(|e| refuse(&e, "name another metric", 2))?;
    comparison.notes.extend(finished.notes.iter().cloned());
    Ok(comparison)
}

/// Runs `wmlrun floor`. Returns the exit status.
pub(super) fn floor(args: &FloorArgs) -> u8 {
    status(try_floor(args))
}

fn try_floor(args: &FloorArgs) -> Result<u8, Refused> {
    let path = Floors::path().ok_or_else(|| {
        refuse("no directory to store the noise floor in", "set HOME or XDG_STATE_HOME to an absolute path", 3)
    })?;
    let refuse_file = |e: std::io::Error| {
        refuse(&format!("{}: {e}", path.display()), "repair or remove the file; a new one is created", 3)
    };
    // Read the file before the runs, so that a damaged file is reported now.
    Floors::read(&path).map_err(refuse_file)?;
    let rule = RuleWanted::Ab { tolerance: DEFAULT_TOLERANCE, blocks: Blocks::Exactly(args.blocks) };
    let directory = args.directory.as_ref().map(|dir| format!("--dir {}", shell_words::quote(dir))).unwrap_or_default();
    let common = &args.experiment;
    let metrics = std::slice::from_ref(&args.metric);
    let wanted =
        |_: &AtomicUsize| wanted(common, &args.script, &[&directory, &directory], metrics, rule, args.hooks.0.clone());
    // Another comparison is not continued. Other errors of the folder are those of `perform`.
    if let Some(path) = &common.resume
        && let Ok(experiment) = Folder::description(path)
        && experiment.kind() == ExperimentKind::Ab
        && !experiment.has_equal_arms()
    {
        let text = format!("the arms of the experiment in {} are not equal", path.display());
        return Err(refuse(&text, "`wmlrun ab --resume` continues a comparison", 2));
    }
    let performed = perform(common, ExperimentKind::Ab, "floor", wanted)?;
    let (folder, finished) = (&performed.folder, &performed.finished);
    let experiment = &folder.experiment;
    let [metric, ..] = &experiment.metrics()[..] else { return Err(Refused(2)) };
    // The result is the noise floor, not the verdict.
    let names = experiment.arm_names();
    let sides = names.each_ref().map(String::as_str);
    let comparer = Comparer { advises: false, ..Comparer::of(&experiment.name, sides, metric) };
    let comparison = compared(finished, |arms| compare_arms(&comparer, arms))?;
    if comparison.verdict == ComparisonVerdict::Invalid {
        performed.print(&(common.format.comparison)(&comparison));
        return Ok(performed.status(verdict_status(&comparison, None)));
    }
    let place = experiment::place(finished.observations.iter().flatten());
    let Some(place) = place.filter(|_| comparison.ratio.low.is_finite()) else {
        return Err(refuse(
            "the conditions of the runs are unknown or differ between runs",
            "see the results in the folder",
            1,
        ));
    };
    let values: Vec<f64> = comparison.a.values.iter().chain(&comparison.b.values).copied().collect();
    let session = FloorSession {
        time: now(),
        experiment: format!("{} {}", experiment.created, experiment.seed),
        name: experiment.name.clone(),
        metric: comparison.metric.clone(),
        place: place.clone(),
        ratio: comparison.ratio,
        mean: values.iter().sum::<f64>() / values.len() as f64,
    };
    if session.sample().is_too_wide() {
        performed.print(&(common.format.comparison)(&comparison));
        let text = format!("the interval {} is too wide for a noise floor: it is not stored", ratio(session.ratio));
        console::error(&text, Some("make more blocks (`--blocks`), or longer runs (`--runtime`)"));
        return Ok(performed.status(ComparisonVerdict::Unclear.code()));
    }
    let floors = Floors::add(session, &path).map_err(refuse_file)?;
    let floor = floors.of(&comparison.metric, &place, None);
    performed.print(&(common.format.comparison)(&Comparison { floor, ..comparison }));
    if let Some(floor) = floor {
        let (share, sessions) = (percent(floor.share), count(floor.sessions, "session"));
        let days = if floor.spans_days { "" } else { " of one day" };
        let text = format!("noise floor ± {share} in {sessions}{days}, stored in {}", path.display());
        if common.format.name == "text" && !performed.outputs.takes_stdout() {
            console::print_lines(&text);
        } else if !common.quiet {
            console::notice(&text);
        }
    }
    Ok(performed.status(0))
}

/// Returns the noise floor of a comparison of these sides, of which each has its own conditions. Returns `None` if that
/// of a side has not been measured.
pub(super) fn known_floor<S: AsRef<[Observation]>>(sides: &[S], metric: &Metric) -> Option<NoiseFloor> {
    let places: Vec<_> = sides.iter().map(|side| experiment::place(side.as_ref())).collect::<Option<_>>()?;
    let floors = Floors::read(&Floors::path()?)
        .inspect_err(|e| console::notice(&format!("note: can't read the noise floors: {e}")))
        .ok()?;
    // What was measured on the day of the later side may include what changed it.
    let starts = sides.iter().filter_map(|side| side.as_ref().iter().filter_map(|run| run.started).min());
    let (first, last) = (starts.clone().min(), starts.max());
    let until =
        first.zip(last).filter(|(first, last)| last - first >= MIN_SESSION_GAP).map(|(_, last)| last - MIN_SESSION_GAP);
    let of_sides =
        places.iter().map(|place| floors.of(&metric.to_string(), place, until)).collect::<Option<Vec<_>>>()?;
    of_sides.into_iter().reduce(NoiseFloor::wider)
}

/// Runs `wmlrun compare`. Returns the exit status.
pub(super) fn compare(args: &CompareArgs) -> u8 {
    status(try_compare(args))
}

/// Returns the metric of a comparison. That of columns is `value`, unless `--metric` says what they contain. Returns an
/// error when only one side is a column, whose unit is unknown.
fn metric_of(args: &CompareArgs, a: &mut ImportedSide, b: &mut ImportedSide) -> Result<Metric, Refused> {
    match (a.is_column(), b.is_column(), &args.verdict.metric) {
        (false, false, _) if args.lower_is_better => {
            let help = "the direction of a metric is known; omit `--lower-is-better`";
            Err(refuse("`--lower-is-better` is for columns of numbers", help, 2))
        }
        (false, false, metric) => Ok(metric.clone().unwrap_or_else(Metric::ops)),
        (true, true, None) => Ok(Metric::value()),
        (true, true, Some(metric)) => {
            [a, b].into_iter().for_each(|side| side.name_column(metric));
            Ok(metric.clone())
        }
        (is_a, ..) => {
            let (column, other) = if is_a { ("A", "B") } else { ("B", "A") };
            let text = format!("{column} is a column of numbers, and {other} has the figures of runs");
            Err(refuse(&text, "give a column for both sides, or results for both", 2))
        }
    }
}

fn try_compare(args: &CompareArgs) -> Result<u8, Refused> {
    let read = |path: &Path| import::side(path).map_err(|e| refuse(&e.to_string(), &e.help(), 2));
    let (mut a, mut b) = (read(&args.a)?, read(&args.b)?);
    let metric = metric_of(args, &mut a, &mut b)?;
    let path = |path: &Path| path.display().to_string();
    let (name_a, name_b) = (path(&args.a), path(&args.b));
    for (name, side) in [(&name_a, &a), (&name_b, &b)] {
        let mixed = mixed_conditions(&side.runs);
        if !mixed.is_empty() && !args.anyway {
            let text = format!("{name} has runs of different workloads: they differ in {}", shortened(&mixed));
            let help =
                format!("`wmlrun wins {name_a} {name_b}` shows each by itself; `--anyway` takes them as one sample");
            return Err(refuse(&text, &help, 2));
        }
    }
    let comparer = Comparer {
        tolerance: Tolerance(args.verdict.tolerance),
        method: args.method.method(),
        direction: if args.lower_is_better { Direction::LowerIsBetter } else { metric.direction() },
        floor: known_floor(&[&a.runs, &b.runs], &metric),
        ..Comparer::of(&format!("{name_a} and {name_b}"), [&name_a, &name_b], &metric)
    };
    let alternated = a.blocks_of.is_some() && a.blocks_of == b.blocks_of && args.a != args.b;
    let order = if alternated { RunOrder::Alternated } else { RunOrder::Separate };
    let mut comparison = comparer
        .compare(&Runs { a: &a.runs, b: &b.runs, order, control_a: &[], control_b: &[] })
        .map_err(|e| refuse(&e, "name another metric with `--metric`", 2))?;
    comparison.notes.splice(0..0, a.notes.into_iter().chain(b.notes));
    if args.a == args.b {
        comparison.notes.insert(0, "A and B are the same results".to_owned());
    }
    let spoilt: Vec<&str> = comparison
        .differs
        .iter()
        .filter(|difference| difference.kind == DifferenceKind::Workload)
        .map(|difference| difference.what.as_str())
        .collect();
    if !spoilt.is_empty() && !args.anyway {
        console::notice(&differs_text(&comparison));
        let text = format!("A and B measured different workloads: they differ in {}", spoilt.join(", "));
        return Err(refuse(&text, "use `--anyway` to compare them nevertheless", 2));
    }
    if args.method == MethodName::Study && comparison.study.is_none() {
        let help = "the tests of the study need at least two observations per side, and a variance";
        console::notice(&format!("note: {help}"));
    }
    print_text(&(args.format.comparison)(&comparison));
    Ok(verdict_status(&comparison, args.verdict.expect))
}

/// Returns the exit status of a verdict.
fn verdict_status(comparison: &Comparison, expected: Option<Expected>) -> u8 {
    match (expected, comparison.verdict) {
        (Some(Expected::Better), ComparisonVerdict::Same | ComparisonVerdict::NotWorse) => {
            ComparisonVerdict::Unclear.code()
        }
        (_, verdict) => verdict.code(),
    }
}

/// Runs `wmlrun prune` on one folder. Returns the exit status.
pub(super) fn prune(dir: &Path) -> u8 {
    match experiment::prune(dir) {
        Ok(pruned) => {
            console::print_lines(&format!("{}: {} removed", dir.display(), size::format(pruned.bytes)));
            for kept in pruned.kept {
                let why = "it has files that the journal does not name as those of the run";
                console::notice(&printable::line(&format!("note: {} is kept: {why}", kept.display())));
            }
            0
        }
        Err(e) => {
            console::error(&e.to_string(), Some("give a results folder of an experiment, such as `repeat` or `ab`"));
            3
        }
    }
}

/// The default of `--command-timeout`.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

/// Builds the description of a new experiment. `arms` holds the options of each arm.
pub(super) fn wanted(
    args: &ExperimentArgs,
    script: &str,
    arms: &[impl AsRef<str>],
    metrics: &[Metric],
    rule: RuleWanted,
    hooks: Hooks,
) -> Result<Experiment, Refused> {
    if script == "-" {
        return Err(refuse(
            "an experiment can't read its script from standard input, since each run reads it again",
            "give the script as a file",
            2,
        ));
    }
    let is_sweep = matches!(rule, RuleWanted::Sweep { .. });
    let option = |n: usize| match n {
        _ if is_sweep => "--vary",
        0 => "--a",
        _ => "--b",
    };
    let arm = |(n, options): (usize, &str)| -> Result<Arm, Refused> {
        let option = option(n);
        let own = words_of(option, options)?;
        let line = ArmLine::read(&own).map_err(|(text, near)| {
            let all = "it accepts a script and the options that define the workload (see `wmlrun ab --help`)";
            let help = near.map_or_else(|| all.to_owned(), |near| format!("did you mean `{near}`?"));
            refuse(&format!("in `{option}`: {text}"), &help, 2)
        })?;
        let mut words = args.words.0.clone();
        words.extend(own);
        if line.script().is_none() {
            words.push(script.to_owned());
        }
        let name = if arms.len() == 1 { script.to_owned() } else { options.to_owned() };
        Ok(Arm { name, words, metric: None })
    };
    let arms: Vec<Arm> = arms.iter().map(AsRef::as_ref).enumerate().map(arm).collect::<Result<_, _>>()?;
    // A directory that `wmlrun floor` names is an option of both arms.
    let mut common = args.words.0.clone();
    common.push(script.to_owned());
    let common = if arms.iter().all(|arm| arm.words == arms[0].words) { arms[0].words.clone() } else { common };
    arms::check(&arms, &common, metrics, &option).map_err(Refused)?;
    check_commands(metrics, &hooks)?;
    describe(args, script, arms, metrics, rule, hooks)
}

/// Returns an error if a metric is the time of a command that is not executed for each run.
fn check_commands(metrics: &[Metric], hooks: &Hooks) -> Result<(), Refused> {
    let all: Vec<&str> = HOOKS.iter().filter(|hook| hook.arm.is_none()).map(|hook| hook.name).collect();
    for metric in metrics {
        let Some(command) = metric.command().filter(|name| !all.contains(name) || !hooks.0.contains_key(*name)) else {
            continue;
        };
        let help = match all.contains(&command) {
            true => format!("give the command with `--{command}`"),
            false => format!("the commands of each run are `{}`", all.join("` and `")),
        };
        return Err(refuse(&format!("no `{metric}`: no command `{command}` is executed for each run"), &help, 2));
    }
    Ok(())
}

/// Splits a text into words by the rules of a shell. The error is a message of one line.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|e| format!("can't be split into words: {e}"))
}

/// Joins words to a text that a shell splits into the same words.
pub(super) fn joined(words: &[String]) -> String {
    shell_words::join(words)
}

/// Returns the path of this program, with which runs are made. If another file is at its path by now, such as a new
/// version, it is the path at which the kernel keeps the program as long as it runs.
pub(super) fn program() -> PathBuf {
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let is_it = |path: &Path| file_id(&running).is_none_or(|id| file_id(path) == Some(id));
    match std::env::current_exe() {
        Ok(path) if is_it(&path) => path,
        Ok(_) => running,
        Err(_) => "wmlrun".into(),
    }
}

/// Splits the value of an option into words.
pub(super) fn words_of(option: &str, text: &str) -> Result<Vec<String>, Refused> {
    split(text).map_err(|e| refuse(&format!("`{option}` {e}"), "use the quoting rules of a shell", 2))
}

/// Builds the description of a new experiment from its arms, under the current conditions.
pub(super) fn describe(
    args: &ExperimentArgs,
    name: &str,
    arms: Vec<Arm>,
    metrics: &[Metric],
    rule: RuleWanted,
    hooks: Hooks,
) -> Result<Experiment, Refused> {
    let launch = words_of("--launch", &args.launch)?;
    let seed = arms::line(&arms[0]).and_then(|line| line.workload.script.seed).unwrap_or_else(super::fresh_seed);
    let refuse_conditions = |(text, help): (String, String)| refuse(&text, &help, 2);
    let directory = std::env::current_dir()
        .map_err(|e| refuse(&format!("the working directory: {e}"), "change to an existing directory", 3))?;
    Ok(Experiment {
        schema: import::folder::EXPERIMENT_SCHEMA.to_owned(),
        file: String::new(),
        name: name.to_owned(),
        created: now(),
        directory: directory.to_string_lossy().into_owned(),
        command_timeout: args.command_timeout.unwrap_or(COMMAND_TIMEOUT).as_secs_f64(),
        budget: args.budget.map(|budget| budget.as_secs_f64()),
        seed,
        launch,
        metrics: metrics.iter().map(Metric::to_string).collect(),
        records: Vec::new(),
        record_space: false,
        rule,
        identity: arms::identity(&arms, !hooks.0.is_empty()).map_err(refuse_conditions)?,
        arms,
        hooks,
        scopes: Vec::new(),
    })
}
