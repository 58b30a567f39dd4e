//! All tests that are no golden cases, in one binary: a module an area.
//!
//! `cmd`, `mounts`, `scripts`, `strace`, `support` and `tree` are what the others are built of.

#![allow(clippy::unwrap_used)]

mod cmd;
mod mounts;
mod scripts;
mod strace;
mod support;
mod tree;

mod counts;
mod coverage;
mod documented;
mod examples;
mod filesystems;
mod five_mistakes;
mod flowops;
mod interrupt;
mod lints;
mod main_job;
mod manual;
mod safety;
mod shipped;
mod steady;
mod syntax;
mod tidy;
