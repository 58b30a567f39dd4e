//! The noise floor: the relative difference of results between measurements of an unchanged system.

use super::sample::{Estimate, median};
use serde::Serialize;

/// The shortest time between two sessions, in seconds, for which they count as of different days.
pub const MIN_SESSION_GAP: i64 = 12 * 3600;

/// The widest interval of a session, as a relative difference. A floor of a wider one would make each comparison unclear.
const MAX_SHARE: f64 = 0.5;

/// Of so many sessions, the one with the widest interval is left out, so that one disturbed day does not widen the floor
/// for good.
const SESSIONS_PER_OUTLIER: usize = 5;

/// From so many steps between the sessions of successive days on, their median counts instead of the largest: a change of
/// the machine is one step, and a slow drift makes many small ones, so that neither becomes a part of the noise.
const MIN_STEPS: usize = 3;

/// The factors from the median of the steps to the step that is exceeded in one of twenty cases, from [`MIN_STEPS`] steps
/// on, if the means of days are independent and their logarithms normal. From simulations of 200,000 series each. With many
/// steps it is 2.9.
const STEPS_PER_MEDIAN: [f64; 8] = [5.8, 4.4, 4.6, 4.0, 4.1, 3.8, 3.8, 3.6];

/// A session that compares two equal arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloorSample {
    /// The ratio of the arms, with its interval.
    pub ratio: Estimate,
    /// The mean of all runs.
    pub mean: f64,
    /// The time of the session in seconds since 1970; `None` when it is unknown.
    pub time: Option<i64>,
}

impl FloorSample {
    /// Returns the greatest relative distance from 1 of an end of the interval.
    fn share(&self) -> f64 {
        self.ratio.low.ln().abs().max(self.ratio.high.ln().abs()).exp_m1()
    }

    /// True if the interval is too wide for a noise floor.
    pub fn is_too_wide(&self) -> bool {
        self.ratio.low.is_nan() || self.ratio.high.is_nan() || self.share() > MAX_SHARE
    }
}

/// Returns the means of the logarithms of the sessions of each day, in the order of time. Sessions of an unknown time are
/// days of their own.
fn day_means(sessions: &[FloorSample]) -> Vec<f64> {
    let mut in_order = sessions.to_vec();
    in_order.sort_by_key(|of| of.time);
    let mut days: Vec<Vec<FloorSample>> = Vec::new();
    for session in in_order {
        let is_of = |day: &Vec<FloorSample>| {
            let first = day.first().and_then(|first| first.time);
            first.zip(session.time).is_some_and(|(first, time)| time.saturating_sub(first) < MIN_SESSION_GAP)
        };
        match days.last_mut().filter(|day| is_of(day)) {
            Some(day) => day.push(session),
            None => days.push(vec![session]),
        }
    }
    days.iter().map(|day| day.iter().map(|of| of.mean.ln()).sum::<f64>() / day.len() as f64).collect()
}

/// Returns the largest difference of the logarithms of the means of two days that is within the noise. It is not more than
/// the largest that was seen.
fn between(sessions: &[FloorSample]) -> f64 {
    let days = day_means(sessions);
    let range = days.iter().copied().fold(f64::MIN, f64::max) - days.iter().copied().fold(f64::MAX, f64::min);
    let steps: Vec<f64> = days.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    match median(&steps) {
        Some(median) if steps.len() >= MIN_STEPS => {
            let factor = STEPS_PER_MEDIAN[(steps.len() - MIN_STEPS).min(STEPS_PER_MEDIAN.len() - 1)];
            (factor * median).min(range)
        }
        _ => range,
    }
}

/// Leaves out the greatest values: one of five.
fn without_outliers<T>(mut of: Vec<T>, by: impl Fn(&T) -> f64) -> Vec<T> {
    of.sort_by(|a, b| by(a).total_cmp(&by(b)));
    of.truncate(of.len() - of.len() / SESSIONS_PER_OUTLIER);
    of
}

/// The noise floor of sessions that each compare two equal arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// The relative difference that is within the noise: the greatest distance from 1 of an end of the sessions'
    /// intervals, of which one of five is left out, or the difference between the means of two days that is exceeded in one
    /// of twenty cases, if that is greater. With fewer than four days it is the greatest difference. A floor that the user
    /// gives is the difference that is expected without a change.
    pub share: f64,
    /// The number of sessions; 0 if the user has given the floor.
    pub sessions: u64,
    /// Whether the floor includes the difference between days: two of the sessions are at least twelve hours apart, or the
    /// user has given it.
    pub spans_days: bool,
}

impl NoiseFloor {
    /// Returns the noise floor that the user has given: the difference between days that means nothing.
    pub fn given(share: f64) -> Self {
        Self { share, sessions: 0, spans_days: true }
    }

    /// True if the user has given it.
    pub fn is_given(self) -> bool {
        self.sessions == 0
    }

    /// Computes the noise floor of sessions. Sessions with too wide an interval do not count. Returns `None` when there is
    /// no other one.
    pub fn of(sessions: &[FloorSample]) -> Option<Self> {
        let sessions: Vec<FloorSample> = sessions.iter().filter(|of| !of.is_too_wide()).copied().collect();
        let within = without_outliers(sessions.clone(), FloorSample::share).last()?.share();
        let share = within.max(between(&sessions).exp_m1());
        let times = || sessions.iter().filter_map(|of| of.time);
        let spans_days =
            times().max().zip(times().min()).is_some_and(|(last, first)| last.saturating_sub(first) >= MIN_SESSION_GAP);
        share.is_finite().then_some(Self { share, sessions: sessions.len() as u64, spans_days })
    }

    /// Returns the noise floor of a comparison whose sides have different ones, such as results on two file systems.
    #[must_use]
    pub fn wider(self, other: Self) -> Self {
        Self {
            share: self.share.max(other.share),
            sessions: self.sessions.min(other.sessions),
            spans_days: self.spans_days && other.spans_days,
        }
    }

    /// Widens the interval of a ratio by the noise floor on both sides, for arms that were measured on different days.
    pub fn widen(self, ratio: Estimate) -> Estimate {
        Estimate { value: ratio.value, low: ratio.low / (1.0 + self.share), high: ratio.high * (1.0 + self.share) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn session(low: f64, high: f64, mean: f64, hour: i64) -> FloorSample {
        FloorSample { ratio: Estimate { value: 1.0, low, high }, mean, time: Some(hour * 3600) }
    }

    #[test]
    fn the_floor_is_the_widest_observed_difference() {
        assert_eq!(NoiseFloor::of(&[]), None);
        let one = NoiseFloor::of(&[session(0.98, 1.01, 1000.0, 0)]).unwrap();
        assert!((one.share - (1.0 / 0.98 - 1.0)).abs() < 1e-12 && one.sessions == 1);
        let two = NoiseFloor::of(&[session(0.98, 1.01, 1000.0, 0), session(0.99, 1.01, 1080.0, 24)]).unwrap();
        assert!((two.share - 0.08).abs() < 1e-12 && two.sessions == 2);
        let wide = two.widen(Estimate { value: 1.07, low: 1.05, high: 1.10 });
        assert!(wide.low < 1.0 && wide.high > 1.18);
        for low in [0.0, 0.5, f64::NAN] {
            assert_eq!(NoiseFloor::of(&[session(low, 1.01, 1000.0, 0)]), None, "{low} is too wide an interval");
        }
        let both = NoiseFloor { share: two.share, sessions: 1, spans_days: false };
        assert_eq!((two.wider(one), one.wider(two)), (both, both));
    }

    fn share(means: &[f64]) -> f64 {
        let sessions: Vec<FloorSample> =
            means.iter().zip(0..).map(|(mean, day)| session(0.99, 1.01, *mean, day * 24)).collect();
        NoiseFloor::of(&sessions).unwrap().share
    }

    /// A disk that became slower for good, or one day on which it was.
    #[test]
    fn a_change_between_two_sessions_is_no_noise() {
        let steps = share(&[1000.0, 1020.0, 1000.0, 600.0, 610.0, 600.0]);
        assert!((steps - (4.6 * 1.02_f64.ln()).exp_m1()).abs() < 1e-9, "{steps}");
        assert!(share(&[1000.0, 1020.0, 1000.0, 600.0]) < 0.13, "three steps, of which one is the change");
        assert!(share(&[1000.0, 1030.0, 990.0, 300.0, 1010.0, 1000.0]) < 0.25);
        assert!(share(&[1000.0, 1020.0, 600.0]) > 0.6, "of two steps the larger one counts");
        // One slow day is two steps: what was seen bounds the floor.
        assert!((share(&[1000.0, 1010.0, 900.0, 1000.0]) - (1010.0 / 900.0 - 1.0)).abs() < 1e-9);
        let mut sessions: Vec<FloorSample> = (0..5).map(|day| session(0.99, 1.01, 1000.0, day * 24)).collect();
        sessions[2].ratio.low = 0.7;
        assert!((NoiseFloor::of(&sessions).unwrap().share - (1.0 / 0.99 - 1.0)).abs() < 1e-12);
    }

    /// A disk that loses 3 % a week.
    #[test]
    fn a_drift_is_no_noise() {
        let means: Vec<f64> = (0..20).map(|week| 1000.0 * 0.97_f64.powi(week)).collect();
        assert!(share(&means) < 0.12, "{}", share(&means));
    }

    /// Several sessions of one day do not hide the difference between days.
    #[test]
    fn the_sessions_of_a_day_are_one_step() {
        let of = |hours: [i64; 5]| {
            let means = [1000.0, 1002.0, 1000.0, 1001.0, 920.0];
            let sessions: Vec<FloorSample> =
                hours.iter().zip(means).map(|(hour, mean)| session(0.99, 1.01, mean, *hour)).collect();
            NoiseFloor::of(&sessions).unwrap().share
        };
        assert!(of([0, 1, 2, 3, 24]) > 0.08);
        assert!(of([0, 24, 48, 72, 96]) < 0.02);
    }

    /// The means of two days differ by more than the floor in about one of twenty cases.
    #[test]
    fn a_floor_covers_the_difference_between_two_days() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut mean = || (0.05 * rng.sample::<f64, _>(rand_distr::StandardNormal)).exp();
        let beyond = (0..2000).filter(|_| {
            let floor = share(&(0..12).map(|_| mean()).collect::<Vec<f64>>());
            (mean() / mean()).ln().abs() > floor.ln_1p()
        });
        let beyond = beyond.count();
        assert!((60..=180).contains(&beyond), "{beyond} of 2000");
    }

    #[test]
    fn a_floor_of_one_day_is_known_as_such() {
        let spans = |hours: &[i64]| {
            let sessions: Vec<FloorSample> = hours.iter().map(|hour| session(0.98, 1.01, 1000.0, *hour)).collect();
            NoiseFloor::of(&sessions).unwrap().spans_days
        };
        assert_eq!([spans(&[9]), spans(&[9, 10, 20]), spans(&[21, 10, 9])], [false, false, true]);
        let unknown = FloorSample { time: None, ..session(0.98, 1.01, 1000.0, 0) };
        assert!(!NoiseFloor::of(&[unknown, session(0.98, 1.01, 1000.0, 99)]).unwrap().spans_days);
    }
}
