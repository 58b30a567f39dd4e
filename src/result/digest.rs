//! The digest of what the threads of a run did.

use serde::{Deserialize, Serialize};

/// One number for what the threads of a run did: equal for equal operations in equal order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Digest {
    /// Hash of each thread's first operations, as (flowop, file, offset, size), in hexadecimal.
    pub value: String,
    /// How many operations of each thread were to be hashed.
    pub operations: u64,
    /// Threads that did fewer: two runs can be compared only if it is 0 in both, or if they did just the same.
    pub short_threads: u64,
}
