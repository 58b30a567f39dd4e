//! Figures of a run and of its flowops: the summary and latency distributions.

use super::{Run, RunState};
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
    /// User time of the program in seconds, with that of commands that the script ran; absent if it was not measured, and
    /// in results of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_seconds: Option<f64>,
    /// System time of these in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_seconds: Option<f64>,
    /// Busy time per operation of all processors that the program may use, including other programs; null if unknown or
    /// without operations.
    pub system_cpu_us_per_op: Option<f64>,
    /// Share of time that the processors available to the program were busy, 0 to 1; null if unknown.
    pub cpu_busy: Option<f64>,
    /// Share of that time in which threads of the kernel used them, such as those of file systems, loop devices and
    /// write-back, 0 to 1; null if unknown.
    pub kernel_busy: Option<f64>,
    /// Number of failed operations of flowops of all classes.
    pub errors: u64,
}

/// Bytes of memory of the whole machine, from `/proc/meminfo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BeforeAfter {
    /// At the start of the run.
    pub before: u64,
    /// At the end of the run.
    pub after: u64,
}

/// Energy that the machine used, for all programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Energy {
    /// What measured it: `processors` and their memory, or the `battery` of the whole machine.
    pub source: String,
    /// The energy in joules, greater than 0.
    pub joules: f64,
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

/// Minimum number of operations beyond a percentile that reports show. With fewer, chance decides about its value.
pub const MIN_BEYOND: u64 = 100;

impl Latency {
    /// Returns the figures that a report shows of a distribution of so many operations: a percentile with fewer than
    /// [`MIN_BEYOND`] operations beyond it is null.
    #[must_use]
    pub fn shown(self, ops: u64) -> Self {
        // One of so many operations is beyond the percentile.
        let of = |percentile: Option<u64>, one_of: u64| percentile.filter(|_| ops / one_of >= MIN_BEYOND);
        Self {
            p50: of(self.p50, 2),
            p90: of(self.p90, 10),
            p95: of(self.p95, 20),
            p99: of(self.p99, 100),
            p99_9: of(self.p99_9, 1_000),
            p99_99: of(self.p99_99, 10_000),
            ..self
        }
    }
}

impl Run {
    /// True if the figures are a result: the run did what the script asks for, if perhaps not to its end.
    pub fn has_result(&self) -> bool {
        match self.state {
            RunState::Complete => true,
            RunState::Interrupted | RunState::LowSpace => self.flowops.iter().any(|flowop| flowop.ops > 0),
            RunState::Failed | RunState::Stuck | RunState::NothingDone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn a_percentile_with_few_operations_beyond_it_is_not_shown() {
        let some = Some(7);
        let all = Latency {
            p50: some,
            p90: some,
            p95: some,
            p99: some,
            p99_9: some,
            p99_99: some,
            max: some,
            ..Latency::default()
        };
        let shown = |ops| {
            let l = all.shown(ops);
            [l.p50, l.p90, l.p95, l.p99, l.p99_9, l.p99_99, l.max].map(|value| value.is_some())
        };
        assert_eq!(shown(199), [false, false, false, false, false, false, true]);
        assert_eq!(shown(200), [true, false, false, false, false, false, true]);
        assert_eq!(shown(9_999), [true, true, true, false, false, false, true]);
        assert_eq!(shown(10_000), [true, true, true, true, false, false, true]);
        assert_eq!(shown(1_000_000), [true; 7]);
    }
}
