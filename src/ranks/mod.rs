//! The processes that make a run together, called ranks: what they exchange, and what they agree on.
//!
//! [`Together`] is all that the program knows of them. A program that runs in one process is alone, and sends nothing;
//! [`Others`] are reached with the feature `mpi`, and in tests. Not here: starting processes on several hosts (`hosts`), and
//! what they measure.

#[cfg(any(feature = "mpi", test))]
mod clock_offsets;
#[cfg(any(feature = "mpi", test))]
mod group;
mod launcher;
#[cfg(any(feature = "mpi", test))]
mod mail;
#[cfg(any(feature = "mpi", test))]
mod meetings;
#[cfg(any(feature = "mpi", test))]
mod message_thread;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(test)]
mod tests;
mod together;
#[cfg(any(feature = "mpi", test))]
mod transport;

#[cfg(any(feature = "mpi", test))]
pub use group::RankGroup;
pub(crate) use launcher::Launch;
#[cfg(any(feature = "mpi", test))]
pub use mail::RankEnd;
#[cfg(feature = "mpi")]
pub use mpi::{connect, mpi_version};
pub(crate) use together::Conditions;
pub use together::Together;

use crate::diag::Failure;
use crate::result::ranks::{LastProgress, RankProgress};
use crate::result::{LostRank, RankClock};
use crate::runtime::MeetingPlace;
use std::fmt;

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

impl From<RanksLost> for Failure {
    fn from(lost: RanksLost) -> Self {
        Self::failed(lost.to_string(), RanksLost::HELP)
    }
}

/// The messages of all ranks in the order of their numbers, or the loss of a rank.
pub type Collected = Vec<Result<Vec<u8>, LostRank>>;

/// The common start of all ranks: an instant on the clock of each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonStart {
    /// The instant on this host's `CLOCK_MONOTONIC`, in nanoseconds. `None` to start at once.
    pub at_ns: Option<u64>,
    /// The bound of the error with which this host's clock is known against that of rank 0, in nanoseconds.
    pub clock_error_ns: u64,
}

/// The ranks of a run, as one of several reaches them. All messages go to rank 0 or come from it.
pub trait Others: MeetingPlace {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The name of the host of each rank, in the order of their numbers.
    fn hosts(&self) -> &[String];

    /// Returns on rank 0 the message of each rank, in the order of their numbers, or the loss of that rank; `None` on the
    /// others, which do not wait. Every rank calls this. After a signal rank 0 waits for a moment only.
    fn collect(&self, message: Vec<u8>) -> Option<Collected>;

    /// Tells all ranks that these are lost. Rank 0 calls this.
    fn give_up(&self, _lost: &[LostRank]) {}

    /// Returns the message of rank 0 on every rank. Every rank calls this; only rank 0's message counts.
    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost>;

    /// The same after [`Others::collect`], when rank 0 has reported what it collected: after a signal the others wait for a
    /// moment only. An error on a rank whose message rank 0 does not have.
    fn confirm(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        self.broadcast(message)
    }

    /// Returns the messages of all ranks on rank 0; `None` on the others. An error on rank 0 if any rank is lost.
    fn gather(&self, message: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, RanksLost> {
        let Some(collected) = self.collect(message) else { return Ok(None) };
        let (mut all, mut lost) = (Vec::new(), Vec::new());
        for message in collected {
            match message {
                Ok(message) => all.push(message),
                Err(rank) => lost.push(rank),
            }
        }
        if lost.is_empty() {
            return Ok(Some(all));
        }
        self.give_up(&lost);
        Err(RanksLost(lost))
    }

    /// Begins a run, before [`Others::common_start`]. Every rank calls this.
    fn begin_run(&self) {}

    /// Agrees on an instant at which all ranks start. Every rank calls this.
    fn common_start(&self) -> Result<CommonStart, RanksLost>;

    /// Returns on rank 0 the clocks of the ranks with these numbers, in their order: `None` for a rank without a common
    /// start. Reads the clocks again, except after a signal, without a call on the other ranks. Empty on the others.
    fn clocks(&self, _ranks: &[usize]) -> Vec<Option<RankClock>> {
        Vec::new()
    }

    /// Returns on rank 0 the last progress of each rank, in the order of their numbers. On the others, sends their own to
    /// rank 0, or drops it instead of waiting if an earlier one is still on its way.
    fn progress(&self, _own: RankProgress) -> Option<Vec<LastProgress>> {
        None
    }
}
