//! Tests of the levels of one factor against its first level, by the method of a published study: which is the first
//! level, such as a number of snapshots, with a significant loss?

use super::build::STUDY_LEVEL;
use super::factorial::{CellGroup, cell_groups, values_of};
use super::numbers::{confidence, in_unit, interval, moment, probability, statistic};
use super::{FactorLevels, FactorialCell};
use crate::analysis::{Direction, SampleSummary, ShapiroWilk, StudyTest, TTest, TTestKind, shapiro_wilk, study};
use crate::import::Metric;
use crate::sheet::{SheetColumn, SheetTable};
use crate::util::count::{count, dash, grouped};
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
    /// The test of Shapiro and Wilk of its complete runs; null for fewer than three, and for equal values.
    pub shapiro_wilk: Option<ShapiroWilk>,
    /// The test of the first level (A) against this one (B); null for the first level, and for fewer than two runs.
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
        let all = cell_groups(factors, factor).into_iter().map(group);
        // Scripts without this metric, and those that do nothing of its kind.
        all.filter(|of| of.levels.iter().filter_map(|level| level.sample).any(|sample| sample.mean != 0.0)).collect()
    }

    fn of_group(metric: &Metric, group: &CellGroup<'_>, samples: &[&[f64]]) -> Self {
        let tested = |(n, level): (usize, &String)| {
            let test = (n > 0).then(|| study(samples[0], samples[n], STUDY_LEVEL)).flatten();
            let is_loss = test.and_then(|test| test.t).is_some_and(|t| {
                // The test is that of the first level minus this one.
                let is_lower = t.value > 0.0;
                t.p < 1.0 - STUDY_LEVEL && is_lower == (metric.direction() == Direction::HigherIsBetter)
            });
            let sample = SampleSummary::of(samples[n]);
            TestedLevel { level: level.clone(), sample, shapiro_wilk: shapiro_wilk(samples[n]), test, is_loss }
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

    /// The caption of the last table; none without a table.
    pub(crate) fn caption(&self) -> Option<String> {
        self.tables().pop().map(|table| table.caption)
    }

    /// True if a level has several runs: single ones have neither a variance nor a distribution.
    fn has_samples(&self) -> bool {
        self.levels.iter().any(|level| level.sample.is_some_and(|sample| sample.n > 1))
    }

    /// What has no tables, in one sentence; `None` if all have them.
    pub(super) fn untested(all: &[Self]) -> Option<String> {
        let without: Vec<&Self> = all.iter().filter(|tests| !tests.has_samples()).collect();
        let factor = &without.first()?.factor;
        let n = count(without.len() as u64, "test");
        Some(format!("not made over {factor}: {n}; each needs two complete runs of both levels"))
    }

    /// What the tests compare.
    fn against_first(&self, what: &str, operator: char) -> String {
        let first = self.levels.first().map_or("", |level| level.level.as_str());
        format!("{what} of {}={first} {operator} {what} of the level", self.factor)
    }

    /// The samples, the F-tests and the t-tests, with the result below them; without what no level has. Figures have the
    /// digits that R prints.
    pub(super) fn tables(&self) -> Vec<SheetTable> {
        if !self.has_samples() {
            return Vec::new();
        }
        let level = || [SheetColumn::words(&self.factor)].into_iter();
        let numbers = |names: &[&str]| names.iter().map(|name| SheetColumn::numbers(name)).collect::<Vec<_>>();
        let ends = format!("{} interval", confidence(STUDY_LEVEL));
        let unit = match self.metric.parse::<Metric>().ok().and_then(|metric| metric.nanoseconds()) {
            Some(unit) if unit > 1.0 => " in seconds".to_owned(),
            Some(_) => " in nanoseconds".to_owned(),
            None => in_unit(&self.metric),
        };
        let samples = numbers(&["runs", "mean", "median", "variance", "W", "p of W"]);
        let f = numbers(&["F", "df", "df of the level", "p", &ends]);
        let t = [SheetColumn::words("t-test")].into_iter().chain(numbers(&["t", "df", "p", &ends]));
        let t = t.chain([SheetColumn::words("")]);
        let others = self.levels.get(1..).unwrap_or_default();
        let title = format!("{}{unit}", self.title());
        let (ratio, difference) = (self.against_first("variance", '/'), self.against_first("mean", '−'));
        let table = |caption: String, title: String, columns: Vec<SheetColumn>| SheetTable {
            title,
            ..SheetTable::of(&caption, level().chain(columns))
        };
        let mut tables = vec![SheetTable {
            rows: self.levels.iter().map(TestedLevel::sample_row).collect(),
            ..table(format!("Samples: {title}"), title, samples)
        }];
        if others.iter().any(|level| level.test.is_some()) {
            tables.push(SheetTable {
                rows: others.iter().map(TestedLevel::f_row).collect(),
                ..table(format!("F-tests: {}, {ratio}", self.title()), ratio, f)
            });
            tables.push(SheetTable {
                rows: others.iter().map(TestedLevel::t_row).collect(),
                ..table(format!("t-tests: {}, {difference}", self.title()), difference, t.collect())
            });
        }
        tables.last_mut().into_iter().for_each(|last| last.below = vec![self.ending()]);
        tables
    }

    /// The result in one sentence, with the levels that could not be tested.
    fn ending(&self) -> String {
        let level = confidence(STUDY_LEVEL);
        let others = self.levels.get(1..).unwrap_or_default();
        let untested = others.iter().filter(|of| of.t().is_none()).map(|of| of.level.as_str());
        let untested = untested.collect::<Vec<_>>().join(", ");
        if others.iter().all(|of| of.t().is_none()) {
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

impl TestedLevel {
    fn t(&self) -> Option<TTest> {
        self.test.and_then(|test| test.t)
    }

    fn sample_row(&self) -> Vec<String> {
        let of = |value: &dyn Fn(&SampleSummary) -> f64| self.sample.as_ref().map(|of| moment(value(of)));
        // A single run has no variance.
        let variance = self.sample.filter(|of| of.n > 1).map(|of| moment(of.variance));
        let figures = [of(&|of| of.mean), of(&|of| of.median), variance];
        let found = self.shapiro_wilk;
        let figures = figures.into_iter().chain([found.map(|of| statistic(of.w)), found.map(|of| probability(of.p))]);
        let row = [self.level.clone(), grouped(self.sample.map_or(0, |sample| sample.n))].into_iter();
        row.chain(figures.map(|of| of.unwrap_or_else(dash))).collect()
    }

    fn f_row(&self) -> Vec<String> {
        let f = self.test.map(|test| test.f);
        let figures = f.map(|f| {
            let (value, ends) = match f.value {
                value if value.is_nan() => (dash(), dash()),
                value if value.is_infinite() => ("Inf".to_owned(), "[Inf, Inf]".to_owned()),
                value => (statistic(value), interval(f.low, f.high)),
            };
            [value, statistic(f.df1), statistic(f.df2), probability(f.p), ends]
        });
        [self.level.clone()].into_iter().chain(figures.unwrap_or_else(|| std::array::from_fn(|_| dash()))).collect()
    }

    fn t_row(&self) -> Vec<String> {
        let figures = self.t().map(|t| {
            let kind = if t.kind == TTestKind::Welch { "Welch" } else { "pooled" }.to_owned();
            [kind, statistic(t.value), statistic(t.df), probability(t.p), interval(t.low, t.high)]
        });
        let figures = figures.unwrap_or_else(|| std::array::from_fn(|_| dash()));
        let loss = if self.is_loss { "loss".to_owned() } else { String::new() };
        [self.level.clone()].into_iter().chain(figures).chain([loss]).collect()
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

    fn shown(tests: &LevelTests) -> String {
        tests.tables().iter().filter_map(crate::sheet::text::table).collect::<Vec<_>>().join("\n")
    }

    /// A sample of exactly this size, mean and variance.
    fn sample(n: usize, mean: f64, variance: f64) -> Vec<f64> {
        let raw: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7).sin()).collect();
        let of = SampleSummary::of(&raw).unwrap();
        raw.iter().map(|v| mean + (v - of.mean) * (variance / of.variance).sqrt()).collect()
    }

    /// The operations of the study on ZFS and on Hammer: F, t, their degrees of freedom, p and intervals are those that it
    /// printed, from variances within its rounding. The third level does not vary.
    #[test]
    fn the_tables_have_the_printed_figures_of_the_study() {
        let tables = |last: &str, samples: [Vec<f64>; 3]| {
            let levels = ["0", last, "equal"];
            let cells: Vec<FactorialCell> =
                levels.iter().zip(&samples).map(|(level, values)| cell(&[level], values)).collect();
            shown(&LevelTests::of(&Metric::ops(), 0, "snapshots", &[factor("snapshots", &levels)], &cells)[0])
        };
        let zfs = [sample(29, 1_954_108.0 / 29.0, 430_239.5), sample(29, 187_000.0 / 29.0, 71_895.06), vec![5e4; 3]];
        let hammer = [sample(10, 103_095.0, 10_686_403.0), sample(4, 90_163.75, 2_964_386.948), vec![1.1e5; 3]];
        let equal = [vec![7.0; 3], vec![7.0; 3], vec![6.0; 2]];
        let text = [tables("1811", zfs), tables("840", hammer), tables("1", equal)].join("\n");
        insta::assert_snapshot!("tables_of_the_study", text);
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

    /// Single runs have no tables, and several of one level alone no tests.
    #[test]
    fn what_cannot_be_tested_has_no_empty_tables() {
        let factors = [factor("n", &["0", "30"]), factor("script", &["a", "b"])];
        let of = |a: &[f64], b: &[f64]| {
            let cells = [cell(&["0", "a"], a), cell(&["0", "b"], &[7.0]), cell(&["30", "a"], b), cell(&["30", "b"], b)];
            LevelTests::of(&Metric::ops(), 0, "n", &factors, &cells)
        };
        let single = of(&[5.0], &[4.0]);
        assert!(single.iter().all(|tests| tests.tables().is_empty() && tests.caption().is_none()));
        let says = "not made over n: 2 tests; each needs two complete runs of both levels";
        assert_eq!(LevelTests::untested(&single).unwrap(), says);
        let several = of(&[5.0, 6.0], &[4.0]);
        assert_eq!((several[0].tables().len(), several[1].tables().len()), (1, 0));
        assert_eq!(several[0].caption().unwrap(), "Samples: ops over n, script=a");
        assert!(
            shown(&several[0]).contains("\n30     1     4       4         -  -       -\n"),
            "{}",
            shown(&several[0])
        );
        assert!(shown(&several[0]).contains("no level could be tested"), "{}", shown(&several[0]));
        assert!(LevelTests::untested(&several).unwrap().contains(" 1 test;"));
        assert_eq!((LevelTests::untested(&of(&[5.0, 6.0], &[4.0, 5.0])[..1]), LevelTests::untested(&[])), (None, None));
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
        let text = shown(&found[0]);
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
