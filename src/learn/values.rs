//! Values as the language writes them: constants, tables, distributions.

use std::collections::BTreeMap;

/// Rows of a table of ranges, and with those that are divided because their values lie unevenly.
const MOST_ROWS: usize = 12;
const MOST_DIVIDED: usize = 24;
/// How far the middle of a row may be from the mean of its values, as a share of the mean of all.
const UNEVEN: f64 = 0.002;
/// How far whole per cents may move the mean.
const MOVED: f64 = 0.006;
/// How far ranges are moved at most, as a share of their values.
const MOST_MOVED: f64 = 0.05;
/// A value with this share of the draws is a constant.
const CONSTANT: f64 = 0.99;

/// How values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawn {
    Always(u64),
    /// Weight, and the range from which values are drawn.
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
        let mean = sorted.iter().map(|value| *value as f64).sum::<f64>() / n;
        let is_close = |rows: &Vec<(u64, u64, u64)>| {
            let all: f64 = rows.iter().map(|(weight, ..)| *weight as f64).sum();
            let sum: f64 = rows.iter().map(|(weight, low, high)| *weight as f64 * middle(*low, *high)).sum();
            (sum / all - mean).abs() <= MOVED * mean
        };
        let found = [100, 1000].into_iter().map(|of| table(&common, &rest, sorted.len(), of)).find(is_close);
        Self::Table(found.unwrap_or_else(|| table(&common, &rest, sorted.len(), 10_000)))
    }
}

impl Drawn {
    /// The same with a mean that is known of more values than these: the ranges are moved a little.
    pub(crate) fn with_mean(self, mean: f64) -> Self {
        let Self::Table(mut rows) = self else { return self };
        let all: f64 = rows.iter().map(|(weight, ..)| *weight as f64).sum();
        let sum = |is_range: bool| -> f64 {
            let own = rows.iter().filter(|(_, low, high)| (low < high) == is_range);
            own.map(|(weight, low, high)| *weight as f64 * middle(*low, *high)).sum()
        };
        let factor = (mean * all - sum(false)) / sum(true).max(1.0);
        if (factor - 1.0).abs() < MOST_MOVED {
            for (_, low, high) in rows.iter_mut().filter(|(_, low, high)| low < high) {
                (*low, *high) = ((*low as f64 * factor) as u64, (*high as f64 * factor) as u64);
            }
        }
        Self::Table(rows)
    }
}

fn middle(low: u64, high: u64) -> f64 {
    f64::midpoint(low as f64, high as f64)
}

/// Rows for common values, each with its count, and for ranges of the others. Their weights add up to `of`.
fn table(common: &[(u64, usize)], rest: &[u64], n: usize, of: u64) -> Vec<(u64, u64, u64)> {
    let shares: Vec<f64> =
        common.iter().map(|(_, count)| *count).chain([rest.len()]).map(|count| count as f64 / n as f64).collect();
    let weights = whole_weights(&shares, of);
    let mut rows: Vec<(u64, u64, u64)> =
        common.iter().zip(&weights).map(|((value, _), weight)| (*weight, *value, *value)).collect();
    let units = weights[common.len()] as usize;
    if units > 0 {
        let ranges = [1, 2, 3, 4, 6].into_iter().find(|rows| is_even(rest, *rows)).unwrap_or(MOST_ROWS).min(units);
        let parts = (0..ranges).map(|row| (row * units / ranges, (row + 1) * units / ranges)).collect();
        for (from, to) in divided(rest, units, parts) {
            let (first, last) = (from * rest.len() / units, (to * rest.len() / units).max(1) - 1);
            rows.push(((to - from) as u64, rest[first.min(last)], rest[last]));
        }
    }
    rows.retain(|(weight, ..)| *weight > 0);
    rows.sort_by_key(|(_, low, high)| (*low, *high));
    rows.dedup_by(|next, row| {
        let is_same = (next.1, next.2) == (row.1, row.2);
        row.0 += if is_same { next.0 } else { 0 };
        is_same
    });
    rows
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

/// Divides the parts of sorted values whose middle is not their mean, the furthest first: a uniform draw has that mean. A
/// part is a range of `units` of all values, and one unit is not divided.
fn divided(sorted: &[u64], units: usize, mut parts: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let most = UNEVEN * sorted.iter().map(|value| *value as f64).sum::<f64>();
    let off = |(from, to): (usize, usize)| {
        let values = &sorted[from * sorted.len() / units..to * sorted.len() / units];
        let [first, .., last] = values else { return 0.0 };
        let sum = values.iter().map(|value| *value as f64).sum::<f64>();
        if to - from < 2 { 0.0 } else { (sum - values.len() as f64 * middle(*first, *last)).abs() }
    };
    while parts.len() < MOST_DIVIDED {
        let furthest = parts.iter().enumerate().max_by(|a, b| off(*a.1).total_cmp(&off(*b.1)));
        let Some((n, (from, to))) = furthest.map(|(n, part)| (n, *part)).filter(|(_, part)| off(*part) > most) else {
            break;
        };
        let middle = from.midpoint(to);
        parts[n] = (from, middle);
        parts.insert(n + 1, (middle, to));
    }
    parts
}

/// Shares as whole numbers that add up to this one.
fn whole_weights(shares: &[f64], of: u64) -> Vec<u64> {
    let mut all: Vec<u64> = shares.iter().map(|share| (share * of as f64) as u64).collect();
    let mut missing = of.saturating_sub(all.iter().sum());
    let mut order: Vec<usize> = (0..all.len()).collect();
    let rest = |n: &usize| (shares[*n] * of as f64).fract();
    order.sort_by(|a, b| rest(b).total_cmp(&rest(a)));
    for n in order.into_iter().cycle().take(all.len() * 100) {
        if missing == 0 {
            break;
        }
        all[n] += 1;
        missing -= 1;
    }
    all
}

/// Parts of the files of a set, each with the mean of its sizes, and the longest table of them.
const SIZE_PARTS: usize = 20;
const MOST_SIZES: usize = 32;

/// Sizes of files as a few with the number of files that have them: the bytes of all are those of the files.
pub(crate) fn sizes_of_files(sorted: &[u64]) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    sorted.iter().for_each(|size| *counts.entry(*size).or_default() += 1);
    if counts.len() <= SIZE_PARTS {
        return counts.into_iter().collect();
    }
    let parts = (0..SIZE_PARTS).map(|n| (n * sorted.len() / SIZE_PARTS, (n + 1) * sorted.len() / SIZE_PARTS));
    let mut parts: Vec<(usize, usize)> = parts.collect();
    // The last parts may have files that are far larger than the others.
    while parts.len() < MOST_SIZES {
        let last = parts[parts.len() - 1];
        if last.1 - last.0 < 2 || sorted[last.1 - 1] < sorted[last.0].saturating_mul(2) {
            break;
        }
        let middle = last.0.midpoint(last.1);
        parts.pop();
        parts.extend([(last.0, middle), (middle, last.1)]);
    }
    let mean = |from: usize, to: usize| {
        let sum = sorted[from..to].iter().map(|size| u128::from(*size)).sum::<u128>();
        u64::try_from(sum / (to - from) as u128).unwrap_or(u64::MAX)
    };
    parts.into_iter().map(|(from, to)| (mean(from, to), (to - from) as u64)).collect()
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
