//! What the message thread of a rank and its exchanges share: messages to be sent, and what has arrived.

use super::clock_offsets::ClockReading;
use super::meetings::Meetings;
use super::transport::Message;
use crate::result::LostRank;
use crate::result::ranks::{LastProgress, RankProgress};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number of pulses in that time.
pub(super) const PULSES: u32 = 20;
/// The interval at which a wait looks for a signal.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// The end of a rank: its exit status, and its errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankEnd {
    /// The exit status.
    pub status: u8,
    /// The errors that it reported, as text.
    pub text: String,
}

/// What the message thread and the exchanges share.
#[derive(Debug)]
pub(super) struct Mail {
    pub(super) state: Mutex<MailState>,
    /// The interval of the pulses.
    pub(super) pulse: Duration,
    /// Notified when a message has arrived, a meeting is over, a rank is lost, or the thread has ended.
    pub(super) arrived: Condvar,
    /// Notified when there is work for the message thread.
    pub(super) work: Condvar,
}

/// The messages, and what they have said of the other ranks.
#[derive(Debug, Default)]
pub(super) struct MailState {
    /// Messages to be sent, and their receivers.
    pub(super) outbox: VecDeque<(usize, Message)>,
    /// The data that has arrived from each rank.
    pub(super) inbox: Vec<VecDeque<Vec<u8>>>,
    /// When the last message of each rank arrived.
    pub(super) heard: Vec<Instant>,
    pub(super) ended: Vec<Option<RankEnd>>,
    /// The last message of rank 0: whether all ranks have ended.
    pub(super) finish: Option<bool>,
    /// The ranks that rank 0 has reported as lost.
    pub(super) lost: Vec<LostRank>,
    /// The clocks against that of rank 0, by rank, as rank 0 has read them last. `None` for a rank that did not answer.
    pub(super) clocks: Vec<Option<ClockReading>>,
    /// The ranks whose clocks are to be read, the next one first.
    pub(super) unread: Vec<usize>,
    /// The progress of this rank that is to be sent.
    pub(super) unsent_progress: Option<RankProgress>,
    /// The progress of each rank. Only on rank 0.
    pub(super) progress: Vec<LastProgress>,
    pub(super) meetings: Meetings,
    /// The number of exchanges that wait.
    pub(super) waiting: usize,
    /// No more messages follow, and whether all ranks end.
    pub(super) closing: Option<bool>,
}

impl Mail {
    /// Returns the mail of a rank among `size`, without messages.
    pub(super) fn new(size: usize, pulse: Duration) -> Self {
        let state = MailState {
            inbox: (0..size).map(|_| VecDeque::new()).collect(),
            heard: vec![Instant::now(); size],
            ended: vec![None; size],
            progress: vec![LastProgress::default(); size],
            meetings: Meetings::new(size),
            ..MailState::default()
        };
        Self { state: Mutex::new(state), pulse, arrived: Condvar::new(), work: Condvar::new() }
    }

    /// Waits until `find` returns a value, or `is_over` is true.
    pub(super) fn wait<R>(
        &self,
        state: &mut parking_lot::MutexGuard<'_, MailState>,
        mut is_over: impl FnMut() -> bool,
        mut find: impl FnMut(&mut MailState) -> Option<R>,
    ) -> Option<R> {
        state.waiting += 1;
        self.work.notify_all();
        let found = loop {
            if let Some(found) = find(state) {
                break Some(found);
            }
            if is_over() {
                break None;
            }
            // Neither the silence of a rank nor a signal is notified.
            self.arrived.wait_for(state, SIGNAL_POLL.min(self.pulse));
        };
        state.waiting -= 1;
        found
    }

    /// Sends the results of the meetings at which all ranks have arrived. On the others than rank 0, which know of no
    /// arrivals, nothing happens.
    pub(super) fn conclude_meetings(&self, state: &mut MailState) {
        let silence = self.pulse * PULSES;
        let MailState { meetings, ended, heard, outbox, .. } = state;
        let present = |rank: usize| rank == 0 || (ended[rank].is_none() && heard[rank].elapsed() < silence);
        let messages = meetings.conclude(present);
        if messages.is_empty() {
            return;
        }
        for to in (1..ended.len()).filter(|to| ended[*to].is_none()) {
            outbox.extend(messages.iter().map(|message| (to, message.clone())));
        }
        self.arrived.notify_all();
    }

    /// Records a message that has arrived.
    pub(super) fn put(&self, from: usize, message: Message) {
        let mut state = self.state.lock();
        state.heard[from] = Instant::now();
        match message {
            Message::Data(data) => state.inbox[from].push_back(data),
            Message::End { status, text } => {
                state.ended[from] = Some(RankEnd { status, text });
                self.conclude_meetings(&mut state);
            }
            Message::Finish(all_end) => state.finish = Some(all_end),
            Message::Lost(ranks) => state.lost = ranks,
            Message::Progress(progress) => state.progress[from].add(progress),
            Message::Meeting(note) => {
                state.meetings.put(from, note);
                self.conclude_meetings(&mut state);
            }
            // The clock is read by rank 0 only, and a late answer is of no use.
            Message::Pulse | Message::Attend(_) | Message::ReadClock | Message::Clock(_) => {}
        }
        drop(state);
        self.arrived.notify_all();
    }
}
