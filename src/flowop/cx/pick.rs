//! Picking: the file that an operation works on, and the wait if there is none now.
//!
//! A thread that finds no file waits while another live thread that is not itself starved has a step that makes one. If none is
//! left though the plan has makers, the run is stuck; if the plan has none, the thread is done.

use super::{OpCx, View};
use crate::fileset::{How, Members, Picked, Want};
use crate::flowop::slots::FileRef;
use crate::flowop::{Failure, Kind, Outcome};
use crate::random;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Who can end a wait for a file of one set.
#[derive(Debug, Default)]
pub struct Makers {
    /// Whether the plan has a maker of existing files, absent files, existing and absent leaf directories.
    pub planned: [bool; 4],
    /// How many such threads live and are not starved.
    pub live: [AtomicU32; 4],
}

/// The place of a state in [`Makers`].
pub fn maker(kind: Kind, want: Want) -> usize {
    usize::from(kind == Kind::LeafDir) * 2 + usize::from(want == Want::Absent)
}

/// A thread's part in making files, to be taken out of the count while it starves and when it ends.
#[derive(Debug, Default)]
pub struct Starvation {
    /// Set and state that the thread makes.
    pub makes: Vec<(usize, usize)>,
}

/// Which candidate to pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PickBy {
    /// The next one of all threads' rotation.
    Rotate,
    /// The next one of the thread's own rotation.
    Own,
    /// The one with this index, else the next.
    Index(u64),
}

impl Starvation {
    /// The thread starves, or ends: it makes nothing any more. Whoever waits for it looks again.
    pub fn leave(&self, views: &[View]) {
        for (set, state) in &self.makes {
            if views[*set].makers.live[*state].fetch_sub(1, SeqCst) == 1 {
                views[*set].set.state.wake_all();
            }
        }
    }

    /// The thread lives, or has its file.
    pub fn enter(&self, views: &[View]) {
        for (set, state) in &self.makes {
            views[*set].makers.live[*state].fetch_add(1, SeqCst);
        }
    }
}

/// A starving thread looks again so often, changed or not.
const LOOK: Duration = Duration::from_millis(50);

/// So many looks in a row that find nobody left, and nothing changed, are the end.
const STUCK: u32 = 4;

impl OpCx<'_> {
    /// Picks a file of a set; waits if there is none now and there may be one later.
    /// With `hold` the file stays busy until `State::release` or `State::set_exists`.
    #[inline]
    pub fn pick(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<u64, Outcome> {
        self.digress();
        if want == Want::Existing
            && by == PickBy::Rotate
            && let Some(index) = self.views[set].set.state.files.next_of_all(&mut self.rotors[set])
        {
            return Ok(index);
        }
        self.pick_one(set, want, by, hold)
    }

    #[inline(never)]
    fn pick_one(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<u64, Outcome> {
        let view = &self.views[set];
        let how = match by {
            PickBy::Rotate => How::Rotate(&mut self.rotors[set]),
            PickBy::Own => How::Own(&mut self.own[set]),
            PickBy::Index(n) => How::Index(n),
        };
        match view.set.state.pick(want, how, hold) {
            Picked::File(index) => Ok(index),
            Picked::AllBusy | Picked::None => self.pick_slow(set, want, by, hold, Kind::File),
        }
    }

    /// The part of a set that the next pick is from, and how to pick there: the set itself, unless it lies in several
    /// directories. Then each is as likely; one without a candidate gives way to the next.
    #[inline]
    pub fn aim(&mut self, set: usize, want: Want, by: PickBy, kind: Kind) -> (usize, PickBy) {
        if self.views[set].parts == 1 { (set, by) } else { self.aim_at_part(set, want, by, kind) }
    }

    fn aim_at_part(&mut self, set: usize, want: Want, by: PickBy, kind: Kind) -> (usize, PickBy) {
        let parts = self.views[set].parts;
        if let PickBy::Index(n) = by {
            // Files are numbered across the parts: 0 in the first, 1 in the second, and round again.
            return (set + n as usize % parts, PickBy::Index(n / parts as u64));
        }
        let drawn = random::below(&mut self.rng, parts as u64) as usize;
        let has_one = |part: &usize| {
            let state = &self.views[*part].set.state;
            let members = if kind == Kind::File { &state.files } else { &state.leafdirs };
            match want {
                Want::Existing => members.n_existing() > 0,
                Want::Absent => members.n_existing() < members.len(),
            }
        };
        let order = (0..parts).map(|k| set + (drawn + k) % parts);
        (order.into_iter().find(has_one).unwrap_or(set + drawn), by)
    }

    /// A part of a set, whatever is in it.
    #[inline]
    pub fn any_part(&mut self, set: usize) -> usize {
        match self.views[set].parts {
            1 => set,
            parts => set + random::below(&mut self.rng, parts as u64) as usize,
        }
    }

    /// Picks and holds a file of a set, if there is one right now.
    pub fn try_pick(&mut self, set: usize, want: Want) -> Option<u64> {
        match self.views[set].set.state.pick(want, How::Rotate(&mut self.rotors[set]), true) {
            Picked::File(index) => Some(index),
            Picked::AllBusy | Picked::None => None,
        }
    }

    /// Picks and holds a file that does not exist and one that does: never waits for one while it holds the other, so that
    /// two threads can't wait for one another.
    pub fn pick_both(&mut self, set: usize) -> Result<(u64, u64), Outcome> {
        loop {
            let absent = self.pick(set, Want::Absent, PickBy::Rotate, true)?;
            if let Some(existing) = self.try_pick(set, Want::Existing) {
                return Ok((absent, existing));
            }
            self.views[set].set.state.release(absent);
            self.pick(set, Want::Existing, PickBy::Rotate, false)?;
        }
    }

    /// Picks an empty directory of a set, in the same way.
    pub fn pick_leaf(&mut self, set: usize, want: Want) -> Result<u64, Outcome> {
        self.digress();
        let index = match self.views[set].set.state.leafdirs.pick(want, How::Rotate(&mut self.leaf_rotors[set]), true) {
            Picked::File(index) => index,
            Picked::AllBusy | Picked::None => self.pick_slow(set, want, PickBy::Rotate, true, Kind::LeafDir)?,
        };
        self.located = Some(FileRef { set, index });
        Ok(index)
    }

    #[cold]
    fn pick_slow(&mut self, set: usize, want: Want, by: PickBy, hold: bool, kind: Kind) -> Result<u64, Outcome> {
        let from = self.clock.raw();
        let views = self.views;
        let state = &views[set].set.state;
        let members: &Members = if kind == Kind::File { &state.files } else { &state.leafdirs };
        let makers = &views[set].makers;
        let made = maker(kind, want);
        let mut starving = false;
        // How often nobody was left to make one, and nothing changed.
        let mut alone = 0;
        let result = loop {
            let epoch = members.epoch();
            let rotor = if kind == Kind::File { &mut self.rotors[set] } else { &mut self.leaf_rotors[set] };
            let how = match by {
                PickBy::Rotate => How::Rotate(rotor),
                PickBy::Own => How::Own(&mut self.own[set]),
                PickBy::Index(n) => How::Index(n),
            };
            let picked = members.pick(want, how, hold);
            match picked {
                Picked::File(index) => break Ok(index),
                Picked::AllBusy => {
                    // Whoever holds them is in the middle of a call: its turn.
                    std::thread::yield_now();
                }
                Picked::None if !makers.planned[made] => break Err(Outcome::Exhausted),
                Picked::None => {
                    if !starving {
                        starving = true;
                        self.starvation.leave(views);
                    }
                    // A maker whose own wait has just ended counts as waiting until it runs: only if nothing changes for
                    // some time is nobody left.
                    let nobody = makers.live[made].load(SeqCst) == 0;
                    alone = if nobody && members.epoch() == epoch { alone + 1 } else { 0 };
                    members.wait_change(epoch, LOOK);
                }
            }
            if self.gate.is_stopped() || self.expired() {
                break Err(Outcome::Over);
            }
            if alone > STUCK {
                break Err(Outcome::Stuck(Box::new(self.starved_out(set, want, kind))));
            }
        };
        if starving {
            self.starvation.enter(views);
        }
        let waited = self.clock.ns(from, self.clock.raw());
        self.starved += waited;
        self.cell().starved(waited);
        result
    }

    fn starved_out(&self, set: usize, want: Want, kind: Kind) -> Failure {
        let name = &self.views[set].set.spec.name;
        let thing = if kind == Kind::File { "file" } else { "directory" };
        let (state, other) = match want {
            Want::Existing => ("existing", "make"),
            Want::Absent => ("free", "remove"),
        };
        Failure {
            what: format!(
                "file set `{name}` has no {state} {thing} left, and every thread that could {other} one waits itself"
            ),
            path: None,
            errno: None,
            help: "give the file set more entries, or another `prealloc`".to_owned(),
            of: None,
        }
    }

    /// Takes a file that exists, and no other; waits while someone else works on it. False if it does not exist.
    pub fn hold_existing(&self, file: FileRef) -> Result<bool, Outcome> {
        let state = &self.views[file.set].set.state;
        loop {
            match state.pick(Want::Existing, How::Index(file.index), true) {
                Picked::File(index) if index == file.index => return Ok(true),
                Picked::File(other) => {
                    state.release(other);
                }
                Picked::AllBusy | Picked::None => {}
            }
            if !state.files.exists(file.index) {
                return Ok(false);
            }
            if self.gate.is_stopped() || self.expired() {
                return Err(Outcome::Over);
            }
            std::thread::yield_now();
        }
    }
}
