//! The verdict on a night, `wmlrun.history/1`: what each test says, since when, and what changed then.

use super::tests_of_nights::{History, HistoryTest, TestName, TestNight};
use crate::analysis::{Direction, Estimate, NightState, NightVerdict, judge_nights};
use crate::comparison::{Difference, condition_lines, differences};
use crate::import::{Metric, Observation};
use serde::Serialize;

/// The name of what changes if other programs used the machine during some nights only.
const DISTURBED: &str = "other programs";

/// The verdict on the last night of a history.
#[derive(Clone, Debug, Serialize)]
pub struct NightReport {
    /// `wmlrun.history/1`.
    pub schema: String,
    /// The last night; null without a result.
    pub night: Option<String>,
    pub metric: String,
    pub higher_is_better: bool,
    /// The worst of the tests.
    pub state: NightState,
    pub tests: Vec<NightTest>,
}

/// What the nights of a test say.
#[derive(Clone, Debug, Serialize)]
pub struct NightTest {
    pub test: String,
    pub place: String,
    #[serde(skip)]
    pub label: String,
    pub state: NightState,
    /// The first night that is worse, or the first of the drift; null in other states.
    pub since: Option<String>,
    /// The ratio of the figure since then to the reference: of its mean, or of the end of the drift.
    pub change: Option<f64>,
    /// What changed with that night, or with a suspect one.
    pub changed: Vec<Difference>,
    /// Later nights on which a worse test became worse still.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<LaterStep>,
    /// The figure that nights are compared with; null without a night.
    pub reference: Option<f64>,
    /// The ratio of the last night to it, with its 95 % interval.
    pub ratio: Estimate,
    /// The smallest loss that two nights show with a probability of 80 %; null if nothing can be said.
    pub detectable: Option<f64>,
    /// The standard deviation between nights, of the logarithms, if its own is known.
    #[serde(skip)]
    pub spread: Option<f64>,
    /// The number of nights that count.
    pub nights: u64,
    /// The first night that counts, and why, if the user has accepted a new level.
    pub accepted: Option<AcceptedSince>,
    /// Nights that stand alone: they count neither for the reference nor for the spread.
    pub alone: Vec<String>,
    /// The figures of the last nights.
    pub course: Vec<CourseNight>,
    /// The last night before it was worse, drifting or suspect, and the first one on which it was.
    #[serde(skip)]
    pub(super) boundary: Option<[BoundaryNight; 2]>,
}

/// A night on which a worse test became worse still.
#[derive(Clone, Debug, Serialize)]
pub struct LaterStep {
    pub night: String,
    /// What changed with it.
    pub changed: Vec<Difference>,
}

/// A night on one side of a change.
#[derive(Clone, Debug)]
pub(super) struct BoundaryNight {
    pub(super) night: String,
    pub(super) value: f64,
    pub(super) runs: usize,
    /// Its conditions, in lines.
    pub(super) conditions: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AcceptedSince {
    pub since: String,
    pub why: String,
}

/// A night of a test.
#[derive(Clone, Debug, Serialize)]
pub struct CourseNight {
    pub night: String,
    /// The geometric mean of its runs.
    pub value: f64,
    pub runs: u64,
    /// Whether its runs were made again because the test was suspect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Whether other programs used the processors or the devices.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// What changed since the night before.
    pub changed: Vec<Difference>,
}

impl History {
    /// The conditions of a night, each once, as those of runs.
    fn observations(&self, night: &TestNight<'_>) -> Vec<Observation> {
        let of_run = |digest: &String| self.conditions.get(digest).cloned().unwrap_or_default();
        let mut digests: Vec<&String> = night.runs.iter().map(|run| &run.conditions).collect();
        digests.sort_unstable();
        digests.dedup();
        digests.into_iter().map(|d| Observation { conditions: of_run(d), ..Observation::default() }).collect()
    }

    /// What changed from one night of a test to another.
    fn changed(&self, before: &TestNight<'_>, after: &TestNight<'_>) -> Vec<Difference> {
        let is_disturbed = |night: &TestNight<'_>| night.runs.iter().any(|run| run.disturbed);
        let is_equal = before.runs.iter().chain(&after.runs).all(|run| run.conditions == before.runs[0].conditions);
        let mut found = Vec::new();
        if !is_equal {
            let [before, after] = [before, after].map(|night| self.observations(night));
            // A row of a table has few conditions. What is not known of one side did not change.
            let is_row = |night: &[Observation]| night.iter().all(|run| !run.conditions.contains_key("kernel"));
            let [no_before, no_after] = [is_row(&before), is_row(&after)];
            found = differences(&before, &after);
            found.retain(|found| !(no_before && found.a.is_empty() || no_after && found.b.is_empty()));
        }
        if is_disturbed(after) && !is_disturbed(before) {
            let [what, a, b] = [DISTURBED, "idle", "busy"].map(str::to_owned);
            found.push(Difference { what, a, b, kind: crate::comparison::DifferenceKind::Setting });
        }
        found
    }
}

/// A goodness as the ratio of figures.
fn of_figures(goodness: f64, direction: Direction) -> f64 {
    if direction == Direction::HigherIsBetter { goodness } else { 1.0 / goodness }
}

fn report(
    history: &History,
    test: &HistoryTest<'_>,
    found: &NightVerdict,
    metric: &Metric,
    course: usize,
    tonight: Option<&str>,
) -> NightTest {
    let direction = metric.direction();
    let nights = &test.nights[test.earlier..];
    let is_tonight = nights.last().is_some_and(|last| Some(last.night) == tonight);
    let state = if is_tonight || found.state >= NightState::Drifting { found.state } else { NightState::Missing };
    // What was made again is of the same date.
    let first_tonight = || nights.iter().position(|night| Some(night.night) == tonight);
    let begin = found.since.or_else(|| first_tonight().filter(|_| state == NightState::Suspect));
    let boundary = begin.and_then(|night| Some([nights.get(night.checked_sub(1)?)?, &nights[night]]));
    let boundary_night = |night: &TestNight<'_>| BoundaryNight {
        night: night.night.to_owned(),
        value: night.value,
        runs: night.runs.len(),
        conditions: condition_lines(&[&history.observations(night)]),
    };
    let ends = [found.last.low, found.last.high].map(|end| of_figures(end, direction));
    let shown = test.nights.len().saturating_sub(course);
    let of_night = |n: usize| {
        let night = &test.nights[n];
        let before = n.checked_sub(1).map(|before| &test.nights[before]);
        CourseNight {
            night: night.night.to_owned(),
            value: night.value,
            runs: night.runs.len() as u64,
            again: night.runs.iter().any(|run| run.again),
            disturbed: night.runs.iter().any(|run| run.disturbed),
            changed: before.map(|before| history.changed(before, night)).unwrap_or_default(),
        }
    };
    let is_step = |night: &&usize| state == NightState::Worse && **night > 0;
    let later = found.steps.iter().filter(is_step).map(|night| LaterStep {
        night: nights[*night].night.to_owned(),
        changed: history.changed(&nights[*night - 1], &nights[*night]),
    });
    NightTest {
        test: test.name.test.clone(),
        place: test.name.place.clone(),
        label: test.label.clone(),
        state,
        since: found.since.map(|night| nights[night].night.to_owned()),
        change: found.change.map(|change| of_figures(change, direction)),
        changed: boundary.map(|[before, after]| history.changed(before, after)).unwrap_or_default(),
        later: later.collect(),
        reference: Some(of_figures(found.reference.exp(), direction)).filter(|value| value.is_finite()),
        ratio: Estimate {
            value: of_figures(found.last.value, direction),
            low: ends[0].min(ends[1]),
            high: ends[0].max(ends[1]),
        },
        detectable: found.detectable,
        spread: found.spread,
        nights: nights.len() as u64,
        accepted: test.accepted.map(|level| AcceptedSince { since: level.since.clone(), why: level.why.clone() }),
        // Whether the last one stands alone is not known yet.
        alone: found.alone.iter().filter(|n| **n + 1 < nights.len()).map(|n| nights[*n].night.to_owned()).collect(),
        course: (shown..test.nights.len()).map(of_night).collect(),
        boundary: boundary.map(|boundary| boundary.map(boundary_night)),
    }
}

impl NightReport {
    /// The tests that a second part of the night may confirm: the suspects that were not made again yet.
    pub fn suspects(&self) -> Vec<&NightTest> {
        let is_open = |test: &&NightTest| test.course.last().is_some_and(|last| !last.again);
        self.tests.iter().filter(|test| test.state == NightState::Suspect).filter(is_open).collect()
    }

    /// What the nights of a test say.
    pub fn test(&self, of: &TestName) -> Option<&NightTest> {
        self.tests.iter().find(|test| of.is(&test.test, &test.place))
    }

    /// Judges the last night of a history by a metric. Each test has at most so many nights of its course.
    pub fn of(history: &History, metric: &Metric, course: usize) -> Self {
        let direction = metric.direction();
        let tests = history.tests(metric);
        let logarithms: Vec<Vec<f64>> = tests.iter().map(|test| test.logarithms(direction)).collect();
        let found = judge_nights(&logarithms.iter().map(Vec::as_slice).collect::<Vec<_>>(), direction);
        // Found once: it looks at all runs.
        let tonight = history.last_night();
        let mut tests: Vec<NightTest> = tests
            .iter()
            .zip(&found)
            .map(|(test, found)| report(history, test, found, metric, course, tonight))
            .collect();
        // The worst ones first.
        tests.sort_by_key(|test| std::cmp::Reverse(test.state));
        Self {
            schema: "wmlrun.history/1".to_owned(),
            night: tonight.map(str::to_owned),
            metric: metric.to_string(),
            higher_is_better: direction == Direction::HigherIsBetter,
            state: tests.iter().map(|test| test.state).max().unwrap_or(NightState::Unknown),
            tests,
        }
    }
}
