//! Counters of a run, written while it goes on.
//!
//! In: one [`ThreadStats`](recorder::ThreadStats) a thread, written by that thread alone and read by anyone, at any time.
//! Out: [`Snapshot`](snapshot::Snapshot)s, plain numbers that merge and subtract.
//! Absent: clocks, threads, and what a flowop is; durations come in as nanoseconds and names as text.

mod sharded;
pub mod hdr;
pub mod layout;
pub mod recorder;
pub mod snapshot;
