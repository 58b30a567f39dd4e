//! Processes that run from `create processes` to `shutdown processes`, and their measurement by a script.

use super::cpu::CpuReading;
use super::ready::Live;
use super::record;
use super::results::JOIN_TIMEOUT;
use super::series::RunTimeline;
use super::{Description, Front, Measurement, Record, Runner, Status};
use crate::diag::Failure;
use crate::os::kernel_threads::KernelThreads;
use crate::os::{Clock, schedule};
use crate::runtime::{Ended, FaultKind, Waited};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A `stats clear` within this time of the start belongs to it, in nanoseconds.
const START_NS: u64 = 100_000_000;

impl Runner {
    /// Returns whether such processes are running.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Sets the event rate of the running processes.
    pub fn set_rate(&self, rate: u64) {
        if let Some(live) = &self.live {
            live.running.set_rate(rate);
        }
    }

    /// Waits for `length`. While processes run between `stats clear` and `stats snap`, this is measured time.
    pub fn sleep(&mut self, length: Duration, about: &Description, front: &mut dyn Front) -> Record {
        if self.is_live() {
            return self.sleep_live(length, about, front);
        }
        let deadline = Instant::now() + length;
        while Instant::now() < deadline {
            if self.signal() != 0 {
                return Record::of(Status::Interrupted(self.signal()));
            }
            std::thread::sleep((deadline - Instant::now()).min(Duration::from_millis(50)));
        }
        Record::of(Status::Done)
    }

    /// `create processes`: starts the processes, which run while further commands are executed.
    pub fn create_processes(&mut self, what: &Measurement<'_>, front: &mut dyn Front) -> Result<(), Failure> {
        let started = self.start_live(what, front);
        if self.live.is_none() {
            self.release_sets();
        }
        started
    }

    fn start_live(&mut self, what: &Measurement<'_>, front: &mut dyn Front) -> Result<(), Failure> {
        let mut ready = self.make_ready(what, front)?;
        ready.cache.start_counting();
        self.limit_trace(ready.plan.n_threads(), front);
        let (mut running, printed) = self.start(&ready).inspect_err(|_| self.report_unready())?;
        let start = match self.open(&mut running, None) {
            Ok(start) => start,
            Err(ended) => {
                let status = front.status(failure_of(ended));
                let status = status.max(self.join_or_abandon(running, &ready.plan, JOIN_TIMEOUT, front));
                return Failure::outcome(status);
            }
        };
        let timeline = RunTimeline::new(&running, self.settings.interval);
        self.live = Some(Live {
            running,
            ready,
            printed,
            measuring: false,
            is_new: true,
            cpu: CpuReading::now(KernelThreads::before(None)),
            started_at: record::now(),
            requested: None,
            timeline,
            recent: Vec::new(),
            ended: None,
            start,
            reports: None,
        });
        Ok(())
    }

    /// `sleep` while processes run. Between `stats clear` and `stats snap` its length is the measured time, which the
    /// command line may override.
    fn sleep_live(&mut self, length: Duration, about: &Description, front: &mut dyn Front) -> Record {
        let Some(mut live) = self.live.take() else { return Record::of(Status::Done) };
        live.is_new = false;
        let length = self.settings.runtime.filter(|_| live.measuring).unwrap_or(length);
        let mut run = self.new_run(&live.ready, &live.running, live.measuring.then_some(length), about);
        run.intervals = std::mem::take(&mut live.recent);
        if live.measuring {
            live.requested = Some(live.requested.unwrap_or_default() + length);
            front.run_started(&self.document, &run, Some(length));
            if live.reports.is_none() {
                live.reports = self.rank_ticks(&live.ready.plan, &run);
            }
        }
        let running = &live.running;
        let elapsed = Duration::from_nanos(running.ns(running.from(), Clock::get().raw()));
        let (printed, timeline, reports) = (&live.printed, &mut live.timeline, &mut live.reports);
        let waited = running.wait(Some(elapsed + length), self.settings.interval, &mut |tick| {
            printed.show(&mut |message| front.note(message));
            if timeline.end_interval(tick.running, &mut run.intervals) {
                let of_ranks = reports.as_mut().and_then(|reports| reports.interval(tick));
                front.run_ticks(&run, tick, of_ranks.as_ref());
            }
            if let Some(reports) = reports {
                reports.sample(tick, &run.intervals);
            }
            true
        });
        live.recent = run.intervals;
        let status = match &waited.ended {
            Ended::Time => Status::Done,
            Ended::Interrupted(signal) => Status::Interrupted(*signal as u8),
            Ended::Fault(fault) => record::status_of(fault.kind),
            _ => Status::Done,
        };
        if waited.ended != Ended::Time {
            live.ended = Some(waited);
        }
        self.live = Some(live);
        if status != Status::Done {
            // Keep the measurement so far.
            let record = self.snap(about, front);
            if let (Status::Interrupted(_), Some(live)) = (status, &mut self.live) {
                // A signal ends the wait. The front end decides whether it also ends the processes.
                live.ended = None;
            }
            return Record { status, ..record };
        }
        Record::of(Status::Done)
    }

    /// `stats clear`: restarts the measurement of the running processes. Right after their start it begins the measurement
    /// with the start: a workload that ends at once would lose operations. Several ranks start anew together.
    pub fn clear_live(&mut self) {
        let interval = self.settings.interval;
        let _priority = schedule::PriorityGuard::new();
        if let Some(mut live) = self.live.take() {
            let since_start = live.running.ns(live.running.from(), Clock::get().raw());
            if live.is_new && self.settings.together.is_alone() && since_start < START_NS {
                (live.measuring, live.is_new) = (true, false);
                self.live = Some(live);
                return;
            }
            live.is_new = false;
            let kernel = KernelThreads::before(None);
            live.start = self.restart_together(|| drop(live.running.clear()));
            live.ready.cache.start_counting();
            live.measuring = true;
            live.cpu = CpuReading::now(kernel);
            live.started_at = record::now();
            live.requested = None;
            live.timeline = RunTimeline::new(&live.running, interval);
            live.recent.clear();
            // The snapshots of what was measured before are of no use.
            if let Some(reports) = live.reports.take() {
                reports.finish();
            }
            self.live = Some(live);
        }
    }

    /// `stats snap`: adds the measurement so far to the result as a run.
    pub fn snap(&mut self, about: &Description, front: &mut dyn Front) -> Record {
        self.end_collector(front);
        let Some(mut live) = self.live.take() else {
            front.note("no processes are running: `stats snap` has nothing to report");
            return Record::of(Status::Done);
        };
        // First of all, read the counters: they are what the measured time is taken from.
        let priority = schedule::PriorityGuard::new();
        let waited = live.ended.clone().unwrap_or_else(|| live.running.status());
        let sample = live.running.measured_at_end();
        drop(priority);
        let waited = super::results::final_end(&live.running, waited);
        let is_stuck = matches!(&waited.ended, Ended::Fault(fault) if fault.kind == FaultKind::Stuck);
        let mut run = self.new_run(&live.ready, &live.running, live.requested, about);
        run.started_at.clone_from(&live.started_at);
        let measured = live.running.ns(live.running.from(), waited.tick) as f64 / 1e9;
        let cpu = live.cpu.since(measured);
        run.intervals = {
            let elapsed_ns = live.running.ns(live.running.from(), waited.tick);
            live.timeline.clone().finish(elapsed_ns, &sample)
        };
        let status = self.fill(&mut run, &live.ready, &live.running, &waited, &sample, cpu);
        // The threads go on: what ends later is not late.
        run.late_ops = 0;
        run.flowops.iter_mut().for_each(|flowop| flowop.late_ops = 0);
        run.late_oldest_seconds = None;
        live.measuring = false;
        let (plan, start, reports) = (Arc::clone(&live.ready.plan), live.start, live.reports.take());
        self.live = Some(live);
        self.publish_run(&mut run, &about.secrets);
        let merged = self.merge_with_ranks(run, &plan, start, status);
        self.record_run(merged, reports, is_stuck, front)
    }

    /// `shutdown processes`: ends the running processes, as the end of the session does too.
    pub fn shutdown_processes(&mut self, secrets: &[String], front: &mut dyn Front) -> Status {
        let Some(mut live) = self.live.take() else { return Status::Done };
        if let Some(reports) = live.reports.take() {
            reports.finish();
        }
        // Report a fault that no `sleep` or `stats snap` has reported.
        let mut status = Status::Done;
        if live.ended.is_none()
            && let Waited { ended: ended @ Ended::Fault(_), .. } = live.running.status()
        {
            status = front.status(failure_of(ended));
        }
        live.running.stop(Clock::get().raw());
        if self.requested_stream().is_some() {
            live.running.join_within(Duration::from_secs(10));
            let streams = self.take_streams(&live.running, front);
            let digest = self.digest(&streams, &live.running, front);
            if let Some(run) = self.document.runs.last_mut() {
                run.digest = digest;
                self.write_json(false, front);
            }
            self.write_trace(&live.ready, streams, secrets, false, front);
        }
        let (plan, printed) = (Arc::clone(&live.ready.plan), live.printed);
        live.running.join_within(JOIN_TIMEOUT);
        if let Some(fault) = live.running.closing_fault() {
            status = status.max(front.status(failure_of(Ended::Fault(fault))));
        }
        let status = status.max(self.join_or_abandon(live.running, &plan, JOIN_TIMEOUT, front));
        printed.show(&mut |message| front.note(message));
        self.release_sets();
        status
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
