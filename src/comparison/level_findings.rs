//! What the tests of levels against the first one show, in sentences: the first level is the control.

use super::build::STUDY_LEVEL;
use super::findings::{Clarity, Finding};
use super::level_tests::{LevelTests, TestedLevel};
use super::numbers::{confidence, probability};
use super::phrases::change;
use crate::util::count::count;

/// The most tests that are named.
const NAMED: usize = 3;

/// The sentences on tests of one metric: those of losses, then what has none, and what could not be tested.
pub(super) fn findings(tests: &[LevelTests]) -> Vec<Finding> {
    let (tested, untested): (Vec<&LevelTests>, Vec<&LevelTests>) =
        tests.iter().partition(|of| of.levels.iter().any(|level| level.test.is_some_and(|test| test.t.is_some())));
    let (lossy, without): (Vec<&LevelTests>, Vec<&LevelTests>) =
        tested.into_iter().partition(|of| of.first_loss.is_some());
    let losses = lossy.into_iter().map(|of| Finding { text: loss(of), clarity: Clarity::Clear });
    let others = [
        (without, "no loss is significant", Clarity::Unclear),
        (untested, "no level could be tested", Clarity::NoInterval),
    ];
    let others =
        others.into_iter().filter_map(|(of, text, clarity)| Some(Finding { text: joint(&of, text)?, clarity }));
    losses.chain(others).collect()
}

fn name(of: &LevelTests, level: &str) -> String {
    format!("{}={level}", of.factor)
}

fn before(of: &LevelTests) -> String {
    if of.others.is_empty() { String::new() } else { format!("{}: ", of.others) }
}

/// How a level differs from the first one; `None` without both means.
fn from_first(of: &LevelTests, level: &TestedLevel) -> Option<String> {
    let first = of.levels.first()?;
    let ratio = level.sample?.mean / first.sample?.mean;
    let p = level.test?.t.map_or_else(String::new, |t| format!(" (p {})", probability(t.p)));
    ratio.is_finite().then(|| change(&of.metric, ratio, [&name(of, &first.level), &name(of, &level.level)]) + &p)
}

/// The first loss, and the last level if that is another one.
fn loss(of: &LevelTests) -> String {
    let first = of.levels.iter().find(|level| level.is_loss);
    let last = of.levels.iter().rfind(|level| level.test.is_some());
    let told = first.and_then(|level| from_first(of, level)).unwrap_or_default();
    let last = last.filter(|last| first.is_some_and(|first| first.level != last.level));
    let last = last.and_then(|level| from_first(of, level)).map_or_else(String::new, |text| format!("; {text}"));
    format!("{}{told}, the first significant loss (at {}){last}", before(of), confidence(STUDY_LEVEL))
}

/// What several tests have in common; of a single one also how its last level differs. `None` without any.
fn joint(all: &[&LevelTests], text: &str) -> Option<String> {
    let first = all.first()?;
    let against = name(first, &first.levels.first()?.level);
    let of: Vec<String> = all.iter().map(|of| of.others.clone()).filter(|others| !others.is_empty()).collect();
    let of = match of.len() {
        0 => String::new(),
        1..=NAMED => format!(" with {}", of.join(", ")),
        n => format!(" in {}", count(n as u64, "test")),
    };
    let last = || first.levels.iter().skip(1).rfind(|level| level.sample.is_some());
    let last = if all.len() == 1 { last().and_then(|level| from_first(first, level)) } else { None };
    let last = last.map_or_else(String::new, |text| format!(": as measured, {text}"));
    Some(format!("{text} (at {}) against {against}{of}{last}", confidence(STUDY_LEVEL)))
}
