//! Group commit: threads that are alike share their syncs. A thread that comes while another one syncs waits, and then one of
//! them syncs for all who wait.
//!
//! In a trace a thread that is covered makes no sync: it sleeps where it would make one, until one that began later has ended.
//! Of threads that wait for a lock, and of which some need no sync, as many go without one whether they waited or not; and who
//! came before a sync began often makes another one.

use crate::action::CallAction;
use crate::streams::{AwaitedSleep, CallStep, CallSymbol, NO_SLOT, ThreadPart};
use crate::waits::{PartsInTime, calls_until};
use std::collections::{BTreeMap, BTreeSet};

/// Covered threads, at least, and as a share of all commits.
const LEAST_COVERED: usize = 12;
const LEAST_SHARE: f64 = 0.02;
/// The share of threads that came before a sync began, or a little later, and are covered by it, at least: of those, and of
/// those that came later and are covered all the same.
const IN_TIME: f64 = 0.8;
const LITTLE: u64 = 8;
/// By how much more often who waited goes without a sync than who did not.
const FAR_MORE: f64 = 4.0;

/// Threads of a loop that share the syncs of a file.
#[derive(Clone, Debug)]
pub(crate) struct SharedSync {
    /// The number of the group of threads.
    pub(crate) group: usize,
    pub(crate) set: u16,
    /// How often a thread was covered by another one's sync.
    pub(crate) covered: usize,
    /// What who syncs does: its calls, and where each time begins and ends.
    pub(crate) steps: Vec<CallStep>,
    pub(crate) bounds: Vec<(usize, usize)>,
}

/// The sleeps of a thread between two calls, of which syncs of others were the end.
#[derive(Clone, Copy, Debug)]
struct SyncWait {
    begin: u64,
    /// The last of these syncs: the part of the group, and the number of the call.
    sync: (usize, usize),
}

/// The waits of each part of a group, by the number of the call that follows.
type WaitsOfParts = Vec<BTreeMap<usize, SyncWait>>;

/// Finds the threads that share syncs, and puts a single step in place of each commit. `to` of its symbol is the number here.
pub(crate) fn take(
    groups: &mut [Vec<ThreadPart>],
    sleeps: &BTreeMap<u32, Vec<AwaitedSleep>>,
    symbols: &mut Vec<CallSymbol>,
) -> Vec<SharedSync> {
    let mut waits: BTreeMap<(usize, u16), WaitsOfParts> = BTreeMap::new();
    let parts = PartsInTime::new(groups);
    for (thread, sleep) in sleeps.iter().flat_map(|(thread, all)| all.iter().map(move |sleep| (*thread, sleep))) {
        let places = parts.at(thread, sleep.start).zip(parts.at(sleep.ended_by, sleep.end));
        let Some((own, by)) = places.filter(|(own, by)| own.group == by.group) else { continue };
        let parts = &groups[own.group];
        let steps = &parts[by.part].steps;
        let Some(last) = calls_until(steps, sleep.end).checked_sub(1) else { continue };
        if steps[last].end() < sleep.start {
            continue;
        }
        let Some(set) = synced(&steps[last], symbols) else { continue };
        let of_set = waits.entry((own.group, set)).or_insert_with(|| vec![BTreeMap::new(); parts.len()]);
        let at = calls_until(&parts[own.part].steps, sleep.start);
        let wait = SyncWait { begin: sleep.start, sync: (by.part, last) };
        of_set[own.part].entry(at).and_modify(|wait| wait.sync = (by.part, last)).or_insert(wait);
    }
    // Of a loop, one file: that by which most are covered. The calls of another one would have other numbers then.
    let mut waits: Vec<((usize, u16), WaitsOfParts)> = waits.into_iter().collect();
    waits.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.iter().map(BTreeMap::len).sum::<usize>()));
    let mut all = Vec::new();
    let mut taken = BTreeSet::new();
    for ((group, set), waits) in waits {
        let (Ok(to), Ok(number)) = (u16::try_from(all.len()), u16::try_from(symbols.len())) else { break };
        if taken.contains(&group) {
            continue;
        }
        let Some(commits) = Commits::of(&groups[group], set, waits, symbols) else { continue };
        taken.insert(group);
        symbols.push(CallSymbol { action: CallAction::Commit, set, to, slot: NO_SLOT });
        let mut shared = SharedSync { group, set, covered: commits.covered(), steps: Vec::new(), bounds: Vec::new() };
        for (n, part) in groups[group].iter_mut().enumerate() {
            commits.replace(n, &mut part.steps, number, &mut shared);
        }
        all.push(shared);
    }
    all
}

/// The file that stays open which a call syncs.
fn synced(step: &CallStep, symbols: &[CallSymbol]) -> Option<u16> {
    let symbol = symbols[usize::from(step.symbol)];
    let is_sync = matches!(symbol.action, CallAction::Fsync | CallAction::Fdatasync) && symbol.slot == NO_SLOT;
    is_sync.then_some(symbol.set)
}

/// The calls before and behind a place.
type CallPair = (Option<CallSymbol>, Option<CallSymbol>);

/// Where the threads of a group commit.
struct CommitPlaces<'a> {
    parts: &'a [ThreadPart],
    symbols: &'a [CallSymbol],
}

impl CommitPlaces<'_> {
    /// What is around some calls of a part, from the first one to the one behind the last.
    fn at(&self, (part, begin, end): (usize, usize, usize)) -> CallPair {
        let call =
            |at: usize| self.parts[part].steps.get(at).map(|step| self.symbols[usize::from(step.symbol)].anywhere());
        (begin.checked_sub(1).and_then(call), call(end))
    }
}

/// How often threads commit, and how many of these commits others' syncs were for.
#[derive(Debug, Default)]
struct CommitCounts {
    /// Who makes no sync, and all: of those that waited until a sync ended, and of the others.
    waited: (usize, usize),
    others: (usize, usize),
    /// Who came before a sync began and is covered by it; and who came before and makes another one, or came later and makes
    /// none.
    in_time: usize,
    other: usize,
}

impl CommitCounts {
    /// `wait`: whether a thread that waited came before the sync began which ended its wait.
    fn add(&mut self, syncs: bool, wait: Option<bool>) {
        let of = if wait.is_some() { &mut self.waited } else { &mut self.others };
        *of = (of.0 + usize::from(!syncs), of.1 + 1);
        self.in_time += usize::from(wait == Some(true) && !syncs);
        self.other += usize::from(wait == Some(syncs));
    }

    fn are_shared(&self) -> bool {
        let covered = self.waited.0;
        let is_in_time = self.in_time as f64 >= IN_TIME * (self.in_time + self.other) as f64;
        let share = |(without, all): (usize, usize)| without as f64 / all.max(1) as f64;
        let hangs_on_wait = self.others.1 >= LEAST_COVERED && share(self.others) * FAR_MORE <= share(self.waited);
        let is_much = covered as f64 >= LEAST_SHARE * (self.waited.1 + self.others.1) as f64;
        covered >= LEAST_COVERED && is_much && (is_in_time || hangs_on_wait)
    }
}

/// The commits of a group of threads.
struct Commits {
    /// Of each part: where the calls of a sync begin and end, and the waits of who is covered.
    made: Vec<BTreeMap<usize, usize>>,
    waits: WaitsOfParts,
}

impl Commits {
    /// `None` if the threads do not share the syncs of this file.
    fn of(parts: &[ThreadPart], set: u16, mut waits: WaitsOfParts, symbols: &[CallSymbol]) -> Option<Self> {
        let of = |step: &CallStep| symbols[usize::from(step.symbol)];
        let is_write = |step: &CallStep| {
            matches!(of(step).action, CallAction::Write | CallAction::WriteVec) && of(step).set == set
        };
        // Where all write before they wait, each writes for itself. Else who syncs writes for all.
        let behind_writes = waits.iter().zip(parts).flat_map(|(waits, part)| {
            waits.keys().map(|at| at.checked_sub(1).is_some_and(|before| is_write(&part.steps[before])))
        });
        let behind_writes: Vec<bool> = behind_writes.collect();
        let write_alone = behind_writes.iter().filter(|is| **is).count() * 2 > behind_writes.len();
        let made: Vec<BTreeMap<usize, usize>> = parts
            .iter()
            .map(|part| {
                let syncs = part.steps.iter().enumerate().filter(|(_, step)| synced(step, symbols) == Some(set));
                let with_writes = syncs.map(|(n, _)| {
                    let writes = part.steps[..n].iter().rev().take_while(|step| !write_alone && is_write(step)).count();
                    (n - writes, n + 1)
                });
                with_writes.collect()
            })
            .collect();
        let is_in_time = |wait: &SyncWait| {
            let (part, sync) = wait.sync;
            let (steps, made) = (&parts[part].steps, made[part].range(..=sync).next_back());
            let begin = made.map_or(sync, |(begin, _)| *begin);
            let (from, to) = (steps[begin].start, steps[sync].end());
            wait.begin <= from + to.saturating_sub(from) / LITTLE
        };
        // Where commits are: the calls around most of those that sync.
        let places = CommitPlaces { parts, symbols };
        let all = made.iter().enumerate().flat_map(|(part, made)| made.iter().map(move |(at, end)| (part, *at, *end)));
        let mut common: BTreeMap<CallPair, usize> = BTreeMap::new();
        all.clone().for_each(|commit| *common.entry(places.at(commit)).or_default() += 1);
        common.retain(|_, n| *n as f64 >= LEAST_SHARE * all.clone().count() as f64);
        let is_commit = |part: usize, at: usize, end: usize| common.contains_key(&places.at((part, at, end)));
        let mut counts = CommitCounts::default();
        for (part, (waits, made)) in waits.iter_mut().zip(&made).enumerate() {
            for at in 0..parts[part].steps.len() {
                let end = made.get(&at);
                if is_commit(part, at, end.copied().unwrap_or(at)) {
                    counts.add(end.is_some(), waits.get(&at).map(is_in_time));
                }
            }
            // Who waits and then syncs is not covered.
            waits.retain(|at, _| !made.contains_key(at) && is_commit(part, *at, *at));
        }
        counts.are_shared().then_some(Self { made, waits })
    }

    fn covered(&self) -> usize {
        self.waits.iter().map(BTreeMap::len).sum()
    }

    /// Puts one step in place of each commit of a part, also of those that are covered.
    fn replace(&self, part: usize, steps: &mut Vec<CallStep>, symbol: u16, shared: &mut SharedSync) {
        let mut all = Vec::with_capacity(steps.len());
        let mut ends = 0;
        let mut before = 0;
        for (at, mut step) in std::mem::take(steps).into_iter().enumerate() {
            let end = step.end();
            if let Some(wait) = self.waits[part].get(&at) {
                // What is known of the time before the wait is how long it was.
                let time = wait.begin.saturating_sub(before).try_into().unwrap_or(u32::MAX);
                let running = step.running.min(time);
                let asleep = step.asleep.min(time - running);
                (step.running, step.asleep) = (step.running - running, step.asleep - asleep);
                all.push(CallStep { running, asleep, ..CallStep::halt(wait.begin, symbol) });
            }
            if let Some(own) = self.made[part].get(&at) {
                ends = *own;
                shared.bounds.push((shared.steps.len(), shared.steps.len() + ends - at));
                let halt = CallStep::halt(step.start, symbol);
                all.push(CallStep { running: step.running, asleep: step.asleep, ..halt });
                (step.running, step.asleep) = (0, 0);
            }
            match all.last_mut().filter(|_| at < ends) {
                Some(commit) => {
                    commit.duration = end.saturating_sub(commit.start).try_into().unwrap_or(u32::MAX);
                    shared.steps.push(step);
                }
                None => all.push(step),
            }
            before = end;
        }
        *steps = all;
    }
}
