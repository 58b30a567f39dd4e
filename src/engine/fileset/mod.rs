//! File sets as trees: names, sizes, which files exist, and picking one of them.
//!
//! Input: a [`FilesetSpec`] with all defaults of the dialect applied (by the plan). Output: a [`Tree`], which is
//! computed on demand and not stored per file, and a [`State`], from which any number of threads pick files without
//! locking. Deliberately absent: the disk, the language, and what an operation does with a file.
//!
//! ```text
//! define fileset name=data,path=/mnt/x,entries=1000,dirwidth=20,size=16k,prealloc=80
//! ```

pub mod aging;
pub mod content;
mod interleave;
pub mod members;
mod prealloc;
pub mod shape;
pub mod sizes;
pub mod state;
pub mod tree;

use crate::random::Quantity;
pub use content::Redundancy;
pub use interleave::Interleave;
pub use members::{How, Members, OwnRotor, Picked, Rotor, Want};
pub use prealloc::PreallocDraws;
pub use sizes::{SizeRow, SizeTable};
pub use state::State;
use std::borrow::Cow;
use std::path::PathBuf;
pub use tree::Tree;
use wml_language::spec::Sharing;
pub use wml_os::name::Name;

/// The layout seed of a run that names none.
pub const DEFAULT_LAYOUT_SEED: u64 = 1;

/// The definition of a file set. Independent of the dialect of the script.
#[allow(clippy::struct_excessive_bools, reason = "each is an attribute of the language")]
#[derive(Clone, Debug)]
pub struct FilesetSpec {
    pub name: String,
    /// Directory that contains the root; created if it does not exist.
    pub path: PathBuf,
    /// The directory of `--below` that contains `path`. Nothing on the way from it to the root may be a link. `None` without
    /// that option.
    pub below: Option<PathBuf>,
    /// Number of this part of a set that is spread over several directories, from 0; 0 for a set in one directory. Each
    /// part is a separate set in this module. Picking rotates over the parts elsewhere.
    pub part: u32,
    /// Process instance that this set belongs to, from 0. `None` for a set that all instances share. Each instance's
    /// set is a separate set in this module.
    pub instance: Option<u32>,
    /// The ranks that share the tree. `None` if the script does not say.
    pub share: Option<Sharing>,
    /// Number of files.
    pub entries: u64,
    /// Number of leaf directories, which flowops can create and remove.
    pub leafdirs: u64,
    /// Size of a file in bytes. A random variable is drawn once per file.
    pub size: Quantity,
    /// Mean number of entries per directory. A random variable is drawn for each directory. `None` and 0 mean one
    /// entry.
    pub dirwidth: Option<Quantity>,
    /// Shape parameter of the gamma distribution of directory widths. With 0 all widths are exactly `dirwidth`.
    pub width_gamma: f64,
    /// Shape parameter of the gamma distribution of directory depths. With 0 all depths are exactly the mean.
    pub depth_gamma: f64,
    /// Random variable for depths that replaces the gamma distribution. It is scaled to the mean depth of the set.
    pub dirdepth: Option<Quantity>,
    /// Percentage of files that exist at the start.
    pub prealloc: u8,
    /// The draws that decide how many exist, if not all or none do; else 0, as other sets then change nothing here.
    pub draws: PreallocDraws,
    /// Accepted for compatibility with Filebench. Has no effect: population is always parallel.
    pub paralloc: bool,
    /// Keep an existing tree of the same layout, and repair it in place.
    pub reuse: bool,
    /// Keep an existing tree of the same layout without checking it.
    pub trusttree: bool,
    /// Files are opened with `O_RDONLY`.
    pub readonly: bool,
    /// Files are opened with `O_WRONLY`.
    pub writeonly: bool,
    /// All files are symbolic links to files in the same directory.
    pub symlinks: bool,
    /// No directories exist at the start. Each is created when a thread first uses it.
    pub late_dirs: bool,
    /// Whether files are read into the page cache (`true`) or evicted from it (`false`) before a run. `None` leaves the
    /// page cache unchanged.
    pub cached: Option<bool>,
    /// The set was defined with `define file`: one file, width 10.
    pub single: bool,
    /// Files that exist at the start are empty, regardless of `size`.
    pub empty: bool,
    /// Fraction of each 4 KiB block that is filled with one repeated byte, 0 to 1.
    pub compress: Option<f64>,
    /// Fraction of the 4 KiB blocks that are copies of other blocks, 0 to 1.
    pub dedupe: Option<f64>,
    /// Bytes of each write by which files get their data at the start. File systems keep data in the page cache, and on the
    /// disk, as it came: where ext4 had it in writes of 1 MiB, changing 8 KiB took 30 µs instead of 3.
    pub fill_size: usize,
    /// Table of exact counts of file sizes. Overrides `size`.
    pub sizes: Option<SizeTable>,
}

impl FilesetSpec {
    /// As in Filebench.
    pub(crate) const DEFAULT_FILL: usize = 1 << 20;

    /// Creates the definition of a set of files of constant size. Everything else has the defaults of Filebench 1.5.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, entries: u64, size: u64) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            below: None,
            part: 0,
            instance: None,
            share: None,
            entries,
            leafdirs: 0,
            size: Quantity::Const(size),
            dirwidth: None,
            width_gamma: 1.5,
            depth_gamma: 1.5,
            dirdepth: None,
            prealloc: 0,
            draws: PreallocDraws { files: 0, leafdirs: entries },
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
            fill_size: Self::DEFAULT_FILL,
            sizes: None,
        }
    }

    /// Returns the bytes of the files that exist at the start, as expected from the distribution of their sizes. The tree
    /// has the exact number.
    pub fn expected_bytes(&self) -> u64 {
        let all = match &self.sizes {
            Some(sizes) => sizes.bytes() as f64,
            None => self.entries as f64 * self.size.mean(),
        };
        if self.empty { 0 } else { (all * f64::from(self.prealloc.min(100)) / 100.0) as u64 }
    }

    /// The same of all its files, of which some may be created later.
    pub fn whole_bytes(&self) -> u64 {
        Self { prealloc: 100, empty: false, ..self.clone() }.expected_bytes()
    }

    /// Returns the rule by which the number of files that exist at the start is determined. `None` if all or none exist.
    pub fn prealloc_rule(&self, layout_seed: u64) -> Option<&'static str> {
        let rule = if layout_seed == DEFAULT_LAYOUT_SEED { "as many as Filebench" } else { "the exact share" };
        (1..100).contains(&self.prealloc).then_some(rule)
    }

    /// Returns the redundancy of the data in its files.
    pub(crate) fn redundancy(&self) -> Redundancy {
        Redundancy { compress: self.compress.unwrap_or(0.0), dedupe: self.dedupe.unwrap_or(0.0) }
    }

    /// Returns the path of the root directory: `path/name`, or `path/name.N` for the `N`th process instance.
    pub fn root(&self) -> PathBuf {
        self.path.join(&*self.root_name())
    }

    /// Returns the number of directories on the way from the one of `--below` to the root, including the root. `None` without
    /// that option.
    pub(crate) fn levels_below(&self) -> Option<usize> {
        let root = self.root();
        Some(root.strip_prefix(self.below.as_ref()?).ok()?.components().count())
    }

    /// Returns the name of the root directory in `path`. Filebench puts a `/` between the two, so that one at the start
    /// or end of the name changes nothing.
    pub fn root_name(&self) -> Cow<'_, str> {
        let name = self.name.trim_matches('/');
        match self.instance {
            None => Cow::Borrowed(name),
            Some(instance) => Cow::Owned(format!("{name}.{}", u64::from(instance) + 1)),
        }
    }
}
