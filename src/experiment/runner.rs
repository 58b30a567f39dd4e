//! Executes the runs of an experiment, one after another, and records each.

use super::commands::{self, run_hook};
use super::control;
use super::design::{Design, Next};
use super::folder::{BUSY_RUNS, Folder, KeptRun};
use super::hooks::HookTime;
use super::host::{ExperimentError, ExperimentHost, RunEnd, check_in_place};
use super::identity;
use super::journal::Event;
use super::peak;
use super::program::{failed, reason, run_program};
use super::progress::{Standing, pilot_text, time_left};
use super::recorded::RecordedExperiment;
use super::replay::UnderWay;
use super::scopes::ScopePosition;
use super::wanted::{Experiment, ExperimentKind};
use crate::import::Metric;
use crate::os::quiesce;
use crate::util::duration;
use crate::util::timestamp::now;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Executes all remaining runs of an experiment. Returns all of its runs, or an error when it is interrupted, or when a run
/// or a command fails.
pub fn run(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<RecordedExperiment, ExperimentError> {
    let result = run_all(folder, host);
    // However the runs ended, the commands at the end of their scopes undo those at the begin. After an error, that error
    // is the result.
    let left = commands::end_scopes(folder, None, commands::Failing::Error, host);
    let result = result.and(left);
    let experiment = &folder.experiment;
    // Where most runs are disturbed, further attempts are too.
    let disturbed = folder.runs.iter().filter(|run| run.observation.disturbed).count();
    let is_at_times = disturbed > 0 && 2 * disturbed < folder.runs.len();
    if result.is_ok() && is_at_times && experiment.retry_disturbed == 0 && !experiment.rule.order().is_fixed() {
        host.note("`--retry-disturbed 2` makes runs again that other programs disturb");
    }
    let event = match &result {
        Ok(()) => Event::Ended { time: now() },
        Err(error) => Event::Stopped { why: error.to_string(), time: now() },
    };
    let written = folder.write(&event);
    // The journal may be what can't be written.
    if !matches!(result, Err(ExperimentError::Folder(_))) {
        written?;
    }
    result.map(|()| folder.recorded())
}

/// Executes the remaining runs without the last event of the journal.
fn run_all(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<(), ExperimentError> {
    let began = Instant::now();
    let budget = budget(folder, host);
    peak::search(folder, host)?;
    let mut set_up = recover(folder, host)?;
    let mut design = Design::new(&folder.experiment);
    loop {
        // The signal may have been received between two runs.
        if let Some(signal) = host.interrupted() {
            return Err(ExperimentError::Interrupted(signal));
        }
        while let Some(run) = folder.runs.get(design.made()) {
            take(&mut design, &folder.experiment, run)?;
        }
        if let Some((experiment, note)) = design.with_next_arm(&folder.experiment) {
            note.iter().for_each(|note| host.note(note));
            folder.describe_anew(experiment)?;
            design = Design::new(&folder.experiment);
            continue;
        }
        let made = design.made();
        match design.next() {
            Next::Run { arm, progress } => {
                let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
                let fits = left.and_then(|left| design.runs_within(left));
                if fits.is_some_and(|fits| fits <= made) && design.early_end().is_some() {
                    let how = if host.budget().is_none() { "; `--budget` continues the experiment" } else { "" };
                    let of = format!("after {made} of {} runs", progress.predicted_runs);
                    host.note(&match left.filter(|left| !left.is_zero()) {
                        Some(left) => format!(
                            "the budget ends the experiment {of}{how}: {} are left, and the next {} may take {}",
                            duration::seconds(left.as_secs_f64()),
                            if design.block_len() > 1 { "block of runs" } else { "run" },
                            duration::seconds(design.next_block().as_secs_f64())
                        ),
                        None => format!("the budget is spent {of}{how}"),
                    });
                    return Ok(());
                }
                let is_first_attempt = folder.unused.of_run(made + 1) == 0;
                if let Some(pilot) = progress.pilot.filter(|_| is_first_attempt) {
                    let runs = progress.predicted_runs;
                    let left = design.time_up_to(usize::try_from(runs).unwrap_or(usize::MAX));
                    let left = left.map_or_else(String::new, |left| format!(", {}", time_left(left)));
                    host.note(&format!("{}: {runs} runs{left}", pilot_text(pilot)));
                }
                if made == BUSY_RUNS && is_first_attempt && folder.is_busy() {
                    let retries = folder.experiment.retry_disturbed > 0;
                    let until = if retries { "; until a run is undisturbed, none is made again" } else { "" };
                    host.note(&format!(
                        "other programs used the processors or devices during all of the first {BUSY_RUNS} runs: end the \
                         experiment, and repeat it on an idle machine{until}"
                    ));
                }
                host.run_starts(&Standing::new(folder, &design, arm, progress, fits));
                // The next attempt of this run needs the time of its block.
                let spare = left.map(|left| left.saturating_sub(design.time_of_block()));
                make_run(folder, &mut design, arm, &std::mem::take(&mut set_up), spare, host)?;
            }
            Next::End(_) => return Ok(()),
        }
    }
}

/// Returns the time that the runs of this call may take; `None` if it is unlimited. Without a budget of the call it is
/// what the complete runs have left of the experiment's: nothing if a budget has ended the experiment.
fn budget(folder: &Folder, host: &dyn ExperimentHost) -> Option<Duration> {
    let left = || {
        let budget = folder.experiment.budget?;
        let runs = folder.runs.iter().filter_map(|run| run.seconds).sum::<f64>() + folder.unused.seconds();
        let search = folder.probes.iter().map(|probe| probe.seconds).sum::<f64>();
        Some(Duration::try_from_secs_f64(budget - runs - search).unwrap_or_default())
    };
    let recorded = || if folder.was_complete { Some(Duration::ZERO) } else { left() };
    host.budget().or_else(recorded)
}

/// Passes a run to the design. An error if it lacks a metric that the experiment needs.
fn take(design: &mut Design, experiment: &Experiment, run: &KeptRun) -> Result<(), ExperimentError> {
    if let Some(lacking) = experiment.lacking(run.arm, &run.observation) {
        return Err(ExperimentError::Failed {
            why: format!("{} has no `{lacking}`", run.observation.source),
            help: lacking.help_in(&run.observation),
            status: 2,
        });
    }
    design.take_run(experiment, run.arm, &run.observation, run.seconds);
    Ok(())
}

/// Handles an interruption: ends the scopes that were begun, and handles the run that was in progress. Its commands
/// after the run that have not been executed are executed, and it is recorded if its result and what is recorded beside
/// it are complete. Otherwise the run is made again; then the names of the hooks before it whose commands have succeeded
/// are returned.
fn recover(folder: &mut Folder, host: &mut dyn ExperimentHost) -> Result<BTreeSet<String>, ExperimentError> {
    let under_way = folder.under_way.take();
    let mut complete = None;
    if let Some(run) = under_way.as_ref().filter(|run| run.started && run.run == folder.runs.len() + 1)
        && let Ok(observation) = folder.observation(run.run)
        && observation.failure.is_none()
    {
        // Before the commands after the run, which may unmount its file systems.
        match observation.file_is_complete {
            true => complete = complete_record(folder, run, host)?.then_some(observation),
            false => host.note(&format!("run {} is made again: its script had not ended", run.run)),
        }
    }
    if let Some((run, arm)) = folder.scopes.last {
        let arm = arm.unwrap_or_else(|| folder.experiment.arm_of_run(run - 1));
        folder.position = Some(ScopePosition { run, arm });
        commands::end_scopes(folder, None, commands::Failing::Note, host)?;
    }
    let Some(UnderWay { run, arm, set_up, torn_down, boot, .. }) = under_way else {
        return Ok(BTreeSet::new());
    };
    let arm = arm.unwrap_or_else(|| folder.experiment.arm_of_run(run - 1));
    for (name, text) in commands(folder, HookTime::After, arm) {
        if torn_down.contains(name) {
            continue;
        }
        match run_hook(folder, &commands::option(run, name, &text, host), host) {
            // The command before the run that it undoes may not have had its effect, or it was itself interrupted after
            // it had its own.
            Err(ExperimentError::Command(failed)) => host.note(&commands::tolerated(&failed)),
            ended => ended?,
        }
    }
    let Some(mut observation) = complete else { return Ok(set_up) };
    if observation.disturbed && folder.retries_left(run) > 0 {
        discard(folder, run, 0.0, host)?;
        return Ok(BTreeSet::new());
    }
    folder.figures.add_to(&mut observation);
    let lacks_time = |metric: &Metric| metric.command().is_some() && metric.of(&observation).is_none();
    if let Some(metric) = folder.experiment.metrics_of(arm).into_iter().find(lacks_time) {
        host.note(&format!("run {run} is made again: it has no `{metric}`, because the experiment was interrupted"));
        return Ok(set_up);
    }
    folder.keep(KeptRun { arm, seconds: None, boot, observation }, None)?;
    report_end(folder, host);
    Ok(BTreeSet::new())
}

/// Records what is to be recorded after a run and was not, because the experiment was interrupted. Returns whether it is
/// complete. It is not if the file systems of the run are no longer in the state in which it left them.
fn complete_record(
    folder: &mut Folder,
    run: &UnderWay,
    host: &mut dyn ExperimentHost,
) -> Result<bool, ExperimentError> {
    let lacks_space = folder.experiment.record_space && run.figures.lacks_space();
    let lacks_output = !folder.experiment.records.is_empty() && !run.is_recorded;
    if !lacks_space && !lacks_output {
        return Ok(true);
    }
    let arm = run.arm.unwrap_or_default();
    let is_unchanged =
        !folder.is_after_reboot() && run.torn_down.is_empty() && identity::mounts(&host.dirs(arm)) == run.mounts;
    let why = match is_unchanged {
        true => {
            let space = if lacks_space { commands::used_space(folder, arm, host) } else { None };
            folder.keep_space(run.run, HookTime::After, space)?;
            match if lacks_output { commands::record(folder, run.run, arm, host) } else { Ok(()) } {
                Ok(()) => return Ok(true),
                Err(ExperimentError::Command(failed)) => failed.to_string(),
                Err(error) => return Err(error),
            }
        }
        false => "what is recorded after it was not, and its file systems have changed since".to_owned(),
    };
    host.note(&format!("run {} is made again: {why}", run.run));
    Ok(false)
}

/// Makes one run: commands before it, control, measurement, control, commands after it, record. `set_up` has the names
/// of the hooks before it whose commands succeeded in an attempt that was interrupted, and `spare` the time that the budget
/// leaves beside that of the runs of its block that are still to be made.
fn make_run(
    folder: &mut Folder,
    design: &mut Design,
    arm: usize,
    set_up: &BTreeSet<String>,
    spare: Option<Duration>,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let number = folder.runs.len() + 1;
    let began = Instant::now();
    check_in_place(folder, host)?;
    if let Some(dir) = folder.clear(number)? {
        host.note(&format!("the files of an earlier attempt of run {number} are kept in {}", dir.display()));
    }
    commands::begin_scopes(folder, ScopePosition { run: number, arm }, host)?;
    let used = commands::used_space(folder, arm, host);
    let prepared = prepare(folder, number, arm, set_up, host);
    let is_prepared = prepared.is_ok();
    folder.keep_space(number, HookTime::Before, used)?;
    let ended = prepared.and_then(|mounts| measure(folder, design, (number, arm), mounts, host));
    let used = ended.is_ok().then(|| commands::used_space(folder, arm, host)).flatten();
    folder.keep_space(number, HookTime::After, used)?;
    let recorded = if ended.is_ok() { commands::record(folder, number, arm, host) } else { Ok(()) };
    // The commands after a run are executed even if the run or a command before it failed, because they undo the
    // commands before it.
    let has_begun = is_prepared || !commands(folder, HookTime::Before, arm).is_empty();
    let teardown = if has_begun { run_after_hooks(folder, number, arm, host) } else { Ok(()) };
    // A level at which the run fails is a point of the curve. An error in the script (status 2) would fail at every
    // level. A program that ends without a result of the failure, such as by a signal or because its result can't be
    // written, says nothing about the level. Both end the experiment.
    let is_point = is_prepared && folder.experiment.keeps_failures() && folder.has_failure(number);
    let control = match ended {
        Err(ExperimentError::Failed { why, status: 1 | 3, .. }) if is_point => {
            teardown?;
            let why = reason(folder, number).unwrap_or(why);
            end_run(folder, design, &mut KeptRun::failed(number, arm, folder.boot(), why.clone()), host)?;
            folder.keep_failed(arm, why)?;
            report_end(folder, host);
            return Ok(());
        }
        ended => ended?,
    };
    teardown?;
    recorded?;
    let observation = folder.observation(number)?;
    if let Some(failure) = &observation.failure {
        return Err(failed(folder, number, failure.clone(), 1));
    }
    let took = began.elapsed();
    // Another attempt, and what follows it in its block, must fit into the budget.
    let is_first = design.longest_of(arm).is_zero();
    let needs = if is_first { took * (1 + design.block_len() as u32) } else { took };
    let fits = spare.is_none_or(|spare| spare >= needs);
    if observation.disturbed && folder.retries_left(number) > 0 && fits {
        discard(folder, number, took.as_secs_f64(), host)?;
        return commands::end_attempt(folder, host);
    }
    let seconds = Some(took.as_secs_f64());
    let mut run = KeptRun { arm, seconds, boot: folder.boot(), observation };
    end_run(folder, design, &mut run, host)?;
    folder.keep(run, control)?;
    report_end(folder, host);
    Ok(())
}

/// Discards an attempt of a run that other programs disturbed and which took so many seconds, so that the run is made
/// again.
fn discard(
    folder: &mut Folder,
    number: usize,
    seconds: f64,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    let kept = folder.discard(number, seconds)?;
    let kept = kept.map_or_else(String::new, |dir| format!("; its files are kept in {}", dir.display()));
    host.note(&format!(
        "run {number} is made again (attempt {} of {}): other programs used the processors or devices{kept}",
        folder.unused.of_run(number) + 1,
        folder.experiment.retry_disturbed + 1
    ));
    Ok(())
}

/// Passes the last recorded run to the host.
fn report_end(folder: &Folder, host: &mut dyn ExperimentHost) {
    let Some(run) = folder.runs.last() else { return };
    let (experiment, number) = (&folder.experiment, folder.runs.len());
    let value = |metric: Metric| Some((metric.to_string(), metric.of(&run.observation)?));
    let end = RunEnd {
        number,
        arm: run.arm,
        result: folder.result(number),
        seconds: run.seconds,
        failure: run.observation.failure.as_deref(),
        metrics: experiment.metrics_of(run.arm).into_iter().filter_map(value).collect(),
    };
    host.run_ended(experiment, &end);
}

/// Ends the scopes that do not continue after a run, which is not recorded yet, and adds the figures that were recorded
/// beside it.
fn end_run(
    folder: &mut Folder,
    design: &mut Design,
    run: &mut KeptRun,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    // The times of its commands may decide whether it is the last one.
    commands::end_run_scope(folder, host)?;
    if run.observation.failure.is_none() {
        folder.figures.add_to(&mut run.observation);
    }
    if folder.experiment.scopes.is_empty() {
        return Ok(());
    }
    take(design, &folder.experiment, run)?;
    let following = match design.next() {
        Next::Run { arm, .. } => Some(ScopePosition { run: design.made() + 1, arm }),
        Next::End(_) => None,
    };
    commands::end_scopes(folder, following, commands::Failing::Error, host)?;
    if run.observation.failure.is_none() {
        folder.figures.add_to(&mut run.observation);
    }
    Ok(())
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
    for (name, text) in commands(folder, HookTime::Before, arm) {
        match run_hook(folder, &commands::option(number, name, &text, host), host) {
            // Its effect may still be in place, such as that of `umount`, so that it can't succeed again.
            Err(ExperimentError::Command(failed)) if set_up.contains(name) => host.note(&commands::tolerated(&failed)),
            ended => ended?,
        }
    }
    let mounts = identity::mounts(&host.dirs(arm));
    folder.check_mounts(arm, &mounts)?;
    Ok(mounts)
}

/// Measures between two negative controls, each after writeback is done: background work of the measured file system is
/// a cause of a difference, not a change of the machine. Returns the speed of the second control. Repeated runs have a
/// control for later comparisons with other runs, except with `--no-quiesce`.
fn measure(
    folder: &mut Folder,
    design: &Design,
    (number, arm): (usize, usize),
    mounts: Vec<String>,
    host: &mut dyn ExperimentHost,
) -> Result<Option<f64>, ExperimentError> {
    let quiesces = !folder.experiment.arms[arm].words.iter().any(|word| word == "--no-quiesce");
    let is_controlled = match folder.experiment.kind() {
        ExperimentKind::Ab => true,
        ExperimentKind::Repeat => quiesces,
        ExperimentKind::Sweep | ExperimentKind::Factorial => false,
    };
    // The control must not be disturbed, whatever the options of the runs are.
    if is_controlled || quiesces {
        quiesce_disks(host);
    }
    // Both controls of a run have the same duration.
    let span = control::span(Some(design.longest_run()).filter(|run| !run.is_zero()));
    let before = if is_controlled { control::speed(span) } else { None };
    folder.write(&Event::Started { run: number as u64, arm: arm as u64, control: before, mounts, time: now() })?;
    // The commands before the run may have changed it.
    check_in_place(folder, host)?;
    let ended = run_program(folder, number, arm, design.seed(), host);
    folder.check_in_place()?;
    // However it has ended. What is added later is not of the run.
    folder.keep_paths(number)?;
    ended?;
    if !is_controlled {
        return Ok(None);
    }
    quiesce_disks(host);
    Ok(control::speed(span))
}

/// Returns the commands before or after a run of an arm, with the names of their hooks.
fn commands(folder: &Folder, time: HookTime, arm: usize) -> Vec<(&'static str, String)> {
    let found = folder.experiment.hooks.of(time, arm);
    found.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
}

/// Executes the commands after a run.
fn run_after_hooks(
    folder: &mut Folder,
    number: usize,
    arm: usize,
    host: &mut dyn ExperimentHost,
) -> Result<(), ExperimentError> {
    for (name, text) in commands(folder, HookTime::After, arm) {
        run_hook(folder, &commands::option(number, name, &text, host), host)?;
    }
    Ok(())
}

/// Waits until the disks of all arms are idle, so that the writeback of one arm affects neither the control nor the
/// next arm.
fn quiesce_disks(host: &dyn ExperimentHost) {
    let dirs: BTreeSet<PathBuf> = host.all_dirs().iter().map(|dir| commands::existing(dir)).collect();
    // The run itself reports a file system that can't be written back.
    let _ = quiesce::quiesce(&dirs.into_iter().collect::<Vec<_>>(), &AtomicBool::new(false));
}

#[cfg(test)]
#[path = "runner_tests.rs"]
pub(super) mod tests;
