//! The hosts and ranks of a run that several processes made together, as parts of its result.

use super::{CacheState, Document, Environment, FilesetResult, Latency, Run, RunEnvironment, RunState, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One host of a run, with the figures of its ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostResult {
    /// Name of the host.
    pub host: String,
    /// Numbers of its ranks, in ascending order, without lost ranks.
    pub ranks: Vec<u64>,
    /// The machine when the program started.
    pub environment: Environment,
    /// File systems and kernel settings when the run started.
    pub run_environment: RunEnvironment,
    /// Totals of its ranks. Its rates refer to the same time as those of the run.
    pub summary: Summary,
    /// The file sets of its ranks, one entry for each path.
    pub filesets: Vec<FilesetResult>,
    /// State of its page cache at the start.
    pub cache_state: CacheState,
}

/// One rank of a run. Its rates refer to its own measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankResult {
    /// Number of the rank, from 0.
    pub rank: u64,
    /// Name of its host.
    pub host: String,
    /// How its run ended.
    pub state: RunState,
    /// What ended its run, as text.
    pub ended_by: String,
    /// Delay of its start of measuring compared to the common start, in nanoseconds; negative if it was earlier. Null
    /// if unknown.
    pub start_skew_ns: Option<i64>,
    /// Bound of the error of `start_skew_ns`, in nanoseconds; null if unknown.
    pub clock_error_ns: Option<u64>,
    /// What its clock was ahead of that of rank 0 before the start, in nanoseconds, with the same bound; null if unknown.
    pub clock_offset_ns: Option<i64>,
    /// What its clock gained on that of rank 0 during the run, in millionths; null if unknown.
    pub clock_drift_ppm: Option<f64>,
    /// Bound of the error of `clock_drift_ppm`, in millionths; null if unknown.
    pub clock_drift_error_ppm: Option<f64>,
    /// Number of its WML threads.
    pub threads: u64,
    /// Its measured time.
    pub measured_seconds: f64,
    /// Number of I/O operations.
    pub ops: u64,
    /// I/O operations per second.
    pub ops_per_s: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Throughput in MiB (2²⁰ bytes) per second.
    pub mib_per_s: f64,
    /// Latency distribution of all I/O operations.
    pub latency_ns: Latency,
    /// Number of failed operations of flowops of all classes.
    pub errors: u64,
}

impl RankResult {
    /// Its figures as those of a run.
    pub fn totals(&self) -> Summary {
        let Self { ops, ops_per_s, bytes, mib_per_s, latency_ns, errors, .. } = *self;
        Summary { ops, ops_per_s, bytes, mib_per_s, latency_ns, errors, ..Summary::default() }
    }

    /// Returns the drift of its clock against that of rank 0; `None` if it is unknown.
    pub(crate) fn clock_drift(&self) -> Option<ClockDrift> {
        Some(ClockDrift { ppm: self.clock_drift_ppm?, error_ppm: self.clock_drift_error_ppm? })
    }
}

impl Run {
    /// Returns the rank whose clock drifts most against that of rank 0, of those whose drift is greater than its error.
    pub fn largest_clock_drift(&self) -> Option<(&RankResult, ClockDrift)> {
        let drifts = self.ranks.iter().filter_map(|rank| Some((rank, rank.clock_drift()?)));
        drifts.filter(|(_, drift)| drift.is_certain()).max_by(|a, b| a.1.ppm.abs().total_cmp(&b.1.ppm.abs()))
    }

    /// Returns the memory of all hosts of the run in bytes.
    pub fn memory(&self, document: &Document) -> u64 {
        if self.hosts.is_empty() {
            return document.environment.memory.total;
        }
        self.hosts.iter().map(|host| host.environment.memory.total).sum()
    }

    /// Returns the time that a thread worked, in seconds: of several ranks the mean of their measured times, which is
    /// longer than that of the run if they did not start and end together.
    pub(crate) fn seconds_of_ranks(&self) -> f64 {
        let working = || self.ranks.iter().filter(|rank| rank.threads > 0);
        match working().count() {
            0 => self.measured_seconds,
            n => working().map(|rank| rank.measured_seconds).sum::<f64>() / n as f64,
        }
    }

    /// Returns an upper bound of the time between the first and the last start of a rank, in nanoseconds; `None` if it
    /// is unknown for a rank.
    pub fn start_skew_ns(&self) -> Option<u64> {
        let bound = |rank: &RankResult| {
            let (skew, error) = (rank.start_skew_ns?, i64::try_from(rank.clock_error_ns?).ok()?);
            Some((skew.saturating_sub(error), skew.saturating_add(error)))
        };
        let bounds: Vec<(i64, i64)> = self.ranks.iter().map(bound).collect::<Option<_>>()?;
        let (first, last) = (bounds.iter().map(|(low, _)| low).min()?, bounds.iter().map(|(_, high)| high).max()?);
        Some(last.abs_diff(*first))
    }
}

/// A rank that takes no part in the run any more: its process ended, or it no longer answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRank {
    /// The number of the rank.
    pub rank: u64,
    /// The name of its host.
    pub host: String,
    /// What is known of it, as the end of a sentence: `has not answered for 20 s`.
    pub why: String,
}

impl fmt::Display for LostRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.why)
    }
}

impl LostRank {
    /// Returns the rank as messages name it.
    pub fn name(&self) -> String {
        rank_on_host(self.rank, &self.host)
    }
}

/// Returns a rank as messages name it.
pub fn rank_on_host(rank: impl fmt::Display, host: &str) -> String {
    format!("rank {rank} on `{host}`")
}

/// The drift of a rank's clock against that of rank 0, in millionths (microseconds per second).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockDrift {
    /// What the rank's clock gains.
    pub ppm: f64,
    /// The bound of the error of this.
    pub error_ppm: f64,
}

impl ClockDrift {
    /// True if the drift is greater than its error.
    pub fn is_certain(self) -> bool {
        self.ppm.abs() > self.error_ppm
    }

    /// Returns the time that passes on the clock of rank 0 while a second passes on that of the rank. A drift within its
    /// error counts as none.
    pub fn seconds_of_rank_0(self) -> f64 {
        if self.is_certain() { 1.0 / (1.0 + self.ppm / 1e6) } else { 1.0 }
    }
}

/// The clock of a rank against that of rank 0, from readings before and after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankClock {
    /// What the clock was ahead before the start, in nanoseconds.
    pub offset_ns: i64,
    /// The bound of the error of the offset, in nanoseconds.
    pub error_ns: u64,
    /// The drift during the run; `None` if the clock could not be read after the run.
    pub drift: Option<ClockDrift>,
}
