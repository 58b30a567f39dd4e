//! The message thread of a rank, which makes all calls of the transport.
//!
//! It sleeps between them, because the waiting calls of MPI keep a processor busy. While a run is measured it looks for
//! messages fifty times a second, and sends the progress of its rank to rank 0.

use super::clock_offsets::{self, ClockReading};
use super::mail::Mail;
use super::transport::{Message, Transport};
use crate::os::clock::monotonic_ns;
use crate::os::signals::TERMINATE;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The time between two looks for messages, if nothing waits for one.
const IDLE: Duration = Duration::from_millis(20);
/// The same while an exchange waits.
const BUSY: Duration = Duration::from_micros(500);
/// The longest time for which a rank answers at once after [`Message::Attend`].
const ATTENTION: Duration = Duration::from_millis(500);
/// The time in which the last messages have to be sent at the end.
pub(super) const LAST_MESSAGES: Duration = Duration::from_secs(2);

/// The thread that makes all calls of the transport.
pub(super) struct MessageThread {
    pub(super) transport: Box<dyn Transport>,
    pub(super) mail: Arc<Mail>,
    pub(super) interrupt: Arc<AtomicUsize>,
    /// When the last pulse was sent.
    pub(super) pulsed: Instant,
    pub(super) silence: Duration,
}

impl MessageThread {
    /// Sends and receives until the rank ends.
    pub(super) fn run(mut self) {
        // Until then, requests for the clock are answered without a sleep.
        let mut attends = Instant::now();
        let mut closing_since: Option<Instant> = None;
        loop {
            self.send_all();
            while let Some((from, bytes)) = self.transport.receive() {
                self.handle(from, &bytes, &mut attends);
            }
            self.pulse();
            self.send_progress();
            let mut state = self.mail.state.lock();
            // One rank at a time, so that pulses are sent in between.
            if let Some(next) = state.unread.first().copied() {
                drop(state);
                self.read_clock(next);
                continue;
            }
            if let Some(all_end) = state.closing
                && state.outbox.is_empty()
            {
                let since = *closing_since.get_or_insert_with(Instant::now);
                if self.transport.has_sent_all() || since.elapsed() >= LAST_MESSAGES {
                    drop(state);
                    return self.transport.end(all_end);
                }
            }
            if Instant::now() < attends {
                drop(state);
                std::thread::yield_now();
                continue;
            }
            if state.outbox.is_empty() && state.unread.is_empty() && state.unsent_progress.is_none() {
                let pause = if state.waiting > 0 || state.closing.is_some() { BUSY } else { IDLE };
                self.mail.work.wait_for(&mut state, pause);
            }
        }
    }

    /// Sends the messages of the outbox.
    fn send_all(&mut self) {
        loop {
            let next = self.mail.state.lock().outbox.pop_front();
            let Some((to, message)) = next else { return };
            self.transport.send(to, &message.encode());
        }
    }

    fn read_clock(&mut self, rank: usize) {
        let put = &mut |from, message| self.mail.put(from, message);
        let offset = clock_offsets::read(self.transport.as_mut(), rank, put);
        let reading = offset.map(|offset| ClockReading { at_ns: monotonic_ns(), offset });
        let mut state = self.mail.state.lock();
        // The request may have been withdrawn in the meantime.
        if let Some(clock) = state.clocks.get_mut(rank) {
            *clock = reading;
        }
        state.unread.retain(|unread| *unread != rank);
        drop(state);
        self.mail.arrived.notify_all();
    }

    /// Sends the progress of this rank, unless an earlier message is still on its way.
    fn send_progress(&mut self) {
        let Some(progress) = self.mail.state.lock().unsent_progress.take() else { return };
        if self.transport.rank() > 0 && self.transport.has_sent_all() {
            self.transport.send(0, &Message::Progress(progress).encode());
        }
    }

    /// Sends pulses when they are due. Ends the run of a rank without rank 0.
    fn pulse(&mut self) {
        if self.pulsed.elapsed() < self.mail.pulse {
            return;
        }
        self.pulsed = Instant::now();
        // Forgets the messages that have been sent, which would otherwise accumulate until the end of the run.
        self.transport.has_sent_all();
        let pulse = Message::Pulse.encode();
        if self.transport.rank() > 0 {
            self.transport.send(0, &pulse);
            if self.mail.state.lock().heard[0].elapsed() >= self.silence {
                // A signal that was received before stays.
                let _ = self.interrupt.compare_exchange(0, TERMINATE, SeqCst, SeqCst);
            }
        } else {
            (1..self.transport.size()).for_each(|to| self.transport.send(to, &pulse));
            // The others do not wait for a rank that has fallen silent.
            self.mail.conclude_meetings(&mut self.mail.state.lock());
        }
    }

    /// Handles a message that has arrived.
    fn handle(&mut self, from: usize, bytes: &[u8], attends: &mut Instant) {
        // Rank 0 reads the clocks. What arrives there is an answer that came too late: an answer to it would be answered in
        // turn, without end.
        let answers = self.transport.rank() > 0;
        match Message::decode(bytes) {
            Some(Message::Attend(true)) if answers => {
                *attends = Instant::now() + ATTENTION;
                self.transport.send(from, &Message::Attend(true).encode());
            }
            Some(Message::Attend(false)) if answers => *attends = Instant::now(),
            Some(Message::ReadClock) if answers => self.transport.send(from, &Message::Clock(monotonic_ns()).encode()),
            Some(message) => self.mail.put(from, message),
            // Another version of the program. The agreement detects it.
            None => self.mail.put(from, Message::Data(Vec::new())),
        }
    }
}
