//! Warnings about the validity of a run's figures, with advice.
//!
//! They are derived from the document only, so that a stored result gives the same warnings as the run. A [`Warning`]
//! holds data; [`Warning::message`] and [`Warning::advice`] return its text. Not here: the conditions of the warnings
//! (`warning_rules`).

pub use super::warning_rules::{of, other_codes, unfulfilled};

use crate::environment::MountInfo;
use crate::{DeviceBytes, Document, Note, Run, RunState};
use wml_text::count::{count, measured};
use wml_text::{duration, size};

/// Share of processor time of other programs above which they affect the figures.
pub(super) const MAX_OTHERS: f64 = 0.20;

/// Share of the requests that were not started above which threads that ended early are the reason.
const MOSTLY_LOST: f64 = 0.5;

/// How many flowops a warning names.
const MAX_NAMED: usize = 3;

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
    /// Phases did not start.
    PhaseNotStarted {
        /// Their numbers.
        numbers: Vec<u64>,
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
        /// Share of the kernel's threads, which may work for the run, 0 to 1.
        kernel: f64,
        /// The host, if the run has several.
        host: Option<String>,
    },
    /// Other programs used the devices.
    SharedDevices {
        /// Bytes that the devices moved.
        moved: DeviceBytes,
        /// Bytes that the run made them move.
        own: DeviceBytes,
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
    /// No I/O operation completed for a time, although many did before or after it.
    Stalled {
        /// The duration in seconds.
        seconds: f64,
        /// Its beginning, in seconds since measuring began.
        from_seconds: f64,
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
        /// The share of the requests that were not started whose threads had ended early, 0 to 1.
        lost: f64,
    },
    /// A phase began later than its start.
    PhaseLate {
        number: u64,
        /// The delay in seconds.
        seconds: f64,
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
    /// Some ranks ran while others did not.
    RanksOverlap {
        /// The time in which all ranks ran, in seconds.
        seconds: f64,
        /// The least share of a rank's measured time that it covers, 0 to 1.
        covered: f64,
    },
}

/// Every code that [`Warning::code`] returns, in its order. A test compares both.
pub const CODES: [&str; 24] = [
    "not_complete",
    "errors",
    "phase_not_started",
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
    "shared_devices",
    "unsteady",
    "not_steady",
    "stalled",
    "starved",
    "unstable",
    "phase_late",
    "late_ops",
    "shared_descriptors",
    "ranks_overlap",
];

impl Warning {
    /// Returns an example of each warning, in the order of [`CODES`].
    pub fn examples() -> Vec<Self> {
        let flowop = "read".to_owned();
        vec![
            Self::NotComplete { state: RunState::Interrupted, ended_by: "SIGINT".to_owned() },
            Self::Errors { flowop: flowop.clone(), errno: "ENOSPC".to_owned(), count: 3 },
            Self::PhaseNotStarted { numbers: vec![2, 3] },
            Self::NoOperations { others: 0 },
            Self::ShortRun { seconds: 1.0 },
            Self::FewOperations { ops: 198 },
            Self::FewForPercentiles { flowops: vec![flowop.clone()] },
            Self::MemoryFileSystem { path: "/dev/shm/data".to_owned(), kind: "tmpfs".to_owned() },
            Self::FitsInMemory { bytes: 3 << 30, memory: 24 << 30, cold: false },
            Self::CacheUnknown { device: "/dev/loop0".to_owned() },
            Self::NotQuiesced { dirty: 1 << 30 },
            Self::ToolBound { overhead_ns: 200.0, mean_ns: 900.0 },
            Self::WakeupLatency { late_ns: 60_000.0, share: 0.3 },
            Self::ProcessorBound { busy: 1.0, own: 0.4, kernel: 0.1, host: None },
            Self::SharedDevices {
                moved: DeviceBytes { read: 9 << 30, written: 1 << 20 },
                own: DeviceBytes { read: 1 << 30, written: 1 << 20 },
            },
            Self::Unsteady { first_per_s: 9000.0, last_per_s: 6000.0 },
            Self::NotSteady { first_seconds: Some(14.0), all_per_s: 8000.0, rest_per_s: 9000.0 },
            Self::Stalled { seconds: 2.0, from_seconds: 31.0 },
            Self::Starved { flowop, share: 0.25 },
            Self::Unstable { offered_per_s: 5000.0, achieved_per_s: 4100.0, lost: 0.0 },
            Self::PhaseLate { number: 2, seconds: 1.5 },
            Self::LateOps { ops: 16, oldest_seconds: 2.5 },
            Self::SharedDescriptors,
            Self::RanksOverlap { seconds: 48.0, covered: 0.8 },
        ]
    }

    /// Returns the stable code of the warning, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotComplete { .. } => "not_complete",
            Self::Errors { .. } => "errors",
            Self::PhaseNotStarted { .. } => "phase_not_started",
            Self::NoOperations { .. } => "no_operations",
            Self::ShortRun { .. } => "short_run",
            Self::FewOperations { .. } => "few_operations",
            Self::FewForPercentiles { .. } => "few_for_percentiles",
            Self::MemoryFileSystem { .. } => "memory_file_system",
            Self::FitsInMemory { .. } => "fits_in_memory",
            Self::CacheUnknown { .. } => "cache_unknown",
            Self::NotQuiesced { .. } => "not_quiesced",
            Self::ToolBound { .. } => "tool_bound",
            Self::WakeupLatency { .. } => "wakeup_latency",
            Self::ProcessorBound { .. } => "processor_bound",
            Self::SharedDevices { .. } => "shared_devices",
            Self::Unsteady { .. } => "unsteady",
            Self::NotSteady { .. } => "not_steady",
            Self::Stalled { .. } => "stalled",
            Self::Starved { .. } => "starved",
            Self::Unstable { .. } => "unstable",
            Self::PhaseLate { .. } => "phase_late",
            Self::LateOps { .. } => "late_ops",
            Self::SharedDescriptors => "shared_descriptors",
            Self::RanksOverlap { .. } => "ranks_overlap",
        }
    }

    /// True if the warning is about the length of the run.
    pub fn is_about_length(&self) -> bool {
        matches!(self, Self::ShortRun { .. } | Self::FewOperations { .. } | Self::FewForPercentiles { .. })
    }

    /// True if the warning is about other programs that used the processors or the devices.
    pub fn is_about_others(&self) -> bool {
        match self {
            Self::ProcessorBound { busy, own, kernel, .. } => busy - own - kernel > MAX_OTHERS,
            Self::SharedDevices { .. } => true,
            _ => false,
        }
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
            Self::Errors { flowop, errno, count: n } if errno == wml_os::NO_CALL => {
                format!("{} of `{flowop}` failed before the system call", count(*n, "operation"))
            }
            Self::Errors { flowop, errno, count: n } => {
                format!("{} of `{flowop}` failed with {errno}", count(*n, "operation"))
            }
            Self::PhaseNotStarted { numbers } => {
                let all: Vec<String> = numbers.iter().map(u64::to_string).collect();
                format!("{} {} did not start", if all.len() == 1 { "phase" } else { "phases" }, all.join(", "))
            }
            Self::NoOperations { others: 0 } => {
                "no operation of any flowop completed within the measured time".to_owned()
            }
            Self::NoOperations { .. } => "no I/O operation completed within the measured time".to_owned(),
            Self::ShortRun { seconds } => format!("the measured time is only {}", duration::seconds(*seconds)),
            Self::FewOperations { ops } => format!("the run completed only {}", count(*ops, "I/O operation")),
            Self::FewForPercentiles { flowops } => {
                let more = flowops.len().saturating_sub(MAX_NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("too few operations for p99: {}{more}", quoted(&flowops[..flowops.len().min(MAX_NAMED)]))
            }
            Self::MemoryFileSystem { path, kind } => {
                format!("`{path}` is in memory ({kind}), not on storage")
            }
            Self::FitsInMemory { bytes, cold, .. } => {
                let which = if *cold { "repeated reads" } else { "reads" };
                format!("{} of files fit in memory: {which} may be cached", size::format(*bytes))
            }
            Self::CacheUnknown { device } => {
                format!("reads may be cached below `{device}`")
            }
            Self::NotQuiesced { dirty } => {
                format!("{} of earlier writes were not on the disk at the start", size::format(*dirty))
            }
            Self::ToolBound { overhead_ns, mean_ns } => format!(
                "wmlrun itself takes {} per operation, with a mean latency of {}",
                duration::latency(*overhead_ns),
                duration::latency(*mean_ns)
            ),
            Self::WakeupLatency { late_ns, share } => format!(
                "the mean wake-up latency of {} is {:.0} % of the response time",
                duration::latency(*late_ns),
                share * 100.0
            ),
            Self::ProcessorBound { busy, own, kernel, host } => {
                let of = host.as_ref().map(|host| format!(" of `{host}`")).unwrap_or_default();
                let part = |who: &str, share: f64, is_shown: bool| match is_shown {
                    true => format!(", {who} {:.0} %", share * 100.0),
                    false => String::new(),
                };
                let others = part("other programs", busy - own - kernel, self.is_about_others());
                let kernel = part("the kernel", *kernel, *kernel >= 0.01);
                let (busy, own) = (busy * 100.0, own * 100.0);
                format!("all processors{of} were {busy:.0} % busy; this run used {own:.0} %{kernel}{others}")
            }
            Self::SharedDevices { moved, own } => {
                let of = |of_all: u64, own: u64, done: &str| {
                    format!("{} {done}, {} of it by this run", size::format(of_all), size::format(own))
                };
                let read = moved.are_mostly_read_by_others(own).then(|| of(moved.read, own.read, "read"));
                let written =
                    moved.are_mostly_written_by_others(own).then(|| of(moved.written, own.written, "written"));
                let parts: Vec<String> = read.into_iter().chain(written).collect();
                format!("other programs used the devices: {}", parts.join("; "))
            }
            Self::Unsteady { first_per_s, last_per_s } => {
                let change = (last_per_s / first_per_s - 1.0) * 100.0;
                let (first, last) = (measured(*first_per_s), measured(*last_per_s));
                format!("{first} ops/s in the first third, {last} in the last ({change:+.0} %)")
            }
            Self::NotSteady { first_seconds: Some(first), all_per_s, rest_per_s } => format!(
                "not steady for {}: then {} ops/s, overall {}",
                duration::seconds(*first),
                measured(*rest_per_s),
                measured(*all_per_s)
            ),
            Self::NotSteady { first_seconds: None, .. } => "not steady: the rate changed until the end".to_owned(),
            Self::Stalled { seconds, from_seconds } => format!(
                "no I/O operation completed for {}, from {} on",
                duration::seconds(*seconds),
                duration::seconds(*from_seconds)
            ),
            Self::Starved { flowop, share } => {
                format!("`{flowop}` spent {:.1} % of its time waiting for a usable file", share * 100.0)
            }
            Self::Unstable { offered_per_s, achieved_per_s, lost } => {
                let lost = if *lost > 0.0 {
                    format!("; {:.0} % of the rest belong to threads that ended early", lost * 100.0)
                } else {
                    String::new()
                };
                format!("{} requests/s arrived, {} achieved{lost}", measured(*offered_per_s), measured(*achieved_per_s))
            }
            Self::PhaseLate { number, seconds } => {
                format!("phase {number} began {} after its `start=`", duration::seconds(*seconds))
            }
            Self::LateOps { ops, oldest_seconds } => format!(
                "{} in flight at the end, the oldest for {}",
                count(*ops, "operation"),
                duration::seconds(*oldest_seconds)
            ),
            Self::SharedDescriptors => "the processes shared one descriptor table".to_owned(),
            Self::RanksOverlap { seconds, .. } if *seconds <= 0.0 => {
                "the ranks never ran all at once: the run has no rates".to_owned()
            }
            Self::RanksOverlap { seconds, covered } => format!(
                "the rates cover only the {} in which all ranks ran ({:.0} %)",
                duration::seconds(*seconds),
                (covered * 100.0).floor()
            ),
        }
    }

    /// Returns the advice: how to avoid the cause of the warning, or how to interpret the figures.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotComplete { .. } => {
                "compare with care: the figures cover only the time until the run ended, or, of a replay, calls that did \
                 something else"
            }
            Self::Errors { .. } => {
                "find the cause before you use the figures: failed operations are in no other figure"
            }
            Self::PhaseNotStarted { .. } => {
                "run longer, or give the phases before it a shorter `for=`: the figures cover the other phases only"
            }
            Self::NoOperations { others: 0 } => {
                "check that the threads have usable files and do not wait for each other"
            }
            Self::NoOperations { .. } => "run longer, or check whether threads wait for each other",
            Self::ShortRun { .. } => "run for at least a minute (`--runtime 60`) after a warm-up (`--warmup 10`)",
            Self::FewOperations { .. } => "run longer: means and percentiles of few operations vary widely",
            Self::FewForPercentiles { .. } => "run longer",
            Self::MemoryFileSystem { .. } => {
                "choose a directory on the file system to be measured (`--dir`): this run measures memory"
            }
            Self::FitsInMemory { cold: true, .. } => {
                "use file sets larger than memory, or read with `directio`: repeated reads may be served from the page cache"
            }
            Self::FitsInMemory { .. } => {
                "use file sets larger than memory, or evict them with `--cold` and keep the run short: reads may be \
                 served from the page cache"
            }
            Self::CacheUnknown { .. } => {
                "attach loop devices with `losetup --direct-io=on`: reads may not reach the disk"
            }
            Self::NotQuiesced { .. } => "omit `--no-quiesce`, or wait before the run",
            Self::ToolBound { .. } => {
                "compare only runs of the same machine and version; larger operations reduce the tool's share"
            }
            Self::WakeupLatency { .. } => {
                "read the latency, not the response time: the operations are too short; fewer threads or an idle \
                 machine reduce the delay"
            }
            Self::ProcessorBound { .. } if self.is_about_others() => {
                "stop the other programs and repeat: they disturbed the run"
            }
            Self::SharedDevices { .. } => "stop the other programs and repeat: they probably disturbed the run",
            Self::ProcessorBound { .. } => {
                "try fewer threads, which may reach the same rate: the processors limit it, not the storage"
            }
            Self::Unsteady { .. } => "run longer, warm up (`--warmup`), and check the intervals",
            Self::NotSteady { .. } => "exclude that part with `--warmup`, and run longer",
            Self::Stalled { .. } => {
                "check the device and the messages of the kernel; a pause that the script makes is no stall"
            }
            Self::Starved { .. } => {
                "define more files in the file set, or create and delete them at the same rate; `maystarve` declares \
                 that the workload is meant to wait"
            }
            Self::Unstable { lost, .. } if *lost >= MOSTLY_LOST => {
                "find out why threads ended early: the file system may be able to keep this rate"
            }
            Self::PhaseLate { .. } => "give it a later `start=`, or the phase before it a shorter `for=`",
            Self::Unstable { .. } => "lower the rate: backlog and response times grow as long as the run lasts",
            Self::LateOps { .. } => {
                "the device stalled: run longer, so that stalled operations complete and are counted"
            }
            Self::RanksOverlap { .. } => {
                "run longer, or give all ranks the same work; counts and latencies cover the whole run, and 100 % is \
                 the time of the longest rank"
            }
            Self::SharedDescriptors => {
                "many open files cost more than in separate tables, for which the kernel lacks `close_range` and \
                 `unshare`"
            }
        }
    }

    /// Returns the advice on warnings of this code, in all cases.
    pub fn advice_in_all_cases(&self) -> String {
        let (case, other) = match self {
            Self::ProcessorBound { .. } => {
                ("if there were none", Self::ProcessorBound { busy: 1.0, own: 1.0, kernel: 0.0, host: None })
            }
            Self::FitsInMemory { .. } => {
                ("if the run began cold", Self::FitsInMemory { bytes: 0, memory: 0, cold: true })
            }
            Self::NoOperations { .. } => ("if other flowops completed operations", Self::NoOperations { others: 1 }),
            Self::Unstable { .. } => (
                "if most of the rest belong to threads that ended early",
                Self::Unstable { offered_per_s: 2.0, achieved_per_s: 1.0, lost: 1.0 },
            ),
            _ => return self.advice().to_owned(),
        };
        format!("{}; {case}: {}", self.advice(), other.advice())
    }

    /// Returns the warning as it is stored in the result.
    pub fn note(&self) -> Note {
        Note { code: self.code().to_owned(), message: format!("{}; {}", self.message(), self.advice()) }
    }
}

/// Stores the warnings of every run in the document. Keeps warnings from other sources.
pub fn note(document: &mut Document) {
    let found: Vec<Vec<Warning>> = document.runs.iter().map(|run| of(document, run)).collect();
    for (run, warnings) in document.runs.iter_mut().zip(found) {
        run.warnings.retain(|note| !is_derived(note));
        run.warnings.extend(warnings.iter().map(Warning::note));
    }
}

/// True if a stored warning is one that [`of`] finds.
pub(crate) fn is_derived(note: &Note) -> bool {
    CODES.contains(&note.code.as_str())
}

/// Returns the mount that contains a path: the mount with the longest mount point that is a prefix of the path.
pub fn mount_of<'a>(run: &'a Run, path: &str) -> Option<&'a MountInfo> {
    mount_among(&run.environment.mounts, path)
}

/// Returns the mount of `mounts` that contains a path.
pub(super) fn mount_among<'a>(mounts: &'a [MountInfo], path: &str) -> Option<&'a MountInfo> {
    let path = std::path::Path::new(path);
    let holds = |mount: &&MountInfo| path.starts_with(&mount.path);
    mounts.iter().filter(holds).max_by_key(|mount| mount.path.len())
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
