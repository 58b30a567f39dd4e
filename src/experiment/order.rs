//! The orders in which the runs of an experiment are made, drawn from its seed.
//!
//! To add an order, add a variant, its description, the runs of its blocks, and its name in `NAMED` and `FORM` if
//! experiment files can ask for it; and a sentence in docs/experiments.md. If it has no blocks, `import/folder.rs` must
//! know that too.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The order of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyOrder {
    /// In blocks of four runs of two cells: A B B A or B A A B at random.
    Pairs,
    /// In blocks with one run of each cell, in a random order.
    Blocks,
    /// One run of each cell in the given order, and again.
    Sequence,
    /// All runs of a cell before those of the next: for workloads that change the file system for good.
    Cells,
}

/// The orders that an experiment file can have, by name.
pub(super) const NAMED: [(&str, StudyOrder); 2] = [("blocks", StudyOrder::Blocks), ("in-order", StudyOrder::Cells)];

/// The form of the key `order` of experiment files.
pub(super) const FORM: &str = "`\"blocks\"` or `\"in-order\"`";

impl StudyOrder {
    /// The order with this name in experiment files.
    pub(super) fn find(name: &str) -> Option<Self> {
        NAMED.iter().find(|(known, _)| *known == name).map(|(_, order)| *order)
    }

    /// What the order does, for people.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Pairs => "in random blocks of two runs of each side",
            Self::Blocks => "in random blocks of one run of each cell",
            Self::Sequence => "one run of each cell after the other, and again",
            Self::Cells => "all runs of a cell before those of the next",
        }
    }

    /// True if the runs before a run, and so what they left behind, are always the same.
    pub(crate) fn is_fixed(self) -> bool {
        !matches!(self, Self::Pairs | Self::Blocks)
    }

    /// False if the results decide on the next cell.
    pub(crate) fn has_blocks(self) -> bool {
        self != Self::Cells
    }

    /// The number of runs of each cell in a block.
    pub(super) fn per_block(self) -> usize {
        if self == Self::Pairs { 2 } else { 1 }
    }

    /// The number of runs of a block; 1 without blocks.
    pub(crate) fn block_len(self, cells: usize) -> usize {
        if self.has_blocks() { self.per_block() * cells } else { 1 }
    }

    /// The number of a run's block; both are counted from 0. Without blocks all runs are of one.
    pub(super) fn block_of(self, run: usize, cells: usize) -> usize {
        if self.has_blocks() { run / self.block_len(cells).max(1) } else { 0 }
    }

    /// The cells of the runs of a block, which is counted from 0; none without blocks.
    pub(super) fn block(self, cells: usize, seed: u64, block: usize) -> Vec<usize> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(block as u64));
        let mut all: Vec<usize> = (0..cells).collect();
        match self {
            Self::Pairs if rng.random() => vec![1, 0, 0, 1],
            Self::Pairs => vec![0, 1, 1, 0],
            Self::Blocks => {
                all.shuffle(&mut rng);
                all
            }
            Self::Sequence => all,
            Self::Cells => Vec::new(),
        }
    }
}

/// Folders store a switch, whether the runs are in order; a later order is stored by its name.
impl Serialize for StudyOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Blocks => false.serialize(serializer),
            Self::Cells => true.serialize(serializer),
            _ => NAMED.iter().find(|(_, order)| order == self).map(|(name, _)| name).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StudyOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            InOrder(bool),
            Name(String),
        }
        match Stored::deserialize(deserializer)? {
            Stored::InOrder(is_in_order) => Ok(if is_in_order { Self::Cells } else { Self::Blocks }),
            Stored::Name(name) => Self::find(&name).ok_or_else(|| D::Error::custom("unknown order of runs")),
        }
    }
}
