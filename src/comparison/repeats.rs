//! The estimates from a series of repeated runs, `wmlrun.repeats/1`.

use super::{Caution, Validity, cautions, notes};
use crate::analysis::{MeanEstimate, RepeatRule, RepeatState, mean_interval, trend};
use crate::import::{Metric, Observation};
use crate::sheet::Usability;
use serde::Serialize;

/// The estimates from repeated runs of one workload. Latencies are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeats {
    /// `wmlrun.repeats/1`.
    pub schema: String,
    /// The name of the workload.
    pub name: String,
    /// The state in which the series ended.
    pub state: RepeatState,
    /// The requested relative half-width of the intervals; null if the series had a fixed number of runs.
    pub target: Option<f64>,
    /// All metrics, the primary one first.
    pub metrics: Vec<RepeatedMetric>,
    /// Notes on the validity of the runs.
    pub notes: Vec<String>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// The estimates of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatedMetric {
    /// The name of the metric.
    pub metric: String,
    /// The mean with its 95 % interval, corrected for autocorrelation.
    #[serde(flatten)]
    pub estimate: MeanEstimate,
    /// The half-width of the interval divided by the mean.
    pub relative_half_width: f64,
    /// The change from the first run to the last on a least-squares line, relative to the mean; null for fewer than
    /// five runs.
    pub trend: Option<f64>,
    /// The values of the observations, in their order.
    pub values: Vec<f64>,
}

/// Computes the estimates of a series that ended in `state`. Returns an error when a run lacks a metric or there is no
/// run.
pub fn repeats(
    name: &str,
    metrics: &[Metric],
    runs: &[Observation],
    rule: &RepeatRule,
    state: RepeatState,
) -> Result<Repeats, String> {
    let metric = |metric: &Metric| {
        let values = metric.values(runs.iter());
        if !metric.is_told(&runs.iter()) {
            return Err(notes::on_missing_metric(&metric.to_string()));
        }
        if values.len() < runs.len() {
            return Err(format!("a run has no `{metric}`"));
        }
        let estimate = mean_interval(&values, rule.level).ok_or("there are no runs")?;
        Ok(RepeatedMetric {
            metric: metric.to_string(),
            relative_half_width: estimate.relative(),
            estimate,
            trend: trend(&values).map(|trend| trend.change),
            values,
        })
    };
    let found: Vec<RepeatedMetric> = metrics.iter().map(metric).collect::<Result<_, String>>()?;
    let wide = found.first().filter(|_| rule.target.is_none());
    let mut validity = Validity::of(cautions::of_runs(&[runs]), &[runs]);
    let wide =
        wide.and_then(|first| notes::on_precision(&first.metric, first.relative_half_width, validity.is_of_replays));
    if found.first().is_some_and(|first| !first.relative_half_width.is_finite()) {
        let without = "the mean is without an interval, and may be chance";
        validity.cautions.push(Caution::new(Usability::WithCaution, without));
    }
    let is_wide = |note| Caution::new(Usability::WithCaution, "the interval is wide").instead_of(Some(note));
    validity.cautions.extend(wide.clone().map(is_wide));
    Ok(Repeats {
        schema: "wmlrun.repeats/1".to_owned(),
        name: name.to_owned(),
        state,
        target: rule.target,
        metrics: found,
        notes: wide.into_iter().chain(notes::on_runs(&[runs], metrics)).collect(),
        validity,
    })
}
