//! Verdicts on the tests of a suite that is run each night.
//!
//! The observation is a night: the logarithm of a figure, of which more is better. A level ends where a change point is
//! (`change_points`), after nights that stand alone were left out.

use super::change_points::KnownWindows;
use super::distributions::t_upper;
use super::verdict::Direction;
use super::{Estimate, median};
use serde::Serialize;
use std::cmp::Ordering;
use std::f64::consts::FRAC_PI_2;
use std::ops::Range;

/// How often a quiet night may have a test of the suite outside of its limits, or one that is worse.
const SUITE_ERROR: f64 = 0.05;

/// The number of nights from which on the spread of a test is its own. Before it is that of all tests, or its own so far if
/// that is greater.
const OWN_SPREAD: usize = 8;

/// The nights that are judged at most, those that are judged again, each as it was the last, and those that are the
/// reference.
const JUDGED: usize = 400;
const REPLAYED: usize = 60;
const REFERENCE: usize = 30;

/// The number of nights from which on a level is a better one, and a reference of its own.
const BETTER: usize = 5;

/// The fewest and the most nights of a drift, with what precedes it.
const DRIFTING: usize = 5;
const DRIFT_WINDOW: usize = 60;

/// The nights on either side with which a single one is compared, the fewest on both, and how far it is from them if it
/// stands alone, in standard deviations.
const NEIGHBOURS: usize = 5;
const FEWEST_NEIGHBOURS: usize = 3;
const ALONE: f64 = 5.0;

/// The share of the steps that count as degrees of freedom of the spread that their median gives.
const STEPS_EFFICIENCY: f64 = 0.37;

/// The levels and the drifts among which one is found, about: as many as are independent of each other.
const LEVEL_LOOKS: f64 = 5.0;
const DRIFT_LOOKS: f64 = 10.0;

/// The least standard deviation: nights that differ by a thousandth do not differ.
const LEAST_SPREAD: f64 = 0.001;

/// The largest loss that is still taken for one of a normal figure, which is never below zero.
const LONGEST_TAIL: f64 = 0.9;

/// The detectable loss from which on nothing can be said.
const MOST_DETECTABLE: f64 = 0.5;

wml_text::named! {
    /// What is said of a test, from the best to the worst.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum NightState {
        Same = "same";
        /// There are too few nights.
        Unknown = "unknown";
        /// It has no result of the last night of the suite, and was neither drifting nor worse before.
        Missing = "missing";
        /// The last night is outside of the limits, and no second one confirms it.
        Suspect = "suspect";
        /// It loses more with each night.
        Drifting = "drifting";
        Worse = "worse";
    }
}

impl NightState {
    /// The exit status of a night with such a test.
    pub fn code(self) -> u8 {
        match self {
            Self::Same => 0,
            Self::Worse | Self::Drifting => 10,
            Self::Unknown | Self::Missing | Self::Suspect => 11,
        }
    }
}

/// What the nights of a test say. Positions are those of nights, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct NightVerdict {
    pub state: NightState,
    /// The first night that is worse, or of the drift.
    pub since: Option<usize>,
    /// Later nights on which a worse test became worse still.
    pub steps: Vec<usize>,
    /// The ratio of the nights since then to the reference: their mean, or the end of the drift.
    pub change: Option<f64>,
    /// The logarithm of the reference: the median of its nights.
    pub reference: f64,
    /// The ratio of the last night to the reference, with its 95 % interval.
    pub last: Estimate,
    /// The standard deviation between nights, of the logarithms; `None` before its own is known.
    pub spread: Option<f64>,
    /// The smallest loss that two nights show with a probability of 80 %; `None` if nothing can be said.
    pub detectable: Option<f64>,
    /// The nights that stand alone, and count neither for a level nor for the spread.
    pub alone: Vec<usize>,
}

/// A series without the nights that stand alone, and its levels.
struct Levelled {
    alone: Vec<usize>,
    /// The position of each value among all nights.
    positions: Vec<usize>,
    values: Vec<f64>,
    levels: Vec<Range<usize>>,
    /// The sum of the squares of the distances to the means of levels, and its degrees of freedom.
    squares: f64,
    df: usize,
}

/// The distances between one night and the next.
fn steps(nights: &[f64]) -> Vec<f64> {
    nights.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect()
}

/// The standard deviation of nights whose steps these are, whatever their levels.
fn spread_of_steps(steps: &[f64]) -> f64 {
    // The median of the distance of two normal values is 0.954 standard deviations.
    median(steps).unwrap_or_default() / 0.954
}

/// The steps of all tests whose spread is that of all. A test that a rate paces hardly varies, and says nothing about others.
fn pooled_steps(tests: &[&[f64]]) -> Vec<f64> {
    let all = || tests.iter().map(|nights| steps(nights));
    let varying: Vec<f64> = all().filter(|steps| spread_of_steps(steps) > LEAST_SPREAD).flatten().collect();
    if varying.is_empty() { all().flatten().collect() } else { varying }
}

/// The standard deviation of the nights of a test before its last one: who varies more than others shows it soon. A loss
/// that the last night confirms is one step of several, and does not hide itself.
fn early_spread(nights: &[f64]) -> f64 {
    spread_of_steps(&steps(&nights[..nights.len().saturating_sub(1)]))
}

/// On which side of a limit a distance is; equal if it is within.
fn outside(distance: f64, limit: f64) -> Ordering {
    match distance {
        below if below < -limit => Ordering::Less,
        above if above > limit => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// The nights that are far from those around them, and whose neighbours are not on the same side.
fn alone(nights: &[f64], spread: f64) -> Vec<usize> {
    let side = |n: usize| {
        let (from, to) = (n.saturating_sub(NEIGHBOURS), (n + NEIGHBOURS + 1).min(nights.len()));
        let around: Vec<f64> = (from..to).filter(|other| *other != n).map(|other| nights[other]).collect();
        if around.len() < FEWEST_NEIGHBOURS {
            return Ordering::Equal;
        }
        let distance = nights[n] - median(&around).unwrap_or(nights[n]);
        outside(distance, ALONE * spread)
    };
    let sides: Vec<Ordering> = (0..nights.len()).map(side).collect();
    let is_alone = |n: &usize| {
        let has_other =
            |other: Option<usize>| other.and_then(|other| sides.get(other)).is_some_and(|o| *o == sides[*n]);
        sides[*n] != Ordering::Equal && !has_other(n.checked_sub(1)) && !has_other(Some(n + 1))
    };
    (0..nights.len()).filter(is_alone).collect()
}

impl Levelled {
    fn of(nights: &[f64], spread: f64, windows: &mut KnownWindows) -> Self {
        let alone = alone(nights, spread.max(LEAST_SPREAD));
        let positions: Vec<usize> = (0..nights.len()).filter(|n| !alone.contains(n)).collect();
        let values: Vec<f64> = positions.iter().map(|n| nights[*n]).collect();
        let points = windows.change_points(&values);
        let begins = std::iter::once(0).chain(points.iter().copied());
        let levels: Vec<Range<usize>> =
            begins.zip(points.iter().copied().chain([values.len()])).map(|(begin, end)| begin..end).collect();
        let of_level = |level: &Range<usize>| {
            let mean = mean(&values[level.clone()]);
            values[level.clone()].iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        let squares = levels.iter().map(of_level).sum();
        let df = values.len().saturating_sub(levels.len());
        Self { alone, positions, values, levels, squares, df }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation between nights, and the limits of a test in standard errors.
#[derive(Clone, Copy)]
struct Limits {
    spread: f64,
    df: f64,
    /// That of a night.
    night: f64,
    /// That of a level.
    level: f64,
}

impl Limits {
    fn of(spread: f64, df: f64, tests: usize) -> Option<Self> {
        let quantile = |looks: f64| t_upper(SUITE_ERROR / tests as f64 / looks, df);
        let of_df =
            || Self { spread: spread.max(LEAST_SPREAD), df, night: quantile(1.0), level: quantile(LEVEL_LOOKS) };
        (df > 0.0).then(of_df)
    }

    /// The standard error of the mean of `nights` from the median of `reference` nights.
    fn error(&self, nights: usize, reference: usize) -> f64 {
        self.spread * (1.0 / nights as f64 + FRAC_PI_2 / reference as f64).sqrt()
    }
}

/// The nights that others are compared with.
struct ReferenceNights {
    /// The first of them, and what follows the last.
    begin: usize,
    end: usize,
    values: Vec<f64>,
}

impl ReferenceNights {
    fn latest(&self) -> &[f64] {
        &self.values[self.values.len().saturating_sub(REFERENCE)..]
    }

    fn middle(&self) -> f64 {
        median(self.latest()).unwrap_or_default()
    }

    /// The side on which nights are outside of the limits, also without the one that is farthest on it.
    fn side(&self, nights: &[f64], limits: &Limits) -> Ordering {
        let farthest = if mean(nights) < self.middle() { f64::min } else { f64::max };
        let (Some(farthest), rest) = (nights.iter().copied().reduce(farthest), nights.len() - 1) else {
            return Ordering::Equal;
        };
        if rest == 0 {
            return Ordering::Equal;
        }
        let distance = (nights.iter().sum::<f64>() - farthest) / rest as f64 - self.middle();
        outside(distance, limits.level * limits.error(rest, self.latest().len()))
    }
}

/// A level that falls in a line.
struct NightDrift {
    /// The last night before it.
    begin: usize,
    /// The change per night.
    slope: f64,
}

/// The least squares of a line that is level up to a night and then has a slope.
struct BrokenLine {
    slope: f64,
    /// The sum of the squares of the times from their mean.
    of_times: f64,
    /// The sum of the squares of what the line leaves.
    rest: f64,
}

impl BrokenLine {
    /// The line that bends at `begin`, without one of the values.
    fn of(values: &[f64], begin: usize, without: Option<usize>) -> Self {
        let points = || {
            let all = values.iter().enumerate().filter(|(at, _)| Some(*at) != without);
            all.map(|(at, value)| (at.saturating_sub(begin) as f64, *value))
        };
        let n = (values.len() - usize::from(without.is_some())) as f64;
        let (x, y) = points().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x, sum.1 + y));
        let (x, y) = (x / n, y / n);
        let (mut of_times, mut both, mut total) = (0.0, 0.0, 0.0);
        for (time, value) in points() {
            of_times += (time - x).powi(2);
            both += (time - x) * (value - y);
            total += (value - y).powi(2);
        }
        Self { slope: both / of_times, of_times, rest: total - both * both / of_times }
    }
}

/// The drift at the end of a series. `None` if a step fits better, or the line may be level.
fn drift(values: &[f64], tests: usize) -> Option<NightDrift> {
    let n = values.len();
    if n < 2 * DRIFTING {
        return None;
    }
    let average = mean(values);
    let total: f64 = values.iter().map(|value| (value - average).powi(2)).sum();
    let lines = (0..n - DRIFTING).map(|begin| (begin, BrokenLine::of(values, begin, None)));
    let (begin, line) = lines.min_by(|(_, a), (_, b)| a.rest.total_cmp(&b.rest))?;
    let of_step = |at: usize| {
        let (before, after) = values.split_at(at);
        let (a, b) = (mean(before), mean(after));
        total - (before.len() * after.len()) as f64 / n as f64 * (a - b).powi(2)
    };
    let step = (1..n - 1).map(of_step).fold(f64::INFINITY, f64::min);
    // No single night makes a drift.
    let lowest = (begin + 1..n).min_by(|a, b| values[*a].total_cmp(&values[*b]));
    let without = BrokenLine::of(values, begin, lowest);
    let df = (n - 4) as f64;
    let error = (without.rest / df).sqrt().max(LEAST_SPREAD) / without.of_times.sqrt();
    let is_falling = without.slope < -t_upper(SUITE_ERROR / tests as f64 / DRIFT_LOOKS, df) * error;
    (is_falling && line.rest <= step).then_some(NightDrift { begin, slope: line.slope })
}

/// A test that was found worse or drifting. Later nights change the levels that are found, and with them what a test is
/// compared with: what was called a loss remains one until the figures are back.
struct Alarm {
    state: NightState,
    since: usize,
    reference: f64,
    /// Half of the interval of a night.
    half: f64,
    /// Nights above this are good again: it is in the middle between the reference and the loss.
    midway: f64,
    /// The number of nights when it was found.
    called: usize,
}

impl Alarm {
    fn of(found: &NightVerdict, called: usize) -> Option<Self> {
        Some(Self {
            state: found.state,
            since: found.since?,
            reference: found.reference,
            half: (found.last.high / found.last.low).ln() / 2.0,
            midway: found.reference + found.change?.ln() / 2.0,
            called,
        })
    }

    /// True if the last night is good again, and of a loss that lasts also the one before. A loss within the interval of a
    /// night does not show in single ones: levels alone tell whether it goes on.
    fn is_over(&self, nights: &[f64]) -> bool {
        let shows = 2.0 * (self.reference - self.midway) > self.half;
        let needed = if nights.len() >= self.called + BETTER { 2 } else { 1 };
        !shows || nights[nights.len().saturating_sub(needed)..].iter().all(|night| *night > self.midway)
    }

    /// The nights since which it is worse still: two that are out of the interval of those before them, or a last one that is
    /// so by far.
    fn steps(&self, nights: &[f64]) -> Vec<usize> {
        let (mut begin, mut found) = (self.since, Vec::new());
        for night in self.since + 1..nights.len() {
            let below = mean(&nights[begin..night]) - self.half;
            let next = nights.get(night + 1).map_or(nights[night] + self.half, |next| *next);
            if nights[night].max(next) < below {
                begin = night;
                found.push(night);
            }
        }
        found
    }

    /// Keeps what was said of a test when it was found worse.
    fn hold(&self, found: &mut NightVerdict, nights: &[f64]) {
        let counts = |n: &usize| !found.alone.contains(n) || *n + 1 == nights.len();
        let bad: Vec<f64> = (self.since..nights.len()).filter(counts).map(|n| nights[n]).collect();
        let bad = if self.state == NightState::Drifting { &bad[bad.len().saturating_sub(2)..] } else { &bad };
        found.change = (!bad.is_empty()).then(|| (mean(bad) - self.reference).exp());
        let last = nights.last().map_or(f64::NAN, |last| last - self.reference);
        found.last = Estimate::around(last, self.half).map(f64::exp);
        (found.state, found.since, found.reference) = (self.state, Some(self.since), self.reference);
        found.steps = if self.state == NightState::Worse { self.steps(nights) } else { Vec::new() };
    }
}

/// What is known of the tests of a suite from earlier nights.
struct NightWatch {
    alarms: Vec<Option<Alarm>>,
    windows: Vec<KnownWindows>,
    direction: Direction,
}

impl NightWatch {
    fn new(tests: usize, direction: Direction) -> Self {
        Self {
            alarms: (0..tests).map(|_| None).collect(),
            windows: (0..tests).map(|_| KnownWindows::default()).collect(),
            direction,
        }
    }

    /// Judges the tests by their nights up to one that follows those seen before.
    fn see(&mut self, tests: &[&[f64]]) -> Vec<NightVerdict> {
        let mut all = judge_last(tests, &mut self.windows, self.direction);
        for ((found, alarm), nights) in all.iter_mut().zip(&mut self.alarms).zip(tests) {
            if found.state < NightState::Drifting && alarm.as_ref().is_some_and(|alarm| alarm.is_over(nights)) {
                *alarm = None;
            }
            match alarm {
                // The bend of a drift is known the better, the longer it is.
                Some(known) if found.state != NightState::Drifting => {
                    if found.state == NightState::Worse && known.state == NightState::Drifting {
                        (known.state, known.since) = (found.state, found.since.unwrap_or(known.since));
                    }
                    known.hold(found, nights);
                }
                Some(known) if known.state == NightState::Worse => {}
                _ if found.state >= NightState::Drifting => *alarm = Alarm::of(found, nights.len()),
                _ => {}
            }
        }
        all
    }
}

/// Judges the tests of a suite by the logarithms of their nights, of which more is better. `direction`: that of the figures.
pub fn judge_nights(tests: &[&[f64]], direction: Direction) -> Vec<NightVerdict> {
    let mut watch = NightWatch::new(tests.len(), direction);
    let longest = tests.iter().map(|nights| nights.len()).max().unwrap_or_default();
    for later in (1..longest.min(REPLAYED)).rev() {
        let earlier: Vec<&[f64]> = tests.iter().map(|nights| &nights[..nights.len().saturating_sub(later)]).collect();
        watch.see(&earlier);
    }
    watch.see(tests)
}

/// The verdicts of the last night by itself.
fn judge_last(tests: &[&[f64]], windows: &mut [KnownWindows], direction: Direction) -> Vec<NightVerdict> {
    let judged: Vec<&[f64]> = tests.iter().map(|nights| &nights[nights.len().saturating_sub(JUDGED)..]).collect();
    let all_steps = pooled_steps(&judged);
    let common = spread_of_steps(&all_steps);
    let spread = |nights: &[f64]| match nights.len() < OWN_SPREAD {
        true => common.max(early_spread(nights)),
        false => spread_of_steps(&steps(nights)),
    };
    let levelled: Vec<Levelled> =
        judged.iter().zip(windows).map(|(nights, known)| Levelled::of(nights, spread(nights), known)).collect();
    let count = tests.len();
    // One bad night in the suite must not hide all others.
    let pooled = Limits::of(common, all_steps.len() as f64 * STEPS_EFFICIENCY, count);
    let judge = |(test, nights): (&Levelled, &&[f64])| {
        let own = || Limits::of((test.squares / test.df as f64).sqrt(), test.df as f64, count);
        let early = || pooled.map(|limits| Limits { spread: limits.spread.max(early_spread(nights)), ..limits });
        judge(test, nights, if test.values.len() < OWN_SPREAD { early() } else { own() }, (count, direction))
    };
    let mut found: Vec<NightVerdict> = levelled.iter().zip(&judged).map(judge).collect();
    for (verdict, nights) in found.iter_mut().zip(tests) {
        let earlier = nights.len().saturating_sub(JUDGED);
        verdict.since = verdict.since.map(|night| night + earlier);
        verdict.alone.iter_mut().for_each(|night| *night += earlier);
    }
    found
}

/// How far below its reference, as a logarithm, the last night may be by chance. The figures themselves may be normal: of a
/// rate the logarithm then has a longer tail below. `half`: how far a logarithm that is normal may be.
fn night_limit(half: f64, direction: Direction) -> f64 {
    match direction {
        Direction::HigherIsBetter => (-half.min(LONGEST_TAIL)).ln_1p().min(-half),
        Direction::LowerIsBetter => -half,
    }
}

fn judge(
    test: &Levelled,
    nights: &[f64],
    limits: Option<Limits>,
    (tests, direction): (usize, Direction),
) -> NightVerdict {
    let mut found = NightVerdict {
        state: NightState::Unknown,
        since: None,
        steps: Vec::new(),
        change: None,
        reference: median(nights).unwrap_or(f64::NAN),
        last: Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN },
        spread: limits.map(|limits| limits.spread).filter(|_| test.values.len() >= OWN_SPREAD),
        detectable: None,
        alone: test.alone.clone(),
    };
    let (Some(limits), Some(first), Some(last)) = (limits, test.levels.first(), nights.last()) else { return found };
    // The first night is compared with none.
    if test.values.is_empty() || nights.len() < 2 {
        return found;
    }
    let mut reference = ReferenceNights { begin: 0, end: first.end, values: test.values[first.clone()].to_vec() };
    let mut worse: Option<usize> = None;
    for level in &test.levels[1..] {
        let values = &test.values[level.clone()];
        match reference.side(values, &limits) {
            Ordering::Less => worse = worse.or(Some(level.start)),
            // A few good nights raise no expectation.
            Ordering::Greater if values.len() < BETTER => worse = None,
            Ordering::Greater => {
                (reference, worse) =
                    (ReferenceNights { begin: level.start, end: level.end, values: values.to_vec() }, None);
            }
            // A level of one night is none yet.
            Ordering::Equal if values.len() == 1 => {}
            Ordering::Equal => {
                reference.values.extend(values);
                reference.end = level.end;
                worse = None;
            }
        }
    }
    // The last night is no part of what it is compared with.
    let is_in = reference.end == test.values.len() && test.positions.last() == Some(&(nights.len() - 1));
    if is_in && reference.values.len() > 1 {
        reference.values.pop();
    }
    let (middle, n) = (reference.middle(), reference.latest().len());
    let error = limits.error(1, n);
    let half = t_upper(0.025, limits.df) * error;
    found.reference = middle;
    found.last = Estimate::around(last - middle, half).map(f64::exp);
    // Of two nights each is outside of the limit with a probability of the root of 80 %.
    let limit = night_limit(limits.night * error, direction);
    let detectable = 1.0 - (limit - 1.25 * limits.spread).exp();
    found.detectable = Some(detectable).filter(|loss| *loss < MOST_DETECTABLE);
    let from = reference.begin.max(test.values.len().saturating_sub(DRIFT_WINDOW));
    if let Some(drift) = drift(&test.values[from..], tests) {
        let length = test.values.len() - 1 - from - drift.begin;
        found.state = NightState::Drifting;
        found.since = Some(test.positions[from + drift.begin + 1]);
        found.change = Some((drift.slope * length as f64).exp());
    } else if let Some(since) = worse {
        found.state = NightState::Worse;
        found.since = Some(test.positions[since]);
        found.change = Some((mean(&test.values[since..]) - middle).exp());
    } else if last - middle < limit {
        found.state = NightState::Suspect;
    } else if found.detectable.is_some() {
        found.state = NightState::Same;
    }
    found
}

#[cfg(test)]
#[path = "nights_tests.rs"]
mod tests;
