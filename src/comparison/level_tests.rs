//! Tests of the levels of one factor against its first level, by the method of a published study: which is the first
//! level, such as a number of snapshots, with a significant loss?

use super::build::STUDY_LEVEL;
use super::factorial::{CellGroup, cell_groups, values_of};
use super::numbers::{confidence, figure, probability, statistic};
use super::{FactorLevels, FactorialCell};
use crate::analysis::{Direction, SampleSummary, StudyTest, TTestKind, study};
use crate::import::Metric;
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::grouped;
use serde::Serialize;

/// The tests of a metric, for one combination of the levels of the other factors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelTests {
    pub metric: String,
    pub factor: String,
    /// The levels of the other factors, as `NAME=LEVEL,NAME=LEVEL`; empty without others.
    pub others: String,
    /// The levels, of which the others are tested against the first.
    pub levels: Vec<TestedLevel>,
    /// The first level with a significant loss; null if none of the tested levels has one.
    pub first_loss: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestedLevel {
    pub level: String,
    /// The summary of its complete runs; null without any.
    pub sample: Option<SampleSummary>,
    /// The test of the first level (A) against this one (B); null for the first level, for fewer than two runs and for a
    /// variance of 0.
    pub test: Option<StudyTest>,
    /// Whether the level is significantly worse than the first one.
    pub is_loss: bool,
}

impl LevelTests {
    /// Makes the tests of a metric for each combination of the levels of the other factors. `metric_index` is its
    /// position in each cell.
    pub(super) fn of(
        metric: &Metric,
        metric_index: usize,
        factor: &str,
        factors: &[FactorLevels],
        cells: &[FactorialCell],
    ) -> Vec<Self> {
        let group = |group: CellGroup<'_>| {
            let samples: Vec<&[f64]> = group.cells.iter().map(|cell| values_of(cells, *cell, metric_index)).collect();
            // Levels of another factor may have metrics of their own.
            let own = group.cells.first().and_then(|cell| cells.get(*cell)?.metrics.get(metric_index));
            let own = own.and_then(|found| found.metric.parse().ok());
            Self::of_group(own.as_ref().unwrap_or(metric), &group, &samples)
        };
        cell_groups(factors, factor).into_iter().map(group).collect()
    }

    fn of_group(metric: &Metric, group: &CellGroup<'_>, samples: &[&[f64]]) -> Self {
        let tested = |(n, level): (usize, &String)| {
            let test = (n > 0).then(|| study(samples[0], samples[n], STUDY_LEVEL)).flatten();
            let is_loss = test.is_some_and(|test| {
                // The test is that of the first level minus this one.
                let is_lower = test.t.value > 0.0;
                test.t.p < 1.0 - STUDY_LEVEL && is_lower == (metric.direction() == Direction::HigherIsBetter)
            });
            TestedLevel { level: level.clone(), sample: SampleSummary::of(samples[n]), test, is_loss }
        };
        let levels: Vec<TestedLevel> = group.factor.levels.iter().enumerate().map(tested).collect();
        Self {
            metric: metric.to_string(),
            factor: group.factor.name.clone(),
            others: group.name(),
            first_loss: levels.iter().find(|level| level.is_loss).map(|level| level.level.clone()),
            levels,
        }
    }

    /// Returns the title: the metric, and the levels of the other factors.
    pub(crate) fn title(&self) -> String {
        let others = if self.others.is_empty() { String::new() } else { format!(", {}", self.others) };
        format!("{} over {}{others}", self.metric, self.factor)
    }

    /// The caption of the table.
    pub(crate) fn caption(&self) -> String {
        format!("Tests: {}", self.title())
    }

    /// The table, with the result below it.
    pub(super) fn table(&self) -> SheetTable {
        let columns = [SheetColumn::words(&self.factor)].into_iter();
        let columns = columns.chain(["runs", "mean", "F", "p of F"].map(SheetColumn::numbers));
        let columns = columns.chain([SheetColumn::words("t-test")]);
        let columns = columns.chain(["t", "df", "p of t"].map(SheetColumn::numbers)).chain([SheetColumn::words("")]);
        SheetTable {
            title: self.title(),
            rows: self.lines(),
            below: vec![self.ending()],
            ..SheetTable::of(&self.caption(), columns)
        }
    }

    /// The cells of each line.
    fn lines(&self) -> Vec<Vec<String>> {
        let dash = || "-".to_owned();
        let line = |level: &TestedLevel| {
            let of = |text: &dyn Fn(&StudyTest) -> String| level.test.as_ref().map_or_else(dash, text);
            let kind = |test: &StudyTest| if test.t.kind == TTestKind::Welch { "Welch" } else { "pooled" }.to_owned();
            vec![
                level.level.clone(),
                grouped(level.sample.map_or(0, |sample| sample.n)),
                level.sample.map_or_else(dash, |sample| figure(&self.metric, sample.mean)),
                of(&|test| statistic(test.f.value)),
                of(&|test| probability(test.f.p)),
                of(&kind),
                of(&|test| statistic(test.t.value)),
                of(&|test| statistic(test.t.df)),
                of(&|test| probability(test.t.p)),
                if level.is_loss { "loss".to_owned() } else { String::new() },
            ]
        };
        self.levels.iter().map(line).collect()
    }

    /// The result in one sentence, with the levels that could not be tested.
    fn ending(&self) -> String {
        let level = confidence(STUDY_LEVEL);
        let others = self.levels.get(1..).unwrap_or_default();
        let untested = others.iter().filter(|of| of.test.is_none()).map(|of| of.level.as_str());
        let untested = untested.collect::<Vec<_>>().join(", ");
        if others.iter().all(|of| of.test.is_none()) {
            return "no level could be tested: a test needs two complete runs of both levels, and a variation"
                .to_owned();
        }
        let result = match &self.first_loss {
            Some(first) => format!("first significant loss (at {level}): {}={first}", self.factor),
            None => format!("no significant loss (at {level})"),
        };
        if untested.is_empty() { result } else { format!("{result}; not tested: {}={untested}", self.factor) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CellMetric;
    use super::*;

    fn cell(levels: &[&str], values: &[f64]) -> FactorialCell {
        FactorialCell {
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
            metrics: vec![CellMetric { metric: "ops".to_owned(), estimate: None, values: values.to_vec() }],
            ..FactorialCell::default()
        }
    }

    fn factor(name: &str, levels: &[&str]) -> FactorLevels {
        FactorLevels { name: name.to_owned(), levels: levels.iter().map(|level| (*level).to_owned()).collect() }
    }

    /// A loss at a level may come after one at a level that was not tested.
    #[test]
    fn levels_without_a_test_are_named() {
        let factors = [factor("n", &["0", "30", "60", "120"])];
        let ending = |values: [&[f64]; 4]| {
            let cells: Vec<FactorialCell> =
                ["0", "30", "60", "120"].iter().zip(values).map(|(n, values)| cell(&[n], values)).collect();
            LevelTests::of(&Metric::ops(), 0, "n", &factors, &cells)[0].ending()
        };
        let (fast, slow): (&[f64], &[f64]) = (&[100.0, 101.0, 99.0], &[80.0, 81.0, 79.0]);
        let none = "no level could be tested";
        assert!(ending([fast, &[], &[80.0], &[80.0]]).starts_with(none));
        assert!(ending([&[100.0], slow, slow, slow]).starts_with(none), "the first level has one run");
        let equal: &[f64] = &[80.0, 80.0];
        assert!(ending([&[80.0, 80.0], &[], &[], equal]).starts_with(none), "neither level varies");
        assert_eq!(
            ending([fast, &[], &[80.0], equal]),
            "first significant loss (at 99 %): n=120; not tested: n=30, 60"
        );
        assert_eq!(ending([fast, &[80.0], slow, &[]]), "first significant loss (at 99 %): n=60; not tested: n=30, 120");
        assert_eq!(ending([fast, fast, fast, fast]), "no significant loss (at 99 %)");
    }

    #[test]
    fn the_first_level_with_a_loss_is_found() {
        let factors = [factor("snapshots", &["0", "30", "60"]), factor("script", &["a", "b"])];
        let cells = [
            cell(&["0", "a"], &[100.0, 101.0, 102.0, 99.0]),
            cell(&["0", "b"], &[100.0, 101.0]),
            cell(&["30", "a"], &[100.5, 101.5, 99.5, 100.0]),
            cell(&["30", "b"], &[150.0, 151.0]),
            cell(&["60", "a"], &[80.0, 81.0, 79.0, 80.5]),
            cell(&["60", "b"], &[]),
        ];
        let found = LevelTests::of(&Metric::ops(), 0, "snapshots", &factors, &cells);
        assert_eq!(found.iter().map(|tests| tests.others.as_str()).collect::<Vec<_>>(), ["script=a", "script=b"]);
        assert_eq!((found[0].first_loss.as_deref(), found[1].first_loss.as_deref()), (Some("60"), None));
        let losses: Vec<bool> = found[0].levels.iter().map(|level| level.is_loss).collect();
        assert_eq!(losses, [false, false, true]);
        assert!(found[1].levels[2].sample.is_none() && found[1].levels[2].test.is_none());
        let text = crate::sheet::text::table(&found[0].table()).unwrap();
        assert!(
            text.starts_with("ops over snapshots, script=a\n") && text.ends_with("(at 99 %): snapshots=60\n"),
            "{text}"
        );
        assert!(found[1].ending().ends_with("no significant loss (at 99 %); not tested: snapshots=60"));
        // A lower latency is no loss.
        let latency: Metric = "latency.mean".parse().unwrap();
        let cells = cells.map(|mut cell| {
            cell.metrics[0].metric = latency.to_string();
            cell
        });
        let found = LevelTests::of(&latency, 0, "snapshots", &factors, &cells);
        assert_eq!(found[0].first_loss, None);
        // Cells may have another metric than the first one of the experiment.
        assert_eq!(LevelTests::of(&Metric::ops(), 0, "snapshots", &factors, &cells), found);
        assert!(LevelTests::of(&latency, 0, "size", &factors, &cells).is_empty());
    }
}
