//! Counts, rates and distributions of several ranks as those of one run.

use super::RankRun;
use super::window::CommonTime;
use crate::LostRank;
use crate::build;
use crate::flowop_result::COUNTED;
use crate::hdr;
use crate::means::weighted_mean;
use crate::snapshot::Dist;
use crate::{FlowopResult, IntervalFlowop, Latency, OpenLoop, Summary, ThreadRequests};
use std::collections::{BTreeMap, BTreeSet};
use wml_text::size::MIB;

/// A distribution that is merged from stored ones.
#[derive(Debug, Default)]
struct MergedLatency {
    dist: Dist,
    /// Whether a histogram is missing, so that there are no percentiles.
    lacks_histogram: bool,
}

impl MergedLatency {
    /// Adds a distribution: its figures, its histogram, and the number of operations for the case that the histogram is
    /// missing.
    fn add(&mut self, latency: &Latency, histogram: &str, ops: u64) {
        let Some(mean) = latency.mean else { return };
        let mut dist = hdr::decode(histogram).unwrap_or_default();
        if dist.count == 0 {
            dist.count = ops;
            self.lacks_histogram |= ops > 0;
        }
        // The histogram has these within the width of a bucket only.
        dist.sum = (mean * dist.count as f64).round() as u64;
        dist.min = latency.min.unwrap_or(dist.min);
        dist.max = latency.max.unwrap_or(dist.max);
        self.dist.merge(&dist);
    }

    /// Returns the figures and the histogram.
    fn finish(&self) -> (Latency, String) {
        if self.lacks_histogram {
            let Dist { min, max, .. } = self.dist;
            let known = Latency { min: Some(min), mean: self.dist.mean(), max: Some(max), ..Latency::default() };
            return (known, String::new());
        }
        (build::latency(&self.dist), hdr::encode(&self.dist))
    }
}

/// The flowops of all ranks, and where each rank has them.
pub(super) struct FlowopMap {
    /// Of each rank the position of each of its flowops among those of the merged run.
    pub(super) positions: Vec<Vec<usize>>,
    /// Number of flowops of the merged run.
    pub(super) len: usize,
}

impl FlowopMap {
    /// Finds the same flowop in all ranks: the same process, thread, index, name and phase. The order is that of the
    /// first rank.
    pub(super) fn of<'a>(ranks: &'a [RankRun]) -> Self {
        let mut known = BTreeMap::new();
        let positions = ranks.iter().map(|rank| {
            // Processes with the same name and the same flowops differ in their position only.
            let mut seen: BTreeMap<_, usize> = BTreeMap::new();
            let position = |flowop: &'a FlowopResult| {
                let FlowopResult { process, thread, index, name, phase, .. } = flowop;
                let same = seen.entry((process, thread, index, name, phase)).or_default();
                *same += 1;
                let next = known.len();
                *known.entry((process, thread, index, name, phase, *same)).or_insert(next)
            };
            rank.run.flowops.iter().map(position).collect()
        });
        let positions = positions.collect();
        Self { positions, len: known.len() }
    }

    /// Returns of each flowop of the merged run the ranks that have it, each with the position there.
    fn parts<'a>(&self, ranks: &'a [RankRun]) -> Vec<Vec<(&'a RankRun, usize)>> {
        let mut parts = vec![Vec::new(); self.len];
        for (rank, positions) in ranks.iter().zip(&self.positions) {
            positions.iter().enumerate().for_each(|(own, merged)| parts[*merged].push((rank, own)));
        }
        parts
    }
}

/// Returns the flowops of all ranks. The rates of a flowop refer to the common time of its phase.
pub(super) fn flowops(ranks: &[RankRun], map: &FlowopMap, common: &CommonTime) -> Vec<FlowopResult> {
    let numbers: BTreeSet<u64> = ranks.iter().flat_map(|rank| &rank.run.phases).map(|phase| phase.number).collect();
    let phases: BTreeMap<u64, CommonTime> =
        numbers.into_iter().map(|number| (number, CommonTime::of_phase(ranks, number))).collect();
    let merged = |parts: &Vec<(&RankRun, usize)>| {
        let phase = parts.first().map_or(0, |(rank, at)| rank.run.flowops[*at].phase);
        flowop(parts, phases.get(&phase).unwrap_or(common))
    };
    map.parts(ranks).iter().map(merged).collect()
}

fn flowop(parts: &[(&RankRun, usize)], common: &CommonTime) -> FlowopResult {
    let own = || parts.iter().map(|(rank, at)| &rank.run.flowops[*at]);
    let sum = |of: fn(&FlowopResult) -> u64| own().map(of).sum::<u64>();
    let seconds = |of: fn(&FlowopResult) -> Option<f64>| own().filter_map(of).reduce(|sum, own| sum + own);
    let rate = |own: fn(&FlowopResult) -> f64, count: fn(&IntervalFlowop) -> u64| -> f64 {
        let of = |(rank, at): &(&RankRun, usize)| {
            let count = |flowops: &[IntervalFlowop]| flowops.get(*at).map_or(0.0, |flowop| count(flowop) as f64);
            common.rate(rank, own(&rank.run.flowops[*at]), |interval| count(&interval.flowops))
        };
        parts.iter().map(of).sum()
    };
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for (errno, count) in own().flat_map(|flowop| &flowop.errors) {
        *errors.entry(errno.clone()).or_default() += count;
    }
    let (latency_ns, histogram) = distribution(own().map(|f| (Some(&f.latency_ns), f.histogram.as_str(), f.ops)));
    let (response_ns, response_histogram) =
        distribution(own().map(|f| (f.response_ns.as_ref(), f.response_histogram.as_str(), f.ops)));
    let (lateness_ns, lateness_histogram) =
        distribution(own().map(|f| (f.lateness_ns.as_ref(), f.lateness_histogram.as_str(), f.ops)));
    let mut merged = FlowopResult {
        direct: own().all(|f| f.direct),
        instances: sum(|f| f.instances),
        ops: sum(|f| f.ops),
        ops_per_s: rate(|f| f.ops_per_s, |f| f.ops),
        bytes: sum(|f| f.bytes),
        mib_per_s: rate(|f| f.mib_per_s * MIB, |f| f.bytes) / MIB,
        open_ns_mean: weighted_mean(own().map(|f| (f.open_ns_mean, f.implicit_opens as f64))),
        errors,
        starved_seconds: seconds(|f| Some(f.starved_seconds)).unwrap_or(0.0),
        tool_ns_mean: weighted_mean(own().map(|f| (f.tool_ns_mean, f.ops as f64))),
        command_user_seconds: seconds(|f| f.command_user_seconds),
        command_system_seconds: seconds(|f| f.command_system_seconds),
        latency_ns: latency_ns.unwrap_or_default(),
        histogram,
        response_ns,
        response_histogram,
        lateness_ns,
        lateness_histogram,
        ..own().next().cloned().unwrap_or_default()
    };
    for counted in COUNTED {
        *(counted.field)(&mut merged) = sum(counted.of);
    }
    merged
}

/// Merges distributions: figures, histogram and number of operations of each. `None` if none has figures.
fn distribution<'a>(
    parts: impl Iterator<Item = (Option<&'a Latency>, &'a str, u64)> + Clone,
) -> (Option<Latency>, String) {
    let mut known = parts.clone().filter(|(latency, ..)| latency.is_some()).peekable();
    if known.peek().is_none() {
        return (None, String::new());
    }
    let mut merged = MergedLatency::default();
    for (latency, histogram, ops) in known {
        latency.into_iter().for_each(|latency| merged.add(latency, histogram, ops));
    }
    let (latency, histogram) = merged.finish();
    // A result without operations has an empty histogram, or none if it is of an earlier version.
    let stored = parts.into_iter().any(|(.., histogram, _)| !histogram.is_empty());
    (Some(latency), if stored { histogram } else { String::new() })
}

/// Returns the totals of ranks. Rates refer to the common time of all ranks of the run.
pub(super) fn summary(ranks: &[&RankRun], common: &CommonTime) -> Summary {
    let own = || ranks.iter().map(|rank| &rank.run.summary);
    let sum = |of: fn(&Summary) -> u64| own().map(of).sum::<u64>();
    let rate =
        |own: fn(&Summary) -> f64, counts: fn(&FlowopResult) -> bool, count: fn(&IntervalFlowop) -> u64| -> f64 {
            let of = |rank: &&RankRun| {
                common.rate(rank, own(&rank.run.summary), |interval| {
                    let flowops = rank.run.flowops.iter().zip(&interval.flowops);
                    let counted = flowops.filter(|(flowop, _)| flowop.class.is_io() && counts(flowop));
                    counted.map(|(_, figures)| count(figures)).sum::<u64>() as f64
                })
            };
            ranks.iter().map(of).sum()
        };
    let (latency_ns, histogram) = distribution(own().map(|s| (Some(&s.latency_ns), s.histogram.as_str(), s.ops)));
    let latency_ns = latency_ns.unwrap_or_default();
    Summary {
        ops: sum(|s| s.ops),
        ops_per_s: rate(|s| s.ops_per_s, |_| true, |f| f.ops),
        reads_per_s: rate(|s| s.reads_per_s, |f| f.reads, |f| f.ops),
        writes_per_s: rate(|s| s.writes_per_s, |f| f.writes, |f| f.ops),
        bytes: sum(|s| s.bytes),
        mib_per_s: rate(|s| s.mib_per_s * MIB, |_| true, |f| f.bytes) / MIB,
        listed_bytes: sum(|s| s.listed_bytes),
        latency_ms: latency_ns.mean.map(|ns| ns / 1e6),
        latency_ns,
        histogram,
        errors: sum(|s| s.errors),
        ..Summary::default()
    }
    .with_processors_of(&ranks.iter().map(|rank| (rank.host.as_str(), &rank.run.summary)).collect::<Vec<_>>())
}

/// Returns the requests a second that were asked of lost ranks, over the time of the phases in which any were.
fn lost_per_s(ranks: &[RankRun], lost: &[LostRank]) -> f64 {
    let Some(first) = ranks.first() else { return 0.0 };
    let rates = |lost: &LostRank| first.rank_rates.get(usize::try_from(lost.rank).ok()?);
    let phases = &first.run.phases;
    let seconds = |number: u32| match phases.iter().find(|phase| phase.number == u64::from(number)) {
        Some(phase) => phase.seconds,
        None => first.run.measured_seconds,
    };
    let of_rank = |rates: &Vec<(u32, f64)>| {
        let requests: f64 = rates.iter().map(|(phase, rate)| rate * seconds(*phase)).sum();
        let seconds: f64 = rates.iter().map(|(phase, _)| seconds(*phase)).sum();
        if seconds > 0.0 { requests / seconds } else { 0.0 }
    };
    lost.iter().filter_map(rates).map(of_rank).sum()
}

/// Returns the load of an open loop on all ranks; `None` if none has one. What the script asks of all ranks together
/// was asked of lost ranks, too.
pub(super) fn open_loop(ranks: &[RankRun], lost: &[LostRank]) -> Option<OpenLoop> {
    let own = || ranks.iter().filter_map(|rank| Some((rank, rank.run.open_loop.as_ref()?)));
    let lost_per_s = lost_per_s(ranks, lost);
    if own().next().is_none() && lost_per_s == 0.0 {
        return None;
    }
    let sum = |of: fn(&OpenLoop) -> f64| own().map(|(_, open)| of(open)).sum::<f64>();
    let completed = |rank: &RankRun, open: &OpenLoop| open.achieved_per_s * rank.run.measured_seconds;
    let response_ns = |rank: &RankRun| -> f64 {
        let io = rank.run.flowops.iter().filter(|f| f.class.is_io());
        io.filter_map(|f| Some(f.response_ns?.mean? * f.ops as f64)).sum()
    };
    // Nothing of it was done, which is no fault of the file system.
    let not_done = (lost_per_s * ranks.first().map_or(0.0, |rank| rank.run.measured_seconds)) as u64;
    let requested = own().map(|(_, open)| open.requested_per_s).sum::<Option<f64>>();
    Some(OpenLoop {
        requested_per_s: requested.map(|requested| requested + lost_per_s),
        offered_per_s: sum(|open| open.offered_per_s) + lost_per_s,
        achieved_per_s: sum(|open| open.achieved_per_s),
        backlog: own().map(|(_, open)| open.backlog).sum::<u64>() + not_done,
        lost: own().map(|(_, open)| open.lost).sum::<u64>() + not_done,
        backlog_oldest_seconds: own().map(|(_, open)| open.backlog_oldest_seconds).fold(0.0, f64::max),
        // A rank whose threads never slept has no wake-up latency, which is no missing value.
        wakeup_latency_ns_mean: weighted_mean(
            own()
                .filter(|(_, open)| open.wakeup_latency_ns_mean.is_some())
                .map(|(rank, open)| (open.wakeup_latency_ns_mean, completed(rank, open))),
        ),
        wakeup_latency_share: weighted_mean(
            own()
                .filter(|(_, open)| open.wakeup_latency_share.is_some())
                .map(|(rank, open)| (open.wakeup_latency_share, response_ns(rank))),
        ),
        spin_seconds: sum(|open| open.spin_seconds),
        threads: requests(ranks),
    })
}

/// Returns the requests of each thread definition on all ranks, without what was asked of lost ones.
fn requests(ranks: &[RankRun]) -> Vec<ThreadRequests> {
    let mut all: Vec<(ThreadRequests, f64, f64)> = Vec::new();
    for rank in ranks {
        for own in rank.run.open_loop.iter().flat_map(|open| &open.threads) {
            let is_its =
                |of: &&mut (ThreadRequests, f64, f64)| (&of.0.process, &of.0.thread) == (&own.process, &own.thread);
            let done = own.response_ns_mean.map_or(0.0, |_| own.achieved_per_s);
            let response = own.response_ns_mean.unwrap_or(0.0) * done;
            match all.iter_mut().find(is_its) {
                Some((sum, all_response, all_done)) => {
                    sum.offered_per_s += own.offered_per_s;
                    sum.achieved_per_s += own.achieved_per_s;
                    (sum.backlog, sum.lost) = (sum.backlog + own.backlog, sum.lost + own.lost);
                    (*all_response, *all_done) = (*all_response + response, *all_done + done);
                    sum.response_ns_mean = (*all_done > 0.0).then(|| *all_response / *all_done);
                }
                None => all.push((own.clone(), response, done)),
            }
        }
    }
    all.into_iter().map(|(requests, ..)| requests).collect()
}
