//! What a reader of the numbers should know, with advice. Found from the document alone: a stored result warns as the
//! run did. The data is here as a [`Warning`]; the words are in its `message` and `advice`.

use crate::result::environment::MountInfo;
use crate::result::{CacheState, Document, FilesetResult, Interval, Note, Run, RunState, Verdict};
use crate::util::count::{count, measured};
use crate::util::{duration, size};

/// A run below this says more about its start than about its middle.
const SHORT_SECONDS: f64 = 5.0;
/// Below this the 99th percentile has fewer than ten operations beyond it.
const FEW_OPS: u64 = 1_000;
/// The tool's own share of the mean latency that is worth a word.
const TOOL_SHARE: f64 = 0.10;
/// Processors busier than this hold the threads back.
const BUSY: f64 = 0.90;
/// Share of busy processors that others take, beyond which it is their work that is in the figures.
const OTHERS: f64 = 0.20;
/// Difference between the first and the last third of a run.
const DRIFT: f64 = 0.20;
/// A first part that changes the rate by less than this is not worth a word.
const SMALL_CHANGE: f64 = 0.01;
/// Fewer intervals do not make thirds.
const THIRDS: usize = 6;
/// Share of the time that threads waited for a file.
const STARVED: f64 = 0.01;
/// An open loop that achieves less than this of what it offers cannot keep up.
const KEPT_UP: f64 = 0.98;
/// Dirty pages before the start that are worth a word.
const DIRTY: u64 = 64 << 20;
/// A set of which less is in memory leaves nothing there to speak of.
const RESIDENT: f64 = 0.1;
/// A call longer than this in flight at the end bends the figures.
const LATE_SECONDS: f64 = 1.0;

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// The run did not end as the script wanted.
    NotComplete {
        /// How it ended.
        state: RunState,
        /// What ended it.
        ended_by: String,
    },
    /// Operations failed.
    Errors {
        /// Whose.
        flowop: String,
        /// With what: `ENOSPC`.
        errno: String,
        /// How many.
        count: u64,
    },
    /// No I/O operation ended inside the measured time.
    NoOperations {
        /// Operations of other flowops.
        others: u64,
    },
    /// The measured time is short.
    ShortRun {
        /// The measured time.
        seconds: f64,
    },
    /// All I/O flowops together have few operations.
    FewOperations {
        /// How many.
        ops: u64,
    },
    /// Some flowops have too few operations for their percentiles.
    FewForPercentiles {
        /// Their names.
        flowops: Vec<String>,
    },
    /// A file set lies in memory.
    MemoryFileSystem {
        /// The set's root.
        path: String,
        /// `tmpfs`, `ramfs`.
        kind: String,
    },
    /// The file sets fit in memory and the page cache was not ruled out.
    FitsInMemory {
        /// Bytes of all sets on storage.
        bytes: u64,
        /// Bytes of main memory.
        memory: u64,
        /// What the cache held at the start.
        cache_state: CacheState,
        /// It was, or was to be, empty then.
        cold: bool,
    },
    /// A cache below the file system is out of reach.
    CacheUnknown {
        /// What is above that cache.
        device: String,
    },
    /// Earlier writes were still under way at the start.
    NotQuiesced {
        /// Dirty bytes at the start.
        dirty: u64,
    },
    /// The tool's own time is a large part of the latency.
    ToolBound {
        /// Calibrated overhead and picking of files, an operation.
        overhead_ns: f64,
        /// Mean latency.
        mean_ns: f64,
    },
    /// Waking a thread is a large part of the response.
    WakeupLatency {
        /// How late iterations began that were slept for, on average.
        late_ns: f64,
        /// The part of all responses that this is, 0 … 1.
        share: f64,
    },
    /// The processors were busy.
    ProcessorBound {
        /// Share of the machine's processors, 0 … 1.
        busy: f64,
        /// The part of it that the run itself took.
        own: f64,
    },
    /// The rate changed while the run went on.
    Unsteady {
        /// I/O operations a second in the first third of the run.
        first_per_s: f64,
        /// And in the last.
        last_per_s: f64,
    },
    /// The run was not steady at first, or never.
    NotSteady {
        /// How long; `None`: to the end.
        first_seconds: Option<f64>,
        /// I/O operations a second over all.
        all_per_s: f64,
        /// And from then on.
        rest_per_s: f64,
    },
    /// Threads waited for a usable file.
    Starved {
        /// Who waited.
        flowop: String,
        /// Share of all its threads' time, 0 … 1.
        share: f64,
    },
    /// An open loop could not keep up.
    Unstable {
        /// Intended starts a second.
        offered_per_s: f64,
        /// Ends a second.
        achieved_per_s: f64,
    },
    /// Operations were long under way when the time was up.
    LateOps {
        /// How many.
        ops: u64,
        /// How long the oldest had been going.
        oldest_seconds: f64,
    },
    /// WML processes shared one descriptor table.
    SharedDescriptors,
}

/// Every code that [`Warning::code`] gives.
const CODES: [&str; 19] = [
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
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        let place = match self {
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
        CODES[place]
    }

    /// What is.
    pub fn message(&self) -> String {
        match self {
            Self::NotComplete { state, ended_by } => {
                let by = if ended_by.is_empty() { String::new() } else { format!(": {ended_by}") };
                match state {
                    RunState::Interrupted => format!("the run was interrupted{by}"),
                    RunState::Stuck => format!("the run got stuck{by}"),
                    RunState::LowSpace => format!("the run was ended before it filled its file system{by}"),
                    RunState::NothingDone => "nothing was done".to_owned(),
                    RunState::Failed | RunState::Complete => format!("the run failed{by}"),
                }
            }
            Self::Errors { flowop, errno, count: n } if errno == crate::os::NO_CALL => {
                format!("{} of `{flowop}` failed before its call", count(*n, "operation"))
            }
            Self::Errors { flowop, errno, count: n } => {
                format!("{} of `{flowop}` failed with {errno}", count(*n, "operation"))
            }
            Self::NoOperations { others: 0 } => {
                "nothing was done: no operation of any flowop ended inside the measured time".to_owned()
            }
            Self::NoOperations { .. } => "no I/O operation ended inside the measured time".to_owned(),
            Self::ShortRun { seconds } => format!("the run measured only {}", duration::seconds(*seconds)),
            Self::FewOperations { ops } => format!("the run has only {}", count(*ops, "I/O operation")),
            Self::FewForPercentiles { flowops } => {
                format!("too few operations for a 99th percentile: {}", ticked(flowops))
            }
            Self::MemoryFileSystem { path, kind } => {
                format!("`{path}` is on {kind}: memory is measured, not storage")
            }
            Self::FitsInMemory { bytes, memory, cache_state, .. } => {
                let share = *bytes as f64 / *memory as f64;
                let of = format!("{} in files against {} of memory", size::format(*bytes), size::format(*memory));
                let reads = if *cache_state == CacheState::Cold { "what has been read once" } else { "reads" };
                format!("{of} ({share:.2} x), cache {}: {reads} may be served from memory", cache_state.name())
            }
            Self::CacheUnknown { device } => {
                format!("the state of the cache below `{device}` is unknown: reads may not reach the disk")
            }
            Self::NotQuiesced { dirty } => {
                format!("{} of earlier writes were not yet on the device at the start", size::format(*dirty))
            }
            Self::ToolBound { overhead_ns, mean_ns } => format!(
                "the tool takes {} of an operation whose latency is {}",
                duration::latency(*overhead_ns),
                duration::latency(*mean_ns)
            ),
            Self::WakeupLatency { late_ns, share } => format!(
                "{:.0} % of the response times is the waking of threads, {} late on average",
                share * 100.0,
                duration::latency(*late_ns)
            ),
            Self::ProcessorBound { busy, own } => {
                format!("the processors were {:.0} % busy, {:.0} % with this run", busy * 100.0, own * 100.0)
            }
            Self::Unsteady { first_per_s, last_per_s } => {
                let change = (last_per_s / first_per_s - 1.0) * 100.0;
                let (first, last) = (measured(*first_per_s), measured(*last_per_s));
                format!("the rate went from {first} ops/s in the first third to {last} in the last ({change:+.0} %)")
            }
            Self::NotSteady { first_seconds: Some(first), all_per_s, rest_per_s } => format!(
                "not steady: first {}, {} ops/s after them and {} over all",
                duration::seconds(*first),
                measured(*rest_per_s),
                measured(*all_per_s)
            ),
            Self::NotSteady { first_seconds: None, .. } => "not steady: the rate kept changing".to_owned(),
            Self::Starved { flowop, share } => {
                format!("`{flowop}` waited {:.1} % of its time for a file that it could use", share * 100.0)
            }
            Self::Unstable { offered_per_s, achieved_per_s } => format!(
                "unstable: {} requests a second were offered, {} were achieved",
                measured(*offered_per_s),
                measured(*achieved_per_s)
            ),
            Self::LateOps { ops, oldest_seconds } => format!(
                "{} in flight when the time was up, the oldest for {}",
                count(*ops, "operation"),
                duration::seconds(*oldest_seconds)
            ),
            Self::SharedDescriptors => "processes shared one table of descriptors".to_owned(),
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotComplete { .. } => "the figures are right for the time measured, but compare them with care",
            Self::Errors { .. } => "failed operations are in no other figure; see why before using the rest",
            Self::NoOperations { others: 0 } => {
                "look whether there are threads and files for them, and whether threads wait for one another"
            }
            Self::NoOperations { .. } => "run longer, or look whether threads wait for one another",
            Self::ShortRun { .. } => "take a minute at least (`--runtime 60`), with a warm-up (`--warmup 10`)",
            Self::FewOperations { .. } => "run longer: means and percentiles of so few scatter widely",
            Self::FewForPercentiles { .. } => "run longer, or ignore these percentiles",
            Self::MemoryFileSystem { .. } => "choose a directory on the file system in question (`--dir`)",
            Self::FitsInMemory { cold: true, .. } => "make the sets larger than memory, or read with `directio`",
            Self::FitsInMemory { .. } => "make the sets larger than memory, or start with `--cold` and a short run",
            Self::CacheUnknown { .. } => "attach images with `losetup --direct-io=on`",
            Self::NotQuiesced { .. } => "leave out `--no-quiesce`, or wait before the run",
            Self::ToolBound { .. } => {
                "compare only runs of the same machine and version; larger operations hide the tool"
            }
            Self::WakeupLatency { .. } => {
                "so short an operation is better judged by its latency; fewer threads and a machine with nothing else to do help"
            }
            Self::ProcessorBound { busy, own } if busy - own > OTHERS => {
                "something else ran on this machine, and its work is in the figures: run again without it"
            }
            Self::ProcessorBound { .. } => {
                "fewer threads may give the same rate; it is the machine's limit, not the disk's"
            }
            Self::Unsteady { .. } => "run longer, warm up (`--warmup`), and look at the intervals",
            Self::NotSteady { .. } => "leave that part out (`--warmup`), and run longer",
            Self::Starved { .. } => "give the set more files, or make and delete them at the same rate",
            Self::Unstable { .. } => "lower the rate: response times only grow while the backlog does",
            Self::LateOps { .. } => "the device stalls: run longer, so that stalls are counted",
            Self::SharedDescriptors => {
                "the kernel lacks `close_range` and `unshare`: many open files cost more than in real processes"
            }
        }
    }

    /// For the result.
    pub fn note(&self) -> Note {
        Note { code: self.code().to_owned(), message: format!("{}; {}", self.message(), self.advice()) }
    }
}

/// Everything to be said of a run, the gravest first.
pub fn of(document: &Document, run: &Run) -> Vec<Warning> {
    let mut found = Vec::new();
    // That nothing was done has a warning of its own.
    if !matches!(run.state, RunState::Complete | RunState::NothingDone) {
        found.push(Warning::NotComplete { state: run.state, ended_by: run.ended_by.clone() });
    }
    for flowop in &run.flowops {
        for (errno, count) in &flowop.errors {
            found.push(Warning::Errors { flowop: flowop.name.clone(), errno: errno.clone(), count: *count });
        }
    }
    amount(run, &mut found);
    if run.engine != "null" {
        storage(document, run, &mut found);
    }
    machine(document, run, &mut found);
    course(run, &mut found);
    found
}

/// The warning that nothing was done at all, if that is so.
pub fn nothing_done(document: &Document, run: &Run) -> Option<Warning> {
    of(document, run).into_iter().find(|warning| matches!(warning, Warning::NoOperations { others: 0 }))
}

/// Is there enough to go by?
fn amount(run: &Run, found: &mut Vec<Warning>) {
    let few: Vec<String> = run
        .flowops
        .iter()
        .filter(|f| f.class.is_io() && (1..FEW_OPS).contains(&f.ops))
        .map(|f| f.name.clone())
        .collect();
    match run.summary.ops {
        0 => found.push(Warning::NoOperations { others: run.flowops.iter().map(|f| f.ops).sum() }),
        ops if ops < FEW_OPS => found.push(Warning::FewOperations { ops }),
        _ if !few.is_empty() => found.push(Warning::FewForPercentiles { flowops: few }),
        _ => {}
    }
    if run.measured_seconds < SHORT_SECONDS && run.state == RunState::Complete {
        found.push(Warning::ShortRun { seconds: run.measured_seconds });
    }
}

/// Was it the storage that was measured?
fn storage(document: &Document, run: &Run, found: &mut Vec<Warning>) {
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
    // Direct I/O leaves nothing in memory, whatever would fit. Where nobody could look, what the devices moved must do: a
    // weak sign, since read-ahead and other programs are in it.
    let by_device =
        |set: &FilesetResult| set.resident_after.map_or(set.verdict == Some(Verdict::Device), |share| share < RESIDENT);
    let known = on_disk.iter().any(|set| set.asked_bytes.read > 0);
    let mut read = on_disk.iter().filter(|set| !known || set.asked_bytes.read > 0).peekable();
    let passed_by = read.peek().is_some() && read.all(|set| by_device(set));
    if reads && bytes > 0 && bytes < memory && run.cache_state != CacheState::Warm && !passed_by {
        let cold = run.cache_state == CacheState::Cold || document.command_line.iter().any(|word| word == "--cold");
        found.push(Warning::FitsInMemory { bytes, memory, cache_state: run.cache_state, cold });
    }
    let dirty = run.dirty_bytes.as_ref().map_or(0, |dirty| dirty.before);
    if run.quiesced == Some(false) && dirty > DIRTY {
        found.push(Warning::NotQuiesced { dirty });
    }
}

/// Was it the tool or the machine that was measured?
fn machine(document: &Document, run: &Run, found: &mut Vec<Warning>) {
    if let (Some(overhead), Some(mean_ns)) = (run.overhead_ns_per_op, run.summary.latency_ns.mean) {
        let io = || run.flowops.iter().filter(|f| f.class.is_io());
        let tool: f64 = io().filter_map(|f| f.tool_ns_mean.map(|ns| ns * f.ops as f64)).sum();
        let ops: u64 = io().map(|f| f.ops).sum();
        let overhead_ns = overhead + tool / ops.max(1) as f64;
        if overhead_ns > TOOL_SHARE * mean_ns {
            found.push(Warning::ToolBound { overhead_ns, mean_ns });
        }
    }
    let open = run.open_loop.as_ref();
    if run.engine != "null"
        && let Some((late_ns, share)) = open.and_then(|open| open.wakeup_latency_ns_mean.zip(open.wakeup_latency_share))
        && share > TOOL_SHARE
    {
        found.push(Warning::WakeupLatency { late_ns, share });
    }
    if let Some(busy) = run.summary.cpu_busy.filter(|busy| *busy > BUSY) {
        let processor_seconds = run.measured_seconds * document.environment.cpu.count.max(1) as f64;
        let used_us = run.summary.cpu_us_per_op.map_or(0.0, |us| us * run.summary.ops as f64);
        let own = used_us / 1e6 / processor_seconds;
        // Who waits awake has no work; but others who have may keep him from his processor.
        let awake = open.map_or(0.0, |open| open.spin_seconds / processor_seconds);
        if busy - awake > BUSY || awake > 0.0 && busy - own > OTHERS {
            found.push(Warning::ProcessorBound { busy, own });
        }
    }
    if run.descriptor_tables == "shared" && run.processes > 1 {
        found.push(Warning::SharedDescriptors);
    }
}

/// Did it go on evenly?
fn course(run: &Run, found: &mut Vec<Warning>) {
    found.extend(unsteady(run));
    found.extend(not_steady(run));
    for flowop in &run.flowops {
        let share = flowop.starved_seconds / (run.measured_seconds * flowop.instances.max(1) as f64);
        if share > STARVED && share.is_finite() {
            found.push(Warning::Starved { flowop: flowop.name.clone(), share });
        }
    }
    if let Some(open) = &run.open_loop
        && open.achieved_per_s < KEPT_UP * open.offered_per_s
    {
        found.push(Warning::Unstable { offered_per_s: open.offered_per_s, achieved_per_s: open.achieved_per_s });
    }
    if let Some(oldest_seconds) = run.late_oldest_seconds.filter(|s| *s > LATE_SECONDS) {
        found.push(Warning::LateOps { ops: run.late_ops, oldest_seconds });
    }
}

/// Compares the first with the last third of the intervals.
fn unsteady(run: &Run) -> Option<Warning> {
    let third = run.intervals.len() / 3;
    if run.intervals.len() < THIRDS {
        return None;
    }
    let rate = |part: &[Interval]| {
        let seconds: f64 = part.iter().map(|interval| interval.seconds).sum();
        part.iter().map(|interval| run.io_ops(interval)).sum::<u64>() as f64 / seconds
    };
    let first_per_s = rate(&run.intervals[..third]);
    let last_per_s = rate(&run.intervals[run.intervals.len() - third..]);
    let drift = (last_per_s - first_per_s).abs() / first_per_s;
    (drift.is_finite() && drift > DRIFT).then_some(Warning::Unsteady { first_per_s, last_per_s })
}

/// A part of the run that is not like the rest, if that makes a difference.
fn not_steady(run: &Run) -> Option<Warning> {
    let steady = run.steady.as_ref()?;
    let all_per_s = run.summary.ops_per_s;
    let rest_per_s = steady.ops_per_s.unwrap_or(all_per_s);
    let matters =
        steady.from_seconds.is_none_or(|from| from > 0.0 && (rest_per_s / all_per_s - 1.0).abs() > SMALL_CHANGE);
    matters.then_some(Warning::NotSteady { first_seconds: steady.from_seconds, all_per_s, rest_per_s })
}

/// Puts the warnings of every run into the document, beside what others noted.
pub fn note(document: &mut Document) {
    let found: Vec<Vec<Warning>> = document.runs.iter().map(|run| of(document, run)).collect();
    for (run, warnings) in document.runs.iter_mut().zip(found) {
        run.warnings.retain(|note| !is_ours(note));
        run.warnings.extend(warnings.iter().map(Warning::note));
    }
}

/// Whether a note comes from here, and can be found again.
pub fn is_ours(note: &Note) -> bool {
    CODES.contains(&note.code.as_str())
}

/// The mount that a path lies on: the one with the longest path that begins it.
pub fn mount_of<'a>(run: &'a Run, path: &str) -> Option<&'a MountInfo> {
    let path = std::path::Path::new(path);
    let holds = |mount: &&MountInfo| path.starts_with(&mount.path);
    run.environment.mounts.iter().filter(holds).max_by_key(|mount| mount.path.len())
}

fn ticked(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
