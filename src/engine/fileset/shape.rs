//! The shape of a tree: directories, and the assignment of files to them, in compact arrays in Filebench's creation
//! order.
//!
//! Deals with numbers only: no names, no sizes, no disk.

use super::Interleave;
use crate::random::{self, Quantity, Rng};
use std::ops::Range;

/// Maximum number of levels below a root. With 8-digit names, deeper paths would exceed `PATH_MAX` (4096 bytes).
const MAX_LEVELS: u32 = 400;
/// Maximum number of directories of a set. The arrays of a larger tree would take gigabytes of memory.
const MAX_DIRS: usize = 1 << 24;
/// Maximum number of files of a set: file numbers are stored in 32 bits.
pub(crate) const MAX_ENTRIES: u64 = u32::MAX as u64 - 1;

/// The directories of a tree in depth-first order: the root first, and each directory after its parent. Directories for
/// files precede directories for leaf directories.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Parent of each directory. The root is its own parent.
    parent: Vec<u32>,
    /// Serial number of each directory within its parent, from 1. That of the root is 0.
    serial: Vec<u32>,
    /// Assignment of files to the directories from 0 on.
    pub(crate) files: Holders,
    /// Assignment of leaf directories to the directories from [`Shape::split`] on.
    pub(crate) leafs: Holders,
    /// Number of directories for files, including the root.
    split: u32,
    /// Number of levels below the root.
    pub(crate) levels: u32,
}

/// The distributions from which widths and depths of directories are drawn.
#[derive(Debug)]
pub(crate) struct Rule<'a> {
    /// Mean number of entries per directory. `None` means exactly one.
    pub(crate) width: Option<&'a Quantity>,
    /// Shape parameter of the gamma distribution of widths. With 0 all widths are exactly the mean.
    pub(crate) width_gamma: f64,
    /// Mean depth in levels.
    pub(crate) depth: f64,
    /// Shape parameter of the gamma distribution of depths. With 0 all depths are exactly the mean.
    pub(crate) depth_gamma: f64,
    /// Random variable for depths that replaces the gamma distribution, and its mean. Draws are multiplied by
    /// `depth / mean`.
    pub(crate) depth_var: Option<(&'a Quantity, f64)>,
}

/// Why a tree can't be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShapeError {
    /// More files or leaf directories than 32-bit numbers allow.
    Entries(u64),
    /// More than the maximum number of directories, which are kept in memory.
    Directories,
    /// Paths would exceed the maximum length of a path.
    Levels,
}

impl Rule<'_> {
    /// Draws the number of entries of the next directory: at least 1.
    fn draw_width(&self, rng: &mut Rng) -> u64 {
        let width = match self.width {
            None | Some(Quantity::Const(0)) => return 1,
            Some(Quantity::Const(w)) if self.width_gamma > 0.0 => {
                random::gamma(rng, *w as f64, self.width_gamma).ceil()
            }
            Some(Quantity::Const(w)) => return *w,
            Some(var) => var.draw_f64(rng).ceil(),
        };
        // The cast saturates.
        (width as u64).max(1)
    }

    /// Draws the level at which the next directory holds files instead of subdirectories: at least 1.
    fn draw_depth(&self, rng: &mut Rng) -> u32 {
        if !self.depth.is_finite() || self.depth <= 0.0 {
            return 1;
        }
        let depth = match self.depth_var {
            Some((var, mean)) if mean > 0.0 => var.draw_f64(rng) * (self.depth / mean),
            _ if self.depth_gamma > 0.0 => random::gamma(rng, self.depth, self.depth_gamma),
            _ => self.depth,
        };
        (depth as u32).max(1)
    }
}

impl Shape {
    /// Draws a tree for the given numbers of files and leaf directories.
    ///
    /// The construction is Filebench's: depth first, with a depth limit and a width drawn for each directory. A
    /// directory at its depth limit is filled with files, other directories receive subdirectories. The width of the
    /// root is unlimited. Leaf directories are laid out by a second pass of the same kind. Filebench numbers the
    /// directories of the second pass from 1 again, so that files and leaf directories of one set collide. Here the
    /// numbers continue after those of the first pass.
    ///
    /// Returns an error when a limit on entries, directories or levels is exceeded.
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

    /// Creates the shape of a tree that was read from a disk.
    pub(crate) fn found(dirs: FoundShape) -> Self {
        let files = Holders::new(dirs.first_file, dirs.files);
        let leafs = Holders::new(dirs.first_leaf, dirs.leafdirs);
        let split = files.first.len() as u32;
        ShapeBuilder { parent: dirs.parent, serial: dirs.serial, levels: dirs.levels }.finish(files, leafs, split)
    }

    /// Returns the number of directories, including the root but not the leaf directories.
    pub(crate) fn dirs(&self) -> u32 {
        self.parent.len() as u32
    }

    pub(crate) fn parent(&self, dir: u32) -> u32 {
        self.parent[dir as usize]
    }

    pub(crate) fn serial(&self, dir: u32) -> u32 {
        self.serial[dir as usize]
    }

    /// Returns the numbers of the files of a directory.
    pub(crate) fn files_in(&self, dir: u32) -> Range<u32> {
        if dir < self.split { self.files.range(dir) } else { 0..0 }
    }

    /// Returns the numbers of the leaf directories in a directory.
    pub(crate) fn leafs_in(&self, dir: u32) -> Range<u32> {
        if dir < self.split { 0..0 } else { self.leafs.range(dir - self.split) }
    }

    /// Returns the directory that contains a file.
    #[inline]
    pub(crate) fn dir_of_file(&self, file: u32) -> u32 {
        self.files.find(file)
    }

    /// Returns the directory that contains a leaf directory.
    pub(crate) fn dir_of_leaf(&self, leaf: u32) -> u32 {
        self.split + self.leafs.find(leaf)
    }

    /// Returns the position of a leaf directory within its directory, from 0.
    pub(crate) fn position_of_leaf(&self, leaf: u32) -> u32 {
        self.leafs.dir_and_position(leaf).1
    }

    /// Returns the shape with files and leaf directories numbered as members of a part. The ranges of
    /// [`Shape::files_in`] and [`Shape::leafs_in`] stay those of the whole shape.
    pub(crate) fn interleaved(self, part: Interleave) -> Self {
        Self { files: self.files.interleaved(part), leafs: self.leafs.interleaved(part), ..self }
    }

    /// Returns the heap memory used, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (4 * (self.parent.len() + self.serial.len()) + self.files.memory() + self.leafs.memory()) as u64
    }
}

/// A tree read from a disk, in the order of [`Shape`].
#[derive(Default, Debug)]
pub(crate) struct FoundShape {
    pub(crate) parent: Vec<u32>,
    pub(crate) serial: Vec<u32>,
    /// For each directory for files, the number of files in the directories before it.
    pub(crate) first_file: Vec<u32>,
    pub(crate) files: u32,
    /// For each directory for leaf directories, the number of leaf directories in the directories before it.
    pub(crate) first_leaf: Vec<u32>,
    pub(crate) leafdirs: u32,
    pub(crate) levels: u32,
    /// The files that exist, one bit each. `None` if all do.
    pub(crate) present: Option<Box<[u64]>>,
}

/// The directories created so far.
#[derive(Debug)]
struct ShapeBuilder {
    parent: Vec<u32>,
    serial: Vec<u32>,
    levels: u32,
}

/// A directory that still receives subdirectories.
struct OpenShape {
    dir: u32,
    /// Serial number of its last subdirectory.
    last: u32,
    /// Maximum serial number of a subdirectory.
    width: u64,
}

impl ShapeBuilder {
    /// Creates directories for `wanted` entries (files or leaf directories). Subdirectories of the root are numbered
    /// from `used + 1`. Appends the number of preceding entries of each new directory to `first`. Returns the last
    /// number used in the root.
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
            // The root is never popped, since its width is unlimited.
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
            // Filebench counts the root as level 1.
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

/// The assignment of entries (files or leaf directories) to directories: a prefix sum over the directories, and a
/// coarse index into it.
#[derive(Debug)]
pub(crate) struct Holders {
    /// Number of entries in the directories before each directory.
    first: Vec<u32>,
    total: u32,
    /// For every `1 << shift` entries, the directory that contains the first of them. The index has about as many
    /// elements as there are directories, so that a search inspects only a few directories on average.
    ///
    /// Empty if entries have the numbers of a part: the check of its bounds, which each search makes anyway, then leads
    /// to [`Holders::part`]. So the search in a whole set has no further branch.
    coarse: Vec<u32>,
    shift: u32,
    /// The part whose numbers the entries have, and the index of the whole set. `None` for the whole set.
    part: Option<Box<(Interleave, Vec<u32>)>>,
}

impl Holders {
    fn new(mut first: Vec<u32>, total: u32) -> Self {
        first.shrink_to_fit();
        let shift = (u64::from(total) / first.len().max(1) as u64).max(1).ilog2();
        let mut coarse = Vec::with_capacity((total >> shift) as usize + 1);
        let mut dir = 0;
        for entry in (0..total).step_by(1 << shift) {
            while dir + 1 < first.len() && first[dir + 1] <= entry {
                dir += 1;
            }
            coarse.push(dir as u32);
        }
        Self { first, total, coarse, shift, part: None }
    }

    /// Numbers the entries as members of a part. A part of a part is not possible.
    fn interleaved(mut self, part: Interleave) -> Self {
        if part != Interleave::WHOLE {
            self.part = Some(Box::new((part, std::mem::take(&mut self.coarse))));
        }
        self
    }

    /// Returns the directory that contains an entry.
    #[inline]
    fn find(&self, entry: u32) -> u32 {
        let at = (entry >> self.shift) as usize;
        let Some(&low) = self.coarse.get(at) else { return self.find_in_part(entry).0 };
        self.search(&self.coarse, at, low, entry)
    }

    /// Returns the directory that contains an entry, given the position of its part of the index and the directory there,
    /// which is the first one to be examined: the last one with at most `entry` entries before it. (An empty directory has the same count as its successor.)
    #[inline]
    fn search(&self, coarse: &[u32], at: usize, low: u32, entry: u32) -> u32 {
        let mut low = low as usize;
        let mut high = coarse.get(at + 1).map_or(self.first.len() - 1, |&d| d as usize);
        // Invariant: `first[low] <= entry`, and the result is at most `high`.
        while high - low > 8 {
            let mid = low + (high - low) / 2;
            if self.first[mid] <= entry { low = mid } else { high = mid - 1 }
        }
        while low < high && self.first[low + 1] <= entry {
            low += 1;
        }
        low as u32
    }

    /// Returns the directory that contains an entry with the number of a part, and the position of the entry in it. Not
    /// inlined, to keep the search in a whole set small.
    #[cold]
    #[inline(never)]
    fn find_in_part(&self, entry: u32) -> (u32, u32) {
        let (part, coarse): (_, &[u32]) = self.part.as_deref().map_or((Interleave::WHOLE, &[]), |(p, c)| (*p, c));
        let entry = part.number(u64::from(entry)) as u32;
        let at = (entry >> self.shift) as usize;
        let dir = self.search(coarse, at, coarse[at], entry);
        (dir, entry - self.first[dir as usize])
    }

    fn range(&self, dir: u32) -> Range<u32> {
        let dir = dir as usize;
        self.first[dir]..self.first.get(dir + 1).copied().unwrap_or(self.total)
    }

    /// Returns the directory of an entry, and the position of the entry in it, from 0.
    #[inline]
    pub(crate) fn dir_and_position(&self, entry: u32) -> (u32, u32) {
        let at = (entry >> self.shift) as usize;
        let Some(&low) = self.coarse.get(at) else { return self.find_in_part(entry) };
        let dir = self.search(&self.coarse, at, low, entry);
        (dir, entry - self.first[dir as usize])
    }

    fn memory(&self) -> usize {
        4 * (self.first.len() + self.coarse.len() + self.part.as_ref().map_or(0, |part| part.1.len()))
    }
}
