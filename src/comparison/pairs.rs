//! Pairs the runs of two arms of one experiment by their blocks, so that what the runs of a block have in common cancels.

use super::RunOrder;
use crate::import::{ImportedSide, SideBlocks};
use crate::util::count::count;
use std::collections::BTreeMap;

/// The smallest number of blocks that have an interval.
const MIN_BLOCKS: usize = 2;

impl RunOrder {
    /// Returns the order of the runs of A and B. If both are arms of one experiment in blocks, the runs of blocks that
    /// are not complete are removed, with a note on A.
    pub(crate) fn of_sides(a: &mut ImportedSide, b: &mut ImportedSide) -> Self {
        let (Some(of_a), Some(of_b)) = (&a.blocks, &b.blocks) else { return Self::Separate };
        // The runs of one arm are not pairs with themselves.
        if of_a.folder != of_b.folder || of_a.arm == of_b.arm {
            return Self::Separate;
        }
        let (in_a, in_b) = (runs_of_blocks(of_a), runs_of_blocks(of_b));
        // A block of A and B has two runs of each, one of several cells has a run of each.
        let most = in_a.values().chain(in_b.values()).copied().max().unwrap_or(0);
        let order = match most {
            1 => Self::Paired,
            2 => Self::Blocks,
            _ => return Self::Alternated,
        };
        let has_all = |block: &usize| in_a.get(block) == Some(&most) && in_b.get(block) == Some(&most);
        if in_a.keys().filter(|block| has_all(block)).count() < MIN_BLOCKS {
            return Self::Alternated;
        }
        let before = a.runs.len() + b.runs.len();
        [&mut *a, b].into_iter().for_each(|side| keep_blocks(side, &has_all));
        let removed = before - a.runs.len() - b.runs.len();
        if removed > 0 {
            let runs = count(removed as u64, "run");
            a.notes.push(format!("without {runs} of blocks that lack a run of A or B"));
        }
        order
    }
}

fn runs_of_blocks(blocks: &SideBlocks) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    blocks.of_runs.iter().for_each(|block| *found.entry(*block).or_default() += 1);
    found
}

/// Removes the runs of all blocks but some.
fn keep_blocks(side: &mut ImportedSide, keeps: &dyn Fn(&usize) -> bool) {
    let Some(blocks) = &mut side.blocks else { return };
    let mut of_runs = blocks.of_runs.iter();
    side.runs.retain(|_| of_runs.next().is_some_and(keeps));
    blocks.of_runs.retain(keeps);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::import::Observation;

    fn side(folder: &str, arm: usize, blocks: &[usize]) -> ImportedSide {
        let run = |block: &usize| Observation { source: block.to_string(), ..Observation::default() };
        let of_blocks = SideBlocks { folder: folder.into(), arm, of_runs: blocks.to_vec() };
        ImportedSide { runs: blocks.iter().map(run).collect(), blocks: Some(of_blocks), ..ImportedSide::default() }
    }

    /// The order of two sides, the sources of their runs, and the note.
    fn paired(mut a: ImportedSide, mut b: ImportedSide) -> (RunOrder, [Vec<String>; 2], Option<String>) {
        let order = RunOrder::of_sides(&mut a, &mut b);
        let sources = |side: &ImportedSide| side.runs.iter().map(|run| run.source.clone()).collect();
        (order, [sources(&a), sources(&b)], a.notes.pop())
    }

    #[test]
    fn runs_of_one_experiment_are_paired_by_block() {
        let (order, runs, note) = paired(side("x", 0, &[0, 1, 2]), side("x", 1, &[0, 1, 2]));
        assert_eq!((order, runs[0].len(), note), (RunOrder::Paired, 3, None));
        let (order, runs, _) = paired(side("x", 0, &[0, 0, 1, 1]), side("x", 1, &[0, 0, 1, 1]));
        assert_eq!((order, runs[1].len()), (RunOrder::Blocks, 4));
        assert_eq!(paired(side("x", 0, &[0, 1]), side("y", 1, &[0, 1])).0, RunOrder::Separate);
        assert_eq!(paired(side("x", 0, &[0, 1]), side("x", 0, &[0, 1])).0, RunOrder::Separate);
        let without = ImportedSide { blocks: None, ..side("x", 0, &[0, 1]) };
        assert_eq!(paired(without, side("x", 0, &[0, 1])).0, RunOrder::Separate);
    }

    #[test]
    fn runs_of_incomplete_blocks_are_removed() {
        let (order, runs, note) = paired(side("x", 0, &[0, 1, 3, 4]), side("x", 1, &[1, 2, 3]));
        assert_eq!((order, &runs[0]), (RunOrder::Paired, &vec!["1".to_owned(), "3".to_owned()]));
        assert_eq!(runs[0], runs[1]);
        assert_eq!(note.unwrap(), "without 3 runs of blocks that lack a run of A or B");
        // A single block has no interval.
        let (order, runs, note) = paired(side("x", 0, &[0, 1, 2]), side("x", 1, &[2, 3]));
        assert_eq!((order, runs[0].len(), note), (RunOrder::Alternated, 3, None));
    }
}
