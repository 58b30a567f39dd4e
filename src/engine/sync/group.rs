//! The group behind `group` of a composite flowop: of the threads that come while one executes it, one executes it
//! next for all of them, as transactions share a flush (group commit).
//!
//! The state is the futex word itself: the number of executions that have ended, and whether one runs. A thread that
//! comes while one runs waits for the one after it, which began after the thread came. All accesses are `SeqCst`
//! read-modify-writes (or a load before one), as those of the latch.

use super::{AtomicU32, Stopped, wait, wake};
use std::sync::atomic::Ordering::SeqCst;

const RUNNING: u32 = 1;
const CLOSED: u32 = 1 << 31;
/// The bits of the state that count, the lowest of them [`RUNNING`].
const COUNT: u32 = CLOSED - 1;
/// Half of the number of executions after which the count begins again at 0.
const HALF: u32 = 1 << 29;

/// The threads of one definition that share the executions of a composite.
#[derive(Debug, Default)]
pub struct Gathering(AtomicU32);

/// A drop guard of the thread that executes for a group: a thread that ends meanwhile leaves the group to the others.
#[derive(Debug)]
pub struct GatherGuard<'r>(&'r Gathering);

impl<'r> GatherGuard<'r> {
    /// Takes over the call of [`Gathering::finish`].
    pub fn new(group: &'r Gathering) -> Self {
        Self(group)
    }
}

impl Drop for GatherGuard<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

impl Gathering {
    /// Waits until `wanted` executions have ended, as [`Gathering::begin`] said, and returns false; or until the calling
    /// thread is to execute the composite, and returns true. `Err` when the run has stopped.
    pub fn wait(&self, wanted: u32) -> Result<bool, Stopped> {
        loop {
            let state = self.0.load(SeqCst);
            if state & CLOSED != 0 {
                return Err(Stopped);
            }
            if ended(state).wrapping_sub(wanted) & (COUNT >> 1) < HALF {
                return Ok(false);
            }
            if state & RUNNING == 0 {
                if self.0.compare_exchange(state, state | RUNNING, SeqCst, SeqCst).is_ok() {
                    return Ok(true);
                }
            } else {
                wait(&self.0, state, None);
            }
        }
    }

    /// Begins an execution if none runs (`None`), else returns the number of those that must have ended to cover the
    /// calling thread: the one after the one that runs. `Err` when the run has stopped.
    pub fn begin(&self) -> Result<Option<u32>, Stopped> {
        let mut state = self.0.load(SeqCst);
        loop {
            if state & CLOSED != 0 {
                return Err(Stopped);
            }
            if state & RUNNING != 0 {
                return Ok(Some(ended(state).wrapping_add(2)));
            }
            match self.0.compare_exchange(state, state | RUNNING, SeqCst, SeqCst) {
                Ok(_) => return Ok(None),
                Err(now) => state = now,
            }
        }
    }

    /// Ends the execution of the thread that executes, and wakes those that wait.
    pub fn finish(&self) {
        let state = self.0.load(SeqCst);
        // The only other change of a running state is that to closed, after which nobody waits.
        if state & CLOSED == 0
            && self.0.compare_exchange(state, state.wrapping_add(RUNNING) & COUNT, SeqCst, SeqCst).is_ok()
        {
            wake(&self.0, u32::MAX);
        }
    }

    /// Stops the run: ends all present and future waits with [`Stopped`].
    pub fn close(&self) {
        self.0.store(CLOSED, SeqCst);
        wake(&self.0, u32::MAX);
    }
}

fn ended(state: u32) -> u32 {
    (state & COUNT) >> 1
}
