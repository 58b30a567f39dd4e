//! The asynchronous operations that a thread has in flight: their buffers and limits, and the accounting of
//! completions.

use super::backend::{AioCompletion, AioStart, Backend};
use super::pool::AioPool;
use super::{Aio, drain};
use crate::exec::short::continue_transfer;
use crate::exec::slots::FileRef;
use crate::exec::{OpCx, Stop, WrittenData};
use crate::io_engine::{Engine, Handle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Release};
use std::time::Duration;
use wml_os::map::MapSlice;
use wml_os::{Errno, NOTHING_WRITTEN};

/// Maximum time of a wait for a completion before the end of the run is checked. A disk that responds never lets a wait
/// take as long.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The way in which a thread's asynchronous operations are executed.
#[derive(Clone, Copy, Debug)]
pub enum AioMode<'a> {
    /// By a ring of the kernel.
    Ring {
        /// Whether the thread has only asynchronous I/O, and so can take completions at any time.
        alone: bool,
    },
    /// By these workers.
    Pool(&'a AioPool),
    /// By a direct call: the engine makes no system calls.
    AtOnce,
}

/// The data of an operation in flight that its thread needs at completion.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// Index of the flowop that submitted it.
    cell: usize,
    /// The file, for error messages.
    of: Option<FileRef>,
    write: bool,
    /// The open file, offset and length of the request, to continue a short transfer.
    file: Option<Handle>,
    offset: u64,
    len: usize,
    /// The slot and the offset of a sequential read that does not start at the beginning of its file.
    on: Option<(usize, u64)>,
    /// In an open loop, the intended start of its iteration in ticks, and the delay of that start in nanoseconds; else
    /// 0.
    intended: (u64, u64),
}

/// The asynchronous operations that a thread has in flight.
#[derive(Debug)]
pub struct Outstanding {
    backend: Backend,
    /// The operations, by tag.
    operations: Vec<InFlight>,
    /// The free tags, each with its buffer. The one that was freed last is used next.
    free: Vec<(u32, MapSlice)>,
    /// Buffers with a tag below this contain data.
    filled: u32,
    /// Whether all buffers are certain to be used.
    bounded: bool,
    data: WrittenData,
    /// [`WrittenData::is_plain`].
    plain: bool,
    seed: u64,
    /// The number of operations in flight, published while the thread waits for the last of them: see [`awaited`].
    remaining: Arc<AtomicU64>,
}

impl Outstanding {
    /// Allocates buffers for all operations that `aio` allows in flight. Buffers that are certain to be used are filled
    /// with data.
    pub fn new(
        aio: Aio,
        how: AioMode<'_>,
        engine: &'static dyn Engine,
        data: WrittenData,
        seed: u64,
        remaining: Arc<AtomicU64>,
    ) -> Result<Self, Errno> {
        let depth = aio.depth.max(1) as usize;
        let slices = MapSlice::allocate(depth, aio.size as usize)?;
        let backend = match how {
            // Buffers for a depth that is only an upper limit are not pinned in memory.
            AioMode::Ring { alone } => Backend::ring(depth, !alone, if aio.bounded { &slices[..] } else { &[] })?,
            AioMode::Pool(pool) => Backend::pool(pool, depth),
            AioMode::AtOnce => Backend::at_once(engine, depth),
        };
        let mut new = Self {
            backend,
            operations: vec![InFlight::default(); depth],
            free: Vec::with_capacity(depth),
            filled: 0,
            bounded: aio.bounded,
            plain: data.is_plain(),
            data,
            seed,
            remaining,
        };
        new.take_buffers(slices);
        Ok(new)
    }

    /// Makes all tags free, each with one of these buffers.
    fn take_buffers(&mut self, slices: Vec<MapSlice>) {
        self.free.clear();
        self.free.extend((0..).zip(slices));
        // The first buffer is used first.
        self.free.reverse();
        self.filled = 0;
        if self.bounded {
            self.free.iter_mut().for_each(|(_, buf)| self.data.common.source.fill(buf, self.seed));
            self.filled = self.operations.len() as u32;
        }
        // None of the buffers has the data of an earlier write.
        self.operations.iter_mut().for_each(|operation| operation.write = false);
    }

    /// Returns the number of operations in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.operations.len() - self.free.len()) as u64
    }

    /// Starts an operation. `full` means that no further operation is started before one has completed.
    pub(crate) fn start(&mut self, cx: &mut OpCx<'_>, what: &AioRequest, full: bool) -> Result<(), Stop> {
        if self.free.last().is_none_or(|(_, buf)| buf.len() < what.len) {
            self.grow(cx, what.len)?;
        }
        let Some((tag, mut buf)) = self.free.pop() else { return Ok(()) };
        if tag >= self.filled {
            // The free tags are in order as long as one of them has never been used.
            self.data.common.source.fill(&mut buf, self.seed);
            self.filled = tag + 1;
        }
        let of = cx.io.slots.get(what.slot).file;
        if what.write {
            if self.plain {
                self.data.common.stamper.stamp_unique(&mut buf[..what.len]);
            } else {
                self.generate(tag, &mut buf, what.len, of);
            }
        }
        let AioRequest { slot, file, offset, len, write, in_order } = *what;
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
        cx.account.stats.record_submitted(cx.current(), len as u64);
        let opening = (slot, cx.io.slots.get(slot).opening);
        let start = AioStart { tag, file, opening, buf, offset, len, write, last: full };
        self.backend
            .start(cx.env.clock, start)
            .map_err(|errno| cx.failed("starting asynchronous I/O failed", errno, of))
    }

    /// Generates the data of a write to a file, with copies, or of the source of the file's set. The buffer of a tag
    /// has data of that source only if the last operation of the tag was a write with it; else it is filled anew,
    /// before the operation is submitted and its time begins.
    #[cold]
    fn generate(&mut self, tag: u32, buf: &mut MapSlice, len: usize, of: Option<FileRef>) {
        let last = self.operations[tag as usize];
        let separate = self.data.separate_of(of);
        let is_filled = separate.is_none() || last.write && self.data.separate_of(last.of) == separate;
        let own = self.data.source_of(of);
        if !is_filled {
            own.source.fill(buf, self.seed);
        }
        own.stamper.stamp(&mut buf[..len]);
    }

    /// Replaces all buffers, because a drawn size is larger than expected. `#[cold]`: it runs at most once for each new
    /// largest size.
    #[cold]
    fn grow(&mut self, cx: &mut OpCx<'_>, len: usize) -> Result<(), Stop> {
        self.reap(cx, u64::MAX, true)?;
        match MapSlice::allocate(self.operations.len(), len) {
            Ok(slices) => {
                if self.bounded {
                    self.backend.replace_buffers(&slices);
                }
                self.take_buffers(slices);
                Ok(())
            }
            Err(errno) => Err(cx.failed("allocating buffers for asynchronous I/O failed", errno, None)),
        }
    }

    /// Accounts for all completions, and waits until at least `n` have been accounted for, or none are in flight. An
    /// error is the failure of the flowop that submitted the operation. The wait ends with the run, unless `to_the_end`
    /// is set.
    pub(crate) fn reap(&mut self, cx: &mut OpCx<'_>, n: u64, to_the_end: bool) -> Result<(), Stop> {
        let (mut seen, mut first, mut last) = (0, Ok(()), 0);
        loop {
            while let Some(completion) = self.backend.next_completion(cx.env.clock) {
                (seen, last) = (seen + 1, completion.completed);
                if let Err(failed) = self.account(cx, completion) {
                    first = first.and(Err(failed));
                }
            }
            if to_the_end {
                self.publish(cx);
            } else if first.is_err() {
                return first;
            }
            if !to_the_end && last > cx.env.gate.deadline() {
                return Err(Stop::over());
            }
            if seen >= n || self.in_flight() == 0 {
                return first;
            }
            let mut limit = POLL_INTERVAL;
            if !to_the_end {
                let (now, deadline) = (cx.env.clock.raw(), cx.env.gate.deadline());
                if now > deadline {
                    return Err(Stop::over());
                }
                let end = deadline.min(now.saturating_add(cx.env.clock.ticks(POLL_INTERVAL.as_nanos() as u64)));
                limit = Duration::from_nanos(cx.env.clock.ns(now, end) + 1);
            }
            self.backend
                .wait(cx.env.clock, limit)
                .map_err(|errno| cx.failed("waiting for asynchronous I/O failed", errno, None))?;
        }
    }

    /// Publishes the number of operations in flight. `Release`: who reads it finds at least the late operations in it.
    fn publish(&self, cx: &OpCx<'_>) {
        let n = self.in_flight() as u32;
        let published = if n > 0 { awaited(n, cx.account.stats.total_late_ops() as u32) } else { 0 };
        self.remaining.store(published, Release);
    }

    /// Counts a completed operation, by the time at which it completed.
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
            // The file is shorter than expected. A read that only finds its end is not an operation; the next one
            // starts at the beginning, unless an earlier completion has already reset the cursor.
            counters.add_calls(1);
            counters.withdraw_submitted(operation.len as u64);
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
                counters.record_late(cx.env.clock.ns(submitted, cx.env.gate.deadline()), n as u64);
                Ok(())
            }
            Err(errno) => {
                let what = if write { "asynchronous write failed" } else { "asynchronous read failed" };
                Err(cx.failed_of(cell, what, errno, of))
            }
        }
    }
}

/// Returns one number for the asynchronous operations that a thread waits for, with the late operations that it had
/// counted then. The ones that it has counted as late since are no longer in flight.
pub fn awaited(in_flight: u32, late: u32) -> u64 {
    (u64::from(late) << 32) | u64::from(in_flight)
}

/// Continues an operation that was short, in the submitting thread. Returns the total number of bytes, and whether
/// further calls were made.
#[cold]
fn rest(cx: &mut OpCx<'_>, operation: &InFlight, buf: &mut MapSlice, done: usize) -> (Result<usize, Errno>, bool) {
    let Some(mut file) = operation.file else { return (Ok(done), false) };
    if operation.write && done == 0 {
        return (Err(NOTHING_WRITTEN), false);
    }
    let further = continue_transfer(cx, operation.len as u64, done, |cx, done| {
        let at = operation.offset + done as u64;
        let data = &mut buf[done..operation.len];
        if operation.write {
            Some(cx.env.engine.pwrite(&mut file, data, at))
        } else {
            (at < file.size).then(|| cx.env.engine.pread(&mut file, data, at))
        }
    });
    let (counters, result) = (cx.account.stats.cell(operation.cell), further.result());
    counters.add_calls(further.calls);
    if result.is_err() {
        counters.add_bytes(further.moved());
    }
    (result, result.is_err() || further.calls > 0)
}

/// A request of a flowop for an asynchronous operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AioRequest {
    pub(crate) slot: usize,
    pub(crate) file: Handle,
    pub(crate) offset: u64,
    pub(crate) len: usize,
    pub(crate) write: bool,
    /// Whether it continues at the end of the previous one.
    pub(crate) in_order: bool,
}

/// Prepares a file to be closed: waits until no operation on it is in flight, and removes it from the ring.
pub(crate) fn release_file(cx: &mut OpCx<'_>, slot: usize) -> Result<(), Stop> {
    let drained = drain(cx);
    if let Some(aio) = &mut cx.io.aio {
        aio.backend.unregister_file(slot);
    }
    drained
}
