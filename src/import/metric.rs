//! The names of metrics, with the prefixes of flowops and commands, and their values in runs. The table of all metrics is
//! `report::metrics`.

use super::Observation;
use crate::analysis::Direction;
use crate::diag::meant;
use crate::report::metrics::{
    DIVIDED, LATENCY, METRICS, MetricKind, MetricSource, MetricUnit, MetricWords, PER_MINUTE, REQUEST_RESPONSE,
    REQUESTS, RESPONSE, SECONDS, TRANSACTIONS, VALUE,
};
use crate::result::{MIN_BEYOND, divided_times};
use std::fmt;
use std::str::FromStr;

/// The name of a figure of a run: `ops`, `mib`, `latency.mean`, `latency.p99`, `response.p99`. For a flowop it has the
/// prefix `NAME.`, as in `NAME.ops`. `seconds` is the time of the run, and `NAME.seconds` that of a command that the
/// experiment executes for each run. `value` is a number of a column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    name: String,
}

/// The measures of a published study of snapshots, each of which had to be precise: on Hammer all, on ZFS those up to `mib`.
/// It also had the number of operations, which `ops` is in a run of fixed length.
pub const STUDY: [&str; 13] = [
    "ops",
    "shadow-post-dbwr.ops",
    "shadow-post-lg.ops",
    "shadowhog.ops",
    "shadowhog.latency.mean",
    "shadowread.ops",
    "dbwrite-a.ops",
    "dbwrite-a.latency.mean",
    "reads",
    "writes",
    "mib",
    "shadowread.mib",
    "lg-write.latency.mean",
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

/// Returns the part of a name before its ending, and the metric of the ending. A metric of the whole run has nothing
/// before it.
fn ending(name: &str) -> Option<(&str, &'static MetricKind)> {
    // The longest ending is the right one, because some endings end in others.
    let of = |kind: &'static MetricKind| {
        let before = name.strip_suffix(kind.name)?;
        (before.is_empty() || !matches!(kind.source, MetricSource::Run(_))).then_some((before, kind))
    };
    METRICS.iter().filter_map(of).min_by_key(|(before, _)| before.len())
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Metric {
    /// The operations per second of the whole run.
    pub(crate) fn ops() -> Self {
        Self { name: "ops".to_owned() }
    }

    /// The metric if none is named. The rate of an open loop is the one that its script asks for, on any file system: such
    /// loops are compared by their mean response time.
    pub(crate) fn default_of(are_open_loops: bool) -> Self {
        Self { name: if are_open_loops { "response.mean" } else { "ops" }.to_owned() }
    }

    /// The metric of these runs if none is named.
    pub(crate) fn default_of_runs<'a>(runs: impl Iterator<Item = &'a Observation>) -> Self {
        let is_open_loop =
            |run: &Observation| run.operations.get(RESPONSE).is_some_and(|paced| Some(paced) == run.operations.get(""));
        Self::default_of(runs.map(is_open_loop).reduce(|all, one| all && one).unwrap_or(false))
    }

    /// Returns the metric of the numbers of a column, whose meaning only the user knows.
    pub(crate) fn value() -> Self {
        Self { name: VALUE.to_owned() }
    }

    /// Returns the direction in which the metric improves.
    pub(crate) fn direction(&self) -> Direction {
        self.kind().map_or(Direction::HigherIsBetter, |kind| kind.direction)
    }

    /// What it is called in sentences. `None` if it is unknown.
    pub(crate) fn words(&self) -> Option<MetricWords> {
        self.kind().map(|kind| kind.words)
    }

    /// Returns what it is, in a few words.
    pub(crate) fn about(&self) -> &'static str {
        self.kind().map_or("", |kind| kind.about)
    }

    /// Returns the name of the flowop whose metric it is, or `None` for a metric of the whole run or of a command.
    pub(crate) fn flowop(&self) -> Option<&str> {
        self.prefix().filter(|name| self.command().is_none() && *name != TRANSACTIONS)
    }

    /// Returns the name of the command of an experiment whose time it is, or `None` for other metrics. A flowop `command`
    /// has processor times too.
    pub(crate) fn command(&self) -> Option<&str> {
        let kind = self.kind().filter(|kind| kind.name == SECONDS || self.is_divided_time())?;
        let is_of_experiment = |name: &&str| {
            let first = name.split('-').next().unwrap_or_default();
            kind.name == SECONDS || ["before", "after", "record"].contains(&first)
        };
        self.prefix().filter(is_of_experiment)
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

    /// True if only runs with open loops have it.
    pub(crate) fn is_of_open_loops(&self) -> bool {
        self.is_response() || self.name == REQUESTS || self.name == REQUEST_RESPONSE
    }

    /// Returns the metric of the same kind of another flowop or command.
    #[must_use]
    pub(crate) fn of_flowop(&self, name: &str) -> Self {
        let ending = self.prefix().map_or(self.name.as_str(), |before| &self.name[before.len() + 1..]);
        Self { name: format!("{name}.{ending}") }
    }

    /// Returns the number of nanoseconds in the unit of the metric, or `None` when it is not a time.
    pub(crate) fn nanoseconds(&self) -> Option<f64> {
        self.kind()?.unit.nanoseconds()
    }

    /// Returns the unit of its values, if they have one in reports; else an empty text.
    pub(crate) fn unit(&self) -> &'static str {
        self.kind().map_or("", |kind| kind.unit.label())
    }

    /// Returns the unit as one word, as in Go's benchmarks.
    pub(crate) fn go_unit(&self) -> &'static str {
        self.kind().map_or("value", |kind| kind.unit.word())
    }

    /// Returns what stands above its values where the name has no room: the unit of a rate, or the end of the name.
    pub(crate) fn heading(&self) -> &str {
        let Some(kind) = self.kind() else { return &self.name };
        match kind.unit {
            MetricUnit::Operations | MetricUnit::Throughput | MetricUnit::KibThroughput => kind.unit.label(),
            MetricUnit::Transactions => "/s",
            MetricUnit::TransactionsPerMinute => "/min",
            MetricUnit::Percent => "%CPU",
            _ => kind.name.strip_prefix(LATENCY).unwrap_or(kind.name),
        }
    }

    /// Returns the part of the name that says what it is, without that of a flowop or command.
    pub(crate) fn kind_name(&self) -> &'static str {
        self.kind().map_or("", |kind| kind.name)
    }

    /// True if it is a part of a processor time, which is not known of short ones.
    pub(crate) fn is_divided_time(&self) -> bool {
        DIVIDED.contains(&self.kind_name())
    }

    /// True if the runs of a sample tell the metric. Parts of a processor time need enough of it in all runs together: left
    /// out run by run, the short ones would make the mean of the others too high.
    pub(crate) fn is_told<'a>(&self, runs: &(impl Iterator<Item = &'a Observation> + Clone)) -> bool {
        let all = |kind: &str| {
            let name = self.prefix().map_or_else(|| kind.to_owned(), |before| format!("{before}.{kind}"));
            runs.clone().filter_map(|run| run.figures.get(&name)).sum::<f64>()
        };
        !self.is_divided_time() || divided_times(all(DIVIDED[0]), all(DIVIDED[1])).is_some()
    }

    /// Returns the values of the runs of a sample that have the metric; none if they do not tell it.
    pub(crate) fn values<'a>(&self, runs: impl Iterator<Item = &'a Observation> + Clone) -> Vec<f64> {
        if self.is_told(&runs) { runs.filter_map(|run| self.of(run)).collect() } else { Vec::new() }
    }

    /// True if only runs with transactions have it.
    pub(crate) fn is_of_transactions(&self) -> bool {
        [TRANSACTIONS, PER_MINUTE].contains(&self.name.as_str()) || self.prefix() == Some(TRANSACTIONS)
    }

    /// Returns the share of the operations that are slower than this percentile, or `None` for other metrics.
    fn share_beyond(&self) -> Option<f64> {
        let (_, percentile) = self.kind()?.name.split_once(".p")?;
        Some(1.0 - percentile.parse::<f64>().ok()? / 100.0)
    }

    /// Returns the number of operations from which on a percentile counts, or `None` for other metrics.
    pub(crate) fn operations_needed(&self) -> Option<f64> {
        Some(MIN_BEYOND as f64 / self.share_beyond()?)
    }

    /// Returns the number of operations of a run that are slower than this percentile. Returns `None` for other
    /// metrics, and when the number of operations is unknown.
    pub(crate) fn operations_beyond(&self, run: &Observation) -> Option<f64> {
        let (before, beyond) = (ending(&self.name)?.0, self.share_beyond()?);
        let counted = if self.is_response() { format!("{before}{RESPONSE}") } else { before.to_owned() };
        Some(run.operations.get(&counted)? * beyond)
    }

    /// Returns the names of the metrics of a run for a message: its rates and times, those of flowops, and what only the
    /// whole run has; at most sixteen, and the number of the others.
    pub(crate) fn names(run: &Observation) -> String {
        const SHOWN: usize = 16;
        // Figures such as `cpu_busy` are no metrics: neither direction is an improvement.
        let is_metric = |name: &&str| !name.contains('/') && name.parse::<Self>().is_ok();
        let mut names: Vec<&str> = run.figures.keys().map(String::as_str).filter(is_metric).collect();
        names.sort_by_key(|name| {
            ending(name).map(|(before, kind)| (matches!(kind.source, MetricSource::Run(_)), !before.is_empty()))
        });
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

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
