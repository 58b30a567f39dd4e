//! Calls that flowops make by themselves: what is in a trace of them is no flowop of its own.
//!
//! The engine looks at each file before it works on it, again after a while, so that no foreign file is touched: at an open
//! one directly behind its open, at a name directly before it is removed or changed. Many programs do the same. It also
//! holds directories open as places for names, and lists a directory to its end.

use crate::action::CallAction;
use std::collections::{HashMap, HashSet};
use wml_trace::{PathId, TracedCall, flags as numbers};

/// Nanoseconds after which the engine looks at a file again: at least.
const AGAIN: u64 = 500_000_000;

/// The share of opens with a look from which on it is the program's.
const MOST_AGAIN: f64 = 0.6;

/// What the engine looks at.
#[derive(Debug, Default)]
pub(crate) struct OwnLooks {
    /// When each file was looked at last.
    last: HashMap<PathId, u64>,
    /// Directories that were opened as places for names, and no more.
    places: HashSet<PathId>,
    /// Of each set, files that were looked at shortly before: opened or changed so often, and looked at again so often.
    opened: HashMap<u16, (u32, u32)>,
    changed: HashMap<u16, (u32, u32)>,
}

/// A look at a file that was looked at shortly before: the engine looks again at times, programs mostly do or do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookAgain {
    No,
    /// This call is one.
    This,
    /// The last step is one.
    Last,
}

impl OwnLooks {
    /// True if the engine looks at the file now. What was before a thread began is a phase of its own, which knows nothing.
    fn is_due(&self, path: PathId, now: u64, begin: u64) -> bool {
        self.last.get(&path).is_none_or(|last| *last < begin || now.saturating_sub(*last) >= AGAIN)
    }

    /// True if a call is on such a directory. `is_open`: the thread has opened it for more.
    pub(crate) fn is_on_place(&mut self, action: CallAction, call: &TracedCall, is_open: bool) -> bool {
        let Some(path) = call.path else { return false };
        if opens_place(action, call) {
            self.places.insert(path);
            return true;
        }
        !is_open && matches!(action, CallAction::StatOpen | CallAction::CloseDir) && self.places.contains(&path)
    }

    /// True if a call on an open file is the look behind its open: `before` is the thread's call before it.
    pub(crate) fn is_behind_open(&mut self, action: CallAction, call: &TracedCall, before: &CallsBefore) -> bool {
        let Some(path) = call.path else { return false };
        let now = call.start;
        match action {
            CallAction::CreateFile => drop(self.last.insert(path, now)),
            CallAction::StatOpen if before.last() == Some((CallAction::OpenFile, path)) => {
                let is_due = self.is_due(path, now, before.begin);
                if is_due {
                    self.last.insert(path, now);
                }
                return is_due;
            }
            _ => {}
        }
        false
    }

    /// Counts looks at files that were looked at shortly before. `looked`: the calls before this one that are its own looks.
    pub(crate) fn again(
        &mut self,
        set: u16,
        action: CallAction,
        call: &TracedCall,
        before: &CallsBefore,
        looked: usize,
    ) -> LookAgain {
        let Some(path) = call.path.filter(|path| !self.is_due(*path, call.start, before.begin)) else {
            return LookAgain::No;
        };
        let is_look = before.last.iter().rev().flatten().nth(looked) == Some(&(CallAction::StatPath, path));
        match action {
            CallAction::OpenFile => self.opened.entry(set).or_default().0 += 1,
            CallAction::StatOpen if before.last() == Some((CallAction::OpenFile, path)) => {
                self.opened.entry(set).or_default().1 += 1;
                return LookAgain::This;
            }
            action if action.changes_names() => {
                let all = self.changed.entry(set).or_default();
                all.0 += 1;
                all.1 += u32::from(is_look);
                return if is_look { LookAgain::Last } else { LookAgain::No };
            }
            _ => {}
        }
        LookAgain::No
    }

    /// True if such looks are those of the engine: few of the opens or changes have one.
    pub(crate) fn are_own(&self, set: u16, action: CallAction) -> bool {
        let all = if action == CallAction::StatOpen { &self.opened } else { &self.changed };
        all.get(&set).is_some_and(|(all, looks)| f64::from(*looks) < MOST_AGAIN * f64::from(*all))
    }

    /// How many of the thread's last calls are looks at the names that this call changes.
    pub(crate) fn before_change(&self, action: CallAction, call: &TracedCall, before: &CallsBefore) -> usize {
        if !action.changes_names() {
            return 0;
        }
        let is_own = |seen: &(CallAction, PathId)| {
            let (look, path) = *seen;
            let is_look = matches!(look, CallAction::StatPath | CallAction::StatMissing);
            let is_new = action == CallAction::Rename && call.second_path == Some(path);
            is_look && (is_new || call.path == Some(path) && self.is_due(path, call.start, before.begin))
        };
        let most = if action == CallAction::Rename { 2 } else { 1 };
        before.last.iter().rev().flatten().take(most).take_while(|seen| is_own(seen)).count()
    }
}

/// True if a call opens a directory as a place for names.
pub(crate) fn opens_place(action: CallAction, call: &TracedCall) -> bool {
    action == CallAction::OpenDir && holds_names_only(call)
}

/// True if the file of a call was opened to search it for names, not to read it.
pub(crate) fn holds_names_only(call: &TracedCall) -> bool {
    call.flags.unwrap_or(0) as i32 & numbers::O_PATH != 0
}

/// What a thread has done until now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallsBefore {
    /// When it began.
    begin: u64,
    has_begun: bool,
    /// Its last calls.
    last: [Option<(CallAction, PathId)>; 2],
}

impl CallsBefore {
    pub(crate) fn begin(&mut self, now: u64) {
        if !self.has_begun {
            (self.begin, self.has_begun) = (now, true);
        }
    }

    pub(crate) fn add(&mut self, action: CallAction, path: PathId) {
        self.last = [self.last[1], Some((action, path))];
    }

    fn last(&self) -> Option<(CallAction, PathId)> {
        self.last[1]
    }
}
