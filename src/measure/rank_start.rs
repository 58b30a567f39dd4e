//! The start and the end of a run on one rank, as data.

use super::Status;
use crate::result::Run;

/// The end of a run on one rank.
pub(crate) struct MergedRun {
    /// The run of all ranks on rank 0; the rank's own on the others.
    pub(crate) run: Run,
    /// The status of the run.
    pub(crate) status: Status,
    /// Whether all ranks have made this run, so that rank 0 has those of the others.
    pub(crate) of_all_ranks: bool,
}

/// The start of a run on one rank.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RankStart {
    /// Delay compared to the common start, in nanoseconds. `None` for a single rank.
    pub(crate) skew_ns: Option<i64>,
    /// The bound of the error of the delay.
    pub(crate) error_ns: u64,
}
