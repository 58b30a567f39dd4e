//! For how long files are open: some for one job, others for as long as their thread lives.

use crate::pools::{SharedFiles, ThreadLife, ThreadPools};
use crate::sets::LearnedSets;
use std::collections::HashMap;
use wml_trace::{CallClass, PathId, TracedCall};

/// Files that are open for this share of their threads' lives stay open.
const LASTING: f64 = 0.3;
/// A thread with fewer calls says nothing.
const FEW_CALLS: u64 = 500;

/// What was opened and closed.
#[derive(Debug, Default)]
pub(crate) struct Openings {
    lives: HashMap<u32, ThreadLife>,
    /// Of each process and file, the threads that opened it, and when.
    open: HashMap<(u32, PathId), Vec<(u32, u64)>>,
    shared: HashMap<u32, SharedFiles>,
    /// Of each process and file, the thread that made the last call on it.
    last: HashMap<(u32, PathId), u32>,
    /// Each opening: the file, the thread, and for how long.
    all: Vec<(PathId, u32, u64)>,
}

impl Openings {
    pub(crate) fn add(&mut self, call: &TracedCall) {
        let new = ThreadLife { process: call.process, begin: call.start, ..ThreadLife::default() };
        let life = self.lives.entry(call.thread).or_insert(new);
        life.end = call.end();
        life.calls += 1;
        let Some(path) = call.path else { return };
        let key = (call.process, path);
        let before = self.last.insert(key, call.thread);
        let shared = self.shared.entry(call.process).or_default();
        shared.calls += 1;
        shared.in_turn += u64::from(before.is_some_and(|thread| thread != call.thread));
        match call.kind.get().class {
            CallClass::Open if call.result >= 0 => {
                self.open.entry(key).or_default().push((call.thread, call.start));
            }
            CallClass::Close => {
                let Some(open) = self.open.get_mut(&key) else { return };
                let own = open.iter().position(|(thread, _)| *thread == call.thread);
                let (thread, begin) = open.remove(own.unwrap_or(0));
                if open.is_empty() {
                    self.open.remove(&key);
                }
                self.all.push((path, thread, call.start.saturating_sub(begin)));
                let shared = self.shared.entry(call.process).or_default();
                shared.closes += 1;
                shared.by_others += u32::from(own.is_none());
            }
            _ => {}
        }
    }

    /// The threads for which others stand.
    pub(crate) fn pools(&self) -> ThreadPools {
        ThreadPools::new(&self.shared, &self.lives)
    }

    /// Marks the sets whose files stay open.
    pub(crate) fn annotate(mut self, sets: &mut LearnedSets) {
        let open = std::mem::take(&mut self.open);
        for (path, (thread, begin)) in
            open.into_iter().flat_map(|((_, path), all)| all.into_iter().map(move |one| (path, one)))
        {
            let end = self.lives.get(&thread).map_or(begin, |life| life.end);
            self.all.push((path, thread, end.saturating_sub(begin)));
        }
        let mut sums = vec![(0.0, 0.0, 0u64); sets.sets.len()];
        for (path, thread, time) in self.all {
            let Some((set, life)) = sets.of(path).zip(self.lives.get(&thread)) else { continue };
            if life.calls >= FEW_CALLS {
                let sum = &mut sums[usize::from(set)];
                *sum = (sum.0 + time as f64, sum.1 + life.end.saturating_sub(life.begin) as f64, sum.2 + 1);
            }
        }
        for (set, (open, lived, opens)) in sets.sets.iter_mut().zip(sums) {
            let mostly = opens * 2 >= set.opens && open >= LASTING * lived;
            set.stays_open = set.opens == 0 || opens > 0 && mostly;
        }
        // A program that works on files that it keeps open may go on with that.
        let calls = |held: bool| -> u64 {
            sets.sets.iter().filter(|set| !held || set.stays_open && set.opens > 0).map(|set| set.calls).sum()
        };
        sets.goes_once &= calls(true) * 2 < calls(false);
    }
}
