//! Which files a script makes and removes by chance: their number wanders, and there must be enough of them.

use crate::model::{Loop, LoopBody};
use crate::tree::LoopNode;
use std::collections::BTreeSet;

/// The sets of which a loop makes, removes or renames files in an alternative, or a drawn number of times.
pub(crate) fn sets_of(one: &Loop) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    add(one, &one.body, false, &mut found);
    if let Some((_, rare)) = &one.rare {
        add(one, rare, false, &mut found);
    }
    found
}

fn add(one: &Loop, body: &LoopBody, is_by_chance: bool, found: &mut BTreeSet<u16>) {
    add_node(one, body, &body.tree.root, is_by_chance, found);
}

fn add_node(one: &Loop, body: &LoopBody, node: &LoopNode, is_by_chance: bool, found: &mut BTreeSet<u16>) {
    let mut leaf = |leaf: usize, is_by_chance: bool| {
        let is_by_chance = is_by_chance || body.leaves[leaf].counts.is_drawn();
        if let Some(session) = body.sessions.get(&leaf) {
            add(one, session, is_by_chance, found);
            return;
        }
        let symbol = one.symbols.get(body.tree.leaves[leaf]);
        if is_by_chance && symbol.action.changes_existence() {
            found.extend([symbol.set, symbol.to]);
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
