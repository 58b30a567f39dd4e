//! Processes that live from `create processes` to `shutdown processes`, and what a script measures of them in between.

use super::cache::Cache;
use super::record::{self, Periodic, RunTimeline};
use super::results::PATIENCE;
use super::run::RunTime;
use super::{Front, Session, Status};
use crate::diag::Diagnostic;
use crate::disk::Fileset;
use crate::disk::prepare::Prepared;
use crate::flowop::messages::Heard;
use crate::measure::collector::Collector;
use crate::measure::environment;
use crate::model::{self, Expr, ModelValue, Stats};
use crate::os::{Clock, limits, proc, schedule};
use crate::plan::Plan;
use crate::report::filebench;
use crate::result::build::CpuTime;
use crate::result::{Environment, Interval, RunEnvironment};
use crate::runtime::{Ended, FaultKind, Running, Waited};
use crate::source::{Span, Spanned};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A plan whose file sets are on the disk.
pub(super) struct Ready {
    pub(super) plan: Arc<Plan>,
    pub(super) sets: Vec<Arc<Fileset>>,
    /// Of those that were made for this run.
    pub(super) prepared: Vec<Option<Prepared>>,
    /// The run goes on from the files that are there.
    pub(super) as_is: bool,
    pub(super) dirty_before: u64,
    pub(super) cache: Cache,
    pub(super) place: FlowopPlace,
}

/// Where a run takes place, looked at before its threads start: afterwards nobody asks the file systems any more.
pub(super) struct FlowopPlace {
    pub(super) environment: Environment,
    pub(super) run: RunEnvironment,
    /// The absolute root of each set.
    pub(super) roots: Vec<PathBuf>,
}

impl FlowopPlace {
    /// The machine, and the mounts of these roots.
    pub(super) fn of(roots: &[PathBuf]) -> Self {
        let absolute = roots.iter().map(|root| record::absolute(root)).collect();
        Self { environment: environment::environment(), run: environment::of_run(roots), roots: absolute }
    }
}

/// Live processes.
pub(super) struct Live {
    pub(super) running: Running,
    ready: Ready,
    heard: Heard,
    /// `stats clear` was said: the next `sleep` is measured time.
    measuring: bool,
    cpu: (u64, u64),
    system: Option<f64>,
    started_at: String,
    requested: Option<Duration>,
    timeline: RunTimeline,
    /// The newest intervals, for the live view.
    recent: Vec<Interval>,
    /// What ended the processes while a command waited.
    ended: Option<Waited>,
}

impl Session {
    /// Ends the collector, if there is one.
    pub(super) fn end_collector(&mut self, front: &mut dyn Front) {
        if let Some(text) = self.collector.take().and_then(Collector::end) {
            front.note(&text);
        }
    }

    /// `create processes`: they start at once, and go on while the commands do.
    pub(super) fn create_processes(&mut self, front: &mut dyn Front) -> Status {
        let status = self.shutdown_processes(front);
        if status != Status::Done {
            return status;
        }
        self.has_run = true;
        let status = self.start_live(front);
        if self.live.is_none() {
            self.release_sets();
        }
        status
    }

    fn start_live(&mut self, front: &mut dyn Front) -> Status {
        let mut ready = match self.get_ready(false, Span::default(), front) {
            Ok(ready) => ready,
            Err(status) => return status,
        };
        ready.cache.start_counting();
        self.bound_trace(ready.plan.n_threads(), front);
        let (mut running, heard) = match self.start(&ready, front) {
            Ok(started) => started,
            Err(status) => return status,
        };
        if let Err(ended) = running.open(None) {
            let status = show_end(&ended, front);
            return status.max(self.part_with(running, &ready.plan, front));
        }
        let timeline = RunTimeline::new(&running, self.settings.interval);
        self.live = Some(Live {
            running,
            ready,
            heard,
            measuring: false,
            cpu: proc::cpu_times(),
            system: record::system_cpu(),
            started_at: record::now(),
            requested: None,
            timeline,
            recent: Vec::new(),
            ended: None,
        });
        Status::Done
    }

    /// `sleep` while processes live. Between `stats clear` and `stats snap` it is the measured time, which the command line
    /// may replace.
    pub(super) fn sleep_live(&mut self, length: Duration, front: &mut dyn Front) -> Status {
        let Some(mut live) = self.live.take() else { return Status::Done };
        let length = self.settings.runtime.filter(|_| live.measuring).unwrap_or(length);
        let mut run = self.new_run(&live.ready, &live.running, live.measuring.then_some(length));
        run.intervals = std::mem::take(&mut live.recent);
        if live.measuring {
            live.requested = Some(live.requested.unwrap_or_default() + length);
            front.run_started(&self.document, &run, Some(length));
        }
        let running = &live.running;
        let elapsed = Duration::from_nanos(running.ns(running.from(), Clock::get().raw()));
        let (heard, timeline) = (&live.heard, &mut live.timeline);
        let waited = running.wait(Some(elapsed + length), self.settings.interval, &mut |tick| {
            heard.show(&mut |message| front.note(message));
            if timeline.look(tick.running, &mut run.intervals) {
                front.run_ticks(&run, tick);
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
            // What was measured is not thrown away.
            self.snap(front);
            if let (Status::Interrupted(_), Some(live)) = (status, &mut self.live) {
                // A signal ends the wait; whether it ends the processes too is for the front end to say.
                live.ended = None;
            }
            return status;
        }
        Status::Done
    }

    /// `stats …`.
    pub(super) fn stats(
        &mut self,
        stats: &Stats,
        span: Span,
        front: &mut dyn Front,
    ) -> Result<Status, Box<Diagnostic>> {
        match stats {
            Stats::Clear => self.clear_live(),
            Stats::Snap => return Ok(self.snap(front)),
            Stats::Dump(file) => return self.dump(file, &filebench::DUMP, front),
            Stats::MultiDump(file) => return self.dump(file, &filebench::MULTIDUMP, front),
            Stats::XmlDump(file) => return self.dump(file, &filebench::XMLDUMP, front),
            Stats::Directory(path) => {
                let made = self.make_dir_for(path, front)?;
                if made != Status::Done {
                    return Ok(made);
                }
                return self.results_directory(path, front);
            }
            Stats::Command(command) => {
                if let Some(d) = self.refusal(&self.text(command)?, span) {
                    front.diagnostics(&self.map, &[d]);
                    return Ok(Status::Refused);
                }
                let made = self.make_dir_for(command, front)?;
                if made != Status::Done {
                    return Ok(made);
                }
                let command = self.text(command)?;
                // Only one at a time, as in Filebench.
                self.end_collector(front);
                match Collector::start(&command, &self.results_dir()) {
                    Ok(collector) => self.collector = Some(collector),
                    Err(e) => front.note(&format!("`{command}` can't be started: {e}")),
                }
            }
        }
        Ok(Status::Done)
    }

    fn clear_live(&mut self) {
        let interval = self.settings.interval;
        let _first = schedule::First::new();
        if let Some(live) = &mut self.live {
            live.running.clear();
            live.ready.cache.start_counting();
            live.measuring = true;
            live.cpu = proc::cpu_times();
            live.system = record::system_cpu();
            live.started_at = record::now();
            live.requested = None;
            live.timeline = RunTimeline::new(&live.running, interval);
            live.recent.clear();
        }
    }

    /// `stats snap`: the measurement so far becomes a run of the result.
    fn snap(&mut self, front: &mut dyn Front) -> Status {
        self.end_collector(front);
        let Some(mut live) = self.live.take() else {
            front.note("no processes live: `stats snap` has nothing to show");
            return Status::Done;
        };
        // Before all else: what is measured is what has passed until the counters are looked at.
        let first = schedule::First::new();
        let waited = live.ended.clone().unwrap_or_else(|| live.running.look());
        let sample = live.running.measured();
        drop(first);
        let waited = super::results::ended_otherwise(&live.running, waited);
        let is_stuck = matches!(&waited.ended, Ended::Fault(fault) if fault.kind == FaultKind::Stuck);
        let mut run = self.new_run(&live.ready, &live.running, live.requested);
        run.started_at.clone_from(&live.started_at);
        let cpu = CpuTime {
            own_seconds: Some(record::seconds_between(live.cpu, proc::cpu_times())),
            system_seconds: live.system.zip(record::system_cpu()).map(|(a, b)| (b - a).max(0.0)),
            processors: limits::allowed_processors().len() as u64,
        };
        run.intervals = live.timeline.clone().concluded(&live.running, waited.tick, &sample);
        let status = self.fill(&mut run, &live.ready, &live.running, &waited, &sample, cpu);
        // Threads of live processes are in the middle of their calls, not late with them.
        if !is_stuck {
            run.stragglers.clear();
        }
        run.late_ops = 0;
        run.flowops.iter_mut().for_each(|flowop| flowop.late_ops = 0);
        run.late_oldest_seconds = None;
        live.measuring = false;
        self.live = Some(live);
        self.publish_run(&mut run);
        self.document.runs.push(run);
        crate::result::warnings::note(&mut self.document);
        front.run_ended(&self.document);
        self.write_json(is_stuck, front);
        status
    }

    /// `shutdown processes`, and whatever else ends them.
    pub(crate) fn shutdown_processes(&mut self, front: &mut dyn Front) -> Status {
        let Some(live) = self.live.take() else { return Status::Done };
        // A fault that no `sleep` or `stats snap` has heard of is told now.
        let mut status = Status::Done;
        if live.ended.is_none()
            && let Waited { ended: ended @ Ended::Fault(_), .. } = live.running.look()
        {
            status = show_end(&ended, front);
        }
        live.running.stop(Clock::get().raw());
        if self.stream_wanted().is_some() {
            live.running.join_within(Duration::from_secs(10));
            let streams = self.take_streams(&live.running, front);
            let digest = self.digest(&streams, &live.running, front);
            if let Some(run) = self.document.runs.last_mut() {
                run.digest = digest;
                self.write_json(false, front);
            }
            self.write_trace(&live.ready, streams, false, front);
        }
        let (plan, heard) = (Arc::clone(&live.ready.plan), live.heard);
        live.running.join_within(PATIENCE);
        if let Some(fault) = live.running.closing_fault() {
            status = status.max(show_end(&Ended::Fault(fault), front));
        }
        let status = status.max(self.part_with(live.running, &plan, front));
        heard.show(&mut |message| front.note(message));
        self.release_sets();
        status
    }

    /// `psrun [[-]PERIOD [SECONDS]] [as-is]`.
    pub(super) fn psrun(
        &mut self,
        period: Option<&Spanned<Expr>>,
        seconds: Option<&Spanned<Expr>>,
        as_is: bool,
        span: Span,
        front: &mut dyn Front,
    ) -> Result<Status, Box<Diagnostic>> {
        const PERIOD: Duration = Duration::from_secs(10);
        let (period, reset) = match period {
            None => (PERIOD, false),
            Some(other) => match model::eval(other, &self.scope).map_err(Box::new)? {
                ModelValue::Int(n @ ..0) => (Duration::from_secs(n.unsigned_abs().min(1_000_000_000)), true),
                _ => (self.seconds(other)?, false),
            },
        };
        if self.only_loaded("psrun", seconds, front) {
            return Ok(Status::Done);
        }
        let length = seconds.map(|s| self.seconds(s)).transpose()?.filter(|length| !length.is_zero());
        let periodic = Periodic::new(if period.is_zero() { PERIOD } else { period }, reset);
        let time = RunTime { length, as_is };
        Ok(self.run_with(time, Some(periodic), span, front))
    }
}

/// Tells why processes did not start.
fn show_end(ended: &Ended, front: &mut dyn Front) -> Status {
    match ended {
        Ended::Fault(fault) => {
            front.error(None, &fault.what, Some(&fault.help));
            record::status_of(fault.kind)
        }
        Ended::Interrupted(signal) => Status::Interrupted(*signal as u8),
        _ => Status::Done,
    }
}
