//! A thread of a workload: prepares its program and buffer, waits at the gate, and executes its steps in a loop.

use super::iterations::IterationLimit;
use super::pace::{ArrivalSlot, Timetable};
use super::process::ProcessContext;
use super::shared::{Fault, FaultKind, Shared, ThreadSlot, panicked};
use super::steps::{ThreadStep, choose, instantiate};
use super::thread_io;
use crate::exec::slots::Slots;
use crate::exec::trace::{Stream, StreamShape};
use crate::exec::{Account, OpCx, OpFailure, RunEnv, Sink, Starvation, Stop, StopReason, ThreadFiles, ThreadIo};
use crate::flowop::StepInit;
use crate::plan::Thread;
use crate::random;
use crate::stats::recorder::ThreadStats;
use crate::sync::Gate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use wml_language::model::QuitMode;
use wml_language::spec::IoDirection;
use wml_os::proc;

/// Number of repetitions of a step between two checks whether the run has stopped.
const CHECK_EVERY: u64 = 1 << 9;

/// A prepared thread: its context, its program, and its timetable in an open loop.
type ReadyThread<'a> = (OpCx<'a>, Vec<ThreadStep<'a>>, Option<Timetable>);

/// The reason why a thread leaves its loop.
enum ThreadEnd {
    /// The run is over.
    Over,
    /// The time of its phase is over (`for=`).
    PhaseOver,
    /// No file is left for a flowop.
    Exhausted,
    /// It has made the iterations that `stonewall=` or `iterationsof=` allow.
    Complete,
    /// It has reached a `finishoncount` or `finishonbytes`.
    Finished,
    /// It cannot continue.
    Fault(Fault),
}

/// Runs a thread from its start to its end. A panic is caught and ends the run, but not the program.
pub(super) fn run(context: &ProcessContext<'_>, thread_slot: &ThreadSlot) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run_guarded(context, thread_slot))) {
        let local = thread_slot.at.load(Relaxed) as usize;
        let thread = &context.process.threads[thread_slot.thread];
        let at = (local < thread.count).then_some(thread.first + local);
        context.shared.fail(panicked(&thread_slot.title(&context.shared.plan), at, payload.as_ref()));
    }
}

/// Runs a thread under its [`DoneGuard`].
fn run_guarded(context: &ProcessContext<'_>, thread_slot: &ThreadSlot) {
    let shared = context.shared;
    let mut done_guard = DoneGuard { shared, thread_slot, ready: false, is_finished: false };
    thread_slot.tid.store(proc::thread_id(), Relaxed);
    if shared.gate.is_stopped() {
        // Another thread could not be prepared, or a signal has ended the run before its start.
        return;
    }
    let makes = &context.process.threads[thread_slot.thread].effects.makes;
    let starvation = Starvation::new(makes, Arc::clone(&thread_slot.starves));
    match prepare(context, thread_slot, starvation) {
        Ok((mut cx, mut steps, mut timetable)) => {
            let arrived = shared.gate.arrive();
            done_guard.ready = true;
            let began = if arrived { wait_for_phase(&cx, context, thread_slot) } else { None };
            let mut limit = IterationLimit::of(shared, thread_slot);
            let may_begin = began.map(|began| limit.as_mut().map_or(Ok(true), |limit| limit.start(began, thread_slot)));
            cx.start();
            if let (Some(timetable), Some(began)) = (&mut timetable, began) {
                timetable.start(&cx, began, &thread_slot.arrivals);
            }
            let mut end = match may_begin {
                Some(Ok(true)) => {
                    iterate(&mut steps, &mut cx, timetable.as_mut(), limit.as_mut(), context, thread_slot)
                }
                Some(Ok(false)) => ThreadEnd::Complete,
                None | Some(Err(_)) => ThreadEnd::Over,
            };
            cx.gathering = None;
            if matches!(end, ThreadEnd::Over) && is_phase_over(shared, thread_slot) {
                end = ThreadEnd::PhaseOver;
            }
            let as_planned = ends_as_planned(&end);
            if let Some(timetable) = timetable.filter(|_| as_planned || matches!(end, ThreadEnd::Exhausted)) {
                timetable.close(&thread_slot.arrivals, as_planned);
            }
            if ends_independently(context, &end) {
                // Operations that are still in flight belong to the thread's work.
                end = cx
                    .drain()
                    .err()
                    .and_then(|outcome| thread_end(outcome, &mut cx, thread_slot, shared))
                    .unwrap_or(end);
            }
            wml_os::annotate("thread done");
            *thread_slot.stream.lock() = cx.account.stream.take();
            thread_slot.exhausted.store(matches!(end, ThreadEnd::Exhausted), SeqCst);
            report(context, &end);
            cx.files.starvation.leave(context.views);
            if let Some(failure) = cx.close_all().filter(|_| !shared.options.count_errors) {
                let at = flowop_id(shared, thread_slot, failure.flowop.unwrap_or_else(|| cx.current()));
                shared.fail_at_close(Fault::of(FaultKind::Operation, at, failure));
            }
            if let (Some(limit), Some(partial)) = (limit, partial_iterations(&end)) {
                limit.end(partial);
            }
            // Read by `Running::last_end`: a run whose threads have all ended ended with the last of them. Stored after
            // the files are closed, and after the wait for the threads of the other ranks that do the same work: both are
            // part of the run, and of its last phase.
            thread_slot.ended.store(shared.clock.raw(), SeqCst);
            // Report the end before memory is freed, for which thousands of threads contend.
            done_guard.finish();
        }
        Err(fault) => shared.fail(fault),
    }
}

/// Waits for the phase of the thread's process. Returns the tick at which it began; `None` when the run has stopped
/// before. While it waits, the thread does not count as a maker of files for which others wait.
fn wait_for_phase(cx: &OpCx<'_>, context: &ProcessContext<'_>, thread_slot: &ThreadSlot) -> Option<u64> {
    let (phases, process) = (&context.shared.phases, thread_slot.process);
    if phases.is_first(process) {
        return Some(context.shared.gate.opened());
    }
    cx.files.starvation.leave(context.views);
    if let Some(first) = phases.take_first() {
        context.shared.begin_phase(first, context.shared.gate.opened());
    }
    let began = phases.wait(process);
    cx.files.starvation.enter(context.views);
    began.ok()
}

/// A drop guard for the controller's counts: however the thread ends, even by a panic, it counts as ready and as done.
struct DoneGuard<'a> {
    shared: &'a Shared,
    thread_slot: &'a ThreadSlot,
    ready: bool,
    is_finished: bool,
}

impl DoneGuard<'_> {
    /// Counts the thread as done after its last system call.
    fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) && !self.thread_slot.done.swap(true, SeqCst) {
            let now = self.shared.clock.raw();
            // A thread that ends with the run does not begin the next phase.
            if now <= self.shared.gate.deadline()
                && let Some(next) = self.shared.phases.leave(self.thread_slot.process, now)
                && !std::thread::panicking()
            {
                self.shared.begin_phase(next, now);
            }
            self.shared.notify(|reports| reports.done += 1);
        }
    }
}

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Set before the thread counts as done. The message of the panic is reported where it is caught.
            self.shared.panicked.store(true, SeqCst);
        }
        if !self.ready {
            self.shared.gate.count_ready();
        }
        self.finish();
    }
}

/// Counts a thread that could not be started, or whose leader has failed, as ready and as done, unless it is already.
pub(super) fn never_ran(shared: &Shared, thread_slot: &ThreadSlot) {
    if !thread_slot.done.swap(true, SeqCst) {
        shared.gate.count_ready();
        shared.notify(|reports| reports.done += 1);
    }
}

/// True if the time of the thread's phase is over, and the run goes on.
fn is_phase_over(shared: &Shared, thread_slot: &ThreadSlot) -> bool {
    let now = shared.clock.raw();
    let of_phase = shared.phases.gate_of(thread_slot.process).map(Gate::deadline);
    of_phase.is_some_and(|end| end < now) && now <= shared.gate.deadline()
}

/// True if the thread ends where the script means it to, so that its schedule ends too. That of the others goes on
/// to the end of their phase: what they were asked for remains what it was.
fn ends_as_planned(end: &ThreadEnd) -> bool {
    match end {
        // Requests arrive whether or not there are files for them: `maystarve` does not make them fewer.
        ThreadEnd::Over | ThreadEnd::PhaseOver | ThreadEnd::Fault(_) | ThreadEnd::Exhausted => false,
        ThreadEnd::Complete | ThreadEnd::Finished => true,
    }
}

/// True if the thread ends independently of the run, so that its operations in flight are completed first.
fn ends_independently(context: &ProcessContext<'_>, end: &ThreadEnd) -> bool {
    match end {
        // What is in flight when a phase is over is late, as at the end of a run.
        ThreadEnd::Over | ThreadEnd::PhaseOver | ThreadEnd::Fault(_) => false,
        ThreadEnd::Exhausted | ThreadEnd::Complete => true,
        ThreadEnd::Finished => ends_alone(context),
    }
}

/// True if reaching a count ends only the thread, not the run.
fn ends_alone(context: &ProcessContext<'_>) -> bool {
    context.shared.plan.mode == QuitMode::AllDone && !context.process.dialect.semantics().finish_ends_run
}

/// Returns 1 if a count has ended the thread within an iteration, which counts, and else 0. `None` if the end of the
/// run, or a fault, has ended the thread.
fn partial_iterations(end: &ThreadEnd) -> Option<u64> {
    match end {
        ThreadEnd::Over | ThreadEnd::Fault(_) => None,
        ThreadEnd::PhaseOver | ThreadEnd::Exhausted | ThreadEnd::Complete => Some(0),
        ThreadEnd::Finished => Some(1),
    }
}

/// Reports the thread's end, and ends the run if this end requires it.
fn report(context: &ProcessContext<'_>, end: &ThreadEnd) {
    let shared = context.shared;
    let mode = shared.plan.mode;
    match end {
        ThreadEnd::Over => {}
        ThreadEnd::PhaseOver | ThreadEnd::Exhausted | ThreadEnd::Complete if mode == QuitMode::FirstDone => {
            shared.finish(|reports| reports.first_done = true);
        }
        ThreadEnd::PhaseOver | ThreadEnd::Exhausted | ThreadEnd::Complete => {}
        ThreadEnd::Finished if ends_alone(context) => {}
        ThreadEnd::Finished => shared.finish(|reports| reports.finished = true),
        ThreadEnd::Fault(fault) => shared.fail(fault.clone()),
    }
}

/// Prepares a thread before the gate: priority, processor, buffer, program, context. `Err` when a resource is missing.
fn prepare<'a>(
    context: &'a ProcessContext<'_>,
    thread_slot: &'a ThreadSlot,
    starvation: Starvation,
) -> Result<ReadyThread<'a>, Fault> {
    let shared: &'a Shared = context.shared;
    let thread: &'a Thread = &context.process.threads[thread_slot.thread];
    let stats: &'a ThreadStats = &thread_slot.stats;
    if let Some(level) = thread.ioprio {
        // Without the permission the priority stays unchanged; the run is otherwise the same.
        let _ = proc::io_priority(level);
    }
    let index = thread_slot_index(shared, thread_slot);
    if let Some(processor) = shared.processor_of(index) {
        proc::pin(processor).map_err(|e| {
            let what = format!("a thread `{}` can't be bound to processor {processor}: {e}", thread.name);
            Fault::plain(FaultKind::Setup, what, "omit `--pin`")
        })?;
    }
    let identity =
        [thread_slot.process as u64, thread_slot.instance as u64, thread_slot.thread as u64, thread_slot.number as u64];
    let rng = random::stream(shared.options.seed, &identity);
    let seed = random::mix(shared.options.seed, index as u64);
    let effects = &thread.effects;
    let buffer = thread_io::buffer(context, thread, index, seed)?;
    let init = StepInit {
        ordinal: thread_slot.instance * thread.instances as usize + thread_slot.number,
        semaphores: &shared.semaphores,
        latches: &shared.latches,
        peers: context.peers,
        seed,
    };
    let is_io = |local: usize| shared.plan.flowops[thread.first + local].has_response();
    let steps = thread.steps.iter().map(|step| instantiate(step, &init, stats, &is_io, &shared.groups)).collect();
    let aio = effects.aio.map(|aio| thread_io::outstanding(context, thread_slot, aio, index, !seed)).transpose()?;
    let sink = if effects.sends && shared.options.engine.real() { thread_io::open_sink(thread)? } else { Sink::none() };
    let env = RunEnv {
        engine: shared.options.engine,
        clock: shared.clock,
        gate: shared.gate_of(thread_slot.process),
        events: shared.phases.events_of(thread_slot.process),
        messages: shared.options.messages.as_ref(),
        seed: shared.options.seed,
        instance: thread_slot.instance,
        count_errors: shared.options.count_errors,
    };
    let files = ThreadFiles::new(context.views, context.dirs, starvation);
    let slots = Slots::new(effects.max_fd, context.views.len()).with_parts(thread_io::firsts(context.views));
    let stream = shared.options.stream.map(|wanted| Box::new(Stream::new(wanted, shapes(shared, thread))));
    let mut io = ThreadIo::new(slots, buffer, aio, sink);
    if effects.measures {
        io.starts = vec![0; thread.count].into_boxed_slice();
    }
    let cx = OpCx::new(env, files, io, rng, Account::new(stats, stream));
    let slot = ArrivalSlot::new(shared.options.run_seed, shared.iterations.definition_of(thread_slot), init.ordinal);
    Ok((
        cx,
        steps,
        thread.pace.map(|pace| Timetable::new(pace, seed, slot, thread_slot.queue.clone(), shared.spare_cpus)),
    ))
}

/// Returns the parts that the thread's stream records of each of its flowops.
fn shapes(shared: &Shared, thread: &Thread) -> Vec<StreamShape> {
    let flowops = &shared.plan.flowops[thread.first..thread.first + thread.count];
    flowops
        .iter()
        .map(|f| match (f.class.is_io(), f.direction) {
            (false, _) => StreamShape::Absent,
            (true, IoDirection::None) => StreamShape::File,
            (true, _) if f.is_buffered => StreamShape::Buffered,
            (true, _) => StreamShape::Data,
        })
        .collect()
}

/// Returns the index of a thread slot among all.
fn thread_slot_index(shared: &Shared, thread_slot: &ThreadSlot) -> usize {
    let each: usize = shared.plan.processes[thread_slot.process].threads.iter().map(|t| t.instances as usize).sum();
    let before: usize = shared.plan.processes[thread_slot.process].threads[..thread_slot.thread]
        .iter()
        .map(|t| t.instances as usize)
        .sum();
    shared.first_thread_slot[thread_slot.process] + thread_slot.instance * each + before + thread_slot.number
}

/// The loop of a thread. Each step that does something checks the deadline. The end of each iteration checks it too,
/// for programs whose steps all do nothing.
///
/// With a timetable each iteration begins at its time, or as soon after it as the previous iteration has ended. With a
/// limit the loop ends when it is reached.
///
/// Split for speed: [`iterate_fast`] executes runs of steps that are executed once per iteration; this function handles
/// all other steps, open loops and ends. `#[inline(never)]` on both keeps the registers of the short loop free of the
/// state of the long one.
#[inline(never)]
fn iterate<'r>(
    steps: &mut [ThreadStep<'r>],
    cx: &mut OpCx<'r>,
    mut timetable: Option<&mut Timetable>,
    mut limit: Option<&mut IterationLimit<'_>>,
    context: &ProcessContext<'_>,
    thread_slot: &ThreadSlot,
) -> ThreadEnd {
    let (shared, gate) = (context.shared, cx.env.gate);
    // Remaining repetitions of each composite that is being executed, by the index of its `Enter`.
    let mut remaining = vec![0_u64; steps.len()];
    let mut pc = 0;
    let mut intended = 0;
    if let Some(timetable) = &mut timetable {
        let Some(tick) = timetable.begin(cx, &thread_slot.arrivals) else { return ThreadEnd::Over };
        intended = tick;
    }
    loop {
        if timetable.is_none() && limit.is_none() {
            let (at, outcome) = iterate_fast(steps, pc, cx, &thread_slot.at, gate);
            pc = at;
            if let Err(stop) = outcome {
                if let Some(end) = thread_end(stop, cx, thread_slot, shared) {
                    return end;
                }
                pc += 1;
                continue;
            }
        }
        let Some(step) = steps.get_mut(pc) else {
            if gate.is_stopped() {
                return ThreadEnd::Over;
            }
            if timetable.is_some() {
                Timetable::end(&thread_slot.arrivals, intended, cx);
            }
            match limit.as_mut().map_or(Ok(true), |limit| limit.end_iteration(cx, context.views)) {
                Ok(true) => {}
                Ok(false) => return ThreadEnd::Complete,
                Err(_) => return ThreadEnd::Over,
            }
            if let Some(timetable) = &mut timetable {
                let Some(tick) = timetable.begin(cx, &thread_slot.arrivals) else { return ThreadEnd::Over };
                intended = tick;
            }
            pc = 0;
            continue;
        };
        let (flowop, times) = match step {
            ThreadStep::Once(flowop) => (flowop, 1),
            ThreadStep::Many(flowop, iters) => (flowop, iters.draw(&mut cx.rng)),
            ThreadStep::Enter { iters, leave } => {
                remaining[pc] = iters.draw(&mut cx.rng);
                pc = if remaining[pc] == 0 { *leave + 1 } else { pc + 1 };
                continue;
            }
            ThreadStep::Leave { enter } => {
                remaining[*enter] -= 1;
                if gate.is_stopped() {
                    return ThreadEnd::Over;
                }
                pc = if remaining[*enter] > 0 { *enter + 1 } else { pc + 1 };
                continue;
            }
            ThreadStep::Choose { cumulative, starts, end, lap } => {
                pc = choose(&mut cx.rng, cumulative, starts, *end, lap.as_mut());
                continue;
            }
            ThreadStep::Detour(to) => match to.next(pc, cx) {
                Ok(next) => {
                    pc = next;
                    continue;
                }
                Err(_) => return ThreadEnd::Over,
            },
        };
        if timetable.is_some() {
            cx.set_intended_start(if flowop.io { intended } else { 0 });
        }
        for i in 0..times {
            // Steps that do nothing and read no clock must end with the run, too.
            if i % CHECK_EVERY == CHECK_EVERY - 1 && gate.is_stopped() {
                return ThreadEnd::Over;
            }
            let outcome = flowop.run(cx, &thread_slot.at);
            if let Err(stop) = outcome
                && let Some(end) = thread_end(stop, cx, thread_slot, shared)
            {
                match end {
                    ThreadEnd::Exhausted if timetable.is_some() => {
                        Timetable::take_back(&thread_slot.arrivals, intended);
                    }
                    // A count ends the thread in an iteration, which counts.
                    ThreadEnd::Finished if timetable.is_some() => {
                        Timetable::end(&thread_slot.arrivals, intended, cx);
                    }
                    _ => {}
                }
                return end;
            }
        }
        pc += 1;
    }
}

/// Executes steps that are executed once per iteration, one after another, iteration after iteration. Most programs
/// contain nothing else, and this loop does no more than they need. Returns at a step of another kind, at a step that
/// failed, and when the run has stopped: the index of the step, and its result.
///
/// Gain: the step of changes that introduced this loop took a random read from 218 to 184 instructions, `statfile` from
/// 465 to 360 and `varmail` from 460 to 335.
#[inline(never)]
fn iterate_fast<'r>(
    steps: &mut [ThreadStep<'r>],
    pc: usize,
    cx: &mut OpCx<'r>,
    at: &AtomicU32,
    gate: &Gate,
) -> (usize, Result<(), Stop>) {
    if let Some(exit) = iteration_fast(steps, pc, cx, at) {
        return exit;
    }
    while !gate.is_stopped() {
        if let Some(exit) = iteration_fast(steps, 0, cx, at) {
            return exit;
        }
    }
    (steps.len(), Ok(()))
}

/// Executes the steps from `pc` to the last. Returns the index and the result of the step at which it stopped; `None`
/// when it executed all.
///
/// Called twice: an iteration that begins at its first step (`pc` = 0) needs no search for its start. This took a
/// random read from 169 to 165 instructions and `statfile` from 314 to 310.
#[inline(always)]
#[expect(clippy::inline_always, reason = "with a constant 0 for `pc` the compiler removes the skip")]
fn iteration_fast<'r>(
    steps: &mut [ThreadStep<'r>],
    mut pc: usize,
    cx: &mut OpCx<'r>,
    at: &AtomicU32,
) -> Option<(usize, Result<(), Stop>)> {
    for step in steps.iter_mut().skip(pc) {
        let ThreadStep::Once(flowop) = step else { return Some((pc, Ok(()))) };
        let outcome = flowop.run(cx, at);
        if outcome.is_err() {
            return Some((pc, outcome));
        }
        pc += 1;
    }
    None
}

/// Returns the index in the plan of a flowop of a thread.
fn flowop_id(shared: &Shared, thread_slot: &ThreadSlot, local: usize) -> usize {
    shared.plan.processes[thread_slot.process].threads[thread_slot.thread].first + local
}

/// Returns the end of the thread that a [`Stop`] means. `None` when the thread continues.
#[cold]
fn thread_end(stop: Stop, cx: &mut OpCx<'_>, thread_slot: &ThreadSlot, shared: &Shared) -> Option<ThreadEnd> {
    let current = cx.current();
    let failed = |failure: &OpFailure| flowop_id(shared, thread_slot, failure.flowop.unwrap_or(current));
    Some(match stop.reason() {
        StopReason::Counted if cx.skip_after_error() => return None,
        StopReason::Over | StopReason::Counted => ThreadEnd::Over,
        StopReason::Exhausted => ThreadEnd::Exhausted,
        StopReason::Finished => ThreadEnd::Finished,
        StopReason::Failed(failure) => ThreadEnd::Fault(Fault::of(FaultKind::Operation, failed(&failure), failure)),
        StopReason::Refused(failure) => ThreadEnd::Fault(Fault::of(FaultKind::Foreign, failed(&failure), failure)),
        StopReason::Stuck(failure) => ThreadEnd::Fault(Fault::of(FaultKind::Stuck, failed(&failure), failure)),
    })
}
