//! Picking: the file that an operation works on, and the wait if there is none now.
//!
//! A thread that finds no file waits while another live thread that is not itself starved has a step that makes one. If none is
//! left though the plan has makers, the run is stuck; if the plan has none, the thread is done.

use super::OpCx;
use super::starvation::maker;
use super::{OpFailure, Stop, StopReason, UnitKind};
use crate::exec::slots::FileRef;
use crate::fileset::{How, Members, Picked, Want};
use crate::random;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Which candidate to pick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PickBy {
    /// The next one of all threads' rotation.
    Rotate,
    /// The next one of the thread's own rotation.
    Own,
    /// The one with this index, else the next.
    Index(u64),
    /// Any of them, each as likely; the number is 64 random bits.
    Uniform(u64),
}

/// A starving thread looks again so often, changed or not.
const LOOK: Duration = Duration::from_millis(50);

/// The same where a set has several parts, of which it sleeps on one.
const LOOK_AROUND: Duration = Duration::from_millis(5);

/// So long that nobody is left, and nothing changes, is the end.
const STUCK: Duration = Duration::from_millis(200);

/// The parts of a set, from one of them on, round and round. A set that lies in one directory is its only part.
#[derive(Clone, Copy)]
struct PartRotation {
    first: usize,
    parts: usize,
    from: usize,
}

impl PartRotation {
    #[inline]
    fn order(self) -> impl Iterator<Item = usize> {
        let turn = move |k| if k < self.parts { k } else { k - self.parts };
        (self.from..self.from + self.parts).map(move |k| self.first + turn(k))
    }
}

/// What one look at one part of a set came to.
enum Look<T> {
    Found(T),
    /// There are some, and a step holds each of them.
    Busy,
    /// There is none in that state.
    Lacks(Want),
}

impl Look<FileRef> {
    #[inline]
    fn at(set: usize, want: Want, picked: Picked) -> Self {
        match picked {
            Picked::File(index) => Self::Found(FileRef { set, index }),
            Picked::AllBusy => Self::Busy,
            Picked::None => Self::Lacks(want),
        }
    }
}

impl OpCx<'_> {
    /// Picks a file of a set; waits if there is none now and there may be one later. Of a set that lies in several
    /// directories each part is as likely; one without a candidate gives way to the next.
    /// With `hold` the file stays busy until `State::release` or `State::set_exists`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what it does in most cases is less than a call")]
    pub fn pick(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<FileRef, Stop> {
        self.restamp();
        let view = &self.files.views[set];
        if want == Want::Existing
            && by == PickBy::Rotate
            && view.parts == 1
            && let Some(index) = view.set.state.files.next_of_all(&mut self.files.rotors[set])
        {
            return Ok(FileRef { set, index });
        }
        self.pick_any(set, want, by, hold)
    }

    #[inline(never)]
    fn pick_any(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<FileRef, Stop> {
        if self.files.views[set].parts == 1
            && let Look::Found(file) = self.look(set, want, by, hold)
        {
            return Ok(file);
        }
        self.pick_around(set, want, by, hold)
    }

    #[inline(never)]
    fn pick_around(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<FileRef, Stop> {
        let (rotation, by) = self.rotation(set, by);
        self.seek(rotation, UnitKind::File, |cx, part| cx.look(part, want, by, hold))
    }

    /// Picks and holds a file of a set that is absent or, as `want` says, exists, and another one of the same part that exists:
    /// never waits for one while it holds the other, so that two threads can't wait for one another. With `number` the second is
    /// the one of that number, and the first the one as far behind it as files exist.
    pub fn pick_pair(&mut self, set: usize, want: Want, number: Option<u64>) -> Result<(FileRef, FileRef), Stop> {
        self.restamp();
        let (rotation, by) = self.rotation(set, number.map_or(PickBy::Rotate, PickBy::Index));
        let least = if want == Want::Existing { 2 } else { 1 };
        self.seek(rotation, UnitKind::File, |cx, part| {
            // Before anything is held: what is taken and given back again is a change, which wakes everybody who waits here.
            let existing = cx.files.views[part].set.state.files.n_existing();
            if existing < least {
                return Look::Lacks(Want::Existing);
            }
            let behind = match by {
                PickBy::Index(n) => PickBy::Index(n + existing),
                by => by,
            };
            let first = match cx.look(part, want, behind, true) {
                Look::Found(first) => first,
                Look::Busy => return Look::Busy,
                Look::Lacks(want) => return Look::Lacks(want),
            };
            let lacking = match cx.look(part, Want::Existing, by, true) {
                Look::Found(second) => return Look::Found((first, second)),
                Look::Busy => Look::Busy,
                Look::Lacks(want) => Look::Lacks(want),
            };
            cx.files.views[part].set.state.release(first.index);
            lacking
        })
    }

    /// Picks and holds an empty directory of a set, in the same way.
    pub fn pick_leaf(&mut self, set: usize, want: Want) -> Result<FileRef, Stop> {
        self.restamp();
        let (rotation, _) = self.rotation(set, PickBy::Rotate);
        let found = self.seek(rotation, UnitKind::LeafDir, |cx, part| {
            let how = How::Rotate(&mut cx.files.leaf_rotors[part]);
            Look::at(part, want, cx.files.views[part].set.state.leafdirs.pick(want, how, true))
        })?;
        self.files.located = Some(found);
        Ok(found)
    }

    /// A part of a set, whatever is in it.
    #[inline]
    pub fn any_part(&mut self, set: usize) -> usize {
        match self.files.views[set].parts {
            1 => set,
            parts => set + random::below(&mut self.rng, parts as u64) as usize,
        }
    }

    /// Where to look first, and how to pick there.
    #[inline]
    fn rotation(&mut self, set: usize, by: PickBy) -> (PartRotation, PickBy) {
        let parts = self.files.views[set].parts;
        if parts == 1 {
            return (PartRotation { first: set, parts, from: 0 }, by);
        }
        match by {
            // Files are numbered across the parts: 0 in the first, 1 in the second, and round again.
            PickBy::Index(n) => {
                (PartRotation { first: set, parts, from: n as usize % parts }, PickBy::Index(n / parts as u64))
            }
            _ => (PartRotation { first: set, parts, from: self.any_part(set) - set }, by),
        }
    }

    /// Looks at one part.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called with constants")]
    fn look(&mut self, part: usize, want: Want, by: PickBy, hold: bool) -> Look<FileRef> {
        let how = match by {
            PickBy::Rotate => How::Rotate(&mut self.files.rotors[part]),
            PickBy::Own => How::Own(&mut self.files.own[part]),
            PickBy::Index(n) => How::Index(n),
            PickBy::Uniform(bits) => How::Uniform(bits),
        };
        Look::at(part, want, self.files.views[part].set.state.pick(want, how, hold))
    }

    /// Looks at one part after the other until one has what is looked for.
    #[inline]
    fn seek<T>(
        &mut self,
        rotation: PartRotation,
        kind: UnitKind,
        mut look: impl FnMut(&mut Self, usize) -> Look<T>,
    ) -> Result<T, Stop> {
        for part in rotation.order() {
            if let Look::Found(found) = look(self, part) {
                return Ok(found);
            }
        }
        self.seek_on(rotation, kind, look)
    }

    #[cold]
    fn seek_on<T>(
        &mut self,
        rotation: PartRotation,
        kind: UnitKind,
        mut look: impl FnMut(&mut Self, usize) -> Look<T>,
    ) -> Result<T, Stop> {
        let since = self.env.clock.raw();
        let views = self.files.views;
        let members = |part: usize| -> &Members {
            let state = &views[part].set.state;
            if kind == UnitKind::File { &state.files } else { &state.leafdirs }
        };
        let epochs = || rotation.order().fold(0, |sum: u32, part| sum.wrapping_add(members(part).epoch()));
        let nap = if rotation.parts == 1 { LOOK } else { LOOK_AROUND };
        let mut starving = false;
        // How long nobody has been left to make one, and nothing has changed.
        let mut alone = Duration::ZERO;
        let result = 'found: loop {
            // Before the looks, so that a change behind one of them ends the sleep.
            let (epoch, all) = (members(rotation.first).epoch(), epochs());
            let mut lacking = (rotation.first, Want::Existing);
            let (mut busy, mut hope, mut live) = (false, false, false);
            for part in rotation.order() {
                match look(self, part) {
                    Look::Found(found) => break 'found Ok(found),
                    Look::Busy => busy = true,
                    Look::Lacks(want) => {
                        let state = maker(kind, want);
                        hope |= views[part].planned[state];
                        live |= views[part].makers.live[state].load(SeqCst) > 0;
                        lacking = (part, want);
                    }
                }
            }
            if busy {
                // Whoever holds them is in the middle of a call: its turn.
                std::thread::yield_now();
            } else if !hope {
                break Err(StopReason::Exhausted.into());
            } else {
                if !starving {
                    starving = true;
                    self.files.starvation.leave(views);
                }
                members(rotation.first).wait_change(epoch, nap);
                // A maker whose own wait has just ended counts as waiting until it runs: only if nothing changes for some time
                // is nobody left.
                alone = if live || epochs() != all { Duration::ZERO } else { alone + nap };
            }
            if self.env.gate.is_stopped() || self.expired() {
                break Err(Stop::over());
            }
            if alone > STUCK {
                break Err(StopReason::Stuck(self.starved_out(lacking.0, lacking.1, kind)).into());
            }
        };
        if starving {
            self.files.starvation.enter(views);
        }
        let waited = self.env.clock.ns(since, self.env.clock.raw());
        self.account.starved += waited;
        self.cell().add_starved_time(waited);
        result
    }

    fn starved_out(&self, set: usize, want: Want, kind: UnitKind) -> OpFailure {
        let name = &self.files.views[set].set.spec.name;
        let thing = if kind == UnitKind::File { "file" } else { "directory" };
        let (state, other) = match want {
            Want::Existing => ("existing", "make"),
            Want::Absent => ("free", "remove"),
        };
        OpFailure {
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
    pub fn hold_existing(&self, file: FileRef) -> Result<bool, Stop> {
        let state = &self.files.views[file.set].set.state;
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
            if self.env.gate.is_stopped() || self.expired() {
                return Err(Stop::over());
            }
            std::thread::yield_now();
        }
    }
}
