//! Which members of a set exist at the start: how many as in Filebench, and which ones by a hash of their numbers.
//!
//! Filebench creates the sets of a script one after another, the last defined first. For each file of a set, and then for
//! each of its leaf directories, it draws a number with the C library's `rand()`, also if all or none of them are to
//! exist, and creates the member if the number is above the share that `prealloc` leaves out. It never seeds the
//! generator, so that the numbers of files are the same on every machine, and an old script may depend on them: of a
//! single file with `prealloc=50` there is one. The position of a set in the stream of numbers, [`PreallocDraws`], is
//! part of its definition.
//!
//! The layout seed chooses the members. With another layout seed than the default one, their number is the exact share.
//!
//! Pure: no disk, no clock, no threads.

use super::DEFAULT_LAYOUT_SEED;
use crate::random::mix;

/// The largest number that `rand()` returns.
const RAND_MAX: u64 = (1 << 31) - 1;
/// Terms of the generator's recurrence: `x[n] = x[n - 3] + x[n - 31]`.
const TERMS: usize = 31;
/// The shorter distance in it.
const NEAR: usize = 3;
/// Values that the C library discards when it seeds the generator.
const DISCARDED: u64 = 310;

/// The numbers of draws of Filebench's `rand()` before those of a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PreallocDraws {
    /// Before the one for its first file.
    pub files: u64,
    /// Before the one for its first leaf directory.
    pub leafdirs: u64,
}

/// The members of a set that exist at the start.
#[derive(Clone, Debug)]
pub(super) enum Present {
    /// All of them.
    All,
    /// `count` of them: those whose [keys](key) are below a bound.
    Below { seed: u64, bound: (u64, u64), count: u64 },
    /// Those that were found on the disk, one bit each.
    Found(Box<[u64]>),
}

impl Present {
    /// Chooses `percent` of `n` members. `before`: draws before that for the first of them. `seed`: of the choice.
    pub(super) fn new(n: u64, percent: u8, before: u64, layout_seed: u64, seed: u64) -> Self {
        let count = match percent {
            0 => 0,
            100.. => n,
            _ if layout_seed == DEFAULT_LAYOUT_SEED => {
                CRand::at(before).count_above(n, RAND_MAX * u64::from(100 - percent) / 100)
            }
            _ => n.saturating_mul(percent.into()).div_ceil(100),
        };
        match count {
            _ if count >= n => Self::All,
            0 => Self::Below { seed, bound: (0, 0), count },
            _ => Self::Below { seed, bound: bound(seed, n, count), count },
        }
    }

    /// True if member `i` exists at the start.
    #[inline]
    pub(super) fn has(&self, i: u64) -> bool {
        match self {
            Self::All => true,
            Self::Below { seed, bound, count } => *count > 0 && key(*seed, i) < *bound,
            Self::Found(bits) => (bits[(i / 64) as usize] >> (i % 64)) & 1 != 0,
        }
    }

    /// Returns the heap memory used, in bytes.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Self::Found(bits) => size_of_val(&**bits) as u64,
            Self::All | Self::Below { .. } => 0,
        }
    }

    /// Returns how many of `n` members exist at the start: of all that the set has.
    pub(super) fn count(&self, n: u64) -> u64 {
        match self {
            Self::All => n,
            Self::Below { count, .. } => *count,
            Self::Found(bits) => bits.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }
}

/// Returns the key of member `i`. The keys of a set are distinct, and about a hundredth of them have each first number.
#[inline]
fn key(seed: u64, i: u64) -> (u64, u64) {
    let hash = mix(seed, i);
    (hash % 100, hash / 100)
}

/// Returns the bound that exactly `count` of the keys of `n` members are below. `count` is less than `n`.
fn bound(seed: u64, n: u64, count: u64) -> (u64, u64) {
    let mut sizes = [0; 100];
    (0..n).for_each(|i| sizes[key(seed, i).0 as usize] += 1);
    let mut missing = count;
    for (first, size) in (0..).zip(sizes) {
        if missing < size {
            let of_first = (0..n).map(|i| key(seed, i)).filter(|key| key.0 == first);
            let mut keys: Vec<u64> = of_first.map(|key| key.1).collect();
            return (first, *keys.select_nth_unstable(missing as usize).1);
        }
        missing -= size;
    }
    (100, 0)
}

/// The generator behind `rand()` of the GNU C library, in the state of a program that has not called `srand()`.
struct CRand {
    /// The values before the next one, the oldest first.
    last: [u32; TERMS],
}

impl CRand {
    /// Returns the generator after this many calls.
    fn at(calls: u64) -> Self {
        let mut first = [1_u32; TERMS];
        for i in 1..TERMS {
            first[i] = (u64::from(first[i - 1]) * 16_807 % RAND_MAX) as u32;
        }
        // The first sum of the C library is that of the first and the fourth number.
        first.rotate_left(NEAR);
        let mut rand = Self { last: first };
        // Skips without calculating the values between: `xⁿ` as a polynomial of degree 30, with the recurrence as
        // its modulus, has the weights by which 31 values give the one that is `n` values later.
        let weights = power(DISCARDED + calls);
        let mut values = [first, first].concat();
        rand.advance();
        values[TERMS..].copy_from_slice(&rand.last);
        for (i, value) in rand.last.iter_mut().enumerate() {
            let terms = weights.iter().zip(&values[i..]);
            *value = terms.fold(0, |sum, (weight, value)| sum.wrapping_add(weight.wrapping_mul(*value)));
        }
        rand
    }

    /// Replaces the values by as many new ones.
    fn advance(&mut self) {
        for i in 0..TERMS {
            self.last[i] = self.last[i].wrapping_add(self.last[(i + TERMS - NEAR) % TERMS]);
        }
    }

    /// Makes `n` calls, and returns how many of the results are above a limit.
    fn count_above(mut self, n: u64, limit: u64) -> u64 {
        let mut count = 0;
        for done in (0..n).step_by(TERMS) {
            self.advance();
            let of_set = TERMS.min((n - done) as usize);
            // The lowest bit is not part of the result.
            count += self.last[..of_set].iter().filter(|value| u64::from(**value >> 1) > limit).count() as u64;
        }
        count
    }
}

/// Returns the coefficients of `xⁿ` modulo `x³¹ - x²⁸ - 1`, in numbers of 32 bits.
fn power(n: u64) -> [u32; TERMS] {
    let mut result = [0; TERMS];
    result[0] = 1;
    for bit in (0..u64::BITS).rev() {
        result = product(&result, &result);
        if (n >> bit) & 1 != 0 {
            let mut x = [0; TERMS];
            x[1] = 1;
            result = product(&result, &x);
        }
    }
    result
}

/// Returns the product of two polynomials modulo `x³¹ - x²⁸ - 1`.
fn product(a: &[u32; TERMS], b: &[u32; TERMS]) -> [u32; TERMS] {
    let mut wide = [0_u32; 2 * TERMS - 1];
    for (i, a) in a.iter().enumerate() {
        for (k, b) in b.iter().enumerate() {
            wide[i + k] = wide[i + k].wrapping_add(a.wrapping_mul(*b));
        }
    }
    for i in (TERMS..wide.len()).rev() {
        wide[i - NEAR] = wide[i - NEAR].wrapping_add(wide[i]);
        wide[i - TERMS] = wide[i - TERMS].wrapping_add(wide[i]);
    }
    let mut low = [0; TERMS];
    low.copy_from_slice(&wide[..TERMS]);
    low
}

#[cfg(test)]
#[path = "prealloc_tests.rs"]
mod tests;
