//! How threads wait for each other and for time: the gate, semaphores, latches, the event pool.
//!
//! Everything waits on futexes and gives up at once when the run stops. Nothing here allocates or locks while a run goes on.
//! Deliberately absent: flowops, file sets, statistics.
//!
//! What waits on nothing but futexes (`notifier`, `gate`, `latch`, `semaphore`) takes its atomics and `wait` and `wake` from here and
//! nowhere else: `tests/it/model.rs` compiles the same files over a model of threads and futexes, and tries every order in
//! which their steps can happen.

mod notifier;
mod events;
mod gate;
mod latch;
mod semaphore;

pub use events::{Claim, EventPool};
pub use gate::{Gate, NEVER};
pub use latch::Latch;
pub use notifier::Notifier;
pub use semaphore::Semaphore;

use crate::os::Clock;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// The run has stopped; whoever waited goes home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Sleeps while `word` holds `value`, for at most `timeout`. Returns early now and then; callers look again. Returns whether it
/// was woken: nearly always, one of those whom a [`wake`] has found.
fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool {
    let timeout = timeout.map(|t| rustix::time::Timespec {
        tv_sec: t.as_secs().min(1 << 40) as i64,
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    // EAGAIN (the word changed), EINTR and ETIMEDOUT all mean the same to the callers: look again.
    futex::wait(word, futex::Flags::PRIVATE, value, timeout.as_ref()).is_ok()
}

/// Wakes up to `n` sleepers on `word`. Returns how many there were.
fn wake(word: &AtomicU32, n: u32) -> u32 {
    // The one error there is, a bad address, can't be.
    futex::wake(word, futex::Flags::PRIVATE, n.min(i32::MAX as u32)).unwrap_or(0) as u32
}

#[cfg(test)]
#[path = "semaphore_tests.rs"]
mod semaphore_tests;
