//! The names that a marked tree has, by its marker: which directories, and how many files in each.
//!
//! The tree is computed again from the layout where that is possible to the bit. Where widths or depths are random variables,
//! whose parameters no marker holds, the largest numbers that the tree has bound them. Touches no disk.

use super::Fileset;
use super::marker::Marker;
use crate::fileset::{FilesetSpec, Tree};
use crate::random::Quantity;
use serde::{Deserialize, Serialize};

/// What the layout does not say of a tree's names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct DirNames {
    /// Whether the two that follow are all that there is to `dirwidth` and `dirdepthrv`: no random variables.
    exact: bool,
    /// `dirwidth`; 0 for none.
    width: u64,
    /// `dirdepthrv`; 0 for none.
    depth: u64,
    /// Directories, the root included, leaf directories not.
    dirs: u64,
    /// The most of each in one directory.
    files: u64,
    subdirs: u64,
    leafdirs: u64,
    levels: u32,
}

impl DirNames {
    /// The names of a set's tree.
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

    /// The tree that the layout gives, if it is the same again.
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

/// Which names may be in a tree.
#[derive(Debug)]
pub(super) enum KnownTree {
    /// Those that any file set could have: a tree that is to be adopted.
    Any,
    /// None.
    Nothing,
    /// No larger numbers, and no deeper.
    UpTo(DirNames),
    /// Those of this tree. Directories by parent and number.
    Tree(Box<Tree>, Vec<(u32, u32, u32)>),
}

/// A directory of a tree, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KnownDir {
    /// This one.
    Known(u32),
    /// A leaf directory: nothing is in it.
    Leaf,
    /// Some directory so many levels below the root.
    Some(u32),
}

impl KnownTree {
    /// The names that a marker allows.
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

    /// The root.
    pub(super) fn root(&self) -> KnownDir {
        if matches!(self, Self::Tree(..)) { KnownDir::Known(0) } else { KnownDir::Some(0) }
    }

    /// The directory of this number in another, if the tree has it.
    pub(super) fn dir(&self, above: KnownDir, serial: u32) -> Option<KnownDir> {
        match (self, above) {
            (_, KnownDir::Leaf) | (Self::Nothing, _) | (Self::Tree(..), KnownDir::Some(_)) => None,
            (Self::Any | Self::UpTo(_), KnownDir::Known(_)) => None,
            (Self::Any, KnownDir::Some(level)) => Some(KnownDir::Some(level + 1)),
            (Self::UpTo(names), KnownDir::Some(level)) => {
                // A leaf directory lies one level below the lowest that is counted.
                let fits = u64::from(serial) <= names.subdirs.max(names.leafdirs) && level <= names.levels;
                fits.then_some(KnownDir::Some(level + 1))
            }
            (Self::Tree(tree, dirs), KnownDir::Known(above)) => {
                if let Ok(at) = dirs.binary_search_by_key(&(above, serial), |&(parent, serial, _)| (parent, serial)) {
                    return Some(KnownDir::Known(dirs[at].2));
                }
                let leafs = tree.leafdirs_in(above.into());
                (serial > 0 && u64::from(serial) <= leafs.end - leafs.start).then_some(KnownDir::Leaf)
            }
        }
    }

    /// Whether the tree has a file of this number in that directory.
    pub(super) fn file(&self, dir: KnownDir, serial: u32) -> bool {
        match (self, dir) {
            (Self::Any, KnownDir::Some(_)) => true,
            (Self::UpTo(names), KnownDir::Some(_)) => u64::from(serial) <= names.files,
            (Self::Tree(tree, _), KnownDir::Known(dir)) => {
                let files = tree.files_in(dir.into());
                serial > 0 && u64::from(serial) <= files.end - files.start
            }
            _ => false,
        }
    }
}
