//! The last results, which runs keep in the state directory for `wmlrun report last` and `wmlrun compare last`.
//!
//! They are an extra: a result that can't be kept changes no exit status.

use crate::diag::Failure;
use crate::measure::{Outputs, with_timeout};
use crate::os::path::{keeps_state, state_dir};
use crate::output::{KeptFiles, output_in_tree};
use crate::report::json;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the last result, where no file has it.
pub(super) const LAST: &str = "last";

/// What a comparison calls it.
const LAST_RUN: &str = "the last run";

/// How long the file system of the state directory may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The same after a signal, within a second of which the program ends.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(300);

/// The directory of the last results. `None` if there can be none, or the user wants none.
fn directory() -> Option<PathBuf> {
    Some(state_dir().filter(|_| keeps_state())?.join(LAST))
}

/// Keeps the result of a session that has ended. Returns why it could not be kept.
pub(super) fn keep(outputs: Outputs, signal: u8) -> Result<(), String> {
    let Some(dir) = directory().filter(|_| !outputs.document.runs.is_empty()) else { return Ok(()) };
    let limit = if signal == 0 { ANSWER_TIMEOUT } else { SIGNAL_TIMEOUT };
    let trees = outputs.forbidden_trees();
    let kept = with_timeout(limit, move || match output_in_tree(&[("XDG_STATE_HOME", &dir)], &trees) {
        Some(message) => Err(message),
        None => KeptFiles::create(&dir, json::is_result)
            .and_then(|kept| kept.add(&mut |out| json::serialize(&outputs.document, out)))
            .map_err(|e| format!("{}: {e}", dir.display())),
    });
    kept.unwrap_or_else(|| Err("the file system of the state directory does not answer".to_owned()))
}

/// Returns the paths of the last results, the newest first. An error if fewer are kept.
fn newest<const COUNT: usize>() -> Result<[PathBuf; COUNT], Failure> {
    let refused =
        |e: io::Error| Failure::refused(format!("the last results can't be read: {e}"), "remove what is there");
    let kept = directory().map_or(Ok(None), |dir| KeptFiles::open(&dir, json::is_result)).map_err(refused)?;
    let paths = kept.map_or(Ok(Vec::new()), |kept| kept.newest(COUNT)).map_err(refused)?;
    paths.try_into().map_err(|paths: Vec<_>| {
        let text = if paths.is_empty() { "no result is kept" } else { "a single result is kept" };
        let help =
            "run a script first; without a home directory, with `--redact` and with WMLRUN_STATE=off no result is kept";
        Failure::wrong(text, help)
    })
}

/// True if a path is the name of the last result.
pub(super) fn is_last(path: &Path) -> bool {
    path == Path::new(LAST) && path.symlink_metadata().is_err()
}

/// Returns the path of a result: for `last` that of the last one.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, Failure> {
    if is_last(path) { newest().map(|[path]| path) } else { Ok(path.to_owned()) }
}

/// A side of a comparison.
pub(super) struct NamedSide {
    pub(super) path: PathBuf,
    /// What the comparison calls it.
    pub(super) name: String,
}

impl NamedSide {
    fn of(path: &Path) -> Result<Self, Failure> {
        let name = if is_last(path) { LAST_RUN.to_owned() } else { path.display().to_string() };
        Ok(Self { path: resolved(path)?, name })
    }
}

/// Returns the two sides of a comparison. `last` without B stands for the last two results, the older one as A.
pub(super) fn sides(a: &Path, b: Option<&Path>) -> Result<[NamedSide; 2], Failure> {
    match b {
        Some(b) => Ok([NamedSide::of(a)?, NamedSide::of(b)?]),
        None if is_last(a) => {
            let [last, before] = newest()?;
            let named = |path, name: &str| NamedSide { path, name: name.to_owned() };
            Ok([named(before, "the run before"), named(last, LAST_RUN)])
        }
        None => Err(Failure::wrong(
            "a comparison needs two results, <A> and <B>",
            "give both, or `last` alone for the last two; `wmlrun report DIR --metric NAME` shows an experiment again",
        )),
    }
}
