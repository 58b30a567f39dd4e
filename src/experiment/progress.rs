//! What is displayed before each run of an experiment: its number, the number of runs, and the time left.
//!
//! Not in here: the decision on the next run (`design`).

use super::design::{Design, Prediction};
use super::folder::Folder;
use super::host::ExperimentHost;
use crate::util::duration;
use std::time::Duration;

/// Displays the number of the next run and its arm, the predicted number of runs, and the predicted time left. `fits` is the number
/// of runs that end within the budget.
pub(super) fn report(
    folder: &Folder,
    design: &Design,
    arm: usize,
    progress: &Prediction,
    fits: Option<usize>,
    host: &mut dyn ExperimentHost,
) {
    let done = folder.runs.len();
    let fits = fits.map(|fits| fits as u64).filter(|fits| *fits < progress.predicted_runs);
    let arm = folder.experiment.arm_suffix(arm);
    let mut text = match fits {
        Some(fits) if fits == design.least() => format!("run {} of {fits}{arm}, the fewest for a result", done + 1),
        Some(fits) => format!("run {}{arm}, about {fits} fit into the budget", done + 1),
        None if progress.at_most => format!("run {} of at most {}{arm}", done + 1, progress.predicted_runs),
        None => format!("run {} of {}{arm}", done + 1, progress.predicted_runs),
    };
    if let Some((metric, half)) = progress.widest {
        let metrics = &folder.experiment.metrics;
        let name = match folder.experiment.has_own_metrics() {
            true => "widest interval",
            false => metrics[metric.min(metrics.len() - 1)].as_str(),
        };
        text += &format!(", {name} ± {:.1} %", half * 100.0);
    }
    text += &time_left(design, fits.unwrap_or(progress.predicted_runs));
    host.note(&text);
}

/// Returns the number of blocks that a pilot asks for. See [`Prediction::pilot`].
pub(super) fn pilot_text((blocks, needed): (u64, Option<u64>)) -> String {
    match needed {
        Some(needed) if needed <= blocks => format!("the pilot asks for {blocks} blocks"),
        Some(needed) => format!("the pilot asks for {needed} blocks; at most {blocks} are made"),
        None => format!("the pilot asks for more than 1000 blocks; at most {blocks} are made"),
    }
}

/// Returns the time that the runs up to number `runs` will take, in the form `, 11 min left`. Returns an empty text as
/// long as the duration of a run is unknown.
pub(super) fn time_left(design: &Design, runs: u64) -> String {
    let left = design.time_up_to(usize::try_from(runs).unwrap_or(usize::MAX));
    let text = |left: Duration| duration::format(Duration::from_secs(left.as_secs_f64().ceil() as u64));
    left.map_or_else(String::new, |left| format!(", {} left", text(left)))
}
