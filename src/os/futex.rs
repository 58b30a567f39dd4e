//! Sleeping on a number until somebody changes it.
//!
//! Private to this process. A wake-up that nobody needs is harmless, and so must be a wait that ends for no reason: callers
//! look again.

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `seen`, at most `limit`. An error is [`Errno::AGAIN`] (the word holds another value),
/// [`Errno::INTR`] or [`Errno::TIMEDOUT`]; without one, somebody woke the caller, or nobody.
#[inline]
pub fn wait(word: &AtomicU32, seen: u32, limit: Option<Duration>) -> Result<(), Errno> {
    let limit =
        limit.map(|limit| Timespec { tv_sec: limit.as_secs().min(1 << 40) as _, tv_nsec: limit.subsec_nanos().into() });
    futex::wait(word, Flags::PRIVATE, seen, limit.as_ref())
}

/// Wakes up to `n` sleepers on `word`. Returns how many there were.
#[inline]
pub fn wake(word: &AtomicU32, n: u32) -> u32 {
    // The one error there is, a bad address, can't be.
    futex::wake(word, Flags::PRIVATE, n.min(i32::MAX as u32)).unwrap_or(0) as u32
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
