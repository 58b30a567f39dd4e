//! Load curves: `wmlrun sweep` measures one, `wmlrun compare --curve` evaluates one from a file.

use super::choices::FigureFormat;
use super::experiment_args::{ExperimentArgs, SweepArgs};
use super::experiment_host::study;
use super::experiments::{print_text, wanted};
use super::shell_text::set_option;
use crate::analysis::ResponseMethod;
use crate::comparison::{AsJson as _, CurveDocument};
use crate::diag::Failure;
use crate::experiment::{Experiment, ExperimentKind, RuleWanted, check_levels};
use crate::import::{self, Metric};
use std::path::Path;

/// The number of runs for each value of a sweep, unless an option changes it.
const DEFAULT_REPEATS: u64 = 3;

/// Prints the overall response time of the load curve in a file.
pub(super) fn ort(file: &Path, method: ResponseMethod, format: FigureFormat) -> Result<u8, Failure> {
    let help = "the file needs one line per load: rate and mean response time, `-` if that is unknown";
    let points = import::load_curve(file).map_err(|e| Failure::wrong(e.to_string(), help))?;
    let Some(document) = CurveDocument::of(&points, method) else {
        let text = format!("{} has no point with a rate and a response time", file.display());
        return Err(Failure::wrong(text, help));
    };
    let text = match format {
        FigureFormat::Json => document.json(),
        _ => document.text(),
    };
    print_text(&text);
    Ok(0)
}

/// Runs `wmlrun sweep`. Returns the exit status.
pub(super) fn sweep(args: &SweepArgs) -> Result<u8, Failure> {
    let extended = args.repeats.map(|repeats| (repeats, repeats));
    let common = &ExperimentArgs { extended, ..args.experiment.clone() };
    let script = args.script.as_deref().unwrap_or_default();
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
        };
        wanted(common, script, &arms, &[Metric::ops()], rule, args.hooks.0.clone())
    };
    let by_method = |experiment: &mut Experiment| {
        if let RuleWanted::Sweep { method, .. } = &mut experiment.rule {
            *method = args.method.or(*method);
        }
    };
    study(common, ExperimentKind::Sweep, None, wanted, by_method)
}
