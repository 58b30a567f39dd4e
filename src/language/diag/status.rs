//! The outcome of a command, and its exit status.

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
    /// A program that was started ended with this status.
    Other(u8),
    /// Interrupted by the signal with this number.
    Interrupted(u8),
}

impl Status {
    /// Returns the exit status of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Script => 2,
            Self::Refused => 3,
            Self::Other(code) => code,
            Self::Interrupted(signal) => 128_u8.saturating_add(signal),
        }
    }

    /// The outcome that an exit status stands for.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Done,
            1 => Self::Failed,
            2 => Self::Script,
            3 => Self::Refused,
            128.. => Self::Interrupted(code - 128),
            _ => Self::Other(code),
        }
    }
}
