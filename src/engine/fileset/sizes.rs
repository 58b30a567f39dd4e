//! File sizes, computed on demand from the number of a file and a seed.
//!
//! A size is a constant, a separate draw for each file, or taken from a table of exact counts. For a table, a seeded
//! permutation assigns each file a rank, and the rank determines the size. The sizes of such a set are the same for
//! every seed; only their assignment to files differs. Only the draws of small sets are cached. No disk, no directories
//! here.

use super::Interleave;
use crate::random::{self, Permutation, Quantity};
use std::sync::Arc;

/// A number of files with sizes in a range of bytes: larger than `above`, and at most `up_to`.
///
/// With `above` 0 the range includes 0. With equal bounds all files have exactly that size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeRow {
    /// Exclusive lower bound in bytes; inclusive if it is 0 or equal to `up_to`.
    pub above: u64,
    /// Inclusive upper bound in bytes.
    pub up_to: u64,
    /// Number of files.
    pub count: u64,
}

/// A table of file sizes with counts, such as the file sizes of a real server.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeTable {
    rows: Arc<[SizeRow]>,
    /// Exponent of the sizes within a row, which are `above + (up_to − above) · u^skew` for evenly spaced `u`: 1
    /// spreads them evenly, a smaller value makes them larger.
    skew: f64,
}

impl SizeTable {
    /// Creates a table for `entries` files. The counts are scaled to that number by the largest remainder method.
    ///
    /// `total`, the bytes of all files before scaling, determines how sizes are spread within the rows. Without it they
    /// are spread evenly. A total that the bounds of the rows do not allow is approximated as closely as possible.
    pub fn new(rows: &[SizeRow], entries: u64, total: Option<u64>) -> Self {
        let rows: Vec<SizeRow> =
            rows.iter().map(|r| SizeRow { above: r.above.min(r.up_to), up_to: r.up_to, count: r.count }).collect();
        let skew = total.map_or(1.0, |total| fit_skew(&rows, total as f64));
        Self { rows: scale(&rows, entries).into(), skew }
    }

    /// Returns the rows, with scaled counts.
    pub fn rows(&self) -> &[SizeRow] {
        &self.rows
    }

    /// Returns the number of files.
    pub fn entries(&self) -> u64 {
        self.rows.iter().map(|r| r.count).sum()
    }

    /// Returns the bytes of all files. Exact, except that a row of more than four million files is extrapolated from a
    /// sample.
    pub fn bytes(&self) -> u64 {
        self.rows
            .iter()
            .map(|row| if row.above == row.up_to { row.count.saturating_mul(row.up_to) } else { row.bytes(self.skew) })
            .fold(0, u64::saturating_add)
    }

    /// Returns the size of the file with this rank, in bytes.
    fn at_rank(&self, mut rank: u64) -> u64 {
        for row in &*self.rows {
            if rank < row.count {
                return row.size(rank, self.skew);
            }
            rank -= row.count;
        }
        0
    }
}

impl SizeRow {
    /// Returns the size of the row's `k`th file, in bytes.
    fn size(&self, k: u64, skew: f64) -> u64 {
        self.size_at((k as f64 + 0.5) / self.count as f64, k % 2 == 1, skew)
    }

    /// Returns the bytes of all files of the row.
    fn bytes(&self, skew: f64) -> u64 {
        // An odd step, so that the sample contains even and odd files.
        let step = (self.count / MAX_SUMMED) | 1;
        let of = self.count.div_ceil(step);
        let sum = (0..of).fold(0_u128, |sum, k| sum + u128::from(self.size(k * step, skew)));
        let all = sum * u128::from(self.count) / u128::from(of.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Returns the size at the fraction `at` (0 to 1) of the row. With `round_up` it is rounded up to a power of two,
    /// where sizes on real servers accumulate.
    fn size_at(&self, at: f64, round_up: bool, skew: f64) -> u64 {
        let at = if (skew - 1.0).abs() < 1e-12 { at } else { at.powf(skew) };
        let size = self.above + ((self.up_to - self.above) as f64 * at) as u64;
        let size = if round_up { size.checked_next_power_of_two().unwrap_or(u64::MAX) } else { size };
        size.clamp(if self.above == 0 { 0 } else { (self.above + 1).min(self.up_to) }, self.up_to)
    }
}

/// Maximum number of files of a row whose sizes are summed individually.
const MAX_SUMMED: u64 = 1 << 22;

/// Returns the skew with which the rows have `total` bytes. The sum decreases as the skew increases, so bisection finds
/// it.
fn fit_skew(rows: &[SizeRow], total: f64) -> f64 {
    // Maximum number of sizes computed per row; fewer in a table with many rows.
    const POINTS: u64 = 4096;
    let max_points = (32 * POINTS / rows.len().max(1) as u64).clamp(1, POINTS);
    let sum = |skew: f64| -> f64 {
        rows.iter()
            .map(|row| {
                let points = row.count.clamp(1, max_points);
                let part: f64 =
                    (0..points).map(|k| row.size_at((k as f64 + 0.5) / points as f64, k % 2 == 1, skew) as f64).sum();
                part * (row.count as f64 / points as f64)
            })
            .sum()
    };
    let (mut low, mut high) = (1.0 / 64.0, 64.0);
    for _ in 0..48 {
        let mid = f64::sqrt(low * high);
        if sum(mid) > total { low = mid } else { high = mid }
    }
    f64::sqrt(low * high)
}

/// Scales the counts of the rows to the sum `entries`: rounds them down, and adds one to those with the largest
/// remainders.
fn scale(rows: &[SizeRow], entries: u64) -> Vec<SizeRow> {
    let all: u128 = rows.iter().map(|r| u128::from(r.count)).sum();
    if all == 0 {
        return Vec::new();
    }
    let mut scaled: Vec<SizeRow> = rows.to_vec();
    let mut rest: Vec<(u128, usize)> = Vec::with_capacity(rows.len());
    let mut given = 0;
    for (at, row) in scaled.iter_mut().enumerate() {
        let exact = u128::from(row.count) * u128::from(entries);
        row.count = (exact / all) as u64;
        given += row.count;
        rest.push((exact % all, at));
    }
    rest.sort_by_key(|&(rest, at)| (std::cmp::Reverse(rest), at));
    for &(_, at) in rest.iter().take((entries - given) as usize) {
        scaled[at].count += 1;
    }
    scaled
}

/// Maximum number of files of a set whose drawn sizes are cached: half a megabyte of memory.
const MAX_CACHED: u64 = 1 << 16;

/// The source of the file sizes of one set.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    /// All files have this size in bytes.
    Const(u64),
    /// A random variable, drawn on demand from a stream that is derived from this seed and the number of the file.
    Drawn(Quantity, u64),
    /// The cached draws of a small set.
    Known(Arc<[u64]>),
    /// A table, and the permutation that assigns ranks to files.
    Table(SizeTable, Permutation),
    /// Those of a part of the set: the files have the numbers of the part.
    Part(Interleave, Box<Sizes>),
}

impl Sizes {
    pub(super) fn new(size: &Quantity, table: Option<&SizeTable>, seed: u64) -> Self {
        match (table, size) {
            (Some(table), _) => Self::Table(table.clone(), Permutation::new(table.entries(), seed)),
            (None, Quantity::Const(size)) => Self::Const(*size),
            (None, var) => Self::Drawn(var.clone(), seed),
        }
    }

    /// Caches the sizes of `n` files if they are drawn and `n` is at most [`MAX_CACHED`].
    ///
    /// A draw sets up a random stream and computes one or two logarithms, which is expensive for each file that is
    /// opened.
    pub(super) fn cached(self, n: u64) -> Self {
        match self {
            Self::Drawn(..) if n <= MAX_CACHED => Self::Known((0..n).map(|i| self.of(i)).collect()),
            other => other,
        }
    }

    /// Numbers the `n` files as members of a part.
    pub(super) fn interleaved(self, part: Interleave, n: u64) -> Self {
        match self {
            Self::Const(size) => Self::Const(size),
            sizes if part == Interleave::WHOLE => sizes,
            Self::Known(sizes) => {
                Self::Known((0..part.len(n)).map(|index| sizes[part.number(index) as usize]).collect())
            }
            sizes => Self::Part(part, Box::new(sizes)),
        }
    }

    /// Returns the size of a file in bytes.
    #[inline]
    pub(super) fn of(&self, file: u64) -> u64 {
        match self {
            Self::Const(size) => *size,
            Self::Drawn(var, seed) => var.draw(&mut random::stream(*seed, &[file])),
            Self::Known(sizes) => sizes[file as usize],
            Self::Table(table, order) => table.at_rank(order.at(file)),
            Self::Part(part, sizes) => sizes.of_whole(part.number(file)),
        }
    }

    /// Does the same as [`Sizes::of`] for a set of which a part is used. A separate function, so that `of` can be
    /// inlined.
    #[inline(never)]
    fn of_whole(&self, file: u64) -> u64 {
        self.of(file)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KIB: u64 = 1024;

    fn server() -> Vec<SizeRow> {
        let row = |above, up_to, count| SizeRow { above, up_to, count };
        vec![
            row(0, 4 * KIB, 1_990_612),
            row(4 * KIB, 16 * KIB, 473_044),
            row(16 * KIB, 64 * KIB, 242_107),
            row(64 * KIB, 256 * KIB, 135_901),
            row(256 * KIB, 1024 * KIB, 28_063),
            row(1024 * KIB, 1382 * KIB, 981),
            row(31 << 20, 31 << 20, 5),
        ]
    }

    #[test]
    fn counts_and_total_of_a_real_server_hold() {
        let total = 72_641_776 * KIB;
        let table = SizeTable::new(&server(), 2_870_713, Some(total));
        assert_eq!(table.entries(), 2_870_713);
        assert_eq!(table.rows()[0].count, 1_990_612);
        let bytes = table.bytes();
        assert!(bytes.abs_diff(total) < total / 5000, "{bytes} for {total}");
        assert_eq!(table.at_rank(0), 0, "the smallest size is 0");
    }

    #[test]
    fn every_row_has_its_count_for_every_seed() {
        let table = SizeTable::new(&server(), 10_000, Some(72_641_776 * KIB));
        for seed in 0..3 {
            let sizes = Sizes::new(&Quantity::Const(0), Some(&table), seed);
            let mut counts = vec![0; table.rows().len()];
            let mut bytes = 0;
            let mut powers = 0;
            for i in 0..10_000 {
                let size = sizes.of(i);
                let row = table
                    .rows()
                    .iter()
                    .position(|r| size <= r.up_to && (size > r.above || r.above == 0 || r.above == r.up_to));
                counts[row.unwrap()] += 1;
                bytes += size;
                powers += u32::from(size.is_power_of_two());
            }
            assert_eq!(counts, table.rows().iter().map(|r| r.count).collect::<Vec<_>>());
            assert_eq!(bytes, table.bytes());
            assert!(powers > 4000, "{powers} of 10000 on powers of two");
        }
    }

    #[test]
    fn cached_sizes_equal_drawn_sizes() {
        let sampler = Quantity::from(
            crate::random::randvar(&crate::random::RandvarParams { mean: Some(9e3), ..Default::default() }).unwrap(),
        );
        let drawn = Sizes::new(&sampler, None, 7);
        let known = drawn.clone().cached(1000);
        assert!(matches!(known, Sizes::Known(_)) && matches!(drawn.clone().cached(MAX_CACHED + 1), Sizes::Drawn(..)));
        assert!((0..1000).all(|i| known.of(i) == drawn.of(i)));
    }

    #[test]
    fn counts_are_scaled_by_largest_remainder() {
        let rows = [1, 1, 1].map(|count| SizeRow { above: 0, up_to: 1, count });
        assert_eq!(scale(&rows, 5).iter().map(|r| r.count).collect::<Vec<_>>(), [2, 2, 1]);
        let rows = [70, 20, 10].map(|count| SizeRow { above: 0, up_to: 1, count });
        assert_eq!(scale(&rows, 7).iter().map(|r| r.count).collect::<Vec<_>>(), [5, 1, 1]);
    }
}
