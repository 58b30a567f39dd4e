//! The latch behind `block` and `wakeup`: a wake-up without a waiter is kept, but only one of them.
//!
//! The state is the futex word itself. A waiter sleeps on `DOWN`, so a wake-up between its look and its sleep makes the
//! sleep end at once. All accesses are `SeqCst` read-modify-writes (or the final store of `CLOSED`), for which the
//! model in `tests/it/model.rs` is exact; a compare-and-swap is a locked instruction on x86-64 with any ordering.

use super::{AtomicU32, Stopped, wait, wake};
use std::sync::atomic::Ordering::SeqCst;

const DOWN: u32 = 0;
const UP: u32 = 1;
const CLOSED: u32 = 2;

/// The latch of one instance of a `block` flowop.
#[derive(Debug, Default)]
pub struct Latch(AtomicU32);

impl Latch {
    /// Wakes a waiter, or lets the next one pass. Has no effect while an earlier wake-up is unused.
    pub fn raise(&self) {
        if self.0.compare_exchange(DOWN, UP, SeqCst, SeqCst).is_ok() {
            wake(&self.0, 1);
        }
    }

    /// Waits for a wake-up and uses it up. `Err` when the run has stopped.
    pub fn pass(&self) -> Result<(), Stopped> {
        loop {
            match self.0.compare_exchange(UP, DOWN, SeqCst, SeqCst) {
                Ok(_) => return Ok(()),
                Err(CLOSED) => return Err(Stopped),
                Err(_) => _ = wait(&self.0, DOWN, None),
            }
        }
    }

    /// Stops the run: ends all present and future waits with [`Stopped`].
    pub fn close(&self) {
        self.0.store(CLOSED, SeqCst);
        wake(&self.0, u32::MAX);
    }
}
