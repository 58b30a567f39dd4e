//! Asking for a cache line before it is wanted.

/// The processor may fetch the first line of what lies there meanwhile; nothing waits for it.
#[inline]
pub fn cache_line<T>(at: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint: it reads nothing that the program could see, and can't fault, not even at an address that is not mapped.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
