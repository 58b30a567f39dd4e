//! The environment of a measurement: machine, kernel, mounts. Plain data, filled in by `measure`.

use super::DeviceBytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine as it was when the program started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The kernel.
    pub uname: Uname,
    /// The kernel's command line, without the values of parameters that may be secret; null if unknown.
    pub kernel_command_line: Option<String>,
    /// The processors.
    pub cpu: Cpu,
    /// Main memory.
    pub memory: Memory,
    /// The clock that measured latencies.
    pub clock: ClockInfo,
    /// The process's resource limits by name (`nofile`, `nproc`, `cpu_ms_per_s` of its control groups); null if
    /// unlimited.
    pub limits: BTreeMap<String, Option<u64>>,
    /// Further settings by name: frequency and idle states of the processors, sysctls.
    pub other: BTreeMap<String, serde_json::Value>,
}

/// The part of the environment that may change between runs: a script can mount another file system or change a kernel
/// setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnvironment {
    /// Memory available without swapping when the run started, in bytes.
    pub memory_available: u64,
    /// The file systems of the run's file sets.
    pub mounts: Vec<MountInfo>,
    /// Kernel settings that affect results, and the load average.
    pub other: BTreeMap<String, serde_json::Value>,
}

/// The fields of `uname`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Uname {
    /// `Linux`.
    pub sysname: String,
    /// The host name.
    pub nodename: String,
    /// The kernel's release.
    pub release: String,
    /// The kernel's build version.
    pub version: String,
    /// The architecture.
    pub machine: String,
}

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// The model's name.
    pub model: String,
    /// Number of processors that the program may use.
    pub count: u64,
}

/// Main memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Total memory, or the control group's limit if that is lower.
    pub total: u64,
    /// Memory available without swapping.
    pub available: u64,
}

/// The clock that measures latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockInfo {
    /// `tsc` or `monotonic`.
    pub name: String,
    /// Time of one reading, in nanoseconds.
    pub cost_ns: f64,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MountInfo {
    /// The mount point.
    pub path: String,
    /// The mounted device, or another source that the file system names.
    pub source: String,
    /// The file system type: `ext4`, `xfs`, `tmpfs`…
    #[serde(rename = "type")]
    pub kind: String,
    pub options: String,
    /// Features of the file system; null if unknown.
    pub features: Option<Vec<String>>,
    /// Geometry of the file system and its settings in the kernel, by name. Sizes without a unit in the name are in bytes.
    pub parameters: BTreeMap<String, serde_json::Value>,
    /// Size of the file system in bytes.
    pub total: u64,
    /// Bytes available to the user when the run started.
    pub free: u64,
    /// Bytes available after the run, before files are removed; null if the file system did not answer in time.
    pub free_after: Option<u64>,
    /// The block devices below the file system, from top to bottom.
    pub devices: Vec<Device>,
}

impl MountInfo {
    /// True if the file system keeps files in memory only.
    pub fn in_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs" | "hugetlbfs")
    }
}

/// A block device below a file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The kernel's name of the device: `nvme0n1p2`, `dm-0`, `loop3`.
    pub name: String,
    /// The level of the device: 1 if the file system is on it, 2 if a device of level 1 is on it…; null if unknown.
    pub level: Option<u64>,
    /// What tells the device from others, whatever its name is: the worldwide name or serial number, the UUID of a volume,
    /// the backing file of a loop device. Empty if unknown.
    pub identity: String,
    /// The model name that the device reports.
    pub model: String,
    /// Size of the device in bytes.
    pub size: u64,
    /// Whether the device is rotational; null if unknown.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: String,
    /// Settings of the request queue by the names of the files in `/sys/block/*/queue`. Those of the scheduler begin with
    /// `iosched/`.
    pub queue: BTreeMap<String, serde_json::Value>,
    /// Bytes that the device read and wrote during the run, for all programs; null if unknown.
    pub transferred: Option<DeviceBytes>,
    /// Whether a loop device bypasses the page cache of its backing file (direct I/O); null for other devices.
    pub direct_io: Option<bool>,
}
