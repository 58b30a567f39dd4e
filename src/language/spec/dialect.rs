//! The dialects of the two Filebench generations, and the table of the differences in meaning between them.

wml_text::named! {
    /// The Filebench generation that a source text is written for.
    #[derive(Hash, Default)]
    pub enum Dialect {
        Sun = "sun", "Filebench 1.1 to 1.4";
        #[default]
        Fsl = "fsl", "Filebench 1.5, and scripts written for wmlrun";
    }
}

impl Dialect {
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
