//! Figures of a run and of its flowops: the summary and latency distributions.

use serde::{Deserialize, Serialize};

/// Totals of the whole run over the flowops of the classes `io` and `aio`, as in Filebench's `IO Summary`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Number of operations.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Read operations per second.
    pub reads_per_s: f64,
    /// Write operations per second.
    pub writes_per_s: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Throughput in MiB (2²⁰ bytes) per second.
    pub mib_per_s: f64,
    /// Bytes of directory entries that listings read; not part of `bytes`.
    pub listed_bytes: u64,
    /// Mean latency in milliseconds; null without operations.
    pub latency_ms: Option<f64>,
    /// Latency distribution of all operations, from merged histograms.
    pub latency_ns: Latency,
    /// Histogram of all operations, merged: `HdrHistogram` V2, deflated, in base64. Absent in results of earlier
    /// versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub histogram: String,
    /// Processor time (user and system) of the program per operation; null without operations.
    pub cpu_us_per_op: Option<f64>,
    /// Busy time per operation of all processors that the program may use, including other programs; null if unknown or
    /// without operations.
    pub system_cpu_us_per_op: Option<f64>,
    /// Share of time that the processors available to the program were busy, 0 to 1; null if unknown.
    pub cpu_busy: Option<f64>,
    /// Number of failed operations of flowops of all classes.
    pub errors: u64,
}

/// Figures of a latency distribution, in nanoseconds. All are null without operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The minimum, exact.
    pub min: Option<u64>,
    /// The mean, exact.
    pub mean: Option<f64>,
    /// The standard deviation, computed from the histogram.
    pub stddev: Option<f64>,
    /// The median. Percentiles have a relative error of at most 0.8 %.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 95th percentile.
    pub p95: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// The 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// The maximum, exact.
    pub max: Option<u64>,
}
