//! One measurement from a plan to an entry of the result: [`Runner::measure`].

use super::cpu::CpuReading;
use super::ready::{FlowopPlace, Ready};
use super::record;
use super::results::ended_otherwise;
use super::series::{Periodic, RunTimeline};
use super::ticker::Ticker;
use super::watch::Stage;
use super::{Front, Runner, Status, WarmupLength, direct, machine};
use crate::disk::quiesce;
use crate::engine::Asynchronous;
use crate::exec::messages::{self, MessageReader};
use crate::fileset::FilesetSpec;
use crate::plan::Plan;
use crate::result::Run;
use crate::result::build::CpuTime;
use crate::runtime::{self, Ended, Running, Waited};
use crate::source::SourceMap;
use crossbeam::channel::RecvTimeoutError;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Bytes of the stack of the thread that passes signals on.
const WATCHER_STACK: usize = 64 << 10;

/// What threads in a call are given before the report is written.
const GRACE: Duration = Duration::from_millis(300);

/// For how long a measurement goes on, unless its threads end before.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// So long.
    Given(Duration),
    /// So long, since nobody said anything else.
    Default(Duration),
    /// Until the threads end.
    Unlimited,
}

impl Length {
    /// The time; of a default a note says so.
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

/// What the result says of a measurement besides its figures, and what it must not say.
#[derive(Default)]
pub struct Description {
    /// The variables of the script, as they are.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// Texts that a result must not hold.
    pub secrets: Vec<String>,
    /// What the script says that a reader of its figures must know.
    pub notes: Vec<String>,
    /// Latency histograms are wanted.
    pub lathist: bool,
}

/// What is to be measured, and how.
pub struct Measurement<'a> {
    /// What runs.
    pub plan: Arc<Plan>,
    /// The texts that it was made from, for messages.
    pub map: &'a SourceMap,
    /// For how long.
    pub length: Length,
    /// For how long before that it runs without being measured.
    pub warmup: WarmupLength,
    /// It goes on from the files that are there.
    pub as_is: bool,
    /// Reports on the way.
    pub periodic: Option<Periodic>,
    /// For the result.
    pub about: Description,
}

/// What came of a measurement. Its entry in the result is the last run of [`Runner::document`].
#[derive(Debug)]
pub struct Record {
    /// How it ended.
    pub status: Status,
    /// Name and value of what a script can read of it as `${stats.NAME}`; empty if nothing was measured.
    pub figures: Vec<(&'static str, u64)>,
}

impl Record {
    /// Nothing was measured.
    pub(crate) fn of(status: Status) -> Self {
        Self { status, figures: Vec::new() }
    }
}

/// How a measurement ended, and what was noted of it on the way.
struct End {
    waited: Waited,
    timeline: RunTimeline,
    cpu: CpuTime,
}

impl Runner {
    /// Measures: brings the file sets to their definitions and the caches to the wanted state, starts the threads, waits for
    /// their end, and adds a run to the document.
    pub fn measure(&mut self, what: Measurement<'_>, front: &mut dyn Front) -> Record {
        let record = match self.get_ready(&what, front) {
            Ok(mut ready) => {
                self.bound_trace(ready.plan.n_threads(), front);
                self.run(&mut ready, what, front)
            }
            Err(status) => Record::of(status),
        };
        self.release_sets();
        record
    }

    /// Brings the file sets of a plan onto the disk, and the caches to the wanted state.
    pub(crate) fn get_ready(&mut self, what: &Measurement<'_>, front: &mut dyn Front) -> Result<Ready, Status> {
        let plan = Arc::clone(&what.plan);
        let roots: Vec<PathBuf> = plan.filesets.iter().map(FilesetSpec::root).collect();
        let _making = self.begin(Stage::Prepare, "looking at the file sets", roots.clone());
        let real = self.settings.engine.real();
        let unaligned = if real { direct::unaligned(&plan) } else { Vec::new() };
        if !unaligned.is_empty() {
            front.diagnostics(what.map, &unaligned);
            return Err(Status::Refused);
        }
        let as_is = what.as_is || self.settings.as_is;
        let (sets, prepared) = self.prepare(&plan, as_is, true, front)?;
        let cache = self.bring_caches(&sets, front)?;
        let dirty_before = quiesce::dirty_bytes();
        self.trees.wrote |= plan.writes();
        let place = FlowopPlace::of(if real { &roots } else { &[] });
        let lines = plan.flowops.iter().map(|flowop| u64::from(what.map.line(flowop.span))).collect();
        Ok(Ready { plan, lines, sets, prepared, as_is, dirty_before, cache, place })
    }

    /// `create files`: brings the file sets of a plan onto the disk now.
    pub fn create_files(&mut self, plan: &Plan, front: &mut dyn Front) -> Status {
        let roots = plan.filesets.iter().map(FilesetSpec::root).collect();
        let _making = self.begin(Stage::Prepare, "looking at the file sets", roots);
        let prepared = self.prepare(plan, self.settings.as_is, false, front);
        self.release_sets();
        prepared.map_or_else(|status| status, |_| Status::Done)
    }

    /// Refuses a plan that this machine could not run for want of memory, threads or descriptors.
    pub fn check_machine(&self, plan: &Plan, front: &mut dyn Front) -> Result<(), Status> {
        machine::check(plan, &[], front)?;
        if self.settings.engine.real() {
            machine::check_descriptors(plan, front)?;
        }
        Ok(())
    }

    /// How asynchronous operations run on this machine. `io_uring` by name, where the kernel gives none, is refused.
    pub fn asynchronous(&self, front: &mut dyn Front) -> Result<Asynchronous, Status> {
        self.settings.engine.asynchronous().resolve().map_err(|errno| {
            let why = crate::os::errno_text(errno.raw_os_error());
            front.error(
                None,
                &format!("the kernel gives no io_uring: {why}"),
                Some("take `--engine posix`, or leave the option out; `kernel.io_uring_disabled` and containers forbid it"),
            );
            Status::Refused
        })
    }

    /// Long work with files, which a signal stops: it reaches the workers through their own flag.
    pub(crate) fn interruptible<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> T {
        let stop = AtomicBool::new(false);
        let (done, over) = crossbeam::channel::bounded::<()>(0);
        std::thread::scope(|scope| {
            let (interrupt, flag) = (&self.interrupt, &stop);
            // Without the thread the work goes on; only a second signal ends it early then.
            let _ = std::thread::Builder::new().stack_size(WATCHER_STACK).spawn_scoped(scope, move || {
                while over.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                    if interrupt.load(SeqCst) != 0 {
                        flag.store(true, SeqCst);
                    }
                }
            });
            let result = work(&stop);
            drop(done);
            result
        })
    }

    /// The options of the runtime, and where `print` is heard.
    pub(crate) fn start(&self, ready: &Ready, front: &mut dyn Front) -> Result<(Running, MessageReader), Status> {
        let (messages, heard) = messages::queue();
        let options = runtime::Options {
            engine: self.settings.engine,
            asynchronous: self.asynchronous(front)?,
            seed: self.settings.seed,
            count_errors: self.settings.count_errors,
            pin: self.settings.pin,
            messages: Some(messages),
            stream: self.stream_wanted(),
            interrupt: Arc::clone(&self.interrupt),
        };
        if self.settings.engine.real() && ready.plan.flowops.iter().any(|flowop| flowop.runs_command) {
            crate::os::child::prepare();
        }
        // The first time, while no thread of ours is in its way.
        record::overhead();
        match runtime::start(Arc::clone(&ready.plan), &ready.sets, options) {
            Ok(running) => Ok((running, heard)),
            Err(fault) => {
                front.error(None, &fault.what, Some(&fault.help));
                Err(Status::Refused)
            }
        }
    }

    fn run(&mut self, ready: &mut Ready, what: Measurement<'_>, front: &mut dyn Front) -> Record {
        let Measurement { length, warmup, mut periodic, about, .. } = what;
        let length = length.limit(front);
        let (mut running, heard) = match self.start(ready, front) {
            Ok(started) => started,
            Err(status) => return Record::of(status),
        };
        let mut run = self.new_run(ready, &running, length, &about);
        ready.cache.start_counting();
        let opened = running.open(length.map(|l| l + warmup.longest(length)));
        run.started_at = record::now();
        if let Err(ended) = opened {
            let end = self.unmeasured(&running, Waited { ended, tick: running.from() });
            return self.conclude(ready, running, run, end, &about.secrets, front);
        }
        front.run_started(&self.document, &run, length);
        if warmup != WarmupLength::NONE {
            if let Err(waited) = self.warm_up(warmup, length, &mut running, &mut run, &ready.plan) {
                let end = self.unmeasured(&running, waited);
                return self.conclude(ready, running, run, end, &about.secrets, front);
            }
            ready.cache.start_counting();
            if let Some(length) = length {
                running.end_after(length);
            }
        }
        let cpu = CpuReading::now();
        let mut timeline = RunTimeline::new(&running, self.settings.interval);
        let (document, started) = (&self.document, self.started);
        let waited = {
            let mut ticker = Ticker::new(self.settings.interval, periodic.as_ref().map(Periodic::period));
            let run = &mut run;
            running.wait(length, ticker.look(), &mut |tick| {
                heard.show(&mut |message| front.note(message));
                if ticker.ends_interval(tick.elapsed_ns) && timeline.look(tick.running, &mut run.intervals) {
                    front.run_ticks(run, tick);
                }
                if let Some(periodic) = &mut periodic
                    && periodic.due(tick.elapsed_ns)
                {
                    let mut report = periodic.report(run, tick);
                    report.finished_seconds = started.elapsed().as_secs_f64();
                    report.intervals = timeline.intervals();
                    front.interim(document, &report, periodic.apart());
                }
                true
            })
        };
        running.stop(waited.tick);
        let cpu = cpu.since(running.ns(running.from(), waited.tick) as f64 / 1e9);
        running.join_within(GRACE);
        heard.show(&mut |message| front.note(message));
        self.conclude(ready, running, run, End { waited, timeline, cpu }, &about.secrets, front)
    }

    /// The end of a run that ended before it was measured.
    fn unmeasured(&self, running: &Running, waited: Waited) -> End {
        End { waited, timeline: RunTimeline::new(running, self.settings.interval), cpu: CpuTime::default() }
    }

    /// Writes the result, then waits for threads that are still in a call.
    fn conclude(
        &mut self,
        ready: &Ready,
        running: Running,
        mut run: Run,
        end: End,
        secrets: &[String],
        front: &mut dyn Front,
    ) -> Record {
        let End { waited, timeline, cpu } = end;
        running.stop(waited.tick);
        // The one look at the counters that everything in the result comes from.
        let mut waited = ended_otherwise(&running, waited);
        let sample = running.measured();
        if let Some(fault) = running.closing_fault().filter(|_| waited.ended.is_good()) {
            waited.ended = Ended::Fault(fault);
        }
        run.intervals = timeline.concluded(running.ns(running.from(), waited.tick), &sample);
        let status = self.fill(&mut run, ready, &running, &waited, &sample, cpu);
        let streams = self.take_streams(&running, front);
        run.digest = self.digest(&streams, &running, front);
        // A thread that is late on a busy disk is no sign that the result's file system does not answer.
        let held = run.state == crate::result::RunState::Stuck;
        run.steady = run.steadiness();
        self.publish_run(&mut run, secrets);
        let figures = record::figures(&run);
        self.document.runs.push(run);
        crate::result::warnings::note(&mut self.document);
        front.run_ended(&self.document);
        self.write_json(held, front);
        self.write_trace(ready, streams, secrets, held, front);
        self.note_status(status);
        let status = status.max(self.part_with(running, &ready.plan, front));
        Record { status, figures }
    }
}
