//! The two Filebench generations, and the one table of what the same words mean in each.

/// Which generation a source text is written for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// Filebench 1.1 to 1.4.
    Sun,
    /// Filebench 1.5, and our own scripts.
    #[default]
    Fsl,
}

impl Dialect {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Sun, Self::Fsl];

    /// The word for it in `# dialect:` lines, `--dialect` and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sun => "sun",
            Self::Fsl => "fsl",
        }
    }

    /// What it is, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Sun => "Filebench 1.1 to 1.4",
            Self::Fsl => "Filebench 1.5, and scripts of ours",
        }
    }

    /// The dialect of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// What the words mean in this dialect.
    pub fn semantics(self) -> &'static Semantics {
        match self {
            Self::Sun => &SUN,
            Self::Fsl => &FSL,
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Everything in which the generations differ in meaning; the grammar is one.
#[derive(Debug)]
pub struct Semantics {
    /// Bytes of a file whose definition gives no size.
    pub default_size: u64,
    /// `filesizegamma` of a file set that does not give it, in thousandths; 0: sizes are constant.
    pub fileset_size_gamma: u64,
    /// Directory widths are drawn with `filesizegamma` instead of `dirgamma`.
    pub width_by_size_gamma: bool,
    /// `indexed` is scaled by half the entries before it is taken modulo entries.
    pub indexed_scaled: bool,
    /// In `alldone` mode, reaching a `finishoncount` ends the run, not only the thread.
    pub finish_ends_run: bool,
    /// `opennext` takes only as many slots as the file set has entries.
    pub opennext_by_entries: bool,
    /// createfile, closefile, deletefile, fsync and statfile pay no heed to `opennext`.
    pub opennext_only_io: bool,
}

static SUN: Semantics = Semantics {
    default_size: 0,
    fileset_size_gamma: 1500,
    width_by_size_gamma: true,
    indexed_scaled: true,
    finish_ends_run: true,
    opennext_by_entries: true,
    opennext_only_io: true,
};

static FSL: Semantics = Semantics {
    default_size: 1024,
    fileset_size_gamma: 0,
    width_by_size_gamma: false,
    indexed_scaled: false,
    finish_ends_run: false,
    opennext_by_entries: false,
    opennext_only_io: false,
};
