//! Time limits for work on a file system that may not answer: the work runs in a thread that is abandoned at the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The time limit for writing an output. A disk that is busy with the data of a run takes seconds.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit if a file system is known not to answer. It may be that of the output.
const STALLED_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limit for the reader of a pipe or device to take a whole output at the end.
pub(super) const FINAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The reason why an output was not written within the time limit.
pub(super) const NO_ANSWER: &str = "its file system does not answer";

/// Returns the time limit for writing an output. `held`: a file system is known not to answer.
pub(super) fn answer_timeout(held: bool) -> Duration {
    if held { STALLED_TIMEOUT } else { WRITE_TIMEOUT }
}

/// Returns the result of `work`, or `None` if it takes longer than `limit`. In that case the thread continues with the
/// data that it owns.
pub(crate) fn with_timeout<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    with_step_timeout(limit, |_| work())
}

/// Returns the result of `work` of any length, or `None` if one of the steps that it counts takes longer than `limit`.
pub(crate) fn with_step_timeout<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&AtomicU64) -> T + Send + 'static,
) -> Option<T> {
    let (done, outcome) = mpsc::sync_channel(1);
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let worker = move || {
        // The receiver may be gone after the limit.
        let _ = done.send(work(&counter));
    };
    // If no thread can be started for this, none can be started for a measurement either.
    std::thread::Builder::new().name("files".to_owned()).spawn(worker).ok()?;
    let mut seen = 0;
    loop {
        match outcome.recv_timeout(limit) {
            Ok(value) => return Some(value),
            Err(RecvTimeoutError::Timeout) if steps.load(Relaxed) != seen => seen = steps.load(Relaxed),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{with_step_timeout, with_timeout};
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    #[test]
    fn work_beyond_the_limit_is_abandoned() {
        assert_eq!(with_timeout(Duration::from_mins(1), || 7), Some(7));
        let (release, held) = std::sync::mpsc::channel::<()>();
        assert_eq!(with_timeout(Duration::from_millis(1), move || held.recv().is_ok()), None);
        drop(release);
    }

    #[test]
    fn work_may_take_any_time_while_its_steps_continue() {
        let (step, steps) = std::sync::mpsc::channel::<()>();
        let limit = Duration::from_secs(2);
        let work = with_step_timeout(limit, move |count| {
            for _ in 0..4 {
                count.fetch_add(1, Relaxed);
                // No message is sent. Each wait is shorter than the limit; all of them together are longer.
                let _ = steps.recv_timeout(limit * 3 / 10);
            }
            count.load(Relaxed)
        });
        drop(step);
        assert_eq!(work, Some(4));
    }
}
