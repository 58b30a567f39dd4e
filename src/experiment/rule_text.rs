//! Parses the parts of a rule that users write: numbers of runs, and shares.

/// Parses a share, `5%` or `0.05`, that must be greater than 0 and less than 1.
pub fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|value| value / 100.0),
        None => number(text),
    };
    match value {
        Some(value) if value > 0.0 && value < 1.0 => Ok(value),
        Some(value) if (1.0..100.0).contains(&value) && !text.ends_with('%') => {
            let text = text.trim();
            Err(format!("`{text}` is not a percentage: write `{text}%` or `{}`", (value * 1e4).round() / 1e6))
        }
        _ => Err("expected a percentage between 0 and 100, such as `5%` or `0.05`".to_owned()),
    }
}

/// Parses `MIN..MAX`, or `N` as `N..N`, with numbers from 1 to 100,000.
pub fn run_range(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|n| (1..=100_000).contains(n));
    let range = match text.split_once("..") {
        Some((min, max)) => number(min).zip(number(max)),
        None => number(text).map(|n| (n, n)),
    };
    range
        .filter(|(min, max)| min <= max)
        .ok_or_else(|| "expected a number of runs from 1 to 100000, such as `10..30` or `10`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_percentage_has_a_sign_or_is_a_share() {
        assert_eq!((share("3%"), share("0.03"), share(" 50 %")), (Ok(0.03), Ok(0.03), Ok(0.5)));
        let error = |text: &str| share(text).err().unwrap_or_default();
        assert_eq!(error("3"), "`3` is not a percentage: write `3%` or `0.03`");
        assert_eq!(error("2.5"), "`2.5` is not a percentage: write `2.5%` or `0.025`");
        for text in ["0", "0%", "100%", "200", "-3%", "x"] {
            assert!(error(text).starts_with("expected a percentage between 0 and 100"), "{text}: {}", error(text));
        }
    }
}
