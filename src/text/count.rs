//! Formats numbers for display: `1 thread`, `2 directories`, `1,055,127`.
//!
//! The plural rules cover only the nouns that this program uses.

/// Formats a number with its noun, which is in the plural unless the number is 1: `1 thread`, `0 threads`, `2
/// directories`.
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {}", grouped(n), plural(noun)) }
}

/// Returns the verb of a sentence about so many things.
pub fn is_or_are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// Returns the plural of an English noun.
fn plural(noun: &str) -> String {
    let before_last = noun.chars().rev().nth(1);
    match noun.chars().last() {
        Some('y') if !matches!(before_last, Some('a' | 'e' | 'i' | 'o' | 'u')) => {
            format!("{}ies", noun.strip_suffix('y').unwrap_or(noun))
        }
        Some('s' | 'x' | 'z') => format!("{noun}es"),
        Some('h') if matches!(before_last, Some('c' | 's')) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Formats a number with a comma between groups of three digits: `1,055,127`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The magnitude from which numbers have an exponent. An `f64` may have 309 digits, of which the first 15 are exact.
pub const MAX_PLAIN: f64 = 1e15;

/// The magnitude below which numbers have an exponent.
pub const MIN_PLAIN: f64 = 1e-9;

/// Formats a finite number with all of its digits, and with an exponent if it is very great or small.
pub fn exact(x: f64) -> String {
    if x == 0.0 || (MIN_PLAIN..MAX_PLAIN).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

/// Formats a number with so many decimals, or with an exponent if it is very great. Returns `-` when it is not finite.
pub fn fixed(x: f64, decimals: usize) -> String {
    match x.abs() {
        a if !a.is_finite() => "-".to_owned(),
        a if a >= MAX_PLAIN => format!("{x:.2e}"),
        _ => format!("{x:.decimals$}"),
    }
}

/// Formats a number with at most so many decimals: `0.25`, `3`.
pub fn at_most(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a rate or another measured number, with three significant digits below 0.1, two decimals below 10, one below
/// 1000, and none from there on: `0.00121`, `0.25`, `42.2`, `350,947`. Very great and small numbers have an exponent.
/// Returns `-` when the number is not finite.
pub fn measured(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        a if !(MIN_PLAIN..MAX_PLAIN).contains(&a) => format!("{x:.2e}"),
        a if a < 0.0995 => {
            let decimals = 2 - a.log10().floor() as i32;
            format!("{x:.0$}", decimals as usize)
        }
        a if a < 9.995 => format!("{x:.2}"),
        a if a < 999.95 => format!("{x:.1}"),
        a => format!("{}{}", if x < 0.0 { "-" } else { "" }, grouped(a.round() as u64)),
    }
}

/// What stands for an unknown figure.
pub fn dash() -> String {
    "-".to_owned()
}

/// A figure as text, if it is known.
pub fn or_dash<T>(figure: Option<T>, form: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(dash, form)
}

#[cfg(test)]
mod tests {
    use super::{count, exact, fixed, grouped, measured};

    #[test]
    fn only_the_number_one_has_a_singular_noun() {
        assert_eq!(count(1, "thread"), "1 thread");
        assert_eq!(count(0, "thread"), "0 threads");
        assert_eq!(count(12_000, "directory"), "12,000 directories");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(count(2, "process"), "2 processes");
        assert_eq!(count(2, "match"), "2 matches");
        assert_eq!(count(2, "path"), "2 paths");
    }

    #[test]
    fn digits_are_grouped_by_threes() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_055_127, "1,055,127"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(n), text);
        }
    }

    #[test]
    fn measured_numbers_keep_three_digits() {
        for (x, text) in [
            (0.0, "0"),
            (0.001_206, "0.00121"),
            (-0.0123, "-0.0123"),
            (0.0994, "0.0994"),
            (0.0996, "0.10"),
            (1.5e-12, "1.50e-12"),
            (0.254, "0.25"),
            (7.4, "7.40"),
            (42.25, "42.2"),
            (350_946.6, "350,947"),
            (-1234.5, "-1,235"),
            (999e12, "999,000,000,000,000"),
            (1e15, "1.00e15"),
            (-1.234e300, "-1.23e300"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(measured(x), text);
        }
    }

    #[test]
    fn numbers_from_files_have_few_digits() {
        let shown = [0.0, -2.5, 1e14, 1.25e15, 1e300, 1.5e-12].map(exact);
        assert_eq!(shown, ["0", "-2.5", "100000000000000", "1.25e15", "1e300", "1.5e-12"]);
        let shown = [1.256, 1e300, -1e15].map(|x| fixed(x, 2));
        assert_eq!((shown, fixed(f64::NAN, 1)), (["1.26", "1.00e300", "-1.00e15"].map(str::to_owned), "-".into()));
    }
}
