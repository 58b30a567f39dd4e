//! The language: texts in, a checked model or diagnostics out. Pure: it reads no file, no clock and no variable of the
//! environment.
//!
//! The modules are listed in import order. Not here: what flowops do, and the values of variables, which a run reads when it
//! starts.

// The methods of `clippy.toml`: tests lay out files by path.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod source;
pub mod diag;
pub mod spec;
pub mod syntax;
pub mod model;
