//! One document for all experiments, `wmlrun.study/1`: the cells with their runs, and what these say together: a verdict, a
//! curve, effects.

use super::{
    CellMetric, Comparison, FactorEffects, FactorLevels, Factorial, FactorialCell, LevelTests, Pivot, Repeats, Sweep,
    Variation,
};
use crate::analysis::{PrecisionRule, RepeatState, independent_mean};
use crate::result::LimitOutcome;
use serde::Serialize;
use std::borrow::Cow;

/// What the runs of an experiment say. Parts that an experiment does not have are absent.
#[derive(Debug, Default, Serialize)]
pub struct StudyDocument<'a> {
    schema: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<RepeatState>,
    #[serde(skip_serializing_if = "PrecisionRule::is_default")]
    stop: PrecisionRule,
    #[serde(skip_serializing_if = "Option::is_none")]
    planned_runs: Option<u64>,
    #[serde(skip_serializing_if = "<[FactorLevels]>::is_empty")]
    factors: Cow<'a, [FactorLevels]>,
    cells: Cow<'a, [FactorialCell]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    curve: Option<&'a Sweep>,
    #[serde(skip_serializing_if = "<[FactorEffects]>::is_empty")]
    effects: &'a [FactorEffects],
    #[serde(skip_serializing_if = "<[Pivot]>::is_empty")]
    pivots: &'a [Pivot],
    #[serde(skip_serializing_if = "<[LevelTests]>::is_empty")]
    tests: &'a [LevelTests],
    #[serde(skip_serializing_if = "<[Sweep]>::is_empty")]
    curves: &'a [Sweep],
    #[serde(skip_serializing_if = "<[Variation]>::is_empty")]
    variation: &'a [Variation],
    #[serde(skip_serializing_if = "<[LimitOutcome]>::is_empty")]
    limits: &'a [LimitOutcome],
    notes: &'a [String],
}

/// A document in the form that all experiments share.
pub trait AsStudy {
    fn study(&self) -> StudyDocument<'_>;
}

impl<'a> StudyDocument<'a> {
    fn of(name: &'a str, cells: impl Into<Cow<'a, [FactorialCell]>>, notes: &'a [String]) -> Self {
        Self { schema: "wmlrun.study/1", name, cells: cells.into(), notes, ..Self::default() }
    }
}

/// The mean of independent values of a metric, with its interval.
fn metric(name: &str, values: &[f64]) -> CellMetric {
    let estimate = independent_mean(values, super::build::LEVEL);
    CellMetric { metric: name.to_owned(), estimate, values: values.to_vec() }
}

impl AsStudy for Repeats {
    fn study(&self) -> StudyDocument<'_> {
        let metric = |found: &super::RepeatedMetric| CellMetric {
            metric: found.metric.clone(),
            estimate: Some(found.estimate.interval().from_zero()),
            values: found.values.clone(),
        };
        let cell = FactorialCell {
            name: self.name.clone(),
            runs: self.metrics.first().map_or(0, |metric| metric.estimate.n),
            metrics: self.metrics.iter().map(metric).collect(),
            ..FactorialCell::default()
        };
        StudyDocument {
            state: Some(self.state),
            limits: &self.validity.limits,
            ..StudyDocument::of(&self.name, vec![cell], &self.notes)
        }
    }
}

impl AsStudy for Comparison {
    fn study(&self) -> StudyDocument<'_> {
        let cell = |side: &super::ComparedSide| FactorialCell {
            name: side.name.clone(),
            runs: side.sample.n,
            metrics: vec![metric(&self.metric, &side.values)],
            ..FactorialCell::default()
        };
        let cells = [&self.a, &self.b].map(cell).to_vec();
        StudyDocument {
            verdict: Some(self),
            limits: &self.validity.limits,
            ..StudyDocument::of(&self.name, cells, &self.notes)
        }
    }
}

impl AsStudy for Sweep {
    fn study(&self) -> StudyDocument<'_> {
        let cell = |point: &super::SweepPoint| FactorialCell {
            name: format!("{}={}", self.factor, point.level),
            levels: vec![point.level.clone()],
            runs: point.runs,
            failed: point.failed,
            failure: point.failure.clone(),
            metrics: vec![metric("ops", &point.rates)],
            cpu_busy: point.cpu_busy,
            ..FactorialCell::default()
        };
        let cells: Vec<FactorialCell> = self.points.iter().map(cell).collect();
        let levels = self.points.iter().map(|point| point.level.clone()).collect();
        let factors = vec![FactorLevels { name: self.factor.clone(), levels }];
        StudyDocument {
            planned_runs: self.planned_runs,
            factors: factors.into(),
            curve: Some(self),
            limits: &self.validity.limits,
            ..StudyDocument::of(&self.name, cells, &self.notes)
        }
    }
}

impl AsStudy for Factorial {
    fn study(&self) -> StudyDocument<'_> {
        StudyDocument {
            state: Some(self.state),
            stop: self.stop,
            planned_runs: self.planned_runs,
            factors: Cow::Borrowed(&self.factors),
            effects: &self.effects,
            pivots: &self.pivots,
            tests: &self.tests,
            curves: &self.curves,
            variation: &self.variation,
            limits: &self.validity.limits,
            ..StudyDocument::of(&self.name, &self.cells[..], &self.notes)
        }
    }
}
