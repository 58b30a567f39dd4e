//! Threads by what they do: the parts of each one's life, and groups of parts that are alike at the same time.

use crate::action::{ActionValues, CallAction};
use crate::streams::{CallStep, CallSymbol, ThreadPart, bits};
use std::collections::BTreeMap;

/// Threads with a smaller share of the work are left out, in thousandths; and those with fewer calls.
const FEW_CALLS: usize = 10;
const LEAST_LOOP: usize = 8;
/// The least cosine of the mixes of threads that are alike.
const ALIKE: f64 = 0.96;
/// Windows of a thread in which phases are looked for, and the least part of one.
const WINDOWS: usize = 48;
const LEAST_PART: usize = 4;
/// A thread with fewer calls has one phase.
const LEAST_CALLS: usize = 2000;
/// How far apart two mixes are at least in phases of their own, from 0 to 1.
const FAR_APART: f64 = 0.4;
/// The share of a thread's life that is a pause between two parts.
const LONG_PAUSE: f64 = 0.25;

/// A group of parts of threads.
type AlikeParts = Vec<ThreadPart>;

/// The parts of a thread: between long pauses, and where its calls are others.
pub(crate) fn parts(thread: u32, steps: Vec<CallStep>, symbols: &[CallSymbol]) -> Vec<ThreadPart> {
    let parts = at_pauses(steps).into_iter().flat_map(|steps| phases(steps, symbols));
    joined(parts.collect(), symbols).into_iter().map(|steps| ThreadPart { thread, steps }).collect()
}

/// Parts that follow one another and do the same are one: a pause between them is time of what they do, as long as a call has
/// room for it.
fn joined(parts: Vec<Vec<CallStep>>, symbols: &[CallSymbol]) -> Vec<Vec<CallStep>> {
    let mut all: Vec<Vec<CallStep>> = Vec::new();
    let mut last = CallMix::new();
    for part in parts {
        let own = mix(&part, symbols);
        let begin = part.first().map_or(0, |step| step.start);
        let is_near = |before: &[CallStep]| {
            before.last().is_none_or(|step| begin.saturating_sub(step.end()) < u64::from(u32::MAX))
        };
        match all.last_mut().filter(|before| is_near(before) && cosine(&last, &own) >= ALIKE) {
            Some(before) => {
                before.extend(part);
                own.into_iter().for_each(|(key, n)| *last.entry(key).or_default() += n);
            }
            None => {
                all.push(part);
                last = own;
            }
        }
    }
    all
}

/// Groups of parts that are alike, and those that do too little for a loop.
pub(crate) fn of(parts: Vec<ThreadPart>, symbols: &[CallSymbol]) -> (Vec<AlikeParts>, Vec<AlikeParts>) {
    let all = alike(parts, symbols);
    let total = PartWork::of(all.iter().flatten(), symbols);
    all.into_iter().partition(|parts| !PartWork::of(parts, symbols).is_little(&total))
}

/// How many calls parts have.
pub(crate) fn calls(parts: &[ThreadPart]) -> usize {
    parts.iter().map(|part| part.steps.len()).sum()
}

/// What parts do in all.
struct PartWork {
    calls: usize,
    bytes: u64,
    syncs: usize,
    span: (u64, u64),
}

impl PartWork {
    fn of<'a>(units: impl IntoIterator<Item = &'a ThreadPart>, symbols: &[CallSymbol]) -> Self {
        let mut all = Self { calls: 0, bytes: 0, syncs: 0, span: (u64::MAX, 0) };
        for unit in units {
            let (from, to) = unit.span();
            all.span = (all.span.0.min(from), all.span.1.max(to));
            all.calls += unit.steps.len();
            for step in &unit.steps {
                let row = symbols[usize::from(step.symbol)].action;
                let moves = row.row().values == ActionValues::Transfer;
                all.bytes = all.bytes.saturating_add(if moves { u64::from(step.bytes) } else { 0 });
                all.syncs += usize::from(row.syncs());
            }
        }
        all
    }

    /// True if it is not worth a loop. What goes on all the time, as a log does, is for fewer calls, if they move or sync much.
    fn is_little(&self, total: &Self) -> bool {
        let is_small = |part: f64, of: f64| part * 1000.0 < of * FEW_CALLS as f64;
        let length = |(from, to): (u64, u64)| to.saturating_sub(from);
        let goes_on = length(self.span) > length(total.span) / 2;
        let does_little =
            is_small(self.bytes as f64, total.bytes as f64) && is_small(self.syncs as f64, total.syncs as f64);
        let is_background = goes_on && !does_little;
        self.calls < LEAST_LOOP || is_small(self.calls as f64, total.calls as f64) && !is_background
    }
}

/// Groups of threads that are alike at the same time.
fn alike(mut units: Vec<ThreadPart>, symbols: &[CallSymbol]) -> Vec<Vec<ThreadPart>> {
    units.sort_by_key(|unit| std::cmp::Reverse(unit.steps.len()));
    let mut groups: Vec<(CallMix, Vec<ThreadPart>)> = Vec::new();
    for unit in units {
        let mix = mix(&unit.steps, symbols);
        match groups.iter_mut().find(|(of, _)| cosine(of, &mix) >= ALIKE) {
            Some((_, units)) => units.push(unit),
            None => groups.push((mix, vec![unit])),
        }
    }
    let span = groups.iter().flat_map(|(_, units)| units.iter().map(ThreadPart::span));
    let span = span.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).map_or(0, |(from, to)| to.saturating_sub(from));
    groups.into_iter().flat_map(|(_, units)| in_time(units, span)).collect()
}

/// A call in a mix: what it does, the set, and how large it is.
type MixKey = (CallAction, u16, u8);
type CallMix = BTreeMap<MixKey, f64>;

/// How often each call is made on each set.
fn mix(steps: &[CallStep], symbols: &[CallSymbol]) -> CallMix {
    let mut all = CallMix::new();
    for step in steps {
        let symbol = symbols[usize::from(step.symbol)];
        // Classes of sizes, three doublings each; waiting writes are others.
        let size = (step.bytes.checked_ilog2().unwrap_or(0) / 3) as u8;
        let how = step.bits & (bits::SYNC | bits::DIRECT);
        *all.entry((symbol.action, symbol.set, size | how)).or_default() += 1.0;
    }
    all
}

fn cosine(a: &CallMix, b: &CallMix) -> f64 {
    let length = |all: &CallMix| all.values().map(|n| n * n).sum::<f64>().sqrt();
    let product: f64 = a.iter().map(|(key, n)| n * b.get(key).copied().unwrap_or(0.0)).sum();
    product / (length(a) * length(b)).max(1e-9)
}

/// How far two mixes are apart, from 0 to 1.
fn distance(a: &CallMix, b: &CallMix) -> f64 {
    let (of_a, of_b): (f64, f64) = (a.values().sum(), b.values().sum());
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    let share = |all: &CallMix, key: &MixKey, of: f64| all.get(key).copied().unwrap_or(0.0) / of.max(1.0);
    keys.map(|key| (share(a, key, of_a) - share(b, key, of_b)).abs()).sum::<f64>() / 2.0
}

/// Takes threads that are alike apart where none of them is there for long.
fn in_time(mut units: Vec<ThreadPart>, span: u64) -> Vec<Vec<ThreadPart>> {
    units.sort_by_key(ThreadPart::span);
    let mut all: Vec<Vec<ThreadPart>> = Vec::new();
    let mut last = 0;
    for unit in units {
        let (from, to) = unit.span();
        match all.last_mut() {
            Some(group) if from.saturating_sub(last) as f64 <= LONG_PAUSE * span as f64 => group.push(unit),
            _ => all.push(vec![unit]),
        }
        last = last.max(to);
    }
    all
}

/// Cuts a thread at pauses that are a large part of its life.
fn at_pauses(steps: Vec<CallStep>) -> Vec<Vec<CallStep>> {
    let span = steps.first().zip(steps.last()).map_or(0, |(first, last)| last.start.saturating_sub(first.start));
    let is_pause = |pair: &[CallStep]| (pair[1].start.saturating_sub(pair[0].start)) as f64 > LONG_PAUSE * span as f64;
    let cuts: Vec<usize> =
        steps.windows(2).enumerate().filter(|(_, pair)| is_pause(pair)).map(|(n, _)| n + 1).collect();
    split(steps, cuts)
}

fn split(steps: Vec<CallStep>, cuts: Vec<usize>) -> Vec<Vec<CallStep>> {
    let mut rest = steps;
    let mut parts = Vec::new();
    for cut in cuts.into_iter().rev() {
        parts.push(rest.split_off(cut));
    }
    parts.push(rest);
    parts.reverse();
    parts
}

/// Cuts a thread where its mix changes for long: in two, and each part again.
fn phases(steps: Vec<CallStep>, symbols: &[CallSymbol]) -> Vec<Vec<CallStep>> {
    if steps.len() < LEAST_CALLS {
        return vec![steps];
    }
    let window = steps.len().div_ceil(WINDOWS);
    let mixes: Vec<CallMix> = steps.chunks(window).map(|chunk| mix(chunk, symbols)).collect();
    let mut cuts = Vec::new();
    let mut open = vec![(0, mixes.len())];
    while let Some((from, to)) = open.pop() {
        let sum = |from: usize, to: usize| {
            let mut all = CallMix::new();
            mixes[from..to].iter().flatten().for_each(|(key, n)| *all.entry(*key).or_default() += n);
            all
        };
        if to - from < 2 * LEAST_PART {
            continue;
        }
        let tried = (from + LEAST_PART..=to - LEAST_PART).map(|at| (distance(&sum(from, at), &sum(at, to)), at));
        let Some((far, at)) = tried.max_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        if far >= FAR_APART {
            cuts.push(at * window);
            open.extend([(from, at), (at, to)]);
        }
    }
    cuts.sort_unstable();
    split(steps, cuts)
}
