//! Parses and formats sizes in bytes: `4k`, `1.5g`, `2.9 GiB`. All units are powers of 1024.
//!
//! This is the notation of the command line. Sizes in scripts are parsed in `syntax`.

use super::count::grouped;
use std::fmt;

/// The number of bytes of a MiB.
pub const MIB: f64 = 1_048_576.0;

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Formats a size with its unit, and with one decimal from 1 KiB on: `512 B`, `16.0 KiB`, `2.9 GiB`.
pub fn format(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Formats a size with all of its digits: `700 B`, `4 KiB`, `4,120 B`. From 1 MiB on, one that is no multiple of a KiB is
/// rounded.
pub fn exact(bytes: u64) -> String {
    let mut unit = 0;
    while unit + 1 < UNITS.len() && bytes > 0 && bytes.is_multiple_of(1 << ((unit + 1) * 10)) {
        unit += 1;
    }
    let n = bytes >> (unit * 10);
    if n < 1 << 20 { format!("{} {}", grouped(n), UNITS[unit]) } else { format(bytes) }
}

/// Formats a size as scripts have it, with all of its digits: `64k`, `700`.
pub fn in_script(bytes: u64) -> String {
    let units = [("t", 40), ("g", 30), ("m", 20), ("k", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

/// The reason why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// The text is empty.
    Empty,
    /// The text does not start with a number. Holds the whole text.
    Number(String),
    /// The text after the number is not a unit. Holds that text.
    Unit(String),
    /// The size exceeds 2⁶⁴ − 1 bytes. Holds the whole text.
    TooLarge(String),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a size is missing"),
            Self::Number(text) => write!(f, "`{text}` is not a size: it does not begin with a number"),
            Self::Unit(unit) => write!(f, "`{unit}` is not a unit of size: use k, m, g, t or p"),
            Self::TooLarge(text) => write!(f, "`{text}` is larger than the maximum of 2^64 - 1 bytes"),
        }
    }
}

impl std::error::Error for SizeError {}

/// Parses a size such as `10`, `4k`, `1.5g`, `16KiB` or `2 TB`. A number without a unit is in bytes; units are powers
/// of 1024, in any case.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(SizeError::Empty);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = shift_of(unit.trim()).ok_or_else(|| SizeError::Unit(unit.trim().to_owned()))?;
    let too_large = || SizeError::TooLarge(text.to_owned());
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(too_large);
    }
    // Whole numbers were handled exactly above. The number is a fraction, is malformed, or does not fit into 64 bits.
    let value: f64 = number.parse().map_err(|_| SizeError::Number(text.to_owned()))?;
    let bytes = value * (1_u64 << shift) as f64;
    if bytes < u64::MAX as f64 { Ok(bytes.round() as u64) } else { Err(too_large()) }
}

/// Splits the unit k, m, g or t, in any case, from the end of a number in the parameters of a script. Returns the
/// number and the unit's binary logarithm, which is 0 without a unit.
pub fn split_unit(text: &str) -> (&str, u32) {
    let Some((at, unit)) = text.char_indices().next_back() else { return (text, 0) };
    let shift = match unit.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => return (text, 0),
    };
    (&text[..at], shift)
}

/// Returns the binary logarithm of a unit in bytes, or `None` when the unit is unknown.
fn shift_of(unit: &str) -> Option<u32> {
    match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        "p" | "pb" | "pib" => Some(50),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SizeError, exact, format, in_script, parse, split_unit};
    use proptest::prelude::*;

    #[test]
    fn sizes_print_with_one_decimal() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (3_113_851_289, "2.9 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(format(bytes), text);
        }
    }

    #[test]
    fn sizes_in_scripts_are_read_again() {
        for (bytes, text) in [(0, "0"), (700, "700"), (4096, "4k"), (3 << 30, "3g"), (5000 << 40, "5000t")] {
            assert_eq!((in_script(bytes).as_str(), parse(text)), (text, Ok(bytes)));
        }
    }

    #[test]
    fn exact_sizes_have_all_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (700, "700 B"),
            (4096, "4 KiB"),
            (4120, "4,120 B"),
            (512 << 10, "512 KiB"),
            (3 << 20, "3 MiB"),
            (1_048_577, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(exact(bytes), text);
        }
    }

    #[test]
    fn every_notation_is_parsed() {
        for (text, bytes) in [
            ("10", 10),
            ("4k", 4096),
            (" 1.5g ", 3 << 29),
            ("16KiB", 16384),
            ("2 TB", 2 << 40),
            ("0.5", 1),
            (".5k", 512),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_unit_is_split_from_a_number() {
        for (text, split) in [
            ("16k", ("16", 10)),
            ("-1.5M", ("-1.5", 20)),
            ("2g", ("2", 30)),
            ("T", ("", 40)),
            ("4kb", ("4kb", 0)),
            ("10", ("10", 0)),
            ("1é", ("1é", 0)),
            ("", ("", 0)),
        ] {
            assert_eq!(split_unit(text), split);
        }
    }

    #[test]
    fn errors_give_the_reason() {
        assert_eq!(parse(""), Err(SizeError::Empty));
        assert_eq!(parse("k"), Err(SizeError::Number("k".into())));
        assert_eq!(parse("1.2.3k"), Err(SizeError::Number("1.2.3k".into())));
        assert_eq!(parse("10q"), Err(SizeError::Unit("q".into())));
        assert_eq!(parse("-1"), Err(SizeError::Unit("-1".into())));
        assert_eq!(parse("99999999t"), Err(SizeError::TooLarge("99999999t".into())));
        assert_eq!(parse("99999999999999999999999"), Err(SizeError::TooLarge("99999999999999999999999".into())));
    }

    proptest! {
        #[test]
        fn whole_numbers_are_exact(n in 0_u64..=u64::MAX >> 10) {
            prop_assert_eq!(parse(&n.to_string()), Ok(n));
            prop_assert_eq!(parse(&format!("{n}k")), Ok(n << 10));
        }
    }
}
