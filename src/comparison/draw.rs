//! Which lines of a table are draws.

use super::numbers::figure;
use crate::analysis::{DRAW, Direction, Estimate, TestOutcome, TestWinner, outcome};
use serde::{Deserialize, Serialize};

/// Which lines of a table are draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrawRule {
    /// A factor below 1.05.
    #[default]
    Factor,
    /// Figures that are equal as printed.
    Printed,
}

impl DrawRule {
    /// What it says in a file.
    pub(crate) const PRINTED: &str = "printed";

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The outcome of the comparison of two figures of a metric.
    pub(super) fn outcome(self, a: f64, b: f64, metric: &str, direction: Direction) -> Option<TestOutcome> {
        let found = outcome(a, b, direction)?;
        let winner = match self {
            Self::Factor => found.winner,
            Self::Printed if figure(metric, a) == figure(metric, b) => TestWinner::Draw,
            Self::Printed if (a > b) == (direction == Direction::HigherIsBetter) => TestWinner::A,
            Self::Printed => TestWinner::B,
        };
        Some(TestOutcome { winner, ..found })
    }

    /// Returns the outcome that the interval of a ratio shows, or `None` if it shows none.
    pub(super) fn shown_by(self, ratio: Estimate, direction: Direction) -> Option<TestWinner> {
        let ratio = direction.goodness(ratio);
        match () {
            () if self == Self::Factor && ratio.low > 1.0 / DRAW && ratio.high < DRAW => Some(TestWinner::Draw),
            () if ratio.low > 1.0 => Some(TestWinner::B),
            () if ratio.high < 1.0 => Some(TestWinner::A),
            () => None,
        }
    }
}
