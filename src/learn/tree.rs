//! The shapes of a loop as one tree: what all have in common in order, and between it the alternatives.

use crate::action::{ActionTarget, CallAction};
use crate::parse::{ElementId, Parser, Symbols};
use crate::streams::NO_SLOT;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

/// A part of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoopNode {
    /// A call, or a run of one: the number of its leaf.
    Leaf(usize),
    /// A block that is repeated: the number of its counter.
    Repeat(Vec<usize>, usize),
    /// One after another.
    Seq(Vec<LoopNode>),
    /// One of them, by its weight.
    Choice(Vec<(f64, LoopNode)>),
}

/// The tree of some shapes, and which leaves each shape has.
#[derive(Clone, Debug)]
pub(crate) struct ShapeTree {
    pub(crate) root: LoopNode,
    /// The symbol of each leaf.
    pub(crate) leaves: Vec<u16>,
    pub(crate) counters: usize,
    /// For each element of each shape: its leaves, and the counter of a block.
    pub(crate) of_shape: Vec<Vec<(Vec<usize>, Option<usize>)>>,
}

/// A part of a shape: its elements, its weight, and which shapes have it from which element on.
#[derive(Clone, Debug)]
struct Variant {
    elements: Vec<ElementId>,
    weight: f64,
    from: Vec<(usize, usize)>,
}

struct TreeBuilder<'a> {
    parser: &'a Parser,
    symbols: &'a Symbols,
    tree: ShapeTree,
}

impl ShapeTree {
    /// The tree of shapes, each with its weight.
    pub(crate) fn new(shapes: &[(NonZeroU32, Vec<ElementId>, f64)], parser: &Parser, symbols: &Symbols) -> Self {
        let tree = Self {
            root: LoopNode::Seq(Vec::new()),
            leaves: Vec::new(),
            counters: 0,
            of_shape: shapes.iter().map(|(_, shape, _)| vec![(Vec::new(), None); shape.len()]).collect(),
        };
        let mut builder = TreeBuilder { parser, symbols, tree };
        let variants = shapes.iter().enumerate().map(|(n, (_, shape, weight))| Variant {
            elements: shape.clone(),
            weight: *weight,
            from: vec![(n, 0)],
        });
        let root = builder.build(&variants.collect::<Vec<_>>());
        builder.tree.root = root;
        builder.tree
    }
}

impl TreeBuilder<'_> {
    fn build(&mut self, variants: &[Variant]) -> LoopNode {
        let variants = joined(variants);
        if let [one] = variants.as_slice() {
            return self.seq(one);
        }
        let common = variants
            .iter()
            .skip(1)
            .fold(variants[0].elements.clone(), |common, variant| longest_common(&common, &variant.elements));
        if !common.is_empty()
            && let Some(gaps) = self.gaps(&variants, &common)
        {
            let mut all = Vec::new();
            for (n, gap) in gaps.iter().enumerate() {
                match self.build(gap) {
                    LoopNode::Seq(nodes) => all.extend(nodes),
                    node => all.push(node),
                }
                if let Some(element) = common.get(n) {
                    // The element stands behind the gap in every shape.
                    let from =
                        gap.iter().flat_map(|gap| gap.from.iter().map(|(shape, at)| (*shape, at + gap.elements.len())));
                    let one = Variant { elements: vec![*element], weight: 1.0, from: from.collect() };
                    match self.seq(&one) {
                        LoopNode::Seq(nodes) => all.extend(nodes),
                        node => all.push(node),
                    }
                }
            }
            return LoopNode::Seq(all);
        }
        // Nothing in common, or what is between belongs together: by the first element.
        let mut by_first: BTreeMap<Option<ElementId>, Vec<Variant>> = BTreeMap::new();
        for variant in &variants {
            by_first.entry(variant.elements.first().copied()).or_default().push(variant.clone());
        }
        let groups: Vec<Vec<Variant>> = match by_first.len() {
            1 => variants.iter().map(|variant| vec![variant.clone()]).collect(),
            _ => by_first.into_values().collect(),
        };
        let mut all: Vec<(f64, LoopNode)> = Vec::new();
        for group in groups {
            let weight = group.iter().map(|variant| variant.weight).sum();
            all.push((weight, self.build(&group)));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        LoopNode::Choice(all)
    }

    /// What is between the elements that all have in common. `None` if files stay open from one gap to another.
    fn gaps(&self, variants: &[Variant], common: &[ElementId]) -> Option<Vec<Vec<Variant>>> {
        let mut gaps: Vec<Vec<Variant>> = vec![Vec::new(); common.len() + 1];
        for variant in variants {
            let mut begin = 0;
            for (n, gap) in gaps.iter_mut().enumerate() {
                let end = match common.get(n) {
                    Some(element) => begin + variant.elements[begin..].iter().position(|one| one == element)?,
                    None => variant.elements.len(),
                };
                gap.push(Variant {
                    elements: variant.elements[begin..end].to_vec(),
                    weight: variant.weight,
                    from: variant.from.iter().map(|(shape, at)| (*shape, at + begin)).collect(),
                });
                begin = end + 1;
            }
        }
        let is_even = |gap: &Vec<Variant>| {
            let first = self.opened(&gap[0].elements);
            gap.iter().all(|variant| self.opened(&variant.elements) == first)
        };
        gaps.iter().all(is_even).then_some(gaps)
    }

    /// The slots that are open behind these elements and were not before, and the other way round.
    fn opened(&self, elements: &[ElementId]) -> BTreeMap<(u8, bool, u16), i32> {
        let mut open: BTreeMap<(u8, bool, u16), i32> = BTreeMap::new();
        for item in elements.iter().flat_map(|element| self.parser.element(*element)) {
            let symbol = self.symbols.get(*item);
            let change = match symbol.action {
                CallAction::CloseFile | CallAction::CloseDir => -1,
                action if action.row().names == ActionTarget::Opens && symbol.slot != NO_SLOT => 1,
                _ => continue,
            };
            let is_dir = matches!(symbol.action, CallAction::OpenDir | CallAction::CloseDir);
            *open.entry((symbol.slot, is_dir, symbol.set)).or_default() += change;
        }
        open.retain(|_, n| *n != 0);
        open
    }

    /// Elements one after another.
    fn seq(&mut self, variant: &Variant) -> LoopNode {
        let mut nodes = Vec::new();
        for (n, element) in variant.elements.iter().enumerate() {
            let items = self.parser.element(*element).to_vec();
            let first = self.tree.leaves.len();
            self.tree.leaves.extend(&items);
            let leaves: Vec<usize> = (first..self.tree.leaves.len()).collect();
            let counter = (items.len() > 1).then_some(self.tree.counters);
            self.tree.counters += usize::from(counter.is_some());
            for (shape, at) in &variant.from {
                self.tree.of_shape[*shape][at + n] = (leaves.clone(), counter);
            }
            nodes.push(match counter {
                Some(counter) => LoopNode::Repeat(leaves, counter),
                None => LoopNode::Leaf(first),
            });
        }
        match <[LoopNode; 1]>::try_from(nodes) {
            Ok([one]) => one,
            Err(nodes) => LoopNode::Seq(nodes),
        }
    }
}

/// Variants with the same elements are one.
fn joined(variants: &[Variant]) -> Vec<Variant> {
    let mut all: Vec<Variant> = Vec::new();
    let mut numbers: HashMap<&[ElementId], usize> = HashMap::new();
    for variant in variants {
        match numbers.get(variant.elements.as_slice()) {
            Some(n) => {
                all[*n].weight += variant.weight;
                all[*n].from.extend(&variant.from);
            }
            None => {
                numbers.insert(&variant.elements, all.len());
                all.push(variant.clone());
            }
        }
    }
    all
}

/// Of longer shapes the common elements are not looked for: that takes a table of one by the other.
const MOST_COMPARED: usize = 4_000_000;

/// The longest series of elements that both have, in order.
fn longest_common(a: &[ElementId], b: &[ElementId]) -> Vec<ElementId> {
    let width = b.len() + 1;
    if (a.len() + 1).saturating_mul(width) > MOST_COMPARED {
        return Vec::new();
    }
    let mut lengths = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            lengths[i * width + j] = match a[i] == b[j] {
                true => lengths[(i + 1) * width + j + 1] + 1,
                false => lengths[(i + 1) * width + j].max(lengths[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut common) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            common.push(a[i]);
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}
