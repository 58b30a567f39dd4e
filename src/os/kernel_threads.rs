//! Processor time of the kernel's threads, which work for file systems, loop devices and write-back. In a container with
//! process IDs of its own there are none.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The flag of a thread of the kernel (`PF_KTHREAD` in its source).
const PF_KTHREAD: u64 = 0x0020_0000;

/// The processor times of all threads of the kernel, by process ID, in units of 1/100 s.
#[derive(Clone, Debug, Default)]
pub struct KernelThreads(BTreeMap<u32, u64>);

/// The shortest run for which the times are read, since they are counted in units of 10 ms.
const SHORTEST: Duration = Duration::from_secs(1);

impl KernelThreads {
    /// Reads the times before a run of this length. Reads none before a short one.
    pub fn before(length: Option<Duration>) -> Self {
        if length.is_some_and(|length| length < SHORTEST) { Self::default() } else { Self::now() }
    }

    /// Returns the time that the threads have used since this reading, in seconds; `None` if it read none.
    pub fn seconds_since(&self) -> Option<f64> {
        if self.0.is_empty() { None } else { Self::now().seconds_after(self) }
    }

    /// Reads the times of all threads. Takes about 20 µs for each process of the machine, so it is not for the time of a
    /// measurement.
    fn now() -> Self {
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let time = |id: u32| Some((id, kernel_time(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?));
        Self(ids.filter_map(time).collect())
    }

    /// Returns the time that the threads have used since `before`, in seconds; `None` if no thread can be seen. The time of
    /// a thread that has ended since is not known, and counts as 0.
    fn seconds_after(&self, before: &Self) -> Option<f64> {
        let used = |(id, time): (&u32, &u64)| time.saturating_sub(before.0.get(id).copied().unwrap_or(0));
        (!self.0.is_empty()).then(|| self.0.iter().map(used).sum::<u64>() as f64 / 100.0)
    }
}

/// Parses `/proc/PID/stat` (`proc_pid_stat(5)`). Returns the user and system time of a thread of the kernel, and
/// `None` for other processes.
fn kernel_time(stat: &str) -> Option<u64> {
    // The name in parentheses may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |n: usize| fields.get(n)?.parse::<u64>().ok();
    let is_kernel = number(6)? & PF_KTHREAD != 0;
    is_kernel.then(|| Some(number(11)? + number(12)?))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_of_the_kernel_count() {
        let kernel = "31 (kworker/u8:1) S) I 2 0 0 0 -1 69238880 0 0 0 0 7 35 0 0 20 0 1 0 42";
        assert_eq!(kernel_time(kernel), Some(42));
        assert_eq!(kernel_time("77 (a) S 1 77 77 0 -1 4194560 1 2 3 4 7 35 0 0 20 0 1 0 42"), None);
        // In a container, process 2 may be a shell.
        assert_eq!(kernel_time("77 (a) S 2 77 77 0 -1 4194560 1 2 3 4 7 35 0 0 20 0 1 0 42"), None);
        assert_eq!((kernel_time(""), kernel_time("77 (a) S 2")), (None, None));
    }

    #[test]
    fn the_time_since_includes_new_threads() {
        let of = |times: &[(u32, u64)]| KernelThreads(times.iter().copied().collect());
        let (before, after) = (of(&[(3, 100), (4, 50)]), of(&[(3, 150), (9, 25)]));
        assert_eq!(after.seconds_after(&before), Some(0.75));
        assert_eq!(of(&[]).seconds_after(&before), None);
    }
}
