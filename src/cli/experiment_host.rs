//! Starts, performs and resumes the experiments of all commands: the results folder, what is displayed during the runs,
//! and the errors that end them.
//!
//! Not in here: the descriptions of experiments, and their results (`experiments`, `curves`, `experiment_file`).

use super::arms::{self, PlannedArm};
use super::console;
use super::experiment_args::{ArmLine, Expected, ExperimentArgs};
use super::experiment_block::ExperimentBlock;
use super::experiment_outputs::RunOutputs;
use super::experiment_permission::{check_permission, command_lines};
use super::experiments::{COMMAND_TIMEOUT, check_retries, print_text, program, verdict_status};
use super::option_values::is_stdout;
use super::stdout::to_stderr;
use super::{failed_command, watchdog};
use crate::analysis::NoiseFloor;
use crate::diag::{Failure, Status};
use crate::experiment::{
    self, Experiment, ExperimentDocument, ExperimentError, ExperimentHost, ExperimentKind, Folder, FolderError,
    RecordedExperiment, RunEnd, Standing, time_left,
};
use crate::import::folder::RUNS;
use crate::import::{Metric, Observation};
use crate::os::signals;
use crate::result::LimitOutcome;
use crate::sheet::mail;
use crate::util::count::count;
use crate::util::{printable, size};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A complete experiment, of which the result is to be printed.
pub(super) struct Performed {
    pub(super) recorded: RecordedExperiment,
    pub(super) outputs: RunOutputs,
    /// Whether all outputs besides the result could be written.
    has_outputs: bool,
}

impl Performed {
    /// Prints the result: to standard error if standard output belongs to the live stream.
    pub(super) fn print(&self, text: &str) {
        if !self.outputs.takes_stdout() {
            return print_text(text);
        }
        to_stderr(text);
    }

    /// Returns the exit status: 1 instead of 0 if an output could not be written.
    pub(super) fn status(&self, status: u8) -> u8 {
        if status == 0 && !self.has_outputs { 1 } else { status }
    }
}

/// Starts or resumes an experiment, performs all its runs and prints their result. `wanted` describes a new one, `adapt`
/// changes what is shown of it. Returns the exit status.
pub(super) fn study(
    args: &ExperimentArgs,
    kind: ExperimentKind,
    expected: Option<Expected>,
    wanted: impl FnOnce() -> Result<(Experiment, Vec<PlannedArm>), Failure>,
    adapt: impl FnOnce(&mut Experiment),
) -> Result<u8, Failure> {
    let mut performed = perform(args, kind, kind.command(), wanted)?;
    adapt(&mut performed.recorded.experiment);
    let recorded = &performed.recorded;
    let document = recorded.document(floor_of(recorded)).map_err(|e| Failure::wrong(e, "name another metric"))?;
    performed.print(&document.formatted(args.format));
    if let Some(text) = recorded.failed_runs() {
        let runs = recorded.path.join(RUNS);
        return Err(Failure::failed(text, format!("the output of each run is in {}", runs.display())));
    }
    let code = match &document {
        ExperimentDocument::Comparison(found) => verdict_status(found, expected),
        other => other.code(),
    };
    Ok(performed.status(LimitOutcome::status(&recorded.limits(), code)))
}

/// The noise floor of the workload of a comparison, if it has been measured.
pub(super) fn floor_of(recorded: &RecordedExperiment) -> Option<NoiseFloor> {
    let [metric, ..] = &recorded.experiment.metrics()[..] else { return None };
    let is_comparison = recorded.experiment.kind() == ExperimentKind::Ab;
    is_comparison.then(|| known_floor(&recorded.observations(), metric)).flatten()
}

/// The noise floor of a comparison of these sides, if it has been measured. See [`experiment::known_floor`].
pub(super) fn known_floor<S: AsRef<[Observation]>>(sides: &[S], metric: &Metric) -> Option<NoiseFloor> {
    let found = experiment::known_floor(sides, metric);
    found.inspect_err(|e| console::notice(&format!("note: can't read the noise floors: {e}"))).ok().flatten()
}

/// Starts or resumes an experiment and performs all its runs. `command` is the command that resumes it.
pub(super) fn perform(
    args: &ExperimentArgs,
    kind: ExperimentKind,
    command: &str,
    wanted: impl FnOnce() -> Result<(Experiment, Vec<PlannedArm>), Failure>,
) -> Result<Performed, Failure> {
    let (interrupt, _) = signals::install_handlers();
    let _kept = signals::Kept::begin();
    let help = format!("if the experiment has begun, `wmlrun {command} --resume DIR` continues it");
    let _watchdog = watchdog::start_between_runs(help);
    let outputs = RunOutputs::open(args)?;
    let (mut folder, planned) = match &args.resume {
        Some(path) => resume(path, kind, args, &outputs)?,
        None => {
            let (experiment, planned) = checked(wanted()?, &outputs)?;
            let folder = match &args.results {
                Some(path) => Folder::create(path, experiment),
                None => Folder::create_beside(&experiment.default_folder(), experiment),
            };
            (folder.map_err(refuse_folder)?, planned)
        }
    };
    let path = folder.path().display().to_string();
    let mut host = CliHost::of(args, &folder.experiment, &planned, interrupt, outputs);
    announce(&folder, &planned, &mut host);
    host.note(&match args.resume {
        Some(_) => format!("results folder {path}: {} so far", count(folder.run_count() as u64, "run")),
        None => format!("writing results to {path}"),
    });
    let result = experiment::run(&mut folder, &mut host);
    host.block = None;
    let has_outputs = host.outputs.finish();
    match result {
        Ok(recorded) => {
            host.note(&format!("results are in {path} ({})", size::format(experiment::bytes_below(folder.path()))));
            Ok(Performed { recorded, outputs: host.outputs, has_outputs })
        }
        Err(ExperimentError::Folder(e @ (FolderError::Changed { .. } | FolderError::Moved { .. }))) => {
            Err(refuse_folder(e))
        }
        Err(ExperimentError::Folder(e)) => Err(Failure::refused(e.to_string(), "the results up to here are kept")),
        Err(ExperimentError::Interrupted(signal)) => {
            // Also with `--quiet`: nothing else says why the result is missing.
            console::notice(&format!("interrupted; `wmlrun {command} --resume {path}` continues"));
            Err(Failure::unexplained(Status::Interrupted(u8::try_from(signal).unwrap_or(0))))
        }
        Err(ExperimentError::Failed { why, help, status }) => {
            print_failed(args, &folder, &why);
            let help = match folder.experiment.keeps_failures() && folder.run_count() > 0 {
                true => format!("{help}; `wmlrun report {path} -o page.html` shows the runs so far"),
                false => help,
            };
            // The search for a peak says what to do, and leaves no output of a run.
            if args.resume.is_none() && folder.experiment.rule.awaits_peak() {
                folder.remove_without_runs().map_err(refuse_folder)?;
                return Err(Failure::new(Status::of_code(status), why, help));
            }
            let kept = removed(args, folder)?;
            Err(Failure::new(Status::of_code(status), why, kept.unwrap_or(help)))
        }
        Err(ExperimentError::Command(failed)) => {
            let experiment = folder.experiment.clone();
            let help = removed(args, folder)?.unwrap_or_else(|| format!("see {}", failed.log.display()));
            Err(failed_command::failure(&experiment, &failed, &help))
        }
    }
}

/// Prints that an experiment failed, if its answer is a mail.
fn print_failed(args: &ExperimentArgs, folder: &Folder, why: &str) {
    let is_told = args.format.name == "mail" && args.live.as_ref().is_none_or(|live| !is_stdout(&live.path));
    if let Some(recorded) = is_told.then(|| RecordedExperiment::read(folder.path()).ok()).flatten() {
        print_text(&mail::write(&recorded.failed_sheet(why)));
    }
}

/// Checks a new experiment before its folder is made, and adds the current conditions to it.
fn checked(
    (mut experiment, planned): (Experiment, Vec<PlannedArm>),
    outputs: &RunOutputs,
) -> Result<(Experiment, Vec<PlannedArm>), Failure> {
    arms::check_places(&experiment, &planned)?;
    outputs.check_outside(&planned)?;
    experiment.identity = arms::identity(&planned, experiment.has_commands());
    Ok((experiment, planned))
}

/// Removes the results folder of an experiment that failed if no run has ended and no option names it. Returns the help
/// that says so.
fn removed(args: &ExperimentArgs, folder: Folder) -> Result<Option<String>, Failure> {
    if args.results.is_some() || args.resume.is_some() {
        return Ok(None);
    }
    let path = folder.path().display().to_string();
    let is_removed = folder.remove_without_runs().map_err(refuse_folder)?;
    let text = format!("{path} had no complete run and was removed; `--results DIR` keeps the output of a run");
    Ok(is_removed.then_some(text))
}

/// The failure of a results folder.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn refuse_folder(e: FolderError) -> Failure {
    Failure::refused(e.to_string(), e.help())
}

/// Opens the folder of an interrupted experiment of this kind, in the working directory in which it was started. Returns
/// it with its arms.
fn resume(
    path: &Path,
    kind: ExperimentKind,
    args: &ExperimentArgs,
    outputs: &RunOutputs,
) -> Result<(Folder, Vec<PlannedArm>), Failure> {
    let experiment = Folder::description(path).map_err(refuse_folder)?;
    if experiment.kind() != kind {
        let other = experiment.kind().command();
        let text = format!("{} holds another kind of experiment", path.display());
        return Err(Failure::wrong(text, format!("`wmlrun {other} --resume` continues it")));
    }
    check_permission(path, &experiment, args.words.allow_system())?;
    let path = match arms::enter(&experiment.directory, path) {
        Ok(path) => path,
        // The user has moved the directory, and is in it.
        Err(_) if args.anyway => path.to_owned(),
        Err(e) => {
            let directory = printable::line(&experiment.directory).into_owned();
            let text = format!("the experiment was started in {directory}, which can't be entered: {e}");
            return Err(Failure::refused(text, "to continue it in the current directory, give `--anyway`"));
        }
    };
    let words = experiment.arms.iter().enumerate().map(|(n, arm)| experiment.rule.planned_words(n, &arm.words));
    let planned: Result<Vec<PlannedArm>, Failure> = words.map(|words| PlannedArm::read(&words, false)).collect();
    let planned = planned.map_err(|failure| Failure { status: Status::Refused, ..failure })?;
    let current = arms::identity(&planned, experiment.has_commands());
    outputs.check_outside(&planned)?;
    let mut folder = Folder::resume(&path, &current, args.anyway).map_err(refuse_folder)?;
    if let Some(retries) = args.retry_disturbed {
        check_retries(retries, &folder.experiment.rule)?;
        Arc::make_mut(&mut folder.experiment).retry_disturbed = retries;
    }
    if let Some(runs) = args.extended {
        folder.extend(runs).map_err(refuse_folder)?;
    }
    Ok((folder, planned))
}

/// Displays what happens beside the runs: the commands around them, the command that starts them, and eviction.
fn announce(folder: &Folder, planned: &[PlannedArm], host: &mut dyn ExperimentHost) {
    let experiment = &folder.experiment;
    command_lines(experiment).iter().for_each(|line| host.note(line));
    let arms = experiment.arms.iter().zip(planned);
    let cold: Vec<&str> = arms.filter(|(_, arm)| arm.line.settings.0.cold).map(|(arm, _)| arm.name.as_str()).collect();
    if !cold.is_empty() {
        let all = cold.len() == experiment.arms.len();
        let runs = if all { "each run".to_owned() } else { format!("runs with `{}`", cold.join("`, `")) };
        host.note(&format!("`--cold` evicts the file sets from the page cache before {runs}"));
    }
    if let Some(dropped) = folder.dropped() {
        host.note(dropped);
    }
    if folder.is_after_reboot() {
        host.note("the machine was rebooted since the experiment was interrupted: all scopes begin again");
    }
}

/// The command line's implementation of [`ExperimentHost`].
struct CliHost {
    quiet: bool,
    interrupt: Arc<AtomicUsize>,
    hook_limit: Duration,
    budget: Option<Duration>,
    /// For each arm, the directories of its file sets, and those of all arms.
    dirs: Vec<Vec<PathBuf>>,
    all_dirs: BTreeSet<PathBuf>,
    outputs: RunOutputs,
    /// The display on a terminal.
    block: Option<ExperimentBlock>,
    /// The run that is made; empty between two runs.
    run: String,
    /// The time left when it began.
    remaining: Option<Duration>,
}

impl CliHost {
    fn of(
        args: &ExperimentArgs,
        experiment: &Experiment,
        planned: &[PlannedArm],
        interrupt: Arc<AtomicUsize>,
        outputs: RunOutputs,
    ) -> Self {
        let dirs: Vec<Vec<PathBuf>> = planned.iter().map(|arm| arm.places.dirs.clone()).collect();
        let all_dirs = dirs.iter().flatten().cloned().collect();
        let recorded = Duration::try_from_secs_f64(experiment.command_timeout).unwrap_or(COMMAND_TIMEOUT);
        let hook_limit = args.command_timeout.unwrap_or(recorded);
        let (quiet, budget) = (args.quiet, args.budget);
        let block = if quiet { None } else { ExperimentBlock::new() };
        let (run, remaining) = (String::new(), None);
        Self { quiet, interrupt, hook_limit, budget, dirs, all_dirs, outputs, block, run, remaining }
    }

    /// Prints something while the display is not there.
    fn aside(&mut self, print: impl FnOnce(&mut Self)) {
        if let Some(block) = &mut self.block {
            block.clear();
        }
        print(self);
        if let Some(block) = &mut self.block {
            block.draw();
        }
    }
}

impl ExperimentHost for CliHost {
    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.aside(|_| console::notice(text));
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

    fn command(&self, words: &[String]) -> Option<&'static str> {
        ArmLine::read(words).ok().and_then(|line| arms::trace_of(&line)).map(|_| "replay")
    }

    fn hook_limit(&self) -> Duration {
        self.hook_limit
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn dirs(&self, arm: usize) -> Vec<PathBuf> {
        // A load that a search has added is in the directories of the first one.
        self.dirs.get(arm).or(self.dirs.first()).cloned().unwrap_or_default()
    }

    fn all_dirs(&self) -> &BTreeSet<PathBuf> {
        &self.all_dirs
    }

    fn check_outputs(&self) -> std::io::Result<()> {
        self.outputs.check_in_place()
    }

    fn run_starts(&mut self, standing: &Standing<'_>) {
        let precision = standing.precision().map_or_else(String::new, |text| format!(", {text}"));
        self.run = standing.run() + &precision;
        self.remaining = standing.remaining();
        if let Some(block) = &mut self.block {
            block.show(standing);
        }
    }

    fn waits(&mut self) {
        if let Some(block) = &mut self.block {
            block.tick();
        }
    }

    /// Without a block, each run has a line. A program that reads a result gets it in the same text if both streams are
    /// one; therefore it has no figure with a unit of a result, such as `9 ops/s`.
    fn run_ended(&mut self, experiment: &Experiment, run: &RunEnd<'_>) {
        let (mut text, left) = (std::mem::take(&mut self.run), self.remaining.take());
        if self.block.is_none() || run.failure.is_some() {
            // A run that had ended before the experiment was resumed did not begin here.
            if text.is_empty() {
                text = format!("run {}{}", run.number, experiment.arm_suffix(run.arm));
            }
            let took = Duration::try_from_secs_f64(run.seconds.unwrap_or(0.0)).unwrap_or_default();
            let left = left.map_or_else(String::new, |left| format!(", {}", time_left(left.saturating_sub(took))));
            self.note(&format!("{text}: {}{left}", run.outcome()));
        }
        self.aside(|host| host.outputs.run_ended(experiment, run));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::args::{self, CliCommand};
    use crate::cli::experiments::wanted;
    use crate::experiment::{Blocks, RuleWanted};
    use crate::session::COMPILED;

    #[test]
    fn each_arm_is_planned_once_before_the_first_run() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("x.wml");
        let text = "set $n=1\ndefine fileset name=s,path=$dir,entries=$n,size=1k,prealloc\n\
                    define process name=p { thread name=t { flowop statfile name=st,filesetname=s } }\n";
        std::fs::write(&script, text).unwrap();
        let (script, dir) = (script.to_str().unwrap(), dir.path().to_str().unwrap());
        let words = ["wmlrun", "ab", script, "--a=--set n=2", "--b=--set n=3", "--dir", dir].map(Into::into);
        let Some(CliCommand::Ab(args)) = args::read(&words).unwrap().command else { panic!("no comparison") };
        let outputs = RunOutputs::open(&args.experiment).unwrap();
        let before = COMPILED.get();
        let rule = RuleWanted::Ab { tolerance: 0.01, blocks: Blocks::Pilot };
        let arms = [&args.a, &args.b];
        let wanted = wanted(&args.experiment, script, &arms, &[Metric::ops()], rule, args.hooks.0.clone());
        let (experiment, planned) = checked(wanted.unwrap(), &outputs).unwrap();
        assert_eq!((COMPILED.get() - before, planned.len(), experiment.identity.scripts.len()), (2, 2, 2));
    }
}
