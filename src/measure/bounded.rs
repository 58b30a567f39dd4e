//! Work that a file system may hold for ever, done by a thread that is left behind if it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// What the work came to; `None` if that takes longer. Then it goes on by itself, and what it owns is its own.
pub(crate) fn bounded<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    bounded_between_steps(limit, |_| work())
}

/// The same for work of any length, which counts its steps: none of them may take longer.
pub(crate) fn bounded_between_steps<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&AtomicU64) -> T + Send + 'static,
) -> Option<T> {
    let (done, outcome) = mpsc::sync_channel(1);
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let worker = move || {
        // Nobody may be there any more.
        let _ = done.send(work(&counter));
    };
    // A machine that has no thread left for it has none to measure with either.
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
    use super::{bounded, bounded_between_steps};
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    #[test]
    fn what_does_not_come_back_is_left() {
        assert_eq!(bounded(Duration::from_mins(1), || 7), Some(7));
        let (release, held) = std::sync::mpsc::channel::<()>();
        assert_eq!(bounded(Duration::from_millis(1), move || held.recv().is_ok()), None);
        drop(release);
    }

    #[test]
    fn work_may_take_as_long_as_its_steps_go_on() {
        let (step, steps) = std::sync::mpsc::channel::<()>();
        let limit = Duration::from_secs(2);
        let work = bounded_between_steps(limit, move |count| {
            for _ in 0..4 {
                count.fetch_add(1, Relaxed);
                // Nobody sends: each wait is shorter than the limit, all of them together are longer.
                let _ = steps.recv_timeout(limit * 3 / 10);
            }
            count.load(Relaxed)
        });
        drop(step);
        assert_eq!(work, Some(4));
    }
}
