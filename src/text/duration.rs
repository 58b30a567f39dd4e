//! Parses and formats durations (`600`, `10m`, `1h30m`, `250ms`), and formats latencies (`45.6 µs`).

use super::count::{fixed, measured};
use std::fmt;
use std::time::Duration;

/// The accepted units, in ascending order, each with its length in nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The reason why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// The text is empty.
    Empty,
    /// A number is missing or malformed. Holds the whole text.
    Number(String),
    /// The text after a number is not a unit. Holds that text, which is not empty.
    Unit(String),
    /// One of several numbers has no unit. Holds the number.
    NoUnit(String),
    /// The duration exceeds 2⁶⁴ − 1 ns (584 years). Holds the whole text.
    TooLong(String),
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a time is missing"),
            Self::Number(text) => write!(f, "`{text}` is not a time"),
            Self::Unit(unit) => write!(f, "`{unit}` is not a unit of time: use ns, us, ms, s, m, h or d"),
            Self::NoUnit(number) => write!(f, "`{number}` has no unit of time: use ns, us, ms, s, m, h or d"),
            Self::TooLong(text) => write!(f, "`{text}` is longer than the maximum of 584 years"),
        }
    }
}

impl std::error::Error for DurationError {}

/// Parses a plain number of seconds (`600`, `0.5`), or numbers with units, which are added up (`10m`, `1h30m`, `250ms`,
/// `1.5h`). Units are accepted in any case.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let whole = text.trim();
    if whole.is_empty() {
        return Err(DurationError::Empty);
    }
    let mut rest = whole;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let scale = match unit.trim() {
            // A number without a unit means seconds, but only if it is the whole text: the `30` of `1h30` could mean
            // minutes or seconds.
            "" if number.len() == whole.len() => 1_000_000_000,
            "" => return Err(DurationError::NoUnit(number.to_owned())),
            unit => {
                let found = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name));
                found.ok_or_else(|| DurationError::Unit(unit.to_owned()))?.1
            }
        };
        let too_long = || DurationError::TooLong(whole.to_owned());
        let part = if let Ok(n) = number.parse::<u64>() {
            n.checked_mul(scale).ok_or_else(too_long)?
        } else {
            let x: f64 = number.parse().map_err(|_| DurationError::Number(whole.to_owned()))?;
            let ns = x * scale as f64;
            if ns >= u64::MAX as f64 {
                return Err(too_long());
            }
            ns.round() as u64
        };
        total = total.checked_add(part).ok_or_else(too_long)?;
        rest = tail.trim_start();
    }
    Ok(Duration::from_nanos(total))
}

/// Formats a duration as the shortest text that [`parse`] reads back exactly: `1h30m`, `10m`, `250ms`, `1s500ms`.
pub fn format(span: Duration) -> String {
    let mut ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    if ns == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (name, scale) in UNITS.iter().rev().filter(|(name, _)| *name != "µs") {
        let n = ns / scale;
        if n > 0 {
            out.extend([n.to_string().as_str(), name]);
            ns %= scale;
        }
    }
    out
}

/// Formats a number of seconds for progress lines and headings: `4.0 s`, `600 s`, `1h30m00s`. The text is rounded, and
/// [`parse`] does not read it. Returns `-` when the number is not finite.
pub fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "-".to_owned(),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 999.5 => format!("{s:.0} s"),
        s => {
            let whole = s.round() as u64;
            let (h, m, s) = (whole / 3600, whole / 60 % 60, whole % 60);
            if h > 0 { format!("{h}h{m:02}m{s:02}s") } else { format!("{m}m{s:02}s") }
        }
    }
}

/// Formats the length of something that may be short: `12.3 ms`, `4.02 s`, `1h30m00s`.
pub fn span(s: f64) -> String {
    if s < 99.95 { latency(s * 1e9) } else { seconds(s) }
}

/// Formats a latency, given in nanoseconds, with three significant digits and a fitting unit: `831 ns`, `1.20 µs`,
/// `45.6 ms`, `12.3 s`. Returns `-` when the latency is negative or not finite.
pub fn latency(ns: f64) -> String {
    const NAMES: [&str; 4] = ["ns", "µs", "ms", "s"];
    if !ns.is_finite() || ns < 0.0 {
        return "-".to_owned();
    }
    let (mut value, mut unit) = (ns, 0);
    // 999.5 would be printed as 1000.
    while value >= 999.5 && unit + 1 < NAMES.len() {
        value /= 1000.0;
        unit += 1;
    }
    // Rounded to whole nanoseconds it would be none.
    if unit == 0 && value > 0.0 && value < 0.5 {
        return format!("{} ns", measured(value));
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{} {}", fixed(value, decimals), NAMES[unit])
}

#[cfg(test)]
mod tests {
    use super::{DurationError, format, latency, parse, seconds, span};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn every_notation_is_parsed() {
        for (text, ms) in [
            ("600", 600_000),
            ("0.5", 500),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("250ms", 250),
            ("1.5h", 5_400_000),
            ("2D", 172_800_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("3us"), Ok(Duration::from_micros(3)));
        assert_eq!(parse("3µs"), Ok(Duration::from_micros(3)));
    }

    #[test]
    fn errors_give_the_reason() {
        assert_eq!(parse(" "), Err(DurationError::Empty));
        assert_eq!(parse("m"), Err(DurationError::Number("m".into())));
        assert_eq!(parse("10q"), Err(DurationError::Unit("q".into())));
        assert_eq!(parse("1h30"), Err(DurationError::NoUnit("30".into())));
        assert_eq!(parse("5m0"), Err(DurationError::NoUnit("0".into())));
        assert_eq!(parse("-5"), Err(DurationError::Unit("-".into())));
        assert_eq!(parse("9999999d"), Err(DurationError::TooLong("9999999d".into())));
    }

    #[test]
    fn latencies_have_three_digits_and_a_fitting_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.3, "0.30 ns"),
            (831.0, "831 ns"),
            (999.6, "1.00 µs"),
            (1_204.0, "1.20 µs"),
            (45_600.0, "45.6 µs"),
            (211_900.0, "212 µs"),
            (9_999_000.0, "10.0 ms"),
            (12_340_000_000.0, "12.3 s"),
            (4e12, "4000 s"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(latency(ns), text);
        }
    }

    #[test]
    fn spans_have_a_unit_that_shows_something() {
        for (s, text) in [(0.012_34, "12.3 ms"), (4.02, "4.02 s"), (99.94, "99.9 s"), (600.2, "600 s")] {
            assert_eq!(span(s), text);
        }
    }

    #[test]
    fn long_times_are_split_into_hours_minutes_and_seconds() {
        for (s, text) in [(4.02, "4.0 s"), (600.2, "600 s"), (1200.0, "20m00s"), (5400.4, "1h30m00s")] {
            assert_eq!(seconds(s), text);
        }
    }

    proptest! {
        #[test]
        fn formatted_durations_parse_to_the_same_value(ns in 0_u64..=u64::MAX) {
            let span = Duration::from_nanos(ns);
            prop_assert_eq!(parse(&format(span)), Ok(span));
        }
    }
}
