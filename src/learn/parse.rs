//! A piece of calls without its repetitions: a run of one call is one item, and a repeated series of items one block. What
//! remains is its shape.

use crate::action::{ActionTarget, CallAction};
use crate::streams::{CallStep, CallSymbol, NO_SLOT};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;

/// The longest series of items that is looked for as a block.
const LONGEST_BLOCK: usize = 12;
/// Pieces with more items are not taken apart: they are no iteration of a loop.
pub(crate) const MOST_ITEMS: usize = 10_000;
/// The most files that are open together in one session, as in a copy.
const MOST_TOGETHER: usize = 3;
/// Slots for files that are opened and closed; others are for those that stay open.
const MOST_SLOTS: usize = 100;

/// The symbols of a model. Those of files in slots are added as pieces are parsed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    all: Vec<CallSymbol>,
    numbers: HashMap<CallSymbol, u16>,
}

impl Symbols {
    pub(crate) fn new(symbols: &[CallSymbol]) -> Self {
        let numbers = symbols.iter().enumerate().map(|(n, symbol)| (*symbol, n as u16)).collect();
        Self { all: symbols.to_vec(), numbers }
    }

    pub(crate) fn get(&self, n: u16) -> CallSymbol {
        self.all[usize::from(n)]
    }

    /// The number of a symbol; `None` if there are too many.
    pub(crate) fn number(&mut self, symbol: CallSymbol) -> Option<u16> {
        if let Some(known) = self.numbers.get(&symbol) {
            return Some(*known);
        }
        let number = u16::try_from(self.all.len()).ok()?;
        self.all.push(symbol);
        self.numbers.insert(symbol, number);
        Some(number)
    }
}

/// An element of a shape: one item, or the items of a block.
pub(crate) type ElementId = u32;

/// A piece that was taken apart.
#[derive(Debug, Default)]
pub(crate) struct ParsedPiece {
    runs: Vec<CallRun>,
    /// The elements in order, each with how often it is repeated: a block, as a whole. A run has its own number.
    parts: Vec<(ElementId, u32)>,
}

impl ParsedPiece {
    pub(crate) fn shape(&self) -> Vec<ElementId> {
        self.parts.iter().map(|(element, _)| *element).collect()
    }

    /// The elements, each with how often it is repeated and the runs that it stands for.
    pub(crate) fn elements<'a>(&'a self, parser: &'a Parser) -> impl Iterator<Item = (ElementId, u32, &'a [CallRun])> {
        let mut rest = self.runs.as_slice();
        self.parts.iter().map(move |(element, times)| {
            let (own, others) = rest.split_at(parser.element(*element).len() * *times as usize);
            rest = others;
            (*element, *times, own)
        })
    }
}

/// Takes pieces apart.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    elements: Vec<Vec<u16>>,
    ids: HashMap<Vec<u16>, ElementId>,
    /// True if a session in a piece is one item.
    folds: bool,
    /// Slots that other files have.
    others: usize,
    /// The kinds of sessions: how the first file is opened, and what is done, on files of which sets.
    kinds: Vec<(CallSymbol, BTreeSet<(CallAction, u16)>)>,
    /// Calls on the name of a file that was open before the piece.
    pub(crate) lost: usize,
    /// The shapes, by their numbers less one.
    shapes: Vec<Vec<ElementId>>,
    shape_numbers: HashMap<Vec<ElementId>, NonZeroU32>,
    /// Blocks that are looked for where they stand once.
    known_blocks: HashSet<Vec<u16>>,
}

impl Parser {
    /// Takes sessions as one item.
    pub(crate) fn folding() -> Self {
        Self { folds: true, ..Self::default() }
    }

    /// For what happens while the slots before this one are in use.
    pub(crate) fn from_slot(first: u8) -> Self {
        Self { others: usize::from(first.saturating_sub(1)), ..Self::default() }
    }

    pub(crate) fn element(&self, id: ElementId) -> &[u16] {
        &self.elements[id as usize]
    }

    fn id(&mut self, items: &[u16]) -> ElementId {
        if let Some(id) = self.ids.get(items) {
            return *id;
        }
        let id = self.elements.len() as ElementId;
        self.elements.push(items.to_vec());
        self.ids.insert(items.to_vec(), id);
        id
    }

    /// The number of a piece's shape.
    pub(crate) fn shape(&mut self, piece: &ParsedPiece) -> Option<NonZeroU32> {
        let shape = piece.shape();
        if let Some(number) = self.shape_numbers.get(&shape) {
            return Some(*number);
        }
        let number = NonZeroU32::new(u32::try_from(self.shapes.len() + 1).ok()?)?;
        self.shapes.push(shape.clone());
        self.shape_numbers.insert(shape, number);
        Some(number)
    }

    /// The elements of a shape.
    pub(crate) fn shape_of(&self, number: NonZeroU32) -> &[ElementId] {
        &self.shapes[number.get() as usize - 1]
    }

    /// The runs of a piece, with sessions as one if the parser folds them.
    fn runs(&mut self, steps: &[CallStep], symbols: &mut Symbols) -> Option<Vec<CallRun>> {
        let items = items(steps, symbols, self.others, &mut self.lost)?;
        let items = if self.folds { self.folded(&items, symbols)? } else { items };
        (items.len() <= MOST_ITEMS).then_some(items)
    }

    /// Takes a piece apart. `None` if a file that it opens stays open, or one that it did not open is closed.
    pub(crate) fn parse(&mut self, steps: &[CallStep], symbols: &mut Symbols) -> Option<ParsedPiece> {
        let runs = self.runs(steps, symbols)?;
        let mut parts = Vec::new();
        let mut at = 0;
        while at < runs.len() {
            let rest = &runs[at..];
            let alike =
                |length: usize, times: usize| (0..length).all(|n| rest[times * length + n].symbol == rest[n].symbol);
            let mut best = (1, 1);
            for length in 2..=LONGEST_BLOCK.min(rest.len() / 2) {
                let most = rest.len() / length;
                let times = (1..most).take_while(|times| alike(length, *times)).count() + 1;
                // Twice the same reads better as it is.
                if times > 2 && (times - 1) * length > (best.1 - 1) * best.0 {
                    best = (length, times);
                }
            }
            if best.1 == 1 && !self.known_blocks.is_empty() {
                let found = (2..=LONGEST_BLOCK.min(rest.len())).rev().find(|length| {
                    let block: Vec<u16> = rest[..*length].iter().map(|item| item.symbol).collect();
                    self.known_blocks.contains(&block)
                });
                if let Some(length) = found {
                    let most = rest.len() / length;
                    best = (length, (1..most).take_while(|times| alike(length, *times)).count() + 1);
                }
            }
            let (length, times) = best;
            let block: Vec<u16> = rest[..length].iter().map(|item| item.symbol).collect();
            parts.push((self.id(&block), times as u32));
            at += length * times;
        }
        Some(ParsedPiece { runs, parts })
    }

    /// The items with each session as one: from an open to the close of all that was opened since, with nothing else between.
    fn folded(&mut self, items: &[CallRun], symbols: &mut Symbols) -> Option<Vec<CallRun>> {
        let mut all: Vec<CallRun> = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let open = symbols.get(items[at].symbol);
            let Some(length) = session_length(&items[at..], symbols) else {
                all.push(items[at]);
                at += 1;
                continue;
            };
            let session = &items[at..at + length];
            let calls = session.iter().map(|item| symbols.get(item.symbol));
            let telling = calls.filter(|symbol| !symbol.action.is_minor() && !symbol.action.is_halt());
            let kind = (open.anywhere(), telling.map(|symbol| (symbol.action, symbol.set)).collect());
            let number = self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                self.kinds.push(kind);
                self.kinds.len() - 1
            });
            let symbol =
                symbols.number(CallSymbol { action: CallAction::Session, to: u16::try_from(number).ok()?, ..open })?;
            let steps: u32 = session.iter().map(|item| item.steps).sum();
            match all.last_mut() {
                Some(before) if before.symbol == symbol => {
                    before.steps += steps;
                    before.repeats += 1;
                }
                _ => all.push(CallRun { symbol, first: session[0].first, steps, repeats: 1 }),
            }
            at += length;
        }
        Some(all)
    }

    /// Remembers the blocks of these pieces that are common.
    pub(crate) fn learn_blocks(&mut self, pieces: &[ParsedPiece]) {
        let mut counts: HashMap<ElementId, usize> = HashMap::new();
        for (element, _) in pieces.iter().flat_map(|piece| &piece.parts) {
            *counts.entry(*element).or_default() += usize::from(self.element(*element).len() > 1);
        }
        let common = counts.into_iter().filter(|(_, count)| *count > 0 && count * 20 >= pieces.len());
        self.known_blocks = common.map(|(id, _)| self.elements[id as usize].clone()).collect();
    }
}

/// How many items a session has that begins here. `None` if none does, or if it uses other files too.
fn session_length(items: &[CallRun], symbols: &Symbols) -> Option<usize> {
    let begin = symbols.get(items.first()?.symbol);
    let (mut open, mut opens): (Vec<u8>, usize) = (Vec::new(), 0);
    for (n, item) in items.iter().enumerate() {
        let symbol = symbols.get(item.symbol);
        match symbol.action {
            // A halt has its place in what is open meanwhile.
            CallAction::Await if n > 0 => {}
            action if action.row().names == ActionTarget::Opens && symbol.slot != NO_SLOT => {
                opens += 1;
                // A walk through a directory has sessions of its own.
                let is_walk = opens > 1 && [begin.action, symbol.action].contains(&CallAction::OpenDir);
                if is_walk || opens > MOST_TOGETHER {
                    return None;
                }
                // By itself it has the slots from its first one on.
                let free = (begin.slot..=u8::MAX).find(|slot| !open.contains(slot));
                open.push(free.filter(|slot| *slot == symbol.slot)?);
            }
            CallAction::CloseFile | CallAction::CloseDir => {
                open.remove(open.iter().position(|slot| *slot == symbol.slot)?);
                if open.is_empty() {
                    return Some(n + 1);
                }
            }
            _ if !open.contains(&symbol.slot) => return None,
            // A copy needs the other file too.
            CallAction::CopyRange if !open.iter().any(|slot| u16::from(*slot) == symbol.to) => return None,
            _ => {}
        }
    }
    None
}

/// A run of equal calls, or of sessions of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRun {
    symbol: u16,
    pub(crate) first: u32,
    pub(crate) steps: u32,
    pub(crate) repeats: u32,
}

/// Runs of equal calls. Files have the lowest slots that are free in the piece.
fn items(steps: &[CallStep], symbols: &mut Symbols, others: usize, lost: &mut usize) -> Option<Vec<CallRun>> {
    let mut slots: Vec<Option<u8>> = vec![Some(u8::MAX); others];
    // Also those that are closed by now, for calls on the names of their files.
    let mut last: HashMap<u8, u8> = HashMap::new();
    let mut items: Vec<CallRun> = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let symbol = symbols.get(step.symbol);
        let (mut slot, mut to) = (NO_SLOT, symbol.to);
        let names = symbol.action.row().names;
        if symbol.action == CallAction::CopyRange {
            to = slots.iter().position(|open| open.is_some_and(|open| u16::from(open) == symbol.to))? as u16 + 1;
        }
        if symbol.slot != NO_SLOT {
            let open = slots.iter().position(|open| *open == Some(symbol.slot)).map(|n| n as u8 + 1);
            match (names, symbol.action) {
                (ActionTarget::Opens, _) => {
                    let free = slots.iter().position(Option::is_none).unwrap_or_else(|| {
                        slots.push(None);
                        slots.len() - 1
                    });
                    if free >= MOST_SLOTS {
                        return None;
                    }
                    slots[free] = Some(symbol.slot);
                    slot = free as u8 + 1;
                    last.retain(|_, own| *own != slot);
                    last.insert(symbol.slot, slot);
                }
                (_, CallAction::CloseFile | CallAction::CloseDir) => {
                    slot = open?;
                    slots[usize::from(slot) - 1] = None;
                }
                (ActionTarget::OldSlot, _) => {
                    slot = last.get(&symbol.slot).copied().unwrap_or(NO_SLOT);
                    *lost += usize::from(slot == NO_SLOT);
                }
                _ => slot = open.unwrap_or(NO_SLOT),
            }
        } else if matches!(symbol.action, CallAction::CloseFile | CallAction::CloseDir)
            || names == ActionTarget::Opens && symbol.action.opens()
        {
            return None;
        }
        let is_same = (slot, to) == (symbol.slot, symbol.to);
        let own = if is_same { step.symbol } else { symbols.number(CallSymbol { to, slot, ..symbol })? };
        match items.last_mut() {
            Some(before) if before.symbol == own && names != ActionTarget::Opens => {
                before.steps += 1;
                before.repeats += 1;
            }
            _ => items.push(CallRun { symbol: own, first: n as u32, steps: 1, repeats: 1 }),
        }
    }
    slots[others..].iter().all(Option::is_none).then_some(items)
}
