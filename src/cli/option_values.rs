//! Where outputs go: standard output, and the value of the option `--live`.

use super::live_stream::LiveStream;
use crate::diag::Failure;
use crate::measure::unwritable;
use crate::output::FileIdentity;
use crate::report::live::{LIVE_FORMATS, LiveFormat, find_live};
use std::path::{Path, PathBuf};

/// True if a path of an output names standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// The format and the path of a live stream.
#[derive(Clone)]
pub(super) struct LiveOutput {
    pub(super) format: &'static LiveFormat,
    /// The file; `-` is standard output.
    pub(super) path: PathBuf,
}

impl LiveOutput {
    /// Opens the stream. See [`LiveStream::open`].
    pub(super) fn open(&self, force: bool, scripts: &[FileIdentity]) -> Result<LiveStream, Failure> {
        let stream = LiveStream::open(self.format, &self.path, force, scripts);
        stream.map_err(|e| unwritable("live stream", &self.path, &e, "--live"))
    }
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
