//! Numbers with how often each came, for quantiles.

use std::collections::BTreeMap;

/// With more different numbers than this, they are rounded.
const MOST_VALUES: usize = 4096;

/// Numbers with how often each came: exact while there are few different ones, and then rounded to 1/256.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    counts: BTreeMap<u64, u64>,
    total: u64,
    is_rounded: bool,
}

/// The nearest number with eight significant bits.
fn rounded(n: u64) -> u64 {
    let shift = (64 - n.leading_zeros()).saturating_sub(8);
    let half = 1u64.checked_shl(shift).unwrap_or(0) / 2;
    n.saturating_add(half) >> shift << shift
}

impl Spread {
    pub fn add(&mut self, n: u64) {
        *self.counts.entry(if self.is_rounded { rounded(n) } else { n }).or_default() += 1;
        self.total += 1;
        if self.counts.len() > MOST_VALUES && !self.is_rounded {
            self.is_rounded = true;
            for (n, count) in std::mem::take(&mut self.counts) {
                *self.counts.entry(rounded(n)).or_default() += count;
            }
        }
    }

    pub fn is_rounded(&self) -> bool {
        self.is_rounded
    }

    /// The number that this share of them does not exceed. `None` without any.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut before = 0;
        let reaches = |(_, count): &(&u64, &u64)| {
            before += **count;
            before >= rank
        };
        self.counts.iter().find(reaches).map(|(n, _)| *n)
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest difference between the shares of two that do not exceed a number: the statistic of Kolmogorov and Smirnov,
    /// from 0 to 1.
    pub fn distance(&self, other: &Self) -> f64 {
        // Rounded numbers are compared with rounded ones.
        let is_rounded = self.is_rounded || other.is_rounded;
        let mut counts: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (side, spread) in [self, other].into_iter().enumerate() {
            for (n, count) in &spread.counts {
                counts.entry(if is_rounded { rounded(*n) } else { *n }).or_default()[side] += count;
            }
        }
        let (mut below, mut most) = ([0u64; 2], 0.0f64);
        for of in counts.into_values() {
            (0..2).for_each(|side| below[side] += of[side]);
            let share = |side: usize, total: u64| below[side] as f64 / total.max(1) as f64;
            most = most.max((share(0, self.total) - share(1, other.total)).abs());
        }
        most
    }

    /// The numbers that came most often, each with its share of all; none if they are rounded.
    pub(crate) fn most_frequent(&self, most: usize) -> Vec<(u64, f64)> {
        if self.is_rounded {
            return Vec::new();
        }
        let mut all: Vec<(u64, u64)> = self.counts.iter().map(|(n, count)| (*n, *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.iter().take(most).map(|(n, count)| (*n, *count as f64 / self.total as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_different_numbers_are_exact() {
        let mut spread = Spread::default();
        assert_eq!((spread.quantile(0.5), spread.most_frequent(2)), (None, Vec::new()));
        for (n, count) in [(700, 5), (4096, 2), (u64::MAX, 1)] {
            (0..count).for_each(|_| spread.add(n));
        }
        let found = [0.0, 0.5, 0.625, 0.8, 1.0].map(|share| spread.quantile(share));
        assert_eq!(found, [700, 700, 700, 4096, u64::MAX].map(Some));
        assert_eq!(spread.most_frequent(2), [(700, 0.625), (4096, 0.25)]);
    }

    #[test]
    fn distances_are_those_of_kolmogorov_and_smirnov() {
        let of = |numbers: &[u64]| {
            let mut spread = Spread::default();
            numbers.iter().for_each(|n| spread.add(*n));
            spread
        };
        let [a, b, c] = [of(&[1, 2, 3, 4]), of(&[3, 4, 5, 6]), of(&[9])];
        assert_eq!((a.distance(&a), a.distance(&b), b.distance(&a), a.distance(&c)), (0.0, 0.5, 0.5, 1.0));
        // One of them is rounded.
        let sizes = |n: u64| of(&(0..n).chain(std::iter::repeat_n(4099, 4000)).collect::<Vec<u64>>());
        assert!(sizes(4000).distance(&sizes(4200)) < 0.05);
    }

    #[test]
    fn many_different_numbers_are_right_to_a_256th() {
        let mut spread = Spread::default();
        (1..=10_000u64).for_each(|n| spread.add(n * 1009));
        assert!(spread.is_rounded() && spread.most_frequent(2).is_empty());
        for (share, value) in [(0.0, 1009), (0.5, 5_045_000), (0.99, 9_989_100), (1.0, 10_090_000)] {
            let found = spread.quantile(share).unwrap_or(0);
            assert!(found.abs_diff(value) <= value / 128, "{share}: {found}");
        }
        for n in [0, 1, 255, 256, 257, 511, 1 << 40, (1 << 40) - 1, u64::MAX] {
            assert!(rounded(n).abs_diff(n) <= n / 256, "{n}: {}", rounded(n));
        }
    }
}
