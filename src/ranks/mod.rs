//! The processes that make a run together, called ranks: their numbers, their hosts, and their agreement on the run.
//!
//! A program that runs in one process is its only rank. Not here: starting processes on several hosts, and what they
//! measure.

mod agreement;
mod launcher;

pub use agreement::{Conditions, Disagreement, agree, of_first};
pub use launcher::Launch;

use crate::os::proc;
use std::collections::BTreeSet;

/// The ranks of a run, as one of them sees them.
pub trait Ranks: std::fmt::Debug + Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the name of the host of each rank, in the order of their numbers.
    fn hosts(&self) -> &[String];

    /// Waits until all ranks have called this.
    fn barrier(&self);

    /// Returns the message of rank 0 on every rank. Every rank calls this; only rank 0's message counts.
    fn broadcast(&self, message: Vec<u8>) -> Vec<u8>;

    /// Returns the messages of all ranks on rank 0, in the order of their numbers; `None` on the others. Every rank
    /// calls this.
    fn gather(&self, message: Vec<u8>) -> Option<Vec<Vec<u8>>>;

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

    fn barrier(&self) {}

    fn broadcast(&self, message: Vec<u8>) -> Vec<u8> {
        message
    }

    fn gather(&self, message: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        Some(vec![message])
    }
}
