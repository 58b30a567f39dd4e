//! Annotations in a system call trace, for `wmlrun fidelity`, and for tests that count calls.
//!
//! With `WMLRUN_MARK=1` in the environment, an annotation looks up a file name that does not exist,
//! `wmlrun annotation: TEXT`. A tracer records it among the other calls of the thread, in order; it has no other
//! effect. Without the variable, it costs one load and a branch. The annotations themselves are placed by the runtime.

use rustix::fs::{Access, access};
use std::sync::LazyLock;

/// Adds an annotation to the trace of the calling thread, if annotations are enabled.
pub fn annotate(text: &str) {
    static ENABLED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("WMLRUN_MARK").is_some_and(|value| value == "1"));
    if *ENABLED {
        // The look-up fails, as intended: only the call itself matters.
        let _ = access(format!("wmlrun annotation: {text}"), Access::EXISTS);
    }
}
