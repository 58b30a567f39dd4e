//! The live stream of a run for dashboards (`--live`), `wmlrun.live/1`: a JSON object per line, for the start of a run,
//! for each interval, and for its end. Experiments have one for each run that was recorded.
//!
//! Totals are those of the I/O flowops, as in the summary of a result. In a run of several ranks they are the sums of all
//! ranks, while the flowops of an interval are those of rank 0. Not in here: when a line is due, and where it is written.

use super::csv_runs::ExperimentRun;
use crate::result::ranks::{RankRate, RanksInterval};
use crate::result::{Document, Interval, IntervalFlowop, Run};
use crate::util::size::MIB;
use crate::util::visible_json;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the format, in every line.
pub(crate) const LIVE_SCHEMA: &str = "wmlrun.live/1";

/// A format of the live stream.
pub(crate) struct LiveFormat {
    /// The name for `--live`.
    pub name: &'static str,
    /// The description for the help, one line.
    pub about: &'static str,
    /// Returns the line of an event, with its end.
    pub line: fn(&LiveEvent<'_>) -> Vec<u8>,
    /// True if a file's first bytes are those of this format.
    pub is_own: fn(&[u8]) -> bool,
}

/// All formats of the live stream.
pub(crate) static LIVE_FORMATS: &[LiveFormat] =
    &[LiveFormat { name: "jsonl", about: "JSON Lines, an object per line", line: json_line, is_own: is_json_line }];

pub(crate) fn find_live(name: &str) -> Option<&'static LiveFormat> {
    LIVE_FORMATS.iter().find(|format| format.name == name)
}

/// What happened in a run.
pub(crate) enum LiveEvent<'a> {
    /// A run has started.
    Started {
        /// The result so far.
        document: &'a Document,
        /// The entry of the run so far.
        run: &'a Run,
        /// Its planned length in seconds.
        seconds: Option<f64>,
    },
    /// An interval has ended, the last one of the run.
    Interval {
        /// The number of the run, from 1.
        number: usize,
        /// The entry of the run so far.
        run: &'a Run,
        /// The number of failed operations since the start.
        errors: u64,
        /// The interval of all ranks, if there are several.
        ranks: Option<&'a RanksInterval>,
    },
    /// A run has ended, the last one of the document.
    Ended {
        /// The result so far.
        document: &'a Document,
    },
    /// A run of an experiment was recorded.
    Recorded {
        of: ExperimentRun<'a>,
        /// The reason why it failed; `None` when it is complete.
        failure: Option<&'a str>,
        /// The duration in seconds, including commands; `None` when it is unknown.
        seconds: Option<f64>,
        /// The metrics of the experiment. Latencies are in nanoseconds.
        metrics: BTreeMap<&'a str, f64>,
    },
}

/// The line for a run of an experiment.
#[derive(Serialize)]
struct RecordedLine<'a> {
    schema: &'static str,
    event: &'static str,
    experiment: &'a str,
    run: usize,
    arm: &'a str,
    failure: Option<&'a str>,
    seconds: Option<f64>,
    metrics: &'a BTreeMap<&'a str, f64>,
}

/// The line for the start of a run.
#[derive(Serialize)]
struct StartedLine<'a> {
    schema: &'static str,
    event: &'static str,
    run: usize,
    script: &'a str,
    label: Option<&'a str>,
    requested_seconds: Option<f64>,
    processes: u64,
    threads: u64,
}

#[derive(Serialize)]
struct IntervalLine<'a> {
    schema: &'static str,
    event: &'static str,
    run: usize,
    t: f64,
    seconds: f64,
    ops: u64,
    ops_per_s: f64,
    bytes: u64,
    mib_per_s: f64,
    mean_ns: Option<f64>,
    errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<LiveRanks<'a>>,
    flowops: Vec<IntervalFlowop>,
}

#[derive(Serialize)]
struct LiveRanks<'a> {
    all: usize,
    reporting: usize,
    slowest: Option<LiveRank<'a>>,
    fastest: Option<LiveRank<'a>>,
}

/// A rank of an interval.
#[derive(Serialize)]
struct LiveRank<'a> {
    rank: usize,
    host: &'a str,
    ops_per_s: f64,
}

impl<'a> LiveRanks<'a> {
    fn of(interval: &'a RanksInterval) -> Self {
        let rank = |rate: &'a RankRate| LiveRank { rank: rate.rank, host: &rate.host, ops_per_s: rate.ops_per_s };
        let (slowest, fastest) = (interval.slowest.as_ref().map(rank), interval.fastest.as_ref().map(rank));
        Self { all: interval.ranks, reporting: interval.reporting, slowest, fastest }
    }
}

/// The line for the end of a run.
#[derive(Serialize)]
struct EndedLine<'a> {
    schema: &'static str,
    event: &'static str,
    run: usize,
    state: &'static str,
    ended_by: &'a str,
    measured_seconds: f64,
    ops: u64,
    ops_per_s: f64,
    bytes: u64,
    mib_per_s: f64,
    mean_ns: Option<f64>,
    p99_ns: Option<u64>,
    errors: u64,
}

/// Returns the line of an event; empty if the event has none.
fn json_line(event: &LiveEvent<'_>) -> Vec<u8> {
    let schema = LIVE_SCHEMA;
    let line = match event {
        LiveEvent::Started { document, run, seconds } => visible_json::line(&StartedLine {
            schema,
            event: "started",
            run: document.runs.len() + 1,
            script: &document.script.path,
            label: document.label.as_deref(),
            requested_seconds: *seconds,
            processes: run.processes,
            threads: run.threads,
        }),
        LiveEvent::Interval { number, run, errors, ranks } => {
            let Some(interval) = run.intervals.last() else { return Vec::new() };
            let line = interval_line(*number, run, interval, *errors);
            visible_json::line(&match ranks {
                Some(ranks) => line.of_ranks(ranks),
                None => line,
            })
        }
        LiveEvent::Recorded { of, failure, seconds, metrics } => visible_json::line(&RecordedLine {
            schema,
            event: "recorded",
            experiment: of.experiment,
            run: of.number,
            arm: of.arm,
            failure: *failure,
            seconds: *seconds,
            metrics,
        }),
        LiveEvent::Ended { document } => {
            let Some(run) = document.runs.last() else { return Vec::new() };
            let summary = &run.summary;
            visible_json::line(&EndedLine {
                schema,
                event: "ended",
                run: document.runs.len(),
                state: run.state.name(),
                ended_by: &run.ended_by,
                measured_seconds: run.measured_seconds,
                ops: summary.ops,
                ops_per_s: summary.ops_per_s,
                bytes: summary.bytes,
                mib_per_s: summary.mib_per_s,
                mean_ns: summary.latency_ns.mean,
                p99_ns: summary.latency_ns.p99,
                errors: summary.errors,
            })
        }
    };
    // Writing to memory does not fail.
    line.unwrap_or_default()
}

impl<'a> IntervalLine<'a> {
    /// Replaces the totals of this rank by those of all ranks.
    fn of_ranks(self, all: &'a RanksInterval) -> Self {
        Self {
            ops: all.ops,
            ops_per_s: all.ops_per_s,
            bytes: all.bytes,
            mib_per_s: all.bytes_per_s / MIB,
            mean_ns: all.mean_ns,
            errors: all.errors,
            ranks: Some(LiveRanks::of(all)),
            ..self
        }
    }
}

fn interval_line(number: usize, run: &Run, interval: &Interval, errors: u64) -> IntervalLine<'static> {
    let of_io = || interval.flowops.iter().zip(&run.flowops).filter(|(_, flowop)| flowop.class.is_io()).map(|(i, _)| i);
    let (ops, bytes) = of_io().fold((0, 0), |(ops, bytes), flowop| (ops + flowop.ops, bytes + flowop.bytes));
    let latency: f64 = of_io().filter_map(|flowop| Some(flowop.mean_ns? * flowop.ops as f64)).sum();
    let per_second = |n: f64| if interval.seconds > 0.0 { n / interval.seconds } else { 0.0 };
    // During a run the intervals have no names yet.
    let named = interval.flowops.iter().zip(&run.flowops).map(|(flowop, of)| IntervalFlowop {
        name: format!("{}/{}/{}", of.process, of.thread, of.name),
        ..flowop.clone()
    });
    IntervalLine {
        schema: LIVE_SCHEMA,
        event: "interval",
        run: number,
        t: interval.t,
        seconds: interval.seconds,
        ops,
        ops_per_s: per_second(ops as f64),
        bytes,
        mib_per_s: per_second(bytes as f64 / MIB),
        mean_ns: (ops > 0).then(|| latency / ops as f64),
        errors,
        ranks: None,
        flowops: named.collect(),
    }
}

fn is_json_line(head: &[u8]) -> bool {
    head.starts_with(b"{\"schema\":\"wmlrun.live/")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{ExperimentRun, LIVE_FORMATS, LiveEvent, RankRate, RanksInterval, is_json_line};
    use crate::result::fixture::fixture;

    fn line(event: &LiveEvent<'_>) -> String {
        let bytes = (LIVE_FORMATS[0].line)(event);
        assert!(is_json_line(&bytes) && bytes.ends_with(b"}\n"));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_event_is_one_line() {
        let mut document = fixture();
        let mut run = document.runs[0].clone();
        run.intervals.truncate(1);
        document.script.path = "a\nb\u{9b}".to_owned();
        let lines = [
            line(&LiveEvent::Started { document: &document, run: &run, seconds: Some(60.0) }),
            line(&LiveEvent::Interval { number: 2, run: &run, errors: 3, ranks: None }),
            line(&LiveEvent::Ended { document: &document }),
        ];
        for (text, (event, number)) in lines.iter().zip([("started", 2), ("interval", 2), ("ended", 1)]) {
            assert_eq!(text.lines().count(), 1, "{text}");
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!((&value["event"], &value["run"]), (&event.into(), &number.into()), "{text}");
        }
        assert!(lines[0].contains("a\\nb\\u009b"), "{}", lines[0]);
        run.intervals.clear();
        let nothing = LiveEvent::Interval { number: 2, run: &run, errors: 0, ranks: None };
        assert!((LIVE_FORMATS[0].line)(&nothing).is_empty());
    }

    #[test]
    fn a_run_of_an_experiment_is_one_line() {
        let of = ExperimentRun { experiment: "a\nb", arm: "n=1", number: 3 };
        let failed = LiveEvent::Recorded { of, failure: Some("no space"), seconds: None, metrics: [].into() };
        let complete = LiveEvent::Recorded { of, failure: None, seconds: Some(1.5), metrics: [("ops", 2.0)].into() };
        let found = [failed, complete].map(|event| serde_json::from_str::<serde_json::Value>(&line(&event)).unwrap());
        assert_eq!((&found[0]["failure"], &found[0]["metrics"]), (&"no space".into(), &serde_json::json!({})));
        let shown = serde_json::json!({
            "schema": "wmlrun.live/1", "event": "recorded", "experiment": "a\nb", "run": 3, "arm": "n=1",
            "failure": null, "seconds": 1.5, "metrics": { "ops": 2.0 },
        });
        assert_eq!(found[1], shown);
    }

    #[test]
    fn totals_of_ranks_are_their_sums() {
        let mut run = fixture().runs.remove(0);
        run.intervals.truncate(1);
        let rate = |rank, ops_per_s| Some(RankRate { rank, host: "h\u{9b}".to_owned(), ops_per_s });
        let all = RanksInterval {
            ranks: 3,
            reporting: 2,
            ops: 70,
            ops_per_s: 7.0,
            bytes: 5 << 20,
            bytes_per_s: 1_048_576.0,
            mean_ns: Some(1.5),
            errors: 9,
            slowest: rate(2, 3.0),
            fastest: rate(0, 4.0),
        };
        let text = line(&LiveEvent::Interval { number: 1, run: &run, errors: 0, ranks: Some(&all) });
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let totals = ["ops", "ops_per_s", "bytes", "mib_per_s", "mean_ns", "errors"].map(|key| value[key].as_f64());
        assert_eq!(totals, [70.0, 7.0, 5_242_880.0, 1.0, 1.5, 9.0].map(Some));
        let ranks = serde_json::json!({
            "all": 3, "reporting": 2,
            "slowest": { "rank": 2, "host": "h\u{9b}", "ops_per_s": 3.0 },
            "fastest": { "rank": 0, "host": "h\u{9b}", "ops_per_s": 4.0 },
        });
        assert_eq!(value["ranks"], ranks);
        assert_eq!(value["flowops"].as_array().unwrap().len(), run.flowops.len());
    }

    #[test]
    fn totals_are_those_of_io() {
        let document = fixture();
        let mut run = document.runs[0].clone();
        run.intervals.truncate(1);
        let text = line(&LiveEvent::Interval { number: 1, run: &run, errors: 0, ranks: None });
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let io = run.flowops.iter().zip(&run.intervals[0].flowops).filter(|(flowop, _)| flowop.class.is_io());
        assert_eq!(value["ops"], io.map(|(_, interval)| interval.ops).sum::<u64>());
        assert_eq!(value["flowops"].as_array().unwrap().len(), run.flowops.len());
    }
}
