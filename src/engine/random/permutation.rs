//! Pseudo-random permutations that need no table, for draws without replacement and for scattering popular items.

use super::mix;

/// A seeded permutation of the numbers below `n`, without a table: a Feistel network over the next power of four,
/// applied again until the result is in range (cycle walking; Black and Rogaway, *Ciphers with arbitrary finite
/// domains*, 2002).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    n: u64,
    half: u32,
    seed: u64,
}

impl Permutation {
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self { n, half: bits.div_ceil(2).max(1), seed }
    }

    /// Returns the image of `i`, which must be below `n`.
    pub(crate) fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mask = (1 << self.half) - 1;
        let mut value = i;
        loop {
            let (mut left, mut right) = (value >> self.half, value & mask);
            for key in 0..4 {
                (left, right) = (right, left ^ (mix(self.seed ^ key, right) & mask));
            }
            value = left << self.half | right;
            if value < self.n {
                return value;
            }
        }
    }
}

/// Draws without replacement: each number of `0..n` once per cycle, with a new order in each cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    order: Permutation,
    next: u64,
}

impl Shuffle {
    /// Returns a state that begins its first cycle at the first draw.
    pub(crate) fn new() -> Self {
        Self { order: Permutation::new(0, 0), next: 0 }
    }

    /// Returns the next number of `0..n`; `n` must be at least 1. A different `n` begins a new cycle.
    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut super::Rng, n: u64) -> u64 {
        if n != self.order.n || self.next >= n {
            *self = Self { order: Permutation::new(n, super::below(rng, u64::MAX)), next: 0 };
        }
        self.next += 1;
        self.order.at(self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Permutation, Shuffle};
    use crate::random;

    #[test]
    fn a_permutation_hits_each_number_once() {
        for n in [1, 2, 3, 5, 64, 1000, 4097] {
            for seed in [1, 2] {
                let order = Permutation::new(n, seed);
                let mut hit = vec![false; n as usize];
                for i in 0..n {
                    assert!(!std::mem::replace(&mut hit[order.at(i) as usize], true), "{n} {i}");
                }
                let neighbours = (1..n).filter(|&i| order.at(i).abs_diff(order.at(i - 1)) == 1).count();
                assert!(n < 1000 || neighbours < 20, "{neighbours} of {n} have a neighbour next to them");
            }
        }
        let (a, b) = (Permutation::new(1000, 1), Permutation::new(1000, 2));
        assert!((0..1000).filter(|&i| a.at(i) == b.at(i)).count() < 20);
    }

    #[test]
    fn a_lap_draws_each_number_once_and_the_next_lap_has_another_order() {
        let (mut shuffle, mut rng) = (Shuffle::new(), random::stream(7, &[1]));
        let mut cycle = || (0..100).map(|_| shuffle.draw(&mut rng, 100)).collect::<Vec<u64>>();
        let cycles = [cycle(), cycle()];
        assert_ne!(cycles[0], cycles[1]);
        for mut cycle in cycles {
            cycle.sort_unstable();
            assert!(cycle.into_iter().eq(0..100));
        }
    }
}
