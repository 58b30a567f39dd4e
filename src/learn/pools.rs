//! Threads that are one: of a process whose threads take the calls of one job in turn, so that what one opens, another one
//! reads or closes; and many short ones that follow one another, as those that a shell starts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use wml_trace::TraceEvent;

/// From this share of files on that another thread closes, a process has a pool, if this share of its calls is on files on
/// which another thread made the last one. A thread in the background opens and closes files too that others use.
const SHARED: f64 = 0.3;
const IN_TURN: f64 = 0.1;
/// A process that closes fewer files says nothing.
const FEW_CLOSES: u32 = 20;
/// So many threads follow one another at least, each for this share of the time at most, and so many for each one that is
/// there at the same time.
const MANY: usize = 8;
const SHORT: f64 = 0.2;
const FOLLOWING: usize = 4;
/// A thread with fewer calls has no part in the script.
const FEW_CALLS: u64 = 8;

/// How often a process closed a file, and how often another thread than that which opened it did. Likewise its calls, and
/// those on files on which another thread made the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedFiles {
    pub(crate) closes: u32,
    pub(crate) by_others: u32,
    pub(crate) calls: u64,
    pub(crate) in_turn: u64,
}

/// When a thread of a process made its first call, and its last one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadLife {
    pub(crate) process: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) calls: u64,
}

/// Threads for which another one stands.
#[derive(Debug, Default)]
pub(crate) struct ThreadPools {
    /// Those in a pool, each with its process.
    pools: HashMap<u32, u32>,
    /// Those that follow others, each with the first of them.
    followers: HashMap<u32, u32>,
    /// Those that make more than a few calls.
    callers: HashSet<u32>,
}

impl ThreadPools {
    pub(crate) fn new(shared: &HashMap<u32, SharedFiles>, lives: &HashMap<u32, ThreadLife>) -> Self {
        let is_pool = |of: &SharedFiles| {
            let is_shared = f64::from(of.by_others) >= SHARED * f64::from(of.closes);
            of.closes >= FEW_CLOSES && is_shared && of.in_turn as f64 >= IN_TURN * of.calls as f64
        };
        let pools: HashSet<u32> = shared.iter().filter(|(_, of)| is_pool(of)).map(|(process, _)| *process).collect();
        let (pooled, others): (Vec<_>, Vec<_>) = lives.iter().partition(|(_, life)| pools.contains(&life.process));
        let pools = pooled.into_iter().map(|(thread, life)| (*thread, life.process)).collect();
        let followers = followers(others.into_iter().map(|(thread, life)| (*thread, *life)).collect());
        let callers = lives.iter().filter(|(_, life)| life.calls >= FEW_CALLS).map(|(thread, _)| *thread).collect();
        Self { pools, followers, callers }
    }

    /// The number of threads in pools.
    pub(crate) fn pooled(&self) -> usize {
        self.pools.len()
    }

    /// The number of threads that follow one another, and of those that stand for them.
    pub(crate) fn following(&self) -> (usize, usize) {
        (self.followers.len(), self.followers.values().collect::<HashSet<_>>().len())
    }

    pub(crate) fn has(&self, thread: u32) -> bool {
        self.pools.contains_key(&thread) || self.followers.contains_key(&thread)
    }

    /// The thread that stands for this one.
    pub(crate) fn one(&self, thread: u32) -> u32 {
        self.pools.get(&thread).or_else(|| self.followers.get(&thread)).copied().unwrap_or(thread)
    }

    /// The event as if one thread did all that a pool does. `None` for one thread of it that waits for another.
    pub(crate) fn as_one<'e>(&self, event: &'e TraceEvent) -> Option<Cow<'e, TraceEvent>> {
        match event {
            TraceEvent::Call(call) if self.has(call.thread) => {
                let mut call = call.clone();
                call.thread = self.one(call.thread);
                Some(Cow::Owned(TraceEvent::Call(call)))
            }
            TraceEvent::Wait(wait) if self.pools.contains_key(&wait.thread) => None,
            TraceEvent::Wait(wait) => {
                let mut wait = *wait;
                wait.thread = self.one(wait.thread);
                // A thread that makes next to no calls is not in the script: a wait for it is one for what is not traced.
                let waker = wait.woken_by.filter(|thread| self.has(*thread) || self.callers.contains(thread));
                wait.woken_by = waker.map(|thread| self.one(thread));
                (wait.woken_by != Some(wait.thread)).then_some(Cow::Owned(TraceEvent::Wait(wait)))
            }
            _ => Some(Cow::Borrowed(event)),
        }
    }
}

/// Many short threads, each with the first of those that it follows: the last one that had ended when it began.
fn followers(mut lives: Vec<(u32, ThreadLife)>) -> HashMap<u32, u32> {
    let begin = lives.iter().map(|(_, life)| life.begin).min().unwrap_or(0);
    let span = lives.iter().map(|(_, life)| life.end).max().unwrap_or(0).saturating_sub(begin);
    lives.retain(|(_, life)| life.end.saturating_sub(life.begin) as f64 <= SHORT * span as f64);
    lives.sort_by_key(|(thread, life)| (life.begin, life.end, *thread));
    // Of each row of threads: when it ends, and its first one.
    let mut rows: Vec<(u64, u32)> = Vec::new();
    let mut followers = HashMap::new();
    for (thread, life) in &lives {
        let ended = rows.iter_mut().filter(|(end, _)| *end <= life.begin).max_by_key(|(end, _)| *end);
        let first = match ended {
            Some((end, first)) => {
                *end = life.end;
                *first
            }
            None => {
                rows.push((life.end, *thread));
                *thread
            }
        };
        followers.insert(*thread, first);
    }
    let is_it = lives.len() >= MANY && lives.len() >= FOLLOWING * rows.len();
    if is_it { followers } else { HashMap::new() }
}
