//! Back ends that execute operations while their thread continues: `io_uring`, a thread pool, or a direct call.
//!
//! All return an [`AioCompletion`]. A back end knows neither flowops nor counters.
//!
//! Registered buffers and files: the memory of all buffers of a thread is registered with its ring once, before the
//! run, so that the kernel pins its pages once instead of for each operation. A file is registered from its second use
//! on, so that the kernel need not look up the descriptor and take a reference to the file for each operation. What
//! registration alone gains was not measured. With it, 32 direct writes of 4k in flight run at 1.008 to 1.088 times the
//! rate of fio's `io_uring` engine with nothing registered.

use super::pool::{AioJob, AioPool};
use crate::io_engine::{Engine, Handle};
use crossbeam::channel::{Receiver, RecvTimeoutError, SendError, Sender, bounded};
use std::collections::VecDeque;
use std::thread::JoinHandle;
use std::time::Duration;
use wml_os::map::MapSlice;
use wml_os::uring::{Completion, Reaped, Request, Ring};
use wml_os::{Clock, Errno};

/// Number of slots whose files can be registered in a ring: all that a script can name, and a few more.
const FILES: u32 = 256;

/// An operation to be started.
#[derive(Debug)]
pub(super) struct AioStart {
    /// Identifies it among the operations in flight; less than the depth.
    pub(super) tag: u32,
    pub(super) file: Handle,
    /// The slot in which the file is open, and the number of that open.
    pub(super) opening: (usize, u64),
    pub(super) buf: MapSlice,
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) write: bool,
    /// Whether no further operation is started before one has completed.
    pub(super) last: bool,
}

/// A completed operation.
#[derive(Debug)]
pub(super) struct AioCompletion {
    pub(super) tag: u32,
    pub(super) buf: MapSlice,
    /// When it was submitted, and when its completion was seen, in ticks.
    pub(super) submitted: u64,
    pub(super) completed: u64,
    pub(super) result: Result<usize, Errno>,
}

/// The back end of a thread.
#[derive(Debug)]
pub(super) enum Backend {
    /// A direct call of an engine that makes no system calls.
    AtOnce { engine: &'static dyn Engine, completions: VecDeque<AioCompletion> },
    /// The workers of the process.
    Pool {
        jobs: Sender<AioJob>,
        answer: Sender<AioCompletion>,
        completions: Receiver<AioCompletion>,
        seen: VecDeque<AioCompletion>,
    },
    /// A ring of the kernel.
    Ring(Box<RingBackend>),
}

impl Backend {
    pub(super) fn at_once(engine: &'static dyn Engine, depth: usize) -> Self {
        Self::AtOnce { engine, completions: VecDeque::with_capacity(depth) }
    }

    pub(super) fn pool(pool: &AioPool, depth: usize) -> Self {
        let (answer, completions) = bounded(depth);
        Self::Pool { jobs: pool.jobs(), answer, completions, seen: VecDeque::with_capacity(1) }
    }

    /// Creates a ring. For `watched` see [`RingBackend`]. `buffers` are registered unless empty.
    pub(super) fn ring(depth: usize, watched: bool, buffers: &[MapSlice]) -> Result<Self, Errno> {
        Ok(Self::Ring(Box::new(RingBackend::new(depth, watched, buffers)?)))
    }

    /// Starts an operation.
    pub(super) fn start(&mut self, clock: &Clock, start: AioStart) -> Result<(), Errno> {
        match self {
            Self::AtOnce { engine, completions } => {
                let AioStart { tag, mut file, mut buf, offset, len, write, .. } = start;
                let submitted = clock.raw();
                let data = &mut buf[..len];
                let result =
                    if write { engine.pwrite(&mut file, data, offset) } else { engine.pread(&mut file, data, offset) };
                completions.push_back(AioCompletion { tag, buf, submitted, completed: clock.raw(), result });
                Ok(())
            }
            Self::Pool { jobs, answer, seen, .. } => {
                let AioStart { tag, file, buf, offset, len, write, .. } = start;
                let submitted = clock.raw();
                let job = AioJob { tag, file, buf, offset, len, write, submitted, answer: answer.clone() };
                // The queue is closed only if all workers have exited, which they do not as long as there is a thread.
                if let Err(SendError(job)) = jobs.send(job) {
                    seen.push_back(AioCompletion {
                        tag,
                        buf: job.buf,
                        submitted,
                        completed: submitted,
                        result: Err(Errno::CANCELED),
                    });
                }
                Ok(())
            }
            Self::Ring(ring) => ring.start(clock, start),
        }
    }

    /// Returns a completed operation. `None` when no completion is available.
    pub(super) fn next_completion(&mut self, clock: &Clock) -> Option<AioCompletion> {
        match self {
            Self::AtOnce { completions, .. } => completions.pop_front(),
            Self::Pool { completions, seen, .. } => seen.pop_front().or_else(|| completions.try_recv().ok()),
            Self::Ring(ring) => ring.next_completion(clock),
        }
    }

    /// Waits until an operation has completed, for at most `limit`. It may return early.
    pub(super) fn wait(&mut self, clock: &Clock, limit: Duration) -> Result<(), Errno> {
        match self {
            Self::AtOnce { .. } => {}
            Self::Pool { completions, seen, .. } => seen.extend(completions.recv_timeout(limit)),
            Self::Ring(ring) => return ring.wait(clock, limit),
        }
        Ok(())
    }

    /// Replaces all buffers. No operation may be in flight.
    pub(super) fn replace_buffers(&mut self, buffers: &[MapSlice]) {
        if let (Self::Ring(ring), [first, ..]) = (self, buffers) {
            ring.register(first);
        }
    }

    /// Unregisters the file of a slot, which is about to be closed. No operation on it may be in flight.
    pub(super) fn unregister_file(&mut self, slot: usize) {
        if let Self::Ring(ring) = self {
            ring.unregister_file(slot);
        }
    }
}

/// The ring of one thread.
///
/// A thread with only asynchronous I/O takes its completions itself: each system call submits the queued operations and
/// collects the completed ones. So the operation that fills the queue and the wait for the next completion take one
/// system call together.
///
/// A thread with other flowops would see a completion only after these flowops, and their time would count in its
/// latency. So it has a watcher: a helper thread that sleeps in the kernel and records the time of each completion.
#[derive(Debug)]
pub(super) struct RingBackend {
    ring: Ring,
    /// The tick of submission, by tag.
    submitted: Vec<u64>,
    /// The tag of the operation that is queued and is submitted with the next wait.
    queued: Option<u32>,
    /// By slot: the number of the open seen last, and whether its file is registered.
    files: Vec<(u64, bool)>,
    /// An operation that could not be queued.
    refused: Option<AioCompletion>,
    watched: Option<WatchedRing>,
}

#[derive(Debug)]
struct WatchedRing {
    seen: Receiver<WatchedCompletion>,
    /// The completion that a wait has received.
    next: Option<WatchedCompletion>,
    thread: Option<JoinHandle<()>>,
}

/// A completion reported by the watcher: request, tick, result.
type WatchedCompletion = (Reaped, u64, Result<usize, Errno>);

impl RingBackend {
    fn new(depth: usize, watched: bool, buffers: &[MapSlice]) -> Result<Self, Errno> {
        let mut ring = Ring::new(u32::try_from(depth).map_err(|_| Errno::INVAL)?, FILES, watched)?;
        if let Some(first) = buffers.first() {
            ring.register(first);
        }
        let watched = ring.watcher().map(|mut watcher| {
            let (sender, seen) = bounded(depth);
            let clock = Clock::get();
            let work = move || {
                let mut each = |reaped, result| {
                    // The submitting thread may have exited; then the completion is not needed.
                    let _ = sender.send((reaped, clock.raw(), result));
                };
                while watcher.wait(&mut each) {}
            };
            let thread = std::thread::Builder::new().name("aio".to_owned()).stack_size(super::STACK).spawn(work);
            thread.map(|thread| WatchedRing { seen, next: None, thread: Some(thread) })
        });
        let watched = watched.transpose().map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::AGAIN))?;
        Ok(Self {
            ring,
            submitted: vec![0; depth],
            queued: None,
            files: vec![(0, false); FILES as usize],
            refused: None,
            watched,
        })
    }

    fn register(&mut self, slice: &MapSlice) {
        self.ring.register(slice);
    }

    fn start(&mut self, clock: &Clock, start: AioStart) -> Result<(), Errno> {
        let AioStart { tag, file, opening: (slot, opening), buf, offset, len, write, last } = start;
        let registered = self.registered(slot, opening, file);
        let submitted = clock.raw();
        self.submitted[tag as usize] = submitted;
        let request =
            Request { tag, fd: file.fd, registered, offset, len: u32::try_from(len).unwrap_or(u32::MAX), write, buf };
        if let Err((errno, buf)) = self.ring.queue(request) {
            self.refused = Some(AioCompletion { tag, buf, submitted, completed: submitted, result: Err(errno) });
            return Ok(());
        }
        if last && self.watched.is_none() {
            self.queued = Some(tag);
            return Ok(());
        }
        self.queued = None;
        self.ring.submit()
    }

    /// Returns the index of a file among the registered ones. `None` when it is not registered.
    ///
    /// A file is registered when it is used for the second time. Registering costs as much as a system call, which a
    /// file that is opened for a single operation would never repay.
    fn registered(&mut self, slot: usize, opening: u64, file: Handle) -> Option<u32> {
        let (seen, registered) = self.files.get_mut(slot)?;
        if *seen != opening {
            (*seen, *registered) = (opening, false);
        } else if !*registered {
            *registered = self.ring.set_file(slot as u32, file.fd);
        }
        registered.then_some(slot as u32)
    }

    fn unregister_file(&mut self, slot: usize) {
        if let Some((_, registered)) = self.files.get_mut(slot)
            && std::mem::take(registered)
        {
            self.ring.set_file(slot as u32, wml_os::NONE);
        }
    }

    fn next_completion(&mut self, clock: &Clock) -> Option<AioCompletion> {
        if self.refused.is_some() {
            return self.refused.take();
        }
        let Some(watched) = &mut self.watched else {
            let found = self.ring.next_completion().or_else(|| {
                self.ring.reap(|| clock.raw());
                self.ring.next_completion()
            });
            let Completion { tag, completed, result, buf } = found?;
            return Some(AioCompletion { tag, buf, submitted: self.submitted[tag as usize], completed, result });
        };
        let (reaped, completed, result) = watched.next.take().or_else(|| watched.seen.try_recv().ok())?;
        let tag = reaped.tag();
        let buf = self.ring.return_buffer(reaped)?;
        Some(AioCompletion { tag, buf, submitted: self.submitted[tag as usize], completed, result })
    }

    fn wait(&mut self, clock: &Clock, limit: Duration) -> Result<(), Errno> {
        if let Some(watched) = &mut self.watched {
            return match watched.seen.recv_timeout(limit) {
                Ok(seen) => {
                    watched.next = Some(seen);
                    Ok(())
                }
                Err(RecvTimeoutError::Timeout) => Ok(()),
                // The watcher has exited, because the kernel refused its wait.
                Err(RecvTimeoutError::Disconnected) => Err(Errno::IO),
            };
        }
        if let Some(tag) = self.queued.take() {
            self.submitted[tag as usize] = clock.raw();
        }
        // Wait for one completion at a time: an earlier one must not get the time of the last.
        self.ring.wait(1, limit)
    }
}

impl Drop for RingBackend {
    fn drop(&mut self) {
        if let Some(thread) = self.watched.as_mut().and_then(|watched| watched.thread.take()) {
            // If an operation is still in flight, the submitting thread has panicked, and the watcher must not be
            // waited for.
            if self.ring.in_flight() == 0 && self.ring.end_watcher().is_ok() {
                let _ = thread.join();
            }
        }
    }
}
