//! Detection of runs that make no progress because system calls on files block their threads.
//!
//! A call may also take long because its device is slow: the `fsync` of a disk with much to write. So a run is not
//! stuck as long as the devices below its file systems transfer data.
//!
//! The operations of each thread are read periodically from outside, so that threads publish nothing for this purpose.
//! Deliberately absent: threads that wait for one another, which the controller detects by the flowops in which they
//! wait.

use super::shared::{Fault, FaultKind, Shared, ThreadSlot};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use wml_os::blocked;
use wml_os::device::{self, TransferredBytes};
use wml_text::{count, duration};

/// Interval between two checks of the threads, in nanoseconds.
const CHECK_INTERVAL_NS: u64 = 500_000_000;

/// A run whose threads are idle for less than this is not stuck, however short the run is: xfs blocks a thread that
/// removes files for two seconds while it frees their inodes. In nanoseconds.
const MIN_STUCK_NS: u64 = 3_000_000_000;

/// A run of which a thread has been blocked for this long at its end is stuck, however long the run is. In nanoseconds.
const MAX_STUCK_NS: u64 = 10_000_000_000;

/// Devices that have transferred nothing for this long stand still. A disk with work to do completes several requests a
/// second. In nanoseconds.
const STANDSTILL_NS: u64 = 2_000_000_000;

/// The time of each thread's last known progress, and of that of the devices.
#[derive(Debug, Default)]
pub(super) struct ThreadActivity {
    /// The last check, in ticks.
    checked: u64,
    /// Operations of each thread at that time.
    ops: Vec<u64>,
    /// The approximate time at which that number last changed, in ticks.
    at: Vec<u64>,
    devices: DeviceActivity,
}

/// The time of the last known progress of the devices below the file sets.
#[derive(Debug, Default)]
struct DeviceActivity {
    /// The bytes that they had transferred at the last check. `None` before the first one, and without devices.
    transferred: Option<TransferredBytes>,
    /// The approximate time at which they last transferred data, in ticks. `None` if they have not yet.
    at: Option<u64>,
}

impl DeviceActivity {
    /// True if there are devices with counters.
    fn are_known(&self) -> bool {
        self.transferred.is_some()
    }

    /// Compares the devices' counters with those of the last check. Returns whether they have transferred data since,
    /// and notes the time `at` if so.
    fn update(&mut self, transferred: Option<TransferredBytes>, at: u64) -> bool {
        let before = std::mem::replace(&mut self.transferred, transferred);
        let moved = before.is_some() && transferred.is_some() && before != transferred;
        if moved {
            self.at = Some(at);
        }
        moved
    }
}

/// Returns the current counters of the devices. `None` if they are not known.
fn transferred(shared: &Shared) -> Option<TransferredBytes> {
    let devices = &shared.options.devices;
    if devices.is_empty() { None } else { device::transferred(devices) }
}

impl ThreadActivity {
    /// Checks which threads have made progress, if the last check is at least [`CHECK_INTERVAL_NS`] ago.
    pub(super) fn update(&mut self, shared: &Shared, from: u64, now: u64) {
        if self.ops.is_empty() {
            self.at = vec![from; shared.thread_slots.len()];
            self.ops = vec![0; shared.thread_slots.len()];
            self.checked = from;
            self.devices.update(transferred(shared), from);
        } else if shared.clock.ns(self.checked, now) < CHECK_INTERVAL_NS {
            return;
        }
        let between = self.checked + now.saturating_sub(self.checked) / 2;
        for ((thread_slot, ops), at) in shared.thread_slots.iter().zip(&mut self.ops).zip(&mut self.at) {
            let done = thread_slot.stats.total_ops();
            if std::mem::replace(ops, done) != done {
                *at = between;
            }
        }
        self.devices.update(transferred(shared), between);
        self.checked = now;
    }

    /// Returns the approximate tick at which a thread last completed an operation of a run from `from` to `end`. `ops`:
    /// its operations by then.
    pub(super) fn last_progress(&self, index: usize, ops: u64, from: u64, end: u64) -> u64 {
        let (before, at) = self.ops.get(index).zip(self.at.get(index)).map_or((0, from), |(ops, at)| (*ops, *at));
        if before == ops {
            return at.min(end);
        }
        // After the last check.
        let checked = if self.ops.is_empty() { from } else { self.checked };
        u64::midpoint(checked.min(end), end)
    }

    /// True if a thread that has not ended is blocked in a system call although the devices have transferred
    /// nothing since the last call.
    pub(super) fn is_held(&mut self, shared: &Shared) -> bool {
        self.is_one_held(shared, |_| true)
    }

    /// The same for one of the threads that are `meant`.
    fn is_one_held(&mut self, shared: &Shared, meant: impl Fn(&ThreadSlot) -> bool) -> bool {
        let sleeps = |s: &ThreadSlot| meant(s) && !s.done.load(SeqCst) && blocked::sleeps(s.tid.load(Relaxed));
        let moved = self.devices.update(transferred(shared), shared.clock.raw());
        !moved && shared.thread_slots.iter().any(sleeps)
    }

    /// True if a thread of a run that began at `from` and has stopped is blocked in a system call, the devices have
    /// transferred nothing since the last call, and it is not yet certain that the run is stuck. A thread that waits for
    /// asynchronous operations is not blocked: they are counted as late.
    pub(super) fn may_return(&mut self, shared: &Shared, from: u64) -> bool {
        let now = shared.clock.raw();
        let is_held = self.is_one_held(shared, |s| s.in_flight.load(Relaxed) == 0);
        self.update(shared, from, now);
        let idle = |at: u64| shared.clock.ns(at.max(from), now);
        let left = || shared.thread_slots.iter().zip(&self.at).filter(|(s, _)| !s.done.load(SeqCst));
        let longest = left().map(|(_, at)| idle(*at)).max();
        is_held && longest.is_some_and(|ns| ns < MAX_STUCK_NS)
    }

    /// Returns the fault, with the place of the longest block, if a run from `from` to `end` is stuck.
    pub(super) fn stuck(&mut self, shared: &Shared, from: u64, end: u64) -> Option<Fault> {
        let now = shared.clock.raw();
        self.update(shared, from, now);
        if self.devices.at.is_some_and(|at| shared.clock.ns(at.min(now), now) < STANDSTILL_NS) {
            return None;
        }
        // During the run, threads may wait for one another. After its end all of them have been woken, so a thread that
        // has not returned either waits for a processor or is blocked in a system call.
        let over = shared.gate.is_stopped();
        let held = |thread_slot: &ThreadSlot| {
            let tid = thread_slot.tid.load(Relaxed);
            !thread_slot.done.load(SeqCst) && if over { blocked::sleeps(tid) } else { blocked::path_of(tid).is_some() }
        };
        // After the end of a run, a blocked thread may wait for one that wants a processor and holds a lock of the file
        // system.
        let wants_processor = |thread_slot: &ThreadSlot| {
            !thread_slot.done.load(SeqCst) && !blocked::sleeps(thread_slot.tid.load(Relaxed))
        };
        if over && shared.thread_slots.iter().any(wants_processor) {
            return None;
        }
        let thread_slots = shared.thread_slots.iter().zip(&self.at).map(|(thread_slot, at)| {
            let idle = shared.clock.ns((*at).max(from), now);
            (thread_slot, idle, idle >= MIN_STUCK_NS && held(thread_slot))
        });
        let thread_slots: Vec<_> = thread_slots.collect();
        let limit = held_limit(shared.clock.ns(from, end), self.devices.are_known());
        let idle = thread_slots.iter().map(|(_, idle, held)| (*idle, *held));
        if !is_stuck(shared.clock.ns(from, end), limit, idle) {
            return None;
        }
        let held = thread_slots.iter().filter(|(_, _, held)| *held).count();
        let (thread_slot, idle, _) =
            thread_slots.iter().filter(|(_, _, held)| *held).max_by_key(|(_, idle, _)| *idle)?;
        let thread = &shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
        let what = format!(
            "{held} of {} are blocked in a system call, the longest for {}",
            count::count(shared.thread_slots.len() as u64, "thread"),
            duration::seconds(*idle as f64 / 1e9)
        );
        let help = "the file system or its device does not answer: see the kernel's log";
        Some(Fault {
            flowop: Some(thread.first + thread_slot.at.load(Relaxed) as usize),
            path: blocked::path_of(thread_slot.tid.load(Relaxed)).map(|path| path.display().to_string()),
            ..Fault::plain(FaultKind::Stuck, what, help)
        })
    }
}

/// Returns the time after which one blocked thread makes a run stuck: half of the run. Where the devices say that they
/// stand still, [`MAX_STUCK_NS`] are enough. A network file system has none, and a flush of it may take longer.
fn held_limit(measured_ns: u64, knows_devices: bool) -> u64 {
    (measured_ns / 2).clamp(MIN_STUCK_NS, if knows_devices { MAX_STUCK_NS } else { u64::MAX })
}

/// True if a run is stuck. `idle` has, for each thread, the time without progress until the end of the run in
/// nanoseconds, and whether a system call still blocks it. The run is stuck if all threads were idle for the last
/// quarter of the time, or for [`MAX_STUCK_NS`], or a blocked one for `held_limit`.
fn is_stuck(measured_ns: u64, held_limit: u64, idle: impl Iterator<Item = (u64, bool)> + Clone) -> bool {
    let longest = idle.clone().filter(|(_, held)| *held).map(|(ns, _)| ns).max();
    let shortest = idle.map(|(ns, _)| ns).min();
    let (Some(longest), Some(shortest)) = (longest, shortest) else { return false };
    longest >= held_limit || shortest >= (measured_ns / 4).clamp(MIN_STUCK_NS, MAX_STUCK_NS)
}

#[cfg(test)]
mod tests {
    use super::{DeviceActivity, ThreadActivity, held_limit, is_stuck};
    use wml_os::device::TransferredBytes;

    #[test]
    fn devices_are_active_when_their_counters_change() {
        let bytes = |written| Some(TransferredBytes { read: 1, written });
        let mut devices = DeviceActivity::default();
        assert!(!devices.update(bytes(5), 10), "the first check has nothing to compare with");
        assert!(!devices.update(bytes(5), 20));
        assert_eq!(devices.at, None);
        assert!(devices.update(bytes(6), 30));
        assert!(!devices.update(bytes(6), 40));
        assert_eq!(devices.at, Some(30));
        assert!(!devices.update(None, 50) && !devices.update(bytes(7), 60), "counters that can't be read");
        assert_eq!(devices.at, Some(30));
    }

    #[test]
    fn the_last_progress_is_that_of_the_last_change() {
        let none = ThreadActivity::default();
        assert_eq!((none.last_progress(0, 0, 10, 120), none.last_progress(0, 3, 10, 120)), (10, 65));
        let activity = ThreadActivity { checked: 100, ops: vec![5, 7], at: vec![60, 80], ..ThreadActivity::default() };
        assert_eq!(activity.last_progress(0, 5, 10, 120), 60);
        assert_eq!(activity.last_progress(1, 8, 10, 120), 110, "since the check");
        assert_eq!(activity.last_progress(1, 8, 10, 90), 90, "checked after the end");
    }

    #[test]
    fn a_run_is_stuck_if_its_threads_were_idle_in_its_last_part() {
        let with = |seconds: f64, knows_devices: bool, threads: &[(f64, bool)]| {
            let measured = (seconds * 1e9) as u64;
            let idle = threads.iter().map(|(idle, held)| ((idle * 1e9) as u64, *held));
            is_stuck(measured, held_limit(measured, knows_devices), idle)
        };
        let stuck = |seconds: f64, threads: &[(f64, bool)]| with(seconds, true, threads);
        assert!(!stuck(10.0, &[(9.0, false), (9.0, false)]), "they waited for one another, and have returned");
        assert!(stuck(10.0, &[(4.9, true), (4.9, true)]), "all hung half-way");
        assert!(!stuck(10.0, &[(2.0, true), (2.0, true)]), "a slow call at the end");
        assert!(stuck(10.0, &[(5.1, true), (0.1, false)]), "one hung for half of the time");
        assert!(!stuck(10.0, &[(4.0, true), (0.1, false)]), "one hung for less");
        assert!(!stuck(1.0, &[(1.3, true)]), "a short run with a slow call");
        assert!(stuck(600.0, &[(10.3, true)]) && !stuck(600.0, &[(9.0, true)]));
        assert!(stuck(600.0, &[(10.3, true), (0.3, false)]), "one hung at the end of a long run");
        assert!(!stuck(600.0, &[(9.0, true), (0.3, false)]));
        assert!(!stuck(600.0, &[(300.0, false), (0.3, false)]), "it has returned");
        assert!(!with(600.0, false, &[(12.0, true), (0.3, false)]), "a slow flush of a network file system");
        assert!(with(600.0, false, &[(301.0, true), (0.3, false)]));
    }
}
