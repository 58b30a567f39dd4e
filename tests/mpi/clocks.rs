//! Tests the common start of ranks whose clocks differ: a thousand times, the instant is the same on all of them within
//! the stated bound.
//!
//! Started alone, this program starts itself under `mpirun` as four ranks. Two of them are in time namespaces of their
//! own, whose clocks differ from the others' by a known time.

#![allow(clippy::print_stdout, reason = "a test program without a harness prints its result")]

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use wml::ranks::{self, Others};

/// The number of common starts.
const TRIALS: usize = 1000;
/// What the clock of each rank is ahead of that of rank 0, in seconds.
const AHEAD: [i64; 4] = [0, 5, 0, -3];

fn main() -> ExitCode {
    if std::env::var_os("OMPI_COMM_WORLD_RANK").is_some() { rank() } else { start() }
}

/// Starts the ranks. A namespace can be behind only if the machine has been up for longer than that.
fn start() -> ExitCode {
    let program = std::env::current_exe().expect("a path");
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe"]);
    for (rank, ahead) in AHEAD.iter().enumerate() {
        if rank > 0 {
            command.arg(":");
        }
        command.args(["-n", "1"]);
        if *ahead != 0 {
            command.args(["unshare", "--time", "--fork", "--monotonic", &ahead.to_string()]);
        }
        command.arg(&program);
    }
    let status = command.status().expect("mpirun");
    println!("{} passed, {} failed", u8::from(status.success()), u8::from(!status.success()));
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Agrees on a start many times, and compares the instants on rank 0.
fn rank() -> ExitCode {
    let group = ranks::connect(Arc::new(AtomicUsize::new(0))).expect("a group");
    let mut outside = 0;
    let (mut largest_error, mut largest_bound, mut bounds) = (0, 0, Vec::new());
    for _ in 0..TRIALS {
        let start = group.common_start().expect("a start");
        let own = [start.at_ns.expect("an instant"), start.clock_error_ns];
        let message = serde_json::to_vec(&own).expect("a message");
        let Some(all) = group.gather(message).expect("all ranks") else { continue };
        let all: Vec<[u64; 2]> = all.iter().map(|one| serde_json::from_slice(one).expect("numbers")).collect();
        for ([at, bound], ahead) in all.iter().zip(AHEAD) {
            let error = at.wrapping_sub(all[0][0]).cast_signed() - ahead * 1_000_000_000;
            outside += usize::from(error.unsigned_abs() > *bound);
            largest_error = largest_error.max(error.unsigned_abs());
            largest_bound = largest_bound.max(*bound);
            bounds.push(*bound);
        }
    }
    let is_first = group.rank() == 0;
    let known = group.clocks(&[0, 1, 2, 3]);
    for (clock, ahead) in known.iter().zip(AHEAD) {
        let clock = clock.expect("a start");
        let error = clock.offset_ns - ahead * 1_000_000_000;
        outside += usize::from(error.unsigned_abs() > clock.error_ns);
        // The clocks differ, but none is faster.
        outside += usize::from(clock.drift.expect("a second reading").is_certain());
    }
    group.end(u8::from(outside > 0), "");
    if is_first {
        bounds.sort_unstable();
        let median = bounds[bounds.len() / 2];
        println!(
            "{TRIALS} starts of {} ranks: {outside} outside of the bound; largest error {largest_error} ns, bound \
             {median} ns in the median and {largest_bound} ns at most",
            AHEAD.len()
        );
    }
    if outside == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
