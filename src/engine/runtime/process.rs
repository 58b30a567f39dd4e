//! The leader thread of one process instance: its descriptor table, its directories, its threads.

use super::shared::{self, Fault, FaultKind, Shared, ThreadSlot};
use super::worker;
use crate::disk::dirs::Dirs;
use crate::exec::{AioPool, View};
use crate::flowop::Peer;
use crate::io_engine::Asynchronous;
use crate::plan::{FlowopInfo, Process};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use wml_language::spec::IoDirection;
use wml_os::{fd, limits, proc};

/// Stack size of a thread, in bytes. Only touched pages take memory.
pub(super) const STACK: usize = 256 << 10;

/// Number of descriptors that directories leave free for slots, and for files that libraries may open.
const RESERVE: u64 = 512;

/// The highest of the standard descriptors (input, output and error), which stay in every table.
const STANDARD: i32 = 2;

/// The state that the threads of one process instance share.
pub(super) struct ProcessContext<'a> {
    pub(super) shared: &'a Shared,
    pub(super) process: &'a Process,
    /// The file sets, indexed by the number that flowops use.
    pub(super) views: &'a [View],
    pub(super) dirs: &'a [Option<Dirs>],
    pub(super) peers: &'a Arc<[Peer]>,
    /// The workers of asynchronous operations, if a thread pool executes them.
    pub(super) pool: Option<&'a AioPool>,
}

/// Runs one process instance from its start to its end.
pub(super) fn process_main(shared: &Shared, p: usize, instance: usize) {
    let thread_slots = shared.thread_slots_of(p, instance);
    let process = &shared.plan.processes[p];
    let fault = match catch_unwind(AssertUnwindSafe(|| set_up_and_run(shared, process, instance, thread_slots))) {
        Ok(done) => done.err(),
        Err(payload) => {
            let who = format!("the leader of process `{}` {}", process.name, instance + 1);
            Some(shared::panicked(&who, None, payload.as_ref()))
        }
    };
    if let Some(fault) = fault {
        shared.fail(fault);
        // The controller waits until every thread is ready or is known not to arrive.
        thread_slots.iter().for_each(|thread_slot| worker::never_ran(shared, thread_slot));
    }
}

/// Prepares the process, starts its threads, and waits until all of them have ended.
fn set_up_and_run(
    shared: &Shared,
    process: &Process,
    instance: usize,
    thread_slots: &[ThreadSlot],
) -> Result<(), Fault> {
    let real = shared.options.engine.real();
    if real {
        shared.note_table(proc::own_table(STANDARD));
    }
    if process.nice != 0 {
        proc::nice(process.nice).map_err(|e| {
            setup(
                format!("the niceness of process `{}` can't be changed by {}: {e}", process.name, process.nice),
                "run as root, or omit `nice=`",
            )
        })?;
    }
    let views = views_of(shared, process, instance);
    let dirs = open_dirs(process, &views, real)?;
    let asynchronous = process.threads.iter().any(|t| t.effects.aio.is_some());
    let pool = if asynchronous && shared.options.asynchronous == Asynchronous::Pool {
        let pool = AioPool::start(shared.options.engine).map_err(|e| {
            setup(format!("the thread pool for asynchronous I/O can't be started: {e}"), "raise the limit on threads")
        })?;
        Some(pool)
    } else {
        None
    };
    let peers: Arc<[Peer]> = if process.threads.iter().any(|t| t.effects.totals) {
        thread_slots
            .iter()
            .map(|thread_slot| Peer {
                stats: Arc::clone(&thread_slot.stats),
                io: io_flowops(shared, process, thread_slot),
            })
            .collect()
    } else {
        Arc::default()
    };
    let context = ProcessContext { shared, process, views: &views, dirs: &dirs, peers: &peers, pool: pool.as_ref() };
    std::thread::scope(|scope| {
        // The leader itself runs the first thread.
        for thread_slot in &thread_slots[1..] {
            let context = &context;
            let name = shared::kernel_name(&process.threads[thread_slot.thread].name);
            let spawned = std::thread::Builder::new()
                .name(name)
                .stack_size(STACK)
                .spawn_scoped(scope, move || worker::run(context, thread_slot));
            if let Err(e) = spawned {
                shared.fail(setup(
                    format!("a thread of process `{}` can't be started: {e}", process.name),
                    "raise the limits on threads (`ulimit -u`, the control group's `pids.max`), or start fewer",
                ));
                worker::never_ran(shared, thread_slot);
            }
        }
        worker::run(&context, &thread_slots[0]);
    });
    drop(pool);
    // Close explicitly, before the leader ends: the kernel frees a descriptor table late, and an unmount would find the
    // file system busy.
    dirs.iter().flatten().for_each(Dirs::close_all);
    Ok(())
}

/// Returns a fault of the preparation.
fn setup(what: String, help: &str) -> Fault {
    Fault::plain(FaultKind::Setup, what, help)
}

/// Returns the file sets in the view of a process instance: where each instance has a separate set, its set replaces
/// the first.
fn views_of<'a>(shared: &'a Shared, process: &Process, instance: usize) -> Cow<'a, [View]> {
    let plan = &shared.plan;
    let mut own = process.sets();
    own.retain(|set| plan.set_of(*set, instance) != *set);
    if own.is_empty() && shared.phases.is_one() {
        return Cow::Borrowed(&shared.views);
    }
    let mut views = shared.views.clone();
    for named in own {
        views[named] = View { first: named, ..shared.views[plan.set_of(named, instance)].clone() };
    }
    if !shared.phases.is_one() {
        // A thread that makes files in another phase makes none in this one.
        let planned = shared::planned(plan, Some(process.phase));
        views.iter_mut().zip(planned).for_each(|(view, planned)| view.planned = planned);
    }
    Cow::Owned(views)
}

/// Opens the root directories of the sets that the process uses.
fn open_dirs(process: &Process, views: &[View], real: bool) -> Result<Vec<Option<Dirs>>, Fault> {
    let mut dirs: Vec<Option<Dirs>> = views.iter().map(|_| None).collect();
    if !real {
        return Ok(dirs);
    }
    let used = process.sets();
    let sets: Vec<_> = used.iter().map(|i| Arc::clone(&views[*i].set)).collect();
    let others = process.thread_descriptors() + RESERVE;
    let budget = limits::descriptors().saturating_sub(others);
    let opened = Dirs::open_all(&sets, budget).map_err(|e| setup(e.to_string(), &e.help().unwrap_or_default()))?;
    if let Some(first) = opened.first() {
        let of_dirs: u64 = opened.iter().filter(|dirs| dirs.is_shared()).map(|dirs| dirs.set().tree.n_dirs()).sum();
        fd::make_room(first.root(), others + of_dirs);
    }
    for (i, own) in used.into_iter().zip(opened) {
        dirs[i] = Some(own);
    }
    Ok(dirs)
}

/// Returns the flowops of a thread that read or write data, by their indices in the thread.
fn io_flowops(shared: &Shared, process: &Process, thread_slot: &ThreadSlot) -> Arc<[usize]> {
    let thread = &process.threads[thread_slot.thread];
    let flowops: &[FlowopInfo] = &shared.plan.flowops[thread.first..thread.first + thread.count];
    flowops.iter().enumerate().filter(|(_, f)| f.direction != IoDirection::None).map(|(i, _)| i).collect()
}
