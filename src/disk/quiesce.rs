//! Waiting until what was written is on the disks: without it the first seconds of a run measure the population.
//!
//! `syncfs` brings down what one file system has; then dirty and writeback pages of the machine are watched until they are
//! few or fall no more (somebody else may go on writing). Which files it is for is not known here.

use crate::os::{self, fd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest wait after `syncfs`.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Dirty bytes that any machine has.
const FEW: u64 = 8 << 20;
/// If they have not fallen for so long, they will not.
const FLAT: Duration = Duration::from_millis(600);

/// The outcome of [`quiesce`].
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Quiesced {
    /// Seconds that `syncfs` and the wait took.
    pub seconds: f64,
    /// Bytes dirty or being written in the whole machine before.
    pub dirty_before: u64,
    /// And after.
    pub dirty_after: u64,
    /// The wait ran out: pages were still being written.
    pub ran_out: bool,
}

/// Bytes that the whole machine has yet to write: dirty pages, and those under way.
pub fn dirty_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    info.lines()
        .filter_map(|line| line.strip_prefix("Dirty:").or_else(|| line.strip_prefix("Writeback:")))
        .filter_map(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .sum::<u64>()
        * 1024
}

/// Whether a directory lies in memory: nothing there is ever dirty.
pub fn in_memory(dir: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let Ok(fd) = fd::open_path(dir, crate::os::OFlags::PATH, crate::os::Mode::empty()) else { return false };
    let kind = fd::file_system_kind(fd);
    fd::close(fd);
    matches!(kind, Ok(TMPFS | RAMFS))
}

/// Writes back the file systems that these directories lie on, and waits for calm. A stop ends the wait, not `syncfs`.
pub fn quiesce<P: AsRef<Path>>(dirs: &[P], stop: &AtomicBool) -> Result<Quiesced, (usize, os::Errno)> {
    let start = Instant::now();
    let mut quiesced = Quiesced { dirty_before: dirty_bytes(), ..Quiesced::default() };
    let mut done = Vec::new();
    let mut on_disk = false;
    for (at, dir) in dirs.iter().enumerate() {
        let dir = dir.as_ref();
        let device = fd::stat(dir).map_err(|e| (at, e))?.device;
        if done.contains(&device) || in_memory(dir) {
            continue;
        }
        done.push(device);
        on_disk = true;
        let fd = fd::open_path(dir, super::walk::LIST, crate::os::Mode::empty()).map_err(|e| (at, e))?;
        let synced = fd::syncfs(fd);
        fd::close(fd);
        synced.map_err(|e| (at, e))?;
    }
    if on_disk {
        quiesced.ran_out = !calm(stop);
    }
    quiesced.dirty_after = dirty_bytes();
    quiesced.seconds = start.elapsed().as_secs_f64();
    Ok(quiesced)
}

/// Waits until little is dirty, or no less than a while ago. `false` if that did not come.
fn calm(stop: &AtomicBool) -> bool {
    let start = Instant::now();
    let (mut least, mut since) = (u64::MAX, start);
    loop {
        let dirty = dirty_bytes();
        if dirty <= FEW || stop.load(Ordering::Relaxed) {
            return true;
        }
        // A twentieth less counts as falling.
        if dirty < least - least / 20 {
            (least, since) = (dirty, Instant::now());
        } else if since.elapsed() >= FLAT {
            return true;
        }
        if start.elapsed() >= PATIENCE {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}
