//! Threads and processes: descriptor tables, priorities, affinity, CPU time.

use super::fd::Fd;
use super::last_errno;
use rustix::io::Errno;

wml_text::named! {
    /// How a WML process got its descriptor table.
    pub enum DescriptorTable {
        /// `close_range` with `CLOSE_RANGE_UNSHARE`: a new table with only the standard streams.
        CloseRange = "close_range";
        /// `unshare(CLONE_FILES)`: a copy of the previous table.
        Unshare = "unshare";
        /// The kernel refused both: the table is shared with every other process of the run.
        Shared = "shared";
    }
}

/// Gives the calling thread, and the threads that it starts from now on, a separate descriptor table. Where the kernel
/// supports it, the new table has no descriptors above `keep`.
pub fn own_table(keep: Fd) -> DescriptorTable {
    // SAFETY: this closes descriptors in the new table only; the tables of other threads do not change. This thread
    // uses no descriptor from now on that was opened before, except for those up to `keep`.
    let rc = unsafe { libc::syscall(libc::SYS_close_range, keep + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if rc == 0 {
        return DescriptorTable::CloseRange;
    }
    // SAFETY: a copy of the table has no effect on other threads.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 { DescriptorTable::Unshare } else { DescriptorTable::Shared }
}

/// Adds `nice` to the niceness of the calling thread. On Linux, niceness is per thread and inherited by new threads.
pub fn nice(nice: i32) -> Result<(), Errno> {
    rustix::process::nice(nice).map(drop)
}

/// Sets the best-effort I/O priority of the calling thread, from 0 (highest) to 7 (lowest).
pub fn io_priority(level: u8) -> Result<(), Errno> {
    const WHO_PROCESS: i32 = 1;
    const CLASS_BEST_EFFORT: i32 = 2;
    let value = (CLASS_BEST_EFFORT << 13) | i32::from(level.min(7));
    // SAFETY: the arguments are integers.
    let rc = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    if rc == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Sets the timer slack of the calling thread to its minimum: by default, the kernel may wake sleepers 50 µs late. If
/// the kernel refuses, they wake up a little later; the lateness is recorded in any case.
pub fn precise_timers() {
    // SAFETY: this option takes an integer and affects the calling thread only.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
}

/// Binds the calling thread to one processor.
pub fn pin(cpu: usize) -> Result<(), Errno> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)
}

/// Whether [`processor`] is cheap; on other architectures it may be a system call.
pub const PROCESSOR_IS_CHEAP: bool = cfg!(target_arch = "x86_64");

/// Returns the number of the processor on which the calling thread runs. It may run on another one by the time of
/// return.
pub fn processor() -> usize {
    rustix::thread::sched_getcpu()
}

/// Returns the thread ID of the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Returns the kernel function in which a thread of this process waits (`/proc/…/wchan`). `None` if the kernel does not
/// show it.
pub fn wait_channel(tid: i32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/wchan")).ok()?;
    (!text.is_empty() && text != "0").then_some(text)
}

/// Returns the text of a file that the kernel makes, below `/proc` or `/sys`; an empty one if there is none.
pub fn kernel_text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn usage() -> libc::rusage {
    // SAFETY: `rusage` consists of integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `rusage`.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage
}

/// Returns the peak resident memory of this program in bytes; 0 if the kernel does not report it. `ru_maxrss` is not
/// used because it includes the peak of the process that started this one.
pub fn peak_memory() -> u64 {
    bytes_of(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), "VmHWM")
}

/// Returns the bytes that a field of a file in `/proc` has in the form `FIELD: 12 kB`; 0 if the text has no such field.
pub fn bytes_of(text: &str, field: &str) -> u64 {
    let kib = |line: &str| {
        line.strip_prefix(field)?.strip_prefix(':')?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    text.lines().find_map(kib).map_or(0, |kib| kib * 1024)
}

/// Returns the effective user ID.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the ID of this boot, which the kernel draws at each start of the machine. Returns an empty text when it is
/// unknown.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// Returns the ID of this installation of the operating system. `None` if it has none.
pub fn machine_id() -> Option<String> {
    const LENGTH: usize = 32;
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    // Before the first boot the file may be empty or have another text.
    Some(text.trim().to_owned()).filter(|id| id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the fields of `uname`: system name, node name, release, version and hardware name.
pub fn uname() -> [String; 5] {
    let uname = rustix::system::uname();
    [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()]
        .map(|text| text.to_string_lossy().into_owned())
}

/// Returns the parent process ID: a system call that does next to nothing.
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Returns the user and system time of this process in nanoseconds.
pub fn cpu_times() -> (u64, u64) {
    let usage = usage();
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

/// Converts a `timeval` to nanoseconds.
pub(super) fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Drops page cache, dentries and inodes of the whole machine. Needs root.
pub fn drop_caches() -> std::io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn fields_in_kib_are_found_by_their_whole_names() {
        let text = "WritebackTmp:  3 kB\nDirty:         8 kB\nWriteback:     4 kB\nHugePages:     5\n";
        let found = ["Dirty", "Writeback", "HugePages", "Mem"].map(|field| bytes_of(text, field));
        assert_eq!(found, [8 << 10, 4 << 10, 0, 0]);
    }

    #[test]
    fn the_kinds_of_tables_are_in_the_order_of_their_values() {
        assert!(DescriptorTable::ALL.iter().enumerate().all(|(at, table)| *table as usize == at));
    }

    #[test]
    fn a_separate_table_does_not_change_the_previous_one() {
        let file = tempfile::tempfile().expect("a temporary file");
        let fd = file.as_raw_fd();
        let table = std::thread::spawn(move || {
            let table = own_table(2);
            if table == DescriptorTable::CloseRange {
                assert!(super::super::fd::fstat(fd).is_err(), "not in the new table");
            }
            table
        })
        .join()
        .expect("the thread does not panic");
        assert_ne!(table, DescriptorTable::Shared, "this kernel supports separate tables");
        assert!(super::super::fd::fstat(fd).is_ok(), "still in the previous table");
    }
}
