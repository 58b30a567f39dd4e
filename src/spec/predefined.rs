//! Variables that have a value before a script sets them. A script's own `set`, and `--set`, take their place.

/// A variable that is there from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predefined {
    /// Its name, without `$`.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// Where scripts put their files.
pub const DIR: Predefined = Predefined { name: "dir", doc: "the directory of the run: `--dir`, else a fresh one" };

/// Bytes of memory.
pub const MEMORY: Predefined =
    Predefined { name: "memory", doc: "bytes of memory that the program may use: of the machine or its control group" };

/// Bytes of free memory.
pub const FREE_MEMORY: Predefined = Predefined {
    name: "freememory",
    doc: "bytes of that memory that are free or hold what can be dropped, when the program starts",
};

/// Processors.
pub const PROCESSORS: Predefined = Predefined { name: "processors", doc: "processors that the program may use" };

/// All of them.
pub const PREDEFINED: &[Predefined] = &[DIR, MEMORY, FREE_MEMORY, PROCESSORS];

/// The one of that name.
pub fn find(name: &str) -> Option<&'static Predefined> {
    PREDEFINED.iter().find(|variable| variable.name == name)
}

/// Their names.
pub fn predefined_names() -> impl Iterator<Item = String> {
    PREDEFINED.iter().map(|variable| variable.name.to_owned())
}
