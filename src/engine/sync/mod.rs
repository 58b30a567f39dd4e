//! Synchronization of the threads of a run: the gate, semaphores, latches, groups, the notifier and the event pool.
//!
//! All waits are futex waits and end at once when the run stops. No function allocates or takes a lock while a run is
//! in progress. Deliberately absent: flowops, file sets, statistics.
//!
//! `notifier`, `gate`, `group`, `latch` and `semaphore` take their atomics and the functions `wait` and `wake` from this module
//! only. `tests/it/model.rs` compiles the same files against a model of threads and futexes (loom) and explores the
//! possible interleavings of their steps.
//!
//! The rule of all futex protocols here: a waiter reads the futex word, checks its condition, and sleeps on the value
//! that it read; a waker changes the word before it calls `wake`. The kernel compares the word again under its own
//! lock before it puts the waiter to sleep, so a change between the check and the sleep makes the wait return at once,
//! and no wake-up is lost. Waits also return early for other reasons (a signal, a spurious wake-up), so all callers
//! check their condition again in a loop.
//!
//! Memory orderings: an ordering weaker than `SeqCst` has its reason beside it. Where two threads each write one word
//! and then read the other's (a waiter and a poster, a stop and a new deadline), only `SeqCst` excludes that both read
//! the old values. Where a single word decides, `SeqCst` is kept because the model is then exact: it makes a
//! read-modify-write of each `SeqCst` access, which always sees the latest value. On x86-64 this costs nothing on the
//! frequent paths: a `SeqCst` load is an ordinary load, and a read-modify-write is a locked instruction with any
//! ordering.

mod notifier;
mod events;
mod gate;
mod group;
mod latch;
mod semaphore;

pub use events::{Claim, EventPool};
pub use gate::{Gate, NEVER};
pub use group::{GatherGuard, Gathering};
pub use latch::Latch;
pub use notifier::Notifier;
pub use semaphore::Semaphore;

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;
use wml_os::{Clock, futex};

/// The error of a wait that ended because the run has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Sleeps while `word` contains `value`, for at most `timeout`. It may return early, so callers check their condition
/// in a loop. Returns whether the thread was woken, which nearly always means that a [`wake`] counted this thread.
fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool {
    // A changed word, a signal and a timeout all mean the same to callers: check the condition again.
    futex::wait(word, value, timeout).is_ok()
}

/// Wakes up to `n` threads that sleep on `word`. Returns the number of threads woken.
fn wake(word: &AtomicU32, n: u32) -> u32 {
    futex::wake(word, n)
}

#[cfg(test)]
#[path = "semaphore_tests.rs"]
mod semaphore_tests;
