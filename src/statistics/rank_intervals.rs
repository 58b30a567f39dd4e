//! Shifts by ranks, with exact intervals (Hodges and Lehmann 1963): the signed-rank interval of pairs, and the interval
//! of the Mann–Whitney test of two samples. One value far from the others moves neither much.
//!
//! The estimate is the median of all means of two values, or of all differences of two values of both samples, and the
//! ends of the interval are order statistics of them. These are found by counting, so that no list of them is made.

use super::distributions::normal;
use super::sample::Estimate;

/// A shift with its interval, and the test of the null hypothesis of no shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RankShift {
    pub(super) estimate: Estimate,
    /// The two-sided p-value. It is below 1 − level if and only if the interval does not contain 0.
    pub(super) p: f64,
}

/// Returns the centre of values that are symmetrical about it, with its signed-rank interval at confidence `level`.
/// Returns `None` if there are too few values for the level: six are enough for 0.95, eleven for 0.999. The values must be
/// finite.
pub(super) fn signed_rank(values: &[f64], level: f64) -> Option<RankShift> {
    let sorted = sorted(values);
    let n = sorted.len() as u64;
    // The sums of two values, of which one may be taken twice. Those of a value fall as the other one is smaller.
    let sums = |most: f64| {
        let mut end = sorted.len();
        let count = |(i, x): (usize, &f64)| {
            while end > 0 && x + sorted[end - 1] > most {
                end -= 1;
            }
            end.saturating_sub(i) as u64
        };
        sorted.iter().enumerate().map(count).sum::<u64>()
    };
    let found = shift(n * (n + 1) / 2, &RankDistribution::of_pairs(n), level, &sums)?;
    Some(RankShift { estimate: found.estimate.map(|sum| sum / 2.0), ..found })
}

/// Returns the one-sided error probability of the signed-rank interval of so many values, at most `one_sided`. Returns `None`
/// if they are too few.
pub(super) fn signed_rank_level(n: u64, one_sided: f64) -> Option<f64> {
    RankDistribution::of_pairs(n).cut(one_sided).map(|(_, level)| level)
}

/// The fewest pairs whose signed ranks give an interval of this level.
pub fn fewest_pairs(level: f64) -> u64 {
    fewest(level, RankDistribution::of_pairs)
}

/// The fewest values on each side whose ranks give an interval of this level.
pub fn fewest_on_each_side(level: f64) -> u64 {
    fewest(level, |n| RankDistribution::of_samples(n, n))
}

fn fewest(level: f64, of: impl Fn(u64) -> RankDistribution) -> u64 {
    const MOST: u64 = 64;
    (2..MOST).find(|n| of(*n).cut((1.0 - level) / 2.0).is_some()).unwrap_or(MOST)
}

/// Returns the shift of B against A, two samples that differ in nothing else, with the interval of the Mann–Whitney test at
/// confidence `level`. Returns `None` if the samples are too small for the level: four values each are enough for 0.95. The
/// values must be finite.
pub(super) fn rank_shift(a: &[f64], b: &[f64], level: f64) -> Option<RankShift> {
    let (a, b) = (sorted(a), sorted(b));
    let differences = |most: f64| {
        let mut end = 0;
        let count = |x: &f64| {
            while b.get(end).is_some_and(|y| y - x <= most) {
                end += 1;
            }
            end as u64
        };
        a.iter().map(count).sum::<u64>()
    };
    let (n, m) = (a.len() as u64, b.len() as u64);
    shift(n * m, &RankDistribution::of_samples(n, m), level, &differences)
}

/// Returns the standard deviation of normally distributed values, from the median distance of two of them (Shamos 1976). One
/// value in four may be far from the others. NaN for fewer than two values.
pub(super) fn spread(values: &[f64]) -> f64 {
    /// The ratio of the standard deviation to the median distance.
    const DEVIATION_PER_DISTANCE: f64 = 1.048_36;
    /// The relative excess of the median distance of a sample, times its size. From simulations of 20,000 samples of 6 to 120.
    const EXCESS: f64 = 0.45;
    let sorted = sorted(values);
    let n = sorted.len() as u64;
    if n < 2 {
        return f64::NAN;
    }
    let distances = |most: f64| {
        let mut end = 0;
        let count = |(i, x): (usize, &f64)| {
            while sorted.get(end).is_some_and(|y| y - x <= most) {
                end += 1;
            }
            end.saturating_sub(i + 1) as u64
        };
        sorted.iter().enumerate().map(count).sum::<u64>()
    };
    median_of(n * (n - 1) / 2, &distances) * DEVIATION_PER_DISTANCE / (1.0 + EXCESS / n as f64)
}

/// Returns the median of `total` numbers, of which `up_to` counts those that are not above a limit, with the interval and the
/// test by the null distribution of their number above 0.
fn shift(total: u64, null: &RankDistribution, level: f64, up_to: &dyn Fn(f64) -> u64) -> Option<RankShift> {
    let (cut, _) = null.cut((1.0 - level) / 2.0)?;
    let estimate = Estimate {
        value: median_of(total, up_to),
        low: order_statistic(cut, up_to),
        high: order_statistic(total + 1 - cut, up_to),
    };
    // A number that is 0 counts for either sign, so that ties make the test conservative.
    let (not_above, below) = (up_to(0.0), up_to(-f64::from_bits(1)));
    let least = not_above.min(total - below);
    Some(RankShift { estimate, p: (2.0 * null.up_to(least)).min(1.0) })
}

/// Returns the median of `total` numbers, of which `up_to` counts those that are not above a limit.
fn median_of(total: u64, up_to: &dyn Fn(f64) -> u64) -> f64 {
    f64::midpoint(order_statistic(total.div_ceil(2), up_to), order_statistic(total / 2 + 1, up_to))
}

/// Returns the smallest number for which `up_to` is at least `rank`: the number with this rank, counted from 1. It halves the
/// range of all numbers in their order, so that it takes 64 steps.
fn order_statistic(rank: u64, up_to: &dyn Fn(f64) -> u64) -> f64 {
    // The bits of a number, changed so that their order as an integer is that of the numbers. It is its own inverse.
    let ordered = |bits: i64| bits ^ ((bits >> 63) & i64::MAX);
    let (mut low, mut high) = (ordered(f64::MIN.to_bits().cast_signed()), f64::MAX.to_bits().cast_signed());
    while low < high {
        // The mean, rounded down. The sum itself may overflow.
        let middle = (low & high) + ((low ^ high) >> 1);
        if up_to(f64::from_bits(ordered(middle).cast_unsigned())) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(ordered(low).cast_unsigned())
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The distribution of a rank statistic under its null hypothesis: the number of the means, or differences, that are above 0.
enum RankDistribution {
    /// The probabilities of at most 0, 1, … of them.
    Exact(Vec<f64>),
    /// The normal approximation with a term for the kurtosis (Edgeworth), for samples whose exact distribution would take
    /// long.
    Normal { mean: f64, deviation: f64, kurtosis: f64 },
}

impl RankDistribution {
    /// Returns the distribution of the signed-rank statistic of so many pairs.
    fn of_pairs(n: u64) -> Self {
        /// The largest number of pairs with an exact distribution, which takes n³/2 steps.
        const MOST: u64 = 100;
        if n > MOST {
            let n = n as f64;
            let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
            let fourth = n * (n + 1.0) * (2.0 * n + 1.0) * (3.0 * n * n + 3.0 * n - 1.0) / 30.0;
            let kurtosis = -fourth / 8.0 / variance.powi(2);
            return Self::Normal { mean: n * (n + 1.0) / 4.0, deviation: variance.sqrt(), kurtosis };
        }
        // Each rank is that of a positive value with a probability of one half.
        let mut of = vec![0.0; (n * (n + 1) / 2) as usize + 1];
        of[0] = 1.0;
        for rank in 1..=n as usize {
            for sum in (0..of.len()).rev() {
                of[sum] = f64::midpoint(of[sum], if sum >= rank { of[sum - rank] } else { 0.0 });
            }
        }
        Self::cumulated(of)
    }

    /// Returns the distribution of the Mann–Whitney statistic of samples of these sizes.
    fn of_samples(n: u64, m: u64) -> Self {
        /// The largest product of both sizes with an exact distribution, which takes its square in steps.
        const MOST: u64 = 400;
        if n.saturating_mul(m) > MOST {
            let (n, m) = (n as f64, m as f64);
            let variance = n * m * (n + m + 1.0) / 12.0;
            let kurtosis = -1.2 * (n * n + m * m + n * m + n + m) / (n * m * (n + m + 1.0));
            return Self::Normal { mean: n * m / 2.0, deviation: variance.sqrt(), kurtosis };
        }
        // Each of i values of A and j of B is equally likely to be the greatest. One of B is above all i of A, one of A adds
        // nothing to the statistic. `of[j]` is its distribution for i and j.
        let (n, m) = (n as usize, m as usize);
        let mut of = vec![vec![0.0; n * m + 1]; m + 1];
        of.iter_mut().for_each(|of| of[0] = 1.0);
        for i in 1..=n {
            for j in 1..=m {
                let of_a = i as f64 / (i + j) as f64;
                for sum in (0..=n * m).rev() {
                    let of_b = if sum >= i { of[j - 1][sum - i] } else { 0.0 };
                    of[j][sum] = of_a * of[j][sum] + (1.0 - of_a) * of_b;
                }
            }
        }
        Self::cumulated(of.swap_remove(m))
    }

    fn cumulated(mut of: Vec<f64>) -> Self {
        let mut sum = 0.0;
        of.iter_mut().for_each(|of| {
            sum += *of;
            *of = sum;
        });
        Self::Exact(of)
    }

    /// Returns the probability of at most `count`.
    fn up_to(&self, count: u64) -> f64 {
        match self {
            Self::Exact(of) => usize::try_from(count).ok().and_then(|count| of.get(count)).copied().unwrap_or(1.0),
            Self::Normal { mean, deviation, kurtosis } => {
                let z = (count as f64 + 0.5 - mean) / deviation;
                let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                (normal(z) - density * kurtosis / 24.0 * (z.powi(3) - 3.0 * z)).clamp(0.0, 1.0)
            }
        }
    }

    /// Returns the greatest number of values that are cut off at each end with a probability of at most `tail`, and this
    /// probability. Returns `None` if even one value is too many.
    fn cut(&self, tail: f64) -> Option<(u64, f64)> {
        let (mut cut, mut beyond) = match self {
            Self::Exact(of) => (0, of.len() as u64),
            Self::Normal { mean, .. } => (0, *mean as u64 + 1),
        };
        while beyond - cut > 1 {
            let middle = cut.midpoint(beyond);
            *(if self.up_to(middle - 1) <= tail { &mut cut } else { &mut beyond }) = middle;
        }
        (cut > 0).then(|| (cut, self.up_to(cut - 1)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 60 samples and 60 pairs of samples with the p-values of scipy, and the ends at which they pass 1 − level.
    #[test]
    fn intervals_of_higher_levels_need_more_runs() {
        assert_eq!([0.95, 0.99, 0.999].map(fewest_pairs), [6, 8, 11]);
        assert_eq!([0.95, 0.9958, 0.999].map(fewest_on_each_side), [4, 6, 7]);
    }

    #[test]
    fn intervals_and_p_values_are_those_of_scipy() {
        let numbers = |text: &str| text.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<f64>>();
        let text = include_str!("../../tests/scripts/rank_intervals.txt");
        let mut compared = 0;
        for line in text.lines().skip(2) {
            let parts: Vec<&str> = line.split(';').collect();
            let level = parts[1].parse().unwrap();
            let (found, expected) = match parts[0] {
                "S" => (signed_rank(&numbers(parts[2]), level), parts[3]),
                _ => (rank_shift(&numbers(parts[2]), &numbers(parts[3]), level), parts[4]),
            };
            let expected: Vec<Option<f64>> = expected.split(' ').map(|n| n.parse().ok()).collect();
            assert_eq!(found.is_some(), expected[1].is_some(), "{line}");
            let Some(RankShift { estimate, p }) = found else { continue };
            for (ours, theirs) in [estimate.value, estimate.low, estimate.high, p].into_iter().zip(expected) {
                assert!((ours - theirs.unwrap()).abs() < 1e-9, "{ours} {theirs:?}: {line}");
            }
            compared += 1;
        }
        assert_eq!((compared, text.lines().count()), (93, 122));
    }

    /// The statistic and its p-value by scipy's exact distribution, which this program approximates for samples of these
    /// sizes.
    #[test]
    fn large_samples_have_nearly_the_exact_p_values() {
        for (n, statistic, p) in [(101, 2010, 0.055_374), (150, 5476, 0.727_857), (400, 34105, 0.009_473_56)] {
            let found = 2.0 * RankDistribution::of_pairs(n).up_to(statistic);
            assert!((found / p - 1.0).abs() < 0.002, "{n}: {found}");
        }
        for (n, m, statistic, p) in [(41, 41, 573, 0.012_736), (60, 80, 1921, 0.043_669_8)] {
            let found = 2.0 * RankDistribution::of_samples(n, m).up_to(statistic);
            assert!((found / p - 1.0).abs() < 0.002, "{n} {m}: {found}");
        }
        // Both sides of the limits nearly agree.
        let ends = |n: u64| signed_rank_level(n, 0.025).unwrap();
        assert!((ends(100) - ends(101)).abs() < 0.001);
    }

    #[test]
    fn an_interval_needs_enough_values() {
        let values: Vec<f64> = (1..=11).map(f64::from).collect();
        let has = |n: usize, level: f64| signed_rank(&values[..n], level).is_some();
        assert_eq!([has(5, 0.95), has(6, 0.95), has(10, 0.999), has(11, 0.999)], [false, true, false, true]);
        let has = |n: usize, m: usize| rank_shift(&values[..n], &values[..m], 0.95).is_some();
        assert_eq!([has(3, 3), has(3, 4), has(3, 5), has(4, 4), has(1, 11)], [false, false, true, true, false]);
        assert!(signed_rank(&[], 0.95).is_none() && rank_shift(&[], &values, 0.95).is_none());
    }

    /// Ties count for both signs: equal values are no difference, and the interval still contains what the test does not
    /// reject.
    #[test]
    fn ties_and_zeros_make_the_test_conservative() {
        let none = signed_rank(&[0.0; 12], 0.95).unwrap();
        assert_eq!((none.estimate, none.p), (Estimate::around(0.0, 0.0), 1.0));
        let equal = rank_shift(&[7.0; 9], &[7.0; 9], 0.95).unwrap();
        assert_eq!((equal.estimate, equal.p), (Estimate::around(0.0, 0.0), 1.0));
        for values in [[0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 3.0], [-1.0, 0.0, 1.0, 1.0, 1.0, 2.0, 3.0], [1.0; 7]] {
            let RankShift { estimate, p } = signed_rank(&values, 0.95).unwrap();
            assert_eq!(p < 0.05, estimate.low > 0.0, "{values:?} {estimate:?} {p}");
        }
    }

    /// One value far from the others moves the ends no farther than to the next of the others.
    #[test]
    fn one_value_far_from_the_others_changes_little() {
        let near: Vec<f64> = (0..20).map(|n| 1.0 + 0.01 * f64::from(n)).collect();
        let mut far = near.clone();
        far[19] = -1e6;
        let (of_near, of_far) = (signed_rank(&near, 0.95).unwrap(), signed_rank(&far, 0.95).unwrap());
        assert!((of_near.estimate.low - of_far.estimate.low).abs() < 0.03, "{of_far:?}");
        let (of_near, of_far) = (rank_shift(&near, &near, 0.95).unwrap(), rank_shift(&near, &far, 0.95).unwrap());
        assert!((of_near.estimate.low - of_far.estimate.low).abs() < 0.03, "{of_far:?}");
        assert!((spread(&near) / spread(&far) - 1.0).abs() < 0.15, "{} {}", spread(&near), spread(&far));
    }

    /// Many values take a moment, and no list of their differences is made.
    #[test]
    fn many_values_have_an_interval() {
        let values = |shift: f64| -> Vec<f64> { (0..20_000).map(|n| (f64::from(n) * 0.7).sin() + shift).collect() };
        let found = rank_shift(&values(0.0), &values(0.5), 0.95).unwrap();
        assert!((found.estimate.value - 0.5).abs() < 0.01 && found.p < 1e-9, "{found:?}");
        let found = signed_rank(&values(0.25), 0.95).unwrap();
        assert!((found.estimate.value - 0.25).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn the_spread_of_a_normal_sample_is_its_standard_deviation() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(3);
        for n in [6, 8, 20, 60] {
            let mut of = || (0..n).map(|_| 0.04 * rng.sample::<f64, _>(rand_distr::StandardNormal)).collect::<Vec<_>>();
            let mean = (0..4000).map(|_| spread(&of())).sum::<f64>() / 4000.0;
            assert!((mean / 0.04 - 1.0).abs() < 0.03, "{n}: {mean}");
        }
        assert!(spread(&[1.0]).is_nan() && spread(&[2.0; 5]) == 0.0);
    }
}
