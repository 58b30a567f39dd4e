//! Where an operation meets its thread: the engine, the clock, files, buffers, random numbers, counters.
//!
//! Time is the call's, not the tool's: [`OpCx::begin`] starts it, [`OpCx::end`] ends it and counts. Between two calls that lie
//! close together the end of the first serves as the start of the second, and one reading of the clock is saved; after
//! anything dearer than a draw ([`OpCx::restamp`]) the clock is read again and the time between goes to the tool's account.

use super::buffer::IoBuffer;
use super::messages::Messages;
use super::slots::{FileRef, Slots};
use super::starvation::{Starvation, View};
use super::trace::Stream;
use super::{OpFailure, Outstanding, Stop, StopReason};
use crate::disk::dirs::{Dirs, ThreadDirs};
use crate::engine::{Engine, Handle};
use crate::fileset::{Name, OwnRotor, Rotor};
use crate::os::{self, Clock, Errno, Fd, Scale, errno_text};
use crate::os::{Advice, OFlags};
use crate::random::Rng;
use crate::stats::recorder::{Cell, ThreadStats};
use crate::sync::{EventPool, Gate};

/// Directories that a thread keeps open of a set whose directories are too many for the process.
const OWN_DIRS: usize = 64;

/// The longest period for which a file that was looked at is not looked at again; it may be half as long.
const PERIOD_NS: u64 = 1_000_000_000;

/// What all threads of a run have in common.
#[derive(Clone, Copy, Debug)]
pub struct RunEnv<'r> {
    /// Makes the calls.
    pub engine: &'r dyn Engine,
    /// Tells the time.
    pub clock: &'r Clock,
    /// The run's start and end.
    pub gate: &'r Gate,
    /// The event generator.
    pub events: &'r EventPool,
    /// Where `print` goes.
    pub messages: Option<&'r Messages>,
}

/// The file sets as a thread sees them: directories, rotors, what it makes.
#[derive(Debug)]
pub struct ThreadFiles<'r> {
    /// The file sets.
    pub views: &'r [View],
    /// The process's directory descriptors, for each set that it works on.
    pub(super) dirs: &'r [Option<Dirs>],
    /// The thread's part of them.
    thread_dirs: Vec<ThreadDirs>,
    /// The thread's hold on each set's shared rotors.
    pub(super) rotors: Vec<Rotor>,
    /// The same for leaf directories.
    pub(super) leaf_rotors: Vec<Rotor>,
    /// The thread's own rotors, for `opennext`.
    pub(super) own: Vec<OwnRotor>,
    /// What the thread makes.
    pub starvation: Starvation,
    /// The file or directory that was looked up by name last.
    pub(super) located: Option<FileRef>,
    /// The engine works on files. One byte instead of a place in a list: an instruction fewer for each flowop of varmail on the null
    /// engine.
    pub(super) has_disk: bool,
    /// Ticks are shifted by this much to make periods in which a file is looked at once.
    pub(super) period_shift: u32,
}

impl<'r> ThreadFiles<'r> {
    /// As a thread sees them before its first operation.
    pub fn new(views: &'r [View], dirs: &'r [Option<Dirs>], starvation: Starvation) -> Self {
        let places = |d: &Option<Dirs>| if d.as_ref().is_some_and(|d| !d.is_shared()) { OWN_DIRS } else { 0 };
        Self {
            views,
            dirs,
            thread_dirs: dirs.iter().map(|d| ThreadDirs::new(places(d))).collect(),
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

/// What a thread has open, and where its data is.
#[derive(Debug)]
pub struct ThreadIo {
    /// The file slots.
    pub slots: Slots,
    /// The I/O buffer.
    pub buffer: IoBuffer,
    /// The asynchronous operations in flight, if the thread's program has any.
    pub aio: Option<Outstanding>,
    /// The offset used last, for `reoffset`.
    pub last_offset: u64,
}

impl ThreadIo {
    /// Nothing used yet.
    pub fn new(slots: Slots, buffer: IoBuffer, aio: Option<Outstanding>) -> Self {
        Self { slots, buffer, aio, last_offset: 0 }
    }
}

/// What is counted and timed of a thread.
#[derive(Debug)]
pub struct Account<'r> {
    /// The thread's counters.
    pub stats: &'r ThreadStats,
    /// What the thread does, one operation after another, if somebody wants to know.
    pub stream: Option<Box<Stream>>,
    /// In an open loop, while an I/O flowop runs: the intended start of its iteration, in ticks; else 0. See [`OpCx::intend`].
    pub intended: u64,
    /// How long after that the iteration began, in nanoseconds.
    pub lateness: u64,
    /// When the thread started, in ticks.
    pub started: u64,
    /// The counters of the flowop that is running.
    pub(super) cell: &'r Cell,
    /// When the last call ended; while one runs, when that started.
    pub(super) last: u64,
    /// Whether `last` may serve as the start of the next call.
    fresh: bool,
    /// Whether the end of an operation is no more than a look at the processor's counter and the cell.
    plain: bool,
    /// Nanoseconds starved since `last`.
    pub(super) starved: u64,
    /// The clock's.
    scale: Scale,
}

impl<'r> Account<'r> {
    /// Nothing counted yet.
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

/// What a thread's operations work with.
#[derive(Debug)]
pub struct OpCx<'r> {
    /// What all threads have in common.
    pub env: RunEnv<'r>,
    /// The file sets as the thread sees them.
    pub files: ThreadFiles<'r>,
    /// What the thread has open, and its data.
    pub io: ThreadIo,
    /// The thread's random numbers.
    pub rng: Rng,
    /// What is counted and timed.
    pub account: Account<'r>,
}

impl<'r> OpCx<'r> {
    /// A context, ready for [`OpCx::go`].
    pub fn new(env: RunEnv<'r>, files: ThreadFiles<'r>, io: ThreadIo, rng: Rng, account: Account<'r>) -> Self {
        Self { env, files, io, rng, account }
    }

    /// The gate has opened.
    pub fn go(&mut self) {
        self.account.last = self.env.clock.raw();
        self.account.started = self.account.last;
        self.account.fresh = true;
        self.intend(0);
    }

    /// In an open loop: the operations that follow were to start at this tick; 0: they were to start at no special time.
    #[inline]
    pub fn intend(&mut self, tick: u64) {
        self.account.intended = tick;
        self.account.plain = tick == 0 && self.account.stream.is_none() && self.env.clock.is_counter();
    }

    /// When the last call ended, in ticks.
    pub fn last(&self) -> u64 {
        self.account.last
    }

    /// The counters of the flowop that is running.
    #[inline]
    pub fn cell(&self) -> &'r Cell {
        self.account.cell
    }

    /// Another flowop runs from now on: the one with these counters. They are wanted when its call has ended; by then they are at
    /// hand, even if other threads' had driven them out of the processor's cache.
    #[inline]
    pub fn turn_to(&mut self, cell: &'r Cell) {
        os::cache_line(cell);
        self.account.cell = cell;
    }

    /// The place of the flowop that is running among the thread's.
    pub fn current(&self) -> usize {
        self.account.stats.index_of(self.account.cell)
    }

    /// What ends now began at that tick.
    pub fn begin_at(&mut self, tick: u64) {
        self.account.last = tick;
        self.account.fresh = false;
    }

    /// A call starts.
    #[inline]
    pub fn begin(&mut self) {
        if !self.account.fresh {
            self.begin_now();
        }
    }

    #[inline(never)]
    fn begin_now(&mut self) {
        let now = self.env.clock.raw();
        let since = std::mem::replace(&mut self.account.last, now);
        let starved = std::mem::take(&mut self.account.starved);
        self.account.cell.add_tool_time(self.env.clock.ns(since, now).saturating_sub(starved));
    }

    /// The operation ends: it is counted, and so is what it moved.
    pub fn end(&mut self, bytes: u64) -> Result<(), Stop> {
        self.end_here(bytes)
    }

    /// The same in place, for the shortest of the steps.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "that is what it is for")]
    pub fn end_here(&mut self, bytes: u64) -> Result<(), Stop> {
        if !self.account.plain {
            return self.end_any(bytes);
        }
        let now = self.env.clock.counter();
        let started = std::mem::replace(&mut self.account.last, now);
        self.account.fresh = true;
        if now > self.env.gate.deadline() {
            return self.end_late(bytes);
        }
        self.account.cell.record(self.account.scale.ns(started, now), bytes);
        Ok(())
    }

    #[cold]
    fn end_late(&self, bytes: u64) -> Result<(), Stop> {
        self.account.cell.record_late(bytes);
        Err(Stop::over())
    }

    /// The end of an operation in an open loop, or one whose stream is wanted, or by another clock.
    #[inline(never)]
    fn end_any(&mut self, bytes: u64) -> Result<(), Stop> {
        let now = self.env.clock.raw();
        let started = std::mem::replace(&mut self.account.last, now);
        self.account.fresh = true;
        if now <= self.env.gate.deadline() {
            self.cell().record(self.env.clock.ns(started, now), bytes);
            if self.account.intended > 0 {
                self.cell().record_response(self.env.clock.ns(self.account.intended, now), self.account.lateness);
            }
            if self.account.stream.is_some() {
                self.note(bytes);
            }
            Ok(())
        } else {
            self.end_late(bytes)
        }
    }

    /// An operation becomes part of the thread's stream: when it is counted, or, if it is counted later, when it is submitted.
    #[cold]
    pub fn note(&mut self, bytes: u64) {
        let slot = self.io.slots.take_last();
        let file = self.files.located.take().or(slot);
        if let Some(stream) = &mut self.account.stream {
            stream.push(self.account.stats.index_of(self.account.cell), file, self.io.last_offset, bytes);
            self.restamp();
        }
    }

    /// The tool does something dearer than a draw: the next call's start is read from the clock.
    #[inline]
    pub fn restamp(&mut self) {
        self.account.fresh = false;
    }

    /// Nothing was done: neither counted nor timed. What follows starts anew.
    pub fn skip(&mut self) -> Result<(), Stop> {
        self.account.last = self.env.clock.raw();
        self.account.fresh = true;
        if self.account.last <= self.env.gate.deadline() { Ok(()) } else { Err(Stop::over()) }
    }

    /// An operation failed, and errors are only counted: whether to go on.
    #[cold]
    pub fn skip_after_error(&mut self) -> bool {
        self.skip().is_ok()
    }

    /// Whether the run is over: for steps of many calls, between them.
    #[inline]
    pub fn expired(&self) -> bool {
        self.env.clock.raw() > self.env.gate.deadline()
    }

    /// Bytes that the current operation has moved, though it is about to fail.
    #[cold]
    pub fn moved(&self, bytes: u64) {
        if self.expired() {
            self.account.cell.add_late_bytes(bytes);
        } else {
            self.account.cell.add_bytes(bytes);
        }
    }

    /// A call of the current operation failed.
    #[cold]
    pub fn failed(&mut self, what: &str, errno: Errno, file: Option<FileRef>) -> Stop {
        if let Some(foreign) = file.and_then(|file| self.foreign_in_the_way(file, errno)) {
            return foreign;
        }
        self.failed_of(self.current(), what, errno, file)
    }

    /// A call failed that another flowop of the thread had made.
    #[cold]
    pub fn failed_of(&mut self, flowop: usize, what: &str, errno: Errno, file: Option<FileRef>) -> Stop {
        let number = errno.raw_os_error();
        self.account.stats.cell(flowop).error(number);
        self.restamp();
        self.account.last = self.env.clock.raw();
        let root = file.map(|f| self.files.views[f.set].set.spec.root());
        StopReason::Failed(OpFailure {
            what: format!("{what}: {}{}", errno_text(number), root.map_or_else(String::new, |at| room(errno, &at))),
            path: file.map(|f| self.path(f)),
            errno: Some(number),
            help: advice(errno).to_owned(),
            of: Some(flowop),
        })
        .into()
    }

    /// The current operation failed in a way that it tells itself.
    #[cold]
    pub fn failed_as(&mut self, errno: Errno, what: String, help: &str) -> Stop {
        self.cell().error(errno.raw_os_error());
        self.restamp();
        self.account.last = self.env.clock.raw();
        StopReason::Failed(OpFailure { what, path: None, errno: None, help: help.to_owned(), of: None }).into()
    }

    /// The operation can't be done as the script stands.
    #[cold]
    pub fn misuse(&mut self, what: impl Into<String>, help: &str) -> Stop {
        self.cell().error(0);
        StopReason::Failed(OpFailure { what: what.into(), path: None, errno: None, help: help.to_owned(), of: None })
            .into()
    }

    /// The path of a file.
    pub fn path(&self, file: FileRef) -> String {
        self.files.views[file.set].set.path_of(file.index).display().to_string()
    }

    /// The directory descriptor and the last name of a file.
    #[inline]
    pub fn locate(&mut self, file: FileRef) -> Result<(Fd, Name), Stop> {
        let mut name = Name::default();
        self.locate_as(file, &mut name).map(|dir| (dir, name))
    }

    /// The same with the name put where it is used: on its way through results it would be copied again and again.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the result is taken apart at once")]
    pub fn locate_as(&mut self, file: FileRef, name: &mut Name) -> Result<Fd, Stop> {
        self.files.located = Some(file);
        let (dir, serial) = self.files.views[file.set].set.tree.place_of(file.index);
        *name = Name::new(serial);
        match self.dir(file.set, dir) {
            Ok(fd) => Ok(fd),
            Err(errno) => Err(self.failed("opening the directory", errno, Some(file))),
        }
    }

    /// The descriptor of a directory of a set.
    #[inline]
    pub fn dir(&mut self, set: usize, dir: u64) -> Result<Fd, Errno> {
        match &self.files.dirs[set] {
            Some(dirs) => dirs.dir(dir, &mut self.files.thread_dirs[set]),
            None => Ok(crate::os::NONE),
        }
    }

    /// The descriptors of two directories of a set, both good at once, to be given back with [`OpCx::close_pair`].
    pub fn dir_pair(&mut self, set: usize, one: u64, other: u64) -> Result<(Fd, Fd), Errno> {
        let first = self.dir(set, one)?;
        if !self.keeps_few(set) {
            return Ok((first, self.dir(set, other)?));
        }
        // A thread that keeps few directories may put the second in the place of the first, and close that.
        let first = crate::os::fd::duplicate(first)?;
        self.dir(set, other).map(|second| (first, second)).inspect_err(|_| crate::os::fd::close(first))
    }

    /// The calls on a pair of directories are done.
    pub fn close_pair(&self, set: usize, pair: (Fd, Fd)) {
        if self.keeps_few(set) {
            crate::os::fd::close(pair.0);
        }
    }

    /// Whether the thread has directories of its own of that set, and not all of them at once.
    fn keeps_few(&self, set: usize) -> bool {
        self.files.dirs[set].as_ref().is_some_and(|dirs| !dirs.is_shared())
    }

    /// Opens a picked file into a slot. Time must be running. The pick is released by the caller.
    #[inline]
    pub fn open(&mut self, slot: usize, file: FileRef, flags: OFlags, readahead: bool) -> Result<(), Stop> {
        let nominal = self.files.views[file.set].set.tree.size_of(file.index);
        let mut name = Name::default();
        let dir = self.locate_as(file, &mut name)?;
        self.begin();
        let handle = match self.env.engine.open(dir, name.as_c(), flags, nominal) {
            Ok(handle) => handle,
            Err(errno) => self.open_found(errno, dir, name.as_c(), flags, file)?,
        };
        if self.files.has_disk
            && let Some(dirs) = &self.files.dirs[file.set]
            && (self.io.aio.is_some() || !dirs.looked().has(file.index, self.period()))
        {
            self.own_file(handle, file, flags)?;
        }
        self.io.slots.fill(slot, handle, file, nominal);
        if !readahead {
            let _ = self.env.engine.advise(&handle, 0, 0, Advice::Random);
            self.cell().add_calls(1);
        }
        Ok(())
    }

    /// An implicit open has ended: counted apart from the operation that caused it.
    #[inline]
    pub fn end_open(&mut self) -> Result<(), Stop> {
        let now = self.env.clock.raw();
        let started = std::mem::replace(&mut self.account.last, now);
        self.account.fresh = true;
        if now <= self.env.gate.deadline() {
            self.cell().record_open(self.env.clock.ns(started, now));
            Ok(())
        } else {
            self.cell().record_late(0);
            Err(Stop::over())
        }
    }

    /// The open file of a slot.
    #[inline]
    pub fn handle(&mut self, slot: usize) -> Option<&mut Handle> {
        self.io.slots.get_mut(slot).handle.as_mut()
    }

    /// A message of `print`, on its way to whoever shows messages.
    #[cold]
    pub fn say(&self, ordinal: usize, text: &str) {
        if let Some(messages) = &self.env.messages {
            messages.send(ordinal, text);
        }
    }

    /// Waits for what is out. An error is that of an operation which only now came to its end.
    pub fn drain(&mut self) -> Result<(), Stop> {
        super::aio::drain(self)
    }

    /// Writes what is gathered for a slot, if anything is: it is about to be closed.
    #[inline]
    pub fn flush_buffer(&mut self, slot: usize) -> Result<(), Errno> {
        super::buffered::flush(&mut self.io.slots, slot, self.env.engine, self.account.cell)
    }

    /// Waits for what is out and closes whatever is open: the thread ends. What fails is counted, and the first failure is returned.
    pub fn close_all(&mut self) -> Option<OpFailure> {
        let mut outcomes = vec![self.drain()];
        self.io.aio = None;
        for slot in 0..self.io.slots.len() {
            let file = self.io.slots.get(slot).file;
            // What a buffered writer still had is written, as by a program that ends; nobody counts it any more.
            if let Err(errno) = self.flush_buffer(slot) {
                outcomes.push(Err(self.failed("write failed", errno, file)));
            }
            if let Some(handle) = self.io.slots.get_mut(slot).handle.take()
                && let Err(errno) = self.env.engine.close(handle)
            {
                outcomes.push(Err(self.failed("close failed", errno, file)));
            }
        }
        self.io.slots = Slots::new(0, 0);
        self.files.thread_dirs.iter_mut().for_each(ThreadDirs::close_all);
        outcomes.into_iter().find_map(|outcome| match outcome.err()?.reason() {
            StopReason::Failed(failure) => Some(failure),
            _ => None,
        })
    }
}

/// For a file system or quota that is full: what is left of it.
fn room(errno: Errno, dir: &std::path::Path) -> String {
    if !matches!(errno, Errno::NOSPC | Errno::DQUOT) {
        return String::new();
    }
    crate::os::fd::statvfs_path(dir).map_or_else(
        |_| String::new(),
        |left| format!("; {} and {} inodes are free", crate::util::size::format(left.free), left.files_free),
    )
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
