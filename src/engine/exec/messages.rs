//! Messages of `print`, from the threads of a run to the front end: a queue of bounded length.
//!
//! A thread that prints in a tight loop neither waits nor takes more memory. Messages that do not fit in the queue are
//! dropped and counted, and their number is reported.

use crossbeam::channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wml_text::count;

/// The capacity of the queue, in messages.
const CAPACITY: usize = 1000;

/// The sending end of the queue, used by threads.
#[derive(Clone, Debug)]
pub struct Messages {
    queue: Sender<String>,
    dropped: Arc<AtomicU64>,
}

/// The receiving end of the queue.
#[derive(Debug)]
pub struct MessageReader {
    queue: Receiver<String>,
    dropped: Arc<AtomicU64>,
}

/// Returns the two ends of a new queue.
pub fn queue() -> (Messages, MessageReader) {
    let (send, queue) = bounded(CAPACITY);
    let dropped = Arc::new(AtomicU64::new(0));
    (Messages { queue: send, dropped: Arc::clone(&dropped) }, MessageReader { queue, dropped })
}

impl Messages {
    /// Sends a message of a thread's instance, counted from 0, or drops and counts it if the queue is full.
    pub fn send(&self, ordinal: usize, text: &str) {
        // Do not format a message for a full queue.
        if self.queue.is_full()
            || self.queue.try_send(format!("message from instance {}: {text}", ordinal + 1)).is_err()
        {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

impl MessageReader {
    /// Passes the queued messages to `each`, and then the number of messages dropped since the last call. The number of
    /// messages per call is bounded, so the call ends however fast threads print.
    pub fn show(&self, each: &mut dyn FnMut(&str)) {
        self.queue.try_iter().take(CAPACITY).for_each(|message| each(&message));
        match self.dropped.swap(0, Relaxed) {
            0 => {}
            1 => each("1 line of `print` was dropped"),
            n => each(&format!("{} lines of `print` were dropped", count::grouped(n))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CAPACITY, queue};

    #[test]
    fn messages_beyond_the_capacity_are_counted() {
        let (messages, reader) = queue();
        for _ in 0..CAPACITY + 12_345 {
            messages.send(0, "x");
        }
        let mut seen = Vec::new();
        reader.show(&mut |text| seen.push(text.to_owned()));
        assert_eq!(seen.len(), CAPACITY + 1);
        assert_eq!(seen[0], "message from instance 1: x");
        assert_eq!(seen[CAPACITY], "12,345 lines of `print` were dropped");
        reader.show(&mut |text| panic!("reported twice: {text}"));
    }
}
