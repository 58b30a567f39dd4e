//! The conditions of an experiment: kernel, program, scripts, mounts and user. Runs under other conditions are not
//! repeats of the first runs, so an experiment is resumed only if they are unchanged. It may be resumed after a reboot.

use crate::os::{device, handle, proc, reading};
use crate::util::hash::sha256;
use object::Object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The conditions of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The release and version of the kernel.
    pub kernel: String,
    /// The version of this program, and the build ID or the digest of its executable.
    pub tool: String,
    /// The digests of the scripts, one for each arm.
    pub scripts: Vec<String>,
    /// The mounts of the arms' file sets. Empty for an experiment with commands between runs, which may mount file
    /// systems: then the journal has the mounts of each run.
    pub mounts: Vec<String>,
    /// The user who started the experiment.
    pub user: u32,
    /// The ID of the boot; empty when it is unknown. It may change, so the journal has that of each run instead of the
    /// description.
    #[serde(skip)]
    pub boot: String,
}

impl Identity {
    /// Returns the current conditions, for scripts with these texts and arms with these directories.
    pub(crate) fn now(scripts: &[&str], dirs: &[PathBuf]) -> Self {
        let [_, _, release, version, _] = proc::uname();
        Self {
            kernel: format!("{release} {version}"),
            tool: format!("{} {}", env!("CARGO_PKG_VERSION"), own_build()),
            scripts: scripts.iter().map(|text| digest(text.as_bytes())).collect(),
            mounts: mounts(dirs),
            user: proc::user(),
            boot: proc::boot_id(),
        }
    }

    /// Returns the names of the changed conditions.
    pub(super) fn changes(&self, now: &Self) -> Vec<&'static str> {
        // Arms that a search has added repeat those of the first.
        let set = |mounts: &[String]| mounts.iter().cloned().collect::<BTreeSet<_>>();
        let parts = [
            (self.kernel != now.kernel, "the kernel"),
            (self.tool != now.tool, "this program"),
            (self.scripts != now.scripts, "a script"),
            (set(&self.mounts) != set(&now.mounts), "a mount"),
            (self.user != now.user, "the user"),
        ];
        parts.into_iter().filter_map(|(changed, what)| changed.then_some(what)).collect()
    }
}

/// Returns the mounts of directories, which need not exist, in the form `PATH: DEVICE TYPE OPTIONS`.
pub(super) fn mounts(dirs: &[PathBuf]) -> Vec<String> {
    // The number of a loop device may change whenever an image is mounted.
    let source =
        |source: &str| if source.starts_with("/dev/loop") { "loop device".to_owned() } else { source.to_owned() };
    let mount = |dir: &PathBuf| {
        device::mount_of(device::existing(dir)).map_or_else(String::new, |m| {
            format!("{}: {} {} {}", m.path.display(), source(&m.source), m.kind, m.options)
        })
    };
    let mut found: Vec<String> = dirs.iter().map(mount).collect();
    found.dedup();
    found
}

/// The maximum length of an executable in bytes.
const MAX_PROGRAM: u64 = 1 << 30;

/// What distinguishes this program from other builds. Empty if its file can't be read.
pub(crate) fn own_build() -> String {
    std::env::current_exe().and_then(|path| program(&path)).unwrap_or_default()
}

/// Returns what distinguishes an executable from those of other builds: its build ID, which the linker computes from
/// its content, or without one the digest of the file. The digest of 50 MB took a tenth of a second of each start.
fn program(path: &Path) -> std::io::Result<String> {
    // It reads only the parts of the file that are needed.
    let cache = object::ReadCache::new(handle::open_regular_file(path)?);
    let executable = object::File::parse(&cache).ok();
    match executable.as_ref().and_then(|executable| executable.build_id().ok().flatten()) {
        Some(id) => Ok(id.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))),
        None => reading::read(path, MAX_PROGRAM).map(|bytes| digest(&bytes)),
    }
}

/// Returns the first 16 hexadecimal digits of the SHA-256 digest of `bytes`.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut digest = sha256(bytes);
    digest.truncate(16);
    digest
}

/// Returns the user ID of a file's owner.
pub(super) fn owner(path: &Path) -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.uid())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_without_a_build_id_is_identified_by_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        for bytes in [b"#!/bin/sh\n".to_vec(), b"\x7fELF".to_vec(), Vec::new()] {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(program(&path).unwrap(), digest(&bytes));
        }
    }
}
