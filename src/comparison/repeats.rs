//! The estimates of a series of repeats, `wmlrun.repeats/1`.

use crate::analysis::{MeanEstimate, RepeatRule, RepeatState, mean_interval, trend};
use crate::import::{Metric, Observation};
use serde::{Deserialize, Serialize};

/// Repeats of one workload, in figures. Latencies are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// `wmlrun.repeats/1`.
    pub schema: String,
    /// What was repeated.
    pub name: String,
    /// How it ended.
    pub state: RepeatState,
    /// Half the width of an interval over the mean that was asked for; null if the number of runs alone decided.
    pub target: Option<f64>,
    /// Every metric, the primary one first.
    pub metrics: Vec<RepeatedMetric>,
}

/// A metric over all repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatedMetric {
    /// Its name.
    pub metric: String,
    /// Its mean with its 95 % interval, corrected for dependence of a run on the one before.
    #[serde(flatten)]
    pub estimate: MeanEstimate,
    /// Half the width over the mean.
    pub relative_half_width: f64,
    /// The change from the first run to the last by a straight line, over the mean; null of fewer than five.
    pub trend: Option<f64>,
    /// The observations, in their order.
    pub values: Vec<f64>,
}

/// Puts repeats together. `state` is how the series ended.
pub fn repeats(
    name: &str,
    metrics: &[Metric],
    runs: &[Observation],
    rule: &RepeatRule,
    state: RepeatState,
) -> Result<Repeats, String> {
    let metric = |metric: &Metric| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| metric.of(run)).collect();
        let values = values.ok_or_else(|| format!("not every run has `{metric}`"))?;
        let estimate = mean_interval(&values, rule.level).ok_or("there is no run")?;
        Ok(RepeatedMetric {
            metric: metric.to_string(),
            relative_half_width: estimate.relative(),
            estimate,
            trend: trend(&values).map(|trend| trend.change),
            values,
        })
    };
    Ok(Repeats {
        schema: "wmlrun.repeats/1".to_owned(),
        name: name.to_owned(),
        state,
        target: rule.target,
        metrics: metrics.iter().map(metric).collect::<Result<_, String>>()?,
    })
}
