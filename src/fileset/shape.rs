//! The directories of a tree, and which of them holds which file: compact arrays, in the order in which Filebench makes them.
//!
//! Knows numbers only: no names, no sizes, no disk.

use crate::random::{self, Quantity, Rng};
use std::ops::Range;

/// Levels below a root. A path of 8-digit names with more could not be written down (4096 bytes).
const MAX_LEVELS: u32 = 400;
/// Directories of a set, for files and for leaf directories: more would take gigabytes of memory just to be counted.
const MAX_DIRS: usize = 1 << 24;
/// Files of a set; numbers of files are kept in 32 bits.
pub(crate) const MAX_ENTRIES: u64 = u32::MAX as u64 - 1;

/// Directories in depth-first order, the root first, each after its parent; those that hold files before those that hold
/// leaf directories.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The parent of each directory; the root is its own.
    parent: Vec<u32>,
    /// The number that each directory bears in its parent, from 1; the root's is 0.
    serial: Vec<u32>,
    /// Where the files are: over the directories from 0 on.
    pub(crate) files: Holders,
    /// Where the leaf directories are: over the directories from [`Shape::split`] on.
    pub(crate) leafs: Holders,
    /// Directories made for files, the root included.
    split: u32,
    /// Levels below the root.
    pub(crate) levels: u32,
}

/// How wide and deep directories are to be.
#[derive(Debug)]
pub(crate) struct Rule<'a> {
    /// Mean entries of a directory; `None` is one, exactly.
    pub(crate) width: Option<&'a Quantity>,
    /// Shape of the gamma distribution of widths; 0 is exact.
    pub(crate) width_gamma: f64,
    /// Mean depth.
    pub(crate) depth: f64,
    /// Shape of the gamma distribution of depths; 0 is exact.
    pub(crate) depth_gamma: f64,
    /// What depths are drawn from instead, and its mean, which is brought to `depth`.
    pub(crate) depth_var: Option<(&'a Quantity, f64)>,
}

/// Why a tree can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShapeError {
    /// More files than can be numbered.
    Entries(u64),
    /// More directories than fit into memory.
    Directories,
    /// Deeper than a path can be long.
    Levels,
}

impl Rule<'_> {
    /// Entries of the next directory: at least 1.
    fn draw_width(&self, rng: &mut Rng) -> u64 {
        let width = match self.width {
            None | Some(Quantity::Const(0)) => return 1,
            Some(Quantity::Const(w)) if self.width_gamma > 0.0 => {
                random::gamma(rng, *w as f64, self.width_gamma).ceil()
            }
            Some(Quantity::Const(w)) => return *w,
            Some(var) => return var.draw(rng).max(1),
        };
        // A cast from floating point saturates.
        (width as u64).max(1)
    }

    /// The level at which the next directory becomes a leaf: at least 1.
    fn draw_depth(&self, rng: &mut Rng) -> u32 {
        if !self.depth.is_finite() || self.depth <= 0.0 {
            return 1;
        }
        let depth = match self.depth_var {
            Some((var, mean)) if mean > 0.0 => var.draw(rng) as f64 * (self.depth / mean),
            _ if self.depth_gamma > 0.0 => random::gamma(rng, self.depth, self.depth_gamma),
            _ => self.depth,
        };
        (depth as u32).max(1)
    }
}

impl Shape {
    /// Draws a tree for so many files and leaf directories.
    ///
    /// Filebench's way: depth first, each directory with a depth limit and a width of its own; at its limit it is a leaf and
    /// filled, else it gets subdirectories; the root takes as many as are needed. Leaf directories are laid out by a second
    /// pass of the same kind. Filebench numbers that pass from 1 again, so that files and leaf directories of one set
    /// collide; here it goes on behind the files' directories.
    pub(crate) fn draw(files: u64, leafdirs: u64, rule: &Rule<'_>, rng: &mut Rng) -> Result<Self, ShapeError> {
        if files > MAX_ENTRIES || leafdirs > MAX_ENTRIES {
            return Err(ShapeError::Entries(files.max(leafdirs)));
        }
        let mut dirs = ShapeBuilder { parent: vec![0], serial: vec![0], levels: 0 };
        let mut first = vec![0];
        let used = dirs.pass(files as u32, 0, rule, rng, &mut first)?;
        let split = dirs.parent.len() as u32;
        let files = Holders::new(first, files as u32);
        let mut first = Vec::new();
        dirs.pass(leafdirs as u32, used, rule, rng, &mut first)?;
        let leafs = Holders::new(first, leafdirs as u32);
        Ok(dirs.finish(files, leafs, split))
    }

    /// A tree as found: parents, serials, and for each directory how many files came before it; likewise for the leaf
    /// directories from `split` on.
    pub(crate) fn found(dirs: FoundShape) -> Self {
        let files = Holders::new(dirs.first_file, dirs.files);
        let leafs = Holders::new(dirs.first_leaf, dirs.leafdirs);
        let split = files.first.len() as u32;
        ShapeBuilder { parent: dirs.parent, serial: dirs.serial, levels: dirs.levels }.finish(files, leafs, split)
    }

    /// Directories, the root included, leaf directories not.
    pub(crate) fn dirs(&self) -> u32 {
        self.parent.len() as u32
    }

    pub(crate) fn parent(&self, dir: u32) -> u32 {
        self.parent[dir as usize]
    }

    pub(crate) fn serial(&self, dir: u32) -> u32 {
        self.serial[dir as usize]
    }

    /// The files of a directory.
    pub(crate) fn files_in(&self, dir: u32) -> Range<u32> {
        if dir < self.split { self.files.range(dir) } else { 0..0 }
    }

    /// The leaf directories in a directory.
    pub(crate) fn leafs_in(&self, dir: u32) -> Range<u32> {
        if dir < self.split { 0..0 } else { self.leafs.range(dir - self.split) }
    }

    /// The directory that holds a file.
    #[inline]
    pub(crate) fn dir_of_file(&self, file: u32) -> u32 {
        self.files.find(file)
    }

    /// The directory that holds a leaf directory.
    pub(crate) fn dir_of_leaf(&self, leaf: u32) -> u32 {
        self.split + self.leafs.find(leaf)
    }

    /// The number of a leaf directory within its directory, from 0.
    pub(crate) fn place_of_leaf(&self, leaf: u32) -> u32 {
        leaf - self.leafs.first[self.leafs.find(leaf) as usize]
    }

    /// Memory taken.
    pub(crate) fn memory(&self) -> u64 {
        (4 * (self.parent.len() + self.serial.len()) + self.files.memory() + self.leafs.memory()) as u64
    }
}

/// A tree read from a disk, in the order that [`Shape`] wants.
#[derive(Default, Debug)]
pub(crate) struct FoundShape {
    pub(crate) parent: Vec<u32>,
    pub(crate) serial: Vec<u32>,
    pub(crate) first_file: Vec<u32>,
    pub(crate) files: u32,
    pub(crate) first_leaf: Vec<u32>,
    pub(crate) leafdirs: u32,
    pub(crate) levels: u32,
}

#[derive(Debug)]
struct ShapeBuilder {
    parent: Vec<u32>,
    serial: Vec<u32>,
    levels: u32,
}

/// A directory that still gets subdirectories.
struct OpenShape {
    dir: u32,
    last: u32,
    width: u64,
}

impl ShapeBuilder {
    /// Lays out `wanted` things, with the root's subdirectories numbered from `used + 1`; returns the last number used.
    fn pass(
        &mut self,
        wanted: u32,
        used: u32,
        rule: &Rule<'_>,
        rng: &mut Rng,
        first: &mut Vec<u32>,
    ) -> Result<u32, ShapeError> {
        let mut made = 0;
        let mut open = vec![OpenShape { dir: 0, last: used, width: u64::MAX }];
        while made < wanted {
            // The root never closes: its width is endless.
            let Some(top) = open.last_mut() else { break };
            if u64::from(top.last) >= top.width {
                open.pop();
                continue;
            }
            top.last += 1;
            let dir = self.parent.len() as u32;
            if dir as usize >= MAX_DIRS {
                return Err(ShapeError::Directories);
            }
            self.parent.push(top.dir);
            self.serial.push(top.last);
            first.push(made);
            // The root is level 1 of Filebench's count.
            let level = open.len() as u32 + 1;
            self.levels = self.levels.max(level - 1);
            let limit = rule.draw_depth(rng);
            let width = rule.draw_width(rng);
            if level >= limit {
                made += width.min(u64::from(wanted - made)) as u32;
            } else if level > MAX_LEVELS {
                return Err(ShapeError::Levels);
            } else {
                open.push(OpenShape { dir, last: 0, width });
            }
        }
        Ok(open[0].last)
    }

    fn finish(mut self, files: Holders, leafs: Holders, split: u32) -> Shape {
        self.parent.shrink_to_fit();
        self.serial.shrink_to_fit();
        Shape { parent: self.parent, serial: self.serial, files, leafs, split, levels: self.levels }
    }
}

/// Which directory holds which thing: a prefix sum over the directories, and a coarse index into it.
#[derive(Debug)]
pub(crate) struct Holders {
    /// Things before each directory.
    first: Vec<u32>,
    total: u32,
    /// For every `1 << shift` things, the directory that holds the first of them. There are about as many of these as
    /// directories, so that a search looks at a few on the average.
    coarse: Vec<u32>,
    shift: u32,
}

impl Holders {
    fn new(mut first: Vec<u32>, total: u32) -> Self {
        first.shrink_to_fit();
        let shift = (u64::from(total) / first.len().max(1) as u64).max(1).ilog2();
        let mut coarse = Vec::with_capacity((total >> shift) as usize + 1);
        let mut dir = 0;
        for thing in (0..total).step_by(1 << shift) {
            while dir + 1 < first.len() && first[dir + 1] <= thing {
                dir += 1;
            }
            coarse.push(dir as u32);
        }
        Self { first, total, coarse, shift }
    }

    /// The last directory before which there are no more than `thing` things: empty ones have the same count as the next.
    #[inline]
    fn find(&self, thing: u32) -> u32 {
        let at = (thing >> self.shift) as usize;
        let mut low = self.coarse[at] as usize;
        let mut high = self.coarse.get(at + 1).map_or(self.first.len() - 1, |&d| d as usize);
        // `first[low] <= thing` holds throughout; everything above `high` is beyond it.
        while high - low > 8 {
            let mid = low + (high - low) / 2;
            if self.first[mid] <= thing { low = mid } else { high = mid - 1 }
        }
        while low < high && self.first[low + 1] <= thing {
            low += 1;
        }
        low as u32
    }

    fn range(&self, dir: u32) -> Range<u32> {
        let dir = dir as usize;
        self.first[dir]..self.first.get(dir + 1).copied().unwrap_or(self.total)
    }

    /// The directory of a thing, and where it stands among those there, from 0.
    #[inline]
    pub(crate) fn dir_and_place(&self, thing: u32) -> (u32, u32) {
        let dir = self.find(thing);
        (dir, thing - self.first[dir as usize])
    }

    fn memory(&self) -> usize {
        4 * (self.first.len() + self.coarse.len())
    }
}
