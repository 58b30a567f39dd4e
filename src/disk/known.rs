//! The names that a marked tree may contain according to its marker: directories, and the numbers of files in them.
//!
//! If possible, the tree is recomputed exactly from the layout. If widths or depths are random variables, whose
//! parameters are not in the marker, the names are bounded by the largest numbers in the tree instead. Does not access
//! the disk.

use super::Fileset;
use super::marker::Marker;
use crate::fileset::{FilesetSpec, Tree};
use crate::random::Quantity;
use serde::{Deserialize, Serialize};

/// Properties of the names of a tree that do not follow from the layout.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct DirNames {
    /// Whether `dirwidth` and `dirdepthrv` are constants, so that `width` and `depth` describe them completely.
    exact: bool,
    /// Value of `dirwidth`; 0 if absent.
    width: u64,
    /// Value of `dirdepthrv`; 0 if absent.
    depth: u64,
    /// Number of directories, including the root but not the leaf directories.
    dirs: u64,
    /// Maximum number of files in a directory.
    files: u64,
    /// Maximum number of subdirectories of a directory.
    subdirs: u64,
    /// Maximum number of leaf directories in a directory.
    leafdirs: u64,
    /// Number of levels below the root.
    levels: u32,
}

impl DirNames {
    /// Determines the properties of the tree of a set.
    pub(super) fn of(set: &Fileset) -> Self {
        let tree = &set.tree;
        let (mut files, mut leafdirs, mut subdirs) = (0, 0, 0);
        for dir in 0..tree.n_dirs() {
            let count = |range: std::ops::Range<u64>| range.end - range.start;
            files = files.max(count(tree.files_in(dir)));
            leafdirs = leafdirs.max(count(tree.leafdirs_in(dir)));
            subdirs = subdirs.max(u64::from(tree.dir_serial(dir)));
        }
        let number = |quantity: &Option<Quantity>| match quantity {
            None => Some(0),
            Some(Quantity::Const(n)) => Some(*n),
            Some(Quantity::Random(_)) => None,
        };
        let (width, depth) = (number(&set.spec.dirwidth), number(&set.spec.dirdepth));
        Self {
            exact: width.is_some() && depth.is_some(),
            width: width.unwrap_or(0),
            depth: depth.unwrap_or(0),
            dirs: tree.n_dirs(),
            files,
            subdirs,
            leafdirs,
            levels: tree.levels(),
        }
    }

    /// Recomputes the tree from the layout. `None` when that is not possible, or gives another tree.
    fn tree(&self, marker: &Marker) -> Option<Tree> {
        let layout = marker.layout.as_ref().filter(|_| self.exact)?;
        let mut spec = FilesetSpec::new("", "", layout.entries, 0);
        spec.leafdirs = layout.leafdirs;
        spec.dirwidth = Some(Quantity::Const(self.width));
        spec.dirdepth = Some(Quantity::Const(self.depth)).filter(|_| self.depth > 0);
        (spec.width_gamma, spec.depth_gamma) = (layout.width_gamma, layout.depth_gamma);
        let tree = Tree::new(&spec, layout.seed).ok()?;
        (tree.n_dirs() == self.dirs && tree.levels() == self.levels).then_some(tree)
    }
}

/// The names that a tree may contain.
#[derive(Debug)]
pub(super) enum KnownTree {
    /// All names that a file set could have: for a tree to be adopted.
    Any,
    /// No names.
    Nothing,
    /// Names with numbers and depths up to these maxima.
    UpTo(DirNames),
    /// The names of this tree, and its directories sorted by parent and serial number: `(parent, serial, directory)`.
    Tree(Box<Tree>, Vec<(u32, u32, u32)>),
}

/// A directory of a tree, as far as it can be identified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KnownDir {
    /// The directory with this number.
    Known(u32),
    /// A leaf directory, which must be empty.
    Leaf,
    /// An unidentified directory this many levels below the root.
    AtLevel(u32),
}

impl KnownTree {
    /// Returns the names that a marker allows.
    pub(super) fn of(marker: &Marker) -> Self {
        if marker.adopted {
            return Self::Any;
        }
        let Some(names) = &marker.names else { return Self::Nothing };
        match names.tree(marker) {
            Some(tree) => {
                let mut dirs: Vec<_> =
                    (1..tree.n_dirs()).map(|d| (tree.parent(d) as u32, tree.dir_serial(d), d as u32)).collect();
                dirs.sort_unstable();
                Self::Tree(Box::new(tree), dirs)
            }
            None => Self::UpTo(names.clone()),
        }
    }

    /// Returns the root.
    pub(super) fn root(&self) -> KnownDir {
        if matches!(self, Self::Tree(..)) { KnownDir::Known(0) } else { KnownDir::AtLevel(0) }
    }

    /// Returns the directory with this serial number in `parent`. `None` when the tree does not contain it.
    pub(super) fn dir(&self, parent: KnownDir, serial: u32) -> Option<KnownDir> {
        match (self, parent) {
            (_, KnownDir::Leaf) | (Self::Nothing, _) | (Self::Tree(..), KnownDir::AtLevel(_)) => None,
            (Self::Any | Self::UpTo(_), KnownDir::Known(_)) => None,
            (Self::Any, KnownDir::AtLevel(level)) => Some(KnownDir::AtLevel(level + 1)),
            (Self::UpTo(names), KnownDir::AtLevel(level)) => {
                // `levels` does not include leaf directories, which are one level deeper.
                let fits = u64::from(serial) <= names.subdirs.max(names.leafdirs) && level <= names.levels;
                fits.then_some(KnownDir::AtLevel(level + 1))
            }
            (Self::Tree(tree, dirs), KnownDir::Known(parent)) => {
                if let Ok(at) = dirs.binary_search_by_key(&(parent, serial), |&(parent, serial, _)| (parent, serial)) {
                    return Some(KnownDir::Known(dirs[at].2));
                }
                let leafs = tree.leafdirs_in(parent.into());
                (serial > 0 && u64::from(serial) <= leafs.end - leafs.start).then_some(KnownDir::Leaf)
            }
        }
    }

    /// Returns whether the tree contains a file with this serial number in a directory.
    pub(super) fn file(&self, dir: KnownDir, serial: u32) -> bool {
        match (self, dir) {
            (Self::Any, KnownDir::AtLevel(_)) => true,
            (Self::UpTo(names), KnownDir::AtLevel(_)) => u64::from(serial) <= names.files,
            (Self::Tree(tree, _), KnownDir::Known(dir)) => {
                let files = tree.files_in(dir.into());
                serial > 0 && u64::from(serial) <= files.end - files.start
            }
            _ => false,
        }
    }
}
