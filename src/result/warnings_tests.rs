//! Tests of the warnings: their conditions and their texts.

#![allow(clippy::unwrap_used)]

use super::{CODES, Warning, note, of};
use crate::fixture::fixture;
use crate::{
    BeforeAfter, CacheState, DeviceBytes, Document, FlowopClass, FlowopResult, MEASURE, Note, OpenLoop, PhaseResult,
    RankResult, RunState, Steadiness, Verdict,
};

/// Returns the fixture without what causes a warning: errors, and a flowop with too few operations for its p99.
fn sound() -> Document {
    let mut document = fixture();
    document.runs[0].flowops[1].errors.clear();
    document.runs[0].flowops[1].ops = 10_000;
    assert_eq!(of(&document, &document.runs[0]), []);
    document
}

/// Returns the only warning of a sound document after a change.
fn after(change: impl FnOnce(&mut Document)) -> Warning {
    let mut document = sound();
    change(&mut document);
    let found = of(&document, &document.runs[0]);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

/// Gives the run two ranks, with these measured times in seconds.
fn ranks(document: &mut Document, seconds: [f64; 2]) {
    let rank = |measured_seconds| RankResult { threads: 1, measured_seconds, ..RankResult::default() };
    document.runs[0].ranks = seconds.map(rank).to_vec();
}

/// A phase that began at this time.
fn begun(number: u64, start: f64) -> PhaseResult {
    PhaseResult { number, start_seconds: Some(start), ..PhaseResult::default() }
}

/// A phase that did not begin.
fn not_begun(number: u64) -> PhaseResult {
    PhaseResult { number, ..PhaseResult::default() }
}

#[test]
fn each_cause_has_its_warning() {
    let causes: Vec<(&str, Warning)> = vec![
        ("not_complete", after(|d| d.runs[0].state = RunState::Interrupted)),
        ("errors", after(|d| d.runs[0].flowops[0].errors.extend([("EIO".into(), 1)]))),
        ("phase_not_started", after(|d| d.runs[0].phases = vec![begun(1, 0.0), begun(2, 5.0), not_begun(3)])),
        ("no_operations", after(|d| d.runs[0].summary.ops = 0)),
        (
            "no_operations",
            after(|d| {
                d.runs[0].summary.ops = 0;
                d.runs[0].flowops.iter_mut().for_each(|flowop| flowop.ops = 0);
            }),
        ),
        ("short_run", after(|d| d.runs[0].measured_seconds = 4.9)),
        ("few_operations", after(|d| d.runs[0].summary.ops = 999)),
        ("few_for_percentiles", after(|d| d.runs[0].flowops[1].ops = 9_999)),
        ("memory_file_system", after(|d| d.runs[0].environment.mounts[0].kind = "tmpfs".into())),
        ("fits_in_memory", after(|d| d.runs[0].filesets[0].bytes = 8 << 30)),
        (
            "fits_in_memory",
            after(|d| {
                d.runs[0].filesets[0].bytes = 8 << 30;
                d.runs[0].filesets[0].verdict = Some(Verdict::Memory);
                d.runs[0].flowops.iter_mut().for_each(|flowop| flowop.direct = true);
            }),
        ),
        (
            "fits_in_memory",
            after(|d| {
                d.runs[0].filesets[0].bytes = 8 << 30;
                d.runs[0].cache_state = CacheState::Cold;
            }),
        ),
        (
            "fits_in_memory",
            after(|d| {
                // Part of the set is resident after the run, although the devices served the reads.
                d.runs[0].filesets[0].bytes = 8 << 30;
                d.runs[0].filesets[0].verdict = Some(Verdict::Device);
                d.runs[0].filesets[0].resident_after = Some(0.25);
                d.command_line = vec!["wmlrun".into(), "--cold".into()];
            }),
        ),
        ("cache_unknown", after(|d| d.runs[0].cache_state = CacheState::UnknownBelow)),
        ("cache_unknown", after(|d| d.runs[0].environment.mounts[0].devices[0].direct_io = Some(false))),
        (
            "not_quiesced",
            after(|d| {
                d.runs[0].quiesced = Some(false);
                d.runs[0].dirty_bytes = Some(BeforeAfter { before: 1 << 30, after: 0 });
            }),
        ),
        ("tool_bound", after(|d| d.runs[0].overhead_ns_per_op = Some(2_000.0))),
        ("wakeup_latency", after(|d| wakeup_latency(d, 0.11))),
        ("processor_bound", after(|d| busy(d, 0.95))),
        ("processor_bound", after(|d| busy(d, 0.01))),
        (
            "processor_bound",
            after(|d| {
                // Other programs compete for the processor on which a thread busy-waits.
                busy(d, 0.6);
                spinning(d, 0.3);
            }),
        ),
        ("shared_devices", after(|d| shared_devices(d, (9 << 30, 0), (1 << 30, 0)))),
        ("shared_devices", after(|d| shared_devices(d, (0, 9 << 30), (0, 1 << 20)))),
        ("unsteady", after(|d| d.runs[0].intervals[7..].iter_mut().for_each(|i| i.flowops[0].ops /= 2))),
        ("not_steady", after(|d| steady_from(d, Some(14.0), Some(30_000.0)))),
        ("not_steady", after(|d| steady_from(d, None, None))),
        ("stalled", after(|d| stall(d, 4..5))),
        ("starved", after(|d| d.runs[0].flowops[1].starved_seconds = 12.0)),
        (
            "unstable",
            after(|d| {
                d.runs[0].open_loop =
                    Some(OpenLoop { offered_per_s: 1000.0, achieved_per_s: 900.0, ..OpenLoop::default() });
            }),
        ),
        (
            "unstable",
            after(|d| {
                // The operations in flight are those of one thread, or of closed loops.
                d.runs[0].open_loop =
                    Some(OpenLoop { offered_per_s: 10.0, achieved_per_s: 9.0, ..OpenLoop::default() });
                let response = d.runs[0].flowops[0].latency_ns;
                let flowops = &mut d.runs[0].flowops;
                (flowops[0].response_ns, flowops[0].late_ops, flowops[0].instances) = (Some(response), 4096, 1);
                flowops[1].late_ops = 4096;
            }),
        ),
        (
            "unstable",
            after(|d| {
                let rates = OpenLoop { offered_per_s: 1000.0, achieved_per_s: 900.0, ..OpenLoop::default() };
                d.runs[0].open_loop = Some(OpenLoop { backlog: 6000, lost: 5400, ..rates });
            }),
        ),
        (
            "phase_late",
            after(|d| {
                let late = PhaseResult { earliest_start_seconds: Some(5.0), ..begun(2, 6.5) };
                d.runs[0].phases = vec![begun(1, 0.0), late];
            }),
        ),
        ("late_ops", after(|d| d.runs[0].late_oldest_seconds = Some(3.0))),
        ("shared_descriptors", after(|d| d.runs[0].descriptor_tables = "shared".into())),
        ("ranks_overlap", after(|d| ranks(d, [60.0, 45.0]))),
        ("ranks_overlap", after(|d| ranks(d, [60.0, 0.0]))),
    ];
    let mut texts = String::new();
    for (code, warning) in &causes {
        assert_eq!(warning.code(), *code);
        texts.extend([code, ": ", &warning.message(), "\n    ", warning.advice(), "\n"]);
    }
    let mut seen: Vec<&str> = causes.iter().map(|(code, _)| *code).collect();
    seen.dedup();
    assert_eq!(seen, CODES, "each warning has a test, in the order of the codes");
    insta::assert_snapshot!("warnings", texts);
}

/// The requests are named before the steps that they consist of.
#[test]
fn the_warning_about_p99_names_requests_first() {
    let mut document = sound();
    let like = document.runs[0].flowops[1].clone();
    let row = |name: &str, kind: &str, class| FlowopResult {
        name: name.into(),
        kind: kind.into(),
        class,
        ops: 500,
        ..like.clone()
    };
    document.runs[0].flowops[1].ops = 500;
    document.runs[0].flowops.push(row("view", MEASURE, FlowopClass::Other));
    document.runs[0].flowops.push(row("wait", "delay", FlowopClass::Other));
    let named = of(&document, &document.runs[0]).into_iter().find_map(|warning| match warning {
        Warning::FewForPercentiles { flowops } => Some(flowops),
        _ => None,
    });
    assert_eq!(named, Some(vec!["view".to_owned(), like.name]));
}

/// A report shows `-` for the p99 of a flowop if, and only if, the warning names it.
#[test]
fn the_warning_about_p99_agrees_with_the_table() {
    for ops in [1, 999, 1_000, 9_999, 10_000, 10_001] {
        let mut document = sound();
        let flowop = &mut document.runs[0].flowops[1];
        flowop.ops = ops;
        let is_shown = flowop.latency_ns.shown(ops).p99.is_some();
        let found = of(&document, &document.runs[0]);
        let warns = found.iter().any(|warning| matches!(warning, Warning::FewForPercentiles { .. }));
        assert_eq!(warns, !is_shown, "{ops}");
    }
}

#[test]
fn warnings_are_absent_without_their_condition() {
    let silent = |change: fn(&mut Document)| {
        let mut document = sound();
        change(&mut document);
        assert_eq!(of(&document, &document.runs[0]), []);
    };
    silent(|d| ranks(d, [60.0, 59.5]));
    // A small set gives no warning if it is meant to be in memory, if nothing is read, or if direct I/O bypasses
    // memory.
    silent(|d| {
        d.runs[0].filesets[0].bytes = 1 << 30;
        d.runs[0].cache_state = CacheState::Warm;
    });
    silent(|d| {
        d.runs[0].filesets[0].bytes = 1 << 30;
        d.runs[0].flowops[0].reads = false;
    });
    silent(|d| {
        d.runs[0].filesets[0].bytes = 1 << 30;
        d.runs[0].filesets[0].resident_after = Some(0.01);
    });
    silent(|d| {
        d.runs[0].filesets[0].bytes = 1 << 30;
        d.runs[0].filesets[0].verdict = Some(Verdict::Device);
        d.runs[0].filesets[0].resident_after = None;
    });
    silent(|d| {
        d.runs[0].filesets[0].bytes = 1 << 30;
        d.runs[0].filesets[0].resident_after = Some(1.0);
        d.runs[0].flowops.iter_mut().for_each(|flowop| flowop.direct = true);
    });
    silent(|d| {
        d.runs[0].open_loop = Some(OpenLoop { offered_per_s: 10.0, achieved_per_s: 9.0, ..OpenLoop::default() });
        let missing = d.runs[0].measured_seconds.ceil() as u64;
        let flowop = &mut d.runs[0].flowops[0];
        (flowop.response_ns, flowop.late_ops, flowop.instances) = (Some(flowop.latency_ns), missing, missing);
    });
    // Residency does not matter for a set that is only written.
    silent(|d| {
        let mut log = d.runs[0].filesets[0].clone();
        (log.name, log.bytes, log.resident_after) = ("log".into(), 1 << 20, Some(1.0));
        log.asked_bytes = DeviceBytes { read: 0, written: 1 << 20 };
        d.runs[0].filesets[0].bytes = 1 << 30;
        d.runs[0].filesets[0].resident_after = Some(0.0);
        d.runs[0].filesets[0].asked_bytes = DeviceBytes { read: 1 << 30, written: 0 };
        d.runs[0].filesets.push(log);
    });
    // The null engine uses no file system.
    silent(|d| {
        d.runs[0].engine = "null".into();
        d.runs[0].environment.mounts[0].kind = "tmpfs".into();
    });
    // Five intervals are too few for thirds.
    silent(|d| {
        d.runs[0].intervals.truncate(5);
        d.runs[0].intervals[4].flowops[0].ops = 1;
    });
    silent(|d| d.runs[0].quiesced = Some(false));
    // An unsteady first part gives no warning if it does not change the rate.
    silent(|d| steady_from(d, Some(0.0), Some(30_000.0)));
    silent(|d| {
        let all_per_s = d.runs[0].summary.ops_per_s;
        steady_from(d, Some(14.0), Some(all_per_s * 1.005));
    });
    // Each phase has its own rate.
    silent(|d| {
        steady_from(d, Some(14.0), Some(30_000.0));
        d.runs[0].intervals[7..].iter_mut().for_each(|i| i.flowops[0].ops /= 2);
        d.runs[0].phases = vec![PhaseResult::default(); 2];
    });
    silent(|d| wakeup_latency(d, 0.09));
    silent(|d| {
        wakeup_latency(d, 0.5);
        d.runs[0].engine = "null".into();
    });
    // Busy-waiting does not count as load.
    silent(|d| {
        busy(d, 0.95);
        spinning(d, 0.1);
    });
    // The script declares that the workload waits.
    silent(|d| {
        d.runs[0].flowops[1].starved_seconds = 12.0;
        d.runs[0].flowops[1].may_starve = true;
    });
    // A single process shares its descriptor table with no other.
    silent(|d| {
        d.runs[0].descriptor_tables = "shared".into();
        d.runs[0].processes = 1;
    });
}

#[test]
fn foreign_notes_are_kept_and_derived_ones_not_duplicated() {
    let mut document = fixture();
    document.runs[0].warnings.push(Note { code: "kernel_taint".into(), message: "tainted".into() });
    note(&mut document);
    note(&mut document);
    let codes: Vec<&str> = document.runs[0].warnings.iter().map(|note| note.code.as_str()).collect();
    assert_eq!(codes, ["kernel_taint", "errors", "few_for_percentiles"]);
}

/// Removes the operations of these intervals.
fn stall(document: &mut Document, intervals: std::ops::Range<usize>) {
    document.runs[0].intervals[intervals].iter_mut().flat_map(|i| &mut i.flowops).for_each(|f| f.ops = 0);
}

#[test]
fn a_stall_is_the_longest_time_without_an_operation() {
    let mut document = fixture();
    stall(&mut document, 1..2);
    stall(&mut document, 3..5);
    let length = document.runs[0].intervals[3].seconds;
    let found = of(&document, &document.runs[0]).into_iter().find(|warning| warning.code() == "stalled");
    let (seconds, from_seconds) = (2.0 * length, document.runs[0].intervals[2].t);
    assert_eq!(found, Some(Warning::Stalled { seconds, from_seconds }));
    // A stall until the end may take most of the run.
    let n = document.runs[0].intervals.len();
    stall(&mut document, 1..n);
    let is_stalled = |document: &Document| {
        of(document, &document.runs[0])
            .iter()
            .any(|warning| matches!(warning, Warning::Stalled { seconds, .. } if *seconds > 5.0 * length))
    };
    assert!(is_stalled(&document));
    // A workload that seldom does an operation.
    document.runs[0].intervals[0].flowops.iter_mut().for_each(|f| f.ops = f.ops.min(1));
    assert!(!is_stalled(&document));
}

/// Sets the beginning and the rate of the steady part.
fn steady_from(document: &mut Document, from_seconds: Option<f64>, ops_per_s: Option<f64>) {
    document.runs[0].steady = Some(Steadiness { from_seconds, ops_per_s, ..Steadiness::default() });
}

/// Sets the share of processor time that threads busy-wait.
fn spinning(document: &mut Document, part: f64) {
    wakeup_latency(document, 0.0);
    let processors = document.environment.cpu.count as f64;
    let run = &mut document.runs[0];
    run.open_loop.as_mut().unwrap().spin_seconds = part * run.measured_seconds * processors;
}

/// Sets the share of wake-up latency in the response time.
fn wakeup_latency(document: &mut Document, share: f64) {
    let rates = OpenLoop { offered_per_s: 100.0, achieved_per_s: 100.0, ..OpenLoop::default() };
    let late = OpenLoop { wakeup_latency_ns_mean: Some(45_000.0), wakeup_latency_share: Some(share), ..rates };
    document.runs[0].open_loop = Some(late);
}

/// Sets the bytes read and written by the devices, and those that the run made them read and write, after earlier writes.
fn shared_devices(d: &mut Document, moved: (u64, u64), own: (u64, u64)) {
    let bytes = |(read, written): (u64, u64)| DeviceBytes { read, written };
    let run = &mut d.runs[0];
    run.filesets.iter_mut().for_each(|set| set.device_bytes = Some(bytes(moved)));
    (run.storage_bytes, run.quiesced) = (Some(bytes(own)), Some(true));
}

/// What read-ahead, journals and earlier writes move is no sign of other programs; nor is the work of the kernel's threads.
#[test]
fn work_for_the_run_is_not_that_of_others() {
    let warns = |change: &dyn Fn(&mut Document)| {
        let mut document = fixture();
        change(&mut document);
        of(&document, &document.runs[0]).iter().any(Warning::is_about_others)
    };
    assert!(!warns(&|d| shared_devices(d, (190 << 20, 250 << 20), (100 << 20, 10 << 20))));
    assert!(warns(&|d| shared_devices(d, (0, 9 << 30), (0, 1 << 20))));
    assert!(!warns(&|d| {
        shared_devices(d, (0, 9 << 30), (0, 1 << 20));
        d.runs[0].quiesced = Some(false);
    }));
    assert!(warns(&|d| busy(d, 0.5)));
    assert!(!warns(&|d| {
        busy(d, 0.5);
        d.runs[0].summary.kernel_busy = Some(0.4);
    }));
}

/// Sets the processors to 97 % busy and the share of the run itself to `own`.
fn busy(d: &mut Document, own: f64) {
    let (seconds, processors) = (d.runs[0].measured_seconds, d.environment.cpu.count as f64);
    let summary = &mut d.runs[0].summary;
    summary.cpu_busy = Some(0.97);
    summary.cpu_us_per_op = Some(own * 1e6 * seconds * processors / summary.ops as f64);
}
