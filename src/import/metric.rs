//! The metrics: their names, units and directions, and how each is read from a run.
//!
//! To add a metric: a row in [`RATES`] or [`LEVELS`], which `wmlrun list metrics` and `--metric` take; for a percentile one
//! of [`PERCENTILES`](crate::result::PERCENTILES). A figure that the document of a run lacks goes into `result` and
//! `docs/result.schema.json` first.

use super::Observation;
use crate::analysis::Direction;
use crate::diag::meant;
use crate::result::build::divided_times;
use crate::result::environment::MountInfo;
use crate::result::{FlowopResult, MIN_BEYOND, Percentile, PercentilePlace, Run};
use crate::util::size::MIB;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

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
/// The rate of the transactions. Their latencies have it as prefix.
pub(crate) const TRANSACTIONS: &str = "transactions";
/// The same rate per minute.
pub(crate) const PER_MINUTE: &str = "transactions.minute";
/// The rate of the requests of open loops. Their response time has it as prefix.
pub(crate) const REQUESTS: &str = "requests";
/// The mean time from the intended start of a request to its end.
pub(crate) const REQUEST_RESPONSE: &str = "requests.response.mean";

/// A metric of a run, of a flowop with the prefix `NAME.`, or of a command.
#[derive(Clone, Copy, Debug)]
pub struct MetricKind {
    /// The name, or the ending of the name.
    pub name: &'static str,
    unit: MetricUnit,
    /// The direction in which it improves.
    pub direction: Direction,
    /// What it is called in sentences.
    pub(crate) words: MetricWords,
    /// What it is, in a few words.
    pub about: &'static str,
    source: MetricSource,
}

/// What a metric is called in sentences. The name of a flowop or command stands at `{of}`, else at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetricWords {
    /// Something of which there is more or less per second: what is done, and to what.
    Rate(&'static str, &'static str),
    /// Something that is higher or lower, such as a latency.
    Level(&'static str),
}

const fn does(what: &'static str) -> MetricWords {
    Rate("does", what)
}

/// The unit of the values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricUnit {
    Operations,
    Transactions,
    TransactionsPerMinute,
    Throughput,
    KibThroughput,
    Nanoseconds,
    Seconds,
    Mib,
    Joules,
    Percent,
    /// Only the user knows it.
    Unknown,
}

impl MetricUnit {
    /// What stands behind a value; empty for times, which have their units in reports, and for what is unknown.
    fn label(self) -> &'static str {
        match self {
            Self::Operations => "ops/s",
            Self::Transactions => "per second",
            Self::TransactionsPerMinute => "per minute",
            Self::Throughput => "MiB/s",
            Self::KibThroughput => "KiB/s",
            Self::Mib => "MiB",
            Self::Joules => "J",
            Self::Percent => "%",
            Self::Nanoseconds | Self::Seconds | Self::Unknown => "",
        }
    }

    /// The same as one word, as in Go's benchmarks.
    fn word(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns/op",
            Self::Seconds => "s",
            Self::Transactions => "transactions/s",
            Self::TransactionsPerMinute => "transactions/min",
            Self::Unknown => "value",
            _ => self.label(),
        }
    }

    /// The number of nanoseconds in the unit; `None` if it is not one of time.
    fn nanoseconds(self) -> Option<f64> {
        match self {
            Self::Nanoseconds => Some(1.0),
            Self::Seconds => Some(1e9),
            _ => None,
        }
    }
}

/// How the value of a metric is read from the entry of a run.
#[derive(Clone, Copy, Debug)]
enum MetricSource {
    /// `own` computes it, for the run and for each flowop.
    Flowops,
    /// Only the whole run has it.
    Run(fn(&Run) -> Option<f64>),
    /// The whole run has it, and with a prefix a command.
    RunAndCommands(fn(&Run) -> Option<f64>),
}

const fn kind(
    name: &'static str,
    unit: MetricUnit,
    direction: Direction,
    words: MetricWords,
    about: &'static str,
    source: MetricSource,
) -> MetricKind {
    MetricKind { name, unit, direction, words, about, source }
}

use Direction::{HigherIsBetter as Higher, LowerIsBetter as Lower};
use MetricSource::{Flowops, Run as OfRun, RunAndCommands};
use MetricUnit::{
    Joules, KibThroughput, Mib, Nanoseconds, Operations, Percent, Seconds, Throughput, Transactions,
    TransactionsPerMinute, Unknown,
};
use MetricWords::{Level, Rate};

#[rustfmt::skip]
const RATES: &[MetricKind] = &[
    kind("ops", Operations, Higher, does("operations{of} per second"),
        "I/O operations per second", Flowops),
    kind("reads", Operations, Higher, does("reads per second"),
        "operations per second that read", OfRun(|run| Some(rate(run, |f| f.reads)))),
    kind("writes", Operations, Higher, does("writes per second"),
        "operations per second that write", OfRun(|run| Some(rate(run, |f| f.writes)))),
    kind("mib", Throughput, Higher, Rate("moves", "MiB per second{of}"),
        "MiB read and written per second", Flowops),
    kind("kib", KibThroughput, Higher, Rate("moves", "KiB per second{of}"),
        "the same in KiB", Flowops),
    kind("read.mib", Throughput, Higher, Rate("reads", "MiB per second"),
        "MiB read per second", OfRun(|run| Some(throughput(run, |f| f.reads)))),
    kind("written.mib", Throughput, Higher, Rate("writes", "MiB per second"),
        "MiB written per second", OfRun(|run| Some(throughput(run, |f| f.writes)))),
    kind(TRANSACTIONS, Transactions, Higher, does("transactions per second"),
        "transactions per second; `transactions.latency.p99` is a latency of theirs", OfRun(transactions)),
    kind(PER_MINUTE, TransactionsPerMinute, Higher, does("transactions per minute"),
        "the same per minute", OfRun(|run| Some(transactions(run)? * 60.0))),
    kind(REQUESTS, Transactions, Higher, does("requests per second"),
        "requests (iterations) of open loops per second", OfRun(|run| Some(run.open_loop.as_ref()?.achieved_per_s))),
    kind(REQUEST_RESPONSE, Nanoseconds, Lower, Level("mean response time of a request"),
        "mean response time of a whole request", OfRun(|run| run.open_loop.as_ref()?.response_ns_mean())),
];

#[rustfmt::skip]
const LEVELS: &[MetricKind] = &[
    kind(SECONDS, Seconds, Lower, Level("time of a run"),
        "measured time of the run; with a prefix, time of a command", RunAndCommands(|run| Some(run.measured_seconds))),
    kind("cpu", Seconds, Lower, Level("processor time"),
        "processor time of the program and its commands, user and system", OfRun(cpu_seconds)),
    kind("cpu.percent", Percent, Lower, Level("processor use"), "this time in per cent of the measured time: 100 is one processor",
        OfRun(|run| Some(cpu_seconds(run)? * 100.0 / run.measured_seconds))),
    kind("cpu.op", Nanoseconds, Lower, Level("processor time per operation"),
        "this time per I/O operation", OfRun(|run| Some(run.summary.cpu_us_per_op? * 1e3))),
    kind("user", Seconds, Lower, Level("user time"),
        "user time of the program; with a prefix, of a command", RunAndCommands(|run| run.summary.user_seconds)),
    kind("system", Seconds, Lower, Level("system time"),
        "system time of the program; with a prefix, of a command", RunAndCommands(|run| run.summary.system_seconds)),
    kind("memory", Mib, Lower, Level("peak memory"), "peak memory of the program, without the page cache, in MiB",
        OfRun(|run| Some(run.peak_memory as f64 / MIB).filter(|peak| *peak > 0.0))),
    kind("slab", Mib, Lower, Level("memory of kernel objects"),
        "inodes, directory entries and other objects of the kernel after the run, in MiB", OfRun(|run| Some(mib(run.slab_bytes.as_ref()?.after)))),
    kind("slab.before", Mib, Lower, Level("memory of kernel objects before the run"),
        "those before the run, in MiB", OfRun(|run| Some(mib(run.slab_bytes.as_ref()?.before)))),
    kind("pagecache", Mib, Lower, Level("page cache"), "page cache of the machine after the run, in MiB",
        OfRun(|run| Some(mib(run.page_cache_bytes.as_ref()?.after)))),
    kind("pagecache.before", Mib, Lower, Level("page cache before the run"), "page cache of the machine before the run, in MiB",
        OfRun(|run| Some(mib(run.page_cache_bytes.as_ref()?.before)))),
    kind("used", Mib, Lower, Level("used space"),
        "used space of the file systems after the run, in MiB", OfRun(|run| used(run, |mount| mount.free_after))),
    kind("used.before", Mib, Lower, Level("used space before the run"),
        "used space of the file systems before the run, in MiB", OfRun(|run| used(run, |mount| Some(mount.free)))),
    kind("energy", Joules, Lower, Level("energy"), "energy of the processors, or else of the batteries, in joules",
        OfRun(|run| Some(run.energy.as_ref()?.joules))),
    kind(VALUE, Unknown, Higher, Level("value"),
        "numbers of a column (`FILE:N`)", Flowops),
];

/// All metrics: rates, times of operations, and levels.
pub static METRICS: LazyLock<Vec<MetricKind>> = LazyLock::new(|| {
    let latency =
        times(LATENCY, "latency", ["mean latency of an operation", "latency of the slowest operation, a single event"]);
    let of_requests = ["mean response time in open loops (`rate=`)", "response time of the slowest request"];
    [RATES, &latency[..], &times(RESPONSE, "response time", of_requests), LEVELS].concat()
});

/// The mean, the percentiles and the maximum of a time.
fn times(before: &str, what: &str, [mean, max]: [&str; 2]) -> Vec<MetricKind> {
    let percentile = |of: &Percentile| match of.name {
        "p50" => (of.name, "median", format!("median {what}")),
        name => (name, name, format!("{}th percentile of the {what}", &name[1..])),
    };
    let percentiles = Percentile::shown_in(PercentilePlace::Metrics).map(percentile);
    let all = [("mean", "mean", mean.to_owned())].into_iter().chain(percentiles);
    let all = all.chain([("max", "largest", max.to_owned())]);
    all.map(|(name, which, about)| {
        let words = Level(format!("{which} {what}").leak());
        kind(format!("{before}{name}").leak(), Nanoseconds, Lower, words, about.leak(), Flowops)
    })
    .collect()
}

/// The MiB per second of the I/O flowops in one direction.
fn throughput(run: &Run, is_it: fn(&FlowopResult) -> bool) -> f64 {
    let bytes: u64 = run.flowops.iter().filter(|f| f.class.is_io() && is_it(f)).map(|f| f.bytes).sum();
    if run.measured_seconds > 0.0 { mib(bytes) / run.measured_seconds } else { 0.0 }
}

/// The operations per second of the I/O flowops in one direction.
fn rate(run: &Run, is_it: fn(&FlowopResult) -> bool) -> f64 {
    let flowops: Vec<&FlowopResult> = run.flowops.iter().filter(|f| f.class.is_io() && is_it(f)).collect();
    super::own::rates(run, &flowops).0
}

/// The transactions per second; `None` if the script has none.
fn transactions(run: &Run) -> Option<f64> {
    let all: Vec<&FlowopResult> = run.flowops.iter().filter(|flowop| flowop.transaction).collect();
    (!all.is_empty()).then(|| super::own::rates(run, &all).0)
}

/// The processor time, user and system.
fn cpu_seconds(run: &Run) -> Option<f64> {
    Some(run.summary.user_seconds? + run.summary.system_seconds?)
}

/// The used space of all file systems of the run, of which `free` gives the free one.
fn used(run: &Run, free: fn(&MountInfo) -> Option<u64>) -> Option<f64> {
    let mounts = &run.environment.mounts;
    let used = mounts.iter().map(|mount| Some(mib(mount.total.saturating_sub(free(mount)?))));
    used.sum::<Option<f64>>().filter(|_| !mounts.is_empty())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

/// The figures that `own` does not compute, by the names of their metrics.
pub(super) fn of_whole_run(run: &Run) -> impl Iterator<Item = (String, f64)> {
    METRICS.iter().filter_map(|kind| match kind.source {
        Flowops => None,
        MetricSource::Run(read) | RunAndCommands(read) => Some((kind.name.to_owned(), read(run)?)),
    })
}

/// The name of the metric that is the time of a run, and the ending of those of commands.
const SECONDS: &str = "seconds";

/// The names of the two parts of a processor time, or the endings of those of commands.
const DIVIDED: [&str; 2] = ["user", "system"];

/// The name of a number of a column.
pub(super) const VALUE: &str = "value";

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
        let kind = self.kind().filter(|kind| matches!(kind.source, RunAndCommands(_)))?;
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
