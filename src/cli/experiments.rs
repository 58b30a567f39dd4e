//! `wmlrun repeat`, `ab` and `clean --logs`, and what the commands of experiments share.

use super::arms::{self, PlannedArm};
use super::console;
use super::experiment_args::{AbArgs, ArmLine, Expected, ExperimentArgs, RepeatArgs};
use super::experiment_host::study;
use super::run_options::fresh_seed;
use super::screen::stdout_width;
use super::shell_text::split;
use super::stdout::Stdout;
use crate::analysis::ComparisonVerdict;
use crate::comparison::Comparison;
use crate::diag::Failure;
use crate::experiment::{
    self, Arm, Blocks, EQUAL_ARMS, Experiment, ExperimentKind, HOOKS, Hooks, Identity, RuleWanted,
};
use crate::import::folder::EXPERIMENT_SCHEMA;
use crate::import::{Metric, MetricLimit};
use crate::measure::now;
use crate::output::file_id;
use crate::util::{printable, size, wrap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes a result to standard output. A last line that is wider than the terminal, which is a sentence, is broken between
/// words.
pub(super) fn print_text(text: &str) {
    let last = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let (first, last) = text.split_at(last);
    // `Stdout` records the error.
    let _ = Stdout.write_all((first.to_owned() + &wrap::message(last, stdout_width())).as_bytes());
}

/// Runs `wmlrun repeat`. Returns the exit status.
pub(super) fn repeat(args: &RepeatArgs) -> Result<u8, Failure> {
    let (min_runs, max_runs) = args.wanted_runs();
    let rule = RuleWanted::Repeat { min_runs, max_runs, until_ci: args.until_ci() };
    let common = &ExperimentArgs { extended: args.runs, ..args.experiment.clone() };
    let script = args.script.as_deref().unwrap_or_default();
    let wanted = || wanted(common, script, &[""], &args.metrics(), rule, args.hooks.0.clone());
    study(common, ExperimentKind::Repeat, None, wanted, |_| ())
}

/// Runs `wmlrun ab`. Returns the exit status.
pub(super) fn ab(args: &AbArgs) -> Result<u8, Failure> {
    let blocks = match (args.blocks, args.until_clear) {
        (Some(n), _) => Blocks::Exactly(n),
        (None, true) => Blocks::UntilClear,
        (None, false) => Blocks::Pilot,
    };
    let rule = RuleWanted::Ab { tolerance: args.verdict.tolerance(), blocks };
    let common = &args.experiment;
    let metric = args.verdict.metric.as_slice();
    let script = args.script.as_deref().unwrap_or_default();
    let wanted = || {
        let found = wanted(common, script, &[&args.a, &args.b], metric, rule, args.hooks.0.clone())?;
        // The runs may take half an hour.
        if found.0.has_equal_arms() && !common.quiet {
            console::notice(&format!("note: {EQUAL_ARMS}"));
        }
        Ok(found)
    };
    study(common, ExperimentKind::Ab, args.verdict.expect, wanted, |_| ())
}

/// Returns the exit status of a verdict.
pub(super) fn verdict_status(comparison: &Comparison, expected: Option<Expected>) -> u8 {
    match (expected, comparison.verdict) {
        (Some(Expected::Better), ComparisonVerdict::Same | ComparisonVerdict::NotWorse) => {
            ComparisonVerdict::Unclear.code()
        }
        (_, verdict) => verdict.code(),
    }
}

/// Runs `wmlrun clean --logs` on one folder. Returns the exit status.
pub(super) fn prune(dir: &Path) -> Result<u8, Failure> {
    let help = "give a results folder of an experiment, such as `repeat` or `ab`";
    let pruned = experiment::prune(dir).map_err(|e| Failure::refused(e.to_string(), help))?;
    console::print_lines(&format!("{}: {} removed", dir.display(), size::format(pruned.bytes)));
    for kept in pruned.kept {
        let why = "it has files that the journal does not name as those of the run";
        console::notice(&printable::line(&format!("note: {} is kept: {why}", kept.display())));
    }
    Ok(0)
}

/// The default of `--command-timeout`.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

/// Builds the description of a new experiment, and plans its arms. `arms` holds the options of each arm. `metrics`: the
/// default one if empty.
pub(super) fn wanted(
    args: &ExperimentArgs,
    script: &str,
    arms: &[impl AsRef<str>],
    metrics: &[Metric],
    rule: RuleWanted,
    hooks: Hooks,
) -> Result<(Experiment, Vec<PlannedArm>), Failure> {
    if script == "-" {
        return Err(Failure::wrong(
            "an experiment can't read its script from standard input, since each run reads it again",
            "give the script as a file",
        ));
    }
    let is_sweep = matches!(rule, RuleWanted::Sweep { .. });
    let is_search = matches!(rule, RuleWanted::Sweep { search: Some(_), .. });
    let option = |n: usize| match n {
        _ if is_search => "--find",
        _ if is_sweep => "--vary",
        0 => "--a",
        _ => "--b",
    };
    let own: Vec<Vec<String>> =
        arms.iter().enumerate().map(|(n, arm)| words_of(option(n), arm.as_ref())).collect::<Result<_, _>>()?;
    if let Some(word) = arms::without_effect(&args.words, &own) {
        let by = if is_sweep { format!("`{}` sets", option(0)) } else { "`--a` and `--b` set".to_owned() };
        return Err(Failure::wrong(format!("`{word}` has no effect: {by} the same"), "omit it"));
    }
    let arm = |(n, (options, own)): (usize, (&str, Vec<String>))| -> Result<Arm, Failure> {
        let option = option(n);
        let line = ArmLine::read(&own).map_err(|(text, help)| {
            let all = "it accepts a script and the options that define the workload (see `wmlrun ab --help`)";
            Failure::wrong(format!("in `{option}`: {text}"), help.as_deref().unwrap_or(all))
        })?;
        let mut words = args.words.0.clone();
        words.extend(own);
        if line.script().is_none() {
            words.push(script.to_owned());
        }
        let name = if arms.len() == 1 { script.to_owned() } else { options.to_owned() };
        Ok(Arm { name, words, metric: None })
    };
    let arms: Vec<Arm> = arms.iter().map(AsRef::as_ref).zip(own).enumerate().map(arm).collect::<Result<_, _>>()?;
    // A directory that `wmlrun repeat --floor` names is an option of both arms.
    let mut common = args.words.0.clone();
    common.push(script.to_owned());
    let common = if arms.iter().all(|arm| arm.words == arms[0].words) { arms[0].words.clone() } else { common };
    let to_plan = |(n, arm): (usize, &Arm)| Arm { words: rule.planned_words(n, &arm.words), ..arm.clone() };
    let to_plan: Vec<Arm> = arms.iter().enumerate().map(to_plan).collect();
    let planned = arms::planned(&to_plan, &common, metrics, hooks.0.is_empty(), &option)?;
    let default = [Metric::default_of(planned.iter().all(PlannedArm::is_open_loop))];
    let metrics = if metrics.is_empty() { &default } else { metrics };
    check_commands(metrics, &hooks)?;
    let experiment = describe(args, script, (arms, &planned), metrics, rule, hooks)?;
    Ok((experiment, planned))
}

/// Returns an error if a metric is the time of a command that is not executed for each run.
fn check_commands(metrics: &[Metric], hooks: &Hooks) -> Result<(), Failure> {
    let all: Vec<&str> = HOOKS.iter().filter(|hook| hook.arm.is_none()).map(|hook| hook.name).collect();
    for metric in metrics {
        let Some(command) = metric.command().filter(|name| !all.contains(name) || !hooks.0.contains_key(*name)) else {
            continue;
        };
        let help = match all.contains(&command) {
            true => format!("give the command with `--{command}`"),
            false => format!("the commands of each run are `{}`", all.join("` and `")),
        };
        return Err(Failure::wrong(format!("no `{metric}`: no command `{command}` is executed for each run"), help));
    }
    Ok(())
}

/// Returns the path of this program, with which runs are made. If another file is at its path by now, such as a new
/// version, it is the path at which the kernel keeps the program as long as it runs.
pub(super) fn program() -> PathBuf {
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let is_it = |path: &Path| file_id(&running).is_none_or(|id| file_id(path) == Some(id));
    match std::env::current_exe() {
        // A name that is not UTF-8 can't be kept as text.
        Ok(path) if is_it(&path) && path.to_str().is_some() => path,
        Ok(_) => running,
        Err(_) => "wmlrun".into(),
    }
}

/// Splits the value of an option into words.
pub(super) fn words_of(option: &str, text: &str) -> Result<Vec<String>, Failure> {
    split(text).map_err(|e| Failure::wrong(format!("`{option}` {e}"), "use the quoting rules of a shell"))
}

/// Returns an error if disturbed runs can't be made again, because the runs may change the file systems for good.
pub(super) fn check_retries(retries: u64, rule: &RuleWanted) -> Result<(), Failure> {
    if retries == 0 || !rule.order().is_fixed() {
        return Ok(());
    }
    let text = "disturbed runs can be made again only in random blocks: in order, the state of the file system depends on \
                all runs before";
    Err(Failure::wrong(text, "leave out `--retry-disturbed`, or the order of the runs"))
}

/// Builds the description of a new experiment from its arms. Its conditions are those of its start.
pub(super) fn describe(
    args: &ExperimentArgs,
    name: &str,
    (arms, planned): (Vec<Arm>, &[PlannedArm]),
    metrics: &[Metric],
    rule: RuleWanted,
    hooks: Hooks,
) -> Result<Experiment, Failure> {
    check_retries(args.retry_disturbed.unwrap_or_default(), &rule)?;
    for limit in &args.limits.fail_if {
        // Other arms may have the metric.
        if let Some(failure) =
            planned.iter().map(|arm| arm.lacking(&limit.metric)).min_by_key(Option::is_some).flatten()
        {
            return Err(failure);
        }
    }
    let launch = words_of("--launch", &args.launch)?;
    let seed = planned.first().map_or_else(fresh_seed, |arm| arm.line.settings.0.seed);
    let directory = std::env::current_dir()
        .map_err(|e| Failure::refused(format!("the working directory: {e}"), "change to an existing directory"))?;
    let directory = directory.into_os_string().into_string().map_err(|directory| {
        let text = format!(
            "the working directory {} is not UTF-8, which an experiment needs to keep it",
            Path::new(&directory).display()
        );
        Failure::refused(text, "start the experiment in another directory")
    })?;
    Ok(Experiment {
        schema: EXPERIMENT_SCHEMA.to_owned(),
        file: String::new(),
        name: name.to_owned(),
        created: now(),
        directory,
        command_timeout: args.command_timeout.unwrap_or(COMMAND_TIMEOUT).as_secs_f64(),
        budget: args.budget.map(|budget| budget.as_secs_f64()),
        seed,
        launch,
        metrics: metrics.iter().map(Metric::to_string).collect(),
        limits: args.limits.fail_if.iter().map(MetricLimit::to_string).collect(),
        records: Vec::new(),
        record_space: false,
        scale: None,
        scaled_names: Vec::new(),
        retry_disturbed: args.retry_disturbed.unwrap_or_default(),
        verdict: if rule.is_comparison() { experiment::VERDICT.to_owned() } else { String::new() },
        rule,
        identity: Identity::default(),
        arms,
        hooks,
        scopes: Vec::new(),
    })
}
