//! The outcome of a command, and its exit status.

use crate::result::RunState;
use serde::{Deserialize, Serialize};

/// The outcome of a command. The greatest one of a session is the exit status.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Status {
    /// Success.
    #[default]
    Done,
    /// A run failed or got stuck.
    Failed,
    /// The script has an error.
    Script,
    /// The environment does not permit it.
    Refused,
    /// Interrupted by the signal with this number.
    Interrupted(u8),
}

impl Status {
    /// Returns the status of a run by its state alone.
    pub(crate) fn of_state(state: RunState) -> Self {
        match state {
            RunState::Complete => Self::Done,
            RunState::Interrupted | RunState::Failed | RunState::Stuck | RunState::NothingDone => Self::Failed,
            RunState::LowSpace => Self::Refused,
        }
    }

    /// Returns the exit status of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Script => 2,
            Self::Refused => 3,
            Self::Interrupted(signal) => 128 + signal,
        }
    }
}
