//! Tail probabilities and quantiles of Student's t, Fisher's F, the normal and the binomial distribution, accurate in
//! the tails.
//!
//! The distribution functions use the regularised incomplete beta function and the error function of `statrs`.
//! Quantiles are found by iteration on the distribution functions, because some inverse functions of the library have
//! only five correct digits.

use statrs::function::beta::beta_reg;
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::ln_gamma;

/// The maximum number of iterations. A bisection ends earlier, when no `f64` is left between its limits.
const MAX_ITERATIONS: usize = 200;

/// Returns the two-sided p-value of `t`: the probability of a greater |t|. `df` is the number of degrees of freedom,
/// any positive number. NaN if `t` is NaN or `df` is not such a number, as from observations whose squares overflow.
pub(super) fn t_two_sided(t: f64, df: f64) -> f64 {
    if t.is_nan() || !(df.is_finite() && df > 0.0) {
        f64::NAN
    } else if t.is_infinite() {
        0.0
    } else {
        beta_reg(df / 2.0, 0.5, (df / (df + t * t)).clamp(0.0, 1.0))
    }
}

/// Returns the upper `p` quantile of Student's t: the value that is exceeded with probability `p` (above 0, at most
/// 0.5).
///
/// Uses Newton's method, starting at 0. The tail probability is convex there, so no step passes the root. Most
/// quantiles take eight steps, where bisection takes sixty. This matters because a series of 60 repeats computes one
/// quantile for each run and metric.
pub(super) fn t_upper(p: f64, df: f64) -> f64 {
    let half = f64::midpoint(df, 1.0);
    let log_scale = ln_gamma(half) - ln_gamma(df / 2.0) - (df * std::f64::consts::PI).ln() / 2.0;
    let density = |t: f64| (log_scale - half * (t * t / df).ln_1p()).exp();
    let mut t = 0.0;
    for _ in 0..MAX_ITERATIONS {
        let step = (t_two_sided(t, df) / 2.0 - p) / density(t);
        if !step.is_finite() || step.abs() <= t * 1e-15 {
            break;
        }
        t += step;
    }
    t
}

/// Returns the probabilities of an F that is at most `f`, and of one that is at least `f`, with `df1` and `df2` degrees
/// of freedom. NaN if `f` is NaN.
pub(super) fn f_tails(f: f64, df1: f64, df2: f64) -> (f64, f64) {
    if f.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    if f.is_infinite() {
        return (1.0, 0.0);
    }
    let share = df1 * f / (df1 * f + df2);
    let other = df2 / (df1 * f + df2);
    (beta_reg(df1 / 2.0, df2 / 2.0, share.clamp(0.0, 1.0)), beta_reg(df2 / 2.0, df1 / 2.0, other.clamp(0.0, 1.0)))
}

/// Returns the upper `p` quantile of F: the value that is exceeded with probability `p`.
pub(super) fn f_upper(p: f64, df1: f64, df2: f64) -> f64 {
    invert_falling(|f| f_tails(f, df1, df2).1, p)
}

/// Returns the distribution function of the standard normal distribution at `z`.
pub(super) fn normal(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// Returns the quantile of the standard normal distribution at `p`.
pub(super) fn normal_quantile(p: f64) -> f64 {
    // The median is 0, not −0.
    0.0 - std::f64::consts::SQRT_2 * erfc_inv(2.0 * p)
}

/// Returns the probability of at most `k` successes in `n` trials with success probability 0.5.
pub(super) fn binomial(k: u64, n: u64) -> f64 {
    if k >= n { 1.0 } else { beta_reg((n - k) as f64, k as f64 + 1.0, 0.5) }
}

/// Returns the logarithm of the number of ways to choose `k` of `n` things.
pub(super) fn ln_choose(n: u64, k: u64) -> f64 {
    ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0)
}

/// Returns the argument at which a function that falls from above `level` at 0 reaches `level`.
fn invert_falling(f: impl Fn(f64) -> f64, level: f64) -> f64 {
    let mut high = 1.0;
    while f(high) > level && high < 1e300 {
        high *= 2.0;
    }
    bisect(0.0, high, |x| f(x) > level)
}

/// Returns the boundary between `low` and `high` up to which `below` is true, found by bisection.
pub(super) fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..MAX_ITERATIONS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp)]
    use super::*;

    #[test]
    fn what_is_no_number_has_no_probability() {
        for p in [
            t_two_sided(f64::NAN, 3.0),
            t_two_sided(1.0, f64::NAN),
            t_two_sided(1.0, 0.0),
            f_tails(f64::NAN, 2.0, 2.0).0,
        ] {
            assert!(p.is_nan());
        }
        assert_eq!(t_two_sided(f64::INFINITY, 3.0), 0.0);
    }

    /// Values from printed tables of the distributions; scipy 1.16 prints the same digits.
    #[test]
    fn quantiles_and_tails_equal_the_printed_tables() {
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        close(t_upper(0.025, 9.0), 2.262_157_162_740_992);
        close(t_upper(0.005, 37.104), 2.714_998_058_469_116);
        close(t_upper(0.025, 1.0), 12.706_204_736_174_7);
        close(t_two_sided(7.3868, 12.0), 8.423_456_032_658_64e-6);
        close(f_upper(0.005, 28.0, 28.0), 2.723_648_151_929_734);
        close(normal(-8.0), 6.220_960_574_271_785e-16);
        close(normal_quantile(0.975), 1.959_963_984_540_054);
        close(normal_quantile(1e-4), -3.719_016_485_455_708_4);
        close(binomial(1, 10), 11.0 / 1024.0);
        close(binomial(0, 5), 1.0 / 32.0);
        close(binomial(5, 5), 1.0);
    }
}
