//! Amounts and changes of metrics in the words of a sentence: `47.9 % more operations per second`.

use super::numbers::{confidence, factor, figure, percent, with_unit};
use crate::analysis::Estimate;
use crate::import::Metric;
use crate::report::metrics::MetricWords;

/// The ratio from which on a change is told as a multiple.
const MULTIPLE: f64 = 2.0;

/// The ratio below which it is one too: it would be 100.0 % less.
const LEAST: f64 = 0.001;

fn is_told_as_multiple(ratio: f64) -> bool {
    ratio >= MULTIPLE || (0.0..LEAST).contains(&ratio)
}

/// What a metric does to what, with the name of its flowop or command; without a verb it is higher or lower.
struct MetricPhrase {
    verb: Option<&'static str>,
    noun: String,
}

fn words(metric: &str) -> MetricPhrase {
    let known = metric.parse::<Metric>().ok().and_then(|known| Some((known.words()?, known)));
    let Some((words, known)) = known else { return MetricPhrase { verb: None, noun: format!("`{metric}`") } };
    let of = match (known.command(), known.flowop()) {
        (Some(command), _) => format!(" of the command `{command}`"),
        (None, Some(flowop)) => format!(" of `{flowop}`"),
        (None, None) if known.is_of_transactions() => " of the transactions".to_owned(),
        (None, None) => String::new(),
    };
    match words {
        MetricWords::Rate(verb, noun) => MetricPhrase { verb: Some(verb), noun: noun.replace("{of}", &of) },
        // A command is no run.
        MetricWords::Level(noun) if !of.is_empty() => {
            MetricPhrase { verb: None, noun: noun.strip_suffix(" of a run").unwrap_or(noun).to_owned() + &of }
        }
        MetricWords::Level(noun) => MetricPhrase { verb: None, noun: noun.to_owned() },
    }
}

/// What is measured, with its article: `the mean latency`, `the operations per second`.
pub(super) fn subject(metric: &str) -> String {
    format!("the {}", words(metric).noun)
}

/// A value in words: `35,804 operations per second`, `a mean latency of 1.20 ms`.
pub(super) fn amount(metric: &str, value: f64) -> String {
    match words(metric) {
        MetricPhrase { verb: Some(_), noun } => format!("{} {noun}", figure(metric, value)),
        MetricPhrase { verb: None, noun } => format!("a {noun} of {}", with_unit(metric, value)),
    }
}

/// What B does compared with A, with its sides: `B does 3.1 % fewer operations per second than A`.
pub(super) fn change(metric: &str, ratio: f64, [a, b]: [&str; 2]) -> String {
    let (is_multiple, times) = (is_told_as_multiple(ratio), times(ratio));
    let share = percent((ratio - 1.0).abs());
    match words(metric) {
        MetricPhrase { verb: Some(verb), noun } if is_multiple => format!("{b} {verb} {times} as many {noun} as {a}"),
        MetricPhrase { verb: Some(verb), noun } => {
            let more = if ratio < 1.0 { "fewer" } else { "more" };
            format!("{b} {verb} {share} {more} {noun} than {a}")
        }
        MetricPhrase { verb: None, noun } if is_multiple => {
            format!("the {noun} is {times} as high with {b} as with {a}")
        }
        MetricPhrase { verb: None, noun } => {
            let more = if ratio < 1.0 { "lower" } else { "higher" };
            format!("the {noun} is {share} {more} with {b} than with {a}")
        }
    }
}

/// That B does as much as A.
pub(super) fn sameness(metric: &str, [a, b]: [&str; 2]) -> String {
    match words(metric) {
        MetricPhrase { verb: Some(verb), noun } => format!("{b} {verb} as many {noun} as {a}"),
        MetricPhrase { verb: None, noun } => format!("the {noun} is the same with {b} as with {a}"),
    }
}

/// The ends of the interval of a ratio, in the form of [`change`]: `1.2 % fewer to 3.4 % more`.
pub(super) fn range(metric: &str, found: Estimate) -> String {
    let Estimate { value, low, high } = found;
    if is_told_as_multiple(value) {
        return format!("{} to {}", times(low), times(high)).replacen(" times to", " to", 1);
    }
    let [less, more] = directions(metric);
    let word = |end: f64| if end < 1.0 { less } else { more };
    let share = |end: f64| if end > 10.0 { times(end) } else { percent((end - 1.0).abs()) };
    match word(low) == word(high) && high <= 10.0 {
        // The smaller change is first.
        true if high < 1.0 => format!("{} to {} {less}", share(high), share(low)),
        true => format!("{} to {} {more}", share(low), share(high)),
        false if high > 10.0 => format!("{} {} to {} as much", share(low), word(low), times(high)),
        false => format!("{} to {}", amount_of_change(metric, low), amount_of_change(metric, high)),
    }
}

/// How much less or more there is: `0.2 % fewer`.
pub(super) fn amount_of_change(metric: &str, ratio: f64) -> String {
    let [less, more] = directions(metric);
    format!("{} {}", percent((ratio - 1.0).abs()), if ratio < 1.0 { less } else { more })
}

/// The words for less and more of a metric.
fn directions(metric: &str) -> [&'static str; 2] {
    match words(metric) {
        MetricPhrase { verb: Some(_), .. } => ["fewer", "more"],
        MetricPhrase { verb: None, .. } => ["lower", "higher"],
    }
}

/// The interval in brackets, with its level.
pub(super) fn interval(metric: &str, found: Estimate, level: f64) -> String {
    match found.low.is_nan() || found.high.is_nan() {
        true => "no interval".to_owned(),
        false => format!("{} interval {}", confidence(level), range(metric, found)),
    }
}

/// What ended runs early, after their number; empty if nothing did.
pub(super) fn ended(by: &str) -> String {
    if by.is_empty() { String::new() } else { format!(", ended by {by}") }
}

fn times(ratio: f64) -> String {
    format!("{} times", if ratio < 1000.0 { factor(ratio) } else { format!("{ratio:.1e}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_the_words_of_its_metric() {
        for (metric, ratio, says) in [
            ("ops", 1.5, "B does 50.0 % more operations per second than A"),
            ("r.ops", 0.8, "B does 20.0 % fewer operations of `r` per second than A"),
            ("mib", 2.5, "B moves 2.50 times as many MiB per second as A"),
            ("mib", 0.00021, "B moves 0.000210 times as many MiB per second as A"),
            ("kib", 1.05, "B moves 5.0 % more KiB per second than A"),
            ("cpu.percent", 1.05, "the processor use is 5.0 % higher with B than with A"),
            ("latency.p99", 2.0, "the p99 latency is 2.00 times as high with B as with A"),
            ("r.response.mean", 0.5, "the mean response time of `r` is 50.0 % lower with B than with A"),
            ("latency.p50", 1.1, "the median latency is 10.0 % higher with B than with A"),
            ("after.seconds", 1.1, "the time of the command `after` is 10.0 % higher with B than with A"),
            ("seconds", 0.9, "the time of a run is 10.0 % lower with B than with A"),
            ("value", 0.9, "the value is 10.0 % lower with B than with A"),
        ] {
            assert_eq!(change(metric, ratio, ["A", "B"]), says);
        }
        assert_eq!(amount("ops", 1234.0), "1,234 operations per second");
        assert_eq!(amount("latency.mean", 1.2e6), "a mean latency of 1.20 ms");
    }

    #[test]
    fn an_interval_has_the_form_of_its_change() {
        let of = |metric: &str, low, value, high| range(metric, Estimate { value, low, high });
        assert_eq!(of("ops", 0.9, 1.0, 1.1), "10.0 % fewer to 10.0 % more");
        assert_eq!(of("ops", 0.8, 0.85, 0.9), "10.0 % to 20.0 % fewer");
        assert_eq!(of("latency.mean", 1.1, 1.15, 1.2), "10.0 % to 20.0 % higher");
        assert_eq!(of("ops", 2.0, 2.5, 3.0), "2.00 to 3.00 times");
        assert_eq!(of("ops", 1e-5, 1e-4, 2e-4), "0.0000100 to 0.000200 times");
        assert_eq!(of("ops", 0.5, 1.5, 50.0), "50.0 % fewer to 50.00 times as much");
        let unknown = Estimate { value: 1.0, low: f64::NAN, high: f64::NAN };
        assert_eq!(interval("ops", unknown, 0.95), "no interval");
    }
}
