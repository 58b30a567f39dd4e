//! Change points of a series: where its level changes, by E-divisive (Matteson and James) with t-tests in windows
//! (Fleming and others, "Hunter", 2023). Deterministic.
//!
//! apache-otava 0.8 has the same points, but where it removes a weak one: there it does not test the point before it again.

use super::distributions::t_two_sided;
use std::collections::HashMap;

/// The length of a window. Windows overlap by half.
const WINDOW: usize = 50;

/// The greatest p of a change point.
const MAX_P: f64 = 0.001;

/// The greatest p of a point that may become one when others are removed.
const MAX_WEAK_P: f64 = 0.01;

/// Sums of the distances between the values of a window, from which the sum over any rectangle of pairs follows.
struct Distances {
    /// The sum over all pairs of one of the first `i` values and one of the first `j`, in row `i`, column `j`.
    sums: Vec<f64>,
    columns: usize,
}

impl Distances {
    fn of(values: &[f64]) -> Self {
        let columns = values.len() + 1;
        let mut sums = vec![0.0; columns * columns];
        for (i, a) in values.iter().enumerate() {
            let mut row = 0.0;
            for (j, b) in values.iter().enumerate() {
                row += (a - b).abs();
                sums[(i + 1) * columns + j + 1] = sums[i * columns + j + 1] + row;
            }
        }
        Self { sums, columns }
    }

    /// The sum over the pairs of a value in `from..to` and one in `other_from..other_to`.
    fn between(&self, [from, to]: [usize; 2], [other_from, other_to]: [usize; 2]) -> f64 {
        let at = |i: usize, j: usize| self.sums[i * self.columns + j];
        at(to, other_to) - at(from, other_to) - at(to, other_from) + at(from, other_from)
    }

    /// How far the values of `from..middle` are from those of `middle..to`: the scaled energy distance.
    fn divergence(&self, from: usize, middle: usize, to: usize) -> f64 {
        let (left, right) = ([from, middle], [middle, to]);
        let (n, m) = ((middle - from) as f64, (to - middle) as f64);
        // Each pair within a side is in the square twice.
        let within = |side: [usize; 2], own: f64, other: f64| match own > 1.0 {
            true => other / (own - 1.0) * self.between(side, side),
            false => 0.0,
        };
        (2.0 * self.between(left, right) - within(left, n, m) - within(right, m, n)) / (n + m)
    }

    /// The most likely change within `from..to`, with its divergence. What follows the change may end before `to`.
    fn candidate(&self, from: usize, to: usize) -> (usize, f64) {
        let mut best = (from + 1, f64::NEG_INFINITY);
        for middle in from + 1..to {
            for end in middle + 1..=to {
                let found = self.divergence(from, middle, end);
                if found > best.1 {
                    best = (middle, found);
                }
            }
        }
        best
    }
}

/// The probability that two parts of a series have the same mean, by a t-test, and whether their means differ at all. The
/// standard deviations are those of the parts themselves, divided by n, as in Hunter.
fn t_test(left: &[f64], right: &[f64]) -> (f64, bool) {
    let moments = |part: &[f64]| {
        let n = part.len() as f64;
        let mean = part.iter().sum::<f64>() / n;
        (n, mean, part.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n)
    };
    let ((n, a, of_a), (m, b, of_b)) = (moments(left), moments(right));
    let df = n + m - 2.0;
    if df < 1.0 {
        return (1.0, a.total_cmp(&b).is_ne());
    }
    let variance = ((n - 1.0) * of_a + (m - 1.0) * of_b) / df;
    (t_two_sided((a - b) / (variance * (1.0 / n + 1.0 / m)).sqrt(), df), a.total_cmp(&b).is_ne())
}

/// The begins and the ends of the parts of `from..to` between sorted change points.
fn parts(points: &[usize], from: usize, to: usize) -> Vec<[usize; 2]> {
    let begins = std::iter::once(from).chain(points.iter().copied());
    let ends = points.iter().copied().chain([to]);
    begins.zip(ends).map(|(begin, end)| [begin, end]).collect()
}

/// The change points of a window: of all parts the likeliest change splits its part, as long as it is significant.
fn weak_points(window: &[f64]) -> Vec<usize> {
    let distances = Distances::of(window);
    let mut points: Vec<usize> = Vec::new();
    // The candidates of parts that were not split stay.
    let mut candidates: Vec<([usize; 2], usize, f64)> = Vec::new();
    loop {
        let parts = parts(&points, 0, window.len());
        candidates.retain(|(part, ..)| parts.contains(part));
        for part in parts.into_iter().filter(|[begin, end]| end - begin > 1) {
            if candidates.iter().all(|(known, ..)| *known != part) {
                let (middle, divergence) = distances.candidate(part[0], part[1]);
                candidates.push((part, middle, divergence));
            }
        }
        candidates.sort_by_key(|(part, ..)| *part);
        // Of equal ones the first.
        let best = candidates.iter().rev().max_by(|a, b| a.2.total_cmp(&b.2));
        let Some(([begin, end], middle, _)) = best else { return points };
        let (p, _) = t_test(&window[*begin..*middle], &window[*middle..*end]);
        if p.is_nan() || p > MAX_WEAK_P {
            return points;
        }
        points.insert(points.partition_point(|point| point < middle), *middle);
    }
}

/// The points of windows of a series that grows: most of them stay the same.
#[derive(Default)]
pub(super) struct KnownWindows(HashMap<Vec<u64>, Vec<usize>>);

impl KnownWindows {
    fn weak_points(&mut self, window: &[f64]) -> Vec<usize> {
        let key = window.iter().map(|value| value.to_bits()).collect();
        self.0.entry(key).or_insert_with(|| weak_points(window)).clone()
    }

    /// The same as [`change_points`].
    pub(super) fn change_points(&mut self, values: &[f64]) -> Vec<usize> {
        let mut points: Vec<usize> = Vec::new();
        let mut start = 0;
        while start < values.len() {
            let end = (start + WINDOW).min(values.len());
            let found = self.weak_points(&values[start..end]);
            let last = found.last().map_or(0, |last| last + start);
            points.extend(found.into_iter().map(|point| point + start));
            start = last.max(start + WINDOW / 2);
        }
        points.sort_unstable();
        points.dedup();
        strong_points(points, values)
    }
}

/// Returns the positions from which on the level of a series differs from that before: the first values of new levels.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    KnownWindows::default().change_points(values)
}

/// The points that are left if the weakest goes until all are strong. Without it the tests of its neighbours are others.
fn strong_points(mut points: Vec<usize>, values: &[f64]) -> Vec<usize> {
    loop {
        let parts = parts(&points, 0, values.len());
        let tests =
            parts.windows(2).map(|pair| t_test(&values[pair[0][0]..pair[0][1]], &values[pair[1][0]..pair[1][1]]));
        let tests: Vec<(f64, bool)> = tests.collect();
        let weakest = tests.iter().enumerate().rev().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
        let equal = tests.iter().position(|(_, differ)| !differ);
        match weakest {
            Some((at, (p, _))) if p.is_nan() || *p >= MAX_P => _ = points.remove(at),
            _ => match equal {
                Some(at) => _ = points.remove(at),
                None => return points,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::change_points;
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn steps_are_found_where_they_are() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut level =
            |n: usize, mean: f64| -> Vec<f64> { (0..n).map(|_| mean + rng.sample::<f64, _>(StandardNormal)).collect() };
        let series = [level(70, 100.0), level(40, 90.0), level(60, 95.0)].concat();
        assert_eq!(change_points(&series), [70, 110]);
        assert_eq!(change_points(&level(120, 100.0)), Vec::<usize>::new());
    }

    #[test]
    fn short_and_equal_series_have_none() {
        for series in [&[][..], &[1.0], &[1.0, 2.0], &[3.0; 40]] {
            assert_eq!(change_points(series), Vec::<usize>::new());
        }
        assert_eq!(change_points(&[[1.0; 5], [2.0; 5]].concat()), [5]);
    }
}
