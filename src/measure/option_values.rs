//! Parsers of the values of options of a run.

use crate::replay::ReplaySpeed;
use crate::util::duration;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Parses a text that reports and comparisons repeat.
pub(super) fn annotation(text: &str, most: usize) -> Result<String, String> {
    match text.len() {
        0 => Err("a value is required".to_owned()),
        length if length > most => Err(format!("it has {length} bytes; expected at most {most}")),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a time: seconds, or a number with a unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|e| format!("{e}; expected seconds, or a time such as `10m`"))
}

/// Parses when the calls of a replay begin: `fast`, `timed`, or a factor such as `x10`.
pub(super) fn replay_speed(text: &str) -> Result<ReplaySpeed, String> {
    let factor = text.strip_prefix(['x', '×']).and_then(|factor| factor.parse().ok());
    match text {
        "fast" => Ok(ReplaySpeed::Fast),
        "timed" => Ok(ReplaySpeed::Timed(1.0)),
        _ => factor
            .filter(|factor: &f64| factor.is_finite() && *factor > 0.0)
            .map(ReplaySpeed::Timed)
            .ok_or_else(|| "expected `fast`, `timed` or a factor such as `x10`".to_owned()),
    }
}

/// Parses a time above 0.
pub(super) fn run_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time.is_zero() { Err("the run time must be greater than 0".to_owned()) } else { Ok(time) }
}

/// The shortest interval of the time series.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// Parses a time of at least [`SHORTEST_INTERVAL`].
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time < SHORTEST_INTERVAL { Err("the interval must be at least 10 ms".to_owned()) } else { Ok(time) }
}

/// Parses `NAME=VALUE`, also with a `$` before the name.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected an assignment, `NAME=VALUE`")?;
    Ok((name.trim_start_matches('$').to_owned(), value.to_owned()))
}

/// Parses `FILE:N`.
pub(super) fn file_and_count(text: &str) -> Result<(PathBuf, usize), String> {
    let parts = text.rsplit_once(':').and_then(|(file, n)| Some((file.into(), n.parse().ok()?)));
    parts.ok_or_else(|| "expected a file and a number, `FILE:N`, such as `ops.txt:1000`".to_owned())
}

/// Parses a whole number of a range.
pub(super) fn number(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.parse().map_err(|e: std::num::ParseIntError| e.to_string())?;
    match range.contains(&number) {
        true => Ok(number),
        false => Err(format!("{number} is not in {}..={}", range.start(), range.end())),
    }
}
