//! The warm-up of a run: for a fixed time, or until the rate is steady.
//!
//! Its operations are counted separately and have a separate time series.

use super::WarmupLength;
use super::series::{RunTimeline, io_bytes, io_ops};
use super::ticker::Ticker;
use crate::os::kernel_threads::KernelThreads;
use crate::plan::Plan;
use crate::result::{CacheState, NoteCode, Run, Warmup};
use crate::runtime::{Ended, Running, Waited};
use std::time::Duration;

/// The least number of intervals in the steady part.
const MIN_STEADY: usize = 10;

/// Runs the warm-up, then resets the counters. `Err` if the run ended during the warm-up.
pub(crate) fn warm_up(
    interval: Duration,
    wanted: WarmupLength,
    length: Option<Duration>,
    running: &mut Running,
    run: &mut Run,
    plan: &Plan,
) -> Result<KernelThreads, Waited> {
    let (mut timeline, mut ticker) = (RunTimeline::new(running, interval), Ticker::new(interval, None));
    let mut recent = Vec::new();
    let mut steady = wanted != WarmupLength::UntilSteady;
    let waited = running.wait(Some(wanted.longest(length)), ticker.period(), &mut |tick| {
        if ticker.ends_interval(tick.elapsed_ns) && timeline.end_interval(tick.running, &mut recent) {
            steady |= wanted == WarmupLength::UntilSteady && is_steady(run, &timeline);
            return wanted != WarmupLength::UntilSteady || !steady;
        }
        true
    });
    if !matches!(waited.ended, Ended::Time | Ended::Asked) {
        run.warnings.push(
            NoteCode::EndedInWarmup.note("the run ended during the warm-up: the figures are those of the warm-up"),
        );
        return Err(waited);
    }
    if !steady {
        run.warnings.push(
            NoteCode::WarmupNotSteady
                .note("the rate was not steady at the time limit of the warm-up; set a fixed warm-up time"),
        );
    }
    if run.cache_state == CacheState::Cold {
        run.warnings
            .push(NoteCode::WarmedUp.note("the caches were cold before the warm-up, not when the measurement began"));
    }
    // Not after `clear`, with which the measurement begins.
    let kernel = KernelThreads::before(length);
    let began = running.from();
    let before = running.clear();
    let elapsed_ns = running.ns(began, before.tick);
    run.warmup = Some(Warmup {
        seconds: elapsed_ns as f64 / 1e9,
        ops: io_ops(plan, &before),
        bytes: io_bytes(plan, &before),
        intervals: timeline.finish(elapsed_ns, &before),
    });
    Ok(kernel)
}

/// True if the steady part is long enough.
fn is_steady(run: &Run, timeline: &RunTimeline) -> bool {
    let intervals = timeline.intervals();
    let from = run.steady_state(&intervals).and_then(|found| found.agreed());
    from.is_some_and(|from| intervals.len() - from >= from.max(MIN_STEADY))
}
