//! The digest of the operations of a run.

use serde::{Deserialize, Serialize};

/// A hash of the first operations of a run's threads. It is equal for equal operations in equal order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Digest {
    /// Hash of the first operations of all threads, each as (flowop, file, offset, size), in hexadecimal.
    pub value: String,
    /// Number of operations to hash in each thread.
    pub operations: u64,
    /// Number of threads that performed fewer operations. Digests of two runs are comparable only if it is 0 in
    /// both, or if the runs performed exactly the same operations.
    pub short_threads: u64,
}
