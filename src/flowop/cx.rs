//! Where an operation meets its thread: the engine, the clock, files, buffers, random numbers, counters.
//!
//! Time is the call's, not the tool's: [`OpCx::begin`] starts it, [`OpCx::end`] ends it and counts. Between two calls that lie
//! close together the end of the first serves as the start of the second, and one reading of the clock is saved; after
//! anything dearer than a draw ([`OpCx::digress`]) the clock is read again and the time between goes to the tool's account.

use super::buffer::IoBuffer;
use super::slots::{FileRef, Slots};
use super::{Failure, Kind, Outcome};
use crate::engine::{Engine, Handle};
use crate::fileset::dirs::{Dirs, ThreadDirs};
use crate::fileset::{Fileset, How, Members, Name, OwnRotor, Picked, Rotor, Want};
use crate::random::Rng;
use crate::stats::recorder::{Cell, ThreadStats};
use crate::sync::{EventPool, Gate};
use crate::sys::{Clock, Errno, Fd, errno_text};
use rustix::fs::OFlags;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Directories that a thread keeps open of a set whose directories are too many for the process.
const OWN_DIRS: usize = 64;

/// A file set as one process sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// The set, shared by all.
    pub set: Arc<Fileset>,
    /// The live threads that bring about each state and are not starved themselves.
    pub makers: Arc<Makers>,
}

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

/// What a thread's operations work with.
pub struct OpCx<'r> {
    /// Makes the calls.
    pub engine: &'r dyn Engine,
    /// Tells the time.
    pub clock: &'r Clock,
    /// The run's start and end.
    pub gate: &'r Gate,
    /// The event generator.
    pub events: &'r EventPool,
    /// The thread's random numbers.
    pub rng: Rng,
    /// The thread's counters.
    pub stats: &'r ThreadStats,
    /// The file sets.
    pub views: &'r [View],
    /// The process's directory descriptors, for each set that it works on.
    pub dirs: &'r [Option<Dirs>],
    /// The thread's part of them.
    pub thread_dirs: Vec<ThreadDirs>,
    /// The thread's file slots.
    pub slots: Slots,
    /// The thread's I/O buffer.
    pub buffer: IoBuffer,
    /// The thread's hold on each set's shared rotors.
    pub rotors: Vec<Rotor>,
    /// The same for leaf directories.
    pub leaf_rotors: Vec<Rotor>,
    /// The thread's own rotors, for `opennext`.
    pub own: Vec<OwnRotor>,
    /// What the thread makes.
    pub starvation: Starvation,
    /// The asynchronous operations that the thread has out, if its program has any.
    pub aio: Option<super::aio::Outstanding>,
    /// Where `print` goes.
    pub messages: Option<crossbeam::channel::Sender<String>>,
    /// The offset used last, for `reoffset`.
    pub last_offset: u64,
    /// The place of the flowop that is running among the thread's.
    pub current: usize,
    /// Its counters.
    cell: &'r Cell,
    /// In an open loop, while an I/O flowop runs: the intended start of its round, in ticks; else 0.
    pub intended: u64,
    /// How long after that the round began, in nanoseconds.
    pub lateness: u64,
    /// When the last call ended.
    last: u64,
    /// When this call started.
    started: u64,
    /// Whether `last` may serve as the start of the next call.
    fresh: bool,
    /// Nanoseconds starved since `last`.
    starved: u64,
}

/// The parts of a context that are made before its thread runs.
pub struct Parts<'r> {
    /// See [`OpCx`].
    pub engine: &'r dyn Engine,
    /// See [`OpCx`].
    pub gate: &'r Gate,
    /// See [`OpCx`].
    pub events: &'r EventPool,
    /// See [`OpCx`].
    pub rng: Rng,
    /// See [`OpCx`].
    pub stats: &'r ThreadStats,
    /// See [`OpCx`].
    pub views: &'r [View],
    /// See [`OpCx`].
    pub dirs: &'r [Option<Dirs>],
    /// See [`OpCx`].
    pub slots: Slots,
    /// See [`OpCx`].
    pub buffer: IoBuffer,
    /// See [`OpCx`].
    pub starvation: Starvation,
    /// See [`OpCx`].
    pub aio: Option<super::aio::Outstanding>,
    /// See [`OpCx`].
    pub messages: Option<crossbeam::channel::Sender<String>>,
}

impl<'r> OpCx<'r> {
    /// A context, ready for [`OpCx::go`].
    pub fn new(parts: Parts<'r>) -> Self {
        let rotors = parts.views.iter().map(|_| Rotor::default()).collect();
        let own = parts.views.iter().map(|_| OwnRotor::default()).collect();
        let places = |d: &Option<Dirs>| if d.as_ref().is_some_and(|d| !d.is_shared()) { OWN_DIRS } else { 0 };
        let thread_dirs = parts.dirs.iter().map(|d| ThreadDirs::new(places(d))).collect();
        Self {
            engine: parts.engine,
            clock: Clock::get(),
            gate: parts.gate,
            events: parts.events,
            rng: parts.rng,
            stats: parts.stats,
            views: parts.views,
            dirs: parts.dirs,
            thread_dirs,
            slots: parts.slots,
            buffer: parts.buffer,
            rotors,
            leaf_rotors: parts.views.iter().map(|_| Rotor::default()).collect(),
            own,
            starvation: parts.starvation,
            aio: parts.aio,
            messages: parts.messages,
            last_offset: 0,
            current: 0,
            intended: 0,
            lateness: 0,
            cell: parts.stats.cell(0),
            last: 0,
            started: 0,
            fresh: false,
            starved: 0,
        }
    }

    /// The gate has opened.
    pub fn go(&mut self) {
        self.last = self.clock.raw();
        self.fresh = true;
    }

    /// When the last call ended, in ticks.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The counters of the flowop that is running.
    #[inline]
    pub fn cell(&self) -> &'r Cell {
        self.cell
    }

    /// Another flowop runs from now on.
    #[inline]
    pub fn turn_to(&mut self, flowop: usize) {
        self.current = flowop;
        self.cell = self.stats.cell(flowop);
    }

    /// A call starts.
    #[inline]
    pub fn begin(&mut self) {
        if self.fresh {
            self.started = self.last;
        } else {
            self.begin_now();
        }
    }

    fn begin_now(&mut self) {
        self.started = self.clock.raw();
        let tool = self.clock.ns(self.last, self.started).saturating_sub(self.starved);
        self.cell().tool(tool);
        self.starved = 0;
    }

    /// The operation ends: it is counted, and so is what it moved.
    #[inline]
    pub fn end(&mut self, bytes: u64) -> Outcome {
        let now = self.clock.raw();
        self.last = now;
        self.fresh = true;
        if now <= self.gate.deadline() {
            self.cell().record(self.clock.ns(self.started, now), bytes);
            if self.intended > 0 {
                self.cell().record_response(self.clock.ns(self.intended, now), self.lateness);
            }
            Outcome::Ok
        } else {
            self.cell().record_late(bytes);
            Outcome::Over
        }
    }

    /// The tool does something dearer than a draw: the next call's start is read from the clock.
    #[inline]
    pub fn digress(&mut self) {
        self.fresh = false;
    }

    /// Nothing was done: neither counted nor timed. What follows starts anew.
    pub fn skip(&mut self) -> Outcome {
        self.last = self.clock.raw();
        self.fresh = true;
        if self.last <= self.gate.deadline() { Outcome::Ok } else { Outcome::Over }
    }

    /// An operation failed, and errors are only counted: whether to go on.
    #[cold]
    pub fn skip_after_error(&mut self) -> bool {
        matches!(self.skip(), Outcome::Ok)
    }

    /// Whether the run is over: for steps of many calls, between them.
    #[inline]
    pub fn expired(&self) -> bool {
        self.clock.raw() > self.gate.deadline()
    }

    /// A call of the current operation failed.
    #[cold]
    pub fn failed(&mut self, what: &str, errno: Errno, file: Option<FileRef>) -> Outcome {
        let number = errno.raw_os_error();
        self.cell().error(number);
        self.digress();
        self.last = self.clock.raw();
        Outcome::Failed(Box::new(Failure {
            what: format!("{what}: {}", errno_text(number)),
            path: file.map(|f| self.path(f)),
            errno: Some(number),
            help: advice(errno).to_owned(),
        }))
    }

    /// The operation can't be done as the script stands.
    #[cold]
    pub fn misuse(&mut self, what: impl Into<String>, help: &str) -> Outcome {
        self.cell().error(0);
        Outcome::Failed(Box::new(Failure { what: what.into(), path: None, errno: None, help: help.to_owned() }))
    }

    /// The path of a file.
    pub fn path(&self, file: FileRef) -> String {
        self.views[file.set].set.path_of(file.index).display().to_string()
    }

    /// Picks a file of a set; waits if there is none now and there may be one later.
    /// With `hold` the file stays busy until `State::release` or `State::set_exists`.
    #[inline]
    pub fn pick(&mut self, set: usize, want: Want, by: PickBy, hold: bool) -> Result<u64, Outcome> {
        self.digress();
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
        match self.views[set].set.state.leafdirs.pick(want, How::Rotate(&mut self.leaf_rotors[set]), true) {
            Picked::File(index) => Ok(index),
            Picked::AllBusy | Picked::None => self.pick_slow(set, want, PickBy::Rotate, true, Kind::LeafDir),
        }
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
                    if makers.live[made].load(SeqCst) == 0 {
                        // One more look: the last maker may have made one before it left.
                        if members.epoch() == epoch {
                            break Err(Outcome::Stuck(Box::new(self.starved_out(set, want, kind))));
                        }
                        continue;
                    }
                    members.wait_change(epoch, Duration::from_millis(50));
                }
            }
            if self.gate.is_stopped() || self.expired() {
                break Err(Outcome::Over);
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
        }
    }

    /// The directory descriptor and the last name of a file.
    #[inline]
    pub fn locate(&mut self, file: FileRef) -> Result<(Fd, Name), Outcome> {
        let tree = &self.views[file.set].set.tree;
        let dir = tree.dir_of(file.index);
        let name = tree.name(file.index);
        match self.dir(file.set, dir) {
            Ok(fd) => Ok((fd, name)),
            Err(errno) => Err(self.failed("opening the directory", errno, Some(file))),
        }
    }

    /// The descriptor of a directory of a set.
    #[inline]
    pub fn dir(&mut self, set: usize, dir: u64) -> Result<Fd, Errno> {
        match &self.dirs[set] {
            Some(dirs) => dirs.dir(dir, &mut self.thread_dirs[set]),
            None => Ok(crate::sys::NONE),
        }
    }

    /// The descriptors of two directories of a set, both good at once, to be given back with [`OpCx::close_pair`].
    pub fn dir_pair(&mut self, set: usize, one: u64, other: u64) -> Result<(Fd, Fd), Errno> {
        let first = self.dir(set, one)?;
        if !self.keeps_few(set) {
            return Ok((first, self.dir(set, other)?));
        }
        // A thread that keeps few directories may put the second in the place of the first, and close that.
        let first = crate::sys::fd::duplicate(first)?;
        self.dir(set, other).map(|second| (first, second)).inspect_err(|_| crate::sys::fd::close(first))
    }

    /// The calls on a pair of directories are done.
    pub fn close_pair(&self, set: usize, pair: (Fd, Fd)) {
        if self.keeps_few(set) {
            crate::sys::fd::close(pair.0);
        }
    }

    /// Whether the thread has directories of its own of that set, and not all of them at once.
    fn keeps_few(&self, set: usize) -> bool {
        self.dirs[set].as_ref().is_some_and(|dirs| !dirs.is_shared())
    }

    /// Takes a file that exists, and no other: false if it does not exist or someone else works on it.
    pub fn hold_existing(&self, file: FileRef) -> bool {
        let state = &self.views[file.set].set.state;
        match state.pick(Want::Existing, How::Index(file.index), true) {
            Picked::File(index) if index == file.index => true,
            Picked::File(other) => {
                state.release(other);
                false
            }
            Picked::AllBusy | Picked::None => false,
        }
    }

    /// Opens a picked file into a slot. Time must be running. The pick is released by the caller.
    #[inline]
    pub fn open(&mut self, slot: usize, file: FileRef, flags: OFlags, readahead: bool) -> Result<(), Outcome> {
        let nominal = self.views[file.set].set.tree.size_of(file.index);
        let (dir, name) = self.locate(file)?;
        self.begin();
        match self.engine.open(dir, name.as_c(), flags, nominal) {
            Ok(handle) => {
                self.slots.fill(slot, handle, file, nominal);
                if !readahead {
                    let _ = self.engine.no_readahead(&handle);
                    self.cell().add_calls(1);
                }
                Ok(())
            }
            Err(errno) => Err(self.failed("open failed", errno, Some(file))),
        }
    }

    /// An implicit open has ended: counted apart from the operation that caused it.
    #[inline]
    pub fn end_open(&mut self) -> Result<(), Outcome> {
        let now = self.clock.raw();
        self.last = now;
        self.fresh = true;
        if now <= self.gate.deadline() {
            self.cell().record_open(self.clock.ns(self.started, now));
            Ok(())
        } else {
            self.cell().record_late(0);
            Err(Outcome::Over)
        }
    }

    /// The open file of a slot.
    #[inline]
    pub fn handle(&mut self, slot: usize) -> Option<&mut Handle> {
        self.slots.get_mut(slot).handle.as_mut()
    }

    /// A message of `print`, on its way to whoever shows messages.
    #[cold]
    pub fn say(&self, ordinal: usize, text: &str) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(format!("message from instance {}: {text}", ordinal + 1));
        }
    }

    /// Waits for what is out and closes whatever is open: the thread ends.
    pub fn close_all(&mut self) {
        if let Some(mut aio) = self.aio.take() {
            aio.drain(self);
        }
        for slot in 0..self.slots.len() {
            // What a buffered writer still had is written, as by a program that ends; nobody counts it any more.
            let _ = super::buffered::flush(self, slot);
            if let Some(handle) = self.slots.get(slot).handle {
                self.engine.close(handle);
            }
        }
        self.slots = Slots::new(0, 0);
        self.thread_dirs.iter_mut().for_each(ThreadDirs::close_all);
    }

    /// Nanoseconds since the last call ended, for steps that wait.
    pub fn since_last(&self) -> u64 {
        self.clock.ns(self.last, self.clock.raw())
    }
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

/// What to do about an error number.
fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => "make the file sets smaller, or give `--dir` a file system with more room",
        Errno::DQUOT => "the user's quota is used up",
        Errno::MFILE | Errno::NFILE => "raise the limit of open files (`ulimit -n`)",
        Errno::INVAL => "direct I/O needs sizes and offsets that are multiples of the device's block size",
        Errno::FBIG => "the file would pass the largest size of the file system: give the writer `wrap=`",
        Errno::IO => "the device reported an error: look into the kernel's log",
        Errno::ROFS => "the file system is mounted read-only",
        Errno::ACCESS | Errno::PERM => "the file or directory may not be used by this user",
        Errno::NOENT => "something other than this run removed a file of the set",
        Errno::EXIST => "something other than this run made a file where the set has one",
        Errno::BADF => "the file is open in the other direction: look at `readonly` and `writeonly` of its file set",
        _ => "`--on-error count` goes on and counts such errors",
    }
}
