//! A measured run: file sets, processes, the wait, the result.

use super::live::{FlowopPlace, Ready};
use super::results::ended_otherwise;
use super::{Front, ReadySet, Session, Status, record};
use crate::diag::{Code, Diagnostic};
use crate::disk::prepare;
use crate::disk::quiesce;
use crate::engine::Asynchronous;
use crate::flowop::messages::{self, Heard};
use crate::measure::leftovers::{self, Leftover};
use crate::measure::machine;
use crate::measure::ticker::Ticker;
use crate::measure::watch::Stage;
use crate::os::{limits, proc};
use crate::plan;
use crate::result::build::CpuTime;
use crate::result::{CacheState, Note, Run, Warmup};
use crate::runtime::{self, Ended, Running, Waited};
use crate::source::Span;
use crossbeam::channel::RecvTimeoutError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// How long a run is to take, and from what it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RunTime {
    /// As the command says; `None` if it says nothing.
    pub(crate) length: Option<Duration>,
    /// It goes on from the files that are there.
    pub(crate) as_is: bool,
}

/// How long a run takes whose script and command line say nothing.
const DEFAULT: Duration = Duration::from_mins(1);

/// Bytes of the stack of the thread that passes signals on.
const WATCHER_STACK: usize = 64 << 10;

/// What threads in a call are given before the report is written.
const GRACE: Duration = Duration::from_millis(300);

/// How a measurement ended, and what was noted of it on the way.
struct End {
    waited: Waited,
    timeline: record::RunTimeline,
    cpu: CpuTime,
}

impl Session {
    /// How long a run is to take: the command line's time, else the script's, else 60 s; and for scripts that end by
    /// themselves no limit.
    fn limit(&self, length: Option<Duration>, front: &mut dyn Front) -> Option<Duration> {
        // A default of a loaded text is worth what its variables are worth now.
        let default = || self.default_seconds.as_ref().and_then(|s| self.seconds(s).ok()).filter(|s| !s.is_zero());
        let given = self.settings.runtime.or(length).or_else(default);
        if given.is_some() || self.mode != crate::model::QuitMode::Timeout {
            return given;
        }
        front.note(&format!("no run time is given: {} s (`--runtime` changes it)", DEFAULT.as_secs()));
        Some(DEFAULT)
    }

    /// A run from start to end.
    pub(super) fn run(&mut self, length: Option<Duration>, span: Span, front: &mut dyn Front) -> Status {
        self.run_with(RunTime { length, as_is: false }, None, span, front)
    }

    pub(crate) fn run_with(
        &mut self,
        time: RunTime,
        report: Option<record::Periodic>,
        span: Span,
        front: &mut dyn Front,
    ) -> Status {
        self.has_run = true;
        self.last_run = Some(time);
        let status = self.shutdown_processes(front);
        if status != Status::Done {
            return status;
        }
        let status = match self.get_ready(time.as_is, span, front) {
            Ok(mut ready) => {
                self.bound_trace(ready.plan.n_threads(), front);
                let limit = self.limit(time.length, front);
                self.measure(&mut ready, limit, report, front)
            }
            Err(status) => status,
        };
        self.release_sets();
        status
    }

    /// Compiles the plan and brings its file sets onto the disk.
    pub(super) fn get_ready(&mut self, as_is: bool, span: Span, front: &mut dyn Front) -> Result<Ready, Status> {
        if self.definitions.processes.is_empty() {
            let d = Diagnostic::error(Code::NothingToRun, span, "no process is defined")
                .help("define one, or `load` a personality");
            front.diagnostics(&self.map, &[d]);
            return Err(Status::Script);
        }
        self.asynchronous(front)?;
        let here = self.places.iter().cloned().collect();
        let _looking =
            self.watch.begin(Stage::Prepare, "looking where the file sets are to be", here, self.worst.code());
        self.refuse_devices(front)?;
        // What the machine can't do is refused before anything is made.
        let plan = self.plan(front).ok_or(Status::Script)?;
        machine::check(&plan, &[], front)?;
        if self.settings.engine.real() {
            machine::check_descriptors(&plan, front)?;
        }
        self.make_dir_if_used(front)?;
        let plan = Arc::new(self.plan(front).ok_or(Status::Script)?);
        self.check_dir(front)?;
        let roots: Vec<PathBuf> = plan.filesets.iter().map(crate::fileset::FilesetSpec::root).collect();
        let _making = self.watch.begin(Stage::Prepare, "looking at the file sets", roots.clone(), self.worst.code());
        self.refuse_unaligned(&plan, front)?;
        let as_is = as_is || self.settings.as_is;
        let (sets, prepared) = self.prepare(&plan, as_is, true, front)?;
        let cache = self.bring_caches(&sets, front)?;
        let dirty_before = quiesce::dirty_bytes();
        self.wrote |= plan.writes();
        let place = FlowopPlace::of(if self.settings.engine.real() { &roots } else { &[] });
        Ok(Ready { plan, sets, prepared, as_is, dirty_before, cache, place })
    }

    /// How asynchronous operations run on this machine. `io_uring` by name, where the kernel gives none, is refused.
    fn asynchronous(&self, front: &mut dyn Front) -> Result<Asynchronous, Status> {
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

    /// A file that is a block device is used in place, and what is on it is lost: not without leave.
    fn refuse_devices(&self, front: &mut dyn Front) -> Result<(), Status> {
        use std::os::unix::fs::FileTypeExt;
        if !self.settings.engine.real() {
            return Ok(());
        }
        let leave = |device: &Path| {
            let same = |other: &PathBuf| std::fs::canonicalize(other).is_ok_and(|other| other == *device);
            self.settings.allow_device.iter().any(same)
        };
        for def in self.definitions.filesets.iter().filter(|def| def.single) {
            // What else is wrong with it is told when the plan is made.
            let Some(spec) = plan::fileset_spec(def, &self.scope, &mut Vec::new()) else { continue };
            let root = spec.root();
            let Ok(device) = std::fs::canonicalize(&root) else { continue };
            if !std::fs::metadata(&device).is_ok_and(|meta| meta.file_type().is_block_device()) {
                continue;
            }
            let (code, what, help) = if leave(&device) {
                let help = "make a file system on it, mount it, and give that directory with `path=`".to_owned();
                (Code::Unsupported, "is a block device, which this version can't use in place", help)
            } else {
                let help = format!("what is on it would be lost; `--allow-device {}` gives leave", root.display());
                (Code::Refused, "is a block device", help)
            };
            let found = Diagnostic::error(code, def.span, format!("`{}` {what}", root.display())).help(help);
            front.diagnostics(&self.map, &[found]);
            return Err(Status::Refused);
        }
        Ok(())
    }

    /// Makes the fresh directory, if a file set lies in it.
    pub(super) fn make_dir_if_used(&mut self, front: &mut dyn Front) -> Result<(), Status> {
        let by_default = self.scope.binding("dir").is_some_and(|b| b.by == crate::model::SetBy::Default);
        if !by_default || self.fresh.is_some() || !self.settings.engine.real() {
            return Ok(());
        }
        let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        for n in 0..1000 {
            let path = base.join(format!("wmlrun-{}-{n}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    let file = self.map.add("<fresh directory>", path.display().to_string());
                    let text =
                        crate::model::Expr::Text(vec![crate::syntax::ast::TextPart::Text(path.display().to_string())]);
                    let value = crate::source::Spanned::new(text, Span::new(file, 0, 0));
                    self.fresh = Some(path);
                    let _ = self.scope.set("dir", value, crate::model::SetBy::Default);
                    return Ok(());
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    front.error(
                        None,
                        &format!("no directory can be made in {}: {e}", base.display()),
                        Some("give a directory with `--dir`"),
                    );
                    return Err(Status::Refused);
                }
            }
        }
        front.error(
            None,
            &format!("{} is full of directories of other runs", base.display()),
            Some("`wmlrun clean` removes them"),
        );
        Err(Status::Refused)
    }

    /// The signal that came, or 0.
    pub(super) fn signal(&self) -> u8 {
        self.interrupt.load(SeqCst) as u8
    }

    /// Long work with files, which a signal stops: it reaches the workers through their own flag.
    pub(super) fn interruptible<T>(&self, work: impl FnOnce(&AtomicBool) -> T) -> T {
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
    pub(super) fn start(&self, ready: &Ready, front: &mut dyn Front) -> Result<(Running, Heard), Status> {
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
        // The first time, while no thread of ours is in its way.
        super::record::overhead();
        match runtime::start(Arc::clone(&ready.plan), &ready.sets, options) {
            Ok(running) => Ok((running, heard)),
            Err(fault) => {
                front.error(None, &fault.what, Some(&fault.help));
                Err(Status::Refused)
            }
        }
    }

    fn measure(
        &mut self,
        ready: &mut Ready,
        length: Option<Duration>,
        mut periodic: Option<record::Periodic>,
        front: &mut dyn Front,
    ) -> Status {
        let (mut running, heard) = match self.start(ready, front) {
            Ok(started) => started,
            Err(status) => return status,
        };
        let warmup = self.warm_next.take().unwrap_or(self.settings.warmup);
        let mut run = self.new_run(ready, &running, length);
        ready.cache.start_counting();
        let opened = running.open(length.map(|l| l + warmup));
        run.started_at = record::now();
        if let Err(ended) = opened {
            let waited = Waited { ended, tick: running.from() };
            let timeline = record::RunTimeline::new(&running, self.settings.interval);
            return self.conclude(ready, running, run, End { waited, timeline, cpu: CpuTime::default() }, front);
        }
        front.run_started(&self.document, &run, length);
        if !warmup.is_zero() {
            let waited = running.wait(Some(warmup), self.settings.interval, &mut |_| true);
            if waited.ended != Ended::Time {
                run.warnings.push(Note {
                    code: "ended_in_warmup".to_owned(),
                    message: "the run ended while it was warmed up: the figures are of the warm-up".to_owned(),
                });
                let timeline = record::RunTimeline::new(&running, self.settings.interval);
                return self.conclude(ready, running, run, End { waited, timeline, cpu: CpuTime::default() }, front);
            }
            if run.cache_state == CacheState::Cold {
                run.warnings.push(Note {
                    code: "warmed_up".to_owned(),
                    message: "the caches were cold before the warm-up, not when the measurement began".to_owned(),
                });
            }
            let before = running.clear();
            run.warmup = Some(Warmup {
                seconds: warmup.as_secs_f64(),
                ops: record::io_ops(&ready.plan, &before),
                bytes: record::io_bytes(&ready.plan, &before),
            });
            ready.cache.start_counting();
            if let Some(length) = length {
                running.end_after(length);
            }
        }
        let cpu = proc::cpu_times();
        let system = record::system_cpu();
        let mut timeline = record::RunTimeline::new(&running, self.settings.interval);
        let (document, started) = (&self.document, self.started);
        let waited = {
            let mut ticker = Ticker::new(self.settings.interval, periodic.as_ref().map(record::Periodic::period));
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
        let cpu = CpuTime {
            own_seconds: Some(record::seconds_between(cpu, proc::cpu_times())),
            system_seconds: system.zip(record::system_cpu()).map(|(a, b)| (b - a).max(0.0)),
            processors: limits::allowed_processors().len() as u64,
        };
        running.join_within(GRACE);
        heard.show(&mut |message| front.note(message));
        self.conclude(ready, running, run, End { waited, timeline, cpu }, front)
    }

    /// Writes the result, then waits for threads that are still in a call.
    fn conclude(&mut self, ready: &Ready, running: Running, mut run: Run, end: End, front: &mut dyn Front) -> Status {
        let End { waited, timeline, cpu } = end;
        running.stop(waited.tick);
        // The one look at the counters that everything in the result comes from.
        let mut waited = ended_otherwise(&running, waited);
        let sample = running.measured();
        if let Some(fault) = running.closing_fault().filter(|_| waited.ended.is_good()) {
            waited.ended = Ended::Fault(fault);
        }
        run.intervals = timeline.concluded(&running, waited.tick, &sample);
        let status = self.fill(&mut run, ready, &running, &waited, &sample, cpu);
        let streams = self.take_streams(&running, front);
        run.digest = self.digest(&streams, &running, front);
        // A thread that is late on a busy disk is no sign that the result's file system does not answer.
        let held = run.state == crate::result::RunState::Stuck;
        self.publish_run(&mut run);
        self.document.runs.push(run);
        crate::result::warnings::note(&mut self.document);
        front.run_ended(&self.document);
        self.write_json(held, front);
        self.write_trace(ready, streams, held, front);
        self.note_status(status);
        status.max(self.part_with(running, &ready.plan, front))
    }

    /// `create files`: brings the sets onto the disk now.
    pub(super) fn create_files(&mut self, front: &mut dyn Front) -> Status {
        let here = self.places.iter().cloned().collect();
        let _looking =
            self.watch.begin(Stage::Prepare, "looking where the file sets are to be", here, self.worst.code());
        if let Err(status) = self.refuse_devices(front).and_then(|()| self.make_dir_if_used(front)) {
            return status;
        }
        let Some(plan) = self.plan(front) else { return Status::Script };
        let roots = plan.filesets.iter().map(crate::fileset::FilesetSpec::root).collect();
        let _making = self.watch.begin(Stage::Prepare, "looking at the file sets", roots, self.worst.code());
        if let Err(status) = self.check_dir(front) {
            return status;
        }
        let status =
            self.prepare(&plan, self.settings.as_is, false, front).map_or_else(|status| status, |_| Status::Done);
        self.release_sets();
        status
    }

    /// `shutdown files`: removes the trees.
    pub(super) fn remove_trees(&mut self, front: &mut dyn Front) -> Status {
        let status = self.shutdown_processes(front);
        let mut worst = status;
        let _removing = self.removing();
        for ready in std::mem::take(&mut self.sets) {
            worst = worst.max(self.remove_tree(&ready, front));
        }
        worst
    }

    fn remove_tree(&self, ready: &ReadySet, front: &mut dyn Front) -> Status {
        // It may lie on a file system that is not mounted any more, or was made anew.
        if !prepare::is_marked(&ready.set.spec.root()) {
            ready.set.close();
            return Status::Done;
        }
        let stop = AtomicBool::new(false);
        match prepare::remove(&ready.set, self.settings.populate_threads, &stop) {
            Ok(removed) => {
                if removed.adopted {
                    front.note(&format!("{} was adopted: it is let go, and its files stay", removed.path.display()));
                }
                Status::Done
            }
            Err(e) => {
                front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
                Status::Refused
            }
        }
    }

    /// Parts with a set that no run needs any more: in the fresh directory its tree goes, elsewhere it stays.
    pub(super) fn let_go(&mut self, ready: &ReadySet, front: &mut dyn Front) -> Status {
        let own = self.fresh.as_ref().is_some_and(|dir| ready.set.spec.path.starts_with(dir));
        if (own && !self.settings.keep) || self.settings.clean {
            return self.remove_tree(ready, front);
        }
        if !prepare::is_marked(&ready.set.spec.root()) {
            return Status::Done;
        }
        let files = ready.set.state.n_existing();
        let adopted = ready.prepared.adopted;
        self.leftovers.push(Leftover { root: ready.set.spec.root(), bytes: ready.prepared.bytes, files, adopted });
        ready.set.close();
        Status::Done
    }

    /// Trees whose making began here and ended early, in a directory of the user's: they stay or go like others.
    pub(super) fn leave_unfinished(&mut self, roots: Vec<PathBuf>, front: &mut dyn Front) {
        for root in roots.into_iter().filter(|root| prepare::is_marked(root)) {
            if self.fresh.as_ref().is_some_and(|dir| root.starts_with(dir)) {
                continue;
            }
            if !self.settings.clean {
                self.leftovers.push(Leftover { root, bytes: 0, files: 0, adopted: false });
                continue;
            }
            match prepare::clean(&root, self.settings.populate_threads, &AtomicBool::new(false)) {
                Ok(cleaned) => tell_refused(&cleaned, front),
                Err(e) => front.error(Some(e.code()), &e.to_string(), e.help().as_deref()),
            }
        }
    }

    /// The session ends: the fresh directory goes, trees in a directory of the user's stay, and a line says so.
    pub(super) fn leave_trees(&mut self, front: &mut dyn Front) -> Status {
        let mut status = Status::Done;
        if self.stalled {
            return self.leave_stalled(front);
        }
        let _removing = self.removing();
        for ready in std::mem::take(&mut self.sets) {
            status = status.max(self.let_go(&ready, front));
        }
        if let Some(dir) = self.fresh.take().filter(|_| !self.settings.keep) {
            // A tree whose making was interrupted is in no list; its marker tells.
            let (places, stop) = (std::mem::take(&mut self.places), AtomicBool::new(false));
            let cleaned = prepare::clean_places(&dir, &places, self.settings.populate_threads, &stop);
            tell_refused(&cleaned, front);
            if let Err(e) = std::fs::remove_dir(&dir)
                && e.kind() != std::io::ErrorKind::NotFound
            {
                front.note(&format!("{} stays: {e}", dir.display()));
            }
        }
        for line in leftovers::lines(std::mem::take(&mut self.leftovers)) {
            front.note(&line);
        }
        status
    }
}

/// Trees that could not be removed, and why.
fn tell_refused(cleaned: &prepare::CleanReport, front: &mut dyn Front) {
    for e in &cleaned.refused {
        front.error(Some(e.code()), &e.to_string(), e.help().as_deref());
    }
}
