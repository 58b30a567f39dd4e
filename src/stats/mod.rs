//! Counting while a run goes on, and the result that is left of it.
//!
//! In: one [`ThreadStats`](recorder::ThreadStats) a thread, written by that thread alone and read by anyone, at any time.
//! Between: [`Snapshot`](snapshot::Snapshot)s, plain numbers that merge and subtract.
//! Out: a [`Document`](result::Document), the plain data of a result, which reports are made from.
//! Absent: clocks, threads, and what a flowop is; durations come in as nanoseconds and names as text.

mod crowd;
pub mod hdr;
pub mod layout;
pub mod recorder;
pub mod result;
pub mod snapshot;
pub mod timeline;
