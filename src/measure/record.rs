//! The conversion of a run's counters to its entry in the result.

use super::cache::AfterRun;
use super::measurement::Description;
use super::names::{qualified_name, roots_text};
use super::ready::Ready;
use super::series::fill_figures;
use super::usage::RunUsage;
use super::{Settings, Status};
use crate::io_engine::Asynchronous;
use crate::os::proc::DescriptorTable;
use crate::os::{Clock, errno_name, path};
use crate::plan::{self, Plan, PlanStep};
use crate::random::Quantity;
use crate::result::build;
use crate::result::{
    BeforeAfter, FilesetResult, FlowopClass, FlowopCounter, FlowopResult, Note, NoteCode, OpenLoop, PhaseResult, Run,
    RunFailure, RunState, Straggler, ThreadRequests,
};
use crate::runtime::{ArrivalProgress, Ended, Fault, FaultKind, PacedThread, PhaseTicks, Running, Sample, Waited};
use crate::spec::IoDirection;
use crate::util::count::count;
use crate::util::{duration, size};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use crate::util::timestamp::{day_and_time, now};

/// The names of the figures of the last measurement that a script can read as `${stats.NAME}`. All are integers: the
/// number of operations; operations, reads and writes per second; MiB/s; and the rest in microseconds per operation.
pub(crate) const FIGURES: [&str; 11] = [
    "iocount",
    "iorate",
    "ioreadrate",
    "iowriterate",
    "iobandwidth",
    "iolatency",
    "iocpu",
    "oheadcpu",
    "iowait",
    "syscpu",
    "iocpusys",
];

/// Names and values of the figures of a run that a script can read.
pub(crate) type RunFigures = Vec<(&'static str, u64)>;

/// Returns the entry of a run before its start: what was requested, and the environment.
pub(crate) fn entry(
    settings: &Settings,
    ready: &Ready,
    running: &Running,
    length: Option<Duration>,
    about: &Description,
) -> Run {
    let real = settings.engine.real();
    let plan = &ready.plan;
    let direct: BTreeSet<usize> = plan::direct_io(plan).iter().map(|io| io.flowop).collect();
    let mut run = Run {
        workload: settings.workload.clone(),
        requested_seconds: length.map(|length| length.as_secs_f64()),
        environment: ready.location.run.clone(),
        as_is: ready.as_is,
        variables: about.variables.clone(),
        loaded_scripts: about.loaded_scripts.clone(),
        engine: engine_name(settings, plan).to_owned(),
        processes: plan.n_processes(),
        threads: plan.n_threads(),
        pinned_processors: running.pinned_processors().map(|all| all.iter().map(|cpu| *cpu as u64).collect()),
        descriptor_tables: if real { running.tables() } else { DescriptorTable::Shared }.name().to_owned(),
        lathist: about.lathist,
        quiesced: ready
            .prepared
            .iter()
            .flatten()
            .rfind(|p| !p.unchanged || p.quiesced.is_some())
            .map(|p| p.quiesced.is_some_and(|s| !s.ran_out)),
        flowops: plan
            .flowops
            .iter()
            .enumerate()
            .map(|(id, _)| identity(plan, id, ready.lines[id], direct.contains(&id)))
            .collect(),
        filesets: ready
            .sets
            .iter()
            .zip(&ready.prepared)
            .enumerate()
            .map(|(id, (set, prepared))| fileset(set, prepared.as_ref(), ready.location.roots.get(id)))
            .collect(),
        warnings: script_notes(about),
        ..Run::default()
    };
    ready.cache.describe(&mut run);
    run
}

/// Returns the name of the engine that makes the calls, after the choice between its asynchronous mechanisms.
fn engine_name(settings: &Settings, plan: &Plan) -> &'static str {
    let engine = settings.engine;
    let asynchronous = plan.threads().any(|(_, thread)| thread.effects.aio.is_some());
    match engine.asynchronous().resolve() {
        Ok(Asynchronous::Ring) if asynchronous => "uring",
        _ => engine.name(),
    }
}

/// Sets the figures and the state of a run that has ended. Returns the status.
pub(crate) fn fill(
    run: &mut Run,
    ready: &Ready,
    running: &Running,
    waited: &Waited,
    sample: &Sample,
    usage: RunUsage,
    seed: u64,
) -> Status {
    let plan = &ready.plan;
    let measured = running.ns(running.from(), waited.tick);
    run.measured_seconds = measured as f64 / 1e9;
    run.descriptor_tables = running.tables().name().to_owned();
    run.dirty_bytes = Some(BeforeAfter { before: ready.dirty_before, after: crate::disk::quiesce::dirty_bytes() });
    // The threads of a run that goes on (`stats snap`) are in calls as in any run. Only after the end of the run, or
    // if it is stuck, is a thread in a call one that has not returned.
    let is_stuck = matches!(&waited.ended, Ended::Fault(fault) if fault.kind == FaultKind::Stuck);
    let is_over = is_stuck || running.is_stopped();
    let unfinished = || sample.unfinished.iter().filter(|_| is_over);
    let stragglers = if is_over { running.stragglers() } else { Vec::new() };
    run.late_ops = sample.flowops.iter().map(|s| s[FlowopCounter::LateOps]).sum::<u64>()
        + unfinished().map(|thread| thread.in_flight).sum::<u64>();
    let ages = unfinished().filter_map(|thread| Some(running.ns(thread.last_progress?, waited.tick)));
    let oldest_ns = sample.flowops.iter().map(|s| s.late_oldest_ns).chain(ages).max().unwrap_or(0);
    run.late_oldest_seconds = (run.late_ops > 0).then_some(oldest_ns as f64 / 1e9);
    run.stragglers = stragglers
        .iter()
        .map(|s| Straggler {
            flowop: qualified_name(plan, s.flowop),
            instance: s.instance as u64,
            thread: s.number as u64,
            wait_channel: s.wait_channel.clone(),
            path: Some(s.path.clone().unwrap_or_else(|| roots_text(plan, s.flowop))),
            rank: None,
        })
        .collect();
    run.phases = phases(running, waited.tick);
    fill_figures(run, &sample.flowops, run.measured_seconds, usage.cpu);
    usage.describe(run);
    // A call that had not returned counts as late.
    for thread in unfinished() {
        run.flowops[thread.flowop].late_ops += thread.in_flight;
    }
    let progress: Vec<DefinitionProgress> =
        running.open_loops(waited.tick).into_iter().map(|(of, now)| DefinitionProgress::of(plan, of, now)).collect();
    run.open_loop = open_loop(&progress, &run.phases, run.measured_seconds);
    run.overhead_ns_per_op = Some(overhead());
    run.peak_memory = crate::os::proc::peak_memory();
    let threads = match () {
        () if !stragglers.is_empty() => AfterRun::Held,
        () if is_over || running.n_remaining() == 0 => AfterRun::Ended,
        () => AfterRun::GoesOn,
    };
    ready.cache.conclude(run, plan, &ready.sets, seed, threads);
    run.warnings.extend(interruption_notes(running));
    run.warnings.extend(thread_notes(plan, running, &waited.ended, &run.flowops));
    run.warnings.extend(phase_notes(plan, &waited.ended, &run.phases));
    end(run, ready, &waited.ended)
}

/// Returns the measured phases of a run. Empty for a workload with a single phase.
fn phases(running: &Running, end: u64) -> Vec<PhaseResult> {
    let opened = running.opened();
    let seconds = |from: u64, to: u64| running.ns(from, to) as f64 / 1e9;
    let phase = |ticks: PhaseTicks| PhaseResult {
        number: u64::from(ticks.number),
        start_seconds: ticks.began.map(|began| seconds(opened, began)),
        earliest_start_seconds: ticks.earliest.map(|time| time.as_secs_f64()),
        seconds: ticks.began.map_or(0.0, |began| {
            let (from, to) = (began.max(running.from()), ticks.ended.unwrap_or(end).min(end));
            if to > from { seconds(from, to) } else { 0.0 }
        }),
        complete: ticks.ended.is_some(),
    };
    running.phases().into_iter().map(phase).collect()
}

/// The progress of a thread definition with an open loop.
struct DefinitionProgress {
    process: String,
    thread: String,
    /// Whether its requests take several ways.
    mixed: bool,
    phase: u32,
    /// The rate that the script asks of its threads.
    rate: f64,
    arrivals: ArrivalProgress,
}

impl DefinitionProgress {
    fn of(plan: &Plan, of: PacedThread, arrivals: ArrivalProgress) -> Self {
        let process = &plan.processes[of.process];
        let thread = &process.threads[of.thread];
        let mixed = thread.steps.iter().any(|step| matches!(step, PlanStep::Choose { .. }));
        let threads = f64::from(process.instances) * f64::from(thread.instances);
        Self {
            process: process.name.clone(),
            thread: thread.name.clone(),
            mixed,
            phase: process.phase,
            rate: threads * thread.pace.map_or(0.0, |pace| pace.rate),
            arrivals,
        }
    }
}

/// Returns the load of the open loops, given their progress. `None` when there are none. The rates are over the time of
/// the phases that have open loops.
fn open_loop(progress: &[DefinitionProgress], phases: &[PhaseResult], seconds: f64) -> Option<OpenLoop> {
    let oldest_ns = progress.iter().map(|of| of.arrivals.oldest_ns).max()?;
    let seconds_of = |number: u32| {
        phases.iter().find(|phase| phase.number == u64::from(number)).map_or(seconds, |phase| phase.seconds)
    };
    let paced: BTreeSet<u32> = progress.iter().map(|of| of.phase).collect();
    let paced_seconds: f64 = paced.into_iter().map(seconds_of).sum();
    let sum = |of: fn(&ArrivalProgress) -> u64| progress.iter().map(|one| of(&one.arrivals)).sum::<u64>();
    let requests = |of: &DefinitionProgress| {
        let (arrivals, seconds) = (&of.arrivals, seconds_of(of.phase));
        ThreadRequests {
            process: of.process.clone(),
            thread: of.thread.clone(),
            offered_per_s: per_second(arrivals.offered, seconds),
            achieved_per_s: per_second(arrivals.achieved, seconds),
            backlog: arrivals.backlog,
            lost: arrivals.lost,
            response_ns_mean: (arrivals.achieved > 0).then(|| arrivals.response_ns as f64 / arrivals.achieved as f64),
            mixed: of.mixed,
        }
    };
    let (slept, wakeup_latency_ns) = (sum(|a| a.slept), sum(|a| a.wakeup_latency_ns));
    let response_ns = sum(|a| a.response_ns);
    let requested = progress.iter().map(|of| of.rate * seconds_of(of.phase)).sum::<f64>();
    Some(OpenLoop {
        requested_per_s: (paced_seconds > 0.0).then(|| requested / paced_seconds),
        offered_per_s: per_second(sum(|a| a.offered), paced_seconds),
        achieved_per_s: per_second(sum(|a| a.achieved), paced_seconds),
        backlog: sum(|a| a.backlog),
        lost: sum(|a| a.lost),
        backlog_oldest_seconds: oldest_ns as f64 / 1e9,
        wakeup_latency_ns_mean: (slept > 0).then(|| wakeup_latency_ns as f64 / slept as f64),
        wakeup_latency_share: (response_ns > 0).then(|| wakeup_latency_ns as f64 / response_ns as f64),
        spin_seconds: sum(|a| a.spin_ns) as f64 / 1e9,
        threads: progress.iter().map(requests).collect(),
    })
}

fn identity(plan: &Plan, id: usize, line: u64, direct: bool) -> FlowopResult {
    let info = &plan.flowops[id];
    let process = &plan.processes[info.process];
    FlowopResult {
        class: match info.class {
            crate::spec::Class::Io => FlowopClass::Io,
            crate::spec::Class::Aio => FlowopClass::Aio,
            crate::spec::Class::Sync => FlowopClass::Sync,
            crate::spec::Class::Other => FlowopClass::Other,
        },
        reads: info.direction == IoDirection::Read,
        writes: info.direction == IoDirection::Write,
        direct,
        composites: info.composites.clone(),
        transaction: info.transaction,
        may_starve: info.may_starve,
        line,
        instances: plan.instances(id) as u64,
        phase: u64::from(process.phase),
        ..build::identity(&process.name, &process.threads[info.thread].name, info.index, &info.name, info.kind)
    }
}

/// Sets the state of a run and the reason of its end. Returns the status.
fn end(run: &mut Run, ready: &Ready, ended: &Ended) -> Status {
    let (state, by, status) = match ended {
        Ended::Time => (RunState::Complete, "time".to_owned(), Status::Done),
        Ended::AllDone => (RunState::Complete, "all threads done".to_owned(), Status::Done),
        Ended::FirstDone => (RunState::Complete, "first thread done".to_owned(), Status::Done),
        Ended::Finished => (RunState::Complete, "count reached".to_owned(), Status::Done),
        Ended::Interrupted(signal) => {
            (RunState::Interrupted, crate::os::signal_name(*signal as i32), Status::Interrupted(*signal as u8))
        }
        Ended::Asked => (RunState::Interrupted, "request".to_owned(), Status::Done),
        Ended::Fault(fault) => fault_of(run, ready, fault),
    };
    (run.state, run.ended_by) = (state, by);
    // Running processes may be sampled before any time has passed.
    let had_time = *ended != Ended::Time || run.requested_seconds.is_some();
    if state == RunState::Complete && had_time && nothing_done(run, &ready.plan) {
        run.state = RunState::NothingDone;
        return Status::Failed;
    }
    status
}

fn fault_of(run: &mut Run, ready: &Ready, fault: &Fault) -> (RunState, String, Status) {
    let line = fault.flowop.map(|id| ready.lines[id]);
    let flowop = fault.flowop.map(|id| qualified_name(&ready.plan, id));
    let by = flowop.as_ref().map_or_else(|| fault.what.clone(), |flowop| format!("{flowop}: {}", fault.what));
    run.failure = Some(RunFailure {
        flowop,
        line,
        what: fault.what.clone(),
        path: fault.path.clone(),
        errno: fault.errno.map(errno_name),
        help: fault.help.clone(),
    });
    let state = match fault.kind {
        FaultKind::Operation | FaultKind::Foreign | FaultKind::Setup | FaultKind::Panic => RunState::Failed,
        FaultKind::Stuck => RunState::Stuck,
        FaultKind::LowSpace => RunState::LowSpace,
    };
    (state, by, status_of(fault.kind))
}

/// Returns the figures of a run that a script can read as `${stats.NAME}`.
pub(crate) fn figures(run: &Run) -> RunFigures {
    let s = &run.summary;
    let us = |x: Option<f64>| x.unwrap_or(0.0) as u64;
    let latency = us(s.latency_ms.map(|ms| ms * 1000.0));
    let (own, all) = (us(s.cpu_us_per_op), us(s.system_cpu_us_per_op));
    let values = [
        s.ops,
        s.ops_per_s as u64,
        s.reads_per_s as u64,
        s.writes_per_s as u64,
        s.mib_per_s as u64,
        latency,
        own,
        // `oheadcpu`: the overhead of the tool is in the result in nanoseconds; it never amounts to a microsecond.
        0,
        latency,
        all,
        all.saturating_sub(own),
    ];
    FIGURES.into_iter().zip(values).collect()
}

/// True if no operation was completed although the script has operations.
fn nothing_done(run: &Run, plan: &Plan) -> bool {
    let is_requested = |(process, thread): (&crate::plan::Process, &crate::plan::Thread)| {
        let is_op =
            |step: &PlanStep| matches!(step, PlanStep::Op { iters, .. } if !matches!(iters, Quantity::Const(0)));
        process.instances > 0 && thread.steps.iter().any(is_op)
    };
    run.flowops.iter().all(|flowop| flowop.ops == 0) && plan.threads().any(is_requested)
}

/// The status of a run by its state alone.
pub(crate) fn status_of_state(state: RunState) -> Status {
    match state {
        RunState::Complete => Status::Done,
        RunState::Interrupted | RunState::Failed | RunState::Stuck | RunState::NothingDone => Status::Failed,
        RunState::LowSpace => Status::Refused,
    }
}

/// Returns the status for a kind of fault: the run failed, or the environment refused it.
pub(crate) fn status_of(kind: FaultKind) -> Status {
    match kind {
        FaultKind::Operation | FaultKind::Stuck | FaultKind::Panic => Status::Failed,
        FaultKind::Foreign | FaultKind::Setup | FaultKind::LowSpace => Status::Refused,
    }
}

fn per_second(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
}

/// Returns the overhead of the tool per operation in nanoseconds: one reading of the clock, and counting. Calibrated
/// once on this machine.
pub(crate) fn overhead() -> f64 {
    use std::sync::OnceLock;
    static COST: OnceLock<f64> = OnceLock::new();
    *COST.get_or_init(|| {
        const ITERATIONS: u32 = 20_000;
        let clock = Clock::get();
        let Ok(stats) = crate::stats::recorder::ThreadStats::new(1) else { return clock.cost_ns() };
        (0..8)
            .map(|_| {
                let start = clock.raw();
                let mut last = start;
                for _ in 0..ITERATIONS {
                    let now = clock.raw();
                    stats.cell(0).record(clock.ns(last, now), 0);
                    last = now;
                }
                clock.ns(start, last) as f64 / f64::from(ITERATIONS)
            })
            .fold(f64::INFINITY, f64::min)
    })
}

/// Returns the entry of a file set.
fn fileset(
    set: &crate::disk::Fileset,
    prepared: Option<&crate::disk::prepare::Prepared>,
    root: Option<&PathBuf>,
) -> FilesetResult {
    let spec = &set.spec;
    let number =
        |q: &Option<crate::random::Quantity>| q.as_ref().map_or(serde_json::Value::Null, |q| q.to_string().into());
    let mut layout = BTreeMap::from([
        ("entries".to_owned(), spec.entries.into()),
        ("leafdirs".to_owned(), spec.leafdirs.into()),
        ("dirwidth".to_owned(), number(&spec.dirwidth)),
        ("width_gamma".to_owned(), spec.width_gamma.into()),
        ("depth_gamma".to_owned(), spec.depth_gamma.into()),
        ("size".to_owned(), spec.size.to_string().into()),
        ("prealloc".to_owned(), spec.prealloc.into()),
        ("seed".to_owned(), set.layout_seed.into()),
    ]);
    let rule = spec.prealloc_rule(set.layout_seed);
    layout.extend(rule.map(|rule| (FilesetResult::PREALLOC_RULE.to_owned(), rule.into())));
    FilesetResult {
        name: spec.name.clone(),
        path: root.map_or_else(|| path::resolve(&spec.root()), Clone::clone).display().to_string(),
        layout,
        files: prepared.map_or(set.tree.files_at_start(), |p| p.files),
        directories: prepared.map_or(set.tree.n_dirs(), |p| p.directories),
        bytes: prepared.map_or(set.tree.bytes_at_start(), |p| p.bytes),
        populate_seconds: prepared.filter(|p| !p.unchanged).map(|p| p.populate_seconds),
        repaired: prepared.filter(|p| p.reused).map(|p| p.repairs),
        sync_seconds: prepared.filter(|p| !p.unchanged || p.quiesced.is_some()).map(|p| p.sync_seconds),
        ..FilesetResult::default()
    }
}

/// Returns the notes of a script, and those on variables with other values than when it was compared with its program.
fn script_notes(about: &Description) -> Vec<Note> {
    let own = about.notes.iter().map(|text| NoteCode::ScriptNote.note(text));
    let compared = about.compared.iter();
    let other = compared.filter_map(|(name, then)| not_compared(name, about.variables.get(name)?, then));
    own.chain(other).collect()
}

/// Returns the note that a variable has another value than when the script was compared. `None` too if one of both is no
/// number.
fn not_compared(name: &str, value: &serde_json::Value, then: &str) -> Option<Note> {
    let now = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = |text: &str| text.parse().ok().or_else(|| size::parse(text).ok().map(|bytes| bytes as f64));
    let numbers: [Option<f64>; 2] = [&now, then].map(number);
    let is_other = matches!(numbers, [Some(now), Some(was)] if (now - was).abs() > f64::EPSILON * now.abs());
    let message = format!("${name} is {now}; the script was compared with its program at {then}");
    is_other.then(|| NoteCode::NotCompared.note(message))
}

/// Returns notes on threads that waited for other threads all the time, and on threads that found no usable file.
fn thread_notes(plan: &Plan, running: &Running, ended: &Ended, figures: &[FlowopResult]) -> Vec<Note> {
    let mut notes = Vec::new();
    if *ended == Ended::Time {
        for (flowop, threads) in running.held() {
            let message = format!(
                "{} waited in `{}` to the end and never passed it; \
                 check which flowop posts to it or wakes it, and how often",
                count(threads, "thread"),
                qualified_name(plan, flowop)
            );
            notes.push(NoteCode::WaitedToTheEnd.note(message));
        }
    }
    for (flowop, threads) in running.exhausted() {
        // A thread may be meant to end like this, but not before anything was done, nor while requests go on to arrive.
        if !plan.flowops[flowop].may_starve || is_paced(plan, flowop) || figures.get(flowop).is_some_and(|f| f.ops == 0)
        {
            notes.push(NoteCode::Exhausted.note(exhausted_text(plan, flowop, threads)));
        }
    }
    notes
}

/// Returns notes on phases that the time of the run has cut short.
fn phase_notes(plan: &Plan, ended: &Ended, phases: &[PhaseResult]) -> Vec<Note> {
    let cut = phases.iter().filter(|phase| *ended == Ended::Time && phase.start_seconds.is_some() && !phase.complete);
    let note = |phase: &PhaseResult| {
        let own = plan.processes.iter().filter(|process| u64::from(process.phase) == phase.number);
        let length = own.filter_map(|process| process.times.length).find(|length| !length.is_zero())?;
        let (done, length) = (duration::seconds(phase.seconds), duration::seconds(length.as_secs_f64()));
        let message = format!("phase {} was not complete: the run ended after {done} of its {length}", phase.number);
        Some(NoteCode::PhaseNotComplete.note(message))
    };
    cut.filter_map(note).collect()
}

/// Returns notes on time in which the program was stopped, and on free space that could not be checked.
fn interruption_notes(running: &Running) -> Vec<Note> {
    const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
    let mut notes = Vec::new();
    let stopped = running.stopped();
    if !stopped.is_zero() {
        let message = format!(
            "the program was stopped for at least {}, \
             which is included in the measured time; measure again without `SIGSTOP`",
            duration::seconds(stopped.as_secs_f64())
        );
        notes.push(NoteCode::Stopped.note(message));
    }
    if running.waits_for_space(ANSWER_TIMEOUT) {
        let message = "the free space was not checked: the file system was busy and did not answer within 5 s";
        notes.push(NoteCode::NotLookedAt.note(message));
    }
    notes
}

/// Whether the thread of a flowop is an open loop.
fn is_paced(plan: &Plan, flowop: usize) -> bool {
    let info = &plan.flowops[flowop];
    plan.processes[info.process].threads[info.thread].pace.is_some()
}

fn exhausted_text(plan: &Plan, flowop: usize, threads: u64) -> String {
    let info = &plan.flowops[flowop];
    let sets: Vec<_> = info.sets.iter().filter_map(|set| plan.filesets.get(*set)).collect();
    let whole = sets.iter().filter(|set| set.part == 0);
    let names: Vec<String> = whole.map(|set| format!("`{}`", set.name)).collect();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(" and ")) };
    let advice = if !sets.is_empty() && sets.iter().all(|set| set.entries + set.leafdirs == 0) {
        "the set has 0 entries: set the number of files with `entries=`"
    } else if is_paced(plan, flowop) {
        "give the set `entries` for all requests of the run, or a flowop that offsets this one"
    } else if info.may_starve {
        "give the set another `prealloc`; files of an earlier run remain unless `shutdown filesets` removes them"
    } else {
        "give the set more `entries`, another `prealloc`, or a flowop that offsets this one; \
         if the thread is meant to end like this, give the flowop `maystarve`"
    };
    let all = plan.instances(flowop) as u64;
    let which = if threads < all { format!("{threads} of {all} threads") } else { count(threads, "thread") };
    format!("{which} ended early: `{}` found no usable file{of}; {advice}", qualified_name(plan, flowop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_loops_have_the_rates_of_their_phases() {
        let arrivals = |offered, achieved| ArrivalProgress { offered, achieved, ..ArrivalProgress::default() };
        let rates = |progress: &[(u32, ArrivalProgress)], phases: &[PhaseResult]| {
            let (process, thread) = (String::new(), String::new());
            let of = |(phase, arrivals): &(u32, ArrivalProgress)| DefinitionProgress {
                mixed: false,
                process: process.clone(),
                thread: thread.clone(),
                phase: *phase,
                rate: 10.0 * f64::from(*phase),
                arrivals: *arrivals,
            };
            let open = open_loop(&progress.iter().map(of).collect::<Vec<_>>(), phases, 20.0);
            open.map(|open| {
                (open.offered_per_s.round(), open.achieved_per_s.round(), open.requested_per_s.map(f64::round))
            })
        };
        let phase = |number, seconds| PhaseResult { number, seconds, ..PhaseResult::default() };
        let phases = [phase(1, 10.0), phase(2, 10.0), phase(5, 0.0)];
        let second = [(2, arrivals(1000, 900))];
        assert_eq!(rates(&second, &[]), Some((50.0, 45.0, Some(20.0))), "a single phase");
        assert_eq!(rates(&second, &phases), Some((100.0, 90.0, Some(20.0))));
        let two = [(2, arrivals(1000, 900)), (1, arrivals(500, 500)), (5, arrivals(0, 0))];
        assert_eq!(rates(&two, &phases), Some((75.0, 70.0, Some(15.0))), "over both phases");
        assert_eq!(rates(&[], &phases), None);
    }
}
