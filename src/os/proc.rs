//! Threads and processes: descriptor tables, priorities, affinity, CPU time.

use super::fd::Fd;
use rustix::io::Errno;

/// How a WML process got a descriptor table of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DescriptorTable {
    /// `close_range` with `CLOSE_RANGE_UNSHARE`: a fresh table, with only the standard streams in it.
    CloseRange,
    /// `unshare(CLONE_FILES)`: a copy of the table.
    Unshare,
    /// The kernel gave none: it is shared with every other process of the run.
    Shared,
}

/// Gives the calling thread, and the threads that it starts from now on, a descriptor table of its own. Descriptors above
/// `keep` are not in the new table (where the kernel can do that).
pub fn own_table(keep: Fd) -> DescriptorTable {
    // SAFETY: closes descriptors of the new table only; the tables of all other threads stay as they are, and nothing that
    // this thread runs from here on uses a descriptor that was opened before.
    let rc = unsafe { libc::syscall(libc::SYS_close_range, keep + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if rc == 0 {
        return DescriptorTable::CloseRange;
    }
    // SAFETY: a copy of the table changes nothing for anybody else.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 { DescriptorTable::Unshare } else { DescriptorTable::Shared }
}

/// Adds `nice` to the calling thread's niceness (on Linux it is the thread's, and inherited by those it starts).
pub fn nice(nice: i32) -> Result<(), Errno> {
    rustix::process::nice(nice).map(drop)
}

/// Sets the calling thread's best-effort I/O priority, 0 (first) to 7 (last).
pub fn io_priority(level: u8) -> Result<(), Errno> {
    const WHO_PROCESS: i32 = 1;
    const CLASS_BEST_EFFORT: i32 = 2;
    let value = (CLASS_BEST_EFFORT << 13) | i32::from(level.min(7));
    // SAFETY: plain numbers in, an error number out.
    let rc = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    if rc == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Asks for the calling thread to be woken on time: by default the kernel may let sleepers lie 50 µs longer. Where it refuses,
/// they wake a little later, and their lateness is recorded all the same.
pub fn precise_timers() {
    // SAFETY: sets a number of the calling thread, no memory is involved.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
}

/// Binds the calling thread to one processor.
pub fn pin(cpu: usize) -> Result<(), Errno> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)
}

/// Whether [`processor`] costs next to nothing: elsewhere it may be a system call.
pub const PROCESSOR_IS_CHEAP: bool = cfg!(target_arch = "x86_64");

/// The processor that the calling thread runs on, or ran on a moment ago.
pub fn processor() -> usize {
    rustix::thread::sched_getcpu()
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Where in the kernel a thread of this process waits (`/proc/…/wchan`), if the kernel says.
pub fn wait_channel(tid: i32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/wchan")).ok()?;
    (!text.is_empty() && text != "0").then_some(text)
}

fn usage() -> libc::rusage {
    // SAFETY: an all-zero rusage is a valid one, and the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage
}

/// The most memory that this program has had resident so far, in bytes; 0 if the kernel does not tell. `ru_maxrss` would hold that of
/// the process that started it as well.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    peak.unwrap_or(0) * 1024
}

/// The user that this program acts as.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// What the kernel says of itself: name of the system, name of the machine, release, version, and hardware.
pub fn uname() -> [String; 5] {
    let uname = rustix::system::uname();
    [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()]
        .map(|text| text.to_string_lossy().into_owned())
}

/// The number of the process that started this one: a system call that does next to nothing.
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// CPU time of this process so far: user and system, in nanoseconds.
pub fn cpu_times() -> (u64, u64) {
    let usage = usage();
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

/// A time of the kernel's, in nanoseconds.
pub(super) fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Drops page cache, dentries and inodes of the whole machine; needs root.
pub fn drop_caches() -> std::io::Result<()> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_table_of_its_own_leaves_ours_alone() {
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
        .expect("the thread ends well");
        assert_ne!(table, DescriptorTable::Shared, "this kernel can do it");
        assert!(super::super::fd::fstat(fd).is_ok(), "still in ours");
    }
}
