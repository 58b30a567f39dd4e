//! One thread: gets its program and buffer ready, waits at the gate, and loops.

use super::pace::Timetable;
use super::process::ProcessContext;
use super::shared::{Fault, FaultKind, Shared, ThreadSlot, panicked};
use crate::engine::Asynchronous;
use crate::exec::buffer::IoBuffer;
use crate::exec::slots::Slots;
use crate::exec::trace::{Stream, StreamShape};
use crate::exec::{
    Account, Aio, AioMode, OpCx, OpFailure, Outstanding, RunEnv, Starvation, Stop, StopReason, ThreadFiles, ThreadIo,
    View, maker,
};
use crate::fileset::content::Stamper;
use crate::flowop::{self, At};
use crate::model::QuitMode;
use crate::os::proc;
use crate::plan::{self, Thread};
use crate::random::{self, Quantity, Rng, Shuffle};
use crate::spec::Way;
use crate::stats::recorder::{Cell, ThreadStats};
use crate::sync::Gate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Repetitions of a step between two looks at whether the run has stopped.
const LOOK_EVERY: u64 = 1 << 9;

/// A step with the state of this thread.
///
/// The kind is a byte of its own, looked at for each step, and not hidden in what the step holds.
#[repr(u8)]
enum ThreadStep<'r> {
    /// A flowop that is done once an iteration: nearly all are.
    Once(Doing<'r>),
    Many(Doing<'r>, Quantity),
    Enter {
        iters: Quantity,
        leave: usize,
    },
    Leave {
        enter: usize,
    },
    Choose {
        upto: Vec<f64>,
        starts: Vec<usize>,
        end: usize,
        /// The draws of the present lap, if they are without replacement.
        lap: Option<Shuffle>,
    },
    Jump(usize),
}

/// A flowop in a thread: its place there, its counters, and whether it is I/O.
struct Doing<'r> {
    local: u32,
    cell: &'r Cell,
    io: bool,
    step: Box<dyn flowop::Step + 'r>,
}

/// A thread before the gate: its context, its program, and its timetable if it has one.
type ReadyThread<'a> = (OpCx<'a>, Vec<ThreadStep<'a>>, Option<Timetable>);

/// Why a thread left its loop.
enum ThreadEnd {
    /// The run is over.
    Over,
    /// It has nothing left to do.
    Done,
    /// It has reached its count.
    Finished,
    /// It can't go on.
    Fault(Fault),
}

/// Runs a thread from start to end, a panic included: that ends the run, and nothing else.
pub(super) fn run(context: &ProcessContext<'_>, thread_slot: &ThreadSlot) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run_guarded(context, thread_slot))) {
        let local = thread_slot.at.load(Relaxed) as usize;
        let thread = &context.process.threads[thread_slot.thread];
        let at = (local < thread.count).then_some(thread.first + local);
        context.shared.fail(panicked(&thread_slot.title(&context.shared.plan), at, payload.as_ref()));
    }
}

fn run_guarded(context: &ProcessContext<'_>, thread_slot: &ThreadSlot) {
    let shared = context.shared;
    let mut done_guard = DoneGuard { shared, thread_slot, ready: false, is_finished: false };
    thread_slot.tid.store(proc::thread_id(), Relaxed);
    let makes = context.process.threads[thread_slot.thread].effects.makes.iter();
    let starvation = Starvation { makes: makes.map(|(set, want, kind)| (*set, maker(*kind, *want))).collect() };
    match prepare(context, thread_slot, starvation) {
        Ok((mut cx, mut steps, mut table)) => {
            let arrived = shared.gate.arrive();
            done_guard.ready = true;
            let began = if arrived { wait_for_phase(&cx, context, thread_slot) } else { None };
            let open = began.is_some();
            cx.start();
            if let (Some(table), Some(began)) = (&mut table, began) {
                table.start(&cx, began, &thread_slot.arrivals);
            }
            let mut end =
                if open { iterate(&mut steps, &mut cx, table.as_mut(), thread_slot, shared) } else { ThreadEnd::Over };
            if !matches!(end, ThreadEnd::Over) {
                Timetable::close(&thread_slot.arrivals);
            }
            if is_its_own(context, &end) {
                // What it still has out is a part of what it does.
                end = cx.drain().err().and_then(|outcome| ended(outcome, &mut cx, thread_slot, shared)).unwrap_or(end);
            }
            crate::os::annotate("thread done");
            *thread_slot.stream.lock() = cx.account.stream.take();
            thread_slot.exhausted.store(matches!(end, ThreadEnd::Done), SeqCst);
            report(context, end);
            cx.files.starvation.leave(context.views);
            if let Some(failure) = cx.close_all().filter(|_| !shared.options.count_errors) {
                let at = flowop(shared, thread_slot, failure.flowop.unwrap_or_else(|| cx.current()));
                shared.fail_at_close(Fault::of(FaultKind::Operation, at, failure));
            }
            // The last: a call that was still out at the end of the run is as late as it came back.
            thread_slot.ended.store(shared.clock.raw(), SeqCst);
            // Before it frees its memory, for which thousands of threads queue up.
            done_guard.finish();
        }
        Err(fault) => {
            shared.fail(fault);
        }
    }
}

/// Waits for the phase of the thread's process: when it began. As long as it waits it makes no files that others could wait for.
fn wait_for_phase(cx: &OpCx<'_>, context: &ProcessContext<'_>, thread_slot: &ThreadSlot) -> Option<u64> {
    let (phases, process) = (&context.shared.phases, thread_slot.process);
    if phases.is_first(process) {
        return Some(cx.env.gate.opened());
    }
    cx.files.starvation.leave(context.views);
    let began = phases.wait(process);
    cx.files.starvation.enter(context.views);
    began.ok()
}

/// A thread that the controller counts on: whatever becomes of it, even a panic, it has come to the gate and it is done.
struct DoneGuard<'a> {
    shared: &'a Shared,
    thread_slot: &'a ThreadSlot,
    ready: bool,
    is_finished: bool,
}

impl DoneGuard<'_> {
    /// The thread has come back from its last call.
    fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) && !self.thread_slot.done.swap(true, SeqCst) {
            let now = self.shared.clock.raw();
            // What ends with the run begins nothing.
            if now <= self.shared.gate.deadline() {
                self.shared.phases.leave(self.thread_slot.process, now);
            }
            self.shared.notify(|news| news.done += 1);
        }
    }
}

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Before anybody hears that it is done; what it was, whoever catches the panic says.
            self.shared.panicked.store(true, SeqCst);
        }
        if !self.ready {
            self.shared.gate.count_ready();
        }
        self.finish();
    }
}

/// A thread that could not be started, or whose leader has failed: counted as ready and as done, unless it was before.
pub(super) fn never_ran(shared: &Shared, thread_slot: &ThreadSlot) {
    if !thread_slot.done.swap(true, SeqCst) {
        shared.gate.count_ready();
        shared.notify(|news| news.done += 1);
    }
}

/// Whether the thread ends by itself, not with the run or as the end of it: what it has out comes to its end first.
fn is_its_own(context: &ProcessContext<'_>, end: &ThreadEnd) -> bool {
    match end {
        ThreadEnd::Over | ThreadEnd::Fault(_) => false,
        ThreadEnd::Done => true,
        ThreadEnd::Finished => ends_alone(context),
    }
}

/// Whether a count that is reached ends the thread, not the run.
fn ends_alone(context: &ProcessContext<'_>) -> bool {
    context.shared.plan.mode == QuitMode::AllDone && !context.process.dialect.semantics().finish_ends_run
}

/// What the thread's end means for the run.
fn report(context: &ProcessContext<'_>, end: ThreadEnd) {
    let shared = context.shared;
    let mode = shared.plan.mode;
    match end {
        ThreadEnd::Over => {}
        ThreadEnd::Done if mode == QuitMode::FirstDone => shared.finish(|news| news.first_done = true),
        ThreadEnd::Done => {}
        ThreadEnd::Finished if ends_alone(context) => {}
        ThreadEnd::Finished => shared.finish(|news| news.finished = true),
        ThreadEnd::Fault(fault) => shared.fail(fault),
    }
}

fn prepare<'a>(
    context: &'a ProcessContext<'_>,
    thread_slot: &'a ThreadSlot,
    starvation: Starvation,
) -> Result<ReadyThread<'a>, Fault> {
    let shared: &'a Shared = context.shared;
    let thread: &'a Thread = &context.process.threads[thread_slot.thread];
    let stats: &'a ThreadStats = &thread_slot.stats;
    if let Some(level) = thread.ioprio {
        // Without leave the priority stays; the run is the same otherwise.
        let _ = proc::io_priority(level);
    }
    let index = thread_slot_index(shared, thread_slot);
    if let Some(processor) = shared.processor_of(index) {
        proc::pin(processor).map_err(|e| {
            let what = format!("a thread `{}` can't be bound to processor {processor}: {e}", thread.name);
            Fault::plain(FaultKind::Setup, what, "leave `--pin` out")
        })?;
    }
    let identity =
        [thread_slot.process as u64, thread_slot.instance as u64, thread_slot.thread as u64, thread_slot.number as u64];
    let rng = random::stream(shared.options.seed, &identity);
    let seed = random::mix(shared.options.seed, index as u64);
    let effects = &thread.effects;
    let stamper = Stamper::new(shared.options.seed, index as u64);
    let buffer = IoBuffer::new(thread.memsize, effects.buffer, effects.direct, stamper, seed).map_err(|e| {
        Fault::plain(
            FaultKind::Setup,
            format!("no memory for the I/O buffer of thread `{}`: {e}", thread.name),
            "make `memsize` smaller, or start fewer threads",
        )
    })?;
    let at = At {
        ordinal: thread_slot.instance * thread.instances as usize + thread_slot.number,
        semaphores: &shared.semaphores,
        latches: &shared.latches,
        peers: context.peers,
        seed,
    };
    let is_io = |local: usize| shared.plan.flowops[thread.first + local].class.is_io();
    let steps = thread.steps.iter().map(|step| instantiate(step, &at, stats, &is_io)).collect();
    let aio = effects.aio.map(|aio| outstanding(context, thread_slot, aio, index, !seed)).transpose()?;
    let env = RunEnv {
        engine: shared.options.engine,
        clock: shared.clock,
        gate: &shared.gate,
        events: &shared.events,
        messages: shared.options.messages.as_ref(),
    };
    let files = ThreadFiles::new(context.views, context.dirs, starvation);
    let slots = Slots::new(effects.max_fd, context.views.len()).with_parts(firsts(context.views));
    let stream = shared.options.stream.map(|wanted| Box::new(Stream::new(wanted, shapes(shared, thread))));
    let cx = OpCx::new(env, files, ThreadIo::new(slots, buffer, aio), rng, Account::new(stats, stream));
    Ok((cx, steps, thread.pace.map(|pace| Timetable::new(pace, seed, shared.spare_cpus))))
}

/// The first part of each set, where any has several; nothing otherwise.
fn firsts(views: &[View]) -> Vec<usize> {
    if views.iter().all(|view| view.parts == 1) {
        return Vec::new();
    }
    views.iter().map(|view| view.first).collect()
}

/// What a thread has out that does asynchronous I/O.
fn outstanding(
    context: &ProcessContext<'_>,
    thread_slot: &ThreadSlot,
    aio: Aio,
    index: usize,
    seed: u64,
) -> Result<Outstanding, Fault> {
    let options = &context.shared.options;
    let thread = &context.process.threads[thread_slot.thread];
    let non_blocking = |step: &plan::PlanStep| !matches!(step, plan::PlanStep::Op { op, .. } if !op.non_blocking());
    let how = match (context.pool, options.asynchronous) {
        (Some(pool), _) => AioMode::Pool(pool),
        (None, Asynchronous::AtOnce) => AioMode::AtOnce,
        (None, _) => AioMode::Ring { alone: thread.pace.is_none() && thread.steps.iter().all(non_blocking) },
    };
    let stamper = Stamper::new(!options.seed, index as u64);
    Outstanding::new(aio, how, options.engine, stamper, seed, Arc::clone(&thread_slot.in_flight)).map_err(|e| {
        Fault::plain(
            FaultKind::Setup,
            format!("thread `{}` can't be made ready for asynchronous I/O: {e}", thread.name),
            "make `iodepth` or `iosize` smaller, start fewer threads, or do without io_uring (`--engine posix`)",
        )
    })
}

/// What the thread's stream holds of each of its flowops.
fn shapes(shared: &Shared, thread: &Thread) -> Vec<StreamShape> {
    let flowops = &shared.plan.flowops[thread.first..thread.first + thread.count];
    flowops
        .iter()
        .map(|f| match (f.class.is_io(), f.way) {
            (false, _) => StreamShape::Absent,
            (true, Way::None) => StreamShape::File,
            (true, _) => StreamShape::Data,
        })
        .collect()
}

fn thread_slot_index(shared: &Shared, thread_slot: &ThreadSlot) -> usize {
    let each: usize = shared.plan.processes[thread_slot.process].threads.iter().map(|t| t.instances as usize).sum();
    let before: usize = shared.plan.processes[thread_slot.process].threads[..thread_slot.thread]
        .iter()
        .map(|t| t.instances as usize)
        .sum();
    shared.first_thread_slot[thread_slot.process] + thread_slot.instance * each + before + thread_slot.number
}

fn instantiate<'r>(
    step: &'r plan::PlanStep,
    at: &At<'_>,
    stats: &'r ThreadStats,
    is_io: &dyn Fn(usize) -> bool,
) -> ThreadStep<'r> {
    match step {
        plan::PlanStep::Op { local, iters, op } => {
            let (local, step) = (*local, op.instantiate(at));
            let doing = Doing { local: local as u32, cell: stats.cell(local), io: is_io(local), step };
            if matches!(iters, Quantity::Const(1)) {
                ThreadStep::Once(doing)
            } else {
                ThreadStep::Many(doing, iters.clone())
            }
        }
        plan::PlanStep::Enter { iters, leave } => ThreadStep::Enter { iters: iters.clone(), leave: *leave },
        plan::PlanStep::Leave { enter } => ThreadStep::Leave { enter: *enter },
        plan::PlanStep::Choose { upto, starts, end, shuffled } => ThreadStep::Choose {
            upto: upto.clone(),
            starts: starts.clone(),
            end: *end,
            lap: shuffled.then(Shuffle::new),
        },
        plan::PlanStep::Jump(to) => ThreadStep::Jump(*to),
    }
}

/// The loop. Every step that does something looks at the deadline itself; so does the end of each iteration, for programs whose
/// steps all do nothing.
///
/// With a timetable each iteration begins at its time, or as soon after it as the iteration before has ended.
#[inline(never)]
fn iterate<'r>(
    steps: &mut [ThreadStep<'r>],
    cx: &mut OpCx<'r>,
    mut table: Option<&mut Timetable>,
    thread_slot: &ThreadSlot,
    shared: &Shared,
) -> ThreadEnd {
    // Arrivals left of each composite that is being done, by the place of its `Enter`.
    let mut left = vec![0_u64; steps.len()];
    let mut pc = 0;
    let mut intended = 0;
    if let Some(table) = &mut table {
        let Some(tick) = table.begin(cx, &thread_slot.arrivals) else { return ThreadEnd::Over };
        intended = tick;
    }
    loop {
        if table.is_none() {
            let (at, outcome) = iterate_fast(steps, pc, cx, &thread_slot.at, &shared.gate);
            pc = at;
            if let Err(stop) = outcome {
                if let Some(end) = ended(stop, cx, thread_slot, shared) {
                    return end;
                }
                pc += 1;
                continue;
            }
        }
        let Some(step) = steps.get_mut(pc) else {
            if shared.gate.is_stopped() {
                return ThreadEnd::Over;
            }
            if let Some(table) = &mut table {
                Timetable::end(&thread_slot.arrivals, intended, cx);
                let Some(tick) = table.begin(cx, &thread_slot.arrivals) else { return ThreadEnd::Over };
                intended = tick;
            }
            pc = 0;
            continue;
        };
        let (doing, times) = match step {
            ThreadStep::Once(doing) => (doing, 1),
            ThreadStep::Many(doing, iters) => (doing, iters.draw(&mut cx.rng)),
            ThreadStep::Enter { iters, leave } => {
                left[pc] = iters.draw(&mut cx.rng);
                pc = if left[pc] == 0 { *leave + 1 } else { pc + 1 };
                continue;
            }
            ThreadStep::Leave { enter } => {
                left[*enter] -= 1;
                if shared.gate.is_stopped() {
                    return ThreadEnd::Over;
                }
                pc = if left[*enter] > 0 { *enter + 1 } else { pc + 1 };
                continue;
            }
            ThreadStep::Choose { upto, starts, end, lap } => {
                pc = choose(&mut cx.rng, upto, starts, *end, lap.as_mut());
                continue;
            }
            ThreadStep::Jump(to) => {
                pc = *to;
                continue;
            }
        };
        if table.is_some() {
            cx.set_intended_start(if doing.io { intended } else { 0 });
        }
        for i in 0..times {
            // Steps that do nothing and look at no clock end with the run, too.
            if i % LOOK_EVERY == LOOK_EVERY - 1 && shared.gate.is_stopped() {
                return ThreadEnd::Over;
            }
            let outcome = doing.run(cx, &thread_slot.at);
            if let Err(stop) = outcome
                && let Some(end) = ended(stop, cx, thread_slot, shared)
            {
                return end;
            }
        }
        pc += 1;
    }
}

/// Steps that are done once, one after another, iteration after iteration: what most programs are, and nothing more than they need.
/// Returns at a step of another kind, at one that did not end well, and when the run has stopped: the place, and what came of
/// the step there.
#[inline(never)]
fn iterate_fast<'r>(
    steps: &mut [ThreadStep<'r>],
    pc: usize,
    cx: &mut OpCx<'r>,
    at: &AtomicU32,
    gate: &Gate,
) -> (usize, Result<(), Stop>) {
    if let Some(left) = iteration_fast(steps, pc, cx, at) {
        return left;
    }
    while !gate.is_stopped() {
        if let Some(left) = iteration_fast(steps, 0, cx, at) {
            return left;
        }
    }
    (steps.len(), Ok(()))
}

/// The steps from one on to the last; where that was left, and why, if it was.
#[inline(always)]
#[expect(clippy::inline_always, reason = "with a constant 0 for `pc` the compiler drops the skip, twice in a round")]
fn iteration_fast<'r>(
    steps: &mut [ThreadStep<'r>],
    mut pc: usize,
    cx: &mut OpCx<'r>,
    at: &AtomicU32,
) -> Option<(usize, Result<(), Stop>)> {
    for step in steps.iter_mut().skip(pc) {
        let ThreadStep::Once(doing) = step else { return Some((pc, Ok(()))) };
        let outcome = doing.run(cx, at);
        if outcome.is_err() {
            return Some((pc, outcome));
        }
        pc += 1;
    }
    None
}

impl<'r> Doing<'r> {
    #[inline]
    fn run(&mut self, cx: &mut OpCx<'r>, at: &AtomicU32) -> Result<(), Stop> {
        cx.switch_to(self.cell);
        at.store(self.local, Relaxed);
        self.step.run(cx)
    }
}

fn choose(rng: &mut Rng, upto: &[f64], starts: &[usize], end: usize, lap: Option<&mut Shuffle>) -> usize {
    let sum = upto.last().copied().unwrap_or(0.0);
    let drawn = match lap {
        Some(lap) if sum >= 1.0 => lap.draw(rng, sum as u64) as f64,
        _ => random::unit(rng) * sum,
    };
    let i = upto.partition_point(|w| *w <= drawn);
    starts.get(i).copied().unwrap_or(end)
}

fn flowop(shared: &Shared, thread_slot: &ThreadSlot, local: usize) -> usize {
    shared.plan.processes[thread_slot.process].threads[thread_slot.thread].first + local
}

/// What the end of an operation means for its thread; `None`: it goes on.
#[cold]
fn ended(stop: Stop, cx: &mut OpCx<'_>, thread_slot: &ThreadSlot, shared: &Shared) -> Option<ThreadEnd> {
    let current = cx.current();
    let flowop = |failure: &OpFailure| flowop(shared, thread_slot, failure.flowop.unwrap_or(current));
    Some(match stop.reason() {
        StopReason::Over => ThreadEnd::Over,
        StopReason::Exhausted => ThreadEnd::Done,
        StopReason::Finished => ThreadEnd::Finished,
        StopReason::Failed(_) if shared.options.count_errors && cx.skip_after_error() => return None,
        StopReason::Failed(failure) => ThreadEnd::Fault(Fault::of(FaultKind::Operation, flowop(&failure), failure)),
        StopReason::Refused(failure) => ThreadEnd::Fault(Fault::of(FaultKind::Foreign, flowop(&failure), failure)),
        StopReason::Stuck(failure) => ThreadEnd::Fault(Fault::of(FaultKind::Stuck, flowop(&failure), failure)),
    })
}
