//! The runs of a history by tests and nights.

use super::line::{AcceptedLevel, HistoryLine, HistoryRun};
use crate::analysis::Direction;
use crate::import::Metric;
use std::collections::{BTreeMap, BTreeSet};

/// What tells a test from others: its name, and the directory of its files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestName {
    pub test: String,
    pub place: String,
}

impl TestName {
    /// True if it is the test of this name at this place.
    pub fn is(&self, test: &str, place: &str) -> bool {
        self.test == test && self.place == place
    }

    /// The last names of the place, or all of it.
    fn short_place(&self, names: usize) -> &str {
        let end = self.place.trim_end_matches('/');
        end.rmatch_indices('/').nth(names - 1).map_or(self.place.as_str(), |(at, _)| &end[at + 1..])
    }
}

/// What the files of a history say.
#[derive(Debug, Default)]
pub struct History {
    pub(super) runs: Vec<HistoryRun>,
    /// The values of conditions, by their digests.
    pub(super) conditions: BTreeMap<String, BTreeMap<String, String>>,
    accepted: Vec<AcceptedLevel>,
    /// What could not be read.
    pub notes: Vec<String>,
}

/// The runs of each night, and those that were made again.
type RunsByNight<'a> = BTreeMap<(&'a str, bool), Vec<&'a HistoryRun>>;

/// A night of a test. Runs that were made again are a night of their own, with the same date.
#[derive(Clone, Debug)]
pub(super) struct TestNight<'a> {
    pub(super) night: &'a str,
    /// The geometric mean of its runs.
    pub(super) value: f64,
    pub(super) runs: Vec<&'a HistoryRun>,
}

impl<'a> TestNight<'a> {
    /// The runs of a night, which have the metric.
    fn of(night: &'a str, runs: &[&'a HistoryRun], metric: &str) -> Self {
        let logarithms = runs.iter().filter_map(|run| run.metrics.get(metric)).map(|value| value.ln());
        let mean = logarithms.sum::<f64>() / runs.len() as f64;
        Self { night, value: mean.exp(), runs: runs.to_vec() }
    }
}

/// A test with its nights since its last accepted level.
#[derive(Debug)]
pub(super) struct HistoryTest<'a> {
    pub(super) name: TestName,
    /// The name for people: with the place if the test has several.
    pub(super) label: String,
    pub(super) accepted: Option<&'a AcceptedLevel>,
    /// All nights that have the metric.
    pub(super) nights: Vec<TestNight<'a>>,
    /// The number of those before the accepted level.
    pub(super) earlier: usize,
}

impl HistoryTest<'_> {
    /// The nights that count, as logarithms of which more is better.
    pub(super) fn logarithms(&self, direction: Direction) -> Vec<f64> {
        let sign = if direction == Direction::HigherIsBetter { 1.0 } else { -1.0 };
        self.nights[self.earlier..].iter().map(|night| sign * night.value.ln()).collect()
    }
}

impl History {
    pub(super) fn take(&mut self, line: HistoryLine) {
        match line {
            HistoryLine::Schema(_) => {}
            HistoryLine::Conditions(found) => _ = self.conditions.insert(found.digest, found.values),
            HistoryLine::Run(run) => self.runs.push(run),
            HistoryLine::Accepted(level) => self.accepted.push(level),
        }
    }

    /// The last night.
    pub(crate) fn last_night(&self) -> Option<&str> {
        self.runs.iter().map(|run| run.night.as_str()).max()
    }

    /// The first of the last nights of this number; `None` if there are no more than these.
    pub(crate) fn first_of_last(&self, number: usize) -> Option<&str> {
        let nights: BTreeSet<&str> = self.runs.iter().map(|run| run.night.as_str()).collect();
        nights.into_iter().rev().nth(number.saturating_sub(1))
    }

    /// The names of the tests, each with that for people.
    pub fn names(&self) -> Vec<(TestName, String)> {
        let keys: BTreeSet<(&str, &str)> =
            self.runs.iter().map(|run| (run.test.as_str(), run.place.as_str())).collect();
        let names: Vec<TestName> =
            keys.into_iter().map(|(test, place)| TestName { test: test.to_owned(), place: place.to_owned() }).collect();
        let label = |name: &TestName| {
            let others = || names.iter().filter(|other| other.test == name.test && *other != name);
            if others().next().is_none() {
                return name.test.clone();
            }
            let is_own = |length: &usize| others().all(|other| other.short_place(*length) != name.short_place(*length));
            let shortest = (1..=name.place.matches('/').count()).find(is_own);
            format!("{}:{}", name.test, shortest.map_or(name.place.as_str(), |length| name.short_place(length)))
        };
        names.iter().map(|name| (name.clone(), label(name))).collect()
    }

    /// The test that a text names: its name for people, or name and place with a colon between them.
    pub fn find(&self, text: &str) -> Option<TestName> {
        let is_it =
            |(name, label): &(TestName, String)| label == text || format!("{}:{}", name.test, name.place) == text;
        self.names().into_iter().find(is_it).map(|(name, _)| name)
    }

    /// The tests of an experiment that have a level of this name, with their names for people.
    pub fn with_level(&self, level: &str) -> Vec<(TestName, String)> {
        let has_it = |test: &str| test.contains(',') && test.split(',').any(|part| part == level);
        self.names().into_iter().filter(|(name, _)| has_it(&name.test)).collect()
    }

    /// The nights of a test, in their order.
    pub(crate) fn nights_of(&self, of: &TestName) -> BTreeSet<&str> {
        self.runs.iter().filter(|run| of.is(&run.test, &run.place)).map(|run| run.night.as_str()).collect()
    }

    /// The tests whose script sets their rate, as people read them.
    pub fn paced(&self) -> Vec<String> {
        let has_response = |run: &&HistoryRun| run.metrics.contains_key("response.mean");
        let paced: BTreeSet<(&str, &str)> =
            self.runs.iter().filter(has_response).map(|run| (run.test.as_str(), run.place.as_str())).collect();
        let is_paced = |(name, _): &(TestName, String)| paced.contains(&(name.test.as_str(), name.place.as_str()));
        self.names().into_iter().filter(is_paced).map(|(_, label)| format!("`{label}`")).collect()
    }

    /// The tests with their nights.
    pub(super) fn tests(&self, metric: &Metric) -> Vec<HistoryTest<'_>> {
        let metric = metric.to_string();
        let mut runs: BTreeMap<(&str, &str), RunsByNight<'_>> = BTreeMap::new();
        let is_usable =
            |run: &&HistoryRun| run.metrics.get(&metric).is_some_and(|value| *value > 0.0 && value.is_finite());
        for run in self.runs.iter().filter(is_usable) {
            runs.entry((&run.test, &run.place)).or_default().entry((&run.night, run.again)).or_default().push(run);
        }
        let test = |(name, label): (TestName, String)| {
            let accepted = self.accepted.iter().rev().find(|level| name.is(&level.test, &level.place));
            let nights: Vec<TestNight<'_>> = runs
                .get(&(name.test.as_str(), name.place.as_str()))
                .map(|nights| nights.iter().map(|((date, _), runs)| TestNight::of(date, runs, &metric)).collect())
                .unwrap_or_default();
            let earlier =
                accepted.map_or(0, |level| nights.partition_point(|night| night.night < level.since.as_str()));
            HistoryTest { name, label, accepted, nights, earlier }
        };
        // Of a test that never had the metric there is nothing to say.
        self.names().into_iter().map(test).filter(|test| !test.nights.is_empty()).collect()
    }
}
