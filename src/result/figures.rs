//! Figures that a run and its flowops have alike: the summary and the distribution.

use serde::{Deserialize, Serialize};

/// The whole run: what Filebench's `IO Summary` counts, flowops of the classes `io` and `aio`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Operations.
    pub ops: u64,
    /// Operations a second.
    pub ops_per_s: f64,
    /// Reading operations a second.
    pub reads_per_s: f64,
    /// Writing operations a second.
    pub writes_per_s: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes a second, in 2²⁰.
    pub mib_per_s: f64,
    /// Mean latency in milliseconds; null without operations.
    pub latency_ms: Option<f64>,
    /// Latency of all operations together; merged, never averaged.
    pub latency_ns: Latency,
    /// The program's own processor time (user and system) an operation; null without operations.
    pub cpu_us_per_op: Option<f64>,
    /// Busy processor time an operation of all processors that the program might use, whoever used them.
    pub system_cpu_us_per_op: Option<f64>,
    /// Share of the processors that the program might use that was busy, 0 … 1.
    pub cpu_busy: Option<f64>,
    /// Failed operations, of flowops of every class.
    pub errors: u64,
}

/// A distribution in figures, in nanoseconds. All null without operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The least.
    pub min: Option<u64>,
    /// The mean, exact.
    pub mean: Option<f64>,
    /// The standard deviation, from the histogram.
    pub stddev: Option<f64>,
    /// The median. Percentiles are exact to 0.8 %.
    pub p50: Option<u64>,
    /// 90 % are no longer.
    pub p90: Option<u64>,
    /// 95 % are no longer.
    pub p95: Option<u64>,
    /// 99 % are no longer.
    pub p99: Option<u64>,
    /// 99.9 % are no longer.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// 99.99 % are no longer.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// The greatest, exact.
    pub max: Option<u64>,
}
