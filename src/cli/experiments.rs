//! `wmlrun repeat`, `ab`, `floor`, `compare` and `prune`: experiments and comparisons.

use super::arms;
use super::console;
use super::experiment_args::{
    AbArgs, ArmLine, CompareArgs, Expected, ExperimentArgs, FloorArgs, MethodName, RepeatArgs, ResultFormat,
};
use super::stdout::Stdout;
use crate::analysis::{ComparisonVerdict, NoiseFloor, Tolerance};
use crate::comparison::{
    Comparer, Comparison, DEFAULT_TOLERANCE, DifferenceKind, Runs, differs_text, percent, repeats,
};
use crate::experiment::{
    self, Arm, Blocks, EQUAL_ARMS, Experiment, ExperimentError, ExperimentHost, ExperimentKind, Finished, FloorSession,
    Floors, Folder, FolderError, Hooks, Next, RuleWanted, ScopeHook,
};
use crate::import::{self, Metric, Observation};
use crate::measure::now;
use crate::os::signals;
use crate::util::count::count;
use crate::util::{printable, size};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    let (folder, finished) = perform(common, ExperimentKind::Repeat, "repeat", wanted)?;
    let (experiment, runs) = (&folder.experiment, &finished.observations[0]);
    let (Next::Repeated(state), Some(rule)) = (finished.end, experiment.repeat_rule()) else {
        return Err(refuse(
            "the experiment is not a series of repeated runs",
            "`wmlrun ab --resume` continues a comparison",
            2,
        ));
    };
    let document = repeats(&experiment.name, &experiment.metrics(), runs, &rule, state)
        .map_err(|e| refuse(&e, "name another metric", 2))?;
    print_text(&(common.format.repeats)(&document));
    Ok(state.code())
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
    let metric = std::slice::from_ref(&args.verdict.metric);
    let script = args.script.as_deref().unwrap_or_default();
    let wanted = |_: &AtomicUsize| wanted(common, script, &[&args.a, &args.b], metric, rule, args.hooks.0.clone());
    let (folder, finished) = perform(common, ExperimentKind::Ab, "ab", wanted)?;
    let experiment = &folder.experiment;
    let (Next::Compared(look), Some(tolerance), [metric, ..]) =
        (finished.end, experiment.tolerance(), &experiment.metrics()[..])
    else {
        return Err(refuse(
            "the experiment is not a comparison",
            "`wmlrun repeat --resume` continues repeated runs",
            2,
        ));
    };
    let floor = known_floor(&finished.observations, metric);
    let comparer =
        Comparer { tolerance, floor, look, ..Comparer::of(&experiment.name, experiment.arm_names(), metric) };
    let mut comparison = compared(&comparer, &finished)?;
    if experiment.has_equal_arms() {
        comparison.notes.insert(0, EQUAL_ARMS.to_owned());
    }
    Ok(conclude(&comparison, common.format, args.verdict.expect))
}

/// Compares the arms of an experiment.
fn compared(comparer: &Comparer, finished: &Finished) -> Result<Comparison, Refused> {
    let ([a, b], [control_a, control_b]) = (&finished.observations[..], &finished.controls[..]) else {
        return Err(refuse("the experiment does not have two arms", "start a new one in another folder", 2));
    };
    comparer
        .compare(&Runs { a, b, interleaved: true, control_a, control_b })
        .map_err(|e| refuse(&e, "name another metric", 2))
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
    let (folder, finished) = perform(common, ExperimentKind::Ab, "floor", wanted)?;
    let experiment = &folder.experiment;
    let [metric, ..] = &experiment.metrics()[..] else { return Err(Refused(2)) };
    if !experiment.has_equal_arms() {
        let text = format!("the arms of the experiment in {} are not equal", folder.path().display());
        return Err(refuse(&text, "`wmlrun ab --resume` continues a comparison", 2));
    }
    // The result is the noise floor, not the verdict.
    let comparer = Comparer { advises: false, ..Comparer::of(&experiment.name, experiment.arm_names(), metric) };
    let comparison = compared(&comparer, &finished)?;
    if comparison.verdict == ComparisonVerdict::Invalid {
        return Ok(conclude(&comparison, common.format, None));
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
    let floors = Floors::add(session, &path).map_err(refuse_file)?;
    let floor = floors.of(&comparison.metric, &place);
    print_text(&(common.format.comparison)(&Comparison { floor, ..comparison }));
    if let Some(floor) = floor {
        let (share, sessions) = (percent(floor.share), count(floor.sessions, "session"));
        let text = format!("noise floor ± {share} in {sessions}, stored in {}", path.display());
        if common.format.name == "text" {
            console::print_lines(&text);
        } else if !common.quiet {
            console::notice(&text);
        }
    }
    Ok(0)
}

/// Returns the noise floor of a comparison of these sides, of which each has its own conditions. Returns `None` if that
/// of a side has not been measured.
pub(super) fn known_floor<S: AsRef<[Observation]>>(sides: &[S], metric: &Metric) -> Option<NoiseFloor> {
    let places: Vec<_> = sides.iter().map(|side| experiment::place(side.as_ref())).collect::<Option<_>>()?;
    let floors = Floors::read(&Floors::path()?)
        .inspect_err(|e| console::notice(&format!("note: can't read the noise floors: {e}")))
        .ok()?;
    let of_sides = places.iter().map(|place| floors.of(&metric.to_string(), place)).collect::<Option<Vec<_>>>()?;
    of_sides.into_iter().reduce(NoiseFloor::wider)
}

/// Runs `wmlrun compare`. Returns the exit status.
pub(super) fn compare(args: &CompareArgs) -> u8 {
    status(try_compare(args))
}

fn try_compare(args: &CompareArgs) -> Result<u8, Refused> {
    let read = |path: &Path| import::side(path).map_err(|e| refuse(&e.to_string(), &e.help(), 2));
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let path = |path: &Path| path.display().to_string();
    let (name_a, name_b) = (path(&args.a), path(&args.b));
    let comparer = Comparer {
        tolerance: Tolerance(args.verdict.tolerance),
        method: args.method.method(),
        floor: known_floor(&[&a.runs, &b.runs], &args.verdict.metric),
        ..Comparer::of(&format!("{name_a} and {name_b}"), [&name_a, &name_b], &args.verdict.metric)
    };
    let mut comparison = comparer
        .compare(&Runs { a: &a.runs, b: &b.runs, interleaved: false, control_a: &[], control_b: &[] })
        .map_err(|e| refuse(&e, "name another metric with `--metric`", 2))?;
    comparison.notes.splice(0..0, a.notes.into_iter().chain(b.notes));
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
    Ok(conclude(&comparison, args.format, args.verdict.expect))
}

/// Prints a comparison. Returns the exit status of its verdict.
fn conclude(comparison: &Comparison, format: ResultFormat, expected: Option<Expected>) -> u8 {
    print_text(&(format.comparison)(comparison));
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
        Ok(bytes) => {
            console::print_lines(&format!("{}: {} removed", dir.display(), size::format(bytes)));
            0
        }
        Err(e) => {
            console::error(&e.to_string(), Some("give a results folder of an experiment, such as `repeat` or `ab`"));
            3
        }
    }
}

/// The default of `--command-timeout`.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

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
        let line = ArmLine::read(&own).map_err(|e| {
            let help = "it accepts a script and the options that define the workload (see `wmlrun ab --help`)";
            refuse(&format!("in `{option}`: {e}"), help, 2)
        })?;
        let mut words = args.words.0.clone();
        words.extend(own);
        if line.script().is_none() {
            words.push(script.to_owned());
        }
        let name = if arms.len() == 1 { script.to_owned() } else { options.to_owned() };
        Ok(Arm { name, words })
    };
    let arms: Vec<Arm> = arms.iter().map(AsRef::as_ref).enumerate().map(arm).collect::<Result<_, _>>()?;
    // A directory that `wmlrun floor` names is an option of both arms.
    let mut common = args.words.0.clone();
    common.push(script.to_owned());
    let common = if arms.iter().all(|arm| arm.words == arms[0].words) { arms[0].words.clone() } else { common };
    if !arms::check(&arms, &common, metrics, &option) {
        return Err(Refused(2));
    }
    describe(args, script, arms, metrics, rule, hooks)
}

/// Splits a text into words by the rules of a shell. The error is a message of one line.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|e| format!("can't be split into words: {e}"))
}

/// Returns the path of this program, with which runs are made.
pub(super) fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "wmlrun".into())
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
        name: name.to_owned(),
        created: now(),
        directory: directory.to_string_lossy().into_owned(),
        command_timeout: args.command_timeout.unwrap_or(COMMAND_TIMEOUT).as_secs_f64(),
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

/// Starts or resumes an experiment and performs all its runs. `command` is the command that resumes it.
pub(super) fn perform(
    args: &ExperimentArgs,
    kind: ExperimentKind,
    command: &str,
    wanted: impl FnOnce(&AtomicUsize) -> Result<Experiment, Refused>,
) -> Result<(Folder, Finished), Refused> {
    let (interrupt, _) = signals::install_handlers();
    let mut folder = match &args.resume {
        Some(path) => resume(path, kind, args.anyway)?,
        None => {
            let experiment = wanted(&interrupt)?;
            match &args.results {
                Some(path) => Folder::create(path, experiment),
                None => Folder::create_beside(&default_results(&experiment.name), experiment),
            }
            .map_err(refuse_folder)?
        }
    };
    let path = folder.path().display().to_string();
    let mut host = CliHost::of(args, &folder.experiment, interrupt);
    announce(&folder, &mut host);
    host.note(&format!("writing results to {path}"));
    match experiment::run(&mut folder, &mut host) {
        Ok(finished) => {
            host.note(&format!("results are in {path} ({})", size::format(experiment::bytes_below(folder.path()))));
            Ok((folder, finished))
        }
        Err(ExperimentError::Folder(e @ FolderError::Changed { .. })) => Err(refuse_folder(e)),
        Err(ExperimentError::Folder(e)) => Err(refuse(&e.to_string(), "the results up to here are kept", 3)),
        Err(ExperimentError::Interrupted(signal)) => {
            host.note(&format!("interrupted; `wmlrun {command} --resume {path}` continues"));
            Err(Refused(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))))
        }
        Err(ExperimentError::Failed { why, help, status }) => {
            let is_default = args.results.is_none() && args.resume.is_none();
            let removed = is_default && folder.remove_without_runs().map_err(refuse_folder)?;
            let kept = format!("{path} had no complete run and was removed; `--results DIR` keeps the output of a run");
            Err(refuse(&why, if removed { &kept } else { &help }, status))
        }
    }
}

/// Prints the error of a results folder. Returns the exit status.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn refuse_folder(e: FolderError) -> Refused {
    refuse(&e.to_string(), e.help(), 3)
}

/// Opens the folder of an interrupted experiment of this kind, in the working directory in which it was started.
fn resume(path: &Path, kind: ExperimentKind, anyway: bool) -> Result<Folder, Refused> {
    let experiment = Folder::description(path).map_err(refuse_folder)?;
    if experiment.kind() != kind {
        let other = experiment.kind().command();
        let text = format!("{} holds another kind of experiment", path.display());
        return Err(refuse(&text, &format!("`wmlrun {other} --resume` continues it"), 2));
    }
    let path = match arms::enter(&experiment.directory, path) {
        Ok(path) => path,
        // The user has moved the directory, and is in it.
        Err(_) if anyway => path.to_owned(),
        Err(e) => {
            let directory = printable::line(&experiment.directory).into_owned();
            let text = format!("the experiment was started in {directory}, which can't be entered: {e}");
            return Err(refuse(&text, "to continue it in the current directory, give `--anyway`", 3));
        }
    };
    let current =
        arms::identity(&experiment.arms, experiment.has_commands()).map_err(|(text, help)| refuse(&text, &help, 3))?;
    Folder::resume(&path, &current, anyway).map_err(refuse_folder)
}

/// Displays what happens beside the runs: the commands around them, the command that starts them, and eviction.
fn announce(folder: &Folder, host: &mut dyn ExperimentHost) {
    let experiment = &folder.experiment;
    for (name, command) in &experiment.hooks.0 {
        host.note(&format!("`--{name}` runs `{command}`"));
    }
    experiment.scopes.iter().flat_map(hook_lines).for_each(|line| host.note(&line));
    for command in &experiment.records {
        host.note(&format!("`record` runs `{command}` after each run"));
    }
    if !experiment.launch.is_empty() {
        host.note(&format!("`--launch` starts each run with `{}`", shell_words::join(&experiment.launch)));
    }
    let is_cold = |arm: &Arm| arms::line(arm).is_some_and(|line| line.workload.cold);
    let cold: Vec<&str> = experiment.arms.iter().filter(|arm| is_cold(arm)).map(|arm| arm.name.as_str()).collect();
    if !cold.is_empty() {
        let all = cold.len() == experiment.arms.len();
        let runs = if all { "each run".to_owned() } else { format!("runs with `{}`", cold.join("`, `")) };
        host.note(&format!("`--cold` evicts the file sets from the page cache before {runs}"));
    }
    if let Some(dropped) = folder.dropped() {
        host.note(dropped);
    }
}

/// Describes the commands of a scope, a line for each.
pub(super) fn hook_lines(hook: &ScopeHook) -> Vec<String> {
    let line = |(before, text): (bool, &str)| {
        let word = if before { "before" } else { "after" };
        format!("{}: `{word}` runs `{text}`", hook.origin(before))
    };
    hook.commands().map(line).collect()
}

/// Returns the default results folder, `wmlrun-results/NAME-TIME`. It may exist.
fn default_results(script: &str) -> PathBuf {
    let stem = Path::new(script).file_stem().map_or_else(|| "script".into(), |stem| stem.to_string_lossy());
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let name: String = stem.chars().map(plain).collect();
    let time = now().replace([':', '-'], "");
    Path::new("wmlrun-results").join(format!("{name}-{time}"))
}

/// The command line's implementation of [`ExperimentHost`].
struct CliHost {
    quiet: bool,
    interrupt: Arc<AtomicUsize>,
    hook_limit: Duration,
    budget: Option<Duration>,
    /// For each arm, the directories of its file sets.
    dirs: Vec<Vec<PathBuf>>,
}

impl CliHost {
    fn of(args: &ExperimentArgs, experiment: &Experiment, interrupt: Arc<AtomicUsize>) -> Self {
        let recorded = Duration::try_from_secs_f64(experiment.command_timeout).unwrap_or(COMMAND_TIMEOUT);
        let hook_limit = args.command_timeout.unwrap_or(recorded);
        let dirs = experiment.arms.iter().map(arms::dirs).collect();
        Self { quiet: args.quiet, interrupt, hook_limit, budget: args.budget, dirs }
    }
}

impl ExperimentHost for CliHost {
    fn note(&mut self, text: &str) {
        if !self.quiet {
            console::notice(text);
        }
    }

    fn interrupted(&self) -> Option<i32> {
        match self.interrupt.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    fn program(&self) -> PathBuf {
        program()
    }

    fn hook_limit(&self) -> Duration {
        self.hook_limit
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn dirs(&self, arm: usize) -> Vec<PathBuf> {
        self.dirs.get(arm).cloned().unwrap_or_default()
    }
}
