//! Tests that a change of the system is found as the first cause that docs/compare.md names for it.

#![allow(clippy::unwrap_used)]
use super::build::tests::comparer;
use super::{ComparisonVerdict, RunOrder, Runs};
use crate::import::{Observation, of_run};
use crate::result::fixture::fixture;
use crate::result::{DeviceBytes, Document, FlowopResult, Run};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The number of comparisons for each change.
const COMPARISONS: u64 = 20;

/// The number of comparisons in which the expected cause must be the first. The others are false alarms of other
/// figures.
const MIN_FIRST: u64 = 18;

/// The bytes that the operations read.
const ASKED: u64 = 1 << 30;

/// What a change of the system does to a run.
type SystemChange = fn(&mut Run);

/// Changes of the system, with the names that docs/compare.md gives them, and what they do to a run of B.
const CHANGES: [(&str, SystemChange); 11] = [
    ("a cold page cache (`--cold`)", |run| {
        run.filesets[0].resident_before = Some(0.0);
        device(run).read += ASKED / 40;
        processor(run, 1.1);
    }),
    ("half the memory", |run| {
        run.filesets[0].resident_before = Some(0.5);
        device(run).read += ASKED / 2;
        // The readers wait for the device. The other threads do not, so that the shares of all operations change.
        run.flowops[0].ops /= 10;
        run.summary.ops = run.flowops[0].ops + run.flowops[1].ops;
        processor(run, 1.5);
    }),
    ("direct I/O of reads", |run| {
        device(run).read = ASKED;
        processor(run, 1.4);
    }),
    ("direct I/O of writes", |run| {
        device(run).written *= 8;
        processor(run, 1.2);
    }),
    ("one more fsync", |run| {
        let sync = sync(&run.flowops[1]);
        run.flowops.push(sync);
        device(run).written *= 9;
        processor(run, 1.1);
    }),
    ("`strictatime` instead of `noatime`", |run| {
        device(run).written *= 9;
        processor(run, 1.1);
    }),
    ("operations that fail", |run| {
        run.summary.errors = run.summary.ops / 50;
        processor(run, 0.8);
    }),
    ("too few open files in the script", |run| {
        run.flowops[0].implicit_opens = run.flowops[0].ops / 2;
        processor(run, 1.5);
    }),
    ("checksums or compression", |run| processor(run, 1.5)),
    ("another program beside B", |run| {
        run.summary.system_cpu_us_per_op = run.summary.system_cpu_us_per_op.map(|us| us * 2.0);
    }),
    ("an open loop that is too fast", |run| {
        let late = run.flowops[0].lateness_ns.as_mut().unwrap();
        late.mean = late.mean.map(|ns| ns * 50.0);
    }),
];

fn device(run: &mut Run) -> &mut DeviceBytes {
    run.filesets[0].device_bytes.as_mut().unwrap()
}

/// Multiplies the processor time of the program.
fn processor(run: &mut Run, factor: f64) {
    let summary = &mut run.summary;
    let own = summary.cpu_us_per_op.unwrap();
    summary.cpu_us_per_op = Some(own * factor);
    summary.system_cpu_us_per_op = summary.system_cpu_us_per_op.map(|all| all + own * (factor - 1.0));
}

fn sync(like: &FlowopResult) -> FlowopResult {
    FlowopResult { name: "sync".to_owned(), kind: "fsync".to_owned(), ..like.clone() }
}

/// Returns a run of an OLTP-like workload whose files are in memory. Its figures scatter as those of real runs.
fn run(document: &Document, rng: &mut Xoshiro256PlusPlus, change: SystemChange) -> Observation {
    let mut run = document.runs[0].clone();
    let mut vary = |value: f64, share: f64| value * (1.0 + share * rng.random_range(-1.0..1.0));
    run.filesets[0].asked_bytes.read = ASKED;
    run.filesets[0].resident_before = Some(1.0);
    run.filesets[0].device_bytes =
        Some(DeviceBytes { read: vary(200_000.0, 1.0) as u64, written: vary(30e6, 0.2) as u64 });
    run.summary.cpu_us_per_op = Some(vary(5.0, 0.05));
    run.summary.system_cpu_us_per_op = Some(vary(8.0, 0.1));
    run.flowops[0].implicit_opens = 20;
    run.flowops[0].lateness_ns = Some(run.flowops[0].latency_ns);
    run.flowops[0].lateness_ns.as_mut().unwrap().mean = Some(vary(9_000.0, 0.3));
    let first = sync(&run.flowops[1]);
    run.flowops.push(first);
    change(&mut run);
    of_run(document, &run, "x")
}

/// Returns the first cause in each of the comparisons.
fn first_causes(change: SystemChange) -> Vec<String> {
    let document = fixture();
    let first = |seed| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut side = |change, rate: f64| -> Vec<Observation> {
            let mut runs: Vec<_> = (0..12).map(|_| run(&document, &mut rng, change)).collect();
            runs.iter_mut().for_each(|run| run.figures.insert("ops".to_owned(), rate).map_or((), drop));
            runs
        };
        let (a, b) = (side(|_| {}, 100.0), side(change, 80.0));
        let runs = Runs { a: &a, b: &b, order: RunOrder::Blocks };
        let found = comparer("ops").compare(&runs).unwrap();
        assert_eq!(found.verdict, ComparisonVerdict::Worse);
        found.causes.first().map_or_else(String::new, |cause| cause.name.clone())
    };
    (0..COMPARISONS).map(first).collect()
}

/// The rows of the table in docs/compare.md: what changed, and the figure that is the first cause.
fn documented() -> Vec<(String, String)> {
    let text = include_str!("../../docs/compare.md");
    let table = text.split("| what differs between A and B |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].to_owned(), cells[2].trim_matches('`').to_owned())
    })
    .collect()
}

#[test]
fn a_change_of_the_system_has_the_documented_cause() {
    let documented = documented();
    let names: Vec<&str> = documented.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, CHANGES.map(|(name, _)| name), "the table in docs/compare.md has the same changes");
    for ((name, expected), (_, change)) in documented.iter().zip(CHANGES) {
        let found = first_causes(change);
        let right = found.iter().filter(|cause| *cause == expected).count() as u64;
        assert!(right >= MIN_FIRST, "{name}: {expected} is first in {right} of {COMPARISONS}: {found:?}");
    }
}

#[test]
fn equal_systems_have_no_cause() {
    let found = first_causes(|_| {});
    let none = found.iter().filter(|cause| cause.is_empty()).count() as u64;
    assert!(none >= MIN_FIRST, "{found:?}");
}
