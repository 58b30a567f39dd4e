//! The buckets of latency histograms: HDR's layout with 128 buckets per octave.
//!
//! Values 0 … 255 have a bucket each. From 2⁸ on each octave [2ᵏ, 2ᵏ⁺¹) is divided into 128 equal buckets, so the width
//! of a bucket is at most 1/128 (0.8 %) of its values. This is the layout that `HdrHistogram` uses for two digits, so
//! counts can be copied without change. (G. Tene, <https://hdrhistogram.org>.)

/// log₂ of the number of buckets per octave.
const SUB_BITS: u32 = 7;

/// The first value, in nanoseconds, that shares the last bucket with all longer ones: 2⁴² ns, 73 minutes.
pub const LIMIT: u64 = 1 << 42;

/// The number of buckets.
pub const LEN: usize = (42 - SUB_BITS as usize + 1) << SUB_BITS;

/// The number of buckets per block. Readers read or skip a block as a whole.
pub const BLOCK: usize = 1 << SUB_BITS;

/// Returns the bucket of a value. From [`LIMIT`] on, the result is [`LEN`] or more.
#[inline]
pub fn index(value: u64) -> usize {
    // With bit 7 set, the lowest octave needs no branch: its shift is 0.
    let shift = 63 - SUB_BITS - (value | 1 << SUB_BITS).leading_zeros();
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// Returns the least value of a bucket.
pub fn lowest(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    ((index - (shift << SUB_BITS)) as u64) << shift
}

/// Returns the greatest value of a bucket.
pub fn highest(index: usize) -> u64 {
    lowest(index + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::{LEN, LIMIT, highest, index, lowest};
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!((index(0), lowest(0), index(LIMIT - 1)), (0, 0, LEN - 1));
        for i in 0..LEN {
            assert_eq!((index(lowest(i)), index(highest(i))), (i, i));
            assert_eq!(index(highest(i) + 1), i + 1);
        }
        for beyond in [LIMIT, LIMIT + 1, u64::MAX] {
            assert!(index(beyond) >= LEN);
        }
    }

    proptest! {
        #[test]
        fn a_bucket_is_within_one_percent_of_its_values(bits in 0_u32..42, rest in any::<u64>()) {
            let value = (1 << bits) | rest & ((1 << bits) - 1);
            let i = index(value);
            prop_assert!(lowest(i) <= value && value <= highest(i));
            prop_assert!((highest(i) - lowest(i)) as f64 <= value as f64 / 128.0);
        }
    }
}
