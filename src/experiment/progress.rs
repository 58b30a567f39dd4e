//! How far an experiment is before each run: its number, the number of runs, the time left, and the figures so far.
//!
//! Not in here: the decision on the next run (`design`), and how this is shown (the host).

use super::design::{Design, Prediction};
use super::folder::Folder;
use super::wanted::Experiment;
use crate::util::duration;
use std::time::Duration;

/// How far an experiment is, before its next run.
pub struct Standing<'a> {
    folder: &'a Folder,
    design: &'a Design,
    arm: usize,
    prediction: Prediction,
    /// The number of runs that end within the budget, if they are fewer than predicted.
    fits: Option<u64>,
}

/// The complete runs of an arm so far.
pub struct ArmSoFar {
    /// The title of the arm in texts.
    pub title: String,
    /// The metric of its runs.
    pub metric: String,
    /// The values of the metric, in the order of the runs.
    pub values: Vec<f64>,
    /// The number of runs that failed.
    pub failed: usize,
}

impl<'a> Standing<'a> {
    pub(super) fn new(
        folder: &'a Folder,
        design: &'a Design,
        arm: usize,
        prediction: Prediction,
        fits: Option<usize>,
    ) -> Self {
        let fits = fits.map(|fits| fits as u64).filter(|fits| *fits < prediction.predicted_runs);
        Self { folder, design, arm, prediction, fits }
    }

    pub fn experiment(&self) -> &Experiment {
        &self.folder.experiment
    }

    /// The number of runs so far.
    pub fn done(&self) -> usize {
        self.folder.runs.len()
    }

    /// The number of runs that are expected in all.
    pub fn expected(&self) -> u64 {
        self.fits.unwrap_or(self.prediction.predicted_runs)
    }

    /// The next run, with the number of runs and its arm, such as `run 5 of 32 (B)`.
    pub fn run(&self) -> String {
        let (run, arm) = (self.done() + 1, self.experiment().arm_suffix(self.arm));
        match self.fits {
            Some(fits) if fits == self.design.least() => format!("run {run} of {fits}{arm}, the fewest for a result"),
            Some(fits) => format!("run {run}{arm}, about {fits} fit into the budget"),
            None if self.prediction.at_most => format!("run {run} of at most {}{arm}", self.expected()),
            None => format!("run {run} of {}{arm}", self.expected()),
        }
    }

    /// The time that the rest of the runs will take; `None` as long as that of a run is unknown.
    pub fn remaining(&self) -> Option<Duration> {
        self.design.time_up_to(usize::try_from(self.expected()).unwrap_or(usize::MAX))
    }

    /// The widest interval of a mean so far, of experiments that end when it is narrow.
    pub fn precision(&self) -> Option<String> {
        let (metric, half) = self.prediction.widest?;
        let metrics = &self.experiment().metrics;
        let name = match self.experiment().has_own_metrics() {
            true => "widest interval",
            false => metrics[metric.min(metrics.len() - 1)].as_str(),
        };
        Some(format!("{name} ± {:.1} %", half * 100.0))
    }

    /// The runs of each arm so far.
    pub fn arms(&self) -> Vec<ArmSoFar> {
        let experiment = self.experiment();
        let metric = |arm| experiment.metrics_of(arm).first().map_or_else(String::new, ToString::to_string);
        let new =
            |arm| ArmSoFar { title: experiment.arm_title(arm), metric: metric(arm), values: Vec::new(), failed: 0 };
        let mut arms: Vec<ArmSoFar> = (0..experiment.arms.len()).map(new).collect();
        for run in &self.folder.runs {
            let value = experiment.values_of(run.arm, &run.observation).and_then(|values| values.first().copied());
            let value = value.filter(|value| value.is_finite());
            match (arms.get_mut(run.arm), value) {
                (Some(arm), Some(value)) => arm.values.push(value),
                // A script may lack the metric of another.
                (Some(arm), None) => arm.failed += usize::from(run.observation.failure.is_some()),
                (None, _) => {}
            }
        }
        arms
    }

    /// The ratio B/A of the complete blocks so far; `None` without one, or if the experiment is no comparison.
    pub fn ratio(&self) -> Option<f64> {
        self.design.ratio()
    }

    /// The number of runs so far that other programs disturbed.
    pub fn disturbed(&self) -> usize {
        self.folder.runs.iter().filter(|run| run.observation.disturbed).count()
    }
}

/// Returns the number of blocks that a pilot asks for. See [`Prediction::pilot`].
pub(super) fn pilot_text((blocks, needed): (u64, Option<u64>)) -> String {
    match needed {
        Some(needed) if needed <= blocks => format!("the pilot asks for {blocks} blocks"),
        Some(needed) => format!("the pilot asks for {needed} blocks; at most {blocks} are made"),
        None => format!("the pilot asks for more than 1000 blocks; at most {blocks} are made"),
    }
}

/// The time left in whole seconds, such as `11m left`.
pub fn time_left(left: Duration) -> String {
    format!("{} left", duration::format(Duration::from_secs(left.as_secs_f64().ceil() as u64)))
}
