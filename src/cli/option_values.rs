//! The value of the option `--live`.

use crate::report::live::{LIVE_FORMATS, LiveFormat, find_live};
use std::path::PathBuf;

/// The format and the path of a live stream.
#[derive(Clone)]
pub(super) struct LiveOutput {
    pub(super) format: &'static LiveFormat,
    /// The file; `-` is standard output.
    pub(super) path: PathBuf,
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
