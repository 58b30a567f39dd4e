//! What a thread is while it runs: its context, file slots, buffers, asynchronous operations, trace, and how an operation ends.
//!
//! Deliberately absent: which operations there are (`flowop`), in which order a thread does them (`plan`, `runtime`).

pub mod aio;
pub mod buffer;
pub mod buffered;
pub mod cx;
pub mod messages;
pub mod short;
pub mod slots;
pub mod trace;

mod own;
mod pick;
mod starvation;

pub use aio::{Aio, AioHow, AioPool, Outstanding};
pub use cx::{Account, OpCx, RunEnv, ThreadFiles, ThreadIo};
pub use pick::PickBy;
pub use starvation::{Makers, Starvation, View, maker};

/// What came of running a step.
#[derive(Debug)]
pub enum Outcome {
    /// Done, counted, go on.
    Ok,
    /// The run is over: the step ended late, or gave up waiting.
    Over,
    /// No file is left that it could work on, and nothing in the plan makes one.
    Exhausted,
    /// All that is left are files that only starved threads could make.
    Stuck(Box<OpFailure>),
    /// A `finishoncount` or `finishonbytes` was reached.
    Finished,
    /// It failed.
    Failed(Box<OpFailure>),
    /// Something that is not the set's own stands where it would have worked: the run ends, however errors are taken.
    Refused(Box<OpFailure>),
}

/// Why a step failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpFailure {
    /// What was tried, with its outcome: `open failed`, `slot 3 is already open`.
    pub what: String,
    /// The file, if there was one.
    pub path: Option<String>,
    /// The error number, if a call gave one.
    pub errno: Option<i32>,
    /// What to do.
    pub help: String,
    /// Another flowop of the thread whose failure it is, by its place there: an asynchronous one that is heard of now.
    pub of: Option<usize>,
}

/// Files, or the empty directories of `leafdirs`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum UnitKind {
    /// Files.
    File,
    /// Empty directories.
    LeafDir,
}
