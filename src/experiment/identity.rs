//! What an experiment was begun with. Runs of another kernel, program, script or mount are no repeats of the first ones.

use crate::measure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The conditions of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Release and version.
    pub kernel: String,
    /// Version of this program, and the digest of its file.
    pub tool: String,
    /// The digests of the scripts, an arm each.
    pub scripts: Vec<String>,
    /// The file systems of the arms' directories.
    pub mounts: Vec<String>,
    /// The user that began it.
    pub user: u32,
}

impl Identity {
    /// The conditions now, for scripts of these texts in these directories.
    pub fn now(scripts: &[&str], dirs: &[PathBuf]) -> Self {
        let uname = measure::environment().uname;
        let program = std::env::current_exe().and_then(std::fs::read).map(|bytes| digest(&bytes)).unwrap_or_default();
        let mount = |dir: &PathBuf| {
            measure::mount(dir)
                .map_or_else(String::new, |m| format!("{}: {} {} {}", m.path, m.source, m.kind, m.options))
        };
        Self {
            kernel: format!("{} {}", uname.release, uname.version),
            tool: format!("{} {program}", env!("CARGO_PKG_VERSION")),
            scripts: scripts.iter().map(|text| digest(text.as_bytes())).collect(),
            mounts: dirs.iter().map(mount).collect(),
            user: crate::os::proc::user(),
        }
    }

    /// What is not as it was, in words.
    pub(super) fn changes(&self, now: &Self) -> Vec<&'static str> {
        let parts = [
            (self.kernel != now.kernel, "the kernel"),
            (self.tool != now.tool, "this program"),
            (self.scripts != now.scripts, "a script"),
            (self.mounts != now.mounts, "a mount"),
            (self.user != now.user, "the user"),
        ];
        parts.into_iter().filter_map(|(changed, what)| changed.then_some(what)).collect()
    }
}

/// The beginning of a digest, enough to know a text again.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut digest = measure::sha256(bytes);
    digest.truncate(16);
    digest
}

/// The user that a file belongs to.
pub(super) fn owner(path: &Path) -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.uid())
}
