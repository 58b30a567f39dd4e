//! Reads results of wmlrun. Each run of a document is an observation.

use super::{Observation, numbered};
use crate::report::json;
use crate::result::warnings::{self, Warning};
use crate::result::{Document, FlowopResult, Latency, Run, RunState};
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads all runs of a document. Returns an error when the text is not a document or the document has no run.
pub(super) fn observations(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    let document = json::read(text).map_err(|e| e.to_string())?;
    let all = document.runs.len();
    if all == 0 {
        return Err("it has no run".to_owned());
    }
    let runs = document.runs.iter().enumerate();
    Ok(runs.map(|(n, run)| of_run(&document, run, &numbered(source, n, all))).collect())
}

/// Converts a run of a document to an observation.
pub fn of_run(document: &Document, run: &Run, source: &str) -> Observation {
    let mut figures = BTreeMap::new();
    let summary = &run.summary;
    add(&mut figures, "", (summary.ops_per_s, summary.mib_per_s), &summary.latency_ns);
    figures.extend(run_figures(run));
    let mut names: BTreeMap<&str, Vec<&FlowopResult>> = BTreeMap::new();
    for flowop in &run.flowops {
        names.entry(&flowop.name).or_default().push(flowop);
        let whole = format!("{}/{}/{}.", flowop.process, flowop.thread, flowop.name);
        add(&mut figures, &whole, (flowop.ops_per_s, flowop.mib_per_s), &flowop.latency_ns);
    }
    for (name, flowops) in names {
        let sum = |of: fn(&FlowopResult) -> f64| flowops.iter().map(|f| of(f)).sum::<f64>();
        let ops = sum(|f| f.ops as f64);
        let mean = sum(|f| f.latency_ns.mean.unwrap_or(0.0) * f.ops as f64) / ops;
        // Percentiles of several flowops with the same name can't be combined.
        let single = if let [flowop] = flowops[..] { flowop.latency_ns } else { Latency::default() };
        let latency = Latency { mean: (ops > 0.0).then_some(mean), ..single };
        add(&mut figures, &format!("{name}."), (sum(|f| f.ops_per_s), sum(|f| f.mib_per_s)), &latency);
    }
    Observation {
        source: source.to_owned(),
        figures,
        causes: causes(run),
        conditions: conditions(document, run),
        day: run.started_at.split_once('T').map(|(day, _)| day.to_owned()),
        disturbed: warnings::of(document, run).iter().any(Warning::is_about_others),
        failure: (run.state != RunState::Complete).then(|| format!("{}: {}", run.state.name(), run.ended_by)),
    }
}

/// Returns figures that only the whole run has: the offered rate and the mean response time of open loops, and the
/// fraction of busy processors.
fn run_figures(run: &Run) -> impl Iterator<Item = (String, f64)> {
    let responses = || run.flowops.iter().filter_map(|f| Some((f.ops as f64, f.response_ns?.mean?)));
    let ops: f64 = responses().map(|(ops, _)| ops).sum();
    let response = responses().map(|(ops, mean)| ops * mean).sum::<f64>() / ops;
    let found = [
        ("offered", run.open_loop.as_ref().map(|open| open.offered_per_s)),
        ("response.mean", (ops > 0.0).then_some(response)),
        ("cpu_busy", run.summary.cpu_busy),
    ];
    found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Adds the figures of a run or a flowop, under names with the prefix `before`.
fn add(figures: &mut BTreeMap<String, f64>, before: &str, (ops, mib): (f64, f64), latency: &Latency) {
    let mut put =
        |name: &str, value: Option<f64>| figures.extend(value.map(|value| (format!("{before}{name}"), value)));
    put("ops", Some(ops));
    put("mib", Some(mib));
    put("latency.mean", latency.mean);
    for (name, value) in [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99), ("p99.9", latency.p99_9)] {
        put(&format!("latency.{name}"), value.map(|ns| ns as f64));
    }
}

/// The minimum number of implicit opens per operation that is a possible cause. Fewer are the opens at the start of a
/// run, whose number is fixed, so that their number per operation changes with the rate and is not a cause of the
/// change.
const MIN_OPENS_PER_OP: f64 = 0.001;

/// Returns the figures of a run that may explain a change of a metric. Counts, bytes and times are per operation.
fn causes(run: &Run) -> BTreeMap<&'static str, f64> {
    let ops = run.summary.ops as f64;
    let mut found = BTreeMap::new();
    if ops == 0.0 {
        return found;
    }
    let mut per_op = |name, total: f64| found.insert(name, total / ops);
    let flowops = |of: fn(&FlowopResult) -> f64| run.flowops.iter().map(of).sum::<f64>();
    per_op("syncs_per_op", flowops(|f| if f.kind.contains("sync") { f.ops as f64 } else { 0.0 }));
    per_op("errors_per_op", run.summary.errors as f64);
    let opens = flowops(|f| f.implicit_opens as f64);
    per_op("implicit_opens_per_op", if opens < MIN_OPENS_PER_OP * ops { 0.0 } else { opens });
    per_op("starved_ns_per_op", flowops(|f| f.starved_seconds * 1e9));
    // File sets on the same device report the same bytes, so these must not be added up.
    let device = |of: fn(&crate::result::DeviceBytes) -> u64| {
        run.filesets.iter().filter_map(|set| set.device_bytes.as_ref()).map(of).max().map(|bytes| bytes as f64)
    };
    device(|bytes| bytes.read).map(|bytes| per_op("device_read_bytes_per_op", bytes));
    device(|bytes| bytes.written).map(|bytes| per_op("device_written_bytes_per_op", bytes));
    let summary = &run.summary;
    found.extend(summary.cpu_us_per_op.map(|us| ("cpu_us_per_op", us)));
    found.extend(summary.system_cpu_us_per_op.map(|us| ("system_cpu_us_per_op", us)));
    let resident: Vec<f64> = run.filesets.iter().filter_map(|set| set.resident_before).collect();
    if !resident.is_empty() {
        found.insert("resident_before", resident.iter().sum::<f64>() / resident.len() as f64);
    }
    let late = run.flowops.iter().filter_map(|f| f.lateness_ns?.mean);
    found.extend(late.reduce(f64::max).map(|ns| ("lateness_ns", ns)));
    found
}

/// Returns the conditions of a run, by name.
fn conditions(document: &Document, run: &Run) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let environment = &document.environment;
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut put = |name: &str, value: String| found.insert(name.to_owned(), value);
    put("script", document.script.sha256.chars().take(12).collect());
    put("tool", format!("{} {}", document.tool.name, document.tool.version));
    put("kernel", format!("{} {}", environment.uname.release, environment.uname.version));
    put("processor", format!("{} × {}", environment.cpu.count, environment.cpu.model));
    put("memory", crate::util::size::format(environment.memory.total));
    put("engine", run.engine.clone());
    put("cache", run.cache_state.name().to_owned());
    put("run time", run.requested_seconds.map_or_else(|| "none".to_owned(), |s| format!("{s} s")));
    put("as-is", run.as_is.to_string());
    put("layout seed", document.layout_seed.to_string());
    for (n, mount) in run.environment.mounts.iter().enumerate() {
        let n = if n == 0 { String::new() } else { format!(" {}", n + 1) };
        put(&format!("file system{n}"), mount.kind.clone());
        put(&format!("mount options{n}"), mount.options.clone());
        put(&format!("device{n}"), mount.source.clone());
    }
    for (name, value) in run.environment.other.iter().filter(|(name, _)| *name != "load") {
        put(name, text(value));
    }
    for (name, value) in &run.variables {
        put(&format!("${name}"), text(value));
    }
    found
}
