//! The phases of a run whose script defines several.

use serde::{Deserialize, Serialize};

/// One phase of a run. Its processes start when all threads of the previous phase have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseResult {
    /// The phase's number in the script.
    pub number: u64,
    /// Start of the phase, in seconds since the start of the run; null if it did not start.
    pub start_seconds: Option<f64>,
    /// The start before which the script does not let it begin (`start=`), in seconds since the start of the run; null
    /// without one.
    pub earliest_start_seconds: Option<f64>,
    /// Measured time of the phase.
    pub seconds: f64,
    /// Whether all its threads completed.
    pub complete: bool,
}
