//! Futexes: a thread sleeps on a 32-bit word until another thread changes it and wakes the sleepers.
//!
//! Private to this process. Wake-ups may be spurious, and a wait may return for no reason: callers check their
//! condition again.

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `seen`, for at most `limit`. Returns `Ok` after a wake-up, which may be spurious. `Err` is
/// [`Errno::AGAIN`] (the word holds another value), [`Errno::INTR`] or [`Errno::TIMEDOUT`].
#[inline]
pub fn wait(word: &AtomicU32, seen: u32, limit: Option<Duration>) -> Result<(), Errno> {
    let limit =
        limit.map(|limit| Timespec { tv_sec: limit.as_secs().min(1 << 40) as _, tv_nsec: limit.subsec_nanos().into() });
    futex::wait(word, Flags::PRIVATE, seen, limit.as_ref())
}

/// Wakes up to `n` threads that sleep on `word`. Returns the number of threads woken.
#[inline]
pub fn wake(word: &AtomicU32, n: u32) -> u32 {
    // The only possible error is a bad address, which a reference can't be.
    futex::wake(word, Flags::PRIVATE, n.min(i32::MAX as u32)).unwrap_or(0) as u32
}

/// Sizes the kernel's futex hash table of this process for `threads` sleeping threads.
///
/// By default, the table has a few buckets per processor. With two thousand threads that sleep on a dozen words, the
/// words collide in a bucket, and each wake-up walks past the threads that sleep on other words. Four buckets per
/// thread are never fewer than the default.
pub fn expect_sleepers(threads: usize) {
    // Since Linux 6.16. Older kernels have one table for all processes and reject the option.
    const PR_FUTEX_HASH: libc::c_int = 78;
    const SET_SLOTS: usize = 1;
    let slots = threads.saturating_mul(4).next_power_of_two().min(1 << 12);
    if slots > 256 {
        // SAFETY: all arguments are integers; a failure changes nothing.
        let _ = unsafe { libc::prctl(PR_FUTEX_HASH, SET_SLOTS, slots, 0_usize) };
    }
}
