//! A permutation without memory: draws without replacement, and popular items that lie scattered.

use super::mix;

/// A bijection of `0..n` that looks like none: multiplications and shifts permute the next power of two, and what falls outside is
/// permuted again until it falls inside (cycle walking; below two steps on average).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    factors: [u64; 3],
}

impl Permutation {
    pub(crate) fn new(seed: u64, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mask = if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) };
        Self { n, mask, shift: bits.div_ceil(2).max(1), factors: [0, 1, 2].map(|i| mix(seed ^ n, i) | 1) }
    }

    /// What stands at a rank, which is below `n`.
    #[inline]
    pub(crate) fn item(&self, rank: u64) -> u64 {
        let mut x = rank;
        loop {
            for factor in self.factors {
                x = (x.wrapping_add(factor >> 32)).wrapping_mul(factor) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

/// Draws without replacement: each of `0..n` once, in a new order each lap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    order: Permutation,
    next: u64,
}

impl Shuffle {
    /// One that begins its first lap with the first draw.
    pub(crate) fn new() -> Self {
        Self { order: Permutation::new(0, 0), next: 0 }
    }

    /// The next of `0..n`, which is at least 1; another `n` begins a new lap.
    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut super::Rng, n: u64) -> u64 {
        if n != self.order.n || self.next >= n {
            *self = Self { order: Permutation::new(super::below(rng, u64::MAX), n), next: 0 };
        }
        self.next += 1;
        self.order.item(self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Permutation, Shuffle};
    use crate::random;

    #[test]
    fn scrambling_loses_no_item() {
        for n in [1, 2, 3, 7, 64, 1000, 4097] {
            let scramble = Permutation::new(0, n);
            let mut items: Vec<u64> = (0..n).map(|rank| scramble.item(rank)).collect();
            if n >= 1000 {
                let neighbours = items.windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count();
                assert!(neighbours < 20, "{neighbours} of {n} ranks have their neighbour beside them");
            }
            items.sort_unstable();
            assert!(items.iter().copied().eq(0..n), "{n}");
        }
    }

    #[test]
    fn a_lap_draws_each_once_and_the_next_in_another_order() {
        let (mut shuffle, mut rng) = (Shuffle::new(), random::stream(7, &[1]));
        let mut lap = || (0..100).map(|_| shuffle.draw(&mut rng, 100)).collect::<Vec<u64>>();
        let laps = [lap(), lap()];
        assert_ne!(laps[0], laps[1]);
        for mut lap in laps {
            lap.sort_unstable();
            assert!(lap.into_iter().eq(0..100));
        }
    }
}
