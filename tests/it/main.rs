//! All tests that are no golden cases, in one binary: a module an area.
//!
//! `cmd`, `fuse`, `mounts`, `scripts`, `strace`, `support` and `tree` are what the others are built of.

#![allow(clippy::unwrap_used, clippy::format_collect)]

mod cmd;
mod fuse;
mod mounts;
mod scripts;
mod strace;
mod support;
mod told;
mod tree;

mod again;
mod aio;
mod cold;
mod commands;
mod container;
mod cost;
mod counts;
mod coverage;
mod crowd;
mod delays;
mod documented;
mod escape;
mod examples;
mod filesystems;
mod five_mistakes;
mod flowops;
mod formats;
mod generated;
mod hangs;
mod interrupt;
mod laddis;
mod limits;
mod lints;
mod main_job;
mod manual;
mod model;
mod mutants;
mod outputs;
mod ownership;
mod panics;
mod promises;
mod rates;
mod repl;
mod safety;
mod shapes;
mod shipped;
mod short_transfers;
mod signals;
mod size_bombs;
mod space;
mod spread;
mod starvation;
mod std_streams;
mod steady;
mod stream;
mod strict;
mod study;
mod sums;
mod syntax;
mod tidy;
mod variables;
mod vectors_14;
mod vectors_15;
