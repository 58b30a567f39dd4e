//! What a marker says of a tree: its layout, the names in it, and how many members were made.

use crate::fileset::{FilesetSpec, Tree};
use crate::random::Quantity;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The parameters that determine the directories of a tree. File sizes are not included.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct MarkerLayout {
    pub(super) entries: u64,
    pub(super) leafdirs: u64,
    pub(super) dirwidth: String,
    pub(super) width_gamma: f64,
    pub(super) depth_gamma: f64,
    pub(super) dirdepth: String,
    pub(super) seed: u64,
}

impl fmt::Display for MarkerLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, leafdirs, dirwidth, width_gamma, depth_gamma, dirdepth, seed } = self;
        write!(
            f,
            "entries={entries} leafdirs={leafdirs} dirwidth={dirwidth} gamma={width_gamma}/{depth_gamma} dirdepthrv={dirdepth} layout seed {seed}"
        )
    }
}

/// How many members of a set were created. Which ones follows from that, the layout seed and the name of the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct MadeMembers {
    pub(super) files: u64,
    pub(super) leafdirs: u64,
}

impl MadeMembers {
    /// Returns those of a tree as it is defined.
    pub(super) fn of(tree: &Tree) -> Self {
        Self { files: tree.files_at_start(), leafdirs: tree.leafdirs_at_start() }
    }
}

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
    pub(super) files: u64,
    /// Maximum number of subdirectories of a directory.
    pub(super) subdirs: u64,
    /// Maximum number of leaf directories in a directory.
    pub(super) leafdirs: u64,
    /// Number of levels below the root.
    pub(super) levels: u32,
}

impl DirNames {
    /// Determines the properties of the tree of a set.
    pub(super) fn of(spec: &FilesetSpec, tree: &Tree) -> Self {
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
        let (width, depth) = (number(&spec.dirwidth), number(&spec.dirdepth));
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
    pub(super) fn tree(&self, layout: Option<&MarkerLayout>) -> Option<Tree> {
        let layout = layout.filter(|_| self.exact)?;
        let mut spec = FilesetSpec::new("", "", layout.entries, 0);
        spec.leafdirs = layout.leafdirs;
        spec.dirwidth = Some(Quantity::Const(self.width));
        spec.dirdepth = Some(Quantity::Const(self.depth)).filter(|_| self.depth > 0);
        (spec.width_gamma, spec.depth_gamma) = (layout.width_gamma, layout.depth_gamma);
        let tree = Tree::new(&spec, layout.seed).ok()?;
        (tree.n_dirs() == self.dirs && tree.levels() == self.levels).then_some(tree)
    }
}

impl FilesetSpec {
    /// Returns the parameters that determine the directories of the tree.
    pub(super) fn layout(&self, layout_seed: u64) -> MarkerLayout {
        let text = |quantity: &Option<Quantity>| quantity.as_ref().map_or_else(|| "none".into(), ToString::to_string);
        MarkerLayout {
            entries: self.entries,
            leafdirs: self.leafdirs,
            dirwidth: text(&self.dirwidth),
            width_gamma: self.width_gamma,
            depth_gamma: self.depth_gamma,
            dirdepth: text(&self.dirdepth),
            seed: layout_seed,
        }
    }
}
