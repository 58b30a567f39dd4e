//! The dialects of the two Filebench generations, and the table of the differences in meaning between them.

/// The Filebench generation that a source text is written for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Dialect {
    /// Filebench 1.1 to 1.4.
    Sun,
    /// Filebench 1.5, and scripts written for wmlrun.
    #[default]
    Fsl,
}

impl Dialect {
    /// Both dialects.
    pub const ALL: [Self; 2] = [Self::Sun, Self::Fsl];

    /// Returns its name in `# dialect:` lines, `--dialect` and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sun => "sun",
            Self::Fsl => "fsl",
        }
    }

    /// Returns a description in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Sun => "Filebench 1.1 to 1.4",
            Self::Fsl => "Filebench 1.5, and scripts written for wmlrun",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Returns the meanings that differ between the dialects, for this one.
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

/// The differences in meaning between the dialects. Both have the same grammar.
#[derive(Debug)]
pub struct Semantics {
    /// Size of a file whose definition gives no size, in bytes.
    pub default_size: u64,
    /// Default of `filesizegamma` of a file set, in thousandths; 0: sizes are constant.
    pub fileset_size_gamma: u64,
    /// Directory widths are drawn with `filesizegamma` instead of `dirgamma`.
    pub width_by_size_gamma: bool,
    /// `indexed` is multiplied by half the number of entries before it is taken modulo that number.
    pub indexed_scaled: bool,
    /// In mode `alldone` a `finishoncount` or `finishonbytes` that reaches its value ends the run, not only its thread.
    pub finish_ends_run: bool,
    /// The time of `run` has an effect only in mode `timeout`.
    pub time_ends_timeout_only: bool,
    /// `opennext` uses only as many slots as the file set has entries.
    pub opennext_by_entries: bool,
    /// `createfile`, `closefile`, `deletefile`, `fsync` and `statfile` ignore `opennext`.
    pub opennext_only_io: bool,
}

static SUN: Semantics = Semantics {
    default_size: 0,
    fileset_size_gamma: 1500,
    width_by_size_gamma: true,
    indexed_scaled: true,
    finish_ends_run: true,
    time_ends_timeout_only: true,
    opennext_by_entries: true,
    opennext_only_io: true,
};

static FSL: Semantics = Semantics {
    default_size: 1024,
    fileset_size_gamma: 0,
    width_by_size_gamma: false,
    indexed_scaled: false,
    finish_ends_run: false,
    time_ends_timeout_only: false,
    opennext_by_entries: false,
    opennext_only_io: false,
};
