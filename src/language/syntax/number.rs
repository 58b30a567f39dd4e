//! Parses numbers with units: `8k`, `1.5g`, `60`. Deliberately absent: what a number is used for.

use super::ast::Number;
use super::lexer::is_blank;
use crate::spec::words::statement_word;

/// An error in a number. Positions are bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NumberFault {
    /// The digits are followed by text that is not a unit, which starts here.
    Unit(usize),
    /// The number is 2⁶⁴ or more.
    TooLarge,
    /// The number is from 2⁶³ to 2⁶⁴ - 1, which Filebench accepts.
    Unsigned,
    /// A decimal point without digits after it, at this position.
    Point(usize),
}

/// Parses digits, decimal point and unit; `text` has no sign. A number with a decimal point and without a unit is a
/// [`Number::Float`], even if it is whole: `7.0 / 2` is 3.5. A size is a whole number if it can be one. On an error the
/// number is a guess, so that later checks do not report it again.
pub(super) fn read(text: &str) -> (Number, Option<NumberFault>) {
    let whole_end = digits(text, 0);
    let mut end = whole_end;
    let mut fraction = "";
    if text[end..].starts_with('.') {
        let fraction_end = digits(text, end + 1);
        if fraction_end == end + 1 {
            return (integer(&text[..whole_end], 1).unwrap_or(Number::Int(i64::MAX)), Some(NumberFault::Point(end)));
        }
        fraction = text[end + 1..fraction_end].trim_end_matches('0');
        end = fraction_end;
    }
    let unit = match text[end..].chars().next() {
        Some('k' | 'K') => 1 << 10,
        Some('m' | 'M') => 1 << 20,
        Some('g' | 'G') => 1 << 30,
        Some('t' | 'T') => 1 << 40,
        _ => 1,
    };
    let rest = if unit == 1 { end } else { end + 1 };
    // The unit of `10mb` is `mb`, not `b`.
    let fault = (rest < text.len()).then_some(NumberFault::Unit(end));
    let number = if end == whole_end || (fraction.is_empty() && unit > 1) {
        integer(&text[..whole_end], unit)
    } else {
        fractional(&text[..whole_end], fraction, unit)
    };
    match number {
        Some(number) => (number, fault),
        None => {
            let large = if fits_unsigned(&text[..whole_end], fraction, unit) {
                NumberFault::Unsigned
            } else {
                NumberFault::TooLarge
            };
            (Number::Int(i64::MAX), Some(fault.unwrap_or(large)))
        }
    }
}

/// Whether a number is at most 2⁶⁴ - 1.
fn fits_unsigned(whole: &str, fraction: &str, unit: i64) -> bool {
    let high = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(unit.unsigned_abs()));
    high.is_some_and(|high| fraction.bytes().all(|digit| digit == b'0') || high < u64::MAX)
}

/// True if a text begins with the letter of a unit.
pub(super) fn is_unit(text: &str) -> bool {
    text.starts_with(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T'])
}

fn digits(text: &str, from: usize) -> usize {
    text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |at| from + at)
}

fn integer(digits: &str, unit: i64) -> Option<Number> {
    digits.parse::<i64>().ok()?.checked_mul(unit).map(Number::Int)
}

/// Whole sizes are exact: the number is computed as an integer over a power of ten as long as that fits.
fn fractional(whole: &str, fraction: &str, unit: i64) -> Option<Number> {
    let high = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    if unit == 1 {
        return format!("{whole}.{fraction}").parse().ok().map(Number::Float);
    }
    if fraction.len() <= 18 {
        let scale = 10_i128.pow(fraction.len() as u32);
        let low = fraction.parse::<i128>().ok()? * i128::from(unit);
        if low % scale == 0 {
            return high.checked_add((low / scale) as i64).map(Number::Int);
        }
    }
    let value: f64 = format!("{whole}.{fraction}").parse().ok()?;
    let value = value * unit as f64;
    // A number so close to a whole one that an `f64` can't represent the difference counts as whole.
    Some(if value.fract() == 0.0 { Number::Int(value as i64) } else { Number::Float(value) })
}

/// The length of the number in a word that starts with a digit, where the next statement follows without a blank, as
/// generators write it: `20` of `20set $n=2`, `4k` of `4kset`. `behind`: the text after the word. Whole numbers only.
pub(super) fn before_statement(part: &str, behind: &str) -> usize {
    let goes_on = behind.starts_with(is_blank)
        && behind.trim_start_matches(is_blank).starts_with(|c: char| c == '$' || c == '"' || c.is_ascii_alphanumeric());
    let letters = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let unit = usize::from(part[letters..].starts_with(['k', 'm', 'g', 't', 'K', 'M', 'G', 'T']));
    let starts = |at: &usize| goes_on && part.get(*at..).is_some_and(|rest| statement_word(rest).is_some());
    [letters + unit, letters].into_iter().find(starts).unwrap_or(part.len())
}

#[cfg(test)]
mod tests {
    use super::{NumberFault, read};
    use crate::syntax::ast::Number::{Float, Int};

    #[test]
    fn units_are_powers_of_1024_in_both_cases() {
        for (text, number) in [
            ("0", Int(0)),
            ("007", Int(7)),
            ("8k", Int(8192)),
            ("8K", Int(8192)),
            ("3m", Int(3 << 20)),
            ("5G", Int(5 << 30)),
            ("2t", Int(2 << 40)),
            ("1.5k", Int(1536)),
            ("1.0", Float(1.0)),
            ("7.00", Float(7.0)),
            ("1.0k", Int(1024)),
            ("0.25", Float(0.25)),
            ("0.3k", Float(307.2)),
            ("9223372036854775807", Int(i64::MAX)),
            ("15.99999999999999999999999", Float(16.0)),
            ("15.99999999999999999999999k", Int(16 << 10)),
        ] {
            assert_eq!(read(text), (number, None), "{text}");
        }
    }

    #[test]
    fn faults_are_told_apart() {
        assert_eq!(read("10q"), (Int(10), Some(NumberFault::Unit(2))));
        assert_eq!(read("10mb"), (Int(10 << 20), Some(NumberFault::Unit(2))));
        assert_eq!(read("0x10"), (Int(0), Some(NumberFault::Unit(1))));
        assert_eq!(read("1."), (Int(1), Some(NumberFault::Point(1))));
        assert_eq!(read("99999999t"), (Int(i64::MAX), Some(NumberFault::TooLarge)));
        assert_eq!(read("16777216t"), (Int(i64::MAX), Some(NumberFault::TooLarge)));
        assert_eq!(read("18446744073709551616"), (Int(i64::MAX), Some(NumberFault::TooLarge)));
        assert_eq!(read("99999999.5t"), (Int(i64::MAX), Some(NumberFault::TooLarge)));
    }

    #[test]
    fn numbers_from_2_to_the_63_are_the_largest() {
        for text in ["9223372036854775808", "18446744073709551615", "8388608t", "16777215.5t", "9223372036854775808.0"]
        {
            assert_eq!(read(text), (Int(i64::MAX), Some(NumberFault::Unsigned)), "{text}");
        }
    }
}
