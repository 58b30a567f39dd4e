//! Descriptors of commands, attributes and flowops as data. From them come checking, near misses, completion, lists and the
//! manual.
//!
//! Deliberately absent: behaviour. What a flowop does is in `flowop`; a [`SpecTable`] is handed to whoever checks, so that the
//! checker can be tested with a table of three lines.

pub mod attrs;
pub mod commands;
pub mod dialect;
pub mod predefined;
pub mod words;

pub use dialect::Dialect;

/// What kind of value an attribute takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A name: a word or a string.
    Name,
    /// A path.
    Path,
    /// Any text.
    Text,
    /// A whole number.
    Int,
    /// A number of bytes.
    Size,
    /// A number that may have a fraction.
    Real,
    /// A switch; standing alone it is on.
    Bool,
    /// A switch, or one of these words.
    BoolOr(&'static [&'static str]),
    /// 0 to 100; standing alone 100, `false` 0.
    Percent,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A random variable or the name of one.
    Random,
    /// The name of a file set or file.
    Fileset,
    /// The `name=` of another flowop.
    Target,
    /// A variable, without value: `name=$rv` of `define randvar`.
    Variable,
}

/// Where a word of the language comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Both generations of Filebench.
    Both,
    /// Filebench 1.1 to 1.4 only.
    Sun,
    /// Filebench 1.5 only.
    Fsl,
    /// An extension of ours.
    Ours,
}

impl Origin {
    /// How the manual says it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Both => "1.1–1.5",
            Self::Sun => "1.1–1.4",
            Self::Fsl => "1.5",
            Self::Ours => "wmlrun",
        }
    }
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    /// Its name.
    pub name: &'static str,
    /// Other names for the same.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: Kind,
    /// Whether a random variable may stand for the number.
    pub random: bool,
    /// What holds if it is not written.
    pub default: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// One line.
    pub doc: &'static str,
}

/// Whether an operation's time counts in the I/O summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Counts.
    Io,
    /// Counts; time runs to completion.
    Aio,
    /// Waiting for others; has a line of its own only.
    Sync,
    /// Anything else; has a line of its own only.
    Other,
}

impl Class {
    /// The word in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Aio => "aio",
            Self::Sync => "sync",
            Self::Other => "other",
        }
    }

    /// Whether `IO Summary` counts it.
    pub fn is_io(self) -> bool {
        matches!(self, Self::Io | Self::Aio)
    }
}

/// Which way data moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Neither.
    None,
    /// From the file system.
    Read,
    /// To the file system.
    Write,
}

/// What a flowop does to files, slots and the loop of its thread, as far as it is looked at before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Makes a file of its set exist.
    MakesFile,
    /// Removes a file of its set.
    RemovesFile,
    /// Works on a file of its set that exists.
    NeedsFile,
    /// Makes an empty directory of its set.
    MakesDirectory,
    /// Removes an empty directory of its set.
    RemovesDirectory,
    /// Opens a file into a slot that is closed.
    OpensSlot,
    /// Closes a slot that is open.
    ClosesSlot,
    /// Works on the file in its slot; opens a file of its set there if the slot is closed.
    UsesSlot,
    /// Works on the file in its slot, which is open.
    NeedsSlot,
    /// The slot has no file of its own afterwards.
    FreesSlot,
    /// Waits until a flowop of type `kind` with `target=` does what the verb says.
    WaitsFor {
        /// The type of the other flowop.
        kind: &'static str,
        /// What the other one does to this one: `posts to`.
        verb: &'static str,
    },
    /// Sleeps `value` seconds.
    Sleeps,
    /// Takes one event of the generator.
    TakesEvent,
    /// Takes as many events as other flowops have done operations.
    TakesEvents,
    /// Ends its thread, or the run, by what was done.
    Finishes,
    /// Starts a program of its own.
    RunsCommand,
    /// Ends what is one operation to the application.
    EndsTransaction,
}

/// One flowop.
#[derive(Clone, Copy, Debug)]
pub struct Flowop {
    /// Its name in scripts.
    pub name: &'static str,
    /// What it counts as.
    pub class: Class,
    /// Which way it moves data.
    pub way: Way,
    /// The attributes that mean something to it, besides `name` and `iters`. Others of Filebench's common list are accepted.
    pub uses: &'static [&'static str],
    /// What it does besides its calls.
    pub roles: &'static [Role],
    /// Where it comes from.
    pub origin: Origin,
    /// One line.
    pub doc: &'static str,
    /// A use of it that can be checked and run.
    pub example: &'static str,
}

impl Flowop {
    /// Whether it has that role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// Its word.
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// One line.
    pub doc: &'static str,
    /// A use of it.
    pub example: &'static str,
}

/// All that there is.
#[derive(Debug)]
pub struct SpecTable {
    /// All flowops, family by family.
    pub flowops: Vec<&'static Flowop>,
}

impl SpecTable {
    /// The flowop of that name.
    pub fn flowop(&self, name: &str) -> Option<&'static Flowop> {
        self.flowops.iter().copied().find(|f| f.name == name)
    }
}

/// The attribute of that name, or alias, in a list.
pub fn find_attr(list: &'static [Attr], name: &str) -> Option<&'static Attr> {
    list.iter().find(|a| a.name == name || a.aliases.contains(&name))
}
