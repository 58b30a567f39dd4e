//! The environment of a run for the result: machine, kernel, limits, mounts.

use super::redaction;
use super::time_limit::with_timeout;
use crate::model::ModelValue;
use crate::os::{self, device, fd, file_system, limits, proc, settings};
use crate::ranks::Together;
use crate::result::environment::{ClockInfo, Cpu, Device, Memory, MountInfo, Uname};
use crate::result::{Environment, RunEnvironment};
use crate::spec::predefined::{self, Predefined};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that a file system has to tell its properties. They are in memory.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Returns the environment of a run, with the mounts that contain the given paths.
pub(crate) fn of_run(paths: &[PathBuf]) -> RunEnvironment {
    let mut mounts: Vec<MountInfo> = Vec::new();
    for (path, mount) in paths.iter().filter_map(|path| Some((path, mount(path)?))) {
        if !mounts.iter().any(|m| m.path == mount.path) {
            mounts.push(with_properties(mount, path));
        }
    }
    RunEnvironment { memory_available: limits::memory().1, mounts, other: of_machine() }
}

/// Adds the features and parameters of a file system, of which `path` is a directory. They stay unknown if it does not
/// answer in time.
fn with_properties(mount: MountInfo, path: &Path) -> MountInfo {
    let (dir, kind) = (path.to_owned(), mount.kind.clone());
    let found = with_timeout(TIME_LIMIT, move || file_system::properties(&dir, &kind)).unwrap_or_default();
    MountInfo { features: found.features, parameters: values(found.parameters), ..mount }
}

/// Converts settings to values of the result: numbers where they are some.
fn values(settings: BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let value = |text: String| text.parse::<i64>().map_or(Value::String(text), Value::from);
    settings.into_iter().map(|(name, text)| (name, value(text))).collect()
}

/// Returns settings of the machine that influence results, as texts.
fn of_machine() -> BTreeMap<String, Value> {
    settings::of_machine().into_iter().map(|(name, text)| (name, Value::String(text))).collect()
}

/// Returns the description of the machine.
pub(crate) fn environment() -> Environment {
    let [sysname, nodename, release, version, machine] = proc::uname();
    let (total, available) = limits::memory();
    let clock = os::Clock::get();
    let info = proc::kernel_text("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, m)| m.trim().to_owned()))
        .unwrap_or_default();
    Environment {
        uname: Uname { sysname, nodename, release, version, machine },
        kernel_command_line: settings::kernel_command_line().map(|line| redaction::without_secrets(&line)),
        cpu: Cpu { model, count: limits::processors() as u64 },
        memory: Memory { total, available },
        clock: ClockInfo { name: clock.name().to_owned(), cost_ns: clock.cost_ns() },
        limits: BTreeMap::from([
            ("nofile".to_owned(), Some(limits::descriptors())),
            ("cpu_ms_per_s".to_owned(), limits::processor_quota()),
        ]),
        other: of_machine(),
    }
}

/// Returns the current values of the predefined variables that describe the machine and the ranks. The machine is that
/// of rank 0, so that sizes computed from its memory are the same on all ranks.
pub(crate) fn predefined(together: &Together) -> [(Predefined, ModelValue); 7] {
    let own = (limits::memory(), limits::processors());
    // If rank 0 is lost, the agreement before the run reports it.
    let ((memory, free), processors) = together.of_first(own).unwrap_or(own);
    let number = |n: usize| ModelValue::from(n as u64);
    [
        (predefined::MEMORY, memory.into()),
        (predefined::FREE_MEMORY, free.into()),
        (predefined::PROCESSORS, number(processors)),
        (predefined::RANK, number(together.rank())),
        (predefined::RANKS, number(together.size())),
        (predefined::HOST, together.host().into()),
        (predefined::HOSTS, number(together.distinct_hosts())),
    ]
}

/// Returns the host name.
pub(crate) fn hostname() -> String {
    let [_, nodename, ..] = proc::uname();
    nodename
}

/// Returns the type of the file system that contains a path. The path need not exist.
pub(crate) fn file_system(path: &Path) -> Option<String> {
    mount(path).map(|m| m.kind)
}

/// Returns the mount that contains a path, with all devices below it. The path need not exist.
pub(crate) fn mount(path: &Path) -> Option<MountInfo> {
    let existing = device::existing(path);
    let found = device::mount_of(existing)?;
    let mut mount = MountInfo {
        path: found.path.display().to_string(),
        source: found.source,
        kind: found.kind,
        options: found.options,
        devices: device::layers_below(existing).iter().map(layer).collect(),
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
        level: Some(u64::from(layer.depth) + 1),
        identity: properties.identity,
        model: properties.model,
        size: properties.size,
        rotational: properties.rotational,
        scheduler: properties.scheduler,
        queue: values(properties.queue),
        transferred: None,
        direct_io: layer.direct_io,
    }
}
