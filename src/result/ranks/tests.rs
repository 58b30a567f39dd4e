//! Tests of the merged run of several ranks.

#![allow(clippy::unwrap_used)]

use super::{RankRun, merge_ranks, overlap};
use crate::CpuTime;
use crate::build;
use crate::fixture::{fixture, of_ranks, rank_runs};
use crate::snapshot::{Dist, Snapshot};
use crate::{
    BeforeAfter, Digest, Energy, FlowopClass, FlowopResult, OpenLoop, PhaseResult, Run, RunFailure, RunState,
    Straggler, warnings,
};
use crate::{ClockDrift, LostRank, RankClock};
use proptest::prelude::*;
use wml_text::bounded::{self, Budget};
use wml_text::json;

/// Returns rank `number` of a host with a run.
fn rank(number: u64, host: &str, run: Run) -> RankRun {
    let (start_skew_ns, clock_error_ns) = (Some(0), Some(1_000));
    let environment = fixture().environment;
    RankRun {
        rank: number,
        host: host.to_owned(),
        start_skew_ns,
        clock_error_ns,
        clock: None,
        environment,
        rank_rates: Vec::new(),
        run,
    }
}

/// Returns the run of these flowops, one for each snapshot, of `seconds`, with an interval for each second. The
/// operations are spread evenly over them.
fn run_of(snapshots: &[Snapshot], seconds: u64) -> Run {
    let identity = |n: usize| FlowopResult {
        class: FlowopClass::Io,
        reads: n == 0,
        writes: n > 0,
        instances: 2,
        phase: 1,
        ..build::identity("p", "t", n, &format!("op{n}"), "read")
    };
    let length = seconds as f64;
    let identities: Vec<FlowopResult> = (0..snapshots.len()).map(identity).collect();
    let share = |s: &Snapshot, n: u64| Snapshot {
        ops: s.ops * n / seconds - s.ops * (n - 1) / seconds,
        bytes: s.bytes * n / seconds - s.bytes * (n - 1) / seconds,
        ..Snapshot::default()
    };
    let interval = |n: u64| {
        let shares: Vec<Snapshot> = snapshots.iter().map(|s| share(s, n)).collect();
        build::interval(n as f64, 1.0, &shares)
    };
    let cpu =
        CpuTime { own_seconds: Some((1.0, 0.5)), system_seconds: Some(4.0), kernel_seconds: Some(0.5), processors: 8 };
    let mut run = Run {
        ended_by: "time".to_owned(),
        threads: 2,
        processes: 1,
        measured_seconds: length,
        summary: build::summary(identities.iter().zip(snapshots), length, cpu),
        flowops: identities.iter().zip(snapshots).map(|(own, s)| build::flowop(own.clone(), s, length)).collect(),
        intervals: (1..=seconds).map(interval).collect(),
        ..Run::default()
    };
    run.name_intervals();
    run
}

/// Returns a snapshot with these latencies in nanoseconds and 512 bytes for each operation.
fn snapshot(latencies: &[u64]) -> Snapshot {
    let mut latency = Dist::default();
    latencies.iter().for_each(|ns| latency.record(*ns));
    let ops = latencies.len() as u64;
    Snapshot { ops, bytes: 512 * ops, latency, ..Snapshot::default() }
}

/// Returns a run of `ops` operations with one flowop, of `seconds`.
fn steady_run(ops: u64, seconds: u64) -> Run {
    run_of(&[snapshot(&vec![1_000; ops as usize])], seconds)
}

fn lost(number: u64) -> LostRank {
    LostRank { rank: number, host: "h9".to_owned(), why: "has not answered for 30 s".to_owned() }
}

#[test]
fn the_run_of_a_single_rank_is_unchanged() {
    let mut own = fixture().runs.remove(0);
    own.open_loop =
        Some(OpenLoop { offered_per_s: 3.1, achieved_per_s: 2.9, spin_seconds: 0.7, ..OpenLoop::default() });
    own.flowops[0].response_ns = Some(own.flowops[1].latency_ns);
    own.flowops[0].response_histogram = own.flowops[1].histogram.clone();
    own.digest = Some(Digest { value: "00000000000000ff".to_owned(), operations: 9, short_threads: 1 });
    let whole =
        PhaseResult { number: 1, start_seconds: Some(5.0), seconds: 60.0, complete: true, ..PhaseResult::default() };
    own.phases = vec![whole, PhaseResult { number: 2, ..PhaseResult::default() }];
    own.failure = Some(RunFailure { what: "a call failed".to_owned(), ..RunFailure::default() });
    let merged = merge_ranks(vec![rank(0, "h1", own.clone())], Vec::new());
    assert_eq!((merged.ranks.len(), merged.hosts.len()), (1, 1));
    assert_eq!(merged.hosts[0].summary, own.summary);
    assert_eq!(Run { ranks: Vec::new(), hosts: Vec::new(), ..merged }, own);
}

proptest! {
    // Each case encodes and decodes about ten histograms.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_run_of_a_single_rank_keeps_its_figures(
        latencies in prop::collection::vec(prop::collection::vec(1_u64..1 << 40, 0..40), 1..4),
        skew in -1_000_000_i64..1_000_000,
    ) {
        let own = run_of(&latencies.iter().map(|all| snapshot(all)).collect::<Vec<_>>(), 7);
        let of = RankRun { start_skew_ns: Some(skew), ..rank(0, "h1", own.clone()) };
        let merged = merge_ranks(vec![of], Vec::new());
        prop_assert_eq!(Run { ranks: Vec::new(), hosts: Vec::new(), ..merged }, own);
    }

    #[test]
    fn merged_distributions_are_those_of_all_operations(
        parts in prop::collection::vec(prop::collection::vec(1_u64..1 << 40, 0..60), 1..6),
    ) {
        let ranks = parts.iter().enumerate().map(|(n, all)| rank(n as u64, "h", run_of(&[snapshot(all)], 5))).collect();
        let merged = merge_ranks(ranks, Vec::new());
        let all = run_of(&[snapshot(&parts.concat())], 5);
        let (found, expected) = (&merged.flowops[0], &all.flowops[0]);
        prop_assert_eq!(found.latency_ns, expected.latency_ns);
        prop_assert_eq!(&found.histogram, &expected.histogram);
        prop_assert_eq!(merged.summary.latency_ns, all.summary.latency_ns);
        prop_assert_eq!((found.ops, found.bytes), (expected.ops, expected.bytes));
        prop_assert!((found.ops_per_s - expected.ops_per_s).abs() < 1e-9);
        prop_assert_eq!(merged.hosts[0].summary.ops, all.summary.ops);
        // The time series has all operations.
        let series: u64 = merged.intervals.iter().map(|interval| interval.flowops[0].ops).sum();
        prop_assert_eq!(series, expected.ops);
    }

    #[test]
    fn the_order_of_the_runs_has_no_effect(
        parts in prop::collection::vec((0_u64..500, 1_u64..9, -3_000_000_000_i64..3_000_000_000), 2..6),
    ) {
        let of = |(n, (ops, seconds, skew)): (usize, &(u64, u64, i64))| RankRun {
            start_skew_ns: Some(*skew),
            ..rank(n as u64, ["h1", "h2"][n % 2], steady_run(*ops, *seconds))
        };
        let ranks: Vec<RankRun> = parts.iter().enumerate().map(of).collect();
        let merged = merge_ranks(ranks.clone(), vec![lost(7), lost(6)]);
        prop_assert_eq!(&merge_ranks(ranks.iter().rev().cloned().collect(), vec![lost(6), lost(7)]), &merged);
        let ops: u64 = parts.iter().map(|(ops, ..)| ops).sum();
        prop_assert_eq!((merged.summary.ops, merged.flowops[0].ops, merged.flowops[0].bytes), (ops, ops, ops * 512));
        prop_assert_eq!(merged.intervals.iter().map(|interval| interval.flowops[0].ops).sum::<u64>(), ops);
        // Each rank has a constant rate, so that the rate in any time is at most the sum of their rates.
        let rates: f64 = parts.iter().map(|(ops, seconds, _)| *ops as f64 / *seconds as f64 + 1.0).sum();
        prop_assert!(merged.summary.ops_per_s <= rates, "{} {rates}", merged.summary.ops_per_s);
        let of_hosts: f64 = merged.hosts.iter().map(|host| host.summary.ops_per_s).sum();
        prop_assert!((of_hosts - merged.summary.ops_per_s).abs() <= 1e-6 * (1.0 + of_hosts));
        prop_assert!(merged.measured_seconds >= 0.0);
    }
}

#[test]
fn counts_are_summed() {
    let mut a = steady_run(100, 10);
    a.flowops[0].errors.insert("EIO".to_owned(), 2);
    (a.flowops[0].implicit_opens, a.flowops[0].open_ns_mean, a.flowops[0].calls) = (1, Some(100.0), 5);
    (a.flowops[0].starved_seconds, a.flowops[0].tool_ns_mean, a.flowops[0].listed_bytes) = (0.5, Some(10.0), 7);
    (a.late_ops, a.late_oldest_seconds, a.peak_memory, a.summary.errors) = (1, Some(0.5), 70, 2);
    a.dirty_bytes = Some(BeforeAfter { before: 10, after: 20 });
    let energy = |source: &str, joules| Some(Energy { source: source.to_owned(), joules });
    a.energy = energy("processors", 7.0);
    a.stragglers = vec![Straggler::default()];
    let mut b = steady_run(300, 10);
    b.flowops[0].errors.extend([("EIO".to_owned(), 1), ("ENOSPC".to_owned(), 4)]);
    (b.flowops[0].implicit_opens, b.flowops[0].open_ns_mean, b.flowops[0].calls) = (3, Some(200.0), 6);
    (b.flowops[0].starved_seconds, b.flowops[0].tool_ns_mean, b.flowops[0].listed_bytes) = (0.25, Some(30.0), 8);
    (b.late_ops, b.late_oldest_seconds, b.peak_memory, b.summary.errors) = (2, Some(0.25), 90, 5);
    b.dirty_bytes = Some(BeforeAfter { before: 12, after: 18 });
    (b.slab_bytes, b.energy) = (Some(BeforeAfter { before: 1, after: 2 }), energy("processors", 8.0));
    let ranks = vec![rank(0, "h1", a.clone()), rank(1, "h1", b.clone()), rank(2, "h2", b)];
    let mut unlike = ranks.clone();
    unlike[2].run.energy = energy("battery", 8.0);
    assert_eq!(merge_ranks(unlike.clone(), Vec::new()).energy, None);
    unlike[2].run.energy = None;
    assert_eq!(merge_ranks(unlike, Vec::new()).energy, None, "that of a host is unknown");
    let merged = merge_ranks(ranks, Vec::new());
    let flowop = &merged.flowops[0];
    assert_eq!(
        flowop.errors.clone().into_iter().collect::<Vec<_>>(),
        [("EIO".to_owned(), 4), ("ENOSPC".to_owned(), 8)]
    );
    assert_eq!((flowop.implicit_opens, flowop.calls, flowop.listed_bytes, flowop.instances), (7, 17, 23, 6));
    assert_eq!((flowop.open_ns_mean, flowop.starved_seconds), (Some(1_300.0 / 7.0), 1.0));
    assert_eq!(flowop.tool_ns_mean, Some(19_000.0 / 700.0));
    assert_eq!((merged.late_ops, merged.late_oldest_seconds, merged.peak_memory), (5, Some(0.5), 90));
    assert_eq!((merged.summary.errors, merged.summary.ops, merged.summary.ops_per_s), (12, 700, 70.0));
    assert_eq!((merged.threads, merged.processes), (6, 3));
    // The dirty pages of a host count once.
    assert_eq!(merged.dirty_bytes, Some(BeforeAfter { before: 24, after: 38 }));
    assert_eq!(merged.slab_bytes, Some(BeforeAfter { before: 2, after: 4 }));
    assert_eq!(merged.energy, energy("processors", 16.0));
    assert_eq!((merged.summary.user_seconds, merged.summary.system_seconds), (Some(3.0), Some(1.5)));
    assert_eq!(merged.stragglers[0].rank, Some(0));
    // Likewise the busy time of its processors: 4 s on each host. The own time is 1.5 s for each rank.
    assert!((merged.summary.system_cpu_us_per_op.unwrap() - 8e6 / 700.0).abs() < 1e-6);
    assert!((merged.summary.cpu_us_per_op.unwrap() - 4.5e6 / 700.0).abs() < 1e-6);
    assert_eq!(merged.hosts.iter().map(|host| host.summary.ops).collect::<Vec<_>>(), [400, 300]);
    assert_eq!(merged.hosts[0].ranks, [0, 1]);
}

#[test]
fn flowops_are_matched_by_name_and_position() {
    let mut a = run_of(&[snapshot(&[5; 10]), snapshot(&[5; 20])], 2);
    let mut b = a.clone();
    b.flowops.reverse();
    b.intervals.iter_mut().for_each(|interval| interval.flowops.reverse());
    // A second process with the same names.
    a.flowops.push(a.flowops[0].clone());
    a.intervals.iter_mut().for_each(|interval| interval.flowops.push(interval.flowops[0].clone()));
    let merged = merge_ranks(vec![rank(0, "h1", a), rank(1, "h1", b)], Vec::new());
    let found: Vec<(&str, u64)> = merged.flowops.iter().map(|flowop| (flowop.name.as_str(), flowop.ops)).collect();
    assert_eq!(found, [("op0", 20), ("op1", 40), ("op0", 10)]);
    let series = |n: usize| merged.intervals.iter().map(|interval| interval.flowops[n].ops).sum::<u64>();
    assert_eq!((series(0), series(1), series(2)), (20, 40, 10));
}

#[test]
fn rates_are_those_of_the_time_in_which_all_ranks_ran() {
    let with =
        |number, skew_ms: i64, run| RankRun { start_skew_ns: Some(skew_ms * 1_000_000), ..rank(number, "h1", run) };
    let codes = |run: &Run| -> Vec<&'static str> {
        let document = fixture();
        warnings::of(&document, run).iter().map(warnings::Warning::code).collect()
    };
    // Within one per cent: the sum of the rates.
    let merged = merge_ranks(vec![with(0, 0, steady_run(1_000, 10)), with(1, 50, steady_run(2_000, 10))], Vec::new());
    assert_eq!((merged.summary.ops_per_s, merged.measured_seconds), (300.0, 9.95));
    assert!(!codes(&merged).contains(&"ranks_overlap"));
    // The second rank starts 2.5 s later and runs 5 s, at twice the rate in its first second.
    let mut late = steady_run(1_000, 5);
    late.intervals[0].flowops[0].ops *= 2;
    late.intervals[4].flowops[0].ops = 0;
    let merged = merge_ranks(vec![with(0, 0, steady_run(1_000, 10)), with(1, 2_500, late.clone())], Vec::new());
    assert!((merged.summary.ops_per_s - (100.0 + 200.0)).abs() < 1e-9, "{}", merged.summary.ops_per_s);
    assert!((merged.flowops[0].ops_per_s - 300.0).abs() < 1e-9);
    assert_eq!((merged.measured_seconds, merged.summary.ops), (5.0, 2_000));
    assert!(codes(&merged).contains(&"ranks_overlap"));
    // It ends after the first rank, and of its first 2.5 s one second has twice the rate.
    let merged = merge_ranks(vec![with(0, -7_500, steady_run(1_000, 10)), with(1, 0, late)], Vec::new());
    assert_eq!((merged.measured_seconds, merged.summary.ops), (2.5, 2_000));
    assert!((merged.summary.ops_per_s - (100.0 + 700.0 / 2.5)).abs() < 1e-9, "{}", merged.summary.ops_per_s);
    // They never run together.
    let merged = merge_ranks(vec![with(0, 0, steady_run(10, 2)), with(1, 3_000, steady_run(10, 2))], Vec::new());
    assert_eq!((merged.measured_seconds, merged.summary.ops_per_s, merged.summary.ops), (0.0, 0.0, 20));
    assert!(codes(&merged).contains(&"ranks_overlap"));
}

/// A clock that gains a tenth shows 11 s in 10 s of rank 0.
#[test]
fn the_common_time_is_that_of_the_clock_of_rank_0() {
    let with_drift = |error_ppm| {
        let clock = RankClock { drift: Some(ClockDrift { ppm: 1e5, error_ppm }), ..RankClock::default() };
        let fast = RankRun { clock: Some(clock), ..rank(1, "h2", steady_run(1100, 11)) };
        merge_ranks(vec![rank(0, "h1", steady_run(1000, 20)), fast], Vec::new())
    };
    let merged = with_drift(10.0);
    assert!((merged.measured_seconds - 10.0).abs() < 1e-9, "{}", merged.measured_seconds);
    // All operations of rank 1, and half of those of rank 0.
    assert!((merged.summary.ops_per_s - 160.0).abs() < 1e-6, "{}", merged.summary.ops_per_s);
    assert_eq!(merged.ranks[1].clock_drift(), Some(ClockDrift { ppm: 1e5, error_ppm: 10.0 }));
    assert_eq!(merged.ranks[0].clock_drift(), None);
    assert!((overlap(&merged.ranks).unwrap().seconds - 10.0).abs() < 1e-9);
    // A drift within its error counts as none.
    assert!((with_drift(2e5).measured_seconds - 11.0).abs() < 1e-9);
}

#[test]
fn a_rank_without_threads_has_no_effect_on_rates() {
    let idle = Run { state: RunState::NothingDone, ended_by: "all threads done".to_owned(), ..Run::default() };
    let merged = merge_ranks(vec![rank(0, "h1", steady_run(1_000, 10)), rank(1, "h2", idle)], Vec::new());
    assert_eq!((merged.measured_seconds, merged.summary.ops_per_s, merged.state), (10.0, 100.0, RunState::Complete));
    assert_eq!(merged.ended_by, "time");
}

#[test]
fn rates_of_a_phase_refer_to_the_common_time_of_the_phase() {
    let phased = |first: f64| {
        let mut run = run_of(&[snapshot(&[5; 600]), snapshot(&[5; 600])], 6);
        run.flowops[1].phase = 2;
        let phase = |number, start, seconds| PhaseResult {
            number,
            start_seconds: Some(start),
            seconds,
            complete: true,
            ..PhaseResult::default()
        };
        run.phases = vec![phase(1, 0.0, first), phase(2, first, 6.0 - first)];
        for interval in &mut run.intervals {
            let (own, other) = if interval.t <= first { (0, 1) } else { (1, 0) };
            (interval.flowops[own].ops, interval.flowops[other].ops) = (100, 0);
        }
        run
    };
    let merged = merge_ranks(vec![rank(0, "h1", phased(2.0)), rank(1, "h1", phased(3.0))], Vec::new());
    let seconds: Vec<f64> = merged.phases.iter().map(|phase| phase.seconds).collect();
    assert_eq!(seconds, [2.0, 3.0]);
    assert_eq!(merged.phases[1].start_seconds, Some(3.0));
    let rates: Vec<f64> = merged.flowops.iter().map(|flowop| flowop.ops_per_s).collect();
    assert!(rates.iter().all(|rate| (rate - 200.0).abs() < 1e-9), "{rates:?}");
}

/// A phase has only a part of the intervals at its start and its end, with all of its operations in them.
#[test]
fn a_phase_may_begin_and_end_within_an_interval() {
    let phased = |number, seconds: f64| {
        let mut run = run_of(&[snapshot(&[5; 1000])], 4);
        run.flowops[0].phase = 2;
        let complete = true;
        run.phases =
            vec![PhaseResult { number: 2, start_seconds: Some(0.5), seconds, complete, ..PhaseResult::default() }];
        for interval in &mut run.intervals {
            let (from, to) = ((interval.t - interval.seconds).max(0.5), interval.t.min(0.5 + seconds));
            interval.flowops[0].ops = ((to - from).max(0.0) * 1000.0).round() as u64;
        }
        rank(number, "h1", run)
    };
    // A third rank has no thread in this phase.
    let other = rank(2, "h1", Run { phases: Vec::new(), ..run_of(&[snapshot(&[])], 4) });
    let merged = merge_ranks(vec![phased(0, 2.0), phased(1, 2.5), other], Vec::new());
    assert_eq!(merged.phases.iter().map(|phase| phase.seconds).collect::<Vec<_>>(), [2.0]);
    assert!((merged.flowops[0].ops_per_s - 2000.0).abs() < 1e-9, "{}", merged.flowops[0].ops_per_s);
}

/// Ranks that share a processor may do short work one after the other.
#[test]
fn work_of_ranks_at_different_times_has_a_rate() {
    let at = |number, start: f64| {
        let mut run = run_of(&[snapshot(&[5; 500])], 4);
        run.flowops[0].phase = 2;
        run.phases = vec![PhaseResult {
            number: 2,
            start_seconds: Some(start),
            seconds: 0.5,
            complete: true,
            ..PhaseResult::default()
        }];
        for interval in &mut run.intervals {
            let is_in_phase = (interval.t - interval.seconds - start.floor()).abs() < 0.1;
            interval.flowops[0].ops = if is_in_phase { 500 } else { 0 };
        }
        rank(number, "h1", run)
    };
    let merged = merge_ranks(vec![at(0, 1.0), at(1, 2.5)], Vec::new());
    assert!((merged.phases[0].seconds - 2.0).abs() < 1e-9, "{:?}", merged.phases);
    assert!((merged.flowops[0].ops_per_s - 500.0).abs() < 1e-9, "{}", merged.flowops[0].ops_per_s);
}

#[test]
fn the_worst_state_counts() {
    let with = |number, state, by: &str| {
        let failure =
            (state == RunState::Failed).then(|| RunFailure { what: "write: EIO".to_owned(), ..RunFailure::default() });
        rank(number, "h1", Run { state, ended_by: by.to_owned(), failure, ..steady_run(10, 1) })
    };
    let complete = || with(0, RunState::Complete, "time");
    let merged = merge_ranks(
        vec![complete(), with(1, RunState::Interrupted, "SIGINT"), with(2, RunState::Stuck, "no usable file")],
        Vec::new(),
    );
    assert_eq!((merged.state, merged.ended_by.as_str()), (RunState::Stuck, "rank 2 on `h1`: no usable file"));
    let failed = vec![complete(), with(2, RunState::Failed, "an error"), with(4, RunState::Failed, "an error")];
    let merged = merge_ranks(failed.clone(), Vec::new());
    assert_eq!((merged.state, merged.ended_by.as_str()), (RunState::Failed, "rank 2 on `h1`: an error"));
    assert_eq!(merged.failure.unwrap().what, "rank 2 on `h1`: write: EIO");
    // A lost rank has failed; the lowest number counts.
    assert_eq!(merge_ranks(failed.clone(), vec![lost(3)]).ended_by, "rank 2 on `h1`: an error");
    let merged = merge_ranks(failed, vec![lost(5), lost(1)]);
    assert_eq!(
        (merged.state, merged.ended_by.as_str()),
        (RunState::Failed, "rank 1 on `h9` has not answered for 30 s")
    );
    assert_eq!(merged.failure.unwrap().what, merged.ended_by);
    assert_eq!(merged.lost_ranks.iter().map(|lost| lost.rank).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(merge_ranks(vec![complete()], vec![lost(1)]).state, RunState::Failed);
    assert_eq!(merge_ranks(Vec::new(), vec![lost(0)]).state, RunState::Failed);
    let both = vec![with(0, RunState::Interrupted, "SIGINT"), with(1, RunState::Interrupted, "SIGINT")];
    assert_eq!(merge_ranks(both, Vec::new()).ended_by, "SIGINT");
}

#[test]
fn a_missing_histogram_leaves_no_percentiles() {
    let (mut a, b) = (steady_run(100, 1), run_of(&[snapshot(&[5_000; 300])], 1));
    a.flowops[0].response_ns = Some(a.flowops[0].latency_ns);
    a.flowops[0].histogram.clear();
    let merged = merge_ranks(vec![rank(0, "h1", a), rank(1, "h1", b)], Vec::new());
    let latency = merged.flowops[0].latency_ns;
    assert_eq!((latency.min, latency.max, latency.mean, latency.p50), (Some(1_000), Some(5_000), Some(4_000.0), None));
    assert_eq!(merged.flowops[0].histogram, "");
    assert!(merged.summary.latency_ns.p99.is_some(), "the summary has a histogram");
    // The response times of the first rank have none either.
    let response = merged.flowops[0].response_ns.unwrap();
    assert_eq!((response.mean, response.p99, merged.flowops[0].response_histogram.as_str()), (Some(1_000.0), None, ""));
}

#[test]
fn warnings_of_storage_and_processors_are_those_of_a_host() {
    let mut document = of_ranks();
    let codes = |document: &crate::Document| -> Vec<&'static str> {
        warnings::of(document, &document.runs[0]).iter().map(warnings::Warning::code).collect()
    };
    let before = codes(&document);
    assert!(!before.contains(&"fits_in_memory") && !before.contains(&"processor_bound"), "{before:?}");
    // All files together do not fit in memory, those of one host do.
    document.runs[0].hosts[1].filesets[0].bytes = 1 << 30;
    document.runs[0].hosts[1].summary.cpu_busy = Some(0.99);
    let added: Vec<&str> = codes(&document).into_iter().filter(|code| !before.contains(code)).collect();
    assert_eq!(added, ["fits_in_memory", "processor_bound"]);
    let found = warnings::of(&document, &document.runs[0]);
    let text = found.iter().find(|warning| warning.code() == "processor_bound").unwrap().message();
    assert!(text.starts_with("all processors of `h2` were 99 % busy"), "{text}");
}

#[test]
fn many_ranks_with_many_flowops_are_merged() {
    let snapshots: Vec<Snapshot> =
        (0..31).map(|n| snapshot(&(1..200).map(|x| x * x * (n + 1)).collect::<Vec<_>>())).collect();
    let run = run_of(&snapshots, 60);
    let ranks: Vec<RankRun> = (0..64).map(|n| rank(n, &format!("h{}", n / 8), run.clone())).collect();
    let merged = merge_ranks(ranks, Vec::new());
    assert_eq!((merged.flowops.len(), merged.hosts.len(), merged.ranks.len()), (31, 8, 64));
    assert!(merged.flowops.iter().all(|flowop| flowop.ops == 199 * 64));
    assert_eq!(merged.summary.ops, 199 * 64 * 31);
    assert_eq!(merged.flowops[3].latency_ns.p99, run.flowops[3].latency_ns.p99);
}

#[test]
fn runs_are_sent_as_json() {
    let ranks = rank_runs();
    let text = String::from_utf8(json::to_bytes(&ranks)).unwrap();
    assert_eq!(bounded::from_str::<Vec<RankRun>>(&text, &Budget::unlimited()).unwrap(), ranks);
}

#[test]
fn what_was_asked_of_a_lost_rank_stays_offered() {
    let open = |phases: Vec<PhaseResult>, rates: &[(u32, f64)]| {
        let mut run = steady_run(100, 10);
        run.open_loop = Some(OpenLoop { offered_per_s: 50.0, achieved_per_s: 50.0, ..OpenLoop::default() });
        run.phases = phases;
        let first = RankRun { rank_rates: vec![rates.to_vec(); 3], ..rank(0, "h1", run) };
        merge_ranks(vec![first], vec![lost(1), lost(2)]).open_loop.unwrap()
    };
    let merged = open(Vec::new(), &[(1, 25.0)]);
    assert_eq!((merged.offered_per_s, merged.achieved_per_s), (100.0, 50.0));
    assert_eq!((merged.backlog, merged.lost), (500, 500), "50 a second of two ranks for 10 s");
    // Without `totalrate=` each rank has a rate of its own.
    assert!((open(Vec::new(), &[]).offered_per_s - 50.0).abs() < 1e-9);
    // 30 a second for 2 s, 10 for 8 s.
    let phase = |number, seconds| PhaseResult { number, seconds, ..PhaseResult::default() };
    let phased = open(vec![phase(1, 2.0), phase(2, 8.0)], &[(1, 30.0), (2, 10.0)]);
    assert!((phased.offered_per_s - (50.0 + 2.0 * 14.0)).abs() < 1e-9);
}
