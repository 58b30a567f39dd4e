//! Executes the commands of an experiment: those before and after a run, those at the begin and at the end of a scope,
//! and those whose output is recorded. Each is an event of the journal.
//!
//! Not in here: which commands are due (`hooks`, `scopes`), and the execution of the runs (`runner`).

use super::folder::{Folder, RECORDS};
use super::folder_error::io_error;
use super::hooks::{self, HookEnd, HookTime};
use super::host::{ExperimentError, ExperimentHost, FailedCommand};
use super::journal::Event;
use super::scopes::{HookScope, ScopeHook, ScopePosition};
use super::wanted::{Experiment, RuleWanted};
use crate::import::RecordTimes;
use crate::os::held_dir::HeldDir;
use crate::os::{fd, reading};
use crate::util::printable;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of bytes of a command's output in which its last message is looked for.
const LAST_BYTES: u64 = 4096;

pub(super) struct DueCommand<'a> {
    /// The number of the run, from 1.
    run: usize,
    /// The index of its arm, if the journal is to have it.
    arm: Option<usize>,
    /// The name of its hook.
    name: String,
    /// What messages call it.
    label: String,
    /// Its position in the experiment file, if it is in one.
    origin: Option<String>,
    text: &'a str,
    /// Its environment variables.
    variables: Vec<(String, String)>,
    /// Its maximum duration.
    limit: Duration,
}

/// Makes the command of an option of the command line.
pub(super) fn option<'a>(run: usize, name: &str, text: &'a str, host: &dyn ExperimentHost) -> DueCommand<'a> {
    let (label, limit) = (format!("`--{name}` of run {run}"), host.hook_limit());
    DueCommand { run, arm: None, name: name.to_owned(), label, origin: None, text, variables: Vec::new(), limit }
}

/// What a failed command does to the experiment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Failing {
    /// It ends the experiment.
    Error,
    /// It is a note. The experiment was interrupted, and the command that it undoes may not have had its effect.
    Note,
}

/// Returns the note on a failed command that does not end the experiment.
pub(super) fn tolerated(failed: &FailedCommand) -> String {
    format!("{failed}; the experiment continues, because it was interrupted in this run")
}

/// Executes one command and records it in the journal.
pub(super) fn run_hook(
    folder: &mut Folder,
    due: &DueCommand<'_>,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let log = folder.hook_log(due.run, &due.name);
    let (run, name) = (due.run as u64, due.name.clone());
    let interrupted_before = host.interrupted();
    // A signal that was received earlier does not interrupt the command: commands after a run undo the commands before
    // it, so they are executed also when the user ends the experiment.
    let interrupted = || host.interrupted() != interrupted_before;
    let started = Event::HookStarted { run, name: name.clone(), arm: due.arm.map(|arm| arm as u64) };
    let recorded = folder.write(&started);
    // A command after a run is executed also when the disk of the folder is full.
    if HookTime::of_hook(&name) == HookTime::Before && recorded.is_err() {
        return Ok(recorded?);
    }
    match hooks::run(due.text, &due.variables, &log, due.limit, &interrupted).map_err(io_error(&log))? {
        HookEnd::Done(times) => {
            recorded?;
            Ok(folder.write(&Event::Hook { run, name, times })?)
        }
        HookEnd::Interrupted => Err(ExperimentError::Interrupted(host.interrupted().unwrap_or(2))),
        HookEnd::Failed(why) => {
            let why = format!("{} failed: {why}{}", due.label, said(&log));
            let failed = FailedCommand { origin: due.origin.clone(), text: due.text.to_owned(), why, log };
            folder.write(&Event::HookFailed { run, name, why: failed.to_string() })?;
            Err(ExperimentError::Command(failed))
        }
    }
}

/// Returns the last message of a command's output, after a colon. Returns an empty text when there is none.
pub(super) fn said(log: &Path) -> String {
    last_message(log).map_or_else(String::new, |message| format!(": {}", printable::short(&message, 200)))
}

/// Returns the last message of a command's output on one line, or `None` when there is none or it is not text. It is the
/// last line that is not empty. If that line is indented, it continues a message, as the second line of `mount` does,
/// whose first line has the reason.
fn last_message(log: &Path) -> Option<String> {
    let text = end_of(log, LAST_BYTES).ok()?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.iter().rposition(|line| !line.starts_with([' ', '\t'])).unwrap_or(lines.len().saturating_sub(1));
    let message = lines.get(first..)?.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    // A sentence follows.
    let message = message.strip_suffix('.').unwrap_or(&message).to_owned();
    (!message.is_empty() && !message.contains('\0')).then_some(message)
}

/// Returns the end of an output, at most this number of bytes. Those that are not UTF-8 are replaced.
pub(super) fn end_of(log: &Path, bytes: u64) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&reading::read_end(log, bytes)?).into_owned())
}

/// Makes the command at the begin or at the end of a scope; `None` if there is none.
fn scope_command<'a>(
    folder: &Folder,
    hook: &'a ScopeHook,
    time: HookTime,
    at: ScopePosition,
    host: &dyn ExperimentHost,
) -> Option<DueCommand<'a>> {
    let limit = hook.time_limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Some(DueCommand {
        run: at.run,
        arm: Some(at.arm),
        name: hook.command_name(time),
        label: format!("`{}` of run {}", time.name(), at.run),
        origin: Some(hook.origin(time).to_owned()),
        text: hook.command(time)?,
        variables: variables(folder, at),
        limit: limit.unwrap_or_else(|| host.hook_limit()),
    })
}

/// Returns the environment variables of a command: the number of the run, its cell, and its level of each factor.
fn variables(folder: &Folder, at: ScopePosition) -> Vec<(String, String)> {
    let experiment = &folder.experiment;
    let cell = experiment.arms.get(at.arm).map_or("", |arm| arm.name.as_str());
    let mut variables =
        vec![("WMLRUN_RUN".to_owned(), at.run.to_string()), ("WMLRUN_CELL".to_owned(), cell.to_owned())];
    let scale = experiment.scale.as_ref().map_or(1.0, |(factor, _)| *factor);
    variables.push(("WMLRUN_SCALE".to_owned(), scale.to_string()));
    if let RuleWanted::Factorial { factors, .. } = &experiment.rule {
        for (factor, level) in factors.iter().zip(experiment.levels_of(at.arm)) {
            let level = factor.levels.get(level).cloned().unwrap_or_default();
            variables.push((level_variable(&factor.name), level));
        }
    }
    variables
}

/// Begins the scopes of a run that have not been begun, the outer ones first.
pub(super) fn begin_scopes(
    folder: &mut Folder,
    at: ScopePosition,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let experiment = folder.experiment.clone();
    let from = folder.position.replace(at);
    let arms = || folder.runs.iter().map(|run| run.arm).collect::<Vec<usize>>();
    let arms = if from.is_none() { arms() } else { Vec::new() };
    folder.scopes.last = Some((at.run, Some(at.arm)));
    // The last scope that ended with a command and begins again.
    let mut renewed: Option<&ScopeHook> = None;
    for hook in experiment.hooks_around(at) {
        if from.is_some_and(|from| experiment.continues(hook.scope, from, at)) {
            continue;
        }
        let succeeded = folder.scopes.succeeded.get(&hook.name).copied();
        // An earlier attempt of this run has executed it.
        if from.is_some() && succeeded == Some(at.run) && hook.after.is_none() && hook.scope != HookScope::Run {
            continue;
        }
        if from.is_none() && succeeded.is_some_and(|run| experiment.is_in_effect(hook, run, at, &arms)) {
            if folder.is_after_reboot() {
                let origin = hook.origin(HookTime::Before);
                host.note(&format!(
                    "{origin}: `before` is not executed again after the reboot, since it has no `after`"
                ));
            } else if let Some(outer) = renewed {
                let (origin, around) = (hook.origin(HookTime::Before), outer.origin(HookTime::After));
                host.note(&format!(
                    "{origin}: `before` is not executed again, since it has no `after`; check that `after` of \
                     {around} has not undone it"
                ));
            }
            continue;
        }
        if from.is_none() && succeeded.is_some() && hook.after.is_some() {
            renewed = Some(hook);
        }
        folder.scopes.begun.insert(hook.name.clone());
        match scope_command(folder, hook, HookTime::Before, at, host) {
            Some(due) => {
                run_hook(folder, &due, host)?;
                folder.scopes.succeeded.insert(hook.name.clone(), at.run);
            }
            // The journal must show that the command at the end is due.
            None => {
                let (run, name) = (at.run as u64, hook.command_name(HookTime::Before));
                folder.write(&Event::HookStarted { run, name, arm: Some(at.arm as u64) })?;
            }
        }
    }
    Ok(())
}

/// Ends the scopes that were begun and do not continue in the run `following`, the inner ones first. Without such a run,
/// ends all scopes. All commands are executed; an error is that of the first that failed.
pub(super) fn end_scopes(
    folder: &mut Folder,
    following: Option<ScopePosition>,
    failing: Failing,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let Some(at) = folder.position else { return Ok(()) };
    let experiment = folder.experiment.clone();
    let continues = |scope| following.is_some_and(|following| experiment.continues(scope, at, following));
    let result = end_hooks(folder, &experiment, at, &|scope| !continues(scope), failing, host);
    if following.is_none() {
        folder.position = None;
    }
    result
}

/// Ends the scope of a run, which no other run continues. An error is that of the first command that failed.
pub(super) fn end_run_scope(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<(), ExperimentError> {
    let Some(at) = folder.position else { return Ok(()) };
    let experiment = folder.experiment.clone();
    end_hooks(folder, &experiment, at, &|scope| scope == HookScope::Run, Failing::Error, host)
}

/// Ends the scopes of a run that did not continue from the run before it. The next attempt of the run begins them again,
/// except for commands that no other command undoes.
pub(super) fn end_attempt(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<(), ExperimentError> {
    let Some(at) = folder.position else { return Ok(()) };
    let experiment = folder.experiment.clone();
    let before = folder.runs.last().map(|run| ScopePosition { run: at.run - 1, arm: run.arm });
    let continued = |scope| before.is_some_and(|before| experiment.continues(scope, before, at));
    end_hooks(folder, &experiment, at, &|scope| !continued(scope), Failing::Error, host)?;
    folder.position = before;
    Ok(())
}

/// Executes the commands at the end of those scopes of a run that were begun and are over.
fn end_hooks(
    folder: &mut Folder,
    experiment: &Experiment,
    at: ScopePosition,
    is_over: &dyn Fn(HookScope) -> bool,
    failing: Failing,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let mut result = Ok(());
    for hook in experiment.hooks_around(at).rev() {
        if !is_over(hook.scope) || !folder.scopes.begun.remove(&hook.name) {
            continue;
        }
        let Some(due) = scope_command(folder, hook, HookTime::After, at, host) else { continue };
        match (run_hook(folder, &due, host), failing) {
            (Err(ExperimentError::Command(failed)), Failing::Note) => host.note(&tolerated(&failed)),
            (ended, _) => result = result.and(ended),
        }
    }
    result
}

/// Executes the commands of which the output is recorded after a run. A command that fails ends the experiment.
pub(super) fn record(
    folder: &mut Folder,
    run: usize,
    arm: usize,
    host: &dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let commands = folder.experiment.records.clone();
    if commands.is_empty() {
        return Ok(());
    }
    let mut times = RecordTimes::default();
    let dir = folder.path().join(RECORDS);
    HeldDir::open(folder.path()).and_then(|folder| folder.enter_or_make(RECORDS.as_ref())).map_err(io_error(&dir))?;
    let variables = variables(folder, ScopePosition { run, arm });
    for (n, text) in commands.iter().enumerate() {
        let file = folder.record(run, n);
        let interrupted = || host.interrupted().is_some();
        match hooks::run(text, &variables, &file, host.hook_limit(), &interrupted).map_err(io_error(&file))? {
            HookEnd::Done(of_command) => times.push(of_command),
            HookEnd::Interrupted => return Err(ExperimentError::Interrupted(host.interrupted().unwrap_or(2))),
            HookEnd::Failed(why) => {
                let (short, said) = (printable::short(text, 100), said(&file));
                let why = format!("`{short}`, recorded after run {run}, failed: {why}{said}");
                return Err(ExperimentError::Command(FailedCommand {
                    origin: None,
                    text: text.clone(),
                    why,
                    log: file,
                }));
            }
        }
    }
    Ok(folder.write(&Event::Recorded { run: run as u64, times })?)
}

/// Returns the used space of the file systems of an arm's file sets in bytes. `None` if it is not to be recorded, or is
/// unknown.
pub(super) fn used_space(folder: &Folder, arm: usize, host: &dyn ExperimentHost) -> Option<u64> {
    if !folder.experiment.record_space {
        return None;
    }
    // Several directories of one file system count once.
    let mut used = BTreeMap::new();
    for dir in host.dirs(arm) {
        let dir = existing(&dir);
        let mount = crate::os::device::mount_of(&dir).map(|mount| mount.path);
        used.insert(mount, fd::statvfs_path(&dir).ok().map(|space| space.total.saturating_sub(space.free))?);
    }
    (!used.is_empty()).then(|| used.values().sum())
}

/// Returns the nearest directory of a path that exists.
pub(super) fn existing(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|dir| dir.is_dir());
    found.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
/// Returns the name of the variable with a command's level of a factor. The name of a factor may have characters that a
/// variable may not have.
pub(super) fn level_variable(factor: &str) -> String {
    format!("WMLRUN_LEVEL_{}", factor.replace(['-', '.'], "_"))
}
