//! The processes that make a run together, called ranks: their numbers, their hosts, and their agreement on the run.
//!
//! A program that runs in one process is its only rank. Not here: starting processes on several hosts, and what they
//! measure.

mod agreement;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod clock_offsets;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod group;
mod launcher;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod mail;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod meetings;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod message_thread;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod progress;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(test)]
mod tests;
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "without MPI only the tests start a group"))]
mod transport;

pub use agreement::{Conditions, Disagreement, NoAgreement, agree, of_first};
pub use clock_offsets::{ClockDrift, RankClock};
pub use group::RankGroup;
pub use launcher::Launch;
pub use mail::RankEnd;
pub use meetings::{Meeting, MeetingPoint};
#[cfg(feature = "mpi")]
pub use mpi::connect;
pub use progress::{LastProgress, RankProgress, RankRate, RanksInterval, RanksProgress};

use crate::os::proc;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

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

/// The error of an exchange between ranks: some took no part in it. It has at least one rank, in the order of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanksLost(pub Vec<LostRank>);

impl fmt::Display for RanksLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most ranks that a message names.
        const SHOWN: usize = 5;
        let named: Vec<String> = self.0.iter().take(SHOWN).map(LostRank::to_string).collect();
        f.write_str(&named.join("; "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for RanksLost {}

impl RanksLost {
    /// The help for this error.
    pub const HELP: &str = "look at the messages of that rank, and at its host and network";
}

/// The messages of all ranks in the order of their numbers, or the loss of a rank.
pub type Collected = Vec<Result<Vec<u8>, LostRank>>;

/// The common start of all ranks: an instant on the clock of each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonStart {
    /// The instant on this host's `CLOCK_MONOTONIC`, in nanoseconds. `None` for a single rank, which starts at once.
    pub at_ns: Option<u64>,
    /// The bound of the error with which this host's clock is known against that of rank 0, in nanoseconds.
    pub clock_error_ns: u64,
}

/// The ranks of a run, as one of them sees them.
pub trait Ranks: std::fmt::Debug + Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the name of the host of each rank, in the order of their numbers.
    fn hosts(&self) -> &[String];

    /// Waits until all ranks have called this.
    fn barrier(&self) -> Result<(), RanksLost> {
        self.gather(Vec::new())?;
        self.broadcast(Vec::new()).map(|_| ())
    }

    /// Returns the message of rank 0 on every rank. Every rank calls this; only rank 0's message counts.
    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost>;

    /// Returns the messages of all ranks on rank 0, in the order of their numbers; `None` on the others. Every rank
    /// calls this. An error on rank 0 if any rank is lost, and on the others if rank 0 is.
    fn gather(&self, message: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, RanksLost>;

    /// Returns on rank 0 the message of each rank, in the order of their numbers, or the loss of that rank; `None` on the
    /// others, which do not wait. Every rank calls this at the end of its run. Rank 0 waits for ranks whose runs last
    /// longer, but after a signal for a moment only.
    fn collect(&self, message: Vec<u8>) -> Option<Collected>;

    /// Returns the message of rank 0 on every rank. Rank 0 calls this when it has reported what it collected; the others
    /// call it after [`Ranks::collect`] and wait, but after a signal for a moment only. An error on a rank whose message
    /// rank 0 does not have.
    fn confirm(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        self.broadcast(message)
    }

    /// Agrees on an instant at which all ranks start. Every rank calls this.
    fn common_start(&self) -> Result<CommonStart, RanksLost>;

    /// Returns on rank 0 the clocks of the ranks with these numbers, in their order: `None` for a rank without a common
    /// start. Reads the clocks again, except after a signal, without a call on the other ranks. Empty on the others.
    fn clocks(&self, _ranks: &[usize]) -> Vec<Option<RankClock>> {
        Vec::new()
    }

    /// Sends the progress of this rank to rank 0. Drops the message instead of waiting if an earlier one is still on its
    /// way.
    fn report_progress(&self, _progress: RankProgress) {}

    /// Returns on rank 0 the last progress of each rank, in the order of their numbers. Empty on the others.
    fn progress(&self) -> Vec<LastProgress> {
        Vec::new()
    }

    /// Reports a number at a point of the run, and does not wait. The default, as that of [`Ranks::meet`], is for a
    /// rank without others.
    fn arrive(&self, _point: MeetingPoint, _number: u64) {}

    /// Reports a number at a point of the run, and waits until all ranks that take part in the run have reported
    /// theirs; at [`MeetingPoint::Phase`] until none of their numbers is below this one. `None` when `_is_over` says
    /// that the run is over; it is called several times a second. Only during a run, from [`Ranks::begin_run`] to
    /// [`Ranks::leave_run`].
    fn meet(&self, _point: MeetingPoint, number: u64, _is_over: &dyn Fn() -> bool) -> Option<Meeting> {
        Some(Meeting { least: number, largest: number })
    }

    /// Begins a run, before [`Ranks::common_start`]. Every rank calls this.
    fn begin_run(&self) {}

    /// Ends the part of this rank in the run: the others do not wait for it at a point. Every rank calls this before
    /// [`Ranks::collect`].
    fn leave_run(&self) {}

    /// Returns the number of ranks, at least 1.
    fn size(&self) -> usize {
        self.hosts().len()
    }

    /// Returns the name of this rank's host.
    fn host(&self) -> &str {
        self.hosts().get(self.rank()).map_or("", String::as_str)
    }

    /// Returns the number of different hosts, at least 1.
    fn distinct_hosts(&self) -> usize {
        self.hosts().iter().collect::<BTreeSet<_>>().len()
    }
}

/// The only rank of a run in one process.
#[derive(Debug)]
pub struct SingleRank {
    hosts: [String; 1],
}

impl SingleRank {
    /// Returns the rank of this process, which is number 0 of 1.
    pub fn new() -> Self {
        let [_, host, ..] = proc::uname();
        Self { hosts: [host] }
    }
}

impl Default for SingleRank {
    fn default() -> Self {
        Self::new()
    }
}

impl Ranks for SingleRank {
    fn rank(&self) -> usize {
        0
    }

    fn hosts(&self) -> &[String] {
        &self.hosts
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        Ok(message)
    }

    fn gather(&self, message: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, RanksLost> {
        Ok(Some(vec![message]))
    }

    fn collect(&self, message: Vec<u8>) -> Option<Collected> {
        Some(vec![Ok(message)])
    }

    fn common_start(&self) -> Result<CommonStart, RanksLost> {
        Ok(CommonStart { at_ns: None, clock_error_ns: 0 })
    }
}
