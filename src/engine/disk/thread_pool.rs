//! A pool of threads that share a work queue, while the caller reports progress and checks for a stop.
//!
//! The pool ends at the first error. The kind of work is not known here.

use super::error::Error;
use crossbeam::utils::CachePadded;
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use wml_os::steps;

/// Time between two progress reports and checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The work that one worker has done so far. Only this worker writes it.
#[derive(Default, Debug)]
pub(super) struct Tally {
    pub(super) files: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Tally {
    /// Adds completed files and bytes.
    #[inline]
    pub(super) fn add(&self, files: u64, bytes: u64) {
        steps::count();
        // There is a single writer, so a load and a store suffice: no atomic read-modify-write.
        self.files.store(self.files.load(Ordering::Relaxed) + files, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

/// The context of a worker.
pub(super) struct Worker<'a> {
    /// Its number, from 0.
    pub(super) number: u64,
    /// Set when another worker failed or the user stopped the program. Must be checked between system calls.
    pub(super) halt: &'a AtomicBool,
    /// The work done so far.
    pub(super) tally: &'a Tally,
}

impl Worker<'_> {
    /// Returns [`ControlFlow::Break`] when the worker must end.
    #[inline]
    pub(super) fn halted(&self) -> ControlFlow<()> {
        if self.halt.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs `work` in `threads` threads and waits for all of them. Calls `watch` with the completed files and bytes some
/// twenty times per second.
///
/// Returns the completed files and bytes, the first error, or [`Error::Stopped`] when `stop` was set.
pub(super) fn run(
    set: &str,
    threads: usize,
    stop: &AtomicBool,
    mut watch: impl FnMut(u64, u64),
    work: impl Fn(&Worker<'_>) -> Result<(), Error> + Sync,
) -> Result<(u64, u64), Error> {
    let threads = threads.max(1);
    let halt = AtomicBool::new(stop.load(Ordering::Relaxed));
    let tallies: Vec<CachePadded<Tally>> = (0..threads).map(|_| CachePadded::default()).collect();
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let total = || {
        tallies.iter().fold((0, 0), |(files, bytes), tally| {
            (files + tally.files.load(Ordering::Relaxed), bytes + tally.bytes.load(Ordering::Relaxed))
        })
    };
    let one = |number: usize, tally: &Tally, ends: &AtomicBool| {
        if let Err(e) = work(&Worker { number: number as u64, halt: ends, tally }) {
            halt.store(true, Ordering::Relaxed);
            let mut first = failed.lock();
            first.get_or_insert(e);
        }
    };
    std::thread::scope(|scope| {
        let (ended, all_ended) = mpsc::channel::<()>();
        for (number, tally) in tallies.iter().enumerate() {
            let (one, halt, ended) = (&one, &halt, ended.clone());
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                // Dropped last, even on a panic: the channel closes when the last worker has ended.
                let _ended = ended;
                one(number, tally, halt);
            });
            if started.is_err() {
                // Continue with the threads that could be started. Without any, the caller does the work, without
                // reports: it must see the interruption itself.
                if number == 0 {
                    one(number, tally, stop);
                    halt.fetch_or(stop.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                break;
            }
        }
        drop(ended);
        while all_ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
            let (files, bytes) = total();
            watch(files, bytes);
        }
    });
    match failed.into_inner() {
        Some(e) => Err(e),
        None if halt.load(Ordering::Relaxed) => Err(Error::Stopped { set: set.to_owned() }),
        None => Ok(total()),
    }
}
