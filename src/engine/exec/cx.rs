//! The context of a thread's operations: engine, clock, files, buffers, random numbers and counters.
//!
//! A latency is the time of the system call, without the time of the program itself: [`OpCx::begin`] starts it,
//! [`OpCx::end`] ends it and counts the operation. Between two calls that follow each other closely, the end of the
//! first is the start of the second, which saves one reading of the clock. After anything more expensive than drawing a
//! random number ([`OpCx::restamp`]) the clock is read again, and the time between counts as the program's own.
//!
//! Functions named `_fast` and `_slow` are halves of one operation, split so that the frequent case is inlined into the
//! step and short. The step of changes that made the end of an operation such a half took a random read from 273 to 218
//! instructions. `#[cold]` marks failures and the end of a run, which happen a few times per thread at most: the compiler
//! then places that code away from the loop and arranges branches for the other case.

use super::buffer::IoBuffer;
use super::buffered;
use super::messages::Messages;
use super::sink::Sink;
use super::slots::{FileRef, Slots};
use super::starvation::{Starvation, View};
use super::trace::Stream;
use super::{OpFailure, Outstanding, Stop, StopReason};
use crate::disk::dirs::{Dirs, ThreadDirs};
use crate::fileset::{Name, OwnRotor, Rotor};
use crate::io_engine::{self, Engine, Handle};
use crate::random::Rng;
use crate::stats::recorder::{Cell, ThreadStats};
use crate::sync::{EventPool, Gate, GatherGuard, Gathering, Stopped};
use wml_os::{self as os, Clock, Errno, Fd, Scale};
use wml_os::{Advice, OFlags, range};
use wml_result::FlowopCounter;

/// Number of directories that a thread keeps open, of a set that has more directories than the process can keep open.
const OWN_DIRS: usize = 64;

/// Maximum time for which a file that was checked is not checked again. The actual period is the largest power of two
/// in ticks below this, so it may be half as long.
const PERIOD_NS: u64 = 1_000_000_000;

/// The parts that all threads of a run share.
#[derive(Clone, Copy, Debug)]
pub struct RunEnv<'r> {
    /// Makes the system calls.
    pub engine: &'r dyn Engine,
    pub clock: &'r Clock,
    /// The start and the deadline of the run.
    pub gate: &'r Gate,
    /// The event generator.
    pub events: &'r EventPool,
    /// The queue for the messages of `print`.
    pub messages: Option<&'r Messages>,
    pub seed: u64,
    /// The number of the thread's process instance, from 0.
    pub instance: usize,
    /// Whether failed operations are only counted, so that the run continues.
    pub count_errors: bool,
}

/// The state of a thread in the file sets: directories, rotors, files that the thread makes.
#[derive(Debug)]
pub struct ThreadFiles<'r> {
    /// The file sets.
    pub views: &'r [View],
    /// The process's directory descriptors, for each set that it works on.
    pub(super) dirs: &'r [Option<Dirs>],
    /// The thread's own directory descriptors.
    thread_dirs: Vec<ThreadDirs>,
    /// The positions that the thread has claimed in each set's shared rotation.
    pub(super) rotors: Vec<Rotor>,
    /// The same for the leaf directories of each set.
    pub(super) leaf_rotors: Vec<Rotor>,
    /// The thread's own rotations, for `opennext`.
    pub(super) own: Vec<OwnRotor>,
    /// The states of files that the thread makes.
    pub starvation: Starvation,
    /// The file or directory that was located by name last.
    pub(super) located: Option<FileRef>,
    /// Whether the engine works on real files. A byte here instead of a lookup in `dirs` saves an instruction per
    /// flowop of varmail on the null engine.
    pub(super) has_disk: bool,
    /// The number of bits by which ticks are shifted to get the number of a period in which a file is checked once.
    pub(super) period_shift: u32,
}

impl<'r> ThreadFiles<'r> {
    /// Returns the state before the first operation.
    pub fn new(views: &'r [View], dirs: &'r [Option<Dirs>], starvation: Starvation) -> Self {
        let capacity = |d: &Option<Dirs>| if d.as_ref().is_some_and(|d| !d.is_shared()) { OWN_DIRS } else { 0 };
        Self {
            views,
            dirs,
            thread_dirs: dirs.iter().map(|d| ThreadDirs::new(capacity(d))).collect(),
            rotors: views.iter().map(|_| Rotor::default()).collect(),
            leaf_rotors: views.iter().map(|_| Rotor::default()).collect(),
            own: views.iter().map(|_| OwnRotor::default()).collect(),
            starvation,
            located: None,
            has_disk: dirs.iter().any(Option::is_some),
            period_shift: Clock::get().ticks(PERIOD_NS).max(1).ilog2(),
        }
    }
}

/// The open files and the data of a thread.
#[derive(Debug)]
pub struct ThreadIo {
    /// The file slots.
    pub slots: Slots,
    /// The I/O buffer.
    pub buffer: IoBuffer,
    /// The asynchronous operations in flight, if the thread's program has asynchronous flowops.
    pub aio: Option<Outstanding>,
    /// The receiver of `sendfile`.
    pub sink: Sink,
    /// The offset of the last transfer, for `reoffset`.
    pub last_offset: u64,
    /// The starts of what `measure=` measures, in ticks, by the number of the row in the thread. Empty if nothing is
    /// measured.
    pub starts: Box<[u64]>,
}

impl ThreadIo {
    /// Returns the state before the first operation.
    pub fn new(slots: Slots, buffer: IoBuffer, aio: Option<Outstanding>, sink: Sink) -> Self {
        Self { slots, buffer, aio, sink, last_offset: 0, starts: Box::default() }
    }
}

/// The counters and times of a thread.
#[derive(Debug)]
pub struct Account<'r> {
    /// The thread's counters.
    pub stats: &'r ThreadStats,
    /// The record of the thread's operations, if one is requested.
    pub stream: Option<Box<Stream>>,
    /// In an open loop, while an I/O flowop runs: the intended start of its iteration, in ticks; else 0. See
    /// `OpCx::set_intended_start`.
    pub intended: u64,
    /// The delay of the start of the iteration after its intended start, in nanoseconds.
    pub lateness: u64,
    /// The tick at which the thread started; in an open loop, its iteration.
    pub started: u64,
    /// The counters of the current flowop.
    pub(super) cell: &'r Cell,
    /// The tick at which the last call ended; while a call runs, the tick at which it started.
    pub(super) last: u64,
    /// Whether `last` can be used as the start of the next call.
    fresh: bool,
    /// Whether the end of an operation only reads the processor's counter and updates the cell; see [`OpCx::end_fast`].
    plain: bool,
    /// Time starved since `last`, in nanoseconds.
    pub(super) starved: u64,
    /// The scale of the clock.
    scale: Scale,
}

impl<'r> Account<'r> {
    /// Returns an account in which nothing is counted.
    pub fn new(stats: &'r ThreadStats, stream: Option<Box<Stream>>) -> Self {
        Self {
            stats,
            stream,
            intended: 0,
            lateness: 0,
            started: 0,
            cell: stats.cell(0),
            last: 0,
            fresh: false,
            plain: false,
            starved: 0,
            scale: Clock::get().scale(),
        }
    }
}

/// The context of a thread's operations.
#[derive(Debug)]
pub struct OpCx<'r> {
    /// The parts that all threads share.
    pub env: RunEnv<'r>,
    /// The state of the thread in the file sets.
    pub files: ThreadFiles<'r>,
    /// The open files and the data of the thread.
    pub io: ThreadIo,
    /// The thread's random numbers.
    pub rng: Rng,
    /// The counters and times of the thread.
    pub account: Account<'r>,
    /// Held while it executes a composite with `group`.
    pub(crate) gathering: Option<GatherGuard<'r>>,
}

impl<'r> OpCx<'r> {
    /// Returns a context; [`OpCx::start`] is to be called next.
    pub fn new(env: RunEnv<'r>, files: ThreadFiles<'r>, io: ThreadIo, rng: Rng, account: Account<'r>) -> Self {
        Self { env, files, io, rng, account, gathering: None }
    }

    /// Starts the thread's time after the gate has opened, and the time of each iteration of an open loop.
    pub fn start(&mut self) {
        self.account.last = self.env.clock.raw();
        self.account.started = self.account.last;
        self.account.fresh = true;
        self.set_intended_start(0);
    }

    /// Sets the intended start of the operations that follow, in ticks, in an open loop. 0 means that they have no
    /// intended start.
    #[inline]
    pub(crate) fn set_intended_start(&mut self, tick: u64) {
        self.account.intended = tick;
        self.account.plain = tick == 0 && self.account.stream.is_none() && self.env.clock.is_counter();
    }

    /// Returns the tick at which the last call ended.
    pub fn last(&self) -> u64 {
        self.account.last
    }

    /// Returns the counters of the current flowop.
    #[inline]
    pub fn cell(&self) -> &'r Cell {
        self.account.cell
    }

    /// Makes the flowop with these counters the current one. The counters are prefetched: they are needed when the call
    /// has ended, and by then they are in the processor's cache again, even if other threads had evicted them.
    #[inline]
    pub(crate) fn switch_to(&mut self, cell: &'r Cell) {
        os::prefetch(cell);
        self.account.cell = cell;
    }

    /// Returns the index of the current flowop in the thread.
    pub fn current(&self) -> usize {
        self.account.stats.index_of(self.account.cell)
    }

    /// Sets the start of the operation that ends next, in ticks.
    pub(crate) fn begin_at(&mut self, tick: u64) {
        self.account.last = tick;
        self.account.fresh = false;
    }

    /// Starts a call: its time begins.
    ///
    /// Split for speed: if the end of the last call can serve as the start of this one, which is the frequent case,
    /// this is one comparison inline. `OpCx::begin_slow` reads the clock; `#[inline(never)]` keeps it out of every
    /// step.
    #[inline]
    pub fn begin(&mut self) {
        if !self.account.fresh {
            self.begin_slow();
        }
    }

    /// The slow half of [`OpCx::begin`]: reads the clock, and counts the time since the last call as the program's own.
    #[inline(never)]
    fn begin_slow(&mut self) {
        let now = self.env.clock.raw();
        let since = std::mem::replace(&mut self.account.last, now);
        let starved = std::mem::take(&mut self.account.starved);
        self.account.cell.add(FlowopCounter::ToolTime, self.env.clock.ns(since, now).saturating_sub(starved));
    }

    /// Ends the operation and counts it with the bytes that it moved. `Err` when it ended after the deadline.
    pub fn end(&mut self, bytes: u64) -> Result<(), Stop> {
        self.end_fast(bytes)
    }

    /// Does the same as [`OpCx::end`], inlined, for the shortest steps.
    ///
    /// Split for speed: where the clock is the processor's counter, the thread is not in an open loop and no stream is
    /// recorded (`plain`), this calls no function, so that a step needs no stack frame for it. `OpCx::end_slow`
    /// handles all other cases.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the call is what the fast path saves")]
    pub(crate) fn end_fast(&mut self, bytes: u64) -> Result<(), Stop> {
        if !self.account.plain {
            return self.end_slow(bytes);
        }
        let now = self.env.clock.counter();
        let started = std::mem::replace(&mut self.account.last, now);
        self.account.fresh = true;
        if now > self.env.gate.deadline() {
            return self.end_late(started, bytes);
        }
        self.account.cell.record(self.account.scale.ns(started, now), bytes);
        Ok(())
    }

    /// Counts an operation that started at a tick and ended after the deadline.
    #[cold]
    fn end_late(&self, started: u64, bytes: u64) -> Result<(), Stop> {
        self.account.cell.record_late(self.env.clock.ns(started, self.env.gate.deadline()), bytes);
        Err(Stop::over())
    }

    /// Ends an operation of an open loop, of a thread with a stream, or with a clock other than the processor's
    /// counter.
    ///
    /// `#[inline(never)]`: it makes calls, so that inlined it would spill registers in the fast path too.
    #[inline(never)]
    fn end_slow(&mut self, bytes: u64) -> Result<(), Stop> {
        let now = self.env.clock.raw();
        let started = std::mem::replace(&mut self.account.last, now);
        self.account.fresh = true;
        if now <= self.env.gate.deadline() {
            self.cell().record(self.env.clock.ns(started, now), bytes);
            if self.account.intended > 0 {
                self.cell().record_response(self.env.clock.ns(self.account.intended, now), self.account.lateness);
            }
            if self.account.stream.is_some() {
                self.record_in_stream(bytes);
            }
            Ok(())
        } else {
            self.end_late(started, bytes)
        }
    }

    /// Adds an operation to the thread's stream: when it is counted, or, if it is counted later, when it is submitted.
    #[cold]
    pub(crate) fn record_in_stream(&mut self, bytes: u64) {
        let place = buffered::place(&self.io.slots);
        let slot = self.io.slots.take_last();
        let file = self.files.located.take().or(slot);
        if let Some(stream) = &mut self.account.stream {
            let flowop = self.account.stats.index_of(self.account.cell);
            // A buffered flowop leaves its place behind what it has moved.
            let buffered = place.filter(|_| stream.is_buffered(flowop)).map(|end| end.saturating_sub(bytes));
            stream.push(flowop, file, buffered.unwrap_or(self.io.last_offset), bytes);
            self.restamp();
        }
    }

    /// Notes that the program did something more expensive than drawing a random number: the start of the next call is
    /// read from the clock.
    #[inline]
    pub fn restamp(&mut self) {
        self.account.fresh = false;
    }

    /// Ends an operation that did nothing: it is neither counted nor timed, and the next call starts now. `Err` when
    /// the run is over.
    pub fn skip(&mut self) -> Result<(), Stop> {
        self.account.last = self.env.clock.raw();
        self.account.fresh = true;
        if self.account.last <= self.env.gate.deadline() { Ok(()) } else { Err(Stop::over()) }
    }

    /// Joins a group: returns true if this thread is to execute the composite, false if another thread has for it. The
    /// wait is part of no flowop. `Err` when the run is over.
    pub(crate) fn gather(&mut self, group: &'r Gathering) -> Result<bool, Stop> {
        let executes = match group.begin().map_err(|Stopped| Stop::over())? {
            None => true,
            Some(wanted) => {
                // Meanwhile it makes no file that the thread which executes may need.
                self.files.starvation.begin(self.files.views);
                let executes = group.wait(wanted);
                self.files.starvation.end(self.files.views);
                executes.map_err(|Stopped| Stop::over())?
            }
        };
        self.gathering = executes.then(|| GatherGuard::new(group));
        self.skip()?;
        Ok(executes)
    }

    /// Continues after a failed operation if errors are only counted. Returns false when the run is over.
    #[cold]
    pub(crate) fn skip_after_error(&mut self) -> bool {
        self.skip().is_ok()
    }

    /// True if the run is over. For steps with many calls, to be checked between them.
    #[inline]
    pub(crate) fn expired(&self) -> bool {
        self.env.clock.raw() > self.env.gate.deadline()
    }

    /// Counts the bytes that the current operation has moved although it is about to fail.
    #[cold]
    pub fn moved(&self, bytes: u64) {
        if self.expired() {
            self.account.cell.add(FlowopCounter::LateBytes, bytes);
        } else {
            self.account.cell.add_bytes(bytes);
        }
    }

    pub fn path(&self, file: FileRef) -> String {
        self.files.views[file.set].set.path_of(file.index).display().to_string()
    }

    /// Returns the directory descriptor and the last component of a file's path.
    #[inline]
    pub(crate) fn locate(&mut self, file: FileRef) -> Result<(Fd, Name), Stop> {
        let mut name = Name::default();
        self.locate_fast(file, &mut name).map(|dir| (dir, name))
    }

    /// Does the same as [`OpCx::locate`], inlined, with the name written to `name`.
    ///
    /// Split for speed: a name that is returned through several `Result`s is copied each time. The step of changes to
    /// which this belongs took `statfile` from 360 to 312 instructions.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the result is taken apart at once")]
    pub(crate) fn locate_fast(&mut self, file: FileRef, name: &mut Name) -> Result<Fd, Stop> {
        self.files.located = Some(file);
        let (dir, serial) = self.files.views[file.set].set.tree.dir_and_serial(file.index);
        *name = Name::new(serial);
        match self.dir(file.set, dir) {
            Ok(fd) => Ok(fd),
            Err(errno) => Err(self.dir_failed(errno, Some(file))),
        }
    }

    #[inline]
    pub fn dir(&mut self, set: usize, dir: u64) -> Result<Fd, Errno> {
        match &self.files.dirs[set] {
            Some(dirs) => dirs.dir(dir, &mut self.files.thread_dirs[set]),
            None => {
                debug_assert!(!self.files.has_disk, "the effects of the flowop name each set that it works on");
                Ok(os::NONE)
            }
        }
    }

    /// Returns the descriptors of two directories of a set, both valid at the same time. To be released with
    /// [`OpCx::close_pair`].
    pub(super) fn dir_pair(&mut self, set: usize, one: u64, other: u64) -> Result<(Fd, Fd), Errno> {
        let first = self.dir(set, one)?;
        if !self.keeps_few(set) {
            return Ok((first, self.dir(set, other)?));
        }
        // A thread with a limited number of open directories may replace the first by the second and close it.
        let first = wml_os::fd::duplicate(first)?;
        self.dir(set, other).map(|second| (first, second)).inspect_err(|_| wml_os::fd::close(first))
    }

    /// Releases a pair of directories after the calls on them.
    pub(super) fn close_pair(&self, set: usize, pair: (Fd, Fd)) {
        if self.keeps_few(set) {
            wml_os::fd::close(pair.0);
        }
    }

    /// True if the thread keeps only some directories of the set open.
    fn keeps_few(&self, set: usize) -> bool {
        self.files.dirs[set].as_ref().is_some_and(|dirs| !dirs.is_shared())
    }

    /// Opens a picked file in a slot. The operation's time must be running. The caller releases the pick.
    #[inline]
    pub fn open(&mut self, slot: usize, file: FileRef, flags: OFlags, readahead: bool) -> Result<(), Stop> {
        let nominal = self.files.views[file.set].set.tree.size_of(file.index);
        let mut name = Name::default();
        let dir = self.locate_fast(file, &mut name)?;
        self.begin();
        let handle = match self.env.engine.open(dir, name.as_c(), flags, nominal) {
            Ok(handle) => handle,
            Err(errno) => self.open_existing(errno, dir, name.as_c(), flags, file)?,
        };
        if self.files.has_disk
            && let Some(dirs) = &self.files.dirs[file.set]
            && (self.io.aio.is_some() || !dirs.checked_files().contains(file.index, self.period()))
        {
            self.verify_file(handle, file, flags)?;
        }
        self.io.slots.fill(slot, handle, file, nominal);
        if !readahead {
            let _ = io_engine::call(handle.fd, |fd| range::advise(fd, 0, 0, Advice::Random));
            self.cell().add_calls(1);
        }
        Ok(())
    }

    /// Ends an implicit open and counts it separately from the operation that needed it.
    #[inline]
    pub(crate) fn end_open(&mut self) -> Result<(), Stop> {
        let now = self.env.clock.raw();
        let started = std::mem::replace(&mut self.account.last, now);
        self.account.fresh = true;
        if now <= self.env.gate.deadline() {
            self.cell().add(FlowopCounter::Opens, 1);
            self.cell().add(FlowopCounter::OpenTime, self.env.clock.ns(started, now));
            Ok(())
        } else {
            self.end_late(started, 0)
        }
    }

    /// Returns the open file of a slot.
    #[inline]
    pub fn handle(&mut self, slot: usize) -> Option<&mut Handle> {
        self.io.slots.get_mut(slot).handle.as_mut()
    }

    /// Sends a message of `print` to the front end.
    #[cold]
    pub(crate) fn send_message(&self, ordinal: usize, text: &str) {
        if let Some(messages) = &self.env.messages {
            messages.send(ordinal, text);
        }
    }

    /// Waits for all asynchronous operations in flight. An error is the failure of one of them.
    pub fn drain(&mut self) -> Result<(), Stop> {
        super::aio::drain(self)
    }

    /// Ends the thread's I/O: waits for all asynchronous operations in flight and closes all open files. Failures are
    /// counted. Returns the first.
    pub(crate) fn close_all(&mut self) -> Option<OpFailure> {
        let mut outcomes = vec![self.drain()];
        self.io.aio = None;
        for slot in 0..self.io.slots.len() {
            // Write the data that a buffered writer still has, as a program does that exits. These writes are not
            // counted.
            if let Err(errno) = self.flush_buffer(slot) {
                outcomes.push(Err(self.failed_in_slot("write failed", errno, slot)));
            }
            if let Some(handle) = self.io.slots.get_mut(slot).handle.take()
                && let Err(errno) = self.env.engine.close(handle)
            {
                outcomes.push(Err(self.failed_in_slot("close failed", errno, slot)));
            }
        }
        self.io.slots = Slots::new(0, 0);
        self.io.sink.close();
        self.files.thread_dirs.iter_mut().for_each(ThreadDirs::close_all);
        outcomes.into_iter().find_map(|outcome| match outcome.err()?.reason() {
            StopReason::Failed(failure) => Some(failure),
            _ => None,
        })
    }
}
