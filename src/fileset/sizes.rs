//! File sizes: what size file *i* has, computed from *i* and a seed whenever it is asked for, never stored.
//!
//! A size is a constant, a draw of its own for each file, or comes from a table of counts that holds exactly. For a table a
//! seeded permutation gives each file a rank, and the rank fixes the size: the sizes of a set are the same for every seed,
//! only who has which differs. No disk, no directories here.

use crate::random::{self, Permutation, Quantity};
use std::sync::Arc;

/// Files of sizes above `above` up to `up_to` bytes; those of a row from 0 may be empty, those of a row with equal bounds are
/// exactly that large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeRow {
    /// Bytes; the sizes are larger (unless this is 0, or the upper bound too).
    pub above: u64,
    /// Bytes; the largest size.
    pub up_to: u64,
    /// How many files.
    pub count: u64,
}

/// How many files have which size: the file set of a real server, say.
#[derive(Clone, PartialEq, Debug)]
pub struct SizeTable {
    rows: Arc<[SizeRow]>,
    /// Sizes within a row are `above + (up_to − above) · u^skew` with evenly spaced `u`: 1 is even, less means larger.
    skew: f64,
}

impl SizeTable {
    /// A table for `entries` files: the counts are scaled to that number by largest remainder.
    ///
    /// `total` (bytes, for the counts as given) sets how sizes are spread within the rows; without it they are even. What the
    /// bounds don't allow is come as near as they do.
    pub fn new(rows: &[SizeRow], entries: u64, total: Option<u64>) -> Self {
        let rows: Vec<SizeRow> =
            rows.iter().map(|r| SizeRow { above: r.above.min(r.up_to), up_to: r.up_to, count: r.count }).collect();
        let skew = total.map_or(1.0, |total| fit_skew(&rows, total as f64));
        Self { rows: scale(&rows, entries).into(), skew }
    }

    /// The rows, with the counts that this set has.
    pub fn rows(&self) -> &[SizeRow] {
        &self.rows
    }

    /// Files in all.
    pub fn entries(&self) -> u64 {
        self.rows.iter().map(|r| r.count).sum()
    }

    /// Bytes in all; exactly, but for rows of more than four million files, of which so many stand for all.
    pub fn bytes(&self) -> u64 {
        self.rows
            .iter()
            .map(|row| if row.above == row.up_to { row.count.saturating_mul(row.up_to) } else { row.bytes(self.skew) })
            .fold(0, u64::saturating_add)
    }

    /// The size of the file with a rank.
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
    /// The size of the row's `k`-th file.
    fn size(&self, k: u64, skew: f64) -> u64 {
        self.place((k as f64 + 0.5) / self.count as f64, k % 2 == 1, skew)
    }

    /// Bytes of all its files.
    fn bytes(&self, skew: f64) -> u64 {
        // An odd step, so that even and odd files are among them.
        let step = (self.count / MOST_ADDED) | 1;
        let of = self.count.div_ceil(step);
        let sum = (0..of).fold(0_u128, |sum, k| sum + u128::from(self.size(k * step, skew)));
        let all = sum * u128::from(self.count) / u128::from(of.max(1));
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// The size at a fraction of the row. Every other one lies on a power of two: sizes on real servers gather there.
    fn place(&self, at: f64, gathered: bool, skew: f64) -> u64 {
        let at = if (skew - 1.0).abs() < 1e-12 { at } else { at.powf(skew) };
        let size = self.above + ((self.up_to - self.above) as f64 * at) as u64;
        let size = if gathered { size.checked_next_power_of_two().unwrap_or(u64::MAX) } else { size };
        size.clamp(if self.above == 0 { 0 } else { (self.above + 1).min(self.up_to) }, self.up_to)
    }
}

/// Files of a row that are added up one by one.
const MOST_ADDED: u64 = 1 << 22;

/// The skew with which the rows hold `total` bytes. The sum falls as the skew grows, so it is found by halving.
fn fit_skew(rows: &[SizeRow], total: f64) -> f64 {
    // Of a table of very many rows each needs fewer.
    const POINTS: u64 = 4096;
    let most = (32 * POINTS / rows.len().max(1) as u64).clamp(1, POINTS);
    let sum = |skew: f64| -> f64 {
        rows.iter()
            .map(|row| {
                let points = row.count.clamp(1, most);
                let part: f64 =
                    (0..points).map(|k| row.place((k as f64 + 0.5) / points as f64, k % 2 == 1, skew) as f64).sum();
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

/// Counts in the same proportion that add up to `entries`: rounded down, and the largest remainders get one more.
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

/// The largest set whose drawn sizes are kept: half a megabyte.
const MOST_CACHED: u64 = 1 << 16;

/// What gives the files of one set their sizes.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Const(u64),
    /// Drawn when asked for.
    Drawn(Quantity, u64),
    /// The same, of a set so small that all draws together are no memory worth speaking of.
    Known(Arc<[u64]>),
    Table(SizeTable, Permutation),
}

impl Sizes {
    pub(super) fn new(size: &Quantity, table: Option<&SizeTable>, seed: u64) -> Self {
        match (table, size) {
            (Some(table), _) => Self::Table(table.clone(), Permutation::new(table.entries(), seed)),
            (None, Quantity::Const(size)) => Self::Const(*size),
            (None, var) => Self::Drawn(var.clone(), seed),
        }
    }

    /// With the sizes of `n` files at hand, if they are drawn and few: a draw is a stream of its own and a logarithm or two,
    /// which is dear for every file that is opened.
    pub(super) fn cached(self, n: u64) -> Self {
        match self {
            Self::Drawn(..) if n <= MOST_CACHED => Self::Known((0..n).map(|i| self.of(i)).collect()),
            other => other,
        }
    }

    /// The size of a file.
    #[inline]
    pub(super) fn of(&self, file: u64) -> u64 {
        match self {
            Self::Const(size) => *size,
            Self::Drawn(var, seed) => var.draw(&mut random::stream(*seed, &[file])),
            Self::Known(sizes) => sizes[file as usize],
            Self::Table(table, order) => table.at_rank(order.at(file)),
        }
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
        assert_eq!(table.at_rank(0), 0, "the least is 0");
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
    fn sizes_at_hand_are_those_that_are_drawn() {
        let sampler = Quantity::from(
            crate::random::randvar(&crate::random::RandvarParams { mean: Some(9e3), ..Default::default() }).unwrap(),
        );
        let drawn = Sizes::new(&sampler, None, 7);
        let known = drawn.clone().cached(1000);
        assert!(matches!(known, Sizes::Known(_)) && matches!(drawn.clone().cached(MOST_CACHED + 1), Sizes::Drawn(..)));
        assert!((0..1000).all(|i| known.of(i) == drawn.of(i)));
    }

    #[test]
    fn scaling_goes_by_the_largest_remainder() {
        let rows = [1, 1, 1].map(|count| SizeRow { above: 0, up_to: 1, count });
        assert_eq!(scale(&rows, 5).iter().map(|r| r.count).collect::<Vec<_>>(), [2, 2, 1]);
        let rows = [70, 20, 10].map(|count| SizeRow { above: 0, up_to: 1, count });
        assert_eq!(scale(&rows, 7).iter().map(|r| r.count).collect::<Vec<_>>(), [5, 1, 1]);
    }
}
