//! How the controller of a run is told that there is news.

use super::{AtomicU32, wait, wake};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// Counts how often it was rung. A futex: unlike a condition variable, a wait on it ends when a signal comes to the thread
/// that waits, so that the controller need not wake up again and again to see whether one came.
#[derive(Debug, Default)]
pub struct Notifier(AtomicU32);

impl Notifier {
    /// How often it was rung: to be read before looking for news.
    pub fn rung(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// There is news.
    pub fn ring(&self) {
        self.0.fetch_add(1, Release);
        wake(&self.0, u32::MAX);
    }

    /// Sleeps until it is rung once more than `rung` says, a signal comes, or `timeout` is over.
    pub fn wait(&self, rung: u32, timeout: Duration) {
        wait(&self.0, rung, Some(timeout));
    }
}
