//! What is short on a file system or in memory, as data. Not here: the messages (`error`).

/// What is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// Space.
    Bytes {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// Bytes that must stay free.
        floor: u64,
    },
    Inodes {
        /// Inodes needed.
        needed: u64,
        /// Inodes free.
        free: u64,
    },
    /// The memory of a host, for files on tmpfs.
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes available without swapping.
        free: u64,
    },
}

/// What is short for the trees of several ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedShortage {
    /// The names of the file sets, each once.
    pub sets: Vec<String>,
    pub trees: usize,
    /// The file system or the host.
    pub place: String,
    /// What is short there.
    pub shortage: Shortage,
}

impl SharedShortage {
    /// Returns the error code.
    pub(super) fn code(&self) -> &'static str {
        match self.shortage {
            Shortage::Bytes { .. } => "E0509",
            Shortage::Inodes { .. } => "E0510",
            Shortage::Memory { .. } => "E0511",
        }
    }
}
