//! The noise floor: the relative difference of results between measurements of an unchanged system.

use super::sample::Estimate;
use serde::{Deserialize, Serialize};

/// The noise floor of sessions that each compare two equal arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The relative difference that is within the noise: the greatest distance from 1 of an end of the sessions'
    /// intervals, or the greatest relative distance between the sessions' means if that is greater.
    pub share: f64,
    /// The number of sessions.
    pub sessions: u64,
}

impl NoiseFloor {
    /// Computes the noise floor of sessions, each given as the ratio of its arms and the mean of its runs. Returns
    /// `None` when there is no session or an interval is unbounded.
    pub fn of(sessions: &[(Estimate, f64)]) -> Option<Self> {
        let within = sessions.iter().flat_map(|(ratio, _)| [ratio.low, ratio.high]).map(|end| end.ln().abs());
        let within = within.reduce(f64::max)?;
        let means = || sessions.iter().map(|(_, mean)| mean.ln());
        let between = means().fold(f64::MIN, f64::max) - means().fold(f64::MAX, f64::min);
        let share = within.max(between).exp_m1();
        share.is_finite().then_some(Self { share, sessions: sessions.len() as u64 })
    }

    /// Returns the noise floor of a comparison whose sides have different ones, such as results on two file systems.
    #[must_use]
    pub fn wider(self, other: Self) -> Self {
        Self { share: self.share.max(other.share), sessions: self.sessions.min(other.sessions) }
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

    #[test]
    fn the_floor_is_the_widest_observed_difference() {
        let ratio = |low, high| Estimate { value: 1.0, low, high };
        assert_eq!(NoiseFloor::of(&[]), None);
        let one = NoiseFloor::of(&[(ratio(0.98, 1.01), 1000.0)]).unwrap();
        assert!((one.share - (1.0 / 0.98 - 1.0)).abs() < 1e-12 && one.sessions == 1);
        let two = NoiseFloor::of(&[(ratio(0.98, 1.01), 1000.0), (ratio(0.99, 1.01), 1080.0)]).unwrap();
        assert!((two.share - 0.08).abs() < 1e-12 && two.sessions == 2);
        let wide = two.widen(ratio(1.05, 1.10));
        assert!(wide.low < 1.0 && wide.high > 1.18);
        assert_eq!(NoiseFloor::of(&[(ratio(0.0, 1.01), 1000.0)]), None, "an unbounded interval gives no floor");
        assert_eq!((two.wider(one), one.wider(two).sessions), (NoiseFloor { share: two.share, sessions: 1 }, 1));
    }
}
