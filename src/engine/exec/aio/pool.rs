//! The thread pool that executes asynchronous operations where `io_uring` is not available or not wanted.
//!
//! The workers of a process share its descriptor table. Each takes a job, makes the system call, and returns the result
//! with the time at which the call ended.

use super::backend::AioCompletion;
use crate::io_engine::{Engine, Handle};
use crossbeam::channel::{Receiver, Sender, bounded};
use std::thread::JoinHandle;
use wml_os::Clock;
use wml_os::map::MapSlice;

/// Number of workers per process, and so the maximum number of its operations in the kernel.
const WORKERS: usize = 8;

/// Capacity of the queue of jobs. A thread that submits a further job waits until one is taken.
const QUEUE: usize = 4096;

/// An operation in flight.
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

/// The workers of one process instance. Dropping the pool waits for the workers to exit, which they do when all jobs
/// are done and no thread can submit another.
#[derive(Debug)]
pub struct AioPool {
    jobs: Option<Sender<AioJob>>,
    workers: Vec<JoinHandle<()>>,
}

impl AioPool {
    /// Starts the workers, which share the descriptor table of the calling thread.
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

    /// Returns the sending end of the queue of jobs.
    pub(super) fn jobs(&self) -> Sender<AioJob> {
        // `None` only in a pool that is being dropped.
        self.jobs.clone().unwrap_or_else(|| bounded(0).0)
    }
}

impl Drop for AioPool {
    fn drop(&mut self) {
        self.jobs = None;
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}

/// Executes jobs until the queue is closed.
fn work(engine: &'static dyn Engine, queue: &Receiver<AioJob>) {
    let clock = Clock::get();
    while let Ok(job) = queue.recv() {
        let AioJob { tag, mut file, mut buf, offset, len, write, submitted, answer } = job;
        let data = &mut buf[..len];
        let result = if write { engine.pwrite(&mut file, data, offset) } else { engine.pread(&mut file, data, offset) };
        // The submitting thread may have exited; then the completion is not needed.
        let _ = answer.send(AioCompletion { tag, buf, submitted, completed: clock.raw(), result });
    }
}
