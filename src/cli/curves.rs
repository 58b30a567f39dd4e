//! Load curves: `wmlrun sweep` measures one, `wmlrun compare --curve` evaluates one from a file.

use super::arms::{self, PlannedArm};
use super::console;
use super::experiment_args::{ExperimentArgs, ResultFormat, SweepArgs};
use super::experiment_host::study;
use super::experiments::{print_text, wanted};
use super::shell_text::set_option;
use crate::analysis::{ResponseMethod, SEARCH_RUNS};
use crate::comparison::{AsJson as _, CurveDocument};
use crate::diag::Failure;
use crate::experiment::{CapacityWanted, Experiment, ExperimentKind, RuleWanted, SPARE, check_levels, level_of};
use crate::import::{self, Metric, MetricLimit};
use crate::model::ModelValue;
use crate::util::count::grouped;
use crate::util::duration;
use std::path::Path;
use std::time::Duration;

/// The number of runs for each value of a sweep, unless an option changes it.
const DEFAULT_REPEATS: u64 = 3;

/// Prints the overall response time of the load curve in a file.
pub(super) fn ort(file: &Path, method: ResponseMethod, format: ResultFormat) -> Result<u8, Failure> {
    let help = "the file needs one line per load: rate and mean response time, `-` if that is unknown";
    let points = import::load_curve(file).map_err(|e| Failure::wrong(e.to_string(), help))?;
    let Some(document) = CurveDocument::of(&points, method) else {
        let text = format!("{} has no point with a rate and a response time", file.display());
        return Err(Failure::wrong(text, help));
    };
    print_text(&if format.name == "json" { document.json() } else { document.text() });
    Ok(0)
}

/// Runs `wmlrun sweep`. Returns the exit status.
pub(super) fn sweep(args: &SweepArgs) -> Result<u8, Failure> {
    let extended = args.repeats.map(|repeats| (repeats, repeats));
    let common = &ExperimentArgs { extended, ..args.experiment.clone() };
    let script = args.script.as_deref().unwrap_or_default();
    let metrics = if args.metrics.is_empty() { vec![Metric::ops()] } else { args.metrics.clone() };
    if let (Some(factor), Some(limit)) = (&args.find, &args.holds) {
        let wanted = || search(args, common, (factor, limit), metrics);
        return study(common, ExperimentKind::Sweep, None, wanted, |_| ());
    }
    let (factor, levels) = args.vary.clone().unwrap_or_default();
    let wanted = || {
        check_levels(&levels, &args.hooks.0)?;
        let option = |level: &String| set_option(&format!("{factor}={level}"));
        let arms: Vec<String> = levels.iter().map(option).collect();
        let rule = RuleWanted::Sweep {
            factor: factor.clone(),
            levels,
            repeats: args.repeats.unwrap_or(DEFAULT_REPEATS),
            in_order: args.in_order,
            method: args.method,
            search: None,
        };
        wanted(common, script, &arms, &metrics, rule, args.hooks.0.clone())
    };
    let by_method = |experiment: &mut Experiment| {
        if let RuleWanted::Sweep { method, .. } = &mut experiment.rule {
            *method = args.method.or(*method);
        }
    };
    study(common, ExperimentKind::Sweep, None, wanted, by_method)
}

/// Describes a search for the greatest value of a variable at which a limit holds.
fn search(
    args: &SweepArgs,
    common: &ExperimentArgs,
    (factor, limit): (&String, &MetricLimit),
    mut metrics: Vec<Metric>,
) -> Result<(Experiment, Vec<PlannedArm>), Failure> {
    if limit.threshold <= 0.0 {
        return Err(Failure::wrong(format!("`{limit}` has no limit above 0"), "give a limit that a load may reach"));
    }
    let script = args.script.as_deref().unwrap_or_default();
    let given = common.words.0.iter().cloned().chain([script.to_owned()]).collect::<Vec<_>>();
    let found = arms::values(&given, &[factor])?;
    let first = match found.first() {
        Some((_, ModelValue::Int(first))) if *first > 0 => *first as f64,
        Some((_, ModelValue::Float(first))) if *first > 0.0 => *first,
        _ => {
            let text = format!("the script gives `${factor}` no number above 0, with which the search would begin");
            return Err(Failure::wrong(text, format!("add `set ${factor}=1` to it")));
        }
    };
    // A value that is given is where the search begins.
    let mut common = common.clone();
    common.words.0.retain(|word| !word.starts_with(&format!("--set={factor}=")));
    let words = |value: f64| {
        let mut words = common.words.0.clone();
        words.extend([format!("--set={factor}={}", level_of(value)), script.to_owned()]);
        words
    };
    // A variable with a meaning in whole numbers only has no plan with a fraction.
    let is_whole = first.fract() == 0.0 && PlannedArm::read(&words(first + 0.5), false)?.has_no_plan();
    metrics.retain(|metric| *metric != limit.metric && *metric != Metric::ops());
    metrics.insert(0, limit.metric.clone());
    let length = PlannedArm::read(&words(first), false)?.lengths().first().copied().flatten();
    let least = length.unwrap_or_default().as_secs_f64();
    let rule = RuleWanted::Sweep {
        factor: factor.clone(),
        levels: vec![level_of(first)],
        repeats: 1,
        in_order: true,
        method: args.method,
        search: Some(CapacityWanted { limit: limit.to_string(), is_whole, least }),
    };
    let arms = [set_option(&format!("{factor}={}", level_of(first)))];
    let (mut experiment, planned) = wanted(&common, script, &arms, &metrics, rule, args.hooks.0.clone())?;
    // The rate of an open loop is known before its first run.
    let requested = planned.first().map_or(0.0, PlannedArm::requested);
    let needed = limit.metric.operations_needed();
    let seconds = needed.map_or(least, |needed| (SPARE * needed / requested).max(least).ceil());
    if seconds.is_finite() && seconds > least {
        experiment.arms[0].words.insert(0, format!("--runtime={seconds}"));
    }
    if !common.quiet {
        let at = format!("{factor}={}", level_of(first));
        let [fewest, most] = SEARCH_RUNS;
        let counts = needed
            .map(|needed| format!("the {} operations that {} needs", grouped(needed.round() as u64), limit.metric));
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).ok().map(duration::format);
        let time = match (time(seconds), time(seconds * fewest as f64), time(seconds * most as f64)) {
            (Some(one), Some(shortest), Some(longest)) if seconds > 0.0 => {
                let why = counts.filter(|_| seconds > least).unwrap_or_else(|| "its run time".to_owned());
                let is_over = common.budget.is_some_and(|budget| budget.as_secs_f64() < seconds * fewest as f64);
                let budget = if is_over { ". The budget may end it before an answer" } else { "" };
                format!(". At {at} a run takes {one} ({why}): about {shortest} to {longest} in all{budget}")
            }
            _ => counts.map_or_else(String::new, |counts| format!(". A run lasts until it has {counts}")),
        };
        console::notice(&format!(
            "search: {factor} is doubled or halved until the limit lies between two values, these are brought closer, then \
             both are repeated: {fewest} to {most} runs{time}"
        ));
    }
    Ok((experiment, planned))
}
