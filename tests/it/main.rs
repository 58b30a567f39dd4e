//! All tests except the golden cases, in one binary with one module per area.
//!
//! `cmd`, `fuse`, `mounts`, `scripts`, `strace`, `support`, `tree` and `truth` are helpers of the other modules; `watchdog` ends
//! programs that hang, and `undisturbed` repeats tests that failed because the machine was busy.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::format_collect)]

/// Ends a test that can't run here, with the reason if what it asks has not said so.
macro_rules! needs {
    ($is_there:expr) => {
        if !$is_there {
            return;
        }
    };
    ($is_there:expr, $why:expr) => {
        if !$is_there {
            return crate::cmd::skip($why);
        }
    };
}

mod cmd;
mod fuse;
mod html;
mod mounts;
mod scripts;
mod strace;
mod support;
mod tmux;
mod told;
mod tree;
mod truth;
mod undisturbed;
mod watchdog;

mod again;
mod aging;
mod aio;
mod below;
mod bonnie;
mod calls;
mod capacity;
mod captures;
mod cold;
mod commands;
mod comparisons;
mod completion;
mod container;
mod cost;
mod counts;
mod curves;
mod coverage;
mod crowd;
mod delays;
mod division;
mod doctor;
mod documented;
mod earlier;
mod editors;
mod escape;
mod examples;
mod experiment_files;
mod experiments;
mod explained;
mod exports;
mod fail_if;
mod fidelity;
mod filesystems;
mod first_signal;
mod five_mistakes;
mod flowops;
mod folders;
mod foreign;
mod formats;
mod generated;
mod ground_truth;
mod hangs;
mod history;
mod hold;
mod hosts;
mod init;
mod instances;
mod interrupt;
mod kernel_recorder;
mod killed_recorder;
mod laddis;
mod last_results;
mod late_dirs;
mod late_ops;
mod leaf_dirs;
mod learned;
mod limits;
mod lints;
mod lists;
mod main_job;
mod manual;
mod mistyped;
mod model;
mod modelled;
mod moves;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod mpi_phases;
mod mutants;
mod neighbours;
mod notes;
mod old_words;
mod outputs;
mod ownership;
mod packages;
mod pages;
mod panics;
mod paths;
mod phases;
mod places;
mod preallocation;
mod profiles;
mod program_traces;
mod programs;
mod promises;
#[cfg(feature = "mpi")]
mod rank_faults;
mod ranks;
mod rates;
mod readers;
mod recorded;
mod recorder;
mod recordings;
mod reads;
mod repl;
mod replay_faults;
mod replayed;
mod resume;
mod safety;
mod series;
mod servers;
mod shapes;
mod shared_sets;
mod shell;
mod shipped;
mod short_transfers;
mod signals;
mod size_bombs;
mod space;
mod spread;
mod starvation;
mod std_streams;
mod steady;
mod stonewall;
mod stream;
mod strict;
mod study;
mod suites;
mod sums;
mod syntax;
mod terminal;
mod tidy;
mod timed_commands;
mod traces;
mod transactions;
mod variables;
mod vectors_14;
mod vectors_15;
mod verdicts;
mod words;
mod written_data;
