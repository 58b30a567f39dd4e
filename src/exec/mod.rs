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

/// Why an operation ended its thread's loop instead of being done. (An operation that was done, and counted, is `Ok(())`.)
///
/// One pointer, so that the result of a step is one register, and zero if it was done: with the reason in its place a random
/// read took 5 of its 150 instructions more.
#[derive(Debug)]
pub struct Stop(Box<StopReason>);

/// What a [`Stop`] is about.
#[derive(Debug)]
pub enum StopReason {
    /// The run is over: the step ended late, or gave up waiting.
    Over,
    /// No file is left that it could work on, and nothing in the plan makes one.
    Exhausted,
    /// All that is left are files that only starved threads could make.
    Stuck(OpFailure),
    /// A `finishoncount` or `finishonbytes` was reached.
    Finished,
    /// It failed.
    Failed(OpFailure),
    /// Something that is not the set's own stands where it would have worked: the run ends, however errors are taken.
    Refused(OpFailure),
}

impl Stop {
    /// The run is over.
    #[cold]
    pub fn over() -> Self {
        StopReason::Over.into()
    }

    /// What it is about.
    pub fn reason(self) -> StopReason {
        *self.0
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        matches!(*self.0, StopReason::Over)
    }
}

impl From<StopReason> for Stop {
    #[cold]
    fn from(reason: StopReason) -> Self {
        Self(Box::new(reason))
    }
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
