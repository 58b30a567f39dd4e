//! Processes that run from `create processes` to `shutdown processes`, and their measurement by a script.

use super::rank_ticks::RankTicks;
use super::ready::Ready;
use super::run_ranks::{RankStart, RunRanks};
use super::series::RunTimeline;
use super::usage::UsageReading;
use super::{Front, Status, record};
use crate::diag::Failure;
use crate::exec::messages::MessageReader;
use crate::os::Clock;
use crate::os::kernel_threads::KernelThreads;
use crate::result::{Interval, Run};
use crate::runtime::{Ended, Running, Waited};
use std::time::Duration;

/// A `stats clear` within this time of the start belongs to it, in nanoseconds.
const START_NS: u64 = 100_000_000;

/// Running processes.
pub(crate) struct Live {
    pub(crate) running: Running,
    pub(crate) ready: Ready,
    pub(crate) printed: MessageReader,
    /// `stats clear` was executed: the next `sleep` is measured time.
    pub(crate) measuring: bool,
    /// No command has waited for the processes or cleared their counters since they were started.
    pub(crate) is_new: bool,
    pub(crate) usage: UsageReading,
    pub(crate) started_at: String,
    pub(crate) requested: Option<Duration>,
    pub(crate) timeline: RunTimeline,
    /// The newest intervals, for the live view.
    pub(crate) recent: Vec<Interval>,
    /// The end of the processes during a command's wait.
    pub(crate) ended: Option<Waited>,
    /// The start of the processes, compared to that of the other ranks.
    pub(crate) start: RankStart,
    /// The reports of one of several ranks, while processes are measured.
    pub(crate) reports: Option<RankTicks>,
}

impl Live {
    /// Processes that have started.
    pub(crate) fn new(
        ready: Ready,
        (running, printed): (Running, MessageReader),
        start: RankStart,
        interval: Duration,
    ) -> Self {
        let timeline = RunTimeline::new(&running, interval);
        Self {
            running,
            ready,
            printed,
            measuring: false,
            is_new: true,
            usage: UsageReading::now(KernelThreads::before(None)),
            started_at: record::now(),
            requested: None,
            timeline,
            recent: Vec::new(),
            ended: None,
            start,
            reports: None,
        }
    }

    /// Waits for `length` while the processes run. Returns the status of the processes.
    pub(crate) fn wait(&mut self, mut run: Run, length: Duration, interval: Duration, front: &mut dyn Front) -> Status {
        run.intervals = std::mem::take(&mut self.recent);
        let running = &self.running;
        let elapsed = Duration::from_nanos(running.ns(running.from(), Clock::get().raw()));
        let (printed, timeline, reports) = (&self.printed, &mut self.timeline, &mut self.reports);
        let usage = &mut self.usage;
        let waited = running.wait(Some(elapsed + length), interval, &mut |tick| {
            printed.show(&mut |message| front.note(message));
            usage.keep_up();
            if timeline.end_interval(tick.running, &mut run.intervals) {
                let of_ranks = reports.as_mut().and_then(|reports| reports.interval(tick));
                front.run_ticks(&run, tick, of_ranks.as_ref());
            }
            if let Some(reports) = reports {
                reports.sample(tick, &run.intervals);
            }
            true
        });
        self.recent = run.intervals;
        let status = match &waited.ended {
            Ended::Interrupted(signal) => Status::Interrupted(*signal as u8),
            Ended::Fault(fault) => record::status_of(fault.kind),
            _ => Status::Done,
        };
        if waited.ended != Ended::Time {
            self.ended = Some(waited);
        }
        status
    }

    /// `stats clear`: restarts the measurement of the running processes. Right after their start it begins the measurement
    /// with the start: a workload that ends at once would lose operations. Several ranks start anew together.
    pub(crate) fn clear(&mut self, ranks: &RunRanks, interval: Duration) {
        let since_start = self.running.ns(self.running.from(), Clock::get().raw());
        if std::mem::take(&mut self.is_new) && ranks.is_alone() && since_start < START_NS {
            self.measuring = true;
            return;
        }
        let kernel = KernelThreads::before(None);
        self.start = ranks.restart_together(|| drop(self.running.clear()));
        self.ready.cache.start_counting();
        self.measuring = true;
        self.usage = UsageReading::now(kernel);
        self.started_at = record::now();
        self.requested = None;
        self.timeline = RunTimeline::new(&self.running, interval);
        self.recent.clear();
        // The snapshots of what was measured before are of no use.
        if let Some(reports) = self.reports.take() {
            reports.finish();
        }
    }
}

/// Why processes ended or did not start.
pub(crate) fn failure_of(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::Fault(fault) => Err(Failure::new(record::status_of(fault.kind), fault.what, fault.help)),
        Ended::Interrupted(signal) => Err(Failure::unexplained(Status::Interrupted(signal as u8))),
        _ => Ok(()),
    }
}
