//! Marks in a system call trace, for tests that count calls.
//!
//! With `WMLRUN_MARK=1` in the environment an annotation is a look-up of a name that does not exist, `wmlrun annotation: TEXT`: a tracer sees it
//! among the other calls of its thread, in order, and nothing else comes of it. Without, it is one load and a branch.
//! Deliberately absent: who marks what. That is in the runtime.

use rustix::fs::{Access, access};
use std::sync::LazyLock;

/// Puts a mark into the trace of the calling thread, if marks are wanted.
pub fn annotate(text: &str) {
    static WANTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os("WMLRUN_MARK").is_some_and(|value| value == "1"));
    if *WANTED {
        // It is not there; who traces has seen the question.
        let _ = access(format!("wmlrun annotation: {text}"), Access::EXISTS);
    }
}
