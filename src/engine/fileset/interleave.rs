//! Every n-th member of a set: the part of a file set's members that belongs to one of several ranks.
//!
//! Pure arithmetic: trees, ranks and the disk are not known here.

use std::ops::Range;

/// The members `first`, `first + step`, `first + 2·step`, … of a set. A member has two numbers: its index in this
/// part, and its number in the whole set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interleave {
    /// The number of the first member in the whole set.
    pub first: u64,
    /// The distance of two members, at least 1.
    pub step: u64,
}

impl Interleave {
    /// All members.
    pub const WHOLE: Self = Self { first: 0, step: 1 };

    /// Returns part `k` of `n` parts, which together have each member once. `k` is below `n`.
    pub fn part(k: u64, n: u64) -> Self {
        Self { first: k, step: n.max(1) }
    }

    /// Returns the number of members of this part, given that of the whole set.
    pub fn len(self, whole: u64) -> u64 {
        whole.saturating_sub(self.first).div_ceil(self.step)
    }

    /// Returns the number in the whole set of a member of this part.
    #[inline]
    pub fn number(self, index: u64) -> u64 {
        self.first + index * self.step
    }

    /// Returns the indices in this part of a range of the whole set.
    pub fn range(self, whole: Range<u64>) -> Range<u64> {
        self.len(whole.start)..self.len(whole.end)
    }
}

#[cfg(test)]
mod tests {
    use super::Interleave;

    #[test]
    fn the_parts_have_each_member_once() {
        for (whole, n) in [(0, 1), (1, 3), (7, 1), (7, 3), (9, 3), (10, 4), (3, 5)] {
            let mut numbers = Vec::new();
            for k in 0..n {
                let part = Interleave::part(k, n);
                numbers.extend((0..part.len(whole)).map(|index| part.number(index)));
                assert!(part.len(whole) == whole / n || part.len(whole) == whole / n + 1, "{k} of {n}: {whole}");
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..whole).collect::<Vec<_>>());
        }
        assert_eq!(Interleave::WHOLE, Interleave::part(0, 1));
    }

    #[test]
    fn a_range_of_the_whole_set_is_a_range_of_a_part() {
        for n in 1..5 {
            for part in (0..n).map(|k| Interleave::part(k, n)) {
                for (start, end) in [(0, 0), (0, 1), (0, 10), (3, 4), (3, 9), (5, 5), (8, 10)] {
                    let inside: Vec<u64> =
                        (0..part.len(10)).filter(|&index| (start..end).contains(&part.number(index))).collect();
                    assert_eq!(part.range(start..end).collect::<Vec<_>>(), inside, "{part:?} {start}..{end}");
                }
            }
        }
    }
}
