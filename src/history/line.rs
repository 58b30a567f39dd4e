//! The lines of a history's files. Each is a JSON object with one key, which says what it is.

use crate::import::{Metric, Observation};
use crate::util::hash::sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of the form of the lines, which the first line of each file has.
pub(super) const LINES_SCHEMA: &str = "wmlrun.history-lines/1";

/// The metrics that a run keeps, besides those that are asked for.
pub const KEPT_METRICS: [&str; 11] = [
    "ops",
    "mib",
    "latency.mean",
    "latency.p50",
    "latency.p99",
    "response.mean",
    "response.p50",
    "response.p99",
    "requests",
    "transactions",
    "cpu.op",
];

/// The longest value of a condition. Of a longer one the digest is kept.
const LONGEST_VALUE: usize = 160;

/// A line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryLine {
    /// [`LINES_SCHEMA`].
    Schema(String),
    Conditions(StoredConditions),
    Run(HistoryRun),
    Accepted(AcceptedLevel),
}

/// Conditions, which many runs share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredConditions {
    /// The beginning of the digest of their values.
    pub(super) digest: String,
    pub(super) values: BTreeMap<String, String>,
}

/// A run of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// What tells it from other runs. A line of a run begins with it.
    pub(super) id: String,
    /// The day of its night, such as `2026-11-20`.
    pub night: String,
    pub test: String,
    /// Where it was made: the directory of its files; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Its start in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started: Option<i64>,
    /// Whether other programs used the processors or the devices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) disturbed: bool,
    /// Whether it was made again, later in the same night, because the test was suspect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The digest of its conditions.
    pub(super) conditions: String,
    pub(super) metrics: BTreeMap<String, f64>,
}

/// A level that the user has accepted as the new one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptedLevel {
    pub test: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// The first night that counts.
    pub since: String,
    pub why: String,
}

/// The night of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NightName {
    /// Its day, such as `2026-11-20`.
    pub date: String,
    /// Whether it is the second part of the night, in which suspects are made again.
    pub again: bool,
}

/// The first 16 digits of the digest of a text.
fn short_digest(text: &str) -> String {
    sha256(text).chars().take(16).collect()
}

impl HistoryRun {
    /// The lines of an observation: its conditions and its run. `None` if it has none of the metrics.
    pub(super) fn of(
        observation: &Observation,
        night: &NightName,
        test: &str,
        place: &str,
        wanted: &[Metric],
    ) -> Option<(StoredConditions, Self)> {
        let names = KEPT_METRICS.iter().map(ToString::to_string).chain(wanted.iter().map(ToString::to_string));
        let figure =
            |name: String| observation.figures.get(&name).copied().filter(|v| v.is_finite()).map(|v| (name, v));
        let metrics: BTreeMap<String, f64> = names.filter_map(figure).collect();
        if metrics.is_empty() {
            return None;
        }
        // A row of a table has fewer metrics than the result of the same run.
        let first = metrics.get("ops").map_or_else(|| format!("{metrics:?}"), f64::to_string);
        let started = observation.started.map_or_else(|| night.date.clone(), |started| started.to_string());
        let short = |value: &String| match value.len() > LONGEST_VALUE {
            true => short_digest(value),
            false => value.clone(),
        };
        // The directory is the place.
        let known = observation.conditions.iter().filter(|(name, _)| *name != "$dir");
        let values: BTreeMap<String, String> = known.map(|(name, value)| (name.clone(), short(value))).collect();
        let digest = short_digest(&format!("{values:?}"));
        // Two runs may begin in one second, and those with a rate do equally much; their latencies differ.
        let latency = metrics.get("latency.mean").map_or_else(String::new, |mean| format!(" {mean}"));
        let run = Self {
            id: short_digest(&format!("{started} {place} {test} {} {first}{latency}", observation.workload)),
            night: night.date.clone(),
            test: test.to_owned(),
            place: place.to_owned(),
            started: observation.started,
            disturbed: observation.disturbed,
            again: night.again,
            conditions: digest.clone(),
            metrics,
        };
        Some((StoredConditions { digest, values }, run))
    }
}
