//! Limits on metrics, `view.latency.p99 <= 20ms`: how they are written, and whether runs keep them.

use super::{Metric, Observation};
use crate::analysis::Estimate;
use crate::result::{LimitOutcome, LimitVerdict, MIN_BEYOND};
use crate::util::count::{count, fixed, measured};
use crate::util::duration;
use std::fmt;
use std::str::FromStr;

/// On which side of the limit a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitBound {
    Below,
    AtMost,
    Above,
    AtLeast,
}

use LimitBound::{Above, AtLeast, AtMost, Below};

/// How bounds are written; of two that begin alike the longer one comes first.
const BOUNDS: [(&str, LimitBound); 6] =
    [("<=", AtMost), (">=", AtLeast), ("≤", AtMost), ("≥", AtLeast), ("<", Below), (">", Above)];

impl LimitBound {
    fn is_kept(self, value: f64, threshold: f64) -> bool {
        match self {
            Below => value < threshold,
            AtMost => value <= threshold,
            Above => value > threshold,
            AtLeast => value >= threshold,
        }
    }

    fn negated(self) -> Self {
        match self {
            Below => AtLeast,
            AtLeast => Below,
            Above => AtMost,
            AtMost => Above,
        }
    }
}

/// A limit on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricLimit {
    pub metric: Metric,
    bound: LimitBound,
    /// In the unit of the metric.
    pub threshold: f64,
    /// The threshold as it was written.
    written: String,
}

impl fmt::Display for MetricLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = BOUNDS.iter().find(|(_, bound)| *bound == self.bound).map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.metric, self.written)
    }
}

impl FromStr for MetricLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "expected a metric, `<`, `<=`, `>` or `>=`, and a value, such as `latency.p99 < 20ms`";
        let (name, rest) = text.find(['<', '>', '≤', '≥']).map(|at| text.split_at(at)).ok_or(form)?;
        let sign = BOUNDS.iter().find_map(|(sign, bound)| Some((*bound, rest.strip_prefix(sign)?)));
        let (bound, value) = sign.ok_or(form)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || value.is_empty() {
            return Err(form.to_owned());
        }
        let metric: Metric = name.parse()?;
        let threshold = threshold(&metric, value)?;
        Ok(Self { metric, bound, threshold, written: value.to_owned() })
    }
}

/// Reads a value of a metric. A time must have its unit; for others it may be left out.
fn threshold(metric: &Metric, text: &str) -> Result<f64, String> {
    if let Some(unit) = metric.nanoseconds() {
        if text.parse::<f64>().is_ok() {
            return Err(format!("`{metric}` is a time: give `{text}` a unit, such as `{text}ms`"));
        }
        let time = duration::parse(text).map_err(|e| e.to_string())?;
        return Ok(time.as_nanos() as f64 / unit);
    }
    let unit = metric.unit();
    let number = text.strip_suffix(unit).or_else(|| text.strip_suffix("/s")).unwrap_or(text).trim_end();
    let found = number.parse().ok().filter(|number: &f64| number.is_finite());
    found.ok_or_else(|| match unit {
        "" => format!("`{text}` is not a number, which `{metric}` is"),
        unit => format!("`{text}` is not a value of `{metric}`, which is in {unit}"),
    })
}

impl MetricLimit {
    /// The limit that is met where this one is not: that of a condition to fail.
    #[must_use]
    pub(crate) fn negated(self) -> Self {
        Self { bound: self.bound.negated(), ..self }
    }

    /// Whether a figure keeps the limit.
    pub fn is_kept(&self, value: f64) -> bool {
        self.bound.is_kept(value, self.threshold)
    }

    /// The logarithm of the ratio of a figure to the limit, or of the limit to the figure: above 0 on the wrong side.
    pub fn excess(&self, value: f64) -> f64 {
        let excess = (value.max(f64::MIN_POSITIVE) / self.threshold).ln();
        if matches!(self.bound, Below | AtMost) { excess } else { -excess }
    }

    /// The operations beyond the percentile of the run that has the fewest, if these are too few for it to count.
    pub(crate) fn too_few_beyond(&self, runs: &[&Observation]) -> Option<f64> {
        let beyond = runs.iter().filter_map(|run| self.metric.operations_beyond(run)).reduce(f64::min);
        beyond.filter(|beyond| *beyond < MIN_BEYOND as f64)
    }

    /// Whether the runs of an arm keep the limit. `mean` gives the mean of several runs and its interval.
    pub fn judge(&self, arm: &str, runs: &[&Observation], mean: fn(&[f64]) -> Option<Estimate>) -> LimitOutcome {
        let values = Some(self.metric.values(runs.iter().copied())).filter(|values| values.len() == runs.len());
        let found = values.and_then(|values| match values[..] {
            [] => None,
            [value] => Some(Estimate { value, low: value, high: value }),
            _ => mean(&values),
        });
        let outcome = LimitOutcome { limit: self.to_string(), arm: arm.to_owned(), ..LimitOutcome::default() };
        let Some(found) = found else {
            return LimitOutcome { text: "unclear: a run has no such figure".to_owned(), ..outcome };
        };
        let few = self.too_few_beyond(runs);
        let verdict = match (few, self.is_kept(found.low), self.is_kept(found.high)) {
            (None, true, true) => LimitVerdict::Met,
            (None, false, false) => LimitVerdict::NotMet,
            _ => LimitVerdict::Unclear,
        };
        let share = (found.value - self.threshold).abs() / self.threshold.abs();
        let margin = share.is_finite().then_some(if self.is_kept(found.value) { share } else { -share });
        let ends = found.ends().filter(|_| runs.len() > 1);
        let mut text = format!("{}: {}", verdict.name(), self.shown(found.value));
        if let Some((low, high)) = ends {
            text += &format!(" [{}, {}]", self.shown(low), self.shown(high));
        }
        let times = found.value / self.threshold;
        text += &match (margin, found.value > self.threshold) {
            (None, _) => String::new(),
            (_, true) if times >= 2.0 => format!(", {} times the limit", measured(times)),
            (_, is_above) => {
                let side = if is_above { "above" } else { "below" };
                format!(", {} % {side} the limit", fixed(share * 100.0, usize::from(share < 0.1)))
            }
        };
        if let Some(few) = few {
            let few = count(few as u64, "operation");
            text += &format!("; the percentile has {few} beyond it, and needs {MIN_BEYOND}");
        } else if verdict == LimitVerdict::Unclear {
            text += if ends.is_some() { "; the interval includes it" } else { "; the runs give no interval" };
        }
        let (value, low, high) = (Some(found.value), ends.map(|ends| ends.0), ends.map(|ends| ends.1));
        LimitOutcome { verdict, value, low, high, margin, text, ..outcome }
    }

    /// A figure of the metric with its unit.
    fn shown(&self, value: f64) -> String {
        match self.metric.nanoseconds() {
            Some(unit) => duration::latency(value.max(0.0) * unit),
            None => format!("{} {}", measured(value.max(0.0)), self.metric.unit()).trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::analysis::independent_mean;

    fn limit(text: &str) -> MetricLimit {
        text.parse().unwrap()
    }

    fn run(p99: f64, ops: f64) -> Observation {
        let mut run = Observation::default();
        run.figures.insert("view.latency.p99".to_owned(), p99);
        run.figures.insert("ops".to_owned(), ops);
        run.operations.insert("view.".to_owned(), ops);
        run
    }

    fn judged(text: &str, runs: &[Observation]) -> (LimitVerdict, String) {
        let runs: Vec<&Observation> = runs.iter().collect();
        let found = limit(text).judge("", &runs, |values| independent_mean(values, 0.95));
        (found.verdict, found.text)
    }

    #[test]
    fn a_limit_is_read_and_shown() {
        for (text, shown) in [
            ("view.latency.p99<20ms", "view.latency.p99 < 20ms"),
            (" ops  >=  1000 ops/s", "ops >= 1000 ops/s"),
            ("mib ≥ 5.5", "mib >= 5.5"),
            ("cpu.percent > 80%", "cpu.percent > 80%"),
        ] {
            assert_eq!(limit(text).to_string(), shown);
        }
        assert!((limit("seconds < 2m").threshold - 120.0).abs() < 1e-9);
        assert!((limit("latency.p99 < 1.5ms").threshold - 1.5e6).abs() < 1e-9);
        assert_eq!(limit("ops < 5").negated().to_string(), "ops >= 5");
        for (text, why) in [
            ("latency.p99 < 20", "give `20` a unit, such as `20ms`"),
            ("view.p99 < 20ms", "did you mean `view.latency.p99`?"),
            ("ops < 20ms", "in ops/s"),
            ("ops", "expected a metric"),
            ("ops <", "expected a metric"),
        ] {
            let said = text.parse::<MetricLimit>().unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_limit_is_met_not_met_or_unclear() {
        use LimitVerdict::{Met, NotMet, Unclear};
        let of = |all: &[f64]| all.iter().map(|ms| run(ms * 1e6, 1e4)).collect::<Vec<_>>();
        for (runs, expected) in [
            (of(&[10.0]), (Met, "met: 10.0 ms, 50 % below the limit")),
            (of(&[21.0]), (NotMet, "not met: 21.0 ms, 5.0 % above the limit")),
            (of(&[10.0, 10.0, 10.0]), (Met, "met: 10.0 ms [10.0 ms, 10.0 ms], 50 % below the limit")),
            (of(&[15.0, 25.0]), (Unclear, "; the interval includes it")),
            (vec![run(1e6, 6000.0)], (Unclear, "; the percentile has 60 operations beyond it, and needs 100")),
            (vec![Observation::default()], (Unclear, "unclear: a run has no such figure")),
            (Vec::new(), (Unclear, "unclear: a run has no such figure")),
        ] {
            let (verdict, text) = judged("view.latency.p99 <= 20ms", &runs);
            assert_eq!(verdict, expected.0, "{text}");
            assert!(text.ends_with(expected.1), "{text}");
        }
        assert_eq!(judged("ops >= 20000", &of(&[1.0])).0, NotMet);
    }
}
