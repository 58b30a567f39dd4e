//! Warnings about the validity of a run's figures, with advice.
//!
//! They are derived from the document only, so that a stored result gives the same warnings as the run. A [`Warning`]
//! holds data; [`Warning::message`] and [`Warning::advice`] return its text.

use crate::result::environment::MountInfo;
use crate::result::{CacheState, Document, FilesetResult, Interval, Note, Run, RunState, Verdict};
use crate::util::count::{count, measured};
use crate::util::{duration, size};

/// A run with a shorter measured time is dominated by its start.
const MIN_SECONDS: f64 = 5.0;
/// With fewer operations, fewer than ten are above the 99th percentile.
const MIN_OPS: u64 = 1_000;
/// Share of the tool's own time in the mean latency above which there is a warning; likewise of wake-up latency in the
/// response time.
const MAX_TOOL_SHARE: f64 = 0.10;
/// Share of busy processor time above which the processors limit the threads.
const MAX_BUSY: f64 = 0.90;
/// Share of processor time of other programs above which they affect the figures.
const MAX_OTHERS: f64 = 0.20;
/// Relative change of the rate from the first to the last third of a run above which there is a warning.
const MAX_DRIFT: f64 = 0.20;
/// An unsteady first part gives no warning if it changes the overall rate by less than this share.
const MIN_CHANGE: f64 = 0.01;
/// Minimum number of intervals for comparing the first with the last third.
const MIN_INTERVALS: usize = 6;
/// Share of threads' time spent waiting for a file above which there is a warning.
const MAX_STARVED: f64 = 0.01;
/// Achieved share of the offered rate of an open loop below which there is a warning.
const MIN_ACHIEVED: f64 = 0.98;
/// Dirty pages before the start, in bytes, above which there is a warning.
const MAX_DIRTY: u64 = 64 << 20;
/// A file set is regarded as not in memory if less than this share of its pages is resident.
const MIN_RESIDENT: f64 = 0.1;
/// Age of the oldest operation in flight at the end above which there is a warning, in seconds.
const MAX_LATE_SECONDS: f64 = 1.0;

/// A warning about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// The run did not end as the script specifies.
    NotComplete {
        /// How the run ended.
        state: RunState,
        /// What ended the run; may be empty.
        ended_by: String,
    },
    /// Operations failed.
    Errors {
        /// Name of the flowop.
        flowop: String,
        /// Name of the error: `ENOSPC`.
        errno: String,
        /// Number of failed operations.
        count: u64,
    },
    /// No I/O operation completed within the measured time.
    NoOperations {
        /// Number of operations of other classes.
        others: u64,
    },
    /// The measured time is short.
    ShortRun {
        /// The measured time in seconds.
        seconds: f64,
    },
    /// The run has few I/O operations.
    FewOperations {
        /// Number of I/O operations.
        ops: u64,
    },
    /// Some flowops have too few operations for their percentiles.
    FewForPercentiles {
        /// Their names.
        flowops: Vec<String>,
    },
    /// A file set is on a file system in memory.
    MemoryFileSystem {
        /// Root of the file set.
        path: String,
        /// Type of the file system: `tmpfs`, `ramfs`.
        kind: String,
    },
    /// The file sets fit in memory, and reads may have been served from the page cache.
    FitsInMemory {
        /// Total size of the file sets on storage, in bytes.
        bytes: u64,
        /// Size of main memory in bytes.
        memory: u64,
        /// State of the page cache at the start.
        cache_state: CacheState,
        /// Whether the cache was evicted at the start, or `--cold` requested it.
        cold: bool,
    },
    /// The state of a cache below the file system is unknown.
    CacheUnknown {
        /// Name of the device above that cache, or `the file system`.
        device: String,
    },
    /// Earlier writes were not complete at the start.
    NotQuiesced {
        /// Dirty bytes at the start.
        dirty: u64,
    },
    /// The tool's own time is large compared to the latency.
    ToolBound {
        /// Calibrated overhead and time to pick a file, per operation, in nanoseconds.
        overhead_ns: f64,
        /// Mean latency in nanoseconds.
        mean_ns: f64,
    },
    /// Wake-up latency is a large part of the response time of an open loop.
    WakeupLatency {
        /// Mean wake-up latency in nanoseconds.
        late_ns: f64,
        /// Its share of all response times, 0 to 1.
        share: f64,
    },
    /// The processors were busy.
    ProcessorBound {
        /// Busy share of the processors' time, 0 to 1.
        busy: f64,
        /// Share of the run itself, 0 to 1.
        own: f64,
    },
    /// The rate changed during the run.
    Unsteady {
        /// I/O operations per second in the first third of the run.
        first_per_s: f64,
        /// I/O operations per second in the last third.
        last_per_s: f64,
    },
    /// A first part of the run, or all of it, was not steady.
    NotSteady {
        /// Length of the unsteady first part in seconds; `None` if the run was never steady.
        first_seconds: Option<f64>,
        /// I/O operations per second of the whole run.
        all_per_s: f64,
        /// I/O operations per second of the steady part.
        rest_per_s: f64,
    },
    /// Threads waited for a usable file.
    Starved {
        /// Name of the flowop.
        flowop: String,
        /// Share of the time of all its threads, 0 to 1.
        share: f64,
    },
    /// An open loop did not achieve its offered rate.
    Unstable {
        /// Offered requests per second.
        offered_per_s: f64,
        /// Completed requests per second.
        achieved_per_s: f64,
    },
    /// Operations had been in flight for a long time at the end of the run.
    LateOps {
        /// Number of operations in flight at the end.
        ops: u64,
        /// Age of the oldest of them in seconds.
        oldest_seconds: f64,
    },
    /// WML processes shared one descriptor table.
    SharedDescriptors,
}

/// Every code that [`Warning::code`] returns.
pub const CODES: [&str; 19] = [
    "not_complete",
    "errors",
    "no_operations",
    "short_run",
    "few_operations",
    "few_for_percentiles",
    "memory_file_system",
    "fits_in_memory",
    "cache_unknown",
    "not_quiesced",
    "tool_bound",
    "wakeup_latency",
    "processor_bound",
    "unsteady",
    "not_steady",
    "starved",
    "unstable",
    "late_ops",
    "shared_descriptors",
];

impl Warning {
    /// Returns the stable code of the warning, for programs.
    pub fn code(&self) -> &'static str {
        let index = match self {
            Self::NotComplete { .. } => 0,
            Self::Errors { .. } => 1,
            Self::NoOperations { .. } => 2,
            Self::ShortRun { .. } => 3,
            Self::FewOperations { .. } => 4,
            Self::FewForPercentiles { .. } => 5,
            Self::MemoryFileSystem { .. } => 6,
            Self::FitsInMemory { .. } => 7,
            Self::CacheUnknown { .. } => 8,
            Self::NotQuiesced { .. } => 9,
            Self::ToolBound { .. } => 10,
            Self::WakeupLatency { .. } => 11,
            Self::ProcessorBound { .. } => 12,
            Self::Unsteady { .. } => 13,
            Self::NotSteady { .. } => 14,
            Self::Starved { .. } => 15,
            Self::Unstable { .. } => 16,
            Self::LateOps { .. } => 17,
            Self::SharedDescriptors => 18,
        };
        CODES[index]
    }

    /// Returns whether the warning is about other programs that used the processors.
    pub fn is_about_others(&self) -> bool {
        matches!(self, Self::ProcessorBound { busy, own } if busy - own > MAX_OTHERS)
    }

    /// Returns the text of the warning.
    pub fn message(&self) -> String {
        match self {
            Self::NotComplete { state, ended_by } => {
                let by = if ended_by.is_empty() { String::new() } else { format!(": {ended_by}") };
                match state {
                    RunState::Interrupted => format!("the run was interrupted{by}"),
                    RunState::Stuck => format!("the run got stuck{by}"),
                    RunState::LowSpace => format!("the run was ended before it filled its file system{by}"),
                    RunState::NothingDone => "no operation was completed".to_owned(),
                    RunState::Failed | RunState::Complete => format!("the run failed{by}"),
                }
            }
            Self::Errors { flowop, errno, count: n } if errno == crate::os::NO_CALL => {
                format!("{} of `{flowop}` failed before the system call", count(*n, "operation"))
            }
            Self::Errors { flowop, errno, count: n } => {
                format!("{} of `{flowop}` failed with {errno}", count(*n, "operation"))
            }
            Self::NoOperations { others: 0 } => {
                "no operation of any flowop completed within the measured time".to_owned()
            }
            Self::NoOperations { .. } => "no I/O operation completed within the measured time".to_owned(),
            Self::ShortRun { seconds } => format!("the measured time is only {}", duration::seconds(*seconds)),
            Self::FewOperations { ops } => format!("the run completed only {}", count(*ops, "I/O operation")),
            Self::FewForPercentiles { flowops } => {
                format!("too few operations for a 99th percentile: {}", quoted(flowops))
            }
            Self::MemoryFileSystem { path, kind } => {
                format!("`{path}` is on {kind}: the run measures memory, not storage")
            }
            Self::FitsInMemory { bytes, memory, cache_state, .. } => {
                let share = *bytes as f64 / *memory as f64;
                let of = format!("{} of files and {} of memory", size::format(*bytes), size::format(*memory));
                let reads = if *cache_state == CacheState::Cold { "repeated reads" } else { "reads" };
                format!("{of} ({share:.2} x), cache {}: {reads} may be served from memory", cache_state.name())
            }
            Self::CacheUnknown { device } => {
                format!("the state of the cache below `{device}` is unknown: reads may not reach the disk")
            }
            Self::NotQuiesced { dirty } => {
                format!("{} of earlier writes had not reached the device at the start", size::format(*dirty))
            }
            Self::ToolBound { overhead_ns, mean_ns } => format!(
                "the tool adds {} to each operation, compared to a mean latency of {}",
                duration::latency(*overhead_ns),
                duration::latency(*mean_ns)
            ),
            Self::WakeupLatency { late_ns, share } => format!(
                "wake-up latency is {:.0} % of the response times, {} on average",
                share * 100.0,
                duration::latency(*late_ns)
            ),
            Self::ProcessorBound { busy, own } => {
                format!("all processors were {:.0} % busy; this run used {:.0} %", busy * 100.0, own * 100.0)
            }
            Self::Unsteady { first_per_s, last_per_s } => {
                let change = (last_per_s / first_per_s - 1.0) * 100.0;
                let (first, last) = (measured(*first_per_s), measured(*last_per_s));
                format!("the rate changed from {first} ops/s in the first third to {last} in the last ({change:+.0} %)")
            }
            Self::NotSteady { first_seconds: Some(first), all_per_s, rest_per_s } => format!(
                "not steady: first {}; {} ops/s after that, {} ops/s overall",
                duration::seconds(*first),
                measured(*rest_per_s),
                measured(*all_per_s)
            ),
            Self::NotSteady { first_seconds: None, .. } => "not steady: the rate changed until the end".to_owned(),
            Self::Starved { flowop, share } => {
                format!("`{flowop}` spent {:.1} % of its time waiting for a usable file", share * 100.0)
            }
            Self::Unstable { offered_per_s, achieved_per_s } => format!(
                "unstable: {} requests/s offered, {} achieved",
                measured(*offered_per_s),
                measured(*achieved_per_s)
            ),
            Self::LateOps { ops, oldest_seconds } => format!(
                "{} in flight at the end of the run, the oldest for {}",
                count(*ops, "operation"),
                duration::seconds(*oldest_seconds)
            ),
            Self::SharedDescriptors => "the processes shared one descriptor table".to_owned(),
        }
    }

    /// Returns the advice: how to avoid the cause of the warning, or how to interpret the figures.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotComplete { .. } => {
                "the figures cover only the time until the end of the run; compare them with care"
            }
            Self::Errors { .. } => "failed operations are in no other figure; find the cause before using the figures",
            Self::NoOperations { others: 0 } => {
                "check that the threads have usable files and do not wait for each other"
            }
            Self::NoOperations { .. } => "run longer, or check whether threads wait for each other",
            Self::ShortRun { .. } => "run for at least a minute (`--runtime 60`) after a warm-up (`--warmup 10`)",
            Self::FewOperations { .. } => "run longer: means and percentiles of few operations vary widely",
            Self::FewForPercentiles { .. } => "run longer, or ignore these percentiles",
            Self::MemoryFileSystem { .. } => "choose a directory on the file system to be measured (`--dir`)",
            Self::FitsInMemory { cold: true, .. } => "use file sets larger than memory, or read with `directio`",
            Self::FitsInMemory { .. } => {
                "use file sets larger than memory, or evict them with `--cold` and keep the run short"
            }
            Self::CacheUnknown { .. } => "attach loop devices with `losetup --direct-io=on`",
            Self::NotQuiesced { .. } => "omit `--no-quiesce`, or wait before the run",
            Self::ToolBound { .. } => {
                "compare only runs of the same machine and version; larger operations reduce the tool's share"
            }
            Self::WakeupLatency { .. } => {
                "use the latency for operations this short; fewer threads or an idle machine reduce the delay"
            }
            Self::ProcessorBound { .. } if self.is_about_others() => {
                "other programs used the processors and affected the figures: repeat without them"
            }
            Self::ProcessorBound { .. } => {
                "the processors limit the rate, not the storage; fewer threads may give the same rate"
            }
            Self::Unsteady { .. } => "run longer, warm up (`--warmup`), and check the intervals",
            Self::NotSteady { .. } => "exclude that part with `--warmup`, and run longer",
            Self::Starved { .. } => "define more files in the file set, or create and delete them at the same rate",
            Self::Unstable { .. } => "lower the rate: the backlog and the response times grow as long as the run lasts",
            Self::LateOps { .. } => {
                "the device stalled: run longer, so that stalled operations complete and are counted"
            }
            Self::SharedDescriptors => {
                "the kernel lacks `close_range` and `unshare`; many open files cost more than in separate tables"
            }
        }
    }

    /// Returns the warning as it is stored in the result.
    pub fn note(&self) -> Note {
        Note { code: self.code().to_owned(), message: format!("{}; {}", self.message(), self.advice()) }
    }
}

/// Returns all warnings about a run, the most serious first.
pub fn of(document: &Document, run: &Run) -> Vec<Warning> {
    let mut found = Vec::new();
    // A run without operations has a separate warning, `NoOperations`.
    if !matches!(run.state, RunState::Complete | RunState::NothingDone) {
        found.push(Warning::NotComplete { state: run.state, ended_by: run.ended_by.clone() });
    }
    for flowop in &run.flowops {
        for (errno, count) in &flowop.errors {
            found.push(Warning::Errors { flowop: flowop.name.clone(), errno: errno.clone(), count: *count });
        }
    }
    check_amount(run, &mut found);
    if run.engine != "null" {
        check_storage(document, run, &mut found);
    }
    check_machine(document, run, &mut found);
    check_course(run, &mut found);
    found
}

/// Returns the warning that no flowop completed an operation; `None` if one did.
pub fn nothing_done(document: &Document, run: &Run) -> Option<Warning> {
    of(document, run).into_iter().find(|warning| matches!(warning, Warning::NoOperations { others: 0 }))
}

/// Finds warnings about runs with too few operations or too little time.
fn check_amount(run: &Run, found: &mut Vec<Warning>) {
    let few: Vec<String> = run
        .flowops
        .iter()
        .filter(|f| f.class.is_io() && (1..MIN_OPS).contains(&f.ops))
        .map(|f| f.name.clone())
        .collect();
    match run.summary.ops {
        0 => found.push(Warning::NoOperations { others: run.flowops.iter().map(|f| f.ops).sum() }),
        ops if ops < MIN_OPS => found.push(Warning::FewOperations { ops }),
        _ if !few.is_empty() => found.push(Warning::FewForPercentiles { flowops: few }),
        _ => {}
    }
    if run.measured_seconds < MIN_SECONDS && run.state == RunState::Complete {
        found.push(Warning::ShortRun { seconds: run.measured_seconds });
    }
}

/// Finds warnings about runs that measured memory or another cache instead of storage.
fn check_storage(document: &Document, run: &Run, found: &mut Vec<Warning>) {
    let mut on_disk = Vec::new();
    let mut below = Vec::new();
    for set in &run.filesets {
        let mount = mount_of(run, &set.path);
        if let Some(mount) = mount.filter(|mount| mount.in_memory()) {
            found.push(Warning::MemoryFileSystem { path: set.path.clone(), kind: mount.kind.clone() });
            continue;
        }
        on_disk.push(set);
        let buffered = mount.and_then(|mount| mount.devices.iter().find(|device| device.direct_io == Some(false)));
        if let Some(device) = buffered.filter(|device| !below.contains(&device.name)) {
            below.push(device.name.clone());
        }
    }
    if below.is_empty() && run.cache_state == CacheState::UnknownBelow {
        below.push("the file system".to_owned());
    }
    found.extend(below.into_iter().map(|device| Warning::CacheUnknown { device }));

    let (bytes, memory) = (on_disk.iter().map(|set| set.bytes).sum::<u64>(), document.environment.memory.total);
    let reads = run.flowops.iter().any(|f| f.class.is_io() && f.reads && f.ops > 0);
    // Direct I/O leaves nothing in the page cache, even if the set would fit. If residency could not be measured, use
    // the bytes that the devices moved. That is weak evidence, since it includes read-ahead and other programs.
    let by_device = |set: &FilesetResult| {
        set.resident_after.map_or(set.verdict == Some(Verdict::Device), |share| share < MIN_RESIDENT)
    };
    let known = on_disk.iter().any(|set| set.asked_bytes.read > 0);
    let mut read = on_disk.iter().filter(|set| !known || set.asked_bytes.read > 0).peekable();
    let bypassed = read.peek().is_some() && read.all(|set| by_device(set));
    if reads && bytes > 0 && bytes < memory && run.cache_state != CacheState::Warm && !bypassed {
        let cold = run.cache_state == CacheState::Cold || document.command_line.iter().any(|word| word == "--cold");
        found.push(Warning::FitsInMemory { bytes, memory, cache_state: run.cache_state, cold });
    }
    let dirty = run.dirty_bytes.as_ref().map_or(0, |dirty| dirty.before);
    if run.quiesced == Some(false) && dirty > MAX_DIRTY {
        found.push(Warning::NotQuiesced { dirty });
    }
}

/// Finds warnings about runs that were limited by the tool or the machine.
fn check_machine(document: &Document, run: &Run, found: &mut Vec<Warning>) {
    if let (Some(overhead), Some(mean_ns)) = (run.overhead_ns_per_op, run.summary.latency_ns.mean) {
        let io = || run.flowops.iter().filter(|f| f.class.is_io());
        let tool: f64 = io().filter_map(|f| f.tool_ns_mean.map(|ns| ns * f.ops as f64)).sum();
        let ops: u64 = io().map(|f| f.ops).sum();
        let overhead_ns = overhead + tool / ops.max(1) as f64;
        if overhead_ns > MAX_TOOL_SHARE * mean_ns {
            found.push(Warning::ToolBound { overhead_ns, mean_ns });
        }
    }
    let open = run.open_loop.as_ref();
    if run.engine != "null"
        && let Some((late_ns, share)) = open.and_then(|open| open.wakeup_latency_ns_mean.zip(open.wakeup_latency_share))
        && share > MAX_TOOL_SHARE
    {
        found.push(Warning::WakeupLatency { late_ns, share });
    }
    if let Some(busy) = run.summary.cpu_busy.filter(|busy| *busy > MAX_BUSY) {
        let processor_seconds = run.measured_seconds * document.environment.cpu.count.max(1) as f64;
        let used_us = run.summary.cpu_us_per_op.map_or(0.0, |us| us * run.summary.ops as f64);
        let own = used_us / 1e6 / processor_seconds;
        // Busy-waiting is not load, so subtract it. But other programs may delay a busy-waiting thread.
        let spinning = open.map_or(0.0, |open| open.spin_seconds / processor_seconds);
        if busy - spinning > MAX_BUSY || spinning > 0.0 && busy - own > MAX_OTHERS {
            found.push(Warning::ProcessorBound { busy, own });
        }
    }
    if run.descriptor_tables == "shared" && run.processes > 1 {
        found.push(Warning::SharedDescriptors);
    }
}

/// Finds warnings about the course of the run: drift, starvation, overload, stalls.
fn check_course(run: &Run, found: &mut Vec<Warning>) {
    found.extend(unsteady(run));
    found.extend(not_steady(run));
    for flowop in &run.flowops {
        let share = flowop.starved_seconds / (run.measured_seconds * flowop.instances.max(1) as f64);
        if share > MAX_STARVED && share.is_finite() {
            found.push(Warning::Starved { flowop: flowop.name.clone(), share });
        }
    }
    if let Some(open) = &run.open_loop
        && open.achieved_per_s < MIN_ACHIEVED * open.offered_per_s
    {
        found.push(Warning::Unstable { offered_per_s: open.offered_per_s, achieved_per_s: open.achieved_per_s });
    }
    if let Some(oldest_seconds) = run.late_oldest_seconds.filter(|s| *s > MAX_LATE_SECONDS) {
        found.push(Warning::LateOps { ops: run.late_ops, oldest_seconds });
    }
}

/// Compares the rates of the first and the last third of the intervals.
fn unsteady(run: &Run) -> Option<Warning> {
    let third = run.intervals.len() / 3;
    if run.intervals.len() < MIN_INTERVALS {
        return None;
    }
    let rate = |part: &[Interval]| {
        let seconds: f64 = part.iter().map(|interval| interval.seconds).sum();
        part.iter().map(|interval| run.io_ops(interval)).sum::<u64>() as f64 / seconds
    };
    let first_per_s = rate(&run.intervals[..third]);
    let last_per_s = rate(&run.intervals[run.intervals.len() - third..]);
    let drift = (last_per_s - first_per_s).abs() / first_per_s;
    (drift.is_finite() && drift > MAX_DRIFT).then_some(Warning::Unsteady { first_per_s, last_per_s })
}

/// Returns a warning if a first part of the run was unsteady and changes the overall rate.
fn not_steady(run: &Run) -> Option<Warning> {
    let steady = run.steady.as_ref()?;
    let all_per_s = run.summary.ops_per_s;
    let rest_per_s = steady.ops_per_s.unwrap_or(all_per_s);
    let matters =
        steady.from_seconds.is_none_or(|from| from > 0.0 && (rest_per_s / all_per_s - 1.0).abs() > MIN_CHANGE);
    matters.then_some(Warning::NotSteady { first_seconds: steady.from_seconds, all_per_s, rest_per_s })
}

/// Stores the warnings of every run in the document. Keeps warnings from other sources.
pub fn note(document: &mut Document) {
    let found: Vec<Vec<Warning>> = document.runs.iter().map(|run| of(document, run)).collect();
    for (run, warnings) in document.runs.iter_mut().zip(found) {
        run.warnings.retain(|note| !is_derived(note));
        run.warnings.extend(warnings.iter().map(Warning::note));
    }
}

/// Returns whether a stored warning is one that [`of`] finds.
pub fn is_derived(note: &Note) -> bool {
    CODES.contains(&note.code.as_str())
}

/// Returns the mount that contains a path: the mount with the longest mount point that is a prefix of the path.
pub fn mount_of<'a>(run: &'a Run, path: &str) -> Option<&'a MountInfo> {
    let path = std::path::Path::new(path);
    let holds = |mount: &&MountInfo| path.starts_with(&mount.path);
    run.environment.mounts.iter().filter(holds).max_by_key(|mount| mount.path.len())
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
