//! Set-up: what a program does first and for a short time, so that the files are there with which it works afterwards. In the
//! script they exist at the beginning.

use crate::action::CallAction;
use crate::streams::{CallStep, CallSymbol, ThreadPart};
use std::collections::{BTreeSet, HashMap};

/// The most calls of a set-up, as a share of all.
const MOST: f64 = 0.2;
/// The share of its calls that make and fill files, and the most that what follows may have of them.
const MAKES: f64 = 0.95;
const MAKES_TOO: f64 = 0.8;
/// A thread with fewer calls waits for those of others.
const FEW: f64 = 0.01;
/// The least calls of a set-up that a thread goes on after.
const LEAST: usize = 100;

/// True if a call makes a file or fills it.
fn makes(action: CallAction) -> bool {
    use CallAction::{Allocate, CloseFile, CreateFile, MakeDir, MakeExistingDir, Truncate, Write, WriteVec};
    let is_making = matches!(action, CreateFile | Write | WriteVec | CloseFile | MakeDir | MakeExistingDir);
    is_making || matches!(action, Truncate | Allocate) || action.syncs() || action.is_minor()
}

fn share_that_makes(steps: &[CallStep], symbols: &[CallSymbol]) -> f64 {
    let makes = steps.iter().filter(|step| makes(symbols[usize::from(step.symbol)].action)).count();
    makes as f64 / steps.len().max(1) as f64
}

/// Files that were made (1) or removed (−1) of each set, with the time.
pub(crate) type FileTimes = [(u64, u16, i8)];

/// The sets of which files are made, if that is all that is done.
fn made(steps: &[CallStep], symbols: &[CallSymbol], changes: &FileTimes) -> Option<BTreeSet<u16>> {
    let (begin, end) = (steps.first()?.start, steps.last()?.end());
    if share_that_makes(steps, symbols) < MAKES {
        return None;
    }
    let own = changes.iter().filter(|(time, _, change)| *change > 0 && (begin..=end).contains(time));
    let made: BTreeSet<u16> = own.map(|(_, set, _)| *set).collect();
    // What is written is made before.
    let mut written = steps
        .iter()
        .map(|step| symbols[usize::from(step.symbol)])
        .filter(|symbol| matches!(symbol.action, CallAction::Write | CallAction::WriteVec));
    (!made.is_empty() && written.all(|symbol| made.contains(&symbol.set))).then_some(made)
}

/// Cuts off what a thread does at its beginning, if it makes files, and goes on with others.
fn cut_off(mut steps: Vec<CallStep>, symbols: &[CallSymbol], changes: &FileTimes) -> Vec<Vec<CallStep>> {
    let Some(at) = change(&steps).filter(|at| *at >= LEAST) else { return vec![steps] };
    let (first, rest) = steps.split_at(at);
    if share_that_makes(rest, symbols) < MAKES_TOO && made(first, symbols, changes).is_some() {
        let rest = steps.split_off(at);
        return vec![steps, rest];
    }
    vec![steps]
}

/// Where calls are cut best in two, so that each part is told in the fewest bits by its mix.
fn change(steps: &[CallStep]) -> Option<usize> {
    let bits = |n: usize| if n > 0 { n as f64 * (n as f64).log2() } else { 0.0 };
    let mut counts: HashMap<u16, [usize; 2]> = HashMap::new();
    steps.iter().for_each(|step| counts.entry(step.symbol).or_default()[1] += 1);
    // Of each part: the sum of n log n over its calls.
    let mut sums = [0.0, counts.values().map(|count| bits(count[1])).sum::<f64>()];
    let mut best: Option<(f64, usize)> = None;
    for (n, step) in steps.iter().enumerate() {
        let count = counts.entry(step.symbol).or_default();
        sums[0] += bits(count[0] + 1) - bits(count[0]);
        sums[1] += bits(count[1] - 1) - bits(count[1]);
        *count = [count[0] + 1, count[1] - 1];
        let known = sums[0] + sums[1] - bits(n + 1) - bits(steps.len() - n - 1);
        if best.is_none_or(|(most, _)| known > most) {
            best = Some((known, n + 1));
        }
    }
    best.map(|(_, at)| at)
}

/// Takes the parts away that only make the files of what follows, and returns how many calls they have. The parts of each
/// thread are in order.
pub(crate) fn take(units: &mut Vec<ThreadPart>, symbols: &[CallSymbol], changes: &FileTimes) -> usize {
    let mut begun = BTreeSet::new();
    let parts = std::mem::take(units).into_iter().flat_map(|ThreadPart { thread, steps }| {
        let parts = if begun.insert(thread) { cut_off(steps, symbols, changes) } else { vec![steps] };
        parts.into_iter().map(move |steps| ThreadPart { thread, steps })
    });
    let parts: Vec<(Option<BTreeSet<u16>>, ThreadPart)> =
        parts.map(|part| (made(&part.steps, symbols, changes), part)).collect();
    let all: usize = parts.iter().map(|(_, part)| part.steps.len()).sum();
    let works = parts.iter().filter(|(made, part)| made.is_none() && part.steps.len() as f64 >= FEW * all as f64);
    let begin = works.map(|(_, part)| part.span().0).min().unwrap_or(0);
    let later = parts.iter().filter(|(_, part)| part.span().0 >= begin);
    let used: BTreeSet<u16> =
        later.flat_map(|(_, part)| part.steps.iter().map(|step| symbols[usize::from(step.symbol)].set)).collect();
    let is_set_up = |(made, part): &(Option<BTreeSet<u16>>, ThreadPart)| {
        part.span().1 <= begin && made.as_ref().is_some_and(|made| made.is_subset(&used))
    };
    let calls: usize = parts.iter().filter(|part| is_set_up(part)).map(|(_, part)| part.steps.len()).sum();
    let is_short = calls as f64 <= MOST * all as f64;
    units.extend(parts.into_iter().filter(|part| !is_short || !is_set_up(part)).map(|(_, part)| part));
    if is_short { calls } else { 0 }
}
