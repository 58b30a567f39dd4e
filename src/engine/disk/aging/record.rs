//! The figures of an aging, and what the marker records of it.

use crate::fileset::content::BLOCK;
use serde::{Deserialize, Serialize};
use wml_os::extents::FileExtent;
use wml_os::{self as os, Errno};

/// The parameters and the progress of an aging, in the marker of its root.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(in crate::disk) struct AgingRecord {
    /// The requested fullness, as text.
    pub(super) to: String,
    pub(super) rounds: u32,
    pub(super) seed: u64,
    /// Capacity of the file system at the start, in bytes.
    pub(super) capacity: u64,
    /// Bytes to reach.
    pub(super) bytes: u64,
    /// Number of completed steps.
    pub(super) steps: usize,
    /// Free extents at the start.
    pub(super) free_at_start: Figure<FreeSpaceScore>,
    /// Extents of the files of the first source trees. `None` before they are complete.
    pub(super) first_trees: Option<Figure<FileScore>>,
}

/// The extents of files. Extents that are adjacent on the device count as one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileScore {
    /// Files with data whose extents were read: all, or evenly spaced ones of very many.
    pub files: u64,
    pub extents: u64,
    /// Files with several extents.
    pub fragmented: u64,
    /// Largest number of extents of a file.
    pub most: u64,
    /// Their blocks of 4 KiB.
    pub blocks: u64,
}

impl FileScore {
    pub(super) fn add(&mut self, file: &FileRuns) {
        if file.runs > 0 {
            self.files += 1;
            self.extents += file.runs;
            self.fragmented += u64::from(file.runs > 1);
            self.most = self.most.max(file.runs);
            self.blocks += file.bytes.div_ceil(BLOCK as u64);
        }
    }

    /// Returns the mean number of extents per file. `None` without files.
    pub fn extents_per_file(&self) -> Option<f64> {
        (self.files > 0).then(|| self.extents as f64 / self.files as f64)
    }

    /// Returns the share of the blocks, from the second one of each file on, that directly follow their predecessor on
    /// the device: 1 without any fragmentation. `None` when no file has two blocks.
    pub fn contiguous(&self) -> Option<f64> {
        let pairs = self.blocks.saturating_sub(self.files);
        (pairs > 0).then(|| 1.0 - (self.extents - self.files) as f64 / pairs as f64)
    }
}

/// The runs of adjacent extents of a file.
#[derive(Default)]
pub(super) struct FileRuns {
    runs: u64,
    bytes: u64,
    /// End of the last extent on the device.
    end: Option<u64>,
}

impl FileRuns {
    pub(super) fn add(&mut self, extent: FileExtent) {
        let adjacent = self.runs > 0 && extent.physical.is_some() && extent.physical == self.end;
        self.runs += u64::from(!adjacent);
        self.bytes += extent.length;
        self.end = extent.physical.map(|start| start + extent.length);
    }
}

/// The free extents of a file system.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FreeSpaceScore {
    /// Number of free extents.
    pub extents: u64,
    pub bytes: u64,
    /// Bytes of the largest free extent.
    pub largest: u64,
    /// Extents by size.
    pub histogram: Vec<FreeSpaceClass>,
}

/// The free extents of similar size.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FreeSpaceClass {
    /// Least size in bytes: a power of two. The size is less than twice as large.
    pub from: u64,
    /// Number of extents.
    pub extents: u64,
    /// Bytes of the extents.
    pub bytes: u64,
}

/// A figure, or the reason why it is unknown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure<T> {
    Known(T),
    /// It is unknown, for this reason.
    Unknown(String),
}

impl<T> Figure<T> {
    /// Returns the figure. `None` when it is unknown.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(figure) => Some(figure),
            Self::Unknown(_) => None,
        }
    }

    /// Creates an unknown figure after an error of the call that reads it.
    pub(super) fn unreported(what: &str, errno: Errno) -> Self {
        let (text, name) = (os::errno_text(errno.raw_os_error()), os::errno_name(errno.raw_os_error()));
        Self::Unknown(format!("the file system does not report {what}: {text} ({name})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(files: &[&[(u64, u64)]]) -> FileScore {
        let mut score = FileScore::default();
        for file in files {
            let mut runs = FileRuns::default();
            for &(start, blocks) in *file {
                let block = BLOCK as u64;
                runs.add(FileExtent { physical: Some(start * block), length: blocks * block });
            }
            score.add(&runs);
        }
        score
    }

    #[test]
    fn adjacent_extents_count_as_one() {
        let adjacent = score(&[&[(10, 2), (12, 3)], &[(20, 1)], &[]]);
        assert_eq!(adjacent, FileScore { files: 2, extents: 2, fragmented: 0, most: 1, blocks: 6 });
        assert_eq!((adjacent.extents_per_file(), adjacent.contiguous()), (Some(1.0), Some(1.0)));
        let apart = score(&[&[(10, 2), (13, 2), (9, 1)], &[(20, 1)]]);
        assert_eq!(apart, FileScore { files: 2, extents: 4, fragmented: 1, most: 3, blocks: 6 });
        assert_eq!((apart.extents_per_file(), apart.contiguous()), (Some(2.0), Some(0.5)));
        assert_eq!((score(&[]).extents_per_file(), score(&[&[(3, 1)]]).contiguous()), (None, None));
    }

    #[test]
    fn data_inside_of_metadata_is_one_extent() {
        let mut runs = FileRuns::default();
        runs.add(FileExtent { physical: None, length: 700 });
        assert_eq!((runs.runs, runs.bytes, runs.end), (1, 700, None));
    }
}
