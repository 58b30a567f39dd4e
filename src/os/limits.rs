//! What this process may use: descriptors, memory, processors.

use super::cgroup;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, and the hard one to `wanted` where we may. Returns what holds then.
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

/// How many descriptors a table of this process may hold.
pub fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many more threads this process may start, where there is a bound: the least of the user's, the control groups' and the machine's.
pub fn threads_left() -> Option<u64> {
    let group = group_bounds().pids.map(cgroup::Bound::free);
    // The limit is the user's, over all processes, and binds nobody who may raise it.
    let user = getrlimit(Resource::Nproc).current.filter(|_| !rustix::process::geteuid().is_root());
    let user = user.map(|most| most.saturating_sub(threads_of_user()));
    let all = std::fs::read_to_string("/proc/sys/kernel/threads-max").ok().and_then(|t| t.trim().parse().ok());
    [group, user, all].into_iter().flatten().min()
}

/// Threads of all processes of this user, as far as they can be seen.
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

/// Bytes of address space and of private writable memory that this process may still map; none without a limit.
pub fn address_space_left() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used = |name: &str| {
        let kib = |line: &str| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok();
        status.lines().find_map(kib).map_or(0, |kib| kib * 1024)
    };
    let space = getrlimit(Resource::As).current.map(|most| most.saturating_sub(used("VmSize:")));
    let data = getrlimit(Resource::Data).current.map(|most| most.saturating_sub(used("VmData:")));
    [space, data].into_iter().flatten().min()
}

/// Where address space is limited, keeps the C library from reserving 64 MiB of it for each thread that allocates. Before any is started.
pub fn save_address_space() {
    #[cfg(target_env = "gnu")]
    if getrlimit(Resource::As).current.is_some() || getrlimit(Resource::Data).current.is_some() {
        // SAFETY: plain numbers; a refusal changes nothing.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// How large a file this process may make; none without a limit.
pub fn file_size() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Memory in bytes: all, and what the kernel thinks can be had without swapping. The smaller of the machine's and the
/// control groups'.
pub fn memory() -> (u64, u64) {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
            .map_or(0, |kib| kib * 1024)
    };
    let (total, available) = (field("MemTotal:"), field("MemAvailable:"));
    match group_bounds().memory {
        Some(bound) if total == 0 => (bound.limit, bound.free()),
        Some(bound) => (total.min(bound.limit), available.min(bound.free())),
        None => (total, available),
    }
}

/// The bounds of this process's control groups.
fn group_bounds() -> cgroup::Bounds {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).ok();
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    cgroup::bounds(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"), &read)
}

/// The numbers of the processors that the calling thread may run on; empty if the kernel does not say.
pub fn allowed_processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// How many processors' worth of time this process may use: those that it may run on, or fewer where a control group gives less time.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
