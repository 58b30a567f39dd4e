//! Where a results folder was made. Its description has commands, which are executed when the experiment is resumed, so
//! those of a folder from elsewhere need permission.
//!
//! The journal is never replaced, and its first event records the identity of the file itself. A copy is another file:
//! whoever packed it can't know the inode number and the birth time that it gets when it is unpacked.

use super::identity::digest;
use super::journal::Event;
use crate::import::folder::JOURNAL;
use crate::os::{fd, handle, proc};
use crate::util::json;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The maximum length of the first event in bytes. It has no text of a script.
const MAX_EVENT_LENGTH: u64 = 64 << 10;

/// The host on which a results folder was made, and the identity of its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FolderOrigin {
    /// The digest of the host's machine ID, or of its name if it has none.
    host: String,
    /// The inode number of the journal.
    inode: u64,
    /// The birth time of the journal in nanoseconds since 1970; absent where the file system does not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<String>,
    /// The absolute path of the folder.
    path: String,
}

impl FolderOrigin {
    /// Returns the origin of a folder that is made now and has this open journal.
    pub(super) fn of(journal: &File, folder: &Path) -> io::Result<Self> {
        let info = fd::file_info(journal.as_raw_fd())?;
        let [_, name, ..] = proc::uname();
        let host = proc::machine_id().unwrap_or(name);
        let path = std::fs::canonicalize(folder)?;
        Ok(Self {
            host: digest(host.as_bytes()),
            inode: info.inode,
            born: info.born.map(|born| born.to_string()),
            path: path.to_string_lossy().into_owned(),
        })
    }

    /// True if the folder with the origin `now` is the one that was made, perhaps under another name.
    fn is_that_of(&self, now: &Self) -> bool {
        let is_same_file = self.host == now.host && self.inode == now.inode && self.born == now.born;
        // Inode numbers are used again, and may be guessed.
        is_same_file && (self.born.is_some() || self.path == now.path)
    }
}

/// True if this user has made a results folder on this host. `false` if the folder is a copy, or if its journal
/// is empty or a link.
pub fn is_made_here(folder: &Path) -> io::Result<bool> {
    let path = folder.join(JOURNAL);
    // A link may lead to the journal of a folder that was made here.
    if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        return Ok(false);
    }
    let journal = match handle::open_regular_file(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut line = Vec::new();
    BufReader::new((&journal).take(MAX_EVENT_LENGTH)).read_until(b'\n', &mut line)?;
    let Ok(Event::Begun { origin: Some(origin), .. }) = json::from_bytes(&line) else { return Ok(false) };
    let is_own = journal.metadata()?.uid() == proc::user();
    Ok(is_own && origin.is_that_of(&FolderOrigin::of(&journal, folder)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::Folder;
    use crate::experiment::runner::tests::{directory, experiment, identity};
    use crate::import::folder::EXPERIMENT;
    use std::fs;

    #[test]
    fn a_copy_of_a_folder_was_not_made_here() {
        let dir = directory();
        let (made, copy, moved) = (dir.path().join("made"), dir.path().join("copy"), dir.path().join("moved"));
        drop(Folder::create(&made, experiment(3, &[])).unwrap());
        assert!(is_made_here(&made).unwrap());
        drop(Folder::resume(&made, &identity(), false).unwrap());
        assert!(is_made_here(&made).unwrap(), "it was resumed");
        fs::create_dir(&copy).unwrap();
        assert!(!is_made_here(&copy).unwrap(), "it has no journal");
        fs::write(copy.join(JOURNAL), "").unwrap();
        assert!(!is_made_here(&copy).unwrap(), "its journal is empty");
        fs::copy(made.join(JOURNAL), copy.join(JOURNAL)).unwrap();
        assert!(!is_made_here(&copy).unwrap());
        fs::rename(&made, &moved).unwrap();
        let text = fs::read_to_string(moved.join(JOURNAL)).unwrap();
        assert_eq!(is_made_here(&moved).unwrap(), text.contains("\"born\""), "it has another name: {text}");
        fs::rename(&moved, &made).unwrap();
        // An experiment of an earlier version, or of another host.
        let host = text.split("\"host\":\"").nth(1).unwrap().split('"').next().unwrap();
        for other in [text.replace("\"origin\"", "\"other\""), text.replace(host, "0123456789abcdef")] {
            assert_ne!(other, text);
            fs::write(made.join(JOURNAL), other).unwrap();
            assert!(!is_made_here(&made).unwrap());
        }
        fs::write(made.join(JOURNAL), &text).unwrap();
        assert!(is_made_here(&made).unwrap());
        // A link leads to the journal of a folder that was made here.
        let linked = dir.path().join("linked");
        fs::create_dir(&linked).unwrap();
        fs::copy(made.join(EXPERIMENT), linked.join(EXPERIMENT)).unwrap();
        std::os::unix::fs::symlink(made.join(JOURNAL), linked.join(JOURNAL)).unwrap();
        assert!(!is_made_here(&linked).unwrap());
        Folder::resume(&linked, &identity(), true).unwrap_err();
    }

    #[test]
    fn without_a_birth_time_the_path_counts() {
        let origin = |inode, born: Option<&str>, path: &str| FolderOrigin {
            host: "h".to_owned(),
            inode,
            born: born.map(str::to_owned),
            path: path.to_owned(),
        };
        let of = origin(7, Some("1"), "/a");
        assert!(of.is_that_of(&origin(7, Some("1"), "/b")));
        assert!(!of.is_that_of(&origin(7, Some("2"), "/a")) && !of.is_that_of(&origin(8, Some("1"), "/a")));
        assert!(!of.is_that_of(&origin(7, None, "/a")));
        let unborn = origin(7, None, "/a");
        assert!(unborn.is_that_of(&unborn) && !unborn.is_that_of(&origin(7, None, "/b")));
    }
}
