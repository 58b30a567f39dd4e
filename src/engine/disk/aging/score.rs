//! The score of a file system's fragmentation: extents of files (`FIEMAP`), and a histogram of its free extents
//! (`GETFSMAP`).
//!
//! Only reads. A figure that the file system does not report is unknown, with the reason.

use super::record::{Figure, FileRuns, FileScore, FreeSpaceClass, FreeSpaceScore};
use super::steps::{Ager, Locations};
use crate::disk::error::Error;
use crate::disk::prepare::{Phase, Progress};
use crate::disk::root::Root;
use std::collections::BTreeMap;
use wml_os::extents;
use wml_os::{Errno, OFlags, fd};

/// Maximum number of files whose extents are read. Of more files, evenly spaced ones are examined.
const MAX_EXAMINED: u64 = 100_000;

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
