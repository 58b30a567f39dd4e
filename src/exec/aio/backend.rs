//! Ways to have operations run on while their thread goes on: `io_uring`, a pool of threads, or none at all.
//!
//! All answer with the same [`AioCompletion`]. A back end knows neither flowops nor counters.

use super::pool::{AioJob, AioPool};
use crate::engine::{Engine, Handle};
use crate::os::map::MapSlice;
use crate::os::uring::{Completion, Request, Ring};
use crate::os::{Clock, Errno};
use crossbeam::channel::{Receiver, RecvTimeoutError, SendError, Sender, bounded};
use std::collections::VecDeque;
use std::thread::JoinHandle;
use std::time::Duration;

/// Slots whose descriptors have a place among the files of a ring: those that a script can name, and some.
const FILES: u32 = 256;

/// What is to be started.
#[derive(Debug)]
pub(super) struct AioStart {
    /// Tells it apart from the others that are out; below the depth.
    pub(super) tag: u32,
    pub(super) file: Handle,
    /// The slot that the file is open in, and which opening of it that is.
    pub(super) opening: (usize, u64),
    pub(super) buf: MapSlice,
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) write: bool,
    /// Nothing more will be started before something has completed.
    pub(super) last: bool,
}

/// What has completed.
#[derive(Debug)]
pub(super) struct AioCompletion {
    pub(super) tag: u32,
    pub(super) buf: MapSlice,
    /// When it was handed over, and when it was found to have completed, in ticks.
    pub(super) submitted: u64,
    pub(super) completed: u64,
    pub(super) result: Result<usize, Errno>,
}

/// How a thread's operations run.
#[derive(Debug)]
pub(super) enum Backend {
    /// At once, by an engine that makes no calls.
    AtOnce { engine: &'static dyn Engine, completions: VecDeque<AioCompletion> },
    /// By the workers of the process.
    Pool {
        jobs: Sender<AioJob>,
        answer: Sender<AioCompletion>,
        completions: Receiver<AioCompletion>,
        seen: VecDeque<AioCompletion>,
    },
    /// In the kernel.
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

    /// `watched`: see [`RingBackend`].
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
                // It comes back only if all workers have gone, which they do not as long as there is a thread.
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

    /// Something that has completed, if anything has.
    pub(super) fn next_completion(&mut self, clock: &Clock) -> Option<AioCompletion> {
        match self {
            Self::AtOnce { completions, .. } => completions.pop_front(),
            Self::Pool { completions, seen, .. } => seen.pop_front().or_else(|| completions.try_recv().ok()),
            Self::Ring(ring) => ring.next_completion(clock),
        }
    }

    /// Waits until something has completed, for at most `limit`. It may come back early.
    pub(super) fn wait(&mut self, clock: &Clock, limit: Duration) -> Result<(), Errno> {
        match self {
            Self::AtOnce { .. } => {}
            Self::Pool { completions, seen, .. } => seen.extend(completions.recv_timeout(limit)),
            Self::Ring(ring) => return ring.wait(clock, limit),
        }
        Ok(())
    }

    /// New buffers, in place of all that there were. Nothing is out.
    pub(super) fn renew(&mut self, buffers: &[MapSlice]) {
        if let (Self::Ring(ring), [first, ..]) = (self, buffers) {
            ring.register(first);
        }
    }

    /// A file is about to be closed. Nothing is out.
    pub(super) fn forget_file(&mut self, slot: usize) {
        if let Self::Ring(ring) = self {
            ring.forget_file(slot);
        }
    }
}

/// A ring of one thread.
///
/// A thread that does nothing else than asynchronous I/O takes its completions itself: each entry into the kernel starts what is
/// queued and brings what has completed. One that does other things meanwhile would notice completions only after those, and take
/// that for their latency: it has a watcher, a thread that sleeps in the kernel and tells the time of each completion.
#[derive(Debug)]
pub(super) struct RingBackend {
    ring: Ring,
    /// When each was handed over, by tag.
    submitted: Vec<u64>,
    /// The one that is queued and goes with the next wait.
    queued: Option<u32>,
    /// By slot: the opening seen last, and whether its file is registered.
    files: Vec<(u64, bool)>,
    /// One that could not be queued.
    refused: Option<AioCompletion>,
    watched: Option<WatchedRing>,
}

#[derive(Debug)]
struct WatchedRing {
    seen: Receiver<Seen>,
    /// The one that a wait has found.
    next: Option<Seen>,
    thread: Option<JoinHandle<()>>,
}

/// What the watcher tells: tag, tick, outcome.
type Seen = (u32, u64, Result<usize, Errno>);

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
                let mut each = |tag, result| {
                    // A thread that has gone needs no notice.
                    let _ = sender.send((tag, clock.raw(), result));
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

    /// The place of a file among the registered ones. It gets one when it is used for the second time: to register it costs as
    /// much as a call, which files that are opened for one operation would never earn back.
    fn registered(&mut self, slot: usize, opening: u64, file: Handle) -> Option<u32> {
        let (seen, registered) = self.files.get_mut(slot)?;
        if *seen != opening {
            (*seen, *registered) = (opening, false);
        } else if !*registered {
            *registered = self.ring.set_file(slot as u32, file.fd);
        }
        registered.then_some(slot as u32)
    }

    fn forget_file(&mut self, slot: usize) {
        if let Some((_, registered)) = self.files.get_mut(slot)
            && std::mem::take(registered)
        {
            self.ring.set_file(slot as u32, crate::os::NONE);
        }
    }

    fn next_completion(&mut self, clock: &Clock) -> Option<AioCompletion> {
        if self.refused.is_some() {
            return self.refused.take();
        }
        let Some(watched) = &mut self.watched else {
            let found = self.ring.take().or_else(|| {
                self.ring.look(|| clock.raw());
                self.ring.take()
            });
            let Completion { tag, completed, result, buf } = found?;
            return Some(AioCompletion { tag, buf, submitted: self.submitted[tag as usize], completed, result });
        };
        let (tag, completed, result) = watched.next.take().or_else(|| watched.seen.try_recv().ok())?;
        let buf = self.ring.give_back(tag)?;
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
                // The kernel let nobody wait.
                Err(RecvTimeoutError::Disconnected) => Err(Errno::IO),
            };
        }
        if let Some(tag) = self.queued.take() {
            self.submitted[tag as usize] = clock.raw();
        }
        // One at a time: what completed earlier must not have the time of the last.
        self.ring.wait(1, limit)
    }
}

impl Drop for RingBackend {
    fn drop(&mut self) {
        if let Some(thread) = self.watched.as_mut().and_then(|watched| watched.thread.take()) {
            // With something still out, its thread has panicked, and nobody is left to wait.
            if self.ring.in_flight() == 0 && self.ring.dismiss().is_ok() {
                let _ = thread.join();
            }
        }
    }
}
