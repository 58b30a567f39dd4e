//! Predefined variables: they have a value before a script sets them. `set` in the script, and `--set`, override it.

/// One predefined variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predefined {
    /// Its name, without `$`.
    pub name: &'static str,
    /// Description in one line.
    pub doc: &'static str,
}

/// The directory for the files of a script.
pub const DIR: Predefined =
    Predefined { name: "dir", doc: "directory of the run: `--dir`, else a new directory that is removed at the end" };

/// The memory limit in bytes.
pub const MEMORY: Predefined = Predefined {
    name: "memory",
    doc: "memory that wmlrun can use, in bytes: of the machine, or the limit of its control group",
};

/// The available memory in bytes.
pub const FREE_MEMORY: Predefined =
    Predefined { name: "freememory", doc: "bytes of `$memory` that are free or reclaimable when wmlrun starts" };

pub const PROCESSORS: Predefined = Predefined { name: "processors", doc: "number of processors that wmlrun can use" };

pub const RANK: Predefined = Predefined { name: "rank", doc: "number of this process (rank) of the run, from 0" };

pub const RANKS: Predefined = Predefined { name: "ranks", doc: "number of processes (ranks) of the run" };

pub const HOST: Predefined = Predefined { name: "host", doc: "name of the host on which this rank runs" };

pub const HOSTS: Predefined = Predefined { name: "hosts", doc: "number of hosts of the run" };

/// All predefined variables.
pub const PREDEFINED: &[Predefined] = &[DIR, MEMORY, FREE_MEMORY, PROCESSORS, RANK, RANKS, HOST, HOSTS];

/// Returns the predefined variable of that name, given without `$`.
pub fn find(name: &str) -> Option<&'static Predefined> {
    PREDEFINED.iter().find(|variable| variable.name == name)
}

/// Returns the names of all predefined variables, without `$`.
pub fn predefined_names() -> impl Iterator<Item = String> {
    PREDEFINED.iter().map(|variable| variable.name.to_owned())
}
