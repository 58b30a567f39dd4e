//! A result for tests: three flowops of an OLTP-like workload on ext4, with realistic latencies.
//!
//! All values are computed and deterministic. Tests change the fields that they examine.

use super::LostRank;
use super::build;
use super::environment::{ClockInfo, Cpu, Device, Memory, MountInfo, Uname};
use super::ranks::{RankRun, merge_ranks};
use super::snapshot::{Dist, Snapshot};
use super::{
    BeforeAfter, CacheState, CpuTime, DeviceBytes, Document, Environment, FilesetResult, FlowopClass, FlowopCounter,
    FlowopResult, Interval, Note, Run, RunEnvironment, Script, Warmup,
};
use serde_json::json;
use std::collections::BTreeMap;

/// Returns a document with one run of 60 seconds.
pub(crate) fn fixture() -> Document {
    Document {
        tool: super::Tool { name: "wmlrun".into(), version: "0.1.0".into(), commit: Some("a1b2c3d4e".into()) },
        command_line: ["wmlrun", "--json", "out.json", "oltp_sync.wml"].map(Into::into).to_vec(),
        label: Some("before the upgrade".into()),
        note: Some("kernel 6.1, write cache of the disk on".into()),
        process_id: 10253,
        script: Script {
            path: "oltp_sync.wml".into(),
            text: "# dialect: sun\nset $dir=/mnt/test\n".into(),
            sha256: "74f05da47dd5ab5b2fbf2f2f4b4b8c24dcf0d6c0e3d70a4a4bb9b44b8f4b7d55".into(),
            dialect: "sun".into(),
            dialect_reason: "the line `# dialect: sun`".into(),
        },
        seed: 42,
        layout_seed: 1,
        environment: environment(),
        complete: true,
        runs: vec![run()],
        ..Document::default()
    }
}

/// Returns the snapshots of the fixture's flowops: reads (fast, with a slow tail), synchronous writes, semaphore posts.
pub(crate) fn snapshots() -> [Snapshot; 3] {
    let mut read = snapshot(827_580, 2_048, |x| 1_900.0 * (1.0 - x).powf(-0.45), 48);
    read[FlowopCounter::Opens] = 20;
    read[FlowopCounter::OpenTime] = 20 * 14_300;
    let mut write = snapshot(8_040, 4_096, |x| 610_000.0 * (1.0 + x) + 9e6 * x.powi(60), 61);
    write[FlowopCounter::LateOps] = 1;
    write[FlowopCounter::LateBytes] = 4_096;
    write.errors.insert(28, 3);
    write[FlowopCounter::StarvedTime] = 120_000_000;
    [read, write, snapshot(827_580, 0, |x| 95.0 + 40.0 * x, 0)]
}

pub(crate) fn run() -> Run {
    const SECONDS: f64 = 60.0;
    let identity = |i: usize, process: &str, name: &str, kind: &str, class, instances| FlowopResult {
        class,
        reads: kind == "read",
        writes: kind == "write",
        line: 20 + 2 * i as u64,
        instances,
        ..build::identity(process, process, usize::from(i == 2), name, kind)
    };
    let identities = [
        identity(0, "shadow", "shadowread", "read", FlowopClass::Io, 200),
        identity(1, "dbwr", "dbwrite-a", "write", FlowopClass::Io, 10),
        identity(2, "shadow", "shadow-post-dbwr", "sempost", FlowopClass::Sync, 200),
    ];
    let snapshots = snapshots();
    let parts = || identities.iter().zip(&snapshots);
    let cpu =
        CpuTime { own_seconds: Some((5.4, 2.5)), system_seconds: Some(11.3), kernel_seconds: Some(0.4), processors: 8 };
    let mut run = Run {
        ended_by: "time".into(),
        started_at: "2026-08-24T09:30:00Z".into(),
        finished_seconds: 74.021,
        requested_seconds: Some(SECONDS),
        measured_seconds: SECONDS,
        environment: run_environment(),
        variables: BTreeMap::from([("dir".into(), json!("/mnt/test")), ("nshadows".into(), json!(200))]),
        engine: "posix".into(),
        processes: 2,
        threads: 210,
        pinned_processors: Some(vec![0, 2]),
        descriptor_tables: "close_range".into(),
        warmup: Some(Warmup {
            seconds: 5.0,
            ops: 69_000,
            bytes: 144_000_000,
            intervals: intervals(&snapshots)[..1].to_vec(),
        }),
        overhead_ns_per_op: Some(38.0),
        peak_memory: 21 << 20,
        late_ops: 1,
        late_oldest_seconds: Some(0.004),
        cache_state: CacheState::AsIs,
        dirty_bytes: Some(BeforeAfter { before: 1 << 20, after: 9 << 20 }),
        quiesced: Some(true),
        summary: build::summary(parts(), SECONDS, cpu),
        flowops: parts().map(|(identity, s)| build::flowop(identity.clone(), s, SECONDS)).collect(),
        filesets: vec![FilesetResult {
            name: "datafiles".into(),
            path: "/mnt/test/datafiles".into(),
            layout: BTreeMap::from([("entries".into(), json!(10)), ("dirwidth".into(), json!(1024))]),
            files: 10,
            directories: 1,
            bytes: 100 << 30,
            populate_seconds: Some(8.2),
            sync_seconds: Some(0.7),
            resident_before: Some(0.31),
            resident_before_interval: Some([0.29, 0.33]),
            ..FilesetResult::default()
        }],
        intervals: intervals(&snapshots),
        ..Run::default()
    };
    run.name_intervals();
    run
}

/// Returns the runs of ranks 0 to 2 on the hosts `h1` and `h2`. Rank 2 is slower, and has a note of its own.
pub(crate) fn rank_runs() -> Vec<RankRun> {
    let rank = |(number, skew_ns): (u64, i64)| {
        let host = if number < 2 { "h1" } else { "h2" };
        let mut run = run();
        run.flowops[1].errors.clear();
        if number == 2 {
            slow_down(&mut run);
            run.warnings.push(Note { code: "exhausted".into(), message: "1 thread ended early".into() });
        }
        let mut environment = environment();
        environment.uname.nodename = host.into();
        RankRun {
            rank: number,
            host: host.into(),
            start_skew_ns: Some(skew_ns),
            clock_error_ns: Some(15_000),
            clock: None,
            environment,
            rank_rates: vec![vec![(1, 25.5)]; 3],
            run,
        }
    };
    [(0, 40_000), (1, -20_000), (2, 210_000)].map(rank).to_vec()
}

/// Gives a run three quarters of its operations. Latencies and time series are unchanged.
fn slow_down(run: &mut Run) {
    let reduce = |(ops, bytes): (&mut u64, &mut u64), rates: [&mut f64; 2]| {
        [ops, bytes].into_iter().for_each(|count| *count = *count / 4 * 3);
        rates.into_iter().for_each(|rate| *rate *= 0.75);
    };
    for flowop in &mut run.flowops {
        reduce((&mut flowop.ops, &mut flowop.bytes), [&mut flowop.ops_per_s, &mut flowop.mib_per_s]);
    }
    let all = &mut run.summary;
    reduce((&mut all.ops, &mut all.bytes), [&mut all.ops_per_s, &mut all.mib_per_s]);
    (all.reads_per_s, all.writes_per_s) = (all.reads_per_s * 0.75, all.writes_per_s * 0.75);
}

/// Returns the fixture as the document of four ranks on two hosts, of which rank 3 was lost.
pub(crate) fn of_ranks() -> Document {
    let why = "has not answered for 30 s".into();
    let lost = LostRank { rank: 3, host: "h2".into(), why };
    Document { runs: vec![merge_ranks(rank_runs(), vec![lost])], ..fixture() }
}

fn intervals(snapshots: &[Snapshot]) -> Vec<Interval> {
    let tenth = |s: &Snapshot| Snapshot {
        ops: s.ops / 10,
        bytes: s.bytes / 10,
        latency: Dist::from_counts(s.latency.recorded().map(|(i, n)| (i, n / 10))),
        ..Snapshot::default()
    };
    let tenths: Vec<Snapshot> = snapshots.iter().map(tenth).collect();
    (1..=10).map(|i| build::interval(6.0 * f64::from(i), 6.0, &tenths)).collect()
}

/// Returns a snapshot of `ops` operations with latencies from a quantile function and a constant time for picking
/// files.
fn snapshot(ops: u64, bytes: u64, quantile: impl Fn(f64) -> f64, tool_ns: u64) -> Snapshot {
    // Distribute the operations over 2,000 points of the function: fast, and includes the tail.
    const POINTS: u64 = 2_000;
    let mut latency = Dist::default();
    for i in 0..POINTS {
        let share = ops * (i + 1) / POINTS - ops * i / POINTS;
        let ns = quantile((i as f64 + 0.5) / POINTS as f64) as u64;
        latency.merge(&Dist::from_counts([(super::layout::index(ns), share)]));
    }
    let mut snapshot = Snapshot { ops, bytes: bytes * ops, latency, ..Snapshot::default() };
    snapshot[FlowopCounter::ToolTime] = tool_ns * ops;
    snapshot
}

fn environment() -> Environment {
    Environment {
        uname: Uname {
            sysname: "Linux".into(),
            nodename: "bench".into(),
            release: "6.18.0".into(),
            version: "#1 SMP".into(),
            machine: "x86_64".into(),
        },
        kernel_command_line: Some("root=/dev/nvme0n1p1 ro mitigations=off".into()),
        cpu: Cpu { model: "Some Processor".into(), count: 8 },
        memory: Memory { total: 16 << 30, available: 12 << 30 },
        clock: ClockInfo { name: "tsc".into(), cost_ns: 10.8 },
        limits: BTreeMap::from([("nofile".into(), Some(1_048_576)), ("nproc".into(), None)]),
        other: BTreeMap::from([("governor".into(), json!("performance"))]),
    }
}

fn run_environment() -> RunEnvironment {
    RunEnvironment {
        memory_available: 12 << 30,
        mounts: vec![MountInfo {
            path: "/mnt/test".into(),
            source: "/dev/nvme0n1p2".into(),
            kind: "ext4".into(),
            options: "rw,relatime".into(),
            features: Some(vec!["has_journal".into(), "extent".into()]),
            parameters: BTreeMap::from([("block_size".into(), json!(4096)), ("journal".into(), json!("internal"))]),
            total: 400 << 30,
            free: 290 << 30,
            free_after: Some(289 << 30),
            devices: vec![Device {
                name: "nvme0n1".into(),
                level: Some(1),
                identity: "eui.0025385b71b0c0de".into(),
                model: "Some Disk".into(),
                size: 512 << 30,
                rotational: Some(false),
                scheduler: "none".into(),
                queue: BTreeMap::from([
                    ("read_ahead_kb".into(), json!(128)),
                    ("write_cache".into(), json!("write back")),
                ]),
                transferred: Some(DeviceBytes { read: 5 << 30, written: 1 << 20 }),
                direct_io: None,
            }],
        }],
        other: BTreeMap::from([("load".into(), json!("0.10 0.08 0.05 1/412 10253"))]),
    }
}
