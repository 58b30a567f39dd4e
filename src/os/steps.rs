//! A progress counter of the process: completed calls of long file operations, such as the creation of a tree.
//!
//! The watchdog reads it to detect a file system that does not answer. Operations of a run are not counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static STEPS: AtomicU64 = AtomicU64::new(0);

/// Counts one completed call, or one batch of calls.
#[inline]
pub fn count() {
    STEPS.fetch_add(1, Relaxed);
}

/// Returns the number counted so far.
#[inline]
pub fn counted() -> u64 {
    STEPS.load(Relaxed)
}
