//! Waiting until written data is on the disks. Without it the first seconds of a run would measure the population.
//!
//! `syncfs` writes back the dirty pages of one file system. Then the dirty and writeback pages of the whole machine are
//! polled until they are few, or no longer decrease because other programs keep writing. The files are not known here.

use crate::{Errno, Mode, OFlags, fd, proc};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum wait after `syncfs`.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Dirty bytes that are normal on an idle machine.
const DIRTY_BASELINE: u64 = 8 << 20;
/// Time without a decrease of the dirty bytes after which no further decrease is expected.
const STALL_TIME: Duration = Duration::from_millis(600);

/// The outcome of [`quiesce`].
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Quiesced {
    /// Duration of `syncfs` and the wait, in seconds.
    pub seconds: f64,
    /// Dirty and writeback bytes of the whole machine before.
    pub dirty_before: u64,
    /// Dirty and writeback bytes of the whole machine afterwards.
    pub dirty_after: u64,
    /// Whether the wait timed out while pages were still being written.
    pub ran_out: bool,
}

/// Returns the bytes of the whole machine that have yet to be written: dirty pages and pages under writeback.
pub fn dirty_bytes() -> u64 {
    let info = proc::kernel_text("/proc/meminfo");
    ["Dirty", "Writeback"].into_iter().map(|field| proc::bytes_of(&info, field)).sum()
}

/// True if a directory is on tmpfs or ramfs, which have no dirty pages.
pub fn in_memory(dir: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let Ok(fd) = fd::open_path(dir, OFlags::PATH, Mode::empty()) else { return false };
    let kind = fd::file_system_kind(fd);
    fd::close(fd);
    matches!(kind, Ok(TMPFS | RAMFS))
}

/// Writes back the file systems of these directories, and waits until the writeback of the machine has ended or
/// stalled. `stop` ends the wait, but not a `syncfs` in progress.
///
/// An error contains the index of the directory. The other file systems are written back nevertheless, and the first
/// error is returned.
pub fn quiesce<P: AsRef<Path>>(dirs: &[P], stop: &AtomicBool) -> Result<Quiesced, (usize, Errno)> {
    let start = Instant::now();
    let mut quiesced = Quiesced { dirty_before: dirty_bytes(), ..Quiesced::default() };
    let (devices, error) = write_back_all(dirs);
    if !devices.is_empty() {
        quiesced.ran_out = !wait_for_writeback(stop);
    }
    quiesced.dirty_after = dirty_bytes();
    quiesced.seconds = start.elapsed().as_secs_f64();
    error.map_or(Ok(quiesced), Err)
}

/// Writes back the file systems of directories. Returns the device numbers of those that are not in memory, and the
/// first error with the index of its directory.
fn write_back_all<P: AsRef<Path>>(dirs: &[P]) -> (Vec<u64>, Option<(usize, Errno)>) {
    let (mut done, mut error) = (Vec::new(), None);
    for (at, dir) in dirs.iter().enumerate() {
        if let Err(e) = write_back(dir.as_ref(), &mut done) {
            error.get_or_insert((at, e));
        }
    }
    (done, error)
}

/// Writes back the file system of a directory, unless it is one of the devices that are `done`, or is in memory.
fn write_back(dir: &Path, done: &mut Vec<u64>) -> Result<(), Errno> {
    let device = fd::stat(dir)?.device;
    if done.contains(&device) || in_memory(dir) {
        return Ok(());
    }
    done.push(device);
    let fd = fd::open_path(dir, OFlags::RDONLY.union(OFlags::DIRECTORY), Mode::empty())?;
    let synced = fd::syncfs(fd);
    fd::close(fd);
    synced
}

/// Waits until few bytes are dirty, or their number no longer decreases. Returns `false` on a timeout.
fn wait_for_writeback(stop: &AtomicBool) -> bool {
    let start = Instant::now();
    let (mut least, mut since) = (u64::MAX, start);
    loop {
        let dirty = dirty_bytes();
        if dirty <= DIRTY_BASELINE || stop.load(Ordering::Relaxed) {
            return true;
        }
        // A decrease by 5 % counts.
        if dirty < least - least / 20 {
            (least, since) = (dirty, Instant::now());
        } else if since.elapsed() >= STALL_TIME {
            return true;
        }
        if start.elapsed() >= MAX_WAIT {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_missing_directory_does_not_keep_the_others_from_being_written_back() {
        let dir = tempfile::tempdir().unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (devices, error) = write_back_all(&[dir.path().join("missing").as_path(), here]);
        assert_eq!(error, Some((0, Errno::NOENT)));
        assert_eq!(devices.len(), usize::from(!in_memory(here)));
    }
}
