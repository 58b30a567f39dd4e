//! How a command ended, and the exit status that it stands for.

/// How a command ended; the worst of all is the exit status.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Status {
    /// As it should.
    #[default]
    Done,
    /// A run failed or got stuck.
    Failed,
    /// The script is wrong.
    Script,
    /// The environment refused.
    Refused,
    /// A signal came, by its number.
    Interrupted(u8),
}

impl Status {
    /// The process's exit status.
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
