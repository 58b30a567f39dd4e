//! What each rank runs of a workload: the words of `--ranks`.

/// What each rank runs of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Division {
    /// The whole workload.
    #[default]
    Copy,
    /// A part of the process instances. Each instance runs on one rank.
    Split,
}

impl Division {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Copy, Self::Split];

    /// Returns its word in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Split => "split",
        }
    }

    /// Returns a description in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Copy => "every rank runs the whole workload",
            Self::Split => "each process instance runs on one rank",
        }
    }

    /// Returns the value with that word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|division| division.name() == name)
    }
}
