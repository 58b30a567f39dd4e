//! File sets as trees: names, sizes, which files are there, and picking one of them.
//!
//! In goes a [`FilesetSpec`], everything about it decided (dialects are the plan's business); out come a [`Tree`] that is
//! computed and never stored, and a [`State`] from which any number of threads pick files without a lock.
//! Deliberately absent: the disk, the language, and what an operation does with a file.
//!
//! ```text
//! define fileset name=data,path=/mnt/x,entries=1000,dirwidth=20,size=16k,prealloc=80
//! ```

pub mod content;
pub mod members;
pub mod shape;
pub mod sizes;
pub mod state;
pub mod tree;

pub use crate::os::name::Name;
use crate::random::Quantity;
pub use members::{How, Members, OwnRotor, Picked, Rotor, Want};
pub use sizes::{SizeRow, SizeTable};
pub use state::State;
use std::borrow::Cow;
use std::path::PathBuf;
pub use tree::Tree;

/// The directory below a path that a set is in, and what the set is to be. Nothing here depends on a dialect any more.
#[allow(clippy::struct_excessive_bools, reason = "each is an attribute of the language")]
#[derive(Clone, Debug)]
pub struct FilesetSpec {
    /// Its name.
    pub name: String,
    /// Where the root is; made if absent.
    pub path: PathBuf,
    /// Which part it is of a set that lies in several directories; the first, and a set in one directory, is 0. Each part is
    /// a set of its own here; who picks goes from one to another.
    pub part: u32,
    /// Of which process instance it is, counted from 0, if each has one for itself. Each is a set of its own here.
    pub instance: Option<u32>,
    /// Files.
    pub entries: u64,
    /// Directories that steps can make and remove.
    pub leafdirs: u64,
    /// Bytes of a file; one draw a file.
    pub size: Quantity,
    /// Mean entries of a directory; a random variable is drawn for each directory. `None` and 0 mean one.
    pub dirwidth: Option<Quantity>,
    /// Shape of the gamma distribution of widths; 0 is exact.
    pub width_gamma: f64,
    /// Shape of the gamma distribution of depths; 0 is exact.
    pub depth_gamma: f64,
    /// What depths are drawn from instead; its mean is brought to the mean depth of the set.
    pub dirdepth: Option<Quantity>,
    /// Files in a hundred that are there at the start.
    pub prealloc: u8,
    /// Accepted for Filebench's sake: population is always parallel.
    pub paralloc: bool,
    /// Keep a tree of the same layout and mend it in place.
    pub reuse: bool,
    /// Keep it without looking.
    pub trusttree: bool,
    /// Files are opened for reading only.
    pub readonly: bool,
    /// Files are opened for writing only.
    pub writeonly: bool,
    /// Its files are symbolic links, each to a file beside it.
    pub symlinks: bool,
    /// None of its directories are there at the start: each is made when a thread first works in it.
    pub late_dirs: bool,
    /// Read into the page cache before a run, or evict from it; `None` leaves it as it is.
    pub cached: Option<bool>,
    /// A `define file`: one file, width 10.
    pub single: bool,
    /// The files that are there at the start have nothing in them, whatever their size.
    pub empty: bool,
    /// Fraction of each 4 KiB block that compresses to nothing.
    pub compress: Option<f64>,
    /// Fraction of the 4 KiB blocks that have copies.
    pub dedupe: Option<f64>,
    /// Exact counts of sizes; overrides `size`.
    pub sizes: Option<SizeTable>,
}

impl FilesetSpec {
    /// A set of constant-size files, with everything else as in Filebench 1.5.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, entries: u64, size: u64) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            part: 0,
            instance: None,
            entries,
            leafdirs: 0,
            size: Quantity::Const(size),
            dirwidth: None,
            width_gamma: 1.5,
            depth_gamma: 1.5,
            dirdepth: None,
            prealloc: 0,
            paralloc: false,
            reuse: false,
            trusttree: false,
            readonly: false,
            writeonly: false,
            symlinks: false,
            late_dirs: false,
            cached: None,
            single: false,
            empty: false,
            compress: None,
            dedupe: None,
            sizes: None,
        }
    }

    /// The root directory: `path/name`, of process instance 1 `path/name.1`.
    pub fn root(&self) -> PathBuf {
        self.path.join(&*self.root_name())
    }

    /// The name of its root directory in `path`.
    pub fn root_name(&self) -> Cow<'_, str> {
        match self.instance {
            None => Cow::Borrowed(&self.name),
            Some(instance) => Cow::Owned(format!("{}.{}", self.name, u64::from(instance) + 1)),
        }
    }
}
