//! Iterations: where the calls of a thread are cut, and what shape each piece has.
//!
//! An *anchor* is a call after which a loop begins again. A piece is written down without its repetitions: a run of one call
//! is one item, and a repeated series of items one block. What remains is its shape.

use crate::action::{ActionTarget, CallAction};
use crate::streams::{CallStep, CallSymbol, NO_SLOT};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;

/// The longest series of items that is looked for as a block.
const LONGEST_BLOCK: usize = 12;
/// Pieces with more items are not taken apart: they are no iteration of a loop.
const MOST_ITEMS: usize = 10_000;
/// Slots for files that are opened and closed; others are for those that stay open.
const MOST_SLOTS: usize = 100;
/// Calls that are looked at to choose an anchor.
const LOOKED_AT: usize = 200_000;
const MOST_ANCHORS: usize = 24;
/// What it costs that a call does not know its file any more: any of the set would do.
const LOST_BITS: f64 = 4.0;
/// Bits a call that an element of a shape has to gain.
const READ_BITS: f64 = 0.0007;
/// Bits a call that are lost where shapes are not known.
const UNKNOWN_BITS: f64 = 0.5;
/// Bits a call that have to be gained by an iteration that ends with no call.
const HALT_BITS: f64 = 0.1;
/// The pieces are dealt to so many parts in time; the odd ones are held out.
const PARTS: usize = 20;

/// The symbols of a model. Those of files in slots are added as pieces are parsed.
#[derive(Debug, Default)]
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

/// An element of a piece, with the steps that it stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed {
    pub(crate) element: ElementId,
    pub(crate) first: u32,
    pub(crate) steps: u32,
    /// How often a block was repeated, or how long a run is.
    pub(crate) repeats: u32,
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
    /// The kinds of sessions: how the file is opened, and what is done with it.
    kinds: Vec<(CallSymbol, BTreeSet<CallAction>)>,
    /// Calls on the name of a file that was open before the piece.
    lost: usize,
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
    fn shape(&mut self, piece: &[Parsed]) -> Option<NonZeroU32> {
        let shape: Vec<ElementId> = piece.iter().map(|parsed| parsed.element).collect();
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
    pub(crate) fn runs(&mut self, steps: &[CallStep], symbols: &mut Symbols) -> Option<Vec<CallRun>> {
        let items = items(steps, symbols, self.others, &mut self.lost)?;
        let items = if self.folds { self.folded(&items, symbols)? } else { items };
        (items.len() <= MOST_ITEMS).then_some(items)
    }

    /// Takes a piece apart. `None` if a file that it opens stays open, or one that it did not open is closed.
    pub(crate) fn parse(&mut self, steps: &[CallStep], symbols: &mut Symbols) -> Option<Vec<Parsed>> {
        let items = self.runs(steps, symbols)?;
        let mut all = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let rest = &items[at..];
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
            let taken = &rest[..length * times];
            let block: Vec<u16> = taken[..length].iter().map(|item| item.symbol).collect();
            let steps: u32 = taken.iter().map(|item| item.steps).sum();
            let repeats = if length == 1 { taken[0].repeats } else { times as u32 };
            all.push(Parsed { element: self.id(&block), first: taken[0].first, steps, repeats });
            at += length * times;
        }
        Some(all)
    }

    /// The items with each session as one: from an open to its close, with nothing else between.
    fn folded(&mut self, items: &[CallRun], symbols: &mut Symbols) -> Option<Vec<CallRun>> {
        let mut all: Vec<CallRun> = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let open = symbols.get(items[at].symbol);
            let is_open = open.slot != NO_SLOT && open.action.row().names == ActionTarget::Opens;
            let own = |item: &CallRun| symbols.get(item.symbol).slot == open.slot;
            let is_close = |item: &CallRun| {
                matches!(symbols.get(item.symbol).action, CallAction::CloseFile | CallAction::CloseDir)
            };
            let length = is_open.then(|| items[at..].iter().take_while(|item| own(item)).position(is_close)).flatten();
            let Some(length) = length else {
                all.push(items[at]);
                at += 1;
                continue;
            };
            let session = &items[at..=at + length];
            // A copy needs the other file too.
            if session.iter().any(|item| symbols.get(item.symbol).action == CallAction::CopyRange) {
                all.push(items[at]);
                at += 1;
                continue;
            }
            let actions =
                session.iter().map(|item| symbols.get(item.symbol).action).filter(|action| !action.is_minor());
            let kind = (open.anywhere(), actions.collect());
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
            at += length + 1;
        }
        Some(all)
    }

    /// Remembers the blocks of these pieces that are common.
    fn learn_blocks(&mut self, pieces: &[Vec<Parsed>]) {
        let mut counts: HashMap<ElementId, usize> = HashMap::new();
        for piece in pieces {
            for parsed in piece.iter().filter(|parsed| self.element(parsed.element).len() > 1) {
                *counts.entry(parsed.element).or_default() += 1;
            }
        }
        let common = counts.into_iter().filter(|(_, count)| count * 20 >= pieces.len());
        self.known_blocks = common.map(|(id, _)| self.elements[id as usize].clone()).collect();
    }
}

/// A run of equal calls, or of sessions of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRun {
    symbol: u16,
    pub(crate) first: u32,
    pub(crate) steps: u32,
    repeats: u32,
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

/// Where the pieces of each thread begin and end.
pub(crate) type IterationBounds = Vec<Vec<(usize, usize)>>;

/// The pieces of a group of threads.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// The calls, in the order in which the script makes them.
    pub(crate) steps: Vec<Vec<CallStep>>,
    /// The pieces of each thread: where they begin and end.
    pub(crate) bounds: IterationBounds,
    pub(crate) by: CutBy,
}

/// How pieces were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CutBy {
    /// After each call of this kind, or after the last of several in a row.
    Anchor(AnchorCall),
    /// From the open of a file to its close; other calls stand alone.
    #[default]
    Sessions,
}

/// The call that ends an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnchorCall {
    pub(crate) symbol: CallSymbol,
    /// True if calls of this kind in a row end one iteration together.
    pub(crate) of_runs: bool,
}

/// How well a cut predicts the calls that were held out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    /// Bits a call, and those of an independent mix of calls.
    pub(crate) bits: f64,
    pub(crate) mix_bits: f64,
    /// What is minimised: with the length of the description.
    total: f64,
}

/// Cuts the threads after each anchor. What is before the first and behind the last is no iteration.
fn by_anchor(steps: &[Vec<CallStep>], anchor: AnchorCall, symbols: &Symbols) -> IterationBounds {
    let cut = |steps: &Vec<CallStep>| {
        let is_anchor = |step: &CallStep| symbols.get(step.symbol).anywhere() == anchor.symbol;
        let goes_on = |n: usize| anchor.of_runs && steps.get(n + 1).is_some_and(is_anchor);
        let ends = steps.iter().enumerate().filter(|(n, step)| is_anchor(step) && !goes_on(*n)).map(|(n, _)| n + 1);
        let ends: Vec<usize> = ends.collect();
        ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    steps.iter().map(cut).collect()
}

/// Brings the calls of each open file together.
fn by_sessions(steps: Vec<Vec<CallStep>>, symbols: &Symbols) -> (Vec<Vec<CallStep>>, IterationBounds) {
    // A thread at a time: the calls of a large trace are not there twice.
    let one = |steps: Vec<CallStep>| {
        let mut open: BTreeMap<u8, Vec<CallStep>> = BTreeMap::new();
        let (mut all, mut pieces): (Vec<CallStep>, Vec<(usize, usize)>) = (Vec::with_capacity(steps.len()), Vec::new());
        let mut single = Vec::with_capacity(1);
        for step in &steps {
            let symbol = symbols.get(step.symbol);
            let is_open = symbol.slot != NO_SLOT && open.contains_key(&symbol.slot);
            let done = match symbol.action.row().names {
                ActionTarget::Opens if symbol.slot != NO_SLOT => {
                    open.insert(symbol.slot, vec![*step]);
                    continue;
                }
                _ if is_open => {
                    open.entry(symbol.slot).or_default().push(*step);
                    match symbol.action {
                        CallAction::CloseFile | CallAction::CloseDir => open.remove(&symbol.slot).unwrap_or_default(),
                        _ => continue,
                    }
                }
                _ => {
                    single.clear();
                    single.push(*step);
                    std::mem::take(&mut single)
                }
            };
            let begin = all.len();
            all.extend(&done);
            pieces.push((begin, all.len()));
            single = done;
        }
        (all, pieces)
    };
    steps.into_iter().map(one).unzip()
}

/// Chooses how to cut threads that are alike, and says how well it predicts.
pub(crate) fn choose(steps: Vec<Vec<CallStep>>, symbols: &mut Symbols) -> (Cut, Score) {
    let sample: Vec<Vec<CallStep>> = sample(&steps);
    let mut counts: HashMap<CallSymbol, usize> = HashMap::new();
    sample.iter().flatten().for_each(|step| *counts.entry(symbols.get(step.symbol).anywhere()).or_default() += 1);
    let mut anchors: Vec<(usize, CallSymbol)> =
        counts.into_iter().filter(|(_, count)| *count >= 8).map(|(symbol, count)| (count, symbol)).collect();
    anchors.sort_by(|a, b| b.cmp(a));
    // The most frequent ones, and some that end long iterations.
    let rare = anchors.iter().skip(MOST_ANCHORS / 2).step_by(1 + anchors.len() / MOST_ANCHORS).copied();
    let chosen: Vec<(usize, CallSymbol)> = anchors.iter().take(MOST_ANCHORS / 2).copied().chain(rare).collect();
    let runs = runs(&sample, symbols);
    let as_runs = |(count, symbol): &(usize, CallSymbol)| {
        let runs = runs.get(symbol).copied().unwrap_or(0);
        (8..count / 5 * 4).contains(&runs).then_some(AnchorCall { symbol: *symbol, of_runs: true })
    };
    let each = chosen.iter().map(|(_, symbol)| AnchorCall { symbol: *symbol, of_runs: false });
    let mut best: Option<(Score, AnchorCall)> = None;
    for anchor in each.chain(chosen.iter().filter_map(as_runs)) {
        let pieces = by_anchor(&sample, anchor, symbols);
        let Some(mut score) = score(&sample, &pieces, symbols) else { continue };
        score.total += if anchor.symbol.action.is_halt() { HALT_BITS } else { 0.0 };
        if best.is_none_or(|(found, _)| score.total < found.total) {
            best = Some((score, anchor));
        }
    }
    // What sessions lose is the order of calls on files that are open together.
    let lost = interleaved(&sample, symbols);
    let (session_steps, session_pieces) = by_sessions(sample, symbols);
    let sessions = score(&session_steps, &session_pieces, symbols);
    let sessions = sessions.map(|score| Score { total: score.total + lost, ..score });
    match (best, sessions) {
        (Some((score, anchor)), sessions) if sessions.is_none_or(|other| score.total <= other.total) => {
            let pieces = by_anchor(&steps, anchor, symbols);
            (Cut { bounds: pieces, steps, by: CutBy::Anchor(anchor) }, score)
        }
        (_, sessions) => {
            let (steps, pieces) = by_sessions(steps, symbols);
            (Cut { steps, bounds: pieces, by: CutBy::Sessions }, sessions.unwrap_or_default())
        }
    }
}

/// How often each call comes once or several times in a row.
fn runs(steps: &[Vec<CallStep>], symbols: &Symbols) -> HashMap<CallSymbol, usize> {
    let mut runs: HashMap<CallSymbol, usize> = HashMap::new();
    for steps in steps {
        let mut last = None;
        for symbol in steps.iter().map(|step| symbols.get(step.symbol).anywhere()) {
            if last.replace(symbol) != Some(symbol) {
                *runs.entry(symbol).or_default() += 1;
            }
        }
    }
    runs
}

/// The share of calls on a file while another one is open in a slot.
fn interleaved(steps: &[Vec<CallStep>], symbols: &Symbols) -> f64 {
    let (mut all, mut between) = (0usize, 0usize);
    for steps in steps {
        let mut open: BTreeSet<u8> = BTreeSet::new();
        for step in steps {
            let symbol = symbols.get(step.symbol);
            all += 1;
            between += usize::from(open.iter().any(|slot| *slot != symbol.slot));
            match symbol.action {
                CallAction::CloseFile | CallAction::CloseDir => drop(open.remove(&symbol.slot)),
                action if action.opens() && symbol.slot != NO_SLOT => drop(open.insert(symbol.slot)),
                _ => {}
            }
        }
    }
    between as f64 / all.max(1) as f64
}

/// A part of each thread, from its beginning.
fn sample(steps: &[Vec<CallStep>]) -> Vec<Vec<CallStep>> {
    let total: usize = steps.iter().map(Vec::len).sum();
    let share = |n: usize| if total <= LOOKED_AT { n } else { (n * LOOKED_AT / total).max(64).min(n) };
    steps.iter().map(|all| all[..share(all.len())].to_vec()).collect()
}

/// Bits of a number of repetitions.
fn count_bits(seen: &HashMap<(ElementId, u32), u32>, of: &HashMap<ElementId, u32>, element: ElementId, n: u32) -> f64 {
    let prior = 1.0 / (f64::from(n) * (f64::from(n) + 1.0));
    let hits = f64::from(seen.get(&(element, n)).copied().unwrap_or(0));
    let all = f64::from(of.get(&element).copied().unwrap_or(0));
    -((hits + prior) / (all + 1.0)).log2()
}

/// How well the even parts of the pieces predict the odd ones.
fn score(steps: &[Vec<CallStep>], pieces: &[Vec<(usize, usize)>], symbols: &mut Symbols) -> Option<Score> {
    let total: usize = pieces.iter().map(Vec::len).sum();
    if total < 4 {
        return None;
    }
    let mut parser = Parser::folding();
    let parsed = parse_all(steps, pieces, &mut parser, symbols);
    let lost = parser.lost as f64;
    let calls: usize = steps.iter().map(Vec::len).sum();
    let mut mix: BTreeMap<u16, f64> = BTreeMap::new();
    steps.iter().flatten().for_each(|step| *mix.entry(step.symbol).or_default() += 1.0);
    let mix_bits = mix.values().map(|n| -n / calls as f64 * (n / calls as f64).log2()).sum::<f64>();
    let (mut shapes, mut counts, mut counted): (HashMap<Vec<ElementId>, u32>, HashMap<_, u32>, HashMap<_, u32>) =
        Default::default();
    let is_train = |n: usize, of: usize| (n * PARTS / of.max(1)).is_multiple_of(2);
    let each = |train: bool| {
        parsed.iter().flat_map(move |thread| {
            let of = thread.len();
            thread.iter().enumerate().filter(move |(n, _)| is_train(*n, of) == train).map(|(_, piece)| piece)
        })
    };
    let mut trained = 0u32;
    for piece in each(true).filter_map(|(piece, _)| piece.as_ref()) {
        *shapes.entry(piece.iter().map(|parsed| parsed.element).collect()).or_default() += 1;
        trained += 1;
        for parsed in piece {
            *counts.entry((parsed.element, parsed.repeats)).or_default() += 1;
            *counted.entry(parsed.element).or_default() += 1;
        }
    }
    let alphabet = (mix.len() as f64 + 1.0).log2();
    let model: f64 = shapes.iter().filter(|(_, n)| **n > 1).map(|(shape, _)| shape.len() as f64 * alphabet).sum();
    // What a person has to read: the shapes that the script will have.
    let read = shapes.iter().filter(|(_, n)| **n * 200 >= trained).map(|(shape, _)| shape.len() as f64).sum::<f64>();
    let new = f64::from(shapes.values().filter(|n| **n == 1).count() as u32 + 1);
    let all = f64::from(trained) + new;
    let (mut bits, mut held_out, mut known) = (0.0, 0usize, 0usize);
    for (piece, length) in each(false) {
        held_out += length;
        let seen = piece.as_ref().and_then(|piece| {
            let shape: Vec<ElementId> = piece.iter().map(|parsed| parsed.element).collect();
            shapes.get(&shape).map(|n| (f64::from(*n), piece))
        });
        bits += match seen {
            Some((n, piece)) => {
                known += length;
                let repeats = piece.iter().map(|one| count_bits(&counts, &counted, one.element, one.repeats));
                -(n / all).log2() + repeats.sum::<f64>()
            }
            None => -(new / all).log2() + *length as f64 * mix_bits,
        };
    }
    if held_out == 0 {
        return None;
    }
    // What no piece has is a mix.
    let cut: usize = pieces.iter().flatten().map(|(begin, end)| end - begin).sum();
    let share = cut as f64 / calls.max(1) as f64;
    let bits = bits / held_out as f64 * share + mix_bits * (1.0 - share);
    let known = known as f64 / held_out as f64 * share;
    let unread = READ_BITS * read + UNKNOWN_BITS * (1.0 - known);
    Some(Score { bits, mix_bits, total: unread + bits + (model + LOST_BITS * lost) / calls.max(1) as f64 })
}

/// The pieces of each thread, taken apart, each with its number of calls.
type ParsedPieces = Vec<Vec<(Option<Vec<Parsed>>, usize)>>;

/// Takes some pieces apart, so that a block that stands once is found too.
fn learn_blocks(steps: &[Vec<CallStep>], pieces: &[Vec<(usize, usize)>], parser: &mut Parser, symbols: &mut Symbols) {
    let first: Vec<Vec<Parsed>> = steps
        .iter()
        .zip(pieces)
        .flat_map(|(steps, pieces)| pieces.iter().take(2000).map(move |(begin, end)| &steps[*begin..*end]))
        .filter_map(|piece| parser.parse(piece, symbols))
        .collect();
    parser.learn_blocks(&first);
}

/// Takes all pieces apart.
fn parse_all(
    steps: &[Vec<CallStep>],
    pieces: &[Vec<(usize, usize)>],
    parser: &mut Parser,
    symbols: &mut Symbols,
) -> ParsedPieces {
    learn_blocks(steps, pieces, parser, symbols);
    let mut all = Vec::new();
    for (steps, pieces) in steps.iter().zip(pieces) {
        let parsed = pieces.iter().map(|(begin, end)| (parser.parse(&steps[*begin..*end], symbols), end - begin));
        all.push(parsed.collect());
    }
    all
}

/// The shape of each piece, by its number; `None` of one that has none. What else is known of a piece is found again where
/// it is needed: in a large trace it takes more memory than the calls.
pub(crate) fn shapes_of(
    steps: &[Vec<CallStep>],
    pieces: &[Vec<(usize, usize)>],
    parser: &mut Parser,
    symbols: &mut Symbols,
) -> Vec<Vec<Option<NonZeroU32>>> {
    learn_blocks(steps, pieces, parser, symbols);
    let mut one = |steps: &[CallStep]| {
        let parsed = parser.parse(steps, symbols)?;
        parser.shape(&parsed)
    };
    let all = steps.iter().zip(pieces);
    all.map(|(steps, pieces)| pieces.iter().map(|(begin, end)| one(&steps[*begin..*end])).collect()).collect()
}
