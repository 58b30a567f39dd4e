//! The names that a marked tree may contain according to its marker: directories, and the numbers of files in them.
//!
//! If possible, the tree is recomputed exactly from the layout. If widths or depths are random variables, whose
//! parameters are not in the marker, the names are bounded by the largest numbers in the tree instead. Does not access
//! the disk.

use super::marker::Marker;
use super::record::DirNames;
use crate::fileset::Tree;

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
        match names.tree(marker.layout.as_ref()) {
            Some(tree) => {
                let mut dirs: Vec<_> =
                    (1..tree.n_dirs()).map(|d| (tree.parent(d) as u32, tree.dir_serial(d), d as u32)).collect();
                dirs.sort_unstable();
                Self::Tree(Box::new(tree), dirs)
            }
            None => Self::UpTo(names.clone()),
        }
    }

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

    /// True if the tree contains a file with this serial number in a directory.
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
