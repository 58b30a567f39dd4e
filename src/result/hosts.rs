//! The hosts and ranks of a run that several processes made together, as parts of its result.

use super::{CacheState, Environment, FilesetResult, Latency, RunEnvironment, RunState, Summary};
use serde::{Deserialize, Serialize};

/// One host of a run, with the figures of its ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostResult {
    /// Name of the host.
    pub host: String,
    /// Numbers of its ranks, in ascending order, without lost ranks.
    pub ranks: Vec<u64>,
    /// The machine when the program started.
    pub environment: Environment,
    /// File systems and kernel settings when the run started.
    pub run_environment: RunEnvironment,
    /// Totals of its ranks. Its rates refer to the same time as those of the run.
    pub summary: Summary,
    /// The file sets of its ranks, one entry for each path.
    pub filesets: Vec<FilesetResult>,
    /// State of its page cache at the start.
    pub cache_state: CacheState,
}

/// One rank of a run. Its rates refer to its own measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankResult {
    /// Number of the rank, from 0.
    pub rank: u64,
    /// Name of its host.
    pub host: String,
    /// How its run ended.
    pub state: RunState,
    /// What ended its run, as text.
    pub ended_by: String,
    /// Delay of its start of measuring compared to the common start, in nanoseconds; negative if it was earlier. Null
    /// if unknown.
    pub start_skew_ns: Option<i64>,
    /// Bound of the error of `start_skew_ns`, in nanoseconds; null if unknown.
    pub clock_error_ns: Option<u64>,
    /// Number of its WML threads.
    pub threads: u64,
    /// Its measured time.
    pub measured_seconds: f64,
    /// Number of I/O operations.
    pub ops: u64,
    /// I/O operations per second.
    pub ops_per_s: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Throughput in MiB (2²⁰ bytes) per second.
    pub mib_per_s: f64,
    /// Latency distribution of all I/O operations.
    pub latency_ns: Latency,
    /// Number of failed operations of flowops of all classes.
    pub errors: u64,
}
