//! Latency histograms, each as one line of block characters, on a common logarithmic axis.
//!
//! Heights are logarithmic too, so that a single slow operation among a million is visible. The area is therefore not
//! proportional to the number of operations; the table has the figures.

use crate::result::layout;
use crate::result::snapshot::Dist;

/// Block characters from empty to full.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The heights that a line of them has.
pub(crate) const EIGHTHS: usize = BLOCKS.len() - 1;

/// Labels of the decades, from 1 ns to 1000 s.
const DECADES: [&str; 13] =
    ["1ns", "10ns", "100ns", "1µs", "10µs", "100µs", "1ms", "10ms", "100ms", "1s", "10s", "100s", "1000s"];

/// The common axis: whole decades of equal width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    first: usize,
    decades: usize,
    per_decade: usize,
}

impl Axis {
    /// Returns an axis that contains all distributions and is at most `width` characters wide, but at least one
    /// character per decade. Returns `None` if all are empty.
    pub(crate) fn of<'a>(dists: impl IntoIterator<Item = &'a Dist>, width: usize) -> Option<Self> {
        let extremes = dists.into_iter().filter(|d| d.count > 0).map(|d| (d.min, d.max));
        let (min, max) = extremes.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        let first = decade(min);
        let decades = decade(max) - first + 1;
        Some(Self { first, decades, per_decade: (width / decades).clamp(1, 12) })
    }

    /// The number of columns.
    pub(crate) fn width(self) -> usize {
        self.decades * self.per_decade
    }

    /// Returns the column of a value.
    fn column(self, ns: u64) -> usize {
        let decades = (ns.max(1) as f64).log10() - self.first as f64;
        ((decades * self.per_decade as f64).max(0.0) as usize).min(self.width() - 1)
    }

    /// Returns the line of a distribution, with one block character per column of the axis.
    pub(crate) fn draw(self, dist: &Dist) -> String {
        self.chart(dist, 1).concat()
    }

    /// Returns the same in several lines, the highest first.
    pub(crate) fn chart(self, dist: &Dist, lines: usize) -> Vec<String> {
        let mut columns = vec![0_u64; self.width()];
        for (index, n) in dist.recorded() {
            // The outermost buckets may extend beyond the minimum and maximum into another column.
            let middle = u64::midpoint(layout::lowest(index), layout::highest(index)).clamp(dist.min, dist.max);
            columns[self.column(middle)] += n;
        }
        let most = columns.iter().copied().max().unwrap_or(0);
        let heights: Vec<usize> = columns.iter().map(|n| height(*n, most, lines * EIGHTHS)).collect();
        bars(&heights, lines)
    }

    /// The labels of the decades, each at its first column, without those that would touch another or end behind column
    /// `most`.
    pub(crate) fn labels(self, most: usize) -> String {
        let mut line = String::new();
        let mut end = 0;
        for i in 0..self.decades {
            let (at, name) = (i * self.per_decade, DECADES[self.first + i]);
            if (i == 0 || at > end) && at + 1 + name.chars().count() <= most {
                line.push_str(&" ".repeat(at - end));
                line.push('╵');
                line.push_str(name);
                end = at + 1 + name.chars().count();
            }
        }
        line
    }
}

fn decade(ns: u64) -> usize {
    (ns.max(1).ilog10() as usize).min(DECADES.len() - 1)
}

/// Draws columns of these heights, in eighths of a line. Returns the lines, the highest first.
pub(crate) fn bars(heights: &[usize], lines: usize) -> Vec<String> {
    let line = |below: usize| {
        let block = |height: &usize| BLOCKS[height.saturating_sub(below * EIGHTHS).min(EIGHTHS)];
        heights.iter().map(block).collect::<String>().trim_end().to_owned()
    };
    (0..lines).rev().map(line).collect()
}

/// Returns the height of a column: 0 for `n` = 0, at least 1 for others, `full` for `n` = `most`.
fn height(n: u64, most: u64, full: usize) -> usize {
    match n {
        0 => 0,
        n if n == most => full,
        n => 1 + ((full - 1) as f64 * (n as f64).ln() / (most as f64).ln()) as usize,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Axis, bars, height};
    use crate::result::snapshot::Dist;
    use proptest::prelude::*;

    fn dist(values: &[(u64, u64)]) -> Dist {
        let mut dist = Dist::default();
        for (value, n) in values {
            (0..*n).for_each(|_| dist.record(*value));
        }
        dist
    }

    #[test]
    fn columns_match_the_decades() {
        let d = dist(&[(1_000, 1000), (2_000, 100), (999_999, 1)]);
        let axis = Axis::of([&d], 30).unwrap();
        assert_eq!(axis.labels(80), "╵1µs      ╵10µs     ╵100µs");
        assert_eq!(axis.draw(&d), "█  ▅                         ▁");
        let narrow = Axis::of([&d], 12).unwrap();
        assert_eq!(narrow.labels(80), "╵1µs    ╵100µs");
        assert_eq!(narrow.labels(13), "╵1µs", "no part of a label");
    }

    #[test]
    fn empty_distributions_have_no_axis() {
        assert_eq!(Axis::of([&Dist::default()], 60), None);
    }

    #[test]
    fn one_operation_is_visible_and_the_maximum_is_full() {
        assert_eq!((height(0, 9, 8), height(1, 1_000_000, 8), height(999_999, 1_000_000, 8)), (0, 1, 7));
        assert_eq!((height(1, 1, 8), height(7, 7, 8)), (8, 8));
    }

    #[test]
    fn high_columns_take_several_lines() {
        assert_eq!(bars(&[0, 3, 8, 9, 16], 2), ["   ▁█", " ▃███"]);
        let d = dist(&[(1_000, 1000), (2_000, 100)]);
        let lines = Axis::of([&d], 12).unwrap().chart(&d, 3);
        assert_eq!(lines, ["█", "█  █", "█  █"]);
    }

    proptest! {
        #[test]
        fn every_operation_is_drawn(values in prop::collection::vec(any::<u64>(), 1..20), width in 0_usize..90) {
            let d = dist(&values.iter().map(|v| (*v, 1)).collect::<Vec<_>>());
            let axis = Axis::of([&d], width).unwrap();
            let line = axis.draw(&d);
            prop_assert!(line.contains('█'));
            prop_assert!(line.chars().count() <= width.max(13));
        }
    }
}
