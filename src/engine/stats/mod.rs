//! Counters of a run, updated while it is in progress.
//!
//! Input: one [`ThreadStats`](recorder::ThreadStats) per thread, written by that thread only and read by any thread at
//! any time. Output: [`Snapshot`](wml_result::snapshot::Snapshot)s, plain numbers that can be merged and subtracted.
//! Deliberately absent: clocks, threads, and the meaning of a flowop. Durations are passed in nanoseconds.

mod sharded;
pub mod recorder;
