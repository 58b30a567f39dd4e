//! What the results of the runs of an arm tell beyond the figures of its observations: the distributions of times, merged
//! over the runs and of each run, and the course of each run. Not in here: their pictures (`curves`, `courses`).

use super::timeline::{self, TimeColumn};
use crate::import::{self, Observation, number_in_file};
use crate::report::requests::rows;
use crate::report::text::FlowopLabels;
use crate::report::{io_latency, json};
use crate::result::snapshot::Dist;
use crate::result::{Document, FlowopResult, MIN_BEYOND, Run, ThreadRequests, hdr};
use crate::sheet::Symbol;
use indexmap::IndexMap;
use std::path::Path;

/// The classes of the first arms.
pub(super) const ARM_CLASSES: [&str; 2] = ["a", "b"];
/// The shapes of the first arms.
pub(super) const ARM_SYMBOLS: [Symbol; 2] = [Symbol::Circle, Symbol::Square];

/// The shares of operations beyond the points of a curve, in the first decade. Those of others are smaller by powers of ten.
const STEPS: [f64; 8] = [0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1];
/// The number of decades of a curve, up to p99.9999.
const DECADES: i32 = 6;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CurvePoint {
    /// The percentile, 0 to 100.
    pub(super) percentile: f64,
    /// Its value in nanoseconds.
    pub(super) ns: u64,
}

/// Times of operations in the runs of an arm.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmTimes {
    /// Those of all runs.
    pub(super) all: Dist,
    /// The curve of each run.
    pub(super) runs: Vec<Vec<CurvePoint>>,
}

impl ArmTimes {
    fn add(&mut self, run: &Dist) {
        self.runs.push(curve(run));
        self.all.merge(run);
    }
}

/// The rates of a request in the runs of an arm.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmRequests {
    /// Those of each run.
    pub(super) runs: Vec<ThreadRequests>,
}

impl ArmRequests {
    /// The mean over the runs.
    pub(super) fn mean(&self, of: fn(&ThreadRequests) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }
}

/// The course of a run.
#[derive(Clone, Debug)]
pub(super) struct RunCourse {
    /// Its intervals, or groups of them, without the warm-up.
    pub(super) columns: Vec<TimeColumn>,
    /// The names of the flowops whose percentiles the columns have; empty for those that are not of I/O.
    pub(super) flowops: Vec<String>,
}

/// The runs of an arm.
#[derive(Clone, Debug, Default)]
pub struct ArmRecords {
    /// The latencies of all I/O.
    pub(super) io: ArmTimes,
    /// The latencies of each I/O flowop by its label.
    pub(super) flowops: IndexMap<String, ArmTimes>,
    /// The response times of each request of open loops by its name.
    pub(super) requests: IndexMap<String, ArmTimes>,
    /// The rates of each request by the name of its thread definition, except for those that are a `measure=`.
    pub(super) rates: IndexMap<String, ArmRequests>,
    pub(super) courses: Vec<RunCourse>,
}

impl ArmRecords {
    /// Reads the results of runs. Returns `None` if one of them can't be read, or is not of this program.
    pub fn read<'a>(runs: impl IntoIterator<Item = &'a Observation>) -> Option<Self> {
        let mut records = Self::default();
        // A file may have several runs.
        let mut last: Option<(&str, Document)> = None;
        for observation in runs {
            let number = number_in_file(observation);
            let source = observation.source.as_str();
            let path = number.and_then(|_| source.rsplit_once(", run ")).map_or(source, |(path, _)| path);
            if last.as_ref().is_none_or(|(of, _)| *of != path) {
                let text = import::recorded_text(Path::new(path)).ok()?;
                last = Some((path, json::read(&text).ok()?));
            }
            let (_, document) = last.as_ref()?;
            // Of an experiment the last run counts.
            let index = number.unwrap_or(document.runs.len()).checked_sub(1)?;
            records.add(document.runs.get(index)?);
        }
        (!records.io.runs.is_empty()).then_some(records)
    }

    /// Adds a run.
    pub(super) fn add(&mut self, run: &Run) {
        self.io.add(&io_latency(run));
        let labels = FlowopLabels::of(run);
        let of_io = || run.flowops.iter().filter(|flowop| flowop.class.is_io());
        add_each(&mut self.flowops, of_io().map(|flowop| (labels.label(flowop), flowop.histogram.as_str())));
        let requests = rows(run);
        for (name, rates) in requests.iter().filter_map(|row| Some((&row.name, row.requests?))) {
            self.rates.entry(name.clone()).or_default().runs.push(rates.clone());
        }
        let requests = requests.iter().filter_map(|row| Some((row.name.trim(), row.step?)));
        let requests = requests.map(|(name, step)| (name.to_owned(), step.response_histogram.as_str()));
        add_each(&mut self.requests, requests);
        let (mut columns, _) = timeline::columns(run);
        columns.retain(|column| column.from >= 0.0);
        let label = |flowop: &FlowopResult| match flowop.class.is_io() {
            true => labels.label(flowop),
            false => String::new(),
        };
        self.courses.push(RunCourse { columns, flowops: run.flowops.iter().map(label).collect() });
    }
}

/// Adds the histograms of a run, each with its name. Those of one name are merged, and those that can't be read left out.
fn add_each<'a>(arm: &mut IndexMap<String, ArmTimes>, histograms: impl Iterator<Item = (String, &'a str)>) {
    let mut run: IndexMap<String, Dist> = IndexMap::new();
    for (name, histogram) in histograms {
        if let Some(times) = hdr::decode(histogram).ok().filter(|times| times.count > 0) {
            run.entry(name).or_default().merge(&times);
        }
    }
    for (name, times) in run {
        arm.entry(name).or_default().add(&times);
    }
}

/// The curve of a distribution. No point has fewer than [`MIN_BEYOND`] operations beyond it.
pub(super) fn curve(times: &Dist) -> Vec<CurvePoint> {
    // The rounding error of a share must not take a point away.
    let has_enough = |beyond: &f64| times.count as f64 * beyond >= MIN_BEYOND as f64 * (1.0 - 1e-9);
    let beyond = (0..DECADES).flat_map(|decade| STEPS.map(|step| step * 10_f64.powi(-decade)));
    let beyond: Vec<f64> = beyond.take_while(has_enough).collect();
    let shares: Vec<f64> = beyond.iter().map(|beyond| 1.0 - beyond).collect();
    let values = times.percentiles(&shares);
    // Rounded, so that the percentile of a name is that of its point.
    let percentile = |beyond: f64| (1e7 * (1.0 - beyond)).round() / 1e5;
    beyond.into_iter().zip(values).map(|(beyond, ns)| CurvePoint { percentile: percentile(beyond), ns }).collect()
}
