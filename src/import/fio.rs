//! Reads fio's JSON (`--output-format=json` and `json+`): one observation for each file.
//!
//! Jobs of one group run at the same time, and their rates are added up. If they ran for different times, their totals
//! are divided by the longest time, as fio does for a group: the sum of their rates would be that of no moment. Groups
//! run one after another (`stonewall`), so each has its own figures.

use super::Observation;
use crate::result::{Percentile, PercentilePlace};
use crate::util::bounded::{Budget, TOO_MANY_ELEMENTS, Within};
use crate::util::json;
use crate::util::size::MIB;
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The maximum number of entries in a file. See [`Budget`].
const MAX_ENTRIES: u64 = 4 << 20;

/// The directions of a job's transfers. `sync` and `trim` transfer no data and are ignored.
const DIRECTIONS: [&str; 2] = ["read", "write"];

/// The name of both directions together, with `--unified_rw_reporting`.
const MIXED: &str = "mixed";

/// A JSON value of limited size.
struct FioOutput(Value);

impl<'de> Deserialize<'de> for FioOutput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Within::of(&Budget::new(MAX_ENTRIES)).deserialize(deserializer).map(Self)
    }
}

/// Reads the jobs as one observation. With `--status-interval` there are several outputs, of which the last is that of
/// the whole run.
pub(super) fn observations(text: &str, source: &str) -> Result<Vec<Observation>, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<FioOutput>();
    let mut last = None;
    loop {
        let from = values.byte_offset();
        match values.next() {
            Some(Ok(FioOutput(value))) => last = Some(value),
            // Other text may follow, such as the disk utilisation of `--output-format=normal,json`.
            Some(Err(e)) if last.is_none() || text[from..].trim_start().starts_with('{') => {
                // Any JSON is one.
                return Err(if e.is_data() { TOO_MANY_ELEMENTS.to_owned() } else { json::reason(&e) });
            }
            Some(Err(_)) | None => break,
        }
    }
    let last = last.as_ref();
    let jobs = last.and_then(|value| value.get("jobs")?.as_array()).ok_or("it has no `jobs`")?;
    Ok(vec![Observation { started: last.and_then(time), ..observation(jobs, source)? }])
}

/// Returns the time of an output in seconds since 1970, which is that of the end of the run.
fn time(output: &Value) -> Option<i64> {
    let milliseconds = || Some(output.get("timestamp_ms")?.as_i64()? / 1000);
    let seconds = output.get("timestamp").and_then(Value::as_i64).or_else(milliseconds);
    seconds.filter(|seconds| *seconds > 0)
}

/// One direction of a job.
struct Transfers<'a> {
    group: u64,
    job: &'a str,
    direction: &'a str,
    ops: f64,
    ops_per_s: f64,
    mib_per_s: f64,
    /// The time that it ran, in milliseconds; `None` if it is unknown.
    runtime: Option<f64>,
    part: &'a Value,
}

/// Combines the jobs of a file. Returns an error when no job has read or written anything.
fn observation(jobs: &[Value], source: &str) -> Result<Observation, String> {
    let mut all = Vec::new();
    let mut failure = None;
    for job in jobs {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
        if let Some(error) = job.get("error").and_then(Value::as_i64).filter(|e| *e != 0) {
            failure = Some(format!("job {name} ended with error {error}"));
        }
        let before = all.len();
        for direction in DIRECTIONS {
            all.extend(transfers(job, name, direction)?);
        }
        // With `--unified_rw_reporting=both` they are those of the directions again.
        if all.len() == before {
            all.extend(transfers(job, name, MIXED)?);
        }
    }
    let mut groups: BTreeMap<u64, Vec<&Transfers<'_>>> = BTreeMap::new();
    for found in &all {
        groups.entry(found.group).or_default().push(found);
    }
    let mut figures = BTreeMap::new();
    for (group, found) in &groups {
        let before = if groups.len() == 1 { String::new() } else { format!("group{group}.") };
        add(&mut figures, &before, found);
    }
    if groups.is_empty() {
        // The error of a job is the reason why it has no figures.
        let why = failure.map_or_else(String::new, |failure| format!(": {failure}"));
        return Err(format!("none of its jobs has read or written anything{why}"));
    }
    let mut by_job: BTreeMap<(&str, &str), BTreeMap<u64, Vec<&Transfers<'_>>>> = BTreeMap::new();
    for found in &all {
        by_job.entry((found.job, found.direction)).or_default().entry(found.group).or_default().push(found);
    }
    for ((job, direction), groups) in &by_job {
        for (group, found) in groups {
            let group = if groups.len() == 1 { String::new() } else { format!("group{group}.") };
            add(&mut figures, &format!("{group}{job}.{direction}."), found);
        }
    }
    Ok(Observation { source: source.to_owned(), figures, failure, ..Observation::default() })
}

/// Returns one direction of a job, or `None` when it has no operation. Returns an error when its rate is missing.
fn transfers<'a>(job: &'a Value, name: &'a str, direction: &'a str) -> Result<Option<Transfers<'a>>, String> {
    let Some(part) = job.get(direction) else { return Ok(None) };
    let figure = |name: &str| part.get(name).and_then(Value::as_f64);
    let Some(ops) = figure("total_ios").filter(|ops| *ops > 0.0) else { return Ok(None) };
    let ops_per_s = figure("iops").ok_or_else(|| format!("`{direction}` of job {name} has no `iops`"))?;
    // `bw` is in KiB/s in all versions; `bw_bytes` exists since 3.0.
    let bytes = figure("bw_bytes").or_else(|| Some(figure("bw")? * 1024.0)).unwrap_or(0.0);
    let group = job.get("groupid").and_then(Value::as_u64).unwrap_or(0);
    let runtime = figure("runtime").filter(|ms| *ms > 0.0);
    Ok(Some(Transfers { group, job: name, direction, ops, ops_per_s, mib_per_s: bytes / MIB, runtime, part }))
}

/// The ratio of the shortest to the longest time of transfers up to which their times differ. Times of jobs that end
/// together differ by milliseconds.
const EQUAL_TIMES: f64 = 0.99;

/// Returns the longest time of transfers if their times differ. Returns `None` if they are equal, or if one is unknown.
fn longest_of_different(found: &[&Transfers<'_>]) -> Option<f64> {
    let times: Vec<f64> = found.iter().map(|found| found.runtime).collect::<Option<_>>()?;
    let (shortest, longest) = (times.iter().copied().reduce(f64::min)?, times.iter().copied().reduce(f64::max)?);
    (shortest < EQUAL_TIMES * longest).then_some(longest)
}

/// Adds the figures of transfers that ran at the same time, under names with the prefix `before`.
fn add(figures: &mut BTreeMap<String, f64>, before: &str, found: &[&Transfers<'_>]) {
    let longest = longest_of_different(found);
    // A rate times its time is a total. The totals of bytes in fio's output have other units in versions before 3.0.
    let share = |found: &Transfers<'_>| longest.zip(found.runtime).map_or(1.0, |(longest, time)| time / longest);
    let rate = |of: fn(&Transfers<'_>) -> f64| found.iter().map(|found| of(found) * share(found)).sum::<f64>();
    let sum = |of: fn(&Transfers<'_>) -> f64| found.iter().map(|found| of(found)).sum::<f64>();
    let busy: Option<f64> = found.iter().map(|found| Some(mean_latency(found.part)? * found.ops)).sum();
    let mut put = |name: &str, value: f64| figures.insert(format!("{before}{name}"), value);
    put("ops", rate(|found| found.ops_per_s));
    put("mib", rate(|found| found.mib_per_s));
    busy.map(|busy| put("latency.mean", busy / sum(|found| found.ops)));
    for (name, value) in percentiles(found) {
        put(&format!("latency.{name}"), value);
    }
}

/// The names of fio's latencies with their units in nanoseconds; total latency is preferred to completion latency. fio
/// before 3.0 has microseconds.
const LATENCIES: [(&str, f64); 4] = [("lat_ns", 1.0), ("clat_ns", 1.0), ("lat", 1000.0), ("clat", 1000.0)];

/// Returns the latencies of a direction that were measured, each with its unit in nanoseconds.
fn latencies(part: &Value) -> impl Iterator<Item = (&Value, f64)> {
    // With `--disable_lat` the total latency has zeros.
    let is_measured = |latency: &Value| latency.get("N").and_then(Value::as_u64) != Some(0);
    LATENCIES.iter().filter_map(move |(name, unit)| Some((part.get(name).filter(|l| is_measured(l))?, *unit)))
}

/// Returns the mean latency in nanoseconds.
fn mean_latency(part: &Value) -> Option<f64> {
    latencies(part).find_map(|(latency, unit)| Some(latency.get("mean")?.as_f64()? * unit))
}

/// Returns the percentiles of transfers in nanoseconds, by name. Those of several jobs or directions need histograms,
/// which only json+ has. By default fio has percentiles and histograms of the completion latency only.
fn percentiles(found: &[&Transfers<'_>]) -> Vec<(&'static str, f64)> {
    let all = Percentile::shown_in(PercentilePlace::Metrics);
    if let [single] = found {
        let listed = latencies(single.part).find_map(|(latency, unit)| Some((latency.get("percentile")?, unit)));
        if let Some((values, unit)) = listed {
            let of = |quantile: f64| Some(values.get(format!("{:.6}", 100.0 * quantile))?.as_f64()? * unit);
            return all.filter_map(|percentile| Some((percentile.name, of(percentile.quantile)?))).collect();
        }
    }
    let merged = LATENCIES.iter().find_map(|(name, unit)| Some((merged_bins(found, name)?, *unit)));
    let Some((bins, unit)) = merged else { return Vec::new() };
    let of = |share| quantile(&bins, share) as f64 * unit;
    all.map(|percentile| (percentile.name, of(percentile.quantile))).collect()
}

/// Adds up the histograms of a latency: the number of operations by time. Returns `None` when a histogram is missing or
/// malformed, or when all are empty.
fn merged_bins(found: &[&Transfers<'_>], latency: &str) -> Option<BTreeMap<u64, u64>> {
    let mut merged: BTreeMap<u64, u64> = BTreeMap::new();
    for found in found {
        for (time, n) in found.part.get(latency)?.get("bins")?.as_object()? {
            let sum = merged.entry(time.parse().ok()?).or_default();
            *sum = sum.saturating_add(n.as_u64()?);
        }
    }
    merged.values().any(|n| *n > 0).then_some(merged)
}

/// Returns the time that a share of the operations does not exceed, by fio's rule.
fn quantile(bins: &BTreeMap<u64, u64>, share: f64) -> u64 {
    let all: f64 = bins.values().map(|n| *n as f64).sum();
    let mut sum = 0.0;
    let reached = bins.iter().find(|(_, n)| {
        sum += **n as f64;
        sum >= share * all
    });
    reached.or(bins.last_key_value()).map_or(0, |(time, _)| *time)
}
