//! Makes the runs of an experiment, one after another, and keeps each.

use super::control;
use super::design::{Design, Next, Prediction};
use super::folder::{Folder, FolderError, KeptRun, UnderWay};
use super::hooks::{self, HookEnd};
use super::journal::Event;
use super::wanted::ExperimentKind;
use crate::disk::quiesce;
use crate::import::Observation;
use crate::measure::now;
use crate::os::child::Group;
use crate::util::duration;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What the command line gives an experiment.
pub trait ExperimentHost {
    /// Something to know, a line.
    fn note(&mut self, text: &str);

    /// The signal that has come, if one has.
    fn interrupted(&self) -> Option<i32>;

    /// This program.
    fn program(&self) -> PathBuf;

    /// How long a command between runs may take.
    fn hook_limit(&self) -> Duration;

    /// How long all runs of this call may take together; `None` without a bound.
    fn budget(&self) -> Option<Duration>;

    /// The directories whose file systems have to be idle before a run.
    fn dirs(&self) -> Vec<PathBuf>;
}

/// An experiment that is complete.
#[derive(Debug)]
pub struct Finished {
    /// The runs of each arm, in the order of time.
    pub observations: Vec<Vec<Observation>>,
    /// The speed of the control beside each; of two arms.
    pub controls: Vec<Vec<f64>>,
    /// How it ended.
    pub end: Next,
}

/// Why an experiment has stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Its folder can't be used any more.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A signal came.
    #[error("interrupted")]
    Interrupted(i32),
    /// A run or a command failed.
    #[error("{why}")]
    Failed {
        /// In words.
        why: String,
        /// What to do.
        help: String,
        /// The exit status.
        status: u8,
    },
}

/// How long a run has to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes all runs that are still to be made.
pub fn run(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<Finished, ExperimentError> {
    let stopped = go_on(folder, host);
    let event = match &stopped {
        Ok(_) => Event::Ended { time: now() },
        Err(ExperimentError::Folder(_)) => return stopped,
        Err(stopped) => Event::Stopped { why: stopped.to_string(), time: now() },
    };
    folder.write(&event)?;
    stopped
}

fn go_on(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<Finished, ExperimentError> {
    let began = Instant::now();
    if let Some(under_way) = folder.under_way.take() {
        finish(folder, &under_way, host)?;
    }
    loop {
        // It may have come between two runs.
        if let Some(signal) = host.interrupted() {
            return Err(ExperimentError::Interrupted(signal));
        }
        let experiment = folder.experiment.clone();
        let design = Design::new(&experiment);
        let values = values(folder)?;
        match design.next(&values) {
            Next::Run { arm, progress } => {
                if host.budget().is_some_and(|budget| began.elapsed() + folder.longest_run() > budget)
                    && let Some(end) = design.cut(values.len())
                {
                    let (done, wanted) = (values.len(), progress.predicted_runs);
                    host.note(&format!("the budget is spent after {done} of {wanted} runs"));
                    return Ok(finished(folder, end));
                }
                report(folder, &progress, host);
                one(folder, arm, design.seed(values.len()), host)?;
            }
            end => return Ok(finished(folder, end)),
        }
    }
}

/// The values of the experiment's metrics in each run so far.
fn values(folder: &Folder) -> Result<Vec<(usize, Vec<f64>)>, ExperimentError> {
    if folder.experiment.kind() == ExperimentKind::Sweep {
        // Their number decides, and a run that failed has none.
        return Ok(folder.runs.iter().map(|run| (run.arm, Vec::new())).collect());
    }
    let metrics = folder.experiment.metrics();
    let of_run = |run: &KeptRun| {
        let values = metrics.iter().map(|metric| metric.of(&run.observation).ok_or(metric)).collect::<Result<_, _>>();
        values.map(|values| (run.arm, values)).map_err(|metric| {
            let names: Vec<&str> = run.observation.figures.keys().map(String::as_str).collect();
            ExperimentError::Failed {
                why: format!("{} has no `{metric}`", run.observation.source),
                help: format!("it has {}", names.join(", ")),
                status: 2,
            }
        })
    };
    folder.runs.iter().map(of_run).collect()
}

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

/// What is known of the end, before a run.
fn report(folder: &Folder, progress: &Prediction, host: &mut dyn ExperimentHost) {
    let done = folder.runs.len();
    let seconds: Vec<f64> = folder.runs.iter().filter_map(|run| run.seconds).collect();
    let mut text =
        format!("run {} of {}{}", done + 1, if progress.at_most { "at most " } else { "" }, progress.predicted_runs);
    if let Some((metric, half)) = progress.widest {
        let metrics = &folder.experiment.metrics;
        text += &format!(", {} ± {:.1} %", metrics[metric.min(metrics.len() - 1)], half * 100.0);
    }
    if !seconds.is_empty() {
        let each = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let rest = progress.predicted_runs.saturating_sub(done as u64) as f64 * each;
        text += &format!(", {} left", duration::format(Duration::from_secs(rest.ceil() as u64)));
    }
    host.note(&text);
}

/// A run that was under way when the experiment was ended: the commands after it are run if they have not been, and it is kept if it
/// is complete. Else it will be made anew.
fn finish(folder: &mut Folder, under_way: &UnderWay, host: &mut dyn ExperimentHost) -> Result<(), ExperimentError> {
    let number = folder.runs.len() + 1;
    after(folder, number, under_way.arm, &|name| under_way.hooks.contains(name), host)?;
    if let Ok(observation) = folder.observation(number)
        && observation.failure.is_none()
    {
        let (arm, control) = (under_way.arm, under_way.control);
        folder.keep(KeptRun { arm, control, seconds: None, observation })?;
    }
    Ok(())
}

fn one(folder: &mut Folder, arm: usize, seed: u64, host: &mut dyn ExperimentHost) -> Result<(), ExperimentError> {
    let number = folder.runs.len() + 1;
    let began = Instant::now();
    // What a run that was ended has left belongs to no run.
    for file in [folder.result(number), folder.log(number)] {
        if file.exists() {
            std::fs::remove_file(&file).map_err(|error| FolderError::Io { path: file, error })?;
        }
    }
    for (name, text) in commands(folder, true, arm) {
        hook(folder, number, name, &text, host)?;
    }
    quiesced(host);
    let control = (folder.experiment.kind() == ExperimentKind::Ab).then(control::speed);
    folder.write(&Event::Started { run: number as u64, arm: arm as u64, control, time: now() })?;
    let ended = measure(folder, number, arm, seed, host);
    // What was set up is taken down, whatever the run did.
    let down = after(folder, number, arm, &|_| false, host);
    // A level that can't be run is a point of the curve; a script that is wrong is wrong at every level.
    let is_point = folder.experiment.kind() == ExperimentKind::Sweep;
    match ended {
        Err(ExperimentError::Failed { why, status: 1 | 3, .. }) if is_point => {
            down?;
            let why = reason(folder, number).unwrap_or(why);
            return Ok(folder.keep_failed(arm, why)?);
        }
        ended => ended?,
    }
    down?;
    let observation = folder.observation(number)?;
    if let Some(failure) = &observation.failure {
        return Err(failed(folder, number, failure.clone(), 1));
    }
    let seconds = Some(began.elapsed().as_secs_f64());
    Ok(folder.keep(KeptRun { arm, control, seconds, observation })?)
}

/// The commands before, or after, a run of an arm.
fn commands(folder: &Folder, before: bool, arm: usize) -> Vec<(&'static str, String)> {
    let found = folder.experiment.hooks.of(before, arm);
    found.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
}

fn after(
    folder: &mut Folder,
    number: usize,
    arm: usize,
    done: &dyn Fn(&str) -> bool,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    for (name, text) in commands(folder, false, arm) {
        if !done(name) {
            hook(folder, number, name, &text, host)?;
        }
    }
    Ok(())
}

fn hook(
    folder: &mut Folder,
    number: usize,
    name: &str,
    text: &str,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let log = folder.hook_log(number, name);
    let interrupted_before = host.interrupted();
    // A command after a run takes down what is there, also when the user ends the experiment.
    let interrupted = || host.interrupted() != interrupted_before;
    let io = |error| FolderError::Io { path: log.clone(), error };
    match hooks::run(text, &log, host.hook_limit(), &interrupted).map_err(io)? {
        HookEnd::Done(took) => {
            let (run, name) = (number as u64, name.to_owned());
            folder.write(&Event::Hook { run, name, seconds: took.as_secs_f64() })?;
            Ok(())
        }
        HookEnd::Interrupted => Err(ExperimentError::Interrupted(host.interrupted().unwrap_or(2))),
        HookEnd::Failed(why) => Err(ExperimentError::Failed {
            why: format!("`--{name}` of run {number} failed: {why}"),
            help: format!("see {}", log.display()),
            status: 1,
        }),
    }
}

/// Waits until the disks are idle, so that what an arm has left behind is neither in the control nor in the next arm.
fn quiesced(host: &dyn ExperimentHost) {
    // A file system that can't be written back is reported by the run itself.
    let _ = quiesce::quiesce(&host.dirs(), &AtomicBool::new(false));
}

/// Runs the program for an arm.
fn measure(
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
    words.push(format!("--results={}", folder.files(number).display()));
    words.push("--format=none".to_owned());
    let log = folder.log(number);
    let io = |error| FolderError::Io { path: log.clone(), error };
    let file = File::create(&log).map_err(io)?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
    let mut group = Group::spawn(command).map_err(|e| ExperimentError::Failed {
        why: format!("`{}` can't be started: {e}", words[0]),
        help: "look at `--launch`".to_owned(),
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
            group.end(PATIENCE);
            return Err(ExperimentError::Interrupted(signal));
        }
    }
}

fn failed(folder: &Folder, number: usize, why: String, status: u8) -> ExperimentError {
    ExperimentError::Failed {
        why: format!("run {number} failed: {}", reason(folder, number).unwrap_or(why)),
        help: format!("see {}", folder.log(number).display()),
        status,
    }
}

/// What went wrong in a run, as it said in its last error.
fn reason(folder: &Folder, number: usize) -> Option<String> {
    let text = std::fs::read_to_string(folder.log(number)).ok()?;
    let line = text.lines().rev().find(|line| line.starts_with("error"))?;
    Some(line.strip_prefix("error: ").unwrap_or(line).to_owned())
}
