//! Processes whose threads take the calls of one job in turn: what one opens, another one reads or closes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use wml_trace::TraceEvent;

/// From this share of files on that another thread closes, a process has a pool.
const SHARED: f64 = 0.3;
/// A process that closes fewer files says nothing.
const FEW_CLOSES: u32 = 20;

/// How often a process closed a file, and how often another thread than that which opened it did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessCloses {
    pub(crate) all: u32,
    pub(crate) by_others: u32,
}

/// The threads that are in a pool, each with its process, which stands for them.
#[derive(Debug, Default)]
pub(crate) struct ThreadPools(HashMap<u32, u32>);

impl ThreadPools {
    pub(crate) fn new(closes: &HashMap<u32, ProcessCloses>, threads: impl Iterator<Item = (u32, u32)>) -> Self {
        let is_pool = |closes: &ProcessCloses| {
            closes.all >= FEW_CLOSES && f64::from(closes.by_others) >= SHARED * f64::from(closes.all)
        };
        let pools: HashSet<u32> =
            closes.iter().filter(|(_, closes)| is_pool(closes)).map(|(process, _)| *process).collect();
        Self(threads.filter(|(_, process)| pools.contains(process)).collect())
    }

    /// The number of threads in pools.
    pub(crate) fn threads(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn has(&self, thread: u32) -> bool {
        self.0.contains_key(&thread)
    }

    /// The event as if one thread did all that a pool does. `None` for one thread of it that waits for another.
    pub(crate) fn as_one<'e>(&self, event: &'e TraceEvent) -> Option<Cow<'e, TraceEvent>> {
        match event {
            TraceEvent::Call(call) => Some(match self.0.get(&call.thread) {
                Some(process) => {
                    let mut call = call.clone();
                    call.thread = *process;
                    Cow::Owned(TraceEvent::Call(call))
                }
                None => Cow::Borrowed(event),
            }),
            TraceEvent::Wait(wait) if self.has(wait.thread) => None,
            TraceEvent::Wait(wait) => {
                let mut wait = *wait;
                wait.woken_by = wait.woken_by.map(|thread| self.0.get(&thread).copied().unwrap_or(thread));
                Some(Cow::Owned(TraceEvent::Wait(wait)))
            }
            _ => Some(Cow::Borrowed(event)),
        }
    }
}
