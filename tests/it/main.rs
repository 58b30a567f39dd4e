//! All tests that are no golden cases, in one binary: a module an area.

#![allow(clippy::unwrap_used)]

mod examples;
mod flowops;
mod support;
mod syntax;
mod tidy;
