//! Where the threads of a run meet those of other processes that make the same run: at the ends of phases and at
//! stonewalls.
//!
//! Not here: what carries the numbers (`ranks`). A run in one process has no such place.

use serde::{Deserialize, Serialize};

/// A point of a run at which ranks meet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum MeetingPoint {
    /// The end of a phase. The number is that of the phase which the rank begins next, so that it rises during a run.
    Phase,
    /// The iterations of the thread definition with this index in the plan. The number is that of one thread at least.
    Iterations(u32),
}

/// The numbers that ranks have reported at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Meeting {
    /// The least number of the ranks that take part.
    pub least: u64,
    /// The largest number of all ranks.
    pub largest: u64,
}

/// Where a process meets the others that make the same run. The defaults are those of a process without others.
pub trait MeetingPlace: std::fmt::Debug + Send + Sync {
    /// Reports a number at a point of the run, and does not wait.
    fn arrive(&self, _point: MeetingPoint, _number: u64) {}

    /// Reports a number at a point of the run, and waits until all ranks that take part in the run have reported
    /// theirs; at [`MeetingPoint::Phase`] until none of their numbers is below this one. `None` when `_is_over` says
    /// that the run is over; it is called several times a second.
    fn meet(&self, _point: MeetingPoint, number: u64, _is_over: &dyn Fn() -> bool) -> Option<Meeting> {
        Some(Meeting { least: number, largest: number })
    }

    /// Ends the part of this process in the run: the others do not wait for it at a point.
    fn leave_run(&self) {}
}
