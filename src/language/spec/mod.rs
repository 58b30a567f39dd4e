//! Descriptors of commands, attributes and flowops as data. Checks, suggestions for misspelt names, completion, lists
//! and the tables of the manual are derived from them.
//!
//! Deliberately absent: behaviour, and the tables of flowops (`flowop`) and commands (`model`). The checker gets both as
//! a [`SpecTable`], so that tests can pass a table of three lines.

pub mod attrs;
pub mod dialect;
mod division;
pub mod predefined;
mod share;
pub mod words;

pub use dialect::Dialect;
pub use division::Division;
pub use share::Sharing;

/// The type of an attribute's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A name: a word or a string.
    Name,
    Path,
    /// Any text.
    Text,
    /// A whole number.
    Int,
    /// A number of bytes.
    Size,
    /// A number that may have a fraction.
    Real,
    /// A switch; the attribute name alone means `true`.
    Bool,
    /// A switch, or one of these words.
    BoolOr(&'static [&'static str]),
    /// 0 to 100; the attribute name alone and `true` mean 100, `false` means 0.
    Percent,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A random variable or its name.
    Random,
    /// The name of a file set or file.
    Fileset,
    /// The `name=` of another flowop.
    Target,
    /// A variable as a name, not its value: `name=$rv` of `define randvar`.
    Variable,
}

impl Kind {
    /// Returns the words among which a value is chosen. Other kinds have none.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        const SWITCH: &[&str] = &["true", "false"];
        let (first, others): (&[&str], &[&str]) = match self {
            Self::Bool => (SWITCH, &[]),
            Self::BoolOr(others) => (SWITCH, others),
            Self::Choice(words) => (words, &[]),
            _ => (&[], &[]),
        };
        first.iter().chain(others).copied()
    }
}

/// The implementation that a word of the language comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Both generations of Filebench.
    Both,
    /// Filebench 1.1 to 1.4 only.
    Sun,
    /// Filebench 1.5 only.
    Fsl,
    /// An extension of wmlrun.
    Wmlrun,
}

impl Origin {
    /// Returns its label in the manual.
    pub fn label(self) -> &'static str {
        match self {
            Self::Both => "1.1–1.5",
            Self::Sun => "1.1–1.4",
            Self::Fsl => "1.5",
            Self::Wmlrun => "wmlrun",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Attr {
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The type of its value.
    pub kind: Kind,
    /// Whether its value can be a random variable.
    pub random: bool,
    /// The value if it is not given, as the manual shows it; empty: none.
    pub default: &'static str,
    /// The implementation that it comes from.
    pub origin: Origin,
    /// Description in one line, for the manual and `help`.
    pub doc: &'static str,
}

impl Attr {
    /// Whether its value may have a fraction, so that the variables in it are computed exactly. The number of a file
    /// (`indexed`) and the parameters of random variables, which are sizes more often than not, may have one too, and
    /// are computed as they are in Filebench.
    pub fn takes_fraction(&self) -> bool {
        self.kind == Kind::Real && !self.random
    }
}

wml_text::named! {
    /// The class of a flowop, which decides whether the I/O summary counts its operations.
    pub enum Class {
        /// I/O: counted in the summary.
        Io = "io";
        /// Asynchronous I/O: counted in the summary, with the latency from submission to completion.
        Aio = "aio";
        /// Waits for other threads: reported in a separate line only.
        Sync = "sync";
        /// Everything else: reported in a separate line only.
        Other = "other";
    }
}

impl Class {
    /// True if `IO Summary` counts it.
    pub fn is_io(self) -> bool {
        matches!(self, Self::Io | Self::Aio)
    }
}

/// The direction in which a flowop transfers data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoDirection {
    /// No data.
    None,
    /// From the file system.
    Read,
    /// To the file system.
    Write,
}

/// An effect of a flowop on files, slots or its thread's loop that lints and the plan take into account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Creates a file of its set.
    MakesFile,
    RemovesFile,
    /// Works on an existing file of its set.
    NeedsFile,
    /// Gives a file another name; with `toset`, in another set.
    MovesFile,
    /// Creates an empty directory of its set.
    MakesDirectory,
    /// Removes an empty directory of its set.
    RemovesDirectory,
    /// Opens a file in a closed slot.
    OpensSlot,
    /// Closes an open slot.
    ClosesSlot,
    /// Works on the open file in its slot; if the slot is closed, opens a file of its set there.
    UsesSlot,
    /// Works on the open file in its slot; it is an error if the slot is closed.
    NeedsSlot,
    /// Clears the file that the slot remembers.
    FreesSlot,
    /// Waits for a flowop of type `kind` that has this one as its `target=`.
    WaitsFor {
        /// Type of the other flowop.
        kind: &'static str,
        /// Verb for its effect on this one, for messages: `posts to`.
        verb: &'static str,
    },
    /// Sleeps `value` seconds.
    Sleeps,
    /// Its `value` is a time in seconds.
    TimeValue,
    /// Claims one event of the generator.
    TakesEvent,
    /// Claims events in proportion to the operations of other flowops.
    TakesEvents,
    /// Ends its thread or the run once a count is reached.
    Finishes,
    /// Starts a program.
    RunsCommand,
    /// Uses space on the file system, although it neither transfers data nor creates a file.
    TakesSpace,
    /// Ends a transaction of the application.
    EndsTransaction,
    /// Moves its data through the buffer of its slot.
    Buffers,
}

/// The descriptor of one flowop.
#[derive(Clone, Copy, Debug)]
pub struct Flowop {
    /// Its name in scripts.
    pub name: &'static str,
    pub class: Class,
    /// The direction of its data.
    pub direction: IoDirection,
    /// The attributes that have an effect on it, besides `name`, `iters`, `weight` and `maystarve`. The others of the
    /// common list are accepted.
    pub uses: &'static [&'static str],
    /// Its effects, for lints and the plan.
    pub roles: &'static [Role],
    /// The implementation that it comes from.
    pub origin: Origin,
    /// Description in one line, for the manual and `help`.
    pub doc: &'static str,
    /// An example that tests check and run.
    pub example: &'static str,
}

impl Flowop {
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Returns the attributes that have an effect on it, besides `name`, `iters` and `weight`.
    pub fn attributes(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.uses.iter().copied().chain(self.may_starve().then_some("maystarve"))
    }

    /// Whether the value of an attribute of it may have a fraction: of `value=`, only if that is a time.
    pub fn takes_fraction(&self, attr: &Attr) -> bool {
        attr.takes_fraction() || (attr.name == "value" && self.is(Role::TimeValue))
    }

    /// True if an attribute can have an effect on it.
    pub fn has_attr(&self, name: &str) -> bool {
        matches!(name, "name" | "iters" | "weight") || self.attributes().any(|own| own == name)
    }

    /// True if it may wait until another thread has made or removed a file or an empty directory of its set.
    pub fn may_starve(&self) -> bool {
        use Role::{MakesDirectory, MakesFile, NeedsFile, RemovesDirectory, RemovesFile};
        let picks = [MakesFile, RemovesFile, NeedsFile, MakesDirectory, RemovesDirectory];
        self.roles.iter().any(|role| picks.contains(role))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// Its word or words.
    pub name: &'static str,
    /// Its syntax.
    pub form: &'static str,
    /// The implementation that it comes from.
    pub origin: Origin,
    /// Description in one line, for the manual and `help`.
    pub doc: &'static str,
    pub example: &'static str,
}

/// The commands and flowops that the checker knows.
#[derive(Debug)]
pub struct SpecTable {
    /// All flowops, family by family.
    pub flowops: Vec<&'static Flowop>,
    /// All commands of the language.
    pub commands: Vec<&'static CommandSpec>,
}

impl SpecTable {
    pub fn flowop(&self, name: &str) -> Option<&'static Flowop> {
        self.flowops.iter().copied().find(|f| f.name == name)
    }

    /// The command with this word and second word if there is one, else the command with this word.
    pub fn command(&self, word: &str, object: Option<&str>) -> Option<&'static CommandSpec> {
        let all = || self.commands.iter().copied();
        let is_both = |c: &&CommandSpec| object.is_some_and(|object| c.name.split_once(' ') == Some((word, object)));
        all().find(is_both).or_else(|| all().find(|c| c.name == word))
    }
}

/// Returns the attribute of that name or alias in a list.
pub fn find_attr(list: &'static [Attr], name: &str) -> Option<&'static Attr> {
    list.iter().find(|a| a.name == name || a.aliases.contains(&name))
}
