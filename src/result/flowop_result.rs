//! The result of a flowop, and what is counted of it.
//!
//! To add a counter: a row of [`FlowopCounter`], which threads count with `Cell::add`, a field of [`FlowopResult`] with its row in
//! [`COUNTED`], and `docs/result.schema.json`. Its column and its metric are a row each in `report/metrics.rs`.

use super::{FlowopClass, Latency};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

wml_text::named! {
    /// What is counted of a flowop besides its operations and their bytes. Counts of threads and of intervals are summed.
    pub enum FlowopCounter {
        /// Files opened implicitly.
        Opens = "opens";
        /// Time of these opens, in nanoseconds.
        OpenTime = "open_ns";
        /// Operations that ended after the deadline.
        LateOps = "late_ops";
        /// Bytes that these operations moved.
        LateBytes = "late_bytes";
        /// Bytes of directory entries that listings read, which are no file data.
        ListedBytes = "listed_bytes";
        /// System calls beyond one per operation.
        Calls = "calls";
        /// Time that the program itself took, such as for picking a file, in nanoseconds.
        ToolTime = "tool_ns";
        /// Time waiting for a usable file, in nanoseconds.
        StarvedTime = "starved_ns";
        /// Processor time of commands in user mode, in nanoseconds.
        UserTime = "user_ns";
        /// Processor time of commands in the kernel, in nanoseconds.
        SystemTime = "system_ns";
    }
}

/// A counter that a result has as it is. The counts of several ranks are summed.
pub(crate) struct CounterField {
    pub(crate) counter: FlowopCounter,
    pub(crate) of: fn(&FlowopResult) -> u64,
    pub(crate) field: fn(&mut FlowopResult) -> &mut u64,
}

macro_rules! counted {
    ($($counter:ident: $field:ident),* $(,)?) => {
        &[$(CounterField { counter: FlowopCounter::$counter, of: |f| f.$field, field: |f| &mut f.$field }),*]
    };
}

/// These counters and their fields.
pub(crate) const COUNTED: &[CounterField] = counted! {
    Opens: implicit_opens,
    LateOps: late_ops,
    LateBytes: late_bytes,
    ListedBytes: listed_bytes,
    Calls: calls,
};

/// One flowop of one thread of one process, summed over all instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowopResult {
    /// Name of the process that contains it.
    pub process: String,
    /// Name of the thread that contains it.
    pub thread: String,
    /// Index among the thread's flowops, from 0.
    pub index: u64,
    /// Name; `outer.inner` inside a composite flowop.
    pub name: String,
    /// Names of the uses of composite flowops that it is in, the outermost first; absent: it is in none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub composites: Vec<String>,
    /// Type: `read`, `createfile`…
    pub kind: String,
    pub class: FlowopClass,
    /// Whether its operations count as reads.
    pub reads: bool,
    /// Whether its operations count as writes.
    pub writes: bool,
    /// Whether its I/O bypasses the page cache (`directio`).
    pub direct: bool,
    /// Whether the script declares each of its operations to be a transaction.
    pub transaction: bool,
    /// Whether the script declares that waiting for a file is part of the workload (`maystarve`); absent: it does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_starve: bool,
    /// Line in the script, from 1.
    pub line: u64,
    /// Number of threads that ran it.
    pub instances: u64,
    /// Number of the process's phase in the script; 1 by default.
    pub phase: u64,
    /// Operations that completed within the measured time.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Bytes that they read and wrote.
    pub bytes: u64,
    /// Throughput in MiB (2²⁰ bytes) per second.
    pub mib_per_s: f64,
    /// Files opened implicitly because an operation needed an open file. The time is not part of any latency.
    pub implicit_opens: u64,
    /// Mean time of an implicit open in nanoseconds; null without one.
    pub open_ns_mean: Option<f64>,
    /// System calls in excess of one per operation (whole files, directory listings).
    pub calls: u64,
    /// Number of failed operations by the name of the error (`ENOSPC`); `no call` if no system call was made, since the
    /// operation was impossible.
    pub errors: BTreeMap<String, u64>,
    /// Operations that completed after the measured time, which are in no other count.
    pub late_ops: u64,
    /// Bytes that late operations read and wrote.
    pub late_bytes: u64,
    /// Bytes of the directory entries that listings read, as Filebench counts them: 279 and the length of the name for
    /// each entry. They are no file data, and in no other count.
    pub listed_bytes: u64,
    /// Time spent waiting for a usable file, summed over all instances.
    pub starved_seconds: f64,
    /// The tool's own time per operation in nanoseconds (picking a file, building a path); null without operations.
    pub tool_ns_mean: Option<f64>,
    /// User-mode processor time of the commands that it ran; only for the flowop `command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_user_seconds: Option<f64>,
    /// Kernel-mode processor time of these commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_system_seconds: Option<f64>,
    /// Time from the start of an operation's system call to its completion.
    pub latency_ns: Latency,
    /// Latency of the same calls when they were recorded; only for the replay of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_ns: Option<Latency>,
    /// Histogram of these times, in the form of `histogram`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recorded_histogram: String,
    /// Time from the intended start to completion; only for open loops and replays with times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Latency>,
    /// Histogram of these times, in the form of `histogram`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub response_histogram: String,
    /// Time from the intended to the actual start; only for open loops and replays with times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Latency>,
    /// Histogram of these times, in the form of `histogram`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lateness_histogram: String,
    /// Latency histogram: `HdrHistogram` V2, deflated, in base64.
    pub histogram: String,
}
