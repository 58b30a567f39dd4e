//! Processes that run from `create processes` to `shutdown processes`, and their measurement by a script.

use super::ending::{JOIN_TIMEOUT, final_end};
use super::measurement::{Description, Measurement, Record};
use super::rank_ticks::RankTicks;
use super::ready::Ready;
use super::run_ranks::{RankStart, RunRanks};
use super::runner::Runner;
use super::series::RunTimeline;
use super::usage::UsageReading;
use super::{Front, Status, record};
use crate::diag::Failure;
use crate::exec::messages::MessageReader;
use crate::os::kernel_threads::KernelThreads;
use crate::os::{Clock, schedule};
use crate::result::{Interval, Run};
use crate::runtime::{Ended, FaultKind, Running, Waited};
use std::time::Duration;

/// A `stats clear` within this time of the start belongs to it, in nanoseconds.
const START_NS: u64 = 100_000_000;

/// The processes that a script has started, if they run.
#[derive(Default)]
pub(crate) struct LiveProcesses {
    live: Option<Live>,
}

impl LiveProcesses {
    /// True if processes run.
    pub(crate) fn are_running(&self) -> bool {
        self.live.is_some()
    }

    /// Sets the event rate of the running processes.
    pub(crate) fn set_rate(&self, rate: u64) {
        if let Some(live) = &self.live {
            live.running.set_rate(rate);
        }
    }

    /// `create processes`: starts the processes, which run while further commands are executed.
    pub(crate) fn create(
        &mut self,
        runner: &mut Runner,
        what: &Measurement<'_>,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        let started = Live::start(runner, what, front);
        if !matches!(started, Ok(Some(_))) {
            runner.sets.release_sets();
        }
        self.live = started?;
        Ok(())
    }

    /// Waits for `length`. While processes run between `stats clear` and `stats snap`, this is measured time, which the
    /// command line may override.
    pub(crate) fn sleep(
        &mut self,
        runner: &mut Runner,
        length: Duration,
        about: &Description,
        front: &mut dyn Front,
    ) -> Record {
        let Some(live) = &mut self.live else { return runner.sleep(length) };
        live.is_new = false;
        let length = runner.settings.runtime.filter(|_| live.measuring).unwrap_or(length);
        let run = runner.new_run(&live.ready, &live.running, live.measuring.then_some(length), about);
        if live.measuring {
            live.requested = Some(live.requested.unwrap_or_default() + length);
            front.run_started(&runner.outputs.document, &run, Some(length), &format!("for {} s", length.as_secs_f64()));
            if live.reports.is_none() {
                live.reports = runner.rank_ticks(&live.ready.plan, &run);
            }
        }
        let status = live.wait(run, length, runner.settings.interval, front);
        if status == Status::Done {
            return Record::of(Status::Done);
        }
        // Keep the measurement so far.
        let record = self.snap(runner, about, front);
        if let (Status::Interrupted(_), Some(live)) = (status, &mut self.live) {
            // A signal ends the wait. The front end decides whether it also ends the processes.
            live.ended = None;
        }
        Record { status, ..record }
    }

    /// `stats clear`: restarts the measurement of the running processes.
    pub(crate) fn clear(&mut self, runner: &Runner) {
        let _priority = schedule::PriorityGuard::new();
        if let Some(live) = &mut self.live {
            live.clear(&runner.ranks, runner.settings.interval);
        }
    }

    /// `stats snap`: adds the measurement so far to the result as a run.
    pub(crate) fn snap(&mut self, runner: &mut Runner, about: &Description, front: &mut dyn Front) -> Record {
        runner.end_collector(front);
        let Some(live) = &mut self.live else {
            front.note("no processes are running: `stats snap` has nothing to report");
            return Record::of(Status::Done);
        };
        // First of all, read the counters: they are what the measured time is taken from.
        let priority = schedule::PriorityGuard::new();
        let waited = live.ended.clone().unwrap_or_else(|| live.running.status());
        let sample = live.running.measured_at_end();
        drop(priority);
        let waited = final_end(&live.running, waited);
        let is_stuck = matches!(&waited.ended, Ended::Fault(fault) if fault.kind == FaultKind::Stuck);
        let mut run = runner.new_run(&live.ready, &live.running, live.requested, about);
        run.started_at.clone_from(&live.started_at);
        let elapsed_ns = live.running.ns(live.running.from(), waited.tick);
        let usage = live.usage.clone().since(elapsed_ns as f64 / 1e9);
        run.intervals = live.timeline.clone().finish(elapsed_ns, &sample);
        let status = runner.fill(&mut run, &live.ready, &live.running, &waited, &sample, usage);
        // The threads go on: what ends later is not late.
        run.late_ops = 0;
        run.flowops.iter_mut().for_each(|flowop| flowop.late_ops = 0);
        run.late_oldest_seconds = None;
        live.measuring = false;
        runner.outputs.redaction.publish(&mut run, &about.secrets);
        let merged = runner.merge(run, &live.ready.plan, live.start, status);
        runner.record_run(merged, live.reports.take(), is_stuck, front)
    }

    /// `shutdown processes`: ends the running processes, as the end of the session does too.
    pub(crate) fn shutdown(&mut self, runner: &mut Runner, secrets: &[String], front: &mut dyn Front) -> Status {
        let Some(live) = self.live.take() else { return Status::Done };
        let Live { running, ready, printed, ended, reports, .. } = live;
        if let Some(reports) = reports {
            reports.finish();
        }
        // Report a fault that no `sleep` or `stats snap` has reported.
        let mut status = Status::Done;
        if ended.is_none()
            && let Waited { ended: ended @ Ended::Fault(_), .. } = running.status()
        {
            status = front.status(failure_of(ended));
        }
        running.stop(Clock::get().raw());
        if runner.outputs.requested_stream().is_some() {
            running.join_within(Duration::from_secs(10));
            let mut digest = None;
            let streams = runner.streams(&running, &mut digest, front);
            if let Some(run) = runner.outputs.document.runs.last_mut() {
                run.digest = digest;
                runner.outputs.write_json(false, front);
            }
            runner.outputs.write_trace((&ready.plan, &ready.sets), streams, secrets, false, front);
        }
        running.join_within(JOIN_TIMEOUT);
        if let Some(fault) = running.closing_fault() {
            status = status.max(front.status(failure_of(Ended::Fault(fault))));
        }
        let status = status.max(runner.join_or_abandon(running, &ready.plan, JOIN_TIMEOUT, front));
        printed.show(&mut |message| front.note(message));
        runner.sets.release_sets();
        status
    }
}

/// Running processes.
struct Live {
    running: Running,
    ready: Ready,
    printed: MessageReader,
    /// `stats clear` was executed: the next `sleep` is measured time.
    measuring: bool,
    /// No command has waited for the processes or cleared their counters since they were started.
    is_new: bool,
    usage: UsageReading,
    started_at: String,
    requested: Option<Duration>,
    timeline: RunTimeline,
    /// The newest intervals, for the live view.
    recent: Vec<Interval>,
    /// The end of the processes during a command's wait.
    ended: Option<Waited>,
    /// The start of the processes, compared to that of the other ranks.
    start: RankStart,
    /// The reports of one of several ranks, while processes are measured.
    reports: Option<RankTicks>,
}

impl Live {
    /// Starts the processes. `None` if they ended before they began.
    fn start(runner: &mut Runner, what: &Measurement<'_>, front: &mut dyn Front) -> Result<Option<Self>, Failure> {
        let mut ready = runner.make_ready(what, front)?;
        ready.cache.start_counting();
        runner.outputs.limit_trace(ready.plan.n_threads(), front);
        let (mut running, printed) = runner.start(&ready)?;
        let start = match runner.ranks.open(&mut running, None) {
            Ok(start) => start,
            Err(ended) => {
                let status = front.status(failure_of(ended));
                let status = status.max(runner.join_or_abandon(running, &ready.plan, JOIN_TIMEOUT, front));
                return Failure::outcome(status).map(|()| None);
            }
        };
        let timeline = RunTimeline::new(&running, runner.settings.interval);
        Ok(Some(Self {
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
        }))
    }

    /// Waits for `length` while the processes run. Returns the status of the processes.
    fn wait(&mut self, mut run: Run, length: Duration, interval: Duration, front: &mut dyn Front) -> Status {
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
    fn clear(&mut self, ranks: &RunRanks, interval: Duration) {
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
fn failure_of(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::Fault(fault) => Err(Failure::new(record::status_of(fault.kind), fault.what, fault.help)),
        Ended::Interrupted(signal) => Err(Failure::unexplained(Status::Interrupted(signal as u8))),
        _ => Ok(()),
    }
}
