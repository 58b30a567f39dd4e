//! Load curves: `wmlrun sweep` measures one, `wmlrun compare --curve` evaluates one from a file.

use super::arms::{self, PlannedArm};
use super::console;
use super::experiment_args::{ExperimentArgs, ResultFormat, SweepArgs};
use super::experiment_host::study;
use super::experiments::{print_text, wanted};
use super::shell_text::set_option;
use crate::analysis::ResponseMethod;
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
    let words = |value: Option<&str>| {
        let mut words = common.words.0.clone();
        words.extend(value.map(|value| format!("--set={factor}={value}")));
        words.push(script.to_owned());
        words
    };
    let found = arms::values(&words(None), &[factor])?;
    let first = match found.first() {
        Some((_, ModelValue::Int(first))) if *first > 0 => *first as f64,
        Some((_, ModelValue::Float(first))) if *first > 0.0 => *first,
        _ => {
            let text = format!("the script gives `${factor}` no number above 0, with which the search would begin");
            return Err(Failure::wrong(text, format!("add `set ${factor}=1` to it")));
        }
    };
    // A variable with a meaning in whole numbers only has no plan with a fraction.
    let is_whole =
        first.fract() == 0.0 && PlannedArm::read(&words(Some(&format!("{}", first + 0.5))), false)?.has_no_plan();
    metrics.retain(|metric| *metric != limit.metric && *metric != Metric::ops());
    metrics.insert(0, limit.metric.clone());
    let length = PlannedArm::read(&words(None), false)?.lengths().first().copied().flatten();
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
    let (mut experiment, planned) = wanted(common, script, &arms, &metrics, rule, args.hooks.0.clone())?;
    // The rate of an open loop is known before its first run.
    let requested = planned.first().map_or(0.0, PlannedArm::requested);
    let needed = limit.metric.operations_needed();
    let seconds = needed.map_or(least, |needed| (SPARE * needed / requested).max(least).ceil());
    if seconds.is_finite() && seconds > least {
        experiment.arms[0].words.insert(0, format!("--runtime={seconds}"));
    }
    if !common.quiet {
        let at = format!("{factor}={}", level_of(first));
        let counts = needed.map_or_else(String::new, |needed| {
            format!("; {} counts from {} operations on", limit.metric, grouped(needed.round() as u64))
        });
        let time = match Duration::try_from_secs_f64(seconds) {
            Ok(time) => format!("{} at {at}", duration::format(time)),
            Err(_) => {
                format!("as long as the first one shows, which takes {}", duration::format(length.unwrap_or_default()))
            }
        };
        console::notice(&format!(
            "search: {factor} is doubled or halved until the limit lies between two values, these are brought closer, then \
             both are repeated: some 10 to 20 runs{counts}: a run takes {time}"
        ));
    }
    Ok((experiment, planned))
}
