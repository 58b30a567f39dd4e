//! The thread pool behind asynchronous operations where there is no `io_uring`, or it is not wanted.
//!
//! The workers of a process share its descriptors. Each takes a job, makes the call, and answers with the time at which it
//! ended.

use super::backend::AioCompletion;
use crate::engine::{Engine, Handle};
use crate::os::Clock;
use crate::os::map::MapSlice;
use crossbeam::channel::{Receiver, Sender, bounded};
use std::thread::JoinHandle;

/// Workers of each process: as many operations of it can be in the kernel at once.
const WORKERS: usize = 8;

/// Jobs that wait for a worker. A thread that has one more waits until it is taken.
const QUEUE: usize = 4096;

/// An operation that is out.
#[derive(Debug)]
pub(super) struct AioJob {
    pub(super) tag: u32,
    pub(super) file: Handle,
    pub(super) buf: MapSlice,
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) write: bool,
    pub(super) submitted: u64,
    pub(super) answer: Sender<AioCompletion>,
}

/// The workers of one process instance. Dropped, it waits for them to go, which they do once all that is out is done and no
/// thread can start anything any more.
#[derive(Debug)]
pub struct AioPool {
    jobs: Option<Sender<AioJob>>,
    workers: Vec<JoinHandle<()>>,
}

impl AioPool {
    /// Starts the workers, in the descriptor table of the calling thread.
    pub fn start(engine: &'static dyn Engine) -> std::io::Result<Self> {
        let (jobs, queue) = bounded::<AioJob>(QUEUE);
        let mut pool = Self { jobs: Some(jobs), workers: Vec::new() };
        for _ in 0..WORKERS {
            let queue = queue.clone();
            let worker = std::thread::Builder::new().name("aio".to_owned()).stack_size(super::STACK);
            pool.workers.push(worker.spawn(move || work(engine, &queue))?);
        }
        Ok(pool)
    }

    /// Where jobs go.
    pub(super) fn jobs(&self) -> Sender<AioJob> {
        // Only a pool that is being dropped has none.
        self.jobs.clone().unwrap_or_else(|| bounded(0).0)
    }
}

impl Drop for AioPool {
    fn drop(&mut self) {
        self.jobs = None;
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}

fn work(engine: &'static dyn Engine, queue: &Receiver<AioJob>) {
    let clock = Clock::get();
    while let Ok(job) = queue.recv() {
        let AioJob { tag, mut file, mut buf, offset, len, write, submitted, answer } = job;
        let data = &mut buf[..len];
        let result = if write { engine.pwrite(&mut file, data, offset) } else { engine.pread(&mut file, data, offset) };
        // A thread that has gone needs no notice.
        let _ = answer.send(AioCompletion { tag, buf, submitted, completed: clock.raw(), result });
    }
}
