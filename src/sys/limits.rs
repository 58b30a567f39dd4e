//! What this process may use: descriptors, memory, processors.

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

/// How many threads this process may have, where there is a bound: the user's and the control group's.
pub fn threads() -> Option<u64> {
    let group = std::fs::read_to_string("/proc/self/cgroup").ok();
    let group = group.as_deref().and_then(|g| g.lines().find_map(|l| l.strip_prefix("0::")));
    let group = group.and_then(|path| std::fs::read_to_string(format!("/sys/fs/cgroup{path}/pids.max")).ok());
    let group = group.and_then(|text| text.trim().parse().ok());
    let user = getrlimit(Resource::Nproc).current;
    let all = std::fs::read_to_string("/proc/sys/kernel/threads-max").ok().and_then(|t| t.trim().parse().ok());
    [group, user, all].into_iter().flatten().min()
}

/// Memory in bytes: all, and what the kernel thinks can be had without swapping. The smaller of the machine's and the
/// control group's.
pub fn memory() -> (u64, u64) {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        info.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
            .map_or(0, |kib| kib * 1024)
    };
    let (total, available) = (field("MemTotal:"), field("MemAvailable:"));
    match cgroup_memory() {
        Some((limit, used)) if limit < total => (limit, available.min(limit.saturating_sub(used))),
        _ => (total, available),
    }
}

/// Limit and use of the control group, if there is a limit.
fn cgroup_memory() -> Option<(u64, u64)> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let read = |file: &str| std::fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}")).ok();
    let limit = read("memory.max")?.trim().parse().ok()?;
    let used = read("memory.current")?.trim().parse().ok()?;
    Some((limit, used))
}

/// Processors that this process may run on.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
