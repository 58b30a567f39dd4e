//! The notifier by which threads wake the controller of a run.

use super::{AtomicU32, wait, wake};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// An event count: the number of notifications so far, as a futex word. A condition variable resumes its wait after a
/// signal; a futex wait ends when a signal arrives at the waiting thread, so that the controller need not wake up
/// periodically to check for signals.
///
/// Protocol: the controller reads the generation, looks for news, and sleeps only while the generation is unchanged. A
/// notification between the look and the sleep changes the word, so the sleep ends at once. `Release` in
/// [`Notifier::notify`] pairs with `Acquire` in [`Notifier::generation`]: a controller that reads the new generation
/// also sees what the notifying thread wrote before.
#[derive(Debug, Default)]
pub struct Notifier(AtomicU32);

impl Notifier {
    /// Returns the number of notifications so far. To be read before looking for news.
    pub fn generation(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Increments the generation and wakes the controller.
    pub fn notify(&self) {
        self.0.fetch_add(1, Release);
        wake(&self.0, u32::MAX);
    }

    /// Sleeps until the generation differs from `generation`, a signal arrives, or `timeout` is over.
    pub fn wait(&self, generation: u32, timeout: Duration) {
        wait(&self.0, generation, Some(timeout));
    }
}
