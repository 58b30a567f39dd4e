//! Iterations: where the calls of a thread are cut. An *anchor* is a call after which a loop begins again; the best one is
//! that whose pieces are told in the fewest bits: their shapes, and how often each call and block is repeated.

use crate::action::{ActionTarget, CallAction};
use crate::parse::{ElementId, MOST_ITEMS, ParsedPiece, Parser, Symbols};
use crate::streams::{CallStep, CallSymbol, NO_SLOT};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;

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

/// The places where files are opened that stay open, or so long that their calls are no piece.
fn lasting(steps: &[CallStep], symbols: &Symbols) -> BTreeSet<usize> {
    struct OpenSession {
        at: usize,
        items: usize,
        last: u16,
    }
    let (mut open, mut lasting): (BTreeMap<u8, OpenSession>, BTreeSet<usize>) = Default::default();
    for (at, step) in steps.iter().enumerate() {
        let symbol = symbols.get(step.symbol);
        if symbol.slot == NO_SLOT {
            continue;
        }
        if matches!(symbol.action.row().names, ActionTarget::Opens) {
            let before = open.insert(symbol.slot, OpenSession { at, items: 1, last: step.symbol });
            lasting.extend(before.map(|session| session.at));
        } else if matches!(symbol.action, CallAction::CloseFile | CallAction::CloseDir) {
            open.remove(&symbol.slot);
        } else if let Some(session) = open.get_mut(&symbol.slot) {
            session.items += usize::from(session.last != step.symbol);
            session.last = step.symbol;
            if session.items > MOST_ITEMS {
                lasting.insert(session.at);
                open.remove(&symbol.slot);
            }
        }
    }
    lasting.extend(open.values().map(|session| session.at));
    lasting
}

/// Brings the calls of each open file together.
fn by_sessions(steps: Vec<Vec<CallStep>>, symbols: &Symbols) -> (Vec<Vec<CallStep>>, IterationBounds) {
    // A thread at a time: the calls of a large trace are not there twice.
    let one = |steps: Vec<CallStep>| {
        let lasting = lasting(&steps, symbols);
        let mut open: BTreeMap<u8, Vec<CallStep>> = BTreeMap::new();
        let (mut all, mut pieces): (Vec<CallStep>, Vec<(usize, usize)>) = (Vec::with_capacity(steps.len()), Vec::new());
        let mut single = Vec::with_capacity(1);
        for (at, step) in steps.iter().enumerate() {
            let symbol = symbols.get(step.symbol);
            let is_open = symbol.slot != NO_SLOT && open.contains_key(&symbol.slot);
            let done = match symbol.action.row().names {
                ActionTarget::Opens if symbol.slot != NO_SLOT && !lasting.contains(&at) => {
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

/// What is repeated: an element, and the place of a run in it from 1 on; 0 is the element itself.
type CountedPlace = (ElementId, usize);

/// How often each element of a piece is repeated, and each run in it.
fn counts_of<'a>(piece: &'a ParsedPiece, parser: &'a Parser) -> impl Iterator<Item = (CountedPlace, u32)> + 'a {
    piece.elements(parser).flat_map(|(element, times, runs)| {
        let length = parser.element(element).len();
        let places = runs.iter().enumerate().map(move |(n, run)| ((element, 1 + n % length), run.repeats));
        let block = (length > 1).then_some(((element, 0), times));
        block.into_iter().chain(places)
    })
}

/// The numbers of repetitions that were seen.
#[derive(Debug, Default)]
struct SeenCounts {
    counts: HashMap<(CountedPlace, u32), u32>,
    of: HashMap<CountedPlace, u32>,
}

impl SeenCounts {
    fn add(&mut self, place: CountedPlace, n: u32) {
        *self.counts.entry((place, n)).or_default() += 1;
        *self.of.entry(place).or_default() += 1;
    }

    /// Bits of a number.
    fn bits(&self, place: CountedPlace, n: u32) -> f64 {
        let prior = 1.0 / (f64::from(n) * (f64::from(n) + 1.0));
        let hits = f64::from(self.counts.get(&(place, n)).copied().unwrap_or(0));
        let all = f64::from(self.of.get(&place).copied().unwrap_or(0));
        -((hits + prior) / (all + 1.0)).log2()
    }

    /// Bits of the tables: each number that comes again, in Elias' code.
    fn model(&self) -> f64 {
        let again = self.counts.iter().filter(|(_, hits)| **hits > 1);
        again.map(|((_, n), _)| 1.0 + 2.0 * f64::from(n.max(&1).ilog2())).sum()
    }
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
    let (mut shapes, mut counts): (HashMap<Vec<ElementId>, u32>, SeenCounts) = Default::default();
    let is_train = |n: usize, of: usize| (n * PARTS / of.max(1)).is_multiple_of(2);
    let each = |train: bool| {
        parsed.iter().flat_map(move |thread| {
            let of = thread.len();
            thread.iter().enumerate().filter(move |(n, _)| is_train(*n, of) == train).map(|(_, piece)| piece)
        })
    };
    let mut trained = 0u32;
    for piece in each(true).filter_map(|(piece, _)| piece.as_ref()) {
        *shapes.entry(piece.shape()).or_default() += 1;
        trained += 1;
        counts_of(piece, &parser).for_each(|(place, n)| counts.add(place, n));
    }
    let alphabet = (mix.len() as f64 + 1.0).log2();
    let model: f64 = shapes.iter().filter(|(_, n)| **n > 1).map(|(shape, _)| shape.len() as f64 * alphabet).sum();
    let model = model + counts.model();
    // What a person has to read: the shapes that the script will have.
    let read = shapes.iter().filter(|(_, n)| **n * 200 >= trained).map(|(shape, _)| shape.len() as f64).sum::<f64>();
    let new = f64::from(shapes.values().filter(|n| **n == 1).count() as u32 + 1);
    let all = f64::from(trained) + new;
    let (mut bits, mut held_out, mut known) = (0.0, 0usize, 0usize);
    for (piece, length) in each(false) {
        held_out += length;
        let seen = piece.as_ref().and_then(|piece| shapes.get(&piece.shape()).map(|n| (f64::from(*n), piece)));
        bits += match seen {
            Some((n, piece)) => {
                known += length;
                let repeats = counts_of(piece, &parser).map(|(place, n)| counts.bits(place, n));
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
type ParsedPieces = Vec<Vec<(Option<ParsedPiece>, usize)>>;

/// Takes some pieces apart, so that a block that stands once is found too.
fn learn_blocks(steps: &[Vec<CallStep>], pieces: &[Vec<(usize, usize)>], parser: &mut Parser, symbols: &mut Symbols) {
    let first: Vec<ParsedPiece> = steps
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
