//! Which files a script makes and removes, and which of them by chance: their number wanders, and there must be enough.

use crate::action::CallAction;
use crate::model::{Loop, LoopBody};
use crate::streams::bits;
use crate::tree::LoopNode;
use std::collections::{BTreeMap, BTreeSet};

/// What loops do to the number of files of each set.
#[derive(Debug, Default)]
pub(crate) struct FileChanges {
    /// Sets of which files are made, removed or renamed in an alternative, or a drawn number of times.
    pub(crate) by_chance: BTreeSet<u16>,
    /// Likewise directories.
    pub(crate) dirs_by_chance: BTreeSet<u16>,
    /// Files of each set that the loops make, and that they remove.
    pub(crate) made: BTreeMap<u16, u64>,
    pub(crate) removed: BTreeMap<u16, u64>,
    /// Likewise directories.
    pub(crate) dirs_made: BTreeMap<u16, u64>,
    pub(crate) dirs_removed: BTreeMap<u16, u64>,
    /// By how many more are removed than made until the end of a phase, at most, and the other way round. Within a phase the
    /// threads wait for each other.
    pub(crate) missing: BTreeMap<u16, u64>,
    pub(crate) more: BTreeMap<u16, u64>,
}

impl FileChanges {
    pub(crate) fn of(phases: &[Vec<Loop>]) -> Self {
        let mut found = Self::default();
        let mut balance: BTreeMap<u16, i64> = BTreeMap::new();
        for phase in phases {
            for one in phase {
                let mut own = Self::default();
                add(one, &one.body, false, &mut own);
                if let Some((_, rare)) = &one.rare {
                    add(one, rare, false, &mut own);
                }
                own.made.iter().for_each(|(set, n)| *balance.entry(*set).or_default() += *n as i64);
                own.removed.iter().for_each(|(set, n)| *balance.entry(*set).or_default() -= *n as i64);
                own.made.iter().for_each(|(set, n)| *found.made.entry(*set).or_default() += n);
                own.removed.iter().for_each(|(set, n)| *found.removed.entry(*set).or_default() += n);
                own.dirs_made.iter().for_each(|(set, n)| *found.dirs_made.entry(*set).or_default() += n);
                own.dirs_removed.iter().for_each(|(set, n)| *found.dirs_removed.entry(*set).or_default() += n);
                found.by_chance.append(&mut own.by_chance);
                found.dirs_by_chance.append(&mut own.dirs_by_chance);
            }
            for (set, balance) in &balance {
                let (most, least) = (found.more.entry(*set).or_default(), found.missing.entry(*set).or_default());
                *most = (*most).max((*balance).max(0).unsigned_abs());
                *least = (*least).max((*balance).min(0).unsigned_abs());
            }
        }
        found
    }

    /// True if a loop mostly makes, or mostly removes: with more files it has more to do.
    pub(crate) fn grows(one: &Loop) -> bool {
        let mut own = Self::default();
        add(one, &one.body, false, &mut own);
        let sum = |all: &BTreeMap<u16, u64>| all.values().sum::<u64>();
        let (made, removed) = (sum(&own.made), sum(&own.removed));
        made.abs_diff(removed) * 2 > made.max(removed).max(1)
    }

    /// Files that are made or removed.
    pub(crate) fn all(&self, set: u16) -> u64 {
        let of = |all: &BTreeMap<u16, u64>| all.get(&set).copied().unwrap_or(0);
        of(&self.made) + of(&self.removed)
    }
}

fn add(one: &Loop, body: &LoopBody, is_by_chance: bool, found: &mut FileChanges) {
    add_node(one, body, &body.tree.root, is_by_chance, found);
}

fn add_node(one: &Loop, body: &LoopBody, node: &LoopNode, is_by_chance: bool, found: &mut FileChanges) {
    let mut leaf = |n: usize, is_by_chance: bool| {
        let is_by_chance = is_by_chance || body.leaves[n].counts.is_drawn();
        if let Some(session) = body.sessions.get(&n) {
            add(one, session, is_by_chance, found);
            return;
        }
        let symbol = one.symbols.get(body.tree.leaves[n]);
        if is_by_chance && symbol.action.changes_existence() {
            match symbol.action {
                CallAction::MakeDir | CallAction::RemoveDir => drop(found.dirs_by_chance.insert(symbol.set)),
                _ => found.by_chance.extend([symbol.set, symbol.to]),
            }
        }
        let mut count = |all: fn(&mut FileChanges) -> &mut BTreeMap<u16, u64>, set: u16| {
            *all(found).entry(set).or_default() += body.leaves[n].calls;
        };
        match symbol.action {
            CallAction::CreateFile | CallAction::Link => count(|found| &mut found.made, symbol.set),
            CallAction::MakeDir => count(|found| &mut found.dirs_made, symbol.set),
            CallAction::RemoveDir => count(|found| &mut found.dirs_removed, symbol.set),
            CallAction::Delete => count(|found| &mut found.removed, symbol.set),
            CallAction::Rename => {
                count(|found| &mut found.removed, symbol.set);
                // One that replaces a file makes none.
                if body.leaves[n].share(bits::OVER) <= 0.5 {
                    count(|found| &mut found.made, symbol.to);
                }
            }
            _ => {}
        }
    };
    match node {
        LoopNode::Leaf(n) => leaf(*n, is_by_chance),
        LoopNode::Repeat(leaves, counter) => {
            let is_by_chance = is_by_chance || body.counters[*counter].is_drawn();
            leaves.iter().for_each(|n| leaf(*n, is_by_chance));
        }
        LoopNode::Seq(nodes) => nodes.iter().for_each(|node| add_node(one, body, node, is_by_chance, found)),
        LoopNode::Choice(all) => all.iter().for_each(|(_, node)| add_node(one, body, node, true, found)),
    }
}
