//! Computes the figures of a result from snapshots of counters. Pure functions: no clock, no system calls.

use super::flowop_result::{COUNTED, CounterField};
use super::{CpuTime, FlowopClass, FlowopCounter, FlowopResult, Interval, IntervalFlowop, Latency, Summary};
use crate::hdr::{self, Quantiles};
use crate::snapshot::{Dist, Snapshot};
use wml_os::errno_name;
use wml_text::size::MIB;

/// Returns the figures of a distribution; all `None` if it is empty.
pub fn latency(dist: &Dist) -> Latency {
    if dist.count == 0 {
        return Latency::default();
    }
    let q = Quantiles::of(dist);
    Latency {
        min: Some(dist.min),
        mean: dist.mean(),
        stddev: Some(q.stddev()),
        max: Some(dist.max),
        ..Latency::default()
    }
    .with_percentiles(|quantile| q.at(quantile))
}

/// Returns the result of a flowop: `identity` (process, thread, name, class, line…) with its figures from `snapshot`.
/// `seconds` is the measured time.
pub fn flowop(identity: FlowopResult, snapshot: &Snapshot, seconds: f64) -> FlowopResult {
    let each = |total: u64, n: u64| (n > 0).then(|| total as f64 / n as f64);
    let commands = snapshot[FlowopCounter::UserTime] + snapshot[FlowopCounter::SystemTime];
    let of_commands = |part: FlowopCounter| (commands > 0).then(|| snapshot[part] as f64 / 1e9);
    let mut result = FlowopResult {
        ops: snapshot.ops,
        ops_per_s: rate(snapshot.ops, seconds),
        bytes: snapshot.bytes,
        mib_per_s: rate(snapshot.bytes, seconds) / MIB,
        open_ns_mean: each(snapshot[FlowopCounter::OpenTime], snapshot[FlowopCounter::Opens]),
        errors: snapshot.errors.iter().map(|(errno, n)| (errno_name(*errno), *n)).collect(),
        starved_seconds: snapshot[FlowopCounter::StarvedTime] as f64 / 1e9,
        tool_ns_mean: each(snapshot[FlowopCounter::ToolTime], snapshot.ops),
        command_user_seconds: of_commands(FlowopCounter::UserTime),
        command_system_seconds: of_commands(FlowopCounter::SystemTime),
        latency_ns: latency(&snapshot.latency),
        response_ns: snapshot.response.as_ref().map(latency),
        response_histogram: snapshot.response.as_ref().map(hdr::encode).unwrap_or_default(),
        lateness_ns: snapshot.lateness.as_ref().map(latency),
        lateness_histogram: snapshot.lateness.as_ref().map(hdr::encode).unwrap_or_default(),
        histogram: hdr::encode(&snapshot.latency),
        ..identity
    };
    for CounterField { counter, field, .. } in COUNTED {
        *field(&mut result) = snapshot[*counter];
    }
    result
}

/// Returns the summary of a run from its flowops and their snapshots. Includes the classes `io` and `aio`, as Filebench
/// does, and the errors of all classes.
pub fn summary<'a>(
    parts: impl IntoIterator<Item = (&'a FlowopResult, &'a Snapshot)>,
    seconds: f64,
    cpu: CpuTime,
) -> Summary {
    let mut all = Snapshot::default();
    let (mut reads, mut writes, mut errors) = (0, 0, 0);
    let mut commands_ns = [0, 0];
    for (flowop, snapshot) in parts {
        errors += snapshot.failed();
        commands_ns[0] += snapshot[FlowopCounter::UserTime];
        commands_ns[1] += snapshot[FlowopCounter::SystemTime];
        if flowop.class.is_io() {
            reads += if flowop.reads { snapshot.ops } else { 0 };
            writes += if flowop.writes { snapshot.ops } else { 0 };
            all.merge(snapshot);
        }
    }
    Summary {
        ops: all.ops,
        ops_per_s: rate(all.ops, seconds),
        reads_per_s: rate(reads, seconds),
        writes_per_s: rate(writes, seconds),
        bytes: all.bytes,
        mib_per_s: rate(all.bytes, seconds) / MIB,
        listed_bytes: all[FlowopCounter::ListedBytes],
        latency_ms: all.mean().map(|ns| ns / 1e6),
        latency_ns: latency(&all.latency),
        histogram: hdr::encode(&all.latency),
        errors,
        ..Summary::default()
    }
    .with_processors(cpu, seconds, commands_ns)
}

/// Returns an interval of the time series from the differences of the counters in it ([`Snapshot::minus`]).
///
/// `t` is its end, in seconds since measuring began; `seconds` is its length.
pub fn interval<'a>(t: f64, seconds: f64, deltas: impl IntoIterator<Item = &'a Snapshot>) -> Interval {
    let flowops = deltas.into_iter().map(|delta| interval_flowop(delta.ops, delta.bytes, &delta.latency));
    Interval { t, seconds, flowops: flowops.collect() }
}

/// Returns the figures of a flowop in an interval, without its name ([`crate::Run::name_intervals`] adds it).
pub(crate) fn interval_flowop(ops: u64, bytes: u64, latency: &Dist) -> IntervalFlowop {
    let q = (latency.count > 0).then(|| Quantiles::of(latency));
    IntervalFlowop {
        name: String::new(),
        ops,
        bytes,
        mean_ns: latency.mean(),
        p50_ns: q.as_ref().map(|q| q.at(0.5)),
        p99_ns: q.as_ref().map(|q| q.at(0.99)),
    }
}

/// Returns the identity of a flowop, for [`flowop`]: names, index and kind.
pub fn identity(process: &str, thread: &str, index: usize, name: &str, kind: &str) -> FlowopResult {
    FlowopResult {
        process: process.to_owned(),
        thread: thread.to_owned(),
        index: index as u64,
        name: name.to_owned(),
        kind: kind.to_owned(),
        class: FlowopClass::Other,
        ..FlowopResult::default()
    }
}

fn rate(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{CpuTime, flowop, identity, interval, latency, summary};
    use crate::divided_times;
    use crate::snapshot::{Dist, Snapshot};
    use crate::{FlowopClass, FlowopCounter, FlowopResult, Latency};

    fn snapshot(ops: u64, ns: u64, bytes: u64) -> Snapshot {
        let mut latency = Dist::default();
        (0..ops).for_each(|_| latency.record(ns));
        Snapshot { ops, bytes: bytes * ops, latency, ..Snapshot::default() }
    }

    fn of(class: FlowopClass, reads: bool, writes: bool) -> FlowopResult {
        FlowopResult { class, reads, writes, ..identity("p", "t", 0, "n", "k") }
    }

    #[test]
    fn the_summary_counts_io_only_and_merges_latency() {
        let parts = [
            (of(FlowopClass::Io, true, false), snapshot(30, 1_000, 1 << 20)),
            (of(FlowopClass::Aio, false, true), snapshot(10, 5_000, 1 << 20)),
            (of(FlowopClass::Io, false, false), snapshot(10, 3_000, 0)),
            (of(FlowopClass::Sync, true, true), snapshot(999, 77, 5)),
        ];
        let cpu = CpuTime {
            own_seconds: Some((0.075, 0.025)),
            system_seconds: Some(0.2),
            kernel_seconds: None,
            processors: 2,
        };
        let s = summary(parts.iter().map(|(f, s)| (f, s)), 10.0, cpu);
        assert_eq!((s.ops, s.bytes), (50, 40 << 20));
        assert_eq!((s.ops_per_s, s.reads_per_s, s.writes_per_s, s.mib_per_s), (5.0, 3.0, 1.0, 4.0));
        assert!((s.latency_ms.unwrap() - 0.0022).abs() < 1e-12);
        assert_eq!((s.latency_ns.min, s.latency_ns.max), (Some(1_000), Some(5_000)));
        assert!((s.cpu_us_per_op.unwrap() - 2_000.0).abs() < 1e-9);
        assert_eq!((s.user_seconds, s.system_seconds), (Some(0.075), Some(0.025)));
        assert!((s.system_cpu_us_per_op.unwrap() - 4_000.0).abs() < 1e-9);
        assert!((s.cpu_busy.unwrap() - 0.01).abs() < 1e-12);
    }

    /// A run of 0.4 s has forty clock ticks.
    #[test]
    fn too_few_clock_ticks_give_no_share_of_the_processors() {
        let busy = |seconds: f64| {
            let cpu =
                CpuTime { system_seconds: Some(0.0), kernel_seconds: Some(0.0), processors: 8, ..CpuTime::default() };
            let found = summary([(&of(FlowopClass::Io, true, false), &snapshot(5, 10, 1))], seconds, cpu);
            [found.cpu_busy, found.kernel_busy, found.system_cpu_us_per_op]
        };
        assert_eq!((busy(0.4), busy(0.6)), ([None; 3], [Some(0.0); 3]));
    }

    #[test]
    fn too_few_clock_ticks_do_not_divide_processor_time() {
        assert_eq!([divided_times(0.04, 0.05), divided_times(0.0, 0.0)], [None; 2]);
        assert_eq!(divided_times(0.0, 0.1), Some((0.0, 0.1)));
    }

    #[test]
    fn without_operations_figures_are_absent_and_rates_zero() {
        let unknown = summary([(&of(FlowopClass::Io, true, false), &snapshot(5, 10, 1))], 1.0, CpuTime::default());
        assert_eq!((unknown.ops, unknown.cpu_us_per_op, unknown.system_cpu_us_per_op), (5, None, None));
        let s = summary([], 0.0, CpuTime::default());
        assert_eq!((s.ops, s.ops_per_s, s.latency_ms, s.cpu_us_per_op, s.cpu_busy), (0, 0.0, None, None, None));
        let f = flowop(identity("p", "t", 1, "n", "k"), &Snapshot::default(), 10.0);
        assert_eq!((f.latency_ns, f.tool_ns_mean, f.open_ns_mean), (Latency::default(), None, None));
        assert_eq!(latency(&Dist::default()), Latency::default());
    }

    #[test]
    fn a_flowop_keeps_its_identity_and_gets_its_figures() {
        let mut s = snapshot(4, 2_000, 512);
        s.errors.insert(28, 3);
        s[FlowopCounter::ToolTime] = 400;
        s[FlowopCounter::Opens] = 2;
        s[FlowopCounter::OpenTime] = 9_000;
        s.response = Some(s.latency.clone());
        let f = flowop(of(FlowopClass::Io, true, false), &s, 2.0);
        assert_eq!((f.process.as_str(), f.class, f.reads), ("p", FlowopClass::Io, true));
        assert_eq!((f.ops, f.ops_per_s, f.tool_ns_mean, f.open_ns_mean), (4, 2.0, Some(100.0), Some(4_500.0)));
        assert_eq!(f.errors.get("ENOSPC"), Some(&3));
        assert_eq!(f.response_ns.unwrap().max, Some(2_000));
        assert!(f.lateness_ns.is_none());
    }

    #[test]
    fn an_interval_holds_its_own_operations_only() {
        let (early, mut all) = (snapshot(10, 1_000, 1), snapshot(10, 1_000, 1));
        all.merge(&snapshot(5, 9_000, 1));
        let i = interval(2.0, 1.0, [&all.minus(&early), &Snapshot::default()]);
        assert_eq!((i.flowops[0].ops, i.flowops[0].mean_ns), (5, Some(9_000.0)));
        assert_eq!((i.flowops[1].ops, i.flowops[1].p50_ns), (0, None));
    }
}
