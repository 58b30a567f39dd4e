//! The result of a recorded experiment, of which any number of runs may have been made: one of the four documents.

use super::design::Next;
use super::recorded::{RecordedExperiment, RecordedRun};
use super::wanted::ExperimentKind;
use crate::analysis::{Estimate, NoiseFloor, RepeatState, independent_mean, mean_interval};
use crate::comparison::{
    Caution, Comparison, ComparisonFormat, Factorial, Repeats, Sweep, Validity, condition_lines, repeats,
};
use crate::import::{MetricLimit, Observation};
use crate::result::LimitOutcome;
use crate::sheet::{Answer, Sheet, Tone, Usability};
use crate::util::count::count;
use crate::util::duration;
use std::time::Duration;

/// The result of an experiment.
#[derive(Clone, Debug)]
pub enum ExperimentDocument {
    /// The result of repeated runs.
    Repeats(Repeats),
    /// The result of a comparison.
    Comparison(Box<Comparison>),
    /// A load curve.
    Sweep(Sweep),
    /// The result of an experiment file.
    Factorial(Factorial),
}

impl ExperimentDocument {
    pub(crate) fn formatted(&self, format: &ComparisonFormat) -> String {
        match self {
            Self::Repeats(found) => format.write(found),
            Self::Comparison(found) => format.write(&**found),
            Self::Sweep(found) => format.write(found),
            Self::Factorial(found) => format.write(found),
        }
    }

    /// The exit status of a command with this result.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Repeats(found) => found.state.code(),
            Self::Comparison(found) => found.verdict.code(),
            Self::Sweep(found) => found.code(),
            Self::Factorial(found) => found.code(),
        }
    }
}

impl RecordedExperiment {
    /// Returns the result of the runs so far, with the notes on how they were made. `floor` is the noise floor of the
    /// workload. Returns an error if the runs have no result.
    pub(crate) fn document(&self, floor: Option<NoiseFloor>) -> Result<ExperimentDocument, String> {
        Ok(match self.experiment.kind() {
            ExperimentKind::Repeat => {
                let mut found = self.repeats()?;
                self.complete(&mut found.notes, &mut found.validity);
                ExperimentDocument::Repeats(found)
            }
            ExperimentKind::Ab => {
                let mut found = self.comparison(floor)?;
                self.complete(&mut found.notes, &mut found.validity);
                ExperimentDocument::Comparison(Box::new(found))
            }
            ExperimentKind::Sweep => {
                let mut found = self.sweep().ok_or("the experiment is not a sweep")?;
                self.complete(&mut found.notes, &mut found.validity);
                ExperimentDocument::Sweep(found)
            }
            ExperimentKind::Factorial => {
                let mut found = self.factorial().ok_or("the experiment has no factors")?;
                found.beside.clone_from(&self.beside);
                self.complete(&mut found.notes, &mut found.validity);
                ExperimentDocument::Factorial(found)
            }
        })
    }

    /// Adds what only the experiment knows of its runs.
    fn complete(&self, notes: &mut Vec<String>, validity: &mut Validity) {
        notes.extend(self.notes.iter().cloned().chain(self.state_notes()));
        validity.cautions.splice(0..0, self.state_cautions());
        validity.limits = self.limits();
        validity.is_interrupted = self.is_interrupted;
        validity.ended_by = self.ended_by();
    }

    /// Whether each arm keeps the limits of the experiment. One on a metric that other arms have is none of an arm without
    /// it.
    pub(crate) fn limits(&self) -> Vec<LimitOutcome> {
        let is_series = self.experiment.kind() == ExperimentKind::Repeat;
        let mean: fn(&[f64]) -> Option<Estimate> = match is_series {
            true => |values| mean_interval(values, 0.95).map(|found| found.interval().from_zero()),
            false => |values| independent_mean(values, 0.95).map(Estimate::from_zero),
        };
        let observations = self.observations();
        let whole: Vec<Vec<&Observation>> =
            observations.iter().map(|runs| runs.iter().filter(|run| run.failure.is_none()).collect()).collect();
        let limits = self.experiment.limits.iter().filter_map(|text| text.parse().ok());
        let of_limit = |limit: MetricLimit| {
            let has = |runs: &[&Observation]| runs.iter().any(|run| limit.metric.of(run).is_some());
            let is_known = whole.iter().any(|runs| has(runs));
            let arms = whole.iter().enumerate().filter(|(_, runs)| has(runs) || !is_known);
            arms.map(|(n, runs)| {
                let arm = if is_series { String::new() } else { self.experiment.arm_title(n) };
                limit.judge(&arm, runs, mean)
            })
            .collect::<Vec<_>>()
        };
        limits.flat_map(of_limit).collect()
    }

    /// The answer of runs that have no result.
    pub(crate) fn failed_sheet(&self, why: &str) -> Sheet {
        let runs: Vec<Observation> = self.runs.iter().map(|run| run.observation.clone()).collect();
        let answer = Answer {
            result: format!("failed: {why}."),
            details: vec![format!("There is no result; {} ended before.", count(runs.len() as u64, "run"))],
            usability: Some(Usability::Unusable),
            conditions: condition_lines(&[&runs]),
            ..Answer::default()
        };
        Sheet { title: self.experiment.name.clone(), answer, tone: Tone::Bad, ..Sheet::default() }
    }

    /// Returns notes on runs that are missing.
    pub(crate) fn state_notes(&self) -> Vec<String> {
        self.state_cautions().into_iter().map(|caution| caution.text).collect()
    }

    fn state_cautions(&self) -> Vec<Caution> {
        let state = match (self.is_complete, self.is_interrupted) {
            (true, _) => None,
            (false, true) => Some("was interrupted"),
            (false, false) => Some("is not complete"),
        };
        let state = state.map(|state| format!("the experiment {state}: this is the result of the runs so far"));
        let numbers: Vec<String> = self.unreadable.iter().map(u64::to_string).collect();
        let lost =
            (!numbers.is_empty()).then(|| format!("the results of these runs can't be read: {}", numbers.join(", ")));
        let state = state.map(|text| Caution::of_note(Usability::Unusable, &text));
        let scaled = self.experiment.scale.as_ref().map(|(factor, what)| {
            let what = what.join(", ");
            format!("`--scale {factor}` made {what} smaller than in the source, so that caches hold more of the files")
        });
        let others = lost.into_iter().chain(scaled).map(|text| Caution::of_note(Usability::WithCaution, &text));
        state.into_iter().chain(others).collect()
    }

    /// The budget, if it ended the runs before their rule did; else empty.
    fn ended_by(&self) -> String {
        let is_early = self.is_complete
            && self.unreadable.is_empty()
            && self.design().is_some_and(|design| matches!(design.next(), Next::Run { .. }));
        let times = self.runs.iter().filter_map(|run| run.observation.started);
        let seconds = times.clone().max().zip(times.min()).map(|(last, first)| (last - first) as f64);
        // Resumed runs may have had another budget. Starts are whole seconds.
        let budget = self.experiment.budget.filter(|budget| seconds.is_none_or(|seconds| seconds - 1.0 <= *budget));
        let budget = budget.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match budget {
            _ if !is_early => String::new(),
            Some(budget) => format!("`--budget {}`", duration::format(budget)),
            None => "its budget".to_owned(),
        }
    }

    /// Returns the estimates of repeated runs. Returns an error if a run lacks a metric, or if there are no runs.
    pub fn repeats(&self) -> Result<Repeats, String> {
        let state = self.state();
        let runs: Vec<Observation> = self.runs.iter().map(|run| run.observation.clone()).collect();
        let rule = self.experiment.repeat_rule().ok_or("the experiment is not a series of repeated runs")?;
        repeats(&self.experiment.name, &self.experiment.metrics(), &runs, &rule, state)
    }

    /// Compares the arms by the complete blocks so far. Returns an error when a run failed.
    pub(crate) fn comparison(&self, floor: Option<NoiseFloor>) -> Result<Comparison, String> {
        let look = self.end().and_then(|end| end.look);
        let failure = |run: &RecordedRun| {
            Some(format!("run {} is not complete: {}", run.number, run.observation.failure.as_ref()?))
        };
        if let Some(failure) = self.runs.iter().find_map(failure) {
            return Err(failure);
        }
        let whole = self.whole_blocks();
        let of_arm = |n: usize| whole.iter().filter(move |run| run.arm == n);
        let runs = |n: usize| -> Vec<Observation> { of_arm(n).map(|run| run.observation.clone()).collect() };
        let mut comparison = self.experiment.comparison([&runs(0), &runs(1)], floor, look)?;
        let left_out = self.runs.len().saturating_sub(whole.len()) as u64;
        if left_out > 0 {
            let text = format!("{} of incomplete blocks are left out of the comparison", count(left_out, "run"));
            comparison.notes.push(text);
        }
        Ok(comparison)
    }

    /// Returns the load curve of a sweep, or `None` for other kinds.
    pub(crate) fn sweep(&self) -> Option<Sweep> {
        let found = self.experiment.sweep(&self.observations(), None)?;
        let runs = self.runs.iter().map(|run| (run.arm, &run.observation));
        Some(Sweep { capacity: self.experiment.capacity(runs), ..found })
    }

    /// Returns the result of an experiment file, or `None` for other kinds.
    pub(crate) fn factorial(&self) -> Option<Factorial> {
        self.experiment.factorial(&self.observations(), self.unreadable.is_empty(), self.state())
    }

    /// The state in which the experiment ended.
    fn state(&self) -> RepeatState {
        self.end().filter(|_| self.is_complete).map_or(RepeatState::Running, |end| end.state)
    }
}
