//! The model: phases of threads that are alike, each with its loop.

use crate::action::{ActionValues, CallAction};
use crate::commits::{self, SharedSync};
use crate::cut::{self, Cut, CutBy, Score};
use crate::groups;
use crate::parse::{ElementId, Parser, Symbols};
use crate::samples::{LeafSamples, SampledValues};
use crate::set_up::{self, FileTimes};
use crate::streams::{CallStep, CallStreams, CallSymbol, NO_SLOT, ThreadPart};
use crate::tree::ShapeTree;
use crate::waits::{self, LoopWait};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

/// Shapes that are kept, and the share of the calls at which it is enough.
const MOST_SHAPES: usize = 24;
const ENOUGH: f64 = 0.98;
/// A loop with a smaller share of the calls of its threads is none.
const LEAST_COVERED: f64 = 0.5;
/// How many times the calls of a mean piece one has that ends an outer loop.
const LONG_PIECE: f64 = 1.5;
/// So many flowops are named whose calls a loop lacks.
const MOST_LACKS: usize = 5;
/// In so many iterations a shape that came once or twice, and in this first part of them, is left out.
const OFTEN: usize = 50;
const AT_START: f64 = 0.1;

/// A loop of threads that are alike.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The number of the group of its threads.
    pub(crate) group: usize,
    pub(crate) threads: usize,
    /// Threads at the same time.
    pub(crate) instances: usize,
    pub(crate) calls: usize,
    pub(crate) iterations: u64,
    pub(crate) by: CutBy,
    pub(crate) score: Score,
    pub(crate) symbols: Symbols,
    pub(crate) body: LoopBody,
    /// If its threads share syncs: what the one does that syncs for others.
    pub(crate) commit: Option<LoopCommit>,
    /// What comes after every so many iterations.
    pub(crate) rare: Option<(u64, LoopBody)>,
    /// The share of the calls of these threads that the loop has.
    pub(crate) covered: f64,
    /// What it lacks most, by the names of flowops: how many calls.
    pub(crate) lacks: Vec<(&'static str, i64)>,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// A sync that the threads of a loop share.
#[derive(Clone, Debug)]
pub(crate) struct LoopCommit {
    pub(crate) set: u16,
    /// How often a thread was covered by another one's sync.
    pub(crate) covered: usize,
    pub(crate) body: LoopBody,
}

/// What is repeated, with what was seen of it.
#[derive(Clone, Debug)]
pub(crate) struct LoopBody {
    pub(crate) tree: ShapeTree,
    pub(crate) leaves: Vec<LeafSamples>,
    pub(crate) counters: Vec<SampledValues>,
    /// The sessions of a file, by their leaves.
    pub(crate) sessions: BTreeMap<usize, LoopBody>,
    pub(crate) times: u64,
    /// Calls that have a kept shape.
    covered: usize,
}

/// What was learned of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct LearnedModel {
    /// The loops of each phase.
    pub(crate) phases: Vec<Vec<Loop>>,
    /// The loops that wait for each other, by the numbers of their groups.
    pub(crate) waits: Vec<LoopWait>,
    /// Calls that made files before the loops.
    pub(crate) set_up: usize,
    /// Calls and threads that are in no loop.
    pub(crate) left_out: (usize, usize),
}

impl LearnedModel {
    /// The loop that takes most time, by its number.
    pub(crate) fn costliest(&self) -> Option<usize> {
        let costs: Vec<u64> = self.phases.iter().flatten().map(Loop::cost).collect();
        costs.iter().enumerate().rev().max_by_key(|(_, cost)| **cost).map(|(n, _)| n)
    }
}

/// Groups of threads whose calls are cut into iterations: what a model is made of, as long or as short as is wanted.
#[derive(Debug)]
pub(crate) struct ModelPlan {
    /// Those of which a loop has enough calls.
    groups: Vec<CutGroup>,
    /// A model of no shape.
    rest: LearnedModel,
    all: ShapeWork,
}

impl ModelPlan {
    /// The plan and the model of all shapes. `changes`: the files that came and went.
    pub(crate) fn new(streams: CallStreams, changes: &FileTimes) -> (Self, LearnedModel) {
        let mut symbols = streams.symbols;
        let mut sleeps = BTreeMap::new();
        let mut units: Vec<ThreadPart> = Vec::new();
        for (thread, stream) in streams.threads {
            units.extend(groups::parts(thread, stream.steps, &symbols));
            sleeps.insert(thread, stream.sleeps);
        }
        let mut rest = LearnedModel { set_up: set_up::take(&mut units, &symbols, changes), ..LearnedModel::default() };
        let (mut groups, little) = groups::of(units, &symbols);
        little.iter().for_each(|parts| rest.leave_out(groups::calls(parts), parts.len()));
        rest.waits = waits::find(&groups, &sleeps);
        let calls: Vec<usize> = groups.iter().map(|parts| groups::calls(parts)).collect();
        waits::insert(&rest.waits, &mut groups, &mut symbols);
        let mut shared = commits::take(&mut groups, &sleeps, &mut symbols);
        let mut all = ShapeWork::default();
        let (mut cut, mut loops) = (Vec::new(), Vec::new());
        for ((n, units), calls) in groups.into_iter().enumerate().zip(calls) {
            let shared = shared.iter().position(|one| one.group == n).map(|at| shared.remove(at));
            units.iter().for_each(|unit| all.add(&unit.steps, |n| symbols[usize::from(n)].action));
            let threads = units.len();
            let found = CutGroup::new((n, calls), units, shared, &symbols).and_then(|mut group| {
                let whole = group.in_loop(ShapeWork::default()).filter(|one| one.covered >= LEAST_COVERED)?;
                Some((group, whole))
            });
            match found {
                Some((group, whole)) => {
                    cut.push(group);
                    loops.push(whole);
                }
                None => rest.leave_out(calls, threads),
            }
        }
        let whole = LearnedModel { phases: in_phases(loops), ..rest.clone() };
        (Self { groups: cut, rest, all }, whole)
    }

    /// The model of the shapes that have this share of all calls, of the time in them, or of syncs at least.
    pub(crate) fn model(&mut self, least: f64) -> LearnedModel {
        let mut model = self.rest.clone();
        let floor = self.all.times(least);
        let mut loops = Vec::new();
        for group in &mut self.groups {
            match group.in_loop(floor) {
                Some(found) => loops.push(found),
                None => model.leave_out(group.calls, group.threads),
            }
        }
        model.phases = in_phases(loops);
        model
    }
}

impl LearnedModel {
    /// When the first loop begins. `None` without any.
    pub(crate) fn begin(&self) -> Option<u64> {
        self.phases.first()?.iter().map(|one| one.begin).min()
    }

    /// Calls that loops have.
    pub(crate) fn modelled(&self) -> u64 {
        self.phases.iter().flatten().map(Loop::modelled).sum::<f64>() as u64
    }

    /// Calls that loops have, bytes that these move, and syncs.
    pub(crate) fn work(&self) -> [f64; 3] {
        let (mut bytes, mut syncs) = (0, 0);
        for one in self.phases.iter().flatten() {
            let bodies = [Some(&one.body), one.rare.as_ref().map(|(_, body)| body)];
            for body in bodies.into_iter().chain([one.commit.as_ref().map(|commit| &commit.body)]).flatten() {
                body.for_each_leaf(&mut |leaf, of| {
                    let action = one.symbols.get(leaf).action;
                    bytes += if action.row().values == ActionValues::Transfer { of.moved } else { 0 };
                    syncs += if action.syncs() { of.calls } else { 0 };
                });
            }
        }
        [self.modelled() as f64, bytes as f64, syncs as f64]
    }

    fn leave_out(&mut self, calls: usize, threads: usize) {
        self.left_out.0 += calls;
        self.left_out.1 += threads;
    }
}

/// Loops that overlap in time are of one phase.
fn in_phases(mut loops: Vec<Loop>) -> Vec<Vec<Loop>> {
    loops.sort_by_key(|one| one.begin);
    let mut phases: Vec<(u64, Vec<Loop>)> = Vec::new();
    for one in loops {
        match phases.last_mut() {
            // A few calls at the border do not join two phases.
            Some((end, phase)) if one.begin.saturating_add(one.end.saturating_sub(one.begin) / 10) < *end => {
                *end = (*end).max(one.end);
                phase.push(one);
            }
            _ => phases.push((one.end, vec![one])),
        }
    }
    phases.into_iter().map(|(_, phase)| phase).collect()
}

/// The most threads at the same time.
fn at_once(spans: &[(u64, u64)]) -> usize {
    let mut changes: Vec<(u64, i32)> =
        spans.iter().flat_map(|(from, to)| [(*from, 1), (to.saturating_add(1), -1)]).collect();
    changes.sort_unstable();
    let mut now = 0;
    let most = changes.iter().map(|(_, change)| {
        now += change;
        now
    });
    most.max().unwrap_or(1).max(1) as usize
}

/// The pieces of a loop that have a kept shape, and their shapes.
type WeightedShapes = Vec<(NonZeroU32, Vec<ElementId>, f64)>;

/// What a shape stands for.
#[derive(Clone, Copy, Debug, Default)]
struct ShapeWork {
    calls: f64,
    /// Nanoseconds in them.
    inside: f64,
    syncs: f64,
}

impl ShapeWork {
    fn add(&mut self, steps: &[CallStep], action: impl Fn(u16) -> CallAction) {
        self.calls += steps.len() as f64;
        self.inside += steps.iter().map(|step| f64::from(step.duration)).sum::<f64>();
        self.syncs += steps.iter().filter(|step| action(step.symbol).syncs()).count() as f64;
    }

    fn times(self, factor: f64) -> Self {
        Self { calls: self.calls * factor, inside: self.inside * factor, syncs: self.syncs * factor }
    }

    /// True if it is less in each way.
    fn is_below(self, other: Self) -> bool {
        let has_syncs = self.syncs > 0.0 && self.syncs >= other.syncs;
        self.calls < other.calls && self.inside < other.inside && !has_syncs
    }
}

/// Threads that are alike, cut into iterations.
#[derive(Debug)]
struct CutGroup {
    group: usize,
    /// Those of the program, without its halts.
    calls: usize,
    threads: usize,
    instances: usize,
    begin: u64,
    end: u64,
    steps: usize,
    cut: Cut,
    score: Score,
    shapes: Vec<Vec<Option<NonZeroU32>>>,
    parser: Parser,
    symbols: Symbols,
    shared: Option<SharedSync>,
}

impl CutGroup {
    /// `calls`: those of the program, without its halts.
    fn new(
        (group, calls): (usize, usize),
        units: Vec<ThreadPart>,
        shared: Option<SharedSync>,
        symbols: &[CallSymbol],
    ) -> Option<Self> {
        let steps = groups::calls(&units);
        let spans: Vec<(u64, u64)> = units.iter().map(ThreadPart::span).collect();
        let begin = spans.iter().map(|span| span.0).min()?;
        let end = spans.iter().map(|span| span.1).max()?;
        let mut ids: Vec<u32> = units.iter().map(|unit| unit.thread).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut symbols = Symbols::new(symbols);
        let (cut, score) = cut::choose(units.into_iter().map(|unit| unit.steps).collect(), &mut symbols);
        let mut parser = Parser::folding();
        let shapes = cut::shapes_of(&cut.steps, &cut.bounds, &mut parser, &mut symbols);
        // What is before the first iteration is no part of it.
        let first =
            cut.steps.iter().zip(&cut.bounds).filter_map(|(steps, pieces)| Some(steps[pieces.first()?.0].start));
        let begin = first.min().unwrap_or(begin);
        let (threads, instances) = (ids.len(), at_once(&spans));
        Some(Self { group, calls, threads, instances, begin, end, steps, cut, score, shapes, parser, symbols, shared })
    }

    /// The loop of the shapes that are worth this much.
    fn in_loop(&mut self, floor: ShapeWork) -> Option<Loop> {
        let Self { cut, parser, symbols, .. } = self;
        let pieces = Iterations { steps: &cut.steps, bounds: &cut.bounds, shapes: &self.shapes };
        let (main, rare) = split_rare(kept_shapes(&pieces, (parser, symbols), self.steps, floor)?, &pieces);
        let body = LoopBody::new(&pieces, parser, &main, symbols, floor);
        let rare = rare.map(|(every, shapes)| (every, LoopBody::new(&pieces, parser, &shapes, symbols, floor)));
        let commit = self.shared.as_ref().and_then(|SharedSync { set, covered, steps, bounds, .. }| {
            let (steps, bounds) = (std::slice::from_ref(steps), std::slice::from_ref(bounds));
            let body = LoopBody::of_pieces(steps, bounds, Parser::default(), symbols, floor)?;
            Some(LoopCommit { set: *set, covered: *covered, body })
        });
        let covered = body.covered + rare.as_ref().map_or(0, |(_, body)| body.covered);
        let lacks = lacking(&cut.steps, symbols, [Some(&body), rare.as_ref().map(|(_, body)| body)]);
        Some(Loop {
            lacks,
            group: self.group,
            threads: self.threads,
            instances: self.instances,
            calls: self.calls,
            iterations: body.times,
            by: cut.by,
            score: self.score,
            symbols: symbols.clone(),
            body,
            commit,
            rare,
            covered: (covered as f64 / self.steps.max(1) as f64).min(1.0),
            begin: self.begin,
            end: self.end,
        })
    }
}

/// The calls that are in none of these bodies, by the names of flowops, with how many there are: those with most.
fn lacking(steps: &[Vec<CallStep>], symbols: &Symbols, bodies: [Option<&LoopBody>; 2]) -> Vec<(&'static str, i64)> {
    let flowop = |symbol: u16| symbols.get(symbol).action.row().flowop;
    let mut left: BTreeMap<&'static str, i64> = BTreeMap::new();
    for step in steps.iter().flatten().filter(|step| !symbols.get(step.symbol).action.is_halt()) {
        *left.entry(flowop(step.symbol)).or_default() += 1;
    }
    for body in bodies.into_iter().flatten() {
        body.for_each_leaf(&mut |leaf, of| *left.entry(flowop(leaf)).or_default() -= of.calls as i64);
    }
    let mut left: Vec<(&'static str, i64)> = left.into_iter().filter(|(_, calls)| *calls > 0).collect();
    left.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    left.truncate(MOST_LACKS);
    left
}

impl Loop {
    /// Calls that it has.
    pub(crate) fn modelled(&self) -> f64 {
        self.covered * self.calls as f64
    }

    /// Nanoseconds that all threads were busy with it.
    pub(crate) fn cost(&self) -> u64 {
        self.body.cost()
    }
}

/// The shapes that most calls are in, each with the number of its pieces.
fn kept_shapes(
    all: &Iterations,
    (parser, symbols): (&Parser, &Symbols),
    calls: usize,
    floor: ShapeWork,
) -> Option<WeightedShapes> {
    // Of each shape: its pieces, their calls, and how far the last piece is from the first of its thread, from 0 to 1.
    let mut counts: HashMap<NonZeroU32, (usize, usize, f64)> = HashMap::new();
    let mut works: HashMap<NonZeroU32, ShapeWork> = HashMap::new();
    let mut whole = 0;
    for ((steps, bounds), shapes) in all.steps.iter().zip(all.bounds).zip(all.shapes) {
        for (n, ((begin, end), shape)) in bounds.iter().zip(shapes).enumerate() {
            let Some(shape) = shape else { continue };
            whole += end - begin;
            let count = counts.entry(*shape).or_default();
            count.0 += 1;
            count.1 += end - begin;
            works.entry(*shape).or_default().add(&steps[*begin..*end], |n| symbols.get(n).action);
            count.2 = count.2.max(n as f64 / shapes.len() as f64);
        }
    }
    let mut order: Vec<(NonZeroU32, (usize, usize, f64))> = counts.into_iter().collect();
    order.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| parser.shape_of(a.0).cmp(parser.shape_of(b.0))));
    let of_all = all.shapes.iter().flatten().flatten().count();
    let mut covered = 0;
    let mut kept = Vec::new();
    for (shape, (pieces, length, last)) in order {
        // What was done at the start of a program is no part of what is repeated.
        if pieces <= 2 && of_all >= OFTEN && last < AT_START {
            continue;
        }
        if kept.len() == MOST_SHAPES || covered as f64 >= ENOUGH * whole as f64 || length * 250 < calls {
            break;
        }
        if works.get(&shape).is_none_or(|work| work.is_below(floor)) {
            continue;
        }
        covered += length;
        kept.push((shape, parser.shape_of(shape).to_vec(), pieces as f64));
    }
    (!kept.is_empty()).then_some(kept)
}

/// A long shape that comes again and again after about as many others is the end of an outer loop.
fn split_rare(kept: WeightedShapes, all: &Iterations) -> (WeightedShapes, Option<(u64, WeightedShapes)>) {
    let pieces: f64 = kept.iter().map(|(.., n)| n).sum();
    let mut calls: HashMap<NonZeroU32, f64> = HashMap::new();
    for ((begin, end), shape) in all.bounds.iter().flatten().zip(all.shapes.iter().flatten()) {
        shape.iter().for_each(|shape| *calls.entry(*shape).or_default() += (end - begin) as f64);
    }
    let calls = |shape: NonZeroU32| calls.get(&shape).copied().unwrap_or(0.0);
    let mean = kept.iter().map(|(shape, ..)| calls(*shape)).sum::<f64>() / pieces;
    let is_rare =
        |(shape, _, n): &(NonZeroU32, Vec<ElementId>, f64)| *n < 0.05 * pieces && calls(*shape) > LONG_PIECE * mean * n;
    let (rare, main): (WeightedShapes, WeightedShapes) = kept.into_iter().partition(is_rare);
    if rare.is_empty() || main.is_empty() {
        return ([main, rare].concat(), None);
    }
    let mut gaps: Vec<f64> = Vec::new();
    for thread in all.shapes {
        let mut last = None;
        for (n, shape) in thread.iter().flatten().enumerate() {
            if rare.iter().any(|(own, ..)| own == shape) {
                gaps.extend(last.map(|last: usize| (n - last) as f64));
                last = Some(n);
            }
        }
    }
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len().max(1) as f64).sqrt();
    match gaps.len() >= 3 && deviation < 0.35 * mean {
        true => (main, Some(((mean.round() as u64).saturating_sub(1).max(1), rare))),
        false => ([main, rare].concat(), None),
    }
}

/// Pieces of calls, and their parts.
struct Iterations<'a> {
    steps: &'a [Vec<CallStep>],
    bounds: &'a [Vec<(usize, usize)>],
    shapes: &'a [Vec<Option<NonZeroU32>>],
}

impl LoopBody {
    /// Goes through all pieces with a kept shape, and notes at each leaf what was seen.
    fn new(
        all: &Iterations,
        parser: &mut Parser,
        shapes: &WeightedShapes,
        symbols: &mut Symbols,
        floor: ShapeWork,
    ) -> Self {
        let tree = ShapeTree::new(shapes, parser, symbols);
        let numbers: HashMap<NonZeroU32, usize> =
            shapes.iter().enumerate().map(|(n, (number, ..))| (*number, n)).collect();
        let mut leaves = vec![LeafSamples::default(); tree.leaves.len()];
        let mut counters = vec![SampledValues::default(); tree.counters];
        let sessions_of: Vec<bool> =
            tree.leaves.iter().map(|leaf| symbols.get(*leaf).action == CallAction::Session).collect();
        let is_session = |leaf: usize| sessions_of[leaf];
        // Of each leaf that is a session: where they are, thread by thread.
        let mut found: BTreeMap<usize, Vec<Vec<(usize, usize)>>> = BTreeMap::new();
        let (mut times, mut covered) = (0, 0);
        for (thread, ((steps, pieces), own_shapes)) in all.steps.iter().zip(all.bounds).zip(all.shapes).enumerate() {
            for ((begin, end), shape) in pieces.iter().zip(own_shapes) {
                let Some(n) = shape.and_then(|shape| numbers.get(&shape)) else { continue };
                let Some(piece) = parser.parse(&steps[*begin..*end], symbols) else { continue };
                times += 1;
                covered += end - begin;
                for ((_, times, runs), (own, counter)) in piece.elements(parser).zip(&tree.of_shape[*n]) {
                    if let Some(counter) = counter {
                        counters[*counter].add(u64::from(times));
                    }
                    for (run, leaf) in runs.iter().zip(own.iter().cycle()) {
                        let from = begin + run.first as usize;
                        let to = from + run.steps as usize;
                        if is_session(*leaf) {
                            leaves[*leaf].counts.add(u64::from(run.repeats));
                            let all = found.entry(*leaf).or_insert_with(|| vec![Vec::new(); all.steps.len()]);
                            all[thread].extend(sessions_in(steps, (from, to), symbols));
                        } else {
                            leaves[*leaf].add(&steps[from..to]);
                        }
                    }
                }
            }
        }
        let mut sessions = BTreeMap::new();
        for (leaf, pieces) in found {
            let parser = Parser::from_slot(symbols.get(tree.leaves[leaf]).slot);
            let body = Self::of_pieces(all.steps, &pieces, parser, symbols, floor);
            // What the script lacks.
            covered -= (calls_in(&pieces) - body.as_ref().map_or(0, |body| body.covered)).min(covered);
            body.into_iter().for_each(|body| drop(sessions.insert(leaf, body)));
        }
        Self { tree, leaves, counters, sessions, times, covered }
    }

    /// What some pieces do. `None` if none of it is repeated.
    fn of_pieces(
        steps: &[Vec<CallStep>],
        bounds: &[Vec<(usize, usize)>],
        mut parser: Parser,
        symbols: &mut Symbols,
        floor: ShapeWork,
    ) -> Option<Self> {
        let shapes = cut::shapes_of(steps, bounds, &mut parser, symbols);
        let pieces = Iterations { steps, bounds, shapes: &shapes };
        let kept = kept_shapes(&pieces, (&parser, symbols), calls_in(bounds), floor)?;
        Some(Self::new(&pieces, &mut parser, &kept, symbols, floor))
    }

    /// The symbol of each leaf, also of those in sessions, with what was seen there.
    fn for_each_leaf(&self, with: &mut dyn FnMut(u16, &LeafSamples)) {
        for (leaf, samples) in self.tree.leaves.iter().zip(&self.leaves) {
            with(*leaf, samples);
        }
        self.sessions.values().for_each(|body| body.for_each_leaf(with));
    }

    fn cost(&self) -> u64 {
        let own: u64 = self.leaves.iter().map(|leaf| leaf.inside + leaf.running).sum();
        own + self.sessions.values().map(Self::cost).sum::<u64>()
    }
}

fn calls_in(bounds: &[Vec<(usize, usize)>]) -> usize {
    bounds.iter().flatten().map(|(from, to)| to - from).sum()
}

/// The sessions one after another: each ends when all is closed that it opened.
fn sessions_in<'a>(
    steps: &'a [CallStep],
    (first, last): (usize, usize),
    symbols: &'a Symbols,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let (mut begin, mut open) = (first, 0u32);
    (first..last).filter_map(move |n| {
        let symbol = symbols.get(steps[n].symbol);
        match symbol.action {
            CallAction::CloseFile | CallAction::CloseDir => open = open.saturating_sub(1),
            action if action.opens() && symbol.slot != NO_SLOT => {
                open += 1;
                return None;
            }
            _ => return None,
        }
        (open == 0).then(|| (std::mem::replace(&mut begin, n + 1), n + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_with_a_sync_is_not_little() {
        let floor = ShapeWork { calls: 1000.0, inside: 1e6, syncs: 10.0 }.times(0.02);
        let little = ShapeWork { calls: 5.0, inside: 100.0, syncs: 0.0 };
        assert!(little.is_below(floor));
        assert!(!ShapeWork { syncs: 1.0, ..little }.is_below(floor));
        assert!(!ShapeWork { inside: 1e5, ..little }.is_below(floor));
        // Of a program that never syncs, and where everything is taken.
        assert!(little.is_below(ShapeWork { syncs: 0.0, ..floor }) && !little.is_below(ShapeWork::default()));
    }
}
