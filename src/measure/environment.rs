//! The environment of a run, as the result records it: machine, kernel, limits, mounts.

use crate::os::{self, device, fd, limits, proc};
use crate::result::environment::{ClockInfo, Cpu, Device, Memory, MountInfo, Uname};
use crate::result::{Environment, RunEnvironment};
use crate::spec::predefined::{self, Predefined};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a run finds: the mounts are those of the given paths.
pub(crate) fn of_run(paths: &[PathBuf]) -> RunEnvironment {
    let mut mounts: Vec<MountInfo> = Vec::new();
    for mount in paths.iter().filter_map(|p| mount(p)) {
        if !mounts.iter().any(|m| m.path == mount.path) {
            mounts.push(mount);
        }
    }
    RunEnvironment { memory_available: limits::memory().1, mounts, other: settings() }
}

/// What is known of the machine.
pub(crate) fn environment() -> Environment {
    let [sysname, nodename, release, version, machine] = proc::uname();
    let (total, available) = limits::memory();
    let clock = os::Clock::get();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, m)| m.trim().to_owned()))
        .unwrap_or_default();
    Environment {
        uname: Uname { sysname, nodename, release, version, machine },
        cpu: Cpu { model, count: limits::processors() as u64 },
        memory: Memory { total, available },
        clock: ClockInfo { name: clock.name().to_owned(), cost_ns: clock.cost_ns() },
        limits: BTreeMap::from([("nofile".to_owned(), Some(limits::descriptors()))]),
        other: settings(),
    }
}

/// Settings of the kernel that move results.
fn settings() -> BTreeMap<String, serde_json::Value> {
    const FILES: &[(&str, &str)] = &[
        ("dirty_ratio", "/proc/sys/vm/dirty_ratio"),
        ("dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
        ("dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
        ("swappiness", "/proc/sys/vm/swappiness"),
        ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("load", "/proc/loadavg"),
    ];
    FILES
        .iter()
        .filter_map(|(name, file)| Some(((*name).to_owned(), fs::read_to_string(file).ok()?.trim().into())))
        .collect()
}

/// The values of the predefined variables that are about the machine, as they are now.
pub(crate) fn predefined() -> [(Predefined, u64); 3] {
    let (memory, free) = limits::memory();
    [
        (predefined::MEMORY, memory),
        (predefined::FREE_MEMORY, free),
        (predefined::PROCESSORS, limits::processors() as u64),
    ]
}

/// The name of this machine.
pub fn hostname() -> String {
    let [_, nodename, ..] = proc::uname();
    nodename
}

/// The type of the file system that a path lies on; the path need not be there yet.
pub fn file_system(path: &Path) -> Option<String> {
    mount(path).map(|m| m.kind)
}

/// The mount that a path lies on, with all devices below; the path itself need not be there yet.
pub(crate) fn mount(path: &Path) -> Option<MountInfo> {
    let there = path.ancestors().find(|p| p.exists()).filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = device::mount_of(there)?;
    let layers = device::stack_below(there).map(|stack| stack.layers).unwrap_or_default();
    let mut mount = MountInfo {
        path: found.path.display().to_string(),
        source: found.source,
        kind: found.kind,
        options: found.options,
        devices: layers.iter().map(layer).collect(),
        ..MountInfo::default()
    };
    if let Ok(space) = fd::statvfs_path(there) {
        mount.total = space.total;
        mount.free = space.free;
    }
    Some(mount)
}

fn layer(layer: &device::Layer) -> Device {
    let properties = layer.properties();
    Device {
        name: layer.name.clone(),
        model: properties.model,
        size: properties.size,
        rotational: properties.rotational,
        scheduler: properties.scheduler,
        direct_io: layer.direct_io,
    }
}

/// A path that says the same from any directory, without links as far as it is there: mounts are found by it.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
