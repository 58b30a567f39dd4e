//! A sweep: the load curve of a workload over several levels of one factor (`wmlrun.sweep/1`), with intervals, peak,
//! knee and overall response time.

use super::{Validity, cautions, notes};
use crate::analysis::{
    Capacity, Estimate, LoadPoint, OverallResponse, RepeatState, ResponseMethod, independent_mean, knee,
    overall_response,
};
use crate::import::{Metric, Observation};
use crate::report::metrics::{REQUEST_RESPONSE, REQUESTS};
use crate::result::{LimitVerdict, MIN_BEYOND};
use crate::util::count::measured;
use crate::util::size;
use serde::Serialize;
use std::collections::BTreeMap;

/// The confidence level of intervals.
const LEVEL: f64 = 0.95;

/// A load curve. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// `wmlrun.sweep/1`.
    pub schema: String,
    /// The name of the workload.
    pub name: String,
    /// The variable that differs between the points.
    pub factor: String,
    /// A point for each level, in the order in which they were given.
    pub points: Vec<SweepPoint>,
    /// The index of the knee, beyond which the response time rises steeply; null if there is none.
    pub knee: Option<usize>,
    /// The method by which the overall response time was computed.
    pub method: ResponseMethod,
    /// The peak rate and the overall response time; null if no run has a result.
    pub overall: Option<OverallResponse>,
    /// The further metrics whose estimates the points have; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// The greatest load at which a limit is kept, if it was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<LoadLimit>,
    /// The number of requested runs of all points. The budget may have ended before it was reached. Absent in a curve of a
    /// factorial experiment, which has the number itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_runs: Option<u64>,
    /// Notes on how the runs were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether this is a curve of an experiment, whose answer has the cautions.
    #[serde(skip)]
    pub is_part: bool,
    #[serde(flatten)]
    pub validity: Validity,
}

/// What a search for the greatest load at which a limit is kept has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadLimit {
    /// The limit, such as `view.response.p99 < 20ms`.
    pub limit: String,
    pub metric: String,
    /// The limit as a number: times are in nanoseconds.
    pub threshold: f64,
    #[serde(flatten)]
    pub found: Capacity,
}

impl LoadLimit {
    /// The exit status of a command with this answer.
    pub fn code(&self) -> u8 {
        let verdict = match self.found {
            Capacity::Found(_) | Capacity::AlwaysMet { .. } => LimitVerdict::Met,
            Capacity::NeverMet { .. } => LimitVerdict::NotMet,
            Capacity::NotMonotone { .. } | Capacity::Unstable { .. } | Capacity::Unfinished { .. } => {
                LimitVerdict::Unclear
            }
        };
        verdict.code()
    }

    /// The answer in a part of a sentence.
    pub fn text(&self, factor: &str) -> String {
        let limit = &self.limit;
        let at = |load: f64| format!("{factor}={}", shown(load));
        match self.found {
            Capacity::Found(found) => {
                let (low, high) = (shown(found.low), shown(found.high));
                format!("{limit} holds up to {} [{low}, {high}]", at(found.value))
            }
            Capacity::AlwaysMet { load } => format!("{limit} holds at all loads that were tried, up to {}", at(load)),
            Capacity::NeverMet { load } => format!("{limit} never holds: not even at {}", at(load)),
            Capacity::NotMonotone { low, high } => format!(
                "no greatest load: at {} the runs kept {limit} better than at {}, so that the load alone does not decide",
                at(high),
                at(low)
            ),
            Capacity::Unstable { low, high } => format!(
                "unstable: between {} and {} {limit} holds in some runs and not in others",
                at(low),
                shown(high)
            ),
            Capacity::Unfinished { low: Some(low), high: Some(high) } if low >= high => format!(
                "not complete: between {} and {} {limit} holds in some runs and not in others so far",
                at(high),
                shown(low)
            ),
            Capacity::Unfinished { low, high } => {
                let holds = low.map(|load| format!("holds at {}", at(load)));
                let fails = high.map(|load| format!("does not at {}", at(load)));
                let known: Vec<String> = holds.into_iter().chain(fails).collect();
                let known = if known.is_empty() { "is not known at any load".to_owned() } else { known.join(", ") };
                format!("not complete: {limit} {known}")
            }
        }
    }
}

/// A load with as many digits as its interval may have.
fn shown(load: f64) -> String {
    if load >= 1000.0 || load.fract() == 0.0 { format!("{load:.0}") } else { measured(load) }
}

/// The results at one level. Figures are means of its runs; intervals are 95 % intervals, infinite for a single run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SweepPoint {
    /// The value of the factor.
    pub level: String,
    /// The number of complete runs.
    pub runs: u64,
    /// The number of failed runs.
    pub failed: u64,
    /// The reason why the last of the failed runs failed.
    pub failure: Option<String>,
    /// The offered rate of an open loop, as the script asks for it, in requests per second.
    pub offered: Option<f64>,
    /// The achieved rate of an open loop, in requests per second.
    pub achieved: Option<f64>,
    /// The achieved rate of requests, if the response time is that of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Estimate>,
    /// Whether a run achieved less than it offered, so that its response times grow for as long as it lasts.
    #[serde(skip)]
    pub is_overloaded: bool,
    /// The rate of the I/O in each complete run.
    #[serde(skip)]
    pub rates: Vec<f64>,
    /// The rate of the I/O, in operations per second. A request may consist of several operations.
    pub rate: Option<Estimate>,
    /// The mean response time of the requests of an open loop, else the mean latency. Results of earlier versions know
    /// only that of the operations.
    pub response: Option<Estimate>,
    /// The median of the same times, and their 99th percentile.
    #[serde(skip)]
    pub percentiles: [Option<Estimate>; 2],
    /// The busy fraction of all processors, 0 to 1.
    pub cpu_busy: Option<f64>,
    /// The estimates of the further metrics, by name. Runs with too few operations beyond a percentile do not count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Estimate>,
}

impl SweepPoint {
    /// What the curve is of: requests if their response time is known, else operations.
    pub(crate) fn throughput(&self) -> Option<Estimate> {
        self.requests.or(self.rate)
    }
}

/// Computes the curve from the runs of each level.
pub fn sweep(name: &str, factor: &str, levels: &[String], runs: &[Vec<Observation>], method: ResponseMethod) -> Sweep {
    let points: Vec<SweepPoint> = levels.iter().zip(runs).map(|(level, runs)| point(level, runs)).collect();
    let (order, curve) = (load_order(&points), curve(&points));
    let by_level: Vec<&[Observation]> = runs.iter().map(Vec::as_slice).collect();
    Sweep {
        schema: "wmlrun.sweep/1".to_owned(),
        name: name.to_owned(),
        factor: factor.to_owned(),
        knee: knee(&curve).ok().and_then(|n| order.get(n).copied()),
        method,
        overall: overall_response(&curve, method),
        metrics: Vec::new(),
        capacity: None,
        planned_runs: None,
        is_part: false,
        notes: notes::on_warnings(&by_level).chain(notes::on_outliers(&by_level, &Metric::ops())).collect(),
        validity: Validity::of(cautions::of_curve(&by_level), &by_level),
        points,
    }
}

/// Returns the indices of the points in the order of their load: that of their levels if all are numbers or sizes, else
/// the given order.
pub(super) fn load_order(points: &[SweepPoint]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let loads = points.iter().map(|point| load(&point.level)).collect::<Option<Vec<f64>>>();
    if let Some(loads) = loads {
        order.sort_by(|a, b| loads[*a].total_cmp(&loads[*b]));
    }
    order
}

/// Returns the number or size that a level is, or `None` for other levels.
fn load(level: &str) -> Option<f64> {
    let number = level.parse::<f64>().ok().filter(|load| load.is_finite());
    number.or_else(|| size::parse(level).ok().map(|bytes| bytes as f64))
}

/// Returns the load curve of the points in the order of their load, with one point for each.
pub(super) fn curve(points: &[SweepPoint]) -> Vec<LoadPoint> {
    let load = |point: &SweepPoint| LoadPoint {
        rate: point.throughput().map_or(0.0, |rate| rate.value),
        response: point.response.map(|response| response.value),
    };
    load_order(points).into_iter().filter_map(|n| points.get(n)).map(load).collect()
}

/// True if a run has enough operations beyond a percentile, or the metric is none.
fn has_enough(metric: &Metric, run: &Observation) -> bool {
    metric.operations_beyond(run).is_none_or(|ops| ops >= MIN_BEYOND as f64)
}

impl Sweep {
    /// The same with further metrics of the points, of which these are the runs.
    #[must_use]
    pub(crate) fn with_metrics(mut self, metrics: &[Metric], runs: &[Vec<Observation>]) -> Self {
        for metric in metrics.iter().filter(|metric| **metric != Metric::ops()) {
            for (point, runs) in self.points.iter_mut().zip(runs) {
                let values = metric.values(runs.iter().filter(|run| run.failure.is_none() && has_enough(metric, run)));
                let estimate = independent_mean(&values, LEVEL).map(Estimate::from_zero);
                point.figures.extend(estimate.map(|estimate| (metric.to_string(), estimate)));
            }
            self.metrics.push(metric.to_string());
        }
        self
    }

    /// Returns the number of runs that were made, and that of those requested, if some were not made.
    pub(crate) fn missing_runs(&self) -> Option<(u64, u64)> {
        let made = self.points.iter().map(|point| point.runs + point.failed).sum();
        self.planned_runs.filter(|planned| *planned > made).map(|planned| (made, planned))
    }

    /// The exit status of a command with this result. A curve without a point is no result. That the budget ended before
    /// the last run has a status.
    pub(crate) fn code(&self) -> u8 {
        match (&self.capacity, self.overall, self.missing_runs()) {
            (Some(found), ..) => found.code(),
            (None, None, _) => 1,
            (None, Some(_), Some(_)) => RepeatState::NotConverged.code(),
            (None, Some(_), None) => 0,
        }
    }

    /// True if the curve is of the requests of an open loop.
    pub(crate) fn is_of_requests(&self) -> bool {
        self.points.iter().any(|point| point.requests.is_some())
    }

    /// True if a point has the greatest rate.
    pub(crate) fn is_peak(&self, point: &SweepPoint) -> bool {
        self.overall.is_some_and(|overall| point.throughput().is_some_and(|rate| rate.value >= overall.peak))
    }

    /// Returns the loads in ascending order, if all levels are numbers or sizes.
    pub fn loads(&self) -> Option<Vec<f64>> {
        self.in_load_order().map(|(_, point)| load(&point.level)).collect()
    }

    /// Returns the points with their indices, in the order of their load: that of their levels if all are numbers or
    /// sizes, else the given order.
    pub(crate) fn in_load_order(&self) -> impl Iterator<Item = (usize, &SweepPoint)> {
        load_order(&self.points).into_iter().filter_map(move |n| Some((n, self.points.get(n)?)))
    }

    /// True if the order of the loads is unknown and may be another one than that of the points: the levels are
    /// not numbers, and the first has the greatest rate.
    pub(super) fn has_doubtful_order(&self) -> bool {
        let mut rates = self.points.iter().filter_map(|point| Some(point.throughput()?.value));
        let Some(first) = rates.next() else { return false };
        let is_known = self.points.iter().all(|point| load(&point.level).is_some());
        let others: Vec<f64> = rates.collect();
        !is_known && !others.is_empty() && others.into_iter().all(|rate| rate < first)
    }
}

/// Computes the point of one level.
fn point(level: &str, runs: &[Observation]) -> SweepPoint {
    let (failed, whole): (Vec<&Observation>, Vec<&Observation>) = runs.iter().partition(|run| run.failure.is_some());
    let estimate = |name: &str| -> Option<Estimate> {
        let values: Vec<f64> = whole.iter().map(|run| run.figures.get(name).copied()).collect::<Option<_>>()?;
        // The runs of a level are treated as independent, because runs of other levels are made between them.
        independent_mean(&values, LEVEL).map(Estimate::from_zero)
    };
    let request_response = estimate(REQUEST_RESPONSE);
    let achieved = estimate(REQUESTS);
    let requests = request_response.and(achieved);
    let rate = estimate("ops");
    // Of a request of several operations only the mean is known.
    let is_one_operation = requests.is_none_or(|done| rate.is_some_and(|rate| rate.value < 1.01 * done.value));
    // The response time of an open loop, else the latency.
    let times = if estimate("response.mean").is_some() { "response" } else { "latency" };
    let is_told = |metric: &Metric| {
        let beyond = |run: &&Observation| metric.operations_beyond(run).is_some_and(|ops| ops >= MIN_BEYOND as f64);
        whole.iter().all(beyond)
    };
    let percentile = |what: &str| {
        let name = format!("{times}.{what}");
        name.parse().is_ok_and(|metric| is_one_operation && is_told(&metric)).then(|| estimate(&name)).flatten()
    };
    SweepPoint {
        level: level.to_owned(),
        runs: whole.len() as u64,
        failed: failed.len() as u64,
        failure: failed.last().and_then(|run| run.failure.clone()),
        // Results of earlier versions have only the requests that arrived, whose number is random.
        offered: estimate("requested").or_else(|| estimate("offered")).map(|offered| offered.value),
        achieved: achieved.map(|achieved| achieved.value),
        requests,
        is_overloaded: whole.iter().any(|run| run.warnings.iter().any(|code| code == cautions::UNSTABLE)),
        rates: whole.iter().filter_map(|run| run.figures.get("ops").copied()).collect(),
        rate,
        response: request_response.or_else(|| estimate(&format!("{times}.mean"))),
        percentiles: ["p50", "p99"].map(percentile),
        cpu_busy: estimate("cpu_busy").map(|share| share.value),
        figures: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::float_cmp)]
    use super::*;

    fn run(ops: f64, latency: f64) -> Observation {
        let figures = [("ops", ops), ("latency.mean", latency)].map(|(name, value)| (name.to_owned(), value));
        Observation { figures: BTreeMap::from(figures), ..Observation::default() }
    }

    /// The curve does not depend on the order in which the levels were given.
    #[test]
    fn levels_that_are_numbers_are_in_the_order_of_their_load() {
        let points = [("1", 100.0, 1e6), ("2", 200.0, 1.1e6), ("8", 290.0, 2e6), ("16", 300.0, 9e6)];
        let of = |points: &[(&str, f64, f64)]| {
            let levels: Vec<String> = points.iter().map(|(level, ..)| (*level).to_owned()).collect();
            let runs: Vec<Vec<Observation>> = points.iter().map(|(_, ops, ns)| vec![run(*ops, *ns)]).collect();
            sweep("x", "n", &levels, &runs, ResponseMethod::Sfs3)
        };
        let rising = of(&points);
        let falling = of(&[points[3], points[2], points[1], points[0]]);
        assert_eq!((rising.overall, rising.knee), (falling.overall, Some(2)));
        assert_eq!((falling.knee, falling.points[1].level.as_str()), (Some(1), "8"));
        let sizes = ["1m", "64k", "4k"].map(str::to_owned);
        let found = sweep("x", "n", &sizes, &[vec![run(1.0, 1.0)], vec![run(2.0, 1.0)], vec![]], ResponseMethod::Sfs3);
        assert_eq!((load_order(&found.points), found.has_doubtful_order()), (vec![2, 1, 0], false));
        let names = |first: f64| {
            let levels = ["many", "few"].map(str::to_owned);
            sweep("x", "n", &levels, &[vec![run(first, 1.0)], vec![run(2.0, 1.0)]], ResponseMethod::Sfs3)
        };
        assert_eq!((names(3.0).has_doubtful_order(), names(1.0).has_doubtful_order()), (true, false));
    }

    #[test]
    fn the_answer_of_a_search_is_told() {
        let of = |found| {
            let (limit, metric) = ("v.latency.p99 < 20ms".to_owned(), "v.latency.p99".to_owned());
            let found = LoadLimit { limit, metric, threshold: 2e7, found };
            (found.text("users"), found.code())
        };
        let found = Capacity::Found(Estimate { value: 19.0, low: 17.0, high: 21.0 });
        let (low, high) = (Some(8.0), Some(16.0));
        for (found, code, text) in [
            (found, 0, "v.latency.p99 < 20ms holds up to users=19 [17, 21]"),
            (Capacity::AlwaysMet { load: 64.0 }, 0, "up to users=64"),
            (Capacity::NeverMet { load: 1.0 }, 10, "never holds: not even at users=1"),
            (Capacity::NotMonotone { low: 8.0, high: 9.0 }, 11, "no greatest load: at users=9 the runs kept"),
            (Capacity::Unstable { low: 8.0, high: 9.5 }, 11, "unstable: between users=8 and 9.50"),
            (Capacity::Unfinished { low, high }, 11, "holds at users=8, does not at users=16"),
            (Capacity::Unfinished { low: high, high: low }, 11, "between users=8 and 16"),
            (Capacity::Unfinished { low: None, high: None }, 11, "is not known at any load"),
        ] {
            let (said, status) = of(found);
            assert!(said.contains(text) && status == code, "{said} {status}");
        }
    }

    /// Two runs of which one is three times as fast have an interval that is wider than the mean.
    #[test]
    fn an_interval_of_rates_is_cut_at_zero() {
        let found = sweep("x", "n", &["1".to_owned()], &[vec![run(100.0, 1e6), run(300.0, 3e6)]], ResponseMethod::Sfs3);
        let (rate, response) = (found.points[0].rate.unwrap(), found.points[0].response.unwrap());
        assert_eq!((rate.low, response.low), (0.0, 0.0));
        assert!((rate.relative() - 6.35).abs() < 0.01, "{}", rate.relative());
        let csv = crate::comparison::formats::shown::csv(&found);
        assert!(csv.contains(",200,0,") && !csv.contains('-'), "{csv}");
        let bencher = crate::comparison::formats::shown::bencher(&found);
        let found: serde_json::Value = serde_json::from_str(&bencher).unwrap();
        assert_eq!(found["x n=1"]["ops"]["lower_value"], 0.0);
        assert!(found["x n=1"]["ops"]["upper_value"].as_f64().unwrap() > 1000.0, "{bencher}");
    }

    #[test]
    fn a_curve_has_a_peak_and_keeps_failed_points() {
        let levels = ["1", "2", "4", "8"].map(str::to_owned);
        let broken = Observation { failure: Some("no space".to_owned()), ..Observation::default() };
        let runs = [
            vec![run(100.0, 1e6), run(102.0, 1e6), run(98.0, 1e6)],
            vec![run(200.0, 1.1e6); 3],
            vec![run(300.0, 4e6), broken.clone()],
            vec![broken.clone(), broken],
        ];
        let found = sweep("varmail", "nthreads", &levels, &runs, ResponseMethod::Sfs3);
        assert_eq!(
            found.points.iter().map(|p| (p.runs, p.failed)).collect::<Vec<_>>(),
            [(3, 0), (3, 0), (1, 1), (0, 2)]
        );
        let first = found.points[0].rate.unwrap();
        assert!(first.value == 100.0 && first.low < 98.0 && first.high > 102.0, "{first:?}");
        assert_eq!((found.points[3].rate, found.points[3].failure.as_deref()), (None, Some("no space")));
        assert_eq!((found.overall.unwrap().peak, found.knee), (300.0, Some(1)));
        // Failed runs were made too.
        let of = |planned_runs| Sweep { planned_runs, ..found.clone() }.missing_runs();
        assert_eq!([of(None), of(Some(10)), of(Some(12))], [None, None, Some((10, 12))]);
    }
}
