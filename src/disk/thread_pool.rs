//! A few threads that share a pile of work, while the caller watches: progress, a stop, the first error.
//!
//! Knows nothing of what the work is.

use super::error::Error;
use crate::os::steps;
use crossbeam::utils::CachePadded;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often the caller looks.
const LOOK: Duration = Duration::from_millis(50);

/// What one worker has done so far. Only it writes.
#[derive(Default, Debug)]
pub(super) struct Tally {
    pub(super) files: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Tally {
    /// Adds to it.
    #[inline]
    pub(super) fn add(&self, files: u64, bytes: u64) {
        steps::count();
        // One writer: no need for a locked addition.
        self.files.store(self.files.load(Ordering::Relaxed) + files, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

/// What a worker is told.
pub(super) struct Worker<'a> {
    /// Its number, from 0.
    pub(super) number: u64,
    /// Look at this between calls: somebody failed, or the user stopped.
    pub(super) halt: &'a AtomicBool,
    /// What it has done.
    pub(super) tally: &'a Tally,
}

impl Worker<'_> {
    /// `Break` when it is to end.
    #[inline]
    pub(super) fn halted(&self) -> ControlFlow<()> {
        if self.halt.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs `work` in so many threads until all have returned. Returns files and bytes done, or the first error; a stop is one.
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
    let one = |number: usize, tally: &Tally| {
        if let Err(e) = work(&Worker { number: number as u64, halt: &halt, tally }) {
            halt.store(true, Ordering::Relaxed);
            let mut first = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.get_or_insert(e);
        }
    };
    std::thread::scope(|scope| {
        let (ended, all_ended) = mpsc::channel::<()>();
        for (number, tally) in tallies.iter().enumerate() {
            let (one, ended) = (&one, ended.clone());
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                // Dropped last: the channel closes when the last worker has ended, however it ended.
                let _ended = ended;
                one(number, tally);
            });
            if started.is_err() {
                // As many as can be had do the work; without any, the caller does, and nobody watches.
                if number == 0 {
                    one(number, tally);
                }
                break;
            }
        }
        drop(ended);
        while all_ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
            let (files, bytes) = total();
            watch(files, bytes);
        }
    });
    match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(e) => Err(e),
        None if halt.load(Ordering::Relaxed) => Err(Error::Stopped { set: set.to_owned() }),
        None => Ok(total()),
    }
}
