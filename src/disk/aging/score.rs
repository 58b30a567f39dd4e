//! The score of a file system's fragmentation: extents of files (`FIEMAP`), and a histogram of its free extents
//! (`GETFSMAP`).
//!
//! Only reads. A figure that the file system does not report is unknown, with the reason.

use super::steps::{Ager, Locations};
use crate::disk::error::Error;
use crate::disk::prepare::{Phase, Progress};
use crate::disk::root::Root;
use crate::fileset::content::BLOCK;
use crate::os::extents::{self, FileExtent};
use crate::os::{self, Errno, OFlags, fd};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of files whose extents are read. Of more files, evenly spaced ones are examined.
const MAX_EXAMINED: u64 = 100_000;

/// The extents of files. Extents that are adjacent on the device count as one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileScore {
    /// Files with data whose extents were read: all, or evenly spaced ones of very many.
    pub files: u64,
    /// Their extents.
    pub extents: u64,
    /// Files with several extents.
    pub fragmented: u64,
    /// Largest number of extents of a file.
    pub most: u64,
    /// Their blocks of 4 KiB.
    pub blocks: u64,
}

impl FileScore {
    /// Adds a file.
    fn add(&mut self, file: &FileRuns) {
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
struct FileRuns {
    runs: u64,
    bytes: u64,
    /// End of the last extent on the device.
    end: Option<u64>,
}

impl FileRuns {
    fn add(&mut self, extent: FileExtent) {
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
    /// Free bytes.
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
    /// The figure.
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
    fn unreported(what: &str, errno: Errno) -> Self {
        let (text, name) = (os::errno_text(errno.raw_os_error()), os::errno_name(errno.raw_os_error()));
        Self::Unknown(format!("the file system does not report {what}: {text} ({name})"))
    }
}

/// Determines the free extents of the file system of a root.
pub(super) fn free_space(root: &Root) -> Result<Figure<FreeSpaceScore>, Error> {
    let mut score = FreeSpaceScore::default();
    let mut classes: BTreeMap<u32, FreeSpaceClass> = BTreeMap::new();
    let mut open: Option<(u64, u64)> = None;
    let mut add = |bytes: u64| {
        let class = classes.entry(bytes.max(1).ilog2()).or_default();
        (class.extents, class.bytes) = (class.extents + 1, class.bytes + bytes);
        (score.extents, score.bytes) = (score.extents + 1, score.bytes + bytes);
        score.largest = score.largest.max(bytes);
    };
    // A file system reports the extents of each block group separately.
    let read = extents::free(root.fd, |start, length| match &mut open {
        Some((_, end)) if *end == start => *end += length,
        _ => {
            if let Some((first, end)) = open.replace((start, start + length)) {
                add(end - first);
            }
        }
    });
    if let Some((first, end)) = open {
        add(end - first);
    }
    match read {
        Ok(()) => {
            score.histogram =
                classes.into_iter().map(|(log, class)| FreeSpaceClass { from: 1 << log, ..class }).collect();
            Ok(Figure::Known(score))
        }
        Err(errno) if extents::is_unsupported(errno) => Ok(Figure::unreported("its free extents", errno)),
        Err(errno) => Err(Error::call(&root.set, "read the free extents of", &root.path, errno)),
    }
}

/// Determines the extents of the files of an aged tree after `steps` steps of its sequence.
pub(super) fn files(at: &Locations<'_>, steps: usize, progress: &dyn Progress) -> Result<Figure<FileScore>, Error> {
    let (sequence, entries) = (at.sequence, at.sequence.entries());
    let every = entries.div_ceil(MAX_EXAMINED).max(1) as usize;
    let (versions, filled) = (sequence.versions_before(steps), steps == sequence.steps().len());
    let exists = |i: &u64| sequence.file(*i, &versions, filled).is_some();
    let files: Vec<u64> = (0..entries).step_by(every).filter(exists).collect();
    progress.started(&at.root.set, Phase::Locate, files.len() as u64, 0);
    at.in_thread(progress, |ager| {
        let mut score = FileScore::default();
        for &i in files.iter().take_while(|_| ager.worker.halted().is_continue()) {
            match runs(ager, i)? {
                Ok(file) => score.add(&file),
                Err(e) if extents::is_unsupported(e) => return Ok(Figure::unreported("the extents of files", e)),
                Err(e) => return Err(ager.file_error(i, "read the extents of", e)),
            }
            ager.worker.tally.add(1, 0);
        }
        Ok(Figure::Known(score))
    })
}

/// Reads the extents of a file. The inner error is that of the call that reads them.
fn runs(ager: &mut Ager<'_>, i: u64) -> Result<Result<FileRuns, Errno>, Error> {
    let fd = ager.open(i, OFlags::RDONLY)?;
    let mut file = FileRuns::default();
    let read = extents::of_file(fd, |extent| file.add(extent));
    fd::close(fd);
    Ok(read.map(|()| file))
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
