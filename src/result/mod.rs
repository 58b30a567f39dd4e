//! The result document, `wmlrun.result/1`: plain data, read and written as JSON by serde.
//!
//! Names here are names in the file; `docs/result.schema.json` is the same as a JSON Schema, and a test holds the two
//! together. Units are in the names; `mib` is 2²⁰ bytes. What could not be measured is null, never 0.
//! Fields that a reader does not know are passed over, and fields that a file lacks take their defaults.
//! Absent: how the numbers come about ([`build`] makes them of snapshots) and how they look (reports).

pub mod build;
pub mod environment;
#[cfg(test)]
pub(crate) mod fixture;
mod digest;
mod figures;
mod phases;
#[cfg(test)]
mod schema_tests;
mod steadiness;
pub mod texts;
pub mod timeline;
pub mod warnings;

pub use digest::Digest;
pub use environment::{Environment, RunEnvironment};
pub use figures::{Latency, Summary};
pub use phases::PhaseResult;
pub use steadiness::Steadiness;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of the form. A reader refuses another name; fields may be added under the same.
pub const SCHEMA: &str = "wmlrun.result/1";

/// Everything that one call of the program leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// What measured.
    pub tool: Tool,
    /// The words that the program was called with, itself first.
    pub command_line: Vec<String>,
    /// Its number as a process of the system.
    pub process_id: u32,
    /// What was run.
    pub script: Script,
    /// Seed of the run's random streams.
    pub seed: u64,
    /// Seed of the shape of file sets.
    pub layout_seed: u64,
    /// Where it was run.
    pub environment: Environment,
    /// One entry for each `run`, and for each `stats snap`.
    pub runs: Vec<Run>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            tool: Tool::default(),
            command_line: Vec::new(),
            process_id: 0,
            script: Script::default(),
            seed: 0,
            layout_seed: 0,
            environment: Environment::default(),
            runs: Vec::new(),
        }
    }
}

/// The measuring program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// `wmlrun`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: "wmlrun".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The workload's text, whole, so that a result can be repeated from itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// As given; `-` is standard input.
    pub path: String,
    /// All of it.
    pub text: String,
    /// Of the text, in hexadecimal.
    pub sha256: String,
    /// `sun` or `fsl`.
    pub dialect: String,
    /// How the dialect was told.
    pub dialect_reason: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// As the script wanted.
    #[default]
    Complete,
    /// By a signal or the user.
    Interrupted,
    /// By a failed operation.
    Failed,
    /// No thread could find a file to work on.
    Stuck,
    /// Before it could fill its file system.
    LowSpace,
    /// Without any operation done.
    NothingDone,
}

impl RunState {
    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Stuck => "stuck",
            Self::LowSpace => "low_space",
            Self::NothingDone => "nothing_done",
        }
    }
}

/// What the caches held of the files when the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheState {
    /// Evicted.
    #[serde(rename = "cold")]
    Cold,
    /// Read in.
    #[serde(rename = "warm")]
    Warm,
    /// Left as it was.
    #[default]
    #[serde(rename = "as-is")]
    AsIs,
    /// Evicted, but a cache below (of a loop device, say) is out of reach.
    #[serde(rename = "unknown below")]
    UnknownBelow,
}

impl CacheState {
    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::AsIs => "as-is",
            Self::UnknownBelow => "unknown below",
        }
    }
}

/// One measured run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// How it ended.
    pub state: RunState,
    /// What ended it, in words: `time`, `all threads done`, `finishoncount`, `SIGINT`, a failed operation…
    pub ended_by: String,
    /// When measuring began, RFC 3339.
    pub started_at: String,
    /// When it ended, in seconds since the program's start (Filebench's log lines begin with it).
    pub finished_seconds: f64,
    /// The time asked for; null without a limit.
    pub requested_seconds: Option<f64>,
    /// The time measured, warm-up left out.
    pub measured_seconds: f64,
    /// The file systems and the kernel as the run found them.
    pub environment: RunEnvironment,
    /// Whether it went on from the files that were there (`as-is`); else file sets were brought to their definitions before.
    pub as_is: bool,
    /// The script's variables as the run saw them.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// What made the calls: `posix`; `uring`, where asynchronous I/O went by `io_uring`; `null`.
    pub engine: String,
    /// WML processes started.
    pub processes: u64,
    /// WML threads started, of all processes.
    pub threads: u64,
    /// The processors that threads were bound to, in turn (`--pin`); null if they were not bound.
    pub pinned_processors: Option<Vec<u64>>,
    /// How processes got descriptor tables of their own: `close_range`, `unshare`; `shared` if they did not.
    pub descriptor_tables: String,
    /// Whether the script asked for Filebench's latency histograms (`enable lathist`).
    pub lathist: bool,
    /// The part that ran before measuring, counted apart.
    pub warmup: Option<Warmup>,
    /// What the tool itself adds to an operation, calibrated before the run.
    pub overhead_ns_per_op: Option<f64>,
    /// The most memory that the program had resident until the end of the run, in bytes; without the page cache.
    pub peak_memory: u64,
    /// Operations in flight at the end; in no other count.
    pub late_ops: u64,
    /// How long the oldest of those had been going when the time was up.
    pub late_oldest_seconds: Option<f64>,
    /// What the caches held at the start.
    pub cache_state: CacheState,
    /// Dirty pages of the machine.
    pub dirty_bytes: Option<DirtyBytes>,
    /// Whether the disks were idle at the start, after earlier writes; false after `--no-quiesce`.
    pub quiesced: Option<bool>,
    /// Of a run with intended start times (`rate=`).
    pub open_loop: Option<OpenLoop>,
    /// The phases, where the script has several. The rates of a flowop are over its own.
    pub phases: Vec<PhaseResult>,
    /// The whole run in a line.
    pub summary: Summary,
    /// Every flowop of every thread, in order of definition; instances summed.
    pub flowops: Vec<FlowopResult>,
    /// The file sets that it used.
    pub filesets: Vec<FilesetResult>,
    /// The run's time series. Each flowop's operations and bytes add up to its totals. At most 2,000: a run of more than so many times
    /// `--interval` has longer ones.
    pub intervals: Vec<Interval>,
    /// From when on the run was steady; null if it has fewer than twenty intervals.
    pub steady: Option<Steadiness>,
    /// What ended the run before its time, if something went wrong.
    pub failure: Option<Failure>,
    /// A digest of what the threads did, if asked for (`--digest`).
    pub digest: Option<Digest>,
    /// Threads that were still in a call when the result was written.
    pub stragglers: Vec<Straggler>,
    /// What a reader of the numbers should know.
    pub warnings: Vec<Note>,
}

impl Run {
    /// Gives each flowop of the intervals its name.
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
}

/// What went wrong in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// The flowop, as `process/thread/name`; absent if it was none's fault.
    pub flowop: Option<String>,
    /// Its line in the script.
    pub line: Option<u64>,
    /// The operation that failed, and its error.
    pub what: String,
    /// The file.
    pub path: Option<String>,
    /// The error's name: `ENOSPC`.
    pub errno: Option<String>,
    /// What to do.
    pub help: String,
}

/// A thread that was still in a call when the result was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Straggler {
    /// As `process/thread/flowop`.
    pub flowop: String,
    /// Which process instance, from 0.
    pub instance: u64,
    /// Which thread of it, from 0.
    pub thread: u64,
    /// Where in the kernel it waits, if the kernel says.
    pub wait_channel: Option<String>,
    /// The file that its call is about, or else where the files of its flowop are.
    pub path: Option<String>,
}

/// What ran before measuring began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Warmup {
    /// How long.
    pub seconds: f64,
    /// I/O operations that ended in it.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Its time series, in seconds since its start.
    pub intervals: Vec<Interval>,
}

/// Dirty pages of the machine, from `/proc/meminfo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirtyBytes {
    /// When the run began.
    pub before: u64,
    /// When it had ended.
    pub after: u64,
}

/// What an open loop offered and what was achieved of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenLoop {
    /// Intended starts a second.
    pub offered_per_s: f64,
    /// Ends a second.
    pub achieved_per_s: f64,
    /// Intended starts that had not happened at the end.
    pub backlog: u64,
    /// How long the oldest of those was overdue.
    pub backlog_oldest_seconds: f64,
    /// Mean wake-up latency: the delay between the intended and the actual start of requests for which a thread slept. Null if there were none.
    pub wakeup_latency_ns_mean: Option<f64>,
    /// The share of wake-up latency in all response times, 0 to 1. Null if no request ended.
    pub wakeup_latency_share: Option<f64>,
    /// Time that threads spent busy-waiting for the next start. It is processor time of the program, but no work.
    pub spin_seconds: f64,
}

/// What a flowop is counted as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowopClass {
    /// Works on files.
    Io,
    /// Works on files, without waiting.
    Aio,
    /// Waits for other threads or for time: semaphores, limiters.
    Sync,
    /// Anything else: processor load, delays, ends.
    #[default]
    Other,
}

impl FlowopClass {
    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Aio => "aio",
            Self::Sync => "sync",
            Self::Other => "other",
        }
    }

    /// Whether the summary counts it.
    pub fn is_io(self) -> bool {
        matches!(self, Self::Io | Self::Aio)
    }
}

/// One flowop of one thread of one process, all instances together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowopResult {
    /// The process that defines it.
    pub process: String,
    /// The thread that defines it.
    pub thread: String,
    /// Its place among the thread's flowops, from 0.
    pub index: u64,
    /// Its name; `outer.inner` inside a composite flowop.
    pub name: String,
    /// Its type: `read`, `createfile`…
    pub kind: String,
    /// What it counts as.
    pub class: FlowopClass,
    /// Whether it counts as a read.
    pub reads: bool,
    /// Whether it counts as a write.
    pub writes: bool,
    /// Whether each of its operations is a transaction, as the script says.
    pub transaction: bool,
    /// Line of the script, from 1.
    pub line: u64,
    /// How many threads ran it.
    pub instances: u64,
    /// The phase of its process, as the script numbers it: 1, unless the script says otherwise.
    pub phase: u64,
    /// Operations that ended inside the measured time.
    pub ops: u64,
    /// Those a second.
    pub ops_per_s: f64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Those a second, in 2²⁰.
    pub mib_per_s: f64,
    /// Files opened because an operation needed them, which is in no latency.
    pub implicit_opens: u64,
    /// Mean time of such an open; null without one.
    pub open_ns_mean: Option<f64>,
    /// System calls beyond one an operation (whole files, listings).
    pub calls: u64,
    /// Failed operations by the error's name (`ENOSPC`).
    pub errors: BTreeMap<String, u64>,
    /// Operations that ended after the measured time; in no other count.
    pub late_ops: u64,
    /// Bytes that those moved.
    pub late_bytes: u64,
    /// Time spent waiting for a usable file, of all instances together.
    pub starved_seconds: f64,
    /// The tool's own time an operation (picking a file, building a path); null without operations.
    pub tool_ns_mean: Option<f64>,
    /// Processor time of the commands that it ran, in user mode; of a `command` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_user_seconds: Option<f64>,
    /// The same in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_system_seconds: Option<f64>,
    /// From the call to its return.
    pub latency_ns: Latency,
    /// From the intended start to the end; of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<Latency>,
    /// From the intended to the actual start; of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Latency>,
    /// The latency's distribution: `HdrHistogram` V2, deflated, in base64.
    pub histogram: String,
}

/// A file set that a run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesetResult {
    /// Its name in the script.
    pub name: String,
    /// Its root directory.
    pub path: String,
    /// What shapes it: entries, widths, gammas, seed.
    pub layout: BTreeMap<String, serde_json::Value>,
    /// Files, existing or not yet.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Time to make it; null if nothing was made.
    pub populate_seconds: Option<f64>,
    /// What it took to bring a tree that was there to its definition; null if none was there.
    pub repaired: Option<Repaired>,
    /// Time until it was on the device; null if not waited for.
    pub sync_seconds: Option<f64>,
    /// Share of its pages in memory before the run, 0 … 1; null if not measured.
    pub resident_before: Option<f64>,
    /// The same after the run.
    pub resident_after: Option<f64>,
    /// 95 % interval of `resident_before`, as it comes from a sample of files.
    pub resident_before_interval: Option<[f64; 2]>,
    /// 95 % interval of `resident_after`.
    pub resident_after_interval: Option<[f64; 2]>,
    /// What the run's operations moved of its files.
    pub asked_bytes: DeviceBytes,
    /// Bytes that the bottom devices moved during the run, for all programs; null if unknown.
    pub device_bytes: Option<DeviceBytes>,
    /// Where the bytes were that the run asked for (reads, or writes if it had none): `asked_bytes` of all sets on the same
    /// devices held against `device_bytes`. Null without such bytes, or if that cannot be told.
    pub verdict: Option<Verdict>,
}

/// Changes that brought a tree to its definition before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repaired {
    /// Files made.
    pub made: u64,
    /// Files whose size was changed, in place.
    pub resized: u64,
    /// Files removed.
    pub removed: u64,
    /// Directories made.
    pub directories_made: u64,
    /// Directories removed.
    pub directories_removed: u64,
}

/// Who moved the bytes that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The devices: at least nine tenths.
    #[serde(rename = "device")]
    Device,
    /// Memory: at most a tenth came to the devices.
    #[serde(rename = "memory")]
    Memory,
    /// Both.
    #[serde(rename = "device and memory")]
    Both,
    /// Whatever the devices moved: a cache below the file system is out of reach.
    #[serde(rename = "unknown below")]
    UnknownBelow,
}

impl Verdict {
    /// As in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Memory => "memory",
            Self::Both => "device and memory",
            Self::UnknownBelow => "unknown below",
        }
    }
}

/// Bytes that devices moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceBytes {
    /// Read from them.
    pub read: u64,
    /// Written to them.
    pub written: u64,
}

/// An interval of a run: what happened in it alone. It began at `t` − `seconds`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// When it ended, in seconds since measuring began.
    pub t: f64,
    /// How long it was.
    pub seconds: f64,
    /// In the order of the run's flowops.
    pub flowops: Vec<IntervalFlowop>,
}

/// One flowop in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalFlowop {
    /// Which: `process/thread/name`.
    pub name: String,
    /// Operations that ended in it.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Their mean latency; null without operations.
    pub mean_ns: Option<f64>,
    /// Their median latency.
    pub p50_ns: Option<u64>,
    /// Their 99th percentile.
    pub p99_ns: Option<u64>,
}

/// Something to know about a run, with a code that programs can look for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// Stable: `short_run`, `memory_file_system`…
    pub code: String,
    /// What is, and what to do.
    pub message: String,
}
