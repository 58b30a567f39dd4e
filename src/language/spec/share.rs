//! The ranks that share the tree of a file set: the words of `share=` and `--share`.

/// The ranks that share the tree of a file set. In each case every rank has a part of its files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Sharing {
    /// Those of a host.
    #[default]
    Host,
    All,
    /// All. Each creates its own part of the files, and uses the part of the next rank during a run.
    Neighbour,
}

impl Sharing {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Host, Self::All, Self::Neighbour];

    pub const WORDS: &[&str] = &[Self::Host.name(), Self::All.name(), Self::Neighbour.name()];

    /// Returns its word in scripts and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::All => "all",
            Self::Neighbour => "neighbour",
        }
    }

    /// Returns a description in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Host => "the ranks of each host share a tree on it",
            Self::All => "all ranks share one tree",
            Self::Neighbour => "all ranks share one tree, and each uses the files that the next rank has created",
        }
    }

    /// Returns the value with that word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sharing| sharing.name() == name)
    }
}
