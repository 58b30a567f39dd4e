//! What people see of a history: the table of tests with the verdict on the last night, and the nights of one test.

use super::TestName;
use super::night_report::{BoundaryNight, CourseNight, NightReport, NightTest};
use crate::analysis::{Estimate, NightState};
use crate::comparison::{Difference, figure, percent, with_direction};
use crate::import::shortened;
use crate::sheet::{Answer, Media, Sheet, SheetBlock, SheetCheck, SheetColumn, SheetTable, Tone};
use crate::util::count::{count, or_dash};

/// The heights of the nights of a course. A step is [`STEP`] of the reference, which has the height [`MIDDLE`].
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const STEP: f64 = 0.08;
const MIDDLE: f64 = 4.0;

/// The nights of a course in the table of tests.
pub const SHOWN_NIGHTS: usize = 14;

/// The longest value of a condition in a table, and the longest name of a test.
const LONGEST: usize = 26;

/// The last nights of a test as heights.
fn heights(test: &NightTest) -> String {
    let reference = test.reference.unwrap_or(f64::NAN);
    let height = |night: &CourseNight| {
        let steps = MIDDLE + ((night.value / reference - 1.0) / STEP).round();
        HEIGHTS[steps.clamp(0.0, 7.0) as usize]
    };
    test.course[test.course.len().saturating_sub(SHOWN_NIGHTS)..].iter().map(height).collect()
}

/// A ratio as a change in per cent, with its interval.
fn change(ratio: Estimate) -> String {
    let decimals = usize::from(ratio.high - ratio.low < 0.04);
    let of = |ratio: f64| format!("{:+.decimals$}", (ratio - 1.0) * 100.0);
    match (ratio.value.is_finite(), ratio.ends()) {
        (false, _) => "-".to_owned(),
        (true, None) => format!("{} %", of(ratio.value)),
        (true, Some((low, high))) => format!("{} % [{}, {}]", of(ratio.value), of(low), of(high)),
    }
}

/// The verdict on a test.
fn verdict(test: &NightTest) -> String {
    match (&test.since, test.state) {
        (Some(since), state) => format!("{} since {since}", state.name()),
        (None, NightState::Unknown) => match test.spread {
            Some(spread) => format!("unknown: varies by {}", percent(spread)),
            None => format!("unknown after {}", count(test.nights, "night")),
        },
        (None, state) => state.name().to_owned(),
    }
}

/// The same with its change: the mean since then, the end of a drift, or that of the last night.
fn whole_verdict(test: &NightTest) -> String {
    let since = test.change.map(|change| self::change(Estimate { value: change, low: f64::NAN, high: f64::NAN }));
    let change = match (since, test.state) {
        // The last night of one that is missing is an earlier one.
        (None, NightState::Missing | NightState::Unknown) => return verdict(test),
        (None, _) if !test.ratio.value.is_finite() => return verdict(test),
        (None, _) => self::change(test.ratio),
        (Some(change), NightState::Drifting) => format!("{change} by now"),
        (Some(change), _) => format!("{change} on average"),
    };
    format!("{}, {change}", verdict(test))
}

/// The conditions that changed, as a list of their names.
fn changed_names(changed: &[Difference]) -> String {
    changed.iter().map(|difference| difference.what.as_str()).collect::<Vec<_>>().join(", ")
}

/// The table of what changed with the first night of a change.
fn changed_table(tests: &[NightTest]) -> SheetTable {
    let [what, before, after] = ["changed", "before", "after"].map(SheetColumn::words);
    let columns = [SheetColumn::words("test").at_most(LONGEST), SheetColumn::words("night"), what];
    let columns = columns.into_iter().chain([before.at_most(LONGEST), after.at_most(LONGEST)]);
    let mut table = SheetTable::of("What changed", columns);
    let shown = |value: String| if value.is_empty() { "-".to_owned() } else { value };
    for test in tests {
        let first = test.since.as_ref().or_else(|| test.course.last().map(|last| &last.night));
        let first = (first.cloned().unwrap_or_default(), &test.changed);
        let later = test.later.iter().map(|step| (step.night.clone(), &step.changed));
        for (night, changed) in std::iter::once(first).chain(later) {
            if changed.is_empty() && test.state >= NightState::Drifting {
                let [none, before, after] = ["nothing recorded", "-", "-"].map(str::to_owned);
                table.row([test.label.clone(), night.clone(), none, before, after]);
            }
            for difference in changed {
                let [before, after] = difference.shown().map(shown);
                table.row([test.label.clone(), night.clone(), difference.what.clone(), before, after]);
            }
        }
    }
    table
}

impl NightReport {
    /// Returns the names of the tests in a state, as people read them.
    fn names(&self, state: NightState) -> Vec<String> {
        let found = self.tests.iter().filter(|test| test.state == state);
        found.map(|test| format!("`{}`", test.label)).collect()
    }

    /// The verdict on the night.
    fn answer(&self) -> Answer {
        let of = count(self.tests.len() as u64, "test");
        let words = |state: NightState| match state {
            NightState::Worse => "worse",
            NightState::Drifting => "drifting",
            NightState::Suspect => "suspect: a second night decides",
            NightState::Missing => "without a result of the last night",
            NightState::Unknown => "without a verdict: too few nights, or they vary too much",
            NightState::Same => "as before",
        };
        let states = NightState::ALL.into_iter().rev().filter(|state| *state != NightState::Same);
        let found: Vec<String> = states
            .filter_map(|state| {
                let names = self.names(state);
                let all = names.len() == self.tests.len() && names.len() > 1;
                let are = if names.len() == 1 { "is" } else { "are" };
                let named = if all { String::new() } else { format!(" ({})", shortened(&names)) };
                (!names.is_empty()).then(|| format!("{} of {of} {are} {}{named}", names.len(), words(state)))
            })
            .collect();
        let result = match found.is_empty() {
            true => format!("{}: no test of {} is worse than before.", self.state.name(), self.tests.len()),
            false => format!("{}: {}.", self.state.name(), found.join("; ")),
        };
        let losses = || self.tests.iter().filter_map(|test| test.detectable);
        let detectable = losses().reduce(f64::max).map(|most| {
            let least = losses().fold(most, f64::min);
            let [least, most] = [least, most].map(percent);
            let range = if least == most { most } else { format!("{least} to {most}, depending on the test,") };
            format!("A loss of {range} shows within two nights with a probability of 80 %.")
        });
        let advice = match self.state {
            NightState::Worse | NightState::Drifting => {
                "If the new level is to stay, `wmlrun history accept` makes it the one to compare with."
            }
            NightState::Missing => "`wmlrun history forget` removes a test that is not run any more.",
            _ => "",
        };
        Answer { details: detectable.into_iter().collect(), advice: advice.to_owned(), ..Answer::of_part(result) }
    }

    /// The title: the metric and the night.
    fn title(&self) -> String {
        let night = self.night.as_ref().map_or_else(String::new, |night| format!(", night of {night}"));
        format!("{}{night}", with_direction(&self.metric))
    }

    /// The table of tests.
    fn table(&self) -> SheetTable {
        let value = |value: Option<f64>| or_dash(value, |value| figure(&self.metric, value));
        let mut table = SheetTable::of(
            "Tests",
            [
                SheetColumn::words("test").at_most(LONGEST),
                SheetColumn::words("last nights"),
                SheetColumn::numbers("reference").only(Media::RICH),
                SheetColumn::numbers("last"),
                SheetColumn::words("change"),
                SheetColumn::words("verdict"),
            ],
        );
        table.is_compact = true;
        // That of a test that is missing is an earlier night.
        let is_disturbed = |last: &CourseNight| last.disturbed && self.night.as_ref() == Some(&last.night);
        for test in &self.tests {
            table.row([
                test.label.clone(),
                heights(test),
                value(test.reference),
                value(test.course.last().map(|last| last.value)),
                change(test.ratio),
                verdict(test) + if test.course.last().is_some_and(is_disturbed) { " (disturbed)" } else { "" },
            ]);
        }
        table
    }

    /// The last night: the verdict on each test, and what changed.
    pub fn sheet(&self) -> Sheet {
        let check = |test: &NightTest| SheetCheck::of_code(&test.label, test.state.code(), &whole_verdict(test));
        Sheet {
            title: self.title(),
            class: with_direction(&self.metric),
            checks: self.tests.iter().map(check).collect(),
            answer: self.answer(),
            tone: match self.state.code() {
                0 => Tone::Good,
                10 => Tone::Bad,
                _ => Tone::Neutral,
            },
            blocks: [self.table().block(), changed_table(&self.tests).block()].into_iter().flatten().collect(),
        }
    }

    /// What is worth telling of the night since which a test is worse: the conditions of that night and of the last good
    /// one. `None` if it is not worse.
    pub(crate) fn boundary_sheet(&self, of: &TestName) -> Option<Sheet> {
        let test = self.test(of)?;
        let boundary = test.boundary.as_ref()?;
        let of_night = |what: &str, night: &BoundaryNight| -> Vec<String> {
            let (value, runs) = (figure(&self.metric, night.value), count(night.runs as u64, "run"));
            let first = format!("{what} {}: {value} ({runs})", night.night);
            std::iter::once(first).chain(night.conditions.iter().cloned()).collect()
        };
        let changed = test.changed.iter().map(|found| {
            let [before, after] = found.shown().map(|value| if value.is_empty() { "none".to_owned() } else { value });
            format!("{}: {before} → {after}", found.what)
        });
        let later = test.later.iter().map(|step| {
            let changed = changed_names(&step.changed);
            format!(
                "worse still since {}: {}",
                step.night,
                if changed.is_empty() { "nothing recorded" } else { &changed }
            )
        });
        let nothing = test.changed.is_empty().then(|| "Nothing changed that is recorded.".to_owned());
        let conditions =
            [of_night("last good night", &boundary[0]), of_night("first bad night", &boundary[1])].concat();
        Some(Sheet {
            title: format!("{}: {}", test.label, with_direction(&self.metric)),
            answer: Answer {
                details: nothing.into_iter().collect(),
                conditions: changed.chain(later).chain(conditions).collect(),
                ..Answer::of_part(format!("{}.", whole_verdict(test)))
            },
            ..Sheet::default()
        })
    }

    /// The nights of a test, the last one at the end; `None` if the report has no such test.
    pub(crate) fn course_sheet(&self, of: &TestName) -> Option<Sheet> {
        let test = self.test(of)?;
        let columns = [SheetColumn::words("night"), SheetColumn::numbers("figure"), SheetColumn::numbers("change")];
        let columns = columns.into_iter().chain([SheetColumn::numbers("runs"), SheetColumn::words("what changed")]);
        let mut table = SheetTable::of("Nights", columns);
        let reference = test.reference.unwrap_or(f64::NAN);
        for night in &test.course {
            let ratio = Estimate { value: night.value / reference, low: f64::NAN, high: f64::NAN };
            let alone = if test.alone.contains(&night.night) { "stands alone; " } else { "" };
            let again = if night.again { "made again; " } else { "" };
            let disturbed = if night.disturbed { "disturbed; " } else { "" };
            let words = format!("{alone}{again}{disturbed}{}", changed_names(&night.changed));
            table.row([
                night.night.clone(),
                figure(&self.metric, night.value),
                change(ratio),
                night.runs.to_string(),
                words.trim_end_matches("; ").to_owned(),
            ]);
        }
        let accepted = test.accepted.as_ref().map(|level| SheetBlock::Text {
            text: format!("The level since {} is accepted: {}", level.since, level.why),
        });
        Some(Sheet {
            title: format!("{}: {}", test.label, self.title()),
            answer: Answer::of_part(format!("{}.", whole_verdict(test))),
            blocks: table.block().into_iter().chain(accepted).collect(),
            ..Sheet::default()
        })
    }
}
