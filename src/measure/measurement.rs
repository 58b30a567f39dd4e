//! The specification of a measurement and its outcome.

use super::record::RunFigures;
use super::series::Periodic;
use super::{Front, Status, WarmupLength};
use crate::plan::Plan;
use crate::source::SourceMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The length of a measurement, which ends earlier if its threads end.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    Given(Duration),
    /// This default length: neither command line nor script has set one.
    Default(Duration),
    /// Until the threads end.
    Unlimited,
}

impl Length {
    /// Returns the time limit. Shows a note if it is the default.
    pub(super) fn limit(self, front: &mut dyn Front) -> Option<Duration> {
        match self {
            Self::Given(length) => Some(length),
            Self::Default(length) => {
                front.note(&format!("no run time is given: {} s (`--runtime` changes it)", length.as_secs()));
                Some(length)
            }
            Self::Unlimited => None,
        }
    }
}

/// What the result contains of a measurement besides its figures, and what it must not contain.
#[derive(Default)]
pub struct Description {
    /// The values of the script's variables.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// SHA-256 digests of the texts that the script has loaded.
    pub loaded_scripts: Vec<String>,
    /// Texts that must not be in the result.
    pub secrets: Vec<String>,
    /// Notes of the script for the readers of the figures.
    pub notes: Vec<String>,
    /// Variables with the values with which the script was compared with its program.
    pub compared: Vec<(String, String)>,
    /// Whether latency histograms are included.
    pub lathist: bool,
}

/// The specification of a measurement.
pub struct Measurement<'a> {
    /// The plan to be run.
    pub plan: Arc<Plan>,
    /// The source texts of the plan, for messages.
    pub map: &'a SourceMap,
    pub length: Length,
    /// The length of the warm-up before the measurement.
    pub warmup: WarmupLength,
    /// The run starts with the existing files.
    pub as_is: bool,
    /// Interim reports.
    pub periodic: Option<Periodic>,
    /// Contents of the result.
    pub about: Description,
}

/// The outcome of a measurement. Its entry in the result is the last run of the document.
#[derive(Debug)]
pub struct Record {
    /// The status at the end.
    pub status: Status,
    /// Names and values of the figures that a script can read as `${stats.NAME}`. Empty if nothing was measured.
    pub figures: RunFigures,
}

impl Record {
    /// Returns the outcome without a measurement.
    pub(crate) fn of(status: Status) -> Self {
        Self { status, figures: Vec::new() }
    }
}
