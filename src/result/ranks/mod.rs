//! The run of several ranks as one result: counts are summed, distributions merged, and rates taken over the time in
//! which all ranks ran.
//!
//! Pure functions: no clock, no system calls. Not here: the transport of the runs to rank 0.

mod figures;
mod filesets;
mod intervals;
mod notes;
mod progress;
#[cfg(test)]
mod tests;
mod window;

pub use filesets::of_instances;
pub use progress::{LastProgress, RankProgress, RankRate, RanksInterval, RanksProgress};
pub use window::{MIN_COVERED, Overlap, overlap};

use self::figures::FlowopMap;
use self::window::CommonTime;
use super::environment::MountInfo;
use super::{
    BeforeAfter, CacheState, Digest, Energy, Environment, HostResult, Interval, LostRank, PhaseResult, RankClock,
    RankResult, Run, RunEnvironment, RunFailure, RunState, Straggler, Warmup,
};
use crate::means::weighted_mean;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use wml_os::proc::DescriptorTable;
use wml_text::hash::mix;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankRun {
    /// Number of the rank, from 0.
    pub rank: u64,
    /// Name of its host.
    pub host: String,
    /// Delay of its start of measuring compared to the common start, in nanoseconds; negative if it was earlier. `None`
    /// if unknown.
    pub start_skew_ns: Option<i64>,
    /// Bound of the error of `start_skew_ns`, in nanoseconds; `None` if unknown.
    pub clock_error_ns: Option<u64>,
    /// Its clock against that of rank 0; `None` if it is unknown.
    pub clock: Option<RankClock>,
    /// Its machine when the program started.
    pub environment: Environment,
    /// The requests a second that `totalrate=` asks of each rank, with the number of their phase. The same on all ranks.
    pub rank_rates: Vec<Vec<(u32, f64)>>,
    pub run: Run,
}

/// Merges the runs of all ranks of a workload into one. The order of `runs` and `lost` has no effect. `runs` has at
/// least one element; without one the result is a failed run without figures.
///
/// What cannot be summed or merged, such as the variables, is that of the rank with the lowest number.
pub fn merge_ranks(mut runs: Vec<RankRun>, mut lost: Vec<LostRank>) -> Run {
    runs.sort_by_key(|rank| rank.rank);
    lost.sort_by_key(|lost| lost.rank);
    let ranks = &runs[..];
    let own = || ranks.iter().map(|rank| &rank.run);
    let common = CommonTime::of_runs(ranks);
    let map = FlowopMap::of(ranks);
    let hosts = hosts(ranks, &common);
    let (state, ended_by, failure) = outcome(ranks, &lost);
    let latest = |of: fn(&Run) -> Option<f64>| own().filter_map(of).reduce(f64::max);
    let mut run = Run {
        state,
        ended_by,
        failure,
        finished_seconds: own().map(|run| run.finished_seconds).fold(0.0, f64::max),
        requested_seconds: latest(|run| run.requested_seconds),
        measured_seconds: common.seconds(),
        environment: hosts.first().map(|host| host.run_environment.clone()).unwrap_or_default(),
        as_is: own().any(|run| run.as_is),
        engine: distinct(own().map(|run| run.engine.as_str())).join(" and "),
        processes: own().map(|run| run.processes).sum(),
        threads: own().map(|run| run.threads).sum(),
        pinned_processors: pinned_processors(ranks),
        descriptor_tables: descriptor_tables(ranks),
        lathist: own().any(|run| run.lathist),
        warmup: warmup(ranks, &map),
        overhead_ns_per_op: weighted_mean(own().map(|run| (run.overhead_ns_per_op, run.summary.ops as f64))),
        peak_memory: own().map(|run| run.peak_memory).max().unwrap_or(0),
        late_ops: own().map(|run| run.late_ops).sum(),
        late_oldest_seconds: latest(|run| run.late_oldest_seconds),
        cache_state: cache_state(ranks.iter()),
        dirty_bytes: of_hosts(ranks, |run| run.dirty_bytes.as_ref()),
        slab_bytes: of_hosts(ranks, |run| run.slab_bytes.as_ref()),
        page_cache_bytes: of_hosts(ranks, |run| run.page_cache_bytes.as_ref()),
        energy: energy(ranks),
        quiesced: all(own().map(|run| run.quiesced)),
        open_loop: figures::open_loop(ranks, &lost),
        phases: phases(ranks),
        summary: figures::summary(&ranks.iter().collect::<Vec<_>>(), &common),
        flowops: figures::flowops(ranks, &map, &common),
        filesets: filesets::of_run(&by_host(ranks)),
        intervals: intervals::merged(ranks, &map, |rank| Some((&rank.run.intervals[..], start_seconds(rank)))),
        digest: digest(ranks),
        stragglers: stragglers(ranks),
        warnings: notes::merged(ranks),
        ranks: ranks.iter().map(rank_result).collect(),
        lost_ranks: lost,
        hosts,
        ..own().next().cloned().unwrap_or_default()
    };
    run.name_intervals();
    run.steady = run.steadiness();
    run
}

/// Returns how the run ended: complete if it is on all ranks, else as on the rank with the lowest number among those
/// with the worst state. A lost rank has failed.
fn outcome(ranks: &[RankRun], lost: &[LostRank]) -> (RunState, String, Option<RunFailure>) {
    // A rank without threads had nothing to do.
    let idle = |rank: &RankRun| rank.run.threads == 0 && rank.run.state == RunState::NothingDone;
    let working: Vec<&RankRun> = match ranks.iter().filter(|rank| !idle(rank)).collect::<Vec<_>>() {
        none if none.is_empty() => ranks.iter().collect(),
        working => working,
    };
    let worst = working.iter().copied().max_by_key(|rank| (severity(rank.run.state), Reverse(rank.rank)));
    let failed = worst.filter(|rank| rank.run.state == RunState::Failed);
    if let Some(first) = lost.first()
        && failed.is_none_or(|rank| first.rank < rank.rank)
    {
        let text = first.to_string();
        let rank = first.rank;
        let help = format!(
            "the figures are those of the other ranks; look for errors of rank {rank}, and, if it ran for a second, for its \
             last figures in `rank-{rank}.snapshots` on its host"
        );
        let failure = RunFailure { what: text.clone(), help, ..RunFailure::default() };
        return (RunState::Failed, text, Some(failure));
    }
    let Some(worst) = worst else { return (RunState::Failed, String::new(), None) };
    let text = |text: &str, equal: &dyn Fn(&Run) -> bool| {
        let every = working.iter().all(|rank| equal(&rank.run));
        let named = ranks.iter().map(|rank| rank.rank).filter(|rank| every || *rank == worst.rank).collect();
        notes::prefixed(ranks, &named, text)
    };
    let run = &worst.run;
    let ended_by = text(&run.ended_by, &|other| other.ended_by == run.ended_by);
    let failure = run.failure.as_ref().map(|failure| RunFailure {
        what: text(&failure.what, &|other| other.failure.as_ref().is_some_and(|other| other.what == failure.what)),
        ..failure.clone()
    });
    (run.state, ended_by, failure)
}

/// Returns the order of states, from the best to the worst.
fn severity(state: RunState) -> u8 {
    match state {
        RunState::Complete => 0,
        RunState::NothingDone => 1,
        RunState::Interrupted => 2,
        RunState::LowSpace => 3,
        RunState::Stuck => 4,
        RunState::Failed => 5,
    }
}

/// Returns the hosts, in the order of their lowest ranks.
fn hosts(ranks: &[RankRun], common: &CommonTime) -> Vec<HostResult> {
    by_host(ranks).into_iter().filter_map(|ranks| host(&ranks, common)).collect()
}

/// Returns the ranks of each host, in the order of their lowest ranks.
fn by_host(ranks: &[RankRun]) -> Vec<Vec<&RankRun>> {
    let mut by_name: BTreeMap<&str, Vec<&RankRun>> = BTreeMap::new();
    ranks.iter().for_each(|rank| by_name.entry(&rank.host).or_default().push(rank));
    let mut hosts: Vec<Vec<&RankRun>> = by_name.into_values().collect();
    hosts.sort_by_key(|ranks| ranks.first().map(|rank| rank.rank));
    hosts
}

fn host(ranks: &[&RankRun], common: &CommonTime) -> Option<HostResult> {
    let first = ranks.first()?;
    // Ranks with directories of their own have other mounts.
    let mut mounts: Vec<MountInfo> = Vec::new();
    for mount in ranks.iter().flat_map(|rank| &rank.run.environment.mounts) {
        if mounts.iter().all(|known| known.path != mount.path) {
            mounts.push(mount.clone());
        }
    }
    Some(HostResult {
        host: first.host.clone(),
        ranks: ranks.iter().map(|rank| rank.rank).collect(),
        environment: first.environment.clone(),
        run_environment: RunEnvironment { mounts, ..first.run.environment.clone() },
        summary: figures::summary(ranks, common),
        filesets: filesets::of_host(ranks),
        cache_state: cache_state(ranks.iter().copied()),
    })
}

fn rank_result(rank: &RankRun) -> RankResult {
    let (run, summary, drift) = (&rank.run, &rank.run.summary, rank.clock.and_then(|clock| clock.drift));
    RankResult {
        rank: rank.rank,
        host: rank.host.clone(),
        state: run.state,
        ended_by: run.ended_by.clone(),
        start_skew_ns: rank.start_skew_ns,
        clock_error_ns: rank.clock_error_ns,
        clock_offset_ns: rank.clock.map(|clock| clock.offset_ns),
        clock_drift_ppm: drift.map(|drift| drift.ppm),
        clock_drift_error_ppm: drift.map(|drift| drift.error_ppm),
        threads: run.threads,
        measured_seconds: run.measured_seconds,
        ops: summary.ops,
        ops_per_s: summary.ops_per_s,
        bytes: summary.bytes,
        mib_per_s: summary.mib_per_s,
        latency_ns: summary.latency_ns,
        errors: summary.errors,
    }
}

/// Returns the start of a rank's measured time in seconds after the common start.
fn start_seconds(rank: &RankRun) -> f64 {
    rank.start_skew_ns.unwrap_or(0) as f64 / 1e9
}

/// Returns the time series of a rank's warm-up, and its start in seconds after the common start.
fn warmup_series(rank: &RankRun) -> Option<(&[Interval], f64)> {
    let warmup = rank.run.warmup.as_ref()?;
    Some((&warmup.intervals, start_seconds(rank) - warmup.seconds))
}

fn warmup(ranks: &[RankRun], map: &FlowopMap) -> Option<Warmup> {
    let own = || ranks.iter().filter_map(|rank| rank.run.warmup.as_ref());
    own().next()?;
    Some(Warmup {
        seconds: own().map(|warmup| warmup.seconds).fold(0.0, f64::max),
        ops: own().map(|warmup| warmup.ops).sum(),
        bytes: own().map(|warmup| warmup.bytes).sum(),
        intervals: intervals::merged(ranks, map, warmup_series),
    })
}

/// Returns the phases. Each has the time in which all ranks were in it.
fn phases(ranks: &[RankRun]) -> Vec<PhaseResult> {
    let all = || ranks.iter().flat_map(|rank| &rank.run.phases);
    let numbers: BTreeSet<u64> = all().map(|phase| phase.number).collect();
    let merged = |number: u64| {
        let own = || all().filter(move |phase| phase.number == number);
        PhaseResult {
            number,
            start_seconds: own().filter_map(|phase| phase.start_seconds).reduce(f64::max),
            earliest_start_seconds: own().find_map(|phase| phase.earliest_start_seconds),
            seconds: if ranks.len() == 1 {
                own().map(|phase| phase.seconds).sum()
            } else {
                CommonTime::of_phase(ranks, number).seconds()
            },
            complete: own().all(|phase| phase.complete),
        }
    };
    numbers.into_iter().map(merged).collect()
}

/// Returns the different texts, in the order of their first occurrence.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(*text)).collect()
}

/// Returns the processors of all ranks; `None` if a rank is not bound.
fn pinned_processors(ranks: &[RankRun]) -> Option<Vec<u64>> {
    let all: Vec<&Vec<u64>> = ranks.iter().map(|rank| rank.run.pinned_processors.as_ref()).collect::<Option<_>>()?;
    match all[..] {
        // In the order of the round robin.
        [first, ..] if all.iter().all(|processors| *processors == first) => Some(first.clone()),
        _ => Some(all.into_iter().flatten().copied().collect::<BTreeSet<u64>>().into_iter().collect()),
    }
}

/// Returns how the processes got their descriptor tables; `shared` if they have none on a rank with several processes.
fn descriptor_tables(ranks: &[RankRun]) -> String {
    let is_shared = |run: &Run| run.descriptor_tables == DescriptorTable::Shared.name() && run.processes > 1;
    let shared = ranks.iter().find(|rank| is_shared(&rank.run));
    shared.or(ranks.first()).map(|rank| rank.run.descriptor_tables.clone()).unwrap_or_default()
}

/// Returns the state of the page caches: that of all ranks, or else the least certain one.
fn cache_state<'a>(ranks: impl Iterator<Item = &'a RankRun>) -> CacheState {
    let states: Vec<CacheState> = ranks.map(|rank| rank.run.cache_state).collect();
    match states[..] {
        [first, ..] if states.iter().all(|state| *state == first) => first,
        _ if states.contains(&CacheState::UnknownBelow) => CacheState::UnknownBelow,
        _ => CacheState::AsIs,
    }
}

/// Returns the memory of all hosts. Each rank of a host reports that of the whole host.
fn of_hosts(ranks: &[RankRun], of: fn(&Run) -> Option<&BeforeAfter>) -> Option<BeforeAfter> {
    let of_host = |ranks: &Vec<&RankRun>| {
        let own = || ranks.iter().filter_map(|rank| of(&rank.run));
        Some(BeforeAfter {
            before: own().map(|bytes| bytes.before).max()?,
            after: own().map(|bytes| bytes.after).max()?,
        })
    };
    by_host(ranks)
        .iter()
        .filter_map(of_host)
        .reduce(|sum, host| BeforeAfter { before: sum.before + host.before, after: sum.after + host.after })
}

/// Returns the energy of all hosts; `None` unless it was measured on each, in the same way. Each rank of a host reports
/// that of the whole host, for its own measured time.
fn energy(ranks: &[RankRun]) -> Option<Energy> {
    let of_host = |ranks: &Vec<&RankRun>| {
        ranks.iter().filter_map(|rank| rank.run.energy.clone()).max_by(|a, b| a.joules.total_cmp(&b.joules))
    };
    let hosts: Vec<Energy> = by_host(ranks).iter().map(of_host).collect::<Option<_>>()?;
    let source = hosts.first()?.source.clone();
    let is_alike = hosts.iter().all(|host| host.source == source);
    is_alike.then(|| Energy { source, joules: hosts.iter().map(|host| host.joules).sum() })
}

/// Returns false if a value is false, true if all are true, and else `None`.
fn all(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    values.reduce(|a, b| match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })?
}

/// Returns the digest of the operations of all ranks, in the order of their numbers; `None` if one is missing.
fn digest(ranks: &[RankRun]) -> Option<Digest> {
    let all: Vec<&Digest> = ranks.iter().map(|rank| rank.run.digest.as_ref()).collect::<Option<_>>()?;
    let (first, rest) = all.split_first()?;
    if rest.is_empty() {
        return Some((*first).clone());
    }
    let number = |digest: &&Digest| u64::from_str_radix(&digest.value, 16).unwrap_or(0);
    Some(Digest {
        value: format!("{:016x}", all.iter().map(number).fold(0, mix)),
        operations: first.operations,
        short_threads: all.iter().map(|digest| digest.short_threads).sum(),
    })
}

fn stragglers(ranks: &[RankRun]) -> Vec<Straggler> {
    let of = |rank: &RankRun| {
        let number = Some(rank.rank);
        rank.run.stragglers.iter().map(move |thread| Straggler { rank: number, ..thread.clone() }).collect::<Vec<_>>()
    };
    ranks.iter().flat_map(of).collect()
}
