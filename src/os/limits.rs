//! Resource limits of this process: descriptors, memory, processors.

use super::cgroup;
use super::proc::bytes_of;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Raises the soft limit of open files to the hard limit, and the hard limit to `wanted` where permitted. Returns the
/// soft limit after that.
pub fn raise_descriptors(wanted: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let hard = now.maximum.unwrap_or(u64::MAX);
    if hard < wanted {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: Some(wanted) });
    }
    let now = getrlimit(Resource::Nofile);
    if now.current < now.maximum || (now.current.is_some() && now.maximum.is_none()) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Does some work, and then sets the limit of open files back: the programs that an experiment starts inherit it, and some
/// close every descriptor up to it.
pub fn keep_descriptors<T>(work: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Nofile);
    let result = work();
    let _ = setrlimit(Resource::Nofile, before);
    result
}

/// Returns the number of descriptors that a table of this process may hold.
pub fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Memory mappings of a thread: its stack and its signal stack, each with a guard.
const MAPPINGS_OF_THREAD: u64 = 4;

/// Returns how many more threads this process may start: the least of the limits of the user, the control groups, the
/// machine, and the number of memory mappings. `None` if no limit can be read.
pub fn threads_left() -> Option<u64> {
    let group = group_bounds().pids.map(cgroup::Bound::free);
    // `RLIMIT_NPROC` is per user, over all processes, and does not apply to root.
    let user = getrlimit(Resource::Nproc).current.filter(|_| !rustix::process::geteuid().is_root());
    let user = user.map(|most| most.saturating_sub(threads_of_user()));
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let number = |path: &str| text(path).and_then(|text| text.trim().parse::<u64>().ok());
    // The fourth field of `loadavg` is `RUNNING/THREADS`.
    let threads = text("/proc/loadavg").and_then(|t| t.split([' ', '/']).nth(4).and_then(|n| n.parse::<u64>().ok()));
    let all = number("/proc/sys/kernel/threads-max").map(|most| most.saturating_sub(threads.unwrap_or(0)));
    let mapped = text("/proc/self/maps").map_or(0, |maps| maps.lines().count() as u64);
    let mappings = number("/proc/sys/vm/max_map_count").map(|most| most.saturating_sub(mapped) / MAPPINGS_OF_THREAD);
    [group, user, all, mappings].into_iter().flatten().min()
}

/// Counts the threads of all visible processes of this user.
fn threads_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 1 };
    let of = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        if entry.metadata().ok()?.uid() != me {
            return None;
        }
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse::<u64>().ok())
    };
    entries.filter_map(of).sum()
}

/// Returns how many bytes of address space and of private writable memory this process may still map: the lesser of
/// both limits. `None` without a limit.
pub fn address_space_left() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let space = getrlimit(Resource::As).current.map(|most| most.saturating_sub(bytes_of(&status, "VmSize")));
    let data = getrlimit(Resource::Data).current.map(|most| most.saturating_sub(bytes_of(&status, "VmData")));
    [space, data].into_iter().flatten().min()
}

/// Where address space is limited, keeps the C library from reserving 64 MiB of it for each thread that allocates. To
/// be called before any thread is started.
pub fn save_address_space() {
    #[cfg(target_env = "gnu")]
    if getrlimit(Resource::As).current.is_some() || getrlimit(Resource::Data).current.is_some() {
        // SAFETY: the arguments are integers; a failure changes nothing.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Returns the largest size in bytes of the main thread's stack. `None` without a limit.
pub fn stack() -> Option<u64> {
    getrlimit(Resource::Stack).current
}

/// Returns the largest size in bytes of a file that this process may create. `None` without a limit.
pub fn file_size() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Returns the total memory and the memory available without swapping, in bytes. Each is the lesser of the machine's
/// and the control groups' value.
pub fn memory() -> (u64, u64) {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let (total, available) = (bytes_of(&info, "MemTotal"), bytes_of(&info, "MemAvailable"));
    match group_bounds().memory {
        Some(bound) if total == 0 => (bound.limit, bound.free()),
        Some(bound) => (total.min(bound.limit), available.min(bound.free())),
        None => (total, available),
    }
}

/// Returns a number that is the same for all processes of a host in the same control groups.
pub fn control_groups() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/self/cgroup").unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// Returns the processor time per second that the control groups allow this process, in milliseconds. `None` without a
/// limit.
pub fn processor_quota() -> Option<u64> {
    group_bounds().cpu
}

/// Reads the limits of this process's control groups.
fn group_bounds() -> cgroup::Bounds {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).ok();
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    cgroup::bounds(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"), &read)
}

/// Returns the numbers of the processors on which the calling thread may run; empty if the kernel does not report them.
pub fn allowed_processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Returns the number of processors that this process may use: those on which it may run, or fewer if a control group
/// limits its processor time.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
