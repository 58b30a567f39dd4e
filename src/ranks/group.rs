//! The ranks of a run that several processes make: exchanges between them over a [`Transport`].
//!
//! A thread of its own, the message thread, makes all calls of the transport. Each rank sends a pulse once a second, and a
//! rank without a message for twenty seconds is lost: no exchange waits for it any longer.

use super::clock_offsets::{ClockOffset, ClockReading};
use super::mail::{Mail, MailState, PULSES, RankEnd};
use super::meetings::{MeetingNote, Meetings};
use super::message_thread::{LAST_MESSAGES, MessageThread};
use super::transport::{Message, Transport};
use super::{Collected, CommonStart, Others, RanksLost};
use crate::os::clock::monotonic_ns;
use crate::os::signals;
use crate::result::ranks::{LastProgress, RankProgress};
use crate::result::{LostRank, RankClock};
use crate::runtime::{Meeting, MeetingPlace, MeetingPoint};
use crate::util::json;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The time without a message after which a rank is lost. A host whose network fails for less is not.
#[cfg(feature = "mpi")]
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// The time after a signal in which an exchange waits for other ranks: a launcher ends its processes a moment later.
const AFTER_SIGNAL: Duration = Duration::from_millis(200);
/// The same for the report of rank 0, after which the others need not keep their results.
const REPORT_AFTER_SIGNAL: Duration = Duration::from_millis(500);
/// The interval at which the end of the message thread is checked.
const END_POLL: Duration = Duration::from_millis(20);
/// The least time from the agreement on a start to the start.
const START_DELAY: Duration = Duration::from_millis(20);
/// The part of that time for each rank, to which rank 0 sends the instant one after another.
const START_DELAY_OF_RANK: Duration = Duration::from_micros(20);

/// The ranks of a run that several processes make, as one of them sees them.
#[derive(Debug)]
pub struct RankGroup {
    rank: usize,
    hosts: Vec<String>,
    /// The time without a message after which a rank is lost.
    silence: Duration,
    /// The number of the signal that was received; 0 if there is none.
    interrupt: Arc<AtomicUsize>,
    mail: Arc<Mail>,
    /// The clocks of all ranks before the last common start. Only on rank 0.
    start_clocks: Mutex<Vec<ClockReading>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl RankGroup {
    /// Starts the message thread with the transport that `connect` returns. All ranks do this at the same time, and
    /// tell each other the names of their hosts. A rank without a message for `silence` is lost. One that loses rank 0
    /// ends its run by setting `interrupt`.
    pub(crate) fn start<T: Transport + 'static>(
        connect: impl FnOnce() -> Result<T, String> + Send + 'static,
        host: &str,
        silence: Duration,
        interrupt: Arc<AtomicUsize>,
    ) -> Result<Self, String> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let own_interrupt = Arc::clone(&interrupt);
        let builder = std::thread::Builder::new().name("messages".to_owned());
        let thread = builder
            .spawn(move || {
                crate::os::signals::block_ending_signals();
                let transport = match connect() {
                    Ok(transport) => transport,
                    Err(e) => return drop(sender.send(Err(e))),
                };
                let (rank, size) = (transport.rank(), transport.size());
                let mail = Arc::new(Mail::new(size, silence / PULSES));
                if sender.send(Ok((rank, size, Arc::clone(&mail)))).is_ok() {
                    let pulsed = Instant::now();
                    MessageThread { transport: Box::new(transport), mail, interrupt, pulsed, silence }.run();
                }
            })
            .map_err(|e| format!("can't start a thread: {e}"))?;
        let (rank, size, mail) = receiver.recv().map_err(|_| "the message thread has ended".to_owned())??;
        let unnamed = vec![String::new(); size];
        let (start_clocks, thread) = (Mutex::default(), Mutex::new(Some(thread)));
        let mut group = Self { rank, hosts: unnamed, silence, interrupt: own_interrupt, mail, start_clocks, thread };
        group.hosts = group.exchange_hosts(host).map_err(|lost| lost.to_string())?;
        Ok(group)
    }

    /// Returns the names of the hosts of all ranks.
    fn exchange_hosts(&self, own: &str) -> Result<Vec<String>, RanksLost> {
        let names = self.gather(own.as_bytes().to_vec())?.map(|all| {
            let names: Vec<String> = all.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            json::to_bytes(&names)
        });
        let names = self.broadcast(names.unwrap_or_default())?;
        Ok(json::from_bytes(&names).unwrap_or_else(|_| self.hosts.clone()))
    }

    /// Ends this rank with an exit status and the text of its errors, when all ranks have ended or are lost. Returns on
    /// rank 0 the ends of the others. No exchange may follow.
    pub fn end(&self, status: u8, text: &str) -> Vec<Result<RankEnd, LostRank>> {
        let Some(thread) = self.thread.lock().take() else { return Vec::new() };
        let end = Message::End { status, text: text.to_owned() };
        let mut state = self.mail.state.lock();
        let mut ends = Vec::new();
        let all_end = if self.rank == 0 {
            // First of all, so that a rank that waits for an exchange ends too.
            (1..self.hosts.len()).for_each(|to| state.outbox.push_back((to, end.clone())));
            for from in 1..self.hosts.len() {
                ends.extend(self.mail.wait(
                    &mut state,
                    || false,
                    |state| state.ended[from].clone().map(Ok).or_else(|| self.silent(state, from).map(Err)),
                ));
            }
            let all_end = ends.iter().all(Result::is_ok);
            (1..self.hosts.len()).for_each(|to| state.outbox.push_back((to, Message::Finish(all_end))));
            all_end
        } else {
            state.outbox.push_back((0, end));
            let finish = self.mail.wait(
                &mut state,
                || false,
                |state| state.finish.or_else(|| self.silent(state, 0).map(|_| false)),
            );
            finish.unwrap_or_default()
        };
        state.closing = Some(all_end);
        self.mail.work.notify_all();
        drop(state);
        if all_end {
            // A panic of the thread has been reported.
            let _ = thread.join();
        } else {
            // The transport of a lost rank may never return.
            let until = Instant::now() + LAST_MESSAGES;
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(END_POLL);
            }
        }
        ends
    }

    /// True if this rank can't rely on rank 0 to report for it: it has been told of lost ranks, or rank 0 does not
    /// answer.
    pub(crate) fn has_lost_ranks(&self) -> bool {
        let state = self.mail.state.lock();
        !state.lost.is_empty() || self.silent(&state, 0).is_some()
    }

    fn lost(&self, rank: usize, why: String) -> LostRank {
        let host = self.hosts.get(rank).cloned().unwrap_or_default();
        LostRank { rank: rank as u64, host, why }
    }

    /// Returns the rank as lost if no message of it has arrived for long.
    fn silent(&self, state: &MailState, rank: usize) -> Option<LostRank> {
        let silent = state.heard[rank].elapsed();
        (silent >= self.silence).then(|| self.lost(rank, format!("has not answered for {} s", silent.as_secs())))
    }

    /// Returns the rank as lost if it will take part in no further exchange.
    fn gone(&self, state: &MailState, rank: usize) -> Option<LostRank> {
        let ended = state.ended[rank].as_ref().map(|end| {
            let first = end.text.lines().next().unwrap_or_default();
            let why = if first.is_empty() { String::new() } else { format!(": {first}") };
            self.lost(rank, format!("has ended with status {}{why}", end.status))
        });
        ended.or_else(|| self.silent(state, rank))
    }

    /// Returns the next data from a rank. The error is the loss of that rank, or of those that rank 0 has lost.
    fn receive(&self, from: usize) -> Result<Vec<u8>, RanksLost> {
        self.receive_within(from, &mut None)
    }

    /// The same as a part of an exchange with several ranks. `signalled`: when the exchange has found a signal.
    fn receive_within(&self, from: usize, signalled: &mut Option<Instant>) -> Result<Vec<u8>, RanksLost> {
        let mut state = self.mail.state.lock();
        let is_over = || self.is_signalled_for(AFTER_SIGNAL, signalled);
        let received = self.mail.wait(&mut state, is_over, |state| self.received(state, from));
        received.unwrap_or_else(|| Err(self.late(from)))
    }

    /// Returns a rank as lost whose message has not arrived in time after a signal.
    fn late(&self, rank: usize) -> RanksLost {
        RanksLost(vec![self.lost(rank, "has not answered since rank 0 received a signal".to_owned())])
    }

    /// True if this time has passed since `signalled`, when a signal was first found. One that was passed on to all ranks
    /// leaves them their time.
    fn is_signalled_for(&self, time: Duration, signalled: &mut Option<Instant>) -> bool {
        let time = if signals::is_passed_on() { self.silence } else { time };
        self.interrupt.load(SeqCst) != 0 && signalled.get_or_insert_with(Instant::now).elapsed() >= time
    }

    /// Returns the next data from a rank, or the loss of ranks, if there is either.
    fn received(&self, state: &mut MailState, from: usize) -> Option<Result<Vec<u8>, RanksLost>> {
        if let Some(data) = state.inbox[from].pop_front() {
            return Some(Ok(data));
        }
        if !state.lost.is_empty() {
            return Some(Err(RanksLost(state.lost.clone())));
        }
        self.gone(state, from).map(|lost| Err(RanksLost(vec![lost])))
    }

    /// Sends a message. The message thread does so later.
    fn send(&self, to: usize, message: Message) {
        self.mail.state.lock().outbox.push_back((to, message));
        self.mail.work.notify_all();
    }

    /// Reports to rank 0 what this rank does at a meeting.
    fn take_part(&self, note: impl FnOnce(&Meetings) -> MeetingNote) {
        let mut state = self.mail.state.lock();
        let note = note(&state.meetings);
        if self.rank > 0 {
            state.outbox.push_back((0, Message::Meeting(note)));
        } else {
            state.meetings.put(0, note);
            self.mail.conclude_meetings(&mut state);
        }
        drop(state);
        self.mail.work.notify_all();
    }

    /// Reads the clocks of these ranks, until `is_over`. Returns those of all ranks, by rank. Only for rank 0.
    fn read_clocks(&self, ranks: &[usize], is_over: impl FnMut() -> bool) -> Vec<Option<ClockReading>> {
        let mut state = self.mail.state.lock();
        state.clocks = vec![None; self.hosts.len()];
        state.clocks[0] = Some(ClockReading { at_ns: monotonic_ns(), offset: ClockOffset::default() });
        // The message thread reads them.
        state.unread = ranks.iter().copied().filter(|rank| *rank > 0).collect();
        self.mail.wait(&mut state, is_over, |state| state.unread.is_empty().then_some(()));
        state.unread.clear();
        std::mem::take(&mut state.clocks)
    }

    /// Reads the clocks of all ranks before a start, again if one does not answer in time, until it is silent. Only for
    /// rank 0.
    fn read_start_clocks(&self) -> Result<Vec<ClockReading>, RanksLost> {
        let is_signalled = || self.interrupt.load(SeqCst) != 0;
        let mut clocks = vec![None; self.hosts.len()];
        loop {
            let unread =
                |rank: &usize| clocks[*rank].is_none() && self.silent(&self.mail.state.lock(), *rank).is_none();
            let unread: Vec<usize> = (0..clocks.len()).filter(unread).collect();
            if unread.is_empty() || is_signalled() {
                break;
            }
            let read = self.read_clocks(&unread, is_signalled);
            clocks.iter_mut().zip(read).for_each(|(clock, read)| *clock = clock.or(read));
        }
        let silent = clocks.iter().enumerate().filter(|(_, clock)| clock.is_none());
        let lost: Vec<LostRank> =
            silent.map(|(rank, _)| self.lost(rank, "has not answered with its clock".to_owned())).collect();
        if lost.is_empty() {
            return Ok(clocks.into_iter().flatten().collect());
        }
        self.give_up(&lost);
        Err(RanksLost(lost))
    }
}

impl Others for RankGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &[String] {
        &self.hosts
    }

    fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        if self.rank > 0 {
            return self.receive(0);
        }
        (1..self.hosts.len()).for_each(|to| self.send(to, Message::Data(message.clone())));
        Ok(message)
    }

    fn collect(&self, message: Vec<u8>) -> Option<Collected> {
        if self.rank > 0 {
            self.send(0, Message::Data(message));
            return None;
        }
        let mut signalled = None;
        let of = |from: usize| {
            self.receive_within(from, &mut signalled).map_err(|RanksLost(mut lost)| {
                let lost = lost.swap_remove(0);
                // If it was only late, it has to keep its result itself.
                self.send(from, Message::Lost(vec![lost.clone()]));
                lost
            })
        };
        Some(std::iter::once(Ok(message)).chain((1..self.hosts.len()).map(of)).collect())
    }

    /// The lost ranks too: one that was only late would wait for rank 0.
    fn give_up(&self, lost: &[LostRank]) {
        (1..self.hosts.len()).for_each(|to| self.send(to, Message::Lost(lost.to_vec())));
    }

    fn confirm(&self, message: Vec<u8>) -> Result<Vec<u8>, RanksLost> {
        if self.rank == 0 {
            return self.broadcast(message);
        }
        let mut state = self.mail.state.lock();
        let mut signalled = None;
        let is_over = || self.is_signalled_for(REPORT_AFTER_SIGNAL, &mut signalled);
        let confirmed = self.mail.wait(&mut state, is_over, |state| self.received(state, 0));
        let message = confirmed.unwrap_or_else(|| Err(self.late(0)))?;
        // A rank that rank 0 had regarded as lost was only late.
        let is_lost = state.lost.iter().any(|lost| lost.rank == self.rank as u64);
        if is_lost { Err(RanksLost(state.lost.clone())) } else { Ok(message) }
    }

    fn begin_run(&self) {
        self.mail.state.lock().meetings.begin_run();
    }

    fn common_start(&self) -> Result<CommonStart, RanksLost> {
        // All ranks are ready before the clocks are read, so that their answers are not delayed by the preparation.
        self.gather(Vec::new())?;
        if self.rank > 0 {
            let start = json::from_bytes::<[u64; 2]>(&self.receive(0)?);
            let [at, error] =
                start.map_err(|_| RanksLost(vec![self.lost(0, "has sent a start that can't be read".to_owned())]))?;
            return Ok(CommonStart { at_ns: Some(at), clock_error_ns: error });
        }
        let clocks = self.read_start_clocks()?;
        let worst = clocks.iter().map(|clock| clock.offset.round_trip_ns).max().unwrap_or_default();
        let delay = (5 * worst).max(START_DELAY.as_nanos() as u64)
            + START_DELAY_OF_RANK.as_nanos() as u64 * self.hosts.len() as u64;
        let at = monotonic_ns() + delay;
        for (to, ClockReading { offset, .. }) in clocks.iter().enumerate().skip(1) {
            let start = [offset.local(at), offset.error_ns()];
            self.send(to, Message::Data(json::to_bytes(&start)));
        }
        *self.start_clocks.lock() = clocks;
        Ok(CommonStart { at_ns: Some(at), clock_error_ns: 0 })
    }

    fn clocks(&self, ranks: &[usize]) -> Vec<Option<RankClock>> {
        let start = self.start_clocks.lock().clone();
        if self.rank > 0 {
            return Vec::new();
        }
        let is_signalled = || self.interrupt.load(SeqCst) != 0;
        // After a signal the launcher leaves no time for this.
        let end = if is_signalled() || start.is_empty() { Vec::new() } else { self.read_clocks(ranks, is_signalled) };
        ranks.iter().map(|rank| Some(start.get(*rank)?.clock(end.get(*rank).copied().flatten()))).collect()
    }

    fn progress(&self, own: RankProgress) -> Option<Vec<LastProgress>> {
        let mut state = self.mail.state.lock();
        if self.rank == 0 {
            return Some(state.progress.clone());
        }
        state.unsent_progress = Some(own);
        self.mail.work.notify_all();
        None
    }
}

impl MeetingPlace for RankGroup {
    fn arrive(&self, point: MeetingPoint, number: u64) {
        self.take_part(|meetings| meetings.arrival(point, number));
    }

    fn meet(&self, point: MeetingPoint, number: u64, is_over: &dyn Fn() -> bool) -> Option<Meeting> {
        self.arrive(point, number);
        let least = if point == MeetingPoint::Phase { number } else { 0 };
        let mut state = self.mail.state.lock();
        self.mail.wait(&mut state, is_over, |state| state.meetings.at(point).filter(|meeting| meeting.least >= least))
    }

    fn leave_run(&self) {
        self.take_part(Meetings::leaving);
    }
}

impl Drop for RankGroup {
    fn drop(&mut self) {
        self.end(1, "");
    }
}
