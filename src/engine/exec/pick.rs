//! Picking: the choice of the file for an operation, and the wait when there is none at present.
//!
//! A thread that finds no file waits as long as a step of another running thread, which is not starved itself, makes
//! such files. If no such thread is left although the plan has such steps, the run is stuck. If the plan has none, the
//! thread is done.
//!
//! Batched claims: a thread claims positions of the shared rotation in batches of up to 64, and all threads together
//! hold at most a quarter of the set ([`Members`]). A claim is one atomic addition to the shared cursor; until the
//! batch is used up, a pick changes only the thread's own rotor, so that the cursor's cache line does not move between
//! processors for each operation, and the position is divided by the size of the set once per batch instead of once per
//! pick. The step of changes in which these picks were also inlined took `statfile` from 360 to 312 instructions.

use super::OpCx;
use super::starvation::maker;
use super::{OpFailure, Stop, StopReason, UnitKind};
use crate::exec::slots::FileRef;
use crate::fileset::{How, Members, Picked, Want};
use crate::random;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use wml_result::FlowopCounter;

/// The rule by which a file is picked among the candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PickBy {
    /// The next one in the rotation that all threads share.
    Rotate,
    /// The next one in the thread's own rotation; of files that do not exist, as in Filebench, the next one in the
    /// rotation that all threads share.
    Own,
    /// The one with this index; if it is not a candidate, the next one.
    Index(u64),
    /// Any of them, with equal probability. The number is 64 random bits.
    Uniform(u64),
    /// The one at this distance behind the file that was created last.
    Recent(u64),
}

/// Maximum time between two attempts of a starving thread, even if nothing changes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The same for a set of several parts, of which the thread can sleep on one only.
const POLL_INTERVAL_PARTS: Duration = Duration::from_millis(5);

/// Time without a maker and without a change after which a thread is stuck.
const STUCK_AFTER: Duration = Duration::from_millis(200);

/// How often a thread yields the processor to those that hold all candidates, before it sleeps between its attempts.
const YIELDS: u32 = 64;

/// The time of that sleep. The holders are in system calls, which on a slow file system take much longer: threads that
/// only yield would take the processors from the kernel and from file systems in user space.
const HELD_INTERVAL: Duration = Duration::from_micros(50);

/// Waits for threads that hold all candidates. `waits` counts the waits of this attempt.
fn wait_for_holders(waits: &mut u32) {
    if *waits < YIELDS {
        *waits += 1;
        std::thread::yield_now();
    } else {
        std::thread::sleep(HELD_INTERVAL);
    }
}

/// The parts of a set in a cyclic order that starts with one of them. A set in one directory is its only part.
#[derive(Clone, Copy)]
pub(super) struct PartRotation {
    pub(super) first: usize,
    pub(super) parts: usize,
    pub(super) from: usize,
}

impl PartRotation {
    #[inline]
    fn order(self) -> impl Iterator<Item = usize> {
        let wrapped = move |k| if k < self.parts { k } else { k - self.parts };
        (self.from..self.from + self.parts).map(move |k| self.first + wrapped(k))
    }
}

/// The result of one attempt in one part of a set.
pub(super) enum PickAttempt<T> {
    Found(T),
    /// There are candidates, and each is held by a step.
    Busy,
    /// There is no file in this state.
    Missing(Want),
}

impl PickAttempt<FileRef> {
    /// Converts the result of a pick in one part.
    #[inline]
    fn of(set: usize, want: Want, picked: Picked) -> Self {
        match picked {
            Picked::File(index) => Self::Found(FileRef { set, index }),
            Picked::AllBusy => Self::Busy,
            Picked::None => Self::Missing(want),
        }
    }
}

impl OpCx<'_> {
    /// Picks a file of a set. Waits if there is none at present and one can be made. Of a set in several directories
    /// each part is equally likely; if it has no candidate, the next part is tried. With `hold` the file stays busy
    /// until `State::release` or `State::set_exists`.
    ///
    /// Split for speed: the next file in the rotation of a set that is complete and not changed by the plan, which is
    /// the frequent case, is picked inline, with one comparison instead of a search. That took `statfile` from 320.8 to
    /// 308.8 instructions. `OpCx::pick_slow` handles the other rules, and `OpCx::pick_parts` sets in several parts
    /// and the wait; they are `#[inline(never)]`, so that steps contain neither.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what it does in most cases is less than a call")]
    pub fn pick(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<FileRef, Stop> {
        self.restamp();
        let view = &self.files.views[set];
        if want == Want::Existing
            && by == PickBy::Rotate
            && view.parts == 1
            && let Some(index) = view.set.state.files.next_if_full(&mut self.files.rotors[set])
        {
            return Ok(FileRef { set, index });
        }
        self.pick_slow(set, want, by, hold)
    }

    /// The slow half of [`OpCx::pick`]: one attempt with any rule in a set of one part.
    #[inline(never)]
    fn pick_slow(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<FileRef, Stop> {
        if self.files.views[set].parts == 1
            && let PickAttempt::Found(file) = self.try_part(set, want, by, hold)
        {
            return Ok(file);
        }
        self.pick_parts(set, want, by, hold)
    }

    /// Picks from any set, and waits if necessary.
    #[inline(never)]
    fn pick_parts(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<FileRef, Stop> {
        let (rotation, by) = self.rotation(set, by);
        self.seek(rotation, UnitKind::File, |cx, part| cx.try_part(part, want, by, hold))
    }

    /// Picks and holds two files of the same part: one that is absent, or exists, as `want` says, and another one that
    /// exists. A thread never waits for one while it holds the other, so that two threads cannot wait for each other.
    /// With `number` the second file is the one with this number, and the first is the one that follows it by as many
    /// files as exist.
    pub(crate) fn pick_pair(
        &mut self,
        set: usize,
        want: Want,
        number: Option<u64>,
    ) -> Result<(FileRef, FileRef), Stop> {
        self.restamp();
        let (rotation, by) = self.rotation(set, number.map_or(PickBy::Rotate, PickBy::Index));
        let least = if want == Want::Existing { 2 } else { 1 };
        self.seek(rotation, UnitKind::File, |cx, part| {
            // Check before a file is held: releasing a file that was held is a change, which wakes all threads that
            // wait here.
            let existing = cx.files.views[part].set.state.files.n_existing();
            if existing < least {
                return PickAttempt::Missing(Want::Existing);
            }
            let behind = match by {
                PickBy::Index(n) => PickBy::Index(n + existing),
                by => by,
            };
            let first = match cx.try_part(part, want, behind, true) {
                PickAttempt::Found(first) => first,
                PickAttempt::Busy => return PickAttempt::Busy,
                PickAttempt::Missing(want) => return PickAttempt::Missing(want),
            };
            let lacking = match cx.try_part(part, Want::Existing, by, true) {
                PickAttempt::Found(second) => return PickAttempt::Found((first, second)),
                PickAttempt::Busy => PickAttempt::Busy,
                PickAttempt::Missing(want) => PickAttempt::Missing(want),
            };
            cx.release(first);
            lacking
        })
    }

    /// Releases a picked file unchanged. Returns whether this wrote to shared memory.
    #[inline]
    pub fn release(&self, file: FileRef) -> bool {
        self.files.views[file.set].set.state.release(file.index)
    }

    /// Picks and holds an empty directory of a set, with the same rules for waiting.
    pub(crate) fn pick_leaf(&mut self, set: usize, want: Want, by: PickBy) -> Result<FileRef, Stop> {
        self.restamp();
        let (rotation, by) = self.rotation(set, by);
        let found = self.seek(rotation, UnitKind::LeafDir, |cx, part| {
            let how = match by {
                PickBy::Index(n) => How::Index(n),
                _ => How::Rotate(&mut cx.files.leaf_rotors[part]),
            };
            PickAttempt::of(part, want, cx.files.views[part].set.state.leafdirs.pick(want, how, true))
        })?;
        self.files.located = Some(found);
        Ok(found)
    }

    /// Returns a random part of a set, regardless of its files.
    #[inline]
    pub(crate) fn any_part(&mut self, set: usize) -> usize {
        match self.files.views[set].parts {
            1 => set,
            parts => set + random::below(&mut self.rng, parts as u64) as usize,
        }
    }

    /// Returns the order of the parts to try, and the rule for the pick there.
    #[inline]
    pub(super) fn rotation(&mut self, set: usize, by: PickBy) -> (PartRotation, PickBy) {
        let parts = self.files.views[set].parts;
        if parts == 1 {
            return (PartRotation { first: set, parts, from: 0 }, by);
        }
        match by {
            // Files are numbered across the parts: 0 in the first part, 1 in the second, and so on, cyclically.
            PickBy::Index(n) => {
                (PartRotation { first: set, parts, from: n as usize % parts }, PickBy::Index(n / parts as u64))
            }
            // Each part has its share of the newest files.
            PickBy::Recent(n) => {
                let from = self.any_part(set) - set;
                (PartRotation { first: set, parts, from }, PickBy::Recent(n / parts as u64))
            }
            _ => (PartRotation { first: set, parts, from: self.any_part(set) - set }, by),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "called with constants")]
    pub(super) fn try_part(&mut self, part: usize, want: Want, by: PickBy, hold: bool) -> PickAttempt<FileRef> {
        let how = match by {
            PickBy::Own if want == Want::Existing => How::Own(&mut self.files.own[part]),
            PickBy::Rotate | PickBy::Own => How::Rotate(&mut self.files.rotors[part]),
            PickBy::Index(n) => How::Index(n),
            PickBy::Uniform(bits) => How::Uniform(bits),
            PickBy::Recent(distance) => How::Behind(distance),
        };
        PickAttempt::of(part, want, self.files.views[part].set.state.pick(want, how, hold))
    }

    /// Tries one part after the other until an attempt succeeds; waits if none does.
    ///
    /// Split for speed: the first round of attempts is inlined with its closure; the wait is in `OpCx::seek_slow`,
    /// which is `#[cold]`.
    #[inline]
    pub(super) fn seek<T>(
        &mut self,
        rotation: PartRotation,
        kind: UnitKind,
        mut attempt: impl FnMut(&mut Self, usize) -> PickAttempt<T>,
    ) -> Result<T, Stop> {
        for part in rotation.order() {
            if let PickAttempt::Found(found) = attempt(self, part) {
                return Ok(found);
            }
        }
        self.seek_slow(rotation, kind, attempt)
    }

    /// The slow half of [`OpCx::seek`]: tries the parts again after each change, until one has a candidate or no maker
    /// is left.
    #[cold]
    fn seek_slow<T>(
        &mut self,
        rotation: PartRotation,
        kind: UnitKind,
        mut attempt: impl FnMut(&mut Self, usize) -> PickAttempt<T>,
    ) -> Result<T, Stop> {
        let since = self.env.clock.raw();
        let views = self.files.views;
        let members = |part: usize| -> &Members {
            let state = &views[part].set.state;
            if kind == UnitKind::File { &state.files } else { &state.leafdirs }
        };
        let epochs = || rotation.order().fold(0, |sum: u32, part| sum.wrapping_add(members(part).epoch()));
        let poll_interval = if rotation.parts == 1 { POLL_INTERVAL } else { POLL_INTERVAL_PARTS };
        let (mut starving, mut waits) = (false, 0);
        // Time without a running maker and without a change.
        let mut without_maker = Duration::ZERO;
        let result = 'found: loop {
            // Read the epochs before the attempts, so that a change after an attempt ends the sleep at once.
            let (epoch, all) = (members(rotation.first).epoch(), epochs());
            let mut lacking = (rotation.first, Want::Existing);
            let (mut busy, mut planned, mut live) = (false, false, false);
            for part in rotation.order() {
                match attempt(self, part) {
                    PickAttempt::Found(found) => break 'found Ok(found),
                    PickAttempt::Busy => busy = true,
                    PickAttempt::Missing(want) => {
                        let state = maker(kind, want);
                        planned |= views[part].planned[state];
                        live |= views[part].makers.live[state].load(SeqCst) > 0;
                        lacking = (part, want);
                    }
                }
            }
            if busy {
                wait_for_holders(&mut waits);
            } else if !planned {
                break Err(StopReason::Exhausted.into());
            } else {
                if !starving {
                    starving = true;
                    self.files.starvation.begin(views);
                }
                members(rotation.first).wait_change(epoch, poll_interval);
                // A maker whose wait has just ended counts as waiting until it runs. So the thread is stuck only if
                // nothing changes for some time.
                without_maker = if live || epochs() != all { Duration::ZERO } else { without_maker + poll_interval };
            }
            if self.env.gate.is_stopped() || self.expired() {
                break Err(Stop::over());
            }
            if without_maker > STUCK_AFTER {
                break Err(StopReason::Stuck(self.starved_out(lacking.0, lacking.1, kind)).into());
            }
        };
        if starving {
            self.files.starvation.end(views);
        }
        let waited = self.env.clock.ns(since, self.env.clock.raw());
        self.account.starved += waited;
        self.cell().add(FlowopCounter::StarvedTime, waited);
        result
    }

    /// Returns the failure of a thread that is stuck.
    fn starved_out(&self, set: usize, want: Want, kind: UnitKind) -> OpFailure {
        let name = &self.files.views[set].set.spec.name;
        let thing = if kind == UnitKind::File { "file" } else { "directory" };
        let (state, other) = match want {
            Want::Existing => ("existing", "make"),
            Want::Absent => ("free", "remove"),
        };
        OpFailure {
            what: format!(
                "file set `{name}` has no {state} {thing} left, and each thread that could {other} one has ended or waits \
                 itself"
            ),
            path: None,
            errno: None,
            help: "give the file set more `entries`, or another `prealloc`".to_owned(),
            flowop: None,
        }
    }

    /// Holds this file, and no other; waits while another step holds it. Returns false if it does not exist.
    pub(crate) fn hold_existing(&self, file: FileRef) -> Result<bool, Stop> {
        let state = &self.files.views[file.set].set.state;
        let mut waits = 0;
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
            wait_for_holders(&mut waits);
        }
    }
}
