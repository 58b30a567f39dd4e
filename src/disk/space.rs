//! Free space on file systems: the check before files are created, and the monitoring during a run.
//!
//! Uses the figures of `statfs` only; which files take the space is not known here.

use super::error::Error;
use crate::os::fd::{self, Space};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Minimum free bytes that a run leaves on a file system of usual size; 1 % of its size if that is more.
const FLOOR: u64 = 256 << 20;
/// Total size in bytes below which a file system is considered small. 256 MiB would be too large a share of it.
const SMALL_FILE_SYSTEM: u64 = 5 << 30;

/// Minimum time between two checks. A check takes one or two microseconds, so its cost is negligible at this interval.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum time between two checks, so that writes of other programs are noticed.
const MAX_INTERVAL: Duration = Duration::from_millis(100);
/// Upper bound of the rate at which data is written.
const BYTES_PER_NS: u64 = 16;

/// Returns the bytes that must stay free on a file system: the larger of 1 % and 256 MiB, or 5 % of a small file
/// system.
pub fn floor(space: &Space) -> u64 {
    if space.total < SMALL_FILE_SYSTEM { space.total / 20 } else { (space.total / 100).max(FLOOR) }
}

/// A file system that is nearly full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowSpace {
    /// The root of a file set on it.
    pub path: PathBuf,
    /// Free bytes.
    pub free: u64,
    /// Bytes that must stay free.
    pub floor: u64,
}

/// Monitors the free space of the file systems of a run.
#[derive(Clone, Debug)]
pub struct SpaceWatch {
    paths: Vec<PathBuf>,
}

impl SpaceWatch {
    /// Creates a monitor for the file systems of these directories. A directory that can't be examined is ignored.
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

    /// Checks all file systems, except those that report no size: they have no limit, or none that is known. Takes one
    /// or two microseconds per file system.
    pub fn check(&self) -> SpaceStatus {
        let mut status = SpaceStatus { low: None, wait: MAX_INTERVAL };
        for path in &self.paths {
            let Ok(space) = fd::statvfs_path(path) else { continue };
            if space.total == 0 {
                continue;
            }
            let floor = floor(&space);
            if space.free < floor && status.low.is_none() {
                status.low = Some(LowSpace { path: path.clone(), free: space.free, floor });
            }
            let nanoseconds = space.free.saturating_sub(floor) / BYTES_PER_NS;
            status.wait = status.wait.min(Duration::from_nanos(nanoseconds).max(MIN_INTERVAL));
        }
        status
    }
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpaceStatus {
    /// The first file system with less free space than must stay free.
    pub low: Option<LowSpace>,
    /// Time until the next check: a writer at memory speed can't exhaust the available space earlier.
    pub wait: Duration,
}

/// The space that one set is going to take.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) set: String,
    pub(super) path: PathBuf,
    pub(super) device: u64,
    /// Bytes of files and directories, rounded up to whole blocks.
    pub(super) bytes: u64,
    /// Number of files and directories.
    pub(super) inodes: u64,
    /// Bytes and inodes that the removal of the old tree will free.
    pub(super) freed: (u64, u64),
}

/// Returns an error when the sets do not fit on their file systems. With `keep` the [`floor`] must stay free as well.
pub(super) fn check(demands: &[Demand], keep: bool) -> Result<(), Error> {
    let mut devices: Vec<u64> = demands.iter().map(|d| d.device).collect();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        let on_device: Vec<&Demand> = demands.iter().filter(|d| d.device == device).collect();
        let Some(first) = on_device.first() else { continue };
        let Ok(space) = fd::statvfs_path(&first.path) else { continue };
        let (needed, inodes) =
            on_device.iter().fold((0_u64, 0_u64), |(b, i), d| (b.saturating_add(d.bytes), i.saturating_add(d.inodes)));
        let freed = on_device
            .iter()
            .fold((0_u64, 0_u64), |(b, i), d| (b.saturating_add(d.freed.0), i.saturating_add(d.freed.1)));
        let sets = || on_device.iter().map(|d| format!("file set `{}`", d.set)).collect::<Vec<_>>().join(" and ");
        let floor = if keep { floor(&space) } else { 0 };
        let free = space.free.saturating_add(freed.0);
        // ramfs has no limit and reports no size, as do tmpfs with `size=0` and servers of FUSE without `statfs`.
        if space.total > 0 && needed > 0 && needed.saturating_add(floor) > free {
            return Err(Error::Space { sets: sets(), path: first.path.clone(), needed, free, floor });
        }
        if space.files > 0 && inodes > space.files_free.saturating_add(freed.1) {
            let free = space.files_free.saturating_add(freed.1);
            return Err(Error::Inodes { sets: sets(), path: first.path.clone(), needed: inodes, free });
        }
    }
    Ok(())
}
