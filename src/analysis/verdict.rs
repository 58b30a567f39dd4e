//! The verdict of a comparison, from the interval of a ratio and a tolerance.

use super::sample::Estimate;
use serde::{Deserialize, Serialize};

/// Which way a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Such as operations a second.
    HigherIsBetter,
    /// Such as latency.
    LowerIsBetter,
}

/// The relative change that is too small to matter, above 0 and below 1 (0.03 is 3 %).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance(pub f64);

/// What a comparison says of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// By more than the tolerance, surely.
    Better,
    /// Worse by more than the tolerance, surely.
    Worse,
    /// Surely within the tolerance.
    Same,
    /// Surely no loss beyond the tolerance; a gain is possible.
    NotWorse,
    /// The interval is too wide to say.
    Unclear,
    /// The machine changed meanwhile.
    Invalid,
}

impl ComparisonVerdict {
    /// All, in the order in which they are documented.
    pub const ALL: [Self; 6] = [Self::Better, Self::Same, Self::NotWorse, Self::Worse, Self::Unclear, Self::Invalid];

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::NotWorse => "not worse",
            Self::Unclear => "unclear",
            Self::Invalid => "invalid",
        }
    }

    /// Exit status of a comparison.
    pub fn code(self) -> u8 {
        match self {
            Self::Better | Self::Same | Self::NotWorse => 0,
            Self::Worse => 10,
            Self::Unclear => 11,
            Self::Invalid => 12,
        }
    }
}

/// The verdict of a goodness (above 1 is better) with its interval; with δ the tolerance: *better* if low > 1 + δ, *worse* if high <
/// 1 − δ, *same* if both ends are inside of 1 ± δ, *not worse* if low > 1 − δ, else *unclear*. A figure that is no number is unclear.
pub fn classify(goodness: Estimate, tolerance: Tolerance) -> ComparisonVerdict {
    let Estimate { low, high, .. } = goodness;
    let (below, above) = (1.0 - tolerance.0, 1.0 + tolerance.0);
    if low.is_nan() || high.is_nan() {
        ComparisonVerdict::Unclear
    } else if low > above {
        ComparisonVerdict::Better
    } else if high < below {
        ComparisonVerdict::Worse
    } else if low > below && high < above {
        ComparisonVerdict::Same
    } else if low > below {
        ComparisonVerdict::NotWorse
    } else {
        ComparisonVerdict::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each direction with each verdict; intervals are of the ratio B over A as measured.
    #[test]
    fn each_direction_has_each_verdict() {
        let of = |low: f64, high: f64| Estimate { value: f64::midpoint(low, high), low, high };
        let higher = [
            (of(1.04, 1.08), ComparisonVerdict::Better),
            (of(0.90, 0.96), ComparisonVerdict::Worse),
            (of(0.98, 1.02), ComparisonVerdict::Same),
            (of(0.98, 1.06), ComparisonVerdict::NotWorse),
            (of(0.95, 1.05), ComparisonVerdict::Unclear),
        ];
        for (ratio, verdict) in higher {
            assert_eq!(classify(Direction::HigherIsBetter.goodness(ratio), Tolerance(0.03)), verdict);
        }
        let lower = [
            (of(0.90, 0.95), ComparisonVerdict::Better),
            (of(1.04, 1.10), ComparisonVerdict::Worse),
            (of(0.98, 1.02), ComparisonVerdict::Same),
            (of(0.90, 1.02), ComparisonVerdict::NotWorse),
            (of(0.95, 1.05), ComparisonVerdict::Unclear),
        ];
        for (ratio, verdict) in lower {
            assert_eq!(classify(Direction::LowerIsBetter.goodness(ratio), Tolerance(0.03)), verdict);
        }
        assert_eq!(classify(of(f64::NAN, f64::NAN), Tolerance(0.03)), ComparisonVerdict::Unclear);
    }
}
