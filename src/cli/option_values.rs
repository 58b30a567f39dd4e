//! Parsers of the values of options. Deliberately absent: the argument parser, which calls them.

use crate::measure::WarmupLength;
use crate::report::live::{LIVE_FORMATS, LiveFormat, find_live};
use crate::result::{MAX_LABEL, MAX_NOTE};
use crate::util::duration;
use std::path::PathBuf;
use std::time::Duration;

/// The format and the path of a live stream.
#[derive(Clone)]
pub(super) struct LiveOutput {
    pub(super) format: &'static LiveFormat,
    /// The file; `-` is standard output.
    pub(super) path: PathBuf,
}

/// Parses the label of a result.
pub(super) fn label(text: &str) -> Result<String, String> {
    annotation(text, MAX_LABEL)
}

/// Parses the note of a result.
pub(super) fn note(text: &str) -> Result<String, String> {
    annotation(text, MAX_NOTE)
}

/// Parses a text that reports and comparisons repeat.
fn annotation(text: &str, most: usize) -> Result<String, String> {
    match text.len() {
        0 => Err("a value is required".to_owned()),
        length if length > most => Err(format!("it has {length} bytes; expected at most {most}")),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a time: seconds, or a number with a unit.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|e| format!("{e}; expected seconds, or a time such as `10m`"))
}

/// Parses a time, or `auto`.
pub(super) fn warmup(text: &str) -> Result<WarmupLength, String> {
    if text == "auto" { Ok(WarmupLength::UntilSteady) } else { time(text).map(WarmupLength::Fixed) }
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
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected an assignment, `NAME=VALUE`")?;
    Ok((name.trim_start_matches('$').to_owned(), value.to_owned()))
}

/// Parses a path that may be empty, which the usual parser of paths refuses.
#[expect(clippy::unnecessary_wraps, reason = "the type of a parser")]
pub(super) fn mount_point(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

/// Parses `FORMAT[:FILE]`.
pub(super) fn live_output(text: &str) -> Result<LiveOutput, String> {
    let (name, path) = text.split_once(':').unwrap_or((text, "-"));
    let format = find_live(name).ok_or_else(|| {
        let known: Vec<String> =
            LIVE_FORMATS.iter().map(|format| format!("`{}` ({})", format.name, format.about)).collect();
        format!(
            "unknown format `{name}`; expected {}, or with a file, `{}:FILE`",
            known.join(" or "),
            LIVE_FORMATS[0].name
        )
    })?;
    if path.is_empty() {
        Err("expected a file after the colon".to_owned())
    } else {
        Ok(LiveOutput { format, path: path.into() })
    }
}

/// Parses `FILE:N`.
pub(super) fn file_and_count(text: &str) -> Result<(PathBuf, usize), String> {
    let parts = text.rsplit_once(':').and_then(|(file, n)| Some((file.into(), n.parse().ok()?)));
    parts.ok_or_else(|| "expected a file and a number, `FILE:N`, such as `ops.txt:1000`".to_owned())
}
