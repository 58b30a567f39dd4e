//! Limits that results must keep (`--fail-if`), and whether they do.

use serde::{Deserialize, Serialize};

wml_text::named! {
    /// Whether a limit is met.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LimitVerdict {
        Met = "met";
        NotMet = "not met";
        /// The interval includes the limit, or the figure is unknown or of too few operations.
        #[default]
        Unclear = "unclear";
    }
}

impl LimitVerdict {
    /// The exit status of a command with this verdict: that of the verdict of a comparison which says the same.
    pub fn code(self) -> u8 {
        match self {
            Self::Met => 0,
            Self::NotMet => 10,
            Self::Unclear => 11,
        }
    }
}

/// A limit, and whether a run or the runs of an arm keep it. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitOutcome {
    /// What is required, such as `view.latency.p99 <= 20ms`.
    pub limit: String,
    /// The arm of an experiment; absent if there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arm: String,
    pub verdict: LimitVerdict,
    /// The figure, of several runs their mean; null if it is unknown.
    pub value: Option<f64>,
    /// The ends of the 95 % interval of the mean; null for a single run.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The distance of the figure from the limit as a share of the limit, negative if it is on the wrong side.
    pub margin: Option<f64>,
    /// The verdict with figure and margin, for people.
    pub text: String,
}

impl LimitOutcome {
    /// What is required, and of which arm.
    pub fn title(&self) -> String {
        if self.arm.is_empty() { self.limit.clone() } else { format!("{} of {}", self.limit, self.arm) }
    }

    /// The exit status of a command that has one without limits: a failure stays, then comes a limit that is not met.
    pub fn status<'a>(all: impl IntoIterator<Item = &'a Self>, without: u8) -> u8 {
        let (not_met, unclear) = (LimitVerdict::NotMet, LimitVerdict::Unclear);
        let all: Vec<LimitVerdict> = all.into_iter().map(|limit| limit.verdict).collect();
        match without {
            0 if all.contains(&not_met) => not_met.code(),
            0 if all.contains(&unclear) => unclear.code(),
            10..=12 if all.contains(&not_met) => not_met.code(),
            status => status,
        }
    }
}
