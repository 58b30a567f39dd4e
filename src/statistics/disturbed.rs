//! What runs that other programs disturbed leave of a verdict, if nothing shows that the machine was equally fast for A and B.

use super::distributions::ln_choose;
use super::verdict::ComparisonVerdict;

/// The number of runs of A and B, and of those that were disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// The disturbed runs of A and B.
    pub disturbed: [u64; 2],
    /// All runs of A and B.
    pub runs: [u64; 2],
}

/// What is done to see whether a verdict on interleaved runs depends on those that were disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisturbanceCheck {
    /// Nothing: A and B were not disturbed alike.
    Unequal,
    /// The verdict is given again by the blocks of which no run was disturbed; there are so many.
    Undisturbed(usize),
    /// The verdict is given again by the interval of all blocks at the level [`STRICT_LEVEL`].
    Strict,
}

/// The level of the interval of all blocks, if too few of them are undisturbed.
pub const STRICT_LEVEL: f64 = 0.999;

impl Disturbance {
    /// True if half or more of the runs of a side were disturbed.
    pub fn is_of_half_a_side(self) -> bool {
        (0..2).any(|side| self.disturbed[side] > 0 && 2 * self.disturbed[side] >= self.runs[side])
    }

    /// Returns the two-sided p-value of Fisher's exact test for equal shares of disturbed runs: the probability of all tables
    /// with the same sums that are not more probable than this one.
    pub(crate) fn p_of_equal_shares(self) -> f64 {
        let ([a, b], [runs_a, runs_b]) = (self.disturbed, self.runs);
        let all = a + b;
        let ln_probability =
            |a: u64| ln_choose(runs_a, a) + ln_choose(runs_b, all - a) - ln_choose(runs_a + runs_b, all);
        // Equally probable tables differ by rounding.
        let most = ln_probability(a) + 1e-7;
        let tables = all.saturating_sub(runs_b)..=all.min(runs_a);
        tables.map(ln_probability).filter(|of| *of <= most).map(f64::exp).sum::<f64>().min(1.0)
    }

    /// Says what is to be done about a verdict on interleaved runs, of which so many blocks have no disturbed run. Returns
    /// `None` if no run was disturbed.
    pub fn check(self, undisturbed: usize) -> Option<DisturbanceCheck> {
        const SIGNIFICANCE: f64 = 0.05;
        const MIN_BLOCKS: usize = 3;
        match self.disturbed {
            [0, 0] => None,
            _ if self.p_of_equal_shares() < SIGNIFICANCE => Some(DisturbanceCheck::Unequal),
            _ if undisturbed >= MIN_BLOCKS => Some(DisturbanceCheck::Undisturbed(undisturbed)),
            _ => Some(DisturbanceCheck::Strict),
        }
    }
}

impl DisturbanceCheck {
    /// True if a verdict holds, of which `again` gives the verdict by the same blocks that this check names.
    pub fn holds(self, verdict: ComparisonVerdict, again: impl FnOnce() -> Option<ComparisonVerdict>) -> bool {
        self != Self::Unequal && again() == Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(disturbed: [u64; 2], runs: [u64; 2]) -> Disturbance {
        Disturbance { disturbed, runs }
    }

    /// Disturbed runs, all runs, and the p-value of `scipy.stats.fisher_exact`.
    const FISHER: [([u64; 2], [u64; 2], f64); 7] = [
        ([1, 0], [8, 8], 1.0),
        ([0, 6], [8, 8], 0.006_993_006_993_006_993),
        ([7, 8], [8, 8], 1.0),
        ([12, 3], [16, 16], 0.003_847_595_161_106_487),
        ([0, 5], [2, 16], 1.0),
        ([3, 20], [40, 60], 0.003_122_317_452_254_357_5),
        ([8, 8], [8, 8], 1.0),
    ];

    #[test]
    fn fishers_test_has_the_values_of_scipy() {
        for (disturbed, runs, p) in FISHER {
            let found = of(disturbed, runs).p_of_equal_shares();
            assert!((found / p - 1.0).abs() < 1e-6, "{disturbed:?} of {runs:?}: {found}, expected {p}");
        }
    }

    #[test]
    fn the_check_depends_on_the_undisturbed_blocks_and_the_shares() {
        use ComparisonVerdict::{Unclear, Worse};
        use DisturbanceCheck::{Strict, Undisturbed, Unequal};
        assert_eq!(of([0, 0], [8, 8]).check(4), None);
        assert_eq!(of([1, 0], [8, 8]).check(3), Some(Undisturbed(3)));
        assert_eq!(of([7, 8], [8, 8]).check(0), Some(Strict));
        assert_eq!(of([2, 2], [8, 8]).check(2), Some(Strict));
        assert_eq!(of([0, 6], [8, 8]).check(5), Some(Unequal));
        assert!(Strict.holds(Worse, || Some(Worse)) && !Strict.holds(Worse, || Some(Unclear)));
        assert!(!Unequal.holds(Worse, || Some(Worse)) && !Strict.holds(Worse, || None));
        let halves = [[0, 0], [3, 3], [4, 0], [0, 8]].map(|disturbed| of(disturbed, [8, 8]).is_of_half_a_side());
        assert_eq!(halves, [false, false, true, true]);
    }
}
