//! Phases of a workload: the times that a script gives for them, and phases that never begin.
//!
//! Only what is certain from the plan is an error: a thread may find no file, fail, or wait for another one, and so may
//! end its phase.

use super::compile::Definitions;
use super::{Plan, PlanStep, Process, Thread};
use crate::exec::{UnitKind, maker};
use crate::fileset::Want;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use wml_language::diag::{self, Code, Diagnostic};
use wml_language::model::QuitMode;
use wml_language::source::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PhaseTimes {
    /// The time after which its threads end (`for=`).
    pub length: Option<Duration>,
    /// The time from the start of the run before which it does not begin (`start=`).
    pub start: Option<Duration>,
}

/// Reports times of a phase that contradict each other, and phases in a run that does not wait for all threads.
pub(super) fn check(definitions: &Definitions, plan: &Plan, found: &mut Vec<Diagnostic>) {
    differing(definitions, plan, "for", |times| times.length, found);
    differing(definitions, plan, "start", |times| times.start, found);
    let mut numbers = definitions.processes.iter().filter_map(|def| def.attrs.get("phase"));
    let Some(at) = numbers.next().filter(|_| plan.phases.len() > 1) else { return };
    if plan.mode != QuitMode::AllDone {
        let message = format!("the script has phases, and its run ends in mode `{}`", plan.mode.name());
        found.push(
            Diagnostic::error(Code::Unsupported, at.value.span, message)
                .help("write `set mode quit alldone`: a phase ends when all of its threads have"),
        );
    }
}

/// Returns the errors of a run whose phases never begin, because the one before does not end, or of a thread that would
/// wait for another phase. `definitions`: those that the plan is made of.
pub fn never_begun(definitions: &Definitions, plan: &Plan) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let times = plan.phase_times();
    let woken = woken(plan);
    let mut by_phase: HashMap<u32, Vec<(&Process, &Thread, Span)>> = HashMap::new();
    for (process, def) in plan.processes.iter().zip(&definitions.processes).filter(|(process, _)| process.instances > 0)
    {
        let threads = process.threads.iter().zip(&def.threads).map(|(thread, def)| (process, thread, def.span));
        by_phase.entry(process.phase).or_default().extend(threads);
    }
    let mut brought = Brought::default();
    for pair in plan.phases.windows(2) {
        let threads = by_phase.remove(&pair[0]).unwrap_or_default();
        brought.next_phase(threads.iter().map(|(_, thread, _)| *thread));
        for (process, thread, at) in threads {
            let length = times[&process.phase].length;
            if let Some(report) = never_ends(plan, process, thread, length, (&brought, &woken), at, pair[1]) {
                diag::push(&mut found, report);
            }
        }
    }
    posts_to_other_phases(plan, &times, &mut found);
    found
}

/// Reports processes of a phase that give different values for one of its times.
fn differing(
    definitions: &Definitions,
    plan: &Plan,
    name: &str,
    time: fn(PhaseTimes) -> Option<Duration>,
    found: &mut Vec<Diagnostic>,
) {
    let mut known: HashMap<u32, (Duration, Span)> = HashMap::new();
    for (process, def) in plan.processes.iter().zip(&definitions.processes) {
        let (Some(own), Some(used)) = (time(process.times), def.attrs.get(name)) else { continue };
        let (first, span) = *known.entry(process.phase).or_insert((own, used.value.span));
        if first != own {
            let message = format!("`{name}` of phase {} has two values", process.phase);
            let report = Diagnostic::error(Code::Duplicate, used.value.span, message).also(span, "the first");
            diag::push(found, report.help("it is a time of the phase: give it once, or the same value everywhere"));
        }
    }
}

/// The states of files and empty directories that threads bring about, each a file set and the number of its maker.
#[derive(Default)]
struct Brought {
    /// Threads of the phase.
    now: HashSet<(usize, usize)>,
    /// Threads of the phase and of those before it.
    so_far: HashSet<(usize, usize)>,
}

impl Brought {
    /// Goes on to the next phase, which has these threads.
    fn next_phase<'a>(&mut self, threads: impl Iterator<Item = &'a Thread>) {
        let makes = threads.flat_map(|thread| &thread.effects.makes);
        self.now = makes.map(|(set, want, kind)| (*set, maker(*kind, *want))).collect();
        self.so_far.extend(&self.now);
    }
}

/// Returns the error for a thread because of which the phase `next` never begins. `length`: that of its own phase.
fn never_ends(
    plan: &Plan,
    process: &Process,
    thread: &Thread,
    length: Option<Duration>,
    (brought, woken): (&Brought, &HashSet<usize>),
    at: Span,
    next: u32,
) -> Option<Diagnostic> {
    let (what, name) = (format!("phase {next} never begins"), &thread.name);
    match end_of(plan, thread, length, brought, woken) {
        EndCause::Count(local) => {
            let finish = &plan.flowops[thread.first + local];
            // In Filebench up to 1.4 it ends the run, not only its thread.
            let message = format!("{what}: `{}` ends the run in phase {}", finish.name, process.phase);
            let report = Diagnostic::error(Code::Unsupported, finish.span, message);
            process.dialect.semantics().finish_ends_run.then(|| {
                report
                    .help("write `# dialect: fsl`, where it ends its thread, or give the process `for=SECONDS` instead")
            })
        }
        EndCause::Limit | EndCause::Shortage | EndCause::Fault => None,
        EndCause::Nothing => {
            let message = format!("{what}: thread `{name}` of phase {} does not end", process.phase);
            Some(Diagnostic::error(Code::Unsupported, at, message).help(
                "give its process `for=SECONDS`, or the thread `stonewall=SECONDS` or a `finishoncount`: a phase begins \
                 when all threads of the one before have ended",
            ))
        }
    }
}

/// What can end a thread before its run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EndCause {
    /// A count, which this flowop of the thread checks.
    Count(usize),
    /// The length of its phase, a stonewall, or the iterations of another thread.
    Limit,
    /// It may find no file, or no free name, that it needs.
    Shortage,
    /// It may wait for ever, or fail.
    Fault,
    Nothing,
}

fn end_of(
    plan: &Plan,
    thread: &Thread,
    length: Option<Duration>,
    brought: &Brought,
    woken: &HashSet<usize>,
) -> EndCause {
    let flowops = &plan.flowops[thread.first..thread.first + thread.count];
    if let Some(local) = flowops.iter().position(|flowop| flowop.finishes) {
        return EndCause::Count(local);
    }
    if length.is_some() || thread.stonewall.is_some() || thread.iterations_of.is_some() {
        return EndCause::Limit;
    }
    if may_run_out(plan, thread, brought) {
        EndCause::Shortage
    } else if may_stop(plan, thread, woken) {
        EndCause::Fault
    } else {
        EndCause::Nothing
    }
}

/// The flowops that others wake.
fn woken(plan: &Plan) -> HashSet<usize> {
    plan.threads().flat_map(|(_, thread)| &thread.steps).flat_map(wakes).collect()
}

/// What can end the threads of each definition, in the order of the definitions.
pub(super) fn ends(plan: &Plan) -> Vec<EndCause> {
    let (times, woken, mut brought) = (plan.phase_times(), woken(plan), Brought::default());
    let threads: Vec<&Thread> = plan.threads().map(|(_, thread)| thread).collect();
    let mut ends = vec![EndCause::Nothing; threads.len()];
    for (phase, own) in definitions_of_phases(plan) {
        brought.next_phase(own.iter().map(|definition| threads[*definition]));
        for definition in own {
            ends[definition] = end_of(plan, threads[definition], times[&phase].length, &brought, &woken);
        }
    }
    ends
}

/// The positions of the thread definitions of each phase, without those that have no process.
pub(super) fn definitions_of_phases(plan: &Plan) -> BTreeMap<u32, Vec<usize>> {
    let mut all: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (definition, (process, _)) in plan.threads().enumerate().filter(|(_, (process, _))| process.instances > 0) {
        all.entry(process.phase).or_default().push(definition);
    }
    all
}

/// True if a thread may find no file, or no free name, that it needs, so that it ends.
fn may_run_out(plan: &Plan, thread: &Thread, brought: &Brought) -> bool {
    let opposite = |want: Want| if want == Want::Existing { Want::Absent } else { Want::Existing };
    // To make one of a state uses up one of the other.
    let uses_up =
        |(set, want, kind): &(usize, Want, UnitKind)| !brought.now.contains(&(*set, maker(*kind, opposite(*want))));
    let existing = maker(UnitKind::File, Want::Existing);
    let may_lack = |set: &usize| {
        let spec = &plan.filesets[*set];
        let had_some =
            spec.entries > 0 && (spec.prealloc > 0 || spec.empty) || brought.so_far.contains(&(*set, existing));
        let loses_some = brought.so_far.contains(&(*set, maker(UnitKind::File, Want::Absent)));
        (!had_some || loses_some) && !brought.now.contains(&(*set, existing))
    };
    thread.effects.makes.iter().any(uses_up) || thread.effects.sets.iter().any(may_lack)
}

/// The flowops that a step wakes.
fn wakes(step: &PlanStep) -> Vec<usize> {
    if let PlanStep::Op { op, .. } = step { op.effects().wakes } else { Vec::new() }
}

/// True if a thread may wait for ever, or fail: it waits in a flowop that none wakes, or works on a slot in which
/// it opens no file.
fn may_stop(plan: &Plan, thread: &Thread, woken: &HashSet<usize>) -> bool {
    thread.steps.iter().any(|step| {
        let PlanStep::Op { local, op, .. } = step else { return false };
        let (id, effects) = (thread.first + local, op.effects());
        let waits = effects.highwater.is_some() || effects.latch;
        waits && !woken.contains(&id) || effects.slot > 0 && plan.flowops[id].sets.is_empty()
    })
}

/// Reports posts to a waiting flowop of another phase if one of the two phases ends after a time: a blocking post might
/// wait for ever.
fn posts_to_other_phases(plan: &Plan, times: &HashMap<u32, PhaseTimes>, found: &mut Vec<Diagnostic>) {
    let is_timed = |phase: u32| times[&phase].length.is_some();
    for (process, thread) in plan.threads() {
        for step in &thread.steps {
            let PlanStep::Op { local, .. } = step else { continue };
            let phase_of = |id: usize| plan.processes[plan.flowops[id].process].phase;
            let other = wakes(step).into_iter().map(phase_of).find(|phase| *phase != process.phase);
            if let Some(other) = other.filter(|other| is_timed(*other) || is_timed(process.phase)) {
                let post = &plan.flowops[thread.first + local];
                let message = format!("`{}` of phase {} posts to phase {other}", post.name, process.phase);
                let report = Diagnostic::error(Code::Unsupported, post.span, message);
                diag::push(found, report.help("phases never overlap: post to a flowop of the same phase"));
            }
        }
    }
}
