//! The names of metrics, and which way each is good.

use super::Observation;
use crate::analysis::Direction;
use std::fmt;
use std::str::FromStr;

/// A figure of a run, by name: `ops`, `mib`, `latency.mean`, `latency.p50`, `latency.p99`; of a flowop `NAME.ops`…; `value` is a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    name: String,
}

/// The last words of a metric's name, and what each says of a run.
const ENDINGS: [(&str, Direction); 8] = [
    ("ops", Direction::HigherIsBetter),
    ("mib", Direction::HigherIsBetter),
    ("latency.mean", Direction::LowerIsBetter),
    ("latency.p50", Direction::LowerIsBetter),
    ("latency.p90", Direction::LowerIsBetter),
    ("latency.p99", Direction::LowerIsBetter),
    ("latency.p99.9", Direction::LowerIsBetter),
    ("value", Direction::HigherIsBetter),
];

/// The twelve measures of a published study of snapshots, each of which had to be precise.
pub const STUDY: [&str; 12] = [
    "lg-write.ops",
    "lg-write.mib",
    "lg-write.latency.mean",
    "dbwrite-a.ops",
    "dbwrite-a.mib",
    "dbwrite-a.latency.mean",
    "shadowread.ops",
    "shadowread.mib",
    "shadowread.latency.mean",
    "ops",
    "mib",
    "latency.mean",
];

impl FromStr for Metric {
    type Err = String;

    /// `all.` before a name means the whole run, as no prefix does.
    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("all.").unwrap_or(text);
        match ending(name) {
            Some((before, _)) if before.is_empty() || before.ends_with('.') && before.len() > 1 => {
                Ok(Self { name: name.to_owned() })
            }
            _ => {
                let names: Vec<&str> = ENDINGS.iter().map(|(name, _)| *name).collect();
                Err(format!("no metric; there are {}, and each of a flowop: `NAME.ops`", names.join(", ")))
            }
        }
    }
}

/// What stands before the ending of a name, and the ending's direction.
fn ending(name: &str) -> Option<(&str, Direction)> {
    // The longest ending: that of a percentile holds others.
    let of = |(ending, direction): &(&str, Direction)| Some((name.strip_suffix(ending)?, *direction));
    ENDINGS.iter().filter_map(of).min_by_key(|(before, _)| before.len())
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Metric {
    /// The default: operations a second of the whole run.
    pub fn ops() -> Self {
        Self { name: "ops".to_owned() }
    }

    /// Which way it is good.
    pub fn direction(&self) -> Direction {
        ending(&self.name).map_or(Direction::HigherIsBetter, |(_, direction)| direction)
    }

    /// Whether it is a time, in nanoseconds.
    pub fn is_time(&self) -> bool {
        self.name.contains("latency.")
    }

    /// Its value in a run; `None` if the run has no such figure, or one that is no number.
    pub fn of(&self, run: &Observation) -> Option<f64> {
        // A column of numbers is whatever its user says it is.
        let value = run.figures.get(&self.name).or_else(|| run.figures.get("value"));
        value.copied().filter(|value| value.is_finite())
    }
}
