//! Measurements: [`Runner::measure`] makes one from a plan to an entry of the result.

use super::ending::{self, JOIN_TIMEOUT, STUCK_JOIN_TIMEOUT, final_end};
use super::file_sets::{FileSets, PrepareRequest, Purpose};
use super::measurement::{Description, Measurement, Record};
use super::outputs::Outputs;
use super::programs::{self, Collector, drops_inodes};
use super::rank_ticks::RankTicks;
use super::ready::{Ready, RunLocation};
use super::run_ranks::{MergedRun, RankStart, RunRanks};
use super::series::{Periodic, RunTimeline};
use super::snapshots::{SNAPSHOT_PERIOD, SnapshotWriter};
use super::ticker::Ticker;
use super::usage::{RunUsage, UsageReading};
use super::watch::{Stage, Watch};
use super::{Front, Settings, Status, WarmupLength, direct, record, streams, warmup};
use crate::diag::Failure;
use crate::disk::quiesce;
use crate::exec::messages::MessageReader;
use crate::fileset::FilesetSpec;
use crate::os::kernel_threads::KernelThreads;
use crate::plan::{self, Plan};
use crate::result::ranks::RankRun;
use crate::result::snapshot::Snapshot;
use crate::result::{Digest, Run};
use crate::runtime::{Ended, Running, Sample, ThreadStream, Waited};
use crate::source::SourceMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// The time that threads in a system call have to return before the report is written.
const GRACE: Duration = Duration::from_millis(300);

/// The same after a signal to one of several ranks: the launcher may kill them a moment later.
const GRACE_OF_RANK: Duration = Duration::from_millis(100);

/// The end of a measurement and the data gathered during it.
struct End {
    waited: Waited,
    timeline: RunTimeline,
    /// What was read at the start of the measurement; `None` if the run ended before.
    usage_before: Option<UsageReading>,
    /// The receiver of `print` messages.
    printed: MessageReader,
    /// The start compared to the other ranks; `None` if the gate was not opened.
    start: Option<RankStart>,
    /// The reports of one of several ranks.
    reports: Option<RankTicks>,
}

/// Measures plans one after another.
pub struct Runner {
    /// The options of the command line.
    pub settings: Arc<Settings>,
    /// What the session waits for, for the watchdog; and the signal that ends it.
    pub watch: Arc<Watch>,
    /// The processes that make the runs together.
    pub ranks: RunRanks,
    /// The file sets on the disk.
    pub sets: FileSets,
    /// The result and other outputs.
    pub outputs: Outputs,
    collector: Option<Collector>,
    pub(super) started: Instant,
}

impl Runner {
    /// Creates a runner that has measured nothing. `interrupt` is set by signals. The seed is that of rank 0.
    pub fn new(settings: Settings, interrupt: Arc<AtomicUsize>) -> Self {
        // If rank 0 is lost, the agreement before the run reports it.
        let seed = settings.together.of_first(settings.seed).unwrap_or(settings.seed);
        let settings = Arc::new(Settings { seed, ..settings });
        let watch = Arc::new(Watch::new(interrupt));
        let ranks = RunRanks::new(&settings, &watch);
        Self {
            sets: FileSets::new(&settings, &watch, &ranks),
            outputs: Outputs::new(&settings, &watch),
            ranks,
            collector: None,
            started: Instant::now(),
            watch,
            settings,
        }
    }

    /// Shows the watchdog that `what` is checked before a run, at `path` or else in the directories of the file sets.
    pub fn looking(&self, what: &str, path: Option<&str>) -> impl Drop + use<> {
        let paths = match path {
            Some(path) => std::path::absolute(path).into_iter().collect(),
            None => self.sets.parent_dirs(),
        };
        self.watch.begin(Stage::Prepare, what, paths)
    }

    /// Shows the watchdog that a text is read.
    pub fn reading(&self, what: &str) -> impl Drop + use<> {
        self.watch.begin(Stage::Prepare, what, Vec::new())
    }

    /// Makes a measurement: prepares the file sets and the caches, starts the threads, waits for their end, and adds a
    /// run to the document.
    pub fn measure(&mut self, what: Measurement<'_>, front: &mut dyn Front) -> Result<Record, Failure> {
        let record = self.make_ready(&what, front).and_then(|mut ready| {
            self.outputs.limit_trace(ready.plan.n_threads(), front);
            self.run(&mut ready, what, front)
        });
        self.sets.release_sets();
        record
    }

    /// Prepares the file sets of a plan on disk, and the caches.
    pub(crate) fn make_ready(&mut self, what: &Measurement<'_>, front: &mut dyn Front) -> Result<Ready, Failure> {
        let plan = Arc::clone(&what.plan);
        let roots: Vec<PathBuf> = plan.filesets.iter().map(FilesetSpec::root).collect();
        let _watch = self.watch.begin(Stage::Prepare, "checking the file sets", roots.clone());
        let real = self.settings.engine.real();
        let unaligned = if real { direct::unaligned(&plan) } else { Vec::new() };
        let aligned = match unaligned.is_empty() {
            true => Ok(()),
            false => Err(Failure::in_script(Status::Refused, what.map, unaligned)),
        };
        self.ranks.agree("the sizes of direct I/O", aligned)?;
        let as_is = what.as_is || self.settings.as_is;
        let request = PrepareRequest { purpose: Purpose::Run, as_is };
        let (sets, prepared) = self.sets.prepare(&plan, request, what.map, &mut self.outputs, front)?;
        let cache = self.sets.prepare_caches(&sets, &prepared, front)?;
        let dirty_before = quiesce::dirty_bytes();
        self.sets.note_run(&plan);
        let location = RunLocation::of(if real { &roots } else { &[] });
        let lines = plan.flowops.iter().map(|flowop| u64::from(what.map.line(flowop.span))).collect();
        Ok(Ready { plan, lines, sets, prepared, as_is, dirty_before, cache, location })
    }

    /// `create files`: prepares the file sets of a plan on disk now. `map`: the source texts of the plan.
    pub(crate) fn create_files(&mut self, plan: &Plan, map: &SourceMap, front: &mut dyn Front) -> Result<(), Failure> {
        let roots = plan.filesets.iter().map(FilesetSpec::root).collect();
        let _watch = self.watch.begin(Stage::Prepare, "checking the file sets", roots);
        let request = PrepareRequest { purpose: Purpose::CreateOnly, as_is: self.settings.as_is };
        let prepared = self.sets.prepare(plan, request, map, &mut self.outputs, front);
        self.sets.release_sets();
        prepared.map(drop)
    }

    /// Starts the threads. The other ranks wait for them, and are told if they can't be started.
    pub(super) fn start(&self, ready: &Ready) -> Result<(Running, MessageReader), Failure> {
        let started = ready.start(&self.settings, &self.ranks, &self.outputs, self.watch.interrupt());
        started.inspect_err(|_| self.ranks.report_unready())
    }

    /// Returns the entry of a run before its start: what was requested, and the environment.
    pub(super) fn new_run(
        &mut self,
        ready: &Ready,
        running: &Running,
        length: Option<Duration>,
        about: &Description,
    ) -> Run {
        let outputs = &mut self.outputs;
        outputs.redaction.add_paths(&ready.sets.iter().map(|set| set.spec.root()).collect::<Vec<_>>());
        outputs.document.environment = ready.location.environment.clone();
        outputs.redaction.environment(&mut outputs.document.environment);
        let mut run = record::entry(&self.settings, ready, running, length, about);
        outputs.redaction.publish(&mut run, &about.secrets);
        run
    }

    /// Sets the figures and the state of a run that has ended. Returns the status.
    pub(super) fn fill(
        &self,
        run: &mut Run,
        ready: &Ready,
        running: &Running,
        waited: &Waited,
        sample: &Sample,
        usage: RunUsage,
    ) -> Status {
        run.finished_seconds = self.started.elapsed().as_secs_f64();
        record::fill(run, ready, running, waited, sample, usage, self.settings.seed)
    }

    /// Returns the streams of threads that have ended, and sets their digest, if they were requested.
    pub(super) fn streams(
        &self,
        running: &Running,
        digest: &mut Option<Digest>,
        front: &mut dyn Front,
    ) -> Vec<ThreadStream> {
        if self.outputs.requested_stream().is_none() {
            return Vec::new();
        }
        let streams = streams::take(running, front);
        *digest = self.settings.digest.map(|operations| streams::digest(operations, &streams, running, front));
        streams
    }

    /// Returns the run of all ranks on rank 0, and its status; on the others their own run.
    pub(super) fn merge(&self, run: Run, plan: &Plan, start: RankStart, status: Status) -> MergedRun {
        self.ranks.merge(run, &self.outputs.document.environment, plan, start, status)
    }

    /// Starts the reports of a run that begins to be measured. `None` for a run in one process.
    pub(super) fn rank_ticks(&mut self, plan: &Arc<Plan>, run: &Run) -> Option<RankTicks> {
        let together = self.settings.together.clone();
        if together.is_alone() {
            return None;
        }
        // Those that have ended are in the result of rank 0.
        let runs = std::mem::take(&mut self.outputs.document.runs);
        let document = self.outputs.document.clone();
        let number = runs.len() + 1;
        self.outputs.document.runs = runs;
        let rank = RankRun {
            rank: together.rank() as u64,
            host: self.ranks.host_label(together.rank()),
            environment: document.environment.clone(),
            run: run.clone(),
            ..RankRun::default()
        };
        let snapshots = SnapshotWriter::start(document, rank, self.started, self.outputs.results.clone(), plan);
        let hosts = (0..together.size()).map(|rank| self.ranks.host_label(rank)).collect();
        Some(RankTicks::new(together, hosts, plan, number, snapshots))
    }

    fn run(&mut self, ready: &mut Ready, what: Measurement<'_>, front: &mut dyn Front) -> Result<Record, Failure> {
        let Measurement { length, warmup, mut periodic, about, .. } = what;
        let length = length.limit(front);
        let (mut running, printed) = self.start(ready)?;
        let mut run = self.new_run(ready, &running, length, &about);
        ready.cache.start_counting();
        let mut kernel = KernelThreads::before(length);
        let opened = self.ranks.open(&mut running, length.map(|l| l + warmup.longest(length)));
        run.started_at = record::now();
        let start = match opened {
            Ok(start) => start,
            Err(ended) => {
                let waited = Waited { ended, tick: running.from() };
                let end = self.end_before_measurement(&running, waited, printed);
                return Ok(self.conclude(ready, running, run, end, &about.secrets, front));
            }
        };
        front.run_started(&self.outputs.document, &run, length, &plan::how_long(&ready.plan, length));
        if warmup != WarmupLength::NONE {
            match warmup::warm_up(self.settings.interval, warmup, length, &mut running, &mut run, &ready.plan) {
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
        let mut usage = UsageReading::now(kernel);
        let mut timeline = RunTimeline::new(&running, self.settings.interval);
        let mut reports = self.rank_ticks(&ready.plan, &run);
        let (document, started) = (&self.outputs.document, self.started);
        let waited = {
            let mut ticker = Ticker::new(self.settings.interval, periodic.as_ref().map(Periodic::period));
            if reports.is_some() {
                ticker = ticker.with_samples_every(SNAPSHOT_PERIOD);
            }
            let run = &mut run;
            running.wait(length, ticker.period(), &mut |tick| {
                printed.show(&mut |message| front.note(message));
                usage.keep_up();
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
        let end = End { waited, timeline, usage_before: Some(usage), printed, start: Some(start), reports };
        Ok(self.conclude(ready, running, run, end, &about.secrets, front))
    }

    /// Returns the end of a run that ended before its measurement.
    fn end_before_measurement(&self, running: &Running, waited: Waited, printed: MessageReader) -> End {
        let timeline = RunTimeline::new(running, self.settings.interval);
        End { waited, timeline, usage_before: None, printed, start: None, reports: None }
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
        let End { waited, timeline, usage_before, printed, start, reports } = end;
        running.stop(waited.tick);
        let measured = running.ns(running.from(), waited.tick) as f64 / 1e9;
        let usage = usage_before.map(|before| before.since(measured)).unwrap_or_default();
        // However early the run ends, its threads need this time to leave their calls.
        let is_signalled_rank = !self.settings.together.is_alone() && self.watch.signal() != 0;
        running.join_within(if is_signalled_rank { GRACE_OF_RANK } else { GRACE });
        if waited.ended.is_good() {
            // Whether the run is complete depends on whether they return.
            running.wait_for_blocked(|| self.watch.signal() != 0);
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
        let status = self.fill(&mut run, ready, &running, &waited, &sample, usage);
        let streams = self.streams(&running, &mut run.digest, front);
        // A late thread on a busy disk does not mean that the result's file system does not answer.
        let held = run.state == crate::result::RunState::Stuck;
        run.steady = run.steadiness();
        self.outputs.redaction.publish(&mut run, secrets);
        // A run that did not begin on one rank did so on none.
        let merged = match start {
            Some(start) => self.merge(run, &ready.plan, start, status),
            None => MergedRun { run, status, of_all_ranks: false },
        };
        let record = self.record_run(merged, reports, held, front);
        self.outputs.write_trace((&ready.plan, &ready.sets), streams, secrets, held, front);
        self.watch.note_status(record.status);
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
        self.outputs.document.runs.push(run);
        crate::result::warnings::note(&mut self.outputs.document);
        self.settings.judge.judge(&mut self.outputs.document);
        front.run_ended(&self.outputs.document);
        self.outputs.write_json(held, front);
        // When rank 0 has written the result, the others no longer need their own.
        let shared = if of_all_ranks { self.ranks.figures_of_rank_0(figures.clone()) } else { Ok(figures.clone()) };
        let is_kept = shared.is_ok() || self.outputs.write_unreported(front);
        let figures = shared.unwrap_or(figures);
        if let Some(reports) = reports.filter(|_| is_kept) {
            reports.finish();
        }
        self.outputs.append_run(held, front);
        Record { status, figures }
    }

    /// Waits for `length`, or for a signal.
    pub(super) fn sleep(&self, length: Duration) -> Record {
        let deadline = Instant::now() + length;
        while Instant::now() < deadline {
            if self.watch.signal() != 0 {
                return Record::of(Status::Interrupted(self.watch.signal()));
            }
            std::thread::sleep((deadline - Instant::now()).min(Duration::from_millis(50)));
        }
        Record::of(Status::Done)
    }

    /// Waits for threads that are still in a system call, and abandons them at the time limit `limit`.
    pub(super) fn join_or_abandon(
        &self,
        running: Running,
        plan: &Plan,
        limit: Duration,
        front: &mut dyn Front,
    ) -> Status {
        if ending::join_or_abandon(running, plan, limit, front) {
            return Status::Done;
        }
        self.watch.stall(self.sets.roots());
        self.watch.note_status(Status::Failed);
        Status::Failed
    }

    /// `stats command`: starts a collector instead of the running one. Shows a note if it can't be started.
    pub fn collect(&mut self, command: &str, front: &mut dyn Front) {
        // Only one at a time, as in Filebench.
        self.end_collector(front);
        // The command may change the trees at any time.
        self.sets.invalidate_stamps();
        match Collector::start(command, &self.outputs.results_dir()) {
            Ok(collector) => self.collector = Some(collector),
            Err(e) => front.note(&format!("can't start `{command}`: {e}")),
        }
    }

    /// Ends the collector if there is one.
    pub(crate) fn end_collector(&mut self, front: &mut dyn Front) {
        if let Some(text) = self.collector.take().and_then(Collector::end) {
            front.note(&text);
        }
    }

    /// `system`: runs a command and returns its exit status. A signal ends the command; then the result is `None`.
    pub(crate) fn run_command(&mut self, command: &str, front: &mut dyn Front) -> io::Result<Option<ExitStatus>> {
        // The command may change the trees, and mount file systems over them.
        self.sets.invalidate_stamps();
        // As in Filebench, `stats directory` sets the directory of later commands too.
        let dir = self.outputs.named_dir();
        let status = programs::run(command, dir.as_deref(), &self.watch, front)?;
        if status.is_some_and(|status| status.success()) && drops_inodes(command) {
            self.sets.note_dropped_caches();
        }
        Ok(status)
    }

    /// Records the status of the work so far, and in the result whether it is complete. Called when the script has been
    /// executed, and again when its processes have ended.
    pub(crate) fn end_script(&mut self, status: Status) {
        self.watch.note_status(status);
        self.outputs.document.complete = self.watch.worst() == Status::Done;
    }

    /// Ends the session, whose processes have ended with this status: removes its own directories, and writes the final
    /// result. Returns it too.
    pub fn finish(mut self, mut status: Status, front: &mut dyn Front) -> (Status, Outputs) {
        self.end_collector(front);
        self.end_script(status);
        // Before the trees are removed: their file system may not answer.
        status = status.max(self.outputs.finish_json(front));
        if self.outputs.has_failed() {
            status = status.max(Status::Failed);
        }
        self.watch.note_status(status);
        (status.max(self.sets.finish_trees(front)), self.outputs)
    }
}
