//! Load curves: `wmlrun sweep` measures one, `wmlrun compare --curve` evaluates one from a file.

use super::choices::FigureFormat;
use super::experiment_args::{ExperimentArgs, SweepArgs};
use super::experiment_host::study;
use super::experiments::{print_text, wanted};
use super::shell_text::set_option;
use crate::analysis::{LoadPoint, OverallResponse, ResponseMethod, knee, overall_response};
use crate::diag::Failure;
use crate::experiment::{Experiment, ExperimentKind, RuleWanted, check_levels};
use crate::import;
use crate::util::count::{exact, fixed};
use crate::util::table::{Align, Table};
use serde::Serialize;
use std::path::Path;

/// The number of runs for each value of a sweep, unless an option changes it.
const DEFAULT_REPEATS: u64 = 3;

/// The output of `wmlrun compare --curve --format json`.
#[derive(Serialize)]
struct CurveDocument<'a> {
    schema: &'static str,
    method: ResponseMethod,
    #[serde(flatten)]
    found: OverallResponse,
    points: &'a [LoadPoint],
}

/// Prints the overall response time of the load curve in a file.
pub(super) fn ort(file: &Path, method: ResponseMethod, format: FigureFormat) -> Result<u8, Failure> {
    let help = "the file needs one line per load: rate and mean response time, `-` if that is unknown";
    let points = import::load_curve(file).map_err(|e| Failure::wrong(e.to_string(), help))?;
    let Some(found) = overall_response(&points, method) else {
        let text = format!("{} has no point with a rate and a response time", file.display());
        return Err(Failure::wrong(text, help));
    };
    let text = match format {
        FigureFormat::Json => {
            let document = CurveDocument { schema: "wmlrun.curve/1", method, found, points: &points };
            serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
        }
        FigureFormat::Text => table(&points, found, method),
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
    let metric = "ops".parse().map_err(|e: String| Failure::wrong(e, ""))?;
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
        wanted(common, script, &arms, &[metric], rule, args.hooks.0.clone())
    };
    let by_method = |experiment: &mut Experiment| {
        if let RuleWanted::Sweep { method, .. } = &mut experiment.rule {
            *method = args.method.or(*method);
        }
    };
    study(common, ExperimentKind::Sweep, None, wanted, by_method)
}

fn table(points: &[LoadPoint], found: OverallResponse, method: ResponseMethod) -> String {
    let mut table = Table::new([("rate", Align::Right), ("response", Align::Right), ("", Align::Left)]);
    let knee = knee(points);
    let is_peak = |point: &LoadPoint| point.response.is_some() && point.rate >= found.peak;
    for (n, point) in points.iter().enumerate() {
        let response = point.response.map_or_else(|| "-".to_owned(), exact);
        let mark = match (is_peak(point), knee == Ok(n)) {
            (true, _) => "peak",
            (false, true) => "knee",
            (false, false) => "",
        };
        table.row([exact(point.rate), response, mark.to_owned()]);
    }
    let (ort, peak) = (fixed(found.ort, 2), exact(found.peak));
    format!("{}\noverall response time {ort} by {}, peak {peak}\n", table.render(), method.name())
}
