//! `cargo bench --bench picks`: the rate at which a thread picks files from a file set of 31.6 million.
//!
//! The rows differ in the fraction of files that are candidates, and in their positions (spread, or in one cluster).
//! The columns are the ways to pick, with one thread and with two threads that share the file set. A pick claims its
//! file and releases it, as a flowop that changes the file does. Rates are per second of the thread's processor time,
//! so that other load on the machine does not affect them. The last column is the p-value of a χ² test of uniform
//! picks, over 1,000 ranges of the candidates' ranks with equal length.
//!
//!     cargo bench --bench picks -- [--seconds S] [--files N]

#![allow(clippy::disallowed_methods, reason = "a separate program")]
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a separate program")]

use rustix::time::{ClockId, clock_gettime};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wml::fileset::{How, Members, Picked, Rotor, Want};
use wml::random::mix;

/// The number of files: that of the personality `laddis_1t`.
const FILES: u64 = 31_577_799;
/// The number of cells of the χ² test.
const CELLS: u64 = 1000;
/// The number of draws per cell.
const DRAWS: u64 = 1000;

fn main() {
    let (mut seconds, mut files) = (1.0, FILES);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => seconds = words.next().unwrap().parse().unwrap(),
            "--files" => files = words.next().unwrap().parse().unwrap(),
            "--bench" => {}
            other => panic!("unknown argument `{other}`: the options are --seconds and --files"),
        }
    }
    let time = Duration::from_secs_f64(seconds);
    println!("{files} files, million picks per second and thread\n");
    println!(
        "| candidates | positions | in order, 1 thread | 2 threads | uniform, 1 thread | 2 threads | χ² p of uniform |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (text, one_in) in [("50 %", 2), ("1 %", 100), ("0.01 %", 10_000)] {
        for spread in [true, false] {
            let (candidates, set) = set(files, one_in, spread);
            let rates = [(false, 1), (false, 2), (true, 1), (true, 2)].map(|(uniform, threads)| {
                set.set_threads(threads);
                format!("{:.2}", rate(&set, uniform, threads, time) / 1e6)
            });
            let positions = if spread { "spread" } else { "in one cluster" };
            println!("| {text} | {positions} | {} | {:.3} |", rates.join(" | "), p_uniform(&set, &candidates));
        }
    }
}

/// Returns a file set in which one of `one_in` files exists, and the existing files.
fn set(files: u64, one_in: u64, spread: bool) -> (Vec<u64>, Members) {
    let start = files / 3;
    let exists = |i: u64| {
        if spread { mix(1, i).is_multiple_of(one_in) } else { (start..start + files / one_in).contains(&i) }
    };
    let set = Members::new(files);
    set.load(exists);
    ((0..files).filter(|&i| exists(i)).collect(), set)
}

/// Returns the mean rate of a thread, in picks per second of its processor time.
fn rate(set: &Members, uniform: bool, threads: u64, time: Duration) -> f64 {
    let stop = AtomicBool::new(false);
    let rates: f64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let stop = &stop;
                scope.spawn(move || {
                    let (mut rotor, mut picks) = (Rotor::default(), 0);
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..64 {
                            let how = if uniform { How::Uniform(mix(t, picks)) } else { How::Rotate(&mut rotor) };
                            if let Picked::File(i) = set.pick(Want::Existing, how, true) {
                                set.release(i);
                                picks += 1;
                            }
                        }
                    }
                    let used = clock_gettime(ClockId::ThreadCPUTime);
                    picks as f64 / (used.tv_sec as f64 + used.tv_nsec as f64 / 1e9)
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    rates / threads as f64
}

/// Returns the p-value of a χ² test for the null hypothesis that every candidate is equally likely.
fn p_uniform(set: &Members, candidates: &[u64]) -> f64 {
    let cells = CELLS.min(candidates.len() as u64);
    let mut counts = vec![0_u64; cells as usize];
    for draw in 0..cells * DRAWS {
        let Picked::File(i) = set.pick(Want::Existing, How::Uniform(mix(99, draw)), false) else { continue };
        let rank = candidates.binary_search(&i).unwrap() as u64;
        counts[(rank * cells / candidates.len() as u64) as usize] += 1;
    }
    // The cells differ by at most one candidate, which matters if there are few.
    let share = |cell: u64| {
        let bound = |cell: u64| (cell * candidates.len() as u64).div_ceil(cells);
        (bound(cell + 1) - bound(cell)) as f64 / candidates.len() as f64
    };
    let total = (cells * DRAWS) as f64;
    let chi: f64 =
        counts.iter().zip(0..).map(|(&n, cell)| (n as f64 - total * share(cell)).powi(2) / (total * share(cell))).sum();
    1.0 - ChiSquared::new(cells as f64 - 1.0).unwrap().cdf(chi)
}
