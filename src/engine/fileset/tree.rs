//! The tree of a file set as defined: names, directories, sizes, and which files exist at the start.
//!
//! The tree is implicit: directories are compact arrays ([`super::shape`]), and all properties of a file are computed
//! from its number and the layout seed. Pure: no disk, no clock, no threads. The current state is in [`super::state`].

use super::prealloc::Present;
use super::shape::{FoundShape, Rule, Shape, ShapeError};
use super::sizes::Sizes;
use super::{FilesetSpec, Interleave, Name};
use crate::random::{self, Quantity, mix};
use std::ops::Range;
use std::sync::OnceLock;

/// Identifiers of the independent random streams that are derived from the layout seed.
mod purpose {
    pub(super) const SHAPE: u64 = 1;
    pub(super) const SIZES: u64 = 2;
    pub(super) const PRESENT: u64 = 3;
    pub(super) const LEAFDIRS: u64 = 4;
}

/// The tree of a file set: files `0..n_files`, directories `0..n_dirs` (0 is the root), leaf directories
/// `0..n_leafdirs`.
///
/// A tree can have a part of the files and leaf directories of a set ([`Tree::interleaved`]). They are then numbered from
/// 0 in the part, with the names and sizes that they have in the whole set. Directories are always those of the whole
/// set.
#[derive(Debug)]
pub struct Tree {
    shape: Shape,
    /// The part of the set's files and leaf directories that this tree has.
    part: Interleave,
    n_files: u64,
    n_leafdirs: u64,
    sizes: Sizes,
    /// The files that exist at the start, by their numbers in the whole set.
    present: Present,
    /// The leaf directories that exist at the start.
    present_leafdirs: Present,
    /// Whether files that exist at the start are empty.
    empty: bool,
    width: f64,
    depth: f64,
    bytes: OnceLock<SizeSums>,
    median: OnceLock<u64>,
}

/// Maximum number of files whose sizes are summed individually. This takes about a second if they are drawn.
const MAX_SUMMED: u64 = 1 << 24;

/// Sums over the files of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SizeSums {
    /// Bytes of the files that exist at the start.
    present: u64,
    /// Bytes of all files.
    all: u64,
    /// Number of files that exist at the start.
    files_present: u64,
    /// Size of the largest file in bytes.
    largest: u64,
}

impl Tree {
    /// Creates the tree of `spec`. The seed determines shape, sizes, and which files exist at the start.
    ///
    /// Returns an error when the tree would exceed a limit.
    pub fn new(spec: &FilesetSpec, layout_seed: u64) -> Result<Self, ShapeError> {
        let rule = Rule {
            width: spec.dirwidth.as_ref(),
            width_gamma: spec.width_gamma,
            depth: mean_depth(spec),
            depth_gamma: spec.depth_gamma,
            depth_var: spec.dirdepth.as_ref().map(|var| (var, var.mean_f64())),
        };
        let mut rng = random::stream(layout_seed, &[purpose::SHAPE]);
        let shape = Shape::draw(spec.entries, spec.leafdirs, &rule, &mut rng)?;
        let own = own_seed(spec, layout_seed);
        let present = |n, before, purpose| Present::new(n, spec.prealloc, before, layout_seed, mix(own, purpose));
        let files = present(spec.entries, spec.draws.files, purpose::PRESENT);
        let leafdirs = present(spec.leafdirs, spec.draws.leafdirs, purpose::LEAFDIRS);
        Ok(Self::with_shape(spec, own, shape, files, leafdirs))
    }

    /// Creates a tree with a shape that was found on a disk.
    pub(crate) fn adopted(spec: &FilesetSpec, layout_seed: u64, mut found: FoundShape) -> Self {
        let files = found.present.take().map_or(Present::All, Present::Found);
        Self::with_shape(spec, own_seed(spec, layout_seed), Shape::found(found), files, Present::All)
    }

    fn with_shape(spec: &FilesetSpec, own: u64, shape: Shape, present: Present, present_leafdirs: Present) -> Self {
        Self {
            shape,
            part: Interleave::WHOLE,
            n_files: spec.entries,
            n_leafdirs: spec.leafdirs,
            sizes: Sizes::new(&spec.size, spec.sizes.as_ref(), mix(own, purpose::SIZES)).cached(spec.entries),
            present,
            present_leafdirs,
            empty: spec.empty,
            width: spec.dirwidth.as_ref().map_or(0.0, Quantity::mean),
            depth: mean_depth(spec),
            bytes: OnceLock::new(),
            median: OnceLock::new(),
        }
    }

    /// Returns the tree with a part of the files and leaf directories of this one, which must be whole.
    #[must_use]
    pub fn interleaved(self, part: Interleave) -> Self {
        Self {
            shape: self.shape.interleaved(part),
            part,
            n_files: part.len(self.n_files),
            n_leafdirs: part.len(self.n_leafdirs),
            sizes: self.sizes.interleaved(part, self.n_files),
            bytes: OnceLock::new(),
            median: OnceLock::new(),
            ..self
        }
    }

    /// Returns the part of the set's files and leaf directories that the tree has.
    pub fn part(&self) -> Interleave {
        self.part
    }

    /// Returns the number of files.
    pub fn n_files(&self) -> u64 {
        self.n_files
    }

    /// Returns the number of directories, including the root but not the leaf directories.
    pub fn n_dirs(&self) -> u64 {
        u64::from(self.shape.dirs())
    }

    /// Returns the number of leaf directories, which flowops can create and remove.
    pub(crate) fn n_leafdirs(&self) -> u64 {
        self.n_leafdirs
    }

    /// Returns the requested mean number of entries per directory; 0 if none was requested.
    pub(crate) fn mean_width(&self) -> f64 {
        self.width
    }

    /// Returns the mean depth: the logarithm of the number of files and leaf directories to the base of the mean width.
    /// 0 for at most one of them, and otherwise infinite for a width of 1.
    pub(crate) fn mean_depth(&self) -> f64 {
        self.depth
    }

    /// Returns the number of levels of directories below the root.
    pub fn levels(&self) -> u32 {
        self.shape.levels
    }

    /// Returns the bytes of the files that exist at the start. The first call sums all sizes. If there are more than
    /// 16 million drawn sizes, the result is extrapolated from a sample.
    pub fn bytes_at_start(&self) -> u64 {
        if self.empty { 0 } else { self.sums().present }
    }

    /// Returns the bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sums().all
    }

    /// Returns the number of files that exist at the start.
    pub fn files_at_start(&self) -> u64 {
        self.sums().files_present
    }

    /// Returns the number of leaf directories that exist at the start.
    pub fn leafdirs_at_start(&self) -> u64 {
        self.count_at_start(&self.present_leafdirs, self.n_leafdirs)
    }

    /// Returns the size of the largest file in bytes; of a very large set, that of the largest in a sample.
    pub(crate) fn largest_size(&self) -> u64 {
        self.sums().largest
    }

    /// Returns the median size of the files in bytes; of a large set, that of a sample.
    pub(crate) fn median_size(&self) -> u64 {
        const SAMPLE: u64 = 1001;
        *self.median.get_or_init(|| {
            let step = self.n_files.div_ceil(SAMPLE).max(1);
            let mut sizes: Vec<u64> = (0..self.n_files).step_by(step as usize).map(|i| self.size_of(i)).collect();
            sizes.sort_unstable();
            sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or(0)
        })
    }

    fn sums(&self) -> SizeSums {
        *self.bytes.get_or_init(|| match &self.sizes {
            Sizes::Const(size) => {
                let existing = self.count_at_start(&self.present, self.n_files);
                SizeSums {
                    present: existing.saturating_mul(*size),
                    all: self.n_files.saturating_mul(*size),
                    files_present: existing,
                    largest: if self.n_files > 0 { *size } else { 0 },
                }
            }
            Sizes::Table(table, _) if matches!(self.present, Present::All) => {
                let all = table.bytes();
                let rows = table.rows().iter().filter(|row| row.count > 0);
                let largest = rows.map(|row| row.up_to).max().unwrap_or(0);
                SizeSums { present: all, all, files_present: self.n_files, largest }
            }
            _ => self.sum_sizes(),
        })
    }

    /// Sums the sizes of all files. For a very large set, extrapolates from evenly spaced files.
    fn sum_sizes(&self) -> SizeSums {
        let step = self.n_files.div_ceil(MAX_SUMMED).max(1);
        let of = self.n_files.div_ceil(step).max(1);
        let (mut present, mut all, mut largest) = (0_u128, 0_u128, 0);
        for i in (0..self.n_files).step_by(step as usize) {
            let size = self.size_of(i);
            largest = largest.max(size);
            let size = u128::from(size);
            all += size;
            if self.exists_at_start(i) {
                present += size;
            }
        }
        let scaled = |sum: u128| u64::try_from(sum * u128::from(self.n_files) / u128::from(of)).unwrap_or(u64::MAX);
        SizeSums {
            present: scaled(present),
            all: scaled(all),
            files_present: self.count_at_start(&self.present, self.n_files),
            largest,
        }
    }

    /// Counts those of the `n` files or leaf directories that exist at the start.
    fn count_at_start(&self, present: &Present, n: u64) -> u64 {
        match present {
            Present::All => n,
            _ if self.part == Interleave::WHOLE => present.count(n),
            _ => (0..n).filter(|&i| present.has(self.part.number(i))).count() as u64,
        }
    }

    /// Returns the heap memory used, in bytes.
    pub fn memory(&self) -> u64 {
        self.shape.memory() + self.present.memory()
    }

    /// Returns the directory that contains file `i`.
    #[inline]
    pub fn dir_of(&self, i: u64) -> u64 {
        u64::from(self.shape.dir_of_file(i as u32))
    }

    /// Returns the serial number of file `i` in its directory, from 1.
    #[inline]
    pub fn serial(&self, i: u64) -> u64 {
        self.dir_and_serial(i).1
    }

    /// Returns the directory that contains file `i`, and the serial number of the file in it, with a single search.
    #[inline]
    pub(crate) fn dir_and_serial(&self, i: u64) -> (u64, u64) {
        let (dir, position) = self.shape.files.dir_and_position(i as u32);
        (u64::from(dir), u64::from(position) + 1)
    }

    /// Returns the name of file `i` in its directory.
    #[inline]
    pub fn name(&self, i: u64) -> Name {
        Name::new(self.serial(i))
    }

    /// Returns the nominal size of file `i` in bytes.
    #[inline]
    pub fn size_of(&self, i: u64) -> u64 {
        self.sizes.of(i)
    }

    /// Returns the size in bytes that file `i` has at the start if it exists then.
    #[inline]
    pub(crate) fn size_at_start(&self, i: u64) -> u64 {
        if self.empty { 0 } else { self.sizes.of(i) }
    }

    /// True if file `i` exists at the start.
    #[inline]
    pub fn exists_at_start(&self, i: u64) -> bool {
        self.present.has(self.part.number(i))
    }

    /// True if leaf directory `i` exists at the start.
    pub(crate) fn leafdir_at_start(&self, i: u64) -> bool {
        self.present_leafdirs.has(self.part.number(i))
    }

    /// Returns the files of directory `d`.
    pub fn files_in(&self, d: u64) -> Range<u64> {
        let files = self.shape.files_in(d as u32);
        self.part.range(u64::from(files.start)..u64::from(files.end))
    }

    /// Returns the name of the next file in the same directory of the whole set. The first file follows the last one.
    pub(crate) fn next_name(&self, file: u64) -> Name {
        let (dir, serial) = self.dir_and_serial(file);
        let files = self.shape.files_in(dir as u32);
        Name::new(if serial < u64::from(files.end - files.start) { serial + 1 } else { 1 })
    }

    /// Returns the leaf directories in directory `d`.
    pub(crate) fn leafdirs_in(&self, d: u64) -> Range<u64> {
        let leafs = self.shape.leafs_in(d as u32);
        self.part.range(u64::from(leafs.start)..u64::from(leafs.end))
    }

    /// Returns the parent of directory `d`. The root is its own parent.
    #[inline]
    pub fn parent(&self, d: u64) -> u64 {
        u64::from(self.shape.parent(d as u32))
    }

    /// Returns the name of directory `d` in its parent. Meaningless for the root.
    #[inline]
    pub fn dir_name(&self, d: u64) -> Name {
        Name::new(u64::from(self.shape.serial(d as u32)))
    }

    /// Returns the serial number of directory `d` in its parent, from 1; 0 for the root.
    pub(crate) fn dir_serial(&self, d: u64) -> u32 {
        self.shape.serial(d as u32)
    }

    /// Returns the directory that contains leaf directory `i`.
    #[inline]
    pub fn dir_of_leafdir(&self, i: u64) -> u64 {
        u64::from(self.shape.dir_of_leaf(i as u32))
    }

    /// Returns the name of leaf directory `i` in its directory.
    #[inline]
    pub fn leafdir_name(&self, i: u64) -> Name {
        Name::new(u64::from(self.shape.position_of_leaf(i as u32)) + 1)
    }

    /// Returns the path of directory `d` relative to the root, such as `00000001/00000002`; empty for the root.
    pub fn dir_rel_path(&self, d: u64) -> String {
        let names = self.dir_names(d);
        let mut path = String::with_capacity(names.len() * 9);
        for name in names {
            push(&mut path, name);
        }
        path
    }

    /// Returns the names of the directories on the path from the root to directory `d`, which is the last one.
    pub(crate) fn dir_names(&self, d: u64) -> Vec<Name> {
        let below_root = |d: u64| (d != 0).then_some(d);
        let up = std::iter::successors(below_root(d), |&d| below_root(self.parent(d)));
        let mut names: Vec<Name> = up.map(|d| self.dir_name(d)).collect();
        names.reverse();
        names
    }

    /// Returns the path of file `i` relative to the root.
    pub(crate) fn rel_path(&self, i: u64) -> String {
        let mut path = self.dir_rel_path(self.dir_of(i));
        push(&mut path, self.name(i));
        path
    }

    /// Returns the path of leaf directory `i` relative to the root.
    pub(crate) fn leafdir_rel_path(&self, i: u64) -> String {
        let mut path = self.dir_rel_path(self.dir_of_leafdir(i));
        push(&mut path, self.leafdir_name(i));
        path
    }
}

/// Appends a component to a path.
fn push(path: &mut String, name: Name) {
    if !path.is_empty() {
        path.push('/');
    }
    path.extend(name.digits().iter().map(|&digit| char::from(digit)));
}

/// Returns the seed of a set for all but its directories. Two sets of the same layout have the same shape, but the sizes of
/// one set must not correlate with those of another.
fn own_seed(spec: &FilesetSpec, layout_seed: u64) -> u64 {
    let own = spec.name.bytes().fold(layout_seed, |seed, byte| mix(seed, u64::from(byte)));
    let own = if spec.part == 0 { own } else { mix(own, u64::from(spec.part)) };
    spec.instance.map_or(own, |instance| mix(own, 1 + u64::from(instance)))
}

/// Returns the mean depth as Filebench computes it. Not finite or not positive if the mean width is 0 or 1.
fn mean_depth(spec: &FilesetSpec) -> f64 {
    let (entries, width) = (spec.entries + spec.leafdirs, spec.dirwidth.as_ref().map_or(0.0, Quantity::mean));
    // The logarithm of no entries is infinite, and of one entry at a width of 1 there is no quotient.
    if entries <= 1 { 0.0 } else { (entries as f64).ln() / width.ln() }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
