//! The verdict of a comparison, from the interval of a ratio and a tolerance.

use super::sample::Estimate;
use serde::Serialize;

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// For metrics such as operations per second.
    HigherIsBetter,
    /// For metrics such as latency.
    LowerIsBetter,
}

/// The largest relative change that does not matter to the user, between 0 and 1 (0.03 is 3 %).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance(pub f64);

wml_text::named! {
    /// The verdict of a comparison on B, at the confidence level of the interval, in the order in which the manual has them.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ComparisonVerdict {
        /// B is better by more than the tolerance.
        Better = "better";
        /// B differs from A by less than the tolerance.
        Same = "same";
        /// B is not worse by more than the tolerance. It may be better.
        NotWorse = "not worse";
        /// B is worse by more than the tolerance.
        Worse = "worse";
        /// The interval is too wide for any of the other verdicts.
        Unclear = "unclear";
        /// The comparison is invalid: the negative control changed during the experiment.
        Invalid = "invalid";
    }
}

impl ComparisonVerdict {
    /// Returns the exit status of a comparison with this verdict.
    pub fn code(self) -> u8 {
        match self {
            Self::Better | Self::Same | Self::NotWorse => 0,
            Self::Worse => 10,
            Self::Unclear => 11,
            Self::Invalid => 12,
        }
    }
}

/// Returns the verdict for a goodness (a ratio of which a value above 1 is better) with its interval. With the
/// tolerance δ it is: *better* if low > 1 + δ, *worse* if high < 1 − δ, *same* if both ends are inside 1 ± δ, *not
/// worse* if low > 1 − δ, else *unclear*. It is *unclear* also if an end is NaN.
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

    /// The intervals are those of the measured ratio of B to A.
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
