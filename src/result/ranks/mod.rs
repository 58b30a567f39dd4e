//! The run of several ranks as one result: counts are summed, distributions merged, and rates taken over the time in
//! which all ranks ran.
//!
//! Pure functions: no clock, no system calls. Not here: the transport of the runs to rank 0.

use super::{Environment, HostResult, RankResult, Run, RunState};
use crate::ranks::LostRank;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The run of one rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Its machine when the program started.
    pub environment: Environment,
    /// Its run.
    pub run: Run,
}

/// Merges the runs of all ranks of a workload into one. The order of `runs` has no effect. `runs` has at least one
/// element; without one the result is an empty run.
pub fn merge_ranks(mut runs: Vec<RankRun>, mut lost: Vec<LostRank>) -> Run {
    runs.sort_by_key(|rank| rank.rank);
    lost.sort_by_key(|lost| lost.rank);
    let Some(first) = runs.first() else { return Run { lost_ranks: lost, ..Run::default() } };
    let state = if lost.is_empty() { first.run.state } else { RunState::Failed };
    Run {
        state,
        hosts: hosts(&runs),
        ranks: runs.iter().map(rank_result).collect(),
        lost_ranks: lost,
        ..first.run.clone()
    }
}

/// Returns the hosts, in the order of their lowest ranks.
fn hosts(runs: &[RankRun]) -> Vec<HostResult> {
    let mut by_name: BTreeMap<&str, Vec<&RankRun>> = BTreeMap::new();
    runs.iter().for_each(|rank| by_name.entry(&rank.host).or_default().push(rank));
    let mut hosts: Vec<HostResult> = by_name.into_values().filter_map(|ranks| host(&ranks)).collect();
    hosts.sort_by_key(|host| host.ranks.first().copied());
    hosts
}

fn host(ranks: &[&RankRun]) -> Option<HostResult> {
    let first = ranks.first()?;
    Some(HostResult {
        host: first.host.clone(),
        ranks: ranks.iter().map(|rank| rank.rank).collect(),
        environment: first.environment.clone(),
        run_environment: first.run.environment.clone(),
        summary: first.run.summary.clone(),
        filesets: first.run.filesets.clone(),
        cache_state: first.run.cache_state,
    })
}

fn rank_result(rank: &RankRun) -> RankResult {
    let (run, summary) = (&rank.run, &rank.run.summary);
    RankResult {
        rank: rank.rank,
        host: rank.host.clone(),
        state: run.state,
        ended_by: run.ended_by.clone(),
        start_skew_ns: rank.start_skew_ns,
        clock_error_ns: rank.clock_error_ns,
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
