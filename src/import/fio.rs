//! fio's JSON, of `--output-format=json` and `json+`: one observation a file.

use super::Observation;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a job does. A job's `sync` and `trim` are no transfers.
const WAYS: [&str; 2] = ["read", "write"];

/// `None` if the text is not fio's.
pub(super) fn observations(json: &str, source: &str) -> Option<Result<Vec<Observation>, String>> {
    // Text may follow: disk utilisation, of `--output-format=normal,json`.
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
        for way in WAYS {
            let Some(part) = job.get(way) else { continue };
            let figure = |name: &str| part.get(name).and_then(Value::as_f64);
            let n = figure("total_ios").unwrap_or(0.0);
            if n == 0.0 {
                continue;
            }
            let iops = figure("iops").ok_or_else(|| format!("`{way}` of job {name} has no `iops`"))?;
            // `bw` is in KiB/s in every version; `bw_bytes` came with 3.0.
            let bytes = figure("bw_bytes").or_else(|| Some(figure("bw")? * 1024.0)).unwrap_or(0.0);
            let mean = latency(part, "mean").and_then(|(mean, factor)| Some(mean.as_f64()? * factor));
            *figures.entry(format!("{name}.{way}.ops")).or_insert(0.0) += iops;
            *figures.entry(format!("{name}.{way}.mib")).or_insert(0.0) += bytes / f64::from(1 << 20);
            if let Some(mean) = mean {
                figures.entry(format!("{name}.{way}.latency.mean")).or_insert(mean);
                busy += mean * n;
            }
            (ops, mib, done) = (ops + iops, mib + bytes / f64::from(1 << 20), done + n);
            percentiles.push(part);
        }
    }
    if done == 0.0 {
        return Err("none of its jobs has done a read or write".to_owned());
    }
    figures.extend([("ops".to_owned(), ops), ("mib".to_owned(), mib), ("latency.mean".to_owned(), busy / done)]);
    // Percentiles of several parts can't be put together.
    if let [part] = percentiles[..] {
        for (theirs, ours) in [("50.000000", "p50"), ("90.000000", "p90"), ("99.000000", "p99"), ("99.900000", "p99.9")]
        {
            let value = latency(part, "percentile").and_then(|(all, factor)| Some(all.get(theirs)?.as_f64()? * factor));
            figures.extend(value.map(|value| (format!("latency.{ours}"), value)));
        }
    }
    Ok(Observation { source: source.to_owned(), figures, failure, ..Observation::default() })
}

/// Latencies by name, the whole before that of completion, and a unit of each in nanoseconds: before 3.0 fio had microseconds.
const LATENCIES: [(&str, f64); 4] = [("lat_ns", 1.0), ("clat_ns", 1.0), ("lat", 1000.0), ("clat", 1000.0)];

/// The first latency that has this figure: unless told otherwise, fio gives percentiles of completion only.
fn latency<'a>(part: &'a Value, figure: &str) -> Option<(&'a Value, f64)> {
    LATENCIES.iter().find_map(|(name, factor)| Some((part.get(name)?.get(figure)?, *factor)))
}
