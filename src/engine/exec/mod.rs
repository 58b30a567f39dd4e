//! The state of a running thread: context, file slots, buffers, asynchronous operations, trace, and how an operation
//! ends.
//!
//! Deliberately absent: the operations (`flowop`), and the order in which a thread executes them (`plan`, `runtime`).

pub mod aio;
pub mod buffer;
pub mod buffered;
pub mod cx;
pub mod messages;
pub mod short;
pub mod slots;
pub mod trace;

mod failures;
mod memory;
mod moves;
mod ownership;
mod pick;
mod sink;
mod size;
mod starvation;
mod written_data;

pub use aio::{Aio, AioMode, AioPool, Outstanding};
pub use cx::{Account, OpCx, RunEnv, ThreadFiles, ThreadIo};
pub use moves::{MoveSource, NameUpdate, Renamed};
pub use pick::PickBy;
pub use sink::Sink;
pub use starvation::{Makers, Starvation, View, maker};
pub use written_data::WrittenData;

/// The help of a fault that no script and no machine can cause.
pub(crate) const BUG: &str = "this is a bug in wmlrun: report it with the script";

/// Why an operation ends its thread's loop. (An operation that was executed and counted returns `Ok(())`.)
///
/// One pointer, so that the result of a step fits in one register, and `Ok(())` is zero. With the reason in place of
/// the pointer, a random read took 5 more instructions (of 150).
#[derive(Debug)]
pub struct Stop(Box<StopReason>);

/// The reason of a [`Stop`].
#[derive(Debug)]
pub enum StopReason {
    /// The run is over: the step ended after the deadline, or its wait was ended.
    Over,
    /// No file is left for the operation, and no step of the plan makes one.
    Exhausted,
    /// No file is left for the operation, and all threads that could make one are starved themselves.
    Stuck(OpFailure),
    /// A `finishoncount` or `finishonbytes` limit was reached.
    Finished,
    Failed(OpFailure),
    /// The operation failed, which has been counted, and failures do not end the run.
    Counted,
    /// The path of the operation is occupied by an object that does not belong to the file set. The run ends, whatever
    /// the setting for errors.
    Refused(OpFailure),
}

impl Stop {
    /// Returns a [`Stop`] with the reason [`StopReason::Over`].
    #[cold]
    pub fn over() -> Self {
        StopReason::Over.into()
    }

    pub fn reason(self) -> StopReason {
        *self.0
    }

    /// True if the reason is [`StopReason::Over`].
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

/// The failure of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpFailure {
    /// The call or check that failed, and its outcome: `open failed`, `slot 3 is already open`.
    pub what: String,
    /// The path of the file, if there is one.
    pub path: Option<String>,
    /// The error number, if a system call returned one.
    pub errno: Option<i32>,
    pub help: String,
    /// The index in the thread of the flowop that failed, if it is not the current one: an asynchronous flowop whose
    /// operation is completed now.
    pub flowop: Option<usize>,
}

/// The kinds of members of a file set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum UnitKind {
    File,
    /// The empty directories of `leafdirs`.
    LeafDir,
}
