//! The negative control: work of a fixed duration on all processors before and after every run, which the options of an
//! arm cannot affect.
//!
//! Half of it is arithmetic, half trivial system calls. If its speed differs between the arms, the machine has changed.

use crate::os::{limits, proc};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The shortest and the longest duration of the control before a run, and again after it. The two shortest together have
/// some five hundred units of work on each processor, so that their number is exact to a fraction of a per cent.
const SPAN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// The duration without a run so far.
const FIRST: Duration = Duration::from_millis(20);

/// The number of arithmetic steps in a unit of work, about 20 µs.
const STEPS: u64 = 20_000;
/// The number of system calls in a unit of work, about 20 µs.
const CALLS: u64 = 100;

/// Returns the duration of the control before or after a run: a tenth of that of a run, within the limits.
pub(super) fn span(run: Option<Duration>) -> Duration {
    run.map_or(FIRST, |run| (run / 10).clamp(SPAN.0, SPAN.1))
}

/// Measures for `span` the speed of all processors together, in units of work per second. Returns `None` if a thread for
/// each processor can't be started: fewer threads would measure something else.
pub(super) fn speed(span: Duration) -> Option<f64> {
    let threads = limits::processors().max(1);
    let begins = AtomicBool::new(false);
    let work = || {
        // All begin together. A barrier would never open if one thread can't be started.
        while !begins.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let began = Instant::now();
        let mut units = 0_u64;
        while began.elapsed() < span {
            let mut state = units | 1;
            for _ in 0..STEPS {
                state = black_box(state ^ (state << 13)).rotate_left(7);
            }
            for _ in 0..CALLS {
                black_box(proc::parent());
            }
            black_box(state);
            units += 1;
        }
        units as f64 / began.elapsed().as_secs_f64()
    };
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (0..threads).map_while(start).collect();
        begins.store(true, Ordering::Release);
        let is_complete = workers.len() == threads;
        let sum: f64 = workers.into_iter().filter_map(|worker| worker.join().ok()).sum();
        is_complete.then_some(sum)
    })
}
