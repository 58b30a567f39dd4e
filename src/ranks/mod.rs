//! The processes that make a run together, called ranks: their numbers and their hosts.
//!
//! A program that runs in one process is its only rank. Not here: starting processes on several hosts, and what they
//! measure.

mod launcher;

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
}
