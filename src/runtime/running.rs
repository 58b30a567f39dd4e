//! The handle on live processes.

use super::guard;
use super::hang::Signs;
use super::pace::{self, ArrivalProgress};
use super::phases::PhaseTicks;
use super::shared::{Fault, FaultKind, Shared, ThreadSlot};
use crate::exec::trace::Stream;
use crate::os::{Clock, blocked, proc, schedule, signals};
use crate::stats::snapshot::Snapshot;
use crate::sync::NEVER;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the controller looks up while threads get ready.
const LOOK: Duration = Duration::from_millis(100);

/// And while they run. News and signals wake it; only a signal that comes between a look and the sleep waits for this.
const DOZE: Duration = Duration::from_millis(700);

/// A run without a time limit in which nothing was done for so long is looked at: perhaps all wait for one another.
const STALL: Duration = Duration::from_secs(3);

/// A wait that lasts so much longer than it was to, in nanoseconds, has a reason: the program was stopped.
const STOPPED_NS: u64 = 1_000_000_000;

/// So much longer, and no signal tells of it: frozen from outside, or without a processor.
const FROZEN_NS: u64 = 5_000_000_000;

/// Processes that run.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    leaders: Vec<JoinHandle<()>>,
    /// Who looks at the room on the file systems.
    guard: Option<JoinHandle<()>>,
    /// The tick at which the gate opened, or the counters were cleared.
    from: u64,
    /// What the counters showed then.
    baseline: Option<Vec<Snapshot>>,
    /// The iterations of open loops then.
    rounds_before: ArrivalProgress,
    signs: Mutex<Signs>,
    /// For how long the program was stopped since the gate opened, in nanoseconds, as far as it was seen.
    stopped_ns: AtomicU64,
}

/// What ended a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The time is over.
    Time,
    /// All threads have nothing left to do.
    AllDone,
    /// One thread has nothing left to do, and the mode is `firstdone`.
    FirstDone,
    /// A `finishoncount` or `finishonbytes` was reached.
    Finished,
    /// A signal, by its number.
    Interrupted(usize),
    /// The watcher asked for the end.
    Asked,
    /// Something went wrong.
    Fault(Fault),
}

impl Ended {
    /// Whether the run came to an end that its script knows.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Time | Self::AllDone | Self::FirstDone | Self::Finished)
    }
}

/// The end of a wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waited {
    /// What ended it.
    pub ended: Ended,
    /// The tick at which the measurement ends.
    pub tick: u64,
}

/// What a watcher is shown, each interval.
#[derive(Debug)]
pub struct Tick<'a> {
    /// Nanoseconds since the measurement began.
    pub elapsed_ns: u64,
    /// The handle, for a look at the counters.
    pub running: &'a Running,
}

/// The counters of all flowops at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When, in ticks.
    pub tick: u64,
    /// By flowop.
    pub flowops: Vec<Snapshot>,
}

/// A thread that does not come back from a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckThread {
    /// The flowop that it runs.
    pub flowop: usize,
    /// Which process instance.
    pub instance: usize,
    /// Which thread of it.
    pub number: usize,
    /// The kernel's number of it.
    pub tid: i32,
    /// Where in the kernel it waits.
    pub wait_channel: Option<String>,
    /// The file that its call is about, if the kernel shows it.
    pub path: Option<String>,
    /// Operations that it has in flight: the one that it is in, or all those that it waits for.
    pub in_flight: u64,
}

/// What one thread did.
#[derive(Clone, Debug)]
pub struct ThreadStream {
    /// Which process, by its place in the plan.
    pub process: usize,
    /// Which instance of it.
    pub instance: usize,
    /// Which thread of the process.
    pub thread: usize,
    /// Which instance of that.
    pub number: usize,
    /// Its operations.
    pub stream: Box<Stream>,
}

/// What the controller knows of times at which the whole program was stopped: it comes back late from a wait.
struct Stops {
    /// When it is to be back, in ticks.
    due: u64,
    /// How often the program had been stopped and gone on, at the last look.
    continued: usize,
    /// By how much it was late without a reason, and at which tick it came back. The signal that gives a reason may be heard a moment
    /// after that.
    late_ns: u64,
    returned: u64,
}

impl Stops {
    fn new(now: u64) -> Self {
        Self { due: now, continued: signals::continued(), late_ns: 0, returned: now }
    }

    /// For how long the program was stopped since the last look.
    fn before(&mut self, clock: &Clock, now: u64) -> u64 {
        let late_ns = clock.ns(self.due, now.max(self.due));
        if late_ns >= STOPPED_NS || clock.ns(self.returned, now) >= STOPPED_NS {
            (self.late_ns, self.returned) = (late_ns, now);
        }
        self.due = now;
        let continued = signals::continued();
        let heard = std::mem::replace(&mut self.continued, continued) != continued;
        if self.late_ns >= FROZEN_NS || (self.late_ns >= STOPPED_NS && heard) {
            std::mem::take(&mut self.late_ns)
        } else {
            0
        }
    }
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>, leaders: Vec<JoinHandle<()>>) -> Self {
        Self {
            shared,
            leaders,
            guard: None,
            from: 0,
            baseline: None,
            rounds_before: ArrivalProgress::default(),
            signs: Mutex::default(),
            stopped_ns: AtomicU64::new(0),
        }
    }

    /// Waits until every thread is ready, then opens the gate; the run ends by itself after `limit`. Not at all if a thread
    /// could not get ready, or a signal came.
    pub fn open(&mut self, limit: Option<Duration>) -> Result<(), Ended> {
        let shared = &self.shared;
        let thread_slots = shared.thread_slots.len() as u32;
        while shared.gate.wait_ready(thread_slots, LOOK) < thread_slots {
            if let Some(signal) = self.interrupted() {
                return Err(Ended::Interrupted(signal));
            }
        }
        if let Some(fault) = shared.hear(Duration::ZERO, |news| news.fault.clone()) {
            return Err(Ended::Fault(fault));
        }
        shared.events.begin();
        crate::os::annotate("gate opens");
        self.from = shared.clock.raw();
        shared.gate.set_deadline(self.tick_after(limit));
        shared.gate.open(self.from);
        self.guard = guard::start(shared);
        Ok(())
    }

    fn tick_after(&self, limit: Option<Duration>) -> u64 {
        let ticks = |d: Duration| self.shared.clock.ticks(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        limit.map_or(NEVER, |d| self.from.saturating_add(ticks(d)))
    }

    /// Moves the end: `limit` after the measurement began.
    pub fn end_after(&self, limit: Duration) {
        self.shared.gate.set_deadline(self.tick_after(Some(limit)));
    }

    /// Waits for `limit` after the measurement began, or whatever ends the run earlier. Each `interval` the watcher is shown
    /// how it goes; it ends the wait by returning false.
    pub fn wait(
        &self,
        limit: Option<Duration>,
        interval: Duration,
        watch: &mut dyn FnMut(&Tick<'_>) -> bool,
    ) -> Waited {
        let shared = &self.shared;
        let clock = shared.clock;
        let until = self.tick_after(limit);
        let _first = schedule::First::new();
        let step = clock.ticks(interval.as_nanos() as u64).max(1);
        let mut next = self.from.saturating_add(step);
        // A run without a time limit must not wait for ever for threads that wait for one another.
        let (mut seen, mut since) = (None, self.from);
        let mut stops = Stops::new(clock.raw());
        loop {
            let now = clock.raw();
            self.stopped_ns.fetch_add(stops.before(clock, now), Relaxed);
            if let Some(waited) = self.news(now, until) {
                return waited;
            }
            if limit.is_none() && clock.ns(since, now) >= STALL.as_nanos() as u64 {
                let done = self.all_ops();
                if let (true, Some(flowop)) = (seen == Some(done), self.all_wait()) {
                    let fault = Fault {
                        flowop: Some(flowop),
                        ..Fault::plain(
                            FaultKind::Stuck,
                            "every thread that is left waits to be posted to or woken",
                            "add a `sempost` that runs to the end, or give the run a time (`--runtime`)",
                        )
                    };
                    return Waited { ended: Ended::Fault(fault), tick: now };
                }
                (seen, since) = (Some(done), now);
            }
            if now >= next {
                next += step * ((now - next) / step + 1);
                if !watch(&Tick { elapsed_ns: clock.ns(self.from, now), running: self }) {
                    return Waited { ended: Ended::Asked, tick: clock.raw() };
                }
                continue;
            }
            self.note_signs(now);
            let rest = Duration::from_nanos(clock.ns(now, until.min(next))).min(DOZE);
            let thread_slots = shared.thread_slots.len();
            stops.due = now.saturating_add(clock.ticks(rest.as_nanos() as u64));
            shared.hear(rest, |news| {
                (news.done == thread_slots && thread_slots > 0
                    || news.fault.is_some()
                    || news.finished
                    || news.first_done)
                    .then_some(())
            });
        }
    }

    /// When each phase was.
    pub fn phases(&self) -> Vec<PhaseTicks> {
        self.shared.phases.ticks(self.shared.gate.opened())
    }

    /// For how long, at least, the program was stopped since the gate opened.
    pub fn stopped(&self) -> Duration {
        Duration::from_nanos(self.stopped_ns.load(Relaxed))
    }

    /// Looks which threads have done something, if the last look is a while ago.
    fn note_signs(&self, now: u64) {
        self.signs.lock().note(&self.shared, self.from, now);
    }

    /// What is to be said of a run whose time was over at `end`, if calls on files hold its threads and have for long: that it is
    /// stuck, and where.
    pub fn stuck(&self, end: u64) -> Option<Fault> {
        self.signs.lock().stuck(&self.shared, self.from, end)
    }

    /// Whether a call holds a thread that has not come back; others only wait for a processor.
    pub fn is_held(&self) -> bool {
        self.shared.thread_slots.iter().any(|s| !s.done.load(SeqCst) && blocked::sleeps(s.tid.load(Relaxed)))
    }

    /// The panic of a thread, if there was one, whenever it came.
    pub fn panic(&self) -> Option<Fault> {
        const PATIENCE: Duration = Duration::from_secs(1);
        if !self.shared.panicked.load(SeqCst) {
            return None;
        }
        let fault = || self.shared.hear(PATIENCE, |news| news.fault.clone());
        // The first word may be of another thread's end.
        let until = std::time::Instant::now() + PATIENCE;
        let mut found = fault();
        while found.is_none() && std::time::Instant::now() < until {
            found = fault();
        }
        found.filter(|fault| fault.kind == FaultKind::Panic)
    }

    /// Whether the guard of the room on the file systems has waited for an answer for longer than this.
    pub fn waits_for_room(&self, limit: Duration) -> bool {
        let since = self.shared.asked_for_room.load(Relaxed);
        since > 0 && self.shared.clock.ns(since, self.shared.clock.raw()) > limit.as_nanos() as u64
    }

    /// How things stand now: a fault or an end that has come to pass, else the time.
    pub fn look(&self) -> Waited {
        let now = self.shared.clock.raw();
        self.news(now, now).unwrap_or(Waited { ended: Ended::Time, tick: now })
    }

    /// Whether every thread that is left waits for another one: at a semaphore or a latch. Meaningful only if nothing has
    /// been done for a while.
    fn all_wait(&self) -> Option<usize> {
        let mut left = self
            .shared
            .thread_slots
            .iter()
            .filter(|s| !s.done.load(SeqCst) && self.shared.phases.has_begun(s.process))
            .map(|s| self.shared.plan.processes[s.process].threads[s.thread].first + s.at.load(Relaxed) as usize);
        let first = left.next()?;
        let waits = |flowop: usize| self.shared.plan.flowops[flowop].class == crate::spec::Class::Sync;
        (waits(first) && left.all(waits)).then_some(first)
    }

    /// Operations of all threads, of whatever kind.
    fn all_ops(&self) -> u64 {
        self.shared.thread_slots.iter().map(|s| s.stats.total_ops()).sum()
    }

    fn news(&self, now: u64, until: u64) -> Option<Waited> {
        let thread_slots = self.shared.thread_slots.len();
        let found = self.shared.hear(Duration::ZERO, |news| {
            // What goes wrong after the end belongs to no measurement.
            let ended = if let Some(fault) = news.fault.as_ref().filter(|_| news.tick.is_none_or(|t| t <= until)) {
                Ended::Fault(fault.clone())
            } else if news.finished {
                Ended::Finished
            } else if news.first_done {
                Ended::FirstDone
            } else if news.done == thread_slots && now < until && (thread_slots > 0 || until == NEVER) {
                Ended::AllDone
            } else {
                return None;
            };
            Some((ended, news.tick))
        });
        if let Some((ended, tick)) = found {
            let tick = tick.unwrap_or_else(|| self.last_end(now));
            return Some(Waited { ended, tick: tick.min(until) });
        }
        if let Some(signal) = self.interrupted() {
            return Some(Waited { ended: Ended::Interrupted(signal), tick: now.min(until) });
        }
        (now >= until).then_some(Waited { ended: Ended::Time, tick: until })
    }

    /// When the last thread ended.
    fn last_end(&self, now: u64) -> u64 {
        self.shared.thread_slots.iter().map(|s| s.ended.load(SeqCst)).max().filter(|t| *t > 0).unwrap_or(now)
    }

    fn interrupted(&self) -> Option<usize> {
        Some(self.shared.options.interrupt.load(SeqCst)).filter(|signal| *signal != 0)
    }

    /// The counters now, all of them since the gate opened.
    pub fn sample(&self) -> Sample {
        let shared = &self.shared;
        let mut flowops = vec![Snapshot::default(); shared.plan.flowops.len()];
        let tick = shared.clock.raw();
        for thread_slot in &shared.thread_slots {
            let thread = &shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
            for local in 0..thread.count {
                thread_slot.stats.add_to(local, &mut flowops[thread.first + local]);
            }
        }
        // While threads count, a look may see an operation in one counter and not yet in another: the histogram decides.
        flowops.iter_mut().for_each(|flowop| flowop.ops = flowop.latency.count);
        Sample { tick, flowops }
    }

    /// The counters since [`Running::clear`], or since the gate opened.
    pub fn measured(&self) -> Sample {
        let mut sample = self.sample();
        if let Some(baseline) = &self.baseline {
            for (now, before) in sample.flowops.iter_mut().zip(baseline) {
                *now = now.minus(before);
            }
        }
        sample
    }

    /// A measurement begins: what was counted so far counts no more. Returns it.
    pub fn clear(&mut self) -> Sample {
        let sample = self.sample();
        self.from = sample.tick;
        self.baseline = Some(sample.flowops.clone());
        self.rounds_before = pace::progress(&self.shared, sample.tick).unwrap_or_default();
        sample
    }

    /// The iterations of open loops from the beginning of the measurement up to `tick`; `None` if there are no open loops.
    pub fn open_loop(&self, tick: u64) -> Option<ArrivalProgress> {
        pace::progress(&self.shared, tick).map(|now| now.since(self.rounds_before))
    }

    /// When the measurement began, in ticks.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Nanoseconds between two ticks of the run's clock.
    pub fn ns(&self, start: u64, end: u64) -> u64 {
        self.shared.clock.ns(start, end)
    }

    /// Changes the event generator's rate.
    pub fn set_rate(&self, rate: u64) {
        self.shared.events.set_rate(rate);
    }

    /// The processors that threads were bound to, in turn; `None` if they were not.
    pub fn pinned_processors(&self) -> Option<&[usize]> {
        self.shared.processors.as_deref()
    }

    /// Flowops in all.
    pub fn n_flowops(&self) -> usize {
        self.shared.plan.flowops.len()
    }

    /// Threads in all.
    pub fn n_threads(&self) -> usize {
        self.shared.thread_slots.len()
    }

    /// What the threads did that have ended, if they were to remember it; each is given once.
    pub fn take_streams(&self) -> Vec<ThreadStream> {
        let thread_slots = self.shared.thread_slots.iter();
        thread_slots
            .filter_map(|s| {
                let stream = s.stream.lock().take()?;
                let ThreadSlot { process, instance, thread, number, .. } = *s;
                Some(ThreadStream { process, instance, thread, number, stream })
            })
            .collect()
    }

    /// How the processes got their descriptor tables.
    pub fn tables(&self) -> &'static str {
        match self.shared.tables.load(Relaxed) {
            0 => "close_range",
            1 => "unshare",
            _ => "shared",
        }
    }

    /// Ends the run at `tick`: nothing that ends later counts.
    pub fn stop(&self, tick: u64) {
        self.shared.stop(tick);
    }

    /// Waits for the threads to come back, for at most `limit`. Returns how many have not.
    pub fn join_within(&self, limit: Duration) -> usize {
        let thread_slots = self.shared.thread_slots.len();
        let until = std::time::Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            let done = self.shared.hear(left, |news| (news.done == thread_slots).then_some(news.done));
            if done.is_some() && !self.shared.over.swap(true, SeqCst) {
                crate::os::annotate("all threads are done");
            }
            if done.is_some() || left.is_zero() {
                return self.shared.thread_slots.iter().filter(|s| !s.done.load(SeqCst)).count();
            }
        }
    }

    /// What went wrong first when threads closed their files: of a run that ended well otherwise.
    pub fn closing_fault(&self) -> Option<Fault> {
        self.shared.closing_fault()
    }

    /// How long after the end of the measurement the last thread came back, in nanoseconds; until now, if one has not.
    pub fn lateness_ns(&self, tick: u64) -> u64 {
        let now = self.shared.clock.raw();
        let end = |s: &super::shared::ThreadSlot| if s.done.load(SeqCst) { s.ended.load(SeqCst) } else { now };
        self.shared.thread_slots.iter().map(end).map(|t| self.shared.clock.ns(tick, t)).max().unwrap_or(0)
    }

    /// The threads that have not come back, by name and place.
    pub fn stragglers(&self) -> Vec<StuckThread> {
        self.shared
            .thread_slots
            .iter()
            .filter(|s| !s.done.load(SeqCst))
            .map(|s| {
                let tid = s.tid.load(Relaxed);
                StuckThread {
                    flowop: self.shared.plan.processes[s.process].threads[s.thread].first + s.at.load(Relaxed) as usize,
                    instance: s.instance,
                    number: s.number,
                    tid,
                    wait_channel: proc::wait_channel(tid),
                    path: blocked::path_of(tid).map(|path| path.display().to_string()),
                    in_flight: u64::from(s.in_flight.load(Relaxed)).max(1),
                }
            })
            .collect()
    }

    /// Flowops that threads waited in for others to the end, and that not one of these had ever come through: by flowop, how
    /// many threads. Means something only after a run that its time ended.
    pub fn held(&self) -> BTreeMap<usize, u64> {
        self.count_at(|thread_slot, flowop| {
            let local = thread_slot.at.load(Relaxed) as usize;
            self.shared.plan.flowops[flowop].class == crate::spec::Class::Sync
                && thread_slot.stats.cell(local).ops() == 0
        })
    }

    /// Flowops for which no file was left, so that their threads ended: by flowop, how many threads.
    pub fn exhausted(&self) -> BTreeMap<usize, u64> {
        self.count_at(|thread_slot, _| thread_slot.exhausted.load(SeqCst))
    }

    /// Threads for which something holds, by the flowop that they were at last.
    fn count_at(&self, holds: impl Fn(&ThreadSlot, usize) -> bool) -> BTreeMap<usize, u64> {
        let mut counts = BTreeMap::new();
        for thread_slot in &self.shared.thread_slots {
            let thread = &self.shared.plan.processes[thread_slot.process].threads[thread_slot.thread];
            let flowop = thread.first + thread_slot.at.load(Relaxed) as usize;
            if thread.count > 0 && holds(thread_slot, flowop) {
                *counts.entry(flowop).or_default() += 1;
            }
        }
        counts
    }

    /// Ends the run if it has not ended, and waits for every thread to come back from its last call, for at most `limit`, and then
    /// for the processes to be gone, which do no more than free what they have. False if one does not come back: then its threads are
    /// left to the end of wmlrun.
    pub fn join(mut self, limit: Duration) -> bool {
        self.stop(self.shared.clock.raw());
        self.shared.gate.open(self.shared.clock.raw());
        let until = std::time::Instant::now() + limit;
        let left = self.join_within(limit);
        if let Some(guard) = self.guard.take() {
            // It sleeps at the gate, which is stopped; unless it asks a file system that does not answer.
            while !guard.is_finished() && std::time::Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if left > 0 {
            // A thread in a call that never returns can't be ended, only left.
            self.leaders.drain(..).for_each(drop);
            return false;
        }
        self.leaders.drain(..).all(|leader| leader.join().is_ok())
    }

    /// Gives up before the gate was opened.
    pub(super) fn abandon(self) {
        // Leaders that were never started have no thread slots that come; those that were go home at once.
        self.shared.stop(0);
        self.shared.gate.open(self.shared.clock.raw());
        for leader in self.leaders {
            let _ = leader.join();
        }
    }
}
