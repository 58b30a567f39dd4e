//! The metrics and the columns of tables: their names and units, and how each is read from the document of a run.
//!
//! To add a metric: a row in [`RATES`] or [`LEVELS`], which `wmlrun list metrics`, `--metric`, `explain`, completion and all
//! comparisons take. For a column in text, in Markdown, on the page and in CSV: a row of [`COLUMNS_BEHIND`], whose heading is
//! the name of the metric, so that `explain` knows it. A percentile is a row of [`PERCENTILES`](crate::result::PERCENTILES).
//!
//! What the document lacks comes first: what flowops count is in `result/flowop_result.rs`, what the kernel counts for a run
//! in `result/summary.rs`.

use crate::analysis::Direction;
use crate::result::environment::MountInfo;
use crate::result::{FlowopResult, Latency, Percentile, PercentilePlace, Run, Summary};
use crate::util::size::MIB;
use std::sync::LazyLock;

/// What the names of the metrics of response times begin with.
pub(crate) const RESPONSE: &str = "response.";
/// What the names of the metrics of latencies begin with.
pub(crate) const LATENCY: &str = "latency.";
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
pub(crate) struct MetricKind {
    /// The name, or the ending of the name.
    pub(crate) name: &'static str,
    pub(crate) unit: MetricUnit,
    /// The direction in which it improves.
    pub(crate) direction: Direction,
    /// What it is called in sentences.
    pub(crate) words: MetricWords,
    /// What it is, in a few words.
    pub(crate) about: &'static str,
    pub(crate) source: MetricSource,
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
pub(crate) enum MetricUnit {
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
    pub(crate) fn label(self) -> &'static str {
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
    pub(crate) fn word(self) -> &'static str {
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
    pub(crate) fn nanoseconds(self) -> Option<f64> {
        match self {
            Self::Nanoseconds => Some(1.0),
            Self::Seconds => Some(1e9),
            _ => None,
        }
    }
}

/// How the value of a metric is read from the entry of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetricSource {
    /// The reader of results computes it, for the run and for each flowop.
    Own,
    /// Only the whole run has it.
    Run(fn(&Run) -> Option<f64>),
    /// The whole run has it, and with a prefix flowops, whose values are summed, or commands.
    RunAndFlowops(fn(&Run) -> Option<f64>, fn(&FlowopResult) -> Option<f64>),
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

use ColumnFigure::{Count, MibPerS, Number, Time};
use Direction::{HigherIsBetter as Higher, LowerIsBetter as Lower};
use MetricSource::{Own, Run as OfRun, RunAndFlowops};
use MetricUnit::{
    Joules, KibThroughput, Mib, Nanoseconds, Operations, Percent, Seconds, Throughput, Transactions,
    TransactionsPerMinute, Unknown,
};
use MetricWords::{Level, Rate};

#[rustfmt::skip]
const RATES: &[MetricKind] = &[
    kind("ops", Operations, Higher, does("operations{of} per second"),
        "I/O operations per second", Own),
    kind("reads", Operations, Higher, does("reads per second"),
        "operations per second that read", OfRun(|run| Some(rate(run, |f| f.reads)))),
    kind("writes", Operations, Higher, does("writes per second"),
        "operations per second that write", OfRun(|run| Some(rate(run, |f| f.writes)))),
    kind("mib", Throughput, Higher, Rate("moves", "MiB per second{of}"),
        "MiB read and written per second", Own),
    kind("kib", KibThroughput, Higher, Rate("moves", "KiB per second{of}"),
        "the same in KiB", Own),
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
        "measured time of the run; with a prefix, time of a command", RunAndFlowops(|run| Some(run.measured_seconds), |_| None)),
    kind("cpu", Seconds, Lower, Level("processor time"),
        "processor time of the program and its commands, user and system", OfRun(cpu_seconds)),
    kind("cpu.percent", Percent, Lower, Level("processor use"), "this time in per cent of the measured time: 100 is one processor",
        OfRun(|run| Some(cpu_seconds(run)? * 100.0 / run.measured_seconds))),
    kind("cpu.op", Nanoseconds, Lower, Level("processor time per operation"),
        "this time per I/O operation", OfRun(|run| Some(run.summary.cpu_us_per_op? * 1e3))),
    kind("user", Seconds, Lower, Level("user time"),
        "user time of the program; with a prefix, of a command", RunAndFlowops(|run| run.summary.user_seconds, |f| f.command_user_seconds)),
    kind("system", Seconds, Lower, Level("system time"),
        "system time of the program; with a prefix, of a command", RunAndFlowops(|run| run.summary.system_seconds, |f| f.command_system_seconds)),
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
        "numbers of a column (`FILE:N`)", Own),
];

/// A figure of a flowop and of all I/O, in the tables of a run and in those of CSV.
#[derive(Clone, Copy)]
pub(crate) struct FigureColumn {
    /// The heading in CSV.
    pub(crate) key: &'static str,
    /// The heading in the tables of a run, and the least width of a screen that shows it.
    pub(crate) shown: Option<(&'static str, usize)>,
    /// The name of the metric that it is of a run.
    pub(crate) metric: Option<&'static str>,
    pub(crate) of_flowop: Option<fn(&FlowopResult) -> ColumnFigure>,
    pub(crate) of_all: Option<fn(&Summary) -> ColumnFigure>,
}

/// The value of such a figure, and with it how tables write it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ColumnFigure {
    Count(u64),
    Number(Option<f64>),
    /// In MiB per second; tables write no zero.
    MibPerS(f64),
    /// In nanoseconds.
    Time(Option<f64>),
}

impl FigureColumn {
    /// A figure of flowops only.
    const fn of_flowops(key: &'static str, of: fn(&FlowopResult) -> ColumnFigure) -> Self {
        Self { key, shown: None, metric: None, of_flowop: Some(of), of_all: None }
    }

    /// A figure of runs only.
    const fn of_runs(key: &'static str, of: fn(&Summary) -> ColumnFigure) -> Self {
        Self { key, shown: None, metric: None, of_flowop: None, of_all: Some(of) }
    }

    /// The same figure of all I/O.
    const fn and_all(self, of: fn(&Summary) -> ColumnFigure) -> Self {
        Self { of_all: Some(of), ..self }
    }

    const fn shown(self, heading: &'static str, from_width: usize) -> Self {
        Self { shown: Some((heading, from_width)), ..self }
    }

    const fn metric(self, name: &'static str) -> Self {
        Self { metric: Some(name), ..self }
    }
}

/// All columns, in the order of CSV: those before the percentiles.
#[rustfmt::skip]
pub(crate) const COLUMNS: &[FigureColumn] = &[
    FigureColumn::of_flowops("ops", |f| Count(f.ops)).and_all(|all| Count(all.ops)).shown("ops", 120),
    FigureColumn::of_flowops("ops_per_s", |f| Number(Some(f.ops_per_s))).and_all(|all| Number(Some(all.ops_per_s)))
        .shown("ops/s", 0).metric("ops"),
    FigureColumn::of_runs("reads_per_s", |all| Number(Some(all.reads_per_s))).metric("reads"),
    FigureColumn::of_runs("writes_per_s", |all| Number(Some(all.writes_per_s))).metric("writes"),
    FigureColumn::of_flowops("bytes", |f| Count(f.bytes)).and_all(|all| Count(all.bytes)),
    FigureColumn::of_flowops("mib_per_s", |f| MibPerS(f.mib_per_s)).and_all(|all| MibPerS(all.mib_per_s))
        .shown("MiB/s", 0).metric("mib"),
    FigureColumn::of_flowops("min_ns", |f| Time(f.latency_ns.min.map(|ns| ns as f64))),
    FigureColumn::of_flowops("mean_ns", |f| Time(f.latency_ns.mean)).and_all(|all| Time(all.latency_ns.mean))
        .shown("mean", 100).metric("latency.mean"),
    FigureColumn::of_flowops("stddev_ns", |f| Time(f.latency_ns.stddev)),
];

/// Those after the percentiles.
#[rustfmt::skip]
pub(crate) const COLUMNS_BEHIND: &[FigureColumn] = &[
    FigureColumn::of_flowops("max_ns", |f| largest(f.latency_ns)).and_all(|all| largest(all.latency_ns))
        .shown("max", 0).metric("latency.max"),
    FigureColumn::of_flowops("implicit_opens", |f| Count(f.implicit_opens)),
    FigureColumn::of_flowops("errors", |f| Count(f.errors.values().sum())).and_all(|all| Count(all.errors)),
    FigureColumn::of_flowops("late_ops", |f| Count(f.late_ops)),
    FigureColumn::of_flowops("starved_seconds", |f| Number(Some(f.starved_seconds))),
    FigureColumn::of_flowops("tool_ns_mean", |f| Time(f.tool_ns_mean)),
    FigureColumn::of_runs("cpu_us_per_op", |all| Number(all.cpu_us_per_op)),
];

fn largest(latency: Latency) -> ColumnFigure {
    Time(latency.max.map(|ns| ns as f64))
}

/// All metrics: rates, times of operations, and levels.
pub(crate) static METRICS: LazyLock<Vec<MetricKind>> = LazyLock::new(|| {
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
        kind(format!("{before}{name}").leak(), Nanoseconds, Lower, words, about.leak(), Own)
    })
    .collect()
}

/// Returns the operations and the MiB per second of flowops with the same name. The rate of a flowop refers to the time
/// of its phase. Rates of different phases can't be added up, so the totals are then divided by the time of the run.
pub(crate) fn rates(run: &Run, flowops: &[&FlowopResult]) -> (f64, f64) {
    let sum = |of: fn(&FlowopResult) -> f64| flowops.iter().map(|f| of(f)).sum::<f64>();
    let has_phases = flowops.windows(2).any(|pair| pair[0].phase != pair[1].phase);
    if has_phases && run.measured_seconds > 0.0 {
        (sum(|f| f.ops as f64) / run.measured_seconds, sum(|f| f.bytes as f64) / MIB / run.measured_seconds)
    } else {
        (sum(|f| f.ops_per_s), sum(|f| f.mib_per_s))
    }
}

/// The MiB per second of the I/O flowops in one direction.
fn throughput(run: &Run, is_it: fn(&FlowopResult) -> bool) -> f64 {
    let bytes: u64 = run.flowops.iter().filter(|f| f.class.is_io() && is_it(f)).map(|f| f.bytes).sum();
    if run.measured_seconds > 0.0 { mib(bytes) / run.measured_seconds } else { 0.0 }
}

/// The operations per second of the I/O flowops in one direction.
fn rate(run: &Run, is_it: fn(&FlowopResult) -> bool) -> f64 {
    let flowops: Vec<&FlowopResult> = run.flowops.iter().filter(|f| f.class.is_io() && is_it(f)).collect();
    rates(run, &flowops).0
}

/// The transactions per second; `None` if the script has none.
fn transactions(run: &Run) -> Option<f64> {
    let all: Vec<&FlowopResult> = run.flowops.iter().filter(|flowop| flowop.transaction).collect();
    (!all.is_empty()).then(|| rates(run, &all).0)
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

/// The figures of the whole run that the reader of results does not compute, by the names of their metrics.
pub(crate) fn of_whole_run(run: &Run) -> impl Iterator<Item = (&'static str, f64)> {
    METRICS.iter().filter_map(|kind| match kind.source {
        Own => None,
        MetricSource::Run(read) | RunAndFlowops(read, _) => Some((kind.name, read(run)?)),
    })
}

/// Those of some of its flowops together.
pub(crate) fn of_flowops(flowops: &[&FlowopResult]) -> impl Iterator<Item = (&'static str, f64)> {
    METRICS.iter().filter_map(|kind| match kind.source {
        RunAndFlowops(_, read) => {
            Some((kind.name, flowops.iter().filter_map(|flowop| read(flowop)).reduce(|a, b| a + b)?))
        }
        Own | MetricSource::Run(_) => None,
    })
}

/// The name of the metric that is the time of a run, and the ending of those of commands.
pub(crate) const SECONDS: &str = "seconds";

/// The names of the two parts of a processor time, or the endings of those of commands.
pub(crate) const DIVIDED: [&str; 2] = ["user", "system"];

/// The name of a number of a column.
pub(crate) const VALUE: &str = "value";
