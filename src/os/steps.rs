//! Signs of life: how many calls of long work with files have come back, in the whole process.
//!
//! Who watches that a file system answers looks whether the number changes. Operations of a run are not counted here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static STEPS: AtomicU64 = AtomicU64::new(0);

/// A call, or some of them, came back.
pub fn count() {
    STEPS.fetch_add(1, Relaxed);
}

/// How many were counted so far.
pub fn counted() -> u64 {
    STEPS.load(Relaxed)
}
