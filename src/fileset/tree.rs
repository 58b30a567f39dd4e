//! The tree of a file set as it ought to be: names, directories, sizes, and which files are there at the start.
//!
//! Implicit: directories are compact arrays ([`super::shape`]), everything about a file is computed from its number and the
//! layout seed. Pure: no disk, no clock, no thread. What is on the disk *now* is for [`super::state`].

use super::shape::{FoundShape, Rule, Shape, ShapeError};
use super::sizes::Sizes;
use super::{FilesetSpec, Name};
use crate::random::{self, Quantity, mix};
use std::ops::Range;
use std::sync::OnceLock;

/// What draws from the layout seed, each from a stream of its own.
mod purpose {
    pub(super) const SHAPE: u64 = 1;
    pub(super) const SIZES: u64 = 2;
    pub(super) const PRESENT: u64 = 3;
    pub(super) const LEAFDIRS: u64 = 4;
}

/// The tree of a file set: files `0..n_files`, directories `0..n_dirs` (0 is the root), leaf directories `0..n_leafdirs`.
#[derive(Debug)]
pub struct Tree {
    shape: Shape,
    n_files: u64,
    n_leafdirs: u64,
    sizes: Sizes,
    /// Files in a hundred that are there at the start.
    present: u8,
    /// The files are there at the start with nothing in them.
    empty: bool,
    present_seed: u64,
    leafdir_seed: u64,
    width: f64,
    depth: f64,
    bytes: OnceLock<Bytes>,
}

/// Files whose sizes are added up one by one: a second, where they are drawn.
const MOST_ADDED: u64 = 1 << 24;

/// Sizes added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bytes {
    present: u64,
    all: u64,
    files_present: u64,
}

impl Tree {
    /// The tree of `spec`. The seed fixes shape, sizes, and which files are there at the start.
    pub fn new(spec: &FilesetSpec, layout_seed: u64) -> Result<Self, ShapeError> {
        let rule = Rule {
            width: spec.dirwidth.as_ref(),
            width_gamma: spec.width_gamma,
            depth: mean_depth(spec),
            depth_gamma: spec.depth_gamma,
            depth_var: spec.dirdepth.as_ref().map(|var| (var, var.mean())),
        };
        let mut rng = random::stream(layout_seed, &[purpose::SHAPE]);
        let shape = Shape::draw(spec.entries, spec.leafdirs, &rule, &mut rng)?;
        Ok(Self::with_shape(spec, layout_seed, shape))
    }

    /// A tree that was found on a disk: its shape is what it is.
    pub(crate) fn adopted(spec: &FilesetSpec, layout_seed: u64, found: FoundShape) -> Self {
        Self::with_shape(spec, layout_seed, Shape::found(found))
    }

    fn with_shape(spec: &FilesetSpec, layout_seed: u64, shape: Shape) -> Self {
        // Two sets of the same layout have the same tree; which file has which size should not follow from another set.
        let own = spec.name.bytes().fold(layout_seed, |seed, byte| mix(seed, u64::from(byte)));
        let own = if spec.part == 0 { own } else { mix(own, u64::from(spec.part)) };
        let own = spec.instance.map_or(own, |instance| mix(own, 1 + u64::from(instance)));
        Self {
            shape,
            n_files: spec.entries,
            n_leafdirs: spec.leafdirs,
            sizes: Sizes::new(&spec.size, spec.sizes.as_ref(), mix(own, purpose::SIZES)).cached(spec.entries),
            present: spec.prealloc.min(100),
            empty: spec.empty,
            present_seed: mix(own, purpose::PRESENT),
            leafdir_seed: mix(own, purpose::LEAFDIRS),
            width: spec.dirwidth.as_ref().map_or(0.0, Quantity::mean),
            depth: mean_depth(spec),
            bytes: OnceLock::new(),
        }
    }

    /// Files.
    pub fn n_files(&self) -> u64 {
        self.n_files
    }

    /// Directories, the root included, leaf directories not.
    pub fn n_dirs(&self) -> u64 {
        u64::from(self.shape.dirs())
    }

    /// Directories that can be made and removed.
    pub fn n_leafdirs(&self) -> u64 {
        self.n_leafdirs
    }

    /// Mean entries of a directory, as asked for; 0 if nothing was asked.
    pub fn mean_width(&self) -> f64 {
        self.width
    }

    /// Mean depth: the logarithm of entries and leaf directories to the base of the mean width. Infinite for a width of 1.
    pub fn mean_depth(&self) -> f64 {
        self.depth
    }

    /// Levels of directories below the root.
    pub fn levels(&self) -> u32 {
        self.shape.levels
    }

    /// Bytes of the files that are there at the start. The first call adds up all sizes; those of more
    /// than 16 million drawn ones are estimated from so many.
    pub fn bytes_at_start(&self) -> u64 {
        if self.empty { 0 } else { self.sums().present }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sums().all
    }

    /// Files that are there at the start.
    pub fn files_at_start(&self) -> u64 {
        self.sums().files_present
    }

    fn sums(&self) -> Bytes {
        *self.bytes.get_or_init(|| match &self.sizes {
            Sizes::Const(size) => {
                let there = match self.present {
                    100 => self.n_files,
                    0 => 0,
                    _ => (0..self.n_files).filter(|&i| self.exists_at_start(i)).count() as u64,
                };
                Bytes {
                    present: there.saturating_mul(*size),
                    all: self.n_files.saturating_mul(*size),
                    files_present: there,
                }
            }
            Sizes::Table(table, _) if self.present == 100 => {
                let all = table.bytes();
                Bytes { present: all, all, files_present: self.n_files }
            }
            _ => self.added_up(),
        })
    }

    /// Sizes added up one by one; of a very large set those of some files, evenly spaced, stand for all.
    fn added_up(&self) -> Bytes {
        let step = self.n_files.div_ceil(MOST_ADDED).max(1);
        let of = self.n_files.div_ceil(step).max(1);
        let (mut present, mut all, mut files_present) = (0_u128, 0_u128, 0_u128);
        for i in (0..self.n_files).step_by(step as usize) {
            let size = u128::from(self.size_of(i));
            all += size;
            if self.exists_at_start(i) {
                present += size;
                files_present += 1;
            }
        }
        let scaled = |sum: u128| u64::try_from(sum * u128::from(self.n_files) / u128::from(of)).unwrap_or(u64::MAX);
        Bytes { present: scaled(present), all: scaled(all), files_present: scaled(files_present) }
    }

    /// Memory that the tree takes, in bytes.
    pub fn memory(&self) -> u64 {
        self.shape.memory()
    }

    /// The directory that holds file `i`.
    #[inline]
    pub fn dir_of(&self, i: u64) -> u64 {
        u64::from(self.shape.dir_of_file(i as u32))
    }

    /// The number of file `i` in its directory, from 1.
    #[inline]
    pub fn serial(&self, i: u64) -> u64 {
        self.place_of(i).1
    }

    /// Both at once: the directory that holds file `i`, and its number there.
    #[inline]
    pub fn place_of(&self, i: u64) -> (u64, u64) {
        let (dir, place) = self.shape.files.dir_and_place(i as u32);
        (u64::from(dir), u64::from(place) + 1)
    }

    /// The name of file `i` in its directory.
    #[inline]
    pub fn name(&self, i: u64) -> Name {
        Name::new(self.serial(i))
    }

    /// The nominal size of file `i`.
    #[inline]
    pub fn size_of(&self, i: u64) -> u64 {
        self.sizes.of(i)
    }

    /// The size that file `i` has at the start, if it is there.
    #[inline]
    pub fn size_at_start(&self, i: u64) -> u64 {
        if self.empty { 0 } else { self.sizes.of(i) }
    }

    /// Whether file `i` is there at the start: `prealloc` files in a hundred are.
    #[inline]
    pub fn exists_at_start(&self, i: u64) -> bool {
        present(self.present_seed, self.present, i)
    }

    /// Whether leaf directory `i` is there at the start.
    pub fn leafdir_at_start(&self, i: u64) -> bool {
        present(self.leafdir_seed, self.present, i)
    }

    /// The files of directory `d`.
    pub fn files_in(&self, d: u64) -> Range<u64> {
        let files = self.shape.files_in(d as u32);
        u64::from(files.start)..u64::from(files.end)
    }

    /// The next file of the same directory, after the last one the first.
    pub fn next_beside(&self, file: u64) -> u64 {
        let here = self.files_in(self.dir_of(file));
        if file + 1 < here.end { file + 1 } else { here.start }
    }

    /// The leaf directories in directory `d`.
    pub fn leafdirs_in(&self, d: u64) -> Range<u64> {
        let leafs = self.shape.leafs_in(d as u32);
        u64::from(leafs.start)..u64::from(leafs.end)
    }

    /// The directory that directory `d` lies in; the root lies in itself.
    #[inline]
    pub fn parent(&self, d: u64) -> u64 {
        u64::from(self.shape.parent(d as u32))
    }

    /// The name of directory `d` in its parent. The root has none that counts.
    #[inline]
    pub fn dir_name(&self, d: u64) -> Name {
        Name::new(u64::from(self.shape.serial(d as u32)))
    }

    /// The number of directory `d` in its parent, from 1; the root's is 0.
    pub fn dir_serial(&self, d: u64) -> u32 {
        self.shape.serial(d as u32)
    }

    /// The directory that holds leaf directory `i`.
    #[inline]
    pub fn dir_of_leafdir(&self, i: u64) -> u64 {
        u64::from(self.shape.dir_of_leaf(i as u32))
    }

    /// The name of leaf directory `i` in its directory.
    #[inline]
    pub fn leafdir_name(&self, i: u64) -> Name {
        Name::new(u64::from(self.shape.place_of_leaf(i as u32)) + 1)
    }

    /// The path of directory `d` below the root: `00000001/00000002`; empty for the root.
    pub fn dir_rel_path(&self, d: u64) -> String {
        let mut up = Vec::new();
        let mut at = d;
        while at != 0 {
            up.push(at);
            at = self.parent(at);
        }
        let mut path = String::with_capacity(up.len() * 9);
        for &dir in up.iter().rev() {
            push(&mut path, self.dir_name(dir));
        }
        path
    }

    /// The path of file `i` below the root.
    pub fn rel_path(&self, i: u64) -> String {
        let mut path = self.dir_rel_path(self.dir_of(i));
        push(&mut path, self.name(i));
        path
    }

    /// The path of leaf directory `i` below the root.
    pub fn leafdir_rel_path(&self, i: u64) -> String {
        let mut path = self.dir_rel_path(self.dir_of_leafdir(i));
        push(&mut path, self.leafdir_name(i));
        path
    }
}

fn push(path: &mut String, name: Name) {
    if !path.is_empty() {
        path.push('/');
    }
    path.extend(name.digits().iter().map(|&digit| char::from(digit)));
}

fn present(seed: u64, per_cent: u8, i: u64) -> bool {
    per_cent >= 100 || (per_cent > 0 && mix(seed, i) % 100 < u64::from(per_cent))
}

/// The mean depth as Filebench computes it; not finite, or not positive, where widths are 0 or 1.
fn mean_depth(spec: &FilesetSpec) -> f64 {
    let width = spec.dirwidth.as_ref().map_or(0.0, Quantity::mean);
    ((spec.entries + spec.leafdirs) as f64).ln() / width.ln()
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
