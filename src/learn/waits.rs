//! Loops that wait for each other: a thread halts until the threads of another loop have done so much.
//!
//! A halt is seen where a thread slept until the other loop woke it, or where it woke a thread of that loop. With a lock this
//! happens by chance. If about as many calls are between the halts each time, its own and those of the other loop, it is how
//! the program keeps both in step.

use crate::action::CallAction;
use crate::streams::{AwaitedSleep, CallStep, CallSymbol, NO_SLOT, ThreadPart};
use std::collections::{BTreeMap, HashMap};

/// Gaps between halts, at least.
const LEAST_GAPS: usize = 12;
/// The share of gaps that differ by less than half from the middle one, at least. Of gaps by chance a third does.
const REGULAR: f64 = 0.7;
const FAIRLY_REGULAR: f64 = 0.55;
/// The most equal gaps without a wait between them.
const MOST_SKIPPED: f64 = 8.0;
/// Of so many gaps it is no chance if the loops are never further from each other than a few halts.
const MANY_GAPS: usize = 48;
const CLOSE: f64 = 4.0;
/// Loops that are further from each other at some time do not wait for a number of calls, but for what some calls do.
const APART: f64 = 8.0;

/// A loop that waits for another one.
#[derive(Clone, Debug)]
pub(crate) struct LoopWait {
    /// The groups of threads: who halts, and for whom.
    pub(crate) waiter: usize,
    pub(crate) other: usize,
    halts: usize,
    /// Calls from one halt to the next: its own and those of the other loop. `scatter`: by how many of those the other loop was
    /// ahead more at some time than at another.
    pub(crate) own_calls: f64,
    pub(crate) calls: f64,
    pub(crate) scatter: f64,
    /// Before which calls each part of the group halts.
    places: BTreeMap<usize, Vec<usize>>,
}

/// What stands for a halt among the calls of a thread. `n`: the number of the wait.
fn symbol(n: usize) -> Option<CallSymbol> {
    Some(CallSymbol { action: CallAction::Await, set: 0, to: u16::try_from(n).ok()?, slot: NO_SLOT })
}

/// A part of a group of threads, and when it begins and ends.
pub(crate) struct PartPlace {
    span: (u64, u64),
    pub(crate) group: usize,
    pub(crate) part: usize,
}

/// The parts of each thread, to be found by time.
pub(crate) struct PartsInTime(HashMap<u32, Vec<PartPlace>>);

impl PartsInTime {
    pub(crate) fn new(groups: &[Vec<ThreadPart>]) -> Self {
        let mut all: HashMap<u32, Vec<PartPlace>> = HashMap::new();
        for (group, parts) in groups.iter().enumerate() {
            for (n, part) in parts.iter().enumerate() {
                all.entry(part.thread).or_default().push(PartPlace { span: part.span(), group, part: n });
            }
        }
        Self(all)
    }

    pub(crate) fn at(&self, thread: u32, time: u64) -> Option<&PartPlace> {
        let parts = self.0.get(&thread)?;
        parts.iter().find(|place| (place.span.0..=place.span.1).contains(&time))
    }
}

/// Finds the loops that wait for each other. They are no ring: in one, all could wait.
pub(crate) fn find(groups: &[Vec<ThreadPart>], sleeps: &BTreeMap<u32, Vec<AwaitedSleep>>) -> Vec<LoopWait> {
    let parts = PartsInTime::new(groups);
    let mut halts: BTreeMap<(usize, usize), BTreeMap<usize, Vec<u64>>> = BTreeMap::new();
    for (thread, sleep) in sleeps.iter().flat_map(|(thread, all)| all.iter().map(move |sleep| (*thread, sleep))) {
        let places = parts.at(thread, sleep.start).zip(parts.at(sleep.ended_by, sleep.end));
        let Some((own, by)) = places.filter(|(own, by)| own.group != by.group) else { continue };
        for (own, other, time) in [(own, by.group, sleep.start), (by, own.group, sleep.end)] {
            halts.entry((own.group, other)).or_default().entry(own.part).or_default().push(time);
        }
    }
    let mut found: Vec<(f64, LoopWait)> = Vec::new();
    for ((waiter, other), times) in halts {
        let Some((share, wait)) = regular(groups, waiter, other, times) else { continue };
        // Of two loops that wake each other, the one whose halts are more regular waits.
        match found.iter_mut().find(|(_, known)| (known.waiter, known.other) == (other, waiter)) {
            Some(known) if known.0 < share => *known = (share, wait),
            Some(_) => {}
            None => found.push((share, wait)),
        }
    }
    found.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.halts));
    let mut joined: Vec<usize> = (0..groups.len()).collect();
    let mut kept = Vec::new();
    for (_, wait) in found {
        let (from, to) = (joined[wait.waiter], joined[wait.other]);
        if from != to {
            joined.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            kept.push(wait);
        }
    }
    kept
}

/// A wait if its halts are regular, with the share of gaps that are near the middle one.
fn regular(
    groups: &[Vec<ThreadPart>],
    waiter: usize,
    other: usize,
    times: BTreeMap<usize, Vec<u64>>,
) -> Option<(f64, LoopWait)> {
    // Without a call between them halts are one.
    let mut halts: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
    for (part, times) in times {
        let steps = &groups[waiter][part].steps;
        let own = halts.entry(part).or_default();
        times.into_iter().for_each(|time| *own.entry(calls_until(steps, time)).or_insert(time) = time);
    }
    let own_gaps: Vec<f64> = halts.values().flat_map(|own| gaps(own.keys().map(|at| *at as f64))).collect();
    let each = equal_gap(&own_gaps);
    let own_share = near_middle(&own_gaps);
    if own_gaps.len() < LEAST_GAPS || own_share < FAIRLY_REGULAR && each.is_none() {
        return None;
    }
    let mut ends: Vec<u64> = groups[other].iter().flat_map(|part| part.steps.iter().map(CallStep::end)).collect();
    ends.sort_unstable();
    let done = |time: &u64| ends.partition_point(|end| end <= time) as f64;
    let other_gaps: Vec<f64> = halts.values().flat_map(|own| gaps(own.values().map(done))).collect();
    let ratio = other_gaps.iter().sum::<f64>() / own_gaps.iter().sum::<f64>();
    let off = halts.values().map(|own| width(own.iter().map(|(at, time)| done(time) - ratio * *at as f64)));
    let scatter = off.fold(0.0, f64::max);
    let share = own_share.min(near_middle(&other_gaps));
    // Where a thread often goes on at once, its gaps are of several lengths, but both loops stay close all the same.
    let apart = scatter / (ratio * each.unwrap_or_else(|| middle(&own_gaps)));
    let is_close = own_gaps.len() >= MANY_GAPS && apart <= CLOSE;
    if apart > APART || share < REGULAR && !(is_close && (each.is_some() || share >= FAIRLY_REGULAR)) {
        return None;
    }
    let own_calls = each.unwrap_or(own_gaps.iter().sum::<f64>() / own_gaps.len() as f64);
    let of_part = |own: BTreeMap<usize, u64>| match each {
        Some(each) => filled(own.into_keys(), each),
        None => own.into_keys().collect(),
    };
    let places: BTreeMap<usize, Vec<usize>> = halts.into_iter().map(|(part, own)| (part, of_part(own))).collect();
    let halts = places.values().map(Vec::len).sum();
    Some((share, LoopWait { waiter, other, halts, own_calls, calls: ratio * own_calls, scatter, places }))
}

/// How many calls of a thread had ended.
pub(crate) fn calls_until(steps: &[CallStep], time: u64) -> usize {
    steps.partition_point(|step| step.end() <= time)
}

/// The differences of values that follow one another.
fn gaps(values: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    let mut last = None;
    values.filter_map(move |value| last.replace(value).map(|last| value - last))
}

/// The difference of the largest and the smallest value.
fn width(values: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    (most - least).max(0.0)
}

/// The gap of which most gaps are multiples: some halts end at once.
fn equal_gap(gaps: &[f64]) -> Option<f64> {
    if gaps.len() < LEAST_GAPS {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let common = |pair: &&[f64]| pair.first() == pair.last();
    let each = *sorted.windows(sorted.len().div_ceil(10)).find(common)?.first()?;
    let is_some = |gap: &&f64| {
        let times = (**gap / each).round();
        (1.0..=MOST_SKIPPED).contains(&times) && (**gap - times * each).abs() <= each / 10.0
    };
    (gaps.iter().filter(is_some).count() as f64 >= 0.9 * gaps.len() as f64).then_some(each)
}

/// The places of halts with those that ended at once.
fn filled(halts: impl Iterator<Item = usize>, each: f64) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for halt in halts {
        if let Some(last) = all.last().copied() {
            let times = ((halt - last) as f64 / each).round() as usize;
            all.extend((1..times.min(MOST_SKIPPED as usize)).map(|n| last + (n as f64 * each) as usize));
        }
        all.push(halt);
    }
    all
}

/// The share of gaps that differ by less than half from the middle one.
fn near_middle(gaps: &[f64]) -> f64 {
    let middle = middle(gaps);
    let near = gaps.iter().filter(|gap| middle > 0.0 && (**gap - middle).abs() <= middle / 2.0).count();
    near as f64 / gaps.len().max(1) as f64
}

fn middle(gaps: &[f64]) -> f64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Puts the halts among the calls of their threads.
pub(crate) fn insert(waits: &[LoopWait], groups: &mut [Vec<ThreadPart>], symbols: &mut Vec<CallSymbol>) {
    for (n, wait) in waits.iter().enumerate() {
        let (Some(symbol), Ok(number)) = (symbol(n), u16::try_from(symbols.len())) else { continue };
        symbols.push(symbol);
        for (part, places) in &wait.places {
            let steps = &mut groups[wait.waiter][*part].steps;
            let mut all = Vec::with_capacity(steps.len() + places.len());
            let mut places = places.iter().peekable();
            for (at, step) in steps.drain(..).enumerate() {
                if places.next_if_eq(&&at).is_some() {
                    all.push(CallStep::halt(step.start, number));
                }
                all.push(step);
            }
            *steps = all;
        }
    }
}
