//! The figures of a whole run that are no metrics.

use crate::analysis::SampleSummary;
use crate::result::{FilesetResult, Interval, IntervalFlowop, Run};
use crate::util::size;
use serde_json::Value;

/// Returns figures that only the whole run has and that are no metrics, such as the requested and the offered rate of open
/// loops, and the fraction of busy processors.
pub(super) fn run_figures(run: &Run) -> impl Iterator<Item = (String, f64)> {
    let found = [
        ("requested", run.open_loop.as_ref().and_then(|open| open.requested_per_s)),
        ("offered", run.open_loop.as_ref().map(|open| open.offered_per_s)),
        ("cpu_busy", run.summary.cpu_busy),
        ("warmup", run.warmup.as_ref().map(|warmup| warmup.seconds)),
        ("processes", Some(run.processes as f64)),
        ("threads", Some(run.threads as f64)),
        ("files", Some(run.filesets.iter().map(|set| set.files).sum::<u64>() as f64)),
        ("files.bytes", Some(run.filesets.iter().map(|set| set.bytes).sum::<u64>() as f64)),
    ];
    let found = found.into_iter().chain(variations(run)).chain(defined_files(run));
    found.filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// The number and the bytes of the files that the file sets define, also of those that the run itself makes.
fn defined_files(run: &Run) -> [(&'static str, Option<f64>); 2] {
    let entries = |set: &FilesetResult| Some(set.layout.get("entries")?.as_u64()? as f64);
    let bytes = |set: &FilesetResult| {
        let each = set.layout.get("size").and_then(Value::as_str).and_then(|text| size::parse(text).ok());
        each.map_or(Some(set.bytes as f64), |each| Some(each as f64 * entries(set)?))
    };
    let sum = |of: &dyn Fn(&FilesetResult) -> Option<f64>| run.filesets.iter().map(of).sum::<Option<f64>>();
    let has_files = !run.filesets.is_empty();
    [("defined.files", sum(&entries).filter(|_| has_files)), ("defined.bytes", sum(&bytes).filter(|_| has_files))]
}

/// The fewest intervals whose variation says something.
const MIN_INTERVALS: usize = 3;

/// The coefficients of variation of the rates of the run's intervals, and their length. The last one may be shorter.
fn variations(run: &Run) -> [(&'static str, Option<f64>); 3] {
    let length = run.intervals.first().map_or(0.0, |first| first.seconds);
    let whole: Vec<_> = run.intervals.iter().filter(|of| of.seconds > 0.9 * length).collect();
    let is_io: Vec<bool> = run.flowops.iter().map(|f| f.class.is_io()).collect();
    let of = |figure: fn(&IntervalFlowop) -> u64| {
        let rate = |of: &&Interval| {
            let io = of.flowops.iter().zip(&is_io).filter(|(_, is_io)| **is_io);
            io.map(|(flowop, _)| figure(flowop)).sum::<u64>() as f64 / of.seconds
        };
        let found = SampleSummary::of(&whole.iter().map(rate).collect::<Vec<_>>())?;
        let share = found.variance.sqrt() / found.mean;
        (whole.len() >= MIN_INTERVALS && share.is_finite()).then_some(share)
    };
    let ops = of(|flowop| flowop.ops);
    let mib = of(|flowop| flowop.bytes);
    [("variation_ops", ops), ("variation_mib", mib), ("variation_seconds", ops.map(|_| length))]
}
