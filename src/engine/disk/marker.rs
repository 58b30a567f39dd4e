//! The marker of a file set's root: the file `.wmlrun`, which records how the tree was created and how far its creation
//! has progressed.
//!
//! A valid marker begins with a magic string, has a correct checksum, and contains the inode number (and the birth
//! time, if the file system provides one) of its own file, so that a copy is not valid. It consists of two records. A
//! change overwrites the older record, and the newest valid record is used. If a write is interrupted at any point, the
//! marker therefore has either its previous or its new contents. Which directories may be marked is decided in
//! [`super::root`].

use super::aging::AgingRecord;
use super::record::{DirNames, MadeMembers, MarkerLayout};
use crate::fileset::Tree;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;
use wml_os::{Errno, Fd, fd};
use wml_text::json;

/// Name of the marker.
pub(super) const MARKER: &str = ".wmlrun";
/// Name of the marker until it is complete.
pub(super) const UNFINISHED: &str = ".wmlrun.new";
/// Size of a record in bytes.
const RECORD: usize = 8192;
/// Length of a marker in bytes: its first write has both records, and later ones keep the length.
const LENGTH: u64 = 2 * RECORD as u64;
/// The start of a record, followed by a checksum and the JSON text.
const MAGIC: &str = "wmlrun marker ";
/// Version of the contents.
const FORMAT: u32 = 2;

/// The progress of the creation or removal of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MarkerProgress {
    /// Marked, but creation has not begun.
    Empty,
    /// Creation has begun. If the marker is not locked, it was interrupted.
    Populating,
    /// Complete.
    Ready,
    /// Removal has begun. If the marker is not locked, it was interrupted.
    Removing,
}

/// The contents of a marker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    /// Number of changes. The record with the larger number is the newer one.
    sequence: u64,
    pub(super) set: String,
    pub(super) state: MarkerProgress,
    /// Whether wmlrun created the root directory, which is then removed with the tree.
    pub(super) made_root: bool,
    /// Whether the tree was adopted, and is never removed.
    pub(super) adopted: bool,
    /// Layout of the tree. `None` in a root that was only marked.
    pub(super) layout: Option<MarkerLayout>,
    /// Properties of the names of the tree, in addition to the layout.
    pub(super) names: Option<DirNames>,
    /// What of the tree existed when it was complete. `None` in markers of earlier versions, which created other numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made: Option<MadeMembers>,
    /// For a tree of a run with `--below`, the number of directories from the one of that option to the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) below: Option<usize>,
    /// Whether flowops of a run may have created hard links within the set (`link`).
    pub(super) links: bool,
    /// The parameters and the progress of `wmlrun age`. `None` in the root of a file set of a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) aging: Option<AgingRecord>,
    /// A number that no other marker has, in hexadecimal. Empty in markers of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unique: String,
    /// Identity of the marker's own file.
    at: MarkerIdentity,
}

/// The identity of a marker file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct MarkerIdentity {
    inode: u64,
    /// Birth time in nanoseconds since 1970, as text, since JSON numbers are not precise enough.
    born: Option<String>,
    file_system: u64,
    device: u64,
    path: String,
}

/// Why a file with the name of a marker is not a valid marker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Invalid {
    /// It was not written by wmlrun, or is damaged.
    Bad(String),
    /// It is a copy of the marker of another directory.
    Copied {
        /// The path of that directory when it was marked.
        from: String,
    },
}

impl Marker {
    /// Creates a marker for a root. `file` is the open marker file.
    pub(super) fn new(set: &str, made_root: bool, adopted: bool, file: Fd, root: &Path) -> Result<Self, Errno> {
        Ok(Self {
            format: FORMAT,
            sequence: 0,
            set: set.to_owned(),
            state: MarkerProgress::Empty,
            made_root,
            adopted,
            layout: None,
            names: None,
            made: None,
            below: None,
            links: false,
            aging: None,
            unique: unique_number(),
            at: MarkerIdentity::of(file, root)?,
        })
    }

    /// Writes the marker to its file and flushes it, so that it is on the disk before the changes that it announces.
    pub(super) fn write(&mut self, file: Fd) -> Result<(), Errno> {
        self.sequence += 1;
        let record = self.record().ok_or(Errno::NAMETOOLONG)?;
        let first = self.sequence == 1;
        let at = (self.sequence % 2) * RECORD as u64;
        // The first write allocates both records, so that later changes need no space.
        let (record, at) = if first { ([vec![b' '; RECORD], record].concat(), 0) } else { (record, at) };
        match fd::pwrite(file, &record, at)? {
            n if n == record.len() => fd::fsync(file),
            _ => Err(Errno::NOSPC),
        }
    }

    /// True if the tree was created with the members that exist in `tree` at the start. An earlier version did not
    /// record how many there are, and created others of a set that exists in part.
    pub(super) fn has_members_of(&self, tree: &Tree) -> bool {
        let wanted = MadeMembers::of(tree);
        let is_whole = wanted == MadeMembers { files: tree.n_files(), leafdirs: tree.n_leafdirs() };
        self.made.map_or(is_whole, |made| made == wanted)
    }

    /// Gives the marker a new unique number.
    pub(super) fn renew(&mut self) {
        self.unique = unique_number();
    }

    /// Returns a checksum of the contents. Two trees have different ones, and a tree at different times too.
    pub(super) fn checksum(&self) -> String {
        checksum(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// Returns the marker as a record. `None` when it does not fit.
    fn record(&self) -> Option<Vec<u8>> {
        let text = serde_json::to_string_pretty(self).ok()?;
        let mut record = format!("{MAGIC}{}\n{text}", checksum(text.as_bytes())).into_bytes();
        if record.len() >= RECORD {
            return None;
        }
        record.resize(RECORD - 1, b' ');
        record.push(b'\n');
        Some(record)
    }

    /// Reads the marker in an open file. Returns it with an optional note for the user.
    pub(super) fn read(file: Fd, root: &Path) -> Result<Result<(Self, Option<String>), Invalid>, Errno> {
        let mut text = vec![0; 2 * RECORD];
        let n = fd::pread(file, &mut text, 0)?;
        let marker = match parse(&text[..n]) {
            Ok(marker) => marker,
            Err(why) => return Ok(Err(Invalid::Bad(why))),
        };
        if fd::fstat(file)?.size != LENGTH {
            return Ok(Err(Invalid::Bad("another program has changed its length".into())));
        }
        let actual = MarkerIdentity::of(file, root)?;
        if !marker.at.is(&actual, fd::file_system_kind(file)?) {
            return Ok(Err(Invalid::Copied { from: marker.at.path }));
        }
        let note = (marker.at.device != actual.device).then(|| {
            format!(
                "`{}` has another device number than at its creation ({:#x}, now {:#x}); assuming the same file system",
                root.display(),
                marker.at.device,
                actual.device
            )
        });
        Ok(Ok((marker, note)))
    }
}

/// Returns a number in hexadecimal that no other process and no other call has. Inode numbers and times alone do not tell
/// apart the markers of two hosts with equal local file systems.
fn unique_number() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

impl MarkerIdentity {
    /// Determines the identity of an open marker file in `root`.
    fn of(file: Fd, root: &Path) -> Result<Self, Errno> {
        let info = fd::file_info(file)?;
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        Ok(Self {
            inode: info.inode,
            born: info.born.map(|born| born.to_string()),
            file_system: fd::file_system_id(file)?,
            device: fd::fstat(file)?.device,
            path: root.to_string_lossy().into_owned(),
        })
    }

    /// True if both are the same file. `kind` is the `f_type` of the file system. Device numbers are ignored,
    /// and file-system numbers are compared on btrfs only, since they may change with each mount. Where the inode
    /// number proves nothing, the path must be the same too.
    fn is(&self, actual: &Self, kind: u64) -> bool {
        /// `f_type` of vfat and exFAT. They have no inode numbers on the disk, and number files when they are loaded.
        const FAT: u64 = 0x4d44;
        const EXFAT: u64 = 0x2011_bab0;
        /// File systems that may change inode numbers: those, and FUSE, CIFS and SMB2, whose servers may do so at any
        /// time.
        const RENUMBERED: [u64; 5] = [FAT, EXFAT, 0x6573_5546, 0xff53_4d42, 0xfe53_4d42];
        /// `f_type` of btrfs and bcachefs, whose snapshots keep the inode numbers and times of files. `f_fsid` of btrfs
        /// identifies the subvolume, that of bcachefs the whole file system.
        const BTRFS: u64 = 0x9123_683e;
        const BCACHEFS: u64 = 0xca45_1a4e;
        let same_path = self.path == actual.path;
        let same_tree = match kind {
            BTRFS => self.file_system == actual.file_system || same_path,
            BCACHEFS => same_path,
            _ => true,
        };
        let same_birth = match (&self.born, &actual.born) {
            (Some(one), Some(other)) if [FAT, EXFAT].contains(&kind) => is_about(one, other),
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let same_number = self.inode == actual.inode || (RENUMBERED.contains(&kind) && same_path);
        same_tree && same_birth && same_number
    }
}

/// True if two birth times differ by less than the unit of times on FAT, to which the time of a file is rounded
/// when it is loaded again.
fn is_about(one: &str, other: &str) -> bool {
    const UNIT: u128 = 2_000_000_000;
    let (one, other) = (one.parse::<i128>(), other.parse::<i128>());
    matches!((one, other), (Ok(one), Ok(other)) if one.abs_diff(other) < UNIT)
}

/// Returns the newest valid record, or the reason why there is none.
fn parse(text: &[u8]) -> Result<Marker, String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.iter().all(|&byte| byte == 0) {
        return Err("it contains only zeros".into());
    }
    let records = text.chunks(RECORD).filter_map(record);
    if let Some(marker) = records.max_by_key(|marker| marker.sequence) {
        return Ok(marker);
    }
    let earlier = json::from_bytes::<serde_json::Value>(text).is_ok_and(|value| value.get("format").is_some());
    Err(if earlier {
        "it was written by an earlier version of wmlrun".into()
    } else {
        "it was not written by wmlrun".into()
    })
}

/// Parses a record. `None` when it is not valid.
fn record(chunk: &[u8]) -> Option<Marker> {
    let text = std::str::from_utf8(chunk).ok().filter(|_| chunk.len() == RECORD)?;
    let (sum, text) = text.strip_prefix(MAGIC)?.split_once('\n')?;
    let text = text.trim_end_matches([' ', '\n']);
    let marker: Marker = serde_json::from_str(text).ok().filter(|_| sum == checksum(text.as_bytes()))?;
    (marker.format == FORMAT).then_some(marker)
}

/// Returns the SHA-256 checksum of a text in hexadecimal.
fn checksum(text: &[u8]) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut sum, byte| {
        let _ = write!(sum, "{byte:02x}");
        sum
    })
}

/// The content of an incomplete marker that is still to be written, in a root that wmlrun has created.
const ANNOUNCED: &[u8] = &[0];

/// Makes an empty marker say that wmlrun has created the root, for the case that it is killed while it writes the marker.
pub(super) fn announce(file: Fd) {
    // Without it the root of a killed run is kept.
    let _ = fd::ftruncate(file, ANNOUNCED.len() as u64);
}

/// True if an incomplete marker says that wmlrun has created the root.
pub(super) fn is_announced(file: Fd) -> bool {
    let mut text = [0; 2];
    fd::pread(file, &mut text, 0).is_ok_and(|n| &text[..n] == ANNOUNCED)
}

/// True if a file is an incomplete marker, which may be removed: it is empty, or contains the beginning of a
/// marker. A longer file is not one, whatever its beginning is.
pub(super) fn is_unfinished(file: Fd) -> Result<bool, Errno> {
    if fd::fstat(file)?.size > LENGTH {
        return Ok(false);
    }
    let mut text = [0; 2 * RECORD];
    let n = fd::pread(file, &mut text, 0)?;
    let text = &text[..n];
    Ok(text == ANNOUNCED
        || text.iter().all(|&byte| byte == b' ')
        || text
            .get(RECORD..)
            .is_some_and(|record| text[..RECORD].iter().all(|&b| b == b' ') && record.starts_with(MAGIC.as_bytes())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    fn written(path: &Path, changes: u64) -> (File, Marker) {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
        let mut marker = Marker::new("data", true, false, file.as_raw_fd(), path.parent().unwrap()).unwrap();
        for _ in 0..changes {
            marker.write(file.as_raw_fd()).unwrap();
        }
        (file, marker)
    }

    fn read(file: &File, path: &Path) -> Result<Marker, Invalid> {
        Marker::read(file.as_raw_fd(), path).unwrap().map(|(marker, _)| marker)
    }

    #[test]
    fn reading_returns_the_last_written_marker() {
        let dir = tempfile::tempdir().unwrap();
        for changes in 1..5 {
            let (file, marker) = written(&dir.path().join("m"), changes);
            assert_eq!(read(&file, dir.path()), Ok(marker), "{changes}");
        }
    }

    #[test]
    fn an_interrupted_write_leaves_the_old_or_the_new_marker() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("m");
        let (file, mut marker) = written(&at, 2);
        let before = std::fs::read(&at).unwrap();
        let old = marker.clone();
        marker.state = MarkerProgress::Ready;
        marker.write(file.as_raw_fd()).unwrap();
        let after = std::fs::read(&at).unwrap();
        for cut in (0..after.len()).step_by(97) {
            let torn = [&after[..cut], &before[cut..]].concat();
            std::fs::write(&at, torn).unwrap();
            let found = read(&file, dir.path()).unwrap();
            assert!(found == old || found == marker, "cut at {cut}: {found:?}");
        }
    }

    #[test]
    fn the_identity_of_a_marker_depends_on_the_file_system() {
        const EXT4: u64 = 0xef53;
        let own = MarkerIdentity { inode: 7, born: Some("1".into()), file_system: 3, device: 1, path: "/a".into() };
        let inode = MarkerIdentity { inode: 8, ..own.clone() };
        let moved = MarkerIdentity { path: "/b".into(), ..own.clone() };
        let snapshot = MarkerIdentity { file_system: 4, ..moved.clone() };
        let born = MarkerIdentity { born: Some("2".into()), ..own.clone() };
        let unborn = MarkerIdentity { born: None, ..inode.clone() };
        // In the order of the columns: the same file, another inode, another path, a snapshot elsewhere, another birth
        // time, another inode without a birth time.
        let found = [&own, &inode, &moved, &snapshot, &born, &unborn];
        for (kind, name, is_same) in [
            (EXT4, "ext4", [true, false, true, true, false, false]),
            (0x9123_683e, "btrfs", [true, false, true, false, false, false]),
            (0xca45_1a4e, "bcachefs", [true, false, false, false, false, false]),
            (0x6573_5546, "fuse", [true, true, true, true, false, true]),
            (0xfe53_4d42, "smb2", [true, true, true, true, false, true]),
            (0x4d44, "vfat", [true, true, true, true, true, true]),
            (0x2011_bab0, "exfat", [true, true, true, true, true, true]),
        ] {
            assert_eq!(found.map(|found| own.is(found, kind)), is_same, "{name}");
            let later = MarkerIdentity { born: Some("2000000001".into()), ..own.clone() };
            assert!(!own.is(&later, kind), "{name}");
        }
    }

    #[test]
    fn invalid_contents_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("m");
        let (file, _) = written(&at, 2);
        let whole = std::fs::read(&at).unwrap();
        let mut forged = String::from_utf8(whole.clone()).unwrap();
        forged = forged.replace("\"data\"", "\"date\"");
        let contents: [&[u8]; 6] =
            [b"", &[0; 4096], b"{\"format\":1}", b"wmlrun marker \n", forged.as_bytes(), &whole[..RECORD - 1]];
        for content in contents {
            std::fs::write(&at, content).unwrap();
            assert!(matches!(read(&file, dir.path()), Err(Invalid::Bad(_))), "{content:?}");
        }
        // A marker with something behind it, or one of which a record is missing.
        for content in [[&whole[..], b"mine"].concat(), whole[..RECORD].to_vec(), whole[RECORD..].to_vec()] {
            std::fs::write(&at, &content).unwrap();
            assert!(matches!(read(&file, dir.path()), Err(Invalid::Bad(_))), "{} bytes", content.len());
        }
        // The same bytes in another file.
        let copy = dir.path().join("copy");
        std::fs::write(&copy, &whole).unwrap();
        let copy = File::open(copy).unwrap();
        assert!(matches!(read(&copy, dir.path()), Err(Invalid::Copied { .. })));
    }

    #[test]
    fn only_the_beginning_of_a_marker_is_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("m");
        drop(written(&at, 1));
        let whole = std::fs::read(&at).unwrap();
        let is = |content: &[u8]| {
            std::fs::write(&at, content).unwrap();
            is_unfinished(File::open(&at).unwrap().as_raw_fd()).unwrap()
        };
        for length in [0, 1, RECORD - 1, RECORD, RECORD + MAGIC.len(), whole.len() - 1, whole.len()] {
            assert!(is(&whole[..length]), "{length} bytes");
        }
        let spaces = vec![b' '; 2 * RECORD];
        for foreign in [b"mine".to_vec(), [&spaces[..], b"mine"].concat(), [&whole[..], b"\n"].concat()] {
            assert!(!is(&foreign), "{} bytes", foreign.len());
        }
    }
}
