//! Room on file systems: enough before anything is made, and a watch that a run leaves some.
//!
//! Looks at figures of the system only; whose files take the room is not known here.

use super::error::Error;
use crate::os::fd::{self, Space};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Free bytes that a run leaves on a file system of usual size, or 1 % if that is more.
const FLOOR: u64 = 256 << 20;
/// Below this total a file system is a small image: 256 MiB would be too much of it.
const SMALL: u64 = 5 << 30;

/// A look costs a microsecond or two: no more often than that is nothing, and so often that what others write is seen.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(100);
/// What nobody writes faster than.
const BYTES_PER_NS: u64 = 16;

/// Bytes that must stay free.
pub fn floor(space: &Space) -> u64 {
    if space.total < SMALL { space.total / 20 } else { (space.total / 100).max(FLOOR) }
}

/// A file system that is nearly full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowSpace {
    /// The root of a file set on it.
    pub path: PathBuf,
    /// Bytes that are free.
    pub free: u64,
    /// Bytes that must stay free.
    pub floor: u64,
}

/// Looks at the file systems of a run while it runs.
#[derive(Clone, Debug)]
pub struct SpaceWatch {
    paths: Vec<PathBuf>,
}

impl SpaceWatch {
    /// The file systems of these directories, each once. One that can't be looked at is left out.
    pub fn new<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Self {
        let mut devices = Vec::new();
        let mut paths = Vec::new();
        for root in roots {
            let root = root.as_ref();
            if let Ok(stat) = fd::stat(root)
                && !devices.contains(&stat.device)
            {
                devices.push(stat.device);
                paths.push(root.to_owned());
            }
        }
        Self { paths }
    }

    /// The first file system that has less free than must stay free, and when to look again. A microsecond or two for each.
    pub fn look(&self) -> Room {
        let mut room = Room { low: None, wait: LONGEST };
        for path in &self.paths {
            let Ok(space) = fd::statvfs_path(path) else { continue };
            let floor = floor(&space);
            if space.total > 0 && space.free < floor && room.low.is_none() {
                room.low = Some(LowSpace { path: path.clone(), free: space.free, floor });
            }
            let nanoseconds = space.free.saturating_sub(floor) / BYTES_PER_NS;
            room.wait = room.wait.min(Duration::from_nanos(nanoseconds).max(SHORTEST));
        }
        room
    }
}

/// What a look found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// A file system that is nearly full.
    pub low: Option<LowSpace>,
    /// Until a writer at memory's speed could have used up what may be used.
    pub wait: Duration,
}

/// What one set is going to take.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) set: String,
    pub(super) path: PathBuf,
    pub(super) device: u64,
    /// Bytes of files, whole blocks.
    pub(super) bytes: u64,
    /// Files and directories.
    pub(super) inodes: u64,
    /// Bytes and inodes that will be free when the old tree is gone.
    pub(super) freed: (u64, u64),
}

/// Whether all of it fits; `keep` says whether the floor must stay free as well.
pub(super) fn check(demands: &[Demand], keep: bool) -> Result<(), Error> {
    let mut devices: Vec<u64> = demands.iter().map(|d| d.device).collect();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        let here: Vec<&Demand> = demands.iter().filter(|d| d.device == device).collect();
        let Some(first) = here.first() else { continue };
        let Ok(space) = fd::statvfs_path(&first.path) else { continue };
        let (needed, inodes) =
            here.iter().fold((0_u64, 0_u64), |(b, i), d| (b.saturating_add(d.bytes), i.saturating_add(d.inodes)));
        let freed =
            here.iter().fold((0_u64, 0_u64), |(b, i), d| (b.saturating_add(d.freed.0), i.saturating_add(d.freed.1)));
        let sets = || here.iter().map(|d| format!("file set `{}`", d.set)).collect::<Vec<_>>().join(" and ");
        let floor = if keep { floor(&space) } else { 0 };
        let free = space.free.saturating_add(freed.0);
        if needed > 0 && needed.saturating_add(floor) > free {
            return Err(Error::Space { sets: sets(), path: first.path.clone(), needed, free, floor });
        }
        if space.files > 0 && inodes > space.files_free.saturating_add(freed.1) {
            let free = space.files_free.saturating_add(freed.1);
            return Err(Error::Inodes { sets: sets(), path: first.path.clone(), needed: inodes, free });
        }
    }
    Ok(())
}
