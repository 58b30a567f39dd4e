//! Runs: their length, their plan, and the checks before anything is measured.
//!
//! Deliberately absent: the measurement itself (`measure`).

use super::unused::unread_time;
use super::{Front, Session, Status};
use crate::diag::{Code, Diagnostic, Failure};
use crate::measure::{self, check_file_systems};
use crate::measure::{Description, Length, Measurement, NamedDirs, Outputs, Periodic, Record, WarmupLength, sha256};
use crate::model::scope::literal;
use crate::model::{self, CommandKind, Expr, FilesetDef, ModelValue, Object, QuitMode, Scope, SetBy};
use crate::plan::{self, FRESH, Plan};
use crate::source::{Span, Spanned};
use crate::spec::Sharing;
use crate::spec::predefined::DIR;
use crate::util::secrets::{ENVIRONMENT, secrets};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The length of a run, and whether it starts from the existing files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RunTime {
    /// The length in the command. `None` if there is none.
    pub(crate) length: Option<Duration>,
    /// Whether the run starts from the existing files.
    pub(crate) as_is: bool,
}

/// Settings of commands for later runs.
#[derive(Default)]
pub(crate) struct RunOptions {
    /// What ends a run before its time.
    pub(crate) mode: QuitMode,
    pub(crate) event_rate: Option<Spanned<Expr>>,
    pub(crate) lathist: bool,
    /// The time of a `run N` in a text that was only loaded.
    pub(crate) default_seconds: Option<Spanned<Expr>>,
    /// Length of the warm-up of the next run.
    pub(crate) warm_next: Option<Duration>,
    /// The requested time of the last run. `None` before the first.
    pub(crate) last: Option<RunTime>,
}

/// The length of a run if neither script nor command line gives one.
const DEFAULT: Duration = Duration::from_mins(1);

impl Session {
    /// Returns the length of a run: that of the command line, else of the script, else of a loaded text, else 60 s. A
    /// script with `set mode quit` has no default, and in the dialect `sun` no length of its own.
    fn limit(&self, length: Option<Duration>) -> Length {
        let timeout = self.options.mode == QuitMode::Timeout;
        // The time of a loaded text is evaluated with the current variables.
        let default = || self.length(self.options.default_seconds.as_ref()).ok().flatten();
        let script = || length.or_else(default).filter(|_| !self.ignores_time());
        match self.runner.settings.runtime.or_else(script) {
            Some(length) => Length::Given(length),
            None if timeout => Length::Default(DEFAULT),
            None => Length::Unlimited,
        }
    }

    /// True if the length of a `run` has no effect, by the mode and the dialect.
    fn ignores_time(&self) -> bool {
        self.options.mode != QuitMode::Timeout && self.loaded.dialect.semantics().time_ends_timeout_only
    }

    /// Returns the lengths of the runs that a script makes, after [`Session::read`] has executed its definitions. `None`
    /// is a run without a limit. A script without a run makes one, unless it creates its files by a command.
    pub fn run_lengths(&self, model: &model::Model) -> Vec<Option<Duration>> {
        let creates = |what: fn(&Object) -> bool| {
            model.commands.iter().any(|c| matches!(&c.kind, CommandKind::Create(object) if what(object)))
        };
        let is_live = creates(|object| *object == Object::Processes);
        let only_creates = self.runner.settings.runtime.is_none() && creates(|object| *object != Object::Processes);
        let length = |seconds: Option<&Spanned<Expr>>| match self.limit(self.length(seconds).ok().flatten()) {
            Length::Given(length) | Length::Default(length) => Some(length),
            Length::Unlimited => None,
        };
        let lengths: Vec<Option<Duration>> = model
            .commands
            .iter()
            .filter_map(|command| match &command.kind {
                CommandKind::Run { seconds, .. } | CommandKind::PsRun { seconds, .. } => Some(length(seconds.as_ref())),
                // What `create processes` started is measured while the script sleeps.
                CommandKind::Sleep(seconds) if is_live => Some(length(Some(seconds))),
                _ => None,
            })
            .collect();
        if lengths.is_empty() && !is_live && !only_creates { vec![length(None)] } else { lengths }
    }

    pub(super) fn run(&mut self, length: Option<Duration>, span: Span, front: &mut dyn Front) -> Result<(), Failure> {
        self.run_with(RunTime { length, as_is: false }, None, span, front)
    }

    /// The same, possibly from the existing files or with periodic reports.
    pub(crate) fn run_with(
        &mut self,
        time: RunTime,
        periodic: Option<Periodic>,
        span: Span,
        front: &mut dyn Front,
    ) -> Result<(), Failure> {
        self.flow.has_run = true;
        self.options.last = Some(time);
        self.shutdown_processes(front)?;
        let plan = self.checked_plan(span, front)?;
        if time.length.is_some() && self.runner.settings.runtime.is_none() && self.ignores_time() {
            front.note(
                "the time of `run` has no effect with `set mode quit` in the dialect sun (`--runtime` limits the run)",
            );
        }
        let length = self.limit(time.length);
        if matches!(length, Length::Default(_)) {
            unread_time(&self.scope, &self.variables_in_use()).iter().for_each(|note| front.note(note));
        }
        let measurement = Measurement {
            plan,
            map: &self.map,
            length,
            warmup: self.options.warm_next.map_or(self.runner.settings.warmup, WarmupLength::Fixed),
            as_is: time.as_is,
            periodic,
            about: self.description(),
        };
        let record = self.runner.measure(measurement, front)?;
        if !record.figures.is_empty() {
            self.options.warm_next = None;
        }
        self.measured(record, front)
    }

    /// Sets the variables `${stats.…}` to the figures of a measurement, whose report says whether it failed. If the run
    /// failed, says also that the dialect of its script is a guess.
    pub(super) fn measured(&mut self, record: Record, front: &mut dyn Front) -> Result<(), Failure> {
        if record.status == Status::Failed
            && let Some(guess) = &self.loaded.guess
        {
            front.note(guess);
        }
        for (name, value) in record.figures {
            self.scope.set_internal(&format!("stats.{name}"), value.to_string());
        }
        Failure::outcome(record.status)
    }

    /// Describes a run that begins now, for the result.
    pub(super) fn description(&self) -> Description {
        let mut variables = BTreeMap::new();
        for binding in self.scope.bindings() {
            if let Some(Ok(value)) = self.scope.value(&binding.name) {
                variables.insert(binding.name.clone(), as_json(&value));
            }
        }
        for name in self.scope.predefined_read() {
            if let Some(Ok(value)) = self.scope.value(&name) {
                variables.insert(name, as_json(&value));
            }
        }
        // Values computed from the environment are masked too.
        for name in self.scope.made_of_environment().into_iter().filter(|_| !self.runner.settings.record_env) {
            variables.entry(name).and_modify(|value| *value = ENVIRONMENT.into());
        }
        let notes = self.loaded.notes.iter().cloned().collect();
        let compared = self.loaded.compared.clone().into_iter().collect();
        let loaded_scripts = self.loaded.digests();
        let (secrets, lathist) = (self.secrets(), self.options.lathist);
        Description { variables, loaded_scripts, secrets, notes, compared, lathist }
    }

    /// Values of the environment that the script has read and that results must mask.
    fn secrets(&self) -> Vec<String> {
        if self.runner.settings.record_env { Vec::new() } else { secrets(self.scope.environment()) }
    }

    /// Stops live processes.
    pub(crate) fn shutdown_processes(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let secrets = self.secrets();
        self.flow.live.forget();
        Failure::outcome(self.flow.processes.shutdown(&mut self.runner, &secrets, front))
    }

    /// Ends the session: stops live processes, removes temporary directories, and writes the result.
    pub fn finish(self, front: &mut dyn Front) -> Status {
        self.finish_with_result(front).0
    }

    /// Does the same, and returns what was written too.
    pub(crate) fn finish_with_result(mut self, front: &mut dyn Front) -> (Status, Outputs) {
        let secrets = self.secrets();
        let status = self.flow.processes.shutdown(&mut self.runner, &secrets, front);
        self.runner.finish(status, front)
    }

    /// `create processes`.
    pub(crate) fn create_processes(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        self.shutdown_processes(front)?;
        self.flow.has_run = true;
        let plan = self.checked_plan(Span::default(), front)?;
        let measurement = Measurement {
            plan,
            map: &self.map,
            length: Length::Unlimited,
            warmup: WarmupLength::NONE,
            as_is: false,
            periodic: None,
            about: self.description(),
        };
        let created = self.flow.processes.create(&mut self.runner, &measurement, front);
        if self.flow.processes.are_running() {
            self.flow.live.note(&self.definitions, &self.scope);
        }
        created
    }

    /// Makes the plan of a run, after checking that this machine can run it, and creates its directory. On an error all
    /// file sets are released.
    fn checked_plan(&mut self, span: Span, front: &mut dyn Front) -> Result<Arc<Plan>, Failure> {
        let plan = self.plan_that_fits(span, front).inspect_err(|_| self.runner.sets.release_sets())?;
        self.definitions.note_run();
        Ok(plan)
    }

    fn plan_that_fits(&mut self, span: Span, front: &mut dyn Front) -> Result<Arc<Plan>, Failure> {
        let defined = self.check_definitions(span);
        let _looking = self.runner.looking("determining the file systems of the file sets", None);
        let checked = defined.and_then(|()| self.check_before_run(front));
        let plan = self.agreed(checked)?;
        self.plan_in_dir(Some(plan), front).map(Arc::new)
    }

    /// Returns this rank's result if all ranks have succeeded, with the same script under the same conditions.
    fn agreed<T>(&self, checked: Result<T, Failure>) -> Result<T, Failure> {
        let script = &self.runner.outputs.document.script.sha256;
        self.runner.ranks.agree_on_run(checked, script, || self.conditions())
    }

    /// Returns the plan after its directory: checks that of the user, or creates one. With several ranks this succeeds on all
    /// or on none. `before`: the plan that was made before its directory was.
    fn plan_in_dir(&mut self, before: Option<Plan>, front: &mut dyn Front) -> Result<Plan, Failure> {
        let fresh = self.make_dir_if_used()?;
        let placed = before.and_then(|plan| match fresh {
            Some(dir) => plan.in_fresh_dir(&dir),
            None => Some(plan),
        });
        let plan = placed.map_or_else(|| self.plan(front), Ok);
        let checked = plan.and_then(|plan| self.check_dir(front).map(|()| plan));
        self.runner.ranks.share_rates(checked)
    }

    /// Returns the names and values of the conditions that all ranks must share. They are those of a run on rank 0, so
    /// that what a script computes from `$rank` and `$host` may differ.
    fn conditions(&self) -> Vec<(String, String)> {
        let scope = self.scope_of_first();
        let of_variable = |name: &str| match scope.value(name) {
            Some(Ok(value)) => value.print(),
            _ => "an error".to_owned(),
        };
        let variables = scope.bindings().map(|b| (format!("`${}`", b.name), of_variable(&b.name)));
        let plan = ("the SHA-256 digest of the plan".to_owned(), sha256(self.plan_text(&scope)));
        variables.chain([plan]).collect()
    }

    /// Returns all variables as rank 0 has them. `$dir` is the placeholder if it is a fresh directory, whose name is
    /// different on each rank.
    fn scope_of_first(&self) -> Scope {
        let mut scope = self.scope.clone();
        for (variable, value) in self.runner.ranks.variables_of_first() {
            scope.predefine(variable.name, value);
        }
        if scope.binding(DIR.name).is_some_and(|binding| binding.by == SetBy::Default) {
            let fresh = Spanned::new(literal(ModelValue::from(FRESH)), Span::default());
            // A literal can't fail to be set.
            let _ = scope.set(DIR.name, fresh, SetBy::Default);
        }
        scope.renew_budget();
        scope
    }

    /// Returns the plan with these variables as text. Empty if it has errors, which [`Session::plan`] reports.
    fn plan_text(&self, scope: &Scope) -> String {
        let Ok(event_rate) = self.event_rate_in(scope) else { return String::new() };
        self.compiled(scope, event_rate).map_or_else(|_| String::new(), |(plan, _)| format!("{plan:?}"))
    }

    /// Returns the error for a run without a process.
    pub(super) fn nothing_to_run(&self, span: Span, message: &str, help: &str) -> Diagnostic {
        let d = Diagnostic::error(Code::NothingToRun, span, message).help(help);
        if self.definitions.filesets.is_empty() {
            return d;
        }
        d.help("`create files` instead of `run` makes only the files")
    }

    /// Refuses a run without a process, or with asynchronous I/O that the machine does not have.
    fn check_definitions(&self, span: Span) -> Result<(), Failure> {
        if self.definitions.processes.is_empty() {
            let d = self.nothing_to_run(span, "no process is defined", "define one, or `load` a personality");
            return Err(self.wrong(vec![d]));
        }
        measure::asynchronous(&self.runner.settings).map(drop)
    }

    /// Makes the plan of a run, and refuses one that the machine can't run, before anything is created.
    fn check_before_run(&mut self, front: &mut dyn Front) -> Result<Plan, Failure> {
        self.refuse_devices()?;
        let plan = self.plan(front)?;
        self.refuse_endless_phases(&plan)?;
        self.refuse_commands(&plan)?;
        measure::check_plan(&self.runner.settings, &plan)?;
        Ok(plan)
    }

    /// The errors of a plan with a phase that never begins.
    pub fn endless_phases(&self, plan: &Plan) -> Vec<Diagnostic> {
        plan::never_begun(&self.definitions, plan)
    }

    /// Refuses a plan with a phase that never begins.
    pub(super) fn refuse_endless_phases(&self, plan: &Plan) -> Result<(), Failure> {
        let found = self.endless_phases(plan);
        if found.is_empty() { Ok(()) } else { Err(self.wrong(found)) }
    }

    /// Refuses flowops that run commands without permission, as for `system`. The null engine runs no commands.
    fn refuse_commands(&self, plan: &Plan) -> Result<(), Failure> {
        if !self.runner.settings.engine.real() {
            return Ok(());
        }
        let mut refused = plan.flowops.iter().filter(|flowop| flowop.runs_command);
        let refused = refused.find_map(|flowop| self.refusal(&flowop.name, flowop.span));
        refused.map_or(Ok(()), |found| Err(self.not_permitted(found)))
    }

    /// `create files`. While processes run, their file sets are in use and exist, and nothing is created, as in Filebench.
    pub(crate) fn create_files(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        if self.flow.processes.are_running() {
            front.note(
                "`create files` has no effect while processes run: their file sets exist; \
                 the next `create processes` or `run` creates those that have been defined since",
            );
            return Ok(());
        }
        let looking = self.runner.looking("determining the file systems of the file sets", None);
        let checked = self.refuse_devices().and_then(|()| self.check_later_run(front));
        let plan = self.agreed(checked)?;
        let plan = self.plan_in_dir(plan, front)?;
        drop(looking);
        self.runner.create_files(&plan, &self.map, front)
    }

    /// Refuses processes that this machine can't run, before their files are created.
    fn check_later_run(&mut self, front: &mut dyn Front) -> Result<Option<Plan>, Failure> {
        if self.definitions.processes.is_empty() {
            return Ok(None);
        }
        let plan = self.plan(front)?;
        measure::check_plan(&self.runner.settings, &plan)?;
        Ok(Some(plan))
    }

    /// `shutdown files`: removes the trees.
    pub(super) fn remove_trees(&mut self, front: &mut dyn Front) -> Result<(), Failure> {
        let shut_down = self.shutdown_processes(front);
        let removed = self.runner.sets.remove_trees(front);
        Failure::all([shut_down.err(), removed.err()].into_iter().flatten())
    }

    fn check_dir(&self, front: &mut dyn Front) -> Result<(), Failure> {
        self.dirs_of_user().map_or(Ok(()), |dirs| dirs.check(&self.runner.settings, front))
    }

    /// Returns the directory of `--below`, or else `$dir` if the command line sets it.
    fn dirs_of_user(&self) -> Option<NamedDirs> {
        if let Some(below) = &self.runner.settings.below {
            return Some(NamedDirs::of_below(below));
        }
        let by_user = self.scope.binding("dir").is_some_and(|b| b.by == SetBy::CommandLine);
        self.scope.value("dir").filter(|_| by_user)?.ok().map(|value| NamedDirs::of_dir(&value.print()))
    }

    /// Checks that this machine can run a plan.
    pub fn check_machine(&self, plan: &Plan) -> Result<(), Failure> {
        measure::check_plan(&self.runner.settings, plan)
    }

    /// Checks, without creating anything, that the directories of a plan exist, or can be created, on file systems that are
    /// allowed.
    pub(crate) fn check_places(&self, plan: &Plan) -> Result<(), Failure> {
        if let Some(dirs) = self.dirs_of_user() {
            dirs.missing(&self.runner.settings)?;
        }
        check_file_systems(&self.runner.settings, plan)
    }

    /// Refuses files that are block devices, whose data would be lost.
    fn refuse_devices(&self) -> Result<(), Failure> {
        use std::os::unix::fs::FileTypeExt;
        if !self.runner.settings.engine.real() {
            return Ok(());
        }
        for def in self.definitions.filesets.iter().filter(|def| def.single) {
            // Other errors are reported by the plan.
            let below = self.runner.settings.below.as_deref();
            let Some(spec) = plan::fileset_spec(def, &self.scope, below, &mut Vec::new()) else { continue };
            // With `--below`, the path that the script means may be a device too, and its place a directory.
            let rest = spec.below.as_ref().and_then(|below| spec.path.strip_prefix(below).ok());
            let meant = rest.map(|path| Path::new("/").join(path).join(&*spec.root_name()));
            let is_device =
                |path: &PathBuf| std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device());
            let Some(root) = [Some(spec.root()), meant].into_iter().flatten().find(is_device) else { continue };
            let what = format!("`{}` is a block device, whose data would be lost", root.display());
            let help = "make a file system on it, mount it, and give that directory with `path=`";
            return Err(self.not_permitted(Diagnostic::error(Code::Refused, def.span, what).help(help)));
        }
        Ok(())
    }

    /// Creates the session's temporary directory, if `$dir` is not set otherwise. Returns it if it was created now.
    pub(super) fn make_dir_if_used(&mut self) -> Result<Option<PathBuf>, Failure> {
        let is_set = self.scope.binding("dir").is_none_or(|b| b.by != SetBy::Default);
        if is_set || self.runner.settings.below.is_some() {
            return Ok(None);
        }
        let Some(path) = self.runner.sets.make_fresh_dir(self.shares_with_all())? else { return Ok(None) };
        let text = path.display().to_string();
        let file = self.map.add("<fresh directory>", text.clone());
        self.set_default_dir(&text, Span::new(file, 0, 0));
        Ok(Some(path))
    }

    /// True if ranks of several hosts share a tree.
    fn shares_with_all(&self) -> bool {
        let default = self.runner.settings.share;
        let of = |def: &Arc<FilesetDef>| {
            // Errors are reported by the plan.
            let spec = plan::fileset_spec(def, &self.scope, None, &mut Vec::new());
            spec.and_then(|spec| spec.share).unwrap_or(default) != Sharing::Host
        };
        self.definitions.filesets.iter().any(of)
    }
}

/// The value of a variable as JSON.
fn as_json(value: &ModelValue) -> serde_json::Value {
    match value {
        ModelValue::Bool(b) => (*b).into(),
        ModelValue::Int(n) => (*n).into(),
        ModelValue::Float(x) => (*x).into(),
        other => other.print().into(),
    }
}
