//! The conditions of an experiment: kernel, program, scripts, mounts and user. Runs under other conditions are not
//! repeats of the first runs, so an experiment is resumed only if they are unchanged.

use crate::measure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The conditions of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The release and version of the kernel.
    pub kernel: String,
    /// The version of this program and the digest of its executable.
    pub tool: String,
    /// The digests of the scripts, one for each arm.
    pub scripts: Vec<String>,
    /// The file systems of the arms' directories.
    pub mounts: Vec<String>,
    /// The user who started the experiment.
    pub user: u32,
}

impl Identity {
    /// Returns the current conditions, for scripts with these texts and arms with these directories.
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

    /// Returns the names of the changed conditions.
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

/// Returns the first 16 hexadecimal digits of the SHA-256 digest of `bytes`.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut digest = measure::sha256(bytes);
    digest.truncate(16);
    digest
}

/// Returns the user ID of a file's owner.
pub(super) fn owner(path: &Path) -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.uid())
}
