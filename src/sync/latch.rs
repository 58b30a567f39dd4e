//! `block` and `wakeup`: a wake-up that nobody waits for is kept, but only one.

use super::{AtomicU32, Stopped, wait, wake};
use std::sync::atomic::Ordering::SeqCst;

const DOWN: u32 = 0;
const UP: u32 = 1;
const CLOSED: u32 = 2;

/// What one instance of a `block` flowop waits at.
#[derive(Debug, Default)]
pub struct Latch(AtomicU32);

impl Latch {
    /// Wakes the waiter, or lets the next one pass.
    pub fn raise(&self) {
        if self.0.compare_exchange(DOWN, UP, SeqCst, SeqCst).is_ok() {
            wake(&self.0, 1);
        }
    }

    /// Waits for a wake-up and uses it up.
    pub fn pass(&self) -> Result<(), Stopped> {
        loop {
            match self.0.compare_exchange(UP, DOWN, SeqCst, SeqCst) {
                Ok(_) => return Ok(()),
                Err(CLOSED) => return Err(Stopped),
                Err(_) => _ = wait(&self.0, DOWN, None),
            }
        }
    }

    /// The run has stopped.
    pub fn close(&self) {
        self.0.store(CLOSED, SeqCst);
        wake(&self.0, u32::MAX);
    }
}
