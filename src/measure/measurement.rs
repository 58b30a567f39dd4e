//! One measurement from a plan to an entry of the result: [`Runner::measure`].

use super::cpu::CpuReading;
use super::preparation::{PrepareRequest, Purpose};
use super::rank_start::{MergedRun, RankStart};
use super::rank_ticks::RankTicks;
use super::ready::{Ready, RunLocation};
use super::record;
use super::results::{JOIN_TIMEOUT, STUCK_JOIN_TIMEOUT, final_end};
use super::series::{Periodic, RunTimeline};
use super::snapshots::SNAPSHOT_PERIOD;
use super::ticker::Ticker;
use super::watch::Stage;
use super::{Front, Runner, Status, WarmupLength, direct, machine};
use crate::diag::Failure;
use crate::disk::quiesce;
use crate::engine::Asynchronous;
use crate::exec::messages::{self, MessageReader};
use crate::fileset::FilesetSpec;
use crate::os::kernel_threads::KernelThreads;
use crate::os::signals;
use crate::plan::Plan;
use crate::result::Run;
use crate::runtime::{self, Ended, Running, Waited};
use crate::source::SourceMap;
use crate::stats::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time that threads in a system call have to return before the report is written.
const GRACE: Duration = Duration::from_millis(300);

/// The same after a signal to one of several ranks: the launcher may kill them a moment later.
const GRACE_OF_RANK: Duration = Duration::from_millis(100);

/// The length of a measurement, which ends earlier if its threads end.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// This length.
    Given(Duration),
    /// This default length: neither command line nor script has set one.
    Default(Duration),
    /// Until the threads end.
    Unlimited,
}

impl Length {
    /// Returns the time limit. Shows a note if it is the default.
    fn limit(self, front: &mut dyn Front) -> Option<Duration> {
        match self {
            Self::Given(length) => Some(length),
            Self::Default(length) => {
                front.note(&format!("no run time is given: {} s (`--runtime` changes it)", length.as_secs()));
                Some(length)
            }
            Self::Unlimited => None,
        }
    }
}

/// What the result contains of a measurement besides its figures, and what it must not contain.
#[derive(Default)]
pub struct Description {
    /// The values of the script's variables.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// SHA-256 digests of the texts that the script has loaded.
    pub loaded_scripts: Vec<String>,
    /// Texts that must not be in the result.
    pub secrets: Vec<String>,
    /// Notes of the script for the readers of the figures.
    pub notes: Vec<String>,
    /// Whether latency histograms are included.
    pub lathist: bool,
}

/// The specification of a measurement.
pub struct Measurement<'a> {
    /// The plan to be run.
    pub plan: Arc<Plan>,
    /// The source texts of the plan, for messages.
    pub map: &'a SourceMap,
    /// The length of the measurement.
    pub length: Length,
    /// The length of the warm-up before the measurement.
    pub warmup: WarmupLength,
    /// The run starts with the existing files.
    pub as_is: bool,
    /// Interim reports.
    pub periodic: Option<Periodic>,
    /// Contents of the result.
    pub about: Description,
}

/// The outcome of a measurement. Its entry in the result is the last run of [`Runner::document`].
#[derive(Debug)]
pub struct Record {
    /// The status at the end.
    pub status: Status,
    /// Names and values of the figures that a script can read as `${stats.NAME}`. Empty if nothing was measured.
    pub figures: RunFigures,
}

/// Names and values of the figures of a run that a script can read.
pub(crate) type RunFigures = Vec<(&'static str, u64)>;

impl Record {
    /// Returns the outcome without a measurement.
    pub(crate) fn of(status: Status) -> Self {
        Self { status, figures: Vec::new() }
    }
}

/// The end of a measurement and the data gathered during it.
struct End {
    waited: Waited,
    timeline: RunTimeline,
    /// The processor time at the start of the measurement; `None` if the run ended before.
    cpu_before: Option<CpuReading>,
    /// The receiver of `print` messages.
    printed: MessageReader,
    /// The start compared to the other ranks; `None` if the gate was not opened.
    start: Option<RankStart>,
    /// The reports of one of several ranks.
    reports: Option<RankTicks>,
}

impl Runner {
    /// Makes a measurement: prepares the file sets and the caches, starts the threads, waits for their end, and adds a
    /// run to the document.
    pub fn measure(&mut self, what: Measurement<'_>, front: &mut dyn Front) -> Result<Record, Failure> {
        let record = self.make_ready(&what, front).and_then(|mut ready| {
            self.limit_trace(ready.plan.n_threads(), front);
            self.run(&mut ready, what, front)
        });
        self.release_sets();
        record
    }

    /// Prepares the file sets of a plan on disk, and the caches.
    pub(crate) fn make_ready(&mut self, what: &Measurement<'_>, front: &mut dyn Front) -> Result<Ready, Failure> {
        let plan = Arc::clone(&what.plan);
        let roots: Vec<PathBuf> = plan.filesets.iter().map(FilesetSpec::root).collect();
        let _watch = self.begin(Stage::Prepare, "checking the file sets", roots.clone());
        let real = self.settings.engine.real();
        let unaligned = if real { direct::unaligned(&plan) } else { Vec::new() };
        let aligned = match unaligned.is_empty() {
            true => Ok(()),
            false => Err(Failure::in_script(Status::Refused, what.map, unaligned)),
        };
        self.agree("the sizes of direct I/O", aligned)?;
        let as_is = what.as_is || self.settings.as_is;
        let request = PrepareRequest { purpose: Purpose::Run, as_is };
        let (sets, prepared) = self.prepare(&plan, request, what.map, front)?;
        // The files of a tree that has only now been created are in memory, as they would be without these commands.
        let existed = prepared.iter().flatten().all(|set| set.reused || set.unchanged);
        let dropped = std::mem::take(&mut self.trees.caches_dropped) && existed;
        let cache = self.prepare_caches(&sets, dropped, front);
        let cache = self.agree("the caches", cache)?;
        let dirty_before = quiesce::dirty_bytes();
        self.trees.wrote |= plan.writes();
        let location = RunLocation::of(if real { &roots } else { &[] });
        let lines = plan.flowops.iter().map(|flowop| u64::from(what.map.line(flowop.span))).collect();
        Ok(Ready { plan, lines, sets, prepared, as_is, dirty_before, cache, location })
    }

    /// `create files`: prepares the file sets of a plan on disk now. `map`: the source texts of the plan.
    pub fn create_files(&mut self, plan: &Plan, map: &SourceMap, front: &mut dyn Front) -> Result<(), Failure> {
        let roots = plan.filesets.iter().map(FilesetSpec::root).collect();
        let _watch = self.begin(Stage::Prepare, "checking the file sets", roots);
        let request = PrepareRequest { purpose: Purpose::CreateOnly, as_is: self.settings.as_is };
        let prepared = self.prepare(plan, request, map, front);
        self.release_sets();
        prepared.map(drop)
    }

    /// Checks that this machine has memory, threads and descriptors enough for a plan.
    pub fn check_machine(&self, plan: &Plan) -> Result<(), Failure> {
        machine::check(plan, &[])?;
        if self.settings.engine.real() { machine::check_descriptors(plan) } else { Ok(()) }
    }

    /// Returns how asynchronous operations are executed on this machine. An error if `io_uring` was requested by name and
    /// is not available.
    pub fn asynchronous(&self) -> Result<Asynchronous, Failure> {
        self.settings.engine.asynchronous().resolve().map_err(|errno| {
            let why = crate::os::errno_text(errno.raw_os_error());
            let help = "use `--engine posix` or omit the option; \
                        `kernel.io_uring_disabled` or the container may forbid io_uring";
            Failure::refused(format!("io_uring is not available: {why}"), help)
        })
    }

    /// Runs long work on files so that a signal stops it, by setting the flag that is passed to `work`.
    pub(crate) fn interruptible<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> T {
        signals::interruptible(&self.interrupt, work)
    }

    /// Starts the threads. Returns the handle of the run and the receiver of `print` messages.
    pub(crate) fn start(&self, ready: &Ready) -> Result<(Running, MessageReader), Failure> {
        let (sender, printed) = messages::queue();
        let options = runtime::Options {
            engine: self.settings.engine,
            asynchronous: self.asynchronous()?,
            seed: self.stream_seed(),
            run_seed: self.settings.seed,
            count_errors: self.settings.count_errors,
            pin: self.settings.pin,
            messages: Some(sender),
            stream: self.requested_stream(),
            interrupt: Arc::clone(&self.interrupt),
            devices: ready.cache.devices(),
            meetings: self.settings.together.meeting_place(),
        };
        if self.settings.engine.real() && ready.plan.flowops.iter().any(|flowop| flowop.runs_command) {
            crate::os::child::prepare();
        }
        // Calibrate now, before threads of the run disturb it.
        record::overhead();
        let started = runtime::start(Arc::clone(&ready.plan), &ready.sets, options);
        let running = started.map_err(|fault| Failure::refused(fault.what, fault.help))?;
        Ok((running, printed))
    }

    fn run(&mut self, ready: &mut Ready, what: Measurement<'_>, front: &mut dyn Front) -> Result<Record, Failure> {
        let Measurement { length, warmup, mut periodic, about, .. } = what;
        let length = length.limit(front);
        let (mut running, printed) = self.start(ready).inspect_err(|_| self.report_unready())?;
        let mut run = self.new_run(ready, &running, length, &about);
        ready.cache.start_counting();
        let mut kernel = KernelThreads::before(length);
        let opened = self.open(&mut running, length.map(|l| l + warmup.longest(length)));
        run.started_at = record::now();
        let start = match opened {
            Ok(start) => start,
            Err(ended) => {
                let waited = Waited { ended, tick: running.from() };
                let end = self.end_before_measurement(&running, waited, printed);
                return Ok(self.conclude(ready, running, run, end, &about.secrets, front));
            }
        };
        front.run_started(&self.document, &run, length);
        if warmup != WarmupLength::NONE {
            match self.warm_up(warmup, length, &mut running, &mut run, &ready.plan) {
                Ok(read) => kernel = read,
                Err(waited) => {
                    let end = End { start: Some(start), ..self.end_before_measurement(&running, waited, printed) };
                    return Ok(self.conclude(ready, running, run, end, &about.secrets, front));
                }
            }
            ready.cache.start_counting();
            if let Some(length) = length {
                running.end_after(length);
            }
        }
        let cpu_before = Some(CpuReading::now(kernel));
        let mut timeline = RunTimeline::new(&running, self.settings.interval);
        let mut reports = self.rank_ticks(&ready.plan, &run);
        let (document, started) = (&self.document, self.started);
        let waited = {
            let mut ticker = Ticker::new(self.settings.interval, periodic.as_ref().map(Periodic::period));
            if reports.is_some() {
                ticker = ticker.with_samples_every(SNAPSHOT_PERIOD);
            }
            let run = &mut run;
            running.wait(length, ticker.period(), &mut |tick| {
                printed.show(&mut |message| front.note(message));
                if ticker.ends_interval(tick.elapsed_ns) && timeline.end_interval(tick.running, &mut run.intervals) {
                    let of_ranks = reports.as_mut().and_then(|reports| reports.interval(tick));
                    front.run_ticks(run, tick, of_ranks.as_ref());
                }
                if let Some(reports) = &mut reports {
                    reports.sample(tick, &run.intervals);
                }
                if let Some(periodic) = &mut periodic
                    && periodic.due(tick.elapsed_ns)
                {
                    let mut report = periodic.report(run, tick);
                    report.finished_seconds = started.elapsed().as_secs_f64();
                    report.intervals = timeline.intervals();
                    front.interim(document, &report, periodic.resets());
                }
                true
            })
        };
        let end = End { waited, timeline, cpu_before, printed, start: Some(start), reports };
        Ok(self.conclude(ready, running, run, end, &about.secrets, front))
    }

    /// Returns the end of a run that ended before its measurement.
    fn end_before_measurement(&self, running: &Running, waited: Waited, printed: MessageReader) -> End {
        let timeline = RunTimeline::new(running, self.settings.interval);
        End { waited, timeline, cpu_before: None, printed, start: None, reports: None }
    }

    /// Stops the run, writes the result, then waits for threads that are still in a system call.
    fn conclude(
        &mut self,
        ready: &Ready,
        running: Running,
        mut run: Run,
        end: End,
        secrets: &[String],
        front: &mut dyn Front,
    ) -> Record {
        let End { waited, timeline, cpu_before, printed, start, reports } = end;
        running.stop(waited.tick);
        let measured = running.ns(running.from(), waited.tick) as f64 / 1e9;
        let cpu = cpu_before.map(|before| before.since(measured)).unwrap_or_default();
        // However early the run ends, its threads need this time to leave their calls.
        let is_signalled_rank = !self.settings.together.is_alone() && self.signal() != 0;
        running.join_within(if is_signalled_rank { GRACE_OF_RANK } else { GRACE });
        if waited.ended.is_good() {
            // Whether the run is complete depends on whether they return.
            running.wait_for_blocked(|| self.signal() != 0);
        }
        printed.show(&mut |message| front.note(message));
        // Read the counters once: everything in the result is computed from this sample.
        let mut waited = final_end(&running, waited);
        let sample = running.measured_at_end();
        if let Some(fault) = running.closing_fault().filter(|_| waited.ended.is_good()) {
            waited.ended = Ended::Fault(fault);
        }
        let shown_until = run.intervals.last().map_or(0.0, |shown| shown.t);
        run.intervals = timeline.finish(running.ns(running.from(), waited.tick), &sample);
        // A rank knows its own operations only. A last interval whose first half was shown is the shown one with the
        // rest; the times are rounded, so that its start is not compared.
        if self.settings.together.is_alone()
            && run.intervals.last().is_some_and(|last| last.t - last.seconds / 2.0 > shown_until)
        {
            front.last_interval(&run, sample.flowops.iter().map(Snapshot::failed).sum());
        }
        let status = self.fill(&mut run, ready, &running, &waited, &sample, cpu);
        let streams = self.take_streams(&running, front);
        run.digest = self.digest(&streams, &running, front);
        // A late thread on a busy disk does not mean that the result's file system does not answer.
        let held = run.state == crate::result::RunState::Stuck;
        run.steady = run.steadiness();
        self.publish_run(&mut run, secrets);
        // A run that did not begin on one rank did so on none.
        let merged = match start {
            Some(start) => self.merge_with_ranks(run, &ready.plan, start, status),
            None => MergedRun { run, status, of_all_ranks: false },
        };
        let record = self.record_run(merged, reports, held, front);
        self.write_trace(ready, streams, secrets, held, front);
        self.note_status(record.status);
        let status = record.status.max(self.join_or_abandon(
            running,
            &ready.plan,
            if held { STUCK_JOIN_TIMEOUT } else { JOIN_TIMEOUT },
            front,
        ));
        Record { status, ..record }
    }

    /// Adds a run to the result, reports it and writes it. `reports` has the figures of this rank until they are written.
    /// `held`: a file system is known not to answer.
    pub(crate) fn record_run(
        &mut self,
        merged: MergedRun,
        reports: Option<RankTicks>,
        held: bool,
        front: &mut dyn Front,
    ) -> Record {
        let MergedRun { run, status, of_all_ranks } = merged;
        let figures = record::figures(&run);
        self.document.runs.push(run);
        crate::result::warnings::note(&mut self.document);
        front.run_ended(&self.document);
        self.write_json(held, front);
        // When rank 0 has written the result, the others no longer need their own.
        let shared = if of_all_ranks { self.figures_of_rank_0(figures.clone()) } else { Ok(figures.clone()) };
        let is_kept = shared.is_ok() || self.write_unreported(front);
        let figures = shared.unwrap_or(figures);
        if let Some(reports) = reports.filter(|_| is_kept) {
            reports.finish();
        }
        self.append_run(held, front);
        Record { status, figures }
    }
}
