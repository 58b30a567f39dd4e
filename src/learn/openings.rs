//! For how long files are open: some for one job, others for as long as their thread lives.

use crate::sets::LearnedSets;
use std::collections::HashMap;
use wml_trace::{CallClass, PathId, TracedCall};

/// Files that are open for this share of their threads' lives stay open.
const LASTING: f64 = 0.3;
/// A thread with fewer calls says nothing.
const FEW_CALLS: u64 = 500;

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    begin: u64,
    end: u64,
    calls: u64,
}

/// What was opened and closed.
#[derive(Debug, Default)]
pub(crate) struct Openings {
    lives: HashMap<u32, Life>,
    open: HashMap<(u32, PathId), u64>,
    /// Each opening: the file, the thread, and for how long.
    all: Vec<(PathId, u32, u64)>,
}

impl Openings {
    pub(crate) fn add(&mut self, call: &TracedCall) {
        let life = self.lives.entry(call.thread).or_insert(Life { begin: call.start, ..Life::default() });
        life.end = call.end();
        life.calls += 1;
        let Some(path) = call.path else { return };
        let key = (call.thread, path);
        match call.kind.get().class {
            CallClass::Open if call.result >= 0 => drop(self.open.insert(key, call.start)),
            CallClass::Close => {
                if let Some(begin) = self.open.remove(&key) {
                    self.all.push((path, call.thread, call.start.saturating_sub(begin)));
                }
            }
            _ => {}
        }
    }

    /// Marks the sets whose files stay open.
    pub(crate) fn annotate(mut self, sets: &mut LearnedSets) {
        for ((thread, path), begin) in std::mem::take(&mut self.open) {
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
    }
}
