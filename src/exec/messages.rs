//! Messages of `print`, from the threads of a run to whoever shows them: a queue of bounded length.
//!
//! A thread that prints in a tight loop never waits and takes no more memory: what the queue has no room for is counted, and the
//! reader is told how many there were.

use crate::util::count;
use crossbeam::channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Messages that wait to be shown.
const WAITING: usize = 1000;

/// The end of a queue that threads write to.
#[derive(Clone, Debug)]
pub struct Messages {
    queue: Sender<String>,
    left_out: Arc<AtomicU64>,
}

/// The end that is read.
#[derive(Debug)]
pub struct Heard {
    queue: Receiver<String>,
    left_out: Arc<AtomicU64>,
}

/// A new queue.
pub fn queue() -> (Messages, Heard) {
    let (send, queue) = bounded(WAITING);
    let left_out = Arc::new(AtomicU64::new(0));
    (Messages { queue: send, left_out: Arc::clone(&left_out) }, Heard { queue, left_out })
}

impl Messages {
    /// A message of a thread's instance, counted from 0.
    pub fn send(&self, ordinal: usize, text: &str) {
        // Nothing is put together for a queue that is full.
        if self.queue.is_full()
            || self.queue.try_send(format!("message from instance {}: {text}", ordinal + 1)).is_err()
        {
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Heard {
    /// Shows what waits, and how much was left out since the last time. Comes to an end however fast threads print.
    pub fn show(&self, each: &mut dyn FnMut(&str)) {
        self.queue.try_iter().take(WAITING).for_each(|message| each(&message));
        match self.left_out.swap(0, Relaxed) {
            0 => {}
            1 => each("1 line of `print` was left out"),
            n => each(&format!("{} lines of `print` were left out", count::grouped(n))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WAITING, queue};

    #[test]
    fn what_has_no_room_is_counted() {
        let (messages, heard) = queue();
        for _ in 0..WAITING + 12_345 {
            messages.send(0, "x");
        }
        let mut seen = Vec::new();
        heard.show(&mut |text| seen.push(text.to_owned()));
        assert_eq!(seen.len(), WAITING + 1);
        assert_eq!(seen[0], "message from instance 1: x");
        assert_eq!(seen[WAITING], "12,345 lines of `print` were left out");
        heard.show(&mut |text| panic!("{text} once more"));
    }
}
