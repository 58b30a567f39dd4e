//! Compares the resources that a run needs with the limits of this process: memory, address space, threads,
//! descriptors, file size. The check is made before any file is created.
//!
//! The input is a plan and its file sets. The result is an error with both numbers, and help.

use super::Settings;
use crate::diag::Failure;
use crate::disk::Fileset;
use crate::io_engine::Asynchronous;
use crate::os::limits;
use crate::plan::{self, Plan, Process};
use crate::util::count::count;
use crate::util::size;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Address space in bytes of a thread's stack, with its guard page and the mappings of the C library for the thread.
const THREAD_SPACE: u64 = 320 << 10;

/// Address space in bytes of the counters of one flowop in one thread.
const COUNTER_SPACE: u64 = 36 << 10;

/// Address space in bytes that must remain for everything else.
const SPARE_SPACE: u64 = 64 << 20;

/// Threads in addition to those of the plan: they create files or monitor the run.
const HELPER_THREADS: u64 = 4;

/// The limit of open files that is requested where it may be raised.
pub(crate) const MAX_DESCRIPTORS: u64 = 1 << 20;

/// The help for a run that needs too much memory.
const MEMORY_HELP: &str =
    "make `memsize` or `iosize` smaller, start fewer threads, or raise the control group's memory limit";

/// Checks that memory, address space, threads and file size suffice for the run. `sets` is empty before the sets are
/// known.
pub(crate) fn check(plan: &Plan, sets: &[Arc<Fileset>]) -> Result<(), Failure> {
    memory(plan, sets)?;
    address_space(plan, sets)?;
    threads(plan)?;
    file_size(sets)
}

/// Returns how asynchronous operations are executed on this machine. An error if `io_uring` was requested by name and is
/// not available.
pub(crate) fn asynchronous(settings: &Settings) -> Result<Asynchronous, Failure> {
    settings.engine.asynchronous().resolve().map_err(|errno| {
        let why = crate::os::errno_text(errno.raw_os_error());
        let help = "use `--engine posix` or omit the option; \
                    `kernel.io_uring_disabled` or the container may forbid io_uring";
        Failure::refused(format!("io_uring is not available: {why}"), help)
    })
}

/// Returns the failure, if `lacks`.
fn refuse_if(lacks: bool, what: impl FnOnce() -> String, help: &str) -> Result<(), Failure> {
    if lacks { Err(Failure::refused(what(), help)) } else { Ok(()) }
}

fn memory(plan: &Plan, sets: &[Arc<Fileset>]) -> Result<(), Failure> {
    let needed = plan::totals(plan, sets).memory;
    let (_, free) = limits::memory();
    let what = || {
        let (needed, free) = (size::format(needed), size::format(free));
        format!("the run needs {needed} of memory, but only {free} is available")
    };
    refuse_if(free > 0 && needed > free, what, MEMORY_HELP)
}

/// The memory that a rank needs for its run, and that of its host.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct RankMemory {
    needed: u64,
    /// The bytes available; 0 if they are not known.
    free: u64,
    /// The control groups of the rank: other groups of a host have limits of their own.
    groups: u64,
}

impl RankMemory {
    /// Returns what this rank needs for a run with these sets.
    pub(crate) fn of(plan: &Plan, sets: &[Arc<Fileset>]) -> Self {
        let needed = plan::totals(plan, sets).memory;
        Self { needed, free: limits::memory().1, groups: limits::control_groups() }
    }
}

/// Checks that the memory of each host suffices for all of its ranks. Each rank has made this check for itself. `hosts`:
/// the host of each rank.
pub(crate) fn check_memory_of_ranks(needs: &[RankMemory], hosts: &[String]) -> Result<(), Failure> {
    let mut by_host: BTreeMap<(&str, u64), Vec<RankMemory>> = BTreeMap::new();
    for (need, host) in needs.iter().zip(hosts) {
        by_host.entry((host, need.groups)).or_default().push(*need);
    }
    for ((host, _), ranks) in by_host {
        let needed = ranks.iter().map(|need| need.needed).fold(0, u64::saturating_add);
        let free = ranks.iter().map(|need| need.free).min().unwrap_or(0);
        if free > 0 && needed > free {
            let (n, needed, free) = (ranks.len(), size::format(needed), size::format(free));
            let what = format!("{n} ranks on `{host}` need {needed} of memory together, but only {free} is available");
            return Err(Failure::refused(what, MEMORY_HELP));
        }
    }
    Ok(())
}

/// Checks that this machine has memory, threads and descriptors enough for a plan.
pub(crate) fn check_plan(settings: &Settings, plan: &Plan) -> Result<(), Failure> {
    check(plan, &[])?;
    if settings.engine.real() { check_descriptors(plan) } else { Ok(()) }
}

fn address_space(plan: &Plan, sets: &[Arc<Fileset>]) -> Result<(), Failure> {
    let Some(free) = limits::address_space_left() else { return Ok(()) };
    let totals = plan::totals(plan, sets);
    let counters = plan
        .threads()
        .map(|(process, thread)| u64::from(process.instances) * u64::from(thread.instances) * thread.count as u64);
    let counters = counters.fold(0, u64::saturating_add).saturating_mul(COUNTER_SPACE);
    let threads = (totals.threads + HELPER_THREADS).saturating_mul(THREAD_SPACE);
    let needed = totals.memory.saturating_add(counters).saturating_add(threads).saturating_add(SPARE_SPACE);
    let what = || {
        let (needed, free) = (size::format(needed), size::format(free));
        format!("the run needs {needed} of address space, but only {free} is left")
    };
    refuse_if(needed > free, what, "raise the limit (`ulimit -v`, `ulimit -d`), or start fewer threads")
}

fn threads(plan: &Plan) -> Result<(), Failure> {
    let Some(left) = limits::threads_left() else { return Ok(()) };
    // The first thread of a process needs a thread too; the calling thread exists already.
    let needed = plan.n_threads() + HELPER_THREADS;
    let what = || format!("the run needs {}, but only {left} more are allowed", count(needed, "thread"));
    let help = "raise `ulimit -u`, the control group's `pids.max` or `vm.max_map_count`, or start fewer";
    refuse_if(needed > left, what, help)
}

/// Checks that descriptors suffice for the process that needs most, after raising the limit as far as permitted: each
/// process has a table of its own. Not needed for an engine that makes no calls.
pub(crate) fn check_descriptors(plan: &Plan) -> Result<(), Failure> {
    let Some(needed) = plan.processes.iter().map(Process::descriptors).max() else { return Ok(()) };
    let limit = limits::raise_descriptors(MAX_DESCRIPTORS);
    let what =
        || format!("the run keeps up to {} open at once, but only {limit} are allowed", count(needed, "descriptor"));
    let help = "raise the limit (`ulimit -n`), start fewer threads, or keep fewer files open in each";
    refuse_if(needed > limit, what, help)
}

fn file_size(sets: &[Arc<Fileset>]) -> Result<(), Failure> {
    let Some(limit) = limits::file_size() else { return Ok(()) };
    for set in sets {
        let at_start = (0..set.tree.n_files()).filter(|file| set.tree.exists_at_start(*file));
        let largest = at_start.map(|file| set.tree.size_of(file)).max().unwrap_or(0);
        let what = || {
            let (name, largest, limit) = (&set.spec.name, size::format(largest), size::format(limit));
            format!("file set `{name}` has files of {largest}, but only {limit} are allowed")
        };
        refuse_if(largest > limit, what, "raise the limit (`ulimit -f`), or make the files smaller")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Reason;

    #[test]
    fn the_ranks_of_a_host_need_memory_together() {
        const GIB: u64 = 1 << 30;
        let hosts = ["a", "b", "a"].map(str::to_owned);
        let check = |needs: [(u64, u64, u64); 3]| {
            let needs =
                needs.map(|(needed, free, groups)| RankMemory { needed: needed * GIB, free: free * GIB, groups });
            let Err(failure) = check_memory_of_ranks(&needs, &hosts) else { return String::new() };
            let [Reason::Stated { message, .. }] = &failure.reasons[..] else { panic!("{failure:?}") };
            message.clone()
        };
        assert_eq!(check([(5, 10, 1), (10, 10, 1), (5, 10, 1)]), "");
        let message = "2 ranks on `a` need 11.0 GiB of memory together, but only 10.0 GiB is available";
        assert_eq!(check([(5, 10, 1), (1, 10, 1), (6, 10, 1)]), message);
        assert_eq!(check([(5, 10, 1), (1, 10, 1), (6, 10, 2)]), "", "each control group has its own limit");
        assert_eq!(check([(5, 0, 1), (1, 0, 1), (6, 0, 1)]), "", "the memory of the host is not known");
    }
}
