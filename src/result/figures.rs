//! Figures of a run and of its flowops: the summary and latency distributions.

use super::{Run, RunState};
use serde::{Deserialize, Serialize};

/// Bytes of memory of the whole machine, from `/proc/meminfo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BeforeAfter {
    /// At the start of the run.
    pub before: u64,
    /// At the end of the run.
    pub after: u64,
}

/// Energy that the machine used, for all programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Energy {
    /// What measured it: `processors` and their memory, or the `battery` of the whole machine.
    pub source: String,
    /// The energy in joules, greater than 0.
    pub joules: f64,
}

/// Figures of a latency distribution, in nanoseconds. All are null without operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The minimum, exact.
    pub min: Option<u64>,
    /// The mean, exact.
    pub mean: Option<f64>,
    /// The standard deviation, computed from the histogram.
    pub stddev: Option<f64>,
    /// The median. Percentiles have a relative error of at most 0.8 %.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 95th percentile.
    pub p95: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// The 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// The maximum, exact.
    pub max: Option<u64>,
}

/// Where a percentile is shown; in all later places it is shown too. All of them are in JSON, CSV and `OpenMetrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PercentilePlace {
    /// The tables of a run, of any width.
    Tables,
    /// Those of at least 100 columns.
    WideTables,
    /// The metrics, and CSV with a row per run.
    Metrics,
    /// The picture of a page.
    Pictures,
    /// No other.
    Files,
}

/// A percentile. To add one: a field of [`Latency`], a row of [`PERCENTILES`], and `docs/result.schema.json`.
#[derive(Debug)]
pub struct Percentile {
    /// Its key in the result, and its name everywhere else.
    pub name: &'static str,
    /// The share of the operations that do not exceed it.
    pub quantile: f64,
    place: PercentilePlace,
    field: fn(&mut Latency) -> &mut Option<u64>,
}

const fn percentile(
    name: &'static str,
    quantile: f64,
    place: PercentilePlace,
    field: fn(&mut Latency) -> &mut Option<u64>,
) -> Percentile {
    Percentile { name, quantile, place, field }
}

pub static PERCENTILES: &[Percentile] = &[
    percentile("p50", 0.5, PercentilePlace::Tables, |l| &mut l.p50),
    percentile("p90", 0.9, PercentilePlace::Metrics, |l| &mut l.p90),
    percentile("p95", 0.95, PercentilePlace::Files, |l| &mut l.p95),
    percentile("p99", 0.99, PercentilePlace::Tables, |l| &mut l.p99),
    percentile("p99.9", 0.999, PercentilePlace::WideTables, |l| &mut l.p99_9),
    percentile("p99.99", 0.9999, PercentilePlace::Pictures, |l| &mut l.p99_99),
];

impl Percentile {
    /// Those that are shown in a place.
    pub fn shown_in(place: PercentilePlace) -> impl Iterator<Item = &'static Self> + Clone {
        PERCENTILES.iter().filter(move |percentile| percentile.place <= place)
    }

    /// Its value in nanoseconds.
    pub fn of(&self, mut latency: Latency) -> Option<u64> {
        *(self.field)(&mut latency)
    }
}

/// Minimum number of operations beyond a percentile that reports show. With fewer, chance decides about its value.
pub const MIN_BEYOND: u64 = 100;

impl Latency {
    /// Sets the percentiles, each to the value at its quantile.
    #[must_use]
    pub fn with_percentiles(mut self, at: impl Fn(f64) -> u64) -> Self {
        for percentile in PERCENTILES {
            *(percentile.field)(&mut self) = Some(at(percentile.quantile));
        }
        self
    }

    /// Returns the figures that a report shows of a distribution of so many operations: a percentile with fewer than
    /// [`MIN_BEYOND`] operations beyond it is null.
    #[must_use]
    pub fn shown(mut self, ops: u64) -> Self {
        for percentile in PERCENTILES {
            // One of so many operations is beyond the percentile.
            let one_of = (1.0 / (1.0 - percentile.quantile)).round() as u64;
            if ops / one_of < MIN_BEYOND {
                *(percentile.field)(&mut self) = None;
            }
        }
        self
    }
}

impl Run {
    /// True if the figures are a result: the run did what the script asks for, if perhaps not to its end.
    pub fn has_result(&self) -> bool {
        match self.state {
            RunState::Complete => true,
            RunState::Interrupted | RunState::LowSpace => self.flowops.iter().any(|flowop| flowop.ops > 0),
            RunState::Failed | RunState::Stuck | RunState::NothingDone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Latency, PERCENTILES};

    /// The names of the percentiles that a latency has.
    fn names(latency: Latency) -> Vec<&'static str> {
        PERCENTILES.iter().filter(|percentile| percentile.of(latency).is_some()).map(|of| of.name).collect()
    }

    #[test]
    fn each_percentile_is_the_field_of_its_name() {
        let latency = Latency::default().with_percentiles(|quantile| (quantile * 1e4).round() as u64);
        let written = serde_json::to_value(latency).unwrap();
        let keys = written.as_object().unwrap().iter().filter(|(key, _)| key.starts_with('p'));
        let found: Vec<(&str, f64)> = keys.map(|(key, of)| (key.as_str(), of.as_f64().unwrap_or(0.0) / 1e2)).collect();
        assert!(found.len() == PERCENTILES.len() && PERCENTILES.is_sorted_by(|a, b| a.quantile < b.quantile));
        assert!(found.iter().all(|(key, of)| format!("p{of}") == *key), "{found:?}");
    }

    #[test]
    fn a_percentile_with_few_operations_beyond_it_is_not_shown() {
        let all = Latency { max: Some(7), ..Latency::default() }.with_percentiles(|_| 7);
        assert_eq!((names(all.shown(199)), all.shown(199).max), (vec![], Some(7)));
        assert_eq!(names(all.shown(200)), ["p50"]);
        assert_eq!(names(all.shown(9_999)), ["p50", "p90", "p95"]);
        assert_eq!(names(all.shown(10_000)), ["p50", "p90", "p95", "p99"]);
        assert_eq!(all.shown(1_000_000), all);
    }
}
