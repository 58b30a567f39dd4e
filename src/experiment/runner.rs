//! Executes the runs of an experiment, one after another, and records each.

use super::control;
use super::design::{Design, Next, Prediction};
use super::folder::{Folder, FolderError, KeptRun, io_error};
use super::hooks::{self, HookEnd};
use super::identity;
use super::journal::Event;
use super::replay::UnderWay;
use super::wanted::ExperimentKind;
use crate::disk::quiesce;
use crate::import::Observation;
use crate::measure::now;
use crate::os::child::Group;
use crate::util::{duration, printable};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The services that the command line provides to an experiment.
pub trait ExperimentHost {
    /// Displays a note of one line.
    fn note(&mut self, text: &str);

    /// Returns the signal that was received, or `None`.
    fn interrupted(&self) -> Option<i32>;

    /// Returns the path of this program.
    fn program(&self) -> PathBuf;

    /// Returns the maximum duration of a command before or after a run.
    fn hook_limit(&self) -> Duration;

    /// Returns the maximum duration of all runs of this call; `None` when it is unlimited.
    fn budget(&self) -> Option<Duration>;

    /// Returns the directories of an arm's file sets. They need not exist.
    fn dirs(&self, arm: usize) -> Vec<PathBuf>;
}

/// A complete experiment.
#[derive(Debug)]
pub struct Finished {
    /// The observations of each arm, in the order of time.
    pub observations: Vec<Vec<Observation>>,
    /// The speeds of the negative control of each arm, for each run the mean of those before and after it; empty unless
    /// two arms are compared.
    pub controls: Vec<Vec<f64>>,
    /// The last step of the design.
    pub end: Next,
}

/// The reason why an experiment stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The results folder can't be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A signal was received.
    #[error("interrupted")]
    Interrupted(i32),
    /// A run or a command failed.
    #[error("{why}")]
    Failed {
        /// The reason.
        why: String,
        /// The help: what to do.
        help: String,
        /// The exit status.
        status: u8,
    },
}

/// The time that a run has to end after it was signalled.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// The number of bytes of a command's output in which its last line is looked for.
const LAST_BYTES: usize = 4096;

/// Executes all remaining runs of an experiment. Returns an error when it is interrupted, or when a run or a command
/// fails.
pub fn run(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<Finished, ExperimentError> {
    let result = run_all(folder, host);
    let event = match &result {
        Ok(_) => Event::Ended { time: now() },
        Err(ExperimentError::Folder(_)) => return result,
        Err(error) => Event::Stopped { why: error.to_string(), time: now() },
    };
    folder.write(&event)?;
    result
}

/// Executes the remaining runs without the last event of the journal.
fn run_all(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<Finished, ExperimentError> {
    let began = Instant::now();
    let mut set_up = match folder.under_way.take() {
        Some(under_way) => recover(folder, under_way, host)?,
        None => BTreeSet::new(),
    };
    loop {
        // The signal may have been received between two runs.
        if let Some(signal) = host.interrupted() {
            return Err(ExperimentError::Interrupted(signal));
        }
        let experiment = folder.experiment.clone();
        let design = Design::new(&experiment);
        let values = values(folder)?;
        match design.next(&values) {
            Next::Run { arm, progress } => {
                let fits = host.budget().and_then(|budget| {
                    let left = budget.saturating_sub(began.elapsed());
                    design.runs_within(values.len(), left, folder.longest_run())
                });
                if fits.is_some_and(|fits| fits <= values.len())
                    && let Some(end) = design.early_end(values.len())
                {
                    let (done, wanted) = (values.len(), progress.predicted_runs);
                    host.note(&format!("the budget is spent after {done} of {wanted} runs"));
                    return Ok(finished(folder, end));
                }
                if let Some(pilot) = progress.pilot {
                    let left = time_left(folder, progress.predicted_runs);
                    host.note(&format!("{}: {} runs{left}", pilot_text(pilot), progress.predicted_runs));
                }
                report(folder, &progress, fits, host);
                make_run(folder, arm, design.seed(values.len()), &std::mem::take(&mut set_up), host)?;
            }
            end => return Ok(finished(folder, end)),
        }
    }
}

/// Returns the arm and the values of the experiment's metrics for each run so far.
fn values(folder: &Folder) -> Result<Vec<(usize, Vec<f64>)>, ExperimentError> {
    if folder.experiment.kind() == ExperimentKind::Sweep {
        // The design of a load curve depends only on the number of runs, and failed runs have no values.
        return Ok(folder.runs.iter().map(|run| (run.arm, Vec::new())).collect());
    }
    let metrics = folder.experiment.metrics();
    let of_run = |run: &KeptRun| {
        let values = metrics.iter().map(|metric| metric.of(&run.observation).ok_or(metric)).collect::<Result<_, _>>();
        values.map(|values| (run.arm, values)).map_err(|metric| {
            let names: Vec<&str> = run.observation.figures.keys().map(String::as_str).collect();
            ExperimentError::Failed {
                why: format!("{} has no `{metric}`", run.observation.source),
                help: format!("its metrics are {}", names.join(", ")),
                status: 2,
            }
        })
    };
    folder.runs.iter().map(of_run).collect()
}

/// Collects the results of all runs by arm.
fn finished(folder: &Folder, end: Next) -> Finished {
    let arms = folder.experiment.arms.len();
    let mut found = Finished { observations: vec![Vec::new(); arms], controls: vec![Vec::new(); arms], end };
    for run in &folder.runs {
        let arm = run.arm.min(arms - 1);
        found.observations[arm].push(run.observation.clone());
        found.controls[arm].extend(run.control);
    }
    found
}

/// Displays the number of the next run, the predicted number of runs, and the predicted time left. `fits` is the number
/// of runs that end within the budget.
fn report(folder: &Folder, progress: &Prediction, fits: Option<usize>, host: &mut dyn ExperimentHost) {
    let done = folder.runs.len();
    let fits = fits.map(|fits| fits as u64).filter(|fits| *fits < progress.predicted_runs);
    let mut text = match fits {
        Some(fits) => format!("run {}, about {fits} fit into the budget", done + 1),
        None if progress.at_most => format!("run {} of at most {}", done + 1, progress.predicted_runs),
        None => format!("run {} of {}", done + 1, progress.predicted_runs),
    };
    if let Some((metric, half)) = progress.widest {
        let metrics = &folder.experiment.metrics;
        text += &format!(", {} ± {:.1} %", metrics[metric.min(metrics.len() - 1)], half * 100.0);
    }
    text += &time_left(folder, fits.unwrap_or(progress.predicted_runs));
    host.note(&text);
}

/// Returns the number of blocks that a pilot asks for. See [`Prediction::pilot`].
fn pilot_text((blocks, needed): (u64, Option<u64>)) -> String {
    match needed {
        Some(needed) if needed <= blocks => format!("the pilot asks for {blocks} blocks"),
        Some(needed) => format!("the pilot asks for {needed} blocks, of which the first {blocks} are made"),
        None => format!("the pilot asks for more than 1000 blocks, of which the first {blocks} are made"),
    }
}

/// Returns the time that the runs up to number `runs` will take, in the form `, 11 min left`. Returns an empty text as
/// long as the duration of a run is unknown.
fn time_left(folder: &Folder, runs: u64) -> String {
    let seconds: Vec<f64> = folder.runs.iter().filter_map(|run| run.seconds).collect();
    if seconds.is_empty() {
        return String::new();
    }
    let each = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let rest = runs.saturating_sub(folder.runs.len() as u64) as f64 * each;
    format!(", {} left", duration::format(Duration::from_secs(rest.ceil() as u64)))
}

/// Handles a run that was in progress when the experiment was interrupted: executes the commands after it that have not
/// been executed, and records the run if its result is complete. Otherwise the run is made again; then the names of the
/// hooks before it whose commands have succeeded are returned.
fn recover(
    folder: &mut Folder,
    under_way: UnderWay,
    host: &mut dyn ExperimentHost,
) -> Result<BTreeSet<String>, ExperimentError> {
    let UnderWay { run, arm, control, started, set_up, torn_down } = under_way;
    let arm = arm.unwrap_or_else(|| Design::new(&folder.experiment).arm(run - 1));
    for (name, text) in commands(folder, false, arm) {
        if torn_down.contains(name) {
            continue;
        }
        match run_hook(folder, run, name, &text, host) {
            // The command before the run that it undoes may not have had its effect, or it was itself interrupted after
            // it had its own.
            Err(ExperimentError::Failed { why, .. }) => host.note(&tolerated(&why)),
            ended => ended?,
        }
    }
    if started
        && run == folder.runs.len() + 1
        && let Ok(observation) = folder.observation(run)
        && observation.failure.is_none()
    {
        folder.keep(KeptRun { arm, control, seconds: None, observation }, None)?;
        return Ok(BTreeSet::new());
    }
    Ok(set_up)
}

/// Returns the note on a failed command that does not end the experiment.
fn tolerated(why: &str) -> String {
    format!("{why}; the experiment continues, because it was interrupted in this run")
}

/// The end of a measurement.
struct Measured {
    /// The speed of the negative control before it.
    before: Option<f64>,
    /// The speed of the negative control after it.
    after: Option<f64>,
}

/// Makes one run: commands before it, control, measurement, control, commands after it, record. `set_up` has the names
/// of the hooks before it whose commands succeeded in an attempt that was interrupted.
fn make_run(
    folder: &mut Folder,
    arm: usize,
    seed: u64,
    set_up: &BTreeSet<String>,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let number = folder.runs.len() + 1;
    let began = Instant::now();
    folder.clear(number)?;
    let prepared = prepare(folder, number, arm, set_up, host);
    let is_prepared = prepared.is_ok();
    let ended = prepared.and_then(|mounts| measure(folder, number, arm, seed, mounts, host));
    // The commands after a run are executed even if the run or a command before it failed, because they undo the
    // commands before it.
    let has_begun = is_prepared || !commands(folder, true, arm).is_empty();
    let teardown = if has_begun { run_after_hooks(folder, number, arm, host) } else { Ok(()) };
    // A level at which the run fails is a point of the curve. An error in the script (status 2) would fail at every
    // level and ends the experiment.
    let is_point = is_prepared && folder.experiment.kind() == ExperimentKind::Sweep;
    let controls = match ended {
        Err(ExperimentError::Failed { why, status: 1 | 3, .. }) if is_point => {
            teardown?;
            let why = reason(folder, number).unwrap_or(why);
            return Ok(folder.keep_failed(arm, why)?);
        }
        ended => ended?,
    };
    teardown?;
    let observation = folder.observation(number)?;
    if let Some(failure) = &observation.failure {
        return Err(failed(folder, number, failure.clone(), 1));
    }
    let seconds = Some(began.elapsed().as_secs_f64());
    Ok(folder.keep(KeptRun { arm, control: controls.before, seconds, observation }, controls.after)?)
}

/// Executes the commands before a run. Returns the mounts of its file sets, which are checked against those before an
/// interruption.
fn prepare(
    folder: &mut Folder,
    number: usize,
    arm: usize,
    set_up: &BTreeSet<String>,
    host: &mut dyn ExperimentHost,
) -> Result<Vec<String>, ExperimentError> {
    for (name, text) in commands(folder, true, arm) {
        match run_hook(folder, number, name, &text, host) {
            // Its effect may still be in place, such as that of `umount`, so that it can't succeed again.
            Err(ExperimentError::Failed { why, .. }) if set_up.contains(name) => host.note(&tolerated(&why)),
            ended => ended?,
        }
    }
    let mounts = identity::mounts(&host.dirs(arm));
    folder.check_mounts(arm, &mounts)?;
    Ok(mounts)
}

/// Measures between two negative controls, each after writeback is done: background work of the measured file system is
/// a cause of a difference, not a change of the machine.
fn measure(
    folder: &mut Folder,
    number: usize,
    arm: usize,
    seed: u64,
    mounts: Vec<String>,
    host: &mut dyn ExperimentHost,
) -> Result<Measured, ExperimentError> {
    let is_controlled = folder.experiment.kind() == ExperimentKind::Ab;
    quiesce_disks(folder, host);
    // Both controls of a run have the same duration.
    let span = control::span(Some(folder.longest_run()).filter(|run| !run.is_zero()));
    let before = is_controlled.then(|| control::speed(span));
    folder.write(&Event::Started { run: number as u64, arm: arm as u64, control: before, mounts, time: now() })?;
    start_program(folder, number, arm, seed, host)?;
    if !is_controlled {
        return Ok(Measured { before, after: None });
    }
    quiesce_disks(folder, host);
    Ok(Measured { before, after: Some(control::speed(span)) })
}

/// Returns the commands before or after a run of an arm, with the names of their hooks.
fn commands(folder: &Folder, before: bool, arm: usize) -> Vec<(&'static str, String)> {
    let found = folder.experiment.hooks.of(before, arm);
    found.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
}

/// Executes the commands after a run.
fn run_after_hooks(
    folder: &mut Folder,
    number: usize,
    arm: usize,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    for (name, text) in commands(folder, false, arm) {
        run_hook(folder, number, name, &text, host)?;
    }
    Ok(())
}

/// Executes one command and records it in the journal.
fn run_hook(
    folder: &mut Folder,
    number: usize,
    name: &str,
    text: &str,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let log = folder.hook_log(number, name);
    let (run, hook) = (number as u64, name.to_owned());
    let interrupted_before = host.interrupted();
    // A signal that was received earlier does not interrupt the command: commands after a run undo the commands before
    // it, so they are executed also when the user ends the experiment.
    let interrupted = || host.interrupted() != interrupted_before;
    let recorded = folder.write(&Event::HookStarted { run, name: hook.clone() });
    // A command after a run is executed also when the disk of the folder is full.
    if hooks::is_before(name) && recorded.is_err() {
        return Ok(recorded?);
    }
    match hooks::run(text, &log, host.hook_limit(), &interrupted).map_err(io_error(&log))? {
        HookEnd::Done(took) => {
            recorded?;
            Ok(folder.write(&Event::Hook { run, name: hook, seconds: took.as_secs_f64() })?)
        }
        HookEnd::Interrupted => Err(ExperimentError::Interrupted(host.interrupted().unwrap_or(2))),
        HookEnd::Failed(why) => {
            let said = last_line(&log).map_or_else(String::new, |line| format!(": {}", printable::short(&line, 200)));
            let why = format!("`--{name}` of run {number} failed: {why}{said}");
            folder.write(&Event::HookFailed { run, name: hook, why: why.clone() })?;
            Err(ExperimentError::Failed { why, help: format!("see {}", log.display()), status: 1 })
        }
    }
}

/// Waits until the disks of all arms are idle, so that the writeback of one arm affects neither the control nor the
/// next arm.
fn quiesce_disks(folder: &Folder, host: &dyn ExperimentHost) {
    let existing = |dir: PathBuf| {
        let found = dir.ancestors().find(|dir| dir.is_dir());
        found.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
    };
    let arms = 0..folder.experiment.arms.len();
    let dirs: BTreeSet<PathBuf> = arms.flat_map(|arm| host.dirs(arm)).map(existing).collect();
    // The run itself reports a file system that can't be written back.
    let _ = quiesce::quiesce(&dirs.into_iter().collect::<Vec<_>>(), &AtomicBool::new(false));
}

/// Executes the program for a run of an arm. Returns an error when it fails or the experiment is interrupted.
fn start_program(
    folder: &Folder,
    number: usize,
    arm: usize,
    seed: u64,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let experiment = &folder.experiment;
    let program = host.program().display().to_string();
    let mut words: Vec<String> = experiment.launch.clone();
    words.push(program);
    words.extend(experiment.arms[arm].words.iter().cloned());
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed={seed}"));
    }
    words.push(format!("--json={}", folder.result(number).display()));
    // The file of a run that is repeated may have any content.
    words.push("--force".to_owned());
    words.push(format!("--results={}", folder.files(number).display()));
    words.push("--format=none".to_owned());
    let log = folder.log(number);
    let io = |error| FolderError::Io { path: log.clone(), error };
    let file = File::create(&log).map_err(io)?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
    let mut group = Group::spawn(command).map_err(|e| ExperimentError::Failed {
        why: format!("can't start `{}`: {e}", words[0]),
        help: "check the program that `--launch` names".to_owned(),
        status: 3,
    })?;
    loop {
        match group.wait(Duration::from_millis(100)).map_err(io)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                if let Some(signal) = host.interrupted() {
                    return Err(ExperimentError::Interrupted(signal));
                }
                let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
                return Err(failed(folder, number, status.to_string(), code));
            }
            None => {}
        }
        if let Some(signal) = host.interrupted() {
            group.end(END_TIMEOUT);
            return Err(ExperimentError::Interrupted(signal));
        }
    }
}

/// Makes the error of a failed run.
fn failed(folder: &Folder, number: usize, why: String, status: u8) -> ExperimentError {
    ExperimentError::Failed {
        why: format!("run {number} failed: {}", reason(folder, number).unwrap_or(why)),
        help: format!("see {}", folder.log(number).display()),
        status,
    }
}

/// Returns the last line of a command's output that is not empty, or `None` when there is none.
fn last_line(log: &Path) -> Option<String> {
    let bytes = std::fs::read(log).ok()?;
    // The output may be long, or not text.
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LAST_BYTES)..]);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

/// Returns the last error message in a run's output, or `None` when there is none.
fn reason(folder: &Folder, number: usize) -> Option<String> {
    let text = std::fs::read_to_string(folder.log(number)).ok()?;
    let line = text.lines().rev().find(|line| line.starts_with("error"))?;
    Some(line.strip_prefix("error: ").unwrap_or(line).to_owned())
}

#[cfg(test)]
#[path = "runner_tests.rs"]
pub(super) mod tests;
