//! Work that a file system may hold for ever, done by a thread that is left behind if it does.

use std::sync::mpsc;
use std::time::Duration;

/// What the work came to; `None` if that takes longer. Then it goes on by itself, and what it owns is its own.
pub(super) fn bounded<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, outcome) = mpsc::sync_channel(1);
    let worker = move || {
        // Nobody may be there any more.
        let _ = done.send(work());
    };
    // A machine that has no thread left for it has none to measure with either.
    std::thread::Builder::new().name("files".to_owned()).spawn(worker).ok()?;
    outcome.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::bounded;
    use std::time::Duration;

    #[test]
    fn what_does_not_come_back_is_left() {
        assert_eq!(bounded(Duration::from_mins(1), || 7), Some(7));
        let (release, held) = std::sync::mpsc::channel::<()>();
        assert_eq!(bounded(Duration::from_millis(1), move || held.recv().is_ok()), None);
        drop(release);
    }
}
