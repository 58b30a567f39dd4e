//! The phases of a run, where its script has several.

use serde::{Deserialize, Serialize};

/// One phase of a run: processes that started when all threads of the phase before had ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseResult {
    /// As the script numbers it.
    pub number: u64,
    /// When it began, in seconds after the run did; null if it did not come to that.
    pub start_seconds: Option<f64>,
    /// The time of it that was measured.
    pub seconds: f64,
    /// Whether all its threads came to their end.
    pub complete: bool,
}
