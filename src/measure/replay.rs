//! The replay of a trace as a measurement: its flowops are the classes of calls, its file set is what is there before the
//! first call.
//!
//! Not here: what calls do, and in which order (`replay`).

use super::named_dirs::NamedDirs;
use super::ready::RunLocation;
use super::run_ranks::MergedRun;
use super::runner::Runner;
use super::usage::UsageReading;
use super::watch::Stage;
use super::{Front, Record, ScriptOrigin, Settings, Status, record};
use crate::diag::Failure;
use crate::disk::quiesce;
use crate::disk::space::{self, LowSpace};
use crate::os::handle;
use crate::os::kernel_threads::KernelThreads;
use crate::os::proc::{self, DescriptorTable};
use crate::os::signals::{self, BrokenOff, Kept};
use crate::replay::{REPLAY_ROOT, ReadyReplay, ReplayOutcome, ReplaySpeed, ReplayStop, TreeSize};
use crate::result::build;
use crate::result::snapshot::Snapshot;
use crate::result::{BeforeAfter, CpuTime, FilesetResult, FlowopClass, FlowopResult, Run, RunFailure, RunState, hdr};
use crate::trace::{CALL_CLASSES, CallClass};
use crate::util::hash::sha256_of;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The name of the file set, of the process and of its thread in the result.
const NAME: &str = "replay";
const MORE_SPACE: &str = "free some space, or use another directory with `--dir`";

/// Where a trace is replayed.
pub(crate) struct ReplayPlace {
    dir: PathBuf,
}

impl ReplayPlace {
    /// The directory that options name. An error if there is none, or if options contradict each other.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        let wish = &settings.replay;
        if wish.leaves_out_thinking && wish.speed == ReplaySpeed::Fast {
            return Err(Failure::wrong("`--no-think` without times", "add `--speed timed`: `fast` waits for no time"));
        }
        match settings.sets.iter().rev().find(|(name, _)| name == "dir") {
            Some((_, dir)) => Ok(Self { dir: dir.into() }),
            None => Err(Failure::wrong("the replay of a trace needs a directory", "name it by `--dir`")),
        }
    }

    /// The directory in which its files are made.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join(REPLAY_ROOT)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn named(&self) -> NamedDirs {
        NamedDirs::of_dir(&self.dir.display().to_string())
    }

    /// Checks that it exists, or can be created, on a file system that is allowed.
    pub(crate) fn check(&self, settings: &Settings) -> Result<(), Failure> {
        self.named().missing(settings)?;
        settings.required.check(std::iter::once(self.dir.clone()))
    }
}

impl Runner {
    /// Replays a trace, and adds a run to the document.
    pub fn replay(&mut self, trace: &Path, front: &mut dyn Front) -> Result<Record, Failure> {
        let settings = self.settings.clone();
        let place = ReplayPlace::of(&settings)?;
        let (ready, initial, quiesced) = self.ready_replay(trace, &place, front)?;
        let location = RunLocation::of(&[place.root()]);
        self.outputs.redaction.add_paths(&[place.root()]);
        self.outputs.document.environment = location.environment;
        self.outputs.redaction.environment(&mut self.outputs.document.environment);
        let mut run = Run {
            environment: location.run,
            engine: settings.engine.name().to_owned(),
            processes: 1,
            threads: ready.threads(),
            descriptor_tables: DescriptorTable::Shared.name().to_owned(),
            quiesced,
            filesets: vec![FilesetResult {
                name: NAME.to_owned(),
                path: place.root().display().to_string(),
                files: initial.files,
                directories: initial.directories,
                bytes: initial.bytes,
                ..FilesetResult::default()
            }],
            ..Run::default()
        };
        let kernel = KernelThreads::before(None);
        let dirty = quiesce::dirty_bytes();
        run.started_at = record::now();
        front.run_started(&self.outputs.document, &run, None, "until its last call");
        let usage = UsageReading::now(kernel);
        let (done, low) = {
            let _kept = Kept::begin();
            signals::second_breaks_off(BrokenOff::Command);
            self.watched(&place, |stop| ready.run(stop))
        };
        let done = done.map_err(|why| failure(trace, &place, why))?;
        run.measured_seconds = done.elapsed as f64 / 1e9;
        let usage = usage.since(run.measured_seconds);
        let outcome = ready.outcome(&done).map_err(|why| failure(trace, &place, why))?;
        run.finished_seconds = self.started.elapsed().as_secs_f64();
        let status = fill(&mut run, outcome, usage.cpu, self.watch.signal(), low);
        usage.describe(&mut run);
        run.dirty_bytes = Some(BeforeAfter { before: dirty, after: quiesce::dirty_bytes() });
        run.peak_memory = proc::peak_memory();
        self.outputs.redaction.publish(&mut run, &[]);
        self.watch.note_status(status);
        Ok(self.record_run(MergedRun { run, status, of_all_ranks: true }, None, false, front))
    }

    /// Does a part of a replay so that a signal stops it, and a file system that is nearly full, which is returned.
    fn watched<T>(
        &self,
        place: &ReplayPlace,
        work: impl FnOnce(&AtomicBool) -> Result<T, ReplayStop>,
    ) -> (Result<T, ReplayStop>, Option<LowSpace>) {
        let watched = |stop: &AtomicBool| space::watched(&place.root(), stop, || work(stop));
        self.watch.interruptible(watched).unwrap_or_else(|error| (Err(error.into()), None))
    }

    /// Reads a trace, and makes what is there before its first call.
    fn ready_replay(
        &mut self,
        trace: &Path,
        place: &ReplayPlace,
        front: &mut dyn Front,
    ) -> Result<(ReadyReplay, TreeSize, Option<bool>), Failure> {
        let settings = self.settings.clone();
        let _watch = self.watch.begin(Stage::Prepare, "preparing the replay", vec![place.dir.clone()]);
        place.named().check(&settings, front)?;
        place.check(&settings)?;
        self.outputs.check_outputs_in_place(front)?;
        self.outputs.outputs_outside(&[(NAME.to_owned(), place.root())])?;
        let unreadable =
            |e: std::io::Error| Failure::wrong(format!("{}: {e}", trace.display()), "give a file that exists");
        let open = || handle::open_regular_file(trace).map_err(unreadable);
        let name = trace.display().to_string();
        self.outputs.describe_script((&name, ""), ("", "a trace"), ScriptOrigin::Other);
        self.outputs.document.script.sha256 = sha256_of(open()?).map_err(unreadable)?;
        let stopped = |why| match self.watch.signal() {
            0 => failure(trace, place, why),
            signal => Failure::unexplained(Status::Interrupted(signal)),
        };
        let input: BufReader<File> = BufReader::new(open()?);
        let wish = crate::replay::ReplayWish { seed: settings.seed, ..settings.replay };
        let mut ready = ReadyReplay::read(input, &place.dir, &wish).map_err(stopped)?;
        let initial = ready.initial();
        let most = ready.most();
        space::check_tree(NAME, &place.root(), most.files, most.directories, most.bytes)?;
        let (filled, low) = self.watched(place, |stop| ready.fill(stop));
        if let Some(low) = low {
            return Err(Failure::refused(low.to_string(), MORE_SPACE));
        }
        filled.map_err(stopped)?;
        if !settings.quiesce {
            return Ok((ready, initial, Some(false)));
        }
        let waited = self.watch.interruptible(|stop| quiesce::quiesce(&[place.root()], stop));
        let waited = waited.map_err(|(_, e)| stopped(e.into()))?;
        Ok((ready, initial, Some(!waited.ran_out)))
    }
}

/// Sets the figures and the state of a replay that has ended. Returns the status.
fn fill(run: &mut Run, outcome: ReplayOutcome, cpu: CpuTime, signal: u8, low: Option<LowSpace>) -> Status {
    let seconds = run.measured_seconds;
    let all = CALL_CLASSES.iter().filter_map(|(class, name, _)| Some((*class, *name, outcome.classes.get(class)?)));
    let flowop = |(n, (class, name, found)): (usize, (CallClass, &str, &crate::replay::ReplayedClass))| {
        let identity = FlowopResult {
            class: FlowopClass::Io,
            reads: class == CallClass::Read,
            writes: class == CallClass::Write,
            instances: run.threads,
            phase: 1,
            recorded_ns: Some(build::latency(&found.recorded)),
            recorded_histogram: hdr::encode(&found.recorded),
            ..build::identity(NAME, "calls", n, name, name)
        };
        (build::flowop(identity, &found.snapshot, seconds), found.snapshot.clone())
    };
    let (flowops, snapshots): (Vec<FlowopResult>, Vec<Snapshot>) = all.enumerate().map(flowop).unzip();
    run.summary = build::summary(flowops.iter().zip(&snapshots), seconds, cpu);
    run.flowops = flowops;
    let differs = outcome.result.failure();
    run.replay = Some(outcome.result);
    let (state, by, status) = match (low, differs) {
        (Some(low), _) => {
            let (what, help) = (low.to_string(), MORE_SPACE.to_owned());
            run.failure = Some(RunFailure { what: what.clone(), help, ..RunFailure::default() });
            (RunState::LowSpace, what, Status::Refused)
        }
        _ if outcome.is_broken_off => {
            (RunState::Interrupted, crate::os::signal_name(i32::from(signal)), Status::Interrupted(signal))
        }
        (None, Some(what)) => {
            run.failure = Some(RunFailure { what, ..RunFailure::default() });
            (RunState::Failed, "it is not as recorded".to_owned(), Status::Failed)
        }
        (None, None) => (RunState::Complete, "its last call".to_owned(), Status::Done),
    };
    (run.state, run.ended_by) = (state, by);
    status
}

/// Why there is no replay.
fn failure(trace: &Path, place: &ReplayPlace, why: ReplayStop) -> Failure {
    let name = trace.display();
    match why {
        ReplayStop::Trace(error) => Failure::wrong(format!("{name}: {}", error.message), error.help),
        ReplayStop::Incomplete(what) => Failure::wrong(
            format!("{name}: the trace is incomplete: it lacks {}", what.join(", ")),
            "record it again, or replay what is there by `--incomplete`",
        ),
        ReplayStop::Nothing => Failure::wrong(format!("{name}: no call in it can be replayed"), ""),
        ReplayStop::Foreign(text) => Failure::refused(text, "give `--dir` another directory, or remove it"),
        ReplayStop::Descriptors(limit, needed) => Failure::refused(
            format!("the replay needs {needed} open files, and the limit is {limit}"),
            format!("raise it: `ulimit -n {needed}`"),
        ),
        ReplayStop::BrokenOff => Failure::failed("the replay was broken off", ""),
        ReplayStop::Io(error) => {
            Failure::failed(format!("can't prepare the replay in {}: {error}", place.dir.display()), "")
        }
    }
}
