//! Numbers in the reports for people: figures with their units, ratios, and the results of tests.
//!
//! Results of tests have as many digits as R prints, so that they can be compared with published ones.

use crate::analysis::{Direction, Estimate};
use crate::import::Metric;
use crate::util::count::{MAX_PLAIN, MIN_PLAIN, dash, fixed, measured};
use crate::util::duration::latency;

/// Formats a value of a metric, with a unit for times.
pub fn figure(metric: &str, value: f64) -> String {
    let time = metric.parse::<Metric>().ok().and_then(|metric| metric.nanoseconds());
    match time {
        _ if !value.is_finite() => "-".to_owned(),
        Some(unit) if value >= 0.0 => latency(value * unit),
        Some(unit) => format!("-{}", latency(-value * unit)),
        None => measured_signed(value),
    }
}

/// Formats a number that may be negative.
pub(super) fn measured_signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", measured(-value)) } else { measured(value) }
}

/// What stands in place of an interval that is unknown, or says nothing.
pub(super) const NO_INTERVAL: &str = "(no interval)";

/// Formats a ratio with its interval, and the level of that.
pub fn with_level(found: Estimate, level: f64) -> String {
    match found.low.is_nan() {
        true => format!("{} {NO_INTERVAL}", ratio(found)),
        false => format!("{}, {} interval", ratio(found), confidence(level)),
    }
}

/// Formats a ratio with its interval, if it has one.
pub fn ratio(ratio: Estimate) -> String {
    match (ratio.value.is_finite(), ratio.low.is_nan() || ratio.high.is_nan()) {
        (true, false) => format!("{} [{}, {}]", ratio_value(ratio.value), ratio_end(ratio.low), ratio_end(ratio.high)),
        (true, true) => ratio_value(ratio.value),
        (false, _) => "unknown".to_owned(),
    }
}

/// The ratio below which three decimals say too little.
const SMALL_RATIO: f64 = 0.01;

/// Formats a ratio without its interval.
pub(super) fn ratio_value(value: f64) -> String {
    if value > 0.0 && value < SMALL_RATIO { significant(value, 3) } else { fixed(value, 3) }
}

/// Formats an end of the interval of a ratio. That of few runs may have twenty digits.
fn ratio_end(end: f64) -> String {
    match end.abs() {
        great if great >= 1000.0 => significant(end, 2),
        small if small > 0.0 && small < SMALL_RATIO => significant(end, 2),
        _ => format!("{end:.3}"),
    }
}

/// Formats a p-value with four significant digits. Very small values are `< 2.2e-16`, as in R.
pub fn probability(p: f64) -> String {
    match p {
        p if p.is_nan() => "-".to_owned(),
        p if p < 2.2e-16 => "< 2.2e-16".to_owned(),
        p => significant(p, 4),
    }
}

/// Formats the factor between two figures: with two decimals, and with three significant digits below 0.1.
pub(super) fn factor(value: f64) -> String {
    if (0.0995..999.995).contains(&value) { fixed(value, 2) } else { measured(value) }
}

/// Formats a statistic of a test, or its degrees of freedom, with five significant digits.
pub(super) fn statistic(value: f64) -> String {
    significant(value, 5)
}

/// Formats a mean or a variance with seven significant digits, but with all of those before the point.
pub(super) fn moment(value: f64) -> String {
    if (1e7..MAX_PLAIN).contains(&value.abs()) { format!("{value:.0}") } else { significant(value, 7) }
}

/// Formats a number with `digits` significant digits and without trailing zeros, as R prints a single number: with an
/// exponent if that is shorter.
pub(super) fn significant(value: f64, digits: usize) -> String {
    let Some((mantissa, exponent, decimals)) = decimal(value, digits) else { return "-".to_owned() };
    let scientific = format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
    // The parsed text is the value rounded to so many digits.
    let rounded = scientific.parse().unwrap_or(value);
    let fixed = format!("{rounded:.decimals$}");
    if fixed.len() <= scientific.len() { fixed } else { scientific }
}

/// The maximum number of decimals of an interval. More are printed with an exponent.
const MAX_DECIMALS: usize = 15;

/// Formats both ends of an interval with the same number of decimals, which gives each at least seven significant
/// digits, as R prints an interval.
pub(super) fn interval(low: f64, high: f64) -> String {
    let decimals = |end: f64| decimal(end, 7).map_or(0, |(_, _, decimals)| decimals);
    let common = decimals(low).max(decimals(high));
    let of = |end: f64| match end.abs() < MAX_PLAIN && common <= MAX_DECIMALS {
        true => format!("{end:.common$}"),
        false => significant(end, 7),
    };
    format!("[{}, {}]", of(low), of(high))
}

/// Rounds a number to `digits` significant digits. Returns its mantissa without trailing zeros, its decimal exponent,
/// and the number of decimals that it has without an exponent. Returns `None` when it is not finite.
fn decimal(value: f64, digits: usize) -> Option<(String, i32, usize)> {
    if !value.is_finite() {
        return None;
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e')?;
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let exponent: i32 = exponent.parse().ok()?;
    let after_point = mantissa.split_once('.').map_or(0, |(_, digits)| digits.len());
    let decimals = usize::try_from(i64::try_from(after_point).ok()? - i64::from(exponent)).unwrap_or(0);
    Some((mantissa.to_owned(), exponent, decimals))
}

/// Formats a confidence level: `95 %`, `98.5 %`.
pub fn confidence(level: f64) -> String {
    format!("{} %", significant(100.0 * level, 4))
}

/// The percentage below which there is no difference.
const NOTHING: f64 = 1e-9;

/// Formats a fraction as a percentage with one decimal; below 1 % with up to two significant digits.
pub fn percent(share: f64) -> String {
    let percentage = share * 100.0;
    if !percentage.is_finite() {
        return dash();
    }
    // What is left of equal numbers after calculations with logarithms.
    if percentage.abs() < NOTHING || percentage.abs() >= 1.0 {
        return format!("{} %", fixed(if percentage.abs() < NOTHING { 0.0 } else { percentage }, 1));
    }
    if percentage.abs() < MIN_PLAIN {
        return format!("{percentage:.2e} %");
    }
    // The first significant digit of 0.03 is the second decimal.
    let decimals = (-percentage.abs().log10().floor()) as usize + 1;
    let text = format!("{percentage:.decimals$}");
    let short = text.trim_end_matches('0');
    format!("{short}{} %", if short.ends_with('.') { "0" } else { "" })
}

/// Formats the half-width of an interval relative to its value, in per cent; `-` if there is no interval, as for a
/// single run.
pub(super) fn half_width(share: f64) -> String {
    if share.is_finite() { percent(share) } else { dash() }
}

/// The interval of a metric; `-` if there is none, as for a single run.
pub fn interval_text(metric: &str, estimate: Estimate) -> String {
    match estimate.ends() {
        Some((low, high)) => format!("{} to {}", figure(metric, low), figure(metric, high)),
        None => dash(),
    }
}

/// Returns the name of a metric, with its direction if less is better.
pub fn with_direction(metric: &str) -> String {
    match metric.parse::<Metric>().map(|metric| metric.direction()) {
        Ok(Direction::LowerIsBetter) => format!("{metric} (lower is better)"),
        _ => metric.to_owned(),
    }
}

/// The unit of a metric in a title, behind its name; empty if the name or each value says it.
pub(super) fn in_unit(metric: &str) -> String {
    match metric.parse::<Metric>().map_or("", |metric| metric.unit()) {
        "" | "ops/s" | "per second" | "per minute" => String::new(),
        unit => format!(" in {unit}"),
    }
}

/// Formats a value of a metric with its unit.
pub(super) fn with_unit(metric: &str, value: f64) -> String {
    let unit = metric.parse::<Metric>().map_or("", |metric| metric.unit());
    let figure = figure(metric, value);
    if unit.is_empty() || !value.is_finite() { figure } else { format!("{figure} {unit}") }
}

/// Formats a number with three decimals if it is below 1.
pub(super) fn small(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 { format!("{value:.3}") } else { measured_signed(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_r_prints() {
        for (value, digits, shown) in [
            (5.984_270_685, 5, "5.9843"),
            (463.077_9, 5, "463.08"),
            (463_078.3, 5, "463080"),
            (37.104_01, 5, "37.104"),
            (28.0, 5, "28"),
            (9.0, 5, "9"),
            (0.319_233_8, 4, "0.3192"),
            (8.423_456e-6, 4, "8.423e-06"),
            (9.540_04e-6, 4, "9.54e-06"),
            (0.000_123_45, 4, "0.0001234"),
            (0.05, 4, "0.05"),
            (1e-4, 4, "1e-04"),
            (1.0, 4, "1"),
            (0.0, 4, "0"),
            (-2.5, 5, "-2.5"),
            (67_383.034_48, 7, "67383.03"),
            (6_448.275_86, 7, "6448.276"),
            (103_095.0, 7, "103095"),
            (f64::INFINITY, 5, "-"),
        ] {
            assert_eq!(significant(value, digits), shown, "{value}");
        }
        assert_eq!([10_686_403.0, 71_895.06, 1e300].map(moment), ["10686403", "71895.06", "1e+300"]);
        assert_eq!((probability(1e-17).as_str(), probability(f64::NAN).as_str()), ("< 2.2e-16", "-"));
    }

    #[test]
    fn times_have_their_unit() {
        let shown = ["latency.mean", "r.latency.p99", "seconds", "after-fsck.seconds", "ops"];
        let shown = shown.map(|metric| figure(metric, 12.5));
        assert_eq!(shown, ["12 ns", "12 ns", "12.5 s", "12.5 s", "12.5"]);
        assert_eq!((figure("seconds", 0.0125), figure("seconds", -0.5)), ("12.5 ms".into(), "-500 ms".into()));
    }

    #[test]
    fn the_interval_of_few_runs_has_few_digits() {
        let shown = |low, high| ratio(Estimate { value: 1.2, low, high });
        assert_eq!(shown(0.95, 1.5), "1.200 [0.950, 1.500]");
        assert_eq!(shown(0.0, 1.689_436e21), "1.200 [0.000, 1.7e+21]");
        assert_eq!((shown(f64::NAN, f64::NAN), shown(0.5, 4321.0)), ("1.200".into(), "1.200 [0.500, 4300]".into()));
        let small = ratio(Estimate { value: 0.000_612_3, low: 0.000_4, high: 0.012 });
        assert_eq!(small, "0.000612 [4e-04, 0.012]");
    }

    #[test]
    fn the_ends_of_an_interval_have_as_many_decimals_as_the_smaller_one_needs() {
        for (low, high, shown) in [
            (2.197_152_62, 16.299_047_79, "[2.197153, 16.299048]"),
            (60_577.502_1, 61_292.016_3, "[60577.50, 61292.02]"),
            (0.082_149_753_5, 31.424_360_496, "[0.08214975, 31.42436050]"),
            (7_584.003_9, 18_278.496_1, "[7584.004, 18278.496]"),
            (-1.5, 2.25, "[-1.50, 2.25]"),
            (0.5, f64::INFINITY, "[0.5, -]"),
            (1.25e-20, 1.0, "[1.25e-20, 1]"),
            (1e300, 1.5e300, "[1e+300, 1.5e+300]"),
        ] {
            assert_eq!(interval(low, high), shown);
        }
        assert_eq!([1e300, 0.125, 1.5e-300].map(percent), ["1.00e302 %", "12.5 %", "0.0 %"]);
        assert_eq!(figure("latency.mean", 1e300), "1.00e291 s");
        assert_eq!([0.95, 0.99, 0.985, 0.975, 0.999].map(confidence), ["95 %", "99 %", "98.5 %", "97.5 %", "99.9 %"]);
    }
}
