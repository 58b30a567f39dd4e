//! Reads fio's JSON (`--output-format=json` and `json+`): one observation for each file.

use super::Observation;
use serde_json::Value;
use std::collections::BTreeMap;

/// The directions of a job's transfers. `sync` and `trim` transfer no data and are ignored.
const DIRECTIONS: [&str; 2] = ["read", "write"];

/// Reads the jobs as one observation. Returns `None` when the text is not from fio.
pub(super) fn observations(json: &str, source: &str) -> Option<Result<Vec<Observation>, String>> {
    // Other text may follow, such as the disk utilisation of `--output-format=normal,json`.
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let value = match values.next()? {
        Ok(value) => value,
        Err(e) => return json.contains("\"fio version\"").then(|| Err(e.to_string())),
    };
    value.get("fio version")?;
    let Some(jobs) = value.get("jobs").and_then(Value::as_array) else {
        return Some(Err("it has no `jobs`".to_owned()));
    };
    Some(observation(jobs, source).map(|found| vec![found]))
}

/// Adds up the jobs of a file. Returns an error when no job has read or written anything.
fn observation(jobs: &[Value], source: &str) -> Result<Observation, String> {
    let mut figures = BTreeMap::new();
    let (mut ops, mut mib, mut done, mut busy) = (0.0, 0.0, 0.0, 0.0);
    let mut percentiles: Vec<&Value> = Vec::new();
    let mut failure = None;
    for job in jobs {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
        if let Some(error) = job.get("error").and_then(Value::as_i64).filter(|e| *e != 0) {
            failure = Some(format!("job {name} ended with error {error}"));
        }
        for direction in DIRECTIONS {
            let Some(part) = job.get(direction) else { continue };
            let figure = |name: &str| part.get(name).and_then(Value::as_f64);
            let n = figure("total_ios").unwrap_or(0.0);
            if n == 0.0 {
                continue;
            }
            let iops = figure("iops").ok_or_else(|| format!("`{direction}` of job {name} has no `iops`"))?;
            // `bw` is in KiB/s in all versions; `bw_bytes` exists since 3.0.
            let bytes = figure("bw_bytes").or_else(|| Some(figure("bw")? * 1024.0)).unwrap_or(0.0);
            let mean = latency(part, "mean").and_then(|(mean, factor)| Some(mean.as_f64()? * factor));
            *figures.entry(format!("{name}.{direction}.ops")).or_insert(0.0) += iops;
            *figures.entry(format!("{name}.{direction}.mib")).or_insert(0.0) += bytes / f64::from(1 << 20);
            if let Some(mean) = mean {
                figures.entry(format!("{name}.{direction}.latency.mean")).or_insert(mean);
                busy += mean * n;
            }
            (ops, mib, done) = (ops + iops, mib + bytes / f64::from(1 << 20), done + n);
            percentiles.push(part);
        }
    }
    if done == 0.0 {
        return Err("none of its jobs has read or written anything".to_owned());
    }
    figures.extend([("ops".to_owned(), ops), ("mib".to_owned(), mib), ("latency.mean".to_owned(), busy / done)]);
    // Percentiles of several jobs or directions can't be combined.
    if let [part] = percentiles[..] {
        for (percentile, name) in
            [("50.000000", "p50"), ("90.000000", "p90"), ("99.000000", "p99"), ("99.900000", "p99.9")]
        {
            let value =
                latency(part, "percentile").and_then(|(all, factor)| Some(all.get(percentile)?.as_f64()? * factor));
            figures.extend(value.map(|value| (format!("latency.{name}"), value)));
        }
    }
    Ok(Observation { source: source.to_owned(), figures, failure, ..Observation::default() })
}

/// The names of fio's latencies with their units in nanoseconds; total latency is preferred to completion latency. fio
/// before 3.0 has microseconds.
const LATENCIES: [(&str, f64); 4] = [("lat_ns", 1.0), ("clat_ns", 1.0), ("lat", 1000.0), ("clat", 1000.0)];

/// Returns the first latency that has this figure, with its unit in nanoseconds. By default fio has percentiles of the
/// completion latency only.
fn latency<'a>(part: &'a Value, figure: &str) -> Option<(&'a Value, f64)> {
    LATENCIES.iter().find_map(|(name, factor)| Some((part.get(name)?.get(figure)?, *factor)))
}
