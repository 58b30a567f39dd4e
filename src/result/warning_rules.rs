//! The conditions of the warnings about a run's figures, with their limits.
//!
//! Not here: the texts of the warnings (`warnings`).

use super::environment::MountInfo;
use super::filesets::{MAX_WRITTEN_BY_OTHERS, MIN_READ_BY_OTHERS, MIN_WRITTEN_BY_OTHERS};
use super::ranks::{MIN_COVERED, Overlap, overlap};
use super::warnings::{MAX_OTHERS, Warning, mount_among};
use super::{
    CacheState, DeviceBytes, Document, FilesetResult, FlowopResult, HostResult, Interval, MEASURE, MIN_BEYOND, Note,
    NoteCode, Run, RunState, Verdict,
};
use std::collections::{BTreeMap, BTreeSet};
use wml_os::proc::DescriptorTable;
use wml_text::{count, size};

/// A run with a shorter measured time is dominated by its start.
const MIN_SECONDS: f64 = 5.0;
/// With fewer operations the mean varies widely.
const MIN_OPS: u64 = 1_000;
/// With fewer operations a report shows no 99th percentile.
const MIN_OPS_FOR_P99: u64 = 100 * MIN_BEYOND;
/// Share of the tool's own time in the mean latency above which there is a warning; likewise of wake-up latency in the
/// response time.
const MAX_TOOL_SHARE: f64 = 0.10;
/// Share of busy processor time above which the processors limit the threads.
const MAX_BUSY: f64 = 0.90;
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
/// Delay of a phase after its start above which there is a warning, in seconds.
const MAX_PHASE_DELAY: f64 = 0.1;
/// Dirty pages before the start, in bytes, above which there is a warning.
const MAX_DIRTY: u64 = 64 << 20;
/// A file set is regarded as not in memory if less than this share of its pages is resident.
const MIN_RESIDENT: f64 = 0.1;
/// Age of the oldest operation in flight at the end above which there is a warning, in seconds.
const MAX_LATE_SECONDS: f64 = 1.0;
/// I/O operations per second of the rest of the run from which on a time without any is unusual.
const MIN_RATE: f64 = 100.0;
/// Time without a completed operation that is a stall, in seconds. An interval may be a bit shorter than a second.
const MIN_STALL: f64 = 0.95;

impl Warning {
    /// Returns the condition of the warning, with its limits.
    pub fn condition(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match self {
            Self::NotComplete { .. } => {
                "the run did not last as long as it was meant to, or a replay was not as recorded".to_owned()
            }
            Self::Errors { .. } => "at least one operation failed, and the script does not expect it".to_owned(),
            Self::PhaseNotStarted { .. } => "the run ended before one of its phases began".to_owned(),
            Self::NoOperations { .. } => "no I/O operation was completed".to_owned(),
            Self::ShortRun { .. } => format!("a complete run measured less than {MIN_SECONDS:.0} s"),
            Self::FewOperations { .. } => format!("the run has fewer than {} I/O operations", count::grouped(MIN_OPS)),
            Self::FewForPercentiles { .. } => {
                format!("an I/O flowop or a `measure=` has fewer than {} operations", count::grouped(MIN_OPS_FOR_P99))
            }
            Self::MemoryFileSystem { .. } => "a file set is on a file system in memory, such as tmpfs".to_owned(),
            Self::FitsInMemory { .. } => format!(
                "the file sets are smaller than memory, and flowops read through the page cache, or the file system \
                 serves direct reads from memory; not if the cache is meant to be warm, or if less than {} of the \
                 files read are in memory at the end",
                percent(MIN_RESIDENT)
            ),
            Self::CacheUnknown { .. } => {
                "the device is a loop device without direct I/O, or it is unknown whether there is a cache below the \
                 file system"
                    .to_owned()
            }
            Self::NotQuiesced { .. } => {
                format!("the run did not wait for earlier writes, more than {}", size::format(MAX_DIRTY))
            }
            Self::ToolBound { .. } => {
                format!("the tool's own time is more than {} of the mean latency", percent(MAX_TOOL_SHARE))
            }
            Self::WakeupLatency { .. } => {
                format!(
                    "threads of an open loop wake up later than they should, by more than {} of the mean response time",
                    percent(MAX_TOOL_SHARE)
                )
            }
            Self::ProcessorBound { .. } => format!(
                "all processors were more than {} busy, without the busy-waiting of open loops",
                percent(MAX_BUSY)
            ),
            Self::SharedDevices { .. } => format!(
                "the devices of the file sets read more than twice what the run read from them, and at least {} more, \
                 or, if the run waited for earlier writes, wrote more than {} times what it wrote, and at least {} more",
                size::format(MIN_READ_BY_OTHERS),
                MAX_WRITTEN_BY_OTHERS + 1,
                size::format(MIN_WRITTEN_BY_OTHERS)
            ),
            Self::Unsteady { .. } => {
                format!(
                    "the rates of the first and the last third differ by more than {}, in a run of at least \
                     {MIN_INTERVALS} intervals",
                    percent(MAX_DRIFT)
                )
            }
            Self::NotSteady { .. } => {
                format!(
                    "the rate without the part that is not steady differs by more than {}, or no part is steady",
                    percent(MIN_CHANGE)
                )
            }
            Self::Stalled { .. } => format!(
                "intervals without an I/O operation, at least {MIN_STALL} s in a row, in a run that completes at least \
                 {MIN_RATE} per second in the other intervals"
            ),
            Self::Starved { .. } => {
                format!("a flowop waits for files for more than {} of the time of its threads", percent(MAX_STARVED))
            }
            Self::Unstable { .. } => format!("an open loop achieves less than {} of its rate", percent(MIN_ACHIEVED)),
            Self::PhaseLate { .. } => {
                format!("a phase begins more than {MAX_PHASE_DELAY} s after its `start=`: the one before had not ended")
            }
            Self::LateOps { .. } => {
                format!("an operation that began more than {MAX_LATE_SECONDS:.0} s before the end had not ended")
            }
            Self::SharedDescriptors => {
                "several processes of the run share one table, because the kernel can't separate them".to_owned()
            }
            Self::RanksOverlap { .. } => {
                format!("all ranks ran together for less than {} of the time of a rank", percent(MIN_COVERED))
            }
        }
    }
}

/// Returns all warnings about a run, in the order of their codes; a report has another one (`warning_order`).
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
    let waiting: Vec<u64> = run.phases.iter().filter(|p| p.start_seconds.is_none()).map(|p| p.number).collect();
    // Where none has started, nothing was done.
    if (1..run.phases.len()).contains(&waiting.len()) {
        found.push(Warning::PhaseNotStarted { numbers: waiting });
    }
    check_amount(run, &mut found);
    if run.engine != "null" {
        check_storages(document, run, &mut found);
    }
    check_machine(document, run, &mut found);
    check_course(run, &mut found);
    found.extend(ranks_overlap(run));
    found
}

/// Returns the warnings that something was not as the script or the command line asks for, as opposed to those about the
/// validity of the figures: each as a message, with advice if there is any. The user must see them whatever the report
/// shows.
pub fn unfulfilled(document: &Document, run: &Run) -> Vec<(String, Option<&'static str>)> {
    let derived = of(document, run).into_iter().filter(warns_of_unfulfilled);
    let notes = run.warnings.iter().filter(|note| is_unfulfilled(note));
    derived
        .map(|warning| (warning.message(), Some(warning.advice())))
        .chain(notes.map(|note| (note.message.clone(), None)))
        .collect()
}

/// Returns the codes of the warnings of a run that [`unfulfilled`] leaves out, each once.
pub fn other_codes(document: &Document, run: &Run) -> Vec<String> {
    let derived = of(document, run).into_iter().filter(|warning| !warns_of_unfulfilled(warning));
    let derived = derived.map(|warning| warning.code().to_owned());
    let notes = run.warnings.iter().filter(|note| !super::warnings::is_derived(note) && !is_unfulfilled(note));
    let mut codes: Vec<String> = derived.chain(notes.map(|note| note.code.clone())).collect();
    let mut seen = BTreeSet::new();
    codes.retain(|code| seen.insert(code.clone()));
    codes
}

/// True if a warning says that the run did not do what was asked for.
fn warns_of_unfulfilled(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::Errors { .. }
            | Warning::PhaseNotStarted { .. }
            | Warning::PhaseLate { .. }
            | Warning::NoOperations { others: 0 }
    )
}

/// True if a note says that threads did not do what the script asks for, or that the caches were in another state.
fn is_unfulfilled(note: &Note) -> bool {
    NoteCode::of(note).is_some_and(|code| code.is_unfulfilled() || code == NoteCode::OtherCacheState)
}

/// Finds warnings about runs with too few operations or too little time.
fn check_amount(run: &Run, found: &mut Vec<Warning>) {
    let names = |is_asked: fn(&FlowopResult) -> bool| {
        let few = run.flowops.iter().filter(move |f| is_asked(f) && (1..MIN_OPS_FOR_P99).contains(&f.ops));
        few.map(|f| f.name.clone())
    };
    // A replay has as many calls as its trace, and takes as long as these.
    if run.replay.is_some() && run.summary.ops > 0 {
        return;
    }
    // The requests are what the user has asked for.
    let few: Vec<String> = names(|f| f.kind == MEASURE).chain(names(|f| f.class.is_io())).collect();
    let has_requests = run.flowops.iter().any(|f| f.kind == MEASURE && f.ops > 0);
    match run.summary.ops {
        0 if has_requests => {}
        0 => found.push(Warning::NoOperations { others: run.flowops.iter().map(|f| f.ops).sum() }),
        ops if ops < MIN_OPS => found.push(Warning::FewOperations { ops }),
        _ if !few.is_empty() => found.push(Warning::FewForPercentiles { flowops: few }),
        _ => {}
    }
    if run.measured_seconds < MIN_SECONDS && run.state == RunState::Complete {
        found.push(Warning::ShortRun { seconds: run.measured_seconds });
    }
}

/// The storage of a host: its memory, its file systems and the file sets on them.
struct HostStorage<'a> {
    memory: u64,
    mounts: &'a [MountInfo],
    filesets: &'a [FilesetResult],
    cache_state: CacheState,
}

impl<'a> HostStorage<'a> {
    fn of(host: &'a HostResult) -> Self {
        Self {
            memory: host.environment.memory.total,
            mounts: &host.run_environment.mounts,
            filesets: &host.filesets,
            cache_state: host.cache_state,
        }
    }
}

/// Finds warnings about runs that measured memory or another cache instead of storage. Those of several hosts that differ
/// in numbers only are given once, for the host with the largest share of its files in memory.
fn check_storages(document: &Document, run: &Run, found: &mut Vec<Warning>) {
    let own = HostStorage {
        memory: document.environment.memory.total,
        mounts: &run.environment.mounts,
        filesets: &run.filesets,
        cache_state: run.cache_state,
    };
    let hosts: Vec<HostStorage> =
        if run.hosts.is_empty() { vec![own] } else { run.hosts.iter().map(HostStorage::of).collect() };
    let share = |warning: &Warning| match warning {
        Warning::FitsInMemory { bytes, memory, .. } => Some(*bytes as f64 / *memory as f64),
        _ => None,
    };
    let mut of_all: Vec<Warning> = Vec::new();
    for warning in hosts.iter().flat_map(|storage| check_storage(document, run, storage)) {
        let same = |known: &Warning| *known == warning || share(known).is_some() && share(&warning).is_some();
        match of_all.iter().position(same) {
            Some(at) if share(&warning) < share(&of_all[at]) => of_all[at] = warning,
            Some(_) => {}
            None => of_all.push(warning),
        }
    }
    found.extend(of_all);
    let dirty = run.dirty_bytes.as_ref().map_or(0, |dirty| dirty.before);
    if run.quiesced == Some(false) && dirty > MAX_DIRTY {
        found.push(Warning::NotQuiesced { dirty });
    }
}

/// Returns the warnings about the storage of one host.
fn check_storage(document: &Document, run: &Run, storage: &HostStorage) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut on_disk = Vec::new();
    let mut below = Vec::new();
    for set in storage.filesets {
        let mount = mount_among(storage.mounts, &set.path);
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
    let cache_state = storage.cache_state;
    if below.is_empty() && cache_state == CacheState::UnknownBelow {
        below.push("the file system".to_owned());
    }
    found.extend(below.into_iter().map(|device| Warning::CacheUnknown { device }));

    let (bytes, memory) = (on_disk.iter().map(|set| set.bytes).sum::<u64>(), storage.memory);
    // Some file systems serve direct reads from memory nevertheless.
    let from_memory = on_disk.iter().any(|set| set.verdict == Some(Verdict::Memory));
    let reads = run.flowops.iter().any(|f| f.class.is_io() && f.reads && (!f.direct || from_memory) && f.ops > 0);
    // Direct I/O leaves nothing in the page cache, even if the set would fit. If residency could not be measured, use
    // the bytes that the devices moved. That is weak evidence, since it includes read-ahead and other programs.
    let by_device = |set: &FilesetResult| {
        set.resident_after.map_or(set.verdict == Some(Verdict::Device), |share| share < MIN_RESIDENT)
    };
    let known = on_disk.iter().any(|set| set.asked_bytes.read > 0);
    let mut read = on_disk.iter().filter(|set| !known || set.asked_bytes.read > 0).peekable();
    let bypassed = read.peek().is_some() && read.all(|set| by_device(set));
    if reads && bytes > 0 && bytes < memory && cache_state != CacheState::Warm && !bypassed {
        // A script may evict its files by `cached=false`.
        let is_evicted = |set: &&FilesetResult| set.resident_before.is_some_and(|share| share < MIN_RESIDENT);
        let cold = cache_state == CacheState::Cold
            || on_disk.iter().all(is_evicted)
            || document.command_line.iter().any(|word| word == "--cold");
        found.push(Warning::FitsInMemory { bytes, memory, cold });
    }
    found
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
    found.extend(processor_bound(document, run));
    found.extend(shared_devices(run));
    // Ranks are separate processes in any case.
    let is_shared = run.descriptor_tables == DescriptorTable::Shared.name();
    if is_shared && run.processes > run.ranks.len().max(1) as u64 {
        found.push(Warning::SharedDescriptors);
    }
}

/// Returns a warning if the processors were busy: in a run on several hosts those of the host that was the busiest.
fn processor_bound(document: &Document, run: &Run) -> Option<Warning> {
    let busiest =
        run.hosts.iter().max_by(|a, b| a.summary.cpu_busy.unwrap_or(0.0).total_cmp(&b.summary.cpu_busy.unwrap_or(0.0)));
    let (summary, processors, host) = match busiest {
        Some(host) => (&host.summary, host.environment.cpu.count, Some(host.host.clone())),
        None => (&run.summary, document.environment.cpu.count, None),
    };
    let busy = summary.cpu_busy.filter(|busy| *busy > MAX_BUSY)?;
    let processor_seconds = run.seconds_of_ranks() * processors.max(1) as f64;
    let used_us = summary.cpu_us_per_op.map_or(0.0, |us| us * summary.ops as f64);
    let own = used_us / 1e6 / processor_seconds;
    let kernel = summary.kernel_busy.unwrap_or(0.0);
    // Busy-waiting is not load, so subtract it. But other programs may delay a busy-waiting thread.
    let spin_seconds = run.open_loop.as_ref().map_or(0.0, |open| open.spin_seconds);
    let spinning = spin_seconds / run.hosts.len().max(1) as f64 / processor_seconds;
    let bound = busy - spinning > MAX_BUSY || spinning > 0.0 && busy - own - kernel > MAX_OTHERS;
    bound.then_some(Warning::ProcessorBound { busy, own, kernel, host })
}

/// Returns a warning if the devices moved far more bytes than the run made them move. Writes count if the disks had
/// completed earlier ones.
fn shared_devices(run: &Run) -> Option<Warning> {
    let mut own = run.storage_bytes.clone()?;
    // Sets on the same devices have the same numbers.
    let mut all: Vec<&DeviceBytes> = Vec::new();
    for moved in run.filesets.iter().filter_map(|set| set.device_bytes.as_ref()) {
        if !all.contains(&moved) {
            all.push(moved);
        }
    }
    let mut moved = all.into_iter().fold(DeviceBytes::default(), |sum, one| DeviceBytes {
        read: sum.read.saturating_add(one.read),
        written: sum.written.saturating_add(one.written),
    });
    // Earlier writes of this program may reach the devices now.
    if run.quiesced != Some(true) {
        (moved.written, own.written) = (0, 0);
    }
    let is_shared = moved.are_mostly_read_by_others(&own) || moved.are_mostly_written_by_others(&own);
    is_shared.then_some(Warning::SharedDevices { moved, own })
}

/// Finds warnings about the course of the run: drift, starvation, overload, stalls.
fn check_course(run: &Run, found: &mut Vec<Warning>) {
    // Phases have different rates, and what a later one does is no reason to leave out the ones before it.
    if run.phases.is_empty() {
        found.extend(unsteady(run));
        found.extend(not_steady(run));
        found.extend(stalled(run));
    }
    for flowop in run.flowops.iter().filter(|flowop| !flowop.may_starve) {
        let share = flowop.starved_seconds / (run.seconds_of_ranks() * flowop.instances.max(1) as f64);
        if share > MAX_STARVED && share.is_finite() {
            found.push(Warning::Starved { flowop: flowop.name.clone(), share });
        }
    }
    if let Some(open) = &run.open_loop
        && open.achieved_per_s + requests_in_flight(run) / run.measured_seconds < MIN_ACHIEVED * open.offered_per_s
    {
        let lost = if open.backlog > 0 { open.lost as f64 / open.backlog as f64 } else { 0.0 };
        let (offered_per_s, achieved_per_s) = (open.offered_per_s, open.achieved_per_s);
        found.push(Warning::Unstable { offered_per_s, achieved_per_s, lost });
    }
    for phase in &run.phases {
        let delay = phase.start_seconds.zip(phase.earliest_start_seconds).map(|(start, earliest)| start - earliest);
        if let Some(seconds) = delay.filter(|seconds| *seconds > MAX_PHASE_DELAY) {
            found.push(Warning::PhaseLate { number: phase.number, seconds });
        }
    }
    if let Some(oldest_seconds) = run.late_oldest_seconds.filter(|s| *s > MAX_LATE_SECONDS) {
        found.push(Warning::LateOps { ops: run.late_ops, oldest_seconds });
    }
}

/// Returns the requests of open loops that were in flight at the end, and are neither completed nor in the backlog. In a
/// short run they are many. A thread has one request at a time, however many operations of it are in flight.
fn requests_in_flight(run: &Run) -> f64 {
    let mut threads: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for flowop in run.flowops.iter().filter(|flowop| flowop.response_ns.is_some()) {
        let (late, instances) = threads.entry((&flowop.process, &flowop.thread)).or_default();
        *late += flowop.late_ops;
        *instances = flowop.instances;
    }
    threads.into_values().map(|(late, instances)| late.min(instances) as f64).sum()
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

/// Returns a warning about the longest time without a completed operation, in a run that otherwise completes many.
fn stalled(run: &Run) -> Option<Warning> {
    let (mut longest, mut current) = ((0.0, 0.0), 0.0);
    for interval in &run.intervals {
        current = if run.io_ops(interval) == 0 { current + interval.seconds } else { 0.0 };
        if current > longest.0 {
            longest = (current, interval.t - current);
        }
    }
    let (seconds, from_seconds) = longest;
    let (all, ops) = run
        .intervals
        .iter()
        .fold((0.0, 0), |(seconds, ops), interval| (seconds + interval.seconds, ops + run.io_ops(interval)));
    let is_unusual = ops as f64 >= MIN_RATE * (all - seconds) && ops > 0;
    (seconds >= MIN_STALL && is_unusual).then_some(Warning::Stalled { seconds, from_seconds })
}

/// Returns a warning if some ranks ran for a time in which others did not.
fn ranks_overlap(run: &Run) -> Option<Warning> {
    let Overlap { seconds, covered } = overlap(&run.ranks)?;
    (covered < MIN_COVERED).then_some(Warning::RanksOverlap { seconds, covered })
}
