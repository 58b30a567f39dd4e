//! What a thread has out: buffers, bounds, and what becomes of completions.

use super::backend::{AioCompletion, AioStart, Backend};
use super::pool::AioPool;
use super::{Aio, drain};
use crate::engine::{Engine, Handle};
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop};
use crate::fileset::content::{self, Stamper};
use crate::os::map::MapSlice;
use crate::os::{Errno, NOTHING_WRITTEN};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// How long a wait for a completion takes at most before it is looked whether the run has been stopped. A disk that answers
/// never lets it come to that.
const LOOK: Duration = Duration::from_millis(50);

/// How a thread's asynchronous operations are to run.
#[derive(Clone, Copy, Debug)]
pub enum AioHow<'a> {
    /// In the kernel. `alone`: the thread does nothing but asynchronous I/O.
    Ring {
        /// Whether it is there to take its completions at any time.
        alone: bool,
    },
    /// By these workers.
    Pool(&'a AioPool),
    /// At once: the engine makes no calls.
    AtOnce,
}

/// An operation that is out, as far as its thread must know it.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// The counters of the flowop that submitted it.
    cell: usize,
    /// The file, for errors.
    of: Option<FileRef>,
    write: bool,
    /// What it was to move, and where: for the rest of it, if it comes back short.
    file: Option<Handle>,
    offset: u64,
    len: usize,
    /// The slot and the offset of a read in order that is not at the start of its file.
    on: Option<(usize, u64)>,
    /// The intended start of its iteration and how late that began, in an open loop; else 0.
    intended: (u64, u64),
}

/// What a thread has out.
#[derive(Debug)]
pub struct Outstanding {
    backend: Backend,
    /// By tag.
    operations: Vec<InFlight>,
    /// Tags that are free, each with its buffer; the one used last is used next.
    free: Vec<(u32, MapSlice)>,
    /// Buffers with a tag below this have data in them.
    filled: u32,
    /// All buffers are sure to be used.
    bounded: bool,
    stamper: Stamper,
    seed: u64,
    /// What is out, for others to see while the thread waits for the last of it.
    left: Arc<AtomicU32>,
}

impl Outstanding {
    /// Nothing out yet. Makes room for all that `aio` may have out; buffers that are sure to be used are filled.
    pub fn new(
        aio: Aio,
        how: AioHow<'_>,
        engine: &'static dyn Engine,
        stamper: Stamper,
        seed: u64,
        left: Arc<AtomicU32>,
    ) -> Result<Self, Errno> {
        let depth = aio.depth.max(1) as usize;
        let slices = MapSlice::cut(depth, aio.size as usize)?;
        let backend = match how {
            // What is only a bound is not pinned in memory.
            AioHow::Ring { alone } => Backend::ring(depth, !alone, if aio.bounded { &slices[..] } else { &[] })?,
            AioHow::Pool(pool) => Backend::pool(pool, depth),
            AioHow::AtOnce => Backend::at_once(engine, depth),
        };
        let mut new = Self {
            backend,
            operations: vec![InFlight::default(); depth],
            free: Vec::with_capacity(depth),
            filled: 0,
            bounded: aio.bounded,
            stamper,
            seed,
            left,
        };
        new.take_buffers(slices);
        Ok(new)
    }

    fn take_buffers(&mut self, slices: Vec<MapSlice>) {
        self.free.clear();
        self.free.extend((0..).zip(slices));
        // The first one is used first.
        self.free.reverse();
        self.filled = 0;
        if self.bounded {
            self.free.iter_mut().for_each(|(_, buf)| content::fill(buf, self.seed, 0.0));
            self.filled = self.operations.len() as u32;
        }
    }

    /// How many are out.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.operations.len() - self.free.len()) as u64
    }

    /// Starts an operation of `len` bytes. `full`: nothing more will be started before something has completed.
    pub(crate) fn start(&mut self, cx: &mut OpCx<'_>, what: &Wanted, full: bool) -> Result<(), Stop> {
        if self.free.last().is_none_or(|(_, buf)| buf.len() < what.len) {
            self.grow(cx, what.len)?;
        }
        let Some((tag, mut buf)) = self.free.pop() else { return Ok(()) };
        if tag >= self.filled {
            // The free ones lie in order as long as one of them has never been used.
            content::fill(&mut buf, self.seed, 0.0);
            self.filled = tag + 1;
        }
        if what.write {
            self.stamper.stamp(&mut buf[..what.len]);
        }
        let of = cx.io.slots.get(what.slot).file;
        let Wanted { slot, file, offset, len, write, in_order } = *what;
        let on = (in_order && !write && offset > 0 && len > 0).then_some((slot, offset));
        self.operations[tag as usize] = InFlight {
            cell: cx.current(),
            of,
            write,
            file: Some(file),
            offset,
            len,
            on,
            intended: (cx.account.intended, cx.account.lateness),
        };
        let opening = (slot, cx.io.slots.get(slot).opening);
        let start = AioStart { tag, file, opening, buf, offset, len, write, last: full };
        self.backend
            .start(cx.env.clock, start)
            .map_err(|errno| cx.failed("starting asynchronous I/O failed", errno, of))
    }

    /// A drawn size is larger than it was likely to be: all buffers are made anew.
    #[cold]
    fn grow(&mut self, cx: &mut OpCx<'_>, len: usize) -> Result<(), Stop> {
        self.notice(cx, u64::MAX, true)?;
        match MapSlice::cut(self.operations.len(), len) {
            Ok(slices) => {
                if self.bounded {
                    self.backend.renew(&slices);
                }
                self.take_buffers(slices);
                Ok(())
            }
            Err(errno) => Err(cx.failed("no memory for asynchronous I/O", errno, None)),
        }
    }

    /// Takes notice of all that has completed, waiting until that are at least `n`, or all. An error is the failure of the flowop
    /// that submitted the operation, whoever takes notice. The wait ends with the run, unless it is `to_the_end`.
    pub(crate) fn notice(&mut self, cx: &mut OpCx<'_>, n: u64, to_the_end: bool) -> Result<(), Stop> {
        let (mut seen, mut first, mut last) = (0, Ok(()), 0);
        loop {
            while let Some(completion) = self.backend.next_completion(cx.env.clock) {
                (seen, last) = (seen + 1, completion.completed);
                if let Err(failed) = self.account(cx, completion) {
                    first = first.and(Err(failed));
                }
            }
            if to_the_end {
                self.left.store(self.in_flight() as u32, Relaxed);
            } else if first.is_err() {
                return first;
            }
            if !to_the_end && last > cx.env.gate.deadline() {
                return Err(Stop::over());
            }
            if seen >= n || self.in_flight() == 0 {
                return first;
            }
            let mut limit = LOOK;
            if !to_the_end {
                let (now, deadline) = (cx.env.clock.raw(), cx.env.gate.deadline());
                if now > deadline {
                    return Err(Stop::over());
                }
                let end = deadline.min(now.saturating_add(cx.env.clock.ticks(LOOK.as_nanos() as u64)));
                limit = Duration::from_nanos(cx.env.clock.ns(now, end) + 1);
            }
            self.backend
                .wait(cx.env.clock, limit)
                .map_err(|errno| cx.failed("waiting for asynchronous I/O failed", errno, None))?;
        }
    }

    /// Counts what has completed, by the time at which it did.
    fn account(&mut self, cx: &mut OpCx<'_>, completion: AioCompletion) -> Result<(), Stop> {
        let AioCompletion { tag, mut buf, submitted, mut completed, mut result } = completion;
        let operation = self.operations[tag as usize];
        let InFlight { cell, of, write, on, intended: (intended, lateness), .. } = operation;
        if result.is_ok_and(|n| n < operation.len) {
            let further;
            (result, further) = rest(cx, &operation, &mut buf, result.unwrap_or_default());
            if further {
                completed = cx.env.clock.raw();
            }
        }
        self.free.push((tag, buf));
        let counters = cx.account.stats.cell(cell);
        if let (Ok(0), Some((slot, offset))) = (&result, on) {
            // The file is shorter than it was to be. A read that only finds the end is no operation; the next one starts
            // over, unless one that came back earlier has seen to that.
            counters.add_calls(1);
            if let Some(handle) = cx.handle(slot).filter(|handle| handle.cursor > offset) {
                handle.cursor = 0;
            }
            return Ok(());
        }
        match result {
            Ok(n) if completed <= cx.env.gate.deadline() => {
                counters.record(cx.env.clock.ns(submitted, completed), n as u64);
                if intended > 0 {
                    counters.record_response(cx.env.clock.ns(intended, completed), lateness);
                }
                Ok(())
            }
            Ok(n) => {
                counters.record_late(n as u64);
                Ok(())
            }
            Err(errno) => {
                let what = if write { "asynchronous write failed" } else { "asynchronous read failed" };
                Err(cx.failed_of(cell, what, errno, of))
            }
        }
    }
}

/// Goes on with an operation that came back short, in its thread. Returns the bytes moved in all, and whether that took further calls.
#[cold]
fn rest(cx: &mut OpCx<'_>, operation: &InFlight, buf: &mut MapSlice, mut done: usize) -> (Result<usize, Errno>, bool) {
    let Some(mut file) = operation.file else { return (Ok(done), false) };
    let counters = cx.account.stats.cell(operation.cell);
    if operation.write && done == 0 {
        return (Err(NOTHING_WRITTEN), false);
    }
    let mut further = 0_u32;
    while done > 0 && done < operation.len && (further % 1000 != 999 || !cx.expired()) {
        let at = operation.offset + done as u64;
        let data = &mut buf[done..operation.len];
        let result = if operation.write {
            cx.env.engine.pwrite(&mut file, data, at)
        } else if at >= file.size {
            break;
        } else {
            cx.env.engine.pread(&mut file, data, at)
        };
        match result {
            // Direct I/O that stopped between two blocks can't go on from there.
            Err(Errno::INVAL) => break,
            Err(errno) => {
                counters.add_bytes(done as u64);
                return (Err(errno), true);
            }
            Ok(n) => {
                further += 1;
                counters.add_calls(1);
                done += n;
                if n == 0 {
                    break;
                }
            }
        }
    }
    (Ok(done), further > 0)
}

/// One operation that a flowop wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) slot: usize,
    pub(crate) file: Handle,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) write: bool,
    /// It goes on from the one before it.
    pub(crate) in_order: bool,
}

/// A file is about to be closed: no operation may still be on its way to it, and no ring keep it.
pub(crate) fn let_go(cx: &mut OpCx<'_>, slot: usize) -> Result<(), Stop> {
    let drained = drain(cx);
    if let Some(aio) = &mut cx.io.aio {
        aio.backend.forget_file(slot);
    }
    drained
}
