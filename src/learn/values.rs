//! Values as the language writes them: constants, tables, distributions.

use std::collections::BTreeMap;

/// Rows of a table of ranges.
const MOST_ROWS: usize = 12;
/// A value with this share of the draws is a constant.
const CONSTANT: f64 = 0.99;

/// How values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawn {
    Always(u64),
    /// Per cent, and the range from which values are drawn.
    Table(Vec<(u64, u64, u64)>),
}

impl Drawn {
    /// From sorted values.
    pub(crate) fn of(sorted: &[u64]) -> Self {
        let [first, .., last] = sorted else { return Self::Always(sorted.first().copied().unwrap_or(0)) };
        if first == last {
            return Self::Always(*first);
        }
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        sorted.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
        let n = sorted.len() as f64;
        if let Some((value, _)) = counts.iter().find(|(_, count)| **count as f64 >= CONSTANT * n) {
            return Self::Always(*value);
        }
        let mut common: Vec<(u64, usize)> = counts.iter().map(|(value, count)| (*value, *count)).collect();
        common.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        common.truncate(MOST_ROWS);
        // Values with at least two per cent each are rows of their own; the others are ranges between them.
        common.retain(|(_, count)| *count as f64 >= 0.02 * n);
        let rest: Vec<u64> =
            sorted.iter().copied().filter(|value| !common.iter().any(|(own, _)| own == value)).collect();
        let mut rows: Vec<(f64, u64, u64)> =
            common.iter().map(|(value, count)| (*count as f64 / n, *value, *value)).collect();
        if !rest.is_empty() {
            let ranges = [1, 2, 3, 4, 6].into_iter().find(|rows| is_even(&rest, *rows)).unwrap_or(MOST_ROWS);
            for row in 0..ranges {
                let (from, to) = (row * rest.len() / ranges, (row + 1) * rest.len() / ranges);
                if from < to {
                    rows.push(((to - from) as f64 / n, rest[from], rest[to - 1]));
                }
            }
        }
        rows.sort_by_key(|(_, low, high)| (*low, *high));
        rows.dedup_by(|next, row| {
            let is_same = (next.1, next.2) == (row.1, row.2);
            row.0 += if is_same { next.0 } else { 0.0 };
            is_same
        });
        Self::Table(whole_percents(&rows))
    }
}

/// True if sorted values are spread evenly over each of so many parts: none is further off than two hundredths of all.
fn is_even(sorted: &[u64], parts: usize) -> bool {
    (0..parts).all(|part| {
        let (from, to) = (part * sorted.len() / parts, (part + 1) * sorted.len() / parts);
        let Some((first, last)) = sorted[from..to].first().zip(sorted[from..to].last()) else { return true };
        let width = (last - first).max(1) as f64;
        let off = |(n, value): (usize, &u64)| {
            ((value - first) as f64 / width * (to - from) as f64 - n as f64).abs() <= 0.02 * sorted.len() as f64 + 1.0
        };
        sorted[from..to].iter().enumerate().all(off)
    })
}

/// Shares as whole per cents that add up to 100.
fn whole_percents(rows: &[(f64, u64, u64)]) -> Vec<(u64, u64, u64)> {
    let mut all: Vec<(u64, f64)> =
        rows.iter().map(|(share, ..)| ((share * 100.0) as u64, (share * 100.0).fract())).collect();
    let mut missing = 100u64.saturating_sub(all.iter().map(|(percent, _)| percent).sum());
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*b].1.total_cmp(&all[*a].1));
    for n in order.into_iter().cycle().take(all.len() * 100) {
        if missing == 0 {
            break;
        }
        all[n].0 += 1;
        missing -= 1;
    }
    let rows = rows.iter().zip(&all).map(|((_, low, high), (percent, _))| (*percent, *low, *high));
    rows.filter(|(percent, ..)| *percent > 0).collect()
}

/// Where transfers of a place are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OffsetPattern {
    /// One after another.
    Sequential,
    /// At the end of the file.
    Append,
    /// At drawn offsets.
    At(Drawn),
    /// Anywhere below an end, at multiples of a size.
    Random { end: u64, align: u64 },
    /// Likewise, some places far more often: the skew of a Zipf distribution.
    Hot { end: u64, align: u64, theta: f64 },
}

impl OffsetPattern {
    pub(crate) fn of(next: f64, append: f64, sorted: &[u64]) -> Self {
        if append > 0.9 {
            return Self::Append;
        }
        if next > 0.8 || sorted.is_empty() {
            return Self::Sequential;
        }
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        sorted.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
        let n = sorted.len();
        let mut common: Vec<usize> = counts.values().copied().collect();
        common.sort_unstable_by(|a, b| b.cmp(a));
        if common.iter().take(8).sum::<usize>() as f64 >= 0.98 * n as f64 {
            return Self::At(Drawn::of(sorted));
        }
        let align = sorted.iter().copied().fold(0, gcd).max(1);
        let end = sorted.last().copied().unwrap_or(0).saturating_add(align);
        let tenth = common.len().div_ceil(10);
        let share = common.iter().take(tenth).sum::<usize>() as f64 / n as f64;
        // Of few draws some values come more often by chance: the tenth of uniform draws has less than two fifths of them.
        if n >= 4 * common.len() && share > 0.4 {
            return Self::Hot { end, align, theta: (1.0 - share.ln() / 0.1f64.ln()).clamp(0.1, 0.99) };
        }
        Self::Random { end, align }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_values_are_kept_and_the_others_are_ranges() {
        assert_eq!(Drawn::of(&[4096; 50]), Drawn::Always(4096));
        let mut values = vec![12; 30];
        values.extend(vec![512; 30]);
        values.extend(1000..1040);
        let Drawn::Table(rows) = Drawn::of(&values) else { panic!("no table") };
        assert_eq!(rows.iter().map(|row| row.0).sum::<u64>(), 100);
        assert_eq!(rows[..2], [(30, 12, 12), (30, 512, 512)]);
        assert_eq!((rows[2].1, rows[rows.len() - 1].2), (1000, 1039));
    }

    #[test]
    fn offsets_are_told_apart() {
        assert_eq!(OffsetPattern::of(1.0, 0.2, &[0, 4, 8]), OffsetPattern::Sequential);
        assert_eq!(OffsetPattern::of(1.0, 1.0, &[0, 4, 8]), OffsetPattern::Append);
        assert_eq!(OffsetPattern::of(0.0, 0.0, &[24; 9]), OffsetPattern::At(Drawn::Always(24)));
        let random: Vec<u64> = (0..100).map(|n| n * 8192).collect();
        assert_eq!(OffsetPattern::of(0.0, 0.0, &random), OffsetPattern::Random { end: 819_200, align: 8192 });
        let mut hot = random.clone();
        hot.extend(vec![8192; 500]);
        hot.sort_unstable();
        assert!(matches!(OffsetPattern::of(0.0, 0.0, &hot), OffsetPattern::Hot { align: 8192, .. }));
    }
}
