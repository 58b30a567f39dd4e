//! The test of Shapiro and Wilk: may the values of a sample be normally distributed? Royston's algorithm AS R94 (Applied
//! Statistics 44, 1995), which R and scipy use too.

use super::distributions::{normal, normal_quantile};
use serde::Serialize;

/// The result of the test of Shapiro and Wilk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShapiroWilk {
    /// The statistic: 1 for a sample whose normal QQ plot is a straight line.
    pub w: f64,
    /// The probability of so small a statistic if the values are normally distributed.
    pub p: f64,
}

/// Royston's polynomials, with the constant term first.
const OF_LAST: [f64; 6] = [0.0, 0.221_157, -0.147_981, -2.071_19, 4.434_685, -2.706_056];
const OF_LAST_BUT_ONE: [f64; 6] = [0.0, 0.042_981, -0.293_762, -1.752_461, 5.682_633, -3.582_633];
const LIMIT: [f64; 2] = [-2.273, 0.459];
const SMALL_MEAN: [f64; 4] = [0.544, -0.399_78, 0.025_054, -6.714e-4];
const SMALL_DEVIATION: [f64; 4] = [1.3822, -0.778_57, 0.062_767, -0.002_032_2];
const MEAN: [f64; 4] = [-1.5861, -0.310_82, -0.083_751, 0.003_891_5];
const DEVIATION: [f64; 3] = [-0.4803, -0.082_676, 0.003_030_2];

/// The sizes of samples for which the polynomials hold.
const SIZES: std::ops::RangeInclusive<usize> = 3..=5000;

/// The largest sample whose p-value needs the polynomials of small ones.
const SMALL: usize = 11;

/// Tests a sample. `None` for fewer than 3 or more than 5000 values, and for equal ones.
pub fn shapiro_wilk(values: &[f64]) -> Option<ShapiroWilk> {
    let n = values.len();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let range = sorted.last()? - sorted[0];
    if !(SIZES.contains(&n) && range > 0.0 && range.is_finite()) {
        return None;
    }
    // The statistic depends on neither place nor scale; so the sums are exact and do not overflow.
    let scaled: Vec<f64> = sorted.iter().map(|value| (value - sorted[n / 2]) / range).collect();
    let mean = scaled.iter().sum::<f64>() / n as f64;
    let weights = weights(n);
    // The weight of a value from below is the negative of that of its counterpart from above.
    let weight = |i: usize| match (weights.get(i), weights.get(n - 1 - i)) {
        (Some(weight), _) => -weight,
        (None, Some(weight)) => *weight,
        (None, None) => 0.0,
    };
    let squares: f64 = scaled.iter().map(|value| (value - mean).powi(2)).sum();
    let squared_weights = 2.0 * weights.iter().map(|weight| weight * weight).sum::<f64>();
    let products: f64 = scaled.iter().enumerate().map(|(i, value)| weight(i) * (value - mean)).sum();
    let root = (squares * squared_weights).sqrt();
    // The difference of W from 1, which would lose its digits if it were computed from W.
    let rest = ((root - products) * (root + products) / (squares * squared_weights)).max(0.0);
    Some(ShapiroWilk { w: 1.0 - rest, p: p_value(n, rest) })
}

/// The weights of the larger half of the values, the largest first.
fn weights(n: usize) -> Vec<f64> {
    if n == 3 {
        return vec![std::f64::consts::FRAC_1_SQRT_2];
    }
    let size = n as f64;
    // The expected values of the order statistics, approximately.
    let mut weights: Vec<f64> = (1..=n / 2).map(|i| -normal_quantile((i as f64 - 0.375) / (size + 0.25))).collect();
    let sum = |weights: &[f64]| 2.0 * weights.iter().map(|weight| weight * weight).sum::<f64>();
    let all = sum(&weights);
    let corrected: Vec<f64> = [OF_LAST, OF_LAST_BUT_ONE][..if n > 5 { 2 } else { 1 }]
        .iter()
        .zip(&weights)
        .map(|(of, weight)| polynomial(of, 1.0 / size.sqrt()) + weight / all.sqrt())
        .collect();
    let (first, others) = weights.split_at_mut(corrected.len());
    let factor = ((all - sum(first)) / (1.0 - sum(&corrected))).sqrt();
    first.copy_from_slice(&corrected);
    others.iter_mut().for_each(|weight| *weight /= factor);
    weights
}

/// The p-value of a statistic that is less than 1 by `rest`.
fn p_value(n: usize, rest: f64) -> f64 {
    use std::f64::consts::{FRAC_PI_3, PI};
    let size = n as f64;
    if n == 3 {
        return (6.0 / PI * ((1.0 - rest).sqrt().asin() - FRAC_PI_3)).max(0.0);
    }
    let log = rest.ln();
    let (value, mean, deviation) = if n <= SMALL {
        let limit = polynomial(&LIMIT, size);
        if log >= limit {
            return 0.0;
        }
        (-(limit - log).ln(), polynomial(&SMALL_MEAN, size), polynomial(&SMALL_DEVIATION, size))
    } else {
        (log, polynomial(&MEAN, size.ln()), polynomial(&DEVIATION, size.ln()))
    };
    normal((mean - value) / deviation.exp())
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::shape::{Point, normal_plot};
    use super::*;
    use rand::{Rng as _, SeedableRng as _};
    use rand_xoshiro::SplitMix64;
    use std::f64::consts::PI;

    /// The sample of a number: 3 to 200 values of one of ten shapes.
    fn sample(number: u64) -> Vec<f64> {
        let mut random = SplitMix64::seed_from_u64(number);
        let mut uniform = move || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let n = 3 + number * number * 197 / (99 * 99);
        let value = |i: u64| {
            let first = uniform();
            if number % 10 == 4 {
                let (a, b) = (uniform(), uniform());
                return (if first < 0.5 { 1.0 } else { 1.3 }) * (1.0 + 0.04 * normal_from(a, b));
            }
            let z = |second: f64| normal_from(first, second);
            match number % 10 {
                0 => 100.0 + 5.0 * z(uniform()),
                1 => first,
                2 => -first.ln(),
                3 => z(uniform()).exp(),
                5 => (PI * (first - 0.5)).tan(),
                6 => (10.0 * z(uniform())).floor(),
                7 if i == 0 => 200.0,
                7 => 100.0 + z(uniform()),
                8 => 1e6 + z(uniform()),
                _ => i as f64 / n as f64 + 0.1 * z(uniform()),
            }
        };
        (0..n).map(value).collect()
    }

    /// A normally distributed number from two uniform ones, by Box and Muller.
    fn normal_from(a: f64, b: f64) -> f64 {
        (-2.0 * a.ln()).sqrt() * (2.0 * PI * b).cos()
    }

    /// W, p and the normal QQ plot of 100 samples are those of scipy, with a relative tolerance of 1e-6.
    #[test]
    fn a_hundred_samples_have_the_figures_of_scipy() {
        let text = include_str!("../../tests/scripts/shapiro_wilk.txt");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for line in &lines {
            let (number, expected) = line.split_once(' ').unwrap();
            let expected: Vec<f64> = expected.split(' ').map(|text| text.parse().unwrap()).collect();
            let values = sample(number.parse().unwrap());
            let (found, plot) = (shapiro_wilk(&values).unwrap(), normal_plot(&values).unwrap());
            let ours = [found.w, found.p, plot.intercept, plot.slope, plot.points[0].x];
            for (ours, theirs) in ours.iter().zip(&expected) {
                assert!((ours - theirs).abs() <= theirs.abs() * 1e-6, "{ours} {theirs}: {line}");
            }
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            assert_eq!(plot.points.len(), values.len());
            assert_eq!(plot.points[0], Point { y: least, ..plot.points[0] });
        }
        assert_eq!(lines.len(), 100);
    }

    #[test]
    fn neither_place_nor_scale_matters() {
        let values = sample(40);
        let found = shapiro_wilk(&values).unwrap();
        for (place, scale) in [(0.0, 1e-250), (0.0, 1e250), (1e4, -3.0)] {
            let other = shapiro_wilk(&values.iter().map(|v| place + scale * v).collect::<Vec<_>>()).unwrap();
            assert!((other.w - found.w).abs() < 1e-9 && (other.p / found.p - 1.0).abs() < 1e-6, "{place} {scale}");
        }
    }

    #[test]
    fn samples_that_cannot_be_tested() {
        for values in [&[][..], &[1.0, 2.0], &[5.0; 9], &[f64::NAN, 1.0, 2.0]] {
            assert_eq!(shapiro_wilk(values), None);
        }
        let many: Vec<f64> = (0..5001).map(f64::from).collect();
        assert!(shapiro_wilk(&many).is_none() && shapiro_wilk(&many[..5000]).is_some());
        // Equally spaced, and as far from it as three values can be.
        let (line, far) = (shapiro_wilk(&[1.0, 2.0, 3.0]).unwrap(), shapiro_wilk(&[1.0, 1.0, 3.0]).unwrap());
        assert!((line.w - 1.0).abs() < 1e-12 && (line.p - 1.0).abs() < 1e-6, "{line:?}");
        assert!((far.w - 0.75).abs() < 1e-12 && far.p < 1e-6, "{far:?}");
        // Four values and the limit of the polynomial.
        assert!(shapiro_wilk(&[0.0, 0.0, 0.0, 1.0]).unwrap().p < 0.002);
    }
}
