//! `cargo bench --bench picks`: how many files a second a thread picks from a set of 31.6 million.
//!
//! Rows are how many of the files are candidates and how those lie (spread, or all in one cluster), columns the ways to pick,
//! with one thread and with two that share the set. A pick holds its file and gives it back, as a step that changes it does.
//! A second is one of the thread's processor time, so that a busy machine does not count against it. The last column is the χ² test of uniform picks over 1,000 equal stretches of the candidates' ranks.
//!
//!     cargo bench --bench picks -- [--seconds S] [--files N]

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a program of its own")]

use rustix::time::{ClockId, clock_gettime};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wml::fileset::{How, Members, Picked, Rotor, Want};
use wml::random::mix;

/// Files of the set: those of the personality `laddis_1t`.
const FILES: u64 = 31_577_799;
/// Stretches of candidates for the χ² test, and draws for each.
const CELLS: u64 = 1000;
const DRAWS: u64 = 1000;

fn main() {
    let (mut seconds, mut files) = (1.0, FILES);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => seconds = words.next().unwrap().parse().unwrap(),
            "--files" => files = words.next().unwrap().parse().unwrap(),
            "--bench" => {}
            other => panic!("`{other}` is none of --seconds, --files"),
        }
    }
    let time = Duration::from_secs_f64(seconds);
    println!("{files} files, million picks a second and thread\n");
    println!(
        "| candidates | they lie | in order, 1 thread | 2 threads | uniform, 1 thread | 2 threads | χ² p of uniform |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (text, one_in) in [("50 %", 2), ("1 %", 100), ("0.01 %", 10_000)] {
        for spread in [true, false] {
            let (candidates, set) = set(files, one_in, spread);
            let rates = [(false, 1), (false, 2), (true, 1), (true, 2)].map(|(uniform, threads)| {
                set.set_threads(threads);
                format!("{:.2}", rate(&set, uniform, threads, time) / 1e6)
            });
            let lie = if spread { "spread" } else { "in one cluster" };
            println!("| {text} | {lie} | {} | {:.3} |", rates.join(" | "), p_even(&set, &candidates));
        }
    }
}

/// A set in which one file in so many is there; and which those are.
fn set(files: u64, one_in: u64, spread: bool) -> (Vec<u64>, Members) {
    let start = files / 3;
    let there = |i: u64| {
        if spread { mix(1, i).is_multiple_of(one_in) } else { (start..start + files / one_in).contains(&i) }
    };
    let set = Members::new(files);
    set.load(there);
    ((0..files).filter(|&i| there(i)).collect(), set)
}

/// Picks in a second of processor time of each thread.
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

/// The chance of counts as uneven as those drawn, if every candidate is as likely.
fn p_even(set: &Members, candidates: &[u64]) -> f64 {
    let cells = CELLS.min(candidates.len() as u64);
    let mut counts = vec![0_u64; cells as usize];
    for draw in 0..cells * DRAWS {
        let Picked::File(i) = set.pick(Want::Existing, How::Uniform(mix(99, draw)), false) else { continue };
        let rank = candidates.binary_search(&i).unwrap() as u64;
        counts[(rank * cells / candidates.len() as u64) as usize] += 1;
    }
    // Cells differ by one candidate at most; with few candidates that matters.
    let share = |cell: u64| {
        let bound = |cell: u64| (cell * candidates.len() as u64).div_ceil(cells);
        (bound(cell + 1) - bound(cell)) as f64 / candidates.len() as f64
    };
    let total = (cells * DRAWS) as f64;
    let chi: f64 =
        counts.iter().zip(0..).map(|(&n, cell)| (n as f64 - total * share(cell)).powi(2) / (total * share(cell))).sum();
    1.0 - ChiSquared::new(cells as f64 - 1.0).unwrap().cdf(chi)
}
