//! A session: executes commands one after another, for a script, a profile or a prompt.
//!
//! In: source texts and settings. Out: runs in the document of a `Runner`, and messages to a [`Front`]. A session
//! keeps definitions and variables; each run reads the variables at its start. The script runner, the batch and the
//! shell are front ends of it. Deliberately absent: the command line, terminals, formats of reports.

mod checked;
mod commands;
mod constants;
pub mod groups;
mod hints;
pub mod library;
mod live;
mod loading;
mod run;
mod stats;
mod typed;
mod unused;

pub use crate::measure::{Front, Settings, Status};
pub use checked::SilentFront;
pub(crate) use commands::{CommandError, LONGEST_TIME};
pub(crate) use loading::Loaded;
pub(crate) use run::RunOptions;
pub(crate) use typed::{TypedValue, typed_value};

use crate::diag::{Code, Diagnostic, Failure, Severity, has_errors};
use crate::flowop;
use crate::measure::{FIGURES, LiveProcesses, Runner, ScriptOrigin, Watch, compared_values};
use crate::model::{self, Command, CommandKind, Expr, Known, Object, Scope, SetBy, TextPart};
use crate::plan::{self, Definitions, FRESH, Plan};
use crate::source::{FileId, SHIPPED, SourceMap, Span, Spanned};
use crate::spec::predefined::{self, predefined_names};
use crate::spec::{Dialect, SpecTable};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

#[cfg(test)]
thread_local! {
    /// How many plans this thread has compiled.
    pub(crate) static COMPILED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The part of a text that is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Extent {
    #[default]
    Whole,
    /// Definitions and settings.
    Definitions,
    /// The same, and effects of loaded texts are reported.
    Check,
}

/// The progress of the commands.
#[derive(Default)]
pub(crate) struct Flow {
    /// Whether there was a run. A script without one gets one at its end.
    has_run: bool,
    /// Whether the script itself, not a text that it loads, has created its files. It then expects no run at its end.
    has_created: bool,
    /// Whether `quit` was executed.
    pub(crate) quit: bool,
    /// Whether a statement of a prompt is being executed.
    pub(crate) typing: bool,
    /// Those of `create processes`.
    pub(crate) processes: LiveProcesses,
    /// The variables that they have read.
    live: live::LiveVariables,
}

/// Executes commands one after another, and keeps their definitions and variables.
pub struct Session {
    /// All texts.
    pub map: SourceMap,
    /// All variables.
    pub scope: Scope,
    pub definitions: Definitions,
    /// Measures plans. It has the settings of the command line and the result.
    pub runner: Runner,
    pub(crate) table: SpecTable,
    pub(crate) options: RunOptions,
    pub(crate) loaded: Loaded,
    pub(crate) flow: Flow,
    extent: Extent,
    /// Warnings of the last plan.
    plan_warnings: Vec<Diagnostic>,
}

impl Session {
    /// Returns an empty session. Signals set `interrupt`.
    pub fn new(settings: Settings, interrupt: Arc<AtomicUsize>) -> Self {
        let mut scope = Scope::default();
        let fresh = Expr::Text(vec![TextPart::Text(FRESH.to_owned())]);
        // A literal can't fail to be set.
        let _ = scope.set(predefined::DIR.name, Spanned::new(fresh, Span::default()), SetBy::Default);
        // Set once, so that a size computed from them is the same for `create files` and for all runs.
        for (variable, value) in crate::measure::predefined(&settings.together) {
            scope.predefine(variable.name, value);
        }
        scope.set_internal("hostname", crate::measure::hostname());
        // All figures are 0 before the first measurement.
        scope.set_internal("rate", "0".to_owned());
        for name in FIGURES {
            scope.set_internal(&format!("stats.{name}"), "0".to_owned());
        }
        Self {
            map: SourceMap::new(),
            scope,
            definitions: Definitions::default(),
            runner: Runner::new(settings, interrupt),
            table: flowop::spec_table(),
            options: RunOptions::default(),
            loaded: Loaded::default(),
            flow: Flow::default(),
            extent: Extent::default(),
            plan_warnings: Vec::new(),
        }
    }

    /// What the session waits for, for the watchdog.
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.runner.watch)
    }

    /// The names that exist before a text is checked.
    pub fn known(&self, open: bool) -> Known {
        let composites = self.definitions.composites.iter().map(|c| c.name.node.clone()).collect();
        if open {
            // No other name is looked up. A prompt has many texts.
            return Known { composites, open, ..Known::default() };
        }
        let mut known = Known {
            // A script may read a variable that only the command line sets.
            variables: (self.scope.bindings().map(|b| b.name.clone()))
                .chain(self.runner.settings.sets.iter().map(|(name, _)| name.clone()))
                .chain(predefined_names())
                .collect(),
            composites,
            ..Known::default()
        };
        known.filesets = self.definitions.filesets.iter().filter_map(|f| f.attrs.name()).collect();
        let flowops = self.definitions.processes.iter().flat_map(|p| p.threads.iter().flat_map(|t| t.flowops.iter()));
        known.targets = flowops.filter_map(|f| f.attrs.name()).collect();
        known
    }

    /// Checks a text, and reports its warnings unless there are errors.
    pub fn check(&mut self, file: FileId, open: bool, front: &mut dyn Front) -> Result<model::Model, Failure> {
        let dialect = self.runner.settings.dialect.or(open.then_some(self.loaded.dialect));
        let (model, found) = model::check(&self.map, file, &self.table, dialect, &self.known(open));
        self.promise(&model);
        self.without_errors(found, front)?;
        Ok(model)
    }

    /// Fails if there are errors among these diagnostics. Otherwise they are warnings, which are shown.
    pub(crate) fn without_errors(&self, found: Vec<Diagnostic>, front: &mut dyn Front) -> Result<(), Failure> {
        if has_errors(&found) {
            return Err(self.wrong(found));
        }
        if !found.is_empty() {
            front.warnings(&self.map, &found);
        }
        Ok(())
    }

    /// The failure of a script with these errors.
    pub(crate) fn wrong(&self, found: Vec<Diagnostic>) -> Failure {
        Failure::in_script(Status::Script, &self.map, found)
    }

    /// The failure of a script that is not permitted something.
    fn not_permitted(&self, found: Diagnostic) -> Failure {
        Failure::in_script(Status::Refused, &self.map, vec![found])
    }

    /// Executes a whole script, and starts a run at its end if there was none.
    pub fn script(&mut self, name: &str, text: &str, front: &mut dyn Front) -> Result<(), Failure> {
        let file = self.map.add(name, text);
        let model = self.check(file, false, front).inspect_err(|_| self.describe_faulty(file))?;
        self.note_dialect(&model, front);
        self.describe_script(file, &model);
        self.loaded.whole = true;
        self.check_permission(&model)?;
        if model::visit::all(&model.commands).any(Command::writes_file) {
            self.runner.outputs.check_results()?;
        }
        self.apply_sets_for(name)?;
        if let Err(unused) = self.apply_settings(&model) {
            // Errors of the command line do not hide those of the script.
            let mut found = self.check_values(&model, name);
            found.retain(|d| d.severity == Severity::Error);
            return Err(if found.is_empty() { unused } else { unused.and(self.wrong(found)) });
        }
        let found = constants::constant_errors(&model.commands, &self.scope, &self.map);
        if !found.is_empty() {
            return Err(self.wrong(found));
        }
        let warnings = model::lint::lint(&model, &self.scope, true);
        if !warnings.is_empty() {
            front.warnings(&self.map, &warnings);
        }
        self.check_first_run(&model, name)?;
        self.commands(&model.commands, front)?;
        if self.flow.quit || self.flow.has_run || self.flow.processes.are_running() {
            if self.flow.has_run && self.runner.outputs.document.runs.is_empty() {
                front.note("nothing was measured: `run N`, or `stats snap` while processes live, makes it a result");
            }
            return Ok(());
        }
        if self.definitions.processes.is_empty() {
            // A script that prints, creates files or loads texts needs no process.
            if model.commands.iter().all(|c| only_defines(&c.kind)) {
                let help = "add `define process name=… { thread … { flowop … } }`";
                let d = self.nothing_to_run(Span::new(file, 0, 0), "the script defines no process", help);
                return Err(self.wrong(vec![d]));
            }
            return Ok(());
        }
        // A run would change the files that the script was to create.
        if self.flow.has_created && self.runner.settings.runtime.is_none() {
            front.note("nothing was measured: after `create files`, only `run` or `--runtime` starts a run");
            return Ok(());
        }
        self.run(None, Span::new(file, 0, 0), front)
    }

    /// Executes the definitions and settings of a script, for its plan. Nothing runs, and no file is created.
    pub fn read(&mut self, name: &str, text: &str, front: &mut dyn Front) -> Result<model::Model, Failure> {
        let file = self.map.add(name, text);
        let model = self.check(file, false, front)?;
        self.describe_script(file, &model);
        self.apply_sets_for(name)?;
        self.apply_settings(&model)?;
        self.only_define();
        self.commands(&definitions_of(&model.commands), front)?;
        Ok(model)
    }

    /// Fails at the first command for the shell that the settings do not permit.
    pub(crate) fn check_permission(&self, model: &model::Model) -> Result<(), Failure> {
        self.refused(&model.commands).map_or(Ok(()), |found| Err(self.not_permitted(found)))
    }

    /// Sets the variables of the command line for the script with this path, before its commands.
    pub(crate) fn apply_sets_for(&mut self, name: &str) -> Result<(), Failure> {
        self.set_folder(name);
        self.apply_sets()
    }

    /// Prepares the session for the commands of a whole script. Fails if a setting of the command line changes nothing in
    /// it.
    pub(crate) fn apply_settings(&mut self, model: &model::Model) -> Result<(), Failure> {
        self.loaded.reads = model::lint::read_beside_load(&model.commands);
        Failure::all(unused::unused_settings(&self.runner.settings.sets, model, &self.map))
    }

    /// Describes a script with errors, so that its result says which one it is.
    fn describe_faulty(&mut self, file: FileId) {
        let source = self.map.file(file);
        let dialect = self.runner.settings.dialect.unwrap_or_default().name();
        let shipped = library::shipped_as(&source.name, &source.text).is_some();
        let origin = if shipped { ScriptOrigin::Shipped } else { ScriptOrigin::Other };
        self.runner.outputs.describe_script((&source.name, &source.text), (dialect, "the script has errors"), origin);
    }

    fn describe_script(&mut self, file: FileId, model: &model::Model) {
        let source = self.map.file(file);
        self.loaded.dialect = model.dialect;
        self.loaded.notes.extend(library::notes(&source.text).map(str::to_owned));
        self.loaded.compared.extend(compared_values(&source.text));
        // A result names the scripts that the user has loaded, not those that they load.
        if !self.loaded.whole && self.loaded.texts.last().is_none_or(|text| !text.nested) {
            let origin = |name: &str, text: &str| match library::shipped_as(name, text) {
                Some(_) => ScriptOrigin::Shipped,
                None => ScriptOrigin::Other,
            };
            let reason = model.dialect_reason.as_str();
            match &self.loaded.outer_texts()[..] {
                several @ [_, _, ..] => {
                    let names: Vec<&str> = several.iter().map(|text| text.name.as_str()).collect();
                    let texts = || several.iter().map(|text| (&text.name, self.map.file(text.file).text.as_str()));
                    let all_shipped = texts().all(|(name, text)| origin(name, text) == ScriptOrigin::Shipped);
                    let whole: Vec<&str> = texts().map(|(_, text)| text.trim_end()).collect();
                    let whole = whole.join("\n") + "\n";
                    let shared = if all_shipped { ScriptOrigin::Shipped } else { ScriptOrigin::Other };
                    // Each script has its own.
                    let reason = format!("{}: {reason}", source.name);
                    let dialect = (model.dialect.name(), reason.as_str());
                    self.runner.outputs.describe_script((&names.join(" and "), &whole), dialect, shared);
                }
                _ => {
                    let dialect = (model.dialect.name(), reason);
                    let origin = origin(&source.name, &source.text);
                    self.runner.outputs.describe_script((&source.name, &source.text), dialect, origin);
                }
            }
            self.scope.set_internal("scriptname", script_name(&source.name));
        }
    }

    /// Says in which dialect a script is read that may be of either.
    fn note_dialect(&mut self, model: &model::Model, front: &mut dyn Front) {
        let Some(what) = model.undecided else { return };
        let name = &self.map.file(model.file).name;
        let (other, own, its) = match model.dialect {
            Dialect::Sun => (Dialect::Fsl, "1.4", "1.5"),
            Dialect::Fsl => (Dialect::Sun, "1.5", "1.4"),
        };
        front.note(&format!(
            "{name} may be of Filebench 1.4 or 1.5, in which {what} differ; it is read as {own} (`--dialect {other}`: {its})"
        ));
        self.loaded.guess =
            Some(format!("{name} was read as a script of Filebench {own}; `--dialect {other}` reads it as {its}"));
    }

    /// Sets the script that the result shows instead of texts that are loaded later. `dialect`: its name and the reason
    /// for it.
    pub(crate) fn stand_for(&mut self, name: &str, text: &str, dialect: (&str, &str)) {
        self.runner.outputs.describe_script((name, text), dialect, ScriptOrigin::Other);
        self.scope.set_internal("scriptname", script_name(name));
        (self.loaded.whole, self.loaded.of_profile) = (true, true);
    }

    /// The name of the script that was loaded last, without its folder and its ending. `None` if none is loaded.
    pub(crate) fn loaded_name(&self) -> Option<String> {
        let name = &self.loaded.outer_texts().last()?.name;
        Some(script_name(name.strip_suffix(SHIPPED).unwrap_or(name)))
    }

    /// Makes the session execute only definitions and settings of texts.
    pub(crate) fn only_define(&mut self) {
        self.extent = Extent::Definitions;
    }

    /// Compiles the plan of all definitions with these variables.
    fn compiled(&self, scope: &Scope, event_rate: Option<u64>) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
        #[cfg(test)]
        COMPILED.set(COMPILED.get() + 1);
        let below = self.runner.settings.below.as_deref();
        let options = plan::CompileOptions { mode: self.options.mode, event_rate, below };
        plan::compile(&self.definitions, scope, &self.table, options)
    }

    /// Makes the plan of all definitions, or this rank's part of it, and reports its warnings.
    pub fn plan(&mut self, front: &mut dyn Front) -> Result<Plan, Failure> {
        let event_rate = self.event_rate_now().map_err(|d| self.wrong(self.values_named(vec![*d])))?;
        self.scope.renew_budget();
        let compiled = self.compiled(&self.scope, event_rate);
        let (plan, warnings) = compiled.map_err(|found| self.wrong(self.values_named(found)))?;
        // A script with `create files` and `run` makes two plans with the same warnings, which are reported once.
        let new: Vec<Diagnostic> = warnings.iter().filter(|d| !self.plan_warnings.contains(d)).cloned().collect();
        self.plan_warnings = warnings;
        if !new.is_empty() {
            front.warnings(&self.map, &self.values_named(new));
        }
        self.runner.ranks.own_part(plan)
    }

    /// Adds to diagnostics about values the place where each value was set.
    fn values_named(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        model::with_provenance(found, &self.scope, &self.map)
    }

    fn event_rate_now(&self) -> Result<Option<u64>, Box<Diagnostic>> {
        self.event_rate_in(&self.scope)
    }

    /// Evaluates the event rate with these variables. `None` if there is no limit.
    fn event_rate_in(&self, scope: &Scope) -> Result<Option<u64>, Box<Diagnostic>> {
        let Some(expr) = &self.options.event_rate else { return Ok(None) };
        let value = model::eval(expr, scope).map_err(Box::new)?;
        match value.as_u64() {
            // Without its fraction it would be another rate, or 0, which means no limit.
            Some(_) if value.fraction().is_some() => Err(Box::new(
                Diagnostic::error(Code::OutOfRange, expr.span, format!("the event rate is {}", value.print()))
                    .help("give a whole number of events a second, at least 1; 0 means no limit"),
            )),
            // A part of an event a second would be no limit at all.
            Some(0) if model::eval_exact(expr, scope).ok().and_then(|exact| exact.as_f64()) != Some(0.0) => {
                let message = "the event rate comes out as 0 in whole numbers";
                let help = "give at least one event a second, and the number 0 for no limit; `totalrate=` of a thread \
                            takes fractions";
                Err(Box::new(Diagnostic::error(Code::OutOfRange, expr.span, message).help(help)))
            }
            // 0 means no limit.
            Some(rate) => Ok(Some(rate).filter(|rate| *rate > 0)),
            None => Err(Box::new(
                Diagnostic::error(Code::WrongType, expr.span, format!("the event rate is {}", value.kind()))
                    .help("give a number of events a second"),
            )),
        }
    }
}

/// Commands of loops whose definitions are read without a run. A check of longer loops reads their first passes.
const MOST_IN_LOOPS: usize = 1 << 13;

/// The definitions and settings among commands, up to a `quit`.
fn definitions_of(commands: &[Command]) -> Vec<Command> {
    let defines = |kind: &CommandKind| only_defines(kind) || matches!(kind, CommandKind::Load(_));
    let mut found = Vec::new();
    for command in commands {
        match &command.kind {
            // With the first of its values. Errors that only others cause are found when they are run. A loop that
            // gives its definitions names is read to its end: later commands may refer to any of them.
            CommandKind::ForEach { name, values, body } => {
                let passes = if model::early::makes_names(body) { values.len() } else { 1 };
                let before = found.len();
                for value in values.iter().take(passes) {
                    let kind = CommandKind::Set { name: name.clone(), value: value.clone(), copies: false };
                    found.push(Command { span: command.span, kind });
                    found.extend(definitions_of(body));
                    if found.len() - before > MOST_IN_LOOPS {
                        break;
                    }
                }
            }
            CommandKind::Quit => break,
            kind if defines(kind) => found.push(command.clone()),
            _ => {}
        }
    }
    found
}

/// What a script does before its first run.
#[derive(Default)]
struct BeforeRun {
    /// Its definitions and settings. Of a loop, those of its first pass.
    definitions: Vec<Command>,
    /// Whether it creates files by a command.
    creates_files: bool,
    /// Whether it defines or sets something after that.
    defines_later: bool,
    /// Whether there is a run.
    has_run: bool,
}

impl BeforeRun {
    /// Reads commands up to the first run. Returns whether they go on.
    fn read(&mut self, commands: &[Command]) -> bool {
        for command in commands {
            match &command.kind {
                CommandKind::Run { .. } | CommandKind::PsRun { .. } | CommandKind::Create(Object::Processes) => {
                    self.has_run = true;
                    return false;
                }
                CommandKind::Quit => return false,
                CommandKind::Create(_) => self.creates_files = true,
                CommandKind::ForEach { name, values, body } => {
                    let Some(value) = values.first() else { continue };
                    let kind = CommandKind::Set { name: name.clone(), value: value.clone(), copies: false };
                    self.define(Command { span: command.span, kind });
                    if !self.read(body) {
                        return false;
                    }
                }
                kind if only_defines(kind) || matches!(kind, CommandKind::Load(_)) => {
                    self.define(command.clone());
                }
                _ => {}
            }
        }
        true
    }

    fn define(&mut self, command: Command) {
        self.defines_later |= self.creates_files;
        self.definitions.push(command);
    }
}

/// Whether a command is a definition or setting, without any other effect.
fn only_defines(kind: &CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::Set { .. }
            | CommandKind::SetField { .. }
            | CommandKind::SetMode(_)
            | CommandKind::SetNoUseStats
            | CommandKind::Debug
            | CommandKind::Usage(_)
            | CommandKind::LatHist(_)
            | CommandKind::DefineFileset(_)
            | CommandKind::DefineProcess(_)
            | CommandKind::DefineFlowop(_)
            | CommandKind::EventGen(_)
    )
}

/// The value of `${scriptname}` for a script of this path.
fn script_name(path: &str) -> String {
    let base = path.rsplit('/').next().unwrap_or_default();
    base.strip_suffix(".f").or_else(|| base.strip_suffix(".wml")).unwrap_or(base).to_owned()
}

/// A list of names for a message.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    /// The most names that a message lists. Each of many messages may list the same ones.
    const MOST: usize = 100;
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().checked_sub(MOST).filter(|more| *more > 0).map(|more| format!("and {more} others"));
    names.iter().take(MOST).map(|n| format!("`{}`", n.as_ref())).chain(more).collect::<Vec<_>>().join(", ")
}
