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

use crate::os::{Clock, futex};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// The run has stopped; whoever waited goes home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Sleeps while `word` holds `value`, for at most `timeout`. Returns early now and then; callers look again. Returns whether it
/// was woken: nearly always, one of those whom a [`wake`] has found.
fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool {
    // That the word changed, that a signal came and that the time is over all mean the same to the callers: look again.
    futex::wait(word, value, timeout).is_ok()
}

/// Wakes up to `n` sleepers on `word`. Returns how many there were.
fn wake(word: &AtomicU32, n: u32) -> u32 {
    futex::wake(word, n)
}

#[cfg(test)]
#[path = "semaphore_tests.rs"]
mod semaphore_tests;
