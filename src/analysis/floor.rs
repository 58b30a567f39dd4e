//! The noise floor: the relative difference of results between measurements of an unchanged system.

use super::sample::Estimate;
use serde::Serialize;

/// The shortest time between two sessions, in seconds, for which they count as of different days.
pub const MIN_SESSION_GAP: i64 = 12 * 3600;

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

/// The noise floor of sessions that each compare two equal arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// The relative difference that is within the noise: the greatest distance from 1 of an end of the sessions'
    /// intervals, or the greatest relative distance between the sessions' means if that is greater.
    pub share: f64,
    /// The number of sessions.
    pub sessions: u64,
    /// Whether two of the sessions are at least twelve hours apart, so that the floor includes the difference between
    /// days.
    pub spans_days: bool,
}

impl NoiseFloor {
    /// Computes the noise floor of sessions. Returns `None` when there is no session or an interval is unbounded.
    pub fn of(sessions: &[FloorSample]) -> Option<Self> {
        let within = sessions.iter().flat_map(|of| [of.ratio.low, of.ratio.high]).map(|end| end.ln().abs());
        let within = within.reduce(f64::max)?;
        let means = || sessions.iter().map(|of| of.mean.ln());
        let between = means().fold(f64::MIN, f64::max) - means().fold(f64::MAX, f64::min);
        let share = within.max(between).exp_m1();
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

    /// A session at an hour.
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
        assert_eq!(NoiseFloor::of(&[session(0.0, 1.01, 1000.0, 0)]), None, "an unbounded interval gives no floor");
        let both = NoiseFloor { share: two.share, sessions: 1, spans_days: false };
        assert_eq!((two.wider(one), one.wider(two)), (both, both));
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
