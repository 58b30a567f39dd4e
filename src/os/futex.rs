//! Sleeping on a number until somebody changes it.
//!
//! Private to this process. A wake-up that nobody needs is harmless, and so must be a wait that ends for no reason: callers
//! look again.

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `seen`, at most `limit`. Returns `false` only if the time ran out.
pub fn wait(word: &AtomicU32, seen: u32, limit: Duration) -> bool {
    let limit = Timespec { tv_sec: limit.as_secs().min(i64::MAX as u64) as _, tv_nsec: limit.subsec_nanos().into() };
    !matches!(futex::wait(word, Flags::PRIVATE, seen, Some(&limit)), Err(Errno::TIMEDOUT))
}

/// Wakes everybody who sleeps on `word`.
pub fn wake_all(word: &AtomicU32) {
    // The one error there is, a bad address, can't be.
    let _ = futex::wake(word, Flags::PRIVATE, i32::MAX as u32);
}

/// Tells the kernel that so many threads will sleep. Its table of a process's sleepers has by itself a few places a processor,
/// where two thousand threads on a dozen words get into one another's way: each wake-up goes past those who sleep on another.
/// Four places a thread are never fewer than those.
pub fn expect_sleepers(threads: usize) {
    // Since Linux 6.16; an older kernel has one table for all processes, and knows no such number.
    const PR_FUTEX_HASH: libc::c_int = 78;
    const SET_SLOTS: usize = 1;
    let slots = threads.saturating_mul(4).next_power_of_two().min(1 << 12);
    if slots > 256 {
        // SAFETY: nothing but numbers goes to the kernel.
        let _ = unsafe { libc::prctl(PR_FUTEX_HASH, SET_SLOTS, slots, 0_usize) };
    }
}
