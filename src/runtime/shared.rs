//! What all threads of a run share, and how they tell what became of them.

use super::Options;
use super::pace::Arrivals;
use super::phases::Phases;
use crate::disk::Fileset;
use crate::exec::trace::Stream;
use crate::exec::{Makers, OpFailure, View, maker};
use crate::flowop::SemPair;
use crate::os::{Clock, limits};
use crate::plan::{self, Plan, Process, Thread};
use crate::stats::recorder::ThreadStats;
use crate::sync::{EventPool, Gate, Latch, Notifier, Semaphore};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// What went wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// In which way.
    pub kind: FaultKind,
    /// Process, thread and flowop, by their numbers in the plan, if it was a flowop.
    pub flowop: Option<usize>,
    /// What, in words.
    pub what: String,
    /// The file.
    pub path: Option<String>,
    /// The error number.
    pub errno: Option<i32>,
    /// What to do.
    pub help: String,
}

/// Kinds of faults: they decide the state of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A thread could not get ready.
    Setup,
    /// An operation failed.
    Operation,
    /// An operation met something that is not its file set's.
    Foreign,
    /// Every thread that could go on waits for another.
    Stuck,
    /// A file system would have been filled.
    LowSpace,
    /// A thread of the program met a mistake of the program.
    Panic,
}

impl Fault {
    /// A fault of no flowop.
    pub fn plain(kind: FaultKind, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { kind, flowop: None, what: what.into(), path: None, errno: None, help: help.into() }
    }

    pub(super) fn of(kind: FaultKind, flowop: usize, failure: OpFailure) -> Self {
        let OpFailure { what, path, errno, help, .. } = failure;
        Self { kind, flowop: Some(flowop), what, path, errno, help }
    }
}

/// One runtime thread, as others see it.
#[derive(Debug)]
pub(super) struct ThreadSlot {
    pub(super) process: usize,
    pub(super) thread: usize,
    /// Which process instance.
    pub(super) instance: usize,
    /// Which thread of it.
    pub(super) number: usize,
    pub(super) stats: Arc<ThreadStats>,
    /// The flowop that it runs, by its place in the thread; written as it goes, for those who ask where it hangs.
    pub(super) at: AtomicU32,
    pub(super) tid: AtomicI32,
    pub(super) done: AtomicBool,
    /// It ended because no file was left for the flowop that it was at.
    pub(super) exhausted: AtomicBool,
    /// Its iterations, in an open loop.
    pub(super) arrivals: Arrivals,
    /// The tick at which it ended: nothing of it was out any more, and nothing open.
    pub(super) ended: AtomicU64,
    /// Asynchronous operations that it has out while it waits for the last of them.
    pub(super) in_flight: Arc<AtomicU32>,
    /// What it did, once it has ended and if that is wanted.
    pub(super) stream: Mutex<Option<Box<Stream>>>,
}

impl ThreadSlot {
    /// The thread, as messages name it.
    pub(super) fn title(&self, plan: &Plan) -> String {
        let process = &plan.processes[self.process];
        let (thread, instance, number) = (&process.threads[self.thread].name, self.instance + 1, self.number + 1);
        format!("thread `{thread}` {number} of process `{}` {instance}", process.name)
    }
}

/// What the kernel calls a thread of that name: it takes 15 bytes, none of them zero.
pub(super) fn kernel_name(name: &str) -> String {
    name.chars().filter(|c| *c != '\0').take(15).collect()
}

/// A panic, as a fault of the run.
pub(super) fn panicked(who: &str, at: Option<usize>, payload: &(dyn std::any::Any + Send)) -> Fault {
    let said = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let help = "this is a bug in wmlrun: please report it with the script";
    Fault { flowop: at, ..Fault::plain(FaultKind::Panic, format!("{who} panicked: {said}"), help) }
}

/// What threads tell the controller.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Threads that have ended.
    pub(super) done: usize,
    /// The first thread that had nothing left to do.
    pub(super) first_done: bool,
    /// A `finishoncount` ended the run.
    pub(super) finished: bool,
    /// What went wrong first.
    pub(super) fault: Option<Fault>,
    /// The tick of the first of these.
    pub(super) tick: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) options: Options,
    pub(super) clock: &'static Clock,
    pub(super) gate: Gate,
    pub(super) events: EventPool,
    pub(super) views: Vec<View>,
    /// By flowop, then by instance.
    pub(super) semaphores: Vec<Vec<Arc<SemPair>>>,
    pub(super) latches: Vec<Vec<Arc<Latch>>>,
    pub(super) thread_slots: Vec<ThreadSlot>,
    pub(super) phases: Phases,
    /// There are more processors than threads. Decided before any thread is bound to one, and sees no other.
    pub(super) spare_cpus: bool,
    /// The processors that threads are bound to, in turn; none if they are not. Looked up before any thread is bound to one.
    pub(super) processors: Option<Vec<usize>>,
    /// Where the thread slots of each process begin.
    pub(super) first_thread_slot: Vec<usize>,
    news: Mutex<News>,
    /// The first failure of a thread that was closing its files, after its last operation.
    closing: Mutex<Option<Fault>>,
    notifier: Notifier,
    /// The end of all threads has been marked in a trace.
    pub(super) over: AtomicBool,
    /// How processes got their descriptor tables: the worst of all.
    pub(super) tables: AtomicU8,
    /// A thread has panicked: the run has failed, whatever else ended it.
    pub(super) panicked: AtomicBool,
    /// Since when the guard waits to hear how much room there is, in ticks; 0: it does not.
    pub(super) asked_for_room: AtomicU64,
}

impl Shared {
    pub(super) fn new(plan: Arc<Plan>, sets: &[Arc<Fileset>], options: Options) -> Result<Self, Fault> {
        let n = plan.flowops.len();
        let mut semaphores: Vec<Vec<Arc<SemPair>>> = vec![Vec::new(); n];
        let mut latches: Vec<Vec<Arc<Latch>>> = vec![Vec::new(); n];
        for (_, thread) in plan.threads() {
            for step in &thread.steps {
                let crate::plan::PlanStep::Op { local, op, .. } = step else { continue };
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
        Ok(Self {
            phases: Phases::new(&plan),
            views: views(&plan, sets),
            events: EventPool::new(plan.event_rate),
            clock: Clock::get(),
            gate: Gate::new(),
            semaphores,
            latches,
            processors: options.pin.then(limits::allowed_processors),
            spare_cpus: thread_slots.len() < limits::processors(),
            thread_slots,
            first_thread_slot,
            news: Mutex::new(News::default()),
            closing: Mutex::new(None),
            notifier: Notifier::default(),
            over: AtomicBool::new(false),
            tables: AtomicU8::new(0),
            panicked: AtomicBool::new(false),
            asked_for_room: AtomicU64::new(0),
            plan,
            options,
        })
    }

    /// The thread slots of one process instance.
    pub(super) fn thread_slots_of(&self, process: usize, instance: usize) -> &[ThreadSlot] {
        let each: usize = self.plan.processes[process].threads.iter().map(|t| t.instances as usize).sum();
        let first = self.first_thread_slot[process] + instance * each;
        &self.thread_slots[first..first + each]
    }

    /// The processor that a thread is to be bound to.
    pub(super) fn processor_of(&self, thread_slot: usize) -> Option<usize> {
        let processors = self.processors.as_ref().filter(|all| !all.is_empty())?;
        Some(processors[thread_slot % processors.len()])
    }

    /// Ends the run at `tick` and wakes whoever waits for anything.
    pub(super) fn stop(&self, tick: u64) {
        self.gate.stop(tick);
        self.events.close();
        self.semaphores.iter().flatten().for_each(|pair| {
            pair.low.close();
            pair.high.close();
        });
        self.latches.iter().flatten().for_each(|latch| latch.close());
        self.phases.close();
        self.views.iter().for_each(|view| view.set.state.wake_all());
    }

    /// Tells the controller something.
    pub(super) fn notify(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.news.lock());
        self.notifier.notify();
    }

    /// What there is to know, after at most `limit`, or when a signal comes.
    pub(super) fn hear<T>(&self, limit: Duration, look: impl Fn(&News) -> Option<T>) -> Option<T> {
        let generation = self.notifier.generation();
        let found = look(&self.news.lock());
        if found.is_some() || limit.is_zero() {
            return found;
        }
        self.notifier.wait(generation, limit);
        look(&self.news.lock())
    }

    /// Notes what went wrong, if it is the first, and ends the run. An operation that goes wrong after another thread has ended
    /// the run fails nothing, even if the controller has not heard of that end yet.
    pub(super) fn fail(&self, fault: Fault) {
        let tick = self.clock.raw();
        self.notify(|news| {
            let counts = news.tick.is_none() || matches!(fault.kind, FaultKind::Setup | FaultKind::Panic);
            if news.fault.is_none() && counts {
                news.fault = Some(fault);
                news.tick.get_or_insert(tick);
            }
        });
        self.stop(tick);
    }

    /// Notes what went wrong when a thread closed its files. It ends no run, which may long be over.
    pub(super) fn fail_at_close(&self, fault: Fault) {
        self.closing.lock().get_or_insert(fault);
    }

    /// The first of these.
    pub(super) fn closing_fault(&self) -> Option<Fault> {
        self.closing.lock().clone()
    }

    /// Notes that a thread's end is the end of the run.
    pub(super) fn finish(&self, change: impl FnOnce(&mut News)) {
        let tick = self.clock.raw();
        self.notify(|news| {
            change(news);
            news.tick.get_or_insert(tick);
        });
        self.stop(tick);
    }

    pub(super) fn note_table(&self, table: crate::os::proc::DescriptorTable) {
        self.tables.fetch_max(table as u8, SeqCst);
    }
}

fn thread_slots(plan: &Plan) -> Result<(Vec<ThreadSlot>, Vec<usize>), Fault> {
    let (mut thread_slots, mut first) = (Vec::new(), Vec::new());
    let threads_of = |process: &Process, thread: &Thread| process.instances as usize * thread.instances as usize;
    let flowops_of_all = plan.threads().map(|(process, thread)| threads_of(process, thread) * thread.count).sum();
    for (p, process) in plan.processes.iter().enumerate() {
        first.push(thread_slots.len());
        let counters = |thread: &Thread| {
            let threads = threads_of(process, thread);
            let stats = ThreadStats::for_threads(threads, thread.count, flowops_of_all).map_err(|e| {
                let what = format!("no memory for the counters of {threads} threads `{}`: {e}", thread.name);
                Fault::plain(FaultKind::Setup, what, "start fewer threads")
            })?;
            Ok(stats.into_iter())
        };
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
                        exhausted: AtomicBool::new(false),
                        arrivals: Arrivals::default(),
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

/// The file sets with the threads that make and remove their files.
fn views(plan: &Plan, sets: &[Arc<Fileset>]) -> Vec<View> {
    let planned = planned(plan, None);
    let makers: Vec<Makers> = sets.iter().map(|_| Makers::default()).collect();
    let mut users = vec![0_u64; sets.len()];
    let mut changed = vec![false; sets.len()];
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
        for set in &thread.effects.moves {
            on_sets(plan, *set, process, thread).for_each(|(set, _)| changed[set] = true);
        }
    }
    sets.iter()
        .zip(makers)
        .enumerate()
        .map(|(i, (set, makers))| {
            set.state.set_threads(users[i].max(1));
            // A set may have been used by an earlier run, in another way.
            if changed[i] {
                set.state.thaw();
            } else {
                set.state.freeze();
            }
            let first = i - set.spec.part as usize;
            let parts = if first == i { plan::parts_of(&plan.filesets, i).len() } else { 1 };
            View { set: Arc::clone(set), makers: Arc::new(makers), planned: planned[i], first, parts }
        })
        .collect()
}

/// The file sets that stand for the one that a thread's flowops name, each with the threads that work on it.
fn on_sets(plan: &Plan, named: usize, process: &Process, thread: &Thread) -> impl Iterator<Item = (usize, u32)> {
    let own = plan.filesets[named].instance.is_some();
    let (sets, each) = if own { (process.instances, 1) } else { (1, process.instances) };
    let threads = each.saturating_mul(thread.instances);
    (0..sets as usize).map(move |instance| (named + instance, threads))
}

/// Of each file set, the states that threads of a phase, or of any, bring about.
pub(super) fn planned(plan: &Plan, phase: Option<u32>) -> Vec<[bool; 4]> {
    let mut planned = vec![[false; 4]; plan.filesets.len()];
    let own =
        plan.threads().filter(|(process, _)| process.instances > 0 && phase.is_none_or(|own| own == process.phase));
    for (set, want, kind) in own.flat_map(|(_, thread)| &thread.effects.makes) {
        planned[*set][maker(*kind, *want)] = true;
    }
    (0..planned.len()).map(|set| planned[plan.named(set)]).collect()
}
