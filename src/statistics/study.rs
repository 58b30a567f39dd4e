//! The method of a published study of snapshots: an F-test for equal variances, followed by Student's t-test with
//! pooled variance if the variances do not differ significantly, else by Welch's t-test. All tests use one confidence
//! level (99 %).

use super::distributions::{f_tails, f_upper, t_two_sided, t_upper};
use super::sample::SampleSummary;
use serde::Serialize;

/// The F-test and the t-test of A against B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StudyTest {
    /// The confidence level of both tests (0.99).
    pub level: f64,
    /// The F-test of the variances.
    pub f: FTest,
    /// The t-test of the means; `None` if neither sample varies beyond rounding.
    pub t: Option<TTest>,
}

/// An F-test of the ratio of the variances of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FTest {
    /// The ratio of the variance of A to that of B: infinite if the values of B are equal, and NaN if those of A are, too.
    /// Both are null in JSON.
    pub value: f64,
    /// The degrees of freedom of A.
    pub df1: f64,
    /// The degrees of freedom of B.
    pub df2: f64,
    /// The two-sided p-value.
    pub p: f64,
    /// The lower end of the confidence interval of the ratio.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
}

/// The kind of a t-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TTestKind {
    /// Student's t-test with pooled variance.
    Pooled,
    /// Welch's t-test.
    Welch,
}

/// A t-test of the difference of the means, A minus B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TTest {
    /// The kind of the test.
    pub kind: TTestKind,
    /// The t statistic.
    pub value: f64,
    /// The degrees of freedom.
    pub df: f64,
    /// The two-sided p-value.
    pub p: f64,
    /// The lower end of the confidence interval of the difference.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
}

/// Performs the tests of the study. `None` when a sample has fewer than two observations. Samples of equal values are
/// tested as by R's `var.test` and `t.test`.
pub fn study(a: &[f64], b: &[f64], level: f64) -> Option<StudyTest> {
    let (a, b) = (SampleSummary::of(a)?, SampleSummary::of(b)?);
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let (df1, df2) = ((a.n - 1) as f64, (b.n - 1) as f64);
    let value = a.variance / b.variance;
    let (below, above) = f_tails(value, df1, df2);
    let tail = (1.0 - level) / 2.0;
    let f = FTest {
        value,
        df1,
        df2,
        p: (2.0 * below.min(above)).clamp(0.0, 1.0),
        low: value / f_upper(tail, df1, df2),
        high: value * f_upper(tail, df2, df1),
    };
    let kind = if f.p < 1.0 - level { TTestKind::Welch } else { TTestKind::Pooled };
    Some(StudyTest { level, f, t: t_test(kind, &a, &b, level) })
}

/// How many rounding errors of the means their standard error must have, as in R's `t.test`, which else says "data are
/// essentially constant".
const LEAST_ERROR: f64 = 10.0;

fn t_test(kind: TTestKind, a: &SampleSummary, b: &SampleSummary, level: f64) -> Option<TTest> {
    let (n_a, n_b) = (a.n as f64, b.n as f64);
    let (squared, df) = match kind {
        TTestKind::Welch => {
            let (a, b) = (a.variance / n_a, b.variance / n_b);
            (a + b, (a + b).powi(2) / (a * a / (n_a - 1.0) + b * b / (n_b - 1.0)))
        }
        TTestKind::Pooled => {
            let df = n_a + n_b - 2.0;
            let variance = ((n_a - 1.0) * a.variance + (n_b - 1.0) * b.variance) / df;
            (variance * (1.0 / n_a + 1.0 / n_b), df)
        }
    };
    let error = squared.sqrt();
    if error < LEAST_ERROR * f64::EPSILON * a.mean.abs().max(b.mean.abs()) {
        return None;
    }
    let value = (a.mean - b.mean) / error;
    let half = t_upper((1.0 - level) / 2.0, df);
    Some(TTest {
        kind,
        value,
        df,
        p: t_two_sided(value, df),
        low: (value - half) * error,
        high: (value + half) * error,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns a sample of exactly this size, mean and variance.
    fn sample(n: usize, mean: f64, variance: f64) -> Vec<f64> {
        let raw: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7).sin()).collect();
        let of = SampleSummary::of(&raw).unwrap();
        raw.iter().map(|v| mean + (v - of.mean) * (variance / of.variance).sqrt()).collect()
    }

    /// Formats a value with this number of significant digits.
    fn printed(digits: usize, value: f64) -> String {
        format!("{value:.*e}", digits - 1)
    }

    /// The expected values are those of the study's appendix, which were computed with R.
    #[test]
    fn both_comparisons_of_the_study_have_the_printed_values() {
        let zfs =
            study(&sample(29, 1_954_108.0 / 29.0, 430_239.5), &sample(29, 187_000.0 / 29.0, 71_895.06), 0.99).unwrap();
        assert_eq!((printed(5, zfs.f.value), zfs.f.df1, zfs.f.df2), (printed(5, 5.9843), 28.0, 28.0));
        assert_eq!(printed(3, zfs.f.p), printed(3, 9.54e-6));
        assert_eq!((printed(7, zfs.f.low), printed(8, zfs.f.high)), (printed(7, 2.197_153), printed(8, 16.299_048)));
        let t = zfs.t.unwrap();
        assert_eq!((t.kind, printed(5, t.value)), (TTestKind::Welch, printed(5, 463.08)));
        assert_eq!(printed(5, t.df), printed(5, 37.104));
        assert!(t.p < 2.2e-16);
        assert_eq!((printed(7, t.low), printed(7, t.high)), (printed(7, 60577.50), printed(7, 61292.02)));

        let hammer = study(&sample(10, 103_095.0, 10_686_403.0), &sample(4, 90163.75, 2_964_387.0), 0.99).unwrap();
        assert_eq!((printed(5, hammer.f.value), hammer.f.df1, hammer.f.df2), (printed(5, 3.6049), 9.0, 3.0));
        assert_eq!(printed(4, hammer.f.p), printed(4, 0.3192));
        assert_eq!(
            (printed(7, hammer.f.low), printed(7, hammer.f.high)),
            (printed(7, 0.082_149_75), printed(7, 31.424_361_05))
        );
        let t = hammer.t.unwrap();
        assert_eq!((t.kind, printed(5, t.value), t.df), (TTestKind::Pooled, printed(5, 7.3868), 12.0));
        assert_eq!(printed(4, t.p), printed(4, 8.423e-6));
        assert_eq!((printed(7, t.low), printed(8, t.high)), (printed(7, 7584.004), printed(8, 18278.496)));
    }

    /// Compares 200 pairs of samples, with a relative tolerance of 1e-8.
    #[test]
    fn results_agree_with_scipy() {
        let text = include_str!("../../tests/scripts/samples.txt");
        let numbers = |text: &str| text.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<f64>>();
        let close = |a: f64, b: f64, line: &str| assert!((a - b).abs() <= b.abs() * 1e-8, "{a} {b}: {line}");
        for line in text.lines().skip(1) {
            let parts: Vec<Vec<f64>> = line.split(';').map(numbers).collect();
            let (a, b) = (SampleSummary::of(&parts[0]).unwrap(), SampleSummary::of(&parts[1]).unwrap());
            let [welch, pooled] = [TTestKind::Welch, TTestKind::Pooled].map(|kind| t_test(kind, &a, &b, 0.99).unwrap());
            let f = study(&parts[0], &parts[1], 0.99).unwrap().f;
            let ours = [welch.value, welch.df, welch.p, pooled.value, pooled.p, f.value, f.p, f.low, f.high];
            ours.into_iter().zip(&parts[2]).for_each(|(ours, theirs)| close(ours, *theirs, line));
        }
        assert_eq!(text.lines().count(), 201);
    }

    /// R's `var.test` gives F = 0 and p = 0, or F = Inf and p = 0, and scipy the figures of Welch's test.
    #[test]
    fn a_side_of_equal_values_has_both_tests() {
        let (equal, varying) = ([100.0; 5], [90.0, 91.5, 89.0, 92.0, 88.5, 90.5]);
        let found = study(&equal, &varying, 0.99).unwrap();
        assert_eq!((found.f.value, found.f.p, found.f.low, found.f.high), (0.0, 0.0, 0.0, 0.0));
        let t = found.t.unwrap();
        assert_eq!((t.kind, t.df), (TTestKind::Welch, 5.0));
        assert!(
            (t.value / 17.441_330_224_498_36 - 1.0).abs() < 1e-9
                && (t.p / 1.135_611_777_974_547_3e-5 - 1.0).abs() < 1e-9,
            "{found:?}"
        );
        let found = study(&varying, &equal, 0.99).unwrap();
        assert!(found.f.value.is_infinite() && found.f.low.is_infinite() && found.f.p == 0.0, "{found:?}");
        assert!(found.t.unwrap().value < 0.0, "{found:?}");
    }

    /// R's `var.test` gives NaN, and `t.test` says "data are essentially constant". That is also so if the values differ
    /// by rounding, but not if they are 0: then all figures of `t.test` are NaN.
    #[test]
    fn sides_that_hardly_vary_have_no_t_test() {
        let found = study(&[1.0, 1.0], &[2.0, 2.0], 0.99).unwrap();
        assert!(found.f.value.is_nan() && found.f.p.is_nan() && found.f.low.is_nan() && found.f.high.is_nan());
        assert_eq!((found.f.df1, found.f.df2, found.t), (1.0, 1.0, None));
        let next = 1.0 + f64::EPSILON;
        let rounded = study(&[1.0, 1.0, next], &[1.0, next, next], 0.99).unwrap();
        assert!(rounded.f.value.is_finite() && rounded.t.is_none(), "{rounded:?}");
        let far = 1.0 + 100.0 * f64::EPSILON;
        assert!(study(&[1.0, 1.0, far], &[1.0, far, far], 0.99).unwrap().t.is_some());
        let zeros = study(&[0.0; 3], &[0.0; 3], 0.99).unwrap().t.unwrap();
        assert!([zeros.value, zeros.p, zeros.low, zeros.high].iter().all(|of| of.is_nan()), "{zeros:?}");
    }

    #[test]
    fn too_small_samples_are_not_tested() {
        assert_eq!(study(&[1.0], &[1.0, 2.0], 0.99), None);
    }
}
