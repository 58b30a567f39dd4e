//! The result document, `wmlrun.result/1`: plain data, read and written as JSON by serde.
//!
//! Field names are the JSON keys. `docs/result.schema.json` describes the same format; a test checks that both agree.
//! Field names contain the unit; `mib` is 2²⁰ bytes. A value that could not be measured is null, never 0.
//! A reader ignores unknown fields and uses defaults for missing ones.
//! Not here: the computation of the figures ([`build`]) and their formatting (`report`).

pub mod build;
pub mod environment;
#[cfg(test)]
pub(crate) mod fixture;
mod annotations;
mod digest;
mod figures;
mod filesets;
mod flowop_result;
pub mod hdr;
pub mod hdr_export;
mod hosts;
pub mod layout;
mod limits;
mod means;
mod note_code;
mod open_loop;
mod phases;
pub mod ranks;
mod replay;
#[cfg(test)]
mod schema_tests;
pub mod snapshot;
mod steadiness;
mod summary;
pub mod texts;
pub mod timeline;
pub mod warning_order;
mod warning_rules;
pub mod warnings;

pub use annotations::{MAX_LABEL, MAX_NOTE};
pub use digest::Digest;
pub use environment::{Environment, RunEnvironment};
pub use figures::{BeforeAfter, Energy, Latency, MIN_BEYOND, PERCENTILES, Percentile, PercentilePlace};
pub use filesets::{FilesetResult, Repaired};
pub use flowop_result::{FlowopCounter, FlowopResult};
pub use hosts::{ClockDrift, HostResult, LostRank, RankClock, RankResult, rank_on_host};
pub use limits::{LimitOutcome, LimitVerdict};
pub use note_code::NoteCode;
pub use open_loop::{OpenLoop, ThreadRequests};
pub use phases::PhaseResult;
pub use replay::{NEVER_OPENED, NOTHING_MADE, ReplayDifference, ReplayResult};
pub use steadiness::Steadiness;
pub use summary::{CpuTime, Summary, divided_times};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the format. A reader rejects another name. Fields may be added without a new version.
pub const SCHEMA: &str = "wmlrun.result/1";

/// The kind of the rows of `measure=`.
pub const MEASURE: &str = "measure";

/// The result of one invocation of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// Name and version of the format, [`SCHEMA`].
    pub schema: String,
    /// The program that measured.
    pub tool: Tool,
    /// The command line, including the program's name.
    pub command_line: Vec<String>,
    /// The name that the user gave the result (`--label`); absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The user's remark on the result (`--note`); absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The program's process ID.
    pub process_id: u32,
    /// The script that was run.
    pub script: Script,
    /// Seed of the run's random streams.
    pub seed: u64,
    /// Seed of the directory trees and file sizes of file sets.
    pub layout_seed: u64,
    /// The machine when the program started.
    pub environment: Environment,
    /// Whether the session has ended without an error, so that no run of the script is missing. False in the file that
    /// is replaced after each run.
    pub complete: bool,
    /// One entry for each `run`, and for each `stats snap`.
    pub runs: Vec<Run>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            tool: Tool::default(),
            command_line: Vec::new(),
            label: None,
            note: None,
            process_id: 0,
            script: Script::default(),
            seed: 0,
            layout_seed: 0,
            environment: Environment::default(),
            complete: false,
            runs: Vec::new(),
        }
    }
}

impl Document {
    /// Returns the label and the note that the user gave the result, each with its name.
    pub fn annotations(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("label", &self.label), ("note", &self.note)]
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }
}

/// The measuring program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// The program's name, `wmlrun`.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// The commit that a release build was built from; absent in other builds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: "wmlrun".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), commit: None }
    }
}

/// The script of the workload, with its full text, so that a run can be repeated from its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// Path as given; `-` is standard input.
    pub path: String,
    /// Full text of the script.
    pub text: String,
    /// SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    /// WML dialect, `sun` or `fsl`.
    pub dialect: String,
    /// Reason for the choice of the dialect.
    pub dialect_reason: String,
}

wml_text::named! {
    /// How a run ended.
    #[derive(Default)]
    pub serde enum RunState {
        /// Ended as the script specifies.
        #[default]
        Complete = "complete";
        /// Interrupted by a signal or the user.
        Interrupted = "interrupted";
        /// Ended by a failed operation.
        Failed = "failed";
        /// No thread could find a usable file, or the file system did not answer.
        Stuck = "stuck";
        /// Ended before it filled its file system.
        LowSpace = "low_space";
        /// Completed no operation.
        NothingDone = "nothing_done";
    }
}

wml_text::named! {
    /// The state of the page cache for the run's files when the run began.
    #[derive(Default)]
    pub serde enum CacheState {
        /// The files were evicted from the cache.
        Cold = "cold";
        /// The files were read into the cache.
        Warm = "warm";
        /// The cache was left as it was.
        #[default]
        AsIs = "as-is";
        /// The files were evicted, but the state of a cache below the file system, such as that of a loop device, is unknown.
        UnknownBelow = "unknown below";
    }
}

/// One measured run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The workload of a profile (`CONFIG`) that was run; absent for other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// How the run ended.
    pub state: RunState,
    /// What ended the run, as text: `time`, `all threads done`, `finishoncount`, `SIGINT`, a failed operation…
    pub ended_by: String,
    /// When measuring began, RFC 3339.
    pub started_at: String,
    /// End of the run, in seconds since the program's start (the number that begins Filebench's log lines).
    pub finished_seconds: f64,
    /// Requested run time; null without a limit.
    pub requested_seconds: Option<f64>,
    /// Measured time, without the warm-up.
    pub measured_seconds: f64,
    /// File systems and kernel settings when the run started.
    pub environment: RunEnvironment,
    /// Whether the run started with the existing files (`as-is`), which are otherwise restored to their definitions.
    pub as_is: bool,
    /// The script's variables when the run started.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// SHA-256 digests, in hexadecimal, of the texts that the script had loaded, such as the personality of a workload of a
    /// profile; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loaded_scripts: Vec<String>,
    /// I/O engine: `posix`; `uring` if asynchronous I/O used `io_uring`; `null`.
    pub engine: String,
    /// Number of WML processes.
    pub processes: u64,
    /// Number of WML threads of all processes.
    pub threads: u64,
    /// Processors that the threads were bound to, round robin (`--pin`); null if they were not bound.
    pub pinned_processors: Option<Vec<u64>>,
    /// How the WML processes got separate descriptor tables: `close_range` or `unshare`; `shared` if they have none.
    pub descriptor_tables: String,
    /// Whether the script enables Filebench's latency histograms (`enable lathist`).
    pub lathist: bool,
    /// The warm-up before measuring, which is in no other figure.
    pub warmup: Option<Warmup>,
    /// The tool's own time per operation in nanoseconds, calibrated before the run.
    pub overhead_ns_per_op: Option<f64>,
    /// Peak resident memory of the program until the end of the run, in bytes, without the page cache.
    pub peak_memory: u64,
    /// Operations that did not complete within the measured time, which are in no other count.
    pub late_ops: u64,
    /// Age of the oldest of these operations at the end.
    pub late_oldest_seconds: Option<f64>,
    /// State of the page cache at the start.
    pub cache_state: CacheState,
    /// Dirty pages of the whole machine, in bytes.
    pub dirty_bytes: Option<BeforeAfter>,
    /// Memory of the whole machine in which the kernel keeps its objects, such as inodes and directory entries; absent if
    /// unknown, and in results of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slab_bytes: Option<BeforeAfter>,
    /// Page cache of the whole machine, with the buffers of block devices; absent if unknown, and in results of earlier
    /// versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache_bytes: Option<BeforeAfter>,
    /// Energy that the machine used in the measured time; absent if nothing measures it, or may be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// Whether the disks had completed earlier writes at the start; false after `--no-quiesce`.
    pub quiesced: Option<bool>,
    /// Rates of a run with intended start times (`rate=`); null for other runs.
    pub open_loop: Option<OpenLoop>,
    /// The phases, if the script has several, else empty. The rates of a flowop refer to the time of its phase.
    pub phases: Vec<PhaseResult>,
    /// Bytes that the program made devices read and write during the run, as the kernel counts them; without journals and
    /// other metadata that the kernel writes later. Null if unknown, and in a run of several ranks.
    pub storage_bytes: Option<DeviceBytes>,
    /// Totals of the whole run.
    pub summary: Summary,
    /// Every flowop of every thread, in order of definition. Instances are summed.
    pub flowops: Vec<FlowopResult>,
    /// The file sets of the run.
    pub filesets: Vec<FilesetResult>,
    /// Time series, at most 2,000 intervals. The operations and bytes of each flowop add up to its totals.
    pub intervals: Vec<Interval>,
    /// Beginning of the steady part of the run; null if it has fewer than twenty intervals, or several phases.
    pub steady: Option<Steadiness>,
    /// The error that ended the run early; null without one.
    pub failure: Option<RunFailure>,
    /// Digest of the threads' operations (`--digest`); null if not requested.
    pub digest: Option<Digest>,
    /// Threads that were still in a system call when the result was written.
    pub stragglers: Vec<Straggler>,
    /// Warnings about the validity of the figures.
    pub warnings: Vec<Note>,
    /// The limits of `--fail-if`, and whether the run keeps them; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitOutcome>,
    /// The hosts of a run of several ranks; absent for a run in one process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostResult>,
    /// The ranks of such a run; absent for a run in one process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankResult>,
    /// Ranks whose figures are missing, because no run came from them; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_ranks: Vec<LostRank>,
    /// The recording beside it, and what came out otherwise, if the run is the replay of a trace; absent for a script. Its
    /// flowops are the classes of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayResult>,
}

impl Run {
    /// Sets the names of the flowops in all intervals.
    pub fn name_intervals(&mut self) {
        let names: Vec<String> =
            self.flowops.iter().map(|flowop| format!("{}/{}/{}", flowop.process, flowop.thread, flowop.name)).collect();
        let warmup = self.warmup.iter_mut().flat_map(|warmup| &mut warmup.intervals);
        for interval in self.intervals.iter_mut().chain(warmup) {
            for (flowop, name) in interval.flowops.iter_mut().zip(&names) {
                flowop.name.clone_from(name);
            }
        }
    }

    /// Returns for each flowop what distinguishes it from others with the same name in its thread: `#1`, `#2`… in their
    /// order, or nothing if there are no others.
    pub fn name_suffixes(&self) -> Vec<String> {
        fn key(flowop: &FlowopResult) -> [&str; 3] {
            [&flowop.process, &flowop.thread, &flowop.name]
        }
        let mut counts: BTreeMap<[&str; 3], usize> = BTreeMap::new();
        for flowop in &self.flowops {
            *counts.entry(key(flowop)).or_default() += 1;
        }
        let mut numbers: BTreeMap<[&str; 3], usize> = BTreeMap::new();
        let mut suffixes = Vec::with_capacity(self.flowops.len());
        for flowop in &self.flowops {
            let number = numbers.entry(key(flowop)).or_default();
            *number += 1;
            let is_shared = counts.get(&key(flowop)).is_some_and(|count| *count > 1);
            suffixes.push(if is_shared { format!("#{number}") } else { String::new() });
        }
        suffixes
    }
}

/// The error that ended a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFailure {
    /// The flowop, as `process/thread/name`; null if the error is not one of a flowop.
    pub flowop: Option<String>,
    /// Line of the flowop in the script, from 1.
    pub line: Option<u64>,
    /// Description of the failed operation and its error.
    pub what: String,
    /// Path of the file.
    pub path: Option<String>,
    /// Name of the error: `ENOSPC`.
    pub errno: Option<String>,
    /// Suggested remedy.
    pub help: String,
}

/// A thread that was still in a system call when the result was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Straggler {
    /// The flowop, as `process/thread/flowop`.
    pub flowop: String,
    /// Instance of the process, from 0.
    pub instance: u64,
    /// Instance of the thread in that process, from 0.
    pub thread: u64,
    /// Kernel function in which it waits (`/proc/…/wchan`); null if unknown.
    pub wait_channel: Option<String>,
    /// Path of the file that the call accesses; if unknown, the directory of the flowop's files.
    pub path: Option<String>,
    /// Number of its rank; absent in a run in one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
}

/// The warm-up before measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Warmup {
    /// Length of the warm-up.
    pub seconds: f64,
    /// I/O operations that completed in it.
    pub ops: u64,
    /// Bytes that they read and wrote.
    pub bytes: u64,
    /// Time series, in seconds since its start.
    pub intervals: Vec<Interval>,
}

wml_text::named! {
    /// The class of a flowop, which decides how it is counted.
    #[derive(Default, PartialOrd, Ord)]
    pub serde enum FlowopClass {
        /// Synchronous file operations.
        Io = "io";
        /// Asynchronous file operations.
        Aio = "aio";
        /// Synchronization with other threads or with time: semaphores, rate limiters.
        Sync = "sync";
        /// All others: processor load, delays, end conditions.
        #[default]
        Other = "other";
    }
}

impl FlowopClass {
    /// True if the summary includes flowops of this class.
    pub fn is_io(self) -> bool {
        matches!(self, Self::Io | Self::Aio)
    }
}

wml_text::named! {
    /// The layer that served the requested bytes.
    pub serde enum Verdict {
        /// The devices served at least nine tenths.
        Device = "device";
        /// Memory: the devices served at most one tenth.
        Memory = "memory";
        /// Devices and memory, in between.
        Both = "device and memory";
        /// Unknown: the state of a cache below the file system is not known.
        UnknownBelow = "unknown below";
    }
}

impl Verdict {
    /// The devices served a file set if they transferred at least this part of the requested bytes.
    pub const DEVICE_PART: f64 = 0.9;
}

/// Numbers of bytes read and written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceBytes {
    pub read: u64,
    pub written: u64,
}

/// An interval of the time series, from `t` − `seconds` to `t`. Its figures cover this interval only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// End of the interval, in seconds since measuring began.
    pub t: f64,
    /// Length of the interval.
    pub seconds: f64,
    /// Figures of the flowops, in the order of the run's flowops.
    pub flowops: Vec<IntervalFlowop>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalFlowop {
    /// The flowop, as `process/thread/name`.
    pub name: String,
    /// Operations that completed in the interval.
    pub ops: u64,
    /// Bytes that they read and wrote.
    pub bytes: u64,
    /// Mean latency in nanoseconds; null without operations.
    pub mean_ns: Option<f64>,
    /// Median latency.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency.
    pub p99_ns: Option<u64>,
}

/// A warning about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// Stable code for programs: `short_run`, `memory_file_system`…
    pub code: String,
    /// The warning and its advice.
    pub message: String,
}
