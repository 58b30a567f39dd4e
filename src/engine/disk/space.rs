//! Free space on file systems: the check before files are created, and the monitoring during a run.
//!
//! Uses the figures of `statfs` only; which files take the space is not known here.

use super::error::Error;
use super::shortage::Shortage;
use crossbeam::channel::RecvTimeoutError;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use wml_os::fd::{self, Space};
use wml_os::{Fd, Mode, OFlags, limits, quiesce};
use wml_text::size;

/// Minimum free bytes that a run leaves on a file system of usual size; 1 % of its size if that is more.
const FLOOR: u64 = 256 << 20;
/// Total size in bytes below which a file system is considered small. 256 MiB would be too large a share of it.
const SMALL_FILE_SYSTEM: u64 = 5 << 30;
/// The usual allocation unit, in bytes.
const USUAL_UNIT: u64 = 4096;

/// Minimum time between two checks. A check takes one or two microseconds, so its cost is negligible at this interval.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum time between two checks, so that writes of other programs are noticed.
const MAX_INTERVAL: Duration = Duration::from_millis(100);
/// Stack size of a thread that watches, in bytes: it makes two system calls and formats a line.
pub(crate) const STACK: usize = 64 << 10;
/// `f_type` of NFS, CIFS, SMB2, Ceph, Lustre, 9P and FUSE.
const REMOTE: [u64; 7] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x0bd0_0bd0, 0x0102_1997, 0x6573_5546];
/// Upper bound of the rate at which data is written.
const BYTES_PER_NS: u64 = 16;

/// Returns the bytes that must stay free on a file system: the larger of 1 % and 256 MiB, or 5 % of a small file
/// system.
pub fn floor(space: &Space) -> u64 {
    if space.total < SMALL_FILE_SYSTEM { space.total / 20 } else { (space.total / 100).max(FLOOR) }
}

/// Returns the unit in which the file system of an open directory allocates space for files, in bytes.
pub(super) fn allocation_unit(dir: Fd) -> u64 {
    fd::statvfs(dir).map_or(USUAL_UNIT, |space| unit_of(&space, fd::file_system_kind(dir).unwrap_or(0)))
}

/// Returns the allocation unit of a file system whose `f_type` is `kind`.
fn unit_of(space: &Space, kind: u64) -> u64 {
    // The fragments of ZFS are smaller than what a file takes.
    let unit = space.fragment.max(space.block.min(USUAL_UNIT)).max(512);
    // The blocks of a server may be as large as a transfer. How it allocates space is not known.
    if is_remote(kind) { unit.min(USUAL_UNIT) } else { unit }
}

/// True if a file system with this `f_type` may be on a server.
pub(super) fn is_remote(kind: u64) -> bool {
    REMOTE.contains(&kind)
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

impl std::fmt::Display for LowSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (free, floor) = (size::format(self.free), size::format(self.floor));
        write!(f, "{} has {free} free, and {floor} must stay free", self.path.display())
    }
}

/// Monitors the free space of the file systems of a run.
#[derive(Clone, Debug)]
pub(crate) struct SpaceWatch {
    paths: Vec<PathBuf>,
}

impl SpaceWatch {
    /// Creates a monitor for the file systems of these directories. A directory that can't be examined is ignored.
    pub(crate) fn new<P: AsRef<Path>>(roots: impl IntoIterator<Item = P>) -> Self {
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
    pub(crate) fn check(&self) -> SpaceStatus {
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

/// Does work that writes below a directory. Sets `stop` when its file system is nearly full, and returns that as well.
///
/// # Errors
/// If the thread that watches the free space can't be started.
pub fn watched<T>(root: &Path, stop: &AtomicBool, work: impl FnOnce() -> T) -> std::io::Result<(T, Option<LowSpace>)> {
    let space_watch = SpaceWatch::new([root]);
    let (done, finished) = crossbeam::channel::bounded::<()>(0);
    std::thread::scope(|scope| {
        let watch = move || {
            loop {
                let SpaceStatus { low, wait } = space_watch.check();
                if low.is_some() {
                    stop.store(true, Relaxed);
                    return low;
                }
                if finished.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return None;
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("space".to_owned()).stack_size(STACK).spawn_scoped(scope, watch)?;
        let result = work();
        drop(done);
        Ok((result, thread.join().ok().flatten()))
    })
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SpaceStatus {
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

impl Demand {
    pub(super) fn need(&self) -> Need {
        Need { bytes: self.bytes, inodes: self.inodes, freed: self.freed }
    }
}

/// What trees on one file system need.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Need {
    /// Bytes of files and directories.
    pub(super) bytes: u64,
    /// Number of files and directories.
    pub(super) inodes: u64,
    /// Bytes and inodes that the removal of old trees will free.
    pub(super) freed: (u64, u64),
}

impl Need {
    /// Returns the sum of several needs.
    pub(super) fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            bytes: sum.bytes.saturating_add(one.bytes),
            inodes: sum.inodes.saturating_add(one.inodes),
            freed: (sum.freed.0.saturating_add(one.freed.0), sum.freed.1.saturating_add(one.freed.1)),
        })
    }

    /// Returns the bytes of memory for trees on tmpfs, where each inode also takes a kilobyte of kernel memory.
    pub(super) fn memory(self) -> u64 {
        const INODE: u64 = 1024;
        let taken = |bytes: u64, inodes: u64| bytes.saturating_add(inodes.saturating_mul(INODE));
        taken(self.bytes, self.inodes).saturating_sub(taken(self.freed.0, self.freed.1))
    }

    /// Returns what is short on a file system with this space. With `keep` the [`floor`] must stay free as well.
    pub(super) fn shortage(self, space: &Space, keep: bool) -> Option<Shortage> {
        let Self { bytes: needed, inodes, freed } = self;
        let floor = if keep { floor(space) } else { 0 };
        let free = space.free.saturating_add(freed.0);
        // ramfs has no limit and reports no size, as do tmpfs with `size=0` and servers of FUSE without `statfs`.
        if space.total > 0 && needed > 0 && needed.saturating_add(floor) > free {
            return Some(Shortage::Bytes { needed, free, floor });
        }
        let free = space.files_free.saturating_add(freed.1);
        (space.files > 0 && inodes > free).then_some(Shortage::Inodes { needed: inodes, free })
    }
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
        let Some(shortage) = Need::sum(on_device.iter().map(|d| d.need())).shortage(&space, keep) else { continue };
        let (sets, path) = (on_device.iter().map(|d| d.set.clone()).collect(), first.path.clone());
        return Err(match shortage {
            Shortage::Bytes { needed, free, floor } => Error::Space { sets, path, needed, free, floor },
            Shortage::Inodes { needed, free } => Error::Inodes { sets, path, needed, free },
            Shortage::Memory { needed, free } => Error::Memory { sets, what: "the files", needed, free },
        });
    }
    Ok(())
}

/// Returns an error when the sets do not fit on their file systems or into memory.
pub(super) fn check_with_memory(demands: &[Demand], keep: bool) -> Result<(), Error> {
    check(demands, keep)?;
    let (_, free) = limits::memory();
    let in_memory: Vec<&Demand> = demands.iter().filter(|d| quiesce::in_memory(&d.path)).collect();
    let needed = in_memory.iter().map(|d| d.need().memory()).fold(0, u64::saturating_add);
    if free > 0 && needed > free {
        let sets = in_memory.iter().map(|d| d.set.clone()).collect();
        return Err(Error::Memory { sets, what: "the files", needed, free });
    }
    Ok(())
}

/// Returns an error when a tree of so many files, directories and bytes, which is no file set of a script, does not fit
/// below a directory that exists.
pub fn check_tree(name: &str, path: &Path, files: u64, directories: u64, bytes: u64) -> Result<(), Error> {
    let dir = fd::open_path(path, OFlags::PATH, Mode::empty()).map_err(|e| Error::call(name, "open", path, e))?;
    let block = allocation_unit(dir);
    let device = fd::fstat(dir).map_or(0, |stat| stat.device);
    fd::close(dir);
    // Half a block is left over in each file.
    let blocks = files.saturating_mul(block / 2).saturating_add(directories.saturating_mul(block));
    let (bytes, inodes) = (bytes.saturating_add(blocks), files.saturating_add(directories));
    let demand = Demand { set: name.to_owned(), path: path.to_owned(), device, bytes, inodes, freed: (0, 0) };
    check_with_memory(&[demand], true)
}

#[cfg(test)]
mod tests {
    use super::{Space, unit_of};

    #[test]
    fn the_allocation_unit_is_the_fragment_unless_a_server_allocates() {
        const XFS: u64 = 0x5846_5342;
        const VFAT: u64 = 0x4d44;
        for (kind, block, fragment, unit) in [
            (0xef53, 1024, 1024, 1024),
            (XFS, 65_536, 65_536, 65_536),
            (VFAT, 32_768, 32_768, 32_768),
            // ZFS, and a file system that reports nothing.
            (0x2fc1_2fc1, 131_072, 512, 4096),
            (0, 0, 0, 512),
            // NFS and Ceph.
            (0x6969, 1 << 20, 1 << 20, 4096),
            (0x00c3_6400, 4 << 20, 4 << 20, 4096),
        ] {
            let space = Space { total: 1 << 30, free: 1 << 30, files: 0, files_free: 0, block, fragment };
            assert_eq!(unit_of(&space, kind), unit, "{kind:#x}");
        }
    }
}
