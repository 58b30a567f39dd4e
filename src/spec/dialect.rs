//! The two generations of the language, which give the same words different meanings. Which one a script is written in is told
//! by `syntax::dialect`; what differs is one table of semantics, elsewhere.

use std::fmt;

/// A generation of Filebench whose meaning a source file has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// Filebench 1.1 to 1.4, of Sun.
    Sun,
    /// Filebench 1.5, of the File systems and Storage Lab, and what `wmlrun` adds.
    #[default]
    Fsl,
}

impl Dialect {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Sun, Self::Fsl];

    /// As written after `# dialect:` and `--dialect`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sun => "sun",
            Self::Fsl => "fsl",
        }
    }

    /// The dialect of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
