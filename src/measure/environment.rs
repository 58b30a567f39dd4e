//! The environment of a run for the result: machine, kernel, limits, mounts.

use crate::model::ModelValue;
use crate::os::{self, device, fd, limits, proc};
use crate::ranks::{self, Ranks};
use crate::result::environment::{ClockInfo, Cpu, Device, Memory, MountInfo, Uname};
use crate::result::{Environment, RunEnvironment};
use crate::spec::predefined::{self, Predefined};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the environment of a run, with the mounts that contain the given paths.
pub(crate) fn of_run(paths: &[PathBuf]) -> RunEnvironment {
    let mut mounts: Vec<MountInfo> = Vec::new();
    for mount in paths.iter().filter_map(|p| mount(p)) {
        if !mounts.iter().any(|m| m.path == mount.path) {
            mounts.push(mount);
        }
    }
    RunEnvironment { memory_available: limits::memory().1, mounts, other: settings() }
}

/// Returns the description of the machine.
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
        limits: BTreeMap::from([
            ("nofile".to_owned(), Some(limits::descriptors())),
            ("cpu_ms_per_s".to_owned(), limits::processor_quota()),
        ]),
        other: settings(),
    }
}

/// Returns kernel settings that influence results.
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

/// Returns the current values of the predefined variables that describe the machine and the ranks. The machine is that
/// of rank 0, so that sizes computed from its memory are the same on all ranks.
pub(crate) fn predefined(ranks: &dyn Ranks) -> [(Predefined, ModelValue); 7] {
    let own = (limits::memory(), limits::processors());
    // If rank 0 is lost, the agreement before the run reports it.
    let ((memory, free), processors) = ranks::of_first(ranks, own).unwrap_or(own);
    let number = |n: usize| ModelValue::from(n as u64);
    [
        (predefined::MEMORY, memory.into()),
        (predefined::FREE_MEMORY, free.into()),
        (predefined::PROCESSORS, number(processors)),
        (predefined::RANK, number(ranks.rank())),
        (predefined::RANKS, number(ranks.size())),
        (predefined::HOST, ranks.host().into()),
        (predefined::HOSTS, number(ranks.distinct_hosts())),
    ]
}

/// Returns the host name.
pub fn hostname() -> String {
    let [_, nodename, ..] = proc::uname();
    nodename
}

/// Returns the type of the file system that contains a path. The path need not exist.
pub fn file_system(path: &Path) -> Option<String> {
    mount(path).map(|m| m.kind)
}

/// Returns the mount that contains a path, with all devices below it. The path need not exist.
pub(crate) fn mount(path: &Path) -> Option<MountInfo> {
    let existing =
        path.ancestors().find(|p| p.exists()).filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = device::mount_of(existing)?;
    let layers = device::stack_below(existing).map(|stack| stack.layers).unwrap_or_default();
    let mut mount = MountInfo {
        path: found.path.display().to_string(),
        source: found.source,
        kind: found.kind,
        options: found.options,
        devices: layers.iter().map(layer).collect(),
        ..MountInfo::default()
    };
    if let Ok(space) = fd::statvfs_path(existing) {
        mount.total = space.total;
        mount.free = space.free;
    }
    Some(mount)
}

fn layer(layer: &device::Layer) -> Device {
    let properties = layer.properties();
    Device {
        name: layer.name.clone(),
        identity: properties.identity,
        model: properties.model,
        size: properties.size,
        rotational: properties.rotational,
        scheduler: properties.scheduler,
        direct_io: layer.direct_io,
    }
}
