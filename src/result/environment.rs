//! Where a result comes from: the machine, the kernel, the mounts. Plain data; who fills it knows the system.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine as it was when the program started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The kernel.
    pub uname: Uname,
    /// The processors.
    pub cpu: Cpu,
    /// Main memory.
    pub memory: Memory,
    /// What measured the time.
    pub clock: ClockInfo,
    /// The process's limits by name (`nofile`, `nproc`); null is none.
    pub limits: BTreeMap<String, Option<u64>>,
    /// Anything else that was found: governor, cgroup, sysctls.
    pub other: BTreeMap<String, serde_json::Value>,
}

/// What may differ from run to run: a script can mount another file system, or change a setting of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunEnvironment {
    /// Bytes of memory that could be had without swapping when the run started.
    pub memory_available: u64,
    /// The file systems that its file sets lie on.
    pub mounts: Vec<MountInfo>,
    /// Settings of the kernel that move results, and the load.
    pub other: BTreeMap<String, serde_json::Value>,
}

/// What `uname` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Uname {
    /// `Linux`.
    pub sysname: String,
    /// The machine's name.
    pub nodename: String,
    /// The kernel's release.
    pub release: String,
    /// Its build.
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
    /// How many may be used.
    pub count: u64,
}

/// Main memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// All of it, or the control group's limit if that is lower.
    pub total: u64,
    /// What could be had without swapping.
    pub available: u64,
}

/// The clock of latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockInfo {
    /// `tsc` or `monotonic`.
    pub name: String,
    /// What one reading costs.
    pub cost_ns: f64,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MountInfo {
    /// Where.
    pub path: String,
    /// What: a device, or what the file system calls itself.
    pub source: String,
    /// `ext4`, `xfs`, `tmpfs`…
    #[serde(rename = "type")]
    pub kind: String,
    /// Mount options.
    pub options: String,
    /// Its size in bytes.
    pub total: u64,
    /// Bytes free to the user when the run started.
    pub free: u64,
    /// The same after the run, before files are removed; null if the file system did not say soon.
    pub free_after: Option<u64>,
    /// The devices below, from the top to the bottom.
    pub devices: Vec<Device>,
}

impl MountInfo {
    /// Whether it keeps files in memory only.
    pub fn in_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs" | "hugetlbfs")
    }
}

/// A block device below a file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// `nvme0n1p2`, `dm-0`, `loop3`.
    pub name: String,
    /// The maker's name for it.
    pub model: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it spins; null if nobody says.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: String,
    /// Whether a loop device passes by the page cache below it; null for other devices.
    pub direct_io: Option<bool>,
}
