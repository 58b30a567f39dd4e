//! The names of metrics, and the direction in which each improves.
//!
//! To add a metric: an entry in [`METRICS`], which `wmlrun list metrics` and `--metric` take, and its value in `own`. A
//! figure that the document of a run lacks goes into `result` and `docs/result.schema.json` first.

use super::Observation;
use crate::analysis::Direction;
use crate::diag::meant;
use std::fmt;
use std::str::FromStr;

/// The name of a figure of a run: `ops`, `mib`, `latency.mean`, `latency.p99`, `response.p99`. For a flowop it has the
/// prefix `NAME.`, as in `NAME.ops`. `seconds` is the time of the run, and `NAME.seconds` that of a command that the
/// experiment executes for each run. `value` is a number of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    name: String,
}

/// What the names of the metrics of response times begin with.
pub(super) const RESPONSE: &str = "response.";
/// What the names of the metrics of latencies begin with.
pub(super) const LATENCY: &str = "latency.";

/// The name of the metric that is the time of a run, and the ending of those of commands.
const SECONDS: &str = "seconds";

/// A metric of a run, of a flowop with the prefix `NAME.`, or of a command.
#[derive(Clone, Copy, Debug)]
pub struct MetricKind {
    /// The name, or the ending of the name.
    pub name: &'static str,
    /// The direction in which it improves.
    pub direction: Direction,
    /// What it is, in a few words.
    pub about: &'static str,
}

const HIGHER: Direction = Direction::HigherIsBetter;
const LOWER: Direction = Direction::LowerIsBetter;

pub const METRICS: [MetricKind; 16] = [
    MetricKind { name: "ops", direction: HIGHER, about: "I/O operations per second" },
    MetricKind { name: "mib", direction: HIGHER, about: "MiB read and written per second" },
    MetricKind { name: "latency.mean", direction: LOWER, about: "mean latency of an operation" },
    MetricKind { name: "latency.p50", direction: LOWER, about: "median latency" },
    MetricKind { name: "latency.p90", direction: LOWER, about: "90th percentile of the latency" },
    MetricKind { name: "latency.p99", direction: LOWER, about: "99th percentile of the latency" },
    MetricKind { name: "latency.p99.9", direction: LOWER, about: "99.9th percentile of the latency" },
    MetricKind { name: "latency.max", direction: LOWER, about: "latency of the slowest operation, a single event" },
    MetricKind { name: "response.mean", direction: LOWER, about: "mean response time in open loops (`rate=`)" },
    MetricKind { name: "response.p50", direction: LOWER, about: "median response time" },
    MetricKind { name: "response.p90", direction: LOWER, about: "90th percentile of the response time" },
    MetricKind { name: "response.p99", direction: LOWER, about: "99th percentile of the response time" },
    MetricKind { name: "response.p99.9", direction: LOWER, about: "99.9th percentile of the response time" },
    MetricKind { name: "response.max", direction: LOWER, about: "response time of the slowest request" },
    MetricKind { name: SECONDS, direction: LOWER, about: "measured time of the run; with a prefix, time of a command" },
    MetricKind { name: VALUE, direction: HIGHER, about: "numbers of a column (`FILE:N`)" },
];

/// The name of a number of a column.
pub(super) const VALUE: &str = "value";

/// The twelve metrics of a published study of snapshots, each of which had to be precise.
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

    /// Parses a name. The prefix `all.` means the whole run, which is also the meaning without a prefix.
    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("all.").unwrap_or(text);
        match ending(name) {
            Some((before, _)) if before.is_empty() || before.ends_with('.') && before.len() > 1 => {
                Ok(Self { name: name.to_owned() })
            }
            _ => {
                let names: Vec<&str> = METRICS.iter().map(|kind| kind.name).collect();
                // Another percentile, such as `latency.p75`, is no misspelt one. `p99` alone is that of the latency.
                let likely = names.iter().copied().filter(|of| name.contains("resp") || !of.starts_with(RESPONSE));
                let is_percentile = name.contains("latency.p") || name.contains("response.p");
                // The name of a flowop may come before it.
                let starts = std::iter::once(0).chain(name.match_indices('.').map(|(at, _)| at + 1));
                let near = starts.filter(|_| !is_percentile).find_map(|start| {
                    let near = meant(&name[start..], likely.clone())?;
                    Some(format!("; did you mean `{}{near}`?", &name[..start]))
                });
                let near = near.unwrap_or_default();
                let all = names.join(", ");
                Err(format!("unknown metric: the metrics are {all}; for a flowop, such as `NAME.ops`{near}"))
            }
        }
    }
}

/// Returns the part of a name before its ending, and the metric of the ending.
fn ending(name: &str) -> Option<(&str, &'static MetricKind)> {
    // The longest ending is the right one, because some endings end in others.
    let of = |kind: &'static MetricKind| Some((name.strip_suffix(kind.name)?, kind));
    METRICS.iter().filter_map(of).min_by_key(|(before, _)| before.len())
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Metric {
    /// Returns the default metric: operations per second of the whole run.
    pub(crate) fn ops() -> Self {
        Self { name: "ops".to_owned() }
    }

    /// Returns the metric of the numbers of a column, whose meaning only the user knows.
    pub(crate) fn value() -> Self {
        Self { name: VALUE.to_owned() }
    }

    /// Returns the direction in which the metric improves.
    pub(crate) fn direction(&self) -> Direction {
        self.kind().map_or(Direction::HigherIsBetter, |kind| kind.direction)
    }

    /// Returns what it is, in a few words.
    pub(crate) fn about(&self) -> &'static str {
        self.kind().map_or("", |kind| kind.about)
    }

    /// Returns the name of the flowop whose metric it is, or `None` for a metric of the whole run or of a command.
    pub(crate) fn flowop(&self) -> Option<&str> {
        self.prefix().filter(|_| !self.is_in_seconds())
    }

    /// Returns the name of the command whose time it is, or `None` for other metrics.
    pub(crate) fn command(&self) -> Option<&str> {
        self.prefix().filter(|_| self.is_in_seconds())
    }

    /// Returns the part of the name before its ending, without the point between them.
    fn prefix(&self) -> Option<&str> {
        ending(&self.name).and_then(|(before, _)| before.strip_suffix('.'))
    }

    /// True if it is a number of a column, which no run has.
    pub(crate) fn is_of_column(&self) -> bool {
        self.name.ends_with(VALUE)
    }

    fn kind(&self) -> Option<&'static MetricKind> {
        ending(&self.name).map(|(_, kind)| kind)
    }

    /// True if it is a response time, which only open loops have.
    pub(crate) fn is_response(&self) -> bool {
        self.kind().is_some_and(|kind| kind.name.starts_with(RESPONSE))
    }

    fn is_in_seconds(&self) -> bool {
        self.name.ends_with(SECONDS)
    }

    /// Returns the metric of the same kind of another flowop or command.
    #[must_use]
    pub(crate) fn of_flowop(&self, name: &str) -> Self {
        let ending = self.prefix().map_or(self.name.as_str(), |before| &self.name[before.len() + 1..]);
        Self { name: format!("{name}.{ending}") }
    }

    /// Returns the number of nanoseconds in the unit of the metric, or `None` when it is not a time.
    pub(crate) fn nanoseconds(&self) -> Option<f64> {
        let is_time = |kind: &MetricKind| kind.name.starts_with(LATENCY) || kind.name.starts_with(RESPONSE);
        match self.kind() {
            _ if self.is_in_seconds() => Some(1e9),
            kind if kind.is_some_and(is_time) => Some(1.0),
            _ => None,
        }
    }

    /// Returns the number of operations of a run that are slower than this percentile. Returns `None` for other
    /// metrics, and when the number of operations is unknown.
    pub(crate) fn operations_beyond(&self, run: &Observation) -> Option<f64> {
        let (before, kind) = ending(&self.name)?;
        let (_, percentile) = kind.name.split_once(".p")?;
        let beyond = 1.0 - percentile.parse::<f64>().ok()? / 100.0;
        let counted = if self.is_response() { format!("{before}{RESPONSE}") } else { before.to_owned() };
        Some(run.operations.get(&counted)? * beyond)
    }

    /// Returns the names of the metrics of a run for a message: those of the whole run, then those of flowops, at most
    /// sixteen, and the number of the others.
    pub(crate) fn names(run: &Observation) -> String {
        const SHOWN: usize = 16;
        // Figures such as `cpu_busy` are no metrics: neither direction is an improvement.
        let is_metric = |name: &&str| !name.contains('/') && name.parse::<Self>().is_ok();
        let mut names: Vec<&str> = run.figures.keys().map(String::as_str).filter(is_metric).collect();
        names.sort_by_key(|name| ending(name).is_some_and(|(before, _)| !before.is_empty()));
        let first = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(SHOWN) {
            0 => first,
            more => format!("{first} and {more} more"),
        }
    }

    /// Returns the help for a run that does not have this metric: the one that was probably meant, and its metrics.
    pub(crate) fn help_in(&self, run: &Observation) -> String {
        let near =
            meant(&self.name, run.figures.keys().map(String::as_str).filter(|name| name.parse::<Self>().is_ok()));
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        format!("{near}the metrics of {} are {}", run.source, Self::names(run))
    }

    /// Returns the value of the metric in a run, or `None` when the run has no such figure or the figure is not finite.
    pub(crate) fn of(&self, run: &Observation) -> Option<f64> {
        run.figures.get(&self.name).copied().filter(|value| value.is_finite())
    }
}
