//! The state that all threads of a run share, and the reports of threads to the controller.
//!
//! Memory orderings: values that a thread updates for each operation (`at`, arrivals) are `Relaxed`, since no other
//! data depends on them. The flags of a thread's start and end are `SeqCst`. Required is only that `ended`, `exhausted`
//! and `panicked` are visible to a thread that sees `done`, which release and acquire would give; each is written once
//! per thread, so the stronger ordering costs no operation anything.

use super::iterations::IterationTallies;
use super::meeting::{Meeting, MeetingPoint};
use super::options::Options;
use super::pace::{Arrivals, SharedQueue};
use super::phases::Phases;
use crate::disk::Fileset;
use crate::exec::trace::Stream;
use crate::exec::{BUG, Makers, OpFailure, View, maker};
use crate::fileset::Redundancy;
use crate::fileset::content::DataSource;
use crate::flowop::SemPair;
use crate::plan::{self, Plan, PlanStep, Process, Thread};
use crate::stats::recorder::ThreadStats;
use crate::sync::{Gate, Gathering, Latch, Notifier, Semaphore};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use wml_os::{Clock, limits};

/// A failure of a run, and its origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    /// The index of the flowop in the plan, if a flowop caused it.
    pub flowop: Option<usize>,
    /// The message.
    pub what: String,
    /// The path of the file.
    pub path: Option<String>,
    /// The error number of the system call.
    pub errno: Option<i32>,
    pub help: String,
}

/// The kinds of faults, which determine the state of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A thread could not be prepared.
    Setup,
    /// An operation failed.
    Operation,
    /// An operation found an object that does not belong to its file set.
    Foreign,
    /// All threads that could continue wait for one another.
    Stuck,
    /// A file system was about to become full.
    LowSpace,
    /// A thread of the program panicked.
    Panic,
}

impl Fault {
    /// Returns a fault without a flowop.
    pub fn plain(kind: FaultKind, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { kind, flowop: None, what: what.into(), path: None, errno: None, help: help.into() }
    }

    pub(super) fn of(kind: FaultKind, flowop: usize, failure: OpFailure) -> Self {
        let OpFailure { what, path, errno, help, .. } = failure;
        Self { kind, flowop: Some(flowop), what, path, errno, help }
    }
}

/// The state of one thread that other threads can see.
#[derive(Debug)]
pub(super) struct ThreadSlot {
    pub(super) process: usize,
    pub(super) thread: usize,
    /// The number of the process instance.
    pub(super) instance: usize,
    /// The number of the thread in its definition.
    pub(super) number: usize,
    pub(super) stats: Arc<ThreadStats>,
    /// The index of the current flowop in the thread. Written before each operation, for reports about blocked threads.
    pub(super) at: AtomicU32,
    pub(super) tid: AtomicI32,
    pub(super) done: AtomicBool,
    /// Whether it waits for a file that another thread has to make or remove.
    pub(super) starves: Arc<AtomicBool>,
    /// Whether it ended because no file was left for the flowop at `at`.
    pub(super) exhausted: AtomicBool,
    /// The progress of its iterations, in an open loop.
    pub(super) arrivals: Arrivals,
    /// The queue of its definition, if the threads share one.
    pub(super) queue: Option<Arc<SharedQueue>>,
    /// The tick at which it ended, with no operation in flight and no file open.
    pub(super) ended: AtomicU64,
    /// The number of its asynchronous operations in flight, while it waits for the last of them: see
    /// [`awaited`](crate::exec::aio::awaited).
    pub(super) in_flight: Arc<AtomicU64>,
    /// The stream of its operations, once it has ended, if one is requested.
    pub(super) stream: Mutex<Option<Box<Stream>>>,
}

impl ThreadSlot {
    /// Returns the name of the thread for messages.
    pub(super) fn title(&self, plan: &Plan) -> String {
        let process = &plan.processes[self.process];
        let (thread, instance, number) = (&process.threads[self.thread].name, self.instance + 1, self.number + 1);
        format!("thread `{thread}` {number} of process `{}` {instance}", process.name)
    }
}

/// Returns the name of a thread for the kernel, which takes 15 bytes and no zero byte.
pub(super) fn kernel_name(name: &str) -> String {
    name.chars().filter(|c| *c != '\0').take(15).collect()
}

/// Returns a panic as a fault of the run.
pub(super) fn panicked(title: &str, at: Option<usize>, payload: &(dyn std::any::Any + Send)) -> Fault {
    let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    Fault { flowop: at, ..Fault::plain(FaultKind::Panic, format!("{title} panicked: {message}"), BUG) }
}

/// The reports of threads to the controller.
#[derive(Debug, Default)]
pub(super) struct ThreadReports {
    /// The number of threads that have ended.
    pub(super) done: usize,
    /// Whether a thread has nothing left to do, in the mode `firstdone`.
    pub(super) first_done: bool,
    /// Whether a `finishoncount` or `finishonbytes` ended the run.
    pub(super) finished: bool,
    /// The first fault.
    pub(super) fault: Option<Fault>,
    /// The tick of the first of these reports.
    pub(super) tick: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) options: Options,
    pub(super) clock: &'static Clock,
    pub(super) gate: Gate,
    pub(super) views: Vec<View>,
    /// By flowop, then by instance.
    pub(super) semaphores: Vec<Vec<Arc<SemPair>>>,
    pub(super) latches: Vec<Vec<Arc<Latch>>>,
    /// By the number of the composite with `group`.
    pub(super) groups: Vec<Gathering>,
    pub(super) thread_slots: Vec<ThreadSlot>,
    pub(super) phases: Phases,
    pub(super) iterations: IterationTallies,
    /// Whether there are more processors than threads. Determined before any thread is bound to a processor and sees no
    /// other.
    pub(super) spare_cpus: bool,
    /// The processors to which threads are bound, in round-robin order; `None` if they are not bound. Determined before
    /// any thread is bound.
    pub(super) processors: Option<Vec<usize>>,
    /// Index of the first thread slot of each process.
    pub(super) first_thread_slot: Vec<usize>,
    reports: Mutex<ThreadReports>,
    /// The first failure of a thread that closed its files after its last operation.
    closing: Mutex<Option<Fault>>,
    notifier: Notifier,
    /// Whether the end of all threads has been annotated in a trace.
    pub(super) over: AtomicBool,
    /// How processes got their descriptor tables: the worst case of all.
    pub(super) tables: AtomicU8,
    /// Whether a thread has panicked. The run has failed then, whatever else ended it.
    pub(super) panicked: AtomicBool,
    /// The tick at which the space watch started a query that has not returned; 0 when there is none.
    pub(super) space_query_since: AtomicU64,
}

impl Shared {
    pub(super) fn new(plan: Arc<Plan>, sets: &[Arc<Fileset>], options: Options) -> Result<Self, Fault> {
        let n = plan.flowops.len();
        let mut semaphores: Vec<Vec<Arc<SemPair>>> = vec![Vec::new(); n];
        let mut latches: Vec<Vec<Arc<Latch>>> = vec![Vec::new(); n];
        let mut groups: Vec<Gathering> = Vec::new();
        for (_, thread) in plan.threads() {
            for step in &thread.steps {
                if let PlanStep::Gather { group, .. } = step {
                    // Threads that a run leaves out have numbers too.
                    groups.resize_with(groups.len().max(group + 1), Gathering::default);
                }
                let PlanStep::Op { local, op, .. } = step else { continue };
                let (id, effects) = (thread.first + local, op.effects());
                if let Some(highwater) = effects.highwater {
                    let pair = || SemPair { low: Semaphore::new(0), high: Semaphore::new(highwater) };
                    semaphores[id] = (0..plan.instances(id)).map(|_| Arc::new(pair())).collect();
                }
                if effects.latch {
                    latches[id] = (0..plan.instances(id)).map(|_| Arc::new(Latch::default())).collect();
                }
            }
        }
        let (thread_slots, first_thread_slot) = thread_slots(&plan)?;
        let clock = Clock::get();
        Ok(Self {
            iterations: IterationTallies::new(&plan),
            views: views(&plan, sets, options.seed),
            phases: Phases::new(&plan, clock),
            clock,
            gate: Gate::new(),
            semaphores,
            latches,
            groups,
            processors: options.pin.then(limits::allowed_processors),
            spare_cpus: thread_slots.len() < limits::processors(),
            thread_slots,
            first_thread_slot,
            reports: Mutex::new(ThreadReports::default()),
            closing: Mutex::new(None),
            notifier: Notifier::default(),
            over: AtomicBool::new(false),
            tables: AtomicU8::new(0),
            panicked: AtomicBool::new(false),
            space_query_since: AtomicU64::new(0),
            plan,
            options,
        })
    }

    pub(super) fn thread_slots_of(&self, process: usize, instance: usize) -> &[ThreadSlot] {
        let each: usize = self.plan.processes[process].threads.iter().map(|t| t.instances as usize).sum();
        let first = self.first_thread_slot[process] + instance * each;
        &self.thread_slots[first..first + each]
    }

    /// Returns the processor to which a thread is to be bound. `None` when threads are not bound.
    pub(super) fn processor_of(&self, thread_slot: usize) -> Option<usize> {
        let processors = self.processors.as_ref().filter(|all| !all.is_empty())?;
        Some(processors[thread_slot % processors.len()])
    }

    /// Returns the gate with the deadline of a process's threads: that of their phase if it has a length, or of the run.
    pub(super) fn gate_of(&self, process: usize) -> &Gate {
        self.phases.gate_of(process).unwrap_or(&self.gate)
    }

    /// Sets the tick at which the run ends.
    pub(super) fn set_deadline(&self, tick: u64) {
        self.gate.set_deadline(tick);
        self.phases.set_run_end(tick);
    }

    /// Ends the run at `tick` and wakes all waiting threads. The other ranks do not wait for this one.
    pub(super) fn stop(&self, tick: u64) {
        self.gate.stop(tick);
        self.semaphores.iter().flatten().for_each(|pair| pair.close());
        self.latches.iter().flatten().for_each(|latch| latch.close());
        self.groups.iter().for_each(Gathering::close);
        self.phases.close(tick);
        self.iterations.close();
        self.options.meetings.iter().for_each(|place| place.leave_run());
        self.views.iter().for_each(|view| view.set.state.wake_all());
    }

    /// Ends the time of a phase at `tick`, and wakes its threads that wait. No other thread waits at its flowops: a plan
    /// in which threads of another phase post to them is refused.
    pub(super) fn end_phase(&self, number: u32, tick: u64) {
        self.phases.end(number, tick);
        for (id, flowop) in self.plan.flowops.iter().enumerate() {
            if self.plan.processes[flowop.process].phase == number {
                self.semaphores[id].iter().for_each(|pair| pair.close());
                self.latches[id].iter().for_each(|latch| latch.close());
            }
        }
        for (process, thread) in self.plan.threads() {
            for step in thread.steps.iter().filter(|_| process.phase == number) {
                if let PlanStep::Gather { group, .. } = step {
                    self.groups[*group].close();
                }
            }
        }
        self.views.iter().for_each(|view| view.set.state.wake_all());
    }

    /// Meets the other ranks at a point of the run. `None` when the run has stopped.
    pub(super) fn meet(&self, point: MeetingPoint, number: u64) -> Option<Meeting> {
        match &self.options.meetings {
            Some(place) => place.meet(point, number, &|| self.gate.is_stopped()),
            None => Some(Meeting { least: number, largest: number }),
        }
    }

    /// Reports to the other ranks that this one has nothing to do at a point of the run.
    pub(super) fn arrive(&self, point: MeetingPoint) {
        self.options.meetings.iter().for_each(|place| place.arrive(point, 0));
    }

    /// Begins a phase whose predecessor ended on this rank at `tick`: when it has ended on all ranks, and not before the
    /// start of the phase.
    pub(super) fn begin_phase(&self, number: u32, tick: u64) {
        let is_alone = self.options.meetings.is_none();
        if !is_alone && self.meet(MeetingPoint::Phase, u64::from(number)).is_none() {
            return;
        }
        let tick = if is_alone { tick } else { self.clock.raw() };
        let start = self.phases.earliest(number).map_or(0, |time| {
            self.gate.opened().saturating_add(self.clock.ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
        });
        if start > tick && self.gate.sleep_until(self.clock, start) {
            return;
        }
        self.phases.begin(number, tick.max(start));
    }

    /// Changes the event generator's rate, of which this rank may have a part in each phase.
    pub(super) fn set_event_rate(&self, rate: u64) {
        self.phases.set_event_rate(|phase| self.plan.event_share(phase).of(rate));
    }

    /// Changes the reports and notifies the controller.
    pub(super) fn notify(&self, change: impl FnOnce(&mut ThreadReports)) {
        change(&mut self.reports.lock());
        self.notifier.notify();
    }

    /// Waits until `find` finds a report, for at most `limit`, or until a signal arrives. Returns what it found.
    pub(super) fn wait_for<T>(&self, limit: Duration, find: impl Fn(&ThreadReports) -> Option<T>) -> Option<T> {
        let generation = self.notifier.generation();
        let found = find(&self.reports.lock());
        if found.is_some() || limit.is_zero() {
            return found;
        }
        self.notifier.wait(generation, limit);
        find(&self.reports.lock())
    }

    /// Reports a fault if it is the first, and ends the run. A failure of an operation after another thread has ended
    /// the run is ignored, even if the controller has not seen that end yet.
    pub(super) fn fail(&self, fault: Fault) {
        let tick = self.clock.raw();
        self.notify(|reports| {
            let counts = reports.tick.is_none() || matches!(fault.kind, FaultKind::Setup | FaultKind::Panic);
            if reports.fault.is_none() && counts {
                reports.fault = Some(fault);
                reports.tick.get_or_insert(tick);
            }
        });
        self.stop(tick);
    }

    /// Records a failure of a thread that closed its files. It does not end the run, which may be over.
    pub(super) fn fail_at_close(&self, fault: Fault) {
        self.closing.lock().get_or_insert(fault);
    }

    /// Returns the first of these failures.
    pub(super) fn closing_fault(&self) -> Option<Fault> {
        self.closing.lock().clone()
    }

    /// Reports that the end of a thread ends the run.
    pub(super) fn finish(&self, change: impl FnOnce(&mut ThreadReports)) {
        let tick = self.clock.raw();
        self.notify(|reports| {
            change(reports);
            reports.tick.get_or_insert(tick);
        });
        self.stop(tick);
    }

    /// Records how a process got its descriptor table.
    pub(super) fn note_table(&self, table: wml_os::proc::DescriptorTable) {
        self.tables.fetch_max(table as u8, SeqCst);
    }
}

/// Returns the thread slots of all threads, and the index of the first one of each process.
fn thread_slots(plan: &Plan) -> Result<(Vec<ThreadSlot>, Vec<usize>), Fault> {
    let (mut thread_slots, mut first) = (Vec::new(), Vec::new());
    let threads_of = |process: &Process, thread: &Thread| process.instances as usize * thread.instances as usize;
    let flowops_of_all = plan.threads().map(|(process, thread)| threads_of(process, thread) * thread.count).sum();
    for (p, process) in plan.processes.iter().enumerate() {
        first.push(thread_slots.len());
        let counters = |thread: &Thread| {
            let threads = threads_of(process, thread);
            let stats = ThreadStats::for_threads(threads, thread.count, flowops_of_all).map_err(|e| {
                let what = format!("allocating the counters of {threads} threads `{}` failed: {e}", thread.name);
                Fault::plain(FaultKind::Setup, what, "start fewer threads")
            })?;
            Ok(stats.into_iter())
        };
        let queue = |thread: &Thread| {
            let is_shared = thread.pace.is_some_and(|pace| pace.is_shared);
            is_shared.then(|| Arc::new(SharedQueue::new(threads_of(process, thread) as u64)))
        };
        let queues: Vec<Option<Arc<SharedQueue>>> = process.threads.iter().map(queue).collect();
        let mut counters = process.threads.iter().map(counters).collect::<Result<Vec<_>, Fault>>()?;
        for instance in 0..process.instances as usize {
            for (t, thread) in process.threads.iter().enumerate() {
                for (number, stats) in (0..thread.instances as usize).zip(&mut counters[t]) {
                    thread_slots.push(ThreadSlot {
                        process: p,
                        thread: t,
                        instance,
                        number,
                        stats: Arc::new(stats),
                        at: AtomicU32::new(0),
                        tid: AtomicI32::new(0),
                        done: AtomicBool::new(false),
                        starves: Arc::default(),
                        exhausted: AtomicBool::new(false),
                        arrivals: Arrivals::default(),
                        queue: queues[t].clone(),
                        ended: AtomicU64::new(0),
                        in_flight: Arc::default(),
                        stream: Mutex::new(None),
                    });
                }
            }
        }
    }
    Ok((thread_slots, first))
}

/// Returns the file sets with the numbers of threads that make and remove their files, and with the data of their
/// files.
fn views(plan: &Plan, sets: &[Arc<Fileset>], seed: u64) -> Vec<View> {
    let mut sources: Vec<DataSource> = Vec::new();
    let planned = planned(plan, None);
    let makers: Vec<Makers> = sets.iter().map(|_| Makers::default()).collect();
    let mut users = vec![0_u64; sets.len()];
    let mut changed = vec![false; sets.len()];
    let mut by_age = vec![false; sets.len()];
    for (process, thread) in plan.threads() {
        for set in &thread.effects.sets {
            for (set, threads) in on_sets(plan, *set, process, thread) {
                users[set] += u64::from(threads);
            }
        }
        for (set, want, kind) in &thread.effects.makes {
            for (set, threads) in on_sets(plan, *set, process, thread) {
                makers[set].live[maker(*kind, *want)].fetch_add(threads, SeqCst);
                changed[set] = true;
            }
        }
        for set in &thread.effects.by_age {
            on_sets(plan, *set, process, thread).for_each(|(set, _)| by_age[set] = true);
        }
        for set in &thread.effects.moves {
            on_sets(plan, *set, process, thread).for_each(|(set, _)| changed[set] = true);
        }
    }
    sets.iter()
        .zip(makers)
        .enumerate()
        .map(|(i, (set, makers))| {
            set.state.set_threads(users[i].max(1));
            if by_age[i] {
                set.state.keep_order();
            }
            // An earlier run may have used the set in another way.
            if changed[i] {
                set.state.thaw();
            } else {
                set.state.freeze();
            }
            let first = i - set.spec.part as usize;
            let parts = if first == i { plan::parts_of(&plan.filesets, i).len() } else { 1 };
            let data = data_source(&mut sources, set.spec.redundancy(), seed);
            View { set: Arc::clone(set), makers: Arc::new(makers), planned: planned[i], first, parts, data }
        })
        .collect()
}

/// Returns the source of the data of a file set: one that exists, or a new one.
fn data_source(sources: &mut Vec<DataSource>, redundancy: Redundancy, seed: u64) -> DataSource {
    if let Some(known) = sources.iter().find(|source| source.redundancy() == redundancy) {
        return known.clone();
    }
    let new = DataSource::new(redundancy, seed);
    sources.push(new.clone());
    new
}

/// Returns the file sets that a set named by a thread's flowops stands for, each with the number of threads that use
/// it.
fn on_sets(plan: &Plan, named: usize, process: &Process, thread: &Thread) -> impl Iterator<Item = (usize, u32)> {
    let own = plan.filesets[named].instance.is_some();
    let (sets, each) = if own { (process.instances, 1) } else { (1, process.instances) };
    let threads = each.saturating_mul(thread.instances);
    (0..sets as usize).map(move |instance| (named + instance, threads))
}

/// Returns, for each file set, the states that threads of a phase, or of any phase, bring about.
pub(super) fn planned(plan: &Plan, phase: Option<u32>) -> Vec<[bool; 4]> {
    let mut planned = vec![[false; 4]; plan.filesets.len()];
    let own =
        plan.threads().filter(|(process, _)| process.instances > 0 && phase.is_none_or(|own| own == process.phase));
    for (set, want, kind) in own.flat_map(|(_, thread)| &thread.effects.makes) {
        planned[*set][maker(*kind, *want)] = true;
    }
    (0..planned.len()).map(|set| planned[plan.named(set)]).collect()
}
