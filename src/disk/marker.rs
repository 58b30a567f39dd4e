//! The marker of a file set's root: the file `.wmlrun`, which says how the tree was made and how far that came.
//!
//! A marker counts only whole: it begins with its magic, a checksum covers what it says, and it names the inode (and the time
//! of birth, where the file system keeps one) of the very file that it stands in, so that no copy is a marker. It holds two
//! records. A change overwrites the older one, and the newest whole record counts: whatever instant a write is cut off at, the
//! marker says what it said before or what it says now. Whose directories may be marked is decided in [`super::root`].

use super::known::DirNames;
use crate::os::{Errno, Fd, fd};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::path::Path;

/// Bytes of a record.
const RECORD: usize = 8192;
/// What a record begins with; a checksum and the text follow.
const MAGIC: &str = "wmlrun marker ";
/// The version of what is in it.
const FORMAT: u32 = 2;

/// What the directories of a tree follow from. Sizes are not part of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct MarkerLayout {
    pub(super) entries: u64,
    pub(super) leafdirs: u64,
    pub(super) dirwidth: String,
    pub(super) width_gamma: f64,
    pub(super) depth_gamma: f64,
    pub(super) dirdepth: String,
    pub(super) seed: u64,
}

impl fmt::Display for MarkerLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, leafdirs, dirwidth, width_gamma, depth_gamma, dirdepth, seed } = self;
        write!(
            f,
            "entries={entries} leafdirs={leafdirs} dirwidth={dirwidth} gamma={width_gamma}/{depth_gamma} dirdepthrv={dirdepth} layout seed {seed}"
        )
    }
}

/// How far the tree has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MarkerProgress {
    /// Marked, and not begun.
    Empty,
    /// It was being made; if nobody has the lock, that was interrupted.
    Populating,
    /// Complete.
    Ready,
}

/// What the marker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    /// Counts the changes: the larger one of two records is the newer.
    sequence: u64,
    pub(super) set: String,
    pub(super) state: MarkerProgress,
    /// The root directory itself was made by us, and goes with the tree.
    pub(super) made_root: bool,
    /// The tree was found, and is never removed.
    pub(super) adopted: bool,
    /// How the tree was made; none yet in a root that was only marked.
    pub(super) layout: Option<MarkerLayout>,
    /// Which names the tree has, with the layout.
    pub(super) names: Option<DirNames>,
    /// Steps of a run may have given files of the set a second name in it (`link`).
    pub(super) links: bool,
    /// The file that this stands in.
    at: TreePlace,
}

/// Where a marker stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct TreePlace {
    inode: u64,
    /// Nanoseconds since 1970, as text: JSON's numbers are too small.
    born: Option<String>,
    file_system: u64,
    device: u64,
    path: String,
}

/// Why a file of the marker's name is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Invalid {
    /// It is not what wmlrun writes.
    Bad(String),
    /// It is the marker of another directory.
    Copied {
        /// That directory, when it was marked.
        from: String,
    },
}

impl Marker {
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
            links: false,
            at: TreePlace::of(file, root)?,
        })
    }

    /// Puts it into its file, on the disk before anything that it speaks for.
    pub(super) fn write(&mut self, file: Fd) -> Result<(), Errno> {
        self.sequence += 1;
        let record = self.record().ok_or(Errno::NAMETOOLONG)?;
        let first = self.sequence == 1;
        let at = (self.sequence % 2) * RECORD as u64;
        // The first write takes the room of both: a change needs none.
        let (record, at) = if first { ([vec![b' '; RECORD], record].concat(), 0) } else { (record, at) };
        match fd::pwrite(file, &record, at)? {
            n if n == record.len() => fd::fsync(file),
            _ => Err(Errno::NOSPC),
        }
    }

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

    /// Reads the marker in an open file, and what there is to say about it.
    pub(super) fn read(file: Fd, root: &Path) -> Result<Result<(Self, Option<String>), Invalid>, Errno> {
        let mut text = vec![0; 2 * RECORD];
        let n = fd::pread(file, &mut text, 0)?;
        let marker = match parse(&text[..n]) {
            Ok(marker) => marker,
            Err(why) => return Ok(Err(Invalid::Bad(why))),
        };
        let here = TreePlace::of(file, root)?;
        if !marker.at.is(&here, fd::file_system_kind(file)?) {
            return Ok(Err(Invalid::Copied { from: marker.at.path }));
        }
        let note = (marker.at.device != here.device).then(|| {
            format!(
                "`{}` lies on another device than when it was made ({:#x}, now {:#x}): taken for the same file system",
                root.display(),
                marker.at.device,
                here.device
            )
        });
        Ok(Ok((marker, note)))
    }
}

impl TreePlace {
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

    /// Whether it is the same file. Device and file-system numbers may change from mount to mount.
    fn is(&self, here: &Self, kind: u64) -> bool {
        /// `statfs` of FUSE, CIFS and SMB2, whose servers may number a file anew at any time.
        const RENUMBERED: [u64; 3] = [0x6573_5546, 0xff53_4d42, 0xfe53_4d42];
        /// `statfs` of btrfs, of which a snapshot keeps the numbers and times of its files; the file system's id is the subvolume's.
        const SNAPSHOTS: u64 = 0x9123_683e;
        if kind == SNAPSHOTS && self.file_system != here.file_system && self.path != here.path {
            return false;
        }
        let same_birth = self.born.is_none() || here.born.is_none() || self.born == here.born;
        let numbered = self.inode == here.inode && same_birth;
        numbered || (RENUMBERED.contains(&kind) && self.path == here.path)
    }
}

/// The newest whole record.
fn parse(text: &[u8]) -> Result<Marker, String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.iter().all(|&byte| byte == 0) {
        return Err("it holds nothing but zeros".into());
    }
    let records = text.chunks(RECORD).filter_map(record);
    if let Some(marker) = records.max_by_key(|marker| marker.sequence) {
        return Ok(marker);
    }
    let earlier = serde_json::from_slice::<serde_json::Value>(text).is_ok_and(|json| json.get("format").is_some());
    Err(if earlier {
        "it was written by an earlier version of wmlrun".into()
    } else {
        "it is not what wmlrun writes".into()
    })
}

fn record(chunk: &[u8]) -> Option<Marker> {
    let text = std::str::from_utf8(chunk).ok().filter(|_| chunk.len() == RECORD)?;
    let (sum, text) = text.strip_prefix(MAGIC)?.split_once('\n')?;
    let text = text.trim_end_matches([' ', '\n']);
    let marker: Marker = serde_json::from_str(text).ok().filter(|_| sum == checksum(text.as_bytes()))?;
    (marker.format == FORMAT).then_some(marker)
}

fn checksum(text: &[u8]) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut sum, byte| {
        let _ = write!(sum, "{byte:02x}");
        sum
    })
}

/// Whether a file that was to become a marker may go: nothing is in it, or the beginning of one.
pub(super) fn is_unfinished(file: Fd) -> Result<bool, Errno> {
    let mut text = [0; 2 * RECORD];
    let n = fd::pread(file, &mut text, 0)?;
    let text = &text[..n];
    Ok(text.iter().all(|&byte| byte == b' ')
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
    fn a_marker_is_what_was_written_last() {
        let dir = tempfile::tempdir().unwrap();
        for changes in 1..5 {
            let (file, marker) = written(&dir.path().join("m"), changes);
            assert_eq!(read(&file, dir.path()), Ok(marker), "{changes}");
        }
    }

    #[test]
    fn a_write_that_is_cut_off_anywhere_leaves_the_marker_of_before() {
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
    fn anything_else_is_no_marker() {
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
        // The same bytes in another file.
        let copy = dir.path().join("copy");
        std::fs::write(&copy, &whole).unwrap();
        let copy = File::open(copy).unwrap();
        assert!(matches!(read(&copy, dir.path()), Err(Invalid::Copied { .. })));
    }
}
