//! The engine: a checked model in, its plan out; a plan in, threads that execute it, and the counters of their operations.
//!
//! All that a thread does between two system calls is in this library, so that the compiler sees the loop of operations as a
//! whole. What it calls in others is marked `#[inline]`. The modules are listed in import order. Not here: when runs are
//! made, what becomes of their figures, and the text of scripts.

// The methods of `clippy.toml`: tests lay out files by path.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod random;
pub mod sync;
pub mod stats;
pub mod io_engine;
pub mod fileset;
pub mod disk;
pub mod exec;
pub mod flowop;
pub mod plan;
pub mod runtime;
