//! The conditions of an experiment: kernel, program, scripts, mounts and user. Runs under other conditions are not
//! repeats of the first runs, so an experiment is resumed only if they are unchanged.

use crate::measure;
use serde::{Deserialize, Serialize};
use std::io::Read;
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
}

impl Identity {
    /// Returns the current conditions, for scripts with these texts and arms with these directories.
    pub fn now(scripts: &[&str], dirs: &[PathBuf]) -> Self {
        let uname = measure::environment().uname;
        let program = std::env::current_exe().and_then(|path| program(&path)).unwrap_or_default();
        Self {
            kernel: format!("{} {}", uname.release, uname.version),
            tool: format!("{} {program}", env!("CARGO_PKG_VERSION")),
            scripts: scripts.iter().map(|text| digest(text.as_bytes())).collect(),
            mounts: mounts(dirs),
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

/// Returns the mounts of directories, which need not exist, in the form `PATH: DEVICE TYPE OPTIONS`.
pub(super) fn mounts(dirs: &[PathBuf]) -> Vec<String> {
    // The number of a loop device may change whenever an image is mounted.
    let device =
        |source: &str| if source.starts_with("/dev/loop") { "loop device".to_owned() } else { source.to_owned() };
    let mount = |dir: &PathBuf| {
        measure::mount(dir)
            .map_or_else(String::new, |m| format!("{}: {} {} {}", m.path, device(&m.source), m.kind, m.options))
    };
    let mut found: Vec<String> = dirs.iter().map(mount).collect();
    found.dedup();
    found
}

/// Returns what distinguishes an executable from those of other builds: its build ID, which the linker computes from
/// its content, or without one the digest of the file. The digest of 50 MB took a tenth of a second of each start.
fn program(path: &Path) -> std::io::Result<String> {
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(NOTES_END).read_to_end(&mut head)?;
    build_id(&head).map_or_else(|| std::fs::read(path).map(|bytes| digest(&bytes)), Ok)
}

/// The end of the part of an executable in which its notes are, in bytes.
const NOTES_END: u64 = 16 << 10;

/// Returns the build ID in the notes of an ELF file for this machine, in hexadecimal digits.
fn build_id(head: &[u8]) -> Option<String> {
    // The header of a note: the lengths of its name and its content, its type, and the name.
    const NAME: [u8; 4] = *b"GNU\0";
    const KIND: u32 = 3;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let word = |bytes: &[u8]| bytes.try_into().map(u32::from_ne_bytes).ok();
    let id = |at: usize| {
        let header = head.get(at..at + 16)?;
        let is_id = word(&header[..4])? == 4 && word(&header[8..12])? == KIND && header[12..] == NAME;
        let len = word(&header[4..8]).filter(|len| is_id && (8..=64).contains(len))? as usize;
        let id = head.get(at + 16..at + 16 + len)?;
        Some(id.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
    };
    (0..head.len()).step_by(4).find_map(id)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_executable_is_identified_by_its_build_id_or_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend([0; 60]);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(program(&path).unwrap(), digest(&bytes));
        for word in [4_u32, 8, 3] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(b"GNU\0\x01\x02\x03\x04\x05\x06\x07\xff");
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(program(&path).unwrap(), "01020304050607ff");
        // A note that ends after the part that is read.
        assert_eq!(build_id(&bytes[..bytes.len() - 1]), None);
        let own = program(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.len() >= 16 && own == program(&std::env::current_exe().unwrap()).unwrap(), "{own}");
    }
}
