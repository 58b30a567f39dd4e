//! The totals of a run, and the figures of the processors in them: how each is computed, and merged from ranks.
//!
//! To add what processors or the kernel count during a run: a field of [`CpuTime`], which `measure/cpu.rs` fills, one of
//! [`Summary`], its lines in the two functions below, and `docs/result.schema.json`. Its column and its metric are a row each
//! in `report/metrics.rs`.

use super::Latency;
use super::means::{mean, weighted_mean};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// Processor time of a run, the input of `Summary::with_processors`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// User and system time of the program in seconds, without that of commands; `None` if not measured.
    pub own_seconds: Option<(f64, f64)>,
    /// Busy time of all processors that the program may use, summed, in seconds; `None` if unknown.
    pub system_seconds: Option<f64>,
    /// Processor time of the kernel's threads in seconds; `None` if unknown.
    pub kernel_seconds: Option<f64>,
    /// Number of processors that the program may use.
    pub processors: u64,
}

/// The clock ticks per second in which the kernel counts the busy time of processors and of its own threads, `USER_HZ`.
const TICKS_PER_SECOND: f64 = 100.0;

/// The fewest ticks of a run that give a share. The kernel books each tick on what runs at that moment, and a processor's
/// count is one tick off at either end: of 50 ticks that are 2 % each, of two ticks a busy processor may look idle.
const MIN_TICKS: f64 = 50.0;

/// The fewest ticks of processor time that are divided into user and system time.
const MIN_DIVIDED_TICKS: f64 = 10.0;

/// Returns user and system time if the ticks of the kernel tell them apart: it measures their sum, and divides it by what ran
/// at each tick. Of few ticks the parts are chance.
pub fn divided_times(user: f64, system: f64) -> Option<(f64, f64)> {
    ((user + system) * TICKS_PER_SECOND >= MIN_DIVIDED_TICKS).then_some((user, system))
}

impl Summary {
    /// With the figures of the processors. `seconds` is the measured time, `commands_ns` the user and the system time of
    /// commands.
    pub(crate) fn with_processors(self, cpu: CpuTime, seconds: f64, commands_ns: [u64; 2]) -> Self {
        let [commands_user, commands_system] = commands_ns.map(|ns| ns as f64 / 1e9);
        let user_seconds = cpu.own_seconds.map(|(user, _)| user + commands_user);
        let system_seconds = cpu.own_seconds.map(|(_, system)| system + commands_system);
        let us_per_op = |s: f64| (self.ops > 0).then(|| s * 1e6 / self.ops as f64);
        let available = cpu.processors as f64 * seconds;
        let of_ticks = |used: Option<f64>| used.filter(|_| seconds * TICKS_PER_SECOND >= MIN_TICKS);
        let (busy_seconds, kernel_seconds) = (of_ticks(cpu.system_seconds), of_ticks(cpu.kernel_seconds));
        let share = |used: Option<f64>| used.filter(|_| available > 0.0).map(|used| (used / available).min(1.0));
        Self {
            cpu_us_per_op: user_seconds.zip(system_seconds).and_then(|(user, system)| us_per_op(user + system)),
            user_seconds,
            system_seconds,
            system_cpu_us_per_op: busy_seconds.and_then(us_per_op),
            cpu_busy: share(busy_seconds),
            kernel_busy: share(kernel_seconds),
            ..self
        }
    }

    /// With those of ranks, each with the name of its host.
    pub(crate) fn with_processors_of(self, ranks: &[(&str, &Self)]) -> Self {
        let own = || ranks.iter().map(|(_, summary)| summary);
        Self {
            cpu_us_per_op: weighted_mean(own().map(|s| (s.cpu_us_per_op, s.ops as f64))),
            user_seconds: own().map(|s| s.user_seconds).sum(),
            system_seconds: own().map(|s| s.system_seconds).sum(),
            system_cpu_us_per_op: system_cpu_us_per_op(ranks),
            cpu_busy: mean(own().filter_map(|s| s.cpu_busy)),
            kernel_busy: mean(own().filter_map(|s| s.kernel_busy)),
            ..self
        }
    }
}

/// Returns the busy time per operation of the processors of all hosts. Each rank of a host reports the busy time of the
/// whole host, so that the time of a host is the mean of its ranks.
fn system_cpu_us_per_op(ranks: &[(&str, &Summary)]) -> Option<f64> {
    if let [(_, only)] = ranks {
        return only.system_cpu_us_per_op;
    }
    let ops: u64 = ranks.iter().map(|(_, summary)| summary.ops).sum();
    let mut hosts: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for (host, summary) in ranks.iter().filter(|(_, summary)| summary.ops > 0) {
        let busy_us = summary.system_cpu_us_per_op.map(|us| us * summary.ops as f64);
        hosts.entry(host).or_default().push(busy_us);
    }
    let host_us = |busy_us: Vec<Option<f64>>| mean(busy_us.into_iter().collect::<Option<Vec<f64>>>()?.into_iter());
    let total: Option<f64> = hosts.into_values().map(host_us).sum();
    total.filter(|_| ops > 0).map(|us| us / ops as f64)
}
