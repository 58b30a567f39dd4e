//! The points of plots: empirical distribution functions of samples, Q–Q plots of two samples, and normal ones of one.

use super::distributions::normal_quantile;
use serde::Serialize;

/// A point of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The horizontal coordinate.
    pub x: f64,
    /// The vertical coordinate.
    pub y: f64,
}

/// Returns the empirical distribution function: each distinct value with the fraction of values that are less than or
/// equal to it.
pub fn ecdf(values: &[f64]) -> Vec<Point> {
    let sorted = sorted(values);
    let n = sorted.len() as f64;
    let last = |i: usize| sorted.get(i + 1) != Some(&sorted[i]);
    (0..sorted.len()).filter(|i| last(*i)).map(|i| Point { x: sorted[i], y: (i + 1) as f64 / n }).collect()
}

/// Returns the Q–Q plot of B against A. It has as many points as the smaller sample has values; the quantiles of the
/// other sample are interpolated linearly, as in R's `qqplot`. The result is empty when a sample is empty.
pub fn quantile_pairs(a: &[f64], b: &[f64]) -> Vec<Point> {
    let (a, b) = (sorted(a), sorted(b));
    let n = a.len().min(b.len());
    let share = |i: usize| if n > 1 { i as f64 / (n - 1) as f64 } else { 0.5 };
    (0..n).map(|i| Point { x: quantile(&a, share(i)), y: quantile(&b, share(i)) }).collect()
}

/// The normal Q–Q plot of a sample, as R's `qqnorm` and `qqline` draw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NormalPlot {
    /// The quantiles of the standard normal distribution with the sorted values.
    pub points: Vec<Point>,
    /// The line through the lower and the upper quartile: its height at the median of the distribution.
    pub intercept: f64,
    /// The rise of that line for each standard deviation.
    pub slope: f64,
}

/// Returns the normal Q–Q plot. `None` for fewer than two values.
pub fn normal_plot(values: &[f64]) -> Option<NormalPlot> {
    let sorted = sorted(values);
    let n = sorted.len();
    if n < 2 {
        return None;
    }
    // Blom's plotting positions for few values, Hazen's for many.
    let shift = if n <= 10 { 0.375 } else { 0.5 };
    let theoretical = |i: usize| normal_quantile(((i + 1) as f64 - shift) / (n as f64 + 1.0 - 2.0 * shift));
    let points = sorted.iter().enumerate().map(|(i, y)| Point { x: theoretical(i), y: *y }).collect();
    let [low, high] = [0.25, 0.75].map(|share| (normal_quantile(share), quantile(&sorted, share)));
    let slope = (high.1 - low.1) / (high.0 - low.0);
    Some(NormalPlot { points, intercept: low.1 - slope * low.0, slope })
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the quantile of a sorted sample at `share` (0 to 1), with linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn plots_have_the_points_of_their_definitions() {
        let point = |x: f64, y: f64| Point { x, y };
        assert_eq!(ecdf(&[3.0, 1.0, 3.0, 2.0]), [point(1.0, 0.25), point(2.0, 0.5), point(3.0, 1.0)]);
        assert_eq!(quantile_pairs(&[1.0, 2.0, 3.0], &[10.0, 30.0]), [point(1.0, 10.0), point(3.0, 30.0)]);
        assert_eq!(quantile_pairs(&[1.0, 2.0, 3.0], &[5.0]), [point(2.0, 5.0)]);
        assert!(quantile_pairs(&[], &[5.0]).is_empty() && ecdf(&[]).is_empty());
        let plot = normal_plot(&[5.0, 1.0]).unwrap();
        assert!((plot.points[0].x + plot.points[1].x).abs() < 1e-12 && plot.points[1].y > 4.0, "{plot:?}");
        assert!((plot.intercept - 3.0).abs() < 1e-12 && normal_plot(&[1.0]).is_none(), "{plot:?}");
    }
}
