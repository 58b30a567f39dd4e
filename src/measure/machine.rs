//! What a run needs against what this process may have, before anything is made: memory, address space, threads, descriptors,
//! sizes of files.
//!
//! In: a plan and its file sets. Out: a refusal with both figures, and what to do.

use super::{Front, Status};
use crate::disk::Fileset;
use crate::os::limits;
use crate::plan::{self, Plan, Process};
use crate::util::count::count;
use crate::util::size;
use std::sync::Arc;

/// Address space of a thread's stack, with its guard and what the C library maps for it.
const THREAD_SPACE: u64 = 320 << 10;

/// Address space of the counters of a flowop in a thread.
const COUNTER_SPACE: u64 = 36 << 10;

/// Address space that must stay free for everything else.
const SPARE_SPACE: u64 = 64 << 20;

/// Threads besides those of the plan: those that make files or watch the run.
const HELPERS: u64 = 4;

/// The limit of open files that is asked for where it may be raised.
pub(crate) const MOST_DESCRIPTORS: u64 = 1 << 20;

/// Refuses a run that this process could not finish for want of memory, threads, descriptors or the size of a file.
pub(crate) fn check(plan: &Plan, sets: &[Arc<Fileset>], front: &mut dyn Front) -> Result<(), Status> {
    let refusals = [memory(plan, sets), address_space(plan, sets), threads(plan), file_size(sets)];
    let Some((what, help)) = refusals.into_iter().flatten().next() else { return Ok(()) };
    front.error(None, &what, Some(help));
    Err(Status::Refused)
}

/// The same for descriptors, of which an engine that makes no calls needs none. The limit is raised as far as it may be.
pub(crate) fn check_descriptors(plan: &Plan, front: &mut dyn Front) -> Result<(), Status> {
    let Some((what, help)) = descriptors(plan) else { return Ok(()) };
    front.error(None, &what, Some(help));
    Err(Status::Refused)
}

type Refusal = Option<(String, &'static str)>;

fn memory(plan: &Plan, sets: &[Arc<Fileset>]) -> Refusal {
    let needed = plan::totals(plan, sets).memory;
    let (_, free) = limits::memory();
    (free > 0 && needed > free).then(|| {
        let (needed, free) = (size::format(needed), size::format(free));
        let what = format!("the run needs {needed} of memory, and {free} can be had");
        (what, "make `memsize` smaller, start fewer threads, or raise the control group's memory limit")
    })
}

fn address_space(plan: &Plan, sets: &[Arc<Fileset>]) -> Refusal {
    let free = limits::address_space_left()?;
    let totals = plan::totals(plan, sets);
    let counters = plan
        .threads()
        .map(|(process, thread)| u64::from(process.instances) * u64::from(thread.instances) * thread.count as u64);
    let counters = counters.fold(0, u64::saturating_add).saturating_mul(COUNTER_SPACE);
    let threads = (totals.threads + HELPERS).saturating_mul(THREAD_SPACE);
    let needed = totals.memory.saturating_add(counters).saturating_add(threads).saturating_add(SPARE_SPACE);
    (needed > free).then(|| {
        let (needed, free) = (size::format(needed), size::format(free));
        let what = format!("the run needs {needed} of address space, and {free} are left");
        (what, "raise the limit (`ulimit -v`, `ulimit -d`), or start fewer threads")
    })
}

fn threads(plan: &Plan) -> Refusal {
    let left = limits::threads_left()?;
    let needed = plan.n_threads();
    // A process's first thread is one of its own, and the calling thread is there already.
    (needed > left).then(|| {
        let what = format!("the run needs {}, and {left} more are allowed", count(needed, "thread"));
        (what, "raise `ulimit -u` or the control group's `pids.max`, or start fewer")
    })
}

/// Descriptors of the process that needs most: each process has a table of its own.
fn descriptors(plan: &Plan) -> Refusal {
    let needed = plan.processes.iter().map(Process::descriptors).max()?;
    let most = limits::raise_descriptors(MOST_DESCRIPTORS);
    (needed > most).then(|| {
        let what = format!("the run keeps up to {} open at once, and {most} are allowed", count(needed, "descriptor"));
        (what, "raise the limit (`ulimit -n`), start fewer threads, or keep fewer files open in each")
    })
}

fn file_size(sets: &[Arc<Fileset>]) -> Refusal {
    let most = limits::file_size()?;
    sets.iter().find_map(|set| {
        let largest =
            (0..set.tree.n_files()).filter(|i| set.tree.exists_at_start(*i)).map(|i| set.tree.size_of(i)).max()?;
        (largest > most).then(|| {
            let (name, largest, most) = (&set.spec.name, size::format(largest), size::format(most));
            let what = format!("file set `{name}` has files of {largest}, and {most} are allowed");
            (what, "raise the limit (`ulimit -f`), or make the files smaller")
        })
    })
}
